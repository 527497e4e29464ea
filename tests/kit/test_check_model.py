"""The verification kit passes right models, and each kind of fault fails the check that it belongs to."""

import numpy as np
import pytest
from invariants.registry import CASES

import caviar as cv
from caviar.engine import assemble
from caviar.engine.compiled.global_update import GlobalUpdate
from caviar.engine.local import categorical as engine_locals
from caviar.families import Gamma, Normal
from caviar.language.nodes.templates import LOG_2PI, template
from caviar.testing import Check, VerificationReport, check_model, coverage, elbo_estimate, elbo_slopes

ROWS = 25


def _data(name):
    return CASES[name].draw(np.random.default_rng(0), ROWS)


@pytest.mark.thinned(18)
@pytest.mark.parametrize("name", CASES)
def test_right_models_pass(name):
    report = check_model(
        CASES[name].state(), _data(name), n_draws=200, n_directions=12, **CASES[name].arguments
    )
    report.raise_if_failed()
    assert [check.name for check in report.checks] == ["ascent", "stationarity", "saddle", "elbo"]


@pytest.mark.thinned(3)
@pytest.mark.parametrize("name", ["factorised-normal", "joint", "measured"])
def test_right_models_recover_what_made_the_data(name):
    report = check_model(CASES[name].state(), _data(name), n_draws=50, n_directions=4, replications=8)
    report.raise_if_failed()
    assert 0.5 <= report["recovery"].figure <= 1.0


@pytest.mark.slow
def test_rows_may_stand_on_any_axis():
    """With as many features as rows a confusion of the two would not even be an error of shapes."""
    obs, feature = cv.Plate("obs"), cv.Plate("feature", 6)
    t = cv.Normal("t", cv.Normal("m", 0, 1), cv.Gamma("tau", 2, 1), plates=(feature, obs))
    model = cv.Model(cv.Normal("x", t, cv.Data("noise", plates=obs), plates=(feature, obs)))
    rng = np.random.default_rng(0)
    data = {"x": rng.normal(0, 2, (6, 6)), "noise": np.geomspace(0.1, 100, 6)}
    check_model(model, data, n_draws=2000).raise_if_failed()
    check_model(model, data, n_draws=2000, data_plate=feature).raise_if_failed()


def test_models_without_rows_and_with_flat_priors_pass():
    check_model(cv.Model(cv.Normal("x", cv.NormalGamma("theta", 0, 1, 1, 1))), {"x": 1.0}).raise_if_failed()
    flat = cv.NormalGamma("theta", 0, 0, 0.5, 0)
    model = cv.Model(cv.Normal("x", flat, plates=cv.Plate("obs")))
    data = {"x": np.array([1.0, 3.0, 2.5, -1.0])}
    check_model(model, data).raise_if_failed()
    with pytest.raises(cv.ImproperError, match="'theta' has no proper distribution to draw from"):
        check_model(model, data, replications=1)


def test_coverage_of_an_exact_posterior_is_the_level():
    """One conjugate Normal mean: its posterior is exact, and so are its intervals."""
    obs, group = cv.Plate("obs"), cv.Plate("group", 50)
    model = cv.Model(cv.Normal("x", cv.Normal("m", 0, 1, plates=group), 1.0, plates=(obs, group)))
    share = coverage(model, sizes={"obs": 3}, replications=20, level=0.8, seed=1)["m"]
    assert share == pytest.approx(0.8, abs=4 * np.sqrt(0.16 / 1000))


def test_labels_at_the_end_of_an_interval_are_inside():
    """A global label that the data tell beyond doubt is covered in every data set, also the first and the last."""
    obs, component = cv.Plate("obs"), cv.Plate("component", 3)
    z = cv.Categorical("z", [0.4, 0.2, 0.4])
    centres = cv.Constant("centres", [-50.0, 0.0, 50.0], plates=component)
    model = cv.Model(cv.Normal("x", centres[z], 1.0, plates=obs))
    assert coverage(model, sizes={"obs": 4}, replications=12, seed=0) == {"z": 1.0}


def test_the_estimate_of_an_exact_posterior_has_no_error():
    """Where q is the posterior, log p(x, z) - log q(z) is the log evidence at every draw."""
    model = cv.Model(cv.Normal("x", cv.NormalGamma("theta", 0.0, 1.0, 2.0, 2.0), plates=cv.Plate("obs")))
    data = {"x": np.array([0.3, -1.0, 2.0])}
    posterior = model.fit(data)
    estimate = elbo_estimate(posterior, data, n_draws=20)
    assert estimate.error < 1e-12
    assert estimate.value == pytest.approx(posterior.elbo, rel=1e-12)


def test_slopes_are_distances_from_the_optimum():
    """A factor moved by a tenth of its standard deviation has a slope of about a tenth; at the optimum none."""
    model = cv.Model(cv.Normal("x", cv.Normal("m", 0.0, 1.0), 1.0, plates=cv.Plate("obs")))
    data = {"x": np.array([3.0, 5.0, 4.0])}
    posterior = model.fit(data)
    assert elbo_slopes(posterior, data)["m"] < 1e-8
    exact = posterior["m"]
    posterior._factors["m"] = Normal(exact.mean + 0.1 * np.sqrt(exact.variance), exact.precision)
    # the linear natural parameter moves the mean by one standard deviation a unit; the quadratic one sees the same
    assert elbo_slopes(posterior, data)["m"] == pytest.approx(0.1, rel=0.1)


def _failed(name, **arguments):
    arguments = {"n_draws": 200, "n_directions": 12, **arguments}
    report = check_model(CASES[name].state(), _data(name), **arguments)
    assert not report.passed
    return {check.name for check in report.checks if not check.passed}


@pytest.mark.thinned(4)
@pytest.mark.parametrize(("name", "variable"), [("factorised-normal", "tau"), ("joint", "weights")])
@pytest.mark.parametrize("coefficient", [1.02, 0.5])
def test_a_wrong_coefficient_in_an_update_is_caught(monkeypatch, name, variable, coefficient):
    """The derivative does not vanish where it leaves the factors; the reported ELBO is still theirs."""
    right = GlobalUpdate.natural

    def wrong(self, *arguments):
        scale = coefficient if self.variable.name == variable else 1.0
        return tuple(scale * natural for natural in right(self, *arguments))

    monkeypatch.setattr(GlobalUpdate, "natural", wrong)
    failed = _failed(name)
    assert "stationarity" in failed
    assert "elbo" not in failed


def test_an_update_that_lowers_the_elbo_is_caught(monkeypatch):
    right, calls = GlobalUpdate.natural, []

    def worse_each_time(self, *arguments):
        calls.append(1)
        return tuple((1 + 0.1 * len(calls)) * natural for natural in right(self, *arguments))

    monkeypatch.setattr(GlobalUpdate, "natural", worse_each_time)
    assert "ascent" in _failed("shared-precision")


@pytest.mark.parametrize("constant", [-1 / 2 * LOG_2PI + 0.05, 0.0])
def test_a_wrong_constant_in_a_density_is_caught(monkeypatch, constant):
    """It moves no optimum: only the ELBO itself is wrong."""
    wrong = template(
        (-1 / 2, "precision.x self.xx"),
        (1, "precision.x mean.x self.x"),
        (-1 / 2, "precision.x mean.xx"),
        (1 / 2, "precision.log_x"),
        (constant, ""),
    )
    monkeypatch.setattr(cv.Normal, "density", wrong)
    assert _failed("factorised-normal") == {"elbo"}


def test_a_wrong_coefficient_in_a_density_is_caught(monkeypatch):
    """The engine then climbs the ELBO of another model, consistently: only the densities and the truth can tell."""
    wrong = template(
        (-1 / 2, "precision.x self.xx"),
        (1, "precision.x mean.x self.x"),
        (-1 / 2, "precision.x mean.xx"),
        (1, "precision.log_x"),
        (-1 / 2 * LOG_2PI, ""),
    )
    monkeypatch.setattr(cv.Normal, "density", wrong)
    assert _failed("factorised-normal", replications=12) == {"elbo", "recovery"}


def test_a_constant_that_an_entropy_lacks_is_caught(monkeypatch):
    right = Normal.entropy_about_base
    monkeypatch.setattr(Normal, "entropy_about_base", lambda self: right(self) - 0.5 * np.log(2 * np.pi))
    assert _failed("factorised-normal") == {"elbo"}


def test_a_wrong_entropy_is_caught(monkeypatch):
    """One that also has a wrong slope is seen where the derivative does not vanish."""
    right = Gamma.entropy_about_base
    monkeypatch.setattr(Gamma, "entropy_about_base", lambda self: right(self) - 0.2 * np.log(self.rate))
    assert {"stationarity", "elbo"} <= _failed("factorised-normal")


def test_a_wrong_normaliser_of_labels_is_caught(monkeypatch):
    """What the rows add to the ELBO, their entropy included, is the sum of these logarithms."""
    right = engine_locals.softmax_inplace
    monkeypatch.setattr(engine_locals, "softmax_inplace", lambda logits: right(logits) + 0.05)
    assert _failed("known-variance") == {"elbo"}


def test_intervals_that_are_far_too_narrow_are_caught(monkeypatch):
    right = GlobalUpdate.natural
    monkeypatch.setattr(
        GlobalUpdate, "natural", lambda self, *arguments: tuple(400 * n for n in right(self, *arguments))
    )
    assert "recovery" in _failed("factorised-normal", replications=10)


def test_weights_are_refused():
    with pytest.raises(cv.ParameterError, match="no sample_weight"):
        check_model(CASES["joint"].state(), _data("joint"), sample_weight=np.ones(ROWS))


def test_a_report_reads_as_a_table_and_raises_what_failed():
    report = VerificationReport(
        (Check("ascent", 0.0, 1e-9, True, "rose"), Check("elbo", 2.5, 0.1, False, "is off"))
    )
    assert str(report).splitlines() == [
        "check   result  figure  threshold  finding",
        "ascent  passed       0      1e-09  rose",
        "elbo    FAILED     2.5        0.1  is off",
    ]
    with pytest.raises(cv.VerificationError, match="fails its check of elbo:\n"):
        report.raise_if_failed()
    with pytest.raises(AssertionError):
        report.raise_if_failed()
    with pytest.raises(KeyError, match="no check 'speed' was made; there are ascent, elbo"):
        report["speed"]
    VerificationReport(report.checks[:1]).raise_if_failed()


def test_missing_entries_are_refused_and_not_reported_as_a_failure():
    data = {**_data("joint")}
    data["x"] = data["x"].copy()
    data["x"][3] = np.nan
    with pytest.raises(cv.ParameterError, match="no missing entries, and 'x' has some"):
        check_model(CASES["joint"].state(), data)


def test_joint_factors_of_rows_on_any_axis():
    obs, feature = cv.Plate("obs"), cv.Plate("feature", 3)
    theta = cv.NormalGamma("theta", 0.0, 1.0, 2.0, 1.0, plates=(feature, obs))
    model = cv.Model(cv.Normal("x", theta, plates=(feature, obs)))
    check_model(model, {"x": np.random.default_rng(0).normal(size=(3, 4))}).raise_if_failed()


@pytest.mark.slow
@pytest.mark.parametrize("names", [("y", "z"), ("z", "y")])
def test_a_hidden_value_below_two_gates_of_different_width(names):
    """Its factor is joint with one of them; the other has another number of categories."""
    obs, two, three = cv.Plate("obs"), cv.Plate("two", 2), cv.Plate("three", 3)
    of_mean = cv.Categorical(names[0], [0.2, 0.3, 0.5], plates=obs)
    of_scale = cv.Categorical(names[1], [0.3, 0.7], plates=obs)
    u = cv.Gamma("u", 2.0, cv.Gamma("rate", 2.0, 1.0, plates=two)[of_scale], plates=obs)
    mean = cv.Normal("mean", 0.0, 0.5, plates=three)
    data = {"x": np.random.default_rng(2).normal(size=5)}
    model = cv.Model(cv.Normal("x", mean[of_mean], u, plates=obs))
    check_model(model, data, tol=1e-11, n_draws=200, n_directions=4).raise_if_failed()


def test_a_category_beyond_doubt_is_stationary():
    """Its standard deviation is that of a coin that never falls on the other side: no unit for a step."""
    obs, component = cv.Plate("obs"), cv.Plate("component", 2)
    z = cv.Categorical("z", [0.5, 0.5])
    mean = cv.Normal("mean", np.array([-3.0, 3.0]), 4.0, plates=component)
    model = cv.Model(cv.Normal("x", mean[z], 1.0, plates=obs))
    data = {"x": np.array([2.5, 3.0, 3.2])}
    posterior = model.fit(data, tol=1e-13, max_iter=2000, factors="apart")
    assert 0 < posterior["z"].probabilities.min() < 1e-9
    assert elbo_slopes(posterior, data)["z"] < 1e-4


@pytest.mark.slow
def test_weights_that_underflow_have_an_elbo_all_the_same() -> None:
    """Small concentrations: most weights of a draw are below the smallest number. The posterior is exact."""
    model = cv.models.dirichlet_categorical(20, concentration=0.01)
    report = check_model(model, {"x": [0, 0, 2, 7]})
    assert report.passed, str(report)


@pytest.mark.parametrize("most_saddles", [0, 20])
def test_a_saddle_point_is_caught(monkeypatch, most_saddles):
    """Where fits end at saddle points, here because they are told to, the check finds one and says what to do."""
    monkeypatch.setattr(assemble, "_MOST_SADDLES", most_saddles)
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.gamma(3.0, 1.0, 20), rng.gamma(3.0, 0.1, 20)])
    obs, k = cv.Plate("obs"), cv.Plate("k", 2)
    z = cv.Categorical("z", cv.Dirichlet("w", np.ones(2)), plates=obs)
    model = cv.Model(cv.Gamma("x", 3.0, cv.Gamma("rate", 1, 1, plates=k)[z], plates=obs))
    report = check_model(model, {"x": x}, init={"rate": [2.0, 2.0]}, n_draws=50, n_directions=4)
    # equal components make no other check fail
    assert {check.name for check in report.checks if not check.passed} == (
        set() if most_saddles else {"saddle"}
    )
    if not most_saddles:
        best = model.fit({"x": x}, init={"z": np.repeat([0, 1], 20)}).elbo
        saddle = model.fit({"x": x}, init={"rate": [2.0, 2.0]}).elbo
        assert report["saddle"].figure == pytest.approx(best - saddle, abs=0.01)
        assert "n_restarts=" in report["saddle"].sentence


@pytest.mark.slow
def test_shared_gaussian_factors_are_checked_as_one() -> None:
    """Their draws have all covariances, and groups without rows count nothing."""
    rng = np.random.default_rng(0)
    data = {"g": rng.integers(4, size=30), "h": rng.integers(3, size=30), "y": rng.normal(size=30)}
    obs = cv.Plate("obs")
    mu = cv.Normal("mu", 0, 0.1)
    a = cv.Normal("a", 0, cv.Gamma("between", 2, 1), plates=cv.Plate("first", 6))
    b = cv.Normal("b", 0, 1.0, plates=cv.Plate("second", 3))
    mean = mu + a[cv.Data("g", plates=obs)] + b[cv.Data("h", plates=obs)]
    model = cv.Model(cv.Normal("y", mean, cv.Gamma("tau", 1, 1), plates=obs))
    report = check_model(model, data, factors=[("mu", "a", "b")])
    assert report.passed, str(report)
    posterior = model.fit(data, seed=0, factors=[("mu", "a", "b")], max_iter=3, tol=1.0)
    assert elbo_slopes(posterior, data)["mu, a, b"] > 1e-6
