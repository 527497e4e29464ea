"""What cannot be stated with a linear Gaussian chain, or fitted, is refused with the reason."""

import numpy as np
import pytest

import caviar as cv

TIME, ROW = cv.Plate("time"), cv.Plate("row", 2)
ROWS = cv.MultivariateNormal("A", np.zeros(2), np.eye(2), plates=ROW)


def chain(**arguments) -> cv.LinearGaussianChain:
    stated = {
        "mean": [0.0, 0.0],
        "precision": np.eye(2),
        "transition": np.eye(2),
        "noise_precision": np.eye(2),
        "along": TIME,
    }
    return cv.LinearGaussianChain("s", **{**stated, **arguments})


def model(s: cv.LinearGaussianChain) -> cv.Model:
    return cv.Model(cv.Normal("x", cv.dot([1.0, 0.0], s), 1.0, plates=TIME))


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({"mean": np.zeros(3)}, cv.PlateError, "dimension 3|length 2"),
        ({"mean": cv.Normal("m", 0, 1)}, cv.ConjugacyError, "Use a MultivariateNormal"),
        (
            {"mean": cv.MultivariateNormal("m", np.zeros(2), np.eye(2), plates=TIME)},
            cv.PlateError,
            "the same for all sequences",
        ),
        ({"precision": 0}, cv.ModelError, "must be positive definite; got 0"),
        ({"noise_precision": np.zeros((2, 2))}, cv.ModelError, "must be positive definite; got 0"),
        ({"noise_precision": -np.eye(2)}, cv.ModelError, "must be positive definite"),
        ({"noise_precision": cv.Gamma("q", 1, 1)}, cv.ConjugacyError, "Use a Wishart"),
        (
            {"noise_precision": cv.diagonal(cv.Gamma("q", 1, 1, plates=cv.Plate("r", 3)))},
            cv.PlateError,
            "size 3",
        ),
        ({"transition": None}, cv.ModelError, "is missing: give an array"),
        ({"transition": np.ones((2, 3))}, cv.PlateError, "must be a square matrix, not of shape \\(2, 3\\)"),
        ({"transition": np.eye(3)}, cv.PlateError, "has length 3"),
        ({"transition": np.full((2, 2), np.inf)}, cv.ModelError, "must be finite"),
        (
            {"transition": cv.Wishart("w", 3, np.eye(2))},
            cv.ConjugacyError,
            "a MultivariateNormal with a plate",
        ),
        (
            {"transition": cv.MultivariateNormal("a", np.zeros(2), np.eye(2))},
            cv.PlateError,
            "needs one plate",
        ),
        (
            {"transition": cv.MultivariateNormal("a", np.zeros(2), np.eye(2), plates=cv.Plate("r", 3))},
            cv.PlateError,
            "3 x 3 matrix|size 2",
        ),
        (
            {"transition": ROWS, "noise_precision": cv.Wishart("q", 3, np.eye(2))},
            cv.ConjugacyError,
            "diagonal",
        ),
        ({"transition": ROWS, "noise_precision": np.ones((2, 2)) + np.eye(2)}, cv.ConjugacyError, "diagonal"),
        (
            {"transition": ROWS, "noise_precision": cv.Gamma("q", 1, 1, plates=ROW)},
            cv.ConjugacyError,
            "diagonal\\(q\\)",
        ),
        ({"transition": ROWS, "noise_precision": np.zeros((2, 2))}, cv.ModelError, "positive"),
        ({"along": (TIME, ROW)}, cv.PlateError, "runs along one plate"),
        ({"starts": [0, 1, 0]}, cv.ModelError, "as in the first row"),
    ],
)
def test_impossible_statements(arguments, error, says):
    with pytest.raises(error, match=says):
        chain(**arguments)


def test_a_state_that_is_observed():
    with pytest.raises(cv.DataError, match="LinearGaussianChain 's' is hidden"):
        model(chain()).fit({"x": [0.0, 1.0], "s": np.zeros((2, 2))})


def test_weights_of_steps():
    with pytest.raises(cv.DataError, match="sample_weight is impossible with LinearGaussianChain 's'"):
        model(chain()).fit({"x": [0.0, 1.0]}, sample_weight=[1.0, 2.0])


def test_another_data_plate():
    column = cv.Plate("column", 2)
    x = cv.Normal("x", cv.dot([1.0, 0.0], chain()), 1.0, plates=(TIME, column))
    with pytest.raises(cv.ModelError, match="runs along plate 'time', but the data plate is 'column'"):
        cv.Model(x).fit({"x": np.zeros((3, 2))}, data_plate="column")


def test_the_same_variable_as_transition_and_loadings():
    x = cv.Normal("x", cv.dot(ROWS, chain(transition=ROWS)), 1.0, plates=(TIME, ROW))
    assert cv.Model(x).fit({"x": np.eye(2)}, seed=0, max_iter=3).elbo < 0


def test_one_predictor_cannot_hold_the_states_twice():
    s = chain()
    with pytest.raises(cv.ConjugacyError):
        cv.Model(cv.Normal("x", cv.dot(s, s), 1.0, plates=TIME))


def test_a_label_chooses_what_the_states_are_seen_through():
    component = cv.Plate("component", 2)
    z = cv.Categorical("z", [0.5, 0.5], plates=TIME)
    w = cv.MultivariateNormal("w", np.zeros(2), np.eye(2), plates=component)
    x = cv.Normal("x", cv.dot(w[z], chain()), 1.0, plates=TIME)
    data = {"x": [0.0, 1.0, 3.0, -2.0]}
    posterior = cv.Model(x).fit(data, seed=0, tol=1e-12, max_iter=2000)
    assert np.all(np.diff(posterior.elbo_trace) > -1e-9)
    assert posterior.elbo_at({}, data) == pytest.approx(posterior.elbo, abs=1e-6)


def test_rows_have_no_predictive_density_but_draws():
    posterior = model(chain()).fit({"x": [0.0, 1.0, 0.5]})
    with pytest.raises(cv.ModelError, match="the rows of 's' depend on their neighbours"):
        posterior.log_predictive({"x": [0.0, 1.0, 0.5]})
    assert posterior.predictive({"time": 7}, n_draws=2, seed=0)["x"].shape == (2, 7)


@pytest.mark.parametrize("in_order", [("mode",), ("entry", "mode")])
def test_transitions_that_a_label_chooses_need_their_rows_last(in_order):
    plates = {"mode": cv.Plate("mode", 3), "entry": cv.Plate("entry", 2)}
    own = tuple(plates[name] for name in in_order)
    transition = cv.MultivariateNormal("A", np.zeros(2), np.eye(2), plates=own)
    z = cv.Categorical("z", np.full(3, 1 / 3), plates=TIME)
    with pytest.raises(cv.PlateError, match=r"needs a plate of size 2.*the last plate of 'A', behind"):
        chain(transition=transition[z])
    right = cv.MultivariateNormal("A", np.zeros(2), np.eye(2), plates=(plates["mode"], plates["entry"]))
    assert chain(transition=right[z]).dimension == 2
