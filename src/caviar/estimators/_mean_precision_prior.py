"""How many rows the prior knowledge of a mean is worth: given, or learnt for all components together."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..language import Gamma
from ..posterior.posterior import Posterior

__all__ = ["GivenMeanPrecision", "LearntMeanPrecision", "MeanPrecisionPrior", "learnt_mean_precision"]

_NAME = "mean_precision"


class MeanPrecisionPrior(ABC):
    """What stands in the slot of the prior precision of the means."""

    @property
    @abstractmethod
    def known(self) -> ArrayLike | None:
        """The precision; None where it is learnt."""

    @abstractmethod
    def state(self) -> Any:
        """Return the precision, over the components."""

    @abstractmethod
    def state_of_columns(self) -> Any:
        """Return the precision, over components and columns."""


@dataclass(frozen=True, eq=False)
class GivenMeanPrecision(MeanPrecisionPrior):
    """A precision that is known.

    Attributes
    ----------
    value
        In the joint form a number or (K,); in the independent form as :class:`ComponentPrior` says.
    """

    value: ArrayLike

    @property
    def known(self) -> ArrayLike:
        """The value."""
        return self.value

    def state(self) -> ArrayLike:
        """Return the value."""
        return self.value

    def state_of_columns(self) -> ArrayLike:
        """Return the value, one for each component as a column."""
        return np.asarray(self.value)[:, None] if np.ndim(self.value) == 1 else self.value


class LearntMeanPrecision(MeanPrecisionPrior):
    r"""One number for all components, with a factor of its own: :math:`\kappa \sim \mathrm{Gamma}(1, 1)`.

    Where clusters are narrow compared with their distances a mean is known to far fewer than one row of its own
    component, and the covariance would pay for a prior that claims one.
    """

    @property
    def known(self) -> None:
        """None: the posterior has it, see :func:`learnt_mean_precision`."""

    def state(self) -> Gamma:
        """Return the number."""
        return Gamma(_NAME, 1.0, 1.0)

    def state_of_columns(self) -> Gamma:
        """Return the number."""
        return self.state()


def learnt_mean_precision(posterior: Posterior) -> float | None:
    """Return the expected precision of a posterior; None where it was given."""
    return float(posterior[_NAME].mean) if _NAME in posterior else None
