"""A tabulated factor: the distribution of a scalar whose log density has functions that its own family lacks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from caviar._errors import ImproperError, ParameterError
from caviar._typing import AnyArray, Array, Statistics
from caviar.families.base.family import ExponentialFamily, Seed, Size, as_value, draw_shape
from caviar.families.base.marginals import Ends, Marginals
from caviar.families.base.parameters import refuse_improper
from caviar.families.beta import Beta
from caviar.families.gamma import Gamma
from caviar.families.tabulated import tables
from caviar.families.tabulated.of_functions import OfFunctions
from caviar.families.tabulated.scalar_functions import PLAIN, Function, Positive, Support, Unit, function_of
from caviar.families.tabulated.tables import Frames, Integrals
from caviar.numerics.arguments import require_share
from caviar.numerics.cached import cached_property

_SUPPORTS: dict[type[ExponentialFamily], type[Support]] = {Gamma: Positive, Beta: Unit}
"""Families of scalars whose base measure is uniform along the line of the support."""

_PIECES = 128
"""Pieces of the distribution function."""

_MOST_STEPS = 8
"""Of Newton's method to a quantile."""

_GAUSS, _GAUSS_WEIGHTS = np.polynomial.legendre.leggauss(12)


@dataclass(frozen=True, eq=False, repr=False)
class Tabulated(OfFunctions):
    r"""Distributions of a scalar with any functions of it as sufficient statistics.

    .. math:: q(x) \propto h(x) \exp \sum_s \eta_s f_s(x), \qquad A(\eta) = \log \int e^{\sum_s \eta_s f_s} h\, dx

    with the base measure of a Gamma, :math:`h = 1/x`, or of a Beta, :math:`h = 1/(x (1 - x))`. Normaliser, moments and
    quantiles are integrals along a line, computed by :mod:`._tables`. :func:`tabulated` makes a class for each set of
    functions; fits return members of these classes.

    Parameters
    ----------
    coefficients
        Natural parameters; the last axis has one for each statistic.

    Examples
    --------
    >>> from caviar.families.tabulated.scalar_functions import LogGamma
    >>> family = tabulated(Gamma, (LogGamma(),))
    >>> family.statistics
    ('log_x', 'x', 'gammaln(x)')
    >>> q = family([2.0, -1.0, 0.0])
    >>> print(q.mean.round(12), q.variance.round(12))
    2.0 2.0
    """

    coefficients: Array

    parameter_letters: ClassVar[tuple[str, ...]] = ("f",)
    base: ClassVar[type[ExponentialFamily]]
    """The family whose statistics come first, and whose base measure it has."""
    support: ClassVar[type[Support]]

    def __init__(self, coefficients: ArrayLike) -> None:
        if not self.functions:
            raise ParameterError(
                "a Tabulated distribution is a member of a class that tabulated(...) returns"
            )
        array = np.array(coefficients, dtype=np.float64)
        if array.shape[-1:] != (len(self.functions),) or not np.isfinite(array).all():
            raise ParameterError(
                f"Tabulated: coefficients must be finite, {len(self.functions)} along the last axis, one for each of "
                f"{', '.join(self.statistics)}; got shape {array.shape}"
            )
        vars(self).update(coefficients=array)
        self._refuse_improper()

    @classmethod
    def details(cls) -> dict[str, Any]:
        beside = cls.functions[len(cls.base.statistics) :]
        return {"base": cls.base.__name__, "functions": [function.details() for function in beside]}

    @classmethod
    def detailed(cls, details: Mapping[str, Any]) -> type[ExponentialFamily]:
        base = next(kind for kind in _SUPPORTS if kind.__name__ == details["base"])
        return tabulated(base, tuple(function_of(own) for own in details["functions"]))

    @classmethod
    def widened(cls, member: Any) -> Any:
        """Return members of the base family as members of this one."""
        if not isinstance(member, cls.base):
            return member
        rest = len(cls.functions) - len(member.natural)
        return cls.from_natural((*member.natural, *[np.zeros(member.batch_shape)] * rest))

    def _refuse_improper(self) -> None:
        finite: Any = np.isfinite(self._flat).all(axis=1)
        good = self._peaks[0] if np.all(finite) else finite
        if not np.all(good):
            rule = "its density must fall to zero at both ends of the support"
            refuse_improper("Tabulated", np.reshape(good, self.batch_shape), rule)

    @property
    def event_shape(self) -> tuple[int, ...]:
        """A number has no axes."""
        return ()

    @classmethod
    def statistics_of(cls, value: ArrayLike) -> Statistics:
        """Return the functions at a value or a batch of values."""
        at = cls.support.points(cls.support.place_of(as_value(value)))
        return tuple(function.value(at) for function in cls.functions)

    @classmethod
    def statistic_of(cls, name: str, value: ArrayLike) -> Array:
        at = cls.support.points(cls.support.place_of(as_value(value)))
        return cls.functions[cls.statistics.index(name)].value(at)

    @property
    def base_measure(self) -> tuple[float, ...]:
        """That of the base family."""
        return tuple(-1.0 if name.startswith("log_") and name in PLAIN else 0.0 for name in self.statistics)

    @property
    def _flat(self) -> Array:
        return self.coefficients.reshape(-1, len(self.functions))

    @cached_property
    def _peaks(self) -> tuple[AnyArray, Array, Array, Array]:
        return tables.peaks(self.support, self.functions, self._flat)

    @cached_property
    def _frames(self) -> Frames:
        _, g, low, high = self._peaks
        return tables.frames_of(self.support, self.functions, self._flat, g, low, high)

    @cached_property
    def _integrals(self) -> Integrals:
        return tables.integrals(self.support, self.functions, self._flat, self._frames)

    @cached_property
    def expected_statistics(self) -> Statistics:
        """Expectation of each function."""
        means = self._integrals.means.reshape(*self.batch_shape, -1)
        return tuple(means[..., number] for number in range(len(self.functions)))

    @cached_property
    def log_partition(self) -> Array:
        """Logarithm of the integral about the base measure."""
        return self._integrals.log_partition.reshape(self.batch_shape)

    def response(self, change: Statistics) -> Statistics:
        covariances = self._integrals.covariances.reshape(*self.batch_shape, *[len(self.functions)] * 2)
        moved = np.einsum("...st,...t->...s", covariances, np.stack(np.broadcast_arrays(*change), axis=-1))
        return tuple(moved[..., number] for number in range(len(self.functions)))

    def response_of_value(self, change: Statistics) -> tuple[Array, ...]:
        covariances = self._integrals.covariances_of_number.reshape(*self.batch_shape, -1)
        return (np.einsum("...s,...s->...", covariances, np.stack(np.broadcast_arrays(*change), axis=-1)),)

    def covariance_of_value(self) -> Array:
        return self.variance[..., np.newaxis, np.newaxis]

    @property
    def mean(self) -> Array:
        """Expected number."""
        return self._integrals.of_number[:, 0].reshape(self.batch_shape)

    @property
    def variance(self) -> Array:
        """Variance of the number."""
        return self._integrals.of_number[:, 1].reshape(self.batch_shape)

    @property
    def sd(self) -> Array:
        """Standard deviation of the number."""
        return np.sqrt(self.variance)

    def places(self, n: int = 128) -> tuple[Array, Array]:
        """Return n + 1 numbers, (n + 1, batch...), and their probabilities: expectations are sums over them."""
        u, log_weights = self._frames.nodes(n)
        g = tables.exponents(self.support, self.functions, self._flat, u) + log_weights
        weights = np.exp(g - g.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        shape = (n + 1, *self.batch_shape)
        return self.support.points(u).x.T.reshape(shape), weights.T.reshape(shape)

    def inverse_moments(self) -> tuple[Array, Array]:
        return self._moment_of_inverse(1), self._moment_of_inverse(2)

    def _moment_of_inverse(self, power: int) -> Array:
        """Return E[x^-power]: a ratio of normalisers; infinite where the integral is."""
        flat = self._flat.copy()
        flat[:, self.statistics.index("log_x")] -= power
        proper = tables.peaks(self.support, self.functions, flat)[0]
        found = np.full(len(flat), np.inf)
        if proper.any():
            tilted = type(self)._trusted(coefficients=flat[proper])
            found[proper] = np.exp(tilted.log_partition - self._integrals.log_partition[proper])
        return found.reshape(self.batch_shape)

    def entry_marginals(self, ends: Ends) -> list[Marginals]:
        lower, upper = (self.quantile(end) for end in ends)
        return [Marginals(self.mean, np.sqrt(self.variance), lower, upper)]

    @classmethod
    def matched_marginals(cls, own: Marginals, sd: Array, ends: Ends) -> Marginals:
        return cls.base.matched_marginals(own, sd, ends)

    def log_density(self, value: ArrayLike) -> Array:
        """Return the log-density at x, which broadcasts with the batch."""
        x, _ = np.broadcast_arrays(as_value(value), self.log_partition)
        inside = self.support.contains(x)
        kept = np.where(inside, x, 0.5)
        parts = zip(self.natural, self.base_measure, self.statistics_of(kept), strict=True)
        density = sum((eta + base) * t for eta, base, t in parts) - self.log_partition
        return np.where(inside, density, -np.inf)

    def mode(self) -> Array:
        """Return the x at which its density, not the density along the line, is largest.

        Raises
        ------
        ImproperError
            If the density is unbounded, or grows towards an end of the support.
        """
        flat = self._flat + np.array(self.base_measure)
        _, g, low, high = tables.peaks(self.support, self.functions, flat)
        highest = g.argmax(axis=1)
        if np.any((highest == 0) | (highest == g.shape[1] - 1)):
            raise ImproperError(
                "A tabulated distribution has a mode if its density falls towards both ends of its support. Use the "
                "mean, or a prior whose density vanishes there."
            )
        places = tables.highest_places(self.support, self.functions, flat, low, high)
        return self.support.points(places).x.reshape(self.batch_shape)

    @cached_property
    def _distribution_function(self) -> tuple[Array, Array]:
        """Ends of the pieces in tau, (R, P + 1), and the probability below each."""
        frames = self._frames
        edges = np.linspace(frames.first, frames.last, _PIECES + 1, axis=1)
        half = 0.5 * (edges[:, 1:] - edges[:, :-1])
        tau = 0.5 * (edges[:, 1:] + edges[:, :-1])[..., None] + half[..., None] * _GAUSS
        density = self._density_along(np.arange(len(edges)), tau.reshape(len(edges), -1)).reshape(tau.shape)
        pieces = half * (density @ _GAUSS_WEIGHTS)
        below = np.concatenate((np.zeros((len(edges), 1)), np.cumsum(pieces, axis=1)), axis=1)
        return edges, below / below[:, -1:]

    def _density_along(self, rows: AnyArray, tau: Array) -> Array:
        """Return the densities of some distributions at tau, (R, n), with respect to tau."""
        frames = self._frames[rows]
        g = tables.exponents(self.support, self.functions, self._flat[rows], frames.places(tau))
        return np.exp(g - self._integrals.log_partition[rows, None]) * frames.width[:, None] * np.cosh(tau)

    def cdf(self, value: ArrayLike) -> Array:
        """Return the probability below x, which broadcasts with the batch."""
        x = as_value(value)
        shape = np.broadcast_shapes(x.shape, self.batch_shape)
        rows = np.broadcast_to(np.arange(len(self._flat)).reshape(self.batch_shape), shape).ravel()
        flat = np.broadcast_to(x, shape).ravel()
        inside = self.support.contains(flat)
        with np.errstate(all="ignore"):
            place = self.support.place_of(np.where(inside, flat, 0.5))
        frames = self._frames[rows]
        tau = np.clip(np.arcsinh((place - frames.center) / frames.width), frames.first, frames.last)
        return np.where(inside, self._below(rows, tau), flat > 0.5).reshape(shape)

    def _below(self, rows: AnyArray, tau: Array) -> Array:
        """Return the probability below tau, (R,), of one distribution each."""
        edges, below = (array[rows] for array in self._distribution_function)
        piece = np.clip((edges <= tau[:, None]).sum(axis=1) - 1, 0, _PIECES - 1)
        every = np.arange(len(rows))
        start = edges[every, piece]
        half = 0.5 * (tau - start)
        nodes = (start + half)[:, None] + half[:, None] * _GAUSS
        return below[every, piece] + half * (self._density_along(rows, nodes) @ _GAUSS_WEIGHTS)

    def quantile(self, q: ArrayLike) -> Array:
        """Return the numbers with these probabilities below them; they broadcast with the batch."""
        wanted = as_value(q)
        shape = np.broadcast_shapes(wanted.shape, self.batch_shape)
        rows = np.broadcast_to(np.arange(len(self._flat)).reshape(self.batch_shape), shape).ravel()
        return self._quantiles_of(rows, np.broadcast_to(wanted, shape).ravel()).reshape(shape)

    def interval(self, level: float = 0.95) -> tuple[Array, Array]:
        """Return the ends of the interval that leaves as much below as above, each of the batch shape.

        Parameters
        ----------
        level
            Probability inside.
        """
        level = require_share("level", level)
        return self.quantile(0.5 * (1.0 - level)), self.quantile(0.5 * (1.0 + level))

    def _quantiles_of(self, rows: AnyArray, wanted: Array) -> Array:
        """Return quantiles of one distribution each: Newton's method inside the piece that holds each."""
        edges, below = (array[rows] for array in self._distribution_function)
        every = np.arange(len(rows))
        piece = np.clip((below <= wanted[:, None]).sum(axis=1) - 1, 0, _PIECES - 1)
        low, high = edges[every, piece], edges[every, piece + 1]
        under, over = below[every, piece], below[every, piece + 1]
        share = np.divide(wanted - under, over - under, out=np.full(len(rows), 0.5), where=over > under)
        tau = low + share * (high - low)
        for _ in range(_MOST_STEPS):
            excess = self._below(rows, tau) - wanted
            if np.abs(excess).max(initial=0.0) < 1e-14:
                break
            density = self._density_along(rows, tau[:, None])[:, 0]
            low, high = np.where(excess < 0, tau, low), np.where(excess > 0, tau, high)
            step = tau - np.divide(excess, density, out=np.zeros_like(excess), where=density > 0)
            tau = np.where((step >= low) & (step <= high), step, 0.5 * (low + high))
        frames = self._frames[rows]
        return self.support.points(frames.center + frames.width * np.sinh(tau)).x

    def sample(self, size: Size = None, seed: Seed = None) -> Array:
        """Return draws of shape size + batch; one that underflows is the smallest normal number."""
        shape = draw_shape(size, self.batch_shape)
        uniform = np.random.default_rng(seed).random(shape)
        rows = np.broadcast_to(np.arange(len(self._flat)).reshape(self.batch_shape), shape).ravel()
        draws = self._quantiles_of(rows, uniform.ravel()).reshape(shape)
        return np.maximum(draws, np.finfo(np.float64).tiny)

    def __repr__(self) -> str:
        """Return mean, standard deviation and coefficients as a text."""
        with np.printoptions(precision=4, threshold=20, edgeitems=2):
            figures = (self.mean, np.sqrt(self.variance), self.coefficients)
            mean, sd, coefficients = (str(own).replace("\n", "\n" + " " * 10) for own in figures)
        return (
            f"Tabulated(\n    mean={mean},\n    sd={sd},\n    coefficients={coefficients},\n"
            f"    of=({', '.join(self.statistics)}),\n)  # batch {self.batch_shape}"
        )


def can_be_tabulated(family: type[ExponentialFamily]) -> bool:
    """Whether scalars of a family may have a tabulated factor."""
    return family in _SUPPORTS


def support_of(family: type[ExponentialFamily]) -> type[Support]:
    """Return the support of a family that can be tabulated."""
    return _SUPPORTS[family]


@cache
def tabulated(base: type[ExponentialFamily], functions: tuple[Function, ...]) -> type[Tabulated]:
    """Return the family that has some functions as statistics, after those of ``base``.

    Parameters
    ----------
    base
        Gamma or Beta.
    functions
        Functions that it lacks. The same ones give the same class.
    """
    every = (*(PLAIN[name] for name in base.statistics), *functions)
    return Tabulated.made_by(
        tabulated,
        base,
        functions,
        base=base,
        functions=every,
        statistics=tuple(function.name for function in every),
        support=_SUPPORTS[base],
        transforms=base.transforms,
    )
