"""What holds the numbers does not matter: an estimator fits any array or table as it fits doubles."""

import numpy as np
import pytest

import caviar as cv
from torture.demands import as_floats
from torture.sets import kinds

TAKEN = {case.name: case for case in kinds.CASES if not case.refused}


@pytest.mark.thinned(24)
@pytest.mark.parametrize("name", TAKEN)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_fit_is_that_of_doubles(name):
    case = TAKEN[name]
    rows = case.rows()
    doubles = np.ascontiguousarray(as_floats(rows))
    fits = [
        cv.BayesianGaussianMixture(case.n_components, max_iter=5, random_state=0).fit(x)
        for x in (rows, doubles)
    ]
    np.testing.assert_allclose(fits[0].elbo_trace_, fits[1].elbo_trace_, rtol=1e-12)
    np.testing.assert_allclose(
        fits[0].score_samples(rows), fits[1].score_samples(doubles), rtol=1e-9, atol=1e-12
    )
