"""Passes over documents with the topics of the other blocks: beside literal loops, and as many as a fit has."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import caviar as cv
from caviar.engine.topics import documents as of_documents
from caviar.engine.topics.passes import left_out
from caviar.engine.topics.passes.left_out import LeftOutTopics

ALPHA, ETA = np.array([0.3, 0.7, 0.2]), 0.05


def documents(n_docs: int) -> sparse.csr_array:
    counts = np.random.default_rng(0).poisson(0.8, (n_docs, 11)).astype(float)
    counts[1] = 0
    return sparse.csr_array(counts)


def literal_pass(
    counts: np.ndarray,
    weights: np.ndarray,
    blocks: list[np.ndarray],
    of_documents: np.ndarray,
    sums: list[np.ndarray],
    ahead: np.ndarray,
    discount: float,
) -> None:
    """Update documents (D, K) and sums (V, K) of each block, one document at a time."""
    for number, block in enumerate(blocks):
        others = ahead + sum(own for other, own in enumerate(sums) if other != number)
        phi = others / others.sum(axis=0)
        fresh = np.zeros_like(ahead)
        for d in block:
            for last in [False] * left_out._UPDATES + [True]:
                theta = np.maximum(of_documents[d] - discount, 0) + ALPHA
                shares = theta * phi / (phi @ theta)[:, None]
                if last:
                    fresh += weights[d] * counts[d][:, None] * shares
                else:
                    of_documents[d] = counts[d] @ shares
        sums[number] = fresh


@pytest.mark.parametrize("weights", [None, np.linspace(0.5, 3.0, 40)], ids=["once", "weighted"])
def test_passes_are_those_of_literal_loops(weights: np.ndarray | None) -> None:
    counts, n_passes = documents(40), 6
    topics = LeftOutTopics(counts, weights, ALPHA, np.array(ETA), np.random.default_rng(5), n_passes)
    rng = np.random.default_rng(5)
    drawn = rng.exponential(left_out._DRAWN, (11, 3))
    blocks = [own.documents for own in topics._blocks]
    assert len(blocks) >= 8
    dense = counts.toarray()
    of_documents = np.repeat(dense.sum(axis=1)[:, None] / 3, 3, axis=1)
    sums = [np.zeros((11, 3)) for _ in blocks]
    weighted = np.ones(40) if weights is None else weights
    for number, discount in enumerate((0, 0, 0, 1 / 6, 1 / 3, 1 / 2)):
        order = rng.permutation(len(blocks))
        in_order = [sums[own] for own in order]
        ahead = ETA + (0 if number else drawn)
        literal_pass(
            dense,
            weighted,
            [blocks[own] for own in order],
            of_documents,
            in_order,
            ahead + np.zeros((11, 3)),
            discount,
        )
        for place, own in enumerate(order):
            sums[own] = in_order[place]
        topics.sweep()
        np.testing.assert_allclose(topics.of_documents, of_documents, atol=2e-3)
        np.testing.assert_allclose(topics.of_words, sum(sums), atol=5e-3)
    theta = of_documents + ALPHA
    theta /= theta.sum(axis=1, keepdims=True)
    phi = topics.of_words + ETA
    phi /= phi.sum(axis=0)
    told = (dense * np.log(theta @ phi.T)).sum(axis=1) + np.log(theta) @ ALPHA
    assert topics.bound() == pytest.approx(weighted @ told + ETA * np.log(phi).sum(), rel=1e-4)


def test_responsibilities_are_those_of_the_points() -> None:
    counts = documents(12)
    topics = LeftOutTopics(counts, None, ALPHA, np.array(ETA), np.random.default_rng(5), 2)
    topics.sweep()
    phi = topics.of_words + ETA
    phi /= phi.sum(axis=0)
    entries = counts.tocoo()
    wanted = (topics.of_documents + ALPHA)[entries.row] * phi[entries.col]
    wanted /= wanted.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(topics.responsibilities(), wanted, rtol=1e-4)


@pytest.mark.parametrize(("max_iter", "n_passes"), [(1, 1), (5, 5), (40, 30)])
def test_a_fit_of_few_passes_has_few_before_it(
    monkeypatch: pytest.MonkeyPatch, max_iter: int, n_passes: int
) -> None:
    made, sweep = [], LeftOutTopics.sweep
    monkeypatch.setattr(LeftOutTopics, "sweep", lambda topics: made.append(sweep(topics)))
    # one beginning; how many there are depends on the size of the work, a number for each count and topic
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(of_documents, "n_trials", lambda own, size: asked.append((own.nnz, size)) or 1)
    monkeypatch.setattr(of_documents, "_LIGHT", 0)
    counts = documents(30)
    model = cv.models.latent_dirichlet_allocation(3, 11)
    model.fit({"word": counts}, seed=0, max_iter=max_iter, uncertainty="mean_field")
    assert len(made) == n_passes
    assert asked == [(counts.nnz, 3)]


def test_a_sample_has_as_many_passes_as_take_the_time_of_those_of_the_fit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made, sweep = [], LeftOutTopics.sweep
    monkeypatch.setattr(LeftOutTopics, "sweep", lambda topics: made.append(sweep(topics)))
    monkeypatch.setattr(of_documents, "_LIGHT", 0)
    monkeypatch.setattr(of_documents, "n_trials", lambda *_: 1)
    counts = documents(40)
    # a quarter of the documents is kept for the passes
    monkeypatch.setattr(of_documents, "_MOST_NUMBERS", counts.nnz * 3 // 4)
    model = cv.models.latent_dirichlet_allocation(3, 11)
    model.fit({"word": counts}, seed=0, max_iter=2, uncertainty="mean_field")
    assert 6 <= len(made) <= 11


def test_priors_near_zero_leave_numbers() -> None:
    counts = documents(30)
    topics = LeftOutTopics(counts, None, np.full(3, 1e-300), np.array(1e-300), np.random.default_rng(5), 4)
    for _ in range(4):
        topics.sweep()
    assert topics.of_words.sum() == pytest.approx(counts.sum(), rel=1e-4)
    assert np.isfinite(topics.responsibilities()).all()
