"""The enumerated evidence, posterior and divergence are what quadrature and plain sums give."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.polynomial.hermite_e import hermegauss
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, norm
from thinning import amount

from caviar import _errors as errors
from caviar._typing import Array
from caviar.testing import exact_kl, exact_log_evidence, exact_posterior
from oracles.reference import known_variance

X = np.array([-1.3, 0.4, 2.9, 3.1])


def _random_case(seed: int) -> tuple[Array, known_variance.Model, known_variance.Factors]:
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(1, 7)), int(rng.integers(1, 4))
    model = known_variance.Model(
        weights=rng.dirichlet(np.full(k, 2.0)),
        variance=float(rng.uniform(0.2, 3.0)),
        prior_mean=float(rng.normal()),
        prior_variance=float(rng.uniform(0.5, 50.0)),
    )
    q = known_variance.Factors(rng.normal(0, 3, k), rng.uniform(0.05, 3, k), rng.dirichlet(np.ones(k), n))
    return rng.normal(0, 4, n), model, q


def _evidence(x: Array, model: known_variance.Model) -> float:
    return exact_log_evidence(
        x, len(model.weights), model.prior_variance, model.variance, model.weights, model.prior_mean
    )


def _kl(x: Array, model: known_variance.Model, q: known_variance.Factors) -> float:
    return exact_kl(
        x,
        q.means,
        q.mean_variances,
        q.responsibilities,
        model.prior_variance,
        model.variance,
        model.weights,
        model.prior_mean,
    )


def _log_joint_density(x: Array, model: known_variance.Model, mu: Array) -> Array:
    """Return log p(x, mu) with the labels summed out, for every row of mu, shape (M, K)."""
    x = x[:, None, None]
    log_density = np.log(model.weights) + norm.logpdf(x, mu, np.sqrt(model.variance))
    log_prior = norm.logpdf(mu, model.prior_mean, np.sqrt(model.prior_variance))
    return logsumexp(log_density, axis=2).sum(axis=0) + log_prior.sum(axis=1)


def _evidence_by_quadrature(x: Array, model: known_variance.Model) -> float:
    """Integrate over the means with the trapezium rule, which converges geometrically on the whole line."""
    nodes = model.prior_mean + np.linspace(-12, 12, 601) * np.sqrt(model.prior_variance)
    mu = np.array(list(product(nodes, repeat=len(model.weights))))
    return float(
        logsumexp(_log_joint_density(x, model, mu)) + len(model.weights) * np.log(nodes[1] - nodes[0])
    )


@pytest.mark.thinned(8)
@pytest.mark.parametrize("weights", [(1.0,), (0.5, 0.5), (0.15, 0.85)])
@pytest.mark.parametrize(("variance", "prior_mean", "prior_variance"), [(1.0, 0.0, 4.0), (0.6, 1.5, 9.0)])
def test_evidence_is_the_integral_over_the_means(
    weights: tuple[float, ...], variance: float, prior_mean: float, prior_variance: float
) -> None:
    model = known_variance.Model(weights, variance, prior_mean, prior_variance)
    assert _evidence(X, model) == pytest.approx(_evidence_by_quadrature(X, model), abs=1e-10)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("seed", range(10))
def test_evidence_is_the_sum_over_assignments_of_n_by_n_normal_densities(seed: int) -> None:
    x, model, _ = _random_case(seed)
    terms = []
    for labels in product(range(len(model.weights)), repeat=len(x)):
        together = np.equal.outer(labels, labels)
        covariance = model.variance * np.eye(len(x)) + model.prior_variance * together
        density = multivariate_normal.logpdf(x, np.full(len(x), model.prior_mean), covariance)
        terms.append(sum(np.log(model.weights[c]) for c in labels) + density)
    assert _evidence(x, model) == pytest.approx(logsumexp(terms), abs=1e-11)


@given(seed=st.integers(0, 10**6))
@settings(max_examples=amount(12, 60), deadline=None)
def test_elbo_lies_below_the_evidence_by_the_divergence(seed: int) -> None:
    """For any q at all, not only for a fixed point."""
    x, model, q = _random_case(seed)
    evidence, elbo, kl = _evidence(x, model), known_variance.elbo(x, model, q), _kl(x, model, q)
    assert elbo < evidence
    assert kl == pytest.approx(evidence - elbo, rel=1e-11, abs=1e-10)


@pytest.mark.parametrize("seed", range(5))
def test_elbo_after_sweeps_lies_below_the_evidence_by_the_divergence(seed: int) -> None:
    x, model, q = _random_case(seed)
    path = [known_variance.elbo(x, model, q)]
    for _ in range(30):
        q = known_variance.sweep(x, model, q)
        path.append(known_variance.elbo(x, model, q))
    assert np.all(np.diff(path) > -1e-12)
    assert _kl(x, model, q) == pytest.approx(_evidence(x, model) - path[-1], abs=1e-10)


@pytest.mark.slow
def test_divergence_is_the_expectation_of_the_log_ratio_by_quadrature() -> None:
    """Gauss-Hermite over q(mu) is exact, for given the labels the log ratio is quadratic in the means."""
    x = X[1:]
    model = known_variance.Model((0.3, 0.7), 0.8, 0.5, 6.0)
    q = known_variance.Factors(
        np.array([-0.5, 2.0]), np.array([0.4, 0.2]), np.array([[0.9, 0.1], [0.25, 0.75], [0.0, 1.0]])
    )
    nodes, node_weights = hermegauss(8)
    node_weights = node_weights / node_weights.sum()
    sd = np.sqrt(q.mean_variances)
    log_evidence = _evidence_by_quadrature(x, model)
    expected = 0.0
    for labels in product((0, 1), repeat=3):
        probability = float(np.prod([q.responsibilities[n, c] for n, c in enumerate(labels)]))
        if probability == 0.0:
            continue
        for i, j in product(range(8), repeat=2):
            mu = q.means + sd * nodes[[i, j]]
            log_q = np.log(probability) + norm.logpdf(mu, q.means, sd).sum()
            log_p = norm.logpdf(mu, model.prior_mean, np.sqrt(model.prior_variance)).sum()
            for x_n, c in zip(x, labels, strict=True):
                log_p += np.log(model.weights[c]) + norm.logpdf(x_n, mu[c], np.sqrt(model.variance))
            expected += probability * node_weights[i] * node_weights[j] * (log_q - log_p + log_evidence)
    assert _kl(x, model, q) == pytest.approx(expected, abs=1e-10)


def test_divergence_vanishes_where_the_posterior_factorises() -> None:
    """With one component q can be the exact posterior."""
    model = known_variance.Model((1.0,), 0.7, 1.0, 5.0)
    q = known_variance.Factors(np.zeros(1), np.ones(1), np.ones((4, 1)))
    q = known_variance.sweep(X, model, q)
    assert _kl(X, model, q) == pytest.approx(0.0, abs=1e-12)
    assert known_variance.elbo(X, model, q) == pytest.approx(_evidence(X, model), abs=1e-12)


def test_gap_of_separated_components_tends_to_the_log_number_of_labellings() -> None:
    """One of K! equal modes is found, so log K! of the evidence is missed."""
    x = np.array([-60.2, -59.7, 0.3, 0.1, 59.8, 60.4])
    model = known_variance.Model((1 / 3, 1 / 3, 1 / 3), prior_variance=1e4)
    q = known_variance.Factors(np.array([-60.0, 0.0, 60.0]), np.full(3, 0.5), np.full((6, 3), 1 / 3))
    q = known_variance.run(x, model, q, 5)
    assert _evidence(x, model) - known_variance.elbo(x, model, q) == pytest.approx(np.log(6), abs=1e-9)


def test_divergence_is_infinite_where_q_holds_what_the_model_excludes() -> None:
    assert exact_kl([0.0], [0.0, 0.0], [1.0, 1.0], [[0.5, 0.5]], weights=[1.0, 0.0]) == np.inf
    assert exact_kl([0.0], [0.0, 0.0], [1.0, 1.0], [[1.0, 0.0]], weights=[1.0, 0.0]) < np.inf


def test_posterior_moments_are_those_by_quadrature() -> None:
    model = known_variance.Model((0.2, 0.8), 1.0, 0.0, 4.0)
    posterior = exact_posterior(X, 2, 4.0, 1.0, (0.2, 0.8))
    nodes = np.linspace(-20, 20, 401)
    mu = np.array(list(product(nodes, repeat=2)))
    log_density = _log_joint_density(X, model, mu)
    density = np.exp(log_density - logsumexp(log_density))
    log_terms = np.log(model.weights) + norm.logpdf(X[:, None, None], mu, 1.0)
    r = np.exp(log_terms - logsumexp(log_terms, axis=2, keepdims=True))

    probabilities = np.exp(posterior.log_probabilities)
    assert posterior.log_evidence == pytest.approx(exact_log_evidence(X, 2, 4.0, 1.0, (0.2, 0.8)), abs=1e-13)
    assert probabilities.sum() == pytest.approx(1.0, abs=1e-13)
    np.testing.assert_allclose(probabilities @ posterior.means, density @ mu, atol=1e-10)
    second = posterior.mean_variances + posterior.means**2
    np.testing.assert_allclose(probabilities @ second, density @ mu**2, atol=1e-10)
    np.testing.assert_allclose(posterior.responsibilities, np.einsum("m,nmk->nk", density, r), atol=1e-10)


def test_chunks_do_not_change_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    x, model, q = _random_case(3)
    whole = _evidence(x, model), _kl(x, model, q)
    monkeypatch.setattr("caviar.testing._enumeration._CHUNK_ENTRIES", 1)
    assert (_evidence(x, model), _kl(x, model, q)) == pytest.approx(whole, abs=1e-12)


def test_data_far_from_the_origin_lose_no_digits() -> None:
    """Shifting the data and the prior together changes nothing (the shift is a power of two: no rounding)."""
    x = np.array([0.25, -1.5, 3.0, 2.75])
    shift = 2.0**30
    far = exact_log_evidence(x + shift, 2, 4.0, prior_mean=shift)
    assert far == pytest.approx(exact_log_evidence(x, 2, 4.0), abs=1e-12)


def test_one_component_takes_any_number_of_rows() -> None:
    x = np.random.default_rng(0).normal(2.0, 1.0, 500)
    direct = multivariate_normal.logpdf(x, np.zeros(500), np.eye(500) + 100.0)
    assert exact_log_evidence(x, 1) == pytest.approx(direct, abs=1e-8)


def test_no_rows_have_evidence_one() -> None:
    assert exact_log_evidence([], 3) == pytest.approx(0.0, abs=1e-15)


def test_a_column_is_a_vector() -> None:
    assert exact_log_evidence(X[:, None], 2) == exact_log_evidence(X, 2)


def test_too_many_assignments_are_refused_with_what_to_do() -> None:
    with pytest.raises(
        errors.ParameterError, match=r"2\*\*23 .* must be approximate.* at most 22 rows .*ELBO"
    ):
        exact_log_evidence(np.zeros(23), 2)
    with pytest.raises(errors.ParameterError, match="at most 14 rows with 3"):
        exact_kl(np.zeros(15), np.zeros(3), np.ones(3), np.full((15, 3), 1 / 3))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_components": 0}, "n_components"),
        ({"n_components": 1.5}, "n_components"),
        ({"prior_variance": np.inf}, "improper"),
        ({"prior_variance": 0.0}, "prior_variance"),
        ({"variance": -1.0}, "variance"),
        ({"variance": np.nan}, "variance"),
        ({"prior_mean": np.nan}, "prior_mean"),
        ({"weights": [0.5, 0.6]}, "sum to one"),
        ({"weights": [1.5, -0.5]}, ">= 0"),
        ({"weights": [1.0]}, "one a component"),
    ],
)
def test_impossible_parameters_are_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(errors.ParameterError, match=message):
        exact_log_evidence(**{"x": X, "n_components": 2, **arguments})


@pytest.mark.parametrize("x", [[[1.0, 2.0]], [np.nan], [np.inf, 0.0], 1.0])
def test_data_that_are_no_column_of_numbers_are_refused(x: object) -> None:
    with pytest.raises(errors.DataError, match="one column of finite numbers"):
        exact_log_evidence(x, 2)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("means", "variances", "r", "message"),
    [
        ([[0.0]], [1.0], [[1.0]], r"means must have the shape \(K,\)"),
        ([np.nan], [1.0], [[1.0]], "means must be finite"),
        ([0.0], [0.0], [[1.0]], "mean_variances"),
        ([0.0, 1.0], [1.0], [[0.5, 0.5]], "mean_variances"),
        ([0.0, 1.0], [1.0, 1.0], [[1.0]], "responsibilities must have the shape"),
        ([0.0, 1.0], [1.0, 1.0], [[0.5, 0.6]], "sum to one"),
    ],
)
def test_factors_that_are_no_distribution_are_refused(
    means: object, variances: object, r: object, message: str
) -> None:
    with pytest.raises(errors.ParameterError, match=message):
        exact_kl([0.0], means, variances, r)  # type: ignore[arg-type]
