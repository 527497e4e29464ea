"""``GaussianMixture`` is EM: the log-likelihood path of scikit-learn, exact log-likelihoods, exact MAP objectives."""

import warnings
from functools import partialmethod

import numpy as np
import pytest
from scipy.stats import dirichlet, multivariate_normal, wishart
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture as Reference

import caviar as cv

pytestmark = pytest.mark.first_guess

FAITHFUL = cv.datasets.load_faithful().values
N = len(FAITHFUL)

START = {
    "weights_init": np.array([0.3, 0.5, 0.2]),
    "means_init": np.array([[2.0, 50.0], [4.0, 75.0], [3.0, 80.0]]),
    "precisions_init": np.array([np.diag([4.0, 0.02]), [[3.0, 0.1], [0.1, 0.03]], np.diag([2.0, 0.05])]),
}


def after(iterations, estimator):
    """Return the estimator fitted for so many iterations."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return estimator.set_params(max_iter=iterations, tol=0).fit(FAITHFUL)


@pytest.mark.parametrize("iterations", [1, 2, 7, 40])
def test_the_path_from_a_given_start_is_scikit_learns(iterations, monkeypatch):
    monkeypatch.setattr(cv.Model, "fit", partialmethod(cv.Model.fit, accelerate=False))
    ours = after(iterations, cv.GaussianMixture(3, reg_covar=0, **START))
    theirs = after(iterations, Reference(3, reg_covar=0, **START))
    # scikit-learn's last bound is that before its last M-step, per row
    np.testing.assert_allclose(ours.elbo_trace_[-2], theirs.lower_bound_ * N, rtol=1e-12)
    np.testing.assert_allclose(ours.weights_, theirs.weights_, rtol=1e-9)
    np.testing.assert_allclose(ours.means_, theirs.means_, rtol=1e-9)
    np.testing.assert_allclose(ours.covariances_, theirs.covariances_, rtol=1e-8)
    np.testing.assert_allclose(ours.precisions_, theirs.precisions_, rtol=1e-8)
    np.testing.assert_allclose(ours.score_samples(FAITHFUL), theirs.score_samples(FAITHFUL), rtol=1e-9)
    np.testing.assert_allclose(ours.predict_proba(FAITHFUL), theirs.predict_proba(FAITHFUL), atol=1e-9)
    np.testing.assert_allclose(ours.aic(FAITHFUL), theirs.aic(FAITHFUL), rtol=1e-11)
    np.testing.assert_allclose(ours.bic(FAITHFUL), theirs.bic(FAITHFUL), rtol=1e-11)


def test_the_trace_is_the_log_likelihood_from_the_given_start_on():
    mixture = after(5, cv.GaussianMixture(3, reg_covar=0, **START))
    densities = [
        w * multivariate_normal(m, np.linalg.inv(p)).pdf(FAITHFUL)
        for w, m, p in zip(*START.values(), strict=True)
    ]
    np.testing.assert_allclose(mixture.elbo_trace_[0], np.log(np.sum(densities, axis=0)).sum(), rtol=1e-12)
    assert mixture.elbo_trace_.shape == (6,)
    assert mixture.elbo_trace_[-1] == mixture.elbo_ == mixture.lower_bound_


@pytest.mark.parametrize("n_components", [1, 2, 5])
def test_the_objective_is_the_log_likelihood_of_the_rows(n_components):
    weights = np.random.default_rng(0).integers(0, 4, N)
    mixture = cv.GaussianMixture(n_components, random_state=0).fit(FAITHFUL, sample_weight=weights)
    # of five components one is so narrow that each of its rows may lose 1e-9 nats in rounding
    rounding = 1e-12 if n_components < 5 else 1e-10
    np.testing.assert_allclose(mixture.lower_bound_, weights @ mixture.score_samples(FAITHFUL), rtol=rounding)


def test_normalised_weights_change_nothing_but_the_size_of_the_objective():
    plain = cv.GaussianMixture(2, random_state=0, tol=1e-12).fit(FAITHFUL)
    share = cv.GaussianMixture(2, random_state=0, tol=1e-12).fit(FAITHFUL, sample_weight=np.full(N, 1 / N))
    np.testing.assert_allclose(share.means_, plain.means_, rtol=1e-6)
    np.testing.assert_allclose(share.lower_bound_ * N, plain.lower_bound_, rtol=1e-9)


def test_means_may_be_given_alone():
    mixture = cv.GaussianMixture(2, means_init=[[2.0, 50.0], [4.5, 80.0]], tol=1e-12).fit(FAITHFUL)
    np.testing.assert_allclose(mixture.lower_bound_, -1130.263960, atol=1e-5)
    assert mixture.means_[0, 0] < mixture.means_[1, 0]


@pytest.mark.thinned(9)
@pytest.mark.parametrize("structure", ["full", "tied", "diag", "spherical"])
@pytest.mark.parametrize("names", [("weights",), ("precisions",), ("weights", "precisions")])
@pytest.mark.parametrize("init_params", ["auto", "kmeans"])
def test_weights_and_precisions_may_be_given_without_means(structure, names, init_params):
    """A start then has them, and the means of clusters: those that suit them, in either order of the components."""
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(0, 1, (60, 2)), rng.normal(20, 3, (240, 2))])
    arguments = {"covariance_type": structure, "random_state": 0, "init_params": init_params}
    ended = cv.GaussianMixture(2, **arguments).fit(X)
    for order in (ended.weights_.argsort(), ended.weights_.argsort()[::-1]):
        precisions = ended.precisions_ if structure == "tied" else ended.precisions_[order]
        given = {"weights": ended.weights_[order], "precisions": precisions}
        chosen = {f"{name}_init": given[name] for name in names}
        start = cv.GaussianMixture(2, max_iter=0, **arguments, **chosen).fit(X)
        for name in names:
            np.testing.assert_allclose(getattr(start, f"{name}_"), given[name], rtol=1e-12)
        if structure != "tied" or "weights" in names:
            # those of the cluster that is as large, and as wide
            np.testing.assert_allclose(start.means_, ended.means_[order], atol=0.5)
        again = cv.GaussianMixture(2, tol=1e-12, **arguments, **chosen).fit(X)
        assert again.lower_bound_ == pytest.approx(ended.lower_bound_, abs=0.01)


@pytest.mark.slow
def test_each_start_has_clusters_of_its_own_beside_what_is_given():
    chosen = {"weights_init": [0.5, 0.3, 0.2], "init_params": "random", "random_state": 0}
    one = cv.GaussianMixture(3, **chosen).fit(FAITHFUL)
    five = cv.GaussianMixture(3, n_init=5, **chosen).fit(FAITHFUL)
    assert five.lower_bound_ >= one.lower_bound_
    fixed = cv.GaussianMixture(3, fixed={"means": [[2.0, 54.0], [np.nan] * 2, [np.nan] * 2]}, **chosen).fit(
        FAITHFUL
    )
    np.testing.assert_array_equal(fixed.means_[0], [2.0, 54.0])


def test_weights_in_single_precision_sum_to_one():
    weights = np.array([0.63861454, 0.36138543], dtype=np.float32)
    assert abs(float(weights.astype(float).sum()) - 1) > 1e-9
    start = cv.GaussianMixture(2, weights_init=weights, max_iter=0, random_state=0).fit(FAITHFUL)
    np.testing.assert_allclose(start.weights_, weights, rtol=1e-6)
    assert start.weights_.sum() == pytest.approx(1.0, abs=1e-15)
    mixture = cv.GaussianMixture.from_parameters(
        weights, [[0.0], [1.0]], [1.0, 1.0], covariance_type="spherical"
    )
    assert np.exp(mixture.score_samples([[0.5]]))[0] == pytest.approx(0.3520653, rel=1e-6)


@pytest.mark.filterwarnings("ignore:.*max_iter passes:sklearn.exceptions.ConvergenceWarning")
def test_a_warm_start_goes_on_although_a_start_was_given():
    arguments = {"means_init": [[2.0, 50.0], [4.5, 80.0]], "max_iter": 2, "tol": 0.0}
    warm = cv.GaussianMixture(2, warm_start=True, **arguments)
    first = warm.fit(FAITHFUL).lower_bound_
    assert warm.fit(FAITHFUL).lower_bound_ > first
    whole = cv.GaussianMixture(2, **{**arguments, "max_iter": 4}).fit(FAITHFUL)
    assert warm.elbo_trace_[0] == pytest.approx(first, rel=1e-12)
    assert warm.lower_bound_ == pytest.approx(whole.lower_bound_, abs=0.5)


def test_the_map_objective_holds_the_densities_of_the_given_priors():
    prior = {
        "weight_concentration": [2.0, 3.0],
        "mean": np.array([3.0, 70.0]),
        "mean_precision": np.array([[0.5, 0.01], [0.01, 0.02]]),
        "covariance": np.array([[0.4, 1.0], [1.0, 50.0]]),
        "degrees_of_freedom": 6.0,
    }
    mixture = cv.GaussianMixture(2, prior=prior, random_state=0).fit(FAITHFUL)
    expected = mixture.score_samples(FAITHFUL).sum() + dirichlet([2.0, 3.0]).logpdf(mixture.weights_)
    for mean, precision in zip(mixture.means_, mixture.precisions_, strict=True):
        expected += multivariate_normal([3.0, 70.0], np.linalg.inv(prior["mean_precision"])).logpdf(mean)
        expected += wishart(6.0, np.linalg.inv(prior["covariance"])).logpdf(precision)
    np.testing.assert_allclose(mixture.lower_bound_, expected, rtol=1e-11)


@pytest.mark.slow
def test_a_prior_of_one_part_leaves_the_others_flat_with_density_one():
    """A Dirichlet(1) prior is the flat one of maximum likelihood, but for its density Gamma(K)."""
    plain = cv.GaussianMixture(3, reg_covar=0, tol=1e-10, **START).fit(FAITHFUL)
    flat = cv.GaussianMixture(3, reg_covar=0, tol=1e-10, prior={"weight_concentration": 1.0}, **START).fit(
        FAITHFUL
    )
    np.testing.assert_array_equal(flat.means_, plain.means_)
    np.testing.assert_allclose(flat.lower_bound_ - plain.lower_bound_, np.log(2), rtol=1e-9)


def test_a_map_fit_is_a_maximum_of_its_objective():
    prior = {"covariance": np.diag([0.5, 40.0]), "weight_concentration": 4.0}
    mixture = cv.GaussianMixture(2, prior=prior, random_state=0, tol=1e-14).fit(FAITHFUL)

    def objective(weight, precision):
        total = dirichlet([4.0, 4.0]).logpdf([weight, 1 - weight])
        densities = []
        for w, mean, matrix in zip([weight, 1 - weight], mixture.means_, precision, strict=True):
            total += wishart(4, np.linalg.inv(prior["covariance"])).logpdf(matrix)
            densities.append(w * multivariate_normal(mean, np.linalg.inv(matrix)).pdf(FAITHFUL))
        return total + np.log(np.sum(densities, axis=0)).sum()

    best = objective(mixture.weights_[0], mixture.precisions_)
    for step in (-1e-4, 1e-4):
        assert objective(mixture.weights_[0] + step, mixture.precisions_) < best
        assert objective(mixture.weights_[0], mixture.precisions_ * (1 + step)) < best
        tilted = mixture.precisions_ + step * np.array([[0.0, 1.0], [1.0, 0.0]])
        assert objective(mixture.weights_[0], tilted) < best


def test_the_floor_stops_a_collapse_onto_a_single_row():
    X = np.vstack([FAITHFUL, [[30.0, 300.0]]])
    mixture = cv.GaussianMixture(3, random_state=0).fit(X)
    alone = mixture.weights_.argmin()
    np.testing.assert_allclose(mixture.weights_[alone], 1 / len(X), rtol=1e-6)
    np.testing.assert_allclose(
        mixture.covariances_[alone], np.diag(mixture.reg_covar_), rtol=1e-6, atol=1e-15
    )
    assert np.all(np.diff(mixture.elbo_trace_) >= -1e-9)
    np.testing.assert_allclose(mixture.lower_bound_, mixture.score_samples(X).sum(), rtol=1e-10)


def test_a_number_as_floor_bounds_the_eigenvalues():
    mixture = cv.GaussianMixture(4, reg_covar=0.1, random_state=0).fit(FAITHFUL)
    assert mixture.reg_covar_ == 0.1
    eigenvalues = np.linalg.eigvalsh(mixture.covariances_)
    np.testing.assert_allclose(eigenvalues.min(), 0.1, rtol=1e-9)


def test_the_default_floor_follows_the_units_of_each_column():
    """In any units the same rows end with the same fit, also where the floor decides."""
    X = np.column_stack([FAITHFUL, FAITHFUL @ [1.0, 1.0]])  # a singular covariance
    units = np.array([1e-6, 1e5, 3.0])
    plain = cv.GaussianMixture(2, random_state=0, tol=1e-10).fit(X)
    other = cv.GaussianMixture(2, random_state=0, tol=1e-10).fit(X * units)
    order, other_order = plain.weights_.argsort(), other.weights_.argsort()
    np.testing.assert_allclose(other.means_[other_order] / units, plain.means_[order], rtol=1e-5)
    scaled = other.covariances_[other_order] / np.outer(units, units)
    np.testing.assert_allclose(scaled, plain.covariances_[order], rtol=1e-4)


def test_without_a_floor_a_collapse_is_told_and_leaves_finite_numbers():
    X = np.array([[0.0], [0.1], [0.2], [0.3], [9.0]])
    with pytest.warns(cv.CollapseWarning, match="proper prior"):
        mixture = cv.GaussianMixture(2, reg_covar=0, random_state=0).fit(X)
    for name in ("weights_", "means_", "covariances_", "precisions_", "elbo_trace_"):
        assert np.all(np.isfinite(getattr(mixture, name)))
    assert np.all(np.isfinite(mixture.score_samples(X)))
    assert not mixture.converged_


def test_a_component_without_rows_is_told_and_leaves_finite_numbers():
    with pytest.warns(cv.CollapseWarning):
        mixture = cv.GaussianMixture(2, random_state=0).fit(np.tile([[1.0, 2.0]], (10, 1)))
    assert np.all(np.isfinite(mixture.covariances_))
    assert np.all(np.isfinite(mixture.score_samples([[1.0, 2.0], [3.0, 4.0]])))
