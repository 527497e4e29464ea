"""Weights of draws from the densities of the statement, and what is shown of few rows that hide something."""

from unittest.mock import patch

import numpy as np
import pytest
from scipy.special import expit, log_ndtr, logsumexp
from scipy.stats import bernoulli, nbinom, norm

import caviar as cv
from caviar.engine.evaluation.log_joints import log_joints
from caviar.posterior.evidence.by_densities import ByDensities, by_densities
from caviar.posterior.uncertainty.pending import Pending
from caviar.testing import check_intervals

OBS = cv.Plate("obs")


def line(*coefficients):
    """Return an intercept, and slopes of the columns of x."""
    intercept, *slopes = (cv.Normal(name, 0.0, 0.1) for name in coefficients)
    for number, slope in enumerate(slopes):
        intercept = intercept + slope * cv.Data(f"x{number}", plates=OBS)
    return intercept


def table(n, n_columns=2, seed=0):
    rng = np.random.default_rng(seed)
    return {f"x{number}": rng.normal(size=n) for number in range(n_columns)}, rng


def density_of(posterior, data, weights=None):
    problem, row_map = posterior._evaluator.at_points(data, weights)
    counted = posterior._counted(data, weights)
    problem = problem.counting(counted)
    return by_densities(posterior, data, weights, problem, counted), problem, row_map.at(problem.rows)


def answered(kind):
    data, rng = table(12)
    at = line("a", "b", "c")
    if kind == "probit":
        return cv.Bernoulli("y", cv.probit(at), plates=OBS), {**data, "y": rng.integers(0, 2, 12)}
    if kind == "logistic":
        return cv.Bernoulli("y", cv.logistic(at), plates=OBS), {**data, "y": rng.integers(0, 2, 12)}
    if kind == "binomial":
        leaf = cv.Binomial("y", cv.Data("n", plates=OBS), cv.logistic(at), plates=OBS)
        return leaf, {**data, "n": np.full(12, 5), "y": rng.integers(0, 6, 12)}
    return cv.NegativeBinomial("y", cv.exp(at), 3.0, plates=OBS), {**data, "y": rng.poisson(2.0, 12)}


@pytest.mark.parametrize("weights", [None, [0.0, 2.0, *[1.0] * 10]])
@pytest.mark.parametrize("kind", ["probit", "logistic", "binomial", "counts"])
def test_answers_have_the_densities_that_passes_find(kind, weights):
    leaf, data = answered(kind)
    posterior = cv.Model(leaf).fit(data, sample_weight=weights)
    density, problem, row_map = density_of(posterior, data, weights)
    draws = posterior._shared.drawn(posterior._factors, 30, np.random.default_rng(1))
    np.testing.assert_allclose(density(draws), log_joints(problem, draws, row_map), rtol=1e-12)
    lists = {name: own.tolist() for name, own in data.items()}
    np.testing.assert_array_equal(density_of(posterior, lists, weights)[0](draws), density(draws))


def test_groups_without_rows_do_not_count():
    data, rng = table(12, n_columns=1)
    data |= {"g": rng.integers(0, 2, 12), "y": rng.integers(0, 2, 12)}
    effect = cv.Normal("effect", 0.0, cv.Gamma("between", 2, 2), plates=cv.Plate("group", 3))
    at = line("a", "b") + effect[cv.Data("g", plates=OBS)]
    posterior = cv.Model(cv.Bernoulli("y", cv.logistic(at), plates=OBS)).fit(data)
    density, problem, row_map = density_of(posterior, data)
    draws = posterior._shared.drawn(posterior._factors, 20, np.random.default_rng(1))
    np.testing.assert_allclose(density(draws), log_joints(problem, draws, row_map), rtol=1e-12)


def two_outcomes(n=14, seed=3):
    """A number of each row that a measurement and an answer depend on."""
    rng = np.random.default_rng(seed)
    u = rng.normal(size=n)
    data = {"y": 1.0 + u + 0.5 * rng.normal(size=n), "z": (rng.logistic(size=n) < 0.3 + 1.5 * u).astype(int)}
    hidden = cv.Normal("u", 0.0, cv.Gamma("spread", 2, 2), plates=OBS)
    measured = cv.Normal("y", cv.Normal("a", 0.0, 0.1) + hidden, cv.Gamma("tau", 2, 1), plates=OBS)
    at = cv.Normal("b", 0.0, 0.25) + cv.Normal("c", 0.0, 0.25) * hidden
    return cv.Model(measured, cv.Bernoulli("z", cv.logistic(at), plates=OBS)), data


def exactly(draws, data):
    """Return the log density of rows and globals, the number of each row integrated out by quadrature."""
    points = np.linspace(-12.0, 12.0, 4001)[:, None]
    found = []
    for a, b, c, spread, tau in zip(*(draws[name] for name in ("a", "b", "c", "spread", "tau")), strict=True):
        of_u = 0.5 * np.log(spread / (2 * np.pi)) - 0.5 * spread * points**2
        of_y = 0.5 * np.log(tau / (2 * np.pi)) - 0.5 * tau * (data["y"] - a - points) ** 2
        at = b + c * points
        of_z = data["z"] * at - np.logaddexp(0.0, at)
        rows = logsumexp(of_u + of_y + of_z, axis=0) + np.log(points[1, 0] - points[0, 0])
        prior = -0.05 * a**2 - 0.125 * (b**2 + c**2) + 0.5 * np.log(0.1 * 0.25 * 0.25 / (2 * np.pi) ** 3)
        prior += np.log(4.0) + np.log(spread) - 2 * spread + np.log(tau) - tau
        found.append(rows.sum() + prior)
    return np.array(found)


def test_a_number_of_each_row_is_integrated_out():
    model, data = two_outcomes()
    posterior = model.fit(data)
    density, _, _ = density_of(posterior, data)
    draws = posterior._shared.drawn(posterior._factors, 25, np.random.default_rng(1))
    np.testing.assert_allclose(density(draws), exactly(draws, data), rtol=1e-8)
    cut = {name: own[:7] for name, own in draws.items()}
    np.testing.assert_allclose(density(cut), density(draws)[:7], rtol=1e-12)


def test_a_covariate_that_is_known_in_some_rows_is_integrated_out_in_the_others():
    data, rng = table(15, n_columns=1)
    x, y = data["x0"], rng.integers(0, 2, 15)
    is_missing = np.arange(15) % 4 == 0
    hidden = cv.Normal("x", cv.Normal("m", 0.0, 0.1), cv.Gamma("q", 2, 2), plates=OBS)
    at = cv.Normal("a", 0.0, 0.1) + cv.Normal("b", 0.0, 0.1) * hidden
    data = {"x": np.where(is_missing, np.nan, x), "y": y}
    posterior = cv.Model(cv.Bernoulli("y", cv.logistic(at), plates=OBS), hidden).fit(data)
    density, _, _ = density_of(posterior, data)
    draws = posterior._shared.drawn(posterior._factors, 25, np.random.default_rng(1))
    points = np.linspace(-25.0, 25.0, 8001)[:, None]
    found = []
    for a, b, m, q in zip(*(draws[name] for name in ("a", "b", "m", "q")), strict=True):

        def joint(x, a=a, b=b, m=m, q=q):
            of_x = 0.5 * np.log(q / (2 * np.pi)) - 0.5 * q * (x - m) ** 2
            return of_x + y * (a + b * x) - np.logaddexp(0.0, a + b * x)

        missing = logsumexp(joint(points), axis=0) + np.log(points[1, 0] - points[0, 0])
        prior = (
            -0.05 * (a**2 + b**2 + m**2) + 1.5 * np.log(0.1 / (2 * np.pi)) + np.log(4.0) + np.log(q) - 2 * q
        )
        found.append(np.where(is_missing, missing, joint(x)).sum() + prior)
    np.testing.assert_allclose(density(draws), found, rtol=1e-7)


@pytest.mark.parametrize("answer", ["logistic", "counts"])
def test_draws_that_move_the_number_of_a_row_far_beyond_its_factor_have_their_density(answer):
    """A precise measurement has an unknown offset: of a draw of it the number is 50 deviations from where it was."""
    rng = np.random.default_rng(2)
    u, precision = rng.normal(size=8), 2500.0
    data = {"y": u + 0.5 + rng.normal(size=8) / np.sqrt(precision)}
    hidden = cv.Normal("u", cv.Normal("m", 0.0, 1.0), 1.0, plates=OBS)
    measured = cv.Normal("y", cv.Normal("b", 0.0, 1.0) + hidden, precision, plates=OBS)
    at = cv.Normal("c", 0.0, 0.25) * hidden
    if answer == "logistic":
        data["z"] = (rng.logistic(size=8) < 3.0 * u).astype(int)
        leaf = cv.Bernoulli("z", cv.logistic(at), plates=OBS)
    else:
        data["z"] = rng.poisson(np.exp(u))
        leaf = cv.NegativeBinomial("z", cv.exp(at), 3.0, plates=OBS)
    posterior = cv.Model(measured, leaf).fit(data, seed=0)
    density, _, _ = density_of(posterior, data)
    draws = {"m": rng.normal(size=20), "b": rng.normal(size=20), "c": 4.0 * rng.normal(size=20)}
    found = []
    for m, b, c in zip(*draws.values(), strict=True):
        points = (data["y"] - b) + np.linspace(-0.3, 0.3, 4001)[:, None]
        each = norm.logpdf(points, m) + norm.logpdf(data["y"], b + points, precision**-0.5)
        if answer == "logistic":
            each += bernoulli.logpmf(data["z"], expit(c * points))
        else:
            each += nbinom.logpmf(data["z"], 3.0, 1.0 / (1.0 + np.exp(c * points) / 3.0))
        rows = logsumexp(each, axis=0) + np.log(points[1, 0] - points[0, 0])
        found.append(rows.sum() + norm.logpdf([m, b]).sum() + norm.logpdf(c, 0.0, 2.0))
    np.testing.assert_allclose(density(draws), found, atol=1e-3)


def grid_of_coefficients(data, most=14.0, n=141):
    """Return the values of three coefficients of a probit, and their exact posterior weights."""
    side = np.linspace(-most, most, n)
    grid = np.stack(np.meshgrid(side, side, side, indexing="ij"), axis=-1).reshape(-1, 3)
    logs = -0.05 * np.square(grid).sum(axis=1)
    sign = 2.0 * data["y"] - 1.0
    for own, x0, x1 in zip(sign, data["x0"], data["x1"], strict=True):
        logs += log_ndtr(own * (grid @ [1.0, x0, x1]))
    return grid, np.exp(logs - logsumexp(logs))


def test_a_probit_of_few_rows_shows_its_exact_figures():
    """Linear response is off by a standard deviation there, and second order does not hold."""
    data, _ = table(8, seed=5)
    data["y"] = np.array([1, 1, 0, 1, 1, 0, 1, 1])
    posterior = cv.Model(cv.Bernoulli("y", cv.probit(line("a", "b", "c")), plates=OBS)).fit(data)
    assert posterior.uncertainty == "importance_sampling"
    grid, weights = grid_of_coefficients(data)
    for name, values in zip("abc", grid.T, strict=True):
        mean = weights @ values
        sd = np.sqrt(weights @ np.square(values - mean))
        assert posterior.mean(name) == pytest.approx(mean, abs=0.08 * sd)
        assert posterior.sd(name) == pytest.approx(sd, rel=0.06)
        lower, upper = posterior.interval(name, 0.9)
        assert weights @ ((values >= lower) & (values <= upper)) == pytest.approx(0.9, abs=0.03)


@pytest.mark.slow
def test_two_outcomes_with_a_number_of_each_row_show_weighted_draws():
    """By second order the interval of the slope contains about three quarters of the posterior."""
    model, data = two_outcomes()
    posterior = model.fit(data)
    assert posterior.uncertainty == "importance_sampling"
    assert check_intervals(posterior, data, n_steps=2_000, seed=1).worst == pytest.approx(0.9, abs=0.04)


@pytest.mark.parametrize("case", ["missing", "chain", "two numbers", "earlier"])
def test_what_densities_do_not_tell(case):
    data, rng = table(12)
    data["y"] = rng.integers(0, 2, 12)
    at = line("a", "b", "c")
    prior = None
    if case == "missing":
        data["y"] = np.where(np.arange(12) < 2, np.nan, data["y"])
    if case == "chain":
        at = at + cv.dot([1.0], cv.LinearGaussianChain("s", [0.0], [[1.0]], [[0.5]], [[1.0]], along=OBS))
    if case == "two numbers":
        at = at + cv.Normal("u", 0.0, 1.0, plates=OBS) + cv.Normal("v", 0.0, 1.0, plates=OBS)
    model = cv.Model(cv.Bernoulli("y", cv.logistic(at), plates=OBS))
    if case == "earlier":
        prior = model.fit(data)
    posterior = model.fit(data, prior=prior)
    assert density_of(posterior, data)[0] is None


def test_many_rows_take_no_densities_unasked():
    """Figures of 1,500 rows took ten seconds, and the evidence most of a minute."""
    model, data = two_outcomes(n=1500)
    posterior = model.fit(data, seed=0)
    problem, _ = posterior._bound(Pending(data, None))
    found = by_densities(posterior, data, None, problem, {}, is_asked=False)
    assert found.n_draws_of_little_cost(4_000) == 0
    assert not found.center.size
    with patch.object(ByDensities, "__call__", side_effect=AssertionError("densities of many rows")):
        posterior.summary()
        assert "method='importance_sampling' does it" in posterior.evidence(data).remark
