"""Hidden Markov models: a published figure, the exact evidence over all paths, and the textbook's loops."""

from itertools import product

import numpy as np
import pytest
from scipy.special import digamma, gammaln, logsumexp
from scipy.stats import multivariate_normal, poisson

import caviar as cv
import caviar.models
from oracles.reference.hidden_markov import (
    Dirichlets,
    ascend,
    enumerate_paths,
    log_dirichlet_evidence,
    sequences,
)


def categorical(initial, transition, emission, starts=None) -> cv.Model:
    """State a chain that emits categories; each argument is a prior concentration with a plate, or known."""
    time, state = cv.Plate("time"), cv.Plate("state", len(initial))
    s = cv.MarkovChain("s", initial, transition, along=time, starts=starts)
    return cv.Model(cv.Categorical("x", cv.Constant("emission", emission, plates=state)[s], plates=time))


def bayesian_categorical(prior: Dirichlets) -> cv.Model:
    time, state = cv.Plate("time"), cv.Plate("state", len(prior.initial))
    initial = cv.Dirichlet("initial", prior.initial)
    transition = cv.Dirichlet("transition", prior.transition, plates=state)
    emission = cv.Dirichlet("emission", prior.emission, plates=state)
    s = cv.MarkovChain("s", initial, transition, along=time, starts=cv.Data("starts", plates=time))
    return cv.Model(cv.Categorical("x", emission[s], plates=time))


def random_case(seed: int, n: int, k: int = 2, m: int = 3) -> tuple[Dirichlets, dict[str, np.ndarray]]:
    rng = np.random.default_rng(seed)
    prior = Dirichlets(*(rng.uniform(0.3, 3, shape) for shape in (k, (k, k), (k, m))))
    starts = rng.random(n) < 0.2
    starts[0] = True
    return prior, {"x": rng.integers(0, m, n), "starts": starts}


def test_published_figure_of_known_parameters():
    """The weather and the published figure: three observations, two states."""
    model = categorical([0.6, 0.4], [[0.7, 0.3], [0.4, 0.6]], [[0.1, 0.4, 0.5], [0.6, 0.3, 0.1]])
    data = {"x": [0, 1, 2]}
    posterior = model.fit(data)
    assert posterior.elbo == pytest.approx(-3.3928721, abs=5e-8)
    marginals = posterior.local(data)["s"].probabilities
    published = [[0.23170, 0.76830], [0.62406, 0.37594], [0.86398, 0.13602]]
    np.testing.assert_allclose(marginals, published, atol=5e-6)


@pytest.mark.parametrize("seed", range(5))
def test_known_parameters_give_the_exact_evidence_and_path(seed):
    rng = np.random.default_rng(seed)
    n, k = 7, 3
    initial, transition, emission = (
        rng.dirichlet(np.ones(k)),
        rng.dirichlet(np.ones(k), k),
        rng.dirichlet(np.ones(4), k),
    )
    transition[0] = [0.0, 0.0, 1.0]
    starts = np.isin(np.arange(n), [0, 3, 4])
    x = rng.integers(0, 4, n)
    model, data = categorical(initial, transition, emission, starts), {"x": x}
    posterior = model.fit(data)
    with np.errstate(divide="ignore"):
        exact = enumerate_paths(np.log(emission[:, x].T), starts, np.log(initial), np.log(transition))
    assert posterior.elbo == pytest.approx(exact.log_partition, rel=1e-12)
    path = posterior.local(data)["s"]
    np.testing.assert_allclose(path.probabilities, exact.marginals, atol=1e-12)
    np.testing.assert_array_equal(path.mode(), exact.best)


@pytest.mark.parametrize("seed", range(5))
def test_the_fit_is_that_of_the_textbooks_loops(seed):
    prior, data = random_case(seed, 40)
    rng = np.random.default_rng(100 + seed)
    begin = Dirichlets(
        *(rng.uniform(0.5, 4, a.shape) for a in (prior.initial, prior.transition, prior.emission))
    )
    names = ("initial", "transition", "emission")
    init = {name: cv.families.Dirichlet(getattr(begin, name)) for name in names}
    posterior = bayesian_categorical(prior).fit(data, init=init, max_iter=6, tol=0.0, accelerate=False)
    q, trace = ascend(data["x"], data["starts"], prior, begin, 6)
    np.testing.assert_allclose(posterior.elbo_trace, trace, rtol=1e-11)
    for name in names:
        np.testing.assert_allclose(posterior[name].concentration, getattr(q, name), rtol=1e-9)


def _log_prior_of_path(
    path: np.ndarray, starts: np.ndarray, initial: np.ndarray, transition: np.ndarray
) -> float:
    first, pairs = np.zeros(len(initial)), np.zeros_like(transition)
    for rows in sequences(starts):
        first[path[rows][0]] += 1
        np.add.at(pairs, (path[rows][:-1], path[rows][1:]), 1)
    return log_dirichlet_evidence(initial, first) + log_dirichlet_evidence(transition, pairs)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_the_elbo_of_categories_is_below_the_exact_evidence_and_close(seed):
    prior, data = random_case(seed, 9)
    each = []
    for path in map(np.array, product(range(2), repeat=9)):
        emitted = np.zeros_like(prior.emission)
        np.add.at(emitted, (path, data["x"]), 1)
        each.append(
            _log_prior_of_path(path, data["starts"], prior.initial, prior.transition)
            + log_dirichlet_evidence(prior.emission, emitted)
        )
    evidence = logsumexp(each)
    posterior = bayesian_categorical(prior).fit(data, seed=0, n_restarts=5)
    assert evidence - 3.0 < posterior.elbo < evidence
    assert np.diff(posterior.elbo_trace).min() > -1e-11


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_the_elbo_of_gaussians_is_below_the_exact_evidence_and_close(seed):
    rng = np.random.default_rng(seed)
    n, k, variance = 9, 2, 4.0
    x = rng.normal(0, 1, n) + np.where(np.arange(n) < 5, -2.0, 2.0)
    starts = np.isin(np.arange(n), [0, 6])
    concentration = rng.uniform(0.5, 2, (k, k))
    time, state = cv.Plate("time"), cv.Plate("state", k)
    s = cv.MarkovChain(
        "s",
        cv.Dirichlet("initial", np.ones(k)),
        cv.Dirichlet("transition", concentration, plates=state),
        along=time,
        starts=cv.Data("starts", plates=time),
    )
    mean = cv.Normal("mean", 0.5, 1 / variance, plates=state)
    posterior = cv.Model(cv.Normal("x", mean[s], 1.0, plates=time)).fit(
        {"x": x, "starts": starts}, seed=0, n_restarts=3
    )
    each = []
    for path in map(np.array, product(range(k), repeat=n)):
        value = _log_prior_of_path(path, starts, np.ones(k), concentration)
        for state_number in range(k):
            own = x[path == state_number]
            if len(own):
                value += multivariate_normal.logpdf(own, np.full(len(own), 0.5), np.eye(len(own)) + variance)
        each.append(value)
    evidence = logsumexp(each)
    assert evidence - 3.0 < posterior.elbo < evidence
    assert np.diff(posterior.elbo_trace).min() > -1e-11


def test_a_chain_without_memory_is_a_mixture():
    """All rows of the transitions equal to the weights: the same ELBO and the same responsibilities."""
    rng = np.random.default_rng(3)
    x = rng.normal(0, 1, (300, 2)) + rng.choice([-3, 3], (300, 1))
    weights = [0.3, 0.7]

    def model(chain: bool) -> cv.Model:
        obs, component = cv.Plate("obs"), cv.Plate("component", 2)
        z = (
            cv.MarkovChain("z", weights, [weights, weights], along=obs)
            if chain
            else cv.Categorical("z", weights, plates=obs)
        )
        mean = cv.MultivariateNormal("mean", np.zeros(2), 0.1 * np.eye(2), plates=component)
        precision = cv.Wishart("precision", 3, np.eye(2), plates=component)
        return cv.Model(cv.MultivariateNormal("x", mean[z], precision[z], plates=obs))

    # the two do not begin alike, so both go on until nothing changes
    chain, mixture = (model(kind).fit({"x": x}, seed=0, tol=1e-15) for kind in (True, False))
    assert chain.elbo == pytest.approx(mixture.elbo, rel=1e-12)
    found, expected = (p.local({"x": x})["z"].probabilities for p in (chain, mixture))
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-10)


def counted(seed: int, n: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Return two columns of counts whose level changes, with two beginnings, and a prior of the transitions."""
    rng = np.random.default_rng(seed)
    level = np.where(np.arange(n)[:, None] < n // 2, [1.0, 6.0], [5.0, 3.0])
    starts = np.isin(np.arange(n), [0, n - 3])
    return {"x": rng.poisson(level), "starts": starts}, rng.uniform(0.5, 2, (2, 2))


def test_known_rates_give_the_exact_evidence_and_path():
    data, _ = counted(0, 7)
    time, state, feature = cv.Plate("time"), cv.Plate("state", 3), cv.Plate("feature", 2)
    rng = np.random.default_rng(0)
    initial, transition = rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(3), 3)
    rates = np.array([[1.0, 6.0], [5.0, 3.0], [0.1, 12.0]])
    s = cv.MarkovChain("s", initial, transition, along=time, starts=data["starts"])
    known = cv.Constant("rate", rates, plates=(state, feature))
    posterior = cv.Model(cv.Poisson("x", known[s], plates=(time, feature))).fit({"x": data["x"]})
    logits = poisson.logpmf(data["x"][:, None, :], rates).sum(axis=-1)
    exact = enumerate_paths(logits, data["starts"], np.log(initial), np.log(transition))
    assert posterior.elbo == pytest.approx(exact.log_partition, rel=1e-12)
    path = posterior.local({"x": data["x"]})["s"]
    np.testing.assert_allclose(path.probabilities, exact.marginals, atol=1e-12)
    np.testing.assert_array_equal(path.mode(), exact.best)


@pytest.mark.thinned(4)
@pytest.mark.parametrize("seed", range(4))
def test_the_elbo_of_counts_is_below_the_exact_evidence_and_close(seed):
    """The evidence of the counts of a state: those of a Gamma of rates, a column each; summed over all paths."""
    data, transition = counted(seed, 9)
    a, b = 1.3, 0.4
    model = cv.models.poisson_hidden_markov_model(
        2, 2, transition_concentration=transition, shape=a, rate=b, with_starts=True
    )
    posterior = model.fit(data, seed=0, n_restarts=5)
    each = []
    for path in map(np.array, product(range(2), repeat=9)):
        value = _log_prior_of_path(path, data["starts"], np.ones(2), transition)
        for state in range(2):
            own = data["x"][path == state]
            total = a + own.sum(axis=0)
            normaliser = a * np.log(b) - gammaln(a) + gammaln(total) - total * np.log(b + len(own))
            value += normaliser.sum() - gammaln(own + 1).sum()
        each.append(value)
    evidence = logsumexp(each)
    assert evidence - 3.0 < posterior.elbo < evidence
    assert np.diff(posterior.elbo_trace).min() > -1e-11


@pytest.mark.parametrize("missing", [False, True])
def test_the_updates_of_counts_are_those_over_all_paths(missing):
    """Three iterations from given rates: the path by enumeration, then each factor by its formula."""
    data, transition = counted(5, 8)
    seen = np.ones((8, 2))
    if missing:
        seen[2] = seen[5, 1] = 0.0
    a, b = np.array([[2.0, 5.0], [4.0, 3.0]]), np.ones((2, 2))
    concentrations = {"initial": np.ones(2), "transition": transition}
    model = cv.models.poisson_hidden_markov_model(
        2, 2, transition_concentration=transition, shape=1.3, rate=0.4, with_starts=True
    )
    init = {"rate": cv.families.Gamma(a, b)}
    init |= {name: cv.families.Dirichlet(value) for name, value in concentrations.items()}
    given = {**data, "x": np.where(seen > 0, data["x"], np.nan)} if missing else data
    posterior = model.fit(given, init=init, max_iter=3, tol=0.0, accelerate=False)
    for _ in range(3):
        expected, logs = a / b, digamma(a) - np.log(b)
        logits = np.einsum("td,tkd->tk", seen, data["x"][:, None, :] * logs - expected)
        log_probabilities = [digamma(v) - digamma(v.sum(-1, keepdims=True)) for v in concentrations.values()]
        paths = enumerate_paths(logits, data["starts"], *log_probabilities)
        a, b = 1.3 + paths.marginals.T @ (seen * data["x"]), 0.4 + paths.marginals.T @ seen
        concentrations = {"initial": 1.0 + paths.first, "transition": transition + paths.pairs}
    np.testing.assert_allclose(posterior["rate"].shape, a, rtol=1e-9)
    np.testing.assert_allclose(posterior["rate"].rate, b, rtol=1e-9)
    for name, value in concentrations.items():
        np.testing.assert_allclose(posterior[name].concentration, value, rtol=1e-9)
