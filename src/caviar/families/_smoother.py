r"""The Kalman filter and the Rauch-Tung-Striebel smoother as scans, for many steps at once.

What happens between two rows, :math:`p(s_j, \text{data of } i+1 \dots j \mid s_i)`, is an *element*: a Normal of
:math:`s_j` about :math:`A s_i + b` with covariance C, times :math:`e^{\eta' s_i - s_i' J s_i / 2}`. Elements of
successive stretches combine to that of both, so all prefixes of N elements follow in about 2 log N rounds of batched
operations (Särkkä and García-Fernández 2021). A first row has A = 0: it forgets what was before it, and sequences need
no further care. Matrices are only ever added to positive semi-definite ones, so that precisions of very different size
cost no digits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from caviar._errors import ImproperError
from caviar._typing import AnyArray, Array
from caviar.numerics.linalg import (
    cholesky,
    inverse,
    inverse_from_factor,
    log_determinant,
    symmetric_part,
    times_vector,
)

Elements: TypeAlias = tuple[Array, ...]
"""Arrays over the rows, one a parameter of an element."""

_CHUNK = 4_096
"""Rows of a scan at once: enough that the calls do not count, few enough that what the rounds hold stays small."""


@dataclass(frozen=True)
class Kernels:
    r"""Each state given the one after it: :math:`N(m + G (s_{t+1} - A m), \Sigma)`, of rows filtered to :math:`m, P`.

    Attributes
    ----------
    mean
        m, shape (N, D): of the state given all rows up to its own.
    predicted
        A m, shape (N, D).
    gain
        :math:`G = \Sigma A' Q`; zero where a sequence ends, shape (N, D, D).
    covariance, factor
        :math:`\Sigma = (P^{-1} + A' Q A)^{-1}`, and a square root of it.
    log_determinant
        :math:`\log |\Sigma|`, shape (N,).
    shrink
        :math:`I - A G = (I + A P A' Q)^{-1}`, shape (N, D, D).
    """

    mean: Array
    predicted: Array
    gain: Array
    covariance: Array
    factor: Array
    log_determinant: Array
    shrink: Array


def filtered(
    linear: Array,
    information: Array,
    is_first: AnyArray,
    initial_linear: Array,
    initial_precision: Array,
    transition: Array,
    noise_precision: Array,
) -> tuple[Array, Array]:
    """Return mean and covariance of each state given the rows of its sequence up to its own, (N, D) and (N, D, D).

    ``transition`` and ``noise_precision`` are those of all steps, (D, D), or of the step to each row, (N, D, D).
    """
    outward = noise_precision @ transition
    prior = np.where(is_first[:, None, None], initial_precision, noise_precision)
    covariance = inverse_from_factor(inverse(_lower(prior + information)))
    mean = times_vector(covariance, linear + np.where(is_first[:, None], initial_linear, 0.0))
    goes_on = np.where(is_first, 0.0, 1.0)
    gain = goes_on[:, None, None] * (covariance @ outward)
    back = goes_on[:, None] * times_vector(outward.swapaxes(-1, -2), mean)
    told = symmetric_part(gain.swapaxes(-1, -2) @ information @ transition)
    _, mean, covariance, _, _ = _scan(_follow, (gain, mean, covariance, back, told))
    return mean, symmetric_part(covariance)


def _follow(earlier: Elements, later: Elements) -> Elements:
    """Return the elements of two successive stretches together."""
    a, b, c, eta, told = earlier
    a2, b2, c2, eta2, told2 = later
    size = a.shape[-1]
    between = np.eye(size) + c @ told2
    right = np.concatenate([a, (b + times_vector(c, eta2))[..., None], c], axis=-1)
    solved: Array = np.asarray(np.linalg.solve(between, right), dtype=np.float64)
    through, centre, spread = solved[..., :size], solved[..., size], solved[..., size + 1 :]
    returning = through.swapaxes(-1, -2)
    return (
        a2 @ through,
        times_vector(a2, centre) + b2,
        symmetric_part(a2 @ spread @ a2.swapaxes(-1, -2)) + c2,
        times_vector(returning, eta2 - times_vector(told2, b)) + eta,
        symmetric_part(returning @ told2 @ a) + told,
    )


def backward_kernels(
    mean: Array, covariance: Array, is_first: AnyArray, transition: Array, noise_precision: Array
) -> Kernels:
    """Return each state given the one after it, from what :func:`filtered` gives."""
    transition, noise_precision = _to_the_next(transition), _to_the_next(noise_precision)
    goes_on = np.append(~is_first[1:], False)[:, None, None]
    size = mean.shape[1]
    lower = _lower(covariance)
    moved = np.where(goes_on, transition @ lower, 0.0)
    inner = np.eye(size) + moved.swapaxes(-1, -2) @ noise_precision @ moved
    inner_lower = _lower(symmetric_part(inner))
    factor = lower @ inverse(inner_lower).swapaxes(-1, -2)
    own = factor @ factor.swapaxes(-1, -2)
    ahead = transition @ covariance @ transition.swapaxes(-1, -2) @ noise_precision
    return Kernels(
        mean,
        times_vector(transition, mean),
        np.where(goes_on, own @ (transition.swapaxes(-1, -2) @ noise_precision), 0.0),
        own,
        factor,
        log_determinant(lower) - log_determinant(inner_lower),
        inverse(np.eye(size) + ahead),
    )


def _to_the_next(matrices: Array) -> Array:
    """Return for each row the matrix of the step after it, from those of the steps to each row; one for all as it is.

    The last row has that of the first, which leads nowhere.
    """
    return matrices if matrices.ndim == 2 else np.roll(matrices, -1, axis=0)


def smoothed(kernels: Kernels) -> tuple[Array, Array]:
    """Return mean and covariance of each state given all rows, (N, D) and (N, D, D)."""
    shift = kernels.mean - times_vector(kernels.gain, kernels.predicted)
    backward = (kernels.gain[::-1], shift[::-1], kernels.covariance[::-1])
    _, mean, covariance = _scan(_precede, backward)
    return mean[::-1], symmetric_part(covariance[::-1])


def _precede(later: Elements, earlier: Elements) -> Elements:
    """Return s_i given what comes after both stretches, from those of s_j given that, and of s_i given s_j."""
    gain, shift, spread = later
    gain2, shift2, spread2 = earlier
    return (
        gain2 @ gain,
        times_vector(gain2, shift) + shift2,
        symmetric_part(gain2 @ spread @ gain2.swapaxes(-1, -2)) + spread2,
    )


def _scan(combine: Callable[[Elements, Elements], Elements], elements: Elements) -> Elements:
    """Return the combination of the first 1, 2, ..., N elements, in chunks that hand on their last one."""
    done = tuple(np.empty(array.shape) for array in elements)
    for start in range(0, len(elements[0]), _CHUNK):
        part = tuple(array[start : start + _CHUNK].copy() for array in elements)
        if start:
            carried = combine(tuple(array[start - 1 : start] for array in done), _at(part, slice(0, 1)))
            for array, first in zip(part, carried, strict=True):
                array[:1] = first
        for array, values in zip(done, _prefixes(combine, part), strict=True):
            array[start : start + _CHUNK] = values
    return done


def _prefixes(combine: Callable[[Elements, Elements], Elements], elements: Elements) -> Elements:
    """Return the same of few elements: of pairs of neighbours first, then of those between."""
    count = len(elements[0])
    if count == 1:
        return elements
    pairs = combine(_at(elements, slice(0, count - 1, 2)), _at(elements, slice(1, count, 2)))
    odd = _prefixes(combine, pairs)
    done = tuple(np.empty(array.shape) for array in elements)
    for array, first, values in zip(done, elements, odd, strict=True):
        array[0] = first[0]
        array[1::2] = values
    if count > 2:
        places = slice(2, count, 2)
        before = _at(odd, slice(0, len(range(2, count, 2))))
        for array, values in zip(done, combine(before, _at(elements, places)), strict=True):
            array[places] = values
    return done


def _at(elements: Elements, places: slice) -> Elements:
    return tuple(array[places] for array in elements)


def _lower(matrices: Array) -> Array:
    """Return Cholesky factors.

    Raises
    ------
    ImproperError
        If there are none.
    """
    try:
        factor = cholesky(matrices)
    except np.linalg.LinAlgError:
        factor = None
    if factor is None or not np.isfinite(factor).all():
        raise ImproperError(
            "the states of a linear Gaussian chain have no covariance in double precision: what is known of their "
            "directions, or their growth from step to step, differs too much. Rescale the components of the state, or "
            "give a transition that grows less"
        )
    return factor
