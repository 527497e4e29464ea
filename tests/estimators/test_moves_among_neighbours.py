"""Moves settled among few components and their rows: what they are judged by, and that the rest stays as it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import caviar as cv
from caviar.engine.ascent.schedules import beyond_saddles
from caviar.engine.ascent.schedules.moves.swaps import Mixture
from caviar.estimators.automatic import search as searches
from caviar.estimators.automatic.memory import Memory
from caviar.estimators.automatic.problem import Problem
from caviar.estimators.automatic.proposals import Proposal, split_of
from caviar.estimators.automatic.restricted import Neighbourhoods, Settled, apart

RNG = np.random.default_rng(3)
CENTRES = 9.0 * np.array([[i, j] for i in range(3) for j in range(2)])
LABELS = np.arange(360) % 6
X = CENTRES[LABELS] + RNG.normal(size=(360, 2))


def problem(X: Any = X) -> Problem:
    def model_of(size: int) -> cv.Model:
        return cv.models.gaussian_mixture(2, size, concentration=np.ones(size))

    return Problem(model_of, X, np.ones(len(X)), 200, 1e-8)


def test_a_move_far_from_all_others_gains_what_the_whole_mixture_does() -> None:
    rows = problem()
    # two clusters in one component
    shares = np.eye(5)[np.where(LABELS == 5, 4, LABELS)]
    before = rows.fit(5, {"z": shares})
    shares = rows.responsibilities(before)
    own = int(shares[LABELS == 5][0].argmax())
    cut = np.where(LABELS == 5, 1.0, 0.0)
    near = Neighbourhoods(rows, shares, {})
    end = near.settled(Proposal("split", (own,), 0.0, cut), 10.0)
    assert own in end.components
    assert len(end.components) == 2
    after = near.with_moves([end])
    assert after.shape == (360, 6)
    np.testing.assert_allclose(after.sum(axis=1), 1.0)
    whole = rows.fit(6, {"z": after})
    # both parts know 120 rows; the weights of all components are the same in neither
    assert end.gain == pytest.approx(whole.elbo - before.elbo, abs=2.0)
    assert end.gain > 50
    worse = near.settled(_halved(own, shares), 1e9)
    assert worse.gain < 0


def _halved(own: int, shares: Any) -> Proposal:
    """Return a cut of a cluster that is one."""
    other = (own + 1) % shares.shape[1]
    return Proposal("split", (other,), 0.0, (np.arange(len(shares)) % 2).astype(float))


def test_neighbours_share_rows() -> None:
    shares = np.zeros((6, 4))
    shares[:2, 0], shares[2:4, 1], shares[4:, 2:] = 1.0, 1.0, 0.5
    near = Neighbourhoods(problem(X[:6]), shares, {})
    assert near.around([2]) == (2, 3)
    shares[1] = [0.8, 0.1, 0.1, 0.0]
    assert Neighbourhoods(problem(X[:6]), shares, {}).around([0]) == (0, 1, 2)


def test_a_component_by_itself_can_be_deleted() -> None:
    rows, shares = problem(), np.eye(6)[LABELS]
    near = Neighbourhoods(rows, shares, {})
    end = near.settled(Proposal("delete", (0,), 0.0), 1e9)
    assert end.gain < -50
    assert near.with_moves([end]).shape == (360, 5)


def test_moves_whose_neighbourhoods_meet_are_not_made_together() -> None:
    def end(*components: int) -> Settled:
        return Settled(Proposal("merge", components[:2], 0.0), components, 1.0, np.empty((0, 0)))

    first, second, third = end(0, 1), end(1, 2), end(3, 4)
    assert apart([first, second, third]) == [first, third]


@pytest.mark.parametrize("structure", [pytest.param("full", marks=pytest.mark.slow), "diag"])
def test_searches_by_neighbourhoods_find_the_same_clusters(
    monkeypatch: pytest.MonkeyPatch, structure: str
) -> None:
    tried: list[int] = []
    settled = Neighbourhoods.settled

    def counted(self: Neighbourhoods, *own: Any) -> Settled:
        tried.append(1)
        return settled(self, *own)

    monkeypatch.setattr(Neighbourhoods, "settled", counted)
    monkeypatch.setattr(searches, "_MANY", 3)
    monkeypatch.setattr(searches, "_LARGE", 0)
    found = cv.BayesianGaussianMixture("auto", covariance_type=structure, random_state=0).fit(X)
    assert found.n_components_ == 6
    assert tried
    assert all(move.elbo_after > move.elbo_before for move in found.moves_ if move.accepted)


def test_columns_of_several_kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searches, "_MANY", 2)
    monkeypatch.setattr(searches, "_LARGE", 0)
    table = cv.data.Table(np.column_stack([X[:, 0], LABELS % 2]), ("x", "kind"), {"kind": ("even", "odd")})
    found = cv.MixedMixture("auto", random_state=0).fit(table)
    assert len(found.weights_) >= 3


def search_of(shares: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a search that has begun at shares, and is large."""
    monkeypatch.setattr(searches, "_MANY", 3)
    monkeypatch.setattr(searches, "_LARGE", 0)
    rows = problem()
    begun = rows.fit(shares.shape[1], {"z": shares}, max_iter=5)
    generator = np.random.default_rng(0)
    return searches._Search(rows, generator, lambda move: None, begun, shares.shape[1], searches.Pace())


def test_a_fit_among_neighbours_does_not_look_for_saddle_points(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []
    monkeypatch.setattr(beyond_saddles, "beyond_saddle", lambda *own: looks.append(1))
    rows, shares = problem(), np.eye(6)[LABELS]
    assert Neighbourhoods(rows, shares, {}).settled(_halved(0, shares), 1e9).gain < 0
    assert not looks
    rows.fit(6, {"z": (shares + 0.1) / 1.6})
    assert looks


def test_moves_that_lose_more_than_can_come_back_are_not_fitted_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = search_of(np.eye(6)[LABELS], monkeypatch)
    tried: list[int] = []
    monkeypatch.setattr(own, "try_from", lambda start, proposals: tried.append(len(proposals)))

    def end(k: int, gain: float) -> Settled:
        return Settled(Proposal("split", (k,), 0.0), (k,), gain, np.ones((len(X), 2)))

    near = Neighbourhoods(own.sample, own.responsibilities, {})
    own._try_settled(near, [end(0, 20.0), end(1, -10.0), end(2, -30.0), end(3, -60.0)])
    # four together, two, the best of them, and the second by itself
    assert tried == [4, 2, 1, 1]


def test_what_a_move_lost_is_known_until_its_components_change() -> None:
    memory, shares = Memory(np.ones(len(X))), np.eye(6)[LABELS]
    move = Proposal("split", (0,), 0.0)
    memory.refuse(Proposal("merge", (0, 1), 0.0), shares, -50.0)
    memory.refuse(move, shares, -100.0)
    moved = shares.copy()
    moved[np.flatnonzero(LABELS == 0)[:2]] = np.eye(6)[5]
    assert not memory.was_refused(move, moved)
    assert memory.gain_among_neighbours(move, moved) == -100.0
    moved[np.flatnonzero(LABELS == 0)[:9]] = np.eye(6)[5]
    assert memory.gain_among_neighbours(move, moved) is None


def test_a_move_whose_loss_is_known_is_settled_only_where_it_is_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = search_of(np.eye(6)[LABELS], monkeypatch)
    near = Neighbourhoods(own.sample, own.responsibilities, {})
    settled: list[Any] = []

    def counted(proposal: Proposal, loss: float) -> Settled:
        settled.append(proposal.components)
        return Settled(proposal, proposal.components, -90.0, np.ones((len(X), 2)))

    monkeypatch.setattr(near, "settled", counted)
    monkeypatch.setattr(own, "try_from", lambda start, proposals: len(proposals) == 3)
    first = Settled(Proposal("split", (0,), 0.0), (0,), 20.0, np.ones((len(X), 2)))
    known = [Settled(Proposal("split", (k,), 0.0), (k,), -80.0, None) for k in (1, 2)]
    meets = near.expected(Proposal("merge", (0, 1), 0.0), -85.0)
    assert set(meets.components) >= {0, 1}
    assert meets.shares is None
    assert own._try_settled(near, [first, *known, meets])
    assert settled == [(1,), (2,)]


def test_components_of_which_a_split_was_refused_are_not_fitted(monkeypatch: pytest.MonkeyPatch) -> None:
    own = search_of(np.eye(6)[LABELS], monkeypatch)
    fitted: list[int] = []

    def counted(k: int, *others: Any) -> Any:
        fitted.append(k)
        return split_of(k, *others)

    monkeypatch.setattr(searches, "split_of", counted)
    for k in (1, 4):
        own.memory.refuse(Proposal("split", (k,), 0.0), own.responsibilities)
    cut: list[Any] = []
    cuts = Mixture.cuts

    def told(self: Mixture, each: int = 2, some: Any = None) -> Any:
        cut.append(some)
        return cuts(self, each, some)

    monkeypatch.setattr(Mixture, "cuts", told)
    own.fitted_splits()
    assert fitted == [0, 2, 3, 5]
    assert cut == [[0, 2, 3, 5]]


def test_merges_of_a_mixture_are_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    own = search_of(np.eye(6)[LABELS], monkeypatch)
    assert own.merge_proposals() is own.merge_proposals()
