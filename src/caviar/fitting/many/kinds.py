"""What is fitted many times: the protocol of a model and of an estimator, and the model's."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from ..._errors import DataError, ParameterError
from ..._typing import AnyArray, Array
from ...data.frames import Frame, frame_of
from ...engine.ascent.status import Status
from ...names import Placed, meet
from ...posterior.posterior import Posterior
from ..arguments import check_settings
from ..model import Model

Table = Mapping[str, AnyArray]
"""Data of a group: name of an observed variable -> its values, the rows first."""


@dataclass(frozen=True, eq=False)
class Stated:
    """How a group is stated.

    Attributes
    ----------
    model
        Of one group.
    point
        Globals whose factors are point masses.
    """

    model: Model
    point: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Differences:
    """What differs between the statements of groups besides their data.

    Attributes
    ----------
    constants, floors
        Name -> value in each group, (G, ...); see :class:`~caviar.engine.groups.problem.Groups`.
    is_odd
        Groups that must be fitted alone, (G,).
    """

    constants: Mapping[str, Array]
    floors: Mapping[str, Array]
    is_odd: AnyArray


@dataclass(frozen=True, eq=False)
class End:
    """Where the fit of a group has ended in its batch.

    Attributes
    ----------
    factors
        Global factors by name, measured from the origin of the data.
    status, n_iter, elbo, trace
        As those of a :class:`Posterior`.
    """

    factors: Mapping[str, Any]
    status: Status
    n_iter: int
    elbo: float
    trace: Array

    def posterior(self, model: Model, data: Any, point: Sequence[str], **arguments: Any) -> Posterior:
        """Return the posterior of a group with these factors, its rows at their optimum."""
        found = model.fit(data, point=point, init=self.factors, max_iter=0, **arguments)
        found.status, found.n_iter, found.elbo_trace = self.status, self.n_iter, self.trace
        found.elbo, found.restart_elbos, found.restart_traces = (
            self.elbo,
            np.array([self.elbo]),
            (self.trace,),
        )
        return found


@dataclass(frozen=True)
class Lengths:
    """When fits stop, and the number of starts, as for a single fit."""

    seed: Any
    max_iter: int
    tol: float
    n_restarts: int


class FittedMany(ABC):
    """An estimator that :func:`fit_many` can fit."""

    @abstractmethod
    def _of_many(self, arguments: Mapping[str, Any]) -> ManyStatements:
        """Return what that asks of it; ``arguments`` are those that were given beside the estimator."""


class ManyStatements(ABC):
    """What :func:`fit_many` asks of what it fits."""

    @property
    @abstractmethod
    def lengths(self) -> Lengths:
        """How long fits go on."""

    @abstractmethod
    def tables_of(self, tables: Sequence[Any]) -> Sequence[Table]:
        """Return the data of groups as arrays, the rows first."""

    @abstractmethod
    def parts_of(self, frame: Frame, without: str, order: AnyArray, bounds: AnyArray) -> Sequence[Table]:
        """Return the data of groups from one table, without the column of the groups.

        Parameters
        ----------
        frame, without
            The table, and the name of that column.
        order, bounds
            Rows of the table in the order of the groups, (N,), and where there each group begins, and the last ends.
        """

    @abstractmethod
    def stated(self, table: Table) -> Stated:
        """Return the statement of one group."""

    @abstractmethod
    def differences(self, data: Table, counts: AnyArray) -> Differences:
        """Return what differs between the statements of groups, from their data, (G, N, ...)."""

    @abstractmethod
    def alone(self, table: Table, seed: np.random.Generator) -> Any:
        """Return the fit of one group by itself."""

    @abstractmethod
    def at(self, table: Table, end: End) -> Any:
        """Return what the fit of a group gives back, from where it has ended."""

    @abstractmethod
    def posterior_of(self, fit: Any) -> Posterior:
        """Return the posterior of a fit."""


@dataclass(frozen=True, eq=False)
class ManyModels(ManyStatements):
    """Fits of a model: posteriors.

    Attributes
    ----------
    model
        The model.
    arguments
        Those of :meth:`Model.fit`.
    """

    model: Model
    arguments: Mapping[str, Any]

    def __post_init__(self) -> None:
        allowed = {"seed", "max_iter", "tol", "n_restarts", "point"}
        unknown = sorted(self.arguments.keys() - allowed)
        if unknown:
            raise ParameterError(
                f"fit_many of a model takes {', '.join(sorted(allowed))}; got {unknown[0]!r}. Fit with model.fit for "
                f"more"
            )

    @property
    def lengths(self) -> Lengths:
        own = self.arguments
        most = 500 if own.get("max_iter") is None else own["max_iter"]
        check_settings(most, own.get("tol", 1e-8), own.get("n_restarts", 1))
        return Lengths(own.get("seed"), most, own.get("tol", 1e-8), own.get("n_restarts", 1))

    def tables_of(self, tables: Sequence[Any]) -> list[Table]:
        return [self._table(own) for own in tables]

    def _table(self, table: Any) -> Placed:
        if not isinstance(table, Mapping) and frame_of(table) is None:
            leaves = self.model.leaves
            if len(leaves) > 1 or not isinstance(table, np.ndarray | list | tuple):
                names = ", ".join(f"'{leaf.name}': ..." for leaf in leaves)
                raise DataError(
                    f"the data of a group are a table or a mapping, as {{{names}}}; got {table!r:.80}"
                )
            table = {leaf.name: table for leaf in leaves}
        met = meet(self.model.axes, self.model.structure.leaves, table)
        return Placed({name: np.asarray(own) for name, own in met.values.items()}, met.names)

    def parts_of(self, frame: Frame, without: str, order: AnyArray, bounds: AnyArray) -> list[Table]:
        whole = self._table(frame.table)
        rows = {name: own[order] for name, own in whole.items()}
        parts = [{name: own[first:last] for name, own in rows.items()} for first, last in pairwise(bounds)]
        return [Placed(own, whole.names) for own in parts]

    def stated(self, table: Table) -> Stated:
        return Stated(self.model, tuple(self.arguments.get("point", ())))

    def differences(self, data: Table, counts: AnyArray) -> Differences:
        return Differences({}, {}, np.zeros(len(counts), dtype=bool))

    def alone(self, table: Table, seed: np.random.Generator) -> Posterior:
        own = {**self.arguments, "seed": seed}
        return self.model.fit(table, executor=1, **own)

    def at(self, table: Table, end: End) -> Posterior:
        return end.posterior(self.model, table, self.arguments.get("point", ()), executor=1)

    def posterior_of(self, fit: Any) -> Posterior:
        return fit
