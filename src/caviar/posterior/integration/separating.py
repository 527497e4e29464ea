"""Globals without which the others are independent: the smallest set that separates them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ...engine.ascent.problem import Problem
from ...engine.design.keys import StatisticKey, SumKey

Pair = frozenset[str]


def meeting(problem: Problem) -> frozenset[Pair]:
    """Return the pairs of globals that meet in a term, by name.

    A single name is of a global of which two statistics meet, or which meets what the rows hide.
    """
    learnt = {own.name for own in problem.order}
    hidden = {key for key, part in problem.compiled.parts.items() if part.factor is not None}
    found: set[Pair] = set()
    for term in problem.compiled.terms:
        keys = term.contraction.keys
        names = [key.variable for key in keys if isinstance(key, StatisticKey)]
        if any(key in hidden or (isinstance(key, SumKey) and key.local) for key in keys):
            found |= {frozenset((name,)) for name in names}
        found |= {frozenset((one, other)) for i, one in enumerate(names) for other in names[:i]}
    return frozenset(pair for pair in found if pair <= learnt)


def separating(pairs: Iterable[Pair], sizes: Mapping[str, float], most: float) -> frozenset[str] | None:
    """Return names of globals such that no two of the others meet, with the smallest sum of sizes.

    Parameters
    ----------
    pairs
        Of globals that meet.
    sizes
        Of the globals that may be in the set.
    most
        Largest sum of sizes.

    Returns
    -------
    frozenset
        None if there is no such set. Of several the one whose globals come last in ``sizes``: of a location and its
        precision this is the precision.
    """
    # of sets of the same size the last names win by a share of one
    places = {name: 1.0 - 1e-6 * number / max(len(sizes), 1) for number, name in enumerate(sizes)}
    costs = {name: size * places[name] for name, size in sizes.items()}
    found = _cheapest(sorted(pairs, key=sorted), costs, most, frozenset())
    return None if found is None else found[1]


def _cheapest(
    pairs: list[Pair], costs: Mapping[str, float], left: float, chosen: frozenset[str]
) -> tuple[float, frozenset[str]] | None:
    """Return the cheapest set that has a name of each pair, with its cost; None if all cost more than is left."""
    open_pair = next((pair for pair in pairs if not pair & chosen), None)
    if open_pair is None:
        return 0.0, chosen
    best: tuple[float, frozenset[str]] | None = None
    for name in sorted(open_pair):
        cost = costs.get(name)
        if cost is None or cost > left:
            continue
        found = _cheapest(
            pairs, costs, (left if best is None else min(left, best[0])) - cost, chosen | {name}
        )
        if found is not None and (best is None or found[0] + cost < best[0]):
            best = found[0] + cost, found[1]
    return best
