"""Labels of clusters that are seen only within many groups, each of its own level."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from caviar.engine.starts.guesses.beside_groups import labels_beside_groups


def _labels(x, weights, groups, size, columns=None):
    columns = np.zeros((len(x), 0)) if columns is None else columns
    return labels_beside_groups(x, weights, columns, groups, size, np.random.default_rng(0))


def _table(rng, n_groups, rows, steps, size=1):
    """Every group has rows of all clusters: levels and labels are found, up to the names of the labels."""
    groups = rng.permutation(np.repeat(np.arange(n_groups), rows))
    z = np.empty(len(groups), dtype=int)
    for group in range(n_groups):
        z[groups == group] = rng.permutation(np.arange(rows) % len(steps))
    levels = 40 * rng.normal(size=(n_groups, size))
    return np.array(steps)[z][:, None] + levels[groups] + 0.05 * rng.normal(size=(len(z), size)), groups, z


@pytest.mark.parametrize(("steps", "size"), [([0.0, 1], 1), ([0.0, 1, 3], 1), ([0.0, 1, 3, 7], 2)])
def test_clusters_that_levels_hide_are_found(steps, size):
    x, groups, z = _table(np.random.default_rng(1), 90, len(steps), steps, size)
    found = _labels(x, np.ones(len(x)), groups, len(steps))
    assert adjusted_rand_score(z, found[0]) == 1.0


def test_what_columns_explain_is_taken_out():
    rng = np.random.default_rng(2)
    x, groups, z = _table(rng, 90, 4, [0.0, 2, 5])
    u = rng.normal(size=(len(x), 2))
    found = _labels(x + u @ [[3.0], [-20.0]], np.ones(len(x)), groups, 3, u)
    assert adjusted_rand_score(z, found[0]) > 0.98


def test_an_even_step_is_decided_by_the_levels():
    """Groups with rows of two of three clusters fit at two levels: the one nearer to all others is right for most."""
    rng = np.random.default_rng(3)
    groups, z = np.repeat(np.arange(150), 3), rng.integers(3, size=450)
    x = 6.0 * z[:, None] + 1.0 * rng.normal(size=150)[groups][:, None] + 0.2 * rng.normal(size=(450, 1))
    found = _labels(x, np.ones(450), groups, 3)
    assert adjusted_rand_score(z, found[0]) > 0.98


def test_groups_of_one_row_say_nothing_about_clusters():
    x = np.random.default_rng(0).normal(size=(80, 1))
    assert _labels(x, np.ones(80), np.arange(80), 2) == []
