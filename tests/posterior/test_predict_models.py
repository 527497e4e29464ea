"""Predictions of every model of the registry: the moments of draws, or a refusal that says why."""

import numpy as np
import pytest
from invariants.registry import CASES

import caviar as cv

N_DRAWS = 300

REFUSED = {"measured", "measured-apart", "deconvolved"}


@pytest.mark.thinned(5)
@pytest.mark.parametrize("name", [name for name in CASES if name not in REFUSED])
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


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_a_hidden_value_with_hidden_parents_is_refused(name):
    data = CASES[name].draw(np.random.default_rng(1), 60)
    posterior = CASES[name].fit(data)
    with pytest.raises(cv.ModelError, match=r"the local 't' has no observation.*posterior\.predictive"):
        posterior.predict({name: values for name, values in data.items() if name != "x"})
