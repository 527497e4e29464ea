r"""How the states of hidden sequences respond to changes of what their steps and rows say.

It is the derivative of each line of the messages forward and of the smoothing backward. With :math:`a_t` the filtered
probabilities, :math:`p_t = a_{t-1} A` the predicted ones and :math:`g_t` the smoothed ones,

.. math::
    a_t \propto p_t \, l_t, \qquad g_t = a_t \, A (g_{t+1} / p_{t+1}), \qquad
    \mathrm{pairs} = \sum_t a_t \, A \, (g_{t+1} / p_{t+1})'
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from caviar._typing import AnyArray, Array
from caviar.families.markov_chain import Pieces


@dataclass(frozen=True)
class MarkovResponse:
    """Probabilities of the states, and how they and the sums over the rows change.

    Attributes
    ----------
    marginals
        Probabilities, (N, K).
    changes
        Theirs, (D, N, K).
    first, pairs
        Changes of the sums of first states, (D, K), and of pairs of successive ones, (D, K, K).
    """

    marginals: Array
    changes: Array
    first: Array
    pairs: Array


def response_of_smoothing(
    logits: Array,
    starts: AnyArray,
    log_initial: Array,
    log_transition: Array,
    changes: Array,
    changes_of_initial: Array,
    changes_of_transition: Array,
) -> MarkovResponse:
    """Return how the states respond to D changes.

    Parameters
    ----------
    logits, starts, log_initial, log_transition
        Those of :class:`~caviar.families.MarkovChain`: (N, K), (N,), (K,) and (K, K).
    changes, changes_of_initial, changes_of_transition
        Of the logits and of the logarithms, (D, N, K), (D, K) and (D, K, K).
    """
    pieces = Pieces.uncut(starts)
    likelihood = np.exp(logits - logits.max(axis=1, keepdims=True))[pieces.order]
    said = changes[:, pieces.order]
    initial, transition = np.exp(log_initial - log_initial.max()), np.exp(log_transition)
    of_transition = transition * changes_of_transition
    filtered, predicted = np.empty(likelihood.shape), np.empty(likelihood.shape)
    moved, moved_prediction = np.empty(said.shape), np.empty(said.shape)
    for rows, before in pieces.steps():
        if before is None:
            predicted[rows] = initial
            moved_prediction[:, rows] = (initial * changes_of_initial)[:, None]
        else:
            predicted[rows] = filtered[before] @ transition
            moved_prediction[:, rows] = moved[:, before] @ transition + filtered[before] @ of_transition
        joint = predicted[rows] * likelihood[rows]
        change = moved_prediction[:, rows] * likelihood[rows] + joint * said[:, rows]
        total = joint.sum(axis=1, keepdims=True)
        filtered[rows] = joint / total
        moved[:, rows] = (change - filtered[rows] * change.sum(axis=2, keepdims=True)) / total
    return _smoothed(pieces, transition, of_transition, filtered, predicted, moved, moved_prediction)


def _smoothed(
    pieces: Pieces,
    transition: Array,
    of_transition: Array,
    filtered: Array,
    predicted: Array,
    moved: Array,
    moved_prediction: Array,
) -> MarkovResponse:
    """Return the response, from the messages forward and their changes."""
    smoothed, change = filtered.copy(), moved.copy()
    n_changes, n_states = len(moved), len(transition)
    pairs = np.zeros((n_changes, n_states, n_states))
    for rows, before in reversed(list(pieces.steps())):
        if before is None:
            continue
        possible = predicted[rows] > 0
        ratio = np.divide(smoothed[rows], predicted[rows], out=np.zeros(possible.shape), where=possible)
        moved_ratio = change[:, rows] - ratio * moved_prediction[:, rows]
        moved_ratio = np.divide(
            moved_ratio,
            predicted[rows],
            out=np.zeros(moved_ratio.shape),
            where=np.broadcast_to(possible, moved_ratio.shape),
        )
        own, moved_own = filtered[before], moved[:, before]
        ahead = ratio @ transition.T
        moved_ahead = moved_ratio @ transition.T + ratio @ of_transition.swapaxes(1, 2)
        smoothed[before] = own * ahead
        change[:, before] = moved_own * ahead + own * moved_ahead
        beside = moved_own.swapaxes(1, 2) @ ratio + own.T @ moved_ratio
        pairs += transition * beside + of_transition * (own.T @ ratio)
    marginals, changes = np.empty(smoothed.shape), np.empty(change.shape)
    marginals[pieces.order], changes[:, pieces.order] = smoothed, change
    return MarkovResponse(marginals, changes, changes[:, pieces.begins].sum(axis=1), pairs)
