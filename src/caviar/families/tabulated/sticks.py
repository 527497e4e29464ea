r"""Weights of broken sticks with functions of each piece as statistics: those of hierarchical Dirichlet processes.

Integrals over broken sticks whose pieces have factors of their own, by recursion along the stick.

With what is left before the k-th piece, :math:`s_k`, and its share :math:`v_k`, the density of the weights
:math:`x_k = v_k s_k` is that of independent shares times :math:`\prod_k e^{r_k(x_k)}`. This is a Markov chain in
:math:`s`, so that with :math:`M_K = e^{r_K}`

.. math:: M_k(s) = \mathrm{E}_{v \sim \mathrm{Beta}(a_k, b_k)}\bigl[e^{r_k(sv)} M_{k+1}(s (1 - v))\bigr]

and :math:`M_1(1)` is the normaliser, by the recursion in :mod:`._stick_recursion`. Expectations are derivatives of the
normaliser as computed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaln, log_expit

from caviar._errors import ImproperError, ParameterError
from caviar._typing import Array, Statistics
from caviar.families.base.family import ExponentialFamily, Seed, Size, as_value, draw_shape
from caviar.families.base.marginals import Ends, Marginals, matched_beta
from caviar.families.base.parameters import refuse_improper
from caviar.families.base.transforms import LogRatios, Transform
from caviar.families.stick_breaking import StickBreaking
from caviar.families.tabulated.of_functions import OfFunctions
from caviar.families.tabulated.scalar_functions import Function, Functions, Number, function_of
from caviar.families.tabulated.stick_exponents import Exponents, points
from caviar.families.tabulated.stick_recursion import Nodes, Recursion
from caviar.families.tabulated.stick_windows import Interpolant
from caviar.numerics.cached import cached_property

_TOGETHER = 5000
"""Draws made at once."""


@dataclass(frozen=True, eq=False, repr=False)
class TabulatedSticks(OfFunctions):
    r"""Distributions of K weights that are the pieces of a broken stick, with any functions of each as statistics.

    .. math:: q(x) \propto \prod_k x_k^{\eta_{1k} - 1} s_k^{\eta_{2k}} \exp \sum_{fk} \eta_{fk} f(x_k), \qquad
              s_k = \sum_{j \ge k} x_j

    about the base measure of a :class:`StickBreaking`, whose natural parameters come first. With
    :math:`f(x) = x` and :math:`f(x) = \log\Gamma(\alpha x + 1)` it is the optimal factor of weights :math:`\beta` that
    are the mean of others, :math:`\pi_d \sim \mathrm{Dirichlet}(\alpha \beta)`. Normaliser and expectations are
    computed by a recursion along the stick, in :mod:`._stick_chain`. :func:`tabulated_sticks` makes a class for each
    set of functions; fits return members of these classes.

    Parameters
    ----------
    coefficients
        Natural parameters, shape (..., S, K): rows for log x, log s and each function.

    Examples
    --------
    >>> from caviar.families.tabulated.scalar_functions import Number
    >>> family = tabulated_sticks((Number(),))
    >>> family.statistics
    ('log_x', 'log_rest', 'x')
    >>> q = family([[2.0, 3.0, 4.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    >>> q.mean.round(12)
    array([0.22222222, 0.33333333, 0.44444444])
    """

    coefficients: Array

    transforms: ClassVar[tuple[Transform, ...]] = (LogRatios(),)
    parameter_letters: ClassVar[tuple[str, ...]] = ("fk",)
    event_ndim = 1

    def __init__(self, coefficients: ArrayLike) -> None:
        if not self.functions:
            raise ParameterError(
                "a TabulatedSticks distribution is a member of a class that tabulated_sticks(...) returns"
            )
        array = np.array(coefficients, dtype=np.float64)
        rows = len(self.statistics)
        if array.ndim < 2 or array.shape[-2] != rows or array.shape[-1] < 2 or not np.isfinite(array).all():
            raise ParameterError(
                f"TabulatedSticks: coefficients must be finite, of shape (..., {rows}, K) with K at least 2, a row for "
                f"each of {', '.join(self.statistics)}; got shape {array.shape}"
            )
        vars(self).update(coefficients=array)
        self._refuse_improper()

    @classmethod
    def details(cls) -> dict[str, Any]:
        return {"functions": [function.details() for function in cls.functions]}

    @classmethod
    def detailed(cls, details: Mapping[str, Any]) -> type[ExponentialFamily]:
        return tabulated_sticks(tuple(function_of(own) for own in details["functions"]))

    @classmethod
    def widened(cls, member: Any) -> Any:
        """Return weights of broken sticks as members of this family."""
        if not isinstance(member, StickBreaking):
            return member
        weights, rests = np.broadcast_arrays(*member.natural)
        return cls.from_natural((weights, rests, *[np.zeros_like(weights)] * len(cls.functions)))

    def _refuse_improper(self) -> None:
        a, b = self._shares
        good: Any = np.isfinite(self.coefficients).all(axis=(-2, -1)) & (np.minimum(a, b) > 0).all(axis=-1)
        if not good.all():
            refuse_improper("TabulatedSticks", good, "every share must have positive concentrations")

    @property
    def _shares(self) -> tuple[Array, Array]:
        """Concentrations a and b of the shares, (..., K - 1) each, apart from the functions."""
        weights, rests = self.coefficients[..., 0, :], self.coefficients[..., 1, :]
        total = weights + rests
        return weights[..., :-1], total[..., ::-1].cumsum(axis=-1)[..., ::-1][..., 1:]

    @classmethod
    def statistics_of(cls, value: ArrayLike) -> Statistics:
        """Return log x, log s and the functions; the logarithm of 0 is that of the smallest positive number."""
        logs = StickBreaking.statistics_of(value)
        at = points(logs[0])
        return (*logs, *(function.value(at) for function in cls.functions))

    @property
    def event_shape(self) -> tuple[int, ...]:
        """(K,)."""
        return (self.coefficients.shape[-1],)

    @property
    def base_measure(self) -> tuple[float, ...]:
        """Inverse product of the weights."""
        return (-1.0, *[0.0] * (len(self.statistics) - 1))

    @cached_property
    def _chains(self) -> list[StickChain]:
        """The members of the batch, in order."""
        size = self.event_shape[0]
        rows = self.coefficients.reshape(-1, len(self.statistics), size)
        a, b = (own.reshape(-1, size - 1) for own in self._shares)
        return [
            StickChain(own_a, own_b, row[2:], self.functions)
            for own_a, own_b, row in zip(a, b, rows, strict=True)
        ]

    def _statistics_of_sums(self, sums: list[Sums]) -> Statistics:
        """Return statistics, or changes of them, from what was summed for each member."""
        shape = (*self.batch_shape, *self.event_shape)
        log_x, log_s = np.zeros((2, len(sums), self.event_shape[0]))
        for row, own in enumerate(sums):
            log_s[row, 1:] = np.cumsum(own.log_left)
            log_x[row] = log_s[row]
            log_x[row, :-1] += own.log_v
        of_pieces = [
            np.array([own.functions[number] for own in sums]).reshape(shape)
            for number in range(len(self.functions))
        ]
        return (log_x.reshape(shape), log_s.reshape(shape), *of_pieces)

    @cached_property
    def expected_statistics(self) -> Statistics:
        """Expectations of log x, log s and the functions."""
        return self._statistics_of_sums([chain.means for chain in self._chains])

    @cached_property
    def log_partition(self) -> Array:
        """Logarithm of the integral about the base measure."""
        return np.array([chain.log_partition for chain in self._chains]).reshape(self.batch_shape)

    def response(self, change: Statistics) -> Statistics:
        together = np.stack(np.broadcast_arrays(*change, self.coefficients[..., 0, :])[:-1], axis=-2)
        moved = type(self)._trusted(coefficients=together)
        size = self.event_shape[0]
        rows = together.reshape(-1, len(self.statistics), size)
        a, b = (own.reshape(-1, size - 1) for own in moved._shares)
        return self._statistics_of_sums(
            [
                chain.change_of_means(own_a, own_b, row[2:])
                for chain, own_a, own_b, row in zip(self._chains, a, b, rows, strict=True)
            ]
        )

    @property
    def mean(self) -> Array:
        """Mean of each weight, shape (..., K)."""
        return self.expected_statistics[self.statistics.index("x")]

    @property
    def variance(self) -> Array:
        """Variance of each weight, shape (..., K)."""
        squares = np.array([chain.means.squares for chain in self._chains])
        return np.maximum(squares.reshape(self.mean.shape) - self.mean**2, 0.0)

    def entry_marginals(self, ends: Ends) -> list[Marginals]:
        # intervals of Betas with the same means and variances
        mean, sd = self.mean, np.sqrt(self.variance)
        return [matched_beta(mean, sd, ends)]

    @classmethod
    def matched_marginals(cls, own: Marginals, sd: Array, ends: Ends) -> Marginals:
        return matched_beta(own.mean, sd, ends)

    def log_density(self, value: ArrayLike) -> Array:
        """Return the log-density at weights of shape (..., K); minus infinity where they do not sum to one."""
        x = np.broadcast_arrays(as_value(value), self.coefficients[..., 0, :])[0]
        inside = (x > 0).all(axis=-1) & (np.abs(x.sum(axis=-1) - 1.0) < 1e-8)
        parts = zip(self.natural, self.base_measure, self.statistics_of(x), strict=True)
        total = sum(((eta + base) * t).sum(axis=-1) for eta, base, t in parts)
        return np.where(inside, total - self.log_partition, -np.inf)

    def mode(self) -> Array:
        """Return the weights of largest density.

        Raises
        ------
        ImproperError
            If an a_k is not above 1 or a b_k not above K - k: the density does not vanish at every edge.
        """
        size = self.event_shape[0]
        a, b = (own.reshape(-1, size - 1) for own in self._shares)
        taken, left = a - 1.0, b - np.arange(size - 1, 0, -1.0)
        if (np.minimum(taken, left) <= 0).any():
            raise ImproperError(
                "A distribution of broken sticks whose pieces have functions has a mode if every a_k exceeds 1 and "
                f"every b_k exceeds K - k, got a of {a.min()} and b less than K - k by {-left.min()}. Use the mean."
            )
        rows = self.coefficients.reshape(-1, len(self.statistics), size)
        found = [
            Exponents(own_a, own_b, row[2:], self.functions).highest_weights()
            for own_a, own_b, row in zip(taken, left, rows, strict=True)
        ]
        return np.array(found).reshape(*self.batch_shape, size)

    def sample(self, size: Size = None, seed: Seed = None) -> Array:
        """Return draws of shape size + batch + (K,)."""
        shape = draw_shape(size, self.batch_shape)
        generator = np.random.default_rng(seed)
        members = len(self._chains)
        draws = np.empty((int(np.prod(shape)) // max(members, 1), members, self.event_shape[0]))
        for number, chain in enumerate(self._chains):
            for first in range(0, len(draws), _TOGETHER):
                part = draws[first : first + _TOGETHER, number]
                part[:] = chain.draws(len(part), generator)
        return draws.reshape(*shape, *self.event_shape)

    def __repr__(self) -> str:
        """Return the mean and the statistics as a text."""
        with np.printoptions(precision=4, threshold=20, edgeitems=2):
            figures = (self.mean, self.coefficients)
            mean, coefficients = (str(own).replace("\n", "\n" + " " * 10) for own in figures)
        return (
            f"TabulatedSticks(\n    mean={mean},\n    coefficients={coefficients},\n"
            f"    of=({', '.join(self.statistics)}),\n)  # batch {self.batch_shape}"
        )


@cache
def tabulated_sticks(functions: tuple[Function, ...]) -> type[TabulatedSticks]:
    """Return the family of weights of broken sticks that has functions of each as statistics.

    Parameters
    ----------
    functions
        Functions of a piece that are finite at 0, the piece itself among them. The same ones give the same class.
    """
    statistics = (*StickBreaking.statistics, *(function.name for function in functions))
    return TabulatedSticks.made_by(tabulated_sticks, functions, functions=functions, statistics=statistics)


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
