"""Starts of labels that choose regressions of counts, beside fits that begin at the truth."""

import numpy as np
import pytest
from scipy.special import expit

import caviar as cv

ROW, KIND = cv.Plate("row"), cv.Plate("kind", 2)
NEAR = 1e-3
"""Nats a row."""


def _labels(rng, has_order):
    if not has_order:
        return rng.integers(2, size=250), cv.Categorical("z", cv.Dirichlet("shares", np.ones(2)), plates=ROW)
    moves = cv.Dirichlet("moves", np.ones(2), plates=KIND)
    steps = np.cumsum(rng.random(250) < 0.05) % 2
    return steps, cv.MarkovChain("z", [0.5, 0.5], moves, along=ROW)


@pytest.mark.thinned(6)
@pytest.mark.parametrize("seed", [100, 102])
@pytest.mark.parametrize("has_order", [False, True], ids=["mixture", "states"])
@pytest.mark.parametrize("trials", ["known", "of rows", None])
def test_slopes_of_two_kinds_are_found(trials, has_order, seed):
    """Slopes with opposite signs have about the same counts: fits ended 0.7 to 1.4 nats a row lower."""
    rng = np.random.default_rng(seed)
    labels, z = _labels(rng, has_order)
    x, level, slope = rng.uniform(-2, 2, 250), np.array([0.0, 0.0]), np.array([2.0, -2.0])
    if trials is None:
        level, slope = level + 2.5, slope / 2
    eta = level[labels] + slope[labels] * x
    a, b = cv.Normal("a", 0, 0.1, plates=KIND), cv.Normal("b", 0, 0.1, plates=KIND)
    predictor, data = a[z] + b[z] * cv.Data("x", plates=ROW), dict[str, np.ndarray](x=x)
    if trials is None:
        leaf = cv.NegativeBinomial("y", cv.exp(predictor), 20.0, plates=ROW)
        data |= {"y": rng.negative_binomial(20, 20 / (20 + np.exp(eta)))}
    else:
        n = np.full(250, 15) if trials == "known" else rng.integers(8, 20, size=250)
        stated = 15 if trials == "known" else cv.Data("n", plates=ROW)
        leaf = cv.Binomial("y", stated, cv.logistic(predictor), plates=ROW)
        data |= {"y": rng.binomial(n, expit(eta))} | ({} if trials == "known" else {"n": n})
    model = cv.Model(leaf)
    elbo = model.fit(data, init={"a": level, "b": slope}).elbo
    assert model.fit(data).elbo > elbo - 250 * NEAR
