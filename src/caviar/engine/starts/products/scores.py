"""Scores: hidden locations of the rows, or of groups, that multiply others, guessed by principal components.

Where all locations of a product are at their prior means, 0, no update moves any of them, and from a draw many factors
fall silent before the rows have told them apart. So one side of each product begins at the scores of the leading
components of what the other addends leave of the values; the other side, noise and relevances follow from them by
their own updates. Leaves that share a factor are one table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
import os
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from ...._typing import AnyArray, Array
from ....language import Data, Plate, Variable
from ...binding.clamped.factor import PointMass
from ...local.statistics import Rows
from ..factors.given_locals import expected_of
from ..guesses.basis import Basis, Guess
from ..guesses.points import sampled_values
from .columns import labels_of
from .low_rank import Units, low_rank
from .residuals import residuals
from .statement import Product, Side, products_of

_MOST_CELLS = 4_000_000
"""Cells of a table whose missing entries are filled; of a larger one they count as 0."""

_FEWEST = 2
"""Rows and columns of a table in which components tell more than the noise of the rows."""


_ALL: dict[str, tuple[Units, bool]] = {"n": ("noise", False), "s": ("spread", False), "o": ("one", False), "N": ("noise", True), "O": ("one", True)}
_WAYS = tuple(_ALL[c] for c in os.environ.get("WAYS", "nsoNO"))


@dataclass(frozen=True, eq=False)
class _Part:
    """What a leaf has in a table: the row, column, value and weight of each entry that was seen."""

    product: Product
    rows: AnyArray
    columns: AnyArray
    values: Array
    weights: Array
    n_columns: int
    places: AnyArray
    """Of the entries among all values of the leaf in the sample."""


def scored(basis: Basis, guess: Guess, units: Units, *, only_clear: bool = False) -> Basis | None:
    """Return a basis in which one side of each product is at its scores; None where there are none.

    Parameters
    ----------
    basis, guess
        What a start is made from, and its labels.
    units
        What columns of tables are measured in.
    only_clear
        Whether only components are taken that are larger than those of noise; None is returned where all are.
    """
    by_given = products_of(basis.problem)
    values = {
        leaf: found
        for leaf in dict.fromkeys(product.leaf for several in by_given.values() for product in several)
        if (found := sampled_values(basis.problem, basis.sample, leaf)) is not None
    }
    points: dict[Variable, Array] = {}
    has_left_out = False
    for variable, several in by_given.items():
        read = (_part(basis, product, guess, *values[product.leaf]) for product in several if product.leaf in values)
        parts = [part for part in read if part is not None]
        if not parts:
            continue
        scores = np.zeros((_n_repetitions(basis, variable), variable.dimension or 1))
        for block in _blocks(basis, guess, parts):
            left_out, fitted = _fill(basis, scores, block, units, only_clear=only_clear)
            has_left_out |= left_out
            if len(by_given) > 1:
                for part, own in zip(block, fitted, strict=True):
                    flat = values[part.product.leaf][0].reshape(-1)
                    flat[part.places] -= own
        points[variable] = scores
    if not any(np.any(scores) for scores in points.values()) or (only_clear and not has_left_out):
        return None
    return _with_points(basis, points)


def _part(
    basis: Basis, product: Product, guess: Guess, values: Array, plates: tuple[Plate, ...]
) -> _Part | None:
    """Return what a leaf has in the table of a product; None where labels that it needs are not told."""
    own = residuals(basis, product, guess, values, plates[1:])
    rows, columns = (
        _repetition(basis, side, guess, own.shape, plates) for side in (product.given, product.other)
    )
    if rows is None or columns is None:
        return None
    weights = np.broadcast_to(basis.sample.row_weights.reshape(-1, *(1,) * (own.ndim - 1)), own.shape)
    places = np.flatnonzero(~np.isnan(own) & (weights > 0))
    taken = (array.ravel()[places] for array in (rows, columns, own, weights))
    return _Part(product, *taken, _n_repetitions(basis, product.other.variable), places)


def _own_plates(basis: Basis, variable: Variable) -> list[Plate]:
    """Return the plates of a variable, that of the rows first."""
    return sorted(variable.plates, key=lambda plate: plate is not basis.problem.bound.data_plate)


def _sizes(basis: Basis, variable: Variable) -> tuple[int, ...]:
    bound = basis.problem.bound
    return tuple(
        basis.sample.n_rows if plate is bound.data_plate else bound.sizes[plate]
        for plate in _own_plates(basis, variable)
    )


def _n_repetitions(basis: Basis, variable: Variable) -> int:
    return int(np.prod(_sizes(basis, variable), dtype=np.int64))


def _repetition(
    basis: Basis, side: Side, guess: Guess, shape: tuple[int, ...], plates: Sequence[Plate]
) -> AnyArray | None:
    """Return which repetition of a side each value of a leaf has to do with; None where that is not told."""
    found: AnyArray = np.zeros((1,) * len(shape), dtype=np.int64)
    for plate, size in zip(_own_plates(basis, side.variable), _sizes(basis, side.variable), strict=True):
        if plate is side.chosen:
            labels = labels_of(basis.sample, side.index, guess)
            if labels is None:
                return None
            axis, own = 0, labels
        elif plate in plates:
            axis = plates.index(plate)
            own = np.arange(size)
        else:
            return None
        found = found * size + own.reshape([-1 if place == axis else 1 for place in range(len(shape))])
    return np.broadcast_to(found, shape)


def _blocks(basis: Basis, guess: Guess, parts: Sequence[_Part]) -> list[list[_Part]]:
    """Return the parts of each table: rows with scores of their own are in several where labels choose the columns."""
    given = parts[0].product.given.variable
    labels = [own for part in parts if (own := labels_of(basis.sample, part.product.other.index, guess)) is not None]
    if not labels or not basis.problem.bound.is_local(given):
        return [list(parts)]
    n_each = _n_repetitions(basis, given) // basis.sample.n_rows
    return [
        [_only(part, label == labels[0][part.rows // n_each]) for part in parts]
        for label in np.unique(labels[0])
    ]


def _only(part: _Part, kept: AnyArray) -> _Part:
    return replace(
        part,
        rows=part.rows[kept],
        columns=part.columns[kept],
        values=part.values[kept],
        weights=part.weights[kept],
        places=part.places[kept],
    )


def _fill(
    basis: Basis, scores: Array, parts: Sequence[_Part], units: Units, *, only_clear: bool
) -> tuple[bool, list[Array]]:
    """Write the scores of a table in their places; return whether some were left out, and what the product explains.

    The table has the columns of all parts side by side, each part in units of its spread where there are several.
    """
    spreads = [float(np.std(part.values)) or 1.0 if len(parts) > 1 and len(part.values) else 1.0 for part in parts]
    starts = np.cumsum([0, *(part.n_columns for part in parts)])
    rows, row = np.unique(np.concatenate([part.rows for part in parts]), return_inverse=True)
    columns, column = np.unique(
        np.concatenate([part.columns + start for part, start in zip(parts, starts, strict=False)]),
        return_inverse=True,
    )
    nothing = [np.zeros(len(part.values)) for part in parts]
    if min(len(rows), len(columns)) < _FEWEST:
        return False, nothing
    values = np.concatenate([part.values / spread for part, spread in zip(parts, spreads, strict=True)])
    weights = np.concatenate([part.weights for part in parts])
    given = parts[0].product.given
    of_rows = np.ones(len(rows))
    if basis.problem.bound.is_local(given.variable):
        of_rows = np.bincount(row, weights) / np.bincount(row)
    shape = len(rows), len(columns)
    table, counts = (csr_matrix((own, (row, column)), shape=shape) for own in (weights * values, weights))
    table.data /= counts.data
    size = min(scores.shape[1], *shape)
    if len(rows) * len(columns) <= _MOST_CELLS:
        is_whole = counts.nnz == len(rows) * len(columns)
        seen = None if is_whole else counts.toarray() > 0
        found = low_rank(table.toarray(), seen, of_rows, size, units, basis.rng)
    else:
        found = low_rank(table, None, of_rows, size, "one", basis.rng)
    kept = found.n_clear if only_clear else size
    strengths = np.square(found.loadings).mean(axis=0)
    sizes = np.array([_size(given, parts[0].product.other, *shape, own) for own in strengths])
    scores[rows, :kept] = found.scores[:, :kept] * sizes[:kept]
    product = np.einsum("ek,ek->e", found.scores[row, :kept], found.loadings[column, :kept])
    ends = np.cumsum([len(part.values) for part in parts])[:-1]
    fitted = [own * spread for own, spread in zip(np.split(product, ends), spreads, strict=True)]
    return kept < size, fitted


def _size(given: Side, other: Side, n_given: int, n_other: int, strength: float) -> float:
    r"""Return the standard deviation that a component's scores have at the optimum, nearly.

    The product has mean squares ``strength``, however it is shared out. With prior variances known on both sides
    the ELBO is highest where :math:`n_u (m_u - 1) = n_b (m_b - 1)`, for mean squares m in units of the prior variances:
    each side pays for its mean squares, and its posterior is narrower the larger the other one's are. A
    side whose variance is learnt adapts to the other one.
    """
    if given.variance is None:
        return (strength / other.variance) ** 0.5 if other.variance else strength**0.25
    if other.variance is None:
        return given.variance**0.5
    excess = n_given - n_other
    root = (excess**2 + 4 * n_given * n_other * strength / (given.variance * other.variance)) ** 0.5
    return (given.variance * (excess + root) / (2 * n_given)) ** 0.5


def _with_points(basis: Basis, found: Mapping[Variable, Array]) -> Basis:
    """Return a basis with these values: of the rows in the place of draws, of globals to be held in first updates."""
    problem, sample = basis.problem, basis.sample
    every = Rows(sample.columns, sample.row_weights, sample.n_rows, slice(0, sample.n_rows))
    points, held = dict(basis.points), dict(basis.held)
    for variable, scores in found.items():
        event = (variable.dimension or 1,) * variable.value_rank
        values = scores.reshape(*_sizes(basis, variable), *event)
        if variable in problem.order:
            held[variable] = problem.with_known(variable, PointMass.of(variable, values))
        else:
            factor = next(own for own in problem.factors if variable in own.variables)
            points[factor.key] = expected_of(problem, factor, variable, values, every)
    return replace(basis, points=points, held=held)


def with_scores(basis: Basis, guesses: Sequence[Guess]) -> Iterator[tuple[Basis, Guess]]:
    """Yield what starts are made from in which products begin at their scores: a basis and labels of each."""
    for guess in guesses if products_of(basis.problem) else ():
        for units, only_clear in _WAYS:
            found = scored(basis, guess, units, only_clear=only_clear)
            if found is not None:
                yield found, guess
