"""Divergences are not negative, zero at equality only, and what the exponential form gives."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caviar import _errors
from caviar.families import Bernoulli, Categorical, Dirichlet, Gamma, Normal, Wishart


def pairs(cases):
    """Return two single distributions of each event shape in turn, all against all."""
    singles = []
    for case in cases:
        flat = [case[index] for index in np.ndindex(case.batch_shape)] if case.batch_shape else [case]
        singles.extend(flat)
    return [(a, b) for a in singles for b in singles if a.event_shape == b.event_shape]


def differ(a, b):
    return any(
        np.any(x != y) for x, y in zip(a._parameters().values(), b._parameters().values(), strict=True)
    )


def test_divergence_is_what_the_exponential_form_gives(family_pairs, laws):
    for a, b in pairs(family_pairs):
        gap = [x - y for x, y in zip(a.natural, b.natural, strict=True)]
        expected = laws.inner(a, gap, a.expected_statistics) - a.log_partition + b.log_partition
        np.testing.assert_allclose(a.kl(b), expected, rtol=1e-10, atol=1e-11)


def test_divergence_is_zero_at_equality_only(family_pairs):
    different = 0
    for a, b in pairs(family_pairs):
        if differ(a, b):
            different += 1
            assert a.kl(b) > 0
        else:
            assert a.kl(b) == 0
    assert different


def test_divergence_broadcasts_over_batches(q):
    if not q.batch_shape:
        pytest.skip("no batch")
    first = q[(0,) * len(q.batch_shape)]
    one_by_one = [float(q[index].kl(first)) for index in np.ndindex(q.batch_shape)]
    np.testing.assert_allclose(q.kl(first).ravel(), one_by_one, rtol=1e-9, atol=1e-15)
    assert first.kl(q).shape == q.batch_shape


def test_cross_entropy_is_the_expected_log_density(q, laws):
    other = (
        q[(slice(None, None, -1),)]
        if q.batch_shape
        else q.from_natural(tuple(1.1 * eta for eta in q.natural))
    )
    shifted = [eta + c for eta, c in zip(other.natural, other.base_measure, strict=True)]
    expected = (
        other.log_partition - laws.inner(q, shifted, q.expected_statistics) - laws.expected_log_carrier(q)
    )
    np.testing.assert_allclose(q.cross_entropy(other), expected, rtol=1e-10)


def test_other_families_and_sizes_are_refused():
    with pytest.raises(_errors.ParameterError, match="Gamma"):
        Normal(0.0, 1.0).kl(Gamma(1.0, 1.0))  # pyright: ignore[reportArgumentType]
    with pytest.raises(_errors.ParameterError, match=r"\(3,\)"):
        Dirichlet([1.0, 1.0, 1.0]).kl(Dirichlet([1.0, 1.0]))


def test_categories_outside_the_others_support_are_infinitely_far():
    assert Categorical([0.5, 0.5, 0.0]).kl(Categorical([1.0, 0.0, 0.0])) == np.inf
    assert Categorical([1.0, 0.0, 0.0]).kl(Categorical([0.5, 0.5, 0.0])) == pytest.approx(np.log(2.0))
    assert Bernoulli(0.5).kl(Bernoulli(1.0)) == np.inf
    assert Bernoulli([0.0, 1.0]).kl(Bernoulli(0.25)) == pytest.approx([-np.log(0.75), -np.log(0.25)])


positive = st.floats(-8, 8).map(lambda exponent: 10.0**exponent)
nudge = st.floats(-14, -1).map(lambda exponent: 1.0 + 10.0**exponent)


@pytest.mark.slow
@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.lists(positive, min_size=2, max_size=5), st.lists(nudge, min_size=5, max_size=5))
def test_nearby_dirichlets_have_a_positive_divergence(concentration, factors):
    a = np.array(concentration)
    b = a * np.array(factors[: len(concentration)])
    if np.array_equal(a, b):
        return
    assert Dirichlet(a).kl(Dirichlet(b)) > 0
    assert np.all(Gamma(a, 1.0).kl(Gamma(b, b / a))[a != b] > 0)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(positive, nudge, st.integers(0, 2**31))
def test_nearby_wisharts_have_a_positive_divergence(surplus, factor, seed):
    root = np.random.default_rng(seed).normal(size=(3, 3))
    scale = root @ root.T + 0.1 * np.eye(3)
    a, b = Wishart(2.0 + surplus, scale), Wishart(2.0 + surplus, scale * factor)
    assert a.kl(b) > 0
    # KL between Wisharts that differ in scale only: nu D / 2 (f - 1 - log f)
    ratio = float(b.inverse_scale[0, 0] / a.inverse_scale[0, 0])
    if ratio > 1.0 + 1e-5:
        expected = 1.5 * (2.0 + surplus) * (ratio - 1.0 - np.log1p(ratio - 1.0))
        assert a.kl(b) == pytest.approx(expected, rel=1e-4)
