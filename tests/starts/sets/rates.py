"""Counts whose rates are of low rank: Gammas of the rows and of the columns, multiplied and added up."""

from __future__ import annotations

import numpy as np

import caviar as cv
from starts.case import Problem, cases_of


def factorisation(
    n_rows,
    n_columns,
    n_true,
    n_parts,
    shape,
    *,
    background=0.0,
    missing=0.0,
    hours=False,
    size=None,
    learnt=False,
):
    """Counts of each row and column, with as many parts as were simulated or with more."""

    def make(rng):
        scores, loadings = (rng.gamma(shape, 1 / shape, (n, n_true)) for n in (n_rows, n_columns))
        length = rng.gamma(4.0, 0.25, n_rows) if hours else np.ones(n_rows)
        means = length[:, None] * (scores @ loadings.T) + background
        counts = rng.poisson(means if size is None else means * rng.gamma(size, 1 / size, means.shape))
        row, column, part = cv.Plate("row"), cv.Plate("column", n_columns), cv.Plate("part", n_parts)
        rates = [
            cv.Gamma(name, shape, shape, plates=own) if learnt else shape
            for name, own in (("activity", row), ("popularity", column))
        ]
        u, v = (
            cv.Gamma(name, shape, rate, plates=(own, part))
            for name, rate, own in (("u", rates[0], row), ("v", rates[1], column))
        )
        rate = cv.dot(u, v) * cv.Data("hours", plates=row) if hours else cv.dot(u, v)
        if background:
            rate = rate + cv.Gamma("background", 1.0, 1.0, plates=column)
        plates = (row, column)
        x = (
            cv.Poisson("x", rate, plates=plates)
            if size is None
            else cv.NegativeBinomial("x", rate, size, plates=plates)
        )
        data = {"x": np.where(rng.random(counts.shape) < missing, np.nan, counts) if missing else counts}
        left = n_parts - n_true
        init = {
            "u": np.concatenate([scores, np.ones((n_rows, left))], axis=1),
            "v": np.concatenate([loadings, np.full((n_columns, left), 1e-3)], axis=1),
        }
        return Problem(cv.Model(x), {**data, **({"hours": length} if hours else {})}, init, n_rows)

    return make


def long_table(n_one, n_other, n_parts, shape, share):
    """Some of the pairs, a record each."""

    def make(rng):
        scores, loadings = (rng.gamma(shape, 1 / shape, (n, n_parts)) for n in (n_one, n_other))
        i, j = np.nonzero(rng.random((n_one, n_other)) < share)
        entry, part = cv.Plate("entry"), cv.Plate("part", n_parts)
        u, v = (
            cv.Gamma(name, shape, shape, plates=(cv.Plate(own, n), part))
            for name, own, n in (("u", "one", n_one), ("v", "other", n_other))
        )
        rate = cv.dot(u[cv.Data("i", plates=entry)], v[cv.Data("j", plates=entry)])
        data = {"x": rng.poisson((scores @ loadings.T)[i, j]), "i": i, "j": j}
        return Problem(
            cv.Model(cv.Poisson("x", rate, plates=entry)), data, {"u": scores, "v": loadings}, len(i)
        )

    return make


CASES = cases_of(
    counts_of_three_parts=factorisation(100, 20, 3, 3, 0.3),
    counts_of_five_parts=factorisation(200, 30, 5, 5, 0.3),
    counts_of_parts_all_present=factorisation(100, 20, 3, 3, 2.0),
    counts_of_very_sparse_parts=factorisation(150, 40, 3, 3, 0.05),
    counts_with_too_many_parts=factorisation(150, 40, 3, 8, 0.3),
    counts_with_exposure=factorisation(120, 25, 4, 4, 0.3, hours=True),
    counts_with_holes=factorisation(120, 25, 4, 4, 0.3, missing=0.3),
    counts_beside_a_background=factorisation(120, 25, 3, 3, 0.3, background=0.3),
    counts_that_vary_more=factorisation(120, 25, 3, 3, 0.3, size=3.0),
    counts_with_learnt_activities=factorisation(100, 20, 3, 3, 0.3, learnt=True),
    counts_of_pairs=long_table(60, 25, 3, 0.3, 0.5),
)
