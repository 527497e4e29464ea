"""Components that differ in what is known of them; each in several orders."""

from __future__ import annotations

from itertools import permutations

import numpy as np

import caviar as cv
from starts.case import Case, Problem


def gammas(shapes, order):
    def make(rng):
        known = np.asarray(shapes, dtype=float)
        rates = known / np.linspace(1.0, 2.0, len(known))
        z = rng.integers(len(known), size=600)
        x = rng.gamma(known[z], 1 / rates[z])
        o, k = cv.Plate("o"), cv.Plate("k", len(known))
        label = cv.Categorical("z", cv.Dirichlet("w", np.ones(len(known))), plates=o)
        shape = cv.Constant("shape", known[list(order)], plates=k)[label]
        model = cv.Model(cv.Gamma("x", shape, cv.Gamma("b", 1, 1, plates=k)[label], plates=o))
        return Problem(model, {"x": x}, {"z": np.argsort(order)[z]}, 600)

    return make


def precisions(widths, centres, order, prior=0.1):
    def make(rng):
        size = len(widths)
        z = rng.integers(size, size=500)
        x = np.asarray(centres, dtype=float)[z] + np.asarray(widths)[z] * rng.normal(size=500)
        o, k = cv.Plate("o"), cv.Plate("k", size)
        label = cv.Categorical("z", cv.Dirichlet("w", np.ones(size)), plates=o)
        known = cv.Constant("t", np.asarray(widths, dtype=float)[list(order)] ** -2, plates=k)[label]
        model = cv.Model(cv.Normal("x", cv.Normal("mu", 0, prior, plates=k)[label], known, plates=o))
        return Problem(model, {"x": x}, {"z": np.argsort(order)[z]}, 500)

    return make


def prior_means(order, width):
    """Priors about different places, as wide as each other or not."""

    def make(rng):
        means, precision = np.array([-6.0, 0.0, 6.0]), np.array([1.0, 0.01, 100.0])
        z = rng.integers(3, size=300)
        x = means[z] + width * rng.normal(size=300)
        o, k = cv.Plate("o"), cv.Plate("k", 3)
        label = cv.Categorical("z", cv.Dirichlet("w", np.ones(3)), plates=o)
        prior = cv.Normal(
            "mu",
            cv.Constant("m", means[list(order)], plates=k),
            cv.Constant("p", precision[list(order)], plates=k),
            plates=k,
        )
        model = cv.Model(cv.Normal("x", prior[label], cv.Gamma("t", 1, 1), plates=o))
        return Problem(model, {"x": x}, {"z": np.argsort(order)[z]}, 300)

    return make


def known_weights(order):
    def make(rng):
        shares = np.array([0.7, 0.2, 0.1])
        z = rng.choice(3, 400, p=shares)
        x = np.array([[0.0, 0], [5, 0], [0, 5]])[z] + rng.normal(size=(400, 2))
        o, k = cv.Plate("o"), cv.Plate("k", 3)
        theta = cv.NormalWishart("theta", np.zeros(2), 0.1, 4.0, np.eye(2), plates=k)
        label = cv.Categorical("z", shares[list(order)], plates=o)
        model = cv.Model(cv.MultivariateNormal("x", theta[label], plates=o))
        return Problem(model, {"x": x}, {"z": np.argsort(order)[z]}, 400)

    return make


def concentrations(order):
    """Weights with a prior that tells them apart."""

    def make(rng):
        z = rng.choice(3, 300, p=[0.1, 0.3, 0.6])
        x = rng.poisson(np.array([1.0, 8.0, 25.0])[z])
        o, k = cv.Plate("o"), cv.Plate("k", 3)
        prior = np.array([10.0, 30.0, 60.0])[list(order)]
        label = cv.Categorical("z", cv.Dirichlet("w", prior), plates=o)
        model = cv.Model(cv.Poisson("x", cv.Gamma("r", 1, 0.1, plates=k)[label], plates=o))
        return Problem(model, {"x": x}, {"z": np.argsort(order)[z]}, 300)

    return make


def emissions(order):
    """Classes of answers whose priors say what is likely in each."""

    def make(rng):
        table = np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]])
        z = rng.integers(3, size=300)
        x = np.stack([[rng.choice(3, p=table[own]) for _ in range(5)] for own in z])
        o, d, k = cv.Plate("o"), cv.Plate("d", 5), cv.Plate("k", 3)
        label = cv.Categorical("z", cv.Dirichlet("w", np.ones(3)), plates=o)
        prior = cv.Constant("c", (1 + 20 * table)[list(order)], plates=k)
        p = cv.Dirichlet("p", prior, plates=k)
        model = cv.Model(cv.Categorical("x", p[label], plates=(o, d)))
        return Problem(model, {"x": x}, {"z": np.argsort(order)[z]}, 300)

    return make


def known_rates(order):
    def make(rng):
        rates = np.array([2.0, 6.0, 15.0])
        z = rng.choice(3, 400, p=[0.5, 0.2, 0.3])
        x = rng.poisson(rates[z])
        o, k = cv.Plate("o"), cv.Plate("k", 3)
        label = cv.Categorical("z", cv.Dirichlet("w", np.ones(3)), plates=o)
        model = cv.Model(cv.Poisson("x", cv.Constant("r", rates[list(order)], plates=k)[label], plates=o))
        return Problem(model, {"x": x}, {"z": np.argsort(order)[z]}, 400)

    return make


def wishart_widths(order):
    """Precision priors of very different sizes, in two columns, locations on top of each other."""

    def make(rng):
        scales = np.array([0.2, 4.0])
        z = rng.integers(2, size=400)
        x = scales[z][:, None] * rng.normal(size=(400, 2))
        o, k = cv.Plate("o"), cv.Plate("k", 2)
        label = cv.Categorical("z", cv.Dirichlet("w", np.ones(2)), plates=o)
        scale = cv.Constant("s", 20 * (scales[list(order)] ** 2)[:, None, None] * np.eye(2), plates=k)
        precision = cv.Wishart("l", 20.0, scale, plates=k)
        mean = cv.MultivariateNormal("mu", np.zeros(2), np.eye(2), plates=k)
        model = cv.Model(cv.MultivariateNormal("x", mean[label], precision[label], plates=o))
        return Problem(model, {"x": x}, {"z": np.argsort(order)[z]}, 400)

    return make


def beta_priors(order):
    def make(rng):
        p = np.array([0.15, 0.5, 0.85])
        z = rng.integers(3, size=300)
        x = (rng.random((300, 8)) < p[z][:, None]).astype(int)
        o, d, k = cv.Plate("o"), cv.Plate("d", 8), cv.Plate("k", 3)
        label = cv.Categorical("z", cv.Dirichlet("w", np.ones(3)), plates=o)
        prior = cv.Beta("p", 40 * p[list(order)], 40 * (1 - p[list(order)]), plates=k)
        return Problem(
            cv.Model(cv.Bernoulli("x", prior[label], plates=(o, d))),
            {"x": x},
            {"z": np.argsort(order)[z]},
            300,
        )

    return make


def weights_of_normals(weights, centres):
    """Known weights of Normals that overlap: rows change over until other components have most of them."""

    def make(rng):
        z = rng.choice(len(weights), 200, p=weights)
        x = np.array(centres)[z] + rng.normal(size=200)
        o, k = cv.Plate("o"), cv.Plate("k", len(weights))
        label = cv.Categorical("z", np.array(weights), plates=o)
        model = cv.Model(cv.Normal("x", cv.Normal("m", 0, 0.01, plates=k)[label], 1.0, plates=o))
        return Problem(model, {"x": x}, {"z": z}, 200)

    return make


def weights_of_counts(weights, rates):
    def make(rng):
        z = rng.choice(len(weights), 200, p=weights)
        x = rng.poisson(np.array(rates)[z])
        o, k = cv.Plate("o"), cv.Plate("k", len(weights))
        label = cv.Categorical("z", np.array(weights), plates=o)
        model = cv.Model(cv.Poisson("x", cv.Gamma("r", 1, 0.05, plates=k)[label], plates=o))
        return Problem(model, {"x": x}, {"z": z}, 200)

    return make


def weight_priors_of_answers(rng):
    """One rate of yes for all questions of a class, and priors of weights that differ."""
    z = rng.choice(3, 100, p=[0.3, 0.5, 0.2])
    x = (rng.random((100, 15)) < np.array([0.3, 0.6, 0.05])[z][:, None]).astype(int)
    o, d, k = cv.Plate("o"), cv.Plate("d", 15), cv.Plate("k", 3)
    label = cv.Categorical("z", cv.Dirichlet("w", [30.0, 50.0, 20.0]), plates=o)
    model = cv.Model(cv.Bernoulli("x", cv.Beta("p", 1, 1, plates=k)[label], plates=(o, d)))
    return Problem(model, {"x": x}, {"z": z}, 100)


def in_orders(name, make, size):
    """Return a case for each of a few orders of the components."""
    orders = list(permutations(range(size)))
    return [Case(f"{name}, order {order}", make(order)) for order in orders[:: max(1, len(orders) // 2)]]


CASES = [
    *in_orders("shapes 9 and 2", lambda order: gammas([9.0, 2.0], order), 2),
    *in_orders("shapes 30, 3 and 0.7", lambda order: gammas([30.0, 3.0, 0.7], order), 3),
    *in_orders("shapes 100 and 1", lambda order: gammas([100.0, 1.0], order), 2),
    *in_orders("widths 0.1 and 3", lambda order: precisions([0.1, 3.0], [0.0, 1.0], order), 2),
    *in_orders("widths 1 and 10", lambda order: precisions([1.0, 10.0], [0.0, 0.0], order), 2),
    *in_orders("widths 0.1, 1 and 5", lambda order: precisions([0.1, 1.0, 5.0], [0.0, 4.0, -3.0], order), 3),
    *in_orders("widths 1 and 1.5", lambda order: precisions([1.0, 1.5], [0.0, 6.0], order), 2),
    *in_orders("prior means", lambda order: prior_means(order, 1.0), 3),
    *in_orders("known weights", known_weights, 3),
    Case(
        "weights 0.05, 0.25, 0.6 and 0.1",
        weights_of_normals([0.05, 0.25, 0.6, 0.1], [0.0, -6.0, 3.0, 9.0]),
    ),
    Case("known weights of four counts", weights_of_counts([0.05, 0.25, 0.6, 0.1], [8.0, 1.0, 20.0, 60.0])),
    Case(
        "known weights of five counts",
        weights_of_counts([0.05, 0.15, 0.4, 0.3, 0.1], [18.0, 1.0, 5.0, 40.0, 90.0]),
    ),
    Case("weights of answers", weight_priors_of_answers),
    *in_orders("concentrations", concentrations, 3),
    *in_orders("emission priors", emissions, 3),
    *in_orders("known rates", known_rates, 3),
    *in_orders("Wishart priors", wishart_widths, 2),
    *in_orders("Beta priors", beta_priors, 3),
]
