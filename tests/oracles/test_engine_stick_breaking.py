"""Weights broken off a stick: scikit-learn's update, the exact evidence, and a concentration that is learnt."""

from math import exp, lgamma, log

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import betaln, digamma
from scipy.stats import gamma as gamma_distribution
from sklearn.mixture import BayesianGaussianMixture

import caviar as cv
from caviar import models
from caviar.datasets import load_faithful

OBS = cv.Plate("obs")


def _behind(counts):
    """Return the rows in later categories, for each category but the last."""
    return np.array([counts[k + 1 :].sum() for k in range(len(counts) - 1)])


def test_observed_labels_are_exact():
    """With counts N the posterior shares are Beta(1 + N_k, gamma + sum of later N), and the ELBO is the evidence."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        concentration, x = rng.gamma(2, 1), rng.integers(0, 5, 14)
        counts = np.bincount(x, minlength=5)
        weights = cv.StickBreaking("weights", concentration, 5)
        posterior = cv.Model(cv.Categorical("x", weights, plates=OBS)).fit({"x": x})
        a, b = 1 + counts[:-1], concentration + _behind(counts)
        np.testing.assert_allclose(posterior["weights"].a, a, rtol=1e-13)
        np.testing.assert_allclose(posterior["weights"].b, b, rtol=1e-13)
        assert posterior.elbo == pytest.approx((betaln(a, b) - betaln(1, concentration)).sum(), rel=1e-12)


def test_sticks_on_a_plate_have_a_concentration_each():
    """Sticks of several groups under different concentrations are so many separate models."""
    rng = np.random.default_rng(0)
    group, concentration, x = cv.Plate("group", 3), np.array([0.4, 1.0, 5.0]), rng.integers(0, 3, (9, 3))
    weights = cv.StickBreaking("weights", concentration, 3, plates=group)
    whole = cv.Model(cv.Categorical("x", weights, plates=(OBS, group))).fit({"x": x})
    total = 0.0
    for g in range(3):
        own = cv.StickBreaking("weights", concentration[g], 3)
        single = cv.Model(cv.Categorical("x", own, plates=OBS)).fit({"x": x[:, g]})
        total += single.elbo
        np.testing.assert_allclose(whole["weights"].b[g], single["weights"].b, rtol=1e-13)
    assert whole.elbo == pytest.approx(total, rel=1e-12)


@pytest.mark.slow
def test_update_is_scikit_learns():
    """From the responsibilities that scikit-learn ends with: its weight concentrations, means and covariances.

    Its last share is not 1, but Beta(1 + N_K, gamma): the others are compared.
    """
    x = load_faithful().values
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    k = 5
    theirs = BayesianGaussianMixture(
        n_components=k,
        weight_concentration_prior_type="dirichlet_process",
        weight_concentration_prior=0.7,
        degrees_of_freedom_prior=4.0,
        reg_covar=0.0,
        tol=1e-10,
        max_iter=5000,
        random_state=0,
        mean_prior=np.zeros(2),
        mean_precision_prior=0.3,
        covariance_prior=np.eye(2),
    ).fit(x)
    model = models.dirichlet_process_mixture(
        2, k, concentration=0.7, mean_precision=0.3, df=4.0, inverse_scale=1.0
    )
    ours = model.fit({"x": x}, init={"z": theirs.predict_proba(x)}, max_iter=0)
    a, b = theirs.weight_concentration_
    np.testing.assert_allclose(ours["weights"].a, a[:-1], rtol=1e-4)
    np.testing.assert_allclose(ours["weights"].b, b[:-1], rtol=1e-4)
    np.testing.assert_allclose(ours["theta"].mean, theirs.means_, atol=1e-3)
    expected = ours["theta"].inverse_scale / ours["theta"].df[:, None, None]
    np.testing.assert_allclose(expected, theirs.covariances_, atol=1e-3)


@pytest.mark.slow
def test_the_data_decide_how_many_components_are_used():
    """Two groups far apart leave the other components of the truncation without rows."""
    rng = np.random.default_rng(1)
    x = rng.normal(0, 1, (200, 2)) + np.where(rng.random((200, 1)) < 0.4, -6.0, 6.0)
    posterior = models.dirichlet_process_mixture(2, 8).fit({"x": x}, seed=0, n_restarts=4)
    occupied = posterior.local({"x": x})["z"].probabilities.sum(axis=0)
    assert (occupied > 1).sum() == 2
    assert (occupied < 0.1).sum() == 6
    assert posterior["weights"].mean.sum() == pytest.approx(1.0, abs=1e-12)


def test_learnt_concentration_is_the_literal_one():
    """q(gamma) = Gamma(s + K - 1, r - sum <log(1 - v_k)>), and the ELBO lies just below the evidence."""
    shape, rate = 2.5, 1.3
    counts = np.array([6, 3, 0, 2])
    x = np.repeat(np.arange(4), counts)
    weights = cv.StickBreaking("weights", cv.Gamma("gamma", shape, rate), 4)
    posterior = cv.Model(cv.Categorical("x", weights, plates=OBS)).fit({"x": x}, tol=1e-15, max_iter=5000)

    mean = 1.0
    for _ in range(5000):
        a, b = 1 + counts[:-1], mean + _behind(counts)
        log_left = (digamma(b) - digamma(a + b)).sum()
        mean = (shape + 3) / (rate - log_left)
    np.testing.assert_allclose(posterior["weights"].b, b, rtol=1e-6)
    assert posterior["gamma"].shape == pytest.approx(shape + 3, rel=1e-13)
    assert posterior["gamma"].rate == pytest.approx(rate - log_left, rel=1e-6)

    # <log p(x, v, gamma)> + entropies, as they stand
    own_rate = rate - log_left
    log_gamma = digamma(shape + 3) - log(own_rate)
    log_taken = digamma(a) - digamma(a + b)
    bound = (counts[:-1] * log_taken).sum() + (_behind(counts) * (digamma(b) - digamma(a + b))).sum()
    bound += 3 * log_gamma + (mean - 1) * log_left
    bound += shape * log(rate) - lgamma(shape) + (shape - 1) * log_gamma - rate * mean
    q_v = (a - 1) * log_taken + (b - 1) * (digamma(b) - digamma(a + b)) - betaln(a, b)
    bound -= q_v.sum()
    bound -= (shape + 3) * log(own_rate) - lgamma(shape + 3) + (shape + 2) * log_gamma - own_rate * mean
    assert posterior.elbo == pytest.approx(bound, rel=1e-9)

    def given(concentration):
        total = (betaln(a, concentration + _behind(counts)) - betaln(1, concentration)).sum()
        return exp(total) * gamma_distribution(shape, scale=1 / rate).pdf(concentration)

    evidence = log(quad(given, 0, np.inf, epsabs=0)[0])
    assert evidence - 0.5 < posterior.elbo < evidence
