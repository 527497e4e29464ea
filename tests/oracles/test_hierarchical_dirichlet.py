"""Weights that are Dirichlet around hidden sticks: exact where these alone are hidden, elsewhere the best factors."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import betaln, digamma, gammaln, logsumexp, rel_entr, roots_jacobi

import caviar as cv
from caviar import families
from caviar.testing import check_model

GROUP = cv.Plate("group", 12)
SHARES = np.random.default_rng(2).dirichlet([2.0, 3.0, 1.0], 12)
GAMMA = 1.7


def _sticks(size: int, n: int = 160) -> tuple[np.ndarray, np.ndarray]:
    """Return weights of broken sticks at the nodes of a rule, (N, K), and the masses of the prior there."""
    nodes, masses = roots_jacobi(n, GAMMA - 1, 0)
    v, w = (nodes + 1) / 2, masses * GAMMA * 2.0**-GAMMA
    shares = np.stack([own.ravel() for own in np.meshgrid(*[v] * (size - 1))], axis=-1)
    weight = np.prod(np.meshgrid(*[w] * (size - 1)), axis=0).ravel()
    left = np.cumprod(1 - shares, axis=-1)
    one = np.ones((len(shares), 1))
    return np.concatenate((shares, one), axis=-1) * np.concatenate((one, left), axis=-1), weight


def _log_dirichlet(x: np.ndarray, concentration: np.ndarray) -> np.ndarray:
    normaliser = gammaln(concentration.sum(axis=-1)) - gammaln(concentration).sum(axis=-1)
    return normaliser + ((concentration - 1) * np.log(x)).sum(axis=-1)


def _added(kind: str) -> Any:
    """Return what is added to the weights: nothing, a number, a vector, or a row for each group; in zeros or not."""
    rows = np.zeros((12, 3))
    rows[range(12), np.arange(12) % 3] = 4.0
    return {
        "nothing": None,
        "a number": 0.3,
        "a vector": cv.Constant("more", [0.5, 0.0, 2.0]),
        "a row each": cv.Constant("more", rows, plates=GROUP),
        "several": 0.5 * cv.Constant("more", rows, plates=GROUP)
        + cv.Constant("other", [0.5, 0.0, 2.0])
        + 0.1,
    }[kind]


def _added_value(kind: str) -> np.ndarray:
    rows = np.zeros((12, 3))
    rows[range(12), np.arange(12) % 3] = 4.0
    vector = np.array([0.5, 0.0, 2.0])
    return np.broadcast_to(
        {
            "nothing": np.zeros(3),
            "a number": np.full(3, 0.3),
            "a vector": vector,
            "a row each": rows,
            "several": 0.5 * rows + vector + 0.1,
        }[kind],
        (12, 3),
    )


ADDED = ["nothing", "a number", "a vector", "a row each", "several"]


@pytest.mark.thinned(2)
@pytest.mark.parametrize("kind", ADDED)
def test_hidden_sticks_alone_have_their_exact_posterior(kind: str) -> None:
    beta = cv.StickBreaking("beta", GAMMA, 3)
    concentration = 2.5 * beta
    more = _added(kind)
    concentration = concentration if more is None else concentration + more
    model = cv.Model(cv.Dirichlet("p", concentration, plates=GROUP))
    posterior = model.fit({"p": SHARES}, tol=1e-12, max_iter=2000)
    x, masses = _sticks(3)
    each = _log_dirichlet(SHARES, 2.5 * x[:, None] + _added_value(kind))
    log_joint = np.log(masses) + each.sum(axis=1)
    evidence = logsumexp(log_joint)
    np.testing.assert_allclose(posterior.elbo, evidence, rtol=1e-7, atol=1e-7)
    weights = np.exp(log_joint - evidence)
    np.testing.assert_allclose(posterior["beta"].mean, weights @ x, rtol=1e-7)
    np.testing.assert_allclose(posterior["beta"].variance, weights @ (x - weights @ x) ** 2, rtol=1e-6)


@pytest.mark.filterwarnings("ignore::caviar.LooseBoundWarning")
@pytest.mark.thinned(6)
@pytest.mark.parametrize("kind", ADDED)
def test_a_hidden_total_has_the_best_factor_of_the_bound(kind: str) -> None:
    alpha = cv.Gamma("alpha", 3.0, 1.0)
    beta = cv.StickBreaking("beta", GAMMA, 3)
    concentration = 1.5 * alpha * beta
    more = _added(kind)
    concentration = concentration if more is None else concentration + more
    model = cv.Model(cv.Dirichlet("p", concentration, plates=GROUP))
    posterior = model.fit({"p": SHARES}, tol=1e-12, max_iter=2000)
    x, masses = _sticks(3, 40)
    nodes = np.exp(np.linspace(-8.0, 4.0, 300))
    prior = np.log(nodes[1] / nodes[0]) * nodes**3 * np.exp(-nodes) / 2
    log_joint = _bounds(1.5 * nodes, x, _added_value(kind))
    # the best independent factors, found by hand
    q_alpha, q_beta = prior / prior.sum(), masses
    for _ in range(100):
        log_beta = np.log(masses) + q_alpha @ log_joint
        q_beta = np.exp(log_beta - logsumexp(log_beta))
        log_alpha = np.log(prior) + log_joint @ q_beta
        q_alpha = np.exp(log_alpha - logsumexp(log_alpha))
    bound = logsumexp(np.log(masses) + q_alpha @ log_joint) - rel_entr(q_alpha, prior).sum()
    np.testing.assert_allclose(posterior.elbo, bound, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(posterior["beta"].mean, q_beta @ x, rtol=1e-5)
    np.testing.assert_allclose(posterior["alpha"].mean, q_alpha @ nodes, rtol=1e-5)
    # it is a bound of the density itself, at every total and all weights
    totals = 1.5 * nodes[::6, None, None, None] * x[::50, None] + _added_value(kind)
    exact = _log_dirichlet(SHARES, totals).sum(axis=-1)
    assert (log_joint[::6, ::50] <= exact + 1e-9 * np.abs(exact)).all()


def _bounds(alpha: np.ndarray, x: np.ndarray, more: np.ndarray) -> np.ndarray:
    """Return the density of all shares with each log-gamma bounded by its chord, (totals, weights)."""
    alpha, total = alpha[:, None, None], np.zeros((len(alpha), len(x)))
    for shares, own in zip(SHARES, more, strict=True):
        at_zero = gammaln(np.where(own, own, 1.0))
        at_one = gammaln(alpha + np.where(own, own, 1.0))
        chords = x * at_one + (1 - x) * at_zero - np.where(own, 0.0, np.log(alpha) + np.log(x))
        total += gammaln(alpha[..., 0] + own.sum()) - chords.sum(axis=-1)
        total += ((alpha * x + own - 1) * np.log(shares)).sum(axis=-1)
    return total


@pytest.mark.slow
def test_known_totals_weighed_by_their_fits_have_the_posterior_that_the_bound_of_a_hidden_one_misses() -> (
    None
):
    """Two weights and their total: quadrature over both."""
    shares = np.random.default_rng(0).dirichlet([2.0, 3.0], 20)
    totals = np.geomspace(0.5, 60, 30)

    def fitted(total: Any) -> Any:
        beta = cv.StickBreaking("beta", GAMMA, truncation=2)
        return cv.Model(cv.Dirichlet("p", total * beta, plates=cv.Plate("row"))).fit({"p": shares})

    weights, masses = _sticks(2)
    exact = [
        logsumexp(sum(_log_dirichlet(own, total * weights) for own in shares), b=masses) for total in totals
    ]
    found = [fitted(total).elbo for total in totals]
    np.testing.assert_allclose(found, exact, atol=1e-8)
    prior = 2 * np.log(0.2) + 2 * np.log(totals) - 0.2 * totals
    share = np.exp(exact - np.max(exact) + prior)
    mean, step = share @ totals / share.sum(), np.log(totals[1] / totals[0])
    with pytest.warns(cv.LooseBoundWarning, match="'total' times the weights 'beta' in 'p' is bounded"):
        hidden = fitted(cv.Gamma("total", 2.0, 0.2))
    assert logsumexp(exact + prior) + np.log(step) - hidden.elbo > 10
    assert hidden["total"].mean < 0.5 * mean


def test_the_bound_without_additions_is_that_of_hughes() -> None:
    # K - 1 pieces and the rest: (K - 1) log alpha + sum of log beta, whatever alpha is
    beta, alpha = np.array([[0.2, 0.5, 0.3]]), np.array([0.1, 3.0, 400.0])
    own = _bounds(alpha, beta, np.zeros((12, 3)))[:, 0]
    shares = (np.log(SHARES) * (alpha[:, None, None] * beta - 1)).sum(axis=(1, 2))
    np.testing.assert_allclose(own - shares, 12 * (2 * np.log(alpha) + np.log(beta).sum()), rtol=1e-10)


def _chain(size: int, kappa: float = 0.0) -> tuple[cv.Model, np.ndarray]:
    """Return a hidden Markov model of two states whose emissions are known, and six steps."""
    state, time = cv.Plate("state", size), cv.Plate("time")
    beta = cv.StickBreaking("beta", GAMMA, size)
    concentration = 2.0 * beta
    if kappa:
        concentration = concentration + cv.Constant("sticky", kappa * np.eye(size), plates=state)
    transition = cv.Dirichlet("transition", concentration, plates=state)
    initial = cv.Dirichlet("initial", 2.0 * beta)
    s = cv.MarkovChain("s", initial, transition, along=time)
    mean = cv.Constant("mean", np.arange(size) * 2.0, plates=state)
    return cv.Model(cv.Normal("y", mean[s], 1.0, plates=time)), np.array([0.1, -0.3, 2.2, 1.9, 0.2, 2.5])


@pytest.mark.parametrize("kappa", [0.0, 3.0])
def test_the_factors_of_a_chain_are_optimal_and_bound_the_evidence(kappa: float) -> None:
    model, y = _chain(2, kappa)
    posterior = model.fit({"y": y}, tol=1e-12, max_iter=2000)
    x, masses = _sticks(2)
    more = np.stack((np.array([0.0, 0.0]), np.array([kappa, 0.0]), np.array([0.0, kappa])))
    # the best factor of the sticks given those of the initial state and the transitions
    log_p = [posterior["initial"].concentration[None], posterior["transition"].concentration]
    logs = np.concatenate([digamma(own) - digamma(own.sum(axis=1, keepdims=True)) for own in log_p])
    concentration = 2.0 * x[:, None] + more
    each = gammaln(concentration.sum(axis=-1)) - gammaln(concentration).sum(axis=-1)
    log_q = np.log(masses) + (each + (concentration * logs).sum(axis=-1)).sum(axis=1)
    q = np.exp(log_q - logsumexp(log_q))
    np.testing.assert_allclose(posterior["beta"].mean, q @ x, rtol=1e-6)
    # the best factors of the transitions given it
    counts = posterior["transition"].concentration - (2.0 * posterior["beta"].mean + more[1:])
    steps = posterior.local({"y": y})["s"]
    np.testing.assert_allclose(counts.sum(), 5.0, rtol=1e-9)
    assert steps.probabilities.shape == (6, 2)
    # the evidence: all 64 paths, and the sticks by quadrature
    total = []
    for path in itertools.product(range(2), repeat=6):
        found = np.zeros((3, 2))
        found[0, path[0]] = 1
        for one, other in itertools.pairwise(path):
            found[1 + one, other] += 1
        own = (gammaln(concentration + found) - gammaln(concentration)).sum(axis=(1, 2))
        own += (gammaln(concentration.sum(axis=-1)) - gammaln((concentration + found).sum(axis=-1))).sum(
            axis=1
        )
        emitted = -0.5 * ((y - 2.0 * np.array(path)) ** 2).sum() - 3 * np.log(2 * np.pi)
        total.append(logsumexp(np.log(masses) + own) + emitted)
    evidence = logsumexp(total)
    assert evidence - 1.5 < posterior.elbo < evidence


@pytest.mark.slow
def test_restricted_sticks_of_hughes_come_to_less() -> None:
    """The bound of Hughes et al. with independent Beta shares, maximised numerically, is below that of the factor."""
    model, y = _chain(3)
    posterior = model.fit({"y": y}, tol=1e-12, max_iter=2000)
    rows = np.concatenate((posterior["initial"].concentration[None], posterior["transition"].concentration))
    logs = (digamma(rows) - digamma(rows.sum(axis=1, keepdims=True))).sum(axis=0)

    def minus_bound(parameters: np.ndarray) -> float:
        a, b = np.exp(parameters.reshape(2, 2))
        log_v, log_left = digamma(a) - digamma(a + b), digamma(b) - digamma(a + b)
        mean = np.array([a[0] / (a + b)[0], b[0] / (a + b)[0] * a[1] / (a + b)[1], np.prod(b / (a + b))])
        log_s = np.array([0.0, log_left[0], log_left.sum()])
        log_x = np.append(log_v, 0.0) + log_s
        surrogate = 4 * (2 * np.log(2.0) + log_x.sum()) + 2.0 * mean @ logs
        prior = (np.log(GAMMA) + (GAMMA - 1) * log_left).sum()
        entropy = betaln(a, b) - (a - 1) * log_v - (b - 1) * log_left
        return -(surrogate + prior + entropy.sum())

    best = -min(minimize(minus_bound, start, method="BFGS").fun for start in np.eye(4))
    # what the factor's own sticks add to the ELBO: prior, normalisers of the rows, and entropy
    beta = posterior["beta"]
    own = families.StickBreaking(np.ones(2), np.full(2, GAMMA))
    x, masses = _sticks(3, 40)
    normalisers = 4 * (gammaln(2.0) - gammaln(2.0 * x).sum(axis=1)) + 2.0 * x @ logs
    exact = logsumexp(np.log(masses) + normalisers)
    np.testing.assert_allclose(-beta.kl(type(beta).widened(own)) + _expected(beta, logs), exact, rtol=1e-7)
    assert best < exact - 0.05


def _expected(beta: Any, logs: np.ndarray) -> float:
    """Return what the rows' densities come to: the expected logarithms of their normalisers, and concentrations."""
    x, masses = _sticks(3, 40)
    log_weights = (
        np.log(masses) + beta.log_density(x) - families.StickBreaking([1.0, 1.0], [GAMMA] * 2).log_density(x)
    )
    weights = np.exp(log_weights)
    np.testing.assert_allclose(weights.sum(), 1.0, rtol=1e-7)
    return float(weights @ (4 * (gammaln(2.0) - gammaln(2.0 * x).sum(axis=1)) + 2.0 * x @ logs))


@pytest.mark.filterwarnings("ignore::caviar.LooseBoundWarning")
@pytest.mark.slow
@pytest.mark.parametrize("kappa", [0.0, 10.0])
@pytest.mark.parametrize("total", [0.7, None])
def test_hierarchical_chains_pass_every_check(kappa: float, total: float | None) -> None:
    state, time = cv.Plate("state", 4), cv.Plate("time")
    alpha = cv.Gamma("alpha", 2.0, 1.0) if total is None else total
    beta = cv.StickBreaking("beta", cv.Gamma("gamma", 2.0, 1.0), 4)
    concentration: Any = alpha * beta
    if kappa:
        concentration = concentration + cv.Constant("sticky", kappa * np.eye(4), plates=state)
    transition = cv.Dirichlet("transition", concentration, plates=state)
    s = cv.MarkovChain("s", cv.Dirichlet("initial", alpha * beta), transition, along=time)
    mean = cv.Normal("mean", 0, 0.05, plates=state)
    model = cv.Model(cv.Normal("y", mean[s], 1.0, plates=time))
    y = np.repeat([0.0, 5.0, 0.0, -6.0], 8) + np.random.default_rng(0).normal(size=32)
    assert check_model(model, {"y": y}).passed


def test_what_is_no_product_of_hidden_weights_is_refused() -> None:
    beta = cv.StickBreaking("beta", 1.0, 3)
    other = cv.StickBreaking("other", 1.0, 3)
    one, two = cv.Gamma("one", 1, 1), cv.Gamma("two", 1, 1)
    for concentration, error, message in [
        (beta + other, cv.ConjugacyError, "sum of 2 products of hidden weights"),
        (one * two * beta, cv.ConjugacyError, "at most one hidden number"),
        (beta * other, cv.ConjugacyError, "product of hidden weights and at most one"),
        (-1.0 * beta, cv.ModelError, "its factor -1 is not"),
        (beta + one, cv.ModelError, "plus known numbers"),
        (2.0 * beta - 0.1, cv.ModelError, "negative or not finite"),
        (cv.Constant("c", [1.0, 2.0, 3.0]) * beta, cv.ModelError, "'c' has several"),
        (beta + cv.Constant("c", [1.0, 2.0]), cv.ModelError, "has 3 hidden weights"),
    ]:
        with pytest.raises(error, match=message):
            cv.Dirichlet("p", concentration)
    with pytest.raises(cv.ConjugacyError, match="takes no hidden weights"):
        cv.Gamma("g", 2.0 * beta, 1.0)


@pytest.mark.usefixtures("figures_of_factors")
def test_a_fit_is_saved_and_simulated(tmp_path: Any) -> None:
    model, y = _chain(3, 2.0)
    posterior = model.fit({"y": y})
    posterior.save(tmp_path / "fit")
    again = cv.load(tmp_path / "fit")
    np.testing.assert_array_equal(again["beta"].mean, posterior["beta"].mean)
    np.testing.assert_allclose(again.elbo, posterior.elbo)
    drawn = model.simulate(seed=0, sizes={"time": 5})
    np.testing.assert_allclose(drawn["beta"].sum(), 1.0)
