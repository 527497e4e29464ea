"""Observation and allocation models of bnpy: closed forms, forward recursions, and bounds by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import betaln, digamma, gammaln, multigammaln
from scipy.stats import dirichlet_multinomial, multivariate_t, norm

import caviar as cv

from .exact import path_evidence

OBS, TIME = cv.Plate("obs"), cv.Plate("time")
RNG = np.random.default_rng(0)
X = RNG.normal(size=(9, 2)) @ np.array([[1.0, 0.4], [0.0, 0.8]])


def wishart_evidence(scatter, prior, df, n):
    """Return the log evidence of n vectors whose mean is known, the precision Wishart(df, prior)."""
    d = len(prior)
    found = multigammaln((df + n) / 2, d) - multigammaln(df / 2, d) - n * d / 2 * np.log(np.pi)
    found += df / 2 * np.linalg.slogdet(prior)[1] - (df + n) / 2 * np.linalg.slogdet(prior + scatter)[1]
    return found


def test_gauss():
    theta = cv.NormalWishart("theta", np.zeros(2), 0.5, 4.0, np.eye(2))
    posterior = cv.Model(cv.MultivariateNormal("x", theta, plates=OBS)).fit({"x": X})
    n, mean = len(X), X.mean(axis=0)
    scatter = (X - mean).T @ (X - mean) + 0.5 * n / (0.5 + n) * np.outer(mean, mean)
    exact = wishart_evidence(scatter, np.eye(2), 4.0, n) + np.log(0.5 / (0.5 + n))
    assert posterior.elbo == pytest.approx(exact, rel=1e-11)


def test_zero_mean_gauss():
    precision = cv.Wishart("precision", 4.0, np.eye(2))
    posterior = cv.Model(cv.MultivariateNormal("x", np.zeros(2), precision, plates=OBS)).fit({"x": X})
    assert posterior.elbo == pytest.approx(wishart_evidence(X.T @ X, np.eye(2), 4.0, len(X)), rel=1e-11)


def test_diag_gauss():
    column = cv.Plate("column", 2)
    theta = cv.NormalGamma("theta", 0.0, 0.5, 2.0, 1.0, plates=column)
    posterior = cv.Model(cv.Normal("x", theta, plates=(OBS, column))).fit({"x": X})
    shape = 0.5 * (np.eye(len(X)) + 2.0)
    exact = sum(multivariate_t(np.zeros(len(X)), shape, df=4).logpdf(own) for own in X.T)
    assert posterior.elbo == pytest.approx(exact, rel=1e-11)


def test_bernoulli():
    x, column = RNG.random((12, 3)) < [0.2, 0.5, 0.9], cv.Plate("column", 3)
    p = cv.Beta("p", 0.5, 0.5, plates=column)
    posterior = cv.Model(cv.Bernoulli("x", p, plates=(OBS, column))).fit({"x": x})
    on = x.sum(axis=0)
    exact = (betaln(0.5 + on, 12.5 - on) - betaln(0.5, 0.5)).sum()
    assert posterior.elbo == pytest.approx(exact, rel=1e-11)


def test_mult():
    x = RNG.multinomial(6, [0.2, 0.3, 0.5], 4)
    posterior = cv.Model(cv.Multinomial("x", 6, cv.Dirichlet("p", np.ones(3)), plates=OBS)).fit({"x": x})
    exact = sum(dirichlet_multinomial(1.0 + x[:i].sum(axis=0), 6).logpmf(x[i]) for i in range(4))
    assert posterior.elbo == pytest.approx(exact, rel=1e-11)


def test_auto_reg_gauss_with_diagonal_noise():
    """A regression on the step before for each output, with noise of its own: a Student-t each."""
    before, after = X[:-1], X[1:]
    total = 0.0
    for output in range(2):
        theta = cv.NormalGamma("theta", np.zeros(2), np.eye(2), 2.0, 1.0)
        mean = cv.dot(cv.Data("before", plates=OBS), theta.mean)
        model = cv.Model(cv.Normal("y", mean, theta.precision, plates=OBS))
        data = {"before": before, "y": after[:, output]}
        shape = 0.5 * (np.eye(8) + before @ before.T)
        total = multivariate_t(np.zeros(8), shape, df=4).logpdf(after[:, output])
        assert model.fit(data).elbo == pytest.approx(total, rel=1e-10)


def test_auto_reg_gauss_with_full_noise():
    """Columns of the matrix in one factor, the noise in another: each is its own update, written out."""
    before, after = X[:-1], X[1:]
    columns = [cv.MultivariateNormal(f"column {i}", np.zeros(2), np.eye(2)) for i in range(2)]
    mean = columns[0] * cv.Data("b0", plates=OBS) + columns[1] * cv.Data("b1", plates=OBS)
    model = cv.Model(cv.MultivariateNormal("y", mean, cv.Wishart("noise", 4.0, np.eye(2)), plates=OBS))
    posterior = model.fit({"y": after, "b0": before[:, 0], "b1": before[:, 1]}, tol=1e-13)
    noise = posterior["noise"]
    expected = noise.df * np.linalg.inv(noise.inverse_scale)
    # both columns are one vector, whose factor has the precision I + sum b b' x <noise>
    squares = before.T @ before
    covariance = np.linalg.inv(np.eye(4) + np.kron(squares, expected))
    means = (covariance @ (expected @ after.T @ before).T.ravel()).reshape(2, 2)
    np.testing.assert_allclose([posterior[own.name].mean for own in columns], means, atol=1e-6)
    left = after - before @ means
    spread = np.einsum("ij,iajb->ab", squares, covariance.reshape(2, 2, 2, 2))
    assert noise.df == pytest.approx(4.0 + 8)
    np.testing.assert_allclose(noise.inverse_scale, np.eye(2) + left.T @ left + spread, atol=1e-5)


def test_dirichlet_process_mixture():
    """Clear components take the rows; those that are left keep the prior of their sticks."""
    x = np.concatenate([RNG.normal(-20, 1, 60), RNG.normal(0, 1, 30), RNG.normal(25, 1, 15)])
    k = cv.Plate("k", 6)
    weights = cv.StickBreaking("weights", 1.0, truncation=6)
    z = cv.Categorical("z", weights, plates=OBS)
    theta = cv.NormalGamma("theta", 0.0, 0.01, 2.0, 2.0, plates=k)
    posterior = cv.Model(cv.Normal("x", theta[z], plates=OBS)).fit({"x": x})
    counts = posterior.local({"x": x})["z"].probabilities.sum(axis=0)
    np.testing.assert_allclose(np.sort(counts)[-3:], [15, 30, 60], atol=0.5)
    q = posterior["weights"]
    later = np.append(np.cumsum(counts[::-1])[::-1][1:], 0.0)
    a, b = 1 + counts[:-1], 1 + later[:-1]
    stick = a / (a + b)
    expected = np.append(stick, 1.0) * np.append(1.0, np.cumprod(1 - stick))
    np.testing.assert_allclose(q.mean, expected, atol=1e-4)


def test_latent_dirichlet_allocation():
    """One document and known topics: the bound is that of its updates, written out, below the exact evidence."""
    topics = np.array([[0.7, 0.2, 0.1], [0.1, 0.2, 0.7]])
    words = np.array([0, 0, 2, 1, 0])
    doc = cv.Plate("doc")
    token = cv.Plate("token", within=doc)
    theta = cv.Dirichlet("theta", np.ones(2), plates=doc)
    z = cv.Categorical("z", theta, plates=token)
    shown = cv.Constant("topics", topics, plates=cv.Plate("topic", 2))
    posterior = cv.Model(cv.Categorical("word", shown[z], plates=token)).fit({"word": [words]}, tol=1e-13)
    gamma_ = np.ones(2) + 2.5
    for _ in range(500):
        log_r = digamma(gamma_) + np.log(topics[:, words].T)
        r = np.exp(log_r) / np.exp(log_r).sum(axis=1, keepdims=True)
        gamma_ = 1 + r.sum(axis=0)
    expected = digamma(gamma_) - digamma(gamma_.sum())
    bound = (r * (expected + np.log(topics[:, words].T) - np.log(r))).sum()
    bound += gammaln(gamma_).sum() - gammaln(gamma_.sum()) - ((gamma_ - 1) * expected).sum()
    assert posterior.elbo == pytest.approx(bound, rel=1e-8)
    grid = np.linspace(0, 1, 20_001)
    exact = np.log(
        np.trapezoid(np.prod(np.outer(grid, topics[0, words] - topics[1, words]) + topics[1, words], 1), grid)
    )
    assert exact - 0.5 < posterior.elbo < exact


def hidden_markov(transition):
    """Return a model of two states with known levels and the transition that is given."""
    s = cv.MarkovChain("s", [0.5, 0.5], transition, along=TIME)
    mean = cv.Constant("mean", [-1.0, 1.0], plates=cv.Plate("state", 2))
    return cv.Model(cv.Normal("x", mean[s], 1.0, plates=TIME))


SERIES = np.array([-1.2, -0.7, 0.9, 1.4, 0.6, -1.1, -0.3])


@pytest.mark.slow
@pytest.mark.parametrize("extra", [0.0, 10.0], ids=["plain", "sticky"])
def test_hidden_markov_models(extra):
    """Unknown transitions, more of staying where sticky: below the evidence by quadrature over both rows."""
    state = cv.Plate("from", 2)
    prior = np.ones((2, 2)) + extra * np.eye(2)
    transition = cv.Dirichlet("moves", cv.Constant("prior", prior, plates=state), plates=state)
    posterior = hidden_markov(transition).fit({"x": SERIES}, tol=1e-12)
    grid = (np.arange(40) + 0.5) / 40
    logs = norm.logpdf(SERIES[:, None], [-1.0, 1.0])
    like = np.array(
        [
            [path_evidence(np.full(2, 0.5), np.array([[a, 1 - a], [1 - b, b]]), logs) for b in grid]
            for a in grid
        ]
    )
    log_prior = extra * np.log(grid) - betaln(1 + extra, 1)
    joint = like + log_prior[:, None] + log_prior
    exact = np.log(np.exp(joint).sum() / 40**2)
    assert exact - 1.0 < posterior.elbo < exact + 0.02
    known = hidden_markov(np.array([[0.8, 0.2], [0.3, 0.7]])).fit({"x": SERIES})
    at = path_evidence(np.full(2, 0.5), np.array([[0.8, 0.2], [0.3, 0.7]]), logs)
    assert known.elbo == pytest.approx(at, rel=1e-12)


@pytest.mark.slow
@pytest.mark.thinned(2)
@pytest.mark.parametrize("kappa", [0.0, 20.0], ids=["HDP-HMM", "sticky HDP-HMM"])
def test_states_around_common_weights(kappa):
    """Three states of five are found, and the ELBO is that of the densities."""
    truth = np.repeat([0, 1, 2, 0, 1, 2], 10)
    x = np.array([-6.0, 0.0, 6.0])[truth] + np.random.default_rng(1).normal(size=60)
    state = cv.Plate("state", 5)
    beta = cv.StickBreaking("beta", 2.0, truncation=5)
    concentration = 2.0 * beta
    if kappa:
        concentration = concentration + cv.Constant("stay", kappa * np.eye(5), plates=state)
    moves = cv.Dirichlet("moves", concentration, plates=state)
    s = cv.MarkovChain("s", np.full(5, 1 / 5), moves, along=TIME)
    theta = cv.NormalGamma("theta", 0.0, 0.1, 2.0, 2.0, plates=state)
    posterior = cv.Model(cv.Normal("x", theta[s], plates=TIME)).fit({"x": x}, seed=0)
    path = posterior.local({"x": x})["s"].probabilities
    used = path.sum(axis=0) > 1
    assert used.sum() == 3
    assert len(set(zip(path.argmax(axis=1), truth, strict=True))) == 3
    assert posterior["beta"].mean[used].sum() > 0.6
