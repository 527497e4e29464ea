"""Which prior matters: a table of how far posterior means move with the numbers of the priors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._tables import html_of, text_table
from .._typing import Array

SHARE = 0.1
"""Share by which a number of a prior grows; for a location, share of the standard deviation of its prior."""


@dataclass(frozen=True)
class SensitivityRow:
    """How far means move with a number of a prior.

    Attributes
    ----------
    prior
        ``"VARIABLE.PARAMETER"``.
    value
        The number in the model, or the smallest and the largest of several.
    change
        The change of the number, in words.
    shifts
        Name of each variable -> the largest movement of a mean, in its posterior standard deviations.
    places
        Name of each variable -> the entry that moves most.
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
        """The largest absolute movement of any variable."""
        return max(map(abs, self.shifts.values()), default=0.0)


@dataclass(frozen=True)
class Sensitivity:
    """A row for each number, or array of numbers, of a prior, the one that matters most first.

    It prints as a table, and as HTML in a notebook; :func:`caviar.plot.sensitivity` draws it.

    Attributes
    ----------
    rows
        In this order.
    names
        Names of the variables whose means are shown.
    """

    rows: tuple[SensitivityRow, ...]
    names: tuple[str, ...]

    def _cells(self) -> Iterator[tuple[str, ...]]:
        yield ("prior", "stated", "changed by", *(f"{name}, sd" for name in self.names), "ELBO, nats")
        for row in self.rows:
            stated = " to ".join(f"{number:.4g}" for number in row.value)
            shifts = (_shift(row.shifts[name], row.places[name]) for name in self.names)
            yield (row.prior, stated, row.change, *shifts, _signed(row.elbo))

    def __repr__(self) -> str:
        """Return the table, as in a console."""
        return str(self)

    def __str__(self) -> str:
        """Return the table."""
        return text_table(list(self._cells()), left={0, 2})

    def _repr_html_(self) -> str:
        """Return the table, every name escaped."""
        return html_of(EXPLANATION, list(self._cells()))


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
    named: Mapping[str, Sequence[Sequence[str] | None]],
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
    named
        Name of a variable -> names of the places along each of its axes, None where they have none.
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
            places[name] = _place(index[in_sds.ndim - sd.ndim :], named[name])
        by_elbo = elbo[prior] * steps
        change = float(by_elbo.flat[np.abs(by_elbo).argmax()] if is_location else by_elbo.sum())
        told = f"{SHARE:g} prior sd" if is_location else f"{SHARE:.0%}"
        ends = (float(value.min()), float(value.max()))
        rows.append(SensitivityRow(prior, tuple(dict.fromkeys(ends)), told, shifts, places, change))
    rows.sort(key=lambda row: -row.largest)
    return Sensitivity(tuple(rows), tuple(sds))


def _place(index: Sequence[Any], named: Sequence[Sequence[str] | None]) -> str:
    told = [str(int(at) if names is None else names[int(at)]) for at, names in zip(index, named, strict=True)]
    return f"[{', '.join(told)}]" if told else ""


def _shift(value: float, place: str) -> str:
    return f"{_signed(value)} {place}".rstrip()


def _signed(value: float) -> str:
    return "0" if abs(value) < 5e-5 else f"{value:+.2g}"
