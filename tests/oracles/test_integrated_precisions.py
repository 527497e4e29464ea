"""Posteriors integrated over precisions, beside densities of multivariate Normals and a sampler."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import logsumexp

import caviar as cv
from caviar.posterior.integration import lattice_of_fits
from caviar.posterior.integration.asked import Integrates
from caviar.posterior.integration.integrated import Weighted


def dyestuff(n_groups: int, seed: int, sd: float = 1.0) -> pd.DataFrame:
    """Return five measurements of each of a few batches."""
    rng = np.random.default_rng(seed)
    batch = np.repeat(np.arange(n_groups), 5)
    y = 10.0 + sd * rng.normal(size=n_groups)[batch] + rng.normal(size=len(batch))
    return pd.DataFrame({"y": y, "batch": [f"b{own}" for own in batch]})


def by_quadrature(table: pd.DataFrame, n: int = 300) -> tuple[Weighted, Weighted, tuple[float, float]]:
    """Return both standard deviations, and mean and sd of the intercept, by a grid over their logarithms."""
    y, group = table["y"].to_numpy(), pd.factorize(table["batch"])[0]
    sd, members = y.std(), group[:, None] == np.arange(group.max() + 1)
    between, noise = np.meshgrid(np.geomspace(1e-2, 30.0, n), np.geomspace(0.6, 1.8, n), indexing="ij")
    between, noise = between.ravel(), noise.ravel()
    # the sum over all rows of the covariance, from groups of five: a Woodbury identity for each grid point
    counts, means = members.sum(axis=0), y @ members / members.sum(axis=0)
    within = (np.square(y - means[group])).sum()
    of_means = between[:, None] ** 2 + noise[:, None] ** 2 / counts
    precision = 1.0 / (2.5 * sd) ** 2
    total = (1.0 / of_means).sum(axis=1) + precision
    center = ((means / of_means).sum(axis=1) + y.mean() * precision) / total
    squares = (means**2 / of_means).sum(axis=1) + y.mean() ** 2 * precision - total * center**2
    log_density = -0.5 * (np.log(of_means).sum(axis=1) + np.log(total) + squares)
    log_density -= (len(y) - len(counts)) * np.log(noise) + 0.5 * within / noise**2
    log_density += stats.t.logpdf(between / (2.5 * sd), 4) + stats.t.logpdf(noise / sd, 4)
    log_density += np.log(between) + np.log(noise)
    weights = np.exp(log_density - log_density.max())
    weights /= weights.sum()
    mean = weights @ center
    variance = weights @ (1.0 / total + (center - mean) ** 2)
    return Weighted(between, weights), Weighted(noise, weights), (float(mean), float(np.sqrt(variance)))


@pytest.mark.thinned(2)
@pytest.mark.parametrize(("n_groups", "seed", "sd"), [(5, 0, 1.0), (5, 1, 0.2), (6, 2, 2.0), (40, 3, 0.5)])
def test_standard_deviations_between_few_groups_are_those_of_quadrature(n_groups, seed, sd):
    table = dyestuff(n_groups, seed, sd)
    summary = cv.MixedModel("y ~ 1 + (1 | batch)").fit(table).summary(level=0.9)
    assert "integrated over" in str(summary)
    rows, (between, noise, (mean, sd)) = {row.name: row for row in summary.rows}, by_quadrature(table)
    for name, own in (
        ("batch, Intercept", between),
        ("residual standard deviation", noise),
    ):
        row, (lower, upper) = rows[name], own.interval(0.9)
        assert row.mean == pytest.approx(own.mean, abs=0.05 * float(own.sd))
        assert row.sd == pytest.approx(float(own.sd), rel=0.05)
        assert (row.lower, row.upper) == pytest.approx((lower, upper), abs=0.12 * float(own.sd))
    assert rows["Intercept"].mean == pytest.approx(mean, abs=0.03 * sd)
    assert rows["Intercept"].sd == pytest.approx(sd, rel=0.04)


def with_labels(n_groups: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the group and a binary outcome of twelve rows of each group."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(n_groups), 12)
    at = 0.3 + 0.8 * rng.normal(size=n_groups)[group]
    return group, (at + rng.logistic(size=len(group)) > 0).astype(float)


@pytest.mark.parametrize(("n_groups", "seed"), [(5, 0), pytest.param(20, 1, marks=pytest.mark.slow)])
def test_standard_deviations_between_groups_of_binary_outcomes_are_those_of_quadrature(n_groups, seed):
    """Each group is integrated out by Gauss-Hermite nodes, on a grid of the intercept and the spread."""
    group, y = with_labels(n_groups, seed)
    table = {"y": y, "g": [f"group {own}" for own in group]}
    summary = cv.MixedModel("y ~ 1 + (1 | g)", family="bernoulli").fit(table).summary(level=0.9)
    assert "integrated over" in str(summary)
    rows = {row.name: row for row in summary.rows}

    levels, spreads = np.linspace(-4.0, 5.0, 91), np.geomspace(0.01, 15.0, 200)
    nodes, weights = np.polynomial.hermite_e.hermegauss(50)
    at = levels[:, None, None] + spreads[:, None] * nodes
    of_groups = np.bincount(group, y)[:, None, None, None] * at - 12 * np.logaddexp(0, at)
    log_density = logsumexp(of_groups, b=weights / weights.sum(), axis=-1).sum(axis=0)
    log_density += stats.norm.logpdf(levels, 0, 2.5)[:, None]
    log_density += stats.t.logpdf(spreads / 2.5, 4) + np.log(spreads)
    share = np.exp(log_density - log_density.max())
    share /= share.sum()
    exact = Weighted(spreads, share.sum(axis=0))
    found, sd = rows["g, Intercept"], float(exact.sd)
    assert found.mean == pytest.approx(exact.mean, abs=0.06 * sd)
    assert found.sd == pytest.approx(sd, rel=0.05)
    assert (found.lower, found.upper) == pytest.approx(tuple(exact.interval(0.9)), abs=0.1 * sd)
    level = Weighted(levels, share.sum(axis=1))
    assert rows["Intercept"].mean == pytest.approx(level.mean, abs=0.05 * float(level.sd))
    assert rows["Intercept"].sd == pytest.approx(float(level.sd), rel=0.05)


def test_variances_that_two_integrals_narrow_are_left_some(monkeypatch):
    """What each adds is added up: two that each take most of a variance would leave less than nothing."""
    found = lattice_of_fits.integral_of_fits

    def narrow(*arguments):
        own = found(*arguments)
        return replace(own, sds={name: 0.3 * sd for name, sd in own.sds.items()})

    monkeypatch.setattr(lattice_of_fits, "integral_of_fits", narrow)
    monkeypatch.setattr(Integrates, "_integrated_in_rows", lambda *_: None)
    rng = np.random.default_rng(0)
    table = {"y": rng.integers(0, 2, 48), "g": np.repeat(np.arange(6), 8), "h": np.tile(np.arange(4), 12)}
    table |= {name: [f"{name}{own}" for own in table[name]] for name in "gh"}
    model = cv.MixedModel("y ~ 1 + (1 | g) + (1 | h)", family="bernoulli").fit(table)
    assert "integrated over" in str(model.summary())
    for name in model.posterior_:
        assert (np.asarray(model.posterior_.sd(name)) > 0).all(), name
