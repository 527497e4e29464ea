"""How the expected statistics of a shared Gaussian factor respond to its natural parameters."""

from __future__ import annotations

import numpy as np

from caviar._typing import Statistics
from caviar.families.shared.coupled_normals import CoupledNormals
from caviar.families.shared.known_numbers import given_known


def responded(factor: CoupledNormals, change: Statistics) -> Statistics:
    r"""Return by how much the expected statistics change with the natural parameters: V times the change.

    With :math:`\Sigma = P^{-1}` the means change by :math:`\Sigma (dh - dP\, m)` and the covariances by
    :math:`-\Sigma\, dP\, \Sigma`, of which only the entries at the pairs of the layout are formed.

    Parameters
    ----------
    factor
        With the precision in its own layout.
    change
        In the order and shapes of the statistics.
    """
    layout, arrow, mean = factor.layout, factor.precision, factor.mean_of_all
    if factor.known is not None:
        change = given_known(layout, change, factor.known, mean)
    members, n_own = layout.members, 2 * len(layout.members)
    linear = np.concatenate(
        [np.broadcast_to(change[2 * k], layout.shapes[2 * k]).ravel() for k in range(len(members))]
    )
    blocks = [
        -2.0 * np.broadcast_to(change[2 * k + 1], layout.shapes[2 * k + 1]).reshape(*own.part, own.part[1])
        for k, own in enumerate(members)
    ]
    entries = [
        -np.broadcast_to(own, cross.shape).ravel()
        for own, cross in zip(change[n_own:], layout.crosses, strict=True)
    ]
    moved = arrow.solve(linear - arrow.pattern.times(blocks, entries, mean))
    spread, between = arrow.inverse_change(blocks, entries)
    found = []
    for k, own in enumerate(members):
        place = layout.place(k)
        m, d = mean[place].reshape(own.part), moved[place].reshape(own.part)
        products = m[:, :, None] * d[:, None, :]
        square = spread[k] + products + products.swapaxes(1, 2)
        found += [d.reshape(layout.shapes[2 * k]), square.reshape(layout.shapes[2 * k + 1])]
    for (i, j), cross, own in zip(layout.pattern.pairs, layout.crosses, between, strict=True):
        found.append((own + mean[i] * moved[j] + mean[j] * moved[i]).reshape(cross.shape))
    return tuple(found)
