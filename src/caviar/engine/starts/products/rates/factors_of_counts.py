r"""Factors of counts: a table of Poisson counts whose rates are of low rank, with Gamma priors of both sides.

.. math:: x_{lr} \sim \mathrm{Poi}\Bigl(e_{lr} \sum_k u_{lk} v_{rk}\Bigr), \qquad
          u_{lk} \sim \mathrm{Gamma}(a, b), \quad v_{rk} \sim \mathrm{Gamma}(c, d)

Coordinate ascent from a draw ends far too low if shapes are small: the first updates leave next to nothing of whatever
is not the largest part of a count. The likelihood has many maxima, too, but better ones: so it is climbed from several
draws, by multiplicative updates, with up to as many components as there are. From each end, coordinate ascent goes on
for some iterations, and the ELBO tells which is best. In this small form all of it is as fast as some iterations of a
fit.

Sources: Lee and Seung, "Algorithms for non-negative matrix factorization" (NIPS 2000), for the multiplicative updates;
Cemgil, "Bayesian inference for nonnegative matrix factorisation models" (2009), for the ascent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.special import digamma, gammaln, xlogy

from ....._typing import Array

_DRAWS, _FEWER = 20, 4
"""Draws from which the likelihood is climbed for all components at the most, and how many times fewer for others."""

_FEWEST_DRAWS = 2

_NUMBERS = 5e8
"""Numbers that all updates go through, of large tables: fewer draws are climbed."""

_UPDATES, _BETWEEN, _SETTLED = 100, 10, 1e-6
"""Updates of each at the most, those between two looks at the likelihood, and the relative gain that ends them."""

_EACH, _STEP = 6, 1.5
"""Components up to which each smaller number of them is tried; of more the next is that many times fewer."""

_DENSE = 0.05
"""Share of the counts that are not zero from which on they are an array."""

_SAME = 1e-6
"""Share of a bound by which ends may differ that count as the same."""

_SWEEPS = 50
"""Iterations of the ascent that follow."""

_LEAST = 1e-3
"""Of its mean, below which no entry begins: at 0 it would stay there."""


class GammaPrior(NamedTuple):
    """The prior of one side; its rate is None where that is learnt."""

    shape: float
    rate: float | None


class GammaFactor(NamedTuple):
    """Gammas (n, K): shapes and rates, means, and the exponentials of mean logarithms."""

    shape: Array
    rate: Array
    mean: Array
    geometric: Array

    @classmethod
    def of(cls, shape: Array, rate: Array) -> GammaFactor:
        """Return the Gammas with these shapes and rates."""
        return cls(shape, rate, shape / rate, np.exp(digamma(shape)) / rate)

    @classmethod
    def at(cls, values: Array) -> GammaFactor:
        """Return what begins at values; it has no shapes."""
        return cls(values, np.ones(values.shape), values, values)

    def bound_about(self, prior: GammaPrior) -> float:
        """Return minus their divergence from the prior, of which a learnt rate is the best one."""
        shape, rate = prior.shape, prior.rate or prior.shape / max(float(self.mean.mean()), _TINY)
        own = shape * np.log(rate) - gammaln(shape) + (shape - self.shape) * np.log(self.geometric)
        own += gammaln(self.shape) - self.shape * np.log(self.rate) + self.shape - rate * self.mean
        return float(own.sum())


_TINY = np.finfo(float).tiny


@dataclass(frozen=True, eq=False)
class Counts:
    """Counts of each repetition of one side with each of the other.

    Attributes
    ----------
    table
        The counts (n, m), an array or a sparse matrix without zeros.
    exposure
        By what the rates are multiplied there in all, (n, m): 0 where nothing was seen.
    """

    table: Array | csr_array
    exposure: Array

    @classmethod
    def of(cls, table: csr_array, exposure: Array) -> Counts:
        """Return the counts as an array where few of them are zero: a product of arrays takes less time there."""
        return cls(table.toarray() if table.nnz > _DENSE * exposure.size else table, exposure)

    def over_rates(self, scores: Array, loadings: Array) -> Any:
        """Return the counts over their rates, as the table is."""
        return self._like(_divided(self._values, self._rates(scores, loadings)))

    def logarithms(self, scores: Array, loadings: Array) -> float:
        """Return the sum of the counts times the logarithms of their rates."""
        return float(xlogy(self._values, self._rates(scores, loadings)).sum())

    @property
    def _values(self) -> Array:
        return self.table if isinstance(self.table, np.ndarray) else self.table.data

    def _like(self, values: Array) -> Any:
        if isinstance(self.table, np.ndarray):
            return values
        return csr_array((values, self.table.indices, self.table.indptr), shape=self.table.shape)

    def _rates(self, scores: Array, loadings: Array) -> Array:
        """Return the rates where there are counts."""
        if isinstance(self.table, np.ndarray):
            return scores @ loadings.T
        rows = np.repeat(np.arange(len(scores)), np.diff(self.table.indptr))
        return np.einsum("ek,ek->e", scores[rows], loadings[self.table.indices])


def factors_of_counts(
    counts: Counts, priors: Sequence[GammaPrior], size: int, rng: np.random.Generator, n_draws: int = _DRAWS
) -> tuple[GammaFactor, GammaFactor]:
    """Return factors of both sides at which the ELBO is highest among the ends of several ascents.

    Parameters
    ----------
    priors
        Of both sides.
    size
        Components K.
    n_draws
        Draws to begin from, at the most; of large tables there are fewer.
    """
    best: tuple[GammaFactor, GammaFactor] | None = None
    highest = -np.inf
    for rank in _ranks(counts, size, n_draws):
        found, bound = _settled(counts, priors, _padded(_climbed(counts, rank, rng), size, priors))
        # many ascents end at the same place, with components in another order: the first of these is kept
        if best is None or bound > highest + _SAME * abs(highest):
            best, highest = found, bound
    assert best is not None
    return best


def _ranks(counts: Counts, size: int, n_draws: int) -> Iterator[int]:
    """Yield the components of each ascent: all of them mostly, and ever fewer."""
    affordable = int(_NUMBERS / (_UPDATES * size * counts.exposure.size))
    each = min(n_draws, max(_FEWEST_DRAWS, affordable))
    rank = size
    while rank:
        yield from [rank] * (each if rank == size else max(1, each // _FEWER))
        rank = rank - 1 if rank <= _EACH else int(rank / _STEP)


def _climbed(counts: Counts, size: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return scores (n, K) and loadings (m, K) whose likelihood no update raises by much, from a draw."""
    exposure, before = counts.exposure, -np.inf
    scores, loadings = (rng.exponential(size=(n, size)) for n in exposure.shape)
    for number in range(1, _UPDATES + 1):
        scores *= _divided(counts.over_rates(scores, loadings) @ loadings, exposure @ loadings)
        looked_at = exposure.T @ scores
        loadings *= _divided(counts.over_rates(scores, loadings).T @ scores, looked_at)
        if number % _BETWEEN == 0:
            reached = counts.logarithms(scores, loadings) - float((loadings * looked_at).sum())
            if reached - before < _SETTLED * abs(reached):
                break
            before = reached
    return scores, loadings


def _padded(rates: tuple[Array, Array], size: int, priors: Sequence[GammaPrior]) -> tuple[Array, Array]:
    """Return scores and loadings of all components, each as large on both sides as their priors are, if known.

    Components that are left over have next to nothing.
    """
    means = [np.maximum(own.mean(axis=0), _TINY) for own in rates]
    one, other = (None if prior.rate is None else prior.shape / prior.rate for prior in priors)
    both = means[0] * means[1]
    if one and other:
        first = np.sqrt(both * one / other)
    elif other:
        first = both / other
    else:
        first = np.full(len(both), one) if one else np.sqrt(both)
    found = []
    for own, mean, width in zip(rates, means, (first, both / first), strict=True):
        left = np.full((len(own), size - len(width)), _LEAST * width.mean())
        found.append(np.concatenate([np.maximum(own / mean, _LEAST) * width, left], axis=1))
    return found[0], found[1]


def _settled(
    counts: Counts, priors: Sequence[GammaPrior], rates: tuple[Array, Array]
) -> tuple[tuple[GammaFactor, GammaFactor], float]:
    """Return factors of both sides after some iterations of coordinate ascent, and their ELBO up to a constant."""
    (one, other), exposure = (GammaFactor.at(own) for own in rates), counts.exposure
    for _ in range(_SWEEPS):
        shares = counts.over_rates(one.geometric, other.geometric) @ other.geometric
        one = _updated(one.geometric * shares, exposure @ other.mean, priors[0])
        shares = counts.over_rates(one.geometric, other.geometric).T @ one.geometric
        other = _updated(other.geometric * shares, exposure.T @ one.mean, priors[1])
    expected = float(((exposure @ other.mean) * one.mean).sum())
    bound = counts.logarithms(one.geometric, other.geometric) - expected
    return (one, other), bound + one.bound_about(priors[0]) + other.bound_about(priors[1])


def _updated(shared: Array, looked_at: Array, prior: GammaPrior) -> GammaFactor:
    """Return the factor of one side given what it has of the counts, and by how much its rates are multiplied."""
    shape = prior.shape + shared
    if prior.rate is not None:
        return GammaFactor.of(shape, prior.rate + looked_at)
    mean = float((shape / np.maximum(looked_at, _TINY)).mean())
    return GammaFactor.of(shape, prior.shape / max(mean, _TINY) + looked_at)


def _divided(sums: Array, weights: Array) -> Array:
    return np.divide(sums, weights, out=np.zeros(np.shape(sums)), where=weights > 0)
