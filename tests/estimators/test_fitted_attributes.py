"""Attributes of a fit follow from its posterior: setting one, or an entry of one, raises."""

import copy
import pickle

import numpy as np
import pytest
from sklearn.base import clone

import caviar as cv

pytestmark = pytest.mark.first_guess

FAITHFUL = cv.datasets.load_faithful().values
SHIFT = np.array([1.0, 0.0])
COUNTS = np.random.default_rng(0).poisson(2.0, (20, 6))
PARAMETERS = ("weights_", "means_", "covariances_", "precisions_", "precisions_cholesky_")
CASES = {
    "em": (cv.GaussianMixture(2, random_state=0), FAITHFUL, PARAMETERS),
    "bayesian": (
        cv.BayesianGaussianMixture(2, random_state=0),
        FAITHFUL,
        (*PARAMETERS, "weight_concentration_", "mean_precision_", "degrees_of_freedom_"),
    ),
    "process": (
        cv.BayesianGaussianMixture(
            2, weight_concentration_prior_type="dirichlet_process", covariance_type="tied", random_state=0
        ),
        FAITHFUL,
        ("weight_concentration_", "degrees_of_freedom_"),
    ),
    "known variance": (
        cv.KnownVarianceMixture(2, random_state=0),
        FAITHFUL[:, :1],
        ("weights_", "means_", "mean_variances_"),
    ),
    "topics": (
        cv.LatentDirichletAllocation(2, random_state=0, tol=1.0),
        COUNTS,
        ("components_", "exp_dirichlet_component_", "doc_topic_prior_", "topic_word_prior_"),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_setting_raises_before_and_after_a_fit(case):
    estimator, X, names = CASES[case]
    estimator = clone(estimator)
    for name in (*names, "posterior_", "elbo_", "elbo_trace_"):
        assert not hasattr(estimator, name)
        with pytest.raises(AttributeError, match=f"{name}|no setter"):
            setattr(estimator, name, 1.0)
    fitted = estimator.fit(X)
    for name in (*names, "posterior_", "elbo_", "elbo_trace_"):
        before = getattr(fitted, name)
        with pytest.raises(AttributeError, match=f"{name}|no setter"):
            setattr(fitted, name, before)


@pytest.mark.usefixtures("figures_of_factors")
@pytest.mark.thinned(2)
@pytest.mark.parametrize("case", CASES)
def test_entries_cannot_be_set_either(case):
    estimator, X, names = CASES[case]
    fitted = clone(estimator).fit(X)
    for same in (fitted, copy.deepcopy(fitted), pickle.loads(pickle.dumps(fitted))):
        for name in (*names, "elbo_trace_"):
            value = getattr(same, name)
            for part in value if isinstance(value, tuple) else (value,):
                if isinstance(part, np.ndarray) and name not in (
                    "precisions_cholesky_",
                    "exp_dirichlet_component_",
                ):
                    with pytest.raises(ValueError, match="read-only"):
                        part[...] = 0.0


def test_the_message_says_what_to_do():
    mixture = cv.GaussianMixture(2, random_state=0).fit(FAITHFUL)
    with pytest.raises(
        cv.FittedAttributeError, match=r"would not change them.*from_parameters\(weights, means, cov"
    ):
        mixture.means_ = mixture.means_ + 1.0
    with pytest.raises(
        cv.FittedAttributeError, match="precisions_cholesky_ of GaussianMixture is computed from the fit"
    ):
        mixture.precisions_cholesky_ = mixture.precisions_cholesky_
    with pytest.raises(cv.FittedAttributeError, match="add documents by partial_fit"):
        cv.LatentDirichletAllocation().components_ = np.ones((10, 5))


def test_what_the_message_says_takes_effect():
    mixture = cv.GaussianMixture(2, random_state=0).fit(FAITHFUL)
    moved = cv.GaussianMixture.from_parameters(mixture.weights_, mixture.means_ + SHIFT, mixture.covariances_)
    expected = mixture.score_samples(FAITHFUL)
    np.testing.assert_allclose(moved.score_samples(FAITHFUL + SHIFT), expected, rtol=1e-9)


@pytest.mark.slow
def test_fits_saved_and_loaded_have_them_too(tmp_path):
    mixture = cv.BayesianGaussianMixture(2, random_state=0).fit(FAITHFUL)
    mixture.save(tmp_path / "fit.caviar")
    again = cv.load(tmp_path / "fit.caviar")
    np.testing.assert_array_equal(again.means_, mixture.means_)
    with pytest.raises(cv.FittedAttributeError):
        again.means_ = mixture.means_
    assert again.fit(FAITHFUL).elbo_ == mixture.elbo_
