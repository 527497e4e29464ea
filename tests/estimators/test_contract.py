"""The estimators keep scikit-learn's contract: every check of ``check_estimator`` passes, none is expected to fail."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import caviar as cv
from caviar.estimators.mixtures.mixture import MixtureEstimator

# the checks fit with at most five iterations, so most end before the objective has settled
pytestmark = [
    pytest.mark.filterwarnings(
        "ignore:.*max_iter passes:sklearn.exceptions.ConvergenceWarning",
        "ignore::sklearn.exceptions.SkipTestWarning",
    ),
    pytest.mark.first_guess,
]


OTHER_STRUCTURES = ("tied", "diag", "spherical", "unit")


class KnownVarianceOfFirstColumn(cv.KnownVarianceMixture):
    """The mixture of the first column of a table: the checks use tables of any width."""

    def _validated(self, X, *, reset):
        return MixtureEstimator._validated(self, X, reset=reset)[:, :1]


class LabelledWhereKnown(cv.GaussianMixture):
    """The semi-supervised mixture that knows the labels of its components alone: the checks use any classes."""

    def _rows_to_fit(self, X, y, *others, reset):
        if y is not None:
            labels = np.asarray(y).ravel()
            y = np.where(np.isin(labels, range(self.n_components)), labels, -1)
        return super()._rows_to_fit(X, y, *others, reset=reset)


@pytest.mark.usefixtures("figures_of_factors")
@pytest.mark.thinned(36)
@parametrize_with_checks(
    [
        cv.GaussianMixture(),
        cv.GaussianMixture(2),
        cv.BayesianGaussianMixture(),
        cv.BayesianGaussianMixture(3),
        cv.BayesianGaussianMixture("auto", covariance_type="diag"),
        cv.BayesianGaussianMixture(mean_precision_family="independent"),
        cv.BayesianGaussianMixture(2, mean_precision_family="independent"),
        KnownVarianceOfFirstColumn(),
        LabelledWhereKnown(2, semi_supervised=True),
        *(cv.GaussianMixture(2, covariance_type=structure) for structure in OTHER_STRUCTURES),
        *(
            # the check of weights compares probabilities to seven digits, so the fits settle further than by default
            # and the optimum of the tied one is told apart by a prior that holds the means together
            cv.BayesianGaussianMixture(
                2,
                covariance_type=structure,
                tol=1e-12,
                mean_precision_prior=1.0 if structure == "tied" else None,
            )
            for structure in OTHER_STRUCTURES
        ),
        *(
            cv.BayesianGaussianMixture(2, covariance_type=structure, mean_precision_family="independent")
            for structure in OTHER_STRUCTURES
        ),
        cv.BayesianGaussianMixture(3, weight_concentration_prior_type="dirichlet_process"),
        cv.MixedMixture(2, tol=1e-9),
        cv.MixedMixture(1),
    ]
)
def test_scikit_learns_checks_pass(estimator, check):
    check(estimator)
