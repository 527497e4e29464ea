r"""Assignment: clusters of a start given to the components whose priors, or known values, they fit best.

Where components differ, a partition says which rows belong together but not to whom. The gain of component j from
cluster k is its log marginal likelihood,

.. math:: A(\eta_j + S_k) - A(\eta_j) + \log \frac{\Gamma(\alpha_j + N_k)}{\Gamma(\alpha_j)}

with the last part :math:`N_k \langle \log \pi_j \rangle` where the weights are no Dirichlet. It is found as the part of
the ELBO that belongs to the component after its own update, which is the same where one factor holds all of its
parameters, and a bound elsewhere. The clusters are shifted from component to component: K updates give all pairs.

An expected log density in the place of the marginal chooses wrongly where priors differ in width: it scores a broad
prior by its mean.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from itertools import permutations
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.special import gammaln

from ...._errors import ImproperError
from ...._typing import AnyArray, Array
from ....families.base.family import safe_log
from ....language import Axis, Dirichlet, Plate, Variable
from ...ascent.problem import Problem, statistics_of
from ...design.keys import ColumnKey
from ..components.differences import differs_in_components
from ..components.gates import Gate
from ..components.steps import in_steps
from ..factors.prior import own_natural
from ..factors.swept import Swept
from .basis import Basis, Guess

_OF_A_LABEL = 1e6
"""Nats that a row of weight one with a known label gains in that component: more than its values contribute."""

_MOST_LOST = 10.0
"""Nats that an exchange of two clusters may lose at first."""

_MOST_EXCHANGES = 3
_ALL_SEQUENCES = 4
"""Categories of which all sequences are tried."""

_NOTHING = 1e-6
"""Nats below which an exchange changes nothing: the two components are alike."""

_ROUNDS = 2
"""Rounds over the gates of a model that has several: the place of one's clusters depends on those of the others."""


def assigned(basis: Basis, guess: Guess, sweep: Callable[[Basis, Guess], Swept]) -> Guess:
    """Return labels with the numbers of the components that their clusters fit best; known labels at their values.

    Parameters
    ----------
    basis
        The model and its sample.
    guess
        Labels, whose numbers mean nothing yet.
    sweep
        Returns the globals after their updates with given labels.
    """
    guessed = [gate for gate in basis.gates if gate.variable in guess and gate.variable.plates]
    gates = [gate for gate in guessed if basis.differs(gate) or gate.has_known_labels]
    found = dict(guess)
    for _ in range(_ROUNDS if len(gates) > 1 else 1):
        for gate in gates:
            found[gate.variable] = _placed(basis, gate, found, sweep)
    return found


def rearranged(basis: Basis, labels: Guess, sweep: Callable[[Basis, Guess], Swept]) -> list[Guess]:
    """Return labels of clusters that are given to other components than their own, those that fit best first.

    They are the best assignment of the clusters of each gate whose components differ, where that is another one, and
    exchanges of two clusters that lose little: rows that change over afterwards may bring that back.

    Parameters
    ----------
    labels
        The component of each repetition of the gates.
    """
    found: list[Guess] = []
    for gate in basis.gates:
        if gate.variable not in labels or not basis.differs(gate) or gate.size == 1:
            continue
        own = labels[gate.variable]
        fit = _fit(basis, gate, labels, sweep)
        if fit is None:
            continue
        known = _known_labels(basis, gate)
        others = [_renamed(own, names, known) for names in _orders(basis, gate, own, fit)]
        guesses = [{**labels, gate.variable: other} for other in others if not np.array_equal(other, own)]
        if gate.is_asked_in_turn:
            others = [_renamed(own, names, known) for names in _sequences(gate.size)]
            guesses += _best_of(basis, [{**labels, gate.variable: other} for other in others], sweep)
        found += guesses
    return found


def _renamed(labels: AnyArray, names: AnyArray, known: AnyArray | None) -> AnyArray:
    """Return labels of clusters by the names of their components, known labels at their values."""
    return names[labels] if known is None else np.where(known >= 0, known, names[labels])


def _best_of(basis: Basis, guesses: Sequence[Guess], sweep: Callable[[Basis, Guess], Swept]) -> list[Guess]:
    """Return the guesses from which the objective is highest after a sweep, a few of them."""
    scored = [(-objective(sweep(basis, guess)), number) for number, guess in enumerate(guesses)]
    return [guesses[number] for _, number in sorted(scored)[:_MOST_EXCHANGES]]


def _orders(basis: Basis, gate: Gate, labels: AnyArray, fit: Array) -> Iterator[AnyArray]:
    """Yield the component of each cluster, (K,): the best order, and exchanges of two that lose little."""
    best = _best_order(basis, gate, labels, fit)
    yield best
    lost = np.diag(fit)[:, None] + np.diag(fit) - fit - fit.T
    one, other = np.triu_indices(gate.size, 1)
    by_loss = np.argsort(lost[one, other], kind="stable")
    near = [pair for pair in by_loss if _NOTHING < abs(lost[one[pair], other[pair]]) < _MOST_LOST]
    for pair in near[:_MOST_EXCHANGES]:
        names = np.arange(gate.size)
        names[[one[pair], other[pair]]] = other[pair], one[pair]
        if not np.array_equal(names, best):
            yield names


def _sequences(size: int) -> Iterator[AnyArray]:
    """Yield other places of clusters in a sequence of questions, (K,): all of few, else with one at another place.

    The last two share a question, so that their order does not matter.
    """
    if size <= _ALL_SEQUENCES:
        every = (np.array(names) for names in permutations(range(size)))
    else:
        moved = (np.insert(np.delete(np.arange(size), a), b, a) for a, b in permutations(range(size), 2))
        every = (np.argsort(order) for order in moved)
    for names in every:
        if np.argmax(names == size - 2) < np.argmax(names == size - 1) and np.any(names != np.arange(size)):
            yield names


def _placed(basis: Basis, gate: Gate, guess: Guess, sweep: Callable[[Basis, Guess], Swept]) -> AnyArray:
    """Return the labels of one gate with the numbers of the components that its clusters fit best, the others kept."""
    labels = guess[gate.variable]
    fit = _fit(basis, gate, guess, sweep)
    if fit is None:
        return labels
    known = _known_labels(basis, gate)
    return _renamed(labels, _best_order(basis, gate, labels, fit), known)


def _fit(basis: Basis, gate: Gate, guess: Guess, sweep: Callable[[Basis, Guess], Swept]) -> Array | None:
    """Return how well each cluster (rows) fits each component (columns), besides the steps of a chain, in nats."""
    labels, size = guess[gate.variable], gate.size
    fit = np.zeros((size, size))
    if differs_in_components(basis.problem, gate):
        found = _component_gains(basis, gate, guess, sweep)
        if found is None:
            return None
        fit = found
    weights = basis.weights(gate)
    known = _known_labels(basis, gate)
    if known is not None:
        told = known.ravel() >= 0
        np.add.at(fit, (labels.ravel()[told], known.ravel()[told]), _OF_A_LABEL * weights[told])
    if not gate.variable.summed:
        counts: Array = np.bincount(labels.ravel(), weights, size).astype(np.float64)
        fit = fit + _weight_gains(basis, gate, counts)
    return fit


def _best_order(basis: Basis, gate: Gate, labels: AnyArray, fit: Array) -> AnyArray:
    """Return the component of each cluster, (K,), in the assignment that fits best."""
    if gate.has_table_of_steps:
        return in_steps(basis.problem, basis.sample, gate, labels, fit, basis.rng)
    return linear_sum_assignment(fit, maximize=True)[1]


def _known_labels(basis: Basis, gate: Gate) -> AnyArray | None:
    """Return the labels that came with the data, -1 where unknown, or None."""
    if gate.has_known_labels:
        return basis.sample.columns[ColumnKey(gate.variable.name)]
    return None


def _component_gains(
    basis: Basis, gate: Gate, guess: Guess, sweep: Callable[[Basis, Guess], Swept]
) -> Array | None:
    """Return the gain of each component (columns) from each cluster (rows), (K, K); None if there is no update."""
    size = gate.size
    shifts = [{**guess, gate.variable: (guess[gate.variable] + shift) % size} for shift in range(size)]
    try:
        of_shifts = _with_the_same_shared(gate, [sweep(basis, shifted) for shifted in shifts])
    except ImproperError:
        return None
    gain = np.empty((size, size))
    for shift, found in enumerate(of_shifts):
        gain[(np.arange(size) - shift) % size, np.arange(size)] = _gains(gate, *found)
    return gain if np.isfinite(gain).all() else None


def _with_the_same_shared(gate: Gate, of_shifts: list[Swept]) -> list[Swept]:
    """Return sweeps in which what components share is that of the best: a common precision is low where none fits."""
    of_components = [v for v in of_shifts[0][0].order if any(p in v.batch_plates for p in gate.chosen)]
    shared = [v for v in of_shifts[0][0].order if v not in of_components and v is not gate.variable]
    if not shared or not of_components:
        return of_shifts
    best = max(of_shifts, key=objective)[1]
    found = []
    for problem, q, arrays in of_shifts:
        own, statistics = {**q, **{variable: best[variable] for variable in shared}}, dict(arrays)
        for variable in shared:
            statistics.update(problem.statistics(variable, own[variable]))
        for variable in of_components:
            own[variable] = problem.update(variable, statistics)
            statistics.update(problem.statistics(variable, own[variable]))
        found.append((problem, own, statistics))
    return found


def objective(swept: Swept) -> float:
    """Return the objective of globals, the labels given."""
    problem, q, arrays = swept
    entropies = sum(problem.own_entropy(variable, factor) for variable, factor in q.items())
    total = sum(term.contraction.value(arrays) for term in problem.compiled.terms) + entropies
    return total if np.isfinite(total) else -np.inf


def _gains(
    gate: Gate, problem: Problem, q: Mapping[Variable, Any], arrays: Mapping[Hashable, Array]
) -> Array:
    """Return the part of the ELBO that belongs to each component: expected log densities, and entropies, shape (K,)."""
    total, others = np.zeros(gate.size), {gate.variable, *gate.steps}
    for term in problem.compiled.terms:
        if term.owner in others:
            continue
        for axis in gate.axes:
            along = term.contraction.along(axis, arrays)
            if along is not None:
                total = total + along
                break
    for variable, factor in q.items():
        plate = next((plate for plate in gate.chosen if plate in variable.batch_plates), None)
        if plate is not None and variable not in others:
            total = total + _entropy(problem, variable, factor, plate, arrays)
    return total


def _entropy(
    problem: Problem, variable: Variable, factor: Any, plate: Plate, arrays: Mapping[Hashable, Array]
) -> Array | float:
    """Return what the factor of each repetition along a plate alone adds to the objective."""
    if factor.learnt is None:
        own = (contraction.along(Axis(plate), arrays) for contraction in problem.base_of(variable))
        return sum((value for value in own if value is not None), 0.0)
    turned = np.moveaxis(factor.entropy_about_base(), variable.batch_plates.index(plate), 0)
    return turned.reshape(len(turned), -1).sum(axis=1)


def _weight_gains(basis: Basis, gate: Gate, counts: Array) -> Array:
    """Return what the weights of components (columns) gain by clusters of these sizes (rows)."""
    if "probabilities" not in gate.variable.slots:
        return np.zeros((len(counts), gate.size))
    node = gate.variable.slots["probabilities"].node
    problem = basis.problem
    if (
        isinstance(node, Dirichlet)
        and node in problem.order
        and not node.plates
        and node not in problem.point
    ):
        prior = own_natural(problem, node, statistics_of(problem, basis.q))[0]
        return gammaln(prior + counts[:, None]) - gammaln(prior)
    return counts[:, None] * _expected_log_weights(basis, gate, node)


def _expected_log_weights(basis: Basis, gate: Gate, node: Any) -> Array:
    """Return the expected log probability of each category under the prior, averaged over plates."""
    if node in basis.q:
        logs = basis.q[node].expected_statistics[0]
    elif isinstance(known := basis.problem.bound.of(node).values, np.ndarray):
        logs = safe_log(known)
    else:
        return np.zeros(gate.size)
    return np.broadcast_to(logs, (*np.shape(logs)[:-1], gate.size)).reshape(-1, gate.size).mean(axis=0)
