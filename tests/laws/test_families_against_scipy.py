"""Densities, entropies and moments are those of SciPy, at ordinary parameters."""

from itertools import pairwise, product
from typing import ClassVar

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import digamma, gammaln, roots_jacobi

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


class PolyaGammaDensity:
    """PG(1, c) from the alternating series of the density of PG(1, 0) (Polson, Scott and Windle 2013)."""

    def __init__(self, tilt):
        self.tilt = tilt

    @staticmethod
    def base(x):
        n = np.arange(60)
        decays = np.exp(-((2 * n + 1) ** 2) / (8 * x))
        return float(np.sum((-1.0) ** n * (2 * n + 1) * decays) / np.sqrt(2 * np.pi * x**3))

    def logpdf(self, x):
        return np.log(np.cosh(self.tilt / 2)) - self.tilt**2 * x / 2

    def expect(self, function):
        centre = np.tanh(self.tilt / 2) / (2 * self.tilt)
        return integrate.quad(
            lambda x: function(x) * self.base(x) * np.exp(self.logpdf(x)),
            1e-4, 12.0, points=[0.3 * centre, centre, 3 * centre], limit=400, epsabs=1e-13, epsrel=1e-12,
        )[0]  # fmt: skip

    def entropy(self):
        return -self.expect(self.logpdf)

    def mean(self):
        return self.expect(lambda x: x)

    def var(self):
        mean = self.mean()
        return self.expect(lambda x: (x - mean) ** 2)


class OverSupports:
    """A vector with zeros: every choice of the entries that are not zero, with SciPy's Normals for these."""

    def __init__(self, q):
        self.normals = [
            stats.norm(mean, precision**-0.5)
            for mean, precision in zip(q.slab_mean, q.slab_precision, strict=True)
        ]
        size = len(self.normals)
        if isinstance(q, SingleEffect):
            supports = np.eye(size, dtype=bool)
            self.supports = list(zip(supports, q.inclusion, strict=True))
        else:
            supports = [np.array(own, dtype=bool) for own in product((0, 1), repeat=size)]
            self.supports = [(own, np.prod(np.where(own, q.inclusion, 1 - q.inclusion))) for own in supports]

    def logpdf(self, x):
        (weight,) = [weight for own, weight in self.supports if np.array_equal(own, x != 0)]
        return np.log(weight) + sum(
            normal.logpdf(x_j) for normal, x_j in zip(self.normals, x, strict=True) if x_j
        )

    def entropy(self):
        within = [
            sum(normal.entropy() for normal, is_in in zip(self.normals, own, strict=True) if is_in)
            for own, _ in self.supports
        ]
        return sum(
            weight * (own - np.log(weight)) for (_, weight), own in zip(self.supports, within, strict=True)
        )

    def moment(self, power):
        each = np.array([normal.moment(power) for normal in self.normals])
        return sum(weight * own * each for own, weight in self.supports)

    def mean(self):
        return self.moment(1)

    def var(self):
        return self.moment(2) - self.moment(1) ** 2


class FunctionsOfScalar:
    """A density by its functions in SciPy, normalised by adaptive quadrature."""

    known: ClassVar = {
        "log_x": np.log,
        "log_complement": lambda x: np.log1p(-x),
        "x": lambda x: x,
        "gammaln(x)": gammaln,
        "gammaln(0.5 x)": lambda x: gammaln(0.5 * x),
        "gammaln(4.0 x)": lambda x: gammaln(4 * x),
        "gammaln(-4.0 x + 4.0)": lambda x: gammaln(4 - 4 * x),
        "log_x * x": lambda x: x * np.log(x),
        "log_beta(1 * 0.2, 1 * 0.3, 1 * 0.5)": lambda x: (
            gammaln(0.2 * x) + gammaln(0.3 * x) + gammaln(0.5 * x) - gammaln(x)
        ),
    }

    def __init__(self, q):
        self.q = q
        mean, last = float(q.mean), 1 - 1e-12 if q.base is Beta else 40 * float(q.mean)
        inner = [share * mean for share in (0.3, 0.8, 1.0, 1.3, 2.0, 5.0) if share * mean < last]
        self.ends = [1e-12, *inner, last]
        self.log_total = 0.0
        self.log_total = np.log(self.expect(lambda x: 1.0))

    def logpdf(self, x):
        total = -self.log_total
        for coefficient, name in zip(self.q.coefficients, self.q.statistics, strict=True):
            # the base measure is 1 / x, or 1 / (x (1 - x))
            total += (coefficient - (name in ("log_x", "log_complement"))) * self.known[name](x)
        return total

    def expect(self, function):
        return sum(
            integrate.quad(
                lambda x: function(x) * np.exp(self.logpdf(x)), *ends, epsabs=0, epsrel=1e-12, limit=400
            )[0]
            for ends in pairwise(self.ends)
        )

    def entropy(self):
        return -self.expect(self.logpdf)

    def mean(self):
        return self.expect(lambda x: x)

    def var(self):
        mean = self.mean()
        return self.expect(lambda x: (x - mean) ** 2)


class FunctionsOfPieces:
    """A density of broken sticks, by SciPy's Gauss-Jacobi rule for each share."""

    known: ClassVar = {"x": lambda x: x, "gammaln(0.7 x + 1.0)": lambda x: gammaln(0.7 * x + 1)}

    def __init__(self, q):
        self.weights, self.rests, *self.functions = q.coefficients
        self.names = q.statistics[2:]
        rules = [self._rule(k) for k in range(len(self.weights) - 1)]
        shares = np.stack([own.ravel() for own in np.meshgrid(*[nodes for nodes, _ in rules])], axis=-1)
        left = np.cumprod(1 - shares, axis=-1)
        one = np.ones((len(shares), 1))
        self.x = np.concatenate((shares, one), axis=-1) * np.concatenate((one, left), axis=-1)
        masses = np.prod(np.meshgrid(*[mass for _, mass in rules]), axis=0).ravel() * np.exp(
            self._own(self.x)
        )
        self.log_total = np.log(masses.sum())
        self.masses = masses / masses.sum()

    def _rule(self, k):
        a, b = self.weights[k], (self.weights + self.rests)[k + 1 :].sum()
        nodes, masses = roots_jacobi(400, b - 1, a - 1)
        return (nodes + 1) / 2, masses * 2.0 ** (1 - a - b)

    def _own(self, x):
        pairs = zip(self.functions, self.names, strict=True)
        return sum((coefficients * self.known[name](x)).sum(axis=-1) for coefficients, name in pairs)

    def logpdf(self, x):
        s = x[..., ::-1].cumsum(axis=-1)[..., ::-1]
        sticks = ((self.weights - 1) * np.log(x) + self.rests * np.log(s)).sum(axis=-1)
        return sticks + self._own(x) - self.log_total

    def entropy(self):
        return -(self.masses @ self.logpdf(self.x))

    def mean(self):
        return self.masses @ self.x

    def var(self):
        return self.masses @ (self.x - self.mean()) ** 2


def in_scipy(q):
    """Return SciPy's distribution for a single distribution of one variable."""
    match q:
        case Normal():
            return stats.norm(q.mean, 1.0 / np.sqrt(q.precision))
        case TruncatedNormal():
            unit = 1.0 / np.sqrt(q.precision)
            # the entropy of SciPy 1.17 is NaN for an infinite bound
            return stats.truncnorm(-q.location / unit, 40.0, loc=q.location, scale=unit)
        case TabulatedSticks():
            return FunctionsOfPieces(q)
        case Tabulated():
            return FunctionsOfScalar(q)
        case PolyaGamma():
            return PolyaGammaDensity(float(q.tilt))
        case SingleEffect() | SpikeSlab():
            return OverSupports(q)
        case MultivariateNormal():
            return stats.multivariate_normal(q.mean, np.linalg.inv(q.precision))
        case Gamma():
            return stats.gamma(q.shape, scale=1.0 / q.rate)
        case Wishart():
            return stats.wishart(float(q.df), np.linalg.inv(q.inverse_scale))
        case Dirichlet():
            return stats.dirichlet(q.concentration)
        case Beta():
            return stats.beta(q.a, q.b)
        case Bernoulli():
            return stats.bernoulli(q.probability)
        case Poisson():
            return stats.poisson(q.rate)
        case Categorical():
            return stats.rv_discrete(values=(np.arange(q.event_shape[0]), q.probabilities))
    raise AssertionError(q)


_JOINT = (NormalGamma, NormalWishart, MultivariateNormalGamma, TiedNormalGamma, TiedNormalWishart)


def log_density_in_scipy(q, value):
    """Return SciPy's log-density of one value."""
    match q:
        case NormalGamma():
            location, precision = value
            conditional = stats.norm(q.mean, 1.0 / np.sqrt(q.mean_precision * precision))
            return conditional.logpdf(location) + stats.gamma(q.shape, scale=1.0 / q.rate).logpdf(precision)
        case MultivariateNormalGamma():
            location, precision = value
            conditional = stats.multivariate_normal(q.mean, np.linalg.inv(q.mean_precision * precision))
            return conditional.logpdf(location) + stats.gamma(q.shape, scale=1.0 / q.rate).logpdf(precision)
        case NormalWishart():
            location, precision = value
            conditional = stats.multivariate_normal(q.mean, np.linalg.inv(q.mean_precision * precision))
            wishart = stats.wishart(float(q.df), np.linalg.inv(q.inverse_scale))
            return conditional.logpdf(location) + wishart.logpdf(precision)
        case TiedNormalGamma():
            location, precision = value
            conditional = stats.norm(q.mean, 1.0 / np.sqrt(q.mean_precision * precision))
            marginal = stats.gamma(q.shape, scale=1.0 / q.rate)
            return conditional.logpdf(location).sum() + marginal.logpdf(precision)
        case TiedNormalWishart():
            locations, precision = value
            conditional = sum(
                stats.multivariate_normal(mean, np.linalg.inv(k * precision)).logpdf(location)
                for location, mean, k in zip(locations, q.mean, q.mean_precision, strict=True)
            )
            return conditional + stats.wishart(float(q.df), np.linalg.inv(q.inverse_scale)).logpdf(precision)
        case StickBreaking():
            # the first weights as shares of what is left; dx = prod of s_k dv
            rest = 1.0 - np.concatenate(([0.0], value[:-1].cumsum()))
            shares = value[:-1] / rest[:-1]
            return stats.beta(q.a, q.b).logpdf(shares).sum() - np.log(rest[:-1]).sum()
        case Bernoulli() | Categorical() | Poisson():
            return in_scipy(q).logpmf(value)
    return in_scipy(q).logpdf(value)


def singles(q):
    return [q[index] for index in np.ndindex(q.batch_shape)] if q.batch_shape else [q]


def test_log_density(q, laws):
    for single in singles(q):
        for seed in range(5):
            value = laws.as_one(laws.draw(single, seed=seed))
            expected = log_density_in_scipy(single, value)
            np.testing.assert_allclose(single.log_density(value), expected, rtol=1e-9, atol=1e-9)


def test_entropy(q):
    for single in singles(q):
        if isinstance(single, (NormalGamma, NormalWishart)):
            size = single.event_shape[0] if single.event_shape else 1
            marginal = single.precision_marginal
            given = 0.5 * size * np.log(2 * np.pi * np.e / single.mean_precision)
            expected = in_scipy(marginal).entropy() + given - 0.5 * marginal.expected_statistics[0]
        elif isinstance(single, (TiedNormalGamma, TiedNormalWishart)):
            # of each location D numbers, whose Normal has k Lambda as precision
            size = single.event_shape[1] if isinstance(single, TiedNormalWishart) else 1
            marginal = single.precision_marginal
            given = 0.5 * size * np.log(2 * np.pi * np.e / single.mean_precision)
            log_det = marginal.expected_statistics[0]
            expected = in_scipy(marginal).entropy() + np.sum(given - 0.5 * log_det)
        elif isinstance(single, MultivariateNormalGamma):
            precision = stats.gamma(single.shape, scale=1.0 / single.rate)
            at_one = stats.multivariate_normal(single.mean, np.linalg.inv(single.mean_precision)).entropy()
            log_precision = digamma(single.shape) - np.log(single.rate)
            expected = precision.entropy() + at_one - 0.5 * len(single.mean) * log_precision
        elif isinstance(single, StickBreaking):
            # of the shares, and E log of the volume s_2 ... s_{K-1}, where each 1 - v_j stands K - 1 - j times
            times = np.arange(len(single.a) - 1, -1, -1)
            log_left = digamma(single.b) - digamma(single.a + single.b)
            expected = stats.beta(single.a, single.b).entropy().sum() + times @ log_left
        else:
            expected = in_scipy(single).entropy()
        np.testing.assert_allclose(single.entropy(), expected, rtol=1e-9, atol=1e-9)


def test_mean_and_variance(q):
    if isinstance(q, _JOINT):
        pytest.skip("the moments of joint distributions are tested by their draws")
    for single in singles(q):
        if isinstance(q, StickBreaking):
            _check_moments_of_pieces(single)
            continue
        reference = in_scipy(single)
        if isinstance(q, Categorical):
            labels = np.arange(q.event_shape[0])
            expected = reference.pmf(labels)
            np.testing.assert_allclose(single.variance, expected * (1 - expected), rtol=1e-12)
        elif isinstance(q, MultivariateNormal):
            expected = reference.mean
            np.testing.assert_allclose(single.covariance, reference.cov, rtol=1e-9)
        else:
            expected = reference.mean()
            np.testing.assert_allclose(single.variance, reference.var(), rtol=1e-9)
        np.testing.assert_allclose(single.mean, expected, rtol=1e-9)


def _check_moments_of_pieces(q):
    for power, moment in ((1, q.mean), (2, q.variance + q.mean**2)):
        rests = np.cumprod([1.0, *(beta.moment(power) for beta in map(stats.beta, q.b, q.a))])
        taken = [*(beta.moment(power) for beta in map(stats.beta, q.a, q.b)), 1.0]
        np.testing.assert_allclose(moment, rests * taken, rtol=1e-9)


def test_stick_breaking_is_a_dirichlet_where_its_concentrations_add_up():
    dirichlet, sticks = Dirichlet([1.5, 2.0, 4.0]), StickBreaking([1.5, 2.0], [6.0, 4.0])
    x = dirichlet.sample(5, seed=0)
    np.testing.assert_allclose(sticks.log_density(x), dirichlet.log_density(x), rtol=1e-12)
    np.testing.assert_allclose(sticks.natural[0], dirichlet.natural[0], rtol=1e-15)
    np.testing.assert_array_equal(sticks.natural[1], 0.0)
    assert sticks.entropy() == pytest.approx(dirichlet.entropy(), rel=1e-12)
    np.testing.assert_allclose(sticks.mode(), dirichlet.mode(), rtol=1e-14)


def test_a_vector_of_one_with_its_precision_is_the_number_with_its_own():
    number = NormalGamma([0.5, -1.0], 2.0, 3.0, [1.5, 4.0])
    vector = MultivariateNormalGamma([[0.5], [-1.0]], [[2.0]], 3.0, [1.5, 4.0])
    location, precision = number.sample(4, seed=0)
    np.testing.assert_allclose(
        vector.log_density((location[..., None], precision)),
        number.log_density((location, precision)),
        rtol=1e-13,
    )
    np.testing.assert_allclose(vector.entropy(), number.entropy(), rtol=1e-13)
    np.testing.assert_allclose(vector.log_partition, number.log_partition, rtol=1e-13)
    np.testing.assert_allclose(vector.kl(vector[::-1]), number.kl(number[::-1]), rtol=1e-12)
    for one, other in zip(vector.mode(), number.mode(), strict=True):
        np.testing.assert_allclose(np.squeeze(one), other, rtol=1e-14)


def test_covariance_of_weights():
    q = Dirichlet([1.5, 2.0, 4.0])
    np.testing.assert_allclose(q.covariance, stats.dirichlet([1.5, 2.0, 4.0]).cov(), rtol=1e-12)


def test_variance_of_the_location_given_no_precision():
    q = NormalGamma(0.5, 2.0, 3.0, 1.5)
    student = stats.t(df=6.0, loc=0.5, scale=np.sqrt(1.5 / (3.0 * 2.0)))
    np.testing.assert_allclose(q.variance, student.var(), rtol=1e-12)
    assert NormalGamma(0.0, 1.0, 1.0, 1.0).variance == np.inf
    scale = np.array([[2.0, 0.5], [0.5, 1.0]])
    joint = NormalWishart([1.0, -1.0], 0.7, 6.0, scale)
    student = stats.multivariate_t([1.0, -1.0], scale / (0.7 * 5.0), df=5.0)
    np.testing.assert_allclose(joint.covariance, student.shape * 5.0 / 3.0, rtol=1e-12)
    assert np.all(NormalWishart([0.0, 0.0], 1.0, 3.0, scale).covariance == np.inf)
    shared = MultivariateNormalGamma([1.0, -1.0], scale, 3.0, 4.0)
    student = stats.multivariate_t([1.0, -1.0], 4.0 / 3.0 * np.linalg.inv(scale), df=6.0)
    np.testing.assert_allclose(shared.covariance, student.shape * 6.0 / 4.0, rtol=1e-12)
    assert np.all(np.isinf(MultivariateNormalGamma([0.0, 0.0], scale, 1.0, 1.0).covariance))


@pytest.mark.parametrize(
    ("q", "outside"),
    [
        (Gamma(2.0, 1.0), -1.0),
        (Beta(2.0, 2.0), 1.5),
        (Dirichlet([2.0, 2.0]), [0.5, 0.6]),
        (Dirichlet([2.0, 2.0]), [-0.5, 1.5]),
        (Wishart(3.0, np.eye(2)), -np.eye(2)),
        (NormalGamma(0.0, 1.0, 2.0, 1.0), (0.0, -1.0)),
        (NormalWishart([0.0, 0.0], 1.0, 3.0, np.eye(2)), ([0.0, 0.0], -np.eye(2))),
        (MultivariateNormalGamma([0.0, 0.0], np.eye(2), 2.0, 1.0), ([0.0, 0.0], -1.0)),
        (TiedNormalGamma([0.0, 0.0], 1.0, 2.0, 1.0), ([0.0, 0.0], -1.0)),
        (TiedNormalWishart(np.zeros((3, 2)), 1.0, 3.0, np.eye(2)), (np.zeros((3, 2)), -np.eye(2))),
        (Bernoulli(0.5), 0.5),
        (TruncatedNormal(0.5, 1.0), -0.1),
        (PolyaGamma(0.5), -0.1),
        (Poisson(2.0), 1.5),
        (Poisson(2.0), -1),
        (StickBreaking([2.0, 2.0], [2.0, 2.0]), [0.5, 0.3, 0.3]),
        (StickBreaking([2.0, 2.0], [2.0, 2.0]), [0.7, 0.5, -0.2]),
        (StickBreaking([2.0, 2.0], [2.0, 2.0]), [1.0, 0.0, 0.0]),
        (SingleEffect([0.5, 0.5], [1.0, 2.0], [1.0, 1.0]), [0.3, 0.2]),
        (SingleEffect([0.5, 0.5], [1.0, 2.0], [1.0, 1.0]), [0.0, 0.0]),
    ],
)
def test_values_outside_the_support_have_no_density(q, outside):
    assert q.log_density(outside) == -np.inf


def test_the_density_of_polya_gamma_numbers_integrates_to_one():
    for tilt in (0.1, 1.0, 6.0, 20.0):
        assert PolyaGammaDensity(tilt).expect(lambda x: 1.0) == pytest.approx(1.0, rel=1e-10)


def test_densities_at_the_edge_of_the_support():
    assert TruncatedNormal(0.0, 1.0).log_density(0.0) == pytest.approx(np.log(2) - 0.5 * np.log(2 * np.pi))

    assert Gamma(1.0, 2.0).log_density(0.0) == pytest.approx(np.log(2.0))
    assert Gamma(2.0, 2.0).log_density(0.0) == -np.inf
    assert Gamma(0.5, 2.0).log_density(0.0) == np.inf
    assert Beta(1.0, 3.0).log_density([0.0, 1.0]) == pytest.approx([np.log(3.0), -np.inf])


def test_entries_of_a_single_effect_go_together():
    q = SingleEffect([0.2, 0.5, 0.3], [0.4, -2.0, 1.0], [2.0, 0.5, 4.0])
    draws = q.sample(200_000, seed=1)
    np.testing.assert_allclose(q.covariance, np.cov(draws.T), atol=0.03)
    # the product of two different entries is zero
    np.testing.assert_allclose(q.covariance[0, 1], -q.mean[0] * q.mean[1], rtol=1e-14)


@pytest.mark.parametrize("end", [0.05, 0.3, 0.5, 0.9, 0.975])
def test_quantiles_of_entries_that_may_be_zero(end):
    q = SpikeSlab([0.2, 0.9, 0.5, 1.0], [0.4, -2.0, 1.0, 0.3], [2.0, 0.5, 4.0, 1.0])
    (marginals,) = q.entry_marginals((end, end))
    draws = q.sample(200_000, seed=0)
    assert marginals.lower is not None
    # an interval about each quantile has the probability that it must have, also with an atom at zero
    below, upto = (
        (draws < marginals.lower - 1e-12).mean(axis=0),
        (draws <= marginals.lower + 1e-12).mean(axis=0),
    )
    assert np.all(below <= end + 0.005)
    assert np.all(upto >= end - 0.005)
