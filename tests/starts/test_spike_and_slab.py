"""Spike and slab by gated constants, beside the evidence by enumeration of what is on."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import caviar as cv


def _data():
    rng = np.random.default_rng(9)
    x = rng.normal(size=(60, 4))
    return x, 2 * x[:, 0] - 1.5 * x[:, 2] + 0.5 * rng.normal(size=60)


def _model(values):
    obs, total = cv.Plate("obs"), 0
    for j in range(4):
        k = cv.Plate(f"k{j}", 2)
        gate = cv.Constant(f"on{j}", values, plates=k)[cv.Categorical(f"g{j}", [0.5, 0.5])]
        total = total + gate * cv.Normal(f"w{j}", 0, 1) * cv.Data(f"x{j}", plates=obs)
    return cv.Model(cv.Normal("y", total, 4.0, plates=obs))


@pytest.mark.thinned(2)
@pytest.mark.parametrize("values", [(0.0, 1.0), (1.0, 0.0)], ids=["on last", "on first"])
def test_the_bound_is_near_the_exact_evidence(values):
    x, y = _data()
    logs = []
    for on in product((0, 1), repeat=4):
        columns = x[:, np.flatnonzero(on)]
        logs.append(multivariate_normal.logpdf(y, np.zeros(60), 0.25 * np.eye(60) + columns @ columns.T))
    evidence = np.logaddexp.reduce(logs) - 4 * np.log(2)
    assert evidence == pytest.approx(-56.86, abs=0.005)
    data = {"y": y, **{f"x{j}": x[:, j] for j in range(4)}}
    for seed in range(3):
        posterior = _model(values).fit(data, seed=seed)
        assert evidence - 0.25 < posterior.elbo < evidence
        on = [posterior[f"g{j}"].probabilities[values.index(1.0)] for j in range(4)]
        np.testing.assert_allclose(np.round(on), [1, 0, 1, 0])
