"""Repetitions that the fit has not seen are forecast with what q does not know of their parents."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import wishart
from thinning import amount

import caviar as cv

N_DRAWS = amount(300_000, 1_000_000)
TIGHT = {"tol": 1e-12, "max_iter": 3000}
LABELS = np.repeat(np.arange(5), [6, 2, 4, 1, 3])
OBS = cv.Plate("obs")
RNG = np.random.default_rng(3)
CENTRES = RNG.normal(1.0, 2.0, 5)
X = RNG.normal(CENTRES[LABELS], 1.0)


def scalar(n: int) -> cv.Model:
    group = cv.Plate("group", n)
    m = cv.Normal("m", cv.Normal("mu", 0.0, 0.01), cv.Gamma("tau", 2.0, 1.0), plates=group)
    return cv.Model(cv.Normal("x", m[cv.Data("g", plates=OBS)], cv.Gamma("noise", 2.0, 2.0), plates=OBS))


def drawn(posterior: cv.Posterior, *names: str) -> list:
    return [posterior[name].sample(N_DRAWS, seed) for seed, name in enumerate(names)]


def assert_moments(prediction: cv.Prediction, row: int, draws: np.ndarray) -> None:
    """Compare with draws, whose mean and standard deviation have errors of their own: five of these."""
    mean, sd = draws.mean(axis=0), draws.std(axis=0)
    fourth = np.mean((draws - mean) ** 4, axis=0)
    of_sd = np.sqrt(fourth - sd**4) / (2 * sd * np.sqrt(N_DRAWS))
    assert np.all(np.abs(prediction.mean[row] - mean) < 5 * sd / np.sqrt(N_DRAWS))
    assert np.all(np.abs(prediction.standard_deviation[row] - sd) < 5 * of_sd + 1e-9)


def test_the_total_variance_of_a_group() -> None:
    r"""Under q: E[1/tau] = b / (a - 1), to which the variance of the mean is added, and that of the noise for a row."""
    posterior = scalar(6).fit({"x": X, "g": LABELS}, uncertainty="mean_field", **TIGHT)
    mu, tau, noise = (posterior[name] for name in ("mu", "tau", "noise"))
    variance = tau.rate / (tau.shape - 1) + mu.variance
    np.testing.assert_allclose(posterior["m"].variance[5], variance, rtol=1e-12)
    np.testing.assert_allclose(posterior["m"].mean[5], mu.mean, rtol=1e-12)
    found = posterior.predict({"g": [5, 0]})["x"]
    np.testing.assert_allclose(
        found.standard_deviation[0] ** 2, variance + noise.rate / (noise.shape - 1), rtol=1e-12
    )
    centre, precision, own = drawn(posterior, "mu", "tau", "noise")
    rng = np.random.default_rng(9)
    assert_moments(found, 0, rng.normal(rng.normal(centre, precision**-0.5), own**-0.5))


def test_groups_that_were_seen_are_as_they_were() -> None:
    fits = [scalar(n).fit({"x": X, "g": LABELS}, **TIGHT) for n in (5, 9)]
    assert fits[0].elbo == pytest.approx(fits[1].elbo, abs=1e-9)
    np.testing.assert_allclose(fits[1]["m"].mean[:5], fits[0]["m"].mean, rtol=1e-5)
    np.testing.assert_allclose(fits[1]["m"].variance[:5], fits[0]["m"].variance, rtol=1e-5)


@pytest.mark.thinned(2)
@pytest.mark.parametrize(
    "settings", [{"schedule": cv.Incremental(2)}, {"executor": 2}, {"schedule": cv.Stochastic(8)}], ids=str
)
def test_whatever_the_schedule(settings, tmp_path) -> None:
    posterior = scalar(7).fit({"x": X, "g": LABELS}, seed=0, **settings)
    tau = posterior["tau"]
    variance = tau.rate / (tau.shape - 1) + posterior["mu"].variance
    np.testing.assert_allclose(posterior["m"].variance[5:], variance, rtol=1e-12)
    posterior.save(tmp_path / "p.caviar")
    again = cv.load(tmp_path / "p.caviar").predict({"g": [6]})["x"]
    assert again.standard_deviation == posterior.predict({"g": [6]})["x"].standard_deviation


@pytest.mark.thinned(4)
@pytest.mark.parametrize("kind", ["diagonal", "wishart", "known", "scaled"])
def test_coefficients_of_a_group(kind) -> None:
    rng = np.random.default_rng(4)
    design = rng.normal(size=(len(LABELS), 2))
    y = (rng.normal([1.0, -1.0], 1.0, (5, 2))[LABELS] * design).sum(axis=1) + rng.normal(0, 0.5, len(LABELS))
    group = cv.Plate("group", 7)
    centre = cv.MultivariateNormal("centre", np.zeros(2), 0.1 * np.eye(2))
    matrix = np.array([[2.0, 0.7], [0.7, 1.0]])
    precision = {
        "diagonal": lambda: cv.diagonal(cv.Gamma("spread", 2.0, 1.0, plates=cv.Plate("feature", 2))),
        "wishart": lambda: cv.Wishart("P", 4.0, matrix),
        "known": lambda: matrix,
        "scaled": lambda: cv.Gamma("scale", 3.0, 2.0) * cv.Constant("M", matrix),
    }[kind]()
    b = cv.MultivariateNormal("b", centre, precision, plates=group)
    mean = cv.dot(cv.Data("X", plates=OBS), b[cv.Data("g", plates=OBS)])
    model = cv.Model(cv.Normal("y", mean, cv.Gamma("noise", 2.0, 1.0), plates=OBS))
    posterior = model.fit({"y": y, "X": design, "g": LABELS}, uncertainty="mean_field", **TIGHT)
    rng = np.random.default_rng(1)
    centres = posterior["centre"].sample(N_DRAWS, 0)
    if kind == "diagonal":
        deviations = rng.normal(size=(N_DRAWS, 2)) * posterior["spread"].sample(N_DRAWS, 1) ** -0.5
    else:
        precisions = {
            "wishart": lambda: posterior["P"].sample(N_DRAWS, 1),
            "known": lambda: np.broadcast_to(matrix, (N_DRAWS, 2, 2)),
            "scaled": lambda: posterior["scale"].sample(N_DRAWS, 1)[:, None, None] * matrix,
        }[kind]()
        roots = np.linalg.cholesky(np.linalg.inv(precisions))
        deviations = np.einsum("nij,nj->ni", roots, rng.normal(size=(N_DRAWS, 2)))
    own = centres + deviations
    found = posterior["b"]
    np.testing.assert_allclose(found.covariance[6], np.cov(own.T), rtol=0.02, atol=0.02)
    x = np.array([[1.0, 2.0], [1.0, -2.0]])
    rows = own @ x.T + rng.normal(size=(N_DRAWS, 2)) * posterior["noise"].sample(N_DRAWS, 2)[:, None] ** -0.5
    for number, row in enumerate(x):
        assert_moments(posterior.predict({"X": [row], "g": [6]})["y"], 0, rows[:, number])


@pytest.mark.thinned(2)
@pytest.mark.parametrize("dimension", [1, 2])
def test_mean_and_precision_of_the_population_in_one_factor(dimension) -> None:
    rng = np.random.default_rng(5)
    group = cv.Plate("group", 7)
    g = cv.Data("g", plates=OBS)
    if dimension == 1:
        theta = cv.NormalGamma("theta", 0.0, 0.1, 3.0, 2.0)
        m = cv.Normal("m", theta, plates=group)
        leaf, values = cv.Normal("x", m[g], 1.0, plates=OBS), X
    else:
        theta = cv.NormalWishart("theta", np.zeros(2), 0.1, 5.0, np.eye(2) + 0.3)
        m = cv.MultivariateNormal("m", theta, plates=group)
        leaf = cv.MultivariateNormal("x", m[g], np.eye(2), plates=OBS)
        values = rng.normal(rng.normal(size=(5, 2))[LABELS], 1.0)
    posterior = cv.Model(leaf).fit({"x": values, "g": LABELS}, **TIGHT)
    centres, precisions = posterior["theta"].sample(N_DRAWS, 1)
    if dimension == 1:
        rows = rng.normal(rng.normal(centres, precisions**-0.5), 1.0)
    else:
        roots = np.linalg.cholesky(np.linalg.inv(precisions))
        own = centres + np.einsum("nij,nj->ni", roots, rng.normal(size=(N_DRAWS, 2)))
        rows = own + rng.normal(size=(N_DRAWS, 2))
        np.testing.assert_allclose(posterior["m"].covariance[6], np.cov(own.T), rtol=0.03, atol=0.03)
    assert_moments(posterior.predict({"g": [6]})["x"], 0, rows)


def test_groups_of_a_region_without_rows() -> None:
    """What is not known is handed down: the region is a forecast, and so is each of its groups."""
    region, group = cv.Plate("region", 4), cv.Plate("group", 7)
    r = cv.Normal("r", cv.Normal("mu", 0.0, 0.1), cv.Gamma("outer", 3.0, 2.0), plates=region)
    slope = cv.Normal("slope", 0.0, 1.0)
    height = cv.Data("height", plates=group)
    centre = r[cv.Data("of", plates=group)] + slope * height
    m = cv.Normal("m", centre, cv.Gamma("inner", 3.0, 1.0), plates=group)
    model = cv.Model(cv.Normal("x", m[cv.Data("g", plates=OBS)], 1.0, plates=OBS))
    known = {"of": [0, 0, 1, 1, 2, 3, 1], "height": [0.0, 1.0, -1.0, 2.0, 0.5, 3.0, -2.0]}
    posterior = model.fit({"x": X, "g": LABELS, **known}, data_plate="obs", factors="apart", **TIGHT)
    mu, outer, slopes, inner = drawn(posterior, "mu", "outer", "slope", "inner")
    rng = np.random.default_rng(8)
    new_region = rng.normal(mu, outer**-0.5)
    old_region = posterior["r"].sample(N_DRAWS, 11)[:, 1]
    found = posterior.predict({"g": [5, 6], **known})["x"]
    assert_moments(found, 0, rng.normal(rng.normal(new_region + 3 * slopes, inner**-0.5), 1.0))
    assert_moments(found, 1, rng.normal(rng.normal(old_region - 2 * slopes, inner**-0.5), 1.0))


def test_the_kind_of_a_new_group_is_not_known_either() -> None:
    """Groups are of two kinds, by a latent label of each: the forecast has the moments of the mixture."""
    kind, group = cv.Plate("kind", 2), cv.Plate("group", 9)
    z = cv.Categorical("z", cv.Dirichlet("w", [2.0, 2.0]), plates=group)
    centre = cv.Normal("centre", 0.0, 0.01, plates=kind)
    m = cv.Normal("m", centre[z], cv.Gamma("tau", 3.0, 1.0, plates=kind)[z], plates=group)
    model = cv.Model(cv.Normal("x", m[cv.Data("g", plates=OBS)], 4.0, plates=OBS))
    rng = np.random.default_rng(2)
    labels = np.repeat(np.arange(8), 5)
    x = rng.normal(np.where(labels < 3, 6.0, -4.0) + rng.normal(0, 0.5, 8)[labels], 0.5)
    posterior = model.fit({"x": x, "g": labels}, **TIGHT, seed=0)
    weights, centres, precisions = drawn(posterior, "w", "centre", "tau")
    np.testing.assert_allclose(posterior["z"].probabilities[8], posterior["w"].mean, rtol=1e-12)
    first = rng.random(N_DRAWS) < weights[:, 0]
    chosen = np.where(first, centres[:, 0], centres[:, 1])
    spread = np.where(first, precisions[:, 0], precisions[:, 1]) ** -0.5
    assert_moments(posterior.predict({"g": [8]})["x"], 0, rng.normal(rng.normal(chosen, spread), 0.5))


def test_rates_of_counts() -> None:
    group = cv.Plate("group", 6)
    rate = cv.Gamma("rate", 2.0, cv.Gamma("scale", 3.0, 2.0), plates=group)
    model = cv.Model(cv.Poisson("x", rate[cv.Data("g", plates=OBS)], plates=OBS))
    posterior = model.fit({"x": np.arange(16) % 7, "g": LABELS}, **TIGHT)
    rng = np.random.default_rng(2)
    rows = rng.poisson(rng.gamma(2.0, 1 / posterior["scale"].sample(N_DRAWS, 1)))
    assert_moments(posterior.predict({"g": [5]})["x"], 0, rows)


def test_precisions() -> None:
    group = cv.Plate("group", 6)
    precision = cv.Gamma("precision", 4.0, cv.Gamma("scale", 3.0, 2.0), plates=group)
    model = cv.Model(cv.Normal("x", 0.5, precision[cv.Data("g", plates=OBS)], plates=OBS))
    posterior = model.fit({"x": X, "g": LABELS}, **TIGHT)
    rng = np.random.default_rng(2)
    own = rng.gamma(4.0, 1 / posterior["scale"].sample(N_DRAWS, 1))
    np.testing.assert_allclose(posterior["precision"].mean[5], own.mean(), rtol=0.02)
    assert_moments(posterior.predict({"g": [5]})["x"], 0, rng.normal(0.5, own**-0.5))


def test_precision_matrices() -> None:
    rng = np.random.default_rng(2)
    group = cv.Plate("group", 6)
    scale = cv.Wishart("scale", 6.0, np.array([[2.0, 0.5], [0.5, 1.0]]))
    precision = cv.Wishart("precision", 9.0, scale, plates=group)
    model = cv.Model(cv.MultivariateNormal("x", np.zeros(2), precision[cv.Data("g", plates=OBS)], plates=OBS))
    posterior = model.fit({"x": rng.normal(size=(16, 2)), "g": LABELS}, **TIGHT)
    n = 20_000
    scales = posterior["scale"].sample(n, 1)
    root = np.linalg.cholesky(np.linalg.inv(scales))
    own = root @ wishart(9.0, np.eye(2)).rvs(n, random_state=rng) @ np.swapaxes(root, 1, 2)
    np.testing.assert_allclose(posterior["precision"].mean[5], own.mean(axis=0), rtol=0.03, atol=0.03)
    variances = np.linalg.inv(own).mean(axis=0)
    found = posterior.predict({"g": [5]})["x"]
    np.testing.assert_allclose(found.standard_deviation[0] ** 2, np.diag(variances), rtol=0.03)


def test_answers_of_a_new_group() -> None:
    group = cv.Plate("group", 6)
    m = cv.Normal("m", cv.Normal("mu", 0.0, 0.2), cv.Gamma("tau", 4.0, 8.0), plates=group)
    model = cv.Model(cv.Bernoulli("y", cv.logistic(m[cv.Data("g", plates=OBS)]), plates=OBS))
    posterior = model.fit({"y": (X > 1) * 1, "g": LABELS}, uncertainty="mean_field", **TIGHT)
    mu, tau = drawn(posterior, "mu", "tau")
    probability = expit(np.random.default_rng(1).normal(mu, tau**-0.5)).mean()
    # the tails of the draws are those of a t, those of the factor of a Normal with the same variance
    assert posterior.predict({"g": [5]})["y"].mean[0] == pytest.approx(probability, abs=0.002)


def test_known_means_beside_groups_without_rows() -> None:
    known = np.array([np.nan] * 5 + [1.5, np.nan])
    posterior = scalar(7).fit({"x": X, "g": LABELS, "m": known}, **TIGHT)
    tau = posterior["tau"]
    assert posterior["m"].mean[5] == 1.5
    np.testing.assert_allclose(
        posterior["m"].variance[5:], [0.0, tau.rate / (tau.shape - 1) + posterior["mu"].variance], rtol=1e-12
    )


def test_log_predictive_density_of_a_row_in_a_new_group() -> None:
    """It is that of a Normal with the variance of the forecast, whose tails are shorter than those of draws.

    The optimum at the expected population and spread alone is up to .08 nats off at the first three, 1.6 at the last.
    """
    group = cv.Plate("group", 6)
    m = cv.Normal("m", cv.Normal("mu", 0.0, 0.01), cv.Gamma("tau", 9.0, 9.0), plates=group)
    model = cv.Model(cv.Normal("x", m[cv.Data("g", plates=OBS)], 1.0, plates=OBS))
    posterior = model.fit({"x": X, "g": LABELS}, **TIGHT)
    mu, tau = drawn(posterior, "mu", "tau")
    values = np.array([-2.0, 0.5, 3.0, 8.0])
    density = np.mean(
        np.exp(-0.5 * (values[:, None] - mu) ** 2 / (1 + 1 / tau)) / np.sqrt(2 * np.pi * (1 + 1 / tau)),
        axis=1,
    )
    found = posterior.log_predictive({"x": values, "g": [5, 5, 5, 5]})
    assert np.all(np.abs(found - np.log(density)) < [0.025, 0.025, 0.025, 0.45])


def test_a_variance_that_is_infinite_leaves_the_optimum() -> None:
    group = cv.Plate("group", 3)
    m = cv.Normal("m", 0.0, cv.Gamma("tau", 0.1, 0.1), plates=group)
    model = cv.Model(cv.Normal("x", m[cv.Data("g", plates=OBS)], 1.0, plates=OBS))
    posterior = model.fit({"x": [1.0, 2.0], "g": [0, 0]}, **TIGHT)
    assert posterior["tau"].shape < 1
    np.testing.assert_allclose(posterior["m"].variance[1:], 1 / posterior["tau"].mean, rtol=1e-6)


def measured() -> cv.Posterior:
    """Hidden values of the rows with an unknown mean and spread, measured with known errors."""
    rng = np.random.default_rng(6)
    precision = np.exp(rng.normal(1.0, 0.5, 30))
    m = cv.Normal("m", 0.0, 0.1)
    hidden = cv.Normal("h", m, cv.Gamma("s", 2.0, 1.0), plates=OBS)
    leaf = cv.Normal("x", hidden, cv.Data("t", plates=OBS), plates=OBS)
    x = rng.normal(rng.normal(1.0, 0.7, 30), precision**-0.5)
    return cv.Model(leaf).fit({"x": x, "t": precision}, **TIGHT)


def test_a_hidden_value_of_a_new_row() -> None:
    posterior = measured()
    m, s = drawn(posterior, "m", "s")
    rng = np.random.default_rng(3)
    hidden = rng.normal(m, s**-0.5)
    found = posterior.predict({"t": [1.0, 25.0]})["x"]
    for row, precision in enumerate((1.0, 25.0)):
        assert_moments(found, row, rng.normal(hidden, precision**-0.5))


def test_a_hidden_vector_of_a_new_row_with_a_variance_for_each_entry() -> None:
    spread = cv.Gamma("spread", 3.0, 2.0, plates=(OBS, cv.Plate("entry", 2)))
    hidden = cv.MultivariateNormal("hidden", [0.0, 1.0], cv.diagonal(spread), plates=OBS)
    y = cv.MultivariateNormal("y", hidden, np.eye(2), plates=OBS)
    x = cv.Normal("x", cv.Normal("mu", 0.0, 1.0), 1.0, plates=OBS)
    posterior = cv.Model(x, y).fit({"x": [1.0, 2.0], "y": [[1.0, 1.0], [2.0, 2.0]]})
    found = posterior.predict({"x": [0.5]})["y"]
    np.testing.assert_allclose(found.mean, [[0.0, 1.0]], atol=1e-12)
    # E[1 / spread] = 2 / (3 - 1), and the variance of y given it
    np.testing.assert_allclose(found.standard_deviation, np.sqrt([[2.0, 2.0]]), rtol=1e-12)


def test_a_hidden_value_of_a_new_row_of_one_of_two_kinds() -> None:
    rng = np.random.default_rng(7)
    kind = cv.Plate("kind", 2)
    z = cv.Categorical("z", cv.Dirichlet("w", [2.0, 2.0]), plates=OBS)
    centre, spread = cv.Normal("m", 0.0, 0.05, plates=kind), cv.Gamma("s", 3.0, 1.0, plates=kind)
    hidden = cv.Normal("h", centre[z], spread[z], plates=OBS)
    model = cv.Model(cv.Normal("x", hidden, cv.Data("t", plates=OBS), plates=OBS))
    x = rng.normal(np.where(np.arange(40) < 12, -5.0, 3.0), 1.0)
    posterior = model.fit({"x": x, "t": np.full(40, 9.0)}, seed=0, **TIGHT)
    w, m, s = drawn(posterior, "w", "m", "s")
    first = rng.random(N_DRAWS) < w[:, 0]
    hidden = rng.normal(np.where(first, m[:, 0], m[:, 1]), np.where(first, s[:, 0], s[:, 1]) ** -0.5)
    assert_moments(posterior.predict({"t": [9.0]})["x"], 0, rng.normal(hidden, 1 / 3))


def test_what_is_correlated_with_a_hidden_value_is_refused() -> None:
    m = cv.Normal("m", 0.0, 0.1)
    hidden = cv.Normal("h", m, cv.Gamma("s", 2.0, 1.0), plates=OBS)
    posterior = cv.Model(cv.Normal("x", hidden + m, 4.0, plates=OBS)).fit({"x": X}, **TIGHT)
    with pytest.raises(
        cv.ModelError, match=r"depends on 'm' both directly and through.*posterior\.predictive"
    ):
        posterior.predict({})


def expected(factor, function) -> float:
    """Return an expectation under a tabulated factor, by adaptive quadrature of its density."""
    low, high = (float(factor.quantile(p)) for p in (1e-13, 1 - 1e-13))
    return quad(
        lambda x: function(x) * float(np.exp(factor.log_density(x))), low, high, epsrel=1e-11, limit=500
    )[0]


def test_noise_of_a_new_row_with_unknown_degrees_of_freedom() -> None:
    nu = cv.Gamma("nu", 200.0, 10.0)
    u = cv.Gamma("u", nu / 2, nu / 2, plates=OBS)
    mu, tau = cv.Normal("mu", 0.0, 0.01), cv.Gamma("tau", 1.0, 1.0)
    y = RNG.standard_t(20, 100)
    posterior = cv.Model(cv.Normal("y", mu, u * tau, plates=OBS)).fit({"y": y}, uncertainty="mean_field")
    noise, widened = posterior["tau"], expected(posterior["nu"], lambda x: x / (x - 2.0))
    variance = widened * noise.rate / (noise.shape - 1.0) + 1.0 / posterior["mu"].precision
    found = posterior.predict({})["y"]
    np.testing.assert_allclose(found.mean, posterior["mu"].mean, rtol=1e-9)
    np.testing.assert_allclose(found.standard_deviation**2, variance, rtol=1e-7)


def test_counts_of_a_new_row_with_an_unknown_size() -> None:
    size, mean = cv.Gamma("size", 5.0, 1.0), cv.Gamma("mean", 1.0, 0.1)
    u = cv.Gamma("u", size, size, plates=OBS)
    hours = cv.Data("hours", plates=OBS)
    data = {"v": RNG.poisson(3.0 * RNG.gamma(2.0, 0.5, 80)), "hours": np.ones(80)}
    posterior = cv.Model(cv.Poisson("v", mean * u * hours, plates=OBS)).fit(data, uncertainty="mean_field")
    rate, e = posterior["mean"], np.array([1.0, 2.5])
    square = (rate.mean**2 + rate.variance) * (1.0 + expected(posterior["size"], lambda x: 1.0 / x))
    found = posterior.predict({"hours": e})["v"]
    np.testing.assert_allclose(found.mean, e * rate.mean, rtol=1e-9)
    variance = e * rate.mean + e**2 * (square - rate.mean**2)
    np.testing.assert_allclose(found.standard_deviation**2, variance, rtol=1e-7)


def test_an_infinite_variance_of_a_precision_of_unknown_rate_is_refused() -> None:
    u = cv.Gamma("u", 0.8, cv.Gamma("rate", 2.0, 2.0), plates=OBS)
    posterior = cv.Model(cv.Normal("y", 0.0, u, plates=OBS)).fit(
        {"y": RNG.standard_cauchy(30)}, uncertainty="mean_field"
    )
    with pytest.raises(cv.ModelError, match="no finite variance"):
        posterior.predict({})


def test_student_noise_of_two_degrees_of_freedom_or_fewer_is_predicted_with_an_infinite_deviation():
    """The inverse of a row's precision has no mean, but the prediction has quantiles: those of draws of Student-t."""
    rng = np.random.default_rng(0)
    obs, nu = cv.Plate("obs"), cv.Gamma("nu", 2, 0.1)
    scale = cv.Gamma("scale", nu / 2, nu / 2, plates=obs)
    tau = cv.Gamma("tau", 1, 1)
    model = cv.Model(cv.Normal("y", cv.Normal("mu", 0, 0.01), scale * tau, plates=obs))
    posterior = model.fit({"y": rng.standard_t(1.6, size=200)}, uncertainty="mean_field")
    told = posterior.predict({})["y"]
    assert np.isinf(told.sd).all()
    assert np.isfinite(told.mean).all()
    draws = posterior.sample(amount(20_000, 100_000), seed=1)
    y = draws["mu"] + rng.standard_t(draws["nu"]) / np.sqrt(draws["tau"])
    for level in (0.5, 0.9, 0.98):
        low, high = told.interval(level)
        assert np.mean((y > low) & (y < high)) == pytest.approx(level, abs=0.006)
