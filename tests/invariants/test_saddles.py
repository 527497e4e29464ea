"""A fit that settles at a saddle point goes on; one that settles at a maximum stays as it is."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from checkpoint.comparing import after, assert_same_bits, broken_off_until_done

import caviar as cv
from caviar.engine import assemble
from caviar.engine.ascent.schedules import beyond_saddles
from caviar.engine.ascent.schedules.moves import saddles
from invariants.registry import CASES

Array = np.ndarray
Stated = tuple[cv.Model, dict[str, Any], Any, Any]
"""A model, data, values that lead to the best end, and values at which all components are equal."""


def _normal(rng: np.random.Generator) -> Stated:
    obs, k = cv.Plate("obs"), cv.Plate("k", 3)
    z = cv.Categorical("z", cv.Dirichlet("w", np.ones(3)), plates=obs)
    x = cv.Normal("x", cv.Normal("mean", 0, 0.01, plates=k)[z], cv.Gamma("tau", 1, 1), plates=obs)
    labels = rng.integers(3, size=150)
    data = np.array([-4.0, 0.0, 5.0])[labels] + rng.normal(size=150)
    return cv.Model(x), {"x": data}, {"z": labels}, {"mean": np.full(3, 0.5)}


def _wishart(rng: np.random.Generator) -> Stated:
    labels = rng.integers(2, size=200)
    data = rng.normal(size=(200, 3)) + 4 * labels[:, None]
    equal = {"mean": np.zeros((2, 3)), "precision": np.stack([np.eye(3)] * 2)}
    return cv.models.gaussian_mixture(3, 2), {"x": data}, {"z": labels}, equal


def _gamma(rng: np.random.Generator) -> Stated:
    obs, k = cv.Plate("obs"), cv.Plate("k", 2)
    z = cv.Categorical("z", cv.Dirichlet("w", np.ones(2)), plates=obs)
    labels = rng.integers(2, size=200)
    data = rng.gamma(3.0, np.array([1.0, 0.1])[labels])
    x = cv.Gamma("x", 3.0, cv.Gamma("rate", 1, 1, plates=k)[z], plates=obs)
    return cv.Model(x), {"x": data}, {"z": labels}, {"rate": np.full(2, 2.0)}


def _poisson(rng: np.random.Generator) -> Stated:
    labels = rng.integers(2, size=200)
    data = rng.poisson(np.array([2.0, 12.0])[labels])[:, None]
    return cv.models.poisson_mixture(1, 2), {"x": data}, {"z": labels}, "prior"


def _classes(rng: np.random.Generator) -> Stated:
    labels = rng.integers(2, size=200)
    data = (rng.random((200, 8)) < np.where(labels[:, None], 0.85, 0.2)).astype(int)
    return cv.models.bernoulli_mixture(8, 2), {"x": data}, {"z": labels}, "prior"


def _chain(rng: np.random.Generator) -> Stated:
    labels = np.repeat(rng.integers(2, size=20), 10)
    data = rng.normal(size=(200, 1)) + 4 * labels[:, None]
    return cv.models.gaussian_hidden_markov_model(1, 2), {"x": data}, {"s": labels}, "prior"


def _columns(rng: np.random.Generator) -> Stated:
    obs, columns, k = cv.Plate("obs"), cv.Plate("columns", 9), cv.Plate("k", 3)
    z = cv.Categorical("z", np.ones(3) / 3, plates=columns)
    x = cv.Normal("x", cv.Normal("mean", 0, 0.01, plates=k)[z], 1.0, plates=(obs, columns))
    labels = np.arange(9) % 3
    data = np.array([-5, 0, 5.0])[labels] + rng.normal(size=(40, 9))
    return cv.Model(x), {"x": data}, {"z": labels}, {"mean": np.zeros(3)}


STATED: dict[str, Callable[[np.random.Generator], Stated]] = {
    "normal": _normal,
    "wishart": _wishart,
    "gamma": _gamma,
    "poisson": _poisson,
    "classes": _classes,
    "chain": _chain,
    "columns": _columns,
}


@pytest.mark.parametrize("name", STATED)
def test_equal_components_are_left(name):
    """The end from equal components is that from the labels that the data were made with."""
    model, data, good, equal = STATED[name](np.random.default_rng(0))
    best = model.fit(data, init=good)
    found = model.fit(data, init=equal)
    assert found.converged
    assert found.elbo == pytest.approx(best.elbo, abs=0.01)
    assert np.diff(found.elbo_trace).min() > -1e-8
    # a step away from the saddle point is an iteration like any other
    assert len(found.elbo_trace) == found.n_iter + 1


@pytest.mark.parametrize("name", STATED)
def test_a_saddle_point_has_an_eigenvalue_above_one(name, monkeypatch):
    model, data, good, equal = STATED[name](np.random.default_rng(1))
    found = []

    def watched(*arguments: Any) -> tuple[float, Array]:
        found.append(steepest(*arguments))
        return found[-1]

    steepest = saddles._steepest
    monkeypatch.setattr(saddles, "_steepest", watched)
    model.fit(data, init=good)
    assert [largest < 1 for largest, _ in found] == [True]
    model.fit(data, init=equal)
    # where a width is shared, it is 1 to the second order
    assert found[1][0] > (0.999 if name == "normal" else 1.01)


def test_the_eigenvalue_is_that_of_second_differences(monkeypatch):
    """Against the curvature of the ELBO in the natural parameters of the means, in units of their variances."""
    obs, k = cv.Plate("obs"), cv.Plate("k", 2)
    z = cv.Categorical("z", [0.5, 0.5], plates=obs)
    model = cv.Model(cv.Normal("x", cv.Normal("mean", 0, 0.1, plates=k)[z], 0.25, plates=obs))
    data = {"x": np.array([-4.0, -3.0, -2.5, 2.0, 3.0, 4.5])}
    found = []
    steepest = saddles._steepest
    monkeypatch.setattr(saddles, "_steepest", lambda *own: found.append(steepest(*own)) or found[-1])
    monkeypatch.setattr(saddles, "_risen", lambda *own: None)
    monkeypatch.setattr(saddles, "_swept", lambda *own: None)
    saddle = model.fit(data, init={"mean": [0.0, 0.0]})
    q = saddle["mean"]
    np.testing.assert_allclose(q.mean[0], q.mean[1])

    def elbo(move: Array) -> float:
        natural = (q.natural[0] + move[:2], q.natural[1] + move[2:])
        return saddle.elbo_at({"mean": cv.families.Normal.from_natural(natural)}, data)

    def expected(move: Array) -> Array:
        moved = cv.families.Normal.from_natural((q.natural[0] + move[:2], q.natural[1] + move[2:]))
        return np.concatenate(moved.expected_statistics)

    h, eye = 1e-4, np.eye(4)
    variances = np.stack([(expected(h * e) - expected(-h * e)) / (2 * h) for e in eye])
    h = 1e-3
    corners = [
        [elbo(h * (a + b)) - elbo(h * (a - b)) - elbo(h * (b - a)) + elbo(-h * (a + b)) for b in eye]
        for a in eye
    ]
    curvature = np.array(corners) / (4 * h * h)
    eigenvalues = np.linalg.eigvals(np.linalg.solve(variances, curvature)).real
    assert found[0][0] == pytest.approx(1 + eigenvalues.max(), rel=2e-3)


def test_updates_that_do_not_respond_have_no_direction(monkeypatch):
    model, data, good, _ = _gamma(np.random.default_rng(1))
    tried = []
    monkeypatch.setattr(saddles._Response, "of_updates", lambda response, expected: 0 * expected)
    monkeypatch.setattr(saddles, "_risen", lambda *own: tried.append("a step"))
    monkeypatch.setattr(saddles, "_swept", lambda *own: tried.append("sweeps"))
    posterior = model.fit(data, init=good)
    assert "converged" in str(posterior.status)
    assert not tried


def test_loadings_of_zero_are_left():
    """Principal components begun at nothing: scores and loadings are zero, and no update moves them."""
    rng = np.random.default_rng(0)
    data = {"x": rng.normal(size=(100, 2)) @ rng.normal(size=(2, 6)) + 0.3 * rng.normal(size=(100, 6))}
    obs, columns = cv.Plate("obs"), cv.Plate("columns", 6)
    eye = np.eye(2)
    loadings = cv.MultivariateNormal("loadings", np.zeros(2), eye, plates=columns)
    scores = cv.MultivariateNormal("scores", np.zeros(2), eye, plates=obs)
    x = cv.Normal("x", cv.dot(loadings, scores), cv.Gamma("tau", 1, 1), plates=(obs, columns))
    found = cv.Model(x).fit(data, init={"loadings": np.zeros((6, 2))})
    assert found.elbo == pytest.approx(cv.Model(x).fit(data, seed=0).elbo, abs=0.1)


@pytest.mark.slow
def test_a_factorisation_that_begins_at_zero_is_left():
    rng = np.random.default_rng(3)
    user, item = rng.integers(8, size=120), rng.integers(6, size=120)
    u, v = rng.normal(size=(8, 2)), rng.normal(size=(6, 2))
    rating = 3 + np.sum(u[user] * v[item], axis=1) + 0.1 * rng.normal(size=120)
    data, model = {"user": user, "item": item, "rating": rating}, cv.models.matrix_factorisation(8, 6, 2)
    saddle = model.fit(data, init="prior", max_iter=3)
    np.testing.assert_array_equal(saddle["users"].mean, 0.0)
    best = max(model.fit(data, seed=seed).elbo for seed in range(3))
    assert model.fit(data, init="prior").elbo > best - 1


@pytest.mark.thinned(48)
@pytest.mark.parametrize("name", [*CASES])
def test_a_maximum_is_left_as_it_is(name, monkeypatch):
    """Where nothing rises the fit is that without a look for saddle points, to the bit."""
    case = CASES[name]
    data = case.draw(np.random.default_rng(5), 120)
    n_left = []

    def counted(*arguments: Any) -> Any:
        n_left.append(beyond(*arguments))
        return n_left[-1]

    beyond = beyond_saddles.beyond_saddle
    monkeypatch.setattr(beyond_saddles, "beyond_saddle", counted)
    found = case.fit(data, seed=0, max_iter=300, tol=1e-7)
    monkeypatch.setattr(assemble, "_MOST_SADDLES", 0)
    plain = case.fit(data, seed=0, max_iter=300, tol=1e-7)
    if any(own is not None for own in n_left):
        assert found.elbo > plain.elbo
    else:
        assert_same_bits(found, plain)


@pytest.mark.slow
@pytest.mark.parametrize("schedule", ["batch", cv.Incremental(4)])
def test_a_fit_broken_off_at_a_saddle_point_ends_with_the_same_bits(schedule, tmp_path):
    model, data, _, equal = _wishart(np.random.default_rng(2))

    def fit(**arguments: Any) -> cv.Posterior:
        return model.fit(data, init=equal, schedule=schedule, **arguments)

    plain = fit()
    kept = {"checkpoint": tmp_path / "c", "checkpoint_every": 0}
    breaks = [{"progress": after(1)} for _ in range(1, plain.n_iter)]
    found, n_breaks = broken_off_until_done(lambda **arguments: fit(**kept, **arguments), breaks)
    assert n_breaks > 3
    assert_same_bits(found, plain)
    assert_same_bits(fit(executor=2), plain)
    assert plain.elbo == pytest.approx(model.fit(data, seed=0).elbo, abs=0.01)


@pytest.mark.slow
def test_no_more_iterations_are_made_than_allowed():
    """At a saddle point without an iteration left a fit has not converged."""
    model, data, _, equal = _normal(np.random.default_rng(3))
    whole = model.fit(data, init=equal)
    assert whole.converged
    for n in range(1, whole.n_iter):
        end = model.fit(data, init=equal, max_iter=n)
        assert (end.n_iter, end.status.value) == (n, "max_iter")


def test_a_row_of_weight_two_is_the_row_twice_at_a_saddle_point():
    model, data, _, equal = _gamma(np.random.default_rng(4))
    weights = np.ones(200)
    weights[:60] = 2.0
    weighted = model.fit(data, init=equal, sample_weight=weights)
    repeated = model.fit({"x": np.concatenate([data["x"], data["x"][:60]])}, init=equal)
    assert weighted.elbo == pytest.approx(repeated.elbo, abs=1e-6)


def test_point_masses_leave_a_saddle_point():
    """EM from equal components: the likelihood of scikit-learn from the labels that the data were made with."""
    from sklearn.mixture import GaussianMixture

    model, data, good, equal = _wishart(np.random.default_rng(5))
    labels = good["z"]
    fitted = model.fit(data, init=equal, point=["weights", "mean", "precision"])
    best = model.fit(data, init=good, point=["weights", "mean", "precision"])
    assert fitted.elbo == pytest.approx(best.elbo, abs=0.01)
    shares = [own.mean(axis=0)[0] for own in (data["x"][labels == 0], data["x"][labels == 1])]
    theirs = GaussianMixture(2, means_init=[[s] * 3 for s in shares]).fit(data["x"])
    np.testing.assert_allclose(np.sort(fitted["mean"].value[:, 0]), np.sort(theirs.means_[:, 0]), atol=0.05)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("schedule", ["batch", "incremental"])
def test_of_many_rows_some_are_looked_at(schedule, monkeypatch):
    """The rows lie in the order of their components, and the look at some of them is one at all of these."""
    rng = np.random.default_rng(6)
    labels = np.repeat([0, 1, 2], 20_000)
    data = {"x": np.array([-4.0, 0.0, 4.0])[labels][:, None] + rng.normal(size=(60_000, 1))}
    model = cv.models.gaussian_mixture(1, 3)
    sizes = []

    def counted(response: Any, state: Any) -> None:
        prepare(response, state)
        sizes.append(response._rows.source.n_rows)

    prepare = saddles._Response.__init__
    monkeypatch.setattr(saddles._Response, "__init__", counted)
    found = model.fit(data, init="prior", schedule=schedule)
    best = model.fit(data, init={"z": labels}, schedule=schedule)
    assert found.elbo == pytest.approx(best.elbo, abs=1.0)
    assert all(10_000 < size < 20_000 for size in sizes)


@pytest.mark.parametrize("weight", [1e-3, 1e3])
def test_rows_of_any_weight(weight):
    model, data, good, equal = _gamma(np.random.default_rng(7))
    found = model.fit(data, init=equal, sample_weight=np.full(200, weight))
    best = model.fit(data, init=good, sample_weight=np.full(200, weight))
    assert found.elbo >= best.elbo - 0.01 - 1e-9 * abs(best.elbo)


def test_a_fast_fit_from_plain_clusters_is_not_looked_at(monkeypatch):
    """One whose clusters overlap, and one from equal components, are."""
    looks: list[Any] = []
    look = beyond_saddles.beyond_saddle
    monkeypatch.setattr(beyond_saddles, "beyond_saddle", lambda *own: (looks.append(own), look(*own))[1])
    rng = np.random.default_rng(0)
    X, model = rng.normal(size=(200, 2)), cv.models.gaussian_mixture(2, 2)
    X[:80] += 8.0
    apart = model.fit({"x": X}, seed=0)
    assert apart.converged
    assert not looks
    equal = model.fit({"x": X}, init="prior")
    assert looks
    assert equal.elbo == pytest.approx(apart.elbo, abs=1e-3)
    looks.clear()
    X[:80] -= 6.5
    model.fit({"x": X}, seed=0)
    assert looks
