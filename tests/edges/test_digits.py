"""Priors of any size: where there is one factor, the ELBO is the evidence, which mpmath has to hundreds of digits."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csr_array

import caviar as cv

DIGITS = 700


@dataclass(frozen=True)
class Case:
    """A model with one factor, its data, and its log evidence."""

    model: cv.Model
    data: dict[str, Any]
    evidence: Any


def exact(value):
    return mp.mpf(float(value))


def rising(a, n):
    """Return log Gamma(a + n) - log Gamma(a)."""
    return mp.loggamma(exact(a) + n) - mp.loggamma(exact(a))


def dirichlet(*concentration):
    x = np.repeat([0, 1, 2], [5, 3, 2])
    total = mp.fsum(map(exact, concentration))
    evidence = mp.fsum(rising(a, n) for a, n in zip(concentration, (5, 3, 2), strict=True))
    p = cv.Dirichlet("p", list(concentration))
    model = cv.Model(cv.Categorical("x", p, plates=cv.Plate("obs")))
    return Case(model, {"x": x}, evidence - mp.loggamma(total + 10) + mp.loggamma(total))


def beta(a, b):
    total = exact(a) + exact(b)
    evidence = rising(a, 3) + rising(b, 2) - mp.loggamma(total + 5) + mp.loggamma(total)
    model = cv.Model(cv.Bernoulli("x", cv.Beta("p", a, b), plates=cv.Plate("obs")))
    return Case(model, {"x": np.array([1, 1, 0, 1, 0])}, evidence)


def sticks(gamma):
    counts, evidence = (5, 3, 2), mp.mpf(0)
    for k in range(2):
        a, b, c = counts[k], sum(counts[k + 1 :]), exact(gamma)
        evidence += mp.log(mp.beta(1 + a, c + b)) - mp.log(mp.beta(1, c))
    model = cv.Model(cv.Categorical("x", cv.StickBreaking("p", gamma, 3), plates=cv.Plate("obs")))
    return Case(model, {"x": np.repeat([0, 1, 2], counts)}, evidence)


def gamma_marginal(shape, rate, more, rest):
    """Return log of the integral of Gamma(r; shape, rate) r^more exp(-rest r)."""
    s, r = exact(shape), exact(rate)
    return rising(shape, more) + s * mp.log(r) - (s + more) * mp.log(r + rest)


def poisson(shape, rate, *counts):
    evidence = gamma_marginal(shape, rate, mp.fsum(map(exact, counts)), len(counts))
    evidence -= mp.fsum(mp.loggamma(exact(n) + 1) for n in counts)
    model = cv.Model(cv.Poisson("x", cv.Gamma("r", shape, rate), plates=cv.Plate("obs")))
    return Case(model, {"x": np.array(counts)}, evidence)


def gamma(shape, rate, own_shape, *x):
    s = exact(own_shape)
    evidence = gamma_marginal(shape, rate, s * len(x), mp.fsum(map(exact, x)))
    evidence += mp.fsum((s - 1) * mp.log(exact(value)) for value in x) - len(x) * mp.loggamma(s)
    model = cv.Model(cv.Gamma("x", own_shape, cv.Gamma("r", shape, rate), plates=cv.Plate("obs")))
    return Case(model, {"x": np.array(x)}, evidence)


def precision(shape, rate, mean, *x):
    squares = mp.fsum((exact(value) - exact(mean)) ** 2 for value in x)
    evidence = gamma_marginal(shape, rate, mp.mpf(len(x)) / 2, squares / 2)
    evidence -= mp.mpf(len(x)) / 2 * mp.log(2 * mp.pi)
    model = cv.Model(cv.Normal("x", mean, cv.Gamma("t", shape, rate), plates=cv.Plate("obs")))
    return Case(model, {"x": np.array(x)}, evidence)


def _about(mean, mean_precision, x):
    """Return the squares about the prior mean that are left once the mean is integrated out with unit precision."""
    away = [exact(value) - exact(mean) for value in x]
    return mp.fsum(v * v for v in away) - mp.fsum(away) ** 2 / (exact(mean_precision) + len(x))


def normal(mean, precision_of_mean, known, *x):
    k, t = exact(precision_of_mean), exact(known)
    away = [exact(value) - exact(mean) for value in x]
    squares = mp.fsum(v * v for v in away) - t * mp.fsum(away) ** 2 / (k + len(x) * t)
    evidence = mp.mpf(len(x)) / 2 * mp.log(t / (2 * mp.pi)) + mp.log(k / (k + len(x) * t)) / 2
    prior = cv.Normal("m", mean, precision_of_mean)
    model = cv.Model(cv.Normal("x", prior, known, plates=cv.Plate("obs")))
    return Case(model, {"x": np.array(x)}, evidence - t * squares / 2)


def normal_gamma(mean, mean_precision, shape, rate, *x):
    k = exact(mean_precision)
    evidence = gamma_marginal(shape, rate, mp.mpf(len(x)) / 2, _about(mean, mean_precision, x) / 2)
    evidence += mp.log(k / (k + len(x))) / 2 - mp.mpf(len(x)) / 2 * mp.log(2 * mp.pi)
    theta = cv.NormalGamma("t", mean, mean_precision, shape, rate)
    return Case(cv.Model(cv.Normal("x", theta, plates=cv.Plate("obs"))), {"x": np.array(x)}, evidence)


ROWS = np.array([[0.3, -1.2], [1.4, 0.7], [-0.6, 0.2], [0.9, 0.1]])
SCALE = np.array([[2.0, 0.5], [0.5, 1.0]])


def _log_multigamma(half):
    return mp.loggamma(half) + mp.loggamma(half - mp.mpf(1) / 2) + mp.log(mp.pi) / 2


def wishart(df, scale, mean_precision=None):
    """Vectors with a known mean of 0, or with a mean of this precision beside its Wishart, of prior mean 0."""
    n, b = len(ROWS), scale * SCALE
    rows, prior, nu = mp.matrix(ROWS.tolist()), mp.matrix(b.tolist()), exact(df)
    scatter = rows.T * rows
    evidence = -n * mp.log(mp.pi) + _log_multigamma((nu + n) / 2) - _log_multigamma(nu / 2)
    if mean_precision is None:
        model = cv.MultivariateNormal("x", np.zeros(2), cv.Wishart("L", df, b), plates=cv.Plate("obs"))
    else:
        k, total = exact(mean_precision), mp.matrix([mp.fsum(rows[:, j]) for j in range(2)])
        scatter -= total * total.T / (k + n)
        evidence += mp.log(k / (k + n))
        theta = cv.NormalWishart("t", np.zeros(2), mean_precision, df, b)
        model = cv.MultivariateNormal("x", theta, plates=cv.Plate("obs"))
    evidence += nu / 2 * mp.log(mp.det(prior)) - (nu + n) / 2 * mp.log(mp.det(prior + scatter))
    return Case(cv.Model(model), {"x": ROWS}, evidence)


TINY = 4.94e-324


def multinomial(concentration, *counts, form=np.asarray):
    """The coefficients of rows of counts, and what all of them make of a Dirichlet."""
    total, evidence = mp.fsum(map(exact, concentration)), mp.mpf(0)
    for row in counts:
        evidence += mp.loggamma(mp.fsum(map(exact, row)) + 1)
        evidence -= mp.fsum(mp.loggamma(exact(n) + 1) for n in row)
    sums = [mp.fsum(map(exact, column)) for column in zip(*counts, strict=True)]
    evidence += mp.fsum(rising(a, n) for a, n in zip(concentration, sums, strict=True))
    evidence -= mp.loggamma(total + mp.fsum(sums)) - mp.loggamma(total)
    p = cv.Dirichlet("p", list(concentration))
    model = cv.Model(cv.Multinomial("x", None, p, plates=cv.Plate("obs")))
    return Case(model, {"x": form(np.array(counts, dtype=float))}, evidence)


CASES: dict[str, Callable[[], Case]] = {
    "dirichlet 1e12": lambda: dirichlet(1e12, 2e12, 3e12),
    "dirichlet 1e15": lambda: dirichlet(1e15, 1e15, 1e15),
    "dirichlet 1e300": lambda: dirichlet(1e300, 1e300, 1e300),
    "dirichlet 1e-300": lambda: dirichlet(1e-300, 1e-300, 1e-300),
    "dirichlet mixed": lambda: dirichlet(1e-10, 1e16, 1e-15),
    "dirichlet of all sizes": lambda: dirichlet(1e150, 1.0, 1e-150),
    "beta 1e12": lambda: beta(1e12, 3e12),
    "beta mixed": lambda: beta(1e-20, 1e16),
    "beta tiny": lambda: beta(1e-20, 1e-20),
    "sticks 1e12": lambda: sticks(1e12),
    "sticks 1e-200": lambda: sticks(1e-200),
    "counts of 1e7": lambda: multinomial([1e-4] * 3, [1e7, 3, 0]),
    "counts of 1e12": lambda: multinomial([1.0, 1.0], [1e12, 5], [3, 0], [0, 0]),
    "counts of 1e15": lambda: multinomial([1.0, 1.0], [1e15, 5]),
    "counts of 2^53": lambda: multinomial([1.0, 2.0, 0.5], [2, 2.0**53 - 8, 3]),
    "sparse counts": lambda: multinomial([1.0, 2.0, 0.5], [0, 5, 1e14], [1, 0, 2], form=csr_array),
    "poisson 1e12": lambda: poisson(3e12, 1e12, 2, 4, 3),
    "poisson 1e-300": lambda: poisson(1e-300, 1e-300, 2, 4, 3),
    "poisson of large counts": lambda: poisson(2.0, 1.0, 1e9, 2e9),
    "gamma of subnormal numbers": lambda: gamma(2.0, 3.0, 1.5, *[1e-310] * 10),
    "gamma of the smallest numbers": lambda: gamma(2.0, 3.0, 1.5, TINY, TINY, 1.0),
    "gamma 1e12": lambda: gamma(2e12, 1e12, 1.5, 0.3, 0.8),
    "gamma of large numbers": lambda: gamma(2.0, 1e290, 1.5, 1e300, 3e300),
    "precision 1e12": lambda: precision(1e12, 1e12, 0.5, 1.0, 2.0, -1.0),
    "precision 1e160": lambda: precision(1e160, 1e160, 0.5, 1.0, 2.0, -1.0),
    "precision 1e-200": lambda: precision(1e-200, 1e-200, 0.5, 1.0, 2.0, -1.0),
    "normal 1e200": lambda: normal(3.0, 1e200, 1.0, 1.0, 2.0, -1.0),
    "normal 1e-200": lambda: normal(3.0, 1e-200, 1.0, 1.0, 2.0, -1.0),
    "normal-gamma 1e12": lambda: normal_gamma(0.5, 1e12, 1e12, 1e12, 1.0, 2.0, -1.0),
    "normal-gamma of a certain mean": lambda: normal_gamma(0.5, 1e40, 2.0, 3.0, 1.0, 2.0, -1.0),
    "normal-gamma of a certain mean far away": lambda: normal_gamma(-1e30, 1e60, 0.1, 1e9, 1e10, 3e10),
    "normal-gamma of huge rows": lambda: normal_gamma(1e-90, 1e56, 1e-9, 1e-64, 5e91, 1e92, 2e91),
    "normal-gamma 1e-100": lambda: normal_gamma(0.5, 1e-100, 1e-100, 1e-100, 1.0, 2.0, -1.0),
    "wishart 1e12": lambda: wishart(1e12, 1e12),
    "wishart at the edge": lambda: wishart(1.0 + 1e-12, 1e-9),
    "normal-wishart 1e12": lambda: wishart(1e12, 1e12, 1e12),
    "normal-wishart at the edge": lambda: wishart(1.0 + 1e-12, 1e-9, 1e-12),
}


@pytest.mark.thinned(24)
@pytest.mark.parametrize("name", CASES)
def test_the_elbo_of_one_factor_is_the_evidence(name):
    with mp.workdps(DIGITS):
        case = CASES[name]()
    evidence = float(case.evidence)
    elbo = case.model.fit(case.data).elbo
    assert_allclose(elbo, evidence, rtol=1e-12, atol=1e-9)
    assert elbo <= evidence + 1e-11 * max(1.0, abs(evidence)), "a bound"


@pytest.mark.filterwarnings("ignore::caviar.LostDigitsWarning")
def test_more_rows_of_a_stream_keep_the_digits():
    """After 1e12 rows the belief is a prior as large; ten more have the evidence of the ten."""
    obs = cv.Plate("obs")
    model = cv.Model(cv.Categorical("x", cv.Dirichlet("p", [1.0, 1.0, 1.0]), plates=obs))
    posterior = model.fit({"x": np.arange(3)}, sample_weight=[1e12, 2e12, 3e12])
    with mp.workdps(DIGITS):
        case = dirichlet(*posterior["p"].concentration)
    assert_allclose(posterior.update(case.data).elbo, float(case.evidence), rtol=0, atol=1e-9)


@pytest.mark.slow
def test_a_prior_that_is_too_small_is_named():
    t = cv.Gamma("t", 1.0, 1e-320)
    model = cv.Model(cv.Normal("x", 0.0, t, plates=cv.Plate("obs")))
    with pytest.raises(cv.ImproperError, match=r"'t' has a rate of 1e-320"):
        model.fit({"x": np.zeros(4)})


def test_a_prior_that_is_too_large_is_named():
    t = cv.Gamma("t", 1e300, 1e-200)
    model = cv.Model(cv.Normal("x", 0.0, t, plates=cv.Plate("obs")))
    with pytest.raises(cv.ImproperError, match=r"'t' has a shape of 1e\+300"):
        model.fit({"x": np.zeros(2)})


@pytest.mark.thinned(4)
@pytest.mark.parametrize("offset", range(11))
@pytest.mark.parametrize("height", [0.0, 1e4, 1e8])
@pytest.mark.parametrize("known", [False, True])
def test_a_regression_on_columns_far_from_zero_is_right_or_warned_of(offset, height, known):
    """The promise of the warning: an ELBO that is off by more than 0.001 nats is never told without it."""
    rng, n, k = np.random.default_rng(offset), 50, 1e-4
    far = 10.0**offset
    x = rng.normal(size=n) + far
    X, y = np.column_stack([np.ones(n), x]), (x - far) + rng.normal(size=n) + height
    obs = cv.Plate("obs")
    columns = cv.Data("X", plates=obs)
    if known:
        w = cv.MultivariateNormal("w", np.zeros(2), k * np.eye(2))
        leaf = cv.Normal("y", cv.dot(columns, w), 1.0, plates=obs)
    else:
        joint = cv.NormalGamma("w", np.zeros(2), k * np.eye(2), 1.0, 1.0)
        leaf = cv.Normal("y", cv.dot(columns, joint.mean), joint.precision, plates=obs)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            elbo = cv.Model(leaf).fit({"X": X, "y": y}).elbo
        except cv.ImproperError:
            return
    with mp.workdps(80):
        columns, rows = mp.matrix(X.tolist()), mp.matrix(y.tolist())
        after = columns.T * columns + k * mp.eye(2)
        moment = columns.T * rows
        left = (rows.T * rows)[0] - (moment.T * after**-1 * moment)[0]
        evidence = mp.log(exact(k)) - mp.log(mp.det(after)) / 2
        if known:
            evidence += -mp.mpf(n) / 2 * mp.log(2 * mp.pi) - left / 2
        else:
            evidence += gamma_marginal(1.0, 1.0, mp.mpf(n) / 2, left / 2) - mp.mpf(n) / 2 * mp.log(2 * mp.pi)
        error = abs(float(exact(elbo) - evidence))
    assert error < 1e-3 or any(issubclass(w.category, cv.LostDigitsWarning) for w in told)
    if offset <= 2 and height < 1e8:
        assert not told, "no false alarm where columns are as they should be"


def counts_of_poisson(size):
    x = np.random.default_rng(0).poisson(size, 20)
    return poisson(2.0, 2.0 / size, *x)


def counts_of_multinomial(size):
    x = np.random.default_rng(0).multinomial(int(size), [0.2, 0.3, 0.5], size=10)
    total = [mp.mpf(int(n)) for n in x.sum(axis=0)]
    prior = (1, 2, 3)
    evidence = mp.fsum(mp.loggamma(a + n) - mp.loggamma(a) for a, n in zip(prior, total, strict=True))
    evidence += mp.loggamma(6) - mp.loggamma(6 + mp.fsum(total)) + 10 * mp.loggamma(mp.mpf(int(size)) + 1)
    evidence -= mp.fsum(mp.loggamma(mp.mpf(int(n)) + 1) for n in x.ravel())
    p = cv.Dirichlet("p", list(map(float, prior)))
    model = cv.Model(cv.Multinomial("x", int(size), p, plates=cv.Plate("obs")))
    return Case(model, {"x": x.astype(float)}, evidence)


@pytest.mark.parametrize("digits", [4, 6, 8, 9, 10, 11, 12, 15])
@pytest.mark.parametrize("counts", [counts_of_poisson, counts_of_multinomial])
def test_counts_of_any_size_are_right_or_warned_of(counts, digits):
    """Where x log r and log x! cancel, a sum of N counts of 1e9 has digits down to N 1e9 log(1e9) eps, 1e-4 nats."""
    with mp.workdps(60):
        case = counts(10.0**digits)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            elbo = case.model.fit(case.data).elbo
        error = abs(float(exact(elbo) - case.evidence))
    size = 20 * 10.0**digits * np.log(10.0**digits)
    assert error < 4 * size * np.finfo(float).eps
    assert error < 1e-3 or any(issubclass(w.category, cv.LostDigitsWarning) for w in told)
    if digits <= 9:
        assert not told, "no false alarm where they are right to 0.001"
