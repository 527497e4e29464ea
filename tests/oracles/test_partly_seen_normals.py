"""Censored and truncated Normals with unknown mean and variance: exact where these are known, else below quadrature."""

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import binom, norm

import caviar as cv

OBS = cv.Plate("obs")
RNG = np.random.default_rng(0)


def recorded(n=60):
    """Return values, recorded up to 1.8, from 0 on, or between whole numbers."""
    x = RNG.normal(1.0, 1.0, n)
    kind = np.where(x > 1.8, 1, np.where(x < 0, -1, 0))
    y = np.clip(x, 0, 1.8)
    between = np.arange(20, 28)
    kind[between], y[between] = 2, np.floor(x[between])
    return {"y": y, "kind": kind, "until": y + 1.0}


DATA = recorded()


def censored(mean, precision, names=("kind", "until")):
    kind, until = (cv.Data(name, plates=OBS) for name in names)
    return cv.Model(cv.CensoredNormal("y", mean, precision, censored=kind, until=until, plates=OBS))


def log_likelihood(mean, precision, data=DATA):
    """Return the log-likelihood of each record, records last."""
    m, sd = np.asarray(mean)[..., None], np.asarray(precision)[..., None] ** -0.5
    y, until = data["y"], data["until"]
    between = np.log(np.maximum(norm.cdf(until, m, sd) - norm.cdf(y, m, sd), 1e-300))
    ways = [norm.logpdf(y, m, sd), norm.logsf(y, m, sd), norm.logcdf(y, m, sd)]
    return np.select([data["kind"] == own for own in (0, 1, -1)], ways, between)


def test_known_mean_and_precision_are_exact():
    posterior = censored(0.7, 1.3).fit(DATA)
    assert posterior.elbo == pytest.approx(log_likelihood(0.7, 1.3).sum(), rel=1e-13)
    value = posterior.local(DATA)["y.value"]
    exact = DATA["kind"] == 0
    np.testing.assert_array_equal(value.mean[exact], DATA["y"][exact])
    assert (value.mean[DATA["kind"] == 1] > 1.8).all()
    assert (value.mean[DATA["kind"] == -1] < 0).all()


def test_both_unknown_are_the_updates_by_hand():
    posterior = censored(cv.Normal("mu", 0.5, 0.1), cv.Gamma("tau", 2.0, 1.0)).fit(DATA, tol=1e-14)
    mu, tau = posterior["mu"], posterior["tau"]
    sd, m = float(tau.mean) ** -0.5, float(mu.mean)
    lower = np.where(DATA["kind"] == -1, -np.inf, DATA["y"])
    upper = np.select([DATA["kind"] == 1, DATA["kind"] == 2], [np.inf, DATA["until"]], DATA["y"])
    a, b = (lower - m) / sd, (upper - m) / sd
    inside = a < b
    z = np.where(inside, norm.cdf(b) - norm.cdf(a), 1.0)
    first = np.where(inside, m + sd * (norm.pdf(a) - norm.pdf(b)) / z, DATA["y"])
    ends = np.where(np.isfinite(a), a, 0.0) * norm.pdf(a) - np.where(np.isfinite(b), b, 0.0) * norm.pdf(b)
    second = np.where(inside, sd**2 * (1 + ends / z) + 2 * m * first - m**2, DATA["y"] ** 2)
    assert mu.precision == pytest.approx(0.1 + 60 * tau.mean, rel=1e-7)
    assert mu.mean == pytest.approx((0.05 + tau.mean * first.sum()) / mu.precision, rel=1e-7)
    assert tau.shape == pytest.approx(32.0)
    squares = second - 2 * first * m + mu.variance + m**2
    assert tau.rate == pytest.approx(1.0 + 0.5 * squares.sum(), rel=1e-7)


MU, TAU = np.meshgrid(np.linspace(-0.5, 2.3, 200), np.exp(np.linspace(-1.5, 1.5, 150)), indexing="ij")


def over_grid(likelihood):
    """Return evidence, mean and variance of mu with the priors N(0.5, 1) and Gamma(2, 2), by quadrature."""
    joint = likelihood + norm.logpdf(MU, 0.5, 1.0) + 2 * np.log(2.0) + np.log(TAU) - 2.0 * TAU + np.log(TAU)
    cell = (MU[1, 0] - MU[0, 0]) * np.log(TAU[0, 1] / TAU[0, 0])
    weights = np.exp(joint - logsumexp(joint))
    mean = (weights * MU).sum()
    return logsumexp(joint) + np.log(cell), mean, (weights * MU**2).sum() - mean**2


@pytest.mark.slow
def test_both_unknown_lie_below_the_evidence_by_quadrature():
    posterior = censored(cv.Normal("mu", 0.5, 1.0), cv.Gamma("tau", 2.0, 2.0)).fit(DATA, tol=1e-12)
    total = log_likelihood(MU, TAU).sum(axis=-1)
    evidence, mean, variance = over_grid(total)
    assert evidence - 0.4 < posterior.elbo < evidence
    assert posterior["mu"].mean == pytest.approx(mean, abs=0.01)
    assert posterior.linear_response(DATA).sd("mu") == pytest.approx(variance**0.5, rel=0.04)


def test_truncated_values_have_their_exact_density():
    y = np.array([0.4, 0.9, 1.7, 2.6])
    posterior = cv.Model(cv.TruncatedNormal("y", 0.7, 1.3, lower=0.3, upper=3.0, plates=OBS)).fit({"y": y})
    sd = 1.3**-0.5
    window = norm.cdf(3.0, 0.7, sd) - norm.cdf(0.3, 0.7, sd)
    assert posterior.elbo == pytest.approx((norm.logpdf(y, 0.7, sd) - np.log(window)).sum(), rel=1e-13)
    one_side = cv.Model(cv.TruncatedNormal("y", 0.7, 1.3, lower=cv.Data("from", plates=OBS), plates=OBS))
    start = np.array([0.4, 0.0, -1.0, 2.5])
    expected = (norm.logpdf(y, 0.7, sd) - norm.logsf(start, 0.7, sd)).sum()
    assert one_side.fit({"y": y, "from": start}).elbo == pytest.approx(expected, rel=1e-13)


@pytest.mark.slow
def test_truncated_values_of_an_unknown_normal_lie_below_the_evidence():
    x = RNG.normal(1.0, 1.0, 1200)
    y = x[(x > 0.0) & (x < 3.0)]
    tau = cv.Gamma("tau", 2.0, 2.0)
    leaf = cv.TruncatedNormal("y", cv.Normal("mu", 0.5, 1.0), tau, lower=0.0, upper=3.0, plates=OBS)
    posterior = cv.Model(leaf).fit({"y": y}, tol=1e-12)
    sd = TAU**-0.5
    window = np.log(np.maximum(norm.cdf(3.0, MU, sd) - norm.cdf(0.0, MU, sd), 1e-300))
    squares = np.square(y - y.mean()).sum() + len(y) * (y.mean() - MU) ** 2
    total = 0.5 * len(y) * np.log(TAU / (2 * np.pi)) - 0.5 * TAU * squares - len(y) * window
    evidence, mean, variance = over_grid(total)
    assert evidence - 2.0 < posterior.elbo < evidence
    assert posterior["mu"].mean == pytest.approx(mean, abs=variance**0.5)
    # mean field is far too narrow, for what was not seen would move with the mean
    assert posterior["mu"].variance < 0.5 * variance
    assert posterior.linear_response({"y": y}).sd("mu") == pytest.approx(variance**0.5, rel=0.1)
    assert np.diff(posterior.elbo_trace).min() > -1e-10


def test_a_censored_regression_finds_the_slope_that_least_squares_misses():
    rng = np.random.default_rng(2)
    design = np.column_stack([np.ones(400), rng.normal(size=400)])
    x = design @ [0.5, 1.0] + 0.7 * rng.normal(size=400)
    y, kind = np.minimum(x, 1.0), (x > 1.0).astype(int)
    w = cv.MultivariateNormal("w", np.zeros(2), 0.01 * np.eye(2))
    mean = cv.dot(cv.Data("X", plates=OBS), w)
    leaf = cv.CensoredNormal(
        "y", mean, cv.Gamma("tau", 1, 1), censored=cv.Data("kind", plates=OBS), plates=OBS
    )
    posterior = cv.Model(leaf).fit({"y": y, "X": design, "kind": kind})
    np.testing.assert_allclose(posterior["w"].mean, [0.5, 1.0], atol=0.12)
    assert np.linalg.lstsq(design, y, rcond=None)[0][1] < 0.75


def test_missing_records_weights_and_mixtures():
    model, n = censored(cv.Normal("mu", 0.5, 0.1), cv.Gamma("tau", 2.0, 1.0)), 10
    gaps = {**DATA, "y": np.where(np.arange(60) < n, np.nan, DATA["y"])}
    rest = {name: own[n:] for name, own in DATA.items()}
    assert model.fit(gaps).elbo == pytest.approx(model.fit(rest).elbo, rel=1e-9)
    weights = np.where(np.arange(60) < n, 2.0, 1.0)
    twice = {name: np.concatenate([own[:n], own]) for name, own in DATA.items()}
    weighted = model.fit(DATA, sample_weight=weights, tol=1e-12)
    assert weighted.elbo == pytest.approx(model.fit(twice, tol=1e-12).elbo, rel=1e-10)
    z = cv.Categorical("z", [0.4, 0.6], plates=OBS)
    means = np.array([-1.0, 2.0])
    mixture = censored(cv.Constant("means", means, plates=cv.Plate("kind of", 2))[z], 1.3)
    joint = np.log([0.4, 0.6]) + np.stack([log_likelihood(m, 1.3) for m in means], axis=1)
    assert mixture.fit(DATA).elbo == pytest.approx(logsumexp(joint, axis=1).sum(), rel=1e-12)


def test_a_label_that_chooses_the_width_beside_what_is_not_seen():
    """The label and what is not seen share a factor, or have one each: then nothing is said of it at first."""
    z = cv.Categorical("z", [0.4, 0.6], plates=OBS)
    width = cv.Constant("width", [1.0, 2.0], plates=cv.Plate("kind of", 2))
    x, sd = np.array([0.3, -0.5, 2.0]), np.array([1.0, 2.0]) ** -0.5
    truncated = cv.Model(cv.TruncatedNormal("y", 0.0, width[z], lower=-1.0, plates=OBS))
    inside = norm.logpdf(x[:, None], 0, sd) - norm.logsf(-1.0, 0, sd)
    evidence = logsumexp(np.log([0.4, 0.6]) + inside, axis=1).sum()
    assert truncated.fit({"y": x}).elbo == pytest.approx(evidence, rel=1e-12)
    assert evidence - 1 < truncated.fit({"y": x}, factors=[]).elbo < evidence
    above = cv.Model(cv.CensoredNormal("y", 0.0, width[z], censored=1, plates=OBS))
    evidence = logsumexp(np.log([0.4, 0.6]) + norm.logsf(x[:, None], 0, sd), axis=1).sum()
    assert above.fit({"y": x}).elbo == pytest.approx(evidence, rel=1e-12)
    assert evidence - 1 < above.fit({"y": x}, factors=[]).elbo < evidence


@pytest.mark.usefixtures("figures_of_factors")
def test_saved_simulated_and_predicted(tmp_path):
    leaf = cv.TruncatedNormal(
        "y", cv.Normal("mu", 0.5, 1.0), cv.Gamma("tau", 2.0, 2.0), lower=0.0, plates=OBS
    )
    for model, data in (
        (censored(cv.Normal("mu", 0.5, 1.0), 2.0), DATA),
        (cv.Model(leaf), {"y": [0.3, 1.0, 0.2]}),
    ):
        posterior = model.fit(data)
        posterior.save(tmp_path / "part.caviar")
        again = cv.load(tmp_path / "part.caviar")
        assert repr(again.model.leaves[0].arguments) == repr(model.leaves[0].arguments)
        np.testing.assert_array_equal(again["mu"].mean, posterior["mu"].mean)
    drawn = cv.Model(leaf).simulate(0, sizes={"obs": 200})
    assert drawn["y"].min() > 0
    new = {name: own[:3] for name, own in DATA.items() if name != "y"}
    predicted = censored(cv.Normal("mu", 0.5, 1.0), 2.0).fit(DATA).predict(new)["y"]
    np.testing.assert_allclose(predicted.sd, np.sqrt(0.5 + 1 / 121), rtol=1e-6)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: cv.TruncatedNormal("y", 0, 1), "'y' has no limit: give lower= or upper="),
        (lambda: cv.TruncatedNormal("y", 0, 1, lower=cv.Normal("a", 0, 1)), "'lower' .* must be known"),
        (lambda: cv.CensoredNormal("y", 0, 1, censored=3), "'censored' .* must be 0 .the value itself."),
        (
            lambda: cv.CensoredNormal("y", cv.NormalGamma("t", 0, 1, 1, 1).mean, 1, censored=0),
            "cannot be a part of the joint factor",
        ),
        (
            lambda: cv.Normal("x", cv.CensoredNormal("y", 0, 1, censored=0), 1),
            "cannot be the CensoredNormal 'y', which can only be observed",
        ),
    ],
)
def test_what_has_no_update_is_refused_when_stated(make, words):
    with pytest.raises(cv.CaviarError, match=words):
        make()


def test_records_that_cannot_be_are_refused():
    window = cv.Model(cv.TruncatedNormal("y", 0, 1, lower=0.0, plates=OBS))
    with pytest.raises(cv.DataError, match=r"row 1 has -0.5, and the window is from 0 to inf"):
        window.fit({"y": [0.5, -0.5]})
    with pytest.raises(cv.DataError, match=r"must not be above until=; row 0 has 2 and 1"):
        censored(0.0, 1.0).fit({"y": [2.0, 1.0], "kind": [2, 0], "until": [1.0, 0.0]})
    alone = cv.Model(cv.CensoredNormal("y", 0, 1, censored=cv.Data("kind", plates=OBS), plates=OBS))
    with pytest.raises(cv.DataError, match="needs until="):
        alone.fit({"y": [2.0, 1.0], "kind": [2, 0]})


@pytest.mark.parametrize("kind", ["censored", "ordered", "truncated"])
def test_a_single_answer_without_rows(kind):
    """Then what is not seen is a global variable, which begins where the answer says."""
    a = cv.Normal("a", 0.0, 1.0)
    leaf, value = {
        "censored": (cv.CensoredNormal("y", a, 1.0, censored=1), 0.3),
        "ordered": (cv.Categorical("y", cv.ordered(a, [-0.5, 0.7])), 0),
        "truncated": (cv.TruncatedNormal("y", a, 1.0, lower=-1.0), 0.3),
    }[kind]
    posterior = cv.Model(leaf).fit({"y": value}, tol=1e-10)
    assert posterior.converged
    grid = np.linspace(-9, 9, 4001)
    likely = {
        "censored": norm.logsf(0.3, grid),
        "ordered": norm.logcdf(-0.5, grid),
        "truncated": norm.logpdf(0.3, grid) - norm.logsf(-1.0, grid),
    }[kind]
    evidence = logsumexp(likely + norm.logpdf(grid)) + np.log(grid[1] - grid[0])
    assert evidence - 0.3 < posterior.elbo < evidence


@pytest.mark.parametrize("kind", ["binomial", "censored"])
def test_known_arrays_may_have_their_plates_in_another_order(kind):
    """Two plates of one size beside the rows: the wrong order would be taken in silence."""
    rng, first, second = np.random.default_rng(0), cv.Plate("first", 2), cv.Plate("second", 2)
    beside, turned = rng.integers(1, 9, (5, 2, 2)), cv.Data("beside", plates=(OBS, second, first))
    plates = (OBS, first, second)
    if kind == "binomial":
        y = np.minimum(beside.swapaxes(1, 2), rng.integers(0, 5, (5, 2, 2)))
        model = cv.Model(cv.Binomial("y", turned, 0.3, plates=plates))
        exact = binom.logpmf(y, beside.swapaxes(1, 2), 0.3).sum()
    else:
        y, beside = rng.normal(size=(5, 2, 2)), beside % 2
        model = cv.Model(cv.CensoredNormal("y", 0.0, 1.0, censored=turned, plates=plates))
        exact = np.where(beside.swapaxes(1, 2), norm.logsf(y), norm.logpdf(y)).sum()
    assert model.fit({"y": y, "beside": beside}).elbo == pytest.approx(exact, rel=1e-12)


def few(n=10, precision=0.1):
    """Return ten values between 0 and 3, and a fit in which mean and precision of all values are unknown."""
    x = np.random.default_rng(0).normal(1.0, 1.0, 60)
    y = x[(x > 0.0) & (x < 3.0)][:n]
    leaf = cv.TruncatedNormal(
        "y", cv.Normal("mu", 0.0, precision), cv.Gamma("tau", 1.0, 1.0), lower=0.0, upper=3.0, plates=OBS
    )
    return y, cv.Model(leaf).fit({"y": y})


@pytest.mark.slow
def test_a_long_tail_has_a_finite_deviation_where_the_prior_has_one():
    """A draw makes up an eighth of the variance, which said that it is infinite."""
    y, posterior = few()
    mu, tau = np.meshgrid(np.linspace(-25, 25, 2001), np.exp(np.linspace(-12, 4, 400)), indexing="ij")
    sd = tau**-0.5
    window = logsumexp([norm.logcdf((3.0 - mu) / sd), norm.logcdf(-mu / sd)], axis=0, b=[[[1.0]], [[-1.0]]])
    above = logsumexp([norm.logsf(-mu / sd), norm.logsf((3.0 - mu) / sd)], axis=0, b=[[[1.0]], [[-1.0]]])
    joint = norm.logpdf(mu, 0.0, 10**0.5) - tau + np.log(tau) - len(y) * np.where(mu < 1.5, above, window)
    joint = joint + norm.logpdf(y[:, None, None], mu, sd).sum(axis=0)
    weights = np.exp(joint - logsumexp(joint))
    mean = (weights * mu).sum()
    exact = np.sqrt((weights * mu**2).sum() - mean**2)
    assert posterior.mean("mu") == pytest.approx(mean, abs=0.1 * exact)
    assert posterior.sd("mu") == pytest.approx(exact, rel=0.1)
    assert "mu: single values of a long tail decide" in posterior.summary().remark


def test_figures_of_a_second_fit_of_one_statement():
    """Its structure is that of the first fit, without the values of its constants."""
    for precision in (0.1, 1e-4):
        _, posterior = few(precision=precision)
        assert posterior.sd("mu") > 0.3
