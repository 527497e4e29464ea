"""Moves of single effects: never below susieR's refinement, and judged by the ELBO."""

import numpy as np
import pytest
from scipy.special import logsumexp

import caviar as cv

OBS = cv.Plate("obs")


def model(number, size, precision=2.0, noise=1.0):
    """Return a sum of so many single effects."""
    columns = cv.Data("X", plates=OBS)
    effects = [cv.SingleEffect(f"b{k}", size, precision=precision) for k in range(number)]
    mean = cv.dot(columns, effects[0])
    for own in effects[1:]:
        mean = mean + cv.dot(columns, own)
    return cv.Model(cv.Normal("y", mean, noise, plates=OBS))


def susie(X, y, start, prior, slab=0.5, noise=1.0):
    """Coordinate ascent of Wang et al. (2020) from expected entries (L, D): ELBO, inclusion, expected entries."""
    means, before = start.copy(), -np.inf
    d = np.square(X).sum(axis=0)
    with np.errstate(divide="ignore"):
        log_prior = np.log(prior)
    alpha = np.zeros_like(means)
    for _ in range(1000):
        divergence, second = 0.0, 0.0
        for k in range(len(means)):
            rest = y - X @ (means.sum(axis=0) - means[k])
            variance = 1 / (1 / slab + d / noise)
            mu = variance * (X.T @ rest) / noise
            log_factor = log_prior + 0.5 * np.log(variance / slab) + 0.5 * mu**2 / variance
            total = logsumexp(log_factor)
            alpha[k] = np.exp(log_factor - total)
            means[k] = alpha[k] * mu
            squares = alpha[k] * (mu**2 + variance)
            divergence += X.T @ rest @ means[k] / noise - 0.5 * d @ squares / noise - total
            second += d @ squares - np.square(X @ means[k]).sum()
        loss = np.square(y - X @ means.sum(axis=0)).sum() + second
        elbo = -0.5 * len(y) * np.log(2 * np.pi * noise) - 0.5 * loss / noise - divergence
        if elbo - before < 1e-10:
            break
        before = elbo
    return elbo, alpha, means


def credible(alpha):
    order = np.argsort(-alpha)
    return order[: np.searchsorted(np.cumsum(alpha[order]), 0.95) + 1]


def refined(X, y, number):
    """Return the ELBO without and with susieR's refinement, as its source says."""
    size = X.shape[1]
    prior, nothing = np.full(size, 1 / size), np.zeros((number, size))
    plain, alpha, _ = best = susie(X, y, nothing, prior)
    while True:
        candidates = []
        for own in {tuple(sorted(credible(row))) for row in alpha}:
            if len(own) > size / 2:
                continue
            without = prior.copy()
            without[list(own)] = 0.0
            _, _, means = susie(X, y, nothing, without / without.sum())
            candidates.append(susie(X, y, means, prior))
        best_one = max(candidates, key=lambda found: found[0])
        if best_one[0] <= best[0] + 1e-9:
            return plain, best[0]
        best = best_one
        alpha = best[1]


def masked(seed, n_rows=120, size=12):
    """Return columns of which one is nearly the sum of two that have effects."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, size))
    X[:, 2] = X[:, 5] + X[:, 9] + 0.4 * rng.normal(size=n_rows)
    y = 0.8 * X[:, 5] + 0.8 * X[:, 9] + rng.normal(size=n_rows)
    return X - X.mean(axis=0), y - y.mean()


@pytest.mark.thinned(3)
@pytest.mark.parametrize("seed", range(5))
def test_never_below_the_refinement_of_susier(seed):
    X, y = masked(seed)
    plain, reference = refined(X, y, 4)
    own = model(4, 12)
    found = own.fit({"y": y, "X": X}, tol=1e-12, max_iter=3000)
    moved = own.fit({"y": y, "X": X}, tol=1e-12, max_iter=3000, schedule=cv.Refined())
    assert found.elbo == pytest.approx(plain, abs=1e-6)
    assert moved.elbo >= reference - 1e-6
    assert np.all(np.diff(moved.elbo_trace) > -1e-8)


@pytest.mark.slow
def test_a_column_that_hides_two_others_is_left():
    gains = []
    for seed in range(5):
        X, y = masked(seed)
        own = model(4, 12)
        plain = own.fit({"y": y, "X": X}, tol=1e-10, max_iter=3000)
        moved = own.fit({"y": y, "X": X}, tol=1e-10, max_iter=3000, schedule=cv.Refined())
        gains.append(moved.elbo - plain.elbo)
        if gains[-1] > 1.0:
            chosen = {posterior.argmax() for posterior in (moved[f"b{k}"].inclusion for k in range(4))}
            assert {5, 9} <= chosen
    assert min(gains) > -1e-8
    assert max(gains) > 1.0


def test_effects_that_share_candidates_are_merged():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, 6))
    X[:, 1] = X[:, 0] + 0.05 * rng.normal(size=200)
    y = X[:, 0] + rng.normal(size=200)
    own = model(2, 6, precision=4.0)
    # one effect in two halves, which no single update joins
    halves = {"b0": np.eye(6)[0] * 0.5, "b1": np.eye(6)[1] * 0.5}
    start = own.fit({"y": y, "X": X}, init=halves, tol=1e-10, max_iter=3000)
    moved = own.fit({"y": y, "X": X}, init=halves, tol=1e-10, max_iter=3000, schedule=cv.Refined())
    best = own.fit({"y": y, "X": X}, tol=1e-10, max_iter=3000)
    assert moved.elbo >= max(start.elbo, best.elbo) - 1e-6


def test_other_vectors_and_local_factors_stay_in_the_model():
    rng = np.random.default_rng(4)
    X, _ = masked(4)
    eta = X[:, 5] + X[:, 9]
    columns = cv.Data("X", plates=OBS)
    effects = [cv.SingleEffect(f"b{k}", 12, precision=1.0) for k in range(3)]
    mean = cv.Normal("level", 0, 1)
    for own in effects:
        mean = mean + cv.dot(columns, own)
    binary = cv.Model(cv.Bernoulli("y", cv.logistic(mean), plates=OBS))
    data = {"X": X, "y": (rng.random(120) < 1 / (1 + np.exp(-2 * eta))).astype(float)}
    plain = binary.fit(data, tol=1e-9, max_iter=2000)
    moved = binary.fit(data, tol=1e-9, max_iter=2000, schedule=cv.Refined())
    assert moved.elbo >= plain.elbo - 1e-6
    assert np.all(np.diff(moved.elbo_trace) > -1e-7)


def test_a_model_without_single_effects_is_refused():
    plain = cv.Model(cv.Normal("y", cv.Normal("m", 0, 1), 1.0, plates=OBS))
    with pytest.raises(cv.ParameterError, match="no hidden SingleEffect without plates"):
        plain.fit({"y": [1.0, 2.0]}, schedule=cv.Refined())
