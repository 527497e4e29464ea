"""Prediction of the observed variables that are absent from the data of new rows."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..._errors import DataError
from ..._typing import Array
from ...engine.binding.clamped.factor import ClampedFactor, PointMass
from ...engine.binding.clamped.given import belongs_to_rows, refuse_missing_value
from ...engine.binding.clamped.repetitions import is_joint
from ...engine.binding.missing.values import is_told, partial_values
from ...engine.binding.nested import flattened
from ...engine.binding.values import as_values, check_known_slots, check_support
from ...engine.local.gated import Switched
from ...families import JointLabels, LinearGaussianChain
from ...families.shared.shared_factor import SharedFactor
from ...language import Constant, Data, Frequencies, Label, Node, Plate, SecondLabel, Slot, Variable
from ..simulation import check_labels, conditional, known_arrays, settle_sizes
from .expectations import Expectations, Joint, coupled_among, refuse
from .forecasts import forecast_of, heavy_tailed
from .moments import Gates, mixed, shown, weights_for
from .prediction import Prediction


@dataclass(frozen=True)
class _Rows:
    """New rows, and what is known of them.

    Attributes
    ----------
    nodes
        Those of the model.
    known
        Name -> values of known arrays and observed variables.
    partial
        Name -> values of variables that have missing entries, as NaN.
    sizes
        Size of each plate.
    factors
        Name -> global factor.
    local
        Name -> local factor given the observed variables, rows first.
    data_plate
        The plate of the rows.
    joint
        Covariances between global variables; None where they are independent.
    """

    nodes: Sequence[Node]
    known: Mapping[str, Any]
    partial: Mapping[str, Array]
    sizes: Mapping[Plate, int]
    factors: Mapping[str, Any]
    local: Mapping[str, Any]
    data_plate: Plate | None
    joint: Joint | None = None


def predicted(
    nodes: Sequence[Node],
    absent: Sequence[Variable],
    data: Mapping[str, Any],
    factors: Mapping[str, Any],
    local: Mapping[str, Any],
    data_plate: Plate | None,
    joint: Joint | None = None,
) -> dict[str, Prediction]:
    """Return the prediction of each absent variable by name.

    Parameters
    ----------
    nodes
        Those of the model.
    absent
        Observed variables that are missing in the data.
    data
        Name -> known arrays, and the observed variables that are there.
    factors
        Name -> global factor.
    local
        Name -> local factor given ``data``, with the rows as first axis.
    data_plate
        The plate of the rows; it has one where nothing tells how many.
    joint
        Covariances between global variables; None where they are independent.

    Raises
    ------
    ModelError
        If a mean or variance has no closed form: the message says why.
    """
    # a row's own density depends on the state of its step alone
    by_step = {
        name: own.marginals if isinstance(own, LinearGaussianChain) else own for name, own in local.items()
    }
    rows = replace(_rows(nodes, data, factors, by_step, data_plate), joint=joint)
    return {leaf.name: _prediction(leaf, rows) for leaf in absent}


def inferred(leaf: Variable, factor: Any) -> Prediction:
    """Return the prediction of an observed variable that data lack from its local factor given what they have below it.

    Parameters
    ----------
    leaf
        The variable.
    factor
        Its local factor, rows first: a member of its family or :class:`ClampedFactor`; or, of variables that labels of
        the row choose for, :class:`Switched`.
    """
    if isinstance(leaf, Label):
        return Prediction.of_probabilities(np.asarray(factor.probabilities))
    if isinstance(factor, Switched):
        shares, means, sds = (
            factor.probabilities.T,
            *(np.moveaxis(own, 1, 0) for own in _mean_and_sd(factor.conditional)),
        )
        shares = shares.reshape(*shares.shape, *(1,) * (means.ndim - shares.ndim))
    else:
        means, sds = (own[None] for own in _mean_and_sd(factor))
        shares = np.ones_like(means)
    found = Prediction.of_parts(shares, means, sds)
    return replace(found, by_moments=leaf.by_moments)


def _mean_and_sd(factor: Any) -> tuple[Array, Array]:
    """Return mean and standard deviation of every entry; of a number 0 or 1 there is no interval, but a variance."""
    (given,) = factor.entry_marginals((0.25, 0.75))
    return given.mean, np.sqrt(factor.variance) if given.sd is None else given.sd


def _rows(
    nodes: Sequence[Node],
    data: Mapping[str, Any],
    factors: Mapping[str, Any],
    local: Mapping[str, Any],
    data_plate: Plate | None,
) -> _Rows:
    flat = flattened(nodes, data)
    variables = {node.name: node for node in nodes if isinstance(node, Variable)}
    _check_names(nodes, flat.data)
    known = known_arrays(nodes, {name: value for name, value in flat.data.items() if name not in variables})
    shown = {
        name: as_values(variables[name], value, variables[name].value_rank)
        for name, value in flat.data.items()
        # what is known of a joint factor, a pair, its factor holds
        if name in variables and not is_joint(variables[name])
    }
    means = {name: factor.mean for name, factor in factors.items() if name in variables and name not in shown}
    fewest = {data_plate: 1, **flat.fewest} if data_plate is not None else flat.fewest
    sizes = settle_sizes(nodes, {}, {**known, **shown, **means}, fewest)
    check_labels(nodes, known, sizes)
    values = {n: n.value if isinstance(n, Constant) else known[n.name] for n in nodes if n.is_known}
    for variable in variables.values():
        check_known_slots(variable, values, sizes)
    # a value that is missing in part tells nothing by itself: its local factor does
    complete = {name: value for name, value in shown.items() if not np.isnan(value).any()}
    for name, value in complete.items():
        check_support(variables[name], value)
        if isinstance(variables[name], Label):
            complete[name] = value.astype(np.intp)
    partial = {name: value for name, value in shown.items() if name not in complete}
    return _Rows(nodes, {**known, **complete}, partial, sizes, factors, local, data_plate)


def _check_names(nodes: Sequence[Node], data: Mapping[str, Any]) -> None:
    names = [node.name for node in nodes if isinstance(node, Data | Variable)]
    for name in data:
        if name not in names:
            has = ", ".join(f"'{other}'" for other in names)
            raise DataError(
                f"the data have '{name}', but the model has no variable of that name; it has {has}"
            )


def _prediction(leaf: Variable, rows: _Rows) -> Prediction:
    shape = tuple(rows.sizes[plate] for plate in leaf.plates)

    def full(array: Array) -> Array:
        wide = np.broadcast_to(array, shape + array.shape[len(shape) :])
        first = rows.data_plate in leaf.plates
        return np.array(np.moveaxis(wide, leaf.plates.index(rows.data_plate), 0) if first else wide)

    whole, parts = [], []
    for weight, own_rows in _cases(rows):
        gates, factors = _parents(leaf, leaf, own_rows)
        _check_apart(leaf, factors, gates, own_rows)
        given, finer = shown(leaf, own_rows.known, factors, gates, rows.joint)
        whole += [(weight * share, *own) for share, *own in given]
        parts += [(weight * share, *own) for share, *own in finer]
    mean, variance = mixed(whole, len(leaf.plates))
    of_parts = tuple((full(weight), full(own), np.sqrt(full(spread))) for weight, own, spread in parts)
    return Prediction(full(mean), np.sqrt(full(variance)), of_parts, leaf.by_moments, isinstance(leaf, Label))


def _cases(rows: _Rows) -> Iterator[tuple[float, _Rows]]:
    """Yield the probability of each category of global labels that share factors, and the rows given these."""
    shared = {own.name: own for own in rows.factors.values() if isinstance(own, SharedFactor)}
    for several in itertools.product(*(own.cases() for own in shared.values())):
        weight, known, factors = 1.0, dict(rows.known), dict(rows.factors)
        for own, labels, given in several:
            weight *= own
            known |= {name: np.asarray(label) for name, label in labels.items()}
            factors |= given
        yield weight, replace(rows, known=known, factors=factors)


def _parents(variable: Variable, leaf: Variable, rows: _Rows) -> tuple[Gates, dict[str, Any]]:
    """Return the probabilities of the labels that choose the parents of a variable, and the distributions of these."""
    labels = [gate for gate in variable.chosen_by if gate.name not in rows.known]
    gates: dict[tuple[Variable | SecondLabel, ...], Array] = {}
    for together in _sharing_factors(labels, rows):
        weights = _weights_together(together, leaf, rows)
        gates[together] = weights_for(weights, variable.chosen_by[together[0]], variable, rows.known)
        for second in (variable.second_labels.get(own) for own in together):
            if second is not None:
                gates[(second,)] = weights_for(weights, second.chosen, variable, rows.known)
    factors = {
        parent.name: _factor(parent, leaf, rows)
        for parent in variable.drawn_given
        if isinstance(parent, Variable) and parent not in labels and parent.name not in rows.known
    }
    shared = coupled_among(rows.factors)
    return gates, factors | {own.name: own for name, own in shared.items() if name in factors}


def _check_apart(leaf: Variable, factors: Mapping[str, Any], gates: Gates, rows: _Rows) -> None:
    """Refuse a leaf that depends on a forecast and, by another way, on what that is made from: these are correlated."""
    above: dict[str, str] = {}
    labels = ([gate for gate in several if isinstance(gate, Variable)] for several in gates)
    for first, *rest in (several for several in labels if several):
        for name in {first.name}.union(*({gate.name, *_hidden_above(gate, rows)} for gate in (first, *rest))):
            if above.setdefault(name, first.name) != first.name:
                refuse(leaf, f"'{first.name}' and '{above[name]}', which choose for it, are not independent")
    for parent in leaf.drawn_given:
        if not isinstance(parent, Variable) or parent.name not in factors:
            continue
        for name in {parent.name, *_hidden_above(parent, rows)}:
            if above.setdefault(name, parent.name) != parent.name:
                refuse(
                    leaf, f"it depends on '{name}' both directly and through a local without an observation"
                )


def _hidden_above(variable: Variable, rows: _Rows) -> set[str]:
    """Return the names of the variables from which a local variable without an observation below it is forecast."""
    if variable.name in rows.factors or variable.name in rows.local:
        return set()
    hidden = [p for p in variable.drawn_given if isinstance(p, Variable) and p.name not in rows.known]
    return {parent.name for parent in hidden}.union(*(_hidden_above(parent, rows) for parent in hidden))


def _factor(variable: Variable, leaf: Variable, rows: _Rows) -> Any:
    """Return the distribution of a parent: its factor, or a forecast where nothing was observed below it."""
    if variable.name in rows.factors:
        return rows.factors[variable.name]
    if variable.name in rows.partial and variable.name not in rows.local:
        return _known_in_part(variable, leaf, rows)
    if variable.name in rows.local:
        factor = rows.local[variable.name]
        if isinstance(factor, Switched):
            refuse(leaf, f"the local '{variable.name}' has a factor for each category of another variable")
        return _in_order_of_plates(factor, variable, rows.data_plate)
    if not belongs_to_rows(variable, rows.data_plate):
        refuse_missing_value(variable.name)
    if variable.summed:
        refuse(leaf, f"the state '{variable.name}' of each row depends on its neighbours")
    if isinstance(variable, Frequencies) and variable.labels.name in rows.local:
        return variable.of_labels(_weights(variable.labels, leaf, rows), rows.known)
    sizes = tuple(rows.sizes[plate] for plate in variable.plates)
    if any(not isinstance(p, Constant) and p.name not in rows.known for p in variable.drawn_given):
        gates, factors = _parents(variable, leaf, rows)
        told = forecast_of(variable, rows.nodes, rows.known, factors, gates)
        if told is not None and not told[1].all():
            heavy = heavy_tailed(variable, rows.known, factors, gates)
            told = told if heavy is None else (heavy, np.ones(()))
        if told is None or not told[1].all():
            refuse(
                leaf,
                f"the local '{variable.name}' has no observation in these rows, and its forecast no finite variance"
                if told is not None
                else f"the local '{variable.name}' has no observation in these rows, and its forecast no closed form",
            )
        return told[0].broadcast_to(sizes)
    prior = conditional(variable, rows.known)
    if all(plate.within is None or plate.within not in variable.plates for plate in leaf.plates):
        return prior
    # one for each outer repetition, which those within it choose by number
    shapes = prior.statistic_shapes(prior.event_shape)
    natural = (np.broadcast_to(eta, sizes + own) for eta, own in zip(prior.natural, shapes, strict=True))
    return type(prior).from_natural(tuple(natural))


def _known_in_part(variable: Variable, leaf: Variable, rows: _Rows) -> Any:
    """Return the distribution of a parent with nothing observed below it: a forecast, and a point where it is known."""
    values = partial_values(variable, rows.partial[variable.name])
    unknown = _factor(variable, leaf, _without(variable, rows))
    if values is None:
        return unknown
    unknown = unknown.broadcast_to(tuple(rows.sizes[plate] for plate in variable.plates))
    is_known = is_told(variable, values)
    return ClampedFactor(unknown[~is_known], PointMass.of(variable, values[is_known]), is_known)


def _without(variable: Variable, rows: _Rows) -> _Rows:
    """Return rows of which no value of a variable is known."""
    return replace(rows, partial={name: own for name, own in rows.partial.items() if name != variable.name})


def _in_order_of_plates(factor: Any, variable: Variable, data_plate: Plate | None) -> Any:
    """Return a local factor, whose first axis is that of the rows, with its axes in the order of the plates."""
    if data_plate not in variable.plates or variable.plates[0] is data_plate:
        return factor
    where = variable.plates.index(data_plate)
    if isinstance(factor, ClampedFactor):
        order = np.moveaxis(np.arange(factor.is_known.size).reshape(factor.is_known.shape), 0, where)
        return factor[np.unravel_index(order, factor.is_known.shape)]
    return type(factor).from_natural(tuple(np.moveaxis(array, 0, where) for array in factor.natural))


def _sharing_factors(labels: Sequence[Variable], rows: _Rows) -> list[tuple[Variable, ...]]:
    """Return labels, those that share a local factor together, and forecasts after what chooses for them."""
    factors = [rows.local.get(label.name) for label in labels]
    shared = [own.names for own in factors if isinstance(own, JointLabels)]
    groups: dict[object, list[Variable]] = {}
    follows = {label: _chooser(label, rows) for label in labels}
    for label in sorted(labels, key=lambda own: follows[own] in labels):
        chooser = follows[label]
        first = label if chooser is None or chooser not in labels else chooser
        names = next((own for own in shared if first.name in own), first.name)
        groups.setdefault(names, []).append(label)
    return [tuple(group) for group in groups.values()]


def _chooser(label: Variable, rows: _Rows) -> Variable | None:
    """Return the hidden label that chooses the probabilities of a label without an observation below it, if any."""
    if label.name in rows.local or label.name in rows.factors or label.summed:
        return None
    return next((gate for gate in label.chosen_by if gate.name not in rows.known), None)


def _weights_together(labels: tuple[Variable, ...], leaf: Variable, rows: _Rows) -> Array:
    """Return the probabilities of labels that share a local factor, over their plates, (plates..., K, ...)."""
    first = [label for label in labels if _chooser(label, rows) not in labels]
    if len(first) == 1:
        weights = _weights(first[0], leaf, rows)
    else:
        # a chain has a path; each label beside it knows their joint
        factors = (rows.local.get(label.name) for label in first)
        joint = next(own for own in factors if isinstance(own, JointLabels))
        weights = joint.of(*(label.name for label in first))
    for label in labels[len(first) :]:
        chooser = _chooser(label, rows)
        assert chooser is not None
        given = np.stack(_weights_given(label, chooser, leaf, rows), axis=-2)
        place = labels.index(chooser)
        ones = [1] * (weights.ndim - len(chooser.plates))
        ones[place] = given.shape[-2]
        weights = weights[..., None] * given.reshape(*given.shape[:-2], *ones, given.shape[-1])
    return weights


def _weights(gate: Variable, leaf: Variable, rows: _Rows) -> Array:
    """Return the probabilities of a latent Categorical: given what was observed of the row, or expected before that."""
    if gate.name in rows.partial and gate.name not in rows.local:
        labels = partial_values(gate, rows.partial[gate.name])
        assert labels is not None
        unknown = _weights(gate, leaf, _without(gate, rows))
        return np.where(is_told(gate, labels)[..., None], np.eye(unknown.shape[-1])[labels], unknown)
    if gate.name in rows.local or gate.name in rows.factors:
        if gate.name not in rows.local:
            factor = rows.factors[gate.name]
            return factor.each(lambda q: q.probabilities, lambda point: point.expected_statistics[0])
        found: Any = rows.local[gate.name]
        if isinstance(found, Switched):
            refuse(leaf, f"the local '{gate.name}' has a factor for each category of another variable")
        weights = np.asarray(found.probabilities)
        if rows.data_plate in gate.plates:
            weights = np.moveaxis(weights, 0, gate.plates.index(rows.data_plate))
        return weights
    if gate.summed or not isinstance(gate, Label):
        refuse(leaf, f"the state '{gate.name}' of each row depends on its neighbours")
    if "probabilities" not in gate.slots:
        # a predictor for each category
        hidden = [p for p in gate.drawn_given if isinstance(p, Variable) and p.name not in rows.known]
        factors = {parent.name: _factor(parent, leaf, rows) for parent in hidden}
        return gate.moments_given(Expectations(gate, rows.known, factors))[0]
    (slot,) = gate.slots.values()
    if isinstance(slot.index, Variable) and slot.index.name not in rows.known:
        return _weights_chosen(gate, slot, leaf, rows)
    return _weights_before(gate, slot, leaf, rows)


def _weights_chosen(gate: Variable, slot: Slot, leaf: Variable, rows: _Rows) -> Array:
    """Return the probabilities of a Categorical, averaged over the latent Categorical that chooses them."""
    chooser = slot.index
    assert isinstance(chooser, Variable)
    if chooser.name not in rows.local or chooser.plates != gate.plates:
        refuse(leaf, f"the probabilities of '{gate.name}' are chosen by the latent '{chooser.name}'")
    shares, given = _weights(chooser, leaf, rows), _weights_given(gate, chooser, leaf, rows)
    return np.asarray(sum(shares[..., category, None] * own for category, own in enumerate(given)))


def _weights_given(gate: Variable, chooser: Variable, leaf: Variable, rows: _Rows) -> list[Array]:
    """Return the probabilities of a Categorical before anything is observed, for each category of what chooses them."""
    (slot,) = gate.slots.values()
    shape = tuple(rows.sizes[plate] for plate in chooser.plates)
    held = (np.full(shape, category) for category in range(chooser.dimension or 1))
    known = ({**rows.known, chooser.name: own} for own in held)
    return [_weights_before(gate, slot, leaf, replace(rows, known=own)) for own in known]


def _weights_before(gate: Variable, slot: Slot, leaf: Variable, rows: _Rows) -> Array:
    """Return the expected probabilities of a Categorical before anything in the row is observed."""
    parent, factors = slot.node, {}
    if isinstance(parent, Variable) and parent.name not in rows.known:
        factors[parent.name] = _factor(parent, leaf, rows)
    return Expectations(gate, rows.known, factors).entries("probabilities")[0]
