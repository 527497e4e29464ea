"""The stochastic schedule: exact where averages of batches are, near the optimum elsewhere."""

import numpy as np
import pytest
from invariants.registry import CASES

import caviar as cv
from caviar.engine.ascent.driver import Settings
from schedules.test_incremental import CHAINS, three_clusters


def test_steps_of_size_one_over_t_average_the_batches_exactly():
    # labels are certain, so that the average of the batches' updates is the update from all rows
    rng = np.random.default_rng(0)
    labels = np.arange(8_192) % 2
    x = rng.normal(size=8_192) + np.where(labels, 60.0, -60.0)
    model = cv.models.known_variance_mixture(2, prior_variance=1e4)
    start = {"mean": [-60.0, 60.0]}
    batch = model.fit({"x": x}, init=start)
    found = model.fit(
        {"x": x}, init=start, schedule=cv.Stochastic(1_024, delay=0, decay=1), max_iter=1, seed=1
    )
    assert found.elbo == pytest.approx(batch.elbo, abs=1e-6)
    np.testing.assert_allclose(found["mean"].mean, batch["mean"].mean, atol=1e-9)


@pytest.mark.thinned(12)
@pytest.mark.parametrize("name", [name for name in CASES if name not in CHAINS])
def test_every_model_has_stochastic_fits_with_an_exact_objective(name):
    case = CASES[name]
    data = case.draw(np.random.default_rng(1), 6_000)
    posterior = case.fit(data, schedule=cv.Stochastic(1_000), max_iter=2)
    exact = posterior.elbo_at({name: posterior[name] for name in posterior}, data)
    assert posterior.elbo == pytest.approx(exact, rel=1e-9)
    assert posterior.elbo == posterior.elbo_trace[-1]


@pytest.mark.slow
def test_it_comes_near_the_optimum():
    X = three_clusters(60_000)
    model = cv.models.normal_wishart_mixture(2, 3)
    batch = model.fit({"x": X}, seed=0)
    found = model.fit({"x": X}, seed=0, schedule=cv.Stochastic(2_000), max_iter=5)
    assert batch.elbo - 20 < found.elbo <= batch.elbo + 1e-6


def test_the_same_seed_gives_the_same_bits_on_any_number_of_threads():
    X = three_clusters()
    model = cv.models.normal_wishart_mixture(2, 3)
    one, two, other = (
        model.fit({"x": X}, seed=seed, schedule=cv.Stochastic(1_000), max_iter=2, executor=n)
        for seed, n in ((0, 1), (0, 2), (1, 1))
    )
    assert np.array_equal(one.elbo_trace, two.elbo_trace)
    assert not np.array_equal(one.elbo_trace, other.elbo_trace)


def test_steps_begin_at_distributions_that_were_given():
    """By the formula of a step, from the update of all rows by hand, Gamma(shape + N / 2, ...)."""
    x = np.random.default_rng(0).normal(size=512)
    tau = cv.Gamma("tau", 2.0, 3.0)
    obs = cv.Plate("obs")
    mean = cv.Normal("mean", 0.0, 1e6, plates=cv.Plate("component", 1))
    z = cv.Categorical("z", np.ones(1), plates=obs)
    model = cv.Model(cv.Normal("x", mean[z], tau, plates=obs))
    given = {"tau": cv.families.Gamma(50.0, 10.0), "mean": cv.families.Normal(np.zeros(1), np.full(1, 1e12))}
    for delay in (0.0, 9.0):
        rate = (1 + delay) ** -0.8
        found = model.fit({"x": x}, init=given, schedule=cv.Stochastic(1_000, delay, 0.8), max_iter=1, seed=0)
        assert found["tau"].shape == pytest.approx((1 - rate) * 50 + rate * (2 + 256), rel=1e-9)
    slow = cv.Stochastic(1_000, 1e12, 1.0)
    kept = model.fit({"x": x}, init=given, schedule=slow, max_iter=1, seed=0)
    assert kept["tau"].shape == pytest.approx(50.0, rel=1e-6)
    assert kept["tau"].rate == pytest.approx(10.0, rel=1e-6)


def test_weights_and_rows_of_weight_zero():
    X = three_clusters(12_000)
    weight = np.where(np.arange(12_000) < 3_000, 0.0, 1.0)
    model = cv.models.normal_wishart_mixture(2, 3)
    posterior = model.fit({"x": X}, seed=0, sample_weight=weight, schedule=cv.Stochastic(1_000), max_iter=3)
    assert posterior["weights"].concentration.sum() == pytest.approx(9_000 + 3, rel=1e-9)


@pytest.mark.slow
def test_batches_that_weigh_more_count_for_more():
    """With a third of the rows where most of the weight is, the components' shares are still those of the weights."""
    rng = np.random.default_rng(0)
    label = (np.arange(24_000) >= 16_000).astype(int)
    X = rng.normal(size=(24_000, 2)) + 20.0 * label[:, None]
    weight = np.where(label, 3.0, 0.5)
    model = cv.models.normal_wishart_mixture(2, 2)
    start = {"z": label}
    batch = model.fit({"x": X}, init=start, sample_weight=weight)
    found = model.fit(
        {"x": X}, init=start, sample_weight=weight, seed=0, schedule=cv.Stochastic(1_000), max_iter=20, tol=0
    )
    shares = [posterior["weights"].mean for posterior in (batch, found)]
    np.testing.assert_allclose(shares[1], shares[0], atol=0.03)
    assert batch.elbo - 20 < found.elbo <= batch.elbo + 1e-6


@pytest.mark.slow
@pytest.mark.thinned(2)
@pytest.mark.parametrize("batch_rows", [300, 600])
def test_the_noise_of_small_batches_stays_a_sum_of_squares(batch_rows):
    """Sums of squares of all rows beside products of a batch would leave a negative sum of squared residuals."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(20_000, 2)) @ rng.normal(size=(2, 5)) + 0.5 * rng.normal(size=(20_000, 5))
    model = cv.models.factor_analysis(5, 2)
    batch = model.fit({"x": X}, seed=0, max_iter=200)
    found = model.fit({"x": X}, seed=0, schedule=cv.Stochastic(batch_rows))
    assert batch.elbo - 20 < found.elbo <= batch.elbo + 0.1


def test_point_masses():
    X = three_clusters(12_000)
    model = cv.models.normal_wishart_mixture(2, 3)
    points = ["weights", "theta"]
    batch = model.fit({"x": X}, seed=0, point=points)
    found = model.fit({"x": X}, seed=0, point=points, schedule=cv.Stochastic(1_000), max_iter=5)
    assert batch.elbo - 20 < found.elbo <= batch.elbo + 1e-6


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"batch_rows": 0}, "batch_rows must be a whole number"),
        ({"delay": -1}, "delay must not be negative"),
        ({"decay": 0.49}, "decay must be a number from 0.5 to 1"),
    ],
)
def test_settings_out_of_range_are_refused(arguments, message):
    with pytest.raises(cv.ParameterError, match=message):
        cv.Stochastic(**arguments)


def test_a_checkpoint_may_be_written_after_every_batch(monkeypatch):
    steps = []
    monkeypatch.setattr(Settings, "record", lambda settings, state: steps.append(state.n_updates))
    model = cv.models.normal_wishart_mixture(2, 3)
    model.fit({"x": three_clusters()}, init="prior", schedule=cv.Stochastic(1_000), max_iter=2)
    assert sorted(set(steps)) == list(range(len(set(steps))))
    assert max(steps) == 2 * -(-len(three_clusters()) // 1_000)
