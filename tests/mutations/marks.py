"""Record which marked statements each test executes: a plugin of pytest for ``mutate.py``.

A marked source calls ``mark(number)`` before each of its statements that can be changed. The file that the environment
variable ``EXECUTED`` names gets one line of JSON for each test that passes: its name, its processor time, and
the numbers of the statements that it executes.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

_EXECUTED: set[int] = set()
mark = _EXECUTED.add


class Recorder:
    """Writes what each test executes."""

    def __init__(self, path: Path) -> None:
        self.path, self.passed = path, False

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.passed = False
        _EXECUTED.clear()
        start = time.process_time()
        result = yield
        if self.passed:
            found = {"test": item.nodeid, "seconds": time.process_time() - start, "marks": sorted(_EXECUTED)}
            with self.path.open("a") as file:
                file.write(json.dumps(found) + "\n")
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call":
            self.passed = report.passed


def pytest_configure(config: pytest.Config) -> None:
    if "EXECUTED" in os.environ:
        config.pluginmanager.register(Recorder(Path(os.environ["EXECUTED"])))
