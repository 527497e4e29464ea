"""A column that numbers the rows is told from one that measures something, whole, in blocks, and from its moments."""

import numpy as np
import pytest

from caviar.data.row_numbers import RowNumbers, has_moments_of_row_numbers, numbers_rows

RNG = np.random.default_rng(0)
N = 150
INDEX = {
    "1 to N": np.arange(1.0, N + 1),
    "0 to N - 1": np.arange(float(N)),
    "downwards": np.arange(N, 0.0, -1),
    "shuffled": RNG.permutation(N) + 1.0,
    "from a million": RNG.permutation(N) + 1e6,
    "by tens": 10.0 * np.arange(N),
    "by tenths": 0.1 * np.arange(N),
    "large steps": 1e12 + 3e5 * np.arange(N),
}
PART = {
    "four of five": np.sort(RNG.permutation(N)[:120]) + 1.0,
    "four of five, shuffled": RNG.permutation(N)[:120] + 1.0,
    "with holes": np.where(RNG.random(N) < 0.2, np.nan, np.arange(1.0, N + 1)),
}
MEASURED = {
    "Normal": RNG.normal(size=N),
    "sorted": np.sort(RNG.normal(size=N)),
    "squares": np.arange(float(N)) ** 2,
    "ages": RNG.integers(18, 90, N).astype(float),
    "categories": RNG.integers(0, 3, N).astype(float),
    "constant": np.full(N, 3.0),
    "missing": np.full(N, np.nan),
    "one wrong": np.arange(float(N)) + 0.5 * np.eye(N)[70],
    "one twice": np.concatenate([np.arange(float(N - 1)), [7.0]]),
    "shuffled fractions": RNG.permutation(N) / 7,
    "whole and far apart": RNG.choice(100_000, N, replace=False).astype(float),
    "few": np.arange(1.0, 6.0),
}


@pytest.mark.parametrize("name", [*INDEX, *PART])
def test_an_index_is_found(name):
    assert numbers_rows({**INDEX, **PART}[name])


@pytest.mark.parametrize("name", MEASURED)
def test_what_is_measured_is_none(name):
    assert not numbers_rows(MEASURED[name])


@pytest.mark.parametrize("size", [1, 7, 64, N])
def test_blocks_tell_the_same(size):
    for name, column in {**INDEX, **MEASURED}.items():
        found = RowNumbers()
        for start in range(0, N, size):
            found.add(column[start : start + size])
        assert found.are_found == (name in INDEX), name


def test_moments_of_steps_of_one():
    for name, column in {**INDEX, **MEASURED}.items():
        expected = name in INDEX and np.ptp(column) == N - 1
        found = has_moments_of_row_numbers(len(column), float(np.mean(column)), float(np.std(column)))
        assert found == expected, name
    assert not has_moments_of_row_numbers(0, 0.0, 0.0)
