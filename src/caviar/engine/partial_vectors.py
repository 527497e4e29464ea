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
from dataclasses import dataclass
from typing import NoReturn, cast

import numpy as np

from .._errors import DataError, ImproperError
from .._linalg import cholesky, inverse, inverse_from_factor
from .._typing import AnyArray, Array
from ..language import Variable
from .binding import Binding
from .centres import Centres
from .compile import Compiled
from .features import Feature, FeatureTable
from .gaps import Gaps, entries_name
from .locals import Key, LocalFactor
from .scratch import Scratch
from .sums import Coefficients, Rows

__all__ = ["PartialVectors", "partial_vectors_of"]

_LARGEST_BLOCK = 4_000_000
"""Numbers that the conditionals of a block may take where no two of its rows have the same pattern."""
_FEWEST_ROWS = 64


@dataclass(frozen=True)
class _Conditionals:
    """The missing entries given those observed: G patterns of M missing entries each, in K categories.

    Attributes
    ----------
    bounds
        Where the rows of each pattern begin in the block, and where the last end: shape (G + 1,).
    missing
        The missing entries of each pattern, shape (G, M).
    slope, offset
        The gain is half the square of ``offset + slope @ x_o``, plus ``constant``: (G, K, M, D) and (G, K, M).
    constant
        Half the logarithm of the determinant of 2 pi V, shape (G, K).
    regression, mean
        R and b, shapes (G, K, M, D) and (G, K, M).
    covariance
        V, shape (G, K, M, M).
    """

    bounds: AnyArray
    missing: AnyArray
    slope: Array
    offset: Array
    constant: Array
    regression: Array
    mean: Array
    covariance: Array

    @property
    def rows(self) -> slice:
        """Rows of the block that have one of the patterns."""
        return slice(int(self.bounds[0]), int(self.bounds[-1]))

    def of(self, categories: slice) -> _Conditionals:
        """Return those of some of the categories."""
        own = (self.slope, self.offset, self.constant, self.regression, self.mean, self.covariance)
        return _Conditionals(self.bounds, self.missing, *(array[:, categories] for array in own))

    def add_gain(self, values: Array, natural: Array) -> None:
        """Add to log densities (K, B) the gain of integrating out what is missing of ``values`` (D, B)."""
        n_patterns, n_categories, n_missing, _ = self.slope.shape
        lengths = np.diff(self.bounds)
        slope = self.slope.reshape(n_patterns, n_categories * n_missing, -1)
        offset = self.offset.reshape(n_patterns, -1)
        scaled = np.repeat(offset.T, lengths, axis=1)
        begin = self.bounds[0]
        for own, start, stop in zip(slope, self.bounds, self.bounds[1:], strict=False):
            scaled[:, start - begin : stop - begin] += own @ values[:, start:stop]
        np.square(scaled, out=scaled)
        gain = 0.5 * scaled.reshape(n_categories, n_missing, -1).sum(axis=1)
        natural[:, self.rows] += gain + np.repeat(self.constant.T, lengths, axis=1)

    def moments(self, expected: Array, features: Array, square: Feature) -> tuple[Array, Array, float]:
        """Return what the missing entries add to the sums over rows of x and xx', and their entropy.

        Parameters
        ----------
        expected
            Probabilities of the categories, times the weights of the rows, shape (K, B).
        features
            The entries observed and their products, zeros where one is missing, shape (F, B).
        square
            The feature xx', which unpacks the products.

        Returns
        -------
        tuple
            Sums by category, shapes (K, D) and (K, D, D), and the sum of the entropies.
        """
        n_patterns, n_categories, n_missing, size = self.regression.shape
        counts = np.add.reduceat(expected[:, self.rows], self.bounds[:-1] - self.bounds[0], axis=1).T
        raw = np.empty((n_patterns, n_categories, len(features)))
        for own, start, stop in zip(raw, self.bounds, self.bounds[1:], strict=False):
            np.matmul(expected[:, start:stop], features[:, start:stop].T, out=own)
        first = raw[..., :size]
        second = square.unpack(raw[..., size:].reshape(-1, len(features) - size)).reshape(
            *raw.shape[:2], size, size
        )
        # sums of x_m, of x_m x_o' and of x_m x_m' over the rows of each pattern
        sums = counts[..., None] * self.mean - (self.regression @ first[..., None])[..., 0]
        across = self.mean[..., :, None] * first[..., None, :] - self.regression @ second
        within = sums[..., :, None] * self.mean[..., None, :] - across @ np.swapaxes(self.regression, -1, -2)
        within += counts[..., None, None] * self.covariance
        # half of x_m x_m' here and its transpose there
        places = np.broadcast_to(self.missing[:, None, None, :], within.shape)
        np.put_along_axis(across, places, 0.5 * within, axis=-1)
        entropy = float(np.vdot(counts, self.constant + 0.5 * n_missing))
        return *self._placed(sums, across), entropy

    def _placed(self, sums: Array, across: Array) -> tuple[Array, Array]:
        """Return (G, K, M) and (G, K, M, D), summed over the patterns: (K, D), and with its transpose (K, D, D)."""
        _, n_categories, _, size = across.shape
        chosen = np.zeros((size, self.missing.size))
        chosen[self.missing.ravel(), np.arange(self.missing.size)] = 1.0
        total = (chosen @ sums.transpose(0, 2, 1).reshape(-1, n_categories)).T
        half = chosen @ across.transpose(0, 2, 1, 3).reshape(self.missing.size, -1)
        half = half.reshape(size, n_categories, size).transpose(1, 0, 2)
        return total, half + np.swapaxes(half, -1, -2)


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
        scratch: Scratch,
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
        scratch: Scratch,
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
        self, rows: Rows, features: Array, centres: Sequence[Centres], scratch: Scratch
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

    def _conditionals(self, coefficients: Coefficients, rows: Rows, scratch: Scratch) -> list[_Conditionals]:
        """Return the conditionals of a block's patterns; those of the thread's last block are kept."""
        return cast(
            list[_Conditionals],
            scratch.kept(
                (self.leaf, "conditionals"),
                (coefficients, rows),
                lambda: list(self._made(coefficients, rows)),
            ),
        )

    def _made(self, coefficients: Coefficients, rows: Rows) -> Iterator[_Conditionals]:
        matrix = coefficients.matrices[self.factor][self._rows, self._columns]
        size = self._value.n_rows
        linear = matrix[:, :size]
        twice = self._square.unpack(matrix[:, size:])
        # a packed coefficient is that of both x_i x_j and x_j x_i
        precision = -(twice + np.einsum("kii->ki", twice)[..., None] * np.eye(size))
        for bounds, missing in _patterns(rows.columns[entries_name(self.leaf.name)]):
            try:
                yield _given_observed(linear, precision, bounds, missing)
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
        return Coefficients({**coefficients.matrices, self.factor: matrix}, coefficients.parts)


def _patterns(seen: AnyArray) -> Iterator[tuple[AnyArray, AnyArray]]:
    """Yield runs of rows with one pattern each, those next to each other with equally many missing entries together.

    Returns
    -------
    Iterator
        Bounds of the G runs, shape (G + 1,), and their missing entries, shape (G, M). Rows that lack none or all of
        their entries are left out.
    """
    starts = np.flatnonzero((seen[1:] != seen[:-1]).any(axis=1)) + 1
    bounds = np.concatenate([[0], starts, [len(seen)]])
    gone = ~seen[bounds[:-1]]
    counts = gone.sum(axis=1)
    for runs in np.split(np.arange(len(counts)), np.flatnonzero(np.diff(counts)) + 1):
        n_missing = counts[runs[0]]
        if 0 < n_missing < seen.shape[1]:
            missing = np.nonzero(gone[runs])[1].reshape(len(runs), n_missing)
            yield bounds[runs[0] : runs[-1] + 2], missing


def _given_observed(linear: Array, precision: Array, bounds: AnyArray, missing: AnyArray) -> _Conditionals:
    """Return the conditionals of G patterns from coefficients h (K, D) and P (K, D, D)."""
    n_missing = missing.shape[1]
    category = np.arange(len(linear))[:, None]
    beside = precision[category, missing[:, None]]
    square = precision[category[..., None], missing[:, None, :, None], missing[:, None, None, :]]
    lower = cholesky(square)
    inverse_lower = inverse(lower)
    # L^-1 (P_m., h_m): its square is the gain, and L^-T makes it R and b
    slope = inverse_lower @ beside
    offset = (inverse_lower @ linear[category, missing[:, None]][..., None])[..., 0]
    back = np.swapaxes(inverse_lower, -1, -2)
    half_log_determinant = np.log(np.einsum("gkmm->gkm", lower)).sum(axis=-1)
    return _Conditionals(
        bounds,
        missing,
        -slope,
        offset,
        0.5 * n_missing * np.log(2 * np.pi) - half_log_determinant,
        back @ slope,
        (back @ offset[..., None])[..., 0],
        inverse_from_factor(inverse_lower),
    )


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
