"""Locations that are added up settle together in a start: they are those of least squares, whatever the order."""

import numpy as np
import pytest

from starts.registry import CASES


@pytest.mark.parametrize("name", ["slopes beside levels", "steep slopes beside levels"])
def test_what_follows_from_given_labels_is_least_squares(name):
    problem = CASES[name].problem()
    z, v, u = problem.init["z"], problem.init["v"], problem.data["u"]
    posterior = problem.model.fit(problem.data, init=problem.init, max_iter=0)
    slopes, levels = (np.eye(own.max() + 1)[own] for own in (z, v))
    design = np.column_stack([slopes * u[:, None], levels])
    prior = np.diag([0.1] * slopes.shape[1] + [0.01] * levels.shape[1])
    # the noise of the data is 0.3, so that its precision is 11
    exact = np.linalg.solve(design.T @ design + prior / 11, design.T @ problem.data["x"])
    found = np.concatenate([posterior["a"].mean, posterior["b"].mean])
    np.testing.assert_allclose(found, exact, atol=0.05)
