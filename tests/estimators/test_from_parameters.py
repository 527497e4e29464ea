"""Mixtures of known parameters: SciPy's densities, and the same as a fit that ends there."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import caviar as cv

FAITHFUL = cv.datasets.load_faithful().values


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


@pytest.mark.parametrize("structure", ["full", "tied", "diag", "spherical", "unit"])
def test_roots_of_precisions_are_those_of_scikit_learn(structure):
    from sklearn.mixture._gaussian_mixture import _compute_precision_cholesky

    mixture = cv.GaussianMixture(3, covariance_type=structure, random_state=0).fit(FAITHFUL)
    kind = "spherical" if structure == "unit" else structure
    expected = _compute_precision_cholesky(mixture.covariances_, kind)
    np.testing.assert_allclose(mixture.precisions_cholesky_, expected, rtol=1e-6, atol=1e-12)


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
