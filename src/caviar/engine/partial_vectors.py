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
from dataclasses import replace
from typing import NoReturn, cast

import numpy as np

from .._errors import DataError, ImproperError
from .._typing import Array
from ..language import Variable
from .binding import Binding
from .centres import Centres
from .compile import Compiled
from .conditionals import Conditionals, given_observed, patterns
from .features import Feature, FeatureTable
from .gaps import Gaps, entries_name
from .kernels import Workspace
from .locals import Key, LocalFactor
from .sums import Coefficients, Rows

__all__ = ["PartialVectors", "partial_vectors_of"]

_LARGEST_BLOCK = 4_000_000
"""Numbers that the conditionals of a block may take where no two of its rows have the same pattern."""
_FEWEST_ROWS = 64


class PartialVectors:
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
    """

    def __init__(
        self, leaf: Variable, gaps: Gaps, factor: LocalFactor, rows: slice, table: FeatureTable
    ) -> None:
        self.leaf = leaf
        self.gaps = gaps
        self.factor = factor
        self._rows = rows
        self._n_categories = rows.stop - rows.start
        own = [f for f in table.features if f.source is not None and f.source.node is leaf]
        self._value, self._square = (next(f for f in own if f.statistic == s) for s in ("x", "xx"))
        self._columns = self._columns_in(table)

    def __getstate__(self) -> dict[str, object]:
        """Return its state without what was observed of each row, which stands in the rows themselves."""
        return {**vars(self), "gaps": replace(self.gaps, seen=self.gaps.seen[:0])}

    def _columns_in(self, table: FeatureTable) -> slice:
        """Return the columns of a table that hold x and the products of its entries: they are neighbours."""
        first, second = table.columns[self._value.key], table.columns[self._square.key]
        assert first.stop == second.start
        return slice(first.start, second.stop)

    @property
    def block_rows(self) -> int:
        """Rows of a block whose conditionals stay within memory, whatever their patterns."""
        size = self._value.n_rows
        return max(_FEWEST_ROWS, _LARGEST_BLOCK // (self._n_categories * size * size))

    def add_natural(
        self,
        coefficients: Coefficients,
        rows: Rows,
        features: Array,
        centres: Sequence[Centres],
        natural: Array,
        scratch: Workspace,
    ) -> None:
        """Add to the natural parameters (E, B) of a block the gain of integrating out the missing entries."""
        own = natural[self._rows]
        conditionals = self._conditionals(coefficients, rows, scratch)
        if conditionals:
            for categories, values in self._views(rows, features, centres, scratch):
                for several in conditionals:
                    several.of(categories).add_gain(values[: self._value.n_rows], own[categories])

    def add_sums(
        self,
        coefficients: Coefficients,
        rows: Rows,
        features: Array,
        centres: Sequence[Centres],
        expected: Array,
        total: Array,
        scratch: Workspace,
    ) -> float:
        """Add to sums over a block (E, F) the moments of the missing entries; return their entropy, summed."""
        own, entropy = expected[self._rows], 0.0
        sums = total[self._rows, self._columns]
        size, (i, j) = self._value.n_rows, self._square.pairs
        conditionals = self._conditionals(coefficients, rows, scratch)
        if conditionals:
            for categories, values in self._views(rows, features, centres, scratch):
                for several in conditionals:
                    found = several.of(categories).moments(own[categories], values, self._square)
                    sums[categories, :size] += found[0]
                    sums[categories, size:] += found[1][:, i, j]
                    entropy += found[2]
        return entropy

    def _views(
        self, rows: Rows, features: Array, centres: Sequence[Centres], scratch: Workspace
    ) -> Iterator[tuple[slice, Array]]:
        """Yield x and its products for categories that have one reference point, valid until the next."""
        common = features[self._columns]
        mine = next((own for own in centres if own.holds(self.leaf)), None)
        if mine is None:
            yield slice(0, self._n_categories), common
            return
        for category in range(self._n_categories):
            found = mine.own_features(category, rows.columns, rows.n_rows, scratch)
            values = common if found is None else found[1][self._columns_in(found[0])]
            yield slice(category, category + 1), values

    def _conditionals(self, coefficients: Coefficients, rows: Rows, scratch: Workspace) -> list[Conditionals]:
        """Return the conditionals of a block's patterns; those of the thread's last block are kept."""
        return cast(
            list[Conditionals],
            scratch.kept(
                (self.leaf, "conditionals"),
                (coefficients, rows),
                lambda: list(self._made(coefficients, rows)),
            ),
        )

    def _made(self, coefficients: Coefficients, rows: Rows) -> Iterator[Conditionals]:
        matrix = coefficients.matrices[self.factor][self._rows, self._columns]
        size = self._value.n_rows
        linear = matrix[:, :size]
        twice = self._square.unpack(matrix[:, size:])
        # a packed coefficient is that of both x_i x_j and x_j x_i
        precision = -(twice + np.einsum("kii->ki", twice)[..., None] * np.eye(size))
        for bounds, missing in patterns(rows.columns[entries_name(self.leaf.name)]):
            try:
                yield given_observed(linear, precision, bounds, missing)
            except np.linalg.LinAlgError as error:
                raise ImproperError(
                    f"the missing entries of '{self.leaf.name}' have no distribution: the expected precision of a "
                    f"component is not positive definite, to double precision"
                ) from error

    def at_columns(self, coefficients: Coefficients) -> Coefficients:
        """Return coefficients by which missing entries have the mean and variance of their columns."""
        matrix = coefficients.matrices[self.factor].copy()
        source, size = self._value.source, self._value.n_rows
        assert source is not None
        mean = self.gaps.mean if source.reference is None else self.gaps.mean - source.reference
        own = matrix[self._rows, self._columns]
        own[...] = 0.0
        own[:, :size] = mean / self.gaps.variance
        # the diagonal comes first
        own[:, size : 2 * size] = -0.5 / self.gaps.variance
        return replace(coefficients, matrices={**coefficients.matrices, self.factor: matrix})


def partial_vectors_of(compiled: Compiled, binding: Binding) -> dict[LocalFactor, list[PartialVectors]]:
    """Return the leaves of vectors missing in part, by the local factor whose features they are.

    Raises
    ------
    DataError
        If other hidden values of the row than one Categorical stand in the density of such a leaf.
    """
    found: dict[LocalFactor, list[PartialVectors]] = {}
    for leaf, gaps in binding.gaps.items():
        stats = {
            (part.factor, part.stat)
            for part in compiled.parts
            if part.feature is not None
            and part.feature.source is not None
            and part.feature.source.node is leaf
        }
        unfused = any(
            isinstance(factor.key, Feature)
            and factor.key.source is not None
            and factor.key.source.node is leaf
            for term in compiled.local_terms
            for factor in term.contraction.factors
        )
        factor, stat = next(iter(stats), (None, None))
        if len(stats) != 1 or unfused or factor is None or stat is None or not _is_choice(stat, leaf):
            _refuse(leaf, gaps)
        table = compiled.tables[factor]
        found.setdefault(factor, []).append(PartialVectors(leaf, gaps, factor, factor.rows[stat], table))
    return found


def _is_choice(stat: Key, leaf: Variable) -> bool:
    """Whether a statistic is the one-hot of a Categorical, or the 1 of a vector that nothing gates."""
    return stat[0] is leaf or hasattr(stat[0], "categories")


def _refuse(leaf: Variable, gaps: Gaps) -> NoReturn:
    row = int(np.argmax(gaps.seen.any(axis=1) & ~gaps.seen.all(axis=1)))
    raise DataError(
        f"'{leaf.name}', a {type(leaf).__name__}, has a missing value (NaN) in row {row}, where the rest of the vector "
        f"is observed. Its missing entries can be integrated out where its mean and precision depend on global "
        f"variables and at most one Categorical of the row; here something else of the row stands in its density. "
        f"State the columns as numbers, Normal(..., plates=(obs, column)), or drop or impute such rows"
    )
