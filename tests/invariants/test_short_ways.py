"""Short ways of small tables give the bits of the long ones: samples without hashes, moments of one block, sweeps."""

from __future__ import annotations

import numpy as np
import pytest
from tests.thinning import amount

import caviar as cv
from caviar.data import ArrayRows
from caviar.engine.ascent.problem import statistics_of
from caviar.engine.design.keys import ColumnKey
from caviar.engine.rows import subsample
from caviar.engine.rows.row_map import RowMap
from caviar.engine.starts.factors.swept import _as_before, _order_of_sweep
from caviar.execution.threads import Threads
from caviar.fitting.model import assembled
from caviar.lazy.moments import moments


def test_few_rows_are_told_apart_by_their_values_as_by_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    rng, short = np.random.default_rng(0), subsample._few_distinct
    n_short = 0
    for number in range(amount(60, 400)):
        n_rows = int(rng.integers(1, 60))
        signs = rng.choice([1.0, -0.0, 1.0], (n_rows, 1))
        columns = {ColumnKey("x"): rng.integers(-2, 3, (n_rows, int(rng.integers(1, 3)))) * signs}
        if number % 2:
            columns[ColumnKey("a")] = rng.integers(0, 2, n_rows)
        weights = None if number % 3 == 0 else rng.integers(0, 3, n_rows).astype(float)
        if weights is not None and not weights.any():
            continue
        source = ArrayRows(columns, n_rows, weights)
        n_short += short(source) is not None
        monkeypatch.setattr(subsample, "_few_distinct", short)
        one = subsample.sample_of(source)
        monkeypatch.setattr(subsample, "_few_distinct", lambda source: None)
        other = subsample.sample_of(source)
        assert list(one.columns) == list(other.columns)
        for key, rows in one.columns.items():
            assert rows.tobytes() == other.columns[key].tobytes()
        assert one.row_weights.tobytes() == other.row_weights.tobytes()
        assert one.is_part == other.is_part
    assert n_short > 40


def test_moments_of_one_block_are_those_of_rows_with_weight_one() -> None:
    rng = np.random.default_rng(1)
    for number in range(amount(100, 1000)):
        n_rows = int(rng.integers(1, 400))
        shape = [(n_rows,), (n_rows, 2), (n_rows, 3, 2)][number % 3]
        rows = rng.normal(size=shape) * 10.0 ** rng.integers(-8, 8) + 10.0 ** rng.integers(-3, 6)
        if number % 5 == 0:
            rows = np.asfortranarray(rows)
        if number % 7 == 0:
            rows[...] = rows.flat[0]
        one, other = moments(rows, None), moments(rows, np.ones(n_rows))
        for name in ("mean", "spread", "largest"):
            assert getattr(one, name).tobytes() == getattr(other, name).tobytes()


def test_globals_of_rows_alone_have_the_same_update_whatever_the_other_globals_are() -> None:
    model = cv.models.gaussian_mixture(2, 2)
    rows = cv.datasets.load_faithful().values
    problem = assembled(model, {"x": rows}, ())
    alone = _as_before(problem, _order_of_sweep(problem)[0])
    assert {variable.name for variable in alone} == {"weights"}
    posteriors = [model.fit({"x": rows}, seed=seed, max_iter=seed) for seed in (1, 2)]
    found = []
    sums = None
    for posterior in posteriors:
        q = {variable: posterior[variable.name] for variable in problem.order}
        arrays = statistics_of(problem, q)
        if sums is None:
            sums = {key: np.full(2, 136.0) for key in problem.compiled.parts}
        arrays.update(sums)
        found.append([problem.update(variable, arrays) for variable in alone])
    assert found[0][0].concentration.tobytes() == found[1][0].concentration.tobytes()


@pytest.mark.parametrize("weights", [None, np.ones(60)])
def test_counted_rows_are_the_sums_that_no_factor_enters(
    weights: np.ndarray | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = np.random.default_rng(3).normal(size=(60, 2))
    model = cv.models.gaussian_mixture(2, 2)
    problem = assembled(model, {"x": X}, ())
    source = ArrayRows({ColumnKey("x"): X}, 60, weights)
    short = RowMap(problem.rows, source, Threads(1)).fixed
    monkeypatch.setattr(type(problem.rows), "static_of", lambda own, n_rows: None)
    long = RowMap(problem.rows, source, Threads(1)).fixed
    assert short.fused.keys() == long.fused.keys() != set()
    for key, total in short.fused.items():
        assert total.tobytes() == long.fused[key].tobytes()


def test_rows_of_other_weights_are_not_counted() -> None:
    X, weights = np.random.default_rng(3).normal(size=(60, 2)), np.full(60, 0.5)
    problem = assembled(cv.models.gaussian_mixture(2, 2), {"x": X}, ())
    source = ArrayRows({ColumnKey("x"): X}, 60, weights)
    (total,) = RowMap(problem.rows, source, Threads(1)).fixed.fused.values()
    assert total.item() == 30.0
