"""The mode is where the density is largest; distributions without one say so."""

import numpy as np
import pytest
from scipy.optimize import minimize

from caviar import _errors
from caviar.families import (
    Bernoulli,
    Beta,
    Categorical,
    Dirichlet,
    Gamma,
    MultivariateNormal,
    MultivariateNormalGamma,
    Normal,
    NormalGamma,
    NormalWishart,
    Poisson,
    PolyaGamma,
    SingleEffect,
    SpikeSlab,
    StickBreaking,
    Tabulated,
    TabulatedSticks,
    TiedNormalGamma,
    TiedNormalWishart,
    TruncatedNormal,
    Wishart,
)

PLANE = np.array([[2.0, 0.5], [0.5, 1.0]])


def moved_number(value, rng, step):
    return value + step * rng.normal(size=value.shape)


def moved_positive(value, rng, step):
    return value * np.exp(step * rng.normal(size=value.shape)) + step * (value == 0) * rng.random(value.shape)


def moved_matrix(value, rng, step):
    factor = np.eye(value.shape[-1]) + step * rng.normal(size=value.shape)
    return factor @ value @ factor.swapaxes(-1, -2)


def moved_weights(value, rng, step):
    moved = moved_positive(value, rng, step)
    return moved / moved.sum(axis=-1, keepdims=True)


def moved_fraction(value, rng, step):
    return moved_weights(np.stack((value, 1.0 - value), axis=-1), rng, step)[..., 0]


def moved_entries(value, rng, step):
    return value + step * rng.normal(size=value.shape) * (value != 0)


MOVES = {
    Normal: (moved_number,),
    MultivariateNormal: (moved_number,),
    Gamma: (moved_positive,),
    Wishart: (moved_matrix,),
    NormalGamma: (moved_number, moved_positive),
    MultivariateNormalGamma: (moved_number, moved_positive),
    NormalWishart: (moved_number, moved_matrix),
    TiedNormalGamma: (moved_number, moved_positive),
    TiedNormalWishart: (moved_number, moved_matrix),
    Dirichlet: (moved_weights,),
    Beta: (moved_fraction,),
    StickBreaking: (moved_weights,),
    TruncatedNormal: (moved_positive,),
    PolyaGamma: (moved_positive,),
    SingleEffect: (moved_entries,),
    SpikeSlab: (moved_entries,),
}


def moves_of(q):
    if isinstance(q, TabulatedSticks):
        return MOVES[StickBreaking]
    return MOVES[q.base if isinstance(q, Tabulated) else type(q)]


def test_no_neighbour_of_the_mode_has_a_larger_density(q, laws):
    if isinstance(q, (Categorical, Bernoulli, Poisson)):
        pytest.skip("labels have no neighbours")
    rng = np.random.default_rng(2)
    mode = q.mode()
    parts = list(mode) if isinstance(mode, tuple) else [mode]
    top = q.log_density(mode)
    assert np.all(np.isfinite(top))
    for step in (1e-3, 1e-2, 0.3):
        for _ in range(40):
            moved = [move(part, rng, step) for move, part in zip(moves_of(q), parts, strict=True)]
            assert np.all(q.log_density(laws.as_one(moved)) <= top + 1e-12)


def test_no_label_is_likelier_than_the_mode(q):
    if not isinstance(q, (Categorical, Bernoulli, Poisson)):
        pytest.skip("not a distribution of labels")
    n_labels = q.event_shape[0] if isinstance(q, Categorical) else 100 if isinstance(q, Poisson) else 2
    top = q.log_density(q.mode())
    for label in range(n_labels):
        assert np.all(q.log_density(label) <= top)


@pytest.mark.parametrize("family", [SingleEffect, SpikeSlab])
def test_no_other_entries_that_are_zero_are_likelier(family):
    for inclusion in ([0.2, 0.5, 0.3], [0.6, 0.1, 0.3], [0.01, 0.01, 0.98]):
        q = family(inclusion, [0.4, -2.0, 1.0], [2.0, 40.0, 0.2])
        top = q.log_density(q.mode())
        for support in np.ndindex(2, 2, 2):
            assert q.log_density(np.where(support, q.slab_mean, 0.0)) <= top + 1e-12


def test_modes_on_the_edge():
    assert Gamma(1.0, 2.0).mode() == 0
    np.testing.assert_array_equal(Dirichlet([1.0, 3.0, 2.0]).mode(), [0.0, 2 / 3, 1 / 3])
    np.testing.assert_array_equal(Dirichlet([[1.0, 1.0], [1.0, 2.0]]).mode(), [[0.5, 0.5], [0.0, 1.0]])
    assert Beta(1.0, 1.0).mode() == 0.5
    np.testing.assert_allclose(StickBreaking([1.0, 1.0], [2.0, 1.0]).mode(), [1 / 3, 1 / 3, 1 / 3])
    np.testing.assert_array_equal(StickBreaking([1.0, 2.0], [3.0, 1.0]).mode(), [0.0, 1.0, 0.0])
    np.testing.assert_array_equal(TruncatedNormal([-2.0, 2.0], 3.0).mode(), [0.0, 2.0])
    np.testing.assert_array_equal(PolyaGamma([0.0, 2.0]).mode(), [0.0, 0.0])
    assert Poisson([0.3, 3.0]).mode().tolist() == [0, 3]
    assert Beta(1.0, 2.0).mode() == 0
    np.testing.assert_array_equal(Wishart(3.0, PLANE).mode(), np.zeros((2, 2)))


@pytest.mark.parametrize("family", [Gamma, Dirichlet, Beta])
def test_statistics_of_a_mode_on_the_edge_are_finite(family):
    q = {Gamma: Gamma(1.0, 2.0), Dirichlet: Dirichlet([1.0, 3.0]), Beta: Beta(1.0, 3.0)}[family]
    assert all(np.all(np.isfinite(t)) for t in q.statistics_of(q.mode()))
    assert np.isfinite(q.log_density(q.mode()))


@pytest.mark.parametrize(
    ("q", "limit"),
    [
        (Gamma([2.0, 0.9], 1.0), "at least 1, got 0.9"),
        (Dirichlet([2.0, 0.5]), "at least 1, got 0.5"),
        (Beta(0.5, 2.0), "at least 1, got 0.5"),
        (StickBreaking([2.0, 0.9], [5.0, 2.0]), "at least 1 and b_k at least K - k, got a of 0.9"),
        (StickBreaking([2.0, 1.0], [1.5, 2.0]), "b less than K - k by 0.5"),
        (Wishart(2.9, PLANE), "at least 3, got 2.9"),
        (NormalGamma(0.0, 1.0, 0.5, 1.0), "greater than 1/2, got 0.5"),
        (MultivariateNormalGamma([0.0], [[1.0]], 0.5, 1.0), "greater than 0.5, got 0.5"),
        (TiedNormalGamma([0.0], 1.0, 0.5, 1.0), "greater than 0.5, got 0.5"),
        (TiedNormalWishart(np.zeros((1, 2)), 1.0, 2.0, PLANE), "greater than 2, got 2.0"),
        (NormalWishart([0.0, 0.0], 1.0, 2.0, PLANE), "greater than 2, got 2.0"),
    ],
)
def test_unbounded_densities_have_no_mode(q, limit):
    with pytest.raises(_errors.ImproperError, match=limit):
        q.mode()


@pytest.mark.thinned(4)
@pytest.mark.parametrize("smallest", [0.05, 0.3, 0.45, 2.0])
def test_constrained_wishart_mode_is_the_numerical_optimum(smallest):
    q = Wishart(7.0, [[2.0, 0.5], [0.5, 1.0]])

    def precision(parameters):
        root = np.array([[parameters[0], 0.0], [parameters[1], parameters[2]]])
        return np.linalg.inv(smallest * np.eye(2) + root @ root.T)

    found = min(
        (
            minimize(lambda p: -float(q.log_density(precision(p))), start, method="Nelder-Mead",
                     options={"xatol": 1e-9, "fatol": 1e-12, "maxiter": 4000})
            for start in ([0.7, 0.1, 0.5], [0.1, 0.3, 0.9])
        ),
        key=lambda result: result.fun,
    )  # fmt: skip
    mode = q.mode(smallest_variance=smallest)
    assert np.linalg.eigvalsh(np.linalg.inv(mode))[0] >= smallest * (1.0 - 1e-12)
    assert q.log_density(mode) >= -found.fun - 1e-9
    np.testing.assert_allclose(mode, precision(found.x), rtol=1e-3, atol=1e-3)


def test_constrained_wishart_mode_of_a_singular_inverse_scale():
    direction = np.array([3.0, 4.0]) / 5.0
    natural = (np.array(4.0), -0.5 * np.outer(direction, direction))
    mode = Wishart.mode_of_natural(natural, np.array(0.1))
    # df - D - 1 = 5 along the direction; the bound 1 / 0.1 = 10 across it
    across = np.array([4.0, -3.0]) / 5.0
    np.testing.assert_allclose(
        mode, 5.0 * np.outer(direction, direction) + 10.0 * np.outer(across, across), atol=1e-12
    )


def test_constraint_of_the_wishart_mode_per_distribution():
    q = Wishart(7.0, [PLANE, PLANE, PLANE])
    modes = q.mode(smallest_variance=np.array([0.0, 1e-9, 5.0]))
    np.testing.assert_allclose(modes[:2], q.mode()[:2], rtol=1e-14)
    np.testing.assert_allclose(modes[2], np.eye(2) / 5.0, rtol=1e-14, atol=1e-16)
    with pytest.raises(_errors.ParameterError, match="smallest_variance"):
        q.mode(smallest_variance=-1.0)


@pytest.mark.parametrize("smallest", [0.05, 0.3, 0.6, 2.0])
def test_constrained_gamma_mode_is_the_largest_density_up_to_the_bound(smallest):
    q = Gamma(3.5, 1.2)
    grid = np.linspace(1e-6, 1 / smallest, 200_001)
    best = grid[np.argmax(q.log_density(grid))]
    assert q.mode(smallest_variance=smallest) == pytest.approx(best, abs=1e-4 / smallest)
    assert q.mode(smallest_variance=smallest) <= 1 / smallest


def test_constrained_gamma_mode_without_a_rate_is_the_bound():
    np.testing.assert_allclose(Gamma.mode_of_natural((np.array(4.0), np.array(0.0)), np.array(0.2)), 5.0)
    np.testing.assert_allclose(Gamma.mode_of_natural((np.array(1.0), np.array(0.0)), np.array(0.2)), 5.0)
    assert Gamma(1.0, 2.0).mode(smallest_variance=0.2) == 0
    with pytest.raises(_errors.ParameterError, match="smallest_variance"):
        Gamma(2.0, 2.0).mode(smallest_variance=-1.0)
