"""Covariance structures of the estimators: exact evidence, exact predictive, densities, EM, priors per component."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import gammaln
from scipy.stats import multivariate_normal
from sklearn.mixture import GaussianMixture as Reference

import caviar as cv

from .evidence import EVIDENCE

pytestmark = pytest.mark.first_guess

FAITHFUL = cv.datasets.load_faithful().values
STRUCTURES = ["full", "tied", "diag", "spherical", "unit"]
LEARNT = STRUCTURES[:-1]
PRIORS = {
    "full": {"covariance_prior": [[2.0, 1.0], [1.0, 30.0]], "degrees_of_freedom_prior": 4.5},
    "tied": {"covariance_prior": [[2.0, 1.0], [1.0, 30.0]], "degrees_of_freedom_prior": 4.5},
    "diag": {"covariance_prior": [2.0, 30.0], "degrees_of_freedom_prior": 0.7},
    "spherical": {"covariance_prior": 5.0, "degrees_of_freedom_prior": 0.7},
    "unit": {},
}
SHAPES = {"full": (3, 2, 2), "tied": (2, 2), "diag": (3, 2), "spherical": (3,), "unit": (3,)}


def own_prior(structure):
    return {"mean_prior": [3.0, 60.0], "mean_precision_prior": 0.3, **PRIORS[structure]}


def prior_of(mixture):
    return (
        mixture.mean_prior_,
        mixture.mean_precision_prior_,
        mixture.degrees_of_freedom_prior_,
        mixture.covariance_prior_,
    )


@pytest.mark.thinned(2)
@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("chosen", [False, True])
def test_one_component_gives_the_exact_evidence(structure, chosen):
    given = {"mean_precision_prior": 1.0}
    if structure != "unit":
        given["covariance_prior"] = "empirical"
    prior = own_prior(structure) if chosen else given
    mixture = cv.BayesianGaussianMixture(1, covariance_type=structure, **prior).fit(FAITHFUL)
    exact = EVIDENCE[structure](FAITHFUL, *prior_of(mixture))
    np.testing.assert_allclose(mixture.elbo_, exact, rtol=1e-13, atol=1e-10)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_one_component_predicts_by_the_ratio_of_evidences(structure):
    X = FAITHFUL[:30]
    mixture = cv.BayesianGaussianMixture(1, covariance_type=structure, **own_prior(structure)).fit(X)
    for new in ([2.0, 50.0], [9.0, 10.0]):
        exact = EVIDENCE[structure](np.vstack([X, new]), *prior_of(mixture)) - EVIDENCE[structure](
            X, *prior_of(mixture)
        )
        np.testing.assert_allclose(mixture.score_samples([new])[0], exact, rtol=1e-10)


@pytest.mark.thinned(6)
@pytest.mark.parametrize("structure", STRUCTURES)
def test_two_components_stay_below_the_exact_evidence(structure):
    X = FAITHFUL[:7]
    mixture = cv.BayesianGaussianMixture(
        2, covariance_type=structure, n_init=5, random_state=0, **own_prior(structure)
    ).fit(X)
    if structure == "tied":
        pytest.skip("the evidence of labels does not factorise over components that share a precision")
    alpha = 0.5
    logs = []
    for labels in itertools.product([0, 1], repeat=len(X)):
        chosen = np.array(labels)
        counts = np.bincount(chosen, minlength=2)
        log_labels = (
            gammaln(2 * alpha)
            - gammaln(2 * alpha + len(X))
            + np.sum(gammaln(alpha + counts) - gammaln(alpha))
        )
        groups = [X[chosen == k] for k in (0, 1) if counts[k]]
        logs.append(log_labels + sum(EVIDENCE[structure](group, *prior_of(mixture)) for group in groups))
    exact = np.logaddexp.reduce(logs)
    assert mixture.elbo_ < exact
    assert mixture.elbo_ > exact - 6


@pytest.mark.thinned(10)
@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("family", ["joint", "independent"])
def test_densities_integrate_to_one_in_two_dimensions(structure, family):
    X = (FAITHFUL[:25] - FAITHFUL.mean(axis=0)) / FAITHFUL.std(axis=0)
    mixture = cv.BayesianGaussianMixture(
        2,
        covariance_type=structure,
        mean_precision_family=family,
        degrees_of_freedom_prior=None,
        random_state=0,
    ).fit(X)
    nodes, weights = np.polynomial.legendre.leggauss(600)
    # x = sinh(s) reaches far into the tails of a Student-t with few degrees of freedom
    s, w = 13 * nodes, 13 * weights
    x, dx = np.sinh(s), w * np.cosh(s)
    grid = np.stack(np.meshgrid(x, x, indexing="ij"), axis=-1).reshape(-1, 2)
    total = dx @ np.exp(mixture.score_samples(grid)).reshape(len(x), -1) @ dx
    assert abs(total - 1) < 1e-6


@pytest.mark.thinned(2)
@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("estimator", [cv.GaussianMixture, cv.BayesianGaussianMixture])
def test_covariances_have_the_shape_of_their_structure(structure, estimator):
    mixture = estimator(3, covariance_type=structure, random_state=0).fit(FAITHFUL)
    assert mixture.covariances_.shape == mixture.precisions_.shape == SHAPES[structure]
    assert mixture.covariance_matrices().shape == (3, 2, 2)
    trace = mixture.elbo_trace_
    assert np.all(np.diff(trace) > -1e-9 * np.abs(trace[1:]))


def test_degrees_of_freedom_grow_by_the_rows_that_tell_of_a_precision():
    fits = {s: cv.BayesianGaussianMixture(2, covariance_type=s, random_state=0).fit(FAITHFUL) for s in LEARNT}
    n = len(FAITHFUL)
    counts = {s: fits[s].weight_concentration_ - 0.5 for s in LEARNT}
    np.testing.assert_allclose(fits["full"].degrees_of_freedom_, 2 + counts["full"])
    np.testing.assert_allclose(fits["tied"].degrees_of_freedom_, 2 + n)
    np.testing.assert_allclose(fits["diag"].degrees_of_freedom_, 2 + counts["diag"][:, None] * [1, 1])
    np.testing.assert_allclose(fits["spherical"].degrees_of_freedom_, 2 + 2 * counts["spherical"])


@pytest.mark.parametrize("structure", LEARNT)
def test_em_ends_where_scikit_learns_does(structure):
    start = np.array([[2.0, 55.0], [4.0, 80.0]])
    theirs = Reference(
        2, covariance_type=structure, means_init=start, reg_covar=0, tol=1e-13, max_iter=5000, random_state=0
    ).fit(FAITHFUL)
    ours = cv.GaussianMixture(
        2, covariance_type=structure, means_init=theirs.means_, reg_covar=0, tol=1e-15, max_iter=5000
    ).fit(FAITHFUL)
    for name in ("weights_", "means_", "covariances_", "precisions_"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-5, err_msg=name)
    np.testing.assert_allclose(ours.elbo_, theirs.score(FAITHFUL) * len(FAITHFUL), rtol=1e-11)
    np.testing.assert_allclose(ours.bic(FAITHFUL), theirs.bic(FAITHFUL), rtol=1e-10)
    np.testing.assert_allclose(ours.score_samples(FAITHFUL), theirs.score_samples(FAITHFUL), rtol=1e-5)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("structure", STRUCTURES)
def test_the_objective_of_em_is_the_log_likelihood(structure):
    X = FAITHFUL / [1.0, 10.0]
    mixture = cv.GaussianMixture(3, covariance_type=structure, random_state=0).fit(X)
    densities = [
        w * multivariate_normal(m, c).pdf(X)
        for w, m, c in zip(mixture.weights_, mixture.means_, mixture.covariance_matrices(), strict=True)
    ]
    np.testing.assert_allclose(mixture.elbo_, np.log(np.sum(densities, axis=0)).sum(), rtol=1e-9)


@pytest.mark.parametrize("structure", LEARNT)
def test_priors_of_their_own_for_each_component(structure):
    """Components with strong priors of their own stay at them, in their order."""
    means = np.array([[4.3, 80.0], [2.0, 54.0]])
    prior = {
        "mean_prior": means,
        "mean_precision_prior": [1e6, 1e6],
        "degrees_of_freedom_prior": 50.0 if structure == "tied" else [50.0, 60.0],
        "covariance_prior": {
            "full": [np.diag([8.0, 1700.0]), np.diag([4.0, 1800.0])],
            "tied": np.diag([8.0, 1700.0]),
            "diag": [[8.0, 1700.0], [4.0, 1800.0]],
            "spherical": [1700.0, 1800.0],
        }[structure],
    }
    mixture = cv.BayesianGaussianMixture(2, covariance_type=structure, random_state=0, **prior).fit(FAITHFUL)
    np.testing.assert_allclose(mixture.means_, means, atol=0.1)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_map_prior_of_each_structure_is_in_the_objective(structure):
    """The mode moves towards the prior, and the objective is the likelihood plus its log density."""
    inverse_scale = {"full": np.diag([8.0, 1700.0]), "tied": np.diag([8.0, 1700.0])}.get(structure)
    if structure == "diag":
        inverse_scale = [8.0, 1700.0]
    if structure == "spherical":
        inverse_scale = 800.0
    prior = {"mean": [3.0, 70.0], "mean_precision": 2.0}
    if inverse_scale is not None:
        prior["covariance"] = inverse_scale
    mixture = cv.GaussianMixture(2, covariance_type=structure, prior=prior, random_state=0).fit(FAITHFUL)
    nudged = []
    names = [name for name in mixture.posterior_ if name != "weights"]
    data = {"x": FAITHFUL}
    for name, step in itertools.product(names, (1 - 1e-4, 1 + 1e-4)):
        factor = mixture.posterior_[name]
        factors = {name: replace(factor, value=factor.value * step)}
        nudged.append(mixture.posterior_.elbo_at(factors, data))
    assert max(nudged) < mixture.posterior_.elbo


@pytest.mark.thinned(3)
@pytest.mark.parametrize("kind", ["dirichlet_process", "dirichlet_distribution"])
@pytest.mark.parametrize("structure", STRUCTURES)
def test_weights_of_a_process_or_a_distribution(structure, kind):
    mixture = cv.BayesianGaussianMixture(
        4, covariance_type=structure, weight_concentration_prior_type=kind, random_state=0
    ).fit(FAITHFUL)
    np.testing.assert_allclose(mixture.weights_.sum(), 1)
    if kind == "dirichlet_process":
        a, b = mixture.weight_concentration_
        assert a.shape == b.shape == (3,)


def test_one_component_of_a_process_has_all_the_weight():
    mixture = cv.BayesianGaussianMixture(weight_concentration_prior_type="dirichlet_process").fit(FAITHFUL)
    assert mixture.weights_.tolist() == [1.0]
    np.testing.assert_allclose(mixture.elbo_, cv.BayesianGaussianMixture().fit(FAITHFUL).elbo_)


@pytest.mark.parametrize(
    ("structure", "name", "value", "message"),
    [
        ("unit", "covariance_prior", 1.0, "known to be the identity"),
        ("tied", "degrees_of_freedom_prior", [3.0, 4.0], "must be one number"),
        ("diag", "covariance_prior", np.eye(3), "must have shape (2, 2) or (2,)"),
        ("diag", "covariance_prior", [1.0, -1.0], "must be positive"),
        ("spherical", "covariance_prior", [1.0, 2.0, 3.0], "must have shape (2,) or ()"),
        ("full", "mean_prior", np.zeros((3, 2)), "one row a component"),
        ("full", "mean_precision_prior", [1.0, 0.0], "must be above 0"),
        ("ful", "n_components", 2, "covariance_type must be"),
        ("full", "init_params", "kmean", "init_params"),
        ("full", "init_params", [0, 1], "a label or K probabilities a row"),
        ("full", "weight_concentration_prior_type", "process", "dirichlet_process"),
    ],
)
def test_impossible_arguments_are_refused_in_words(structure, name, value, message):
    arguments = {"n_components": 2, "covariance_type": structure, name: value}
    with pytest.raises(ValueError) as refused:
        cv.BayesianGaussianMixture(**arguments).fit(FAITHFUL)
    assert message in str(refused.value)


def test_published_likelihood_of_one_shared_covariance():
    """Mclust's vignette: EEE with three components."""
    mixture = cv.GaussianMixture(3, covariance_type="tied", random_state=0, tol=1e-10, max_iter=5000).fit(
        FAITHFUL
    )
    np.testing.assert_allclose(mixture.elbo_, -1126.31593, atol=6e-6)


@pytest.mark.slow
@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("family", ["joint", "independent"])
@pytest.mark.parametrize("weights", ["dirichlet_distribution", "dirichlet_process"])
def test_densities_integrate_to_one_in_one_dimension(structure, family, weights):
    X = (FAITHFUL[:12, :1] - 3.5) / 1.1
    mixture = cv.BayesianGaussianMixture(
        3,
        covariance_type=structure,
        mean_precision_family=family,
        weight_concentration_prior_type=weights,
        random_state=0,
    ).fit(X)
    nodes, w = np.polynomial.legendre.leggauss(2000)
    s = 25 * nodes
    total = (25 * w * np.cosh(s)) @ np.exp(mixture.score_samples(np.sinh(s)[:, None]))
    assert abs(total - 1) < 1e-6
