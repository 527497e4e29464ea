"""Sums of vectors in the mean of a MultivariateNormal: regressions with common noise, group effects, autoregression."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import caviar as cv

OBS = cv.Plate("obs")
RNG = np.random.default_rng(0)
N, D = 50, 2
NOISE = np.array([[2.0, 0.5], [0.5, 1.0]])
x = RNG.normal(size=N)
Y = RNG.multivariate_normal(np.zeros(D), np.linalg.inv(NOISE), size=N) + [1.0, 2.0] + x[:, None] * [0.5, -1.0]


def column(name="x"):
    return cv.Data(name, plates=OBS)


def vector(name, mean=0.0, precision=1.0, **more):
    return cv.MultivariateNormal(name, np.full(D, mean), precision * np.eye(D), **more)


def regression():
    level, slope = vector("level", 0.0, 0.1), vector("slope", 1.0, 0.5)
    return cv.Model(cv.MultivariateNormal("y", level + slope * column(), NOISE, plates=OBS))


def test_means_are_exact_and_the_bound_misses_what_two_factors_miss():
    posterior = regression().fit({"y": Y, "x": x}, tol=1e-14, factors="apart")
    design = np.kron(np.stack([np.ones(N), x], 1), np.eye(D))
    noise, prior, start = np.kron(np.eye(N), NOISE), np.diag([0.1, 0.1, 0.5, 0.5]), np.array([0, 0, 1.0, 1.0])
    precision = prior + design.T @ noise @ design
    mean = np.linalg.solve(precision, prior @ start + design.T @ noise @ Y.ravel())
    found = np.concatenate([posterior["level"].mean, posterior["slope"].mean])
    np.testing.assert_allclose(found, mean, rtol=1e-6)
    covariance = design @ np.linalg.inv(prior) @ design.T + np.linalg.inv(noise)
    evidence = multivariate_normal(design @ start, covariance).logpdf(Y.ravel())
    logs = [np.linalg.slogdet(own)[1] for own in (precision[:2, :2], precision[2:, 2:], precision)]
    assert posterior.elbo == pytest.approx(evidence - 0.5 * (logs[0] + logs[1] - logs[2]), abs=1e-9)


@pytest.mark.slow
def test_predictions_are_those_of_draws():
    posterior = regression().fit({"y": Y, "x": x}, factors="apart")
    predicted = posterior.predict({"x": x[:2]})["y"]
    own = posterior["level"].mean + x[:2, None] * posterior["slope"].mean
    np.testing.assert_allclose(predicted.mean, own, rtol=1e-12)
    spread = [np.diag(posterior[name].covariance) for name in ("level", "slope")]
    variance = spread[0] + x[:2, None] ** 2 * spread[1] + np.diag(np.linalg.inv(NOISE))
    np.testing.assert_allclose(predicted.standard_deviation**2, variance, rtol=1e-12)
    draws = posterior.predictive(data={"x": x[:2]}, n_draws=4_000, seed=0)["y"]
    np.testing.assert_allclose(draws.mean(0), predicted.mean, atol=0.12)


def test_effects_of_groups_with_learnt_matrices_keep_their_digits():
    ends = []
    for offset in (0.0, 1e3, 1e6):
        effect = cv.MultivariateNormal(
            "effect", np.zeros(D), cv.Wishart("T", 3.0, np.eye(D)), plates=cv.Plate("group", 8)
        )
        level, slope = vector("level", offset, 0.01), vector("slope", 1.0, 0.5)
        mean = level + effect[column("group")] + column() * slope
        model = cv.Model(cv.MultivariateNormal("y", mean, cv.Wishart("W", 3.0, np.eye(D)), plates=OBS))
        data = {"y": Y + offset, "x": x, "group": np.arange(N) % 8}
        ends.append(model.fit(data, tol=1e-10).elbo)
    np.testing.assert_allclose(ends, ends[0], atol=1e-6)


def test_vector_autoregression_finds_its_matrix():
    matrix, rng = np.array([[0.5, 0.2], [-0.3, 0.6]]), np.random.default_rng(1)
    path = [np.zeros(D)]
    for _ in range(1_500):
        path.append(matrix @ path[-1] + 0.5 * rng.normal(size=D))
    path = np.array(path)
    columns = [vector(f"column{k}") for k in range(D)]
    mean = vector("level") + columns[0] * column("first") + columns[1] * column("second")
    model = cv.Model(cv.MultivariateNormal("y", mean, cv.Wishart("W", 3.0, np.eye(D)), plates=OBS))
    posterior = model.fit({"y": path[1:], "first": path[:-1, 0], "second": path[:-1, 1]})
    design = np.column_stack([np.ones(len(path) - 1), path[:-1]])
    least_squares = np.linalg.lstsq(design, path[1:], rcond=None)[0][1:].T
    found = np.stack([posterior[f"column{k}"].mean for k in range(D)], 1)
    np.testing.assert_allclose(found, least_squares, atol=5e-3)
    np.testing.assert_allclose(found, matrix, atol=0.08)


def test_mixtures_of_vector_regressions_start_apart():
    rng = np.random.default_rng(2)
    labels, own = rng.integers(2, size=200), rng.normal(size=200)
    y = np.where(labels, 1, -1)[:, None] * own[:, None] * [2.0, 1.0] + 0.4 * rng.normal(size=(200, D))
    kind = cv.Plate("kind", 2)
    z = cv.Categorical("z", cv.Dirichlet("weights", np.ones(2)), plates=OBS)
    level, slope = vector("level", 0.0, 0.01, plates=kind), vector("slope", 0.0, 0.01, plates=kind)
    mean = level[z] + slope[z] * column()
    model = cv.Model(cv.MultivariateNormal("y", mean, cv.Wishart("W", 3.0, np.eye(D)), plates=OBS))
    ends = [model.fit({"y": y, "x": own}, seed=seed) for seed in range(3)]
    slopes = ends[0]["slope"].mean
    np.testing.assert_allclose(slopes[np.argsort(slopes[:, 0])], [[-2.0, -1.0], [2.0, 1.0]], atol=0.15)
    np.testing.assert_allclose([end.elbo for end in ends], ends[0].elbo, atol=1e-3)


def test_rows_that_are_missing_count_nothing():
    gone = Y.copy()
    gone[5] = np.nan
    kept = np.arange(N) != 5
    elbo = regression().fit({"y": Y[kept], "x": x[kept]}, tol=1e-12).elbo
    assert regression().fit({"y": gone, "x": x}, tol=1e-12).elbo == pytest.approx(elbo, rel=1e-12)
    gone[5, 0] = 1.0
    with pytest.raises(cv.DataError, match="missing value"):
        regression().fit({"y": gone, "x": x})


def test_saved_simulated_and_offsets(tmp_path):
    posterior = regression().fit({"y": Y, "x": x})
    posterior.save(tmp_path / "regression.caviar")
    assert cv.load(tmp_path / "regression.caviar").elbo == posterior.elbo
    level = vector("level", 0.0, 0.1)
    offset = cv.Model(cv.MultivariateNormal("y", level + column("offset"), NOISE, plates=OBS))
    plain = cv.Model(cv.MultivariateNormal("y", level, NOISE, plates=OBS))
    shift = np.random.default_rng(3).normal(size=(N, D))
    found = offset.fit({"y": Y + shift, "offset": shift})
    assert found.elbo == pytest.approx(plain.fit({"y": Y}).elbo, abs=1e-9)
    drawn = offset.simulate(0, data={"offset": 1e6 * shift}, given={"level": [0.0, 0.0]})["y"]
    np.testing.assert_allclose(drawn, 1e6 * shift, atol=10)


@pytest.mark.parametrize(
    ("mean", "words"),
    [
        (lambda a, b: cv.Normal("u", 0, 1) * 2, "has 0"),
        (lambda a, b: a * b, "has 2"),
        (lambda a, b: a + 1.0, "1 has 0"),
        (lambda a, b: a + cv.MultivariateNormal("c", np.zeros(3), np.eye(3)), "length 3"),
    ],
)
def test_each_product_has_one_vector(mean, words):
    with pytest.raises(cv.CaviarError, match=words):
        cv.MultivariateNormal("y", mean(vector("a"), vector("b")), NOISE, plates=OBS)
