"""Nothing is lost at extreme parameters: every number is compared with 60-digit arithmetic."""

import warnings
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from scipy.sparse import csr_array

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
    StickBreaking,
    TiedNormalGamma,
    TiedNormalWishart,
    TruncatedNormal,
    Wishart,
)
from caviar.language.outcomes.binomial import Successes

DIGITS = 60
GRADED = np.diag([1e12, 1.0, 1e-12])
TILTED = np.array([[2.0, 1.9999], [1.9999, 2.0]])
SPACE = np.array([[2.0, 0.3, -0.4], [0.3, 1.5, 0.2], [-0.4, 0.2, 0.8]])


def exact(array) -> Any:
    """Return a list of a parameter's entries, and a matrix as mpmath's."""
    array = np.asarray(array)
    if array.ndim == 2:
        return mp.matrix(array.tolist())
    return [mp.mpf(float(entry)) for entry in array.ravel()] if array.ndim else mp.mpf(float(array))


def flat(*parts):
    """Return one list of numbers from numbers, lists and matrices."""
    result = []
    for part in parts:
        result.extend(list(part) if isinstance(part, (list, mp.matrix)) else [part])
    return result


def log_det(matrix):
    return mp.log(mp.det(matrix))


def dot(a, b):
    return mp.fsum(x * y for x, y in zip(a, b, strict=True))


def wishart_form(df, scale):
    """Return natural parameters, base measure, expectations and log-partition of a Wishart distribution."""
    size = scale.rows
    halves = [(df - j) / 2 for j in range(size)]
    inverse = scale**-1
    expected_log = mp.fsum(mp.digamma(h) for h in halves) + size * mp.log(2) - log_det(scale)
    constant = mp.mpf(size * (size - 1)) / 4 * mp.log(mp.pi)
    gammas = mp.fsum(mp.loggamma(h) for h in halves) + constant
    partition = gammas - df / 2 * (log_det(scale) - size * mp.log(2))
    base = [-mp.mpf(size + 1) / 2] + [mp.mpf(0)] * size**2
    return flat(df / 2, scale / -2), base, flat(expected_log, inverse * df), partition


def form(q):
    """Return eta, c, E t and A of a single distribution, as lists of mpmath numbers and a number."""
    p = {name: exact(value) for name, value in q._parameters().items()}
    zero, one, half = mp.mpf(0), mp.mpf(1), mp.mpf(1) / 2
    match q:
        case Normal():
            m, t = p["mean"], p["precision"]
            return [t * m, -t / 2], [zero] * 2, [m, m**2 + 1 / t], (t * m**2 - mp.log(t / (2 * mp.pi))) / 2
        case MultivariateNormal():
            m, precision = mp.matrix(p["mean"]), p["precision"]
            second = precision**-1 + m * m.T
            partition = ((m.T * precision * m)[0] - log_det(precision / (2 * mp.pi))) / 2
            eta = flat(precision * m, precision / -2)
            return eta, [zero] * len(eta), flat(m, second), partition
        case Gamma():
            s, r = p["shape"], p["rate"]
            return [s, -r], [-one, zero], [mp.digamma(s) - mp.log(r), s / r], mp.loggamma(s) - s * mp.log(r)
        case Wishart():
            return wishart_form(p["df"], p["inverse_scale"])
        case NormalGamma():
            m, k, s, r = (p[name] for name in ("mean", "mean_precision", "shape", "rate"))
            eta = [k * m, -k / 2, s + half, -(r + k * m**2 / 2)]
            expected = [s / r * m, 1 / k + s / r * m**2, mp.digamma(s) - mp.log(r), s / r]
            partition = mp.loggamma(s) - s * mp.log(r) - mp.log(k / (2 * mp.pi)) / 2
            return eta, [zero, zero, -one, zero], expected, partition
        case MultivariateNormalGamma():
            m, k, s, r = mp.matrix(p["mean"]), p["mean_precision"], p["shape"], p["rate"]
            quadratic = (m.T * k * m)[0]
            eta = flat(k * m, k / -2, s + half * m.rows, -(r + quadratic / 2))
            expected = flat(m * (s / r), k**-1 + m * m.T * (s / r), mp.digamma(s) - mp.log(r), s / r)
            partition = mp.loggamma(s) - s * mp.log(r) - log_det(k / (2 * mp.pi)) / 2
            return eta, [zero] * (len(eta) - 2) + [-one, zero], expected, partition
        case NormalWishart():
            m, k, df, scale = mp.matrix(p["mean"]), p["mean_precision"], p["df"], p["inverse_scale"]
            _, base, expected, partition = wishart_form(df, scale)
            inverse = scale**-1 * df
            weighted = inverse * m
            eta = flat(m * k, -k / 2, (df + 1) / 2, (scale + m * m.T * k) / -2)
            expected = flat(weighted, (m.T * weighted)[0] + m.rows / k, expected)
            partition -= mp.mpf(m.rows) / 2 * mp.log(k / (2 * mp.pi))
            return eta, [zero] * (m.rows + 1) + base, expected, partition
        case TiedNormalGamma():
            m, k, s, r = mp.matrix(p["mean"]), mp.matrix(p["mean_precision"]), p["shape"], p["rate"]
            pairs = list(zip(k, m, strict=True))
            rate = r + mp.fsum(weight * x**2 for weight, x in pairs) / 2
            eta = [*(weight * x for weight, x in pairs), *(-weight / 2 for weight in k)]
            eta += [s + half * len(pairs), -rate]
            expected = [*(s / r * x for x in m), *(1 / weight + s / r * x**2 for weight, x in pairs)]
            expected += [mp.digamma(s) - mp.log(r), s / r]
            partition = mp.loggamma(s) - s * mp.log(r)
            partition -= mp.fsum(mp.log(weight / (2 * mp.pi)) for weight in k) / 2
            return eta, [zero] * (len(eta) - 2) + [-one, zero], expected, partition
        case TiedNormalWishart():
            means, k = mp.matrix(p["mean"]), mp.matrix(p["mean_precision"])
            df, scale = p["df"], p["inverse_scale"]
            _, base, expected, partition = wishart_form(df, scale)
            weighted, weights = means * (scale**-1 * df), mp.diag(list(k))
            scatter = means.T * weights * means
            squares = weighted * means.T
            eta = flat(weights * means, k / -2, (df + means.rows) / 2, (scale + scatter) / -2)
            quadratic = [squares[i, i] + means.cols / k[i] for i in range(means.rows)]
            expected = [*flat(weighted), *quadratic, *expected]
            partition -= mp.fsum(mp.log(weight / (2 * mp.pi)) for weight in k) * means.cols / 2
            return eta, [zero] * (len(eta) - len(base)) + base, expected, partition
        case Dirichlet() | Beta():
            a = p["concentration"] if isinstance(q, Dirichlet) else [p["a"], p["b"]]
            total = mp.fsum(a)
            expected = [mp.digamma(entry) - mp.digamma(total) for entry in a]
            return (
                a,
                [-one] * len(a),
                expected,
                mp.fsum(mp.loggamma(entry) for entry in a) - mp.loggamma(total),
            )
        case TruncatedNormal():
            m, t = p["location"], p["precision"]
            units = m * mp.sqrt(t)
            log_tail = mp.log(mp.erfc(-units / mp.sqrt(2)) / 2) + units**2 / 2 + mp.log(2 * mp.pi) / 2
            mean = units + mp.exp(-log_tail)
            expected = [mean / mp.sqrt(t), (1 + units * mean) / t]
            return [t * m, -t / 2], [zero] * 2, expected, log_tail - mp.log(t) / 2
        case PolyaGamma():
            c = p["tilt"]
            return [-(c**2) / 2], [zero], [mp.tanh(c / 2) / (2 * c)], -mp.log(mp.cosh(c / 2))
        case StickBreaking():
            a, b = p["a"], p["b"]
            totals = [x + y for x, y in zip(a, b, strict=True)]
            excess = [x - y for x, y in zip(b, totals[1:], strict=False)]
            kept = [mp.digamma(x) - mp.digamma(y) for x, y in zip(b, totals, strict=True)]
            rest = [mp.fsum(kept[:k]) for k in range(len(a) + 1)]
            taken = [*(mp.digamma(x) - mp.digamma(y) for x, y in zip(a, totals, strict=True)), zero]
            partition = mp.fsum(mp.log(mp.beta(x, y)) for x, y in zip(a, b, strict=True))
            expected = [x + y for x, y in zip(taken, rest, strict=True)] + rest
            return (
                [*a, b[-1], zero, *excess, zero],
                [-one] * len(rest) + [zero] * len(rest),
                expected,
                partition,
            )
    raise AssertionError(q)


def close(actual, expected, absolute=1e-13):
    expected = np.array([float(entry) for entry in flat(expected)])
    np.testing.assert_allclose(np.ravel(actual), expected, rtol=1e-9, atol=absolute)


EXTREME = {
    "normal-wide": Normal(3.0, 1e-12),
    "normal-narrow": Normal(-1e3, 1e12),
    "multivariate-normal-graded": MultivariateNormal([1.0, -2.0, 3.0], GRADED),
    "multivariate-normal-tilted": MultivariateNormal([1.0, -2.0], TILTED),
    "gamma-tiny": Gamma(1e-8, 1.0),
    "gamma-large": Gamma(1e8, 1e8),
    "gamma-large-slow": Gamma(1e8, 1e-12),
    "wishart-edge": Wishart(2.0 + 1e-6, SPACE),
    "wishart-edge-graded": Wishart(2.0 + 1e-8, GRADED),
    "wishart-large": Wishart(123_456_789.0, SPACE),
    "wishart-large-scaled": Wishart(1e8, 1e8 * SPACE),
    "normal-gamma-tiny": NormalGamma(1.0, 1e-12, 1e-8, 1e-3),
    "normal-gamma-large": NormalGamma(0.5, 1e12, 1e8, 1e8),
    "normal-wishart-edge": NormalWishart([1.0, 0.0, -1.0], 1e-8, 2.0 + 1e-7, SPACE),
    "normal-wishart-large": NormalWishart([1.0, 0.0, -1.0], 1e8, 1e8, 1e8 * SPACE),
    "multivariate-normal-gamma-graded": MultivariateNormalGamma([0.0, -2.0, 3.0], GRADED, 1e-8, 1e-3),
    "multivariate-normal-gamma-tilted": MultivariateNormalGamma([1.0, -2.0], TILTED, 1e8, 1e8),
    "tied-normal-gamma-edge": TiedNormalGamma([1.0, -2.0, 3.0], [1e-8, 1e-4, 1.0], 1e-8, 1e-3),
    "tied-normal-gamma-large": TiedNormalGamma([1.0, -2.0], 1e8, 1e8, 1e8),
    "tied-normal-wishart-edge": TiedNormalWishart(np.eye(3)[:2], [1e-8, 1e-4], 2.0 + 1e-7, SPACE),
    "tied-normal-wishart-large": TiedNormalWishart(-np.eye(3)[:2], [1e8, 1.0], 1e8, 1e8 * SPACE),
    "dirichlet-tiny": Dirichlet([1e-8, 1e-8, 1e-8]),
    "dirichlet-large": Dirichlet([1e8, 2e8, 3e8]),
    "dirichlet-mixed": Dirichlet([1e8, 1e-8, 1.0]),
    "dirichlet-dominated": Dirichlet([1e8, 1e-8]),
    "dirichlet-dominated-little": Dirichlet([1e4, 1e-3, 1e-8]),
    "beta-tiny": Beta(1e-8, 1e-8),
    "beta-mixed": Beta(1e8, 0.5),
    "beta-large": Beta(1e8, 3e8),
    "truncated-normal-far-below": TruncatedNormal(-1e6, 1.0),
    "truncated-normal-far-below-narrow": TruncatedNormal(-3.0, 1e12),
    "truncated-normal-below": TruncatedNormal(-7.0, 1.5),
    "truncated-normal-seam": TruncatedNormal(-2.0, 1.0),
    "truncated-normal-seam-below": TruncatedNormal(-2.0000001, 1.0),
    "truncated-normal-at-zero": TruncatedNormal(-1e-9, 2.0),
    "truncated-normal-above": TruncatedNormal(30.0, 2.0),
    "truncated-normal-far-above": TruncatedNormal(1e6, 1.0),
    "polya-gamma-tiny": PolyaGamma(1e-8),
    "polya-gamma-small": PolyaGamma(1e-3),
    "polya-gamma-large": PolyaGamma(40.0),
    "polya-gamma-huge": PolyaGamma(1e6),
    "stick-breaking-tiny": StickBreaking([1e-8, 1e-8], [3e-8, 1e-8]),
    "stick-breaking-large": StickBreaking([1e8, 1e7, 2e8], [5e8, 4e8, 1e8]),
    "stick-breaking-mixed": StickBreaking([1e8, 1.0, 1.0], [3.0, 1e-3, 1e-3]),
}


@pytest.fixture(params=EXTREME)
def extreme(request):
    return EXTREME[request.param]


@pytest.fixture(autouse=True)
def _many_digits():
    with mp.workdps(DIGITS):
        yield


def test_expected_statistics(extreme):
    _, _, expected, _ = form(extreme)
    # digamma(shape) - log(rate) passes through zero; the logarithm of a weight close to one must not be rounded
    absolute = 1e-25 if isinstance(extreme, (Dirichlet, Beta, StickBreaking)) else 1e-14
    close(np.concatenate([np.ravel(t) for t in extreme.expected_statistics]), expected, absolute)


def test_log_partition(extreme):
    close(extreme.log_partition, form(extreme)[3], absolute=1e-9)


def test_entropy(extreme):
    eta, base, expected, partition = form(extreme)
    shifted = [a + b for a, b in zip(eta, base, strict=True)]
    close(extreme.entropy(), partition - dot(shifted, expected), absolute=1e-9)


@pytest.mark.parametrize("shape", [(), (5,), (0,)])
def test_entropies_of_small_and_of_large_shapes_beside_each_other(shape):
    """Small ones are of gamma functions, large ones of a series; each is what it is by itself."""
    shapes = np.array([0.3, 2e3, 19.9, 20.1, 1e9])[: shape[0] if shape else None]
    shapes = shapes if shape else shapes[1].reshape(())
    found = Gamma(shapes, np.ones(shapes.shape)).entropy_about_base()
    each = [mp.loggamma(mp.mpf(own)) - own * mp.digamma(mp.mpf(own)) + own for own in shapes.ravel().tolist()]
    assert np.shape(found) == shapes.shape
    np.testing.assert_allclose(np.ravel(found), np.array([float(own) for own in each]), rtol=1e-13)


def test_entropy_about_the_base_measure(extreme):
    eta, _, expected, partition = form(extreme)
    close(extreme.entropy_about_base(), partition - dot(eta, expected), absolute=1e-11)


def test_natural_parameters_come_back(extreme):
    back = type(extreme).from_natural(extreme.natural)
    for name, value in extreme._parameters().items():
        # the rate and the inverse scale are differences in the natural parameters of a joint distribution
        np.testing.assert_allclose(
            getattr(back, name), value, rtol=1e-7, atol=0.0 if value.ndim < 2 else 1e-12
        )


@pytest.mark.parametrize(
    "name",
    [
        "normal-wide",
        "normal-narrow",
        "multivariate-normal-graded",
        "multivariate-normal-tilted",
        "gamma-tiny",
        "gamma-large",
        "gamma-large-slow",
        "normal-gamma-large",
        "dirichlet-large",
        "dirichlet-dominated-little",
        "truncated-normal-far-below",
        "truncated-normal-far-below-narrow",
        "truncated-normal-above",
        "polya-gamma-huge",
    ],
)
def test_log_density(name, laws):
    q = EXTREME[name]
    value = laws.as_one(
        [np.maximum(part, 1e-200) if q.statistics[0] == "log_x" else part for part in laws.draw(q)]
    )
    eta, base, _, partition = form(q)
    first = value[0] if isinstance(value, tuple) else value
    x = mp.matrix(exact(first)) if np.ndim(first) else exact(first)
    match q:
        case Normal() | TruncatedNormal():
            statistic = [x, x**2]
        case PolyaGamma():
            statistic = [x]
        case MultivariateNormal():
            statistic = flat(x, x * x.T)
        case Gamma():
            statistic = [mp.log(x), x]
        case NormalGamma():
            t = exact(value[1])
            statistic = [t * x, t * x**2, mp.log(t), t]
        case _:
            # weights in floating point sum to one up to rounding only; the density is that of their shares
            statistic = [mp.log(entry / mp.fsum(x)) for entry in x]
    shifted = [a + b for a, b in zip(eta, base, strict=True)]
    close(q.log_density(value), dot(shifted, statistic) - partition, absolute=1e-7)


def test_log_density_of_matrices():
    q = Wishart(1e8, 1e8 * SPACE)
    x = q.sample(seed=0)
    eta, base, _, partition = form(q)
    matrix = exact(x)
    expected = dot([a + b for a, b in zip(eta, base, strict=True)], flat(log_det(matrix), matrix)) - partition
    close(q.log_density(x), expected, absolute=1e-6)


NEAR = 1.0 + 1e-7
PAIRS = [
    (Normal(3.0, 1e-12), Normal(3.0, 1e12)),
    (Normal(0.0, 1e12), Normal(1e-9, 1e12 * NEAR)),
    (MultivariateNormal([0.0, 0.0, 0.0], GRADED), MultivariateNormal([0.0, 0.0, 0.0], SPACE)),
    (MultivariateNormal([1.0, 0.0], TILTED), MultivariateNormal([1.0, 1e-6], TILTED * NEAR)),
    (Gamma(1e8, 1e8), Gamma(1e8 + 1.0, 1e8)),
    (Gamma(1e8, 1e8), Gamma(1e8 * NEAR, 1e8 * NEAR)),
    (Gamma(1e8, 1.0), Gamma(1e-8, 1e-8)),
    (Gamma(1e-8, 1e-8), Gamma(1e8, 1.0)),
    (Gamma(1e-8, 1.0), Gamma(1.1e-8, 1.0)),
    (Gamma(7.0, 3.0), Gamma(7.0 * NEAR, 3.0)),
    (Wishart(2.0 + 1e-8, SPACE), Wishart(2.0 + 1e-6, SPACE)),
    (Wishart(2.0 + 1e-8, GRADED), Wishart(1e8, SPACE)),
    (Wishart(1e8, 1e8 * SPACE), Wishart(1e8 + 10.0, 1e8 * NEAR * SPACE)),
    (Wishart(1e8, 1e8 * SPACE), Wishart(3.0, SPACE)),
    (NormalGamma(0.0, 1e12, 1e8, 1e8), NormalGamma(1e-9, 1e12 * NEAR, 1e8 + 1.0, 1e8)),
    (NormalGamma(0.0, 1e-12, 1e-8, 1.0), NormalGamma(1.0, 1.0, 1.0, 1.0)),
    (
        MultivariateNormalGamma([1.0, 0.0, -1.0], 1e8 * SPACE, 1e8, 1e8),
        MultivariateNormalGamma([1.0, 1e-8, -1.0], 1e8 * SPACE * NEAR, 1e8 + 1.0, 1e8),
    ),
    (
        MultivariateNormalGamma([1.0, 0.0, 0.0], SPACE, 1e-8, 1.0),
        MultivariateNormalGamma([0.0, 0.0, 0.0], GRADED, 4.0, 1.0),
    ),
    (
        NormalWishart([1.0, 0.0, -1.0], 1e8, 1e8, 1e8 * SPACE),
        NormalWishart([1.0, 1e-8, -1.0], 1e8, 1e8, 1e8 * SPACE * NEAR),
    ),
    (
        NormalWishart([1.0, 0.0, 0.0], 1.0, 2.0 + 1e-7, SPACE),
        NormalWishart([0.0, 0.0, 0.0], 1e-8, 4.0, GRADED),
    ),
    (Dirichlet([1e8, 2e8, 3e8]), Dirichlet([1e8 + 1.0, 2e8, 3e8])),
    (Dirichlet([1e8, 2e8, 3e8]), Dirichlet([1e8 * NEAR, 2e8 * NEAR, 3e8 * NEAR])),
    (Dirichlet([1e8, 2e8, 3e8]), Dirichlet([1.0, 1.0, 1.0])),
    (Dirichlet([1e8, 1e-8]), Dirichlet([2e8, 1e-8])),
    (Dirichlet([1e8, 1e-8, 1.0]), Dirichlet([1e-8, 1e8, 1.0])),
    (Dirichlet([1e-8, 1e-8, 1e-8]), Dirichlet([1.0, 1.0, 1.0])),
    (Dirichlet([1e-8, 2e-8]), Dirichlet([1e-8, 2.1e-8])),
    (Beta(1e8, 0.5), Beta(1e8, 0.5 * NEAR)),
    (Beta(1e8, 3e8), Beta(3e8, 1e8)),
    (TruncatedNormal(-1e6, 1.0), TruncatedNormal(-1e6 * NEAR, 1.0)),
    (TruncatedNormal(-1e6, 1.0), TruncatedNormal(-1e6, NEAR)),
    (TruncatedNormal(-1e6, 1.0), TruncatedNormal(-2e6, 1.0)),
    (TruncatedNormal(-1e6, 1.0), TruncatedNormal(1e6, 1.0)),
    (TruncatedNormal(1e6, 1.0), TruncatedNormal(1e6 + 1e-3, NEAR)),
    (TruncatedNormal(1e6, 1.0), TruncatedNormal(1e6, 2.0)),
    (TruncatedNormal(1e6, 1.0), TruncatedNormal(-1e6, 1.0)),
    (TruncatedNormal(0.5, 1.0), TruncatedNormal(0.5 * NEAR, NEAR)),
    (TruncatedNormal(-3.0, 1.0), TruncatedNormal(-3.0, NEAR)),
    (TruncatedNormal(0.0, 1.0), TruncatedNormal(-1e6, 1.0)),
    (TruncatedNormal(1e-3, 1e-12), TruncatedNormal(2.0, 1e3)),
    (PolyaGamma(1e-8), PolyaGamma(2e-8)),
    (PolyaGamma(1e-3), PolyaGamma(0.0015)),
    (PolyaGamma(3.0), PolyaGamma(3.0 * NEAR)),
    (PolyaGamma(1e6), PolyaGamma(1e6 + 1.0)),
    (PolyaGamma(1e6), PolyaGamma(1e3)),
    (PolyaGamma(0.1), PolyaGamma(1e6)),
    (StickBreaking([1e8, 1e-8], [1.0, 1e8]), StickBreaking([1e8 + 1.0, 1e-8], [1.0, 1e8])),
]


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_divergence(a, b):
    eta_a, _, expected, partition_a = form(a)
    eta_b, _, _, partition_b = form(b)
    gap = [x - y for x, y in zip(eta_a, eta_b, strict=True)]
    close(a.kl(b), dot(gap, expected) - partition_a + partition_b, absolute=0.0)
    assert a.kl(b) > 0


@pytest.mark.parametrize("probability", [0.0, 1e-300, 1e-17, 0.5, 1.0])
def test_probabilities_at_the_edge(probability):
    mp.mp.dps = 400  # 1 - 1e-300 is not 1; the fixture sets the digits back
    q = Bernoulli(probability)
    p, complement = mp.mpf(probability), 1 - mp.mpf(probability)
    entropy = -mp.fsum(x * mp.log(x) for x in (p, complement) if x)
    close(q.entropy(), entropy, absolute=0.0)
    close(q.kl(Bernoulli(0.3)), mp.fsum(
        x * mp.log(x / y) for x, y in ((p, mp.mpf(0.3)), (complement, 1 - mp.mpf(0.3))) if x
    ))  # fmt: skip
    assert q.log_density(1.0) == (float(mp.log(p)) if p else -np.inf)
    labels = Categorical([1.0 - probability, probability])  # the first is rounded, the entropy is not
    close(labels.entropy(), entropy, absolute=0.0)
    np.testing.assert_allclose(labels.kl(Categorical([0.7, 0.3])), q.kl(Bernoulli(0.3)), rtol=1e-9)
    assert q.kl(q) == labels.kl(labels) == 0
    assert labels.log_partition == pytest.approx(0.0, abs=1e-15)


@pytest.mark.parametrize("location", [-1e6, -1e3, -5.0, -2.0, -1.9, 0.0, 0.4, 6.0, 1e6])
def test_variance_of_truncated_normals(location):
    with mp.workdps(200):
        m = mp.mpf(location)
        edge = mp.npdf(m) / (mp.erfc(-m / mp.sqrt(2)) / 2)
        close(TruncatedNormal(4.0 * location, 1 / 16).variance, 16 * (1 - edge * (edge + m)), absolute=0.0)


@pytest.mark.parametrize("tilt", [1e-8, 1e-3, 0.3, 0.99, 1.01, 3.0, 50.0, 1e6])
def test_variance_of_polya_gamma_numbers(tilt):
    c = mp.mpf(tilt)
    expected = (mp.sinh(c) - c) / (4 * c**3 * mp.cosh(c / 2) ** 2)
    close(PolyaGamma(tilt).variance, expected, absolute=0.0)


@pytest.mark.parametrize("rate", [1e-12, 0.3, 30.0, 999.0, 1001.0, 1e8])
def test_entropy_of_counts(rate):
    r = mp.mpf(rate)
    spread = mp.sqrt(r)
    first, last = (int(max(0, mp.floor(r - 14 * spread))), int(r + 14 * spread) + 60)
    if rate > 1e6:
        # Stirling's series of the expectation, to the next order
        expected = mp.log(2 * mp.pi * mp.e * r) / 2 - 1 / (12 * r) - 1 / (24 * r**2)
    else:
        expected = mp.fsum(
            mp.exp(x * mp.log(r) - r - mp.loggamma(x + 1)) * (r + mp.loggamma(x + 1) - x * mp.log(r))
            for x in map(mp.mpf, range(first, last))
        )
    close(Poisson(rate).entropy(), expected, absolute=0.0)


@pytest.mark.parametrize(("rate", "x"), [(1e-12, 0), (1e-12, 3), (1e8, 100_000_123), (1e8, 99_000_000)])
def test_log_density_of_counts(rate, x):
    r = mp.mpf(rate)
    close(Poisson(rate).log_density(x), x * mp.log(r) - r - mp.loggamma(mp.mpf(x + 1)), absolute=0.0)


@pytest.mark.parametrize(("rate", "other"), [(1e8, 1e8 + 1.0), (1e-12, 1e3), (1e3, 1e-12)])
def test_divergence_of_counts(rate, other):
    r, s = mp.mpf(rate), mp.mpf(other)
    close(Poisson(rate).kl(Poisson(other)), r * mp.log(r / s) - r + s, absolute=0.0)


def test_log_odds_beyond_the_last_digit_are_kept():
    q, p = Bernoulli.from_natural((np.array(50.0),)), Bernoulli.from_natural((np.array(51.0),))
    odds = mp.exp(mp.mpf(-50))
    close(q.entropy(), mp.log1p(odds) + 50 * odds / (1 + odds), absolute=0.0)
    assert q.kl(p) > 0
    pair = Bernoulli.from_natural((np.array([50.0, -800.0]),))
    np.testing.assert_allclose(pair[::-1].log_density(1), [-800.0, -np.exp(-50.0)], rtol=1e-14)
    np.testing.assert_allclose(pair[[0, 0]].complement, np.exp(-50.0), rtol=1e-14)


@pytest.mark.parametrize("gap", [0.0, 1.0, 30.0, 100.0])
def test_entropy_of_labels(gap):
    """From natural parameters far from 0, one of them minus infinity, and labels that are all but certain."""
    logits = np.array([0.0, -gap, -1.5 * gap, -np.inf]) - 2.0**20
    with mp.workdps(DIGITS):
        weights = [mp.exp(mp.mpf(own)) for own in logits[:3] + 2.0**20]
        shares = [own / sum(weights) for own in weights]
        expected = -sum(own * mp.log(own) for own in shares)
        batch = Categorical.from_natural((np.stack([logits, np.zeros(4)]),)).entropy()
        for own in (Categorical.from_natural((logits,)).entropy(), batch[0]):
            close(own, expected, absolute=0.0)
        close(batch[1], mp.log(4), absolute=0.0)


def test_probabilities_of_labels_are_normal_numbers_or_zero():
    """Of subnormal numbers exp and matrix products are many times slower; above 1e-299 no digit changes."""
    logits = np.append(-np.linspace(0.0, 760.0, 3001), -np.inf)
    p = Categorical.from_natural((logits + 2.0**10,)).probabilities
    expected = np.exp(logits) / np.exp(logits).sum()
    assert not ((p > 0) & (p < np.finfo(float).tiny)).any()
    np.testing.assert_allclose(p, np.where(expected > 1e-299, expected, 0.0), rtol=1e-12, atol=1e-299)
    np.testing.assert_array_equal(p[logits < -700], 0.0)


@pytest.mark.parametrize("x", [1e-8, 0.3, 7.0, 1e4, 1e12])
def test_gain_of_counts(x):
    """What counts add to the log-partition, where both log-partitions are as large as 1e14."""
    counts = np.array([[1.0, 0.0, 3.0], [0.0, 0.0, 0.0], [20.0, 1.0, 0.0]])
    concentration = x * np.array([1.0, 2.0, 3.0])
    found = Dirichlet(concentration).gain_of_counts(csr_array(counts))
    with mp.workdps(DIGITS):
        prior = [mp.mpf(a) for a in concentration]
        for row, own in zip(counts, found, strict=True):
            after = [a + mp.mpf(n) for a, n in zip(prior, row, strict=True)]
            exact = sum(mp.loggamma(b) - mp.loggamma(a) for a, b in zip(prior, after, strict=True))
            exact -= mp.loggamma(sum(after)) - mp.loggamma(sum(prior))
            assert own == pytest.approx(float(exact), rel=1e-13, abs=1e-13)


def test_the_entropy_of_a_polya_gamma_is_exact_for_tilts_of_any_size():
    """Against 700 digits: tiny ones, from a series, and those whose squares are no numbers."""
    tilts = [1e-60, 1e-8, 1e-3, 0.5, 0.9999, 1.0, 30.0, 600.5, 1e16, 1e140, 1e160, 1e300]
    q = PolyaGamma(tilts)
    with mp.workdps(700):
        for tilt, entropy, variance in zip(tilts, q.entropy(), q.variance, strict=True):
            c = mp.mpf(tilt)
            # cosh(c / 2), of which exp(-c) is all that a large c leaves out
            tail = mp.exp(-min(c, 5_000))
            exact = c / 4 * (1 - tail) / (1 + tail) - c / 2 - mp.log1p(tail) + mp.log(2)
            assert abs(entropy / exact - 1) < 1e-13
            if tilt < 500:
                width = (mp.sinh(c) - c) / (4 * c**3 * mp.cosh(c / 2) ** 2)
                assert abs(variance / width - 1) < 1e-13


def test_a_success_that_is_certain_has_log_probabilities():
    """Without a warning, although 0 times minus infinity is in them."""
    batch = Successes(np.full((4,), 3.0), np.array([-np.inf, -np.inf, np.inf, np.inf]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = batch.log_density(np.array([0.0, 1.0, 3.0, 2.0]))
    np.testing.assert_array_equal(found, [0.0, -np.inf, 0.0, -np.inf])
