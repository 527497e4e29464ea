"""Several labels in one sum."""

from __future__ import annotations

import numpy as np

import caviar as cv
from starts.case import Problem, cases_of


def sums(n_rows, contributions, width, *, n_columns=None, precision=None, shares=None):
    """Rows that are sums of one number for each label."""

    def make(rng):
        o = cv.Plate("o")
        columns = () if n_columns is None else (cv.Plate("d", n_columns),)
        total, x, init = 0, 0.0, {}
        for i, own in enumerate(contributions):
            z = (
                rng.integers(len(own), size=n_rows)
                if shares is None
                else rng.choice(len(own), n_rows, p=shares[i])
            )
            values = np.asarray(own, dtype=float)
            if n_columns is not None:
                values = values[:, None] * rng.normal(size=(1, n_columns)) + rng.normal(
                    size=(len(own), n_columns)
                )
            k = cv.Plate(f"k{i}", len(own))
            label = cv.Categorical(f"z{i}", np.ones(len(own)) / len(own), plates=o)
            total = total + cv.Normal(f"a{i}", 0, 0.01, plates=(k, *columns))[label]
            x = x + values[z]
            init[f"z{i}"] = z
        x = x + width * rng.normal(size=x.shape)
        noise = cv.Gamma("t", 1, 1) if precision is None else precision
        return Problem(cv.Model(cv.Normal("x", total, noise, plates=(o, *columns))), {"x": x}, init, n_rows)

    return make


def with_a_slope(rng):
    z, v, u = rng.integers(2, size=300), rng.integers(3, size=300), rng.normal(size=300)
    x = np.array([-8.0, 8])[z] + np.array([-2.0, 0, 2])[v] + 3 * u + 0.3 * rng.normal(size=300)
    o, k, c = cv.Plate("o"), cv.Plate("k", 2), cv.Plate("c", 3)
    total = (
        cv.Normal("a", 0, 0.01, plates=k)[cv.Categorical("z", [0.5, 0.5], plates=o)]
        + cv.Normal("b", 0, 0.01, plates=c)[cv.Categorical("v", np.ones(3) / 3, plates=o)]
        + cv.Normal("s", 0, 0.01) * cv.Data("u", plates=o)
    )
    model = cv.Model(cv.Normal("x", total, cv.Gamma("t", 1, 1), plates=o))
    return Problem(model, {"x": x, "u": u}, {"z": z, "v": v}, 300)


def offset_and_slope(rng):
    """One label chooses the level, another the slope."""
    z, v, u = rng.integers(2, size=300), rng.integers(2, size=300), rng.normal(size=300)
    x = np.array([-6.0, 6])[z] + np.array([-2.0, 2])[v] * u + 0.3 * rng.normal(size=300)
    o, k, c = cv.Plate("o"), cv.Plate("k", 2), cv.Plate("c", 2)
    slope = cv.Normal("b", 0, 0.01, plates=c)[cv.Categorical("v", [0.5, 0.5], plates=o)]
    level = cv.Normal("a", 0, 0.01, plates=k)[cv.Categorical("z", [0.5, 0.5], plates=o)]
    model = cv.Model(cv.Normal("x", level + slope * cv.Data("u", plates=o), cv.Gamma("t", 1, 1), plates=o))
    return Problem(model, {"x": x, "u": u}, {"z": z, "v": v}, 300)


def known_and_learnt(rng):
    """One of the two has known values."""
    z, v = rng.integers(2, size=300), rng.integers(2, size=300)
    x = np.array([0.0, 3.0])[z] + np.array([-8.0, 8.0])[v] + 0.4 * rng.normal(size=300)
    o, k, c = cv.Plate("o"), cv.Plate("k", 2), cv.Plate("c", 2)
    known = cv.Constant("a", [0.0, 3.0], plates=k)[cv.Categorical("z", [0.5, 0.5], plates=o)]
    learnt = cv.Normal("b", 0, 0.01, plates=c)[cv.Categorical("v", [0.5, 0.5], plates=o)]
    model = cv.Model(cv.Normal("x", known + learnt, cv.Gamma("t", 1, 1), plates=o))
    return Problem(model, {"x": x}, {"z": z, "v": v}, 300)


def product_of_rates(shape, one, other):
    """A Gamma whose rate is a product of two that labels choose."""

    def make(rng):
        z, v = rng.integers(len(one), size=240), rng.integers(len(other), size=240)
        x = rng.gamma(shape, 1 / (np.array(one)[z] * np.array(other)[v]))
        o, k, c = cv.Plate("o"), cv.Plate("k", len(one)), cv.Plate("c", len(other))
        first = cv.Categorical("z", cv.Dirichlet("w", np.ones(len(one))), plates=o)
        second = cv.Categorical("v", cv.Dirichlet("wv", np.ones(len(other))), plates=o)
        rate = cv.Gamma("a", 1, 1, plates=k)[first] * cv.Gamma("b", 1, 1, plates=c)[second]
        return Problem(cv.Model(cv.Gamma("x", shape, rate, plates=o)), {"x": x}, {"z": z, "v": v}, 240)

    return make


def product_of_numbers(n_rows, one, other, width, n_columns=None):
    """A mean that is a number of one label times a number of another, of each column."""

    def make(rng):
        z, v = rng.integers(len(one), size=n_rows), rng.integers(len(other), size=n_rows)
        first, second = np.array(one, dtype=float), np.array(other, dtype=float)
        columns = () if n_columns is None else (cv.Plate("d", n_columns),)
        if columns:
            first = first[:, None] + rng.normal(size=(len(one), n_columns))
            second = second[:, None] * rng.normal(size=(len(other), n_columns))
        x = first[z] * second[v]
        x = x + width * rng.normal(size=x.shape)
        o, k, c = cv.Plate("o"), cv.Plate("k", len(one)), cv.Plate("c", len(other))
        label = cv.Categorical("z", cv.Dirichlet("w", np.ones(len(one))), plates=o)
        another = cv.Categorical("v", cv.Dirichlet("wv", np.ones(len(other))), plates=o)
        product = (
            cv.Normal("a", 0, 0.1, plates=(k, *columns))[label]
            * cv.Normal("b", 0, 0.1, plates=(c, *columns))[another]
        )
        model = cv.Model(cv.Normal("x", product, cv.Gamma("t", 1, 1), plates=(o, *columns)))
        return Problem(model, {"x": x}, {"z": z, "v": v}, n_rows)

    return make


def product_of_precisions(rng):
    z, v = rng.integers(2, size=(2, 200))
    widths = np.array([1.0, 0.1])[z] * np.array([1.0, 0.4])[v]
    x = widths[:, None] * rng.normal(size=(200, 5))
    o, d, k, c = cv.Plate("o"), cv.Plate("d", 5), cv.Plate("k", 2), cv.Plate("c", 2)
    first = cv.Gamma("a", 1, 1, plates=k)[cv.Categorical("z", [0.5, 0.5], plates=o)]
    second = cv.Gamma("b", 1, 1, plates=c)[cv.Categorical("v", [0.5, 0.5], plates=o)]
    model = cv.Model(cv.Normal("x", 0.0, first * second, plates=(o, d)))
    return Problem(model, {"x": x}, {"z": z, "v": v}, 200)


def binary_factors(n_rows, n_factors, n_columns, width):
    """Each row is the sum of the loadings of the factors that are on."""

    def make(rng):
        loadings = 2 * rng.normal(size=(n_factors, n_columns))
        on = rng.integers(2, size=(n_rows, n_factors))
        x = on @ loadings + width * rng.normal(size=(n_rows, n_columns))
        o, d, total, init = cv.Plate("o"), cv.Plate("d", n_columns), 0, {}
        for i in range(n_factors):
            k = cv.Plate(f"k{i}", 2)
            gate = cv.Constant(f"on{i}", [0.0, 1.0], plates=k)[cv.Categorical(f"z{i}", [0.5, 0.5], plates=o)]
            total = total + gate * cv.Normal(f"w{i}", 0, 0.1, plates=d)
            init |= {f"z{i}": on[:, i], f"w{i}": loadings[i]}
        model = cv.Model(cv.Normal("x", total, cv.Gamma("t", 1, 1), plates=(o, d)))
        return Problem(model, {"x": x}, init, n_rows)

    return make


def with_learnt_weights(n_rows, contributions, width):
    """Sums of one number for each label, whose shares are to be learnt, too."""

    def make(rng):
        o, total, x, init = cv.Plate("o"), 0, 0.0, {}
        for i, own in enumerate(contributions):
            z, k = rng.integers(len(own), size=n_rows), cv.Plate(f"k{i}", len(own))
            label = cv.Categorical(f"z{i}", cv.Dirichlet(f"w{i}", np.ones(len(own))), plates=o)
            total = total + cv.Normal(f"a{i}", 0, 0.001, plates=k)[label]
            x = x + np.array(own, dtype=float)[z]
            init[f"z{i}"] = z
        x = x + width * rng.normal(size=n_rows)
        model = cv.Model(cv.Normal("x", total, cv.Gamma("t", 1, 1), plates=o))
        return Problem(model, {"x": x}, init, n_rows)

    return make


def slopes_and_levels(n_rows, slopes, levels, least):
    """One label chooses the slope on a covariate that is above 0, the other the level."""

    def make(rng):
        z, v = rng.integers(len(slopes), size=n_rows), rng.integers(len(levels), size=n_rows)
        u = np.abs(rng.normal(size=n_rows)) + least
        x = np.array(slopes)[z] * u + np.array(levels)[v] + 0.3 * rng.normal(size=n_rows)
        o, k, c = cv.Plate("o"), cv.Plate("k", len(slopes)), cv.Plate("c", len(levels))
        first = cv.Categorical("z", cv.Dirichlet("w", np.ones(len(slopes))), plates=o)
        second = cv.Categorical("v", cv.Dirichlet("wv", np.ones(len(levels))), plates=o)
        slope = cv.Normal("a", 0, 0.1, plates=k)[first] * cv.Data("u", plates=o)
        total = slope + cv.Normal("b", 0, 0.01, plates=c)[second]
        model = cv.Model(cv.Normal("x", total, cv.Gamma("t", 1, 1), plates=o))
        return Problem(model, {"x": x, "u": u}, {"z": z, "v": v}, n_rows)

    return make


def beside_known_groups(n_groups, spread, *, is_slope=False):
    """Clusters of rows beside effects of known groups, much larger than what parts the clusters."""

    def make(rng):
        z, g, u = rng.integers(4, size=240), rng.integers(n_groups, size=240), rng.normal(size=240)
        by = u if is_slope else np.ones(240)
        x = np.array([0.0, 5, 10, 15])[z] + spread * rng.normal(size=n_groups)[g] * by
        o, k, groups = cv.Plate("o"), cv.Plate("k", 4), cv.Plate("g", n_groups)
        label = cv.Categorical("z", cv.Dirichlet("w", np.ones(4)), plates=o)
        own = cv.Normal("b", 0, cv.Gamma("tb", 1, 1), plates=groups)[cv.Data("group", plates=o)]
        effect = own * cv.Data("u", plates=o) if is_slope else own
        mean = effect + cv.Normal("a", 0, 0.01, plates=k)[label]
        model = cv.Model(cv.Normal("x", mean, cv.Gamma("t", 1, 1), plates=o))
        data = {"x": x + 0.6 * rng.normal(size=240), "group": g} | ({"u": u} if is_slope else {})
        return Problem(model, data, {"z": z}, 240)

    return make


def beside_small_groups(n_groups, rows, steps, *, mean=0.0, columns=()):
    """Clusters of rows beside levels of groups that have too few rows to show theirs."""

    def make(rng):
        n = n_groups * rows
        z, g = rng.integers(len(steps), size=n), np.arange(n) % n_groups
        shape = tuple(columns)
        levels = mean + 5 * rng.normal(size=(n_groups, *shape))
        x = np.array(steps)[z].reshape(n, *(1,) * len(shape)) + levels[g] + 0.5 * rng.normal(size=(n, *shape))
        o, k, groups = cv.Plate("o"), cv.Plate("k", len(steps)), cv.Plate("g", n_groups)
        others = tuple(cv.Plate("d", size) for size in shape)
        label = cv.Categorical("z", cv.Dirichlet("w", np.ones(len(steps))), plates=o)
        centre = cv.Normal("h", 0, 1e-4) if mean else 0.0
        own = cv.Normal("b", centre, cv.Gamma("tb", 1, 1), plates=(groups, *others))
        location = own[cv.Data("group", plates=o)] + cv.Normal("a", 0, 0.02, plates=(k, *others))[label]
        model = cv.Model(cv.Normal("x", location, cv.Gamma("t", 1, 1), plates=(o, *others)))
        return Problem(model, {"x": x, "group": g}, {"z": z}, n)

    return make


CASES = cases_of(
    two_by_two=sums(400, [[-10, 10], [-3, 3]], 0.5),
    two_by_three=sums(400, [[-10, 10], [-3, 0, 3]], 0.4),
    three_by_three=sums(600, [[-12, 0, 12], [-3, 0, 3]], 0.4),
    three_labels=sums(500, [[-12, 12], [-5, 5], [-2, 2]], 0.3),
    uneven=sums(400, [[0, 7], [0, 2, 11]], 0.3),
    in_columns=sums(300, [[-2, 2], [-1, 1]], 0.4, n_columns=4),
    in_columns_three_by_two=sums(300, [[-2, 0, 2], [-1, 1]], 0.4, n_columns=3),
    known_noise=sums(300, [[-10, 10], [-3, 3]], 0.5, precision=4.0),
    rare_labels=sums(600, [[-10, 10], [-3, 3]], 0.4, shares=[[0.85, 0.15], [0.2, 0.8]]),
    three_by_two_by_two_with_weights=with_learnt_weights(250, [[-20, 0, 20], [-6, 6], [-2, 2]], 0.4),
    four_by_three_with_weights=with_learnt_weights(400, [[-30, -10, 10, 30], [-4, 0, 4]], 0.5),
    four_labels_with_weights=with_learnt_weights(400, [[-20, 20], [-9, 9], [-4, 4], [-1.5, 1.5]], 0.3),
    slopes_beside_levels=slopes_and_levels(250, [-3.0, 0, 3], [0.0, 10], 0.5),
    steep_slopes_beside_levels=slopes_and_levels(200, [-5.0, 5], [0.0, 4, 9], 0.2),
    sum_with_a_slope=with_a_slope,
    level_and_slope=offset_and_slope,
    known_and_learnt=known_and_learnt,
    rates_multiplied=product_of_rates(4.0, [1.0, 10.0], [1.0, 3.0, 9.0]),
    product_of_sharp_rates=product_of_rates(40.0, [1.0, 60.0], [1.0, 3.0, 9.0]),
    rates_multiplied_three_by_three=product_of_rates(4.0, [1.0, 12.0, 144.0], [1.0, 2.5, 6.0]),
    rates_multiplied_four_by_two=product_of_rates(6.0, [1.0, 8.0, 64.0, 512.0], [1.0, 3.0]),
    numbers_multiplied=product_of_numbers(300, [1, 3], [-2, 1, 5], 0.3),
    numbers_multiplied_three_by_three=product_of_numbers(400, [1, 3, -2], [-2, 1, 5], 0.2),
    numbers_multiplied_in_columns=product_of_numbers(300, [0, 2, 4], [2, 2], 0.4, n_columns=3),
    product_of_precisions=product_of_precisions,
    many_groups_beside_clusters=beside_known_groups(12, 8.0),
    a_hundred_groups_beside_clusters=beside_small_groups(100, 4, [-6.0, 0, 6]),
    groups_of_ten_beside_clusters=beside_small_groups(100, 10, [-6.0, 0, 6]),
    groups_about_a_mean_beside_clusters=beside_small_groups(90, 5, [0.0, 6, 9], mean=200.0),
    groups_in_two_columns_beside_clusters=beside_small_groups(100, 4, [-6.0, 0, 6], columns=(2,)),
    slopes_of_groups_beside_clusters=beside_known_groups(8, 8.0, is_slope=True),
    two_binary_factors=binary_factors(300, 2, 4, 0.5),
    three_binary_factors=binary_factors(400, 3, 5, 0.5),
)
