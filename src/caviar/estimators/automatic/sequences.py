"""The problem of a search for the number of states of a hidden Markov model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..._typing import Array
from ...engine.ascent.schedules.swaps import Mixture
from ...engine.ascent.schedules.weighed import weighed
from ...fitting.model import Model
from ...posterior.posterior import Posterior
from .in_time import badly_explained, stays_in_halves
from .problem import MoveInTime, Problem, Starts, factors_of, state_at
from .proposals import in_units


@dataclass(frozen=True)
class SequenceProblem(Problem):
    """Rows in sequences, and the statement of their hidden Markov model for any number of states.

    Moves are proposed by mixtures of the rows of a state, or of two, in any order; each is judged by the ELBO
    of the hidden Markov model of all sequences.

    Attributes
    ----------
    starts
        1 where a sequence begins, (N,).
    mixture_of
        Number of components -> the mixture of rows by themselves, with the same emissions.
    """

    # a split begins with rows by themselves, and time tells its states apart only slowly
    patience: ClassVar[tuple[int, int]] = (10, 100)
    tries_anew: ClassVar[bool] = True
    settles_near: ClassVar[bool] = False
    starts: Array | None = None
    mixture_of: Callable[[int], Model] | None = None

    def responsibilities(self, posterior: Posterior) -> Array:
        """Return q(s) of each row, shape (N, K)."""
        return posterior.local(self._data())["s"].probabilities

    def responsibilities_under_part(self, posterior: Posterior) -> Array:
        """Return q(z) of each row by itself, shape (N, K)."""
        return posterior.local({"x": self.values(self.X)})["z"].probabilities

    def weighed(self, posterior: Posterior, responsibilities: Array) -> Mixture | None:
        """Return the mixture of rows by themselves that has the emissions of the states."""
        assert self.mixture_of is not None
        model = self.mixture_of(responsibilities.shape[1])
        known = model.variables
        emissions = {
            name: own
            for name, own in factors_of(posterior).items()
            # weights of transitions are no weights of rows
            if name in known and own.family is known[name].family
        }
        start = {**emissions, "z": responsibilities}
        return weighed(state_at(model, {"x": self.values(self.X)}, start, self.weights))

    def moves_in_time(self, responsibilities: Array, natural: Array) -> list[MoveInTime]:
        """Return splits of states by their stays, and births of states in stretches that are badly explained."""
        points = in_units(np.asarray(self.X, dtype=np.float64), self.weights)
        starts = np.asarray(self.starts) > 0
        halves = stays_in_halves(responsibilities, points, self.weights, starts)
        births = badly_explained(responsibilities, natural.T, self.weights, starts)
        return [
            *(("split", "by stays", k, share) for k, share in halves),
            *(("birth", f"in {length} rows", k, share) for length, k, share in births),
        ]

    def part(self, share: Array, smallest: float, **changes: Any) -> Problem:
        """Return the rows of a part by themselves, as rows of a mixture."""
        assert self.mixture_of is not None
        rows = share > smallest
        given: dict[str, Any] = {"tol": self.tol, "max_iter": self.max_iter, **changes}
        return Problem(
            self.mixture_of,
            self.X[rows],
            (self.weights * share)[rows],
            executor=self.executor,
            values=self.values,
            **given,
        )

    def subsample(self, largest: int) -> Problem:
        """Return the same: rows of a sequence belong together."""
        return self

    def _data(self) -> dict[str, Any]:
        return {**super()._data(), "starts": np.asarray(self.starts)}

    def _start(self, init: Starts) -> Starts:
        if isinstance(init, str) or "z" not in init:
            return init
        return {**{name: own for name, own in init.items() if name != "z"}, "s": init["z"]}
