"""Fits in processes of their own that are killed, or told to terminate, and started again."""

import io
import os
import random
import signal
import subprocess
import sys
import threading
import time
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from caviar.fitting.termination import terminating
from checkpoint import fit_that_is_killed

PROGRAM = Path(fit_that_is_killed.__file__)
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


def started(checkpoint: Path | str, result: Path, kind: str = "kill") -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(PROGRAM), str(checkpoint), str(result), kind],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **ONE_THREAD},
    )


def iterations_of(process: subprocess.Popen[str]) -> list[str]:
    """Return what a process says until its end."""
    assert process.stdout is not None
    return process.stdout.read().splitlines()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The bytes of the end of the fit without a checkpoint, and the lines that it said."""
    result, told = tmp_path_factory.mktemp("undisturbed") / "result", io.StringIO()
    with redirect_stdout(told):
        fit_that_is_killed.main("", str(result), "kill")
    said = told.getvalue().splitlines()
    assert said[-1] == "max_iter"
    return result.read_bytes(), said


@pytest.mark.parametrize("n_kills", [1, pytest.param(25, marks=pytest.mark.slow)])
def test_a_killed_fit_ends_with_the_same_bits(n_kills, undisturbed, tmp_path):
    bits, said = undisturbed
    chance = random.Random(n_kills)
    checkpoint, result = tmp_path / "run.ckpt", tmp_path / "result"
    share = 1.5 * len(said) / n_kills
    told = 0
    for _ in range(n_kills):
        with started(checkpoint, result) as process:
            assert process.stdout is not None
            # at a random moment within an iteration at random: a pass, an update or the writing of the checkpoint
            for _ in range(chance.randint(0, round(share))):
                told += bool(process.stdout.readline())
            time.sleep(chance.random() * 0.02)
            process.kill()
        leftovers = [path.name for path in tmp_path.iterdir() if path.name.endswith(".partial")]
        assert len(leftovers) <= n_kills
    with started(checkpoint, result) as process:
        last = iterations_of(process)
    assert process.returncode == 0
    assert result.read_bytes() == bits
    assert last[-1] == said[-1]
    assert told >= n_kills, "the kills must come while the fit runs"
    assert len(last) < len(said), "the last run must go on from the checkpoint"


@pytest.mark.slow
def test_a_killed_search_ends_with_the_same_moves(tmp_path):
    """A search makes many fits: those that had ended when it was killed are not made again."""
    with started("", tmp_path / "undisturbed", "search") as process:
        said = iterations_of(process)
    assert process.returncode == 0
    chance, last = random.Random(0), said
    for _ in range(4):
        with started(tmp_path / "c", tmp_path / "result", "search") as process:
            assert process.stdout is not None
            for _ in range(chance.randint(1, len(said) // 4)):
                process.stdout.readline()
            time.sleep(chance.random() * 0.1)
            process.kill()
    with started(tmp_path / "c", tmp_path / "result", "search") as process:
        last = iterations_of(process)
    assert process.returncode == 0
    assert (tmp_path / "result").read_bytes() == (tmp_path / "undisturbed").read_bytes()
    assert len(last) < len(said)


@pytest.mark.slow  # tests/cli/test_checkpoint.py ends a command so
@pytest.mark.posix
def test_terminating_stops_the_fit_and_leaves_a_checkpoint(undisturbed, tmp_path):
    bits, said = undisturbed
    checkpoint, result = tmp_path / "run.ckpt", tmp_path / "result"
    with started(checkpoint, result, "terminate") as process:
        assert process.stdout is not None
        for _ in range(50):
            process.stdout.readline()
        process.terminate()
        first = iterations_of(process)
    assert process.returncode == 0
    assert first[-1] == "interrupted"
    assert result.read_bytes() != bits
    with started(checkpoint, result, "terminate") as process:
        rest = iterations_of(process)
    assert result.read_bytes() == bits
    # of the seconds between writings there are so many that only SIGTERM has made one
    assert len(rest) <= len(said) - 50


def terminate() -> None:
    signal.raise_signal(signal.SIGTERM)


def test_the_handler_before_is_put_back_and_called_where_there_is_no_posterior():
    came = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: came.append(number))
    try:
        handler = signal.getsignal(signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt), terminating("path"):
            terminate()
        assert came == [signal.SIGTERM]
        assert signal.getsignal(signal.SIGTERM) is handler
        with terminating("path"):
            pass
        assert signal.getsignal(signal.SIGTERM) is handler
        with terminating(None):
            assert signal.getsignal(signal.SIGTERM) is handler
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_second_signal_does_not_break_off_the_writing():
    with terminating("path"):
        try:
            terminate()
        except KeyboardInterrupt:
            terminate()
            survived = True
    assert survived


def test_signals_are_left_alone_in_other_threads_and_where_they_are_ignored():
    seen = []

    def look() -> None:
        with terminating("path"):
            seen.append(signal.getsignal(signal.SIGTERM))

    usual = signal.getsignal(signal.SIGTERM)
    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert seen == [usual]
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        look()
    finally:
        signal.signal(signal.SIGTERM, usual)
    assert seen[1] is signal.SIG_IGN
