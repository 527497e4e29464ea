"""Columns of a table as a formula needs them: numbers, or categories in an order that is kept for new rows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from ..._errors import DataError
from ..._typing import AnyArray, Array
from ...data.columns.labels import TextLabels, are_ordered, text_labels
from ...data.columns.lost_digits import numbers_that_are_there, refuse_lost_digits
from ...data.columns.other_notations import or_decimal, other_notation
from ...data.frames import Frame, frame_of, has_dates, index_of, without_absent
from ...files.naming import nearest

_FEW_LEVELS = 5
"""Texts of so few numbers may be codes, even if each row has its own."""

_SHOWN = 8
"""Names that a message lists at most."""

_LARGEST = 1e150
"""Size of numbers whose squares, of many rows, a double still has; the inverse is the smallest."""

_DATE = re.compile(
    r"(?:\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{4})(?:[ T]\d{1,2}:\d{2}(?::\d{2}.*)?Z?)?"
)
"""A date, and perhaps a time, as people and programs write them."""


@dataclass(frozen=True, eq=False)
class Rows:
    """A table whose columns are looked up by name.

    Attributes
    ----------
    columns
        Name -> values, or the table itself.
    index
        Index of the rows of a DataFrame of pandas; None for other tables.
    """

    columns: Mapping[str, Any] | Frame
    index: Any = None

    @classmethod
    def of(cls, table: Any) -> Rows:
        """Return a table of pandas, Polars or Arrow, or a mapping from names to columns.

        Raises
        ------
        DataError
            If it is something else.
        """
        if isinstance(table, Mapping):
            return cls(table)
        frame = frame_of(table)
        if frame is None:
            raise DataError(
                f"expected a table with named columns: a pandas or Polars DataFrame, an Arrow table, or a mapping from "
                f"names to columns; got {type(table).__name__}"
            )
        return cls(frame, index_of(table))

    def chosen(self, places: AnyArray) -> Rows:
        """Return the rows at some places; of columns with the same name none, since no formula can mean one of them."""
        names = self.names
        told = [name for name in names if names.count(name) == 1]
        return Rows({name: _safe_indexing(self.column(name), places) for name in told})

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return [
            str(name) for name in (self.columns.columns if isinstance(self.columns, Frame) else self.columns)
        ]

    @property
    def n_rows(self) -> int:
        """Number of rows, as the first column has it."""
        names = self.names
        return len(self.column(names[0])) if names else 0

    def refuse_unequal(self, names: Iterable[str]) -> None:
        """Refuse columns of different lengths, which a mapping may have; those that are absent are none.

        Raises
        ------
        DataError
            If two of them differ.
        """
        lengths = {name: len(self.column(name)) for name in names if name in self.names}
        first = next(iter(lengths), "")
        for name, length in lengths.items():
            if length != lengths[first]:
                raise DataError(
                    f"the columns of a table have the same length: '{first}' has {lengths[first]} rows, and '{name}' "
                    f"has {length}"
                )

    def column(self, name: str) -> Any:
        """Return a column as it came.

        Raises
        ------
        DataError
            If no column has this name, or the values are not a column.
        """
        names = self.names
        if name not in names:
            near = nearest(name, names)
            hint = f" Did you mean '{near}'?" if near else ""
            raise DataError(f"the table has no column '{name}'; it has {_listed(names)}.{hint}")
        found = self.columns.column(name) if isinstance(self.columns, Frame) else self.columns[name]
        if np.ndim(found) != 1:
            raise DataError(
                f"'{name}' must be a column, with one value for each row; got shape {np.shape(found)}"
            )
        return found

    def numbers(self, name: str, *, are_labels: bool = False) -> Array:
        """Return a column of numbers, all of them finite; their last digits do not matter where they ``are_labels``.

        Raises
        ------
        DataError
            If it has texts, dates, missing values or infinity; the message names the first row. Or if its digits are
            lost in double precision.
        """
        found = self.column(name)
        if has_dates(found):
            raise DataError(
                f"'{name}' has dates or times, which are numbers only in a unit: count them in the one you mean, as in "
                f"table['{name}'] = (table['{name}'] - table['{name}'].min()).dt.days"
            )
        texts = text_labels(found, name)
        if texts is not None:
            raise DataError(f"'{name}' must have numbers; got {': '.join(how_to_read(name, texts))}")
        if not are_labels:
            refuse_lost_digits(found, f"'{name}'")
        found = without_absent(found)
        values = np.asarray(found.to_numpy() if hasattr(found, "to_numpy") else found)
        if values.dtype.kind == "c":
            raise DataError(
                f"'{name}' must have numbers; got complex ones, such as {values[0]}. Take their real part or their size"
            )
        try:
            values = values.astype(np.float64)
        except (TypeError, ValueError):
            raise DataError(f"'{name}' must have numbers; got {_first_strange(values)}") from None
        wrong = np.flatnonzero(~np.isfinite(values))
        if len(wrong):
            raise DataError(
                f"'{name}' has {values[wrong[0]]} in row {wrong[0]}; drop the rows that lack a value, or fill them "
                f"({len(wrong)} of {len(values)} rows)"
            )
        _refuse_extreme(name, values)
        return values

    def labels(self, name: str) -> tuple[AnyArray, list[str] | None]:
        """Return a column of categories as texts, and the categories of its type in their order, if it has any.

        Raises
        ------
        DataError
            If a value is missing.
        """
        found = self.column(name)
        texts = _date_labels(found) if has_dates(found) else text_labels(found, name)
        if texts is None:
            values, whole = self.numbers(name, are_labels=True), np.asarray(found)
            # whole numbers as they are: two large ones may be the same number of double precision
            are_whole = whole.dtype.kind in "iu" or (
                whole.dtype.kind == "O" and all(isinstance(own, Integral) for own in whole)
            )
            own = whole if are_whole else values
            return np.array([_as_text(value) for value in own.tolist()], dtype=object), None
        absent = np.flatnonzero([own is None for own in texts.values])
        if len(absent):
            raise DataError(
                f"'{name}' has no value in row {absent[0]}; drop the rows that lack one ({len(absent)} of "
                f"{len(texts.values)} rows)"
            )
        return texts.values, None if texts.categories is None else list(texts.categories)

    def labels_that_are_there(self, name: str) -> AnyArray:
        """Return a column of categories as texts, None in rows that lack one."""
        found = self.column(name)
        texts = _date_labels(found) if has_dates(found) else text_labels(found, name)
        if texts is not None:
            return texts.values.astype(object)
        column = without_absent(found)
        values = np.asarray(column.to_numpy() if hasattr(column, "to_numpy") else column)
        is_there = np.array([own is not None and own == own for own in values.tolist()], dtype=bool)
        labels = np.full(len(values), None, dtype=object)
        # NumPy would round large whole numbers beside missing ones
        own = numbers_that_are_there(found)
        if own is None or len(own) != np.count_nonzero(is_there):
            own = np.asarray(found)[is_there]
        labels[is_there] = Rows({name: own}).labels(name)[0]
        return labels

    def are_ordered(self, name: str) -> bool:
        """Whether the categories of a column go from the lowest to the highest: by its type, or as numbers."""
        column = self.column(name)
        texts = text_labels(column, name)
        if texts is None or are_ordered(column):
            return True
        return texts.categories is not None and all(
            np.isfinite([_as_number(own) for own in texts.categories])
        )

    def are_texts(self, name: str) -> bool:
        """Whether a column has texts or categories, and no numbers."""
        return text_labels(self.column(name), name) is not None

    def refuse_written_numbers(self, name: str) -> None:
        """Refuse texts that are all dates, or mostly numbers that hardly occur twice: each would be a category.

        Raises
        ------
        DataError
            If they are, and the type of the column does not say that these are categories.
        """
        texts = text_labels(self.column(name), name)
        if texts is None or texts.categories is not None:
            return
        distinct = sorted(texts.distinct())
        if distinct and all(map(_DATE.fullmatch, distinct)):
            raise DataError(
                f"'{name}' has dates as texts, such as {distinct[0]!r}, and each of the {len(distinct)} would be a "
                f"category: make a column of numbers, such as the days since the first date; if you mean categories, "
                f"write C({name}) in the formula, and (1 | {name}) for groups"
            )
        are_distinct = len(distinct) > max(_FEW_LEVELS, self.n_rows / 2)
        if are_distinct and 2 * sum(map(_is_number, distinct)) > len(distinct):
            first = next(filter(_is_number, distinct))
            remedy = how_to_read(name, texts)[1]
            raise DataError(
                f"'{name}' has numbers as texts, such as {first!r}, and each of the {len(distinct)} would be a "
                f"category: {remedy}; if you mean categories, write C({name}) in the formula, and (1 | {name}) "
                f"for groups"
            )


def how_to_read(name: str, texts: TextLabels) -> tuple[str, str]:
    """Return a text that is no number, or the first one if all are, with its row; and how to make texts numbers."""
    given = [(row, own) for row, own in enumerate(texts.values.tolist()) if own is not None]
    strange = [(row, own) for row, own in given if not np.isfinite(_as_number(own))]
    row, text = next(iter([*strange, *given]), (0, ""))
    shown, change, what, end = f"{text!r} in row {row}", f"as by table['{name}']", "", ""
    if strange:
        notation = other_notation([own for _, own in strange])
        if notation is None:
            if any(_is_number(own) for _, own in given):
                return shown, f"correct {text!r}, or leave out row {row}"
            return shown, "code the column as numbers"
        of, removed = notation
        change += "".join(f".str.replace({mark!r}, '')" for mark in removed)
        change += "" if "," in removed else ".str.replace(',', '.')"
        what, end = f"they have {of}, so ", or_decimal(removed, [own for _, own in strange])
    return shown, f"{what}make them numbers, {change}.astype(float){end}"


def _date_labels(found: Any) -> TextLabels:
    """Return dates and times as texts, the same ones in any unit that a table may keep them in."""
    values = np.asarray(found.to_numpy() if hasattr(found, "to_numpy") else found)
    if values.dtype.kind not in "mM":
        return TextLabels(
            np.array([None if own is None else str(own) for own in values.tolist()], dtype=object)
        )
    texts = values.astype("M8[ns]" if values.dtype.kind == "M" else "m8[ns]").astype(str)
    labels = texts.astype(object)
    labels[np.isnat(values)] = None
    return TextLabels(labels)


def _as_text(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)


def _first_strange(values: AnyArray) -> str:
    for row, value in enumerate(values.tolist()):
        if not isinstance(value, int | float):
            return f"{value!r} in row {row}"
    return f"values of type {values.dtype}"


def levels_of(texts: AnyArray, categories: Sequence[str] | None) -> list[str]:
    """Return the levels that occur: in the order of the type, by size if all are numbers, or else by the alphabet."""
    found = set(texts.tolist())
    if categories is not None:
        return [own for own in categories if own in found]
    numbers = {own: _as_number(own) for own in found}
    if all(map(np.isfinite, numbers.values())):
        # texts of one number, as 1 and 1.0, have an order too
        return sorted(found, key=lambda own: (numbers[own], own))
    return sorted(found)


def _is_number(text: str) -> bool:
    """Whether a text is a number, with a point or a comma."""
    return bool(np.isfinite(_as_number(text))) or other_notation([text]) is not None


def _as_number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return np.nan


def refuse_unseen(name: str, texts: AnyArray, levels: Sequence[str]) -> None:
    """Refuse levels that the fit did not have.

    Raises
    ------
    DataError
        With the row and the level of the first one.
    """
    known = set(levels)
    for row, own in enumerate(texts.tolist()):
        if own not in known:
            near = nearest(own, levels)
            hint = f" Did you mean {near!r}?" if near else ""
            raise DataError(
                f"'{name}' has {own!r} in row {row}, which was not in the fit; its levels are {_listed(levels)}.{hint}"
            )


def refuse_written_otherwise(name: str, texts: AnyArray, is_new: AnyArray, groups: Sequence[str]) -> None:
    """Refuse new groups that are the number of a group of the fit, such as 7 of 007: they may be the same ones.

    Raises
    ------
    DataError
        With the row of the first one, and both ways of writing it.
    """
    new = [row for row in np.flatnonzero(is_new).tolist() if texts[row] is not None]
    if not new:
        return
    numbers = {_as_number(own): own for own in groups}
    for row in new:
        number = _as_number(texts[row])
        if np.isfinite(number) and number in numbers:
            raise DataError(
                f"'{name}' has {texts[row]!r} in row {row}, and the fit had {numbers[number]!r}, the same number in "
                f"other digits: write groups as in the fit, or rename the new ones. Zeros in front are lost where "
                f"codes are read as numbers; pandas keeps them by read_csv(..., dtype={{'{name}': str}})"
            )


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:_SHOWN]))
    return shown if len(names) <= _SHOWN else f"{shown} and {len(names) - _SHOWN} more"


def _refuse_extreme(name: str, values: Array) -> None:
    """Refuse numbers whose squares are beyond double precision.

    Raises
    ------
    DataError
        If the largest one is so large, or so small.
    """
    largest = float(np.max(np.abs(values), initial=0.0))
    if largest > _LARGEST or 0.0 < largest < 1.0 / _LARGEST:
        do = "divide" if largest > 1.0 else "multiply"
        raise DataError(
            f"'{name}' has values of up to {largest:.3g}, whose squares are beyond double precision; {do} the "
            f"column by a number"
        )


def mean_and_sd(values: Array, weights: Array | None) -> tuple[Array, Array]:
    """Return the mean and standard deviation of columns over the rows, of which a weight of 2 is the row twice."""
    # from the first row: the standard deviation of a constant is then exactly 0
    first = values[0]
    share = np.full(len(values), 1.0 / len(values)) if weights is None else weights / weights.sum()
    mean = share @ (values - first)
    return first + mean, np.sqrt(share @ (values - first - mean) ** 2)
