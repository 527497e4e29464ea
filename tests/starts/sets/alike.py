"""Components that are alike before the data come: ordinary mixtures of several families."""

from __future__ import annotations

import numpy as np

import caviar as cv
import caviar.models
from starts.case import Case, Problem


def prototypes(n_rows, size, n_columns):
    """Answers of some kinds of people, each of whom gives nine in ten of them."""

    def make(rng):
        likely = np.where(rng.random((size, n_columns)) < 0.5, 0.1, 0.9)
        z = rng.integers(size, size=n_rows)
        x = (rng.random((n_rows, n_columns)) < likely[z]).astype(int)
        return Problem(cv.models.bernoulli_mixture(n_columns, size), {"x": x}, {"z": z}, n_rows)

    return make


def classes(n_rows, shares, n_questions, n_answers):
    """Latent classes: questions with several answers."""

    def make(rng):
        size = len(shares)
        likely = rng.dirichlet(np.full(n_answers, 0.35), size=(size, n_questions))
        z = rng.choice(size, n_rows, p=shares)
        x = (rng.random((n_rows, n_questions, 1)) > likely[z].cumsum(axis=-1)).sum(axis=-1)
        o, k, d = cv.Plate("o"), cv.Plate("k", size), cv.Plate("d", n_questions)
        label = cv.Categorical("z", cv.Dirichlet("w", np.ones(size)), plates=o)
        answers = cv.Dirichlet("p", np.full(n_answers, 0.5), plates=(k, d))
        model = cv.Model(cv.Categorical("x", answers[label], plates=(o, d)))
        return Problem(model, {"x": x.clip(0, n_answers - 1)}, {"z": z}, n_rows)

    return make


def documents(n_rows, size, n_words, length):
    """Long documents of one topic each."""

    def make(rng):
        topics = rng.dirichlet(np.full(n_words, 0.3), size=size)
        z = rng.integers(size, size=n_rows)
        x = np.array([rng.multinomial(length, topics[own]) for own in z])
        o, k = cv.Plate("o"), cv.Plate("k", size)
        label = cv.Categorical("z", cv.Dirichlet("w", np.ones(size)), plates=o)
        words = cv.Dirichlet("p", np.full(n_words, 0.5), plates=k)
        return Problem(
            cv.Model(cv.Multinomial("x", None, words[label], plates=o)), {"x": x}, {"z": z}, n_rows
        )

    return make


def clouds(model, n_rows, size, n_columns, spread):
    """Gaussian clusters of all shapes, fitted by a mixture of the package."""

    def make(rng):
        z = rng.choice(size, n_rows, p=rng.dirichlet(np.full(size, 2.0)))
        centres = spread * rng.normal(size=(size, n_columns))
        turns = rng.normal(size=(size, n_columns, n_columns)) / np.sqrt(n_columns)
        x = centres[z] + np.einsum("nij,nj->ni", turns[z], rng.normal(size=(n_rows, n_columns)))
        return Problem(model(n_columns, size), {"x": x}, {"z": z}, n_rows)

    return make


def with_holes(n_rows, n_columns, correlation, share):
    """Two clusters 12 apart, of columns that go together, with a share of the entries missing; no row lacks all."""

    def make(rng):
        covariance = (1 - correlation) * np.eye(n_columns) + correlation
        z = np.arange(n_rows) % 2
        x = rng.multivariate_normal(np.zeros(n_columns), covariance, n_rows) + 12.0 * z[:, None]
        gone = rng.random(x.shape) < share
        gone[np.arange(n_rows), rng.integers(0, n_columns, n_rows)] = False
        prior = {"mean_precision": 0.1, "df": n_columns + 2.0, "inverse_scale": np.eye(n_columns)}
        model = cv.models.normal_wishart_mixture(n_columns, 2, **prior)
        return Problem(model, {"x": np.where(gone, np.nan, x)}, {"z": z}, n_rows)

    return make


CASES = [
    Case("six prototypes of answers", prototypes(180, 6, 20)),
    Case("four latent classes", classes(300, [0.4, 0.3, 0.2, 0.1], 8, 4)),
    Case("five topics of long documents", documents(100, 5, 12, 40)),
    Case("seven diagonal clusters", clouds(caviar.models.diagonal_mixture, 210, 7, 3, 3.0)),
    Case("six clusters of one shape", clouds(caviar.models.tied_mixture, 240, 6, 5, 2.0)),
    Case("five round clusters", clouds(caviar.models.spherical_mixture, 300, 5, 2, 1.5)),
    Case("holes in two clusters", with_holes(100, 3, 0.95, 0.4)),
]
