"""A precision that is tied along a plate: what may be stated, and what the refusals say."""

import re

import numpy as np
import pytest

import caviar as cv

component, feature, obs = cv.Plate("component", 3), cv.Plate("feature", 2), cv.Plate("obs")


def wishart(**changed):
    arguments = {"df": 3.0, "inverse_scale": np.eye(2), "plates": component, "tied": component, **changed}
    return cv.NormalWishart("theta", np.zeros(2), 0.1, **arguments)


def gamma(**changed):
    arguments = {"shape": 1.5, "rate": 1.0, "plates": (component, feature), "tied": feature, **changed}
    return cv.NormalGamma("theta", 0.0, 0.1, **arguments)


def test_a_tied_statement_is_of_the_sibling_class():
    assert type(wishart()) is cv.TiedNormalWishart
    assert type(gamma()) is cv.TiedNormalGamma
    assert type(cv.NormalGamma("theta", 0, 1, 1, 1)) is cv.NormalGamma


def test_statistics_of_the_precision_lack_the_tied_plate():
    theta = gamma()
    assert theta.plates_of("precision_x") == (component, feature)
    assert theta.plates_of("precision") == theta.batch_plates == (component,)


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (lambda: wishart(plates=(feature, component), tied=feature), "must be the last of its plates"),
        (lambda: wishart(plates=obs), "write plates=(obs, component), tied=component"),
        (lambda: gamma(plates=(feature, component)), "write plates=(component, feature), tied=feature"),
        (lambda: gamma(tied="feature"), "takes the plate over which its locations share one precision"),
        (lambda: wishart(df=[3.0, 4.0, 5.0]), "one and the same along plate 'component'"),
        (lambda: wishart(inverse_scale=np.ones((3, 2, 2)) + np.eye(2)), "along plate 'component' (tied=)"),
        (lambda: gamma(rate=np.ones((3, 2))), "along plate 'feature' (tied=)"),
        (
            lambda: gamma(rate=cv.Gamma("rate", 1, 1, plates=feature)),
            "the precision is tied along it, one and the same; leave the plate out",
        ),
        (lambda: gamma(shape=[1.0, 2.0]), "plate 'component' has size 3"),
    ],
)
def test_refusals_say_what_to_write(state, message):
    with pytest.raises(cv.PlateError, match=re.escape(message)):
        state()


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (
            lambda: cv.NormalWishart("t", np.zeros(2), 0.0, 3.0, np.eye(2), plates=component, tied=component),
            "df=0",
        ),
        (lambda: cv.NormalGamma("t", 0, 0.0, 1, 1, plates=(component, feature), tied=feature), "shape=0"),
        (lambda: wishart(df=0.0), "above D - 1 = 1"),
        (lambda: gamma(shape=0.0), "must be positive"),
    ],
)
def test_half_a_flat_prior_is_refused(state, message):
    with pytest.raises(cv.ModelError, match=re.escape(message)):
        state()


def test_one_precision_for_all_rows_with_a_location_each_is_refused():
    theta = cv.NormalGamma("theta", 0, 1, 1, 1, plates=obs, tied=obs)
    with pytest.raises(cv.PlateError, match="one precision for all of them"):
        cv.Model(cv.Normal("x", theta, plates=obs)).fit({"x": [1.0, 2.0]})


def test_a_value_of_a_tied_factor_has_one_precision():
    z = cv.Categorical("z", np.ones(3) / 3, plates=obs)
    model = cv.Model(cv.MultivariateNormal("x", wishart()[z], plates=obs))
    x = np.random.default_rng(0).normal(size=(20, 2))
    posterior = model.fit({"x": x}, init={"theta": (x[:3], np.eye(2))}, max_iter=2, tol=0)
    assert posterior["theta"].inverse_scale.shape == (2, 2)
    with pytest.raises(cv.CaviarError, match="precision in init of 'theta'"):
        model.fit({"x": x}, init={"theta": (x[:3], np.broadcast_to(np.eye(2), (3, 2, 2)))})


@pytest.mark.parametrize("floor", [-1.0, [1.0, 2.0, 3.0], np.ones((1, 3, 2))])
def test_floors_of_a_gamma_fit_its_plates(floor):
    with pytest.raises(cv.ModelError, match="smallest_variance of Gamma 'tau' must be"):
        cv.Gamma("tau", 1, 1, smallest_variance=floor, plates=(component, feature))


def test_a_floor_asks_for_a_point_mass():
    tau = cv.Gamma("tau", 1, 1, smallest_variance=0.1)
    model = cv.Model(cv.Normal("x", 0.0, tau, plates=obs))
    with pytest.raises(cv.ParameterError, match="point mass"):
        model.fit({"x": [1.0, 2.0]})
