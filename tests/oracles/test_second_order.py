"""Means and standard deviations to second order, against quadrature and tilted fits."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import log_expit, log_ndtr

import caviar as cv
from caviar.engine.response import second_order
from caviar.engine.response.quantities import Response
from caviar.engine.response.second_order import Curved, Straight, Tilts
from oracles.tilted import Settled

OBS = cv.Plate("obs")


def test_nothing_is_corrected_where_the_posterior_is_normal():
    a, b = cv.Normal("a", 0, 1), cv.Normal("b", 0, 1)
    data = {"x": np.array([1.0, 1.5, 2.0])}
    model = cv.Model(cv.Normal("x", a + b, 4.0, plates=OBS))
    linear = model.fit(data, tol=1e-13, factors="apart", uncertainty="linear_response")
    second = model.fit(data, tol=1e-13, factors="apart", uncertainty="second_order")
    for name in ("a", "b"):
        assert second.mean(name) == pytest.approx(linear.mean(name), abs=1e-8)
        assert second.sd(name) == pytest.approx(linear.sd(name), rel=1e-6)


def moments(log_density, grid):
    """Return mean and standard deviation of a density on an even grid."""
    weights = np.exp(log_density - log_density.max())
    weights /= weights.sum()
    mean = weights @ grid
    return mean, np.sqrt(weights @ (grid - mean) ** 2)


def test_a_probit_regression_with_one_coefficient_against_quadrature():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(25, 1))
    y = (1.2 * X[:, 0] + rng.normal(size=25) > 0).astype(float)
    w = cv.MultivariateNormal("w", np.zeros(1), 0.25 * np.eye(1))
    model = cv.Model(cv.Bernoulli("y", cv.probit(cv.dot(cv.Data("X", plates=OBS), w)), plates=OBS))
    posterior = model.fit({"X": X, "y": y}, tol=1e-12, max_iter=5000, uncertainty="second_order")
    grid = np.linspace(-6, 10, 8001)
    signed = (2 * y - 1) * X[:, 0]
    mean, sd = moments(log_ndtr(np.outer(grid, signed)).sum(axis=1) - 0.125 * grid**2, grid)
    before = posterior["w"].mean[0]
    assert abs(before - mean) > 0.15 * sd
    assert abs(posterior.mean("w")[0] - mean) < 0.25 * abs(before - mean)
    assert posterior.sd("w")[0] == pytest.approx(sd, rel=0.03)


@pytest.mark.parametrize(("link", "log_probability"), [(cv.logistic, log_expit), (cv.probit, log_ndtr)])
def test_an_expected_link_against_quadrature(link, log_probability):
    """Of expected log densities the cubes are corrected, which the determinant counts three times."""
    rng = np.random.default_rng(2)
    X = np.stack([np.ones(14), rng.normal(size=14)], axis=1)
    y = (X @ [1.0, 2.0] + rng.logistic(size=14) > 0).astype(int)
    w = cv.MultivariateNormal("w", np.zeros(2), 0.1 * np.eye(2))
    at = cv.dot(cv.Data("X", plates=OBS), w)
    model = cv.Model(cv.Bernoulli("y", link(at, method="expectation"), plates=OBS))
    posterior = model.fit({"X": X, "y": y}, tol=1e-12, max_iter=5000, uncertainty="second_order")
    values = np.linspace(-12.0, 20.0, 321)
    grid = np.stack(np.meshgrid(values, values, indexing="ij"), axis=-1).reshape(-1, 2)
    log_density = log_probability((2 * y - 1) * (grid @ X.T)).sum(axis=1) - 0.05 * np.square(grid).sum(axis=1)
    exact = [moments(log_density, grid[:, place]) for place in (0, 1)]
    for told, before, (mean, sd) in zip(posterior.mean("w"), posterior["w"].mean, exact, strict=True):
        assert abs(told - mean) < 0.025 * sd
        assert abs(told - mean) < 0.7 * abs(before - mean)
    np.testing.assert_allclose(posterior.sd("w"), [sd for _, sd in exact], rtol=0.025)


def test_a_precision_between_groups_against_quadrature():
    rng = np.random.default_rng(2)
    y, noise = 1.3 * rng.normal(size=10), 1.0
    between = cv.Gamma("between", 3, 3)
    effect = cv.Normal("effect", 0, between, plates=cv.Plate("group", 10))
    at = effect[cv.Data("g", plates=OBS)]
    model = cv.Model(cv.Normal("y", at, noise, plates=OBS))
    data = {"g": np.arange(10), "y": y}
    posterior = model.fit(data, tol=1e-12, max_iter=5000, uncertainty="second_order")
    grid = np.linspace(1e-3, 8, 20_001)
    variance = 1.0 / grid + 1.0 / noise
    squares = np.square(y).sum()
    log_density = 2.0 * np.log(grid) - 3.0 * grid - 5.0 * np.log(variance) - 0.5 * squares / variance
    mean, sd = moments(log_density, grid)
    before = float(posterior["between"].mean)
    assert abs(before - mean) > 0.1 * sd
    assert abs(float(posterior.mean("between")) - mean) < 0.35 * abs(before - mean)
    assert float(posterior.sd("between")) == pytest.approx(sd, rel=0.03)


def groups(seed=1):
    rng = np.random.default_rng(seed)
    group = np.append(np.arange(4), rng.integers(0, 4, 20))
    effect = cv.Normal("effect", 0, cv.Gamma("between", 3, 3), plates=cv.Plate("group", 4))
    at = cv.Normal("mu", 0, 0.5) + effect[cv.Data("g", plates=OBS)]
    model = cv.Model(cv.Normal("y", at, cv.Gamma("tau", 3, 3), plates=OBS))
    return model, {"g": group, "y": rng.normal(size=24) + rng.normal(size=4)[group]}


def test_corrections_are_the_derivatives_along_tilted_fits():
    model, data = groups()
    settled = Settled(model.fit(data, factors="apart", tol=1e-10), data)
    (mu,) = (own for own in settled.problem.order if own.name == "mu")
    size = 0.5 / settled.response.variance("mu")[0] ** 0.5
    ends = []
    stated = settled.problem.updates[mu].fixed[0]
    for sign in (1.0, -1.0):
        settled.problem.updates[mu].fixed[0] = stated + sign * size
        moved = Response(settled.problem, settled._factors_from(settled.factors), settled.rows)
        ends.append(-0.5 * moved.log_determinant())
        settled.problem.updates[mu].fixed[0] = stated
    here = -0.5 * settled.response.log_determinant()
    shift, added = settled.response.second_order(["mu"])["mu"]
    assert shift[0] == pytest.approx((ends[0] - ends[1]) / (2 * size), rel=0.01)
    assert added[0] == pytest.approx((ends[0] - 2 * here + ends[1]) / size**2, rel=0.01)


def relevance():
    rng = np.random.default_rng(2)
    alpha = cv.Gamma("alpha", 2.0, 2.0, plates=cv.Plate("feature", 3))
    w = cv.MultivariateNormal("w", np.zeros(3), cv.diagonal(alpha))
    at = cv.dot(cv.Data("X", plates=OBS), w)
    model = cv.Model(cv.Normal("y", at, cv.Gamma("tau", 2, 2), plates=OBS))
    return model, {"X": rng.normal(size=(20, 3)), "y": rng.normal(size=20)}


@pytest.mark.parametrize("case", [groups, relevance])
def test_what_takes_no_contraction_is_what_passes_and_contractions_find(case, monkeypatch):
    """Updates that are linear in the expected statistics, with the largest factor eliminated, and the general way."""
    model, data = case()
    posterior = model.fit(data, tol=1e-13, uncertainty="mean_field")
    names, found = list(posterior), []
    for kind in (Straight, Curved):
        monkeypatch.setattr(second_order, "landscape_of", lambda *own, kind=kind: kind(*own[:2]))
        found.append(posterior.linear_response(data)._response.second_order(names))
    for name in names:
        np.testing.assert_allclose(found[0][name], found[1][name], rtol=1e-6, atol=1e-9)
        assert np.abs(found[0][name]).max() > 1e-4


def test_symmetric_entries_have_one_correction_whatever_the_size_of_tilts(monkeypatch):
    """Of precision matrices, whose statistics are not free of each other."""
    x = np.random.default_rng(4).normal(size=(60, 2)) + np.repeat([[-2.0], [2.0]], 30, axis=0)
    component = cv.Plate("component", 2)
    mean = cv.MultivariateNormal("mean", [[-2.0, 0.0], [2.0, 0.0]], np.eye(2), plates=component)
    precision = cv.Wishart("precision", 8.0, 8.0 * np.eye(2), plates=component)
    z = cv.Categorical("z", cv.Dirichlet("weights", np.full(2, 4.0)), plates=OBS)
    model = cv.Model(cv.MultivariateNormal("x", mean[z], precision[z], plates=OBS))
    posterior = model.fit({"x": x}, seed=0, tol=1e-10, uncertainty="mean_field")
    found = []
    for tilt in (0.5, 0.1):
        monkeypatch.setattr(second_order, "_TILT", tilt)
        response = posterior.linear_response({"x": x})._response
        found.append(
            np.array(response.second_order(["precision"])["precision"]) / response.variance("precision")
        )
    np.testing.assert_allclose(found[0], found[1], atol=0.03)
    np.testing.assert_allclose(found[0][:, [1, 5]], found[0][:, [2, 6]], rtol=1e-6)


@pytest.mark.parametrize("scale", [1e-9, 1e9])
def test_the_units_of_the_data_do_not_matter(scale):
    x = np.random.default_rng(5).normal(size=6)

    def fitted(unit):
        mu, tau = cv.Normal("mu", 0, 0.1 / unit**2), cv.Gamma("tau", 2, 2 * unit**2)
        model = cv.Model(cv.Normal("x", mu, tau, plates=OBS))
        return model.fit({"x": unit * x}, tol=1e-12, uncertainty="second_order")

    one, other = fitted(1.0), fitted(scale)
    assert one.sd("mu") > 1.05 * np.sqrt(one["mu"].variance)
    for name, unit in (("mu", scale), ("tau", scale**-2)):
        assert other.mean(name) / unit == pytest.approx(one.mean(name), rel=1e-5)
        assert other.sd(name) / unit == pytest.approx(one.sd(name), rel=1e-5)


def test_it_is_kept_in_files_and_says_so(tmp_path):
    rng = np.random.default_rng(0)
    data = {"x": rng.normal(size=12)}
    tau = cv.Gamma("tau", 2, 2)
    model = cv.Model(cv.Normal("x", cv.Normal("mean", 0, 0.1), tau, plates=OBS))
    posterior = model.fit(data, tol=1e-10, uncertainty="second_order")
    assert posterior.uncertainty == "second_order"
    assert "to second order" in str(posterior.summary())
    row = posterior.summary(level=0.9).rows[1]
    assert row.mean == pytest.approx(float(posterior.mean("tau")))
    shape = (row.mean / row.sd) ** 2
    assert (row.lower, row.upper) == pytest.approx(stats.gamma(shape, scale=row.mean / shape).interval(0.9))
    posterior.save(tmp_path / "fit.caviar")
    loaded = cv.load(tmp_path / "fit.caviar")
    assert str(loaded.summary()) == str(posterior.summary())
    with pytest.raises(cv.ModelError, match="fit with uncertainty='second_order'"):
        model.fit(data, uncertainty="linear_response").summary(uncertainty="second_order")


def test_points_and_many_numbers_keep_linear_response():
    rng = np.random.default_rng(0)
    data = {"x": rng.normal(size=12)}
    model = cv.Model(cv.Normal("x", cv.Normal("mean", 0, 0.1), cv.Gamma("tau", 2, 2), plates=OBS))
    with pytest.warns(cv.CaviarWarning, match="point masses"):
        posterior = model.fit(data, point=["mean", "tau"], uncertainty="second_order")
    assert posterior.uncertainty == "linear_response"
    wide = cv.models.linear_regression(25)
    data = {"X": rng.normal(size=(40, 25)), "y": rng.normal(size=40)}
    with pytest.warns(cv.CaviarWarning, match="at most 300 coordinates"):
        posterior = wide.fit(data, uncertainty="second_order")
    assert posterior.uncertainty == "linear_response"


def test_what_is_corrected_in_part_or_not_at_all_is_told(tmp_path, monkeypatch):
    """The series is cut at a move of a standard deviation; without tilted fixed points nothing is corrected."""
    few = cv.datasets.load_faithful().values[::40]
    with monkeypatch.context() as patch:
        patch.setattr(Tilts, "_corrections", lambda _, tilts, sds: np.stack([2.0 * sds, 0.0 * sds]))
        posterior = (
            cv.BayesianGaussianMixture(2, random_state=0, uncertainty="second_order").fit(few).posterior_
        )
    linear = cv.BayesianGaussianMixture(2, random_state=0, uncertainty="linear_response").fit(few).posterior_
    moved = posterior.mean("theta.mean")[0] - linear.mean("theta.mean")[0]
    assert moved == pytest.approx(posterior.sd("theta.mean")[0])
    assert "Those of theta" in posterior.interval_remark
    assert " in part or not at all, for the correction is too large." in posterior.interval_remark
    assert posterior.interval_remark in " ".join(str(posterior.summary()).split())
    posterior.save(tmp_path / "fit.caviar")
    assert cv.load(tmp_path / "fit.caviar").interval_remark == posterior.interval_remark

    data = {"x": np.random.default_rng(0).normal(size=12)}
    model = cv.Model(cv.Normal("x", cv.Normal("mean", 0, 0.1), cv.Gamma("tau", 2, 2), plates=OBS))
    assert "in part" not in model.fit(data, tol=1e-10, uncertainty="second_order").interval_remark
    monkeypatch.setattr(Tilts, "_corrections", lambda _, tilts, sds: np.full((2, len(sds)), np.nan))
    posterior = model.fit(data, tol=1e-10, uncertainty="second_order")
    assert "Those of mean, tau in part or not at all" in posterior.interval_remark
    linear = model.fit(data, tol=1e-10, uncertainty="linear_response")
    for name in ("mean", "tau"):
        assert posterior.mean(name) == pytest.approx(linear.mean(name))
        assert posterior.sd(name) == pytest.approx(linear.sd(name))


def test_estimators_show_it():
    X = cv.datasets.load_faithful().values[::8]
    arguments = {"random_state": 0, "tol": 1e-8}
    linear = cv.BayesianGaussianMixture(2, **arguments, uncertainty="linear_response").fit(X)
    second = cv.BayesianGaussianMixture(2, **arguments, uncertainty="second_order").fit(X)
    assert second.posterior_.uncertainty == "second_order"
    assert (np.abs(second.means_sd_ / linear.means_sd_ - 1.0) < 0.2).all()
    assert (second.means_sd_ != linear.means_sd_).all()
