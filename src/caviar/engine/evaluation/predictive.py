r"""Predictive densities: the density of new rows under q, where it is closed.

Given its parents, a row's log density is a sum of terms. Where each term holds at most one factor
:math:`q(\theta)`, they add up to :math:`\langle T(x), t(\theta) \rangle + C(x)`, and

.. math:: \log p(x) = \log \mathrm E_q\, e^{\langle T, t(\theta) \rangle} + C = A(\eta + T) - A(\eta) + C

is one formula for every family: A is its log-partition, :math:`\eta` the natural parameter of q. Local Categoricals
are summed over: each combination of their categories is a row of the same kind, with these known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np
from scipy.sparse import csr_array, issparse
from scipy.special import logsumexp

from ..._errors import ModelError
from ..._typing import Array, Statistics
from ...families import Dirichlet
from ...language import Label, Operand, Term, Variable
from ..binding.bound_model import BoundModel
from ..binding.clamped.factor import ClampedFactor, PointMass
from ..binding.evidence import Evidence, Latent
from ..compiled.labels_that_meet import is_label_of_rows
from .row_messages import Choices, Measured, RowsInCategory

_ENTRIES = 2**18
"""Numbers of the largest statistic that one block of rows makes."""

_CANCELS = 1e8
"""Nats of a log-partition from which on the difference of two has fewer than eight digits after the point."""

_SAMPLES = "posterior.predictive(...) draws from it."


def log_predictive(bound: BoundModel, measure: Callable[[Variable | None, int | None], Measured]) -> Array:
    """Return the log density of each row under q, shape (rows,).

    Parameters
    ----------
    bound
        The model with the rows.
    measure
        Returns the frame in which the rows of a category of the local Categorical lose no digits (None and None where
        there is no such), and the global factors in it.

    Raises
    ------
    ModelError
        If it has no closed form; the message says why.
    """
    labels = _labels(bound)
    places = np.ndindex(tuple(label.dimension or 1 for label in labels))
    every = [dict(zip(labels, own, strict=True)) for own in places]
    first = labels[0] if len(labels) == 1 else None
    each = [RowsInCategory(bound, measure(first, None if first is None else h[first]), h) for h in every]
    _check(each[0])
    result = np.empty(bound.n_rows)
    told = _Told.of(each[0])
    size = _block_rows(each[0], told)
    for start in range(0, bound.n_rows, size):
        rows = slice(start, start + size)
        part = _part(bound, rows)
        joint = [np.broadcast_to(_block(replace(row, bound=part), told), part.n_rows) for row in each]
        # what is impossible in every category has the density 0
        result[rows] = logsumexp(joint, axis=0)
    return result


_MOST_CATEGORIES = 4_096
"""Combinations of labels that are summed over at the most."""


def _labels(bound: BoundModel) -> list[Variable]:
    """Return the local Categoricals that are summed over; refuse every other local variable."""
    local = [variable for variable in bound.latent if bound.is_local(variable)]
    if bound.data_plate is None:
        raise ModelError("a predictive density needs rows, and the model has no plate with rows of data")
    for variable in local:
        kind = f"{type(variable).__name__} '{variable.name}'"
        if variable.summed:
            raise ModelError(
                f"the rows of the {kind} depend on their neighbours, so no row has a predictive density by itself. "
                f"{_SAMPLES}"
            )
        if not isinstance(variable, Label):
            raise ModelError(
                f"the predictive density has no closed form: the local {kind} would have to be integrated out "
                f"together with the global factors. Given values of all of these, as those of a draw, it may have one "
                f"(given=). {_SAMPLES}"
            )
        if variable.plates != (bound.data_plate,):
            raise ModelError(
                f"the predictive density is summed over Categoricals with one label for each row; '{variable.name}' "
                f"has several. {_SAMPLES}"
            )
    if math.prod(variable.dimension or 1 for variable in local) > _MOST_CATEGORIES:
        names = ", ".join(f"'{other.name}'" for other in local)
        raise ModelError(
            f"the predictive density is summed over the combinations of labels of a row, and those of {names} are more "
            f"than {_MOST_CATEGORIES:,}. {_SAMPLES}"
        )
    partial = bound.gathered("entries")
    if partial:
        names = ", ".join(f"'{leaf.name}'" for leaf in partial)
        raise ModelError(
            f"the predictive density has no closed form here: vectors of {names} are missing in part. Leave such "
            f"rows out"
        )
    if bound.gathered("in_part"):
        raise ModelError(
            f"the predictive density takes labels of '{local[0].name}' for all rows or for none; leave them out"
        )
    return local


def _check(row: RowsInCategory) -> None:
    """Refuse a model in which a term holds two factors."""
    for owner in row.owners:
        for term in row.terms(owner):
            latent = row.latent(term)
            if len(latent) > 1:
                _refuse(owner, term, latent)


def _refuse(owner: Variable, term: Term, latent: Sequence[Operand]) -> NoReturn:
    names = " and ".join(dict.fromkeys(f"'{operand.node.name}'" for operand in latent))
    joint = {"Normal": "NormalGamma", "MultivariateNormal": "NormalWishart"}.get(type(owner).__name__)
    slots = {operand.slot.name for operand in latent if operand.slot is not None}
    advice = f" With a {joint} for both it has one." if joint and "precision" in slots else ""
    raise ModelError(
        f"the predictive density of '{owner.name}' has no closed form: {names}, independent factors of q, meet in "
        f"its term {term}.{advice} {_SAMPLES}"
    )


@dataclass(frozen=True)
class _Told:
    """How rows speak to the global factors; the same in every category.

    Attributes
    ----------
    choices
        How each row chooses one of the repetitions of a factor.
    counted
        Of factors that rows tell nothing but sparse counts or labels, the operand with these.
    """

    choices: Mapping[Variable, Choices]
    counted: Mapping[Variable, Operand]

    @classmethod
    def of(cls, row: RowsInCategory) -> _Told:
        """Return it for rows in one of the categories.

        Raises
        ------
        ModelError
            If a row speaks to a factor both with and without the choice of a category.
        """
        choices = {variable: _only(row, variable, own) for variable, own in row.choices().items()}
        return cls(choices, _counted(row, choices))


def _only(row: RowsInCategory, variable: Variable, choices: set[Choices]) -> Choices:
    """Return the one way in which a row chooses from a factor; by labels that are not the only way, it chooses all."""
    if len(choices) == 1:
        (choice,) = choices
        return choice
    if any(own.by in row.held for choice in choices for own in choice):
        raise ModelError(
            f"the predictive density has no closed form here: '{variable.name}' enters it both with and without the "
            f"choice of a category. {_SAMPLES}"
        )
    return ()


def _counted(row: RowsInCategory, choices: Mapping[Variable, Choices]) -> dict[Variable, Operand]:
    """Return the factors whose rows contribute only sparse counts, or one label each, with the source of these.

    Their gain is a sum over the counts that are not zero; as messages these would be written out.
    """
    found: dict[Any, list[Operand | None]] = {}
    for term in (term for owner in row.owners for term in row.terms(owner)):
        settled = row.settled(term)
        for operand in row.latent(term):
            known = [other for other in term.operands if other is not operand and other.node not in row.held]
            columns = [axis for axis in operand.axes if axis not in settled]
            plain = len(known) == 1 and term.coefficient == 1 and list(known[0].axes[1:]) == columns
            sparse = plain and (
                issparse(row.bound.of(known[0].node).values) or is_label_of_rows(known[0], row.bound)
            )
            found.setdefault(operand.node, []).append(known[0] if sparse else None)
    return {
        node: told[0]
        for node, told in found.items()
        if len(told) == 1 and told[0] is not None and isinstance(row.q[node], Dirichlet)
    }


def _block_rows(row: RowsInCategory, told: _Told) -> int:
    """Return how many rows a block has, by the largest message of a row."""
    values: list[Any] = [row.bound.values_of(operand.node) for operand in told.counted.values()]
    largest = max([1, *(counts.nnz // row.bound.n_rows for counts in values if issparse(counts))])
    for variable, choices in told.choices.items():
        if variable not in told.counted:
            factor = row.q[variable]
            own = factor.unknown if isinstance(factor, ClampedFactor) else factor
            levels = 1
            # a tied factor has numbers that all its repetitions share
            if variable.tied is None:
                levels = math.prod(factor.batch_shape[choice.place] for choice in choices)
            largest = max(largest, *(np.size(eta) // levels for eta in own.natural))
    return max(1, _ENTRIES // largest)


def _part(bound: BoundModel, rows: slice) -> BoundModel:
    """Return a binding of some of the rows."""
    plate = bound.data_plate
    assert plate is not None

    def of(node: Any, value: Any) -> Any:
        if plate not in node.plates:
            return value
        return value[(slice(None),) * node.plates.index(plate) + (rows,)]

    def evidence_of(node: Any, own: Evidence) -> Evidence:
        if isinstance(own, Latent):
            return own
        observed = None if own.observed is None else of(node, own.observed)
        return replace(own, values=of(node, own.values), observed=observed)

    n_rows = len(range(*rows.indices(bound.n_rows)))
    return replace(
        bound,
        evidence={node: evidence_of(node, own) for node, own in bound.evidence.items()},
        sizes={**bound.sizes, plate: n_rows},
        joined={},
    )


def _block(row: RowsInCategory, told: _Told) -> Array:
    """Return the log joint densities of rows and their category, shape (rows,) or (1,)."""
    messages: dict[Variable, dict[str, Array]] = {}
    total: Array = np.zeros(1)
    for owner in row.owners:
        for term in row.terms(owner):
            latent = row.latent(term)
            if latent and latent[0].node in told.counted:
                continue
            if latent:
                _tell(row, told, messages, term, latent[0])
            else:
                total = total + row.share(term)
        for term in row.zero_terms(owner):
            latent = row.latent(term)
            if latent:
                _tell(row, told, messages, term, latent[0], _minus_infinity)
            else:
                total = total + _minus_infinity(row.share(term))
    for variable, message in messages.items():
        total = total + _gain(variable, _chosen(row, variable, told.choices[variable]), message)
    for variable, operand in told.counted.items():
        factor = _chosen(row, variable, told.choices[variable])
        total = total + factor.gain_of_counts(_sparse_counts(row, operand))
    return total


def _sparse_counts(row: RowsInCategory, operand: Operand) -> Any:
    """Return counts by rows; of labels, a one for each."""
    counts = row.bound.values_of(operand.node)
    if issparse(counts):
        return counts
    n, levels = row.bound.n_rows, row.bound.size(operand.axes[-1])
    return csr_array((np.ones(n), counts.astype(np.intp), np.arange(n + 1)), shape=(n, levels))


def _minus_infinity(zeros: Array) -> Array:
    """Return the logarithm of 0 to the power of a count of zeros."""
    return np.where(zeros > 0, -np.inf, 0.0)


def _tell(
    row: RowsInCategory,
    told: _Told,
    messages: dict[Variable, dict[str, Array]],
    term: Term,
    operand: Operand,
    meaning: Callable[[Array], Array] = np.asarray,
) -> None:
    """Add the message of a term to a global factor: a ``meaning`` of its known side."""
    node: Any = operand.node
    message = messages.setdefault(node, {})
    found = row.message(term, operand, told.choices[node], meaning)
    before = message.get(operand.statistic)
    message[operand.statistic] = found if before is None else before + found


def _chosen(row: RowsInCategory, variable: Variable, choices: Choices) -> Any:
    """Return a factor; where rows choose one of its repetitions, what they choose: rows first, unless all the same."""
    factor = row.q[variable]
    if not choices:
        return factor
    if any(variable.plates[choice.place] is variable.tied for choice in choices):
        factor = factor.marginals
    labels = {choice.place: row.labels_of(choice) for choice in choices}
    sizes = [size for place, size in enumerate(factor.batch_shape) if place not in labels]
    others = iter(np.ogrid[tuple(slice(size) for size in sizes)] if sizes else ())
    index = []
    for place in range(len(factor.batch_shape)):
        own = labels.get(place)
        index.append(next(others) if own is None else own.reshape(own.shape + (1,) * len(sizes)))
    return factor[tuple(index)]


def _gain(variable: Variable, factor: Any, message: Mapping[str, Array]) -> Array:
    """Return what a message adds, summed over the repetitions of a factor, shape (rows or 1,)."""
    if isinstance(factor, PointMass):
        gain = _gain_at(variable, factor.expected_statistics, message)
    elif isinstance(factor, ClampedFactor):
        of_known = _gain_at(variable, factor.expected_statistics, message)
        gain = np.where(factor.is_known, of_known, _gain_under(variable, factor.everywhere(), message))
    else:
        gain = _gain_under(variable, factor, message)
    return gain.reshape(len(gain), -1).sum(axis=-1)


def _gain_under(variable: Variable, factor: Any, message: Mapping[str, Array]) -> Array:
    r"""Return A(eta + T) - A(eta) of each repetition, shape (rows or 1, repetitions...).

    Where the two log-partitions are so large that their difference has few digits, it is told from what has them all,
    :math:`\langle T, \mathrm E t \rangle + \mathrm{KL}(q_\eta \,\|\, q_{\eta + T})`.
    """
    after, events = [], []
    shapes = factor.statistic_shapes(factor.event_shape)
    for name, eta, shape in zip(factor.statistics, factor.natural, shapes, strict=True):
        after.append(eta + message.get(name, 0.0))
        events.append(after[-1].ndim - len(shape))
    batch = np.broadcast_shapes(*(eta.shape[:n] for eta, n in zip(after, events, strict=True)))
    full = tuple(np.broadcast_to(eta, batch + eta.shape[n:]) for eta, n in zip(after, events, strict=True))
    extended = type(factor).from_natural(full)
    if np.abs(factor.log_partition).max(initial=0.0) < _CANCELS:
        return extended.log_partition - factor.log_partition
    return _gain_at(variable, factor.expected_statistics, message) + factor.kl(extended)


def _gain_at(variable: Variable, statistics: Statistics, message: Mapping[str, Array]) -> Array:
    """Return the product of T with the statistics of each repetition's value, shape (rows or 1, repetitions...)."""
    total: Array = np.zeros(1)
    for name, statistic in zip(variable.family.statistics, statistics, strict=True):
        if name in message:
            events = tuple(range(-len(variable.letters[name]), 0))
            total = total + (message[name] * statistic).sum(axis=events)
    return total
