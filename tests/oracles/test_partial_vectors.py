"""Vectors missing in part, against literal loops, SciPy's marginal densities, and evidence by quadrature."""

import itertools

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

import caviar as cv
from caviar import families
from caviar.models import maximum_likelihood_mixture
from oracles.reference import missing_entries, normal_wishart_mixture


def _definite(rng, d):
    a = rng.normal(size=(d, d))
    return a @ a.T + 0.5 * np.eye(d)


def _rows(seed, n, d, k, share, at=0.0):
    """Return rows of k clusters with a share of entries missing, one observed in each at least."""
    rng = np.random.default_rng(seed)
    centres, z = rng.normal(0, 4, (k, d)), rng.integers(0, k, n)
    roots = np.array([np.linalg.cholesky(_definite(rng, d)) for _ in range(k)])
    x = centres[z] + np.einsum("nij,nj->ni", roots[z], rng.normal(size=(n, d))) + at
    gone = rng.random(x.shape) < share
    gone[np.arange(n), rng.integers(0, d, n)] = False
    x[gone] = np.nan
    return x


def _prior(seed, d, k):
    rng = np.random.default_rng(seed)
    return normal_wishart_mixture.Prior(
        rng.uniform(0.4, 2, k), rng.normal(0, 1, d), 0.3, d + 0.7, _definite(rng, d)
    )


def _mixture(prior):
    obs, component = cv.Plate("obs"), cv.Plate("component", len(prior.concentration))
    theta = cv.NormalWishart(
        "theta", prior.mean, prior.mean_precision, prior.df, prior.inverse_scale, plates=component
    )
    z = cv.Categorical("z", cv.Dirichlet("weights", prior.concentration), plates=obs)
    return cv.Model(cv.MultivariateNormal("x", theta[z], plates=obs))


def _single(prior):
    theta = cv.NormalWishart("theta", prior.mean, prior.mean_precision, prior.df, prior.inverse_scale)
    return cv.Model(cv.MultivariateNormal("x", theta, plates=cv.Plate("obs")))


def _start(x, prior, seed):
    """Return factors to begin with, the labels at their optimum."""
    rng, k = np.random.default_rng(seed), len(prior.concentration)
    q = normal_wishart_mixture.factors_at_prior(prior, np.full((len(x), k), 1 / k))
    q.means[...] += rng.normal(0, 3, q.means.shape)
    return missing_entries.update_responsibilities(x, q)


def _theta(q, index=...):
    return families.NormalWishart(
        q.means[index], q.mean_precisions[index], q.dfs[index], q.inverse_scales[index]
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_mixture_follows_the_literal_loop(seed):
    """D = 4, K = 3, 30% missing: the ELBO after each of 25 sweeps, and every factor after the last."""
    x, prior = _rows(seed, 40, 4, 3, 0.3), _prior(seed, 4, 3)
    q = _start(x, prior, seed)
    init = {"theta": _theta(q), "weights": families.Dirichlet(q.concentration)}
    trace = [missing_entries.elbo(x, prior, q)]
    for _ in range(25):
        q = missing_entries.sweep(x, prior, q)
        trace.append(missing_entries.elbo(x, prior, q))
    posterior = _mixture(prior).fit({"x": x}, init=init, max_iter=25, tol=0, accelerate=False)
    np.testing.assert_allclose(posterior.elbo_trace, trace, rtol=0, atol=1e-9)
    np.testing.assert_allclose(posterior.local({"x": x})["z"].probabilities, q.responsibilities, atol=1e-10)
    np.testing.assert_allclose(posterior["theta"].mean, q.means, atol=1e-9)
    np.testing.assert_allclose(posterior["theta"].inverse_scale, q.inverse_scales, rtol=1e-9, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("at", [0.0, 1e3])
def test_one_component_follows_the_literal_loop(at):
    x, prior = _rows(5, 25, 3, 1, 0.4, at), _prior(5, 3, 1)
    q = _start(x, prior, 5)
    posterior = _single(prior).fit(
        {"x": x}, init={"theta": _theta(q, 0)}, max_iter=30, tol=0, accelerate=False
    )
    trace = [missing_entries.elbo(x, prior, q)]
    for _ in range(30):
        q = missing_entries.sweep(x, prior, q)
        trace.append(missing_entries.elbo(x, prior, q))
    np.testing.assert_allclose(posterior.elbo_trace, trace, rtol=1e-10, atol=1e-9)
    assert posterior["theta"].df == pytest.approx(prior.df + len(x), rel=1e-12)
    np.testing.assert_allclose(posterior["theta"].mean, q.means[0], rtol=1e-9)


def _log_evidence(x, prior, n_nodes=400):
    """Return log p(observed entries): the closed evidence of complete rows, integrated over the missing entries."""
    nodes, weights = np.polynomial.legendre.leggauss(n_nodes)
    # the tails are those of a Student-t: tan maps them to the ends of (-1, 1)
    values, log_jacobian = (
        np.tan(nodes * np.pi / 2),
        np.log(np.pi / 2) - 2 * np.log(np.cos(nodes * np.pi / 2)),
    )
    places = np.argwhere(np.isnan(x))
    filled, each = x.copy(), []
    for chosen in itertools.product(range(n_nodes), repeat=len(places)):
        for place, node in zip(places, chosen, strict=True):
            filled[tuple(place)] = values[node]
        measure = sum(np.log(weights[i]) + log_jacobian[i] for i in chosen)
        each.append(measure + normal_wishart_mixture.log_evidence_of_one_component(filled, prior))
    return float(logsumexp(each))


@pytest.mark.thinned(2)
@pytest.mark.parametrize(("gone", "n_nodes"), [([(1, 0)], 120), ([(0, 0), (2, 1)], 48)])
def test_the_bound_lies_below_the_evidence(gone, n_nodes):
    x, prior = _rows(2, 4, 2, 1, 0.0), _prior(2, 2, 1)
    for place in gone:
        x[place] = np.nan
    exact = _log_evidence(x, prior, n_nodes)
    assert exact == pytest.approx(_log_evidence(x, prior, n_nodes - 8), abs=0.02)
    gap = exact - _single(prior).fit({"x": x}, tol=1e-13).elbo
    assert 0.03 < gap < 1.5


def _marginals(x, weights, means, precisions):
    """Return log p of the observed entries of each row, by SciPy, shape (N,)."""
    covariances = np.linalg.inv(precisions)
    each = []
    for row in x:
        seen = ~np.isnan(row)
        logs = [
            np.log(w) + multivariate_normal.logpdf(row[seen], m[seen], c[np.ix_(seen, seen)])
            for w, m, c in zip(weights, means, covariances, strict=True)
        ]
        each.append(logsumexp(logs))
    return np.array(each)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "n", "d", "k", "at"), [(0, 300, 3, 2, 0.0), (1, 200, 5, 1, 0.0), (2, 300, 3, 2, 1e3)]
)
def test_maximum_likelihood_is_that_of_the_observed_entries(seed, n, d, k, at):
    """The objective is SciPy's log likelihood of the observed entries, whose gradient vanishes there."""
    x = _rows(seed, n, d, k, 0.25, at)
    posterior = maximum_likelihood_mixture(d, k).fit(
        {"x": x}, seed=0, point=["weights", "mean", "precision"], tol=1e-13, max_iter=5000
    )
    w, m, p = (posterior[name].value for name in ("weights", "mean", "precision"))
    assert posterior.elbo == pytest.approx(_marginals(x, w, m, p).sum(), rel=1e-10)
    rng, root = np.random.default_rng(seed), np.linalg.cholesky(np.linalg.inv(p))

    def log_likelihood(step, w_way, m_way, c_way):
        moved = root + step * root @ c_way
        covariance = moved @ np.swapaxes(moved, -1, -2)
        weights = w * np.exp(step * w_way)
        means = m + step * np.einsum("kij,kj->ki", root, m_way)
        return _marginals(x, weights / weights.sum(), means, np.linalg.inv(covariance)).sum()

    for _ in range(5):
        ways = rng.normal(size=w.shape), rng.normal(size=m.shape), rng.normal(size=p.shape)
        slope = (log_likelihood(1e-4, *ways) - log_likelihood(-1e-4, *ways)) / 2e-4
        curve = log_likelihood(1e-2, *ways) + log_likelihood(-1e-2, *ways) - 2 * posterior.elbo
        assert abs(slope) < 2e-3 * n
        assert curve < 0
        # a step of 0.01 to either side is a step downhill
        assert abs(slope) * 1e-2 < -curve


def test_the_mode_under_proper_priors_is_that_of_the_marginal():
    """MAP-EM: the objective is log p(x, theta) of the observed entries."""
    x, prior = _rows(4, 60, 3, 1, 0.3), _prior(4, 3, 1)
    posterior = _single(prior).fit({"x": x}, point=["theta"], tol=1e-13)
    mean, precision = posterior["theta"].value
    log_prior = families.NormalWishart(
        prior.mean, prior.mean_precision, prior.df, prior.inverse_scale
    ).log_density(posterior["theta"].value)
    exact = float(log_prior) + _marginals(x, [1.0], mean[None], precision[None]).sum()
    assert posterior.elbo == pytest.approx(exact, rel=1e-10)


def test_known_parameters_give_the_exact_posterior_of_the_labels():
    """Nothing global is unknown: the ELBO is the log evidence, tied precision, whatever is missing."""
    rng = np.random.default_rng(6)
    x, means, precision = _rows(6, 50, 4, 3, 0.4), rng.normal(0, 4, (3, 4)), _definite(rng, 4)
    w, obs = np.array([0.2, 0.3, 0.5]), cv.Plate("obs")
    mean = cv.Constant("mean", means, plates=cv.Plate("component", 3))
    z = cv.Categorical("z", w, plates=obs)
    model = cv.Model(cv.MultivariateNormal("x", mean[z], precision, plates=obs))
    posterior = model.fit({"x": x})
    assert posterior.elbo == pytest.approx(_marginals(x, w, means, [precision] * 3).sum(), rel=1e-12)
    by_label = np.array([_marginals(x, [w[k]], means[[k]], [precision]) for k in range(3)]).T
    exact = np.exp(by_label - logsumexp(by_label, axis=1, keepdims=True))
    np.testing.assert_allclose(posterior.local({"x": x})["z"].probabilities, exact, atol=1e-10)


def test_two_labels_that_choose_a_mean_and_a_precision_are_summed_over():
    """What is integrated out depends on both: the ELBO is the log evidence, by enumeration of their pairs."""
    rng = np.random.default_rng(8)
    x, means = _rows(8, 20, 3, 2, 0.4), rng.normal(0, 2, (2, 3))
    precisions = np.array([_definite(rng, 3), 5.0 * _definite(rng, 3)])
    u, v, obs = np.array([0.3, 0.7]), np.array([0.6, 0.4]), cv.Plate("obs")
    mean = cv.Constant("mean", means, plates=cv.Plate("k", 2))
    precision = cv.Constant("precision", precisions, plates=cv.Plate("l", 2))
    a, b = (cv.Categorical(name, own, plates=obs) for name, own in (("a", u), ("b", v)))
    posterior = cv.Model(cv.MultivariateNormal("x", mean[a], precision[b], plates=obs)).fit({"x": x})
    pairs = [(k, m) for k in range(2) for m in range(2)]
    exact = _marginals(
        x, [u[k] * v[m] for k, m in pairs], means[[k for k, _ in pairs]], precisions[[m for _, m in pairs]]
    )
    assert posterior.elbo == pytest.approx(exact.sum(), rel=1e-12)


def test_a_hidden_markov_model_sums_over_all_paths():
    """Known emissions: the ELBO is the evidence by enumeration of the paths, and so are the marginals."""
    rng = np.random.default_rng(7)
    x, means, precision = _rows(7, 6, 3, 2, 0.4), rng.normal(0, 2, (2, 3)), _definite(rng, 3)
    initial, transition = np.array([0.3, 0.7]), np.array([[0.8, 0.2], [0.4, 0.6]])
    time, state = cv.Plate("time"), cv.Plate("state", 2)
    s = cv.MarkovChain("s", initial, cv.Constant("transition", transition, plates=state), along=time)
    mean = cv.Constant("mean", means, plates=state)
    model = cv.Model(cv.MultivariateNormal("x", mean[s], precision, plates=time))
    emissions = np.array([_marginals(x, [1.0], means[[k]], [precision]) for k in range(2)])
    paths = list(itertools.product(range(2), repeat=6))
    logs = []
    for path in paths:
        total = np.log(initial[path[0]]) + sum(emissions[k, t] for t, k in enumerate(path))
        logs.append(total + sum(np.log(transition[a, b]) for a, b in itertools.pairwise(path)))
    posterior = model.fit({"x": x})
    assert posterior.elbo == pytest.approx(logsumexp(logs), rel=1e-12)
    exact = np.exp(np.array(logs) - logsumexp(logs)) @ (np.array(paths) == 1)
    np.testing.assert_allclose(posterior.local({"x": x})["s"].probabilities[:, 1], exact, atol=1e-12)
