"""The references agree with exact answers, with each other, and with BayesPy and scikit-learn."""

from dataclasses import astuple, replace
from itertools import permutations

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import wishart as scipy_wishart
from sklearn.mixture import GaussianMixture

from caviar._typing import Array
from caviar.testing import numerical_gradient
from oracles.reference import (
    bayesian_mixture,
    bayespy_models,
    em,
    high_precision,
    known_variance,
    normal_unknown,
    normal_wishart_mixture,
    wishart,
)

pytestmark = pytest.mark.starts_of_users


def _rows(seed: int, n: int = 30, d: int = 2) -> Array:
    rng = np.random.default_rng(seed)
    return rng.normal(0, 1, (n, d)) + rng.choice([-3.0, 0.0, 3.0], (n, 1))


def _prior(k: int = 3, d: int = 2) -> bayesian_mixture.Prior:
    scale = 0.8 * np.eye(d) + 0.3
    return bayesian_mixture.Prior(
        concentration=np.linspace(0.5, 1.5, k),
        mean=np.linspace(-0.4, 0.7, d),
        covariance=6.0 * np.eye(d) + 1.0,
        df=d + 1.5,
        inverse_scale=scale,
    )


def _joint_prior(k: int = 3, d: int = 2) -> normal_wishart_mixture.Prior:
    return normal_wishart_mixture.Prior(
        concentration=np.linspace(0.5, 1.5, k),
        mean=np.linspace(-0.4, 0.7, d),
        mean_precision=0.3,
        df=d + 1.5,
        inverse_scale=0.8 * np.eye(d) + 0.3,
    )


def _random_factors(x: Array, prior: bayesian_mixture.Prior, seed: int) -> bayesian_mixture.Factors:
    """Draw factors that are no update of anything."""
    rng = np.random.default_rng(seed)
    n, d = x.shape
    k = len(prior.concentration)
    spd = [a @ a.T + np.eye(d) for a in rng.normal(size=(2 * k, d, d))]
    return bayesian_mixture.Factors(
        responsibilities=rng.dirichlet(np.ones(k), n),
        concentration=rng.uniform(0.5, 9, k),
        means=rng.normal(0, 3, (k, d)),
        covariances=np.array(spd[:k]) / 5,
        dfs=rng.uniform(d, 12, k),
        inverse_scales=np.array(spd[k:]) * 3,
    )


def _assert_same(actual: object, expected: object, rtol: float) -> None:
    for a, b in zip(astuple(actual), astuple(expected), strict=True):  # type: ignore[call-overload]
        np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-12)


# --- one dimension, known variance ---


def test_expanded_elbo_of_the_known_variance_mixture() -> None:
    """The form with the square multiplied out: x^2 apart from the labels, linear terms with them."""
    rng = np.random.default_rng(0)
    x, w, v, m0, s0 = rng.normal(0, 3, 8), rng.dirichlet(np.ones(3)), 0.7, 0.4, 5.0
    m, s2, r = rng.normal(0, 2, 3), rng.uniform(0.1, 2, 3), rng.dirichlet(np.ones(3), 8)
    expanded = np.sum(
        -0.5 * np.log(2 * np.pi * s0) - ((m - m0) ** 2 + s2) / (2 * s0) + 0.5 * np.log(2 * np.pi * np.e * s2)
    )
    expanded += np.sum(r * np.log(w)) - 0.5 * np.sum(x**2 / v + np.log(2 * np.pi * v))
    expanded += np.sum(r * (np.outer(x, m) - (m**2 + s2) / 2)) / v - np.sum(r * np.log(r))
    literal = known_variance.elbo(x, known_variance.Model(w, v, m0, s0), known_variance.Factors(m, s2, r))
    assert literal == pytest.approx(expanded, abs=1e-12)


def test_flat_prior_with_two_components_is_the_limit_of_an_infinite_prior_variance() -> None:
    x = np.array([-2.1, -1.4, 0.2, 1.9, 2.6])
    model = known_variance.Model((0.3, 0.7), prior_variance=np.inf)
    q = known_variance.Factors(np.array([-1.0, 1.5]), np.array([0.5, 0.2]), np.full((5, 2), 0.5))
    means, variances = (-1.0, 1.5), (0.5, 0.2)
    elbos = []
    for _ in range(10):
        q = known_variance.sweep(x, model, q)
        means, variances, r = known_variance.flat_two_component_sweep(x, 0.3, means, variances)
        np.testing.assert_allclose(q.means, means, rtol=1e-13)
        np.testing.assert_allclose(q.mean_variances, variances, rtol=1e-13)
        np.testing.assert_allclose(q.responsibilities[:, 0], r, rtol=1e-12)
        elbos.append(known_variance.elbo(x, model, q))
    assert np.all(np.diff(elbos) > -1e-13)


# --- Normal with unknown mean and precision ---


def test_normal_gamma_evidence_is_the_product_of_student_t_densities() -> None:
    x = np.random.default_rng(1).normal(3, 2, 12)
    prior = normal_unknown.NormalGamma(mean=0.5, mean_precision=0.2, shape=1.3, rate=0.9)
    ratio = normal_unknown.normal_gamma_log_evidence(x, prior)
    assert ratio == pytest.approx(normal_unknown.student_t_log_evidence(x, prior), abs=1e-11)


def test_factorised_bound_lies_just_below_the_evidence_and_is_stationary() -> None:
    x = np.random.default_rng(2).normal(1, 2, 10)
    prior = normal_unknown.Factorised(mean=0.0, variance=4.0, shape=1.5, rate=2.0)
    q = normal_unknown.factorised_fixed_point(x, prior)
    bound = normal_unknown.factorised_elbo(x, prior, q)
    gap = normal_unknown.factorised_log_evidence(x, prior) - bound
    assert 0 < gap < 0.1
    gradient = numerical_gradient(
        lambda p: normal_unknown.factorised_elbo(x, prior, normal_unknown.Factorised(*p)),
        [q.mean, q.variance, q.shape, q.rate],
        smallest_scale=0.1,
    )
    np.testing.assert_allclose(gradient.value, 0.0, atol=1e-10)


# --- the Bayesian mixture ---


def test_wishart_has_an_inverse_scale() -> None:
    b, df = np.array([[2.0, 0.4], [0.4, 0.7]]), 4.2
    theirs = scipy_wishart(df, np.linalg.inv(b))
    np.testing.assert_allclose(wishart.mean(df, b), theirs.mean(), rtol=1e-13)
    assert wishart.entropy(df, b) == pytest.approx(float(theirs.entropy()), abs=1e-12)
    precision = np.array([[1.5, -0.2], [-0.2, 0.9]])
    density = wishart.expected_log_density(df, b, precision, wishart.log_det(precision))
    assert density == pytest.approx(float(theirs.logpdf(precision)), abs=1e-12)


def test_normal_wishart_elbo_of_one_component_is_the_evidence() -> None:
    x, prior = _rows(3, n=12, d=3), _joint_prior(k=1, d=3)
    q = normal_wishart_mixture.factors_at_prior(prior, np.ones((12, 1)))
    q = normal_wishart_mixture.sweep(x, prior, q)
    evidence = normal_wishart_mixture.log_evidence_of_one_component(x, prior)
    assert evidence == pytest.approx(normal_wishart_mixture.log_evidence_by_prediction(x, prior), abs=1e-10)
    assert normal_wishart_mixture.elbo(x, prior, q) == pytest.approx(evidence, abs=1e-10)


def test_one_dimensional_normal_wishart_is_a_normal_gamma() -> None:
    """Wishart(nu, B) of one dimension is Gamma(nu/2, B/2)."""
    x = _rows(4, n=9, d=1)
    prior = normal_wishart_mixture.Prior(np.ones(1), np.array([0.3]), 0.4, 2.6, np.array([[1.8]]))
    same = normal_unknown.NormalGamma(mean=0.3, mean_precision=0.4, shape=1.3, rate=0.9)
    evidence = normal_wishart_mixture.log_evidence_of_one_component(x, prior)
    assert evidence == pytest.approx(normal_unknown.normal_gamma_log_evidence(x[:, 0], same), abs=1e-11)


def test_independent_form_of_one_component_in_one_dimension_is_the_factorised_normal() -> None:
    x = _rows(5, n=9, d=1)
    prior = bayesian_mixture.Prior(np.ones(1), np.array([0.3]), np.array([[4.0]]), 2.6, np.array([[1.8]]))
    same = normal_unknown.Factorised(mean=0.3, variance=4.0, shape=1.3, rate=0.9)
    q = bayesian_mixture.factors_at_prior(prior, np.ones((9, 1)))
    for _ in range(200):
        q = bayesian_mixture.sweep(x, prior, q, ("means", "precisions", "weights"))
    expected = normal_unknown.factorised_fixed_point(x[:, 0], same)
    np.testing.assert_allclose([q.dfs[0] / 2, q.inverse_scales[0, 0, 0] / 2], [expected.shape, expected.rate])
    elbo = bayesian_mixture.elbo(x, prior, q)
    assert elbo == pytest.approx(normal_unknown.factorised_elbo(x[:, 0], same, expected), abs=1e-11)


@pytest.mark.parametrize("module", [bayesian_mixture, normal_wishart_mixture])
def test_no_update_lowers_the_elbo(module: object) -> None:
    """Each update by itself: it is the exact maximum over its factor, whatever the others are."""
    joint = module is normal_wishart_mixture
    x, m = _rows(6), normal_wishart_mixture if joint else bayesian_mixture
    prior = _joint_prior() if joint else _prior()
    r = np.random.default_rng(6).dirichlet(np.ones(3), 30)
    q = m.factors_at_prior(prior, r)  # type: ignore[arg-type]
    order = (*m.ORDER[1:], m.ORDER[0])
    elbo = m.elbo(x, prior, q)  # type: ignore[arg-type]
    gains = []
    for _ in range(8):
        for factor in order:
            q = m.sweep(x, prior, q, (factor,))  # type: ignore[arg-type]
            gains.append(m.elbo(x, prior, q) - elbo)  # type: ignore[arg-type]
            elbo += gains[-1]
    assert min(gains) > -1e-10
    assert sum(gains) > 1


def test_relabelling_the_components_leaves_the_elbo() -> None:
    x = _rows(7, n=12)
    prior = replace(_prior(), concentration=np.full(3, 0.7))
    q = _random_factors(x, prior, 7)
    values = []
    for order in permutations(range(3)):
        index = list(order)
        moved = [q.responsibilities[:, index]] + [a[index] for a in astuple(q)[1:]]
        values.append(bayesian_mixture.elbo(x, prior, bayesian_mixture.Factors(*moved)))
    np.testing.assert_allclose(values, values[0], rtol=1e-13)


@pytest.mark.slow
def test_independent_elbo_is_stationary_at_a_fixed_point() -> None:
    """In the means, the degrees of freedom, the concentrations and a scale of S and B."""
    x, prior = _rows(8, n=12), _prior(k=2)
    q = bayesian_mixture.factors_at_prior(prior, np.random.default_rng(8).dirichlet(np.ones(2), 12))
    for _ in range(150):
        q = bayesian_mixture.sweep(x, prior, q, ("means", "precisions", "weights", "responsibilities"))

    def elbo(p: Array) -> float:
        moved = replace(
            q,
            means=p[:4].reshape(2, 2),
            dfs=p[4:6],
            concentration=p[6:8],
            covariances=q.covariances * np.exp(p[8:10, None, None]),
            inverse_scales=q.inverse_scales * np.exp(p[10:12, None, None]),
        )
        return bayesian_mixture.elbo(x, prior, moved)

    fixed_point = np.concatenate([q.means.ravel(), q.dfs, q.concentration, np.zeros(4)])
    gradient = numerical_gradient(elbo, fixed_point, smallest_scale=0.3, n_halvings=3)
    np.testing.assert_allclose(gradient.value, 0.0, atol=1e-8)


# --- BayesPy ---


@pytest.mark.parametrize("seed", range(4))
def test_bayespy_gives_any_factors_the_same_bound(seed: int) -> None:
    x, prior = _rows(seed), _prior()
    q = _random_factors(x, prior, seed)
    ours = bayesian_mixture.elbo(x, prior, q)
    assert bayespy_models.bound(x, prior, q) == pytest.approx(ours, rel=1e-12)


def test_bayespy_sweeps_from_given_globals_step_by_step() -> None:
    x, prior = _rows(9, d=3), _prior(d=3)
    q = replace(
        bayesian_mixture.factors_at_prior(prior, np.full((30, 3), 1 / 3)),
        means=np.array([[-3.0, -2.0, -3.0], [0.0, 0.5, 0.0], [3.0, 3.0, 2.0]]),
    )
    theirs = bayespy_models.run(x, prior, q, n_sweeps=8)
    bounds = []
    for _ in range(8):
        q = bayesian_mixture.sweep(x, prior, q)
        bounds.append(bayesian_mixture.elbo(x, prior, q))
    np.testing.assert_allclose(theirs.bounds, bounds, rtol=1e-11)
    _assert_same(theirs.factors, q, rtol=1e-8)


def test_bayespy_sweeps_from_given_responsibilities() -> None:
    """The means are then updated first, with the precisions at their prior."""
    x, prior = _rows(10), _prior()
    order = ("means", "precisions", "weights", "responsibilities")
    q = bayesian_mixture.factors_at_prior(prior, np.random.default_rng(10).dirichlet(np.ones(3), 30))
    theirs = bayespy_models.run(x, prior, q, n_sweeps=5, order=order)
    for _ in range(5):
        q = bayesian_mixture.sweep(x, prior, q, order)
    assert theirs.bounds[-1] == pytest.approx(bayesian_mixture.elbo(x, prior, q), rel=1e-12)
    _assert_same(theirs.factors, q, rtol=1e-8)


# --- maximum likelihood ---


@pytest.mark.slow
def test_em_path_rises_to_where_scikit_learn_ends() -> None:
    x = _rows(11, n=80)
    start = em.Parameters(
        np.full(3, 1 / 3), np.array([[-3.0, -3.0], [0.2, 0.0], [3.0, 2.0]]), np.array([np.eye(2)] * 3)
    )
    parameters, path = em.run(x, start, 12)
    assert np.all(np.diff(path) > -1e-10)
    theirs = GaussianMixture(
        3,
        reg_covar=0.0,
        tol=0.0,
        max_iter=12,
        weights_init=start.weights,
        means_init=start.means,
        precisions_init=start.covariances,
        random_state=0,
    )
    with pytest.warns(match="did not converge"):
        theirs.fit(x)
    np.testing.assert_allclose(parameters.weights, theirs.weights_, rtol=1e-9)
    np.testing.assert_allclose(parameters.means, theirs.means_, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(parameters.covariances, theirs.covariances_, rtol=1e-9, atol=1e-10)
    assert path[-1] == pytest.approx(theirs.score(x) * len(x), rel=1e-12)


# --- fifty digits ---


def _in_doubles(x: Array, q: high_precision.Expectations, reference: Array | None) -> Array:
    """Return the responsibilities in doubles: from residuals, or from raw moments about a reference point."""
    residuals = x[:, None, :] - q.means
    quadratic = np.einsum("nki,kij,nkj->nk", residuals, q.precisions, residuals)
    if reference is not None:
        y, m = x - reference, q.means - reference
        second_moments = np.einsum("ni,nj->nij", y, y)
        quadratic = np.einsum("nij,kij->nk", second_moments, q.precisions)
        quadratic += np.einsum("ki,kij,kj->k", m, q.precisions, m) - 2 * np.einsum(
            "ni,kij,kj->nk", y, q.precisions, m
        )
    quadratic += np.einsum("kij,kji->k", q.precisions, q.covariances)
    logits = q.log_weights + 0.5 * q.log_dets - 0.5 * quadratic
    return np.exp(logits - logsumexp(logits, axis=1, keepdims=True))


@pytest.mark.parametrize("case", [high_precision.two_distant_sites, high_precision.far_from_the_origin])
def test_raw_moments_lose_what_residuals_keep(case: object) -> None:
    """So these data tell a careful implementation from a careless one."""
    x, q = case(np.random.default_rng(12))  # type: ignore[operator]
    exact, _ = high_precision.responsibilities(x, q)
    assert ((exact > 0.05) & (exact < 0.95)).any()
    np.testing.assert_allclose(_in_doubles(x, q, None), exact, atol=1e-12)
    assert np.abs(_in_doubles(x, q, np.zeros(2)) - exact).max() > 1e-2


def test_data_about_their_mean_lose_nothing_where_they_are_merely_far_away() -> None:
    x, q = high_precision.far_from_the_origin(np.random.default_rng(13))
    exact, _ = high_precision.responsibilities(x, q)
    np.testing.assert_allclose(_in_doubles(x, q, x.mean(axis=0)), exact, atol=1e-12)
    x, q = high_precision.two_distant_sites(np.random.default_rng(13))
    exact, _ = high_precision.responsibilities(x, q)
    assert np.abs(_in_doubles(x, q, x.mean(axis=0)) - exact).max() > 1e-2


def test_fifty_digits_agree_with_the_literal_update_on_ordinary_data() -> None:
    x, prior = _rows(14), _prior()
    q = _random_factors(x, prior, 14)
    expectations = high_precision.Expectations(
        log_weights=np.array(wishart.expected_log_weights(q.concentration)),
        means=q.means,
        covariances=q.covariances,
        precisions=np.array([wishart.mean(a, b) for a, b in zip(q.dfs, q.inverse_scales, strict=True)]),
        log_dets=np.array(
            [wishart.expected_log_det(a, b) for a, b in zip(q.dfs, q.inverse_scales, strict=True)]
        ),
    )
    r, log_normalisers = high_precision.responsibilities(x, expectations)
    updated = bayesian_mixture.update_responsibilities(x, prior, q)
    np.testing.assert_allclose(r, updated.responsibilities, rtol=1e-11)
    terms = bayesian_mixture.elbo_terms(x, prior, updated)
    assert sum(log_normalisers) == pytest.approx(terms["x"] + terms["responsibilities"], rel=1e-12)
