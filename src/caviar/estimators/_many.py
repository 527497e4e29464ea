"""Many fits of a mixture of Gaussians: its statement for each group, and fitted mixtures from their factors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from .._errors import DataError, ParameterError
from .._typing import AnyArray
from ..data.frames import Frame
from ..fitting.many.kinds import Differences, End, Lengths, ManyStatements, Stated, Table
from ..language import Constant
from ..posterior.posterior import Posterior
from ._arguments import as_generator


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
        found = []
        for number, table in enumerate(tables):
            values = table if type(table) is np.ndarray and table.dtype == np.float64 else _numbers(table)
            if values.ndim != 2:
                raise DataError(f"table {number} has shape {values.shape}; each is rows by columns")
            found.append(values)
        return _Named(found)

    def rows_of(self, frame: Frame, without: str) -> Table:
        return {"x": _numbers(frame.block([name for name in frame.columns if name != without]))}

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
        return self._copy(int(seed.integers(2**31))).fit(table["x"])

    def at(self, table: Table, end: End) -> Any:
        own = self._copy()
        rows = own._rows_to_fit(table["x"], None, None, reset=True)
        statement = own._state(rows, np.random.default_rng(0))
        data = own._data(rows)
        posterior = end.posterior(statement.model, data, statement.point, uncertainty="auto", executor=1)
        own._settle(posterior, data, None)
        own._keep(posterior)
        own._generator = as_generator(self.mixture.random_state).spawn(1)[0]
        return own

    def posterior_of(self, fit: Any) -> Posterior:
        return fit.posterior_


class _Named(Sequence[Table]):
    """Arrays as tables, each made at first use: thousands of objects would start the garbage collector."""

    def __init__(self, arrays: list[AnyArray]) -> None:
        self._arrays = arrays

    def __len__(self) -> int:
        return len(self._arrays)

    def __getitem__(self, index: Any) -> Any:
        return {"x": self._arrays[index]}

    def __iter__(self) -> Iterator[Table]:
        return ({"x": own} for own in self._arrays)


def _numbers(table: Any) -> AnyArray:
    values = np.asarray(table)
    if values.dtype.kind not in "biuf":
        try:
            values = values.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise DataError(f"a table has entries that are not numbers: {error}") from error
    return np.asarray(values, dtype=np.float64)
