"""What a fit has made of the data goes with its posterior, at once and not when garbage is collected."""

import gc

import numpy as np
import pytest

import caviar as cv
from caviar.engine.binding.bound_model import BoundModel


def of_numbers() -> cv.Model:
    """Return a model of numbers alone."""
    return cv.Model(cv.Normal("x", cv.Normal("mean", 0, 1), cv.Gamma("tau", 1, 1), plates=cv.Plate("obs")))


def n_bound() -> int:
    """Return how many bindings of data are in memory."""
    # isinstance follows weak proxies, also of objects that are gone
    return sum(type(own) is BoundModel for own in gc.get_objects())


@pytest.mark.thinned(2)
@pytest.mark.parametrize(
    "model", [of_numbers(), cv.models.gaussian_mixture(2, 2)], ids=["numbers", "mixture"]
)
def test_the_data_go_with_the_posterior(model):
    values = np.random.default_rng(0).normal(size=(40, 2) if "z" in model.variables else 40)
    gc.collect()
    gc.disable()
    try:
        before = n_bound()
        posterior = model.fit({"x": values}, seed=0)
        del posterior
        assert n_bound() == before
    finally:
        gc.enable()
