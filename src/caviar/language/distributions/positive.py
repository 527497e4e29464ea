"""Distributions of positive numbers and positive definite matrices."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ... import families
from ..._errors import ModelError
from ..._typing import AnyArray, Array
from ..nodes.constants import as_known
from ..nodes.expected_slots import ExpectedSlots
from ..nodes.node import Expression, Node
from ..nodes.plates import Plates
from ..nodes.roles import PRECISION, PRECISION_MATRIX, SHAPE, degrees_of_freedom
from ..nodes.templates import template
from ..variable import Variable


class Gamma(Variable):
    r"""A positive number with a Gamma distribution.

    .. math:: \log \mathrm{Gamma}(x \mid a, b) = (a - 1)\log x - b x + a\log b - \log\Gamma(a)

    Parameters
    ----------
    name
        Name of the variable, unique within the model.
    shape
        :math:`a > 0`: a number, an array, or an unknown Gamma, optionally times or plus a known number, as ``nu / 2``.
        The factor of an unknown shape is tabulated on a grid. The shape may also occur in the rate: ``Gamma("u", nu /
        2, nu / 2)`` is the scale variable of a Student-t with unknown degrees of freedom.
    rate
        :math:`b`: a number, an array or a Gamma. ``shape=1, rate=0`` is the flat, improper prior.
    smallest_variance
        Lower bound of the variance, the inverse of the precision: a number, or an array over the last plates. The
        factor must then be a point mass (``point=``); its update is the exact optimum under this constraint.
    plates
        Plates along which the variable is repeated.

    Examples
    --------
    >>> Gamma("tau", shape=1, rate=1)
    Gamma('tau')

    A sample with unknown shape and rate:

    >>> import caviar as cv
    >>> shape, rate = cv.Gamma("shape", 1, 0.1), cv.Gamma("rate", 1, 0.1)
    >>> model = cv.Model(cv.Gamma("x", shape, rate, plates=cv.Plate("row")))
    >>> posterior = model.fit({"x": [1.1, 2.3, 0.7, 1.9]})
    >>> print(posterior["shape"].mean.round(3), posterior["shape"].quantile(0.975).round(3))
    5.419 7.683
    """

    family = families.Gamma
    letters: ClassVar = {"log_x": "", "x": ""}
    base = template((-1, "self.log_x"))
    density = template(
        (1, "shape.x self.log_x"),
        (-1, "rate.x self.x"),
        (1, "shape.x rate.log_x"),
        (-1, "shape.gammaln"),
    )

    def __init__(
        self,
        name: str,
        shape: Expression,
        rate: Expression,
        *,
        smallest_variance: ArrayLike | None = None,
        plates: Plates = (),
    ) -> None:
        if smallest_variance is not None:
            self.floor = as_known(smallest_variance, f"smallest_variance of Gamma '{name}'")
        self._state(name, plates, {"shape": (shape, SHAPE), "rate": (rate, PRECISION)}, dimension=1)
        self._refuse_zero("rate", "shape=1")
        if self.floor is not None:
            self._check_floor(self.floor)

    def _check_floor(self, floor: Array) -> None:
        if not np.all((floor > 0) & np.isfinite(floor)):
            raise ModelError(f"smallest_variance of Gamma '{self.name}' must be positive and finite")
        along = self.plates[len(self.plates) - floor.ndim :] if floor.ndim <= len(self.plates) else None
        if along is None or any(
            size not in (1, plate.size) for size, plate in zip(floor.shape, along, strict=True)
        ):
            plates = ", ".join(f"{plate.name} ({plate.size})" for plate in self.plates) or "none"
            raise ModelError(
                f"smallest_variance of Gamma '{self.name}' must be a number, or an array over its last plates, of "
                f"declared sizes; got shape {floor.shape} for the plates: {plates}"
            )

    def mode_of(self, natural: tuple[Array, ...], floor: Array | None = None) -> Array:
        """Return the mode, under the restriction of ``smallest_variance`` if there is one."""
        if floor is None:
            return super().mode_of(natural)
        shape, negative_rate = natural
        if np.any(shape < 1):
            # the family's own refusal
            return super().mode_of(natural)
        if self.is_flat:
            # without rows only rounding is left of the statistics, in which a mode must not be looked for
            empty = shape <= 1 + 1e-14
            shape, negative_rate = np.where(empty, 1.0, shape), np.where(empty, 0.0, negative_rate)
        return families.Gamma.mode_of_natural((shape, negative_rate), floor)

    def _states_flat_prior(self) -> bool:
        shape, rate = self.known("shape"), self.known("rate")
        if shape is None or rate is None or np.count_nonzero(rate):
            return False
        return bool(np.all(shape == 1))

    def moments_given(self, slots: ExpectedSlots) -> tuple[Array, Array]:
        """Return mean and variance, infinite where the rate is too vague."""
        if _nodes(self, "shape") & _nodes(self, "rate"):
            slots.refuse("its shape and its rate hold the same number")
        shape, spread = slots.scalar("shape")
        first, second = slots.inverse("rate")
        with np.errstate(invalid="ignore"):
            variance = (shape + spread) * second + np.square(shape) * (second - np.square(first))
        return shape * first, np.where(np.isfinite(second), variance, np.inf)

    def evened(self, value: Array) -> Array:
        """Return logarithms; that of 0 is taken as that of the smallest normal number."""
        return np.log(np.maximum(value, np.finfo(float).tiny))

    def problem_with(self, value: AnyArray) -> str:
        """Return what is wrong with numbers that are not positive."""
        is_positive = np.all(value > 0) if value.ndim else value.item() > 0
        return "" if is_positive else f"must be positive; its smallest value is {value.min():g}"

    def unit_value(self, plates: tuple[int, ...], spread: float) -> Array:
        """Return the inverse variance of the data."""
        return np.full(plates, spread**-2.0)

    def unit_factor(self, plates: tuple[int, ...], spread: float) -> families.Gamma:
        """Return a factor whose mean is the inverse variance of the data."""
        return families.Gamma(np.ones(plates), spread**2.0)


def _nodes(owner: Variable, name: str) -> set[Node]:
    """Return the variables that an argument is made of."""
    return {slot.node for slot in owner.slots.values() if slot.name == name and not slot.node.is_known}


class Wishart(Variable):
    r"""A positive definite matrix with a Wishart distribution.

    .. math::
        \log \mathrm{W}(\Lambda \mid \nu, B) = \tfrac{\nu-D-1}2\log|\Lambda| - \tfrac12\mathrm{tr}(B\Lambda)
        + \tfrac\nu2\log|B| - \tfrac{\nu D}2\log 2 - \log\Gamma_D(\nu/2)

    Parameters
    ----------
    name
        Name of the variable, unique within the model.
    df
        Degrees of freedom :math:`\nu > D - 1`: a number, an array, or an unknown Gamma plus a known number of at least
        D - 1; the factor of this Gamma is tabulated on a grid.
    inverse_scale
        :math:`B`, D x D: an array or a Wishart. The expected matrix is :math:`\nu B^{-1}`. ``df=D + 1,
        inverse_scale=np.zeros((D, D))`` is the flat, improper prior.
    smallest_variance
        Lower bound of the eigenvalues of the inverse :math:`\Sigma`. A vector v of length D instead requires that
        :math:`\Sigma_{ij} / \sqrt{v_i v_j}` has eigenvalues of at least 1, which respects the units of each coordinate.
        The factor must then be a point mass (``point=``); its update is the exact optimum under this constraint.
    plates
        Plates along which the variable is repeated.
    names
        Names of the rows and columns of the matrix, for summaries and plots.

    Examples
    --------
    >>> Wishart("precision", df=3.0, inverse_scale=np.eye(2))
    Wishart('precision')
    """

    family = families.Wishart
    value_rank = 2
    letters: ClassVar = {"log_det": "", "x": "ij"}
    base = template((-1 / 2, "self.log_det [i]"), (-1 / 2, "self.log_det"))
    density = template(
        (1 / 2, "df.x self.log_det"),
        (-1 / 2, "inverse_scale.x[ij] self.x[ij]"),
        (1 / 2, "df.x inverse_scale.log_det"),
        (-1 / 2 * np.log(2), "df.x [i]"),
        (-1, "df.log_gamma"),
    )

    def __init__(
        self,
        name: str,
        df: Expression,
        inverse_scale: Expression,
        *,
        smallest_variance: ArrayLike | None = None,
        plates: Plates = (),
        names: Iterable[str] | None = None,
    ) -> None:
        if smallest_variance is not None:
            self.floor = as_known(smallest_variance, f"smallest_variance of Wishart '{name}'")
        arguments = {"df": (df, degrees_of_freedom), "inverse_scale": (inverse_scale, PRECISION_MATRIX)}
        self._state(name, plates, arguments)
        self.name_entries(names)
        self._refuse_zero("inverse_scale", f"df={(self.dimension or 1) + 1}")
        if self.floor is not None and (
            self.floor.shape not in ((), (self.dimension,))
            or not np.all((self.floor > 0) & np.isfinite(self.floor))
        ):
            raise ModelError(f"smallest_variance of Wishart '{name}' must be a positive number, or D of them")

    def problem_with(self, value: AnyArray) -> str:
        """Return what is wrong with matrices that are not symmetric and positive definite."""
        return PRECISION_MATRIX.problem(value) if value.any() else "must be positive definite"

    def mode_of(self, natural: tuple[Array, ...], floor: Array | None = None) -> Array:
        """Return the mode, under the restriction of ``smallest_variance`` if there is one."""
        if floor is None:
            return super().mode_of(natural)
        size, unit = natural[1].shape[-1], np.sqrt(floor)
        # a floor for each column, or one of all
        units = unit[..., :, None] * unit[..., None, :] if unit.ndim else unit * unit
        half_df, scaled = natural[0], natural[1] / units
        if self.is_flat:
            # without rows only rounding is left of the statistics, in which a mode must not be looked for
            empty = 2 * half_df <= (1 + 1e-14) * (size + 1)
            if empty.any():
                half_df = np.where(empty, (size + 1) / 2, half_df)
                scaled = np.where(empty[..., None, None], 0.0, scaled)
        return families.Wishart.mode_of_natural((half_df, scaled), np.asarray(1.0)) / units

    def _states_flat_prior(self) -> bool:
        df, inverse_scale = self.known("df"), self.known("inverse_scale")
        if df is None or inverse_scale is None or self.dimension is None:
            return False
        return bool(np.all(df == self.dimension + 1) and not np.any(inverse_scale))

    def unit_value(self, plates: tuple[int, ...], spread: float) -> Array:
        """Return the inverse variance of the data on the diagonal."""
        size = self.dimension or 1
        return np.broadcast_to(np.eye(size) * spread**-2.0, (*plates, size, size))

    def unit_factor(self, plates: tuple[int, ...], spread: float) -> families.Wishart:
        """Return a factor whose mean is the inverse variance of the data on the diagonal."""
        size = self.dimension or 1
        return families.Wishart(np.full(plates, size + 1.0), (size + 1) * spread**2.0 * np.eye(size))
