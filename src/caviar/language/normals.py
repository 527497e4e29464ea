"""Normal distributions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from .. import families
from .joining import whole_if_together
from .nodes import Expression
from .plates import Plates
from .roles import (
    LOCATION,
    LOCATION_AND_PRECISION,
    LOCATION_AND_PRECISION_MATRIX,
    LOCATION_VECTOR,
    PRECISION,
    PRECISION_MATRIX,
)
from .templates import LOG_2PI, template
from .variable import Variable


class Normal(Variable):
    r"""A number with a Normal distribution.

    .. math::
        \log N(x \mid m, \tau^{-1}) = -\tfrac12\tau x^2 + \tau m x - \tfrac12\tau m^2 + \tfrac12\log\tau
        - \tfrac12\log 2\pi

    Parameters
    ----------
    name
        Unique within the model; also the name of its data and of its factor in the posterior.
    mean
        Number, array, Normal, a sum or product of these, or a whole NormalGamma (then without ``precision``). With
        ``theta.mean`` in it, a part of a NormalGamma, ``theta.precision`` must be the precision, or a factor of it.
    precision
        Inverse variance: number, array, Gamma, or a product of these. ``mean=0, precision=0`` states the flat improper
        prior.
    plates
        Its repetitions.

    Examples
    --------
    >>> from caviar import Gamma, Plate
    >>> Normal("x", Normal("m", 0, 0.1), Gamma("tau", 1, 1), plates=Plate("obs"))
    Normal('x', plates=(obs))
    """

    family = families.Normal
    letters: ClassVar = {"x": "", "xx": ""}
    density = template(
        (-1 / 2, "precision.x self.xx"),
        (1, "precision.x mean.x self.x"),
        (-1 / 2, "precision.x mean.xx"),
        (1 / 2, "precision.log_x"),
        (-1 / 2 * LOG_2PI, ""),
    )
    joint_density = template(
        (-1 / 2, "mean.precision self.xx"),
        (1, "mean.precision_x self.x"),
        (-1 / 2, "mean.precision_xx"),
        (1 / 2, "mean.log_precision"),
        (-1 / 2 * LOG_2PI, ""),
    )

    def __init__(
        self, name: str, mean: Expression, precision: Expression = None, *, plates: Plates = ()
    ) -> None:
        mean, precision = whole_if_together(mean, precision, self.value_rank)
        if precision is None:
            self._state(
                name,
                plates,
                {"mean": (mean, LOCATION_AND_PRECISION)},
                density=self.joint_density,
                dimension=1,
            )
        else:
            self._state(
                name, plates, {"mean": (mean, LOCATION), "precision": (precision, PRECISION)}, dimension=1
            )

    def distribution_given(self, slots: Mapping[str, Any]) -> families.Normal:
        """Return the Normal given a mean and a precision, or the pair of them that a joint factor gives."""
        mean, precision = slots["mean"] if "precision" not in slots else (slots["mean"], slots["precision"])
        return families.Normal(mean, precision)

    def _states_flat_prior(self) -> bool:
        return self._holds("precision", 0)

    def unit_value(self, plates: tuple[int, ...], spread: float) -> Any:
        """Return the reference point."""
        return np.zeros(plates)

    def unit_factor(self, plates: tuple[int, ...], spread: float) -> families.Normal:
        """Return a factor as broad as the data."""
        return families.Normal(np.zeros(plates), spread**-2.0)


class MultivariateNormal(Variable):
    r"""A vector with a Normal distribution.

    .. math::
        \log N(x \mid m, \Lambda^{-1}) = -\tfrac12 \mathrm{tr}(\Lambda xx^T) + m^T\Lambda x
        - \tfrac12 \mathrm{tr}(\Lambda mm^T) + \tfrac12\log|\Lambda| - \tfrac D2\log 2\pi

    Parameters
    ----------
    name
        Unique within the model; also the name of its data and of its factor in the posterior.
    mean
        Vector of length D, MultivariateNormal, a sum of these times numbers, as ``level + effect[group] + x * slope``,
        or a whole NormalWishart (then without ``precision``).
    precision
        Inverse covariance, D x D: array or Wishart. ``precision=0`` states the flat improper prior.
    plates
        Its repetitions.

    Examples
    --------
    >>> import numpy as np
    >>> MultivariateNormal("m", np.zeros(2), np.eye(2) / 100)
    MultivariateNormal('m')
    """

    family = families.MultivariateNormal
    value_rank = 1
    letters: ClassVar = {"x": "i", "xx": "ij"}
    density = template(
        (-1 / 2, "precision.x[ij] self.xx[ij]"),
        (1, "precision.x[ij] mean.x[i] self.x[j]"),
        (-1 / 2, "precision.x[ij] mean.xx[ij]"),
        (1 / 2, "precision.log_det"),
        (-1 / 2 * LOG_2PI, "[i]"),
    )
    joint_density = template(
        (-1 / 2, "mean.precision[ij] self.xx[ij]"),
        (1, "mean.precision_x[i] self.x[i]"),
        (-1 / 2, "mean.precision_xx"),
        (1 / 2, "mean.log_det"),
        (-1 / 2 * LOG_2PI, "[i]"),
    )

    def __init__(
        self, name: str, mean: Expression, precision: Expression = None, *, plates: Plates = ()
    ) -> None:
        mean, precision = whole_if_together(mean, precision, self.value_rank)
        if precision is None:
            self._state(
                name, plates, {"mean": (mean, LOCATION_AND_PRECISION_MATRIX)}, density=self.joint_density
            )
        else:
            self._state(
                name, plates, {"mean": (mean, LOCATION_VECTOR), "precision": (precision, PRECISION_MATRIX)}
            )

    def distribution_given(self, slots: Mapping[str, Any]) -> families.MultivariateNormal:
        """Return the Normal given a mean and a precision, or the pair of them that a joint factor gives."""
        mean, precision = slots["mean"] if "precision" not in slots else (slots["mean"], slots["precision"])
        return families.MultivariateNormal(mean, precision)

    def _states_flat_prior(self) -> bool:
        return self._holds("precision", 0)

    def unit_value(self, plates: tuple[int, ...], spread: float) -> Any:
        """Return the reference point."""
        return np.zeros((*plates, self.dimension or 1))

    def unit_factor(self, plates: tuple[int, ...], spread: float) -> families.MultivariateNormal:
        """Return a factor as broad as the data."""
        size = self.dimension or 1
        return families.MultivariateNormal(np.zeros((*plates, size)), np.eye(size) * spread**-2.0)
