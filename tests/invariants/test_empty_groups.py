"""Repetitions of globals without an observation below them, as groups without rows, integrate to one: none counts."""

from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import gamma, multivariate_normal, norm

import caviar as cv

TIGHT = {"seed": 0, "tol": 1e-13, "max_iter": 2000}


def groups(seed: int = 0, n: int = 6) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.normal(rng.normal(0, 2), 1, size=rng.integers(1, 6)) for _ in range(n)]


def nested() -> cv.Model:
    """Rows within groups, whose means have an unknown mean and precision."""
    doc = cv.Plate("doc")
    m = cv.Normal("m", cv.Normal("mu", 0.0, 0.01), cv.Gamma("tau", 1.0, 1.0), plates=doc)
    return cv.Model(cv.Normal("x", m, cv.Gamma("noise", 2.0, 2.0), plates=cv.Plate("row", within=doc)))


def labelled(n: int) -> cv.Model:
    """The same with the group of each row as a known label."""
    group, obs = cv.Plate("group", n), cv.Plate("obs")
    m = cv.Normal("m", cv.Normal("mu", 0.0, 0.01), cv.Gamma("tau", 1.0, 1.0), plates=group)
    return cv.Model(cv.Normal("x", m[cv.Data("g", plates=obs)], cv.Gamma("noise", 2.0, 2.0), plates=obs))


def rows(parts: list[np.ndarray]) -> dict[str, np.ndarray]:
    return {"x": np.concatenate(parts), "g": np.repeat(np.arange(len(parts)), [len(p) for p in parts])}


def assert_same(
    one: cv.Posterior, other: cv.Posterior, names: tuple[str, ...] = ("mu", "tau", "noise")
) -> None:
    assert other.elbo == pytest.approx(one.elbo, abs=1e-8)
    for name in names:
        np.testing.assert_allclose(other[name].mean, one[name].mean, rtol=1e-5)
        np.testing.assert_allclose(other[name].variance, one[name].variance, rtol=1e-5)


@pytest.mark.slow
def test_the_bound_is_below_the_evidence_by_no_more_than_without_empty_groups() -> None:
    """With everything known but the precision of the hierarchy, the evidence is an integral over one number."""
    doc = cv.Plate("doc")
    m = cv.Normal("m", 0.5, cv.Gamma("tau", 2.0, 2.0), plates=doc)
    model = cv.Model(cv.Normal("x", m, 1.0, plates=cv.Plate("row", within=doc)))
    parts = groups(1)

    def likelihood(tau: float) -> float:
        own = gamma(2.0, scale=0.5).pdf(tau)
        for part in parts:
            size = len(part)
            own *= multivariate_normal(np.full(size, 0.5), np.eye(size) + 1 / tau).pdf(part)
        return own

    scale = 1e12
    exact = np.log(quad(lambda tau: scale * likelihood(tau), 0, 40, epsabs=0, epsrel=1e-10)[0] / scale)
    alone = model.fit({"x": parts}, **TIGHT)
    padded = model.fit({"x": [*parts, *[np.zeros(0)] * 50]}, **TIGHT)
    assert alone.elbo < exact
    assert padded.elbo == pytest.approx(alone.elbo, abs=1e-9)
    assert padded["tau"].shape == pytest.approx(2.0 + 0.5 * len(parts))


@pytest.mark.slow
@pytest.mark.parametrize("n_empty", [1, 100])
def test_empty_groups_of_nested_plates(n_empty: int) -> None:
    parts = groups()
    alone = nested().fit({"x": parts}, **TIGHT)
    mixed = [*parts[:3], *[np.zeros(0)] * n_empty, *parts[3:]]
    padded = nested().fit({"x": mixed}, **TIGHT)
    assert_same(alone, padded)
    seen = [bool(len(part)) for part in mixed]
    np.testing.assert_allclose(padded["m"].mean[seen], alone["m"].mean, rtol=1e-5)
    # an empty group is forecast from the hierarchy
    np.testing.assert_allclose(padded["m"].mean[np.logical_not(seen)], padded["mu"].mean, rtol=1e-5)
    # with what is not known of it
    tau = padded["tau"]
    forecast = tau.rate / (tau.shape - 1) + padded["mu"].variance
    np.testing.assert_allclose(padded["m"].variance[np.logical_not(seen)], forecast, rtol=1e-5)
    assert sum(padded.elbo_terms.values()) == pytest.approx(padded.elbo, rel=1e-12)
    assert padded.elbo_at({}, {"x": mixed}) == pytest.approx(padded.elbo, rel=1e-12)
    assert np.diff(padded.elbo_trace).min() > -1e-9


@pytest.mark.slow
def test_a_group_whose_rows_are_all_missing_is_empty() -> None:
    parts = groups()
    alone = nested().fit({"x": parts}, **TIGHT)
    assert_same(alone, nested().fit({"x": [*parts, np.full(4, np.nan)]}, **TIGHT))


@pytest.mark.parametrize("settings", [{}, {"schedule": cv.Incremental(2)}, {"executor": 2}], ids=str)
def test_labels_that_no_row_has(settings: dict[str, Any]) -> None:
    parts = groups(2, 40)
    data = rows(parts)
    alone = labelled(40).fit(data, **TIGHT)
    assert_same(alone, labelled(90).fit(data, **TIGHT, **settings))


def test_rows_of_weight_zero_make_no_group() -> None:
    parts = groups(3)
    more = [*parts, np.array([50.0, 60.0])]
    weights = np.ones(sum(len(part) for part in more))
    weights[-2:] = 0
    alone = labelled(6).fit(rows(parts), **TIGHT)
    assert_same(alone, labelled(7).fit(rows(more), sample_weight=weights, **TIGHT))


def test_a_column_that_was_never_observed() -> None:
    rng = np.random.default_rng(4)
    x = rng.normal(size=(20, 4))

    def model(n: int) -> cv.Model:
        column, obs = cv.Plate("column", n), cv.Plate("obs")
        m = cv.Normal("m", cv.Normal("mu", 0.0, 0.01), cv.Gamma("tau", 1.0, 1.0), plates=column)
        return cv.Model(cv.Normal("x", m, cv.Gamma("noise", 2.0, 2.0), plates=(obs, column)))

    alone = model(4).fit({"x": x}, data_plate="obs", **TIGHT)
    padded = np.insert(x, 2, np.nan, axis=1)
    assert_same(alone, model(5).fit({"x": padded}, data_plate="obs", **TIGHT))


def test_regions_of_which_all_groups_are_empty() -> None:
    """Emptiness is handed up: what has only empty groups below it is empty too."""
    parts = groups(5, 6)

    def fit(n_regions: int, region: list[int], data: dict[str, np.ndarray]) -> cv.Posterior:
        regions, group, obs = cv.Plate("regions", n_regions), cv.Plate("group", len(region)), cv.Plate("obs")
        r = cv.Normal("r", cv.Normal("mu", 0.0, 0.01), cv.Gamma("tau", 1.0, 1.0), plates=regions)
        m = cv.Normal("m", r[cv.Data("region", plates=group)], cv.Gamma("inner", 1.0, 1.0), plates=group)
        x = cv.Normal("x", m[cv.Data("g", plates=obs)], 1.0, plates=obs)
        return cv.Model(x).fit({**data, "region": region}, data_plate="obs", **TIGHT)

    data = rows(parts)
    alone = fit(2, [0, 0, 0, 1, 1, 1], data)
    padded = fit(4, [0, 0, 0, 1, 1, 1, 3, 2, 3], data)
    assert_same(alone, padded, ("mu", "tau", "inner"))


def test_vectors_of_empty_groups() -> None:
    rng = np.random.default_rng(6)
    counts = np.array([4, 3, 5, 2, 6])
    labels = np.repeat(np.arange(5), counts)
    covariates = np.stack([np.ones(len(labels)), rng.normal(size=len(labels))], axis=1)
    y = (covariates * rng.normal(size=(5, 2))[labels]).sum(axis=1) + rng.normal(size=len(labels))

    def fit(n: int) -> cv.Posterior:
        group, obs = cv.Plate("group", n), cv.Plate("obs")
        centre = cv.MultivariateNormal("centre", np.zeros(2), 0.1 * np.eye(2))
        b = cv.MultivariateNormal("b", centre, cv.Wishart("P", 3.0, np.eye(2)), plates=group)
        mean = cv.dot(cv.Data("X", plates=obs), b[cv.Data("g", plates=obs)])
        return cv.Model(cv.Normal("y", mean, 1.0, plates=obs)).fit(
            {"y": y, "X": covariates, "g": labels}, **TIGHT
        )

    alone, padded = fit(5), fit(12)
    assert padded.elbo == pytest.approx(alone.elbo, abs=1e-8)
    np.testing.assert_allclose(padded["P"].df, alone["P"].df)
    np.testing.assert_allclose(padded["P"].mean, alone["P"].mean, rtol=1e-4, atol=1e-6)


def test_a_known_repetition_is_an_observation() -> None:
    """The mean of a group without rows is data for the hierarchy where it is known."""
    parts = groups(7, 4)
    known = np.array([np.nan] * 4 + [1.5])
    data = rows(parts)
    fit = labelled(5).fit({**data, "m": known}, **TIGHT)
    assert fit["tau"].shape == pytest.approx(1.0 + 0.5 * 5)
    more = labelled(8).fit({**data, "m": np.append(known, [np.nan] * 3)}, **TIGHT)
    assert_same(fit, more)


def test_labels_of_empty_groups_are_not_counted() -> None:
    """A latent label of each column of a table; of a column without entries it would count for the weights."""
    rng = np.random.default_rng(8)
    x = rng.normal(size=(15, 5)) + np.array([-3.0, 3.0, 3.0, -3.0, 3.0])

    def fit(data: np.ndarray) -> cv.Posterior:
        column, obs, k = cv.Plate("column", data.shape[1]), cv.Plate("obs"), cv.Plate("k", 2)
        z = cv.Categorical("z", cv.Dirichlet("w", np.ones(2)), plates=column)
        mean = cv.Constant("mean", [-3.0, 3.0], plates=k)
        model = cv.Model(cv.Normal("x", mean[z], 1.0, plates=(obs, column)))
        return model.fit({"x": data}, data_plate="obs", **TIGHT)

    alone, padded = fit(x), fit(np.insert(x, [1, 3], np.nan, axis=1))
    assert padded["w"].concentration.sum() == pytest.approx(2 + 5)
    assert padded.elbo == pytest.approx(alone.elbo, abs=1e-8)


def test_points_stay_in_the_joint_density() -> None:
    """A point is part of the objective log p(x, theta) whatever is below it."""
    parts = groups(9)
    fit = labelled(8).fit(rows(parts), point=["m"], **TIGHT)
    values = {name: fit[name].mean for name in ("mu", "tau", "noise", "m")}
    points = labelled(8).fit(rows(parts), point=list(values), init=values, max_iter=0)
    assert points.elbo == pytest.approx(labelled(8).log_joint({**rows(parts), **values}), rel=1e-10)


def test_more_rows_for_groups_that_were_empty() -> None:
    """What was believed of a group without rows is a factor of its own in an update."""
    parts = groups(10)
    first = labelled(8).fit(rows(parts), **TIGHT)
    both = first.update({"x": np.array([1.0, 2.0]), "g": np.array([6, 6])}, **TIGHT)
    assert np.diff(both.elbo_trace).min(initial=0.0) > -1e-9
    assert both["m"].variance[6] < first["m"].variance[6]


@pytest.mark.thinned(2)
@pytest.mark.parametrize("n", [6, 9])
def test_the_estimate_from_draws_agrees(n: int) -> None:
    data = rows(groups(11))
    report = cv.testing.check_model(labelled(n), data, n_draws=400)
    assert report.passed, str(report)


@pytest.mark.slow
@pytest.mark.parametrize("point", [[], ["m"], ["r"]], ids=["no point", "groups", "regions"])
def test_points_below_and_above_empty_groups(point: list[str]) -> None:
    """A group whose mean is a point counts in the objective, and so does the region above it."""
    regions, group, obs = cv.Plate("regions", 3), cv.Plate("group", 6), cv.Plate("obs")
    r = cv.Normal("r", cv.Normal("mu", 0.0, 0.01), cv.Gamma("tau", 2.0, 1.0), plates=regions)
    m = cv.Normal("m", r[cv.Data("region", plates=group)], cv.Gamma("inner", 2.0, 1.0), plates=group)
    model = cv.Model(cv.Normal("x", m[cv.Data("g", plates=obs)], 1.0, plates=obs))
    data = {**rows(groups(12, 4)), "region": [0, 0, 1, 1, 1, 2]}
    report = cv.testing.check_model(model, data, data_plate="obs", point=point, n_draws=150)
    assert report.passed, str(report)


@pytest.mark.parametrize("factors", [None, []])
def test_what_is_hidden_above_a_missing_value_of_a_row_is_as_its_prior_says(factors: Any) -> None:
    """Where another value of the row was observed, two hidden numbers above each other and a precision."""
    obs = cv.Plate("obs")
    mu, rate = cv.Normal("mu", 0.0, 0.4), cv.Gamma("rate", 6.0, 2.5)
    upper = cv.Normal("upper", mu, 0.4, plates=obs)
    scale = cv.Gamma("scale", 2.0, rate, plates=obs)
    y = cv.Normal("y", cv.Normal("lower", upper, scale, plates=obs), 1.3, plates=obs)
    x = cv.Normal("x", cv.Normal("w", 0.0, 1.0), 1.5, plates=obs)
    of_x, of_y = {"x": np.array([1.8, 0.8, 1.1])}, {"y": np.array([1.2, 0.9, np.nan])}
    both = cv.Model(x, y).fit({**of_x, **of_y}, factors=factors, **TIGHT)
    # the two leaves share nothing but the rows
    alone = cv.Model(y).fit({"y": of_y["y"][:2]}, factors=factors, **TIGHT)
    assert both.elbo == pytest.approx(cv.Model(x).fit(of_x, **TIGHT).elbo + alone.elbo, abs=1e-9)
    local = both.local({**of_x, **of_y})
    np.testing.assert_allclose(local["scale"].mean[2], 2.0 / alone["rate"].mean, rtol=1e-6)
    np.testing.assert_allclose(local["upper"].variance[2], 1.0 / 0.4, rtol=1e-12)
    for name in ("upper", "lower"):
        np.testing.assert_allclose(local[name].mean[2], alone["mu"].mean, rtol=1e-6)


@pytest.mark.first_guess
def test_a_known_label_is_an_observation_of_the_label_that_chose_its_probabilities() -> None:
    """Where the value of the row is missing; by enumeration of both labels."""
    obs, kind, other = cv.Plate("obs"), cv.Plate("kind", 3), cv.Plate("other", 2)
    shares = np.array([[0.3, 0.7], [0.6, 0.4], [0.2, 0.8]])
    means = np.array([[0.0, 1.0], [2.0, -1.0], [0.5, 3.0]])
    z = cv.Categorical("z", cv.Dirichlet("weights", np.full(3, 1e9)), plates=obs)
    y = cv.Categorical("y", cv.Dirichlet("shares", 1e9 * shares, plates=kind)[z], plates=obs)
    mean = cv.Normal("mean", cv.Constant("means", means, plates=(kind, other)), 1e9, plates=(kind, other))
    x = cv.Normal("x", mean[z][y], 1.0, plates=obs)
    # the rows have another value, or those without x would be left out
    beside = cv.Normal("beside", cv.Normal("level", 0.0, 1e9), 1.0, plates=obs)
    values, labels = np.array([0.3, np.nan, np.nan, 1.2, 0.7]), np.array([np.nan, 1, 0, np.nan, 1])
    data = {"x": values, "y": labels, "beside": np.zeros(5)}
    exact = norm.logpdf(np.zeros(5)).sum()
    for value, label in zip(values, labels, strict=True):
        density = 1.0 if np.isnan(value) else norm.pdf(value, means)
        joint = shares / 3.0 * density
        exact += np.log(joint.sum() if np.isnan(label) else joint[:, int(label)].sum())
    together, apart = (cv.Model(x, beside).fit(data, factors=own, **TIGHT) for own in (None, []))
    assert together.elbo == pytest.approx(exact, abs=1e-5)
    assert apart.elbo < exact
