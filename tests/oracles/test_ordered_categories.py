"""Ordinal probit: the bound at known thresholds, its numeric maximum at unknown ones, and quadrature."""

import itertools

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.stats import norm

import caviar as cv

OBS = cv.Plate("obs")
RNG = np.random.default_rng(0)
N = 120
X = RNG.normal(size=(N, 2))
CUTS = np.array([-1.0, 0.2, 1.1])
Y = np.searchsorted(CUTS, X @ [1.0, -0.5] + RNG.normal(size=N))
DATA = {"X": X, "y": Y}


def regression(thresholds, prior=0.1):
    w = cv.MultivariateNormal("w", np.zeros(2), prior * np.eye(2))
    predictor = cv.dot(cv.Data("X", plates=OBS), w)
    return cv.Model(cv.Categorical("y", cv.ordered(predictor, thresholds), plates=OBS))


def log_probability(cuts, eta, y=Y):
    ends = np.concatenate([[-np.inf], cuts, [np.inf]])
    return np.log(np.maximum(norm.cdf(ends[y + 1] - eta) - norm.cdf(ends[y] - eta), 1e-300))


def bound(cuts, mean, prior=0.1, weights=1.0):
    """Return the bound at the optimal covariance of the coefficients: log P at their means, less half of Var eta."""
    information = (X * np.broadcast_to(weights, N)[:, None]).T @ X
    covariance = np.linalg.inv(prior * np.eye(2) + information)
    divergence = (
        prior * np.trace(covariance) + prior * mean @ mean - 2 - np.linalg.slogdet(prior * covariance)[1]
    )
    fit = np.sum(weights * log_probability(cuts, X @ mean)) - 0.5 * np.trace(information @ covariance)
    return fit - 0.5 * divergence


def test_known_thresholds_reach_the_numeric_maximum_of_the_bound():
    posterior = regression(CUTS).fit(DATA, tol=1e-13)
    best = minimize(lambda mean: -bound(CUTS, mean), np.zeros(2), tol=1e-10)
    assert posterior.elbo == pytest.approx(-best.fun, rel=1e-10)
    np.testing.assert_allclose(posterior["w"].mean, best.x, atol=1e-5)


@pytest.mark.slow
def test_unknown_thresholds_reach_the_numeric_maximum_over_both():
    posterior = regression(cv.Thresholds("cut", 3)).fit(DATA, tol=1e-13)

    def objective(p):
        return 1e9 if np.any(np.diff(p[:3]) <= 0) else -bound(p[:3], p[3:])

    at = np.concatenate([posterior["cut"].mean, posterior["w"].mean])
    assert posterior.elbo == pytest.approx(-objective(at), rel=1e-10)
    settings = {"xatol": 1e-8, "fatol": 1e-11, "maxiter": 4000, "maxfev": 4000}
    best = minimize(objective, [-1.0, 0.0, 1.0, 0.0, 0.0], method="Nelder-Mead", options=settings)
    assert posterior.elbo == pytest.approx(-best.fun, abs=1e-7)
    np.testing.assert_allclose(at, best.x, atol=1e-4)
    assert np.diff(posterior.elbo_trace).min() > -1e-9


def test_one_coefficient_lies_below_the_evidence_by_quadrature():
    x = X[:30, 0]
    w = cv.Normal("w", 0.0, 1.0)
    model = cv.Model(cv.Categorical("y", cv.ordered(w * cv.Data("x", plates=OBS), CUTS), plates=OBS))
    posterior = model.fit({"x": x, "y": Y[:30]}, tol=1e-12)

    def density(value):
        own = log_probability(CUTS, x * value, Y[:30]).sum() + norm.logpdf(value)
        return np.exp(own - posterior.elbo)

    evidence = posterior.elbo + np.log(quad(density, -4, 5)[0])
    assert evidence - 0.6 < posterior.elbo < evidence
    mean = quad(lambda value: value * density(value), -4, 5)[0] / np.exp(evidence - posterior.elbo)
    square = quad(lambda value: value**2 * density(value), -4, 5)[0] / np.exp(evidence - posterior.elbo)
    assert posterior["w"].mean == pytest.approx(mean, abs=0.05)
    response = posterior.linear_response({"x": x, "y": Y[:30]})
    assert response.sd("w") == pytest.approx(np.sqrt(square - mean**2), rel=0.05)


def test_two_categories_are_a_probit():
    model = regression(np.array([0.0]))
    two = {"X": X, "y": (Y > 1).astype(int)}
    posterior = model.fit(two, tol=1e-12)
    w = cv.MultivariateNormal("w", np.zeros(2), 0.1 * np.eye(2))
    probit = cv.Model(cv.Bernoulli("y", cv.probit(cv.dot(cv.Data("X", plates=OBS), w)), plates=OBS))
    assert posterior.elbo == pytest.approx(probit.fit(two, tol=1e-12).elbo, rel=1e-10)


def test_thresholds_alone_are_those_of_the_shares():
    """Without a predictor the thresholds are Normal quantiles of the shares of the categories."""
    effect = cv.Normal("effect", 0.0, 1e8)
    model = cv.Model(cv.Categorical("y", cv.ordered(effect, cv.Thresholds("cut", 3)), plates=OBS))
    posterior = model.fit({"y": Y}, tol=1e-14)
    shares = np.cumsum(np.bincount(Y))[:3] / N
    np.testing.assert_allclose(posterior["cut"].mean, norm.ppf(shares), atol=1e-3)
    counts = np.bincount(Y)
    assert posterior.elbo == pytest.approx((counts * np.log(counts / N)).sum(), abs=1e-4)


def test_groups_weights_and_missing_answers():
    model = regression(cv.Thresholds("cut", 3))
    weights = np.where(np.arange(N) < 40, 2.0, 1.0)
    twice = {name: np.concatenate([own[:40], own]) for name, own in DATA.items()}
    weighted = model.fit(DATA, sample_weight=weights, tol=1e-12)
    assert weighted.elbo == pytest.approx(model.fit(twice, tol=1e-12).elbo, abs=1e-8)
    assert weighted.elbo == pytest.approx(
        bound(weighted["cut"].mean, weighted["w"].mean, weights=weights), abs=1e-8
    )
    gaps = {**DATA, "y": np.where(np.arange(N) < 40, np.nan, Y)}
    rest = {name: own[40:] for name, own in DATA.items()}
    assert model.fit(gaps, tol=1e-12).elbo == pytest.approx(model.fit(rest, tol=1e-12).elbo, abs=1e-8)
    group = RNG.integers(6, size=N)
    level = cv.Normal("level", 0.0, cv.Gamma("tau", 2.0, 1.0), plates=cv.Plate("group", 6))
    eta = level[cv.Data("group", plates=OBS)]
    grouped = cv.Model(cv.Categorical("y", cv.ordered(eta, cv.Thresholds("cut", 3)), plates=OBS))
    posterior = grouped.fit({"y": Y, "group": group}, tol=1e-12)
    trace = posterior.elbo_trace
    assert np.diff(trace).min() > -1e-9
    # no other place of one threshold is higher
    for place in range(3):
        for by in (-0.01, 0.01):
            moved = posterior["cut"].mean.copy()
            moved[place] += by
            assert (
                log_probability(moved, level_of(posterior, group)).sum()
                < log_probability(posterior["cut"].mean, level_of(posterior, group)).sum()
            )


def level_of(posterior, group):
    return posterior["level"].mean[group]


@pytest.mark.parametrize("n_labels", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_thresholds_of_answers_that_labels_choose(n_labels):
    """No other thresholds have a higher ELBO: utilities count with the probabilities of their labels."""
    item, kinds = cv.Plate("item", 4), [cv.Plate(f"kind {place}", 2) for place in range(n_labels)]
    rng = np.random.default_rng(3)
    levels = 1.5 * rng.normal(size=(n_labels, 2, 4))
    utility = sum(own[rng.integers(2, size=80)] for own in levels) + rng.normal(size=(80, 4))
    data = {"y": np.searchsorted([-1.0, 0.3, 1.5], utility)}

    def fitted(thresholds, **arguments):
        chosen = [
            cv.Normal(f"level {place}", 0.0, 0.5, plates=(kind, item))[
                cv.Categorical(f"z {place}", [0.4, 0.6], plates=OBS)
            ]
            for place, kind in enumerate(kinds)
        ]
        predictor = sum(chosen[1:], start=chosen[0])
        leaf = cv.Categorical("y", cv.ordered(predictor, thresholds), plates=(OBS, item))
        return cv.Model(leaf).fit(data, seed=0, tol=1e-9, **arguments)

    posterior = fitted(cv.Thresholds("cut", 3))
    start = {name: posterior[name] for name in posterior if name != "cut"}
    for place, by in itertools.product(range(3), (-0.05, 0.05)):
        moved = posterior["cut"].mean.copy()
        moved[place] += by
        assert fitted(moved, init=start).elbo < posterior.elbo - 1e-6


@pytest.mark.slow
def test_schedules_restarts_and_starts_end_at_the_same_place():
    model = regression(cv.Thresholds("cut", 3))
    elbo = model.fit(DATA, tol=1e-12).elbo
    for arguments in (
        {"schedule": "incremental"},
        {"n_restarts": 3, "seed": 0},
        {"init": {"cut": [-2.0, 0.5, 0.6]}},
        {"accelerate": False},
    ):
        assert model.fit(DATA, tol=1e-12, **arguments).elbo == pytest.approx(elbo, abs=1e-6)
    with pytest.raises(cv.ParameterError, match="thresholds are found by passes over all rows"):
        model.fit(DATA, schedule="stochastic")


@pytest.mark.usefixtures("figures_of_factors")
def test_predictions_draws_and_files(tmp_path):
    posterior = regression(cv.Thresholds("cut", 3)).fit(DATA, uncertainty="mean_field")
    predicted = posterior.predict({"X": X[:5]})["y"].mean
    mean, cuts = X[:5] @ posterior["w"].mean, posterior["cut"].mean
    spread = np.sqrt(1 + np.einsum("ni,ij,nj->n", X[:5], posterior["w"].covariance, X[:5]))
    below = norm.cdf((cuts - mean[:, None]) / spread[:, None])
    np.testing.assert_allclose(predicted, np.diff(below, prepend=0, append=1, axis=1), rtol=1e-10)
    posterior.save(tmp_path / "ordered.caviar")
    again = cv.load(tmp_path / "ordered.caviar")
    np.testing.assert_array_equal(again.predict({"X": X[:5]})["y"].mean, predicted)
    drawn = regression(CUTS).simulate(0, data={"X": np.zeros((4000, 2))})["y"]
    np.testing.assert_allclose(
        np.bincount(drawn) / 4000, np.diff(norm.cdf(CUTS), prepend=0, append=1), atol=0.03
    )
    known = regression(CUTS).fit(DATA)
    known.save(tmp_path / "known.caviar")
    assert cv.load(tmp_path / "known.caviar").model.fit(DATA).elbo == pytest.approx(known.elbo, abs=1e-7)


def test_the_kit_finds_nothing():
    model = regression(cv.Thresholds("cut", 3))
    assert cv.testing.check_model(model, DATA).passed


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda eta: cv.ordered(eta, [0.5, 0.2]), "numbers in increasing order"),
        (lambda eta: cv.ordered(0.3, [0.5]), "ordered takes a predictor"),
        (
            lambda eta: cv.ordered(eta, cv.MultivariateNormal("c", np.zeros(2), np.eye(2))),
            r"cannot be the MultivariateNormal 'c'.* or Thresholds\('c', 2\), which are points",
        ),
        (lambda eta: cv.Thresholds("c", 0), "one fewer than categories; got 0"),
        (
            lambda eta: cv.Bernoulli("y", cv.ordered(eta, [0.0])),
            "is the probabilities of an observed Categorical",
        ),
    ],
)
def test_what_cannot_be_is_refused_when_stated(make, words):
    with pytest.raises(cv.CaviarError, match=words):
        make(cv.Normal("a", 0, 1))


def test_a_category_that_nobody_chose_is_refused():
    with pytest.raises(
        cv.DataError, match="no row has category 1, so the data do not determine the thresholds 'cut'"
    ):
        regression(cv.Thresholds("cut", 3)).fit({"X": X, "y": np.where(Y == 1, 0, Y)})
    # known thresholds have a place all the same
    assert regression(CUTS).fit({"X": X, "y": np.where(Y == 1, 0, Y)}).converged
