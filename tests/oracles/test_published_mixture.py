"""Maximum likelihood of Old Faithful with one covariance for all components: the figure of the mclust vignette."""

import math

import numpy as np
import pytest

import caviar as cv
from caviar.datasets import load_faithful
from oracles.published import OLD_FAITHFUL_TIED_3_LOG_LIKELIHOOD


def test_a_shared_covariance_reaches_the_published_likelihood():
    """The precision is stated without a plate, so all components share it; nothing else changes."""
    obs, component = cv.Plate("obs"), cv.Plate("component", 3)
    weights = cv.Dirichlet("weights", np.ones(3))
    mean = cv.MultivariateNormal("mean", np.zeros(2), 0, plates=component)
    precision = cv.Wishart("precision", 3.0, np.zeros((2, 2)))
    z = cv.Categorical("z", weights, plates=obs)
    model = cv.Model(cv.MultivariateNormal("x", mean[z], precision, plates=obs))
    posterior = model.fit(
        {"x": load_faithful().values},
        seed=0,
        n_restarts=5,
        point=["weights", "mean", "precision"],
        tol=1e-12,
        max_iter=2000,
    )
    log_likelihood = posterior.elbo - math.lgamma(3)  # the flat Dirichlet's density is the constant 2!
    assert log_likelihood == pytest.approx(OLD_FAITHFUL_TIED_3_LOG_LIKELIHOOD, abs=1e-5)
