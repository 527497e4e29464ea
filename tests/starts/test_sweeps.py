"""The first sweeps of a start: nothing is updated again that depends on nothing that has changed."""

from collections import Counter

import numpy as np
import pytest

import caviar as cv
from caviar.engine.ascent.problem import Problem

X = cv.datasets.load_faithful().values
LABELS = (X[:, 1] > 68).astype(int)


def mixture(mean_precision):
    obs, component = cv.Plate("obs"), cv.Plate("component", 2)
    weights = cv.Dirichlet("weights", np.ones(2))
    z = cv.Categorical("z", weights, plates=obs)
    mean = cv.MultivariateNormal("mean", np.zeros(2), mean_precision, plates=component)
    precision = cv.Wishart("precision", 3, np.zeros((2, 2)), smallest_variance=1e-6, plates=component)
    return cv.Model(cv.MultivariateNormal("x", mean[z], precision[z], plates=obs))


@pytest.mark.parametrize(("mean_precision", "twice"), [(0, 1), (1e-9 * np.eye(2), 2)], ids=["flat", "proper"])
def test_what_nothing_has_changed_is_updated_once(mean_precision, twice, monkeypatch):
    """Under a flat prior the mean of a component is that of its rows, whatever its precision; else each waits."""
    updated, update = Counter(), Problem.update
    monkeypatch.setattr(Problem, "update", lambda *own: updated.update([own[1].name]) or update(*own))
    point = ["weights", "mean", "precision"]
    posterior = mixture(mean_precision).fit({"x": X}, init={"z": LABELS}, max_iter=0, point=point)
    assert updated == {"weights": 1, "mean": twice, "precision": twice}
    own = [X[k == LABELS] for k in range(2)]
    np.testing.assert_allclose(posterior["mean"].value, [rows.mean(axis=0) for rows in own], rtol=1e-7)
    found = [np.linalg.inv(np.cov(rows.T, ddof=0)) for rows in own]
    np.testing.assert_allclose(posterior["precision"].value, found, rtol=1e-6)
