"""A module of scikit-learn's tests passes with our classes, except what ``not_passed`` lists."""

import pytest

from .borrowed import borrowed_from

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")]

globals().update(borrowed_from("sklearn.mixture.tests.test_bayesian_mixture"))
