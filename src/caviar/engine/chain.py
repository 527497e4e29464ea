"""The factor of a Markov chain: one factor over all rows, exact inside."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import numpy as np

from .. import families
from .._errors import DataError, ModelError
from .._typing import Array
from ..language import Axis, MarkovChain
from .binding import Binding
from .locals import CategoricalFactor, LocalFactor
from .sums import Arrays

__all__ = ["ChainFactor", "chain_of", "check_chains"]


class ChainFactor(CategoricalFactor):
    """The factor of a Markov chain.

    In a block it is a Categorical a row, so that all that needs marginals only is shared. Its marginals come from all
    rows at once, by :meth:`path`; a block's rows alone give those of a start, which knows no neighbours.
    """

    def __init__(self, binding: Binding, variable: MarkovChain, data_axis: Axis) -> None:
        super().__init__(binding, variable, data_axis)
        self._variable = variable
        self._starts = np.zeros(binding.n_rows, dtype=bool)
        self._starts[0] = True
        if "starts" in variable.slots:
            self._starts |= np.asarray(binding.values[variable.slots["starts"].node], dtype=bool)

    def path(self, logits: Array, natural: Mapping[Hashable, Array]) -> families.MarkovChain:
        """Return the distribution of the states of all rows, from log-likelihoods (N, K) and natural parameters."""
        initial, transition = (natural[self._variable, statistic] for statistic in self._variable.summed)
        return families.MarkovChain(logits, self._starts, initial, transition)

    def sums(self, first: Array, pairs: Array) -> Arrays:
        """Return the sums over the rows by key."""
        return dict(zip(((self._variable, s) for s in self._variable.summed), (first, pairs), strict=True))

    def sums_given(self, marginals: Array | None) -> Arrays:
        """Return the sums over the rows, states independent with these marginals (N, K); zero without any."""
        size = self._variable.dimension or 1
        if marginals is None:
            return self.sums(np.zeros(size), np.zeros((size, size)))
        within = ~self._starts[1:]
        first = marginals[self._starts].sum(axis=0)
        return self.sums(first, marginals[:-1][within].T @ marginals[1:][within])


def chain_of(factors: Sequence[LocalFactor]) -> ChainFactor | None:
    """Return the chain among the factors, if there is one.

    Raises
    ------
    ModelError
        If there are several.
    """
    chains = [factor for factor in factors if isinstance(factor, ChainFactor)]
    if len(chains) > 1:
        raise ModelError(
            f"a model can have one MarkovChain; this one has {', '.join(chain.name for chain in chains)}. "
            f"State one whose states are the pairs"
        )
    return chains[0] if chains else None


def check_chains(binding: Binding) -> None:
    """Check that chains are hidden, run along the data plate, and that every step counts once.

    Raises
    ------
    ModelError, DataError
        If not.
    """
    for node in binding.nodes:
        if not isinstance(node, MarkovChain):
            continue
        if node in binding.values:
            raise DataError(f"MarkovChain '{node.name}' is hidden and cannot be given as data; leave it out")
        if not binding.is_local(node):
            plate = "none" if binding.data_plate is None else f"'{binding.data_plate.name}'"
            raise ModelError(
                f"MarkovChain '{node.name}' runs along plate '{node.plates[0].name}', but the data plate is {plate}"
            )
        if binding.row_weights is not None and np.any(binding.row_weights != 1):
            raise DataError(
                f"sample_weight is impossible with MarkovChain '{node.name}': a step of a sequence counts once; "
                f"leave it out, or repeat whole sequences"
            )
