"""Sums of effects about data far from zero: the ELBO has the digits of the centred model, whatever the offset."""

import mpmath
import numpy as np
import pytest

import caviar as cv

N = 24


def _table(offset, seed=0):
    rng = np.random.default_rng(seed)
    i, j = rng.permutation(np.arange(N) % 4), rng.permutation(np.arange(N) % 3)
    u = rng.normal(size=N)
    y = rng.normal(size=4)[i] + 0.7 * rng.normal(size=3)[j] + 0.5 * u + rng.normal(size=N) / np.sqrt(3)
    return {"i": i, "j": j, "u": u, "y": y + offset}


def _of_mean_field(y, mean, blocks):
    """Return the best mean-field ELBO of y = mean + sum of X b + noise, exactly.

    ``blocks`` are (X, prior precision): one factor for each, of independent effects. The noise precision is 3.
    """
    with mpmath.workdps(60):
        covariance = mpmath.eye(len(y)) / 3
        for x, precision in blocks:
            x = mpmath.matrix(x.tolist())
            covariance += x * x.T / precision
        lower = mpmath.cholesky(covariance)
        left = mpmath.matrix([mpmath.mpf(float(value)) - mpmath.mpf(float(mean)) for value in y])
        solved = mpmath.lu_solve(lower, left)
        evidence = -mpmath.fsum(v * v for v in solved) / 2 - mpmath.fsum(
            mpmath.log(lower[k, k]) for k in range(len(y))
        )
        evidence -= mpmath.mpf(len(y)) / 2 * mpmath.log(2 * mpmath.pi)
    # the best of independent effects is below the evidence by half of log|diag P| - log|P|
    every = np.hstack([x for x, _ in blocks])
    precision = 3 * every.T @ every + np.diag(np.concatenate([np.full(x.shape[1], p) for x, p in blocks]))
    return float(evidence) - 0.5 * (np.log(np.diag(precision)).sum() - np.linalg.slogdet(precision)[1])


@pytest.mark.thinned(9)
@pytest.mark.parametrize("offset", [0.0, -1e6, 1e8, 1e11])
@pytest.mark.parametrize("turned", [False, True])
def test_crossed_effects(offset, turned):
    data = _table(offset)
    o = cv.Plate("o")
    a = cv.Normal("a", offset, 1.0, plates=cv.Plate("i", 4))[cv.Data("i", plates=o)]
    b = cv.Normal("b", 0.0, 2.0, plates=cv.Plate("j", 3))[cv.Data("j", plates=o)]
    model = cv.Model(cv.Normal("y", b + a if turned else a + b, 3.0, plates=o))
    del data["u"]
    exact = _of_mean_field(data["y"], offset, [(np.eye(4)[data["i"]], 1.0), (np.eye(3)[data["j"]], 2.0)])
    posterior = model.fit(data, tol=1e-13, max_iter=2000, factors="apart")
    assert posterior.elbo == pytest.approx(exact, abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("offset", [1e6, 1e11])
def test_an_intercept_beside_effects_and_a_slope(offset):
    data = _table(offset)
    o = cv.Plate("o")
    m = cv.Normal("m", 0.0, 1e-16)
    b = cv.Normal("b", 0.0, 2.0, plates=cv.Plate("j", 3))[cv.Data("j", plates=o)]
    s = cv.Normal("s", 0.0, 1.0) * cv.Data("u", plates=o)
    model = cv.Model(cv.Normal("y", s + b + m, 3.0, plates=o))
    u = data["u"]
    del data["i"]
    blocks = [(np.ones((N, 1)), 1e-16), (np.eye(3)[data["j"]], 2.0), (u[:, None], 1.0)]
    exact = _of_mean_field(data["y"], 0.0, blocks)
    posterior = model.fit(data, tol=1e-13, max_iter=4000, factors="apart")
    assert posterior.elbo == pytest.approx(exact, abs=1e-8)


def _far(offset):
    """Return a model whose level is learnt, and its data, with missing rows."""
    data = _table(0.0)
    y = np.round(data["y"], 3)
    y[:2] = np.nan
    o = cv.Plate("o")
    h = cv.Normal("h", offset, 1e-2)
    a = cv.Normal("a", h, 1.0, plates=cv.Plate("i", 4))[cv.Data("i", plates=o)]
    s = cv.Normal("s", 0.0, 1.0) * cv.Data("u", plates=o)
    model = cv.Model(cv.Normal("y", s + a, cv.Gamma("t", 2.0, 1.0), plates=o))
    return model, {"i": data["i"], "u": data["u"], "y": y + offset}


@pytest.mark.slow
@pytest.mark.parametrize("offset", [2.0**20, 2.0**36])
def test_everything_moves_with_the_data(offset, tmp_path):
    """Hierarchies, missing rows, weights, further rows, and a saved model."""
    found = []
    for own in (0.0, offset):
        model, data = _far(own)
        # exact in the units of the offset
        data["y"] = own + np.round((data["y"] - own) * 2.0**10) / 2.0**10
        weights = np.where(np.arange(N) % 3 == 0, 2.0, 0.5)
        posterior = model.fit(data, sample_weight=weights, tol=1e-12, max_iter=2000, seed=0)
        new = {"i": data["i"][3:9], "u": data["u"][3:9], "y": data["y"][3:9]}
        further = posterior.update(new)
        posterior.save(tmp_path / "model")
        loaded = cv.load(tmp_path / "model")
        found.append(
            np.concatenate(
                [
                    [posterior.elbo, further.elbo, float(posterior["h"].mean) - own],
                    posterior["a"].mean - own,
                    [loaded.update(new).elbo],
                    np.atleast_1d(further["t"].mean),
                ]
            )
        )
    np.testing.assert_allclose(found[1], found[0], rtol=1e-6, atol=1e-6 * max(1.0, offset * 1e-9))
