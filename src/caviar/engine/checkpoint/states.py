"""Checkpoints: the state of a fit and the ends of its starts as plain values, and restored to the same bits.

Plain values: factors and arrays taken apart into dictionaries, lists, numbers and whole arrays, and back to the bit.

An array is put together again with the strides that it had: in which order numbers are added up, and so the last bit of
a sum, depends on how they lie in memory. A factor keeps, beside its parameters, what was computed of them already.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..._typing import AnyArray
from ...families import FAMILIES, ExponentialFamily, MeanPrecision
from ...families.shared import SHARED
from ...families.shared.shared_factor import SharedFactor
from ..ascent.driver import Result
from ..ascent.plain_states import by_name, by_variable, factors_of, in_frame_of, plain_frame
from ..ascent.problem import Problem
from ..ascent.schedule import Schedule
from ..ascent.status import Status
from ..binding.clamped.factor import ClampedFactor, PointMass
from ..design.keys import FeatureKey, KeptKey, StatisticKey, SumKey
from ..rows.row_map import RowMap


@dataclass(frozen=True)
class States:
    """States of a fit as plain values, and again from them.

    Attributes
    ----------
    schedule
        What the states are.
    problem, rows
        Of the model and its data.
    """

    schedule: Schedule[Any]
    problem: Problem
    rows: RowMap

    def plain(self, state: Any) -> dict[str, Any]:
        """Return where a fit is as plain values.

        Raises
        ------
        ParameterError
            If something of it cannot be kept: the schedule says what.
        """
        return {name: plain(value) for name, value in self.schedule.to_plain(state).items()}

    def restored(self, document: Mapping[str, Any]) -> Any:
        """Return where a fit was, which plain values hold.

        Raises
        ------
        ValueError, LookupError, TypeError, AttributeError
            If they hold no state.
        """
        return self.schedule.from_plain(_restored(document), self.problem, self.rows)


def plain_result(result: Result) -> dict[str, Any]:
    """Return the end of a start as plain values."""
    document = {
        "centres": plain_frame(result.problem),
        "q": by_name(result.q),
        "elbo": float(result.elbo),
        "trace": np.array(result.trace),
        "terms": {name: float(value) for name, value in result.by_factor().items()},
        "status": result.status.value,
        "n_iter": result.n_iter,
        "fell_at": result.fell_at,
        "lost_in": result.lost_in,
        "lost": float(result.lost),
        "beliefs": [[name, belief] for name, belief in result.beliefs.items()],
    }
    return {name: plain(value) for name, value in document.items()}


def restored_result(document: Mapping[str, Any], problem: Problem) -> Result:
    """Return the end that plain values hold, of a problem of the same model and data.

    Raises
    ------
    ValueError, LookupError, TypeError, AttributeError
        If they hold none.
    """
    document = _restored(document)
    # where globals share factors, starts begin without these, and end with them
    problem = in_frame_of(document["centres"], problem.together)
    kept = {name: document[name] for name in ("elbo", "trace", "n_iter", "fell_at", "lost_in", "lost")}
    return Result(
        problem=problem,
        q=factors_of(document["q"], problem),
        by_factor=partial(dict, document["terms"]),
        status=Status(document["status"]),
        beliefs={v.name: belief for v, belief in by_variable(document["beliefs"], problem).items()},
        **kept,
    )


def _restored(document: Mapping[str, Any]) -> dict[str, Any]:
    return {name: restored(value) for name, value in document.items()}


_LARGEST_SPREAD = 64
"""Bytes between the first and the last number of an array, a byte of it, up to which its strides are kept."""
_MOST_NUMBERS = 1 << 32
"""In an array that repeats its numbers: more would be a made-up one."""


_KEYS = (FeatureKey, KeptKey, StatisticKey, SumKey)


def plain(value: Any) -> Any:
    """Return a value as dictionaries, lists, tuples, numbers, texts and contiguous arrays.

    Parameters
    ----------
    value
        A factor of a family, one that several variables share, a point mass, a factor known in part, a key, an array, a
        number, a text, None, or a list,
        tuple or dictionary (with texts as keys) of such.

    Raises
    ------
    TypeError
        If it is anything else.

    Examples
    --------
    >>> from caviar.families import Gamma
    >>> plain(Gamma(2.0, 3.0))
    {'kind': 'family', 'name': 'Gamma', 'held': {'shape': array(2.), 'rate': array(3.)}}
    """
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, np.generic):
        return {"kind": "number", "value": np.asarray(value)}
    if isinstance(value, float):
        return value
    if isinstance(value, np.ndarray):
        return _plain_array(value)
    if isinstance(value, MeanPrecision):
        return {"kind": "pair", "parts": [plain(part) for part in value]}
    if isinstance(value, _KEYS):
        return {"kind": type(value).__name__, "parts": [plain(part) for part in value]}
    if isinstance(value, list | tuple):
        items = [plain(item) for item in value]
        return items if isinstance(value, list) else {"kind": "tuple", "parts": items}
    if isinstance(value, Mapping):
        return {"kind": "dict", "held": {key: plain(item) for key, item in value.items()}}
    if isinstance(value, ExponentialFamily):
        held = {name: plain(own) for name, own in value.attributes().items()}
        return {"kind": "family", **_named(type(value)), "held": held}
    if isinstance(value, PointMass):
        own = {name: held for name, held in vars(value).items() if name != "family"}
        return {
            "kind": "point",
            **_named(value.family),
            "held": {k: plain(v) for k, v in own.items()},
        }
    if isinstance(value, ClampedFactor):
        return {"kind": "partly known", "held": _held(value)}
    if isinstance(value, SharedFactor):
        return {"kind": value.kind, "held": {name: plain(held) for name, held in value.as_plain().items()}}
    raise TypeError(f"a {type(value).__name__} cannot be kept in a checkpoint")


def _named(family: type[ExponentialFamily]) -> dict[str, Any]:
    """Return what identifies a family."""
    details = family.details()
    return {"name": family.__name__, **({"details": plain(details)} if details else {})}


def _family_named(document: Mapping[str, Any]) -> type[ExponentialFamily]:
    return FAMILIES[document["name"]].detailed(
        restored(document.get("details", {"kind": "dict", "held": {}}))
    )


def _held(value: Any) -> dict[str, Any]:
    return {name: plain(held) for name, held in vars(value).items()}


def restored(document: Any) -> Any:
    """Return the value that :func:`plain` took apart.

    Raises
    ------
    ValueError, LookupError, TypeError
        If it did not make this.
    """
    if isinstance(document, list):
        return [restored(item) for item in document]
    if not isinstance(document, Mapping):
        return document
    return _KINDS[document["kind"]](document)


def _family(document: Mapping[str, Any]) -> ExponentialFamily:
    return _filled(_family_named(document), document["held"])


def _point(document: Mapping[str, Any]) -> PointMass:
    point: PointMass = _filled(PointMass, document["held"])
    vars(point)["family"] = _family_named(document)
    return point


def _filled(kind: type, held: Mapping[str, Any]) -> Any:
    """Return an instance with these attributes, parameters and what was computed of them."""
    for name in held:
        known = getattr(kind, "__dataclass_fields__", {})
        if name not in known and not hasattr(getattr(kind, name, None), "__set_name__"):
            raise ValueError(f"a {kind.__name__} with {name!r:.40}")
    instance = object.__new__(kind)
    vars(instance).update({name: restored(value) for name, value in held.items()})
    return instance


def _key_of_kind(kind: type[Any]) -> Callable[[Mapping[str, Any]], Any]:
    """Return what makes a key of a kind from a document."""
    return lambda document: kind(*(restored(part) for part in document["parts"]))


def _shared_of_kind(kind: Any) -> Callable[[Mapping[str, Any]], Any]:
    """Return what makes a factor that several variables share from a document."""
    return lambda document: kind.of_plain({name: restored(held) for name, held in document["held"].items()})


_KINDS = {
    "number": lambda document: document["value"][()],
    "pair": lambda document: MeanPrecision(*(restored(part) for part in document["parts"])),
    "tuple": lambda document: tuple(restored(part) for part in document["parts"]),
    "dict": lambda document: {key: restored(item) for key, item in document["held"].items()},
    "family": _family,
    "point": _point,
    **{kind: _shared_of_kind(own) for kind, own in SHARED.items()},
    "partly known": lambda document: _filled(ClampedFactor, document["held"]),
    "array": lambda document: _strided(document),
    **{kind.__name__: _key_of_kind(kind) for kind in _KEYS},
}


def _plain_array(array: AnyArray) -> Any:
    """Return a contiguous array unchanged; for any other array, its numbers and their places."""
    if array.flags.c_contiguous or not array.size:
        return array
    steps = [step // array.itemsize for step in array.strides]
    span = 1 + sum((size - 1) * step for size, step in zip(array.shape, steps, strict=True))
    if (
        min(steps) < 0
        or any(step % array.itemsize for step in array.strides)
        or span > _LARGEST_SPREAD * array.size
    ):
        return np.ascontiguousarray(array)
    repeated = tuple(slice(0, 1) if step == 0 else slice(None) for step in steps)
    values = np.ascontiguousarray(array[repeated])
    return {"kind": "array", "values": values, "shape": list(array.shape), "steps": steps}


def _strided(document: Mapping[str, Any]) -> AnyArray:
    """Return an array whose numbers lie as they did; NumPy checks that all of them do in its memory."""
    values, shape, steps = document["values"], tuple(document["shape"]), tuple(document["steps"])
    once = tuple(1 if step == 0 else size for size, step in zip(shape, steps, strict=True))
    span = 1 + sum((size - 1) * step for size, step in zip(shape, steps, strict=True))
    if (
        values.shape != once
        or min((*shape, *steps)) < 0
        or math.prod(shape) > _MOST_NUMBERS
        or span > _LARGEST_SPREAD * math.prod(shape)
    ):
        raise ValueError(f"an array of shape {shape!s:.60} with steps {steps!s:.60}")
    memory = np.zeros(span, dtype=values.dtype)
    strides = tuple(step * values.itemsize for step in steps)
    np.ndarray(once, values.dtype, memory, strides=strides)[...] = values
    return np.ndarray(shape, values.dtype, memory, strides=strides)
