"""The checks of random models themselves, of statements that few seeds draw."""

import numpy as np

import caviar as cv

from .checks import assert_elbo_is_that_of_the_densities


def test_rates_of_groups_of_which_one_has_no_row_and_values_are_missing():
    """The check ended with a KeyError: values of a group that is empty have no axis of the rows."""
    outer = cv.Plate("outer", 3)
    obs = cv.Plate("obs", within=outer)
    rate = cv.Gamma("rate", 2, 2, plates=outer)
    scale = cv.Gamma("scale", 2, rate, plates=obs)
    model = cv.Model(cv.TruncatedNormal("x", 0.0, scale, lower=-3.0, upper=3.0, plates=(obs, cv.Plate("columns", 2))))
    x = np.array([[0.3, np.nan], [-1.2, 0.4], [2.0, 0.1], [np.nan, -0.7]])
    data = {"x": x, "outer": np.array([0, 2, 2, 0])}
    posterior = model.fit(data, seed=0)
    assert_elbo_is_that_of_the_densities(posterior, data)
    assert posterior.converged
