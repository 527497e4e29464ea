"""The tail of weights: how well its shape is known, and whether the error of the evidence covers."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from scipy.special import log_expit, log_ndtr, logsumexp

import caviar as cv
from caviar.posterior.diagnostics.tail import log_mean_and_error, log_mean_of, tail_of


@pytest.mark.slow
@pytest.mark.thinned(2)
@pytest.mark.parametrize("k", [0.2, 0.6, 1.0])
def test_the_error_of_k_is_its_spread_over_repeated_draws(k):
    """Weights 1 / U^k have a Pareto tail of shape k."""
    rng = np.random.default_rng(0)
    found = [tail_of(k * rng.exponential(size=1000)) for _ in range(40)]
    spread = np.std([tail.k for tail in found], ddof=1)
    assert np.mean([tail.error for tail in found]) == pytest.approx(spread, rel=0.4)
    assert np.mean([tail.k for tail in found]) == pytest.approx(k, abs=3 * spread)


def test_the_mean_of_weights_with_a_known_tail():
    """Of a Pareto distribution with k = 1/4 the error is its standard deviation over the root of the draws."""
    k, n = 0.25, 200_000
    weights = 1 / np.random.default_rng(0).uniform(size=n) ** k
    exact = stats.pareto(1 / k)
    mean, error = log_mean_and_error(np.log(weights), k)
    assert mean == pytest.approx(np.log(weights.mean()), abs=1e-12)
    assert error == pytest.approx(exact.std() / exact.mean() / np.sqrt(n), rel=0.1)


def test_the_heavier_the_tail_the_larger_the_error():
    log_weights = 0.4 * np.random.default_rng(0).exponential(size=1000)
    errors = [log_mean_and_error(log_weights, k)[1] for k in (-0.3, 0.0, 0.3, 0.6, 0.9)]
    assert errors == sorted(errors)
    raw = np.std(np.exp(log_weights)) / np.mean(np.exp(log_weights)) / np.sqrt(1000)
    assert errors[1] < raw < errors[3]
    assert log_mean_and_error(log_weights, 1e-13)[1] == pytest.approx(
        log_mean_and_error(log_weights, 1e-6)[1], rel=1e-4
    )


class Answers:
    """A regression of a binary outcome on one or two columns, with the density of its coefficients."""

    def __init__(self, number):
        rng = np.random.default_rng(number)
        n, self.p, self.kind = (
            int(rng.choice([15, 40, 100])),
            1 + number % 2,
            ("logistic", "probit")[number // 2 % 2],
        )
        X, noise = (
            rng.normal(size=(n, self.p)),
            rng.logistic(size=n) if self.kind == "logistic" else rng.normal(size=n),
        )
        self.data = {"X": X, "y": (X @ rng.normal(0, 1, self.p) + noise > 0).astype(float)}
        self.model = getattr(cv.models, f"{self.kind}_regression")(self.p, prior_precision=1.0)

    def log_joint(self, w):
        log_probability = log_expit if self.kind == "logistic" else log_ndtr
        signed = self.data["X"] * (2 * self.data["y"][:, None] - 1)
        return log_probability(w @ signed.T).sum(axis=-1) + stats.norm.logpdf(w).sum(axis=-1)

    def log_evidence(self, q):
        """Return log p(y) by the trapezoidal rule, whose error falls exponentially for such a function."""
        width = np.sqrt(np.diagonal(q.covariance))
        steps = np.linspace(-12, 12, 141)
        grid = np.stack(np.meshgrid(*[steps] * self.p, indexing="ij"), axis=-1).reshape(-1, self.p)
        return logsumexp(self.log_joint(q.mean + grid * width)) + np.log((24 / 140) ** self.p * width.prod())


def test_the_weights_are_those_of_the_densities():
    for number in range(4):
        own = Answers(number)
        posterior = own.model.fit(own.data)
        draws, q = posterior.sample(100, seed=5)["w"], posterior["w"]
        expected = own.log_joint(draws) - stats.multivariate_normal(q.mean, q.covariance).logpdf(draws)
        found = posterior.diagnose(own.data, n_draws=100, seed=5)
        np.testing.assert_allclose(found.log_weights, expected, rtol=1e-9)


@pytest.mark.slow
def test_the_evidence_lies_within_two_errors():
    """Of 60 regressions against quadrature; benchmarks/evidence_error.py has 100 with more columns."""
    inside, raw, low = [], [], []
    for number in range(60):
        own = Answers(number)
        q = own.model.fit(own.data)["w"]
        draws = q.sample(1000, np.random.default_rng(number))
        log_weights = own.log_joint(draws) - q.log_density(draws)
        tail = tail_of(log_weights)
        evidence, error = log_mean_of(log_weights, tail)
        off = evidence - own.log_evidence(q)
        if tail.k <= 0.5:
            weights = np.exp(log_weights - log_weights.max())
            raw.append(abs(off) <= 2 * weights.std() / weights.mean() / np.sqrt(1000))
            inside.append(abs(off) <= 2 * error)
        else:
            low.append(off)
    assert len(inside) >= 20
    assert np.mean(inside) >= 0.9
    # the spread of the weights alone does not tell
    assert np.mean(raw) < 0.88
    assert np.mean(np.array(low) < 0) > 0.5


def test_what_is_a_lower_estimate_says_so():
    own = Answers(1)
    found = own.model.fit(own.data).diagnose(own.data, n_draws=200, seed=0)
    for k, is_low in ((0.2, False), (0.5, False), (0.51, True), (0.9, True)):
        told = replace(found, pareto_k=k)
        assert told.is_lower_estimate == is_low
        assert ("a lower estimate as k is above 0.5" in repr(told)) == is_low
    assert f"Pareto k {found.pareto_k:.2f} +- {found.pareto_k_error:.2f}" in repr(found)
