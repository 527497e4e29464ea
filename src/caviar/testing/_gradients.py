"""Numerical derivatives, for the claim that an ELBO is stationary at a fixed point."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from caviar._errors import ParameterError
from caviar._typing import Array


@dataclass(frozen=True)
class NumericalGradient:
    """Partial derivatives and an estimate of the error of each, both of the shape of the point."""

    value: Array
    error: Array


def numerical_gradient(
    function: Callable[[Array], float],
    point: ArrayLike,
    *,
    relative_step: float = 0.01,
    smallest_scale: float = 1.0,
    n_halvings: int = 5,
) -> NumericalGradient:
    r"""Return the gradient of a smooth function by central differences, extrapolated to step zero.

    .. math::

        D_0(h) = \frac{f(x + h e_i) - f(x - h e_i)}{2 h}, \qquad
        D_{j+1}(h) = D_j(h) + \frac{D_j(h) - D_j(2 h)}{4^{j+1} - 1}

    over halved steps h; of all the D_j the one that moved least is kept, and how far it moved is its error
    estimate (Ridders 1982).

    Parameters
    ----------
    function
        Takes an array of the shape of ``point``, gives back a number.
    point
        Where to differentiate; any shape.
    relative_step
        The largest step of an entry is ``relative_step * max(abs(entry), smallest_scale)``.
    smallest_scale
        The scale of entries near zero, in their units. Lower it where an entry near zero bounds the domain.
    n_halvings
        How often that step is halved, >= 1.

    Raises
    ------
    ParameterError
        If a setting is out of its domain, or the function is not finite within the largest step.

    Notes
    -----
    ``2 (n_halvings + 1)`` evaluations for each entry. Every entry moves by itself: give parameters with
    constraints (symmetric matrices, probabilities) in free coordinates, as the lower triangle or the logits.

    Examples
    --------
    >>> gradient = numerical_gradient(lambda x: float(np.sum(x**4)), [1.0, -2.0])
    >>> gradient.value.round(9)
    array([  4., -32.])
    >>> bool(np.all(gradient.error < 1e-9))
    True
    """
    x = np.asarray(point, dtype=float)
    if not (relative_step > 0.0 and smallest_scale > 0.0 and n_halvings >= 1):
        raise ParameterError(
            "relative_step and smallest_scale must be > 0 and n_halvings >= 1, got "
            f"{relative_step!r}, {smallest_scale!r} and {n_halvings!r}."
        )
    value, error = np.empty_like(x), np.empty_like(x)
    for index in np.ndindex(x.shape):
        step = relative_step * max(abs(float(x[index])), smallest_scale)
        differences = [_central_difference(function, x, index, step / 2**i) for i in range(n_halvings + 1)]
        value[index], error[index] = _extrapolated(differences)
    return NumericalGradient(value, error)


def _central_difference(
    function: Callable[[Array], float], x: Array, index: tuple[int, ...], step: float
) -> float:
    above, below = x.copy(), x.copy()
    above[index] += step
    below[index] -= step
    f_above, f_below = float(function(above)), float(function(below))
    if not (np.isfinite(f_above) and np.isfinite(f_below)):
        raise ParameterError(
            f"The function is not finite a step of {step:g} from entry {index} = {x[index]:g}"
            f" (got {f_below} below and {f_above} above); lower relative_step or smallest_scale."
        )
    # What was added after rounding, not what was asked for.
    return (f_above - f_below) / float(above[index] - below[index])


def _extrapolated(differences: list[float]) -> tuple[float, float]:
    """Return the entry of the Richardson table that moved least, and how far it moved."""
    best, smallest_move = differences[0], np.inf
    column = differences
    for order in range(1, len(differences)):
        factor = 4.0**order - 1.0
        finer = [new + (new - old) / factor for old, new in pairwise(column)]
        for (old, new), extrapolated in zip(pairwise(column), finer, strict=True):
            move = max(abs(extrapolated - new), abs(extrapolated - old))
            if move < smallest_move:
                best, smallest_move = extrapolated, move
        column = finer
    return best, float(smallest_move)
