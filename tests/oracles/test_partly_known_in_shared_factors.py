"""Variables of which some repetitions are known share a Gaussian factor with others, which is that given these values.

With known precisions the ELBO is the exact log density of the rows and of the known values together, and the factor
the exact posterior, by dense algebra.
"""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import caviar as cv

OBS = cv.Plate("obs")
N = 60


def _rows(name):
    return cv.Data(name, plates=OBS)


def _one_hot(labels, size):
    return np.eye(size)[labels]


def _crossed(rng, n_a=6, n_b=5):
    """A level, effects about another level, crossed effects: repetitions of both are known."""
    g, h = rng.integers(0, n_a, N), rng.integers(0, n_b, N)
    mu, above = cv.Normal("mu", 0.5, 0.5), cv.Normal("above", 0, 1.0)
    a = cv.Normal("a", above, 1.5, plates=cv.Plate("rows", n_a))
    b = cv.Normal("b", 0, 2.0, plates=cv.Plate("columns", n_b))
    model = cv.Model(cv.Normal("y", mu + a[_rows("g")] + b[_rows("h")], 4.0, plates=OBS))
    # independent numbers: mu, above, deviations of a, b
    prior_mean = np.concatenate([[0.5], np.zeros(1 + n_a + n_b)])
    prior_sd = np.concatenate([[0.5**-0.5, 1.0], np.full(n_a, 1.5**-0.5), np.full(n_b, 2.0**-0.5)])
    eye = np.eye(len(prior_mean))
    of = {"mu": eye[:1], "above": eye[1:2], "a": eye[1] + eye[2 : 2 + n_a], "b": eye[2 + n_a :]}
    design = of["mu"] + of["a"][g] + of["b"][h]
    known = {"a": [1, 4], "b": [0]}
    return model, {"g": g, "h": h}, (prior_mean, prior_sd, of, design), known


def _vectors(rng):
    """Intercepts and slopes of groups, a vector each, of which two are known."""
    g, x = rng.integers(0, 5, N), rng.normal(size=(N, 2))
    w = cv.MultivariateNormal("w", [1.0, 0.0], 0.5 * np.eye(2))
    u = cv.MultivariateNormal("u", np.zeros(2), 2.0 * np.eye(2), plates=cv.Plate("group", 5))
    of_rows = _rows("x")
    at = cv.dot(of_rows, w) + cv.dot(of_rows, u[_rows("g")])
    model = cv.Model(cv.Normal("y", at, 4.0, plates=OBS))
    prior_mean = np.concatenate([[1.0, 0.0], np.zeros(10)])
    prior_sd = np.concatenate([np.full(2, 0.5**-0.5), np.full(10, 2.0**-0.5)])
    eye = np.eye(12)
    of = {"w": eye[:2], "u": eye[2:]}
    design = np.einsum("nd,dp->np", x, of["w"]) + np.einsum("nd,ndp->np", x, of["u"].reshape(5, 2, 12)[g])
    return model, {"g": g, "x": x}, (prior_mean, prior_sd, of, design), {"u": [0, 3]}


def _case(make, **sizes):
    rng = np.random.default_rng(3)
    model, rows, (mean, sd, of, design), known = make(rng, **sizes)
    drawn = mean + sd * rng.normal(size=len(mean))
    data = {**rows, "y": design @ drawn + 0.5 * rng.normal(size=N)}
    seen, values = [design], [data["y"]]
    for name, places in known.items():
        size = model.variables[name].dimension or 1
        whole = (of[name] @ drawn).reshape(-1, size)
        given = np.full(whole.shape, np.nan)
        given[places] = whole[places]
        data[name] = np.ma.masked_invalid(given if size > 1 else given[:, 0])
        seen.append(of[name].reshape(-1, size, len(mean))[places].reshape(-1, len(mean)))
        values.append(whole[places].ravel())
    seen, values = np.concatenate(seen), np.concatenate(values)
    covariance = (seen * sd**2) @ seen.T
    covariance[:N, :N] += np.eye(N) / 4.0
    gain = (sd[:, None] ** 2 * seen.T) @ np.linalg.inv(covariance)
    exact = {
        "evidence": multivariate_normal(seen @ mean, covariance).logpdf(values),
        "mean": mean + gain @ (values - seen @ mean),
        "covariance": np.diag(sd**2) - gain @ seen * sd**2,
    }
    return model, data, exact, of


@pytest.mark.parametrize("make", [_crossed, _vectors])
def test_the_elbo_is_the_exact_evidence(make):
    model, data, exact, of = _case(make)
    posterior = model.fit(data, tol=1e-12)
    assert posterior.elbo == pytest.approx(exact["evidence"], abs=1e-9)
    assert model.fit(data, tol=1e-12, factors="apart", max_iter=3000).elbo < posterior.elbo - 0.05
    response = posterior.linear_response(data)
    draws = posterior.sample(2_000, seed=0)
    for name, design in of.items():
        mean, covariance = design @ exact["mean"], design @ exact["covariance"] @ design.T
        shown = posterior.marginals(name)[0]
        np.testing.assert_allclose(np.ravel(posterior[name].mean), mean, atol=1e-9)
        np.testing.assert_allclose(np.ravel(response.sd(name)) ** 2, np.diagonal(covariance), atol=1e-9)
        known = (
            np.broadcast_to(np.ma.getmaskarray(data[name]), np.shape(shown.mean)) if name in data else None
        )
        if known is not None:
            np.testing.assert_array_equal(shown.sd == 0, ~known)
            np.testing.assert_array_equal(posterior[name].mean[~known], data[name].data[~known])
        scale = np.sqrt(np.diagonal(covariance).clip(0))
        np.testing.assert_allclose(draws[name].reshape(2_000, -1).std(axis=0), scale, rtol=0.1, atol=1e-6)


def test_what_is_eliminated_is_the_same(monkeypatch):
    """The variable with the most groups is eliminated if the factor is large."""
    model, data, exact, _ = _case(_crossed, n_a=9)
    monkeypatch.setattr("caviar.families.shared.arrow._DENSE", 4)
    posterior = model.fit(data, tol=1e-12)
    assert posterior.elbo == pytest.approx(exact["evidence"], abs=1e-9)


def test_linear_response_beside_an_unknown_precision_is_that_of_tilted_fits_of_a_large_factor_too(
    monkeypatch,
):
    rng = np.random.default_rng(0)
    g, h = rng.integers(0, 6, N), rng.integers(0, 5, N)
    a, b = rng.normal(size=6), rng.normal(size=5)
    data = {"g": g, "h": h, "y": a[g] + b[h] + rng.normal(size=N)}
    data["a"] = np.ma.masked_invalid(np.where(np.arange(6) < 2, a, np.nan))

    def fitted(shape=2.0):
        own = cv.Normal("a", 0, cv.Gamma("between", shape, 2.0), plates=cv.Plate("rows", 6))
        other = cv.Normal("b", 0, 2.0, plates=cv.Plate("columns", 5))
        at = cv.Normal("mu", 0, 0.5) + own[_rows("g")] + other[_rows("h")]
        model = cv.Model(cv.Normal("y", at, cv.Gamma("tau", 2.0, 2.0), plates=OBS))
        return model.fit(data, tol=1e-14, max_iter=2000, factors=[("mu", "a", "b")])

    response = fitted().linear_response(data)
    step = 1e-2
    for name in ("mu", "a", "tau"):
        up, down = (np.asarray(fitted(2.0 + sign * step)[name].mean) for sign in (1, -1))
        found = response.sensitivity(name)["between.shape"]
        np.testing.assert_allclose(found, (up - down) / (2 * step), rtol=1e-3, atol=1e-5)
    monkeypatch.setattr("caviar.engine.response.operator.MOST_OF_SHARED", 3)
    large = fitted().linear_response(data)
    for name in ("mu", "a", "tau", "between"):
        np.testing.assert_allclose(large.sd(name), response.sd(name), rtol=1e-7, atol=1e-12)


def test_saved_and_predicted(tmp_path):
    model, data, _, _ = _case(_crossed)
    posterior = model.fit(data)
    posterior.save(tmp_path / "m.caviar")
    again = cv.load(tmp_path / "m.caviar")
    new = {"g": [1, 2], "h": [0, 3]}
    for one in (posterior, again):
        told = one.predict(new)["y"]
        level, b = posterior["mu"], posterior["b"]
        assert told.mean[0] == pytest.approx(level.mean + data["a"][1] + data["b"][0], abs=1e-9)
        assert told.sd[0] == pytest.approx(np.sqrt(level.variance + 0.25), rel=1e-9)
        assert told.sd[1] > told.sd[0]
    np.testing.assert_array_equal(again["a"].mean, posterior["a"].mean)
    assert b.variance[0] == 0


def test_an_earlier_posterior_of_it_is_no_prior():
    model, data, _, _ = _case(_crossed)
    posterior = model.fit(data)
    with pytest.raises(cv.ModelError, match="were known"):
        model.fit({name: data[name] for name in ("g", "h", "y")}, prior=posterior)
