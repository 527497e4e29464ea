"""What a user gives by ``init=`` is held while everything else is brought near it, so it is not lost at once."""

from typing import Any

import numpy as np
import pytest
from checkpoint.comparing import after, assert_same_bits, broken_off_until_done

import caviar as cv
from caviar.engine import assemble

Array = np.ndarray


@pytest.fixture(autouse=True)
def _staying_at_saddles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have fits end at saddle points: there a start that was lost would be made up for."""
    monkeypatch.setattr(assemble, "_MOST_SADDLES", 0)


def _columns() -> tuple[cv.Model, dict[str, Any], Array]:
    """Return a model of columns in three groups, data, and the groups."""
    rng = np.random.default_rng(0)
    labels = np.arange(12) % 3
    data = {"x": np.array([-5, 0, 5.0])[labels] + rng.normal(size=(50, 12))}
    obs, columns, k = cv.Plate("obs"), cv.Plate("columns", 12), cv.Plate("k", 3)
    mean = cv.Normal("mean", 0, 0.01, plates=k)
    z = cv.Categorical("z", np.ones(3) / 3, plates=columns)
    return cv.Model(cv.Normal("x", mean[z], 1.0, plates=(obs, columns))), data, labels


def _exact_of_columns(data: dict[str, Any], labels: Array) -> float:
    """Return the ELBO where the labels are certain: conjugate Normal means given these, in closed form."""
    x, total = data["x"], 12 * np.log(1 / 3)
    for group in range(3):
        y = x[:, labels == group].ravel()
        covariance = np.eye(len(y)) + 100.0
        logdet = np.linalg.slogdet(covariance)[1]
        total += -0.5 * (len(y) * np.log(2 * np.pi) + logdet + y @ np.linalg.solve(covariance, y))
    return total


@pytest.mark.parametrize("order", [["z", "mean"], ["mean", "z"]])
def test_labels_or_what_they_choose_are_held_in_any_order_of_updates(order):
    model, data, labels = _columns()
    exact = _exact_of_columns(data, labels)
    for init in (
        {"z": labels},
        {"z": np.eye(3)[labels] * 0.7 + 0.1},
        {"mean": [-5.0, 0.0, 5.0]},
        {"mean": cv.families.Normal([-4.0, 0.0, 4.0], np.ones(3))},
    ):
        assert model.fit(data, init=init, order=order).elbo == pytest.approx(exact, abs=1e-3)


def _table() -> tuple[cv.Model, dict[str, Any], dict[str, Array]]:
    """Return a model of a table whose rows and columns have labels, data, and what they were made with."""
    rng = np.random.default_rng(1)
    row, column = rng.integers(2, size=60), np.arange(10) % 2
    given = {"row": row, "column": column, "a": np.array([-6.0, 6.0]), "b": np.array([-2.0, 2.0])}
    data = given["a"][row][:, None] + given["b"][column] + rng.normal(size=(60, 10))
    obs, columns, k, m = cv.Plate("obs"), cv.Plate("columns", 10), cv.Plate("k", 2), cv.Plate("m", 2)
    a, b = cv.Normal("a", 0, 0.01, plates=k), cv.Normal("b", 0, 0.01, plates=m)
    total = (
        a[cv.Categorical("row", [0.5, 0.5], plates=obs)]
        + b[cv.Categorical("column", [0.5, 0.5], plates=columns)]
    )
    x = cv.Normal("x", total, cv.Gamma("tau", 1, 1), plates=(obs, columns))
    return cv.Model(x), {"x": data}, given


@pytest.mark.parametrize(
    "names", [["row", "column"], ["column"], ["b"], ["a", "b"], ["row", "b"], ["a", "column"]], ids=" ".join
)
def test_labels_of_rows_and_of_columns_are_held_together_and_apart(names):
    """Both labels, or one with the means of the other; also where the noise at its prior would drown them."""
    model, data, given = _table()
    # each row and each column is certain: the labels are those that the residuals are least with
    best = max(
        model.fit(data, init={name: given[name] for name in own}).elbo
        for own in (("row", "column", "a", "b"), ("row", "column"))
    )
    found = model.fit(data, init={name: given[name] for name in names}, seed=0)
    labels = found.local(data)["row"].probabilities.argmax(axis=1)
    if "row" in names or "a" in names:
        np.testing.assert_array_equal(labels, given["row"])
    columns = found["column"].probabilities.argmax(axis=1)
    if "column" in names or "b" in names:
        np.testing.assert_array_equal(columns, given["column"])
    if len(names) > 1:
        assert found.elbo == pytest.approx(best, abs=0.05)


def _tiny(rows: int = 300) -> tuple[cv.Model, dict[str, Any], Array, Array]:
    """Return a mixture whose data are narrower than their prior by far, data, labels and means."""
    rng = np.random.default_rng(2)
    labels, means = rng.integers(3, size=rows), np.array([-3.0, 0.0, 4.0]) * 1e-3
    data = {"x": means[labels] + 2e-4 * rng.normal(size=rows)}
    obs, k = cv.Plate("obs"), cv.Plate("k", 3)
    z = cv.Categorical("z", cv.Dirichlet("w", np.ones(3)), plates=obs)
    tau = cv.Gamma("tau", 1, 1e-6, plates=k)
    return (
        cv.Model(cv.Normal("x", cv.Normal("mean", 0, 1e-2, plates=k)[z], tau[z], plates=obs)),
        data,
        labels,
        means,
    )


SCHEDULES = {
    "batch": {},
    "plain": {"accelerate": False},
    "incremental": {"schedule": cv.Incremental(3)},
    "stochastic": {"schedule": cv.Stochastic(100), "max_iter": 30},
    "point": {"point": ["mean"]},
    "em": {"point": ["mean", "w"]},
}


@pytest.mark.parametrize("how", SCHEDULES)
def test_means_are_held_until_the_widths_are_known(how):
    """The prior of the widths is a thousand times too wide: with it all rows belong to all components alike."""
    model, data, labels, means = _tiny()
    arguments = {"seed": 0, **SCHEDULES[how]}
    found = model.fit(data, init={"mean": means}, **arguments)
    best = model.fit(data, init={"z": labels}, **arguments)
    slack = 1.0 if how == "stochastic" else 1e-3
    assert found.elbo == pytest.approx(best.elbo, abs=slack)
    np.testing.assert_allclose(np.asarray(found["mean"].mean), means, atol=1e-4)


def test_held_values_are_those_of_a_start_without_iterations():
    """With point masses a fit of no iterations shows the start: given values as they are, the rest brought near."""
    model, data, labels, means = _tiny()
    start = model.fit(data, init={"mean": means}, point=["mean", "w", "tau"], max_iter=0)
    np.testing.assert_array_equal(start["mean"].value, means)
    shares = np.bincount(labels) / len(labels)
    np.testing.assert_allclose(start["w"].value, shares, atol=0.15)
    # the prior's is 1e6, the variance of all rows together 1 / 1.2e5
    assert np.all(start["tau"].value > 3e5)


@pytest.mark.slow
def test_what_is_left_open_begins_apart():
    """Weights alone tell nothing of the components: these begin at the data, not all alike."""
    rng = np.random.default_rng(3)
    x = np.array([-4.0, 0, 4])[rng.integers(3, size=200)][:, None] + rng.normal(size=(200, 1))
    model = cv.models.gaussian_mixture(1, 3)
    best = max(model.fit({"x": x}, seed=seed).elbo for seed in range(3))
    for init in ({"weights": [0.2, 0.3, 0.5]}, {"weights": [1 / 3] * 3}):
        assert model.fit({"x": x}, init=init, seed=0).elbo == pytest.approx(best, abs=1.0)


def test_states_and_transitions_of_a_chain():
    rng = np.random.default_rng(4)
    states = np.repeat(rng.integers(3, size=30), 10)
    x = np.array([-4.0, 0, 4])[states][:, None] + 0.7 * rng.normal(size=(300, 1))
    model = cv.models.gaussian_hidden_markov_model(1, 3)
    best = model.fit({"x": x}, init={"s": states}).elbo
    mean = np.array([[-4.0], [0.0], [4.0]])
    staying = np.full((3, 3), 0.05) + 0.85 * np.eye(3)
    for init in ({"mean": mean}, {"transition": staying}, {"transition": staying, "mean": mean}):
        assert model.fit({"x": x}, init=init, seed=0).elbo == pytest.approx(best, abs=0.01)


def test_tokens_of_nested_documents_are_held():
    """Topics of tokens that are given, in the plain statement of documents with proportions of their own."""
    rng = np.random.default_rng(5)
    n_docs, n_words = 20, 12
    document = np.repeat(np.arange(n_docs), 30)
    topic = (rng.random(len(document)) < np.where(document < 10, 0.9, 0.1)).astype(int)
    word = np.where(topic, rng.integers(0, 6, len(document)), rng.integers(6, 12, len(document)))
    docs = cv.Plate("docs")
    tokens, k = cv.Plate("tokens", within=docs), cv.Plate("k", 2)
    proportions = cv.Dirichlet("proportions", np.ones(2), plates=docs)
    topics = cv.Dirichlet("topics", np.full(n_words, 0.5), plates=k)
    z = cv.Categorical("z", proportions, plates=tokens)
    x = cv.Categorical("x", topics[z], plates=tokens)
    data = {"x": word, "docs": document}
    found = cv.Model(x).fit(data, init={"z": topic}, data_plate="tokens")
    chosen = found.local(data, anew=False)["z"].probabilities.argmax(axis=1)
    assert np.mean(chosen == topic) > 0.98


def test_a_start_that_is_given_is_checkpointed(tmp_path):
    model, data, _, means = _tiny(120)

    def fit(**arguments: Any) -> cv.Posterior:
        return model.fit(data, init={"mean": means}, n_restarts=2, seed=1, **arguments)

    kept = {"checkpoint": tmp_path / "c", "checkpoint_every": 0}
    found, n_breaks = broken_off_until_done(
        lambda **arguments: fit(**kept, **arguments), [{"progress": after(1)}] * 20
    )
    assert n_breaks > 0
    assert_same_bits(found, fit())


def test_probabilities_of_a_global_label_are_checked():
    model, data, _ = _columns()
    with pytest.raises(cv.ParameterError, match=r"init of 'z', probabilities"):
        model.fit(data, init={"z": np.full((12, 3), 0.5)})


def test_wrong_values_are_refused_before_a_start_from_the_data_is_made(monkeypatch):
    def started(*_: Any) -> None:
        raise AssertionError("the data were looked at")

    monkeypatch.setattr("caviar.fitting.restarts.data_start", started)
    model = cv.models.gaussian_mixture(2, 2)
    data = {"x": np.random.default_rng(0).normal(size=(50, 2))}
    for init in (
        {"weights": [np.nan, 1.0]},
        {"weights": [0.4, 0.6], "z": np.zeros(49, int)},
        {"weights": [0.4, 0.6], "z": np.full(50, 2)},
    ):
        with pytest.raises(cv.CaviarError, match=f"init of '{list(init)[-1]}'"):
            model.fit(data, init=init)
