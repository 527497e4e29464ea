"""``KnownVarianceMixture``: one column in either shape, the bound below exact evidence, the flat prior of section 3."""

import numpy as np
import pytest

import caviar as cv

pytestmark = pytest.mark.first_guess

ROWS = np.array([-2.1, -1.7, -2.4, 0.3, 2.2, 1.9, 2.8])


def test_both_shapes_give_the_same_fit():
    flat = cv.KnownVarianceMixture(2, random_state=0).fit(ROWS)
    column = cv.KnownVarianceMixture(2, random_state=0).fit(ROWS[:, None])
    listed = cv.KnownVarianceMixture(2, random_state=0).fit(ROWS.tolist())
    for other in (column, listed):
        np.testing.assert_array_equal(other.means_, flat.means_)
        assert other.elbo_ == flat.elbo_
    for method in ("predict", "predict_proba", "score_samples"):
        np.testing.assert_array_equal(getattr(flat, method)(ROWS), getattr(flat, method)(ROWS[:, None]))
    assert flat.n_features_in_ == 1


@pytest.mark.parametrize("X", [np.zeros((5, 2)), np.zeros((2, 3, 1)), np.array(1.0)])
def test_other_shapes_are_refused(X):
    with pytest.raises(ValueError, match=r"one column|table of rows"):
        cv.KnownVarianceMixture().fit(X)


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"prior_variance": 2.0, "prior_mean": 0.5, "variance": 0.4, "weights": [0.2, 0.5, 0.3]},
        {"n_components": 1},
    ],
)
def test_the_bound_is_below_the_exact_evidence_by_at_most_the_labellings_and_little_more(arguments):
    mixture = cv.KnownVarianceMixture(**{"n_components": 3, **arguments}, n_init=5, random_state=0).fit(ROWS)
    exact = cv.testing.exact_log_evidence(
        ROWS,
        mixture.n_components,
        mixture.prior_variance,
        mixture.variance,
        mixture.weights,
        mixture.prior_mean,
    )
    assert mixture.elbo_ <= exact + 1e-10
    if mixture.n_components == 1:
        np.testing.assert_allclose(mixture.elbo_, exact, rtol=1e-12)


def test_the_optimum_solves_the_equations_of_section_two():
    mixture = cv.KnownVarianceMixture(
        2, prior_variance=5.0, prior_mean=0.3, variance=0.7, weights=[0.4, 0.6], tol=1e-14, random_state=0
    ).fit(ROWS)
    m, s2 = mixture.means_, mixture.mean_variances_
    r = mixture.predict_proba(ROWS)
    logits = np.log([0.4, 0.6]) + (np.outer(ROWS, m) - (m**2 + s2) / 2) / 0.7
    np.testing.assert_allclose(r, np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True), rtol=1e-9)
    np.testing.assert_allclose(s2, 1 / (1 / 5.0 + r.sum(axis=0) / 0.7), rtol=1e-6)
    np.testing.assert_allclose(m, s2 * (0.3 / 5.0 + r.T @ ROWS / 0.7), rtol=1e-6)


def test_the_flat_prior_leaves_weighted_means():
    """m_j = sum r x / N_j, s_j^2 = 1 / N_j: section 3."""
    mixture = cv.KnownVarianceMixture(
        2, prior_variance=np.inf, weights=[0.3, 0.7], tol=1e-14, random_state=0
    ).fit(ROWS)
    r = mixture.predict_proba(ROWS)
    np.testing.assert_allclose(mixture.mean_variances_, 1 / r.sum(axis=0), rtol=1e-6)
    np.testing.assert_allclose(mixture.means_, r.T @ ROWS / r.sum(axis=0), rtol=1e-6)


def test_a_collapse_under_the_flat_prior_is_told_and_leaves_finite_numbers():
    x = np.random.default_rng(0).standard_normal(100)
    with pytest.warns(cv.CollapseWarning):
        mixture = cv.KnownVarianceMixture(
            2, prior_variance=np.inf, weights=[0.01, 0.99], n_init=3, random_state=0
        ).fit(x)
    assert np.all(np.isfinite(mixture.means_))
    assert np.all(np.isfinite(mixture.mean_variances_))
    assert np.isfinite(mixture.elbo_)
    assert np.all(np.isfinite(mixture.score_samples(x)))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"variance": 0}, "variance"),
        ({"variance": np.inf}, "variance"),
        ({"prior_variance": -1.0}, "prior_variance"),
        ({"prior_variance": "flat"}, "prior_variance"),
        ({"prior_mean": np.nan}, "prior_mean"),
        ({"weights": [0.5, 0.6]}, "weights"),
        ({"weights": [1.0]}, "weights"),
        ({"weights": [1.5, -0.5]}, "weights"),
    ],
)
def test_impossible_arguments_are_refused_by_name(arguments, message):
    with pytest.raises(cv.ParameterError, match=message):
        cv.KnownVarianceMixture(2, **arguments).fit(ROWS)
