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
from caviar.families.chains.recursions import linear_recursion

_ROWS = 4_096
"""Rows whose products of matrices are held at a time."""


class Blocks(NamedTuple):
    """The parts of a chain, or their D changes along a first axis.

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
    """Return the changes of the moments of the states for D changes.

    The chain itself is computed step by step; its changes are linear in each other and computed for many steps at once.
    """
    gain, inner, along = _eliminated(chain)
    mean, covariance = _smoothed(gain, inner, along)
    linear, diagonal, between = (np.moveaxis(own, 0, -1) for own in changes)
    turned = gain.swapaxes(1, 2)
    crossed = np.einsum("tkid,tkj->tijd", between, gain)
    precision = _squares(turned, diagonal + crossed + crossed.swapaxes(1, 2))
    d_inner = -np.einsum("tik,tkld,tlj->tijd", inner, precision, inner, optimize=True)
    met = between + np.einsum("tikd,tkj->tijd", _before(precision), gain)
    d_gain = -np.einsum("tik,tkjd->tijd", _before(inner), met)
    d_along = linear_recursion(turned, linear + np.einsum("tijd,ti->tjd", d_gain, _before(along)))
    # what each state has of the one after it
    ahead, d_ahead = _after(gain), _after(d_gain)
    own = np.einsum("tijd,tj->tid", d_inner, along) + np.einsum("tij,tjd->tid", inner, d_along)
    own += np.einsum("tijd,tj->tid", d_ahead, _after(mean))
    d_mean = linear_recursion(_reversed(gain), own[::-1])[::-1]
    spread = np.einsum("tikd,tkl,tjl->tijd", d_ahead, _after(covariance), ahead, optimize=True)
    d_covariance = _squares(_reversed(gain), (d_inner + spread + spread.swapaxes(1, 2))[::-1])[::-1]
    d_pairs = np.einsum("tikd,tkj->tijd", d_gain, covariance) + np.einsum(
        "tik,tkjd->tijd", gain, d_covariance
    )
    before, d_before = _before(mean), _before(d_mean)
    d_pairs += d_before[:, :, None] * mean[:, None, :, None] + before[:, :, None, None] * d_mean[:, None]
    products = d_mean[:, :, None] * mean[:, None, :, None]
    found = (d_mean, d_covariance + products + products.swapaxes(1, 2), d_pairs)
    return MomentsResponse(*(np.moveaxis(own, -1, 0) for own in found))


def _reversed(gain: Array) -> Array:
    """Return the gains from each state to the one before it, the last row first."""
    return np.concatenate([np.zeros_like(gain[:1]), gain[:0:-1]])


def _eliminated(chain: Blocks) -> tuple[Array, Array, Array]:
    """Return G, P and z of each row, one after another."""
    gain, inner, along = np.zeros(chain.diagonal.shape), np.zeros(chain.diagonal.shape), chain.linear.copy()
    for t, (diagonal, between) in enumerate(zip(chain.diagonal, chain.between, strict=True)):
        precision = diagonal
        if t:
            gain[t] = -inner[t - 1] @ between
            precision = diagonal + between.T @ gain[t]
            along[t] += gain[t].T @ along[t - 1]
        inner[t] = np.linalg.inv(precision)
    return gain, inner, along


def _smoothed(gain: Array, inner: Array, along: Array) -> tuple[Array, Array]:
    """Return mean and covariance of each state."""
    mean, covariance = np.einsum("tij,tj->ti", inner, along), inner.copy()
    for t in range(len(gain) - 1, 0, -1):
        covariance[t - 1] += gain[t] @ covariance[t] @ gain[t].T
        mean[t - 1] += gain[t] @ mean[t]
    return mean, covariance


def _squares(matrices: Array, inputs: Array) -> Array:
    """Return X with X_t = M_t X_(t-1) M_t' + V_t for matrices X (N, S, S, D), some rows after another."""
    n_rows, size, _, n_columns = inputs.shape
    found = inputs.reshape(n_rows, size * size, n_columns).copy()
    for start in range(0, n_rows, _ROWS):
        own = matrices[start : start + _ROWS]
        both = np.einsum("tik,tjl->tijkl", own, own).reshape(len(own), size * size, size * size)
        if start:
            found[start] += both[0] @ found[start - 1]
        found[start : start + _ROWS] = linear_recursion(both, found[start : start + _ROWS])
    return found.reshape(inputs.shape)


def _before(array: Array) -> Array:
    """Return for each row the value of the row before it; zeros for the first."""
    return np.concatenate([np.zeros_like(array[:1]), array[:-1]])


def _after(array: Array) -> Array:
    """Return for each row the value of the row after it; zeros for the last."""
    return np.concatenate([array[1:], np.zeros_like(array[:1])])
