"""The problem of a search for the number of states of a hidden Markov model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..._typing import Array
from ...fitting.model import Model
from ...posterior.posterior import Posterior
from .problem import Problem, Starts


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

    tries_anew: ClassVar[bool] = True
    starts: Array | None = None
    mixture_of: Callable[[int], Model] | None = None

    def responsibilities(self, posterior: Posterior) -> Array:
        """Return q(s) of each row, shape (N, K)."""
        return posterior.local(self._data())["s"].probabilities

    def responsibilities_under_part(self, posterior: Posterior) -> Array:
        """Return q(z) of each row by itself, shape (N, K)."""
        return posterior.local({"x": self.values(self.X)})["z"].probabilities

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
        return {"s": init["z"]}
