r"""Vectors missing in part: one joint factor q(z) q(x_missing | z) a row, optimised exactly.

In category k the expected log density of a row is :math:`c_k + h_k' x - \tfrac12 x' P_k x`, its coefficients rows of W.
Given what was observed (o), the missing entries (m) are Normal,

.. math::
    q(x_m \mid k) = N(b - R x_o,\; V), \qquad
    V = (P_{mm})^{-1}, \quad b = V h_m, \quad R = V P_{mo},

and integrating them out adds :math:`\tfrac12 (h_m - P_{mo} x_o)' V (h_m - P_{mo} x_o) + \tfrac12 \log |2\pi V|` to what
the observed entries give. V, b and R depend on a row through the pattern of its missing entries alone. So rows are
grouped by pattern: the entries that are missing are zeros in the features, the two matrix products of a block are what
they are for complete rows, and each pattern adds the gain above and what q says of the missing entries, the latter from
sums over its rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import replace
from typing import cast

import numpy as np

from ...._errors import ImproperError
from ...._typing import AnyArray, Array
from ....language import Variable
from ...binding.missing.entries import Gaps
from ...design.conditionals import Conditionals, given_observed, patterns
from ...design.features import FeatureTable
from ...design.keys import ColumnKey, FactorKey
from ...local.local_factor import LocalFactor
from ...local.statistics import Coefficients, Rows, Sums
from .centred import Centres
from .row_term import BlockWork, RowTerm

_LARGEST_BLOCK = 4_000_000
"""Numbers that the conditionals of a block may take where no two of its rows have the same pattern."""
_FEWEST_ROWS = 64


class MissingPatterns(RowTerm):
    """A leaf of vectors missing in part, among the features of a local factor.

    Parameters
    ----------
    leaf
        The variable.
    gaps
        Which of its entries were observed.
    factor
        The local factor that its features belong to.
    rows
        Rows of the factor that hold the probabilities of its categories.
    table
        The features of the factor.
    centres
        Those of the factor's categories.
    """

    is_linear = False

    def __init__(
        self,
        leaf: Variable,
        gaps: Gaps,
        factor: LocalFactor,
        rows: slice,
        table: FeatureTable,
        centres: Sequence[Centres] = (),
    ) -> None:
        self.leaf = leaf
        self.gaps = gaps
        self.factor = factor
        self._rows = rows
        self._n_categories = rows.stop - rows.start
        own = [f for f in table.features if f.source is not None and f.source.node is leaf]
        self._value, self._square = (next(f for f in own if f.statistic == s) for s in ("x", "xx"))
        self._table = table
        self._columns = self._columns_in(table)
        self._centres = next((own for own in centres if own.is_used and own.holds(leaf)), None)

    def __getstate__(self) -> dict[str, object]:
        """Return its state without what was observed of each row, which the rows have themselves."""
        return {**vars(self), "gaps": replace(self.gaps, seen=self.gaps.seen[:0])}

    def of_categories(self, categories: AnyArray) -> MissingPatterns:
        other = copy(self)
        other._rows, other._n_categories = slice(0, len(categories)), len(categories)
        centres = None if self._centres is None else self._centres.of_categories(categories)
        other._centres = centres if centres is not None and centres.is_used else None
        return other

    def _columns_in(self, table: FeatureTable) -> slice:
        """Return the columns of a table that hold x and the products of its entries: they are neighbours."""
        first, second = table.columns[self._value.key], table.columns[self._square.key]
        assert first.stop == second.start
        return slice(first.start, second.stop)

    @property
    def block_rows(self) -> int:
        """Rows of a block whose conditionals fit in memory for any patterns."""
        size = self._value.n_rows
        return max(_FEWEST_ROWS, _LARGEST_BLOCK // (self._n_categories * size * size))

    @property
    def targets(self) -> tuple[FactorKey, ...]:
        return (self.factor.key,)

    def forward(self, target: FactorKey, work: BlockWork, coefficients: Coefficients, natural: Array) -> None:
        """Add to the natural parameters (E, B) of a block the gain of integrating out the missing entries."""
        own, conditionals = natural[self._rows], self._conditionals(work)
        if conditionals:
            for categories, values in self._views(work):
                for several in conditionals:
                    several.of(categories).add_gain(values[: self._value.n_rows], own[categories])

    def forward_change(
        self, target: FactorKey, work: BlockWork, change: Coefficients, natural: Array
    ) -> None:
        """Add by how much the gain of integrating out the missing entries changes."""
        own, conditionals = natural[self._rows], self._conditionals(work)
        if conditionals:
            linear, precision = self._linear_and_precision(change)
            for categories, values in self._views(work):
                observed = values[: self._value.n_rows]
                for several in conditionals:
                    given = several.of(categories)
                    given.add_change_of_gain(
                        observed, linear[categories], precision[categories], own[categories]
                    )

    def backward_change(self, work: BlockWork, change: Coefficients, sums: Sums) -> None:
        """Add by how much the moments of the missing entries change, the probabilities as they are."""
        key, conditionals = self.factor.key, self._conditionals(work)
        own, total = work.weighted(key)[self._rows], sums.fused[key][self._rows, self._columns]
        size, (i, j) = self._value.n_rows, self._square.pairs
        if conditionals:
            linear, precision = self._linear_and_precision(change)
            for categories, values in self._views(work):
                for several in conditionals:
                    given = several.of(categories)
                    first, second = given.change_of_moments(
                        own[categories], values, self._square, linear[categories], precision[categories]
                    )
                    total[categories, :size] += first
                    total[categories, size:] += second[:, i, j]

    def backward(self, work: BlockWork, sums: Sums) -> None:
        """Add to the sums over a block the moments of the missing entries, and their entropy."""
        key, entropy = self.factor.key, 0.0
        own, total = work.weighted(key)[self._rows], sums.fused[key][self._rows, self._columns]
        size, (i, j) = self._value.n_rows, self._square.pairs
        conditionals = self._conditionals(work)
        if conditionals:
            for categories, values in self._views(work):
                for several in conditionals:
                    found = several.of(categories).moments(own[categories], values, self._square)
                    total[categories, :size] += found[0]
                    total[categories, size:] += found[1][:, i, j]
                    entropy += found[2]
        # a log-partition has it already
        if key not in sums.log_partition:
            sums.entropy[key] = sums.entropy.get(key, 0.0) + entropy

    def _views(self, work: BlockWork) -> Iterator[tuple[slice, Array]]:
        """Yield x and its products for categories that have one reference point, valid until the next."""
        common = work.features(self._table)[self._columns]
        if self._centres is None:
            yield slice(0, self._n_categories), common
            return
        for category in range(self._n_categories):
            found = self._centres.own_features(category, work.rows.columns, work.rows.n_rows, work.scratch)
            values = common if found is None else found[1][self._columns_in(found[0])]
            yield slice(category, category + 1), values

    def _conditionals(self, work: BlockWork) -> list[Conditionals]:
        """Return the conditionals of a block's patterns; those of the thread's last block are kept."""
        return cast(
            list[Conditionals],
            work.scratch.kept(
                (self.leaf, "conditionals"),
                (work.coefficients, work.rows),
                lambda: list(self._made(work.coefficients, work.rows)),
            ),
        )

    def _made(self, coefficients: Coefficients, rows: Rows) -> Iterator[Conditionals]:
        linear, precision = self._linear_and_precision(coefficients)
        for bounds, missing in patterns(rows.columns[ColumnKey(self.leaf.name).entries]):
            try:
                yield given_observed(linear, precision, bounds, missing)
            except np.linalg.LinAlgError as error:
                raise ImproperError(
                    f"the missing entries of '{self.leaf.name}' have no distribution: the expected precision of a "
                    f"component is not positive definite, to double precision"
                ) from error

    def _linear_and_precision(self, coefficients: Coefficients) -> tuple[Array, Array]:
        """Return h (K, D) and P (K, D, D) of each category."""
        matrix = coefficients.matrices[self.factor.key][self._rows, self._columns]
        size = self._value.n_rows
        twice = self._square.unpack(matrix[:, size:])
        # a packed coefficient is that of both x_i x_j and x_j x_i
        return matrix[:, :size], -(twice + np.einsum("kii->ki", twice)[..., None] * np.eye(size))

    def at_columns(self, coefficients: Coefficients) -> Coefficients:
        """Return coefficients by which missing entries have the mean and variance of their columns."""
        matrix = coefficients.matrices[self.factor.key].copy()
        source, size = self._value.source, self._value.n_rows
        assert source is not None
        mean = self.gaps.mean if source.reference is None else self.gaps.mean - source.reference
        own = matrix[self._rows, self._columns]
        own[...] = 0.0
        own[:, :size] = mean / self.gaps.variance
        # the diagonal comes first
        own[:, size : 2 * size] = -0.5 / self.gaps.variance
        return replace(coefficients, matrices={**coefficients.matrices, self.factor.key: matrix})
