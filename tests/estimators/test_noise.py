"""Rows measured with known errors: the exact marginal likelihood, the true spread recovered, refusals."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import caviar as cv

pytestmark = pytest.mark.first_guess

RNG = np.random.default_rng(0)
LABELS = RNG.integers(0, 2, 300)
TRUE = np.where(LABELS[:, None] == 0, [0.0, 0.0], [5.0, 4.0]) + RNG.normal(size=(300, 2)) * [0.5, 0.7]
VARIANCES = RNG.uniform(0.2, 2.0, (300, 2))
X = TRUE + RNG.normal(size=(300, 2)) * np.sqrt(VARIANCES)
STRUCTURES = ["full", "tied", "diag", "spherical", "unit"]


def log_likelihood(mixture, rows, errors):
    densities = [
        [w * multivariate_normal(m, c + s).pdf(x) for x, s in zip(rows, errors, strict=True)]
        for w, m, c in zip(mixture.weights_, mixture.means_, mixture.covariance_matrices(), strict=True)
    ]
    return np.log(np.sum(densities, axis=0))


@pytest.mark.thinned(6)
@pytest.mark.parametrize("structure", STRUCTURES)
def test_the_objective_of_em_is_the_likelihood_of_what_was_measured(structure):
    mixture = cv.GaussianMixture(2, covariance_type=structure, random_state=0).fit(
        X, noise_covariance=VARIANCES
    )
    errors = VARIANCES[:, :, None] * np.eye(2)
    exact = log_likelihood(mixture, X, errors)
    np.testing.assert_allclose(mixture.elbo_, exact.sum(), rtol=1e-10)
    np.testing.assert_allclose(mixture.score_samples(X, VARIANCES), exact, rtol=1e-9)
    np.testing.assert_allclose(mixture.means_[mixture.means_[:, 0].argsort()], [[0, 0], [5, 4]], atol=0.3)


def test_correlated_errors():
    roots = RNG.normal(size=(300, 2, 2))
    errors = roots @ roots.swapaxes(1, 2) + 0.1 * np.eye(2)
    rows = TRUE + np.einsum("nij,nj->ni", np.linalg.cholesky(errors), RNG.normal(size=(300, 2)))
    mixture = cv.GaussianMixture(2, random_state=0).fit(rows, noise_covariance=errors)
    np.testing.assert_allclose(mixture.elbo_, log_likelihood(mixture, rows, errors).sum(), rtol=1e-10)


@pytest.mark.parametrize("structure", ["full", "diag"])
def test_the_spread_is_that_of_the_true_values(structure):
    arguments = {"covariance_type": structure, "random_state": 0}
    seen = cv.GaussianMixture(2, **arguments).fit(X)
    true = cv.GaussianMixture(2, **arguments).fit(X, noise_covariance=VARIANCES)
    spread = [np.trace(m.covariance_matrices().mean(axis=0)) for m in (seen, true)]
    assert abs(spread[1] - (0.5**2 + 0.7**2)) < 0.25
    assert spread[0] > 2 * spread[1]
    labels = true.predict(X, noise_covariance=VARIANCES)
    agree = np.mean(labels == LABELS)
    assert max(agree, 1 - agree) > 0.97
    np.testing.assert_array_equal(true.fit_predict(X, noise_covariance=VARIANCES), labels)


def test_a_bayesian_bound_stays_below_that_of_tiny_errors():
    """Errors that vanish lead to the mixture of the rows themselves."""
    tiny = cv.BayesianGaussianMixture(2, random_state=0).fit(X, noise_covariance=[1e-6, 1e-6])
    none = cv.BayesianGaussianMixture(2, random_state=0).fit(X)
    assert tiny.elbo_ <= none.elbo_ + 1e-3
    np.testing.assert_allclose(tiny.means_, none.means_, atol=1e-3)


@pytest.mark.parametrize(
    ("structure", "noise", "message"),
    [
        ("diag", np.broadcast_to(np.eye(2), (300, 2, 2)), "must hold variances"),
        ("full", [1.0, -1.0], "must be positive"),
        ("full", np.ones((5, 2)), "must have shape"),
        ("full", np.full((2, 2), 1.0), "positive definite"),
    ],
)
def test_impossible_errors_are_refused(structure, noise, message):
    with pytest.raises(ValueError, match=message):
        cv.GaussianMixture(2, covariance_type=structure).fit(X, noise_covariance=noise)


def test_what_was_fitted_with_errors_is_asked_with_errors():
    with_errors = cv.GaussianMixture(2, random_state=0).fit(X, noise_covariance=VARIANCES)
    with pytest.raises(ValueError, match="give noise_covariance= of these rows"):
        with_errors.predict(X)
    without = cv.GaussianMixture(2, random_state=0).fit(X)
    with pytest.raises(ValueError, match="leave noise_covariance= out"):
        without.predict(X, noise_covariance=VARIANCES)
    missing = X.copy()
    missing[0, 0] = np.nan
    with pytest.raises(ValueError, match="cannot be fitted together with noise_covariance"):
        without.fit(missing, noise_covariance=VARIANCES)


def test_rows_with_errors_are_not_judged_by_the_density_of_true_values():
    mixture = cv.GaussianMixture(2, random_state=0).fit(X, noise_covariance=VARIANCES)
    for method in ("score_samples", "score", "bic", "aic", "is_outlier", "outlier_scores"):
        with pytest.raises(ValueError, match="density is that of their true values"):
            getattr(mixture, method)(X)
    parameters = 2 * 2 + 2 * 3 + 1
    np.testing.assert_allclose(
        mixture.bic(X, VARIANCES), -2 * mixture.elbo_ + parameters * np.log(len(X)), rtol=1e-9
    )
    np.testing.assert_array_equal(
        mixture.fit_transform(X, noise_covariance=VARIANCES), mixture.predict_proba(X, VARIANCES)
    )


@pytest.mark.parametrize("structure", ["full", "diag"])
def test_a_known_label_holds_however_far_its_row_is(structure):
    """Thousands of nats for another component, narrow and far from the middle, do not outweigh a label."""
    rows = np.array([[0.0, 0.0], [9.0, 9.0], [9.1, 9.0], [8.0, 8.0], [0.3, 0.1]])
    labels = np.array([0, 1, -1, 0, -1])
    covariance = np.array([1e-4, 1e-4])
    fixed = {
        "weights": [0.5, 0.5],
        "means": [[0.0, 0.0], [9.0, 9.0]],
        "covariances": [np.diag(covariance) if structure == "full" else covariance] * 2,
    }
    mixture = cv.GaussianMixture(
        2, covariance_type=structure, fixed=fixed, semi_supervised=True, random_state=0
    ).fit(rows, labels, noise_covariance=[0.5, 0.5])
    logs = np.log(0.5) + np.stack(
        [multivariate_normal(mean, (0.5 + 1e-4) * np.eye(2)).logpdf(rows) for mean in fixed["means"]], axis=1
    )
    known = labels >= 0
    exact = logs[known, labels[known]].sum() + np.logaddexp.reduce(logs[~known], axis=1).sum()
    np.testing.assert_allclose(mixture.elbo_, exact, rtol=1e-9)


@pytest.mark.thinned(8)
@pytest.mark.parametrize("estimator", [cv.GaussianMixture, cv.BayesianGaussianMixture])
@pytest.mark.parametrize("structure", ["full", "tied", "diag", "spherical"])
def test_rows_with_errors_are_added(estimator, structure):
    """As their errors vanish it is the mixture of exact rows; large ones are worth less than exact rows."""
    generator = np.random.default_rng(3)
    X = np.concatenate([generator.normal(size=(40, 2)), generator.normal(6.0, 1.0, size=(40, 2))])
    first, later = X[::2], X[1::2]

    def added(noise):
        mixture = estimator(2, covariance_type=structure, random_state=0, tol=1e-9, max_iter=5_000)
        if noise is None:
            return mixture.fit(first).partial_fit(later)
        errors = np.full(later.shape, noise)
        return mixture.partial_fit(first, noise_covariance=errors).partial_fit(later, noise_covariance=errors)

    def means(noise):
        found = added(noise).means_
        return found[found[:, 0].argsort()]

    np.testing.assert_allclose(means(1e-8), means(None), atol=2e-3)
    assert 1e-3 < np.abs(means(4.0) - means(None)).max() < 1.0


def test_added_rows_have_errors_where_the_first_have():
    X = np.random.default_rng(0).normal(size=(30, 2))
    noisy = cv.BayesianGaussianMixture(1, random_state=0).fit(X, noise_covariance=[0.1, 0.1])
    with pytest.raises(cv.ParameterError, match="give noise_covariance= of these rows, too"):
        noisy.partial_fit(X)
    with pytest.raises(cv.ParameterError, match="leave noise_covariance= out"):
        cv.BayesianGaussianMixture(1, random_state=0).fit(X).partial_fit(X, noise_covariance=[0.1, 0.1])
