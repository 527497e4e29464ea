"""What cannot be stated with a Markov chain, or fitted, is refused with the reason."""

import numpy as np
import pytest

import caviar as cv

TIME, STATE = cv.Plate("time"), cv.Plate("state", 2)


def chain(**arguments) -> cv.MarkovChain:
    stated = {"initial": [0.5, 0.5], "transition": [[0.9, 0.1], [0.2, 0.8]], "along": TIME}
    return cv.MarkovChain("s", **{**stated, **arguments})


def model(s: cv.MarkovChain) -> cv.Model:
    return cv.Model(cv.Normal("x", cv.Constant("mean", [0.0, 3.0], plates=STATE)[s], 1.0, plates=TIME))


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({"transition": np.eye(3)}, cv.PlateError, "must be a 2 x 2 matrix, not of shape \\(3, 3\\)"),
        ({"transition": [[0.9, 0.2], [0.2, 0.8]]}, cv.ModelError, "sum to one"),
        ({"transition": None}, cv.ModelError, "'transition' of MarkovChain 's' must be an array"),
        ({"transition": cv.Dirichlet("t", np.ones(2))}, cv.PlateError, "no plate that 's' could choose from"),
        (
            {"transition": cv.Dirichlet("t", np.ones(2), plates=cv.Plate("g", 3))},
            cv.PlateError,
            "'s' has 2 categories, but in 't' plate 'g' has 3",
        ),
        (
            {"transition": cv.Dirichlet("t", np.ones(3), plates=STATE)},
            cv.PlateError,
            "'transition' of MarkovChain 's' has length 3",
        ),
        ({"transition": cv.Normal("t", 0, 1, plates=STATE)}, cv.ConjugacyError, "Use a Dirichlet"),
        ({"initial": [0.5, 0.6]}, cv.ModelError, "sum to one"),
        ({"initial": cv.Dirichlet("p", np.ones(2), plates=TIME)}, cv.PlateError, "must be one vector"),
        ({"along": (TIME, STATE)}, cv.PlateError, "runs along one plate"),
        ({"starts": [0, 1, 0]}, cv.ModelError, "as in the first row"),
        ({"starts": [1, 2, 0]}, cv.ModelError, "1 where a sequence begins"),
    ],
)
def test_impossible_statements(arguments, error, says):
    with pytest.raises(error, match=says):
        chain(**arguments)


def test_starts_of_another_length():
    with pytest.raises(cv.PlateError, match="plate 'time' has"):
        model(chain(starts=[1, 0, 0])).fit({"x": [0.0, 1.0]})


@pytest.mark.parametrize("starts", [[0, 0, 0], [0, 1, 0], [1, 3, 0]])
def test_starts_that_came_with_the_data(starts):
    with pytest.raises(cv.DataError, match="1 where a sequence begins"):
        model(chain(starts=cv.Data("starts", plates=TIME))).fit({"x": [0.0, 1.0, 2.0], "starts": starts})


def test_weights_of_steps():
    with pytest.raises(cv.DataError, match="must be the same in all rows of a sequence of MarkovChain 's'"):
        model(chain()).fit({"x": [0.0, 1.0]}, sample_weight=[1.0, 2.0])


def test_states_that_are_given_as_data():
    with pytest.raises(cv.DataError, match="'s' is hidden"):
        model(chain()).fit({"x": [0.0, 1.0], "s": [0, 1]})


def test_another_data_plate():
    column = cv.Plate("column", 2)
    mean = cv.Constant("mean", [0.0, 3.0], plates=STATE)
    x = cv.Normal("x", mean[chain()], 1.0, plates=(TIME, column))
    with pytest.raises(cv.ModelError, match="runs along plate 'time', but the data plate is 'column'"):
        cv.Model(x).fit({"x": np.zeros((3, 2))}, data_plate="column")


def test_given_paths_have_no_objective():
    data = {"x": [0.0, 1.0]}
    posterior = model(chain()).fit(data)
    with pytest.raises(cv.ModelError, match="only for Categoricals"):
        posterior.elbo_at(posterior.local(data), data)
