"""Sums of rates and Gamma-Poisson factorisation: the same factors as updates by hand, and below the evidence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import digamma, gammaln

import caviar as cv
from caviar._typing import AnyArray, Array
from caviar.families import Shares
from caviar.testing import check_model

OBS = cv.Plate("obs")
DATA = {"x": np.array([1.0, 2, 5, 0.1, 3]), "y": np.array([2, 3, 9, 0, 6])}


def _background() -> cv.Model:
    """A rate per unit of x, and a background."""
    rate = cv.Gamma("a", 1, 1) * cv.Data("x", plates=OBS) + cv.Gamma("b", 2, 1)
    return cv.Model(cv.Poisson("y", rate, plates=OBS))


def test_two_addends_are_below_the_evidence() -> None:
    model = _background()
    posterior = model.fit(DATA, tol=1e-13, seed=0)
    grid = np.linspace(5e-3, 14, 700)
    a, b = np.meshgrid(grid, grid, indexing="ij")
    joint = stats.gamma.logpdf(a, 1) + stats.gamma.logpdf(b, 2)
    joint = joint + sum(stats.poisson.logpmf(y, a * x + b) for x, y in zip(DATA["x"], DATA["y"], strict=True))
    weights = np.exp(joint - joint.max())
    evidence = np.log(weights.sum() * (grid[1] - grid[0]) ** 2) + joint.max()
    assert evidence - 0.8 < posterior.elbo < evidence
    check_model(model, DATA, n_draws=200).raise_if_failed()
    weights /= weights.sum()
    exact = np.sqrt((weights * a**2).sum() - (weights * a).sum() ** 2)
    own, corrected = np.sqrt(posterior["a"].variance), posterior.linear_response(DATA).sd("a")
    assert abs(corrected / exact - 1) < 0.1 < abs(own / exact - 1)
    # parts of a count are inferred beside it
    parts = posterior.local(DATA)["y.split"]
    np.testing.assert_allclose(parts.mean.sum(axis=1), DATA["y"], rtol=1e-12)


def _by_hand(y: AnyArray, n_sources: int, seed: int) -> float:
    """Return where Cemgil's updates (2009) end for Gamma(0.5, 1) times Gamma(0.5, 0.5)."""
    rng = np.random.default_rng(seed)
    n, m = y.shape
    shapes = [rng.gamma(3, 1, (n, n_sources)), rng.gamma(3, 1, (n_sources, m))]
    rates = [np.ones(own.shape) for own in shapes]
    prior = ((0.5, 1.0), (0.5, 0.5))
    elbo = -np.inf
    for _ in range(4000):
        before, parts = elbo, None
        for own in (0, 1):
            logs = [digamma(a) - np.log(b) for a, b in zip(shapes, rates, strict=True)]
            joint = logs[0][:, :, None] + logs[1][None]
            weights = np.exp(joint - joint.max(axis=1, keepdims=True))
            total = weights.sum(axis=1, keepdims=True)
            parts = y[:, None, :] * weights / total
            other = shapes[1 - own] / rates[1 - own]
            shapes[own] = prior[own][0] + parts.sum(axis=2 - 2 * own)
            rates[own] = prior[own][1] + (
                other.sum(axis=1)[None, :] if own == 0 else other.sum(axis=0)[:, None]
            )
            rates[own] = np.broadcast_to(rates[own], shapes[own].shape)
        logs = [digamma(a) - np.log(b) for a, b in zip(shapes, rates, strict=True)]
        means = [a / b for a, b in zip(shapes, rates, strict=True)]
        joint = logs[0][:, :, None] + logs[1][None]
        top = joint.max(axis=1)
        elbo = (y * (np.log(np.exp(joint - top[:, None]).sum(axis=1)) + top)).sum() - (
            means[0] @ means[1]
        ).sum()
        elbo -= gammaln(y + 1).sum()
        for (a0, b0), a, b, log, mean in zip(prior, shapes, rates, logs, means, strict=True):
            elbo += (a0 * np.log(b0) - gammaln(a0) + (a0 - 1) * log - b0 * mean).sum()
            elbo += (a - np.log(b) + gammaln(a) + (1 - a) * digamma(a)).sum()
        if elbo - before < 1e-11:
            break
    return float(elbo)


@pytest.mark.slow
def test_gamma_poisson_factorisation_ends_where_updates_by_hand_end() -> None:
    rng = np.random.default_rng(0)
    y = rng.poisson(2 * rng.gamma(0.5, 1, (20, 2)) @ rng.gamma(0.5, 2, (2, 4)))
    part, item = cv.Plate("part", 2), cv.Plate("item", 4)
    theta = cv.Gamma("theta", 0.5, 1.0, plates=(OBS, part))
    beta = cv.Gamma("beta", 0.5, 0.5, plates=(part, item))
    model = cv.Model(cv.Poisson("y", cv.dot(theta, beta), plates=(OBS, item)))
    posterior = model.fit({"y": y}, seed=0, tol=1e-12, max_iter=4000, n_restarts=4)
    assert posterior.elbo == pytest.approx(max(_by_hand(y, 2, seed) for seed in range(5)), abs=1e-5)


def _long(rng: np.random.Generator) -> tuple[cv.Model, dict[str, Array]]:
    """Records of groups and items, an effect that all share, and a known background."""
    group, item, part = cv.Plate("group", 5), cv.Plate("item", 4), cv.Plate("part", 2)
    theta = cv.Gamma("theta", 0.5, 1.0, plates=(group, part))
    beta = cv.Gamma("beta", 0.5, 0.5, plates=(part, item))
    of, on = cv.Data("of", plates=OBS), cv.Data("on", plates=OBS)
    rate = cv.Gamma("u", 3, 3) * cv.dot(theta[of], beta[on]) + 0.5
    data = {"of": np.repeat(np.arange(5), 4), "on": np.tile(np.arange(4), 5), "y": rng.poisson(2.0, 20)}
    return cv.Model(cv.Poisson("y", rate, plates=OBS)), data


@pytest.mark.slow
def test_weights_missing_counts_schedules_threads_and_files(tmp_path: Path) -> None:
    model, data = _long(np.random.default_rng(1))
    settings: dict[str, Any] = {"seed": 0, "tol": 1e-12, "max_iter": 4000}
    gaps = {**data, "y": np.where(np.arange(20) == 7, np.nan, data["y"])}
    weighted = model.fit(gaps, sample_weight=np.where(np.arange(20) < 2, 2, 1), **settings)
    rows = np.r_[0, 0, 1, 1, 2:7, 8:20]
    repeated = model.fit({name: value[rows] for name, value in data.items()}, **settings)
    assert weighted.elbo == pytest.approx(repeated.elbo, abs=1e-6)
    posterior = model.fit(data, **settings)
    assert model.fit(data, executor=2, **settings).elbo == posterior.elbo
    assert model.fit(data, schedule=cv.Incremental(), **settings).elbo == pytest.approx(
        posterior.elbo, abs=1e-6
    )
    posterior.save(tmp_path / "m.caviar")
    assert cv.load(tmp_path / "m.caviar").model.fit(data, **settings).elbo == pytest.approx(
        posterior.elbo, abs=1e-6
    )


def test_predictions_are_the_moments_of_draws() -> None:
    model, data = _long(np.random.default_rng(1))
    posterior = model.fit(data, seed=0)
    told = posterior.predict({"of": [0, 3], "on": [1, 2]})["y"]
    theta, beta, u = (
        posterior[name].sample(100_000, seed) for seed, name in enumerate(("theta", "beta", "u"))
    )
    for row, (of, on) in enumerate(((0, 1), (3, 2))):
        rate = u * (theta[:, of] * beta[:, :, on]).sum(axis=1) + 0.5
        assert told.mean[row] == pytest.approx(rate.mean(), rel=0.02)
        assert told.sd[row] == pytest.approx(np.sqrt(rate.mean() + rate.var()), rel=0.02)


@pytest.mark.slow
def test_heterogeneous_counts_with_a_sum_as_the_mean_pass_the_kit() -> None:
    rate = cv.Gamma("a", 1, 1) * cv.Data("x", plates=OBS) + cv.Gamma("b", 2, 1)
    model = cv.Model(cv.NegativeBinomial("y", rate, 2.0, plates=OBS))
    check_model(model, DATA, n_draws=200).raise_if_failed()


def test_shares_have_the_gradient_and_the_curvature_of_their_log_partition() -> None:
    rng = np.random.default_rng(0)
    q = Shares([3.0, 40.0], rng.dirichlet(np.ones(3), 2))
    change = (rng.normal(size=(2, 3)), rng.normal(size=2))

    def at(h: float) -> Shares:
        return Shares.from_natural(tuple(n + h * c for n, c in zip(q.natural, change, strict=True)))

    up, down = at(1e-4), at(-1e-4)
    slope = (change[0] * q.expected_statistics[0]).sum(axis=1) + change[1] * q.expected_statistics[1]
    np.testing.assert_allclose((up.log_partition - down.log_partition) / 2e-4, slope, rtol=1e-7)
    for moved, after, before in zip(
        q.response(change), up.expected_statistics, down.expected_statistics, strict=True
    ):
        np.testing.assert_allclose(moved, (after - before) / 2e-4, rtol=1e-6, atol=1e-10)
    draws = q.sample(20_000, 0)
    np.testing.assert_allclose(draws.mean(axis=0), q.mean, rtol=0.05)
    np.testing.assert_allclose(draws.var(axis=0), q.variance, rtol=0.05)
    exact = stats.multinomial(3, q.probabilities[0]).logpmf([1, 2, 0])
    assert q[0].log_density([1, 2, 0]) == pytest.approx(exact, rel=1e-12)
    empty = Shares.from_natural((np.zeros((1, 3)), np.zeros(1)))
    assert not empty.mean.any()
    assert not any(moved.any() for moved in empty.response((np.ones((1, 3)), np.ones(1))))


def test_what_is_no_sum_of_rates_is_refused_in_words() -> None:
    a, b = cv.Gamma("a", 1, 1), cv.Gamma("b", 1, 1)
    part, other = cv.Plate("part", 2), cv.Plate("other", 3)
    theta, beta = cv.Gamma("theta", 1, 1, plates=part), cv.Gamma("beta", 1, 1, plates=other)
    for state, message in (
        (lambda: cv.Poisson("y", a - b), "must be positive; its addend"),
        (lambda: cv.Poisson("y", a * a + b), "has the same variable twice in the product"),
        (lambda: cv.Poisson("y", a + cv.Normal("n", 0, 1)), "cannot be the Normal 'n'. Use a Gamma"),
        (lambda: cv.Poisson("y", cv.dot(theta, beta)), "'theta'.*'beta'.* share none"),
        (lambda: cv.Poisson("y", cv.dot([1.0, 2], theta)), "takes Gammas, or Constants with a plate"),
        (lambda: cv.Normal("x", cv.Poisson("y", a + b), 1), "a Poisson can only be observed"),
        (lambda: cv.Gamma("x", 1, a + b), "takes a product"),
    ):
        with pytest.raises(cv.CaviarError, match=message):
            state()
