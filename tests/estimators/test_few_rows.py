"""More components than rows are warned of, by every mixture that fits them."""

import numpy as np
import pytest

import caviar as cv

pytestmark = pytest.mark.first_guess

FITS = {
    "bayesian": lambda k: cv.BayesianGaussianMixture(k, random_state=0),
    "mixed": lambda k: cv.MixedMixture(k, random_state=0),
    "known variance": lambda k: cv.KnownVarianceMixture(k, random_state=0),
}


@pytest.mark.parametrize("name", FITS)
def test_more_components_than_rows_are_warned_of(name):
    X = np.array([[1.0], [2.5], [7.0]])
    with pytest.warns(cv.CaviarWarning, match="X has 3 rows, fewer than the 5 components"):
        FITS[name](5).fit(X)
    FITS[name](3).fit(X)  # a warning is an error here


def test_a_weight_of_two_is_the_row_twice():
    X, fit = np.array([[1.0], [2.5]]), FITS["bayesian"]
    with pytest.warns(cv.CaviarWarning, match="X has 2 rows"):
        fit(3).fit(X)
    fit(3).fit(X, sample_weight=[2, 1])
    fit(2).fit(X, sample_weight=[0.1, 0.1])


def test_the_number_that_is_looked_for_may_be_small():
    cv.BayesianGaussianMixture("auto", random_state=0).fit([[1.0], [2.5]])


@pytest.mark.parametrize("name", FITS)
def test_components_that_would_fill_the_memory_are_refused(name):
    with pytest.raises(cv.ParameterError, match=r"n_components=1000000000 is far more than X has rows, 3"):
        FITS[name](10**9).fit([[1.0], [2.5], [7.0]])
