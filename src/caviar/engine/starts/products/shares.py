"""Points of labels within rows, such as the topics of the words of a document: what their row has, for all of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.linalg import svds

from ...._typing import AnyArray, Array
from ....language import Categorical, Variable
from ...ascent.problem import Problem
from ...rows.subsample import Sample
from .columns import sampled_values

_MOST_NUMBERS = 200_000
"""One-hot numbers of all repetitions of a label up to which each of these is a point of its own: 500 documents of 60
words ended 1,400 nats lower from such points than from those of their rows."""

_COLUMNS = 16
"""Coordinates that the shares of a row are brought into."""


def points_of_rows(
    problem: Problem, sample: Sample, labels: Variable, leaves: Sequence[Variable]
) -> Array | None:
    """Return leading coordinates of the shares of categories in each row, (repetitions, d), for all its labels.

    None unless there are several labels a row, below each of which is one category, and so many that their
    one-hots would be too large.
    """
    plates, rows = labels.plates, problem.bound.data_plate
    if len(plates) < 2 or rows not in plates:
        return None
    if not leaves or not all(
        isinstance(own, Categorical) and set(own.plates) == set(plates) for own in leaves
    ):
        return None
    n_labels = int(np.prod([problem.bound.sizes[own] for own in plates if own is not rows]))
    size = sum(leaf.dimension or 0 for leaf in leaves)
    if sample.n_rows * n_labels * size <= _MOST_NUMBERS or sample.n_rows <= _COLUMNS:
        return None
    shares = [_roots_of_shares(problem, sample, leaf) for leaf in leaves]
    found = [_leading(own) for own in shares if own is not None]
    return np.repeat(np.concatenate(found, axis=1), n_labels, axis=0) if found else None


def _roots_of_shares(problem: Problem, sample: Sample, leaf: Variable) -> coo_array | None:
    """Return the square roots of the shares of categories in each row, (rows, V)."""
    found = sampled_values(problem, sample, leaf)
    if found is None:
        return None
    values, own = found
    labels = np.moveaxis(values, own.index(problem.bound.data_plate), 0).reshape(sample.n_rows, -1)
    seen = ~np.isnan(labels)
    rows: AnyArray = np.broadcast_to(np.arange(sample.n_rows)[:, None], labels.shape)[seen]
    each = np.repeat(1.0 / np.maximum(seen.sum(axis=1), 1), seen.sum(axis=1))
    shape = sample.n_rows, leaf.dimension or 1
    counts = coo_array((each, (rows, labels[seen].astype(np.intp))), shape=shape)
    counts.sum_duplicates()
    counts.data = np.sqrt(counts.data)
    return counts


def _leading(table: coo_array) -> Array:
    """Return the coordinates of rows along the directions in which they are largest."""
    n_columns = min(_COLUMNS, min(table.shape) - 1)
    left, sizes, _ = svds(table.tocsr(), k=n_columns, v0=np.ones(min(table.shape)))
    return left * sizes
