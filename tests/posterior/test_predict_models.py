"""Predictions of every model of the registry: the moments of draws."""

import numpy as np
import pytest
from invariants.registry import CASES

import caviar as cv

N_DRAWS = 300


@pytest.mark.thinned(36)
@pytest.mark.parametrize("name", CASES)
def test_the_mean_is_that_of_draws(name):
    data = CASES[name].draw(np.random.default_rng(1), 60)
    posterior = CASES[name].fit(data)
    leaves = {leaf.name: leaf for leaf in posterior.model.leaves}
    new = {column: values for column, values in data.items() if column not in leaves}
    found = posterior.predict(new)
    draws = posterior.predictive({} if new else {"obs": 1}, data=new, n_draws=N_DRAWS, seed=3)
    assert set(found) == set(leaves)
    for name, leaf in leaves.items():
        drawn = np.eye(leaf.dimension)[draws[name]] if isinstance(leaf, cv.Categorical) else draws[name]
        rows = [plate.name for plate in leaf.plates].index("obs")
        difference = np.moveaxis(drawn, rows + 1, 1).mean(axis=0) - found[name].mean
        assert np.all(np.abs(difference) < 4 * found[name].standard_deviation / np.sqrt(N_DRAWS))


def test_a_group_without_rows_is_predicted_by_one_group_more():
    rng = np.random.default_rng(5)
    group = np.repeat(np.arange(4), 10)
    features = np.column_stack([np.ones(40), rng.normal(size=40)])
    y = (rng.normal([1.0, 2.0], 0.5, (4, 2))[group] * features).sum(axis=1) + rng.normal(0, 0.3, 40)
    data = {"X": features, "y": y, "group": group}
    fits = [cv.models.varying_coefficients(2, k).fit(data, tol=1e-12, max_iter=5000) for k in (4, 5)]
    assert fits[1].elbo == pytest.approx(fits[0].elbo, abs=1e-6)
    np.testing.assert_allclose(fits[1]["population"].mean, fits[0]["population"].mean, atol=1e-5)
    new = fits[1].predict({"X": [[1.0, 2.0]], "group": [4]})["y"]
    assert new.mean[0] == pytest.approx(fits[0]["population"].mean @ [1.0, 2.0], abs=1e-4)
    with pytest.raises(cv.DataError, match="from 0 to 3"):
        fits[0].predict({"X": [[1.0, 2.0]], "group": [4]})
