"""Paths: the distribution of a chain's states given its parameters, to be drawn from and evaluated."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from ... import families
from ..._errors import PlateError
from ..._typing import AnyArray, Array
from ...families.chains.linear_gaussian_chain import told_by_inputs
from ...numerics.cached import cached_property
from ...numerics.linalg import times_vector
from ..nodes.plates import Plate


def refuse_groups(name: str, along: Any, starts: Any) -> None:
    """Refuse a chain along a plate inside another one that does not say where each of its sequences begins.

    Raises
    ------
    PlateError
        If so: the message has what says it.
    """
    if starts is None and isinstance(along, Plate) and (outer := along.within) is not None:
        steps = along.name
        raise PlateError(
            f"'{name}' runs along '{steps}', which lies within '{outer.name}', and would go on from one {outer.name} "
            f"to the next; add starts=Data('starts', plates={steps}), a 1 at the first {steps} of each {outer.name}, "
            f"0 at the others"
        )


class States(ABC):
    """States of N successive rows, before anything of them was observed.

    Attributes
    ----------
    starts
        Whether a sequence begins at each row, shape (N,), or of one row that counts for all; the first row always
        begins one.
    """

    starts: AnyArray

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """Shape of the rows."""
        return self.starts.shape

    def __getitem__(self, index: Any) -> Self:
        """Return the distribution of the rows at ``index``."""
        by_step = {name: own[index] for name, own in self._by_step.items()}
        own: Any = self
        return replace(own, starts=self.starts[index], **by_step)

    @property
    def _by_step(self) -> dict[str, AnyArray]:
        """Parameters that differ from step to step, besides the starts."""
        return {}

    @cached_property
    @abstractmethod
    def _chain(self) -> Any:
        """The factor of the states with nothing observed."""

    def sample(self, size: int | tuple[int, ...] | None, seed: int | np.random.Generator | None) -> AnyArray:
        """Return states of shape size + (N, ...)."""
        return self._chain.sample(size, seed)

    def log_density(self, value: AnyArray) -> Array:
        """Return the log density, or log-probability, of all states (..., N, ...) together."""
        return self._chain.log_density(value)


@dataclass(frozen=True)
class Paths(States):
    """Categories as states.

    Attributes
    ----------
    initial
        Probabilities of the first state of a sequence, shape (K,).
    transition
        Probabilities of the next state, a row for each present one, shape (K, K), or (N, K, K) if the steps differ.
    """

    initial: Array
    transition: Array
    starts: AnyArray

    @property
    def _by_step(self) -> dict[str, AnyArray]:
        return {} if self.transition.ndim == 2 else {"transition": self.transition}

    @cached_property
    def _chain(self) -> families.MarkovChain | families.ChangingMarkovChain:
        kind = families.MarkovChain if self.transition.ndim == 2 else families.ChangingMarkovChain
        logits = np.zeros((len(self.starts), len(self.initial)))
        with np.errstate(divide="ignore"):
            return kind(logits, self.starts, np.log(self.initial), np.log(self.transition))


@dataclass(frozen=True)
class StatePaths(States):
    """Vectors as states, each linear in the one before.

    Attributes
    ----------
    mean, precision
        Of the first state of a sequence, shapes (D,) and (D, D).
    transition, noise_precision
        Of each other state given the one before it, shape (D, D), or (N, D, D) if the steps differ.
    pushes
        What is added to the state of each step, of the length of the starts; None for nothing.
    """

    mean: Array
    precision: Array
    transition: Array
    noise_precision: Array
    starts: AnyArray
    pushes: Array | None = None

    @property
    def _by_step(self) -> dict[str, AnyArray]:
        matrices = {"transition": self.transition, "noise_precision": self.noise_precision}
        own = {name: matrix for name, matrix in matrices.items() if matrix.ndim == 3}
        return own if self.pushes is None else {**own, "pushes": self.pushes}

    @cached_property
    def _chain(self) -> families.LinearGaussianChain:
        n_rows, size = len(self.starts), len(self.mean)
        linear = np.zeros((n_rows, size))
        if self.pushes is not None:
            own = times_vector(self.noise_precision, self.pushes)
            before = times_vector(np.swapaxes(self.transition, -1, -2), own)
            linear = told_by_inputs(own, -before, self.starts)
        return families.LinearGaussianChain(
            linear,
            np.zeros((n_rows, size, size)),
            self.starts,
            self.mean,
            self.precision,
            self.transition,
            self.noise_precision,
        )
