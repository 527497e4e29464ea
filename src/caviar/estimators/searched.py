"""Estimators whose number of components, states or topics may be found by a search."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from .._typing import Array
from ..engine.ascent.status import Status
from ..fitting.model import Model
from ..lazy.rows import in_memory
from ..posterior.posterior import Posterior
from .arguments.checkpointing import NextFit
from .automatic.arguments import is_auto
from .automatic.best import best_search
from .automatic.move import Move
from .automatic.problem import Problem
from .mixtures.mixture import MixtureEstimator, Statement
from .saveable import PlainForm, Saveable


def _moves(values: Any) -> list[Move]:
    return [Move.of_plain(entry) for entry in values]


class Searched(Saveable):
    """An estimator that keeps the moves of its search, ``moves_``."""

    n_components: Any
    _plain_forms: ClassVar = {"moves_": PlainForm(lambda moves: [move.as_plain() for move in moves], _moves)}

    def _explanation(self, posterior: Posterior) -> str:
        """Return why a fit ended; an interrupted search is described as one."""
        if is_auto(self.n_components) and posterior.status is Status.INTERRUPTED:
            return "the search for the number of components was interrupted; this is the best so far"
        return super()._explanation(posterior)


class SearchedMixture(Searched, MixtureEstimator):
    """A mixture whose number of components may be found."""

    @abstractmethod
    def _problem(
        self, data: Mapping[str, Any], model_of: Callable[[int], Model], next_fit: NextFit
    ) -> Problem:
        """Return what is searched, with a weight of 1 for each row."""

    def _start_of_search(self, X: Array) -> Array | None:
        """Return the responsibilities that a search begins with; None for one component."""
        return None

    def _best(
        self,
        statement: Statement,
        data: Mapping[str, Any],
        sample_weight: Array | None,
        generator: np.random.Generator,
        next_fit: NextFit,
    ) -> Posterior:
        if statement.model_of is None:
            self.__dict__.pop("moves_", None)
            return super()._best(statement, data, sample_weight, generator, next_fit)
        problem = self._problem(data, statement.model_of, next_fit)
        start = self._start_of_search(problem.X)
        if sample_weight is not None:
            weights = in_memory(sample_weight)
            rows = slice(None) if np.all(weights > 0) else weights > 0
            problem = replace(problem, X=problem.X[rows], weights=weights[rows])
            start = None if start is None else start[rows]
        posterior, self.moves_ = best_search(problem, start, generator, self.n_init, self.verbose)
        return posterior
