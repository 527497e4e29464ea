"""Mean, spread and interval of every entry of every global variable, with the names of its places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...._typing import Array
from ....language import MarkovChain
from ....language.algebra import Diagonal
from ....names import place_in_words

LEVEL = 0.95
WORD = "word"
"""What an entry of a topic is called."""

_ARRAYS = ("mean", "sd", "lower", "upper")


@dataclass(frozen=True, eq=False)
class Figures:
    """Figures of a global variable, or of one part of it.

    Attributes
    ----------
    name
        Of the variable; of a joint factor with ``.mean`` or ``.precision``.
    shown
        What users call it.
    is_simplex
        Whether the entries of a value are probabilities of categories.
    plates
        Names of the first axes.
    labels
        What the places along each axis are called.
    are_named
        Which axes have names, rather than numbers.
    event
        What an entry of one value is called.
    chosen
        Name of the plate from which the categories choose, if the entries are probabilities.
    mean, sd, lower, upper
        Of shape (plates..., event...); without what the factor does not give.
    """

    name: str
    shown: str
    is_simplex: bool
    plates: tuple[str, ...]
    labels: tuple[Sequence[str], ...]
    are_named: tuple[bool, ...]
    event: str
    chosen: str | None
    mean: Array
    sd: Array | None
    lower: Array | None
    upper: Array | None

    @property
    def n_event(self) -> int:
        """Axes of one value."""
        return self.mean.ndim - len(self.plates)

    def places(self, most: int) -> tuple[list[tuple[int, ...]], int]:
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
        kept = {name: None if (own := getattr(self, name)) is None else own[list(places)] for name in _ARRAYS}
        names = [self.labels[0][place] for place in places]
        return replace(self, labels=(names, *self.labels[1:]), are_named=(True, *self.are_named[1:]), **kept)

    def without(self, place: str) -> Figures:
        """Return these figures without the last place along the first axis, if it has a given name."""
        if not self.labels or list(self.labels[0])[-1:] != [place]:
            return self
        kept = {name: None if (own := getattr(self, name)) is None else own[:-1] for name in _ARRAYS}
        return replace(self, labels=(self.labels[0][:-1], *self.labels[1:]), **kept)

    def label(self, index: tuple[int, ...]) -> str:
        """Return what the place of an entry is called, as in a summary."""
        names = [own if named else None for own, named in zip(self.labels, self.are_named, strict=True)]
        return place_in_words(self.plates, index, names, self.chosen)

    def at(self, index: tuple[int, ...]) -> tuple[float | None, float | None, float | None, float | None]:
        """Return mean, standard deviation and ends of an entry, None for what the factor does not give."""
        mean, sd, low, high = (_entry(array, index) for array in (self.mean, self.sd, self.lower, self.upper))
        # what is known has a value alone
        return (mean, None, None, None) if sd == 0 else (mean, sd, low, high)


def _entry(array: Array | None, index: tuple[int, ...]) -> float | None:
    return None if array is None or not np.isfinite(array[index]) else float(array[index])


def figures_of(subject: Any) -> list[Figures]:
    """Return the figures of all global variables, in the order of the posterior."""
    posterior = subject.posterior
    found = []
    for name in posterior:
        variable = posterior.model.variables[name]
        plates = tuple(plate.name for plate in variable.plates)
        event = WORD if name == "topics" and subject.vocabulary else _event_name(posterior.model, variable)
        for part in posterior.marginals(name, LEVEL):
            own = plates[:-1] if part.is_shared else plates
            shape = np.shape(part.mean)
            along = list(posterior.names.of_axes(name, own, shape))
            if name == "topics" and subject.vocabulary:
                along[-1] = subject.vocabulary
            named = [labels is not None for labels in along]
            labels = tuple(
                [str(number) for number in range(size)] if known is None else known
                for known, size in zip(along, shape, strict=True)
            )
            ends = (part.sd, part.lower, part.upper)
            sd, low, high = (None if end is None else np.asarray(end) for end in ends)
            mean = np.asarray(part.mean, dtype=np.float64)
            found.append(
                Figures(
                    name + part.part,
                    subject.shown_name(name + part.part),
                    variable.sums_to_one,
                    own,
                    labels,
                    tuple(named),
                    event,
                    posterior.model.axes.chosen_by(name),
                    mean,
                    sd,
                    low,
                    high,
                )
            )
    return found


def _event_name(model: Any, variable: Any) -> str:
    """Return what an entry of one value is called: by the plate on the diagonal of its precision, if there is one."""
    diagonals = [stated.plate for stated in variable.stated.values() if isinstance(stated, Diagonal)]
    if diagonals and diagonals[0] is not None:
        return diagonals[0].name
    if not variable.sums_to_one:
        return "entry"
    chains = (own for own in model.variables.values() if isinstance(own, MarkovChain))
    is_transition = any(chain.slots["transition"].node is variable for chain in chains)
    return f"next {variable.plates[0].name}" if is_transition and variable.plates else "category"
