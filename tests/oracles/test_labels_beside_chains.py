"""A label of each step of a chain of labels, in one factor with the states: all paths and labels enumerated."""

from itertools import product

import numpy as np
import pytest
from scipy.special import logsumexp, softmax
from scipy.stats import norm, t

import caviar as cv

TIME = cv.Plate("time")
STATE, PART = cv.Plate("state", 2), cv.Plate("part", 3)
INITIAL, TRANSITION = np.array([0.7, 0.3]), np.array([[0.8, 0.2], [0.35, 0.65]])
SHARES = np.array([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]])
MEANS = np.random.default_rng(0).normal(0, 2, (2, 3))
X = np.array([-0.9, 0.2, 2.8, 1.0, -1.4, 0.7])
STARTS = np.array([1, 0, 0, 0, 1, 0])
EACH = np.log(SHARES) + norm.logpdf(X[:, None, None], MEANS, 1.5**-0.5)
PATHS = np.array(list(product(range(2), repeat=len(X))))


def stated(depends="both"):
    s = cv.MarkovChain("s", INITIAL, TRANSITION, along=TIME, starts=cv.Data("starts", plates=TIME))
    z = cv.Categorical("z", cv.Constant("shares", SHARES, plates=STATE)[s], plates=TIME)
    if depends == "both":
        mean = cv.Constant("means", MEANS, plates=(STATE, PART))[s, z]
    else:
        mean = cv.Constant("means", MEANS[0], plates=PART)[z]
    return cv.Model(cv.Normal("x", mean, 1.5, plates=TIME))


def of_paths(each):
    """Return the log joint of each path, given the log-likelihood of each step in each state, (N, K)."""
    steps = np.where(STARTS, np.log(INITIAL)[PATHS], np.log(TRANSITION)[np.roll(PATHS, 1, axis=1), PATHS])
    return (steps + each[np.arange(len(X)), PATHS]).sum(axis=1)


def states(each):
    """Return the probabilities of the states of each step, (N, K)."""
    weights = softmax(of_paths(each))
    return np.stack([(weights[:, None] * (k == PATHS)).sum(axis=0) for k in range(2)], axis=1)


@pytest.mark.parametrize("depends", ["both", "label"])
def test_states_and_labels_are_exact(depends):
    each = EACH if depends == "both" else np.log(SHARES) + norm.logpdf(X[:, None, None], MEANS[0], 1.5**-0.5)
    data = {"x": X, "starts": STARTS}
    posterior = stated(depends).fit(data)
    said = logsumexp(each, axis=2)
    assert posterior.elbo == pytest.approx(logsumexp(of_paths(said)), rel=1e-13)
    assert posterior.elbo_at({}, data) == pytest.approx(posterior.elbo, rel=1e-13)
    assert stated(depends).fit(data, factors=[]).elbo < posterior.elbo - 0.5
    local = posterior.local(data)
    joint = states(said)[:, :, None] * softmax(each, axis=2)
    np.testing.assert_allclose(local["s"].probabilities, states(said), atol=1e-13)
    np.testing.assert_allclose(local["z"].of("s", "z"), joint, atol=1e-13)
    np.testing.assert_allclose(local["z"].probabilities, joint.sum(axis=1), atol=1e-13)


def test_gaps_tails_and_labels_known_in_part():
    x, z = X.copy(), np.full(len(X), np.nan)
    x[[3, 5]], z[1] = np.nan, 2
    each = EACH.copy()
    each[1, :, :2] = -np.inf
    said = logsumexp(each, axis=2)
    said[[3, 5]] = 0.0
    data = {"x": x, "starts": STARTS, "z": z}
    posterior = stated().fit(data)
    assert posterior.elbo == pytest.approx(logsumexp(of_paths(said)), rel=1e-13)
    # what is not known has the states of its step, and the label that these choose
    expected = (states(said)[:, :, None] * SHARES * MEANS).sum(axis=(1, 2))
    predicted = posterior.predict({"x": x, "starts": STARTS, "z": z})["x"].mean
    np.testing.assert_allclose(predicted[[3, 5]], expected[[3, 5]], rtol=1e-12)


def test_a_scale_of_the_step_may_be_in_the_factor():
    """With `factors=[("s", "u")]` Student-t noise is exact given the states."""
    s = cv.MarkovChain("s", INITIAL, TRANSITION, along=TIME, starts=cv.Data("starts", plates=TIME))
    u = cv.Gamma("u", 1.5, 1.5, plates=TIME)
    mean = cv.Constant("means", MEANS[:, 0], plates=STATE)[s]
    model, data = cv.Model(cv.Normal("x", mean, u, plates=TIME)), {"x": X, "starts": STARTS}
    said = t.logpdf(X[:, None], 3, MEANS[:, 0])
    exact = logsumexp(of_paths(said))
    assert model.fit(data, factors=[("s", "u")]).elbo == pytest.approx(exact, rel=1e-12)
    assert model.fit(data).elbo < exact


def learnt():
    s = cv.MarkovChain("s", INITIAL, cv.Dirichlet("transition", np.ones(2), plates=STATE), along=TIME)
    z = cv.Categorical("z", cv.Dirichlet("shares", np.ones(3), plates=STATE)[s], plates=TIME)
    mean = cv.Normal("mean", 0.0, 0.1, plates=PART)
    return cv.Model(cv.Normal("x", mean[z], cv.Gamma("tau", 2, 1), plates=TIME))


SERIES = np.random.default_rng(5).normal(size=40) + np.repeat([0.0, 3.0, 0.0, 5.0], 10)


def test_learnt_parameters_have_the_bound_they_say():
    report = cv.testing.check_model(learnt(), {"x": SERIES[:16]}, seed=0)
    assert report.passed, str(report)


def test_saved_updated_and_on_threads(tmp_path):
    posterior = learnt().fit({"x": SERIES}, seed=0)
    assert learnt().fit({"x": SERIES}, seed=0, executor=3).elbo == posterior.elbo
    posterior.save(tmp_path / "chain.caviar")
    again = cv.load(tmp_path / "chain.caviar").local({"x": SERIES})["z"].of("s", "z")
    np.testing.assert_allclose(again, posterior.local({"x": SERIES})["z"].of("s", "z"), atol=1e-13)
    assert np.isfinite(posterior.update({"x": SERIES[:20]}).elbo)


def test_two_chains_in_one_factor_are_refused():
    chains = [cv.MarkovChain(name, INITIAL, TRANSITION, along=TIME) for name in ("s", "r")]
    table = cv.Normal("table", 0.0, 1.0, plates=(STATE, cv.Plate("other", 2)))
    model = cv.Model(cv.Normal("x", table[tuple(chains)], 1.0, plates=TIME))
    assert np.isfinite(model.fit({"x": X}).elbo)
    with pytest.raises(cv.ModelError, match="names two chains"):
        model.fit({"x": X}, factors=[("s", "r")])


@pytest.mark.parametrize("is_missing", [False, True])
def test_a_sequence_of_weight_two_is_the_sequence_twice(is_missing):
    """With known parameters the bound is the evidence of all sequences, and with unknown ones that of repeated rows."""
    rng = np.random.default_rng(0)
    rows = rng.normal(0.0, 3.0, 9)
    if is_missing:
        rows[[1, 6]] = np.nan
    starts = np.arange(9) % 5 == 0
    weights = np.where(np.arange(9) < 5, 2.0, 1.0)
    repeated = np.r_[:5, :5, 5:9]

    def stated(mean) -> cv.Model:
        obs, k, j = cv.Plate("obs"), cv.Plate("k", 2), cv.Plate("j", 2)
        transition = cv.Constant("transition", np.array([[0.7, 0.3], [0.2, 0.8]]), plates=k)
        s = cv.MarkovChain("s", [0.4, 0.6], transition, along=obs, starts=cv.Data("starts", plates=obs))
        z = cv.Categorical("z", [0.25, 0.75], plates=obs)
        return cv.Model(cv.Normal("x", mean((k, j))[s, z], 1.0, plates=obs))

    known = np.array([[0.0, 3.0], [-2.0, 5.0]])
    for mean in (
        lambda plates: cv.Constant("mean", known, plates=plates),
        lambda plates: cv.Normal("mean", known, 0.5, plates=plates),
    ):
        data = {"x": rows, "starts": starts}
        weighted = stated(mean).fit(data, seed=0, tol=1e-12, sample_weight=weights)
        twice = stated(mean).fit({name: own[repeated] for name, own in data.items()}, seed=0, tol=1e-12)
        assert weighted.elbo == pytest.approx(twice.elbo, abs=1e-7)
