r"""The factor of a linear Gaussian chain whose steps differ: labels choose them, other chains weigh them, or both.

What says how a step goes is hidden beside it, so that a step has statistics of its own: moments of its state, of the
state before and of both together. Terms of the rows meet them like those of any other hidden value.

Forecasts of a linear Gaussian chain whose steps a label chooses: exact means and covariances of a mixture.

With :math:`M_{tk} = \langle [z_t = k] (1, s_t, s_t s_t') \rangle` a step takes these moments to those of the next one,

.. math:: \langle [z_t = k] s_t s_t' \rangle = A_k W_k A_k' + \dots + Q_k^{-1} w_k, \qquad
    W_k = \sum_j p(z_t = k \mid z_{t-1} = j) \langle [z_{t-1} = j] s_{t-1} s_{t-1}' \rangle,

and of each step one linear Gaussian step with the same means, covariances and covariance with the step before is told.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .... import families
from ...._typing import AnyArray, Array
from ....families.chains.linear_gaussian_chain import StateMoments, told_by_inputs
from ....numerics.linalg import symmetric_part, times_vector
from ...design.inferred import Inferred
from ...design.keys import StatisticKey
from ...design.scratch import Scratch
from ..statistics import Arrays
from .chain import Ahead, Beside, Said
from .linear_gaussian_chain import LinearGaussianChainFactor, spread_of_rows
from .steps import Steps


@dataclass(frozen=True)
class _Smoothing:
    """Moments of the states, and statistics of each step by name, steps first."""

    moments: StateMoments
    of_steps: Mapping[str, Array]

    @property
    def entropy(self) -> float:
        return self.moments.entropy


class ChangingStepsFactor(LinearGaussianChainFactor):
    """The factor of a chain whose steps differ; what rows say of states and steps are natural parameters of theirs."""

    @property
    def _n_of_states(self) -> int:
        """Number of statistics of the state of a single row."""
        return self._size + self._size**2

    def smoothing(self, said: Said, scratch: Scratch) -> _Smoothing:
        return self._smoothing(self.path(said))

    def _smoothing(self, path: families.LinearGaussianChain) -> _Smoothing:
        moments = path.smoothing
        second = moments.covariance + moments.mean[:, :, None] * moments.mean[:, None, :]
        starts = np.array(path.starts, dtype=bool)
        found = self._statistics(moments.mean, second, path.pairs, starts)
        if self._transition is not None:
            # without the loss of digits of a difference
            found["residual_xx"] = path.residuals
        return _Smoothing(moments, found)

    def _statistics(self, mean: Array, second: Array, pairs: Array, starts: AnyArray) -> dict[str, Array]:
        """Return the statistics of each step, (..., B, ...), from moments (..., B, D) and (..., B, D, D)."""
        before = {name: _before(values, axis) for name, values, axis in (("x", mean, -2), ("xx", second, -3))}
        of = {
            "next_x": mean,
            "previous_x": before["x"],
            "next_xx": second,
            "previous_xx": before["xx"],
            "pairs": pairs,
        }
        if self._transition is not None:
            moved = self._transition @ pairs
            returned = self._transition @ before["xx"] @ self._transition.T
            of["residual_xx"] = second - moved - moved.swapaxes(-1, -2) + returned
        counted = ~starts
        counted[:1] = False
        found = {"n_steps": np.broadcast_to(counted.astype(np.float64), mean.shape[:-1])}
        for name in self._variable.by_step:
            if name in of:
                shape = (len(counted), *(1,) * (2 if name not in ("next_x", "previous_x") else 1))
                found[name] = of[name] * counted.reshape(shape)
        return found

    def _of_steps(self, natural: Array, sums: Mapping[Hashable, Array]) -> dict[str, Array]:
        """Return natural parameters of the statistics of first rows, and of those of each step, (B, ...)."""
        found = super()._of_steps(natural, sums)
        for name in self._variable.by_step:
            own = self.view(natural, StatisticKey(self._variable.name, name))
            found[name] = np.moveaxis(own, -1, 0)
        return found

    def _moves(self, of: Mapping[str, Array], steps: Steps) -> tuple[Array, Array, Array | None]:
        own = "next_xx" if self._transition is None else "residual_xx"
        noise_precision = -2.0 * symmetric_part(of[own])
        # a first row has no step, and what chooses it may say nothing
        noise_precision[steps.starts] = np.eye(self._size)
        noise_precision[:1] = np.eye(self._size)
        if self._transition is not None:
            return self._transition, noise_precision, None
        transition = np.asarray(
            np.linalg.solve(noise_precision, of["pairs"].swapaxes(-1, -2)), dtype=np.float64
        )
        spread = spread_of_rows(of, transition)
        return transition, noise_precision, spread

    def _told(self, of: Mapping[str, Array], steps: Steps) -> Array | float:
        if "next_x" not in of:
            return 0.0
        return told_by_inputs(of["next_x"], of["previous_x"], steps.starts)

    def _moments(self, mean: Array, second: Array, pairs: Array, steps: Steps) -> Array:
        states = super()._moments(mean, second, pairs, steps)
        found = self._statistics(mean, second, pairs, steps.starts)
        found["n_steps"] = np.zeros(mean.shape[:-1])
        changes = np.empty((len(mean), self.n_rows, mean.shape[1]))
        changes[:, : self._n_of_states] = states
        for own, each in zip(changes, range(len(mean)), strict=True):
            self._write(own, {name: values[each] for name, values in found.items()})
        return changes

    def _write(self, expected: Array, of_steps: Mapping[str, Array]) -> None:
        for name in self._variable.by_step:
            view = self.view(expected, StatisticKey(self._variable.name, name))
            view[...] = np.moveaxis(of_steps[name], 0, -1)

    def continued(self, path: families.LinearGaussianChain, ahead: Ahead) -> families.LinearGaussianChain:
        """Return the chain with a forecast: means and covariances are those of a mixture over the modes ahead.

        Each mode moves by its expected transition, with noise of its expected precision.
        """
        modes, is_counted, starts = self._modes(ahead), ahead.is_counted, ahead.steps.starts
        initial = path.initial_mean, inverse(path.initial_precision)
        found = steps_ahead(modes, is_counted, starts, path.mean, path.covariance, initial)
        linear, information = np.zeros(found.push.shape), np.zeros(found.transition.shape)
        linear[is_counted], information[is_counted] = path.linear, path.information
        found.transition[is_counted], found.precision[is_counted] = path.transition, path.noise_precision
        own = times_vector(found.precision, found.push)
        linear += told_by_inputs(own, -times_vector(found.transition.swapaxes(1, 2), own), starts)
        return replace(
            path,
            linear=linear,
            information=information,
            starts=starts,
            transition=found.transition,
            noise_precision=found.precision,
        )

    def _modes(self, ahead: Ahead) -> Modes:
        """Return how steps go in each mode, a combination of all labels that choose, and how probable these are."""
        steps, beside, n_rows = ahead.steps, ahead.beside, len(ahead.is_counted)
        choosers = list(
            dict.fromkeys(own.by for slot in self._variable.slots.values() for own in slot.chosen)
        )
        found = [_chances(by, steps, beside, n_rows) for by in choosers]
        sizes = [own.shape[1] for own, _ in found]
        n_modes = int(np.prod(sizes))
        labels = dict(zip(choosers, np.indices(sizes).reshape(len(sizes), n_modes), strict=True))
        probabilities, moves = np.ones((n_rows, n_modes)), np.ones((n_modes, n_modes))
        for by, (own, steps_of_label) in zip(choosers, found, strict=True):
            probabilities *= own[:, labels[by]]
            if steps_of_label is not None:
                moves *= steps_of_label[np.ix_(labels[by], labels[by])]
        are_chains = bool(found) and all(own is not None for _, own in found)

        def each(name: str) -> Array:
            """Return what is expected in a slot in each mode, (M, ...)."""
            slot, value = self._variable.slots[name], np.asarray(ahead.means[name])
            by_plate = {own.plate: own.by for own in slot.chosen}
            places = tuple(labels[by_plate[plate]] for plate in slot.node.plates if plate in by_plate)
            return value[places] if places else np.broadcast_to(value, (n_modes, *value.shape))

        precision, pushes = each("noise_precision"), np.zeros((n_modes, n_rows, self._size))
        if precision.ndim == 2:
            precision = precision[:, :, None] * np.eye(self._size)
        if steps.inputs is not None:
            pushes = np.einsum("kij,nj->kni", each("input_weights"), steps.inputs)
        transition, weights = each("transition"), self._variable.slots.get("weights")
        drift = None
        if weights is not None:
            name = weights.node.name
            mean = beside.means[name]
            parts = transition[0].reshape(self._size, len(mean), self._size).swapaxes(0, 1)
            spread = beside.paths[name].covariance if name in beside.paths else None
            drift = Drift(parts, mean.T, spread)
        return Modes(
            transition,
            inverse(precision),
            pushes,
            probabilities,
            moves if are_chains else None,
            drift,
        )

    def expected(self, smoothing: _Smoothing) -> Array:  # type: ignore[override]
        """Return moments of the states and of the steps, (E, B)."""
        states = super().expected(smoothing.moments)
        expected = np.empty((self.n_rows, states.shape[1]))
        expected[: self._n_of_states] = states
        self._write(expected, smoothing.of_steps)
        return expected

    def expected_of_path(self, path: families.LinearGaussianChain) -> Array:
        return self.expected(self._smoothing(path))

    def sums(self, smoothing: _Smoothing, steps: Steps) -> Arrays:  # type: ignore[override]
        return super().sums(smoothing.moments, steps)

    def beside_others(self, expected: Array, steps: Steps) -> Array:
        mean, second = self._of_rows(expected)
        found = expected.copy()
        self._write(
            found,
            self._statistics(mean, second, _before(mean, -2)[:, :, None] * mean[:, None, :], steps.starts),
        )
        return found

    def infer(self, natural: Array) -> Inferred:
        """Overwrite natural parameters by expected statistics, each row independent, without a step."""
        inferred = super().infer(natural)
        natural[self._n_of_states :] = 0.0
        return inferred

    def drawn(self, natural: Array, rng: np.random.Generator) -> Array:
        states = super().drawn(natural, rng)
        return np.concatenate([states, np.zeros((self.n_rows - len(states), states.shape[1]))])


def _before(values: Array, axis: int) -> Array:
    """Return the values of the row before each row; of the first one those of the last."""
    return np.roll(values, 1, axis=axis)


def _chances(by: Any, steps: Steps, beside: Beside, n_rows: int) -> tuple[Array, Array | None]:
    """Return the probabilities of the categories of a label in all rows, (N, K), and of its moves, if it is a chain."""
    if by.name in steps.choices:
        labels = np.asarray(steps.choices[by.name], dtype=np.intp)
        return np.eye(int(labels.max()) + 1)[labels], None
    means = beside.means.get(by.name)
    assert means is not None
    return means.reshape(-1, n_rows).T, beside.moves.get(by.name)


@dataclass(frozen=True)
class Drift:
    """A transition that is a weighted sum in each row.

    Attributes
    ----------
    parts
        The matrices, (P, D, D).
    mean, covariance
        Of their weights in each row, (N, P) and (N, P, P); no covariance if it is unknown. The weights of a row count
        as independent of those before it.
    """

    parts: Array
    mean: Array
    covariance: Array | None

    def transition(self, t: int) -> Array:
        """Return the expected transition to a row."""
        return np.einsum("k,kij->ij", self.mean[t], self.parts)

    def spread(self, t: int, second: Array) -> Array:
        """Return what the variance of a transition adds, from second moments (..., D, D) of the state before."""
        if self.covariance is None:
            return np.zeros(second.shape)
        return np.einsum("kl,kij,...jm,lnm->...in", self.covariance[t], self.parts, second, self.parts)


@dataclass(frozen=True)
class Modes:
    """How steps go in each of K modes, and how probable these are.

    Attributes
    ----------
    transition, covariance
        (K, D, D) each.
    pushes
        What is added in each row, (K, N, D).
    probabilities
        Of the modes in each row, (N, K).
    moves
        Of the next mode given the present one, (K, K); None if they are independent.
    drift
        What the transition is instead of that of the mode, if it drifts.
    """

    transition: Array
    covariance: Array
    pushes: Array
    probabilities: Array
    moves: Array | None = None
    drift: Drift | None = None


@dataclass(frozen=True)
class OneStep:
    """A linear Gaussian step for each of some rows: transition, precision of the noise, and what is added."""

    transition: Array
    precision: Array
    push: Array


def steps_ahead(
    modes: Modes,
    is_counted: AnyArray,
    starts: AnyArray,
    mean: Array,
    covariance: Array,
    initial: tuple[Array, Array],
) -> OneStep:
    """Return the steps to all rows, (N, ...); those to rows that count are not set.

    Parameters
    ----------
    modes
        See there.
    is_counted, starts
        Which rows have a distribution already, and where sequences begin, (N,).
    mean, covariance
        Of the states of the rows that count, (n, D) and (n, D, D).
    initial
        Mean and covariance of first states.
    """
    n_rows, size = len(is_counted), mean.shape[1]
    found = OneStep(
        np.zeros((n_rows, size, size)), np.tile(np.eye(size), (n_rows, 1, 1)), np.zeros((n_rows, size))
    )
    place = np.cumsum(is_counted) - 1
    moments: tuple[Array, Array, Array] | None = None
    for t in np.flatnonzero(~np.asarray(is_counted)).tolist():
        weights = modes.probabilities[t]
        if t == 0 or starts[t]:
            moments = _begun(weights, *initial)
            continue
        if is_counted[t - 1]:
            moments = _begun(modes.probabilities[t - 1], mean[place[t - 1]], covariance[place[t - 1]])
        assert moments is not None
        moments = _step(modes, t, moments, weights, found)
    return found


def _begun(weights: Array, mean: Array, covariance: Array) -> tuple[Array, Array, Array]:
    """Return the moments by mode of a state that is independent of the mode."""
    second = covariance + np.outer(mean, mean)
    return weights, weights[:, None] * mean, weights[:, None, None] * second


def _step(
    modes: Modes, t: int, before: tuple[Array, Array, Array], weights: Array, found: OneStep
) -> tuple[Array, Array, Array]:
    """Write the step to a row, and return the moments by mode after it."""
    if modes.moves is None:
        w0, w1, w2 = (np.multiply.outer(weights, own.sum(axis=0)) for own in before)
    else:
        w0, w1, w2 = (np.tensordot(modes.moves.T, own, axes=1) for own in before)
    a, push = modes.transition, modes.pushes[:, t]
    if modes.drift is not None:
        a = np.broadcast_to(modes.drift.transition(t), w2.shape)
    through = (a @ w1[:, :, None])[:, :, 0]
    first = through + w0[:, None] * push
    cross = through[:, :, None] * push[:, None, :]
    second = a @ w2 @ a.swapaxes(1, 2) + cross + cross.swapaxes(1, 2)
    second += w0[:, None, None] * (modes.covariance + push[:, :, None] * push[:, None, :])
    if modes.drift is not None:
        second += modes.drift.spread(t, w2)
    both = (a @ w2 + push[:, :, None] * w1[:, None, :]).sum(axis=0)
    old, new = before[1].sum(axis=0), first.sum(axis=0)
    spread = before[2].sum(axis=0) - np.outer(old, old)
    transition = np.linalg.solve(spread, (both - np.outer(new, old)).T).T
    noise = second.sum(axis=0) - np.outer(new, new) - transition @ spread @ transition.T
    found.transition[t], found.precision[t] = transition, inverse(0.5 * (noise + noise.T))
    found.push[t] = new - transition @ old
    return w0, first, second


def inverse(matrices: Array) -> Array:
    """Return the inverses of matrices (..., D, D)."""
    return np.asarray(np.linalg.inv(matrices), dtype=np.float64)
