"""Compiled loops over the steps of hidden sequences with few states; they need numba, the extra ``caviar[compiled]``.

Each sequence is gone through twice, forward and backward, and every sum is taken on the way. States are padded by zeros
to a multiple of four, so that loops over them have no rest.
"""

from __future__ import annotations

import math
from importlib import import_module
from typing import Any

import numpy as np

from caviar._typing import AnyArray, Array
from caviar.families.chains.compiled_exponentials import exponentials

numba: Any = import_module("numba")

_LANES = 4
_ANY_ORDER = {"reassoc", "contract", "nsz"}
"""Sums may be taken in any order, as BLAS does."""

_TILE = 1_024
"""Rows whose logits are looked at together."""

_STEPS_A_SCALE = 4
"""Steps after which messages are scaled: no step waits for the sum of each."""

_SMALL = 1e-150
"""Product of scales whose logarithm is taken before it underflows."""


def padded(matrix: Array) -> Array:
    """Return a matrix with zeros behind its last axis, to a multiple of the lanes."""
    n = matrix.shape[-1]
    return np.pad(matrix, [*[(0, 0)] * (matrix.ndim - 1), (0, -n % _LANES)])


@numba.njit(nogil=True, cache=True, fastmath={"contract"})
def _exponentials(logits: Array, weights: Array, likelihood: Array, largest: Array) -> float:
    """Write exponentials of logits less the largest of each row, (K, N), and these; return their weighted sum.

    NaN if a row has no finite largest one, or what is not a number.
    """
    n_states, n_rows = logits.shape
    total = 0.0
    for start in range(0, n_rows, _TILE):
        stop = min(start + _TILE, n_rows)
        top = largest[start:stop]
        for k in range(n_states):
            own = logits[k, start:stop]
            for t in range(stop - start):
                top[t] = max(top[t], own[t]) if k else own[t]
        for t in range(stop - start):
            total += weights[start + t] * top[t]
        for k in range(n_states):
            own, out, lowest, is_number = logits[k, start:stop], likelihood[k, start:stop], 0.0, True
            for t in range(stop - start):
                value = own[t] - top[t]
                out[t] = value
                lowest = min(lowest, value)
                is_number &= value == value
            if not is_number:
                return np.nan
            exponentials(out)
            if lowest == -np.inf:
                for t in range(stop - start):
                    if own[t] == -np.inf:
                        out[t] = 0.0
    return total


@numba.njit(nogil=True, cache=True, fastmath=_ANY_ORDER, inline="always")
def _product(vector: Array, matrix: Array, out: Array) -> None:
    """Write a vector times a matrix (K, P)."""
    for lanes in range(matrix.shape[1] // _LANES):
        k = _LANES * lanes
        a = b = c = d = 0.0
        for j in range(len(matrix)):
            own = vector[j]
            a += own * matrix[j, k]
            b += own * matrix[j, k + 1]
            c += own * matrix[j, k + 2]
            d += own * matrix[j, k + 3]
        out[k], out[k + 1], out[k + 2], out[k + 3] = a, b, c, d


@numba.njit(nogil=True, cache=True, fastmath=_ANY_ORDER)
def _forward(
    likelihood: Array, start: int, stop: int, initial: Array, transition: Array, least: float, forward: Array
) -> float:
    """Write the messages of a sequence, (N, P + 1), and return the log of the product of their scales.

    A message has the sum one in some of the steps, and in the last; its last number is one over its scale. NaN if a
    scale is not above ``least``.
    """
    n_states, n_padded = len(likelihood), len(initial)
    product, log_scale = 1.0, 0.0
    for t in range(start, stop):
        out = forward[t, :n_padded]
        if t == start:
            for k in range(n_padded):
                out[k] = initial[k]
        else:
            _product(forward[t - 1], transition, out)
        for k in range(n_states):
            out[k] *= likelihood[k, t]
        forward[t, n_padded] = 1.0
        if (t - start) % _STEPS_A_SCALE and t < stop - 1:
            continue
        scale = 0.0
        for k in range(n_padded):
            scale += out[k]
        if not scale > least:
            return np.nan
        own = 1.0 / scale
        for k in range(n_padded):
            out[k] *= own
        forward[t, n_padded] = own
        product *= scale
        if product < _SMALL:
            log_scale += math.log(product)
            product = 1.0
    return log_scale + math.log(product)


@numba.njit(nogil=True, cache=True, fastmath=_ANY_ORDER)
def _backward(
    likelihood: Array,
    start: int,
    stop: int,
    forward: Array,
    returning: Array,
    most: float,
    marginals: Array,
    pairs: Array,
) -> bool:
    """Write the marginals of a sequence, (K, N), and add to its pairs, (K, P).

    Return whether all messages are below ``most``.
    """
    n_states, n_padded = len(likelihood), returning.shape[1]
    message, onward = np.ones(n_padded), np.zeros(n_padded)
    for t in range(stop - 1, start - 1, -1):
        own, largest = forward[t], 0.0
        for k in range(n_states):
            marginals[k, t] = own[k] * message[k]
            onward[k] = message[k] * likelihood[k, t] * own[n_padded]
            largest = max(largest, message[k])
        if not largest < most:
            return False
        if t == start:
            break
        before = forward[t - 1]
        for j in range(n_states):
            share, row = before[j], pairs[j]
            for k in range(n_padded):
                row[k] += share * onward[k]
        _product(onward, returning, message)
    return True


@numba.njit(nogil=True, cache=True, fastmath=_ANY_ORDER)
def _expected(logits: Array, largest: Array, weights: Array, marginals: Array) -> float:
    """Return the sum of marginals times logits less the largest of each row; zero times minus infinity is zero."""
    total = 0.0
    for k in range(len(logits)):
        own, share = logits[k], marginals[k]
        for t in range(len(own)):
            if share[t] > 0.0:
                total += weights[t] * share[t] * (own[t] - largest[t])
    return total


@numba.njit(nogil=True, cache=True)
def pass_messages(
    logits: Array,
    begins: AnyArray,
    weights: Array,
    initial: Array,
    transition: Array,
    returning: Array,
    least: float,
    memory: Array,
    marginals: Array,
    pairs: Array,
) -> tuple[float, float, float]:
    """Write the marginals and the sums of pairs.

    Parameters
    ----------
    logits
        Log-likelihood of each state and row, (K, N).
    begins
        First row of each sequence, and after them N.
    weights
        How often the sequence of each row counts, (N,).
    initial, transition, returning
        Padded weights of first states, (P,), of steps, (K, P), and of these backward.
    least
        Scales that are not larger may have lost paths to underflow, and messages of no less than one over it.
    memory
        N * (K + P + 2) numbers.
    marginals, pairs
        Where the results go, (K, N) and (K, P), the latter without the weights of the steps.

    Returns
    -------
    log_scale, largest, expected
        Log-partition of logits less the largest of each row; the sum of these; the expectation of the former. The first
        is NaN where paths may be lost, or where a logit is not a number.
    """
    n_states, n_rows = logits.shape
    width = len(initial) + 1
    likelihood = memory[: n_states * n_rows].reshape(n_states, n_rows)
    forward = memory[n_states * n_rows : (n_states + width) * n_rows].reshape(n_rows, width)
    largest = memory[(n_states + width) * n_rows :]
    of_largest = _exponentials(logits, weights, likelihood, largest)
    if not abs(of_largest) < np.inf:
        return np.nan, 0.0, 0.0
    total, own = 0.0, np.zeros(pairs.shape)
    pairs[:] = 0.0
    for s in range(len(begins) - 1):
        start, stop = begins[s], begins[s + 1]
        log_scale = _forward(likelihood, start, stop, initial, transition, least, forward)
        if not log_scale < np.inf:
            return np.nan, 0.0, 0.0
        own[:] = 0.0
        if not _backward(likelihood, start, stop, forward, returning, 1.0 / least, marginals, own):
            return np.nan, 0.0, 0.0
        total += weights[start] * log_scale
        for j in range(n_states):
            for k in range(width - 1):
                pairs[j, k] += weights[start] * own[j, k]
    return total, of_largest, _expected(logits, largest, weights, marginals)
