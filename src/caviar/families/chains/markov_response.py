r"""How the states of hidden sequences respond to changes of what their steps and rows say.

Given the data, the states are a Markov chain again, with marginals :math:`g_t` and transitions
:math:`B_t(i, j) \propto A_{ij}\, l_t(j)\, \beta_t(j)`. A change of the logarithms, :math:`\psi_t(i, j)` of each step,
moves the transitions by what it says of all that is still to come,

.. math::
    h_{t-1}(i) = \sum_j B_t(i, j) \, [\psi_t(i, j) + h_t(j)], \qquad
    \delta B_t(i, j) = B_t(i, j) \, [\psi_t(i, j) + h_t(j) - h_{t-1}(i)],

and these the marginals, :math:`\delta g_t = B_t' \, \delta g_{t-1} + \delta B_t' \, g_{t-1}`. Both recursions are
linear. From each step its mean change is left out, which moves nothing, so that h does not grow with the sequence.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from caviar._typing import AnyArray, Array
from caviar.families.chains.markov_chain import Pieces
from caviar.families.chains.recursions import directions, linear_recursion


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
        Changes of the sums of first states, (D, K), and of pairs of successive ones, (D, K, K); if the steps differ, of
        the pairs of each step, (D, N, K, K).
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
    weights: Array | None = None,
) -> MarkovResponse:
    """Return how the states respond to D changes.

    Parameters
    ----------
    logits, starts, log_initial, log_transition
        Those of :class:`~caviar.families.MarkovChain`: (N, K), (N,), (K,) and (K, K), or (N, K, K) if the steps differ.
    changes, changes_of_initial, changes_of_transition
        Of the logits and of the logarithms, (D, N, K), (D, K) and (D, K, K) or (D, N, K, K).
    weights
        How often each sequence counts in the sums, (N,), the same at all rows of a sequence; None for once.
    """
    begins = np.array(starts, dtype=bool)
    begins[0] = True
    likelihood = np.exp(logits - logits.max(axis=1, keepdims=True))
    steps, first = given_the_data(likelihood, begins, log_initial, np.exp(log_transition))
    marginals = linear_recursion(steps.swapaxes(1, 2), first[:, :, None])[:, :, 0]
    before = np.concatenate([np.zeros_like(marginals[:1]), marginals[:-1]])
    pairs = before[:, :, None] * steps
    said = np.ascontiguousarray(np.moveaxis(changes, 0, 2))
    of_transition = np.moveaxis(changes_of_transition, 0, -1)
    each = "nijd" if of_transition.ndim == 4 else "ijd"
    # what a step changes on average, from each state before it: (N, K, D)
    told = steps @ said + np.einsum(f"nij,{each}->nid", steps, of_transition)
    average = np.einsum("ni,nid->nd", before, told)[:, None, :]
    told = np.where(begins[:, None, None], 0.0, told - average)
    backward = np.concatenate([np.zeros_like(steps[:1]), steps[:0:-1]])
    ahead = linear_recursion(backward, np.concatenate([np.zeros_like(told[:1]), told[:0:-1]]))[::-1]
    earlier = np.concatenate([np.zeros_like(ahead[:1]), ahead[:-1]])
    own = said + ahead
    moved = marginals[:, :, None] * (own - average)
    moved += np.einsum(f"nij,{each}->njd", pairs, of_transition) - pairs.swapaxes(1, 2) @ earlier
    at_first = own[begins] + changes_of_initial.T
    moved[begins] = marginals[begins][:, :, None] * (
        at_first - np.einsum("ni,nid->nd", marginals[begins], at_first)[:, None, :]
    )
    found = linear_recursion(steps.swapaxes(1, 2), moved)
    found_before = np.concatenate([np.zeros_like(found[:1]), found[:-1]])
    first_steps = found[begins] if weights is None else found[begins] * weights[begins][:, None, None]
    changes_of_states, first_sum = np.moveaxis(found, 2, 0), first_steps.sum(axis=0).T
    if of_transition.ndim == 4:
        of_pairs = _of_each_step(found_before, steps, pairs, changes_of_transition, own - average, earlier)
        return MarkovResponse(marginals, changes_of_states, first_sum, of_pairs)
    if weights is not None:
        pairs, found_before = pairs * weights[:, None, None], found_before * weights[:, None, None]
    of_pairs = _of_all_steps(found_before, steps, pairs, changes_of_transition, own - average, earlier)
    return MarkovResponse(marginals, changes_of_states, first_sum, of_pairs)


def _of_each_step(
    before: Array, steps: Array, pairs: Array, of_transition: Array, onward: Array, earlier: Array
) -> Array:
    """Return the changes of the pairs of each step, (D, N, K, K)."""
    return (
        np.einsum("nid,nij->dnij", before, steps)
        + pairs * of_transition
        + np.einsum("nij,njd->dnij", pairs, onward)
        - np.einsum("nij,nid->dnij", pairs, earlier)
    )


def _of_all_steps(
    before: Array, steps: Array, pairs: Array, of_transition: Array, onward: Array, earlier: Array
) -> Array:
    """Return the changes of the sums of pairs, (D, K, K)."""
    return (
        np.einsum("nid,nij->dij", before, steps)
        + pairs.sum(axis=0) * of_transition
        + np.einsum("nij,njd->dij", pairs, onward)
        - np.einsum("nij,nid->dij", pairs, earlier)
    )


def given_the_data(
    likelihood: Array, begins: AnyArray, log_initial: Array, transition: Array
) -> tuple[Array, Array]:
    """Return the transitions into each row given the data, (N, K, K), and the probabilities of first states, (N, K).

    Both are zero elsewhere: transitions at the first rows, and probabilities at all others.
    """
    # the messages back from each row, of the one before it; what is before a first row is not concerned
    backward = transition * likelihood[:, None, :]
    backward[begins] = 1.0
    after = np.ones(likelihood.shape)
    after[:-1] = directions(backward[:0:-1])[::-1]
    if not after.any(axis=1).all():
        after = _step_by_step(likelihood, begins, transition)
    ahead = likelihood * after
    steps = transition * ahead[:, None, :]
    total = steps.sum(axis=2, keepdims=True)
    np.divide(steps, total, out=steps, where=total > 0)
    steps[begins] = 0.0
    first = np.zeros(likelihood.shape)
    first[begins] = np.exp(log_initial - log_initial.max()) * ahead[begins]
    first[begins] /= first[begins].sum(axis=1, keepdims=True)
    return steps, first


def _step_by_step(likelihood: Array, begins: AnyArray, transition: Array) -> Array:
    """Return the messages back one after another, where products of many steps leave the range of numbers."""
    pieces = Pieces.uncut(begins)
    after, weighed = np.ones(likelihood.shape), likelihood[pieces.order]
    for rows, before in reversed(list(pieces.steps())):
        weighed[rows] *= after[rows]
        if before is not None:
            own = (
                weighed[rows] @ transition.T
                if transition.ndim == 2
                else (transition[pieces.order[rows]] @ weighed[rows][:, :, None])[:, :, 0]
            )
            after[before] = own / own.max(axis=1, keepdims=True)
    found = np.empty_like(after)
    found[pieces.order] = after
    return found
