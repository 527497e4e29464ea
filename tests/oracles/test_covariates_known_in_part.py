"""Hidden variables of the rows that the data have in some rows: covariates with missing values."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

import caviar as cv

N = 30
OBS = cv.Plate("obs")
GONE = np.random.default_rng(0).random(N) < 0.4


def in_part(values: np.ndarray) -> np.ndarray:
    """Return values with NaN where they are not known."""
    found = np.array(values, dtype=float)
    found[GONE] = np.nan
    return found


def number_zero_or_one(rng: np.random.Generator) -> tuple[cv.Model, dict[str, Any], np.ndarray]:
    x = (rng.random(N) < 0.3).astype(float)
    y = 1.0 + 2.0 * x + rng.normal(size=N)
    model = cv.Model(cv.Normal("y", 1.0 + 2.0 * cv.Bernoulli("x", 0.3, plates=OBS), 1.0, plates=OBS))
    zero, one = np.log(0.7) + stats.norm.logpdf(y, 1.0), np.log(0.3) + stats.norm.logpdf(y, 3.0)
    return model, {"x": x, "y": y}, np.where(GONE, np.logaddexp(zero, one), np.where(x == 1, one, zero))


def number(rng: np.random.Generator) -> tuple[cv.Model, dict[str, Any], np.ndarray]:
    x = rng.normal(1.0, 2.0, size=N)
    y = 1.0 + 2.0 * x + rng.normal(size=N)
    model = cv.Model(cv.Normal("y", 1.0 + 2.0 * cv.Normal("x", 1.0, 0.25, plates=OBS), 1.0, plates=OBS))
    both = stats.norm.logpdf(x, 1.0, 2.0) + stats.norm.logpdf(y, 1.0 + 2.0 * x)
    return model, {"x": x, "y": y}, np.where(GONE, stats.norm.logpdf(y, 3.0, np.sqrt(17.0)), both)


def location(rng: np.random.Generator) -> tuple[cv.Model, dict[str, Any], np.ndarray]:
    x = rng.normal(100.0, 2.0, size=N)
    y = x + rng.normal(size=N)
    model = cv.Model(cv.Normal("y", cv.Normal("x", 100.0, 0.25, plates=OBS), 1.0, plates=OBS))
    both = stats.norm.logpdf(x, 100.0, 2.0) + stats.norm.logpdf(y, x)
    return model, {"x": x, "y": y}, np.where(GONE, stats.norm.logpdf(y, 100.0, np.sqrt(5.0)), both)


def rate(rng: np.random.Generator) -> tuple[cv.Model, dict[str, Any], np.ndarray]:
    x = rng.gamma(2.0, 1 / 1.5, size=N)
    y = rng.poisson(x)
    model = cv.Model(cv.Poisson("y", cv.Gamma("x", 2.0, 1.5, plates=OBS), plates=OBS))
    both = stats.gamma.logpdf(x, 2.0, scale=1 / 1.5) + stats.poisson.logpmf(y, x)
    return model, {"x": x, "y": y}, np.where(GONE, stats.nbinom.logpmf(y, 2.0, 1.5 / 2.5), both)


def precision(rng: np.random.Generator) -> tuple[cv.Model, dict[str, Any], np.ndarray]:
    x = rng.gamma(2.0, 1 / 1.5, size=N)
    y = rng.normal(size=N) / np.sqrt(x)
    model = cv.Model(cv.Normal("y", 0.0, cv.Gamma("x", 2.0, 1.5, plates=OBS), plates=OBS))
    both = stats.gamma.logpdf(x, 2.0, scale=1 / 1.5) + stats.norm.logpdf(y, 0.0, 1 / np.sqrt(x))
    return model, {"x": x, "y": y}, np.where(GONE, stats.t.logpdf(y, 4.0, 0.0, np.sqrt(0.75)), both)


def probability(rng: np.random.Generator) -> tuple[cv.Model, dict[str, Any], np.ndarray]:
    x = rng.beta(2.0, 3.0, size=N)
    y = (rng.random(N) < x).astype(int)
    model = cv.Model(cv.Bernoulli("y", cv.Beta("x", 2.0, 3.0, plates=OBS), plates=OBS))
    both = stats.beta.logpdf(x, 2.0, 3.0) + np.log(np.where(y == 1, x, 1 - x))
    return model, {"x": x, "y": y}, np.where(GONE, np.log(np.where(y == 1, 0.4, 0.6)), both)


def probabilities(rng: np.random.Generator) -> tuple[cv.Model, dict[str, Any], np.ndarray]:
    a = np.array([1.0, 2.0, 3.0])
    x = rng.dirichlet(a, size=N)
    y = np.array([rng.choice(3, p=own) for own in x])
    model = cv.Model(cv.Categorical("y", cv.Dirichlet("x", a, plates=OBS), plates=OBS))
    both = stats.dirichlet.logpdf(x.T, a) + np.log(x[np.arange(N), y])
    return model, {"x": x, "y": y}, np.where(GONE, np.log(a[y] / a.sum()), both)


def vector(rng: np.random.Generator) -> tuple[cv.Model, dict[str, Any], np.ndarray]:
    m, covariance, w = np.array([1.0, -1.0]), np.array([[1.0, 0.5], [0.5, 2.0]]), np.array([1.0, 2.0])
    x = rng.multivariate_normal(m, covariance, size=N)
    y = x @ w + rng.normal(size=N)
    hidden = cv.MultivariateNormal("x", m, np.linalg.inv(covariance), plates=OBS)
    both = stats.multivariate_normal.logpdf(x, m, covariance) + stats.norm.logpdf(y, x @ w)
    alone = stats.norm.logpdf(y, w @ m, np.sqrt(1.0 + w @ covariance @ w))
    model = cv.Model(cv.Normal("y", cv.dot(w, hidden), 1.0, plates=OBS))
    return model, {"x": x, "y": y}, np.where(GONE, alone, both)


def precision_matrix(rng: np.random.Generator) -> tuple[cv.Model, dict[str, Any], np.ndarray]:
    prior = stats.wishart(5, np.eye(2) / 5)
    x = prior.rvs(N, random_state=1)
    y = np.array([rng.multivariate_normal(np.zeros(2), np.linalg.inv(own)) for own in x])
    hidden = cv.Wishart("x", 5.0, 5.0 * np.eye(2), plates=OBS)
    pairs = zip(x, y, strict=True)
    given = [stats.multivariate_normal.logpdf(v, np.zeros(2), np.linalg.inv(own)) for own, v in pairs]
    both = [prior.logpdf(own) for own in x] + np.array(given)
    alone = stats.multivariate_t(np.zeros(2), 1.25 * np.eye(2), df=4).logpdf(y)
    model = cv.Model(cv.MultivariateNormal("y", np.zeros(2), hidden, plates=OBS))
    return model, {"x": x, "y": y}, np.where(GONE, alone, both)


CASES = (
    number_zero_or_one,
    number,
    location,
    rate,
    precision,
    probability,
    probabilities,
    vector,
    precision_matrix,
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_with_known_globals_the_elbo_is_the_log_density_of_what_is_there(case: Callable[..., Any]) -> None:
    model, data, exact = case(np.random.default_rng(1))
    data["x"] = in_part(data["x"])
    posterior = model.fit(data)
    assert posterior.elbo == pytest.approx(exact.sum(), abs=1e-9)

    # hidden in all rows, those that are not known have the same distribution
    found, hidden = posterior.local(data)["x"], model.fit({"y": data["y"]}).local({"y": data["y"]})["x"]
    np.testing.assert_array_equal(found.mean[~GONE], data["x"][~GONE])
    np.testing.assert_allclose(found.mean[GONE], hidden.mean[GONE], rtol=1e-12)
    spread = "covariance" if case is vector else "variance"
    assert not np.any(getattr(found, spread)[~GONE])
    np.testing.assert_allclose(getattr(found, spread)[GONE], getattr(hidden, spread)[GONE], rtol=1e-12)

    weights = np.random.default_rng(2).integers(1, 3, N).astype(float)
    assert model.fit(data, sample_weight=weights).elbo == pytest.approx(weights @ exact, abs=1e-9)
    assert model.fit(data, executor=2).elbo == posterior.elbo


def test_several_values_a_row() -> None:
    rng, item = np.random.default_rng(3), cv.Plate("item", 3)
    x = (rng.random((N, 3)) < 0.3).astype(float)
    y = 1.0 + 2.0 * x + rng.normal(size=(N, 3))
    zero, one = np.log(0.7) + stats.norm.logpdf(y, 1.0), np.log(0.3) + stats.norm.logpdf(y, 3.0)
    gone = rng.random((N, 3)) < 0.4
    exact = np.where(gone, np.logaddexp(zero, one), np.where(x == 1, one, zero)).sum()
    for turned in (False, True):
        plates, swap = ((item, OBS), np.transpose) if turned else ((OBS, item), np.asarray)
        own = cv.Bernoulli("x", 0.3, plates=plates)
        model = cv.Model(cv.Normal("y", 1.0 + 2.0 * own, 1.0, plates=plates))
        data = {"x": swap(np.where(gone, np.nan, x)), "y": swap(y)}
        assert model.fit(data, data_plate="obs").elbo == pytest.approx(exact, abs=1e-9)


def regression(prior: float = 0.1) -> cv.Model:
    """Return a line of a number and a number 0 or 1, whose own distributions are unknown, too."""
    number = cv.Normal("x", cv.Normal("m", 0, prior), cv.Gamma("t", 2, 2), plates=OBS)
    yes = cv.Bernoulli("s", cv.Beta("p", 1, 1), plates=OBS)
    line = cv.Normal("a", 0, prior) + cv.Normal("b", 0, prior) * number + cv.Normal("c", 0, prior) * yes
    return cv.Model(cv.Normal("y", line, cv.Gamma("tau", 2, 2), plates=OBS))


def data_of_regression(n: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    x, s = rng.normal(1.0, 2.0, size=n), (rng.random(n) < 0.4).astype(float)
    y = 1.0 + 2.0 * x - 1.5 * s + rng.normal(scale=0.7, size=n)
    return {
        "x": np.where(rng.random(n) < 0.3, np.nan, x),
        "s": np.where(rng.random(n) < 0.3, np.nan, s),
        "y": y,
    }


def gibbs(
    data: dict[str, np.ndarray], n_draws: int, rng: np.random.Generator, prior: float = 0.1
) -> np.ndarray:
    """Return draws of (a, b, c, m, p), (n_draws, 5), from the posterior of the regression."""
    y, x, s = data["y"], data["x"].copy(), data["s"].copy()
    no_x, no_s = np.isnan(x), np.isnan(s)
    x[no_x], s[no_s] = np.nanmean(x), 0.0
    w, m, t, p, tau, draws = np.zeros(3), 0.0, 1.0, 0.5, 1.0, []
    for _ in range(n_draws):
        columns = np.column_stack([np.ones(len(y)), x, s])
        covariance = np.linalg.inv(tau * columns.T @ columns + prior * np.eye(3))
        w = rng.multivariate_normal(covariance @ (tau * columns.T @ y), covariance)
        tau = rng.gamma(2 + len(y) / 2, 1 / (2 + np.square(y - columns @ w).sum() / 2))
        m = rng.normal(t * x.sum() / (prior + t * len(y)), (prior + t * len(y)) ** -0.5)
        t = rng.gamma(2 + len(y) / 2, 1 / (2 + np.square(x - m).sum() / 2))
        p = rng.beta(1 + s.sum(), 1 + len(s) - s.sum())
        spread = t + tau * w[1] ** 2
        at = (t * m + tau * w[1] * (y - w[0] - w[2] * s)) / spread
        x = np.where(no_x, rng.normal(at, spread**-0.5), x)
        rest = y - w[0] - w[1] * x
        odds = np.log(p / (1 - p)) - tau / 2 * (np.square(rest - w[2]) - np.square(rest))
        s = np.where(no_s, rng.random(len(y)) < 1 / (1 + np.exp(-odds)), s)
        draws.append([*w, m, p])
    return np.array(draws[n_draws // 10 :])


@pytest.mark.slow
@pytest.mark.parametrize(("at", "prior"), [(0.0, 0.1), (1000.0, 1e-7)])
def test_means_and_widths_of_a_regression_are_those_of_gibbs_sampling(at: float, prior: float) -> None:
    """Also of a number that is 500 standard deviations from 0."""
    rng = np.random.default_rng(4)
    data = data_of_regression(150, rng)
    data["x"] += at
    posterior, draws = regression(prior).fit(data, tol=1e-10), gibbs(data, 6000, rng, prior)
    found = np.array([[posterior.mean(name), posterior.sd(name)] for name in "abcmp"])
    sd = draws.std(axis=0)
    # the share of ones has a bias of mean field where both are missing, and depend on each other
    assert np.all(np.abs(found[:, 0] - draws.mean(axis=0)) < np.array([0.25, 0.25, 0.25, 0.25, 0.75]) * sd)
    assert np.all(np.abs(found[:, 1] / sd - 1) < 0.15)
    # without what is known of rows in which one of them is missing, the line is less certain
    whole = ~np.isnan(data["x"] + data["s"])
    fewer = regression(prior).fit({name: own[whole] for name, own in data.items()})
    assert fewer.sd("b") > 1.05 * posterior.sd("b")


def test_evidence_and_draws_are_those_of_quadrature() -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(1.0, 2.0, size=N)
    data = {"x": in_part(x), "y": 1.0 + 2.0 * x + rng.normal(scale=0.7, size=N)}
    hidden = cv.Normal("x", 1.0, 0.25, plates=OBS)
    model = cv.Model(cv.Normal("y", 1.0 + cv.Normal("b", 0, 0.01) * hidden, 2.0, plates=OBS))
    posterior = model.fit(data)
    b = np.linspace(1.4, 2.6, 4001)[:, None]
    rows = np.where(
        GONE,
        stats.norm.logpdf(data["y"], 1.0 + b, np.sqrt(0.5 + 4.0 * b**2)),
        stats.norm.logpdf(x, 1.0, 2.0) + stats.norm.logpdf(data["y"], 1.0 + b * x, np.sqrt(0.5)),
    )
    log_joint = stats.norm.logpdf(b[:, 0], 0.0, 10.0) + rows.sum(axis=1)
    evidence = logsumexp(log_joint) + np.log(b[1, 0] - b[0, 0])
    shares = np.exp(log_joint - logsumexp(log_joint))
    mean = shares @ b[:, 0]
    sd = np.sqrt(shares @ np.square(b[:, 0] - mean))
    assert evidence - 0.2 < posterior.elbo < evidence
    assert abs(posterior.mean("b") - mean) < 0.02 * sd
    assert posterior.sd("b") == pytest.approx(sd, rel=0.01)
    assert posterior.importance_sample(data, n_draws=2000, seed=0).log_evidence == pytest.approx(
        evidence, abs=0.02
    )
    curved = posterior.linear_response(data).sd("b")
    assert curved == pytest.approx(sd, rel=0.02)


def test_two_missing_in_one_row_are_those_of_enumeration() -> None:
    """Two numbers 0 or 1 of a row depend on each other: mean field is below the sum over their values, and near."""
    rng = np.random.default_rng(6)
    one, other = ((rng.random(N) < 0.5).astype(float) for _ in range(2))
    y = 3.0 * one + 1.0 * other + rng.normal(size=N)
    first, second = cv.Bernoulli("one", 0.5, plates=OBS), cv.Bernoulli("other", 0.5, plates=OBS)
    model = cv.Model(cv.Normal("y", 3.0 * first + 1.0 * second, 1.0, plates=OBS))
    data = {"one": in_part(one), "other": in_part(other), "y": y}
    several = np.array(list(itertools.product((0, 1), repeat=2)))
    each = np.log(0.25) + stats.norm.logpdf(y[:, None], several @ [3.0, 1.0])
    known = np.log(0.25) + stats.norm.logpdf(y, 3.0 * one + other)
    exact = np.where(GONE, logsumexp(each, axis=1), known).sum()
    assert exact - 0.03 * N < model.fit(data, tol=1e-10).elbo < exact


def test_rows_without_anything_count_nothing_and_others_for_what_they_have() -> None:
    data = data_of_regression(60, np.random.default_rng(5))
    alone = regression().fit(data, tol=1e-11)
    empty = regression().fit({name: np.append(own, np.nan) for name, own in data.items()}, tol=1e-11)
    assert empty.elbo == pytest.approx(alone.elbo, abs=1e-5)
    one = regression().fit(
        {name: np.append(own, 3.0 if name == "x" else np.nan) for name, own in data.items()}, tol=1e-11
    )
    assert one["m"].precision > alone["m"].precision
    assert one["p"].mean == pytest.approx(alone["p"].mean, abs=1e-4)


def test_predictions_of_new_rows_are_averaged_over_what_is_not_known() -> None:
    hidden = cv.Normal("x", 1.0, 0.25, plates=OBS)
    model = cv.Model(cv.Normal("y", 1.0 + cv.Normal("b", 2.0, 100.0) * hidden, 4.0, plates=OBS))
    posterior = model.fit({"x": [0.0, np.nan], "y": [1.0, 3.0]})
    m, v = posterior["b"].mean, posterior["b"].variance
    found = posterior.predict({"x": [1.5, np.nan]})["y"]
    np.testing.assert_allclose(found.mean, [1.0 + 1.5 * m, 1.0 + m])
    variance = [0.25 + 1.5**2 * v, 0.25 + (m**2 + v) * (1.0 + 4.0) - m**2]
    np.testing.assert_allclose(np.square(found.standard_deviation), variance)
    # an outcome that is there is kept, and tells nothing of other rows
    np.testing.assert_allclose(
        posterior.predict({"x": [1.5, np.nan], "y": [np.nan, 7.0]})["y"].mean, [1.0 + 1.5 * m, 7.0]
    )


def test_predictions_average_over_labels_that_are_not_known() -> None:
    means = np.array([-2.0, 3.0])
    category = cv.Categorical("z", [0.3, 0.7], plates=OBS)
    number = cv.Bernoulli("z", 0.7, plates=OBS)
    behind_link = cv.Bernoulli("z", cv.logistic(np.log(7 / 3) * cv.Data("one", plates=OBS)), plates=OBS)
    level = cv.Normal("b", -2.0, 1e12)
    of_sides = cv.Normal("b", means, 1e12, plates=cv.Plate("side", 2))
    for line, known in (
        (of_sides[category], {}),
        (level + 5.0 * number, {}),
        (level + 5.0 * behind_link, {"one": np.ones(3)}),
    ):
        data = {"z": [0, 1, 1], "y": [-2.0, 3.0, 3.0], **known}
        posterior = cv.Model(cv.Normal("y", line, 4.0, plates=OBS)).fit(data)
        found = posterior.predict({"z": [0, np.nan, 1], **known})["y"]
        np.testing.assert_allclose(found.mean, [-2.0, 0.7 * 5.0 - 2.0, 3.0])
        np.testing.assert_allclose(np.square(found.standard_deviation), [0.25, 0.25 + 0.21 * 25.0, 0.25])


def test_predictions_use_what_known_covariates_tell_of_the_label_of_their_row() -> None:
    """The label chooses both for the covariate and for the outcome, which had its shares before the covariate."""
    side, x = cv.Plate("side", 2), np.array([-1.0, 0.2])
    label = cv.Categorical("z", [0.4, 0.6], plates=OBS)
    hidden = cv.Normal("x", cv.Constant("mu", [-1.0, 1.0], plates=side)[label], 1.0, plates=OBS)
    line = cv.Constant("b", [0.0, 10.0], plates=side)[label] + hidden
    model = cv.Model(cv.Normal("y", line, cv.Gamma("tau", 1e9, 1e9), plates=OBS))
    posterior = model.fit({"x": [-1.0, 1.0], "y": [0.0, 11.0]})
    share = 1 / (1 + np.exp(-np.log(0.6 / 0.4) - 2 * x))
    for data in ({"x": x}, {"x": [*x, 0.0], "y": [np.nan, np.nan, 0.0]}):
        found = posterior.predict(data)["y"]
        np.testing.assert_allclose(found.mean[:2], 10 * share + x)
        variance = 1.0 + 100 * share * (1 - share)
        np.testing.assert_allclose(np.square(found.standard_deviation[:2]), variance, rtol=1e-6)


@pytest.mark.starts_of_users
def test_hidden_numbers_begin_at_their_best_given_those_that_are_known() -> None:
    rng = np.random.default_rng(0)
    s, one, other = ((rng.random(200) < 0.5).astype(float) for _ in range(3))
    y, known = 0.6 * s + 2.0 * one + 2.5 * other + 0.3 * rng.normal(size=200), rng.random(200) < 0.6

    def model(known: Any) -> cv.Model:
        line = 0.6 * known + 2.0 * cv.Bernoulli("one", 0.5, plates=OBS)
        return cv.Model(
            cv.Normal("y", line + 2.5 * cv.Bernoulli("other", 0.5, plates=OBS), 1 / 0.09, plates=OBS)
        )

    hidden = cv.Bernoulli("s", 0.5, plates=OBS)
    together = model(hidden).fit({"y": y, "s": np.where(known, s, np.nan)}, tol=1e-12)
    apart = model(hidden).fit({"y": y[~known]}, tol=1e-12).elbo
    apart += model(cv.Data("s", plates=OBS)).fit({"y": y[known], "s": s[known]}, tol=1e-12).elbo
    assert together.elbo == pytest.approx(apart + known.sum() * np.log(0.5), abs=1e-6)


def test_a_fit_may_begin_at_values_and_go_on_from_a_file(tmp_path: Any) -> None:
    data = data_of_regression(60, np.random.default_rng(5))
    posterior = regression().fit(data, tol=1e-11)
    begun = regression().fit(data, tol=1e-11, init={"x": np.zeros(60)})
    assert begun.elbo == pytest.approx(posterior.elbo, abs=1e-5)
    posterior.save(tmp_path / "fit")
    again = cv.load(tmp_path / "fit")
    np.testing.assert_array_equal(again.local(data)["x"].mean, posterior.local(data)["x"].mean)


def test_beside_labels_of_the_row_and_states_of_a_chain() -> None:
    rng = np.random.default_rng(7)
    z = (np.cumsum(rng.random(200) < 0.1) % 2).astype(int)
    x = np.array([-2.0, 2.0])[z] + rng.normal(size=200)
    y = 1.5 * x + rng.normal(size=200)
    data = {"x": np.where(rng.random(200) < 0.2, np.nan, x), "y": y}
    side = cv.Plate("side", 2)
    for label in (
        cv.Categorical("z", cv.Dirichlet("share", [1.0, 1.0]), plates=OBS),
        cv.MarkovChain("z", [0.5, 0.5], cv.Dirichlet("move", [1.0, 1.0], plates=side), along=OBS),
    ):
        hidden = cv.Normal("x", cv.Normal("at", 0, 0.1, plates=side)[label], 1.0, plates=OBS)
        slope = cv.Normal("slope", 0, 0.1)
        posterior = cv.Model(cv.Normal("y", slope * hidden, 1.0, plates=OBS)).fit(data, seed=0)
        np.testing.assert_allclose(np.sort(posterior["at"].mean), [-2.0, 2.0], atol=0.35)
        assert posterior["slope"].mean == pytest.approx(1.5, abs=0.1)
        told = posterior.local(data)["z"].probabilities.argmax(axis=1)
        assert max(np.mean(told == z), np.mean(told != z)) > 0.9


@pytest.mark.parametrize(
    ("hidden", "values", "message"),
    [
        (lambda: cv.Gamma("u", 2.0, 2.0, plates=OBS), [1.0, np.nan, -1.0], "'u', a Gamma, must be positive"),
        (lambda: cv.Gamma("u", 2.0, 2.0, plates=OBS), [1.0, np.nan, np.inf], "'u' has an infinity in row 2"),
    ],
)
def test_values_off_the_support_are_refused(
    hidden: Callable[[], Any], values: list[float], message: str
) -> None:
    model = cv.Model(cv.Normal("y", 0.0, hidden(), plates=OBS))
    with pytest.raises(cv.DataError, match=message):
        model.fit({"y": [1.0, 2.0, 3.0], "u": values})


def test_what_cannot_be_known_in_part_is_refused() -> None:
    vector = cv.MultivariateNormal("u", np.zeros(2), np.eye(2), plates=OBS)
    model = cv.Model(cv.Normal("y", cv.dot([1.0, 1.0], vector), 1.0, plates=OBS))
    with pytest.raises(cv.DataError, match="known as a whole or not at all"):
        model.fit({"y": [1.0, 2.0], "u": [[1.0, np.nan], [1.0, 2.0]]})
    path = cv.LinearGaussianChain("u", [0.0], [[1.0]], [[1.0]], [[1.0]], along=OBS)
    chain = cv.Model(cv.MultivariateNormal("y", path, np.eye(1), plates=OBS))
    with pytest.raises(cv.DataError, match="steps of such a chain"):
        chain.fit({"y": [[1.0], [2.0]], "u": [[1.0], [np.nan]]})
    number = cv.Normal("u", 0.0, 1.0, plates=OBS)
    of_both = cv.Model(cv.Normal("y", number + cv.Normal("v", 0.0, 1.0, plates=OBS), 1.0, plates=OBS))
    with pytest.raises(cv.ModelError, match="factors= joins 'u', which the data have in some rows"):
        of_both.fit({"y": [1.0, 2.0], "u": [1.0, np.nan]}, factors=[("u", "v")])


def test_an_absent_variable_is_predicted_from_what_the_rows_have_below_it() -> None:
    """A variable that the model states as observed was predicted from its parents alone, whatever its children were."""
    n, rng = 100, np.random.default_rng(8)
    x = rng.normal(size=n)
    hidden = cv.Normal("x", 0.0, 1.0, plates=OBS)
    y = cv.Normal("y", cv.Normal("b", 0, 0.1) * hidden, 4.0, plates=OBS)
    posterior = cv.Model(y, hidden).fit({"x": x, "y": 2.0 * x + rng.normal(scale=0.5, size=n)})
    m, square = posterior["b"].mean, posterior["b"].mean ** 2 + posterior["b"].variance
    for data in ({"y": [1.0, 2.0]}, {"y": [1.0, 2.0], "x": [np.nan, np.nan]}):
        found = posterior.predict(data)["x"]
        np.testing.assert_allclose(found.mean, 4.0 * m * np.array([1.0, 2.0]) / (1.0 + 4.0 * square))
        np.testing.assert_allclose(found.standard_deviation, (1.0 + 4.0 * square) ** -0.5)
    partly = posterior.predict({"y": [1.0, 2.0], "x": [0.3, np.nan]})["x"]
    np.testing.assert_allclose(partly.mean, [0.3, found.mean[1]])
    np.testing.assert_allclose(partly.standard_deviation, [0.0, found.standard_deviation[1]])

    means = cv.Constant("means", [-1.0, 1.0], plates=cv.Plate("side", 2))
    label = cv.Categorical("z", [0.3, 0.7], plates=OBS)
    given = cv.Model(cv.Normal("y", means[label], cv.Gamma("tau", 1e9, 1e9), plates=OBS), label)
    sorted_ = given.fit({"z": [0, 1, 1], "y": [-1.0, 1.0, 1.0]})
    odds = np.log(0.3 / 0.7) - 2.0 * np.array([-1.0, 0.2])
    expected = 1 / (1 + np.exp(-odds))
    np.testing.assert_allclose(sorted_.predict({"y": [-1.0, 0.2]})["z"].mean[:, 0], expected, rtol=1e-6)


def test_an_absent_number_zero_or_one_is_predicted_from_what_the_rows_have_below_it() -> None:
    number = cv.Bernoulli("s", 0.4, plates=OBS)
    y = cv.Normal("y", 1.0 + 2.0 * number, cv.Gamma("tau", 1e9, 1e9), plates=OBS)
    posterior = cv.Model(y, number).fit({"s": [0, 1, 1], "y": [1.0, 3.0, 3.0]})
    share = 1 / (1 + np.exp(np.log(0.6 / 0.4) - 2 * (np.array([1.0, 2.5]) - 1) + 2))
    found = posterior.predict({"y": [1.0, 2.5]})["s"]
    np.testing.assert_allclose(found.mean, share, rtol=1e-6)
    np.testing.assert_allclose(found.standard_deviation, np.sqrt(share * (1 - share)), rtol=1e-6)
    partly = posterior.predict({"y": [1.0, 2.5], "s": [1, np.nan]})["s"]
    np.testing.assert_allclose(partly.mean, [1.0, share[1]], rtol=1e-6)
    np.testing.assert_allclose(partly.standard_deviation, [0.0, found.standard_deviation[1]])


def test_an_absent_variable_that_hidden_labels_choose_is_a_mixture_given_what_is_below_it() -> None:
    means = cv.Constant("means", [-2.0, 2.0], plates=cv.Plate("side", 2))
    label = cv.Categorical("z", [0.3, 0.7], plates=OBS)
    x = cv.Normal("x", means[label], 1.0, plates=OBS)
    model = cv.Model(cv.Normal("y", x, cv.Gamma("tau", 1e9, 1e9), plates=OBS), x)
    posterior = model.fit({"x": [-2.0, 2.0, 1.9], "y": [-2.0, 2.0, 2.0]})
    y = np.array([-1.0, 0.3])
    shares = np.array([0.3, 0.7]) * stats.norm.pdf(y[:, None], [-2.0, 2.0], np.sqrt(2.0))
    shares /= shares.sum(axis=1, keepdims=True)
    each = (np.array([-2.0, 2.0]) + y[:, None]) / 2
    mean = (shares * each).sum(axis=1)
    variance = (shares * (0.5 + np.square(each - mean[:, None]))).sum(axis=1)
    found = posterior.predict({"y": y})["x"]
    np.testing.assert_allclose(found.mean, mean, rtol=1e-6)
    np.testing.assert_allclose(np.square(found.standard_deviation), variance, rtol=1e-6)


def test_a_table_has_the_columns_of_what_the_model_states_as_observed() -> None:
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(9)
    x = rng.normal(size=40)
    data = {"x": np.where(np.arange(40) % 3, x, np.nan), "y": 2.0 * x + rng.normal(size=40)}
    hidden = cv.Normal("x", cv.Normal("m", 0, 1), 1.0, plates=OBS)
    y = cv.Normal("y", cv.Normal("b", 0, 0.1) * hidden, 1.0, plates=OBS)
    told = cv.Model(y, hidden).fit(pd.DataFrame(data), tol=1e-12)
    assert told.elbo == pytest.approx(cv.Model(y).fit(data, tol=1e-12).elbo, abs=1e-8)
    new = told.predict(pd.DataFrame({"x": [1.0, np.nan], "y": [np.nan, 2.0]}))
    assert set(new.to_frame().columns) >= {"x_mean", "y_mean"}
    with pytest.raises(cv.DataError, match=r"state it in the model, Model\(\.\.\., x\)"):
        cv.Model(y).fit(pd.DataFrame(data))


def test_a_covariate_behind_a_link_is_no_effect_of_the_row() -> None:
    """What is known of it tells its spread: the figures of the coefficients are not in doubt because of that."""
    rng = np.random.default_rng(10)
    x = rng.normal(1.0, 2.0, size=16)
    hidden = cv.Normal("x", cv.Normal("m", 0, 0.1), cv.Gamma("t", 1, 1), plates=OBS)
    line = cv.Normal("a", 0, 0.1) + cv.Normal("b", 0, 0.1) * hidden
    model = cv.Model(cv.Bernoulli("y", cv.logistic(line), plates=OBS))
    answers = (rng.random(16) < 1 / (1 + np.exp(-0.5 - x))).astype(float)
    told = str(model.fit({"x": np.where(np.arange(16) % 4, x, np.nan), "y": answers}).summary())
    assert "of a row and the hidden number" not in told
