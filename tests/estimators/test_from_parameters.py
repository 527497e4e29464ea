"""Mixtures of known parameters: SciPy's densities, and the same as a fit that ends there."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import caviar as cv

pytestmark = pytest.mark.first_guess

FAITHFUL = cv.datasets.load_faithful().values


@pytest.mark.thinned(8)
@pytest.mark.parametrize("structure", ["full", "tied", "diag", "spherical", "unit"])
def test_known_parameters_are_evaluated_as_those_of_a_fit(structure, tmp_path):
    fitted = cv.GaussianMixture(3, covariance_type=structure, random_state=0).fit(FAITHFUL)
    covariances = None if structure == "unit" else fitted.covariances_
    known = cv.GaussianMixture.from_parameters(
        fitted.weights_, fitted.means_, covariances, covariance_type=structure, random_state=0
    )
    densities = [
        w * multivariate_normal(m, c).pdf(FAITHFUL)
        for w, m, c in zip(known.weights_, known.means_, known.covariance_matrices(), strict=True)
    ]
    np.testing.assert_allclose(known.score_samples(FAITHFUL), np.log(np.sum(densities, axis=0)), rtol=1e-9)
    np.testing.assert_allclose(
        known.predict_proba(FAITHFUL), np.transpose(densities / np.sum(densities, axis=0)), atol=1e-9
    )
    np.testing.assert_allclose(known.precisions_, fitted.precisions_)
    assert np.isnan(known.elbo_)
    known.save(tmp_path / "known.caviar")
    again = cv.load(tmp_path / "known.caviar")
    np.testing.assert_array_equal(again.score_samples(FAITHFUL), known.score_samples(FAITHFUL))
    assert known.sample(5, random_state=1)[0].shape == (5, 2)


@pytest.mark.thinned(8)
@pytest.mark.parametrize("structure", ["full", "tied", "diag", "spherical", "unit"])
def test_roots_of_precisions_are_those_of_scikit_learn(structure):
    from sklearn.mixture._gaussian_mixture import _compute_precision_cholesky

    mixture = cv.GaussianMixture(3, covariance_type=structure, random_state=0).fit(FAITHFUL)
    kind = "spherical" if structure == "unit" else structure
    expected = _compute_precision_cholesky(mixture.covariances_, kind)
    np.testing.assert_allclose(mixture.precisions_cholesky_, expected, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("units", [np.ones(3), np.array([1e-6, 1.0, 1e9])])
def test_rounding_is_not_asymmetry(units):
    """Covariances that scikit-learn found have other last bits below the diagonal, and so have their inverses."""
    from sklearn.mixture import GaussianMixture

    X = np.random.default_rng(0).normal(size=(400, 3)) * units
    found = GaussianMixture(2, random_state=0, reg_covar=0.0).fit(X)
    skewed = found.covariances_.copy()
    # an entry near zero has the rounding of the sum that it is
    roots = np.sqrt(np.diagonal(skewed, axis1=1, axis2=2))
    skewed[:, 0, 2] = 1e-16 * roots[:, 0] * roots[:, 2]
    skewed[:, 2, 0] = -skewed[:, 0, 2]
    for covariances in (found.covariances_, skewed, np.linalg.inv(np.linalg.inv(skewed))):
        mixture = cv.GaussianMixture.from_parameters(found.weights_, found.means_, covariances)
        # SciPy takes columns of such different units for collinear ones
        inner = 0.5 * (covariances + covariances.swapaxes(1, 2)) / np.outer(units, units)
        densities = [
            w * multivariate_normal(m, c).pdf(X / units)
            for w, m, c in zip(found.weights_, found.means_ / units, inner, strict=True)
        ]
        expected = np.log(sum(densities)) - np.log(units).sum()
        np.testing.assert_allclose(mixture.score_samples(X), expected, rtol=1e-7)
        again = cv.GaussianMixture.from_parameters(
            mixture.weights_, mixture.means_, np.linalg.inv(mixture.precisions_)
        )
        np.testing.assert_allclose(again.score_samples(X), expected, rtol=1e-7)


def test_precisions_of_a_model_may_be_asymmetric_by_rounding():
    obs, data = cv.Plate("obs"), {"x": np.random.default_rng(1).normal(size=(5, 2))}
    precision = np.array([[2.0, 1e-17], [-1e-17, 0.5]])

    def elbo(known):
        return (
            cv.Model(
                cv.MultivariateNormal("x", cv.MultivariateNormal("m", np.zeros(2), known), known, plates=obs)
            )
            .fit(data)
            .elbo
        )

    np.testing.assert_allclose(elbo(precision), elbo(np.diag([2.0, 0.5])), rtol=1e-14)
    with pytest.raises(cv.ModelError, match="must be symmetric"):
        elbo(precision + np.array([[0.0, 1e-3], [0.0, 0.0]]))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.5, 0.6], [[0.0], [1.0]], [1.0, 1.0], "spherical"), "sum to one"),
        (([0.5, 0.5], [[0.0], [1.0]], [1.0, -1.0], "spherical"), "must be positive"),
        (([1.0, 0.0], [[0.0], [1.0]], [1.0, 1.0], "spherical"), "component 1 has weight 0. Leave it out"),
        (([0.5, 0.5], [0.0, 1.0], [1.0, 1.0], "spherical"), r"means must have shape \(K, D\)"),
        (([1.0], [[0.0, 1.0]], [[[1.0, 2.0], [2.0, 1.0]]], "full"), "positive definite"),
        (([1.0], [[0.0, 1.0]], np.eye(2), "unit"), "known to be the identity"),
    ],
)
def test_impossible_parameters_are_refused(arguments, message):
    weights, means, covariances, kind = arguments
    with pytest.raises(ValueError, match=message):
        cv.GaussianMixture.from_parameters(weights, means, covariances, covariance_type=kind)
