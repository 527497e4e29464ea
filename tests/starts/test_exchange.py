"""No exchange of two components leads a default fit higher: an assignment holds for its end too."""

from itertools import combinations

import numpy as np
import pytest

import caviar as cv
from caviar.engine.design.keys import ColumnKey
from caviar.engine.starts import from_data as data_start
from caviar.engine.starts.exchange import labels_of
from caviar.engine.starts.guesses.assignment import rearranged
from caviar.engine.starts.guesses.from_labels import from_labels
from starts.registry import CASES


def _exchanged(labels, one, other):
    names = np.arange(labels.max() + 1)
    names[[one, other]] = other, one
    return names[labels]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["known weights of five counts", "weights 0.05, 0.25, 0.6 and 0.1"])
def test_no_exchange_of_two_components_leads_higher(name):
    """Each pair of clusters of the end is exchanged, and a fit begun there."""
    problem = CASES[name].problem()
    for seed in range(2):
        posterior = problem.model.fit(problem.data, seed=seed)
        labels = posterior.local(problem.data)["z"].probabilities.argmax(axis=1)
        others = [
            problem.model.fit(problem.data, init={"z": _exchanged(labels, *pair)}, seed=0).elbo
            for pair in combinations(range(labels.max() + 1), 2)
        ]
        assert posterior.elbo > max(others) - 0.1


def _settled(weights, counts, monkeypatch):
    """Return the basis of a fit with known weights, and clusters far apart with so many rows in each component."""
    labels = np.repeat(np.arange(len(counts)), counts)
    obs, k = cv.Plate("obs"), cv.Plate("k", len(counts))
    z = cv.Categorical("z", weights, plates=obs)
    model = cv.Model(cv.Normal("x", cv.Normal("mu", 0, 1e-4, plates=k)[z], 1.0, plates=obs))
    seen = []
    candidates = data_start._candidates
    monkeypatch.setattr(data_start, "_candidates", lambda basis: seen.append(basis) or candidates(basis))
    model.fit({"x": 50.0 * labels}, seed=0, max_iter=0)
    basis = seen[-1]
    return basis, np.round(basis.sample.columns[ColumnKey("x")] / 50).astype(int)


def test_clusters_are_given_to_the_weights_that_their_sizes_fit(monkeypatch):
    """Rows are the same in all but number, so the largest cluster belongs to the largest weight."""
    basis, labels = _settled([0.2, 0.5, 0.3], [70, 10, 20], monkeypatch)
    (gate,) = basis.gates
    first = rearranged(basis, {gate.variable: labels}, from_labels)[0][gate.variable]
    sizes = np.bincount(first, basis.sample.row_weights)
    np.testing.assert_array_equal(sizes, [10, 70, 20])


def test_no_exchange_is_tried_of_components_that_are_alike(monkeypatch):
    """Of two components with equal weights and priors it makes no difference which one has which cluster."""
    basis, labels = _settled([0.3, 0.3, 0.25, 0.15], [31, 29, 25, 15], monkeypatch)
    (gate,) = basis.gates
    own = {gate.variable: labels}
    tried = [
        tuple(np.argsort([found[gate.variable][labels == c][0] for c in range(4)]))
        for found in rearranged(basis, own, from_labels)
    ]
    assert tried
    assert (1, 0, 2, 3) not in tried


def test_the_labels_of_a_start_are_those_it_was_made_from(monkeypatch):
    basis, labels = _settled([0.2, 0.5, 0.3], [20, 50, 30], monkeypatch)
    (gate,) = basis.gates
    problem, q, _ = from_labels(basis, {gate.variable: labels})
    np.testing.assert_array_equal(labels_of(basis, (problem, q))[gate.variable], labels)
