"""Models with a linear Gaussian chain: exact evidence where all is known, elsewhere BayesPy's and literal updates."""

from typing import Any

import numpy as np
import pytest
from bayespy.nodes import Gamma, GaussianARD, GaussianMarkovChain, SumMultiply
from scipy.special import digamma, multigammaln
from scipy.stats import multivariate_normal

import caviar as cv
from caviar import families
from caviar.testing import check_model
from oracles.reference.linear_gaussian import dense, sums_over_steps

A = np.array([[0.9, 0.3], [-0.2, 1.05]])
Q = np.array([[2.0, 0.5], [0.5, 4.0]])
M0, P0 = np.array([0.5, -1.0]), np.array([[1.5, 0.2], [0.2, 0.8]])


def prior_moments(starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return mean (N, D) and covariance (N, D, N, D) of the states before any data, forward in time."""
    n, d = len(starts), len(M0)
    mean, covariance = np.zeros((n, d)), np.zeros((n, d, n, d))
    for t in range(n):
        if starts[t]:
            mean[t], covariance[t, :, t] = M0, np.linalg.inv(P0)
            continue
        mean[t] = A @ mean[t - 1]
        covariance[t] = np.einsum("ij,jnk->ink", A, covariance[t - 1])
        covariance[:, :, t] = np.moveaxis(covariance[t], 0, -1)
        covariance[t, :, t] = A @ covariance[t - 1, :, t - 1] @ A.T + np.linalg.inv(Q)
    return mean, covariance


def known_chain(starts: Any = None, along: cv.Plate | None = None) -> cv.LinearGaussianChain:
    return cv.LinearGaussianChain("s", M0, P0, A, Q, along=along or cv.Plate("time"), starts=starts)


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("emission", ["numbers", "vectors", "covariates"])
def test_known_parameters_give_the_exact_evidence(emission, missing):
    rng = np.random.default_rng(0)
    n, time, column = 9, cv.Plate("time"), cv.Plate("column", 3)
    starts = np.isin(np.arange(n), [0, 4])
    s = known_chain(cv.Data("starts", plates=time), time)
    data: dict[str, Any] = {"starts": starts}
    if emission == "numbers":
        loadings = rng.normal(size=(3, 2))
        x = cv.Normal("x", cv.dot(cv.Constant("w", loadings, plates=column), s), 2.5, plates=(time, column))
        maps, noise = np.broadcast_to(loadings, (n, 3, 2)), np.eye(3) / 2.5
    elif emission == "vectors":
        precision = np.array([[1.0, 0.4], [0.4, 3.0]])
        x = cv.MultivariateNormal("x", s, precision, plates=time)
        maps, noise = np.broadcast_to(np.eye(2), (n, 2, 2)), np.linalg.inv(precision)
    else:
        x = cv.Normal("x", cv.dot(cv.Data("c", plates=time), s), 2.5, plates=time)
        data["c"] = rng.normal(size=(n, 2))
        maps, noise = data["c"][:, None, :], np.eye(1) / 2.5
    values = rng.normal(1.0, 2.0, size=(n, maps.shape[1]))
    seen = np.ones(values.shape, dtype=bool)
    if missing:
        seen[[2, 5, 8]] = False
        seen[6, 0] = emission == "vectors"
    data["x"] = np.where(seen, values, np.nan).reshape(n, *((-1,) if emission != "covariates" else ()))
    posterior = cv.Model(x).fit(data)
    mean, covariance = prior_moments(starts)
    about = np.einsum("nki,ni->nk", maps, mean).ravel()
    spread = np.einsum("nki,nimj,mlj->nkml", maps, covariance, maps).reshape(values.size, -1)
    spread = spread + np.kron(np.eye(n), noise)
    flat = seen.ravel()
    exact = multivariate_normal.logpdf(values.ravel()[flat], about[flat], spread[np.ix_(flat, flat)])
    assert posterior.elbo == pytest.approx(exact, rel=1e-12)
    # the states given the data, by the rule for joint Normals
    across = np.einsum("nimj,mlj->niml", covariance, maps).reshape(n * 2, -1)[:, flat]
    gain = across @ np.linalg.inv(spread[np.ix_(flat, flat)])
    given = mean.ravel() + gain @ (values.ravel() - about)[flat]
    path = posterior.local(data)["s"]
    np.testing.assert_allclose(path.mean.ravel(), given, atol=1e-11)
    whole = covariance.reshape(n * 2, -1) - gain @ across.T
    blocks = whole.reshape(n, 2, n, 2)[np.arange(n), :, np.arange(n)]
    np.testing.assert_allclose(path.covariance, blocks, atol=1e-11)


def system(d: int, k: int) -> cv.Model:
    time, row, column = cv.Plate("time"), cv.Plate("row", d), cv.Plate("column", k)
    rows = cv.MultivariateNormal("A", np.zeros(d), 1.5 * np.eye(d), plates=row)
    q = cv.Gamma("q", 2.0, 1.0, plates=row)
    s = cv.LinearGaussianChain("s", [0.2, -0.1], 0.7 * np.eye(d), rows, cv.diagonal(q), along=time)
    w = cv.MultivariateNormal("w", np.zeros(d), 0.5 * np.eye(d), plates=column)
    return cv.Model(cv.Normal("x", cv.dot(w, s), cv.Gamma("tau", 1, 1), plates=(time, column)))


@pytest.mark.slow
def test_an_unknown_transition_follows_bayespy():
    """The same ELBO after each of six iterations, some entries and two whole steps missing."""
    rng = np.random.default_rng(0)
    n, d, k = 30, 2, 3
    x = rng.normal(size=(n, k)).cumsum(axis=0)
    seen = rng.random((n, k)) > 0.2
    seen[7:9] = False
    a0, w0 = 0.5 * rng.normal(size=(d, d)), rng.normal(size=(k, d))
    rows = GaussianARD(0, 1.5, shape=(d,), plates=(d,), name="A")
    rows.initialize_from_parameters(a0, 10 * np.ones((d, d)))
    q = Gamma(2.0, 1.0, plates=(d,), name="q")
    q.initialize_from_parameters(3 * np.ones(d), 2 * np.ones(d))
    s = GaussianMarkovChain(np.array([0.2, -0.1]), 0.7 * np.eye(d), rows, q, n=n, name="s")
    w = GaussianARD(0, 0.5, shape=(d,), plates=(k, 1), name="w")
    w.initialize_from_parameters(w0[:, None], 4 * np.ones((k, 1, d)))
    tau = Gamma(1.0, 1.0, name="tau")
    tau.initialize_from_parameters(3.0, 1.0)
    y = GaussianARD(SumMultiply("i,i", w, s), tau, name="y")
    y.observe(x.T, mask=seen.T)
    nodes, trace = (w, rows, q, tau, s), []
    s.update()
    for _ in range(7):
        trace.append(sum(node.lower_bound_contribution() for node in (y, *nodes)))
        for node in nodes:
            node.update()
    init = {
        "A": families.MultivariateNormal(a0, np.broadcast_to(10 * np.eye(d), (d, d, d))),
        "w": families.MultivariateNormal(w0, np.broadcast_to(4 * np.eye(d), (k, d, d))),
        "q": families.Gamma(3 * np.ones(d), 2 * np.ones(d)),
        "tau": families.Gamma(3.0, 1.0),
    }
    data = {"x": np.where(seen, x, np.nan)}
    posterior = system(d, k).fit(
        data, init=init, order=["w", "A", "q", "tau"], max_iter=6, tol=0.0, accelerate=False
    )
    np.testing.assert_allclose(posterior.elbo_trace, trace, rtol=1e-10)


def test_unknown_noise_and_first_state_follow_their_formulas():
    """Three iterations, the states by inversion of the joint precision; the ELBO from its definition."""
    rng = np.random.default_rng(1)
    n, d, df0, scale0 = 8, 2, 4.0, np.array([[1.0, 0.2], [0.2, 2.0]])
    x, tau = rng.normal(size=(n, d)), 1.7
    starts = np.isin(np.arange(n), [0, 5])
    time = cv.Plate("time")
    mean = cv.MultivariateNormal("m", M0, P0)
    noise = cv.Wishart("q", df0, scale0)
    s = cv.LinearGaussianChain("s", mean, Q, A, noise, along=time, starts=starts)
    model = cv.Model(cv.MultivariateNormal("x", s, tau * np.eye(d), plates=time))
    df, scale, m, p = 6.0, np.eye(d), np.array([0.3, 0.1]), np.eye(d)
    init = {"q": families.Wishart(df, scale), "m": families.MultivariateNormal(m, p)}
    posterior = model.fit({"x": x}, init=init, order=["m", "q"], max_iter=3, tol=0.0, accelerate=False)
    trace = []
    for _ in range(4):
        expected = df * np.linalg.inv(scale)
        information = np.broadcast_to(tau * np.eye(d), (n, d, d))
        chain = families.LinearGaussianChain(tau * x, information, starts, m, Q, A, expected)
        exact = dense(chain)
        sums = sums_over_steps(chain, exact)
        log_det = digamma((df - np.arange(d)) / 2).sum() + d * np.log(2) - np.linalg.slogdet(scale)[1]
        second = np.array([exact.covariance[t, :, t] for t in range(n)])
        likelihood = 0.5 * n * d * np.log(tau / (2 * np.pi)) - 0.5 * tau * (
            ((x - exact.mean) ** 2).sum() + np.trace(second.sum(axis=0))
        )
        mm = np.linalg.inv(p) + np.outer(m, m)
        first = sums["first_xx"] - np.outer(sums["first_x"], m) - np.outer(m, sums["first_x"]) + 2 * mm
        states = 0.5 * (2 * np.linalg.slogdet(Q)[1] - np.trace(Q @ first))
        states += 0.5 * (6 * log_det - np.trace(expected @ sums["residual_xx"])) - 0.5 * n * d * np.log(
            2 * np.pi
        )
        kl = 0.5 * (
            np.trace(P0 @ np.linalg.inv(p))
            + (m - M0) @ P0 @ (m - M0)
            - d
            + np.linalg.slogdet(p)[1]
            - np.linalg.slogdet(P0)[1]
        )
        kl += 0.5 * (df - df0) * log_det - 0.5 * np.trace((scale - scale0) @ expected)
        kl += 0.5 * (df * np.linalg.slogdet(scale)[1] - df0 * np.linalg.slogdet(scale0)[1])
        kl += 0.5 * (df0 - df) * d * np.log(2) + multigammaln(df0 / 2, d) - multigammaln(df / 2, d)
        trace.append(likelihood + states + exact.entropy - kl)
        last = (df, scale, m)
        p = P0 + 2 * Q
        m = np.linalg.solve(p, P0 @ M0 + Q @ sums["first_x"])
        df, scale = df0 + 6, scale0 + sums["residual_xx"]
    np.testing.assert_allclose(posterior.elbo_trace, trace, rtol=1e-10)
    np.testing.assert_allclose(posterior["q"].df, last[0], rtol=1e-12)
    np.testing.assert_allclose(posterior["q"].inverse_scale, last[1], rtol=1e-9)
    np.testing.assert_allclose(posterior["m"].mean, last[2], rtol=1e-9)


def test_a_transition_that_is_almost_known_is_the_known_one():
    """The two statements of the density, by residuals and by products of states, meet."""
    rng = np.random.default_rng(2)
    x, row, q = rng.normal(size=(40, 2)).cumsum(axis=0), cv.Plate("row", 2), np.diag([2.0, 5.0])

    def elbo(transition: Any) -> float:
        time = cv.Plate("time")
        s = cv.LinearGaussianChain("s", M0, P0, transition, q, along=time)
        return cv.Model(cv.MultivariateNormal("x", s, np.eye(2), plates=time)).fit({"x": x}).elbo

    known = cv.Constant("mean", A, plates=row)
    rows = cv.MultivariateNormal("A", known, 1e10 * np.eye(2), plates=row)
    assert elbo(rows) == pytest.approx(elbo(A), rel=3e-7)


def statement(noise: str, transition: str) -> cv.Model:
    time, row, column = cv.Plate("time"), cv.Plate("row", 2), cv.Plate("column", 3)
    choices: dict[str, Any] = {
        "gamma": lambda: cv.diagonal(cv.Gamma("q", 2.0, 1.0, plates=row)),
        "shared": lambda: cv.Gamma("q", 2.0, 1.0) * cv.Constant("shape", Q),
        "wishart": lambda: cv.Wishart("q", 4.0, np.eye(2)),
        "known": lambda: np.diag([2.0, 3.0]),
    }
    rows = cv.MultivariateNormal("A", np.zeros(2), np.eye(2), plates=row)
    s = cv.LinearGaussianChain(
        "s",
        cv.MultivariateNormal("m", np.zeros(2), np.eye(2)),
        cv.diagonal(cv.Gamma("p", 2.0, 2.0, plates=row)),
        rows if transition == "rows" else A,
        choices[noise](),
        along=time,
        starts=cv.Data("starts", plates=time),
    )
    mean = cv.dot(cv.Constant("w", np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), plates=column), s)
    return cv.Model(cv.Normal("x", mean, cv.Gamma("tau", 2, 2), plates=(time, column)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("noise", "transition"),
    [("gamma", "rows"), ("known", "rows"), ("gamma", "known"), ("shared", "known"), ("wishart", "known")],
)
def test_every_form_passes_the_verification_kit(noise, transition):
    rng = np.random.default_rng(3)
    data = {"x": rng.normal(size=(15, 3)), "starts": np.arange(15) % 6 == 0}
    check_model(statement(noise, transition), data, n_draws=500).raise_if_failed()
