"""The fits of many groups: a sequence whose members are made when they are asked for."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..._errors import CaviarWarning, ParameterError
from ..._tables import MOST_LINES, html_of
from ..._typing import AnyArray, Array
from ...engine.ascent.status import Status
from ...engine.groups.fit import Ended
from ...posterior.pandas_tables import data_frame
from .kinds import End, ManyStatements
from .tables import Tables


class ManyFits(Sequence[Any]):
    """The fits of many groups in order, as :func:`caviar.fit_many` returns them.

    ``fits[0]`` is the fit of the first group, a :class:`Posterior` or a fitted estimator; ``fits["Oslo"]`` and
    ``fits.of(key)`` return a fit by name. Each is built when first accessed, and then kept.

    Attributes
    ----------
    keys
        Names of the groups: the keys of a mapping, the values of the column ``by``, or numbers from 0.
    n_rows
        Number of rows of each group, shape (G,).
    elbo
        Objective of each group in nats, shape (G,), as ``posterior.elbo`` of a single fit.
    n_iter
        Number of iterations of each group, shape (G,).
    status
        Why each fit stopped, a tuple of :class:`Status`.
    is_batched
        Which groups were fitted in a batch, shape (G,); the others were fitted one by one.
    errors
        Name of each group that was skipped -> its error; none is among the fits.
    """

    def __init__(
        self, data: Tables, statements: ManyStatements, batches: Sequence[Ended], alone: Mapping[int, Any]
    ) -> None:
        self.errors = {data.keys[at]: fit for at, fit in sorted(alone.items()) if isinstance(fit, Exception)}
        is_fitted = np.array([key not in self.errors for key in data.keys])
        places = np.cumsum(is_fitted) - 1
        data = data.of(np.flatnonzero(is_fitted))
        alone = {int(places[number]): fit for number, fit in alone.items() if is_fitted[number]}
        batches = [replace(batch, groups=places[batch.groups]) for batch in batches]
        self.keys, self.n_rows = data.keys, data.counts
        self._data, self._statements, self._batches = data, statements, tuple(batches)
        self._made: dict[int, Any] = dict(alone)
        self._number = {key: number for number, key in enumerate(self.keys)}
        n_groups = len(self.keys)
        self.elbo, self.n_iter = np.empty(n_groups), np.empty(n_groups, dtype=np.intp)
        self.is_batched = np.zeros(n_groups, dtype=bool)
        self._of_batch = np.zeros((n_groups, 2), dtype=np.intp)
        status: list[Status] = [Status.CONVERGED] * n_groups
        for number, batch in enumerate(self._batches):
            own = batch.groups
            self.elbo[own], self.n_iter[own] = batch.ends.elbo[batch.places], batch.ends.n_iter[batch.places]
            self.is_batched[own] = True
            self._of_batch[own, 0], self._of_batch[own, 1] = number, np.arange(len(own))
            for group, place in zip(own, batch.places, strict=True):
                status[group] = batch.ends.status[place]
        for number, fit in alone.items():
            posterior = statements.posterior_of(fit)
            self.elbo[number], self.n_iter[number] = posterior.elbo, posterior.n_iter
            status[number] = posterior.status
        self.status = tuple(status)

    def __len__(self) -> int:
        return len(self.keys)

    def __getitem__(self, index: Any) -> Any:
        """Return the fit in a place, those of a slice, or that of a name that is not a number.

        Warns
        -----
        CaviarWarning
            If another group has this number as its name.
        """
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        if isinstance(index, int | np.integer):
            if not -len(self) <= index < len(self):
                raise IndexError(f"there are {len(self)} groups, and none in place {index}")
            if self._number.get(index, index) != index:
                message = (
                    f"fits[{index}] is the group in place {index}, whose name is {self.keys[index]!r}; the group of "
                    f"the name {index} is fits.of({index})"
                )
                warnings.warn(message, CaviarWarning, stacklevel=2)
            return self._fit(int(index) % len(self))
        return self.of(index)

    def of(self, key: Any) -> Any:
        """Return the fit of a group by its name.

        Raises
        ------
        ParameterError
            If no group has this name.
        """
        if key in self.errors:
            raise ParameterError(f"{self.errors[key]} (the group was skipped)")
        if key not in self._number:
            some = ", ".join(map(repr, self.keys[:3]))
            raise ParameterError(
                f"no group is named {key!r}; the names are {some}{', ...' * (len(self) > 3)}"
            )
        return self._fit(self._number[key])

    def __iter__(self) -> Iterator[Any]:
        return (self._fit(number) for number in range(len(self)))

    def _fit(self, number: int) -> Any:
        if number not in self._made:
            batch_number, place = self._of_batch[number]
            batch = self._batches[batch_number]
            factors = {name: factor[place] for name, factor in batch.factors.items()}
            trace = batch.ends.trace(int(batch.places[place]))
            end = End(factors, self.status[number], int(self.n_iter[number]), float(self.elbo[number]), trace)
            self._made[number] = self._statements.at(self._data.tables[number], end)
        return self._made[number]

    @property
    def converged(self) -> AnyArray:
        """Whether the fit of each group converged, shape (G,)."""
        return np.array([own is Status.CONVERGED for own in self.status])

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with a row for each group.

        Its columns are the number of rows, the ELBO, the number of iterations, whether the fit converged, and the
        expectation of each entry of each global variable, such as ``weights[0]`` and ``mean[1,0]``. Components are in
        the order of each fit.
        """
        columns = {
            "rows": self.n_rows,
            "elbo": self.elbo,
            "n_iter": self.n_iter,
            "converged": self.converged,
            **self._expectations(),
        }
        return data_frame(columns, list(self.keys))

    def _expectations(self) -> dict[str, Array]:
        found: dict[str, Array] = {}
        for batch in self._batches:
            for name, factor in batch.factors.items():
                _put(found, name, _mean_of(factor), batch.groups, len(self))
        for number in np.flatnonzero(~self.is_batched):
            posterior = self._statements.posterior_of(self._made[int(number)])
            for name in posterior:
                _put(found, name, _mean_of(posterior[name])[None], np.array([number]), len(self))
        return found

    def summary(self) -> str:
        """Return a few lines about all fits: groups, rows, how many converged, and the ELBO in nats per row."""
        per_row = self.elbo / np.maximum(self.n_rows, 1)
        low, middle, high = np.quantile(per_row, [0.05, 0.5, 0.95])
        n_alone = int((~self.is_batched).sum())
        lines = [
            f"{len(self)} groups of {self.n_rows.min()} to {self.n_rows.max()} rows",
            f"{int(self.converged.sum())} converged, after {int(np.median(self.n_iter))} iterations (median)",
            f"ELBO in nats a row: {middle:.4g} (median), {low:.4g} to {high:.4g} (90% of groups)",
        ]
        lines += [f"{n_alone} fitted by themselves"] if n_alone else []
        lines += [f"{len(self.errors)} skipped, whose errors are in .errors"] if self.errors else []
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Return the lines about all fits, and the first groups, for a notebook."""
        cells = [("group", "rows", "ELBO", "iterations", "status")]
        cells += [
            (str(key), f"{rows:,}", f"{elbo:.4f}", str(n_iter), status.value)
            for key, rows, elbo, n_iter, status in zip(
                self.keys[:MOST_LINES], self.n_rows, self.elbo, self.n_iter, self.status, strict=False
            )
        ]
        left = len(self) - MOST_LINES
        more = [f"and {left:,} more groups; to_frame() has all of them"] if left > 0 else []
        return html_of("; ".join(self.summary().splitlines()), cells, more)

    def __repr__(self) -> str:
        return f"ManyFits({len(self)} groups, {int(self.converged.sum())} converged)"


def _mean_of(factor: Any) -> Array:
    """Return the expectation of a factor: of a pair of mean and precision that of the mean."""
    mean = factor.mean
    return np.asarray(mean[0] if isinstance(mean, tuple) else mean)


def _put(found: dict[str, Array], name: str, values: Array, groups: AnyArray, n_groups: int) -> None:
    """Write numbers of some groups, (g, ...), into columns of all."""
    for place in np.ndindex(values.shape[1:]):
        column = f"{name}[{','.join(map(str, place))}]" if place else name
        found.setdefault(column, np.full(n_groups, np.nan))[groups] = values[(slice(None), *place)]
