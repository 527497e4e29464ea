"""The registry of distributions over which every law of the families is tested."""

import numpy as np
import pytest
from scipy import stats

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
    TiedNormalGamma,
    TiedNormalWishart,
    TruncatedNormal,
    Wishart,
)
from caviar.families.tabulated.scalar import tabulated
from caviar.families.tabulated.scalar_functions import PLAIN, LogBeta, LogGamma, product_of
from caviar.families.tabulated.sticks import tabulated_sticks

PLANE = np.array([[2.0, 0.5], [0.5, 1.0]])
OTHER_PLANE = np.array([[0.7, -0.2], [-0.2, 3.0]])
SPACE = np.array([[2.0, 0.3, -0.4], [0.3, 1.5, 0.2], [-0.4, 0.2, 0.8]])

SHAPE = tabulated(Gamma, (LogGamma(),))
DEGREES = tabulated(Gamma, (LogGamma(0.5), product_of([PLAIN["x"], PLAIN["log_x"]])))
CONCENTRATION = tabulated(Gamma, (LogBeta.of([0.2, 0.3, 0.5]),))
STICKS = tabulated_sticks((LogGamma(0.7, 1.0), PLAIN["x"]))
MEAN = tabulated(Beta, (LogGamma(-4.0, 4.0), LogGamma(4.0), PLAIN["x"]))

CASES = {
    "normal": Normal(0.7, 2.5),
    "normal-batch": Normal([[0.0, 1.0, -3.0], [2.0, 5.0, 1.0]], [0.5, 1.0, 8.0]),
    "multivariate-normal": MultivariateNormal([1.0, -2.0], PLANE),
    "multivariate-normal-batch": MultivariateNormal([[1.0, 0.0, 2.0], [0.0, -1.0, 0.5]], SPACE),
    "gamma": Gamma(2.5, 0.8),
    "gamma-batch": Gamma([[1.5, 4.0], [30.0, 1.0]], [2.0, 0.1]),
    "wishart": Wishart(4.5, PLANE),
    "wishart-batch": Wishart([[3.5], [20.0]], [PLANE, OTHER_PLANE, PLANE + OTHER_PLANE]),
    "wishart-space": Wishart(6.0, SPACE),
    "normal-gamma": NormalGamma(0.5, 2.0, 3.0, 1.5),
    "normal-gamma-batch": NormalGamma([0.0, -1.0, 4.0], [0.3, 2.0, 1.0], [1.5, 2.0, 9.0], 2.0),
    "normal-wishart": NormalWishart([1.0, -1.0], 0.7, 6.0, PLANE),
    "normal-wishart-batch": NormalWishart(
        [[1.0, 0.0], [0.0, 2.0]], [1.0, 5.0], [5.5, 9.0], [PLANE, OTHER_PLANE]
    ),
    "multivariate-normal-gamma": MultivariateNormalGamma([1.0, -2.0], PLANE, 3.0, 1.5),
    "multivariate-normal-gamma-batch": MultivariateNormalGamma(
        [[1.0, 0.0, 2.0], [0.0, -1.0, 0.5]], SPACE, [2.5, 9.0], [2.0, 0.7]
    ),
    "multivariate-normal-gamma-line": MultivariateNormalGamma([0.5], [[2.0]], 3.0, 1.5),
    "tied-normal-gamma": TiedNormalGamma([0.5, -2.0, 1.0], [2.0, 0.3, 5.0], 3.0, 1.5),
    "tied-normal-gamma-batch": TiedNormalGamma([[0.0, -1.0], [4.0, 0.5]], [[0.3], [2.0]], [2.5, 9.0], 2.0),
    "tied-normal-gamma-one": TiedNormalGamma([0.5], 2.0, 3.0, 1.5),
    "tied-normal-wishart": TiedNormalWishart(
        [[1.0, -1.0], [0.5, 2.0], [0.0, 0.3]], [0.7, 5.0, 2.0], 6.0, PLANE
    ),
    "tied-normal-wishart-batch": TiedNormalWishart(
        [[[1.0, 0.0], [0.0, 2.0]], [[-1.0, 0.4], [0.1, 0.2]]], 2.0, [5.5, 9.0], [PLANE, OTHER_PLANE]
    ),
    "tied-normal-wishart-one": TiedNormalWishart([[1.0, -1.0, 0.5]], 0.7, 6.0, SPACE),
    "dirichlet": Dirichlet([1.5, 2.0, 4.0]),
    "dirichlet-batch": Dirichlet([[[1.0, 3.0], [2.0, 2.0]], [[9.0, 1.5], [40.0, 5.0]]]),
    "beta": Beta(2.0, 3.5),
    "beta-batch": Beta([[1.0], [6.0]], [2.0, 1.5, 30.0]),
    "categorical": Categorical([0.2, 0.5, 0.3]),
    "categorical-batch": Categorical([[0.1, 0.9], [0.6, 0.4], [0.5, 0.5]]),
    "bernoulli": Bernoulli(0.3),
    "bernoulli-batch": Bernoulli([[0.1, 0.5], [0.75, 0.99]]),
    "poisson": Poisson(0.8),
    "poisson-batch": Poisson([[0.3, 2.5], [7.2, 40.0]]),
    "stick-breaking": StickBreaking([1.5, 2.0, 3.0], [4.0, 3.5, 2.0]),
    "stick-breaking-pair": StickBreaking([2.0], [3.5]),
    "single-effect": SingleEffect([0.2, 0.5, 0.3], [0.4, -2.0, 1.0], [2.0, 0.5, 4.0]),
    "single-effect-batch": SingleEffect([[0.1, 0.9], [0.6, 0.4]], [[1.0, 0.7], [-0.5, 2.0]], [1.5, 3.0]),
    "spike-slab": SpikeSlab([0.2, 0.9, 0.5], [0.4, -2.0, 1.0], [2.0, 0.5, 4.0]),
    "spike-slab-batch": SpikeSlab([[0.1, 0.9], [0.6, 0.4]], [[1.0, 0.7], [-0.5, 2.0]], [1.5, 3.0]),
    "truncated-normal": TruncatedNormal(0.7, 2.5),
    "truncated-normal-batch": TruncatedNormal([[0.0, 1.0, -0.9], [2.0, 5.0, -0.2]], [0.5, 1.0, 8.0]),
    "polya-gamma": PolyaGamma(1.5),
    "polya-gamma-batch": PolyaGamma([[0.3, 0.8], [4.0, 25.0]]),
    "tabulated-shape": SHAPE([4.0, 2.0, -3.0]),
    "tabulated-shape-batch": SHAPE([[[3.0, -1.0, -0.5]], [[30.0, 10.0, -12.0]]]),
    "tabulated-degrees": DEGREES([3.0, -9.5, -10.0, 5.0]),
    "tabulated-concentration": CONCENTRATION([[5.0, -15.0, -12.0], [2.0, -1.5, -1.0]]),
    "tabulated-mean": MEAN([2.0, 3.0, -2.0, -2.0, 1.5]),
    "tabulated-sticks": STICKS([[4.0, 5.0, 6.0], [0.0, -1.0, 0.0], [-3.0, -3.0, -2.0], [-4.0, -20.0, -2.0]]),
    "tabulated-sticks-batch": STICKS(
        [
            [[2.5, 3.0, 6.0], [0.0, -1.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]],
            [[30.0, 30.0, 35.0], [0.0, -1.0, 0.0], [-29.0, -29.0, -29.0], [-60.0, -200.0, -90.0]],
        ]
    ),
    "stick-breaking-batch": StickBreaking([[[1.5, 3.0], [2.0, 9.0]]], [[[6.0, 3.0]], [[30.0, 2.5]]]),
}


def draw(q, size=None, seed=0):
    """Return values of q; a list with one array, or with the two arrays of a joint distribution."""
    value = q.sample(size, seed)
    return list(value) if isinstance(value, tuple) else [value]


def as_one(parts):
    """Return what ``draw`` took apart as the value that the family takes."""
    return parts[0] if len(parts) == 1 else tuple(parts)


def statistics_at(q, value):
    """Return t(value), for labels with the number of categories of q."""
    if isinstance(q, Categorical):
        return q.statistics_of(value, q.event_shape[0])
    return q.statistics_of(value)


def inner(q, left, right):
    """Return the sum over statistics and their axes of left * right, of the batch shape."""
    total = 0.0
    for a, b, shape in zip(left, right, q.statistic_shapes(q.event_shape), strict=True):
        total = total + (a * b).sum(axis=tuple(range(-len(shape), 0)))
    return total


def log_carrier(q, value):
    """Return log k(value), of the shape of the density there; 0 but for counts."""
    return q.log_carrier(value)


def expected_log_carrier(q):
    """Return the expectation of log k, by the sum over all counts that have weight."""
    if not isinstance(q, Poisson):
        return np.zeros(q.batch_shape)
    x = np.arange(400)
    return stats.poisson.pmf(x, q.rate[..., np.newaxis]) @ q.log_carrier(x)


@pytest.fixture(params=CASES)
def q(request):
    """One entry of the registry."""
    return CASES[request.param]


@pytest.fixture(params=sorted({type(case).__name__ for case in CASES.values()}))
def family_pairs(request):
    """All registered distributions of one family, next to each other whatever their event shape."""
    found = [case for case in CASES.values() if type(case).__name__ == request.param]
    # of tabulated ones, which have a class for each set of functions, those of the first class
    return [case for case in found if type(case) is type(found[0])]


@pytest.fixture
def laws():
    """What several law files use, as one namespace (test modules do not import each other)."""

    class Laws:
        cases = CASES
        draw = staticmethod(draw)
        as_one = staticmethod(as_one)
        statistics_at = staticmethod(statistics_at)
        inner = staticmethod(inner)
        log_carrier = staticmethod(log_carrier)
        expected_log_carrier = staticmethod(expected_log_carrier)

    return Laws
