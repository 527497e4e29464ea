"""What summaries say where intervals may be wrong, and what is integrated because it was asked for."""

import numpy as np
import pytest
from scipy.special import digamma, logsumexp, polygamma
from thinning import amount

import caviar as cv
import caviar.posterior.integration.asked as asked
import caviar.posterior.integration.doubts as doubts
from caviar.engine.evaluation import log_joints
from caviar.engine.response.cost import is_worth_a_series
from caviar.fitting.model import assembled
from caviar.posterior.uncertainty.known import Corrected, Widths

OBS = cv.Plate("obs")
N_GROUPS, N_EACH = 200, 5


def stated(method="bound", n_groups=N_GROUPS):
    """Groups with binary outcomes; the standard deviation between them is half-t with 4 degrees of freedom."""
    between = cv.Gamma("between", 2.0, cv.Gamma("rate", 0.5, 0.25))
    effect = cv.Normal("effect", 0.0, between, plates=cv.Plate("groups", n_groups))
    at = cv.Normal("mu", 0.0, 0.5) + effect[cv.Data("g", plates=OBS)]
    return cv.Model(cv.Bernoulli("y", cv.logistic(at, method=method), plates=OBS))


def drawn(n_groups=N_GROUPS):
    rng = np.random.default_rng(1)
    g = np.repeat(np.arange(n_groups), N_EACH)
    return {"g": g, "y": (rng.logistic(size=len(g)) < 0.5 + rng.normal(size=n_groups)[g]).astype(int)}


def exact_cdf(data, precisions):
    """Return the distribution function of the precision: groups with the same count have the same likelihood."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(41)
    counts = np.bincount(np.bincount(data["g"], data["y"]).astype(int), minlength=N_EACH + 1)
    mu = np.linspace(-0.3, 1.3, 41)[:, None, None, None]
    at = mu + nodes / np.sqrt(precisions[:, None, None])
    each = np.arange(N_EACH + 1)[:, None] * at - N_EACH * np.logaddexp(0.0, at)
    found = logsumexp(each + np.log(weights), axis=-1) @ counts - 0.25 * np.square(mu[..., 0, 0])
    found += np.log(precisions) - 2.5 * np.log(0.25 + precisions)
    density = np.exp(found - found.max()).sum(axis=0)
    return np.cumsum(density) / density.sum()


@pytest.fixture
def costly(monkeypatch):
    """Nothing is integrated by default, as in large fits."""
    for name in ("is_cheap_to_integrate", "is_cheap_to_probe"):
        monkeypatch.setattr(asked, name, lambda *sizes: False)


@pytest.mark.slow
def test_integrated_if_asked_for_whatever_it_costs(costly):
    data = drawn()
    posterior = stated().fit(data, seed=0, uncertainty="integrated")
    assert posterior.uncertainty == "integrated"
    precisions = np.linspace(0.1, 6.0, 400)
    below = np.interp(posterior.interval("between", 0.9), precisions, exact_cdf(data, precisions))
    np.testing.assert_allclose(below, [0.05, 0.95], atol=0.02)
    # what is shown otherwise, and the doubt about it
    shown = stated().fit(data, seed=0)
    assert shown.uncertainty == "linear_response"
    below = np.interp(shown.interval("between", 0.9), precisions, exact_cdf(data, precisions))
    assert below[1] - below[0] < 0.8
    moved = np.abs(stated("expectation").fit(data, seed=0, tol=1e-9)["between"].mean - shown["between"].mean)
    assert f"the mean of between moves by {moved / shown.sd('between'):.1f} of these" in shown.interval_remark
    assert "uncertainty='integrated'" in shown.interval_remark


def test_doubts_are_saved(costly, tmp_path, monkeypatch):
    monkeypatch.setattr(doubts, "by_densities", lambda *arguments, **keywords: None)
    posterior = stated(n_groups=60).fit(drawn(60), seed=0)
    remark = posterior.interval_remark
    assert "They are in doubt" in remark
    posterior.save(tmp_path / "fit.npz")
    assert cv.load(tmp_path / "fit.npz").interval_remark == remark


def test_expected_links_are_said_to_be_narrow(costly):
    posterior = stated("expectation").fit(drawn(), seed=0)
    assert "Those of between may be too narrow" in posterior.interval_remark


def test_no_fit_is_made_to_tell_where_it_costs_much(costly, monkeypatch):
    posterior = stated().fit(drawn(), seed=0)
    monkeypatch.setattr(doubts, "_OPERATIONS", 0.0)
    monkeypatch.setattr(posterior, "_in_expectation", lambda pending: pytest.fail("a fit"), raising=True)
    monkeypatch.setattr(asked.Integrates, "_integrated_in_rows", lambda self, pending: None)
    assert "may be off by several of these standard deviations" in posterior.interval_remark


def test_what_has_no_integral_shows_linear_response_if_it_is_asked_for():
    rng = np.random.default_rng(0)
    x = np.where(rng.random(60) < 0.4, -2.0, 2.0) + rng.normal(size=60)
    model = cv.models.gaussian_mixture(1, 2)
    with pytest.warns(cv.CaviarWarning, match="'integrated' is not available"):
        posterior = model.fit({"x": x[:, None]}, seed=0, uncertainty="integrated")
    assert posterior.uncertainty == "linear_response"


def test_a_series_that_does_not_hold_says_what_it_does_not_hold_for():
    """Eight answers of four groups: no spread between these can be told."""
    data = {"g": np.repeat(np.arange(4), 2), "y": np.array([1, 1, 1, 1, 1, 1, 1, 0])}
    response = stated(n_groups=4).fit(data, seed=0, tol=1e-10).linear_response(data)
    corrected, widths = response.corrected(), response.widths()
    assert corrected.limited
    told = corrected.doubt_of(widths)
    moved = [np.abs(corrected.shifts[own] / widths.sds[own]).max() for own in widths.sds]
    assert max(moved) < 0.5
    assert f"does not hold for {', '.join(corrected.limited)}: some corrected number" in told
    assert widths.doubted(told).remark.endswith(told)


@pytest.mark.parametrize(
    ("shift", "sd", "told"),
    [
        (1.0, 1.0, "the mean of a moves by at least 1.0 of these standard deviations, too far"),
        (0.1, 2.0, "the standard deviation of a is at least 2.0 times as large, too much"),
        (0.1, 0.5, "the standard deviation of a is at most 0.5 times as large, too much"),
        (0.1, 1.0, "does not hold for a: some corrected number would leave its range"),
    ],
)
def test_a_series_that_does_not_hold_says_what_is_too_large(shift, sd, told):
    """A small move of a mean is not the reason, nor is what other variables do."""
    before = Widths({"a": np.ones(2), "b": np.ones(1)})
    sds, shifts = {"a": np.array([sd, 1.0]), "b": np.ones(1)}, {"a": np.array([shift, 0.0]), "b": [-0.3]}
    found = Corrected(sds, (), {name: np.asarray(own) for name, own in shifts.items()}, ("a",))
    assert told in found.doubt_of(before)
    assert "0.1" not in found.doubt_of(before)


def mixture_of(n_components):
    component = cv.Plate("component", n_components)
    z = cv.Categorical("z", cv.Dirichlet("weights", np.full(n_components, 2.0)), plates=OBS)
    mean = cv.MultivariateNormal("mean", np.zeros(4), 0.05 * np.eye(4), plates=component)
    precision = cv.Wishart("precision", 6.0, 6.0 * np.eye(4), plates=component)
    return cv.Model(cv.MultivariateNormal("x", mean[z], precision[z], plates=OBS))


def of_components(n_components, n_rows, spread):
    rng = np.random.default_rng(0)
    means = spread * rng.normal(size=(n_components, 4))
    labels = np.arange(n_rows) % n_components
    return {"x": means[labels] + rng.normal(size=(n_rows, 4))}, labels


def test_overlapping_components_with_many_coordinates_are_in_doubt():
    """A sampler's 90% intervals: of 16 such components those of linear response contain 67 to 77%, and 89% if apart."""
    model = mixture_of(13)
    data, labels = of_components(13, 400, 2.0)
    asked_for = {"tol": 1e-8, "max_iter": 2000, "uncertainty": "linear_response"}
    overlap = model.fit(data, init={"z": labels}, **asked_for)
    assert "They are in doubt" in overlap.interval_remark
    data, labels = of_components(13, 800, 8.0)
    apart = model.fit(data, init={"z": labels}, **asked_for)
    assert apart.interval_remark == "Standard deviations and intervals are those of linear response."


@pytest.mark.slow
def test_they_are_by_default_too():
    data, labels = of_components(16, 4_000, 1.5)
    overlap = mixture_of(16).fit(data, init={"z": labels}, tol=1e-8, max_iter=2000)
    assert overlap.uncertainty == "linear_response"
    assert "They are in doubt" in overlap.interval_remark


@pytest.mark.parametrize("are_missing", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_the_widest_numbers_have_the_corrections_of_all(are_missing):
    data, labels = of_components(3, 60, 1.5)
    if are_missing:
        data["x"][::5, 1] = np.nan
    posterior = mixture_of(3).fit(
        data, init={"z": labels}, tol=1e-10, max_iter=2000, uncertainty="mean_field"
    )
    response = posterior.linear_response(data)._response
    names = ["weights", "mean", "precision"]
    told = response.second_order_of_widest(4, names)
    every = response.second_order(names)
    wider = {name: response.variance(name) / response.within(name) for name in names}
    widest = sorted(((own, name, i) for name in names for i, own in enumerate(wider[name])), reverse=True)
    for (name, shift, ratio), (_, expected, place) in zip(told, widest, strict=False):
        assert name == expected
        variance = response.variance(name)[place]
        assert shift == pytest.approx(every[name][0][place] / np.sqrt(variance), rel=1e-6)
        assert ratio**2 == pytest.approx(1.0 + every[name][1][place] / variance, rel=1e-6)


def test_many_rows_for_each_coordinate_are_not_doubted():
    problem = assembled(mixture_of(13), of_components(13, 400, 2.0)[0], ())
    assert is_worth_a_series(problem, 338, 400)
    assert not is_worth_a_series(problem, 338, 40_000)
    assert not is_worth_a_series(problem, 1_500, 400)


def test_long_chains_are_not_looked_at():
    state = cv.Plate("state", 10)
    transition = cv.Dirichlet("transition", np.ones((10, 10)), plates=state)
    s = cv.MarkovChain("s", np.full(10, 0.1), transition, along=OBS)
    mean = cv.MultivariateNormal("mean", np.zeros(4), np.eye(4), plates=state)
    precision = cv.Wishart("precision", 6.0, np.eye(4), plates=state)
    model = cv.Model(cv.MultivariateNormal("x", mean[s], precision[s], plates=OBS))
    problem = assembled(model, {"x": np.random.default_rng(0).normal(size=(50, 4))}, ())
    assert is_worth_a_series(problem, 350, 400)
    assert not is_worth_a_series(problem, 350, 1_500)


@pytest.mark.slow
def test_overlapping_components_with_missing_values_are_in_doubt():
    """Two components two standard deviations apart; apart by eight, and with the same values missing, they are not."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 60)
    noise, gone = rng.normal(size=(60, 2)), np.arange(60) % 7 == 0
    told = []
    for apart in (2.0, 8.0):
        x = noise + np.stack([apart * labels, np.zeros(60)], axis=1)
        x[gone, 1] = np.nan
        k = cv.Plate("component", 2)
        z = cv.Categorical("z", cv.Dirichlet("weights", [2.0, 2.0]), plates=OBS)
        mean = cv.MultivariateNormal("mean", np.zeros(2), 0.05 * np.eye(2), plates=k)
        precision = cv.Wishart("precision", 4.0, 4.0 * np.eye(2), plates=k)
        model = cv.Model(cv.MultivariateNormal("x", mean[z], precision[z], plates=OBS))
        told.append(model.fit({"x": x}, init={"z": labels}, tol=1e-8, max_iter=2000).interval_remark)
    assert "They are in doubt" in told[0]
    assert "doubt" not in told[1]


def two_components(rows, sep, seed):
    """Components with a precision each; the rows are of the same two Normals in all tests."""
    rng = np.random.default_rng([seed, int(sep * 10), rows])
    first = rng.random(rows) < 0.4
    y = np.where(first, rng.normal(size=rows), sep + 1.5 * rng.normal(size=rows))
    k = cv.Plate("component", 2)
    z = cv.Categorical("z", cv.Dirichlet("weights", [1.0, 1.0]), plates=OBS)
    mean = cv.Normal("mean", 0.0, 1 / 9, plates=k)
    tau = cv.Gamma("tau", 2.0, 2.0, plates=k)
    return cv.Model(cv.Normal("y", mean[z], tau[z], plates=OBS)), {"y": y - y.mean()}


def sampled(y, fit, n, seed=0, burn=300):
    """Return draws of means, precisions and weights by Gibbs sampling, (n, 3, 2), in the order nearest to a fit."""
    rng = np.random.default_rng(seed)
    mu, tau, w = (np.array(fit[name].mean, dtype=float) for name in ("mean", "tau", "weights"))
    found = np.empty((n, 3, 2))
    for number in range(-burn, n):
        log_odds = np.log(w) + 0.5 * np.log(tau) - 0.5 * tau * np.square(y[:, None] - mu)
        z = rng.random(len(y)) < 1.0 / (1.0 + np.exp(log_odds[:, 0] - log_odds[:, 1]))
        parts = y[~z], y[z]
        counts, sums = np.array([len(own) for own in parts]), np.array([own.sum() for own in parts])
        w = rng.dirichlet(1.0 + counts)
        precision = 1 / 9 + tau * counts
        mu = tau * sums / precision + rng.normal(size=2) / np.sqrt(precision)
        squares = [np.square(own - at).sum() for own, at in zip(parts, mu, strict=True)]
        tau = rng.gamma(2.0 + counts / 2) / (2.0 + np.array(squares) / 2)
        if number >= 0:
            found[number] = np.stack([mu, tau, w])
    return in_order(found, fit)


def in_order(draws, fit):
    """Return draws of two components in the order of those of a fit: by means and precisions, in sds of its factors."""
    mean, tau = fit["mean"], fit["tau"]
    middle = [mean.mean, digamma(tau.shape) - np.log(tau.rate)]
    variance = [mean.variance, polygamma(1, tau.shape)]
    numbers = np.stack([draws[:, 0], np.log(draws[:, 1])], axis=1)
    apart = [(np.square(own - middle) / variance).sum(axis=(1, 2)) for own in (numbers, numbers[:, :, ::-1])]
    return np.where((apart[0] <= apart[1])[:, None, None], draws, draws[:, :, ::-1])


def least_share(fit, draws):
    """Return the share of draws inside the 90% interval of a number, the least of all."""
    ends = np.stack([fit.interval(name, 0.9) for name in ("mean", "tau", "weights")], axis=1)
    return ((draws >= ends[0]) & (draws <= ends[1])).mean(axis=0).min()


@pytest.mark.thinned(2)
@pytest.mark.parametrize("n", [amount(1_500, 10_000)])
@pytest.mark.parametrize(("rows", "sep", "seed"), [(100, 3.0, 1), (80, 2.0, 2)])
def test_intervals_that_leave_out_a_part_of_the_posterior_of_a_mixture_are_those_of_draws(rows, sep, seed, n):
    model, data = two_components(rows, sep, seed)
    fit = model.fit(data, seed=0, tol=1e-9, max_iter=3000)
    draws = sampled(data["y"], fit, n)
    assert fit.uncertainty == "importance_sampling"
    assert "weighted draws (effectively" in fit.interval_remark
    assert "doubt" not in fit.interval_remark
    assert least_share(fit, draws) > 0.83
    corrected = model.fit(data, seed=0, tol=1e-9, max_iter=3000, uncertainty="second_order")
    assert least_share(corrected, draws) < 0.8
    np.testing.assert_allclose(fit.mean("mean"), draws[:, 0].mean(axis=0), atol=0.2)
    np.testing.assert_allclose(fit.sd("weights"), draws[:, 2].std(axis=0), rtol=0.15)


def test_draws_of_a_mixture_of_proposals_have_good_weights():
    """To second order the corrections of this mixture are small, and its weights are off by 1.5 standard deviations.

    Of a single Student-t distribution 4,000 draws are worth 160, and are in doubt.
    """
    model, data = two_components(50, 1.5, 2)
    fit = model.fit(data, seed=0, tol=1e-9, max_iter=3000)
    assert fit.uncertainty == "importance_sampling"
    assert "doubt" not in fit.interval_remark
    sample = fit.importance_sample(data, n_draws=4_000, seed=0)
    assert sample.is_usable
    assert sample.effective_draws > 1_500
    draws = sampled(data["y"], fit, 1_500)
    corrected = model.fit(data, seed=0, tol=1e-9, max_iter=3000, uncertainty="second_order")
    assert least_share(corrected, draws) < 0.5
    assert least_share(fit, draws) > 0.8


def test_draws_with_poor_weights_are_in_doubt():
    model, data = two_components(50, 1.5, 1)
    fit = model.fit(data, seed=0, tol=1e-9, max_iter=3000)
    assert fit.uncertainty == "importance_sampling"
    assert (
        "They are in doubt: few weighted draws have much of the weight. Sample instead."
        in fit.interval_remark
    )


@pytest.mark.thinned(2)
@pytest.mark.parametrize("n", [amount(1_500, 10_000)])
@pytest.mark.parametrize(("rows", "sep", "seed"), [(300, 5.0, 3), (100, 6.0, 2)])
def test_right_intervals_of_a_mixture_are_not(rows, sep, seed, n):
    model, data = two_components(rows, sep, seed)
    fit = model.fit(data, seed=0, tol=1e-9, max_iter=3000)
    assert least_share(fit, sampled(data["y"], fit, n)) > 0.85
    assert fit.interval_remark == "Means, standard deviations and intervals are corrected to second order."


def test_figures_of_draws_are_saved(tmp_path):
    model, data = two_components(50, 1.5, 2)
    fit = model.fit(data, seed=0, tol=1e-9, max_iter=3000)
    fit.save(tmp_path / "fit.npz")
    again = cv.load(tmp_path / "fit.npz")
    assert again.uncertainty == "importance_sampling"
    assert again.interval_remark == fit.interval_remark
    for name in fit:
        for figure in ("mean", "sd", "interval"):
            np.testing.assert_array_equal(getattr(again, figure)(name), getattr(fit, figure)(name))
    assert str(again.summary(uncertainty="importance_sampling")) == str(fit.summary())


def test_draws_of_a_joint_factor_are_shown_part_by_part():
    """The mean and precision of a component share a factor; the figures are those of an importance sample."""
    rng = np.random.default_rng(3)
    data = {"x": np.concatenate([rng.normal(size=(60, 1)), rng.normal(size=(40, 1)) + 1.5])}
    fit = cv.models.normal_wishart_mixture(1, 2).fit(data, seed=0, tol=1e-9, max_iter=3000)
    assert fit.uncertainty == "importance_sampling"
    sample = fit.importance_sample(data, n_draws=4_000, seed=0)
    for name in ("theta.mean", "theta.precision", "weights"):
        np.testing.assert_allclose(fit.mean(name), sample.mean(name), atol=1e-9)
        np.testing.assert_allclose(fit.sd(name), sample.sd(name), atol=1e-9)
        lower, upper = fit.interval(name, 0.9)
        width = np.abs(upper - lower)
        ends = sample.interval(name, 0.9)
        # quantiles are kept at 33 places
        assert (np.abs(np.stack([lower, upper]) - ends) < 0.05 * width).all()


def indicators():
    """Return rows with two columns that sum to one: draws of their precisions would lose digits together."""
    X = np.asarray(cv.datasets.load_faithful().values)
    is_long = (X[:, 0] > 3).astype(float)
    return {"x": np.c_[X, is_long, 1 - is_long]}, {}


def a_fixed_component():
    return {"x": np.asarray(cv.datasets.load_faithful().values)}, {
        "fixed": {"means": np.array([[2.1, 55.0], [np.nan, np.nan]])},
        "mean_precision_family": "independent",
    }


@pytest.mark.parametrize("case", [pytest.param(indicators, marks=pytest.mark.slow), a_fixed_component])
def test_few_draws_are_weighed_one_after_another_for_figures_shown_by_default(case, monkeypatch):
    """They would take minutes after a fit of a tenth of a second; and the same ones are not weighed twice."""
    made, one = [], log_joints.log_joint_at
    monkeypatch.setattr(log_joints, "log_joint_at", lambda *given: made.append(1) or one(*given))
    data, arguments = case()
    mixture = cv.BayesianGaussianMixture(2, random_state=0, **arguments).fit(data["x"])
    assert mixture.posterior_.interval_remark
    assert len(made) < 500
    if not arguments:
        assert len(mixture.posterior_.importance_sample(data, n_draws=300, seed=0).log_weights) == 300
        assert len(made) > 300


@pytest.mark.parametrize(("seed", "are_sticks"), [(11, False), (1, True)])
def test_shown_weights_sum_to_one_beside_empty_components(seed: int, are_sticks: bool) -> None:
    rng, n_components = np.random.default_rng(seed), 5 if are_sticks else 6
    x = rng.choice([-2.0, 2.0], 8) + rng.normal(size=8)
    obs, component = cv.Plate("obs"), cv.Plate("component", n_components)
    w = cv.StickBreaking("w", 1.0, truncation=5) if are_sticks else cv.Dirichlet("w", np.ones(6))
    z = cv.Categorical("z", w, plates=obs)
    location, precision = cv.Normal("m", 0, 0.1, plates=component), cv.Gamma("t", 2, 2, plates=component)
    model = cv.Model(cv.Normal("x", location[z], precision[z], plates=obs))
    posterior = model.fit({"x": x}, seed=0, n_restarts=2)
    assert posterior.uncertainty == "importance_sampling"
    assert posterior.mean("w").sum() == pytest.approx(1.0, abs=1e-9)
