"""Messages name a statement that would do: each is stated here as the message has it, and fitted."""

import numpy as np
import pytest

import caviar as cv

OBS, TIME = cv.Plate("obs"), cv.Plate("time")


def gamma(name="g", **kwargs):
    return cv.Gamma(name, 1.0, 1.0, **kwargs)


def square_of_a_dot():
    w = cv.MultivariateNormal("w", np.zeros(2), np.eye(2))
    own = cv.dot(cv.Data("X", plates=OBS), w)
    return cv.Normal("y", own * own, 1.0, plates=OBS)


def matrices_on_a_plate_of_rows():
    mode, entry = cv.Plate("mode", 2), cv.Plate("entry", 1)
    z = cv.MarkovChain("z", [0.5, 0.5], np.eye(2), along=TIME)
    transition = cv.Constant("A", np.ones((2, 1, 1)), plates=(mode, entry))
    return cv.LinearGaussianChain("s", [0.0], [[1.0]], transition[z], [[4.0]], along=TIME)


def chance_of_two_events():
    return cv.Bernoulli("y", 1 - cv.Beta("a", 1, 1) * cv.Beta("b", 1, 1), plates=OBS)


def chance_of_a_number():
    return cv.Bernoulli("y", cv.Bernoulli("a", 0.5, plates=OBS) * 0.9 + 0.05, plates=OBS)


def three_sides():
    sides = [cv.MultivariateNormal(name, np.zeros(2), np.eye(2)) for name in "abc"]
    return cv.dot(*sides)


def steps_by_a_link(link=cv.softmax):
    return cv.MarkovChain("s", [0.5, 0.5], link(cv.Normal("b", 0, 1, plates=cv.Plate("k", 3))), along=TIME)


@pytest.mark.parametrize(
    ("state", "named"),
    [
        (lambda: cv.Normal("y", gamma(), 1.0, plates=OBS), "in a mean is a HalfNormal"),
        (
            lambda: cv.Normal(
                "y", cv.dot(cv.Data("X", plates=OBS), gamma(plates=cv.Plate("k", 2))), 1.0, plates=OBS
            ),
            "a sum of products of HalfNormals, a1 \\* b1 \\+ a2 \\* b2",
        ),
        (
            lambda: cv.Poisson("y", cv.Bernoulli("b", 0.5, plates=OBS) * gamma(), plates=OBS),
            "Constant\\('there', \\[1e-9, 1\\], plates=Plate\\('state', 2\\)\\)\\[z\\] times the rate",
        ),
        (three_sides, "two vectors, not 3; .* a1 \\* b1 \\* c1 \\+ a2 \\* b2 \\* c2"),
        (chance_of_two_events, "a table, p\\[a, b\\]"),
        (chance_of_a_number, "a table, p\\[a, b\\]"),
        (steps_by_a_link, "table\\[Data\\('input', plates=time\\)\\]"),
        (lambda: steps_by_a_link(cv.logistic), "table\\[Data\\('input', plates=time\\)\\]"),
        (
            lambda: cv.MarkovChain("s", [0.5, 0.5], np.eye(2), along=TIME, inputs=1),  # pyright: ignore
            "table\\[Data\\('input', plates=time\\)\\]",
        ),
        (lambda: cv.Wishart("L", gamma(), np.eye(2), plates=OBS), "which g is not. Give 1 \\+ a Gamma"),
        (
            lambda: cv.Multinomial(
                "y", cv.Poisson("n", 3.0, plates=OBS), cv.Dirichlet("p", np.ones(3)), plates=OBS
            ),
            "'trials' of Multinomial 'y' must be known",
        ),
        (lambda: cv.Beta("p", cv.exp(cv.Normal("a", 0, 1)), 1.0, plates=OBS), "Normal\\('log odds'"),
        (square_of_a_dot, "'w' appears twice"),
        (matrices_on_a_plate_of_rows, "Constant\\('A', array, plates=mode\\)"),
    ],
)
def test_a_refusal_names_what_would_do(state, named):
    with pytest.raises(cv.CaviarError, match=named):
        state()


def test_numbers_0_or_1_that_shall_share_a_factor_are_labels():
    rng = np.random.default_rng(0)
    a, b = (cv.Bernoulli(name, 0.5, plates=OBS) for name in "ab")
    data = {"y": rng.normal(size=5)}
    with pytest.raises(cv.ModelError, match="'a' is a number: state a Categorical of two categories instead"):
        cv.Model(cv.Normal("y", 2.0 * a + 3.0 * b, 1.0, plates=OBS)).fit(data, factors=[("a", "b")])
    a, b = (cv.Categorical(name, [0.5, 0.5], plates=OBS) for name in "ab")
    parts = [cv.Constant(f"parts {w}", [0.0, w], plates=cv.Plate(f"there {w}", 2)) for w in (2.0, 3.0)]
    model = cv.Model(cv.Normal("y", parts[0][a] + parts[1][b], 1.0, plates=OBS))
    posterior = model.fit(data, factors=[("a", "b")])
    each = [-0.5 * (data["y"] - 2 * i - 3 * j) ** 2 - 0.5 * np.log(2 * np.pi) for i in (0, 1) for j in (0, 1)]
    assert posterior.elbo == pytest.approx(np.logaddexp.reduce(each).sum() - 5 * np.log(4))


@pytest.mark.parametrize("table", [[[0, 0], [0, 1]], [[0, 1], [1, 1]]])
def test_what_happens_if_both_or_one_of_two_events_do(table):
    """The chance of the outcome is that of both events, or of one of them."""
    sides = (cv.Plate("if a", 2), cv.Plate("if b", 2))
    a, b = (cv.Categorical(name, [1 - p, p], plates=OBS) for name, p in (("a", 0.3), ("b", 0.6)))
    known = cv.Constant("p", table, plates=sides)
    posterior = cv.Model(cv.Bernoulli("y", known[a, b], plates=OBS)).fit({"y": [1, 0]})
    chance = np.sum(np.array(table) * np.outer([0.7, 0.3], [0.4, 0.6]))
    assert posterior.elbo == pytest.approx(np.log(chance) + np.log(1 - chance))


def test_a_learnt_table_of_two_events():
    a, b = (cv.Categorical(name, cv.Dirichlet(f"share {name}", [1, 1]), plates=OBS) for name in "ab")
    p = cv.Beta("p", 1, 1, plates=(cv.Plate("if a", 2), cv.Plate("if b", 2)))
    posterior = cv.Model(cv.Bernoulli("y", p[a, b], plates=OBS)).fit({"y": [1, 0, 1, 1]}, seed=0)
    assert np.isfinite(posterior.elbo)


def test_other_statements_that_messages_name():
    table = cv.Dirichlet("table", [1, 1], plates=(cv.Plate("input", 2), cv.Plate("from", 2)))
    s = cv.MarkovChain("s", [0.5, 0.5], table[cv.Data("input", plates=TIME)], along=TIME)
    mean = cv.Normal("mean", 0, 1, plates=cv.Plate("state", 2))
    data = {"x": [0.0, 3.0, 3.0], "input": [0, 1, 0]}
    assert np.isfinite(cv.Model(cv.Normal("x", mean[s], 1.0, plates=TIME)).fit(data, seed=0).elbo)
    df = cv.Gamma("df", 1.0, 1.0)
    matrices = {"L": np.array([np.eye(2), 2 * np.eye(2)])}
    assert np.isfinite(cv.Model(cv.Wishart("L", 1 + df, np.eye(2), plates=OBS)).fit(matrices).elbo)
    mode = cv.Plate("mode", 2)
    z = cv.MarkovChain("z", [0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], along=TIME)
    matrices = cv.Constant("A", np.ones((2, 1, 1)), plates=mode)
    x = cv.LinearGaussianChain("x", [0.0], [[1.0]], matrices[z], [[4.0]], along=TIME)
    leaf = cv.Normal("y", cv.dot([1.0], x), 1.0, plates=TIME)
    assert np.isfinite(cv.Model(leaf).fit({"y": [0.0, 1.0, 2.0]}, seed=0).elbo)


def test_times_of_events_as_the_message_says():
    """A rate of events that depends on columns: quadrature over the two coefficients."""
    w = cv.MultivariateNormal("w", np.zeros(2), np.eye(2) / 10)
    eta = cv.dot(cv.Data("X", plates=OBS), w)
    with pytest.raises(cv.ModelError, match=r"NegativeBinomial\('event', exp\(predictor \+ Data\('log time'"):
        cv.Exponential("y", cv.exp(eta), plates=OBS)
    rng = np.random.default_rng(0)
    columns = np.column_stack([np.ones(60), rng.normal(size=60)])
    times = rng.exponential(np.exp(-columns @ [-1.0, 0.7]))
    events, times = (times < 4).astype(int), np.minimum(times, 4)
    mean = cv.exp(eta + cv.Data("log time", plates=OBS))
    model = cv.Model(cv.NegativeBinomial("event", mean, 100, plates=OBS))
    posterior = model.fit({"X": columns, "event": events, "log time": np.log(times)})
    grid = np.linspace(-3, 3, 301)
    first, second = (own.ravel() for own in np.meshgrid(grid, grid, indexing="ij"))
    log_rates = columns @ np.stack([first, second])
    logs = events @ log_rates - times @ np.exp(log_rates) - (first**2 + second**2) / 20
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    means = np.array([weights @ first, weights @ second])
    sds = np.sqrt([weights @ first**2, weights @ second**2] - means**2)
    np.testing.assert_allclose(posterior.mean("w"), means, atol=0.1 * sds.min())
    np.testing.assert_allclose(posterior.sd("w"), sds, rtol=0.05)


def test_words_of_models_on_graphs_and_of_quantiles():
    for word, advice in (
        ("CAR", "precision matrix"),
        ("LKJ", "Wishart"),
        ("cloglog", "probit"),
        ("Pareto", "Gamma"),
    ):
        with pytest.raises(AttributeError, match=advice):
            getattr(cv, word)
    with pytest.raises(AttributeError, match="quantile regression has no update"):
        cv.AsymmetricLaplace  # noqa: B018
