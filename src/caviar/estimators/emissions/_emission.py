"""The protocol of emissions: a statement of rows given their states, and what a fit says of the rows of a state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from ..._typing import AnyArray, Array
from ...language import Plate, Variable
from ...posterior.posterior import Posterior
from ...posterior.prediction.prediction import Prediction
from ..priors.structure import Label

Observe = Callable[[Label, Plate], Variable]
"""States the rows ``x``, given what chooses their states, and the plate of the states."""


class Emission(ABC):
    """A family of distributions of rows, one for each state.

    Attributes
    ----------
    name
        The word of ``emission=``.
    arguments
        The arguments of the estimator that only this emission has.
    """

    name: ClassVar[str]
    arguments: ClassVar[tuple[str, ...]]

    @abstractmethod
    def check(self, settings: Any) -> None:
        """Refuse impossible arguments of the estimator.

        Raises
        ------
        ParameterError
            If there is one; the message names it.
        """

    @abstractmethod
    def rows(self, estimator: Any, X: Any, *, reset: bool) -> Array:
        """Return rows as numbers, (N, D), NaN where an entry is missing, after they were checked.

        Parameters
        ----------
        estimator
            Remembers number and names of the columns (``reset``), or has those of the fit.
        X
            As the user gave them.

        Raises
        ------
        ValueError
            If they are impossible, or are not like those of the fit.
        """

    @abstractmethod
    def stated(self, settings: Any, rows: Array, weights: Array | None) -> Callable[[int], Observe]:
        """Return number of states -> what states rows of the data given their states.

        Parameters
        ----------
        settings
            The estimator, whose arguments are the prior.
        rows
            Of the fit, (N, D).
        weights
            Weight of each row, or None.
        """

    def values(self, rows: Array) -> AnyArray:
        """Return rows as values of the variable ``x``."""
        return rows

    @abstractmethod
    def emitted(self, settings: Any, posterior: Posterior) -> Emitted:
        """Return what a fit says of the rows of each state."""


class Emitted(ABC):
    """The distributions of new rows of K states under a fit."""

    @abstractmethod
    def attributes(self) -> Mapping[str, Any]:
        """Return the fitted attributes that only this emission has."""

    @abstractmethod
    def log_densities(self, rows: Array) -> Array:
        """Return the log density of what was observed of rows in each state, (N, D) -> (N, K); 0 of missing rows."""

    @abstractmethod
    def draw(self, states: AnyArray, generator: np.random.Generator) -> AnyArray:
        """Return rows of some states, (n,) -> (n, D)."""

    @abstractmethod
    def prediction(self, shares: Array) -> Prediction:
        """Return the prediction of rows whose states have these probabilities, (n, K)."""

    @abstractmethod
    def figures(self, level: float) -> Sequence[tuple[tuple[Any, ...], tuple[Any, ...], tuple[Any, ...]]]:
        """Return means, standard deviations and probabilities of each column, for each state; None where it has none.

        Parameters
        ----------
        level
            Of the intervals of the means.
        """
