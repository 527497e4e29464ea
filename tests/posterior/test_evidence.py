"""The evidence with its error: against closed forms, enumeration and quadrature."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from scipy.special import comb, expit, log_expit, log_ndtr, logsumexp

import caviar as cv
from caviar.posterior.evidence.comparison import Comparison

OBS = cv.Plate("obs")


def _crossed(**arguments):
    """Return a fit of a level and two sets of effects with known variances, and its exact evidence."""
    rng = np.random.default_rng(5)
    n, rows, columns = 40, 5, 4
    g, h = rng.integers(0, rows, n), rng.integers(0, columns, n)
    y = 0.7 + rng.normal(size=rows)[g] + rng.normal(size=columns)[h] + rng.normal(size=n)
    a = cv.Normal("a", 0, 1.0, plates=cv.Plate("row", rows))
    b = cv.Normal("b", 0, 1.0, plates=cv.Plate("column", columns))
    at = cv.Normal("mu", 0, 0.5) + a[cv.Data("g", plates=OBS)] + b[cv.Data("h", plates=OBS)]
    data = {"g": g, "h": h, "y": y}
    posterior = cv.Model(cv.Normal("y", at, 1.0, plates=OBS)).fit(
        data, tol=1e-13, max_iter=20_000, **arguments
    )
    covariance = np.eye(n) + 2.0 + (g[:, None] == g) + (h[:, None] == h)
    return posterior, data, stats.multivariate_normal(np.zeros(n), covariance).logpdf(y)


def test_point_masses_are_at_their_values():
    x = np.random.default_rng(5).normal(size=6)
    model = cv.Model(cv.Normal("x", cv.Normal("mu", 0, 0.1), cv.Gamma("tau", 2, 2), plates=OBS))
    posterior = model.fit({"x": x}, point=["tau"], tol=1e-13)
    tau = float(posterior["tau"].mean)
    given = stats.multivariate_normal(np.zeros(6), np.eye(6) / tau + 10.0).logpdf(x)
    exact = given + stats.gamma(2, scale=0.5).logpdf(tau)
    found = posterior.evidence({"x": x}, method="second_order")
    assert found.value == pytest.approx(exact, abs=1e-8)
    every = model.fit({"x": x}, point=["mu", "tau"], tol=1e-13)
    assert every.evidence({"x": x}, method="second_order").value == pytest.approx(every.elbo, abs=1e-12)


def test_a_single_factor_has_no_correction():
    rng = np.random.default_rng(0)
    data = {"X": rng.normal(size=(9, 2)), "y": rng.normal(size=9)}
    w = cv.MultivariateNormal("w", np.zeros(2), np.eye(2))
    posterior = cv.Model(cv.Normal("y", cv.dot(cv.Data("X", plates=OBS), w), 1.0, plates=OBS)).fit(data)
    exact = stats.multivariate_normal(np.zeros(9), np.eye(9) + data["X"] @ data["X"].T).logpdf(data["y"])
    assert posterior.evidence(data, method="second_order").value == pytest.approx(exact, abs=1e-10)


@pytest.mark.parametrize("factors", ["apart", [("mu", "a")]])
def test_second_order_is_exact_where_the_posterior_is_normal(factors):
    posterior, data, exact = _crossed(factors=factors)
    found = posterior.evidence(data, method="second_order")
    assert posterior.elbo < exact - 0.3
    assert found.value == pytest.approx(exact, abs=1e-6)
    assert found.method == "second_order"
    assert "second-order correction" in found.remark


def test_importance_sampling_of_effects():
    posterior, data, exact = _crossed(factors="apart")
    assert posterior.diagnose(data, seed=0).pareto_k > 0.5
    found = posterior.evidence(data)
    assert found.method == "importance_sampling"
    assert found.pareto_k < 0.4
    assert abs(found.value - exact) < 3 * found.error < 0.3


def _normal_gamma(n, seed):
    """Return a fit of a mean and a precision with independent priors, and its evidence by quadrature."""
    rng = np.random.default_rng(seed)
    y = rng.normal(rng.normal(0, 3), rng.gamma(1.5, 1.0) ** -0.5, n)
    x = cv.Normal("x", cv.Normal("m", 0, 0.1), cv.Gamma("tau", 1.5, 1.0), plates=OBS)
    posterior = cv.Model(x).fit({"x": y}, tol=1e-12, max_iter=5000)
    # given the precision, the mean has a closed form
    log_tau = np.linspace(-12, 8, 4001)
    tau = np.exp(log_tau)
    precision = 0.1 + n * tau
    squares = tau * np.sum(y**2) - (tau * np.sum(y)) ** 2 / precision
    log_density = 0.5 * (n * np.log(tau / (2 * np.pi)) + np.log(0.1 / precision) - squares)
    log_density += stats.gamma(1.5).logpdf(tau) + log_tau
    return posterior, {"x": y}, logsumexp(log_density) + np.log(log_tau[1] - log_tau[0])


def test_a_mean_and_a_precision():
    posterior, data, exact = _normal_gamma(8, 2)
    found = posterior.evidence(data, method="second_order")
    assert abs(found.value - exact) < 0.3 * (exact - posterior.elbo)
    sampled = posterior.evidence(data, method="importance_sampling", n_draws=4000)
    assert abs(sampled.value - exact) < 3 * sampled.error < 0.06


@pytest.mark.slow
def test_errors_hold_the_evidence():
    """Of 100 simulated models."""
    sampled, corrected = [], []
    for seed in range(100):
        posterior, data, exact = _normal_gamma(4 + seed % 12, seed)
        both = [posterior.evidence(data, method=own) for own in ("importance_sampling", "second_order")]
        for found, list_ in zip(both, (sampled, corrected), strict=True):
            list_.append(abs(found.value - exact) < 2 * found.error)
    assert np.mean(sampled) > 0.9
    assert np.mean(corrected) > 0.85


def test_a_small_mixture():
    """By enumeration of all labels, the means and weights integrated out."""
    rng = np.random.default_rng(1)
    x = np.concatenate([rng.normal(-1.5, 1, 5), rng.normal(1.5, 1, 5)])
    mean = cv.Normal("mean", [-1.0, 1.0], 1.0, plates=cv.Plate("component", 2))
    z = cv.Categorical("z", cv.Dirichlet("weights", np.full(2, 2.0)), plates=OBS)
    posterior = cv.Model(cv.Normal("x", mean[z], 1.0, plates=OBS)).fit({"x": x}, tol=1e-12, max_iter=5000)
    shares = stats.betabinom(len(x), 2, 2).logpmf(range(len(x) + 1)) - np.log(comb(len(x), range(len(x) + 1)))
    logs = []
    for labels in itertools.product([False, True], repeat=len(x)):
        own = np.array(labels)
        log_joint = shares[own.sum()]
        for chosen, center in ((x[~own], -1.0), (x[own], 1.0)):
            if n := len(chosen):
                # a normal density with covariance I + 11'
                off = chosen - center
                square = off @ off - off.sum() ** 2 / (1 + n)
                log_joint -= 0.5 * (n * np.log(2 * np.pi) + np.log(1 + n) + square)
        logs.append(log_joint)
    exact = logsumexp(logs)
    found = posterior.evidence({"x": x}, method="second_order")
    assert abs(found.value - exact) < 2 * found.error < 0.4 * (exact - posterior.elbo)
    sampled = posterior.evidence({"x": x})
    assert sampled.method == "importance_sampling"
    assert abs(sampled.value - exact) < 3 * sampled.error < 0.3


def test_a_logistic_regression():
    """Evidence, means, standard deviations and intervals by quadrature; those of q are off."""
    rng = np.random.default_rng(7)
    X = np.column_stack([np.ones(25), rng.normal(size=25)])
    y = (rng.random(25) < expit(X @ [1.0, 2.0])).astype(float)
    w = cv.MultivariateNormal("w", np.zeros(2), 0.2 * np.eye(2))
    model = cv.Model(cv.Bernoulli("y", cv.logistic(cv.dot(cv.Data("X", plates=OBS), w)), plates=OBS))
    data = {"X": X, "y": y}
    posterior = model.fit(data, tol=1e-12, max_iter=5000)
    axes = np.linspace(-8, 14, 221), np.linspace(-6, 20, 261)
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    log_density = stats.norm(0, 5**0.5).logpdf(grid).sum(axis=-1)
    for row, answer in zip(X, y, strict=True):
        log_density -= np.logaddexp(0.0, (1 - 2 * answer) * (grid @ row))
    cell = np.log((axes[0][1] - axes[0][0]) * (axes[1][1] - axes[1][0]))
    exact = logsumexp(log_density) + cell
    found = posterior.evidence(data, method="second_order")
    assert abs(found.value - exact) < 2 * found.error < 0.4 * (exact - posterior.elbo)

    sample = posterior.importance_sample(data, n_draws=4000)
    assert sample.pareto_k < 0.5
    assert abs(sample.log_evidence - exact) < 3 * sample.log_evidence_error < 0.1
    share = np.exp(log_density - logsumexp(log_density))
    for number, axis in enumerate(axes):
        own = share.sum(axis=1 - number)
        mean = own @ axis
        sd = np.sqrt(own @ (axis - mean) ** 2)
        assert sample.mean("w")[number] == pytest.approx(mean, abs=0.06 * sd)
        assert sample.sd("w")[number] == pytest.approx(sd, rel=0.06)
        ends = np.interp([0.05, 0.95], np.cumsum(own), axis)
        np.testing.assert_allclose(sample.interval("w", 0.9)[:, number], ends, atol=0.2 * sd)


def _exact_fits():
    rng = np.random.default_rng(3)
    component = cv.Plate("component", 3)
    p = cv.Beta("p", 2, 1.5)
    yield "beta", cv.Bernoulli("x", p, plates=OBS), {"x": [1, 1, 0, 1, 0, 1]}
    pi = cv.Dirichlet("pi", [1.5, 2.0, 1.0])
    labels = rng.integers(0, 3, 12)
    yield "dirichlet", cv.Categorical("x", pi, plates=OBS), {"x": labels}
    yield (
        "sticks",
        cv.Categorical("x", cv.StickBreaking("pi", 2.0, truncation=3), plates=OBS),
        {"x": labels},
    )
    rate = cv.Gamma("rate", 2, 1, plates=component)
    counts = rng.poisson(3, 12)
    yield "gammas", cv.Poisson("x", rate[cv.Data("g", plates=OBS)], plates=OBS), {"g": labels, "x": counts}
    X = rng.normal(size=(12, 2)) @ [[1.0, 0.4], [0.0, 0.7]]
    theta = cv.NormalWishart("theta", np.zeros(2), 0.3, 4.0, np.eye(2))
    yield "normal-wishart", cv.MultivariateNormal("x", theta, plates=OBS), {"x": X}
    precision = cv.Wishart("precision", 5.0, np.eye(3))
    Y = rng.normal(size=(10, 3))
    yield "wishart", cv.MultivariateNormal("x", np.zeros(3), precision, plates=OBS), {"x": Y}
    gamma = cv.NormalGamma("theta", 0.0, 0.5, 2.0, 2.0)
    yield "normal-gamma", cv.Normal("x", gamma, plates=OBS), {"x": X[:, 0]}


@pytest.mark.thinned(8)
@pytest.mark.parametrize("case", list(_exact_fits()), ids=lambda case: case[0])
def test_every_family_of_globals_is_drawn_with_its_density(case):
    """Where a single factor is exact, so is the ELBO: the volumes of all transforms count."""
    _, leaf, data = case
    posterior = cv.Model(leaf).fit(data)
    assert posterior.evidence(data).method == "exact"
    found = posterior.evidence(data, method="importance_sampling", n_draws=2000)
    assert abs(found.value - posterior.elbo) < 3.5 * found.error < 0.15


def test_what_is_known_and_what_has_no_rows():
    """One effect is known, and one group has no rows: the evidence is that of the rest, by a dense Normal."""
    rng = np.random.default_rng(2)
    g = np.repeat([0, 1, 2], 4)
    y = rng.normal(size=12) + np.array([1.0, -0.5, 0.3])[g]
    a = cv.Normal("a", 0, 1.0, plates=cv.Plate("group", 4))
    at = cv.Normal("mu", 0, 0.5) + a[cv.Data("g", plates=OBS)]
    data = {"g": g, "y": y, "a": np.array([np.nan, -0.4, np.nan, np.nan])}
    posterior = cv.Model(cv.Normal("y", at, 1.0, plates=OBS)).fit(data, tol=1e-13, max_iter=5000)
    covariance = np.eye(12) + 2.0 + ((g[:, None] == g) & (g != 1))
    exact = stats.multivariate_normal(np.where(g == 1, -0.4, 0.0), covariance).logpdf(y)
    exact += stats.norm.logpdf(-0.4)
    found = posterior.evidence(data, method="second_order")
    assert found.value == pytest.approx(exact, abs=1e-6)
    sample = posterior.importance_sample(data)
    assert abs(sample.log_evidence - exact) < 3 * sample.log_evidence_error < 0.1
    assert (np.asarray(sample.draws["a"])[:, 1] == -0.4).all()


@pytest.mark.slow
def test_groups_without_rows_change_no_evidence():
    """Below an unknown mean and precision, too: a grid over the precision, and a dense Normal for each."""
    rng = np.random.default_rng(2)
    g = np.repeat([0, 1, 2], 4)
    y = rng.normal(size=12) + np.array([1.0, -0.5, 0.3])[g]
    tau = np.exp(np.linspace(-6, 4, 400))
    same = g[:, None] == g
    densities = [stats.multivariate_normal(np.zeros(12), np.eye(12) + 2.0 + same / own).pdf(y) for own in tau]
    exact = np.log(np.trapezoid(densities * stats.gamma(3, scale=0.5).pdf(tau), tau))
    for n_groups in (3, 6):
        a = cv.Normal("a", cv.Normal("mu", 0, 0.5), cv.Gamma("tau", 3, 2), plates=cv.Plate("group", n_groups))
        model = cv.Model(cv.Normal("y", a[cv.Data("g", plates=OBS)], 1.0, plates=OBS))
        posterior = model.fit({"g": g, "y": y}, tol=1e-12)
        found = posterior.evidence({"g": g, "y": y}, method="importance_sampling", n_draws=2000)
        assert abs(found.value - exact) < 3 * found.error < 0.1, n_groups


def test_weights_of_rows_are_rows():
    x = cv.Normal("x", cv.Normal("m", 0, 0.1), cv.Gamma("tau", 1.5, 1.0), plates=OBS)
    model, y = cv.Model(x), np.array([0.3, 1.2, -0.4, 2.0])
    weighted = model.fit({"x": y}, sample_weight=[2, 1, 1, 1], tol=1e-12)
    twice = model.fit({"x": y[[0, 0, 1, 2, 3]]}, tol=1e-12)
    one = weighted.evidence({"x": y}, sample_weight=[2, 1, 1, 1])
    other = twice.evidence({"x": y[[0, 0, 1, 2, 3]]})
    assert one.value == pytest.approx(other.value, abs=1e-6)


def test_what_has_no_evidence_says_why():
    posterior, data, _ = _normal_gamma(8, 2)
    with pytest.raises(cv.DataError):
        posterior.evidence({"x": data["x"] + 1.0})
    with pytest.raises(cv.ParameterError, match="second_order"):
        posterior.evidence(data, method="laplace")
    assert posterior.evidence(data, method="elbo").error == np.inf
    short = posterior.model.fit(data, max_iter=1, tol=0.0)
    found = short.evidence(data)
    assert found.method in ("elbo", "importance_sampling")
    label = cv.Categorical("k", [0.5, 0.5])
    mean = cv.Normal("mean", [-1.0, 1.0], 1.0, plates=cv.Plate("component", 2))
    own = {"x": np.array([0.1, 1.5, 0.7])}
    chosen = cv.Model(cv.Normal("x", mean[label], 1.0, plates=OBS))
    found = chosen.fit(own, tol=1e-10, factors="apart").evidence(own)
    assert found.method == "second_order"
    assert "label" in found.remark


def test_a_label_and_the_means_that_it_chooses_have_their_exact_evidence():
    label = cv.Categorical("k", [0.3, 0.7])
    mean = cv.Normal("mean", [-1.0, 1.0], 1.0, plates=cv.Plate("component", 2))
    data = {"x": np.array([0.1, 1.5, 0.7])}
    found = cv.Model(cv.Normal("x", mean[label], 1.0, plates=OBS)).fit(data, tol=1e-10).evidence(data)
    of_each = [
        stats.multivariate_normal.logpdf(data["x"], np.full(3, prior), np.eye(3) + 1.0)
        for prior in (-1.0, 1.0)
    ]
    assert found.method == "exact"
    assert found.value == pytest.approx(np.logaddexp(*np.log([0.3, 0.7]) + of_each), abs=1e-10)


def test_many_rows_are_read_only_when_asked():
    posterior, data, _ = _normal_gamma(60, 4)
    found = posterior.evidence(data, n_draws=500_000)
    assert found.method == "second_order"
    assert "method='importance_sampling'" in found.remark


def test_a_shared_factor_is_drawn_with_its_precisions():
    """Of learnt precisions, the evidence of a fit with one Gaussian factor is that of a fit without."""
    rng = np.random.default_rng(6)
    g = np.repeat(np.arange(4), 5)
    y = rng.normal(size=4)[g] + rng.normal(size=20)
    a = cv.Normal("a", 0, cv.Gamma("of_a", 3, 3), plates=cv.Plate("group", 4))
    at = cv.Normal("mu", 0, 0.5) + a[cv.Data("g", plates=OBS)]
    model = cv.Model(cv.Normal("y", at, cv.Gamma("tau", 3, 3), plates=OBS))
    data = {"g": g, "y": y}
    apart = model.fit(data, tol=1e-11, max_iter=5000).evidence(data)
    shared = model.fit(data, tol=1e-11, max_iter=5000, factors=[("mu", "a")]).evidence(data)
    assert {apart.method, shared.method} == {"importance_sampling"}
    assert abs(apart.value - shared.value) < 3 * np.hypot(apart.error, shared.error) < 0.3


def test_models_side_by_side():
    """Of two regressions the evidences are exact; a covariate that is not there costs what it costs."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 2))
    y = 0.3 + X[:, 0] + rng.normal(size=20)

    def fitted(*columns):
        at = cv.Normal("level", 0, 1.0)
        for column in columns:
            at = at + cv.Data(f"x{column}", plates=OBS) * cv.Normal(f"slope{column}", 0, 1.0)
        own = {"y": y, **{f"x{column}": X[:, column] for column in columns}}
        return cv.Model(cv.Normal("y", at, 1.0, plates=OBS)).fit(own, tol=1e-13, max_iter=5000)

    def exact(*columns):
        design = np.column_stack([np.ones(20), X[:, list(columns)]])
        return stats.multivariate_normal(np.zeros(20), np.eye(20) + design @ design.T).logpdf(y)

    data = {"y": y, "x0": X[:, 0], "x1": X[:, 1]}
    fits = {"none": fitted(), "first": fitted(0), "both": fitted(0, 1)}
    found = cv.compare(fits, data, method="second_order")
    told = {row.name: row for row in found.rows}
    for name, columns in {"none": (), "first": (0,), "both": (0, 1)}.items():
        assert told[name].evidence.value == pytest.approx(exact(*columns), abs=1e-6)
    assert found.best == "first"
    assert [row.difference for row in found.rows] == sorted(
        (row.difference for row in found.rows), reverse=True
    )
    assert sum(row.probability for row in found.rows) == pytest.approx(1.0)
    assert told["none"].difference == pytest.approx(exact() - exact(0), abs=1e-6)
    assert "second order" in str(found)
    assert list(found.to_frame()["model"]) == [row.name for row in found.rows]

    bounds = cv.compare(fits)
    assert "only the ELBO" in bounds.remark
    assert "compare(fits, data) estimates log p(x)" in bounds.remark
    asked = cv.compare(fits, data, method="elbo").remark
    assert "only the ELBO" in asked
    assert "method='auto' estimates log p(x)" in asked
    assert "data" not in asked
    (row, *_) = cv.compare(fits, data, method="elbo").rows
    failed = replace(row, evidence=replace(row.evidence, because="the fit has not converged"))
    assert Comparison((failed,), True).remark.endswith("may be off (the fit has not converged).")
    assert "<p>For &#x27;first&#x27;" in bounds._repr_html_()
    assert "<p>" not in found._repr_html_()
    with pytest.raises(cv.ParameterError, match=r"'k', of type KnownVarianceMixture, is not fitted"):
        cv.compare({"none": fits["none"], "k": cv.KnownVarianceMixture()}, data)
    other = cv.Model(cv.Normal("z", 0.0, cv.Gamma("tau", 1, 1), plates=OBS)).fit({"z": y})
    with pytest.raises(cv.ModelError, match="observe the same variables"):
        cv.compare({"y": fits["none"], "z": other}, data)


DIFFERENT = {
    "rows": (lambda x: {"x": x[:30]}, "a number of values of 60 in the fit 'a' and 30"),
    "units": (lambda x: {"x": 1000 * x}, "'x' has the mean"),
    "a transform": (lambda x: {"x": np.exp(x)}, "'x' has the mean"),
    "weights": (
        lambda x: {"x": x, "weights": np.full(60, 2.0)},
        "an average weight of 1 in the fit 'a' and 2",
    ),
    "missing": (
        lambda x: {"x": np.where(np.arange(60) == 3, np.nan, x)},
        "a number of values of 60 in the fit 'a' and 59",
    ),
}


@pytest.mark.parametrize("what", DIFFERENT)
def test_fits_of_different_data_are_not_compared(what):
    """Half of the rows, or y in other units, won by hundreds of nats with a probability of one."""
    x = np.random.default_rng(0).normal(1.0, 2.0, 60)
    model = cv.models.normal_gamma()
    other, message = DIFFERENT[what]
    data = dict(other(x))
    weights = data.pop("weights", None)
    fits = {"a": model.fit({"x": x}), "b": model.fit(data, sample_weight=weights)}
    with pytest.raises(cv.DataError, match=message):
        cv.compare(fits)


@pytest.mark.parametrize("kind", ["flat", "point"])
def test_unknowns_without_a_prior_in_some_models_only_are_refused(kind):
    """A maximum-likelihood mixture won with a probability of one, by the unit of its means."""
    x = np.random.default_rng(0).normal(size=(40, 2))
    proper = cv.models.gaussian_mixture(2, 1).fit({"x": x}, seed=0)
    if kind == "flat":
        other = cv.models.maximum_likelihood_mixture(2, 1).fit({"x": x}, seed=0)
    else:
        other = cv.models.gaussian_mixture(2, 1).fit({"x": x}, seed=0, point=["mean"])
    with pytest.raises(cv.ParameterError, match="'mean' is a point, or has a flat prior, in 'b' and not"):
        cv.compare({"a": proper, "b": other})
    both = cv.compare({"b": other, "c": other})
    assert len(both.rows) == 2
    assert "'mean'" in both.remark
    assert "depends on units" in both.remark


def test_what_is_no_evidence_is_said_to_be_none():
    """With a flat prior of a location log p(x) is that of other units after a change of these: by log of the factor."""
    x = np.random.default_rng(0).normal(2.0, 1.0, size=30)
    noise = cv.Gamma("tau", 2, 2)
    model = cv.Model(cv.Normal("x", cv.Normal("m", 0, 0), noise, plates=OBS))
    found = model.fit({"x": x}, tol=1e-10).evidence({"x": x}, method="second_order")
    assert found.without_prior == ("m",)
    assert "no evidence: 'm' has a flat prior" in str(found)
    # the same model in units a hundredth as large: the density of the data has thirty factors of these, and m adds one
    other = cv.Model(cv.Normal("x", cv.Normal("m", 0, 0), cv.Gamma("tau", 2, 2e4), plates=OBS))
    moved = other.fit({"x": 100 * x}, tol=1e-10).evidence({"x": 100 * x}, method="second_order")
    assert moved.value == pytest.approx(found.value - 29 * np.log(100), abs=1e-4)
    proper = cv.Model(cv.Normal("x", cv.Normal("m", 0, 0.1), cv.Gamma("tau", 2, 2), plates=OBS)).fit({"x": x})
    assert proper.evidence({"x": x}).without_prior == ()
    assert "no evidence" not in str(proper.evidence({"x": x}, method="elbo"))


def test_fits_of_the_same_data_in_another_form_are_compared():
    x = np.random.default_rng(0).normal(1.0, 2.0, 60)
    fits = {"a": cv.models.normal_gamma().fit({"x": x})}
    fits["b"] = cv.models.normal_gamma().fit({"x": x[::-1].astype(np.float32)})
    assert cv.compare(fits).rows[1].difference == pytest.approx(0, abs=1e-4)


def test_a_mixture_of_one_component_has_an_evidence():
    """Its weight is 1 and has no coordinate: by quadrature over mean and precision. Names may be numbers."""
    x = np.random.default_rng(0).normal(1.0, 0.7, 25)
    obs, component = cv.Plate("obs"), cv.Plate("component", 1)
    z = cv.Categorical("z", cv.Dirichlet("weights", np.ones(1)), plates=obs)
    mean = cv.Normal("mean", 0.0, 0.1, plates=component)
    precision = cv.Gamma("precision", 2.0, 2.0, plates=component)
    fitted = cv.Model(cv.Normal("x", mean[z], precision[z], plates=obs)).fit({"x": x}, seed=0)
    mu, tau = np.linspace(-1.0, 3.0, 801)[:, None], np.linspace(1e-3, 8.0, 1600)
    logs = (
        stats.norm.logpdf(mu, 0.0, 10**0.5)
        + stats.gamma.logpdf(tau, 2.0, scale=0.5)
        + 0.5 * len(x) * np.log(tau / (2 * np.pi))
        - 0.5 * tau * np.square(x - mu).sum(axis=1, keepdims=True)
    )
    exact = logsumexp(logs) + np.log((mu[1, 0] - mu[0, 0]) * (tau[1] - tau[0]))
    (row,) = cv.compare({1: fitted}, {"x": x}).rows
    assert row.name == "1"
    assert abs(row.evidence.value - exact) < 5 * row.evidence.error + 1e-3
    assert row.evidence.value > fitted.elbo


@pytest.mark.parametrize("link", [cv.logistic, cv.probit])
def test_the_evidence_of_expected_links_is_that_of_a_grid(link):
    rng = np.random.default_rng(4)
    x = np.stack([np.ones(14), rng.normal(size=14)], axis=1)
    y = (x @ [1.0, 2.0] + rng.logistic(size=14) > 0).astype(int)
    w = cv.MultivariateNormal("w", np.zeros(2), 0.1 * np.eye(2))
    at = cv.dot(cv.Data("x", plates=OBS), w)
    data = {"x": x, "y": y}
    model = cv.Model(cv.Bernoulli("y", link(at, method="expectation"), plates=OBS))
    posterior = model.fit(data, tol=1e-10, max_iter=2000)

    values = np.linspace(-15.0, 20.0, 351)
    grid = np.stack(np.meshgrid(values, values, indexing="ij"), axis=-1).reshape(-1, 2)
    log_probability = log_expit if link is cv.logistic else log_ndtr
    log_joint = log_probability((2 * y - 1) * (grid @ x.T)).sum(axis=1) - 0.05 * np.square(grid).sum(axis=1)
    exact = float(logsumexp(log_joint) + 2 * np.log(values[1] - values[0]) + np.log(0.1 / (2 * np.pi)))
    found = posterior.evidence(data, method="second_order")
    assert posterior.elbo < exact - 0.02
    assert abs(found.value - exact) < 0.4 * (exact - posterior.elbo)
    assert abs(found.value - exact) < 2 * found.error
    # the determinant counts the largest terms three times
    by_determinant = posterior.elbo - 0.5 * posterior.linear_response(data).log_determinant
    assert abs(by_determinant - exact) > 2 * abs(found.value - exact)


def test_a_label_with_one_category_leaves_nothing_to_draw():
    group, obs = cv.Plate("group", 2), cv.Plate("obs")
    z = cv.Categorical("z", [1.0], plates=group)
    rate = cv.Constant("rate", [1.5], plates=cv.Plate("kind", 1))
    x = cv.Poisson("x", rate[z[cv.Data("own", plates=obs)]], plates=obs)
    data = {"x": [1, 4, 2], "own": [0, 1, 0]}
    posterior = cv.Model(x).fit(data)
    assert posterior.evidence(data).value == pytest.approx(stats.poisson.logpmf([1, 4, 2], 1.5).sum())
    with pytest.raises(cv.ModelError, match="hides no numbers that could be drawn"):
        posterior.importance_sample(data)
