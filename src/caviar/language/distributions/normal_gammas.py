"""Joint conjugate priors of a location and the precision of a Normal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Self

import numpy as np

from ... import families
from ..nodes.algebra import Diagonal, Predictor
from ..nodes.node import Expression, Indexed, Node, Part
from ..nodes.plates import Plate, Plates, as_plates
from ..nodes.roles import LOCATION, LOCATION_VECTOR, PRECISION, PRECISION_MATRIX, SHAPE, shape_with_vector
from ..nodes.templates import LOG_2PI, once, template
from .joint_normals import Joint


class NormalGamma(Joint):
    r"""A location and a precision with their joint conjugate prior.

    .. math:: \tau \sim \mathrm{Gamma}(a, b), \qquad \mu \mid \tau \sim N(m, (\kappa\tau)^{-1})

    If the mean is a vector or its precision a matrix, the result is a :class:`MultivariateNormalGamma`: coefficients
    and the precision of the noise. Leading axes are taken as plates, so use that class directly if there are many
    plates.

    Parameters
    ----------
    name
        Name of the variable, unique within the model.
    mean, mean_precision, shape, rate
        Parameters :math:`m`, :math:`\kappa`, :math:`a` and :math:`b`. ``mean_precision=0, shape=1/2, rate=0`` is the
        flat prior.
    plates
        Plates along which the variable is repeated.
    tied
        The last plate, if the locations along it share one precision. The result is then a :class:`TiedNormalGamma`.

    Examples
    --------
    >>> NormalGamma("theta", mean=0, mean_precision=0.1, shape=1, rate=1)
    NormalGamma('theta')
    """

    def __new__(
        cls,
        name: str = "",
        mean: Any = 0.0,
        mean_precision: Any = 1.0,
        *_: Any,
        plates: Plates = (),
        tied: Plate | None = None,
        **__: Any,
    ) -> Self:
        """Return a variable of a sibling class where the precision is tied, or the mean is a vector."""
        kind: type[Any] = cls
        if cls is NormalGamma and tied is not None:
            kind = TiedNormalGamma
        elif cls is NormalGamma and _is_vector(mean, mean_precision, plates):
            kind = MultivariateNormalGamma
        return object.__new__(kind)

    family = families.NormalGamma
    letters: ClassVar = {"precision_x": "", "precision_xx": "", "log_precision": "", "precision": ""}
    shared_slots = ("shape", "rate")
    base = once(template((-1, "self.log_precision")))
    density = (
        *template(
            (1 / 2, "self.log_precision"),
            (1 / 2, "mean_precision.log_x"),
            (-1 / 2 * LOG_2PI, ""),
            (-1 / 2, "mean_precision.x self.precision_xx"),
            (1, "mean_precision.x mean.x self.precision_x"),
            (-1 / 2, "mean_precision.x mean.xx self.precision"),
        ),
        *once(
            template(
                (1, "shape.x self.log_precision"),
                (-1, "rate.x self.precision"),
                (1, "shape.x rate.log_x"),
                (-1, "shape.gammaln"),
            )
        ),
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
        tied: Plate | None = None,
    ) -> None:
        n_locations = self._tie("NormalGamma", name, plates, tied)
        arguments = {
            "mean": (mean, LOCATION),
            "mean_precision": (mean_precision, PRECISION),
            "shape": (shape, SHAPE if n_locations is None else shape_with_vector(n_locations)),
            "rate": (rate, PRECISION),
        }
        self._state(name, plates, arguments, dimension=1)
        if self.tied is not None:
            flat = self._flat()
            shape_in_words = "1 - M/2" if flat is None else f"{flat:g}"
            self._refuse_nearly_flat(shape_in_words, shape_in_words)

    def _flat(self) -> float | None:
        n_numbers = (self.dimension or 1) if self.tied is None else self.tied.size
        return None if n_numbers is None else 1 - n_numbers / 2

    def _refuse_nearly_flat(self, shape: str, rule: str) -> None:
        """Refuse one part of the flat prior without the others; the message gives its shape as a figure and as a rule.

        Raises
        ------
        ModelError
            If so: the message says what goes with it.
        """
        self._refuse_zero("mean_precision", f"shape={shape}, rate=0")
        self._refuse_improper(0, "positive", rule)

    def unit_value(self, plates: tuple[int, ...], spread: float) -> Any:
        """Return the reference point, with the inverse variance of the data."""
        event = (self.dimension or 1,) * self.value_rank
        return families.MeanPrecision(np.zeros(plates + event), np.full(self._of_batch(plates), spread**-2.0))

    def unit_factor(self, plates: tuple[int, ...], spread: float) -> families.ExponentialFamily:
        """Return a factor as broad as the data."""
        return self.family(np.zeros(plates), 1.0, 1.0, spread**2.0)


class MultivariateNormalGamma(NormalGamma):
    r"""A location vector and one precision with their joint conjugate prior: ``NormalGamma`` for a vector.

    .. math:: \tau \sim \mathrm{Gamma}(a, b), \qquad w \mid \tau \sim N(m, (\tau K)^{-1})

    It is conjugate to linear regression with unknown noise, y ~ N(x'w, 1/tau): ``Normal("y", dot(X, theta.mean),
    theta.precision)``.

    Parameters
    ----------
    name
        Name of the variable, unique within the model.
    mean
        :math:`m`: a vector of length D, or a MultivariateNormal.
    mean_precision
        :math:`K`, D x D: an array, a Wishart, or ``diagonal(alpha)``.
    shape, rate
        :math:`a`, known, and :math:`b`, a number or Gamma. ``mean_precision=0, shape=1 - D/2, rate=0`` is the flat
        prior.
    plates
        Plates along which the variable is repeated.
    names
        Names of the entries of a vector, as ``["intercept", "slope"]``, for summaries, plots and messages. If the data
        are a table, these are its columns.

    Raises
    ------
    ModelError
        If K is zero but the prior is not the flat prior.

    Examples
    --------
    >>> import numpy as np
    >>> from caviar import Data, Normal, Plate, dot
    >>> theta = NormalGamma("theta", mean=np.zeros(2), mean_precision=0.1 * np.eye(2), shape=1, rate=1)
    >>> theta, theta.mean
    (MultivariateNormalGamma('theta'), theta.mean)
    >>> obs = Plate("obs")
    >>> Normal("y", 1.5 + dot(Data("X", plates=obs), theta.mean), theta.precision, plates=obs)
    Normal('y', plates=(obs))
    """

    family = families.MultivariateNormalGamma
    value_rank = 1
    letters: ClassVar = {"precision_x": "i", "precision_xx": "ij", "log_precision": "", "precision": ""}
    density = template(
        (1 / 2, "self.log_precision [i]"),
        (1 / 2, "mean_precision.log_det"),
        (-1 / 2 * LOG_2PI, "[i]"),
        (-1 / 2, "mean_precision.x[ij] self.precision_xx[ij]"),
        (1, "mean_precision.x[ij] mean.x[i] self.precision_x[j]"),
        (-1 / 2, "mean_precision.x[ij] mean.xx[ij] self.precision"),
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
        names: Iterable[str] | None = None,
    ) -> None:
        arguments = {
            "mean": (mean, LOCATION_VECTOR),
            "mean_precision": (mean_precision, PRECISION_MATRIX),
            "shape": (shape, shape_with_vector),
            "rate": (rate, PRECISION),
        }
        self._state(name, plates, arguments)
        self.name_entries(names)
        self._refuse_nearly_flat(f"{self._flat():g}", "1 - D/2")

    def unit_factor(self, plates: tuple[int, ...], spread: float) -> families.MultivariateNormalGamma:
        """Return a factor as broad as the data."""
        size = self.dimension or 1
        return families.MultivariateNormalGamma(np.zeros((*plates, size)), np.eye(size), 1.0, spread**2.0)


class TiedNormalGamma(NormalGamma):
    r"""Locations along a plate and their common precision, with a joint conjugate prior.

    .. math:: \tau \sim \mathrm{Gamma}(a, b), \qquad \mu_m \mid \tau \sim N(m_m, (\kappa_m\tau)^{-1})

    ``NormalGamma(..., tied=plate)`` returns it. With a plate of features it is the prior of a component with a
    spherical covariance.

    Parameters
    ----------
    name
        Name of the variable, unique within the model.
    mean, mean_precision
        :math:`m` and :math:`\kappa`, one for each location or one for all.
    shape, rate
        :math:`a` and :math:`b`, one for each repetition of the precision. ``mean_precision=0, shape=1 - M/2, rate=0``
        is the flat prior for M locations.
    plates
        Plates along which it is repeated; the last is ``tied``.
    tied
        The plate of the locations.

    Raises
    ------
    PlateError
        If ``tied`` is not the last plate, or shape or rate is repeated along it.

    Examples
    --------
    >>> component, feature = Plate("component", 2), Plate("feature", 3)
    >>> NormalGamma("theta", 0, 0.1, 1, 1, plates=(component, feature), tied=feature)
    TiedNormalGamma('theta', plates=(component, feature))
    """

    family = families.TiedNormalGamma


def _is_vector(mean: Any, mean_precision: Any, plates: Plates) -> bool:
    """Whether what was passed is a prior of a vector: one of the two has axes that no plate of a number's prior has."""
    n_plates = len(as_plates(plates, "NormalGamma"))
    return _rank(mean, n_plates) > 0 or _rank(mean_precision, n_plates) > 0


def _rank(value: Any, n_plates: int) -> int:
    """Return the event axes of one value of what was passed."""
    node = value.node if isinstance(value, Indexed) else value
    if isinstance(node, Node):
        return int(getattr(node, "event_rank", getattr(node, "value_rank", 0)))
    if isinstance(node, Diagonal):
        return 2
    if isinstance(node, Predictor | Part):
        return 0
    try:
        return np.ndim(node) - n_plates
    except ValueError:
        return 0
