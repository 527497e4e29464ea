r"""Predictive densities: the density of new rows under q, where it is closed.

Given its parents, a row's log density is a sum of terms. Where each term holds at most one factor
:math:`q(\theta)`, they add up to :math:`\langle T(x), t(\theta) \rangle + C(x)`, and

.. math:: \log p(x) = \log \mathrm E_q\, e^{\langle T, t(\theta) \rangle} + C = A(\eta + T) - A(\eta) + C

is one formula for every family: A is its log-partition, :math:`\eta` the natural parameter of q. A local Categorical
is summed over: each of its categories is a row of the same kind, with the category known.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from string import ascii_letters
from typing import Any, NoReturn

import numpy as np
from scipy.special import logsumexp

from .._errors import ModelError
from .._typing import Array
from ..language import Axis, Operand, Term, Variable, base_terms_of, terms_of
from .binding import Binding
from .frame import Frame
from .known import known_statistic
from .missing import OBSERVED
from .point import PointMass

__all__ = ["log_predictive"]

_ENTRIES = 2**18
"""Numbers of the largest statistic that one block of rows makes."""

_ROW = "row"
_CATEGORY = "category"
"""Keys of the two axes that every message has: rows, and the categories of the local Categorical."""

_SAMPLES = "posterior.predictive(...) draws from it."


@dataclass
class _Messages:
    """What a row tells one global factor: by statistic, of shape (rows, categories, plates of the factor..., event)."""

    chosen: Axis | None
    """The axis of the factor that the local Categorical chooses from: its own is then that of the categories."""
    totals: dict[str, Array] = field(default_factory=dict)


@dataclass(frozen=True)
class _Row:
    """A model whose rows have a closed predictive density.

    Attributes
    ----------
    binding, frame
        The rows, and the points they are measured from.
    q
        The global factors, measured from the same points.
    gate
        The local Categorical, if any.
    """

    binding: Binding
    frame: Frame
    q: Mapping[Variable, Any]
    gate: Variable | None

    @property
    def owners(self) -> list[Variable]:
        """The variables whose densities a row multiplies; what is observed once for all rows is no part of one."""
        observed = [variable for variable in self.binding.observed if self.binding.is_local(variable)]
        return [*observed, *([] if self.gate is None else [self.gate])]

    def terms(self, owner: Variable) -> Sequence[Term]:
        """Return the terms of a variable's log density, of an observed one with its base measure."""
        return terms_of(owner) if owner is self.gate else (*terms_of(owner), *base_terms_of(owner))

    def latent(self, term: Term) -> list[Operand]:
        """Return the operands that q leaves open: neither known, nor a point, nor the category."""
        return [
            operand
            for operand in term.operands
            if operand.node not in self.binding.values
            and operand.node is not self.gate
            and not isinstance(self.q.get(operand.node), PointMass)  # type: ignore[arg-type]
        ]


def log_predictive(binding: Binding, frame: Frame, q: Mapping[Variable, Any]) -> Array:
    """Return the log density of each row under q, shape (rows,).

    Parameters
    ----------
    binding
        The model with the rows.
    frame
        Reference points of the locations.
    q
        Global factors, measured from these.

    Raises
    ------
    ModelError
        If it has no closed form; the message says what stands in the way.
    """
    row = _Row(binding, frame, q, _gate(binding))
    _check(row)
    result = np.empty(binding.n_rows)
    for start in range(0, binding.n_rows, size := _block_rows(row)):
        rows = slice(start, start + size)
        result[rows] = _block(replace(row, binding=_part(binding, rows)))
    return result


def _gate(binding: Binding) -> Variable | None:
    """Return the local Categorical that is summed over; refuse every other local variable."""
    local = [variable for variable in binding.latent if binding.is_local(variable)]
    if binding.data_plate is None:
        raise ModelError("a predictive density is one of rows, and the model has no plate with rows of data")
    for variable in local:
        kind = f"{type(variable).__name__} '{variable.name}'"
        if variable.summed:
            raise ModelError(
                f"the rows of the {kind} depend on their neighbours, so no row has a predictive density by itself. "
                f"{_SAMPLES}"
            )
        if not hasattr(variable, "categories"):
            raise ModelError(
                f"the predictive density has no closed form: the local {kind} would have to be integrated out "
                f"together with the global factors. {_SAMPLES}"
            )
        if variable.plates != (binding.data_plate,) or len(local) > 1:
            names = ", ".join(f"'{other.name}'" for other in local)
            raise ModelError(
                f"the predictive density is summed over one local Categorical with a label for each row; the model has "
                f"{names}. {_SAMPLES}"
            )
    if binding.labels:
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
    categories = (row.gate.dimension or 1) if row.gate is not None else 1
    largest = 1
    for factor in row.q.values():
        if not isinstance(factor, PointMass):
            largest = max(largest, *(np.size(eta) for eta in factor.natural))
    return max(1, _ENTRIES // (largest * categories))


def _part(binding: Binding, rows: slice) -> Binding:
    """Return some of the rows as a binding of their own."""
    plate = binding.data_plate
    assert plate is not None

    def of(node: Any, value: Any) -> Any:
        if plate not in node.plates:
            return value
        return value[(slice(None),) * node.plates.index(plate) + (rows,)]

    n_rows = len(range(*rows.indices(binding.n_rows)))
    return replace(
        binding,
        values={node: of(node, value) for node, value in binding.values.items()},
        masks={node: of(node, value) for node, value in binding.masks.items()},
        sizes={**binding.sizes, plate: n_rows},
    )


def _block(row: _Row) -> Array:
    """Return the log densities of the rows of a block."""
    messages: dict[Variable, _Messages] = {}
    constant: Array = np.zeros((1, 1))
    for owner in row.owners:
        for term in row.terms(owner):
            latent = row.latent(term)
            if not latent:
                constant = constant + _contract(row, term, ())
                continue
            (operand,) = latent
            assert isinstance(operand.node, Variable)
            _tell(row, messages, term, operand)
    total = constant + sum(_gain(row, variable, message) for variable, message in messages.items())
    by_category = np.broadcast_to(total, (row.binding.n_rows, total.shape[1]))
    return np.asarray(logsumexp(by_category, axis=1))


def _tell(row: _Row, messages: dict[Variable, _Messages], term: Term, operand: Operand) -> None:
    """Add what a term says about a global factor."""
    node: Any = operand.node
    gate_axis = None if row.gate is None or term.owner is row.gate else Axis(row.gate, "k")
    chosen = gate_axis if gate_axis in operand.axes else None
    message = messages.setdefault(node, _Messages(chosen))
    if message.chosen is not chosen:
        raise ModelError(
            f"the predictive density has no closed form here: '{node.name}' stands in it both with and without the "
            f"choice of a category. {_SAMPLES}"
        )
    axes = tuple(axis for axis in operand.axes if axis is not chosen)
    found = _contract(row, term, axes)
    if len(node.letters[operand.statistic]) == 2:
        # m_i x_j stands for its symmetric part, which is all that a symmetric statistic sees
        found = 0.5 * (found + np.swapaxes(found, -1, -2))
    before = message.totals.get(operand.statistic)
    message.totals[operand.statistic] = found if before is None else before + found


def _contract(row: _Row, term: Term, axes: Sequence[Axis]) -> Array:
    """Return the known side of a term over (rows, categories, axes...); length 1 where it varies along none of it."""
    arrays, meanings = [], []
    for array, known_axes in _known(row, term):
        arrays.append(array)
        meanings.append(tuple(_meaning(row, term, axis) for axis in known_axes))
    out = (_ROW, _CATEGORY, *(_meaning(row, term, axis) for axis in axes))
    present = {key for keys in meanings for key in keys}
    coefficient = term.coefficient
    for axis in term.axes:
        if (key := _meaning(row, term, axis)) not in present and key not in out:
            coefficient *= row.binding.size(axis)
    letters: dict[Hashable, str] = dict(zip(dict.fromkeys((*out, *present)), ascii_letters, strict=False))
    kept = [key for key in dict.fromkeys(out) if key in present]
    spec = ",".join("".join(letters[key] for key in keys) for keys in meanings)
    spec += "->" + "".join(letters[key] for key in kept)
    result = coefficient * (np.einsum(spec, *arrays, optimize=len(arrays) > 2) if arrays else np.ones(()))
    result = result[tuple(slice(None) if key in present else None for key in dict.fromkeys(out))]
    if len(set(out)) < len(out):
        # a trace: the derivative by a matrix whose last two axes are one
        size = row.binding.size(axes[-1])
        result = np.broadcast_to(result, (*result.shape[:-1], size))[..., None] * np.eye(size)
    return result


def _meaning(row: _Row, term: Term, axis: Hashable) -> Hashable:
    """Return the key of an axis: rows and categories have keys of their own."""
    if row.binding.data_plate is not None and axis is Axis(row.binding.data_plate):
        return _ROW
    # in the density of the category itself, k runs over the probabilities it is drawn with
    if row.gate is not None and term.owner is not row.gate and axis is Axis(row.gate, "k"):
        return _CATEGORY
    return axis


def _known(row: _Row, term: Term) -> Iterator[tuple[Array, tuple[Hashable, ...]]]:
    """Yield the arrays that a term multiplies, with the keys of their axes; given the category, its label is known."""
    owner = term.owner
    for operand in term.operands:
        node: Any = operand.node
        if node in row.binding.values:
            yield known_statistic(row.binding, row.frame, owner, operand)
        elif node is row.gate:
            if owner is row.gate:
                yield np.eye(node.dimension), (_CATEGORY, Axis(node, "k"))
        elif isinstance(row.q.get(node), PointMass):
            place = node.family.statistics.index(operand.statistic)
            yield row.q[node].expected_statistics[place], operand.axes
    if owner in row.binding.masks:
        observed = Operand(owner, OBSERVED, tuple(Axis(plate) for plate in owner.plates))
        yield known_statistic(row.binding, row.frame, owner, observed)


def _gain(row: _Row, variable: Variable, message: _Messages) -> Array:
    """Return A(eta + T) - A(eta) summed over the repetitions of a factor, shape (rows or 1, categories or 1)."""
    factor = row.q[variable]
    plate = None if message.chosen is None else _plate_of(row, variable)
    natural, told = [], []
    n_plates = len(variable.plates) - (plate is not None)
    for name, eta in zip(variable.family.statistics, factor.natural, strict=True):
        n_events = len(variable.letters[name])
        own = _category_first(eta, plate)
        told.append(own + message.totals.get(name, 0.0))
        natural.append((own, n_events))
    batch = np.broadcast_shapes(*(t.shape[: t.ndim - n] for t, (_, n) in zip(told, natural, strict=True)))
    full = tuple(
        np.broadcast_to(t, batch + t.shape[t.ndim - n :]) for t, (_, n) in zip(told, natural, strict=True)
    )
    after = variable.family.from_natural(full).log_partition
    gain = after - _category_first(factor.log_partition, plate)
    return gain.reshape(*gain.shape[:2], -1).sum(axis=-1) if n_plates else gain


def _plate_of(row: _Row, variable: Variable) -> int:
    """Return the place among a factor's plates of the one that the category chooses from."""
    for owner in row.binding.observed:
        for slot in owner.slots.values():
            if slot.node is variable and slot.index is row.gate:
                return variable.plates.index(slot.expression.plate)  # type: ignore[union-attr]
    raise AssertionError(variable)


def _category_first(array: Array, plate: int | None) -> Array:
    """Return an array over a factor's plates with the axes of rows and of categories in front."""
    return np.moveaxis(array, plate, 0)[None] if plate is not None else array[None, None]
