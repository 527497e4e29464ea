"""Mixtures of chains: a kind for each sequence and its states in one factor, by enumeration."""

from itertools import product

import numpy as np
import pytest
from scipy.special import digamma, logsumexp
from scipy.stats import norm

import caviar as cv
from caviar.testing import check_model

RNG = np.random.default_rng(0)
WEIGHTS = np.array([0.3, 0.7])
INITIAL, STEPS = RNG.dirichlet(np.ones(2), 2), RNG.dirichlet(np.ones(2), (2, 2))
SHOWN = RNG.dirichlet(np.ones(3), 2)
LENGTHS = (4, 3, 5, 1)
STARTS = np.concatenate([np.eye(1, length)[0] for length in LENGTHS])
X = RNG.integers(3, size=sum(LENGTHS))


def chain(weights=WEIGHTS, initial=INITIAL, steps=STEPS, **more):
    time = cv.Plate("time")
    starts = cv.Data("starts", plates=time)
    return time, cv.MarkovChainMixture("s", weights, initial, steps, along=time, starts=starts, **more)


def known(**arguments):
    time, s = chain(**arguments)
    shown = cv.Constant("shown", SHOWN, plates=cv.Plate("state", 2))
    return cv.Model(cv.Categorical("x", shown[s], plates=time))


def sequences(values):
    return np.split(values, np.cumsum(LENGTHS)[:-1])


LOGS = np.log(WEIGHTS), np.log(INITIAL), np.log(STEPS)


def paths_of(length, log_weights=LOGS[0], log_initial=LOGS[1], log_steps=LOGS[2]):
    """Return all kinds and paths of a sequence, with the log weight of each, (G, paths)."""
    paths = np.array(list(product(range(2), repeat=length)))
    log_initial = np.broadcast_to(log_initial, (2, 2))
    moves = log_steps[:, paths[:, :-1], paths[:, 1:]].sum(axis=2)
    return paths, log_weights[:, None] + log_initial[:, paths[:, 0]] + moves


def enumerated(x, **logs):
    """Return log evidence, probabilities of kinds and states of one sequence of categories (NaN where missing)."""
    paths, weights = paths_of(len(x), **logs)
    likely = np.where(np.isnan(x), 0.0, np.log(SHOWN)[paths, np.nan_to_num(x).astype(int)]).sum(axis=1)
    joint = weights + likely
    total = logsumexp(joint)
    probability = np.exp(joint - total)
    states = np.einsum("gp,ptk->tk", probability, np.eye(2)[paths])
    return total, probability.sum(axis=1), states


@pytest.mark.parametrize("initial", [INITIAL, INITIAL[0]])
def test_known_parameters_give_the_evidence_of_all_kinds_and_paths(initial):
    posterior = known(initial=initial).fit({"x": X, "starts": STARTS})
    each = [enumerated(own, log_initial=np.log(initial)) for own in sequences(X)]
    assert posterior.elbo == pytest.approx(sum(own[0] for own in each), rel=1e-13)
    found = posterior.local({"x": X, "starts": STARTS})["s"]
    np.testing.assert_allclose(found.kinds.probabilities, [own[1] for own in each], atol=1e-13)
    np.testing.assert_allclose(found.probabilities, np.concatenate([own[2] for own in each]), atol=1e-13)


def test_kinds_that_never_leave_a_state_are_the_mixture():
    """Zeros of known transitions: each sequence of kind g is in state g throughout, as in a mixture of sequences."""
    initial, steps = np.eye(2), np.eye(2)[None].repeat(2, axis=0)
    posterior = known(initial=initial, steps=steps).fit({"x": X, "starts": STARTS})
    joint = np.array([np.log(WEIGHTS) + np.log(SHOWN)[:, own].sum(axis=1) for own in sequences(X)])
    assert posterior.elbo == pytest.approx(logsumexp(joint, axis=1).sum(), rel=1e-13)


def test_one_kind_is_a_markov_chain():
    posterior = known(weights=[1.0], initial=INITIAL[:1], steps=STEPS[:1]).fit({"x": X, "starts": STARTS})
    time = cv.Plate("time")
    s = cv.MarkovChain("s", INITIAL[0], STEPS[0], along=time, starts=cv.Data("starts", plates=time))
    shown = cv.Constant("shown", SHOWN, plates=cv.Plate("state", 2))
    single = cv.Model(cv.Categorical("x", shown[s], plates=time)).fit({"x": X, "starts": STARTS})
    assert posterior.elbo == pytest.approx(single.elbo, rel=1e-14)


def test_steps_without_observations_and_steps_ahead():
    x = X.astype(float)
    x[[1, 5]] = np.nan
    x[3] = np.nan  # the last of its sequence: a forecast
    posterior = known().fit({"x": x, "starts": STARTS})
    each = [enumerated(own) for own in sequences(x)]
    assert posterior.elbo == pytest.approx(sum(own[0] for own in each), rel=1e-13)
    found = posterior.local({"x": x, "starts": STARTS})["s"]
    np.testing.assert_allclose(found.probabilities, np.concatenate([own[2] for own in each]), atol=1e-13)
    np.testing.assert_allclose(found.kinds.probabilities, [own[1] for own in each], atol=1e-13)
    ahead = posterior.predict({"x": x, "starts": STARTS})["x"].mean[3]
    np.testing.assert_allclose(ahead, each[0][2][3] @ SHOWN, atol=1e-12)


def learnt():
    time, kind, state = cv.Plate("time"), cv.Plate("kind", 2), cv.Plate("state", 2)
    s = cv.MarkovChainMixture(
        "s",
        cv.Dirichlet("weights", [2.0, 1.0]),
        cv.Dirichlet("initial", [1.0, 1.5], plates=kind),
        cv.Dirichlet("steps", [1.0, 1.2], plates=(kind, cv.Plate("from", 2))),
        along=time,
        starts=cv.Data("starts", plates=time),
    )
    mean = cv.Normal("mean", 0, 0.1, plates=state)
    return cv.Model(cv.Normal("y", mean[s], 1.0, plates=time))


Y = np.array([-1.5, 1.5])[RNG.integers(2, size=len(X))] + RNG.normal(size=len(X))


def test_unknown_parameters_are_the_updates_by_hand():
    """The factors and the ELBO at the end: each is the other's update, over all kinds and paths."""
    posterior = learnt().fit({"y": Y, "starts": STARTS}, tol=1e-14)
    q = {name: posterior[name] for name in ("weights", "initial", "steps")}
    logs = {
        name: digamma(own.concentration) - digamma(own.concentration.sum(-1, keepdims=True))
        for name, own in q.items()
    }
    mean = posterior["mean"]
    likely = -0.5 * ((Y[:, None] - mean.mean) ** 2 + mean.variance + np.log(2 * np.pi))
    kinds, first, pairs, states, entropy = np.zeros(2), np.zeros((2, 2)), np.zeros((2, 2, 2)), [], 0.0
    for own in sequences(likely):
        paths, weights = paths_of(len(own), logs["weights"], logs["initial"], logs["steps"])
        joint = weights + own[np.arange(len(own)), paths].sum(axis=1)
        entropy += logsumexp(joint)
        p = np.exp(joint - logsumexp(joint))
        kinds += p.sum(axis=1)
        first += p @ np.eye(2)[paths[:, 0]]
        for a, b in product(range(2), repeat=2):
            pairs[:, a, b] += p @ ((paths[:, :-1] == a) & (paths[:, 1:] == b)).sum(axis=1)
        states.append(np.einsum("gp,ptk->tk", p, np.eye(2)[paths]))
    np.testing.assert_allclose(q["weights"].concentration, np.add(kinds, [2.0, 1.0]), rtol=1e-5)
    np.testing.assert_allclose(q["initial"].concentration, np.add(first, [1.0, 1.5]), rtol=1e-5)
    np.testing.assert_allclose(q["steps"].concentration, np.add(pairs, [1.0, 1.2]), rtol=1e-5)
    r = np.concatenate(states)
    np.testing.assert_allclose(mean.precision, 0.1 + r.sum(0), rtol=1e-5)
    np.testing.assert_allclose(mean.mean, r.T @ Y / (0.1 + r.sum(0)), rtol=1e-5)
    divergence = (
        q["weights"].kl(cv.families.Dirichlet([2.0, 1.0]))
        + q["initial"].kl(cv.families.Dirichlet([1.0, 1.5])).sum()
        + q["steps"].kl(cv.families.Dirichlet([1.0, 1.2])).sum()
        + mean.kl(cv.families.Normal(0.0, 0.1)).sum()
    )
    assert posterior.elbo == pytest.approx(entropy - divergence, rel=1e-9)
    assert np.diff(posterior.elbo_trace).min() > -1e-10


def test_linear_response_is_the_derivative_of_refits():
    data = {"y": Y, "starts": STARTS}

    def fitted(a):
        time, kind = cv.Plate("time"), cv.Plate("kind", 2)
        steps = cv.Dirichlet("steps", np.array([[4.0, 1.0], [1.0, 4.0]]), plates=cv.Plate("from", 2))
        steps = cv.Dirichlet(
            "steps", [[[4.0, 1.0], [1.0, 4.0]], [[a, 3.0], [3.0, 1.0]]], plates=(kind, *steps.plates)
        )
        weights, starts = cv.Dirichlet("weights", [5.0, 6.0]), cv.Data("starts", plates=time)
        s = cv.MarkovChainMixture("s", weights, [0.5, 0.5], steps, along=time, starts=starts)
        level = cv.Constant("level", [-1.5, 1.5], plates=cv.Plate("state", 2))
        return cv.Model(cv.Normal("y", level[s], 1.0, plates=time)).fit(data, tol=1e-15, max_iter=3000)

    h, response = 1e-3, fitted(1.0).linear_response(data)
    high, low = fitted(1.0 + h), fitted(1.0 - h)
    for name in ("steps", "weights"):
        slopes = (high[name].mean - low[name].mean) / (2 * h)
        found = response.sensitivity(name)["steps.concentration"][1, 0, 0]
        np.testing.assert_allclose(found, slopes, rtol=1e-3, atol=1e-8)  # differences err by h squared


def test_a_weight_of_two_is_the_sequence_twice():
    weights = np.repeat([2.0, 1.0, 1.0, 1.0], LENGTHS)
    both = {"x": np.concatenate([X[:4], X]), "starts": np.concatenate([STARTS[:4], STARTS])}
    weighted = known().fit({"x": X, "starts": STARTS}, sample_weight=weights)
    assert weighted.elbo == pytest.approx(known().fit(both).elbo, rel=1e-13)


def test_a_label_beside_the_states_is_summed_out():
    """Emissions that are mixtures: kinds, states and labels of the steps in one factor."""
    time, s = chain()
    shares = RNG.dirichlet(np.ones(2), 2)
    z = cv.Categorical("z", cv.Constant("shares", shares, plates=cv.Plate("state", 2))[s], plates=time)
    means = np.array([-1.0, 2.0])
    y = cv.Normal("y", cv.Constant("means", means, plates=cv.Plate("kind of step", 2))[z], 1.0, plates=time)
    posterior = cv.Model(y).fit({"y": Y, "starts": STARTS})
    emitted = logsumexp(np.log(shares) + norm.logpdf(Y[:, None, None], means), axis=2)
    total = 0.0
    for own in sequences(emitted):
        paths, weights = paths_of(len(own))
        total += logsumexp(weights + own[np.arange(len(own)), paths].sum(axis=1))
    assert posterior.elbo == pytest.approx(total, rel=1e-12)


def test_paths_have_the_density_of_all_kinds():
    posterior = known().fit({"x": X, "starts": STARTS})
    found = posterior.local({"x": X, "starts": STARTS})["s"]
    drawn = found.sample(3, seed=0)
    for path, density in zip(drawn, found.log_density(drawn), strict=True):
        expected = 0.0
        for own, x in zip(sequences(path), sequences(X), strict=True):
            paths, weights = paths_of(len(own))
            joint = weights + np.log(SHOWN)[paths, x].sum(axis=1)
            (place,) = np.flatnonzero((paths == own).all(axis=1))
            expected += logsumexp(joint[:, place]) - logsumexp(joint)
        assert density == pytest.approx(expected, rel=1e-12)
    many = found.sample(4000, seed=1)
    np.testing.assert_allclose(many.mean(axis=0), found.probabilities[:, 1], atol=0.04)


def test_kinds_are_found():
    rng, steps = np.random.default_rng(1), np.array([[[0.9, 0.1], [0.1, 0.9]], [[0.2, 0.8], [0.8, 0.2]]])
    kinds, values = rng.integers(2, size=40), []
    for kind in kinds:
        state = rng.integers(2)
        for _ in range(30):
            values.append(3.0 * state + rng.normal())
            state = rng.choice(2, p=steps[kind, state])
    data = {"y": np.array(values), "starts": np.tile(np.eye(1, 30)[0], 40)}
    posterior = learnt().fit(data, seed=0)
    found = posterior.local(data)["s"].kinds.probabilities.argmax(axis=1)
    assert max(np.mean(found == kinds), np.mean(found != kinds)) == 1.0
    stays = np.sort(np.diagonal(posterior["steps"].mean, axis1=1, axis2=2).mean(axis=1))
    np.testing.assert_allclose(stays, [0.2, 0.9], atol=0.06)


def test_its_checks_pass_with_unknown_shares():
    """Draws have no kinds: their density sums over these, which are part of the factor."""
    model = known(weights=cv.Dirichlet("weights", np.ones(2)))
    report = check_model(model, {"x": X, "starts": STARTS}, n_draws=100, n_directions=1)
    assert report.passed, report


def test_saved_and_simulated(tmp_path):
    posterior = learnt().fit({"y": Y, "starts": STARTS}, max_iter=5)
    posterior.save(tmp_path / "kinds.caviar")
    again = cv.load(tmp_path / "kinds.caviar")
    data = {"y": Y, "starts": STARTS}
    np.testing.assert_array_equal(
        again.local(data)["s"].probabilities, posterior.local(data)["s"].probabilities
    )
    stays = np.array([np.eye(2), np.eye(2)[::-1]])
    starts = np.tile([1, 0, 0, 0], 200)
    drawn = known(steps=stays, initial=np.array([[0.2, 0.8], [0.5, 0.5]])).simulate(
        0, data={"starts": starts}
    )
    paths = drawn["s"].reshape(-1, 4)
    stayed = (paths == paths[:, :1]).all(axis=1)
    assert (stayed | (paths[:, 1:] != paths[:, :-1]).all(axis=1)).all()
    assert abs(stayed.mean() - 0.3) < 0.1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"steps": STEPS[0]}, r"'transition' of MarkovChainMixture 's' .* plates of sizes \(2, 2\)"),
        (
            {"initial": RNG.dirichlet(np.ones(2), 3)},
            r"'initial' of MarkovChainMixture 's' .* plates of sizes \(2,\)",
        ),
        ({"weights": [0.2, 0.3, 0.5]}, "2 states for 3 kinds"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(arguments, words):
    with pytest.raises(cv.PlateError, match=words):
        chain(**arguments)
