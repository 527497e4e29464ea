"""A Bernoulli as a number in sums and products: weights that may be absent, and indicators of rows."""

import itertools

import numpy as np
import pytest
from scipy.special import expit, logsumexp, rel_entr
from scipy.stats import multivariate_normal, norm

import caviar as cv

OBS = cv.Plate("obs")
RNG = np.random.default_rng(0)
N, D = 40, 4
X = RNG.normal(size=(N, D))
Y = 1.5 * X[:, 0] - 2 * X[:, 2] + RNG.normal(size=N)
DATA = {"y": Y, **{f"x{d}": X[:, d] for d in range(D)}}


def spike_and_slab():
    addends = [
        cv.Bernoulli(f"g{d}", 0.3) * cv.Normal(f"w{d}", 0, 1.0) * cv.Data(f"x{d}", plates=OBS)
        for d in range(D)
    ]
    return cv.Model(cv.Normal("y", sum(addends[1:], start=addends[0]), 1.0, plates=OBS))


@pytest.mark.parametrize("seed", range(3))
def test_spike_and_slab_finds_the_weights_and_stays_below_the_evidence(seed):
    """The sum over all subsets; a start with all weights absent would end 100 nats lower."""
    joint = [
        multivariate_normal(np.zeros(N), np.eye(N) + (X * g) @ (X * g).T).logpdf(Y)
        + np.sum(np.where(g, np.log(0.3), np.log(0.7)))
        for g in map(np.array, itertools.product([0, 1], repeat=D))
    ]
    posterior = spike_and_slab().fit(DATA, seed=seed, tol=1e-12)
    assert logsumexp(joint) - 0.5 < posterior.elbo <= logsumexp(joint)
    assert [round(float(posterior[f"g{d}"].mean)) for d in range(D)] == [1, 0, 1, 0]


def test_each_factor_is_its_own_update():
    posterior = spike_and_slab().fit(DATA, tol=1e-13)
    g = np.array([float(posterior[f"g{d}"].mean) for d in range(D)])
    m = np.array([float(posterior[f"w{d}"].mean) for d in range(D)])
    v = np.array([float(posterior[f"w{d}"].variance) for d in range(D)])
    for d in range(D):
        rest = Y - (X * g * m).sum(1) + X[:, d] * g[d] * m[d]
        precision = 1.0 + g[d] * X[:, d] @ X[:, d]
        assert 1 / v[d] == pytest.approx(precision, rel=1e-8)
        assert m[d] == pytest.approx(g[d] * (X[:, d] @ rest) / precision, abs=1e-6)
        gain = m[d] * (X[:, d] @ rest) - 0.5 * (m[d] ** 2 + v[d]) * (X[:, d] @ X[:, d])
        assert g[d] == pytest.approx(expit(np.log(3 / 7) + gain), abs=1e-6)


def test_an_indicator_of_rows_is_a_mixture_of_two():
    """With everything else known the evidence is the sum over both values."""
    rng = np.random.default_rng(1)
    y = rng.normal(3.0 * (rng.random(50) < 0.4), 1)
    posterior = cv.Model(cv.Normal("y", 3.0 * cv.Bernoulli("g", 0.4, plates=OBS) - 0.5, 1.0, plates=OBS)).fit(
        {"y": y}
    )
    joint = np.log([0.6, 0.4]) + norm.logpdf(y[:, None], [-0.5, 2.5])
    assert posterior.elbo == pytest.approx(logsumexp(joint, axis=1).sum(), rel=1e-12)
    found = posterior.local({"y": y})["g"].mean
    np.testing.assert_allclose(found, np.exp(joint[:, 1] - logsumexp(joint, axis=1)), atol=1e-12)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("n_numbers", [1, 2])
def test_indicators_of_rows_with_unknown_heights_are_found(n_numbers):
    """Fits ended a nat a row and more below, with all indicators alike."""
    rng = np.random.default_rng(0)
    heights = np.array([3.0, 1.2])[:n_numbers]
    on = rng.random((100, n_numbers)) < 0.45
    y = rng.normal(on @ heights, 0.5)
    addends = [
        cv.Bernoulli(f"g{k}", 0.5, plates=OBS) * cv.Normal(f"height{k}", 0, 0.1) for k in range(n_numbers)
    ]
    model = cv.Model(cv.Normal("y", sum(addends[1:], start=addends[0]), 4.0, plates=OBS))
    ends = [model.fit({"y": y}, seed=seed) for seed in range(3)]
    best = max(ends, key=lambda end: end.elbo)
    found = sorted((float(best[f"height{k}"].mean) for k in range(n_numbers)), reverse=True)
    np.testing.assert_allclose(found, heights, atol=0.25)
    assert min(end.elbo for end in ends) > best.elbo - 0.1 * len(y)


def test_numbers_of_a_row_that_share_its_value_are_at_their_best_combination():
    """Of 4 = 3 h + 5 h2 either number may be on, and not both: found by updates from each combination, row by row."""
    rng = np.random.default_rng(3)
    heights = np.array([3.0, 5.0])
    y = (rng.random((60, 2)) < 0.5) @ heights + rng.normal(size=60)
    numbers = [cv.Bernoulli(name, 0.5, plates=OBS) for name in ("h", "h2")]
    model = cv.Model(cv.Normal("y", 3.0 * numbers[0] + 5.0 * numbers[1], 1.0, plates=OBS))

    def bound(on):
        q = np.tile(np.array(on, dtype=float), (60, 1))
        for _ in range(200):
            for k in (0, 1):
                rest = y - q[:, 1 - k] * heights[1 - k]
                q[:, k] = expit(heights[k] * rest - 0.5 * heights[k] ** 2)
        residual = np.square(y - q @ heights) + (q * (1 - q)) @ heights**2
        return -0.5 * (np.log(2 * np.pi) + residual) - (rel_entr(q, 0.5) + rel_entr(1 - q, 0.5)).sum(axis=1)

    best = np.max([bound(on) for on in itertools.product((0, 1), repeat=2)], axis=0).sum()
    for seed in range(2):
        assert model.fit({"y": y}, seed=seed, tol=1e-12).elbo == pytest.approx(best, abs=1e-6)


def test_it_may_be_the_mean_itself():
    y = np.array([0.1, 0.9, 1.3])
    posterior = cv.Model(cv.Normal("y", cv.Bernoulli("g", 0.5), 2.0, plates=OBS)).fit({"y": y})
    both = [norm.logpdf(y, mean, np.sqrt(0.5)).sum() + np.log(0.5) for mean in (0, 1)]
    assert posterior.elbo == pytest.approx(logsumexp(both), rel=1e-12)


def test_predictions_are_those_of_draws_and_files_keep_it(tmp_path):
    posterior = spike_and_slab().fit(DATA)
    new = {name: own[:3] for name, own in DATA.items() if name != "y"}
    predicted = posterior.predict(new)["y"]
    draws = posterior.predictive(data=new, n_draws=2_000, seed=0)["y"]
    np.testing.assert_allclose(predicted.mean, draws.mean(0), atol=0.1)
    np.testing.assert_allclose(predicted.standard_deviation, draws.std(0), rtol=0.08)
    posterior.save(tmp_path / "slab.caviar")
    assert cv.load(tmp_path / "slab.caviar").elbo == posterior.elbo


@pytest.mark.parametrize(
    ("mean", "words"),
    [
        (lambda g, w: g * g, "appears twice in one product"),
        (lambda g, w: cv.Bernoulli("answer", cv.probit(w), plates=OBS) * w, "can only be observed"),
        (lambda g, w: cv.Beta("b", 1, 1) * w, "cannot be the Beta 'b'"),
    ],
)
def test_what_has_no_update_is_refused(mean, words):
    with pytest.raises(cv.ConjugacyError, match=words):
        cv.Normal("y", mean(cv.Bernoulli("g", 0.5), cv.Normal("w", 0, 1)), 1.0, plates=OBS)


@pytest.mark.parametrize("kind", ["number", "indicator"])
def test_numbers_known_in_part_are_the_same_stated_as_observed_or_not(kind):
    """They were taken for zeros where the variable was one of the leaves."""
    above = cv.Normal("x", 0, 1, plates=OBS) if kind == "number" else cv.Bernoulli("x", 0.5, plates=OBS)
    y = cv.Normal("y", cv.Normal("b", 0, 1) * above, 1.0, plates=OBS)
    data = {"y": np.arange(4.0), "x": np.array([1.0, np.nan, 0.0, 1.0])}
    one, other = (model.fit(data, tol=1e-13) for model in (cv.Model(y), cv.Model(y, above)))
    assert one.elbo == pytest.approx(other.elbo, abs=1e-9)
    assert one.local(data)["x"].mean[1] == pytest.approx(other.local(data)["x"].mean[1], abs=1e-6)


def test_labels_known_in_part_are_the_same_stated_as_observed_or_not():
    z = cv.Categorical("z", [0.5, 0.5], plates=OBS)
    mean = cv.Normal("mean", 0, 0.1, plates=cv.Plate("kind", 2))
    y = cv.Normal("y", mean[z], 1.0, plates=OBS)
    rng = np.random.default_rng(2)
    labels = rng.integers(2, size=60).astype(float)
    data = {"y": rng.normal(3 * labels, 1), "z": np.where(np.arange(60) % 3, labels, np.nan)}
    one, other = cv.Model(y).fit(data, tol=1e-13), cv.Model(y, z).fit(data, tol=1e-13)
    assert one.elbo == pytest.approx(other.elbo, rel=1e-12)
    np.testing.assert_allclose(one["mean"].mean, other["mean"].mean, rtol=1e-6)


def test_a_number_of_a_group_without_rows_is_forecast_with_its_expected_probability():
    """The optimum at the expected log odds is another number."""
    groups = RNG.integers(3, size=30)
    y = RNG.normal(3.0 * (groups == 1), 1)
    g = cv.Bernoulli("g", cv.Beta("p", 1.0, 2.0), plates=cv.Plate("group", 5))
    own = cv.Data("own", plates=OBS)
    posterior = cv.Model(cv.Normal("y", g[own] * 3.0, 1.0, plates=OBS)).fit({"y": y, "own": groups})
    np.testing.assert_allclose(posterior["g"].mean[3:], posterior["p"].mean, rtol=1e-12)
    predicted = posterior.predict({"own": np.array([4])})["y"]
    p = float(posterior["p"].mean)
    assert predicted.mean[0] == pytest.approx(3 * p, rel=1e-12)
    assert predicted.standard_deviation[0] == pytest.approx(np.sqrt(1 + 9 * p * (1 - p)), rel=1e-12)


def test_rows_with_an_indicator_of_their_own_are_predicted():
    rng = np.random.default_rng(1)
    x = rng.normal(size=60)
    y = rng.normal(4.0 * (rng.random(60) < 0.3) + x, 1)
    g, a = cv.Bernoulli("g", cv.Beta("p", 1, 1), plates=OBS), cv.Normal("a", 0, 0.1)
    mean = g * a + cv.Normal("b", 0, 1) * cv.Data("x", plates=OBS)
    posterior = cv.Model(cv.Normal("y", mean, 1.0, plates=OBS)).fit(
        {"y": y, "x": x}, factors="apart", uncertainty="mean_field"
    )
    told = posterior.predict({"x": x[:3]})["y"]
    p, q, b = float(posterior["p"].mean), posterior["a"], posterior["b"]
    np.testing.assert_allclose(told.mean, p * q.mean + b.mean * x[:3], rtol=1e-12)
    variance = p * (q.variance + q.mean**2) - (p * q.mean) ** 2 + b.variance * x[:3] ** 2 + 1.0
    np.testing.assert_allclose(told.standard_deviation**2, variance, rtol=1e-12)


@pytest.mark.parametrize("seed", range(2))
def test_numbers_that_are_points_are_those_of_the_best_subset(seed):
    """The joint density at a point of all numbers, weights summed over."""
    posterior = spike_and_slab().fit(DATA, seed=seed, point=[f"g{d}" for d in range(D)], tol=1e-12)
    found = np.array([float(posterior[f"g{d}"].mean) for d in range(D)])
    np.testing.assert_array_equal(found, [1, 0, 1, 0])
    marginal = multivariate_normal(np.zeros(N), np.eye(N) + (X * found) @ (X * found).T).logpdf(Y)
    best = marginal + np.sum(np.where(found, np.log(0.3), np.log(0.7)))
    assert best - 0.5 < posterior.elbo <= best + 1e-9
