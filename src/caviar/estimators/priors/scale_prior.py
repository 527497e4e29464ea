"""The inverse scale of the precisions' prior: given, or learnt for all components together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ..._typing import AnyArray, Array
from ...language import Constant, Gamma, Plate, diagonal
from ...posterior.posterior import Posterior

LEARNT, EMPIRICAL = "auto", "empirical"
"""The words of ``covariance_prior``."""

_SHAPE = 1.0
"""Shape of the Gamma of a learnt scale: exponential. At 1/2 a scale could shrink without limit on a single row."""

_FLOOR, _FLOOR_OF_ROWS = 1e-6, 1e-12
"""The smallest learnt scale, in variances of the data: in all, and for each row."""

_NAME, _FLOOR_NAME = "scale", "smallest_scale"


@dataclass(frozen=True, eq=False)
class GivenScale:
    """An inverse scale that is known.

    Attributes
    ----------
    known
        In the shape of the precision of one component, or of all.
    """

    known: Array

    def matrix(self) -> Array:
        """Return the inverse scale B of a Wishart, (D, D)."""
        return self.known

    def rate(self, feature: Plate) -> Array:
        """Return the rate B / 2 of Gammas, a Wishart for one column each, given the plate of the columns."""
        return 0.5 * self.known


@dataclass(frozen=True, eq=False)
class LearntScale:
    r"""One inverse scale for all components, diagonal, with a separate factor.

    .. math::
        B = \mathrm{diag}(b + \epsilon), \qquad b_d \sim \mathrm{Gamma}(1, 1 / s_d^2)

    Its prior expects the variances :math:`s_d^2` of the data, and is so wide that the components decide. The floor
    :math:`\epsilon` keeps the evidence finite where rows of a component are all equal in some direction.

    Attributes
    ----------
    variances
        Of the columns of the data, (D,); or one number.
    n_rows
        Total weight of the rows.

    Notes
    -----
    Diagonal, as in Huang and Wand, "Simple marginally noninformative prior distributions for covariance matrices"
    (Bayesian Analysis, 2013), section 2: correlations are not drawn anywhere. ``docs/mathematics.md``, section 5.
    """

    variances: Array
    n_rows: float

    known: ClassVar[None] = None
    """The posterior has it, see :func:`learnt_scale`."""

    def constants(self) -> dict[str, Array]:
        """Return the values of its constants by their names."""
        return {f"{_NAME}.rate": _SHAPE / self.variances, _FLOOR_NAME: _floor(self.n_rows, self.variances)}

    @staticmethod
    def of_many(variances: Array, n_rows: AnyArray) -> dict[str, Array]:
        """Return the values of its constants for many tables, (G, ...), by their names."""
        each = n_rows.reshape(-1, *(1,) * (variances.ndim - 1))
        return {f"{_NAME}.rate": _SHAPE / variances, _FLOOR_NAME: _floor(each, variances)}

    def matrix(self) -> Any:
        """Return the diagonal matrix of the scales."""
        scale, floor = self._state(Plate("feature", len(self.variances)))
        return diagonal(scale + floor)

    def rate(self, feature: Plate) -> Any:
        """Return half of the scales, over the plate of the columns where there is one for each."""
        scale, floor = self._state(feature)
        return 0.5 * scale + 0.5 * floor

    def _state(self, feature: Plate) -> tuple[Gamma, Constant]:
        plates = (feature,) if self.variances.ndim else ()
        floor = _floor(self.n_rows, self.variances)
        return (
            Gamma(_NAME, _SHAPE, _SHAPE / self.variances, plates=plates),
            Constant(_FLOOR_NAME, floor, plates=plates),
        )


def _floor(n_rows: Any, variances: Array) -> Array:
    return (_FLOOR + _FLOOR_OF_ROWS * n_rows) * variances


ScalePrior = GivenScale | LearntScale
"""The inverse scale of the prior of the precisions."""


def is_learnt(covariance_prior: Any) -> bool:
    """Return whether this value of ``covariance_prior`` asks for a scale that is learnt."""
    return isinstance(covariance_prior, str) and covariance_prior == LEARNT


def learnt_scale(posterior: Posterior) -> Array | None:
    """Return the expected scales of a posterior, (D,) or a number; None where they were given."""
    if _NAME not in posterior:
        return None
    return posterior[_NAME].mean + posterior.model.constants[_FLOOR_NAME]
