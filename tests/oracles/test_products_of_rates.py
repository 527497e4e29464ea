"""Rates that are products: known exposures, rates of groups that meet, and labels that choose one of them."""

import numpy as np
import pytest
from scipy.special import digamma, gammaln, logsumexp

import caviar as cv

RNG = np.random.default_rng(0)
N = 40
OBS, PLAYER, COURT = cv.Plate("obs"), cv.Plate("player", 4), cv.Plate("court", 3)
EXPOSURE = RNG.uniform(0.5, 3.0, N)
COUNTS = RNG.poisson(1.7 * EXPOSURE)
PLAYERS, COURTS = RNG.integers(4, size=N), RNG.integers(3, size=N)
OWN = {"y": COUNTS, "exposure": EXPOSURE}
DATA = {**OWN, "player": PLAYERS, "court": COURTS}


def exposed():
    rate = cv.Gamma("rate", 2.0, 1.5)
    return cv.Model(cv.Poisson("y", rate * cv.Data("exposure", plates=OBS), plates=OBS))


def crossed():
    ability, ease = cv.Gamma("ability", 2.0, 2.0, plates=PLAYER), cv.Gamma("ease", 3.0, 1.0, plates=COURT)
    chosen = ability[cv.Data("player", plates=OBS)] * ease[cv.Data("court", plates=OBS)]
    return cv.Model(cv.Poisson("y", 0.5 * chosen * cv.Data("exposure", plates=OBS), plates=OBS))


def test_one_rate_with_exposures_has_the_evidence_of_the_conjugate_model():
    posterior = exposed().fit(OWN)
    shape, rate = 2.0 + COUNTS.sum(), 1.5 + EXPOSURE.sum()
    evidence = (COUNTS * np.log(EXPOSURE) - gammaln(COUNTS + 1)).sum()
    evidence += 2.0 * np.log(1.5) - gammaln(2.0) + gammaln(shape) - shape * np.log(rate)
    assert posterior.elbo == pytest.approx(evidence, rel=1e-13)
    assert posterior["rate"].shape == pytest.approx(shape)
    assert posterior["rate"].rate == pytest.approx(rate)
    new = {"y": np.array([0, 3]), "exposure": np.array([0.7, 2.5])}
    after = rate + new["exposure"]
    density = shape * np.log(rate) - gammaln(shape) + gammaln(shape + new["y"]) - gammaln(new["y"] + 1)
    density += new["y"] * np.log(new["exposure"]) - (shape + new["y"]) * np.log(after)
    np.testing.assert_allclose(posterior.log_predictive(new), density, rtol=1e-12)
    predicted = posterior.predict({"exposure": new["exposure"]})["y"]
    np.testing.assert_allclose(predicted.mean, new["exposure"] * shape / rate, rtol=1e-13)
    variance = predicted.mean + new["exposure"] ** 2 * shape / rate**2
    np.testing.assert_allclose(predicted.standard_deviation**2, variance, rtol=1e-13)


def test_rates_that_meet_end_where_each_is_its_own_conjugate_update():
    posterior = crossed().fit(DATA, tol=1e-13)
    ability, ease = posterior["ability"], posterior["ease"]
    for own, prior, labels, other in (
        (ability, (2.0, 2.0), PLAYERS, ease.mean[COURTS]),
        (ease, (3.0, 1.0), COURTS, ability.mean[PLAYERS]),
    ):
        size = len(own.shape)
        shape = prior[0] + np.bincount(labels, COUNTS, size)
        rate = prior[1] + np.bincount(labels, 0.5 * EXPOSURE * other, size)
        np.testing.assert_allclose(own.shape, shape, rtol=1e-10)
        np.testing.assert_allclose(own.rate, rate, rtol=1e-5)
    # the bound written out: E log p(y | rates) minus the divergences from the priors
    logs = np.log(0.5 * EXPOSURE)
    for own, labels in ((ability, PLAYERS), (ease, COURTS)):
        logs = logs + (digamma(own.shape) - np.log(own.rate))[labels]
    means = 0.5 * EXPOSURE * ability.mean[PLAYERS] * ease.mean[COURTS]
    bound = (COUNTS * logs - means - gammaln(COUNTS + 1)).sum()
    bound -= ability.kl(cv.families.Gamma(2.0, 2.0)).sum() + ease.kl(cv.families.Gamma(3.0, 1.0)).sum()
    assert posterior.elbo == pytest.approx(bound, rel=1e-12)


@pytest.mark.slow
def test_the_variance_of_a_product_is_that_of_draws():
    posterior = crossed().fit(DATA)
    new = {name: DATA[name][:3] for name in ("exposure", "player", "court")}
    predicted = posterior.predict(new)["y"]
    shapes = [posterior["ability"][new["player"]], posterior["ease"][new["court"]]]
    first = np.prod([own.mean for own in shapes], axis=0) * 0.5 * new["exposure"]
    second = np.prod([own.variance + own.mean**2 for own in shapes], axis=0) * (0.5 * new["exposure"]) ** 2
    np.testing.assert_allclose(predicted.mean, first, rtol=1e-12)
    np.testing.assert_allclose(predicted.standard_deviation**2, first + second - first**2, rtol=1e-12)
    draws = posterior.predictive(data=new, n_draws=4_000, seed=0)["y"]
    np.testing.assert_allclose(draws.mean(0), predicted.mean, atol=0.2)
    np.testing.assert_allclose(draws.std(0), predicted.standard_deviation, rtol=0.08)


def test_labels_choose_among_rates_beside_exposures():
    rates, rng = np.array([1.0, 5.0, 20.0]), np.random.default_rng(1)
    exposure, labels = rng.uniform(0.1, 10.0, 600), rng.integers(3, size=600)
    counts = rng.poisson(rates[labels] * exposure)
    kind, weights = cv.Plate("kind", 3), cv.Dirichlet("weights", np.ones(3))
    z = cv.Categorical("z", weights, plates=OBS)
    rate = cv.Gamma("rate", 1.0, 0.1, plates=kind)
    model = cv.Model(cv.Poisson("y", rate[z] * cv.Data("exposure", plates=OBS), plates=OBS))
    data = {"y": counts, "exposure": exposure}
    posterior = model.fit(data, seed=0)
    order = np.argsort(posterior["rate"].mean)
    np.testing.assert_allclose(posterior["rate"].mean[order], rates, rtol=0.15)
    # responsibilities are those of the expected log densities
    q, alpha = posterior["rate"], posterior["weights"].concentration
    logits = (
        digamma(alpha) + counts[:, None] * (digamma(q.shape) - np.log(q.rate)) - exposure[:, None] * q.mean
    )
    expected = np.exp(logits - logsumexp(logits, axis=1, keepdims=True))
    np.testing.assert_allclose(posterior.local(data)["z"].probabilities, expected, atol=1e-6)
    ends = [model.fit(data, seed=seed).elbo for seed in range(1, 4)]
    np.testing.assert_allclose(ends, posterior.elbo, rtol=1e-8)


def test_a_table_of_rates_by_row_and_column():
    rng = np.random.default_rng(2)
    row, column = cv.Plate("row"), cv.Plate("column", 5)
    level, share = cv.Gamma("level", 1.0, 1.0, plates=row), cv.Gamma("share", 1.0, 0.1, plates=column)
    counts = rng.poisson(rng.gamma(2.0, 1.0, 60)[:, None] * np.array([1.0, 4.0, 9.0, 2.0, 6.0]))
    model = cv.Model(cv.Poisson("y", level * share, plates=(row, column)))
    posterior = model.fit({"y": counts}, tol=1e-12)
    local = posterior.local({"y": counts})["level"]
    np.testing.assert_allclose(local.shape, 1.0 + counts.sum(1), rtol=1e-12)
    np.testing.assert_allclose(local.rate, 1.0 + posterior["share"].mean.sum(), rtol=1e-6)
    np.testing.assert_allclose(posterior["share"].shape, 1.0 + counts.sum(0), rtol=1e-12)
    np.testing.assert_allclose(posterior["share"].rate, 0.1 + local.mean.sum(), rtol=1e-5)


@pytest.mark.parametrize("schedule", ["incremental", "stochastic"])
def test_other_schedules_and_weights(schedule):
    twice = {name: np.concatenate([own, own]) for name, own in DATA.items()}
    whole = crossed().fit(twice, tol=1e-12).elbo
    assert crossed().fit(DATA, sample_weight=np.full(N, 2.0), tol=1e-12).elbo == pytest.approx(
        whole, rel=1e-10
    )
    found = crossed().fit(twice, schedule=schedule, seed=0).elbo
    assert found == pytest.approx(whole, rel=1e-6 if schedule == "incremental" else 0.05)


def test_a_saved_posterior_states_the_product_again(tmp_path):
    posterior = crossed().fit(DATA)
    posterior.save(tmp_path / "crossed.caviar")
    again = cv.load(tmp_path / "crossed.caviar")
    assert repr(again.model.variables["y"].stated["rate"]) == repr(
        posterior.model.variables["y"].stated["rate"]
    )
    assert again.elbo == posterior.elbo
    np.testing.assert_array_equal(
        again.predict({k: DATA[k] for k in DATA if k != "y"})["y"].mean,
        posterior.predict({k: DATA[k] for k in DATA if k != "y"})["y"].mean,
    )


@pytest.mark.parametrize(
    ("rate", "error", "words"),
    [
        (lambda r, e: r * r, cv.ConjugacyError, "appears twice"),
        (lambda r, e: -1.0 * r, cv.ModelError, "must be positive"),
        (lambda r, e: r * cv.Normal("m", 0, 1), cv.ConjugacyError, "Use a Gamma"),
    ],
)
def test_what_has_no_conjugate_form_is_refused(rate, error, words):
    with pytest.raises(error, match=words):
        cv.Poisson("y", rate(cv.Gamma("r", 1, 1), cv.Data("e", plates=OBS)), plates=OBS)


@pytest.mark.parametrize("factor", [0.0, -1.0, np.nan, np.inf])
def test_an_exposure_is_positive_and_finite(factor):
    with pytest.raises(cv.DataError, match="exposure"):
        exposed().fit({**OWN, "exposure": factor * EXPOSURE})
    with pytest.raises(cv.DataError, match="exposure"):
        exposed().fit({**OWN, "exposure": np.where(np.arange(N) == 3, factor, EXPOSURE)})
