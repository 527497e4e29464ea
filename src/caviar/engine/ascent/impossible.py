r"""Impossible data: rows that a known probability of zero rules out, found before a fit and named.

A probability is kept as :math:`p = e^{\ell} 0^z`: a logarithm, 0 where p is zero, and whether p is zero. The terms of
the log joint take :math:`\ell`; terms of their own count the :math:`z` that values of the latent variables meet (see
:func:`..language.zero_terms_of`). A label that meets more of them than another is excluded: its responsibility is 0. A
row in which even the label with the fewest meets some is impossible.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.sparse import issparse

from ..._errors import DataError
from ..._typing import AnyArray, Array
from ...lazy.block_map import map_runs
from ..compiled.terms import GlobalTerm
from ..design.backend import Workspace
from ..design.keys import ColumnKey, SumKey
from ..local.local_factor import LocalFactor
from ..local.statistics import Arrays, Coefficients, Rows
from ..rows.row_model import RowModel
from ..rows.tasks import RowSource, rows_at
from .elbo import ZEROS_BY_ROUNDING
from .problem import Problem

_REMEDY = (
    "Correct the value, leave the row out or give it sample_weight 0, or give what may happen a probability "
    "above 0"
)


def refuse_impossible(problem: Problem, source: RowSource) -> None:
    """Refuse data to which known probabilities of zero leave no possibility: the first such row is named.

    Rows of weight 0 may be impossible. Of the rows of a chain each is looked at by itself; that a sequence has no path
    is found when it is smoothed. The cost is that of a pass, where a known probability is zero, and nothing elsewhere.

    Raises
    ------
    DataError
        If a row, or an observed value that is not one of the rows, is impossible.
    """
    terms = [term for term in problem.compiled.zero_terms if _is_known(term)]
    for term in terms:
        if not term.contraction.keys and term.contraction.value({}) > ZEROS_BY_ROUNDING:
            value = problem.bound.values_of(term.owner)
            raise DataError(
                f"the data of '{term.owner.name}' are impossible: their known probability is 0 ({_written(value)}). "
                f"Correct them, or make their known probability positive"
            )
    zeros = known_zeros(problem)
    if zeros is None:
        return
    look = _Look(problem.rows, *zeros)
    for first, found in map_runs(look, source, source.n_rows, look.block_rows):
        if found is not None:
            position, place = found
            at = first + position
            row = rows_at(source, (at, at + 1), every=True)
            raise DataError(_why(problem, [term for term in terms if term.contraction.keys], row, place))


def known_zeros(problem: Problem) -> tuple[Coefficients, Coefficients] | None:
    """Return what :func:`zeros_by_row` needs to count zeros that depend on the rows alone; None without any."""
    terms = [term for term in problem.compiled.zero_terms if term.contraction.keys and _is_known(term)]
    return _coefficients(problem, terms) if terms else None


def zeros_by_row(
    row_pass: RowModel, zeros: Coefficients, static: Coefficients, rows: Rows, scratch: Workspace
) -> Array:
    """Return how many known probabilities of zero each row meets at the least, shape (B,).

    Parameters
    ----------
    zeros
        Coefficients of what local variables meet.
    static
        Those of the sums that no local variable enters.
    """
    met = row_pass.static_by_row(static, rows, scratch)
    for factor in row_pass.factors:
        if factor.labels:
            met = met + _fewest(factor, row_pass.zeros_of(factor, zeros, rows, scratch), rows)
    return met


def _fewest(factor: LocalFactor, zeros: Array, rows: Rows) -> Array:
    """Return how many zeros the labels of each row meet that meet the fewest, shape (B,)."""
    fewest = np.where(factor.excluded(rows.columns, zeros), np.inf, factor.met(zeros)).min(axis=-2)
    seen = factor.seen(rows.columns)
    counted = fewest if seen is None else fewest * seen
    return counted.reshape(-1, rows.n_rows).sum(axis=0)


@dataclass(frozen=True, eq=False)
class _Look:
    """Finds the first impossible row of a run: its position there, and its place among the user's rows."""

    rows: RowModel
    zeros: Coefficients
    static: Coefficients
    scratch: Workspace = field(default_factory=Workspace)

    @property
    def block_rows(self) -> int:
        """Rows that are looked at together."""
        return self.rows.block_rows

    def __call__(self, source: RowSource, n_rows: int) -> tuple[int, int] | None:
        for start in range(0, n_rows, self.block_rows):
            bounds = (start, min(start + self.block_rows, n_rows))
            rows = rows_at(source, bounds)
            if not rows.n_rows:
                continue
            met = zeros_by_row(self.rows, self.zeros, self.static, rows, self.scratch)
            impossible = np.flatnonzero(met > ZEROS_BY_ROUNDING)
            if impossible.size:
                places = _as_places(rows.where, rows.n_rows)[impossible]
                every = _as_places(source.places(*bounds), bounds[1] - start)
                place = int(places.min())
                return start + int(np.flatnonzero(every == place)[0]), place
        return None


def _as_places(where: slice | AnyArray, n_rows: int) -> AnyArray:
    return np.arange(where.start, where.start + n_rows) if isinstance(where, slice) else where


def _is_known(term: GlobalTerm) -> bool:
    """Whether a term has no latent variable, or one of the rows."""
    return all(isinstance(key, SumKey) and len(key.local) <= 1 for key in term.contraction.keys)


def _coefficients(problem: Problem, terms: Iterable[GlobalTerm]) -> tuple[Coefficients, Coefficients]:
    """Return the coefficients of terms of known values, for local variables and for the sums without any."""
    parts: Arrays = {}
    for term in terms:
        (key,) = term.contraction.keys
        part = problem.compiled.parts[key]
        value = np.broadcast_to(term.contraction.derivative(0)({}), part.shape)
        parts[key] = parts[key] + value if key in parts else value
    return Coefficients(problem.rows.matrices(parts), parts), problem.rows.static_coefficients(parts)


def _why(problem: Problem, terms: Sequence[GlobalTerm], row: Rows, place: int) -> str:
    """Say which values make a row impossible."""
    row_pass, scratch = problem.rows, Workspace()
    every, _ = _coefficients(problem, terms)
    ruled_out = [
        factor
        for factor in row_pass.factors
        if factor.labels and _fewest(factor, row_pass.zeros_of(factor, every, row, scratch), row)[0]
    ]
    said = []
    for owner in dict.fromkeys(term.owner for term in terms):
        zeros, static = _coefficients(problem, [term for term in terms if term.owner is owner])
        meets = row_pass.static_by_row(static, row, scratch)[0] > ZEROS_BY_ROUNDING or any(
            row_pass.zeros_of(factor, zeros, row, scratch).max() > ZEROS_BY_ROUNDING for factor in ruled_out
        )
        if meets and owner in problem.compiled.sources:
            said.append(f"'{owner.name}' is {_written(row.columns[ColumnKey(owner.name)])}")
    latent = []
    labels = [(label, label in factor.labelled) for factor in ruled_out for label in factor.labels]
    for label, is_labelled in labels:
        known = row.columns[ColumnKey(label.name)].item() if is_labelled else -1
        if known < 0:
            latent.append(f"'{label.name}'")
        else:
            said.append(f"'{label.name}' is known to be {known}")
    whatever = f", whatever {' and '.join(latent)} may be" if latent else ""
    return f"row {place} is impossible: its known probability is 0{whatever} ({', '.join(said)}). {_REMEDY}"


def _written(value: Any) -> str:
    """Return a value in few words."""
    array = np.squeeze(value.toarray() if issparse(value) else np.asarray(value))
    whole = array.astype(np.int64) if np.array_equal(array, np.round(array)) else array
    return np.array2string(whole, threshold=10, edgeitems=4).replace("\n", "")
