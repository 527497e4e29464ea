"""Several known labels in one term: against exact posteriors and bounds that are written out, and in little memory."""

import pickle

import numpy as np
import pytest
from scipy.special import expit

import caviar as cv
from caviar.engine.assemble import assemble
from caviar.engine.topics.lowering import bind_rows

OBS = cv.Plate("obs")
SIZES = {"i": 7, "j": 5, "k": 20, "l": 3}


def labels_of(names, n, rng):
    return {name: rng.integers(0, SIZES[name], n) for name in names}


def effects_of(names, precision):
    return {
        name: cv.Normal(f"of_{name}", 0.5, precision[name], plates=cv.Plate(name, SIZES[name]))
        for name in names
    }


def predictor(names, effects, slope):
    return sum((effects[name][cv.Data(name, plates=OBS)] for name in names), slope * cv.Data("x", plates=OBS))


def design_of(data, names):
    columns = [data["x"][:, None]] + [np.eye(SIZES[name])[data[name]] for name in names]
    return np.hstack(columns)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("names", ["ij", "ijk", "ijkl"])
def test_means_and_bound_of_crossed_effects_follow_from_the_exact_posterior(names):
    """With known variances: mean-field means are exact, precisions are the diagonal, and the gap is the divergence."""
    rng = np.random.default_rng(len(names))
    data = {**labels_of(names, 60, rng), "x": rng.standard_normal(60), "y": rng.standard_normal(60)}
    precision = dict(zip("ijkl", (1.0, 2.0, 0.5, 4.0), strict=True))
    slope = cv.Normal("slope", 0.0, 1.0)
    effects = effects_of(names, precision)
    model = cv.Model(cv.Normal("y", predictor(names, effects, slope), 3.0, plates=OBS))
    posterior = model.fit(data, tol=1e-15, max_iter=5000, factors="apart")

    design = design_of(data, names)
    prior_mean = np.concatenate([[0.0], *(np.full(SIZES[name], 0.5) for name in names)])
    prior = np.concatenate([[1.0], *(np.full(SIZES[name], precision[name]) for name in names)])
    exact = 3.0 * design.T @ design + np.diag(prior)
    mean = np.linalg.solve(exact, 3.0 * design.T @ data["y"] + prior * prior_mean)
    away = data["y"] - design @ prior_mean
    covariance = np.eye(60) / 3.0 + design / prior @ design.T
    log_evidence = -0.5 * (
        away @ np.linalg.solve(covariance, away) + np.linalg.slogdet(2 * np.pi * covariance)[1]
    )
    divergence = 0.5 * (np.log(np.diag(exact)).sum() - np.linalg.slogdet(exact)[1])

    found = np.concatenate([np.atleast_1d(posterior[v].mean) for v in ("slope", *(f"of_{n}" for n in names))])
    np.testing.assert_allclose(found, mean, atol=1e-6)
    np.testing.assert_allclose(posterior.elbo, log_evidence - divergence, atol=1e-8)


def test_the_bound_of_a_logistic_regression_is_that_of_jaakkola_and_jordan():
    rng = np.random.default_rng(0)
    names = "ijk"
    data = {**labels_of(names, 200, rng), "x": rng.standard_normal(200), "y": rng.integers(0, 2, 200)}
    effects = effects_of(names, dict.fromkeys(names, 2.0))
    slope = cv.Normal("slope", 0.0, 1.0)
    model = cv.Model(cv.Bernoulli("y", cv.logistic(predictor(names, effects, slope)), plates=OBS))
    posterior = model.fit(data, tol=1e-14, max_iter=3000, factors="apart")

    q = {name: posterior[f"of_{name}"] for name in names}
    mean = posterior["slope"].mean * data["x"] + sum(q[n].mean[data[n]] for n in names)
    variance = posterior["slope"].variance * data["x"] ** 2 + sum(q[n].variance[data[n]] for n in names)
    tilt = np.sqrt(mean**2 + variance)
    of_rows = np.log(expit(tilt)) + (data["y"] - 0.5) * mean - tilt / 2

    def divergence(m, v, at, precision):
        return np.sum(0.5 * (precision * (v + (m - at) ** 2) - 1 - np.log(v * precision)))

    away = divergence(posterior["slope"].mean, posterior["slope"].variance, 0.0, 1.0)
    away += sum(divergence(own.mean, own.variance, 0.5, 2.0) for own in q.values())
    np.testing.assert_allclose(posterior.elbo, of_rows.sum() - away, atol=1e-7)


def two_labels(leaf):
    a = cv.Normal("a", 0.0, cv.Gamma("of_a", 1.0, 1.0), plates=cv.Plate("i", 30))
    b = cv.Normal("b", 0.0, cv.Gamma("of_b", 1.0, 1.0), plates=cv.Plate("j", 40))
    mean = a[cv.Data("i", plates=OBS)] + b[cv.Data("j", plates=OBS)]
    if leaf == "Normal":
        return cv.Model(cv.Normal("y", mean, cv.Gamma("tau", 1.0, 1.0), plates=OBS))
    return cv.Model(cv.Bernoulli("y", cv.logistic(mean), plates=OBS))


def rows_of(leaf, n, rng):
    data = {"i": rng.integers(0, 30, n), "j": rng.integers(0, 40, n)}
    effects = rng.standard_normal(30)[data["i"]] + rng.standard_normal(40)[data["j"]]
    y = effects + rng.standard_normal(n)
    return {**data, "y": y if leaf == "Normal" else (y > 0).astype(int)}


@pytest.mark.thinned(4)
@pytest.mark.parametrize("leaf", ["Normal", "Bernoulli"])
@pytest.mark.parametrize("schedule", [cv.Incremental(3), cv.Stochastic(500)], ids=str)
def test_other_schedules_end_at_the_same_optimum(leaf, schedule):
    data = rows_of(leaf, 1500, np.random.default_rng(1))
    model = two_labels(leaf)
    whole = model.fit(data, tol=1e-12, max_iter=2000)
    other = model.fit(data, schedule=schedule, tol=1e-12, max_iter=300, seed=0)
    slack = 1e-5 if isinstance(schedule, cv.Incremental) else 2.0
    np.testing.assert_allclose(other.elbo, whole.elbo, atol=slack)


@pytest.mark.parametrize("leaf", ["Normal", "Bernoulli"])
def test_a_weight_of_two_is_the_row_twice(leaf):
    rng = np.random.default_rng(2)
    data = rows_of(leaf, 300, rng)
    weights = rng.integers(1, 4, 300)
    repeated = {name: np.repeat(values, weights) for name, values in data.items()}
    model = two_labels(leaf)
    weighted = model.fit(data, sample_weight=weights, tol=1e-12, max_iter=500)
    np.testing.assert_allclose(weighted.elbo, model.fit(repeated, tol=1e-12, max_iter=500).elbo, rtol=1e-10)


@pytest.mark.parametrize("leaf", ["Normal", "Bernoulli"])
def test_rows_that_are_read_in_blocks_give_the_same(leaf, tmp_path):
    pd = pytest.importorskip("pandas")
    data = rows_of(leaf, 2000, np.random.default_rng(3))
    pd.DataFrame(data).to_parquet(tmp_path / "rows.parquet")
    table = cv.scan(tmp_path / "rows.parquet")
    lazy = {name: table[name] for name in data}
    model = two_labels(leaf)
    held, read = (model.fit(given, max_iter=20, tol=0.0, seed=0) for given in (data, lazy))
    np.testing.assert_array_equal(held.elbo_trace, read.elbo_trace)


@pytest.mark.parametrize("leaf", ["Normal", "Bernoulli"])
def test_new_rows_may_have_pairs_that_the_fit_has_not_seen(leaf):
    data = rows_of(leaf, 400, np.random.default_rng(4))
    posterior = two_labels(leaf).fit(data, uncertainty="mean_field")
    i, j = (grid.ravel() for grid in np.meshgrid(range(30), range(40)))
    mean = posterior["a"].mean[i] + posterior["b"].mean[j]
    predicted = posterior.predict({"i": i, "j": j})["y"].mean
    if leaf == "Normal":
        np.testing.assert_allclose(predicted, mean, rtol=1e-10)
    else:
        assert (np.argsort(mean)[[0, -1]] == np.argsort(predicted)[[0, -1]]).all()


@pytest.mark.thinned(2)
@pytest.mark.parametrize("leaf", ["Normal", "Bernoulli"])
def test_only_pairs_that_occur_are_kept(leaf):
    """A table of all pairs of these labels would take 320 GB."""
    rng, n_levels, n = np.random.default_rng(5), 200_000, 3000
    a = cv.Normal("a", 0.0, 1.0, plates=cv.Plate("i", n_levels))
    b = cv.Normal("b", 0.0, 1.0, plates=cv.Plate("j", n_levels))
    mean = a[cv.Data("i", plates=OBS)] + b[cv.Data("j", plates=OBS)]
    if leaf == "Normal":
        model = cv.Model(cv.Normal("y", mean, 1.0, plates=OBS))
    else:
        model = cv.Model(cv.Bernoulli("y", cv.logistic(mean), plates=OBS))
    data = {"i": rng.integers(0, n_levels, n), "j": rng.integers(0, n_levels, n), "y": rng.integers(0, 2, n)}
    bound = bind_rows(model.nodes, model.leaves, data)
    problem = assemble(bound, bound.latent[:2], frozenset())
    (joined,) = problem.bound.joined.values()
    assert joined.combinations.size == len({*zip(data["i"], data["j"], strict=True)})
    assert problem.rows.n_sums < 10 * (n + 2 * n_levels)
    posterior = model.fit(data, max_iter=3, tol=0.0)
    seen = np.unique(data["i"])
    assert np.isfinite(posterior.elbo)
    np.testing.assert_allclose(np.delete(posterior["a"].variance, seen), 1.0)


def problem_of(model, data):
    bound = bind_rows(model.nodes, model.leaves, data)
    return assemble(bound, bound.latent, frozenset())


def test_rows_are_looked_up_once_for_each_pair_of_labels():
    """The sums by a label follow from those by its pairs; numbers times labels are multiplied once, however many."""
    rng = np.random.default_rng(6)
    data = {**labels_of("ijk", 300, rng), "x": rng.standard_normal(300), "y": rng.integers(0, 2, 300)}
    effects = effects_of("ijk", dict.fromkeys("ijk", 2.0))
    mean = predictor("ijk", effects, cv.Normal("slope", 0.0, 1.0))
    compiled = problem_of(cv.Model(cv.Bernoulli("y", cv.logistic(mean), plates=OBS)), data).compiled
    (hidden,) = (factor for factor in compiled.tables if factor is not None)
    labels = [f.source.node.name for f in compiled.tables[hidden].features if f.n_labels]
    assert sorted(labels) == ["i and j", "i and k", "j and k"]
    assert [len(term.look_ups) for term in compiled.local_terms if term.parts[0].key.local] == [3]


def test_what_is_sent_to_workers_does_not_grow_with_the_rows():
    rng, sizes = np.random.default_rng(7), []
    for n in (3000, 30_000):
        data = {"i": np.arange(n) % 30, "j": np.arange(n) // 30 % 40, "y": rng.integers(0, 2, n)}
        problem = problem_of(two_labels("Bernoulli"), data)
        sizes.append(len(pickle.dumps(problem.rows)))
    assert sizes[1] < 1.1 * sizes[0]
