"""Derivatives of the ELBO in the natural parameters of its factors, for the claim that a fit ends at a fixed point."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from caviar._errors import CaviarError
from caviar._typing import Array
from caviar.families import Categorical, ExponentialFamily
from caviar.families.base.sparse_vectors import SparseVector
from caviar.families.shared.shared_factor import SharedFactor
from caviar.testing._gradients import numerical_gradient

if TYPE_CHECKING:
    from caviar.posterior.posterior import Posterior


_SMALLEST_SHARE = 0.1
"""Probability of an entry of a vector with zeros by which its steps are measured, at least."""

_STEP = 0.01
_DRAWN, _FEWEST_DRAWN = 400, 12
"""Draws for the spread of a statistic, and in how many of them it is not 0 at least; what is rarer is not moved."""
_SMALLEST_SPREAD = 0.03
"""Smallest spread of a category: a step in its logit is then at most a third of a nat."""


def elbo_slopes(
    posterior: Posterior,
    data: Mapping[str, Any],
    *,
    n_directions: int = 40,
    seed: int | np.random.Generator = 0,
) -> dict[str, float]:
    r"""Return the largest slope of the ELBO in the natural parameters of each global factor, by name.

    Natural parameter :math:`\eta_i` is moved in units of :math:`1 / \mathrm{sd}_q(t_i)`, in which the factor's own
    curvature is 1: a slope of s says that the optimum lies about s standard deviations of the factor away. Point
    masses, and repetitions that are known, have no natural parameters and are left out.

    Parameters
    ----------
    posterior
        Posterior of the fit.
    data
        As for the fit.
    n_directions
        Largest number of directions for each factor. If it is at least the number of natural parameters, each of
        these is one direction; otherwise directions are random.
    seed
        Seed of the random directions.
    """
    rng = np.random.default_rng(seed)
    factors, elbo_at = posterior._independent, posterior._objective(data)
    return {
        name: max(
            (
                _slope(elbo_at, name, factor, direction)
                for direction in _directions(learnt(factor), n_directions, rng)
            ),
            default=0.0,
        )
        for name, factor in factors.items()
        if isinstance(learnt(factor), ExponentialFamily | SharedFactor)
    }


def learnt(factor: Any) -> Any:
    """Return the learnt distribution; for a partly known factor, that of its unknown repetitions."""
    return getattr(factor, "unknown", factor)


def with_learnt(factor: Any, learnt: ExponentialFamily) -> Any:
    """Return a factor with another learnt distribution."""
    return replace(factor, unknown=learnt) if hasattr(factor, "unknown") else learnt


def _slope(
    elbo_at: Callable[[Mapping[str, Any]], float], name: str, whole: Any, direction: tuple[Array, ...]
) -> float:
    """Return the size of the derivative along a direction of a factor, with smaller steps where the domain ends."""
    factor = learnt(whole)

    def objective(step: Array) -> float:
        natural = tuple(n + float(step) * d for n, d in zip(factor.natural, direction, strict=True))
        return elbo_at({name: with_learnt(whole, _of_natural(factor, natural))})

    for step in (_STEP, _STEP / 30, _STEP / 1000):
        try:
            return abs(float(numerical_gradient(objective, 0.0, relative_step=step, n_halvings=1).value))
        except CaviarError:
            continue
    return float("nan")


def _of_natural(factor: Any, natural: tuple[Array, ...]) -> Any:
    """Return the factor with other natural parameters; a shared one has the same layout."""
    kind = factor.family if isinstance(factor, SharedFactor) else type(factor)
    return kind.from_natural(natural)


def _directions(factor: Any, n_directions: int, rng: np.random.Generator) -> Iterator[tuple[Array, ...]]:
    """Yield directions of unit length in the scale of each natural parameter."""
    scales = scales_of(factor, rng)
    is_shared = isinstance(factor, SharedFactor)
    shapes = (
        [eta.shape[1:] for eta in factor.natural]
        if is_shared
        else factor.statistic_shapes(factor.event_shape)
    )
    # of two axes a statistic may also have plate and vector, as several locations have
    square = [
        len(shape) == 2 and shape[0] == shape[1] and np.allclose(eta, np.swapaxes(eta, -1, -2))
        for shape, eta in zip(shapes, factor.natural, strict=True)
    ]
    entries = [
        (number, index)
        for number, scale in enumerate(scales)
        for index in np.ndindex(scale.shape)
        if scale[index] > 0 and not (square[number] and index[-1] > index[-2])
    ]
    everyone = len(entries) <= n_directions
    for k in range(len(entries) if everyone else n_directions):
        moves = [np.zeros(scale.shape) for scale in scales]
        if everyone:
            number, index = entries[k]
            moves[number][index] = scales[number][index]
        else:
            moves = [scale * rng.standard_normal(scale.shape) / np.sqrt(len(entries)) for scale in scales]
        yield tuple((m + np.swapaxes(m, -1, -2)) / 2 if s else m for m, s in zip(moves, square, strict=True))


def scales_of(factor: Any, rng: np.random.Generator) -> list[Array]:
    """Return the inverse standard deviation of each sufficient statistic, 0 where it does not vary or is known."""
    if isinstance(factor, Categorical):
        # an improbable category hardly varies, and a step of that length would be no small one
        spreads = [np.maximum(np.sqrt(factor.variance), _SMALLEST_SPREAD) * (factor.variance > 0)]
    elif isinstance(factor, SparseVector):
        spreads = _spreads_of_entries(factor)
    else:
        spreads = [_spread(statistic) for statistic in _drawn_statistics(factor, _DRAWN, rng)]
    scales = []
    for spread, natural in zip(spreads, factor.natural, strict=True):
        varies = np.isfinite(spread) & (spread > 0) & np.isfinite(natural)
        scales.append(np.where(varies, 1 / np.where(varies, spread, 1.0), 0.0))
    are_learnt = factor.family.learnt_entries() if isinstance(factor, SharedFactor) else None
    if are_learnt is not None:
        # what known numbers say of the others is in the natural parameters of these
        scales = [np.where(own, scale, 0.0) for own, scale in zip(are_learnt, scales, strict=True)]
    return scales


def _spread(draws: Array) -> Array:
    """Return the standard deviation of draws; 0 where they differ by rounding, as those of a point of a bound.

    It is 0 as well of what a category gates that is hardly drawn: of few draws it may be near 0 by chance.
    """
    spread, is_there = draws.std(axis=0), (draws != 0).sum(axis=0) >= _FEWEST_DRAWN
    return np.where(is_there & (spread > 1e-12 * np.abs(draws).max(axis=0)), spread, 0.0)


def _spreads_of_entries(factor: SparseVector) -> list[Array]:
    """Return about how much the statistics of entries vary, of an improbable one as if it were less so."""
    rare = np.maximum(np.minimum(factor.inclusion, 1.0 - factor.inclusion), _SMALLEST_SHARE)
    m, v = factor.slab_mean, 1.0 / factor.slab_precision
    second, fourth = m**2 + v, m**4 + 6.0 * m**2 * v + 3.0 * v**2
    return [np.sqrt(rare), np.sqrt(rare * second), np.sqrt(rare * fourth)]


def _drawn_statistics(factor: Any, n_draws: int, rng: np.random.Generator) -> tuple[Array, ...]:
    """Return the statistics of draws, these first."""
    draws = factor.sample(n_draws, rng)
    if not isinstance(factor, SharedFactor):
        return type(factor).statistics_of(draws)
    one_by_one = (
        factor.family.statistics_of({name: own[draw] for name, own in draws.items()})
        for draw in range(n_draws)
    )
    return tuple(np.stack(own) for own in zip(*one_by_one, strict=True))
