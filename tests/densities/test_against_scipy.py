"""Densities, marginals, tails and quantiles agree with SciPy's distributions."""

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

import caviar as cv
from densities.registry import LINE, SPACE, SPACE_MATRICES, THREE_COLUMNS, WEIGHTS

ROWS = np.random.default_rng(0).normal(size=(20, 3)) * 4
DF = [3.5, 9.0]


def matrices(structure):
    """Return the matrices that a structure of the registry stands for."""
    diagonals = np.diagonal(SPACE_MATRICES, axis1=1, axis2=2)
    which = {
        "full": SPACE_MATRICES,
        "tied": SPACE_MATRICES[[0, 0]],
        "diagonal": diagonals[..., None] * np.eye(3),
        "tied diagonal": diagonals[[0, 0], :, None] * np.eye(3),
        "spherical": diagonals[:, :1, None] * np.eye(3),
        "tied spherical": diagonals[[0, 0], :1, None] * np.eye(3),
    }
    return which[structure]


def component_densities(name, rows):
    """Return SciPy's weighted densities of the components, (K, N)."""
    kind, _, structure = name.partition(", ")
    if kind == "product":
        scales = np.sqrt(np.diagonal(SPACE_MATRICES, axis1=1, axis2=2))
        each = [stats.t(DF[k] + np.arange(3), SPACE[k], scales[k]).pdf(rows).prod(axis=1) for k in (0, 1)]
    elif kind == "normal":
        each = [stats.multivariate_normal(SPACE[k], matrices(structure)[k]).pdf(rows) for k in (0, 1)]
    else:
        each = [stats.multivariate_t(SPACE[k], matrices(structure)[k], DF[k]).pdf(rows) for k in (0, 1)]
    return np.array(WEIGHTS)[:, None] * each


@pytest.mark.thinned(3)
@pytest.mark.parametrize("name", THREE_COLUMNS)
def test_densities_and_responsibilities(name):
    expected = component_densities(name, ROWS)
    mixture = THREE_COLUMNS[name]
    np.testing.assert_allclose(np.exp(mixture.log_density(ROWS)), expected.sum(axis=0), rtol=1e-11)
    np.testing.assert_allclose(mixture.responsibilities(ROWS).T, expected / expected.sum(axis=0), rtol=1e-10)


@pytest.mark.thinned(6)
@pytest.mark.parametrize("name", LINE)
def test_the_distribution_function_is_the_integral_of_the_density(name):
    mixture = LINE[name]
    for x in (-30.0, -1.0, 0.7, 12.0):
        below, _ = quad(
            lambda t: float(np.exp(mixture.log_density([t])[0])), -np.inf, x, epsabs=1e-12, limit=200
        )
        np.testing.assert_allclose(mixture.cdf(x), below, rtol=1e-7)
    assert mixture.cdf([-np.inf, np.inf]).tolist() == [0.0, 1.0]


@pytest.mark.parametrize("df", [0.1, 1.0, 4.0, 1e12])
def test_one_component_has_the_quantiles_of_scipy(df):
    p = np.array([1e-10, 0.01, 0.3, 0.5, 0.8, 1 - 1e-6])
    mixture = cv.StudentMixture.from_shapes([1.0], [3.0], [4.0], df)
    # above 1e10 SciPy inverts as if Normal, right to a digit or so less than that
    np.testing.assert_allclose(mixture.quantile(p), 3 + 2 * stats.t(df).ppf(p), rtol=1e-9)
    normal = cv.NormalMixture.from_covariances([1.0], [3.0], [4.0])
    np.testing.assert_allclose(normal.quantile(p), stats.norm(3, 2).ppf(p), rtol=1e-13)


def test_scales_are_multiplied_by_what_the_definition_says():
    """Df + o, (df + delta) / (df + o): against the conditional density written as joint over marginal."""
    shape = SPACE_MATRICES[0]
    mixture = cv.StudentMixture.from_shapes([1.0], [SPACE[0]], shape[None], 3.0)
    known = np.array([0.5, -2.0])
    found = mixture.condition([0, 2], known)
    difference = known - np.array(SPACE[0])[[0, 2]]
    inner = shape[np.ix_([0, 2], [0, 2])]
    delta = difference @ np.linalg.solve(inner, difference)
    slope = np.linalg.solve(inner, shape[[0, 2], 1])
    residual = shape[1, 1] - shape[1, [0, 2]] @ slope
    assert found.df.tolist() == [5.0]
    np.testing.assert_allclose(found.locations[0], SPACE[0][1] + slope @ difference, rtol=1e-12)
    np.testing.assert_allclose(found.whitening[0, 0, 0] ** -2, residual * (3 + delta) / 5, rtol=1e-12)
