r"""Markov chains: the distribution of hidden states given a log-likelihood for each step.

.. math::
    q(s) \propto \prod_{t\ \mathrm{first}} \pi_{s_t} \prod_{t\ \mathrm{not\ first}} A_{s_{t-1} s_t} \prod_t b_{t s_t}

with rows t of one or several sequences, one after the other. None of the factors needs to be normalised.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

import numpy as np

from caviar._errors import ImproperError
from caviar._extras import can_compile
from caviar._typing import AnyArray, Array
from caviar.families.base.family import Seed, Size, draw_shape
from caviar.families.chains.paths import StatePaths
from caviar.families.chains.pieces import Pieces, sequences_of
from caviar.numerics.cached import cached_property

_SMALLEST = 1e-100
"""Sums of scaled messages below this may have lost paths to underflow: logarithms are taken instead."""

_LOWEST = -700.0
"""Logarithm whose exponential is a normal number."""

_STEPS_A_SCALE = 4
"""Steps after which messages are scaled: a quarter of the calls for it, and what is lost shows in the next scale."""

_MOST_COMPILED = 32
"""States up to which compiled loops are faster than products of matrices."""

_WORTH_COMPILED = 20_000
"""Rows times states from which on they save more time than the import of what compiles them takes."""

_LONGEST_UNCUT = 1 / 1_500
"""Steps of the longest sequence, per row and squared state, up to which cutting it costs more than it saves."""

_PER_PIECE = 15_000
"""Rows and squared states that the calls for a piece, and for a step of all pieces, take as long as."""


Workspace: TypeAlias = Callable[[str, tuple[int, ...]], Array]
"""Gives a contiguous array by name and shape, whatever is in it."""


class ImpossiblePathError(ImproperError):
    """No path is possible in a sequence: it begins at row ``begin``, and no state can be reached at row ``row``."""

    def __init__(self, begin: int, row: int) -> None:
        super().__init__(
            f"no path of hidden states is possible in the sequence that begins at row {begin}: the states that row "
            f"{row} allows cannot follow those before it."
        )
        self.begin, self.row = begin, row

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.begin, self.row)


def _new(name: str, shape: tuple[int, ...]) -> Array:
    return np.empty(shape)


@dataclass(frozen=True)
class Smoothing:
    r"""Results of smoothing a chain.

    Attributes
    ----------
    marginals
        :math:`q(s_t = k)`, shape (N, K).
    first
        :math:`\sum q(s_t = k)` over the first steps of the sequences, shape (K,).
    pairs
        :math:`\sum_t q(s_{t-1} = k, s_t = l)` within the sequences, shape (K, K).
    log_partition
        Log of the sum over all paths, nats.
    entropy
        Of all paths, nats.
    """

    marginals: Array
    first: Array
    pairs: Array
    log_partition: float
    entropy: float


@dataclass(frozen=True)
class MarkovChain(StatePaths):
    """Distribution of the paths of one or several hidden sequences.

    Parameters
    ----------
    logits
        Log-likelihood of each row in each state, shape (N, K), up to a constant for each row.
    starts
        Whether a sequence begins at a row, shape (N,); one begins at the first row in any case.
    log_initial
        Log-weight of each first state, shape (K,); minus infinity where it is impossible.
    log_transition
        Log-weight of each step, shape (K, K), from the row's state to the column's.

    Raises
    ------
    ImproperError
        In any method, if no path is possible.

    Notes
    -----
    The time is O(N K^2), and O(N K^3) where sequences are cut to be scanned in pieces at once; see :func:`smooth`.

    Examples
    --------
    >>> A, B = np.array([[0.7, 0.3], [0.4, 0.6]]), np.array([[0.1, 0.4, 0.5], [0.6, 0.3, 0.1]])
    >>> chain = MarkovChain(
    ...     np.log(B[:, [0, 1, 2]].T), np.array([True, False, False]), np.log([0.6, 0.4]), np.log(A)
    ... )
    >>> print(round(chain.log_partition, 6), chain.mode())
    -3.392872 [1 0 0]
    >>> chain.probabilities.round(4)
    array([[0.2317, 0.7683],
           [0.6241, 0.3759],
           [0.864 , 0.136 ]])
    """

    logits: Array
    starts: AnyArray
    log_initial: Array
    log_transition: Array

    @cached_property
    def smoothing(self) -> Smoothing:
        """Everything that follows from the messages forward and backward."""
        return smooth(self.logits, self.starts, self.log_initial, self.log_transition)

    @property
    def probabilities(self) -> Array:
        """Probability of each state at each row, shape (N, K)."""
        return self.smoothing.marginals

    @property
    def log_partition(self) -> float:
        """Log of the sum over all paths."""
        return self.smoothing.log_partition

    def entropy(self) -> float:
        """Return the entropy of all paths together, in nats."""
        return self.smoothing.entropy

    def mode(self) -> AnyArray:
        """Return the most probable path, shape (N,): one joint state for all rows, by the Viterbi recursion."""
        pieces = Pieces.uncut(self.starts)
        shifted, _ = _shifted(self.logits)
        shifted, n_rows = shifted[pieces.order], len(shifted)
        best = np.empty(shifted.shape)
        origin = np.zeros(shifted.shape, dtype=np.intp)
        for rows, before in pieces.steps():
            if before is None:
                best[rows] = self.log_initial + shifted[rows]
                continue
            reached = best[before][:, :, None] + self.log_transition
            origin[rows] = reached.argmax(axis=1)
            best[rows] = np.take_along_axis(reached, origin[rows][:, None, :], axis=1)[:, 0] + shifted[rows]
        path = np.empty(n_rows, dtype=np.intp)
        chosen = np.zeros(0, dtype=np.intp)
        for rows, _ in reversed(list(pieces.steps())):
            ended = best[rows][len(chosen) :].argmax(axis=1)
            chosen = np.concatenate([chosen, ended])
            path[pieces.order[rows]] = chosen
            chosen = origin[rows][np.arange(len(chosen)), chosen]
        return path

    def sample(self, size: Size = None, seed: Seed = None) -> AnyArray:
        """Return paths, shape size + (N,): forward over the rows, then each state given the one after it."""
        rng = np.random.default_rng(seed)
        first = self._is_first
        shifted, _ = _shifted(self.logits)
        forward = np.empty(shifted.shape)
        for t in range(len(shifted)):
            before = self.log_initial
            if not first[t]:
                before = _log_product(forward[t - 1 : t], self.log_transition)[0]
            forward[t] = before + shifted[t]
            forward[t] -= _log_sum(forward[t], 0)
        paths = np.empty(draw_shape(size, (len(shifted),)), dtype=np.intp)
        for t in reversed(range(len(shifted))):
            logits = forward[t]
            if t + 1 < len(shifted) and not first[t + 1]:
                logits = logits + self.log_transition.T[paths[..., t + 1]]
            # the largest of logits with Gumbel noise is a draw
            paths[..., t] = (logits + rng.gumbel(size=(*paths.shape[:-1], logits.shape[-1]))).argmax(axis=-1)
        return paths

    def log_density(self, value: Any) -> Array:
        """Return the log-probability of paths (..., N), of shape (...)."""
        paths, first = np.asarray(value, dtype=np.intp), self._is_first
        steps = np.empty(paths.shape)
        steps[..., first] = self.log_initial[paths[..., first]]
        steps[..., ~first] = self.log_transition[paths[..., :-1][..., ~first[1:]], paths[..., ~first]]
        return (steps + self.logits[np.arange(len(first)), paths]).sum(axis=-1) - self.log_partition


def _shifted(logits: Array, array: Workspace = _new) -> tuple[Array, Array]:
    """Return the logits less the largest of each row, states first in memory, and these."""
    largest = logits.max(axis=1)
    if not np.isfinite(largest).all():
        row = int(np.flatnonzero(~np.isfinite(largest))[0])
        raise ImproperError(f"row {row} has no finite log-likelihood in any state; got {logits[row]}.")
    shifted = array("shifted", logits.shape[::-1]).T
    return np.subtract(logits, largest[:, None], out=shifted), largest


def smooth(
    logits: Array,
    starts: AnyArray,
    log_initial: Array,
    log_transition: Array,
    array: Workspace = _new,
    weights: Array | None = None,
) -> Smoothing:
    """Return marginals, sums of pairs, log-partition and entropy; the arguments are those of :class:`MarkovChain`.

    Parameters
    ----------
    weights
        How often each sequence counts in the sums, in the log-partition and in the entropy, (N,), the same at all rows
        of a sequence; None for once.
    array
        Gives a contiguous array of a name and a shape to work in, a new one or one that is there; the marginals are
        returned in one of them.

    Raises
    ------
    ImpossiblePathError
        If no path is possible.

    Notes
    -----
    A long sequence is cut into about sqrt(N) pieces. The product of each piece's step matrices is found for all
    pieces at once; messages then pass from piece to piece, and last inside all pieces at once. Messages are
    scaled in each step. Where that may lose a path to underflow they are found again as logarithms, sequences uncut.
    With the extra ``caviar[compiled]``, many rows with few states are gone through by compiled loops.
    """
    if logits.size >= _WORTH_COMPILED and logits.shape[1] <= _MOST_COMPILED and can_compile():
        found = _smooth_in_loops(logits, starts, log_initial, log_transition, array, weights)
        if found is not None:
            return found
    shifted, largest = _shifted(logits, array)
    parts = _sums_of_scaled(shifted, starts, log_initial, log_transition, array, weights)
    if parts is None:
        parts = _sums_by_logarithm(shifted, starts, log_initial, log_transition, weights)
    marginals, first, pairs, log_partition = parts
    counted = marginals.T if weights is None else marginals.T * weights
    # the largest logit of each row is left out of both, to keep all digits
    expected = _dot(counted, shifted.T) + _dot(first, log_initial) + _dot(pairs, log_transition)
    return Smoothing(
        marginals,
        first,
        pairs,
        log_partition + float(_weighted(largest, weights).sum()),
        max(log_partition - expected, 0.0),
    )


def _weighted(values: Array, weights: Array | None) -> Array:
    """Return values of rows, each as often as its sequence counts."""
    return values if weights is None else values * weights.reshape(-1, *(1,) * (values.ndim - 1))


def _dot(weights: Array, logarithms: Array) -> float:
    """Return the sum of products; zero times minus infinity is zero."""
    if np.isfinite(logarithms).all():
        return float(np.vdot(weights, logarithms))
    return float(np.vdot(weights, np.where(weights > 0, logarithms, 0.0)))


_Sums = tuple[Array, Array, Array, float]
"""Marginals, first, pairs, log-partition."""


def _sums_of_scaled(
    shifted: Array,
    starts: AnyArray,
    log_initial: Array,
    log_transition: Array,
    array: Workspace,
    weights: Array | None,
) -> _Sums | None:
    r"""Return the sums from scaled messages, or None where a scale is such that paths may be lost.

    With :math:`\hat\alpha_t = b_t \circ A' \hat\alpha_{t-1} / c_t`, any scales :math:`c_t` for which the last one has
    sum one, and :math:`w_t = b_t \circ \hat\beta_t / c_t`, :math:`\hat\beta_{t-1} = A w_t`, marginals are
    :math:`\hat\alpha_t \circ \hat\beta_t` and pairs :math:`A \circ \sum_t \hat\alpha_{t-1} w_t'`. What underflows in
    :math:`\hat\alpha` mattered only where :math:`\hat\beta` is huge.
    """
    pieces = Pieces.of(starts, _longest_piece(starts, shifted.shape))
    place = np.empty_like(pieces.order)
    place[pieces.order] = np.arange(len(place))
    likelihood = array("likelihood", shifted.shape)
    likelihood[place] = shifted
    _exponentials(likelihood, likelihood)
    # what cannot be scaled is found by the smallest scale
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        initial, transition = np.exp(log_initial), np.exp(log_transition)
        into, out_of = _between_pieces(pieces, likelihood, initial, transition)
        first = np.where(pieces.is_first[:, None], initial, into @ transition)
        forward = array("forward", shifted.shape)
        scale = _forward(pieces, likelihood, first, transition, forward)
        if not scale.min() > _SMALLEST:
            return None
        likelihood /= scale[:, None]
        backward = array("backward", shifted.shape)
        _backward(pieces, likelihood, forward, out_of, transition, backward)
        if not backward.max() < 1.0 / _SMALLEST:
            return None
        backward *= forward
    begins, _ = sequences_of(starts)
    marginals = array("marginals", shifted.shape[::-1]).T
    marginals[pieces.order] = backward
    # a first state has no predecessor, although another row may be before it
    likelihood[place[begins]] = 0.0
    log_scale, first = np.log(scale), marginals[begins]
    if weights is not None:
        ordered = weights[pieces.order]
        likelihood *= ordered[:, None]
        log_scale *= ordered
        first = _weighted(first, weights[begins])
    before = np.take(forward, place[pieces.order - 1], axis=0, out=backward, mode="clip")
    pairs = transition * (before.T @ likelihood)
    return marginals, first.sum(axis=0), pairs, float(log_scale.sum())


def _smooth_in_loops(
    logits: Array,
    starts: AnyArray,
    log_initial: Array,
    log_transition: Array,
    array: Workspace,
    weights: Array | None,
) -> Smoothing | None:
    """Return the same by compiled loops over the steps of each sequence, or None where paths may be lost."""
    from .compiled_messages import padded, pass_messages

    begins, _ = sequences_of(starts)
    n_rows, n_states = logits.shape
    initial, transition = np.exp(log_initial), np.exp(log_transition)
    steps = padded(transition)
    marginals, pairs = array("marginals", (n_states, n_rows)), np.empty_like(steps)
    counts = np.ones(n_rows) if weights is None else np.asarray(weights, dtype=np.float64)
    log_scale, largest, expected = pass_messages(
        np.ascontiguousarray(logits.T),
        np.append(begins, n_rows),
        counts,
        padded(initial),
        steps,
        padded(transition.T),
        _SMALLEST,
        array("memory", (n_rows * (n_states + steps.shape[1] + 2),)),
        marginals,
        pairs,
    )
    if np.isnan(log_scale):
        return None
    first, pairs = marginals[:, begins] @ counts[begins], transition * pairs[:, :n_states]
    expected += _dot(first, log_initial) + _dot(pairs, log_transition)
    return Smoothing(marginals.T, first, pairs, log_scale + largest, max(log_scale - expected, 0.0))


def _exponentials(logarithms: Array, out: Array) -> None:
    """Write exponentials, none of which underflows; that of minus infinity is zero."""
    excluded = np.isneginf(logarithms) if logarithms.min() == -np.inf else None
    np.exp(np.maximum(logarithms, _LOWEST, out=out), out=out)
    if excluded is not None:
        np.copyto(out, 0.0, where=excluded)


def _longest_piece(starts: AnyArray, shape: tuple[int, ...]) -> int:
    """Return the steps of the pieces that sequences are cut into."""
    n_rows, n_states = shape
    longest = int(sequences_of(starts)[1].max())
    piece = int(np.ceil(np.sqrt(longest)))
    cutting = _LONGEST_UNCUT * (_PER_PIECE * piece + n_rows * n_states**2)
    return piece if longest > max(1.0, cutting) else longest


def _forward(pieces: Pieces, likelihood: Array, first: Array, transition: Array, forward: Array) -> Array:
    """Write the messages forward, and return what each was divided by; ``first`` are those into the pieces.

    A message has the sum one in some of the steps, and at the end of a piece.
    """
    scale, one = np.ones(len(likelihood)), np.ones(len(transition))
    for step, (rows, before) in enumerate(pieces.steps()):
        message = forward[rows]
        if before is None:
            np.multiply(first, likelihood[rows], message)
        else:
            # the method: steps are short, and half the time of matmul goes before its product
            forward[before].dot(transition, message)
            np.multiply(message, likelihood[rows], message)
        if step % _STEPS_A_SCALE == 0:
            own = scale[rows]
            message.dot(one, own)
            np.divide(message, own[:, None], message)
    own = forward[pieces.last] @ one
    scale[pieces.last] *= own
    forward[pieces.last] /= own[:, None]
    return scale


def _backward(
    pieces: Pieces, scaled: Array, forward: Array, out_of: Array, transition: Array, backward: Array
) -> None:
    """Write the messages backward; likelihoods, divided by the scales, are multiplied by these in place."""
    returning, last = transition.T.copy(), pieces.last
    backward[last] = out_of / (forward[last] * out_of).sum(axis=1, keepdims=True)
    for rows, before in reversed(list(pieces.steps())):
        onward = scaled[rows]
        np.multiply(onward, backward[rows], onward)
        if before is not None:
            onward.dot(returning, backward[before])


def _between_pieces(
    pieces: Pieces, likelihood: Array, initial: Array, transition: Array
) -> tuple[Array, Array]:
    """Return the messages into each piece and back into it from behind, (pieces, K) each."""
    n_states = len(initial)
    into, out_of = np.full((2, pieces.n_pieces, n_states), 1.0 / n_states)
    if not pieces.successions:
        return into, out_of
    products, log_scale = _products(pieces, likelihood, initial, transition)
    for here, before in pieces.successions:
        weights = np.log(into[before]) + log_scale[before]
        message = _exp_scaled(weights)[:, None, :] @ products[before]
        into[here] = message[:, 0] / message[:, 0].sum(axis=-1, keepdims=True)
    for here, before in reversed(pieces.successions):
        message = (products[here] @ out_of[here][:, :, None])[:, :, 0]
        out_of[before] = _exp_scaled(np.log(message) + log_scale[here])
    return into, out_of


def _exp_scaled(logarithms: Array) -> Array:
    return np.exp(logarithms - logarithms.max(axis=-1, keepdims=True))


def _products(pieces: Pieces, likelihood: Array, initial: Array, transition: Array) -> tuple[Array, Array]:
    """Return the product of the step matrices of each piece, (pieces, K, K), its rows scaled, and their log-scales.

    The first step of a sequence leads from any state to the initial ones.
    """
    n_states = len(initial)
    # pieces last, for they are many and states are few: from, to, piece
    products = np.where(pieces.is_first, initial[:, None], transition[:, :, None])
    ordered = np.ascontiguousarray(likelihood.T)
    scales = np.ones((len(pieces.edges) - 1, n_states, pieces.n_pieces))
    for step, (rows, before) in enumerate(pieces.steps()):
        n = rows.stop - rows.start
        moving = products[:, :, :n] if before is None else transition.T @ products[:, :, :n]
        moving *= ordered[:, rows]
        scale = np.add.reduce(moving, axis=1, out=scales[step, :, :n])
        # a row of zeros starts where no path continues
        np.divide(moving, np.maximum(scale, np.finfo(float).tiny)[:, None, :], out=products[:, :, :n])
    return np.ascontiguousarray(np.moveaxis(products, 2, 0)), np.log(scales).sum(axis=0).T


def _sums_by_logarithm(
    shifted: Array, starts: AnyArray, log_initial: Array, log_transition: Array, weights: Array | None = None
) -> _Sums:
    """Return the same from messages whose logarithms are taken: tens of times slower, and without underflow."""
    pieces = Pieces.uncut(starts)
    ordered = shifted[pieces.order]
    forward, behind = np.empty(shifted.shape), np.zeros(shifted.shape)
    # minus infinity less minus infinity means what is impossible either way
    with np.errstate(divide="ignore", invalid="ignore"):
        for rows, before in pieces.steps():
            predicted = log_initial if before is None else _log_product(forward[before], log_transition)
            forward[rows] = predicted + ordered[rows]
        for rows, before in reversed(list(pieces.steps())):
            if before is not None:
                behind[before] = _log_product(ordered[rows] + behind[rows], log_transition.T)
        unordered = np.empty_like(pieces.order)
        unordered[pieces.order] = np.arange(len(ordered))
        forward, behind = forward[unordered], behind[unordered]
        total = _log_sum(forward + behind, 1)
        if not np.isfinite(total).all():
            _refuse_impossible(total, forward, starts)
        marginals = np.exp(forward + behind - total[:, None])
        begins, _ = sequences_of(starts)
        within = np.setdiff1d(np.arange(1, len(shifted)), begins)
        onward = (shifted + behind - total[:, None])[within]
        own = None if weights is None else weights[within]
        pairs = np.stack(
            [
                _weighted(np.exp(forward[within - 1, k, None] + log_transition[k] + onward), own).sum(axis=0)
                for k in range(len(log_initial))
            ]
        )
    at_begins = None if weights is None else weights[begins]
    first, total = _weighted(marginals[begins], at_begins), _weighted(total[begins], at_begins)
    return marginals, first.sum(axis=0), pairs, float(total.sum())


def _refuse_impossible(total: Array, forward: Array, starts: AnyArray) -> NoReturn:
    """Say in which sequence no path is possible, from the messages forward, and from which row on."""
    if not np.isneginf(total[~np.isfinite(total)]).all():
        raise ImproperError("the log-weights of the paths of hidden states are not numbers.")
    first = int(np.argmax(np.isneginf(total)))
    begins, _ = sequences_of(starts)
    begin = int(begins[np.searchsorted(begins, first, side="right") - 1])
    raise ImpossiblePathError(begin, begin + int(np.argmax(np.isneginf(forward[begin:].max(axis=1)))))


def _log_product(log_vectors: Array, log_matrix: Array) -> Array:
    """Return the logarithm of vectors (n, K) times a matrix."""
    return _log_sum(log_vectors[:, :, None] + log_matrix, 1)


def _log_sum(logarithms: Array, axis: int) -> Array:
    """Return the logarithm of the sum of exponentials; SciPy's takes ten times as long where there are few."""
    largest = logarithms.max(axis=axis, keepdims=True)
    # a sum of nothing but zeros is zero
    largest[np.isneginf(largest)] = 0.0
    with np.errstate(divide="ignore"):
        return (np.log(np.exp(logarithms - largest).sum(axis=axis, keepdims=True)) + largest).squeeze(axis)
