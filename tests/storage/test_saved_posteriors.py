"""A loaded posterior is the saved one: the same model, the same factors, and the same bits in all that it does."""

import numpy as np
import pytest

import caviar as cv
from caviar.storage import read

from .likeness import assert_same_model, assert_same_posterior, same
from .statements import FITS, fit_of


@pytest.fixture
def path(tmp_path):
    return tmp_path / "m.caviar"


@pytest.mark.parametrize("name", FITS)
def test_a_loaded_posterior_is_the_saved_one(name, path):
    posterior, data = fit_of(name)
    posterior.save(path)
    assert_same_posterior(posterior, cv.load(path), data)
    assert path.stat().st_size < 25_000


@pytest.mark.parametrize("name", FITS)
def test_a_loaded_model_is_the_saved_one(name, path):
    posterior, data = fit_of(name)
    posterior.model.save(path)
    again = cv.load(path)
    assert_same_model(posterior.model, again)
    arguments = {"seed": 0, "max_iter": 4, **FITS[name][1]}
    assert same(dict(posterior._factors), dict(again.fit(data, **arguments)._factors))
