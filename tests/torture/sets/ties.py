"""Rows that are equal, or on a grid."""

import numpy as np

from torture.case import Case, blobs, noise


def _grid(*sizes):
    return np.stack(np.meshgrid(*map(np.arange, sizes)), axis=-1).reshape(-1, len(sizes)).astype(float)


CASES = [
    Case("all equal", "fifty times the same row", lambda rng: np.repeat(noise(rng, 1), 50, axis=0)),
    Case(
        "all equal, 1 component",
        "fifty times the same row",
        lambda rng: np.repeat(noise(rng, 1), 50, axis=0),
        1,
    ),
    Case(
        "all equal at 1e8",
        "the same row far from the origin",
        lambda rng: np.repeat(noise(rng, 1) + 1e8, 50, axis=0),
    ),
    Case(
        "all equal, 30 columns",
        "the same row, more columns than rows",
        lambda rng: np.repeat(noise(rng, 1, 30), 20, axis=0),
    ),
    Case("all zero", "nothing but zeros", lambda rng: np.zeros((20, 2))),
    Case("zeros of both signs", "0.0 and -0.0", lambda rng: np.where(noise(rng) > 0, 0.0, -0.0)),
    Case(
        "all zero but one entry",
        "a single 1",
        lambda rng: np.where(np.arange(40).reshape(20, 2) == 7, 1.0, 0.0),
    ),
    Case("two points", "two rows, 25 times each", lambda rng: np.repeat(noise(rng, 2), 25, axis=0)),
    Case(
        "two points, 2 components",
        "each point is a cluster",
        lambda rng: np.repeat(noise(rng, 2), 25, axis=0),
        2,
    ),
    Case(
        "two points, 1e-9 apart",
        "two clusters that nearly coincide",
        lambda rng: np.repeat([[1.0, 1.0], [1.0 + 1e-9, 1.0]], 25, axis=0),
        2,
    ),
    Case(
        "three points, 8 components",
        "fewer distinct rows than components",
        lambda rng: np.repeat(noise(rng, 3), 20, axis=0),
        8,
    ),
    Case(
        "points and noise",
        "one value 200 times among others",
        lambda rng: np.r_[noise(rng), np.full((200, 2), 5.0)],
        4,
    ),
    Case("heavy ties", "whole numbers from 0 to 3", lambda rng: rng.integers(0, 4, (60, 2)).astype(float)),
    Case(
        "heavy ties in one column",
        "one column of whole numbers, one of numbers",
        lambda rng: np.c_[rng.integers(0, 2, 60), noise(rng, 60, 1)],
    ),
    Case("rounded to one digit", "clusters rounded to 0.1", lambda rng: blobs(rng).round(1)),
    Case("zeros and ones", "binary columns", lambda rng: rng.integers(0, 2, (60, 5)).astype(float), 6),
    Case("mostly zeros", "95 % zeros", lambda rng: noise(rng, 60, 5) * (rng.random((60, 5)) < 0.05)),
    Case("counts", "Poisson counts, rare", lambda rng: rng.poisson(0.3, (60, 3)).astype(float)),
    Case("large counts", "Poisson counts, many", lambda rng: rng.poisson([1e3, 1e6], (60, 2)).astype(float)),
    Case("a line of whole numbers", "0, 1, 2, ... 49", lambda rng: np.arange(50.0)[:, None]),
    Case("a square lattice", "7 x 7 points of a grid", lambda rng: _grid(7, 7), 4),
    Case("a cubic lattice", "4 x 4 x 4 points of a grid", lambda rng: _grid(4, 4, 4), 8),
    Case("a lattice far away", "7 x 7 points of a grid at 1e12", lambda rng: _grid(7, 7) + 1e12, 4),
    Case("corners of a cube", "the eight corners", lambda rng: _grid(2, 2, 2), 2),
    Case("corners of a cube, K = 8", "a component for each corner", lambda rng: _grid(2, 2, 2), 8),
    Case("corners of a simplex", "points at equal distances", lambda rng: np.eye(4), 2),
    Case("every row twice", "each row stands there twice", lambda rng: np.repeat(blobs(rng, 30), 2, axis=0)),
    Case(
        "every row and its negative",
        "the mean is exactly 0",
        lambda rng: (lambda x: np.r_[x, -x])(noise(rng)),
        2,
    ),
    Case(
        "four points of a square",
        "the saddle of two components at the centre",
        lambda rng: np.repeat([[1.0, 0], [-1, 0], [0, 1], [0, -1]], 10, axis=0),
        2,
    ),
    Case(
        "exactly symmetric columns",
        "exchanging the columns gives the same rows",
        lambda rng: (lambda x: np.r_[x, x[:, ::-1]])(blobs(rng, 20)),
        2,
    ),
]
