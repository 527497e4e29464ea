"""The Bayesian Gaussian mixture in BayesPy (0.6.6), another library for the same mean-field updates.

What one has to know to run it beside other code:

- It imports and runs under NumPy 2 with every warning an error; nothing is patched or silenced here.
- Its ``Wishart(n, V)`` takes the *inverse* scale V, as here, whatever its parameter list calls it.
- A start is set with ``node.initialize_from_parameters``, which takes what the node's constructor takes:
  mean and *precision* for a Gaussian. Responsibilities so given must be > 0, for it takes their logarithm.
- ``VB.update`` stops by itself once the bound changes by less than 1e-5 of its size, and opens a scratch
  file; the nodes' own ``update`` and ``lower_bound_contribution`` do neither, so they are called here.
- A node is updated from the moments its neighbours have at that moment, so that the order of the calls is
  the order of the sweep.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from bayespy.nodes import Categorical, Dirichlet, Gaussian, Mixture, Wishart

from caviar._typing import Array
from oracles.reference.bayesian_mixture import ORDER, Factors, Prior


@dataclass(frozen=True)
class Run:
    """The bound after each sweep, and the factors after the last."""

    bounds: list[float]
    factors: Factors


def run(x: Array, prior: Prior, start: Factors, n_sweeps: int, order: Sequence[str] = ORDER) -> Run:
    """Sweep from the given factors; one updated before it is read may hold anything (responsibilities > 0)."""
    nodes = _model(x, prior)
    _initialise(nodes, start)
    bounds = []
    for _ in range(n_sweeps):
        for factor in order:
            nodes[factor].update()
        bounds.append(float(sum(node.lower_bound_contribution() for node in nodes.values())))
    return Run(bounds, _factors(nodes, start))


def bound(x: Array, prior: Prior, factors: Factors) -> float:
    """Return BayesPy's lower bound of the given factors as they are; responsibilities must be > 0."""
    return run(x, prior, factors, n_sweeps=1, order=()).bounds[0]


def _model(x: Array, prior: Prior) -> dict[str, Any]:
    k = len(prior.concentration)
    weights = Dirichlet(prior.concentration, name="weights")
    labels = Categorical(weights, plates=(len(x),), name="responsibilities")
    means = Gaussian(prior.mean, np.linalg.inv(prior.covariance), plates=(k,), name="means")
    precisions = Wishart(prior.df, prior.inverse_scale, plates=(k,), name="precisions")
    rows = Mixture(labels, Gaussian, means, precisions, name="x")
    rows.observe(x)
    return {
        "x": rows,
        "responsibilities": labels,
        "means": means,
        "precisions": precisions,
        "weights": weights,
    }


def _initialise(nodes: dict[str, Any], start: Factors) -> None:
    nodes["weights"].initialize_from_parameters(start.concentration)
    nodes["means"].initialize_from_parameters(start.means, np.linalg.inv(start.covariances))
    nodes["precisions"].initialize_from_parameters(start.dfs, start.inverse_scales)
    nodes["responsibilities"].initialize_from_parameters(start.responsibilities)


def _factors(nodes: dict[str, Any], like: Factors) -> Factors:
    """Read the natural parameters: their moments would cost digits in the covariances."""
    shifted, minus_half_precision = nodes["means"].phi
    covariances = np.linalg.inv(-2 * minus_half_precision)
    minus_half_scale, half_df = nodes["precisions"].phi
    return Factors(
        responsibilities=np.array(nodes["responsibilities"].get_moments()[0]),
        concentration=np.array(nodes["weights"].phi[0]),
        means=np.einsum("kij,kj->ki", covariances, shifted),
        covariances=np.broadcast_to(covariances, like.covariances.shape),
        dfs=np.broadcast_to(2 * half_df, like.dfs.shape),
        inverse_scales=np.broadcast_to(-2 * minus_half_scale, like.inverse_scales.shape),
    )
