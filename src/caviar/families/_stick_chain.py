r"""Integrals over broken sticks whose pieces have factors of their own, by recursion along the stick.

With what is left before the k-th piece, :math:`s_k`, and its share :math:`v_k`, the density of the weights
:math:`x_k = v_k s_k` is that of independent shares times :math:`\prod_k e^{r_k(x_k)}`. This is a Markov chain in
:math:`s`, so that with :math:`M_K = e^{r_K}`

.. math:: M_k(s) = \mathrm{E}_{v \sim \mathrm{Beta}(a_k, b_k)}\bigl[e^{r_k(sv)} M_{k+1}(s (1 - v))\bigr]

and :math:`M_1(1)` is the normaliser, by the recursion in :mod:`._stick_recursion`. Expectations are derivatives of the
normaliser as computed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import betaln, log_expit

from caviar._errors import ParameterError
from caviar._typing import Array
from caviar.families._scalar_functions import Functions, Number
from caviar.families._stick_exponents import Exponents
from caviar.families._stick_recursion import Nodes, Recursion
from caviar.families._stick_windows import Interpolant
from caviar.numerics.cached import cached_property

_INTERVALS = 128
"""Between the nodes of a share that is drawn, whose density is taken as linear between them."""

_REFUSED = 1e-5
"""Part of the normaliser that is missed, or distance from one of the sum of the expected pieces, that is refused."""


@dataclass
class Sums:
    """Expectations of a distribution, or changes of them."""

    log_v: Array
    log_left: Array
    functions: Array
    squares: Array

    @classmethod
    def none(cls, pieces: int, functions: int) -> Sums:
        """Return zeros: of shares (K - 1,) twice, of functions of the pieces (S, K), of their squares (K,)."""
        return cls(
            np.zeros(pieces - 1), np.zeros(pieces - 1), np.zeros((functions, pieces)), np.zeros(pieces)
        )

    def add_piece(self, k: int, weights: Array, log_x: Array, values: list[Array]) -> None:
        """Add the k-th piece, at nodes with these weights."""
        self.functions[:, k] = [(weights * value).sum() for value in values]
        self.squares[k] = (weights * np.exp(2.0 * log_x)).sum()


class StickChain:
    """One distribution: exponents of its shares, and coefficients of functions of each piece.

    Parameters
    ----------
    a, b
        Exponents of the shares and of what they leave, (K - 1,).
    coefficients
        Of the functions of the pieces, (S, K).
    functions
        The functions, finite at 0.
    """

    def __init__(self, a: Array, b: Array, coefficients: Array, functions: Functions) -> None:
        self.exponents = Exponents(a, b, coefficients, functions)
        self.size = len(a) + 1

    @cached_property
    def _recursion(self) -> Recursion:
        return Recursion.of(self.exponents)

    @cached_property
    def log_partition(self) -> float:
        """Logarithm of the normaliser about the inverse product of the weights."""
        others = betaln(self.exponents.a[1:], self.exponents.b[1:]).sum()
        return float(self._recursion.steps[0].log_mass[0] + others) + self.exponents.of_nothing

    @cached_property
    def means(self) -> Sums:
        """Expectations."""
        sums = Sums.none(self.size, len(self.exponents.functions))
        for k, (step, weights) in enumerate(zip(self._recursion.steps, self._recursion.weights, strict=True)):
            self._add(sums, k, step, weights)
        self._refuse_inexact(sums)
        return sums

    def _refuse_inexact(self, sums: Sums) -> None:
        """Raise an error if the recursion cannot be exact, or the expected pieces do not add up to one."""
        missed = self._recursion.error
        for function, own in zip(self.exponents.functions, sums.functions, strict=True):
            if isinstance(function, Number):
                missed = max(missed, abs(own.sum() - 1.0))
        if not missed <= _REFUSED:
            raise ParameterError(
                "TabulatedSticks: the weights differ by too much for their integrals, which are off by "
                f"{missed:.2g} of their value; up to {_REFUSED} is accepted. Start from weights that are nearer to "
                "each other, or with fewer components."
            )

    def change_of_means(self, a: Array, b: Array, coefficients: Array) -> Sums:
        """Return by how much the expectations change with the exponents and coefficients."""
        sums = Sums.none(self.size, len(self.exponents.functions))
        here, moving = np.ones(1), np.zeros(1)
        changes = self._changes(a, b, coefficients)
        for k, (step, change) in enumerate(zip(self._recursion.steps, changes, strict=True)):
            weights = here[:, None] * step.probabilities
            moves = moving[:, None] * step.probabilities + weights * change
            self._add(sums, k, step, moves)
            if step.places is not None:
                here, moving = (step.places.at_nodes(own) for own in (weights, moves))
        return sums

    def _add(self, sums: Sums, k: int, step: Nodes, weights: Array) -> None:
        sums.log_v[k], sums.log_left[k] = (weights * step.log_v).sum(), (weights * step.log_left).sum()
        sums.add_piece(k, weights, step.log_piece, self.exponents.values(step.log_piece))
        if step.places is None:
            sums.add_piece(self.size - 1, weights, step.log_rest, self.exponents.values(step.log_rest))

    def _changes(self, a: Array, b: Array, coefficients: Array) -> list[Array]:
        """Return by how much the logarithms of the probabilities of the nodes of each share change."""
        changes: list[Array] = []
        of_mass = np.empty(0)
        for k in range(self.size - 2, -1, -1):
            step = self._recursion.steps[k]
            exponent = a[k] * step.log_v + b[k] * step.log_left
            exponent = exponent + self.exponents.weighted(coefficients[:, k], step.log_piece)
            if step.places is None:
                exponent = exponent + self.exponents.weighted(coefficients[:, -1], step.log_rest)
            else:
                exponent = exponent + Interpolant(step.places.window, of_mass).change(step.places)
            of_mass = (step.probabilities * exponent).sum(axis=1)
            changes.append(exponent - of_mass[:, None])
        return changes[::-1]

    def draws(self, size: int, generator: np.random.Generator) -> Array:
        """Return draws of the weights, (size, K)."""
        log_s = np.zeros(size)
        pieces = np.empty((size, self.size))
        rows = np.arange(size)
        for k in range(self.size - 1):
            nodes = self._recursion.nodes_for(k, log_s, _INTERVALS)
            density = nodes.probabilities
            below = np.cumsum(0.5 * (density[:, 1:] + density[:, :-1]), axis=1)
            wanted = generator.random(size) * below[:, -1]
            cell = np.minimum((below <= wanted[:, None]).sum(axis=1), density.shape[1] - 2)
            missing = wanted - np.where(cell > 0, below[rows, cell - 1], 0.0)
            part = _inverse_of_line(density[rows, cell], density[rows, cell + 1], missing)
            logit = nodes.log_v - nodes.log_left
            u = logit[rows, cell] + part * (logit[rows, cell + 1] - logit[rows, cell])
            pieces[:, k] = log_s + log_expit(u)
            log_s = log_s + log_expit(-u)
        pieces[:, -1] = log_s
        weights = np.exp(pieces)
        return np.maximum(weights / weights.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)


def _inverse_of_line(left: Array, right: Array, area: Array) -> Array:
    """Return the part of a unit cell below which a linear density with these ends has this area."""
    root = np.sqrt(np.maximum(left**2 + 2.0 * (right - left) * area, 0.0))
    return np.clip(2.0 * area / np.maximum(left + root, 1e-300), 0.0, 1.0)
