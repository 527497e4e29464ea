r"""Relevance: the precision of many Normal numbers together with these numbers.

Of a prior :math:`\prod_d N(w_d \mid 0, 1/\alpha)` and messages :math:`h_d w_d - \tfrac12 s_d w_d^2`, updates of
:math:`\alpha` and of the numbers take turns,

.. math:: \alpha \leftarrow \frac{a}{b + \frac12 \sum_d \left[\frac{1}{\alpha + s_d}
          + \frac{h_d^2}{(\alpha + s_d)^2}\right]},

and where the data say little they gain about s in each turn: hundreds of turns until a coordinate falls silent. Here is
where the turns lead.

Source: MacKay, "Bayesian interpolation" (Neural Computation 1992), whose update goes most of this way.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ....._typing import AnyArray, Array

_DOUBLINGS, _HALVINGS = 30, 40
"""Doublings by which an end is looked for, at most, and halvings of the interval of the logarithm."""


def settled_precision(alpha: Array, linear: Array, curvature: Array, shape: Array, rate: Array) -> Array:
    """Return the precisions (K,) to which turns of updates lead from some.

    Parameters
    ----------
    alpha
        Where they begin, (K,).
    linear, curvature
        Messages h and s, (D, K); curvatures are not negative.
    shape, rate
        Of the Gamma of each precision, with the numbers counted in the shape: a and b, (K,).
    """

    def rises(logs: Array) -> AnyArray:
        own = np.exp(logs)
        width = 1.0 / (own + curvature)
        updated = shape / (rate + 0.5 * (width + np.square(linear * width)).sum(axis=0))
        return updated > own

    return np.exp(bracketed(np.log(alpha), rises))


def bracketed(start: Array, rises: Callable[[Array], AnyArray]) -> Array:
    """Return where numbers end that turns of updates move, each up where it rises and down where it does not.

    Parameters
    ----------
    start
        Where they begin.
    rises
        Whether an update raises each of them.
    """
    upwards = rises(start)
    sign = np.where(upwards, 1.0, -1.0)
    near, far = start, start
    open_ = np.ones(start.shape, dtype=bool)
    for _ in range(_DOUBLINGS):
        far = np.where(open_, near + sign * np.log(2.0), far)
        open_ &= rises(far) == upwards
        near = np.where(open_, far, near)
        if not open_.any():
            break
    for _ in range(_HALVINGS):
        middle = 0.5 * (near + far)
        same = rises(middle) == upwards
        near, far = np.where(same, middle, near), np.where(same, far, middle)
    return near
