"""The known columns of a regression: their values, what is typical of each, and rows in which some of them change."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._errors import ParameterError
from ..._typing import AnyArray, Array
from ...estimators.mixed_models.columns import Rows
from ...estimators.mixed_models.mixed_model import MixedModel
from ...language import Data
from ...posterior.posterior import Posterior
from .observed import observed_name
from .posterior_figures import placed, posterior_of

_GRID = 61


@dataclass(frozen=True, eq=False)
class Column:
    """A known column.

    Attributes
    ----------
    values
        Of the rows of the data: numbers, or the names of levels.
    levels
        Of a column of categories, in their order; None for numbers.
    """

    values: AnyArray
    levels: tuple[str, ...] | None = None

    @property
    def typical(self) -> Any:
        """The mean of numbers, or the most common level."""
        if self.levels is None:
            return float(np.mean(self.values))
        counts = [int((self.values == level).sum()) for level in self.levels]
        return self.levels[int(np.argmax(counts))]

    def grid(self) -> AnyArray:
        """Return numbers from the smallest to the largest value, or all levels."""
        if self.levels is not None:
            return np.array(self.levels, dtype=object)
        return np.linspace(float(np.min(self.values)), float(np.max(self.values)), _GRID)


class Covariates(ABC):
    """The known columns of a fit and its data.

    Attributes
    ----------
    posterior
        Of the fit.
    response
        Name of the observed variable.
    observed
        Its values; of a binomial the share of successes.
    is_share
        Whether they are shares, whose interval in a new row would depend on its number of trials.
    data
        Name of each array of the model -> its values in the data.
    columns
        Name -> column.
    groups
        Names of the columns that only say to which group a row belongs.
    """

    posterior: Posterior
    response: str
    observed: Array
    is_share: bool = False
    data: Mapping[str, Any]
    columns: Mapping[str, Column]
    groups: frozenset[str] = frozenset()

    @abstractmethod
    def known(self, columns: Mapping[str, AnyArray], *, is_group_known: bool) -> dict[str, Any]:
        """Return the known arrays of the model for rows with these columns."""

    def of_average_group(self, values: dict[str, Any]) -> dict[str, Any]:
        """Return a draw of the globals in which a new group has no effect: it is an average one."""
        return values

    def rows(self, changed: Mapping[str, AnyArray]) -> dict[str, Any]:
        """Return the known arrays for rows with some columns, and what is typical in the others."""
        n_rows = max(len(values) for values in changed.values())
        columns = {
            name: np.full(n_rows, own.typical, dtype=object if own.levels is not None else np.float64)
            for name, own in self.columns.items()
        }
        return self.known({**columns, **changed}, is_group_known=not self.groups.isdisjoint(changed))

    def joined(self, parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return the known arrays of several sets of rows, one after the other."""
        of_rows = {
            node.name
            for node in self.posterior.model.nodes
            if isinstance(node, Data) and node.plates[:1] == (self.posterior.data_plate,)
        }
        return {
            name: np.concatenate([part[name] for part in parts]) if name in of_rows else value
            for name, value in parts[0].items()
        }

    def require(self, name: str | None, argument: str) -> str:
        """Return the name of a column after checking it.

        Raises
        ------
        ParameterError
            If no column has this name, or no name is given and there are several.
        """
        chosen = [own for own in self.columns if own not in self.groups]
        if name is None and len(chosen) == 1:
            return chosen[0]
        if name is None or name not in self.columns:
            known = ", ".join(map(repr, self.columns)) or "none"
            told = "choose one" if name is None else f"there is no {name!r}"
            raise ParameterError(f"the known columns are {known}; {told}, as {argument}=...")
        return name


class OfTable(Covariates):
    """Those of a mixed model and a table."""

    def __init__(self, model: MixedModel, table: Any) -> None:
        posterior_of(model)
        formula, encoding, rows = model._formula, model._encoding, Rows.of(table)
        self._model, self._trials = model, formula.trials
        self._effects = tuple(block.label for block in model._blocks)
        self.posterior, self.response = model.posterior_, formula.response
        self.data = placed(model, table)
        trials = self.data.get("trials")
        observed = np.asarray(self.data[self.response], dtype=np.float64)
        self.is_share = trials is not None
        self.observed = observed if trials is None else observed / np.maximum(trials, 1.0)
        common = set(encoding.levels)
        grouping = {name for term in formula.groups for name in term.by}
        columns = {}
        for name in sorted(encoding.read, key=rows.names.index):
            if name in common or name in grouping:
                texts, _ = rows.labels(name)
                levels = encoding.levels.get(name) or sorted(set(texts.tolist()), key=texts.tolist().index)
                columns[name] = Column(texts, tuple(levels))
            else:
                columns[name] = Column(rows.numbers(name))
        self.columns = columns
        self.groups = frozenset(grouping - common)

    def known(self, columns: Mapping[str, AnyArray], *, is_group_known: bool) -> dict[str, Any]:
        own = dict(columns)
        own |= {name: np.ones(len(next(iter(own.values())))) for name in self._trials if not name.isdigit()}
        found = self._model._known(Rows(own), groups="known" if is_group_known else "new")
        if self._trials:
            found["trials"] = np.ones(len(found["trials"]))
        return self.posterior._evaluator.named(found).values

    def of_average_group(self, values: dict[str, Any]) -> dict[str, Any]:
        found = dict(values)
        for name in self._effects:
            effects = np.array(found[name])
            # the last place is that of new groups
            effects[-1] = 0.0
            found[name] = effects
        return found


class OfStatement(Covariates):
    """Those of a stated model: its known arrays along the rows, a column for each entry of a vector."""

    def __init__(self, fitted: Any, data: Any, variable: str | None) -> None:
        self.posterior = posterior = posterior_of(fitted)
        self.response, self.data = observed_name(posterior, variable), placed(fitted, data)
        self.observed = _numbers_of(self.response, self.data[self.response])
        plate = posterior.data_plate
        nodes = [node for node in posterior.model.nodes if isinstance(node, Data)]
        self._of_rows = [node.name for node in nodes if node.plates == (plate,)]
        self._others = {node.name: self.data[node.name] for node in nodes if node.plates != (plate,)}
        labels = posterior.model.axes.labels
        self._vectors: dict[str, list[str]] = {}
        columns: dict[str, Column] = {}
        for name in self._of_rows:
            values = np.asarray(self.data[name])
            if values.ndim == 2:
                self._vectors[name] = self._names_of(name, values.shape[1])
                columns |= {
                    own: Column(values[:, place].astype(np.float64))
                    for place, own in enumerate(self._vectors[name])
                }
            elif name in labels:
                columns[name] = Column(*self._labelled(name, values))
            else:
                columns[name] = Column(values.astype(np.float64))
        self.columns = columns
        constant = {name for name, own in columns.items() if own.levels is None and np.ptp(own.values) == 0}
        self.groups = frozenset(name for name in columns if name in labels) | frozenset(constant)

    def _names_of(self, name: str, width: int) -> list[str]:
        names = self.posterior.names.entries(name) or self.posterior.names.columns.get(name)
        if names is not None and len(names) == width:
            return list(names)
        return [f"{name} {place}" for place in range(width)]

    def _labelled(self, name: str, values: AnyArray) -> tuple[AnyArray, tuple[str, ...]]:
        places = values.astype(np.intp)
        names = self.posterior.names.entries(name) or tuple(map(str, range(int(places.max()) + 1)))
        return np.array(names, dtype=object)[places], tuple(names)

    def known(self, columns: Mapping[str, AnyArray], *, is_group_known: bool) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name in self._of_rows:
            if name in self._vectors:
                found[name] = np.column_stack([columns[own] for own in self._vectors[name]]).astype(
                    np.float64
                )
            elif (levels := self.columns[name].levels) is not None:
                found[name] = np.array([levels.index(level) for level in columns[name]])
            else:
                found[name] = np.asarray(columns[name], dtype=np.float64)
        return {**self._others, **found}


def _numbers_of(name: str, values: Any) -> Array:
    """Return the numbers of the rows; refuse vectors, documents and counts of their words."""
    try:
        found = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        found = None
    if found is None or found.ndim != 1:
        raise ParameterError(f"'{name}' must be one number in each row to be drawn against a column")
    return found


def covariates_of(fitted: Any, data: Any, variable: str | None) -> Covariates:
    """Return the known columns of a fit.

    Raises
    ------
    ParameterError
        If there are no known columns.
    """
    found: Covariates
    if isinstance(fitted, MixedModel):
        found = OfTable(fitted, data)
    else:
        found = OfStatement(fitted, data, variable)
    if not any(name not in found.groups for name in found.columns):
        raise ParameterError(
            f"the model of '{found.response}' has no known columns (cv.Data along its rows) to draw it against"
        )
    return found


def _as_level(value: Any) -> str:
    """Return a level as text; a whole number has no point, however it is stored."""
    return (
        str(int(value)) if isinstance(value, float | np.floating) and value == np.floor(value) else str(value)
    )


def levels_of(column: Column, only: Sequence[Any] | None, most: int, argument: str) -> list[Any]:
    """Return the values of a column for which lines are drawn: its levels, or three quantiles of numbers.

    Raises
    ------
    ParameterError
        If there are too many levels, or one that the column lacks.
    """
    if only is not None:
        if column.levels is None:
            return [float(own) for own in only]
        asked = [_as_level(own) for own in only]
        unknown = [own for own in asked if own not in column.levels]
        if unknown:
            listed = ", ".join(map(repr, column.levels[:6])) + (", ..." if len(column.levels) > 6 else "")
            raise ParameterError(
                f"only= lists {unknown[0]!r}, which is not a level of the column; they are {listed}"
            )
        return asked
    if column.levels is None:
        distinct = np.unique(column.values)
        return (
            distinct.tolist() if len(distinct) <= 3 else np.quantile(column.values, [0.1, 0.5, 0.9]).tolist()
        )
    if len(column.levels) > most:
        raise ParameterError(
            f"{argument}= has {len(column.levels)} levels, too many for one plot (at most {most}); choose some by only="
        )
    return list(column.levels)
