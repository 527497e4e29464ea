"""Numbers that are not negative, for sums and products in the mean of a Normal, where a Gamma has no update."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from ... import families
from ..._typing import AnyArray, Array
from ..nodes.expected_slots import ExpectedSlots
from ..nodes.node import Expression
from ..nodes.plates import Plates
from ..nodes.roles import PRECISION
from ..nodes.templates import LOG_2PI, template
from ..variable import Variable

_SQUARE_OF_MEAN = 2.0 / np.pi
"""Of the size of a standard Normal number."""


class Nonnegative(Variable):
    """A number that is not negative, with a truncated Normal as its factor."""

    letters: ClassVar = {"x": "", "xx": ""}
    is_anchored = True

    def problem_with(self, value: AnyArray) -> str:
        """Return what is wrong with numbers that are negative."""
        return "" if np.all(value >= 0) else f"must not be negative; its smallest value is {value.min():g}"


class HalfNormal(Nonnegative):
    r"""A nonnegative number with a half-Normal distribution.

    .. math::
        \log p(x) = -\tfrac12\tau x^2 + \tfrac12\log\tau - \tfrac12\log\tfrac\pi2, \qquad x \ge 0

    It may occur in sums and products in the mean of a Normal, where a Gamma has no update: for coefficients of known
    sign, or for nonnegative matrix factorisation with Gaussian noise. Its factor is a truncated Normal. Use a
    :class:`Gamma` for a precision or a rate.

    Parameters
    ----------
    name
        Name of the variable and of its factor in the posterior, unique within the model.
    precision
        Precision of the Normal before it is restricted to nonnegative numbers, the inverse of the mean square: a
        number, an array, a Gamma, or a product of these.
    plates
        Plates along which the variable is repeated.

    Notes
    -----
    Source: Schmidt, Winther and Hansen, "Bayesian non-negative matrix factorization" (2009), who use an exponential
    prior.

    Examples
    --------
    Two nonnegative coefficients, one of which least squares would make negative:

    >>> import caviar as cv
    >>> obs = cv.Plate("obs")
    >>> a, b = cv.HalfNormal("a", 0.1), cv.HalfNormal("b", 0.1)
    >>> y = cv.Normal("y", a * cv.Data("u", plates=obs) + b * cv.Data("v", plates=obs), 25.0, plates=obs)
    >>> data = {"y": [1.0, 2.1, 0.9, 2.0], "u": [1.0, 2.0, 1.0, 2.0], "v": [0.0, 0.1, 1.0, 1.0]}
    >>> posterior = cv.Model(y).fit(data)
    >>> print(posterior["a"].mean.round(2), posterior["b"].mean.round(2))
    0.97 0.11
    """

    family = families.TruncatedNormal
    density = template(
        (-1 / 2, "precision.x self.xx"),
        (1 / 2, "precision.log_x"),
        (float(np.log(2.0)) - LOG_2PI / 2, ""),
    )

    def __init__(self, name: str, precision: Expression, *, plates: Plates = ()) -> None:
        self._state(name, plates, {"precision": (precision, PRECISION)}, dimension=1)
        self._refuse_zero("precision", "nothing")

    def distribution_given(self, slots: Mapping[str, Any]) -> families.TruncatedNormal:
        """Return the distribution with this precision."""
        return families.TruncatedNormal(0.0, slots["precision"])

    def moments_given(self, slots: ExpectedSlots) -> tuple[Array, Array]:
        """Return mean and variance given a known precision."""
        known = self.known("precision")
        if known is None:
            slots.refuse("the mean of its size needs the expected square root of 1 / precision")
        square = slots.inverse("precision")[0]
        return np.sqrt(_SQUARE_OF_MEAN * square), (1.0 - _SQUARE_OF_MEAN) * square


class Exponential(Nonnegative):
    r"""A nonnegative number with an exponential distribution.

    .. math::
        \log p(x) = -\lambda x + \log\lambda, \qquad x \ge 0

    It may occur in sums and products in the mean of a Normal, like a :class:`HalfNormal`. Compared with that, more
    numbers are near zero, and large ones are less unlikely. Its factor is a truncated Normal. Use a :class:`Gamma` of
    shape 1 for a precision or a rate.

    Parameters
    ----------
    name
        Name of the variable and of its factor in the posterior, unique within the model.
    rate
        Rate, the inverse of the mean: a number, an array, a Gamma, or a product of these.
    plates
        Plates along which the variable is repeated.

    Notes
    -----
    Source: Schmidt, Winther and Hansen, "Bayesian non-negative matrix factorization" (2009).

    Examples
    --------
    A delay that is added to a known duration, observed with noise:

    >>> import caviar as cv
    >>> obs = cv.Plate("obs")
    >>> delay = cv.Exponential("delay", rate=0.5)
    >>> y = cv.Normal("y", 3.0 + delay, 4.0, plates=obs)
    >>> posterior = cv.Model(y).fit({"y": [3.4, 2.6, 3.5, 3.1]})
    >>> print(posterior["delay"].mean.round(3))
    0.249
    """

    family = families.TruncatedNormal
    density = template((-1.0, "rate.x self.x"), (1.0, "rate.log_x"))

    def __init__(self, name: str, rate: Expression, *, plates: Plates = ()) -> None:
        self._state(name, plates, {"rate": (rate, PRECISION)}, dimension=1)
        self._refuse_zero("rate", "nothing")

    def distribution_given(self, slots: Mapping[str, Any]) -> families.TruncatedNormal:
        """Return the distribution with this rate."""
        return families.TruncatedNormal.exponential(slots["rate"])

    def moments_given(self, slots: ExpectedSlots) -> tuple[Array, Array]:
        """Return mean and variance."""
        first, second = slots.inverse("rate")
        return first, 2.0 * second - np.square(first)
