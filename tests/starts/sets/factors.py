"""Factors of tables: hidden locations that multiply others."""

from __future__ import annotations

import numpy as np

import caviar as cv
from starts.case import Problem, cases_of


def table(rng, n_rows, n_columns, n_factors, *, noise=(0.2, 1.0), scale=1.0):
    """Scores, and a table of them with noise of its own in each column."""
    scores = rng.normal(size=(n_rows, n_factors))
    widths = np.exp(rng.uniform(*np.log(noise), size=n_columns))
    values = scores @ (scale * rng.normal(size=(n_factors, n_columns)))
    return scores, values + widths * rng.normal(size=(n_rows, n_columns))


def with_more(scores, n_factors):
    """Scores with columns of zeros for factors that there are none of."""
    return np.hstack([scores, np.zeros((len(scores), n_factors - scores.shape[1]))])


def holes(rng, values, share):
    return np.where(rng.random(values.shape) < share, np.nan, values)


def hidden(name, n_factors, plate):
    return cv.MultivariateNormal(name, np.zeros(n_factors), np.eye(n_factors), plates=plate)


def loadings(name, n_factors, *plates):
    """Loadings of each column with a precision for each factor."""
    precision = cv.Gamma(f"{name}_relevance", 1e-3, 1e-3, plates=cv.Plate(f"{name}_factor", n_factors))
    return cv.MultivariateNormal(name, np.zeros(n_factors), cv.diagonal(precision), plates=plates)


def factors(n_rows, n_columns, n_true, n_factors, *, relevance=True, missing=0.0, model=None, **how):
    """Factor analysis, or what is stated alike, of its own data."""

    def make(rng):
        scores, values = table(rng, n_rows, n_columns, n_true, **how)
        state = model or cv.models.factor_analysis
        stated = state(n_columns, n_factors, relevance=relevance)
        data = {"x": holes(rng, values, missing) if missing else values}
        return Problem(stated, data, {"z": with_more(scores, n_factors)}, n_rows)

    return make


def walk(n_rows, n_columns, n_factors):
    """Columns that go along with each other for a while, as joints of a body do: as many directions as columns."""

    def make(rng):
        along = np.cumsum(rng.normal(size=(n_rows, n_columns)), axis=0) @ rng.normal(
            size=(n_columns, n_columns)
        )
        values = (along - along.mean(axis=0)) * np.geomspace(1, 30, n_columns) / along.std(axis=0)
        left, sizes, _ = np.linalg.svd(values - values.mean(axis=0), full_matrices=False)
        model = cv.models.factor_analysis(n_columns, n_factors, relevance=True)
        init = {"z": left[:, :n_factors] * np.sqrt(n_rows) * (sizes[:n_factors] > 0)}
        return Problem(model, {"x": values}, init, n_rows)

    return make


def one_number(rng):
    """A number for each row times one for each column, whose size is to be learnt."""
    scores, values = table(rng, 150, 7, 1, noise=(0.3, 2.0), scale=2.0)
    o, c = cv.Plate("o"), cv.Plate("c", 7)
    product = cv.Normal("w", 0, cv.Gamma("a", 1e-3, 1e-3), plates=c) * cv.Normal("z", 0, 1, plates=o)
    mean = product + cv.Normal("m", 0, 0.001, plates=c)
    model = cv.Model(cv.Normal("x", mean, cv.Gamma("t", 1, 1, plates=c), plates=(o, c)))
    return Problem(model, {"x": values + 3}, {"z": scores[:, 0]}, 150)


def beside_a_regression(rng):
    """Factors of what known columns leave."""
    scores, values = table(rng, 250, 8, 2, noise=(0.3, 1.0))
    u = rng.normal(size=(250, 2))
    o, c = cv.Plate("o"), cv.Plate("c", 8)
    slopes = cv.MultivariateNormal("b", np.zeros(2), 0.01 * np.eye(2), plates=c)
    mean = cv.dot(loadings("w", 3, c), hidden("z", 3, o)) + cv.dot(slopes, cv.Data("u", plates=o))
    mean = mean + cv.Normal("m", 0, 0.001, plates=c)
    model = cv.Model(cv.Normal("x", mean, cv.Gamma("t", 1, 1, plates=c), plates=(o, c)))
    data = {"x": values + 5 * u @ rng.normal(size=(2, 8)), "u": u}
    return Problem(model, data, {"z": with_more(scores, 3)}, 250)


def beside_groups(rng):
    """Factors of what means of known groups leave."""
    scores, values = table(rng, 300, 6, 2, noise=(0.3, 1.0))
    group = rng.integers(6, size=300)
    o, c, g = cv.Plate("o"), cv.Plate("c", 6), cv.Plate("g", 6)
    own = cv.Normal("m", 0, 0.001, plates=(g, c))[cv.Data("group", plates=o)]
    mean = cv.dot(loadings("w", 3, c), hidden("z", 3, o)) + own
    model = cv.Model(cv.Normal("x", mean, cv.Gamma("t", 1, 1, plates=c), plates=(o, c)))
    data = {"x": values + 10 * rng.normal(size=(6, 6))[group], "group": group}
    return Problem(model, data, {"z": with_more(scores, 3)}, 300)


def views(sizes, active, *, missing=0.0):
    """Tables of the same rows that share some of their factors, in very different units."""

    def make(rng):
        n_true, n_factors, o = len(active), len(active) + 1, cv.Plate("o")
        scores, leaves, data = rng.normal(size=(120, n_true)), [], {}
        z = hidden("z", n_factors, o)
        for number, size in enumerate(sizes):
            c = cv.Plate(f"c{number}", size)
            own = scores * np.array(active)[:, number]
            values = own @ rng.normal(size=(n_true, size)) + 0.7 * rng.normal(size=(120, size))
            values[rng.random(120) < missing] = np.nan
            mean = cv.dot(loadings(f"w{number}", n_factors, c), z) + cv.Normal(
                f"m{number}", 0, 1e-3, plates=c
            )
            noise = cv.Gamma(f"t{number}", 1e-3, 1e-3, plates=c)
            leaves.append(cv.Normal(f"x{number}", mean, noise, plates=(o, c)))
            data[f"x{number}"] = values * 10.0 ** (2 * number - 2)
        return Problem(cv.Model(*leaves), data, {"z": with_more(scores, n_factors)}, 120)

    return make


def analysers(counts, n_columns):
    """A mixture whose components have factors of their own."""

    def make(rng):
        tables = [table(rng, n, n_columns, 2, noise=(0.2, 0.4), scale=2.0) for n in counts]
        label = np.repeat(np.arange(len(counts)), counts)
        values = (
            np.concatenate([own for _, own in tables]) + 4 * rng.normal(size=(len(counts), n_columns))[label]
        )
        o, c, k = cv.Plate("o"), cv.Plate("c", n_columns), cv.Plate("k", len(counts))
        which = cv.Categorical("l", cv.Dirichlet("p", np.ones(len(counts))), plates=o)
        w = cv.MultivariateNormal("w", np.zeros(2), 0.1 * np.eye(2), plates=(k, c))
        mean = cv.dot(w[which], hidden("z", 2, o)) + cv.Normal("m", 0, 0.001, plates=(k, c))[which]
        model = cv.Model(cv.Normal("x", mean, cv.Gamma("t", 1, 1, plates=c), plates=(o, c)))
        return Problem(model, {"x": values}, {"l": label}, len(values))

    return make


def ratings(n_users, n_items, share, *, biases=False):
    """Ratings as products of what is hidden of users and of items, most of them missing."""

    def make(rng):
        users, items = 2 * rng.normal(size=(n_users, 3)), rng.normal(size=(n_items, 3))
        i, j = np.nonzero(rng.random((n_users, n_items)) < share)
        rating = 3 + (users[i] * items[j]).sum(axis=1) + 0.5 * rng.normal(size=len(i))
        o, u, v = cv.Plate("o"), cv.Plate("u", n_users), cv.Plate("v", n_items)
        of_users, of_items = cv.Data("user", plates=o), cv.Data("item", plates=o)
        mean = cv.dot(loadings("users", 5, u)[of_users], hidden("items", 5, v)[of_items])
        mean = mean + cv.Normal("mean", 0, 0.01)
        if biases:
            mean = mean + cv.Normal("b", 0, cv.Gamma("tb", 1, 1), plates=u)[of_users]
            rating = rating + 2 * rng.normal(size=n_users)[i]
        model = cv.Model(cv.Normal("rating", mean, cv.Gamma("t", 1, 1), plates=o))
        data = {"rating": rating, "user": i, "item": j}
        return Problem(model, data, {"users": with_more(users, 5)}, len(i))

    return make


def answers(rng):
    """Binary answers by two abilities."""
    scores, values = table(rng, 300, 12, 2, noise=(0.01, 0.02), scale=2.0)
    asked = (rng.random(values.shape) < 1 / (1 + np.exp(-values))).astype(float)
    o, c = cv.Plate("o"), cv.Plate("c", 12)
    mean = cv.dot(loadings("w", 3, c), hidden("z", 3, o)) + cv.Normal("m", 0, 0.1, plates=c)
    model = cv.Model(cv.Bernoulli("x", cv.logistic(mean), plates=(o, c)))
    return Problem(model, {"x": asked}, {"z": with_more(scores, 3)}, 300)


def three_ways(shape, rank, noise, missing):
    """A table of three ways as a sum of products of a number for each way (CP, PARAFAC)."""

    def make(rng):
        true = [rng.normal(size=(size, rank)) for size in shape]
        values = np.einsum("ir,jr,kr->ijk", *true) + noise * rng.normal(size=shape)
        plates = cv.Plate("i"), cv.Plate("j", shape[1]), cv.Plate("k", shape[2])
        products = [
            cv.Normal(f"a{r}", 0, 1, plates=plates[0])
            * cv.Normal(f"b{r}", 0, 1, plates=plates[1])
            * cv.Normal(f"c{r}", 0, 1, plates=plates[2])
            for r in range(rank)
        ]
        mean = sum(products[1:], products[0])
        model = cv.Model(cv.Normal("y", mean, cv.Gamma("tau", 1e-3, 1e-3), plates=plates))
        init = {f"{way}{r}": own[:, r] for way, own in zip("abc", true, strict=True) for r in range(rank)}
        data = {"y": holes(rng, values, missing) if missing else values}
        return Problem(model, data, {**init, "tau": noise**-2}, shape[0])

    return make


CASES = cases_of(
    factors_of_ten_columns=factors(200, 10, 3, 6, noise=(0.1, 2.0)),
    factors_with_holes=factors(60, 20, 4, 8, missing=0.2, scale=2.0),
    factors_of_few_rows=factors(20, 30, 3, 5, scale=2.0),
    factors_of_many_columns=factors(40, 120, 4, 6),
    factors_alike=factors(300, 15, 5, 5, relevance=False, scale=4.0),
    principal_components=factors(100, 15, 5, 10, noise=(0.7, 0.71), model=cv.models.probabilistic_pca),
    columns_that_walk=walk(400, 12, 8),
    one_number_times_another=one_number,
    factors_beside_a_regression=beside_a_regression,
    factors_beside_groups=beside_groups,
    factors_of_three_views=views((15, 25, 10), [[1, 1, 0], [1, 0, 1], [1, 0, 0], [0, 1, 0], [0, 1, 1]]),
    factors_of_views_with_holes=views((12, 8), [[1, 1], [1, 0], [0, 1]], missing=0.25),
    two_factor_analysers=analysers((200, 150), 6),
    three_factor_analysers=analysers((150, 120, 100), 8),
    ratings=ratings(40, 30, 0.5),
    sparse_ratings_with_biases=ratings(80, 60, 0.25, biases=True),
    answers_by_abilities=answers,
    three_ways=three_ways((8, 7, 6), 2, 0.1, 0.1),
    three_ways_of_much_noise=three_ways((8, 7, 6), 2, 1.0, 0.2),
    three_ways_and_three_products=three_ways((8, 7, 6), 3, 0.1, 0.2),
    three_longer_ways=three_ways((20, 15, 10), 3, 0.7, 0.3),
)
