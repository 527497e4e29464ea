"""Mixtures of Gaussians stated in the language, each in the form in which its numbers are hardest."""

import numpy as np
from oracles.reference.high_precision import Expectations

import caviar as cv
from caviar import families


def independent(k, d, *, at=0.0, mean_precision=1e-2, scale=1.0, df=None):
    """State q(mean) q(precision): ``at`` the prior mean in every column, ``scale`` times I the inverse scale."""
    obs, component = cv.Plate("obs"), cv.Plate("component", k)
    weights = cv.Dirichlet("weights", np.ones(k))
    prior_precision = mean_precision * np.eye(d) if np.ndim(mean_precision) < 2 else mean_precision
    mean = cv.MultivariateNormal("mean", np.broadcast_to(at, d) + 0.0, prior_precision, plates=component)
    precision = cv.Wishart("precision", df or d + 1.0, scale * np.eye(d), plates=component)
    z = cv.Categorical("z", weights, plates=obs)
    return cv.Model(cv.MultivariateNormal("x", mean[z], precision[z], plates=obs))


def joint(k, d, *, at=0.0, mean_precision=1e-2, scale=1.0):
    """State the joint Normal-Wishart form."""
    obs, component = cv.Plate("obs"), cv.Plate("component", k)
    weights = cv.Dirichlet("weights", np.ones(k))
    theta = cv.NormalWishart(
        "theta", np.broadcast_to(at, d) + 0.0, mean_precision, d + 1.0, scale * np.eye(d), plates=component
    )
    z = cv.Categorical("z", weights, plates=obs)
    return cv.Model(cv.MultivariateNormal("x", theta[z], plates=obs))


def tied(k, d, *, at=0.0, mean_precision=1e-2, scale=1.0):
    """State the joint form of components that share one precision matrix."""
    obs, component = cv.Plate("obs"), cv.Plate("component", k)
    weights = cv.Dirichlet("weights", np.ones(k))
    theta = cv.NormalWishart(
        "theta",
        np.broadcast_to(at, d) + 0.0,
        mean_precision,
        d + 1.0,
        scale * np.eye(d),
        plates=component,
        tied=component,
    )
    z = cv.Categorical("z", weights, plates=obs)
    return cv.Model(cv.MultivariateNormal("x", theta[z], plates=obs))


def spherical(k, d, *, at=0.0, mean_precision=1e-2, scale=1.0):
    """State the joint form of components with one variance each."""
    obs, component, feature = cv.Plate("obs"), cv.Plate("component", k), cv.Plate("feature", d)
    weights = cv.Dirichlet("weights", np.ones(k))
    theta = cv.NormalGamma("theta", at, mean_precision, 1.0, scale, plates=(component, feature), tied=feature)
    z = cv.Categorical("z", weights, plates=obs)
    return cv.Model(cv.Normal("x", theta[z], plates=(obs, feature)))


def scalar_independent(k, *, at=0.0, mean_precision=1e-2, scale=1.0):
    """State q(mean) q(precision) for numbers."""
    obs, component = cv.Plate("obs"), cv.Plate("component", k)
    weights = cv.Dirichlet("weights", np.ones(k))
    mean = cv.Normal("mean", at, mean_precision, plates=component)
    precision = cv.Gamma("precision", 1.0, scale, plates=component)
    z = cv.Categorical("z", weights, plates=obs)
    return cv.Model(cv.Normal("x", mean[z], precision[z], plates=obs))


def scalar_joint(k, *, at=0.0, mean_precision=1e-2, scale=1.0):
    """State the joint Normal-Gamma form."""
    obs, component = cv.Plate("obs"), cv.Plate("component", k)
    weights = cv.Dirichlet("weights", np.ones(k))
    theta = cv.NormalGamma("theta", at, mean_precision, 1.0, scale, plates=component)
    z = cv.Categorical("z", weights, plates=obs)
    return cv.Model(cv.Normal("x", theta[z], plates=obs))


def known_variance(k, *, at=0.0, mean_precision=1e-2, variance=1.0):
    """State the mixture of Normals whose variance and weights are known."""
    obs, component = cv.Plate("obs"), cv.Plate("component", k)
    mean = cv.Normal("mean", at, mean_precision, plates=component)
    z = cv.Categorical("z", np.full(k, 1 / k), plates=obs)
    return cv.Model(cv.Normal("x", mean[z], 1 / variance, plates=obs))


def flat(k, d):
    """State maximum likelihood: flat priors, for point masses on weights, mean and precision."""
    obs, component = cv.Plate("obs"), cv.Plate("component", k)
    weights = cv.Dirichlet("weights", np.ones(k))
    mean = cv.MultivariateNormal("mean", np.zeros(d), np.zeros((d, d)), plates=component)
    precision = cv.Wishart("precision", d + 1.0, np.zeros((d, d)), plates=component)
    z = cv.Categorical("z", weights, plates=obs)
    return cv.Model(cv.MultivariateNormal("x", mean[z], precision[z], plates=obs))


def flat_joint(k, d):
    """State maximum likelihood with one point mass on (mean, precision)."""
    obs, component = cv.Plate("obs"), cv.Plate("component", k)
    weights = cv.Dirichlet("weights", np.ones(k))
    theta = cv.NormalWishart("theta", np.zeros(d), 0, d, np.zeros((d, d)), plates=component)
    z = cv.Categorical("z", weights, plates=obs)
    return cv.Model(cv.MultivariateNormal("x", theta[z], plates=obs))


def flat_known_variance(weights):
    """State a mixture of unit Normals with known weights and flat priors on the means."""
    obs, component = cv.Plate("obs"), cv.Plate("component", len(weights))
    mean = cv.Normal("mean", 0, 0, plates=component)
    z = cv.Categorical("z", weights, plates=obs)
    return cv.Model(cv.Normal("x", mean[z], 1.0, plates=obs))


def expectations(posterior, variance=None):
    """Return what the local update reads of a posterior, as the 50-digit reference takes it."""
    if variance is not None:
        q = posterior["mean"]
        k = len(q.mean)
        covariances, ones = q.variance[:, None, None], np.ones((k, 1, 1))
        return Expectations(
            np.full(k, -np.log(k)),
            q.mean[:, None],
            covariances,
            ones / variance,
            np.full(k, -np.log(variance)),
        )
    log_weights = posterior["weights"].expected_statistics[0]
    if "theta" in posterior:
        q = posterior["theta"]
        if isinstance(q, families.TiedNormalGamma):
            d, (log_taus, taus) = q.mean.shape[1], q.expected_statistics[-2:]
            precisions = taus[:, None, None] * np.eye(d)
            covariances = (1 / (taus[:, None] * q.mean_precision))[:, None] * np.eye(d)
            return Expectations(log_weights, q.mean, covariances, precisions, d * log_taus)
        if isinstance(q, families.TiedNormalWishart):
            q = q.marginals
        log_dets, precisions = q.expected_statistics[-2:]
        means, precisions = _as_vectors(q.mean, precisions)
        covariances = np.linalg.inv(precisions) / q.mean_precision[:, None, None]
        return Expectations(log_weights, means, covariances, precisions, log_dets)
    location, precision = posterior["mean"], posterior["precision"]
    log_dets = precision.expected_statistics[0 if precision.mean.ndim == 3 else 1]
    if precision.mean.ndim == 1:
        statistics = dict(zip(precision.statistics, precision.expected_statistics, strict=True))
        log_dets = statistics["log_x"]
    means, precisions = _as_vectors(location.mean, precision.mean)
    covariances = np.reshape(
        location.covariance if location.mean.ndim == 2 else location.variance, precisions.shape
    )
    return Expectations(log_weights, means, covariances, precisions, log_dets)


def _as_vectors(means, precisions):
    d = means.shape[1] if means.ndim == 2 else 1
    return means.reshape(-1, d), precisions.reshape(-1, d, d)


def fit_or_refusal(function):
    """Return (posterior, "") or (None, message of the library's own error); other errors and warnings pass."""
    try:
        return function(), ""
    except cv.CaviarError as error:
        return None, str(error)


def is_finite(posterior):
    """Whether the objective, its trace, and the expected statistics of every factor are finite.

    The trace may begin with minus infinity: a point that starts a factor which is no point mass has no entropy.
    """
    trace = posterior.elbo_trace
    start = [] if np.isneginf(trace[0]) else trace[:1]
    arrays = [posterior.elbo, start, trace[1:], list(posterior.elbo_terms.values())]
    for name in posterior:
        arrays += list(posterior[name].expected_statistics)
    return all(np.isfinite(array).all() for array in arrays)


def largest_fall(posterior):
    """Return the largest fall of the objective between iterations, relative to the objective, at least 0."""
    trace = posterior.elbo_trace[np.isfinite(posterior.elbo_trace)]
    return float(max(0.0, -np.diff(trace).min(initial=0.0)) / max(1.0, np.abs(trace).max()))
