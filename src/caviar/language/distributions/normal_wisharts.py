"""Joint conjugate priors of a location vector and the precision matrix of a multivariate Normal."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from ... import families
from ..nodes.node import Expression
from ..nodes.plates import Plate, Plates
from ..nodes.roles import (
    LOCATION_VECTOR,
    PRECISION,
    PRECISION_MATRIX,
    degrees_of_freedom,
    degrees_of_freedom_with,
)
from ..nodes.templates import LOG_2PI, once, template
from .joint_normals import Joint


class NormalWishart(Joint):
    r"""A location vector and a precision matrix with their joint conjugate prior.

    .. math:: \Lambda \sim \mathrm{Wishart}(\nu, B), \qquad \mu \mid \Lambda \sim N(m, (\kappa\Lambda)^{-1})

    Parameters
    ----------
    name
        Name of the variable, unique within the model.
    mean, mean_precision, df, inverse_scale
        Parameters :math:`m` (length D), :math:`\kappa`, :math:`\nu > D - 1` and :math:`B` (D x D; the expected
        precision is :math:`\nu B^{-1}`). ``mean_precision=0, df=D, inverse_scale=0`` is the flat prior.
    plates
        Plates along which the variable is repeated.
    tied
        The last plate, if the locations along it share one precision. The result is then a :class:`TiedNormalWishart`.
    names
        Names of the entries of a vector, as ``["intercept", "slope"]``, for summaries, plots and messages. If the data
        are a table, these are its columns.

    Examples
    --------
    >>> import numpy as np
    >>> NormalWishart("theta", mean=np.zeros(2), mean_precision=0.1, df=3, inverse_scale=np.eye(2))
    NormalWishart('theta')
    """

    def __new__(cls, *_: Any, tied: Plate | None = None, **__: Any) -> Self:
        """Return a variable of the sibling class where the precision is tied."""
        kind: type[Any] = TiedNormalWishart if cls is NormalWishart and tied is not None else cls
        return object.__new__(kind)

    family = families.NormalWishart
    value_rank = 1
    precision_rank = 2
    letters: ClassVar = {"precision_x": "i", "precision_xx": "", "log_det": "", "precision": "ij"}
    shared_slots = ("df", "inverse_scale")
    base = once(template((-1 / 2, "self.log_det [i]"), (-1 / 2, "self.log_det")))
    density = (
        *template(
            (1 / 2, "self.log_det"),
            (1 / 2, "mean_precision.log_x [i]"),
            (-1 / 2 * LOG_2PI, "[i]"),
            (-1 / 2, "mean_precision.x self.precision_xx"),
            (1, "mean_precision.x mean.x[i] self.precision_x[i]"),
            (-1 / 2, "mean_precision.x mean.xx[ij] self.precision[ij]"),
        ),
        *once(
            template(
                (1 / 2, "df.x self.log_det"),
                (-1 / 2, "inverse_scale.x[ij] self.precision[ij]"),
                (1 / 2, "df.x inverse_scale.log_det"),
                (-1 / 2 * np.log(2), "df.x [i]"),
                (-1, "df.log_gamma"),
            )
        ),
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
        tied: Plate | None = None,
        names: Iterable[str] | None = None,
    ) -> None:
        n_locations = self._tie("NormalWishart", name, plates, tied)
        role = degrees_of_freedom if n_locations is None else partial(degrees_of_freedom_with, n_locations)
        arguments = {
            "mean": (mean, LOCATION_VECTOR),
            "mean_precision": (mean_precision, PRECISION),
            "df": (df, role),
            "inverse_scale": (inverse_scale, PRECISION_MATRIX),
        }
        self._state(name, plates, arguments)
        self.name_entries(names)
        size, flat = self.dimension or 1, self._flat()
        stated = f"df={size} + 1 - M" if flat is None else f"df={flat}"
        if self.tied is not None:
            self._refuse_zero("mean_precision", f"{stated}, inverse_scale=0")
        self._refuse_zero("inverse_scale", f"{stated}, mean_precision=0")
        self._refuse_improper(size - 1, f"above D - 1 = {size - 1}", stated)

    def _flat(self) -> int | None:
        n_locations = 1 if self.tied is None else self.tied.size
        return None if n_locations is None else (self.dimension or 1) + 1 - n_locations

    def unit_value(self, plates: tuple[int, ...], spread: float) -> Any:
        """Return the reference point, with the inverse variance of the data on the diagonal."""
        size = self.dimension or 1
        precision = np.broadcast_to(np.eye(size) * spread**-2.0, (*self._of_batch(plates), size, size))
        return families.MeanPrecision(np.zeros((*plates, size)), precision)

    def unit_factor(self, plates: tuple[int, ...], spread: float) -> families.ExponentialFamily:
        """Return a factor as broad as the data."""
        size = self.dimension or 1
        scale = (size + 1) * spread**2.0 * np.eye(size)
        return self.family(np.zeros((*plates, size)), 1.0, size + 1.0, scale)


class TiedNormalWishart(NormalWishart):
    r"""Location vectors along a plate and their common precision matrix, with a joint conjugate prior.

    .. math::
        \Lambda \sim \mathrm{Wishart}(\nu, B), \qquad \mu_m \mid \Lambda \sim N(m_m, (\kappa_m\Lambda)^{-1})

    ``NormalWishart(..., tied=plate)`` returns it. With a plate of components it is the prior of a mixture whose
    components share one covariance.

    Parameters
    ----------
    name
        Name of the variable, unique within the model.
    mean, mean_precision
        :math:`m` (length D) and :math:`\kappa`, one for each location or one for all.
    df, inverse_scale
        :math:`\nu > D - 1` and :math:`B` (D x D), for each repetition of the precision. ``mean_precision=0, df=D + 1 -
        M, inverse_scale=0`` is the flat prior for M locations.
    plates
        Plates along which it is repeated; the last is ``tied``.
    tied
        The plate of the locations.

    Raises
    ------
    PlateError
        If ``tied`` is not the last plate, or df or inverse scale is repeated along it.

    Examples
    --------
    >>> import numpy as np
    >>> component = Plate("component", 3)
    >>> NormalWishart("theta", np.zeros(2), 0.1, 3, np.eye(2), plates=component, tied=component)
    TiedNormalWishart('theta', plates=(component))
    """

    family = families.TiedNormalWishart
