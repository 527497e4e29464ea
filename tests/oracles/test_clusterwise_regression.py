"""Guesses by clusterwise regression: least squares against NumPy, and labels that no noise hides."""

from types import SimpleNamespace

import numpy as np
import pytest

from caviar.engine.starts.guesses.clusterwise import _Addend, _from_stars, _Rows, _Squares


def _two_lines(rng, n_rows=40):
    """Return least squares of y = a[z] + b[z] x + c w, with the covariates, labels and coefficients."""
    x, w = rng.normal(size=(2, n_rows, 1))
    addends = [_Addend(np.ones((n_rows, 1)), 0), _Addend(x, 0), _Addend(w, None)]
    labels = rng.integers(0, 2, (n_rows, 1))
    coefficients = np.array([[-3.0], [4.0], [2.0], [-1.0], [0.5]])
    return _Squares(addends, [2], np.array([[0], [1]])), x, w, labels, coefficients


@pytest.mark.parametrize("size", [1e-5, 1.0, 1e5])
def test_coefficients_are_those_of_weighted_least_squares(size):
    rng = np.random.default_rng(0)
    least, x, w, labels, _ = _two_lines(rng)
    values, weights, rows = size * rng.normal(size=(40, 3)), rng.uniform(0.1, 5.0, 40), np.arange(5, 40)
    own = labels[rows, 0]
    design = np.column_stack(
        [own == 0, own == 1, (own == 0) * x[rows, 0], (own == 1) * x[rows, 0], w[rows, 0]]
    )
    root = np.sqrt(weights[rows, None])
    expected = np.linalg.lstsq(root * design, root * values[rows], rcond=None)[0]
    some = _Rows(least.columns(rows), values[rows], weights[rows])
    (found,) = least.solved(some, own[None], weights[None, rows])
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6 * size)


def test_rows_without_noise_get_the_labels_that_they_are_made_with():
    least, x, w, labels, coefficients = _two_lines(np.random.default_rng(1))
    own = labels[:, 0]
    values = coefficients[own] + coefficients[2 + own] * x + coefficients[4] * w
    rows = _Rows(least.columns(np.arange(40)), values, np.ones(40))
    (residuals,), (found,) = least.nearest(rows, coefficients[None])
    np.testing.assert_array_equal(found, own)
    assert residuals.sum() == pytest.approx(0.0, abs=1e-20)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("seed", range(3))
def test_sums_of_one_mean_for_each_label_are_found_from_means_of_clusters(seed):
    """With as many tight clusters as sums, some of the draws are the true means, and these come first."""
    rng = np.random.default_rng(seed)
    combinations = np.array([[a, b] for a in range(2) for b in range(3)])
    means = np.array([[0.0, 0.0], [10.0, 0.0]])[:, None] + np.array([[0.0, 0.0], [0.0, 4.0], [3.0, -7.0]])
    labels = combinations[rng.integers(0, 6, 300)]
    values = means[labels[:, 0], labels[:, 1]] + 1e-3 * rng.normal(size=(300, 2))
    ones = np.ones((300, 1))
    least = _Squares([_Addend(ones, 0), _Addend(ones, 1)], [2, 3], combinations)
    rows = _Rows(least.columns(np.arange(300)), values, np.ones(300))
    first = _from_stars(SimpleNamespace(rng=rng), least, rows, 4)[:1]
    (residuals,), _ = least.nearest(rows, first)
    assert residuals.mean() < 1e-5


def test_effects_of_known_groups_are_coefficients_of_rows_with_any_labels():
    """Coefficients beside the groups are those of dummy variables; a few far groups do not hide the clusters."""
    rng = np.random.default_rng(2)
    z, g = rng.integers(0, 3, 200), rng.integers(0, 4, 200)
    dummies = np.eye(4)[g]
    least = _Squares([_Addend(np.ones((200, 1)), 0), _Addend(dummies, None)], [3], np.arange(3)[:, None])
    values = (np.array([0.0, 3.0, 7.0])[z] + np.array([0.0, 50.0, -80.0, 10.0])[g])[:, None]
    rows = _Rows(least.columns(np.arange(200)), values, np.ones(200))
    (found,) = least.solved(rows, z[None], np.ones((1, 200)))
    residuals, (labels,) = least.nearest(rows, found[None])
    np.testing.assert_allclose(residuals, 0.0, atol=1e-8)
    np.testing.assert_array_equal(labels, z)
