"""Rows that known probabilities of zero rule out are found where they lie, and named by their place in all."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import caviar as cv

distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")

COLOURS = np.array([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]])
STEPS = np.array([[0.5, 0.5, 0.0], [0.0, 0.6, 0.4], [0.0, 0.0, 1.0]])


def mixture():
    obs, kind = cv.Plate("obs"), cv.Plate("kind", 2)
    z = cv.Categorical("z", cv.Dirichlet("w", [1.0, 1.0]), plates=obs)
    pair = cv.Plate("pair", 2)
    table = cv.Constant("p", COLOURS, plates=kind)
    return cv.Model(cv.Categorical("x", table[z], plates=(obs, pair)))


def chain():
    time, state = cv.Plate("time"), cv.Plate("state", 3)
    s = cv.MarkovChain("s", [1.0, 0.0, 0.0], STEPS, along=time, starts=cv.Data("starts", plates=time))
    return cv.Model(cv.Categorical("x", cv.Constant("p", np.eye(3), plates=state)[s], plates=time))


def test_rows_of_a_cluster(client):
    rng = np.random.default_rng(0)
    x = np.where(rng.random((60_000, 1)) < 0.5, [[0, 1]], [[1, 2]])
    lazy = da.from_array(x, chunks=(7_000, 2))
    here = mixture().fit({"x": x}, seed=0)
    there = mixture().fit({"x": lazy}, seed=0, executor=client)
    assert there.elbo == here.elbo
    x[[31_234, 50_000]] = [0, 2]
    for executor in (client, None):
        with pytest.raises(cv.DataError, match=r"row 31234 is impossible: .* \('x' is \[0 2\]\)"):
            mixture().fit({"x": da.from_array(x, chunks=(7_000, 2))}, seed=0, executor=executor)
    weights = np.ones(60_000)
    weights[31_234] = 0.0
    with pytest.raises(cv.DataError, match="row 50000 is impossible"):
        mixture().fit({"x": lazy * 0 + x}, seed=0, sample_weight=weights, executor=client)


@pytest.mark.slow
def test_sequences_of_a_cluster(client):
    x, starts = np.tile([0, 1, 1, 2, 2, 2], 4_000), np.tile([1, 0, 0, 0, 0, 0], 4_000)
    here = chain().fit({"x": x, "starts": starts})
    assert_allclose(here.elbo, 4_000 * np.log(0.5 * 0.6 * 0.4), rtol=1e-12)
    assert chain().fit({"x": x, "starts": starts}, executor=client).elbo == here.elbo
    x[6 * 3_000 + 3] = 0
    with pytest.raises(cv.DataError, match=r"begins at row 18000 is impossible: .* row 18003 allows"):
        chain().fit({"x": x, "starts": starts}, executor=client)
