"""Which cases of a claim `make test` takes: a part of them, in which as much as possible comes up.

A test that is marked ``thinned(4)`` runs a quarter of its cases in `make test`, and all in `make test-all`. Which ones
depends on the cases and on the place of the test in its file alone, so they are the same in each run and process.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from heapq import heapify, heappop, heapreplace
from itertools import combinations

import pytest

__all__ = ["amount", "is_whole", "kept", "thin"]

is_whole = False
"""Whether this run takes the slow tests too."""


def amount(quick: int, whole: int) -> int:
    """Return how much of what is repeated within a test this run does: one for `make test`, one for `make test-all`."""
    return whole if is_whole else quick


def kept(cases: Sequence[Mapping[str, Hashable]], share: int, turn: int = 0) -> list[int]:
    """Return the numbers of one in ``share`` of the cases, at least one.

    Each next one brings as many values of parameters as possible that have not come up, then as many pairs of them,
    then those that came up least; of equals the first, counted from ``turn`` in steps of ``share``. So a product of
    models and schedules gives every schedule equally and many models, and one list every fourth entry, another one in
    the next test.
    """
    values = [sorted(case.items(), key=lambda item: item[0]) for case in cases]
    parts = [(own, list(combinations(own, 2))) for own in values]
    found: list[int] = []
    times: Counter[Hashable] = Counter()

    def loss(number: int) -> tuple[int, int, int]:
        own, pairs = parts[number]
        new, together = sum(v not in times for v in own), sum(p not in times for p in pairs)
        return -new, -together, sum(times[v] for v in own)

    turns = sorted(range(len(cases)), key=lambda number: ((number - turn) % share, number))
    rest = [(loss(number), place, number) for place, number in enumerate(turns)]
    heapify(rest)
    while rest and len(found) * share < len(cases):
        before, place, best = rest[0]
        # of what has not been looked at again the loss has grown, or is the same
        if (now := loss(best)) != before:
            heapreplace(rest, (now, place, best))
            continue
        heappop(rest)
        found.append(best)
        for each in parts[best]:
            times.update(each)
    return sorted(found)


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
        (share,) = next(own[0].iter_markers("thinned")).args
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
