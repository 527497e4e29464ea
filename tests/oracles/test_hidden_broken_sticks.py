"""Hidden answers behind logistic functions of predictors: experts, sites that are used, effects that are there."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logsumexp
from scipy.stats import norm

import caviar as cv

MEANS = np.array([-2.0, 0.5, 2.5])
X = np.array([-1.5, -0.7, -0.2, 0.4, 0.9, 1.6])
Y = np.array([-1.8, -2.4, 0.3, 0.9, 2.2, 2.9])


def three_experts(precision: float = 1.0) -> cv.Model:
    """Return a mixture of three known Normals, chosen by two questions whose log-odds are slopes times a column."""
    obs, question = cv.Plate("obs"), cv.Plate("question", 2)
    slope = cv.Normal("slope", 0.0, precision, plates=question)
    z = cv.Categorical("z", cv.stick_breaking(cv.Data("x", plates=obs) * slope, along=question), plates=obs)
    means = cv.Constant("means", MEANS, plates=cv.Plate("expert", 3))
    return cv.Model(cv.Normal("y", means[z], 1.0, plates=obs))


def log_shares(slopes: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return log probabilities of the categories for slopes (..., 2) and columns (N,): (..., N, 3)."""
    eta = np.asarray(slopes)[..., None, :] * x[:, None]
    yes, no = np.log(expit(eta)), np.cumsum(np.log(expit(-eta)), axis=-1)
    ones = np.zeros((*eta.shape[:-1], 1))
    return np.concatenate([yes, ones], axis=-1) + np.concatenate([ones, no], axis=-1)


def quadrature(n_points: int = 60) -> tuple[np.ndarray, np.ndarray]:
    points, weights = np.polynomial.hermite_e.hermegauss(n_points)
    grid = np.array(list(itertools.product(points, repeat=2)))
    return grid, np.log(np.prod(list(itertools.product(weights, repeat=2)), axis=1) / (2 * np.pi))


def test_the_bound_is_that_by_hand_and_below_quadrature() -> None:
    data = {"x": X, "y": Y}
    posterior = three_experts().fit(data, tol=1e-13)
    slope, r = posterior["slope"], posterior.local(data)["z"].probabilities
    m, v = slope.mean, slope.variance
    fit = norm.logpdf(Y[:, None], MEANS)
    # Jaakkola and Jordan: log sigma(+-eta) >= log sigma(c) +- eta / 2 - c / 2, at c^2 = <eta^2>
    c = np.sqrt(np.square(X)[:, None] * (np.square(m) + v))
    yes, no = (np.log(expit(c)) - c / 2 + sign * X[:, None] * m / 2 for sign in (1, -1))
    expected = np.column_stack([yes[:, 0], no[:, 0] + yes[:, 1], no.sum(axis=1)])
    kl = 0.5 * (v + np.square(m) - 1.0 - np.log(v)).sum()
    by_hand = (r * (fit + expected - np.log(r))).sum() - kl
    assert posterior.elbo == pytest.approx(by_hand, abs=1e-9)
    logits = fit + expected
    np.testing.assert_allclose(r, np.exp(logits - logsumexp(logits, axis=1, keepdims=True)), atol=1e-6)

    grid, weights = quadrature()
    joint = weights + logsumexp(log_shares(grid, X) + fit, axis=-1).sum(axis=-1)
    evidence = logsumexp(joint)
    assert evidence - 0.2 < posterior.elbo < evidence
    exact = np.exp(joint - evidence) @ grid
    np.testing.assert_allclose(m, exact, atol=0.1)
    assert max(cv.testing.elbo_slopes(posterior, data).values()) < 2e-3
    assert posterior.importance_sample(data, n_draws=4000, seed=0).log_evidence == pytest.approx(
        evidence, abs=0.05
    )


def test_known_labels_leave_a_regression_of_labels() -> None:
    labels = np.array([0, 0, 1, 1, 2, 2])
    known = three_experts().fit({"x": X, "y": Y, "z": labels}, tol=1e-13)
    obs, question = cv.Plate("obs"), cv.Plate("question", 2)
    slope = cv.Normal("slope", 0.0, 1.0, plates=question)
    link = cv.stick_breaking(cv.Data("x", plates=obs) * slope, along=question)
    alone = cv.Model(cv.Categorical("z", link, plates=obs)).fit({"x": X, "z": labels}, tol=1e-13)
    np.testing.assert_allclose(known["slope"].mean, alone["slope"].mean, atol=1e-6)
    fit = norm.logpdf(Y, MEANS[labels]).sum()
    assert known.elbo == pytest.approx(alone.elbo + fit, abs=1e-8)


def test_labels_known_in_some_rows_are_kept() -> None:
    labels = np.array([0.0, np.nan, 2.0, np.nan, np.nan, 2.0])
    data = {"x": X, "y": Y, "z": labels}
    posterior = three_experts().fit(data, tol=1e-13)
    r = posterior.local(data)["z"].probabilities
    np.testing.assert_allclose(r[[0, 2, 5]], np.eye(3)[[0, 2, 2]])
    grid, weights = quadrature()
    per_row = log_shares(grid, X) + norm.logpdf(Y[:, None], MEANS)
    told = [
        per_row[:, n, int(own)] if own == own else logsumexp(per_row[:, n], axis=-1)
        for n, own in enumerate(labels)
    ]
    evidence = logsumexp(weights + np.sum(told, axis=0))
    assert evidence - 0.2 < posterior.elbo < evidence


def test_new_rows_are_predicted_by_their_columns() -> None:
    posterior = three_experts().fit({"x": X, "y": Y}, tol=1e-12, uncertainty="mean_field")
    slope, rng = posterior["slope"], np.random.default_rng(0)
    draws = slope.mean + np.sqrt(slope.variance) * rng.standard_normal((50_000, 2))
    new = np.array([-2.0, 0.0, 2.0])
    shares = np.exp(log_shares(draws, new)).mean(axis=0)
    told = posterior.predict({"x": new})["y"]
    np.testing.assert_allclose(told.mean, shares @ MEANS, atol=0.01)
    drawn = np.asarray(posterior.predictive(data={"x": np.repeat(new, 20)}, n_draws=600, seed=0)["y"])
    found = [own.mean() for own in np.split(drawn, 3, axis=1)]
    np.testing.assert_allclose(found, shares @ MEANS, atol=0.1)


@pytest.mark.parametrize("of_groups", [False, True])
def test_effects_that_are_there_with_a_chance_have_a_bound_below_quadrature(of_groups: bool) -> None:
    """A number 0 or 1 of each row, or group, whose log-odds are a slope times a column, is added to the mean."""
    of = np.repeat(np.arange(6), 3 if of_groups else 1)
    y = np.array([0.1, -0.4, 1.9, -0.1, 2.2, 2.3])[of] + 0.3 * np.random.default_rng(0).normal(size=len(of))
    row, group = cv.Plate("row"), cv.Plate("group", 6)
    slope = cv.Normal("slope", 0.0, 1.0)
    if of_groups:
        there = cv.Bernoulli("there", cv.logistic(slope * cv.Constant("x", X, plates=group)), plates=group)
        mean, data = 2.0 * there[cv.Data("of", plates=row)], {"of": of, "y": y}
    else:
        there = cv.Bernoulli("there", cv.logistic(slope * cv.Data("x", plates=row)), plates=row)
        mean, data = 2.0 * there, {"x": X, "y": y}
    posterior = cv.Model(cv.Normal("y", mean, 1.0, plates=row)).fit(data, tol=1e-13)

    points, weights = np.polynomial.hermite_e.hermegauss(80)
    eta, fit = points[:, None] * X, np.zeros((2, 6))
    for k in (0, 1):
        np.add.at(fit[k], of, norm.logpdf(y, 2.0 * k))
    each = np.logaddexp(np.log(expit(eta)) + fit[1], np.log(expit(-eta)) + fit[0])
    joint = np.log(weights / weights.sum()) + each.sum(axis=1)
    evidence = logsumexp(joint)
    assert evidence - 0.2 < posterior.elbo < evidence
    assert posterior["slope"].mean == pytest.approx(np.exp(joint - evidence) @ points, abs=0.1)
    assert max(cv.testing.elbo_slopes(posterior, data).values()) < 2e-3


def sites(n_sites: int = 300, n_visits: int = 4, seed: int = 0) -> dict[str, Any]:
    """Return visits to sites, of which some are used, and the columns that this depends on."""
    rng = np.random.default_rng(seed)
    columns = np.column_stack([np.ones(n_sites), rng.normal(size=n_sites)])
    used = rng.random(n_sites) < expit(columns @ [0.3, 1.2])
    return {"X": columns, "seen": (rng.random((n_sites, n_visits)) < 0.4 * used[:, None]).astype(float)}


def occupancy(n_visits: int = 4) -> cv.Model:
    """Return a model of sites: whether one is used depends on columns, whether that is seen on chance."""
    site, visit, question = cv.Plate("site"), cv.Plate("visit", n_visits), cv.Plate("question", 1)
    w = cv.MultivariateNormal("w", np.zeros(2), 0.1 * np.eye(2), plates=question)
    used = cv.Categorical(
        "used", cv.stick_breaking(cv.dot(cv.Data("X", plates=site), w), along=question), plates=site
    )
    chance = cv.Beta("chance", 1.0, 1.0, plates=cv.Plate("state", 2))
    return cv.Model(cv.Bernoulli("seen", chance[used], plates=(site, visit)))


def exact_moments(data: dict[str, Any]) -> tuple[np.ndarray, np.ndarray, float]:
    """Return means and standard deviations of the weights, and the mean chance, by quadrature about the mode."""
    seen, columns = data["seen"], data["X"]

    def log_joint(theta: np.ndarray) -> float:
        chance, eta = expit(theta[2]), columns @ theta[:2]
        used = np.log(expit(eta)) + (seen * np.log(chance) + (1 - seen) * np.log1p(-chance)).sum(axis=1)
        empty = np.where(seen.any(axis=1), -np.inf, np.log(expit(-eta)))
        prior = np.log(chance * (1 - chance)) - 0.05 * theta[:2] @ theta[:2]
        return float(prior + np.logaddexp(used, empty).sum())

    mode = minimize(lambda theta: -log_joint(theta), [0.0, 0.0, 0.0])
    points, weights = np.polynomial.hermite_e.hermegauss(14)
    grid = np.array(list(itertools.product(points, repeat=3)))
    values = mode.x + grid @ np.linalg.cholesky(mode.hess_inv).T
    log_weights = np.log(np.prod(list(itertools.product(weights, repeat=3)), axis=1)) + 0.5 * np.square(
        grid
    ).sum(axis=1)
    shares = np.exp(log_weights + np.array([log_joint(own) for own in values]) - log_joint(mode.x))
    shares /= shares.sum()
    mean = shares @ values
    return mean[:2], np.sqrt(shares @ np.square(values - mean))[:2], float(shares @ expit(values[:, 2]))


def test_use_of_sites_has_the_moments_of_the_exact_posterior() -> None:
    # nothing is seen where a site is not used
    data = {**sites(), "chance": np.array([np.nan, 1e-9])}
    posterior = occupancy().fit(data, seed=0, tol=1e-9)
    mean, sd, chance = exact_moments(data)
    np.testing.assert_allclose(np.ravel(posterior.mean("w")), mean, atol=0.02)
    np.testing.assert_allclose(np.ravel(posterior.sd("w")), sd, rtol=0.03)
    assert posterior.mean("chance")[0] == pytest.approx(chance, abs=2e-3)


def test_draws_beside_a_chance_that_is_below_the_least_number_are_in_doubt() -> None:
    """A prior with most of its mass there: of the draws of a single proposal one had all of the weight."""
    site, visit, question = cv.Plate("site"), cv.Plate("visit", 4), cv.Plate("question", 1)
    w = cv.MultivariateNormal("w", np.zeros(2), 0.1 * np.eye(2), plates=question)
    link = cv.stick_breaking(cv.dot(cv.Data("X", plates=site), w), along=question)
    used = cv.Categorical("used", link, plates=site)
    chance = cv.Beta("chance", [1.0, 1e-3], [1.0, 1e3], plates=cv.Plate("state", 2))
    data = sites()
    posterior = cv.Model(cv.Bernoulli("seen", chance[used], plates=(site, visit))).fit(data, seed=0, tol=1e-9)
    mean, sd, _ = exact_moments(data)
    assert "They are in doubt" in posterior.interval_remark
    np.testing.assert_allclose(np.ravel(posterior.mean("w")), mean, atol=0.05)
    np.testing.assert_allclose(np.ravel(posterior.sd("w")), sd, rtol=0.1)
