"""How many rows the prior knowledge of a mean is worth: given, or learnt for all components together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ...language import Gamma
from ...posterior.posterior import Posterior

_NAME = "mean_precision"


@dataclass(frozen=True, eq=False)
class GivenMeanPrecision:
    """A precision that is known.

    Attributes
    ----------
    known
        In the joint form a number or (K,); in the independent form as :class:`ComponentPrior` says.
    """

    known: ArrayLike

    def state(self) -> ArrayLike:
        """Return the precision, over the components."""
        return self.known

    def state_of_columns(self) -> ArrayLike:
        """Return the precision, over components and columns: one for each component as a column."""
        return np.asarray(self.known)[:, None] if np.ndim(self.known) == 1 else self.known


class LearntMeanPrecision:
    r"""One number for all components, with a separate factor: :math:`\kappa \sim \mathrm{Gamma}(1, 1)`.

    Where clusters are narrow compared with their distances a mean is known to far fewer than one row of its own
    component, and the covariance would pay for a prior that claims one.
    """

    known: ClassVar[None] = None
    """The posterior has it, see :func:`learnt_mean_precision`."""

    def state(self) -> Gamma:
        """Return the number."""
        return Gamma(_NAME, 1.0, 1.0)

    def state_of_columns(self) -> Gamma:
        """Return the number."""
        return self.state()


MeanPrecisionPrior = GivenMeanPrecision | LearntMeanPrecision
"""The prior precision of the means."""


def learnt_mean_precision(posterior: Posterior) -> float | None:
    """Return the expected precision of a posterior; None where it was given."""
    return float(posterior[_NAME].mean) if _NAME in posterior else None
