"""Documents as rows: the kernel against the updates that the compiler derives, a literal loop, and enumeration."""

from __future__ import annotations

from dataclasses import replace
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
from caviar.engine.topics.e_step import TopicRows
from caviar.engine.topics.kernel import TopicWords, ascend_documents, bounds_of_proportions

TOPICS, WORDS = 3, 40
ALPHA, ETA = np.array([0.4, 0.7, 1.1]), 0.3


def counts_of(seed: int, documents: int = 12, length: int = 25) -> np.ndarray:
    """Counts with an empty document, one of a single word, and a word that never occurs."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(WORDS, 0.2), TOPICS)
    proportions = rng.dirichlet(ALPHA, documents)
    lengths = rng.poisson(length, documents)
    counts = np.array([rng.multinomial(n, p @ topics) for n, p in zip(lengths, proportions, strict=True)])
    counts[4], counts[5] = 0, 0
    counts[5, 9] = 1
    counts[:, 7] = 0
    return counts.astype(float)


def model(eta: float = ETA) -> cv.Model:
    return caviar.models.latent_dirichlet_allocation(
        TOPICS, WORDS, concentration=ALPHA, word_concentration=eta
    )


def log_mean(concentration: np.ndarray) -> np.ndarray:
    return digamma(concentration) - digamma(concentration.sum(axis=-1, keepdims=True))


def log_normaliser(concentration: np.ndarray) -> np.ndarray:
    return gammaln(concentration).sum(axis=-1) - gammaln(concentration.sum(axis=-1))


def literal_document(row: np.ndarray, log_topics: np.ndarray, alpha: np.ndarray, sweeps: int) -> tuple:
    """One document by the equations: concentration, shares of its words, and its part of the bound."""
    gamma = alpha + row.sum() / len(alpha)
    for _ in range(sweeps):
        logits = log_mean(gamma)[None, :] + log_topics.T
        r = np.exp(logits - logsumexp(logits, axis=1, keepdims=True))
        gamma = alpha + row @ r
    logits = log_mean(gamma)[None, :] + log_topics.T
    normaliser = logsumexp(logits, axis=1)
    r = np.exp(logits - normaliser[:, None])
    bound = (
        row @ normaliser + log_normaliser(gamma) - log_normaliser(alpha) + (alpha - gamma) @ log_mean(gamma)
    )
    return gamma, row[:, None] * r, bound


def found_by_kernel(
    counts: np.ndarray, log_topics: np.ndarray, alpha: np.ndarray, most: int, tol: float = 0.0
):
    rows = sparse.csr_array(counts)
    start = alpha + counts.sum(axis=1)[:, None] / len(alpha)
    words = TopicWords.of(log_topics)
    found = ascend_documents(rows, words, alpha, start, Scratch(), most=most, tol=tol)
    ratios = sparse.csr_array((found.ratios, rows.indices, rows.indptr), shape=rows.shape)
    total = words.scaled * (ratios.T @ found.theta)
    if found.apart is not None:
        np.add.at(total, found.apart[0], found.apart[1])
    bounds = found.log_normalisers + bounds_of_proportions(found.concentration, alpha)
    return found.concentration, total, bounds


@pytest.mark.thinned(2)
@pytest.mark.parametrize("sweeps", [0, 1, 7])
@pytest.mark.parametrize("seed", range(3))
def test_a_block_is_that_of_a_literal_loop(seed: int, sweeps: int) -> None:
    counts = counts_of(seed) * np.random.default_rng(seed).uniform(0.1, 3.0, (12, WORDS))
    log_topics = log_mean(np.random.default_rng(50 + seed).gamma(0.5, 1.0, (TOPICS, WORDS)) + 0.05)
    gamma, total, bounds = found_by_kernel(counts, log_topics, ALPHA, sweeps)
    literal = [literal_document(row, log_topics, ALPHA, sweeps) for row in counts]
    np.testing.assert_allclose(gamma, [own[0] for own in literal], rtol=1e-11)
    np.testing.assert_allclose(total, sum(own[1] for own in literal), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(bounds, [own[2] for own in literal], rtol=1e-11, atol=1e-11)


@pytest.mark.slow
def test_stretched_updates_settle_at_the_same_places_sooner() -> None:
    counts = counts_of(12, documents=30, length=80)
    log_topics = log_mean(np.random.default_rng(3).gamma(0.5, 1.0, (TOPICS, WORDS)) + 0.05)
    rows, words = sparse.csr_array(counts), TopicWords.of(log_topics)
    start = ALPHA + counts.sum(axis=1)[:, None] / TOPICS

    def concentration(most: int, stretch: float) -> np.ndarray:
        settings = {"most": most, "tol": 0.0, "stretch": stretch}
        return ascend_documents(rows, words, ALPHA, start, Scratch(), **settings).concentration

    settled = concentration(3_000, 1.0)
    np.testing.assert_allclose(concentration(3_000, 1.6), settled, rtol=1e-7)
    plain, stretched = (np.abs(concentration(10, s) - settled).mean() for s in (1.0, 1.6))
    assert stretched < 0.7 * plain


def test_logarithms_take_over_where_products_of_exponentials_underflow() -> None:
    """A document is all in one topic and its word all in another: e^-1000 times 1 and 1 times e^-1000."""
    log_topics = np.full((2, 4), -1500.0)
    log_topics[0, :2], log_topics[1, 2:] = np.log(0.5), np.log(0.5)
    alpha = np.full(2, 1e-3)
    counts = np.array([[50.0, 40.0, 1.0, 0.0], [0.0, 30.0, 0.0, 0.0], [3.0, 0.0, 0.0, 4.0]])
    start = np.array([[90.0, 1e-3], [30.0, 1e-3], [3.5, 3.5]]) + 1e-3
    rows, words = sparse.csr_array(counts), TopicWords.of(log_topics)
    found = ascend_documents(rows, words, alpha, start, Scratch(), most=0, tol=0.0)
    logits = log_mean(start)[:, None, :] + log_topics.T
    normalisers = np.einsum("dv,dv->d", counts, logsumexp(logits, axis=2))
    np.testing.assert_allclose(found.log_normalisers, normalisers, rtol=1e-12)
    assert found.apart is not None
    total = words.scaled * (
        sparse.csr_array((found.ratios, rows.indices, rows.indptr), shape=rows.shape).T @ found.theta
    )
    np.add.at(total, found.apart[0], found.apart[1])
    shares = np.exp(logits - logsumexp(logits, axis=2, keepdims=True))
    np.testing.assert_allclose(total, np.einsum("dv,dvk->vk", counts, shares), rtol=1e-10, atol=1e-200)
    one = ascend_documents(rows, words, alpha, start, Scratch(), most=1, tol=0.0)
    np.testing.assert_allclose(one.concentration, alpha + np.einsum("dv,dvk->dk", counts, shares), rtol=1e-10)


def test_a_document_does_not_depend_on_those_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = counts_of(0, documents=40, length=60)
    log_topics = log_mean(np.random.default_rng(0).gamma(0.5, 1.0, (TOPICS, WORDS)) + 0.05)
    together = found_by_kernel(counts, log_topics, ALPHA, 30, tol=1e-3)
    for numbers in (1, 300, 1_000):
        monkeypatch.setattr(kernel, "_GROUP_NUMBERS", numbers)
        for one, other in zip(
            together, found_by_kernel(counts, log_topics, ALPHA, 30, tol=1e-3), strict=True
        ):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
    alone = [found_by_kernel(row[None], log_topics, ALPHA, 30, tol=1e-3)[0][0] for row in counts]
    np.testing.assert_allclose(together[0], alone, rtol=1e-9)


@pytest.mark.thinned(9)
@pytest.mark.parametrize("point", [(), ("topics",)])
@pytest.mark.parametrize("seed", range(4))
def test_bound_and_update_are_those_that_the_compiler_derives(seed: int, point: tuple[str, ...]) -> None:
    """At the same factors the same terms; and the same topics after the next update."""
    counts = sparse.csr_array(counts_of(seed))
    stated, data = model(1.2 if point else ETA), {"word": counts}
    fit = stated.fit(data, seed=seed, max_iter=7, point=point)
    local = fit.local(data)
    same = {"topics": fit["topics"], "proportions": local["proportions"]}
    derived = stated.fit(data, data_plate="token", init=same, max_iter=0, point=point, accelerate=False)
    by_kernel = fit.elbo_at({}, data)
    assert by_kernel == pytest.approx(derived.elbo, rel=1e-12)
    for given in (("proportions",), ("z",), ("proportions", "z")):
        assert fit.elbo_at({name: local[name] for name in given}, data) == pytest.approx(
            derived.elbo, rel=1e-12
        )
    # a sweep that begins with the topics updates them from the tokens where they stand
    further = stated.fit(
        data, data_plate="token", init=same, max_iter=1, point=point, accelerate=False, order=["topics"]
    )
    problem, row_map = fit._evaluator.bind(data)
    (topics,) = problem.order
    problem = problem.with_rows(problem.rows.thorough())
    arrays = problem.statistics(topics, fit["topics"])
    arrays.update(row_map.at(problem.rows).summary(problem.rows.coefficients(arrays)).parts)
    updated = problem.update(topics, arrays)
    np.testing.assert_allclose(updated.mean, further["topics"].mean, rtol=1e-7)
    if not point:
        np.testing.assert_allclose(updated.concentration, further["topics"].concentration, rtol=1e-7)


def test_terms_by_factor_are_those_that_the_compiler_derives() -> None:
    data = {"word": sparse.csr_array(counts_of(1))}
    stated = model()
    fit = stated.fit(data, seed=0, max_iter=3000, tol=1e-13)
    same = {"topics": fit["topics"], "proportions": fit.local(data)["proportions"]}
    derived = stated.fit(data, data_plate="token", init=same, max_iter=0)
    assert fit.elbo_terms.keys() == derived.elbo_terms.keys()
    for name, value in derived.elbo_terms.items():
        assert fit.elbo_terms[name] == pytest.approx(value, abs=1e-4)
    assert sum(fit.elbo_terms.values()) == pytest.approx(fit.elbo, rel=1e-12)


def test_given_factors_that_are_no_optimum_have_the_bound_of_the_formula() -> None:
    counts = counts_of(2)
    rng = np.random.default_rng(0)
    stated, data = model(), {"word": sparse.csr_array(counts)}
    fit = stated.fit(data, seed=0, max_iter=3)
    gamma = rng.gamma(2.0, 1.0, (12, TOPICS))
    d, v = np.nonzero(counts)
    r = rng.dirichlet(np.ones(TOPICS), len(d))
    given = {"proportions": cv.families.Dirichlet(gamma), "z": cv.families.Categorical(r)}
    log_topics, topics = log_mean(fit["topics"].concentration), fit["topics"].concentration
    literal = np.sum(counts[d, v][:, None] * r * (log_mean(gamma)[d] + log_topics.T[v] - np.log(r)))
    for q, p in ((gamma, np.broadcast_to(ALPHA, gamma.shape)), (topics, np.full(topics.shape, ETA))):
        literal += np.sum(log_normaliser(q) - log_normaliser(p)) + np.sum((p - q) * log_mean(q))
    assert fit.elbo_at(given, data) == pytest.approx(literal, rel=1e-12)
    with pytest.raises(cv.ParameterError, match=r"a Dirichlet of .* with concentrations of shape"):
        fit.elbo_at({"proportions": cv.families.Dirichlet(gamma[:3])}, data)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("schedule", ["batch", cv.Incremental(3)])
@pytest.mark.parametrize("accelerate", [True, False])
def test_the_bound_never_falls(schedule: object, accelerate: bool) -> None:
    for seed in range(amount(1, 3)):
        data = {"word": sparse.csr_array(counts_of(seed, documents=60))}
        fit = model().fit(data, seed=seed, max_iter=60, tol=0, accelerate=accelerate, schedule=schedule)
        assert np.diff(fit.elbo_trace).min() > -1e-9 * abs(fit.elbo)
        assert len(fit.elbo_trace) > 20


def followed(patch: pytest.MonkeyPatch, useless_after: float = np.inf) -> list[bool]:
    """Whether each pass over a block begins anew; after some that do, such passes leave documents where they began."""
    passes: list[bool] = []
    plain = TopicRows._ascend

    def ascend(self, work):
        begins_anew = self.proportions.key not in work.state
        passes.append(begins_anew)
        is_useless = begins_anew and sum(passes) > useless_after
        return plain(self.with_effort(replace(self.effort, first=0)) if is_useless else self, work)

    patch.setattr(TopicRows, "_ascend", ascend)
    return passes


@pytest.mark.slow
def test_documents_begin_anew_until_nothing_changes_and_then_settle(monkeypatch: pytest.MonkeyPatch) -> None:
    passes = followed(monkeypatch)
    data = {"word": sparse.csr_array(counts_of(0, documents=60))}
    fit = model().fit(data, seed=0, max_iter=500, tol=1e-7, accelerate=False, schedule="batch")
    assert fit.converged
    settling = passes.index(False)
    assert settling > 5
    assert not any(passes[settling:])
    assert np.diff(fit.elbo_trace).min() > -1e-9 * abs(fit.elbo)


@pytest.mark.parametrize("schedule", ["batch", cv.Incremental(3)])
def test_passes_that_lower_the_bound_are_taken_back(
    schedule: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where beginning anew is made useless, the fit is the one that always goes on from the last pass."""
    data = {"word": sparse.csr_array(counts_of(1, documents=60))}
    topics = cv.families.Dirichlet(np.random.default_rng(0).gamma(5.0, 0.2, (TOPICS, WORDS)))
    settings = {
        "init": {"topics": topics},
        "max_iter": 8,
        "tol": 0,
        "accelerate": False,
        "schedule": schedule,
    }
    with monkeypatch.context() as patch:
        patch.setattr(TopicRows, "begins_anew", False)
        passes = followed(patch)
        wanted = model().fit(data, **settings).elbo_trace
    n_first = sum(passes)
    again = followed(monkeypatch, useless_after=n_first)
    np.testing.assert_array_equal(model().fit(data, **settings).elbo_trace, wanted)
    assert sum(again) > n_first


def test_the_bound_lies_below_the_exact_evidence() -> None:
    """Enumeration of every assignment of six tokens to two topics; both Dirichlets are integrated exactly."""
    rng = np.random.default_rng(0)
    alpha, eta = np.array([0.6, 1.2]), np.full(20, 0.5)
    words, labels = rng.integers(20, size=6), np.array([0, 0, 0, 1, 1, 1])
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
    assert fit.data_plate is not None
    assert fit.data_plate.name == "document"
    assert logsumexp(paths) - 6.0 < fit.elbo <= logsumexp(paths)


@pytest.mark.slow
def test_with_one_topic_the_bound_is_the_evidence_whatever_the_counts() -> None:
    """A Dirichlet and its draws: huge counts, and counts that are no whole numbers."""
    single = caviar.models.latent_dirichlet_allocation(1, WORDS, concentration=1.0, word_concentration=ETA)
    for scale in (1.0, 0.37, 1e-3, 1e7):
        counts = counts_of(3) * scale
        fit = single.fit({"word": sparse.csr_array(counts)}, seed=0)
        eta = np.full(WORDS, ETA)
        exact = log_normaliser(eta + counts.sum(axis=0)) - log_normaliser(eta)
        assert fit.elbo == pytest.approx(exact, rel=1e-12)


@pytest.mark.slow
def test_threads_and_blocks_do_not_change_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    data = {"word": sparse.csr_array(counts_of(4, documents=700))}
    fits = [model().fit(data, seed=0, max_iter=10, tol=0, executor=n) for n in (1, 2)]
    np.testing.assert_array_equal(fits[0]["topics"].concentration, fits[1]["topics"].concentration)
    np.testing.assert_array_equal(fits[0].elbo_trace, fits[1].elbo_trace)
    monkeypatch.setattr(TopicRows, "block_rows", 37)
    other = model().fit(data, seed=0, max_iter=10, tol=0)
    np.testing.assert_allclose(other.elbo_trace, fits[0].elbo_trace, rtol=1e-9)


@pytest.mark.slow
def test_a_weight_of_two_is_the_document_twice() -> None:
    counts = counts_of(5)
    weights = np.arange(12) % 3
    repeated = np.repeat(counts, weights, axis=0)
    weighted = model().fit({"word": sparse.csr_array(counts)}, seed=0, sample_weight=weights, max_iter=30)
    plain = model().fit({"word": sparse.csr_array(repeated)}, seed=0, max_iter=30)
    assert weighted.elbo == pytest.approx(plain.elbo, rel=1e-9)
    np.testing.assert_allclose(weighted["topics"].concentration, plain["topics"].concentration, rtol=1e-6)
    at_factors = weighted.local({"word": sparse.csr_array(counts)})
    given = {"proportions": at_factors["proportions"]}
    both = [
        weighted.elbo_at(given, {"word": sparse.csr_array(counts)}, sample_weight=weights),
        weighted.elbo_at({}, {"word": sparse.csr_array(repeated)}),
    ]
    assert both[0] == pytest.approx(both[1], rel=1e-10)


@pytest.mark.slow
def test_factors_of_tokens_and_their_densities_come_in_the_order_of_the_data() -> None:
    counts = counts_of(6).astype(int)
    lists = [np.repeat(np.arange(WORDS), row) for row in counts]
    labels = np.repeat(np.arange(len(lists)), [len(own) for own in lists])
    shuffled = np.random.default_rng(0).permutation(len(labels))
    data = {"word": np.concatenate(lists)[shuffled], "document": labels[shuffled]}
    fit = model().fit(data, seed=0)
    local = fit.local(data)
    logits = log_mean(local["proportions"].concentration)[data["document"]]
    logits = logits + log_mean(fit["topics"].concentration).T[data["word"]]
    expected = np.exp(logits - logsumexp(logits, axis=1, keepdims=True))
    np.testing.assert_allclose(local["z"].probabilities, expected, rtol=1e-9)
    densities = fit.log_predictive(data)
    mean = local["proportions"].mean[data["document"]] * fit["topics"].mean.T[data["word"]]
    np.testing.assert_allclose(densities, np.log(mean.sum(axis=1)), rtol=1e-12)
    same = {"topics": fit["topics"], "proportions": local["proportions"]}
    by_token = model().fit(data, data_plate="token", init=same, max_iter=0)
    np.testing.assert_allclose(densities, by_token.log_predictive(data), rtol=1e-9)


def test_a_start_from_tokens_or_proportions_gives_the_topics_that_follow() -> None:
    counts = counts_of(7)
    data, rng = {"word": sparse.csr_array(counts)}, np.random.default_rng(0)
    d, v = np.nonzero(counts)
    labels = rng.integers(TOPICS, size=len(d))
    topics = np.full((TOPICS, WORDS), ETA)
    np.add.at(topics, (labels, v), counts[d, v])
    fit = model().fit(data, init={"z": labels}, max_iter=0)
    np.testing.assert_allclose(fit["topics"].concentration, topics, rtol=1e-12)
    proportions = rng.dirichlet(np.ones(TOPICS), len(counts))
    fit = model().fit(data, init={"proportions": proportions}, max_iter=0)
    np.testing.assert_allclose(fit["topics"].concentration, ETA + proportions.T @ counts, rtol=1e-12)
    for init, message in (
        ({"z": labels, "proportions": proportions}, "topics follow from either one"),
        ({"z": labels[:-1]}, "must have shape"),
        ({"proportions": proportions[:3]}, r"must have shape \(12, 3\)"),
        ({"topics": fit["topics"], "z": labels}, "leave out 'z'"),
    ):
        with pytest.raises(cv.ParameterError, match=message):
            model().fit(data, init=init)


@pytest.mark.slow
def test_what_the_pattern_is_not_keeps_a_row_for_each_token() -> None:
    counts = counts_of(8).astype(int)
    data = {"word": sparse.csr_array(counts)}
    assert model().fit(data, max_iter=1).data_plate.name == "document"
    for arguments in (
        {"data_plate": "token"},
        {"order": ["proportions"]},
        {"point": ["proportions"], "init": "prior"},
    ):
        stated = caviar.models.latent_dirichlet_allocation(
            3, WORDS, concentration=1.5, word_concentration=1.5
        )
        posterior = stated.fit(data, max_iter=1, **arguments)
        assert posterior.data_plate.name == "token"
        assert "proportions" in posterior
    missing = [np.array([1.0, np.nan, 3.0]), np.array([2.0])]
    assert model().fit({"word": missing}, max_iter=1).data_plate.name == "token"


@pytest.mark.slow
def test_more_documents_have_the_posterior_for_prior() -> None:
    """The bound of the second half is that of the statement with the first posterior in the place of its prior."""
    counts = counts_of(9, documents=24)
    first = model().fit({"word": sparse.csr_array(counts[:12])}, seed=0)
    both = first.update({"word": sparse.csr_array(counts[12:])}, max_iter=0)
    later = {"word": sparse.csr_array(counts[12:])}
    believed = first["topics"].concentration
    gamma = both.local(later)["proportions"].concentration
    at = both.elbo_at({"proportions": cv.families.Dirichlet(gamma)}, later)
    log_topics = log_mean(both["topics"].concentration)
    bound = 0.0
    for row, own in zip(counts[12:], gamma, strict=True):
        bound += row @ logsumexp(log_mean(own)[None] + log_topics.T, axis=1)
        bound += log_normaliser(own) - log_normaliser(ALPHA) + (ALPHA - own) @ log_mean(own)
    q = both["topics"].concentration
    bound += np.sum(log_normaliser(q) - log_normaliser(believed)) + np.sum((believed - q) * log_topics)
    assert at == pytest.approx(bound, rel=1e-11)
    updated = first.update(later, max_iter=50)
    assert updated["topics"].concentration.sum() == pytest.approx(
        counts.sum() + TOPICS * WORDS * ETA, rel=1e-10
    )


@pytest.mark.slow
def test_every_direction_is_stationary_at_the_end() -> None:
    counts = counts_of(10, documents=6).astype(int)
    labels = np.repeat(np.arange(6), counts.sum(axis=1))
    words = np.concatenate([np.repeat(np.arange(WORDS), row) for row in counts])
    report = cv.testing.check_model(model(), {"word": words, "document": labels}, seed=0)
    assert report.passed, str(report)


def test_words_of_a_document_that_nothing_is_known_of_are_at_the_prior_of_its_proportions() -> None:
    fit = model().fit({"word": sparse.csr_array(counts_of(11))}, seed=0)
    predicted = fit.predict({"document": [0, 0, 1]})["word"]
    expected = ALPHA / ALPHA.sum() @ fit["topics"].mean
    np.testing.assert_allclose(predicted.mean, np.tile(expected, (3, 1)), rtol=1e-12)
    drawn = fit.predictive({"document": 2}, data={"document": [0, 1, 1]}, seed=0, n_draws=2)["word"]
    assert drawn.shape == (2, 3)
