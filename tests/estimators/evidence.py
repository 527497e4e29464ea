"""Exact log evidence of one Gaussian under each structure's conjugate prior, written from the integrals."""

import numpy as np
from scipy.special import gammaln, multigammaln
from scipy.stats import multivariate_normal


def normal_wishart(X, mean, kappa, df, inverse_scale):
    """Return log p(X) under a Normal-Wishart prior."""
    n, d = X.shape
    centre = X.mean(axis=0)
    scatter = (X - centre).T @ (X - centre)
    shift = kappa * n / (kappa + n) * np.outer(centre - mean, centre - mean)
    before, after = (np.linalg.slogdet(m)[1] for m in (inverse_scale, inverse_scale + scatter + shift))
    return (
        -0.5 * n * d * np.log(np.pi)
        + multigammaln(0.5 * (df + n), d)
        - multigammaln(0.5 * df, d)
        + 0.5 * (df * before - (df + n) * after)
        + 0.5 * d * np.log(kappa / (kappa + n))
    )


def diagonal(X, mean, kappa, df, inverse_scale):
    """Return log p(X) where the columns are independent, each with a precision of its own."""
    columns = (X[:, [d]] for d in range(X.shape[1]))
    return sum(
        normal_wishart(x, mean[[d]], kappa, df, inverse_scale[d].reshape(1, 1)) for d, x in enumerate(columns)
    )


def spherical(X, mean, kappa, df, inverse_scale):
    """Return log p(X) where all columns share one precision."""
    n, d = X.shape
    centre = X.mean(axis=0)
    grown = inverse_scale + np.sum((X - centre) ** 2) + kappa * n / (kappa + n) * np.sum((centre - mean) ** 2)
    return (
        -0.5 * n * d * np.log(np.pi)
        + gammaln(0.5 * (df + n * d))
        - gammaln(0.5 * df)
        + 0.5 * (df * np.log(inverse_scale) - (df + n * d) * np.log(grown))
        + 0.5 * d * np.log(kappa / (kappa + n))
    )


def unit(X, mean, kappa, df, inverse_scale):
    """Return log p(X) where the variance is 1: a multivariate Normal a column."""
    n = len(X)
    covariance = np.eye(n) + 1 / np.broadcast_to(kappa, X.shape[1])[:, None, None]
    return sum(
        multivariate_normal(np.full(n, mean[d]), covariance[d]).logpdf(X[:, d]) for d in range(X.shape[1])
    )


EVIDENCE = {
    "full": normal_wishart,
    "tied": normal_wishart,
    "diag": diagonal,
    "spherical": spherical,
    "unit": unit,
}
