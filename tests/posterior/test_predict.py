"""Predictions of absent variables: Monte Carlo over q, closed forms, quadrature, and what is refused."""

import pickle

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.special import expit
from thinning import amount

import caviar as cv

OBS = cv.Plate("obs")
GROUP = cv.Plate("group", 3)
RNG = np.random.default_rng(20)
X = RNG.normal(size=(12, 2)) + 0.5
Y = X @ [1.0, -2.0] + RNG.normal(size=12)
LABELS = np.arange(12) % 3
NEW = {"X": np.array([[0.5, 1.0], [-2.0, 3.0], [0.0, 0.0]])}
DESIGN = cv.Data("X", plates=OBS)
CENTRES = cv.Data("c", plates=OBS)


def weights(name="w"):
    return cv.MultivariateNormal(name, np.zeros(2), np.eye(2) / 4)


def tau(**arguments):
    return cv.Gamma("tau", 3.0, 2.0, **arguments)


def plain():
    return cv.Normal("y", cv.Normal("m", 0, 0.1), tau(), plates=OBS), {"y": Y}, {}


def regression():
    return cv.Normal("y", cv.dot(DESIGN, weights()), tau(), plates=OBS), {"X": X, "y": Y}, NEW


def shared_operands():
    a, w = cv.Normal("a", 1.0, 2.0), weights()
    mean = 2.0 * a * cv.dot(DESIGN, w) + cv.dot([1.0, -1.0], w) - 0.5 * a + a * CENTRES + 3.0
    data = {"X": X, "c": X[:, 0], "y": Y}
    return cv.Normal("y", mean, tau(), plates=OBS), data, {**NEW, "c": [1.0, -1.0, 0.3]}


def two_hidden_vectors():
    w, v = weights(), cv.MultivariateNormal("v", np.ones(2), np.eye(2))
    mean = cv.dot(w, v) + cv.dot(DESIGN, w) * 0.5 + cv.dot(v, [1.0, 2.0])
    return cv.Normal("y", mean, tau(), plates=OBS), {"X": X, "y": Y}, NEW


def group_intercepts():
    g = cv.Data("g", plates=OBS)
    intercept, slopes = (
        cv.Normal("intercept", 0, 0.5, plates=GROUP),
        cv.MultivariateNormal("slopes", np.zeros(2), np.eye(2), plates=GROUP),
    )
    leaf = cv.Normal("y", intercept[g] + cv.dot(DESIGN, slopes[g]), tau(plates=GROUP)[g], plates=OBS)
    return leaf, {"X": X, "g": LABELS, "y": Y}, {**NEW, "g": [2, 0, 1]}


def columns():
    column = cv.Plate("column", 2)
    loading = cv.Normal("loading", 0, 1, plates=column)
    leaf = cv.Normal("y", loading * CENTRES, tau(plates=column), plates=(column, OBS))
    return leaf, {"c": X[:, 0], "y": np.stack([Y, -Y])}, {"c": [0.5, 2.0, -1.0]}


def joint_whole():
    return cv.Normal("y", cv.NormalGamma("theta", 0, 0.1, 3, 2), plates=OBS), {"y": Y}, {}


def joint_parts():
    theta = cv.NormalGamma("theta", np.zeros(2), 0.1 * np.eye(2), 3, 2)
    leaf = cv.Normal("y", cv.dot(DESIGN, theta.mean) + 1.0, 2.0 * theta.precision, plates=OBS)
    return leaf, {"X": X, "y": Y}, NEW


def scaled_noise():
    u = cv.Gamma("u", 6.0, 6.0, plates=OBS)
    return cv.Normal("y", cv.dot(DESIGN, weights()), u * tau(), plates=OBS), {"X": X, "y": Y}, NEW


def hidden_factor():
    z = cv.MultivariateNormal("z", np.zeros(2), np.eye(2), plates=OBS)
    return cv.Normal("y", cv.dot(weights(), z) + cv.Normal("m", 0, 1), tau(), plates=OBS), {"y": Y}, {}


def answer(link):
    def build():
        leaf = cv.Bernoulli("y", link(cv.dot(DESIGN, weights()) + cv.Normal("a", 0, 1)), plates=OBS)
        return leaf, {"X": X, "y": (Y > 0) * 1}, NEW

    return build


def bernoulli():
    return cv.Bernoulli("y", cv.Beta("p", 1, 2), plates=OBS), {"y": (Y > 0) * 1}, {}


def poisson():
    rate = cv.Gamma("rate", 2, 1, plates=GROUP)
    leaf = cv.Poisson("y", rate[cv.Data("g", plates=OBS)], plates=OBS)
    return leaf, {"g": LABELS, "y": LABELS * 2 + 1}, {"g": [0, 2]}


def gamma():
    leaf = cv.Gamma("y", 2.0, cv.Gamma("rate", 2, 1), plates=OBS)
    return leaf, {"y": np.abs(Y)}, {}


def categorical():
    return cv.Categorical("y", cv.Dirichlet("p", [1.0, 2, 3]), plates=OBS), {"y": LABELS}, {}


def multinomial():
    leaf = cv.Multinomial("y", 5, cv.Dirichlet("p", [1.0, 2, 3]), plates=OBS)
    return leaf, {"y": np.array([[1, 2, 2], [0, 4, 1]])}, {}


def vector():
    mean, precision = weights("m"), cv.Wishart("L", 7.0, np.array([[2.0, 0.5], [0.5, 1.0]]))
    return cv.MultivariateNormal("y", mean, precision, plates=OBS), {"y": X}, {}


def joint_vector():
    theta = cv.NormalWishart("theta", np.zeros(2), 0.2, 7.0, np.array([[2.0, 0.5], [0.5, 1.0]]))
    return cv.MultivariateNormal("y", theta, plates=OBS), {"y": X}, {}


def diagonal():
    alpha = cv.Gamma("alpha", 4.0, [1.0, 3.0], plates=cv.Plate("axis", 2))
    return cv.MultivariateNormal("y", weights("m"), cv.diagonal(alpha), plates=OBS), {"y": X}, {}


def mixture():
    z = cv.Categorical("z", cv.Dirichlet("p", [1.0, 2, 3]), plates=OBS)
    leaf = cv.Normal("y", cv.Normal("m", 0, 0.1, plates=GROUP)[z], tau(plates=GROUP)[z], plates=OBS)
    return leaf, {"y": Y}, {}


def mixture_of_vectors():
    z = cv.Categorical("z", cv.Dirichlet("p", [1.0, 2, 3]), plates=OBS)
    theta = cv.NormalWishart("theta", np.zeros(2), 0.2, 7.0, np.eye(2), plates=GROUP)
    return cv.MultivariateNormal("y", theta[z], plates=OBS), {"y": X}, {}


def mixture_over_columns():
    # each row has one component in all columns, and each column locations of its own
    column = cv.Plate("column", 2)
    z = cv.Categorical("z", cv.StickBreaking("p", 2.0, 3), plates=OBS)
    m = cv.Normal("m", 0, 0.1, plates=(GROUP, column))
    return cv.Normal("y", m[z], tau(plates=column), plates=(column, OBS)), {"y": X.T}, {}


def scaled_matrix():
    u = cv.Gamma("u", 6.0, 6.0, plates=OBS)
    precision = cv.Wishart("L", 8.0, np.array([[2.0, 0.5], [0.5, 1.0]]))
    return cv.MultivariateNormal("y", weights("m"), 0.5 * u * precision, plates=OBS), {"y": X}, {}


def nested_groups():
    county = cv.Plate("county", 3)
    house = cv.Plate("house", within=county)
    leaf = cv.Normal("y", cv.Normal("level", 0, 1, plates=county), tau(), plates=house)
    return leaf, {"county": LABELS, "y": Y}, {"county": [2, 0]}


def known_columns_alone():
    return cv.Normal("y", 2.0 * CENTRES, tau(), plates=OBS), {"c": X[:, 0], "y": Y}, {"c": [1.0, -3.0]}


CASES = [
    mixture_of_vectors,
    mixture_over_columns,
    scaled_matrix,
    nested_groups,
    known_columns_alone,
    plain,
    regression,
    shared_operands,
    two_hidden_vectors,
    group_intercepts,
    columns,
    joint_whole,
    joint_parts,
    scaled_noise,
    hidden_factor,
    bernoulli,
    poisson,
    gamma,
    categorical,
    multinomial,
    vector,
    joint_vector,
    diagonal,
    mixture,
]


N_DRAWS = amount(800, 2000)


@pytest.mark.slow
@pytest.mark.parametrize("build", [*CASES, answer(cv.probit), answer(cv.logistic)])
def test_mean_and_deviation_are_those_of_draws(build):
    leaf, data, new = build()
    init = {"z": LABELS} if "mixture" in build.__name__ else "auto"
    posterior = cv.Model(leaf).fit(data, seed=0, init=init, uncertainty="mean_field")
    found = posterior.predict(new)["y"]
    draws = posterior.predictive({} if new else {"obs": 1}, data=new, n_draws=N_DRAWS, seed=5)["y"]
    if build in (columns, mixture_over_columns):
        draws = np.swapaxes(draws, 1, 2)
    if build is categorical:
        draws = np.eye(3)[draws]
    assert found.mean.shape == found.standard_deviation.shape == draws.shape[1:]
    tolerance = 4 * found.standard_deviation / np.sqrt(N_DRAWS)
    assert np.all(np.abs(draws.mean(axis=0) - found.mean) < tolerance)
    if set(np.unique(draws)) <= {0, 1}:
        np.testing.assert_allclose(found.standard_deviation**2, found.mean * (1 - found.mean))
        return
    squares = np.square(draws - found.mean)
    error = 4 * squares.std(axis=0) / np.sqrt(N_DRAWS)
    np.testing.assert_array_less(np.abs(squares.mean(axis=0) - found.standard_deviation**2), error + 1e-9)


def test_conjugate_regression_is_student_t():
    leaf, data, new = joint_parts()
    posterior = cv.Model(leaf).fit(data, factors="apart")
    q, rows, found = posterior["theta"], np.array(new["X"]), posterior.predict(new)["y"]
    leverage = np.einsum("nd,de,ne->n", rows, np.linalg.inv(q.mean_precision), rows)
    exact = stats.t(2 * q.shape, rows @ q.mean + 1.0, np.sqrt(q.rate / q.shape * (0.5 + leverage)))
    np.testing.assert_allclose(found.mean, exact.mean(), rtol=1e-12)
    np.testing.assert_allclose(found.standard_deviation, exact.std(), rtol=1e-12)


def test_regression_formula_far_from_the_origin():
    # the variance of the mean is 1e-12 of its square: it must not be the difference of two squares
    leaf, data, _ = regression()
    posterior = cv.Model(leaf).fit(data, factors="apart", uncertainty="mean_field")
    w, noise, rows = posterior["w"], posterior["tau"], np.array([[1e6, 1.0], [1.0, -1e8]])
    found = posterior.predict({"X": rows})["y"]
    variance = np.einsum("nd,de,ne->n", rows, w.covariance, rows) + noise.rate / (noise.shape - 1)
    np.testing.assert_allclose(found.mean, rows @ w.mean, rtol=1e-12)
    np.testing.assert_allclose(found.standard_deviation, np.sqrt(variance), rtol=1e-12)


@pytest.mark.parametrize(
    ("link", "function"), [(cv.probit, stats.norm.cdf), (cv.logistic, expit)], ids=["probit", "logistic"]
)
@pytest.mark.parametrize("scale", [0.1, 3.0, 40.0])
def test_probability_is_an_integral_over_the_predictor(link, function, scale):
    leaf, data, _ = answer(link)()
    posterior = cv.Model(leaf).fit(data, factors="apart", uncertainty="mean_field")
    row = scale * np.array([1.0, -0.7])
    w, a = posterior["w"], posterior["a"]
    mean, deviation = row @ w.mean + a.mean, np.sqrt(row @ w.covariance @ row + a.variance)
    exact, _ = quad(
        lambda z: function(mean + deviation * z) * stats.norm.pdf(z),
        -9,
        9,
        points=[-mean / deviation],
        limit=200,
    )
    found = posterior.predict({"X": row[None]})["y"]
    np.testing.assert_allclose(found.mean, [exact], rtol=1e-9)
    np.testing.assert_allclose(found.standard_deviation, [np.sqrt(exact * (1 - exact))], rtol=1e-7)


def test_variance_is_infinite_where_the_student_t_has_none():
    theta = cv.NormalGamma("theta", 0.0, 1.0, 0.2, 1.0)
    posterior = cv.Model(cv.Normal("y", theta, plates=OBS)).fit({"y": [1.0]})
    found = posterior.predict({})["y"]
    assert posterior["theta"].shape < 1
    assert (found.mean[0], found.standard_deviation[0]) == (0.5, np.inf)


def test_point_masses_predict_as_known_values():
    leaf, data, new = regression()
    posterior = cv.Model(leaf).fit(data, point=["w", "tau"])
    found = posterior.predict(new)["y"]
    np.testing.assert_allclose(found.mean, new["X"] @ posterior["w"].value)
    np.testing.assert_allclose(found.standard_deviation, posterior["tau"].value ** -0.5)


def test_what_is_there_of_a_row_weighs_the_components():
    # x says which component a row is of, and the prediction of y is that component's
    z = cv.Categorical("z", [0.5, 0.5], plates=OBS)
    two = cv.Plate("two", 2)
    x = cv.Normal("x", cv.Constant("at", [-1.0, 1.0], plates=two)[z], 1.0, plates=OBS)
    y = cv.Normal("y", cv.Normal("m", 0, 0.01, plates=two)[z], 4.0, plates=OBS)
    columns = {"x": np.repeat([-1.0, 1.0], 6), "y": np.repeat([0.0, 10.0], 6)}
    posterior = cv.Model(x, y).fit(columns, init={"z": np.repeat([0, 1], 6)})
    result = posterior.predict({"x": [-0.3, 2.0]})
    assert list(result) == ["z", "y"]
    second = expit(2 * np.array([-0.3, 2.0]))
    np.testing.assert_allclose(result["z"].probabilities[:, 1], second)
    m = posterior["m"]
    component = m.variance + 0.25
    mean = (1 - second) * m.mean[0] + second * m.mean[1]
    variance = (1 - second) * (component[0] + (m.mean[0] - mean) ** 2)
    variance += second * (component[1] + (m.mean[1] - mean) ** 2)
    np.testing.assert_allclose(result["y"].mean, mean)
    np.testing.assert_allclose(result["y"].standard_deviation, np.sqrt(variance))
    alone = posterior.predict({})["y"]
    np.testing.assert_allclose(alone.mean, [np.mean(m.mean)])


def test_states_of_a_chain_are_told_by_the_leaf_that_is_there():
    state, t = cv.Plate("state", 2), np.repeat([0, 1, 0, 1], 10)
    chain = cv.MarkovChain("z", [0.5, 0.5], np.array([[0.9, 0.1], [0.2, 0.8]]), along=OBS)
    x = cv.Normal("x", cv.Normal("m", 0, 0.01, plates=state)[chain], 1.0, plates=OBS)
    y = cv.Normal("y", cv.Normal("k", 0, 0.01, plates=state)[chain], 1.0, plates=OBS)
    noise = np.random.default_rng(0).normal(size=(2, 40))
    data = {"x": 5 * t + noise[0], "y": -7 * t + noise[1]}
    posterior = cv.Model(x, y).fit(data, init={"z": t})
    result = posterior.predict({"x": data["x"]})
    expected = result["z"].probabilities @ posterior["k"].mean
    np.testing.assert_allclose(result["y"].mean, expected)
    assert np.corrcoef(result["y"].mean, data["y"])[0, 1] > 0.9
    with pytest.raises(cv.ModelError, match="state 'z' of each row depends on its neighbours"):
        posterior.predict({})


def test_known_labels_choose_the_component():
    leaf, data, _ = mixture()
    posterior = cv.Model(leaf).fit(data, init={"z": LABELS})
    np.testing.assert_allclose(posterior.predict({"z": [2, 0]})["y"].mean, posterior["m"].mean[[2, 0]])


def test_labels_off_their_support_are_refused():
    leaf, data, _ = mixture()
    posterior = cv.Model(leaf).fit(data, init={"z": LABELS})
    with pytest.raises(cv.DataError, match="'z', a Categorical, must hold whole numbers from 0 to 2"):
        posterior.predict({"z": [0, 3]})
    with pytest.raises(cv.DataError, match="'z', a Categorical, must hold whole numbers from 0 to 2"):
        posterior.predict({"z": [3, np.nan]})


def test_rows_with_every_variable_give_local_factors_as_before():
    leaf, data, _ = mixture()
    posterior = cv.Model(leaf).fit(data, init={"z": LABELS})
    predicted, local = posterior.predict(data), posterior.local(data)
    assert list(predicted) == list(local) == ["z"]
    np.testing.assert_array_equal(predicted["z"].probabilities, local["z"].probabilities)


def test_a_row_predicted_alone_is_predicted_as_among_others():
    leaf, data, new = group_intercepts()
    posterior = cv.Model(leaf).fit(data, factors="apart")
    together = posterior.predict(new)["y"]
    for i in range(3):
        alone = posterior.predict({name: np.asarray(value)[[i]] for name, value in new.items()})["y"]
        np.testing.assert_allclose(alone.mean, together.mean[[i]], rtol=1e-12)
        np.testing.assert_allclose(alone.standard_deviation, together.standard_deviation[[i]], rtol=1e-12)


def test_new_groups_are_refused():
    leaf, data, new = group_intercepts()
    posterior = cv.Model(leaf).fit(data, factors="apart")
    with pytest.raises(cv.DataError, match=r"'g', which choose from a plate"):
        posterior.predict({**new, "g": [0, 1, 3]})


@pytest.mark.parametrize(
    ("new", "message"),
    [
        ({"X": [[np.nan, 1.0]]}, r"'X' has a missing value \(NaN\) in row 0"),
        ({}, "the data lack 'X', a known array"),
        ({**NEW, "Z": [1.0]}, "the data have 'Z', but the model has no variable of that name"),
        ({"X": [1.0, 2.0]}, r"'X' must have 2 axes"),
        ({"X": np.ones((3, 4))}, "'X' has rows of length 4"),
    ],
)
def test_impossible_rows_are_refused(new, message):
    leaf, data, _ = regression()
    with pytest.raises((cv.DataError, cv.PlateError), match=message):
        cv.Model(leaf).fit(data).predict(new)


def test_states_of_a_linear_gaussian_chain_depend_on_their_neighbours():
    level = cv.LinearGaussianChain("level", [0.0], [[0.1]], [[1.0]], [[4.0]], along=OBS)
    posterior = cv.Model(cv.Normal("y", cv.dot([1.0], level), tau(), plates=OBS)).fit({"y": Y})
    with pytest.raises(cv.ModelError, match=r"state 'level' of each row depends on its neighbours"):
        posterior.predict({})


def test_a_product_of_variables_in_a_link_is_refused():
    a = cv.Normal("a", 0, 1)
    leaf = cv.Bernoulli("y", cv.probit(a * cv.dot(DESIGN, weights())), plates=OBS)
    posterior = cv.Model(leaf).fit({"X": X, "y": (Y > 0) * 1})
    with pytest.raises(
        cv.ModelError, match=r"product of 'a' and 'w'.*posterior\.predictive\(data=\.\.\., n_draws"
    ):
        posterior.predict(NEW)


def test_a_local_variable_whose_forecast_has_no_variance_is_refused():
    t = cv.Normal("t", cv.Normal("m", 0, 1), cv.Gamma("s", 0.1, 0.1), plates=OBS)
    posterior = cv.Model(cv.Normal("y", t, 1.0, plates=OBS)).fit({"y": [1.0]})
    assert posterior["s"].shape < 1
    with pytest.raises(cv.ModelError, match=r"'t' has no observation.*posterior\.predictive"):
        posterior.predict({})


def test_a_prediction_prints_short():
    leaf, data, _ = regression()
    found = cv.Model(leaf).fit(data).predict({"X": np.ones((1000, 2))})["y"]
    assert len(repr(found)) < 150
    assert repr(found).startswith("Prediction(mean=[")


def test_predictive_says_where_arrays_go():
    leaf, data, new = regression()
    posterior = cv.Model(leaf).fit(data, factors="apart")
    with pytest.raises(cv.ParameterError, match=r"known arrays of the new rows go to data=.*data=\{'X'"):
        posterior.predictive(new)
    with pytest.raises(cv.DataError, match=r"'y' is a variable, which is drawn anew: leave it out"):
        posterior.predictive(data={**new, "y": [1.0, 2.0, 3.0]})


def test_a_variable_that_is_not_predicted_says_why():
    model = cv.models.normal_wishart_mixture(2, 2)
    posterior = model.fit({"x": np.random.default_rng(0).normal(size=(20, 2))}, seed=0)
    found = posterior.predict({"x": [[2.0, 1.0]]})
    with pytest.raises(
        KeyError, match=r"'x' is in the data, so it is not predicted.*Leave 'x' out.*these data predict 'z'"
    ):
        found["x"]
    with pytest.raises(KeyError, match=r"posterior\['weights'\]"):
        found["weights"]
    with pytest.raises(KeyError, match="'y' is not predicted of these rows; there are 'z'"):
        found["y"]
    assert found.get("x") is None
    assert posterior.predict({})["x"].mean.shape == (1, 2)
    assert list(pickle.loads(pickle.dumps(found))) == ["z"]
