"""Streaming: yesterday's posterior is today's prior."""

import numpy as np
import pytest

import caviar as cv
from schedules.test_incremental import three_clusters

rng = np.random.default_rng(0)
N = 90
X = rng.normal(size=(N, 3))
CONJUGATE = {
    "normal_gamma": (cv.models.normal_gamma(), {"x": rng.normal(3, 2, N)}),
    "normal_gamma far away": (cv.models.normal_gamma(prior_mean=1e6), {"x": rng.normal(1e6, 2, N)}),
    "dirichlet_categorical": (cv.models.dirichlet_categorical(4), {"x": rng.integers(0, 4, N)}),
    "conjugate_regression": (
        cv.models.conjugate_regression(3),
        {"X": X, "y": X @ [1, 2, 3] + rng.normal(size=N)},
    ),
}


def wishart_model():
    theta = cv.NormalWishart("theta", np.zeros(3), 0.1, 5.0, np.eye(3))
    return cv.Model(cv.MultivariateNormal("x", theta, plates=cv.Plate("obs")))


CONJUGATE["normal_wishart"] = (wishart_model(), {"x": X + 5})


def poisson_by_group():
    group, obs = cv.Plate("group", 3), cv.Plate("obs")
    rate = cv.Gamma("rate", 2.0, 1.0, plates=group)
    return cv.Model(cv.Poisson("x", rate[cv.Data("g", plates=obs)], plates=obs))


CONJUGATE["poisson by group"] = (poisson_by_group(), {"x": rng.poisson(3, N), "g": rng.integers(0, 3, N)})


def rows_of(data, rows):
    return {name: values[rows] for name, values in data.items()}


@pytest.mark.parametrize("name", CONJUGATE)
def test_streaming_is_batch_where_no_variable_of_the_rows_is_hidden(name):
    model, data = CONJUGATE[name]
    batch = model.fit(data)
    posterior = model.fit(rows_of(data, slice(0, 20)))
    total = posterior.elbo
    for start, stop in ((20, 21), (21, 60), (60, N)):
        posterior = posterior.update(rows_of(data, slice(start, stop)))
        total += posterior.elbo
    assert total == pytest.approx(batch.elbo, abs=1e-7)
    for variable in batch:
        for ours, theirs in zip(posterior[variable].natural, batch[variable].natural, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=1e-7)


def test_labels_of_earlier_rows_stay_so_a_certain_mixture_is_the_batch_one():
    data = rng.normal(size=4_000) + np.where(np.arange(4_000) % 2, 60.0, -60.0)
    model = cv.models.known_variance_mixture(2, prior_variance=1e4)
    batch = model.fit({"x": data}, init={"mean": [-60.0, 60.0]})
    posterior = model.fit({"x": data[:1_000]}, init={"mean": [-60.0, 60.0]})
    total = posterior.elbo
    for start in (1_000, 2_000, 3_000):
        posterior = posterior.update({"x": data[start : start + 1_000]})
        total += posterior.elbo
    assert total == pytest.approx(batch.elbo, abs=1e-6)
    np.testing.assert_allclose(posterior["mean"].mean, batch["mean"].mean, rtol=1e-12)


def test_a_stream_of_an_overlapping_mixture_comes_near_the_batch_fit():
    data = three_clusters(6_000)
    model = cv.models.normal_wishart_mixture(2, 3)
    batch = model.fit({"x": data}, seed=0)
    posterior = model.fit({"x": data[:1_000]}, seed=0)
    for start in range(1_000, 6_000, 1_000):
        posterior = posterior.update({"x": data[start : start + 1_000]})
    reached = model.fit({"x": data}, init={name: posterior[name] for name in posterior}, max_iter=0)
    assert batch.elbo - 5 < reached.elbo <= batch.elbo + 1e-6


def test_an_elbo_of_an_update_is_a_bound_about_the_belief():
    model, data = CONJUGATE["normal_gamma"]
    first = model.fit(rows_of(data, slice(0, 30)))
    second = first.update(rows_of(data, slice(30, 60)))
    assert second.elbo_at(
        {name: second[name] for name in second}, rows_of(data, slice(30, 60))
    ) == pytest.approx(second.elbo, rel=1e-12)
    before = second.elbo_at({name: first[name] for name in first}, rows_of(data, slice(30, 60)))
    assert before < second.elbo


def test_map_and_maximum_likelihood_streams_are_those_of_all_rows():
    model, data = CONJUGATE["dirichlet_categorical"]
    stream = model.fit(rows_of(data, slice(0, 50)), point=["probabilities"]).update(
        rows_of(data, slice(50, N))
    )
    np.testing.assert_allclose(
        stream["probabilities"].mean,
        model.fit(data, point=["probabilities"])["probabilities"].mean,
        rtol=1e-12,
    )
    obs = cv.Plate("obs")
    flat = cv.Model(cv.Normal("x", cv.Normal("mean", 0, 0), 2.0, plates=obs))
    x = rng.normal(3, 2, 100)
    stream = flat.fit({"x": x[:40]}, point=["mean"]).update({"x": x[40:]})
    assert stream["mean"].mean == pytest.approx(x.mean(), rel=1e-12)


def test_a_hierarchy_streams():
    group, obs = cv.Plate("group", 4), cv.Plate("obs")
    spread = cv.Gamma("spread", 2.0, 1.0)
    level = cv.Normal("level", 0.0, spread, plates=group)
    model = cv.Model(cv.Normal("y", level[cv.Data("g", plates=obs)], cv.Gamma("tau", 1.0, 1.0), plates=obs))
    g = np.arange(400) % 4
    y = np.array([-2.0, 0.0, 1.0, 5.0])[g] + rng.normal(size=400)
    batch = model.fit({"y": y, "g": g})
    stream = model.fit({"y": y[:200], "g": g[:200]}).update({"y": y[200:], "g": g[200:]})
    np.testing.assert_allclose(stream["level"].mean, batch["level"].mean, atol=0.02)


def test_what_cannot_be_a_prior_is_refused():
    model, data = CONJUGATE["normal_gamma"]
    with pytest.raises(cv.ParameterError, match="prior must be a posterior of this model"):
        model.fit(data, prior={"mean": 0})
    other = cv.models.dirichlet_categorical(4).fit({"x": [0, 1, 2]})
    with pytest.raises(cv.ModelError, match="its factor is missing"):
        model.fit(data, prior=other)
    group, obs = cv.Plate("group"), cv.Plate("obs")
    rate = cv.Gamma("rate", 2.0, 1.0, plates=group)
    counts = cv.Model(cv.Poisson("x", rate, plates=[obs, group]))
    first = counts.fit({"x": rng.poisson(3, (10, 3))}, data_plate="obs")
    with pytest.raises(cv.PlateError, match="give plates other than that of the rows a size"):
        first.update({"x": rng.poisson(3, (10, 4))}, data_plate="obs")


@pytest.mark.thinned(2)
@pytest.mark.parametrize("covariance_type", ["full", "tied", "diag", "spherical", "unit"])
@pytest.mark.parametrize("estimator", [cv.BayesianGaussianMixture, cv.GaussianMixture])
def test_mixtures_take_their_rows_in_parts(estimator, covariance_type):
    X = three_clusters(3_000)
    whole = estimator(3, covariance_type=covariance_type, random_state=0).fit(X)
    parts = estimator(3, covariance_type=covariance_type, random_state=0)
    for start in range(0, 3_000, 600):
        parts.partial_fit(X[start : start + 600])
    order, other = np.argsort(parts.means_[:, 0]), np.argsort(whole.means_[:, 0])
    np.testing.assert_allclose(parts.means_[order], whole.means_[other], atol=0.05)
    np.testing.assert_allclose(parts.weights_[order], whole.weights_[other], atol=0.02)
    assert parts.score(X) == pytest.approx(whole.score(X), abs=0.01)


def test_parts_of_a_table_have_the_same_columns():
    parts = cv.BayesianGaussianMixture(2, random_state=0).partial_fit(three_clusters(100))
    with pytest.raises(ValueError, match=r"3 features, but .* expecting 2 features"):
        parts.partial_fit(three_clusters(100, d=3))


def test_weights_and_the_known_variance_mixture_take_parts():
    x = np.r_[rng.normal(-60, 1, 100), rng.normal(60, 1, 100)][rng.permutation(200)]
    whole = cv.KnownVarianceMixture(2, random_state=0).fit(x, sample_weight=np.full(200, 2.0))
    parts = cv.KnownVarianceMixture(2, random_state=0)
    for start in (0, 100):
        parts.partial_fit(x[start : start + 100], sample_weight=np.full(100, 2.0))
    np.testing.assert_allclose(np.sort(parts.means_), np.sort(whole.means_), rtol=1e-10)
