"""Observations of an outer plate beside those within it: Normals whose evidence SciPy has."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, norm

import caviar as cv

SCHOOL = np.array([0, 0, 1, 3, 3, 3])
SCORE = np.array([0.3, -1.2, 2.0, 0.7, 0.1, -0.4])
BUDGET = np.array([1.0, np.nan, -0.5, 2.0])


def model(budget_first: bool) -> cv.Model:
    school = cv.Plate("school")
    pupil = cv.Plate("pupil", within=school)
    level = cv.Normal("level", 0.0, 1.0, plates=school)
    leaves = [cv.Normal("budget", level, 1.0, plates=school), cv.Normal("score", level, 1.0, plates=pupil)]
    return cv.Model(*(leaves if budget_first else leaves[::-1]))


@pytest.mark.parametrize("budget_first", [True, False])
def test_both_are_counted_in_either_order(budget_first: bool) -> None:
    """Unit variances and a level that each school shares; school 2 has no pupils, and the budget of 1 is missing."""
    known = ~np.isnan(BUDGET)
    values, owner = np.concatenate([BUDGET[known], SCORE]), np.concatenate([np.flatnonzero(known), SCHOOL])
    covariance = np.eye(len(owner)) + (owner[:, None] == owner)
    exact = multivariate_normal.logpdf(values, np.zeros(len(owner)), covariance)
    posterior = model(budget_first).fit({"budget": BUDGET, "score": SCORE, "school": SCHOOL})
    assert posterior.elbo == pytest.approx(exact, rel=1e-12)


def test_the_rows_are_those_of_the_plate_within() -> None:
    data = {"budget": BUDGET, "score": SCORE, "school": SCHOOL}
    with pytest.raises(cv.PlateError, match="data_plate='school', but plate 'pupil' lies within another"):
        model(True).fit(data, data_plate="school")
    assert model(True).fit(data, data_plate="pupil").elbo == model(True).fit(data).elbo


@pytest.mark.parametrize("groups_first", [False, True])
def test_labels_choose_from_values_that_each_group_has(groups_first: bool) -> None:
    """As many groups as labels: the group of a row chooses from the groups, its label from the rest."""
    outer, component = cv.Plate("outer", 3), cv.Plate("component", 3)
    obs = cv.Plate("obs", within=outer)
    table = np.random.default_rng(0).normal(0, 2, (3, 3))
    weights, group, x = (
        np.array([0.2, 0.5, 0.3]),
        np.array([0, 0, 2, 2, 1]),
        np.array([0.1, 0.3, 2.0, 1.0, 0.5]),
    )
    plates = (outer, component) if groups_first else (component, outer)
    means = cv.Constant("means", table if groups_first else table.T, plates=plates)
    z, label = cv.Categorical("z", weights, plates=obs), cv.Data("label", plates=obs)
    data = {"x": x, "outer": group}
    exact = logsumexp(np.log(weights) + norm.logpdf(x[:, None], table[group]), axis=1).sum()
    for chosen in (means[z], means[z, cv.Data("outer", plates=obs)]):
        assert cv.Model(cv.Normal("x", chosen, 1.0, plates=obs)).fit(data).elbo == pytest.approx(
            exact, rel=1e-12
        )
    # and so where another label chooses as well
    v, other = cv.Categorical("v", [0.5, 0.5], plates=obs), cv.Plate("other", 2)
    wider = np.stack([means.value, means.value + 1.0], axis=-1)
    model = cv.Model(
        cv.Normal("x", cv.Constant("wide", wider, plates=(*plates, other))[z, v], 1.0, plates=obs)
    )
    each = norm.logpdf(x[:, None, None], table[group][..., None] + np.arange(2))
    joint = logsumexp(np.log(0.5 * weights)[:, None] + each, axis=(1, 2)).sum()
    assert model.fit(data).elbo == pytest.approx(joint, rel=1e-12)
    known = np.array([2, 0, 1, 1, 0])
    model = cv.Model(cv.Normal("x", means[label] + cv.Normal("level", 0, 1e12), 1.0, plates=obs))
    simulated = model.simulate(
        0, sizes={"obs": 5}, data={"label": known, "outer": group}, given={"level": 0.0}
    )
    assert model.log_joint({**simulated, "label": known, "outer": group}) - norm.logpdf(
        0, 0, 1e-6
    ) == pytest.approx(norm.logpdf(simulated["x"], table[group, known]).sum(), rel=1e-12)


def test_the_group_of_each_row_may_be_told_where_nothing_asks_for_it() -> None:
    obs = cv.Plate("obs", within=cv.Plate("outer", 3))
    model = cv.Model(cv.Normal("x", cv.Data("mean", plates=obs), 1.0, plates=obs))
    data = {"mean": np.arange(3.0), "outer": np.array([0, 2, 2])}
    simulated = model.simulate(0, sizes={"obs": 3}, data=data)
    assert model.log_joint({**data, **simulated}) == pytest.approx(
        norm.logpdf(simulated["x"] - np.arange(3)).sum()
    )


def test_where_a_known_label_may_choose_from_the_groups_the_group_is_said() -> None:
    outer, component, other = cv.Plate("outer", 3), cv.Plate("component", 2), cv.Plate("other", 2)
    obs = cv.Plate("obs", within=outer)
    z, label = cv.Categorical("z", [0.5, 0.5], plates=obs), cv.Data("label", plates=obs)
    mean = cv.Normal("mean", 0.0, 1.0, plates=(outer, component, other))
    with pytest.raises(cv.PlateError, match=r"as one more index: Data\('outer', plates=obs\)"):
        cv.Normal("x", mean[z, label], 1.0, plates=obs)
    cv.Normal("x", mean[z, label, cv.Data("outer", plates=obs)], 1.0, plates=obs)


def test_values_of_new_groups_are_found_where_globals_share_a_factor() -> None:
    """Intercept and slope have one factor; given it, the precision of a school is a Gamma in closed form."""
    school = cv.Plate("school", 4)
    pupil = cv.Plate("pupil", within=school)
    start, slope = cv.Normal("start", 0.0, 0.1), cv.Normal("slope", 0.0, 0.1)
    tau = cv.Gamma("tau", 2.0, 1.0, plates=school)
    line = start + slope * cv.Data("age", plates=pupil)
    model = cv.Model(cv.Normal("score", line, tau, plates=pupil))
    age = np.arange(6.0)
    posterior = model.fit({"score": SCORE, "school": SCHOOL, "age": age}, tol=1e-12)
    # the joint Normal of both, from the expected precisions of the fit
    design = np.column_stack([np.ones(6), age])
    weights = posterior["tau"].mean[SCHOOL]
    covariance = np.linalg.inv(0.1 * np.eye(2) + design.T @ (weights[:, None] * design))
    mean = covariance @ design.T @ (weights * SCORE)
    score, own, later = np.array([0.5, -2.0, 1.0]), np.array([1, 1, 2]), np.array([0.0, 3.0, 9.0])
    rows = np.column_stack([np.ones(3), later])
    squares = (score - rows @ mean) ** 2 + np.sum(rows @ covariance * rows, axis=1)
    shape = 2.0 + np.bincount(own, minlength=4) / 2
    rate = 1.0 + np.bincount(own, squares, minlength=4) / 2
    found = posterior.local({"score": score, "school": own, "age": later})["tau"]
    np.testing.assert_allclose(found.mean, shape / rate, rtol=1e-5)
