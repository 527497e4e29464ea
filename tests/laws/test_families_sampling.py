"""Draws have the moments of their distribution, the shape asked for, and depend on the seed only."""

import numpy as np
import pytest
from scipy import stats

from caviar.families import (
    Beta,
    Categorical,
    Dirichlet,
    MultivariateNormalGamma,
    PolyaGamma,
    TiedNormalGamma,
    TruncatedNormal,
    Wishart,
)


@pytest.mark.thinned(2)
def test_moments_of_draws_are_the_expected_statistics(q, laws):
    n = 8_000
    value = laws.as_one(laws.draw(q, n, seed=11))
    statistics = laws.statistics_at(q, value)
    for statistic, expected in zip(statistics, q.expected_statistics, strict=True):
        error = statistic.std(axis=0) / np.sqrt(n)
        np.testing.assert_array_less(np.abs(statistic.mean(axis=0) - expected), 5.0 * error + 1e-12)


@pytest.mark.thinned(2)
def test_moments_of_draws_are_the_stated_moments(q, laws):
    n = 8_000
    draws = laws.draw(q, n, seed=12)[0].astype(float)
    if isinstance(q, Categorical):
        draws = laws.statistics_at(q, draws)[0]
    deviation = draws - q.mean if hasattr(q, "mean") else draws
    assert np.all(np.abs(deviation.mean(axis=0)) <= 5.0 * draws.std(axis=0) / np.sqrt(n) + 1e-12)
    squares = {"variance": deviation**2}
    if hasattr(q, "covariance"):
        squares["covariance"] = deviation[..., :, np.newaxis] * deviation[..., np.newaxis, :]
    for name in squares.keys() & set(dir(q)):
        expected, own = getattr(q, name), squares[name]
        finite = np.isfinite(expected)
        error = own.std(axis=0) / np.sqrt(n)
        assert np.all((np.abs(own.mean(axis=0) - expected) <= 6.0 * error + 1e-12)[finite])
        assert finite.any()
    assert hasattr(q, "variance") or hasattr(q, "covariance")


@pytest.mark.thinned(4)
@pytest.mark.parametrize("size", [None, 4, (2, 3), ()])
def test_draws_have_the_shape_asked_for(q, laws, size):
    lead = () if size is None else (size,) if isinstance(size, int) else size
    shapes = [lead + q.batch_shape + q.event_shape]
    if isinstance(q, Categorical):
        shapes = [lead + q.batch_shape]
    parts = laws.draw(q, size)
    if len(parts) == 2:
        # of a vector the precision is a matrix, or one number that its noise shares
        shared = isinstance(q, (MultivariateNormalGamma, TiedNormalGamma))
        square = q.event_shape[-1:] * 2
        shapes.append(lead + q.batch_shape + (() if shared else square))
    assert [np.shape(part) for part in parts] == shapes


def test_draws_depend_on_the_seed_only(q, laws):
    first, again = laws.draw(q, 20, seed=5), laws.draw(q, 20, seed=5)
    generated = laws.draw(q, 20, seed=np.random.default_rng(5))
    other = laws.draw(q, 20, seed=6)
    for a, b, c, d in zip(first, again, generated, other, strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(a, c)
        assert np.any(a != d)


def test_a_generator_moves_on(q, laws):
    generator = np.random.default_rng(5)
    assert np.any(laws.draw(q, 20, seed=generator)[0] != laws.draw(q, 20, seed=generator)[0])


def test_tiny_concentrations_put_all_weight_on_one_category():
    draws = Dirichlet([1e-8, 1e-8, 3e-8]).sample(4_000, seed=0)
    np.testing.assert_array_equal(draws.max(axis=-1), 1.0)
    np.testing.assert_allclose(draws.mean(axis=0), [0.2, 0.2, 0.6], atol=5.0 * 0.5 / np.sqrt(4_000))
    assert Beta(1e-8, 1e-8).sample(1_000, seed=0).mean() == pytest.approx(0.5, abs=0.08)


def test_labels_of_probability_zero_are_never_drawn():
    labels = Categorical([0.0, 0.5, 0.0, 0.5, 0.0]).sample(10_000, seed=0)
    assert set(np.unique(labels)) == {1, 3}


class Highest(np.random.Generator):
    """A generator whose uniform numbers are the largest below one."""

    def random(self, size=None):
        return np.full(size, np.nextafter(1.0, 0.0))


def test_the_highest_uniform_number_draws_the_last_label_that_is_possible():
    """Also where probabilities add up to less than one by rounding."""
    sums, draws = [], []
    for size in range(3, 60):
        probabilities = np.append(np.full(size, 1.0 / size), 0.0)
        labels = Categorical(probabilities)
        sums.append(labels.probabilities.cumsum()[-1])
        draws.append(int(labels.sample(None, Highest(np.random.PCG64(0)))) - size)
    assert min(sums) < 1.0
    assert set(draws) == {-1}


def test_draws_at_the_edge_of_the_degrees_of_freedom_are_finite():
    draws = Wishart(1.0 + 1e-8, np.eye(2)).sample(100, seed=0)
    assert np.all(np.isfinite(draws))
    np.testing.assert_array_equal(draws, draws.swapaxes(-1, -2))


@pytest.mark.parametrize("tilt", [0.0, 0.2, 1.5, 3.1, 3.2, 12.0, 400.0, 1e6])
def test_polya_gamma_draws_have_the_laplace_transform_of_their_distribution(tilt):
    """E exp(-s x) = cosh(c / 2) / cosh(sqrt(c^2 / 4 + s / 2)), for s up to many times 1 / mean."""
    q = PolyaGamma(tilt)
    draws = q.sample(40_000, seed=3)
    assert draws.min() > 0
    # s at which the transform falls to a half, and to nothing, whatever the tilt
    for s in np.array([0.1, 1.0, 3.0, 10.0]) / q.mean:
        after = np.hypot(tilt / 2, np.sqrt(s / 2))
        difference = (s / 2) / (after + tilt / 2)
        log_transform = np.log1p(np.exp(-tilt)) - np.log1p(np.exp(-2 * after)) - difference
        values = np.exp(-s * draws)
        error = values.std() / np.sqrt(draws.size)
        assert abs(values.mean() - np.exp(log_transform)) < 4.5 * error + 1e-12


def test_polya_gamma_draws_have_the_distribution_of_the_sum_of_gammas():
    """PG(1, c) is a weighted sum of exponentials; both tails of draws agree with a long one."""
    rng = np.random.default_rng(4)
    k = np.arange(1, 401)
    for tilt in (0.0, 2.0):
        weights = 1 / (2 * np.pi**2 * ((k - 0.5) ** 2 + tilt**2 / (4 * np.pi**2)))
        rest = PolyaGamma(tilt).mean - weights.sum()
        summed = rng.standard_exponential((6_000, k.size)) @ weights + rest
        assert stats.ks_2samp(PolyaGamma(tilt).sample(6_000, seed=5), summed).pvalue > 1e-3


@pytest.mark.parametrize("location", [-1e6, -30.0, -2.1, -1.9, 0.0, 4.0, 1e6])
def test_truncated_normal_draws_are_uniform_in_probability(location):
    q = TruncatedNormal(location / 4.0, 16.0)
    draws = 4.0 * q.sample(20_000, seed=7)
    assert draws.min() >= 0
    if location < -1e3:
        # exponential up to the square of 1 / location
        probability = -np.expm1(location * draws)
    else:
        probability = stats.truncnorm(-location, np.inf, loc=location).cdf(draws)
    assert stats.kstest(probability, "uniform").pvalue > 1e-3


@pytest.mark.parametrize("concentration", [1e-2, 1e-3, 1e-8])
def test_a_dirichlet_has_a_density_at_its_draws(concentration):
    """Weights underflow; at 0 the density has a pole, and the difference of two logarithms there is no number."""
    family = Dirichlet(np.full(9, concentration))
    draws = family.sample(500, 0)
    assert np.isfinite(family.log_density(draws)).all()
    np.testing.assert_allclose(draws.sum(axis=-1), 1.0, rtol=1e-12)
