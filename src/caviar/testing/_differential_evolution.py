r"""Markov chains that move along differences of each other: draws of a density known up to a constant.

Each chain proposes :math:`x + \gamma (a - b) + \epsilon` with two others a and b, in some of the coordinates; so the
proposals have the size and the correlations of the density itself, and nothing needs a derivative. Half of the chains
move at a time, all in one evaluation, along differences of the other half.

Sources: ter Braak, "A Markov chain Monte Carlo version of the genetic algorithm differential evolution" (Statistics and
Computing, 2006); Vrugt and others, "Accelerating Markov chain Monte Carlo simulation by differential evolution with
self-adaptive randomized subspace sampling" (2009), for the coordinates that move.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from caviar._typing import Array

__all__ = ["chains", "chains_for", "split_r_hat"]

_FEWEST, _PER_COORDINATE = 100, 6
"""Chains at least, and for each coordinate."""

_MOVED = (1.0, 0.5, 0.15)
"""Shares of the coordinates that a proposal moves."""

_SHORTER = (1.0, 0.5, 0.25)
"""Lengths of a move, beside the one that is best for a Gaussian."""

_WHOLE = 10
"""Every so many steps a move is a whole difference, which leads from one mode to another."""

_NOISE = 1e-5
"""Standard deviation of what is added to a move, so that no chain is left out of a direction."""

_BETWEEN = 10
"""Steps from one draw that is kept to the next."""


def chains_for(n_coordinates: int) -> int:
    """Return how many chains there are: an even number."""
    n_chains = max(_FEWEST, _PER_COORDINATE * n_coordinates)
    return n_chains + n_chains % 2


def chains(
    log_density: Callable[[Array], Array], start: Array, n_steps: int, rng: np.random.Generator
) -> Array:
    """Return draws of all chains after the first third of their steps, (kept, chains, coordinates).

    Parameters
    ----------
    log_density
        Of as many points as half of the chains, (n, coordinates), up to a constant; minus infinity where it is 0.
    start
        Where the chains begin, (chains, coordinates): an even number of points of a density above 0.
    n_steps
        Of each chain.
    rng
        Of all moves.
    """
    places, half = start.copy(), len(start) // 2
    heights = np.concatenate([log_density(places[:half]), log_density(places[half:])])
    kept = []
    for step in range(n_steps):
        for own, others in (slice(0, half), slice(half, None)), (slice(half, None), slice(0, half)):
            proposed = _proposed(places[own], places[others], rng, is_whole=step % _WHOLE == 0)
            found = log_density(proposed)
            is_taken = np.log(rng.random(half)) < found - heights[own]
            places[own][is_taken], heights[own][is_taken] = proposed[is_taken], found[is_taken]
        if step >= n_steps // 3 and step % _BETWEEN == 0:
            kept.append(places.copy())
    return np.array(kept)


def _proposed(own: Array, others: Array, rng: np.random.Generator, *, is_whole: bool) -> Array:
    """Return points that some chains propose, along differences of others."""
    n, size = own.shape
    first = rng.integers(0, n, n)
    second = (first + rng.integers(1, n, n)) % n
    is_moved = rng.random((n, size)) < rng.choice(_MOVED)
    is_moved[np.arange(n), rng.integers(0, size, n)] = True
    best = 2.38 / np.sqrt(2.0 * is_moved.sum(axis=1, keepdims=True))
    length = 1.0 if is_whole else best * rng.choice(_SHORTER)
    return own + is_moved * (length * (others[first] - others[second]) + _NOISE * rng.normal(size=own.shape))


def split_r_hat(draws: Array) -> Array:
    """Return how much wider all draws are together than each half of a chain, (coordinates,): 1 if they have mixed.

    Source: Gelman and others, *Bayesian Data Analysis* (2013), section 11.4.

    Parameters
    ----------
    draws
        Shape (draws of a chain, chains, coordinates), four of each chain at least.
    """
    n = len(draws) // 2
    halves = np.concatenate([draws[:n], draws[n : 2 * n]], axis=1)
    within = halves.var(axis=0, ddof=1).mean(axis=0)
    between = halves.mean(axis=0).var(axis=0, ddof=1)
    return np.sqrt((n - 1) / n + between / within)
