"""Links of any predictor: exact where it is known, missing answers, draws, densities, and the verification kit."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.special import log_expit, log_ndtr
from scipy.stats import norm

import caviar as cv
from caviar import models
from caviar._typing import Array
from caviar.testing import check_model

LINKS = ["probit", "logistic"]
STATE: dict[str, Callable[..., cv.Model]] = {
    "probit": models.probit_regression,
    "logistic": models.logistic_regression,
}
LINK: dict[str, Callable[[Any], Any]] = {"probit": cv.probit, "logistic": cv.logistic}
LOG_PROBABILITY: dict[str, Callable[[Array], Array]] = {"probit": log_ndtr, "logistic": log_expit}
HIDDEN = {"probit": "y.utility", "logistic": "y.polya_gamma"}


def _rows(seed: int, n: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    X = np.column_stack([np.ones(n), rng.normal(size=n)])
    return X, (rng.normal(size=n) < X @ [-0.5, 1.0]).astype(float)


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("scale", [1.0, 1e3, 1e6])
def test_known_predictors_give_the_exact_evidence(link: str, scale: float) -> None:
    """Without an unknown coefficient the hidden variables are exact, however far out the predictor is."""
    obs = cv.Plate("obs")
    offset = scale * np.array([-1.0, -0.4, 0.0, 0.3, 2.0, 1.0])
    y = np.array([0, 1, 1, 0, 1, 0])
    model = cv.Model(cv.Bernoulli("y", LINK[link](cv.Data("offset", plates=obs)), plates=obs))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        posterior = model.fit({"offset": offset, "y": y})
    # of 6e11 nats, which only a probit is so far out, double precision keeps 1e-3
    lost = [w.category for w in told] == [cv.LostDigitsWarning]
    assert lost == (link == "probit" and scale == 1e6)
    assert lost or not told
    exact = LOG_PROBABILITY[link]((2 * y - 1) * offset).sum()
    assert posterior.elbo == pytest.approx(exact, rel=1e-12)
    hidden = posterior.local({"offset": offset, "y": y})[HIDDEN[link]]
    assert np.all(np.isfinite(hidden.mean))
    if link == "probit":
        np.testing.assert_allclose(hidden.location, (2 * y - 1) * offset, rtol=1e-15)
    else:
        np.testing.assert_allclose(hidden.tilt, np.abs(offset), rtol=1e-15)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("link", LINKS)
def test_an_intercept_alone_is_stationary_and_below_the_evidence(link: str) -> None:
    """One Normal as the whole predictor, without a design matrix; the answers are exchangeable."""
    obs = cv.Plate("obs")
    y = np.array([1, 1, 1, 0, 1, 0, 1.0])
    model = cv.Model(cv.Bernoulli("y", LINK[link](cv.Normal("a", 0.0, 1 / 4)), plates=obs))
    posterior = model.fit({"y": y}, seed=0, tol=1e-15)
    twin = STATE[link](1, prior_precision=0.25).fit({"X": np.ones((7, 1)), "y": y}, seed=0, tol=1e-15)
    assert posterior.elbo == pytest.approx(twin.elbo, rel=1e-12)
    a = np.linspace(-18, 18, 4001)
    joint = np.exp(LOG_PROBABILITY[link]((2 * y - 1)[:, None] * a).sum(axis=0)) * norm(0, 2).pdf(a)
    assert posterior.elbo < np.log(joint.sum() * (a[1] - a[0]))
    # of seven answers the hidden ones differ only by the answer
    hidden = posterior.local({"y": y})[HIDDEN[link]].mean
    assert np.ptp(hidden[y == 1]) < 1e-12
    check_model(model, {"y": y}).raise_if_failed()


@pytest.mark.parametrize("link", LINKS)
def test_one_answer_without_plates(link: str) -> None:
    """Where nothing is repeated the hidden variable is a global one, and all is the same."""
    model = cv.Model(cv.Bernoulli("y", LINK[link](cv.Normal("a", 0.3, 1.0))))
    posterior = model.fit({"y": 1}, tol=1e-15)
    twin = STATE[link](1, prior_mean=0.3, prior_precision=1.0).fit(
        {"X": [[1.0]], "y": [1]}, seed=0, tol=1e-15
    )
    assert posterior.elbo == pytest.approx(twin.elbo, rel=1e-12)
    assert HIDDEN[link] in posterior
    assert HIDDEN[link] not in str(posterior.summary()), "it was not stated"
    check_model(model, {"y": 1}).raise_if_failed()


@pytest.mark.parametrize("link", LINKS)
def test_missing_answers_count_nothing(link: str) -> None:
    """A table of answers to three items with gaps is one regression for each item, on its own rows."""
    obs, item = cv.Plate("obs"), cv.Plate("item", 3)
    rng = np.random.default_rng(7)
    X, y = rng.normal(size=(30, 2)), rng.integers(0, 2, (30, 3)).astype(float)
    y[rng.random(y.shape) < 0.3] = np.nan
    y[4] = np.nan
    w = cv.MultivariateNormal("w", np.zeros(2), np.eye(2), plates=item)
    table = cv.Bernoulli("y", LINK[link](cv.dot(cv.Data("X", plates=obs), w)), plates=(obs, item))
    weight = rng.integers(0, 3, 30)
    posterior = cv.Model(table).fit({"X": X, "y": y}, seed=0, tol=1e-15, max_iter=3000, sample_weight=weight)
    total = 0.0
    for k in range(3):
        rows = np.repeat(np.arange(30), weight)
        rows = rows[~np.isnan(y[rows, k])]
        alone = STATE[link](2, prior_precision=1.0).fit(
            {"X": X[rows], "y": y[rows, k]}, seed=0, tol=1e-15, max_iter=3000
        )
        total += alone.elbo
        np.testing.assert_allclose(posterior["w"].mean[k], alone["w"].mean, rtol=1e-6)
    assert posterior.elbo == pytest.approx(total, rel=1e-10)


@pytest.mark.parametrize("link", LINKS)
def test_draws_follow_the_link_and_the_hidden_variable_follows_the_answer(link: str) -> None:
    obs = cv.Plate("obs")
    model = cv.Model(cv.Bernoulli("y", LINK[link](cv.Data("offset", plates=obs) * 1.0), plates=obs))
    offset = np.tile([-2.0, 0.0, 0.7, 3.0], 5_000)
    draw = model.simulate(0, data={"offset": offset})
    groups = {name: draw[name].reshape(-1, 4) for name in draw}
    p = np.exp(LOG_PROBABILITY[link](offset[:4]))
    assert np.all(np.abs(groups["y"].mean(axis=0) - p) < 4.5 * np.sqrt(p * (1 - p) / 5_000))
    hidden = groups[HIDDEN[link]]
    assert np.all(hidden >= 0)
    for j in range(4):
        if link == "probit":
            # with its sign the utility is Normal about the predictor again
            signed = np.where(groups["y"][:, j] == 1, 1, -1) * hidden[:, j]
            mean, sd = offset[j], 1.0
        else:
            # Polya-Gamma numbers do not depend on the answer given the predictor
            signed = hidden[:, j]
            own = cv.families.PolyaGamma(abs(offset[j]))
            mean, sd = own.mean, np.sqrt(own.variance)
        assert abs(signed.mean() - mean) < 4.5 * sd / np.sqrt(5_000)
        assert signed.std() == pytest.approx(sd, rel=0.1)


def test_log_joint_is_that_of_the_generative_story() -> None:
    """The density of the coefficient and of the utilities; the answers are their signs."""
    X, _ = _rows(8, 6)
    model = models.probit_regression(2, prior_precision=0.5)
    draw = model.simulate(3, data={"X": X})
    u = (2 * draw["y"] - 1) * draw["y.utility"]
    expected = norm(0, np.sqrt(2)).logpdf(draw["w"]).sum() + norm(X @ draw["w"], 1).logpdf(u).sum()
    assert model.log_joint({**draw, "X": X}) == pytest.approx(expected, rel=1e-12)
    flipped = {**draw, "y": 1 - draw["y"], "X": X}
    other = norm(0, np.sqrt(2)).logpdf(draw["w"]).sum() + norm(X @ draw["w"], 1).logpdf(-u).sum()
    assert model.log_joint(flipped) == pytest.approx(other, rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("link", LINKS)
def test_predictive_draws_and_local_factors_of_new_rows(link: str) -> None:
    X, y = _rows(9, 60)
    posterior = STATE[link](2).fit({"X": X, "y": y}, seed=0)
    rows = np.array([[1.0, 6.0], [1.0, -0.5]])
    drawn = posterior.predictive(data={"X": rows}, n_draws=1000, seed=1)["y"]
    assert drawn.shape == (1000, 2)
    q = posterior["w"]
    for row, answers in zip(rows, drawn.T, strict=True):
        mean, variance = row @ q.mean, row @ q.covariance @ row
        # the average of the link over q(w): closed for the probit, by the trapezoid rule for any
        eta = mean + np.sqrt(variance) * np.linspace(-9, 9, 2001)
        p = float(
            np.exp(LOG_PROBABILITY[link](eta)) @ norm(mean, np.sqrt(variance)).pdf(eta) * (eta[1] - eta[0])
        )
        assert abs(answers.mean() - p) < 4.5 * np.sqrt(p * (1 - p) / 1000)
        if link == "probit":
            assert p == pytest.approx(norm.cdf(mean / np.sqrt(1 + variance)), rel=1e-10)
    new = {"X": [[1.0, 6.0]], "y": [0]}
    hidden = posterior.predict(new)[HIDDEN[link]]
    a = np.array([1.0, 6.0]) @ posterior["w"].mean
    if link == "probit":
        np.testing.assert_allclose(hidden.location, [-a], rtol=1e-12)
    else:
        square = a**2 + np.array([1.0, 6.0]) @ posterior["w"].covariance @ [1.0, 6.0]
        np.testing.assert_allclose(hidden.tilt, [np.sqrt(square)], rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("link", LINKS)
def test_predictors_of_every_kind_pass_the_kit(link: str) -> None:
    """Varying intercepts and slopes, products, offsets and a local latent, in one predictor."""
    obs, county = cv.Plate("obs"), cv.Plate("county", 3)
    intercept = cv.Normal("intercept", cv.Normal("middle", 0, 1), cv.Gamma("tau", 2, 1), plates=county)
    slope = cv.MultivariateNormal("slope", np.zeros(2), np.eye(2), plates=county)
    which = cv.Data("county", plates=obs)
    mood = cv.Normal("mood", 0.0, 4.0, plates=obs)
    predictor = intercept[which] + cv.dot(cv.Data("X", plates=obs), slope[which]) - 0.5 * mood
    predictor = predictor + cv.Normal("gain", 1.0, 4.0) * cv.Data("dose", plates=obs) + 0.1
    model = cv.Model(cv.Bernoulli("y", LINK[link](predictor), plates=obs))
    rng = np.random.default_rng(10)
    known = {"X": rng.normal(size=(40, 2)), "county": rng.integers(0, 3, 40), "dose": rng.normal(size=40)}
    data = {**known, "y": model.simulate(1, data=known)["y"]}
    check_model(model, data, n_draws=1000).raise_if_failed()


@pytest.mark.parametrize("link", LINKS)
def test_a_product_of_two_unknown_numbers_leaves_its_saddle(link: str) -> None:
    """Both factors of a product are 0 at their priors, where no update would move either."""
    obs, rng = cv.Plate("obs"), np.random.default_rng(12)
    dose = rng.normal(size=200)
    product = cv.Normal("a", 0, 1) * cv.Normal("b", 0, 1) * cv.Data("dose", plates=obs)
    model = cv.Model(cv.Bernoulli("y", LINK[link](product), plates=obs))
    posterior = model.fit({"dose": dose, "y": (rng.normal(size=200) < 2 * dose) * 1}, seed=0)
    assert posterior["a"].mean * posterior["b"].mean > 1.0


@pytest.mark.parametrize("link", LINKS)
def test_a_gate_with_one_category_is_no_gate(link: str) -> None:
    """With missing entries as well: the hidden variable of each is then shared with the Categorical."""
    obs, item, component = cv.Plate("obs"), cv.Plate("item", 2), cv.Plate("component", 1)
    rng = np.random.default_rng(13)
    X, y = rng.normal(size=(40, 2)), rng.integers(0, 2, (40, 2)).astype(float)
    y[rng.random(y.shape) < 0.4] = np.nan
    known, arguments = cv.Data("X", plates=obs), {"seed": 0, "tol": 1e-14, "max_iter": 3000}
    plain = cv.MultivariateNormal("w", np.zeros(2), np.eye(2), plates=item)
    chosen = cv.MultivariateNormal("w", np.zeros(2), np.eye(2), plates=(component, item))
    z = cv.Categorical("z", [1.0], plates=obs)
    elbos = [
        cv.Model(cv.Bernoulli("y", LINK[link](cv.dot(known, w)), plates=(obs, item)))
        .fit({"X": X, "y": y}, **arguments)
        .elbo
        for w in (plain, chosen[z])
    ]
    assert elbos[0] == pytest.approx(elbos[1], rel=1e-11)
