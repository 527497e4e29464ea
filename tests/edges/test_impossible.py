"""Known probabilities of zero: what they rule out is refused by row and value, and what they leave is exact."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csr_array

import caviar as cv

WEIGHTS = np.array([0.5, 0.5, 0.0])
COLOURS = np.array([[0.5, 0.5, 0.0, 0.0], [0.0, 0.5, 0.5, 0.0], [0.0, 0.0, 0.0, 1.0]])
ANSWERS = np.array([1.0, 0.3, 0.5])


def mixture():
    """State two observed leaves of a label, all of it known, with zeros in each table."""
    obs, kind = cv.Plate("obs"), cv.Plate("kind", 3)
    z = cv.Categorical("z", WEIGHTS, plates=obs)
    colours, answers = cv.Constant("p", COLOURS, plates=kind), cv.Constant("q", ANSWERS, plates=kind)
    return cv.Model(cv.Categorical("x", colours[z], plates=obs), cv.Bernoulli("y", answers[z], plates=obs))


def joint(x, y):
    """Return the probability of each row with each label, by multiplication."""
    of_y = np.where(np.asarray(y)[:, None] == 1, ANSWERS, 1 - ANSWERS)
    return WEIGHTS * COLOURS[:, np.asarray(x)].T * of_y


def rows(x, y):
    return {"x": np.array(x), "y": np.array(y)}


POSSIBLE = rows([0, 1, 2, 1, 0], [1, 0, 0, 1, 1])


def test_zeros_that_leave_a_possibility_are_exact():
    posterior = mixture().fit(POSSIBLE)
    each = joint(**POSSIBLE)
    assert_allclose(posterior.elbo, np.log(each.sum(axis=1)).sum(), rtol=1e-13)
    responsibilities = posterior.local(POSSIBLE)["z"].probabilities
    assert_allclose(responsibilities, each / each.sum(axis=1, keepdims=True), rtol=1e-13)
    assert (responsibilities[each == 0] == 0).all(), "exactly"


def test_new_rows_that_are_impossible_have_the_log_density_minus_infinity():
    posterior, new = mixture().fit(POSSIBLE), rows([0, 1, 0, 3], [1, 0, 0, 1])
    with np.errstate(divide="ignore"):
        expected = np.log(joint(**new).sum(axis=1))
    assert np.isneginf(expected).sum() == 2
    assert_allclose(posterior.log_predictive(new), expected, rtol=1e-13)


def test_an_elbo_of_labels_that_are_impossible_is_minus_infinity():
    posterior = mixture().fit(POSSIBLE)
    right = posterior.local(POSSIBLE)["z"].probabilities
    wrong = np.full_like(right, 1 / 3)
    labels = cv.families.Categorical
    assert posterior.elbo_at({"z": labels(wrong)}, POSSIBLE) == -np.inf
    assert_allclose(posterior.elbo_at({"z": labels(right)}, POSSIBLE), posterior.elbo, rtol=1e-13)


@pytest.mark.parametrize("schedule", ["batch", "incremental", "stochastic"])
def test_the_first_row_that_is_impossible_under_every_label_is_named(schedule):
    many = {name: np.tile(value, 20_000) for name, value in POSSIBLE.items()}
    for row in (77_777, 90_001):
        many["x"][row], many["y"][row] = 0, 0
    with pytest.raises(cv.DataError, match=r"row 77777 is impossible: .*'z' may be \('x' is 0, 'y' is 0\)"):
        mixture().fit(many, schedule=schedule, executor=4)


def test_rows_of_weight_zero_may_be_impossible():
    bad = rows([0, 1, 0], [1, 0, 0])
    posterior = mixture().fit(bad, sample_weight=[1.0, 2.0, 0.0])
    assert_allclose(posterior.elbo, np.log(joint([0, 1, 1], [1, 0, 0]).sum(axis=1)).sum(), rtol=1e-13)
    with pytest.raises(cv.DataError, match="row 2 is impossible"):
        mixture().fit(bad, sample_weight=[1.0, 0.0, 1e-3])


def test_a_missing_entry_rules_nothing_out():
    posterior = mixture().fit(rows([0.0, 0.0], [1.0, np.nan]))
    expected = np.log(joint([0], [1]).sum()) + np.log(WEIGHTS @ COLOURS[:, 0])
    assert_allclose(posterior.elbo, expected, rtol=1e-13)


@pytest.mark.parametrize(("label", "x", "y"), [(2, 3, 0), (0, 2, 1), (0, 0, 0)])
def test_a_known_label_that_is_impossible_is_refused(label, x, y):
    """Of known weight 0, or with an observation that its category does not have; whether others are known or not."""
    one = {**rows([0, x], [1, y]), "z": np.array([0, label])}
    with pytest.raises(cv.DataError, match="row 1 is impossible"):
        mixture().fit(one)
    with pytest.raises(cv.DataError, match=rf"row 1 is impossible: .*'z' is known to be {label}"):
        mixture().fit({**one, "z": np.array([np.nan, label])})


def test_a_known_label_leaves_that_label_alone():
    data = rows([1, 1], [1, 1])
    posterior = mixture().fit({**data, "z": np.array([np.nan, 1])})
    each = joint(**data)
    assert_allclose(posterior.elbo, np.log(each[0].sum()) + np.log(each[1, 1]), rtol=1e-13)


def _leaf(kind):
    obs = cv.Plate("obs")
    if kind == "categorical":
        return cv.Categorical("x", [0.5, 0.5, 0.0], plates=obs)
    if kind == "categorical by row":
        return cv.Categorical("x", np.array([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]]), plates=obs)
    if kind == "bernoulli":
        return cv.Bernoulli("x", cv.Data("p", plates=obs), plates=obs)
    return cv.Multinomial("x", None, [0.5, 0.5, 0.0], plates=obs)


@pytest.mark.parametrize(
    ("kind", "good", "bad", "elbo"),
    [
        ("categorical", [0, 1], [0, 2], 2 * np.log(0.5)),
        ("categorical by row", [0, 1], [0, 0], 2 * np.log(0.5)),
        ("bernoulli", [1, 0], [1, 1], 0.0),
        ("multinomial", [[1, 0, 0], [1, 1, 0]], [[1, 0, 0], [1, 0, 1]], 2 * np.log(0.5)),
        ("sparse multinomial", [[1, 0, 0], [1, 1, 0]], [[1, 0, 0], [1, 0, 1]], 2 * np.log(0.5)),
    ],
)
def test_leaves_without_latents(kind, good, bad, elbo):
    model = cv.Model(_leaf(kind))
    of = csr_array if kind.startswith("sparse") else np.array
    more = {"p": np.array([1.0, 0.0])} if kind == "bernoulli" else {}
    posterior = model.fit({"x": of(good), **more})
    assert_allclose(posterior.elbo, elbo, rtol=1e-13, atol=1e-300)
    with pytest.raises(cv.DataError, match=r"row 1 is impossible: its known probability is 0 \('x' is "):
        model.fit({"x": of(bad), **more})
    assert np.isneginf(posterior.log_predictive({"x": of(bad), **more})).tolist() == [False, True]


def test_one_observation_without_rows():
    with pytest.raises(cv.DataError, match="'x' are impossible"):
        cv.Model(cv.Bernoulli("x", 0.0)).fit({"x": 1})
    assert cv.Model(cv.Bernoulli("x", 0.0)).fit({"x": 0}).elbo == 0.0


def test_probabilities_of_zero_in_weights_of_rows():
    """A label with a known prior for each row: 0 is 0, however much the observation speaks for it."""
    obs, kind = cv.Plate("obs"), cv.Plate("kind", 2)
    z = cv.Categorical("z", np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]), plates=obs)
    mean = cv.Constant("mean", [0.0, 50.0], plates=kind)
    x = np.array([50.0, 0.0, 50.0])
    posterior = cv.Model(cv.Normal("x", mean[z], 1.0, plates=obs)).fit({"x": x})
    expected = -1250 - 1250 + np.log(0.5) - 1.5 * np.log(2 * np.pi)
    assert_allclose(posterior.elbo, expected, rtol=1e-13)
    assert posterior.local({"x": x})["z"].probabilities[:2].tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_a_label_of_all_rows():
    """A global Categorical: zeros that one row meets exclude the category for all."""
    obs, kind = cv.Plate("obs"), cv.Plate("kind", 3)
    table = cv.Constant("p", [[0.5, 0.5, 0.0], [0.2, 0.3, 0.5], [0.1, 0.8, 0.1]], plates=kind)
    z = cv.Categorical("z", [0.3, 0.7, 0.0])
    posterior = cv.Model(cv.Categorical("x", table[z], plates=obs)).fit({"x": np.array([0, 1, 2])})
    assert posterior["z"].probabilities.tolist() == [0.0, 1.0, 0.0]
    assert_allclose(posterior.elbo, np.log(0.7 * 0.2 * 0.3 * 0.5), rtol=1e-13)


def test_labels_that_depend_on_each_other():
    obs, first, second = cv.Plate("obs"), cv.Plate("first", 2), cv.Plate("second", 2)
    a = cv.Categorical("a", [0.5, 0.5], plates=obs)
    b = cv.Categorical("b", cv.Constant("t", np.eye(2), plates=first)[a], plates=obs)
    p = cv.Constant("p", [[0.9, 0.1, 0.0], [0.0, 0.8, 0.2]], plates=second)
    posterior = cv.Model(cv.Categorical("x", p[b], plates=obs)).fit({"x": np.array([0, 2, 2])})
    # what each row says of the labels leaves one pair
    assert_allclose(posterior.elbo, np.log([0.45, 0.1, 0.1]).sum(), rtol=1e-12)


def test_points_at_zero_count_as_such_for_new_rows():
    weights = cv.Dirichlet("w", np.ones(3))
    posterior = cv.Model(cv.Categorical("x", weights, plates=cv.Plate("obs"))).fit(
        {"x": np.array([0, 1, 1])}, point=["w"]
    )
    density = posterior.log_predictive({"x": np.array([0, 1, 2])})
    assert_allclose(density, [np.log(1 / 3), np.log(2 / 3), -np.inf])


# chains: from left to right

INITIAL = np.array([1.0, 0.0, 0.0])
STEPS = np.array([[0.5, 0.5, 0.0], [0.0, 0.6, 0.4], [0.0, 0.0, 1.0]])
NOISY = np.array([[0.9, 0.1, 0.0], [0.3, 0.3, 0.4], [0.0, 0.2, 0.8]])


def chain(emissions):
    time, state = cv.Plate("time"), cv.Plate("state", 3)
    s = cv.MarkovChain("s", INITIAL, STEPS, along=time, starts=cv.Data("starts", plates=time))
    return cv.Model(cv.Categorical("x", cv.Constant("p", emissions, plates=state)[s], plates=time))


def evidence_of_path(x, emissions):
    """Return log p(x) and the probabilities of the states, by all paths."""
    weights = {
        path: INITIAL[path[0]]
        * np.prod([STEPS[i, j] for i, j in itertools.pairwise(path)])
        * np.prod([emissions[k, v] for k, v in zip(path, x, strict=True)])
        for path in itertools.product(range(3), repeat=len(x))
    }
    total = sum(weights.values())
    marginals = np.zeros((len(x), 3))
    for path, weight in weights.items():
        marginals[np.arange(len(x)), list(path)] += weight / total
    return np.log(total), marginals


@pytest.mark.thinned(2)
@pytest.mark.parametrize("emissions", [NOISY, np.eye(3)])
@pytest.mark.parametrize("copies", [1, pytest.param(4_000, marks=pytest.mark.slow), 1_000])
def test_a_chain_from_left_to_right_is_exact(emissions, copies):
    """Short sequences and, laid end to end, many of them, which are scanned in pieces."""
    x = np.array([0, 1, 1, 2, 2, 2])
    exact, marginals = evidence_of_path(x, emissions)
    data = {"x": np.tile(x, copies), "starts": np.tile([1, 0, 0, 0, 0, 0], copies)}
    posterior = chain(emissions).fit(data)
    assert_allclose(posterior.elbo, copies * exact, rtol=1e-11)
    found = posterior.local(data)["s"].probabilities
    assert_allclose(found, np.tile(marginals, (copies, 1)), atol=1e-13)
    assert (found[np.tile(marginals == 0, (copies, 1))] == 0).all(), "exactly"


@pytest.mark.thinned(2)
@pytest.mark.parametrize("schedule", ["batch", "incremental"])
def test_a_sequence_without_a_path_is_named(schedule):
    x, starts = np.tile([0, 1, 1, 2, 2, 2], 4_000), np.tile([1, 0, 0, 0, 0, 0], 4_000)
    x[6 * 3_000 + 3] = 0
    with pytest.raises(cv.DataError, match=r"begins at row 18000 is impossible: .* row 18003 allows"):
        chain(np.eye(3)).fit({"x": x, "starts": starts}, schedule=schedule)


def test_a_row_without_a_state_is_named():
    emissions = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 1.0, 0.0]])
    with pytest.raises(cv.DataError, match=r"row 3 is impossible: .* whatever 's' may be \('x' is 2\)"):
        chain(emissions).fit({"x": np.array([0, 1, 1, 2]), "starts": np.array([1, 0, 0, 0])})


def test_more_rows_of_a_posterior_are_looked_at_too():
    posterior = mixture().fit(POSSIBLE)
    with pytest.raises(cv.DataError, match="row 1 is impossible"):
        posterior.update(rows([0, 0], [1, 0]))
