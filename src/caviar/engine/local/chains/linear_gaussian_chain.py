"""The factor of a linear Gaussian chain: vectors of whole sequences, from Gaussian information a row."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .... import families
from ...._errors import ImproperError
from ...._typing import Array
from ....families.chains.gaussian_chain_response import Blocks, response_of_gaussian_chain
from ....families.chains.linear_gaussian_chain import StateMoments, at_steps, told_by_inputs
from ....language import Axis, LinearGaussianChain
from ....numerics.linalg import outer, symmetric_part
from ...binding.bound_model import BoundModel
from ...binding.evidence import Evidence
from ...design.inferred import Inferred
from ...design.keys import StatisticKey
from ..family import FamilyFactor
from ..statistics import Arrays
from .chain import Ahead, ChainFactor, Said, SequenceResponse
from .steps import Steps


class LinearGaussianChainFactor(ChainFactor, FamilyFactor):
    """The factor of a linear Gaussian chain; what rows say of their states is a MultivariateNormal a row."""

    def __init__(
        self,
        variable: LinearGaussianChain,
        evidence: Evidence,
        data_axis: Axis,
        bound: BoundModel,
    ) -> None:
        super().__init__(variable, evidence, data_axis, bound.size)
        self._is_along(bound)
        self._variable = variable
        self._size = variable.dimension or 1
        is_known = variable.is_stated_with_constant("transition")
        known = bound.values_of(variable.slots["transition"].node) if is_known else None
        self._transition = known if "residual_xx" in (*variable.summed, *variable.by_step) else None

    def path(self, said: Said) -> families.LinearGaussianChain:
        """Return the distribution of the states of whole sequences, from natural parameters (D + D^2, B)."""
        of, steps = self._of_steps(said.natural, said.sums), said.steps
        linear, second = self._of_rows(said.natural)
        information = -2.0 * symmetric_part(second)
        initial_precision = -2.0 * symmetric_part(of["first_xx"])
        transition, noise_precision, spread = self._moves(of, steps)
        if spread is not None:
            after = steps.after
            information[after - 1] += at_steps(spread, after)
        linear += self._told(of, steps)
        return families.LinearGaussianChain(
            linear,
            information,
            steps.starts,
            np.asarray(np.linalg.solve(initial_precision, of["first_x"]), dtype=np.float64),
            initial_precision,
            transition,
            noise_precision,
        )

    def _of_rows(self, natural: Array) -> tuple[Array, Array]:
        """Return what the rows say of their own states: linear terms (B, D), and quadratic ones (B, D, D)."""
        size, stop = self._size, self._size + self._size**2
        # copies also of one row, which is contiguous as it is: what steps say is added to them
        return natural[:size].T.copy(), natural[size:stop].T.reshape(-1, size, size).copy()

    def _moves(self, of: Mapping[str, Array], steps: Steps) -> tuple[Array, Array, Array | None]:
        """Return transition, precision of the noise, and what an unknown transition adds to the state before a step."""
        if self._transition is not None:
            return self._transition, -2.0 * symmetric_part(of["residual_xx"]), None
        noise_precision = -2.0 * symmetric_part(of["next_xx"])
        transition = of["pairs"].T / noise_precision.diagonal()[:, None]
        spread = spread_of_rows(of, transition)
        return transition, noise_precision, spread

    def _of_steps(self, natural: Array, sums: Mapping[Hashable, Array]) -> dict[str, Array]:
        """Return natural parameters of the statistics of steps and of first rows, zero for absent ones."""
        (variable,), size = self.variables, self._size
        shapes = {"first_x": (size,)}
        if self.inputs is not None:
            shapes |= dict.fromkeys(("next_inputs", "previous_inputs"), (size, self._n_inputs))
        return {
            key.statistic: np.broadcast_to(sums.get(key, 0.0), shapes.get(key.statistic, (size, size)))
            for key in self._summed
            if variable.letters[key.statistic] and key.statistic != "inputs_xx"
        }

    def _told(self, of: Mapping[str, Array], steps: Steps) -> Array | float:
        """Return what the inputs of steps add to the natural parameters of the states, (B, D)."""
        if steps.inputs is None:
            return 0.0
        own, before = (steps.inputs @ of[name].T for name in ("next_inputs", "previous_inputs"))
        return told_by_inputs(own, before, steps.starts)

    def response_of_sequences(
        self, said: Said, changes: Array, of_sums: Sequence[Arrays]
    ) -> SequenceResponse:
        """Return how first and second moments of the states, and their sums over the rows, respond to changes."""
        expected, steps = self.expected_of_path(self.path(said)), said.steps
        blocks = self._blocks(said)
        each = [self._blocks(Said(own, steps, sums)) for own, sums in zip(changes, of_sums, strict=True)]
        moved = Blocks(*(np.stack(parts) for parts in zip(*each, strict=True)))
        found = response_of_gaussian_chain(blocks, moved)
        n_changes = len(found.mean)
        pairs = found.pairs[:, steps.after].sum(axis=1)
        of = self._sums_of(found.mean, found.second, pairs, steps)
        # how many steps there are, and their inputs, change with nothing
        of |= {name: np.zeros((n_changes, *np.shape(of[name]))) for name in _KNOWN if name in of}
        return SequenceResponse(
            expected, self._moments(found.mean, found.second, found.pairs, steps), self._keyed(of)
        )

    def _moments(self, mean: Array, second: Array, pairs: Array, steps: Steps) -> Array:
        """Return changes of expected statistics, (D, E, B), from those of the moments of states and of pairs."""
        return np.concatenate([mean, second.reshape(*mean.shape[:2], -1)], axis=2).swapaxes(1, 2)

    def _blocks(self, said: Said) -> Blocks:
        """Return the precision of the states and their linear terms; both are linear in what rows and steps say."""
        steps, of = said.steps, self._of_steps(said.natural, said.sums)
        if self._transition is not None:
            noise = symmetric_part(of["residual_xx"])
            moved = noise @ self._transition
            of |= {
                "next_xx": noise,
                "previous_xx": self._transition.T @ moved,
                "pairs": -2.0 * moved.swapaxes(-1, -2),
            }
        linear, second = self._of_rows(said.natural)
        starts, after = steps.starts, steps.after
        linear[starts] += of["first_x"]
        second[starts] += of["first_xx"]
        second[after] += at_steps(of["next_xx"], after)
        second[after - 1] += at_steps(of["previous_xx"], after)
        linear += self._told(of, steps)
        between = np.where(starts[:, None, None], 0.0, -of["pairs"])
        return Blocks(linear, -2.0 * symmetric_part(second), between)

    def continued(self, path: families.LinearGaussianChain, ahead: Ahead) -> families.LinearGaussianChain:
        """Return the chain with a forecast: it moves by the expected transition, with noise of the expected precision.

        Rows that say nothing of their state leave those before them as they are, for the steps are normalised.
        """
        is_counted, steps = ahead.is_counted, ahead.steps
        n_rows, size = len(is_counted), self._size
        linear, information = np.zeros((n_rows, size)), np.zeros((n_rows, size, size))
        linear[is_counted], information[is_counted] = path.linear, path.information
        if steps.inputs is not None:
            inputs = np.where(is_counted[:, None], 0.0, steps.inputs)
            own = inputs @ ahead.means["input_weights"].T @ path.noise_precision
            linear += told_by_inputs(own, -own @ path.transition, steps.starts)
        return replace(path, linear=linear, information=information, starts=steps.starts)

    def expected(self, smoothing: StateMoments) -> Array:
        """Return first and second moments of the states, (D + D^2, B)."""
        n_rows = len(smoothing.mean)
        second = smoothing.covariance + outer(smoothing.mean)
        return np.concatenate([smoothing.mean.T, second.reshape(n_rows, -1).T])

    def expected_of_path(self, path: families.LinearGaussianChain) -> Array:
        """Return first and second moments of the states, (D + D^2, N)."""
        return self.expected(path.smoothing)

    def sums(self, smoothing: StateMoments, steps: Steps) -> Arrays:
        """Return the sums over the rows by key."""
        of_inputs = _sums_of_inputs(smoothing.mean, steps)
        found = (s for s in self._variable.summed if s not in of_inputs)
        return self._keyed({**{s: getattr(smoothing, s) for s in found}, **of_inputs})

    def sums_given(self, expected: Array, steps: Steps) -> Arrays:
        """Return the sums over the rows, states independent with these moments (D + D^2, B)."""
        after, (mean, second) = steps.after, self._of_rows(expected)
        return self._keyed(self._sums_of(mean, second, mean[after - 1].T @ mean[after], steps))

    def _sums_of(self, mean: Array, second: Array, pairs: Array, steps: Steps) -> dict[str, Any]:
        """Return the sums over the rows by name, from moments of the states (..., B, D) and (..., B, D, D).

        Parameters
        ----------
        pairs
            The sum of <s_{t-1} s_t'>, (..., D, D).
        """
        starts, after = steps.starts, steps.after
        previous, following = second[..., after - 1, :, :].sum(axis=-3), second[..., after, :, :].sum(axis=-3)
        found: dict[str, Any] = {
            "first_x": mean[..., starts, :].sum(axis=-2),
            "first_xx": second[..., starts, :, :].sum(axis=-3),
            "previous_xx": previous,
            "pairs": pairs,
            "next_xx": following,
            "n_first": float(starts.sum()),
            "n_steps": float(len(after)),
            **_sums_of_inputs(mean, steps),
        }
        if self._transition is not None:
            moved = self._transition @ pairs
            returned = self._transition @ previous @ self._transition.T
            found["residual_xx"] = following - moved - moved.swapaxes(-1, -2) + returned
        return found

    def infer(self, natural: Array) -> Inferred:
        """Overwrite natural parameters by expected statistics, each row independent under a standard Normal."""
        return super().infer(self._about_standard(natural))

    def _about_standard(self, natural: Array) -> Array:
        """Return natural parameters (E, B), overwritten, with those of a standard Normal: a row may be uninformative.

        A row may fix some directions very precisely; rounding would then lose the others.
        """
        quadratic = self.view(natural, StatisticKey(self._variable.name, "xx"))
        least = np.maximum(1.0, -2.0 * _LEAST * np.trace(quadratic))
        quadratic -= 0.5 * np.eye(self._size)[:, :, None] * least
        return natural

    def drawn(self, natural: Array, rng: np.random.Generator) -> Array:
        """Return statistics of draws for each distinct row, independent under a standard Normal."""
        states = self.distributions(self._about_standard(natural.copy()))[self._variable].sample(seed=rng)
        return np.concatenate([states.T, outer(states).reshape(len(states), -1).T])


_LEAST = 1e-8
"""Share of the precision of a row that every direction gets if the row is alone."""

_KNOWN = ("n_first", "n_steps", "inputs_xx")
"""Sums over the rows of known values only."""


def _sums_of_inputs(mean: Array, steps: Steps) -> dict[str, Array]:
    """Return the sums of products of inputs with states, from means (..., B, D), and with each other."""
    if steps.inputs is None:
        return {}
    inputs, after = steps.inputs[steps.after], steps.after
    return {
        "next_inputs": mean[..., after, :].swapaxes(-1, -2) @ inputs,
        "previous_inputs": mean[..., after - 1, :].swapaxes(-1, -2) @ inputs,
        "inputs_xx": inputs.T @ inputs,
    }


def spread_of_rows(of: Mapping[str, Array], transition: Array) -> Array:
    """Return what the uncertainty of a transition's rows says of the state before a step: <A' Q A> - <A>' Q <A>.

    It is positive semi-definite; what is below zero is rounding.

    Parameters
    ----------
    of
        Natural parameters of the statistics of steps, by name.
    transition
        The expected transition <A>.

    Raises
    ------
    ImproperError
        If it leaves the range of double precision, as after a draw from a vague prior.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        second = -2.0 * symmetric_part(of["previous_xx"])
        own = symmetric_part(second - of["pairs"] @ transition)
    if not np.isfinite(own).all():
        raise ImproperError("the steps of a chain of vectors leave the range of double precision")
    values, vectors = np.linalg.eigh(own)
    return (vectors * np.maximum(values, 0.0)[..., None, :]) @ vectors.swapaxes(-1, -2)
