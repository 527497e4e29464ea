"""The steps of a linear Gaussian chain: all the same, or different by known or hidden values of each step.

If they are the same, their density is one in sums over all steps. Otherwise it is one in statistics of each step.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..._errors import ConjugacyError, ModelError, PlateError
from ..._typing import Array
from ..distributions.normals import MultivariateNormal
from ..nodes.algebra import Diagonal
from ..nodes.constants import Constant, as_known
from ..nodes.node import Expression, Indexed, Node
from ..nodes.plates import Plate
from ..nodes.roles import (
    INPUTS,
    LINEAR_VECTOR,
    MATRIX,
    PARTS_OF_MATRIX,
    PRECISION,
    PRECISION_MATRIX,
    SELECTOR,
    WEIGHTS_OF_INPUTS,
    WEIGHTS_OF_PARTS,
)
from ..nodes.templates import Density
from ..nodes.weighted_sums import Selector, WeightedSum
from ..variable import Variable
from .densities_of_steps import (
    INPUTS_BY_ROW,
    OF_INPUTS,
    OF_OWN_INPUTS,
    OF_PRODUCTS,
    OF_RESIDUALS,
    OWN_INPUTS,
    OWN_INPUTS_BY_ROW,
    PRODUCTS,
    PRODUCTS_BY_ROW,
    RESIDUALS,
    RESIDUALS_BY_ROW,
    SUMS_OF_INPUTS,
    WEIGHTED,
    WEIGHTED_INPUTS,
)


@dataclass(frozen=True)
class StepsOfVectors:
    """The arguments of the steps of a chain, and their density.

    Attributes
    ----------
    arguments
        Slot -> expression and role.
    density
        Log density of the steps.
    summed
        Statistics of the steps that are summed over all of them.
    by_step
        Statistics of each step, if the steps differ.
    along
        Slot -> plate along the entries of a state.
    diagonal
        The entries of the noise's precision, if they have a slot in the place of the matrix.
    weighted
        The transition, if it is a weighted sum.
    letter_sizes
        Length of event axes by letter.
    """

    arguments: dict[str, tuple[Any, Any]]
    density: Density
    summed: tuple[str, ...] = ()
    by_step: tuple[str, ...] = ()
    along: dict[str, Plate] = field(default_factory=dict)
    diagonal: Any = None
    weighted: WeightedSum | None = None
    letter_sizes: dict[str, int] = field(default_factory=dict)


def steps_of(
    name: str, along: Plate, transition: Expression, noise_precision: Expression, inputs: Any, weights: Any
) -> StepsOfVectors:
    """Return the arguments of the steps: as matrices, or row by row if any of them is unknown."""
    input_weights = _weights_of_inputs(name, inputs, weights)
    of_inputs: dict[str, tuple[Any, Any]] = {}
    if input_weights is not None:
        of_inputs = {"inputs": (inputs, INPUTS), "input_weights": (input_weights, WEIGHTS_OF_INPUTS)}
    if isinstance(transition, Node) and _is_chain_of_matrices(transition, along):
        transition = _of_entries(transition)
    if isinstance(transition, WeightedSum):
        return _weighted(name, transition, noise_precision, of_inputs)
    if any(_changes(own, along) for own in (transition, noise_precision, input_weights)):
        return _changing(name, transition, noise_precision, input_weights, of_inputs)
    return _alike(name, transition, noise_precision, input_weights, of_inputs)


def _alike(
    name: str,
    transition: Expression,
    noise_precision: Expression,
    weights: Any,
    of_inputs: dict[str, tuple[Any, Any]],
) -> StepsOfVectors:
    """Return the arguments of steps that are the same for all rows."""
    along = {} if weights is None else {"input_weights": weights.plates[0]}
    own = () if weights is None else OF_INPUTS
    rows = _plate_of_rows(name, transition)
    if rows is None and isinstance(weights, Variable):
        # a known transition by its rows, as the weights are
        rows, value = weights.plates[0], _known_matrix(name, transition)
        _check_rows(name, value, rows)
        transition = Constant(f"{name}.transition", value, plates=rows)
    if rows is None:
        matrices = {"transition": (_known_matrix(name, transition), MATRIX)}
        density = RESIDUALS if weights is None else (*RESIDUALS, *SUMS_OF_INPUTS)
        arguments = {**matrices, "noise_precision": (noise_precision, PRECISION_MATRIX), **of_inputs}
        return StepsOfVectors(arguments, density, (*OF_RESIDUALS, *own), along=along)
    diagonal, plate = _as_diagonal(name, noise_precision, rows)
    arguments = {"transition": (transition, LINEAR_VECTOR), "noise_precision": (diagonal, PRECISION)}
    density = PRODUCTS_BY_ROW if weights is None else (*PRODUCTS_BY_ROW, *INPUTS_BY_ROW)
    return StepsOfVectors(
        {**arguments, **of_inputs},
        density,
        (*OF_PRODUCTS, *own),
        along={**along, "transition": rows, "noise_precision": plate},
        diagonal=diagonal,
    )


def _changing(
    name: str,
    transition: Expression,
    noise_precision: Expression,
    weights: Any,
    of_inputs: dict[str, tuple[Any, Any]],
) -> StepsOfVectors:
    """Return the arguments of steps that differ: labels choose them, or they are known for each step."""
    is_hidden = isinstance(_node_of(transition), Variable)
    _check_last_plate(name, _node_of(transition))
    if not (is_hidden or isinstance(noise_precision, Diagonal) or isinstance(_node_of(weights), Variable)):
        return _matrices(name, transition, noise_precision, weights, of_inputs)
    along: dict[str, Plate] = {}
    noise, along["noise_precision"] = _entries(name, noise_precision, transition, weights)
    rows, along["transition"] = _rows(name, transition, along["noise_precision"])
    arguments = {"transition": (rows, LINEAR_VECTOR), "noise_precision": (noise, PRECISION)}
    if weights is not None:
        along["input_weights"] = _node_of(weights).plates[-1]
        of_inputs = {
            **of_inputs,
            "input_weights": (_settled(weights, along["input_weights"]), WEIGHTS_OF_INPUTS),
        }
    own = () if weights is None else OF_OWN_INPUTS
    keeps = not isinstance(transition, Indexed) and not is_hidden
    density = RESIDUALS_BY_ROW if keeps else PRODUCTS_BY_ROW
    return StepsOfVectors(
        {**arguments, **of_inputs},
        density if weights is None else (*density, *OWN_INPUTS_BY_ROW),
        by_step=(*(OF_RESIDUALS if keeps else OF_PRODUCTS), *own),
        along=along,
        diagonal=noise,
    )


def _check_last_plate(name: str, rows: Any) -> None:
    """Raise an error if the last plate of the rows of several transitions is not as long as they are."""
    if isinstance(rows, MultivariateNormal) and rows.plates and rows.plates[-1].size != rows.dimension:
        raise PlateError(
            f"'transition' of LinearGaussianChain '{name}' needs a plate of size {rows.dimension}, the length of a "
            f"state, as the last plate of '{rows.name}', behind those that something chooses from; got {rows.plates!r}"
        )


def _matrices(
    name: str, transition: Any, noise_precision: Any, weights: Any, of_inputs: dict[str, tuple[Any, Any]]
) -> StepsOfVectors:
    """Return the arguments of steps that differ, of known transitions and any noise."""
    is_chosen = isinstance(transition, Indexed)
    known = transition if is_chosen else _known_matrix(name, transition)
    arguments = {"transition": (known, MATRIX), "noise_precision": (noise_precision, PRECISION_MATRIX)}
    density, along = PRODUCTS if is_chosen else RESIDUALS, {}
    if weights is not None:
        along = {"input_weights": _node_of(weights).plates[-1]}
        of_inputs = {
            **of_inputs,
            "input_weights": (_settled(weights, along["input_weights"]), WEIGHTS_OF_INPUTS),
        }
        density = (*density, *OWN_INPUTS)
    own = () if weights is None else OF_OWN_INPUTS
    by_step = (*(OF_PRODUCTS if is_chosen else OF_RESIDUALS), *own)
    return StepsOfVectors({**arguments, **of_inputs}, density, by_step=by_step, along=along)


def _weighted(
    name: str, stated: WeightedSum, noise_precision: Expression, of_inputs: dict[str, tuple[Any, Any]]
) -> StepsOfVectors:
    """Return the arguments of steps whose transition is a weighted sum of matrices."""
    weights, n_parts = stated.weights, stated.weights.dimension or 1
    parts, size = _parts(name, stated)
    noise, plate = _entries(name, noise_precision, parts, None)
    arguments = {
        "transition": (parts, PARTS_OF_MATRIX),
        "weights": (weights, WEIGHTS_OF_PARTS),
        "selector": (Selector.of(f"{name}.selector", n_parts, size), SELECTOR),
        "noise_precision": (noise, PRECISION),
        **of_inputs,
    }
    along, own = {"transition": parts.plates[0], "noise_precision": plate}, ()
    density = WEIGHTED
    if of_inputs:
        node = _node_of(of_inputs["input_weights"][0])
        along, own, density = (
            {**along, "input_weights": node.plates[-1]},
            OF_OWN_INPUTS,
            (*density, *WEIGHTED_INPUTS),
        )
    return StepsOfVectors(
        arguments,
        density,
        by_step=(*OF_PRODUCTS, *own),
        along=along,
        diagonal=noise,
        weighted=WeightedSum(weights, parts),
        letter_sizes={**dict.fromkeys("ab", n_parts * size), **dict.fromkeys("kl", n_parts)},
    )


def _parts(name: str, stated: WeightedSum) -> tuple[Node, int]:
    """Return the matrices of a weighted sum by their rows, and the length of a state."""
    where = f"'transition' of LinearGaussianChain '{name}'"
    weights, parts = stated.weights, stated.parts
    n_parts = weights.dimension or 1
    if not isinstance(parts, Node):
        if parts.ndim != 3 or parts.shape[0] != n_parts or parts.shape[1] != parts.shape[2]:
            raise PlateError(
                f"{where} must sum {n_parts} matrices, an array ({n_parts}, D, D), weighted by '{weights.name}'; "
                f"got shape {parts.shape}"
            )
        size = parts.shape[1]
        parts = Constant(
            f"{name}.parts",
            parts.swapaxes(0, 1).reshape(size, -1),
            plates=Plate(f"{name}.row", size),
        )
    size = parts.plates[0].size if len(parts.plates) == 1 else None
    if size is None or parts.dimension != n_parts * size:
        raise PlateError(
            f"{where} must sum matrices weighted by {n_parts} entries of '{weights.name}': '{parts.name}' needs "
            f"one plate of size D, the length of a state, and vectors of length {n_parts} D; got {parts!r}, "
            f"whose vectors have length {parts.dimension}"
        )
    return parts, size


def _node_of(expression: Any) -> Any:
    """Return the node of an expression, without what chooses from it."""
    own = expression.entries if isinstance(expression, Diagonal) else expression
    return own.node if isinstance(own, Indexed) else own


def _changes(expression: Any, along: Plate) -> bool:
    """Whether an argument may differ from step to step: something chooses it, or it is repeated along the steps."""
    own = expression.entries if isinstance(expression, Diagonal) else expression
    return isinstance(own, Indexed) or (isinstance(own, Node) and along in own.plates)


def _settled(expression: Any, rows: Plate) -> Any:
    """Return what an index chooses, from another plate than that of the rows."""
    if not isinstance(expression, Indexed) or len(expression.indices) > 1 or len(expression.candidates) < 2:
        return expression
    chosen = Indexed(expression.node, *expression.indices)
    chosen.candidates = tuple(plate for plate in expression.candidates if plate is not rows)
    return chosen


def _entries(name: str, noise_precision: Any, transition: Any, weights: Any) -> tuple[Any, Plate]:
    """Return the diagonal of the noise's precision, which something may choose, and the plate of the entries."""
    if isinstance(noise_precision, Diagonal):
        node = _node_of(noise_precision)
        if not isinstance(node, Node) or not node.plates:
            raise PlateError(
                f"'noise_precision' of LinearGaussianChain '{name}' takes diagonal(q) or diagonal(q[z]) of a Gamma q, "
                f"whose last plate has size D; got {noise_precision!r}"
            )
        return _settled(noise_precision.entries, node.plates[-1]), node.plates[-1]
    hidden = next(
        own for own in (_node_of(transition), _node_of(weights)) if isinstance(own, Node) and own.plates
    )
    return _as_diagonal(name, noise_precision, hidden.plates[-1])


def _rows(name: str, transition: Any, entries: Plate) -> tuple[Any, Plate]:
    """Return a transition by its rows, which something may choose, and the plate of these."""
    node = _node_of(transition)
    if isinstance(node, Variable):
        if not isinstance(node, MultivariateNormal) or not node.plates:
            raise ConjugacyError(
                f"'transition' of LinearGaussianChain '{name}' cannot be {transition!r}: it is an array (D, D), a "
                f"MultivariateNormal whose last plate has size D, or weighted_sum(s, parts); a label of the step may "
                f"choose one of several"
            )
        return _settled(transition, node.plates[-1]), node.plates[-1]
    if not isinstance(transition, Indexed):
        if isinstance(node, Constant) and len(node.plates) == 1:
            return node, node.plates[0]
        plate = Plate(f"{name}.row", entries.size)
        return Constant(f"{name}.transition", _known_matrix(name, transition), plates=plate), plate
    if isinstance(node, Constant) and node.event_rank == 1:
        return _settled(transition, node.plates[-1]), node.plates[-1]
    if not isinstance(node, Constant) or node.event_rank != 2:
        raise ConjugacyError(
            f"'transition' of LinearGaussianChain '{name}' cannot be {transition!r}: a label chooses a Constant with a "
            f"matrix for each of its categories, or a MultivariateNormal with their rows"
        )
    plate = Plate(f"{name}.row", entries.size)
    by_row = Constant(f"{name}.transition", node.value, plates=(*node.plates, plate))
    return _settled(Indexed(by_row, *transition.indices), plate), plate


def _is_chain_of_matrices(transition: Node, along: Plate) -> bool:
    """Whether a transition is a hidden vector for each step, the entries of a matrix row by row."""
    return isinstance(transition, Variable) and transition.plates == (along,) and transition.value_rank == 1


def _of_entries(transition: Node) -> WeightedSum:
    """Return a matrix of hidden entries as a sum, weighted by these."""
    n_entries = transition.dimension or 1
    size = round(n_entries**0.5)
    if size**2 != n_entries:
        raise PlateError(
            f"'{transition.name}' has {n_entries} entries for each step; as a transition it has D^2, row by row"
        )
    return WeightedSum(transition, np.eye(n_entries).reshape(n_entries, size, size))


def _plate_of_rows(name: str, transition: Expression) -> Plate | None:
    """Return the plate that the rows of an unknown transition run over, or None of a known matrix."""
    where = f"'transition' of LinearGaussianChain '{name}'"
    if isinstance(transition, Constant):
        return transition.plates[0] if transition.plates else None
    if not isinstance(transition, Node):
        return None
    if not isinstance(transition, MultivariateNormal):
        raise ConjugacyError(
            f"{where} cannot be {transition!r}: it is an array (D, D), or its rows, a MultivariateNormal with a plate "
            f"of size D"
        )
    if len(transition.plates) != 1:
        raise PlateError(
            f"{where} is given by its rows: MultivariateNormal '{transition.name}' needs one plate, of size D; it has "
            f"{len(transition.plates)}"
        )
    return transition.plates[0]


def _known_matrix(name: str, transition: Expression) -> Array:
    where = f"'transition' of LinearGaussianChain '{name}'"
    if transition is None:
        raise ModelError(f"{where} is missing: give an array (D, D), or a MultivariateNormal for its rows")
    value = transition.value if isinstance(transition, Constant) else as_known(transition, where)
    if value.ndim != 2 or value.shape[0] != value.shape[1]:
        raise PlateError(f"{where} must be a square matrix, not of shape {value.shape}")
    return value


def _weights_of_inputs(name: str, inputs: Expression, weights: Expression) -> Node | Indexed | None:
    """Return the weights of inputs by rows, along a plate of size D; None if there are no inputs."""
    where = f"'input_weights' of LinearGaussianChain '{name}'"
    if (inputs is None) != (weights is None):
        missing, there = ("input_weights", "inputs") if weights is None else ("inputs", "input_weights")
        raise ModelError(
            f"LinearGaussianChain '{name}' has {there} but no {missing}: state both, inputs=Data('u', plates=along) "
            f"(or [1.0] for a drift) and input_weights=an array (D, P) or a MultivariateNormal with a plate of size D"
        )
    if weights is None:
        return None
    if isinstance(weights, Indexed):
        _check_chosen_weights(where, weights)
        return weights
    if isinstance(weights, MultivariateNormal) or (isinstance(weights, Constant) and weights.plates):
        if len(weights.plates) != 1:
            raise PlateError(
                f"{where} is given by its rows: '{weights.name}' needs one plate, of size D; it has "
                f"{len(weights.plates)}"
            )
        return weights
    if isinstance(weights, Node) and not isinstance(weights, Constant):
        raise ConjugacyError(
            f"{where} cannot be {weights!r}: it is an array (D, P), or its rows, a MultivariateNormal with a plate of "
            f"size D"
        )
    value = weights.value if isinstance(weights, Constant) else as_known(weights, where)
    if value.ndim != 2:
        raise PlateError(f"{where} must be a matrix (D, P), not of shape {value.shape}")
    return Constant(f"{name}.input_weights", value, plates=Plate(f"{name}.to", len(value)))


def _check_chosen_weights(where: str, weights: Indexed) -> None:
    """Refuse a chosen value that is not a matrix given by its rows."""
    node = weights.node
    is_constant = isinstance(node, Constant) and node.event_rank == 1
    if not (is_constant or isinstance(node, MultivariateNormal)) or len(node.plates) < 2:
        raise ConjugacyError(
            f"{where} cannot be {weights!r}: a label chooses from a MultivariateNormal or a Constant of vectors of "
            f"length P whose plates are those of the categories and, last, one of size D"
        )


def _check_rows(name: str, transition: Array, rows: Plate) -> None:
    if rows.size not in (None, len(transition)):
        raise PlateError(
            f"'input_weights' of LinearGaussianChain '{name}' needs a plate of size {len(transition)}, the length of a "
            f"state; plate '{rows.name}' has size {rows.size}"
        )


def _as_diagonal(name: str, noise_precision: Expression, rows: Plate) -> tuple[Node, Plate]:
    """Return the diagonal of the noise's precision, with the plate that it runs over."""
    where = f"'noise_precision' of LinearGaussianChain '{name}'"
    remedy = (
        "must be diagonal if the transition or the weights of inputs are unknown, to make their rows "
        f"independent: give diagonal(q) with a Gamma 'q' over plate '{rows.name}', or a known diagonal matrix"
    )
    if isinstance(noise_precision, Diagonal):
        node = noise_precision.entries
        if not isinstance(node, Node) or len(node.plates) != 1:
            raise PlateError(f"{where} takes diagonal(...) of one plate, of size D; got {node!r}")
        return node, node.plates[0]
    if noise_precision is None or isinstance(noise_precision, Node | Indexed):
        raise ConjugacyError(f"{where} {remedy}; got {noise_precision!r}")
    value = as_known(noise_precision, where)
    if value.ndim != 2 or value.shape != (rows.size, rows.size):
        raise PlateError(f"{where} must be a {rows.size} x {rows.size} matrix, not of shape {value.shape}")
    if np.any(value != np.diag(value.diagonal())):
        raise ConjugacyError(f"{where} {remedy}")
    return Constant(f"{name}.noise_precision", value.diagonal(), plates=rows), rows
