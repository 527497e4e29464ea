r"""Updates of vectors of independent entries: one entry after another, each given what the others have left.

A term with the means of two entries, :math:`H_{ac} \bar b_a \bar b_c`, couples them. What all terms say to an entry is
known at the means that the others had before the sweep; each entry that moves changes it by :math:`H` times its move.
Of known rows H is a multiple of X'X: fitted values are kept instead, and the products of 64 columns at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from ..._typing import Array, Statistics
from ...families.base.family import LOG_TWO_PI
from ...numerics.spread import spread
from .contraction import Contraction
from .fitted import Design, Fitted
from .keys import StatisticKey


class _Pair(NamedTuple):
    """A term with the means of two different entries: the term, and where they are in it."""

    term: Contraction
    places: tuple[int, int]


class SequentialUpdate:
    """The update of a vector of independent entries.

    Parameters
    ----------
    name
        Of the vector.
    terms
        All terms.
    said
        Returns what all terms say to the entries with the means that they have.
    at_mode
        Whether the entries are points, each at the mode of its distribution.
    """

    def __init__(
        self,
        name: str,
        terms: Sequence[Contraction],
        said: Callable[[Mapping[Hashable, Array]], Statistics],
        *,
        at_mode: bool,
    ) -> None:
        self._key = StatisticKey(name, "x")
        self._said, self._at_mode = said, at_mode
        self._pairs: list[_Pair] = []
        self._fitted: list[Fitted] = []
        for term in terms:
            places = [place for place, key in enumerate(term.keys) if key == self._key]
            if len(places) != 2:
                continue
            if isinstance(term, Fitted):
                self._fitted.append(term)
                continue
            first, second = (term.factors[place].axes[-1] for place in places)
            # the square of a mean is in the product of an entry with itself, which is not among what others say
            if first is not second:
                self._pairs.append(_Pair(term, (places[0], places[1])))

    def natural(self, arrays: Mapping[Hashable, Array]) -> Statistics:
        """Return natural parameters after an update of each entry, the first first."""
        return self.swept(self._said(arrays), arrays, at_mode=self._at_mode)

    def swept(
        self, natural: Statistics, arrays: Mapping[Hashable, Array], *, at_mode: bool = False
    ) -> Statistics:
        """Return natural parameters after an update of each entry, the first first.

        Parameters
        ----------
        natural
            What all terms say to the entries with the means of ``arrays``.
        at_mode
            Whether the entries are points, each at the mode of its distribution.
        """
        move_of = _mode if at_mode else _mean
        mean = np.array(arrays[self._key])
        included, quadratic = (spread(natural[place], mean.shape) for place in (0, 2))
        linear = np.array(spread(natural[1], mean.shape))
        scales = [(own.design, 2.0 * own.scale(arrays)) for own in self._fitted]
        coupling = self._coupling(arrays)
        changes = [_Change(design, scale, mean.shape) for design, scale in scales]
        for block in _blocks(mean.shape[-1], [own.design for own in self._fitted]):
            among = [change.begin(block, linear) for change in changes]
            before = mean[..., block].copy()
            for entry in range(block.start, block.stop):
                moved = move_of(included[..., entry], linear[..., entry], quadratic[..., entry])
                move = moved - mean[..., entry]
                mean[..., entry] = moved
                after = slice(entry + 1, block.stop)
                for own in among:
                    at = slice(entry + 1 - block.start, None)
                    linear[..., after] += own[..., at, entry - block.start] * move[..., None]
                if coupling is not None:
                    linear[..., entry + 1 :] += coupling[..., entry + 1 :, entry] * move[..., None]
            for change in changes:
                change.end(block, mean[..., block] - before)
        return included, linear, quadratic

    def _coupling(self, arrays: Mapping[Hashable, Array]) -> Array | None:
        """Return H of the terms without known rows, (..., D, D); None if there is no such term."""
        if not self._pairs:
            return None
        shape = arrays[self._key].shape
        found = np.zeros((*shape, shape[-1]))
        for term, places in self._pairs:
            found += _of_pair(term, places, arrays)
        return found + found.swapaxes(-1, -2)


def _of_pair(term: Contraction, places: tuple[int, int], arrays: Mapping[Hashable, Array]) -> Array:
    """Return the derivative of a term by both means, over the axes of the first, then the entries of the second."""
    formula = term.formula
    first, second = (formula.looked_up[place].axes for place in places)
    others = [place for place in range(len(formula.keys)) if place not in places]
    present = {axis for place in others for axis in formula.looked_up[place].axes}
    present |= set(formula.constant_axes)
    axes = (*first, second[-1])
    made = formula.evaluation(others, [axis for axis in axes if axis in present])
    found = np.asarray(made(term.constant)(arrays))
    return found[tuple(slice(None) if axis in present else None for axis in axes)]


class _Change:
    """How fitted values have changed in a sweep.

    Parameters
    ----------
    design
        The known rows.
    scale
        What G is multiplied with, with one axis for the columns.
    shape
        Of the means.
    """

    def __init__(self, design: Design, scale: Array, shape: tuple[int, ...]) -> None:
        self.design, self._scale = design, scale
        self._fitted: Array | None = None
        self._shape = shape

    def begin(self, block: slice, linear: Array) -> Array:
        """Add the messages of earlier blocks to a block of columns; return H within it, (..., B, B)."""
        if self._fitted is not None:
            linear[..., block] += self._scale * self.design.against(self._fitted, block)
        return self._scale[..., None] * self.design.among(block)

    def end(self, block: slice, moves: Array) -> None:
        """Take notice of the moves of a block of columns."""
        if block.stop == self._shape[-1]:
            return
        change = self.design.fitted(moves, block)
        self._fitted = change if self._fitted is None else self._fitted + change


def _blocks(size: int, designs: Sequence[Design]) -> list[slice]:
    return designs[0].blocks() if designs else [slice(0, size)]


def _mode(included: Array, linear: Array, quadratic: Array) -> Array:
    """Return the mode of an entry with these natural parameters: zero, or the mean of its Normal."""
    mean = -0.5 * linear / quadratic
    return np.where(included + 0.5 * linear * mean > 0.5 * LOG_TWO_PI, mean, 0.0)


def _mean(included: Array, linear: Array, quadratic: Array) -> Array:
    """Return the mean of an entry with these natural parameters."""
    precision = -2.0 * quadratic
    mean = linear / precision
    return expit(included + 0.5 * (linear * mean - np.log(precision))) * mean
