"""Proportions that are logistic-normal: correlated topics by the bound of a softmax, and counts of units by sticks."""

import itertools

import numpy as np
import pytest
from scipy.special import gammaln, log_softmax, logsumexp

import caviar as cv

TOPICS = np.array([[0.6, 0.2, 0.1, 0.1], [0.1, 0.6, 0.2, 0.1], [0.1, 0.1, 0.2, 0.6]])
COVARIANCE = np.array([[1.0, 0.6, -0.4], [0.6, 1.2, -0.3], [-0.4, -0.3, 0.8]])
WORDS = np.array([0, 1, 0, 0, 1, 2, 3, 3, 2, 3, 1, 0])
OF = np.repeat([0, 1, 2], [5, 5, 2])


def known_topics(plates=False):
    """Return a correlated topic model with known topics and covariance: of each word the topic is hidden."""
    kinds, doc = cv.Plate("kinds", 3), cv.Plate("doc") if plates else cv.Plate("doc", 3)
    token = cv.Plate("token", within=doc) if plates else cv.Plate("token")
    eta = cv.MultivariateNormal("eta", np.zeros(3), np.linalg.inv(COVARIANCE), plates=doc)
    own = eta if plates else eta[cv.Data("of", plates=token)]
    predictor = cv.dot(cv.Constant("basis", np.eye(3), plates=kinds), own)
    z = cv.Categorical("z", cv.softmax(predictor, along=kinds), plates=token)
    topics = cv.Constant("topics", TOPICS, plates=cv.Plate("topic", 3))
    return cv.Model(cv.Categorical("word", topics[z], plates=token))


def exact(words):
    """Return log evidence and mean proportions of a document, by quadrature over eta."""
    points, weights = np.polynomial.hermite_e.hermegauss(30)
    grid = np.array(list(itertools.product(points, repeat=3))) @ np.linalg.cholesky(COVARIANCE).T
    log_weights = np.log(np.prod(list(itertools.product(weights, repeat=3)), axis=1)) - 1.5 * np.log(
        2 * np.pi
    )
    shares = log_softmax(grid, axis=1)
    joint = log_weights + sum(logsumexp(shares + np.log(TOPICS[:, w]), axis=1) for w in words)
    own = np.exp(joint - logsumexp(joint))
    return logsumexp(joint), own @ np.exp(shares)


def bound_by_hand(mean, covariance, r):
    """Return the bound of a model with known topics at these factors, the tangents at their best: at the means."""
    prior, found = np.linalg.inv(COVARIANCE), 0.0
    for d in range(3):
        m, v = mean[d], covariance[d]
        kl = 0.5 * (
            np.trace(prior @ v) + m @ prior @ m - 3 + np.log(np.linalg.det(COVARIANCE) / np.linalg.det(v))
        )
        # Böhning: log sum exp lies below its tangent at m plus |eta - m|^2 / 4
        found -= kl + (d == OF).sum() * (logsumexp(m) + 0.25 * np.trace(v))
    log_r = np.log(np.where(r > 0, r, 1.0))
    return found + (r * (mean[OF] + np.log(TOPICS[:, WORDS]).T - log_r)).sum()


def test_the_bound_of_known_topics_is_that_by_hand_and_below_quadrature():
    data = {"word": WORDS, "of": OF}
    posterior = known_topics().fit(data, tol=1e-13)
    eta, r = posterior["eta"], posterior.local(data)["z"].probabilities
    assert posterior.elbo == pytest.approx(bound_by_hand(eta.mean, eta.covariance, r), rel=1e-9)
    truth = [exact(WORDS[d == OF]) for d in range(3)]
    evidence = sum(own for own, _ in truth)
    assert evidence - 4.0 < posterior.elbo < evidence - 0.01
    shares = np.exp(log_softmax(eta.mean, axis=1))
    np.testing.assert_allclose(shares, [own for _, own in truth], atol=0.1)
    # at the optimum: a topic's share is its predictor and the word, and no step of a factor rises
    np.testing.assert_allclose(
        r, np.exp(log_softmax(eta.mean[OF] + np.log(TOPICS[:, WORDS]).T, axis=1)), atol=1e-5
    )
    assert np.diff(posterior.elbo_trace).min() > -1e-10
    for shift in (0.05, -0.05):
        moved = cv.families.MultivariateNormal(eta.mean + shift * np.eye(3)[0], eta.precision)
        assert posterior.elbo_at({"eta": moved}, data) < posterior.elbo


def test_words_of_documents_are_predicted_by_weighted_draws():
    """As by quadrature; factors have no closed prediction."""
    told = known_topics().fit({"word": WORDS, "of": OF}, tol=1e-12).predict({"of": np.arange(3)})["word"]
    truth = np.array([exact(WORDS[d == OF])[1] for d in range(3)])
    np.testing.assert_allclose(told.mean, truth @ TOPICS, atol=0.02)


def test_words_of_documents_are_drawn():
    posterior = known_topics().fit({"word": WORDS, "of": OF}, tol=1e-12, uncertainty="mean_field")
    with pytest.raises(cv.ModelError, match="the predictors of all categories share 'eta'"):
        posterior.predict({"of": np.arange(3)})
    eta, rng = posterior["eta"], np.random.default_rng(0)
    drawn = [
        rng.multivariate_normal(m, v, size=40_000) for m, v in zip(eta.mean, eta.covariance, strict=True)
    ]
    shares = np.array([np.exp(log_softmax(own, axis=1)).mean(axis=0) for own in drawn])
    words = posterior.predictive(data={"of": np.repeat(np.arange(3), 300)}, n_draws=20, seed=0)["word"]
    found = [np.mean(own == 3) for own in np.split(np.asarray(words), 3, axis=1)]
    np.testing.assert_allclose(found, (shares @ TOPICS)[:, 3], atol=0.05)


@pytest.mark.slow
def test_numbers_as_predictors_of_hidden_labels_have_closed_predictions():
    """A mixture whose weights depend on a column: predicted by the expected softmax."""
    rng = np.random.default_rng(2)
    x = rng.normal(size=60)
    y = np.where(rng.random(60) < 1 / (1 + np.exp(-2 * x)), 2.0, -2.0) + rng.normal(size=60)
    obs, kinds = cv.Plate("obs"), cv.Plate("kinds", 2)
    w = cv.MultivariateNormal("w", np.zeros(2), np.eye(2), plates=kinds)
    z = cv.Categorical("z", cv.softmax(cv.dot(cv.Data("X", plates=obs), w)), plates=obs)
    mean = cv.Normal("mean", 0.0, 0.1, plates=cv.Plate("component", 2))
    data = {"y": y, "X": np.column_stack([np.ones(60), x])}
    posterior = cv.Model(cv.Normal("y", mean[z], 1.0, plates=obs)).fit(data, seed=0)
    assert max(cv.testing.elbo_slopes(posterior, data).values()) < 2e-3
    means = posterior["mean"].mean
    np.testing.assert_allclose(np.sort(means), [-2, 2], atol=0.4)
    told = posterior.predict({"X": np.array([[1.0, -1.5], [1.0, 1.5]])})["y"]
    draws = [
        rng.multivariate_normal(m, v, size=40_000)
        for m, v in zip(posterior["w"].mean, posterior["w"].covariance, strict=True)
    ]
    eta = np.stack([own @ np.array([[1.0, 1.0], [-1.5, 1.5]]) for own in draws], axis=-1)
    shares = np.exp(log_softmax(eta, axis=-1)).mean(axis=0)
    np.testing.assert_allclose(told.mean, shares @ means, atol=0.03)


def test_documents_of_tokens_are_the_same_model():
    nested = known_topics(plates=True).fit({"word": np.split(WORDS, [5, 10])}, tol=1e-12)
    flat = known_topics().fit({"word": WORDS, "of": OF}, tol=1e-12)
    assert nested.elbo == pytest.approx(flat.elbo, abs=1e-6)


@pytest.mark.slow
def test_correlated_topics_are_found_with_their_correlation():
    rng = np.random.default_rng(0)
    n_docs, n_tokens, n_words = 60, 40, 30
    covariance = 1.5 * np.array([[1, 0.8, -0.6], [0.8, 1, -0.5], [-0.6, -0.5, 1]])
    truth = rng.multivariate_normal(np.zeros(3), covariance, size=n_docs)
    topics = rng.dirichlet(np.full(n_words, 0.1), size=3)
    of = np.repeat(np.arange(n_docs), n_tokens)
    drawn = np.array([rng.choice(3, p=own) for own in np.exp(log_softmax(truth, axis=1))[of]])
    words = np.array([rng.choice(n_words, p=topics[k]) for k in drawn])
    token, kinds = cv.Plate("token"), cv.Plate("kinds", 3)
    mu = cv.MultivariateNormal("mu", np.zeros(3), np.eye(3))
    eta = cv.MultivariateNormal(
        "eta", mu, cv.Wishart("precision", 4.0, np.eye(3)), plates=cv.Plate("doc", n_docs)
    )
    own = cv.dot(cv.Constant("basis", np.eye(3), plates=kinds), eta[cv.Data("of", plates=token)])
    z = cv.Categorical("z", cv.softmax(own, along=kinds), plates=token)
    found = cv.Dirichlet("topics", np.full(n_words, 0.5), plates=cv.Plate("topic", 3))
    data = {"word": words, "of": of}
    posterior = cv.Model(cv.Categorical("word", found[z], plates=token)).fit(
        data, seed=0, uncertainty="mean_field"
    )
    away = np.abs(posterior["topics"].mean[:, None] - topics).sum(axis=-1)
    order = away.argmin(axis=0)  # of each true topic, which one it is
    assert sorted(order) == [0, 1, 2]
    assert away.min(axis=0).max() < 0.25
    # a softmax knows its predictors up to a common shift
    mean = posterior["eta"].mean[:, order]
    mean, true = mean - mean.mean(axis=1, keepdims=True), truth - truth.mean(axis=1, keepdims=True)
    assert min(np.corrcoef(mean[:, k], true[:, k])[0, 1] for k in range(3)) > 0.75
    assert max(cv.testing.elbo_slopes(posterior, data, n_directions=5).values()) < 2e-3


@pytest.mark.slow
@pytest.mark.parametrize("link", [cv.stick_breaking, cv.softmax])
def test_counts_of_units_with_columns_are_below_importance_sampling(link):
    """The honest form of Dirichlet-multinomial regression: an effect of each unit and category, known variances."""
    rng = np.random.default_rng(1)
    X, n_units = np.column_stack([np.ones(4), rng.normal(size=4)]), 4
    of, y = np.repeat(np.arange(n_units), 4), rng.integers(3, size=16)
    size = 2 if link is cv.stick_breaking else 3
    obs, kinds = cv.Plate("obs"), cv.Plate("kinds", size)
    w = cv.MultivariateNormal("w", np.zeros(2), np.eye(2), plates=kinds)
    effect = cv.Normal("effect", 0.0, 4.0, plates=(cv.Plate("unit", n_units), kinds))
    eta = cv.dot(cv.Data("X", plates=obs), w) + effect[cv.Data("unit", plates=obs)]
    model = cv.Model(cv.Categorical("y", link(eta, along=kinds), plates=obs))
    data = {"y": y, "X": X[of], "unit": of}
    posterior = model.fit(data, tol=1e-12)
    draws = 200_000
    weights, effects = rng.normal(size=(draws, 2, size)), 0.5 * rng.normal(size=(draws, n_units, size))
    predictor = np.einsum("ud,sdk->suk", X, weights) + effects
    if link is cv.softmax:
        shares = log_softmax(predictor, axis=-1)
    else:
        stop, go = -np.logaddexp(0, -predictor), -np.logaddexp(0, predictor)
        shares = np.stack([stop[..., 0], go[..., 0] + stop[..., 1], go.sum(axis=-1)], axis=-1)
    counts = np.array([np.bincount(y[of == u], minlength=3) for u in range(n_units)])
    joint = (counts * shares).sum(axis=(1, 2))
    evidence = logsumexp(joint) - np.log(draws)
    error = np.exp(joint - joint.max()).std() / np.exp(joint - joint.max()).mean() / np.sqrt(draws)
    assert error < 0.02
    assert evidence - (4.5 if link is cv.softmax else 0.5) < posterior.elbo < evidence + 3 * error
    # the proportions of units follow the posterior's, by the same draws
    own = np.exp(joint - logsumexp(joint))
    expected = np.einsum("s,suk->uk", own, np.exp(shares))
    told = posterior.predict({"X": X, "unit": np.arange(n_units)})["y"].mean
    np.testing.assert_allclose(told, expected, atol=0.06)


def test_a_dirichlet_of_units_without_columns_is_the_limit_that_it_replaces():
    """Without columns the proportions of units have a Dirichlet, which is exact: the evidence of a Pólya urn."""
    y, of = np.array([0, 0, 1, 2, 1, 1]), np.array([0, 0, 0, 1, 1, 1])
    obs = cv.Plate("obs")
    share = cv.Dirichlet("share", np.array([1.0, 2.0, 0.5]), plates=cv.Plate("unit", 2))
    posterior = cv.Model(cv.Categorical("y", share[cv.Data("unit", plates=obs)], plates=obs)).fit(
        {"y": y, "unit": of}
    )
    a, total = np.array([1.0, 2.0, 0.5]), 0.0
    for u in range(2):
        n = np.bincount(y[of == u], minlength=3)
        total += gammaln(a.sum()) - gammaln(a.sum() + n.sum()) + (gammaln(a + n) - gammaln(a)).sum()
    assert posterior.elbo == pytest.approx(total, rel=1e-12)
