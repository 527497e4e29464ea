"""Terms that are no matrix product: with several known values, or several local variables of a row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ...._typing import Array
from ...design.contraction import Derivative
from ...design.keys import FactorKey, StatisticKey
from ...design.look_ups import look_up_of
from ...local.local_factor import LocalFactor
from ...local.parts import LocalTerm
from ...local.statistics import Arrays, Coefficients, Sums
from .row_term import BlockWork, RowTerm

__all__ = ["ContractedTerm"]


class _Message(NamedTuple):
    """What the term says to a local statistic, which depends on the other ones."""

    key: StatisticKey
    derivative: Derivative
    others: tuple[tuple[LocalFactor, StatisticKey], ...]


class ContractedTerm(RowTerm):
    """One term of the rows, contracted by itself: its coefficient times local statistics times known values.

    Parameters
    ----------
    local
        The term.
    factor_of
        Local statistic -> whose it is.
    """

    def __init__(self, local: LocalTerm, factor_of: Mapping[StatisticKey, LocalFactor]) -> None:
        self._local = local
        self.key = local.part.key
        self._operands = tuple((factor_of[own], own) for own in self.key.local)
        self._look_up = None if local.look_up is None else look_up_of(local.look_up)
        self._sum = local.contraction.derivative(0)
        self._messages: dict[FactorKey, list[_Message]] = {}
        for position, own in enumerate(local.contraction.keys):
            if isinstance(own, StatisticKey):
                others = tuple((factor, key) for factor, key in self._operands if key != own)
                message = _Message(own, local.contraction.derivative(position), others)
                self._messages.setdefault(factor_of[own].key, []).append(message)
        self._views = dict(zip(self.key.local, (factor for factor, _ in self._operands), strict=True))

    @property
    def targets(self) -> tuple[FactorKey, ...]:
        return tuple(self._messages) or ("",)

    @property
    def couples(self) -> bool:
        """Whether local factors meet in it, so that each depends on the others."""
        return len(self._operands) > 1

    def forward(self, target: FactorKey, work: BlockWork, coefficients: Coefficients, natural: Array) -> None:
        """Add what the term says, once the others that it has are inferred."""
        coefficient = coefficients.parts.get(self.key)
        if coefficient is None:
            return
        if not self._messages:
            natural[0] += self._of_each_row(coefficient, work)
            return
        arrays: Arrays = {}
        for message in self._messages[target]:
            if any(factor.key not in work.state for factor, _ in message.others):
                continue
            if not arrays:
                arrays = {**work.known(self._local.features), self.key: self._chosen(coefficient, work)}
            for factor, key in message.others:
                arrays[key] = factor.view(work.state[factor.key], key)
            self._views[message.key].view(natural, message.key)[...] += message.derivative(arrays)

    def _chosen(self, coefficient: Array, work: BlockWork) -> Array:
        """Return the coefficient, by row where its last axis is looked up."""
        if self._look_up is None:
            return coefficient
        full = np.broadcast_to(coefficient, self._local.part.shape)
        flat = full.reshape(-1, full.shape[-1])
        chosen = np.zeros((len(flat), work.rows.n_rows))
        self._look_up.add_product(flat, work.rows.columns, chosen, work.scratch)
        return chosen.reshape(*full.shape[:-1], work.rows.n_rows)

    def _of_each_row(self, coefficient: Array, work: BlockWork) -> Array:
        """Return the term of each row, which no local variable enters, shape (B,)."""
        contraction, known = self._local.contraction, work.known(self._local.features)
        if self._look_up is not None:
            chosen = self._chosen(coefficient, work)
            each = np.broadcast_to(self._sum(known), chosen.shape) * chosen
        else:
            first = contraction.keys[1]
            each = contraction.derivative(1)({**known, self.key: coefficient}) * known[first]
        return each.reshape(-1, work.rows.n_rows).sum(axis=0)

    def backward(self, work: BlockWork, sums: Sums) -> None:
        arrays = dict(work.known(self._local.features))
        for factor, key in self._operands:
            arrays[key] = factor.view(work.counted[factor.key], key)
        if work.rows.weights is not None:
            first = self._local.contraction.keys[1]
            arrays[first] = arrays[first] * work.rows.weights
        value, shape = self._sum(arrays), self._local.part.shape
        if self._look_up is None:
            sums.parts[self.key] = np.array(np.broadcast_to(value, shape), dtype=np.float64)
            return
        each = np.broadcast_to(value, (*shape[:-1], work.rows.n_rows)).reshape(-1, work.rows.n_rows)
        total = np.empty((len(each), shape[-1]))
        self._look_up.sums(each, work.rows.columns, total)
        sums.parts[self.key] = total.reshape(shape)
