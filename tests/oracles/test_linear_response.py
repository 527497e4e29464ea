"""Linear response is the limit of tilted fits, exact for Gaussian targets, and of points the standard errors of EM."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from invariants.registry import CASES
from scipy import stats
from scipy.signal import lfilter

import caviar as cv
from caviar.engine.response.solutions.chosen import Asked, Iterated
from caviar.engine.response.solutions.formed import Formed
from oracles.tilted import Settled

_RNG = np.random.default_rng(5)
_CLUSTERS = _RNG.normal(size=(60, 2)) + np.where(_RNG.random((60, 1)) < 0.4, 3.0, -1.0)
_GROUPS, _OTHERS = _RNG.integers(0, 6, 60), _RNG.integers(0, 4, 60)
_NOISE = _RNG.normal(size=60)
_GAPPY = np.where(_RNG.random(_CLUSTERS.shape) < 0.2, np.nan, _CLUSTERS)
_GAPPY = _GAPPY[~np.isnan(_GAPPY).all(axis=1)]
_SERIES = np.concatenate([_NOISE[:20] - 1.5, _NOISE[20:45] + 1.5, _NOISE[45:] - 1.5])
_FIRST = np.isin(np.arange(60), [0, 25, 40])

OBS = cv.Plate("obs")


def _gappy() -> cv.Model:
    component = cv.Plate("component", 2)
    mean = cv.MultivariateNormal("mean", [0, 0], np.eye(2) / 9, plates=component)
    precision = cv.Wishart("precision", 3.5, np.eye(2), plates=component)
    z = cv.Categorical("z", cv.Dirichlet("weights", [1.0, 2.0]), plates=OBS)
    return cv.Model(cv.MultivariateNormal("x", mean[z], precision[z], plates=OBS))


def _gappy_alone() -> cv.Model:
    mean = cv.MultivariateNormal("mean", [0, 0], np.eye(2) / 9)
    return cv.Model(cv.MultivariateNormal("x", mean, cv.Wishart("precision", 3.5, np.eye(2)), plates=OBS))


def _states() -> cv.Model:
    state = cv.Plate("state", 2)
    initial = cv.Dirichlet("initial", [1.0, 2.0])
    transition = cv.Dirichlet("transition", [2.0, 1.0], plates=state)
    s = cv.MarkovChain("s", initial, transition, along=OBS, starts=cv.Data("starts", plates=OBS))
    mean, tau = cv.Normal("mean", 0, 0.1, plates=state), cv.Gamma("tau", 2, 1, plates=state)
    return cv.Model(cv.Normal("x", mean[s], tau[s], plates=OBS))


def _hierarchy() -> cv.Model:
    group = cv.Plate("group", 6)
    level = cv.Normal("level", cv.Normal("mean", 0, 0.01), cv.Gamma("between", 2, 1), plates=group)
    known = level[cv.Data("g", plates=OBS)]
    return cv.Model(cv.Normal("y", known, cv.Gamma("within", 2, 1), plates=OBS))


def _crossed() -> cv.Model:
    a = cv.Normal("a", 0, cv.Gamma("s", 2, 1), plates=cv.Plate("row", 6))
    b = cv.Normal("b", 0, 1.0, plates=cv.Plate("column", 4))
    mean = cv.Normal("mean", 0, 0.1) + a[cv.Data("g", plates=OBS)] + b[cv.Data("h", plates=OBS)]
    return cv.Model(cv.Bernoulli("y", cv.logistic(mean), plates=OBS))


def _two_labels() -> cv.Model:
    a = cv.Normal("a", [0.0, 2.0], 1.0, plates=cv.Plate("first", 2))
    b = cv.Normal("b", [0.0, 5.0], 1.0, plates=cv.Plate("second", 2))
    z, u = cv.Categorical("z", [0.4, 0.6], plates=OBS), cv.Categorical("u", [0.5, 0.5], plates=OBS)
    return cv.Model(cv.Normal("y", a[z] + b[u], cv.Gamma("tau", 2, 1), plates=OBS))


def _two_of_a_table() -> cv.Model:
    plates = cv.Plate("first", 2), cv.Plate("second", 2)
    z = cv.Categorical("z", cv.Dirichlet("shares", [3.0, 2.0]), plates=OBS)
    u = cv.Categorical("u", cv.Dirichlet("given", [[3.0, 1.0], [1.0, 3.0]], plates=plates[0])[z], plates=OBS)
    table = cv.Normal("table", [[0.0, 2.0], [5.0, 7.0]], 1.0, plates=plates)
    return cv.Model(cv.Normal("y", table[z, u], cv.Gamma("width", 3, 3, plates=OBS), plates=OBS))


def _state_and_label() -> cv.Model:
    plates = cv.Plate("state", 2), cv.Plate("part", 2)
    s = cv.MarkovChain("s", [0.5, 0.5], cv.Dirichlet("transition", [2.0, 1.0], plates=plates[0]), along=OBS)
    z = cv.Categorical("z", cv.Dirichlet("given", [[3.0, 1.0], [1.0, 3.0]], plates=plates[0])[s], plates=OBS)
    table = cv.Normal("table", [[0.0, 2.0], [1.0, 3.0]], 1.0, plates=plates)
    return cv.Model(cv.Normal("x", table[s, z], cv.Gamma("width", 3, 3, plates=OBS), plates=OBS))


def _robust_states() -> cv.Model:
    state = cv.Plate("state", 2)
    s = cv.MarkovChain("s", [0.5, 0.5], cv.Dirichlet("transition", [2.0, 1.0], plates=state), along=OBS)
    width = cv.Gamma("width", 2.0, 2.0, plates=OBS) * cv.Gamma("tau", 2, 1)
    return cv.Model(cv.Normal("x", cv.Normal("mean", 0, 0.1, plates=state)[s], width, plates=OBS))


def _states_and_level() -> cv.Model:
    state = cv.Plate("state", 2)
    s = cv.MarkovChain("s", [0.5, 0.5], cv.Dirichlet("transition", [2.0, 1.0], plates=state), along=OBS)
    level = cv.LinearGaussianChain("level", [0.0], [[1.0]], [[0.5]], [[9.0]], along=OBS)
    noise = cv.Gamma("tau", 2, 1, plates=state)[s]
    return cv.Model(cv.Normal("x", cv.dot([1.0], level), noise, plates=OBS))


def _pushed() -> cv.Model:
    row = cv.Plate("row", 1)
    effect = cv.MultivariateNormal("effect", [0.0], [[0.5]], plates=row)
    pushes: dict[str, Any] = {"inputs": cv.Data("u", plates=OBS), "input_weights": effect}
    level = cv.LinearGaussianChain("level", [0.0], [[1.0]], [[0.5]], [[9.0]], along=OBS, **pushes)
    return cv.Model(cv.Normal("x", cv.dot([1.0], level), cv.Gamma("tau", 2, 1), plates=OBS))


_FOLLOWED = lfilter([1.0], [1.0, -0.8], np.random.default_rng(3).normal(size=40))
"""States that follow each other: each is 0.8 times the one before, plus noise."""

_DEAR = {"linear dynamics": pytest.mark.slow, "chain with inputs": pytest.mark.slow}
_STATED: dict[str, tuple[Callable[[], cv.Model], dict[str, Any], str]] = {
    "missing entries": (_gappy, {"x": _GAPPY}, "mean"),
    "missing entries, one component": (_gappy_alone, {"x": _GAPPY}, "precision"),
    "hidden Markov": (_states, {"x": _SERIES, "starts": _FIRST}, "mean"),
    "linear dynamics": (
        lambda: cv.models.linear_dynamical_system(2, 1),
        {"x": _FOLLOWED[:, np.newaxis] * [1.0, -0.5] + np.random.default_rng(4).normal(size=(40, 2))},
        "tau",
    ),
    "chain with inputs": (_pushed, {"x": _SERIES[:24], "u": _CLUSTERS[:24, :1]}, "effect"),
    "chain beside scales": (_robust_states, {"x": _SERIES[:24]}, "mean"),
    "two chains": (_states_and_level, {"x": _SERIES[14:26]}, "tau"),
    "hierarchy": (_hierarchy, {"g": _GROUPS, "y": _GROUPS / 3 + _NOISE}, "mean"),
    "crossed, logistic": (_crossed, {"g": _GROUPS, "h": _OTHERS, "y": _NOISE > 0}, "a"),
    "labels that depend on each other": (
        _two_labels,
        {"y": _RNG.choice([0, 2, 5, 7], 24) + 0.4 * _NOISE[:24]},
        "b",
    ),
    "two labels of a table": (
        _two_of_a_table,
        {"y": _RNG.choice([0, 2, 5, 7], 16) + 0.4 * _NOISE[:16]},
        "table",
    ),
    "a state and a label": (_state_and_label, {"x": _SERIES[:20]}, "table"),
    "known labels": (
        _gappy,
        {"x": _CLUSTERS, "z": np.where(_RNG.random(60) < 0.3, _CLUSTERS[:, 0] > 1, np.nan)},
        "mean",
    ),
}

_TURNED = "factors"
"""A model of which nothing tells a rotation."""


@pytest.mark.thinned(36)
@pytest.mark.parametrize("name", [name for name in CASES if name != _TURNED])
def test_means_move_as_tilted_fits_of_every_model_of_the_registry_do(name: str) -> None:
    """Along a tilt by all statistics of all globals at once."""
    case = CASES[name]
    data = case.draw(np.random.default_rng(0), 40)
    posterior = case.fit(data, tol=1e-10, max_iter=2000, factors="apart")
    assert Settled(posterior, data).worst_of_all() < 1e-7


def test_a_model_that_can_be_turned_has_no_width_along_the_rotation() -> None:
    case = CASES[_TURNED]
    data = case.draw(np.random.default_rng(0), 40)
    posterior = case.fit(data, tol=1e-12, max_iter=5000)
    assert np.isinf(posterior.linear_response(data).sd("loadings")).all()
    assert posterior.uncertainty == "mean_field"
    assert "rotation of factors" in posterior.interval_remark


def test_means_that_are_data_and_are_moved_to_them() -> None:
    """The products of their statistics are numbered by the names of columns."""
    hidden = cv.MultivariateNormal(
        "hidden", cv.Data("at", plates=OBS), cv.Wishart("width", 4.0, np.eye(2)), plates=OBS
    )
    model = cv.Model(cv.MultivariateNormal("x", hidden, 4 * np.eye(2), plates=OBS))
    data = {"x": _CLUSTERS + _RNG.normal(size=(60, 2)), "at": _CLUSTERS}
    posterior = model.fit(data, tol=1e-10, max_iter=2000)
    assert posterior.uncertainty == "second_order"
    assert Settled(posterior, data).worst("width") < 1e-7


@pytest.mark.thinned(8)
@pytest.mark.parametrize("name", [pytest.param(own, marks=_DEAR.get(own, ())) for own in _STATED])
def test_covariances_are_those_slopes_whatever_a_row_is(name: str) -> None:
    state, data, variable = _STATED[name]
    posterior = state().fit(data, seed=0, tol=1e-10, max_iter=2000, factors="apart")
    assert Settled(posterior, data).worst(variable) < 1e-7


def _exact(design: np.ndarray, noise: float, prior: np.ndarray) -> np.ndarray:
    """Return the posterior covariance of the coefficients of a regression with known precisions."""
    return np.linalg.inv(noise * design.T @ design + np.diag(prior))


def test_a_gaussian_posterior_has_its_own_covariance() -> None:
    """Crossed effects with known variances: mean field is far too narrow, linear response exact."""
    rng = np.random.default_rng(1)
    n_rows, n_a, n_b = 300, 12, 9
    g, h, u = rng.integers(0, n_a, n_rows), rng.integers(0, n_b, n_rows), rng.normal(size=n_rows)
    a = cv.Normal("a", 0, 2.0, plates=cv.Plate("row", n_a))
    b = cv.Normal("b", 0, 0.5, plates=cv.Plate("column", n_b))
    mean, slope = cv.Normal("mean", 0, 0.1), cv.Normal("slope", 0, 1.0)
    at = mean + a[cv.Data("g", plates=OBS)] + b[cv.Data("h", plates=OBS)] + slope * cv.Data("u", plates=OBS)
    data = {"g": g, "h": h, "u": u, "y": rng.normal(size=n_rows)}
    posterior = cv.Model(cv.Normal("y", at, 3.0, plates=OBS)).fit(
        data, tol=1e-12, max_iter=5000, factors="apart"
    )
    response = posterior.linear_response(data)
    design = np.column_stack([np.ones(n_rows), u, np.eye(n_a)[g], np.eye(n_b)[h]])
    prior = np.concatenate([[0.1, 1.0], np.full(n_a, 2.0), np.full(n_b, 0.5)])
    exact = _exact(design, 3.0, prior)
    names = ("mean", "slope", "a", "b")
    sizes = (1, 1, n_a, n_b)
    found = np.block(
        [
            [response.covariance(one, other).reshape(n, m) for other, m in zip(names, sizes, strict=True)]
            for one, n in zip(names, sizes, strict=True)
        ]
    )
    np.testing.assert_allclose(found, exact, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(response.sd("a"), np.sqrt(exact.diagonal()[2 : 2 + n_a]), rtol=1e-8)
    assert posterior["mean"].variance < 0.1 * exact[0, 0]
    # intervals of a Normal, from its own standard deviation
    ends = stats.norm.interval(0.9, posterior["mean"].mean, np.sqrt(exact[0, 0]))
    np.testing.assert_allclose(response.interval("mean", 0.9), ends, rtol=1e-7)


def test_a_factor_alone_keeps_its_own_covariance() -> None:
    rng = np.random.default_rng(2)
    data = {"X": rng.normal(size=(40, 3)), "y": rng.normal(size=40)}
    model = cv.models.conjugate_regression(3)
    posterior = model.fit(data)
    (name,) = posterior.keys()
    response = posterior.linear_response(data)
    np.testing.assert_allclose(response.covariance(f"{name}.mean"), posterior[name].covariance, rtol=1e-10)
    assert response.smallest_eigenvalue == pytest.approx(1.0)


def _log_likelihood(x: np.ndarray, theta: np.ndarray) -> float:
    """Return that of a mixture of two Normals: weight of the first, means and precisions."""
    weight, means, precisions = theta[0], theta[1:3], theta[3:]
    logs = stats.norm.logpdf(x[:, None], means, precisions**-0.5) + np.log([weight, 1 - weight])
    return float(np.logaddexp(*logs.T).sum())


def test_points_have_the_standard_errors_of_em() -> None:
    """The inverse of the observed information, by differences of the likelihood itself."""
    rng = np.random.default_rng(3)
    x = np.concatenate([rng.normal(-2, 1, 90), rng.normal(2.5, 0.7, 60)])
    component = cv.Plate("component", 2)
    mean, tau = cv.Normal("mean", 0, 0.0, plates=component), cv.Gamma("tau", 1, 0, plates=component)
    weights = cv.Dirichlet("weights", [1.0, 1.0])
    z = cv.Categorical("z", weights, plates=OBS)
    model = cv.Model(cv.Normal("x", mean[z], tau[z], plates=OBS))
    posterior = model.fit({"x": x}, point=["mean", "tau", "weights"], tol=1e-14, max_iter=5000, seed=0)
    settled = Settled(posterior, {"x": x})
    point = [settled.factors[name].value for name in ("weights", "mean", "tau")]
    theta = np.concatenate([point[0][:1], point[1], point[2]])

    def second(i: int, j: int) -> float:
        steps = 2e-3 * np.maximum(np.abs(theta), 0.1)

        def at(a: float, b: float) -> float:
            moved = theta.copy()
            moved[i] += a * steps[i]
            moved[j] += b * steps[j]
            return _log_likelihood(x, moved)

        def crossed(h: float) -> float:
            if i == j:
                return (at(h, 0) - 2 * at(0, 0) + at(-h, 0)) / (h * h * steps[i] ** 2)
            total = at(h, h) - at(h, -h) - at(-h, h) + at(-h, -h)
            return total / (4 * h * h * steps[i] * steps[j])

        return (4 * crossed(1.0) - crossed(2.0)) / 3

    information = -np.array([[second(i, j) for j in range(5)] for i in range(5)])
    wanted = np.linalg.inv(information)
    names = ("weights", "mean", "tau")
    found = np.block([[settled.response.covariance(a, b) for b in names] for a in names])
    # the second weight is what the first leaves
    kept = [0, 2, 3, 4, 5]
    scale = np.sqrt(np.outer(wanted.diagonal(), wanted.diagonal()))
    np.testing.assert_allclose(found[np.ix_(kept, kept)] / scale, wanted / scale, atol=2e-6)
    np.testing.assert_allclose(found[0], -found[1], atol=1e-10)


@pytest.mark.parametrize("name", ["independent", "spherical", "times", "counts"])
def test_all_changes_of_a_dense_product_at_once_are_those_along_directions(name: str) -> None:
    case = CASES[name]
    data = case.draw(np.random.default_rng(0), 40)
    weights = np.random.default_rng(1).uniform(0.5, 2.0, 40)
    posterior = case.fit(data, sample_weight=weights)
    one, other = (
        posterior.linear_response(data, sample_weight=weights)._response._operator for _ in range(2)
    )
    assert one._is_curved
    vars(other)["_is_curved"] = False
    np.testing.assert_allclose(one.matrix(), other.matrix(), atol=1e-13)


def test_conjugate_gradients_answer_as_the_matrix_does() -> None:
    case = CASES["independent"]
    data = case.draw(np.random.default_rng(0), 40)
    settled = Settled(case.fit(data, tol=1e-10), data)
    operator = settled.response._operator
    columns = np.random.default_rng(1).normal(size=(operator.size, 3))
    formed, iterated = Formed(operator), Iterated(operator)
    np.testing.assert_allclose(iterated.excess(columns), formed.excess(columns), atol=1e-8)
    assert iterated.smallest_eigenvalue == pytest.approx(formed.smallest_eigenvalue, rel=1e-3)


def test_many_coordinates_are_exact_whether_few_or_all_are_asked_for() -> None:
    """Of a Gaussian posterior: the first answers are by steps, later ones from the matrix."""
    rng = np.random.default_rng(4)
    n_rows, n_a, n_b = 600, 150, 30
    g, h = np.append(np.arange(n_a), rng.integers(0, n_a, n_rows - n_a)), rng.integers(0, n_b, n_rows)
    a = cv.Normal("a", 0, 1.0, plates=cv.Plate("row", n_a))
    b = cv.Normal("b", 0, 0.5, plates=cv.Plate("column", n_b))
    at = cv.Normal("mean", 0, 0.1) + a[cv.Data("g", plates=OBS)] + b[cv.Data("h", plates=OBS)]
    data = {"g": g, "h": h, "y": rng.normal(size=n_rows)}
    posterior = cv.Model(cv.Normal("y", at, 2.0, plates=OBS)).fit(
        data, tol=1e-12, max_iter=2000, factors="apart"
    )
    response = posterior.linear_response(data)
    design = np.column_stack([np.ones(n_rows), np.eye(n_a)[g], np.eye(n_b)[h]])
    precision = 2.0 * design.T @ design + np.diag(np.r_[0.1, np.ones(n_a), np.full(n_b, 0.5)])
    exact = np.linalg.inv(precision)
    solution = response._response._solution
    assert isinstance(solution, Asked)
    assert not solution._is_formed
    np.testing.assert_allclose(response.sd("mean"), np.sqrt(exact[0, 0]), rtol=1e-8)
    assert not solution._is_formed
    # that of the precision, each factor's own taken for the unit
    unit = np.sqrt(np.outer(precision.diagonal(), precision.diagonal()))
    smallest = np.linalg.eigvalsh(precision / unit)[0]
    assert response.smallest_eigenvalue == pytest.approx(smallest, rel=1e-3)
    np.testing.assert_allclose(response.sd("a"), np.sqrt(exact.diagonal()[1 : 1 + n_a]), rtol=1e-8)
    assert solution._is_formed
    assert response.smallest_eigenvalue == pytest.approx(smallest, rel=1e-9)
    np.testing.assert_allclose(response.covariance("mean", "b"), exact[0, 1 + n_a :], rtol=1e-7)


def _sensitive(**other: Any) -> cv.Model:
    stated = {
        "location": [0.2, -0.3],
        "scale": np.array([[1.5, 0.3], [0.3, 0.8]]),
        "df": 3.5,
        "weights": [1.0, 0.7],
    }
    stated |= {"shape": 2.0, **other}
    component = cv.Plate("component", 2)
    tau = cv.Gamma("tau", stated["shape"], 1.5)
    mean = cv.MultivariateNormal("mean", stated["location"], np.eye(2) / 9, plates=component)
    precision = cv.Wishart("precision", stated["df"], stated["scale"], plates=component)
    z = cv.Categorical("z", cv.Dirichlet("weights", stated["weights"]), plates=OBS)
    beside = cv.Normal("b", cv.Normal("level", 0.0, tau), tau, plates=OBS)
    return cv.Model(cv.MultivariateNormal("x", mean[z], precision[z], plates=OBS), beside)


@pytest.mark.thinned(8)
@pytest.mark.parametrize(
    ("parameter", "name", "step"),
    [
        ("mean.mean", "location", np.array([0.0, 1.0])),
        ("precision.df", "df", np.array(1.0)),
        ("precision.inverse_scale", "scale", np.array([[0.0, 0.5], [0.5, 0.0]])),
        ("weights.concentration", "weights", np.array([1.0, 0.0])),
        ("tau.shape", "shape", np.array(1.0)),
    ],
)
def test_sensitivities_are_the_slopes_of_fits_with_other_priors(
    parameter: str, name: str, step: np.ndarray
) -> None:
    data = {"x": _CLUSTERS, "b": _NOISE}
    base = Settled(_sensitive().fit(data, seed=0, tol=1e-10), data)
    stated = {"location": [0.2, -0.3], "df": 3.5, "weights": [1.0, 0.7], "shape": 2.0}
    stated["scale"] = np.array([[1.5, 0.3], [0.3, 0.8]])
    ends = {}
    for h in (1e-3, -1e-3, 2e-3, -2e-3):
        model = _sensitive(**{name: np.asarray(stated[name]) + h * step})
        init = {own: base.factors[own].mean for own in base.factors}
        ends[h] = Settled(model.fit(data, init=init, tol=1e-10), data).factors
    for own in base.factors:
        wide, narrow = ((ends[h][own].mean - ends[-h][own].mean) / (2 * h) for h in (2e-3, 1e-3))
        place = tuple(np.argwhere(step)[0]) if step.ndim else ()
        found = base.response.sensitivity(own)[parameter][place]
        np.testing.assert_allclose(found, np.ravel((4 * narrow - wide) / 3), atol=1e-7)
