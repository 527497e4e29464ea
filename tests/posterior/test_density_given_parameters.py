"""With values of all globals ``log_predictive`` is the density there; its mean over draws is the predictive one."""

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, norm, poisson
from scipy.stats import t as student
from thinning import amount

import caviar as cv

FAITHFUL = cv.datasets.load_faithful().values
ROWS = FAITHFUL[:5] + 0.1


def one(draws, number):
    return {
        name: type(v)(*(part[number] for part in v)) if isinstance(v, tuple) else v[number]
        for name, v in draws.items()
    }


@pytest.mark.parametrize("model", ["normal_wishart_mixture", "gaussian_mixture"])
def test_a_mixture_has_the_density_of_scipy(model):
    posterior = getattr(cv.models, model)(2, 2).fit({"x": FAITHFUL - [3, 70]}, seed=0)
    draw = one(posterior.sample(1, seed=1), 0)
    mean, precision = draw["theta"] if "theta" in draw else (draw["mean"], draw["precision"])
    x = ROWS - [3, 70]
    joint = [
        np.log(w) + multivariate_normal(m, np.linalg.inv(p)).logpdf(x)
        for w, m, p in zip(draw["weights"], mean, precision, strict=True)
    ]
    np.testing.assert_allclose(
        posterior.log_predictive({"x": x}, given=draw), logsumexp(joint, axis=0), rtol=1e-9
    )


@pytest.mark.slow
def test_averaged_over_draws_it_is_the_predictive_density():
    posterior = cv.models.normal_wishart_mixture(2, 2).fit({"x": FAITHFUL}, seed=0)
    n_draws = amount(600, 3000)
    draws = posterior.sample(n_draws, seed=0)
    given = [posterior.log_predictive({"x": ROWS}, given=one(draws, number)) for number in range(n_draws)]
    np.testing.assert_allclose(
        logsumexp(given, axis=0) - np.log(n_draws), posterior.log_predictive({"x": ROWS}), atol=0.03
    )


def test_what_is_not_given_is_averaged_over():
    mean, precision = cv.Normal("mean", 0, 1), cv.Gamma("precision", 2, 1)
    posterior = cv.Model(cv.Normal("x", mean, precision, plates=cv.Plate("obs"))).fit({"x": [1.0, 2.0, 0.5]})
    with pytest.raises(cv.ModelError):
        posterior.log_predictive({"x": [0.3]})  # mean and precision are independent under q: no closed form
    q = posterior["mean"]
    found = posterior.log_predictive({"x": [0.3, 4.0]}, given={"precision": 2.0})
    np.testing.assert_allclose(found, norm.logpdf([0.3, 4.0], q.mean, np.sqrt(q.variance + 0.5)))


def test_wrong_values_are_refused():
    rate = cv.Gamma("rate", 2, 1)
    posterior = cv.Model(cv.Poisson("x", rate, plates=cv.Plate("obs"))).fit({"x": [3, 1]})
    np.testing.assert_allclose(
        posterior.log_predictive({"x": [2, 5]}, given={"rate": 3}), poisson.logpmf([2, 5], 3)
    )
    with pytest.raises(cv.ParameterError, match=r"'scale'.*'rate'"):
        posterior.log_predictive({"x": [2]}, given={"scale": 3})
    with pytest.raises(cv.ParameterError, match="rate"):
        posterior.log_predictive({"x": [2]}, given={"rate": [3, 4]})


def test_rows_of_factor_analysis_have_the_density_of_scipy():
    """The factors of a row are integrated out, of entries that are there: marginals of one Normal."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 2)) @ rng.normal(size=(2, 5)) + 0.4 * rng.normal(size=(60, 5))
    posterior = cv.models.factor_analysis(5, 2).fit({"x": x}, seed=0)
    new = x[:4] + 0.1
    partly = new.copy()
    partly[0, 1] = partly[2, :3] = np.nan
    without = new.copy()
    without[:, 1] = np.nan
    for number in range(3):
        draw = one(posterior.sample(3, seed=1), number)
        covariance = draw["loadings"] @ draw["loadings"].T + np.diag(1 / draw["tau"])
        for rows in (new, partly, without):
            seen = ~np.isnan(rows)
            expected = [
                multivariate_normal(draw["mean"][own], covariance[np.ix_(own, own)]).logpdf(row[own])
                for row, own in zip(rows, seen, strict=True)
            ]
            found = posterior.log_predictive({"x": rows}, given=draw)
            np.testing.assert_allclose(found, expected, rtol=1e-9)
    # the factors of q are independent, so that without values of all globals there is no closed form
    with pytest.raises(cv.ModelError, match="no closed form"):
        posterior.log_predictive({"x": new}, given={"tau": draw["tau"]})
    with pytest.raises(cv.ModelError, match="no closed form"):
        posterior.log_predictive({"x": new})


def test_student_noise_and_missing_covariates_are_integrated_out_at_given_parameters():
    rng, obs = np.random.default_rng(0), cv.Plate("obs")
    x, y = rng.normal(size=20), rng.standard_t(4, size=20)
    weight = cv.Gamma("weight", 2, 2, plates=obs)
    mean = cv.Normal("a", 0, 1)
    model = cv.Model(cv.Normal("y", mean, weight * cv.Gamma("tau", 1, 1), plates=obs))
    found = model.fit({"y": y}).log_predictive({"y": y}, given={"a": 0.3, "tau": 2.0})
    np.testing.assert_allclose(found, student(4, 0.3, 0.5**0.5).logpdf(y), rtol=1e-9)
    column = cv.Normal("x", 1.0, 4.0, plates=obs)
    model = cv.Model(cv.Normal("y", cv.Normal("b", 0, 1) * column, 2.0, plates=obs), column)
    x[::4] = np.nan
    found = model.fit({"x": x, "y": y}).log_predictive({"x": x, "y": y}, given={"b": 0.5})
    known = norm(0.5 * x, 0.5**0.5).logpdf(y) + norm(1.0, 0.5).logpdf(x)
    hidden = norm(0.5, (0.5 + 0.25 / 4) ** 0.5).logpdf(y)
    np.testing.assert_allclose(found, np.where(np.isnan(x), hidden, known), rtol=1e-9)
