"""What is handed to ArviZ: the groups, the names of their axes, and that its own functions work on them."""

import warnings

import numpy as np
import pytest
from scipy import stats

import caviar as cv

with warnings.catch_warnings():
    warnings.simplefilter("ignore", FutureWarning)
    az = pytest.importorskip("arviz")

from caviar.posterior.diagnostics.inference_data import dimensions_of

BEFORE_1 = "InferenceData" in vars(az)


def names(tree) -> set[str]:
    return set(tree.groups()) if BEFORE_1 else set(tree.children)


def exact_regression(n: int = 25):
    obs, rng = cv.Plate("obs"), np.random.default_rng(0)
    w = cv.MultivariateNormal("w", np.zeros(2), np.eye(2))
    model = cv.Model(cv.Normal("y", cv.dot(cv.Data("X", plates=obs), w), 2.0, plates=obs))
    x = rng.normal(size=(n, 2))
    return model, {"X": x, "y": x @ [1.0, -1.0] + rng.normal(0, 0.7, n)}


def mixture():
    obs, component = cv.Plate("obs"), cv.Plate("component", 2)
    x = cv.datasets.load_faithful().values
    theta = cv.NormalWishart("theta", x.mean(0), 0.1, 4.0, np.cov(x.T), plates=component)
    z = cv.Categorical("z", cv.Dirichlet("weights", [1.0, 1.0]), plates=obs)
    return cv.Model(cv.MultivariateNormal("x", theta[z], plates=obs)), {"x": x}


def test_groups_axes_and_labels():
    model, data = mixture()
    posterior = model.fit(data, seed=0)
    tree = posterior.to_arviz(data, n_draws=50, seed=1, coords={"component": ["short", "long"]})
    assert names(tree) == {
        "posterior",
        "posterior_predictive",
        "log_likelihood",
        "sample_stats",
        "observed_data",
    }
    draws, each = posterior.sample(50, 1), ("chain", "draw")
    group = tree["posterior"]
    assert group["theta.mean"].dims == (*each, "component", "theta.mean_dim_0")
    assert group["theta.precision"].dims == (
        *each,
        "component",
        "theta.precision_dim_0",
        "theta.precision_dim_1",
    )
    assert group["weights"].dims == (*each, "component")
    assert list(group["weights"]["component"].values) == ["short", "long"]
    np.testing.assert_array_equal(group["theta.mean"].values[0], draws["theta"].mean)
    np.testing.assert_array_equal(group["weights"].values[0], draws["weights"])
    assert tree["log_likelihood"]["x"].dims == (*each, "obs")
    assert tree["posterior_predictive"]["x"].dims == (*each, "obs", "x_dim_0")
    np.testing.assert_array_equal(tree["observed_data"]["x"].values, data["x"])
    assert tree.attrs["inference_library"] == "caviar"
    assert tree.attrs["elbo"] == posterior.elbo
    assert tree.attrs["left_out"] == ""
    stats_ = tree["sample_stats"]
    np.testing.assert_allclose(stats_["log_weight"], stats_["lp"] - stats_["log_q"])
    weights = posterior.diagnose(data, n_draws=100, seed=1).log_weights
    assert np.abs(stats_["log_weight"].mean() - weights.mean()) < 1


@pytest.mark.slow
def test_leave_one_out_is_exact_for_a_regression():
    model, data = exact_regression()
    tree = model.fit(data).to_arviz(data, n_draws=4000, seed=0)
    found = az.loo(tree, pointwise=True)
    exact = []
    for n in range(25):
        x, y = np.delete(data["X"], n, axis=0), np.delete(data["y"], n)
        precision = np.eye(2) + 2 * x.T @ x
        mean, variance = np.linalg.solve(precision, 2 * x.T @ y), 0.5
        row = data["X"][n]
        variance += row @ np.linalg.solve(precision, row)
        exact.append(stats.norm(row @ mean, np.sqrt(variance)).logpdf(data["y"][n]))
    pointwise = found.loo_i if BEFORE_1 else found.elpd_i
    np.testing.assert_allclose(np.asarray(pointwise), exact, atol=0.03)
    total = found.elpd_loo if BEFORE_1 else found.elpd
    assert float(total) == pytest.approx(sum(exact), abs=0.1)


@pytest.mark.slow
def test_its_functions_work(tmp_path):
    pytest.importorskip("matplotlib").use("Agg")
    model, data = exact_regression()
    posterior = model.fit(data)
    tree = posterior.to_arviz(data, n_draws=400, seed=0)
    assert tree["constant_data"]["X"].dims == ("obs", "X_dim_0")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its own, of plots and of a single chain
        table = az.summary(tree, var_names=["w"], round_to=6 if BEFORE_1 else "none")
        if BEFORE_1:
            az.plot_posterior(tree)
            az.plot_ppc(tree)
            az.plot_khat(az.loo(tree, pointwise=True))
            tree.to_netcdf(str(tmp_path / "tree.nc"))
        else:
            az.plot_dist(tree)
    error = 5 * np.sqrt(np.diag(posterior["w"].covariance) / 400)
    assert (np.abs(table["mean"].to_numpy(dtype=float) - posterior["w"].mean) < error).all()


@pytest.mark.slow
def test_replicated_data_are_drawn_from_the_predictive_distribution():
    model, data = exact_regression(5)
    posterior = model.fit(data)
    drawn = posterior.to_arviz(data, n_draws=4000, seed=0)["posterior_predictive"]["y"].values[0]
    x, covariance = data["X"], posterior["w"].covariance
    variance = 0.5 + np.einsum("ni,ij,nj->n", x, covariance, x)
    error = np.sqrt(variance / 4000)
    assert (np.abs(drawn.mean(axis=0) - x @ posterior["w"].mean) < 5 * error).all()
    np.testing.assert_allclose(drawn.var(axis=0), variance, rtol=0.15)


def test_without_data_there_are_draws_only():
    model, data = exact_regression()
    tree = model.fit(data).to_arviz(n_draws=10)
    assert names(tree) == {"posterior", "sample_stats"}
    assert list(tree["sample_stats"]) == ["log_q"]


def test_several_observed_variables_have_rows_in_common():
    obs, rng = cv.Plate("obs"), np.random.default_rng(0)
    z = cv.Categorical("z", cv.Dirichlet("weights", [1.0, 1.0]), plates=obs)
    component = cv.Plate("component", 2)
    x = cv.Normal("x", cv.Normal("mean", 0, 0.1, plates=component)[z], 1.0, plates=obs)
    y = cv.Poisson("y", cv.Gamma("rate", 1, 1, plates=component)[z], plates=obs)
    data = {"x": np.ma.masked_invalid([np.nan, *rng.normal(size=9)]), "y": rng.poisson(2, 10)}
    tree = cv.Model(x, y).fit(data, seed=0).to_arviz(data, n_draws=10, seed=0)
    assert tree["log_likelihood"]["rows"].dims == ("chain", "draw", "obs")
    assert np.isnan(tree["observed_data"]["x"].values[0])
    assert tree["posterior_predictive"]["y"].dims == ("chain", "draw", "obs")


def test_what_has_no_closed_form_is_left_out_and_said():
    time, state = cv.Plate("time"), cv.Plate("state", 2)
    transition = cv.Dirichlet("transition", np.ones(2), plates=state)
    s = cv.MarkovChain("s", [0.5, 0.5], transition, along=time)
    model = cv.Model(cv.Normal("x", cv.Normal("mean", 0, 1, plates=state)[s], 1.0, plates=time))
    data = {"x": np.random.default_rng(0).normal(size=20)}
    tree = model.fit(data, seed=0).to_arviz(data, n_draws=10)
    assert "log_likelihood" not in names(tree)
    assert "lp" in tree["sample_stats"]
    assert "neighbours" in tree.attrs["left_out"]
    # two axes of an array cannot have one name
    assert tree["posterior"]["transition"].dims == ("chain", "draw", "state", "transition_dim_0")


def test_point_masses_are_draws_that_do_not_change():
    model, data = mixture()
    posterior = model.fit(data, seed=0, point=["weights"])
    tree = posterior.to_arviz(data, n_draws=10)
    assert (tree["posterior"]["weights"].values == posterior["weights"].value).all()


def test_the_axes_of_predictors_and_weights():
    obs, group, kind = cv.Plate("obs"), cv.Plate("group", 3), cv.Plate("kind", 4)
    weights = cv.Dirichlet("weights", np.ones(4), plates=group)
    mean = cv.Normal("mean", 0, 1, plates=kind)
    z = cv.Categorical("z", weights[cv.Data("g", plates=obs)], plates=obs)
    found = dimensions_of(cv.Model(cv.Normal("x", mean[z], 1.0, plates=obs)).nodes)
    assert found["weights"] == ("group", "kind")
    assert found["mean"] == ("kind",)
    assert found["g"] == found["x"] == ("obs",)


def test_unknown_axes_are_refused():
    model, data = exact_regression()
    with pytest.raises(cv.ParameterError, match=r"coords names the axis 'row'; the axes are .*w_dim_0"):
        model.fit(data).to_arviz(n_draws=10, coords={"row": [1]})
    with pytest.raises(cv.ParameterError, match="n_draws must be"):
        model.fit(data).to_arviz(n_draws=0)


def test_an_absent_arviz_is_named(monkeypatch):
    model, data = exact_regression()
    for name in ("arviz", "arviz_base", "arviz_stats", "arviz_stats.base"):
        monkeypatch.setitem(__import__("sys").modules, name, None)
    posterior = model.fit(data)
    with pytest.raises(ImportError, match=r'python -m pip install "arviz>=0\.20"'):
        posterior.to_arviz(n_draws=10)
