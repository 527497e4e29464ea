"""Restarts begin elsewhere, and it is told where they ended."""

from typing import Any

import numpy as np
import pytest

import caviar as cv
from caviar.engine.starts.restarts import distinct_ends, told_ends


def _labels_of_columns() -> tuple[cv.Model, dict[str, Any]]:
    rng = np.random.default_rng(0)
    x = np.array([-5, 0, 5.0])[np.arange(9) % 3] + 3 * rng.normal(size=(20, 9))
    obs, columns, k = cv.Plate("obs"), cv.Plate("columns", 9), cv.Plate("k", 3)
    z = cv.Categorical("z", np.ones(3) / 3, plates=columns)
    mean = cv.Normal("mean", 0, 0.01, plates=k)
    return cv.Model(cv.Normal("x", mean[z], 1.0, plates=(obs, columns))), {"x": x}


def _gates() -> tuple[cv.Model, dict[str, Any]]:
    rng = np.random.default_rng(9)
    X = rng.normal(size=(40, 3))
    y = 2 * X[:, 0] - 1.5 * X[:, 2] + 0.5 * rng.normal(size=40)
    obs, total = cv.Plate("obs"), 0
    for j in range(3):
        on = cv.Constant(f"on{j}", [0.0, 1.0], plates=cv.Plate(f"k{j}", 2))
        gate = cv.Categorical(f"g{j}", [0.5, 0.5])
        total = total + on[gate] * cv.Normal(f"w{j}", 0, 1) * cv.Data(f"x{j}", plates=obs)
    return cv.Model(cv.Normal("y", total, 4.0, plates=obs)), {"y": y, **{f"x{j}": X[:, j] for j in range(3)}}


def _mixture() -> tuple[cv.Model, dict[str, Any]]:
    rng = np.random.default_rng(1)
    return cv.models.gaussian_mixture(2, 4), {
        "x": rng.normal(size=(100, 2)) + 3 * rng.integers(3, size=(100, 1))
    }


def _chain() -> tuple[cv.Model, dict[str, Any]]:
    rng = np.random.default_rng(2)
    x = np.repeat(rng.normal(scale=3, size=(15, 1)), 8, axis=0) + rng.normal(size=(120, 1))
    return cv.models.gaussian_hidden_markov_model(1, 3), {"x": x}


def _classes() -> tuple[cv.Model, dict[str, Any]]:
    rng = np.random.default_rng(3)
    return cv.models.bernoulli_mixture(6, 3), {"x": rng.integers(0, 2, (80, 6))}


def _factorisation() -> tuple[cv.Model, dict[str, Any]]:
    rng = np.random.default_rng(4)
    user, item = rng.integers(8, size=80), rng.integers(6, size=80)
    rating = rng.normal(size=8)[user] * rng.normal(size=6)[item]
    return cv.models.matrix_factorisation(8, 6, 1), {"user": user, "item": item, "rating": rating}


def _documents() -> tuple[cv.Model, dict[str, Any]]:
    rng = np.random.default_rng(5)
    docs = cv.Plate("docs")
    tokens, k = cv.Plate("tokens", within=docs), cv.Plate("k", 3)
    proportions = cv.Dirichlet("proportions", np.ones(3), plates=docs)
    z = cv.Categorical("z", proportions, plates=tokens)
    word = cv.Categorical("word", cv.Dirichlet("topics", np.ones(8), plates=k)[z], plates=tokens)
    return cv.Model(word), {"word": rng.integers(0, 8, 200), "docs": np.repeat(np.arange(10), 20)}


STATED = [_labels_of_columns, _gates, _mixture, _chain, _classes, _factorisation, _documents]


@pytest.mark.thinned(8)
@pytest.mark.filterwarnings("ignore::caviar.ConvergenceWarning")
@pytest.mark.parametrize("stated", STATED, ids=lambda own: own.__name__[1:])
def test_every_restart_begins_elsewhere(stated):
    model, data = stated()
    posterior = model.fit(data, seed=0, n_restarts=5, max_iter=2)
    begins = [float(trace[1]) for trace in posterior.restart_traces]
    assert len({round(begin, 6) for begin in begins}) >= 4
    # the first is that of a fit without restarts
    np.testing.assert_array_equal(posterior.restart_traces[0], model.fit(data, seed=0, max_iter=2).elbo_trace)


@pytest.mark.slow
def test_restarts_find_the_best_of_all_labels():
    """The exact evidence given labels, over all 3^9 of them that are certain: restarts reach the ELBO of the best."""
    model, data = _labels_of_columns()
    x, sums = data["x"], data["x"].sum(axis=0)

    def exact(labels: Any) -> float:
        counts = 20 * np.bincount(labels, minlength=3)
        totals = np.bincount(labels, sums, minlength=3)
        gains = 0.5 * totals**2 / (0.01 + counts) + 0.5 * np.log(0.01 / (0.01 + counts))
        return float(gains.sum() - 0.5 * np.sum(x**2) - 0.5 * x.size * np.log(2 * np.pi) - 9 * np.log(3))

    best = max(exact(np.array(labels)) for labels in np.ndindex(*(3,) * 9))
    posterior = model.fit(data, seed=0, n_restarts=10)
    assert posterior.elbo >= best - 1e-6
    assert posterior.elbo < best + np.log(6)


def test_restarts_from_the_prior_are_draws_from_it():
    model, data = _mixture()
    posterior = model.fit(data, seed=0, n_restarts=4, init="prior")
    assert len({round(float(trace[1]), 6) for trace in posterior.restart_traces}) == 4


def test_ends_are_counted():
    assert distinct_ends([-5.0, -1.0, -1.05, np.nan, -np.inf, -5.0]) == ((-1.0, 2), (-5.0, 2))
    assert distinct_ends([-1e8, -1e8 - 5, -1e8 - 50]) == ((-1e8, 2), (-1e8 - 50, 1))
    assert told_ends([-1.0], -1.0) == ""
    assert told_ends([-1.0, -1.0], -1.0) == "2 restarts: 1 distinct end, reached 2 times"
    # one that collapsed ended higher than the one that is kept
    assert told_ends([40.0, -1.0, -3.0], -1.0) == "3 restarts: 3 distinct ends, the best reached once"


def test_the_summary_tells_where_restarts_ended(tmp_path):
    model, data = _gates()
    posterior = model.fit(data, seed=0, n_restarts=8)
    (best, times), *others = posterior.distinct_ends
    assert best == posterior.elbo
    assert times + sum(n for _, n in others) == 8
    told = posterior.told_ends
    assert told.startswith(f"8 restarts: {1 + len(others)} distinct end")
    assert str(posterior.summary()).splitlines()[1] == told
    assert told in posterior._repr_html_()
    posterior.save(tmp_path / "m.caviar")
    assert cv.load(tmp_path / "m.caviar").told_ends == told
    assert "restarts" not in str(model.fit(data, seed=0).summary())


@pytest.mark.slow
@pytest.mark.parametrize("init_params", ["auto", "random"])
def test_estimators_tell_where_their_starts_ended(init_params):
    _, data = _mixture()
    mixture = cv.BayesianGaussianMixture(4, n_init=5, init_params=init_params, random_state=0).fit(data["x"])
    assert len(mixture.posterior_.restart_elbos) == len(mixture.posterior_.restart_traces) == 5
    assert mixture.posterior_.told_ends.startswith("5 restarts: ")


@pytest.mark.slow
def test_searches_for_the_number_of_components_tell_where_they_ended():
    _, data = _mixture()
    mixture = cv.BayesianGaussianMixture("auto", n_init=3, random_state=0).fit(data["x"][:50])
    assert len(mixture.posterior_.restart_elbos) == 3
    assert mixture.posterior_.restart_elbos.max() == mixture.posterior_.elbo


@pytest.mark.slow
def test_starts_that_are_given_are_told_apart():
    """Of labels that scikit-learn draws each start is a fit of its own; all ends are kept."""
    _, data = _mixture()
    mixture = cv.GaussianMixture(4, n_init=4, init_params="random", random_state=1).fit(data["x"])
    elbos = mixture.posterior_.restart_elbos
    assert len(elbos) == 4
    assert elbos.max() == mixture.posterior_.elbo
    assert sum(n for _, n in mixture.posterior_.distinct_ends) == 4
