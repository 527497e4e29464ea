# pyright: strict
"""A script as users write it, checked as strictly as pyright can: what the annotations of the library are worth.

``assert_type`` is what pyright holds against its own inference, and at run time it does nothing.
"""

from typing import assert_type

import numpy as np
from numpy.typing import NDArray

import caviar as cv

obs, component = cv.Plate("obs"), cv.Plate("component", 2)
weights = cv.Dirichlet("weights", concentration=np.ones(2))
mean = cv.Normal("mean", 0.0, 0.01, plates=component)
z = cv.Categorical("z", weights, plates=obs)
x = cv.Normal("x", mean[z], 1.0, plates=obs)
model = cv.Model(x)
assert_type(model.variables["x"].name, str)

rng = np.random.default_rng(0)
data = {"x": np.concatenate([rng.normal(-3, 1, 40), rng.normal(3, 1, 60)])}
posterior = model.fit(data, seed=0, n_restarts=2)
assert_type(posterior, cv.Posterior)
assert_type(posterior.elbo, float)
assert_type(posterior.converged, bool)
assert_type(posterior.log_predictive(data), NDArray[np.float64])
assert_type(posterior.keys(), list[str])

estimator = cv.BayesianGaussianMixture(2, random_state=0).fit(data["x"][:, None])
assert_type(estimator, cv.BayesianGaussianMixture)
assert_type(estimator.score_samples(data["x"][:, None]), NDArray[np.float64])

galaxies = cv.datasets.load_galaxies()
assert_type(galaxies.values, NDArray[np.float64])
comparison = cv.compare_mixtures(galaxies.values, n_components=(1, 2), covariance_type="full")
assert_type(comparison, cv.MixtureComparison)
assert_type([row.elbo for row in comparison.rows], list[float])


def diagnosed(fitted: cv.Posterior) -> str:
    """Return what the importance weights say; ArviZ need not be there to check the types."""
    found = fitted.diagnose(data, n_draws=200, seed=0)
    assert_type(found, cv.Diagnosis)
    assert_type(found.pareto_k, float)
    assert_type(found.log_weights, NDArray[np.float64])
    return found.verdict
