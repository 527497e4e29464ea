"""Sums by label are those of each row by itself, to the bit, and short rows are added up together."""

import numpy as np
import pytest

from caviar.numerics.sums.by_label import sums_by_label


@pytest.mark.parametrize("shape", [(1, 5), (3, 1), (400, 100), (700, 500), (5, 2_000), (4, 0), (0, 4)])
@pytest.mark.parametrize("kind", [np.int8, np.int64])
def test_sums_are_those_of_each_row(shape, kind):
    rng = np.random.default_rng(0)
    values, labels = rng.normal(size=shape), rng.integers(6, size=shape[1]).astype(kind)
    alone = np.array([np.bincount(labels, row, minlength=7) for row in values]).reshape(shape[0], 7)
    out = np.empty((shape[0], 7))
    np.testing.assert_array_equal(sums_by_label(values, labels, 7), alone)
    np.testing.assert_array_equal(sums_by_label(values.T.copy().T, labels, 7, out), alone)
    np.testing.assert_array_equal(out, alone)


def test_short_rows_take_few_calls(monkeypatch):
    calls, bincount = [], np.bincount
    monkeypatch.setattr(np, "bincount", lambda *own, **named: calls.append(1) or bincount(*own, **named))
    sums_by_label(np.ones((400, 100)), np.arange(100) % 7, 7)
    assert len(calls) < 4
