"""Point-mass factors are EM: under flat priors that of scikit-learn and of literal loops, under proper ones MAP-EM."""

import warnings
from math import lgamma

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax, logsumexp
from scipy.stats import dirichlet, multivariate_normal, wishart
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

import caviar as cv
from caviar.families.base.family import MeanPrecision
from oracles.reference import em

CASES = [(1, 1, 2), (2, 2, 2), (3, 2, 3), (4, 3, 4)]
"""(seed, D, K)"""


def _rows(seed, d, n=60):
    rng = np.random.default_rng(seed)
    return rng.normal(0, 1, (n, d)) * rng.uniform(0.7, 1.5, d) + rng.choice([-2.0, 0.0, 3.0], (n, 1)) + 4


def _start(x, k, seed):
    rng = np.random.default_rng(seed)
    means = x[rng.choice(len(x), k, replace=False)]
    covariances = np.array([np.cov(x.T).reshape(x.shape[1], -1) * rng.uniform(0.5, 1.5) for _ in range(k)])
    return em.Parameters(rng.dirichlet(np.full(k, 5.0)), means, covariances)


def _apart(d, k):
    """State the mixture with flat priors on pi, mu and Lambda, each a factor of its own."""
    obs, component = cv.Plate("obs"), cv.Plate("component", k)
    weights = cv.Dirichlet("weights", np.ones(k))
    mean = cv.MultivariateNormal("mean", mean=np.zeros(d), precision=0, plates=component)
    precision = cv.Wishart("precision", df=d + 1, inverse_scale=np.zeros((d, d)), plates=component)
    z = cv.Categorical("z", weights, plates=obs)
    return cv.Model(cv.MultivariateNormal("x", mean[z], precision[z], plates=obs))


def _together(d, k):
    """State the mixture with the flat Normal-Wishart prior."""
    obs, component = cv.Plate("obs"), cv.Plate("component", k)
    weights = cv.Dirichlet("weights", np.ones(k))
    theta = cv.NormalWishart(
        "theta", np.zeros(d), mean_precision=0, df=d, inverse_scale=np.zeros((d, d)), plates=component
    )
    z = cv.Categorical("z", weights, plates=obs)
    return cv.Model(cv.MultivariateNormal("x", theta[z], plates=obs))


APART, TOGETHER = ("weights", "mean", "precision"), ("weights", "theta")


def _init(start, point):
    precisions = np.linalg.inv(start.covariances)
    if point is APART:
        return {"weights": start.weights, "mean": start.means, "precision": precisions}
    return {"weights": start.weights, "theta": MeanPrecision(start.means, precisions)}


def _parameters(posterior):
    theta = posterior["theta"].value if "theta" in posterior else None
    mean, precision = theta if theta is not None else (posterior["mean"].value, posterior["precision"].value)
    return em.Parameters(posterior["weights"].value, mean, np.linalg.inv(precision))


def _scikit_learn(x, start, n_steps):
    """Return the log-likelihood at the start and after each EM step of scikit-learn."""
    other = GaussianMixture(
        len(start.weights),
        reg_covar=0,
        max_iter=1,
        tol=0,
        warm_start=True,
        weights_init=start.weights,
        means_init=start.means,
        precisions_init=np.linalg.inv(start.covariances),
        random_state=0,
    )
    path = [em.log_likelihood(x, start)]
    for _ in range(n_steps):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            other.fit(x)
        path.append(other.score_samples(x).sum())
    return np.array(path), other


@pytest.mark.thinned(2)
@pytest.mark.parametrize(
    ("state", "point"), [(_apart, APART), (_together, TOGETHER)], ids=["apart", "together"]
)
@pytest.mark.parametrize(("seed", "d", "k"), CASES)
def test_flat_priors_are_maximum_likelihood(seed, d, k, state, point):
    """The objective of each iteration is scikit-learn's log-likelihood after as many EM steps, to 1e-9.

    The uniform prior of the weights has the density (K - 1)!, whose logarithm the objective contains.
    """
    x, n_steps = _rows(seed, d), 12
    start = _start(x, k, seed)
    path, other = _scikit_learn(x, start, n_steps)
    posterior = state(d, k).fit(
        {"x": x}, init=_init(start, point), point=point, max_iter=n_steps, tol=0, accelerate=False
    )
    np.testing.assert_allclose(posterior.elbo_trace - lgamma(k), path, rtol=1e-9)
    assert posterior.elbo_terms["weights"] == pytest.approx(lgamma(k), abs=1e-12)
    q = _parameters(posterior)
    np.testing.assert_allclose(q.weights, other.weights_, rtol=1e-8)
    np.testing.assert_allclose(q.means, other.means_, rtol=1e-8)
    np.testing.assert_allclose(q.covariances, other.covariances_, rtol=1e-7, atol=1e-10)
    responsibilities = posterior.local({"x": x})["z"].probabilities
    np.testing.assert_allclose(responsibilities, other.predict_proba(x), rtol=1e-6, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("state", "point"), [(_apart, APART), (_together, TOGETHER)], ids=["apart", "together"]
)
def test_em_steps_are_the_literal_steps(state, point):
    """After each of five iterations the parameters are those of EM written as loops with SciPy's densities."""
    x = _rows(5, 2, n=30)
    start = _start(x, 3, 0)
    for n_steps in range(1, 6):
        expected, path = em.run(x, start, n_steps)
        posterior = state(2, 3).fit(
            {"x": x}, init=_init(start, point), point=point, max_iter=n_steps, tol=0, accelerate=False
        )
        q = _parameters(posterior)
        for name, value in vars(expected).items():
            np.testing.assert_allclose(getattr(q, name), value, rtol=1e-8, atol=1e-11, err_msg=name)
        np.testing.assert_allclose(posterior.elbo_trace - lgamma(3), path, rtol=1e-11)


@pytest.mark.slow
def test_weights_of_rows_are_repetitions():
    """Maximum likelihood with whole-number weights is that of the repeated rows."""
    x, times = _rows(6, 2), np.random.default_rng(6).integers(1, 5, 60)
    start = _start(x, 2, 6)
    posterior = _apart(2, 2).fit(
        {"x": x},
        init=_init(start, APART),
        point=APART,
        max_iter=8,
        tol=0,
        accelerate=False,
        sample_weight=times,
    )
    expected, path = em.run(np.repeat(x, times, axis=0), start, 8)
    np.testing.assert_allclose(posterior.elbo_trace, path, rtol=1e-10)
    np.testing.assert_allclose(
        _parameters(posterior).covariances, expected.covariances, rtol=1e-8, atol=1e-11
    )


def test_singular_component_collapses():
    """A component that ends on one row has an unbounded likelihood: collapsed, with finite numbers and a warning."""
    x = np.concatenate([_rows(1, 2), [[100.0, 100.0]]])
    start = _start(x, 2, 0)
    start.means[1] = 100.0
    with pytest.warns(cv.CollapseWarning):
        posterior = _apart(2, 2).fit({"x": x}, init=_init(start, APART), point=APART)
    assert not posterior.converged
    assert np.isfinite(posterior.elbo)
    for value in vars(_parameters(posterior)).values():
        assert np.all(np.isfinite(value))


# -- MAP ----------------------------------------------------------------------------------------------------------


def _unpacked(v, d, k):
    """Return weights, means and precisions from unrestricted numbers."""
    weights = np.exp(log_softmax(np.append(v[: k - 1], 0.0)))
    means = v[k - 1 : k - 1 + k * d].reshape(k, d)
    factors = np.zeros((k, d, d))
    factors[:, *np.tril_indices(d)] = v[k - 1 + k * d :].reshape(k, -1)
    diagonal = np.arange(d)
    factors[:, diagonal, diagonal] = np.exp(factors[:, diagonal, diagonal])
    return weights, means, factors @ np.swapaxes(factors, -1, -2)


def _packed(weights, means, precisions):
    d = means.shape[1]
    factors = np.linalg.cholesky(precisions)
    diagonal = np.arange(d)
    factors[:, diagonal, diagonal] = np.log(factors[:, diagonal, diagonal])
    lower = factors[:, *np.tril_indices(d)]
    return np.concatenate([np.log(weights[:-1] / weights[-1]), means.ravel(), lower.ravel()])


def _log_likelihood(x, weights, means, precisions):
    joint = [
        np.log(w) + multivariate_normal.logpdf(x, m, np.linalg.inv(precision))
        for w, m, precision in zip(weights, means, precisions, strict=True)
    ]
    return float(logsumexp(joint, axis=0).sum())


@pytest.mark.thinned(2)
@pytest.mark.parametrize("joint", [False, True])
def test_map_is_the_maximum_of_the_log_joint_density(joint):
    """Under proper priors the fixed point is a maximum of log p(x, theta) that SciPy's optimiser agrees on.

    The objective is that density's value, with SciPy's densities of the priors, every constant included.
    """
    d, k, x = 2, 2, _rows(8, 2, n=50)
    concentration, m0, df = np.array([2.0, 3.0]), np.array([3.0, 5.0]), 5.0
    scale = np.array([[1.5, 0.4], [0.4, 0.8]])
    kappa, covariance = 0.3, np.array([[6.0, 1.0], [1.0, 4.0]])
    obs, component = cv.Plate("obs"), cv.Plate("component", k)
    z = cv.Categorical("z", cv.Dirichlet("weights", concentration), plates=obs)
    if joint:
        theta = cv.NormalWishart("theta", m0, kappa, df, scale, plates=component)
        model, point = cv.Model(cv.MultivariateNormal("x", theta[z], plates=obs)), TOGETHER
    else:
        mean = cv.MultivariateNormal("mean", m0, np.linalg.inv(covariance), plates=component)
        precision = cv.Wishart("precision", df, scale, plates=component)
        model, point = cv.Model(cv.MultivariateNormal("x", mean[z], precision[z], plates=obs)), APART

    def log_joint(weights, means, precisions):
        total = dirichlet.logpdf(weights, concentration) + _log_likelihood(x, weights, means, precisions)
        for m, precision in zip(means, precisions, strict=True):
            total += wishart.logpdf(precision, df, np.linalg.inv(scale))
            spread = np.linalg.inv(kappa * precision) if joint else covariance
            total += multivariate_normal.logpdf(m, m0, spread)
        return float(total)

    posterior = model.fit({"x": x}, seed=0, point=point, tol=1e-14, max_iter=5000)
    assert posterior.converged
    assert np.all(np.diff(posterior.elbo_trace) > -1e-9)
    q = _parameters(posterior)
    at = q.weights, q.means, np.linalg.inv(q.covariances)
    assert posterior.elbo == pytest.approx(log_joint(*at), rel=1e-11)
    off = _packed(*at) + 0.05 * np.random.default_rng(0).normal(size=len(_packed(*at)))
    best = minimize(lambda v: -log_joint(*_unpacked(v, d, k)), off, method="BFGS", options={"gtol": 1e-5})
    assert posterior.elbo == pytest.approx(-best.fun, abs=1e-7)
    np.testing.assert_allclose(_packed(*at), best.x, atol=2e-4)


def test_mode_that_does_not_exist_is_an_error():
    """A Dirichlet(1/2) prior has no mode once a component is empty; the error says whose it is and what it needs."""
    obs = cv.Plate("obs")
    model = cv.Model(cv.Categorical("x", cv.Dirichlet("p", np.full(3, 0.5)), plates=obs))
    with pytest.raises(cv.ImproperError, match="Dirichlet"):
        model.fit({"x": [0, 0, 1]}, point=["p"])
    fine = model.fit({"x": [0, 0, 1, 2]}, point=["p"])
    np.testing.assert_allclose(fine["p"].value, np.array([1.5, 0.5, 0.5]) / 2.5, rtol=1e-12)


# -- a floor on the variances -------------------------------------------------------------------------------------


def _floored(d, k, floor):
    obs, component = cv.Plate("obs"), cv.Plate("component", k)
    weights = cv.Dirichlet("weights", np.ones(k))
    mean = cv.MultivariateNormal("mean", mean=np.zeros(d), precision=0, plates=component)
    precision = cv.Wishart(
        "precision", df=d + 1, inverse_scale=np.zeros((d, d)), smallest_variance=floor, plates=component
    )
    z = cv.Categorical("z", weights, plates=obs)
    return cv.Model(cv.MultivariateNormal("x", mean[z], precision[z], plates=obs))


@pytest.mark.parametrize("floor", [1e-3, 0.5, 2.0])
def test_floor_never_lowers_the_objective(floor):
    """With `smallest_variance` EM climbs, no covariance has a smaller eigenvalue, and a lone row is no collapse."""
    x = np.concatenate([_rows(1, 2), [[100.0, 100.0]]])
    start = _start(x, 3, 0)
    start.means[1] = 100.0
    start.covariances[:] = np.maximum(floor, 3) * np.eye(2)
    posterior = _floored(2, 3, floor).fit({"x": x}, init=_init(start, APART), point=APART)
    assert posterior.converged
    assert np.all(np.diff(posterior.elbo_trace) > -1e-9)
    smallest = np.linalg.eigvalsh(_parameters(posterior).covariances)[:, 0]
    assert np.all(smallest >= floor * (1 - 1e-9))
    assert smallest.min() == pytest.approx(floor, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("proper", [False, True])
@pytest.mark.parametrize("floor", [0.05, 0.6, 2.0, 9.0])
def test_floored_step_is_the_restricted_maximum(floor, proper):
    """The precision is the best of all those whose inverse has no eigenvalue below the floor, by brute force.

    The maximum over covariances R(angle) diag(a, b) R(angle)' with a, b >= floor is found by bounded optimisation.
    """
    x = np.random.default_rng(2).multivariate_normal([1, 2], [[4.0, 1.0], [1.0, 0.5]], 30)
    mean = np.array([0.8, 2.1])
    df, scale = (6.0, np.array([[3.0, -1.0], [-1.0, 2.0]])) if proper else (3.0, np.zeros((2, 2)))
    precision = cv.Wishart("precision", df=df, inverse_scale=scale, smallest_variance=floor)
    model = cv.Model(cv.MultivariateNormal("x", mean, precision, plates=cv.Plate("obs")))
    posterior = model.fit({"x": x}, point=["precision"])

    def negative(v):
        turn = np.array([[np.cos(v[2]), -np.sin(v[2])], [np.sin(v[2]), np.cos(v[2])]])
        covariance = turn @ np.diag(v[:2]) @ turn.T
        prior = wishart.logpdf(np.linalg.inv(covariance), df, np.linalg.inv(scale)) if proper else 0.0
        return -float(multivariate_normal.logpdf(x, mean, covariance).sum() + prior)

    bounds = [(floor, None), (floor, None), (-4, 4)]
    tries = [
        minimize(negative, [a, b, t], bounds=bounds) for a, b in [(9, 9), (9, 20), (20, 9)] for t in (0, 0.8)
    ]
    best = min(tries, key=lambda found: found.fun)
    assert posterior.elbo == pytest.approx(-best.fun, abs=1e-6)
    assert posterior.elbo >= -best.fun - 1e-9


def test_floor_needs_a_point_mass():
    """A floor restricts a point; with a full factor the error says what to write."""
    with pytest.raises(cv.ParameterError, match=r"smallest_variance.*point=\['precision'\]"):
        _floored(2, 2, 0.1).fit({"x": _rows(0, 2)}, point=["weights", "mean"])


@pytest.mark.parametrize("value", [0.0, 3.0, -1e-4])
def test_rows_that_are_all_alike_collapse_a_flat_precision(value):
    """Equal rows have an unbounded likelihood under a flat precision: collapsed, with finite numbers; a point mass too.

    With a known mean elsewhere nothing is unbounded: the precision is that of the distance.
    """
    obs, rows = cv.Plate("obs"), {"x": np.full(5, value)}
    flat = cv.Normal("mean", 0.0, 0.0)
    for point in ([], ["mean", "tau"]):
        with pytest.warns(cv.CollapseWarning):
            posterior = cv.Model(cv.Normal("x", flat, cv.Gamma("tau", 1, 0), plates=obs)).fit(
                rows, point=point
            )
        assert posterior.status.value == "collapsed"
        assert np.isfinite(posterior.elbo_trace[1:]).all()
    known = cv.Model(cv.Normal("x", value + 2.0, cv.Gamma("tau", 1, 0), plates=obs)).fit(rows, point=["tau"])
    assert known.converged
    assert known["tau"].value == pytest.approx(1 / 4)
