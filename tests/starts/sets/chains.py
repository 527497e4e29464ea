"""Hidden Markov models whose states differ in what is known."""

from __future__ import annotations

import numpy as np

import caviar as cv
from starts.case import Case, Problem, cases_of


def path_of(rng, initial, transition, n):
    states = [rng.choice(len(initial), p=initial)]
    for _ in range(n - 1):
        states.append(rng.choice(len(initial), p=transition[states[-1]]))
    return np.array(states)


def sticky(size, stay):
    return stay * np.eye(size) + (1 - stay) / (size - 1) * (1 - np.eye(size))


def soft(p):
    """Return probabilities none of which is 0."""
    return (p + 1e-4) / (p + 1e-4).sum(axis=-1, keepdims=True)


def left_to_right(size, order, width, means=None):
    """States that are passed one after the other; the same emissions a priori."""

    def make(rng):
        number = np.argsort(order)
        move = 0.97 * np.eye(size) + 0.03 * np.eye(size, k=1)
        move[-1, -1] = 1.0
        z = path_of(rng, np.eye(size)[0], move, 300)
        centres = rng.normal(size=size) * 4 if means is None else np.asarray(means)
        x = centres[z] + width * rng.normal(size=300)
        o, k = cv.Plate("o"), cv.Plate("k", size)
        initial, transition = soft(np.eye(size)[0]), soft(move)
        s = cv.MarkovChain("s", initial[list(order)], transition[np.ix_(order, order)], along=o)
        mean = cv.Normal("mu", 0, 0.01, plates=k)
        model = cv.Model(cv.Normal("x", mean[s], cv.Gamma("t", 1, 1, plates=k)[s], plates=o))
        return Problem(model, {"x": x}, {"s": number[z]}, 300)

    return make


def known_widths(order):
    def make(rng):
        widths = np.array([0.3, 1.0, 4.0])
        z = path_of(rng, np.ones(3) / 3, sticky(3, 0.95), 500)
        x = np.array([0.0, 1.0, -1.0])[z] + widths[z] * rng.normal(size=500)
        o, k = cv.Plate("o"), cv.Plate("k", 3)
        s = cv.MarkovChain(
            "s", cv.Dirichlet("i", np.ones(3)), cv.Dirichlet("a", np.ones(3), plates=k), along=o
        )
        precision = cv.Constant("p", widths[list(order)] ** -2, plates=k)[s]
        model = cv.Model(cv.Normal("x", cv.Normal("mu", 0, 0.1, plates=k)[s], precision, plates=o))
        return Problem(model, {"x": x}, {"s": np.argsort(order)[z]}, 500)

    return make


def known_transitions(order):
    """States that differ in how long they last only."""

    def make(rng):
        move = np.array([[0.98, 0.02, 0.0], [0.0, 0.7, 0.3], [0.45, 0.05, 0.5]])
        z = path_of(rng, np.ones(3) / 3, move, 600)
        x = rng.poisson(np.array([4.0, 15.0, 40.0])[z])
        o, k = cv.Plate("o"), cv.Plate("k", 3)
        move = (move + 1e-3) / (move + 1e-3).sum(axis=1, keepdims=True)
        s = cv.MarkovChain("s", np.ones(3) / 3, move[np.ix_(order, order)], along=o)
        model = cv.Model(cv.Poisson("x", cv.Gamma("r", 1, 0.1, plates=k)[s], plates=o))
        return Problem(model, {"x": x}, {"s": np.argsort(order)[z]}, 600)

    return make


def emission_priors(order):
    def make(rng):
        table = np.array([[0.7, 0.2, 0.1], [0.1, 0.2, 0.7]])
        z = path_of(rng, [0.5, 0.5], sticky(2, 0.9), 400)
        x = np.array([rng.choice(3, p=table[own]) for own in z])
        o, k = cv.Plate("o"), cv.Plate("k", 2)
        s = cv.MarkovChain("s", [0.5, 0.5], cv.Dirichlet("a", np.ones(2), plates=k), along=o)
        prior = cv.Constant("c", (1 + 30 * table)[list(order)], plates=k)
        model = cv.Model(cv.Categorical("x", cv.Dirichlet("p", prior, plates=k)[s], plates=o))
        return Problem(model, {"x": x}, {"s": np.argsort(order)[z]}, 400)

    return make


def known_means(order):
    def make(rng):
        means = np.array([-2.0, 0.0, 2.0])
        z = path_of(rng, np.ones(3) / 3, sticky(3, 0.9), 500)
        x = means[z] + rng.normal(size=500)
        o, k = cv.Plate("o"), cv.Plate("k", 3)
        s = cv.MarkovChain("s", np.ones(3) / 3, cv.Dirichlet("a", np.ones(3), plates=k), along=o)
        mean = cv.Constant("m", means[list(order)], plates=k)[s]
        model = cv.Model(cv.Normal("x", mean, cv.Gamma("t", 1, 1), plates=o))
        return Problem(model, {"x": x}, {"s": np.argsort(order)[z]}, 500)

    return make


def many_sequences(rng):
    """Short sequences whose first states are known to be unlike the others."""
    move = np.array([[0.6, 0.4, 0.0], [0.0, 0.6, 0.4], [0.0, 0.0, 1.0]])
    z = np.concatenate([path_of(rng, [1.0, 0, 0], move, 8) for _ in range(60)])
    x = np.array([3.0, -3.0, 0.0])[z] + rng.normal(size=480)
    o, k = cv.Plate("o"), cv.Plate("k", 3)
    initial = np.array([0.98, 0.01, 0.01])
    s = cv.MarkovChain(
        "s", initial, cv.Dirichlet("a", np.ones(3), plates=k), along=o, starts=cv.Data("starts", plates=o)
    )
    model = cv.Model(cv.Normal("x", cv.Normal("mu", 0, 0.1, plates=k)[s], cv.Gamma("t", 1, 1), plates=o))
    return Problem(model, {"x": x, "starts": np.arange(480) % 8 == 0}, {"s": z}, 480)


def switching_regression(rng):
    z = path_of(rng, [0.5, 0.5], sticky(2, 0.95), 400)
    u = rng.normal(size=(400, 2))
    y = np.einsum("nd,nd->n", u, np.array([[1.0, 2.0], [-2.0, 0.5]])[z]) + 0.3 * rng.normal(size=400)
    o, k = cv.Plate("o"), cv.Plate("k", 2)
    s = cv.MarkovChain("s", [0.5, 0.5], cv.Dirichlet("a", np.ones(2), plates=k), along=o)
    beta = cv.MultivariateNormal("beta", np.zeros(2), 0.1 * np.eye(2), plates=k)
    model = cv.Model(cv.Normal("y", cv.dot(beta[s], cv.Data("u", plates=o)), cv.Gamma("t", 1, 1), plates=o))
    return Problem(model, {"y": y, "u": u}, {"s": z}, 400)


def widths_to_learn(rng):
    """Volatility: nothing but the width changes."""
    z = path_of(rng, [0.5, 0.5], sticky(2, 0.97), 600)
    x = np.array([0.5, 3.0])[z] * rng.normal(size=600)
    o, k = cv.Plate("o"), cv.Plate("k", 2)
    s = cv.MarkovChain("s", [0.5, 0.5], cv.Dirichlet("a", np.ones(2), plates=k), along=o)
    model = cv.Model(cv.Normal("x", 0, cv.Gamma("t", 1, 1, plates=k)[s], plates=o))
    return Problem(model, {"x": x}, {"s": z}, 600)


def no_memory_in_the_emissions(rng):
    """Answers of three kinds, which overlap: only the order in time tells the states apart."""
    table = np.array([[0.6, 0.3, 0.1], [0.2, 0.3, 0.5]])
    z = path_of(rng, [0.5, 0.5], sticky(2, 0.97), 800)
    x = np.array([rng.choice(3, p=table[own]) for own in z])
    model = cv.models.categorical_hidden_markov_model(3, 2)
    return Problem(model, {"x": x}, {"s": z}, 800)


def means_and_widths(means, widths, n):
    """States that are alike a priori, and differ in width above all."""

    def make(rng):
        size = len(means)
        z = path_of(rng, np.ones(size) / size, sticky(size, 0.9), n)
        x = np.array(means)[z] + np.array(widths)[z] * rng.normal(size=n)
        o, k = cv.Plate("o"), cv.Plate("k", size)
        s = cv.MarkovChain(
            "s", cv.Dirichlet("i", np.ones(size)), cv.Dirichlet("a", np.ones(size), plates=k), along=o
        )
        theta = cv.NormalGamma("theta", 0.0, 0.1, 1.0, 1.0, plates=k)
        return Problem(cv.Model(cv.Normal("x", theta[s], plates=o)), {"x": x}, {"s": z}, n)

    return make


def cycle(means):
    """States that are passed in turn, some of them with the same emissions."""

    def make(rng):
        size = len(means)
        z = np.arange(200) % size
        x = np.array(means)[z] + 0.5 * rng.normal(size=200)
        o, k = cv.Plate("o"), cv.Plate("k", size)
        s = cv.MarkovChain(
            "s", np.ones(size) / size, cv.Dirichlet("a", np.full(size, 0.5), plates=k), along=o
        )
        mean = cv.Normal("mu", 0, 0.1, plates=k)
        return Problem(cv.Model(cv.Normal("x", mean[s], 4.0, plates=o)), {"x": x}, {"s": z}, 200)

    return make


def turning(means, n):
    """States that are passed in turn, each for a while now and then, some of them with the same emissions."""

    def make(rng):
        size = len(means)
        move = 0.9 * np.roll(np.eye(size), 1, axis=1) + 0.1 * np.eye(size)
        z = path_of(rng, np.eye(size)[0], move, n)
        x = np.array(means)[z] + 0.5 * rng.normal(size=n)
        o, k, s = fresh_chain(size, 0.5)
        model = cv.Model(cv.Normal("x", cv.Normal("mu", 0, 0.1, plates=k)[s], 4.0, plates=o))
        return Problem(model, {"x": x}, {"s": z}, n)

    return make


def counts_in_two_columns(size, n):
    def make(rng):
        z = path_of(rng, np.ones(size) / size, sticky(size, 0.92), n)
        x = rng.poisson(rng.gamma(1.0, 10.0, (size, 2))[z])
        o, k, s = fresh_chain(size)
        d = cv.Plate("d", 2)
        rate = cv.Gamma("r", 1, 0.1, plates=(k, d))
        return Problem(cv.Model(cv.Poisson("x", rate[s], plates=(o, d))), {"x": x}, {"s": z}, n)

    return make


def fresh_chain(size, concentration=1.0):
    """Return the rows, the states, and a chain whose steps are learnt."""
    o, k = cv.Plate("o"), cv.Plate("k", size)
    transition = cv.Dirichlet("a", np.full(size, concentration), plates=k)
    return o, k, cv.MarkovChain("s", cv.Dirichlet("i", np.ones(size)), transition, along=o)


def few_of_many(rng):
    """Three states under a prior that leaves most of ten empty."""
    steps = 0.85 * np.eye(3) + 0.05
    s = [0]
    for _ in range(249):
        s.append(rng.choice(3, p=steps[s[-1]]))
    x = 3 * rng.normal(size=(3, 3))[s] + rng.normal(size=(250, 3))
    o, k = cv.Plate("o"), cv.Plate("k", 10)
    states = cv.MarkovChain(
        "s", cv.Dirichlet("i", np.ones(10)), cv.Dirichlet("a", np.full(10, 0.1), plates=k), along=o
    )
    emission = cv.NormalWishart("t", np.zeros(3), 0.1, 5.0, np.eye(3), plates=k)
    model = cv.Model(cv.MultivariateNormal("x", emission[states], plates=o))
    return Problem(model, {"x": x}, {"s": np.array(s)}, 250)


CASES = [
    Case("ten states for three", few_of_many),
    Case("one mean, widths 0.1, 1 and 10", means_and_widths([0.0, 0.0, 0.0], [0.1, 1.0, 10.0], 200)),
    Case("means 0, 1 and -2, widths 0.2, 1 and 3", means_and_widths([0.0, 1.0, -2.0], [0.2, 1.0, 3.0], 200)),
    Case("means and widths of 500 rows", means_and_widths([0.0, 1.0, -2.0], [0.2, 1.0, 3.0], 500)),
    Case("widths in widths", means_and_widths([0.0, 0.0, 0.0, 5.0, 5.0], [0.2, 1.0, 5.0, 0.3, 2.0], 600)),
    Case("three widths and two", means_and_widths([0.0, 0.0, 0.0, 5.0, 5.0], [0.2, 1.0, 5.0, 0.3, 2.0], 600)),
    Case("seven means", means_and_widths([0.0, 3.0, 6.0, -3.0, -6.0, 9.0, -9.0], [1.0] * 7, 500)),
    Case("pairs of counts", counts_in_two_columns(6, 300)),
    Case("turning with rests", turning([3.0, -3.0, 3.0, 0.0], 250)),
    Case("two pairs of states in turn", cycle([0.0, 0.0, 4.0, 4.0])),
    Case("cycle of three, two alike", cycle([0.0, 0.0, 4.0])),
    Case("left to right, three states", left_to_right(3, (0, 1, 2), 1.0)),
    Case("left to right, three states backwards", left_to_right(3, (2, 1, 0), 1.0)),
    Case("left to right, five states", left_to_right(5, (3, 0, 4, 1, 2), 0.7)),
    Case("left to right, eight states", left_to_right(8, (3, 7, 0, 4, 1, 6, 5, 2), 0.3)),
    Case("left to right, states alike", left_to_right(4, (2, 0, 3, 1), 1.0, [-3.0, 3.0, -3.0, 3.0])),
    Case(
        "left to right, all states alike but one",
        left_to_right(5, (2, 0, 4, 3, 1), 1.0, [0.0, 4.0, 0.0, 4.0, 0.0]),
    ),
    Case("left to right, there and back", left_to_right(5, (0, 1, 2, 3, 4), 1.0, [0.0, 4.0, 0.0, -4.0, 0.0])),
    Case(
        "left to right, there and back, turned",
        left_to_right(5, (3, 1, 4, 0, 2), 1.0, [0.0, 4.0, 0.0, -4.0, 0.0]),
    ),
    Case("known widths of states", known_widths((0, 1, 2))),
    Case("known widths of states, turned", known_widths((2, 0, 1))),
    Case("known transitions", known_transitions((0, 1, 2))),
    Case("known transitions, turned", known_transitions((1, 2, 0))),
    Case("emission priors of states", emission_priors((0, 1))),
    Case("emission priors of states, turned", emission_priors((1, 0))),
    Case("known means of states, turned", known_means((1, 0, 2))),
    *cases_of(
        many_short_sequences=many_sequences,
        switching_regression=switching_regression,
        widths_of_states_to_learn=widths_to_learn,
        categories_in_time=no_memory_in_the_emissions,
    ),
]
