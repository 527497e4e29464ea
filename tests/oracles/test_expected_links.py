"""Links with method="expectation": the expected log density itself in the ELBO, beside quadrature."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.special import expit, log_ndtr

import caviar as cv
from caviar._typing import Array
from caviar.families import LogitMoments, ProbitMoments
from caviar.families.approximations.logit_moments import higher_slopes, softplus_and_slopes
from caviar.testing import check_model

OBS = cv.Plate("obs")
RNG = np.random.default_rng(3)
X = np.column_stack([np.ones(30), RNG.normal(size=30)])
ETA = X @ [0.5, -1.5]
YES = (RNG.random(30) < expit(ETA)).astype(float)
TRIALS = RNG.integers(0, 12, 30)
SUCCESSES = RNG.binomial(TRIALS, expit(ETA))
COUNTS = RNG.poisson(np.exp(ETA) * RNG.gamma(2.5, 0.4, 30))
SIZE = 2.5


def _model(kind: str, method: str) -> tuple[cv.Model, dict[str, Any]]:
    w = cv.MultivariateNormal("w", np.zeros(2), 0.1 * np.eye(2))
    predictor = cv.dot(cv.Data("X", plates=OBS), w)
    if kind == "probit":
        return cv.Model(cv.Bernoulli("y", cv.probit(predictor, method=method), plates=OBS)), {
            "X": X,
            "y": YES,
        }
    if kind == "bernoulli":
        return cv.Model(cv.Bernoulli("y", cv.logistic(predictor, method=method), plates=OBS)), {
            "X": X,
            "y": YES,
        }
    if kind == "binomial":
        probability = cv.logistic(predictor, method=method)
        model = cv.Model(cv.Binomial("y", cv.Data("n", plates=OBS), probability, plates=OBS))
        return model, {"X": X, "y": SUCCESSES, "n": TRIALS}
    model = cv.Model(cv.NegativeBinomial("y", cv.exp(predictor, method=method), SIZE, plates=OBS))
    return model, {"X": X, "y": COUNTS}


def _log_likelihood(kind: str, eta: Array) -> Array:
    """Return the log-likelihood of each row at predictors (rows, ...)."""
    own = (slice(None), *(None,) * (eta.ndim - 1))
    if kind == "probit":
        return log_ndtr((2 * YES[own] - 1) * eta)
    if kind == "bernoulli":
        return stats.bernoulli.logpmf(YES[own], expit(eta))
    if kind == "binomial":
        return stats.binom.logpmf(SUCCESSES[own], TRIALS[own], expit(eta))
    return stats.nbinom.logpmf(COUNTS[own], SIZE, SIZE / (SIZE + np.exp(eta)))


def _exact(kind: str) -> tuple[float, Array, Array]:
    """Return the log evidence, and means and standard deviations of the posterior, on a grid."""
    grid = np.linspace(-6, 6, 401)
    first, second = (own.ravel() for own in np.meshgrid(grid, grid, indexing="ij"))
    w = np.stack([first, second])
    log_joint = _log_likelihood(kind, X @ w).sum(axis=0) + stats.norm.logpdf(w, 0, 0.1**-0.5).sum(axis=0)
    largest = log_joint.max()
    share = np.exp(log_joint - largest)
    total = share.sum()
    mean = (w * share).sum(axis=1) / total
    sd = np.sqrt((w**2 * share).sum(axis=1) / total - mean**2)
    return float(largest + np.log(total * (grid[1] - grid[0]) ** 2)), mean, sd


KINDS = ("bernoulli", "binomial", "negative binomial", "probit")


@pytest.mark.parametrize("kind", KINDS)
def test_the_elbo_has_the_expected_log_density_itself(kind: str) -> None:
    model, data = _model(kind, "expectation")
    posterior = model.fit(data, tol=1e-13)
    q = posterior["w"]
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    weights = weights / weights.sum()
    eta, sd = X @ q.mean, np.sqrt(np.einsum("nd,de,ne->n", X, q.covariance, X))
    expected = float((_log_likelihood(kind, eta[:, None] + sd[:, None] * nodes) @ weights).sum())
    divergence = q.kl(cv.families.MultivariateNormal(np.zeros(2), 0.1 * np.eye(2)))
    assert posterior.elbo == pytest.approx(expected - float(divergence), abs=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_means_deviations_and_evidence_are_nearer_than_those_of_the_bound(kind: str) -> None:
    evidence, mean, sd = _exact(kind)
    found = {}
    for method in ("bound", "expectation"):
        model, data = _model(kind, method)
        posterior = model.fit(data, tol=1e-12)
        assert posterior.elbo <= evidence + 1e-6
        # widths of the factor itself: linear response mends those of the bound, too
        widths = np.sqrt(np.diag(posterior["w"].covariance))
        found[method] = (
            evidence - posterior.elbo,
            np.abs(posterior["w"].mean - mean).max() / sd.min(),
            np.abs(widths / sd - 1).max(),
        )
    assert np.less(found["expectation"], np.multiply(0.3, found["bound"])).all(), found
    assert found["expectation"][1] < 0.03
    assert found["expectation"][2] < 0.1


@pytest.mark.thinned(4)
@pytest.mark.parametrize("kind", KINDS)
def test_the_fit_passes_the_checks_of_models(kind: str) -> None:
    model, data = _model(kind, "expectation")
    check_model(model, data, n_draws=500, seed=0).raise_if_failed()


@pytest.mark.parametrize("kind", [LogitMoments, ProbitMoments])
def test_expected_statistics_are_the_gradient_and_the_response_the_curvature_of_the_log_partition(
    kind: Any,
) -> None:
    q = kind([0.3, -2.0, 3.0], [0.5, 4.0, 0.2], [1.0, 7.0, 2.0])
    change = tuple(RNG.normal(size=3) for _ in range(3))

    def at(h: float) -> Any:
        return kind.from_natural(tuple(n + h * c for n, c in zip(q.natural, change, strict=True)))

    h = 1e-4
    slope = (at(h).log_partition - at(-h).log_partition) / (2 * h)
    inner = sum(t * c for t, c in zip(q.expected_statistics, change, strict=True))
    np.testing.assert_allclose(slope, inner, rtol=1e-6, atol=1e-7)
    pairs = zip(at(h).expected_statistics, at(-h).expected_statistics, q.response(change), strict=True)
    for above, below, told in pairs:
        np.testing.assert_allclose((above - below) / (2 * h), told, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        sum(t * n for t, n in zip(q.expected_statistics, q.natural, strict=True)), q.log_partition, rtol=1e-12
    )


@pytest.mark.parametrize(
    ("mean", "variance"), [(0.0, 1.0), (2.0, 0.04), (-7.0, 30.0), (30.0, 4.0), (1.0, 0.0)]
)
def test_expectations_of_the_logistic_function(mean: float, variance: float) -> None:
    found = (
        *softplus_and_slopes(np.array(mean), np.array(variance)),
        *higher_slopes(np.array(mean), np.array(variance)),
    )
    functions = (
        lambda x: np.logaddexp(0, x),
        expit,
        lambda x: expit(x) * expit(-x),
        lambda x: expit(x) * expit(-x) * (1 - 2 * expit(x)),
        lambda x: expit(x) * expit(-x) * (1 - 6 * expit(x) * expit(-x)),
    )
    for own, function in zip(found, functions, strict=True):
        if variance == 0:
            assert own == pytest.approx(function(mean), abs=1e-10)
            continue
        sd = variance**0.5
        expected, _ = quad(
            lambda x, f=function, sd=sd: f(x) * stats.norm.pdf(x, mean, sd),
            mean - 12 * sd,
            mean + 12 * sd,
            points=[0.0, mean] if abs(mean) < 12 * sd else [mean],
            limit=400,
            epsabs=1e-13,
        )
        assert own == pytest.approx(expected, abs=2e-11)


@pytest.mark.thinned(3)
@pytest.mark.parametrize(
    ("mean", "variance"), [(0.0, 1.0), (2.0, 0.04), (-7.0, 3.0), (-30.0, 1.0), (1.0, 0.0)]
)
def test_expectations_of_the_logarithm_of_a_normal_distribution_function(
    mean: float, variance: float
) -> None:
    found = ProbitMoments(mean, variance)
    sd = variance**0.5

    def expected(function: Any) -> float:
        if variance == 0:
            return float(function(mean))
        ends = (mean - 12 * sd, mean + 12 * sd)
        return float(
            quad(lambda x: function(x) * stats.norm.pdf(x, mean, sd), *ends, epsabs=1e-13, limit=400)[0]
        )

    def ratio(x: float) -> float:
        return float(np.exp(stats.norm.logpdf(x) - log_ndtr(x)))

    slope, curvature = expected(ratio), expected(lambda x: ratio(x) * (x + ratio(x)))
    assert found.log_partition == pytest.approx(expected(log_ndtr), rel=1e-10)
    assert found.expected_statistics[1] == pytest.approx(curvature, rel=1e-8)
    assert found.expected_statistics[0] == pytest.approx(mean * curvature + slope, abs=1e-8)


@pytest.mark.thinned(4)
@pytest.mark.parametrize("kind", ["logistic", "probit"])
@pytest.mark.parametrize("seed", range(2))
def test_the_elbo_rises_even_if_answers_are_separable(seed: int, kind: str) -> None:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(12, 3))
    y = (x[:, 0] > 0).astype(float)
    w = cv.MultivariateNormal("w", np.zeros(3), 1e-4 * np.eye(3))
    link = getattr(cv, kind)(cv.dot(cv.Data("X", plates=OBS), w), method="expectation")
    model = cv.Model(cv.Bernoulli("y", link, plates=OBS))
    with warnings.catch_warnings():
        # a fall of the ELBO would warn
        warnings.simplefilter("error")
        posterior = model.fit({"X": x, "y": y}, tol=1e-6, max_iter=300)
    assert (np.diff(posterior.elbo_trace) >= -1e-9).all()


def test_missing_answers_and_weights_count_as_they_should() -> None:
    model, data = _model("bernoulli", "expectation")
    missing = {**data, "y": np.where(np.arange(30) < 5, np.nan, YES)}
    left = {"X": X[5:], "y": YES[5:]}
    assert model.fit(missing, tol=1e-12).elbo == pytest.approx(model.fit(left, tol=1e-12).elbo, abs=1e-9)
    twice = {"X": np.concatenate([X, X]), "y": np.concatenate([YES, YES])}
    weighted = model.fit(data, sample_weight=np.full(30, 2.0), tol=1e-12)
    assert weighted.elbo == pytest.approx(model.fit(twice, tol=1e-12).elbo, abs=1e-9)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("kind", ["bernoulli", "probit", "negative binomial"])
def test_a_saved_posterior_answers_the_same(kind: str, tmp_path: Path) -> None:
    model, data = _model(kind, "expectation")
    posterior = model.fit(data)
    posterior.save(tmp_path / "fit")
    again = cv.load(tmp_path / "fit")
    np.testing.assert_array_equal(
        again.predict({"X": X[:3]})["y"].mean, posterior.predict({"X": X[:3]})["y"].mean
    )
    assert "y.moments" in again.model.variables


@pytest.mark.parametrize(
    "predictor",
    [
        lambda: cv.Gamma("g", 1, 1) * cv.Normal("a", 0, 1),
        lambda: cv.Normal("a", 0, 1) * cv.Normal("b", 0, 1),
        lambda: cv.Normal("a", 0, 1, plates=cv.Plate("k", 2))[cv.Categorical("z", [0.5, 0.5], plates=OBS)],
    ],
)
def test_a_predictor_that_is_not_normal_is_refused(predictor: Any) -> None:
    with pytest.raises(cv.ModelError, match="method='expectation' of 'y' needs a predictor of Normal"):
        cv.Bernoulli("y", cv.logistic(predictor(), method="expectation"), plates=OBS)


def test_a_variable_of_the_rows_in_the_predictor_is_refused() -> None:
    item = cv.Plate("item", 3)
    predictor = cv.Normal("ability", 0, 1, plates=OBS) + cv.Normal("ease", 0, 1, plates=item)
    model = cv.Model(cv.Bernoulli("y", cv.logistic(predictor, method="expectation"), plates=(OBS, item)))
    with pytest.raises(cv.ModelError, match="takes global variables alone in its predictor"):
        model.fit({"y": np.zeros((4, 3))})


def test_bad_methods_and_schedules_are_refused() -> None:
    with pytest.raises(cv.ParameterError, match="method of logistic must be one of 'bound', 'expectation'"):
        cv.logistic(cv.Normal("a", 0, 1), method="exact")
    model, data = _model("bernoulli", "expectation")
    with pytest.raises(cv.ModelError, match="needs schedule='batch' or 'stochastic'"):
        model.fit(data, schedule=cv.Incremental(2))


def test_a_precision_that_is_given_at_the_start_is_there_after_the_first_sweeps():
    """Steps beyond an update leave what is held as it is."""
    rows, rng = cv.Plate("rows"), np.random.default_rng([0, 2])
    groups = np.append(np.arange(8), rng.integers(0, 8, 112))
    effect = cv.Normal("a", 0, cv.Gamma("between", 5, 5), plates=cv.Plate("group", 8))
    at = cv.Normal("mu", 0, 0.5) + effect[cv.Data("g", plates=rows)]
    model = cv.Model(cv.Bernoulli("y", cv.probit(at, method="expectation"), plates=rows))
    drawn = model.simulate(rng, data={"g": groups}, sizes={"rows": 120})
    data = {"g": groups, "y": drawn["y"]}
    begun = model.fit(data, init={"between": drawn["between"]}, factors="apart", tol=1e-9)
    assert begun.elbo == pytest.approx(model.fit(data, factors="apart", tol=1e-9).elbo, abs=1e-4)
