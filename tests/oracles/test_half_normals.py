"""Numbers that are not negative: quadrature, SciPy's skew normal, and the kit, which exponential numbers pass too."""

from __future__ import annotations

import numpy as np
import pytest
from galleries.exact import over_grid
from scipy.special import erfcx
from scipy.stats import expon, gamma, halfnorm, multivariate_normal, norm, skewnorm, truncnorm

import caviar as cv
from caviar.families.base.marginals import Marginals
from caviar.testing import check_model, elbo_estimate

OBS = cv.Plate("obs")


@pytest.mark.parametrize("level", [-20.0, -2.0, 0.1, 5.0])
def test_one_coefficient_has_its_exact_posterior_far_from_zero_too(level):
    """A Normal cut off at zero; the mean of the data is not measured from another point."""
    y = level + 0.5 * np.random.default_rng(0).normal(size=6)
    posterior = cv.Model(cv.Normal("y", cv.HalfNormal("a", 0.25), 4.0, plates=OBS)).fit({"y": y})
    variance = 1 / (0.25 + 4.0 * 6)
    mean, sd = variance * 4.0 * y.sum(), variance**0.5
    exact = (
        np.log(2) + multivariate_normal(np.zeros(6), np.eye(6) / 4 + 4.0).logpdf(y) + norm.logcdf(mean / sd)
    )
    assert posterior.elbo == pytest.approx(exact, rel=1e-11)
    cut = truncnorm(-mean / sd, np.inf, loc=mean, scale=sd)
    assert posterior["a"].mean == pytest.approx(cut.mean(), rel=1e-6)
    np.testing.assert_allclose(posterior["a"].interval(0.9), cut.ppf([0.05, 0.95]), rtol=1e-6)
    far = cv.families.TruncatedNormal([-9_999.0, -10_001.0], 1.0).interval(0.9)
    np.testing.assert_allclose(np.diff(far), 0.0, atol=1e-7)


def test_a_hidden_number_of_each_row_is_a_skew_normal():
    """Stochastic frontier (Aigner, Lovell and Schmidt, 1977): noise minus inefficiency, level and widths known."""
    y, spread, noise = np.array([-1.5, 0.3, 1.0, -4.0]), 1.5, 0.6
    u = cv.HalfNormal("u", spread**-2.0, plates=OBS)
    posterior = cv.Model(cv.Normal("y", 1.0 - u, noise**-2.0, plates=OBS)).fit({"y": y})
    exact = skewnorm(-spread / noise, 1.0, np.hypot(spread, noise)).logpdf(y).sum()
    assert posterior.elbo == pytest.approx(exact, rel=1e-11)
    # Jondrow, Lovell, Materov and Schmidt (1982): inefficiencies given the row
    variance = 1 / (spread**-2.0 + noise**-2.0)
    at, sd = (1.0 - y) * variance / noise**2, variance**0.5
    given = at + sd * norm.pdf(at / sd) / norm.cdf(at / sd)
    np.testing.assert_allclose(posterior.local({"y": y})["u"].mean, given, rtol=1e-10)


@pytest.mark.slow
def test_two_coefficients_and_their_width_are_below_the_evidence():
    u, v, y = np.array([1.0, 2.0, 1.0, 2.0]), np.array([0.0, 0.1, 1.0, 1.0]), np.array([1.0, 2.1, 0.6, 1.7])
    tau = cv.Gamma("tau", 2.0, 1.0)
    a, b = cv.HalfNormal("a", tau), cv.HalfNormal("b", tau)
    mean = a * cv.Data("u", plates=OBS) + b * cv.Data("v", plates=OBS)
    data = {"y": y, "u": u, "v": v}
    posterior = cv.Model(cv.Normal("y", mean, 4.0, plates=OBS)).fit(data, tol=1e-12)
    grid, widths = np.linspace(0.005, 4, 200), np.linspace(0.02, 12, 120)
    one, other, width = np.meshgrid(grid, grid, widths, indexing="ij", sparse=True)
    log_p = gamma(2.0).logpdf(width) + np.log(width) - np.log(np.pi / 2) - 0.5 * width * (one**2 + other**2)
    log_p = log_p + sum(norm.logpdf(own, one * p + other * q, 0.5) for own, p, q in zip(y, u, v, strict=True))
    exact, means = over_grid(log_p, grid, grid, widths)
    assert exact - 0.3 < posterior.elbo < exact
    found = [posterior[name].mean for name in ("a", "b", "tau")]
    np.testing.assert_allclose(found, means, rtol=0.12)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [cv.HalfNormal, cv.Exponential])
def test_the_kit_finds_no_fault(kind):
    """Of a factorisation with unknown noise and widths, its draws, and a saved fit."""
    rng = np.random.default_rng(1)
    column = cv.Plate("column", 5)
    data = {"y": np.outer(rng.gamma(2.0, 1.0, 30), rng.gamma(2.0, 1.0, 5)) + 0.3 * rng.normal(size=(30, 5))}
    w = kind("w", 1.0, plates=OBS)
    h = kind("h", cv.Gamma("width", 1.0, 1.0), plates=column)
    model = cv.Model(cv.Normal("y", w * h, cv.Gamma("tau", 1.0, 1.0), plates=(OBS, column)))
    report = check_model(model, data, seed=0)
    assert report.passed, report
    posterior = model.fit(data, seed=0)
    estimate = elbo_estimate(posterior, data, n_draws=200)
    assert abs(posterior.elbo - estimate.value) < 4 * estimate.error
    assert (posterior["h"].mean > 0).all()
    assert (posterior.local(data)["w"].mean > 0).all()
    assert posterior["h"].interval(0.95)[0].min() >= 0


@pytest.mark.parametrize("kind", [cv.HalfNormal, cv.Exponential])
def test_a_saved_posterior_has_the_same_factors(kind, tmp_path):
    posterior = cv.Model(cv.Normal("y", kind("a", 0.25), 4.0, plates=OBS)).fit({"y": [0.3, 1.0]})
    posterior.save(tmp_path / "fit.caviar")
    again = cv.load(tmp_path / "fit.caviar")
    assert again["a"].mean == posterior["a"].mean
    assert again.elbo == posterior.elbo


def test_what_has_no_update_or_no_value_is_refused():
    tau, w = cv.HalfNormal("tau", 1.0), cv.TruncatedNormal("w", 0.0, 1.0, lower=0.0)
    with pytest.raises(cv.ConjugacyError, match=r"Use a Gamma, or a known value"):
        cv.Normal("y", 0.0, tau, plates=OBS)
    with pytest.raises(
        cv.ConjugacyError, match=r"number that is not negative is HalfNormal\('w', precision\)"
    ):
        cv.Normal("y", w * cv.Normal("h", 0, 1), 1.0, plates=OBS)
    with pytest.raises(cv.ParameterError, match=r"give precision=, which is 1 / sigma\*\*2"):
        cv.HalfNormal("a", sigma=2.0)
    with pytest.raises(cv.ModelError, match="'precision' of HalfNormal 'a' is zero"):
        cv.HalfNormal("a", 0.0)
    with pytest.raises(cv.DataError, match="must not be negative; its smallest value is -1"):
        cv.Model(cv.HalfNormal("a", 1.0, plates=OBS)).fit({"a": [1.0, -1.0]})


@pytest.mark.thinned(2)
@pytest.mark.parametrize(
    ("kind", "prior"), [(cv.HalfNormal, halfnorm(scale=2**0.5)), (cv.Exponential, expon(scale=2.0))]
)
def test_corrected_intervals_have_no_negative_numbers(kind, prior):
    """The intervals shown beside an unknown precision are those of quadrature; a Normal's end was at -0.06."""
    y = 0.2 + np.random.default_rng(11).normal(0, 0.5, 12)
    model = cv.Model(cv.Normal("y", kind("a", 0.5), cv.Gamma("tau", 2, 1), plates=OBS))
    posterior = model.fit({"y": y}, uncertainty="second_order")
    a, tau = np.meshgrid(np.linspace(0, 3, 751), np.exp(np.linspace(-5, 4, 451)), indexing="ij")
    log_p = prior.logpdf(a) + gamma(2).logpdf(tau) + np.log(tau)
    log_p += sum(norm.logpdf(own, a, tau**-0.5) for own in y)
    share = np.exp(log_p - log_p.max()).sum(axis=1)
    exact = np.interp([0.025, 0.975], np.cumsum(share) / share.sum(), a[:, 0])
    np.testing.assert_allclose(posterior.interval("a"), exact, atol=0.02)
    assert posterior.interval("a")[0] > 0


def test_members_with_given_moments_have_the_intervals_of_their_own():
    """Also where the moments are those of no member: a Gamma continues the exponential distribution."""
    own = cv.families.TruncatedNormal([-9_000.0, -30.0, -3.0, 0.0, 1.0, 8.0, 39.0, 41.0, 1e6], 0.25)
    sd = np.sqrt(own.variance)
    (found,) = own.entry_marginals((0.025, 0.975))
    matched = type(own).matched_marginals(found, sd, (0.025, 0.975))
    np.testing.assert_allclose([matched.lower, matched.upper], [found.lower, found.upper], rtol=3e-5)
    both = Marginals(np.stack([own.mean, own.mean]))
    several = type(own).matched_marginals(both, np.stack([sd, sd]), (np.array([[0.025], [0.5]]), 0.975))
    np.testing.assert_allclose(several.lower[0], found.lower, rtol=3e-5)
    ends = [
        float(type(own).matched_marginals(Marginals(np.array(1.0)), np.array(wide), (0.025, 0.5)).lower)
        for wide in (1 - 1e-7, 1 + 1e-7)
    ]
    assert ends[0] == pytest.approx(ends[1], rel=1e-5)
    assert ends[0] == pytest.approx(expon.ppf(0.025), rel=1e-5)


@pytest.mark.parametrize("location", [-2e4, -9_999.0, -300.0, -3.0, -1.0, 2.0])
@pytest.mark.parametrize("probability", [1e-6, 0.025, 0.975])
def test_quantiles_have_the_probability_below_them(location: float, probability: float) -> None:
    """By the scaled complementary error function; at -9,999 the difference of two quantiles was wrong by a factor."""
    x = cv.families.TruncatedNormal(location, 1.0).interval(1 - 2 * min(probability, 1 - probability))
    x = float(x[0] if probability < 0.5 else x[1])
    above = np.log(erfcx((x - location) / 2**0.5) / erfcx(-location / 2**0.5)) + location * x - 0.5 * x**2
    assert above == pytest.approx(np.log1p(-probability), rel=1e-8)
