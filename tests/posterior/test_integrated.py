"""Posteriors integrated over some globals: beside quadrature, for one and two numbers; lattices; what is refused."""

from functools import partial

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp, ndtr

import caviar as cv
from caviar.posterior.integration.lattice import Lattice, explored

OBS = cv.Plate("obs")
GROUP = np.repeat(np.arange(4), 3)
Y = np.array([1.2, 0.7, 1.9, -0.4, 0.1, -0.9, 2.2, 1.4, 1.8, 0.2, -0.2, 0.6])
LEVEL_VARIANCE = 4.0


def _groups(noise):
    a = cv.Normal("a", 0, cv.Gamma("between", 1.5, 0.5), plates=cv.Plate("group", 4))
    at = cv.Normal("mu", 0, 1 / LEVEL_VARIANCE) + a[cv.Data("g", plates=OBS)]
    return cv.Model(cv.Normal("y", at, noise, plates=OBS)), {"y": Y, "g": GROUP}


def _given(between, noise):
    """Return log p(y | precisions), and mean and variance of the level given them: dense algebra."""
    same = np.equal.outer(GROUP, GROUP)
    covariance = LEVEL_VARIANCE + same / between + np.eye(12) / noise
    solved = np.linalg.solve(covariance, np.column_stack([Y, np.ones(12)]))
    log_density = -0.5 * (Y @ solved[:, 0] + np.linalg.slogdet(2 * np.pi * covariance)[1])
    return (
        log_density,
        LEVEL_VARIANCE * solved[:, 0].sum(),
        LEVEL_VARIANCE * (1 - LEVEL_VARIANCE * solved[:, 1].sum()),
    )


class Exact:
    """The posterior by quadrature along the logarithms of the precisions, whose grids are given."""

    def __init__(self, log_between, log_noise=None):
        self.between = np.exp(log_between)
        self.noise = np.array([4.0]) if log_noise is None else np.exp(log_noise)
        log_prior = (
            stats.gamma(1.5, scale=2.0).logpdf(self.between)
            + log_between
            + np.log(log_between[1] - log_between[0])
        )
        of_noise = 0.0
        if log_noise is not None:
            of_noise = (
                stats.gamma(3.0, scale=1.0).logpdf(self.noise)
                + log_noise
                + np.log(log_noise[1] - log_noise[0])
            )
        told = np.array([[_given(b, n) for n in self.noise] for b in self.between])
        log_masses = told[..., 0] + log_prior[:, None] + of_noise
        self.log_evidence = logsumexp(log_masses)
        self.weights = np.exp(log_masses - self.log_evidence)
        self.means, self.sds = told[..., 1], np.sqrt(told[..., 2])
        self.mean = (self.weights * self.means).sum()
        self.sd = np.sqrt((self.weights * (self.sds**2 + (self.means - self.mean) ** 2)).sum())

    def below(self, end):
        """Return the probability that the level is below an end."""
        return (self.weights * ndtr((end - self.means) / self.sds)).sum()

    def between_below(self, end):
        """Return the probability that the precision between groups is below an end."""
        return np.interp(np.log(end), np.log(self.between), np.cumsum(self.weights.sum(axis=1)))


@pytest.mark.thinned(2)
@pytest.mark.parametrize("factors", [None, "apart"])
def test_a_precision_between_few_groups_is_exact(factors):
    """The rest is Normal: in one factor the bound is exact, and apart its correction is."""
    model, data = _groups(4.0)
    posterior = model.fit(data, factors=factors, tol=1e-10)
    found, exact = posterior.integrated(data, "between"), Exact(np.linspace(-12, 12, 2_001))
    assert found.log_evidence == pytest.approx(exact.log_evidence, abs=1e-6)
    assert posterior.elbo < found.elbo < exact.log_evidence + 1e-6
    if factors is None:
        assert found.elbo == pytest.approx(exact.log_evidence, abs=1e-6)
    assert found.mean("mu") == pytest.approx(exact.mean, abs=1e-5)
    assert found.sd("mu") == pytest.approx(exact.sd, rel=1e-5)
    assert [exact.below(end) for end in found.interval("mu", 0.9)] == pytest.approx([0.05, 0.95], abs=2e-3)
    of_between = exact.weights[:, 0]
    assert found.mean("between") == pytest.approx(of_between @ exact.between, rel=1e-4)
    sd = found.transformed(lambda tau: tau**-0.5, "between")
    assert sd.mean == pytest.approx(of_between @ exact.between**-0.5, rel=1e-4)
    assert sd.sd == pytest.approx(np.sqrt(of_between @ (exact.between**-0.5 - sd.mean) ** 2), rel=1e-3)
    ends = found.interval("between", 0.9)
    assert [exact.between_below(end) for end in ends] == pytest.approx([0.05, 0.95], abs=5e-3)
    # mean field is far off: this is what it is for
    assert np.sqrt(posterior["mu"].variance) < 0.93 * exact.sd


def test_predictions_are_mixtures_of_those_of_the_fits():
    model, data = _groups(4.0)
    found = model.fit(data, tol=1e-10).integrated(data, "between")
    told, exact = found.predict({"g": np.array([0])})["y"], Exact(np.linspace(-12, 12, 2_001))
    assert sum(weight for weight, _, _ in told.parts) == pytest.approx(1.0)
    # the first group's effect given the precisions, by dense algebra
    of_each = []
    for between in exact.between:
        covariance = LEVEL_VARIANCE + np.equal.outer(GROUP, GROUP) / between + np.eye(12) / 4.0
        with_new = LEVEL_VARIANCE + (GROUP == 0) / between
        solved = np.linalg.solve(covariance, with_new)
        of_each.append((solved @ Y, LEVEL_VARIANCE + 1 / between + 0.25 - solved @ with_new))
    means, variances = np.array(of_each).T
    weights = exact.weights[:, 0]
    assert told.mean == pytest.approx(weights @ means, abs=1e-5)
    assert told.sd**2 == pytest.approx(weights @ (variances + (means - weights @ means) ** 2), rel=1e-5)


@pytest.mark.slow
def test_two_precisions_leave_nothing_approximate():
    model, data = _groups(cv.Gamma("tau", 3.0, 1.0))
    found = model.fit(data, tol=1e-10).integrated(data, ["between", "tau"])
    exact = Exact(np.linspace(-9, 9, 181), np.linspace(-4, 4, 81))
    assert found.log_evidence == pytest.approx(exact.log_evidence, abs=2e-4)
    assert found.elbo == pytest.approx(exact.log_evidence, abs=2e-4)
    assert found.mean("mu") == pytest.approx(exact.mean, abs=1e-3)
    assert found.sd("mu") == pytest.approx(exact.sd, rel=1e-3)
    assert found.mean("tau") == pytest.approx((exact.weights * exact.noise).sum(), rel=2e-3)
    assert exact.between_below(found.interval("between", 0.9)[0]) == pytest.approx(0.05, abs=0.01)


def test_a_lattice_finds_a_correlated_density_wherever_it_begins():
    covariance = np.array([[1.0, 0.8], [0.8, 2.0]])
    density = stats.multivariate_normal([2.0, -1.0], covariance)
    root = 0.8 * np.linalg.cholesky(covariance)
    points = explored(lambda place, _: float(density.logpdf(root @ np.array(place))), 2, 12.0)
    lattice = Lattice(np.zeros(2), root, points)
    assert logsumexp(lattice.log_masses) == pytest.approx(0.0, abs=1e-4)
    mean, found = lattice.moments()
    np.testing.assert_allclose(mean, [2.0, -1.0], atol=1e-3)
    np.testing.assert_allclose(found, covariance, atol=2e-3)
    vectors, weights = lattice.refined(8)
    order = np.argsort(vectors[:, 1])
    ends = np.interp([0.05, 0.95], np.cumsum(weights[order]), vectors[order, 1])
    np.testing.assert_allclose(ends, -1.0 + np.sqrt(2.0) * np.array([-1.645, 1.645]), atol=0.02)


def test_a_bent_lattice_has_few_points_in_a_long_tail():
    """Of the log of a Gamma variable, whose density falls off like an exponential on the left."""
    density, found = stats.loggamma(0.2), []
    for bend in (0.0, 0.15):
        empty = Lattice(np.zeros(1), np.array([[0.6]]), {}, bend)
        points = explored(partial(_log_density_at, density, empty), 1, 9.0)
        lattice = Lattice(empty.center, empty.root, points, bend)
        found.append(len(points))
        vectors, weights = lattice.refined(32)
        order = np.argsort(vectors[:, 0])
        ends = np.interp([0.05, 0.95], np.cumsum(weights[order]), vectors[order, 0])
        np.testing.assert_allclose(density.cdf(ends), [0.05, 0.95], atol=0.005)
        np.testing.assert_allclose(lattice.moments()[0], density.mean(), atol=0.1)
    assert found[1] < 0.4 * found[0]


def _log_density_at(density, lattice, place, _):
    return float(density.logpdf(lattice.at(np.array([place]))[0, 0]))


def test_a_density_that_does_not_fall_off_is_refused():
    with pytest.raises(cv.ModelError, match="does not fall off"):
        explored(lambda place, _: 0.0, 1, 5.0)


def test_what_cannot_be_integrated_over_is_refused():
    model, data = _groups(cv.Gamma("tau", 3.0, 1.0))
    posterior = model.fit(data, max_iter=20, tol=1e-3)
    with pytest.raises(cv.ParameterError, match="over takes names of global variables"):
        posterior.integrated(data, "sigma")
    with pytest.raises(cv.ParameterError, match="up to 3 numbers"):
        posterior.integrated(data, "a")
    with pytest.raises(cv.ModelError, match="point mass"):
        model.fit(data, point=["tau"], tol=1e-3).integrated(data, "tau")
    with pytest.raises(cv.ModelError, match="an earlier posterior"):
        posterior.update(data, tol=1e-3).integrated(data, "tau")
