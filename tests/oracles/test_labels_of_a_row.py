"""Labels of a row that choose from a table are looked up: the fit is that with one-hots written out."""

import numpy as np
import pytest
from scipy.special import softmax

import caviar as cv
from caviar.engine.rows.terms import kinds
from caviar.engine.rows.terms.cells_by_label import CellsByLabel
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


def cells():
    """Answers of a table of two hidden labels, some of them missing; a known table says where to begin."""
    z = cv.Categorical("z", [0.3, 0.7], plates=DOC)
    v = cv.Categorical(
        "v", cv.Constant("given", [[0.2, 0.5, 0.3], [0.6, 0.2, 0.2]], plates=TOPIC)[z], plates=DOC
    )
    table = cv.Dirichlet("table", np.ones(16), plates=(TOPIC, cv.Plate("of v", 3)))
    x = RNG.integers(0, 16, 8).astype(float)
    x[3] = np.nan
    return cv.Categorical("x", table[z, v], plates=DOC), x


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("case", [topics, turned, by_site, cells])
def test_the_fit_is_that_with_one_hots(case, weighted, monkeypatch):
    leaf, x = case()
    weights = RNG.integers(1, 3, 8) if weighted else None
    fixed = {"seed": 0, "max_iter": 6, "data_plate": "doc", "sample_weight": weights, "factors": []}
    looked_up = cv.Model(leaf).fit({"x": x}, **fixed)
    monkeypatch.setattr(kinds, "_CONTRACTED_TERMS", [ContractedTerm])
    other, _ = case()
    plain = cv.Model(other).fit({"x": x}, **fixed)
    np.testing.assert_allclose(looked_up.elbo_trace[1:], plain.elbo_trace[1:], rtol=1e-10)


@pytest.mark.parametrize(("case", "kind"), [(topics, ChosenByLabels), (cells, CellsByLabel)])
def test_terms_are_looked_up(case, kind, monkeypatch):
    leaf, x = case()
    found = []
    own = kind.backward
    monkeypatch.setattr(kind, "backward", lambda self, *rest: found.append(self) or own(self, *rest))
    cv.Model(leaf).fit({"x": x}, seed=0, max_iter=1, data_plate="doc", factors=[])
    assert found


def test_labels_apart_are_at_their_optimum_in_every_row():
    """Rows need different numbers of sweeps; those that are settled are left out of the rest."""
    table, x = RNG.normal(0, 1, (2, 3)), np.linspace(-4, 4, 200)
    z, v = cv.Categorical("z", [0.5, 0.5], plates=DOC), cv.Categorical("v", np.ones(3) / 3, plates=DOC)
    known = cv.Constant("table", table, plates=(TOPIC, cv.Plate("of v", 3)))
    posterior = cv.Model(cv.Normal("x", known[z, v], 1.0, plates=DOC)).fit({"x": x}, factors=[])
    local = posterior.local({"x": x})
    one, other = (local[name].probabilities for name in ("z", "v"))
    cost = -0.5 * (x[:, None, None] - table) ** 2
    np.testing.assert_allclose(one, softmax(np.einsum("nkl,nl->nk", cost, other), axis=1), atol=1e-8)
    np.testing.assert_allclose(other, softmax(np.einsum("nkl,nk->nl", cost, one), axis=1), atol=1e-8)
