"""Ancestral simulation: every variable drawn given values of its parents; and the log joint density of such values.

Nothing here knows of terms or contractions: distributions are the members of the families themselves, so that the
engine can be checked against it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.sparse import issparse

from .._errors import DataError, ImproperError, ModelError, ParameterError, PlateError
from .._typing import AnyArray, Array
from ..engine.binding.missing.values import filled
from ..engine.binding.nested import flattened
from ..engine.binding.values import as_values
from ..families import ExponentialFamily, MeanPrecision, TiedNormalGamma, TiedNormalWishart
from ..language import (
    Constant,
    Data,
    Label,
    Node,
    Plate,
    Variable,
    nodes_above,
)
from ..language.nodes.roles import labels_of
from ..language.replication import replicated
from ..language.values_in_slots import stated_value
from ..numerics.arguments import require_whole


def simulate(
    nodes: Sequence[Node],
    rng: np.random.Generator,
    sizes: Mapping[str, int],
    data: Mapping[str, Any],
    given: Mapping[str, Any],
) -> dict[str, Any]:
    """Return a value of every variable by name: those in ``given`` as they are, the others drawn, parents first."""
    for argument, value in (("sizes", sizes), ("data", data), ("given", given)):
        if not isinstance(value, Mapping):
            told = repr(value) if isinstance(value, str | int | float) else type(value).__name__
            raise ParameterError(f"{argument}= must be a mapping from names to values; got {told}")
    variables = [node for node in nodes if isinstance(node, Variable)]
    flat = flattened(nodes, data)
    known = known_arrays(nodes, flat.data)
    held = _held_values(variables, given)
    shapes = settle_sizes(nodes, sizes, {**known, **held}, flat.fewest)
    check_labels(nodes, known, shapes)
    values = {**known, **held}
    for variable in parents_first(variables):
        if variable.name not in held:
            values[variable.name] = _draw(variable, values, shapes, rng)
    return {variable.name: values[variable.name] for variable in variables}


def log_joint(
    nodes: Sequence[Node], values: Mapping[str, Any], counted: Mapping[str, AnyArray] | None = None
) -> float:
    """Return the log density of values of all variables, each family's own; a flat prior has density 1.

    Of a variable that is ``counted`` the repetitions that are marked, shape (plates...).
    """
    total = 0.0
    for name, density in log_densities(nodes, values).items():
        marked = (counted or {}).get(name)
        total += float(np.sum(density if marked is None else density[marked]))
    return total


def log_densities(
    nodes: Sequence[Node], values: Mapping[str, Any], of: Sequence[str] | None = None
) -> dict[str, AnyArray]:
    """Return the log density of each variable given its parents, shape (plates...), by name; none of a flat prior.

    ``of`` names the variables that are wanted; None: all.
    """
    if not isinstance(values, Mapping):
        raise ParameterError(
            f"values must be a mapping from the name of each variable to its value; got {values!r}"
        )
    missing = [n.name for n in nodes if not isinstance(n, Constant) and n.name not in values]
    if missing:
        raise DataError(f"the log joint density needs a value of every variable; add '{missing[0]}'")
    read = {
        **known_arrays(nodes, {n.name: values[n.name] for n in nodes if isinstance(n, Data)}),
        **_held_values(
            [n for n in nodes if isinstance(n, Variable)],
            {n.name: values[n.name] for n in nodes if isinstance(n, Variable)},
        ),
    }
    flat = flattened(nodes, {name: value for name, value in values.items() if not isinstance(value, tuple)})
    sizes = settle_sizes(nodes, {}, read, flat.fewest)
    check_labels(nodes, read, sizes)
    found: dict[str, AnyArray] = {}
    for variable in nodes:
        is_wanted = of is None or variable.name in of
        if is_wanted and isinstance(variable, Variable) and not variable.is_flat:
            member = _over_plates(variable, conditional(variable, read), sizes)
            found[variable.name] = np.asarray(member.log_density(read[variable.name]))
    return found


def conditional(variable: Variable, values: Mapping[str, Any]) -> ExponentialFamily:
    """Return the distribution of a variable given values of its parents.

    Its batch has an axis for each plate of the variable, of length 1 where nothing varies along it.

    Raises
    ------
    ImproperError
        If it does not exist: the message names the variable.
    """
    depends_on = variable.stated_given(values.keys())
    slots = {
        name: stated_value(owner, slot, stated, values) for name, (owner, slot, stated) in depends_on.items()
    }
    try:
        return variable.distribution_given(slots)
    except ParameterError as error:
        raise ImproperError(
            f"'{variable.name}' has no proper distribution to draw from: {error} Give it a proper prior, or its "
            f"values with given={{'{variable.name}': ...}}."
        ) from error


def _draw(
    variable: Variable, values: Mapping[str, Any], sizes: Mapping[Plate, int], rng: np.random.Generator
) -> Any:
    if variable.floor is not None:
        raise ModelError(
            f"'{variable.name}' is restricted by smallest_variance, and values of a restricted "
            f"{type(variable).__name__} cannot be drawn; give its values with given={{'{variable.name}': ...}}"
        )
    return _over_plates(variable, conditional(variable, values), sizes).sample(None, rng)


def _over_plates(
    variable: Variable, member: ExponentialFamily, sizes: Mapping[Plate, int]
) -> ExponentialFamily:
    """Return the distributions repeated along every plate of the variable."""
    if variable.tied is not None and isinstance(member, TiedNormalGamma | TiedNormalWishart):
        member = member.repeated(sizes[variable.tied])
    repeats = [
        np.arange(sizes[plate]) if length > 1 else np.zeros(sizes[plate], dtype=np.intp)
        for plate, length in zip(variable.batch_plates, member.batch_shape, strict=True)
    ]
    return member[np.ix_(*repeats)] if repeats else member


def parents_first(variables: Sequence[Variable]) -> list[Variable]:
    """Return variables and what they depend on, each after its parents."""
    found: dict[str, Variable] = {}
    for variable in variables:
        _visit(variable, found)
    return list(found.values())


def _visit(variable: Variable, found: dict[str, Variable]) -> None:
    """Add what a variable depends on to what was found, and then the variable."""
    if variable.name in found:
        return
    for parent in variable.drawn_given:
        if isinstance(parent, Variable):
            _visit(parent, found)
    found[variable.name] = variable


def known_arrays(nodes: Sequence[Node], data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of the Data of a model, checked."""
    declared = {node.name: node for node in nodes if isinstance(node, Data)}
    for name in data:
        if name not in declared:
            has = ", ".join(f"'{known}'" for known in declared) or "none"
            raise DataError(
                f"data= takes the known arrays of the model (Data; it has {has}); got '{name}'. Values of a variable "
                f"are held fixed with given="
            )
    for name in declared:
        if name not in data:
            raise DataError(f"the data lack '{name}', a known array of the model; pass {{'{name}': array}}")
    slots = [slot for node in nodes if isinstance(node, Variable) for slot in node.slots.values()]
    ranks = {slot.node: slot.role.rank for slot in slots}
    known: dict[str, Any] = {}
    for name, node in declared.items():
        rank = ranks.get(node, 0)
        known[name], _ = filled(node, as_values(node, data[name], rank), rank)
    return known


def check_labels(nodes: Sequence[Node], values: dict[str, Any], sizes: Mapping[Plate, int]) -> None:
    """Check known labels against the sizes of the plates that they choose from, and make them whole numbers."""
    slots = (slot for node in nodes if isinstance(node, Variable) for slot in node.slots.values())
    for slot in slots:
        for chosen in slot.choices:
            name = chosen.by.name
            problem = labels_of(sizes[chosen.plate]).problem(np.asarray(values[name]))
            if problem:
                raise DataError(f"the data of '{name}', which choose from a plate, {problem}")
            values[name] = np.asarray(values[name]).astype(np.intp)


def _held_values(variables: Sequence[Variable], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that are held fixed as arrays, or as pairs of arrays for joint factors."""
    by_name = {variable.name: variable for variable in variables}
    held: dict[str, Any] = {}
    for name, value in given.items():
        if name not in by_name:
            has = ", ".join(f"'{known}'" for known in by_name)
            raise ParameterError(f"given= names '{name}', which is not a variable of the model; it has {has}")
        variable = by_name[name]
        if "precision" in variable.family.statistics:
            held[name] = _as_pair(variable, value)
            continue
        # what is drawn given it, and its density, are of single rows written out
        held[name] = _as_numbers(variable, value.toarray() if issparse(value) else value)
        rank = len(variable.plates) + variable.value_rank
        if held[name].ndim != rank:
            axes = "axis" if rank == 1 else "axes"
            raise PlateError(
                f"'{name}' must have {rank} {axes} (its plates, then its event); got shape {held[name].shape}"
            )
        if held[name].size == 0:
            raise ParameterError(f"the given '{name}' is empty: shape {held[name].shape}")
        # other values off their support have density zero; labels off theirs would choose a wrong row
        problem = variable.problem_with(held[name]) if isinstance(variable, Label) else ""
        if problem:
            raise ParameterError(f"the given '{name}', a {type(variable).__name__}, {problem}")
    return held


def _as_numbers(variable: Variable, value: Any) -> AnyArray:
    """Return a value that is held fixed as an array of real numbers."""
    try:
        array = np.asarray(value)
    except ValueError:
        array = np.empty(0, dtype=object)
    if array.dtype.kind not in "biuf":
        raise ParameterError(f"the given '{variable.name}' must be an array of real numbers; got {value!r}")
    return array


def _as_pair(variable: Variable, value: Any) -> MeanPrecision:
    """Return a value of a joint factor as (mean, precision)."""
    rank, n_precisions = len(variable.plates), len(variable.plates_of("precision"))
    pair = tuple(_as_numbers(variable, part) for part in value) if isinstance(value, tuple) else ()
    if [part.ndim for part in pair] != [rank + variable.value_rank, n_precisions + variable.precision_rank]:
        raise ParameterError(
            f"a value of {variable.in_words}, is a pair (mean, precision), each over its "
            f"plates; got {value!r}"
        )
    return MeanPrecision(*pair)


def settle_sizes(
    nodes: Sequence[Node], sizes: Mapping[str, int], values: Mapping[str, Any], fewest: Mapping[Plate, int]
) -> dict[Plate, int]:
    """Return the size of each plate: declared, asked for, that of a known value, or the ``fewest`` of an outer plate.

    Raises
    ------
    PlateError
        If one is unknown, or two disagree: the message names the plate.
    """
    plates = {plate.name: plate for node in nodes for plate in node.plates}
    settled: dict[Plate, int] = {}
    told_by: dict[Plate, str] = {}

    def tell(plate: Plate, size: int, by: str) -> None:
        if settled.setdefault(plate, size) != size:
            raise PlateError(
                f"plate '{plate.name}' has size {size} in {by} but {settled[plate]} in {told_by[plate]}"
            )
        told_by.setdefault(plate, by)

    for plate in plates.values():
        if plate.size is not None:
            tell(plate, plate.size, "its declaration")
    for name, size in sizes.items():
        if name not in plates:
            has = ", ".join(f"'{known}'" for known in plates) or "none"
            raise PlateError(f"sizes= names plate '{name}', but the model has {has}")
        tell(plates[name], Plate(name, size).size or 0, "sizes=")
    for node in nodes:
        value = node.value if isinstance(node, Constant) else values.get(node.name)
        if value is not None:
            first = value[0] if isinstance(value, tuple) else value
            for plate, size in zip(node.plates, np.shape(first), strict=False):
                tell(plate, size, f"'{node.name}'")
    settled = {**fewest, **settled}
    for node in nodes:
        for plate in node.plates:
            if plate not in settled:
                raise PlateError(
                    f"the size of plate '{plate.name}' of '{node.name}' is unknown; give it: "
                    f"sizes={{'{plate.name}': 100}}"
                )
    return settled


def drawn_again(
    leaves: Sequence[Variable],
    known: Mapping[str, Any],
    draws: Mapping[str, Any],
    drawn: Mapping[str, AnyArray],
    rng: np.random.Generator,
) -> dict[str, Any]:
    """Return draws of several variables with some repetitions drawn again given what each draw has above them.

    Parameters
    ----------
    leaves
        Variables with such repetitions.
    known
        Name -> values that are the same in all draws, at least of what is above them.
    draws
        Name -> values, (n, shape of one...); of joint factors pairs.
    drawn
        Name of each leaf -> which repetitions are drawn again, shape (plates...).
    rng
        Source of the draws.

    Raises
    ------
    ImproperError
        If a leaf has a flat prior.
    """
    n_draws = max(len(own[0] if isinstance(own, tuple) else own) for own in draws.values())
    nodes = nodes_above(leaves)
    plate = Plate(" ".join(node.name for node in nodes) + " draw", n_draws)
    copies, _ = replicated(nodes, [], plate, {}, {}, _value_of)
    names = {node.name for node in copies}
    same = {name: np.asarray(own) for name, own in known.items() if name in names and name not in draws}
    values = {name: np.broadcast_to(own, (n_draws, *own.shape)) for name, own in same.items()}
    values |= {name: own for name, own in draws.items() if name in names}
    sizes = settle_sizes(copies, {}, values, {})
    check_labels(copies, values, sizes)
    for variable in parents_first([node for node in copies if isinstance(node, Variable)]):
        if variable.name in drawn:
            fresh = _over_plates(variable, conditional(variable, values), sizes).sample(None, rng)
            values[variable.name] = _replaced(values[variable.name], fresh, drawn[variable.name])
    return {**draws, **{name: values[name] for name in drawn}}


def _value_of(constant: Any) -> Array:
    return constant.value


def _replaced(value: Any, other: Any, where: AnyArray) -> Any:
    """Return draws with the repetitions in some places from others; what they share stays."""
    if isinstance(value, tuple):
        return type(value)(*(_replaced(*parts, where) for parts in zip(value, other, strict=True)))
    found = np.array(value)
    if found.shape[1 : 1 + where.ndim] == where.shape:
        found[:, where] = np.asarray(other)[:, where]
    return found


def nth_of(value: Any, number: int) -> Any:
    """Return one of several values, of an array or of both of a pair."""
    return type(value)(*(part[number] for part in value)) if isinstance(value, tuple) else value[number]


def one_by_one(draws: Mapping[str, Any], n: int) -> Iterator[dict[str, Any]]:
    """Yield the values of one draw of several variables after another, by name."""
    for number in range(n):
        yield {name: nth_of(value, number) for name, value in draws.items()}


_MOST = 1_000_000_000


def check_count(name: str, value: int) -> None:
    """Refuse what is not a number of draws, rows or folds.

    Raises
    ------
    ParameterError
        If it is not a whole number of at least 1, or beyond all use.
    """
    if require_whole(name, value, 1) > _MOST:
        raise ParameterError(f"{name} must be at most {_MOST}; got {value}")
