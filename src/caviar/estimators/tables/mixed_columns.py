"""Tables whose columns are of several kinds, as numbers: of a column of categories the place of each value."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from ..._errors import CaviarWarning, DataError, ParameterError
from ..._typing import AnyArray, Array
from ...data.columns.labels import is_absent
from ...data.columns.lost_digits import refuse_lost_digits
from ...data.columns.missing_codes import missing_code, remark_of_code
from ...data.columns.row_numbers import numbers_rows, remark
from ...data.non_numeric import MOST_CATEGORIES, too_many_values
from ...data.rows import on_host
from ...files.naming import listed
from ...models.mixed_mixture import own_name
from .given_tables import is_coded
from .lazy_rows import whole

NUMBER, CATEGORY, COUNT = "number", "category", "count"
Value = str | float | bool

PARAMETERS = {NUMBER: "theta", CATEGORY: "probabilities", COUNT: "rate"}
"""Kind of a column -> how the name of the parameters of its components ends."""


@dataclass(frozen=True, eq=False)
class RawTable:
    """A table as it came.

    Attributes
    ----------
    values
        Shape (N, D): numbers, texts or objects; or rows that are read in blocks.
    categories
        Number of a column whose values are places -> the category at each place.
    """

    values: Any
    categories: Mapping[int, Sequence[Value]]

    def entries(self, column: int) -> list[Any]:
        """Return the entries of a column as Python's own numbers and texts."""
        return whole(self.values[:, column], "a column of categories").tolist()


def count_of_rows(X: Any) -> int:
    """Return the number of rows of a table, whatever its kind."""
    return len(X.values) if is_coded(X) else X.num_rows if hasattr(X, "num_rows") else len(X)


def some_rows(X: Any, chosen: AnyArray) -> Any:
    """Return the rows of a table of any kind where ``chosen``, (N,), is true; a table of the same kind."""
    if is_coded(X):
        return replace(X, values=X.values[chosen])
    places = np.flatnonzero(chosen)
    return X.take(places) if hasattr(X, "num_rows") else _safe_indexing(X, places)


@dataclass(frozen=True)
class Columns:
    """The columns of a table: names, kinds and categories.

    Attributes
    ----------
    names
        Of the columns.
    kinds
        Of each column ``"number"``, ``"category"`` or ``"count"``.
    categories
        Name of each column of categories -> its values; their places are what the model sees.
    """

    names: tuple[str, ...]
    kinds: tuple[str, ...]
    categories: Mapping[str, tuple[Value, ...]]

    @classmethod
    def of(cls, table: RawTable, names: tuple[str, ...], given: Any, typed: Collection[str]) -> Columns:
        """Return what the columns of a table are: what the user or else their type says, or what their entries are.

        Raises
        ------
        ParameterError
            If the user speaks of a column that is not there, or of another kind.
        DataError
            If a column has no value, or more values than categories are good for, unless the user says its kind.
        """
        asked = kinds_by_name(given, names)
        told = {**dict.fromkeys(typed, CATEGORY), **asked}
        kinds = tuple(
            told.get(name) or (CATEGORY if _is_of_words(table, j) else NUMBER) for j, name in enumerate(names)
        )
        categories = {
            name: _values_of(table, j, name)
            for j, (name, kind) in enumerate(zip(names, kinds, strict=True))
            if kind == CATEGORY
        }
        for name, values in categories.items():
            if name not in asked and len(values) > MOST_CATEGORIES:
                raise DataError(f"{too_many_values(name)}, or say kinds={{{name!r}: 'category'}}")
        return cls(names, kinds, categories)

    @property
    def label(self) -> str:
        """Name of the label of the rows in the model."""
        return own_name("z", self.names)

    @property
    def weights(self) -> str:
        """Name of the weights in the model."""
        return own_name("weights", self.names)

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters of the components in the model, one for each column."""
        return tuple(
            own_name(f"{name}_{PARAMETERS[kind]}", self.names)
            for name, kind in zip(self.names, self.kinds, strict=True)
        )

    def of_kind(self, *kinds: str) -> list[int]:
        """Return the numbers of the columns of some kinds."""
        return [j for j, kind in enumerate(self.kinds) if kind in kinds]

    def numbers(self, table: RawTable) -> Any:
        """Return a table as numbers (N, D), NaN where an entry is missing; rows that are read in blocks as they are.

        Warns
        -----
        CaviarWarning
            If a column of categories has values that it did not have in the fit: they are taken for missing.
        """
        if not self.categories and not _is_of_objects(table.values) and not table.categories:
            is_array = isinstance(table.values, np.ndarray)
            return np.asarray(table.values, dtype=np.float64) if is_array else table.values
        found = np.empty(table.values.shape)
        for j, name in enumerate(self.names):
            if self.kinds[j] == CATEGORY:
                found[:, j] = _places(table, j, name, self.categories[name])
            elif j in table.categories:
                raise DataError(f"column {name!r} contains words, but was fitted as a column of numbers")
            else:
                found[:, j] = _as_numbers(table, j, name)
        return found

    def refuse_lost_digits(self, X: Any) -> None:
        """Refuse columns of numbers of a table, as the user gave it, that lose their digits in double precision.

        Raises
        ------
        DataError
            If there is such a column.
        """
        refuse_lost_digits(on_host(X), "X", self.of_kind(NUMBER))

    def tell_of_odd_numbers(self, rows: Any) -> None:
        """Warn of columns of numbers, in memory, that seem to number the rows, or to have a number for missing values.

        Warns
        -----
        CaviarWarning
            If there is such a column.
        """
        for j in self.of_kind(NUMBER) if isinstance(rows, np.ndarray) else ():
            if numbers_rows(rows[:, j]):
                warnings.warn(remark(self.names[j]), CaviarWarning, stacklevel=6)
            elif (code := missing_code(rows[:, j])) is not None:
                warnings.warn(remark_of_code(self.names[j], *code, "NaN"), CaviarWarning, stacklevel=6)

    def words(self, rows: Array) -> AnyArray:
        """Return rows of numbers with the values of categories in the place of their places."""
        if not self.categories:
            return rows
        found = rows.astype(object)
        for j in self.of_kind(CATEGORY):
            values = np.array(self.categories[self.names[j]], dtype=object)
            found[:, j] = values[rows[:, j].astype(np.intp)]
        return found


def kinds_by_name(given: Any, names: tuple[str, ...]) -> dict[str, str]:
    """Return the kinds that the user gave, by the names of the columns."""
    if given is None:
        return {}
    if isinstance(given, str) or not isinstance(given, Mapping | Sequence):
        raise ParameterError(f"kinds must be a kind for each column, or map columns to kinds; got {given!r}")
    if not isinstance(given, Mapping):
        if len(given) != len(names):
            raise ParameterError(f"kinds must have one for each of {len(names)} columns; got {len(given)}")
        given = dict(enumerate(given))
    found = {}
    for column, kind in given.items():
        is_place = isinstance(column, int | np.integer) and -len(names) <= column < len(names)
        if not is_place and column not in names:
            raise ParameterError(f"kinds has the column {column!r}; X has {listed(names)}")
        if kind not in (NUMBER, CATEGORY, COUNT):
            raise ParameterError(
                f"kinds must be 'number', 'category' or 'count'; column {column!r} has {kind!r}"
            )
        found[names[column] if is_place else column] = kind
    return found


def _is_of_objects(values: Any) -> bool:
    return values.dtype.kind not in "iuf"


def _is_of_words(table: RawTable, column: int) -> bool:
    """Whether a column holds other values than numbers: texts, or True and False."""
    if column in table.categories:
        return True
    if not _is_of_objects(table.values):
        return False
    return not all(is_absent(entry) or _is_number(entry) for entry in table.entries(column))


def _is_number(entry: Any) -> bool:
    return isinstance(entry, Real) and not isinstance(entry, bool | np.bool_)


def _values_of(table: RawTable, column: int, name: str) -> tuple[Value, ...]:
    """Return the values of a column of categories in their order."""
    if column in table.categories:
        return tuple(table.categories[column])
    found = {_checked(entry, name) for entry in set(_hashable(table, column, name)) if not is_absent(entry)}
    if not found:
        raise DataError(f"column {name!r} has no value; drop it")
    return tuple(sorted(found, key=lambda value: (isinstance(value, str), value)))


def _hashable(table: RawTable, column: int, name: str) -> list[Any]:
    return [entry if entry.__hash__ else _checked(entry, name) for entry in table.entries(column)]


def _checked(entry: Any, name: str) -> Value:
    """Return a value of a column of categories: a text, True or False, or a number, which is whole if it can be.

    Raises
    ------
    TypeError
        If it is something else.
    """
    if isinstance(entry, str | bool | np.bool_):
        return str(entry) if isinstance(entry, str) else bool(entry)
    if isinstance(entry, Real):
        number = float(entry)
        return int(number) if number.is_integer() else number
    raise TypeError(f"an argument must be a string or a number; column {name!r} has {entry!r:.60}")


def _places(table: RawTable, column: int, name: str, values: Sequence[Value]) -> Array:
    """Return the place of each entry of a column among the values of the fit, NaN where it is none of them."""
    places = {value: float(place) for place, value in enumerate(values)}
    if column in table.categories:
        own = np.array([*(places.get(value, np.nan) for value in table.categories[column]), np.nan])
        codes = np.asarray(table.values[:, column], dtype=np.float64)
        return own[np.where(np.isnan(codes), len(own) - 1, codes).astype(np.intp)]
    entries = table.entries(column)
    unknown = [entry for entry in entries if not is_absent(entry) and entry not in places]
    if unknown:
        told = listed(sorted({str(_checked(entry, name)) for entry in unknown})[:5])
        rows = f"{len(unknown):,} row{'s' * (len(unknown) != 1)}"
        warnings.warn(
            f"column {name} has values that the model was not fitted to, which count as missing (in {rows}): {told}; "
            f"the fit had {listed([str(value) for value in values])}",
            CaviarWarning,
            stacklevel=2,
        )
    return np.array([np.nan if is_absent(entry) else places.get(entry, np.nan) for entry in entries])


def _as_numbers(table: RawTable, column: int, name: str) -> Array:
    """Return a column as numbers.

    Raises
    ------
    TypeError, DataError
        If an entry is not a number, or infinite.
    """
    entries = table.entries(column)
    for row, entry in enumerate(entries):
        if not is_absent(entry) and not isinstance(entry, Real):
            raise TypeError(
                f"an argument must be a string or a number, in column {name!r} a number; row {row} has {entry!r:.60}"
            )
    found = np.array([np.nan if is_absent(entry) else float(entry) for entry in entries])
    if np.isinf(found).any():
        raise DataError(
            f"column {name!r} has an infinity in row {int(np.argmax(np.isinf(found)))}; drop such rows"
        )
    return found


def priors_by_name(argument: str, given: Any, columns: Columns, kind: str, meaning: str) -> dict[str, Any]:
    """Return the priors that the user gave, by the names of columns of a kind.

    Raises
    ------
    ParameterError
        If one is no such row of numbers, or of a column that is not there, or of another kind.
    """
    names = [columns.names[j] for j in columns.of_kind(kind)]
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        given = dict.fromkeys(names, given)
    size, found = len(meaning.split(", ")), {}
    for name, prior in given.items():
        if name not in names:
            raise ParameterError(f"{argument} has the column {name!r}, which is none of the {kind}s: {names}")
        try:
            found[name] = tuple(float(number) for number in prior)
        except TypeError:
            found[name] = ()
        if len(found[name]) != size:
            raise ParameterError(
                f"{argument} must be {size} numbers, {meaning}; column {name!r} has {prior!r}"
            )
    return found
