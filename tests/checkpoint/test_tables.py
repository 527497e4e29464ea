"""A fit goes on from its checkpoint wherever the rows are: in an array, or in tables that are read in blocks."""

import numpy as np
import pytest
from data import stored

import caviar as cv
from checkpoint.comparing import Broken, after, assert_same_bits

pytestmark = pytest.mark.first_guess

RNG = np.random.default_rng(0)
X = RNG.standard_normal((12_000, 2)) + 2.0 * RNG.integers(0, 3, (12_000, 1))
COLUMNS = {"a": X[:, 0].copy(), "b": X[:, 1].copy()}


def fit(x, **arguments):
    return cv.models.normal_wishart_mixture(2, 3).fit({"x": x}, seed=0, max_iter=6, tol=0.0, **arguments)


@pytest.mark.thinned(9)
@pytest.mark.parametrize("schedule", ["batch", cv.Incremental(3), cv.Stochastic(2_000)])
@pytest.mark.parametrize("store", stored.SCANNED[::3])
def test_what_began_with_an_array_goes_on_with_a_table(store, schedule, tmp_path):
    kept = {"schedule": schedule, "checkpoint": tmp_path / "run.ckpt", "checkpoint_every": 0}
    with pytest.raises(Broken):
        fit(X, **kept, progress=after(2))
    (tmp_path / "table").mkdir()
    with pytest.raises(Broken):
        fit(store(COLUMNS, tmp_path / "table"), **kept, progress=after(2))
    assert_same_bits(fit(X, **kept), fit(X, schedule=schedule))


def test_another_table_is_told(tmp_path):
    table = stored.large_row_group(COLUMNS, tmp_path)
    fit(table, checkpoint=tmp_path / "run.ckpt")
    (tmp_path / "other").mkdir()
    other = stored.large_row_group({**COLUMNS, "b": COLUMNS["b"] + 1e-6}, tmp_path / "other")
    with pytest.raises(cv.CheckpointError, match="its data differ"):
        fit(other, checkpoint=tmp_path / "run.ckpt")
