"""Shipping: work and its sums in a form in which another process, whose objects are others, understands them.

Factors, parts and features are told apart by their identity. In another process a copy of the same
:class:`~caviar.engine.rows.e_step.RowPass` has copies of them in the same order, so what travels from pass to pass has
their numbers in their place: coefficients go out, sums come back, and local factors stay where the rows are.
"""

from __future__ import annotations

import copyreg
import io
import pickle
from collections.abc import Callable, Hashable, Mapping
from typing import Any, TypeVar

from ...language import Constant
from ..design.backend import Workspace
from ..local.statistics import Coefficients, Sums
from .row_model import BlockPass

__all__ = ["Shipment"]


V = TypeVar("V")

_FEW = 1_000
"""Numbers of a constant that travel with the model; more may be one for each row, and are where the rows are."""


class Shipment:
    """What stays the same from pass to pass, to be sent once; it tells what changes by number.

    Parameters
    ----------
    rows
        What the model does with a block of rows. A pickle of it holds none of the data.

    Attributes
    ----------
    scratch
        Work buffers, of each process its own.
    """

    def __init__(self, rows: BlockPass, keys: tuple[Hashable, ...] | None = None) -> None:
        self.rows = rows
        self.scratch = Workspace()
        self._keys = rows.keys if keys is None else keys
        self._numbers = {key: number for number, key in enumerate(self._keys)}

    def __reduce__(self) -> tuple[Any, ...]:
        stream = io.BytesIO()
        _Pickler(stream, protocol=5).dump((self.rows, self._keys))
        return _unpacked, (stream.getvalue(),)

    def numbered_coefficients(self, coefficients: Coefficients) -> Coefficients:
        """Return by number the coefficients that rows need."""
        wanted = self.rows.parts_of_messages
        parts = {part: value for part, value in coefficients.parts.items() if part in wanted}
        zeros = None if coefficients.zeros is None else self.numbered_coefficients(coefficients.zeros)
        return Coefficients(self._numbered(coefficients.matrices), self._numbered(parts), zeros)

    def coefficients(self, numbered: Coefficients) -> Coefficients:
        """Return coefficients by what they belong to."""
        zeros = None if numbered.zeros is None else self.coefficients(numbered.zeros)
        return Coefficients(self._named(numbered.matrices), self._named(numbered.parts), zeros)

    def numbered_sums(self, sums: Sums) -> Sums:
        """Return sums by number, which are added like any other."""
        return _sums(self._numbered, sums)

    def sums(self, numbered: Sums) -> Sums:
        """Return sums by what they belong to."""
        return _sums(self._named, numbered)

    def numbered_states(self, states: list[dict[Any, Any]] | None) -> list[dict[Any, Any]] | None:
        """Return local states of blocks by number; None stays None."""
        return None if states is None else [self._numbered(state) for state in states]

    def states(self, numbered: list[dict[Any, Any]] | None) -> list[dict[Any, Any]] | None:
        """Return local states of blocks by factor; None stays None."""
        return None if numbered is None else [self._named(state) for state in numbered]

    def _numbered(self, by_key: Mapping[Any, V]) -> dict[Any, V]:
        return {self._numbers[key]: value for key, value in by_key.items()}

    def _named(self, by_number: Mapping[Any, V]) -> dict[Any, V]:
        return {self._keys[number]: value for number, value in by_number.items()}


def _sums(told: Callable[[Mapping[Any, Any]], dict[Any, Any]], sums: Sums) -> Sums:
    """Return sums with their keys told in another way."""
    return Sums(told(sums.fused), told(sums.parts), told(sums.log_partition), told(sums.entropy))


class _Pickler(pickle.Pickler):
    """Pickles a model without the constants that are as long as the data."""

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, Constant) and value.value.size > _FEW:
            return copyreg.__newobj__, (type(value),), {**vars(value), "value": None}  # type: ignore[attr-defined]
        return NotImplemented


def _unpacked(pickled: bytes) -> Shipment:
    return Shipment(*pickle.loads(pickled))
