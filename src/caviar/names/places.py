"""Positions along axes as words for summaries and plots, and names that come from a summary of the data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from .axes import ModelAxes, NamedAxis
from .names import Names


def place_in_words(
    plates: Sequence[str],
    index: Sequence[int],
    names: Sequence[Sequence[str] | None],
    chosen: str | None = None,
) -> str:
    """Return the name of an entry: the name within one value first, if it has one, then the repetition.

    Parameters
    ----------
    plates
        Names of the first axes.
    index
        Place along each axis.
    names
        Along each axis, or None where its places are only numbered.
    chosen
        Name of the plate from which the categories choose, if these are probabilities.

    Examples
    --------
    >>> schools = ("Adams", "Lincoln")
    >>> place_in_words(["school"], [1, 0], [schools, ("intercept", "slope")])
    'intercept, school Lincoln'
    >>> place_in_words(["school"], [1, 0], [None, None])
    'school 1, [0]'
    >>> place_in_words([], [0], [None], "component"), place_in_words(["state"], [1, 0], [None, None], "state")
    ('component 0', 'state 1 to 0')
    """
    repetition = [
        f"{plate} {_name(own, number)}" for plate, number, own in zip(plates, index, names, strict=False)
    ]
    numbers, own = index[len(plates) :], names[len(plates) :]
    if not numbers:
        return ", ".join(repetition)
    if chosen is not None and len(numbers) == 1:
        category = _name(own[0], numbers[0])
        if chosen in plates:
            return ", ".join(
                f"{words} to {category}" if plate == chosen else words
                for plate, words in zip(plates, repetition, strict=True)
            )
        return ", ".join([f"{chosen} {category}", *repetition])
    if any(along is None for along in own):
        return ", ".join([*repetition, f"[{', '.join(map(str, numbers))}]"])
    entries = [along[number] for number, along in zip(numbers, own, strict=True) if along is not None]
    return ", ".join([*entries, *repetition])


def _name(names: Sequence[str] | None, number: int) -> str:
    return str(number) if names is None else names[number]


def names_with_summary(names: Names, axes: ModelAxes, summary: Mapping[str, Any] | None) -> Names:
    """Return names completed by those of the summary of the data, which the command line writes."""
    along = dict(names.along)
    for axis, own in _of_summary(axes, (summary or {}).get("arrays", {})):
        sizes = {axes.sizes[other] for other in axes.group(axis) if other in axes.sizes}
        if sizes <= {len(own)} and len(set(own)) == len(own):
            for other in axes.group(axis):
                along.setdefault(other, own)
    return Names(along, names.columns) if len(along) > len(names.along) else names


def with_columns(
    summary: Mapping[str, Any] | None, name: str, columns: Iterable[Any], key: str = "columns"
) -> Mapping[str, Any] | None:
    """Return the summary of the data of a fit with names for one of its arrays: of its columns, or its categories."""
    arrays = (summary or {}).get("arrays", {})
    if summary is None or name not in arrays:
        return summary
    named = {**arrays[name], key: [str(column) for column in columns]}
    return {**summary, "arrays": {**arrays, name: named}}


def _of_summary(
    axes: ModelAxes, arrays: Mapping[str, Mapping[str, Any]]
) -> Iterator[tuple[NamedAxis, tuple[str, ...]]]:
    for name, kept in arrays.items():
        node = axes.by_name.get(name)
        if node is None:
            continue
        axis = axes.columns_axis(node)
        if "columns" in kept and axis is not None:
            yield axis, tuple(map(str, kept["columns"]))
        if "categories" in kept and name in axes.labels:
            yield NamedAxis("entry", name), tuple(map(str, kept["categories"]))
