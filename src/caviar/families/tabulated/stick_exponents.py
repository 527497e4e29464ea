"""The log density of broken sticks whose pieces have separate factors, and its maximum."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, log_expit

from caviar._typing import Array
from caviar.families.tabulated.scalar_functions import Functions, Points
from caviar.numerics.cached import cached_property

_NOTHING = -700.0
"""Logarithm of an empty piece."""

_ONE, _NONE = np.ones(()), np.full((), np.nan)

_MOST_STEPS = 200
_DIFFERENCE = 1e-4


@dataclass(frozen=True)
class Exponents:
    r"""The exponent :math:`\sum_k a_k \log v_k + b_k \log(1 - v_k) + r_k(x_k)`, with functions :math:`r_k` of pieces.

    Attributes
    ----------
    a, b
        Of the shares and of what they leave, (K - 1,).
    coefficients
        Of the functions of the pieces, (S, K).
    functions
        The functions, finite at 0.
    """

    a: Array
    b: Array
    coefficients: Array
    functions: Functions

    @cached_property
    def _at_zero(self) -> Array:
        at = points(np.array([_NOTHING]))
        return np.array([float(own.value(at)[0]) for own in self.functions])

    @property
    def of_nothing(self) -> float:
        """What functions of empty pieces add up to."""
        return float(self._at_zero @ self.coefficients.sum(axis=1))

    def values(self, log_x: Array) -> list[Array]:
        """Return the functions at pieces with these logarithms."""
        at = points(log_x)
        return [function.value(at) for function in self.functions]

    def of_piece(self, k: int, log_x: Array) -> Array:
        """Return the function of the k-th piece, less that of an empty one."""
        at, total = points(log_x), np.zeros(log_x.shape)
        for own, function, nothing in zip(
            self.coefficients[:, k], self.functions, self._at_zero, strict=True
        ):
            if own:
                total += own * (function.value(at) - nothing)
        return total

    def weighted(self, coefficients: Array, log_x: Array) -> Array:
        """Return the sum of the functions with these coefficients, (S,)."""
        total = np.zeros(log_x.shape)
        if coefficients.any():
            for own, value in zip(coefficients, self.values(log_x), strict=True):
                total += own * value
        return total

    def steepest(self) -> float:
        """Return about the largest derivative of a function of a piece by its size, at least 1."""
        at = points(np.log(np.array([1e-6, 1.0])))
        slopes = np.array([np.abs(own.slope(at) / at.x) for own in self.functions])
        return max(float((np.abs(self.coefficients.T) @ slopes).max()), 1.0)

    def _slopes(self, log_x: Array) -> Array:
        """Return the derivatives of the functions of all pieces by the logarithms of these."""
        at = points(log_x)
        return sum(
            (
                own * function.slope(at)
                for own, function in zip(self.coefficients, self.functions, strict=True)
            ),
            start=np.zeros(log_x.shape),
        )

    def _log_pieces(self, u: Array) -> Array:
        log_s = np.concatenate((np.zeros(1), np.cumsum(log_expit(-u))))
        return log_s + np.concatenate((log_expit(u), np.zeros(1)))

    def _value(self, u: Array) -> float:
        values = np.array(self.values(self._log_pieces(u))) - self._at_zero[:, None]
        own = (self.coefficients * values).sum()
        return float(self.a @ log_expit(u) + self.b @ log_expit(-u) + own)

    def _derivatives(self, u: Array) -> tuple[Array, Array]:
        """Return gradient and Hessian by the logits of the shares."""
        v, log_x = expit(u), self._log_pieces(u)
        first = self._slopes(log_x)
        second = self._slopes(log_x + _DIFFERENCE) - self._slopes(log_x - _DIFFERENCE)
        below = np.cumsum(first[::-1])[::-1]
        a, b = self.a + first[:-1], self.b + below[1:]
        by_logits = np.tril(np.full((len(log_x), len(u)), -1.0), -1) * v
        by_logits[range(len(u)), range(len(u))] = 1.0 - v
        hessian = by_logits.T @ (second[:, None] / (2.0 * _DIFFERENCE) * by_logits)
        return a * (1.0 - v) - b * v, hessian - np.diag((a + b) * v * (1.0 - v))

    def highest(self) -> tuple[Array, Array]:
        """Return the logits of the shares where the exponent is highest, and minus the inverse of its Hessian there."""
        u = np.clip(np.log(self.a) - np.log(self.b), -30.0, 30.0)
        value, damping = self._value(u), 1e-3
        for _ in range(_MOST_STEPS):
            gradient, hessian = self._derivatives(u)
            curvature = -0.5 * (hessian + hessian.T)
            scale = np.abs(curvature.diagonal()) + 1e-12
            step = _solved(curvature + np.diag(damping * scale), gradient)
            step *= min(1.0, 2.0 / max(np.abs(step).max(), 1e-300))
            found = self._value(u + step)
            if found >= value - 1e-13 * abs(value):
                u, value, damping = u + step, found, 0.1 * damping
                if np.abs(step).max() < 1e-8:
                    break
            else:
                damping = max(10.0 * damping, 1e-6)
                if damping > 1e12:
                    break
        _, hessian = self._derivatives(u)
        values, vectors = np.linalg.eigh(-0.5 * (hessian + hessian.T))
        return u, (vectors / np.maximum(values, 1e-8)) @ vectors.T

    def highest_weights(self) -> Array:
        """Return the weights where the exponent is highest."""
        return np.exp(self._log_pieces(self.highest()[0]))


def _solved(matrix: Array, vector: Array) -> Array:
    try:
        np.linalg.cholesky(matrix)
        return np.asarray(np.linalg.solve(matrix, vector), dtype=np.float64)
    except np.linalg.LinAlgError:  # not positive definite
        pass
    values, vectors = np.linalg.eigh(matrix)
    return vectors @ ((vectors.T @ vector) / np.maximum(np.abs(values), 1e-12))


def points(log_x: Array) -> Points:
    """Return pieces with these logarithms as points of functions, which need no complements."""
    kept = np.maximum(log_x, _NOTHING)
    x = np.exp(kept)
    return Points(x, _NONE, kept, _NONE, x, _ONE, _NONE)
