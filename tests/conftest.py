"""Settings that all tests share."""

import gc
import os
import sys
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import IO, Any
from unittest.mock import patch

import pytest
import thinning
from _pytest.doctest import DoctestModule
from hypothesis import settings
from lean_kit import THE_KIT_ITSELF, lean_kit
from lean_starts import begins_anywhere, lean_starts

# the same examples each time, however slow the machine
settings.register_profile("caviar", deadline=None, derandomize=True)
settings.load_profile("caviar")


# scripts that compare two sources
collect_ignore_glob = ["golden/*"]


def pytest_configure(config: pytest.Config) -> None:
    """Note whether the slow tests are run, and give each process one core, before test files are imported.

    Where k-means and solvers of several processes have as many threads as there are cores, these wait for each other at
    half as much processor time again. What is claimed of more threads asks for them.
    """
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"):
        os.environ.setdefault(name, "1")
    thinning.is_whole = "not slow" not in config.option.markexpr
    if turn := turn_to_compile():
        config.stash[TURN] = turn
    # the collection only adds objects, thousands of them
    gc.disable()


TURN = pytest.StashKey[IO[str]]()


def turn_to_compile() -> IO[str] | None:
    """In a folder without compiled tests let one process collect before the others; return the lock that it holds.

    The others find compiled what they would have compiled at the same time: the tests, the library and its dependencies
    take most of a minute.
    """
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID")
    is_compiled = any((Path(__file__).parent / "oracles" / "__pycache__").glob("*.pyc"))
    if run is None or is_compiled or sys.dont_write_bytecode or os.name != "posix":
        return None
    import fcntl

    # open until the collection has ended
    lock = Path(tempfile.gettempdir(), f"caviar-tests-{run}").open("a+", encoding="utf-8")  # noqa: SIM115
    fcntl.flock(lock, fcntl.LOCK_EX)
    lock.seek(0)
    if not lock.read():
        return lock
    lock.close()
    return None


@pytest.hookimpl(wrapper=True)
def pytest_collect_file() -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Look for doctests in the library alone, not in every test file as well."""
    return [own for own in (yield) if not isinstance(own, DoctestModule)]


def pytest_collection_finish(session: pytest.Session) -> None:
    """Leave what the collection made out of every later search for garbage, and make these searches few.

    A search every 700 objects, as Python has it, takes a tenth of the processor time of fits with few rows.
    """
    if turn := session.config.stash.get(TURN, None):
        turn.write("compiled")
        os.unlink(turn.name)
        turn.close()
    gc.enable()
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give all tests of a cluster to one process, which starts the cluster; files elsewhere stay whole."""
    if config.option.dist != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class ByFile(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return (
                "tests/execution" if nodeid.startswith("tests/execution/") else super()._split_scope(nodeid)
            )

    return ByFile(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """In `make test` be lean: one guess for tests that do not concern starts, and few draws of checks of models."""
    place, is_whole = item.nodeid.removeprefix("tests/"), thinning.is_whole
    starts = nullcontext() if is_whole or not begins_anywhere(item) else lean_starts()
    kit = nullcontext() if is_whole or place.startswith(THE_KIT_ITSELF) else lean_kit()
    with starts, kit:
        return (yield)


@pytest.fixture
def figures_of_factors() -> Iterator[None]:
    """Show by default, in `make test`, the standard deviations and intervals of the factors.

    A test that asks for this fixture saves, pickles or predicts, which finds the figures that users see, and claims
    nothing of them. Finding them takes up to a hundred times as long as the fit of a small table.
    """
    with nullcontext() if thinning.is_whole else showing_factors():
        yield


@contextmanager
def showing_factors() -> Iterator[None]:
    """Find no other standard deviations and intervals than those of the factors, unless a fit is asked for them."""
    # not before NumPy may be loaded: pytest_configure says first how many threads it has
    from caviar.posterior.uncertainty.known import MeanField
    from caviar.posterior.uncertainty.pending import Judged

    with patch.object(Judged, "settled", lambda own, posterior: MeanField()):
        yield


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out of `make test` what only widens a claim; skip on Windows what it does not have."""
    thinning.thin(items, config.args)
    for item in items:
        if os.name == "nt" and item.get_closest_marker("posix"):
            item.add_marker(pytest.mark.skip(reason="Windows has no such signals, links, devices or limits"))
