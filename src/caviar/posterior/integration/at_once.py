r"""A posterior integrated over some of its globals with all fits at once.

.. math:: p(\theta \mid x) \propto p(x, \theta), \qquad
          p(z \mid x) = \int p(z \mid x, \theta)\, p(\theta \mid x)\, d\theta

Draws of Student-t distributions have weights :math:`p(x, \theta_s) / r(\theta_s)`, with the mixture r of all of them.
The location and scale of each are the moments of the weighted draws before it. Draws are evenly spread, by a scrambled
Sobol sequence.

Source: Cornuet, Marin, Mira and Robert, "Adaptive multiple importance sampling" (2012).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.special import gammaincinv, ndtri

from ..._typing import Array
from ...engine.ascent.problem import Problem
from ...engine.evaluation.given_by_passes import Fits, GivenByRows
from ...engine.response.given import Given
from ...engine.starts.factors.prior import own_natural
from ...families.base.transforms import SpreadsAndCorrelations
from ...language import Variable
from ...numerics.randomness import generator
from ..evidence.coordinates import Coordinates
from ..evidence.student import Student
from ..weighted import Weighted
from .separating import meeting, separating
from .shapes import shapes_of

_DF = 5.0
"""Degrees of freedom of proposals: logarithms of standard deviations between few groups have long tails."""

_ROUNDS = (128, 128, 256, 2048, 2048)
"""Draws of each round; fewer, by powers of two, where more would cost too much, but not fewer than in the first."""

_WANTED, _ENOUGH, _AT_MOST = 1200.0, 150.0, 0.05
"""Effective draws at which the rounds end, and of which there have to be so many; the largest weight of these."""

_WIDER = 1.5
"""Of the first proposal: times the covariance of q."""

MOST_NUMBERS = 10
"""Of all globals that are integrated over."""

_OF_Q = 500
"""Draws of q that say where it is."""

_MOST_OPERATIONS = 1e8
"""Of all fits, about: a quarter of a second."""


@dataclass(frozen=True, eq=False)
class Integral:
    """Weighted values of some globals, and the moments of the others.

    Attributes
    ----------
    values
        Of the globals that are integrated over, by name, (n, plates..., event...).
    weights
        Of these, by name, (n,); they sum to one.
    shifts, sds
        What is added to the means of all entries of each other global in the fit, by name, (G,), and their standard
        deviations.
    shapes
        How far quantiles of these entries are from the means, by name, see :mod:`.shapes`; may be empty.
    """

    values: Mapping[str, Array]
    weights: Mapping[str, Array]
    shifts: Mapping[str, Array]
    sds: Mapping[str, Array]
    shapes: Mapping[str, Array] = field(default_factory=dict)

    def weighted(self, name: str) -> Weighted:
        """Return the values of a global with their weights."""
        return Weighted(self.values[name], self.weights[name])

    def beside(self, before: Mapping[str, Any], factors: Mapping[str, Any]) -> Integral:
        """Return the same with shifts from the means of other factors, in the place of those before."""
        moved = {
            name: own + means_of(before[name]) - means_of(factors[name]) for name, own in self.shifts.items()
        }
        return replace(self, shifts=moved)


def separating_of(
    problem: Problem, factors: Mapping[str, Any], *, most: float = MOST_NUMBERS, is_normal_apart: bool = True
) -> tuple[str, ...] | None:
    """Return the names of the fewest globals such that no two of the others meet.

    None if these have many numbers, and if all globals are Normal and meet no hidden variable: then linear response is
    exact.

    Parameters
    ----------
    problem
        Of the fit.
    factors
        Of the fit, by name.
    most
        Numbers of these globals.
    is_normal_apart
        Whether Normal globals do not meet each other, nor what the rows hide, either.
    """
    alone = [own for own in problem.order if not own.members]
    kinds = [transform for own in alone for transform in own.family.transforms]
    if not problem.factors and not any(own.constrains for own in kinds):
        return None
    rng, sizes = generator(0), {}
    for own in alone:
        factor = factors.get(own.name)
        if factor is not None and factor.learnt is factor and len(own.family.transforms) == 1:
            sizes[own.name] = Coordinates.of({own.name: factor}, {}, rng).size
    pairs = meeting(problem)
    if not is_normal_apart:
        pairs = frozenset(pair for pair in pairs if not pair <= _normal(problem))
    found = separating(pairs, sizes, most)
    return None if found is None else tuple(name for name in sizes if name in found)


def _normal(problem: Problem) -> frozenset[str]:
    """Return the names of globals that are Normal, also of those which share a factor."""
    return frozenset(
        own.name
        for own in problem.order
        if all(not kind.constrains for member in own.members or (own,) for kind in member.family.transforms)
    )


def of_light_tails(problem: Problem, names: Collection[str]) -> frozenset[str]:
    """Return the globals whose prior is known and has a finite variance, so that their posterior has one, too."""
    found = set()
    for own in problem.order:
        if (
            own.name not in names
            or problem.bound.is_flat(own)
            or any(isinstance(n, Variable) for n in own.parents)
        ):
            continue
        prior = own.family.from_natural(own_natural(problem, own, {}))
        sds = [part.sd for part in prior.entry_marginals((0.05, 0.95))]
        if all(sd is not None and np.isfinite(sd).all() for sd in sds):
            found.add(own.name)
    return frozenset(found)


def integral_of(
    factors: Mapping[str, Any], given: Given | GivenByRows, names: Collection[str]
) -> Integral | None:
    """Return the posterior integrated over some globals; None if that costs too much, or the weights are poor.

    Parameters
    ----------
    factors
        Of the fit, by name.
    given
        The fits in which these globals are known.
    names
        Of the globals to integrate over.
    """
    most = _MOST_OPERATIONS / given.operations
    if most < sum(_ROUNDS[:3]) or not given.is_available:
        return None
    rng = generator(0)
    chosen = {name: factors[name] for name in names}
    coordinates = _coordinates(chosen, rng)
    of_q = coordinates.vectors({name: own.sample(_OF_Q, rng) for name, own in chosen.items()})
    covariance = np.reshape(np.cov(of_q.T), (coordinates.size, coordinates.size))
    proposal = Student(of_q.mean(axis=0), _WIDER * covariance, _DF)
    draws = _Draws(coordinates, given)
    for number, wanted in enumerate(_ROUNDS):
        n = _power_of_two(min(wanted, most - draws.n))
        if n < _ROUNDS[0]:
            break
        draws.add(proposal, _spread(proposal, n, number))
        if draws.effective >= _WANTED:
            break
        proposal = proposal.moved(draws.vectors, draws.weights)
    if draws.effective < _ENOUGH or draws.weights.max() > _AT_MOST:
        return None
    return draws.integral(factors)


def _coordinates(factors: Mapping[str, Any], rng: np.random.Generator) -> Coordinates:
    """Return the coordinates of the globals to integrate over: of precision matrices spreads and correlations."""
    found = Coordinates.of(factors, {}, rng)
    pieces = [
        replace(piece, transform=SpreadsAndCorrelations()) if piece.transform.event_ndim == 2 else piece
        for piece in found.pieces
    ]
    return replace(found, pieces=tuple(pieces))


class _Draws:
    """Draws of several proposals, with the weights of draws of their mixture.

    Attributes
    ----------
    vectors, weights
        Shapes (n, d) and (n,); the weights sum to one.
    """

    def __init__(self, coordinates: Coordinates, given: Given | GivenByRows) -> None:
        self._coordinates, self._given = coordinates, given
        self._proposals: list[tuple[int, Student]] = []
        self._fits: list[Fits] = []
        self.vectors, self.weights = np.zeros((0, coordinates.size)), np.zeros(0)

    @property
    def n(self) -> int:
        """Number of draws."""
        return len(self.weights)

    @property
    def effective(self) -> float:
        """Effective number of draws."""
        return 1.0 / float(np.square(self.weights).sum())

    def add(self, proposal: Student, vectors: Array) -> None:
        """Add draws of a proposal, (n, d)."""
        values = self._coordinates.values(vectors)
        self._fits.append(self._given.at(self._given.statistics(values)))
        self._proposals.append((len(vectors), proposal))
        self.vectors = np.concatenate([self.vectors, vectors])
        shares = [np.log(n / len(self.vectors)) + own.log_density(self.vectors) for n, own in self._proposals]
        log_density = np.concatenate([own.log_density for own in self._fits])
        log_weights = log_density + self._coordinates.log_volume(self.vectors) - np.logaddexp.reduce(shares)
        weights = np.exp(log_weights - log_weights.max())
        self.weights = weights / weights.sum()

    def integral(self, factors: Mapping[str, Any]) -> Integral:
        """Return what the draws say of the globals of a fit, by name."""
        shifts, variances = {}, {}
        for name in self._fits[0].shifts:
            own = np.concatenate([each.shifts[name] for each in self._fits])
            sds = np.concatenate([each.sds[name] for each in self._fits])
            shifts[name] = self.weights @ own
            variances[name] = self.weights @ (sds**2 + (own - shifts[name]) ** 2)
        values = self._coordinates.values(self.vectors)
        weights = dict.fromkeys(values, self.weights)
        means = {name: means_of(factors[name]) for name in shifts}
        last = self._fits[-1]
        sds = {name: np.sqrt(own) for name, own in variances.items()}
        shapes = shapes_of(factors, last, self.weights[-len(last.log_density) :], means, sds)
        return Integral(values, weights, shifts, sds, shapes)


def means_of(factor: Any) -> Array:
    """Return the means of all entries of a factor, the parts of a joint one after the other, (G,)."""
    return np.concatenate([np.ravel(own.mean) for own in factor.entry_marginals((0.05, 0.95))])


def _power_of_two(n: float) -> int:
    """Return the largest power of two up to n; 0 below one."""
    return 1 << int(n).bit_length() - 1 if n >= 1 else 0


def _spread(proposal: Student, n: int, seed: int) -> Array:
    """Return evenly spread draws, (n, d)."""
    # scipy.stats takes as long to import as the rest of this library and what it needs
    from scipy.stats import qmc

    size = len(proposal.location)
    uniform = qmc.Sobol(size + 1, seed=generator(seed)).random(n).clip(1e-12, 1.0 - 1e-12)
    squares = 2.0 * gammaincinv(0.5 * proposal.df, uniform[:, -1])
    return proposal.at(ndtri(uniform[:, :-1]) / np.sqrt(squares / proposal.df)[:, None])
