"""Plain values taken apart into what JSON can hold, and the arrays among them; and put together again."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np

from .._typing import AnyArray

_PLAIN_NAME = re.compile(r"(?!.{150})[A-Za-z_][A-Za-z0-9_]{0,60}(/[A-Za-z0-9_][A-Za-z0-9_.]{0,60}){0,6}")


def pack(value: Any, *, once: bool = False) -> tuple[Any, dict[str, AnyArray]]:
    """Return a value as JSON can hold it, and the arrays that it refers to by name.

    Parameters
    ----------
    value
        None, True, False, numbers, texts, arrays, and lists, tuples and dictionaries (with texts as keys) of them.
    once
        Whether an array that is used in several places is kept once; :func:`unpack` then puts one array there.

    Raises
    ------
    TypeError
        If there is anything else in it; the message says where.

    Examples
    --------
    >>> pack({"a": np.array([1.0, 2.0]), "b": (1, np.inf)})
    ({'a': {'$array': 'a'}, 'b': {'$tuple': [1, {'$float': 'inf'}]}}, {'a': array([1., 2.])})
    """
    arrays = _Arrays(once)
    return _packed(value, "", arrays), dict(arrays)


def unpack(value: Any, arrays: Mapping[str, AnyArray]) -> Any:
    """Return the value that :func:`pack` took apart.

    Raises
    ------
    ValueError, LookupError, TypeError
        If it did not make these parts.
    """
    if isinstance(value, list):
        return [item if type(item) in _PLAIN else unpack(item, arrays) for item in value]
    if not isinstance(value, dict):
        return value
    for kind in value:
        if kind.startswith("$"):
            break
    else:
        return {key: item if type(item) in _PLAIN else unpack(item, arrays) for key, item in value.items()}
    if len(value) > 1 or kind not in _KINDS:
        raise ValueError(f"it has an unknown value {', '.join(value):.60}")
    return _KINDS[kind](value[kind], arrays)


_PLAIN = frozenset({str, int, float, bool, type(None)})
"""Types of what stays as it is: most of a long list."""

_KINDS = {
    "$array": lambda name, arrays: arrays[name],
    "$tuple": lambda items, arrays: tuple(unpack(item, arrays) for item in items),
    "$float": lambda text, arrays: {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}[text],
    "$names": lambda names, arrays: np.array([str(name) for name in names], dtype=object),
}


class _Arrays(dict[str, AnyArray]):
    """Arrays by name; and where each is kept once, the names of those that are there."""

    def __init__(self, once: bool) -> None:
        super().__init__()
        self.once = once
        self.names: dict[int, str] = {}


def _packed(value: Any, path: str, arrays: _Arrays) -> Any:
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value) if math.isfinite(value) else {"$float": repr(float(value))}
    if isinstance(value, np.ndarray):
        return _packed_array(value, path, arrays)
    if isinstance(value, (list, tuple)):
        items = [_packed(item, f"{path}/{number}", arrays) for number, item in enumerate(value)]
        return items if isinstance(value, list) else {"$tuple": items}
    if isinstance(value, Mapping) and all(isinstance(key, str) and key[:1] != "$" for key in value):
        return {key: _packed(item, f"{path}/{key}".lstrip("/"), arrays) for key, item in value.items()}
    raise TypeError(f"'{path}' is of type {type(value).__name__}, which cannot be saved: {value!r:.80}")


def _packed_array(value: AnyArray, path: str, arrays: _Arrays) -> Any:
    if arrays.once and id(value) in arrays.names:
        return {"$array": arrays.names[id(value)]}
    if value.dtype.kind in "OU" and value.ndim == 1 and all(isinstance(item, str) for item in value):
        return {"$names": [str(item) for item in value]}
    if value.dtype.kind not in "bif":
        raise TypeError(f"'{path}' is an array of type {value.dtype}, which cannot be saved")
    name = path if _PLAIN_NAME.fullmatch(path) and path not in arrays else f"array_{len(arrays)}"
    arrays.names[id(value)] = name
    arrays[name] = (
        value if value.dtype in (np.float64, np.float32, np.int64, np.int32, np.bool_) else _widened(value)
    )
    return {"$array": name}


def _widened(value: AnyArray) -> AnyArray:
    return value.astype(np.int64 if value.dtype.kind == "i" else np.float64)
