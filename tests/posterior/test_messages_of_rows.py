"""What each row says to a factor: contractions that keep the axis of rows, factors looked up by known labels."""

import tracemalloc

import numpy as np
import pytest
from scipy import stats

import caviar as cv
from caviar.engine.design.contraction import Contraction
from caviar.engine.design.gather import Factor, Gather
from caviar.language import Axis

OBS, GROUP, FEATURE = cv.Plate("obs"), cv.Plate("group", 3), cv.Plate("feature", 2)
ROW, COLUMN, LEVEL, PAIR = (Axis(cv.Plate(name)) for name in ("row", "column", "level", "pair"))
SIZES = {ROW: 5, COLUMN: 2, LEVEL: 3, PAIR: 4}
RNG = np.random.default_rng(3)
LABELS = np.array([2, 0, 0, 1, 2])


def contraction(factors, constants, axes, gather=None):
    return Contraction(0.5, factors, constants, axes, SIZES.__getitem__, gather)


def numerical(value_of_row, array):
    """Return the derivative of each row's value by each entry of an array: exact, for the value is linear in it."""
    zero = value_of_row(np.zeros_like(array))
    entries = np.eye(array.size).reshape(array.size, *array.shape)
    return np.stack([value_of_row(entry) - zero for entry in entries], axis=-1).reshape(-1, *array.shape)


def test_the_derivative_of_each_row():
    x, scale = RNG.normal(size=(5, 2)), RNG.normal(size=2)
    term = contraction(
        [Factor("w", (COLUMN,)), Factor("x", (ROW, COLUMN))], [(scale, (COLUMN,))], [ROW, COLUMN]
    )
    found = term.derivative(0, keep=ROW)({"x": x})
    np.testing.assert_allclose(
        found, numerical(lambda w: 0.5 * (x * scale * w).sum(1), np.zeros(2)), rtol=1e-14
    )
    np.testing.assert_allclose(found.sum(0), term.derivative(0)({"x": x}), rtol=1e-14)


def test_what_does_not_vary_with_the_rows_has_length_one():
    scale = RNG.normal(size=2)
    term = contraction([Factor("w", (COLUMN,))], [(scale, (COLUMN,))], [COLUMN])
    np.testing.assert_array_equal(term.derivative(0, keep=ROW)({}), 0.5 * scale[None])
    assert contraction([Factor("n", ())], [], []).derivative(0, keep=ROW)({}).shape == (1,)


def test_the_derivative_of_a_trace_by_row():
    x = RNG.normal(size=5)
    term = contraction([Factor("S", (COLUMN, COLUMN)), Factor("x", (ROW,))], [], [ROW, COLUMN])
    found = term.derivative(0, keep=ROW)({"x": x})
    np.testing.assert_allclose(
        found, numerical(lambda S: 0.5 * x * np.trace(S), np.zeros((2, 2))), rtol=1e-14, atol=1e-15
    )


def test_each_row_speaks_to_the_repetition_that_it_looks_up():
    a, b, x = RNG.normal(size=(3, 2)), RNG.normal(size=3), RNG.normal(size=(5, 2))
    factors = [Factor("a", (LEVEL, COLUMN)), Factor("x", (ROW, COLUMN)), Factor("b", (LEVEL,))]
    term = contraction(factors, [], [ROW, COLUMN], Gather(ROW, {LEVEL: LABELS}))
    found = term.derivative(0, keep=ROW)({"a": a, "x": x, "b": b})
    every = numerical(lambda a: 0.5 * (a[LABELS] * x).sum(1) * b[LABELS], a)
    np.testing.assert_allclose(found, np.moveaxis(every[np.arange(5), LABELS], 0, -1).T, rtol=1e-14)
    np.testing.assert_allclose(every.sum(0), term.derivative(0)({"a": a, "x": x, "b": b}), rtol=1e-14)


def test_what_is_looked_up_along_another_axis_is_put_back():
    labels = np.array([1, 1, 2, 0])
    table, x = RNG.normal(size=4), RNG.normal(size=(5, 4))
    factors = [Factor("a", (LEVEL,)), Factor("x", (ROW, PAIR))]
    term = contraction(factors, [(table, (PAIR,))], [ROW, PAIR], Gather(PAIR, {LEVEL: labels}))
    found = term.derivative(0, keep=ROW)({"x": x})
    np.testing.assert_allclose(
        found, numerical(lambda a: 0.5 * x @ (table * a[labels]), np.zeros(3)), rtol=1e-14
    )


def student(q, x):
    scale = np.sqrt(q.rate * (1 + 1 / q.mean_precision) / q.shape)
    return stats.t(2 * q.shape, q.mean, scale).logpdf(x)


@pytest.mark.parametrize("last", [False, True])
def test_known_labels_choose_from_any_plate(last):
    theta = cv.NormalGamma("theta", 0.0, 0.1, 2.0, 1.0, plates=(FEATURE, GROUP) if last else (GROUP, FEATURE))
    chosen = theta[cv.Data("g", plates=OBS)]
    leaf = cv.Normal("x", chosen.mean, chosen.precision, plates=(OBS, FEATURE))
    data = {"x": RNG.normal(size=(20, 2)), "g": RNG.integers(0, 3, 20)}
    posterior = cv.Model(leaf).fit(data)
    q = posterior["theta"]
    expected = [
        sum(student(q[j, g] if last else q[g, j], x[j]) for j in range(2))
        for x, g in zip(data["x"], data["g"], strict=True)
    ]
    np.testing.assert_allclose(posterior.log_predictive(data), expected, rtol=1e-11)


def two_labels(posterior_data, rows):
    """Two leaves that choose by labels of their own from one factor: no row chooses one repetition."""
    theta = cv.NormalGamma("theta", 0.3, 0.5, 2.0, 1.0, plates=GROUP)
    leaves = []
    for name in ("x", "y"):
        own = theta[cv.Data(f"of_{name}", plates=OBS)]
        leaves.append(cv.Normal(name, own.mean, own.precision, plates=OBS))
    return cv.Model(*leaves).fit({name: value[rows] for name, value in posterior_data.items()})


def test_rows_that_choose_twice_from_one_factor():
    """By the definition, log p(row, rows) - log p(rows), where the ELBO is the evidence."""
    data = {"x": RNG.normal(size=8), "y": RNG.normal(size=8)}
    data |= {"of_x": RNG.integers(0, 3, 8), "of_y": np.array([0, 1, 2, 0, 1, 2, 0, 1])}
    data["of_x"][7] = data["of_y"][7]
    before = two_labels(data, slice(6))
    found = before.log_predictive({name: value[6:] for name, value in data.items()})
    for row in (6, 7):
        more = two_labels(data, [*range(6), row])
        assert found[row - 6] == pytest.approx(more.elbo - before.elbo, rel=1e-9)


def test_repetitions_that_are_known_are_chosen_beside_others():
    means = cv.Normal("means", 0.0, 0.5, plates=GROUP)
    leaf = cv.Normal("x", means[cv.Data("g", plates=OBS)], 4.0, plates=OBS)
    data = {"x": RNG.normal(size=30), "g": RNG.integers(0, 3, 30)}
    posterior = cv.Model(leaf).fit({**data, "means": np.array([np.nan, 0.7, np.nan])})
    mean = np.asarray(posterior["means"].mean)[data["g"]]
    sd = np.sqrt(0.25 + np.asarray(posterior["means"].variance)[data["g"]])
    np.testing.assert_allclose(
        posterior.log_predictive({**data, "means": np.array([np.nan, 0.7, np.nan])}),
        stats.norm(mean, sd).logpdf(data["x"]),
        rtol=1e-11,
    )


def test_points_are_looked_up_by_known_labels():
    sd, weights = cv.Gamma("tau", 2.0, 1.0, plates=GROUP), cv.Dirichlet("p", np.ones(2), plates=GROUP)
    label = cv.Data("g", plates=OBS)
    x = cv.Normal("x", cv.Normal("m", 0.0, 0.1, plates=GROUP)[label], sd[label], plates=OBS)
    model = cv.Model(x, cv.Categorical("y", weights[label], plates=OBS))
    g = np.arange(30) % 3
    data = {"x": RNG.normal(size=30) + g, "g": g, "y": RNG.integers(0, 2, 30)}
    posterior = model.fit(data, point=["m", "tau", "p"])
    values = {name: np.asarray(posterior[name].mean) for name in ("m", "tau", "p")}
    expected = stats.norm(values["m"][g], values["tau"][g] ** -0.5).logpdf(data["x"])
    expected += np.log(values["p"][g, data["y"]])
    np.testing.assert_allclose(posterior.log_predictive(data), expected, rtol=1e-11)


def test_nothing_has_an_entry_for_each_row_and_label():
    n = 2_000
    theta = cv.NormalGamma("theta", 0.0, 0.1, 2.0, 1.0, plates=cv.Plate("many", n))
    chosen = theta[cv.Data("g", plates=OBS)]
    y = cv.Categorical("y", cv.Dirichlet("w", np.full(n, 0.5)), plates=OBS)
    model = cv.Model(cv.Normal("x", chosen.mean, chosen.precision, plates=OBS), y)
    data = {"x": RNG.normal(size=n), "g": RNG.permutation(n), "y": RNG.integers(0, n, n)}
    posterior = model.fit(data)
    tracemalloc.start()
    found = posterior.log_predictive(data)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    q = posterior["theta"]
    expected = student(q[data["g"]], data["x"]) + np.log(posterior["w"].mean[data["y"]])
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    # a table of all rows and labels alone would take 32 MB, its blocks 2 MB each
    assert peak < 1.5e6
