"""Schedulers and workers that fall silent: the user is told, and a fit ends with an error of ours at its deadline."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import warnings
from contextlib import ExitStack, contextmanager

import numpy as np
import pytest

import caviar as cv
from caviar.lazy.silence import Patience, Watch

pytest.importorskip("distributed")
pytestmark = [
    pytest.mark.posix,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::caviar.ConvergenceWarning"),
]

DEADLINE = 6.0
MODEL = cv.models.gaussian_mixture(2, 3)
X = np.random.default_rng(0).normal(size=(20_000, 2)) + 4.0 * np.random.default_rng(1).integers(
    3, size=(20_000, 1)
)
KNOWN = {"seed": 0, "max_iter": 6, "tol": 0.0}


@contextmanager
def program(*arguments, **environment):
    """Run a program of Dask in a process of its own, and end it whatever happens."""
    module, *rest = arguments
    process = subprocess.Popen(
        [sys.executable, "-c", f"from distributed.cli.{module} import main; main()", *map(str, rest)],
        stderr=subprocess.DEVNULL,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", **environment},
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait(10)


@contextmanager
def cluster_by_hand(folder, n_workers=2, **environment):
    """A scheduler and workers as they are started by hand: yield a client, and all processes, the scheduler first."""
    from distributed import Client

    file = folder / "scheduler.json"
    with ExitStack() as stack:
        started = [
            stack.enter_context(
                program(
                    "dask_scheduler",
                    "--host",
                    "127.0.0.1",
                    "--port",
                    0,
                    "--no-dashboard",
                    "--scheduler-file",
                    file,
                )
            )
        ]
        end = time.monotonic() + 30
        # it may be there before anything is in it
        while not (file.exists() and file.stat().st_size) and time.monotonic() < end:
            time.sleep(0.1)
        address = json.loads(file.read_text())["address"]
        for _ in range(n_workers):
            options = ("--nthreads", 1, "--no-nanny", "--no-dashboard", "--local-directory", folder)
            started.append(stack.enter_context(program("dask_worker", address, *options, **environment)))
        client = Client(address, set_as_default=False, timeout=20)
        try:
            client.wait_for_workers(n_workers, timeout=30)
            yield client, started
        finally:
            for process in started:
                process.send_signal(signal.SIGCONT)
            client.close(timeout=5)


@pytest.fixture
def by_hand(tmp_path):
    with cluster_by_hand(tmp_path) as found:
        yield found


@contextmanager
def all_warnings():
    """Give the texts of all warnings: on a machine that is very busy there may be more than one expects."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield lambda: [str(warning.message) for warning in caught]


def stopping(process, at=2):
    """Return a callback that has a process fall silent in the middle of a fit."""

    def callback(event):
        if event.iteration == at:
            process.send_signal(signal.SIGSTOP)

    return callback


@pytest.mark.parametrize(("which", "named"), [(0, "the scheduler at"), (1, "the worker at")])
def test_who_falls_silent_is_told_and_given_up(by_hand, which, named):
    client, processes = by_hand
    executor = cv.DaskExecutor(client, deadline=DEADLINE)
    begin = time.monotonic()
    with (
        all_warnings() as told,
        pytest.raises(cv.ClusterError, match=rf"{named} tcp\S+ has been silent for \d+ s"),
    ):
        MODEL.fit({"x": X}, **KNOWN, executor=executor, progress=stopping(processes[which]))
    assert any(re.match(rf"{named} tcp\S+ has not been heard of for \d+ s", text) for text in told())
    assert time.monotonic() - begin < 60


def test_a_short_silence_changes_no_bit(by_hand):
    client, processes = by_hand
    alone = MODEL.fit({"x": X}, **KNOWN)

    def callback(event):
        if event.iteration == 2:
            processes[2].send_signal(signal.SIGSTOP)
            threading.Timer(8.0, processes[2].send_signal, [signal.SIGCONT]).start()

    with all_warnings() as told:
        found = MODEL.fit(
            {"x": X}, **KNOWN, executor=cv.DaskExecutor(client, deadline=12.0), progress=callback
        )
    assert any("has not been heard of" in text for text in told())
    np.testing.assert_array_equal(found.elbo_trace, alone.elbo_trace)


def _impatient(own, told=1.0, most=DEADLINE):
    vars(own).update(told=told, most=DEADLINE)


@pytest.mark.parametrize("which", [0, 1])
def test_silence_before_the_first_pass_and_in_looks_at_rows_that_a_cluster_computes(
    by_hand, which, monkeypatch
):
    """Nothing hangs where rows are sent, nor where rows of a collection are looked at before a fit."""
    import dask.array as da

    client, processes = by_hand
    rows = client.persist(da.from_array(X, chunks=(5_000, 2)))
    monkeypatch.setattr(Patience, "__init__", _impatient)
    processes[which].send_signal(signal.SIGSTOP)
    for data in (X, rows):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", cv.ClusterWarning)
            with client.as_current(), pytest.raises((cv.ClusterError, cv.DataError)):
                MODEL.fit({"x": data}, **KNOWN, executor=cv.DaskExecutor(client, deadline=DEADLINE))


def test_an_executor_that_is_held_serves_again_after_a_silence(by_hand):
    client, processes = by_hand
    alone = MODEL.fit({"x": X}, **KNOWN)
    with cv.DaskExecutor(client, deadline=DEADLINE) as executor:
        with all_warnings(), pytest.raises(cv.ClusterError):
            MODEL.fit({"x": X}, **KNOWN, executor=executor, progress=stopping(processes[1]))
        processes[1].send_signal(signal.SIGCONT)
        # a busy machine takes a while to go on with it
        client.run(os.getpid)
        with all_warnings():
            found = MODEL.fit({"x": X}, **KNOWN, executor=executor)
    np.testing.assert_array_equal(found.elbo_trace, alone.elbo_trace)


def test_workers_of_this_machine_that_fall_silent_are_ended(tmp_path):
    """Those that a fit has started are gone after its end, though they do not answer."""
    executor, pids = cv.DaskExecutor(n_workers=2, deadline=DEADLINE), []

    def callback(event):
        if event.iteration == 2:
            pids.extend(executor._cluster.client.run(os.getpid).values())
            os.kill(pids[0], signal.SIGSTOP)

    try:
        with all_warnings(), pytest.raises(cv.ClusterError, match="longer than deadline=6"):
            MODEL.fit({"x": X}, **KNOWN, executor=executor, progress=callback)
        end = time.monotonic() + 20
        while any(os.path.exists(f"/proc/{pid}") for pid in pids) and time.monotonic() < end:
            time.sleep(0.2)
        assert not any(os.path.exists(f"/proc/{pid}") for pid in pids)
    finally:
        for pid in pids:
            if os.path.exists(f"/proc/{pid}"):
                os.kill(pid, signal.SIGKILL)


def test_workers_with_other_kernels_are_told(tmp_path):
    """OpenBLAS with the kernels of an older processor gives other last digits, and so the fit says."""
    from caviar.numerics.blas import arithmetic

    if "SkylakeX" not in arithmetic()["BLAS"]:
        pytest.skip("needs a processor that has other kernels than Haswell's")
    with cluster_by_hand(tmp_path, OPENBLAS_CORETYPE="Haswell") as (client, _):
        with pytest.warns(
            cv.ClusterWarning, match="Haswell and not .*SkylakeX.*last digits may differ"
        ) as told:
            found = MODEL.fit({"x": X}, **KNOWN, executor=client)
        assert len(told) == 1
    np.testing.assert_allclose(found.elbo, MODEL.fit({"x": X}, **KNOWN).elbo, rtol=1e-9)


def test_a_silence_is_counted_from_the_last_sign_and_told_once():
    """By itself, with a client that answers by hand."""

    class Client:
        status, seen = "running", {"a": 1}

        class scheduler:
            address, identity = "tcp://nobody", None

        def sync(self, function, callback_timeout):
            if self.seen is None:
                raise TimeoutError
            return {"workers": {address: {"last_seen": sign} for address, sign in self.seen.items()}}

    client = Client()
    watch = Watch(client, Patience(told=0.2, most=1.0))
    with (
        pytest.warns(cv.ClusterWarning, match="the worker at a") as told,
        pytest.raises(cv.ClusterError, match="worker at a"),
    ):
        watch.call(time.sleep, 20)
    assert len(told) == 1
    with pytest.raises(cv.ClusterError, match="does not respond; make a new client"):
        watch.call(time.sleep, 0)

    class Living(Client):
        @property
        def seen(self):
            return {"a": time.monotonic()}

    assert Watch(Living(), Patience(told=0.2, most=1.0)).call(lambda: time.sleep(2.0) or 3) == 3
