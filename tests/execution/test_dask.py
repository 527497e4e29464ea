"""Passes on the workers of a cluster give the bits that threads give, whatever happens to the workers."""

import os
import pickle
import signal
import threading
import time
import warnings
from dataclasses import replace

import numpy as np
import pytest
from invariants.registry import CASES
from invariants.test_steps_that_change import TIME, controlled, switching
from sklearn.base import clone
from thinning import amount

import caviar as cv
from caviar.engine.ascent.status import Status
from caviar.engine.response.quantities import Response
from caviar.engine.rows.tasks import InferBlocks, SumStatic
from caviar.engine.rows.truncated import truncated_rows
from caviar.execution import connection, dask, placement

pytest.importorskip("distributed")

N = 13_000
"""Rows: four chunks of most models here."""


def _settle(fit, *arguments, **keywords):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cv.ConvergenceWarning)
        return fit(*arguments, **keywords)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("name", ["independent", "measured-apart"])
def test_linear_response_has_the_bits_of_threads(client, name):
    case = CASES[name]
    data = case.draw(np.random.default_rng(0), N)
    posterior = _settle(case.fit, data, max_iter=amount(2, 20))
    problem, rows = posterior._evaluator.bind(data)
    factors = {own: posterior[own] for own in posterior}
    executors = (rows.executor, dask.DaskExecutor(client))
    found = [Response(problem, factors, replace(rows, executor=executor)) for executor in executors]
    for own in factors:
        np.testing.assert_array_equal(*(response.variance(own) for response in found))


def assert_same_bits(one, other):
    np.testing.assert_array_equal(one.elbo_trace, other.elbo_trace)
    for name in one:
        for a, b in zip(one[name].natural, other[name].natural, strict=True):
            np.testing.assert_array_equal(a, b)


def kept_by(client):
    from caviar.execution import on_worker

    return sum(client.run(lambda: len(on_worker._kept)).values())


@pytest.fixture(autouse=True)
def nothing_is_left(client):
    yield
    deadline = time.monotonic() + 5
    while (any(client.has_what().values()) or kept_by(client)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(client.has_what().values())
    assert not kept_by(client)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("name", ["independent", "measured-apart", "regression", "vocabulary"])
def test_a_client_gives_the_bits_of_threads(client, name):
    case = CASES[name]
    data = case.draw(np.random.default_rng(0), N)
    fits = [_settle(case.fit, data, max_iter=amount(2, 4), executor=executor) for executor in (1, client)]
    assert_same_bits(*fits)


@pytest.mark.slow
def test_weights_and_missing_entries(client):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(N, 3)) + rng.choice([-2.0, 2.0], (N, 1))
    x[rng.random(x.shape) < 0.05] = np.nan
    weights = rng.choice([0.0, 1.0, 2.5], N)
    model = cv.models.gaussian_mixture(3, 2)
    fits = [
        _settle(model.fit, {"x": x}, seed=0, max_iter=4, sample_weight=weights, executor=executor)
        for executor in (2, cv.DaskExecutor(client))
    ]
    assert_same_bits(*fits)


@pytest.mark.slow
def test_few_responsibilities(client, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(truncated_rows, "_BLOCK_ROWS", 2048)
    rng = np.random.default_rng(4)
    x = rng.normal(size=(N, 2)) + 3 * rng.normal(size=(8, 2))[rng.integers(0, 8, N)]
    fits = [
        _settle(
            cv.models.normal_wishart_mixture(2, 8).fit,
            {"x": x},
            seed=0,
            max_iter=4,
            responsibilities=3,
            executor=own,
        )
        for own in (2, cv.DaskExecutor(client))
    ]
    assert_same_bits(*fits)


def test_topics_of_sparse_documents(client):
    from scipy.sparse import csr_array

    rng = np.random.default_rng(2)
    counts = csr_array(rng.poisson(0.05, (1_500, 40)).astype(float))
    model = cv.models.latent_dirichlet_allocation(2, 40)
    fits = [_settle(model.fit, {"word": counts}, seed=0, max_iter=2, executor=e) for e in (1, client)]
    assert_same_bits(*fits)


@pytest.mark.slow
def test_successive_states(client):
    x = np.random.default_rng(3).normal(size=(N, 2))
    model = cv.models.gaussian_hidden_markov_model(2, 2)
    fits = [_settle(model.fit, {"x": x}, seed=0, max_iter=2, executor=e) for e in (1, client)]
    assert_same_bits(*fits)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["switching", "controlled"])
def test_chains_whose_steps_differ(client, kind):
    rng = np.random.default_rng(9)
    data = {"y": rng.normal(size=(N, 2)), "starts": (np.arange(N) % 100 == 0).astype(float)}
    if kind == "controlled":
        data |= {"y": data["y"][:, 0], "u": np.arange(N) % 3}
    model = {"switching": switching, "controlled": controlled}[kind](cv.Data("starts", plates=TIME))
    fits = [_settle(model.fit, data, seed=0, max_iter=1, init="prior", executor=e) for e in (1, client)]
    assert_same_bits(*fits)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["Markov", "linear Gaussian"])
def test_steps_after_the_last_observation_of_a_sequence(client, kind):
    """They count nothing wherever the blocks are summed, and blocks of which nothing is left are summed too."""
    rng = np.random.default_rng(8)
    data = {"x": rng.normal(size=(N, 2)), "starts": np.arange(N) % 50 == 0}
    data["x"][np.arange(N) % 50 >= 40] = np.nan
    data["x"][:5_000] = np.nan
    model = cv.models.gaussian_hidden_markov_model(2, 2, with_starts=True)
    if kind != "Markov":
        model = cv.models.linear_dynamical_system(2, 1, with_starts=True)
    fits = [_settle(model.fit, data, seed=0, max_iter=2, executor=e) for e in (1, client)]
    assert_same_bits(*fits)
    kept = (np.arange(N) % 50 < 40) & (np.arange(N) >= 5_000)
    short = {name: rows[kept] for name, rows in data.items()}
    alone = _settle(model.fit, short, seed=0, max_iter=2)
    np.testing.assert_allclose(fits[1].elbo_trace, alone.elbo_trace, rtol=1e-10)


@pytest.mark.slow
def test_the_address_of_a_scheduler_and_large_coefficients(cluster, monkeypatch):
    monkeypatch.setattr(dask, "_SMALL", 0)
    monkeypatch.setattr(placement, "_MESSAGE_BYTES", 0)
    case = CASES["independent"]
    data = case.draw(np.random.default_rng(4), N)
    fits = [_settle(case.fit, data, max_iter=3, executor=e) for e in (1, cluster.scheduler_address)]
    assert_same_bits(*fits)


def test_sums_of_many_threads_are_joined_on_the_workers(client, monkeypatch):
    ask = connection.Connection.ask
    monkeypatch.setattr(connection.Connection, "ask", lambda self: dict.fromkeys(ask(self), 4))
    monkeypatch.setattr(dask, "_FAN_IN", 2)
    case = CASES["independent"]
    data = case.draw(np.random.default_rng(5), 26_000)
    fits = [_settle(case.fit, data, max_iter=2, executor=e) for e in (1, client)]
    assert_same_bits(*fits)


# a worker that is a thread is lost in test_dask_rows.py, in a tenth of the time
@pytest.mark.slow
@pytest.mark.posix
@pytest.mark.parametrize(("name", "delay"), [("independent", 0.01), ("measured-apart", None)])
def test_a_lost_worker_changes_no_bit(client, name, delay):
    case = CASES[name]
    data = case.draw(np.random.default_rng(6), N)
    killed = []

    def kill():
        killed.append(min(client.run(os.getpid).values()))
        os.kill(killed[-1], signal.SIGKILL)

    def progress(told):
        if told.iteration == 3:
            kill() if delay is None else threading.Timer(delay, kill).start()

    arguments = {"max_iter": 6, "tol": 0.0, "accelerate": False, "init": "prior"}
    plain = _settle(case.fit, data, executor=1, **arguments)
    survived = _settle(case.fit, data, executor=client, progress=progress, **arguments)
    client.wait_for_workers(2, timeout=20)
    assert killed
    assert killed[0] not in client.run(os.getpid).values()
    assert_same_bits(plain, survived)


@pytest.mark.slow
def test_an_interrupt_stops_a_pass_and_leaves_the_workers_free(client, monkeypatch):
    case = CASES["independent"]
    data = case.draw(np.random.default_rng(7), N)
    wait = dask._Cluster._wait
    passes = []

    def interrupted(self, futures, addresses):
        passes.append(futures)
        if len(passes) == 4:
            raise KeyboardInterrupt
        return wait(self, futures, addresses)

    monkeypatch.setattr(dask._Cluster, "_wait", interrupted)
    fit = _settle(case.fit, data, max_iter=50, executor=client)
    assert fit.status is Status.INTERRUPTED
    assert len(passes) == 4
    monkeypatch.undo()
    assert_same_bits(*(_settle(case.fit, data, max_iter=2, executor=e) for e in (1, client)))


def test_errors_of_the_work_are_those_of_the_work(client, monkeypatch):
    rows = np.random.default_rng(8).normal(size=(N, 2))
    for work in (InferBlocks, SumStatic):
        monkeypatch.setattr(work, "task", lambda self: _refusing)
    with pytest.raises(cv.ImproperError, match="no mean"):
        cv.models.gaussian_mixture(2, 2).fit({"x": rows}, init="prior", executor=client)


def _refusing(rows, scratch):
    def work(source, chunk, carried):
        raise cv.ImproperError("no mean")

    return work


def test_workers_of_another_version_are_refused(client, monkeypatch):
    # of this process only
    monkeypatch.setenv("CAVIAR_TEST", "1")
    monkeypatch.setattr(connection, "versions", _other_versions)
    rows = np.random.default_rng(9).normal(size=(N, 2))
    with pytest.raises(cv.ClusterError, match=r"has numpy .* but this process has 1\.0"):
        cv.models.gaussian_mixture(2, 2).fit({"x": rows}, init="prior", executor=client)


def _other_versions():
    from caviar._version import versions

    found = versions()
    if "CAVIAR_TEST" in os.environ:
        found["numpy"] = "1.0"
    return found


def test_an_estimator_takes_an_executor(client):
    rows = np.random.default_rng(10).normal(size=(N, 2))
    executor = cv.DaskExecutor(client)
    ours = cv.GaussianMixture(2, random_state=0, max_iter=4, executor=executor)
    theirs = clone(ours)
    assert theirs.executor is executor
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cv.ConvergenceWarning)
        ours.fit(rows)
        plain = cv.GaussianMixture(2, random_state=0, max_iter=4).fit(rows)
    np.testing.assert_array_equal(ours.elbo_trace_, plain.elbo_trace_)
    assert pickle.loads(pickle.dumps(ours)).executor.client == client.scheduler.address


def test_small_data_stay_here(monkeypatch: pytest.MonkeyPatch):
    """No workers are started for them."""
    monkeypatch.setattr(dask, "Connection", None)
    rows = np.random.default_rng(11).normal(size=(500, 2))
    model = cv.models.gaussian_mixture(2, 2)
    assert_same_bits(*(model.fit({"x": rows}, seed=0, executor=e) for e in (1, cv.DaskExecutor())))


def test_a_scheduler_that_cannot_be_reached_is_told_with_small_data_too():
    with pytest.raises(cv.ClusterError, match="no scheduler answers"):
        cv.models.gaussian_mixture(2, 2).fit(
            {"x": np.zeros((500, 2))}, executor=cv.DaskExecutor("tcp://127.0.0.1:1", timeout=0.1)
        )


@pytest.mark.slow
def test_a_saddle_point_is_left_on_a_cluster(client):
    """It is looked for in this process, and the steps away from it are passes on the cluster."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(N, 2)) + 4 * rng.integers(2, size=(N, 1))
    model = cv.models.gaussian_mixture(2, 2)
    equal = {"mean": np.zeros((2, 2)), "precision": np.stack([np.eye(2)] * 2)}
    fits = [model.fit({"x": x}, init=equal, executor=executor) for executor in (1, client)]
    assert_same_bits(*fits)
    assert fits[0].elbo > model.fit({"x": x}, init=equal, max_iter=2).elbo + 1000


def test_globals_that_are_given_are_held_on_a_cluster(client):
    rng = np.random.default_rng(1)
    x = 1e-3 * (rng.normal(size=(N, 1)) + 6 * rng.integers(2, size=(N, 1)))
    model = cv.models.gaussian_mixture(1, 2)
    fits = [
        model.fit({"x": x}, init={"mean": [[0.0], [6e-3]]}, max_iter=3, executor=ex) for ex in (1, client)
    ]
    assert_same_bits(*fits)
