"""Binomial and NegativeBinomial: exact where they can be, below the evidence elsewhere, however they are fitted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.special import betaln, gammaln

import caviar as cv
from caviar._typing import Array
from caviar.testing import check_model

OBS = cv.Plate("obs")
N, Y = np.array([47, 148, 119, 10, 0, 3]), np.array([0, 18, 8, 3, 0, 3])
X = np.column_stack([np.ones(6), np.random.default_rng(0).normal(size=6)])
COUNTS = np.array([0, 3, 9, 2, 30, 1])
SIZE = 2.5


def _coefficients(n: Array, y: Array) -> float:
    return float(np.sum(gammaln(n + 1) - gammaln(y + 1) - gammaln(n - y + 1)))


def _weights() -> cv.MultivariateNormal:
    return cv.MultivariateNormal("w", np.zeros(2), np.eye(2))


def _binomial(trials: Any = None) -> cv.Model:
    trials = cv.Data("n", plates=OBS) if trials is None else trials
    predictor = cv.dot(cv.Data("X", plates=OBS), _weights())
    return cv.Model(cv.Binomial("y", trials, cv.logistic(predictor), plates=OBS))


def _negative_binomial() -> cv.Model:
    predictor = cv.dot(cv.Data("X", plates=OBS), _weights())
    return cv.Model(cv.NegativeBinomial("y", cv.exp(predictor), SIZE, plates=OBS))


MODELS = {
    "binomial": (_binomial(), {"X": X, "y": Y, "n": N}),
    "negative binomial": (_negative_binomial(), {"X": X, "y": COUNTS}),
}


def _log_likelihood(kind: str, predictor: Array) -> Array:
    """Return the log-likelihood of all rows at predictors (rows, ...)."""
    own = (slice(None), *(None,) * (predictor.ndim - 1))
    if kind == "binomial":
        return stats.binom.logpmf(Y[own], N[own], 1 / (1 + np.exp(-predictor))).sum(axis=0)
    return stats.nbinom.logpmf(COUNTS[own], SIZE, SIZE / (SIZE + np.exp(predictor))).sum(axis=0)


def test_a_beta_probability_is_exact() -> None:
    p = cv.Beta("p", 1.5, 2)
    model = cv.Model(cv.Binomial("y", cv.Data("n", plates=OBS), p, plates=OBS))
    posterior = model.fit({"y": Y, "n": N})
    a, b = 1.5 + Y.sum(), 2 + (N - Y).sum()
    assert posterior.elbo == pytest.approx(_coefficients(N, Y) + betaln(a, b) - betaln(1.5, 2), rel=1e-13)
    assert (float(posterior["p"].a), float(posterior["p"].b)) == (a, b)
    draws = posterior.predict({"n": [20]})["y"]
    exact = stats.betabinom(20, a, b)
    assert draws.mean == pytest.approx(exact.mean(), rel=1e-12)
    assert draws.sd == pytest.approx(exact.std(), rel=1e-12)


def test_n_trials_are_n_answers() -> None:
    """The bound, the coefficients and linear response are those of a Bernoulli for each trial."""
    model, data = MODELS["binomial"]
    one = model.fit(data, tol=1e-15, max_iter=3000, seed=0)
    each = cv.Model(cv.Bernoulli("y", cv.logistic(cv.dot(cv.Data("X", plates=OBS), _weights())), plates=OBS))
    answers = np.concatenate([np.repeat([1.0, 0.0], [y, n - y]) for n, y in zip(N, Y, strict=True)])
    long = {"X": np.repeat(X, N, axis=0), "y": answers}
    other = each.fit(long, tol=1e-15, max_iter=3000, seed=0)
    assert one.elbo == pytest.approx(other.elbo + _coefficients(N, Y), rel=1e-12)
    np.testing.assert_allclose(one["w"].mean, other["w"].mean, rtol=1e-6)
    np.testing.assert_allclose(
        one.linear_response(data).covariance("w"), other.linear_response(long).covariance("w"), rtol=1e-6
    )


def test_known_predictors_give_the_exact_evidence() -> None:
    offset = np.array([-1.0, 0.0, 2.5, 0.5, 1.0, -3.0])
    by_row = cv.Data("offset", plates=OBS) * 1.0
    binomial = cv.Model(cv.Binomial("y", cv.Data("n", plates=OBS), cv.logistic(by_row), plates=OBS))
    counts = cv.Model(cv.NegativeBinomial("y", cv.exp(by_row), cv.Data("size", plates=OBS), plates=OBS))
    sizes = np.array([0.3, 1.0, 7.5, 100.0, 1e4, 2.0])
    elbo = binomial.fit({"y": Y, "n": N, "offset": offset}).elbo
    assert elbo == pytest.approx(_log_likelihood("binomial", offset), rel=1e-12)
    elbo = counts.fit({"y": COUNTS, "offset": offset, "size": sizes}).elbo
    exact = stats.nbinom.logpmf(COUNTS, sizes, sizes / (sizes + np.exp(offset))).sum()
    assert elbo == pytest.approx(exact, rel=1e-10)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("kind", MODELS)
def test_regressions_are_below_the_evidence_and_pass_the_kit(kind: str) -> None:
    model, data = MODELS[kind]
    posterior = model.fit(data, tol=1e-14, max_iter=2000)
    grid = np.linspace(-7, 7, 501)
    a, b = np.meshgrid(grid, grid, indexing="ij")
    joint = stats.norm.logpdf(a) + stats.norm.logpdf(b)
    joint = joint + _log_likelihood(kind, X[:, 0, None, None] * a + X[:, 1, None, None] * b)
    evidence = np.log(np.exp(joint - joint.max()).sum() * (grid[1] - grid[0]) ** 2) + joint.max()
    assert evidence - 0.8 < posterior.elbo < evidence
    check_model(model, data, n_draws=200).raise_if_failed()
    # the corrected standard deviations are those of the posterior, within a tenth
    weights = np.exp(joint - joint.max()) / np.exp(joint - joint.max()).sum()
    exact = [np.sqrt((weights * own**2).sum() - (weights * own).sum() ** 2) for own in (a, b)]
    np.testing.assert_allclose(posterior.linear_response(data).sd("w"), exact, rtol=0.1)


@pytest.mark.thinned(2)
@pytest.mark.usefixtures("figures_of_factors")
@pytest.mark.parametrize("kind", MODELS)
def test_weights_missing_counts_schedules_threads_and_files(kind: str, tmp_path: Path) -> None:
    model, data = MODELS[kind]
    settings: dict[str, Any] = {"tol": 1e-14, "max_iter": 2000, "seed": 0}
    gaps = np.where(np.arange(6) == 1, np.nan, data["y"])
    weighted = model.fit({**data, "y": gaps}, sample_weight=[1, 1, 2, 1, 0, 3], **settings)
    rows = [0, 2, 2, 3, 5, 5, 5]
    again = {name: value[rows] for name, value in data.items()}
    repeated = model.fit(again, **settings)
    assert weighted.elbo == pytest.approx(repeated.elbo, rel=1e-11)
    parts = model.fit(again, schedule=cv.Incremental(), **settings)
    assert parts.elbo == pytest.approx(repeated.elbo, rel=1e-8)
    assert model.fit(again, executor=2, **settings).elbo == repeated.elbo
    repeated.save(tmp_path / "m.caviar")
    loaded = cv.load(tmp_path / "m.caviar")
    new = {name: value[:3] for name, value in data.items() if name != "y"}
    np.testing.assert_array_equal(loaded.predict(new)["y"].mean, repeated.predict(new)["y"].mean)
    assert loaded.model.fit(again, **settings).elbo == repeated.elbo


@pytest.mark.slow
@pytest.mark.parametrize("kind", MODELS)
def test_predictions_are_the_moments_under_q(kind: str) -> None:
    model, data = MODELS[kind]
    posterior = model.fit(data, uncertainty="mean_field")
    new: dict[str, Array] = {"X": X[1:3]}
    if kind == "binomial":
        new["n"] = np.array([10, 200])
    told = posterior.predict(new)["y"]
    for row in range(2):
        first, second = _moments(kind, posterior["w"], {name: value[row] for name, value in new.items()})
        assert told.mean[row] == pytest.approx(first, rel=1e-8)
        assert told.sd[row] == pytest.approx(np.sqrt(second - first**2), rel=1e-7)


def _moments(kind: str, q: Any, row: dict[str, Array]) -> tuple[float, float]:
    """Return the expected count of a row and that of its square, by quadrature over the predictor."""
    x = row["X"]
    eta = stats.norm(x @ q.mean, np.sqrt(x @ q.covariance @ x))

    def at(e: float) -> Any:
        if kind == "binomial":
            return stats.binom(int(row["n"]), 1 / (1 + np.exp(-e)))
        return stats.nbinom(SIZE, SIZE / (SIZE + np.exp(e)))

    ends = eta.ppf(1e-16), eta.isf(1e-16)
    first = quad(lambda e: eta.pdf(e) * at(e).mean(), *ends, epsrel=1e-10)[0]
    return first, quad(lambda e: eta.pdf(e) * (at(e).var() + at(e).mean() ** 2), *ends, epsrel=1e-10)[0]


@pytest.mark.parametrize("kind", MODELS)
def test_draws_have_the_moments_of_their_distribution(kind: str) -> None:
    model, data = MODELS[kind]
    known = {name: np.repeat(value[1:2], 4000, axis=0) for name, value in data.items() if name != "y"}
    drawn = model.simulate(1, data=known, given={"w": np.array([0.3, -0.4])})
    eta = X[1] @ [0.3, -0.4]
    p = 1 / (1 + np.exp(-eta))
    exact = stats.binom(N[1], p) if kind == "binomial" else stats.nbinom(SIZE, SIZE / (SIZE + np.exp(eta)))
    assert abs(drawn["y"].mean() - exact.mean()) < 4.5 * exact.std() / np.sqrt(4000)
    assert drawn["y"].var() == pytest.approx(exact.var(), rel=0.15)
    size = N[1] if kind == "binomial" else drawn["y"] + SIZE
    tilt = eta if kind == "binomial" else eta - np.log(SIZE)
    hidden = cv.families.PolyaGammaSum(size, abs(tilt) * np.ones(4000))
    error = np.sqrt(hidden.variance.mean() / 4000)
    assert abs((drawn["y.polya_gamma"] - hidden.mean).mean()) < 4.5 * error


def test_counts_over_two_plates_with_trials_of_one() -> None:
    """Trials that differ between rows, or between columns, or known when the model is stated."""
    item = cv.Plate("item", 3)
    a = cv.Normal("a", 0, 1, plates=item)
    y = np.array([[1, 2, 0], [4, 4, 1.0], [0, 3, 2], [2, 2, 2]])
    y[2, 1] = np.nan
    columns, rows = np.array([4.0, 5.0, 3.0]), np.array([4.0, 5.0, 6.0, 4.0])

    def fit(trials: Any, **data: Any) -> cv.Posterior:
        model = cv.Model(cv.Binomial("y", trials, cv.logistic(a), plates=(OBS, item)))
        return model.fit({"y": y, **data}, tol=1e-14)

    def each(n: Array) -> float:
        total = 0.0
        for k in range(3):
            seen = ~np.isnan(y[:, k])
            own = cv.Model(cv.Binomial("y", int(n[seen, k].sum()), cv.logistic(cv.Normal("a", 0, 1))))
            total += own.fit({"y": y[seen, k].sum()}, tol=1e-14).elbo
            total += _coefficients(n[seen, k], y[seen, k]) - _coefficients(n[seen, k].sum(), y[seen, k].sum())
        return total

    for posterior, n in (
        (fit(columns), np.tile(columns, (4, 1))),
        (fit(cv.Constant("n", columns, plates=item)), np.tile(columns, (4, 1))),
        (fit(cv.Data("n", plates=item), n=columns), np.tile(columns, (4, 1))),
        (fit(cv.Data("n", plates=OBS), n=rows), np.tile(rows[:, None], 3)),
        (fit(6), np.full((4, 3), 6.0)),
    ):
        assert posterior.elbo == pytest.approx(each(n), rel=1e-10)


@pytest.mark.slow
def test_a_mean_that_is_a_product_is_a_poisson_with_a_gamma() -> None:
    """The statement with a variable for the heterogeneity, written out; and below the evidence."""
    group = cv.Plate("group", 2)
    data = {"y": COUNTS, "group": np.arange(6) % 2, "exposure": np.array([1.0, 2, 1, 1, 3, 1])}

    def rate() -> Any:
        mean = cv.Gamma("mean", 1, 0.1, plates=group)
        return mean[cv.Data("group", plates=OBS)] * cv.Data("exposure", plates=OBS)

    size = cv.Gamma("size", 2, 1)
    word = cv.Model(cv.NegativeBinomial("y", rate(), size, plates=OBS))
    own = cv.Gamma("u", size, size, plates=OBS)
    written = cv.Model(cv.Poisson("y", rate() * own, plates=OBS))
    one, other = word.fit(data, tol=1e-15, seed=0), written.fit(data, tol=1e-15, seed=0)
    assert one.elbo == pytest.approx(other.elbo, rel=1e-13)
    np.testing.assert_allclose(one["size"].mean, other["size"].mean, rtol=1e-7)
    check_model(word, data, n_draws=200).raise_if_failed()
    new = {"group": [0, 1], "exposure": [1.0, 2.0]}
    np.testing.assert_allclose(one.predict(new)["y"].sd, other.predict(new)["y"].sd, rtol=1e-7)

    mean = cv.Gamma("mean", 1, 0.1)
    posterior = cv.Model(cv.NegativeBinomial("y", mean, SIZE, plates=OBS)).fit({"y": COUNTS}, tol=1e-12)
    exact = quad(
        lambda m: (
            np.exp(stats.nbinom.logpmf(COUNTS, SIZE, SIZE / (SIZE + m)).sum() + 18) * 0.1 * np.exp(-0.1 * m)
        ),
        0,
        200,
    )[0]
    assert np.log(exact) - 18 - 1.0 < posterior.elbo < np.log(exact) - 18


@pytest.mark.usefixtures("figures_of_factors")
def test_a_stated_mean_is_saved_as_it_was_stated(tmp_path: Path) -> None:
    mean, size = cv.Gamma("mean", 1, 0.1), cv.Gamma("size", 2, 1)
    known = np.linspace(1, 3, 6)
    for own in (2.5 * mean, mean, 4.0, cv.Constant("known", known, plates=OBS), known):
        model = cv.Model(
            cv.NegativeBinomial("y", own, size, plates=cv.Plate("obs", 6) if own is known else OBS)
        )
        posterior = model.fit({"y": COUNTS}, seed=0)
        posterior.save(tmp_path / "m.caviar")
        loaded = cv.load(tmp_path / "m.caviar")
        assert loaded.model.fit({"y": COUNTS}, seed=0).elbo == posterior.elbo


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"y": Y + 1}, "must not exceed its trials; row 4 has 1 successes in 0 trials"),
        ({"y": Y - 1}, "must hold counts, whole numbers from 0; row 0 has -1"),
        ({"n": N - 0.5}, "must be whole numbers from 0"),
        ({"n": np.where(N == 10, np.nan, N)}, "'n'"),
    ],
)
def test_impossible_counts_are_refused(data: dict[str, Array], message: str) -> None:
    model, good = MODELS["binomial"]
    with pytest.raises(cv.DataError, match=message):
        model.fit({**good, **data})


def test_statements_without_an_update_are_refused_in_words() -> None:
    a, rate = cv.Normal("a", 0, 1), cv.Gamma("rate", 1, 1)
    for state, message in (
        (lambda: cv.Binomial("y", rate, 0.3), "'trials' of Binomial 'y' must be known"),
        (lambda: cv.Binomial("y", 10.5, 0.3), "'trials' of Binomial 'y' must be whole numbers from 0"),
        (lambda: cv.Binomial("y", 10, cv.probit(a)), "State a Bernoulli with a row for each success"),
        (
            lambda: cv.Binomial("y", 10, cv.exp(a)),
            r"as in NegativeBinomial\('y', exp\(Normal\('a'\)\), size\)",
        ),
        (lambda: cv.Poisson("y", cv.exp(a)), r"as in NegativeBinomial\('y', exp\(Normal\('a'\)\), size\)"),
        (lambda: cv.NegativeBinomial("y", cv.logistic(a), 1), r"takes exp\(...\) of a predictor"),
        (
            lambda: cv.NegativeBinomial("y", cv.exp(a), rate),
            "'size' of NegativeBinomial 'y' must be known where",
        ),
        (lambda: cv.NegativeBinomial("y", rate, 0), "'size' of NegativeBinomial 'y' must be positive"),
        (lambda: cv.NegativeBinomial("y", a, 1), "Use a Gamma"),
        (lambda: cv.Normal("x", cv.NegativeBinomial("y", cv.exp(a), 1), 1), "its mean is a link"),
    ):
        with pytest.raises(cv.CaviarError, match=message):
            state()
