"""Labels that are texts: their distinct values, and the position of each entry among these."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np

from ..._errors import DataError
from ..._typing import AnyArray
from ...lazy.rows import LazyRows

_ABSENT = ("NAType", "NaTType")


@dataclass(frozen=True, eq=False)
class TextLabels:
    """Labels as texts.

    Attributes
    ----------
    values
        An array of texts, None where one is missing.
    categories
        All possible values, in order, if the type of the labels lists them; otherwise None.
    lengths
        Lengths of the sequences, if the labels are sequences one after another, such as words of documents; otherwise
        None.
    is_ordered
        Whether the categories go from the lowest to the highest.
    """

    values: AnyArray
    categories: tuple[str, ...] | None = None
    lengths: tuple[int, ...] | None = None
    is_ordered: bool = False

    def distinct(self) -> set[str]:
        """Return the texts that occur, or that the type of the labels lists."""
        if self.categories is not None:
            return set(self.categories)
        return {text for text in self.values.flat if text is not None}

    def places(self, names: Sequence[str]) -> Any:
        """Return the position of each text among names: integers, with NaN for missing labels.

        For sequences a list of arrays.

        Raises
        ------
        LookupError
            With the row and the text of the first label that is not among the names.
        """
        known: Mapping[str | None, int] = {name: place for place, name in enumerate(names)}
        flat = [known.get(text, -1) for text in self.values.flat]
        found = np.array(flat, dtype=np.intp).reshape(self.values.shape)
        absent = np.array([text is None for text in self.values.flat], dtype=bool).reshape(self.values.shape)
        unknown = (found < 0) & ~absent
        if unknown.any():
            where = tuple(np.argwhere(unknown)[0])
            raise LookupError(int(where[0]) if where else 0, self.values[where])
        numbers = np.where(absent, np.nan, found) if absent.any() else found
        return numbers if self.lengths is None else np.split(numbers, np.cumsum(self.lengths)[:-1])


def text_labels(value: Any, name: str) -> TextLabels | None:
    """Return labels that are texts; None if they are numbers.

    Labels of categorical types of pandas and Arrow, and of Polars' Enum, have the categories of the type, in its order.
    Categories that are whole numbers become texts unless all of them are positions (0, 1, ...).

    Parameters
    ----------
    value
        Of any library; a table of several columns, too.
    name
        Of the variable, for messages.

    Raises
    ------
    DataError
        If texts and numbers are mixed.
    """
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufc":
        return None
    if isinstance(value, LazyRows):
        return None
    categories = _categories_of(value)
    if categories is not None:
        if all(isinstance(own, int | np.integer) for own in categories):
            places = sorted(int(own) for own in categories)
            if places == list(range(len(places))):
                return None
        values = _as_objects(value)
        texts = np.array([None if is_absent(own) else str(own) for own in values.flat], dtype=object)
        order = tuple(map(str, categories))
        return TextLabels(texts.reshape(values.shape), order, is_ordered=are_ordered(value))
    values = _as_objects(value)
    if values.dtype.kind != "O":
        return None
    n_texts = sum(isinstance(own, str) for own in values.flat)
    if not n_texts:
        return None
    texts = np.empty(values.shape, dtype=object)
    for where, own in enumerate(values.flat):
        if isinstance(own, str):
            texts.flat[where] = str(own)
        elif not is_absent(own):
            raise DataError(
                f"the labels of '{name}' mix texts and other values: row {_row_of(values, where)} has {own!r}, a "
                f"{type(own).__name__}. Make all of them texts (.astype(str)), or all of them numbers"
            )
    return TextLabels(texts)


def sequences_of_texts(value: Any, name: str) -> TextLabels | None:
    """Return labels that come in sequences, such as the words of documents; None for other labels."""
    if not isinstance(value, list | tuple) or not value or any(isinstance(own, str) for own in value):
        return None
    try:
        parts = [list(own) for own in value]
    except TypeError:
        return None
    if not any(isinstance(own, str) for part in parts for own in part):
        return None
    flat = np.empty(sum(map(len, parts)), dtype=object)
    flat[:] = [own for part in parts for own in part]
    found = text_labels(flat, name)
    return None if found is None else TextLabels(found.values, None, tuple(map(len, parts)))


def whole_texts(value: Any) -> TextLabels | None:
    """Return whole numbers as texts; None for anything else."""
    array = np.asarray(value)
    if array.dtype.kind == "O":
        array = np.array([np.nan if is_absent(own) else own for own in array.flat], dtype=object).reshape(
            array.shape
        )
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError):
            return None
    if array.dtype.kind not in "iuf":
        return None
    absent = np.isnan(array) if array.dtype.kind == "f" else np.zeros(array.shape, dtype=bool)
    if not np.array_equal(array[~absent], np.floor(array[~absent])):
        return None
    texts = [None if gone else str(int(own)) for own, gone in zip(array.flat, absent.flat, strict=True)]
    return TextLabels(np.array(texts, dtype=object).reshape(array.shape))


def stated_order(labels: Iterable[TextLabels]) -> tuple[str, ...] | None:
    """Return the categories of the type of labels if all columns have the same ones in one order; otherwise None."""
    orders = {own.categories for own in labels}
    return orders.pop() if len(orders) == 1 else None


def _categories_of(value: Any) -> list[Any] | None:
    """Return the categories of a categorical type, in order; for several columns, those that all of them have."""
    if getattr(value, "ndim", 1) == 2 and hasattr(value, "iloc"):
        each = [_categories_of(value.iloc[:, place]) for place in range(value.shape[1])]
        return each[0] if each and all(own == each[0] for own in each) else None
    kind = getattr(value, "dtype", None)
    categories = getattr(kind, "categories", None)
    if categories is not None and type(kind).__name__ in ("CategoricalDtype", "Enum"):
        return list(categories)
    if hasattr(value, "null_count") and hasattr(getattr(value, "type", None), "index_type"):
        whole = value.unify_dictionaries() if hasattr(value, "unify_dictionaries") else value
        first = whole.chunk(0) if hasattr(whole, "chunk") else whole
        return first.dictionary.to_pylist()
    return None


def are_ordered(value: Any) -> bool:
    """Whether the type of labels says that their categories go from the lowest to the highest.

    An Enum of Polars does; a categorical type of pandas or Arrow does if it was made so.
    """
    kind: Any = getattr(value, "dtype", getattr(value, "type", None))
    return type(kind).__name__ == "Enum" or bool(getattr(kind, "ordered", False))


def _as_objects(value: Any) -> AnyArray:
    """Return an array: of objects, unless the values are numbers."""
    if isinstance(value, np.ma.MaskedArray):
        if value.dtype.kind in "biufc":
            return np.asarray(value)
        texts = np.array(value.data, dtype=object)
        texts[np.ma.getmaskarray(value)] = None
        return texts
    if hasattr(value, "to_pylist"):
        return np.array(value.to_pylist(), dtype=object)
    if isinstance(value, list | tuple):
        try:
            array = np.array(value, dtype=object)
        except ValueError:
            return np.empty(0)
    elif hasattr(value, "to_numpy"):
        array = np.asarray(value.to_numpy())
    else:
        array = np.asarray(value)
    return array.astype(object) if array.dtype.kind in "UT" else array


def is_absent(value: Any) -> bool:
    """Whether an entry is missing: None, NaN, NA, NaT."""
    is_nan = isinstance(value, float | np.floating | Decimal) and value != value
    return value is None or is_nan or type(value).__name__ in _ABSENT


def _row_of(values: AnyArray, where: int) -> int:
    return int(np.unravel_index(where, values.shape)[0]) if values.ndim else 0
