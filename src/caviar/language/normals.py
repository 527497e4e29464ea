"""Normal distributions, and their joint priors with a precision."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from .. import families
from .nodes import Expression
from .plates import Plates
from .roles import (
    LOCATION,
    LOCATION_AND_PRECISION,
    LOCATION_AND_PRECISION_MATRIX,
    LOCATION_VECTOR,
    PRECISION,
    PRECISION_MATRIX,
    SHAPE,
    degrees_of_freedom,
)
from .templates import LOG_2PI, template
from .variable import Variable

__all__ = ["MultivariateNormal", "Normal", "NormalGamma", "NormalWishart"]


class Normal(Variable):
    r"""A number with a Normal distribution.

    .. math::
        \log N(x \mid m, \tau^{-1}) = -\tfrac12\tau x^2 + \tau m x - \tfrac12\tau m^2 + \tfrac12\log\tau
        - \tfrac12\log 2\pi

    Parameters
    ----------
    name
        Unique within the model; under which data and posterior are found.
    mean
        Number, array, Normal, or a whole NormalGamma (then without ``precision``).
    precision
        Inverse variance: number, array or Gamma. ``mean=0, precision=0`` states the flat improper prior.
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
        return "precision" in self.slots and _is_zero(self, "precision")

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
        Unique within the model; under which data and posterior are found.
    mean
        Vector of length D, MultivariateNormal, or a whole NormalWishart (then without ``precision``).
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
        return "precision" in self.slots and _is_zero(self, "precision")

    def unit_value(self, plates: tuple[int, ...], spread: float) -> Any:
        """Return the reference point."""
        return np.zeros((*plates, self.dimension or 1))

    def unit_factor(self, plates: tuple[int, ...], spread: float) -> families.MultivariateNormal:
        """Return a factor as broad as the data."""
        size = self.dimension or 1
        return families.MultivariateNormal(np.zeros((*plates, size)), np.eye(size) * spread**-2.0)


class NormalGamma(Variable):
    r"""A location and a precision with their joint conjugate prior.

    .. math:: \tau \sim \mathrm{Gamma}(a, b), \qquad \mu \mid \tau \sim N(m, (\kappa\tau)^{-1})

    Parameters
    ----------
    name
        Unique within the model.
    mean, mean_precision, shape, rate
        :math:`m`, :math:`\kappa`, :math:`a` and :math:`b`. ``mean_precision=0, shape=1/2, rate=0`` is the flat prior.
    plates
        Its repetitions.

    Examples
    --------
    >>> NormalGamma("theta", mean=0, mean_precision=0.1, shape=1, rate=1)
    NormalGamma('theta')
    """

    family = families.NormalGamma
    letters: ClassVar = {"precision_x": "", "precision_xx": "", "log_precision": "", "precision": ""}
    base = template((-1, "self.log_precision"))
    density = template(
        (1 / 2, "self.log_precision"),
        (1 / 2, "mean_precision.log_x"),
        (-1 / 2 * LOG_2PI, ""),
        (-1 / 2, "mean_precision.x self.precision_xx"),
        (1, "mean_precision.x mean.x self.precision_x"),
        (-1 / 2, "mean_precision.x mean.xx self.precision"),
        (1, "shape.x self.log_precision"),
        (-1, "rate.x self.precision"),
        (1, "shape.x rate.log_x"),
        (-1, "shape.gammaln"),
    )

    def __init__(
        self,
        name: str,
        mean: Expression,
        mean_precision: Expression,
        shape: Expression,
        rate: Expression,
        *,
        plates: Plates = (),
    ) -> None:
        arguments = {
            "mean": (mean, LOCATION),
            "mean_precision": (mean_precision, PRECISION),
            "shape": (shape, SHAPE),
            "rate": (rate, PRECISION),
        }
        self._state(name, plates, arguments, dimension=1)

    def _states_flat_prior(self) -> bool:
        return _is_zero(self, "mean_precision") and _is_zero(self, "rate") and _is_value(self, "shape", 1 / 2)

    def unit_value(self, plates: tuple[int, ...], spread: float) -> Any:
        """Return the reference point, with the inverse variance of the data."""
        return families.MeanPrecision(np.zeros(plates), np.full(plates, spread**-2.0))

    def unit_factor(self, plates: tuple[int, ...], spread: float) -> families.NormalGamma:
        """Return a factor as broad as the data."""
        return families.NormalGamma(np.zeros(plates), 1.0, 1.0, spread**2.0)


class NormalWishart(Variable):
    r"""A location vector and a precision matrix with their joint conjugate prior.

    .. math:: \Lambda \sim \mathrm{Wishart}(\nu, B), \qquad \mu \mid \Lambda \sim N(m, (\kappa\Lambda)^{-1})

    Parameters
    ----------
    name
        Unique within the model.
    mean, mean_precision, df, inverse_scale
        :math:`m` (D), :math:`\kappa`, :math:`\nu > D - 1` and :math:`B` (D x D; the expected precision is
        :math:`\nu B^{-1}`). ``mean_precision=0, df=D, inverse_scale=0`` is the flat prior.
    plates
        Its repetitions.

    Examples
    --------
    >>> import numpy as np
    >>> NormalWishart("theta", mean=np.zeros(2), mean_precision=0.1, df=3, inverse_scale=np.eye(2))
    NormalWishart('theta')
    """

    family = families.NormalWishart
    value_rank = 1
    letters: ClassVar = {"precision_x": "i", "precision_xx": "", "log_det": "", "precision": "ij"}
    base = template((-1 / 2, "self.log_det [i]"), (-1 / 2, "self.log_det"))
    density = template(
        (1 / 2, "self.log_det"),
        (1 / 2, "mean_precision.log_x [i]"),
        (-1 / 2 * LOG_2PI, "[i]"),
        (-1 / 2, "mean_precision.x self.precision_xx"),
        (1, "mean_precision.x mean.x[i] self.precision_x[i]"),
        (-1 / 2, "mean_precision.x mean.xx[ij] self.precision[ij]"),
        (1 / 2, "df.x self.log_det"),
        (-1 / 2, "inverse_scale.x[ij] self.precision[ij]"),
        (1 / 2, "df.x inverse_scale.log_det"),
        (-1 / 2 * np.log(2), "df.x [i]"),
        (-1, "df.log_gamma"),
    )

    def __init__(
        self,
        name: str,
        mean: Expression,
        mean_precision: Expression,
        df: Expression,
        inverse_scale: Expression,
        *,
        plates: Plates = (),
    ) -> None:
        arguments = {
            "mean": (mean, LOCATION_VECTOR),
            "mean_precision": (mean_precision, PRECISION),
            "df": (df, degrees_of_freedom),
            "inverse_scale": (inverse_scale, PRECISION_MATRIX),
        }
        self._state(name, plates, arguments)

    def _states_flat_prior(self) -> bool:
        flat = _is_zero(self, "mean_precision") and _is_zero(self, "inverse_scale")
        return flat and _is_value(self, "df", self.dimension or 0)

    def unit_value(self, plates: tuple[int, ...], spread: float) -> Any:
        """Return the reference point, with the inverse variance of the data on the diagonal."""
        size = self.dimension or 1
        precision = np.broadcast_to(np.eye(size) * spread**-2.0, (*plates, size, size))
        return families.MeanPrecision(np.zeros((*plates, size)), precision)

    def unit_factor(self, plates: tuple[int, ...], spread: float) -> families.NormalWishart:
        """Return a factor as broad as the data."""
        size = self.dimension or 1
        scale = (size + 1) * spread**2.0 * np.eye(size)
        return families.NormalWishart(np.zeros((*plates, size)), 1.0, size + 1.0, scale)


def _is_value(variable: Variable, slot: str, value: float) -> bool:
    known = variable.known(slot)
    return known is not None and bool(np.all(known == value))


def _is_zero(variable: Variable, slot: str) -> bool:
    return _is_value(variable, slot, 0.0)
