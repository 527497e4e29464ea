"""The factor of a linear Gaussian chain: vectors of whole sequences, from Gaussian information a row."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from ... import families
from ..._typing import AnyArray, Array
from ...families._gaussian_chain_response import Blocks, response_of_gaussian_chain
from ...families.linear_gaussian_chain import StateMoments
from ...language import Axis, LinearGaussianChain
from ...numerics.linalg import outer, symmetric_part
from ..binding.evidence import Evidence
from ..design.inferred import Inferred
from ..design.keys import StatisticKey
from .chain import ChainFactor, SequenceResponse, Starts
from .family import FamilyFactor
from .statistics import Arrays


class LinearGaussianChainFactor(ChainFactor, FamilyFactor):
    """The factor of a linear Gaussian chain; what rows say of their states is a MultivariateNormal a row."""

    def __init__(
        self,
        variable: LinearGaussianChain,
        evidence: Evidence,
        data_axis: Axis,
        size: Callable[[Axis], int],
        starts: Starts,
    ) -> None:
        super().__init__(variable, evidence, data_axis, size)
        self._variable = variable
        self._summed = [StatisticKey(variable.name, statistic) for statistic in variable.summed]
        self.starts = starts
        self._size = variable.dimension or 1
        known = variable.known("transition")
        self._transition = None if "residual_xx" not in variable.summed else known

    def path(
        self, natural: Array, starts: AnyArray, sums: Mapping[Hashable, Array]
    ) -> families.LinearGaussianChain:
        """Return the distribution of the states of whole sequences, from natural parameters (D + D^2, B)."""
        size = self._size
        shapes = {"first_x": (size,)}
        of = {
            key.statistic: np.broadcast_to(sums[key], shapes.get(key.statistic, (size, size)))
            for key in self._summed
            if not key.statistic.startswith("n_")
        }
        linear = np.ascontiguousarray(natural[:size].T)
        information = -2.0 * symmetric_part(natural[size:].T.reshape(-1, size, size))
        initial_precision = -2.0 * symmetric_part(of["first_xx"])
        if self._transition is not None:
            transition, noise_precision = self._transition, -2.0 * symmetric_part(of["residual_xx"])
        else:
            noise_precision = -2.0 * symmetric_part(of["next_xx"])
            transition = of["pairs"].T / noise_precision.diagonal()[:, None]
            information[:-1][~starts[1:]] += _spread_of_rows(
                -2.0 * symmetric_part(of["previous_xx"]), of["pairs"] @ transition
            )
        return families.LinearGaussianChain(
            linear,
            information,
            starts,
            np.asarray(np.linalg.solve(initial_precision, of["first_x"]), dtype=np.float64),
            initial_precision,
            transition,
            noise_precision,
        )

    def response_of_sequences(
        self,
        natural: Array,
        starts: AnyArray,
        sums: Mapping[Hashable, Array],
        changes: Array,
        changes_of_sums: Sequence[Mapping[Hashable, Array]],
    ) -> SequenceResponse:
        """Return how first and second moments of the states, and their sums over the rows, respond to changes."""
        smoothing = self.path(natural, starts, sums).smoothing
        blocks = self._blocks(natural, starts, sums)
        each = [
            self._blocks(own, starts, of_sums) for own, of_sums in zip(changes, changes_of_sums, strict=True)
        ]
        moved = Blocks(*(np.stack(parts) for parts in zip(*each, strict=True)))
        found = response_of_gaussian_chain(blocks, moved)
        n_changes, n_rows = found.mean.shape[:2]
        second = found.second.reshape(n_changes, n_rows, -1)
        after = np.flatnonzero(~starts)
        following, previous = found.second[:, after].sum(axis=1), found.second[:, after - 1].sum(axis=1)
        pairs = found.pairs[:, after].sum(axis=1)
        of = {
            "first_x": found.mean[:, starts].sum(axis=1),
            "first_xx": found.second[:, starts].sum(axis=1),
            "previous_xx": previous,
            "pairs": pairs,
            "next_xx": following,
            "n_first": np.zeros(n_changes),
            "n_steps": np.zeros(n_changes),
        }
        if self._transition is not None:
            crossed = self._transition @ pairs
            returned = self._transition @ previous @ self._transition.T
            of["residual_xx"] = following - crossed - crossed.swapaxes(-1, -2) + returned
        return SequenceResponse(
            self.expected(smoothing),
            np.concatenate([found.mean, second], axis=2).swapaxes(1, 2),
            self._keyed(of),
        )

    def _blocks(self, natural: Array, starts: AnyArray, sums: Mapping[Hashable, Array]) -> Blocks:
        """Return the precision of the states and their linear terms; both are linear in what rows and steps say."""
        size = self._size
        shapes = {"first_x": (size,)}
        of = {
            key.statistic: np.broadcast_to(sums.get(key, 0.0), shapes.get(key.statistic, (size, size)))
            for key in self._summed
            if not key.statistic.startswith("n_")
        }
        if self._transition is not None:
            noise = symmetric_part(of["residual_xx"])
            moved = noise @ self._transition
            of |= {"next_xx": noise, "previous_xx": self._transition.T @ moved, "pairs": -2.0 * moved.T}
        linear, second = natural[:size].T.copy(), natural[size:].T.reshape(-1, size, size).copy()
        after = np.flatnonzero(~starts)
        linear[starts] += of["first_x"]
        second[starts] += of["first_xx"]
        second[after] += of["next_xx"]
        second[after - 1] += of["previous_xx"]
        between = np.where(starts[:, None, None], 0.0, -of["pairs"])
        return Blocks(linear, -2.0 * symmetric_part(second), between)

    def continued(
        self,
        path: families.LinearGaussianChain,
        is_counted: AnyArray,
        starts: AnyArray,
        means: Mapping[str, Array],
    ) -> families.LinearGaussianChain:
        """Return the chain with a forecast: it moves by the expected transition, with noise of the expected precision.

        Rows that say nothing of their state leave those before them as they are, for the steps are normalised.
        """
        n_rows, size = len(is_counted), self._size
        linear, information = np.zeros((n_rows, size)), np.zeros((n_rows, size, size))
        linear[is_counted], information[is_counted] = path.linear, path.information
        return replace(path, linear=linear, information=information, starts=starts)

    def expected(self, smoothing: StateMoments) -> Array:
        """Return first and second moments of the states, (D + D^2, B)."""
        n_rows = len(smoothing.mean)
        second = smoothing.covariance + outer(smoothing.mean)
        return np.concatenate([smoothing.mean.T, second.reshape(n_rows, -1).T])

    def expected_of_path(self, path: families.LinearGaussianChain) -> Array:
        """Return first and second moments of the states, (D + D^2, N)."""
        return self.expected(path.smoothing)

    def sums(self, smoothing: StateMoments) -> Arrays:
        """Return the sums over the rows by key."""
        return self._keyed({s: np.asarray(getattr(smoothing, s), float) for s in self._variable.summed})

    def sums_given(self, expected: Array, starts: AnyArray) -> Arrays:
        """Return the sums over the rows, states independent with these moments (D + D^2, B)."""
        size = self._size
        mean, second = expected[:size].T, expected[size:].T.reshape(-1, size, size)
        after = np.flatnonzero(~starts)
        previous, following = second[after - 1].sum(axis=0), second[after].sum(axis=0)
        pairs = mean[after - 1].T @ mean[after]
        found = {
            "first_x": mean[starts].sum(axis=0),
            "first_xx": second[starts].sum(axis=0),
            "previous_xx": previous,
            "pairs": pairs,
            "next_xx": following,
            "n_first": np.asarray(float(starts.sum())),
            "n_steps": np.asarray(float(len(after))),
        }
        if self._transition is not None:
            moved = self._transition @ pairs
            returned = self._transition @ previous @ self._transition.T
            found["residual_xx"] = following - moved - moved.T + returned
        return self._keyed(found)

    def _keyed(self, found: Arrays | dict[str, Array]) -> Arrays:
        return {key: found[key.statistic] for key in self._summed}

    def infer(self, natural: Array) -> Inferred:
        """Overwrite natural parameters by expected statistics, each row by itself under a standard Normal."""
        return super().infer(self._about_standard(natural))

    def _about_standard(self, natural: Array) -> Array:
        """Return natural parameters (E, B), overwritten, with those of a standard Normal: a row may say nothing."""
        self.view(natural, StatisticKey(self._variable.name, "xx"))[...] -= (
            0.5 * np.eye(self._size)[:, :, None]
        )
        return natural

    def drawn(self, natural: Array, rng: np.random.Generator) -> Array:
        """Return statistics of draws for each distinct row, each by itself under a standard Normal."""
        states = self.distributions(self._about_standard(natural.copy()))[self._variable].sample(seed=rng)
        return np.concatenate([states.T, outer(states).reshape(len(states), -1).T])


def _spread_of_rows(second: Array, of_mean: Array) -> Array:
    """Return what the uncertainty of a transition's rows says of the state before a step: <A' Q A> - <A>' Q <A>.

    It is positive semi-definite; what is below zero is rounding.
    """
    values, vectors = np.linalg.eigh(symmetric_part(second - of_mean))
    return (vectors * np.maximum(values, 0.0)) @ vectors.T
