"""Draws from the prior follow the stated distributions, through every kind of parent; errors name what is missing."""

import numpy as np
import pytest
from invariants.registry import CASES
from scipy import stats

import caviar as cv

MANY = 20_000
SCALE = np.array([[1.5, 0.3], [0.3, 0.8]])


def _simulated(variable, **arguments):
    return cv.Model(variable).simulate(0, **arguments)[variable.name]


def _assert_mean(draws, mean, variance):
    """Check the mean of draws along the first axis within five standard errors."""
    draws = np.asarray(draws, dtype=float)
    error = np.sqrt(np.asarray(variance) / len(draws))
    assert np.all(np.abs(draws.mean(axis=0) - mean) < 5 * error)


many = cv.Plate("many", MANY)

LAWS = {
    "normal": (cv.Normal("v", 1.5, 4.0, plates=many), stats.norm(1.5, 0.5)),
    "gamma": (cv.Gamma("v", 3.0, 2.0, plates=many), stats.gamma(3.0, scale=0.5)),
    "beta": (cv.Beta("v", 2.0, 3.0, plates=many), stats.beta(2.0, 3.0)),
    # every link adds its own spread: x | m ~ N(m, 1/2), m ~ N(1, 1/4)
    "normal-under-normal": (
        cv.Normal("v", cv.Normal("m", 1.0, 4.0, plates=many), 2.0, plates=many),
        stats.norm(1.0, np.sqrt(0.75)),
    ),
    # precision ~ Gamma(a, b) makes a Student-t with 2a degrees of freedom and scale sqrt(b / a)
    "normal-under-gamma": (
        cv.Normal("v", 1.0, cv.Gamma("tau", 3.0, 2.0, plates=many), plates=many),
        stats.t(6.0, 1.0, np.sqrt(2 / 3)),
    ),
    "normal-under-joint": (
        cv.Normal("v", cv.NormalGamma("theta", 1.0, 0.5, 3.0, 2.0, plates=many), plates=many),
        stats.t(6.0, 1.0, np.sqrt(2 / 3 * (1 + 1 / 0.5))),
    ),
    # a Gamma rate that is itself Gamma: a beta prime distribution
    "gamma-under-gamma": (
        cv.Gamma("v", 2.0, cv.Gamma("rate", 3.0, 1.5, plates=many), plates=many),
        stats.betaprime(2.0, 3.0, scale=1.5),
    ),
}


@pytest.mark.parametrize("name", LAWS)
def test_draws_follow_the_marginal_law(name):
    """The draws of a variable, its parents drawn too, pass a Kolmogorov-Smirnov test against their marginal law."""
    variable, law = LAWS[name]
    assert stats.kstest(_simulated(variable), law.cdf).pvalue > 1e-3


def test_vectors_and_matrices_have_their_moments():
    precision = np.linalg.inv(SCALE)
    x = _simulated(cv.MultivariateNormal("v", [1.0, -2.0], precision, plates=many))
    _assert_mean(x, [1.0, -2.0], np.diag(SCALE))
    np.testing.assert_allclose(np.cov(x.T), SCALE, atol=0.06)
    w = _simulated(cv.Wishart("v", 5.0, SCALE, plates=many))
    mean = 5.0 * precision
    _assert_mean(w, mean, 5.0 * (precision**2 + np.outer(np.diag(precision), np.diag(precision))))
    p = _simulated(cv.Dirichlet("v", [1.0, 2.0, 5.0], plates=many))
    _assert_mean(p, np.array([1, 2, 5]) / 8, stats.dirichlet([1.0, 2.0, 5.0]).var())


def test_joint_vectors_have_the_moments_of_a_student_t():
    """Under a Normal-Wishart theta, x | theta: the marginal covariance is B (1 + 1/k) / (df - D - 1)."""
    theta = cv.NormalWishart("theta", [1.0, -2.0], 2.0, 9.0, SCALE, plates=many)
    model = cv.Model(cv.MultivariateNormal("x", theta, plates=many))
    draw = model.simulate(1)
    covariance = SCALE * 1.5 / 6.0
    _assert_mean(draw["x"], [1.0, -2.0], np.diag(covariance))
    np.testing.assert_allclose(np.cov(draw["x"].T), covariance, rtol=0.1, atol=0.01)
    assert draw["theta"].mean.shape == (MANY, 2)
    assert draw["theta"].precision.shape == (MANY, 2, 2)


def test_labels_and_answers_have_their_probabilities():
    z = cv.Model(cv.Categorical("z", [0.2, 0.5, 0.3], plates=many)).simulate(2)["z"]
    _assert_mean(np.eye(3)[z], [0.2, 0.5, 0.3], np.array([0.16, 0.25, 0.21]))
    assert z.dtype.kind == "i"
    x = cv.Model(cv.Bernoulli("x", cv.Beta("p", 2.0, 6.0, plates=many), plates=many)).simulate(3)["x"]
    _assert_mean(x, 0.25, 0.25 * 0.75)


def test_a_gate_chooses_the_parents_of_each_row():
    """Given z = k, the rows of x have the mean and spread of component k, along the plates of x in any order."""
    obs, component, feature = cv.Plate("obs"), cv.Plate("component", 3), cv.Plate("feature", 2)
    mean = cv.Constant("mean", [[0.0, 100.0], [10.0, 110.0], [20.0, 120.0]], plates=(component, feature))
    tau = cv.Constant("tau", [1.0, 4.0, 100.0], plates=component)
    z = cv.Categorical("z", [0.2, 0.3, 0.5], plates=obs)
    draw = cv.Model(cv.Normal("x", mean[z], tau[z], plates=(feature, obs))).simulate(4, sizes={"obs": 9000})
    assert draw["x"].shape == (2, 9000)
    for k, sd in enumerate((1.0, 0.5, 0.1)):
        rows = draw["x"][:, draw["z"] == k]
        _assert_mean(rows.T, mean.value[k], sd**2)
        np.testing.assert_allclose(rows.std(axis=1), sd, rtol=0.1)


def test_joint_factors_are_chosen_by_a_gate_too():
    component, obs = cv.Plate("component", 2), cv.Plate("obs")
    theta = cv.NormalGamma("theta", [-50.0, 50.0], 1.0, 20.0, 20.0, plates=component)
    z = cv.Categorical("z", [0.5, 0.5], plates=obs)
    draw = cv.Model(cv.Normal("x", theta[z], plates=obs)).simulate(5, sizes={"obs": 2000})
    np.testing.assert_array_equal(draw["x"] > 0, draw["z"] == 1)
    for k in range(2):
        rows = draw["x"][draw["z"] == k]
        _assert_mean(rows, draw["theta"].mean[k], 1 / draw["theta"].precision[k])


def test_known_arrays_come_with_the_data_and_settle_their_plate():
    obs = cv.Plate("obs")
    model = cv.Model(cv.Normal("x", 0.0, cv.Data("noise", plates=obs), plates=obs))
    noise = np.repeat([1e-6, 1e6], 500)
    x = model.simulate(6, data={"noise": noise})["x"]
    assert x.shape == (1000,)
    assert np.abs(x[500:]).max() < 1 < np.abs(x[:500]).mean()


def test_given_values_are_held():
    obs = cv.Plate("obs")
    model = cv.Model(cv.Normal("x", cv.NormalGamma("theta", 0.0, 1.0, 2.0, 2.0), plates=obs))
    draw = model.simulate(7, sizes={"obs": 4000}, given={"theta": (np.array(1e3), np.array(4.0))})
    _assert_mean(draw["x"], 1e3, 0.25)
    assert draw["theta"].mean == 1e3


@pytest.mark.thinned(3)
@pytest.mark.parametrize("name", CASES)
def test_every_model_simulates_values_that_it_can_be_fitted_to(name):
    """Shapes are those that a fit takes, the seed decides every bit, and the log joint density there is finite."""
    model, data = CASES[name].state(), CASES[name].draw(np.random.default_rng(0), 12)
    known = {key: values for key, values in data.items() if key not in model.variables}
    first, again, other = (model.simulate(s, sizes={"obs": 12}, data=known) for s in (1, 1, 2))
    assert set(first) == set(model.variables)
    for key in first:
        for a, b in zip(_parts(first[key]), _parts(again[key]), strict=True):
            np.testing.assert_array_equal(a, b)
    assert not np.array_equal(first["x"], other["x"])
    assert first["x"].shape == data["x"].shape
    assert np.isfinite(model.log_joint({**first, **known}))
    assert np.isfinite(CASES[name].fit({"x": first["x"], **known}, max_iter=2).elbo)


def _parts(value):
    return value if isinstance(value, tuple) else (value,)


def test_the_log_joint_is_the_sum_of_the_densities():
    """Against SciPy, in a model with a gate, a joint parent and a flat prior."""
    obs, component = cv.Plate("obs"), cv.Plate("component", 2)
    theta = cv.NormalGamma("theta", 1.0, 0.5, 3.0, 2.0, plates=component)
    z = cv.Categorical("z", [0.3, 0.7], plates=obs)
    shift = cv.Normal("shift", 0.0, 0.0)
    model = cv.Model(cv.Normal("x", theta[z], plates=obs), cv.Normal("y", shift, 4.0))
    mean, tau = np.array([0.0, 2.0]), np.array([1.0, 3.0])
    x, labels = np.array([0.1, 1.0, 2.5]), np.array([0, 1, 1])
    values = {"theta": (mean, tau), "z": labels, "x": x, "shift": 5.0, "y": 5.5}
    expected = (
        stats.gamma(3.0, scale=0.5).logpdf(tau).sum()
        + stats.norm(1.0, 1 / np.sqrt(0.5 * tau)).logpdf(mean).sum()
        + np.log([0.3, 0.7])[labels].sum()
        + stats.norm(mean[labels], 1 / np.sqrt(tau[labels])).logpdf(x).sum()
        + stats.norm(5.0, 0.5).logpdf(5.5)
    )
    assert model.log_joint(values) == pytest.approx(expected, rel=1e-12)
    with pytest.raises(cv.DataError, match="add 'y'"):
        model.log_joint({name: value for name, value in values.items() if name != "y"})


@pytest.mark.slow
def test_the_parts_of_a_joint_factor_are_those_of_its_value():
    """Against SciPy: coefficients and precision of each group in a predictor, times known relative precisions."""
    obs, group = cv.Plate("obs"), cv.Plate("group", 2)
    prior = np.array([[2.0, 0.5], [0.5, 1.0]])
    theta = cv.MultivariateNormalGamma("theta", np.zeros(2), prior, 3.0, 2.0, plates=group)
    of = cv.Data("of", plates=obs)
    mean = 1.0 + cv.dot(cv.Data("X", plates=obs), theta[of].mean)
    model = cv.Model(cv.Normal("y", mean, cv.Data("noise", plates=obs) * theta.precision[of], plates=obs))
    rng = np.random.default_rng(0)
    known = {"X": rng.normal(size=(3, 2)), "of": np.array([1, 0, 1]), "noise": rng.gamma(2, 1, 3)}
    w, tau = rng.normal(size=(2, 2)), np.array([0.5, 3.0])
    y = rng.normal(size=3)
    expected = stats.gamma(3.0, scale=0.5).logpdf(tau).sum()
    expected += sum(
        stats.multivariate_normal(np.zeros(2), np.linalg.inv(tau[g] * prior)).logpdf(w[g]) for g in range(2)
    )
    location = 1.0 + (known["X"] * w[known["of"]]).sum(axis=1)
    spread = (known["noise"] * tau[known["of"]]) ** -0.5
    expected += stats.norm(location, spread).logpdf(y).sum()
    assert model.log_joint({"theta": (w, tau), "y": y, **known}) == pytest.approx(expected, rel=1e-12)
    drawn = np.array([model.simulate(s, data=known, given={"theta": (w, tau)})["y"] for s in range(2000)])
    np.testing.assert_allclose(drawn.mean(axis=0), location, atol=5 * spread.max() / np.sqrt(2000))
    np.testing.assert_allclose(drawn.std(axis=0), spread, rtol=0.1)
    with pytest.raises(cv.ParameterError, match=r"'theta', a MultivariateNormalGamma, is a pair"):
        model.simulate(0, data=known, given={"theta": (w, np.ones((2, 2, 2)))})


def test_errors_name_what_is_missing():
    obs = cv.Plate("obs")
    model = cv.Model(cv.Normal("x", cv.Normal("m", 0.0, 1.0), 1.0, plates=obs))
    with pytest.raises(cv.PlateError, match=r"plate 'obs' of 'x' is unknown; give it: sizes=\{'obs'"):
        model.simulate(0)
    with pytest.raises(cv.PlateError, match="names plate 'rows', but the model has 'obs'"):
        model.simulate(0, sizes={"rows": 3})
    with pytest.raises(cv.PlateError, match=r"plate 'obs' has size 4 in 'x' but 3 in sizes="):
        model.simulate(0, sizes={"obs": 3}, given={"x": np.zeros(4)})
    with pytest.raises(cv.ParameterError, match="size of plate 'obs' must be a positive whole number"):
        model.simulate(0, sizes={"obs": 0})
    with pytest.raises(cv.DataError, match=r"got 'x'\. Values of a variable are held fixed with given="):
        model.simulate(0, data={"x": np.zeros(3)})
    with pytest.raises(cv.ParameterError, match="names 'mu', which is not a variable"):
        model.simulate(0, given={"mu": 0.0})
    with pytest.raises(cv.PlateError, match="'x' must have 1 axis"):
        model.simulate(0, given={"x": 0.0})
    with pytest.raises(cv.ParameterError, match="seed is None"):
        model.simulate("a", sizes={"obs": 2})
    known = cv.Model(cv.Normal("x", 0.0, cv.Data("noise", plates=obs), plates=obs))
    with pytest.raises(cv.DataError, match="the data lack 'noise'"):
        known.simulate(0, sizes={"obs": 2})
    joint = cv.Model(cv.Normal("x", cv.NormalGamma("theta", 0.0, 1.0, 1.0, 1.0), plates=obs))
    with pytest.raises(cv.ParameterError, match=r"'theta', a NormalGamma, is a pair \(mean, precision\)"):
        joint.simulate(0, sizes={"obs": 2}, given={"theta": 1.0})


FLAT = {
    "Normal": lambda: cv.Normal("v", 0, 0),
    "MultivariateNormal": lambda: cv.MultivariateNormal("v", np.zeros(2), 0),
    "Gamma": lambda: cv.Gamma("v", 1, 0),
    "Wishart": lambda: cv.Wishart("v", 3, np.zeros((2, 2))),
    "NormalGamma": lambda: cv.NormalGamma("v", 0, 0, 0.5, 0),
    "NormalGamma of a vector": lambda: cv.NormalGamma("v", np.zeros(2), np.zeros((2, 2)), 0, 0),
    "NormalWishart": lambda: cv.NormalWishart("v", np.zeros(2), 0, 2, np.zeros((2, 2))),
}


@pytest.mark.parametrize("name", FLAT)
def test_an_improper_prior_is_named(name):
    with pytest.raises(cv.ImproperError, match="'v' has no proper distribution"):
        cv.Model(FLAT[name]()).simulate(0)


def test_a_restricted_matrix_is_not_drawn_as_if_it_were_free():
    with pytest.raises(cv.ModelError, match="'v' is restricted by smallest_variance"):
        cv.Model(cv.Wishart("v", 4, np.eye(2), smallest_variance=0.1)).simulate(0)


def test_given_labels_off_their_support_are_refused():
    """A negative label would choose the last component."""
    model, obs = CASES["known-variance"].state(), np.array([0, -1])
    with pytest.raises(
        cv.ParameterError, match="the given 'z', a Categorical, must hold whole numbers from 0 to 2"
    ):
        model.simulate(0, given={"z": obs})
