"""Two series below one hidden path: the prediction of one from the other is a conditional of a Normal vector."""

from __future__ import annotations

import numpy as np
import pytest

import caviar as cv

N, DECAY, NOISE = 12, 0.9, 4.0
PRECISIONS, LOADINGS = {"x": 4.0, "y": 9.0}, {"x": 1.0, "y": 2.0}


def covariance_of_path() -> np.ndarray:
    """First state of precision 1, then s' = DECAY s + noise."""
    variances = [1.0]
    for _ in range(N - 1):
        variances.append(DECAY**2 * variances[-1] + 1 / NOISE)
    times = np.arange(N)
    earlier = np.minimum.outer(times, times)
    return DECAY ** np.abs(np.subtract.outer(times, times)) * np.array(variances)[earlier]


@pytest.mark.parametrize("rows_are_first", [True, False])
def test_what_is_absent_is_predicted_from_the_path_that_the_other_tells(rows_are_first: bool) -> None:
    rng, time, twice = np.random.default_rng(0), cv.Plate("time"), cv.Plate("twice", 2)
    plates = (time, twice) if rows_are_first else (twice, time)
    s = cv.LinearGaussianChain("s", [0.0], [[1.0]], [[DECAY]], [[NOISE]], along=time)
    x = cv.Normal("x", cv.dot([LOADINGS["x"]], s), PRECISIONS["x"], plates=plates)
    y = cv.Normal("y", cv.dot([LOADINGS["y"]], s), PRECISIONS["y"], plates=time)
    path = rng.multivariate_normal(np.zeros(N), covariance_of_path())
    data = {"x": rng.normal(path[:, None], 0.5, (N, 2)), "y": rng.normal(2 * path, 1 / 3)}
    data["x"] = data["x"] if rows_are_first else data["x"].T
    found = cv.Model(x, y).fit(data).predict({"y": data["y"]})["x"]

    prior = covariance_of_path()
    of_y = LOADINGS["y"] ** 2 * prior + np.eye(N) / PRECISIONS["y"]
    gain = LOADINGS["y"] * prior @ np.linalg.inv(of_y)
    variance = np.diag(prior - gain @ (LOADINGS["y"] * prior)) + 1 / PRECISIONS["x"]
    np.testing.assert_allclose(found.mean, np.repeat((gain @ data["y"])[:, None], 2, axis=1), rtol=1e-9)
    np.testing.assert_allclose(
        found.standard_deviation**2, np.repeat(variance[:, None], 2, axis=1), rtol=1e-9
    )
