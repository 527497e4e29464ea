"""Predictions of counts behind a link: quantiles and probabilities beside quadrature over the predictor, and scores."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, special, stats

import caviar as cv
from caviar.families.approximations.by_moments import BINARY, COUNTS, REALS, Counts
from caviar.language.outcomes.nodes_of_predictors import nodes, probability_at

OBS = cv.Plate("obs")
LEVELS = np.array([0.05, 0.5, 0.95])


def of_counts(n: int = 30) -> tuple[cv.Posterior, np.ndarray]:
    """A negative binomial regression, and new rows of which the last is far from the data."""
    rng = np.random.default_rng(0)
    x = np.column_stack([np.ones(n), rng.normal(size=n)])
    y = rng.poisson(rng.gamma(2.0, 0.5 * np.exp(1.0 + 0.5 * x[:, 1])))
    weights = cv.MultivariateNormal("w", np.zeros(2), np.eye(2) / 4)
    mean = cv.exp(cv.dot(cv.Data("X", plates=OBS), weights), method="expectation")
    model = cv.Model(cv.NegativeBinomial("y", mean, 2.0, plates=OBS))
    return model.fit({"X": x, "y": y}), np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 3.0]])


def of_trials(n: int = 30) -> tuple[cv.Posterior, np.ndarray]:
    rng = np.random.default_rng(1)
    x, trials = np.column_stack([np.ones(n), rng.normal(size=n)]), rng.integers(3, 9, n)
    y = rng.binomial(trials, special.expit(0.5 + x[:, 1]))
    weights = cv.MultivariateNormal("w", np.zeros(2), np.eye(2) / 4)
    share = cv.logistic(cv.dot(cv.Data("X", plates=OBS), weights), method="expectation")
    model = cv.Model(cv.Binomial("y", cv.Data("n", plates=OBS), share, plates=OBS))
    return model.fit({"X": x, "y": y, "n": trials}, uncertainty="mean_field"), np.array(
        [[1.0, 0.0], [1.0, 1.0], [1.0, -4.0]]
    )


def by_quadrature(posterior: cv.Posterior, rows: np.ndarray, probability, counts: np.ndarray) -> np.ndarray:
    """Return the probabilities of counts (rows, counts) under the Normal predictor."""
    q = posterior["w"]
    center = rows @ np.asarray(q.mean)
    wide = np.sqrt(np.einsum("nd,de,ne->n", rows, np.asarray(q.covariance), rows))
    z, w = np.polynomial.hermite_e.hermegauss(200)
    return np.stack(
        [
            np.einsum("j,jc->c", w / w.sum(), probability(counts[None, :], (m + s * z)[:, None]))
            for m, s in zip(center, wide, strict=True)
        ]
    )


def assert_is_the_mixture(told: cv.Prediction, exact: np.ndarray) -> None:
    counts = np.arange(exact.shape[1])
    below = np.cumsum(exact, axis=1)
    for level, found in zip(LEVELS, told.quantile(LEVELS), strict=True):
        # each is the smallest count that reaches this probability, up to the error of the nodes
        for row, count in enumerate(found.astype(int)):
            assert below[row, count] >= level - 2e-3
            assert count == 0 or below[row, count - 1] < level + 2e-3
    logs = np.stack([told.log_density(np.full(len(exact), float(count))) for count in counts[:8]], axis=1)
    np.testing.assert_allclose(np.exp(logs), exact[:, :8], atol=2e-3)
    drawn = told.sample(40_000, seed=0)
    np.testing.assert_allclose((drawn <= 2).mean(axis=0), below[:, 2], atol=0.012)


def test_negative_binomials_of_an_exponential() -> None:
    posterior, rows = of_counts()
    exact = by_quadrature(
        posterior, rows, lambda k, eta: stats.nbinom.pmf(k, 2.0, 2.0 / (2.0 + np.exp(eta))), np.arange(4000)
    )
    assert_is_the_mixture(posterior.predict({"X": rows})["y"], exact)


def test_binomials_of_a_logistic_function() -> None:
    posterior, rows = of_trials()
    told = posterior.predict({"X": rows, "n": [5.0, 8.0, 6.0]})["y"]
    exact = np.stack(
        [
            by_quadrature(
                posterior,
                rows[[row]],
                lambda k, eta, n=n: stats.binom.pmf(k, n, special.expit(eta)),
                np.arange(9),
            )[0]
            for row, n in enumerate([5, 8, 6])
        ]
    )
    assert_is_the_mixture(told, exact)
    assert (told.interval(0.999)[1] <= [5, 8, 6]).all()


def test_binomials_of_a_beta_are_beta_binomials() -> None:
    share = cv.Beta("share", 1, 1)
    model = cv.Model(cv.Binomial("y", cv.Data("n", plates=OBS), share, plates=OBS))
    posterior = model.fit({"y": [2, 0, 3], "n": [5, 2, 4]})
    told = posterior.predict({"n": [7.0, 20.0]})["y"]
    a, b = posterior["share"].a, posterior["share"].b
    exact = np.stack([stats.betabinom.pmf(np.arange(21), n, a, b) for n in (7, 20)])
    assert_is_the_mixture(told, exact)


def test_many_trials_and_a_wide_predictor_take_more_nodes() -> None:
    """Ten thousand trials tell the probability: the prediction has its spread, and no steps."""
    assert len(list(nodes(0.3))) == 9
    assert len(list(nodes(50.0))) == 41
    share = cv.logistic(cv.Normal("a", 0.0, 1.0) + cv.Data("x", plates=OBS), method="expectation")
    model = cv.Model(cv.Binomial("y", 10_000, share, plates=OBS))
    told = model.fit({"y": [5000], "x": [0.0]}, max_iter=0, init="prior").predict({"x": [0.0]})["y"]
    q = stats.norm(0, 1)
    for level, found in zip(LEVELS, told.quantile(LEVELS)[:, 0], strict=True):
        assert special.logit(found / 10_000) == pytest.approx(q.ppf(level), abs=0.13)


@pytest.mark.parametrize(
    ("mean", "sd", "exact"),
    [
        (3.0, np.sqrt(3.0), stats.poisson(3.0)),
        (3.0, np.sqrt(3.0 + 9.0 / 2.0), stats.nbinom(2.0, 2.0 / 5.0)),
        (3.0, np.sqrt(3.0 + 9.0 / 1e7), stats.nbinom(1e7, 1e7 / (1e7 + 3.0))),
        (3.0, np.sqrt(3.0 * 0.7), stats.binom(10, 0.3)),
        (10.0, 1e-9, stats.binom(10, 1.0)),
        (0.0, 0.0, stats.poisson(0.0)),
    ],
)
def test_log_probabilities_of_counts_are_those_of_scipy(mean: float, sd: float, exact) -> None:
    counts = np.arange(14.0)
    found = COUNTS.log_density(counts, np.array(mean), np.array(sd))
    np.testing.assert_allclose(np.exp(found), exact.pmf(counts), rtol=1e-6, atol=1e-12)
    assert np.isneginf(COUNTS.log_density(np.array([-1.0, 0.5]), np.array(mean), np.array(sd))).all()


def test_quantiles_of_numbers_too_large_to_be_told_apart_end() -> None:
    for mean in (1e12, 1e20, 1e40):
        part = (np.ones(1), np.array([mean]), np.sqrt([mean]))
        assert COUNTS.quantile(0.5, (part,)) == pytest.approx(mean, rel=1e-6)


def test_predictions_far_beyond_the_data_are_finite() -> None:
    posterior, _ = of_counts()
    told = posterior.predict({"X": np.array([[1.0, 80.0], [1.0, -2000.0]])})["y"]
    with np.errstate(all="raise", under="ignore"):
        ends = told.interval(0.9)
    assert np.isfinite(ends).all()
    assert (ends[:, 1] == 0).all()


def test_log_densities_of_the_others_are_those_of_scipy() -> None:
    assert REALS.log_density(np.array(0.7), np.array(0.2), np.array(1.3)) == pytest.approx(
        stats.norm(0.2, 1.3).logpdf(0.7)
    )
    found = BINARY.log_density(np.array([0.0, 1.0, 2.0]), np.array(0.2), np.array(0.4))
    np.testing.assert_allclose(np.exp(found), [0.8, 0.2, 0.0])


def test_nodes_integrate_and_ranks_give_a_beta() -> None:
    for ratio in (0.1, 2.0, 9.0, np.inf, np.nan):
        places, weights = np.array(list(nodes(ratio))).T
        assert weights.sum() == pytest.approx(1.0)
        assert weights @ places**2 == pytest.approx(1.0, abs=2e-3)
    rank = stats.norm.cdf(1.0)
    assert probability_at(1.0, np.array(0.3), np.array(0.02)) == pytest.approx(
        stats.beta(0.3 * 9.5, 0.7 * 9.5).ppf(rank)
    )
    assert probability_at(1.0, np.array(0.3), np.array(0.0)) == 0.3


def test_log_probabilities_of_labels() -> None:
    told = cv.Prediction.of_probabilities(np.array([[0.2, 0.8], [1.0, 0.0]]))
    np.testing.assert_allclose(np.exp(told.log_density([1, 1])), [0.8, 0.0])


def mixed_rows(n: int = 80) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(2)
    x, group = rng.normal(size=n), rng.integers(0, 5, n)
    eta = 0.3 + x + rng.normal(0, 0.5, 5)[group]
    return {
        "x": x,
        "g": np.array(list("abcde"))[group],
        "yes": (eta + rng.logistic(size=n) > 0).astype(float),
        "count": rng.poisson(np.exp(eta)).astype(float),
        "n": np.full(n, 6.0),
        "hits": rng.binomial(6, special.expit(eta)).astype(float),
    }


@pytest.mark.parametrize("family", ["bernoulli", "probit"])
def test_the_score_of_binary_outcomes_is_the_mean_log_probability(family: str) -> None:
    pytest.importorskip("formulaic")
    table = mixed_rows()
    model = cv.MixedModel("yes ~ x + (1 | g)", family=family).fit(table)
    share = model.predict(table).mean
    expected = np.log(np.where(table["yes"] == 1, share, 1 - share)).mean()
    assert model.score(table) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize(
    ("formula", "arguments"),
    [("hits | trials(n)", {"family": "binomial"}), ("count", {"family": "negative_binomial", "size": 3.0})],
)
def test_the_score_of_counts_is_the_mean_log_probability(formula: str, arguments: dict) -> None:
    """Beside an integral over the Normal predictor of each row, whose moments are the posterior's."""
    pytest.importorskip("formulaic")
    table = mixed_rows()
    model = cv.MixedModel(f"{formula} ~ x + (1 | g)", **arguments).fit(table)
    rows = {name: own[:3] for name, own in table.items()}
    told = model.predict(rows)
    # mean and variance of the predictor, from a design of the whole factor
    known = model._known(cv.estimators.mixed_models.columns.Rows.of(rows))
    expected = []
    for row in range(3):
        mean, sd = _predictor(model, known, row)

        def density(eta: float, row: int = row, mean: float = mean, sd: float = sd) -> float:
            own = (
                stats.binom.pmf(rows["hits"][row], 6, special.expit(eta))
                if "hits" in formula
                else stats.nbinom.pmf(rows["count"][row], 3.0, 3.0 / (3.0 + np.exp(eta)))
            )
            return own * stats.norm.pdf(eta, mean, sd)

        expected.append(np.log(integrate.quad(density, mean - 9 * sd, mean + 9 * sd)[0]))
    values = rows["hits" if "hits" in formula else "count"]
    np.testing.assert_allclose(told.log_density(values), expected, atol=2e-3)
    assert model.score(rows) == pytest.approx(np.mean(expected), abs=2e-3)
    assert told.interval(0.9).shape == (2, 3)


def _predictor(model: cv.MixedModel, known: dict, row: int) -> tuple[float, float]:
    """Return mean and standard deviation of the predictor of a row, from those of the counts' mean on its scale."""
    slots: dict[str, tuple[float, float]] = {}
    leaf = model.posterior_.model.leaves[0]
    original = type(leaf).parts_given

    def spied(self, own, mean, variance):
        link = self.stated["probability" if "probability" in self.stated else "mean"]
        center, width = own.normal(link.predictor)
        slots["found"] = (
            float(np.broadcast_to(center, (3,))[row]),
            float(np.sqrt(np.broadcast_to(width, (3,))[row])),
        )
        return original(self, own, mean, variance)

    type(leaf).parts_given = spied
    try:
        model.posterior_.predict(known)[leaf.name]
    finally:
        type(leaf).parts_given = original
    return slots["found"]


def test_quantiles_of_counts_are_the_smallest_numbers_that_reach_the_probability(monkeypatch):
    rng = np.random.default_rng(0)
    n_parts, n_rows, evaluated = 3, 400, []
    means = 10.0 ** rng.uniform(-2, 5, (n_parts, n_rows))
    # binomials, Poissons and negative binomials, some without rows or without a mean
    variances = means * rng.choice([0.5, 1.0, 1.7, 30.0], means.shape)
    means[:, :5] = variances[:, :5] = 0.0
    weights = rng.dirichlet(np.ones(n_parts), n_rows).T
    parts = tuple(zip(weights, means, np.sqrt(variances), strict=True))
    below = Counts.below

    def counted(self, value, mean, sd):
        evaluated.append(np.size(mean))
        return below(self, value, mean, sd)

    monkeypatch.setattr(Counts, "below", counted)
    for q in (0.001, 0.025, 0.5, 0.975):
        found = COUNTS.quantile(q, parts)
        assert np.all(COUNTS.below_in_mixture(found, parts) >= q)
        assert np.all(COUNTS.below_in_mixture(found - 1.0, parts) < q)
    # from 0 upwards 23 to 29 for each row and part; 2 of the calls here check the result
    assert sum(evaluated) / 4 / means.size - 2 < 14
    # an infinite mean has weight 0.5: half of the probability is beyond any number
    endless = tuple((np.array([0.5]), np.array([mean]), np.array([1.0])) for mean in (2.0, np.inf))
    assert COUNTS.quantile(0.9, endless) == np.inf
    assert COUNTS.quantile(0.2, endless) == 2.0
