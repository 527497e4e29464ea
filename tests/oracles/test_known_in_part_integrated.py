"""Figures of globals of which some repetitions are known: those of the smaller model that has these as data.

The smaller model has the other repetitions alone, the known values as observed draws of their prior, and the rows of
known repetitions as rows of their own. Both are integrated over the same globals, from the same draws.
"""

import numpy as np
import pytest
from scipy.special import ndtr

import caviar as cv

ROW, KNOWN_ROW, FOUR, TWO = cv.Plate("row"), cv.Plate("known row"), cv.Plate("four", 4), cv.Plate("two", 2)
G = np.repeat(np.arange(6), 4)
IS_KNOWN = np.isin(np.arange(6), [1, 4])
OF_KNOWN = IS_KNOWN[G]
AMONG = np.cumsum(~IS_KNOWN) - 1


def _rows(name):
    return cv.Data(name, plates=ROW)


def _known_rows(name):
    return cv.Data(name, plates=KNOWN_ROW)


def _given(values):
    found = np.full(6, np.nan)
    found[IS_KNOWN] = values
    return found


def _apart(values, y):
    """Return the data of the smaller model."""
    return {
        "y": y[~OF_KNOWN],
        "g": AMONG[G[~OF_KNOWN]],
        "known": values,
        "known y": y[OF_KNOWN],
        "of row": _given(values)[G[OF_KNOWN]],
    }


def _groups():
    """Effects about an unknown level, with which they share a factor."""
    y, values = np.random.default_rng(3).normal(size=24) + 0.4 * G, np.array([0.7, -0.3])

    def model(is_smaller):
        level, between, tau = cv.Normal("level", 0, 0.1), cv.Gamma("between", 2, 1), cv.Gamma("tau", 2, 1)
        own = cv.Normal("own", level, between, plates=FOUR if is_smaller else cv.Plate("group", 6))
        leaves = [cv.Normal("y", own[_rows("g")], tau, plates=ROW)]
        if is_smaller:
            leaves.append(cv.Normal("known", level, between, plates=TWO))
            leaves.append(cv.Normal("known y", _known_rows("of row"), tau, plates=KNOWN_ROW))
        return cv.Model(*leaves)

    return model, {"y": y, "g": G, "own": _given(values)}, _apart(values, y), ["level", "between", "tau"]


def _slopes():
    """Vectors of intercept and slope, beside a common effect, with which they share a factor."""
    rng = np.random.default_rng(5)
    x, values = np.stack([np.ones(24), rng.normal(size=24)], axis=1), np.array([[0.5, 1.0], [-0.2, 0.3]])
    given = np.full((6, 2), np.nan)
    given[IS_KNOWN] = values
    y = rng.normal(size=24) + (x * rng.normal(size=(6, 2))[G]).sum(axis=1)

    def model(is_smaller):
        level, tau = cv.Normal("level", 0, 0.1), cv.Gamma("tau", 2, 1)
        plate = FOUR if is_smaller else cv.Plate("group", 6)
        own = cv.MultivariateNormal("own", np.zeros(2), np.eye(2), plates=plate)
        leaves = [cv.Normal("y", level + cv.dot(_rows("x"), own[_rows("g")]), tau, plates=ROW)]
        if is_smaller:
            mean = level + _known_rows("of row")
            leaves.append(cv.Normal("known y", mean, tau, plates=KNOWN_ROW))
        return cv.Model(*leaves)

    smaller = {
        "y": y[~OF_KNOWN],
        "x": x[~OF_KNOWN],
        "g": AMONG[G[~OF_KNOWN]],
        "known y": y[OF_KNOWN],
        "of row": (x * given[G])[OF_KNOWN].sum(axis=1),
    }
    return model, {"y": y, "x": x, "g": G, "own": given}, smaller, ["level", "tau"]


def _alone():
    """Effects that share no factor."""
    y, values = np.random.default_rng(4).normal(size=24) + 0.4 * G, np.array([0.7, -0.3])

    def model(is_smaller):
        between, tau = cv.Gamma("between", 2, 1), cv.Gamma("tau", 2, 1)
        own = cv.Normal("own", 0.5, between, plates=FOUR if is_smaller else cv.Plate("group", 6))
        leaves = [cv.Normal("y", own[_rows("g")], tau, plates=ROW)]
        if is_smaller:
            leaves.append(cv.Normal("known", 0.5, between, plates=TWO))
            leaves.append(cv.Normal("known y", _known_rows("of row"), tau, plates=KNOWN_ROW))
        return cv.Model(*leaves)

    return model, {"y": y, "g": G, "own": _given(values)}, _apart(values, y), ["between", "tau"]


def _rates():
    """Rates of counts, with a factor each."""
    y, values = np.random.default_rng(3).poisson(3, size=24), np.array([2.5, 4.0])

    def model(is_smaller):
        spread = cv.Gamma("spread", 2, 1)
        own = cv.Gamma("own", 2.0, spread, plates=FOUR if is_smaller else cv.Plate("group", 6))
        leaves = [cv.Poisson("y", own[_rows("g")], plates=ROW)]
        if is_smaller:
            leaves.append(cv.Gamma("known", 2.0, spread, plates=TWO))
            leaves.append(cv.Poisson("known y", _known_rows("of row"), plates=KNOWN_ROW))
        return cv.Model(*leaves)

    return model, {"y": y, "g": G, "own": _given(values)}, _apart(values, y), ["spread"]


@pytest.mark.thinned(2)
@pytest.mark.parametrize("make", [_groups, _slopes, _alone, _rates])
def test_figures_are_those_of_the_smaller_model(make):
    model, data, smaller, names = make()
    found = model(is_smaller=False).fit(data, tol=1e-12, max_iter=2000)
    wanted = model(is_smaller=True).fit(smaller, tol=1e-12, max_iter=2000)
    assert found.uncertainty == wanted.uncertainty == "integrated"
    for name in (*names, "own"):
        where = ~IS_KNOWN if name == "own" else ...
        for figure in (found.mean, found.sd):
            own = np.asarray(figure(name))[where]
            np.testing.assert_allclose(own, getattr(wanted, figure.__name__)(name), rtol=1e-5, atol=1e-6)
        ends = found.interval(name, 0.9)[:, where] if name == "own" else found.interval(name, 0.9)
        np.testing.assert_allclose(ends, wanted.interval(name, 0.9), rtol=1e-5, atol=1e-6)


def test_predictions_are_those_of_the_smaller_model():
    """They came from the factors, whose intervals are too narrow."""
    model, data, smaller, _ = _slopes()
    posterior = model(is_smaller=False).fit(data, tol=1e-12, max_iter=2000)
    wanted = model(is_smaller=True).fit(smaller, tol=1e-12, max_iter=2000)
    x = np.array([[1.0, 0.0], [1.0, 2.0]])
    # its rows of known groups are observed
    beside = {name: smaller[name] for name in ("known y", "of row")}
    one, other = (
        posterior.predict({"g": [0, 5], "x": x})["y"],
        wanted.predict({"g": [0, 3], "x": x, **beside})["y"],
    )
    np.testing.assert_allclose(one.mean, other.mean, rtol=1e-5)
    np.testing.assert_allclose(one.sd, other.sd, rtol=1e-5)
    np.testing.assert_allclose(one.interval(0.9), other.interval(0.9), rtol=1e-5)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("is_above", [False, True])
def test_predictions_are_those_of_quadrature(is_above):
    """Over both precisions; given these all is Normal. The mean of the effects is unknown, or they share no factor."""
    model, data, *_ = _groups() if is_above else _alone()
    logs = [(a, b) for a in np.linspace(-4.0, 3.0, 41) for b in np.linspace(-5.0, 5.0, 45)]
    # rows of a design: of the level, then of the six effects
    known, mean = ~np.isnan(data["own"]), 0.0 if is_above else 0.5
    effects = np.eye(7)[1:] - is_above * np.eye(7)[0]
    design = np.concatenate([np.eye(7)[:1], effects, np.eye(7)[1:][G]])
    learnt = np.append(True, ~known)
    said = np.concatenate([[0.0], np.full(6, mean), data["y"]]) - design[:, ~learnt] @ data["own"][known]
    masses, means, variances = [], [], []
    for log_tau, log_between in logs:
        tau, between = np.exp([log_tau, log_between])
        precision = np.concatenate([[0.1], np.full(6, between), np.full(24, tau)])
        own = design[:, learnt]
        joint = (own.T * precision) @ own
        at = np.linalg.solve(joint, own.T @ (precision * said))
        squares = precision @ (said - own @ at) ** 2
        log_density = 0.5 * (np.log(precision).sum() - squares - np.linalg.slogdet(joint)[1])
        masses.append(log_density + 2.0 * (log_tau + log_between) - tau - between)
        asked = np.eye(7)[[1, 6]][:, learnt]
        means.append([*(asked @ at), *data["own"][known]])
        variances.append(
            [*np.diagonal(asked @ np.linalg.inv(joint) @ asked.T) + 1.0 / tau, 1.0 / tau, 1.0 / tau]
        )
    weights = np.exp(np.array(masses) - max(masses))
    weights /= weights.sum()
    mean = weights @ np.array(means)
    sd = np.sqrt(weights @ (np.array(variances) + (np.array(means) - mean) ** 2))
    told = model(is_smaller=False).fit(data, tol=1e-12, max_iter=2000).predict({"g": [0, 5, 1, 4]})["y"]
    np.testing.assert_allclose(told.mean, mean, atol=1e-2)
    np.testing.assert_allclose(told.sd, sd, rtol=7e-3)
    below = np.stack(
        [weights @ ndtr((end - np.array(means)) / np.sqrt(variances)) for end in told.interval(0.9)]
    )
    np.testing.assert_allclose(below, np.array([[0.05], [0.95]]) * np.ones(4), atol=3e-3)


@pytest.mark.parametrize("uncertainty", ["auto", "second_order", "linear_response", "mean_field"])
@pytest.mark.parametrize("make", [_groups, _slopes, _rates])
def test_what_is_known_has_no_width(make, uncertainty):
    model, data, *_ = make()
    posterior = model(is_smaller=False).fit(data, uncertainty=uncertainty)
    given = data["own"][IS_KNOWN]
    np.testing.assert_array_equal(posterior.mean("own")[IS_KNOWN], given)
    np.testing.assert_array_equal(posterior.sd("own")[IS_KNOWN], 0.0)
    np.testing.assert_array_equal(posterior.interval("own", 0.9)[:, IS_KNOWN], np.stack([given, given]))
    assert (posterior.sd("own")[~IS_KNOWN] > 0).all()
    assert "nan" not in str(posterior.summary())


def test_labels_of_groups_that_are_known_have_no_width():
    component = cv.Plate("component", 2)
    z = cv.Categorical("z", cv.Dirichlet("weights", [1.0, 1.0]), plates=cv.Plate("group", 6))
    mean = cv.Normal("mean", [-1.0, 1.0], 0.5, plates=component)
    model = cv.Model(cv.Normal("y", mean[z[_rows("g")]], 1.5, plates=ROW))
    y = np.random.default_rng(0).normal(size=24) + np.where(G < 3, -1.0, 1.0)
    posterior = model.fit({"y": y, "g": G, "z": _given([0, 1])}, seed=0, uncertainty="linear_response")
    np.testing.assert_array_equal(posterior.mean("z")[IS_KNOWN], np.eye(2))
    np.testing.assert_array_equal(posterior.sd("z")[IS_KNOWN], 0.0)


def test_what_is_known_has_no_density_in_plots():
    model, data, *_ = _groups()
    posterior = model(is_smaller=False).fit(data)
    assert len(cv.plot.prior_posterior(posterior, "own")) == 4
    (line,) = {len(own.lines) for own in np.ravel(cv.plot.forest(posterior, "own"))}
    # a point each, an interval of what is not known, and zero
    assert line == 6 + 4 + 1


@pytest.mark.parametrize("place", ["shared", "apart"])
def test_a_group_without_rows_beside_known_ones(place):
    """It is as wide as a new group: the summary ended with an error."""
    y = np.random.default_rng(3).normal(size=24) + 0.4 * G
    between, tau = cv.Gamma("between", 2, 1), cv.Gamma("tau", 2, 1)
    own = cv.Normal("own", 0.0, between, plates=cv.Plate("group", 7))
    level = cv.Normal("level", 0, 0.1)
    model = cv.Model(cv.Normal("y", level + own[_rows("g")], tau, plates=ROW))
    data = {"y": y, "g": G, "own": np.append(_given([0.7, -0.3]), np.nan)}
    arguments = {"tol": 1e-12, "max_iter": 2000, "factors": "apart" if place == "apart" else None}
    posterior = model.fit(data, **arguments)
    without = cv.Model(
        cv.Normal(
            "y",
            cv.Normal("level", 0, 0.1)
            + cv.Normal("own", 0.0, cv.Gamma("between", 2, 1), plates=cv.Plate("group", 6))[_rows("g")],
            cv.Gamma("tau", 2, 1),
            plates=ROW,
        )
    ).fit({**data, "own": data["own"][:6]}, **arguments)
    for name in ("level", "between", "tau"):
        np.testing.assert_allclose(posterior.sd(name), without.sd(name), rtol=5e-3)
    np.testing.assert_allclose(posterior.sd("own")[:6], without.sd("own"), rtol=5e-3)
    assert posterior.sd("own")[6] > posterior.sd("own")[~np.append(IS_KNOWN, True)].max()
    for response in (posterior.linear_response(data), model.fit(data, **arguments).linear_response(data)):
        assert response.sd("own")[6] ** 2 == pytest.approx(posterior["own"].variance[6], rel=1e-6)
