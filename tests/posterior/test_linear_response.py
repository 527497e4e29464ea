"""What ``posterior.linear_response`` gives and refuses, wherever the rows are."""

from dataclasses import replace

import numpy as np
import pytest
from invariants.registry import CASES
from scipy import stats
from scipy.sparse import csr_array

import caviar as cv
from caviar.engine.binding import coordinates
from caviar.engine.response.quantities import Response
from caviar.execution.threads import Threads
from caviar.posterior.posterior import Posterior

OBS = cv.Plate("obs")


@pytest.fixture(scope="module")
def mixture():
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(0, 1, (60, 2)), rng.normal(3, 1, (40, 2))])
    posterior = cv.models.gaussian_mixture(2, 2).fit({"x": x}, seed=0)
    return posterior, {"x": x}


def _everything(posterior, data, **arguments):
    response = posterior.linear_response(data, **arguments)
    parts = [part.name for part in _parts(posterior)]
    return np.concatenate([np.ravel(response.covariance(a, b)) for a in parts for b in parts])


def _parts(posterior):
    class Part:
        def __init__(self, name):
            self.name = name

    for name in posterior:
        for own in posterior[name].entry_marginals((0.1, 0.9)):
            yield Part(name + own.part)


def test_shapes_and_symmetry(mixture):
    posterior, data = mixture
    response = posterior.linear_response(data)
    assert response.sd("mean").shape == (2, 2)
    assert response.covariance("mean").shape == (2, 2, 2, 2)
    assert response.covariance("mean", "weights").shape == (2, 2, 2)
    assert response.interval("precision", 0.9).shape == (2, 2, 2, 2)
    np.testing.assert_allclose(
        response.covariance("mean", "weights"), np.moveaxis(response.covariance("weights", "mean"), 0, -1)
    )
    variances = np.diagonal(response.covariance("mean").reshape(4, 4)).reshape(2, 2)
    np.testing.assert_allclose(response.sd("mean"), np.sqrt(variances), rtol=1e-12)
    # two weights sum to one
    np.testing.assert_allclose(response.covariance("weights").sum(axis=0), 0.0, atol=1e-15)
    np.testing.assert_allclose(response.covariance("mean", "weights").sum(axis=-1), 0.0, atol=1e-15)


@pytest.mark.parametrize("shared", ["apart", None, [("mu", "w", "a")]])
def test_predictions_are_exact_for_a_gaussian_posterior(shared):
    """Of coefficients and groups that depend on each other; covariances of a shared factor count once."""
    rng = np.random.default_rng(3)
    n, levels = 40, 5
    X, g = rng.normal(size=(n, 2)), rng.integers(0, levels, n)
    w = cv.MultivariateNormal("w", np.zeros(2), np.eye(2))
    a = cv.Normal("a", 0, 1.0, plates=cv.Plate("level", levels))
    at = cv.Normal("mu", 0, 0.5) + cv.dot(cv.Data("X", plates=OBS), w) - 2.0 * a[cv.Data("g", plates=OBS)]
    y = rng.normal(size=n)
    data = {"X": X, "g": g, "y": y}
    model = cv.Model(cv.Normal("y", at, 4.0, plates=OBS))
    posterior = model.fit(data, tol=1e-14, max_iter=20_000, factors=shared)
    new = {"X": rng.normal(size=(6, 2)), "g": np.arange(6) % levels}
    found = posterior.linear_response(data).predict(new)["y"]

    def design(X, g):
        return np.column_stack([np.ones(len(g)), X, -2.0 * np.eye(levels)[g]])

    prior = np.diag([0.5, 1, 1, *np.ones(levels)])
    covariance = np.linalg.inv(prior + 4.0 * design(X, g).T @ design(X, g))
    rows = design(**new)
    mean = rows @ covariance @ (4.0 * design(X, g).T @ y)
    sd = np.sqrt(np.einsum("ni,ij,nj->n", rows, covariance, rows) + 0.25)
    np.testing.assert_allclose(found.mean, mean, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(found.sd, sd, rtol=1e-7)
    ends = stats.norm(found.mean, sd).interval(0.8)
    np.testing.assert_allclose(found.interval(0.8), ends, rtol=1e-6)
    # mean field is off where the parts of a sum depend on each other
    assert (np.abs(posterior.predict(new)["y"].sd / sd - 1.0).max() > 0.02) == (shared == "apart")


def test_intervals_of_mixtures_hold_what_they_say(mixture):
    """By the distribution function of a mixture of Normals with the moments of the parts."""
    x = mixture[1]["x"][:, 0]
    component = cv.Plate("component", 2)
    z = cv.Categorical("z", cv.Dirichlet("weights", np.ones(2)), plates=OBS)
    mean = cv.Normal("mean", 0, 0.1, plates=component)
    model = cv.Model(cv.Normal("x", mean[z], cv.Gamma("tau", 2, 2, plates=component)[z], plates=OBS))
    posterior = model.fit({"x": x}, seed=0)
    found = posterior.linear_response({"x": x}).predict({})["x"]
    for end, share in zip(found.interval(0.8)[:, 0], (0.1, 0.9), strict=True):
        below = sum(float(w[0] * stats.norm(m[0], sd[0]).cdf(end)) for w, m, sd in found.parts)
        assert below == pytest.approx(share, abs=1e-10)


def test_log_densities_of_new_rows(mixture):
    """Of a mixture, which mean field has no closed form for; of answers; of a Gaussian posterior, the exact one."""
    x = mixture[1]["x"][:, 0]
    component = cv.Plate("component", 2)
    z = cv.Categorical("z", cv.Dirichlet("weights", np.ones(2)), plates=OBS)
    mean = cv.Normal("mean", 0, 0.1, plates=component)
    model = cv.Model(cv.Normal("x", mean[z], cv.Gamma("tau", 2, 2, plates=component)[z], plates=OBS))
    posterior = model.fit({"x": x}, seed=0)
    with pytest.raises(cv.ModelError):
        posterior.log_predictive({"x": x})
    grid = np.linspace(-15, 20, 4001)
    density = np.exp(posterior.linear_response({"x": x}).log_predictive({"x": grid}))
    assert np.trapezoid(density, grid) == pytest.approx(1.0, abs=1e-6)
    told = posterior.linear_response({"x": x}).predict({})["x"]
    assert np.trapezoid(density * grid, grid) == pytest.approx(told.mean[0], rel=1e-5)
    assert np.trapezoid(density * (grid - told.mean[0]) ** 2, grid) == pytest.approx(
        told.sd[0] ** 2, rel=1e-4
    )

    data = {"x": [1, 1, 0, 1]}
    coin = cv.Model(cv.Bernoulli("x", cv.Beta("p", 1, 1), plates=OBS)).fit(data).linear_response(data)
    np.testing.assert_allclose(
        coin.log_predictive({"x": [1, 0, np.nan]}), [np.log(4 / 6), np.log(2 / 6), 0.0]
    )
    with pytest.raises(cv.DataError, match="lack 'x'"):
        coin.log_predictive({})
    counts = {"x": [3, 1]}
    poisson = cv.Model(cv.Poisson("x", cv.Gamma("rate", 2, 1), plates=OBS)).fit(counts)
    with pytest.raises(cv.ModelError, match="single observed variable"):
        poisson.linear_response(counts).log_predictive(counts)


def test_the_answers_of_a_logistic_regression_are_less_certain():
    """Against an integral over the Normal of linear response."""
    rng = np.random.default_rng(0)
    X = np.column_stack([np.ones(30), rng.normal(size=30)])
    data = {"X": X, "y": (rng.random(30) < 0.4).astype(float)}
    w = cv.MultivariateNormal("w", np.zeros(2), 0.1 * np.eye(2))
    y = cv.Bernoulli("y", cv.logistic(cv.dot(cv.Data("X", plates=OBS), w)), plates=OBS)
    posterior = cv.Model(y).fit(data, tol=1e-12, max_iter=5000)
    response = posterior.linear_response(data)
    new = np.array([[1.0, 2.0], [1.0, -3.0]])
    spread = np.sqrt(np.einsum("ni,ij,nj->n", new, response.covariance("w"), new))
    at, own = np.polynomial.hermite_e.hermegauss(80)
    logits = (new @ posterior["w"].mean)[:, None] + spread[:, None] * at
    expected = (1 / (1 + np.exp(-logits))) @ own / own.sum()
    found = response.predict({"X": new})["y"].mean
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert (np.abs(found - 0.5) < np.abs(posterior.predict({"X": new})["y"].mean - 0.5)).all()


def _between_and_noise(changes, **arguments):
    """Return the fit of groups about a level, with other numbers in its priors."""
    stated = {"mean": 0.0, "precision": 0.5, "a": 3.0, "b": 2.0, "shape": 2.0, "rate": 1.0} | changes
    site = cv.Plate("site", 6)
    level = cv.Normal("level", stated["mean"], stated["precision"])
    between = cv.Gamma("between", stated["a"], stated["b"])
    effect = cv.Normal("effect", 0, between, plates=site)
    at = level + effect[cv.Data("g", plates=OBS)]
    noise = cv.Gamma("noise", stated["shape"], stated["rate"])
    rng = np.random.default_rng(1)
    g = rng.integers(0, 6, 50)
    data = {"g": g, "y": 1.0 + rng.normal(size=6)[g] + rng.normal(size=50)}
    model = cv.Model(cv.Normal("y", at, noise, plates=OBS))
    return model.fit(data, tol=1e-14, max_iter=20_000), data


def test_sensitivities_of_the_bound_are_differences_of_refits():
    posterior, data = _between_and_noise({})
    found = posterior.linear_response(data).elbo_sensitivity()
    names = {
        "mean": "level.mean",
        "precision": "level.precision",
        "a": "between.shape",
        "b": "between.rate",
        "shape": "noise.shape",
        "rate": "noise.rate",
    }
    assert set(names.values()) == set(found) - {"effect.mean"}
    for name, prior in names.items():
        base = {"mean": 0.0, "precision": 0.5, "a": 3.0, "b": 2.0, "shape": 2.0, "rate": 1.0}[name]
        above, below = (_between_and_noise({name: base + h})[0].elbo for h in (1e-3, -1e-3))
        assert float(found[prior]) == pytest.approx((above - below) / 2e-3, rel=1e-5, abs=1e-6)


def test_the_table_says_how_far_refits_move():
    """By a refit with one number of a prior a tenth larger and a tenth smaller, in standard deviations."""
    posterior, data = _between_and_noise({})
    response = posterior.linear_response(data)
    table = response.sensitivity_table()
    moved, back = (_between_and_noise({"b": b})[0] for b in (2.2, 1.8))
    row = next(row for row in table.rows if row.prior == "between.rate")
    shift = 0.5 * (moved["between"].mean - back["between"].mean) / response.sd("between")
    assert row.shifts["between"] == pytest.approx(float(shift), rel=0.02)
    assert row.elbo == pytest.approx(0.5 * (moved.elbo - back.elbo), rel=0.02)
    assert [own.largest for own in table.rows] == sorted((own.largest for own in table.rows), reverse=True)
    assert str(table).splitlines()[0].startswith("prior")
    assert "<table>" in table._repr_html_()
    assert response.sensitivity_table("noise").names == ("noise",)


def test_uncertainty_is_more_than_that_of_mean_field(mixture):
    posterior, data = mixture
    response = posterior.linear_response(data)
    assert 0 < response.smallest_eigenvalue < 1
    assert (response.sd("weights") > np.sqrt(posterior["weights"].variance)).all()
    own = np.sqrt(np.diagonal(posterior["mean"].covariance, axis1=-2, axis2=-1))
    assert (response.sd("mean") > own).all()


def test_the_summary_has_its_standard_deviations_and_says_so(mixture):
    posterior, data = mixture
    response = posterior.linear_response(data)
    summary = response.summary(level=0.9)
    sds = [row.sd for row in summary.rows if row.variable == "mean"]
    np.testing.assert_allclose(sds, response.sd("mean").ravel())
    lower = [row.lower for row in summary.rows if row.variable == "weights"]
    np.testing.assert_allclose(lower, response.interval("weights", 0.9)[0])
    assert "linear response" in str(summary)
    narrow = posterior.summary(uncertainty="mean_field")
    assert [row.mean for row in summary.rows] == [row.mean for row in narrow.rows]


def test_intervals_stay_inside_the_support(mixture):
    posterior, data = mixture
    response = posterior.linear_response(data)
    weights, precision = response.interval("weights", 0.999), response.interval("precision", 0.999)
    assert ((weights > 0) & (weights < 1)).all()
    assert (np.diagonal(precision[0], axis1=-2, axis2=-1) > 0).all()


def test_parts_of_a_joint_factor_have_names_of_their_own():
    rng = np.random.default_rng(0)
    data = {"x": np.concatenate([rng.normal(0, 1, (60, 2)), rng.normal(3, 1, (40, 2))])}
    posterior = cv.models.normal_wishart_mixture(2, 2).fit(data, seed=0)
    response = posterior.linear_response(data)
    assert response.sd("theta.mean").shape == (2, 2)
    assert response.sd("theta.precision").shape == (2, 2, 2)
    assert response.covariance("theta.precision", "weights").shape == (2, 2, 2, 2)
    with pytest.raises(cv.ModelError, match=r"'theta.mean', 'theta.precision', 'weights'; got 'theta'"):
        response.sd("theta")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["independent", "measured-apart"])
def test_the_number_of_threads_changes_no_bit(name):
    case = CASES[name]
    data = case.draw(np.random.default_rng(0), 9_000)
    posterior = case.fit(data, max_iter=50)
    problem, rows = posterior._evaluator.bind(data)
    factors = {name: posterior[name] for name in posterior}
    found = [Response(problem, factors, replace(rows, executor=Threads(number))) for number in (1, 3)]
    one, other = found
    for name in factors:
        np.testing.assert_array_equal(one.variance(name), other.variance(name))


def test_rows_of_a_file_give_the_bits_of_arrays(tmp_path):
    pytest.importorskip("pyarrow")
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(-2, 1, 3_000), rng.normal(2, 1, 2_000)])
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"x": x}), path)
    component = cv.Plate("component", 2)
    mean = cv.Normal("mean", 0, 0.1, plates=component)
    z = cv.Categorical("z", cv.Dirichlet("weights", [1.0, 1.0]), plates=OBS)
    posterior = cv.Model(cv.Normal("x", mean[z], 1.0, plates=OBS)).fit({"x": x}, seed=0)
    of_file = posterior.linear_response({"x": cv.scan(path)["x"]})
    np.testing.assert_array_equal(of_file.sd("mean"), posterior.linear_response({"x": x}).sd("mean"))


def test_a_weight_of_two_is_the_row_twice():
    case = CASES["independent"]
    data = case.draw(np.random.default_rng(0), 50)
    weights = np.where(np.arange(50) < 20, 2.0, 1.0)
    posterior = case.fit(data, tol=1e-12, max_iter=3000, sample_weight=weights)
    twice = {"x": np.concatenate([data["x"], data["x"][:20]])}
    one = _everything(posterior, data, sample_weight=weights)
    np.testing.assert_allclose(one, _everything(posterior, twice), rtol=1e-9, atol=1e-13)


def test_a_saved_posterior_answers_the_same(mixture, tmp_path):
    posterior, data = mixture
    posterior.save(tmp_path / "fit.caviar")
    again = cv.load(tmp_path / "fit.caviar")
    np.testing.assert_allclose(
        again.linear_response(data).sd("mean"), posterior.linear_response(data).sd("mean"), rtol=1e-12
    )


def test_repetitions_with_nothing_below_them_are_drawn_given_the_others():
    """A group without rows: exact for a Gaussian posterior, known variances."""
    group, g = cv.Plate("group", 3), np.array([0, 0, 1, 1, 1])
    mean = cv.Normal("mean", 0, 0.5)
    level = cv.Normal("level", mean, 2.0, plates=group)
    data = {"g": g, "y": np.array([1.0, 2.0, -1.0, 0.0, 0.5])}
    posterior = cv.Model(cv.Normal("y", level[cv.Data("g", plates=OBS)], 3.0, plates=OBS)).fit(
        data, tol=1e-13, max_iter=5000
    )
    response = posterior.linear_response(data)
    precision = np.zeros((4, 4))
    precision[0, 0] = 0.5 + 3 * 2.0
    precision[0, 1:] = precision[1:, 0] = -2.0
    precision[range(1, 4), range(1, 4)] = 2.0 + 3.0 * np.bincount(g, minlength=3)
    exact = np.linalg.inv(precision)
    np.testing.assert_allclose(response.covariance("level"), exact[1:, 1:], rtol=1e-9)
    np.testing.assert_allclose(response.covariance("mean", "level"), exact[0, 1:], rtol=1e-9)


def test_known_repetitions_do_not_vary():
    group = cv.Plate("group", 3)
    level = cv.Normal("level", cv.Normal("mean", 0, 0.5), 2.0, plates=group)
    g = np.array([0, 0, 1, 1, 2])
    data = {"g": g, "y": np.array([1.0, 2.0, -1.0, 0.0, 0.5]), "level": [np.nan, 0.3, np.nan]}
    posterior = cv.Model(cv.Normal("y", level[cv.Data("g", plates=OBS)], 3.0, plates=OBS)).fit(
        data, tol=1e-13, max_iter=5000
    )
    response = posterior.linear_response(data)
    precision = np.array([[0.5 + 6.0, -2.0, -2.0], [-2.0, 2.0 + 6.0, 0.0], [-2.0, 0.0, 2.0 + 3.0]])
    exact = np.linalg.inv(precision)
    np.testing.assert_allclose(response.covariance("level")[np.ix_([0, 2], [0, 2])], exact[1:, 1:], rtol=1e-9)
    assert response.sd("level")[1] == 0


def test_functions_of_variables_follow_by_the_delta_method(mixture):
    posterior, data = mixture
    response = posterior.linear_response(data)
    difference = response.transformed(lambda mean: mean[1] - mean[0], "mean")
    whole = response.covariance("mean")
    wanted = whole[0, :, 0] + whole[1, :, 1] - whole[0, :, 1] - whole[1, :, 0]
    np.testing.assert_allclose(difference.mean, posterior["mean"].mean[1] - posterior["mean"].mean[0])
    np.testing.assert_allclose(difference.covariance, wanted, rtol=1e-9)
    np.testing.assert_allclose(difference.sd, np.sqrt(wanted.diagonal()), rtol=1e-9)
    half = 1.6448536269514722 * difference.sd
    np.testing.assert_allclose(difference.interval(0.9), [difference.mean - half, difference.mean + half])
    # of two variables: a weight times a mean
    product = response.transformed(lambda mean, weights: mean[0, 0] * weights[0], "mean", "weights")
    m, w = posterior["mean"].mean[0, 0], posterior["weights"].mean[0]
    across = response.covariance("mean", "weights")[0, 0, 0]
    own = w**2 * whole[0, 0, 0, 0] + m**2 * response.sd("weights")[0] ** 2 + 2 * m * w * across
    np.testing.assert_allclose(product.covariance, own, rtol=1e-9)
    with pytest.raises(cv.ParameterError, match="names of the variables"):
        response.transformed(lambda: 0.0)


def test_a_factor_alone_keeps_its_own_interval_of_a_location():
    """Student-t, of few rows: a Normal of the same standard deviation would be another one."""
    data = {"x": [0.4, 1.3, -0.2, 2.0]}
    posterior = cv.models.normal_gamma().fit(data)
    (name,) = posterior.keys()
    own = posterior[name].entry_marginals((0.05, 0.95))[0]
    found = posterior.linear_response(data).interval(f"{name}.mean", 0.9)
    np.testing.assert_allclose(found, [own.lower, own.upper], rtol=1e-9)


def test_a_saddle_point_has_no_covariance():
    rng = np.random.default_rng(0)
    data = {"x": np.concatenate([rng.normal(-4, 1, 40), rng.normal(4, 1, 40)])}
    component = cv.Plate("component", 2)
    mean = cv.Normal("mean", 0, 0.1, plates=component)
    model = cv.Model(cv.Normal("x", mean[cv.Categorical("z", [0.5, 0.5], plates=OBS)], 1.0, plates=OBS))
    posterior = model.fit(data, seed=0)
    middle = cv.families.Normal(np.full(2, data["x"].mean()), np.full(2, 40.1))
    posterior = Posterior._of_parts(
        **{**vars(posterior), "_factors": {"mean": middle}, "elbo": posterior.elbo_at({"mean": middle}, data)}
    )
    response = posterior.linear_response(data)
    assert response.smallest_eigenvalue < -1
    with pytest.raises(cv.ModelError, match="saddle point: along 'mean' the ELBO rises"):
        response.sd("mean")
    found = posterior.diagnose(data, n_draws=100, seed=0)
    assert found.smallest_eigenvalue == response.smallest_eigenvalue
    assert "the ELBO rises along 'mean'" in repr(found)
    assert posterior.evidence(data).method == "elbo"


def test_the_direction_of_a_saddle_is_that_of_its_variables():
    """A product of two unknown numbers at 0: the ELBO rises along both, and not along a third one."""
    rng = np.random.default_rng(1)
    y = 2.0 + 0.5 * rng.normal(size=30)
    a, b, c = (cv.Normal(name, 0, 1.0) for name in "abc")
    data = {"y": y, "w": rng.normal(size=30)}
    y_of = cv.Normal("y", a * b, 4.0, plates=OBS)
    w_of = cv.Normal("w", c, 4.0, plates=OBS)
    model = cv.Model(y_of, w_of)
    posterior = model.fit(data, tol=1e-10)
    assert posterior.linear_response(data).smallest_eigenvalue > 0
    assert posterior.diagnose(data, n_draws=100, seed=0).smallest_eigenvalue > 0
    apart = cv.families.Normal(0.0, 1.0 + 120.0 * 0.1)
    moved = {"a": apart, "b": apart}
    for _ in range(200):
        precision = 1.0 + 120.0 * (moved["a"].variance + moved["a"].mean ** 2)
        moved = {"a": cv.families.Normal(0.0, precision), "b": cv.families.Normal(0.0, precision)}
    at = Posterior._of_parts(
        **{
            **vars(posterior),
            "_factors": {**posterior._factors, **moved},
            "elbo": posterior.elbo_at(moved, data),
        }
    )
    response = at.linear_response(data)
    assert response.smallest_eigenvalue < -1
    assert response.weakest_direction in ("'a' and 'b'", "'b' and 'a'")


def test_other_data_than_those_of_the_fit_are_refused(mixture):
    posterior, data = mixture
    with pytest.raises(cv.DataError, match="expected the data of the fit"):
        posterior.linear_response({"x": data["x"][:-1]})


def test_a_fit_that_has_not_settled_is_told():
    case = CASES["known-variance"]
    data = case.draw(np.random.default_rng(0), 2_000)
    posterior = case.fit(data, init={"mean": [-3.0, 0.5, 3.0]}, max_iter=1, tol=1e3)
    with pytest.raises(cv.ModelError, match="has not settled"):
        posterior.linear_response(data).sd("mean")


def test_documents_whose_proportions_have_hidden_parents_are_refused():
    words = csr_array(np.array([[3, 0, 1, 0], [0, 2, 0, 4], [1, 1, 0, 2], [2, 0, 3, 0]]))
    model = cv.models.latent_dirichlet_allocation(2, 4, stick_concentration=1.0)
    data = {next(leaf.name for leaf in model.leaves): words}
    posterior = model.fit(data, seed=0)
    with pytest.raises(cv.ModelError, match="these are documents whose proportions have hidden parents"):
        posterior.linear_response(data)


def test_bad_arguments_are_refused(mixture):
    posterior, data = mixture
    response = posterior.linear_response(data)
    with pytest.raises(cv.ModelError, match="got 'sigma'"):
        response.covariance("mean", "sigma")
    with pytest.raises(cv.ParameterError, match="level must lie between 0 and 1"):
        response.interval("mean", 1.5)


def test_a_direction_that_nothing_tells_has_no_end():
    """Rotations of factors: the posterior is the same along them, as the standard deviations say."""
    case = CASES["factors"]
    data = case.draw(np.random.default_rng(0), 60)
    response = case.fit(data, tol=1e-12, max_iter=5000).linear_response(data)
    assert abs(response.smallest_eigenvalue) < 1e-6
    # a fit that has nearly settled has a direction that is nearly flat, and would predict with nearly infinite widths
    for tol in (1e-9, 1e-12):
        with pytest.raises(cv.ModelError, match="rotation of factors"):
            case.fit(data, tol=tol, max_iter=5000).linear_response(data).predict({})


@pytest.mark.parametrize("factors", [None, "apart"])
def test_a_group_without_rows_is_as_wide_as_its_population_under_an_unknown_spread(factors):
    """Its variance is E[1 / tau] and that of its mean; at E[tau] alone it would be too narrow."""
    rng = np.random.default_rng(1)
    group, row = cv.Plate("group", 6), cv.Plate("row")
    mu, tau = cv.Normal("mu", 0.0, 0.01), cv.Gamma("tau", 2.0, 2.0)
    a = cv.Normal("a", mu, tau, plates=group)
    model = cv.Model(cv.Normal("y", a[cv.Data("g", plates=row)], 1.0, plates=row))
    g = np.repeat(np.arange(5), 8)
    data = {"g": g, "y": rng.normal(0, 2, 5)[g] + rng.normal(size=40)}
    posterior = model.fit(data, tol=1e-13, factors=factors)
    response = posterior.linear_response(data)
    spread = posterior["tau"].rate / (posterior["tau"].shape - 1.0)
    np.testing.assert_allclose(response.sd("a")[5] ** 2, spread + response.sd("mu") ** 2, rtol=1e-9)
    assert posterior.sd("a")[5] >= (1 - 1e-9) * np.sqrt(posterior["a"].variance[5])


@pytest.mark.parametrize("factors", [None, "apart"])
def test_a_group_of_a_region_without_rows(factors):
    """Two levels without rows: E[1 / tau] of each, and the variance of the mean of all."""
    rng = np.random.default_rng(2)
    region, group, row = cv.Plate("region", 4), cv.Plate("group", 9), cv.Plate("row")
    mu, tau, wide = cv.Normal("mu", 0.0, 0.01), cv.Gamma("tau", 3.0, 3.0), cv.Gamma("wide", 3.0, 3.0)
    level = cv.Normal("level", mu, wide, plates=region)
    a = cv.Normal("a", level[cv.Data("of", plates=group)], tau, plates=group)
    model = cv.Model(cv.Normal("y", a[cv.Data("g", plates=row)], 1.0, plates=row))
    g = np.repeat(np.arange(7), 6)
    of = [0, 0, 0, 1, 1, 2, 2, 3, 3]
    data = {"of": of, "g": g, "y": rng.normal(0, 2, 7)[g] + rng.normal(size=42)}
    posterior = model.fit(data, tol=1e-13, factors=factors)
    response = posterior.linear_response(data)
    spreads = {name: posterior[name].rate / (posterior[name].shape - 1.0) for name in ("tau", "wide")}
    of_region = spreads["wide"] + response.sd("mu") ** 2
    np.testing.assert_allclose(response.sd("level")[3] ** 2, of_region, rtol=1e-9)
    np.testing.assert_allclose(response.sd("a")[7:] ** 2, spreads["tau"] + of_region, rtol=1e-9)


def test_predictions_along_a_chain_are_refused():
    """A level and the states balance each other: with their variances added a forecast would be far too wide."""
    time = cv.Plate("time")
    states = cv.LinearGaussianChain("states", [0.0], [[1.0]], [[0.9]], [[4.0]], along=time)
    level = cv.Normal("level", 0.0, 0.1)
    leaf = cv.Normal("y", cv.dot([1.0], states) + level, 4.0, plates=time)
    data = {"y": np.append(np.sin(np.arange(20.0)), np.nan)}
    posterior = cv.Model(leaf).fit(data, tol=1e-12, max_iter=1000)
    response = posterior.linear_response(data)
    for asked in (data, {}):
        with pytest.raises(cv.ModelError, match="covariances of the parameters with the states of 'states'"):
            response.predict(asked)
    n = len(data["y"])
    path = np.linalg.inv(np.eye(n) - 0.9 * np.eye(n, k=-1))
    spread = path @ np.diag([1.0, *[0.25] * (n - 1)]) @ path.T + 10.0
    noisy = spread[:-1, :-1] + 0.25 * np.eye(n - 1)
    exact = 0.25 + spread[-1, -1] - spread[-1, :-1] @ np.linalg.solve(noisy, spread[-1, :-1])
    assert posterior.predict(data)["y"].sd[-1] == pytest.approx(np.sqrt(exact), rel=0.03)


def test_the_data_of_the_fit_are_not_measured_again(mixture, monkeypatch):
    posterior, data = mixture
    expected = posterior.linear_response(data).sd("mean")
    measured = []
    moments = coordinates.moments_of
    monkeypatch.setattr(coordinates, "moments_of", lambda *given: measured.append(1) or moments(*given))
    np.testing.assert_array_equal(posterior.linear_response(data).sd("mean"), expected)
    assert not measured
    with pytest.raises(cv.DataError, match="beyond a double"):
        posterior.linear_response({"x": 1e200 * data["x"]})


def test_a_large_vector_that_nothing_depends_on_keeps_the_widths_of_its_factor():
    """Of 70 locations or more the range of a response of 0 had no dimensions, and summaries ended in a ValueError."""
    data = {"x": np.random.default_rng(0).normal(size=(20, 150))}
    mean = cv.MultivariateNormal("m", np.zeros(150), np.eye(150))
    x = cv.MultivariateNormal("x", mean, np.eye(150), plates=cv.Plate("row"))
    posterior = cv.Model(x).fit(data)
    np.testing.assert_allclose(posterior.sd("m"), 21**-0.5)
    np.testing.assert_allclose(posterior.linear_response(data).sd("m"), 21**-0.5)
