"""Scales, rows and degrees of freedom at the edge of double precision, and mixtures of the least size."""

import tracemalloc

import numpy as np
import pytest
from scipy import stats

import caviar as cv
from densities.registry import PLANE, PLANE_MATRICES, SPACE, SPACE_MATRICES, mixtures

DF = [2.5, 7.0]
ROWS = np.random.default_rng(0).normal(size=(30, 2)) * 3
HOLES = np.where(np.random.default_rng(1).random((30, 2)) < 0.4, np.nan, ROWS)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("scale", [1e-150, 1e150])
@pytest.mark.parametrize("name", mixtures(PLANE, PLANE_MATRICES, DF))
def test_another_unit_of_all_columns_changes_nothing_but_the_unit(name, scale):
    plain = mixtures(PLANE, PLANE_MATRICES, DF)[name]
    scaled = mixtures(np.array(PLANE) * scale, PLANE_MATRICES * scale**2, DF)[name]
    observed = (~np.isnan(HOLES)).sum(axis=1)
    np.testing.assert_allclose(
        scaled.log_density(HOLES * scale) + observed * np.log(scale), plain.log_density(HOLES), atol=1e-10
    )
    np.testing.assert_allclose(
        scaled.responsibilities(HOLES * scale), plain.responsibilities(HOLES), rtol=1e-10
    )
    np.testing.assert_allclose(scaled.impute(HOLES * scale) / scale, plain.impute(HOLES), rtol=1e-10)
    expected, found = plain.predict(HOLES, 0), scaled.predict(HOLES * scale, 0)
    for field in ("mean", "standard_deviation", "lower", "upper"):
        np.testing.assert_allclose(getattr(found, field) / scale, getattr(expected, field), rtol=1e-9)
    np.testing.assert_allclose(scaled.sample(9, 0)[0] / scale, plain.sample(9, 0)[0], rtol=1e-10)
    np.testing.assert_allclose(scaled.covariance / scale / scale, plain.covariance, rtol=1e-10)


def test_columns_in_very_different_units():
    units = np.array([1e-150, 1.0, 1e150])
    for name, plain in mixtures(SPACE, SPACE_MATRICES, DF).items():
        if "spherical" in name:
            continue
        scaled = mixtures(np.array(SPACE) * units, SPACE_MATRICES * units * units[:, None], DF)[name]
        row = np.array([[0.5, np.nan, -2.0]])
        np.testing.assert_allclose(scaled.impute(row * units) / units, plain.impute(row), rtol=1e-10)
        conditional = scaled.condition([1, 2], [0.3 * units[1], 2.0 * units[2]])
        expected = plain.condition([1, 2], [0.3, 2.0])
        np.testing.assert_allclose(conditional.quantile(0.1) / units[0], expected.quantile(0.1), rtol=1e-10)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("name", mixtures(PLANE, PLANE_MATRICES, DF))
def test_rows_far_away_have_finite_densities_and_answers(name):
    mixture = mixtures(PLANE, PLANE_MATRICES, DF)[name]
    far = np.array([[1e12, -1e12], [1e12, np.nan], [np.nan, 1e12], [1e150, 1e150]])
    log_density = mixture.log_density(far)
    assert np.isfinite(log_density).all()
    assert np.all(log_density < -20)
    shares = mixture.responsibilities(far)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert np.isfinite(mixture.impute(far)).all()
    found = mixture.predict(far, 1)
    for field in ("mean", "standard_deviation", "lower", "upper"):
        assert np.isfinite(getattr(found, field)).all()
    assert np.all(found.lower < found.upper)


def test_where_every_normal_density_vanishes_the_nearest_component_is_responsible():
    """At 1e200 the logarithms leave the range; the component with the widest scale is infinitely more probable."""
    mixture = cv.NormalMixture.from_covariances([0.9, 0.1], [0.0, 0.0], [1.0, 4.0])
    assert np.isneginf(mixture.log_density([1e200]))[0]
    np.testing.assert_allclose(mixture.responsibilities([1e200]), [[0.0, 1.0]])
    twins = cv.NormalMixture.from_covariances([0.9, 0.1], [0.0, 0.0], [1.0, 1.0])
    np.testing.assert_allclose(twins.responsibilities([1e200]), [[0.9, 0.1]])


def test_heavy_tails_far_out_follow_their_power_law():
    """Log f = const - (df + D) log r, where squares of r are out of range."""
    mixture = cv.StudentMixture.from_shapes([1.0], [[0.0, 0.0]], [1.0], 0.5)
    near, far = mixture.log_density([[1e100, 0.0], [0.0, 1e250]])
    np.testing.assert_allclose(near - far, 2.5 * 150 * np.log(10), rtol=1e-13)


@pytest.mark.parametrize("df", [1e10, 1e12, 1e15])
def test_many_degrees_of_freedom_are_a_normal(df):
    student = cv.StudentMixture.from_shapes([0.25, 0.75], PLANE, PLANE_MATRICES, df)
    normal = cv.NormalMixture.from_covariances([0.25, 0.75], PLANE, PLANE_MATRICES)
    np.testing.assert_allclose(student.log_density(HOLES), normal.log_density(HOLES), atol=1e-6)
    found, expected = student.predict(HOLES, 0), normal.predict(HOLES, 0)
    for field in ("mean", "standard_deviation", "lower", "upper"):
        np.testing.assert_allclose(getattr(found, field), getattr(expected, field), rtol=1e-7, atol=1e-7)


def test_few_degrees_of_freedom():
    """Of df 0.1: SciPy's density, no mean, draws that are finite and have the right median of log |x|."""
    mixture = cv.StudentMixture.from_shapes([1.0], [0.0], [1.0], 0.1)
    x = np.array([-1e50, -3.0, 0.0, 1e-3, 1e100])
    np.testing.assert_allclose(mixture.log_density(x), stats.t(0.1).logpdf(x), rtol=1e-12)
    rows, _ = mixture.sample(20_000, 0)
    assert np.isfinite(rows).all()
    expected = mixture.quantile(0.75)
    assert abs(np.mean(np.abs(rows) > expected) - 0.5) < 4 * np.sqrt(0.25 / 20_000)
    with pytest.raises(cv.ImproperError, match=r"0\.1 degrees of freedom has no mean"):
        _ = mixture.mean
    with pytest.raises(cv.ImproperError, match="no mean"):
        mixture.impute([np.nan])
    np.testing.assert_allclose(mixture.impute([2.0]), [[2.0]])


def test_moments_that_do_not_exist_are_infinite_or_refused():
    mixture = cv.StudentMixture.from_shapes([1.0], [[0.0, 0.0]], [1.0], 1.5)
    np.testing.assert_allclose(mixture.mean, 0.0)
    with pytest.raises(cv.ImproperError, match="no finite covariance"):
        _ = mixture.covariance
    found = mixture.predict([[np.nan, 1.0], [np.nan, np.nan]], targets=0)
    # one observed column adds a degree of freedom: (1.5 + 1) / (1.5 + 1) * 2.5 / 0.5
    np.testing.assert_allclose(found.standard_deviation, [np.sqrt(5.0), np.inf])
    assert np.isfinite(found.lower).all()


@pytest.mark.parametrize("name", ["normal", "student", "product"])
def test_one_component_and_one_column(name):
    one = {
        "normal": cv.NormalMixture.from_covariances([1.0], [2.0], [9.0]),
        "student": cv.StudentMixture.from_shapes([1.0], [2.0], [9.0], 5.0),
        "product": cv.ProductStudentMixture.from_scales([1.0], [2.0], [3.0], 5.0),
    }[name]
    plain = stats.norm(2, 3) if name == "normal" else stats.t(5, 2, 3)
    x = np.array([-7.0, 2.0, 30.0])
    np.testing.assert_allclose(one.log_density(x), plain.logpdf(x), rtol=1e-13)
    np.testing.assert_allclose(one.cdf(x), plain.cdf(x), rtol=1e-12)
    np.testing.assert_allclose(one.interval(0.9), plain.interval(0.9), rtol=1e-12)
    np.testing.assert_allclose(one.covariance, plain.var(), rtol=1e-13)
    np.testing.assert_allclose(one.impute([np.nan, 1.0]), [[2.0], [1.0]])
    assert one.responsibilities(x).tolist() == [[1.0]] * 3


@pytest.mark.parametrize("scale", ["columns", "components"])
def test_thousands_of_uncorrelated_columns_take_no_matrices(scale):
    D = 20_000  # a matrix would take 3 GB
    rng = np.random.default_rng(0)
    shapes = rng.uniform(0.5, 2, size=(2, D)) if scale == "columns" else [1.0, 2.0]
    locations = rng.normal(size=(2, D))
    tracemalloc.start()
    try:
        mixture = cv.StudentMixture.from_shapes([0.5, 0.5], locations, shapes, 5.0)
        rows, labels = mixture.sample(5, 0)
        holes = np.where(rng.random(rows.shape) < 0.5, np.nan, rows)
        assert np.array_equal(mixture.responsibilities(holes).argmax(axis=1), labels)
        mixture.impute(holes, n_draws=2, rng=0)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100 * D * 8 * 2


@pytest.mark.thinned(3)
@pytest.mark.parametrize("shapes", [[1.0, 2.0], np.ones((2, 500)), np.tile(np.eye(500), (2, 1, 1))])
def test_blocks_are_the_smaller_the_wider_rows_are(shapes):
    rng = np.random.default_rng(0)
    mixture = cv.StudentMixture.from_shapes([0.5, 0.5], rng.normal(size=(2, 500)), shapes, 5.0)
    rows = rng.normal(size=(8_000, 500)).astype(np.float32)  # 16 MB
    tracemalloc.start()
    try:
        mixture.log_density(rows)
        mixture.responsibilities(rows)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 45e6  # rows in double precision would be 32 MB for each step of the work


def test_many_rows_are_evaluated_in_blocks():
    mixture = mixtures(PLANE, PLANE_MATRICES, DF)["student, full"]
    rows, _ = mixture.sample(10_000, 0)
    rows[::3, 0] = np.nan
    whole = mixture.log_density(rows)
    parts = np.concatenate(
        [mixture.log_density(rows[start : start + 999]) for start in range(0, 10_000, 999)]
    )
    np.testing.assert_allclose(whole, parts, rtol=1e-13)
    tracemalloc.start()
    try:
        mixture.log_density(np.broadcast_to(rows[0], (10**6, 2)))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (
        peak < 40e6
    )  # 8 MB of answers, a few of row numbers and patterns; K rows by N would be 16 more each time
