"""A linear Gaussian chain whose steps have each their own transition and noise, against a dense Gaussian."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from caviar.families import LinearGaussianChain

N, D = 9, 2
STARTS = np.arange(N) % 5 == 0


def chain():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(N, D, D))
    information = np.zeros((N, D, D))
    information[::2] = 0.7 * np.eye(D)
    linear = rng.normal(size=(N, D)) * (np.arange(N) % 2 == 0)[:, None]
    noise = root @ root.swapaxes(1, 2) + np.eye(D)
    transition = rng.normal(0, 0.7, (N, D, D))
    return LinearGaussianChain(
        linear, information, STARTS, np.array([1.0, -1.0]), 2 * np.eye(D), transition, noise
    )


def dense(own):
    """Return mean and covariance of all states, (N D,) and (N D, N D)."""
    precision, linear = np.zeros((N, D, N, D)), own.linear.copy()
    for t in range(N):
        precision[t, :, t] += own.information[t]
        if STARTS[t]:
            precision[t, :, t] += own.initial_precision
            linear[t] += own.initial_precision @ own.initial_mean
            continue
        step, noise = own.transition[t], own.noise_precision[t]
        precision[t, :, t] += noise
        precision[t - 1, :, t - 1] += step.T @ noise @ step
        precision[t, :, t - 1] -= noise @ step
        precision[t - 1, :, t] -= step.T @ noise
    covariance = np.linalg.inv(precision.reshape(N * D, N * D))
    return covariance @ linear.ravel(), covariance


def test_moments_pairs_and_densities_are_those_of_the_dense_gaussian():
    own = chain()
    mean, covariance = dense(own)
    blocks = covariance.reshape(N, D, N, D)
    every = np.arange(N)
    np.testing.assert_allclose(own.mean.ravel(), mean, atol=1e-13)
    np.testing.assert_allclose(own.covariance, blocks[every, :, every], atol=1e-13)
    for t in np.flatnonzero(~STARTS):
        product = np.outer(own.mean[t - 1], own.mean[t])
        np.testing.assert_allclose(own.pairs[t], blocks[t - 1, :, t] + product, atol=1e-13)
    assert not own.pairs[STARTS].any()
    value = np.random.default_rng(1).normal(size=(3, N, D))
    exact = multivariate_normal(mean, covariance)
    assert own.entropy() == pytest.approx(exact.entropy(), rel=1e-13)
    np.testing.assert_allclose(own.log_density(value), exact.logpdf(value.reshape(3, -1)), rtol=1e-11)
    draws = own.sample(40_000, seed=0).reshape(-1, N * D)
    np.testing.assert_allclose(np.cov(draws.T), covariance, atol=0.06)
