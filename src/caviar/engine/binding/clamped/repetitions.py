"""Known repetitions: global variables some of whose values come with the data, NaN where they are to be learnt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...._errors import DataError, PlateError
from ...._typing import AnyArray, Array
from ....families.base.family import MeanPrecision
from ....language import Dirichlet, Label, Node, StickBreaking, Variable
from ....language.nodes.roles import PRECISION, PRECISION_MATRIX
from .factor import Clamped


def is_joint(node: Node) -> bool:
    """Whether the values of a node are pairs (mean, precision)."""
    return isinstance(node, Variable) and "precision" in node.family.statistics


def as_pair(node: Variable, value: Any, read: Callable[[Node, Any, int], AnyArray]) -> MeanPrecision:
    """Return the given values of a joint factor as a pair of arrays, each over the plates.

    Parameters
    ----------
    node
        The variable.
    value
        What came.
    read
        Returns an array of a node from one part of it, and the number of event axes.

    Raises
    ------
    DataError, PlateError
        If it is no such pair.
    """
    kind, rank = type(node).__name__, node.precision_rank
    if node.tied is not None:
        raise DataError(
            f"'{node.name}', a {kind}, takes no data: its locations share one precision, so all of them "
            f"are known or none. State means and precision as separate variables, whose values may be known"
        )
    if not isinstance(value, Sequence) or len(value) != 2:
        raise DataError(
            f"the data of '{node.name}', a {kind}, are a pair (mean, precision), each over its plates, with NaN for "
            f"repetitions that are to be learnt; got {type(value).__name__}"
        )
    mean, precision = read(node, value[0], node.value_rank), read(node, value[1], rank)
    n_plates = len(node.plates)
    expected = mean.shape[:n_plates] + (mean.shape[n_plates:] * 2 if rank else ())
    if precision.shape != expected:
        raise PlateError(
            f"the precision in the data of '{node.name}', a {kind}, must have shape {expected} to match "
            f"its mean of shape {mean.shape}; got {precision.shape}"
        )
    return MeanPrecision(mean.astype(np.float64), precision.astype(np.float64))


def repetitions_of(node: Variable, value: AnyArray | MeanPrecision) -> Clamped | None:
    """Return which repetitions of a global variable are known from its values, NaN where not; None if none is.

    Raises
    ------
    DataError
        If a repetition is known in part only, or a known value is off the support.
    """
    parts = value if isinstance(value, tuple) else (value,)
    ranks = (node.value_rank, node.precision_rank)
    found = []
    for part, rank in zip(parts, ranks, strict=False):
        missing = np.isnan(part)
        events = tuple(range(part.ndim - rank, part.ndim))
        gone = np.asarray(missing.any(axis=events))
        if not np.array_equal(gone, missing.all(axis=events)):
            where = np.argwhere(gone & ~missing.all(axis=events))[0]
            raise DataError(_why_whole(node, tuple(map(int, where))))
        found.append(~gone)
    is_known = found[0]
    if not np.array_equal(is_known, found[-1]):
        where = np.argwhere(is_known != found[-1])[0]
        raise DataError(
            f"{node.in_words}, has only one of mean and "
            f"precision{_place(node, where)}; give both for a repetition, or NaN in both"
        )
    if not is_known.any():
        return None
    values = tuple(np.array(part[is_known]) for part in parts)
    if not isinstance(value, tuple):
        given = values[0].astype(np.float64)
        labels = values[0].astype(np.intp)
        # what is not a whole number is not a label, and refused as it is
        is_labels = isinstance(node, Label) and np.array_equal(labels, given)
        return Clamped(is_known, labels if is_labels else given)
    _check_precision(node, values[1])
    return Clamped(is_known, MeanPrecision(*values))


def _check_precision(node: Variable, precision: Array) -> None:
    role = PRECISION_MATRIX if node.precision_rank else PRECISION
    problem = role.problem(precision) or ("" if np.any(precision) else "must be positive")
    if problem:
        raise DataError(f"the precision in the data of {node.in_words}, {problem}")


def _why_whole(node: Variable, where: Sequence[int]) -> str:
    """Say that a repetition is known as a whole or not at all."""
    kind, place = f"{node.in_words},", _place(node, where)
    if isinstance(node, Dirichlet | StickBreaking):
        return (
            f"{kind} has some probabilities missing (NaN) and others not{place}: those of one repetition sum to one, "
            f"and are given together or not at all. Probabilities that are all known may also be given as numbers in "
            f"the place of '{node.name}', as in Categorical('z', [0.2, 0.8])"
        )
    return (
        f"{kind} has some entries missing (NaN) and others not{place}: a value is known as a whole or not at "
        "all. Give all of its entries, or NaN in all"
    )


def _place(node: Variable, where: Sequence[int]) -> str:
    """Return in words which repetition an index is."""
    plates = zip(node.plates, where, strict=False)
    return " at " + ", ".join(f"{plate.name} {i}" for plate, i in plates) if node.plates else ""
