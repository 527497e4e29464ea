"""Topics whose proportions are around common weights: statement, moves, new documents, files."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.special import gammaln

import caviar as cv
from caviar.engine.ascent.status import Status
from caviar.estimators.automatic.pace import Pace
from caviar.estimators.automatic.topics import PATIENCE, _gains_of_merges, best_of_numbers

RNG = np.random.default_rng(4)
WORDS = np.kron(np.eye(3), np.full((1, 4), 1 / 4))
X = np.array([RNG.multinomial(40, RNG.dirichlet(np.full(3, 0.4)) @ WORDS) for _ in range(40)])


def lda(n_components: int = 5, **arguments: Any) -> cv.LatentDirichletAllocation:
    own = {"doc_topic_prior": 0.5, "topic_word_prior": 0.2, "topic_concentration": 1.0, "random_state": 0}
    return cv.LatentDirichletAllocation(
        n_components, doc_topic_prior_type="dirichlet_process", **{**own, **arguments}
    )


def test_it_is_the_stated_model() -> None:
    found = lda(tol=1.0).fit(X)
    model = cv.models.latent_dirichlet_allocation(
        5, 12, concentration=0.5, word_concentration=0.2, stick_concentration=1.0
    )
    posterior = found.posterior_
    bound = model.fit(
        {"word": csr_array(X.astype(float))},
        init={"topics": posterior["topics"], "weights": posterior["weights"]},
        max_iter=0,
    )
    assert found.posterior_.elbo_at({}, {"word": csr_array(X.astype(float))}) == pytest.approx(
        bound.elbo_at({}, {"word": csr_array(X.astype(float))}), rel=1e-9
    )
    np.testing.assert_array_equal(found.topic_weights_, posterior["weights"].mean)


class Stopping:
    """Ends the search at the given pass, counted over all of its fits."""

    def __init__(self, at: int) -> None:
        self.left = at

    def __call__(self, _: cv.Progress) -> None:
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt


@pytest.mark.slow
@pytest.mark.parametrize("at", [3, 60])
def test_a_search_with_a_checkpoint_is_the_same_and_goes_on_where_it_was_stopped(
    tmp_path: Path, at: int
) -> None:
    path, own = tmp_path / "run.ckpt", {"tol": 1e-2, "max_iter": 60}
    plain = lda(4, moves=1, **own).fit(X[:20])
    with pytest.warns(UserWarning, match="interrupted"):
        lda(4, moves=1, verbose=Stopping(at), **own).fit(X[:20], checkpoint=path, checkpoint_every=0.0)
    counted = Stopping(0)
    resumed = lda(4, moves=1, verbose=counted, **own).fit(X[:20], checkpoint=path, checkpoint_every=0.0)
    np.testing.assert_array_equal(resumed.components_, plain.components_)
    assert resumed.moves_ == plain.moves_
    whole = Stopping(0)
    lda(4, moves=1, verbose=whole, **own).fit(X[:20])
    # the passes before the interruption are not made again
    assert -counted.left <= -whole.left - at + 1


@pytest.mark.slow
def test_the_number_of_topics_is_found_by_moves_that_raise_the_bound(tmp_path: Path) -> None:
    plain = lda().fit(X)
    found = lda(moves=3).fit(X)
    words = (found.components_ - 0.2).sum(axis=1)
    # the three of the documents, the largest first, and two that are empty
    assert (words[:3] > 300).all()
    assert (words[3:] < 1e-3).all()
    assert (np.sort(found.topic_weights_)[:2] < 0.05).all()
    shares = found.components_[:3] / found.components_[:3].sum(axis=1, keepdims=True)
    assert np.abs(shares[:, None] - WORDS).sum(axis=2).min(axis=1).max() < 0.3
    assert found.elbo_ > plain.elbo_ + 10
    assert found.moves_
    assert all(move.accepted == (move.elbo_after > move.elbo_before + 0.1) for move in found.moves_)
    # the bound of the documents, apart from what the topics and weights are worth
    np.testing.assert_allclose(found.transform(X)[:, 3:], 0.0, atol=1e-2)
    found.save(tmp_path / "lda")
    again = cv.load(tmp_path / "lda")
    assert again.moves_ == found.moves_
    assert again.score(X) == pytest.approx(found.score(X), rel=1e-12)


def test_the_search_begins_from_the_best_of_growing_numbers_and_ends_after_three_falls() -> None:
    elbos = {2: 1.0, 3: 0.5, 4: 0.4, 6: 3.0, 8: 2.0, 12: 2.5, 16: 2.9, 24: 9.0}
    asked = []

    def fit(number: int, best: float) -> Any:
        asked.append(number)
        return SimpleNamespace(elbo=elbos[number], status=Status.CONVERGED, number=number)

    assert best_of_numbers(fit, 50, Pace()).number == 6
    assert asked == [2, 3, 4, 6, 8, 12, 16]
    asked.clear()
    assert best_of_numbers(fit, 4, Pace()).number == 2
    assert asked == [2, 3, 4]


def test_the_number_of_topics_is_found_far_below_the_largest() -> None:
    # a search that began with all of them took ten times as long
    found = lda(9, moves=1, tol=1e-2).fit(X)
    assert len(found.topics_in_use_) == 3
    assert len(found.moves_) <= 12
    assert found.components_.shape == (9, 12)


def test_the_score_is_the_bound_without_the_divergences_of_topics_and_weights() -> None:
    found = lda(3).fit(X)
    topics, weights = found.posterior_["topics"], found.posterior_["weights"]
    divergence = topics.kl(cv.families.Dirichlet(np.full(topics.concentration.shape, 0.2))).sum()
    prior = cv.families.StickBreaking([1.0, 1.0], [1.0, 1.0])
    divergence += weights.kl(type(weights).widened(prior))
    bound = found.posterior_.elbo_at({}, {"word": csr_array(X.astype(float))})
    assert found.score(X) == pytest.approx(bound + divergence, rel=1e-10)


@pytest.mark.slow
def test_documents_are_added() -> None:
    found = lda(3).partial_fit(X[:20])
    before = found.topic_weights_
    found.partial_fit(X[20:])
    assert not np.allclose(found.topic_weights_, before)
    assert (found.components_ - 0.2).sum() == pytest.approx(X.sum(), rel=1e-6)
    online = lda(3, total_samples=40, learning_method="online").partial_fit(X)
    assert np.isfinite(online.elbo_)


def test_arguments_that_do_not_fit_are_refused() -> None:
    with pytest.raises(cv.ParameterError, match="moves=2 empty topics"):
        cv.LatentDirichletAllocation(3, moves=2).fit(X)
    with pytest.raises(cv.ParameterError, match="doc_topic_prior, of a Dirichlet process,"):
        lda(3, doc_topic_prior=np.ones(3)).fit(X)
    with pytest.raises(cv.ParameterError, match="topic_concentration"):
        lda(3, topic_concentration=0.0).fit(X)
    with pytest.raises(cv.ModelError, match="one number beside stick_concentration"):
        cv.models.latent_dirichlet_allocation(3, 12, concentration=np.ones(3), stick_concentration=1.0)


def dirichlet_multinomial(counts: Any, concentration: Any) -> float:
    """Return the log probability of counts of known words, by SciPy's gamma function."""
    counts, concentration = np.broadcast_arrays(counts, concentration)
    total = gammaln(concentration.sum()) - gammaln((concentration + counts).sum())
    return float(total + (gammaln(concentration + counts) - gammaln(concentration)).sum())


def test_merges_are_judged_by_the_words_that_topics_have() -> None:
    # words whose topics are certain: what the ELBO of known topics says, document by document
    words, owners = np.array([[5.0, 1, 0, 0], [0, 2, 7, 0], [0, 0, 3, 4]]), np.array([[4.0, 2, 1], [2, 7, 6]])
    shares, alpha, prior = np.array([0.5, 0.3, 0.2]), 0.8, np.full(4, 0.4)
    # a document without words has the prior of its proportions
    owners = np.vstack([owners, np.zeros(3)])
    local = {"proportions": SimpleNamespace(concentration=alpha * shares + owners)}
    posterior = SimpleNamespace(elbo=0.0, local=lambda _: local)
    state = SimpleNamespace(
        posterior=posterior,
        prior=prior,
        _words=words,
        alive=np.arange(3),
        weights=np.array([1.0, 3.0, 1.0]),
        counts=None,
    )
    found = _gains_of_merges(cast("Any", state))

    def known(words: Any, owners: Any, shares: Any) -> float:
        own = sum(dirichlet_multinomial(topic, prior) for topic in words)
        documents = zip(state.weights, owners, strict=True)
        return own + sum(weight * dirichlet_multinomial(each, alpha * shares) for weight, each in documents)

    for k, other in ((0, 1), (0, 2), (1, 2)):
        both = np.eye(3)
        both[other] = both[k]
        merged = known(both.T @ words, owners @ both, np.where(shares @ both > 0, shares @ both, 1e-12))
        assert found[k, other] == pytest.approx(merged - known(words, owners, shares), rel=1e-6)
        assert found[other, k] == pytest.approx(found[k, other])


def test_a_fit_ends_where_it_cannot_catch_up_or_adds_little() -> None:
    until = PATIENCE.until(aim=10.0, best=0.0, weight=2.0)

    def at(iteration: int, elbo: float, change: float) -> bool:
        return until(cast("Any", SimpleNamespace(iteration=iteration, elbo=elbo, change_per_row=change / 2)))

    assert [at(n, -90.0, 1.0) for n in (1, 2, 3)] == [False, False, True]
    assert not at(3, -90.0, 4.0)
    assert not at(3, 20.0, 1.0)
    assert at(3, 20.0, 0.01)


@pytest.mark.slow
def test_a_move_that_was_refused_is_not_tried_again_while_its_topics_stay_the_same() -> None:
    found = lda(5, moves=4, tol=1e-2).fit(X)
    refused = [(move.kind, move.components, move.n_components) for move in found.moves_ if not move.accepted]
    assert refused
    assert len(refused) == len(set(refused))
