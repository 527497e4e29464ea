"""The order in which a statement names the plates of a variable changes nothing but the axes of its arrays."""

import numpy as np
import pytest

import caviar as cv


def vectors(at: int, plates_of_parent: int, mean_precision: float = 0.2) -> cv.Model:
    """State vectors over rows and two plates, and the plates of their parent in one of several orders."""
    obs, component = cv.Plate("obs"), cv.Plate("component", 2)
    a, b = cv.Plate("a", 2), cv.Plate("b", 3)
    own = [(component, a, b), (b, component, a), (b, a, component)][plates_of_parent]
    theta = cv.NormalWishart("theta", np.zeros(2), mean_precision, 4.0, np.eye(2), plates=own)
    z = cv.Categorical("z", cv.Dirichlet("weights", np.ones(2)), plates=obs)
    plates = [a, b]
    plates.insert(at, obs)
    return cv.Model(cv.MultivariateNormal("x", theta[z], plates=plates))


@pytest.mark.thinned(3)
@pytest.mark.parametrize("parent", [0, 1, 2])
@pytest.mark.parametrize("at", [0, 1, 2])
@pytest.mark.parametrize("far", [0.0, 1e6])
def test_plates_of_a_mixture_of_vectors(parent, at, far):
    """Components far apart make each its own reference point, in every order."""
    rng = np.random.default_rng(0)
    labels, vague = np.repeat([0, 1], 10), 1e-14 if far else 0.2
    x = rng.normal(size=(20, 2, 3, 2)) + far * labels[:, None, None, None]
    given = {"init": {"z": labels}, "max_iter": 20}
    fit = vectors(at, parent, vague).fit({"x": np.moveaxis(x, 0, at)}, **given)
    first = vectors(0, 0, vague).fit({"x": x}, **given)
    assert fit.elbo == pytest.approx(first.elbo, rel=1e-7)
    if far:
        # all rows of a component are in it: their mean is the posterior's
        turned = [(0, 1, 2), (1, 2, 0), (2, 1, 0)][parent]
        means = fit["theta"].mean.transpose(*turned, 3)
        np.testing.assert_allclose(means, [x[labels == k].mean(axis=0) for k in (0, 1)], rtol=1e-9, atol=1e-6)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("turned", [False, True])
def test_plates_of_a_hidden_value_below_a_gate(turned):
    """A hidden value a row and plate starts from what its own entries of the leaf show."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(12, 2, 3)) + np.array([-3.0, 3.0])[:, None] * (np.arange(12) % 2)[:, None, None]
    obs, component = cv.Plate("obs"), cv.Plate("component", 2)
    a, b = cv.Plate("a", 2), cv.Plate("b", 3)
    z = cv.Categorical("z", [0.5, 0.5], plates=obs)
    mean = cv.Normal("mean", 0.0, 0.1, plates=component)
    t = cv.Normal("t", mean[z], 1.0, plates=(a, obs) if turned else (obs, a))
    model = cv.Model(cv.Normal("x", t, 2.0, plates=(b, obs, a) if turned else (obs, a, b)))
    data = {"x": np.transpose(x, (2, 0, 1)) if turned else x}
    init = {"z": np.arange(12) % 2}
    posterior = model.fit(data, init=init, tol=1e-13)
    # a value that is the mean of three entries stands for them, up to a constant
    known = model.fit(data, seed=0, tol=1e-13)
    assert posterior.elbo == pytest.approx(known.elbo, rel=1e-9)
    cv.testing.check_model(model, data, init=init, n_draws=400).raise_if_failed()
