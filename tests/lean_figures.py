"""The standard deviations of the factors, for tests of `make test` that say nothing of those that are shown.

Whatever saves, pickles or predicts asks a posterior for the figures that it shows, and these take up to a hundred times
as long as the fit of a small table. A test has them if it names them (:data:`FIGURES`), or uses a function or fixture
that does; all others get those of the factors, which are at hand. `make test-all` shows what users see.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

__all__ = ["claims_figures", "figures_of_users", "lean_figures"]

TESTS = Path(__file__).parent
PLACES = (
    "checkpoint/",
    "cli/",
    "data/",
    "densities/",
    "device/",
    "edges/",
    "estimators/",
    "execution/",
    "invariants/",
    "kit/",
    "many/",
    "names/",
    "oracles/",
    "schedules/",
    "starts/",
    "truncated/",
)
"""Where tests are, below tests/, that may say nothing of figures."""

FIGURES = re.compile(
    r"""interval|\bsummar|uncertain|response|integrat|importance|marginals|transformed|credible|quantile|\bupper|diagnos
    |evidence\(|report|plot|remark|doubt|html|\bsds?\b|second_order|MixedModel|to_frame
    |forecast|predict\([^\n]*\)\[|\.mean\((?:"|name)""",
    re.VERBOSE,
)
"""Names of what is shown, and of what shows it."""


@cache
def _claiming(path: Path) -> frozenset[str]:
    """Return what a file has, or takes from another file of tests, that names figures, or names what does."""
    text = path.read_text(encoding="utf-8")
    lines, parts, found = text.splitlines(), dict[str, str](), set[str]()
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            first = min(own.lineno for own in (node, *node.decorator_list))
            parts[node.name] = "\n".join(lines[first - 1 : node.end_lineno])
        elif isinstance(node, ast.ImportFrom):
            folder = path.parents[node.level - 1] if node.level else TESTS
            source = folder / f"{(node.module or '').replace('.', '/')}.py"
            if source.is_relative_to(TESTS) and source.is_file():
                taken = {own.asname or own.name: own.name for own in node.names}
                found |= {own for own, name in taken.items() if name in _claiming(source)}
    found |= {name for name, own in parts.items() if FIGURES.search(own)}
    words = {name: set(re.findall(r"\w+", own)) for name, own in parts.items()}
    while more := {name for name in parts if name not in found and words[name] & found}:
        found |= more
    return frozenset(found)


def claims_figures(item: pytest.Item) -> bool:
    """Whether a test may say something of the standard deviations and intervals that are shown."""
    if not isinstance(item, pytest.Function) or not item.nodeid.removeprefix("tests/").startswith(PLACES):
        return True
    if item.originalname in _claiming(item.path):
        return True
    fixtures = (own.func for each in item._fixtureinfo.name2fixturedefs.values() for own in each)
    places = ((own.__name__, Path(own.__code__.co_filename)) for own in fixtures if hasattr(own, "__code__"))
    return any(name in _claiming(path) for name, path in places if path.is_relative_to(TESTS))


@cache
def _factors() -> type:
    """Return the class of figures of the factors that become those of users where a test names them."""
    # not before NumPy may be loaded: tests/conftest.py says first how many threads it has
    from caviar.posterior.uncertainty.known import MeanField

    @dataclass(frozen=True, eq=False)
    class Factors(MeanField):
        pending: Any = None

        def settled(self, posterior: Any) -> Any:
            return self.pending.settled(posterior)

        def __reduce__(self) -> Any:
            return MeanField, ()

    return Factors


def _at_once(pending: Any, posterior: Any) -> Any:
    return _factors()(pending=pending)


@cache
def _own() -> dict[type, Any]:
    """Return what settles the figures that users see, by its class."""
    from caviar.posterior.uncertainty.pending import Pending, PendingIntegrated

    return {kind: kind.settled for kind in (Pending, PendingIntegrated)}


@contextmanager
def lean_figures() -> Iterator[None]:
    """Show the figures of the factors, for the time being: a fit may be shared with a test that names others."""
    first, second = _own()
    with patch.object(first, "settled", _at_once), patch.object(second, "settled", _at_once):
        yield


@contextmanager
def figures_of_users() -> Iterator[None]:
    """Show the figures that users see, for what several tests use, such as a file, whichever of them is the first."""
    (first, one), (second, other) = _own().items()
    with patch.object(first, "settled", one), patch.object(second, "settled", other):
        yield
