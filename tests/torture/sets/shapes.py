"""Shapes that no Gaussian has, and orders of the rows."""

import numpy as np

from torture.case import Case, blobs, noise


def _angle(n):
    return 2 * np.pi * np.arange(n) / n


def _ring(n, radius=1.0):
    return radius * np.c_[np.cos(_angle(n)), np.sin(_angle(n))]


def _spiral(n):
    t = np.linspace(0.5, 4 * np.pi, n)
    return np.c_[t * np.cos(t), t * np.sin(t)]


def _two_rings_linked(n):
    a = _angle(n)
    return np.r_[np.c_[np.cos(a), np.sin(a), 0 * a], np.c_[1 + np.cos(a), 0 * a, np.sin(a)]]


CASES = [
    Case("a line", "equal steps on a line", lambda rng: np.linspace(0, 1, 50)[:, None] * [1.0, 1.0]),
    Case(
        "two parallel lines",
        "each of no width",
        lambda rng: np.c_[np.tile(np.linspace(0, 1, 25), 2), np.repeat([0.0, 1.0], 25)],
        2,
    ),
    Case(
        "two lines that cross",
        "a cross, symmetric",
        lambda rng: (lambda t: np.r_[np.c_[t, t], np.c_[t, -t]])(np.linspace(-1, 1, 25)),
        2,
    ),
    Case("a parabola", "x and its square", lambda rng: np.linspace(-1, 1, 50)[:, None] ** [1, 2]),
    Case("a ring", "points of a circle at equal angles", lambda rng: _ring(60), 4),
    Case("a ring, K = 2", "any diameter is as good as another", lambda rng: _ring(60), 2),
    Case("two rings", "one inside the other", lambda rng: np.r_[_ring(40), _ring(40, 3.0)], 2),
    Case("linked rings", "two rings in three dimensions", lambda rng: _two_rings_linked(30), 2),
    Case("a spiral", "two turns", lambda rng: _spiral(80), 6),
    Case("a helix", "a spiral in space", lambda rng: np.c_[_ring(60), np.linspace(0, 1, 60)], 4),
    Case(
        "a sphere",
        "directions in 5 dimensions",
        lambda rng: (lambda x: x / np.linalg.norm(x, axis=1, keepdims=True))(noise(rng, 60, 5)),
    ),
    Case(
        "a moon in a moon",
        "two half circles",
        lambda rng: np.r_[_ring(60)[:30], 1.0 - _ring(60)[:30] - [0.0, 0.5]],
        4,
    ),
    Case("a sine", "50 steps of a wave", lambda rng: np.sin(np.arange(50.0))[:, None], 3),
    Case("sorted rows", "clusters one after the other", lambda rng: np.sort(blobs(rng, 60, 1), axis=0)),
    Case("sorted columns", "each column sorted by itself", lambda rng: np.sort(blobs(rng, 60), axis=0)),
    Case("a trend", "a random walk", lambda rng: noise(rng, 100).cumsum(axis=0)),
    Case(
        "mirror images",
        "rows and their mirror images",
        lambda rng: (lambda x: np.r_[x, x * [-1, 1]])(noise(rng)),
        2,
    ),
    Case(
        "a start at a saddle",
        "two equal clusters, of which both components begin with half",
        lambda rng: (lambda x: np.r_[x, -x])(noise(rng, 30) + np.array([3.0, 0.0])),
        2,
    ),
    Case(
        "concentric clusters",
        "two of one mean, widths 1 and 10",
        lambda rng: np.r_[noise(rng, 50), 10.0 * noise(rng, 50)],
        2,
    ),
    Case(
        "a simplex of clusters",
        "five clusters, all equally far from each other",
        lambda rng: 20.0 * np.eye(5)[np.arange(60) % 5] + noise(rng, 60, 5),
        5,
    ),
    Case(
        "needles",
        "clusters 1e6 times as long as wide",
        lambda rng: np.r_[noise(rng, 30) * [1e3, 1e-3], noise(rng, 30) * [1e-3, 1e3]],
        2,
    ),
    Case("exponential growth", "1, 2, 4, ... 2^60", lambda rng: 2.0 ** np.arange(61)[:, None]),
    Case(
        "Fibonacci",
        "numbers that become a line of the golden ratio",
        lambda rng: np.array([(a, b) for a, b in _fibonacci(60)], dtype=float),
    ),
]


def _fibonacci(n):
    a, b = 1, 1
    for _ in range(n):
        yield a, b
        a, b = b, a + b
