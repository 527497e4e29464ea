"""Collapsed passes of topics: beside literal loops, the exact log joint probability, and simulated truth."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.special import digamma, gammaln

import caviar as cv
from caviar.engine.topics.passes import collapsed as engine
from caviar.engine.topics.passes.collapsed import CollapsedTopics, ExpectedSlopes

ALPHA, ETA = np.array([0.3, 0.7, 0.2]), 0.05


@pytest.fixture(params=["arrays", "loops"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How tokens are updated: all of a document at once, or one after the other in compiled loops."""
    if request.param == "loops":
        pytest.importorskip("numba")
    monkeypatch.setattr(engine, "can_compile", lambda: request.param == "loops")
    return request.param


def documents(rng: np.random.Generator, n_docs: int = 8, n_words: int = 11) -> sparse.csr_array:
    counts = rng.poisson(0.8, (n_docs, n_words)).astype(float)
    counts[1] = 0
    return sparse.csr_array(counts)


def begun(
    counts: sparse.csr_array, weights: np.ndarray | None = None, eta: float | np.ndarray = ETA
) -> CollapsedTopics:
    """Topics whose tokens begin at random."""
    drawn = np.random.default_rng(1).dirichlet(np.full(3, 100.0), counts.nnz)
    return CollapsedTopics(counts, weights, ALPHA, np.array(eta), drawn)


def literal_sweep(
    counts: np.ndarray, shares: np.ndarray, updates: int, in_turn: bool, eta: float | np.ndarray
) -> np.ndarray:
    """All tokens of all documents updated from the same topics, one token at a time; shares are (D, V, K).

    In turn each is told of those before it in its document. Of a count below one no more is left out than it is.
    """
    n_docs, n_words, n_topics = shares.shape
    prior = np.broadcast_to(eta, n_words)
    of_words = np.einsum("dv,dvk->vk", counts, shares)
    after = shares.copy()
    for d in range(n_docs):
        for _ in range(updates):
            of_document = np.einsum("v,vk->k", counts[d], after[d])
            before = after[d].copy()
            for v in np.flatnonzero(counts[d]):
                each = np.empty(n_topics)
                if in_turn:
                    of_document, before = np.einsum("v,vk->k", counts[d], after[d]), after[d]
                for k in range(n_topics):
                    share = min(counts[d, v], 1.0)
                    own = share * shares[d, v, k]
                    word = (of_words[v, k] - own + prior[v]) / (of_words[:, k].sum() - own + prior.sum())
                    each[k] = (of_document[k] - share * before[v, k] + ALPHA[k]) * word
                after[d, v] = each / each.sum()
    return after


@pytest.mark.parametrize(("eta", "unit"), [(ETA, 1.0), (np.linspace(0.02, 0.08, 11), 1.0), (ETA, 0.4)])
def test_a_pass_is_that_of_literal_loops(way: str, eta: float | np.ndarray, unit: float) -> None:
    counts = unit * documents(np.random.default_rng(0))
    topics = begun(counts, eta=eta)
    dense, shares = counts.toarray(), np.zeros((*counts.shape, 3))
    shares[dense > 0] = topics.responsibilities
    in_turn = way == "loops"
    updates = engine._UPDATES_IN_TURN if in_turn else engine._UPDATES
    for _ in range(6):
        shares = literal_sweep(dense, shares, updates, in_turn, eta)
        topics.sweep()
        np.testing.assert_allclose(topics.responsibilities, shares[dense > 0], atol=2e-6)
    np.testing.assert_allclose(topics.of_words, np.einsum("dv,dvk->vk", dense, shares), atol=1e-5)
    np.testing.assert_allclose(topics.of_documents, np.einsum("dv,dvk->dk", dense, shares), atol=1e-5)
    np.testing.assert_allclose(topics.of_topics, topics.of_words.sum(axis=0), rtol=1e-6)


@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_loops_are_given_places_of_one_type_whatever_the_matrix_has(kind: type) -> None:
    """They would be compiled once more for another type, which takes a second or two."""
    counts = documents(np.random.default_rng(0))
    counts.indices, counts.indptr = counts.indices.astype(kind), counts.indptr.astype(kind)
    for block in engine._blocks(counts, np.ones(counts.shape[0]), 3):
        assert {own.dtype for own in (block.words, block.places, block.starts)} == {np.dtype(np.intp)}


@pytest.mark.usefixtures("way")
def test_blocks_are_updated_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = documents(np.random.default_rng(0), 40)
    monkeypatch.setattr(engine, "_BLOCK_NUMBERS", 100)
    topics = begun(counts)
    assert len(topics._blocks) > 5
    for _ in range(30):
        topics.sweep()
    summed = (
        sparse.csr_array((counts.data, counts.indices, np.arange(counts.nnz + 1))).T @ topics.responsibilities
    )
    np.testing.assert_allclose(topics.of_words, summed, atol=2e-5)


@pytest.mark.usefixtures("way")
def test_a_weight_of_two_is_the_document_twice() -> None:
    counts = documents(np.random.default_rng(0))
    once = begun(counts, np.full(8, 2.0))
    twice = begun(sparse.csr_array(sparse.vstack([counts, counts])))
    twice.responsibilities[:] = np.tile(once.responsibilities, (2, 1))
    twice.of_documents[:] = np.tile(once.of_documents, (2, 1))
    twice.of_words[:], twice.of_topics[:] = once.of_words, once.of_topics
    for _ in range(8):
        once.sweep()
        twice.sweep()
    np.testing.assert_allclose(twice.of_words, once.of_words, rtol=1e-5)
    assert twice.bound() == pytest.approx(once.bound(), abs=1e-4)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("concentration", [1e-8, 1e-3, 1e3])
@pytest.mark.parametrize("times", [1.0, 1e7])
def test_single_precision_holds_for_any_concentration_and_count(concentration: float, times: float) -> None:
    counts = documents(np.random.default_rng(0), 30) * times
    drawn = np.random.default_rng(1).dirichlet(np.ones(3), counts.nnz)
    topics = CollapsedTopics(counts, None, np.full(3, concentration), np.array(concentration), drawn)
    for number in range(40):
        assert 0 <= topics.sweep() <= 1
        np.testing.assert_allclose(topics.responsibilities.sum(axis=1), 1, rtol=1e-5)
        if number % 10 == 9:
            assert np.isfinite(topics.bound())
            topics.learn(of_documents=True, of_words=True)
    assert (topics.of_words >= 0).all()
    np.testing.assert_allclose(topics.of_words.sum(), counts.sum(), rtol=1e-5)


def certain(rng: np.random.Generator) -> tuple[sparse.csr_array, CollapsedTopics]:
    """Topics of which every token is known."""
    counts = documents(rng, 30)
    topics = begun(counts)
    drawn = np.where(
        rng.random(counts.nnz) < 0.7, counts.indices % 3, rng.choice(3, counts.nnz, p=[0.6, 0.3, 0.1])
    )
    topics.responsibilities[:] = np.eye(3)[drawn]
    each = counts.data[:, None] * topics.responsibilities
    owners = np.repeat(np.arange(30), np.diff(counts.indptr))
    for total, places in ((topics.of_documents, owners), (topics.of_words, counts.indices)):
        total[:] = 0
        np.add.at(total, places, each)
    topics.of_topics[:] = each.sum(axis=0)
    return counts, topics


def log_joint(topics: CollapsedTopics, alpha: np.ndarray, eta: float) -> float:
    """Exact log p(words, topics of tokens), by the chain rule over tokens one at a time."""
    total = 0.0
    for counts, prior in (
        *((own, alpha) for own in topics.of_documents),
        *((own, np.full(11, eta)) for own in topics.of_words.T),
    ):
        met = np.zeros_like(prior)
        for place in np.repeat(np.arange(len(prior)), np.rint(counts).astype(int)):
            total += np.log((prior[place] + met[place]) / (prior.sum() + met.sum()))
            met[place] += 1
    return total


def test_of_known_tokens_the_bound_is_the_exact_log_joint_probability() -> None:
    _, topics = certain(np.random.default_rng(3))
    assert topics.bound() == pytest.approx(log_joint(topics, ALPHA, ETA), abs=1e-9)


@pytest.mark.usefixtures("way")
def test_of_known_tokens_learnt_priors_have_the_highest_probability() -> None:
    _, topics = certain(np.random.default_rng(3))
    for _ in range(300):
        topics.learn(of_documents=True, of_words=True)
    alpha, eta = topics.prior, float(topics.word_prior[0, 0])
    best = log_joint(topics, alpha, eta)
    for k in range(3):
        for factor in (0.99, 1.01):
            assert log_joint(topics, alpha * np.where(np.arange(3) == k, factor, 1.0), eta) < best
    assert max(log_joint(topics, alpha, eta * factor) for factor in (0.99, 1.01)) < best


@pytest.mark.parametrize("weights", [None, np.linspace(0.5, 9.5, 30)])
def test_what_is_learnt_is_the_same_either_way(
    monkeypatch: pytest.MonkeyPatch, weights: np.ndarray | None
) -> None:
    pytest.importorskip("numba")
    counts, found = documents(np.random.default_rng(4), 30), []
    counts.data[::7] *= 9
    for compiled in (False, True):
        monkeypatch.setattr(engine, "can_compile", lambda compiled=compiled: compiled)
        topics = begun(counts, weights)
        topics.learn(of_documents=True, of_words=True)
        found.append(np.append(topics.prior, topics.word_prior[0, 0]))
    np.testing.assert_allclose(found[1], found[0], rtol=1e-6)


def test_slopes_are_those_of_the_formula() -> None:
    """Also where a count is hardly ever above zero, for which the library has a limit."""
    rng, prior = np.random.default_rng(0), np.array([1e-3, 0.05, 2.0])
    shares = 10.0 ** rng.uniform(-9, 0, (40, 3, 5))
    counts, met, weights = shares.sum(axis=2), 1 - np.prod(1 - shares, axis=2), rng.uniform(0.5, 2, 40)
    each = met * (digamma(prior + counts / met) - digamma(prior))
    np.testing.assert_allclose(ExpectedSlopes(counts, met, weights).at(prior), weights @ each, rtol=1e-3)
    small = counts * 1e-7
    met = -np.expm1(np.log1p(-shares * 1e-7).sum(axis=2))
    each = met * (digamma(prior + small / met) - digamma(prior))
    np.testing.assert_allclose(ExpectedSlopes(small, met, weights).at(prior), weights @ each, rtol=1e-6)


def simulated(seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(60, 0.1), 6)
    proportions = rng.dirichlet(np.full(6, 0.3), 80)
    return topics, np.array([rng.multinomial(120, p @ topics) for p in proportions])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_fits_find_the_topics(seed: int) -> None:
    topics, counts = simulated(seed)
    stated = cv.models.latent_dirichlet_allocation(6, 60, concentration=0.3, word_concentration=0.1)
    data = {"word": sparse.csr_array(counts)}
    found, truth = stated.fit(data, seed=0, tol=1e-4), stated.fit(data, init={"topics": topics}, tol=1e-4)
    assert found.elbo > truth.elbo - 0.003 * counts.sum()


@pytest.mark.slow
def test_known_topics_stay_and_the_others_are_found() -> None:
    topics, counts = simulated(1)
    given = topics.copy()
    given[3:] = np.nan
    stated = cv.models.latent_dirichlet_allocation(6, 60, concentration=0.3, word_concentration=0.1)
    data = {"word": sparse.csr_array(counts)}
    found = stated.fit({**data, "topics": given}, seed=0, tol=1e-4)
    truth = stated.fit({**data, "topics": given}, init={"topics": topics}, tol=1e-4)
    np.testing.assert_allclose(found["topics"].mean[:3], topics[:3], rtol=1e-6)
    assert found.elbo > truth.elbo - 0.003 * counts.sum()


@pytest.mark.slow
def test_the_collapsed_method_has_the_bound_of_its_topics() -> None:
    _, counts = simulated(0)
    lda = cv.LatentDirichletAllocation(
        6, doc_topic_prior=0.3, topic_word_prior=0.1, method="collapsed", random_state=0, max_iter=30
    ).fit(counts)
    prior = cv.families.Dirichlet(np.full((6, 60), 0.1))
    divergence = cv.families.Dirichlet(lda.components_).kl(prior).sum()
    assert lda.score(counts) - divergence == pytest.approx(lda.elbo_, rel=1e-9)
    assert lda.n_iter_ <= 30
    np.testing.assert_allclose(lda.components_.sum(), counts.sum() + 6 * 60 * 0.1)
    mean_field = cv.LatentDirichletAllocation(
        6, doc_topic_prior=0.3, topic_word_prior=0.1, random_state=0
    ).fit(counts)
    assert lda.elbo_ > mean_field.elbo_ - 0.08 * counts.sum()
    assert lda.completion_perplexity(counts) < mean_field.completion_perplexity(counts) * 1.01


@pytest.mark.slow
@pytest.mark.parametrize("method", ["collapsed", "mean_field"])
def test_priors_are_learnt(method: str) -> None:
    rng = np.random.default_rng(5)
    alpha, eta = np.array([0.6, 0.3, 0.1]), 0.05
    topics = rng.dirichlet(np.full(200, eta), 3)
    counts = np.array([rng.multinomial(150, p @ topics) for p in rng.dirichlet(alpha, 300)])
    lda = cv.LatentDirichletAllocation(
        3,
        doc_topic_prior="learn",
        topic_word_prior="learn",
        method=method,
        random_state=0,
        max_iter=80,
        tol=0.1,
    ).fit(counts)
    np.testing.assert_allclose(np.sort(lda.doc_topic_prior_), np.sort(alpha), rtol=0.25)
    np.testing.assert_allclose(lda.topic_word_prior_, eta, rtol=0.2)
    fixed = cv.LatentDirichletAllocation(3, method=method, random_state=0, max_iter=80, tol=0.1).fit(counts)
    assert lda.elbo_ > fixed.elbo_ + 100


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"method": "gibbs"}, "method must be"),
        (
            {"doc_topic_prior": "learnt"},
            "doc_topic_prior must be a positive number, an array of such, or 'learn'",
        ),
        (
            {"method": "collapsed", "learning_method": "online"},
            "learning_method='online' is for method='mean_field'",
        ),
        ({"method": "collapsed", "executor": "threads"}, "executor='threads' is for method='mean_field'"),
        ({"method": "collapsed", "evaluate_every": 2}, "evaluate_every needs the bound"),
        (
            {"method": "collapsed", "doc_topic_prior_type": "dirichlet_process"},
            r"collapsed passes .* have no common weights",
        ),
        ({"topic_word_prior": "learn", "total_samples": 100}, "priors are learnt from all documents at once"),
    ],
)
def test_what_collapsed_passes_cannot_heed_is_refused(arguments: dict, message: str) -> None:
    with pytest.raises(cv.ParameterError, match=message):
        cv.LatentDirichletAllocation(2, **arguments).fit(np.eye(4))


def test_collapsed_passes_take_no_checkpoint(tmp_path) -> None:
    lda = cv.LatentDirichletAllocation(2, method="collapsed", random_state=0)
    with pytest.raises(cv.ParameterError, match="cannot save collapsed passes"):
        lda.fit(np.eye(4), checkpoint=tmp_path / "a")


def test_a_function_is_told_of_collapsed_passes_and_may_end_them() -> None:
    told = []

    def tell(progress) -> bool:
        told.append((progress.restart, progress.iteration))
        return progress.iteration == 12

    cv.LatentDirichletAllocation(
        3, doc_topic_prior="learn", method="collapsed", random_state=0, verbose=tell, n_init=2
    ).fit(simulated(0)[1])
    assert told == [(start, number) for start in range(2) for number in range(1, 13)]


@pytest.mark.parametrize("counts", [np.zeros((3, 4)), np.eye(4) * 1e-3, np.eye(4) * 1e9, np.ones((1, 1))])
def test_odd_counts_have_finite_fits(counts: np.ndarray) -> None:
    lda = cv.LatentDirichletAllocation(
        3, method="collapsed", doc_topic_prior="learn", topic_word_prior="learn", random_state=0
    ).fit(counts)
    assert np.isfinite(lda.elbo_)
    assert np.isfinite(lda.components_).all()
    assert (lda.doc_topic_prior_ > 0).all()
    assert (lda.topic_word_prior_ > 0).all()


def test_the_log_gamma_form_is_that_of_counts() -> None:
    counts = np.array([3.0, 0.0, 2.0])
    own = engine._log_shares(ALPHA, counts)
    literal = (
        gammaln(ALPHA.sum()) - gammaln(ALPHA.sum() + 5) + (gammaln(ALPHA + counts) - gammaln(ALPHA)).sum()
    )
    assert own == pytest.approx(literal)
