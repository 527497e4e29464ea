"""Hidden sequences of vectors: each state is a linear function of the one before, plus noise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from .. import families
from .._errors import ConjugacyError, ModelError, PlateError
from .._typing import Array
from .algebra import Diagonal
from .constants import Constant, as_known
from .nodes import Expression, Indexed, Node
from .normals import MultivariateNormal
from .paths import StatePaths, refuse_groups
from .plates import Plate
from .roles import (
    BEGINNING,
    INPUTS,
    LINEAR_VECTOR,
    MATRIX,
    PRECISION,
    PRECISION_MATRIX,
    WEIGHTS_OF_INPUTS,
)
from .templates import LOG_2PI, template
from .variable import Variable

_FIRST = (
    (-1 / 2, "precision.x[ij] self.first_xx[ij]"),
    (1, "precision.x[ij] mean.x[i] self.first_x[j]"),
    (-1 / 2, "precision.x[ij] mean.xx[ij] self.n_first"),
    (1 / 2, "precision.log_det self.n_first"),
    (-1 / 2 * LOG_2PI, "self.n_first [i]"),
)
_STEPS = (
    (-1 / 2, "noise_precision.x[ij] self.residual_xx[ij]"),
    (1 / 2, "noise_precision.log_det self.n_steps"),
    (-1 / 2 * LOG_2PI, "self.n_steps [i]"),
)
_STEPS_BY_ROW = (
    (-1 / 2, "noise_precision.x[i] self.next_xx[ii]"),
    (1, "noise_precision.x[i] transition.x[ij] self.pairs[ji]"),
    (-1 / 2, "noise_precision.x[i] transition.xx[ijk] self.previous_xx[jk]"),
    (1 / 2, "noise_precision.log_x[i] self.n_steps"),
    (-1 / 2 * LOG_2PI, "self.n_steps [i]"),
)
_INPUTS = (
    (1, "noise_precision.x[ij] input_weights.x[jw] self.next_inputs[iw]"),
    (-1, "noise_precision.x[ij] transition.x[ik] input_weights.x[jw] self.previous_inputs[kw]"),
    (-1 / 2, "noise_precision.x[ij] input_weights.x[iw] input_weights.x[jv] self.inputs_xx[wv]"),
)
_INPUTS_BY_ROW = (
    (1, "noise_precision.x[i] input_weights.x[iw] self.next_inputs[iw]"),
    (-1, "noise_precision.x[i] transition.x[ij] input_weights.x[iw] self.previous_inputs[jw]"),
    (-1 / 2, "noise_precision.x[i] input_weights.xx[iwv] self.inputs_xx[wv]"),
)
_OF_FIRST = ("first_x", "first_xx", "n_first")
_OF_INPUTS = ("next_inputs", "previous_inputs", "inputs_xx")


class LinearGaussianChain(Variable):
    r"""A sequence of hidden vectors, one for each row along a plate: the states of a linear dynamical system.

    .. math::
        s_1 \sim N(m_0, P_0^{-1}), \qquad s_t \mid s_{t-1} \sim N(A s_{t-1} + B u_t, Q^{-1})

    It can be used like any vector: ``dot(w, s)``, or as the mean of a MultivariateNormal. The rows of the data are
    the steps, in order.

    Parameters
    ----------
    name
        Unique within the model.
    mean
        :math:`m_0`, the mean of the first state: vector of length D or MultivariateNormal.
    precision
        :math:`P_0`, the precision of the first state: array (D, D), Wishart, or ``diagonal(...)``.
    transition
        A: an array (D, D), or its rows, a MultivariateNormal with a plate of size D: row i has the coefficients
        of component i of a state.
    noise_precision
        Q, the precision of a state given the one before it: array (D, D), Wishart, or ``diagonal(...)`` of a Gamma
        with a plate of size D. If the rows of the transition are unknown it must be diagonal, so that they are
        independent.
    along
        The plate of the steps, which must be the data plate.
    starts
        Beginnings of sequences, as for :class:`MarkovChain`: 1 at the first row of each, 0 elsewhere, usually
        ``Data("starts", plates=along)``. By default all rows are one sequence.
    inputs
        :math:`u_t`, known inputs that act on the state of each step: ``Data("u", plates=along)``, rows of length P, or
        one vector for all steps; with ``[1.0]`` the weights are a drift. The input of the first step of a sequence is
        not used.
    input_weights
        B: an array (D, P), or a MultivariateNormal with a plate of size D, whose repetitions are the rows. If the
        weights are unknown, the noise must be diagonal.

    Notes
    -----
    The chain and the parameters are independent under q; inference within the chain is exact (Kalman filter and
    Rauch-Tung-Striebel smoother over each sequence). A row without observations is inferred from its neighbours.
    Rows after the last observation of their sequence, and sequences without observations, integrate to one and do
    not affect the fit; ``posterior.local`` forecasts them.

    If the transition is known, the density is computed from the residuals :math:`s_t - A s_{t-1}`. Otherwise it is
    computed from products of successive states, which loses digits if the noise is much smaller than the states.
    States are not centred automatically; centre columns that are far from zero.

    Examples
    --------
    >>> import numpy as np
    >>> from caviar import Normal, dot
    >>> time = Plate("time")
    >>> level = LinearGaussianChain("level", [0.0], [[0.01]], [[1.0]], [[4.0]], along=time)
    >>> Normal("x", dot([1.0], level), 1.0, plates=time)
    Normal('x', plates=(time))
    """

    family = families.MultivariateNormal
    value_rank = 1
    takes_weights: ClassVar = False
    letters: ClassVar = {
        "x": "i",
        "xx": "ij",
        "first_x": "i",
        "first_xx": "ij",
        "previous_xx": "ij",
        "pairs": "ij",
        "next_xx": "ij",
        "residual_xx": "ij",
        "n_first": "",
        "n_steps": "",
        "next_inputs": "iw",
        "previous_inputs": "iw",
        "inputs_xx": "wv",
    }
    density = template(*_FIRST, *_STEPS)
    density_by_row = template(*_FIRST, *_STEPS_BY_ROW)
    of_inputs = template(*_INPUTS)
    of_inputs_by_row = template(*_INPUTS_BY_ROW)

    def __init__(
        self,
        name: str,
        mean: Expression,
        precision: Expression,
        transition: Expression,
        noise_precision: Expression,
        *,
        along: Plate,
        starts: Expression = None,
        inputs: Expression = None,
        input_weights: Expression = None,
    ) -> None:
        arguments: dict[str, tuple[Any, Any]] = {
            "mean": (mean, LINEAR_VECTOR),
            "precision": (precision, PRECISION_MATRIX),
        }
        refuse_groups(name, along, starts)
        if starts is not None:
            arguments["starts"] = (starts, BEGINNING)
        weights = _weights_of_inputs(name, inputs, input_weights)
        steps = _steps(name, transition, noise_precision, weights)
        arguments |= steps.arguments
        if weights is not None:
            arguments |= {"inputs": (inputs, INPUTS), "input_weights": (weights, WEIGHTS_OF_INPUTS)}
        density, of_inputs = (
            (self.density_by_row, self.of_inputs_by_row) if steps.by_row else (self.density, self.of_inputs)
        )
        self.summed = (*_OF_FIRST, *steps.summed, *(() if weights is None else _OF_INPUTS))
        self._state(
            name,
            along,
            arguments,
            density=density if weights is None else (*density, *of_inputs),
            along=steps.along,
        )
        if steps.by_row:
            self.stated["noise_precision"] = Diagonal(self.slots["noise_precision"].node)
        if weights is not None:
            size = weights.dimension or 1
            self.letter_sizes = {**self.letter_sizes, "w": size, "v": size}
            self.slots["inputs"] = replace(self.slots["inputs"], dimension=size)
        self._check()

    @classmethod
    def state_again(
        cls, name: str, plates: tuple[Plate, ...], arguments: Mapping[str, Any]
    ) -> LinearGaussianChain:
        """Return the chain along its one plate."""
        (along,) = plates
        return cls(name, along=along, **arguments)

    def _check(self) -> None:
        where = f"LinearGaussianChain '{self.name}'"
        if len(self.plates) != 1:
            raise PlateError(f"'{self.name}' runs along one plate, its steps; got plates {self.plates!r}")
        for slot in self.slots.values():
            known = self.known(slot.name)
            plates = [plate for plate in slot.node.plates if plate is not slot.along]
            if slot.name not in ("starts", "inputs") and (plates or isinstance(slot.expression, Indexed)):
                raise PlateError(
                    f"'{slot.name}' of {where} must be the same for all steps; got {slot.node!r}. What changes with a "
                    f"hidden state is chosen where values are observed, as in Normal('x', mean, precision[s])"
                )
            if slot.along is not None and slot.along.size != self.dimension:
                raise PlateError(
                    f"'{slot.name}' of {where} needs a plate of size {self.dimension}, the length of a state; plate "
                    f"'{slot.along.name}' has size {slot.along.size}"
                )
            if slot.role in (PRECISION, PRECISION_MATRIX) and known is not None and not np.any(known):
                raise ModelError(
                    f"'{slot.name}' of {where} must be positive definite; it is 0, which is no distribution"
                )

    @property
    def density_plates(self) -> tuple[Plate, ...]:
        """None: what it is stated in are sums over the steps."""
        return ()

    def distribution_given(self, slots: Mapping[str, Any]) -> Any:
        """Return the distribution of its states given values of its parameters."""
        starts, pushes = np.asarray(slots.get("starts", [False]), dtype=bool), self._pushes(slots)
        if pushes is not None:
            n_rows = max(len(starts), len(pushes))
            starts = np.broadcast_to(starts, n_rows)
            pushes = np.broadcast_to(pushes, (n_rows, pushes.shape[1]))
        return StatePaths(
            slots["mean"][0],
            slots["precision"][0],
            slots["transition"].reshape(self.dimension or 1, -1),
            slots["noise_precision"][0],
            starts,
            pushes,
        )

    def _pushes(self, slots: Mapping[str, Any]) -> Array | None:
        """Return the number added to the state of each step, (N, D), or (1, D) if it is the same for all."""
        if "inputs" not in slots:
            return None
        weights = np.asarray(slots["input_weights"]).reshape(self.dimension or 1, -1)
        return np.asarray(slots["inputs"]) @ weights.T


@dataclass(frozen=True)
class _Steps:
    """The arguments of the steps of a chain.

    Attributes
    ----------
    arguments
        Slot -> expression and role, of the transition and of the noise.
    summed
        Statistics of the steps.
    along
        Slot -> plate along the entries of a state; none where both are matrices.
    """

    arguments: dict[str, tuple[Any, Any]]
    summed: tuple[str, ...]
    along: dict[str, Plate]

    @property
    def by_row(self) -> bool:
        """Whether each entry of a state has its own density."""
        return "transition" in self.along


def _steps(name: str, transition: Expression, noise_precision: Expression, weights: Node | None) -> _Steps:
    """Return the arguments of the steps of a chain: as matrices, or row by row if any of them is unknown."""
    along = {} if weights is None else {"input_weights": weights.plates[0]}
    rows = _plate_of_rows(name, transition)
    if rows is None and isinstance(weights, Variable):
        # a known transition by its rows, as the weights are
        rows, value = weights.plates[0], _known_matrix(name, transition)
        _check_rows(name, value, rows)
        transition = Constant(f"{name}.transition", value, plates=rows)
    if rows is None:
        known = _known_matrix(name, transition)
        matrices = {"transition": (known, MATRIX), "noise_precision": (noise_precision, PRECISION_MATRIX)}
        return _Steps(matrices, ("residual_xx", "n_steps"), along)
    diagonal, plate = _as_diagonal(name, noise_precision, rows)
    return _Steps(
        {"transition": (transition, LINEAR_VECTOR), "noise_precision": (diagonal, PRECISION)},
        ("previous_xx", "pairs", "next_xx", "n_steps"),
        {**along, "transition": rows, "noise_precision": plate},
    )


def _plate_of_rows(name: str, transition: Expression) -> Plate | None:
    """Return the plate that the rows of an unknown transition run over, or None of a known matrix."""
    where = f"'transition' of LinearGaussianChain '{name}'"
    if isinstance(transition, Constant):
        return transition.plates[0] if transition.plates else None
    if not isinstance(transition, Node | Indexed):
        return None
    if isinstance(transition, Indexed):
        raise ConjugacyError(
            f"{where} cannot be {transition!r}: it is the same for all steps. Where the observed values themselves "
            f"follow each other, state a regression on the value before that switches, as Normal('x', slope[s] * "
            f"Data('before', plates=time), precision[s]) with a MarkovChain s"
        )
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


def _weights_of_inputs(name: str, inputs: Expression, weights: Expression) -> Node | None:
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
    if isinstance(weights, MultivariateNormal) or (isinstance(weights, Constant) and weights.plates):
        if len(weights.plates) != 1:
            raise PlateError(
                f"{where} is given by its rows: '{weights.name}' needs one plate, of size D; it has "
                f"{len(weights.plates)}"
            )
        return weights
    if isinstance(weights, Node | Indexed) and not isinstance(weights, Constant):
        raise ConjugacyError(
            f"{where} cannot be {weights!r}: it is an array (D, P), or its rows, a MultivariateNormal with a plate of "
            f"size D"
        )
    value = weights.value if isinstance(weights, Constant) else as_known(weights, where)
    if value.ndim != 2:
        raise PlateError(f"{where} must be a matrix (D, P), not of shape {value.shape}")
    return Constant(f"{name}.input_weights", value, plates=Plate(f"{name}.to", len(value)))


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
        f"must be diagonal where the transition or the weights of inputs are unknown, so that their rows are "
        f"independent: give diagonal(q) with a "
        f"Gamma 'q' over plate '{rows.name}', or a known diagonal matrix"
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
