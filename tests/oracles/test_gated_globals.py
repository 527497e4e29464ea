"""Global labels share a factor with what they gate: the answers of enumeration, without a plate of trials."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import betaln, gammaln, logsumexp
from scipy.stats import multivariate_normal

import caviar as cv

ARM = np.repeat([0, 1], 5)
CURED = np.array([0, 0, 1, 0, 0, 1, 0, 1, 1, 1])
CELLS = np.stack([np.zeros(10, dtype=int), 1 + ARM], axis=1)
TRIAL = {"cured": CURED, "cell": CELLS}


def clinical():
    """Return the clinical trial of Infer.NET: one rate of cure for all patients, or one for each arm."""
    patient = cv.Plate("patient")
    effective = cv.Categorical("effective", [0.5, 0.5])
    rate = cv.Beta("rate", 1, 1, plates=cv.Plate("cell", 3))
    cell = cv.Data("cell", plates=(patient, cv.Plate("hypothesis", 2)))
    return cv.Model(cv.Bernoulli("cured", rate[cell[effective]], plates=patient))


def of_trial():
    """Return the log joint of each hypothesis, and parameters (a, b) of the rates given each, (2, 3)."""
    counts = np.stack([[(y == CURED)[own].sum() for y in (1, 0)] for own in (ARM >= 0, ARM == 0, ARM == 1)])
    whole, first, second = (betaln(1 + yes, 1 + no) for yes, no in counts)
    used = np.array([[True, False, False], [False, True, True]])
    return np.log(0.5) + np.array([whole, first + second]), 1 + used[..., None] * counts


def test_the_gated_clinical_trial_is_infer_nets():
    posterior = clinical().fit(TRIAL)
    joint, parameters = of_trial()
    share = np.exp(joint - logsumexp(joint))
    assert posterior.elbo == pytest.approx(logsumexp(joint), rel=1e-13)
    assert posterior["effective"].probabilities[1] == pytest.approx(0.7549, abs=5e-5)  # Infer.NET's example
    np.testing.assert_allclose(posterior["effective"].probabilities, share, rtol=1e-13)
    a, b = np.moveaxis(parameters, -1, 0)
    mean, square = a / (a + b), a * (a + 1) / ((a + b) * (a + b + 1))
    np.testing.assert_allclose(posterior["rate"].mean, share @ mean, rtol=1e-12)
    np.testing.assert_allclose(posterior["rate"].variance, share @ square - (share @ mean) ** 2, rtol=1e-12)
    # linear response is that of one exact factor: covariances of the label and the rates, and of rates
    response = posterior.linear_response(TRIAL)
    exact = share[1] * (mean[1] - share @ mean)
    np.testing.assert_allclose(response.covariance("effective", "rate")[1], exact, atol=1e-12)
    between = share @ (mean[:, 1] * mean[:, 2]) - (share @ mean)[1] * (share @ mean)[2]
    np.testing.assert_allclose(response.covariance("rate", "rate")[1, 2], between, atol=1e-12)


def test_its_posterior_is_drawn_from_predicted_saved_and_checked(tmp_path):
    model = clinical()
    posterior = model.fit(TRIAL)
    joint, parameters = of_trial()
    share = np.exp(joint - logsumexp(joint))
    # a new patient of the second arm: under the first hypothesis the rate of all, under the second that of the arm
    ahead = posterior.predict({"cell": np.array([[0, 2]])})["cured"].mean
    mean = parameters[..., 0] / parameters.sum(axis=-1)
    assert ahead[0] == pytest.approx(share[0] * mean[0, 0] + share[1] * mean[1, 2], rel=1e-12)
    drawn = posterior.sample(4000, seed=0)
    together = np.mean(drawn["effective"] * drawn["rate"][:, 2])
    assert together == pytest.approx(share[1] * mean[1, 2], abs=0.02)
    assert cv.testing.elbo_estimate(posterior, TRIAL, n_draws=10, seed=0).value == pytest.approx(
        posterior.elbo, rel=1e-9
    )
    assert max(cv.testing.elbo_slopes(posterior, TRIAL).values()) < 1e-4
    posterior.save(tmp_path / "trial.caviar")
    again = cv.load(tmp_path / "trial.caviar")
    assert (
        again.elbo_at({}, TRIAL) == posterior.elbo_at({}, TRIAL) == pytest.approx(posterior.elbo, rel=1e-13)
    )
    np.testing.assert_array_equal(again.sample(3, seed=1)["rate"], posterior.sample(3, seed=1)["rate"])


@pytest.mark.parametrize(
    "init", [{"rate": [0.5, 0.4, 0.6]}, {"effective": 1}, {"effective": 0, "rate": [0.1] * 3}]
)
def test_starts_at_values_of_the_user(init):
    joint, _ = of_trial()
    assert clinical().fit(TRIAL, init=init).elbo == pytest.approx(logsumexp(joint), rel=1e-12)


def test_shares_of_one_category_are_gated_and_cannot_vary():
    k, obs = cv.Plate("k", 1), cv.Plate("obs")
    z = cv.Categorical("z", cv.Dirichlet("shares", [2.0]))
    x = np.array([0.5, -1.0, 2.0])
    posterior = cv.Model(cv.Normal("x", cv.Normal("mean", 0.0, 1.0, plates=k)[z], 1.0, plates=obs)).fit(
        {"x": x}
    )
    exact = multivariate_normal(np.zeros(3), np.eye(3) + 1.0).logpdf(x)
    assert posterior.elbo == pytest.approx(exact, rel=1e-12)
    np.testing.assert_array_equal(posterior["shares"].mean, [1.0])


def test_a_later_fit_takes_no_part_of_such_a_factor_as_its_prior():
    posterior = clinical().fit(TRIAL)
    with pytest.raises(cv.ModelError, match="share one factor there"):
        posterior.update(TRIAL)
    assert clinical().fit(TRIAL, factors="apart").update(TRIAL).converged


def test_a_bayesian_network_of_one_day():
    rains, turned = (
        [cv.Plate("if rain", 2), cv.Plate("if sprinkler", 2)],
        np.array([[0.6, 0.4], [0.99, 0.01]]),
    )
    rain = cv.Categorical("rain", [0.8, 0.2])
    sprinkler = cv.Categorical("sprinkler", cv.Constant("turned on", turned, plates=rains[0])[rain])
    wet = np.array([[[1.0, 0.0], [0.1, 0.9]], [[0.2, 0.8], [0.01, 0.99]]])
    grass = cv.Categorical("grass", cv.Constant("wet", wet, plates=rains)[rain, sprinkler])
    posterior = cv.Model(grass).fit({"grass": 1})
    joint = np.array([0.8, 0.2])[:, None] * turned * wet[..., 1]
    assert posterior.elbo == pytest.approx(np.log(joint.sum()), rel=1e-12)
    np.testing.assert_allclose(posterior["rain"].probabilities, joint.sum(axis=1) / joint.sum(), atol=1e-13)
    np.testing.assert_allclose(
        posterior["sprinkler"].probabilities, joint.sum(axis=0) / joint.sum(), atol=1e-13
    )


N = 12
REGIMES = (np.arange(N)[:, None] >= np.arange(N)).astype(int)
"""At each time, the regime if the change comes at each time; a change at 0 is none."""


def change_point(leaf, level):
    time, change = cv.Plate("time"), cv.Plate("change", N)
    when = cv.Categorical("when", np.full(N, 1 / N))
    return cv.Model(leaf(level(cv.Plate("side", 2))[cv.Data("regime", plates=(time, change))[when]], time))


def test_one_change_point_of_counts_is_enumerated():
    counts = np.array([4, 5, 4, 1, 0, 4, 1, 0, 0, 1, 1, 0])
    model = change_point(
        lambda level, time: cv.Poisson("count", level, plates=time),
        lambda side: cv.Gamma("level", 2.0, 1.0, plates=side),
    )
    posterior = model.fit({"count": counts, "regime": REGIMES})
    joint = np.full(N, -np.log(N) - gammaln(counts + 1).sum())
    for change in range(N):
        for side in range(2):
            there = REGIMES[:, change] == side
            shape, rate = 2.0 + counts[there].sum(), 1.0 + there.sum()
            joint[change] += gammaln(shape) - shape * np.log(rate) - gammaln(2.0)
    assert posterior.elbo == pytest.approx(logsumexp(joint), rel=1e-12)
    np.testing.assert_allclose(posterior["when"].probabilities, np.exp(joint - logsumexp(joint)), atol=1e-12)


@pytest.mark.slow
def test_an_unknown_width_leaves_a_bound_below_quadrature_and_above_factors_apart():
    y = np.random.default_rng(3).normal(size=N) + 3.0 * (np.arange(N) >= 7)
    tau = cv.Gamma("tau", 2.0, 2.0)
    model = change_point(
        lambda level, time: cv.Normal("y", level, tau, plates=time),
        lambda side: cv.Normal("level", 0.0, 0.1, plates=side),
    )
    data = {"y": y, "regime": REGIMES}
    posterior = model.fit(data, tol=1e-12)
    same = np.equal(REGIMES[:, None], REGIMES[None])  # (N, N, change)

    def density(t):
        each = [
            multivariate_normal(np.zeros(N), np.eye(N) / t + same[..., c] / 0.1).logpdf(y) for c in range(N)
        ]
        return np.exp(logsumexp(each) - np.log(N) + np.log(4.0) + np.log(t) - 2.0 * t - posterior.elbo)

    evidence = posterior.elbo + np.log(quad(density, 0, 20, limit=200)[0])
    assert evidence - 0.2 < posterior.elbo < evidence
    assert model.fit(data, factors="apart").elbo < posterior.elbo - 0.05
    assert cv.testing.elbo_estimate(posterior, data, n_draws=300, seed=0).value == pytest.approx(
        posterior.elbo, abs=0.15
    )
    assert posterior.linear_response(data).smallest_eigenvalue > 0


def test_the_width_of_a_prior_that_a_label_chooses_is_the_evidence_of_each():
    """Which precision do the coefficients of a regression have? Vectors, and a label that meets their density only."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(20, 3))
    y = X @ [1.5, -1.0, 0.5] + rng.normal(size=20)
    widths = np.stack([100.0 * np.eye(3), np.eye(3), np.diag([1.0, 100.0, 1.0])])
    obs, kinds = cv.Plate("obs"), cv.Plate("kinds", 3)
    z = cv.Categorical("z", [0.2, 0.5, 0.3])
    w = cv.MultivariateNormal("w", np.zeros(3), cv.Constant("widths", widths, plates=kinds)[z])
    model = cv.Model(cv.Normal("y", cv.dot(cv.Data("X", plates=obs), w), 1.0, plates=obs))
    posterior = model.fit({"X": X, "y": y})
    joint = np.log([0.2, 0.5, 0.3]) + [
        multivariate_normal(np.zeros(20), np.eye(20) + X @ np.linalg.inv(own) @ X.T).logpdf(y)
        for own in widths
    ]
    share = np.exp(joint - logsumexp(joint))
    assert posterior.elbo == pytest.approx(logsumexp(joint), rel=1e-12)
    np.testing.assert_allclose(posterior["z"].probabilities, share, atol=1e-12)
    means = np.stack([np.linalg.solve(own + X.T @ X, X.T @ y) for own in widths])
    covariances = np.stack([np.linalg.inv(own + X.T @ X) for own in widths])
    mean = share @ means
    away = means - mean
    covariance = np.einsum("k,kij->ij", share, covariances + away[:, :, None] * away[:, None, :])
    np.testing.assert_allclose(posterior["w"].mean, mean, atol=1e-12)
    np.testing.assert_allclose(posterior["w"].covariance, covariance, atol=1e-12)
    np.testing.assert_allclose(
        posterior.linear_response({"X": X, "y": y}).covariance("w", "w"), covariance, atol=1e-10
    )
    told = posterior.predict({"X": X[:1]})["y"]
    assert told.mean[0] == pytest.approx(X[0] @ mean, rel=1e-12)
    assert told.standard_deviation[0] == pytest.approx(np.sqrt(1.0 + X[0] @ covariance @ X[0]), rel=1e-10)


def test_two_labels_choose_for_two_groups_of_rows():
    """The labels of two groups choose among the same two levels: all four combinations, levels given each exact."""
    rng = np.random.default_rng(5)
    x, y = rng.normal(1.0, 1.0, size=6), rng.normal(-0.5, 1.0, size=7)
    kinds = cv.Plate("kinds", 2)
    level = cv.Normal("level", [0.0, 0.5], [1.0, 0.3], plates=kinds)
    z, v = cv.Categorical("z", [0.3, 0.7]), cv.Categorical("v", [0.6, 0.4])
    model = cv.Model(
        cv.Normal("x", level[z], 1.0, plates=cv.Plate("first", 6)),
        cv.Normal("y", level[v], 2.0, plates=cv.Plate("second", 7)),
    )
    data = {"x": x, "y": y}
    apart = model.fit(data)
    posterior = model.fit(data, factors=[("z", "v", "level")])
    noise = np.diag(np.concatenate([np.ones(6), np.full(7, 0.5)]))
    joint = np.empty((2, 2))
    for k in range(2):
        for m in range(2):
            own = np.repeat([k, m], [6, 7])
            prior = np.equal.outer(own, own) / np.array([1.0, 0.3])[own]
            mean = np.array([0.0, 0.5])[own]
            joint[k, m] = multivariate_normal(mean, noise + prior).logpdf(np.concatenate([x, y]))
    joint += np.log(np.outer([0.3, 0.7], [0.6, 0.4]))
    assert posterior.elbo == pytest.approx(logsumexp(joint), rel=1e-12)
    share = np.exp(joint - logsumexp(joint))
    np.testing.assert_allclose(posterior["v"].probabilities, share.sum(axis=0), atol=1e-12)
    assert apart.elbo <= posterior.elbo + 1e-12


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("when", "level", "tau"), "'level' and 'tau' meet in the density of 'y'"),
        (("when", "level", "mu"), "'level' and 'mu' meet in the density of 'level'"),
    ],
)
def test_what_labels_cannot_gate_together_is_named(names, message):
    tau, mu = cv.Gamma("tau", 2.0, 2.0), cv.Normal("mu", 0.0, 1.0)
    model = change_point(
        lambda level, time: cv.Normal("y", level, tau, plates=time),
        lambda side: cv.Normal("level", mu, 0.1, plates=side),
    )
    with pytest.raises(cv.ModelError, match=message):
        model.fit({"y": np.arange(12.0), "regime": REGIMES}, factors=[names])


def test_a_label_of_rows_or_of_groups_is_no_part_of_such_a_factor():
    """A label with plates keeps the factor that it had."""
    z = cv.Categorical("z", [0.5, 0.5], plates=cv.Plate("group", 4))
    level = cv.Normal("level", 0.0, 0.1, plates=cv.Plate("kind", 2))
    obs = cv.Plate("obs")
    model = cv.Model(cv.Normal("y", level[z[cv.Data("of", plates=obs)]], 1.0, plates=obs))
    data = {"y": np.arange(8.0), "of": np.repeat(np.arange(4), 2)}
    with pytest.raises(cv.ModelError, match="'z' has plates"):
        model.fit(data, factors=[("z", "level")])
    assert model.fit(data).elbo_terms.keys() == {"y", "level", "z"}


def test_a_label_of_vectors_with_diagonal_noise():
    """The noise has a Gamma for each entry: the ELBO is that of the densities, and at a stationary point."""
    x = np.random.default_rng(0).normal(size=(6, 2))
    z = cv.Categorical("z", [0.4, 0.6])
    at = cv.MultivariateNormal("at", [0.0, 1.0], np.eye(2), plates=cv.Plate("component", 2))
    noise = cv.diagonal(cv.Gamma("noise", 2, 1, plates=cv.Plate("entry", 2)))
    model = cv.Model(cv.MultivariateNormal("x", at[z], noise, plates=cv.Plate("obs")))
    posterior = model.fit({"x": x})
    estimate = cv.testing.elbo_estimate(posterior, {"x": x}, n_draws=500)
    assert abs(posterior.elbo - estimate.value) < 5 * estimate.error
    assert max(cv.testing.elbo_slopes(posterior, {"x": x}).values()) < 1e-3
