"""Documents whose proportions have hidden parents: the kernel against the updates that the compiler derives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.special import digamma, logsumexp

import caviar as cv

pytestmark = pytest.mark.filterwarnings("ignore::caviar.LooseBoundWarning")
TOPICS, WORDS = 4, 20
KINDS = ["sticks", "sticks and numbers", "sticks times a total", "a total", "a total times shares"]


def counts_of(seed: int, documents: int = 14) -> np.ndarray:
    """Counts with an empty document, and one of a single word."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(WORDS, 0.2), 3)
    proportions = rng.dirichlet(np.full(3, 0.5), documents)
    counts = np.array([rng.multinomial(20, p @ topics) for p in proportions]).astype(float)
    counts[4], counts[5] = 0, 0
    counts[5, 9] = 1
    return counts


def model(kind: str) -> cv.Model:
    """Return a model of documents whose proportions are around hidden weights, or have a hidden concentration."""
    topic, document = cv.Plate("topic", TOPICS), cv.Plate("document")
    token = cv.Plate("token", within=document)
    alpha = cv.Gamma("alpha", 2.0, 1.0)
    beta = cv.StickBreaking("beta", cv.Gamma("gamma", 2.0, 1.0), TOPICS)
    shares = cv.Constant("shares", [0.1, 0.2, 0.3, 0.4])
    concentration: Any = {
        "sticks": 0.8 * beta,
        "sticks and numbers": 0.8 * beta + 0.3 * shares + 0.1,
        "sticks times a total": alpha * beta,
        "a total": alpha,
        "a total times shares": alpha * shares,
    }[kind]
    proportions = cv.Dirichlet("proportions", concentration, categories=TOPICS, plates=document)
    topics = cv.Dirichlet("topics", np.full(WORDS, 0.3), plates=topic)
    z = cv.Categorical("z", proportions, plates=token)
    return cv.Model(cv.Categorical("word", topics[z], plates=token))


def above(fit: cv.Posterior) -> dict[str, Any]:
    """Return the factors of what is above the proportions."""
    return {name: fit[name] for name in ("alpha", "beta", "gamma") if name in fit}


@pytest.mark.thinned(6)
@pytest.mark.parametrize("kind", KINDS)
def test_bound_and_updates_are_those_that_the_compiler_derives(kind: str) -> None:
    data = {"word": sparse.csr_array(counts_of(0))}
    stated = model(kind)
    fit = stated.fit(data, seed=0, max_iter=7)
    assert "proportions" not in fit
    local = fit.local(data)
    same = {"topics": fit["topics"], "proportions": local["proportions"], **above(fit)}
    settings: dict[str, Any] = {"data_plate": "token", "init": same, "accelerate": False}
    derived = stated.fit(data, max_iter=0, **settings)
    assert fit.elbo_at({}, data) == pytest.approx(derived.elbo, rel=1e-11)
    for given in (("proportions",), ("z",), ("proportions", "z")):
        own = {name: local[name] for name in given}
        assert fit.elbo_at(own, data) == pytest.approx(derived.elbo, rel=1e-11)
    problem, row_map = fit._evaluator.bind(data)
    problem = problem.with_rows(problem.rows.thorough())
    arrays = {}
    for variable in problem.order:
        arrays.update(problem.statistics(variable, fit[variable.name]))
    arrays.update(row_map.at(problem.rows).summary(problem.rows.coefficients(arrays)).parts)
    for variable in problem.order:
        further = stated.fit(data, max_iter=1, order=[variable.name], **settings)
        updated = problem.update(variable, arrays)
        np.testing.assert_allclose(updated.mean, further[variable.name].mean, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_fit_ascends_to_where_that_of_tokens_stays(kind: str) -> None:
    data = {"word": sparse.csr_array(counts_of(1))}
    stated = model(kind)
    fit = stated.fit(data, seed=0, max_iter=3000, tol=1e-12)
    assert np.diff(fit.elbo_trace).min() > -1e-6
    same = {"topics": fit["topics"], "proportions": fit.local(data)["proportions"], **above(fit)}
    by_token = stated.fit(data, data_plate="token", init=same, max_iter=300, tol=1e-12)
    assert by_token.elbo == pytest.approx(fit.elbo, abs=2e-3)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sticks and numbers", "sticks times a total"])
def test_new_documents_begin_from_what_is_expected_above(kind: str) -> None:
    fit = model(kind).fit({"word": sparse.csr_array(counts_of(2))}, seed=0, max_iter=20)
    counts = counts_of(9, documents=6)
    found = fit.local({"word": sparse.csr_array(counts)})["proportions"].concentration
    prior = (fit["alpha"].mean if "total" in kind else 0.8) * fit["beta"].mean
    if "numbers" in kind:
        prior = prior + 0.3 * np.array([0.1, 0.2, 0.3, 0.4]) + 0.1
    topics = fit["topics"].expected_statistics[0]
    for row, own in zip(counts, found, strict=True):
        logits = (digamma(own) - digamma(own.sum()))[:, None] + topics
        shares = np.exp(logits - logsumexp(logits, axis=0))
        np.testing.assert_allclose(own, prior + shares @ row, rtol=1e-5)
    np.testing.assert_allclose(found[4], prior, rtol=1e-10)


@pytest.mark.slow
def test_schedules_and_weights_agree() -> None:
    counts, stated = sparse.csr_array(counts_of(3, documents=40)), model("sticks")
    fit = stated.fit({"word": counts}, seed=0, max_iter=20)
    init = {"topics": fit["topics"], **above(fit)}
    again = stated.fit({"word": counts}, init=init, schedule=cv.Incremental(10), max_iter=500, tol=1e-9)
    # the sums of all batches are those of the factors where it ended
    assert again.elbo == pytest.approx(again.elbo_at({}, {"word": counts}), abs=2e-2)
    assert again.elbo > fit.elbo
    twice = stated.fit({"word": counts}, init=init, sample_weight=np.full(40, 2.0), max_iter=5)
    doubled = sparse.csr_array(sparse.vstack([counts, counts]))
    assert stated.fit({"word": doubled}, init=init, max_iter=5).elbo == pytest.approx(twice.elbo, rel=1e-9)
