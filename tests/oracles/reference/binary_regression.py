"""Literal mean field for binary regression, row by row: Bishop (2006), section 10.6; Albert and Chib."""

import numpy as np
from scipy.stats import norm

from caviar._typing import Array

__all__ = ["Path", "jaakkola_jordan", "utilities"]

Path = tuple[list[float], Array, Array]
"""ELBO at the start and after each sweep; mean and covariance of w."""


def _divergence(mean: Array, covariance: Array, prior_mean: Array, prior_precision: Array) -> float:
    """Return KL(N(m, S) || N(m0, S0))."""
    apart = mean - prior_mean
    inside = np.trace(prior_precision @ covariance) + apart @ prior_precision @ apart - len(mean)
    return 0.5 * float(inside - np.linalg.slogdet(prior_precision @ covariance)[1])


def _sigmoid(a: float) -> float:
    return 1 / (1 + np.exp(-a))


def jaakkola_jordan(X: Array, y: Array, prior_mean: Array, prior_precision: Array, n_sweeps: int) -> Path:
    """Return sweeps over w and xi from q(w) = p(w); equations 10.144, 10.156, 10.157 and 10.163 of Bishop."""
    mean, covariance = prior_mean, np.linalg.inv(prior_precision)
    widths = np.zeros(len(y))
    trace: list[float] = []
    for sweep in range(n_sweeps + 1):
        if sweep:
            precision, shifted = prior_precision.copy(), prior_precision @ prior_mean
            for n in range(len(y)):
                precision += 2 * widths[n] * np.outer(X[n], X[n])
                shifted += (y[n] - 0.5) * X[n]
            covariance = np.linalg.inv(precision)
            mean = covariance @ shifted
        xi = np.array([np.sqrt(X[n] @ (covariance + np.outer(mean, mean)) @ X[n]) for n in range(len(y))])
        widths = np.array([(_sigmoid(xi[n]) - 0.5) / (2 * xi[n]) for n in range(len(y))])
        bound = -_divergence(mean, covariance, prior_mean, prior_precision)
        for n in range(len(y)):
            a = X[n] @ mean
            square = a**2 + X[n] @ covariance @ X[n]
            bound += np.log(_sigmoid(xi[n])) + a * y[n] - (a + xi[n]) / 2 - widths[n] * (square - xi[n] ** 2)
        trace.append(float(bound))
    return trace, mean, covariance


def utilities(X: Array, y: Array, prior_mean: Array, prior_precision: Array, n_sweeps: int) -> Path:
    """Return sweeps over w and the utilities u_n ~ N(x_n' w, 1), u_n > 0 exactly if y_n = 1, from q(w) = p(w)."""
    mean, covariance = prior_mean, np.linalg.inv(prior_precision)
    expected = np.zeros(len(y))
    trace: list[float] = []
    for sweep in range(n_sweeps + 1):
        if sweep:
            precision, shifted = prior_precision.copy(), prior_precision @ prior_mean
            for n in range(len(y)):
                precision += np.outer(X[n], X[n])
                shifted += expected[n] * X[n]
            covariance = np.linalg.inv(precision)
            mean = covariance @ shifted
        expected = np.empty(len(y))
        bound = -_divergence(mean, covariance, prior_mean, prior_precision)
        for n in range(len(y)):
            a = X[n] @ mean
            sign = 1 if y[n] == 1 else -1
            mass, edge = norm.cdf(sign * a), norm.pdf(a)
            expected[n] = a + sign * edge / mass
            square = a * expected[n] + 1
            entropy = np.log(np.sqrt(2 * np.pi * np.e) * mass) - sign * a * edge / (2 * mass)
            distance = square - 2 * expected[n] * a + a**2 + X[n] @ covariance @ X[n]
            bound += -0.5 * np.log(2 * np.pi) - 0.5 * distance + entropy
        trace.append(float(bound))
    return trace, mean, covariance
