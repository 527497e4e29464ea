"""Latent Dirichlet allocation against a loop written from the paper's equations, enumeration and BayesPy."""

from itertools import product

import numpy as np
import pytest
from scipy import sparse
from scipy.special import digamma, gammaln, logsumexp
from thinning import amount

import caviar as cv
import caviar.models
from caviar.engine.design.scratch import Scratch
from caviar.engine.topics import kernel

TOPICS, WORDS = 3, 40
ALPHA, ETA = np.array([0.4, 0.7, 1.1]), 0.3


def counts_of(seed: int, documents: int = 12) -> np.ndarray:
    """Counts with an empty document and a word that never occurs."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(WORDS, 0.2), TOPICS)
    lengths = rng.poisson(25, documents)
    proportions = rng.dirichlet(ALPHA, documents)
    counts = np.array([rng.multinomial(n, p @ topics) for n, p in zip(lengths, proportions, strict=True)])
    counts[4] = 0
    counts[:, 7] = 0
    return counts


def log_dirichlet(concentration: np.ndarray) -> np.ndarray:
    return digamma(concentration) - digamma(concentration.sum(axis=-1, keepdims=True))


def log_normaliser(concentration: np.ndarray) -> np.ndarray:
    return gammaln(concentration).sum(axis=-1) - gammaln(concentration.sum(axis=-1))


def literal_path(counts: np.ndarray, proportions: np.ndarray, topics: np.ndarray, sweeps: int) -> list[float]:
    """The bound before and after each sweep: all arrays of documents x words x topics, one equation a line."""
    alpha, eta = np.broadcast_to(ALPHA, proportions.shape), np.full(topics.shape, ETA)
    bounds = []
    for sweep in range(sweeps + 1):
        logits = log_dirichlet(proportions)[:, None, :] + log_dirichlet(topics).T[None, :, :]
        r = np.exp(logits - logsumexp(logits, axis=-1, keepdims=True))
        expected = np.einsum("dv,dvk,dvk->", counts, r, logits - np.log(r))
        bound = expected + 0.0
        for q, p in ((proportions, alpha), (topics, eta)):
            bound += np.sum(log_normaliser(q) - log_normaliser(p)) + np.sum((p - q) * log_dirichlet(q))
        bounds.append(float(bound))
        if sweep < sweeps:
            proportions = alpha + np.einsum("dv,dvk->dk", counts, r)
            topics = eta + np.einsum("dv,dvk->kv", counts, r)
    return bounds


def model() -> cv.Model:
    return caviar.models.latent_dirichlet_allocation(
        TOPICS, WORDS, concentration=ALPHA, word_concentration=ETA
    )


@pytest.mark.parametrize("seed", range(5))
def test_the_whole_path_is_that_of_a_literal_loop(seed: int) -> None:
    counts, rng = counts_of(seed), np.random.default_rng(100 + seed)
    proportions = rng.gamma(2.0, 1.0, (len(counts), TOPICS))
    topics = rng.gamma(2.0, 1.0, (TOPICS, WORDS))
    init = {
        "proportions": cv.families.Dirichlet(proportions),
        "topics": cv.families.Dirichlet(topics),
    }
    fit = model().fit(
        {"word": sparse.csr_array(counts)},
        data_plate="token",
        init=init,
        max_iter=15,
        tol=0,
        accelerate=False,
    )
    np.testing.assert_allclose(fit.elbo_trace, literal_path(counts, proportions, topics, 15), rtol=1e-11)


def as_lists(counts: np.ndarray) -> list[np.ndarray]:
    return [np.repeat(np.arange(counts.shape[1]), row) for row in counts]


def test_counts_lists_and_labelled_tokens_are_the_same_data() -> None:
    counts = counts_of(0)
    lists = as_lists(counts)
    labels = np.repeat(np.arange(len(lists)), [len(part) for part in lists])
    shuffled = np.random.default_rng(0).permutation(len(labels))
    forms = (
        {"word": sparse.csr_array(counts)},
        {"word": sparse.coo_matrix(counts.astype(float))},
        {"word": lists},
        {"word": np.concatenate(lists)[shuffled], "document": labels[shuffled]},
    )
    rng = np.random.default_rng(1)
    init = {"topics": rng.dirichlet(np.ones(WORDS), TOPICS), "proportions": rng.dirichlet(ALPHA, len(counts))}
    settings = {"data_plate": "token", "init": init, "max_iter": 30, "tol": 0, "accelerate": False}
    fits = [model().fit(data, **settings) for data in forms]
    for fit in fits[1:]:
        np.testing.assert_allclose(fit.elbo_trace, fits[0].elbo_trace, rtol=1e-11)
        np.testing.assert_allclose(fit["topics"].concentration, fits[0]["topics"].concentration, rtol=1e-7)


@pytest.mark.thinned(4)
@pytest.mark.parametrize("seed", range(4))
def test_the_bound_lies_below_the_exact_evidence(seed: int) -> None:
    """Enumeration of every assignment of six tokens to two topics; both Dirichlets are integrated exactly."""
    rng = np.random.default_rng(seed)
    words, labels = rng.integers(20, size=6), np.array([0, 0, 0, 1, 1, 1])
    alpha, eta = np.array([0.6, 1.2]), np.full(20, 0.5)
    paths = []
    for z in product(range(2), repeat=6):
        chosen = np.array(z)
        proportions = np.array([np.bincount(chosen[labels == d], minlength=2) for d in range(2)])
        topics = np.array([np.bincount(words[chosen == k], minlength=20) for k in range(2)])
        paths.append(
            np.sum(log_normaliser(alpha + proportions) - log_normaliser(alpha))
            + np.sum(log_normaliser(eta + topics) - log_normaliser(eta))
        )
    stated = caviar.models.latent_dirichlet_allocation(2, 20, concentration=alpha, word_concentration=eta)
    fit = stated.fit({"word": words, "document": labels}, seed=0, n_restarts=4)
    assert fit.elbo <= logsumexp(paths)
    # with one topic the model is a Dirichlet and its draws: the bound is the evidence
    single = caviar.models.latent_dirichlet_allocation(1, 20, concentration=1.0, word_concentration=0.5)
    fit = single.fit({"word": words, "document": labels}, seed=0)
    total = np.bincount(words, minlength=20)
    assert fit.elbo == pytest.approx(log_normaliser(eta + total) - log_normaliser(eta), rel=1e-12)


def test_the_path_is_that_of_bayespy() -> None:
    from bayespy.nodes import Categorical, Dirichlet, Gate

    counts = counts_of(3, documents=6)
    words = np.concatenate(as_lists(counts))
    labels = np.repeat(np.arange(len(counts)), counts.sum(axis=1))
    start = np.random.default_rng(0).dirichlet(np.ones(WORDS), TOPICS)
    even = np.full((len(counts), TOPICS), 1 / TOPICS)
    proportions = Dirichlet(ALPHA, plates=(len(counts),))
    topics = Dirichlet(np.full(WORDS, ETA), plates=(TOPICS,))
    z = Categorical(Gate(labels, proportions), plates=(len(words),))
    word = Categorical(Gate(z, topics))
    word.observe(words)
    proportions.initialize_from_value(even)
    topics.initialize_from_value(start)
    z.update()
    for _ in range(20):
        for node in (proportions, topics, z):
            node.update()
    bound = sum(node.lower_bound_contribution() for node in (word, z, proportions, topics))
    fit = model().fit(
        {"word": words, "document": labels},
        init={"proportions": even, "topics": start},
        order=["proportions", "topics"],
        max_iter=20,
        tol=0,
        accelerate=False,
    )
    assert fit.elbo == pytest.approx(float(bound), rel=1e-11)


@pytest.mark.slow
def test_new_documents_have_proportions_of_their_own() -> None:
    counts = counts_of(1)
    fit = model().fit({"word": sparse.csr_array(counts)}, seed=0, max_iter=2000, tol=1e-13)
    again = fit.local({"word": sparse.csr_array(counts)})["proportions"]
    settled = fit.elbo_at({"proportions": again}, {"word": sparse.csr_array(counts)})
    # from the prior a document may settle elsewhere than from where it stood in the fit, but about as high
    assert settled == pytest.approx(fit.elbo, abs=2.0)
    three = fit.predict({"word": sparse.csr_array(counts[:3])})
    np.testing.assert_allclose(three["proportions"].concentration, again.concentration[:3], rtol=1e-3)
    assert len(three["z"].probabilities) == np.count_nonzero(counts[:3])
    empty = fit.predict({"document": np.array([1]), "word": np.array([2])})["proportions"]
    np.testing.assert_allclose(empty.concentration[0], ALPHA)
    assert np.isfinite(fit.elbo_at({}, {"word": sparse.csr_array(counts[:3])}))
    with pytest.raises(cv.ModelError, match=r"posterior.local\(data\)\['proportions'\] gives its factors"):
        fit["proportions"]
    by_token = model().fit({"word": sparse.csr_array(counts)}, seed=0, data_plate="token", max_iter=5)
    assert by_token["proportions"].concentration.shape == (len(counts), TOPICS)
    with pytest.raises(cv.ModelError, match=r"has repetitions \(12,\), but these data have \(3,\)"):
        by_token.elbo_at({}, {"word": sparse.csr_array(counts[:3])})


@pytest.mark.slow
def test_topics_that_made_the_documents_are_found() -> None:
    """A start by chance that lets documents choose among topics that are nothing yet ends far below the truth."""
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(60, 0.1), 6)
    proportions = rng.dirichlet(np.full(6, 0.3), 80)
    counts = np.array([rng.multinomial(120, p @ topics) for p in proportions])
    stated = caviar.models.latent_dirichlet_allocation(6, 60, concentration=0.3, word_concentration=0.1)
    data = {"word": sparse.csr_array(counts)}
    found = stated.fit(data, seed=0)
    truth = stated.fit(data, init={"topics": topics})
    assert found.elbo > truth.elbo - 0.006 * counts.sum()


def test_simulated_documents_have_the_lengths_asked_for() -> None:
    labels = np.repeat([0, 1, 3], [4, 2, 5])
    drawn = model().simulate(0, data={"document": labels}, sizes={"document": 6})
    assert drawn["word"].shape == (11,)
    assert drawn["proportions"].shape == (6, TOPICS)
    assert np.isfinite(model().log_joint({**drawn, "document": labels}))


@pytest.mark.parametrize("schedule", ["batch", "incremental", "stochastic"])
@pytest.mark.parametrize("data", [sparse.csr_array((3, 40)), [np.empty(0, dtype=int)] * 3])
def test_documents_without_words_leave_topics_at_their_prior(schedule: str, data) -> None:
    """And the log probability of no words is 0."""
    posterior = model().fit({"word": data}, seed=0, schedule=schedule)
    prior = model().variables["topics"].slots["concentration"].node.value
    np.testing.assert_allclose(posterior["topics"].concentration, np.broadcast_to(prior, (TOPICS, 40)))
    assert posterior.converged
    assert posterior.elbo == pytest.approx(0.0, abs=1e-12)
    local = posterior.local({"word": data})
    assert local["proportions"].concentration.shape == (3, TOPICS)
    assert local["z"].probabilities.shape == (0, TOPICS)
    with pytest.raises(cv.DataError, match="the data of 'word' are empty: no document has any token"):
        model().fit({"word": data}, data_plate="token")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            {"word": np.zeros((2, 40))},
            "its data are a list with an array for each document, or a sparse matrix",
        ),
        ({"word": [0, 1, 2]}, "its data are a list with an array for each document"),
        ({"word": sparse.csr_array(-np.eye(40))}, "must be finite and not negative; got -1"),
        ({"word": sparse.csr_array(np.ones((2, 39)))}, r"40 categories, but its counts have shape \(2, 39\)"),
        ({"word": [np.array([3, 40])]}, "must hold whole numbers from 0 to 39; row 1 has 40"),
        ({"word": np.array([3, 4]), "document": np.array([0, -1])}, "whole numbers from 0"),
        ({"word": np.array([3, 4]), "document": np.array([0, 0, 1])}, "plate 'token' has"),
        (
            {"word": [np.array([3, 4])], "document": np.array([0, 0])},
            "'word' must be one array with a row for each",
        ),
        (
            {"word": sparse.csr_array(np.ones((2, 40)) * 1j)},
            "must be real numbers; got a sparse matrix of complex",
        ),
        ({"word": [[[1, 2], [3]], [1]]}, "its data are a list with an array for each document"),
        ({"word": np.array([], dtype=object)}, "its data are a list with an array for each document"),
        (
            {"word": np.array([[1, 2], 3], dtype=object)},
            "its data are a list with an array for each document",
        ),
        ({"word": [1, 2], "document": [7, 10**10]}, r"got 1e\+10 among 2 tokens. Number them without gaps"),
    ],
)
def test_data_in_no_known_form_are_refused(data: dict, message: str) -> None:
    with pytest.raises((cv.DataError, cv.PlateError), match=message):
        model().fit(data)


@pytest.mark.parametrize("kind", [np.uint8, np.bool_])
def test_counts_in_pieces_are_added_whatever_their_type(kind: type) -> None:
    """200 and 100 of one word make 300, and not 44, what 8 bits hold of it; two marks of a word are two."""
    whole = np.zeros((2, WORDS))
    whole[[0, 0, 1], [1, 2, 3]] = [300.0, 1.0, 2.0] if kind is np.uint8 else [2.0, 1.0, 1.0]
    pieces = ([200, 100, 1, 2], ([0, 0, 0, 1], [1, 1, 2, 3]))
    counts = sparse.coo_array((np.array(pieces[0], dtype=kind), pieces[1]), shape=whole.shape)
    posterior = model().fit({"word": counts}, seed=0)
    total = posterior["topics"].concentration.sum() - TOPICS * WORDS * ETA
    assert total == pytest.approx(whole.sum())
    assert posterior.elbo == pytest.approx(model().fit({"word": sparse.csr_array(whole)}, seed=0).elbo)


def test_weights_of_tokens_are_refused() -> None:
    with pytest.raises(
        cv.DataError, match="sample_weight has no meaning for 'token', which lies within 'document'"
    ):
        model().fit({"word": [np.array([3, 4])]}, sample_weight=[1.0, 2.0], data_plate="token")


@pytest.mark.slow
def test_the_verification_kit_accepts_the_model() -> None:
    counts = counts_of(2, documents=6)
    labels = np.repeat(np.arange(6), counts.sum(axis=1))
    report = cv.testing.check_model(
        model(), {"word": np.concatenate(as_lists(counts)), "document": labels}, seed=0
    )
    assert report.passed, str(report)


@pytest.mark.slow
def test_the_verification_kit_takes_proportions_as_the_fit_left_them() -> None:
    """Found anew they may settle elsewhere, and the bound of these is another one."""
    documents, words = np.nonzero(counts_of(2, documents=6)[:, :9])
    stated = caviar.models.latent_dirichlet_allocation(3, 9)
    fit = stated.fit({"word": words, "document": documents}, seed=0, max_iter=500)
    n_draws = amount(800, 4000)
    estimate = cv.testing.elbo_estimate(fit, {"word": words, "document": documents}, n_draws=n_draws, seed=1)
    assert abs(estimate.value - fit.elbo) < 5 * estimate.error


@pytest.mark.thinned(2)
@pytest.mark.parametrize("point", [["topics"], ["topics", "proportions"]])
def test_point_masses_of_the_topics_do_not_keep_new_documents_from_settling(point: list[str]) -> None:
    """Given factors that are points count in the objective with a finite number, so that the ascent can end."""
    stated = caviar.models.latent_dirichlet_allocation(
        TOPICS, WORDS, concentration=1.3, word_concentration=1.1
    )
    data = {"word": sparse.csr_array(counts_of(0))}
    fit = stated.fit(data, seed=0, point=point, data_plate="token")
    plan, _ = fit._evaluator.bind(data)
    (outer,) = (variable for variable in plan.order if variable.name == "proportions")
    held = plan.updating([outer])
    entropies = [held.own_entropy(variable, fit[variable.name]) for variable in plan.order]
    assert np.isfinite(entropies).all()
    assert np.isfinite(fit.local(data)["proportions"].mean).all()


def test_documents_settle_at_the_same_places_in_fewer_updates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Longer updates after the first ones, of topics that are hard to tell apart."""
    rng = np.random.default_rng(5)
    counts = sparse.csr_array(rng.poisson(1.0, (40, 30)).astype(float))
    shared = rng.dirichlet(np.full(30, 2.0))
    topics = kernel.TopicWords.of(np.log(0.8 * shared + 0.2 * rng.dirichlet(np.ones(30), 6)))
    prior, start = np.full(6, 0.3), 0.3 + counts.sum(axis=1)[:, None] / 6 * np.ones(6)
    update, made, ends = kernel._updated, [0], []

    def counted(now: np.ndarray, *others: np.ndarray) -> np.ndarray | None:
        made[0] += len(now)
        return update(now, *others)

    monkeypatch.setattr(kernel, "_updated", counted)
    for plain in (5_000, 20):
        monkeypatch.setattr(kernel, "_PLAIN", plain)
        made[0] = 0
        found = kernel.ascend_documents(counts, topics, prior, start, Scratch(), most=5_000, tol=1e-11)
        ends.append((found.concentration, made[0]))
    (one, n_plain), (other, n_updates) = ends
    np.testing.assert_allclose(other, one, rtol=1e-6)
    # the last update is no longer one: it leaves all where it is
    again = update(other, prior, np.asarray(counts.toarray()), np.tile(topics.scaled, (40, 1, 1)))
    assert again is not None
    np.testing.assert_allclose(again, other, rtol=1e-8)
    assert n_updates < 0.6 * n_plain
