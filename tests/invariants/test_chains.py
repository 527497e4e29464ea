"""What a fit with a Markov chain owes: the same bits on any threads, ascent, sequences in any order."""

import itertools

import numpy as np
import pytest
from scipy.special import logsumexp
from thinning import amount

import caviar as cv

pytestmark = pytest.mark.first_guess


def model(k: int = 3) -> cv.Model:
    time, state = cv.Plate("time"), cv.Plate("state", k)
    initial = cv.Dirichlet("initial", np.ones(k))
    transition = cv.Dirichlet("transition", np.ones(k), plates=state)
    s = cv.MarkovChain("s", initial, transition, along=time, starts=cv.Data("starts", plates=time))
    mean = cv.MultivariateNormal("mean", np.zeros(2), 0.01 * np.eye(2), plates=state)
    precision = cv.Wishart("precision", 3, np.eye(2), plates=state)
    return cv.Model(cv.MultivariateNormal("x", mean[s], precision[s], plates=time))


def draw(seed: int, n: int, separation: float = 2.0) -> tuple[dict[str, np.ndarray], np.ndarray]:
    rng = np.random.default_rng(seed)
    transition = np.array([[0.9, 0.1, 0.0], [0.0, 0.9, 0.1], [0.1, 0.0, 0.9]])
    path = np.zeros(n, dtype=int)
    for t in range(1, n):
        path[t] = rng.choice(3, p=transition[path[t - 1]])
    centres = separation * np.array([[0, 0], [1, 0], [0, 1]])
    data = {"x": centres[path] + rng.normal(0, 1, (n, 2)), "starts": np.arange(n) % (n // 7) == 0}
    return data, path


@pytest.mark.starts_of_users
@pytest.mark.slow
def test_any_number_of_threads_gives_the_same_bits():
    data, _ = draw(0, 20_000)
    fits = [model().fit(data, seed=1, max_iter=2, executor=threads) for threads in (1, 2, 4)[:: amount(2, 1)]]
    for other in fits[1:]:
        np.testing.assert_array_equal(fits[0].elbo_trace, other.elbo_trace)
        np.testing.assert_array_equal(fits[0]["transition"].concentration, other["transition"].concentration)
        np.testing.assert_array_equal(fits[0]["mean"].mean, other["mean"].mean)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("separation", [0.5, 2.0, 1e3])
def test_the_elbo_never_falls_and_its_parts_sum_to_it(separation):
    data, _ = draw(1, 1_000, separation)
    posterior = model().fit(data, seed=0, max_iter=60)
    assert np.diff(posterior.elbo_trace).min() > -1e-11 * abs(posterior.elbo) - 1e-8
    assert sum(posterior.elbo_terms.values()) == pytest.approx(posterior.elbo, rel=1e-10)
    assert posterior.elbo_at({}, data) == pytest.approx(posterior.elbo, rel=1e-10)


@pytest.mark.slow
def test_it_beats_the_mixture_that_has_no_memory_and_finds_the_path():
    data, path = draw(2, 3_000)
    posterior = model().fit(data, seed=0, max_iter=500)
    chain = posterior.local(data)["s"]
    # states have no names: each is called by its place
    order = np.argsort(posterior["mean"].mean @ [1.0, 2.0])
    found = np.argsort(order)[chain.mode()]
    assert np.mean(found == path) > 0.9
    mixture = cv.models.gaussian_mixture(2, 3).fit({"x": data["x"]}, seed=0, max_iter=500)
    labels = np.argsort(np.argsort(mixture["mean"].mean @ [1.0, 2.0]))[
        mixture.local({"x": data["x"]})["z"].mode()
    ]
    assert np.mean(found == path) > np.mean(labels == path) + 0.05


def test_sequences_may_stand_in_any_order():
    data, _ = draw(3, 700)
    init = {"mean": [[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]]}
    before = model().fit(data, init=init, max_iter=8, tol=0.0)
    turned = {name: np.concatenate([rows[300:], rows[:300]]) for name, rows in data.items()}
    after = model().fit(turned, init=init, max_iter=8, tol=0.0)
    np.testing.assert_allclose(before.elbo_trace, after.elbo_trace, rtol=1e-11)
    np.testing.assert_allclose(
        before["transition"].concentration, after["transition"].concentration, rtol=1e-8
    )


def test_where_a_sequence_begins_counts():
    data, _ = draw(4, 700)
    init = {"mean": [[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]]}
    each = model().fit(data, init=init)
    one = model().fit({**data, "starts": np.arange(700) == 0}, init=init)
    assert each["initial"].concentration.sum() == pytest.approx(3 + 7)
    assert one["initial"].concentration.sum() == pytest.approx(3 + 1)
    assert each["transition"].concentration.sum() == pytest.approx(9 + 693)
    assert one["transition"].concentration.sum() == pytest.approx(9 + 699)


def test_given_labels_are_counted_before_the_first_pass():
    """With one iteration at most from the true labels the transitions are those of the labels, nearly."""
    data, path = draw(5, 700, separation=100.0)
    posterior = model().fit(data, init={"s": path}, max_iter=0)
    counts = np.zeros((3, 3))
    for t in range(1, 700):
        if not data["starts"][t]:
            counts[path[t - 1], path[t]] += 1
    np.testing.assert_allclose(posterior["transition"].concentration, 1 + counts, rtol=1e-12)


@pytest.mark.starts_of_users
@pytest.mark.slow
def test_random_starts_tell_states_of_few_categories_apart():
    """Hard labels for three distinct rows would leave most starts at the optimum where the states are one."""
    rng = np.random.default_rng(0)
    emission, path = np.array([[0.8, 0.1, 0.1], [0.1, 0.3, 0.6]]), np.arange(600) // 30 % 2
    data = {"x": (rng.random((600, 1)) > emission[path].cumsum(axis=1)).sum(axis=1)}
    posterior = cv.models.categorical_hidden_markov_model(3, 2).fit(data, seed=0, n_restarts=5)
    alone = cv.models.dirichlet_categorical(3).fit(data)
    assert np.ptp(posterior.restart_elbos) < 1e-3
    assert posterior.elbo > alone.elbo + 50


def test_weights_of_one_are_no_weights():
    data, _ = draw(6, 300)
    plain, weighted = (model().fit(data, seed=0, max_iter=5, sample_weight=w) for w in (None, np.ones(300)))
    assert plain.elbo == pytest.approx(weighted.elbo, rel=1e-12)


@pytest.mark.slow
def test_parameters_at_points_reach_the_posterior_density_of_their_values():
    """With point masses the objective is log p(x, parameters): the sum over all paths, and a mode of it."""
    time, state = cv.Plate("time"), cv.Plate("state", 2)
    initial = cv.Dirichlet("initial", [2.0, 2.0])
    transition = cv.Dirichlet("transition", [2.0, 2.0], plates=state)
    s = cv.MarkovChain("s", initial, transition, along=time)
    mean = cv.Normal("mean", np.array([-1.0, 1.0]), 0.5, plates=state)
    stated = cv.Model(cv.Normal("x", mean[s], 1.0, plates=time))
    data, names = {"x": np.array([-1.3, -0.2, 1.9, 2.2, 0.4, -2.0])}, ["initial", "transition", "mean"]
    posterior = stated.fit(data, point=names, seed=0, tol=1e-13, max_iter=5_000)

    def log_posterior(values: dict[str, np.ndarray]) -> float:
        paths = itertools.product(range(2), repeat=6)
        return float(logsumexp([stated.log_joint({**data, **values, "s": np.array(path)}) for path in paths]))

    at = {name: posterior[name].value for name in names}
    assert np.diff(posterior.elbo_trace[1:]).min() > -1e-12
    assert posterior.elbo == pytest.approx(log_posterior(at), abs=1e-9)
    towards = np.array([1.0, -1.0]) * 1e-3
    for name in names:
        first_only = np.multiply.outer([1.0, 0.0], towards)
        moves = [towards] if name != "transition" else [first_only, first_only[::-1]]
        for move in moves:
            for sign in (1, -1):
                assert log_posterior({**at, name: at[name] + sign * move}) < posterior.elbo
