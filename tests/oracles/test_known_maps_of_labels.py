"""Known labels that a hidden label chooses, theta[G[z]]: ELBOs are sums over labels, and maps of maps are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import norm

import caviar as cv

OBS, KIND, ROW = cv.Plate("obs"), cv.Plate("kind", 3), cv.Plate("row", 2)
SHARES, LEVELS = np.array([0.2, 0.3, 0.5]), np.array([-1.0, 2.0])
MAP = np.array([0, 1, 1])
Y = np.random.default_rng(0).standard_normal(6)
LOG_DENSITY = norm.logpdf(Y[:, None], LEVELS[MAP])


def row_of(label: cv.Categorical | cv.MarkovChain) -> Any:
    """Return the known row of each kind, at a hidden kind."""
    return cv.Data("G", plates=KIND)[label]


def elbo_of(mean: Any, **data: np.ndarray) -> float:
    return cv.Model(cv.Normal("y", mean, 1.0, plates=OBS)).fit({"y": Y, "G": MAP, **data}).elbo


def levels() -> cv.Constant:
    return cv.Constant("levels", LEVELS, plates=ROW)


def test_of_labels_of_groups():
    group = np.array([0, 0, 1, 1, 1, 0])
    z = cv.Categorical("z", SHARES, plates=cv.Plate("group", 2))
    own = cv.Data("G", plates=KIND)[z[cv.Data("group", plates=OBS)]]
    exact = sum(logsumexp(np.log(SHARES) + LOG_DENSITY[group == g].sum(axis=0)) for g in range(2))
    assert elbo_of(levels()[own], group=group) == pytest.approx(exact, abs=1e-10)


def test_of_the_states_of_a_chain():
    steps = np.array([[0.8, 0.1, 0.1], [0.2, 0.5, 0.3], [0.1, 0.1, 0.8]])
    z = cv.MarkovChain("z", SHARES, steps, along=OBS)
    forward = np.log(SHARES) + LOG_DENSITY[0]
    for density in LOG_DENSITY[1:]:
        forward = logsumexp(forward[:, None] + np.log(steps), axis=0) + density
    assert elbo_of(levels()[row_of(z)]) == pytest.approx(logsumexp(forward), abs=1e-10)


def test_of_the_probabilities_of_another_label():
    chances = np.array([[0.9, 0.1], [0.3, 0.7]])
    z = cv.Categorical("z", SHARES, plates=OBS)
    w = cv.Categorical("w", cv.Constant("chances", chances, plates=ROW)[row_of(z)], plates=OBS)
    mean = cv.Constant("mean", LEVELS, plates=cv.Plate("side", 2))[w]
    joint = np.log(SHARES)[:, None] + np.log(chances[MAP])
    exact = sum(logsumexp(joint + own) for own in norm.logpdf(Y[:, None], LEVELS))
    assert elbo_of(mean) == pytest.approx(exact, abs=1e-10)


def test_beside_a_second_label():
    table, others = np.array([[0.0, 1.0, 2.0], [3.0, -1.0, -2.0]]), np.array([0.3, 0.3, 0.4])
    z, v = cv.Categorical("z", SHARES, plates=OBS), cv.Categorical("v", others, plates=OBS)
    cells = cv.Constant("cells", table, plates=(ROW, cv.Plate("column", 3)))
    joint = np.log(SHARES)[:, None] + np.log(others)
    exact = sum(logsumexp(joint + norm.logpdf(y, table[MAP])) for y in Y)
    assert elbo_of(cells[row_of(z), v]) == pytest.approx(exact, abs=1e-10)


def test_maps_of_known_labels_are_refused():
    inner = row_of(cv.Categorical("z", SHARES, plates=OBS))
    for index, by in (
        (cv.Data("H", plates=ROW)[inner], "G"),
        (cv.Data("H", plates=KIND)[cv.Data("b", plates=OBS)], "b"),
    ):
        with pytest.raises(cv.ModelError, match=rf"'H' and '{by}' are known: look up H\[{by}\]"):
            levels()[index]
