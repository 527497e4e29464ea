"""Normals in an interval, and what fell outside of one: gradients, curvatures, SciPy's moments, draws."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm, truncnorm

import caviar as cv
from caviar import ImproperError, ParameterError
from caviar.families import IntervalNormal, UnseenNormal

BETWEEN = IntervalNormal(
    [0.3, -2.0, 1.0, 0.0, 5.0],
    [1.0, 4.0, 0.25, 1.0, 2.0],
    [-1e30, 0.0, 0.5, 3.0, 1.0],
    [0.1, 1e30, 2.0, 3.4, 1.0],
)
UNSEEN = UnseenNormal(
    [-0.1, -0.2, -0.3], [0.3, 1.0, -1.0], [1.0, 2.0, 0.5], [-0.5, -1e30, -2.0], [2.0, 1.5, 1e30]
)


@pytest.mark.parametrize("q", [BETWEEN, UNSEEN])
def test_expected_statistics_are_the_gradient_and_the_response_the_curvature(q):
    rng, n = np.random.default_rng(0), len(q.statistics) - 2
    for _ in range(3):
        change = [0.1 * rng.normal(size=q.batch_shape) for _ in range(n)]

        def at(h, change=change):
            ends = q.natural[n:]
            return q.from_natural(
                (*(own + h * by for own, by in zip(q.natural, change, strict=False)), *ends)
            )

        up, down = at(1e-4), at(-1e-4)
        expected = sum(by * mean for by, mean in zip(change, q.expected_statistics, strict=False))
        np.testing.assert_allclose(
            (up.log_partition - down.log_partition) / 2e-4, expected, rtol=1e-6, atol=1e-9
        )
        zero = np.zeros(q.batch_shape)
        moved = q.response((*change, zero, zero))
        for own, after, before in zip(moved, up.expected_statistics, down.expected_statistics, strict=True):
            np.testing.assert_allclose(own, (after - before) / 2e-4, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("place", range(4))
def test_an_interval_has_scipys_moments(place):
    q = BETWEEN[place]
    width = float(q.precision) ** -0.5
    ends = [(float(end) - float(q.location)) / width for end in (q.lower, q.upper)]
    ends = [np.sign(end) * np.inf if abs(end) > 1e20 else end for end in ends]
    other = truncnorm(*ends, loc=float(q.location), scale=width)
    assert q.mean == pytest.approx(other.mean(), rel=1e-9)
    assert q.variance == pytest.approx(other.var(), rel=1e-7)
    inside = other.ppf(np.linspace(0.0005, 0.9995, 1000))
    assert q.entropy() == pytest.approx(-np.mean(q.log_density(inside)), abs=0.01)
    for x in other.ppf([0.1, 0.6]):
        assert q.log_density(x) == pytest.approx(other.logpdf(x), rel=1e-9)
    (marginals,) = q.entry_marginals((0.05, 0.95))
    np.testing.assert_allclose([marginals.lower, marginals.upper], other.ppf([0.05, 0.95]), rtol=1e-9)
    drawn = q.sample(4000, seed=0)
    assert drawn.mean() == pytest.approx(other.mean(), abs=5 * other.std() / 60)
    assert drawn.min() >= q.lower
    assert drawn.max() <= q.upper


def test_far_tails_and_narrow_intervals_keep_their_digits():
    far = IntervalNormal(0.0, 1.0, [30.0, 1e4, -1e30], [1e30, 1e30, -50.0])
    # an exponential of the distance from the end, to second order
    np.testing.assert_allclose(
        far.mean - [30.0, 1e4, -50.0], [0.033259667433667, 1e-4, -0.019984031], rtol=1e-6
    )
    narrow = IntervalNormal(0.0, 1.0, 1.0, 1.0 + 1e-7)
    assert narrow.variance == pytest.approx(1e-14 / 12, rel=1e-6)


def test_a_point_is_certain():
    q = BETWEEN[4]
    assert (q.mean, q.variance, q.entropy()) == (1.0, 0.0, 0.0)
    assert q.sample(3, 0).tolist() == [1.0, 1.0, 1.0]
    nothing = IntervalNormal.from_natural(tuple(np.zeros((4, 2))))
    assert not nothing.log_partition.any()
    assert not nothing.mean.any()


@pytest.mark.parametrize("place", range(3))
def test_the_number_of_unseen_ones_is_geometric(place):
    q = UNSEEN[place]
    constant, linear, quadratic, lower, upper = (float(own) for own in q.natural)

    def outside(power):
        def density(x):
            return x**power * np.exp(constant + linear * x + quadratic * x * x)

        below = quad(density, -60, lower)[0] if lower > -1e20 else 0.0
        return below + (quad(density, upper, 60)[0] if upper < 1e20 else 0.0)

    w = outside(0)
    assert q.log_partition == pytest.approx(-np.log1p(-w), rel=1e-9)
    means = [outside(power) / (1 - w) for power in range(3)]
    np.testing.assert_allclose(q.mean, means, rtol=1e-8, atol=1e-10)
    drawn = q.sample(20_000, seed=1)
    np.testing.assert_allclose(drawn.mean(axis=0), means, atol=0.06 * (1 + np.abs(means)).max())
    assert np.mean(drawn[:, 0] == 0) == pytest.approx(1 - w, abs=0.02)
    assert q.sample(seed=2).shape == (3,)
    densities = q.log_density(drawn[:50])
    assert densities == pytest.approx(drawn[:50] @ [constant, linear, quadratic] - q.log_partition, rel=1e-10)


def test_a_normal_that_is_always_seen_has_no_unseen_ones():
    q = UnseenNormal(0.0, 0.0, 1.0, -1e30, 40.0)
    np.testing.assert_allclose(q.mean, 0.0, atol=1e-100)
    seldom = UnseenNormal(0.0, 0.0, 1.0, 8.0, 1e30)
    assert seldom.mean[0] == pytest.approx(norm.cdf(8.0) / norm.sf(8.0), rel=1e-9)
    empty = UnseenNormal.from_natural(tuple(np.zeros((5, 2))))
    assert not empty.mean.any()
    assert not empty.log_partition.any()
    assert not empty.sample(3, 0).any()
    none = UnseenNormal.from_natural(tuple(map(np.array, (-np.inf, 0.3, -0.5, -1.0, 1.0))))
    assert none.log_density([[0.0, 0.0, 0.0], [1.0, 2.0, 4.0]]).tolist() == [0.0, -np.inf]


@pytest.mark.parametrize(("lower", "upper"), [(6.0, 6.5), (6.4, 1e30)])
def test_millions_of_unseen_ones_are_drawn_by_their_sums(lower, upper):
    # a draw of each number would take minutes
    q = UnseenNormal(0.0, 0.7, 1.0, lower, upper)
    count, total, square = q.sample(3_000, seed=0).T
    assert count.mean() == pytest.approx(q.mean[0], rel=0.1)
    x = norm(0.7, 1.0)  # the window takes less than 1e-6 away
    moments = [x.moment(power) for power in range(1, 5)]
    many = count > 1e6
    away = np.stack([total - count * moments[0], square - count * moments[1]])[:, many] / np.sqrt(count[many])
    crossed = moments[2] - moments[0] * moments[1]
    covariance = [[1.0, crossed], [crossed, moments[3] - moments[1] ** 2]]
    np.testing.assert_allclose(np.cov(away), covariance, rtol=0.1)
    np.testing.assert_allclose(away.mean(axis=1), 0.0, atol=0.2)
    assert np.isfinite(UnseenNormal(0.0, 0.0, 1.0, 60.0, 61.0).sample(5, seed=0)).all()


def test_improper_ones_are_refused():
    with pytest.raises(ImproperError, match="precision must be positive"):
        IntervalNormal.from_natural((np.array(0.0), np.array(0.5), np.array(0.0), np.array(1.0)))
    with pytest.raises(ImproperError, match="precision must be positive"):
        UnseenNormal.from_natural(tuple(map(np.array, (0.0, 0.0, 0.5, 0.0, 1.0))))
    with pytest.raises(ParameterError, match="lower must not be above upper"):
        IntervalNormal(0.0, 1.0, 2.0, 1.0)
    with pytest.raises(ParameterError, match="log_weight must not be positive"):
        UnseenNormal(0.1, 0.0, 1.0, 0.0, 1.0)


def test_the_log_partition_has_the_expected_number_as_its_slope_beyond_a_whole_weight():
    """A move beyond the updates may lead there: the numbers outside still have a weight below one."""
    at = UnseenNormal(0.0, 1.5, 0.4, -1e30, 5.0)
    for constant in (-0.1, 0.0, 2e-9, 1e-3, 0.02):
        natural = (at.natural[0] + constant, *at.natural[1:])
        step = 1e-6
        ends = [
            UnseenNormal.from_natural((natural[0] + own, *natural[1:])).log_partition for own in (-step, step)
        ]
        outside = np.exp(constant) * norm.sf(5.0, 1.5, 0.4**-0.5)
        middle = UnseenNormal.from_natural(natural)
        np.testing.assert_allclose(middle.log_partition, -np.log1p(-outside), rtol=1e-7)
        np.testing.assert_allclose(middle.expected_statistics[0], outside / (1 - outside), rtol=1e-7)
        np.testing.assert_allclose((ends[1] - ends[0]) / (2 * step), middle.expected_statistics[0], rtol=1e-5)


def test_a_truncated_number_of_a_known_distribution_is_at_an_optimum():
    model = cv.Model(cv.TruncatedNormal("y", 1.5, 0.4, upper=5.0))
    data = {"y": 2.8}
    slopes = cv.testing.elbo_slopes(model.fit(data), data)
    assert max(slopes.values(), default=0.0) < 1e-4


def test_the_covariance_of_what_is_unseen_is_that_of_draws():
    draws = UNSEEN.sample(200_000, seed=0)
    for place, own in enumerate(UNSEEN.covariance_of_value()):
        np.testing.assert_allclose(own, own.T, rtol=1e-12)
        np.testing.assert_allclose(own, np.cov(draws[:, place].T), rtol=0.06, atol=0.02)
        np.testing.assert_array_equal(UNSEEN.variance[place], np.diagonal(own))


def test_truncated_numbers_beyond_any_rows_have_a_summary():
    """What is unseen beside them is global there, and no number of its own."""
    mean = cv.Normal("mean", 0.0, 1.0)
    x = cv.TruncatedNormal("x", mean, cv.Gamma("tau", 2.0, 2.0), lower=0.0, plates=cv.Plate("site", 4))
    posterior = cv.Model(x).fit({"x": [0.2, 1.4, 0.7, 2.2]})
    assert "tau" in str(posterior.summary())
    assert np.isfinite(posterior.interval("mean")).all()
