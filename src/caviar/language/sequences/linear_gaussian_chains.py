"""Hidden sequences of vectors: each state is a linear function of the one before, plus noise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from ... import families
from ..._errors import ModelError, PlateError
from ..._typing import Array
from ..nodes.algebra import Diagonal
from ..nodes.node import Expression, Indexed
from ..nodes.plates import Plate
from ..nodes.roles import BEGINNING, LINEAR_VECTOR, PRECISION, PRECISION_MATRIX
from ..nodes.templates import LOG_2PI, template
from ..variable import Variable
from .densities_of_steps import RESIDUALS
from .paths import StatePaths, refuse_groups
from .steps_of_vectors import steps_of

_FIRST = template(
    (-1 / 2, "precision.x[ij] self.first_xx[ij]"),
    (1, "precision.x[ij] mean.x[i] self.first_x[j]"),
    (-1 / 2, "precision.x[ij] mean.xx[ij] self.n_first"),
    (1 / 2, "precision.log_det self.n_first"),
    (-1 / 2 * LOG_2PI, "self.n_first [i]"),
)
_OF_FIRST = ("first_x", "first_xx", "n_first")


class LinearGaussianChain(Variable):
    r"""A sequence of hidden vectors, one for each row along a plate: the states of a linear dynamical system.

    .. math::
        s_1 \sim N(m_0, P_0^{-1}), \qquad s_t \mid s_{t-1} \sim N(A s_{t-1} + B u_t, Q^{-1})

    It can be used like any vector: ``dot(w, s)``, or as the mean of a MultivariateNormal. The rows of the data are
    the steps, in order.

    Parameters
    ----------
    name
        Name of the variable, unique within the model.
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
    density = (*_FIRST, *RESIDUALS)
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
        "next_x": "i",
        "previous_x": "i",
    }

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
        steps = steps_of(name, along, transition, noise_precision, inputs, input_weights)
        arguments |= steps.arguments
        self.summed = (*_OF_FIRST, *steps.summed)
        self.by_step = steps.by_step
        self._state(name, along, arguments, density=(*_FIRST, *steps.density), along=steps.along)
        if steps.diagonal is not None:
            self.stated["noise_precision"] = Diagonal(self.slots["noise_precision"].expression)
        if steps.weighted is not None:
            self.stated = {
                slot: own for slot, own in self.stated.items() if slot not in ("weights", "selector")
            }
            self.stated["transition"] = steps.weighted
        self.letter_sizes = {**self.letter_sizes, **steps.letter_sizes}
        if "input_weights" in self.slots:
            size = self.slots["input_weights"].node.dimension or 1
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
            if slot.name in ("mean", "precision") and (plates or isinstance(slot.expression, Indexed)):
                raise PlateError(
                    f"'{slot.name}' of {where} is that of first states, and the same for all sequences; got "
                    f"{slot.expression!r}"
                )
            if slot.along is not None and slot.along.size != self.dimension:
                raise PlateError(
                    f"'{slot.name}' of {where} needs a plate of size {self.dimension}, the length of a state; plate "
                    f"'{slot.along.name}' has size {slot.along.size}"
                )
            if slot.role in (PRECISION, PRECISION_MATRIX) and known is not None and not np.any(known):
                raise ModelError(
                    f"'{slot.name}' of {where} must be positive definite; got 0, which is not a distribution"
                )

    @property
    def density_plates(self) -> tuple[Plate, ...]:
        """Empty: some statistics are sums over the steps, and the others have the plate of the steps."""
        return ()

    def distribution_given(self, slots: Mapping[str, Any]) -> Any:
        """Return the distribution of its states given values of its parameters."""
        size = self.dimension or 1
        pushes = self._pushes(slots)
        transition = np.asarray(slots["transition"])
        steps = {
            "starts": np.asarray(slots.get("starts", [False]), dtype=bool),
            "transition": transition.reshape(-1, size, size),
            "noise_precision": np.asarray(slots["noise_precision"]),
            **({} if pushes is None else {"pushes": pushes}),
        }
        n_rows = max(len(own) for own in steps.values())
        steps = {name: np.broadcast_to(own, (n_rows, *own.shape[1:])) for name, own in steps.items()}
        for name in ("transition", "noise_precision"):
            if not self.by_step:
                steps[name] = steps[name][0]
        return StatePaths(slots["mean"][0], slots["precision"][0], **steps)

    def _pushes(self, slots: Mapping[str, Any]) -> Array | None:
        """Return the number added to the state of each step, (N, D), or (1, D) if it is the same for all."""
        if "inputs" not in slots:
            return None
        weights = np.asarray(slots["input_weights"])
        weights = weights.reshape(-1, self.dimension or 1, weights.shape[-1])
        return (weights @ np.asarray(slots["inputs"])[..., None])[..., 0]
