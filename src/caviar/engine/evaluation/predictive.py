r"""Predictive densities: the density of new rows under q, where it is closed.

Given its parents, a row's log density is a sum of terms. Where each term holds at most one factor
:math:`q(\theta)`, they add up to :math:`\langle T(x), t(\theta) \rangle + C(x)`, and

.. math:: \log p(x) = \log \mathrm E_q\, e^{\langle T, t(\theta) \rangle} + C = A(\eta + T) - A(\eta) + C

is one formula for every family: A is its log-partition, :math:`\eta` the natural parameter of q. A local Categorical
is summed over: each of its categories is a row of the same kind, with the category known.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from string import ascii_letters
from typing import Any, NoReturn, TypeAlias

import numpy as np
from scipy.sparse import issparse
from scipy.special import logsumexp

from ..._errors import ModelError
from ..._typing import Array, Statistics
from ...families import Dirichlet
from ...language import Axis, Indexed, Label, Operand, Term, Variable, base_terms_of, terms_of, zero_terms_of
from ..binding.bound_model import BoundModel
from ..binding.clamped.factor import ClampedFactor
from ..binding.clamped.point_mass import PointMass
from ..binding.coordinates import Coordinates
from ..binding.evidence import Evidence, Latent
from ..binding.known_statistics import known_statistic
from ..binding.missing.values import OBSERVED

__all__ = ["log_predictive"]


_ENTRIES = 2**18
"""Numbers of the largest statistic that one block of rows makes."""

_CANCELS = 1e8
"""Nats of a log-partition from which on the difference of two has fewer than eight digits after the point."""

_ROW = "row"
"""Key of the first axis that every message has."""

_SAMPLES = "posterior.predictive(...) draws from it."


Measured: TypeAlias = tuple[Coordinates, Mapping[Variable, Any]]
"""A frame, and the global factors measured from its points."""


@dataclass
class _Messages:
    """What a row tells one global factor: by statistic, of shape (rows, plates of the factor..., event)."""

    chosen: int | None
    """Place among the plates of the factor of the one that the local Categorical chooses from, which is left out."""
    totals: dict[str, Array] = field(default_factory=dict)


@dataclass(frozen=True)
class _Row:
    """Rows in one category, and what is known of the globals.

    Attributes
    ----------
    bound
        The rows.
    measured
        The points that locations are measured from, and the global factors measured from these.
    gate
        The local Categorical, if any.
    category
        Its value.
    """

    bound: BoundModel
    measured: Measured
    gate: Variable | None
    category: int | None

    @property
    def q(self) -> Mapping[Variable, Any]:
        """The global factors."""
        return self.measured[1]

    @property
    def owners(self) -> list[Variable]:
        """The variables whose densities a row multiplies; what is observed once for all rows is no part of one."""
        observed = [variable for variable in self.bound.observed if self.bound.is_local(variable)]
        return [*observed, *([] if self.gate is None else [self.gate])]

    def terms(self, owner: Variable) -> Sequence[Term]:
        """Return the terms of a variable's log density, of an observed one with its base measure."""
        return terms_of(owner) if owner is self.gate else (*terms_of(owner), *base_terms_of(owner))

    def zero_terms(self, owner: Variable) -> Sequence[Term]:
        """Return the terms that count the known probabilities of zero in a variable's density, of points too."""
        return zero_terms_of(owner, lambda node: node.is_known or isinstance(self.q.get(node), PointMass))  # type: ignore[arg-type]

    def latent(self, term: Term) -> list[Operand]:
        """Return the operands that q leaves open: neither known, nor a point, nor the category."""
        return [
            operand
            for operand in term.operands
            if not self.bound.is_known(operand.node)
            and operand.node is not self.gate
            and not isinstance(self.q.get(operand.node), PointMass)  # type: ignore[arg-type]
        ]


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
    gate = _gate(bound)
    categories = [None] if gate is None else range(gate.dimension or 1)
    each = [_Row(bound, measure(gate, category), gate, category) for category in categories]
    _check(each[0])
    result = np.empty(bound.n_rows)
    size = _block_rows(each[0])
    for start in range(0, bound.n_rows, size):
        rows = slice(start, start + size)
        part = _part(bound, rows)
        joint = [np.broadcast_to(_block(replace(row, bound=part)), part.n_rows) for row in each]
        # what is impossible in every category has the density 0
        result[rows] = logsumexp(joint, axis=0)
    return result


def _gate(bound: BoundModel) -> Variable | None:
    """Return the local Categorical that is summed over; refuse every other local variable."""
    local = [variable for variable in bound.latent if bound.is_local(variable)]
    if bound.data_plate is None:
        raise ModelError("a predictive density is one of rows, and the model has no plate with rows of data")
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
                f"together with the global factors. {_SAMPLES}"
            )
        if variable.plates != (bound.data_plate,) or len(local) > 1:
            names = ", ".join(f"'{other.name}'" for other in local)
            raise ModelError(
                f"the predictive density is summed over one local Categorical with a label for each row; the model has "
                f"{names}. {_SAMPLES}"
            )
    partial = bound.gathered(lambda own: own.entries)
    if partial:
        names = ", ".join(f"'{leaf.name}'" for leaf in partial)
        raise ModelError(
            f"the predictive density has no closed form here: vectors of {names} are missing in part. Leave such "
            f"rows out"
        )
    if bound.gathered(lambda own: own.labels):
        raise ModelError(
            f"the predictive density takes labels of '{local[0].name}' for all rows or for none; leave them out"
        )
    return local[0] if local else None


def _check(row: _Row) -> None:
    """Refuse a model in which a term holds two factors."""
    for owner in row.owners:
        for term in row.terms(owner):
            latent = row.latent(term)
            if len(latent) > 1:
                _refuse(owner, term, latent)


def _refuse(owner: Variable, term: Term, latent: Sequence[Operand]) -> NoReturn:
    names = " and ".join(f"'{operand.node.name}'" for operand in latent)
    joint = {"Normal": "NormalGamma", "MultivariateNormal": "NormalWishart"}.get(type(owner).__name__)
    slots = {operand.slot.name for operand in latent if operand.slot is not None}
    advice = f" With a {joint} for both it has one." if joint and "precision" in slots else ""
    raise ModelError(
        f"the predictive density of '{owner.name}' has no closed form: {names}, independent factors of q, meet in "
        f"its term {term}.{advice} {_SAMPLES}"
    )


def _block_rows(row: _Row) -> int:
    """Return how many rows a block has, by the largest message of a row."""
    counted = _told_by_counts(row)
    largest = max([1, *(counts.nnz // row.bound.n_rows for _, counts in counted.values())])
    for variable, factor in row.q.items():
        if not isinstance(factor, PointMass) and variable not in counted:
            own = factor.unknown if isinstance(factor, ClampedFactor) else factor
            largest = max(largest, *(np.size(eta) for eta in own.natural))
    return max(1, _ENTRIES // largest)


def _part(bound: BoundModel, rows: slice) -> BoundModel:
    """Return some of the rows as a binding of their own."""
    plate = bound.data_plate
    assert plate is not None

    def of(node: Any, value: Any) -> Any:
        if plate not in node.plates:
            return value
        return value[(slice(None),) * node.plates.index(plate) + (rows,)]

    def evidence_of(node: Any, own: Evidence) -> Evidence:
        if isinstance(own, Latent):
            return own
        return replace(
            own,
            values=of(node, own.values),
            observed=None if own.observed is None else of(node, own.observed),
        )

    n_rows = len(range(*rows.indices(bound.n_rows)))
    return replace(
        bound,
        evidence={node: evidence_of(node, own) for node, own in bound.evidence.items()},
        sizes={**bound.sizes, plate: n_rows},
        joined={},
    )


def _block(row: _Row) -> Array:
    """Return the log joint densities of rows and their category, shape (rows,) or (1,)."""
    messages: dict[Variable, _Messages] = {}
    counted = _told_by_counts(row)
    total: Array = np.zeros(1)
    for owner in row.owners:
        for term in row.terms(owner):
            latent = row.latent(term)
            if latent and latent[0].node in counted:
                continue
            if latent:
                _tell(row, messages, term, latent[0])
            else:
                total = total + _contract(row, term, ())
        for term in row.zero_terms(owner):
            latent = row.latent(term)
            if latent:
                _tell(row, messages, term, latent[0], _minus_infinity)
            else:
                total = total + _minus_infinity(_contract(row, term, ()))
    for variable, message in messages.items():
        total = total + _gain(row, variable, message)
    for variable, (chosen, counts) in counted.items():
        total = total + _chosen(row, variable, chosen).gain_of_counts(counts)
    return total


def _told_by_counts(row: _Row) -> dict[Variable, tuple[int | None, Any]]:
    """Return the factors that rows tell nothing but sparse counts: place of the gate among their axes, and the counts.

    Their gain is a sum over the counts that are not zero; as messages these would be written out.
    """
    found: dict[Any, list[tuple[int | None, Any]]] = {}
    for term in (term for owner in row.owners for term in row.terms(owner)):
        gate = _gate_axis(row, term)
        for operand in row.latent(term):
            known = [other for other in term.operands if other is not operand and other.node is not row.gate]
            columns = [axis for axis in operand.axes if axis is not gate]
            counts = row.bound.of(known[0].node).values if len(known) == 1 else None
            plain = issparse(counts) and term.coefficient == 1 and list(known[0].axes[1:]) == columns
            place = operand.axes.index(gate) if gate in operand.axes else None
            found.setdefault(operand.node, []).append((place, counts if plain else None))
    return {
        node: told[0]
        for node, told in found.items()
        if len(told) == 1 and told[0][1] is not None and isinstance(row.q[node], Dirichlet)
    }


def _minus_infinity(zeros: Array) -> Array:
    """Return the logarithm of 0 to the power of a count of zeros."""
    return np.where(zeros > 0, -np.inf, 0.0)


def _as_it_is(values: Array) -> Array:
    return values


def _tell(
    row: _Row,
    messages: dict[Variable, _Messages],
    term: Term,
    operand: Operand,
    meaning: Callable[[Array], Array] = _as_it_is,
) -> None:
    """Add what a term says about a global factor: a ``meaning`` of its known side."""
    node: Any = operand.node
    gate = _gate_axis(row, term)
    chosen = operand.axes.index(gate) if gate in operand.axes else _place_along_tie(row, operand)
    message = messages.setdefault(node, _Messages(chosen))
    if message.chosen != chosen:
        raise ModelError(
            f"the predictive density has no closed form here: '{node.name}' stands in it both with and without the "
            f"choice of a category. {_SAMPLES}"
        )
    found = meaning(_contract(row, term, [axis for axis in operand.axes if axis is not gate]))
    if len(node.letters[operand.statistic]) == 2:
        # m_i x_j stands for its symmetric part, which is all that a symmetric statistic sees
        found = 0.5 * (found + np.swapaxes(found, -1, -2))
    before = message.totals.get(operand.statistic)
    message.totals[operand.statistic] = found if before is None else before + found


def _place_along_tie(row: _Row, operand: Operand) -> int | None:
    """Return the place of the plate that the category settles, though a statistic that is shared along it lacks it."""
    expression = None if operand.slot is None else operand.slot.expression
    if not isinstance(expression, Indexed) or expression.by is not row.gate:
        return None
    return expression.node.plates.index(expression.plate)


def _contract(row: _Row, term: Term, axes: Sequence[Axis]) -> Array:
    """Return the known side of a term over (rows, axes...); of length 1 along what it does not vary with."""
    assert row.bound.data_plate is not None
    data, gate = Axis(row.bound.data_plate), _gate_axis(row, term)
    arrays, meanings = [], []
    for array, own in _known(row, term):
        arrays.append(array)
        meanings.append(tuple(_ROW if axis is data else axis for axis in own))
    out: tuple[Hashable, ...] = (_ROW, *axes)
    present = {key for keys in meanings for key in keys}
    coefficient = term.coefficient
    for axis in term.axes:
        if axis not in present and axis not in out and axis is not data and axis is not gate:
            coefficient *= row.bound.size(axis)
    letters = dict(zip(dict.fromkeys((*out, *present)), ascii_letters, strict=False))
    spec = ",".join("".join(letters[key] for key in keys) for keys in meanings)
    spec += "->" + "".join(letters[key] for key in dict.fromkeys(out) if key in present)
    result = coefficient * (np.einsum(spec, *arrays, optimize=len(arrays) > 2) if arrays else np.ones(()))
    result = result[tuple(slice(None) if key in present else None for key in dict.fromkeys(out))]
    if len(set(out)) < len(out):
        # a trace: the derivative by a matrix whose last two axes are one
        size = row.bound.size(axes[-1])
        result = np.broadcast_to(result, (*result.shape[:-1], size))[..., None] * np.eye(size)
    return result


def _gate_axis(row: _Row, term: Term) -> Axis | None:
    """Return the axis along which a term's parents are chosen, which the category settles.

    In the density of the category itself that axis runs over the probabilities it is drawn with.
    """
    return None if row.gate is None or term.owner is row.gate else Axis(row.gate, "k")


def _known(row: _Row, term: Term) -> Iterator[tuple[Array, tuple[Axis, ...]]]:
    """Yield the arrays that a term multiplies, with what their axes mean."""
    owner, gate = term.owner, _gate_axis(row, term)
    for operand in term.operands:
        node: Any = operand.node
        if row.bound.is_known(node):
            array, axes = known_statistic(row.bound, row.measured[0], owner, operand)
        elif node is row.gate:
            if owner is row.gate:
                yield np.eye(node.dimension)[row.category], (Axis(node, "k"),)
            continue
        elif isinstance(row.q.get(node), PointMass):
            array, axes = _at_point(row.q[node], operand), operand.axes
        else:
            continue
        if gate in axes:
            array = np.take(array, row.category or 0, axis=axes.index(gate))
            axes = tuple(axis for axis in axes if axis is not gate)
        yield array, axes
    if row.bound.of(owner).observed is not None:
        observed = Operand(owner, OBSERVED, tuple(Axis(plate) for plate in owner.plates))
        yield known_statistic(row.bound, row.measured[0], owner, observed)


def _at_point(point: PointMass, operand: Operand) -> Array:
    """Return a statistic of a point, or whether the probabilities that it is are zero."""
    if operand.slot is not None and operand.statistic in operand.slot.role.zeros:
        return operand.slot.role.zeros[operand.statistic](np.asarray(point.value))
    return point.expected_statistics[point.family.statistics.index(operand.statistic)]


def _chosen(row: _Row, variable: Variable, place: int | None) -> Any:
    """Return a factor, of the category alone where that chooses along one of its axes."""
    factor = row.q[variable]
    if place is None:
        return factor
    if variable.tied is not None and variable.plates[place] is variable.tied:
        factor = factor.marginals
    return factor[(slice(None),) * place + (row.category,)]


def _gain(row: _Row, variable: Variable, message: _Messages) -> Array:
    """Return what a message adds, summed over the repetitions of a factor, shape (rows or 1,)."""
    factor = _chosen(row, variable, message.chosen)
    if isinstance(factor, PointMass):
        gain = _gain_at(variable, factor.expected_statistics, message)
    elif isinstance(factor, ClampedFactor):
        of_known = _gain_at(variable, factor.expected_statistics, message)
        gain = np.where(factor.is_known, of_known, _gain_under(variable, factor.everywhere(), message))
    else:
        gain = _gain_under(variable, factor, message)
    return gain.reshape(len(gain), -1).sum(axis=-1)


def _gain_under(variable: Variable, factor: Any, message: _Messages) -> Array:
    r"""Return A(eta + T) - A(eta) of each repetition, shape (rows or 1, repetitions...).

    Where the two log-partitions are so large that their difference has few digits, it is told from what has them all,
    :math:`\langle T, \mathrm E t \rangle + \mathrm{KL}(q_\eta \,\|\, q_{\eta + T})`.
    """
    after, events = [], []
    shapes = factor.statistic_shapes(factor.event_shape)
    for name, eta, shape in zip(factor.statistics, factor.natural, shapes, strict=True):
        after.append(eta + message.totals.get(name, np.zeros((1,) * (eta.ndim + 1))))
        events.append(after[-1].ndim - len(shape))
    batch = np.broadcast_shapes(*(eta.shape[:n] for eta, n in zip(after, events, strict=True)))
    full = tuple(np.broadcast_to(eta, batch + eta.shape[n:]) for eta, n in zip(after, events, strict=True))
    extended = type(factor).from_natural(full)
    if np.abs(factor.log_partition).max(initial=0.0) < _CANCELS:
        return extended.log_partition - factor.log_partition
    return _gain_at(variable, factor.expected_statistics, message) + factor.kl(extended)


def _gain_at(variable: Variable, statistics: Statistics, message: _Messages) -> Array:
    """Return the product of T with the statistics of each repetition's value, shape (rows or 1, repetitions...)."""
    total: Array = np.zeros(1)
    for name, statistic in zip(variable.family.statistics, statistics, strict=True):
        if name in message.totals:
            events = tuple(range(-len(variable.letters[name]), 0))
            total = total + (message.totals[name] * statistic).sum(axis=events)
    return total
