"""Chains whose steps differ: what no fit may break. Threads, files, sequences, first steps, starts."""

import numpy as np
import pytest
from checkpoint.comparing import after, assert_same_bits, broken_off_until_done

import caviar as cv

TIME = cv.Plate("time")


def turned(angle):
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


def simulated(seed, n):
    """Return data of two speeds of turning, the modes, and the transitions."""
    rng = np.random.default_rng(seed)
    transition, z = np.stack([0.97 * turned(0.5), 0.9 * turned(-0.8)]), np.zeros(n, dtype=int)
    x = np.zeros((n, 2))
    x[0] = rng.normal(size=2)
    for t in range(1, n):
        z[t] = z[t - 1] if rng.random() < 0.95 else 1 - z[t - 1]
        x[t] = transition[z[t]] @ x[t - 1] + 0.3 * rng.normal(size=2)
    return x + 0.1 * rng.normal(size=x.shape), z, transition


def switching(starts=None):
    mode, entry = cv.Plate("mode", 2), cv.Plate("entry", 2)
    z = cv.MarkovChain(
        "z", [0.5, 0.5], cv.Dirichlet("moves", [1.0, 1.0], plates=mode), along=TIME, starts=starts
    )
    a = cv.MultivariateNormal("a", np.zeros(2), np.eye(2), plates=(mode, entry))
    q = cv.Gamma("q", 1.0, 0.1, plates=(mode, entry))
    x = cv.LinearGaussianChain(
        "x", np.zeros(2), np.eye(2), a[z], cv.diagonal(q[z]), along=TIME, starts=starts
    )
    return cv.Model(cv.MultivariateNormal("y", x, 100 * np.eye(2), plates=TIME))


def labels_with_shares():
    mode, entry = cv.Plate("mode", 2), cv.Plate("entry", 2)
    z = cv.Categorical("z", cv.Dirichlet("shares", [1.0, 1.0]), plates=TIME)
    a = cv.MultivariateNormal("a", np.zeros(2), np.eye(2), plates=(mode, entry))
    x = cv.LinearGaussianChain("x", np.zeros(2), np.eye(2), a[z], np.eye(2) / 0.09, along=TIME)
    return cv.Model(cv.MultivariateNormal("y", x, 100 * np.eye(2), plates=TIME))


def drifting():
    s = cv.LinearGaussianChain("s", [1.0, 0.0], 10 * np.eye(2), np.eye(2), 100 * np.eye(2), along=TIME)
    parts = cv.MultivariateNormal("parts", np.zeros(4), np.eye(4), plates=cv.Plate("entry", 2))
    x = cv.LinearGaussianChain(
        "x", np.zeros(2), np.eye(2), cv.weighted_sum(s, parts), np.eye(2) / 0.09, along=TIME
    )
    return cv.Model(cv.MultivariateNormal("y", x, 100 * np.eye(2), plates=TIME))


def controlled(starts=None):
    table = cv.Dirichlet("table", [1.0, 1.0], plates=(cv.Plate("input", 3), cv.Plate("state", 2)))
    s = cv.MarkovChain("s", [0.3, 0.7], table[cv.Data("u", plates=TIME)], along=TIME, starts=starts)
    level = cv.Normal("level", 0.0, 0.1, plates=cv.Plate("states", 2))
    return cv.Model(cv.Normal("y", level[s], 1.0, plates=TIME))


def data_of(build, n=24):
    y = simulated(0, n)[0]
    return {"y": y[:, 0], "u": np.arange(n) % 3} if build is controlled else {"y": y}


EVERY = [switching, labels_with_shares, drifting, controlled]


@pytest.mark.first_guess
@pytest.mark.thinned(4)
@pytest.mark.parametrize("build", EVERY)
def test_a_saved_file_says_the_same(build, tmp_path):
    data = data_of(build)
    posterior = build().fit(data, seed=0, max_iter=5)
    posterior.save(tmp_path / "fit.caviar")
    again = cv.load(tmp_path / "fit.caviar")
    assert again.elbo == posterior.elbo
    y = np.concatenate([data["y"], np.full_like(data["y"][:2], np.nan)])
    ahead = {**data, "y": y} if build is not controlled else {"y": y, "u": np.append(data["u"], [0, 1])}
    np.testing.assert_array_equal(again.predict(ahead)["y"].mean, posterior.predict(ahead)["y"].mean)
    assert str(again.model) == str(posterior.model)


@pytest.mark.slow
def test_the_verification_kit_passes():
    data = data_of(switching, 12)
    assert cv.testing.check_model(switching(), data, n_draws=200).passed


@pytest.mark.slow
@pytest.mark.parametrize("build", [switching, controlled])
def test_threads_give_the_same_bits_over_several_sequences(build):
    y = np.concatenate([simulated(seed, 40)[0] for seed in range(4)])
    data = {"y": y, "starts": (np.arange(160) % 40 == 0).astype(float)}
    if build is controlled:
        data |= {"y": y[:, 0], "u": np.arange(160) % 3}
    model = build(cv.Data("starts", plates=TIME))
    elbos = [model.fit(data, seed=0, max_iter=4, executor=threads).elbo for threads in (1, 2)]
    assert elbos[0] == elbos[1]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::caviar.CaviarWarning")
@pytest.mark.parametrize("build", EVERY)
def test_a_fit_that_is_broken_off_ends_with_the_same_bits(build, tmp_path):
    data = data_of(build, 16)

    def fit(**arguments):
        return build().fit(data, seed=0, max_iter=5, **arguments)

    kept = {"checkpoint": tmp_path / "fit.checkpoint", "checkpoint_every": 0}
    breaks = [{"progress": after(2)}, {"progress": after(2)}]
    found, n_breaks = broken_off_until_done(lambda **arguments: fit(**kept, **arguments), breaks)
    assert n_breaks >= 1
    assert_same_bits(found, fit())


@pytest.mark.first_guess
@pytest.mark.thinned(4)
@pytest.mark.parametrize("build", EVERY)
def test_weights_of_one_are_no_weights(build):
    data = data_of(build, 16)
    plain, weighted = (build().fit(data, seed=0, max_iter=3, sample_weight=w) for w in (None, np.ones(16)))
    assert plain.elbo == pytest.approx(weighted.elbo, rel=1e-12)


def test_a_sequence_of_weight_two_is_the_sequence_twice():
    once = {**data_of(controlled, 16), "starts": np.arange(16) == 0.0}
    twice = {name: np.concatenate([own, own]) for name, own in once.items()}
    model = controlled(cv.Data("starts", plates=TIME))
    arguments = {"init": {"level": [-1.0, 1.0]}, "seed": 0, "tol": 1e-11, "max_iter": 3000}
    weighted = model.fit(once, sample_weight=np.full(16, 2.0), **arguments)
    assert weighted.elbo == pytest.approx(model.fit(twice, **arguments).elbo, rel=1e-8)


@pytest.mark.parametrize("build", [switching, labels_with_shares, drifting])
def test_weights_of_steps_of_vectors_are_refused(build):
    with pytest.raises(cv.DataError, match=r"sample_weight is impossible with LinearGaussianChain '[sx]'"):
        build().fit(data_of(build, 16), sample_weight=np.full(16, 2.0))


@pytest.mark.slow
def test_sequences_that_are_the_same_count_twice():
    """With parameters known and two copies of a sequence the ELBO is twice that of one."""
    y, _, transition = simulated(1, 12)
    starts = cv.Data("starts", plates=TIME)
    mode = cv.Plate("mode", 2)
    z = cv.MarkovChain("z", [0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], along=TIME, starts=starts)
    a = cv.Constant("a", transition, plates=mode)[z]
    x = cv.LinearGaussianChain("x", np.zeros(2), np.eye(2), a, np.eye(2) / 0.09, along=TIME, starts=starts)
    model = cv.Model(cv.MultivariateNormal("y", x, 100 * np.eye(2), plates=TIME))
    one = model.fit({"y": y, "starts": np.arange(12) == 0.0}, tol=1e-13).elbo
    two = model.fit({"y": np.concatenate([y, y]), "starts": np.arange(24) % 12 == 0.0}, tol=1e-13).elbo
    assert two == pytest.approx(2 * one, rel=1e-9)


def test_a_label_of_a_first_step_counts_nothing():
    data = data_of(labels_with_shares)
    posterior = labels_with_shares().fit(data)
    assert posterior["shares"].concentration.sum() == pytest.approx(2 + len(data["y"]) - 1)


@pytest.mark.slow
def test_default_fits_end_where_fits_begun_at_the_truth_do():
    """In most of eight data sets: switching systems have poor optima."""
    ends = []
    for seed in range(8):
        y, _, transition = simulated(seed, 150)
        model = switching()
        begun = model.fit({"y": y}, init={"a": transition}, seed=0).elbo
        ends.append(model.fit({"y": y}, seed=0).elbo - begun)
    assert sum(own > -0.1 for own in ends) >= 6, ends


@pytest.mark.slow
def test_default_fits_of_chains_with_inputs_end_where_fits_begun_at_the_truth_do():
    """In all of eight data sets: the input says which transitions hold."""
    for seed in range(8):
        rng = np.random.default_rng(seed)
        u, s = rng.integers(3, size=300), np.zeros(300, dtype=int)
        table = np.array([[[0.95, 0.05], [0.05, 0.95]], [[0.1, 0.9], [0.9, 0.1]], [[0.9, 0.1], [0.9, 0.1]]])
        for t in range(1, 300):
            s[t] = rng.random() < table[u[t], s[t - 1], 1]
        data = {"y": np.array([-1.5, 1.5])[s] + rng.normal(size=300), "u": u}
        begun = controlled().fit(data, init={"level": [-1.5, 1.5]}, seed=0).elbo
        # the states are numbered either way
        other = controlled().fit(data, init={"level": [1.5, -1.5]}, seed=0).elbo
        assert controlled().fit(data, seed=0).elbo > max(begun, other) - 0.4, seed
