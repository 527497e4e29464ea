r"""Steps of a chain that count: those up to the last observation of their sequence.

What comes after it integrates to one, and so does a sequence without any observation: whatever the parameters are,

.. math:: \int p(s_{T+1}, \dots, s_{T+h} \mid s_T, \theta) \, ds = 1.

So these steps are left out, exactly. Mean field, which takes chain and parameters to be independent, would count them
as data for the parameters that were never seen. A step between observations, or before the first, stays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ...._errors import DataError
from ...._typing import AnyArray, Array
from ....language import Node, Variable
from ....lazy.block_map import any_of
from ....lazy.rows import Computed, LazyRows, in_memory
from .values import Observations, any_observed, is_above


def counted_steps(chain: Variable, own: Observations) -> AnyArray | None:
    """Return which steps of a chain along the data plate lead to an observation, shape (N,); None if all do.

    A known state is an observation.
    """
    below = [leaf for leaf in own.observed if is_above(chain, leaf)]
    if not all(leaf in own.masks for leaf in below):
        return None
    told: dict[Node, AnyArray] = {chain: own.told[chain]} if chain in own.told else {}
    assert own.plate is not None
    seen = np.asarray(in_memory(any_observed(below, own.masks, told, own.plate)), dtype=bool)
    starts = np.zeros(len(seen), dtype=bool)
    if "starts" in chain.slots:
        starts[:] = own.values[chain.slots["starts"].node]
    counted = up_to_the_last(seen, starts)
    return None if counted.all() else counted


def seen_in_steps(own: Observations, counted: Mapping[Variable, AnyArray]) -> dict[Variable, AnyArray]:
    """Return which rows count for the parameters of a chain's steps: those with a step that counts.

    The first row of a sequence has no step, and what is hidden there has nothing below it.

    Parameters
    ----------
    counted
        Which steps count of each chain that has some that do not.
    """
    found: dict[Variable, AnyArray] = {}
    for chain in (variable for variable in own.latent if variable.by_step):
        starts = np.zeros(own.n_rows, dtype=bool)
        if "starts" in chain.slots:
            starts[:] = own.values[chain.slots["starts"].node]
        starts[:1] = True
        goes = ~starts & counted.get(chain, True)
        for variable in chain.parents:
            if variable not in own.latent or not isinstance(variable, Variable) or variable.summed:
                continue
            if variable.plates == (own.plate,):
                found[variable] = found.get(variable, False) | goes
    for variable in found:
        direct = [leaf for leaf in own.observed if variable in leaf.parents]
        if any(leaf not in own.masks for leaf in direct):
            found[variable] = np.ones(own.n_rows, dtype=bool)
        elif direct:
            assert own.plate is not None
            seen = np.asarray(in_memory(any_observed(direct, own.masks, {}, own.plate)), dtype=bool)
            found[variable] = found[variable] | seen
        if variable in own.told:
            found[variable] = found[variable] | own.told[variable]
    return {variable: own for variable, own in found.items() if not own.all()}


def up_to_the_last(seen: AnyArray, starts: AnyArray) -> AnyArray:
    """Return which rows have a true one at or after them in their sequence, shape (N,).

    Parameters
    ----------
    seen
        Shape (N,).
    starts
        Whether a sequence begins at each row; the first row of all begins one, whatever it says.

    Examples
    --------
    >>> up_to_the_last(np.array([0, 1, 0, 0, 0, 0, 1]), np.array([1, 0, 0, 1, 0, 1, 0]))
    array([ True,  True, False, False, False,  True,  True])
    """
    n_rows = len(seen)
    begins = np.union1d([0], np.flatnonzero(starts))
    ends = np.repeat(np.append(begins[1:], n_rows), np.diff(begins, append=n_rows))
    following = np.where(seen, np.arange(n_rows), n_rows)
    return np.minimum.accumulate(following[::-1])[::-1] < ends


def rows_that_count(
    rows: Array | None, chains: Sequence[Variable], steps: Mapping[Variable, AnyArray]
) -> Array | None:
    """Return 1 for each row that has an observation or a step of a chain that counts, 0 for the others; None for all.

    Parameters
    ----------
    rows
        1 for each row with an observation; None if all have one.
    chains
        The chains along the rows.
    steps
        Of those with steps that do not count, which do.
    """
    if rows is None or not chains:
        return rows
    if any(chain not in steps for chain in chains):
        return None
    counted = np.any([in_memory(rows) > 0, *(steps[chain] for chain in chains)], axis=0)
    return None if counted.all() else counted.astype(np.float64)


def refuse_weights(
    chains: Sequence[Variable], weights: Array | None, values: Mapping[Node, AnyArray]
) -> None:
    """Refuse weights of the rows of a chain, unless it takes them and they are the same within each sequence.

    Parameters
    ----------
    chains
        The chains along the rows.
    weights
        Of the rows, or None.
    values
        Known values, among them where sequences begin.

    Raises
    ------
    DataError
        If there are others.
    """
    if not chains or weights is None:
        return
    differs = (
        Computed(_is_not_one, (weights,), (), np.bool_) if isinstance(weights, LazyRows) else weights != 1
    )
    if not any_of(differs):
        return
    for chain in chains:
        what = f"{type(chain).__name__} '{chain.name}'"
        if not chain.takes_weights or isinstance(weights, LazyRows):
            raise DataError(
                f"sample_weight is impossible with {what}: a step of a sequence counts once; leave it out, or repeat "
                f"whole sequences"
            )
        follows = np.ones(len(weights), dtype=bool)
        follows[0] = False
        if "starts" in chain.slots:
            follows &= np.broadcast_to(in_memory(values[chain.slots["starts"].node]), len(weights)) == 0
        changed = np.flatnonzero(follows[1:] & (np.diff(weights) != 0)) + 1
        if len(changed):
            row = int(changed[0])
            raise DataError(
                f"sample_weight must be the same in all rows of a sequence of {what}: row {row} has "
                f"{weights[row]:g}, and row {row - 1} before it has {weights[row - 1]:g}"
            )


def _is_not_one(block: AnyArray) -> AnyArray:
    return block != 1
