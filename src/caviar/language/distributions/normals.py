"""Normal distributions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import numpy as np
from scipy.special import digamma

from ... import families
from ..._errors import ModelError
from ..._typing import Array
from ...families.approximations.by_moments import REALS
from ...families.approximations.scale_mixtures import gamma_nodes, shape_of_log_variance
from ...numerics.linalg import inverse, symmetric_part
from ..expansion.joining import whole_if_together
from ..nodes.algebra import Algebra, Diagonal
from ..nodes.constants import as_known
from ..nodes.expected_slots import ExpectedSlots
from ..nodes.node import Expression
from ..nodes.plates import Plates
from ..nodes.roles import (
    LOCATION,
    LOCATION_AND_PRECISION,
    LOCATION_AND_PRECISION_MATRIX,
    LOCATION_VECTOR,
    PRECISION,
    PRECISION_MATRIX,
    Role,
)
from ..nodes.templates import LOG_2PI, Density, template
from ..variable import Variable


class WithNoise(Variable):
    """A variable with a mean and the precision of Normal noise, or a joint factor of both."""

    by_moments: ClassVar = REALS

    def moments_given(self, slots: ExpectedSlots) -> tuple[Array, Array]:
        """Return mean and variance: those of the mean, and the noise."""
        mean, variance = slots.location()
        return mean, variance + slots.inverse("precision")[0]

    def parts_given(
        self, slots: ExpectedSlots, mean: Array, variance: Array
    ) -> list[tuple[Array, Array, Array]]:
        """Return Normals with a few values of the precision: their mixture has the tails of an uncertain precision."""
        return with_precisions(slots, mean, variance, is_joint="precision" not in self.stated)


class _Location(WithNoise):
    """What numbers and vectors with a Normal distribution share."""

    joint_density: ClassVar[Density]
    """Its density where a joint factor gives mean and precision."""
    roles: ClassVar[tuple[Role, Role, Role]]
    """What its mean and its precision are, and what a joint factor of both is."""
    size: ClassVar[int | None] = None
    """Its dimension, if that is always the same."""

    def __init__(
        self, name: str, mean: Expression, precision: Expression = None, *, plates: Plates = ()
    ) -> None:
        mean, precision = whole_if_together(mean, precision, self.value_rank)
        of_mean, of_precision, of_both = self.roles
        if precision is None:
            density, arguments = self.joint_density, {"mean": (mean, of_both)}
        else:
            density, arguments = (
                self.density,
                {"mean": (mean, of_mean), "precision": (precision, of_precision)},
            )
        self._state(name, plates, arguments, density=density, dimension=self.size)

    def distribution_given(self, slots: Mapping[str, Any]) -> Any:
        """Return the Normal given a mean and a precision, or the pair of them that a joint factor gives."""
        mean, precision = slots["mean"] if "precision" not in slots else (slots["mean"], slots["precision"])
        return self.family(mean, precision)  # type: ignore[call-arg]

    def _states_flat_prior(self) -> bool:
        return self._holds("precision", 0)


_INSTEAD = {
    "sigma": "An unknown scale is stated as a precision, the inverse variance: precision=Gamma('tau', 1, 1)",
    "covariance": "An unknown covariance is stated by its inverse: precision=Wishart('Lambda', df, inverse_scale)",
}


def _one_of(name: str, word: str, value: Any, precision: Any) -> Array | None:
    """Return a known scale that was given instead of a precision; None if there is none.

    Raises
    ------
    ModelError
        If it is unknown, or there is a precision too.
    """
    if value is None:
        return None
    where = f"'{word}' of '{name}'"
    if precision is not None:
        raise ModelError(f"{where} is given beside a precision; give one of them")
    if isinstance(value, Algebra | Diagonal):
        raise ModelError(f"{where} must be a known number or array; got {value!r}. {_INSTEAD[word]}")
    return as_known(value, where)


def _inverse_square(sigma: Array, name: str) -> Array:
    if not np.all((sigma > 0) & np.isfinite(sigma)):
        raise ModelError(f"'sigma' of '{name}' must be positive and finite; got {sigma}")
    return 1.0 / np.square(sigma)


def _inverse(covariance: Array, name: str) -> Array:
    if covariance.ndim < 2 or covariance.shape[-1] != covariance.shape[-2]:
        raise ModelError(f"'covariance' of '{name}' must be a square matrix; got shape {covariance.shape}")
    # half of a matrix is lost if it is read from one triangle only
    away = np.abs(covariance - np.swapaxes(covariance, -1, -2)).max()
    if not away <= 1e-6 * np.abs(covariance).max():
        raise ModelError(
            f"'covariance' of '{name}' must be symmetric; two mirrored entries differ by {away:g}"
        )
    try:
        np.linalg.cholesky(symmetric_part(covariance))
    except np.linalg.LinAlgError:
        raise ModelError(f"'covariance' of '{name}' must be positive definite") from None
    # of a nearly singular matrix, such as a smooth kernel, the inverse is far from symmetric
    return symmetric_part(inverse(symmetric_part(covariance)))


class Normal(_Location):
    r"""A real number with a Normal distribution.

    .. math::
        \log N(x \mid m, \tau^{-1}) = -\tfrac12\tau x^2 + \tau m x - \tfrac12\tau m^2 + \tfrac12\log\tau
        - \tfrac12\log 2\pi

    Parameters
    ----------
    name
        Name of the variable, its data and its factor in the posterior, unique within the model.
    mean
        A number, an array, a Normal, or a sum or product of these; or a NormalGamma, which replaces ``precision`` too.
        If the mean contains ``theta.mean`` of a NormalGamma, the precision must be ``theta.precision``, or a product
        with it.
    precision
        Inverse variance: a number, an array, a Gamma, or a product of these. ``mean=0, precision=0`` is the flat,
        improper prior.
    sigma
        Known standard deviation instead of the precision: a number or an array.
    plates
        Plates along which the variable is repeated.

    Examples
    --------
    >>> from caviar import Gamma, Plate
    >>> Normal("x", Normal("m", 0, 0.1), Gamma("tau", 1, 1), plates=Plate("obs"))
    Normal('x', plates=(obs))
    """

    family = families.Normal
    roles = LOCATION, PRECISION, LOCATION_AND_PRECISION
    size = 1
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
        self,
        name: str,
        mean: Expression,
        precision: Expression = None,
        *,
        sigma: Any = None,
        plates: Plates = (),
    ) -> None:
        own = _one_of(name, "sigma", sigma, precision)
        super().__init__(name, mean, precision if own is None else _inverse_square(own, name), plates=plates)

    def unit_value(self, plates: tuple[int, ...], spread: float) -> Any:
        """Return the reference point."""
        return np.zeros(plates)

    def unit_factor(self, plates: tuple[int, ...], spread: float) -> families.Normal:
        """Return a factor as broad as the data."""
        return families.Normal(np.zeros(plates), spread**-2.0)


class MultivariateNormal(_Location):
    r"""A vector with a Normal distribution.

    .. math::
        \log N(x \mid m, \Lambda^{-1}) = -\tfrac12 \mathrm{tr}(\Lambda xx^T) + m^T\Lambda x
        - \tfrac12 \mathrm{tr}(\Lambda mm^T) + \tfrac12\log|\Lambda| - \tfrac D2\log 2\pi

    Parameters
    ----------
    name
        Name of the variable, its data and its factor in the posterior, unique within the model.
    mean
        A vector of length D, a MultivariateNormal, or a sum of these times numbers, as ``level + effect[group] + x *
        slope``; or a NormalWishart, which replaces ``precision`` too.
    precision
        Inverse covariance matrix, D x D: an array or a Wishart. ``precision=0`` is the flat, improper prior.
    covariance
        Known covariance matrix, D x D, instead of the precision.
    plates
        Plates along which the variable is repeated.
    names
        Names of the entries of a vector, as ``["intercept", "slope"]``, for summaries, plots and messages. If the data
        are a table, these are its columns.

    Examples
    --------
    >>> import numpy as np
    >>> MultivariateNormal("m", np.zeros(2), np.eye(2) / 100)
    MultivariateNormal('m')
    """

    family = families.MultivariateNormal
    roles = LOCATION_VECTOR, PRECISION_MATRIX, LOCATION_AND_PRECISION_MATRIX
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
        self,
        name: str,
        mean: Expression,
        precision: Expression = None,
        *,
        covariance: Any = None,
        plates: Plates = (),
        names: Iterable[str] | None = None,
    ) -> None:
        own = _one_of(name, "covariance", covariance, precision)
        super().__init__(name, mean, precision if own is None else _inverse(own, name), plates=plates)
        self.name_entries(names)

    def unit_value(self, plates: tuple[int, ...], spread: float) -> Any:
        """Return the reference point."""
        return np.zeros((*plates, self.dimension or 1))

    def unit_factor(self, plates: tuple[int, ...], spread: float) -> families.MultivariateNormal:
        """Return a factor as broad as the data."""
        size = self.dimension or 1
        return families.MultivariateNormal(np.zeros((*plates, size)), np.eye(size) * spread**-2.0)


_LARGEST = 1e6
"""Shape from which a precision is as good as known."""


def with_precisions(
    slots: ExpectedSlots, mean: Array, variance: Array, *, is_joint: bool
) -> list[tuple[Array, Array, Array]]:
    """Return weights, means and variances of the Normals for some values of a precision.

    The precision, or the product of several, is taken as the Gamma with the mean and variance of its logarithm, which
    is exact for a single one.

    Parameters
    ----------
    mean, variance
        Of a value: what is not known of its mean, and the noise.
    is_joint
        Whether the variance of the mean is in proportion to that of the noise, as in a joint factor.
    """
    told = slots.log_precision("precision")
    if told is None:
        return [(np.ones(()), mean, variance)]
    shape = np.minimum(shape_of_log_variance(told[1]), _LARGEST)
    noise = slots.inverse("precision")[0]
    if is_joint and not np.isfinite(noise).all():
        return [(np.ones(()), mean, variance)]
    weights, nodes = gamma_nodes(shape)
    rate = np.exp(digamma(shape) - told[0])
    if len(weights) == 1:
        return [(np.ones(()), mean, variance)]
    location = None if is_joint else slots.location()[1]
    return [
        (weight, mean, variance * (rate / node) / noise if location is None else location + rate / node)
        for weight, node in zip(weights, nodes, strict=True)
    ]
