"""Priors of the probabilities of the first state and of steps: a Dirichlet each, or all around common weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._typing import Array
from ...language import Constant, Dirichlet, Plate, StickBreaking
from ..arguments.checks import as_broadcast, require_choice, require_number

KINDS = ("dirichlet_distribution", "dirichlet_process")

StatedSteps = tuple[Dirichlet, Dirichlet]
"""Probabilities of the first state, and of the next one, a row for each present state."""


@dataclass(frozen=True)
class DirichletSteps:
    """A Dirichlet for the first state and each present one, whose concentrations are known.

    Attributes
    ----------
    initial, transition
        Numbers, or shapes (K,), and (K,) or (K, K).
    stickiness
        Added to the diagonal.
    """

    initial: Any
    transition: Any
    stickiness: float

    def state(self, n_states: int, state: Plate) -> StatedSteps:
        """Return the two Dirichlets for a number of states."""
        rows = self._broadcast("transition_prior", self.transition, (n_states, n_states))
        return (
            Dirichlet("initial", self._broadcast("initial_prior", self.initial, (n_states,))),
            Dirichlet("transition", rows + self.stickiness * np.eye(n_states), plates=state),
        )

    @staticmethod
    def _broadcast(name: str, given: Any, shape: tuple[int, ...]) -> Array:
        own = shape if np.ndim(given) != 1 else shape[-1:]
        found = as_broadcast(name, given, own, "one for each state", above=0)
        return np.broadcast_to(np.asarray(found, dtype=np.float64), shape)


@dataclass(frozen=True)
class ProcessSteps:
    """Dirichlets around the weights of a broken stick, times a number: a hierarchical Dirichlet process.

    Attributes
    ----------
    initial, transition
        Sums of the concentrations, without what is added to the diagonal.
    stickiness
        Added to the diagonal.
    concentration
        Of the stick: the larger, the more states are expected.
    """

    initial: float
    transition: float
    stickiness: float
    concentration: float

    def state(self, n_states: int, state: Plate) -> StatedSteps:
        """Return the two Dirichlets for a number of states; one state takes all."""
        if n_states == 1:
            return DirichletSteps(self.initial, self.transition, self.stickiness).state(1, state)
        weights = StickBreaking("weights", self.concentration, n_states)
        steps: Any = self.transition * weights
        if self.stickiness:
            steps = steps + Constant("stay", self.stickiness * np.eye(n_states), plates=state)
        return Dirichlet("initial", self.initial * weights), Dirichlet("transition", steps, plates=state)


StepsPrior = DirichletSteps | ProcessSteps


def steps_prior(
    kind: Any, initial: Any, transition: Any, stickiness: float, concentration: Any
) -> StepsPrior:
    """Return the prior of steps that the arguments of an estimator ask for.

    Raises
    ------
    ParameterError
        If they are impossible.
    """
    require_choice("transition_prior_type", kind, KINDS)
    require_number("stickiness", stickiness)
    if kind == "dirichlet_distribution":
        return DirichletSteps(initial, transition, stickiness)
    for name, given in (
        ("initial_prior, of a Dirichlet process,", initial),
        ("transition_prior, of a Dirichlet process,", transition),
        ("state_concentration", concentration),
    ):
        require_number(name, given, above=0)
    return ProcessSteps(float(initial), float(transition), stickiness, float(concentration))


def largest_first(
    probabilities: Array, weights: Array | None, fit: Callable[[Array], Any], found: Any
) -> Any:
    """Return a fit whose states are numbered by their rows, if its ELBO is higher: a broken stick expects that order.

    Parameters
    ----------
    probabilities
        Of the states of each row, (N, K).
    weights
        Of rows, (N,).
    fit
        Returns the fit that begins from probabilities of states.
    found
        The fit so far.
    """
    shares = np.average(probabilities, axis=0, weights=weights)
    order = np.argsort(-np.round(shares, 9), kind="stable")
    if np.all(np.diff(order) > 0):
        return found
    again = fit(probabilities[:, order])
    return again if again.elbo > found.elbo else found


def stationary(transition: Array) -> Array:
    """Return the shares of the states that a step leaves as they are, (K,); NaN where more than one solution exists.

    Parameters
    ----------
    transition
        Probabilities of the next state, (K, K), a row for each present state.

    Examples
    --------
    >>> stationary(np.array([[0.9, 0.1], [0.3, 0.7]])).round(6)
    array([0.75, 0.25])
    """
    n_states = len(transition)
    equations = np.vstack([transition.T - np.eye(n_states), np.ones(n_states)])
    if np.linalg.matrix_rank(equations) < n_states:
        return np.full(n_states, np.nan)
    shares = np.linalg.lstsq(equations, np.append(np.zeros(n_states), 1.0), rcond=None)[0]
    return np.maximum(shares, 0.0)
