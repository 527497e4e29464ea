"""The fit depends on the weighted empirical distribution only, and follows the units of the columns."""

import numpy as np
import pytest
from sklearn.base import clone

import caviar as cv
from caviar.estimators.tables.data_scale import scale_of

pytestmark = pytest.mark.first_guess

FAITHFUL = cv.datasets.load_faithful().values
N = len(FAITHFUL)

ESTIMATORS = {
    "em": cv.GaussianMixture(2, tol=1e-12, random_state=0),
    "joint": cv.BayesianGaussianMixture(2, tol=1e-12, random_state=0),
    "independent": cv.BayesianGaussianMixture(
        2, mean_precision_family="independent", tol=1e-12, random_state=0
    ),
}


@pytest.fixture(params=ESTIMATORS)
def estimator(request):
    return ESTIMATORS[request.param]


def results(estimator, X, **arguments):
    """Return the fitted attributes, components in the order of their weights."""
    estimator.fit(X, **arguments)
    order = estimator.weights_.argsort()
    return {
        "weights": estimator.weights_[order],
        "means": estimator.means_[order],
        "covariances": estimator.covariances_[order],
        "elbo": estimator.elbo_,
        "log_densities": estimator.score_samples(X),
        "responsibilities": estimator.predict_proba(X)[:, order],
    }


def assert_same(one, other, rtol, names=None):
    for name in names or one:
        np.testing.assert_allclose(one[name], other[name], rtol=rtol, atol=1e-14, err_msg=name)


@pytest.mark.thinned(3)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_order_of_the_rows_does_not_matter(estimator):
    # so many iterations that parameters are settled too, which a settled bound leaves free by its root
    estimator = clone(estimator).set_params(tol=0.0, max_iter=30)
    order = np.random.default_rng(0).permutation(N)
    plain, permuted = results(estimator, FAITHFUL), results(estimator, FAITHFUL[order])
    back = {**permuted, **{n: permuted[n][np.argsort(order)] for n in ("log_densities", "responsibilities")}}
    assert_same(plain, back, 1e-8)


def test_a_weight_of_two_is_the_row_twice_and_of_zero_no_row(estimator):
    weights = np.random.default_rng(1).integers(0, 4, N)
    weighted = results(estimator, FAITHFUL, sample_weight=weights)
    repeated = results(estimator, np.repeat(FAITHFUL, weights, axis=0))
    # a settled objective leaves the parameters free by about the root of its own rounding
    assert_same(weighted, repeated, 1e-6, ["weights", "means", "covariances"])
    assert_same(weighted, repeated, 1e-12, ["elbo"])


def test_weights_of_one_are_no_weights(estimator):
    plain, weighted = results(estimator, FAITHFUL), results(estimator, FAITHFUL, sample_weight=np.ones(N))
    # sums with and without weights are added up in other orders, which a secant step near the end makes larger
    assert_same(plain, weighted, 1e-6, ["weights", "means", "covariances", "log_densities"])
    assert_same(plain, weighted, 1e-12, ["elbo"])


@pytest.mark.thinned(24)
@pytest.mark.parametrize(
    ("factor", "shift"),
    [
        (1e3, 0.0),
        (1e-3, 1e4),
        (np.array([1e5, 1e-5]), np.array([-7.0, 3.0])),
        (1e150, 0.0),
        (1e-150, 0.0),
        (np.array([1e140, 1e-140]), 0.0),
    ],
)
def test_other_units_give_the_transformed_fit(estimator, factor, shift):
    """From the start on, also with components enough for many optima: in the same iterations, in the same order.

    EM ends there, too, but it also starts from k-means in the original units, and names components as the start does
    that wins.
    """
    factor = np.broadcast_to(factor, 2)
    is_bayesian = isinstance(estimator, cv.BayesianGaussianMixture)
    estimator = clone(estimator).set_params(n_components=3, tol=1e-8 if is_bayesian else 1e-14)
    plain, other = clone(estimator).fit(FAITHFUL), clone(estimator).fit(FAITHFUL * factor + shift)
    gain = N * np.log(factor).sum()
    np.testing.assert_allclose(other.elbo_ + gain, plain.elbo_, rtol=1e-8)
    if is_bayesian:
        assert other.n_iter_ == plain.n_iter_
        np.testing.assert_allclose(other.elbo_trace_ + gain, plain.elbo_trace_, rtol=1e-8)
    before, after = ([0, 1, 2] if is_bayesian else own.weights_.argsort() for own in (plain, other))
    # a likelihood is flat near its top: weights are told to the root of its digits
    np.testing.assert_allclose(
        other.weights_[after], plain.weights_[before], rtol=1e-6 if is_bayesian else 1e-5
    )
    np.testing.assert_allclose((other.means_[after] - shift) / factor, plain.means_[before], rtol=1e-6)
    covariances = other.covariances_[after] / factor[:, None] / factor
    np.testing.assert_allclose(covariances, plain.covariances_[before], rtol=1e-5)
    log_densities = other.score_samples(FAITHFUL * factor + shift)
    np.testing.assert_allclose(log_densities + gain / N, plain.score_samples(FAITHFUL), rtol=1e-5)
    responsibilities = other.predict_proba(FAITHFUL * factor + shift)[:, after]
    np.testing.assert_allclose(
        responsibilities, plain.predict_proba(FAITHFUL)[:, before], atol=1e-6 if is_bayesian else 1e-5
    )


@pytest.mark.thinned(9)
@pytest.mark.parametrize("n_jobs", [1, 2, -1])
def test_threads_give_the_same_bits(estimator, n_jobs):
    X = np.random.default_rng(2).standard_normal((9_000, 2)) + np.repeat([[0.0], [4.0], [9.0]], 3_000, axis=0)
    plain = results(estimator, X)
    other = results(clone(estimator).set_params(n_jobs=n_jobs), X)
    for name in plain:
        np.testing.assert_array_equal(plain[name], other[name], err_msg=name)


@pytest.mark.thinned(3)
def test_a_random_state_fixes_the_bits(estimator):
    one, other = (results(estimator, FAITHFUL) for _ in range(2))
    for name in one:
        np.testing.assert_array_equal(one[name], other[name])
    for state in (np.random.default_rng(4), np.random.RandomState(4), None):
        clone(estimator).set_params(random_state=state).fit(FAITHFUL)


@pytest.mark.thinned(3)
@pytest.mark.parametrize(
    "X",
    [
        np.tile([[1.0, 0.1, 1e9 / 3]], (25, 1)),
        np.column_stack([FAITHFUL, np.full(N, 0.1)]),
        np.column_stack([FAITHFUL, np.full(N, -1e9 / 3)]),
        np.column_stack([FAITHFUL, FAITHFUL.sum(axis=1)]),
        np.zeros((7, 2)),
        [[3.0, 4.0]],
        np.random.default_rng(3).standard_normal((6, 20)),
        FAITHFUL > 3,
        FAITHFUL.astype(np.int16),
        FAITHFUL.astype(np.float32),
        np.asfortranarray(FAITHFUL)[::-2],
    ],
    ids=[
        "one row, repeated",
        "constant column",
        "large constant column",
        "collinear column",
        "zeros",
        "one row",
        "fewer rows than columns",
        "booleans",
        "integers",
        "single precision",
        "strides",
    ],
)
@pytest.mark.parametrize("name", ["joint", "independent", "em"])
@pytest.mark.filterwarnings(
    "ignore::caviar.CollapseWarning", "ignore:X has 1 row, fewer than:caviar.CaviarWarning"
)
def test_awkward_tables_give_finite_fits(name, X):
    estimator = clone(ESTIMATORS[name]).set_params(tol=1e-8)
    if name == "em" and len(X) == 1:
        with pytest.raises(cv.DataError, match="2 components need at least"):
            estimator.fit(X)
        return
    estimator.fit(X)
    for attribute in ("weights_", "means_", "covariances_", "precisions_", "elbo_trace_"):
        assert np.all(np.isfinite(getattr(estimator, attribute))), attribute
    assert np.all(np.isfinite(estimator.score_samples(X)))
    # terms of opposite signs may nearly cancel, from the first iteration of a fit that begins near its end
    size = sum(abs(term) for term in estimator.posterior_.elbo_terms.values())
    assert np.all(np.diff(estimator.elbo_trace_) >= -1e-9 * size)


# -- what default priors are made of -------------------------------------------------------------------------------


def test_location_and_scale_are_those_of_the_table():
    scale = scale_of(FAITHFUL)
    np.testing.assert_allclose(scale.mean, FAITHFUL.mean(axis=0), rtol=1e-14)
    np.testing.assert_allclose(scale.unit, FAITHFUL.std(axis=0), rtol=1e-14)
    shrunk = np.corrcoef(FAITHFUL.T)[0, 1] * N / (N + 2)
    np.testing.assert_allclose(scale.correlation, [[1, shrunk], [shrunk, 1]], rtol=1e-13)
    np.testing.assert_allclose(scale.precision @ scale.covariance, np.eye(2), atol=1e-12)


def test_scale_takes_weights_as_repetitions():
    weights = np.random.default_rng(0).integers(0, 3, N)
    one, other = scale_of(FAITHFUL, weights.astype(float)), scale_of(np.repeat(FAITHFUL, weights, axis=0))
    for name in ("mean", "unit", "correlation"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-13)


def test_scale_over_blocks_is_scale_over_all():
    X = np.random.default_rng(0).standard_normal((150_000, 3)) * [1, 1e6, 1e-6] + [1e3, 0, 5]
    scale = scale_of(X)
    np.testing.assert_allclose(scale.mean, X.mean(axis=0), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(scale.unit, X.std(axis=0), rtol=1e-9)


def test_a_common_offset_costs_no_digits():
    spread = np.array([0.0, 1.0, 2.0, 3.0])
    np.testing.assert_allclose(scale_of((1e15 + spread)[:, None]).unit, spread.std(), rtol=1e-14)


@pytest.mark.parametrize("constant", [0.1, 1e9 / 3, -1e300, 0.0])
def test_a_constant_column_is_seen_through_rounding(constant):
    X = np.column_stack([np.full(1001, constant), np.arange(1001.0)])
    scale = scale_of(X)
    assert scale.mean[0] == constant
    assert scale.unit[0] == scale.unit[1]
    assert scale.correlation[0, 1] == 0


@pytest.mark.parametrize("factor", [1e-160, 1e160])
def test_units_beyond_floating_point_are_refused_in_words(factor):
    with pytest.raises(cv.DataError, match="other units"):
        cv.BayesianGaussianMixture(2).fit(FAITHFUL * factor)


@pytest.mark.parametrize("structure", ["full", "tied"])
def test_where_a_fit_with_missing_entries_begins_does_not_depend_on_an_offset(structure):
    rng = np.random.default_rng(1)
    labels = np.arange(60) % 3
    rows = np.round((rng.normal(size=(60, 2)) + 4.0 * labels[:, None]) * 1024) / 1024
    rows[rng.random(rows.shape) < 0.2] = np.nan

    def begun(at):
        mixture = cv.BayesianGaussianMixture(3, covariance_type=structure, init_params=labels, max_iter=0)
        return mixture.fit(rows + at).elbo_

    np.testing.assert_allclose(begun(2.0**27), begun(0.0), rtol=1e-9)
