"""What predictions are mixtures over, beside or in the place of the factors of a fit."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from .prediction import Prediction

Told: TypeAlias = "Callable[..., Mapping[str, Prediction]]"
"""Returns predictions of variables by name."""

Drawn: TypeAlias = "Callable[[int, np.random.Generator], Mapping[str, Any]]"
"""Returns a number of draws of all globals by name, which count alike."""


class Over(ABC):
    """What is known of the globals at a few of their values, or at draws."""

    @abstractmethod
    def mixed(self, told: Told, data: Any) -> Told:
        """Return a function of variables that returns the mixtures of their predictions given each value.

        Parameters
        ----------
        told
            Returns predictions of variables by name with the factors of the fit.
        data
            Of new rows. Where these have one of the globals themselves, nothing is mixed.
        """

    def inferred(self, found: Mapping[str, Prediction], data: Any) -> Mapping[str, Prediction]:
        """Return the same of predictions of observed variables that the rest of their row tells of."""
        return found

    def drawn(self, of_factors: Drawn) -> Drawn:
        """Return what draws all globals, in the place of draws of the factors."""
        return of_factors
