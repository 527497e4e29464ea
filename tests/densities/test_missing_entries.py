"""NaN entries are integrated out: marginals, conditionals and imputations agree whichever way they are asked for."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from densities.registry import THREE_COLUMNS

RNG = np.random.default_rng(3)
ROWS = RNG.normal(size=(60, 3)) * 3
HOLES = np.where(RNG.random(ROWS.shape) < 0.4, np.nan, ROWS)
HOLES[7] = np.nan
PATTERNS = [np.flatnonzero(~np.isnan(row)) for row in HOLES]


@pytest.mark.thinned(3)
@pytest.mark.parametrize("name", THREE_COLUMNS)
def test_a_row_with_holes_has_the_density_of_its_marginal(name):
    mixture = THREE_COLUMNS[name]
    found, shares = mixture.log_density(HOLES), mixture.responsibilities(HOLES)
    for n, seen in enumerate(PATTERNS):
        if len(seen):
            marginal = mixture.marginal(seen)
            np.testing.assert_allclose(found[n], marginal.log_density(HOLES[n : n + 1, seen])[0], rtol=1e-12)
            expected = marginal.responsibilities(HOLES[n : n + 1, seen])[0]
        else:
            assert found[n] == 0.0
            expected = mixture.weights
        np.testing.assert_allclose(shares[n], expected, rtol=1e-11)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("name", THREE_COLUMNS)
def test_a_conditional_is_the_joint_over_the_marginal(name):
    mixture = THREE_COLUMNS[name]
    for known in ([0], [2, 1], [1]):
        rest = np.setdiff1d(range(3), known)
        for row in ROWS[:10]:
            conditional = mixture.condition(known, row[known])
            assert type(conditional) is type(mixture)
            joint = mixture.log_density(row[None]) - mixture.marginal(known).log_density(row[None, known])
            np.testing.assert_allclose(
                conditional.log_density(row[None, rest]), joint, rtol=1e-10, atol=1e-12
            )


@pytest.mark.thinned(3)
@pytest.mark.parametrize("name", THREE_COLUMNS)
def test_imputed_entries_are_conditional_means(name):
    mixture = THREE_COLUMNS[name]
    filled = mixture.impute(HOLES)
    observed = ~np.isnan(HOLES)
    assert np.array_equal(filled[observed], HOLES[observed])
    for n, seen in enumerate(PATTERNS):
        if 0 < len(seen) < 3:
            conditional = mixture.condition(dict(zip(seen.tolist(), HOLES[n, seen], strict=True)))
            np.testing.assert_allclose(filled[n, ~observed[n]], conditional.mean, rtol=1e-11)
    np.testing.assert_allclose(filled[7], mixture.mean, rtol=1e-12)


@pytest.mark.thinned(15)
@pytest.mark.parametrize("name", THREE_COLUMNS)
def test_predictions_are_those_of_the_conditionals(name):
    mixture = THREE_COLUMNS[name]
    holes = HOLES[:20].copy()
    found = mixture.predict(holes, targets=[2, 0], level=0.9)
    for n in range(20):
        known = {} if np.isnan(holes[n, 1]) else {1: holes[n, 1]}
        for place, column in enumerate((2, 0)):
            conditional = mixture.condition(known)
            one = conditional.marginal(column if not known else {2: 1, 0: 0}[column])
            np.testing.assert_allclose(found.mean[n, place], one.mean[0], rtol=1e-11)
            np.testing.assert_allclose(
                found.standard_deviation[n, place] ** 2, one.covariance[0, 0], rtol=1e-11
            )
            limits = [found.lower[n, place], found.upper[n, place]]
            np.testing.assert_allclose(limits, one.interval(0.9), rtol=1e-9)
    alone = mixture.predict(holes[:, 1], targets=0, given=1, level=0.9)
    np.testing.assert_allclose(alone.mean, found.mean[:, 1], rtol=1e-14)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("name", THREE_COLUMNS)
def test_conditioning_in_two_steps_is_conditioning_at_once(name):
    mixture = THREE_COLUMNS[name]
    at_once = mixture.condition({0: 0.5, 2: -1.0})
    in_steps = mixture.condition({2: -1.0}).condition({0: 0.5})
    x = np.linspace(-5, 5, 7)
    np.testing.assert_allclose(in_steps.log_density(x), at_once.log_density(x), rtol=1e-11)
    shuffled = mixture.marginal([1, 2, 0]).condition({1: -1.0, 2: 0.5})
    np.testing.assert_allclose(shuffled.log_density(x), at_once.log_density(x), rtol=1e-11)


@pytest.mark.slow
@given(
    rows=arrays(
        np.float64,
        st.tuples(st.integers(0, 12), st.just(3)),
        elements=st.one_of(st.just(np.nan), st.floats(-1e12, 1e12)),
    ),
    name=st.sampled_from(sorted(THREE_COLUMNS)),
)
@settings(deadline=None)
def test_any_table_with_holes_has_finite_answers(rows, name):
    mixture = THREE_COLUMNS[name]
    missing = np.isnan(rows)
    log_density = mixture.log_density(rows)
    assert np.isfinite(log_density).all()
    assert np.all(log_density[missing.all(axis=1)] == 0.0)
    shares = mixture.responsibilities(rows)
    assert np.all(shares >= 0)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, rtol=1e-12)
    filled = mixture.impute(rows)
    assert np.isfinite(filled).all()
    assert np.array_equal(filled[~missing], rows[~missing])
    # each row by itself: neighbours and patterns do not matter
    for n in range(len(rows)):
        np.testing.assert_allclose(
            mixture.log_density(rows[n : n + 1])[0], log_density[n], rtol=1e-9, atol=1e-12
        )
