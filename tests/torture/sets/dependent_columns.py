"""Columns that say the same, or nothing."""

import numpy as np

from torture.case import Case, blobs, noise


def _one_hot(rng, n=45, levels=4):
    return np.eye(levels)[rng.integers(0, levels, n)]


def _rank(rng, rank, d, n=40):
    return noise(rng, n, rank) @ noise(rng, rank, d)


def _nearly(rng, size):
    x = noise(rng, 40, 1)
    return np.c_[x, x + size * noise(rng, 40, 1)]


CASES = [
    Case("collinear", "three columns on one line", lambda rng: noise(rng, 40, 1) * [1.0, 2.0, 3.0]),
    Case(
        "collinear, 1e8 away", "a line far from the origin", lambda rng: noise(rng, 40, 1) * [1.0, 2.0] + 1e8
    ),
    Case("collinear but for 1e-6", "a line with a little noise", lambda rng: _nearly(rng, 1e-6)),
    Case("collinear but for 1e-9", "a line with less noise", lambda rng: _nearly(rng, 1e-9)),
    Case("collinear but for 1e-12", "a line with hardly any noise", lambda rng: _nearly(rng, 1e-12)),
    Case(
        "collinear but for 1e-15",
        "a line with noise of the size of rounding",
        lambda rng: _nearly(rng, 1e-15),
    ),
    Case("anti-collinear", "a column and its negative", lambda rng: noise(rng, 40, 1) * [1.0, -1.0]),
    Case("duplicated column", "the same column twice", lambda rng: np.repeat(blobs(rng, 40, 1), 2, axis=1)),
    Case("every column 5 times", "two columns, five times each", lambda rng: np.tile(blobs(rng), 5)),
    Case(
        "a column that is a sum",
        "the third column is the sum of the others",
        lambda rng: (lambda x: np.c_[x, x.sum(axis=1)])(blobs(rng)),
    ),
    Case(
        "a column that is a difference of large ones",
        "columns of 1e8, and what they differ by",
        lambda rng: (lambda x: np.c_[x + 1e8, x[:, 0] - x[:, 1]])(noise(rng)),
    ),
    Case(
        "shares that sum to one", "compositions: rows of a simplex", lambda rng: rng.dirichlet(np.ones(4), 50)
    ),
    Case(
        "sparse shares",
        "compositions near the corners of a simplex",
        lambda rng: rng.dirichlet(np.full(4, 0.05), 50),
    ),
    Case("rank 1 of 8", "eight columns made of one", lambda rng: _rank(rng, 1, 8)),
    Case("rank 2 of 8", "eight columns made of two", lambda rng: _rank(rng, 2, 8)),
    Case("rank 7 of 8", "eight columns, one superfluous", lambda rng: _rank(rng, 7, 8)),
    Case("rank 5 of 60", "sixty columns made of five", lambda rng: _rank(rng, 5, 60)),
    Case("a constant column", "the third column is 3", lambda rng: np.c_[blobs(rng), np.full(40, 3.0)]),
    Case("a column of zeros", "the third column is 0", lambda rng: np.c_[blobs(rng), np.zeros(40)]),
    Case(
        "a constant column of 1e10",
        "the third column is large",
        lambda rng: np.c_[blobs(rng), np.full(40, 1e10)],
    ),
    Case(
        "a constant column of 0.1",
        "a constant whose mean is not exact",
        lambda rng: np.c_[blobs(rng), np.full(40, 0.1)],
    ),
    Case(
        "constant columns only but one",
        "one column of four varies",
        lambda rng: np.c_[blobs(rng, 40, 1), np.ones((40, 3))],
    ),
    Case(
        "constant but for one row",
        "the third column is 0, and once 1",
        lambda rng: np.c_[blobs(rng), np.arange(40) == 7],
    ),
    Case(
        "constant but for 1e-12",
        "the third column varies by little",
        lambda rng: np.c_[blobs(rng), 3.0 + 1e-12 * noise(rng, 40, 1)],
    ),
    Case(
        "constant but for the last bit",
        "the third column varies by rounding",
        lambda rng: np.c_[blobs(rng), np.where(np.arange(40) % 2, 0.1, np.nextafter(0.1, 1))],
    ),
    Case("one-hot columns", "four columns that sum to one", _one_hot),
    Case(
        "one-hot columns beside numbers",
        "one-hot columns of 3 levels and two numbers",
        lambda rng: np.c_[_one_hot(rng, 45, 3), blobs(rng, 45)],
    ),
    Case(
        "a level never seen",
        "a one-hot column that is always 0",
        lambda rng: np.c_[_one_hot(rng, 45, 3), np.zeros(45)],
    ),
    Case("identity matrix", "each row its own column", lambda rng: np.eye(12)),
    Case(
        "a Hilbert matrix",
        "rows of a matrix that is singular to rounding",
        lambda rng: 1.0 / (np.arange(12)[:, None] + np.arange(12) + 1),
    ),
    Case(
        "a Vandermonde matrix",
        "powers 0 to 9 of 30 numbers",
        lambda rng: np.vander(rng.uniform(0, 3, 30), 10),
    ),
    Case(
        "clusters in different subspaces",
        "each cluster lacks another column",
        lambda rng: np.r_[noise(rng, 20, 3) * [1, 1, 0], noise(rng, 20, 3) * [0, 1, 1] + 5.0],
    ),
    Case(
        "a flat cluster and a round one",
        "one cluster is a line, the other is not",
        lambda rng: np.r_[noise(rng, 20, 1) * [1.0, 1.0], noise(rng, 20, 2) + 8.0],
        2,
    ),
]
