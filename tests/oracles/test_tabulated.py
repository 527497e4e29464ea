"""Tabulated factors against quadrature: exact where the scalar alone is hidden, the mean-field optimum elsewhere."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize_scalar
from scipy.sparse import csr_array
from scipy.special import betaln, digamma, expit, gammaln

import caviar as cv
from caviar import families
from caviar.families.tabulated.scalar import support_of
from caviar.families.tabulated.scalar_functions import PLAIN, LogBeta, LogGamma, product_of
from oracles.tilted import Settled

ROW, GROUP = cv.Plate("row"), cv.Plate("group", 6)
X = stats.gamma(3.0, scale=0.5).rvs(40, random_state=1)
SIMPLEX = np.random.default_rng(2).dirichlet(np.array([2.0, 3.0, 5.0]), 12)
P = stats.beta(2.0, 5.0).rvs(30, random_state=3)
WISHARTS = stats.wishart(6, np.array([[1.0, 0.3], [0.3, 0.5]])).rvs(8, random_state=5)
SCALES = stats.gamma(2.5, scale=1 / 2.5).rvs(60, random_state=4)


LogDensity: TypeAlias = Callable[[np.ndarray], np.ndarray]
"""Log density of all data at each of several values of the scalar."""


def _log_gamma_density(x: Any, a: Any, b: Any) -> Any:
    return a * np.log(b) - gammaln(a) + (a - 1) * np.log(x) - b * x


def _of_gammas(x: np.ndarray, shape: LogDensity, rate: LogDensity) -> LogDensity:
    return lambda a: _log_gamma_density(x, shape(a)[:, None], rate(a)[:, None]).sum(axis=1)


def _of_dirichlets(shares: np.ndarray) -> LogDensity:
    def log_density(a: np.ndarray) -> np.ndarray:
        alpha = a[:, None] * shares
        normaliser = gammaln(alpha.sum(axis=1)) - gammaln(alpha).sum(axis=1)
        return len(SIMPLEX) * normaliser + (alpha - 1) @ np.log(SIMPLEX).sum(axis=0)

    return log_density


def _of_betas(first: LogDensity, second: LogDensity) -> LogDensity:
    def log_density(m: np.ndarray) -> np.ndarray:
        a, b = first(m), second(m)
        return (a - 1) * np.log(P).sum() + (b - 1) * np.log1p(-P).sum() - len(P) * betaln(a, b)

    return log_density


def _log_wishart(df: np.ndarray) -> np.ndarray:
    log_det, trace = np.linalg.slogdet(WISHARTS)[1].sum(), np.trace(WISHARTS, axis1=1, axis2=2).sum()
    log_gamma = 0.5 * np.log(np.pi) + gammaln(df / 2) + gammaln((df - 1) / 2)
    return 0.5 * (df - 3) * log_det - 0.5 * trace - len(WISHARTS) * (df * np.log(2) + log_gamma)


def _gamma_shape(a: Any) -> cv.Variable:
    return cv.Gamma("x", a, 2.0, plates=ROW)


ALONE: dict[str, tuple[Callable[[Any], Any], Any, Any, LogDensity]] = {
    "the shape of a Gamma": (_gamma_shape, cv.Gamma, X, _of_gammas(X, lambda a: a, lambda a: 2 + 0 * a)),
    "a shape that is a multiple, plus a number": (
        lambda a: cv.Gamma("x", 0.5 * a + 1.0, 2.0, plates=ROW),
        cv.Gamma,
        X,
        _of_gammas(X, lambda a: 0.5 * a + 1, lambda a: 2 + 0 * a),
    ),
    "shape and rate at once, as of a Student-t": (
        lambda nu: cv.Gamma("x", nu / 2, nu / 2, plates=ROW),
        cv.Gamma,
        SCALES,
        _of_gammas(SCALES, lambda nu: nu / 2, lambda nu: nu / 2),
    ),
    "one concentration for all categories": (
        lambda a: cv.Dirichlet("x", a, categories=3, plates=ROW),
        cv.Gamma,
        SIMPLEX,
        _of_dirichlets(np.ones(3)),
    ),
    "known shares times a hidden total": (
        lambda a: cv.Dirichlet("x", a * cv.Constant("shares", [0.2, 0.3, 0.5]), plates=ROW),
        cv.Gamma,
        SIMPLEX,
        _of_dirichlets(np.array([0.2, 0.3, 0.5])),
    ),
    "the total of a Beta": (
        lambda s: cv.Beta("x", 0.3 * s, 0.7 * s, plates=ROW),
        cv.Gamma,
        P,
        _of_betas(lambda s: 0.3 * s, lambda s: 0.7 * s),
    ),
    "the mean of a Beta": (
        lambda m: cv.Beta("x", 8 * m, 8 * (1 - m), plates=ROW),
        cv.Beta,
        P,
        _of_betas(lambda m: 8 * m, lambda m: 8 - 8 * m),
    ),
    "the degrees of freedom of a Wishart": (
        lambda nu: cv.Wishart("x", nu + 1, np.eye(2), plates=ROW),
        cv.Gamma,
        WISHARTS,
        lambda nu: _log_wishart(nu + 1),
    ),
}


def _moments(log_density: LogDensity, prior: Any) -> tuple[float, float, float]:
    """Return log evidence, mean and standard deviation by Gauss-Legendre pieces in the scalar itself.

    The pieces are where the integrand has weight, which a coarse look has told.
    """
    last = min(prior.ppf(1 - 1e-15), prior.support()[1] * (1 - 1e-9))
    coarse = np.exp(np.linspace(np.log(prior.ppf(1e-15)), np.log(last), 4001))
    for _ in range(2):
        g = log_density(coarse) + prior.logpdf(coarse)
        (inside,) = np.nonzero(g > g.max() - 60)
        low, high = coarse[max(inside[0] - 1, 0)], coarse[min(inside[-1] + 1, 4000)]
        coarse = np.exp(np.linspace(np.log(low), np.log(high), 4001))
    nodes, weights = np.polynomial.legendre.leggauss(20)
    edges = np.exp(np.linspace(np.log(low), np.log(high), 401))
    half = 0.5 * np.diff(edges)[:, None]
    a = (edges[:-1, None] + half + half * nodes).ravel()
    g = log_density(a) + prior.logpdf(a)
    masses = (half * weights).ravel() * np.exp(g - g.max())
    total, mean = masses.sum(), masses @ a / masses.sum()
    return g.max() + np.log(total), mean, np.sqrt(masses @ np.square(a - mean) / total)


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
        lambda a: -float(log_density(np.array([a]))[0]) - prior.logpdf(a),
        bounds=(1e-3, 0.999 if family is cv.Beta else 60.0),
        method="bounded",
        options={"xatol": 1e-10},
    )
    assert float(posterior["a"].value) == pytest.approx(found.x, rel=1e-6)
    assert posterior.elbo == pytest.approx(-found.fun, rel=1e-11)


def _shape_and_rate() -> cv.Model:
    return cv.Model(cv.Gamma("x", cv.Gamma("a", 2, 0.5), cv.Gamma("b", 3, 1), plates=ROW))


def _mean_field() -> tuple[float, float, float]:
    """Return E a, the shape of q(b) and the ELBO by coordinate ascent on a fine grid: shares no code with caviar."""
    a = np.exp(np.linspace(np.log(0.2), np.log(20), 20_001))
    n, log_x, step = len(X), np.log(X).sum(), np.log(a[1] / a[0])
    shape, rate = 1.0, 1 + X.sum()
    for _ in range(500):
        log_b = digamma(shape) - np.log(rate)
        g = np.log(a) - 0.5 * a + a * (log_x + n * log_b) - n * gammaln(a)
        log_q = g - np.log(np.sum(np.exp(g - g.max()) * a * step)) - g.max()
        q = np.exp(log_q) * a * step
        shape = 3 + n * (q @ a)
    log_b, b = digamma(shape) - np.log(rate), shape / rate
    likelihood = (q @ a) * n * log_b - n * (q @ gammaln(a)) + (q @ a - 1) * log_x - b * X.sum()
    priors = 2 * np.log(0.5) + q @ np.log(a) - 0.5 * (q @ a) - gammaln(3.0) + 2 * log_b - b
    return q @ a, shape, likelihood + priors - q @ log_q + stats.gamma(shape, scale=1 / rate).entropy()


@pytest.mark.slow
def test_shape_and_rate_end_at_the_mean_field_optimum_below_the_evidence():
    posterior, (mean, shape, elbo) = _shape_and_rate().fit({"x": X}, seed=0, tol=1e-13), _mean_field()
    assert float(posterior["a"].mean) == pytest.approx(mean, rel=1e-6)
    assert float(posterior["b"].shape) == pytest.approx(shape, rel=1e-6)
    assert posterior.elbo == pytest.approx(elbo, abs=1e-8)
    # given the shape, the rate is integrated out in closed form
    prior = stats.gamma(2, scale=2)
    n, log_x = len(X), np.log(X).sum()
    evidence, _, sd = _moments(
        lambda a: (
            (a - 1) * log_x
            - n * gammaln(a)
            + gammaln(3 + n * a)
            - gammaln(3)
            - (3 + n * a) * np.log(1 + X.sum())
        ),
        prior,
    )
    assert 0.5 < evidence - posterior.elbo < 2.0
    assert posterior.linear_response({"x": X}).sd("a") == pytest.approx(sd, rel=0.05)
    assert (np.diff(posterior.elbo_trace) > -1e-10).all()


@pytest.mark.slow
def test_every_seed_every_start_and_both_orders_end_there():
    best = _shape_and_rate().fit({"x": X}, seed=0).elbo
    starts: list[Mapping[str, Any]] = [{"seed": seed} for seed in range(10)]
    starts += [{"init": "prior"}, {"init": {"a": 40.0}}, {"init": {"a": families.Gamma(2.0, 9.0)}}]
    starts += [{"order": ["a", "b"]}, {"order": ["b", "a"]}, {"n_restarts": 3, "seed": 1}]
    for arguments in starts:
        assert _shape_and_rate().fit({"x": X}, **arguments).elbo == pytest.approx(best, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a", "b"])
def test_covariances_are_the_slopes_of_tilted_fits(name: str):
    posterior = _shape_and_rate().fit({"x": X}, seed=0)
    assert Settled(posterior, {"x": X}).worst(name) < 1e-5


@pytest.mark.slow
def test_student_t_degrees_of_freedom_are_bounded_by_the_evidence():
    y = stats.t(4).rvs(200, random_state=6)
    nu = cv.Gamma("nu", 2, 0.1)
    u = cv.Gamma("u", nu / 2, nu / 2, plates=ROW)
    posterior = cv.Model(cv.Normal("y", 0.0, u, plates=ROW)).fit({"y": y}, seed=0)
    evidence, mean, sd = _moments(
        lambda nu: stats.t.logpdf(y, nu[:, None]).sum(axis=1), stats.gamma(2, scale=10)
    )
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

    def log_density(a: np.ndarray) -> np.ndarray:
        ratios = sum(gammaln(own + a) for own in counts.ravel()) - counts.size * gammaln(a)
        return ratios + len(counts) * (gammaln(4 * a) - gammaln(25 + 4 * a)) + coefficients

    evidence, mean, sd = _moments(log_density, stats.gamma(1, scale=5))
    assert 0 < evidence - posterior.elbo < 2.0
    assert abs(float(posterior["alpha"].mean) - mean) < sd


def test_the_size_of_a_negative_binomial_is_bounded_by_the_evidence():
    """A Poisson rate times a Gamma of shape and rate alike: the mean known, the size is integrated over the line."""
    y = stats.nbinom(3, 3 / 9).rvs(150, random_state=12)
    size = cv.Gamma("size", 2, 0.5)
    u = cv.Gamma("u", size, size, plates=ROW)
    posterior = cv.Model(cv.Poisson("y", 6.0 * u, plates=ROW)).fit({"y": y}, seed=0)
    evidence, mean, sd = _moments(
        lambda r: stats.nbinom.logpmf(y, r[:, None], r[:, None] / (r[:, None] + 6)).sum(axis=1),
        stats.gamma(2, scale=2),
    )
    assert 0 < evidence - posterior.elbo < 1.5
    assert abs(float(posterior["size"].mean) - mean) < sd
    assert posterior.linear_response({"y": y}).sd("size") == pytest.approx(sd, rel=0.1)


@pytest.mark.slow
def test_a_flat_shape_as_a_point_is_that_of_bayespy():
    """BayesPy's GammaShape is a point without a prior."""
    from bayespy.nodes import Gamma, GammaShape

    shape, rate = GammaShape(), Gamma(1e-3, 1e-3)
    node = Gamma(shape, rate, plates=(len(X),))
    node.observe(X)
    for _ in range(2000):
        rate.update()
        shape.update()
    a, b = cv.Gamma("a", 1, 0), cv.Gamma("b", 1e-3, 1e-3)
    posterior = cv.Model(cv.Gamma("x", a, b, plates=ROW)).fit({"x": X}, point=["a"], tol=1e-14)
    assert float(posterior["a"].value) == pytest.approx(float(shape.get_moments()[0]), rel=1e-5)
    assert float(posterior["b"].mean) == pytest.approx(float(rate.get_moments()[0]), rel=1e-5)


def test_a_learnt_prior_of_topics_is_the_best_of_all():
    rng = np.random.default_rng(13)
    n_topics, n_words = 2, 8
    words = rng.dirichlet(np.full(n_words, 0.2), n_topics)
    counts = np.array([rng.multinomial(30, rng.dirichlet(np.ones(n_topics)) @ words) for _ in range(12)])

    def model(concentration: Any) -> cv.Model:
        document, topic = cv.Plate("document"), cv.Plate("topic", n_topics)
        topics = cv.Dirichlet("topics", concentration, categories=n_words, plates=topic)
        theta = cv.Dirichlet("theta", np.ones(n_topics), plates=document)
        token = cv.Plate("token", within=document)
        z = cv.Categorical("z", theta, plates=token)
        return cv.Model(cv.Categorical("word", topics[z], plates=token))

    data = {"word": csr_array(counts)}
    learnt = model(cv.Gamma("eta", 2, 2)).fit(data, point=["eta"], seed=0)
    best = float(learnt["eta"].value)
    for factor in (0.5, 0.99, 1.0, 1.01, 2.0):
        other = model(factor * best).fit(data, init={"topics": learnt["topics"]}).elbo + stats.gamma(
            2, scale=0.5
        ).logpdf(factor * best)
        assert other <= learnt.elbo + 1e-6
        assert factor != 1.0 or other == pytest.approx(learnt.elbo, abs=1e-5)


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
    np.testing.assert_allclose(one.interval(0.8), one.quantile([0.1, 0.9]), rtol=1e-15)
    draws = one.sample(20_000, seed=0)
    assert stats.kstest(draws, one.cdf).pvalue > 1e-3
    np.testing.assert_allclose([draws.mean(), draws.std()], [one.mean, one.sd], rtol=0.03)


def test_a_scalar_for_each_row_is_local():
    """Each row has a shape of its own, and three values of it."""
    x = stats.gamma(np.array([0.5, 2.0, 9.0, 30.0])[:, None]).rvs((4, 3), random_state=10)
    rows, value = cv.Plate("rows"), cv.Plate("value", 3)
    a = cv.Gamma("a", 1, 0.1, plates=rows)
    data = {"x": x}
    posterior = cv.Model(cv.Gamma("x", a, 1.0, plates=(rows, value))).fit(data, data_plate="rows")
    exact = [_moments(_of_gammas(own, lambda a: a, np.ones_like), stats.gamma(1, scale=10)) for own in x]
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


@pytest.mark.usefixtures("figures_of_factors")
@pytest.mark.parametrize("kind", ALONE)
def test_every_statement_is_saved_with_its_fit(kind: str, tmp_path: Any):
    state, family, data, _ = ALONE[kind]
    posterior = cv.Model(state(family("a", 2.0, 0.7))).fit({"x": data}, seed=0)
    posterior.save(str(tmp_path / "fit.caviar"))
    loaded = cv.load(str(tmp_path / "fit.caviar"))
    assert loaded.elbo == posterior.elbo
    assert loaded.model.fit({"x": data}, seed=0).elbo == posterior.elbo


def test_the_kit_finds_nothing_wrong():
    cv.testing.check_model(_shape_and_rate(), {"x": X}, seed=0).raise_if_failed()


@pytest.mark.slow
def test_predictions_are_moments_of_draws():
    posterior = _shape_and_rate().fit({"x": X}, seed=0)
    found = posterior.predict({})["x"]
    draws = posterior.predictive(n_draws=2000, sizes={"row": 4}, seed=0)["x"]
    assert float(found.mean[0]) == pytest.approx(draws.mean(), rel=0.03)
    assert float(found.standard_deviation[0]) == pytest.approx(draws.std(), rel=0.05)


def test_starts_at_extreme_data_have_no_trouble():
    """Shapes of 0.01 and 1e6: the factor is 1e-4 wide, or has a tail a thousand times as long as its peak is wide."""
    for shape in (0.01, 1e6):
        x = np.maximum(stats.gamma(shape).rvs(50, random_state=11), 1e-300)
        posterior = cv.Model(cv.Gamma("x", cv.Gamma("a", 1, 1e-7), 1.0, plates=ROW)).fit({"x": x})
        assert float(posterior["a"].mean) == pytest.approx(shape, rel=0.5)
        evidence, mean, _ = _moments(_of_gammas(x, lambda a: a, np.ones_like), stats.gamma(1, scale=1e7))
        assert posterior.elbo == pytest.approx(evidence, rel=1e-8)
        assert float(posterior["a"].mean) == pytest.approx(mean, rel=1e-7)


REFUSED: dict[str, tuple[Callable[[], Any], list[str]]] = {
    "two hidden shapes of a Beta": (
        lambda: cv.Beta("p", cv.Gamma("a", 1, 1), cv.Gamma("b", 1, 1)),
        ["'total' of Beta 'p' depends on 'a' and 'b'", "Beta(name, mean * total, (1 - mean) * total)"],
    ),
    "a product of two hidden numbers": (
        lambda: cv.Gamma("x", cv.Gamma("a", 1, 1) * cv.Gamma("b", 1, 1), 1.0),
        ["product of 'a' and 'b'", "Make all but one of them known"],
    ),
    "a number that may be negative": (
        lambda: cv.Gamma("x", cv.Gamma("a", 1, 1) - 1.0, 1.0),
        ["must be positive for every value of 'a', which a - 1 is not. Give a Gamma, or a known value"],
    ),
    "too few degrees of freedom": (
        lambda: cv.Wishart("L", cv.Gamma("nu", 1, 1), np.eye(3)),
        ["'df' of Wishart 'L' must be above 2"],
    ),
    "no number of categories": (
        lambda: cv.Dirichlet("p", cv.Gamma("a", 1, 1)),
        ["give the number of categories: categories=K"],
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
        ["cannot be the Normal 'm'. Use a Gamma, or a known value"],
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
    functions = (LogGamma(0.5, 0.0), LogBeta.of(np.ones(4)))
    points = support_of(families.Gamma).points(np.array([-1000.0, -3.0, 2.0, 25.0]))
    np.testing.assert_allclose(functions[0].value(points)[0], 1000.0 + np.log(2.0), rtol=1e-15)
    x = np.exp([-3.0, 2.0, 25.0])
    np.testing.assert_allclose(functions[0].value(points)[1:], gammaln(0.5 * x), rtol=1e-14)
    np.testing.assert_allclose(
        functions[1].value(points)[1:3], 4 * gammaln(x[:2]) - gammaln(4 * x[:2]), rtol=1e-13
    )
    step = 1e-5
    for function in (*functions, product_of([PLAIN["x"], PLAIN["log_x"]])):
        for base, places in ((families.Gamma, [-5.0, 0.3, 4.0]), (families.Beta, [-4.0, 0.2, 3.0])):
            at = support_of(base).points
            u = np.array(places)
            slope = (function.value(at(u + step)) - function.value(at(u - step))) / (2 * step)
            np.testing.assert_allclose(function.slope(at(u)), slope, rtol=1e-7)
    assert expit(3.0) == pytest.approx(support_of(families.Beta).points(np.array([3.0])).x[0])


def test_known_degrees_of_freedom_give_the_density_of_a_wishart():
    model = cv.Model(cv.Wishart("x", cv.Gamma("nu", 2, 0.7) + 1, np.eye(2), plates=ROW))
    expected = sum(stats.wishart(5, np.eye(2)).logpdf(own) for own in WISHARTS)
    expected += stats.gamma(2, scale=1 / 0.7).logpdf(4.0)
    assert model.fit({"x": WISHARTS, "nu": 4.0}).elbo == pytest.approx(expected, rel=1e-12)
