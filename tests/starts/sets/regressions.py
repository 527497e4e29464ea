"""Mixtures of regressions."""

from __future__ import annotations

import numpy as np

import caviar as cv
from starts.case import Problem, cases_of


def lines(n_rows, slopes, width, *, shares=None, precisions=None, order=None):
    """A regression for each component; columns are a constant and covariates."""

    def make(rng):
        beta = np.asarray(slopes, dtype=float)
        size, n_columns = beta.shape
        z = rng.choice(size, n_rows, p=shares)
        u = np.column_stack([np.ones(n_rows), rng.normal(size=(n_rows, n_columns - 1))])
        widths = np.full(size, width) if precisions is None else np.asarray(precisions) ** -0.5
        y = np.einsum("nd,nd->n", u, beta[z]) + widths[z] * rng.normal(size=n_rows)
        o, k = cv.Plate("o"), cv.Plate("k", size)
        label = cv.Categorical("z", cv.Dirichlet("w", np.ones(size)), plates=o)
        prior = cv.MultivariateNormal("beta", np.zeros(n_columns), 0.05 * np.eye(n_columns), plates=k)
        noise = cv.Gamma("t", 1, 1, plates=k)[label]
        number = np.arange(size)
        if precisions is not None:
            noise = cv.Constant("t", np.asarray(precisions)[list(order)], plates=k)[label]
            number = np.argsort(order)
        model = cv.Model(cv.Normal("y", cv.dot(prior[label], cv.Data("u", plates=o)), noise, plates=o))
        return Problem(model, {"y": y, "u": u}, {"z": number[z]}, n_rows)

    return make


def common_slopes(rng):
    """Levels differ, slopes do not."""
    z, u = rng.integers(3, size=300), rng.normal(size=(300, 2)) * 4
    y = np.array([-4.0, 0, 4])[z] + u @ [2.0, -1.0] + 0.7 * rng.normal(size=300)
    o, k = cv.Plate("o"), cv.Plate("k", 3)
    label = cv.Categorical("z", cv.Dirichlet("w", np.ones(3)), plates=o)
    slopes = cv.MultivariateNormal("b", np.zeros(2), 0.05 * np.eye(2))
    total = cv.Normal("a", 0, 0.01, plates=k)[label] + cv.dot(slopes, cv.Data("u", plates=o))
    model = cv.Model(cv.Normal("y", total, cv.Gamma("t", 1, 1), plates=o))
    return Problem(model, {"y": y, "u": u}, {"z": z}, 300)


def answers(rng):
    z, u = rng.integers(2, size=1_500), rng.normal(size=(1_500, 2)) * 2
    p = 1 / (1 + np.exp(-np.einsum("nd,nd->n", u, np.array([[4.0, 0.0], [0.0, 4.0]])[z])))
    y = (rng.random(1_500) < p).astype(int)
    o, k = cv.Plate("o"), cv.Plate("k", 2)
    label = cv.Categorical("z", [0.5, 0.5], plates=o)
    beta = cv.MultivariateNormal("beta", np.zeros(2), 0.05 * np.eye(2), plates=k)
    model = cv.Model(cv.Bernoulli("y", cv.logistic(cv.dot(beta[label], cv.Data("u", plates=o))), plates=o))
    return Problem(model, {"y": y, "u": u}, {"z": z, "beta": [[4.0, 0.0], [0.0, 4.0]]}, 1_500)


def factor_analysers(rng):
    """Clusters that are thin in a direction of their own."""
    z = rng.integers(2, size=400)
    t = rng.normal(size=400) * 3
    x = t[:, None] * np.array([[1.0, 1.0, 0.0], [1.0, -1.0, 1.0]])[z] + 0.3 * rng.normal(size=(400, 3))
    return Problem(cv.models.gaussian_mixture(3, 2), {"x": x}, {"z": z}, 400)


CASES = cases_of(
    two_crossing_lines=lines(300, [[0, 2], [0, -2]], 0.4),
    three_lines=lines(450, [[0, 2], [3, -2], [-3, 0]], 0.4),
    two_planes=lines(300, [[0, 2, 1], [0, -2, 1]], 0.4),
    four_lines=lines(800, [[0, 3], [0, -3], [4, 0], [-4, 0]], 0.25),
    five_columns=lines(500, [[0, 1, -1, 2, 0], [1, -1, 1, 0, 2]], 0.4),
    rare_regression=lines(500, [[0, 2], [2, -1]], 0.3, shares=[0.85, 0.15]),
    known_noise_of_each=lines(400, [[0, 2], [0, -1]], 0, precisions=[25.0, 1.0], order=(0, 1)),
    known_noise_turned=lines(400, [[0, 2], [0, -1]], 0, precisions=[25.0, 1.0], order=(1, 0)),
    weak_slopes=lines(1_000, [[0, 1], [0, -1]], 0.5),
    common_slopes=common_slopes,
    mixture_of_logistic_regressions=answers,
    crossing_sticks=factor_analysers,
)
