"""The groups of ArviZ's data structure: draws of the globals, and what the model says of the data given each.

ArviZ: the one place that knows it, before version 1 (InferenceData) and since (DataTree).
"""

from __future__ import annotations

import warnings
from collections.abc import Container, Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from scipy.sparse import issparse

from ..._errors import CaviarError, ParameterError
from ..._extras import install_command
from ..._typing import AnyArray
from ...engine.ascent.problem import Problem
from ...engine.binding.nested import nested_plates
from ...engine.evaluation.at_points import row_log_likelihoods, why_inexact, why_no_rows
from ...engine.rows.row_map import RowMap
from ...families.base.marginals import variable_and_part
from ...language import Data, Indexed, Node, Plate, Variable
from ...lazy.rows import in_memory
from ...names import Names
from .draws import Draws, draws_of


def inference_data(
    model: Any,
    factors: Mapping[str, Any],
    bound: tuple[Mapping[str, Any], Problem, RowMap] | None,
    *,
    n_draws: int,
    rng: np.random.Generator,
    coords: Mapping[str, Any],
    names: Names,
    index: Any,
    attrs: Mapping[str, Any],
    is_fit: bool,
) -> Any:
    """Return draws of a posterior as what the installed ArviZ works on.

    Parameters
    ----------
    model
        The model, with ``variables``, ``leaves``, ``nodes`` and ``simulate``.
    factors
        Of all globals by name.
    bound
        Data, and the problem with every global a point mass, and the map over its rows; None without data.
    coords
        Name of an axis -> its labels.
    names
        Names of the places along axes, used as labels if ``coords`` has none.
    index
        Of the rows of data; None where they are only numbered.
    is_fit
        Whether the data are those that the factors were fitted to.
    """
    draws = draws_of(factors, n_draws, rng)
    dims = dimensions_of(model.nodes)
    groups: dict[str, dict[str, AnyArray]] = {"posterior": {}}
    for name, value in draws.values.items():
        parts = zip(("mean", "precision"), value, strict=True) if isinstance(value, tuple) else (("", value),)
        for part, array in parts:
            groups["posterior"][f"{name}.{part}" if part else name] = np.asarray(array)[None]
    groups["sample_stats"] = {"log_q": draws.log_q[None]}
    attrs, left_out = dict(attrs), {}
    if bound is not None:
        found, left_out = _groups_of_data(model, draws, *bound, rng, is_fit=is_fit)
        for group, arrays in found.items():
            groups.setdefault(group, {}).update(arrays)
        problem = bound[1]
        if "rows" in groups.get("log_likelihood", {}) and problem.bound.data_plate is not None:
            dims["rows"] = (problem.bound.data_plate.name,)
    attrs["left_out"] = "; ".join(f"{group}: {reason}" for group, reason in left_out.items())
    used = {name: event_names(name, own, _rank(groups, name)) for name, own in _used(groups, dims).items()}
    sizes = _sizes(groups, used)
    labels = _labels(names, model.variables, used, sizes)
    if index is not None and bound is not None and bound[1].bound.data_plate is not None:
        labels.setdefault(bound[1].bound.data_plate.name, np.asarray(index.to_numpy(), dtype=object))
    own = {axis: values for axis, values in labels.items() if sizes.get(axis) == len(values)}
    return as_inference_data(groups, used, {**own, **_checked_coords(coords, set(sizes))}, attrs)


def _sizes(groups: Mapping[str, Mapping[str, AnyArray]], used: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """Return the length of each axis."""
    found: dict[str, int] = {}
    for arrays in groups.values():
        for name, array in arrays.items():
            axes = used[name]
            # those of the draws come first; rows of a log-likelihood lack the last
            shape = np.shape(array)[-len(axes) :] if np.ndim(array) >= len(axes) else ()
            found |= dict(zip(axes, shape, strict=False))
    return found


def _labels(
    names: Names, variables: Container[str], used: Mapping[str, Sequence[str]], sizes: Mapping[str, int]
) -> dict[str, AnyArray]:
    """Return the names along axes: those of plates, then those of the entries of a value."""
    found: dict[str, AnyArray] = {}
    for name, axes in used.items():
        variable, _ = variable_and_part(name, variables)
        for axis in axes:
            own = names.entries(variable) if axis.startswith(f"{name}_dim_") else names.plate(axis)
            if own is not None and sizes.get(axis) == len(own):
                found[axis] = np.array(own)
    return found


def _used(
    groups: Mapping[str, Mapping[str, AnyArray]], dims: Mapping[str, Sequence[str]]
) -> dict[str, Sequence[str]]:
    names = dict.fromkeys(name for arrays in groups.values() for name in arrays)
    return {name: dims.get(name, ()) for name in names}


def _rank(groups: Mapping[str, Mapping[str, AnyArray]], name: str) -> int:
    """Return the number of axes of a variable without those of the draws; rows of a log-likelihood have fewer."""
    return max(
        np.ndim(arrays[name]) - (0 if group.endswith("_data") else 2)
        for group, arrays in groups.items()
        if name in arrays
    )


def _groups_of_data(
    model: Any,
    draws: Draws,
    data: Mapping[str, Any],
    problem: Problem,
    row_map: RowMap,
    rng: np.random.Generator,
    *,
    is_fit: bool,
) -> tuple[dict[str, dict[str, AnyArray]], dict[str, str]]:
    """Return the groups that need data, and for each that there is none of the reason."""
    groups: dict[str, dict[str, AnyArray]] = {}
    left_out: dict[str, str] = {}
    unseen = "" if is_fit else "the data are not those of the fit"
    reason = why_inexact(problem) or unseen
    if reason:
        left_out["log weights"] = reason
    else:
        log_joint = draws.log_joint(problem, row_map)
        groups["sample_stats"] = {"lp": log_joint[None], "log_weight": (log_joint - draws.log_q)[None]}
    reason = why_no_rows(problem) or unseen
    if reason:
        left_out["log_likelihood"] = reason
    else:
        (leaf, *others) = model.leaves
        plate = problem.bound.data_plate
        is_alone = not others and plate is not None and leaf.plates[0].name == plate.name
        name = leaf.name if is_alone else "rows"
        rows = np.stack([row_log_likelihoods(problem, values, row_map) for values in draws])
        groups["log_likelihood"] = {name: rows[None]}
    if nested_plates(model.nodes):
        left_out["observed_data"] = left_out["posterior_predictive"] = "the rows lie within others"
        return groups, left_out
    groups["observed_data"] = {leaf.name: _observed(data[leaf.name]) for leaf in model.leaves}
    constant = {
        n.name: _observed(data[n.name]) for n in model.nodes if isinstance(n, Data) and n.name in data
    }
    if constant:
        groups["constant_data"] = constant
    try:
        groups["posterior_predictive"] = _replicated(model, draws, data, problem, rng)
    except CaviarError as error:
        left_out["posterior_predictive"] = str(error)
    return groups, left_out


def _replicated(
    model: Any, draws: Draws, data: Mapping[str, Any], problem: Problem, rng: np.random.Generator
) -> dict[str, AnyArray]:
    """Return for each draw of the globals new values of the observed variables, at the known arrays of the data."""
    leaves = [leaf.name for leaf in model.leaves]
    known = {node.name: data[node.name] for node in model.nodes if isinstance(node, Data)}
    sizes = {plate.name: size for plate, size in problem.bound.sizes.items()}
    fixed = {
        node.name: in_memory(value)
        for node, value in problem.bound.known_values.items()
        if isinstance(node, Variable) and node.name not in leaves and not problem.bound.is_local(node)
    }
    each = [model.simulate(rng, sizes=sizes, data=known, given={**fixed, **values}) for values in draws]
    return {name: np.stack([drawn[name] for drawn in each])[None] for name in leaves}


def _observed(value: Any) -> AnyArray:
    """Return values of the data as an array, missing ones as NaN."""
    value = in_memory(value)
    if issparse(value):
        return value.toarray()
    if isinstance(value, np.ma.MaskedArray):
        return np.ma.filled(value.astype(np.float64), np.nan)
    return np.asarray(value)


def _checked_coords(coords: Mapping[str, Any], known: set[str]) -> dict[str, AnyArray]:
    if not isinstance(coords, Mapping):
        raise ParameterError(f"coords must be a mapping from names of axes to their labels; got {coords!r}")
    for name in coords:
        if name not in known:
            raise ParameterError(f"coords names the axis {name!r}; the axes are {', '.join(sorted(known))}")
    return {name: np.asarray(labels) for name, labels in coords.items()}


def dimensions_of(nodes: Iterable[Node]) -> dict[str, tuple[str, ...]]:
    """Return the names of the plates of each node, and of what the events of weights are called after.

    A joint factor has two entries, ``name.mean`` and ``name.precision``.
    """
    nodes = tuple(nodes)
    chosen = _plates_of_weights(nodes)
    found: dict[str, tuple[str, ...]] = {}
    for node in nodes:
        plates = tuple(plate.name for plate in node.plates)
        if isinstance(node, Variable) and "precision" in node.family.statistics:
            found[f"{node.name}.mean"] = plates
            found[f"{node.name}.precision"] = tuple(plate.name for plate in node.plates_of("precision"))
        elif isinstance(node, Variable | Data):
            plate = chosen.get(node)
            named = plate is not None and plate.name not in plates
            found[node.name] = (*plates, plate.name) if plate is not None and named else plates
    return found


def event_names(name: str, plates: Sequence[str], rank: int) -> tuple[str, ...]:
    """Return names of all axes of a variable: those of its plates, and others by number."""
    return (*plates, *(f"{name}_dim_{number}" for number in range(rank - len(plates))))


def _plates_of_weights(nodes: Sequence[Node]) -> dict[Any, Plate]:
    """Return for each variable of probabilities the one plate from which its labels choose, if there is one."""
    variables = [node for node in nodes if isinstance(node, Variable)]
    chosen: dict[Any, set[Plate]] = {}
    for variable in variables:
        for slot in variable.slots.values():
            if isinstance(slot.expression, Indexed) and slot.index is not None:
                chosen.setdefault(slot.index, set()).add(slot.expression.plate)
    found: dict[Any, set[Plate]] = {}
    for label, plates in chosen.items():
        for slot in label.slots.values() if isinstance(label, Variable) else ():
            if isinstance(slot.node, Variable) and slot.node.value_rank == 1:
                found.setdefault(slot.node, set()).update(plates)
    return {weights: next(iter(plates)) for weights, plates in found.items() if len(plates) == 1}


def _loaded(*names: str) -> Any:
    """Return the first of several modules that is there.

    Raises
    ------
    ImportError
        If none is; the message says how to install them.
    """
    with warnings.catch_warnings():
        # the last versions before 1 announce it at every import
        warnings.simplefilter("ignore", FutureWarning)
        for name in names:
            try:
                return import_module(name)
            except ModuleNotFoundError:
                continue
    raise ImportError(
        f"draws for ArviZ need it (no module {names[0]!r}); install it by {install_command('arviz')}"
    )


def as_inference_data(
    groups: Mapping[str, Mapping[str, AnyArray]],
    dims: Mapping[str, Sequence[str]],
    coords: Mapping[str, AnyArray],
    attrs: Mapping[str, Any],
) -> Any:
    """Return groups of arrays as what the installed ArviZ works on.

    Parameters
    ----------
    groups
        Name of the group -> name of the variable -> array; those of draws have the axes (1, draws) first.
    dims
        Name of a variable -> names of its axes, without those of the draws.
    coords
        Name of an axis -> its labels.
    attrs
        Of the whole.
    """
    named = {name: list(own) for name, own in dims.items()}
    library = _loaded("arviz", "arviz_base")
    # since version 1 the name is there no more, and to ask for it is a warning
    if "InferenceData" in vars(library):
        own = {f"{name}_attrs": dict(attrs) for name in groups if name == "posterior"}
        return library.from_dict(
            **{name: dict(arrays) for name, arrays in groups.items()},
            dims=named,
            coords=dict(coords),
            attrs=dict(attrs),
            **own,
        )
    return library.from_dict(
        {name: dict(arrays) for name, arrays in groups.items()},
        dims=named,
        coords=dict(coords),
        attrs={"/": dict(attrs), "posterior": dict(attrs)},
    )
