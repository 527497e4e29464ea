"""Which prior matters: by how much posterior means move with the numbers that state the priors, as a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from .._typing import Array
from .tables import html_table, text_table

SHARE = 0.1
"""By how much a number of a prior changes: of itself, or a location by so many standard deviations of its prior."""


@dataclass(frozen=True)
class SensitivityRow:
    """What a number of a prior does.

    Attributes
    ----------
    prior
        ``"VARIABLE.PARAMETER"``.
    value
        What was stated: one number, or the smallest and the largest of several.
    change
        In words.
    shifts
        Name of each variable -> the largest movement of a mean, in its posterior standard deviations.
    places
        Name of each variable -> which of its entries moves so far.
    elbo
        Change of the ELBO, in nats.
    """

    prior: str
    value: tuple[float, ...]
    change: str
    shifts: Mapping[str, float]
    places: Mapping[str, str]
    elbo: float

    @property
    def largest(self) -> float:
        """The largest movement of any of the variables, whichever its direction."""
        return max(map(abs, self.shifts.values()), default=0.0)


@dataclass(frozen=True)
class Sensitivity:
    """A row for each number, or array of numbers, that states a prior, the one that matters most first.

    It prints as a table, and as HTML in a notebook; :func:`caviar.plot.sensitivity` draws it.

    Attributes
    ----------
    rows
        In this order.
    names
        Of the variables whose means were asked for.
    """

    rows: tuple[SensitivityRow, ...]
    names: tuple[str, ...]

    def _cells(self) -> Iterator[tuple[str, ...]]:
        yield ("prior", "stated", "changed by", *(f"{name}, sd" for name in self.names), "ELBO, nats")
        for row in self.rows:
            stated = " to ".join(f"{number:.4g}" for number in row.value)
            shifts = (_shift(row.shifts[name], row.places[name]) for name in self.names)
            yield (row.prior, stated, row.change, *shifts, _signed(row.elbo))

    def __str__(self) -> str:
        """Return the table."""
        return text_table(list(self._cells()), left={0, 2})

    def _repr_html_(self) -> str:
        """Return the table, every name escaped."""
        return f"<p>{escape(EXPLANATION)}</p>\n{html_table(list(self._cells()))}"


EXPLANATION = (
    "How many of its posterior standard deviations the mean of each variable moves when a number of a prior changes, "
    "to first order. If a variable has several entries, the one that moves most is shown."
)


def sensitivity_of(
    values: Mapping[str, tuple[str, str, Array]],
    slopes: Mapping[str, Mapping[str, Array]],
    sds: Mapping[str, Array],
    elbo: Mapping[str, Array],
    prior_sds: Mapping[str, Array],
) -> Sensitivity:
    """Return the table.

    Parameters
    ----------
    values
        Name of each parameter -> its variable, its own name, and its stated value.
    slopes
        Name of a variable -> name of a parameter -> derivatives, shape of the parameter + of the variable.
    sds
        Name of a variable -> posterior standard deviations of its entries.
    elbo
        Name of a parameter -> derivatives of the ELBO, of its shape.
    prior_sds
        Name of a parameter that is a location -> how far it is moved, of its shape or one number.
    """
    rows = []
    for prior, (_, _, value) in values.items():
        is_location = prior in prior_sds
        steps = SHARE * (np.broadcast_to(prior_sds[prior], value.shape) if is_location else value)
        shifts, places = {}, {}
        for name, sd in sds.items():
            moved = slopes[name][prior]
            # one entry of a location moves at a time, since several may cancel; all entries of a width grow together
            by_entry = moved * steps.reshape(steps.shape + (1,) * sd.ndim)
            if not is_location:
                by_entry = by_entry.sum(axis=tuple(range(value.ndim)))
            in_sds = np.divide(by_entry, sd, out=np.zeros(by_entry.shape), where=(sd > 0) & np.isfinite(sd))
            index = np.unravel_index(int(np.abs(in_sds).argmax()), in_sds.shape) if in_sds.size else ()
            shifts[name] = float(in_sds[index]) if in_sds.size else 0.0
            places[name] = _place(index[in_sds.ndim - sd.ndim :])
        by_elbo = elbo[prior] * steps
        change = float(by_elbo.flat[np.abs(by_elbo).argmax()] if is_location else by_elbo.sum())
        told = f"{SHARE:g} prior sd" if is_location else f"{SHARE:.0%}"
        ends = (float(value.min()), float(value.max()))
        rows.append(SensitivityRow(prior, tuple(dict.fromkeys(ends)), told, shifts, places, change))
    rows.sort(key=lambda row: -row.largest)
    return Sensitivity(tuple(rows), tuple(sds))


def _place(index: Sequence[Any]) -> str:
    return f"[{', '.join(str(int(number)) for number in index)}]" if len(index) else ""


def _shift(value: float, place: str) -> str:
    return f"{_signed(value)} {place}".rstrip()


def _signed(value: float) -> str:
    return "0" if abs(value) < 5e-5 else f"{value:+.2g}"
