"""Updates of labels some of whose categories known probabilities of zero rule out."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from ..._typing import Array, Statistics
from ..local.local_factor import meets_more
from .global_update import GlobalUpdate
from .terms import Update


class Possible:
    """The update of a global that counts known probabilities of zero.

    Parameters
    ----------
    update
        What the terms say.
    zeros
        The update from the terms that count such zeros.
    """

    def __init__(self, update: Update, zeros: GlobalUpdate) -> None:
        self._update, self._zeros = update, zeros

    def natural(self, arrays: Mapping[Hashable, Array]) -> Statistics:
        """Return the natural parameters of the optimal factor."""
        return possible(self._zeros, self._update.natural(arrays), arrays)


def possible(zeros: GlobalUpdate, natural: Statistics, arrays: Mapping[Hashable, Array]) -> Statistics:
    """Return natural parameters of labels with minus infinity for those that known probabilities of zero rule out.

    Parameters
    ----------
    zeros
        Update from the terms that count such zeros: labels that meet more of them than another are ruled out.
    natural
        Of the labels; of another variable, which meets none, as they are.
    arrays
        Expected statistics, and sums over the rows.
    """
    if not zeros.terms:
        return natural
    if zeros.variable.members:
        layout: Any = zeros.variable.family
        return layout.ruled_out(natural, zeros.natural(arrays))
    (logits,), (met,) = natural, zeros.natural(arrays)
    excluded = meets_more(met[..., None])
    return (np.where(excluded[..., 0], -np.inf, logits),)
