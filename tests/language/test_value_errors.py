"""Impossible values, names and data are refused; the message says what was expected and what came."""

import re

import numpy as np
import pytest

import caviar as cv

OBS = cv.Plate("obs")


VALUES = {
    "degrees of freedom": (
        lambda: cv.Wishart("W", 1, np.eye(3)),
        ["'df' of Wishart 'W'", "above D - 1 = 2", "got 1"],
    ),
    "not definite": (
        lambda: cv.Wishart("W", 3, -np.eye(2)),
        ["'inverse_scale' of Wishart 'W' must be positive definite"],
    ),
    "zero, and no flat prior": (
        lambda: cv.Wishart("W", 1.5, np.zeros((2, 2))),
        ["'inverse_scale' of Wishart 'W' is zero", "flat prior", "df=3", "positive definite"],
    ),
    "zero, and no flat joint prior": (
        lambda: cv.NormalWishart("W", np.zeros(2), 1, 2, np.zeros((2, 2))),
        ["'inverse_scale' of NormalWishart 'W' is zero", "df=2, mean_precision=0"],
    ),
    "not symmetric": (lambda: cv.Wishart("W", 3, np.array([[1, 0.5], [0, 1]])), ["must be symmetric"]),
    "precision": (
        lambda: cv.Normal("x", 0.0, -1.0),
        ["'precision' of Normal 'x' must be positive and finite", "-1"],
    ),
    "simplex": (
        lambda: cv.Categorical("z", [0.5, 0.6]),
        ["'probabilities' of Categorical 'z'", "sum to one", "0.6"],
    ),
    "probability": (
        lambda: cv.Bernoulli("y", 1.5),
        ["'probability' of Bernoulli 'y'", "between 0 and 1", "1.5"],
    ),
    "NaN": (lambda: cv.Normal("x", np.nan, 1.0), ["'mean' of Normal 'x' must be finite", "nan"]),
    "text": (lambda: cv.Normal("x", "a", 1.0), ["'mean' of Normal 'x' takes a number", "'a' of type str"]),
    "missing": (lambda: cv.Normal("x", 0.0), ["'precision' of Normal 'x' is missing"]),
    "no leaf": (lambda: cv.Model(), ["at least one observed variable", "Model(x)"]),
    "no variable": (lambda: cv.Model(np.zeros(3)), ["Model takes the observed variables", "array"]),
    "one name twice": (
        lambda: cv.Model(cv.Normal("x", cv.Normal("x", 0, 1), 1.0, plates=OBS)),
        ["two parts of the model are both named 'x'", "rename one"],
    ),
    "an integer index": (
        lambda: cv.Normal("m", 0, 1, plates=cv.Plate("c", 2))[0],
        ["'m' can be indexed by a Categorical variable, as in m[z]", "got 0"],
    ),
    "a hidden label chosen by a hidden label": (
        lambda: cv.Normal("m", 0, 1, plates=cv.Plate("c", 2))[
            cv.Categorical("kind", [0.5, 0.5], plates=cv.Plate("donor", 3))[
                cv.Categorical("z", np.ones(3) / 3)
            ]
        ],
        [
            "got kind[z]. Both labels are hidden: let 'kind' choose",
            "mean[kind]",
            "plates=(donor))",
            "own[z]",
            "cell[ways, z]",
        ],
    ),
    "an index of another family": (
        lambda: cv.Normal("m", 0, 1, plates=cv.Plate("c", 2))[cv.Normal("k", 0, 1)],
        ["indexed by a Categorical variable", "Normal('k')"],
    ),
    "a rate of zero": (
        lambda: cv.Poisson("x", 0.0),
        ["'rate' of Poisson 'x' must be positive and finite", "got 0"],
    ),
    "a stick that is not broken": (
        lambda: cv.StickBreaking("w", 1.0, 1),
        ["'truncation' of StickBreaking 'w' must be a whole number of at least 2", "got 1"],
    ),
    "a stick broken into halves": (lambda: cv.StickBreaking("w", 1.0, 2.5), ["at least 2; got 2.5"]),
    "a concentration below zero": (
        lambda: cv.StickBreaking("w", -1.0, 3),
        ["'concentration' of StickBreaking 'w' must be positive"],
    ),
    "trials in halves": (
        lambda: cv.Multinomial("x", 2.5, [0.5, 0.5]),
        ["'trials' of Multinomial 'x' must hold counts", "got 2.5"],
    ),
    "trials without a plate": (
        lambda: cv.Multinomial("x", [3, 4], [0.5, 0.5]),
        ["'trials' of Multinomial 'x' has shape (2,), more axes than the 0 plates"],
    ),
    "a floor": (
        lambda: cv.Wishart("W", 3, np.eye(2), smallest_variance=-1),
        ["smallest_variance of Wishart 'W'"],
    ),
}


@pytest.mark.parametrize("kind", VALUES)
def test_impossible_value_is_refused(kind):
    """An impossible value in a statement is refused where it is stated."""
    state, facts = VALUES[kind]
    with pytest.raises(cv.ModelError) as caught:
        state()
    for fact in facts:
        assert fact in str(caught.value)


PARAMETERS = {
    "no name": (lambda: cv.Normal(0.0, 1.0, 1.0), ["first argument of Normal is its name", "0.0"]),
    "plate size": (lambda: cv.Plate("a", 0), ["size of plate 'a' must be a positive whole number"]),
    "plate size in halves": (
        lambda: cv.Plate("a", 2.5),
        ["size of plate 'a' must be a positive whole number"],
    ),
    "plate name": (lambda: cv.Plate(3), ["a plate needs a name", "3"]),
}


@pytest.mark.parametrize("kind", PARAMETERS)
def test_impossible_argument_is_refused(kind):
    """A name or a size of the wrong type is refused."""
    state, facts = PARAMETERS[kind]
    with pytest.raises(cv.ParameterError) as caught:
        state()
    for fact in facts:
        assert fact in str(caught.value)


def _vectors(value, **arguments):
    mean = cv.MultivariateNormal("mean", np.zeros(2), np.eye(2))
    model = cv.Model(cv.MultivariateNormal("x", mean, cv.Wishart("W", 3, np.eye(2)), plates=OBS))
    return model.fit(value, **arguments)


def _fit(leaf, value):
    return cv.Model(leaf).fit(value)


ROWS = np.ones((4, 2))
DATA = {
    "lacking": (lambda: _vectors({}), ["the data lack 'x'", "{'x': array"]),
    "unknown": (lambda: _vectors({"x": ROWS, "y": 1}), ["the data have 'y'", "'x', 'mean', 'W'"]),
    "an array": (lambda: _vectors(ROWS), ["data must be a table, or a mapping", "{'x': ...}", "ndarray"]),
    "infinity": (lambda: _vectors({"x": [[1, 2], [1, np.inf]]}), ["'x' has an infinity in row 1"]),
    "text": (lambda: _vectors({"x": [["a", "b"]]}), ["the data of 'x' must be numbers", "'a'"]),
    "complex": (lambda: _vectors({"x": ROWS * 1j}), ["the data of 'x' must be numbers", "complex"]),
    "empty": (lambda: _vectors({"x": np.zeros((0, 2))}), ["the data of 'x' are empty", "(0, 2)"]),
    "ragged": (
        lambda: _vectors({"x": [[1, 2], [1]]}),
        ["the data of 'x' must be one array", "different lengths"],
    ),
    "weights of another length": (
        lambda: _vectors({"x": ROWS}, sample_weight=np.ones(3)),
        ["sample_weight must have shape (4,)", "(3,)"],
    ),
    "a negative weight": (lambda: _vectors({"x": ROWS}, sample_weight=[1, 1, 1, -1]), ["not negative"]),
    "no weight where anything was observed": (
        lambda: _vectors({"x": np.r_[ROWS[:3], [[np.nan] * ROWS.shape[1]]]}, sample_weight=[0, 0, 0, 1]),
        ["all values are missing (NaN) in the rows whose weight is not zero"],
    ),
    "no weight": (lambda: _vectors({"x": ROWS}, sample_weight=np.zeros(4)), ["every sample_weight is zero"]),
    "a label too large": (
        lambda: _fit(cv.Categorical("y", cv.Dirichlet("p", np.ones(2)), plates=OBS), {"y": [0, 2]}),
        ["'y', a Categorical, must hold whole numbers from 0 to 1"],
    ),
    "a label in halves": (
        lambda: _fit(cv.Categorical("y", cv.Dirichlet("p", np.ones(2)), plates=OBS), {"y": [0, 0.5]}),
        ["'y', a Categorical, must hold whole numbers"],
    ),
    "neither yes nor no": (
        lambda: _fit(cv.Bernoulli("y", cv.Beta("p", 1, 1), plates=OBS), {"y": [0, 2]}),
        ["'y', a Bernoulli, must hold only 0 and 1"],
    ),
    "a count in halves": (
        lambda: _fit(cv.Poisson("y", cv.Gamma("r", 1, 1), plates=OBS), {"y": [3, 0.5]}),
        ["'y', a Poisson, must hold counts, whole numbers from 0; row 1 has 0.5"],
    ),
    "a count below zero": (
        lambda: _fit(cv.Poisson("y", cv.Gamma("r", 1, 1), plates=OBS), {"y": [-1, 4]}),
        ["'y', a Poisson, must hold counts, whole numbers from 0; row 0 has -1"],
    ),
    "a single count below zero": (
        lambda: _fit(cv.Poisson("y", cv.Gamma("r", 1, 1)), {"y": -2}),
        ["whole numbers from 0; got -2"],
    ),
    "counts that are too many": (
        lambda: _fit(
            cv.Multinomial("y", 4, cv.Dirichlet("p", np.ones(2)), plates=OBS), {"y": [[1, 3], [2, 3]]}
        ),
        ["'y', a Multinomial, must hold counts that sum to its trials, 4; row 1 sums to 5"],
    ),
    "counts of which one is negative": (
        lambda: _fit(
            cv.Multinomial("y", 4, cv.Dirichlet("p", np.ones(2)), plates=OBS), {"y": [[1, 3], [5, -1]]}
        ),
        ["'y', a Multinomial, must hold counts, whole numbers from 0; row 1 has -1"],
    ),
    "trials of another length": (
        lambda: _fit(
            cv.Multinomial("y", [4, 4, 4], cv.Dirichlet("p", np.ones(2)), plates=OBS), {"y": [[1, 3], [2, 2]]}
        ),
        ["'y', a Multinomial, has trials of shape (3,), which do not fit data of shape (2, 2)"],
    ),
    "not positive": (
        lambda: _fit(cv.Gamma("y", 1.0, cv.Gamma("b", 1, 1), plates=OBS), {"y": [0.0, 2.0]}),
        ["'y', a Gamma, must be positive", "its smallest value is 0"],
    ),
    "a flat density of data": (
        lambda: _fit(cv.Normal("y", cv.Normal("m", 0, 1), 0, plates=OBS), {"y": [0.0, 2.0]}),
        ["'y' has data", "flat, improper density"],
    ),
    "a known precision below zero": (
        lambda: _fit(
            cv.Normal("y", cv.Normal("m", 0, 1), cv.Data("noise", plates=OBS), plates=OBS),
            {"y": [0.0, 2.0], "noise": [1.0, -1.0]},
        ),
        ["the data of 'noise', 'precision' of Normal 'y', must be positive"],
    ),
    "a known precision of zero": (
        lambda: _fit(
            cv.Normal("y", cv.Normal("m", 0, 1), cv.Data("noise", plates=OBS), plates=OBS),
            {"y": [0.0, 2.0], "noise": [0.0, 0.0]},
        ),
        ["the data of 'noise', 'precision' of Normal 'y', must not be zero"],
    ),
    "a known matrix that is not definite": (
        lambda: _fit(
            cv.MultivariateNormal("y", _mean(), cv.Data("noise", plates=OBS), plates=OBS),
            {"y": ROWS, "noise": np.tile(-np.eye(2), (4, 1, 1))},
        ),
        ["the data of 'noise', 'precision' of MultivariateNormal 'y', must be positive definite"],
    ),
}


def _mean():
    return cv.MultivariateNormal("m", np.zeros(2), np.eye(2))


@pytest.mark.parametrize("kind", DATA)
def test_impossible_data_are_refused(kind):
    """Data that no distribution of the model can have produced are refused, with their name and the place."""
    fit, facts = DATA[kind]
    with pytest.raises(cv.DataError) as caught:
        fit()
    for fact in facts:
        assert fact in str(caught.value)


def test_posterior_says_what_it_has():
    """A wrong name of a factor, and the name of a local variable, are answered with what there is."""
    mean = cv.Normal("mean", 0, 1, plates=cv.Plate("component", 2))
    z = cv.Categorical("z", [0.5, 0.5], plates=OBS)
    data = {"x": np.array([-1.0, 1.0])}
    posterior = cv.Model(cv.Normal("x", mean[z], 1.0, plates=OBS)).fit(data, seed=0)
    with pytest.raises(cv.ModelError, match="the posterior has no factor 'men'; it has 'mean'"):
        posterior["men"]
    with pytest.raises(cv.ModelError, match=r"'z' has a value for each row; posterior.local\(data\)\['z'\]"):
        posterior["z"]
    with pytest.raises(cv.ModelError, match="no latent variable 'q'; it has mean, z"):
        posterior.elbo_at({"q": 1}, data)
    with pytest.raises(cv.ModelError, match="factors= names 'y', which is not a local variable; those are z"):
        cv.Model(cv.Normal("x", mean[z], 1.0, plates=OBS)).fit(data, factors=[("z", "y")])


@pytest.mark.parametrize(
    ("factors", "point", "fact"),
    [
        ([["q"]], [], "'q', which is not a local variable; this model has none"),
        ("ab", [], "factors must be a list of groups of names"),
        ([["a"]], [], "('a',); a factor is shared by two variables or more"),
        ([["a", "q"]], [], "the model has no hidden variable 'q' that all rows share; those are "),
        ([["a", "b"], ["b", "tau"]], [], "'b' more than once"),
        ([["a", "tau"]], [], "'tau' is a Gamma; only Normal and MultivariateNormal"),
        ([["a", "b"]], ["b"], "'b', which is a point mass"),
    ],
)
def test_groups_of_globals_that_cannot_share_a_factor_are_refused(factors, point, fact):
    """What cannot be joined is refused also where no variable is local; `factors=` was accepted and ignored."""
    a = cv.Normal("a", 0.0, 1.0, plates=cv.Plate("first", 2))[cv.Data("g", plates=OBS)]
    b = cv.Normal("b", 0.0, 1.0, plates=cv.Plate("second", 2))[cv.Data("h", plates=OBS)]
    model = cv.Model(cv.Normal("x", a + b, cv.Gamma("tau", 1.0, 1.0), plates=OBS))
    data = {"x": np.array([0.3, 1.2, -0.4]), "g": [0, 1, 1], "h": [0, 0, 1]}
    with pytest.raises(cv.CaviarError, match=re.escape(fact)):
        model.fit(data, factors=factors, point=point)
    assert np.isfinite(model.fit(data, factors=[]).elbo)
