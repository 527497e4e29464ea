"""Tabulated factors against quadrature: exact where the scalar alone is hidden, the mean-field optimum elsewhere."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import dblquad, quad
from scipy.optimize import minimize_scalar
from scipy.special import digamma, expit, gammaln, multigammaln

import caviar as cv
from caviar import families
from oracles.tilted import Settled

ROW, GROUP = cv.Plate("row"), cv.Plate("group", 6)
X = stats.gamma(3.0, scale=0.5).rvs(40, random_state=1)
SIMPLEX = np.random.default_rng(2).dirichlet(np.array([2.0, 3.0, 5.0]), 12)
P = stats.beta(2.0, 5.0).rvs(30, random_state=3)
SCALES = stats.gamma(2.5, scale=1 / 2.5).rvs(60, random_state=4)


def _log_gamma_density(x: Any, a: Any, b: Any) -> Any:
    return a * np.log(b) - gammaln(a) + (a - 1) * np.log(x) - b * x


def _log_dirichlet(alpha: np.ndarray) -> float:
    return float(stats.dirichlet.logpdf(SIMPLEX.T, alpha).sum())


def _wisharts() -> np.ndarray:
    return stats.wishart(6, np.array([[1.0, 0.3], [0.3, 0.5]])).rvs(8, random_state=5)


def _log_wishart(df: float, matrices: np.ndarray) -> float:
    return sum(float(stats.wishart(df, np.eye(2)).logpdf(own)) for own in matrices)


def _gamma_shape(a: cv.Gamma) -> cv.Variable:
    return cv.Gamma("x", a, 2.0, plates=ROW)


ALONE: dict[str, tuple[Callable[[Any], Any], Any, Any, Callable[[float], float]]] = {
    "the shape of a Gamma": (_gamma_shape, cv.Gamma, X, lambda a: float(_log_gamma_density(X, a, 2.0).sum())),
    "a shape that is a multiple, plus a number": (
        lambda a: cv.Gamma("x", 0.5 * a + 1.0, 2.0, plates=ROW),
        cv.Gamma,
        X,
        lambda a: float(_log_gamma_density(X, 0.5 * a + 1.0, 2.0).sum()),
    ),
    "shape and rate at once, as of a Student-t": (
        lambda nu: cv.Gamma("x", nu / 2, nu / 2, plates=ROW),
        cv.Gamma,
        SCALES,
        lambda nu: float(_log_gamma_density(SCALES, nu / 2, nu / 2).sum()),
    ),
    "one concentration for all categories": (
        lambda a: cv.Dirichlet("x", a, categories=3, plates=ROW),
        cv.Gamma,
        SIMPLEX,
        lambda a: _log_dirichlet(np.full(3, a)),
    ),
    "known shares times a hidden total": (
        lambda a: cv.Dirichlet("x", a * cv.Constant("shares", [0.2, 0.3, 0.5]), plates=ROW),
        cv.Gamma,
        SIMPLEX,
        lambda a: _log_dirichlet(a * np.array([0.2, 0.3, 0.5])),
    ),
    "the total of a Beta": (
        lambda s: cv.Beta("x", 0.3 * s, 0.7 * s, plates=ROW),
        cv.Gamma,
        P,
        lambda s: float(stats.beta(0.3 * s, 0.7 * s).logpdf(P).sum()),
    ),
    "the mean of a Beta": (
        lambda m: cv.Beta("x", 8 * m, 8 * (1 - m), plates=ROW),
        cv.Beta,
        P,
        lambda m: float(stats.beta(8 * m, 8 - 8 * m).logpdf(P).sum()),
    ),
    "the degrees of freedom of a Wishart": (
        lambda nu: cv.Wishart("x", nu + 1, np.eye(2), plates=ROW),
        cv.Gamma,
        _wisharts(),
        lambda nu: _log_wishart(nu + 1, _wisharts()),
    ),
}


def _moments(log_density: Callable[[float], float], prior: Any) -> tuple[float, float, float]:
    """Return log evidence, mean and standard deviation by adaptive quadrature in the scalar itself."""
    low, high = (float(prior.ppf(p)) for p in (1e-14, 1 - 1e-14))
    peak = minimize_scalar(
        lambda a: -log_density(a) - prior.logpdf(a), bounds=(low, high), method="bounded"
    ).x
    top = log_density(peak) + prior.logpdf(peak)
    ends = [low, *(peak * f for f in (0.5, 0.8, 0.95, 1.0, 1.05, 1.25, 2.0) if low < peak * f < high), high]

    def integral(power: int) -> float:
        def f(a: float) -> float:
            return a**power * float(np.exp(log_density(a) + prior.logpdf(a) - top))

        pieces = itertools.pairwise(ends)
        return sum(quad(f, *own, epsabs=0, epsrel=1e-12, limit=200)[0] for own in pieces)

    total, first, second = (integral(power) for power in range(3))
    mean = first / total
    return top + np.log(total), mean, np.sqrt(second / total - mean**2)


@pytest.mark.parametrize("kind", ALONE)
def test_of_a_scalar_that_alone_is_hidden_factor_and_evidence_are_exact(kind: str):
    state, family, data, log_density = ALONE[kind]
    posterior = cv.Model(state(family("a", 2.0, 0.7))).fit({"x": data}, seed=0)
    prior = stats.gamma(2.0, scale=1 / 0.7) if family is cv.Gamma else stats.beta(2.0, 0.7)
    evidence, mean, sd = _moments(log_density, prior)
    assert posterior.elbo == pytest.approx(evidence, abs=1e-9 * abs(evidence))
    assert float(posterior["a"].mean) == pytest.approx(mean, rel=1e-8)
    assert float(np.sqrt(posterior["a"].variance)) == pytest.approx(sd, rel=1e-6)
    assert posterior.linear_response({"x": data}).sd("a") == pytest.approx(sd, rel=1e-6)


@pytest.mark.parametrize("kind", ALONE)
def test_a_point_mass_is_the_mode_of_the_density_itself(kind: str):
    state, family, data, log_density = ALONE[kind]
    posterior = cv.Model(state(family("a", 2.0, 1.7))).fit({"x": data}, seed=0, point=["a"])
    prior = stats.gamma(2.0, scale=1 / 1.7) if family is cv.Gamma else stats.beta(2.0, 1.7)
    found = minimize_scalar(
        lambda a: -log_density(a) - prior.logpdf(a),
        bounds=(1e-3, 0.999 if family is cv.Beta else 60.0),
        method="bounded",
        options={"xatol": 1e-10},
    )
    assert float(posterior["a"].value) == pytest.approx(found.x, rel=1e-6)
    assert posterior.elbo == pytest.approx(-found.fun, rel=1e-11)


def _shape_and_rate() -> cv.Model:
    return cv.Model(cv.Gamma("x", cv.Gamma("a", 2, 0.5), cv.Gamma("b", 3, 1), plates=ROW))


class _MeanField:
    """Coordinate ascent for a Gamma sample with unknown shape and rate, by quadrature: shares no code with caviar."""

    def __init__(self) -> None:
        rate, expected = 1.0, 2.0
        for _ in range(200):
            log_b = digamma(3 + len(X) * expected) - np.log(rate)
            expected = self._of_shape(log_b, lambda a: a)
            rate = 1.0 + X.sum()
        self.mean, self.log_b, self.shape, self.rate = expected, log_b, 3 + len(X) * expected, rate
        self.elbo = self._elbo()

    def _log_weight(self, a: float, log_b: float) -> float:
        return np.log(a) - 0.5 * a + a * (np.log(X).sum() + len(X) * log_b) - len(X) * gammaln(a)

    def _of_shape(self, log_b: float, f: Callable[[float], float]) -> float:
        grid = np.linspace(0.5, 12, 2000)
        top = max(self._log_weight(a, log_b) for a in grid)

        def integral(g: Callable[[float], float]) -> float:
            own = [
                quad(lambda a: g(a) * np.exp(self._log_weight(a, log_b) - top), *ends, epsrel=1e-12)[0]
                for ends in ((0.3, 2.0), (2.0, 3.0), (3.0, 4.0), (4.0, 9.0))
            ]
            return float(sum(own))

        self._log_normaliser = top + np.log(integral(lambda a: 1.0))
        return integral(f) / integral(lambda a: 1.0)

    def _elbo(self) -> float:
        mean_a = self._of_shape(self.log_b, lambda a: a)
        log_a, log_gamma = (self._of_shape(self.log_b, f) for f in (np.log, gammaln))
        n, log_b, b = len(X), self.log_b, self.shape / self.rate
        likelihood = mean_a * n * log_b - n * log_gamma + (mean_a - 1) * np.log(X).sum() - b * X.sum()
        prior_a = 2 * np.log(0.5) - gammaln(2.0) + log_a - 0.5 * mean_a
        prior_b = -gammaln(3.0) + 2 * log_b - b
        entropy_a = self._log_normaliser - (
            log_a - 0.5 * mean_a + mean_a * (np.log(X).sum() + n * log_b) - n * log_gamma
        )
        return (
            likelihood
            + prior_a
            + prior_b
            + entropy_a
            + float(stats.gamma(self.shape, scale=1 / self.rate).entropy())
        )


def test_shape_and_rate_end_at_the_mean_field_optimum_below_the_evidence():
    posterior, own = _shape_and_rate().fit({"x": X}, seed=0, tol=1e-13), _MeanField()
    assert float(posterior["a"].mean) == pytest.approx(own.mean, rel=1e-7)
    assert float(posterior["b"].shape) == pytest.approx(own.shape, rel=1e-7)
    assert posterior.elbo == pytest.approx(own.elbo, abs=1e-8)

    def density(b: float, a: float) -> float:
        log_prior = stats.gamma(2, scale=2).logpdf(a) + stats.gamma(3).logpdf(b)
        return float(np.exp(_log_gamma_density(X, a, b).sum() + log_prior - posterior.elbo))

    evidence = np.log(dblquad(density, 0.8, 7, 0.5, 5, epsabs=0, epsrel=1e-6)[0]) + posterior.elbo
    assert 0.5 < evidence - posterior.elbo < 2.0
    assert (np.diff(posterior.elbo_trace) > -1e-10).all()


def test_every_seed_every_start_and_both_orders_end_there():
    best = _shape_and_rate().fit({"x": X}, seed=0).elbo
    starts: list[Mapping[str, Any]] = [{"seed": seed} for seed in range(10)]
    starts += [{"init": "prior"}, {"init": {"a": 40.0}}, {"init": {"a": families.Gamma(2.0, 9.0)}}]
    starts += [{"order": ["a", "b"]}, {"order": ["b", "a"]}, {"n_restarts": 3, "seed": 1}]
    for arguments in starts:
        assert _shape_and_rate().fit({"x": X}, **arguments).elbo == pytest.approx(best, abs=1e-6)


@pytest.mark.parametrize("name", ["a", "b"])
def test_covariances_are_the_slopes_of_tilted_fits(name: str):
    posterior = _shape_and_rate().fit({"x": X}, seed=0)
    assert Settled(posterior, {"x": X}).worst(name) < 1e-5


def test_student_t_degrees_of_freedom_are_bounded_by_the_evidence():
    y = stats.t(4).rvs(200, random_state=6)
    nu = cv.Gamma("nu", 2, 0.1)
    u = cv.Gamma("u", nu / 2, nu / 2, plates=ROW)
    posterior = cv.Model(cv.Normal("y", 0.0, u, plates=ROW)).fit({"y": y}, seed=0)
    log_density = lambda nu: float(stats.t(nu).logpdf(y).sum())  # noqa: E731
    evidence, mean, sd = _moments(log_density, stats.gamma(2, scale=10))
    assert 0 < evidence - posterior.elbo < 2.0
    assert abs(float(posterior["nu"].mean) - mean) < sd
    corrected = posterior.linear_response({"y": y}).sd("nu")
    assert corrected == pytest.approx(sd, rel=0.25)
    assert float(np.sqrt(posterior["nu"].variance)) < 0.5 * corrected


def test_concentrations_behind_counts_are_bounded_by_the_evidence():
    counts = np.random.default_rng(7).multinomial(25, np.random.default_rng(8).dirichlet(np.full(4, 1.5), 60))
    alpha = cv.Gamma("alpha", 1, 0.2)
    theta = cv.Dirichlet("theta", alpha, categories=4, plates=ROW)
    posterior = cv.Model(cv.Multinomial("x", None, theta, plates=ROW)).fit({"x": counts}, seed=0)
    coefficients = gammaln(counts.sum(1) + 1).sum() - gammaln(counts + 1).sum()

    def log_density(a: float) -> float:
        ratios = gammaln(counts + a).sum() - counts.size * gammaln(a)
        totals = len(counts) * gammaln(4 * a) - gammaln(counts.sum(1) + 4 * a).sum()
        return float(ratios + totals + coefficients)

    evidence, mean, sd = _moments(log_density, stats.gamma(1, scale=5))
    assert 0 < evidence - posterior.elbo < 2.0
    assert abs(float(posterior["alpha"].mean) - mean) < sd


def test_a_scalar_for_each_group_is_a_factor_for_each():
    group = np.repeat(np.arange(6), 15)
    x = stats.gamma(np.linspace(0.5, 8, 6)[group]).rvs(random_state=9)
    a = cv.Gamma("a", 1, 0.1, plates=GROUP)
    model = cv.Model(cv.Gamma("x", a[cv.Data("group", plates=ROW)], 1.0, plates=ROW))
    posterior = model.fit({"x": x, "group": group}, seed=0)
    apart = [
        cv.Model(cv.Gamma("x", cv.Gamma("a", 1, 0.1), 1.0, plates=ROW)).fit({"x": x[group == g]})
        for g in range(6)
    ]
    assert posterior.elbo == pytest.approx(sum(own.elbo for own in apart), rel=1e-12)
    np.testing.assert_allclose(posterior["a"].mean, [own["a"].mean for own in apart], rtol=1e-12)
    one = posterior["a"][2]
    np.testing.assert_allclose(one.quantile([0.1, 0.9]), apart[2]["a"].quantile([0.1, 0.9]), rtol=1e-9)
    np.testing.assert_allclose(one.cdf(one.quantile(0.3)), 0.3, rtol=1e-12)


def test_a_scalar_for_each_row_is_local():
    """Each row has a shape of its own, and three values of it."""
    x = stats.gamma(np.array([0.5, 2.0, 9.0, 30.0])[:, None]).rvs((4, 3), random_state=10)
    rows, value = cv.Plate("rows"), cv.Plate("value", 3)
    a = cv.Gamma("a", 1, 0.1, plates=rows)
    data = {"x": x}
    posterior = cv.Model(cv.Gamma("x", a, 1.0, plates=(rows, value))).fit(data, data_plate="rows")
    exact = [
        _moments(lambda a, own=own: float(_log_gamma_density(own, a, 1.0).sum()), stats.gamma(1, scale=10))
        for own in x
    ]
    assert posterior.elbo == pytest.approx(sum(evidence for evidence, *_ in exact), rel=1e-9)
    np.testing.assert_allclose(posterior.local(data)["a"].mean, [mean for _, mean, _ in exact], rtol=1e-8)


def test_fits_keep_their_promises():
    """Weights, threads, files, pickles, streams, values that are known, and another model with the same scalar."""
    model, data = _shape_and_rate(), {"x": X}
    posterior = model.fit(data, seed=0)
    twice = model.fit({"x": np.r_[X, X]}, seed=0).elbo
    assert model.fit(data, seed=0, sample_weight=np.full(len(X), 2.0)).elbo == pytest.approx(twice, rel=1e-13)
    assert model.fit(data, seed=0, executor=2).elbo == posterior.elbo
    again = pickle.loads(pickle.dumps(posterior))
    assert type(again["a"]) is type(posterior["a"])
    assert again.elbo_at({name: again[name] for name in ("a", "b")}, data) == pytest.approx(
        posterior.elbo, rel=1e-14
    )
    known = model.fit({**data, "a": 3.0}, seed=0)
    counted = 3 + 3 * len(X)
    exact = (
        stats.gamma(2, scale=2).logpdf(3.0)
        + 2 * np.log(X).sum()
        - len(X) * gammaln(3.0)
        + gammaln(counted)
        - gammaln(3.0)
        - counted * np.log(1 + X.sum())
    )
    assert known.elbo == pytest.approx(exact, rel=1e-12)
    a = cv.Gamma("a", 2, 0.5)
    plain = cv.Model(cv.Poisson("n", a, plates=ROW))
    first, one = plain.fit({"n": [1, 2]})["a"], cv.Model(_gamma_shape(a)).fit(data)["a"]
    assert isinstance(first, families.Gamma)
    assert isinstance(one, families.Tabulated)
    assert isinstance(plain.fit({"n": [1, 2]})["a"], families.Gamma)


def test_streams_of_one_factor_are_all_rows_at_once():
    whole = cv.Model(_gamma_shape(cv.Gamma("a", 2, 0.7))).fit({"x": X})
    model = cv.Model(_gamma_shape(cv.Gamma("a", 2, 0.7)))
    first = model.fit({"x": X[:25]})
    second = model.fit({"x": X[25:]}, prior=first)
    assert first.elbo + second.elbo == pytest.approx(whole.elbo, rel=1e-12)
    np.testing.assert_allclose(second["a"].coefficients, whole["a"].coefficients, rtol=1e-12)


def test_saved_fits_and_checkpoints_have_the_same_bits(tmp_path: Any):
    model, path = _shape_and_rate(), str(tmp_path / "fit.caviar")
    posterior = model.fit({"x": X}, seed=0, checkpoint=str(tmp_path / "check"), checkpoint_every=0)
    assert model.fit({"x": X}, seed=0, checkpoint=str(tmp_path / "check")).elbo == posterior.elbo
    posterior.save(path)
    loaded = cv.load(path)
    assert loaded.elbo == posterior.elbo
    np.testing.assert_array_equal(loaded["a"].coefficients, posterior["a"].coefficients)
    assert str(loaded.summary()) == str(posterior.summary())
    assert loaded.model.fit({"x": X}, seed=0).elbo == posterior.elbo


def test_the_kit_finds_nothing_wrong():
    cv.testing.check_model(_shape_and_rate(), {"x": X}, seed=0).raise_if_failed()


def test_predictions_are_moments_of_draws():
    posterior = _shape_and_rate().fit({"x": X}, seed=0)
    found = posterior.predict({})["x"]
    draws = posterior.predictive(n_draws=20_000, sizes={"row": 1}, seed=0)["x"]
    assert float(found.mean[0]) == pytest.approx(draws.mean(), rel=0.02)
    assert float(found.standard_deviation[0]) == pytest.approx(draws.std(), rel=0.03)


def test_starts_at_extreme_data_have_no_trouble():
    """Shapes of 0.01 and 1e6: the factor is 1e-4 wide, or has a tail a thousand times as long as its peak is wide."""
    for shape in (0.01, 1e6):
        x = np.maximum(stats.gamma(shape).rvs(50, random_state=11), 1e-300)
        posterior = cv.Model(cv.Gamma("x", cv.Gamma("a", 1, 1e-7), 1.0, plates=ROW)).fit({"x": x})
        assert float(posterior["a"].mean) == pytest.approx(shape, rel=0.5)
        evidence, mean, _ = _moments(
            lambda a, x=x: float(_log_gamma_density(x, a, 1.0).sum()), stats.gamma(1, scale=1e7)
        )
        assert posterior.elbo == pytest.approx(evidence, rel=1e-8)
        assert float(posterior["a"].mean) == pytest.approx(mean, rel=1e-7)


REFUSED: dict[str, tuple[Callable[[], Any], list[str]]] = {
    "two hidden shapes of a Beta": (
        lambda: cv.Beta("p", cv.Gamma("a", 1, 1), cv.Gamma("b", 1, 1)),
        ["'total' of Beta 'p' depends on 'a' and 'b'", "Beta(name, mean * total, (1 - mean) * total)"],
    ),
    "a product of two hidden numbers": (
        lambda: cv.Gamma("x", cv.Gamma("a", 1, 1) * cv.Gamma("b", 1, 1), 1.0),
        ["product of 'a' and 'b'", "let one of them be known"],
    ),
    "a number that may be negative": (
        lambda: cv.Gamma("x", cv.Gamma("a", 1, 1) - 1.0, 1.0),
        ["must be positive wherever 'a' may be, which 1 * a -1 is not"],
    ),
    "too few degrees of freedom": (
        lambda: cv.Wishart("L", cv.Gamma("nu", 1, 1), np.eye(3)),
        ["'df' of Wishart 'L' must be above 2"],
    ),
    "no number of categories": (
        lambda: cv.Dirichlet("p", cv.Gamma("a", 1, 1)),
        ["say how many there are: categories=K"],
    ),
    "a column": (
        lambda: cv.Gamma("x", cv.Gamma("a", 1, 1) * cv.Data("w", plates=ROW), 1.0, plates=ROW),
        ["'w' differs between repetitions", "Give the hidden scalar these plates"],
    ),
    "a floor on variances": (
        lambda: cv.Model(cv.Gamma("x", cv.Gamma("a", 1, 1, smallest_variance=0.1), 1.0)),
        ["'a' cannot have smallest_variance here", "gammaln(x)"],
    ),
    "a Normal": (
        lambda: cv.Gamma("x", cv.Normal("m", 0, 1), 1.0),
        ["cannot be the Normal 'm'. A Gamma (or a known value) would do"],
    ),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_cannot_be_tabulated_is_refused_when_it_is_stated(kind: str):
    state, facts = REFUSED[kind]
    with pytest.raises((cv.ConjugacyError, cv.ModelError)) as caught:
        state()
    for fact in facts:
        assert fact in str(caught.value)


def test_functions_are_right_far_out_on_the_line():
    """Log-gamma of e^-1000, which is no number of double precision, and the Beta function where it is tiny."""
    functions = (families.LogGamma(0.5, 0.0), families.LogBeta.of(np.ones(4)))
    points = families.support_of(families.Gamma).points(np.array([-1000.0, -3.0, 2.0, 25.0]))
    np.testing.assert_allclose(functions[0].value(points)[0], 1000.0 + np.log(2.0), rtol=1e-15)
    x = np.exp([-3.0, 2.0, 25.0])
    np.testing.assert_allclose(functions[0].value(points)[1:], gammaln(0.5 * x), rtol=1e-14)
    np.testing.assert_allclose(
        functions[1].value(points)[1:3], 4 * gammaln(x[:2]) - gammaln(4 * x[:2]), rtol=1e-13
    )
    step = 1e-5
    for function in (*functions, families.product_of([families.PLAIN["x"], families.PLAIN["log_x"]])):
        for base, places in ((families.Gamma, [-5.0, 0.3, 4.0]), (families.Beta, [-4.0, 0.2, 3.0])):
            at = families.support_of(base).points
            u = np.array(places)
            slope = (function.value(at(u + step)) - function.value(at(u - step))) / (2 * step)
            np.testing.assert_allclose(function.slope(at(u)), slope, rtol=1e-7)
    assert expit(3.0) == pytest.approx(families.support_of(families.Beta).points(np.array([3.0])).x[0])


def test_a_wishart_density_agrees_with_its_terms():
    """The multivariate gamma function is a sum of gamma functions, with a constant."""
    matrices = _wisharts()
    model = cv.Model(cv.Wishart("x", cv.Gamma("nu", 2, 0.7) + 1, np.eye(2), plates=ROW))
    joint = cv.simulation.log_joint if hasattr(cv, "simulation") else None
    known = model.fit({"x": matrices, "nu": 4.0})
    expected = _log_wishart(5.0, matrices) + stats.gamma(2, scale=1 / 0.7).logpdf(4.0)
    assert joint is None
    assert known.elbo == pytest.approx(expected, rel=1e-12)
    assert multigammaln(2.5, 2) == pytest.approx(0.5 * np.log(np.pi) + gammaln(2.5) + gammaln(2.0))
