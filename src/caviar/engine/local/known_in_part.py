"""The factor of one variable of the rows that is known in some rows: a covariate with missing values.

Known values are points inside the factor, as known repetitions of a global are: their statistics are those of the
value, they have no entropy, and their prior density counts in full.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..._typing import AnyArray, Array
from ...language import Axis, Variable
from ..binding.clamped.factor import ClampedFactor, PointMass
from ..binding.evidence import Evidence
from ..design.features import feature_major, row_major
from ..design.inferred import Inferred
from ..design.keys import ColumnKey, StatisticKey
from .family import FamilyFactor
from .local_factor import LocalFactor


class KnownInPartFactor(LocalFactor):
    """The factor of one variable of the rows, of any family, that is known in some rows.

    After the natural parameters come rows that say which values are known, and what these are: so whoever has natural
    parameters has these, too. They are written by :meth:`restrict`; their expected statistics are 0, and no term meets
    them.
    """

    def __init__(
        self, variable: Variable, evidence: Evidence, data_axis: Axis, size: Callable[[Axis], int]
    ) -> None:
        self._whole = FamilyFactor(variable, evidence, data_axis, size)
        super().__init__([variable], [evidence], self._whole.axes, size)
        plates = tuple(size(Axis(plate)) for plate in variable.plates if Axis(plate) != data_axis)
        self._plates, self._event = plates, (variable.dimension or 1,) * variable.value_rank
        n_values = int(np.prod(plates, dtype=int))
        self._n_own = self.n_rows
        self._flags = slice(self._n_own, self._n_own + n_values)
        self.n_rows = self._flags.stop + n_values * int(np.prod(self._event, dtype=int))

    def restrict(
        self, natural: Array, columns: Mapping[ColumnKey, AnyArray], zeros: Array | None = None
    ) -> None:
        """Write which values are known into natural parameters (E, B), and what these are.

        Parameters
        ----------
        columns
            Of the rows, among them the values, NaN where they are not known.
        zeros
            Unused: its values have no probabilities.
        """
        (variable,) = self.variables
        values = np.asarray(columns[ColumnKey(variable.name)], dtype=np.float64)
        missing = np.isnan(values)
        events = tuple(range(missing.ndim - len(self._event), missing.ndim))
        natural[self._flags] = feature_major(np.asarray(~missing.any(axis=events))).reshape(-1, len(values))
        natural[self._flags.stop :] = feature_major(np.where(missing, 0.0, values)).reshape(-1, len(values))

    def with_known(self, expected: Array, columns: Mapping[ColumnKey, AnyArray]) -> Array:
        """Return expected statistics (E, B) with those of the known values in their places."""
        natural = np.zeros_like(expected)
        self.restrict(natural, columns)
        self._write_known(expected, *self._known(natural))
        return expected

    @property
    def values(self) -> Array | None:
        """The values 0 and 1 of a number that is 0 or 1; None for other variables."""
        own = self._whole.values
        return None if own is None else np.pad(own, ((0, self.n_rows - self._n_own), (0, 0)))

    def scores(self, natural: Array, values: Array) -> Array:
        """Return what 0 and 1 add to the log density of each row, (2, B): minus infinity where the other is known."""
        is_known, known = self._known(natural)
        is_other = is_known & (values[0][:, None] != known)
        return np.where(is_other, -np.inf, super().scores(natural, values))

    def at_known(self, natural: Array, values: AnyArray) -> AnyArray:
        """Return values of a start (B, plates..., event...), those not known at the mean of the known ones.

        So they begin where the known ones are, however far from 0 and from their prior that is, each column of the
        plates by itself. Numbers 0 or 1 stay, which no mean of them is, and so does a column without any that is known.
        """
        (variable,) = self.variables
        if variable.is_zero_or_one:
            return values
        (is_known, known), found = self._known(natural), np.array(values)
        for place in np.ndindex(*self._plates):
            column = (slice(None), *place)
            here = is_known[column]
            if here.any():
                found[column][~here] = known[column][here].mean(axis=0)
        return found

    def _known(self, natural: Array) -> tuple[AnyArray, Array]:
        """Return which values are known, (B, plates...), and the values, (B, plates..., event...).

        In the place of one that is not known there is any that is.
        """
        is_known = row_major(natural[self._flags].reshape(*self._plates, -1)) > 0
        values = row_major(natural[self._flags.stop :].reshape(*self._plates, *self._event, -1))
        if not is_known.any():
            return is_known, values
        wide = is_known.reshape(*is_known.shape, *(1,) * len(self._event))
        return is_known, np.where(wide, values, values[is_known][0])

    def _statistics(self, values: Array) -> list[tuple[StatisticKey, Array]]:
        """Return the statistics of values (B, plates..., event...), (shape..., B) each."""
        (variable,) = self.variables
        found = zip(variable.family.statistics, variable.statistics_of(values), strict=True)
        return [(StatisticKey(variable.name, name), feature_major(own)) for name, own in found]

    def _write_known(self, expected: Array, is_known: AnyArray, values: Array) -> None:
        """Write the statistics of known values into (E, B)."""
        expected[self._n_own :] = 0.0
        if is_known.any():
            where = feature_major(is_known)
            for key, statistic in self._statistics(values):
                np.copyto(self.view(expected, key), statistic, where=_over(where, statistic))

    def infer(self, natural: Array) -> Inferred:
        """Overwrite natural parameters (E, B) by expected statistics: of known values those of the value."""
        is_known, values = self._known(natural)
        before, own = natural[: self._n_own].copy(), natural[: self._n_own]
        inferred = self._whole.infer(own)
        assert inferred.entropy is not None
        self._write_known(natural, is_known, values)
        if not is_known.any():
            return inferred
        where, base = feature_major(is_known), self._log_base(values, before)
        said = sum(
            _summed(self.view(before, key) * statistic, where.ndim)
            for key, statistic in self._statistics(values)
        )
        return Inferred(
            np.where(where, said + base, inferred.log_partition), np.where(where, base, inferred.entropy)
        )

    def _log_base(self, values: Array, natural: Array) -> Array:
        """Return the log density of the family's own measure at values, (plates..., B).

        Parameters
        ----------
        values
            Shape (B, plates..., event...).
        natural
            Any natural parameters (E, B): the measure may depend on their size.
        """
        (variable,) = self.variables
        total = np.zeros((*self._plates, len(values)))
        coefficients = self._whole.distributions(natural[:, :1])[variable].base_measure
        for coefficient, (_, statistic) in zip(coefficients, self._statistics(values), strict=True):
            if coefficient:
                total += coefficient * _summed(statistic, total.ndim)
        return total

    def response(self, natural: Array, expected: Array) -> Callable[[Array], Array]:
        """Return how expected statistics change with natural parameters; those of known values do not."""
        is_unknown = ~feature_major(self._known(natural)[0])
        of_whole = self._whole.response(natural[: self._n_own], expected[: self._n_own])

        def respond(change: Array) -> Array:
            found = np.zeros_like(change)
            found[: self._n_own] = of_whole(change[: self._n_own])
            for key in self.rows:
                view = self.view(found, key)
                view *= _over(is_unknown, view)
            return found

        return respond

    def distributions(self, natural: Array) -> dict[Variable, Any]:
        """Return the family member of each row, and a point where its value is known, batch (B, plates...)."""
        (variable,) = self.variables
        is_known, values = self._known(natural)
        whole = self._whole.distributions(natural[: self._n_own])[variable]
        return {
            variable: ClampedFactor(
                whole[~is_known], PointMass.of(variable, np.array(values[is_known])), is_known
            )
        }


def _over(where: AnyArray, statistic: Array) -> AnyArray:
    """Return a mask (plates..., B) that goes with a statistic (plates..., event..., B)."""
    return where.reshape(*where.shape[:-1], *(1,) * (statistic.ndim - where.ndim), -1)


def _summed(statistic: Array, ndim: int) -> Array:
    """Return the sum of a statistic (plates..., event..., B) over its event: (plates..., B), of this many axes."""
    return statistic.sum(axis=tuple(range(ndim - 1, statistic.ndim - 1)))
