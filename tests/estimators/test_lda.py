"""Latent Dirichlet allocation as an estimator: scikit-learn's contract, its bound, and documents completed."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.special import digamma, gammaln
from sklearn.decomposition import LatentDirichletAllocation as Peer
from sklearn.utils.estimator_checks import parametrize_with_checks

import caviar as cv
import caviar.models

pytestmark = [
    pytest.mark.filterwarnings(
        "ignore:.*max_iter passes:sklearn.exceptions.ConvergenceWarning",
        "ignore::sklearn.exceptions.SkipTestWarning",
    ),
    pytest.mark.first_guess,
]


@pytest.mark.thinned(24)
# incremental updates depend on which documents are together in a batch, so weights are not repetitions before the end
@parametrize_with_checks(
    [
        cv.LatentDirichletAllocation(2, max_iter=5),
        cv.LatentDirichletAllocation(3, max_iter=5, doc_topic_prior=0.1, topic_word_prior=0.01),
        cv.LatentDirichletAllocation(2, max_iter=2, learning_method="online"),
    ]
)
def test_scikit_learns_checks_pass(estimator, check) -> None:
    check(estimator)


def documents(seed: int = 0, n: int = 60, topics: int = 4, words: int = 50) -> sparse.csr_array:
    rng = np.random.default_rng(seed)
    beta = rng.dirichlet(np.full(words, 0.1), topics)
    theta = rng.dirichlet(np.full(topics, 0.3), n)
    return sparse.csr_array(np.array([rng.multinomial(80, t @ beta) for t in theta], dtype=float))


def fitted(counts: sparse.csr_array, **arguments) -> cv.LatentDirichletAllocation:
    settings = {"doc_topic_prior": 0.3, "topic_word_prior": 0.1, "random_state": 0, **arguments}
    return cv.LatentDirichletAllocation(4, **settings).fit(counts)


def test_the_score_is_the_bound_that_scikit_learn_computes() -> None:
    """At the same factors; its bound omits no constant."""
    counts = documents()
    lda = fitted(counts)
    peer = Peer(4, doc_topic_prior=0.3, topic_word_prior=0.1, random_state=0)
    peer._init_latent_vars(50)
    peer.components_ = lda.components_
    gamma = lda.transform(counts, normalize=False)
    # scikit-learn takes the divergence of the topics from their prior off the score of any documents
    of_topics = divergence_of_topics(lda)
    expected = peer._approx_bound(counts.tocsr(), gamma, False) + of_topics
    assert lda.score(counts) == pytest.approx(expected, rel=1e-12)
    assert lda.perplexity(counts) == pytest.approx(np.exp(-lda.score(counts) / counts.sum()), rel=1e-12)
    elbo_of_fit = fitted(counts, max_iter=1000, tol=1e-9)
    expected = elbo_of_fit.elbo_ + divergence_of_topics(elbo_of_fit)
    assert elbo_of_fit.score(counts) == pytest.approx(expected, abs=1.0)


def divergence_of_topics(lda: cv.LatentDirichletAllocation) -> float:
    """Of their Dirichlet factors from the prior, by the formula."""
    after, prior = lda.components_, np.full(lda.components_.shape, lda.topic_word_prior_)
    log_beta = [(gammaln(a).sum(axis=1) - gammaln(a.sum(axis=1))) for a in (after, prior)]
    expected = digamma(after) - digamma(after.sum(axis=1, keepdims=True))
    return float((log_beta[1] - log_beta[0] + ((after - prior) * expected).sum(axis=1)).sum())


def test_the_score_of_a_new_document_lies_below_its_exact_log_probability() -> None:
    """By enumeration of the topics of its words, the topics and proportions integrated out."""
    lda = fitted(documents(2), topic_word_prior=0.5)
    words = np.array([3, 3, 17, 40])
    total = 0.0
    for path in itertools.product(range(4), repeat=len(words)):
        used = np.bincount(path, minlength=4)
        log_p = log_dirichlet_multinomial(np.full(4, 0.3), used)
        for topic in range(4):
            met = np.bincount(words[np.array(path) == topic], minlength=50)
            log_p += log_dirichlet_multinomial(lda.components_[topic], met)
        total += np.exp(log_p)
    counts = np.bincount(words, minlength=50)[None].astype(float)
    assert np.log(total) - 1.5 < lda.score(counts) < np.log(total)


def log_dirichlet_multinomial(concentration: np.ndarray, counts: np.ndarray) -> float:
    """Log probability of draws in their order."""
    return float(
        gammaln(concentration + counts).sum()
        - gammaln(concentration).sum()
        + gammaln(concentration.sum())
        - gammaln(concentration.sum() + counts.sum())
    )


@pytest.mark.slow
def test_proportions_are_those_of_scikit_learn_at_the_same_topics() -> None:
    counts = documents(1)
    lda = fitted(counts)
    peer = Peer(
        4,
        doc_topic_prior=0.3,
        topic_word_prior=0.1,
        mean_change_tol=1e-12,
        max_doc_update_iter=5000,
        max_iter=0,
    ).fit(counts)
    peer.components_ = lda.components_
    peer.exp_dirichlet_component_ = lda.exp_dirichlet_component_
    np.testing.assert_allclose(lda.transform(counts), peer.transform(counts), atol=1e-6)


def test_expected_logs_are_the_formula() -> None:
    lda = fitted(documents(2))
    expected = digamma(lda.components_) - digamma(lda.components_.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(lda.exp_dirichlet_component_, np.exp(expected), rtol=1e-12)


def test_it_is_a_shell_over_the_model() -> None:
    counts = documents(3)
    lda = fitted(counts, max_iter=30, tol=0.0)
    stated = caviar.models.latent_dirichlet_allocation(4, 50, concentration=0.3, word_concentration=0.1)
    posterior = stated.fit({"word": counts}, seed=np.random.default_rng(0), max_iter=30, tol=0.0)
    np.testing.assert_array_equal(lda.components_, posterior["topics"].concentration)
    assert lda.elbo_ == posterior.elbo
    assert lda.bound_ == pytest.approx(np.exp(-posterior.elbo / counts.sum()))
    assert lda.n_iter_ == posterior.n_iter == len(lda.elbo_trace_) - 1


@pytest.mark.slow
def test_counts_of_a_short_type_are_added_without_overflow() -> None:
    """200 and 200 tokens of one word were 144."""
    places = ([0, 0, 1, 1], [0, 0, 1, 0])
    short = sparse.coo_array((np.full(4, 200, dtype=np.uint8), places), shape=(2, 2))
    one, other = (
        cv.LatentDirichletAllocation(1, random_state=0).fit(counts)
        for counts in (short, np.array([[400.0, 0.0], [200.0, 200.0]]))
    )
    assert one.posterior_.elbo == pytest.approx(other.posterior_.elbo, rel=1e-12)


@pytest.mark.first_guess
def test_dense_and_sparse_counts_in_any_form_are_the_same() -> None:
    counts = documents(4)
    expected = fitted(counts)
    pieces = sparse.coo_array(
        (
            np.concatenate([counts.data / 2] * 2),
            tuple(np.concatenate([axis] * 2) for axis in counts.tocoo().coords),
        ),
        shape=counts.shape,
    )
    for form in (
        counts.toarray(),
        counts.tocsc(),
        pieces,
        sparse.csr_matrix(counts),
        sparse.dok_array(counts),
        sparse.dok_matrix(counts),
        counts.toarray().astype(int),
    ):
        np.testing.assert_allclose(fitted(form).components_, expected.components_, rtol=1e-12)


def test_the_callers_matrix_is_left_alone() -> None:
    counts = documents(4)
    counts.data[:3] = 0.0
    before = counts.copy()
    fitted(counts).transform(counts)
    assert counts.nnz == before.nnz
    np.testing.assert_array_equal(counts.data, before.data)


@pytest.mark.slow
def test_a_weight_of_two_is_the_document_twice() -> None:
    counts = documents(5, n=30)
    weights = np.arange(30) % 3
    twice = sparse.csr_array(np.repeat(counts.toarray(), weights, axis=0))
    one = fitted(counts, max_iter=20, tol=0.0)
    weighted = cv.LatentDirichletAllocation(
        4, doc_topic_prior=0.3, topic_word_prior=0.1, random_state=0, max_iter=20, tol=0.0
    ).fit(counts, sample_weight=weights)
    repeated = fitted(twice, max_iter=20, tol=0.0)
    np.testing.assert_allclose(weighted.components_, repeated.components_, rtol=1e-6)
    assert weighted.elbo_ == pytest.approx(repeated.elbo_, rel=1e-10)
    assert weighted.elbo_ != pytest.approx(one.elbo_, rel=1e-3)


@pytest.mark.filterwarnings("ignore::caviar.ConvergenceWarning")
@pytest.mark.parametrize("own", [{"method": "collapsed"}, {"doc_topic_prior": "learn"}])
def test_passes_in_turn_begin_alike_for_a_weight_of_two(own) -> None:
    """Collapsed passes go through documents one after another, in blocks that copies would shift."""
    counts, weights = documents(5, n=20), np.arange(20) % 3
    places = np.repeat(np.arange(20), weights)
    lda = cv.LatentDirichletAllocation(4, random_state=0, max_iter=2, **own)
    weighted = lda.fit(counts, sample_weight=weights)
    elbo, topics = weighted.elbo_, weighted.components_
    # copies of a document need not follow it
    repeated = lda.fit(counts[np.append(np.unique(places), places[1:][np.diff(places) == 0])])
    assert elbo == pytest.approx(repeated.elbo_, rel=1e-10)
    np.testing.assert_allclose(topics, repeated.components_, rtol=1e-6)


@pytest.mark.slow
def test_completion_is_the_mean_log_probability_of_the_words_held_out() -> None:
    counts = documents(6)
    lda = fitted(counts[:40])
    seen, rest = counts[40:].copy(), counts[40:].copy()
    seen.data = np.floor(seen.data / 2)
    rest.data = rest.data - seen.data
    theta = lda.transform(seen)
    beta = lda.components_ / lda.components_.sum(axis=1, keepdims=True)
    dense = rest.toarray()
    literal = np.exp(-np.sum(dense * np.log(theta @ beta)) / dense.sum())
    assert lda.completion_perplexity(seen, rest) == pytest.approx(literal, rel=1e-12)
    at_random = lda.completion_perplexity(counts[40:], random_state=1)
    assert at_random == lda.completion_perplexity(counts[40:], random_state=1)
    assert at_random == pytest.approx(literal, rel=0.3)
    # topics tell more than the frequencies of the words alone
    overall = np.asarray(counts[:40].sum(axis=0)) + 0.1
    assert literal < np.exp(-np.sum(dense * np.log(overall / overall.sum())) / dense.sum())


@pytest.mark.thinned(4)
@pytest.mark.parametrize("method", ["batch", "incremental", "online"])
def test_a_corpus_without_words_leaves_topics_at_their_prior(method: str) -> None:
    lda = fitted(np.zeros((5, 50)), learning_method=method)
    np.testing.assert_allclose(lda.components_, 0.1)
    assert lda.elbo_ == pytest.approx(0.0, abs=1e-12)
    assert np.isnan(lda.bound_)
    # what comes then is learnt as if it had come first
    counts = documents(9)
    later, first = lda.partial_fit(counts), fitted(counts)
    assert later.completion_perplexity(counts) == pytest.approx(first.completion_perplexity(counts), rel=0.2)


def test_documents_without_words_change_nothing_else() -> None:
    """From the same topics, each pass is that without them."""
    counts = documents(9)
    some = sparse.vstack([sparse.csr_array((3, 50)), counts, sparse.csr_array((40, 50))], format="csr")
    model = caviar.models.latent_dirichlet_allocation(4, 50, concentration=0.3, word_concentration=0.1)
    start = {"topics": cv.families.Dirichlet(np.random.default_rng(0).gamma(5.0, 0.2, (4, 50)))}
    with_empty, without = (
        model.fit({"word": data}, init=start, max_iter=10, tol=0.0) for data in (some, counts)
    )
    np.testing.assert_allclose(with_empty.elbo_trace, without.elbo_trace, rtol=1e-12)
    lda = fitted(some)
    np.testing.assert_allclose(lda.transform(some)[:3], 0.25)
    assert lda.score(some) == pytest.approx(lda.score(counts), rel=1e-12)
    assert lda.perplexity(some) == pytest.approx(lda.perplexity(counts), rel=1e-12)


def test_a_step_of_partial_fit_is_that_of_scikit_learn() -> None:
    """From the same topics, with proportions at their optimum: its own step, and the total by the formula."""
    counts = documents(1, n=60)
    settings = {
        "doc_topic_prior": 0.3,
        "topic_word_prior": 0.1,
        "total_samples": 5_000,
        "batch_size": 60,
        "learning_offset": 20.0,
        "learning_decay": 0.6,
        "random_state": 0,
    }
    lda = cv.LatentDirichletAllocation(4, **settings).partial_fit(counts)
    assert lda.n_batch_iter_ == 1
    for step in (2, 3):
        before = lda.components_.copy()
        peer = Peer(4, mean_change_tol=1e-9, max_doc_update_iter=5_000, **settings)
        peer._init_latent_vars(50)
        peer.components_, peer.exp_dirichlet_component_ = before, lda.exp_dirichlet_component_.copy()
        peer.n_batch_iter_ = step
        peer._em_step(counts.tocsr(), total_samples=5_000, batch_update=False)
        lda.partial_fit(counts)
        rate = (20.0 + step) ** -0.6
        mass = (1 - rate) * before.sum() + rate * (counts.sum() * 5_000 / 60 + 4 * 50 * 0.1)
        assert lda.components_.sum() == pytest.approx(mass, rel=1e-9)
        # one pass brings documents near their optimum, not to it
        np.testing.assert_allclose(lda.components_, peer.components_, rtol=0.02, atol=0.02 * mass / 200)
        assert lda.n_batch_iter_ == step


@pytest.mark.slow
def test_steps_over_a_stream_come_to_the_topics() -> None:
    counts = documents(8, n=800)
    lda = cv.LatentDirichletAllocation(
        4, doc_topic_prior=0.3, topic_word_prior=0.1, total_samples=700, batch_size=35, random_state=0
    )
    for start in range(0, 700, 70):
        lda.partial_fit(counts[start : start + 70])
    assert lda.n_batch_iter_ == 20
    reference = fitted(counts[:700]).completion_perplexity(counts[700:])
    assert lda.completion_perplexity(counts[700:]) < 1.05 * reference


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "every", "perp_tol"), [("batch", 1, 0.05), ("batch", 3, 0.1), ("incremental", 2, 0.1)]
)
def test_a_fit_ends_where_the_perplexity_settles(method: str, every: int, perp_tol: float) -> None:
    counts = documents(7, n=100)
    arguments = {"learning_method": method, "tol": 0.0, "max_iter": 40}
    ended = fitted(counts, evaluate_every=every, perp_tol=perp_tol, **arguments)
    whole = fitted(counts, **arguments)
    perplexities = np.exp(-whole.elbo_trace_[every::every] / counts.sum())
    expected = every * (2 + int(np.argmax(np.abs(np.diff(perplexities)) < perp_tol)))
    assert ended.n_iter_ == expected < 40
    assert ended.converged_
    assert not whole.converged_


def test_the_perplexity_is_told(caplog) -> None:
    counts = documents(7)
    with caplog.at_level("INFO", logger="caviar"):
        lda = fitted(counts, evaluate_every=2, perp_tol=0.0, max_iter=4, tol=0.0, verbose=True)
    told = [line for line in caplog.messages if "perplexity" in line]
    assert len(told) == 2
    assert told[-1] == f"iteration 4  perplexity {lda.bound_:.4f}"


@pytest.mark.slow
@pytest.mark.parametrize("decay", [0.5, 1.0])
def test_decays_at_the_ends_of_their_range(decay: float) -> None:
    counts = documents(7, n=500)
    online = {"learning_method": "online", "batch_size": 64, "learning_decay": decay, "max_iter": 20}
    reference = fitted(counts[:400]).completion_perplexity(counts[400:])
    lda = fitted(counts[:400], **online)
    assert lda.completion_perplexity(counts[400:]) < 1.1 * reference
    assert lda.n_batch_iter_ == 7 * (lda.n_iter_ - 1)  # and a last pass for the bound


def test_iterations_and_generator() -> None:
    counts = documents(3)
    lda = fitted(counts, max_iter=7, tol=0.0)
    assert lda.n_batch_iter_ == lda.n_iter_ == 7
    assert isinstance(lda.random_state_, np.random.Generator)
    lda.partial_fit(counts)
    assert lda.n_batch_iter_ == 7 + lda.n_iter_
    assert not hasattr(cv.LatentDirichletAllocation(), "random_state_")


@pytest.mark.slow
def test_scores_and_proportions_take_what_scikit_learn_gives_them() -> None:
    counts, weights = documents(4), np.arange(60) % 3
    lda = fitted(counts)
    twice = sparse.csr_array(np.repeat(counts.toarray(), weights, axis=0))
    assert lda.score(counts, sample_weight=weights) == pytest.approx(lda.score(twice), rel=1e-10)
    assert lda.perplexity(counts, sub_sampling=True) == lda.perplexity(counts)
    concentrations = fitted(counts).fit_transform(counts, normalize=False)
    np.testing.assert_allclose(concentrations, lda.transform(counts, normalize=False), rtol=1e-6)
    names = [f"word {v}" for v in range(50)]
    named = fitted(pd.DataFrame(counts.toarray(), columns=names))
    assert list(named.feature_names_in_) == names


@pytest.mark.slow
@pytest.mark.parametrize("method", ["incremental", "online"])
def test_other_methods_find_the_topics_too(method: str) -> None:
    counts = documents(7, n=600)
    batch = fitted(counts[:500])
    other = fitted(counts[:500], learning_method=method, max_iter=20)
    reference = batch.completion_perplexity(counts[500:])
    assert other.completion_perplexity(counts[500:]) < 1.05 * reference
    assert other.elbo_ > batch.elbo_ - 0.05 * counts[:500].sum()


@pytest.mark.slow
def test_documents_that_come_later_are_added() -> None:
    counts = documents(8, n=300)
    lda = cv.LatentDirichletAllocation(4, doc_topic_prior=0.3, topic_word_prior=0.1, random_state=0)
    for start in range(0, 240, 80):
        lda.partial_fit(counts[start : start + 80])
    # all tokens are in the topics, each once
    assert lda.components_.sum() == pytest.approx(counts[:240].sum() + 4 * 50 * 0.1, rel=1e-10)
    first = fitted(counts[:80])
    later = lda.completion_perplexity(counts[240:])
    assert later < first.completion_perplexity(counts[240:])
    assert later < 1.05 * fitted(counts[:240]).completion_perplexity(counts[240:])
    before = lda.components_.copy()
    np.testing.assert_array_equal(lda.partial_fit(np.zeros((2, 50))).components_, before)


def test_documents_without_words() -> None:
    counts = documents(9).toarray()
    lda = fitted(counts)
    np.testing.assert_allclose(lda.transform(np.zeros((2, 50))), 0.25)
    some = counts[:3].copy()
    some[1] = 0
    np.testing.assert_allclose(lda.transform(some)[1], 0.25)
    np.testing.assert_allclose(lda.transform(some)[[0, 2]], lda.transform(counts[[0, 2]]), rtol=1e-6)
    with pytest.raises(cv.DataError, match="X is all zero"):
        lda.perplexity(np.zeros((2, 50)))
    assert lda.score(np.zeros((2, 50))) == pytest.approx(0.0, abs=1e-9)
    with pytest.raises(cv.DataError, match="no word is held out"):
        lda.completion_perplexity(some, np.zeros((3, 50)))
    with pytest.raises(cv.DataError, match="only whole numbers of words"):
        lda.completion_perplexity(some + 0.5)


def test_it_is_saved_and_loaded(tmp_path) -> None:
    counts = documents(10)
    lda = fitted(counts)
    lda.save(tmp_path / "topics.caviar")
    again = cv.load(tmp_path / "topics.caviar")
    assert isinstance(again, cv.LatentDirichletAllocation)
    np.testing.assert_array_equal(again.transform(counts), lda.transform(counts))
    assert again.score(counts) == lda.score(counts)
    assert (again.bound_, again.n_iter_, again.elbo_) == (lda.bound_, lda.n_iter_, lda.elbo_)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_components": 0}, "n_components must be a whole number of at least 1"),
        ({"learning_method": "stochastic"}, "learning_method must be 'batch', 'incremental' or 'online'"),
        ({"learning_method": "online", "learning_decay": 0.49}, "learning_decay must be from 0.5 to 1"),
        ({"learning_decay": 1.1}, "learning_decay must be from 0.5 to 1"),
        ({"mean_change_tol": 1e-3}, "mean_change_tol=0.001 is not used here"),
        ({"max_doc_update_iter": 100}, "max_doc_update_iter=100 is not used here.*tol and max_iter"),
        ({"evaluate_every": 0.5}, "evaluate_every must be a whole number; got 0.5"),
        ({"perp_tol": -1.0}, "perp_tol must be a finite number at least 0"),
        ({"total_samples": 0}, "total_samples, if it is not None, must be a finite number above 0"),
        ({"doc_topic_prior": [0.1, 0.2]}, r"doc_topic_prior must have shape \(4,\)"),
        ({"topic_word_prior": 0.0}, "topic_word_prior must be above 0"),
        ({"batch_size": 0}, "batch_size must be a whole number of at least 1"),
    ],
)
def test_impossible_arguments_are_refused(arguments: dict, message: str) -> None:
    settings = {"n_components": 4, **arguments}
    with pytest.raises(cv.ParameterError, match=message):
        cv.LatentDirichletAllocation(**settings).fit(documents())


@pytest.mark.slow
def test_topics_of_an_earlier_version_go_on(tmp_path) -> None:
    """A file that does not say how often topics were updated."""
    counts = documents(10)
    lda = fitted(counts)
    del lda.n_batch_iter_
    lda.save(tmp_path / "topics.caviar")
    again = cv.load(tmp_path / "topics.caviar")
    assert again.n_batch_iter_ == lda.n_iter_
    assert again.partial_fit(counts).n_batch_iter_ > lda.n_iter_


@pytest.mark.parametrize("method", ["mean_field", "collapsed"])
def test_a_summary_has_the_most_probable_words_of_each_topic_the_largest_first(method):
    words = ["goal", "ball", "law", "vote"]
    counts = [[6, 4, 0, 0], [5, 5, 0, 0], [0, 0, 5, 5], [0, 0, 2, 8]]
    stated = cv.LatentDirichletAllocation(2, method=method, vocabulary=words, random_state=0).fit(counts)
    columns = cv.LatentDirichletAllocation(2, method=method, random_state=0).fit(
        pd.DataFrame(counts, columns=words)
    )
    for lda in (stated, columns):
        told = lda.summary(max_rows=2).to_frame()
        shares = (lda.components_ - lda.topic_word_prior_).sum(axis=1) / np.sum(counts)
        order = np.argsort(-shares, kind="stable")
        assert told["variable"].tolist() == [f"topic {k}, {shares[k]:.0%}" for k in order for _ in range(2)]
        assert told["at"].tolist() == [word for k in order for word in lda.top_words(2)[k]]
        means = lda.posterior_["topics"].mean
        found = [means[k, words.index(word)] for k in order for word in lda.top_words(2)[k]]
        # what is shown is corrected a little
        np.testing.assert_allclose(told["mean"], found, atol=1e-3)
        assert "... 2 more" in str(lda.summary(max_rows=2))
    numbers = cv.LatentDirichletAllocation(2, method=method, random_state=0).fit(counts)
    assert "word 3" in str(numbers.summary())


def test_a_scanned_table_of_counts_is_refused_with_what_would_do(tmp_path):
    (tmp_path / "counts.csv").write_text("goal,law\n3,0\n0,2\n")
    with pytest.raises(cv.DataError, match=r"table of scan\(...\).*scan_documents.*read_csv"):
        cv.LatentDirichletAllocation(2).fit(cv.scan(tmp_path / "counts.csv"))


@pytest.mark.parametrize("kind", [list, np.array, pd.Series], ids=["list", "array", "series"])
def test_texts_are_refused_with_how_to_count_their_words(kind):
    with pytest.raises(cv.DataError, match=r"X has a text in row 0.*count_words\(texts\).*vocabulary="):
        cv.LatentDirichletAllocation(2).fit(kind(["goal ball", "law vote"]))


@pytest.mark.parametrize("kind", [list, pd.Series], ids=["list", "series"])
def test_lists_of_words_are_refused_with_how_to_count_them(kind):
    documents = [[], ["goal", "ball", "goal"], ["law", "vote"]]
    with pytest.raises(cv.DataError, match=r"X has a list of words in row 1.*count_words\(texts\)"):
        cv.LatentDirichletAllocation(2).fit(kind(documents))
    found = cv.data.count_words(documents)
    assert found.words == ("ball", "goal", "law", "vote")
    assert found.counts.toarray().tolist() == [[0, 0, 0, 0], [1, 2, 0, 0], [0, 0, 1, 1]]


def test_bags_of_words_are_refused_with_what_makes_counts_of_them():
    with pytest.raises(cv.DataError, match=r"X has pairs of a word and its count.*corpus2csc"):
        cv.LatentDirichletAllocation(2).fit([[], [(0, 1), (2, 3)], [(1, 1)]])


def test_a_column_of_texts_is_refused_by_its_name():
    frame = pd.DataFrame({"goal": [3, 0], "law": [0, 2], "title": ["a cup", "a court"]})
    with pytest.raises(cv.DataError, match=r"column 'title' of X .* 'a cup' in row 0; .*count_words"):
        cv.LatentDirichletAllocation(2).fit(frame)


def test_a_missing_count_is_refused_by_its_place():
    """scikit-learn advised classifiers that take missing values."""
    frame = pd.DataFrame({"goal": [3, 0.0], "law": [0, np.nan]})
    with pytest.raises(cv.DataError, match=r"missing value \(NaN\) in row 1, column 'law'.*fillna\(0\)"):
        cv.LatentDirichletAllocation(2).fit(frame)
    with pytest.raises(cv.DataError, match="in row 1, column 1, "):
        cv.LatentDirichletAllocation(2).fit(frame.to_numpy())


@pytest.mark.parametrize("form", ["array", "files"])
def test_documents_without_words_do_not_affect_a_fit(form, tmp_path):
    """Neither where it begins nor where it ends, which is decided by the gain of a document."""
    counts = documents().toarray()
    among = np.insert(counts, np.repeat([0, 20, 60], 10), 0.0, axis=0)

    def given(table):
        if form == "array":
            return table
        rows = [{"words": list(np.repeat(np.arange(50), row.astype(int)))} for row in table]
        pd.DataFrame(rows).to_parquet(tmp_path / f"{len(rows)}.parquet")
        return cv.scan_documents(tmp_path / f"{len(rows)}.parquet", counts=None)

    alone, beside = fitted(given(counts), n_jobs=1), fitted(given(among), n_jobs=1)
    assert alone.n_iter_ == beside.n_iter_
    assert alone.elbo_ == pytest.approx(beside.elbo_, rel=1e-12)
    np.testing.assert_allclose(alone.components_, beside.components_, rtol=1e-9)


def test_counts_with_their_words_are_refused_with_where_each_goes():
    found = cv.data.count_words(["goal ball goal", "law vote law"], min_documents=1)
    with pytest.raises(cv.DataError, match=r"vocabulary=X\.words.*X\.counts"):
        cv.LatentDirichletAllocation(2).fit(found)
    assert (
        cv.LatentDirichletAllocation(2, vocabulary=found.words, random_state=0).fit(found.counts).top_words(1)
    )
