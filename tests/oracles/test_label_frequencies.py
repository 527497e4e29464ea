"""Frequencies of labels in a predictor: the bound by its formula, sums over labels, and the moments they have."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components
from scipy.special import digamma, gammaln, logsumexp, xlogy
from scipy.stats import norm

import caviar as cv
from caviar.engine.starts.guesses import points
from caviar.engine.starts.products import shares as within_rows
from caviar.families import LabelFrequencies
from caviar.testing import check_model

DOC, WORDS, SHAPE, RATE, WIDTH = cv.Plate("doc"), 4, 2.0, 1.0, 0.25


def labels(n_labels, n_topics, theta=None):
    """Return topics, labels of words, and the words."""
    topic, position = cv.Plate("topic", n_topics), cv.Plate("position", n_labels)
    topics = cv.Dirichlet("topics", np.full(WORDS, 0.5), plates=topic)
    theta = cv.Dirichlet("theta", np.ones(n_topics), plates=DOC) if theta is None else theta
    z = cv.Categorical("z", theta, plates=(DOC, position))
    return z, cv.Categorical("word", topics[z], plates=(DOC, position))


def supervised(n_labels, n_topics):
    z, word = labels(n_labels, n_topics)
    b = cv.MultivariateNormal("b", np.zeros(n_topics), np.eye(n_topics) * WIDTH)
    shares = cv.Frequencies("shares", z, weights=cv.Data("weight", plates=DOC))
    return cv.Model(word, cv.Normal("y", cv.dot(b, shares), cv.Gamma("tau", SHAPE, RATE), plates=DOC))


def documents(n_docs, n_labels, n_topics, *, padded=True, seed=0):
    """Return documents of two words or more, padded, and responses to the frequencies of their topics."""
    rng = np.random.default_rng(seed)
    topics, theta = rng.dirichlet(np.full(WORDS, 0.2), n_topics), rng.dirichlet(np.ones(n_topics), n_docs)
    z = (rng.random((n_docs, n_labels, 1)) > theta.cumsum(axis=1)[:, None]).sum(axis=2)
    words = (rng.random((n_docs, n_labels, 1)) > topics.cumsum(axis=1)[z]).sum(axis=2).astype(float)
    lengths = rng.integers(2, n_labels + 1, n_docs) if padded else np.full(n_docs, n_labels)
    seen = np.arange(n_labels) < lengths[:, None]
    words[~seen] = np.nan
    y = 3.0 * (seen / lengths[:, None] * z).sum(axis=1) + 0.3 * rng.normal(size=n_docs)
    return {"word": words, "weight": seen / lengths[:, None], "y": y}


def moments(q, weights):
    """Return mean and second moments of frequencies, label by label."""
    mean = weights @ q
    pairs = [(n, m) for n in range(len(q)) for m in range(len(q))]
    second = sum(
        weights[n] * weights[m] * (np.diag(q[n]) if n == m else np.outer(q[n], q[m])) for n, m in pairs
    )
    return mean, second


def bound_by_hand(posterior, data):
    """Return the ELBO of supervised topics (Mcauliffe and Blei, 2007), term by term."""

    def log_of(a):
        return digamma(a) - digamma(a.sum(axis=-1, keepdims=True))

    def divergence(a, a0):
        log_b = gammaln(a).sum(axis=-1) - gammaln(a.sum(axis=-1))
        log_b0 = gammaln(a0).sum(axis=-1) - gammaln(a0.sum(axis=-1))
        return (log_b0 - log_b + ((a - a0) * log_of(a)).sum(axis=-1)).sum()

    local = posterior.local(data)
    theta, q, topics = (
        local["theta"].concentration,
        local["z"].probabilities,
        posterior["topics"].concentration,
    )
    b, covariance = posterior["b"].mean, posterior["b"].covariance
    shape, rate = posterior["tau"].shape, posterior["tau"].rate
    total = -divergence(topics, np.full(topics.shape, 0.5)) - divergence(theta, np.ones(theta.shape))
    squares = covariance + np.outer(b, b)
    for d, words in enumerate(data["word"]):
        for n in np.flatnonzero(~np.isnan(words)):
            own = log_of(theta)[d] + log_of(topics)[:, int(words[n])]
            total += (q[d, n] * own).sum() - xlogy(q[d, n], q[d, n]).sum()
        mean, second = moments(q[d], data["weight"][d])
        left = data["y"][d] ** 2 - 2 * data["y"][d] * b @ mean + (squares * second).sum()
        total += 0.5 * (digamma(shape) - np.log(rate) - np.log(2 * np.pi) - shape / rate * left)
    n = len(b)
    total += 0.5 * (np.linalg.slogdet(covariance)[1] + n * np.log(WIDTH) + n - WIDTH * np.trace(squares))
    of_tau = (shape - SHAPE) * digamma(shape) - gammaln(shape) + gammaln(SHAPE)
    return total - of_tau - SHAPE * (np.log(rate) - np.log(RATE)) - shape * (RATE - rate) / rate


@pytest.mark.slow
def test_the_bound_is_that_of_the_formula_and_never_falls():
    data = documents(8, 4, 3)
    posterior = supervised(4, 3).fit(data, seed=0, tol=1e-12, max_iter=5000)
    assert posterior.elbo == pytest.approx(bound_by_hand(posterior, data), abs=1e-8)
    assert np.diff(posterior.elbo_trace).min() > -1e-9


@pytest.mark.slow
def test_padding_counts_nothing():
    data = documents(6, 4, 2)
    wide = {
        "word": np.pad(data["word"], ((0, 0), (0, 3)), constant_values=np.nan),
        "weight": np.pad(data["weight"], ((0, 0), (0, 3))),
        "y": data["y"],
    }
    found = [
        supervised(n, 2).fit(own, seed=0, tol=1e-12, max_iter=5000).elbo for n, own in ((4, data), (7, wide))
    ]
    assert found[0] == pytest.approx(found[1], abs=1e-9)


def known(n_labels):
    """Return a model in which everything but the labels is known."""
    position, topic = cv.Plate("position", n_labels), cv.Plate("topic", 2)
    z = cv.Categorical("z", [0.3, 0.7], plates=(DOC, position))
    words = cv.Constant("words", [[0.6, 0.2, 0.1, 0.1], [0.1, 0.2, 0.2, 0.5]], plates=topic)
    word = cv.Categorical("word", words[z], plates=(DOC, position))
    y = cv.Normal("y", cv.dot(np.array([-1.0, 2.0]), cv.Frequencies("shares", z)), 4.0, plates=DOC)
    return cv.Model(word, y)


def summed(words, y):
    """Return the log evidence of a document, and the expected frequency of label 1, from a sum over all labels."""
    likely = np.log([[0.6, 0.2, 0.1, 0.1], [0.1, 0.2, 0.2, 0.5]])
    each, shares = [], []
    for z in product(range(2), repeat=len(words)):
        shares.append(np.mean(z))
        own = sum(np.log([0.3, 0.7])[k] + likely[k, v] for k, v in zip(z, words, strict=True))
        each.append(own + norm.logpdf(y, -1.0 + 3.0 * np.mean(z), 0.5))
    return logsumexp(each), np.exp(np.array(each) - logsumexp(each)) @ shares


def test_one_label_is_exact():
    data = {"word": [[0], [3], [1]], "y": [-0.5, 2.5, 0.5]}
    posterior = known(1).fit(data)
    sums = [summed(*own) for own in zip(data["word"], data["y"], strict=True)]
    assert posterior.elbo == pytest.approx(sum(own for own, _ in sums), abs=1e-10)
    found = posterior.local(data)["shares"].mean[:, 1]
    np.testing.assert_allclose(found, [own for _, own in sums], atol=1e-10)


def test_labels_of_a_document_are_near_the_sum_over_all_of_them():
    words, y = [0, 3, 1, 3], 0.8
    evidence, share = summed(words, y)
    data = {"word": [words], "y": [y]}
    posterior = known(4).fit(data, tol=1e-13)
    assert evidence - 0.3 < posterior.elbo < evidence
    assert posterior.local(data)["shares"].mean[0, 1] == pytest.approx(share, abs=0.03)


@pytest.mark.slow
def test_the_model_passes_its_checks():
    """Among them the ELBO by draws from q, and slopes of zero."""
    data = documents(20, 2, 2, padded=False)
    check_model(supervised(2, 2), data, n_draws=300).raise_if_failed()


@pytest.mark.slow
def test_linear_response_is_the_slope_of_the_fixed_point():
    data = documents(30, 4, 2)

    def fitted(prior, init="auto"):
        z, word = labels(4, 2)
        shares = cv.Frequencies("shares", z, weights=cv.Data("weight", plates=DOC))
        b = cv.MultivariateNormal("b", prior, np.eye(2) * WIDTH)
        model = cv.Model(word, cv.Normal("y", cv.dot(b, shares), 4.0, plates=DOC))
        return model.fit(data, seed=0, init=init, tol=1e-15, max_iter=5000)

    posterior, step = fitted(np.zeros(2)), np.array([0.02, 0.0])
    # the topics may change places between fits from the data
    begin = {name: posterior[name] for name in posterior}
    ends = [fitted(prior, begin)["b"].mean for prior in (step, -step)]
    slope = (ends[0] - ends[1]) / (2 * step[0] * WIDTH)
    found = posterior.linear_response(data).covariance("b")[0]
    np.testing.assert_allclose(found, slope, rtol=1e-3, atol=1e-4)


@pytest.mark.slow
def test_a_new_document_is_predicted_from_its_words():
    data = documents(40, 5, 3)
    posterior = supervised(5, 3).fit({key: own[:30] for key, own in data.items()}, seed=0)
    new = {key: data[key][30:] for key in ("word", "weight")}
    predicted, q = posterior.predict(new), posterior.predict(new)["z"].probabilities
    b, covariance = posterior["b"].mean, posterior["b"].covariance
    noise = posterior["tau"].rate / (posterior["tau"].shape - 1)
    for d, weights in enumerate(new["weight"]):
        mean, second = moments(q[d], weights)
        spread = noise + ((covariance + np.outer(b, b)) * second).sum() - (b @ mean) ** 2
        assert predicted["y"].mean[d] == pytest.approx(b @ mean)
        assert predicted["y"].sd[d] == pytest.approx(np.sqrt(spread))


@pytest.mark.usefixtures("figures_of_factors")
def test_a_document_without_a_response_has_the_frequencies_of_its_words():
    data = documents(10, 4, 2)
    posterior = supervised(4, 2).fit(data, seed=0)
    without = {**data, "y": np.where(np.arange(10) < 5, np.nan, data["y"])}
    found, alone = posterior.local(without), posterior.predict({k: data[k] for k in ("word", "weight")})
    expected = np.einsum("dn,dnk->dk", data["weight"], found["z"].probabilities)
    np.testing.assert_allclose(found["shares"].mean, expected, atol=1e-12)
    np.testing.assert_allclose(found["z"].probabilities[:5], alone["z"].probabilities[:5], atol=1e-6)


def test_other_answers_and_other_tokens_take_the_same_frequencies():
    """A binary answer through a link, and numbers in the place of words: the ELBO rises to its end."""
    data, rng = documents(30, 4, 2), np.random.default_rng(1)
    topic, position = cv.Plate("topic", 2), cv.Plate("position", 4)
    z = cv.Categorical("z", cv.Dirichlet("theta", np.ones(2), plates=DOC), plates=(DOC, position))
    x = cv.Normal("x", cv.Normal("mu", 0.0, 0.1, plates=topic)[z], 1.0, plates=(DOC, position))
    shares = cv.Frequencies("shares", z, weights=cv.Data("weight", plates=DOC))
    eta = cv.dot(cv.MultivariateNormal("b", np.zeros(2), np.eye(2)), shares)
    model = cv.Model(x, cv.Bernoulli("y", cv.logistic(eta), plates=DOC))
    numbers = np.where(np.isnan(data["word"]), np.nan, 2.0 * data["word"] + rng.normal(size=(30, 4)))
    given = {"x": numbers, "weight": data["weight"], "y": (data["y"] > 1.5).astype(float)}
    posterior = model.fit(given, seed=0, tol=1e-10)
    assert posterior.converged
    assert np.diff(posterior.elbo_trace).min() > -1e-9


@pytest.mark.slow
def test_a_weight_of_two_is_the_document_twice():
    data = documents(15, 4, 2)
    twice = {key: np.concatenate([own, own]) for key, own in data.items()}
    weighted = supervised(4, 2).fit(data, seed=0, tol=1e-12, sample_weight=np.full(15, 2.0))
    assert weighted.elbo == pytest.approx(supervised(4, 2).fit(twice, seed=0, tol=1e-12).elbo, abs=1e-6)


def test_moments_are_those_of_draws():
    rng = np.random.default_rng(0)
    q = LabelFrequencies(rng.dirichlet(np.ones(3), 2), rng.dirichlet(np.ones(4), (2, 3)))
    draws = q.sample(40_000, rng)
    np.testing.assert_allclose(draws.mean(axis=0), q.mean, atol=0.01)
    for own, covariance in zip(np.moveaxis(draws, 1, 0), q.covariance, strict=True):
        np.testing.assert_allclose(np.cov(own.T), covariance, atol=0.005)


@pytest.mark.parametrize(
    ("state", "error", "message"),
    [
        (lambda z: cv.Data("q"), cv.ConjugacyError, "takes a Categorical"),
        (lambda z: cv.Categorical("q", [0.5, 0.5], plates=DOC), cv.PlateError, "padded with"),
        (
            lambda z: cv.Categorical("q", [0.5, 0.5], plates=cv.Plate("token", within=DOC)),
            cv.PlateError,
            "padded with",
        ),
    ],
    ids=["known", "no plate", "ragged"],
)
def test_what_has_no_frequencies_is_refused_when_stated(state, error, message):
    with pytest.raises(error, match=message):
        cv.Frequencies("shares", state(labels(3, 2)[0]))


def test_what_cannot_be_fitted_says_what_to_do():
    data = documents(6, 3, 2)
    with pytest.raises(cv.DataError, match="give their frequencies as Data"):
        supervised(3, 2).fit({**data, "z": np.zeros((6, 3), dtype=int)})
    with pytest.raises(cv.ModelError, match="data_plate= the plate of the groups"):
        supervised(3, 2).fit(data, data_plate="position")


def test_frequencies_share_no_factor_with_other_labels():
    """A label that switches the noise has a factor of its own; naming both in a group is refused."""
    row, component = cv.Plate("row"), cv.Plate("component", 2)
    z = cv.Categorical("z", cv.Dirichlet("shares", [1.0, 1.0]), plates=(row, cv.Plate("position", 3)))
    g = cv.Categorical("g", [0.5, 0.5], plates=row)
    b = cv.MultivariateNormal("b", np.zeros(2), np.eye(2))
    noise = cv.Gamma("noise", 2, 2, plates=component)[g]
    model = cv.Model(cv.Normal("y", cv.dot(b, cv.Frequencies("f", z)), noise, plates=row))
    data = {"y": np.random.default_rng(0).normal(size=12)}
    posterior = model.fit(data, seed=0)
    estimate = cv.testing.elbo_estimate(posterior, data, n_draws=2_000)
    assert abs(posterior.elbo - estimate.value) < 5 * estimate.error
    with pytest.raises(cv.ModelError, match="share one factor with nothing else"):
        model.fit(data, factors=[("g", "f")])


def test_more_groups_than_a_block():
    """Frequencies of each group come back in the order of the data."""
    rng = np.random.default_rng(0)
    y = rng.normal(size=1500)
    data = {"word": rng.integers(0, WORDS, (1500, 2)), "y": y, "weight": np.full((1500, 2), 0.5)}
    posterior = supervised(2, 2).fit(data, seed=0, max_iter=1, init="prior", tol=1e-3)
    local = posterior.local(data)
    np.testing.assert_allclose(local["shares"].mean, local["z"].probabilities.mean(axis=1), atol=1e-12)


def test_many_labels_start_from_the_shares_of_their_rows(monkeypatch):
    """Where the one-hots of all labels would be large, documents are clustered, and their labels with them."""
    found = []
    own = within_rows.points_of_rows
    monkeypatch.setattr(within_rows, "_MOST_NUMBERS", 0)
    monkeypatch.setattr(points, "points_of_rows", lambda *of: found.append(own(*of)) or found[-1])
    topic = np.arange(24) % 2
    word = np.random.default_rng(0).integers(0, 2, (24, 6)) + 2.0 * topic[:, None]
    word[::4, 4:] = np.nan
    data = {
        "word": word,
        "y": topic - 0.5,
        "weight": ~np.isnan(word) / (~np.isnan(word)).sum(1, keepdims=True),
    }
    posterior = supervised(6, 2).fit(data, seed=0)
    (cloud, *_) = (own for own in found if own is not None)
    each = cloud.reshape(-1, 6, cloud.shape[1])
    np.testing.assert_array_equal(each, np.broadcast_to(each[:, :1], each.shape))
    # documents of one topic share words, those of two have none in common
    alike = np.abs(each[:, 0] @ each[:, 0].T) > 1e-6
    assert connected_components(alike)[0] == 2
    assert abs(np.diff(posterior["b"].mean)[0]) > 0.5


def test_labels_of_rows_are_those_that_the_objective_is_of():
    """Two labels that are wrong together stay so where sweeps begin anew."""
    position, kind = cv.Plate("position", 3), cv.Plate("kind", 2)
    z = cv.Categorical("z", np.full(3, 1 / 3), plates=(DOC, position))
    shares = cv.Frequencies("shares", z, weights=[0.5, 0.0, -1.0])
    b = cv.MultivariateNormal("b", np.zeros(3), np.eye(3) / 4)
    scale = cv.Gamma("scale", 2.0, 0.3, plates=(kind, DOC))
    model = cv.Model(cv.Normal("y", cv.dot(b, shares), scale, plates=(kind, DOC)))
    rng = np.random.default_rng(0)
    y = np.array([-1.0, 3.0, -1.1, -1.2, -1.3, -2.8]) + 0.2 * rng.normal(size=(2, 6))
    posterior = model.fit({"y": y}, seed=0, tol=1e-10)
    estimate = cv.testing.elbo_estimate(posterior, {"y": y}, n_draws=2000, seed=0)
    assert abs(posterior.elbo_at({}, {"y": y}) - estimate.value) < 5 * estimate.error


@pytest.mark.parametrize("seed", [15, 18])
def test_beside_a_chain_labels_go_on_from_those_of_the_last_pass(seed):
    """From scratch they would end at another optimum of their rows, which may be lower."""
    rng, n_rows = np.random.default_rng(seed), 5
    time, position = cv.Plate("time"), cv.Plate("position", 3)
    z = cv.Categorical("z", cv.Dirichlet("shares", [1.5, 1.5]), plates=(time, position))
    b = cv.MultivariateNormal("b", np.array([0.0, 1.0]), np.eye(2))
    mean = cv.dot(b, cv.Frequencies("f", z, weights=[0.5, 0.0, -1.0]))
    noise = cv.Gamma("noise", 3.0, cv.Gamma("rate", 2.0, 2.0))
    y = cv.Normal("y", mean, noise, plates=(cv.Plate("twice", 2), time))
    s = cv.MarkovChain("s", [0.5, 0.5], np.array([[0.8, 0.2], [0.3, 0.7]]), along=time)
    x = cv.Normal("x", cv.Normal("level", 0.0, 0.1, plates=cv.Plate("state", 2))[s], 1.0, plates=time)
    data = {"y": rng.normal(size=n_rows) * 1.2 - 0.8 + 0.4 * rng.normal(size=(2, n_rows))}
    data["x"] = rng.normal(size=n_rows)
    posterior = cv.Model(y, x).fit(data, init="prior", tol=1e-10)
    assert np.diff(posterior.elbo_trace).min() > -1e-9
    assert posterior.converged
