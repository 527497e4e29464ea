"""Which cases of a claim `make test` takes: a part of them, in which as much as possible comes up.

A test that is marked ``thinned(4)`` runs a quarter of its cases in `make test`, and all in `make test-all`. Which ones
depends on the cases and on the place of the test in its file alone, so they are the same in each run and process.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from itertools import combinations

import pytest

__all__ = ["is_whole", "kept", "thin", "up_to"]

is_whole = False
"""Whether this run takes the slow tests too."""


def up_to(quick: int, whole: int) -> int:
    """Return how many random examples this run tries: so many in `make test`, so many in `make test-all`."""
    return whole if is_whole else quick


def kept(cases: Sequence[Mapping[str, Hashable]], share: int, turn: int = 0) -> list[int]:
    """Return the numbers of one in ``share`` of the cases, at least one.

    Each next one brings as many values of parameters as possible that have not come up, then as many pairs of them;
    of equals the first, counted from ``turn`` in steps of ``share``. So a product of models and schedules gives every
    schedule and many models, and one list every fourth entry, another one in the next test.
    """
    rest = sorted(range(len(cases)), key=lambda number: ((number - turn) % share, number))
    parts = [_parts(case) for case in cases]
    found: list[int] = []
    seen: set[Hashable] = set()
    while rest and len(found) * share < len(cases):
        best = max(rest, key=lambda number: [len(level - seen) for level in parts[number]])
        rest.remove(best)
        found.append(best)
        seen.update(*parts[best])
    return sorted(found)


def _parts(case: Mapping[str, Hashable]) -> list[frozenset[Hashable]]:
    """Return the values of a case, and their pairs."""
    values = sorted(case.items(), key=lambda item: item[0])
    return [frozenset(values), frozenset(combinations(values, 2))]


def thin(items: Sequence[pytest.Item], asked: Sequence[str]) -> None:
    """Mark as slow what `make test` leaves out of the tests that are marked ``thinned``.

    A case that is asked for by its own name is run.
    """
    by_test: dict[tuple[str, str], list[pytest.Function]] = {}
    names = {argument.rpartition("::")[2] for argument in asked}
    for item in items:
        markers = {marker.name for marker in item.iter_markers()}
        if isinstance(item, pytest.Function) and "thinned" in markers and "slow" not in markers:
            by_test.setdefault((item.nodeid.split("::")[0], item.originalname), []).append(item)
    for (_, name), own in by_test.items():
        (share,) = own[0].get_closest_marker("thinned").args
        tests = [other for other in vars(own[0].module) if other.startswith("test")]
        chosen = set(kept([_values(item) for item in own], share, tests.index(name)))
        for number, item in enumerate(own):
            if number not in chosen and item.name not in names:
                item.add_marker(pytest.mark.slow)


def _values(item: pytest.Function) -> dict[str, Hashable]:
    """Return the parameters of a case, by what they are called where they are no plain values."""
    if not hasattr(item, "callspec"):
        return {}
    return {name: _plain(value) for name, value in item.callspec.params.items()}


def _plain(value: object) -> Hashable:
    value = getattr(value, "func", value)
    if isinstance(value, str | int | float | bool | None):
        return value
    # the same object in several cases is one value
    return getattr(value, "__qualname__", None) or id(value)
