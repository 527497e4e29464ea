"""Terms that are not matrix products: with several known values, or several local variables of a row."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ...._typing import Array
from ....numerics.spread import spread
from ...design.contraction import Derivative
from ...design.keys import FactorKey, StatisticKey
from ...design.look_ups import look_up_of
from ...local.local_factor import LocalFactor, LocalTerm
from ...local.statistics import Arrays, Coefficients, Sums
from .row_term import BlockWork, RowTerm


class _Message(NamedTuple):
    """The message of the term to a local statistic, which depends on the other ones."""

    key: StatisticKey
    derivative: Derivative
    others: tuple[tuple[LocalFactor, StatisticKey], ...]


class ContractedTerm(RowTerm):
    """Terms of the rows that are contracted by themselves: a coefficient times local statistics times known values.

    Where there are several, which differ in what is looked up, the coefficients of a row are added up before they meet
    the rest.

    Parameters
    ----------
    local
        The terms.
    factor_of
        Local statistic -> whose it is.
    """

    def __init__(self, local: LocalTerm, factor_of: Mapping[StatisticKey, LocalFactor]) -> None:
        self._local = local
        self._look_ups = tuple(map(look_up_of, local.look_ups))
        first = local.parts[0].key
        self.keys = {part.key for part in local.parts}
        self._operands = tuple((factor_of[own], own) for own in first.local)
        self._sum = local.contraction.derivative(0)
        self._messages: dict[FactorKey, list[_Message]] = {}
        for position, own in enumerate(local.contraction.keys):
            if isinstance(own, StatisticKey):
                others = tuple((factor, key) for factor, key in self._operands if key != own)
                message = _Message(own, local.contraction.derivative(position), others)
                self._messages.setdefault(factor_of[own].key, []).append(message)
        self._views = {own: factor for factor, own in self._operands}

    @classmethod
    def of_term(
        cls, local: LocalTerm, factor_of: Mapping[StatisticKey, LocalFactor]
    ) -> ContractedTerm | None:
        """Return the row term of some terms; None from a kind that does not apply to them."""
        return cls(local, factor_of)

    @property
    def targets(self) -> tuple[FactorKey, ...]:
        return tuple(self._messages) or ("",)

    @property
    def couples(self) -> bool:
        return len(self._operands) > 1

    def forward(self, target: FactorKey, work: BlockWork, coefficients: Coefficients, natural: Array) -> None:
        """Add the message of the term, once its other statistics are inferred."""
        if coefficients.parts.keys().isdisjoint(self.keys):
            return
        if not self._messages:
            natural[0] += self._of_each_row(coefficients, work)
            return
        arrays: Arrays = {}
        for message in self._messages[target]:
            if any(factor.key not in work.state for factor, _ in message.others):
                continue
            if not arrays:
                arrays = self._known(coefficients, work)
            self._views[message.key].view(natural, message.key)[...] += self._said(message, arrays, work)

    def _said(self, message: _Message, known: Arrays, work: BlockWork) -> Array:
        """Return the value of a message, given its other statistics.

        The density of a repetition without an observation below it integrates to one, and says nothing to its parents,
        whether these have one or not. To itself they say what its distribution given them is.
        """
        columns, own = work.rows.columns, self._views[message.key]
        whole = {key: factor.view(work.state[factor.key], key) for factor, key in message.others}
        if not any(factor.has_unseen for factor, _ in message.others):
            return message.derivative({**known, **whole})
        counted = {
            key: factor.view(factor.counted(work.state[factor.key], columns), key)
            for factor, key in message.others
        }
        said = message.derivative({**known, **counted})
        seen = own.seen(columns) if self._local.owner in own.variables else None
        if seen is None or seen.all():
            return said
        is_seen = seen.reshape(*seen.shape[:-1], *(1,) * (said.ndim - seen.ndim), -1)
        return np.where(is_seen, said, message.derivative({**known, **whole}))

    def _known(self, coefficients: Coefficients, work: BlockWork) -> Arrays:
        """Return the known values and the coefficient, by row where it is looked up."""
        parts, n_rows = self._local.parts, work.rows.n_rows
        if not self._look_ups:
            coefficient = coefficients.parts[parts[0].key]
        else:
            chosen = work.scratch.array((self, "chosen"), (math.prod(parts[0].shape[:-1]), n_rows))
            chosen.fill(0.0)
            for part, look_up in zip(parts, self._look_ups, strict=True):
                if part.key in coefficients.parts:
                    matrix = spread(coefficients.parts[part.key], part.shape).reshape(-1, part.shape[-1])
                    look_up.add_product(matrix, work.rows.columns, chosen, work.scratch)
            coefficient = chosen.reshape(*parts[0].shape[:-1], n_rows)
        return {**work.known(self._local.features), parts[0].key: coefficient}

    def _of_each_row(self, coefficients: Coefficients, work: BlockWork) -> Array:
        """Return the term of each row, which no local variable enters, shape (B,)."""
        known = self._known(coefficients, work)
        if self._look_ups:
            chosen = known[self._local.parts[0].key]
            each = self._sum(known) * chosen
        else:
            contraction = self._local.contraction
            each = contraction.derivative(1)(known) * known[contraction.keys[1]]
        return each.reshape(-1, work.rows.n_rows).sum(axis=0)

    def backward(self, work: BlockWork, sums: Sums) -> None:
        arrays = dict(work.known(self._local.features))
        for factor, key in self._operands:
            arrays[key] = factor.view(work.counted[factor.key], key)
        if work.rows.weights is not None:
            first = self._local.contraction.keys[1]
            arrays[first] = arrays[first] * work.rows.weights
        value, parts, n_rows = self._sum(arrays), self._local.parts, work.rows.n_rows
        if not self._look_ups:
            sums.parts[parts[0].key] = np.array(np.broadcast_to(value, parts[0].shape), dtype=np.float64)
        for part, look_up in zip(parts, self._look_ups, strict=False):
            each = spread(value, (*part.shape[:-1], n_rows)).reshape(-1, n_rows)
            total = np.empty((len(each), part.shape[-1]))
            look_up.sums(each, work.rows.columns, total)
            sums.parts[part.key] = total.reshape(part.shape)
