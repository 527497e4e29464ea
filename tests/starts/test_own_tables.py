"""Columns that tell clusters apart, or do not, by a label of each column: beside fits that begin at the truth."""

import numpy as np
import pytest

import caviar as cv

ROW, COLUMN, CELL = cv.Plate("row"), cv.Plate("column", 10), cv.Plate("cells", 4)
TOLD, KIND = cv.Plate("told", 2), cv.Plate("kind", 3)
IS_TOLD = np.arange(10) < 6

pytestmark = pytest.mark.starts_of_users


def _chosen(table):
    """Return what a table has for each row and column: by the kind of the row, or the last cell for all kinds."""
    kind = cv.Categorical("z", cv.Dirichlet("shares", np.ones(3)), plates=ROW)
    relevant = cv.Categorical("relevant", cv.Dirichlet("share", [1, 1]), plates=COLUMN)
    return table[cv.Data("cell", plates=(TOLD, KIND))[relevant, kind]]


def _categories(rng, which):
    p = rng.dirichlet(np.full(3, 0.3), size=(3, 10))
    x = np.array([[rng.choice(3, p=p[k, j]) for j, k in enumerate(row)] for row in which])
    table = cv.Dirichlet("p", np.ones(3), plates=(CELL, COLUMN))
    return cv.Model(cv.Categorical("x", _chosen(table), plates=(ROW, COLUMN))), x


def _numbers(rng, which):
    x = 1.5 * rng.normal(size=(3, 10))[which, np.arange(10)] + rng.normal(size=which.shape)
    table = cv.Normal("m", 0.0, 0.2, plates=(CELL, COLUMN))
    return cv.Model(cv.Normal("x", _chosen(table), 1.0, plates=(ROW, COLUMN))), x


@pytest.mark.thinned(3)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("made", [_categories, _numbers])
def test_columns_that_tell_nothing_are_found(made, seed):
    """They had the parameters of kinds: fits ended 0.01 to 1.2 nats a row lower."""
    rng = np.random.default_rng(seed)
    which = np.where(IS_TOLD, rng.integers(3, size=200)[:, None], 0)
    model, x = made(rng, which)
    data = {"x": x, "cell": np.array([[3, 3, 3], [0, 1, 2]])}
    good = model.fit(data, init={"relevant": IS_TOLD.astype(int)}, seed=seed)
    posterior = model.fit(data, seed=seed)
    assert posterior.elbo > good.elbo - 0.02 * len(x)
    assert posterior["relevant"].probabilities[6:, 1].max() < 0.5
