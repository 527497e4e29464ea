r"""Means and variances to second order: derivatives of the evidence to second order by tilts of the log joint density.

With the log joint density tilted by s times a number g, the log evidence :math:`\log Z(s)` has the mean of g for its
first derivative at s = 0, and the variance for its second. The ELBO gives the mean of the factor and the variance of
linear response. The evidence to second order,

.. math:: \log Z(s) \approx \mathrm{ELBO}(s) + G(s), \qquad G = -\tfrac12 \log |I - V H|,

adds G'(0) to the former and G''(0) to the latter. Both are differences of G at the fixed points of two tilts.

With the coordinates of the fit, :math:`V_0 = L L'`, the covariances elsewhere are :math:`V = L R R' L'`, so that

.. math:: \log |I - V H| = \log |I - R' K R|, \qquad K = L' H L.

Where no row hides anything and at most two statistics meet in a term, H is the same everywhere: then a visit takes no
contraction, only the families' own functions of all natural parameters together. If moreover the largest factor s says
nothing to itself, it is eliminated: to the K of the others comes :math:`L_o' H_{os} V_s H_{so} L_o`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..._errors import ImproperError
from ..._typing import AnyArray, Array, Statistics
from ...families.shared.many_normals import ManyNormals
from ...numerics.cached import cached_property
from ...numerics.linalg import lower_roots
from ...numerics.records import replaced
from ..ascent.problem import Problem
from ..ascent.state import AscentState, at_natural, joined
from .expectations import correction_of_expectations
from .factors import FactorResponse, flat, units
from .operator import ResponseOperator
from .solutions.solution import FLAT, Solution

_TILT = 0.5
"""Of the tilts: by how many standard deviations the mean moves. The determinant is far from quadratic beyond one."""

_HALVINGS = 3
"""Of a tilt that has no fixed point among the factors."""

_MOST_STEPS = 12
"""To a tilted fixed point, by Newton's method with the response of the fit."""

_SETTLED = 2e-3
"""Standard deviations that are left of the way to a tilted fixed point."""

_MOST_NUMBERS = 4e6
"""Numbers of the covariances of statistics at all fixed points that are held together."""


class Tilts:
    """Fixed points of a fit whose log joint density is tilted.

    Parameters
    ----------
    state
        Of the fit.
    operator
        How its updates respond.
    solution
        What linear response adds to its factors.
    numbers
        Where the ELBO has the expected log densities of rows, what each number that meets them is in standardised
        coordinates, (r, n).
    """

    def __init__(
        self,
        state: AscentState,
        operator: ResponseOperator,
        solution: Solution,
        numbers: Array | None = None,
    ) -> None:
        natural = {own: operator.natural[own] for own in state.problem.order}
        self._around = landscape_of(replaced(state, natural=natural), operator, numbers)
        self._solved = solution.excess(np.eye(operator.size)) + np.eye(operator.size)
        # by how much the natural parameters change through those of all updates, with each coordinate
        self._images = self._around.images @ self._solved
        fit = self._around.fit[None]
        self._fit, self._correction_of_fit = self._settled(fit, np.zeros(fit.shape))
        if not solution.is_above(FLAT):
            self._correction_of_fit[:] = np.nan

    def corrections(self, columns: Array, sds: Array) -> tuple[Array, Array]:
        """Return what second order adds to the means of some numbers, and to their variances, (n,) each.

        NaN of a number whose tilts have no fixed point; 0 of one that is known, or has no standard deviation.

        Parameters
        ----------
        columns
            What each number is in standardised coordinates, (r, n).
        sds
            Standard deviations by linear response, (n,).
        """
        found = np.zeros((2, len(sds)))
        asked = np.flatnonzero(np.isfinite(sds) & (sds > 0))
        most = max(1, int(_MOST_NUMBERS / self._around.root.shape[0] ** 2))
        for first in range(0, len(asked), most):
            own = asked[first : first + most]
            found[:, own] = self._corrections(columns[:, own].T @ self._around.inverse, sds[own])
        return found[0], found[1]

    def _corrections(self, tilts: Array, sds: Array) -> Array:
        """Return the corrections of some numbers, (2, n), from the natural parameters of each, (n, P)."""
        found, here = np.full((2, len(sds)), np.nan), self._correction_of_fit[0]
        slopes, sizes, left = self._steps(tilts)[0], _TILT / sds, np.arange(len(sds))
        for _ in range(_HALVINGS if np.isfinite(here) else 0):
            tilt, size = sizes[left, None] * tilts[left], sizes[left]
            above, a = self._settled(self._fit + sizes[left, None] * slopes[left], tilt)
            # the path bends to the same side
            begin = above - 2.0 * sizes[left, None] * slopes[left]
            begin[np.isnan(a)] = np.nan
            _, b = self._settled(begin, -tilt)
            found[:, left] = (a - b) / (2.0 * size), (a - 2.0 * here + b) / size**2
            left = left[np.isnan(found[1, left])]
            if not len(left):
                break
            sizes[left] /= 2.0
        return found

    def _settled(self, natural: Array, tilts: Array) -> tuple[Array, Array]:
        """Return the fixed points of n tilts of the natural parameters, near some, (n, P), and the corrections there.

        These are NaN where there is no fixed point.
        """
        natural, settled = natural.copy(), {}
        left, before = np.flatnonzero(np.isfinite(natural).all(axis=1)), np.full(len(natural), np.inf)
        for _ in range(_MOST_STEPS):
            if not len(left):
                break
            updates, places = self._around.updates(natural[left])
            steps, sizes = self._steps(updates + tilts[left] - natural[left])
            near = sizes < _SETTLED
            settled |= {int(left[own]): places[own] for own in np.flatnonzero(near).tolist()}
            going = ~near & (sizes < before[left])
            before[left] = sizes
            left = left[going]
            natural[left] += steps[going]
        corrections = np.full(len(natural), np.nan)
        if settled:
            corrections[list(settled)] = self._around.corrections(list(settled.values()))
        return natural, corrections

    def _steps(self, residuals: Array) -> tuple[Array, Array]:
        """Return the steps that residuals of the natural parameters take, (n, P), and their standard deviations, (n,).

        Both are NaN of residuals that are.
        """
        told = residuals @ self._around.root
        squared = ((told @ self._solved) * told).sum(axis=1)
        return residuals + told @ self._images.T, np.sqrt(np.maximum(squared, 0.0))


class Landscape(ABC):
    """What surrounds a fit.

    Parameters
    ----------
    state, operator
        The fit, and how its updates respond.
    """

    def __init__(self, state: AscentState, operator: ResponseOperator) -> None:
        self.state, self.operator = state, operator
        self.fit = joined(state.problem, state.natural)
        self.root, self.matrix = operator.times(np.eye(operator.size)), operator.matrix()
        self.inverse = left_inverse(self.root)
        """By natural parameters that change each coordinate by one, (r, P)."""
        self.images = self.inverse.T @ self.matrix
        """By how much the natural parameters of all updates change with each coordinate, (P, r)."""

    @abstractmethod
    def updates(self, natural: Array) -> tuple[Array, Sequence[Any]]:
        """Return the natural parameters of all updates at some natural parameters (n, P), and the n places.

        Those of the updates are NaN where there are no factors.
        """

    @abstractmethod
    def corrections(self, places: Sequence[Any]) -> Array:
        """Return the correction of the ELBO at some places, (n,); NaN where it has none."""

    def batches(self, natural: Array) -> list[FactorBatch]:
        """Return all factors at the natural parameters of the fit, and after these at others, (n, P)."""
        every = np.concatenate([self.fit[None], natural])
        problem, at_fit = self.state.problem, self.operator.natural
        return [batch_of(problem, own, at_fit[own.variable], every) for own in self.operator.factors]

    def roots(self, batches: Mapping[int, FactorBatch]) -> Array:
        """Return R of the coordinates of some factors by their numbers, (n, r, r), without those of the fit."""
        operator, roots = self.operator, []
        for number, batch in batches.items():
            factor, start = operator.factors[number], operator.coordinates[number].start
            for place, (places, rank) in enumerate(zip(factor.places, factor.roots.ranks, strict=True)):
                inverse = self.inverse[start : start + rank, places]
                roots.append(lower_roots(inverse @ batch.covariances[1:, place] @ inverse.T))
                start += rank
        size, start = sum(own.shape[-1] for own in roots), 0
        found = np.zeros((len(roots[0]), size, size))
        for own in roots:
            stop = start + own.shape[-1]
            found[:, start:stop, start:stop] = own
            start = stop
        return found


def landscape_of(state: AscentState, operator: ResponseOperator, numbers: Array | None = None) -> Landscape:
    """Return what surrounds a fit, with as few contractions as its terms allow."""
    if numbers is not None:
        return InExpectation(state, operator, numbers)
    return (Straight if operator.is_straight else Curved)(state, operator)


class Straight(Landscape):
    """The landscape where H is the same everywhere: the updates are linear in the expected statistics."""

    def __init__(self, state: AscentState, operator: ResponseOperator) -> None:
        super().__init__(state, operator)
        self.silent = operator.silent
        others = [own for number, own in enumerate(operator.coordinates) if number != self.silent]
        self.others = np.concatenate([np.arange(0), *(np.arange(own.start, own.stop) for own in others)])
        self.update = joined(state.problem, operator.natural)

    def updates(self, natural: Array) -> tuple[Array, Sequence[Any]]:
        batches = self.batches(natural)
        moved = np.zeros((len(natural), len(self.fit)))
        for factor, batch in zip(self.operator.factors, batches, strict=True):
            moved[:, factor.places] = batch.expected[1:] - batch.expected[:1]
        updates = self.update + (moved @ self.inverse.T) @ self.images.T
        is_proper = np.all([batch.is_proper[1:] for batch in batches], axis=0)
        return np.where(is_proper[:, None], updates, np.nan), list(natural)

    def corrections(self, places: Sequence[Any]) -> Array:
        if not len(self.others):
            # a single factor, which is exact
            return np.zeros(len(places))
        batches = dict(enumerate(self.batches(np.stack(places))))
        met = self.matrix[np.ix_(self.others, self.others)]
        if self.silent is not None:
            said = self.images[:, self.others][self.operator.factors[self.silent].places]
            met = met + batches.pop(self.silent).squares(said)[1:]
        return corrections_of(met, self.roots(batches))


class Curved(Landscape):
    """The landscape where H has to be found at each place: where rows hide something, or three statistics meet."""

    def updates(self, natural: Array) -> tuple[Array, Sequence[Any]]:
        problem, found = self.state.problem, np.full(natural.shape, np.nan)
        states = [at_natural(self.state, own) for own in natural]
        for own, state in zip(found, states, strict=True):
            if state is not None:
                told = {each: problem.updates[each].natural(state.arrays) for each in problem.order}
                own[:] = joined(problem, told)
        return found, states

    def corrections(self, places: Sequence[Any]) -> Array:
        matrices = np.stack([self.operator.moved_to(state).matrix() for state in places])
        batches = self.batches(np.stack([joined(state.problem, state.natural) for state in places]))
        kept = np.ix_(np.arange(len(places)), self.operator.counts, self.operator.counts)
        return self._corrections(matrices[kept], self.roots(dict(enumerate(batches)))[kept])

    def _corrections(self, matrices: Array, roots: Array) -> Array:
        """Return the corrections from K and R of the coordinates that count at each place, (m, r, r) both."""
        return corrections_of(matrices, roots)


class InExpectation(Curved):
    """The landscape where the ELBO has the expected log densities of rows: of Normals the largest terms are cubes."""

    def __init__(self, state: AscentState, operator: ResponseOperator, numbers: Array) -> None:
        super().__init__(state, operator)
        self._numbers, self._meet = numbers[operator.counts], operator.meet_rows[operator.counts]

    def _corrections(self, matrices: Array, roots: Array) -> Array:
        pairs = zip(roots.swapaxes(-1, -2) @ matrices @ roots, roots, strict=True)
        return np.array(
            [correction_of_expectations(own, root.T @ self._numbers, self._meet) for own, root in pairs]
        )


def corrections_of(matrices: Array, roots: Array) -> Array:
    """Return -1/2 log |I - R' K R| of m pairs, (m,); NaN where this is not positive definite."""
    whole = np.eye(roots.shape[-1]) - roots.swapaxes(-1, -2) @ matrices @ roots
    pivots = np.diagonal(lower_roots(whole), axis1=-2, axis2=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        found = -np.log(pivots).sum(axis=-1)
        return np.where((pivots**2 >= FLAT).all(axis=-1), found, np.nan)


def left_inverse(root: Array) -> Array:
    """Return a left inverse of L, (r, P), which is accurate in any units of the statistics."""
    sizes = np.sqrt((root * root).sum(axis=1))
    units = np.where(sizes > 0, sizes, 1.0)
    scaled = root / units[:, None]
    is_square = scaled.shape[0] == scaled.shape[1]
    return (np.linalg.inv(scaled) if is_square else np.linalg.pinv(scaled)) / units


class FactorBatch(ABC):
    """A global factor at n natural parameters.

    Attributes
    ----------
    is_proper
        Which of these are those of distributions, (n,); the figures of the others are any numbers.
    """

    is_proper: AnyArray

    @cached_property
    @abstractmethod
    def expected(self) -> Array:
        """Expected statistics of the repetitions that respond, (n, R, p)."""

    @cached_property
    @abstractmethod
    def covariances(self) -> Array:
        """Covariances of these, (n, R, p, p)."""

    def squares(self, weights: Array) -> Array:
        """Return W' V W, (n, c, c), with W (R, p, c) for the statistics of all repetitions."""
        return (weights.swapaxes(1, 2) @ (self.covariances @ weights)).sum(axis=1)


def batch_of(problem: Problem, factor: FactorResponse, like: Statistics, natural: Array) -> FactorBatch:
    """Return a factor at natural parameters (n, P) of all globals, of which the first are proper.

    Parameters
    ----------
    like
        Natural parameters of the variable at the fit, which give the shapes.
    """
    if factor.variable.members:
        many = factor.variable.family.many(natural[:, factor.places[0]])  # type: ignore[attr-defined]
        return _OfNormals(many) if many is not None else _OfSharedFactor(problem, factor, like, natural)
    return _OfFamily(factor, like, natural)


class _OfFamily(FactorBatch):
    """A variable with a separate factor: all its repetitions as one batch of the family."""

    def __init__(self, factor: FactorResponse, like: Statistics, natural: Array) -> None:
        variable = factor.variable
        n_plates = len(variable.plates_of(variable.family.statistics[-1]))
        self._family, self._shape = variable.family, (len(natural), *factor.places.shape)
        self._events = [eta.shape[n_plates:] for eta in like]
        self._square = [variable.is_matrix(own) for own in variable.family.statistics]
        own = natural[:, factor.places]
        self.is_proper = self._proper(own)
        own[~self.is_proper] = own[0]
        self._natural = self._apart(own)
        self._member = self._family.from_natural(self._natural)

    def _apart(self, own: Array) -> Statistics:
        """Return natural parameters (n, R, p) as those of a batch of n R distributions."""
        found, start = [], 0
        for shape, is_square in zip(self._events, self._square, strict=True):
            stop = start + math.prod(shape)
            eta = own[..., start:stop].reshape(-1, *shape)
            found.append(0.5 * (eta + eta.swapaxes(-1, -2)) if is_square else eta)
            start = stop
        return tuple(found)

    def _proper(self, own: Array) -> AnyArray:
        """Return which natural parameters (n, R, p) are those of distributions, (n,)."""
        if len(own) == 0:
            return np.ones(0, dtype=bool)
        try:
            _ = self._family.from_natural(self._apart(own)).expected_statistics
        except (ImproperError, np.linalg.LinAlgError):
            if len(own) == 1:
                return np.zeros(1, dtype=bool)
            return np.concatenate([self._proper(half) for half in np.array_split(own, 2)])
        return np.asarray(np.isfinite(own).all(axis=(1, 2)))

    @cached_property
    def expected(self) -> Array:
        n = self._shape[0] * self._shape[1]
        parts = zip(self._member.expected_statistics, self._events, strict=True)
        shaped = [np.broadcast_to(own, (n, *shape)) for own, shape in parts]
        return flat(shaped, n).reshape(self._shape)

    @cached_property
    def covariances(self) -> Array:
        n = self._shape[0] * self._shape[1]
        columns = [flat(self._member.response(change), n) for change in units(self._natural)]
        found = np.stack(columns, axis=1).reshape(*self._shape, self._shape[2])
        return 0.5 * (found + found.swapaxes(-1, -2))


class _OfNormals(FactorBatch):
    """A Gaussian factor that several variables share."""

    def __init__(self, many: ManyNormals) -> None:
        self._many, self.is_proper = many, many.is_proper

    @cached_property
    def expected(self) -> Array:
        return self._many.expected_statistics[:, None]

    @cached_property
    def covariances(self) -> Array:
        return self._many.covariances_of_statistics()[:, None]

    def squares(self, weights: Array) -> Array:
        return self._many.covariances_of_sums(weights[0])


class _OfSharedFactor(FactorBatch):
    """A factor that several variables share, computed separately at each place."""

    def __init__(self, problem: Problem, factor: FactorResponse, like: Statistics, natural: Array) -> None:
        self._like, self._problem, self._variable = like, problem, factor.variable
        members = [self._at(own) for own in natural[:, factor.places[0]]]
        self.is_proper = np.array([own is not None for own in members])
        self._members: list[Any] = [members[0] if own is None else own for own in members]

    def _at(self, natural: Array) -> Any | None:
        """Return the factor with natural parameters (p,); None if they are those of none."""
        if not np.isfinite(natural).all():
            return None
        parts = np.split(natural, np.cumsum([eta.size for eta in self._like])[:-1])
        shaped = tuple(own.reshape(eta.shape) for own, eta in zip(parts, self._like, strict=True))
        try:
            return self._problem.factor(self._variable, shaped)
        except ImproperError:
            return None

    @cached_property
    def expected(self) -> Array:
        of_each = (zip(own.expected_statistics, self._like, strict=True) for own in self._members)
        return np.stack(
            [[np.concatenate([np.broadcast_to(t, eta.shape).ravel() for t, eta in own])] for own in of_each]
        )

    @cached_property
    def covariances(self) -> Array:
        return np.stack([own.covariance_of_statistics()[0][None] for own in self._members])
