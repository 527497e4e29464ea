"""PG(b, c): sums of b numbers PG(1, c), with the gradient and the curvature that its log-partition says."""

import numpy as np
import pytest
from scipy import stats

from caviar import ImproperError, ParameterError
from caviar.families import PolyaGamma, PolyaGammaSum

Q = PolyaGammaSum([[1.0, 0.4, 30.0], [7.0, 120.0, 2.0]], [[0.0, 2.0, 1.0], [1e-4, 12.0, 80.0]])


def test_one_number_is_the_family_of_one() -> None:
    tilt = np.array([0.0, 0.7, 40.0])
    q, one = PolyaGammaSum(1.0, tilt), PolyaGamma(tilt)
    for name in ("mean", "variance", "log_partition"):
        np.testing.assert_allclose(getattr(q, name), getattr(one, name), rtol=1e-15)
    np.testing.assert_allclose(q.entropy(), one.entropy(), rtol=1e-15)
    np.testing.assert_allclose(q.kl(PolyaGammaSum(1.0, 1.5)), one.kl(PolyaGamma(1.5)), rtol=1e-15)
    np.testing.assert_allclose(q.log_density(0.3), one.log_density(0.3), rtol=1e-15)


def test_the_expected_statistics_are_the_gradient_and_the_response_the_curvature() -> None:
    rng = np.random.default_rng(0)
    q = PolyaGammaSum([0.4, 30.0, 7.0], [2.0, 1.0, 0.3])
    for _ in range(3):
        change = tuple(0.1 * q.shape * rng.normal(size=3) for _ in q.natural)

        def at(h: float, change: tuple[np.ndarray, ...] = change) -> PolyaGammaSum:
            return PolyaGammaSum.from_natural(
                tuple(n + h * c for n, c in zip(q.natural, change, strict=True))
            )

        up, down = at(1e-4), at(-1e-4)
        slope = (up.log_partition - down.log_partition) / 2e-4
        expected = sum(c * t for c, t in zip(change, q.expected_statistics, strict=True))
        np.testing.assert_allclose(slope, expected, rtol=1e-7)
        for moved, after, before in zip(
            q.response(change), up.expected_statistics, down.expected_statistics, strict=True
        ):
            np.testing.assert_allclose(moved, (after - before) / 2e-4, rtol=1e-6, atol=1e-12)
    inner = sum(n * t for n, t in zip(Q.natural, Q.expected_statistics, strict=True))
    np.testing.assert_allclose(Q.log_partition, inner, rtol=1e-12, atol=1e-14)


def test_natural_parameters_come_back_and_no_shape_is_zero() -> None:
    back = PolyaGammaSum.from_natural(Q.natural)
    np.testing.assert_allclose(back.shape, Q.shape, rtol=1e-15)
    np.testing.assert_allclose(back.tilt, Q.tilt, rtol=1e-14)
    nothing = PolyaGammaSum.from_natural((np.zeros(2), np.zeros(2)))
    assert not nothing.mean.any()
    assert not nothing.sample(3, 0).any()
    assert not any(moved.any() for moved in nothing.response((np.ones(2), np.ones(2))))
    for natural in ((0.5, 1.0), (-1.0, -1.0), (-np.inf, 1.0), (np.nan, 1.0)):
        with pytest.raises(ImproperError, match="the shape must not be negative"):
            PolyaGammaSum.from_natural((np.array(natural[0]), np.array(natural[1])))
    with pytest.raises(ParameterError, match="shape must not be negative"):
        PolyaGammaSum(-1.0, 0.0)


def test_draws_are_sums_of_exact_draws() -> None:
    """Against sums of Devroye's draws, and by mean and variance at shapes that are no whole numbers."""
    for tilt in (0.0, 3.0):
        summed = PolyaGamma(tilt).sample((4_000, 3), seed=1).sum(axis=1)
        assert stats.ks_2samp(PolyaGammaSum(3.0, tilt).sample(4_000, seed=2), summed).pvalue > 1e-3
    draws = Q.sample(20_000, seed=3)
    error = np.sqrt(Q.variance / 20_000)
    assert np.all(np.abs(draws.mean(axis=0) - Q.mean) < 4.5 * error)
    np.testing.assert_allclose(draws.var(axis=0), Q.variance, rtol=0.15)
