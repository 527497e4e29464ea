"""Log joint densities of draws together are those of each draw."""

import warnings

import numpy as np
import pytest
from random_models.at_large import drawn

from caviar.testing._draws import log_joints, one_of, stacked

# with labels, chains of states and of vectors, sparse effects, joint factors of mean and precision
SEEDS = range(5000, 5040)


@pytest.mark.parametrize("part", range(4))
def test_densities_of_random_models(part: int):
    for seed in SEEDS[part::4]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            stated, data, _, n_rows = drawn(seed)
        hidden = [name for name in stated.model.variables if name not in data]
        draws = [stated.simulate_all(seed + i, n_rows) for i in range(3)]
        values = {name: stacked([draw[name] for draw in draws]) for name in hidden}
        found = log_joints(stated.model.nodes, data, values, 3)
        each = [stated.model.log_joint({**data, **one_of(values, i)}) for i in range(3)]
        np.testing.assert_allclose(found, each, rtol=1e-9)
