"""Sequences of rows, one after the other: where they begin, and the density of each row given those before it."""

from __future__ import annotations

from numbers import Number
from typing import Any

import numpy as np

from ..._errors import ParameterError
from ..._typing import AnyArray, Array
from ...families.chains.markov_chain import Pieces
from ...posterior.pandas_tables import Step
from ..arguments.checks import as_array


def checked_lengths(lengths: Any, n_rows: int, what: str = "X") -> AnyArray:
    """Return the length of each sequence, of one sequence where none are given.

    Raises
    ------
    ParameterError
        If they are not whole numbers above 0 whose sum is the number of rows.

    Examples
    --------
    >>> checked_lengths([2, 3], 5), checked_lengths(None, 5)
    (array([2, 3]), array([5]))
    """
    if lengths is None:
        return np.array([n_rows])
    try:
        found = np.asarray(lengths)
    except (TypeError, ValueError):
        found = np.zeros(0)
    is_vector = found.ndim == 1 and found.dtype.kind in "iuf" and found.size > 0
    if not is_vector or np.any(found < 1) or np.any(found != np.floor(found)):
        raise ParameterError(
            f"lengths must be whole numbers above 0, the length of each sequence in order; got {lengths!r:.200}"
        )
    if found.sum() != n_rows:
        raise ParameterError(
            f"the sum of lengths must be the number of rows of {what}, {n_rows}; got {int(found.sum())} "
            f"from {len(found)} sequences"
        )
    return found.astype(np.intp)


def starts_of(lengths: AnyArray) -> Array:
    """Return 1 for each row at which a sequence begins, 0 for the others.

    Examples
    --------
    >>> starts_of(np.array([2, 3]))
    array([1., 0., 1., 0., 0.])
    """
    found = np.zeros(int(lengths.sum()))
    found[np.cumsum(lengths) - lengths] = 1.0
    return found


def refuse_steps_alone(X: Any) -> None:
    """Refuse a number of steps where the rows to continue are expected.

    Raises
    ------
    ParameterError
        If ``X`` is a number.
    """
    if isinstance(X, Number):
        raise ParameterError(
            f"a forecast continues rows, and the model keeps none: give them first, as in forecast(X, {X})"
        )


def weights_of_rows(sequence_weight: Any, lengths: AnyArray) -> Array | None:
    """Return the weight of each row, from those of the sequences; None where none are given.

    Raises
    ------
    ParameterError
        If they are not numbers, one for each sequence, that are not negative and not all zero.

    Examples
    --------
    >>> weights_of_rows([1, 2], np.array([1, 2]))
    array([1., 2., 2.])
    """
    if sequence_weight is None:
        return None
    weights = as_array("sequence_weight", sequence_weight, (len(lengths),), "one weight for each sequence")
    if np.any(weights < 0) or not np.any(weights):
        raise ParameterError(f"sequence_weight must not be negative, nor all zero; got {sequence_weight!r}")
    return np.repeat(weights, lengths)


def log_densities_in_turn(log_densities: Array, starts: Array, initial: Array, transition: Array) -> Array:
    r"""Return the log density of each row given the rows before it in its sequence, (N,), in nats.

    .. math::
        p(x_t \mid x_{<t}) = \sum_k p(s_t = k \mid x_{<t})\, p(x_t \mid s_t = k)

    Parameters
    ----------
    log_densities
        Of each row in each state, (N, K).
    starts
        1 where a sequence begins, (N,).
    initial, transition
        Probabilities of the first state, (K,), and of the next one, (K, K).

    Notes
    -----
    The forward recursion; all sequences make a step at once. O(N K^2).

    Examples
    --------
    >>> one = log_densities_in_turn(
    ...     np.log([[0.2, 0.7], [0.5, 0.1]]), np.array([1.0, 0.0]), np.array([0.5, 0.5]), np.eye(2)
    ... )
    >>> np.exp(one).round(4), round(float(np.exp(one.sum())), 4)  # (0.2 * 0.5 + 0.7 * 0.1) / 2
    (array([0.45  , 0.1889]), 0.085)
    """
    pieces = Pieces.uncut(starts)
    ordered = log_densities[pieces.order]
    top = ordered.max(axis=1)
    top = np.where(np.isfinite(top), top, 0.0)
    likelihood = np.exp(ordered - top[:, None])
    found, reached = np.empty(len(ordered)), np.empty(ordered.shape)
    with np.errstate(divide="ignore"):
        for rows, before in pieces.steps():
            expected = initial if before is None else reached[before] @ transition
            joint = expected * likelihood[rows]
            density = joint.sum(axis=1)
            found[rows] = np.log(density) + top[rows]
            # where nothing is possible any more, everything after it is as likely as before
            reached[rows] = np.where(density[:, None] > 0, joint, expected)
            reached[rows] /= reached[rows].sum(axis=1, keepdims=True)
    result = np.empty(len(found))
    result[pieces.order] = found
    return result


def continued(rows: Array, lengths: AnyArray, n_steps: int) -> tuple[Array, AnyArray, AnyArray]:
    """Return rows with missing ones after each sequence, their lengths, and which rows these are.

    Examples
    --------
    >>> rows, lengths, ahead = continued(np.array([[1.0], [2.0]]), np.array([1, 1]), 1)
    >>> rows.ravel(), lengths, ahead
    (array([ 1., nan,  2., nan]), array([2, 2]), array([1, 3]))
    """
    longer = lengths + n_steps
    ends = np.cumsum(longer)
    ahead = (ends[:, None] - n_steps + np.arange(n_steps)).ravel()
    found = np.full((int(ends[-1]), rows.shape[1]), np.nan)
    is_seen = np.ones(len(found), dtype=bool)
    is_seen[ahead] = False
    found[is_seen] = rows
    return found, longer, ahead


def steps_after(lengths: Any, n_steps: int) -> list[Step] | None:
    """Return the sequence and the step of each row of a forecast; None of one sequence without a given length.

    Sequences have the names that a Series of pandas has for them, and otherwise numbers from 0.

    Examples
    --------
    >>> print(*steps_after([3, 5], 2), sep="; ")
    0, step 1; 0, step 2; 1, step 1; 1, step 2
    """
    if lengths is None:
        return None
    names = getattr(lengths, "index", None)
    named = range(len(lengths)) if names is None or callable(names) else names
    return [Step(name, step + 1) for name in named for step in range(n_steps)]
