"""Factors and points that a user hands over: only those of their variable are taken."""

from __future__ import annotations

import numpy as np
import pytest

import caviar as cv
from caviar import families

X = np.array([0.0, 1.0, 2.0, 5.0, 6.0, 7.0])


@pytest.fixture(scope="module")
def model() -> cv.Model:
    obs, component = cv.Plate("obs"), cv.Plate("component", 3)
    mean = cv.Normal("mean", 0.0, 1.0, plates=component)
    z = cv.Categorical("z", cv.Dirichlet("weights", np.ones(3)), plates=obs)
    return cv.Model(cv.Normal("x", mean[z], cv.Gamma("tau", 1.0, 1.0), plates=obs))


OTHERS = [
    # statistics of both are told apart by their place alone: x and xx would be taken for x and log x
    ("tau", families.Normal(1.0, 1.0), "a factor of 'tau' is a Gamma .* got Normal"),
    ("tau", families.Gamma([1.0, 2.0], 1.0), r"has the shape \(\): its plates \(none\).* got \(2,\)"),
    ("tau", "gamma", "a factor of 'tau' is a Gamma .* got 'gamma'"),
    ("mean", families.Gamma(np.ones(3), 1.0), "a factor of 'mean' is a Normal .* got Gamma"),
    (
        "mean",
        families.Normal(np.zeros(2), 1.0),
        r"has the shape \(3,\): its plates \(component\).* got \(2,\)",
    ),
    ("weights", families.Dirichlet(np.ones(4)), r"has the shape \(3,\): .* got \(4,\)"),
]


@pytest.mark.parametrize(("name", "factor", "message"), OTHERS)
def test_elbo_at_takes_factors_of_its_variables_only(
    model: cv.Model, name: str, factor: object, message: str
) -> None:
    posterior = model.fit({"x": X}, seed=0, max_iter=2)
    with pytest.raises(cv.ParameterError, match=message):
        posterior.elbo_at({name: factor}, {"x": X})


@pytest.mark.parametrize(("name", "factor", "message"), [case for case in OTHERS if case[1] != "gamma"])
def test_a_fit_starts_at_factors_of_its_variables_only(
    model: cv.Model, name: str, factor: object, message: str
) -> None:
    with pytest.raises(cv.ParameterError, match=message):
        model.fit({"x": X}, init={name: factor})


@pytest.mark.parametrize("shape", [(5, 3), (6, 4), (3, 6)])
def test_labels_are_those_of_the_rows_and_categories(model: cv.Model, shape: tuple[int, int]) -> None:
    """The transposed probabilities have as many numbers as the right ones."""
    posterior = model.fit({"x": X}, seed=0, max_iter=2)
    with pytest.raises(cv.ParameterError, match=r"probabilities of shape \(6, 3\), rows of data first"):
        posterior.elbo_at({"z": families.Categorical(np.full(shape, 1 / shape[1]))}, {"x": X})
    with pytest.raises(cv.ParameterError, match=r"a factor of 'z' is a Categorical .* got 'labels'"):
        posterior.elbo_at({"z": "labels"}, {"x": X})


def joint(kind: str) -> cv.Model:
    obs = cv.Plate("obs")
    if kind == "number":
        return cv.Model(cv.Normal("x", cv.NormalGamma("theta", 0.0, 1.0, 1.0, 1.0), plates=obs))
    theta = cv.NormalWishart("theta", np.zeros(2), 1.0, 3.0, np.eye(2))
    return cv.Model(cv.MultivariateNormal("x", theta, plates=obs))


@pytest.mark.parametrize(("kind", "pair"), [("number", (1.0, 2.0)), ("vector", ([1.0, 0.0], np.eye(2)))])
def test_a_joint_factor_starts_at_a_plain_pair(kind: str, pair: tuple) -> None:
    """One factor: whatever the start, one update gives the exact posterior."""
    data = {"x": X if kind == "number" else X.reshape(3, 2)}
    assert joint(kind).fit(data, init={"theta": pair}).elbo == pytest.approx(
        joint(kind).fit(data).elbo, rel=1e-12
    )


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        ("number", (1.0, 2.0, 3.0), r"a distribution or a pair \(mean, precision\)"),
        ("number", 1.0, r"a distribution or a pair \(mean, precision\)"),
        ("number", ("a", 1.0), r"a distribution or a pair \(mean, precision\)"),
        ("number", (1.0, -1.0), "precision in init of 'theta' must be positive"),
        ("number", (1.0, 0.0), "precision in init of 'theta' must be positive"),
        ("number", (np.nan, 1.0), "a mean that must be finite"),
        ("vector", ([1.0, 2.0], 1.0), r"has shape \(\) for a mean of shape \(2,\)"),
        ("vector", ([1.0, 2.0], -np.eye(2)), "must be positive definite"),
        ("vector", ([1.0, 2.0, 3.0], np.eye(3)), r"has the shape \(2,\): .* got \(3,\)"),
    ],
)
def test_a_joint_factor_starts_nowhere_else(kind: str, value: object, message: str) -> None:
    data = {"x": X if kind == "number" else X.reshape(3, 2)}
    with pytest.raises(cv.ParameterError, match=message):
        joint(kind).fit(data, init={"theta": value})


@pytest.mark.parametrize("value", [(1.0, 2.0), 10**400])
def test_a_number_is_no_pair_and_fits_a_double(value: object) -> None:
    obs = cv.Plate("obs")
    model = cv.Model(cv.Normal("x", 0.0, cv.Gamma("tau", 1.0, 1.0), plates=obs))
    with pytest.raises(cv.ParameterError, match=r"init of 'tau' must fit shape \(\)"):
        model.fit({"x": X}, init={"tau": value})
