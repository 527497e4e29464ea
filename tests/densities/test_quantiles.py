"""Quantiles invert the distribution function, over all of double precision."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf
from thinning import amount

import caviar as cv

logarithms = st.floats(-150, 150)


@st.composite
def lines(draw):
    """Draw a mixture with one column whose components may differ by 300 orders of magnitude."""
    size = draw(st.integers(1, 4))

    def several(strategy):
        return np.array(draw(st.lists(strategy, min_size=size, max_size=size)))

    weights = several(st.floats(0.01, 1.0))
    locations = several(st.sampled_from([-1.0, 0.0, 1.0])) * 10.0 ** several(logarithms)
    scales = 10.0 ** several(logarithms)
    df = None if draw(st.booleans()) else several(st.sampled_from([0.1, 1.0, 3.3, 40.0, 1e12]))
    columns = (weights / weights.sum(), locations[:, None])
    if df is None:
        return cv.NormalMixture(*columns, 1 / scales)
    return cv.StudentMixture(*columns, 1 / scales, df)


@pytest.mark.slow
@given(mixture=lines(), p=st.floats(1e-12, 1 - 1e-12))
def test_the_quantile_is_where_the_distribution_function_crosses(mixture, p):
    x = mixture.quantile(p)
    assert np.isfinite(x)
    least = x - 1e-11 * np.abs(x) - mixture.component_scales().min() * 1e-11
    most = x + 1e-11 * np.abs(x) + mixture.component_scales().min() * 1e-11
    assert mixture.cdf(least) <= p * (1 + 1e-9)
    assert 1 - mixture.cdf(most) <= (1 - p) * (1 + 1e-9) + 1e-15


@settings(max_examples=amount(20, 100))
@given(mixture=lines(), p=st.floats(0.001, 0.999))
def test_quantiles_of_the_mirrored_mixture_are_mirrored(mixture, p):
    mirrored = replace(mixture, locations=-mixture.locations)
    tail = np.array([min(p, 1 - p)])
    assert mirrored._univariate("").upper_quantile(tail) == -mixture._univariate("").lower_quantile(tail)


def test_far_tails_keep_their_digits():
    """Of two Student-t with df 1 and 3, from the series of their tails in 50 digits."""
    mixture = cv.StudentMixture.from_shapes([0.5, 0.5], [0.0, 0.0], [1.0, 1.0], [1.0, 3.0])
    with mp.workdps(50):
        for exponent in (20, 60):
            x = mpf(10) ** exponent
            cauchy = mp.atan(1 / x) / mp.pi
            root = mp.sqrt(3)
            cubic = (mp.atan(root / x) - (x / root) / (1 + x * x / 3)) / mp.pi
            mass = float((cauchy + cubic) / 2)
            np.testing.assert_allclose(mixture.cdf(-float(x)), mass, rtol=1e-12)
            np.testing.assert_allclose(mixture.quantile(mass), -float(x), rtol=1e-12)


def test_a_gap_between_components_is_no_obstacle():
    mixture = cv.NormalMixture.from_covariances([0.5, 0.5], [-1e6, 1e6], [1.0, 1.0])
    low, middle, high = mixture.quantile([0.25, 0.5, 0.75])
    np.testing.assert_allclose([low, high], [-1e6, 1e6], rtol=1e-15)
    assert mixture.cdf(middle) == 0.5


def test_a_component_without_weight_does_not_count():
    mixture = cv.NormalMixture.from_covariances([1.0, 0.0], [0.0, 1e9], [1.0, 1.0])
    assert mixture.interval(0.9)[1] == pytest.approx(1.6448536269514722, rel=1e-14)


@pytest.mark.slow
def test_many_quantiles_at_once_are_those_one_by_one():
    mixture = cv.StudentMixture.from_shapes(
        [0.2, 0.5, 0.3], [-4.0, 0.0, 9.0], [1.0, 0.1, 4.0], [1.0, 5.0, 2.0]
    )
    p = np.linspace(0, 1, 101).reshape(1, 101)
    together = mixture.quantile(p)
    assert together.shape == p.shape
    assert np.isneginf(together[0, 0])
    assert np.isposinf(together[0, -1])
    np.testing.assert_allclose(together[0], [mixture.quantile(q) for q in p[0]], rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(mixture.cdf(together), p, rtol=1e-13)


def test_what_lies_beyond_all_numbers_is_infinite():
    """Of df 0.001 the lower quarter begins near -10^299, the lower hundredth near -10^1700."""
    mixture = cv.StudentMixture.from_shapes([1.0], [0.0], [1.0], 0.001)
    assert mixture.quantile(0.01) == -np.inf
    assert mixture.quantile(0.99) == np.inf
    assert np.isfinite(mixture.quantile(0.4))
    np.testing.assert_allclose(mixture.cdf(mixture.quantile(0.4)), 0.4, rtol=1e-12)
