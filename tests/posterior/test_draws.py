"""Draws from a posterior, and from its predictive distribution, follow the factors."""

import numpy as np
import pytest
from invariants.registry import CASES
from scipy import stats

import caviar as cv


def _normal():
    """Return an exact posterior: q(m) = N(1.5, 1/4)."""
    model = cv.Model(cv.Normal("x", cv.Normal("m", 0.0, 1.0), 1.0, plates=cv.Plate("obs")))
    return model.fit({"x": [1.0, 2.0, 3.0]})


def test_draws_of_the_globals_follow_their_factors():
    posterior = _normal()
    draws = posterior.sample(5000, seed=0)
    assert list(draws) == ["m"]
    assert stats.kstest(draws["m"], stats.norm(1.5, 0.5).cdf).pvalue > 1e-3
    np.testing.assert_array_equal(draws["m"], posterior.sample(5000, seed=0)["m"])
    assert not np.array_equal(draws["m"], posterior.sample(5000, seed=1)["m"])


@pytest.mark.thinned(6)
@pytest.mark.parametrize("name", CASES)
def test_shapes_of_draws(name):
    case = CASES[name]
    data = case.draw(np.random.default_rng(0), 20)
    posterior = case.fit(data, max_iter=20)
    prior = case.state().simulate(
        0, sizes={"obs": 20}, data={key: value for key, value in data.items() if key != "x"}
    )
    for key, draws in posterior.sample(4, seed=0).items():
        if isinstance(draws, tuple):
            assert [part.shape[1:] for part in draws] == [part.shape for part in prior[key]]
        else:
            assert draws.shape == (4, *prior[key].shape)
    known = {key: values[:7] for key, values in data.items() if key != "x"}
    new = posterior.predictive({"obs": 7}, data=known, n_draws=3, seed=0)
    assert {key: values.shape for key, values in new.items()} == {"x": (3, 7, *data["x"].shape[1:])}


@pytest.mark.slow
def test_the_predictive_of_an_exact_posterior_is_exact():
    """New rows follow N(1.5, 1 + 1/4); rows of one draw share its mean, so their means vary with sd 1/2."""
    posterior = _normal()
    new = posterior.predictive({"obs": 2}, n_draws=4000, seed=0)["x"]
    assert stats.kstest(new[:, 0], stats.norm(1.5, np.sqrt(1.25)).cdf).pvalue > 1e-3
    assert np.cov(new.T)[0, 1] == pytest.approx(0.25, abs=0.1)
    np.testing.assert_array_equal(new, posterior.predictive({"obs": 2}, n_draws=4000, seed=0)["x"])


def test_the_predictive_draws_labels_anew():
    """In a mixture the rows of one draw fall on the components in the shares of the weights."""
    obs, component = cv.Plate("obs"), cv.Plate("component", 2)
    mean = cv.Normal("mean", 0.0, 1e-4, plates=component)
    z = cv.Categorical("z", cv.Dirichlet("weights", np.ones(2)), plates=obs)
    model = cv.Model(cv.Normal("x", mean[z], 1.0, plates=obs))
    x = np.r_[np.full(30, -20.0), np.full(90, 20.0)] + np.random.default_rng(0).normal(size=120)
    new = model.fit({"x": x}, seed=0).predictive({"obs": 300}, n_draws=20, seed=0)["x"]
    assert np.abs(np.abs(new) - 20).max() < 6
    assert np.mean(new > 0) == pytest.approx(91 / 122, abs=0.04)


def test_known_arrays_settle_the_rows_of_the_predictive():
    obs = cv.Plate("obs")
    model = cv.Model(cv.Normal("x", cv.Normal("m", 0.0, 1.0), cv.Data("noise", plates=obs), plates=obs))
    posterior = model.fit({"x": [1.0, 2.0], "noise": [1.0, 1.0]})
    new = posterior.predictive(data={"noise": np.array([1e12, 1e-4])}, n_draws=500, seed=0)["x"]
    assert new[:, 0].std() == pytest.approx(np.sqrt(1 / 3), rel=0.15)
    assert new[:, 1].std() == pytest.approx(100, rel=0.15)
    with pytest.raises(cv.DataError, match="the data lack 'noise'"):
        posterior.predictive({"obs": 2})


def test_a_global_known_in_the_fit_is_held_at_its_values_and_never_drawn_from_its_prior():
    obs = cv.Plate("obs")
    model = cv.Model(cv.Normal("x", cv.Normal("mean", 0, 1e-4), cv.Gamma("tau", 1, 1), plates=obs))
    posterior = model.fit({"x": np.random.default_rng(0).normal(50, 1, 200), "mean": 50.0})
    new = posterior.predictive({"obs": 5}, data={"mean": 50.0}, n_draws=200, seed=0)["x"]
    assert new.mean() == pytest.approx(50, abs=0.2)
    assert new.std() == pytest.approx(1, abs=0.1)
    assert posterior.predict({"mean": 50.0})["x"].mean == 50.0
    for ask in (
        lambda: posterior.predictive({"obs": 5}),
        lambda: posterior.predictive({"obs": 5}, data={}),
        lambda: posterior.predict({}),
    ):
        with pytest.raises(cv.ModelError, match=r"no factor of 'mean'.* its values came with the data"):
            ask()


def test_joint_factors_and_components_known_in_the_fit_are_held():
    obs, component = cv.Plate("obs"), cv.Plate("component", 2)
    theta = cv.NormalGamma("theta", 0.0, 0.01, 1.0, 1.0, plates=component)
    z = cv.Categorical("z", cv.Dirichlet("weights", np.ones(2)), plates=obs)
    model = cv.Model(cv.Normal("x", theta[z], plates=obs))
    values = ([-20.0, 20.0], [4.0, 4.0])
    x = np.r_[np.full(30, -20.0), np.full(90, 20.0)] + np.random.default_rng(0).normal(size=120) / 2
    posterior = model.fit({"x": x, "theta": values}, seed=0)
    # what is known of a joint factor, its factor holds
    new = posterior.predictive({"obs": 300}, n_draws=20, seed=0)["x"]
    assert np.abs(np.abs(new) - 20).max() < 3
    assert np.mean(new > 0) == pytest.approx(91 / 122, abs=0.04)
    # labels of the rows of the fit are not those of new rows
    labelled = model.fit({"x": x, "z": (x > 0).astype(int)}, seed=0)
    assert np.mean(labelled.predictive({"obs": 300}, n_draws=20, seed=0)["x"] > 0) == pytest.approx(
        91 / 122, abs=0.06
    )


def test_predict_gives_the_local_factors_of_new_rows():
    case = CASES["joint"]
    posterior = case.fit(case.draw(np.random.default_rng(0), 40))
    new = case.draw(np.random.default_rng(1), 5)
    predicted = posterior.predict(new)["z"].probabilities
    assert predicted.shape == (5, 3)
    # log r = E log weight + E log N(x | theta), up to a constant
    theta, weights = posterior["theta"], posterior["weights"]
    weighted, quadratic, log_det, precision = theta.expected_statistics
    x = new["x"]
    logits = (
        weights.expected_statistics[0]
        + x @ weighted.T
        + 0.5 * (log_det - quadratic - np.einsum("ni,kij,nj->nk", x, precision, x))
    )
    expected = np.exp(logits - logits.max(axis=1, keepdims=True))
    np.testing.assert_allclose(predicted, expected / expected.sum(axis=1, keepdims=True), rtol=1e-8)


def test_weights_of_zero_can_be_drawn_and_held():
    """A concentration so small that draws of its weights underflow is no error further down."""
    obs = cv.Plate("obs")
    z = cv.Categorical("x", cv.Dirichlet("weights", [1e-4, 1e-4, 1.0]), plates=obs)
    model = cv.Model(z)
    posterior = model.fit({"x": [2, 2, 2]})
    assert (posterior.sample(20, seed=0)["weights"] == np.finfo(float).tiny).any()
    held = model.simulate(0, sizes={"obs": 5}, given={"weights": [0.0, 0.0, 1.0]})
    assert set(held["x"]) == {2}
    assert set(posterior.predictive({"obs": 5}, n_draws=20, seed=0)["x"].ravel()) == {2}


def test_impossible_arguments_are_refused():
    posterior = _normal()
    with pytest.raises(cv.ParameterError, match="n must be a whole number of at least 1; got 0"):
        posterior.sample(0)
    with pytest.raises(cv.ParameterError, match=r"n_draws must be a whole number of at least 1; got 1\.5"):
        posterior.predictive({"obs": 2}, n_draws=1.5)
    with pytest.raises(cv.ParameterError, match="seed is None"):
        posterior.sample(2, seed="a")
    with pytest.raises(cv.PlateError, match="plate 'obs' of 'x' is unknown"):
        posterior.predictive()
