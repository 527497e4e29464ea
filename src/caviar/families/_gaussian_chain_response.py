r"""How the states of a linear Gaussian chain respond to changes of its precision and of its linear terms.

The states have a precision of blocks :math:`J_t` on the diagonal and :math:`O_t` between t - 1 and t. Given the state
after it, a state is Normal about :math:`G_t s_t + P_{t-1} z_{t-1}` with covariance :math:`P_{t-1}`,

.. math::
    P_t^{-1} = J_t + O_t' G_t, \quad G_t = -P_{t-1} O_t, \quad z_t = h_t + G_t' z_{t-1}, \quad
    C_{t-1} = P_{t-1} + G_t C_t G_t', \quad C_{t-1, t} = G_t C_t,

and the response is the derivative of each of these lines.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from caviar._typing import Array


class Blocks(NamedTuple):
    """What a chain is made of, or its D changes, which have an axis of their own first.

    Attributes
    ----------
    linear
        :math:`h_t`, (N, S).
    diagonal
        :math:`J_t`, (N, S, S).
    between
        :math:`O_t`, (N, S, S): zero where a sequence begins.
    """

    linear: Array
    diagonal: Array
    between: Array


class MomentsResponse(NamedTuple):
    """Changes of the moments of the states.

    Attributes
    ----------
    mean
        (D, N, S).
    second
        Of <s_t s_t'>, (D, N, S, S).
    pairs
        Of <s_{t-1} s_t'>, (D, N, S, S).
    """

    mean: Array
    second: Array
    pairs: Array


def response_of_gaussian_chain(chain: Blocks, changes: Blocks) -> MomentsResponse:
    """Return how the moments of the states respond to D changes; O(N) steps, one after another."""
    n_rows, n_changes = len(chain.linear), len(changes.linear)
    gain, inner, along = (np.zeros(chain.diagonal.shape), np.zeros(chain.diagonal.shape), chain.linear.copy())
    d_gain, d_inner = np.zeros(changes.diagonal.shape), np.zeros(changes.diagonal.shape)
    d_along = changes.linear.copy()
    precision, d_precision = chain.diagonal[0], changes.diagonal[:, 0]
    for t in range(n_rows):
        if t:
            own, moved = chain.between[t], changes.between[:, t]
            gain[t] = -inner[t - 1] @ own
            d_gain[:, t] = -inner[t - 1] @ (moved + d_precision @ gain[t])
            crossed = moved.swapaxes(-1, -2) @ gain[t]
            carried = gain[t].T @ d_precision @ gain[t]
            precision = chain.diagonal[t] + own.T @ gain[t]
            d_precision = changes.diagonal[:, t] + crossed + crossed.swapaxes(-1, -2) + carried
            along[t] += gain[t].T @ along[t - 1]
            d_along[:, t] += along[t - 1] @ d_gain[:, t] + d_along[:, t - 1] @ gain[t]
        inner[t] = np.linalg.inv(precision)
        d_inner[:, t] = -inner[t] @ d_precision @ inner[t]
    mean = np.einsum("tij,tj->ti", inner, along)
    d_mean = np.einsum("dtij,tj->dti", d_inner, along) + np.einsum("tij,dtj->dti", inner, d_along)
    covariance, d_covariance = inner.copy(), d_inner.copy()
    d_pairs = np.zeros((n_changes, *chain.between.shape))
    for t in range(n_rows - 1, 0, -1):
        g, dg, c, dc = gain[t], d_gain[:, t], covariance[t], d_covariance[:, t]
        d_pairs[:, t] = dg @ c + g @ dc
        covariance[t - 1] += g @ c @ g.T
        turned = dg @ c @ g.T
        d_covariance[:, t - 1] += turned + turned.swapaxes(-1, -2) + g @ dc @ g.T
        d_mean[:, t - 1] += dg @ mean[t] + d_mean[:, t] @ g.T
        mean[t - 1] += g @ mean[t]
    products = d_mean[..., :, None] * mean[:, None, :]
    d_pairs[:, 1:] += (
        d_mean[:, :-1, :, None] * mean[1:, None, :] + mean[:-1, :, None] * d_mean[:, 1:, None, :]
    )
    return MomentsResponse(d_mean, d_covariance + products + products.swapaxes(-1, -2), d_pairs)
