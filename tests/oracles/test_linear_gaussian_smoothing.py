"""Filter and smoother give what the inverse of the joint precision matrix gives, at any length and any noise."""

import itertools

import numpy as np
import pytest
from scipy.linalg import cholesky_banded, solveh_banded
from scipy.stats import multivariate_normal

import caviar as cv
from caviar.families import LinearGaussianChain
from caviar.families.chains import linear_gaussian_chain
from oracles.reference.linear_gaussian import dense, sums_over_steps


def _precision(rng: np.random.Generator, d: int) -> np.ndarray:
    root = rng.normal(size=(d, d))
    return root @ root.T + 0.1 * np.eye(d)


def random_chain(seed: int) -> LinearGaussianChain:
    """Return a small chain with several sequences, whose rows tell of all, one, or no direction of the state."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(1, 12)), int(rng.integers(1, 4))
    kinds = rng.integers(0, 3, n)
    direction = rng.normal(size=(n, d))
    information = np.where(
        (kinds == 2)[:, None, None],
        np.array([_precision(rng, d) for _ in range(n)]),
        (kinds == 1)[:, None, None] * direction[:, :, None] * direction[:, None, :],
    )
    linear = np.einsum("nij,nj->ni", information, rng.normal(size=(n, d)))
    return LinearGaussianChain(
        linear,
        information,
        rng.random(n) < 0.2,
        rng.normal(size=d),
        _precision(rng, d),
        rng.normal(size=(d, d)),
        _precision(rng, d),
    )


@pytest.mark.thinned(4)
@pytest.mark.parametrize("chunk", [1, 3, 4_096])
@pytest.mark.parametrize("seed", range(20))
def test_smoothing_is_the_inverse_of_the_joint_precision(seed, chunk, monkeypatch):
    monkeypatch.setattr(linear_gaussian_chain, "_CHUNK", chunk)
    chain = random_chain(seed)
    exact, found = dense(chain), chain.smoothing
    size = max(1.0, np.abs(exact.covariance).max(), np.abs(exact.mean).max() ** 2)
    close = {"rtol": 1e-9, "atol": 1e-11 * size}
    rows = np.arange(len(exact.mean))
    np.testing.assert_allclose(found.mean, exact.mean, **close)
    np.testing.assert_allclose(found.covariance, exact.covariance[rows, :, rows], **close)
    for name, value in sums_over_steps(chain, exact).items():
        np.testing.assert_allclose(getattr(found, name), value, err_msg=name, **close)
    first = np.append(True, chain.starts[1:])
    assert (found.n_first, found.n_steps) == (first.sum(), (~first).sum())
    assert chain.entropy() == pytest.approx(exact.entropy, rel=1e-11, abs=1e-11)
    assert chain.log_partition == pytest.approx(exact.log_partition, rel=1e-10, abs=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("growth", [0.5, 1.0, 1.5])
@pytest.mark.parametrize("noise", [1e-6, 1e-3, 1.0, 1e4, 1e8])
def test_noise_of_any_size_and_transitions_that_grow_cost_no_digits(noise, growth):
    """Against sixty digits; errors of the mean in standard deviations, of covariances in that metric."""
    rng = np.random.default_rng(0)
    n, turn = 14, np.array([[0.8, 0.6], [-0.6, 0.8]])
    direction = rng.normal(size=(n, 2, 2))
    information = direction @ direction.swapaxes(1, 2)
    information[4:8] = 0.0
    chain = LinearGaussianChain(
        np.einsum("nij,nj->ni", information, 10 * rng.normal(size=(n, 2))),
        information,
        np.arange(n) == 10,
        np.ones(2),
        np.eye(2) / 100,
        growth * turn,
        noise * np.array([[1.0, 0.3], [0.3, 2.0]]),
    )
    exact, found, rows = dense(chain, digits=60), chain.smoothing, np.arange(n)
    whiten = np.linalg.inv(np.linalg.cholesky(exact.covariance[rows, :, rows]))
    off = whiten @ (found.covariance - exact.covariance[rows, :, rows]) @ whiten.swapaxes(1, 2)
    assert np.abs(off).max() < 1e-9
    assert np.abs(np.einsum("nij,nj->ni", whiten, found.mean - exact.mean)).max() < 1e-8
    assert found.entropy == pytest.approx(exact.entropy, rel=1e-12, abs=1e-9)


def test_residuals_keep_their_digits_where_the_noise_is_small():
    """A level that hardly moves: the differences of its moments have lost what their own sum still has."""
    n, noise = 30, 1e12
    rng = np.random.default_rng(1)
    x = 100 + rng.normal(size=n)
    chain = LinearGaussianChain(
        x[:, None],
        np.ones((n, 1, 1)),
        np.zeros(n, dtype=bool),
        np.zeros(1),
        np.eye(1) * 1e-4,
        np.eye(1),
        np.array([[noise]]),
    )
    found = chain.smoothing
    # of a level that hardly learns from the data, each step has the variance that the noise has
    assert noise * found.residual_xx[0, 0] == pytest.approx(n - 1, rel=1e-6)
    by_difference = found.next_xx - 2 * found.pairs + found.previous_xx
    assert abs(noise * by_difference[0, 0] - (n - 1)) > 1


@pytest.mark.slow
def test_a_hundred_thousand_steps_are_those_of_a_banded_factorisation():
    n, d = 100_000, 2
    rng = np.random.default_rng(0)
    transition, noise = np.array([[0.95, 0.2], [-0.2, 0.95]]), np.diag([2.0, 30.0])
    information = np.zeros((n, d, d))
    information[:, 0, 0] = rng.random(n) < 0.7
    linear = information[:, :, 0] * rng.normal(size=(n, 1))
    starts = rng.random(n) < 1e-4
    starts[0] = True
    chain = LinearGaussianChain(linear, information, starts, np.zeros(d), np.eye(d), transition, noise)
    diagonal = information + np.where(starts[:, None, None], np.eye(d), noise)
    diagonal[:-1][~starts[1:]] += transition.T @ noise @ transition
    beside = np.where(starts[1:, None, None], 0.0, -noise @ transition)
    banded = np.zeros((2 * d, n * d))
    for i, j in itertools.product(range(d), repeat=2):
        if i >= j:
            banded[i - j, j::d] = diagonal[:, i, j]
        banded[d + i - j, j : (n - 1) * d : d] = beside[:, i, j]
    mean = solveh_banded(banded, linear.ravel(), lower=True).reshape(n, d)
    np.testing.assert_allclose(chain.mean, mean, rtol=0, atol=1e-10)
    log_det = 2 * np.log(cholesky_banded(banded, lower=True)[0]).sum()
    assert chain.entropy() == pytest.approx(0.5 * (n * d * (1 + np.log(2 * np.pi)) - log_det), rel=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_densities_and_draws_are_those_of_the_joint_normal(seed):
    chain = random_chain(seed)
    exact = dense(chain)
    n, d = exact.mean.shape
    joint = multivariate_normal(exact.mean.ravel(), exact.covariance.reshape(n * d, n * d))
    states = exact.mean + np.random.default_rng(0).normal(size=(7, n, d))
    np.testing.assert_allclose(
        chain.log_density(states), np.atleast_1d(joint.logpdf(states.reshape(7, -1))), rtol=1e-9
    )
    many = 20_000
    draws = chain.sample(many, seed=0)
    assert draws.shape == (many, n, d)
    whiten = np.linalg.inv(np.linalg.cholesky(exact.covariance.reshape(n * d, n * d)))
    standard = (draws.reshape(many, -1) - exact.mean.ravel()) @ whiten.T
    np.testing.assert_allclose(standard.mean(axis=0), 0.0, atol=5 / np.sqrt(many))
    np.testing.assert_allclose(standard.T @ standard / many, np.eye(n * d), atol=8 / np.sqrt(many))
    assert chain.sample(seed=0).shape == (n, d)


def test_growth_beyond_double_precision_is_refused():
    n = 2_000
    chain = LinearGaussianChain(
        np.zeros((n, 1)),
        np.zeros((n, 1, 1)),
        np.zeros(n, bool),
        np.zeros(1),
        np.eye(1),
        2 * np.eye(1),
        np.eye(1),
    )
    with (
        pytest.raises(cv.ImproperError, match="no covariance in double precision"),
        np.errstate(all="ignore"),
    ):
        _ = chain.mean
