r"""Integrals over broken sticks whose pieces have factors of their own, by recursion along the stick.

With what is left before the k-th piece, :math:`s_k`, and its share :math:`v_k`, the density of the weights
:math:`x_k = v_k s_k` is that of independent shares times :math:`\prod_k e^{r_k(x_k)}`. This is a Markov chain in
:math:`s`, so that with :math:`M_K = e^{r_K}`

.. math:: M_k(s) = \mathrm{E}_{v \sim \mathrm{Beta}(a_k, b_k)}\bigl[e^{r_k(sv)} M_{k+1}(s (1 - v))\bigr]

and :math:`M_1(1)` is the normaliser. The logarithm of each :math:`M_k` is known at Chebyshev nodes in :math:`\log s`
and interpolated; shares are integrated by the trapezoidal rule in a variable :math:`\tau` with
:math:`\operatorname{logit} v = u_0 + w \sinh\tau`. Expectations are derivatives of the normaliser as computed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import betaln, expit, log_expit

from caviar._errors import ParameterError
from caviar._typing import Array
from caviar.families._scalar_functions import Functions, Number
from caviar.families._stick_exponents import Exponents
from caviar.families._stick_windows import FARTHEST, Interpolant, Table, Window
from caviar.numerics.cached import cached_property

_DEPTH = 40.0
"""Nats below its peak at which an integrand is cut off."""

_SPREAD = 8.0
"""Standard deviations of log s on either side within which it is interpolated."""

_NODES = 48
"""Intervals between nodes of a share."""

_INEXACT = 1e-5
"""Distance from one of the sum of the expected pieces beyond which they are refused."""

_UNRESOLVED = 3e-7
"""Size of the last coefficients of a mass above which it gets more nodes."""

_FEWEST, _A_UNIT, _MOST = 20, 9.0, 240
"""Nodes of log s: at least, how many more for each unit of its length, and at most."""

_WIDE = 3.0
"""Length of an interval of log s beyond which what is below it is nearly nothing."""

_NEGLIGIBLE = 1e-12
"""Size of an exponent below which it is nothing."""

_LEAST_VARIANCE = 1e-12
"""Variance added to all log s together, so that windows have a length where next to nothing is taken."""

_COARSE = np.linspace(-1.0, 1.0, 49)
_FINE = np.linspace(0.0, 1.0, 17)


@dataclass(frozen=True)
class _Nodes:
    """Nodes of a share for each of n values of what it is taken of, and their probabilities, (n, J).

    The basis, (m, n, J), interpolates what is left; None of the last share, which leaves the last piece.
    """

    log_s: Array
    log_v: Array
    log_left: Array
    log_weights: Array
    exponent: Array
    basis: Array | None

    @cached_property
    def log_mass(self) -> Array:
        """Logarithm of the integral for each s, (n,)."""
        top = self.exponent.max(axis=1)
        return top + np.log(np.exp(self.exponent - top[:, None]).sum(axis=1))

    @cached_property
    def probabilities(self) -> Array:
        """Probability of each node given s."""
        return np.exp(self.exponent - self.log_mass[:, None])

    @property
    def log_piece(self) -> Array:
        """Logarithm of the piece."""
        return self.log_s[:, None] + self.log_v

    @property
    def log_rest(self) -> Array:
        """Logarithm of what is left."""
        return self.log_s[:, None] + self.log_left


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
        self.a, self.b, self.size = a, b, len(a) + 1

    @cached_property
    def _peak(self) -> tuple[Array, Array]:
        """Logits of the shares where the density along them is highest, and the covariance of a Normal there."""
        return self.exponents.highest()

    @cached_property
    def _windows(self) -> list[Window]:
        """Where what is left after each share but the last is interpolated."""
        u, covariance = self._peak
        log_s = np.cumsum(log_expit(-u))
        lower = -np.tril(np.ones((len(u), len(u)))) * expit(u)
        half = _half_widths(lower @ covariance @ lower.T)
        tail = np.clip(_DEPTH / np.minimum.accumulate(self.b), half, 4.0 * half)
        least = np.log(_NEGLIGIBLE / self.exponents.steepest())
        high = np.minimum(log_s + half, 0.0)
        # less is left after each share: a window that ended above the one before would cut its lower places off
        low = np.minimum.accumulate(np.minimum(np.maximum(log_s - tail, least), high - 1e-6))
        tailed = (low <= least + 1e-9) | ((tail > half) & (high - low > _WIDE))
        sizes = np.clip(_FEWEST + _A_UNIT * (high - low), _FEWEST, _MOST).astype(int)
        reach = (0.5 * FARTHEST - 0.5) * np.minimum(high - low, 2.0 * half)
        return [
            Window(float(first), float(last), int(n), float(beyond), bool(t))
            for first, last, n, beyond, t in zip(low, high, sizes, reach, tailed, strict=True)
        ][:-1]

    @cached_property
    def _steps(self) -> tuple[_Nodes, ...]:
        """The nodes of each share, of what is left in the window before it."""
        steps: list[_Nodes] = []
        for k in range(self.size - 2, -1, -1):
            log_s = np.log(self._windows[k - 1].nodes) if k else np.zeros(1)
            after = None if not steps else self._interpolant(k, steps[-1])
            steps.append(self._nodes(k, log_s, after))
            if k:
                steps[-1] = self._resolved(k, steps[-1], after)
        return tuple(steps[::-1])

    def _resolved(self, k: int, step: _Nodes, after: Interpolant | None) -> _Nodes:
        """Return the nodes of a share for more values of what it is taken of, as long as this makes the mass exact."""
        missed = self._interpolant(k - 1, step).missed
        while missed > _UNRESOLVED and self._windows[k - 1].size < _MOST:
            finer = self._windows[k - 1].finer(_MOST)
            before, self._windows[k - 1] = missed, finer
            step = self._nodes(k, np.log(finer.nodes), after)
            missed = self._interpolant(k - 1, step).missed
            if missed > 0.1 * before:
                break
        return step

    def _interpolant(self, k: int, following: _Nodes) -> Interpolant:
        """Return the mass of what the k-th share leaves, less that of independent shares."""
        return Interpolant.through(
            self._windows[k], following.log_mass - betaln(self.a[k + 1], self.b[k + 1])
        )

    def _exponent(
        self, k: int, log_s: Array, u: Array, after: Interpolant | Table | None, *, with_basis: bool = False
    ) -> tuple[Array, Array | None]:
        """Return the logarithm of the integrand at logits of a share, (n, J), and the basis where it interpolates."""
        log_v, log_left = log_expit(u), log_expit(-u)
        rest = log_s[:, None] + log_left
        own = self.exponents
        exponent = self.a[k] * log_v + self.b[k] * log_left + own.of_piece(k, log_s[:, None] + log_v)
        if after is None:
            return exponent + own.of_piece(self.size - 1, rest), None
        if not with_basis:
            return exponent + after.alone(rest), None
        value, basis = after.value(rest)
        return exponent + value, basis

    def _nodes(self, k: int, log_s: Array, after: Interpolant | Table | None) -> _Nodes:
        """Return nodes of a share for each s, where the integrand has weight."""
        u, covariance = self._peak
        wide = float(np.sqrt(covariance[k, k]))
        reach = 2.0 * max(_DEPTH / self.a[k], _DEPTH / self.b[k], 30.0 * wide)
        coarse = u[k] + 0.3 * wide * np.sinh(_COARSE * np.arcsinh(reach / (0.3 * wide)))
        g, _ = self._exponent(k, log_s, np.broadcast_to(coarse, (len(log_s), len(coarse))), after)
        best = np.clip(g.argmax(axis=1), 1, len(coarse) - 2)
        low, high = coarse[best - 1], coarse[best + 1]
        fine = low[:, None] + (high - low)[:, None] * _FINE
        own, _ = self._exponent(k, log_s, fine, after)
        rows, closest = np.arange(len(log_s)), np.clip(own.argmax(axis=1), 1, len(_FINE) - 2)
        top = own[rows, closest]
        drop = np.maximum(top - 0.5 * (own[rows, closest - 1] + own[rows, closest + 1]), 1e-12)
        step = (high - low) / (len(_FINE) - 1)
        center, width = fine[rows, closest], np.clip(step / np.sqrt(2.0 * drop), 0.02 * wide, 50.0 * wide)
        reached = g >= (np.maximum(top, g.max(axis=1)) - _DEPTH)[:, None]
        reached[rows, best] = True
        first = np.maximum(reached.argmax(axis=1) - 1, 0)
        last = np.minimum(reached.shape[1] - reached[:, ::-1].argmax(axis=1), len(coarse) - 1)
        begin, end = (np.arcsinh((coarse[place] - center) / width) for place in (first, last))
        spacing = (end - begin) / _NODES
        tau = begin[:, None] + spacing[:, None] * np.arange(_NODES + 1)
        places = center[:, None] + width[:, None] * np.sinh(tau)
        log_weights = np.log(width * spacing)[:, None] + np.log(np.cosh(tau))
        exponent, basis = self._exponent(k, log_s, places, after, with_basis=True)
        return _Nodes(
            log_s, log_expit(places), log_expit(-places), log_weights, exponent + log_weights, basis
        )

    @cached_property
    def log_partition(self) -> float:
        """Logarithm of the normaliser about the inverse product of the weights."""
        others = betaln(self.a[1:], self.b[1:]).sum()
        return float(self._steps[0].log_mass[0] + others) + self.exponents.of_nothing

    @cached_property
    def means(self) -> Sums:
        """Expectations."""
        sums = Sums.none(self.size, len(self.exponents.functions))
        here = np.ones(1)
        for k, step in enumerate(self._steps):
            weights = here[:, None] * step.probabilities
            self._add(sums, k, step, weights)
            if step.basis is not None:
                here = self._windows[k].at_nodes(np.tensordot(step.basis, weights, 2))
        self._refuse_inexact(sums)
        return sums

    def _refuse_inexact(self, sums: Sums) -> None:
        """Raise an error if the expected pieces do not add up to one, which nothing in the recursion knows."""
        for function, own in zip(self.exponents.functions, sums.functions, strict=True):
            if isinstance(function, Number) and not abs(own.sum() - 1.0) <= _INEXACT:
                raise ParameterError(
                    "TabulatedSticks: the weights differ by too much for their integrals: expected weights must add up "
                    f"to 1, and these add up to {own.sum():.9g}. Start from weights that are nearer to each other, or "
                    "with fewer components."
                )

    def change_of_means(self, a: Array, b: Array, coefficients: Array) -> Sums:
        """Return by how much the expectations change with the exponents and coefficients."""
        sums = Sums.none(self.size, len(self.exponents.functions))
        here, moving = np.ones(1), np.zeros(1)
        for k, (step, change) in enumerate(zip(self._steps, self._changes(a, b, coefficients), strict=True)):
            weights = here[:, None] * step.probabilities
            moves = moving[:, None] * step.probabilities + weights * change
            self._add(sums, k, step, moves)
            if step.basis is not None:
                here, moving = (
                    self._windows[k].at_nodes(np.tensordot(step.basis, own, 2)) for own in (weights, moves)
                )
        return sums

    def _add(self, sums: Sums, k: int, step: _Nodes, weights: Array) -> None:
        sums.log_v[k], sums.log_left[k] = (weights * step.log_v).sum(), (weights * step.log_left).sum()
        sums.add_piece(k, weights, step.log_piece, self.exponents.values(step.log_piece))
        if step.basis is None:
            sums.add_piece(self.size - 1, weights, step.log_rest, self.exponents.values(step.log_rest))

    def _changes(self, a: Array, b: Array, coefficients: Array) -> list[Array]:
        """Return by how much the logarithms of the probabilities of the nodes of each share change."""
        changes: list[Array] = []
        of_mass = np.empty(0)
        for k in range(self.size - 2, -1, -1):
            step = self._steps[k]
            exponent = a[k] * step.log_v + b[k] * step.log_left
            exponent = exponent + self.exponents.weighted(coefficients[:, k], step.log_piece)
            if step.basis is None:
                exponent = exponent + self.exponents.weighted(coefficients[:, -1], step.log_rest)
            else:
                exponent = exponent + np.tensordot(self._windows[k].coefficients(of_mass), step.basis, 1)
            of_mass = (step.probabilities * exponent).sum(axis=1)
            changes.append(exponent - of_mass[:, None])
        return changes[::-1]

    def draws(self, size: int, generator: np.random.Generator) -> Array:
        """Return draws of the weights, (size, K)."""
        log_s = np.zeros(size)
        pieces = np.empty((size, self.size))
        rows = np.arange(size)
        for k in range(self.size - 1):
            last = k == self.size - 2
            after = None if last else Table.of(self._interpolant(k, self._steps[k + 1]))
            nodes = self._nodes(k, log_s, after)
            density = nodes.probabilities
            below = np.cumsum(0.5 * (density[:, 1:] + density[:, :-1]), axis=1)
            wanted = generator.random(size) * below[:, -1]
            cell = np.minimum((below <= wanted[:, None]).sum(axis=1), _NODES - 1)
            missing = wanted - np.where(cell > 0, below[rows, cell - 1], 0.0)
            part = _inverse_of_line(density[rows, cell], density[rows, cell + 1], missing)
            logit = nodes.log_v - nodes.log_left
            u = logit[rows, cell] + part * (logit[rows, cell + 1] - logit[rows, cell])
            pieces[:, k] = log_s + log_expit(u)
            log_s = log_s + log_expit(-u)
        pieces[:, -1] = log_s
        weights = np.exp(pieces)
        return np.maximum(weights / weights.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)


def _half_widths(covariance: Array) -> Array:
    """Return half the lengths of windows such that from inside one, what follows is inside the next."""
    variances = covariance.diagonal() + _LEAST_VARIANCE
    crossed = np.abs(covariance.diagonal(1)) + _LEAST_VARIANCE
    half = np.empty(len(variances))
    half[0] = _SPREAD * np.sqrt(variances[0])
    for k, (one, other, both) in enumerate(zip(variances[:-1], variances[1:], crossed, strict=True)):
        left = np.sqrt(np.maximum(other - both**2 / one, 0.0))
        half[k + 1] = both / one * half[k] + _SPREAD * left
    return half


def _inverse_of_line(left: Array, right: Array, area: Array) -> Array:
    """Return the part of a unit cell below which a linear density with these ends has this area."""
    root = np.sqrt(np.maximum(left**2 + 2.0 * (right - left) * area, 0.0))
    return np.clip(2.0 * area / np.maximum(left + root, 1e-300), 0.0, 1.0)
