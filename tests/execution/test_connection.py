"""What leads to no cluster is refused in time; what was started here is ended."""

import os
import time

import numpy as np
import pytest

import caviar as cv

pytest.importorskip("distributed")

ROWS = {"x": np.random.default_rng(0).normal(size=(13_000, 2))}


def test_a_scheduler_that_does_not_answer():
    began = time.monotonic()
    executor = cv.DaskExecutor("tcp://127.0.0.1:1", timeout=1)
    with pytest.raises(cv.ClusterError, match=r"no scheduler answers at 'tcp://127\.0\.0\.1:1' within 1 s"):
        cv.models.gaussian_mixture(2, 2).fit(ROWS, executor=executor)
    assert time.monotonic() - began < 10


def test_cluster_errors_are_connection_errors():
    assert issubclass(cv.ClusterError, ConnectionError)


@pytest.mark.parametrize("address", ["10.0.0.1:8786", "nonsense://x:1"])
def test_what_is_no_address(address):
    with pytest.raises(cv.ParameterError, match="is not the address of a scheduler"):
        cv.models.gaussian_mixture(2, 2).fit(ROWS, executor=address)


@pytest.mark.parametrize(
    "arguments",
    [{"client": 8786}, {"n_workers": 0}, {"client": "tcp://127.0.0.1:1", "n_workers": 2}],
)
def test_impossible_arguments(arguments):
    with pytest.raises(cv.ParameterError):
        cv.DaskExecutor(**arguments)


def test_an_executor_that_is_none():
    with pytest.raises(cv.ParameterError, match=r"distributed\.Client"):
        cv.models.gaussian_mixture(2, 2).fit(ROWS, executor=object())


def test_no_workers(cluster):
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=0, dashboard_address="127.0.0.1:0", silence_logs=50) as empty,
        Client(empty) as client,
        pytest.raises(cv.ClusterError, match="has no workers"),
    ):
        cv.models.gaussian_mixture(2, 2).fit(ROWS, executor=cv.DaskExecutor(client, timeout=0.5))


@pytest.mark.slow
def test_workers_started_here_serve_several_fits_and_end():
    with cv.DaskExecutor(n_workers=1) as executor:
        client = executor._cluster.client
        before = client.run(os.getpid)
        model = cv.models.gaussian_mixture(2, 2)
        fits = [model.fit(ROWS, init="prior", tol=1e-2, executor=e) for e in (executor, executor, 1)]
        assert client.run(os.getpid) == before
        assert not any(client.has_what().values())
    assert len({fit.elbo for fit in fits}) == 1
    (worker,) = before.values()
    deadline = time.monotonic() + 5
    while _is_alive(worker) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _is_alive(worker)
    assert client.status == "closed"


def _is_alive(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True
