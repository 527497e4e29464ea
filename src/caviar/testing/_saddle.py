"""Saddle points: whether the ELBO of a fit rises when all its factors are moved a little."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from caviar._errors import CaviarError
from caviar.families import ExponentialFamily
from caviar.testing._stationarity import learnt, scales_of, with_learnt

_SIZES = (0.3, 0.1, 0.01)
"""Sizes of the moves, in standard deviations of the factors; smaller ones where the domain of a family ends."""


def rise_when_moved(
    posterior: Any, data: Mapping[str, Any], *, seed: int = 0, n_moves: int = 2, **arguments: Any
) -> float:
    """Return by how much fits that begin near a fit end higher, in nats: about 0 at a maximum, more at a saddle point.

    Every global factor that is a distribution is moved by about a third of its standard deviation, in a random
    direction. Point masses, and repetitions that are known, begin as they are.

    Parameters
    ----------
    posterior
        What was fitted.
    data
        As for the fit.
    seed
        Of the moves.
    n_moves
        How many are tried.
    **arguments
        Of the fit.
    """
    rng = np.random.default_rng(seed)
    kept = {name: value for name, value in arguments.items() if not name.startswith("checkpoint")}
    ends = [
        posterior.model.fit(data, **{**kept, "init": init, "n_restarts": 1, "seed": seed}).elbo
        for init in (dict(_moved(posterior, rng)) for _ in range(n_moves))
    ]
    return float(max(ends) - posterior.elbo)


def _moved(posterior: Any, rng: np.random.Generator) -> Iterator[tuple[str, Any]]:
    """Yield the name of each global and its factor moved a little."""
    for name in posterior:
        factor = learnt(posterior[name])
        is_distribution = isinstance(factor, ExponentialFamily)
        yield name, with_learnt(posterior[name], _near(factor, rng)) if is_distribution else posterior[name]


def _near(factor: ExponentialFamily, rng: np.random.Generator) -> ExponentialFamily:
    """Return a distribution of the same family at natural parameters near those of another."""
    directions = [scale * rng.standard_normal(scale.shape) for scale in scales_of(factor, rng)]
    shapes = factor.statistic_shapes(factor.event_shape)
    directions = [
        (d + np.swapaxes(d, -1, -2)) / 2 if len(shape) == 2 and shape[0] == shape[1] else d
        for d, shape in zip(directions, shapes, strict=True)
    ]
    length = np.sqrt(sum(d.size for d in directions) / max(np.prod(factor.batch_shape, dtype=int), 1))
    for size in _SIZES:
        pairs = zip(factor.natural, directions, strict=True)
        try:
            return type(factor).from_natural(tuple(eta + size / length * d for eta, d in pairs))
        except CaviarError:
            continue
    return factor
