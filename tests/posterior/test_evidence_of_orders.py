"""Components that may be numbered in any order: estimates of the evidence say that they are those of one order."""

from __future__ import annotations

import itertools
from math import lgamma
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln, logsumexp

import caviar as cv

OBS, KIND = cv.Plate("obs"), cv.Plate("kind", 2)
X = np.array([-0.4, 0.3, 0.1, 6.2, 5.7, 6.1, 0.5])


def _mixture(n_components: int) -> cv.Model:
    weights = cv.Dirichlet("weights", np.ones(n_components))
    mean = cv.Normal("mean", 0, 0.05, plates=cv.Plate("component", n_components))
    return cv.Model(cv.Normal("x", mean[cv.Categorical("z", weights, plates=OBS)], 1.0, plates=OBS))


def _enumerated(n_components: int) -> float:
    """Return the log evidence of the mixture: the sum over all labels."""

    def of_component(rows: np.ndarray) -> float:
        n = len(rows)
        return stats.multivariate_normal(np.zeros(n), np.eye(n) + 20.0).logpdf(rows) if n else 0.0

    every = []
    for labels in itertools.product(range(n_components), repeat=len(X)):
        counts = np.bincount(labels, minlength=n_components)
        of_labels = gammaln(n_components) - gammaln(n_components + len(X)) + gammaln(1 + counts).sum()
        every.append(of_labels + sum(of_component(X[np.array(labels) == k]) for k in range(n_components)))
    return float(logsumexp(every))


def test_the_orders_of_separate_components_are_what_the_evidence_lacks(tmp_path: Path) -> None:
    """Two components far apart: the estimate is log 2 below the sum over all labels, and says so; also from a file."""
    posterior = _mixture(2).fit({"x": X}, seed=0)
    posterior.save(tmp_path / "fit.caviar")
    for own in (posterior, cv.load(tmp_path / "fit.caviar")):
        found = own.evidence({"x": X})
        assert found.orders == (("z", 2),)
        assert found.value + found.log_orders == pytest.approx(_enumerated(2), abs=3 * found.error)
        assert abs(found.value - _enumerated(2)) > 20 * found.error
        assert "one order of the categories of 'z' (2)" in found.remark
        assert "add log K! = 0.693 nats" in str(found)


def test_a_comparison_of_different_numbers_of_components_tells_their_orders() -> None:
    alone = cv.Model(cv.Normal("x", cv.Normal("mean", 0, 0.05), 1.0, plates=OBS))
    fits = {
        "1": alone.fit({"x": X}),
        "2": _mixture(2).fit({"x": X}, seed=0),
        "3": _mixture(3).fit({"x": X}, seed=0),
    }
    found = cv.compare(fits, {"x": X})
    more = {row.name: row.evidence.log_orders for row in found.rows}
    assert more == {"1": 0.0, "2": pytest.approx(lgamma(3)), "3": pytest.approx(lgamma(4))}
    assert "if these are well separated, add log K! to log p(x)" in str(found)
    assert "'3' 1.79" in found.remark
    # models with as many orders compare as they are
    assert cv.compare({"a": fits["2"], "b": fits["2"]}, {"x": X}).remark == ""


MEAN, PRECISION = cv.Normal("mean", 0, 0.05, plates=KIND), cv.Gamma("precision", 2, 2, plates=KIND)
GROUP = cv.Data("group", plates=KIND)
EVEN = cv.Dirichlet("weights", [1.0, 1.0])


def _of(mean: Any, weights: Any = EVEN) -> Any:
    return cv.Normal("x", mean[cv.Categorical("z", weights, plates=OBS)], 1.0, plates=OBS)


def _chain(transition: Any) -> Any:
    moves = cv.Dirichlet("moves", transition, plates=KIND)
    return cv.Normal("x", MEAN[cv.MarkovChain("z", [0.5, 0.5], moves, along=OBS)], 1.0, plates=OBS)


@pytest.mark.parametrize(
    ("leaf", "given", "expected"),
    [
        (_of(MEAN), {}, (("z", 2),)),
        (_of(MEAN, [0.5, 0.5]), {}, (("z", 2),)),
        (_of(MEAN), {"z": [0, 1] + [np.nan] * 5}, ()),
        (_of(MEAN, [0.4, 0.6]), {}, ()),
        (_of(MEAN, cv.Dirichlet("weights", [1.0, 2.0])), {}, ()),
        (_of(MEAN, cv.StickBreaking("weights", 1.0, truncation=2)), {}, ()),
        (_of(cv.Normal("mean", [0.0, 1.0], 0.05, plates=KIND)), {}, ()),
        (_of(cv.Normal("mean", 0.0, PRECISION, plates=KIND)), {}, (("z", 2),)),
        (_of(cv.Constant("mean", [0.0, 6.0], plates=KIND), EVEN), {}, ()),
        (
            _of(
                cv.Normal(
                    "mean", cv.Normal("level", 0, 0.1, plates=cv.Plate("g", 2))[GROUP], 1.0, plates=KIND
                )
            ),
            {"group": [0, 1]},
            (),
        ),
        (_chain([[3.0, 1.0], [1.0, 3.0]]), {}, (("z", 2),)),
        (_chain([[3.0, 1.0], [1.0, 1.0]]), {}, ()),
        (
            cv.Normal("x", MEAN[cv.Data("known", plates=OBS)], 1.0, plates=OBS),
            {"known": [0, 0, 0, 1, 1, 1, 0]},
            (),
        ),
    ],
    ids=[
        "even",
        "known and even",
        "known labels",
        "known shares",
        "uneven shares",
        "sticks",
        "uneven means",
        "unknown precisions",
        "known means",
        "groups of components",
        "sticky chain",
        "chain with an order",
        "no labels",
    ],
)
def test_only_categories_with_the_same_prior_have_orders(leaf: Any, given: Any, expected: Any) -> None:
    data = {"x": X, **given}
    posterior = cv.Model(leaf).fit(data, seed=0, max_iter=50)
    assert posterior.evidence(data, method="elbo").orders == expected


@pytest.mark.parametrize("is_known", [False, True])
def test_estimators_tell_orders_unless_labels_are_known(is_known: bool) -> None:
    labels = np.where(np.arange(len(X)) < 4, X > 3, -1) if is_known else None
    mixture = cv.BayesianGaussianMixture(2, semi_supervised=is_known, random_state=0).fit(X[:, None], labels)
    data = {"X": X[:, None], "y": labels} if is_known else X[:, None]
    assert mixture.evidence(data, n_draws=100).orders == (() if is_known else (("z", 2),))


def test_a_hidden_markov_model_tells_the_orders_of_its_states() -> None:
    chain = cv.HiddenMarkovModel(2, random_state=0).fit(X[:, None])
    assert chain.evidence(X[:, None], n_draws=100).orders == (("s", 2),)
