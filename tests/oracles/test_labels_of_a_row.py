"""Labels of a row that choose from a table are looked up: the fit is that with one-hots written out."""

import numpy as np
import pytest

import caviar as cv
from caviar.engine.rows.terms import kinds
from caviar.engine.rows.terms.chosen_by_labels import ChosenByLabels
from caviar.engine.rows.terms.contracted import ContractedTerm

DOC, POSITION, SITE, TOPIC = (
    cv.Plate("doc"),
    cv.Plate("position", 3),
    cv.Plate("site", 2),
    cv.Plate("topic", 2),
)
RNG = np.random.default_rng(0)


def topics():
    """Words at positions, some of them missing."""
    z = cv.Categorical("z", cv.Dirichlet("theta", np.ones(2), plates=DOC), plates=(DOC, POSITION))
    words = cv.Dirichlet("words", np.full(5, 0.5), plates=TOPIC)
    word = RNG.integers(0, 5, (8, 3)).astype(float)
    word[::3, 1] = np.nan
    return cv.Categorical("x", words[z], plates=(DOC, POSITION)), word


def turned():
    """The plates of the answers the other way round, and a table for each site."""
    z = cv.Categorical("z", cv.Dirichlet("theta", np.ones(2)), plates=DOC)
    words = cv.Dirichlet("words", np.full(5, 0.5), plates=TOPIC)
    return cv.Categorical("x", words[z], plates=(SITE, DOC)), RNG.integers(0, 5, (2, 8)).astype(float)


def by_site():
    """A table that varies along a plate of the labels is not looked up."""
    z = cv.Categorical("z", cv.Dirichlet("theta", np.ones(2)), plates=DOC)
    words = cv.Dirichlet("words", np.full(5, 0.5), plates=(TOPIC, SITE))
    return cv.Categorical("x", words[z], plates=(DOC, SITE)), RNG.integers(0, 5, (8, 2)).astype(float)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("case", [topics, turned, by_site])
def test_the_fit_is_that_with_one_hots(case, weighted, monkeypatch):
    leaf, x = case()
    weights = RNG.integers(1, 3, 8) if weighted else None
    fixed = {"seed": 0, "max_iter": 6, "data_plate": "doc", "sample_weight": weights, "factors": []}
    looked_up = cv.Model(leaf).fit({"x": x}, **fixed)
    monkeypatch.setattr(kinds, "_CONTRACTED_TERMS", [ContractedTerm])
    other, _ = case()
    plain = cv.Model(other).fit({"x": x}, **fixed)
    np.testing.assert_allclose(looked_up.elbo_trace[1:], plain.elbo_trace[1:], rtol=1e-10)


def test_topics_are_looked_up(monkeypatch):
    leaf, x = topics()
    found = []
    own = ChosenByLabels.backward
    monkeypatch.setattr(
        ChosenByLabels, "backward", lambda self, *rest: found.append(self) or own(self, *rest)
    )
    cv.Model(leaf).fit({"x": x}, seed=0, max_iter=1)
    assert found
