"""Densities integrate to one, marginals to the joint, and moments to theirs: against quadrature."""

import numpy as np
import pytest

from densities.registry import LINE, THREE_COLUMNS, TWO_COLUMNS, stretched


@pytest.mark.thinned(3)
@pytest.mark.parametrize("name", LINE)
def test_one_column_integrates_to_one(name):
    points, weights = stretched(reach=30.0, step=0.002)
    assert abs(weights @ np.exp(LINE[name].log_density(points)) - 1) < 1e-10


@pytest.mark.thinned(15)
@pytest.mark.parametrize("name", TWO_COLUMNS)
def test_two_columns_integrate_to_one(name):
    points, weights = stretched(reach=11.0, step=0.02)
    grid = np.stack(np.meshgrid(points, points, indexing="ij"), axis=-1).reshape(-1, 2)
    density = np.exp(TWO_COLUMNS[name].log_density(grid)).reshape(len(points), -1)
    assert abs(weights @ density @ weights - 1) < 1e-7


@pytest.mark.thinned(3)
@pytest.mark.parametrize("name", THREE_COLUMNS)
def test_a_marginal_is_the_integral_of_the_joint(name):
    mixture = THREE_COLUMNS[name]
    points, weights = stretched(reach=15.0, step=0.01)
    given = np.array([[0.3, -0.8], [-2.0, 5.0], [1.0, 30.0]])
    marginal = np.exp(mixture.marginal([2, 0]).log_density(given))
    for (third, first), expected in zip(given, marginal, strict=True):
        rows = np.column_stack([np.full_like(points, first), points, np.full_like(points, third)])
        np.testing.assert_allclose(weights @ np.exp(mixture.log_density(rows)), expected, rtol=1e-9)


@pytest.mark.thinned(15)
@pytest.mark.parametrize("name", THREE_COLUMNS)
def test_mean_and_covariance_are_those_of_the_density(name):
    """Of linear combinations of the columns, whose density is found by quadrature of one and two columns."""
    mixture = THREE_COLUMNS[name]
    mean, covariance = mixture.mean, mixture.covariance
    points, weights = stretched(reach=17.0, step=0.01)
    for column in range(3):
        density = weights * np.exp(mixture.marginal(column).log_density(points))
        np.testing.assert_allclose(density @ points, mean[column], rtol=1e-6)
        second = density @ np.square(points - mean[column])
        # tails |x|^-(3.5 + 1) beyond sinh(17) hold a share of about sinh(17)^-1.5 = 1e-10
        np.testing.assert_allclose(second, covariance[column, column], rtol=1e-6)
    points, weights = stretched(reach=13.0, step=0.03)
    grid = np.stack(np.meshgrid(points, points, indexing="ij"), axis=-1).reshape(-1, 2)
    density = np.exp(mixture.marginal([0, 2]).log_density(grid)).reshape(len(points), -1)
    product = (weights * (points - mean[0])) @ density @ (weights * (points - mean[2]))
    np.testing.assert_allclose(product, covariance[0, 2], rtol=1e-4, atol=1e-6)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("name", THREE_COLUMNS)
def test_the_mean_of_a_conditional_is_an_integral_over_the_joint(name):
    mixture = THREE_COLUMNS[name]
    points, weights = stretched(reach=17.0, step=0.01)
    rows = np.column_stack([np.full_like(points, 0.4), np.full_like(points, -1.0), points])
    density = weights * np.exp(mixture.log_density(rows))
    density /= density.sum()
    mean = density @ points
    deviation = np.sqrt(density @ np.square(points - mean))
    found = mixture.predict(rows[:1], targets=2, level=0.8)
    np.testing.assert_allclose(found.mean, mean, rtol=1e-7)
    np.testing.assert_allclose(found.standard_deviation, deviation, rtol=1e-5)
    below = density @ (points <= found.lower[0])
    above = density @ (points >= found.upper[0])
    np.testing.assert_allclose([below, above], 0.1, atol=0.005)  # within a step of the grid
    conditional = mixture.condition({0: 0.4, 1: -1.0})
    np.testing.assert_allclose(conditional.mean, mean, rtol=1e-7)
    np.testing.assert_allclose(np.sqrt(conditional.covariance[0]), deviation, rtol=1e-5)
    np.testing.assert_allclose(conditional.quantile([0.1, 0.9]), [found.lower[0], found.upper[0]], rtol=1e-12)
