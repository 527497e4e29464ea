"""``BayesianGaussianMixture``: exact evidence where there is one, scikit-learn's posterior where the models agree."""

import numpy as np
import pytest
from scipy.special import multigammaln
from sklearn.mixture import BayesianGaussianMixture as Reference

import caviar as cv

pytestmark = pytest.mark.first_guess

FAITHFUL = cv.datasets.load_faithful().values


def normal_wishart_evidence(X, mean, mean_precision, df, inverse_scale):
    """Return log p(x) of rows from one Gaussian under a Normal-Wishart prior."""
    n, d = X.shape
    centre = X.mean(axis=0)
    scatter = (X - centre).T @ (X - centre)
    shift = mean_precision * n / (mean_precision + n) * np.outer(centre - mean, centre - mean)
    log_det = [np.linalg.slogdet(m)[1] for m in (inverse_scale, inverse_scale + scatter + shift)]
    return (
        -0.5 * n * d * np.log(np.pi)
        + multigammaln(0.5 * (df + n), d)
        - multigammaln(0.5 * df, d)
        + 0.5 * (df * log_det[0] - (df + n) * log_det[1])
        + 0.5 * d * np.log(mean_precision / (mean_precision + n))
    )


@pytest.mark.parametrize(
    "prior",
    [
        {"covariance_prior": "empirical", "mean_precision_prior": 1.0},
        {
            "mean_prior": [3.0, 60.0],
            "mean_precision_prior": 0.3,
            "degrees_of_freedom_prior": 4.5,
            "covariance_prior": [[2.0, 1.0], [1.0, 30.0]],
        },
    ],
)
def test_one_component_gives_the_exact_evidence(prior):
    mixture = cv.BayesianGaussianMixture(1, **prior).fit(FAITHFUL)
    exact = normal_wishart_evidence(
        FAITHFUL,
        mixture.mean_prior_,
        mixture.mean_precision_prior_,
        mixture.degrees_of_freedom_prior_,
        mixture.covariance_prior_,
    )
    np.testing.assert_allclose(mixture.elbo_, exact, rtol=1e-13, atol=1e-10)


def test_covariance_prior_means_what_it_means_in_scikit_learn():
    """With the same prior both converge to the same factors; its bound lacks terms, so that is not compared."""
    prior = {
        "weight_concentration_prior": 0.7,
        "mean_prior": np.array([3.0, 60.0]),
        "mean_precision_prior": 0.3,
        "degrees_of_freedom_prior": 4.5,
        "covariance_prior": np.array([[2.0, 1.0], [1.0, 30.0]]),
        "random_state": 0,
    }
    ours = cv.BayesianGaussianMixture(2, tol=1e-14, **prior).fit(FAITHFUL)
    theirs = Reference(
        n_components=2,
        weight_concentration_prior_type="dirichlet_distribution",
        reg_covar=0,
        tol=1e-13,
        max_iter=2000,
        **prior,
    ).fit(FAITHFUL)
    order, their_order = ours.weights_.argsort(), theirs.weights_.argsort()
    for name in (
        "weights_",
        "means_",
        "covariances_",
        "precisions_",
        "weight_concentration_",
        "degrees_of_freedom_",
        "mean_precision_",
    ):
        value, reference = getattr(ours, name)[order], np.asarray(getattr(theirs, name))[their_order]
        np.testing.assert_allclose(value, reference, rtol=1e-6, err_msg=name)
    np.testing.assert_allclose(
        ours.predict_proba(FAITHFUL)[:, order], theirs.predict_proba(FAITHFUL)[:, their_order], atol=1e-6
    )


@pytest.mark.parametrize("family", ["joint", "independent"])
def test_the_attributes_are_the_expectations_that_they_are_said_to_be(family):
    mixture = cv.BayesianGaussianMixture(2, mean_precision_family=family, random_state=0).fit(FAITHFUL)
    posterior = mixture.posterior_
    precision = posterior["theta"].precision_marginal if family == "joint" else posterior["precision"]
    np.testing.assert_array_equal(mixture.weights_, posterior["weights"].mean)
    np.testing.assert_allclose(mixture.precisions_, precision.mean, rtol=1e-14)
    np.testing.assert_allclose(mixture.covariances_ @ mixture.precisions_, [np.eye(2)] * 2, atol=1e-10)
    assert mixture.elbo_ == mixture.lower_bound_ == posterior.elbo
    assert mixture.elbo_trace_.shape == (mixture.n_iter_ + 1,)


def test_the_independent_form_takes_the_prior_precision_of_the_means_itself():
    """A number counts in units of the inverse covariance of the data."""
    number = cv.BayesianGaussianMixture(
        2, mean_precision_family="independent", mean_precision_prior=0.5, random_state=0
    )
    number.fit(FAITHFUL)
    # the correlations of the data count as if there were a row more for each column
    shrunk = np.cov(FAITHFUL.T, bias=True) * np.where(np.eye(2), 1, len(FAITHFUL) / (len(FAITHFUL) + 2))
    matrix = cv.BayesianGaussianMixture(
        2,
        mean_precision_family="independent",
        mean_precision_prior=0.5 * np.linalg.inv(shrunk),
        random_state=0,
    ).fit(FAITHFUL)
    np.testing.assert_allclose(matrix.means_, number.means_, rtol=1e-12)
    np.testing.assert_allclose(matrix.elbo_, number.elbo_, rtol=1e-12)


@pytest.mark.slow
def test_restarts_never_end_lower():
    one = cv.BayesianGaussianMixture(6, random_state=3).fit(FAITHFUL)
    several = cv.BayesianGaussianMixture(6, random_state=3, n_init=4).fit(FAITHFUL)
    assert several.elbo_ >= one.elbo_
    assert several.posterior_.restart_elbos.shape == (4,)


def test_more_components_than_rows_are_left_at_their_prior():
    mixture = cv.BayesianGaussianMixture(8, random_state=0)
    with pytest.warns(cv.CaviarWarning, match="3 rows, fewer than the 8 components"):
        mixture.fit([[0.0, 1.0], [1.0, 0.0], [9.0, 9.0]])
    assert np.all(np.isfinite(mixture.covariances_))
    assert np.isfinite(mixture.elbo_)
