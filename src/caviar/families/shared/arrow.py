r"""Symmetric positive definite arrow matrices: block diagonal in most places, dense in the few others.

.. math:: P = \begin{pmatrix} D & B \\ B' & C \end{pmatrix}, \qquad S = C - B' D^{-1} B, \qquad T = D^{-1} B,

D block diagonal, B sparse. With the Cholesky factor of the Schur complement S,

.. math:: P^{-1} = \begin{pmatrix} D^{-1} + T S^{-1} T' & -T S^{-1} \\ -S^{-1} T' & S^{-1} \end{pmatrix}, \qquad
          \log |P| = \log |D| + \log |S|.

Only the diagonal blocks of the inverse and its entries at given pairs are formed, in strips of rows; a matrix over all
places is never formed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs, dtrtrs
from scipy.sparse import block_diag, bsr_array, csr_array

from caviar._typing import AnyArray, Array
from caviar.numerics.cached import cached_property

_DENSE = 300
"""Largest size at which nothing is eliminated, because one dense matrix takes less time than several sparse ones."""

_STRIP = 1 << 22
"""Numbers of a strip of rows of T S^-1."""


@dataclass(frozen=True, eq=False)
class ArrowPattern:
    """Where a matrix may have entries that are not 0.

    Attributes
    ----------
    parts
        For each part of the places, the number of its diagonal blocks and their width.
    pairs
        Sets of pairs of places (i, j) off these blocks, (E,) each; a set lies between two different parts. If a pair is
        repeated, its entries are added.
    """

    parts: tuple[tuple[int, int], ...]
    pairs: tuple[tuple[AnyArray, AnyArray], ...]

    @cached_property
    def starts(self) -> AnyArray:
        """First place of each part, and the number of all places."""
        return np.concatenate([[0], np.cumsum([count * width for count, width in self.parts])]).astype(
            np.intp
        )

    @property
    def size(self) -> int:
        """Number of all places."""
        return int(self.starts[-1])

    def part_of(self, place: int) -> int:
        """Return the part that a place is in."""
        return int(np.searchsorted(self.starts, place, side="right")) - 1

    @cached_property
    def between(self) -> tuple[tuple[int, int], ...]:
        """The two parts of each set of pairs."""
        return tuple((self.part_of(i[0]), self.part_of(j[0])) if len(i) else (0, 0) for i, j in self.pairs)

    @cached_property
    def eliminated(self) -> tuple[int, ...]:
        """Parts whose blocks form D: those with most blocks first, as long as no pair lies between two of them.

        None for a small matrix.
        """
        chosen: list[int] = []
        if self.size <= _DENSE:
            return ()
        met = {frozenset(pair) for pair in self.between}
        for part in sorted(range(len(self.parts)), key=lambda p: (-self.parts[p][0], -self.parts[p][1])):
            if all(frozenset((part, other)) not in met for other in chosen):
                chosen.append(part)
        return tuple(sorted(chosen))

    @cached_property
    def rest(self) -> tuple[int, ...]:
        """The other parts, over whose places S is formed."""
        return tuple(part for part in range(len(self.parts)) if part not in self.eliminated)

    @property
    def n_rest(self) -> int:
        """Rows of S."""
        return sum(count * width for part in self.rest for count, width in [self.parts[part]])

    @cached_property
    def position(self) -> AnyArray:
        """For each place, its number among the places of D, or of S."""
        found = np.zeros(self.size, dtype=np.intp)
        for parts in (self.eliminated, self.rest):
            start = 0
            for part in parts:
                own = slice(self.starts[part], self.starts[part + 1])
                found[own] = np.arange(start, start + own.stop - own.start)
                start += own.stop - own.start
        return found

    @cached_property
    def is_eliminated(self) -> AnyArray:
        """Whether a place is one of D."""
        found = np.zeros(self.size, dtype=bool)
        for part in self.eliminated:
            found[self.starts[part] : self.starts[part + 1]] = True
        return found

    @cached_property
    def sides(self) -> tuple[tuple[AnyArray, AnyArray, bool], ...]:
        """For each set of pairs, the numbers of its rows and columns, and whether the set is in B and not in C."""
        found = []
        for (i, j), (first, second) in zip(self.pairs, self.between, strict=True):
            if first in self.eliminated:
                found.append((self.position[i], self.position[j], True))
            elif second in self.eliminated:
                found.append((self.position[j], self.position[i], True))
            else:
                found.append((self.position[i], self.position[j], False))
        return tuple(found)

    @cached_property
    def by_row(self) -> tuple[AnyArray | None, ...]:
        """For each set of pairs in B, the pairs in the order of their rows; None for sets in C."""
        return tuple(np.argsort(rows, kind="stable") if of_b else None for rows, _, of_b in self.sides)

    @cached_property
    def _layout_of_b(self) -> tuple[AnyArray, AnyArray, AnyArray]:
        """Columns and ends of the rows of B, and where the entries of the sets go, all after each other."""
        n_rows, n_columns = self.size - self.n_rest, max(self.n_rest, 1)
        keys = [rows * n_columns + columns for rows, columns, of_b in self.sides if of_b]
        distinct, where = np.unique(np.concatenate([np.zeros(0, np.intp), *keys]), return_inverse=True)
        ends = np.searchsorted(distinct, np.arange(n_rows + 1) * n_columns)
        return distinct % n_columns, ends, where

    def b(self, entries: Sequence[Array]) -> Any:
        """Return B, a sparse matrix, from the entries of all sets of pairs."""
        columns, ends, where = self._layout_of_b
        own = [values for values, (_, _, of_b) in zip(entries, self.sides, strict=True) if of_b]
        data = np.bincount(where, np.concatenate([np.zeros(0), *own]), minlength=len(columns))
        return csr_array((data.astype(float), columns, ends), shape=(self.size - self.n_rest, self.n_rest))

    def c(self, blocks: Sequence[Array], entries: Sequence[Array]) -> Array:
        """Return C from the blocks of all parts and the entries of all sets of pairs."""
        total = np.zeros((self.n_rest, self.n_rest))
        for part in self.rest:
            count, width = self.parts[part]
            places = self.position[self.starts[part] : self.starts[part + 1]].reshape(count, width)
            total[places[:, :, None], places[:, None, :]] = blocks[part]
        for values, (rows, columns, of_b) in zip(entries, self.sides, strict=True):
            if not of_b:
                np.add.at(total, (rows, columns), values)
                np.add.at(total, (columns, rows), values)
        return total

    def times(self, blocks: Sequence[Array], entries: Sequence[Array], vector: Array) -> Array:
        """Return the matrix times a vector over all places."""
        total = np.empty(self.size)
        for part, (count, width) in enumerate(self.parts):
            own = slice(self.starts[part], self.starts[part + 1])
            total[own] = np.einsum("nab,nb->na", blocks[part], vector[own].reshape(count, width)).ravel()
        for values, (i, j) in zip(entries, self.pairs, strict=True):
            total += np.bincount(i, values * vector[j], minlength=self.size)
            total += np.bincount(j, values * vector[i], minlength=self.size)
        return total


@dataclass(frozen=True, eq=False)
class Arrow:
    """A factored arrow matrix.

    Parameters
    ----------
    pattern
        Where its entries are.
    blocks
        Those of each part, (count, width, width).
    entries
        At the pairs of each set, (E,).

    Raises
    ------
    numpy.linalg.LinAlgError
        When a result is asked for, if the matrix is not positive definite.
    """

    pattern: ArrowPattern
    blocks: Sequence[Array]
    entries: Sequence[Array]

    @cached_property
    def _roots(self) -> list[Array]:
        """Cholesky factors of the blocks of D, part by part."""
        roots = (np.linalg.cholesky(self.blocks[part]) for part in self.pattern.eliminated)
        return [root.astype(np.float64, copy=False) for root in roots]

    @cached_property
    def _inverses(self) -> list[Array]:
        """Inverses of the blocks of D, part by part."""
        found = []
        for root in self._roots:
            if root.shape[-1] == 1:
                found.append(1.0 / root**2)
            else:
                inverse = np.linalg.inv(root)
                found.append(np.swapaxes(inverse, -1, -2) @ inverse)
        return found

    @cached_property
    def _t(self) -> Any:
        return (_block_diagonal(self._inverses) @ self._b).tocsr()

    @cached_property
    def _b(self) -> Any:
        return self.pattern.b(self.entries)

    @cached_property
    def _root(self) -> Array:
        """Lower Cholesky factor of S."""
        schur = self.pattern.c(self.blocks, self.entries)
        if self.pattern.eliminated:
            schur -= (self._b.T @ self._t).toarray()
        if not len(schur):
            return schur
        root, failed = dpotrf(schur.T, lower=1, clean=1, overwrite_a=1)
        if failed:
            raise np.linalg.LinAlgError("S is not positive definite")
        return root

    @cached_property
    def _inverse(self) -> Array:
        """The inverse of S."""
        if not self._root.size:
            return self._root
        lower, failed = dpotri(self._root, lower=1)
        assert not failed
        return lower + np.tril(lower, -1).T

    @cached_property
    def log_determinant(self) -> float:
        """Logarithm of the determinant of the matrix."""
        roots = [*(np.diagonal(root, axis1=-2, axis2=-1) for root in self._roots), np.diagonal(self._root)]
        return float(sum(2.0 * np.log(own).sum() for own in roots))

    def solve(self, vector: Array) -> Array:
        """Return the inverse times a vector over all places."""
        if not self.pattern.eliminated:
            return self._solved(vector)
        upper, lower = self._apart(vector)
        lower = self._solved(lower - self._t.T @ upper)
        scaled = [
            np.einsum("nab,nb->na", inverse, own).ravel()
            for inverse, own in zip(self._inverses, self._in_blocks(upper), strict=True)
        ]
        return self._together(np.concatenate(scaled) - self._t @ lower, lower)

    def drawn(self, noise: Array) -> Array:
        """Return standard Normal numbers (size, n) made into draws with this precision."""
        if not self.pattern.eliminated:
            return dtrtrs(self._root, noise, lower=1, trans=1)[0]
        upper, lower = self._apart(noise)
        if len(lower):
            lower = dtrtrs(self._root, lower, lower=1, trans=1)[0]
        own = [
            np.linalg.solve(np.swapaxes(root, -1, -2), part).reshape(-1, noise.shape[1])
            for root, part in zip(self._roots, self._in_blocks(upper), strict=True)
        ]
        return self._together(np.concatenate(own) - self._t @ lower, lower)

    @cached_property
    def inverse_entries(self) -> tuple[list[Array], list[Array]]:
        """The blocks of each part in the inverse, and its entries at the pairs of each set."""
        pattern = self.pattern
        blocks: list[Array] = [np.empty(0)] * len(pattern.parts)
        for part in pattern.rest:
            count, width = pattern.parts[part]
            places = pattern.position[pattern.starts[part] : pattern.starts[part + 1]].reshape(count, width)
            blocks[part] = self._inverse[places[:, :, None], places[:, None, :]]
        pairs = [
            np.empty(len(rows)) if of_b else self._inverse[rows, columns]
            for rows, columns, of_b in pattern.sides
        ]
        start = 0
        for part, inverse in zip(pattern.eliminated, self._inverses, strict=True):
            count, width = inverse.shape[:2]
            blocks[part] = inverse.copy()
            for strip, spread in self._strips(start, count, width):
                own = slice((strip.start - start) // width, (strip.stop - start) // width)
                blocks[part][own] += _within_blocks(self._t[strip], spread, width)
                self._write_pairs(pairs, strip, spread)
            start += count * width
        return blocks, pairs

    def inverse_change(
        self, blocks: Sequence[Array], entries: Sequence[Array]
    ) -> tuple[list[Array], list[Array]]:
        r"""Return by how much :attr:`inverse_entries` change with the matrix, :math:`-P^{-1}\, dP\, P^{-1}` there.

        Parameters
        ----------
        blocks, entries
            Of the change, which has the pattern of the matrix.
        """
        pattern = self.pattern
        schur = pattern.c(blocks, entries)
        t: Any = None
        if pattern.eliminated:
            b, of_d = pattern.b(entries), _block_diagonal([blocks[part] for part in pattern.eliminated])
            t = (_block_diagonal(self._inverses) @ (b - of_d @ self._t)).tocsr()
            schur = schur - (b.T @ self._t + self._b.T @ t).toarray()
        inner = -self._inverse @ schur @ self._inverse
        found: list[Array] = [np.empty(0)] * len(pattern.parts)
        for part in pattern.rest:
            count, width = pattern.parts[part]
            places = pattern.position[pattern.starts[part] : pattern.starts[part + 1]].reshape(count, width)
            found[part] = inner[places[:, :, None], places[:, None, :]]
        pairs = [
            np.empty(len(rows)) if of_b else inner[rows, columns] for rows, columns, of_b in pattern.sides
        ]
        start = 0
        for part, inverse in zip(pattern.eliminated, self._inverses, strict=True):
            count, width = inverse.shape[:2]
            found[part] = -inverse @ blocks[part] @ inverse
            for strip, spread in self._strips(start, count, width):
                moved = t[strip] @ self._inverse + self._t[strip] @ inner
                own = slice((strip.start - start) // width, (strip.stop - start) // width)
                found[part][own] += _within_blocks(self._t[strip], moved, width)
                found[part][own] += _within_blocks(t[strip], spread, width)
                self._write_pairs(pairs, strip, moved)
            start += count * width
        return found, pairs

    def _write_pairs(self, pairs: Sequence[Array], strip: slice, spread: Array) -> None:
        """Write entries at pairs of D and S, from T S^-1, or its change, in some rows."""
        for found, (rows, columns, _), order in zip(
            pairs, self.pattern.sides, self.pattern.by_row, strict=True
        ):
            if order is not None:
                mine = order[slice(*np.searchsorted(rows, [strip.start, strip.stop], sorter=order))]
                found[mine] = -spread[rows[mine] - strip.start, columns[mine]]

    def covariance(self, i: AnyArray, j: AnyArray) -> Array:
        """Return the entries of the inverse at pairs of places, (E,) each."""
        pattern = self.pattern
        found = np.empty(len(i))
        first, second = pattern.is_eliminated[i], pattern.is_eliminated[j]
        rows, columns = pattern.position[i], pattern.position[j]
        both = ~first & ~second
        found[both] = self._inverse[rows[both], columns[both]]
        for own, mine, theirs in ((first & ~second, rows, columns), (second & ~first, columns, rows)):
            if own.any():
                found[own] = -self._crossed(mine[own], theirs[own])
        both = first & second
        if both.any():
            found[both] = self._among_eliminated(rows[both], columns[both])
        return found

    def _crossed(self, rows: AnyArray, columns: AnyArray) -> Array:
        """Return entries of T S^-1, of which the rows that have some are computed."""
        found = np.empty(len(rows))
        distinct, place = np.unique(rows, return_inverse=True)
        order = np.argsort(place, kind="stable")
        ordered, most = place[order], max(1, _STRIP // max(1, self.pattern.n_rest))
        for start in range(0, len(distinct), most):
            spread = self._t[distinct[start : start + most]] @ self._inverse
            own = order[slice(*np.searchsorted(ordered, [start, start + most]))]
            found[own] = spread[place[own] - start, columns[own]]
        return found

    def _among_eliminated(self, rows: AnyArray, columns: AnyArray) -> Array:
        most = max(1, _STRIP // max(1, self.pattern.n_rest))
        pieces = []
        for start in range(0, len(rows), most):
            one, other = self._t[rows[start : start + most]], self._t[columns[start : start + most]]
            pieces.append(_row_sums(other, one @ self._inverse))
        total, start = np.concatenate(pieces), 0
        for inverse in self._inverses:
            count, width = inverse.shape[:2]
            own = (rows >= start) & (rows < start + count * width)
            own &= (rows - start) // width == (columns - start) // width
            block, entry = np.divmod(rows[own] - start, width)
            total[own] += inverse[block, entry, (columns[own] - start) % width]
            start += count * width
        return total

    def _strips(self, start: int, count: int, width: int) -> Iterator[tuple[slice, Array]]:
        """Yield rows of T, whole blocks of them, with T S^-1 there."""
        most = max(1, _STRIP // max(1, width * self.pattern.n_rest)) * width
        for first in range(start, start + count * width, most):
            rows = slice(first, min(first + most, start + count * width))
            yield rows, self._t[rows] @ self._inverse

    def _solved(self, lower: Array) -> Array:
        if not len(lower):
            return lower
        return dpotrs(self._root, lower, lower=1)[0].reshape(lower.shape)

    def _apart(self, vector: Array) -> tuple[Array, Array]:
        """Return what a vector has at the places of D, and of S."""
        starts = self.pattern.starts
        upper, lower = (
            np.concatenate([vector[:0], *(vector[starts[part] : starts[part + 1]] for part in parts)])
            for parts in (self.pattern.eliminated, self.pattern.rest)
        )
        return upper, lower

    def _together(self, upper: Array, lower: Array) -> Array:
        total = np.empty((self.pattern.size, *upper.shape[1:]))
        total[self.pattern.is_eliminated], total[~self.pattern.is_eliminated] = upper, lower
        return total

    def _in_blocks(self, upper: Array) -> Iterator[Array]:
        start = 0
        for part in self.pattern.eliminated:
            count, width = self.pattern.parts[part]
            yield upper[start : start + count * width].reshape(count, width, *upper.shape[1:])
            start += count * width


def _block_diagonal(blocks: Sequence[Array]) -> Any:
    """Return a sparse matrix from its diagonal blocks, sets of (count, width, width)."""
    own = [bsr_array((each, np.arange(len(each)), np.arange(len(each) + 1))) for each in blocks]
    return block_diag(own, format="csr")


def _within_blocks(t: Any, spread: Array, width: int) -> Array:
    """Return the diagonal blocks of Y T' from some rows of T and Y."""
    found = np.empty((len(spread) // width, width, width))
    for b in range(width):
        own = t[b::width]
        for a in range(width):
            found[:, a, b] = _row_sums(own, spread[a::width])
    return found


def _row_sums(sparse: Any, dense: Array) -> Array:
    """Return the sums over the columns of the products of two matrices, entry by entry."""
    rows = np.repeat(np.arange(sparse.shape[0]), np.diff(sparse.indptr))
    weights = sparse.data * dense[rows, sparse.indices]
    return np.bincount(rows, weights, minlength=sparse.shape[0]).astype(np.float64)
