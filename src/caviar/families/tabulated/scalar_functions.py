r"""Functions of one number that a tabulated factor integrates: :math:`\log\Gamma(cx + d)`, :math:`x \log x`, ...

A number is given by its place u on a line: the logarithm of a positive number, the log-odds of a probability. So
:math:`\log x`, and functions that grow like it near the end of the support, keep all digits, however small x is.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from scipy.special import digamma, expit, gammaln, logit

from caviar._typing import AnyArray, Array
from caviar.families.base.family import safe_log
from caviar.numerics.gamma_function import stirling_remainder

_LARGE = 1e5
"""Argument above which digamma is computed by its series."""

_MOST_PARTS_IN_NAME = 8


@dataclass(frozen=True)
class Points:
    """Points of a support, with their logarithms and their derivatives by the places u."""

    x: Array
    complement: Array
    log_x: Array
    log_complement: Array
    slope: Array
    log_slope: Array
    log_complement_slope: Array


class Support(ABC):
    """The support of a tabulated factor, as places on a line."""

    lowest: float
    highest: float
    """Places beyond which no factor has weight in double precision."""

    @staticmethod
    @abstractmethod
    def points(u: Array) -> Points:
        """Return the points at these places."""

    @staticmethod
    @abstractmethod
    def place_of(x: Array) -> Array:
        """Return the places of numbers inside the support."""

    @staticmethod
    @abstractmethod
    def contains(x: Array) -> AnyArray:
        """Return which numbers are inside."""

    @staticmethod
    @abstractmethod
    def is_positive(scale: float, shift: float) -> bool:
        """Return whether scale * x + shift is positive for all numbers inside."""


class Positive(Support):
    """Positive numbers, x = exp(u)."""

    lowest, highest = -1e10, 230.0

    @staticmethod
    def points(u: Array) -> Points:
        x, one = np.exp(u), np.ones_like(u)
        none = np.full_like(u, np.nan)
        return Points(x, none, u, none, x, one, none)

    @staticmethod
    def place_of(x: Array) -> Array:
        return safe_log(x)

    @staticmethod
    def contains(x: Array) -> AnyArray:
        return (x > 0) & (x < np.inf)

    @staticmethod
    def is_positive(scale: float, shift: float) -> bool:
        return scale > 0 and shift >= 0


class Unit(Support):
    """Numbers between 0 and 1, x = 1 / (1 + exp(-u))."""

    lowest, highest = -1e10, 1e10

    @staticmethod
    def points(u: Array) -> Points:
        x, complement = expit(u), expit(-u)
        return Points(
            x, complement, -np.logaddexp(0.0, -u), -np.logaddexp(0.0, u), x * complement, complement, -x
        )

    @staticmethod
    def place_of(x: Array) -> Array:
        return np.clip(logit(x), -800.0, 800.0)

    @staticmethod
    def contains(x: Array) -> AnyArray:
        return (x > 0) & (x < 1)

    @staticmethod
    def is_positive(scale: float, shift: float) -> bool:
        return shift >= 0 and scale + shift >= 0 and (shift > 0 or scale > 0)


class Function(ABC):
    """A function of a number of a support."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Its name as a statistic: equal functions have equal names."""

    def details(self) -> dict[str, Any]:
        """Return the function as plain values."""
        return {"kind": type(self).__name__, **vars(self)}

    @abstractmethod
    def value(self, at: Points) -> Array:
        """Return its values."""

    @abstractmethod
    def slope(self, at: Points) -> Array:
        """Return its derivatives by the places of the points."""


@dataclass(frozen=True)
class Number(Function):
    """The number x itself."""

    @property
    def name(self) -> str:
        return "x"

    def value(self, at: Points) -> Array:
        return at.x

    def slope(self, at: Points) -> Array:
        return at.slope


@dataclass(frozen=True)
class Log(Function):
    """Its logarithm."""

    @property
    def name(self) -> str:
        return "log_x"

    def value(self, at: Points) -> Array:
        return at.log_x

    def slope(self, at: Points) -> Array:
        return at.log_slope


@dataclass(frozen=True)
class LogComplement(Function):
    """The logarithm of 1 - x."""

    @property
    def name(self) -> str:
        return "log_complement"

    def value(self, at: Points) -> Array:
        return at.log_complement

    def slope(self, at: Points) -> Array:
        return at.log_complement_slope


@dataclass(frozen=True)
class _OfAffine(Function):
    """A function of y = scale * x + shift, which is positive."""

    scale: float = 1.0
    shift: float = 0.0

    def _argument(self, at: Points) -> tuple[Array, Array, Array]:
        """Return y, log y and the derivative of log y."""
        if not self.shift:
            return self.scale * at.x, np.log(self.scale) + at.log_x, at.log_slope
        if self.shift == -self.scale:
            return (
                self.shift * at.complement,
                np.log(self.shift) + at.log_complement,
                at.log_complement_slope,
            )
        y = self.scale * at.x + self.shift
        return y, np.log(y), self.scale * at.slope / y

    def _spelled(self) -> str:
        factor = "" if self.scale == 1 else f"{self.scale!r} "
        return f"{factor}x" + (f" + {self.shift!r}" if self.shift else "")


@dataclass(frozen=True)
class LogOf(_OfAffine):
    """The logarithm of scale * x + shift."""

    @property
    def name(self) -> str:
        return f"log({self._spelled()})"

    def value(self, at: Points) -> Array:
        return self._argument(at)[1]

    def slope(self, at: Points) -> Array:
        return self._argument(at)[2]


@dataclass(frozen=True)
class LogGamma(_OfAffine):
    r"""The logarithm of :math:`\Gamma(\text{scale}\, x + \text{shift})`."""

    @property
    def name(self) -> str:
        return f"gammaln({self._spelled()})"

    def value(self, at: Points) -> Array:
        y, log_y, _ = self._argument(at)
        small = y < 1
        return gammaln(np.where(small, 1.0 + y, y)) - np.where(small, log_y, 0.0)

    def slope(self, at: Points) -> Array:
        y, _, log_slope = self._argument(at)
        small = y < 1
        return np.where(small, y * digamma(1.0 + y) - 1.0, y * digamma(np.maximum(y, 1.0))) * log_slope


@dataclass(frozen=True)
class LogBeta(Function):
    r"""The logarithm of the Beta function of :math:`m_k x`: :math:`\sum_k \log\Gamma(m_k x) - \log\Gamma(M x)`.

    Attributes
    ----------
    parts
        Distinct :math:`m_k > 0`.
    counts
        How often each occurs. M is the sum of all.
    """

    parts: tuple[float, ...]
    counts: tuple[int, ...]

    @classmethod
    def of(cls, weights: Iterable[float]) -> LogBeta:
        """Return the function for these weights, in whatever order."""
        parts, counts = np.unique(np.asarray(weights, dtype=np.float64), return_counts=True)
        return cls(tuple(map(float, parts)), tuple(map(int, counts)))

    @property
    def name(self) -> str:
        pairs = [f"{count} * {part!r}" for part, count in zip(self.parts, self.counts, strict=True)]
        spelled = ", ".join(pairs)
        if len(pairs) > _MOST_PARTS_IN_NAME:
            spelled = hashlib.sha1(spelled.encode(), usedforsecurity=False).hexdigest()
        return f"log_beta({spelled})"

    @property
    def _total(self) -> float:
        return float(np.dot(self.parts, self.counts))

    @property
    def _linear(self) -> float:
        """Coefficient of x: the terms x log x of the gamma functions cancel."""
        shares = np.divide(self.parts, self._total)
        return float(np.dot(np.multiply(self.parts, self.counts), np.log(shares)))

    def value(self, at: Points) -> Array:
        total = self._linear * at.x - _remainder(self._total, at)
        for part, count in zip(self.parts, self.counts, strict=True):
            total = total + count * _remainder(part, at)
        return total

    def slope(self, at: Points) -> Array:
        total = self._linear * at.slope - _remainder_slope(self._total, at)
        for part, count in zip(self.parts, self.counts, strict=True):
            total = total + count * _remainder_slope(part, at)
        return total


def _remainder(part: float, at: Points) -> Array:
    """Return log-gamma(y) - y log y + y at y = part * x."""
    y, log_y = part * at.x, np.log(part) + at.log_x
    small = y < 1
    near = np.where(small, y, 0.0)
    return np.where(
        small, gammaln(1.0 + near) - log_y - near * log_y + near, stirling_remainder(np.maximum(y, 1.0))
    )


def _remainder_slope(part: float, at: Points) -> Array:
    y, log_y = part * at.x, np.log(part) + at.log_x
    middle = np.clip(y, 1.0, _LARGE)
    found = np.where(y < 1, y * (digamma(1.0 + y) - log_y) - 1.0, middle * (digamma(middle) - np.log(middle)))
    return np.where(y > _LARGE, -0.5 - 1.0 / (12.0 * np.maximum(y, 1.0)), found) * at.log_slope


@dataclass(frozen=True)
class Product(Function):
    """A product of functions, for a term with the same number in several slots."""

    of: tuple[Function, ...]

    def details(self) -> dict[str, Any]:
        return {"kind": "Product", "of": [function.details() for function in self.of]}

    @property
    def name(self) -> str:
        return " * ".join(function.name for function in self.of)

    def value(self, at: Points) -> Array:
        product = self.of[0].value(at)
        for function in self.of[1:]:
            product = product * function.value(at)
        return product

    def slope(self, at: Points) -> Array:
        total = np.zeros_like(at.x)
        for function in self.of:
            own = function.slope(at)
            for other in self.of:
                if other is not function:
                    own = own * other.value(at)
            total = total + own
        return total


def function_of(details: Mapping[str, Any]) -> Function:
    """Return the function that plain values state.

    Raises
    ------
    ValueError, LookupError, TypeError
        If the values state no function.
    """
    kinds: dict[str, Any] = {kind.__name__: kind for kind in (Number, Log, LogComplement, LogOf, LogGamma)}
    own = {name: value for name, value in details.items() if name != "kind"}
    if details["kind"] == "Product":
        return Product(tuple(function_of(factor) for factor in own["of"]))
    if details["kind"] == "LogBeta":
        return LogBeta(tuple(map(float, own["parts"])), tuple(map(int, own["counts"])))
    return kinds[details["kind"]](**{name: float(value) for name, value in own.items()})


def product_of(functions: Iterable[Function]) -> Product:
    """Return the product of functions, in whatever order."""
    return Product(tuple(sorted(functions, key=lambda function: function.name)))


PLAIN: dict[str, Function] = {function.name: function for function in (Number(), Log(), LogComplement())}
"""Statistics of the families that can be tabulated, as functions."""

Functions: TypeAlias = tuple[Function, ...]
