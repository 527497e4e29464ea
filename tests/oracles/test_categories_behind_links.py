"""Softmax and stick-breaking of predictors: below the evidence, with the modes and curvatures that they claim."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import optimize, stats
from scipy.special import expit, log_softmax

import caviar as cv
from caviar._typing import Array
from caviar.families import SoftmaxTangent
from caviar.testing import check_model

OBS = cv.Plate("obs")
Y = np.array([0, 0, 1, 2, 0, 1, 0, 2, 0])
X = np.column_stack([np.ones(9), np.random.default_rng(0).normal(size=9)])
PLATE = {"softmax": cv.Plate("category", 3), "stick_breaking": cv.Plate("question", 2)}
LINK: dict[str, Callable[..., Any]] = {"softmax": cv.softmax, "stick_breaking": cv.stick_breaking}


def _log_probabilities(link: str, eta: Array) -> Array:
    """Return the log-probabilities of three categories."""
    if link == "softmax":
        return log_softmax(eta, axis=-1)
    first, second = expit(eta[..., 0]), expit(eta[..., 1])
    return np.log(np.stack([first, (1 - first) * second, (1 - first) * (1 - second)], axis=-1))


def _regression(link: str) -> tuple[cv.Model, dict[str, Array]]:
    w = cv.MultivariateNormal("w", np.zeros(2), np.eye(2), plates=PLATE[link])
    model = cv.Model(cv.Categorical("y", LINK[link](cv.dot(cv.Data("X", plates=OBS), w)), plates=OBS))
    return model, {"X": X, "y": Y}


@pytest.mark.parametrize("link", LINK)
def test_intercepts_are_below_the_evidence(link: str) -> None:
    a = cv.Normal("a", 0, 1, plates=PLATE[link])
    model = cv.Model(cv.Categorical("y", LINK[link](a), plates=OBS))
    posterior = model.fit({"y": Y}, tol=1e-13, max_iter=2000)
    size = PLATE[link].size or 0
    grid = np.linspace(-6, 6, 61)
    eta = np.stack(np.meshgrid(*[grid] * size, indexing="ij"), axis=-1)
    joint = stats.norm.logpdf(eta).sum(axis=-1) + _log_probabilities(link, eta)[..., Y].sum(axis=-1)
    evidence = np.log(np.exp(joint - joint.max()).sum() * (grid[1] - grid[0]) ** size) + joint.max()
    gap = 1.3 if link == "softmax" else 0.05
    assert evidence - gap < posterior.elbo < evidence
    weights = np.exp(joint - joint.max())[..., None] / np.exp(joint - joint.max()).sum()
    axes = tuple(range(size))
    exact = np.sqrt((weights * eta**2).sum(axis=axes) - (weights * eta).sum(axis=axes) ** 2)
    np.testing.assert_allclose(posterior.linear_response({"y": Y}).sd("a"), exact, rtol=0.05)


def test_softmax_regression_is_at_the_mode_with_the_covariance_of_laplace() -> None:
    model, data = _regression("softmax")
    posterior = model.fit(data, tol=1e-15, max_iter=5000)

    def loss(w: Array) -> float:
        return 0.5 * w @ w - log_softmax(X @ w.reshape(3, 2).T, axis=1)[np.arange(9), Y].sum()

    mode = optimize.minimize(loss, np.zeros(6), tol=1e-12).x
    np.testing.assert_allclose(posterior["w"].mean.ravel(), mode, atol=1e-5)
    p = np.exp(log_softmax(X @ mode.reshape(3, 2).T, axis=1))
    curvature = np.einsum("nk,kl->nkl", p, np.eye(3)) - p[:, :, None] * p[:, None, :]
    hessian = np.eye(6) + np.einsum("nkl,ni,nj->kilj", curvature, X, X).reshape(6, 6)
    covariance = posterior.linear_response(data).covariance("w")
    np.testing.assert_allclose(covariance.reshape(6, 6), np.linalg.inv(hessian), atol=1e-5)


@pytest.mark.usefixtures("figures_of_factors")
@pytest.mark.thinned(2)
@pytest.mark.parametrize("link", LINK)
def test_regressions_pass_the_kit_with_weights_missing_labels_schedules_and_files(
    link: str, tmp_path: Path
) -> None:
    model, data = _regression(link)
    check_model(model, data, n_draws=200).raise_if_failed()
    settings: dict[str, Any] = {"tol": 1e-14, "max_iter": 3000, "seed": 0}
    gaps = {"X": X, "y": np.where(np.arange(9) == 2, np.nan, Y)}
    weighted = model.fit(gaps, sample_weight=np.where(np.arange(9) == 0, 2, 1), **settings)
    rows = np.r_[0, 0, 1, 3:9]
    again = {"X": X[rows], "y": Y[rows]}
    repeated = model.fit(again, **settings)
    assert weighted.elbo == pytest.approx(repeated.elbo, rel=1e-11)
    assert model.fit(again, schedule=cv.Incremental(), **settings).elbo == pytest.approx(
        repeated.elbo, rel=1e-8
    )
    assert model.fit(again, executor=2, **settings).elbo == repeated.elbo
    repeated.save(tmp_path / "m.caviar")
    loaded = cv.load(tmp_path / "m.caviar")
    np.testing.assert_array_equal(loaded.predict({"X": X})["y"].mean, repeated.predict({"X": X})["y"].mean)
    assert loaded.model.fit(again, **settings).elbo == repeated.elbo


@pytest.mark.parametrize("link", LINK)
def test_predicted_probabilities_are_those_of_draws(link: str) -> None:
    model, data = _regression(link)
    posterior = model.fit(data, uncertainty="mean_field")
    told = posterior.predict({"X": X[:3]})["y"].mean
    draws = np.einsum("ni,ski->snk", X[:3], posterior["w"].sample(40_000, 0))
    np.testing.assert_allclose(told, np.exp(_log_probabilities(link, draws)).mean(axis=0), atol=3e-3)
    np.testing.assert_allclose(told.sum(axis=-1), 1.0, rtol=1e-12)


@pytest.mark.parametrize("link", LINK)
def test_draws_follow_the_link(link: str) -> None:
    model, _ = _regression(link)
    w = np.array([[0.3, 0.2], [-0.5, 0.4], [1.0, 0.0]])[: PLATE[link].size]
    drawn = model.simulate(0, data={"X": np.ones((6000, 2))}, given={"w": w})
    p = np.exp(_log_probabilities(link, w.sum(axis=1)))
    np.testing.assert_allclose(np.bincount(drawn["y"], minlength=3) / 6000, p, atol=0.025)


@pytest.mark.slow
@pytest.mark.parametrize("link", LINK)
def test_effects_of_groups_and_what_all_categories_share(link: str) -> None:
    """Indices choose from the other plate, and a number without the plate is in each predictor."""
    plate, group = PLATE[link], cv.Plate("group", 3)
    a, b = cv.Normal("a", 0, 1, plates=plate), cv.Normal("b", 0, 4, plates=(group, plate))
    eta = a + b[cv.Data("group", plates=OBS)] + cv.Normal("c", 0, 1) * cv.Data("x", plates=OBS)
    model = cv.Model(cv.Categorical("y", LINK[link](eta, along=plate), plates=OBS))
    data = {"y": Y, "group": np.arange(9) % 3, "x": X[:, 1]}
    check_model(model, data, n_draws=200).raise_if_failed()
    with pytest.raises(cv.ModelError, match="the predictors of all categories share 'c'"):
        model.fit(data, uncertainty="mean_field").predict({"group": [0], "x": [1.0]})


def test_tangents_have_the_gradient_and_the_curvature_of_their_log_partition() -> None:
    rng = np.random.default_rng(0)
    q = SoftmaxTangent(rng.normal(size=(2, 3)), [1.0, 2.5])
    change = (rng.normal(size=(2, 3)), rng.normal(size=2))

    def at(h: float) -> SoftmaxTangent:
        return SoftmaxTangent.from_natural(tuple(n + h * c for n, c in zip(q.natural, change, strict=True)))

    up, down = at(1e-4), at(-1e-4)
    slope = (change[0] * q.expected_statistics[0]).sum(axis=1) + change[1] * q.expected_statistics[1]
    np.testing.assert_allclose((up.log_partition - down.log_partition) / 2e-4, slope, rtol=1e-6)
    for moved, after, before in zip(
        q.response(change), up.expected_statistics, down.expected_statistics, strict=True
    ):
        np.testing.assert_allclose(moved, (after - before) / 2e-4, rtol=1e-5, atol=1e-9)
    eta = rng.normal(scale=3, size=(1000, 1, 3))
    slopes, constant = q.expected_statistics
    bound = constant + (slopes * eta).sum(axis=-1) + 0.25 * np.square(eta).sum(axis=-1)
    assert np.all(bound >= np.log(np.exp(eta).sum(axis=-1)) - 1e-12)


def test_statements_that_leave_open_what_is_meant_are_refused() -> None:
    a, b = cv.Normal("a", 0, 1), cv.Normal("b", 0, 1, plates=cv.Plate("category", 3))
    other = cv.Normal("other", 0, 1, plates=cv.Plate("more", 2))
    y = cv.Categorical("y", cv.ordered(a, [-1.0, 1.0]), plates=OBS)
    for state, message in (
        (
            lambda: cv.Categorical("y", cv.softmax(a), plates=OBS),
            "needs a predictor for each category.*it has none",
        ),
        (lambda: cv.Categorical("y", cv.softmax(b + other), plates=OBS), "it has 'category', 'more'"),
        (lambda: cv.softmax([0.2, 0.8]), "give them to the Categorical itself"),
        (lambda: cv.Bernoulli("y", cv.softmax(b)), "is the probabilities of a Categorical"),
        (lambda: cv.Categorical("y", cv.logistic(a)), "takes no link"),
        (
            lambda: cv.Normal("x", b[y], 1, plates=OBS),
            "its probabilities is a link, so it can only be observed",
        ),
    ):
        with pytest.raises(cv.CaviarError, match=message):
            state()
