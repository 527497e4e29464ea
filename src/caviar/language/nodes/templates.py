"""Templates: the log density of a distribution, written term by term.

A template reads like the formula. For a Normal, ``log N(x | m, 1/t) = -1/2 t x^2 + t m x - 1/2 t m^2 + 1/2 log t - 1/2
log 2 pi`` is written ::

    template(
        (-1 / 2, "precision.x self.xx"),
        (1, "precision.x mean.x self.x"),
        (-1 / 2, "precision.x mean.xx"),
        (1 / 2, "precision.log_x"),
        (-1 / 2 * LOG_2PI, ""),
    )

Each word is ``slot.statistic[event letters]``; repeated letters are summed over; a bare ``[i]`` sums the
rest of its term over the event axis, that is, multiplies it by the dimension.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

LOG_2 = float(np.log(2.0))
LOG_2PI = float(np.log(2 * np.pi))

_WORD = re.compile(r"(?:(?P<slot>\w+)\.(?P<statistic>\w+))?(?:\[(?P<letters>[a-z]+)\])?")


class Factor(NamedTuple):
    """One expected statistic in a summand: ``slot.statistic[letters]``."""

    slot: str
    statistic: str
    letters: str


@dataclass(frozen=True)
class Summand:
    """A coefficient times a product of expected statistics, summed over all letters."""

    coefficient: float
    factors: tuple[Factor, ...]
    letters: str
    is_once: bool = False
    """Whether it counts once for all repetitions along the plate over which a precision is tied."""


Density = tuple[Summand, ...]


def template(*lines: tuple[float, str]) -> Density:
    """Return the summands of a log density from lines of (coefficient, words).

    Examples
    --------
    >>> template((0.5, "precision.log_x"))[0].factors
    (Factor(slot='precision', statistic='log_x', letters=''),)
    """
    return tuple(_summand(coefficient, words) for coefficient, words in lines)


def once(density: Density) -> Density:
    """Return summands that count once for all repetitions along a tied plate."""
    return tuple(replace(summand, is_once=True) for summand in density)


def _summand(coefficient: float, words: str) -> Summand:
    factors: list[Factor] = []
    letters: dict[str, None] = {}
    for word in words.split():
        match = _WORD.fullmatch(word)
        if match is None:
            raise ValueError(f"cannot read {word!r} in the template {words!r}")
        axes = match["letters"] or ""
        letters.update(dict.fromkeys(axes))
        if match["slot"]:
            factors.append(Factor(match["slot"], match["statistic"], axes))
    return Summand(float(coefficient), tuple(factors), "".join(letters))
