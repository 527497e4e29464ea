"""Columns in units of their own: the fit is the same one, however much the units differ."""

from itertools import permutations

import numpy as np
import pytest

import caviar as cv
from caviar.numerics.linalg import inverse

UNITS = (1e-25, 1.0, 1e25)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("correlation", [0.5, 1e-8, 1e-14])
@pytest.mark.parametrize("units", list(permutations(UNITS)))
def test_the_inverse_of_a_factor_has_its_digits_in_any_units(units, correlation):
    """Pivots chosen by size are then divided by correlations, which may be as small as rounding leaves them."""
    rng = np.random.default_rng(0)
    lower = np.eye(3) + correlation * np.tril(rng.uniform(-1, 1, (50, 3, 3)), -1)
    found = inverse(np.array(units)[:, None] * lower) * np.array(units)
    expected = np.eye(3) - np.tril(lower, -1) + np.tril(lower, -1) @ np.tril(lower, -1)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-15)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("joint", [False, True])
@pytest.mark.parametrize("units", list(permutations(UNITS)))
def test_a_mixture_of_columns_in_any_units_is_the_mixture(units, joint):
    """The densities of N rows change by the factor of the units, and with it the ELBO by N times the sum of logs."""
    rng = np.random.default_rng(5)
    x, units = rng.normal(size=(300, 3)), np.array(units)
    # two components without rows, whose matrices are those of the prior and almost diagonal
    start = {"z": np.arange(300) % 2}

    def fit(u):
        variance = x.var(axis=0) * u**2
        scale = {"df": 4.0, "inverse_scale": np.diag(variance), "prior_mean": x.mean(axis=0) * u}
        if joint:
            model = cv.models.normal_wishart_mixture(3, 4, mean_precision=0.01, **scale)
        else:
            model = cv.models.gaussian_mixture(3, 4, prior_precision=np.diag(0.01 / variance), **scale)
        return model.fit({"x": x * u}, init=start, max_iter=30, accelerate=False)

    one, other = fit(np.ones(3)), fit(units)
    np.testing.assert_allclose(other.elbo_trace + 300 * np.log(units).sum(), one.elbo_trace, rtol=1e-9)


@pytest.mark.slow
def test_components_without_rows_do_not_let_the_objective_fall_in_any_units():
    rng = np.random.default_rng(31)
    x = rng.normal(size=(3_000, 3)) * [1.0, 1e25, 1e-25]
    variance = x.var(axis=0)
    model = cv.models.gaussian_mixture(
        3,
        4,
        df=4.0,
        inverse_scale=np.diag(variance),
        prior_mean=x.mean(axis=0),
        prior_precision=np.diag(0.01 / variance),
    )
    for seed in range(3):
        posterior = model.fit({"x": x}, seed=seed, schedule=cv.Incremental(8), max_iter=40)
        assert (np.diff(posterior.elbo_trace) >= -1e-9 * abs(posterior.elbo)).all()
