"""What cannot be is refused, in words that say what was expected and what came."""

import numpy as np
import pytest

import caviar as cv
from densities.registry import THREE_COLUMNS

MIXTURE = THREE_COLUMNS["student, full"]
NAMED = cv.NormalMixture.from_covariances([1.0], [[0.0, 1.0]], [1.0], feature_names=["height", "weight"])


def normal(weights=(0.5, 0.5), locations=((0.0, 0.0), (1.0, 1.0)), covariances=(1.0, 2.0), **more):
    return cv.NormalMixture.from_covariances(weights, locations, covariances, **more)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"weights": [0.5, 0.6]}, r"sum to one; got \[0.5 0.6\], which sum to 1.1: divide"),
        ({"weights": [-0.5, 1.5]}, "must not be negative"),
        ({"weights": 1.0}, r"shape \(K,\)"),
        ({"weights": "many"}, "weights must hold numbers"),
        ({"locations": [[0.0, 1.0]]}, "a row for each of 2 weights; got shape"),
        ({"locations": [[0.0, np.nan], [1.0, 1.0]]}, "locations must be finite"),
        ({"covariances": [1.0, -1.0]}, "covariances must be positive; got -1"),
        ({"covariances": np.eye(3)}, r"\(2, 2, 2\) \(matrices\), \(2, 2\) \(diagonals\) or \(2,\)"),
        ({"covariances": [[[1.0, 0.5], [0.4, 1.0]]]}, "covariances must be symmetric"),
        ({"covariances": [[[1.0, 2.0], [2.0, 1.0]]]}, r"positive definite: .* covariances\[0\] is not"),
        ({"covariances": [[[1.0, 0.0], [0.0, 0.0]]]}, "positive definite; got a diagonal entry of 0"),
        ({"feature_names": ["a"]}, "2 different names"),
        ({"feature_names": ["a", "a"]}, "2 different names"),
    ],
)
def test_parameters(arguments, message):
    with pytest.raises(cv.ParameterError, match=message):
        normal(**arguments)


def test_degrees_of_freedom_and_scales():
    with pytest.raises(cv.ParameterError, match="df must be positive; got 0"):
        cv.StudentMixture.from_shapes([1.0], [0.0], [1.0], 0.0)
    with pytest.raises(cv.ParameterError, match="df must be finite"):
        cv.StudentMixture.from_shapes([1.0], [0.0], [1.0], np.inf)
    with pytest.raises(cv.ParameterError, match=r"df must be one number or have shape \(1,\)"):
        cv.StudentMixture.from_shapes([1.0], [0.0], [1.0], [1.0, 2.0])
    with pytest.raises(cv.ParameterError, match="scales must be positive"):
        cv.ProductStudentMixture.from_scales([1.0], [0.0], [-1.0], 1.0)
    with pytest.raises(cv.ParameterError, match="must have the shape of locations"):
        cv.ProductStudentMixture.from_scales([1.0], [[0.0, 0.0]], [[1.0]], 1.0)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ((np.ones(1), np.zeros((2, 1)), np.ones(1)), "weights must have shape"),
        ((np.ones(1), np.zeros((1, 1)), np.ones((1, 2))), "whitening must have shape"),
        ((np.ones(1), np.zeros((1, 1)), np.float64(1.0)), "whitening must have shape"),
    ],
)
def test_stored_arrays_of_the_wrong_shape(arrays, message):
    with pytest.raises(cv.ParameterError, match=message):
        cv.NormalMixture(*arrays)


@pytest.mark.parametrize("X", [[[1.0, 2.0]], [1.0, 2.0, 3.0], [["a", "b", "c"]], [[np.inf, 0.0, 0.0]], 1.0])
def test_rows(X):
    for ask in (MIXTURE.log_density, MIXTURE.responsibilities, MIXTURE.impute, MIXTURE.outlier_scores):
        with pytest.raises(cv.DataError, match="expected"):
            ask(X)


def test_columns():
    with pytest.raises(cv.ParameterError, match="there is no column 3; the mixture has 3"):
        MIXTURE.marginal(3)
    with pytest.raises(cv.ParameterError, match="there is no column 'age'; the columns are height, weight"):
        NAMED.marginal("age")
    with pytest.raises(cv.ParameterError, match="have no names"):
        MIXTURE.marginal("height")
    with pytest.raises(cv.ParameterError, match="given once"):
        MIXTURE.marginal([0, -3])
    with pytest.raises(cv.ParameterError, match=r"whole number or a name; got 0\.5"):
        MIXTURE.marginal([0.5])
    with pytest.raises(cv.ParameterError, match="at least one column"):
        MIXTURE.marginal([])


def test_conditions():
    with pytest.raises(cv.ParameterError, match="no column is left: all 3"):
        MIXTURE.condition([0, 1, 2], [0.0, 0.0, 0.0])
    with pytest.raises(cv.ParameterError, match="columns without values"):
        MIXTURE.condition([0, 1])
    with pytest.raises(cv.ParameterError, match="got both"):
        MIXTURE.condition({0: 1.0}, [1.0])
    with pytest.raises(cv.DataError, match="one value for each of 2 columns"):
        MIXTURE.condition([0, 1], [1.0])
    with pytest.raises(cv.DataError, match="must be finite"):
        MIXTURE.condition({0: np.nan})
    with pytest.raises(cv.ParameterError, match="either a target or given"):
        MIXTURE.predict([[0.0]], targets=0, given=0)


def test_questions_of_one_column():
    for ask in (MIXTURE.cdf, MIXTURE.quantile, MIXTURE.interval):
        with pytest.raises(cv.ParameterError, match=r"this one has 3: use \.marginal\(column\) first"):
            ask(0.5)
    one = MIXTURE.marginal(0)
    for p in (-0.1, 1.1, np.nan):
        with pytest.raises(cv.ParameterError, match="p must be probabilities"):
            one.quantile(p)
    for level in (0.0, 1.0, "most"):
        with pytest.raises(cv.ParameterError, match="level must lie between 0 and 1"):
            one.interval(level)


def test_rates_and_numbers_of_draws():
    with pytest.raises(cv.ParameterError, match="rate must lie between 0 and 1"):
        MIXTURE.outlier_threshold(1.5)
    with pytest.raises(cv.ParameterError, match="needs at least 10000 draws; got n_draws=100"):
        MIXTURE.outlier_threshold(0.001, n_draws=100)
    with pytest.raises(cv.ParameterError, match="n_draws must be a whole number of at least 1"):
        MIXTURE.impute([[np.nan] * 3], n_draws=0)
    with pytest.raises(cv.ParameterError, match="n_samples"):
        MIXTURE.sample(-1, 0)
    with pytest.raises(cv.ParameterError, match="seed is"):
        MIXTURE.sample(1, "luck")


def test_names_stay_with_their_columns():
    mixture = cv.NormalMixture.from_covariances(
        [1.0], [[0.0, 1.0, 2.0]], [[1.0, 4.0, 9.0]], feature_names=["a", "b", "c"]
    )
    assert mixture.marginal(["c", "a"]).feature_names == ("c", "a")
    assert mixture.condition({"b": 0.0}).feature_names == ("a", "c")
    np.testing.assert_allclose(mixture.condition("b", 0.0).marginal("c").covariance, [[9.0]])
    assert mixture.predict([[np.nan, 0.0]], targets="a", given=["c", "b"]).mean.tolist() == [0.0]
    assert MIXTURE.marginal(0).feature_names is None


def test_tables_of_other_kinds():
    """Masked entries count as NaN; whole numbers, single precision and no rows at all are rows like any others."""
    rows = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    masked = np.ma.masked_greater(rows, 5.5)
    expected = np.where(rows > 5.5, np.nan, rows)
    assert np.array_equal(MIXTURE.log_density(masked), MIXTURE.log_density(expected))
    assert np.array_equal(MIXTURE.log_density(rows.astype(int)), MIXTURE.log_density(rows))
    assert np.array_equal(MIXTURE.log_density(rows.astype(np.float32)), MIXTURE.log_density(rows))
    assert np.array_equal(MIXTURE.impute(rows.astype(int)), rows)
    empty = np.empty((0, 3))
    assert MIXTURE.log_density(empty).shape == (0,)
    assert MIXTURE.responsibilities(empty).shape == (0, 2)
    assert MIXTURE.impute(empty).shape == (0, 3)
    assert MIXTURE.predict(empty, [0, 1]).mean.shape == (0, 2)
    assert MIXTURE.is_outlier(empty, 0.1, rng=0).shape == (0,)
    assert MIXTURE.sample(0, 0)[0].shape == (0, 3)
