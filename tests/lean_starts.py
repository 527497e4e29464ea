"""Starts from one guess, for tests of `make test` whose claims do not depend on where a fit begins.

A fit of a small table spends three quarters of its time on its start: several guesses of labels climb side by side, and
the best is rearranged. Tests of what comes after that (files, reports, devices, predictions) make their fits from the
first guess, which ends at a fixed point too. `make test-all` runs them from the starts that users have.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any
from unittest.mock import patch

import pytest

FOLDERS = (
    "cli",
    "data",
    "device",
    "diagnostics",
    "edges",
    "kit",
    "names",
    "oracles",
    "plot",
    "posterior",
    "report",
    "simulation",
    "storage",
    "truncated",
)
"""Folders of such tests, below tests/; elsewhere they are marked ``first_guess``."""


def begins_anywhere(item: pytest.Item) -> bool:
    """Whether a test claims nothing of starts. One in such a folder that does is marked ``starts_of_users``."""
    folder, _, _ = item.nodeid.removeprefix("tests/").partition("/")
    says_nothing = folder in FOLDERS or item.get_closest_marker("first_guess") is not None
    return says_nothing and item.get_closest_marker("starts_of_users") is None


def _as_it_is(basis: Any, start: Any) -> Any:
    return start


def _none(basis: Any) -> None:
    return None


@contextmanager
def lean_starts() -> Iterator[None]:
    """Let fits begin from their first guess."""
    # not before NumPy may be loaded: tests/conftest.py says first how many threads it has
    from caviar.engine.starts import from_data

    candidates = from_data._candidates
    first = {"_candidates": lambda basis: islice(candidates(basis), 1)}
    rest = {"exchanged": _as_it_is, "with_cells_moved": _as_it_is, "regrouping_of": _none}
    with patch.multiple(from_data, **first, **rest):
        yield
