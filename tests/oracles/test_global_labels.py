"""A label that all rows share: started from a value, held at a point, and against the sum over its values."""

import numpy as np
import pytest
from scipy.special import logsumexp

import caviar as cv
from caviar.families import Categorical

DATA = {"x": [2.0, 1.0, 3.0]}


def one_label() -> cv.Model:
    obs, component = cv.Plate("obs"), cv.Plate("component", 3)
    z = cv.Categorical("z", [0.2, 0.3, 0.5])
    centres = cv.Constant("centres", [2.5, 0.0, -5.0], plates=component)
    return cv.Model(cv.Normal("x", centres[z], 1.0, plates=obs))


def log_joints() -> np.ndarray:
    return np.array([one_label().log_joint({**DATA, "z": np.array(k)}) for k in range(3)])


@pytest.mark.parametrize("label", [0, 1, 2])
def test_every_start_leads_to_the_sum_over_labels(label):
    given = (label, Categorical(np.eye(3)[label]))
    fits = [one_label().fit(DATA, init={"z": value}) for value in given]
    for fit in fits:
        # at a label the objective is the joint density: a label has no entropy to lose
        assert fit.elbo_trace[0] == pytest.approx(log_joints()[label], rel=1e-12)
        assert fit.elbo == pytest.approx(logsumexp(log_joints()), rel=1e-12)
        exact = np.exp(log_joints() - logsumexp(log_joints()))
        np.testing.assert_allclose(fit["z"].probabilities, exact, rtol=1e-10)


@pytest.mark.parametrize("label", [0, 1, 2])
def test_a_point_mass_is_the_best_label(label):
    fit = one_label().fit(DATA, point=["z"], init={"z": label})
    assert fit["z"].value == log_joints().argmax() == 0
    assert fit.elbo == pytest.approx(log_joints().max(), rel=1e-12)
    assert fit.elbo_trace[0] == pytest.approx(log_joints()[label], rel=1e-12)
    np.testing.assert_array_equal(fit.sample(4, seed=0)["z"], np.zeros(4))
    assert "z" in str(fit.summary())


@pytest.mark.slow
def test_labels_over_a_plate_at_points():
    """Each group has its own label; below it the means are fitted with the labels where they are."""
    obs, group, component = cv.Plate("obs"), cv.Plate("group", 2), cv.Plate("component", 3)
    z = cv.Categorical("z", cv.Dirichlet("weights", np.ones(3)), plates=group)
    mean = cv.Normal("mean", np.array([-4.0, 0.0, 4.0]), 1.0, plates=component)
    model = cv.Model(cv.Normal("x", mean[z], 1.0, plates=(obs, group)))
    data = {"x": np.array([[0.1, -4.1], [-0.3, -3.0], [0.4, -5.0]])}
    fit = model.fit(data, point=["z"], init={"z": [1, 0]})
    np.testing.assert_array_equal(fit["z"].value, [1, 0])
    np.testing.assert_array_equal(fit["weights"].concentration, [2, 2, 1])
    assert fit.elbo == pytest.approx(cv.testing.elbo_estimate(fit, data, n_draws=1000).value, abs=0.1)


@pytest.mark.parametrize("value", [3, -1, 0.5, np.nan])
def test_what_is_no_label_is_refused(value):
    with pytest.raises(cv.ParameterError, match="init of 'z', a Categorical, must"):
        one_label().fit(DATA, init={"z": value})
