"""Weights of broken sticks whose pieces have functions of their own, against integrals in closed form."""

import pickle

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import brentq
from scipy.special import digamma, expit, gammaln, log_expit, roots_sh_jacobi

from caviar._errors import ImproperError, ParameterError
from caviar.families import Dirichlet, StickBreaking
from caviar.families.tabulated import stick_recursion, stick_windows
from caviar.families.tabulated.scalar_functions import LogGamma, Number
from caviar.families.tabulated.sticks import tabulated_sticks

TILTED = tabulated_sticks((Number(),))
TIED = tabulated_sticks((LogGamma(0.5, 1.0), Number()))


def log_integral(concentration, slopes):
    """Return log of the integral of a Dirichlet's kernel times exp(slopes @ x), as a contour integral.

    The integral is the inverse Laplace transform of prod Gamma(a) (p - c)^-a at 1, taken along a hyperbola through the
    saddle point.
    """
    top = slopes.max()
    saddle = brentq(
        lambda p: 1 - np.sum(concentration / (p - slopes)), top + 1e-12, top + concentration.sum() + 10
    )
    width = 1 / np.sqrt(np.sum(concentration / (saddle - slopes) ** 2))
    t = np.linspace(-7, 7, 4001)
    p = saddle + width * (1j * np.sinh(t) - 0.5 * (np.cosh(t) - 1))
    slope = np.cosh(t) + 0.5j * np.sinh(t)
    exponent = p - (concentration * np.log(p[:, None] - slopes)).sum(axis=1)
    highest = exponent.real.max()
    total = (np.exp(exponent - highest) * slope).real.sum() * (t[1] - t[0]) * width / (2 * np.pi)
    return highest + np.log(total) + gammaln(concentration).sum()


def sticks(concentration):
    """Return the natural parameters of a Dirichlet as those of broken sticks."""
    return concentration, np.zeros_like(concentration)


@pytest.mark.parametrize(
    ("size", "rows", "steepness"),
    [(2, 1, 5), (3, 1, 3), (5, 0.2, 4), (6, 10, 50), (20, 100, 2000), (20, 2000, 1e5)],
)
def test_the_normaliser_is_the_inverse_laplace_transform(size, rows, steepness):
    rng = np.random.default_rng(size)
    concentration = rows * (0.5 + rng.random(size)) + 0.3
    slopes = -steepness * rng.random(size)
    q = TILTED.from_natural((*sticks(concentration), slopes))
    wanted = log_integral(concentration, slopes)
    np.testing.assert_allclose(q.log_partition, wanted, rtol=1e-12, atol=1e-10)
    # the weights add up to one, which nothing in the recursion knows
    np.testing.assert_allclose(q.mean.sum(), 1.0, rtol=1e-10)


def test_pieces_that_vanish_behind_large_ones():
    """Eight topics have all the words of many documents: what is left falls from a half to a thousandth at once."""
    concentration = np.full(12, 201.0)
    slopes = -np.array([937.0, 1222, 1314, 1397, 1112, 1199, 1250, 1017, 382507, 391635, 370171, 266245])
    q = TILTED.from_natural((*sticks(concentration), slopes))
    np.testing.assert_allclose(q.log_partition, log_integral(concentration, slopes), rtol=1e-11)
    assert (q.mean > 0).all()
    np.testing.assert_allclose(q.mean.sum(), 1.0, rtol=1e-10)


def means(concentration, slopes):
    """Return the expected pieces, derivatives of the same contour integral, which is taken from its largest slope."""
    gaps = slopes.max() - slopes
    place = brentq(lambda u: 1 - np.sum(concentration / (np.exp(u) + gaps)), -60, 20)
    width = 1 / np.sqrt(np.sum(concentration / (np.exp(place) + gaps) ** 2))
    t = np.linspace(-7, 7, 4001)
    p = np.exp(place) + width * (1j * np.sinh(t) - 0.5 * (np.cosh(t) - 1))
    exponent = p - (concentration * np.log(p[:, None] + gaps)).sum(axis=1)
    mass = np.exp(exponent - exponent.real.max()) * (np.cosh(t) + 0.5j * np.sinh(t))
    return (mass[:, None] * concentration / (p[:, None] + gaps)).real.sum(axis=0) / mass.real.sum()


TINY = {
    "halves to a floor": np.maximum(0.5 ** np.arange(50), 1e-7),
    "a third to a floor": np.maximum(0.3 ** np.arange(24), 1e-6),
    "three quarters to a floor": np.maximum(0.75 ** np.arange(50), 1e-7),
    "falling": 10.0 ** np.linspace(0, -14, 10),
    "rising": 10.0 ** np.linspace(-14, 0, 10),
    "a step": np.where(np.arange(50) < 25, 1.0, 1e-14),
}


@pytest.mark.parametrize(
    ("weights", "rows"),
    [
        ("a third to a floor", 25),
        pytest.param("halves to a floor", 25, marks=pytest.mark.slow),
        pytest.param("three quarters to a floor", 25, marks=pytest.mark.slow),
        ("falling", 25),
        ("falling", 2000),
        ("rising", 200),
        pytest.param("a step", 1.3, marks=pytest.mark.slow),
    ],
)
def test_pieces_of_a_hundred_trillionth(weights, rows):
    weights = TINY[weights] / TINY[weights].sum()
    concentration = np.full(len(weights), float(rows))
    slopes = -concentration / weights
    q = TILTED.from_natural((*sticks(concentration), slopes))
    np.testing.assert_allclose(q.mean, means(concentration, slopes), rtol=1e-7)
    shifted = log_integral(concentration, slopes - slopes.max()) + slopes.max()
    np.testing.assert_allclose(q.log_partition, shifted, rtol=1e-11, atol=1e-7)


def unequal(size, lowest, seed):
    """Return concentrations from a third to 400, and slopes that leave weights from one to the lowest."""
    rng = np.random.default_rng(seed)
    concentration = np.exp(rng.uniform(-1, 6, size))
    weights = 10.0 ** rng.uniform(lowest, 0, size)
    return concentration, -concentration / (weights / weights.sum())


@pytest.mark.parametrize(
    ("size", "lowest", "seed"),
    [
        (5, -7, 0),
        (10, -14, 1),
        pytest.param(20, -10, 2, marks=pytest.mark.slow),
        pytest.param(50, -4, 0, marks=pytest.mark.slow),
        pytest.param(50, -2, 3, marks=pytest.mark.slow),
    ],
)
def test_very_unequal_concentrations(size, lowest, seed):
    """Means were off by up to 4e-3, and added up to one all the same."""
    concentration, slopes = unequal(size, lowest, seed)
    q = TILTED.from_natural((*sticks(concentration), slopes))
    np.testing.assert_allclose(q.mean, means(concentration, slopes), rtol=1e-6)
    shifted = log_integral(concentration, slopes - slopes.max()) + slopes.max()
    np.testing.assert_allclose(q.log_partition, shifted, rtol=1e-12, atol=1e-6)


@pytest.mark.parametrize("scale", [1.0, 1e3])
def test_unequal_pieces_with_logarithms_of_gamma_functions(scale):
    """Three pieces, no Dirichlet: both shares by the trapezoidal rule in their log odds."""
    weights, rests = np.array([21.0, 1.5, 0.4]), np.array([0.0, -1.0, 3.0])
    gammas, slopes = np.array([-20.0, -1.0, -3.0]), -scale * np.array([40.0, 3e3, 7.0])
    q = TIED.from_natural((weights, rests, gammas, slopes))
    u = np.linspace(-45, 15, 451)
    first, second = np.meshgrid(u, u, indexing="ij")
    log_x = np.stack(
        (log_expit(first), log_expit(-first) + log_expit(second), log_expit(-first) + log_expit(-second))
    )
    log_rest = np.stack((np.zeros_like(first), log_expit(-first), log_x[2]))
    functions = gammas[:, None, None] * gammaln(0.5 * np.exp(log_x) + 1) + slopes[:, None, None] * np.exp(
        log_x
    )
    exponent = np.tensordot(weights, log_x, 1) + np.tensordot(rests, log_rest, 1) + functions.sum(axis=0)
    mass = np.exp(exponent - exponent.max())
    np.testing.assert_allclose(q.mean, (mass * np.exp(log_x)).sum(axis=(1, 2)) / mass.sum(), rtol=1e-8)
    log_integral = exponent.max() + np.log(mass.sum() * (u[1] - u[0]) ** 2)
    np.testing.assert_allclose(q.log_partition, log_integral, rtol=1e-10, atol=1e-8)


def test_a_tail_that_pieces_behind_it_make_long():
    """Behind two pieces all others are a hundred trillionth: less is left of the first than its exponents tell."""
    concentration, slopes = np.full(5, 2.0), np.array([-2.0, -2.0, -2e14, -2e14, -2e14])
    q = TILTED.from_natural((*sticks(concentration), slopes))
    np.testing.assert_allclose(q.mean, means(concentration, slopes), rtol=1e-7)


def test_weights_that_cannot_be_integrated_are_refused(monkeypatch):
    monkeypatch.setattr(stick_recursion, "_FEWEST", 10)
    monkeypatch.setattr(stick_recursion, "_MOST", 10)
    with pytest.raises(ParameterError, match="too much for their integrals"):
        _ = TIED.from_natural(hierarchical(6, 10, 3)).mean


def test_the_peak_of_a_parabola_is_found_from_three_points():
    """However flat it is."""
    curvature = np.array([1e-4, 0.3, 2.0, 500.0])
    u = tuple(np.full(4, place) for place in (-1.0, 0.5, 1.2))
    g = tuple(7.0 - 0.5 * curvature * (own - 0.3) ** 2 for own in u)
    center, width, fall = stick_recursion._vertex(u, g)
    np.testing.assert_allclose(center, 0.3, rtol=1e-9)
    np.testing.assert_allclose(width, 2.0 / np.sqrt(curvature), rtol=1e-9)
    np.testing.assert_allclose(fall, g[1] - g[0], rtol=1e-9)


def test_places_in_a_window_lie_between_ten_nodes():
    """In the middle two of them, but near an end of the window."""
    window = stick_windows.Window(-2.0, 3.0, 26, 1.0, False, False)
    log_s = np.linspace(-2.0, 3.0, 101)
    first, t = stick_windows._located(window, log_s)
    nodes = window.log_nodes
    np.testing.assert_allclose(nodes[first] + 0.5 * (t + 1.0) * (nodes[first + 9] - nodes[first]), log_s)
    assert (np.abs(t) <= 1.0 + 1e-12).all()
    inside = (log_s > nodes[4]) & (log_s < nodes[-5])
    assert (np.abs(t[inside]) <= 1.0 / 9.0 + 1e-12).all()
    assert {first.min(), first.max()} == {0, 16}


@pytest.mark.parametrize("weight", [0.5, 1e-3, 1e-7, 1e-10, 1e-14])
def test_a_small_share_of_other_exponents(weight):
    """Three pieces, no Dirichlet: outer shares by Gauss-Jacobi, inner ones by the trapezoidal rule in log odds."""
    weights, rests, slope = np.array([25.0, 25.0, 1.0]), np.array([0.0, -1.0, 24.0]), -25.0 / weight
    q = TILTED.from_natural((weights, rests, np.array([0.0, slope, 0.0])))
    x, at_x = roots_sh_jacobi(120, 73.0, 49.0)  # the rest s of the first piece; its mass x^48 (1 - x)^24
    logits = np.linspace(-45, 45, 6001)
    v = expit(logits)
    inner = 25 * log_expit(logits) + 25 * log_expit(-logits)
    joint = inner + slope * x[:, None] * v
    highest = joint.max()
    mass = at_x[:, None] * np.exp(joint - highest)
    np.testing.assert_allclose(q.mean[1], (mass * x[:, None] * v).sum() / mass.sum(), rtol=1e-8)
    np.testing.assert_allclose(q.mean[0], (mass * (1 - x[:, None])).sum() / mass.sum(), rtol=1e-8)
    np.testing.assert_allclose(
        q.log_partition, np.log(mass.sum() * (logits[1] - logits[0])) + highest, rtol=1e-10
    )


def hierarchical(size, documents, seed):
    """Return natural parameters as those of the weights of topics, and the expected log weights of documents."""
    rng = np.random.default_rng(seed)
    weights = np.sort(rng.dirichlet(np.full(size, 0.5)) + 1e-3)[::-1]
    weights /= weights.sum()
    counts = rng.multinomial(200, weights, size=documents) * (rng.random((documents, size)) < 0.3)
    concentration = 0.5 * weights + counts
    logs = (digamma(concentration) - digamma(concentration.sum(axis=1, keepdims=True))).sum(axis=0)
    prior = StickBreaking(np.ones(size - 1), np.full(size - 1, 5.0)).natural
    return (prior[0] + documents, prior[1], np.full(size, -float(documents)), 0.5 * logs)


@pytest.mark.thinned(3)
@pytest.mark.parametrize(
    ("size", "documents"), [(3, 1), (20, 21), pytest.param(50, 50, marks=pytest.mark.slow), (30, 2246)]
)
def test_expectations_are_those_of_random_walks(size, documents):
    q = TIED.from_natural(hierarchical(size, documents, 0))
    np.testing.assert_allclose(q.mean.sum(), 1.0, rtol=1e-10)
    draws = q.sample(2000, seed=2)
    densities = q.log_density(draws)
    assert abs(densities.mean() + q.entropy()) < 4 * densities.std() / np.sqrt(2000)
    assert np.abs((draws.mean(axis=0) - q.mean) / draws.std(axis=0)).max() * np.sqrt(2000) < 5
    np.testing.assert_allclose(draws.std(axis=0), np.sqrt(q.variance), rtol=0.12)
    # the draws are those of the density: the expected divergence of x_i x_j (e_i - e_j) p is zero (Stein's identity)
    step = 1e-6 * draws.min(axis=1)
    for i, j in [(0, 1), (size - 1, 0), (size - 2, size - 1)]:
        up, down = draws.copy(), draws.copy()
        for moved, sign in ((up, 1), (down, -1)):
            moved[:, i] += sign * step
            moved[:, j] -= sign * step
        slope = (q.log_density(up) - q.log_density(down)) / (2 * step)
        terms = draws[:, i] * draws[:, j] * slope + draws[:, j] - draws[:, i]
        assert abs(terms.mean()) < 4 * terms.std() / np.sqrt(2000) + 1e-4 * np.abs(terms).mean()


def test_without_functions_they_are_independent_shares():
    sticks_alone = StickBreaking([0.4, 2.0, 30.0], [7.0, 0.6, 12.0])
    q = TILTED.widened(sticks_alone)
    np.testing.assert_allclose(q.log_partition, sticks_alone.log_partition, rtol=1e-10)
    np.testing.assert_allclose(q.mean, sticks_alone.mean, rtol=1e-9)
    np.testing.assert_allclose(q.variance, sticks_alone.variance, rtol=1e-8)
    np.testing.assert_allclose(q.entropy(), sticks_alone.entropy(), rtol=1e-8)
    for own, other in zip(q.expected_statistics, sticks_alone.expected_statistics, strict=False):
        np.testing.assert_allclose(own, other, rtol=1e-9, atol=1e-9)


def test_a_constant_in_a_function_of_each_piece_changes_nothing_but_the_normaliser():
    natural = hierarchical(6, 10, 3)
    q, moved = TIED.from_natural(natural), TIED.from_natural((*natural[:3], natural[3] + 700.0))
    np.testing.assert_allclose(moved.mean, q.mean, rtol=1e-9)
    np.testing.assert_allclose(moved.log_partition - q.log_partition, 700.0, rtol=1e-11)


@pytest.mark.parametrize(("size", "documents"), [(5, 8), (40, 500)])
def test_the_mode_has_no_slope(size, documents):
    q = TIED.from_natural(hierarchical(size, documents, 1))
    mode = q.mode()
    highest = q.log_density(mode)
    rng = np.random.default_rng(0)
    for scale in (1e-3, 1e-2, 0.1):
        other = mode * np.exp(scale * rng.normal(size=(200, size)))
        other /= other.sum(axis=1, keepdims=True)
        assert (q.log_density(other) < highest).all()


def test_classes_are_told_apart_by_their_functions():
    q = TIED.from_natural(hierarchical(4, 5, 0))
    again = pickle.loads(pickle.dumps(q))
    assert type(again) is TIED is type(q).detailed(TIED.details())
    np.testing.assert_array_equal(again.mean, q.mean)
    assert tabulated_sticks((Number(),)) is TILTED is not TIED


def test_what_is_improper_is_refused():
    with pytest.raises(ImproperError, match="positive concentrations"):
        TILTED.from_natural((np.array([1.0, 0.0, 1.0]), np.zeros(3), np.zeros(3)))
    with pytest.raises(ImproperError, match=r"got a of 0\.5"):
        TILTED.from_natural((np.array([0.5, 3.0, 3.0]), np.zeros(3), np.zeros(3))).mode()


def test_two_pieces_are_a_beta_with_a_slope():
    q = TILTED.from_natural((np.array([2.0, 3.0]), np.zeros(2), np.array([4.0, -1.0])))
    x, masses = np.polynomial.legendre.leggauss(200)
    x = 0.5 * (x + 1)
    masses = masses * stats.beta(2, 3).pdf(x) * np.exp(5 * x)
    np.testing.assert_allclose(q.mean[0], (masses @ x) / masses.sum(), rtol=1e-11)
    np.testing.assert_allclose(
        Dirichlet([2.0, 3.0]).log_partition + np.log(masses.sum() / 2) - 1, q.log_partition
    )
