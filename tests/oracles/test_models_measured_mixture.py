"""Rows measured with known errors: extreme deconvolution, literal bounds, and limits that are other models."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import caviar as cv
from caviar.models import measured_mixture, normal_wishart_mixture
from oracles.reference import extreme_deconvolution as literal
from oracles.reference import normal_wishart_mixture as complete
from oracles.reference import wishart

pytestmark = pytest.mark.starts_of_users

FLAT = {"mean_precision": 0.0, "inverse_scale": 0.0}
POINT = ["weights", "theta"]


def _measured(seed, n, d, at=0.0):
    """Return rows of two groups, the covariances of their errors, and the labels."""
    rng = np.random.default_rng(seed)
    roots = rng.normal(size=(n, d, d)) * rng.uniform(0.2, 1.0, (n, 1, 1))
    errors = roots @ np.swapaxes(roots, 1, 2) + 0.05 * np.eye(d)
    z = rng.integers(0, 2, n)
    true = rng.normal(size=(n, d)) * [1.0, 0.5, 0.3][:d] + 3.5 * z[:, None] + at
    noise = np.einsum("nij,nj->ni", np.linalg.cholesky(errors), rng.normal(size=(n, d)))
    return true + noise, errors, z


def _start(d, at=0.0):
    means = np.stack([np.full(d, -1.0), np.full(d, 4.0)]) + at
    return literal.Mixture(np.array([0.4, 0.6]), means, np.stack([np.eye(d), 0.8 * np.eye(d) + 0.2]))


def _init(mixture):
    theta = (mixture.means, np.linalg.inv(mixture.covariances))
    return {"weights": mixture.weights, "theta": theta}


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "d", "at"), [(0, 1, 0.0), (1, 2, 0.0), (2, 3, 0.0), (3, 2, 1e4)])
def test_point_masses_are_extreme_deconvolution(seed, d, at):
    """From one start, 15 steps have the log likelihoods and end at the mixture of the literal EM."""
    x, errors, _ = _measured(seed, 60, d, at)
    mixture, n_steps = _start(d, at), 15
    data = {"x": x, "noise_precision": np.linalg.inv(errors)}
    posterior = measured_mixture(d, 2, df=d, **FLAT).fit(
        data, init=_init(mixture), point=POINT, max_iter=n_steps, tol=0, accelerate=False
    )
    trace = [literal.log_likelihood(x, errors, mixture)]
    for _ in range(n_steps):
        mixture = literal.step(x, errors, mixture)
        trace.append(literal.log_likelihood(x, errors, mixture))
    np.testing.assert_allclose(posterior.elbo_trace, trace, rtol=1e-10, atol=1e-9)
    mean, precision = posterior["theta"].value
    np.testing.assert_allclose(posterior["weights"].value, mixture.weights, rtol=1e-8)
    np.testing.assert_allclose(mean - at, mixture.means - at, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(np.linalg.inv(precision), mixture.covariances, rtol=1e-6, atol=1e-8)


def test_independent_errors_are_diagonal_ones():
    x, errors, _ = _measured(4, 80, 3)
    variances = np.diagonal(errors, axis1=1, axis2=2)
    full = {"x": x, "noise_precision": np.eye(3) / variances[:, None, :]}
    one = measured_mixture(3, 2).fit(full, seed=0)
    other = measured_mixture(3, 2, independent_errors=True).fit(
        {"x": x, "noise_precision": 1 / variances}, seed=0
    )
    np.testing.assert_allclose(other.elbo_trace, one.elbo_trace, rtol=1e-10)


def _literal_elbo(x, errors, prior, posterior):
    """Return the ELBO of q(theta) q(weights) with q(z) q(t | z) at its optimum, row by row."""
    theta, d, total = posterior["theta"], x.shape[1], 0.0
    q = complete.Factors(
        np.empty((0, len(theta.df))),
        posterior["weights"].concentration,
        theta.mean,
        theta.mean_precision,
        theta.df,
        theta.inverse_scale,
    )
    log_weights = wishart.expected_log_weights(q.concentration)
    for row, s in zip(x, errors, strict=True):
        each = []
        for k, log_weight in enumerate(log_weights):
            precision, noise = wishart.mean(q.dfs[k], q.inverse_scales[k]), np.linalg.inv(s)
            c = np.linalg.inv(precision + noise)
            a = c @ (precision @ q.means[k] + noise @ row)
            value = log_weight - d * np.log(2 * np.pi) - 0.5 * wishart.log_det(s)
            value += 0.5 * wishart.expected_log_det(q.dfs[k], q.inverse_scales[k])
            value -= 0.5 * (d / q.mean_precisions[k] + np.trace((precision + noise) @ c))
            value -= 0.5 * ((a - q.means[k]) @ precision @ (a - q.means[k]) + (row - a) @ noise @ (row - a))
            each.append(value + 0.5 * (d * np.log(2 * np.pi * np.e) + wishart.log_det(c)))
        total += np.logaddexp.reduce(each)
    return total + complete.elbo(np.empty((0, d)), prior, q)


@pytest.mark.slow
def test_the_bound_is_the_literal_one():
    x, errors, z = _measured(5, 50, 2)
    prior = complete.Prior(
        np.array([0.7, 1.5]), np.array([0.3, -0.2]), 0.2, 3.5, np.array([[1.5, 0.3], [0.3, 0.8]])
    )
    model = measured_mixture(
        2,
        2,
        concentration=prior.concentration,
        prior_mean=prior.mean,
        mean_precision=prior.mean_precision,
        df=prior.df,
        inverse_scale=prior.inverse_scale,
    )
    data = {"x": x, "noise_precision": np.linalg.inv(errors)}
    for max_iter in (0, 2, 500):
        posterior = model.fit(data, seed=0, max_iter=max_iter)
        assert posterior.elbo == pytest.approx(_literal_elbo(x, errors, prior, posterior), rel=1e-10)
    assert np.diff(posterior.elbo_trace).min() > -1e-9
    found = posterior.local(data)["z"].probabilities.argmax(axis=1)
    assert max(np.mean(found == z), np.mean(found != z)) > 0.9


def test_small_errors_are_none():
    """Where errors vanish it is the mixture of the rows."""
    x, _, _ = _measured(6, 60, 2)
    tiny = 1e-6 * np.eye(2)
    data = {"x": x, "noise_precision": np.tile(np.linalg.inv(tiny), (60, 1, 1))}
    measured = measured_mixture(2, 2).fit(data, seed=0, tol=1e-10)
    exact = normal_wishart_mixture(2, 2).fit({"x": x}, seed=0, tol=1e-10)
    assert measured.elbo == pytest.approx(exact.elbo, abs=1e-3)
    np.testing.assert_allclose(np.sort(measured["theta"].mean, 0), np.sort(exact["theta"].mean, 0), atol=1e-4)


def test_a_large_error_is_a_missing_entry():
    """One column measured with a variance of 1e6 times its own: what remains is the marginal, and a known constant."""
    x, errors, _ = _measured(7, 60, 2)
    variances = np.diagonal(errors, axis1=1, axis2=2).copy()
    gone = np.random.default_rng(0).random(x.shape) < 0.2
    gone[gone.all(axis=1)] = False
    variances[gone] = 1e8
    mixture = _start(2)
    posterior = measured_mixture(2, 2, independent_errors=True, df=2, **FLAT).fit(
        {"x": np.where(gone, 0.0, x), "noise_precision": 1 / variances},
        init=_init(mixture),
        point=POINT,
        max_iter=200,
    )
    mean, precision = posterior["theta"].value
    covariances, exact = np.linalg.inv(precision), 0.0
    for row, v, lost in zip(x, variances, gone, strict=True):
        s = ~lost
        exact += np.log(
            sum(
                w * multivariate_normal.pdf(row[s], m[s], (c + np.diag(v))[np.ix_(s, s)])
                for w, m, c in zip(posterior["weights"].value, mean, covariances, strict=True)
            )
        )
    constant = -0.5 * np.log(2 * np.pi * 1e8) * gone.sum()
    assert posterior.elbo == pytest.approx(exact + constant, abs=1e-3)


@pytest.mark.parametrize("independent", [False, True])
def test_infinite_errors_are_refused(independent):
    precision = np.tile(np.diag([1.0, 0.0]), (5, 1, 1))
    noise = np.diagonal(precision, axis1=1, axis2=2) if independent else precision
    data = {"x": np.zeros((5, 2)), "noise_precision": noise}
    with pytest.raises(cv.DataError, match=r"'noise_precision'.*must be positive"):
        measured_mixture(2, 2, independent_errors=independent).fit(data)
