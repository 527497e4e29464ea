"""Sums over the data that are too large for what is told from their difference are said to be."""

import warnings

import numpy as np
import pytest

import caviar as cv
import caviar.models


@pytest.mark.parametrize(("offset", "lost"), [(0.0, False), (1e3, False), (1e7, True)])
def test_coefficients_of_groups_far_from_zero_say_that_digits_are_lost(offset: float, lost: bool) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=1_000)
    data = {"X": np.column_stack([np.ones(1_000), x]), "y": offset + x + rng.normal(size=1_000)}
    obs, group = cv.Plate("obs"), cv.Plate("group", 2)
    w = cv.MultivariateNormal("w", np.zeros(2), 1e-20 * np.eye(2), plates=group)
    mean = cv.dot(cv.Data("X", plates=obs), w[cv.Data("g", plates=obs)])
    model = cv.Model(cv.Normal("y", mean, cv.Gamma("tau", 1.0, 1.0), plates=obs))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        fit = model.fit({**data, "g": np.arange(1_000) % 2})
    assert any(issubclass(w.category, cv.LostDigitsWarning) for w in told) == lost
    assert lost or fit["tau"].mean == pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize("offset", [1e3, 1e8, 1e11])
def test_a_regression_far_from_zero_loses_none(offset: float) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=1_000)
    data = {"X": np.column_stack([np.ones(1_000), x]), "y": offset + x + rng.normal(size=1_000)}
    fit = caviar.models.linear_regression(2, prior_precision=1e-30).fit(data)
    assert fit["tau"].mean == pytest.approx(1.0, abs=0.1)
    np.testing.assert_allclose(fit["w"].mean, np.linalg.lstsq(data["X"], data["y"])[0], rtol=1e-3)


def test_a_mixture_far_from_zero_loses_none() -> None:
    rng = np.random.default_rng(0)
    x = 1e8 + np.concatenate([rng.normal(-3, 1, 200), rng.normal(3, 1, 200)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        caviar.models.gaussian_mixture(1, 2, prior_mean=[1e8]).fit({"x": x[:, None]}, seed=0)


@pytest.mark.parametrize(("gap", "lost"), [(1e-3, False), (1e-8, True), (0.0, True)])
def test_collinear_columns_of_large_numbers_are_told(gap: float, lost: bool) -> None:
    """Beside X'X of 1e12 a prior precision of 0.01 is below rounding where columns are the same."""
    rng = np.random.default_rng(0)
    column = 1e6 * rng.normal(size=40)
    X = np.column_stack([column, column + gap * 1e6 * rng.normal(size=40)])
    for model in (caviar.models.conjugate_regression(2), caviar.models.linear_regression(2)):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            model.fit({"X": X, "y": rng.normal(size=40)}, max_iter=50)
        assert any("are collinear" in str(w.message) for w in told) == lost


def test_an_elbo_beyond_its_digits_is_said_to_be() -> None:
    """Of 1e14 nats double precision keeps 1e-2; nothing cancels, so nothing can be mended."""
    model = cv.Model(cv.Bernoulli("x", cv.Beta("p", 1, 1), plates=cv.Plate("obs")))
    with pytest.warns(cv.LostDigitsWarning, match="keeps sixteen digits, so it is known to about 0.0"):
        model.fit({"x": np.array([0, 1])}, sample_weight=[1e14, 2e14])
