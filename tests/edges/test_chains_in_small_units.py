"""Gaussian chains whose rows tell a single direction of the state, in units in which that is very precise."""

import numpy as np
import pytest
from scipy import stats

import caviar as cv


@pytest.mark.parametrize("unit", [1e-12, 1e-9, 1e-8, 1.0, 1e9])
def test_evidence_is_exact_in_all_units(unit):
    n, transition, noise, seen = 8, np.array([[0.9, 0.2], [-0.1, 0.7]]), np.array([2.0, 5.0]), [1.0, 0.5]
    y = 2 * np.random.default_rng(5).normal(size=n)
    states = [np.eye(2)]
    for _ in range(n - 1):
        states.append(transition @ states[-1] @ transition.T + np.diag(1 / noise))
    covariance = np.eye(n) / 3
    for i in range(n):
        for j in range(n):
            early, gap = min(i, j), abs(i - j)
            covariance[i, j] += seen @ np.linalg.matrix_power(transition, gap) @ states[early] @ seen
    exact = stats.multivariate_normal.logpdf(y, np.zeros(n), covariance) - n * np.log(unit)

    t = cv.Plate("t")
    x = cv.LinearGaussianChain(
        "x",
        mean=[0.0, 0.0],
        precision=np.eye(2) / unit**2,
        transition=transition,
        noise_precision=np.diag(noise) / unit**2,
        along=t,
    )
    model = cv.Model(cv.Normal("y", cv.dot(seen, x), 3 / unit**2, plates=t))
    assert model.fit({"y": y * unit}).elbo == pytest.approx(exact, rel=1e-10)
