"""Labels over plates that are not the rows: columns, features, groups."""

from __future__ import annotations

import numpy as np

import caviar as cv
from starts.case import Problem, cases_of


def _plates(n_columns, n_clusters):
    return cv.Plate("o"), cv.Plate("f", n_columns), cv.Plate("k", n_clusters)


def locations(n_rows, n_columns, centres, width, weights=None):
    """Columns of one number's clusters."""

    def make(rng):
        centres_ = np.asarray(centres, dtype=float)
        size = len(centres_)
        z = rng.permutation(np.arange(n_columns) % size)
        x = centres_[z] + width * rng.normal(size=(n_rows, n_columns))
        o, f, k = _plates(n_columns, size)
        shares = np.ones(size) / size if weights is None else weights
        label = cv.Categorical("z", shares, plates=f)
        model = cv.Model(cv.Normal("x", cv.Normal("mu", 0, 0.01, plates=k)[label], width**-2, plates=(o, f)))
        return Problem(model, {"x": x}, {"z": z}, n_rows)

    return make


def learnt_weights(rng):
    z = rng.permutation(np.arange(24) % 4)
    x = np.array([-6.0, -2, 2, 6])[z] + rng.normal(size=(60, 24))
    o, f, k = _plates(24, 4)
    label = cv.Categorical("z", cv.Dirichlet("w", np.ones(4)), plates=f)
    precision = cv.Gamma("t", 1, 1, plates=k)[label]
    model = cv.Model(cv.Normal("x", cv.Normal("mu", 0, 0.01, plates=k)[label], precision, plates=(o, f)))
    return Problem(model, {"x": x}, {"z": z}, 60)


def answers(rng):
    z = rng.permutation(np.arange(20) % 3)
    x = (rng.random((80, 20)) < np.array([0.1, 0.5, 0.9])[z]).astype(int)
    o, f, k = _plates(20, 3)
    label = cv.Categorical("z", np.ones(3) / 3, plates=f)
    model = cv.Model(cv.Bernoulli("x", cv.Beta("p", 1, 1, plates=k)[label], plates=(o, f)))
    return Problem(model, {"x": x}, {"z": z}, 80)


def counts(rng):
    z = rng.permutation(np.arange(15) % 3)
    x = rng.poisson(np.array([1.0, 4, 12])[z], (40, 15))
    o, f, k = _plates(15, 3)
    label = cv.Categorical("z", np.ones(3) / 3, plates=f)
    model = cv.Model(cv.Poisson("x", cv.Gamma("r", 1, 0.1, plates=k)[label], plates=(o, f)))
    return Problem(model, {"x": x}, {"z": z}, 40)


def widths(rng):
    z = rng.permutation(np.arange(16) % 2)
    x = np.array([0.3, 2.0])[z] * rng.normal(size=(50, 16))
    o, f, k = _plates(16, 2)
    label = cv.Categorical("z", np.ones(2) / 2, plates=f)
    model = cv.Model(cv.Normal("x", 0, cv.Gamma("t", 1, 1, plates=k)[label], plates=(o, f)))
    return Problem(model, {"x": x}, {"z": z}, 50)


def patterns(rng):
    """Columns that share their values along a second plate of declared size."""
    z = rng.permutation(np.arange(12) % 3)
    shape = rng.normal(size=(3, 5)) * 3
    x = shape[z].T + rng.normal(size=(40, 5, 12))
    o, d, f, k = cv.Plate("o"), cv.Plate("d", 5), cv.Plate("f", 12), cv.Plate("k", 3)
    label = cv.Categorical("z", np.ones(3) / 3, plates=f)
    mu = cv.Normal("mu", 0, 0.01, plates=(k, d))
    model = cv.Model(cv.Normal("x", mu[label], 1.0, plates=(o, d, f)))
    return Problem(model, {"x": x}, {"z": z}, 40)


def with_row_effects(rng):
    """Columns that differ in their slopes on a covariate of the rows."""
    z = rng.permutation(np.arange(14) % 2)
    u = rng.normal(size=70)
    x = np.array([-2.0, 2.0])[z] * u[:, None] + 0.7 * rng.normal(size=(70, 14))
    o, f, k = _plates(14, 2)
    label = cv.Categorical("z", [0.5, 0.5], plates=f)
    slope = cv.Normal("b", 0, 0.1, plates=k)[label] * cv.Data("u", plates=o)
    model = cv.Model(cv.Normal("x", slope, cv.Gamma("t", 1, 1), plates=(o, f)))
    return Problem(model, {"x": x, "u": u}, {"z": z}, 70)


def no_rows(rng):
    """No plate without a declared size; the labels are over the smaller one."""
    z = rng.permutation(np.arange(9) % 3)
    x = np.array([-4.0, 0, 4.0])[z] + rng.normal(size=(30, 9))
    o, f, k = cv.Plate("o", 30), cv.Plate("f", 9), cv.Plate("k", 3)
    label = cv.Categorical("z", np.ones(3) / 3, plates=f)
    model = cv.Model(cv.Normal("x", cv.Normal("mu", 0, 0.01, plates=k)[label], 1.0, plates=(o, f)))
    return Problem(model, {"x": x}, {"z": z}, 30)


def both_sides(rng):
    """Rows and columns clustered, the table a sum of the two."""
    z, v = rng.permutation(np.arange(90) % 3), rng.permutation(np.arange(12) % 2)
    x = np.array([-5.0, 0, 5.0])[z][:, None] + np.array([-1.0, 1.0])[v] + 0.5 * rng.normal(size=(90, 12))
    o, f, k, c = cv.Plate("o"), cv.Plate("f", 12), cv.Plate("k", 3), cv.Plate("c", 2)
    rows, columns = cv.Categorical("z", np.ones(3) / 3, plates=o), cv.Categorical("v", [0.5, 0.5], plates=f)
    total = cv.Normal("a", 0, 0.01, plates=k)[rows] + cv.Normal("b", 0, 0.01, plates=c)[columns]
    model = cv.Model(cv.Normal("x", total, cv.Gamma("t", 1, 1), plates=(o, f)))
    return Problem(model, {"x": x}, {"z": z, "v": v}, 90)


def products(rng):
    """Rows and columns clustered, the table a product of the two."""
    z, v = rng.permutation(np.arange(80) % 2), rng.permutation(np.arange(10) % 2)
    x = np.array([1.0, 3.0])[z][:, None] * np.array([-1.0, 2.0])[v] + 0.5 * rng.normal(size=(80, 10))
    o, f, k, c = cv.Plate("o"), cv.Plate("f", 10), cv.Plate("k", 2), cv.Plate("c", 2)
    rows, columns = cv.Categorical("z", [0.5, 0.5], plates=o), cv.Categorical("v", [0.5, 0.5], plates=f)
    total = cv.Normal("a", 0, 0.1, plates=k)[rows] * cv.Normal("b", 0, 0.1, plates=c)[columns]
    model = cv.Model(cv.Normal("x", total, cv.Gamma("t", 1, 1), plates=(o, f)))
    init = {"z": z, "v": v, "a": [1.0, 3.0], "b": [-1.0, 2.0]}
    return Problem(model, {"x": x}, init, 80)


def groups(rng):
    """Groups clustered by a location that is hidden itself."""
    z = rng.permutation(np.arange(30) % 3)
    group = np.repeat(np.arange(30), 6)
    y = (np.array([-6.0, 0, 6.0])[z] + 0.5 * rng.normal(size=30))[group] + rng.normal(size=180)
    o, g, k = cv.Plate("o"), cv.Plate("g", 30), cv.Plate("k", 3)
    label = cv.Categorical("z", np.ones(3) / 3, plates=g)
    theta = cv.Normal("theta", cv.Normal("mu", 0, 0.01, plates=k)[label], 4.0, plates=g)
    model = cv.Model(cv.Normal("y", theta[cv.Data("group", plates=o)], 1.0, plates=o))
    means = np.array([y[group == i].mean() for i in range(30)])
    return Problem(model, {"y": y, "group": group}, {"z": z, "theta": means}, 180)


def noisy_groups(n_groups, n_rows, centres, precision, n_columns=None):
    """Groups clustered by a location that is hidden: groups of a cluster differ by a known width."""

    def make(rng):
        size, group = len(centres), rng.integers(n_groups, size=n_rows)
        group[:n_groups] = np.arange(n_groups)
        z = rng.integers(size, size=n_groups)
        theta = np.asarray(centres, dtype=float)[z]
        theta = theta + rng.normal(size=theta.shape) / np.sqrt(precision)
        y = theta[group] + rng.normal(size=theta[group].shape)
        o, g, k = cv.Plate("o"), cv.Plate("g", n_groups), cv.Plate("k", size)
        d = () if n_columns is None else (cv.Plate("d", n_columns),)
        label = cv.Categorical("z", cv.Dirichlet("w", np.ones(size)), plates=g)
        own = cv.Normal("a", cv.Normal("m", 0, 0.1, plates=(k, *d))[label], precision, plates=(g, *d))
        model = cv.Model(cv.Normal("y", own[cv.Data("group", plates=o)], cv.Gamma("t", 1, 1), plates=(o, *d)))
        return Problem(model, {"y": y, "group": group}, {"z": z}, n_rows)

    return make


CASES = cases_of(
    columns_of_the_example=locations(100, 12, [-5, 0, 5], 1.0),
    many_columns_five_clusters=locations(50, 30, [-8, -4, 0, 4, 8], 1.0),
    two_clusters_of_few_columns=locations(1_000, 8, [0.0, 2.0], 1.0),
    weak_columns=locations(300, 40, [-0.5, 0.5], 1.0),
    few_rows=locations(4, 60, [-6, 0, 6], 1.0),
    known_shares=locations(60, 12, [-5, 0, 5], 1.0, [0.2, 0.3, 0.5]),
    columns_with_learnt_weights=learnt_weights,
    columns_of_answers=answers,
    columns_of_counts=counts,
    columns_of_widths=widths,
    columns_of_patterns=patterns,
    columns_of_slopes=with_row_effects,
    both_plates_declared=no_rows,
    rows_and_columns_added=both_sides,
    rows_and_columns_multiplied=products,
    groups_by_a_hidden_location=groups,
    groups_of_three_kinds=noisy_groups(25, 250, [-2, 0, 2], 25.0),
    groups_of_four_kinds=noisy_groups(60, 400, [-3, -1, 1, 3], 25.0),
    groups_of_two_kinds=noisy_groups(30, 150, [-1, 1], 10.0),
    groups_in_two_columns=noisy_groups(30, 300, [[0, 0], [2, 0], [0, 2]], 25.0, 2),
)
