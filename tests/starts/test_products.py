"""Hidden locations that are multiplied begin at principal components of what the rest of a sum leaves."""

import numpy as np
import pytest
from thinning import amount

import caviar as cv
from caviar.engine.starts.clustering.multiplied import multiplied
from caviar.engine.starts.products.low_rank import low_rank
from caviar.models.probabilistic_pca import MAXIMUM_LIKELIHOOD, POINT


def rank_two(rng, n_rows=60, n_columns=12, noise=0.0):
    values = rng.normal(size=(n_rows, 2)) @ rng.normal(size=(2, n_columns))
    return values + noise * rng.normal(size=values.shape)


def test_components_of_a_whole_table_in_one_unit_are_those_of_its_singular_vectors():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(30, 8))
    found = low_rank(values, None, np.ones(30), 3, "one", rng)
    left, sizes, right = np.linalg.svd(values, full_matrices=False)
    np.testing.assert_allclose(
        found.scores @ found.loadings.T, (left[:, :3] * sizes[:3]) @ right[:3], atol=1e-9
    )
    np.testing.assert_allclose(np.square(found.scores).mean(axis=0), 1.0)


@pytest.mark.parametrize("units", ["noise", "spread", "one"])
@pytest.mark.parametrize("share", [0.0, 0.2])
def test_a_weight_of_two_is_the_row_twice(units, share):
    rng = np.random.default_rng(1)
    values, weights = rank_two(rng, noise=0.3), rng.integers(1, 4, size=60)
    seen = None if share == 0.0 else rng.random(values.shape) > share
    once = low_rank(values, seen, weights.astype(float), 2, units, rng)
    every = np.repeat(np.arange(60), weights)
    twice = low_rank(values[every], None if seen is None else seen[every], np.ones(len(every)), 2, units, rng)
    np.testing.assert_allclose(
        (once.scores @ once.loadings.T)[every], twice.scores @ twice.loadings.T, atol=1e-8
    )


def test_missing_entries_of_a_table_of_low_rank_are_found():
    rng = np.random.default_rng(2)
    values = rank_two(rng, 80, 20)
    seen = rng.random(values.shape) > 0.15
    found = low_rank(np.where(seen, values, 0.0), seen, np.ones(80), 2, "one", rng)
    error = (found.scores @ found.loadings.T - values)[~seen]
    assert np.sqrt(np.mean(error**2)) < 0.1 * values.std()


def test_columns_of_little_noise_tell_the_scores():
    rng = np.random.default_rng(3)
    scores = rng.normal(size=500)
    noise = np.array([0.05, 0.05, 5.0, 5.0, 5.0, 5.0])
    values = scores[:, None] + noise * rng.normal(size=(500, 6))
    by_noise, by_one = (low_rank(values, None, np.ones(500), 1, units, rng) for units in ("noise", "one"))
    assert abs(np.corrcoef(by_noise.scores[:, 0], scores)[0, 1]) > 0.99
    assert abs(np.corrcoef(by_one.scores[:, 0], scores)[0, 1]) < 0.9


@pytest.mark.slow
def test_maximum_likelihood_of_probabilistic_pca_is_that_of_its_closed_form_from_every_seed():
    rng = np.random.default_rng(4)
    values = rank_two(rng, 100, 9, 0.4) * np.geomspace(0.1, 10, 9)
    largest = np.linalg.eigvalsh(np.cov(values, rowvar=False, bias=True))[::-1]
    noise = largest[3:].mean()
    expected = -50 * (9 * np.log(2 * np.pi) + np.log(largest[:3]).sum() + 6 * np.log(noise) + 9)
    model = cv.models.probabilistic_pca(9, 3, **MAXIMUM_LIKELIHOOD)
    for seed in range(3):
        posterior = model.fit({"x": values}, seed=seed, point=POINT)
        assert posterior.elbo == pytest.approx(expected, abs=0.01)


@pytest.mark.slow
def test_a_factor_of_rows_of_weight_two_is_that_of_the_rows_twice():
    rng = np.random.default_rng(5)
    values = rank_two(rng, 40, 6, 0.3)
    values[3, 2] = np.nan
    weights = rng.integers(1, 3, size=40)
    model = cv.models.factor_analysis(6, 3, relevance=True)
    weighted = model.fit({"x": values}, sample_weight=weights, seed=0)
    twice = model.fit({"x": np.repeat(values, weights, axis=0)}, seed=0)
    assert weighted.elbo == pytest.approx(twice.elbo, rel=1e-7)


def test_factors_of_an_earlier_fit_keep_their_axes():
    rng = np.random.default_rng(6)
    values = rng.normal(size=(200, 1)) * np.linspace(1, 2, 5) + 0.1 * rng.normal(size=(200, 5))
    model = cv.models.factor_analysis(5, 1)
    first = model.fit({"x": values[:150]}, seed=0)
    for seed in range(3):
        second = model.fit({"x": values[150:]}, prior=first, seed=seed)
        assert np.allclose(second["loadings"].mean, first["loadings"].mean, atol=0.2)


@pytest.mark.slow
def test_more_factors_than_columns_or_rows_begin_too():
    rng = np.random.default_rng(7)
    for shape in ((60, 3), (4, 12)):
        values = rng.normal(size=shape)
        posterior = cv.models.factor_analysis(shape[1], 5, relevance=True).fit({"x": values}, seed=0)
        assert np.isfinite(posterior.elbo)


@pytest.mark.parametrize("varies", [(True, True), (True, False), (False, True)])
def test_labels_whose_numbers_are_multiplied_are_found(varies):
    rng = np.random.default_rng(8)
    first, second = rng.uniform(1, 2, (3, 4)) + 3 * np.arange(3)[:, None], np.array([[-2.0], [1.0]])
    second = second * rng.uniform(0.5, 1.5, (2, 4))
    first, second = (
        own if is_own else own[:, :1] for own, is_own in zip((first, second), varies, strict=True)
    )
    z, v = rng.integers(3, size=300), rng.integers(2, size=300)
    points = first[z] * second[v] + 0.01 * rng.normal(size=(300, 4))
    (one, other), *_ = multiplied(points, np.ones(300), (3, 2), varies, rng, 2)
    assert len(set(zip(z, one, strict=True))) == 3
    assert len(set(zip(v, other, strict=True))) == 2


@pytest.mark.slow
def test_of_rates_that_three_labels_each_choose_every_seed_ends_at_the_same_height():
    """The ELBO gives up a category: the least squares of logarithms, with all of them, end 0.07 nats a row lower."""
    rng = np.random.default_rng(1)
    z, v = rng.integers(3, size=(2, 240))
    x = rng.gamma(4.0, 1 / (12.0**z * np.array([1.0, 2.5, 6.0])[v]))
    o, k, c = cv.Plate("o"), cv.Plate("k", 3), cv.Plate("c", 3)
    first = cv.Gamma("a", 1, 1, plates=k)[cv.Categorical("z", cv.Dirichlet("w", np.ones(3)), plates=o)]
    second = cv.Gamma("b", 1, 1, plates=c)[cv.Categorical("v", cv.Dirichlet("wv", np.ones(3)), plates=o)]
    model = cv.Model(cv.Gamma("x", 4.0, first * second, plates=o))
    merged = [
        model.fit({"x": x}, init={"z": np.where(z == 0, kept, z), "v": v}, seed=0).elbo for kept in (1, 2)
    ]
    ends = [model.fit({"x": x}, seed=seed).elbo for seed in range(amount(1, 2))]
    assert (max(merged) - min(ends)) / 240 < 0.01
    assert (max(ends) - min(ends)) / 240 < 0.01


def test_plain_vectors_and_parts_of_joint_factors_may_be_beside_a_product():
    """Known vectors without a name are no nodes; fits of such statements ended in an AttributeError."""
    rng = np.random.default_rng(0)
    obs = cv.Plate("obs")
    x = rng.normal(size=(30, 2))
    w, v = (
        cv.MultivariateNormal("w", np.zeros(2), np.eye(2)),
        cv.MultivariateNormal("v", np.ones(2), np.eye(2)),
    )
    mean = cv.dot(w, v) + 0.5 * cv.dot(cv.Data("x", plates=obs), w) + cv.dot(v, [1.0, 2.0])
    posterior = cv.Model(cv.Normal("y", mean, cv.Gamma("tau", 2, 2), plates=obs)).fit(
        {"x": x, "y": rng.normal(size=30)}, seed=0
    )
    assert np.isfinite(posterior.elbo)
    theta = cv.NormalGamma("theta", 0.0, 1.0, 2.0, 2.0)
    loading, score = cv.Normal("loading", 0, 1), cv.Normal("score", 0, 1, plates=obs)
    model = cv.Model(cv.Normal("y", loading * score + theta.mean, theta.precision, plates=obs))
    assert np.isfinite(model.fit({"y": rng.normal(size=30)}, seed=0).elbo)
