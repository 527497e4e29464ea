"""Record which marked statements each test executes: a plugin of pytest for ``mutate.py``.

A marked source calls ``mark(number)`` before each of its statements that can be changed. The file that the environment
variable ``EXECUTED`` names gets one line of JSON for each test that passes: its name, its processor time, and
the numbers of the statements that it executes. What its fixtures execute counts for every test that they serve, and
functions forget between two tests what they keep of earlier calls: of a test that is run alone nothing is left out.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from functools import _lru_cache_wrapper
from pathlib import Path
from types import ModuleType

import pytest

_EXECUTED: set[int] = set()
mark = _EXECUTED.add
TESTS = str(Path(__file__).resolve().parents[1])


class Recorder:
    """Writes what each test executes."""

    def __init__(self, path: Path) -> None:
        self.path, self.passed = path, False
        self.by_fixture: dict[pytest.FixtureDef, set[int]] = {}
        self.n_modules, self.keeping = 0, list[_lru_cache_wrapper]()

    def _forget(self) -> None:
        """Clear what functions of the library and of the tests keep."""
        if len(sys.modules) != self.n_modules:
            self.n_modules = len(sys.modules)
            own = [vars(module) for name, module in sys.modules.items() if _is_own(name, module)]
            self.keeping = [
                one for names in own for one in names.values() if isinstance(one, _lru_cache_wrapper)
            ]
        for one in self.keeping:
            one.cache_clear()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.passed = False
        self._forget()
        _EXECUTED.clear()
        start = time.process_time()
        result = yield
        if self.passed:
            seconds = time.process_time() - start
            marks = _EXECUTED.union(*(self.by_fixture.get(one, set()) for one in _fixtures(item)))
            found = {"test": item.nodeid, "seconds": seconds, "marks": sorted(marks)}
            with self.path.open("a") as file:
                file.write(json.dumps(found) + "\n")
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef) -> Iterator[None]:
        before = set(_EXECUTED)
        _EXECUTED.clear()
        try:
            return (yield)
        finally:
            if fixturedef.scope != "function":
                self.by_fixture[fixturedef] = set(_EXECUTED)
            _EXECUTED.update(before)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call":
            self.passed = report.passed


def _is_own(name: str, module: ModuleType) -> bool:
    return name.startswith("caviar.") or (getattr(module, "__file__", None) or "").startswith(TESTS)


def _fixtures(item: pytest.Item) -> Iterator[pytest.FixtureDef]:
    """Return the fixtures that a test asks for, and those that these ask for."""
    found = getattr(item, "_fixtureinfo", None)
    for several in found.name2fixturedefs.values() if found else ():
        yield from several


def pytest_configure(config: pytest.Config) -> None:
    if "EXECUTED" in os.environ:
        config.pluginmanager.register(Recorder(Path(os.environ["EXECUTED"])))
