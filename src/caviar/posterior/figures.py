"""Mean, spread and interval of every entry of a global variable, with the names of its places."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from .._typing import AnyArray, Array
from ..families.base.marginals import Marginals
from ..names import place_in_words


@dataclass(frozen=True, eq=False)
class Figures:
    """Figures of every entry of a global variable, or of one part of it.

    Attributes
    ----------
    name
        Of the variable; of a joint factor with ``.mean`` or ``.precision``.
    plates
        Names of the first axes; the other axes are those of one value.
    names
        Names along each axis, as the posterior has them; None if the axis has only numbers.
    chosen
        Name of the plate from which the categories choose, if the entries are probabilities.
    mean, sd, lower, upper
        Of shape (plates..., event...). All but the mean are None for points; ends are NaN for an entry without a closed
        form.
    shown
        What users of an estimator call the variable; empty where that is its name.
    source
        Where the intervals come from, in words; empty if they are exact.
    """

    name: str
    plates: tuple[str, ...]
    names: tuple[Sequence[str] | None, ...]
    chosen: str | None
    mean: Array
    sd: Array | None
    lower: Array | None
    upper: Array | None
    shown: str = ""
    source: str = ""

    @property
    def title(self) -> str:
        """What the variable is called where people read it."""
        return self.shown or self.name

    @property
    def n_event(self) -> int:
        """Axes of one value."""
        return self.mean.ndim - len(self.plates)

    @property
    def n_entries(self) -> int:
        """Number of entries; those of the lower triangle of a symmetric matrix."""
        if self.n_event < 2:
            return self.mean.size
        size = self.mean.shape[-1]
        return int(np.prod(self.mean.shape[:-2], dtype=int)) * size * (size + 1) // 2

    @cached_property
    def labels(self) -> tuple[Sequence[str], ...]:
        """What the places along each axis are called: their names or numbers."""
        return tuple(
            [str(number) for number in range(size)] if known is None else known
            for known, size in zip(self.names, self.mean.shape, strict=True)
        )

    @property
    def contains_zero(self) -> AnyArray:
        """Where an interval contains 0, in the shape of the means; nowhere for points."""
        if self.lower is None or self.upper is None:
            return np.zeros(self.mean.shape, dtype=bool)
        return (self.lower <= 0) & (self.upper >= 0)

    def places(self) -> Iterator[tuple[int, ...]]:
        """Yield the index of each entry; of a symmetric matrix those of the lower triangle."""
        for index in np.ndindex(self.mean.shape):
            if self.n_event < 2 or index[-1] <= index[-2]:
                yield index

    def largest(self, most: int) -> tuple[list[tuple[int, ...]], int]:
        """Return the index of each entry, of more than ``most`` of the largest in size, and how many are left out.

        Of symmetric matrices the entries of the lower triangle count.
        """
        shape = self.mean.shape
        kept = np.tril(np.ones(shape[-2:], dtype=bool)) if self.n_event == 2 else np.ones((), dtype=bool)
        flat = np.flatnonzero(np.broadcast_to(kept, shape))
        chosen = flat
        if len(flat) > most:
            size = np.abs(self.mean.ravel()[flat])
            chosen = np.sort(flat[np.argsort(-size, kind="stable")[:most]])
        indices = np.stack(np.unravel_index(chosen, shape), axis=-1) if shape else np.zeros((1, 0), dtype=int)
        return [tuple(index) for index in indices.tolist()], len(flat) - len(chosen)

    def along_first(self, places: Sequence[int]) -> Figures:
        """Return these at some places along the first axis, which keep their names or numbers."""
        arrays = {name: getattr(self, name) for name in ("mean", "sd", "lower", "upper")}
        kept = {name: None if own is None else own[list(places)] for name, own in arrays.items()}
        names = [self.labels[0][place] for place in places]
        return replace(self, names=(names, *self.names[1:]), **kept)

    def label(self, index: tuple[int, ...]) -> str:
        """Return what the place of an entry is called."""
        return place_in_words(self.plates, index, self.names, self.chosen)

    def numbers(self, index: tuple[int, ...]) -> tuple[float, float, float, float]:
        """Return mean, standard deviation and ends of an entry, NaN for what its family does not give."""
        mean, sd, lower, upper = (
            float("nan") if array is None else float(array[index])
            for array in (self.mean, self.sd, self.lower, self.upper)
        )
        return mean, sd, lower, upper

    def told_interval(self, level: float) -> str:
        """Return the name of the intervals for a title."""
        return f"{level:.0%} interval" + (f" ({self.source})" if self.source else "")


def figures_of(posterior: Any, name: str, parts: Sequence[Marginals]) -> list[Figures]:
    """Return the figures of a global variable; of a joint factor those of mean and precision.

    Parameters
    ----------
    posterior
        Of any model.
    name
        Of the variable.
    parts
        Its marginals, as the posterior shows them.
    """
    plates = tuple(plate.name for plate in posterior.model.variables[name].plates)
    chosen, found = posterior.model.axes.chosen_by(name), []
    for part in parts:
        own = plates[:-1] if part.is_shared else plates
        mean = np.asarray(part.mean, dtype=np.float64)
        sd, lower, upper = (
            None if end is None else np.asarray(end) for end in (part.sd, part.lower, part.upper)
        )
        names = tuple(posterior.names.of_axes(name, own, mean.shape))
        found.append(Figures(name + part.part, own, names, chosen, mean, sd, lower, upper))
    return found
