"""Many fits of a mixture of Gaussians: its statement for each group, and fitted mixtures from their factors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.base import clone

from ..._errors import DataError, ParameterError
from ..._typing import AnyArray
from ...data.columns.lost_digits import refuse_lost_digits
from ...data.columns.table_numbers import Table as NamedTable
from ...data.frames import Frame
from ...fitting.many.kinds import Differences, End, Lengths, ManyStatements, Stated, Table
from ...language import Constant
from ...posterior.posterior import Posterior
from ..arguments.checks import as_generator
from ..tables.given_tables import names_of, require_table


@dataclass(frozen=True, eq=False)
class ManyMixtures(ManyStatements):
    """Fits of an estimator: fitted copies of it.

    Attributes
    ----------
    mixture
        The estimator, which stays as it is.
    """

    mixture: Any

    def __post_init__(self) -> None:
        own = self.mixture
        own._check_settings()
        if isinstance(own.n_components, str):
            raise ParameterError(
                "fit_many takes a number of components; got n_components='auto'. Fit groups one by one"
            )
        if own.semi_supervised or own.fixed is not None:
            raise ParameterError("fit_many takes no labels and no fixed parameters; fit groups one by one")
        if own.swaps is True:
            raise ParameterError(
                f"fit_many does not swap components; got swaps={own.swaps!r}. Fit groups one by one"
            )

    @property
    def lengths(self) -> Lengths:
        own = self.mixture
        return Lengths(as_generator(own.random_state), own.max_iter, own.tol, own.n_init)

    def tables_of(self, tables: Sequence[Any]) -> Sequence[Table]:
        found, columns = [], []
        for number, table in enumerate(tables):
            values = table if type(table) is np.ndarray and table.dtype == np.float64 else _numbers(table)
            if values.ndim != 2:
                raise DataError(f"table {number} has shape {values.shape}; each is rows by columns")
            found.append(values)
            columns.append(names_of(table))
        return _Groups(found, columns)

    def parts_of(self, frame: Frame, without: str, order: AnyArray, bounds: AnyArray) -> Sequence[Table]:
        block = frame.block([name for name in frame.columns if name != without])
        values = _numbers(block)[order]
        parts = [values[first:last] for first, last in pairwise(bounds)]
        return _Groups(parts, [names_of(block)] * len(parts))

    def _copy(self, seed: Any = None) -> Any:
        own = clone(self.mixture)
        return own.set_params(
            n_jobs=1, executor=None, verbose=False, **({} if seed is None else {"random_state": seed})
        )

    def stated(self, table: Table) -> Stated:
        own = self._copy()
        statement = own._state(own._rows_to_fit(table["x"], None, None, reset=True), np.random.default_rng(0))
        return Stated(statement.model, tuple(statement.point))

    def differences(self, data: Table, counts: AnyArray) -> Differences:
        """Return the constants of each group: by its own statement, or those of the defaults in one computation."""
        found = self.mixture._differences_of_many(data["x"], counts)
        if found is not None:
            return found
        first, constants, is_odd = None, {}, np.zeros(len(counts), dtype=bool)
        for number, n_rows in enumerate(counts):
            try:
                model = self.stated({"x": data["x"][number, :n_rows]}).model
            except (DataError, ParameterError, ValueError):
                is_odd[number] = True
                continue
            first = first or number
            for node in model.nodes:
                if isinstance(node, Constant):
                    shape = (len(counts), *node.value.shape)
                    constants.setdefault(node.name, np.zeros(shape))[number] = node.value
            if any(variable.floor is not None for variable in model.variables.values()):
                is_odd[number] = True
        return Differences(constants, {}, is_odd)

    def alone(self, table: Table, seed: np.random.Generator) -> Any:
        return self._copy(int(seed.integers(2**31))).fit(_with_names(table))

    def at(self, table: Table, end: End) -> Any:
        own = self._copy()
        rows = own._rows_to_fit(_with_names(table), None, None, reset=True)
        statement = own._state(rows, np.random.default_rng(0))
        data = own._data(rows)
        posterior = end.posterior(statement.model, data, statement.point, uncertainty="auto", executor=1)
        own._settle(posterior, data, None)
        own._keep(posterior)
        own._generator = as_generator(self.mixture.random_state).spawn(1)[0]
        return own

    def posterior_of(self, fit: Any) -> Posterior:
        return fit.posterior_


class _Group(dict[str, AnyArray]):
    """The rows of a group as a table.

    Attributes
    ----------
    columns
        Names of the columns; None without names.
    """

    def __init__(self, rows: AnyArray, columns: tuple[str, ...] | None) -> None:
        super().__init__(x=rows)
        self.columns = columns


class _Groups(Sequence[Table]):
    """Arrays as tables, each made at first use: thousands of objects would start the garbage collector."""

    def __init__(self, arrays: list[AnyArray], columns: list[tuple[str, ...] | None]) -> None:
        self._arrays, self._columns = arrays, columns

    def __len__(self) -> int:
        return len(self._arrays)

    def __getitem__(self, index: Any) -> Any:
        return _Group(self._arrays[index], self._columns[index])

    def __iter__(self) -> Iterator[Table]:
        return (_Group(*own) for own in zip(self._arrays, self._columns, strict=True))


def _with_names(table: Table) -> Any:
    """Return the rows of a group as an estimator takes them: with the names of their columns, if they have some."""
    columns = table.columns if isinstance(table, _Group) else None
    return table["x"] if columns is None else NamedTable(np.asarray(table["x"]), columns)


def _numbers(table: Any) -> AnyArray:
    """Return a table as numbers.

    Raises
    ------
    DataError
        If it has something else, dates, or whole numbers that would be rounded.
    """
    if not isinstance(table, list | tuple):
        require_table(table)
    refuse_lost_digits(table, "a table")
    values = np.asarray(table)
    if values.dtype.kind not in "biuf":
        try:
            values = values.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise DataError(f"a table has entries that are not numbers: {error}") from error
    return np.asarray(values, dtype=np.float64)
