"""More components than clusters, up to more than there are rows."""

from __future__ import annotations

import numpy as np

import caviar as cv
from starts.case import Problem, cases_of


def dirichlet_process(n_rows, size, n_clusters, n_columns=2, spread=8.0):
    def make(rng):
        z = np.arange(n_rows) % n_clusters
        x = spread * rng.normal(size=(n_clusters, n_columns))[z] + rng.normal(size=(n_rows, n_columns))
        o, k = cv.Plate("o"), cv.Plate("k", size)
        theta = cv.NormalWishart(
            "theta", np.zeros(n_columns), 0.01, n_columns + 2.0, np.eye(n_columns), plates=k
        )
        weights = cv.StickBreaking("w", 1.0, size)
        model = cv.Model(cv.MultivariateNormal("x", theta[cv.Categorical("z", weights, plates=o)], plates=o))
        return Problem(model, {"x": x}, {"z": z}, n_rows)

    return make


def finite(n_rows, size, n_clusters):
    def make(rng):
        z = np.arange(n_rows) % n_clusters
        x = rng.poisson(np.array([2.0, 30.0, 100.0])[z], n_rows)
        o, k = cv.Plate("o"), cv.Plate("k", size)
        label = cv.Categorical("z", cv.Dirichlet("w", np.full(size, 1.0 / size)), plates=o)
        model = cv.Model(cv.Poisson("x", cv.Gamma("r", 0.5, 0.01, plates=k)[label], plates=o))
        return Problem(model, {"x": x}, {"z": z}, n_rows)

    return make


def answers(rng):
    z = np.arange(40) % 2
    x = (rng.random((40, 12)) < np.array([0.15, 0.85])[z][:, None]).astype(int)
    o, d, k = cv.Plate("o"), cv.Plate("d", 12), cv.Plate("k", 40)
    label = cv.Categorical("z", cv.Dirichlet("w", np.full(40, 0.05)), plates=o)
    model = cv.Model(cv.Bernoulli("x", cv.Beta("p", 1, 1, plates=(k, d))[label], plates=(o, d)))
    return Problem(model, {"x": x}, {"z": z}, 40)


def one_cluster(rng):
    x = rng.normal(size=(25, 3))
    o, k = cv.Plate("o"), cv.Plate("k", 30)
    theta = cv.NormalWishart("theta", np.zeros(3), 0.1, 5.0, 3 * np.eye(3), plates=k)
    label = cv.Categorical("z", cv.Dirichlet("w", np.full(30, 1 / 30)), plates=o)
    model = cv.Model(cv.MultivariateNormal("x", theta[label], plates=o))
    return Problem(model, {"x": x}, {"z": np.zeros(25, dtype=int)}, 25)


CASES = cases_of(
    fifty_pieces_of_thirty_rows=dirichlet_process(30, 50, 3),
    thirty_pieces_of_thirty_rows=dirichlet_process(30, 30, 2),
    twenty_pieces_of_a_hundred_rows=dirichlet_process(100, 20, 4),
    one_column=dirichlet_process(24, 40, 2, n_columns=1, spread=12.0),
    five_columns=dirichlet_process(40, 40, 3, n_columns=5),
    a_hundred_pieces=dirichlet_process(60, 100, 4, spread=12.0),
    one_cluster_of_thirty=one_cluster,
    counts_in_few_of_thirty=finite(30, 30, 3),
    counts_in_few_of_sixty=finite(45, 60, 3),
    answers_in_few_of_forty=answers,
)
