"""The likelihood that EM of a mixture reaches from its own starts, beside scikit-learn's from as many."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from thinning import amount

import caviar as cv

pytestmark = pytest.mark.starts_of_users


def _heavy_tailed(seed: int) -> np.ndarray:
    rng = np.random.default_rng([seed, 4])
    normal = rng.normal(size=(300, 3)) @ np.linalg.cholesky(0.5 * np.ones((3, 3)) + 0.5 * np.eye(3)).T
    return normal * np.sqrt(2 / rng.chisquare(2, size=(300, 1)))


def _overlapping(seed: int) -> np.ndarray:
    rng = np.random.default_rng([seed, 5])
    roots = rng.normal(size=(7, 5, 5))
    z = rng.integers(7, size=400)
    return 1.5 * rng.normal(size=(7, 5))[z] + np.einsum("nij,nj->ni", roots[z], rng.normal(size=(400, 5)))


@pytest.mark.thinned(2)
@pytest.mark.parametrize(
    ("table", "n_components", "n_init"),
    [
        (_heavy_tailed, 4, 1),
        (_overlapping, 7, 1),
        pytest.param(_overlapping, 7, 3, marks=pytest.mark.slow),
    ],
)
def test_fits_are_seldom_below_those_of_scikit_learn(table, n_components, n_init):
    """On tables whose likelihood has many optima, at the same tolerance."""
    gains = []
    for seed in range(amount(4, 6)):
        rows = table(seed)
        settings = {"n_components": n_components, "n_init": n_init, "random_state": seed}
        settings |= {"tol": 1e-6, "max_iter": 500, "reg_covar": 1e-6}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            other = GaussianMixture(**settings).fit(rows)
        gains.append(cv.GaussianMixture(**settings).fit(rows).score(rows) - other.score(rows))
    assert sum(gain < -1e-3 for gain in gains) <= 1
    assert np.mean(gains) > 0
