"""Numbers with an exponential prior: quadrature and SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from galleries.exact import over_grid
from scipy.integrate import quad
from scipy.stats import expon, gamma, lomax, norm

import caviar as cv
from caviar.families import TruncatedNormal

OBS = cv.Plate("obs")


@pytest.mark.thinned(2)
@pytest.mark.parametrize("level", [-3.0, -0.2, 0.1, 2.0])
def test_one_coefficient_has_its_exact_posterior(level):
    y = level + 0.5 * np.random.default_rng(0).normal(size=6)
    posterior = cv.Model(cv.Normal("y", cv.Exponential("a", 0.7), 4.0, plates=OBS)).fit({"y": y})

    def joint(a, power=0):
        return a**power * expon(scale=1 / 0.7).pdf(a) * np.prod(norm.pdf(y, a, 0.5))

    whole, first = (quad(joint, 0, np.inf, args=(power,), epsabs=0, limit=200)[0] for power in (0, 1))
    assert posterior.elbo == pytest.approx(np.log(whole), rel=1e-11)
    assert posterior["a"].mean == pytest.approx(first / whole, rel=1e-7)


@pytest.mark.parametrize("rate", [1e-8, 0.5, 4.0, 1e9])
def test_without_a_square_a_truncated_normal_is_exponential(rate):
    q, exact = TruncatedNormal.from_natural((np.array(-rate), np.array(0.0))), expon(scale=1 / rate)
    assert q.mean == pytest.approx(1 / rate, rel=1e-11)
    assert q.variance == pytest.approx(rate**-2, rel=1e-11)
    assert q.entropy() == pytest.approx(exact.entropy(), abs=1e-10)
    assert q.log_partition == pytest.approx(-np.log(rate), abs=1e-10)
    np.testing.assert_allclose(
        q.log_density([0.3 / rate, 9 / rate]), exact.logpdf([0.3 / rate, 9 / rate]), atol=1e-9
    )
    np.testing.assert_allclose(q.interval(0.9), exact.ppf([0.05, 0.95]), rtol=1e-7)
    assert q.sample(4000, seed=0).mean() * rate == pytest.approx(1.0, abs=0.07)


@pytest.mark.parametrize("linear", [0.0, 0.5])
def test_what_does_not_fall_has_no_distribution_without_a_square(linear):
    with pytest.raises(cv.ImproperError, match="precision must be positive"):
        TruncatedNormal.from_natural((np.array(linear), np.array(0.0)))


def test_without_rows_the_prior_is_left():
    """Its divergence from itself is no more than rounding."""
    y = cv.Normal("y", cv.Exponential("a", 2.0, plates=OBS), 4.0, plates=OBS)
    posterior = cv.Model(y).fit({"y": [np.nan, 1.0]}, data_plate="obs")
    assert posterior.local({"y": [np.nan, 1.0]})["a"].mean[0] == pytest.approx(0.5, rel=1e-9)


def test_seen_numbers_with_an_unknown_rate_are_exact():
    x = np.random.default_rng(1).exponential(3.0, 20)
    rate = cv.Gamma("rate", 2.0, 1.5)
    posterior = cv.Model(cv.Exponential("x", rate, plates=OBS)).fit({"x": x})
    after = 2.0 + np.arange(20), 1.5 + np.concatenate([[0.0], np.cumsum(x)[:-1]])
    exact = sum(lomax(a, scale=b).logpdf(own) for own, a, b in zip(x, *after, strict=True))
    assert posterior.elbo == pytest.approx(exact, rel=1e-11)
    assert posterior["rate"].mean == pytest.approx((2.0 + 20) / (1.5 + x.sum()))
    found = posterior.predict({"x": [np.nan, 1.0]})["x"]
    assert found.mean[0] == pytest.approx((1.5 + x.sum()) / (2.0 + 20 - 1), rel=1e-6)


@pytest.mark.starts_of_users
def test_parts_that_are_mostly_absent_are_found():
    """Two parts of twelve columns; the default fit is no lower than from the truth."""
    rng = np.random.default_rng(3)
    amounts, parts = (
        rng.exponential(1.0, (150, 2)),
        rng.exponential(1.0, (12, 2)) * (rng.random((12, 2)) < 0.5),
    )
    y, column = amounts @ parts.T + 0.1 * rng.normal(size=(150, 12)), cv.Plate("column", 12)
    sides = [
        [cv.Exponential(f"{name}{k}", cv.Gamma(f"rate_{name}{k}", 1.0, 1.0), plates=plate) for k in (1, 2)]
        for name, plate in (("w", OBS), ("h", column))
    ]
    (w1, w2), (h1, h2) = sides
    tau = cv.Gamma("tau", 1.0, 1.0)
    model = cv.Model(cv.Normal("y", w1 * h1 + w2 * h2, tau, plates=(OBS, column)))
    posterior = model.fit({"y": y}, seed=0, tol=1e-6)
    points = {"h1": parts[:, 0] + 1e-3, "h2": parts[:, 1] + 1e-3, "tau": 100.0}
    assert posterior.elbo > model.fit({"y": y}, init=points, tol=1e-6).elbo - 0.02 * len(y)
    assert posterior["tau"].mean == pytest.approx(100.0, rel=0.15)


@pytest.mark.slow
def test_two_coefficients_and_their_rate_are_below_the_evidence():
    u, v, y = np.array([1.0, 2.0, 1.0, 2.0]), np.array([0.0, 0.1, 1.0, 1.0]), np.array([1.0, 2.1, 0.6, 1.7])
    rate = cv.Gamma("rate", 2.0, 1.0)
    a, b = cv.Exponential("a", rate), cv.Exponential("b", rate)
    mean = a * cv.Data("u", plates=OBS) + b * cv.Data("v", plates=OBS)
    posterior = cv.Model(cv.Normal("y", mean, 4.0, plates=OBS)).fit({"y": y, "u": u, "v": v}, tol=1e-12)
    grid, rates = np.linspace(0.005, 4, 200), np.linspace(0.02, 16, 160)
    one, other, each = np.meshgrid(grid, grid, rates, indexing="ij", sparse=True)
    log_p = gamma(2.0).logpdf(each) + 2 * np.log(each) - each * (one + other)
    log_p = log_p + sum(norm.logpdf(own, one * p + other * q, 0.5) for own, p, q in zip(y, u, v, strict=True))
    exact, means = over_grid(log_p, grid, grid, rates)
    assert exact - 0.3 < posterior.elbo < exact
    np.testing.assert_allclose([posterior[name].mean for name in ("a", "b", "rate")], means, rtol=0.15)


def test_simulated_numbers_have_the_mean_of_the_prior():
    x = cv.Exponential("x", 4.0, plates=cv.Plate("obs", 4000))
    assert cv.Model(x).simulate(seed=0)["x"].mean() == pytest.approx(0.25, rel=0.06)


def test_what_has_no_update_or_no_value_is_refused():
    with pytest.raises(cv.ConjugacyError, match="Use a Gamma, or a known value"):
        cv.Normal("y", 0.0, cv.Exponential("tau", 1.0), plates=OBS)
    with pytest.raises(cv.ParameterError, match="its name is rate="):
        cv.Exponential("a", lam=2.0)
    with pytest.raises(cv.ModelError, match="'rate' of Exponential 'a' is zero"):
        cv.Exponential("a", 0.0)
    with pytest.raises(
        cv.DataError, match=", an Exponential, must not be negative; its smallest value is -1"
    ):
        cv.Model(cv.Exponential("a", 1.0, plates=OBS)).fit({"a": [1.0, -1.0]})
