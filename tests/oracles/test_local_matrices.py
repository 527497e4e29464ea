"""Hidden matrices of each row: messages to them are symmetric, and traces of them stand where they belong."""

import numpy as np
import pytest
from scipy.special import multigammaln
from scipy.stats import multivariate_t

import caviar as cv
from caviar.testing import check_model

MEAN = np.array([0.5, -2.0])


def test_a_precision_a_row_has_the_exact_evidence():
    """With a known mean each row is a Student-t vector."""
    obs = cv.Plate("obs")
    scale = np.array([[2.0, 0.5], [0.5, 1.0]])
    precision = cv.Wishart("precision", 4.0, scale, plates=obs)
    model = cv.Model(cv.MultivariateNormal("x", MEAN, precision, plates=obs))
    x = np.random.default_rng(0).normal(size=(6, 2)) * 3
    exact = multivariate_t(MEAN, scale / 3.0, df=3.0).logpdf(x).sum()
    assert model.fit({"x": x}).elbo == pytest.approx(exact, rel=1e-12)


def test_the_factor_of_a_precision_a_row_is_its_posterior():
    obs = cv.Plate("obs")
    precision = cv.Wishart("precision", 4.0, np.eye(2), plates=obs)
    model = cv.Model(cv.MultivariateNormal("x", MEAN, precision, plates=obs))
    x = np.array([[3.0, 1.0], [0.0, -4.0]])
    local = model.fit({"x": x}).local({"x": x})["precision"]
    np.testing.assert_allclose(local.df, 5.0)
    away = x - MEAN
    np.testing.assert_allclose(
        local.inverse_scale, np.eye(2) + away[:, :, None] * away[:, None, :], rtol=1e-12
    )
    assert np.all(np.isfinite(multigammaln(local.df / 2, 2)))


@pytest.mark.slow
@pytest.mark.parametrize("is_diagonal", [False, True])
@pytest.mark.parametrize("has_factors", [False, True])
def test_spreads_of_a_row(is_diagonal, has_factors):
    """A precision a row, full or diagonal, below observed or hidden vectors of the row."""
    obs, direction = cv.Plate("obs"), cv.Plate("direction", 2)
    spread = cv.diagonal(cv.Gamma("spread", 2.0, 1.0, plates=(obs, direction)))
    precision = spread if is_diagonal else cv.Wishart("precision", 4.0, np.eye(2), plates=obs)
    mean = cv.MultivariateNormal("mean", MEAN, np.eye(2))
    if has_factors:
        factors = cv.MultivariateNormal("factors", mean, precision, plates=obs)
        x = cv.MultivariateNormal("x", factors, 1.5 * np.eye(2), plates=obs)
    else:
        x = cv.MultivariateNormal("x", mean, precision, plates=obs)
    data = {"x": np.random.default_rng(1).normal(size=(4, 2)) * 3}
    check_model(cv.Model(x), data, n_draws=500, data_plate="obs").raise_if_failed()
