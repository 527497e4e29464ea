"""Sums and products in a slot have the ELBO of the formula they state, however they are written."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import caviar as cv
from caviar._typing import Array
from caviar.families import Gamma, Normal
from caviar.testing._elbo_estimate import elbo_estimate
from oracles.reference.gauss_hermite import as_gaussian, elbo, normal

N = 6
RNG = np.random.default_rng(11)
OBS, GROUP = cv.Plate("obs"), cv.Plate("group", 2)
VALUES = {
    "y": RNG.normal(-3, 1, N),
    "d": RNG.normal(2, 1, N),
    "e": RNG.normal(0, 1, N),
    "V": RNG.normal(0, 1, (N, 2)),
    "g": np.array([0, 1, 1, 0, 1, 1]),
}
D, E, V, G = (VALUES[name] for name in "deVg")
PLAIN = np.array([1.0, -2.0])


class Parts:
    """The parts that predictors are made of: two numbers, two vectors, numbers by group, known columns."""

    def __init__(self) -> None:
        self.a, self.b = cv.Normal("a", 0.3, 2.0), cv.Normal("b", -0.5, 1.5)
        self.v = cv.MultivariateNormal("v", [0.1, 0.2], np.eye(2))
        self.w = cv.MultivariateNormal("w", [-0.3, 0.4], np.eye(2))
        self.s = cv.Normal("s", 0.7, 0.8, plates=GROUP)
        self.W = cv.MultivariateNormal("W", [0.5, -0.2], np.eye(2), plates=GROUP)
        self.d, self.e, self.V, self.g = (cv.Data(name, plates=OBS) for name in "deVg")
        self.fixed = cv.Constant("fixed", np.array([1.5, -0.5]), plates=GROUP)


PREDICTORS: dict[str, tuple[Callable[[Parts], Any], Callable[..., Array]]] = {
    "three addends that share variables": (
        lambda p: p.a + p.b * p.d + p.a * p.b * p.e,
        lambda a, b, **_: a + b * D + a * b * E,
    ),
    "a variable in two addends": (lambda p: p.a * p.d - p.a + 2, lambda a, **_: a * D - a + 2),
    "a variable that goes away": (lambda p: p.a + p.b - p.a, lambda b, **_: b + 0 * D),
    "coefficients": (
        lambda p: -p.a + 0.5 * p.b * p.d - 1.5 + (3 - p.b) / 4,
        lambda a, b, **_: -a + 0.5 * b * D - 1.5 + (3 - b) / 4,
    ),
    "a product of sums": (
        lambda p: (p.a - 0.5 * p.d + 2) * (p.b + p.e) / -2,
        lambda a, b, **_: (a - 0.5 * D + 2) * (b + E) / -2,
    ),
    "two latent vectors and an intercept": (
        lambda p: cv.dot(p.v, p.w) + p.a,
        lambda v, w, a, **_: v @ w + a + 0 * D,
    ),
    "one vector in three dot products": (
        lambda p: cv.dot(p.V, p.v) + cv.dot(p.v, p.w) * p.d + cv.dot(PLAIN, p.v),
        lambda v, w, **_: V @ v + (v @ w) * D + PLAIN @ v,
    ),
    "a product of two dot products": (
        lambda p: cv.dot(p.v, p.V) * cv.dot(p.w, PLAIN) - p.b,
        lambda v, w, b, **_: (V @ v) * (w @ PLAIN) - b,
    ),
    "known labels": (
        lambda p: p.s[p.g] - 0.5 * p.a * p.fixed[p.g] + cv.dot(p.V, p.W[p.g]),
        lambda s, a, W, **_: (
            s[G] - 0.5 * a * np.array([1.5, -0.5])[G] + np.sum(V * W.reshape(2, 2)[G], axis=1)
        ),
    ),
    "known labels on both sides of a dot product": (
        lambda p: cv.dot(p.W[p.g], p.v) + p.s[p.g] * p.d,
        lambda W, v, s, **_: W.reshape(2, 2)[G] @ v + s[G] * D,
    ),
}
PRIORS = {
    "a": (0.3, 2.0),
    "b": (-0.5, 1.5),
    "v": (np.array([0.1, 0.2]), 1.0),
    "w": (np.array([-0.3, 0.4]), 1.0),
    "s": (0.7, 0.8),
    "W": (np.array([0.5, -0.2, 0.5, -0.2]), 1.0),
}


def _factors(posterior: cv.Posterior) -> dict[str, tuple[Array, Array]]:
    factors = {name: as_gaussian(posterior[name]) for name in posterior if name != "W"}
    if "W" in posterior:
        covariance = np.zeros((4, 4))
        covariance[:2, :2], covariance[2:, 2:] = posterior["W"].covariance
        factors["W"] = posterior["W"].mean.reshape(4), covariance
    return factors


@pytest.mark.thinned(3)
@pytest.mark.parametrize("name", PREDICTORS)
def test_elbo_of_a_predictor_is_that_of_its_formula(name: str) -> None:
    """After a few sweeps, so that nothing is special about the factors."""
    stated, formula = PREDICTORS[name]
    model = cv.Model(cv.Normal("y", stated(Parts()), 0.7, plates=OBS))
    used = {node.name for node in model.nodes}
    data = {key: value for key, value in VALUES.items() if key in used}
    init = {"v": [0.3, -0.8], "w": [0.9, 0.2]}
    init = {name: value for name, value in init.items() if name in used}
    posterior = model.fit(data, max_iter=3, tol=0, accelerate=False, init=init, factors="apart")
    assert np.diff(posterior.elbo_trace[1:]).min() > -1e-9
    factors = _factors(posterior)

    def log_joint(*values: Array) -> float:
        by_name = dict(zip(factors, values, strict=True))
        prior = sum(normal(value, *PRIORS[key]) for key, value in by_name.items())
        return prior + normal(VALUES["y"], formula(**by_name), 0.7)

    assert posterior.elbo == pytest.approx(elbo(list(factors.values()), log_joint), abs=1e-9)


LEAVES: dict[str, tuple[Callable[[Parts], list[Any]], Callable[..., float]]] = {
    "a location of one leaf, in the predictor of another": (
        lambda p: [
            cv.Normal("x", p.a, 1.3, plates=OBS),
            cv.Normal("y", p.a + p.b * p.d, 0.7, plates=OBS),
        ],
        lambda a, b: normal(VALUES["x"], a, 1.3) + normal(VALUES["y"], a + b * D, 0.7),
    ),
    "known means of one leaf, covariates of another": (
        lambda p: [
            cv.Normal("x", p.d, 1.3, plates=OBS),
            cv.Normal("y", p.b * p.d, 0.7, plates=OBS),
        ],
        lambda b: normal(VALUES["x"], D, 1.3) + normal(VALUES["y"], b * D, 0.7),
    ),
    "known means of two leaves": (
        lambda p: [
            cv.Normal("x", p.d, 1.3, plates=OBS),
            cv.Normal("y", p.d, 0.7, plates=OBS),
            cv.Normal("e", p.a, 1.0, plates=OBS),
        ],
        lambda a: normal(VALUES["x"], D, 1.3) + normal(VALUES["y"], D, 0.7) + normal(E, a, 1.0),
    ),
    "a leaf as the covariate of another": (
        lambda p: [x := cv.Normal("x", p.a, 1.3, plates=OBS), cv.Normal("y", p.b * x, 0.7, plates=OBS)],
        lambda a, b: normal(VALUES["x"], a, 1.3) + normal(VALUES["y"], b * VALUES["x"], 0.7),
    ),
}
VALUES["x"] = RNG.normal(5, 1, N)


@pytest.mark.parametrize("name", LEAVES)
def test_reference_points_leave_predictors_alone(name: str) -> None:
    """Locations are measured from the mean of the data; what is multiplied or added must not be."""
    stated, log_likelihood = LEAVES[name]
    model = cv.Model(*stated(Parts()))
    used = {node.name for node in model.nodes}
    data = {key: value for key, value in VALUES.items() if key in used}
    posterior = model.fit(data, max_iter=3, tol=0, accelerate=False, factors="apart")
    factors = _factors(posterior)

    def log_joint(*values: Array) -> float:
        by_name = dict(zip(factors, values, strict=True))
        return sum(normal(v, *PRIORS[k]) for k, v in by_name.items()) + log_likelihood(**by_name)

    assert posterior.elbo == pytest.approx(elbo(list(factors.values()), log_joint), abs=1e-9)


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint8, np.int64, np.float32])
def test_covariates_of_any_type_count_as_float64(dtype: type) -> None:
    """The squares of an int8 do not fit an int8."""
    columns = np.array([[100, 1], [127, 0], [3, 2], [90, 90], [0, 1], [120, 7]]).astype(dtype)

    def fit(X: Array) -> cv.Posterior:
        w = cv.MultivariateNormal("w", np.zeros(2), np.eye(2))
        s = cv.Normal("s", 0.0, 1.0)
        mean = cv.dot(cv.Data("X", plates=OBS), w) + s * cv.Data("d", plates=OBS)
        return cv.Model(cv.Normal("y", mean, 2.0, plates=OBS)).fit({"y": VALUES["y"], "X": X, "d": X[:, 0]})

    assert fit(columns).elbo == pytest.approx(fit(columns.astype(np.float64)).elbo, rel=1e-12)


def test_mixture_of_regressions() -> None:
    """Latent labels gate intercepts and slopes, known labels another intercept: against enumeration of the labels."""
    p = Parts()
    intercept = cv.Normal("intercept", 0.1, 0.5, plates=cv.Plate("line", 2))
    slope = cv.Normal("slope", [-1.0, 2.0], 1.5, plates=intercept.plates)
    z = cv.Categorical("z", [0.3, 0.7], plates=OBS)
    mean = intercept[z] + slope[z] * p.d - 0.5 * p.s[p.g]
    data = {name: VALUES[name] for name in ("y", "d", "g")}
    posterior = cv.Model(cv.Normal("y", mean, 0.7, plates=OBS)).fit(
        data, seed=3, max_iter=2, tol=0, accelerate=False
    )
    r = posterior.local(data)["z"].probabilities

    def log_joint(i: Array, b: Array, s: Array) -> float:
        total = normal(i, 0.1, 0.5) + normal(b, [-1.0, 2.0], 1.5) + normal(s, 0.7, 0.8)
        for n, k in np.ndindex(N, 2):
            log_p = np.log([0.3, 0.7][k]) + normal(VALUES["y"][n], i[k] + b[k] * D[n] - 0.5 * s[G[n]], 0.7)
            total += r[n, k] * (log_p - np.log(r[n, k]))
        return total

    factors = [as_gaussian(posterior[name]) for name in ("intercept", "slope", "s")]
    assert posterior.elbo == pytest.approx(elbo(factors, log_joint), abs=1e-9)


def test_products_in_precisions() -> None:
    """A known scale, a known labelled Gamma and a number, for numbers and for vectors."""
    tau = cv.Gamma("tau", 2.0, 1.5, plates=GROUP)
    u = cv.Data("u", plates=OBS)
    scale = np.array([[2.0, 0.3], [0.3, 1.0]])
    m = cv.Normal("m", 0.0, 1.0)
    label = cv.Data("g", plates=OBS)
    y = cv.Normal("y", m * 1.0, 3 * u * tau[label], plates=OBS)
    matrix = cv.Constant("scale", scale)
    x = cv.MultivariateNormal("V", PLAIN, 0.5 * u * matrix * tau[label], plates=OBS)
    known = np.abs(D) + 0.1
    data = {"y": VALUES["y"], "u": known, "g": G, "V": V}
    posterior = cv.Model(y, x).fit(data, max_iter=2, tol=0, accelerate=False)
    q_m, q_tau = posterior["m"], posterior["tau"]
    log_t, t = q_tau.expected_statistics
    expected = -float(q_m.kl(Normal(0.0, 1.0)) + q_tau.kl(Gamma(2.0, 1.5)).sum())
    for n in range(N):
        precision = 3 * known[n] * t[G[n]]
        squared = (VALUES["y"][n] - q_m.mean) ** 2 + q_m.variance
        expected += 0.5 * (np.log(3 * known[n]) + log_t[G[n]] - np.log(2 * np.pi) - precision * squared)
        away = V[n] - PLAIN
        expected += np.log(0.5 * known[n]) + log_t[G[n]] + 0.5 * np.linalg.slogdet(scale)[1]
        expected -= np.log(2 * np.pi) + 0.25 * known[n] * t[G[n]] * (away @ scale @ away)
    assert posterior.elbo == pytest.approx(float(expected), rel=1e-12)


def test_a_product_may_stand_in_a_rate():
    """Waiting times with a rate of each row and a common one: the kit's densities know nothing of products."""
    obs = cv.Plate("obs")
    common = cv.Gamma("common", 3.0, 2.0)
    x = cv.Gamma("x", 2.0, cv.Data("speed", plates=obs) * common, plates=obs)
    speed, times = np.array([0.5, 1.0, 4.0]), np.array([3.0, 0.4, 1.0])
    posterior = cv.Model(x).fit({"x": times, "speed": speed})
    assert posterior["common"].shape == 3.0 + 2.0 * 3
    assert posterior["common"].rate == pytest.approx(2.0 + speed @ times)
    cv.testing.check_model(cv.Model(x), {"x": times, "speed": speed}).raise_if_failed()


@pytest.mark.slow
@pytest.mark.parametrize("chosen", [True, False])
def test_a_location_with_a_sum_as_mean_is_as_any_other(chosen):
    """Of the mean 1 m instead of m: the same ELBO, and that of the families' densities."""
    x, posteriors = RNG.normal(5, 2, 20), []
    for factor in (None, 1.0):
        obs, component = cv.Plate("obs"), cv.Plate("component", 2)
        m = cv.Normal("m", 0, 0.1)
        mean = cv.Normal("mean", m if factor is None else factor * m, 0.2, plates=component if chosen else ())
        z = cv.Categorical("z", cv.Dirichlet("weights", [1.0, 1.0]), plates=obs)
        model = cv.Model(cv.Normal("x", mean[z] if chosen else mean, 1.0, plates=obs))
        posteriors.append(model.fit({"x": x}, seed=0, tol=1e-12, factors="apart"))
    plain, summed = posteriors
    factors = {name: summed[name] for name in summed}
    assert plain.elbo_at(factors, {"x": x}) == pytest.approx(summed.elbo, rel=1e-9)
    assert summed.elbo == pytest.approx(plain.elbo, rel=1e-6)
    estimate = elbo_estimate(summed, {"x": x}, n_draws=4_000, seed=1)
    assert abs(estimate.value - summed.elbo) < 4 * estimate.error
