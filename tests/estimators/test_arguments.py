"""No argument is accepted and ignored; an impossible one is refused by its name, in words that help."""

import inspect
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import caviar as cv

pytestmark = pytest.mark.first_guess

FAITHFUL = cv.datasets.load_faithful().values
CLASSES = (cv.GaussianMixture, cv.BayesianGaussianMixture, cv.KnownVarianceMixture)


@pytest.mark.parametrize("estimator_class", CLASSES)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_components": 0}, "n_components must be a whole number of at least 1; got 0"),
        ({"n_components": 2.0}, "n_components"),
        ({"n_components": True}, "n_components"),
        ({"n_components": "2"}, "n_components"),
        ({"tol": -1e-3}, "tol must be a finite number at least 0"),
        ({"tol": None}, "tol"),
        ({"tol": np.nan}, "tol"),
        ({"max_iter": -1}, "max_iter"),
        ({"max_iter": 1.5}, "max_iter"),
        ({"n_init": 0}, "n_init"),
        ({"n_jobs": 0}, "n_jobs"),
        ({"n_jobs": -2}, "n_jobs"),
        ({"n_jobs": 2, "executor": "tcp://127.0.0.1:1"}, "got n_jobs=2 and executor="),
        ({"executor": 0}, "executor is a number"),
        ({"random_state": "seed"}, "random_state"),
        ({"random_state": -1}, "random_state"),
    ],
)
def test_impossible_settings_are_refused_by_name(estimator_class, arguments, message):
    with pytest.raises(cv.ParameterError, match=message):
        estimator_class(**arguments).fit(FAITHFUL[:, :1])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"covariance_type": "banded"}, "covariance_type must be .full., .tied., .diag., .*got .banded."),
        ({"covariance_type": None}, "covariance_type"),
        ({"reg_covar": 1e-6}, "reg_covar of BayesianGaussianMixture must be 0.*a larger covariance_prior"),
        (
            {"mean_precision_family": "both"},
            "mean_precision_family must be 'joint' or 'independent'.*got 'both'",
        ),
        ({"weight_concentration_prior": 0}, "weight_concentration_prior"),
        ({"weight_concentration_prior": [1, -1]}, "weight_concentration_prior"),
        (
            {"weight_concentration_prior": [1, 1, 1]},
            r"weight_concentration_prior must have shape \(2,\).*got shape \(3,\)",
        ),
        ({"mean_prior": [1.0, 2.0, 3.0]}, r"mean_prior must have shape \(2,\).*got shape \(3,\)"),
        ({"mean_prior": "mean"}, "mean_prior"),
        ({"mean_precision_prior": 0}, "mean_precision_prior"),
        ({"mean_precision_prior": np.eye(2)}, "mean_precision_prior"),
        ({"degrees_of_freedom_prior": 1}, "degrees_of_freedom_prior must be above 1; got 1"),
        ({"covariance_prior": np.ones((2, 2))}, "covariance_prior must be positive definite"),
        ({"covariance_prior": [[1.0, 0.5], [0.0, 1.0]]}, "covariance_prior must be symmetric"),
        ({"covariance_prior": 2.0}, "covariance_prior must have shape"),
        ({"n_components": "aut"}, "n_components must be a whole number or 'auto'; got 'aut'"),
    ],
)
def test_impossible_settings_of_the_bayesian_mixture_are_refused_by_name(arguments, message):
    with pytest.raises(cv.ParameterError, match=message):
        cv.BayesianGaussianMixture(**{"n_components": 2, **arguments}).fit(FAITHFUL)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"covariance_type": "banded"}, "covariance_type"),
        ({"reg_covar": -1e-6}, "reg_covar"),
        ({"reg_covar": "none"}, "reg_covar.*'auto'"),
        ({"weights_init": [0.5, 0.4]}, "weights_init must sum to one; got .*, whose sum is 0.9"),
        ({"weights_init": [1.5, -0.5]}, "weights_init must not be negative"),
        ({"weights_init": np.float32([0.5, 0.49999])}, "weights_init must sum to one"),
        ({"precisions_init": np.eye(3)}, "precisions_init"),
        ({"means_init": FAITHFUL[:3]}, r"means_init must have shape \(2, 2\)"),
        ({"means_init": FAITHFUL[:2], "weights_init": [0.5, 0.4]}, "weights_init"),
        ({"means_init": FAITHFUL[:2], "precisions_init": np.eye(3)}, "precisions_init"),
        ({"means_init": FAITHFUL[:2], "precisions_init": -np.ones((2, 2, 2))}, "precisions_init"),
        ({"prior": 3}, "prior must be None or a mapping"),
        ({"prior": {"alpha": 1}}, "prior has an unknown key 'alpha'"),
        ({"prior": {"mean": [0, 0]}}, "both 'mean' and 'mean_precision'"),
        ({"prior": {"degrees_of_freedom": 5}}, "'degrees_of_freedom' but no 'covariance'"),
        ({"prior": {"degrees_of_freedom": 3, "covariance": np.eye(2)}}, "above 3"),
        ({"prior": {"weight_concentration": 0.5}}, "at least 1"),
        ({"prior": {"covariance": -np.eye(2)}}, "positive definite"),
    ],
)
def test_impossible_arguments_of_em_are_refused_by_name(arguments, message):
    with pytest.raises(cv.ParameterError, match=message):
        cv.GaussianMixture(2, **arguments).fit(FAITHFUL)


def test_em_needs_a_row_for_each_component():
    weights = np.zeros(len(FAITHFUL))
    weights[:3] = 1.0
    with pytest.raises(cv.DataError, match="4 components need at least as many rows with weight; got 3"):
        cv.GaussianMixture(4).fit(FAITHFUL, sample_weight=weights)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(5), "shape"),
        (np.full(272, -1.0), "[Nn]egative"),
        (np.full(272, np.nan), "NaN"),
        (np.zeros(272), "zero"),
    ],
)
def test_impossible_weights_are_refused(weights, message):
    with pytest.raises(ValueError, match=message):
        cv.BayesianGaussianMixture(2).fit(FAITHFUL, sample_weight=weights)


OTHER = {
    "n_components": 3,
    "mean_precision_family": "independent",
    "covariance_type": "diag",
    "init_params": "random",
    "weight_concentration_prior_type": "dirichlet_process",
    "tol": 1e-2,
    "max_iter": 2,
    "reg_covar": 0.5,
    "prior": {"covariance": np.eye(2)},
    "means_init": FAITHFUL[:2],
    "weight_concentration_prior": 10.0,
    "mean_prior": np.array([0.0, 0.0]),
    "mean_precision_prior": 50.0,
    "degrees_of_freedom_prior": 40.0,
    "covariance_prior": np.eye(2),
    "prior_variance": 1.0,
    "prior_mean": 50.0,
    "variance": 9.0,
    "weights": [0.9, 0.1],
}
START = {"means_init": FAITHFUL[:2]}
TOGETHER = {
    "weights_init": {**START, "weights_init": [0.9, 0.1]},
    "precisions_init": {**START, "precisions_init": np.array([np.eye(2), 9 * np.eye(2)])},
}
BASES = {
    **dict.fromkeys(TOGETHER, START),
    # the race of starts ends near where the fit does, and leaves little to settle
    "tol": {"n_components": 4, "tol": 1e-13},
    "max_iter": {"n_components": 4, "tol": 1e-13},
}
ELSEWHERE = {
    "fixed": "test_fixed",
    "semi_supervised": "test_labels",
    "warm_start": "test_warm_starts",
    "n_init": "test_restarts_never_end_lower",
    "random_state": "test_a_random_state_fixes_the_bits",
    "n_jobs": "does not change results",
    "executor": "does not change results",
    "verbose": "test_verbose_reports_each_iteration",
    "uncertainty": "tests of what posteriors show",
    "responsibilities": "tests of truncated responsibilities",
    "swaps": "test_swaps",
}


@pytest.mark.thinned(3)
@pytest.mark.parametrize("estimator_class", CLASSES)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_argument_changes_the_fit(estimator_class):
    X = FAITHFUL if estimator_class is not cv.KnownVarianceMixture else FAITHFUL[:, :1]

    def trace(arguments):
        return estimator_class(**arguments).fit(X).elbo_trace_

    plain = {"n_components": 2, "random_state": 0}
    plain_trace = trace(plain)
    for name in inspect.signature(estimator_class).parameters:
        if name in ELSEWHERE or (estimator_class, name) == (cv.BayesianGaussianMixture, "reg_covar"):
            continue
        base = plain | BASES.get(name, {})
        changed = {**base, **TOGETHER.get(name, {name: OTHER.get(name)})}
        traces = trace(base) if name in BASES else plain_trace, trace(changed)
        assert traces[0].shape != traces[1].shape or not np.allclose(*traces, rtol=1e-9, atol=0), name


@pytest.mark.parametrize("estimator_class", CLASSES)
def test_arguments_are_kept_as_given_and_cloned(estimator_class):
    estimator = estimator_class(3, tol=1e-3, random_state=5)
    before = estimator.get_params()
    estimator.fit(FAITHFUL[:, :1])
    assert estimator.get_params() == before == clone(estimator).get_params()


def test_reaching_max_iter_is_told():
    with pytest.warns(ConvergenceWarning, match="BayesianGaussianMixture: max_iter.*raise max_iter or tol"):
        mixture = cv.BayesianGaussianMixture(6, max_iter=1, tol=1e-13, random_state=0).fit(FAITHFUL)
    assert not mixture.converged_
    assert mixture.n_iter_ == 1


def test_verbose_reports_each_iteration():
    told = []
    mixture = cv.BayesianGaussianMixture(2, random_state=0, verbose=told.append).fit(FAITHFUL)
    np.testing.assert_array_equal([progress.elbo for progress in told], mixture.elbo_trace_[1:])


@pytest.mark.parametrize("estimator_class", CLASSES)
@pytest.mark.parametrize("method", ["predict", "predict_proba", "score_samples", "score"])
def test_unfitted_estimators_say_so(estimator_class, method):
    with pytest.raises(NotFittedError):
        getattr(estimator_class(), method)(FAITHFUL[:, :1])
    with pytest.raises(NotFittedError):
        estimator_class().sample()


def test_names_of_columns_are_kept():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(FAITHFUL, columns=["eruptions", "waiting"])
    mixture = cv.GaussianMixture(2, random_state=0).fit(table)
    assert mixture.feature_names_in_.tolist() == ["eruptions", "waiting"]
    with pytest.raises(ValueError, match="feature names"):
        mixture.predict(table[["waiting", "eruptions"]])
    series = cv.KnownVarianceMixture(2, random_state=0).fit(table["eruptions"])
    assert series.n_features_in_ == 1


def test_fit_predict_is_fit_then_predict():
    mixture = cv.BayesianGaussianMixture(2, random_state=0)
    labels = mixture.fit_predict(FAITHFUL)
    np.testing.assert_array_equal(labels, mixture.predict(FAITHFUL))
    np.testing.assert_array_equal(labels, mixture.predict_proba(FAITHFUL).argmax(axis=1))
    np.testing.assert_allclose(mixture.score(FAITHFUL), mixture.score_samples(FAITHFUL).mean(), rtol=1e-15)


@pytest.mark.parametrize(
    "estimator",
    [
        cv.GaussianMixture(2),
        cv.BayesianGaussianMixture(2),
        cv.MixedMixture(2),
        cv.LatentDirichletAllocation(2),
        cv.HiddenMarkovModel(2),
        cv.HiddenMarkovModel(2, emission="categorical"),
    ],
    ids=lambda own: f"{type(own).__name__} {getattr(own, 'emission', '')}",
)
def test_what_is_no_table_is_refused_with_the_way_to_make_one(estimator):
    shapes = {
        (4,): np.arange(4.0),
        (4, 2, 3): np.zeros((4, 2, 3)),
        (): np.float64(3.0),
    }
    for shape, values in shapes.items():
        with pytest.raises(cv.DataError, match=re.escape(f"shape (N, D); got shape {shape}")) as caught:
            estimator.fit(values)
        assert ("X[:, None] if it is one column, X[None, :] if it is one row" in str(caught.value)) == (
            len(shape) == 1
        )
    with pytest.raises(cv.DataError, match=r"np\.array\(X\)\[:, None\]"):
        estimator.fit([0.0, 1.0, 2.0])
    with pytest.raises(cv.DataError, match=r"X\.to_frame\(\), a table of one column"):
        estimator.fit(pd.Series([0.0, 1.0, 2.0]))


def test_sequences_of_equal_length_are_stacked():
    sequences = np.random.default_rng(0).standard_normal((4, 6, 2))
    with pytest.raises(cv.DataError, match="lengths=") as caught:
        cv.HiddenMarkovModel(2).fit(sequences)
    X = sequences
    assert "X.reshape(-1, X.shape[2]), and give lengths=[X.shape[1]] * len(X)" in str(caught.value)
    cv.HiddenMarkovModel(2, random_state=0).fit(X.reshape(-1, X.shape[2]), lengths=[X.shape[1]] * len(X))
