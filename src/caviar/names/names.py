"""Names of the places along the axes of a model, as plain values that a posterior keeps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..language import Node
from .axes import ModelAxes, NamedAxis


@dataclass(frozen=True)
class Names:
    """Names of the positions along the axes of a model.

    Attributes
    ----------
    along
        Axis -> names of its positions, in order.
    columns
        Name of an observed variable or known array -> the columns of the table that held its data.

    Examples
    --------
    >>> import caviar as cv
    >>> pupil, school = cv.Plate("pupil"), cv.Plate("school")
    >>> mean = cv.Normal("mean", 0, 1, plates=school)
    >>> model = cv.Model(cv.Normal("x", mean[cv.Data("school", plates=pupil)], 1.0, plates=pupil))
    >>> posterior = model.fit({"x": [1.0, -0.5, 2.0], "school": ["Lincoln", "Adams", "Lincoln"]})
    >>> posterior.names.plate("school"), posterior["mean"].mean
    (('Adams', 'Lincoln'), array([-0.25,  1.  ]))
    """

    along: Mapping[NamedAxis, tuple[str, ...]] = field(default_factory=dict)
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.along or self.columns)

    def plate(self, name: str) -> tuple[str, ...] | None:
        """Return the names of the repetitions of a plate; None without names."""
        return self.along.get(NamedAxis("plate", name))

    def entries(self, name: str) -> tuple[str, ...] | None:
        """Return the names of the entries of a value of a node, or of its categories; None without names."""
        return self.along.get(NamedAxis("entry", name))

    def of_axes(self, name: str, plates: Sequence[str], shape: Sequence[int]) -> list[tuple[str, ...] | None]:
        """Return the names along each axis of a variable: first its plates, then the axes of one value."""
        found = [self.plate(plate) for plate in plates]
        found += [self.entries(name)] * (len(shape) - len(plates))
        # an axis of the figures may be shorter than that of the value, as of the shares of sticks
        return [
            own if own is not None and len(own) == size else None
            for own, size in zip(found, shape, strict=True)
        ]

    def sizes_of(self, nodes: Iterable[Node]) -> dict[str, int]:
        """Return the sizes of the plates that are determined by the names of their repetitions."""
        plates = {plate.name for node in nodes for plate in node.plates if plate.size is None}
        return {axis.name: len(own) for axis, own in self._of_kind("plate") if axis.name in plates}

    def as_plain(self, axes: ModelAxes) -> dict[str, Any]:
        """Return the names that are not part of the model, as plain texts in lists, once for each group of axes."""
        first = {axes.group(axis)[0]: own for axis, own in self.along.items() if axis not in axes.declared}
        once = Names(first)
        return {
            "plates": {axis.name: list(own) for axis, own in once._of_kind("plate")},
            "entries": {axis.name: list(own) for axis, own in once._of_kind("entry")},
            "columns": {name: list(own) for name, own in self.columns.items()},
        }

    def _of_kind(self, kind: str) -> Iterator[tuple[NamedAxis, tuple[str, ...]]]:
        return ((axis, own) for axis, own in self.along.items() if axis.kind == kind)

    @classmethod
    def of_plain(
        cls, plain: Mapping[str, Any] | None, axes: ModelAxes, sizes: Mapping[str, int | None]
    ) -> Names:
        """Return the names that :meth:`as_plain` made plain; no names of None.

        Parameters
        ----------
        plain
            Those of a file; None of one that an earlier version wrote.
        axes
            Of the model.
        sizes
            Name of each plate -> its size, where it is known.

        Raises
        ------
        ValueError, LookupError, TypeError, AttributeError
            If they are something else.
        """
        if plain is None:
            return cls()
        first = {NamedAxis("plate", name): _texts(own) for name, own in plain["plates"].items()}
        first |= {NamedAxis("entry", name): _texts(own) for name, own in plain["entries"].items()}
        along = dict(axes.declared)
        for axis, own in first.items():
            along |= dict.fromkeys(axes.group(axis), own)
        for name, size in sizes.items():
            own = along.get(NamedAxis("plate", name))
            if own is not None and size not in (None, len(own)):
                raise ValueError(f"{len(own)} names of plate {name!r:.40} of size {size}")
        return cls(along, {name: _texts(own, once=False) for name, own in plain["columns"].items()})


def _texts(value: Any, *, once: bool = True) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(own, str) for own in value):
        raise TypeError(f"names that are not texts: {value!r:.40}")
    if once and len(set(value)) < len(value):
        raise ValueError("two places of one name")
    return tuple(value)
