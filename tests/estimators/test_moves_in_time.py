"""Moves that the order of rows shows: rows by themselves would not tell that a state is two."""

import numpy as np
import pytest

import caviar as cv
import caviar.estimators.automatic.best as best
from caviar.estimators.automatic.pace import Pace
from caviar.estimators.automatic.proposals import THOROUGH, Proposal, applied
from caviar.estimators.automatic.search import Found, _Search
from caviar.estimators.automatic.sequences import badly_explained, stays_in_halves


def stays(means, each, seed=0):
    """Return rows of stays with these means along the first column, and the number of the stay of each."""
    rng = np.random.default_rng(seed)
    number = np.repeat(np.arange(len(means)), each)
    rows = rng.normal(size=(len(number), 2))
    rows[:, 0] += np.asarray(means)[number]
    return rows, number


def searching(monkeypatch, X, labels, lengths=None):
    """Return a search that is at the fit that begins at these states."""
    kept = []

    def search(problem, start, generator, tell, pace):
        size = labels.max() + 1
        found = problem.fit(size, {"z": np.eye(size)[labels]})
        kept.append(_Search(problem, generator, tell, found, size, Pace()))
        return Found(found, size, ())

    monkeypatch.setattr(best, "search", search)
    cv.HiddenMarkovModel("auto", random_state=0, covariance_prior=np.eye(2)).fit(X, lengths=lengths)
    return kept[0]


def test_a_state_is_cut_between_its_stays(monkeypatch):
    """Two states one and a half standard deviations apart, in stays of 25 rows, taken for one."""
    X, number = stays([0.0, 9.0, 1.5, 9.0] * 3, 25)
    found = searching(monkeypatch, X, number % 2)
    before = found.posterior.elbo
    assert all(own.gain < 0 for own in found.split_proposals(THOROUGH))
    assert found.try_in_time()
    assert found.n_components == 3
    assert found.posterior.elbo > before + 10
    move = found.moves[-1]
    assert (move.kind, move.accepted, move.n_components) == ("split", True, 3)
    shares = found.responsibilities.argmax(axis=1).reshape(3, 4, 25)
    assert len({tuple(own) for own in np.median(shares, axis=2).astype(int).tolist()}) == 1


def test_a_stretch_that_is_badly_explained_becomes_a_state(monkeypatch):
    X, number = stays([0.0, 9.0, 0.0, 9.0], 40)
    X[60:68] += [-4.0, 5.0]
    found = searching(monkeypatch, X, number % 2)
    monkeypatch.setattr(
        type(found.problem), "moves_in_time", only("birth", type(found.problem).moves_in_time)
    )
    assert found.try_in_time()
    assert found.moves[-1].kind == "birth"
    labels = found.responsibilities.argmax(axis=1)
    assert len(set(labels[60:68])) == 1
    assert np.count_nonzero(labels == labels[60]) == 8


def only(kind, moves_in_time):
    return lambda *arguments: [own for own in moves_in_time(*arguments) if own[0] == kind]


def test_no_stay_goes_on_from_one_sequence_to_the_next():
    points = np.repeat([0.0, 5.0, 0.0, 5.0], 3)[:, None]
    starts = np.arange(12) % 3 == 0
    ((k, share),) = stays_in_halves(np.ones((12, 1)), points, np.ones(12), starts)
    assert k == 0
    np.testing.assert_array_equal(
        share, share[0] * (points[:, 0] == points[0, 0]) + (1 - share[0]) * (points[:, 0] != points[0, 0])
    )
    assert not list(stays_in_halves(np.ones((12, 1)), points, np.ones(12), np.arange(12) == 0))


def test_stretches_are_within_sequences_and_worst_first():
    rng = np.random.default_rng(0)
    logits = rng.normal(scale=0.01, size=(60, 1))
    logits[40:46] -= 5.0
    logits[20:26] -= 3.0
    starts = np.isin(np.arange(60), [0, 22])
    found = list(badly_explained(np.ones((60, 1)), logits, np.ones(60), starts))
    assert [(length, k) for length, k, _ in found] == [(6, 0), (15, 0)]
    np.testing.assert_array_equal(np.flatnonzero(found[0][2]), np.arange(40, 46))
    for _, _, share in found:
        rows = np.flatnonzero(share)
        assert rows[0] >= 22 or rows[-1] < 22


def test_a_birth_takes_rows_of_all_states():
    rng = np.random.default_rng(0)
    shares = rng.dirichlet(np.ones(3), 10)
    new = np.repeat([1.0, 0.0], 5)
    after = applied([Proposal("birth", (0,), 0.0, new, "in 5 rows")], shares, np.ones(10))
    assert after.shape == (10, 4)
    np.testing.assert_allclose(after.sum(axis=1), 1.0)
    np.testing.assert_allclose(after[:5].max(axis=1), 1.0)
    np.testing.assert_allclose(np.sort(after[5:], axis=1)[:, 1:], np.sort(shares[5:], axis=1))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_searches_end_no_lower_than_without(monkeypatch, seed):
    X, _ = stays(np.random.default_rng(seed).choice([0.0, 1.5, 6.0, 9.0], 24), 15, seed)
    found = cv.HiddenMarkovModel("auto", random_state=0).fit(X).elbo_
    monkeypatch.setattr(_Search, "try_in_time", lambda self: False)
    assert found >= cv.HiddenMarkovModel("auto", random_state=0).fit(X).elbo_ - 1e-6
