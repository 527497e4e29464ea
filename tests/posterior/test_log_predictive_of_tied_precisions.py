"""The predictive density of a mixture whose components share one precision, against a mixture of Student's t."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

import caviar as cv

OBS, COMPONENT, FEATURE = cv.Plate("obs"), cv.Plate("component", 3), cv.Plate("feature", 2)
RNG = np.random.default_rng(0)
LABELS = RNG.integers(0, 3, 60)
X = np.array([[-4.0, 0.0], [0.0, 3.0], [5.0, -2.0]])[LABELS] + RNG.normal(size=(60, 2)) * [0.5, 1.5]
NEW = np.array([[-4.0, 0.3], [0.4, 2.0], [2.0, 0.0], [30.0, -9.0]])


def log_weights(posterior: cv.Posterior) -> np.ndarray:
    return np.log(posterior["weights"].mean)


def test_columns_with_a_precision_each_that_all_components_share() -> None:
    """The tied plate is not the first one: what the category chooses is found by its place."""
    theta = cv.NormalGamma("theta", 0.0, 0.1, 2.0, 1.0, plates=(FEATURE, COMPONENT), tied=COMPONENT)
    z = cv.Categorical("z", cv.Dirichlet("weights", np.ones(3)), plates=OBS)
    posterior = cv.Model(cv.Normal("x", theta[z], plates=(OBS, FEATURE))).fit(
        {"x": X}, seed=0, data_plate=OBS
    )
    q, each = posterior["theta"], log_weights(posterior)[:, None] * np.ones(len(NEW))
    for k in range(3):
        for j in range(2):
            scale = np.sqrt(q.rate[j] / q.shape[j] * (1 + 1 / q.mean_precision[j, k]))
            each[k] += stats.t(2 * q.shape[j], q.mean[j, k], scale).logpdf(NEW[:, j])
    found = posterior.log_predictive({"x": NEW})
    np.testing.assert_allclose(found, logsumexp(each, axis=0), rtol=1e-10)


@pytest.mark.parametrize("known", [False, True], ids=["latent labels", "known labels"])
def test_vectors_with_one_precision_matrix(known: bool) -> None:
    theta = cv.NormalWishart("theta", np.zeros(2), 0.1, 4.0, np.eye(2), plates=COMPONENT, tied=COMPONENT)
    z = cv.Categorical("z", cv.Dirichlet("weights", np.ones(3)), plates=OBS)
    model = cv.Model(cv.MultivariateNormal("x", theta[z], plates=OBS))
    posterior = model.fit({"x": X, "z": LABELS} if known else {"x": X}, seed=0)
    q, each = posterior["theta"], []
    df = q.df - 1
    for k, own in enumerate(log_weights(posterior)):
        shape = q.inverse_scale * (1 + 1 / q.mean_precision[k]) / df
        each.append(own + stats.multivariate_t(q.mean[k], shape, df=df).logpdf(NEW))
    data = {"x": NEW, "z": np.array([0, 1, 2, 2])} if known else {"x": NEW}
    expected = np.array(each)[data["z"], np.arange(4)] if known else logsumexp(each, axis=0)
    np.testing.assert_allclose(posterior.log_predictive(data), expected, rtol=1e-10)


def test_what_is_tied_beside_what_is_not() -> None:
    """A mean of each component in a second leaf: both are chosen by the same category."""
    theta = cv.NormalGamma("theta", 0.0, 0.1, 2.0, 1.0, plates=COMPONENT, tied=COMPONENT)
    z = cv.Categorical("z", [0.2, 0.3, 0.5], plates=OBS)
    beside = cv.Normal("y", cv.Normal("m", 0.0, 0.1, plates=COMPONENT)[z], 2.0, plates=OBS)
    posterior = cv.Model(cv.Normal("x", theta[z], plates=OBS), beside).fit(
        {"x": X[:, 0], "y": X[:, 1]}, seed=0
    )
    q, m = posterior["theta"], posterior["m"]
    each = []
    for k, weight in enumerate([0.2, 0.3, 0.5]):
        scale = np.sqrt(q.rate / q.shape * (1 + 1 / q.mean_precision[k]))
        own = stats.t(2 * q.shape, q.mean[k], scale).logpdf(NEW[:, 0])
        own = own + stats.norm(m.mean[k], np.sqrt(m.variance[k] + 0.5)).logpdf(NEW[:, 1])
        each.append(np.log(weight) + own)
    found = posterior.log_predictive({"x": NEW[:, 0], "y": NEW[:, 1]})
    np.testing.assert_allclose(found, logsumexp(each, axis=0), rtol=1e-10)
