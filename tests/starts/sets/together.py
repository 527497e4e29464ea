"""Several labels of a row that choose from one table, or for each other, and labels of the steps of a chain."""

from __future__ import annotations

import numpy as np

import caviar as cv
from starts.case import Problem, cases_of

ROW = cv.Plate("o")


def weights(name, n_categories, **arguments):
    return cv.Dirichlet(name, np.ones(n_categories), **arguments)


def one_table(rng):
    z, v = rng.choice(2, 400, p=[0.3, 0.7]), rng.choice(3, 400, p=[0.5, 0.3, 0.2])
    centres = rng.normal(0, 4, (2, 3, 2))
    plates = cv.Plate("k", 2), cv.Plate("c", 3), cv.Plate("d", 2)
    one, other = (cv.Categorical(n, weights(f"p{n}", k), plates=ROW) for n, k in (("z", 2), ("v", 3)))
    mean = cv.Normal("mean", 0, 0.01, plates=plates)[one, other]
    model = cv.Model(cv.Normal("x", mean, cv.Gamma("tau", 1, 1), plates=(ROW, plates[2])))
    return Problem(model, {"x": centres[z, v] + 0.7 * rng.normal(size=(400, 2))}, {"z": z, "v": v}, 400)


def a_label_below_a_label(rng):
    """Kinds of rows differ in the shares of the kinds below them, and in a value of their own."""
    z = rng.integers(2, size=400)
    v = np.array([rng.choice(3, p=[[0.8, 0.1, 0.1], [0.1, 0.3, 0.6]][k]) for k in z])
    x = np.array([-4.0, 0, 4])[v] + rng.normal(size=400)
    y = np.array([-1.5, 1.5])[z] + rng.normal(size=400)
    k, c = cv.Plate("k", 2), cv.Plate("c", 3)
    one = cv.Categorical("z", weights("pz", 2), plates=ROW)
    other = cv.Categorical("v", weights("pv", 3, plates=k)[one], plates=ROW)
    below = cv.Normal("x", cv.Normal("mean", 0, 0.01, plates=c)[other], cv.Gamma("tau", 1, 1), plates=ROW)
    beside = cv.Normal("y", cv.Normal("level", 0, 0.01, plates=k)[one], cv.Gamma("noise", 1, 1), plates=ROW)
    return Problem(cv.Model(below, beside), {"x": x, "y": y}, {"z": z, "v": v}, 400)


def path(rng, n_rows, stay):
    s = np.zeros(n_rows, dtype=int)
    for t in range(1, n_rows):
        s[t] = s[t - 1] if rng.random() < stay else 1 - s[t - 1]
    return s


def states_of_mixtures(rng):
    """States differ in the shares of the parts of their emissions."""
    s = path(rng, 400, 0.95)
    z = np.array([rng.choice(3, p=[[0.7, 0.25, 0.05], [0.05, 0.25, 0.7]][k]) for k in s])
    x = np.array([-4.0, 0, 4])[z] + rng.normal(size=400)
    k, c = cv.Plate("k", 2), cv.Plate("c", 3)
    chain = cv.MarkovChain("s", weights("first", 2), weights("step", 2, plates=k), along=ROW)
    label = cv.Categorical("z", weights("shares", 3, plates=k)[chain], plates=ROW)
    mean = cv.Normal("mean", 0, 0.01, plates=c)[label]
    model = cv.Model(cv.Normal("x", mean, cv.Gamma("tau", 1, 1), plates=ROW))
    return Problem(model, {"x": x}, {"s": s, "z": z}, 400)


def states_and_labels_in_a_table(rng):
    s, z = path(rng, 400, 0.95), rng.choice(2, 400, p=[0.3, 0.7])
    centres = np.array([[-3.0, 3.0], [0.0, 7.0]])
    k, c = cv.Plate("k", 2), cv.Plate("c", 2)
    chain = cv.MarkovChain("s", weights("first", 2), weights("step", 2, plates=k), along=ROW)
    label = cv.Categorical("z", weights("shares", 2), plates=ROW)
    mean = cv.Normal("mean", 0, 0.01, plates=(k, c))[chain, label]
    model = cv.Model(cv.Normal("x", mean, cv.Gamma("tau", 1, 1), plates=ROW))
    x = centres[s, z] + 0.8 * rng.normal(size=400)
    return Problem(model, {"x": x}, {"s": s, "z": z}, 400)


def a_state_and_a_label_added(rng):
    s, z = path(rng, 400, 0.95), rng.integers(2, size=400)
    x = np.array([-1.5, 1.5])[s] + np.array([0.0, 6.0])[z] + 0.7 * rng.normal(size=400)
    k, c = cv.Plate("k", 2), cv.Plate("c", 2)
    chain = cv.MarkovChain("s", weights("first", 2), weights("step", 2, plates=k), along=ROW)
    label = cv.Categorical("z", weights("shares", 2), plates=ROW)
    mean = cv.Normal("a", 0, 0.01, plates=k)[chain] + cv.Normal("b", 0, 0.01, plates=c)[label]
    model = cv.Model(cv.Normal("x", mean, cv.Gamma("tau", 1, 1), plates=ROW))
    return Problem(model, {"x": x}, {"s": s, "z": z}, 400)


CASES = cases_of(
    one_table=one_table,
    a_label_below_a_label=a_label_below_a_label,
    states_of_mixtures=states_of_mixtures,
    states_and_labels_in_a_table=states_and_labels_in_a_table,
    a_state_and_a_label_added=a_state_and_a_label_added,
)
