r"""Numbers of a shared Gaussian factor that are known: the factor is that of the others, given these.

With known numbers k at the values v, the natural parameters of the others u follow from those of all,

.. math:: h_u \leftarrow h_u - P_{uk} v_k, \qquad P_{uu} \text{ as it is},

and a known number is kept beside them as one by itself, with the precision 1 and the mean v, of which no variance is
counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from caviar._typing import AnyArray, Array, Statistics


def given_known(layout: Any, natural: Statistics, known: AnyArray, values: Array) -> Statistics:
    """Return natural parameters of the numbers that are unknown, given the known ones, for which they are 0.

    Parameters
    ----------
    layout
        Of the factor, its family.
    natural
        In the order of its statistics.
    known
        Which of all numbers are known, (numbers,); of a vector all or none.
    values
        Of all numbers, (numbers,); those of unknown ones are ignored.
    """
    n_own = 2 * len(layout.members)
    full = [
        np.broadcast_to(eta, shape).astype(np.float64)
        for eta, shape in zip(natural, layout.shapes, strict=True)
    ]
    linear = np.concatenate([eta.ravel() for eta in full[:n_own:2]])
    for number, ((i, j), cross) in enumerate(zip(layout.pattern.pairs, layout.crosses, strict=True), n_own):
        eta = full[number].ravel()
        for one, other in ((i, j), (j, i)):
            met = known[other] & ~known[one]
            linear += np.bincount(one[met], eta[met] * values[other[met]], len(linear))
        full[number] = np.where(known[i] | known[j], 0.0, eta).reshape(cross.shape)
    linear = np.where(known, 0.0, linear)
    for number, member in enumerate(layout.members):
        place = layout.place(number)
        full[2 * number] = linear[place].reshape(layout.shapes[2 * number])
        is_known = known[place].reshape(member.part)[:, :, None]
        blocks = full[2 * number + 1].reshape(*member.part, member.part[1])
        full[2 * number + 1] = np.where(is_known, 0.0, blocks).reshape(layout.shapes[2 * number + 1])
    return tuple(full)


def with_units(layout: Any, natural: Statistics, known: AnyArray, values: Array) -> Statistics:
    """Return such natural parameters with those of the precision 1 and the mean at its value of each known number."""
    found = list(natural)
    for number, member in enumerate(layout.members):
        place = layout.place(number)
        is_known = known[place]
        own = found[2 * number]
        found[2 * number] = np.where(is_known, values[place], own.ravel()).reshape(own.shape)
        blocks = found[2 * number + 1].reshape(*member.part, member.part[1])
        unit = -0.5 * np.eye(member.part[1])
        own = np.where(is_known.reshape(member.part)[:, :, None], unit, blocks)
        found[2 * number + 1] = own.reshape(layout.shapes[2 * number + 1])
    return tuple(found)


def without_variance(layout: Any, blocks: Sequence[Array], known: AnyArray | None) -> Sequence[Array]:
    """Return the covariances within the values of each variable, (count, width, width), 0 for known numbers."""
    if known is None:
        return blocks
    found = []
    for number, (member, block) in enumerate(zip(layout.members, blocks, strict=True)):
        is_known = known[layout.place(number)].reshape(member.part)
        found.append(np.where(is_known[:, :, None], 0.0, block))
    return found


def learnt_entries(layout: Any, known: AnyArray) -> Sequence[AnyArray]:
    """Return which entries of each statistic are of numbers that are not known."""
    # the second number of a number by itself is none, -1
    learnt = np.append(~known, True)
    pairs = zip(layout.pairs_of_statistics(), layout.shapes, strict=True)
    return [(learnt[i] & learnt[j]).reshape(shape) for (i, j), shape in pairs]
