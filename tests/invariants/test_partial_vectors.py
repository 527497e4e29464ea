"""What must hold of every model whose vectors are missing in part."""

from collections.abc import Callable

import numpy as np
import pytest

import caviar as cv
from caviar.data import ArrayRows
from caviar.engine.design.keys import ColumnKey
from caviar.engine.rows.subsample import sample_of
from caviar.models import gaussian_hidden_markov_model
from caviar.testing import elbo_slopes
from invariants import registry

pytestmark = pytest.mark.first_guess

Data = dict[str, np.ndarray]


def _with_another_leaf() -> cv.Model:
    """State a table of a vector, counts and numbers below one Categorical."""
    obs, component, column = cv.Plate("obs"), cv.Plate("component", 2), cv.Plate("column", 2)
    z = cv.Categorical("z", cv.Dirichlet("weights", np.ones(2)), plates=obs)
    theta = cv.NormalWishart("theta", np.zeros(2), 0.2, 3.5, np.eye(2), plates=component)
    rate = cv.Gamma("rate", 2.0, 1.0, plates=component)
    level = cv.NormalGamma("level", 0.0, 0.1, 2.0, 1.0, plates=(component, column))
    y = cv.Normal("y", level[z], plates=(obs, column))
    return cv.Model(cv.MultivariateNormal("x", theta[z], plates=obs), cv.Poisson("n", rate[z], plates=obs), y)


def _with_two_vectors() -> cv.Model:
    """State two vectors below one Categorical, with a precision that the components share, and without."""
    obs, component = cv.Plate("obs"), cv.Plate("component", 2)
    z = cv.Categorical("z", cv.Dirichlet("weights", np.ones(2)), plates=obs)
    mean = cv.MultivariateNormal("mean", np.zeros(3), np.eye(3) / 9, plates=component)
    theta = cv.NormalWishart("theta", np.zeros(2), 0.2, 3.5, np.eye(2), plates=component)
    tied = cv.MultivariateNormal("w", mean[z], cv.Wishart("precision", 4.0, np.eye(3)), plates=obs)
    return cv.Model(tied, cv.MultivariateNormal("x", theta[z], plates=obs))


def _single() -> cv.Model:
    mean = cv.MultivariateNormal("mean", np.zeros(3), np.eye(3) / 9)
    precision = cv.Wishart("precision", 4.0, np.eye(3))
    return cv.Model(cv.MultivariateNormal("x", mean, precision, plates=cv.Plate("obs")))


def _automatic_relevance() -> cv.Model:
    """State a vector whose precision is diagonal, one Gamma for each column."""
    column = cv.Plate("column", 3)
    tau = cv.Gamma("tau", 2.0, 1.0, plates=column)
    mean = cv.MultivariateNormal("mean", np.zeros(3), np.eye(3) / 9)
    return cv.Model(cv.MultivariateNormal("x", mean, cv.diagonal(tau), plates=cv.Plate("obs")))


CASES: dict[str, tuple[Callable[[], cv.Model], dict[str, int]]] = {
    "independent": (registry.independent, {"x": 2}),
    "joint": (registry.joint, {"x": 2}),
    "tied": (registry.tied, {"x": 2}),
    "one vector": (_single, {"x": 3}),
    "diagonal precision": (_automatic_relevance, {"x": 3}),
    "another leaf": (_with_another_leaf, {"x": 2, "n": 0, "y": 2}),
    "two vectors": (_with_two_vectors, {"w": 3, "x": 2}),
    "chain": (lambda: gaussian_hidden_markov_model(2, 2), {"x": 2}),
}


def _data(name: str, n: int, seed: int = 0, share: float = 0.3) -> Data:
    """Return rows of two clusters; counts whole, some entries of everything missing."""
    rng = np.random.default_rng(seed)
    found, z = {}, rng.integers(0, 2, n)
    for leaf, size in CASES[name][1].items():
        values = (
            rng.poisson(2.0 + 4 * z).astype(float)
            if size == 0
            else rng.normal(0, 1, (n, size)) + 3 * z[:, None]
        )
        if size > 1:
            values[:, 1] += 0.8 * values[:, 0]
        values[rng.random(values.shape) < share] = np.nan
        found[leaf] = values
    return found


def _fit(name: str, data: Data, **arguments) -> cv.Posterior:
    return CASES[name][0]().fit(data, **{"seed": 0, "tol": 1e-11, "max_iter": 2000, **arguments})


@pytest.mark.thinned(8)
@pytest.mark.parametrize("name", CASES)
def test_the_elbo_rises_to_a_point_where_no_factor_can_be_improved(name):
    data = _data(name, 60)
    posterior = _fit(name, data)
    trace = posterior.elbo_trace
    assert posterior.converged
    assert np.diff(trace).min() > -1e-10 * abs(trace[-1])
    assert sum(posterior.elbo_terms.values()) == pytest.approx(posterior.elbo, rel=1e-12)
    assert posterior.elbo_at({}, data) == pytest.approx(posterior.elbo, rel=1e-10)
    slopes = elbo_slopes(posterior, data, n_directions=10)
    assert max(slopes.values()) < 2e-3, slopes


@pytest.mark.starts_of_users
@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in CASES if name != "chain"])
def test_a_weight_of_two_is_the_row_twice_in_any_order(name):
    data, rng = _data(name, 30), np.random.default_rng(1)
    times = rng.integers(0, 3, 30)
    repeated = {leaf: np.repeat(values, times, axis=0) for leaf, values in data.items()}
    order = rng.permutation(times.sum())
    shuffled = {leaf: values[order] for leaf, values in repeated.items()}
    weighted = _fit(name, data, sample_weight=times, max_iter=8)
    for other in (_fit(name, repeated, max_iter=8), _fit(name, shuffled, max_iter=8)):
        np.testing.assert_allclose(other.elbo_trace, weighted.elbo_trace, rtol=1e-10)


@pytest.mark.starts_of_users
@pytest.mark.thinned(4)
@pytest.mark.parametrize("name", [name for name in CASES if name != "chain"])
def test_rows_with_nothing_observed_change_nothing(name):
    data = _data(name, 30)
    padded = {leaf: np.concatenate([np.full_like(v[:9], np.nan), v]) for leaf, v in data.items()}
    np.testing.assert_allclose(_fit(name, padded).elbo_trace, _fit(name, data).elbo_trace, rtol=1e-10)


@pytest.mark.thinned(4)
@pytest.mark.parametrize("name", CASES)
def test_local_factors_are_in_the_order_of_the_rows(name):
    """Those of a table are those of its rows one by one, and are told to the rows they belong to."""
    data = _data(name, 40)
    posterior = _fit(name, data)
    local = posterior.local(data)
    if name in ("one vector", "diagonal precision"):
        assert not local
        with pytest.raises(cv.ModelError, match="no factor 'x'"):
            posterior["x"]
        return
    label = "s" if name == "chain" else "z"
    probabilities = local[label].probabilities
    if name != "chain":
        order = np.random.default_rng(2).permutation(40)
        from_here = _fit(name, data, init={label: probabilities}, max_iter=1)
        shuffled = {leaf: v[order] for leaf, v in data.items()}
        again = _fit(name, shuffled, init={label: probabilities[order]}, max_iter=1)
        np.testing.assert_allclose(again.elbo_trace, from_here.elbo_trace, rtol=1e-10)
        for n in range(40):
            # a row beside one that is complete
            pair = {leaf: np.concatenate([v[[n]], np.ones_like(v[:1])]) for leaf, v in data.items()}
            alone = posterior.local(pair)[label].probabilities[0]
            np.testing.assert_allclose(alone, probabilities[n], atol=1e-9)
        given = posterior.elbo_at({label: local[label]}, data)
        assert given == pytest.approx(posterior.elbo, rel=1e-10)


@pytest.mark.slow
def test_threads_give_the_same_bits():
    data = _data("joint", 20_000)
    one, two = (_fit("joint", data, executor=threads, max_iter=5) for threads in (1, 2))
    assert one.elbo_trace.tobytes() == two.elbo_trace.tobytes()


def test_a_complete_table_is_left_as_it_is():
    """No copy, no other order, no pattern: the columns a fit reads are the user's own array."""
    x = _data("joint", 50, share=0.0)["x"]
    problem, row_map = _fit("joint", {"x": x})._evaluator.bind({"x": x})
    assert problem.rows.partial == {}
    assert list(row_map.source.columns) == [ColumnKey("x")]
    assert np.shares_memory(row_map.source.columns[ColumnKey("x")], x)


def test_far_from_the_origin_nothing_is_lost():
    """Components that are narrow compared with their distance get reference points of their own, gaps or not."""
    rng, obs, component = np.random.default_rng(0), cv.Plate("obs"), cv.Plate("component", 2)

    def fit(at: float) -> cv.Posterior:
        mean = cv.MultivariateNormal("mean", [at, at], np.eye(2) * 1e-8, plates=component)
        precision = cv.Wishart("precision", 3.0, np.eye(2) * 1e-2, plates=component)
        z = cv.Categorical("z", cv.Dirichlet("weights", np.ones(2)), plates=obs)
        return cv.Model(cv.MultivariateNormal("x", mean[z], precision[z], plates=obs)).fit(
            {"x": x + at, "z": np.where(np.arange(80) < 4, labels, np.nan)}, seed=0, tol=1e-12
        )

    labels = np.tile([0.0, 1.0], 40)
    x = rng.normal(0, 1e-2, (80, 2)) + 2.0**13 * labels[:, None]
    x[rng.random(x.shape) < 0.3] = np.nan
    x[:4] = np.nan_to_num(x[:4], nan=0.0) + np.where(np.isnan(x[:4]), 2.0**13 * labels[:4, None], 0.0)
    near, far = fit(0.0), fit(2.0**24)
    assert far.elbo == pytest.approx(near.elbo, abs=1e-3)
    np.testing.assert_allclose(far["mean"].mean - 2.0**24, near["mean"].mean, rtol=0, atol=1e-6)


def test_all_labels_known_are_labels_known_in_part():
    """With every label given, components part: each is the fit of its own rows."""
    data = _data("joint", 40)
    labels = np.random.default_rng(3).integers(0, 3, 40)
    posterior = _fit("joint", {**data, "z": labels})
    np.testing.assert_allclose(
        posterior["theta"].df, 3.5 + np.bincount(labels[~np.isnan(data["x"]).all(axis=1)])
    )
    seen_nowhere = np.isnan(data["x"]).all(axis=1)
    expected = np.array([1.0, 0.7, 2.0]) + np.bincount(labels, minlength=3)
    np.testing.assert_allclose(posterior["weights"].concentration, expected)
    assert seen_nowhere.any()


@pytest.mark.starts_of_users
def test_the_sample_of_a_start_does_not_see_what_stands_in_for_a_missing_entry():
    """Rows are told apart by what was observed."""
    x, entries = (
        np.array([[1.0, 5.0], [1.0, 7.0], [2.0, 3.0]]),
        np.array([[1, 0], [1, 0], [1, 1]], dtype=bool),
    )
    sample = sample_of(ArrayRows({ColumnKey("x"): x, ColumnKey("x").entries: entries}, 3))
    assert sorted(sample.row_weights) == [1.0, 2.0]


@pytest.mark.thinned(2)
@pytest.mark.parametrize("share", [0.5, 0.9])
def test_many_patterns(share):
    """Nearly every row has a pattern of its own; columns are wide; memory is that of a block."""
    rng = np.random.default_rng(4)
    x = rng.normal(size=(300, 12))
    x[rng.random(x.shape) < share] = np.nan
    theta = cv.NormalWishart("theta", np.zeros(12), 0.2, 14.0, np.eye(12))
    posterior = cv.Model(cv.MultivariateNormal("x", theta, plates=cv.Plate("obs"))).fit({"x": x}, max_iter=30)
    assert np.diff(posterior.elbo_trace).min() > -1e-9


def _with_noise(obs: cv.Plate) -> cv.MultivariateNormal:
    t = cv.MultivariateNormal("t", np.zeros(2), np.eye(2), plates=obs)
    return cv.MultivariateNormal("x", t, np.eye(2), plates=obs)


def _robust(obs: cv.Plate) -> cv.MultivariateNormal:
    u = cv.Gamma("u", 2.0, 2.0, plates=obs)
    return cv.MultivariateNormal("x", np.zeros(2), u * cv.Wishart("p", 3.0, np.eye(2)), plates=obs)


def _with_known_means(obs: cv.Plate) -> cv.MultivariateNormal:
    return cv.MultivariateNormal("x", cv.Data("m", plates=obs), cv.Wishart("p", 3.0, np.eye(2)), plates=obs)


@pytest.mark.parametrize("state", [_with_noise, _robust, _with_known_means])
def test_other_values_of_a_row_in_the_density_are_refused(state):
    model, x = cv.Model(state(cv.Plate("obs"))), np.zeros((3, 2))
    x[1, 0] = np.nan
    data = {"x": x, "m": np.zeros((3, 2))} if state is _with_known_means else {"x": x}
    with pytest.raises(cv.DataError, match=r"'x'.*row 1.*at most one Categorical"):
        model.fit(data)


def test_densities_of_new_rows_with_gaps_are_refused():
    data = _data("joint", 20)
    with pytest.raises(cv.ModelError, match="'x' are missing in part"):
        _fit("joint", data).log_predictive(data)
