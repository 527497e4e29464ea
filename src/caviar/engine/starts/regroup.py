"""Regroup: the winner of the race of an ordinary mixture against itself with clusters merged and split."""

from __future__ import annotations

from .clustering.partitions import alike, whitened
from .clustering.regrouping import regrouped
from .exchange import best_with, labels_of
from .guesses.basis import Basis
from .race import Begun

__all__ = ["regroup"]


_ROUNDS = 3
"""Times that clusters are merged and split: the next move may be possible after the first."""

_MOST_COLUMNS = 50
_MOST_NUMBERS = 200_000
"""Points times their columns times clusters up to which it is tried: of many rows each further start is dear."""

_SAME = 0.999
"""Share of the points on which labels agree that have not been regrouped."""


def regroup(basis: Basis, begun: Begun) -> Begun:
    """Return where a fit begins, or where one leads with some clusters merged and others split, whichever is higher.

    Likelihoods are left as they are: a component of few rows may raise one without a bound.

    Parameters
    ----------
    basis
        The model and its sample.
    begun
        With global factors that have nearly settled on the sample.
    """
    if not basis.is_plain or len(basis.gates) != 1 or basis.has_states or basis.problem.point:
        return begun
    (gate,) = basis.gates
    (cloud,) = basis.clouds(gate)
    n_columns = cloud.points.shape[1]
    if gate.size < 3 or n_columns > _MOST_COLUMNS or cloud.points.size * gate.size > _MOST_NUMBERS:
        return begun
    white = whitened(cloud.points, cloud.weights)
    shape = gate.shape(basis.problem, basis.sample.n_rows)
    for _ in range(_ROUNDS if white.size else 0):
        labels = labels_of(basis, begun.start)[gate.variable].ravel()
        several = regrouped(white, cloud.weights, labels, gate.size, basis.rng)
        if not several:
            break
        winner = best_with(basis, begun, [{gate.variable: own.reshape(shape)} for own in several])
        if alike(labels, labels_of(basis, winner.start)[gate.variable].ravel(), cloud.weights, _SAME):
            break
        begun = winner
    return begun
