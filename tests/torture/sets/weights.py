"""Ordinary rows of odd weights."""

import numpy as np

from torture.case import Case, blobs


def _spread(low, high):
    return lambda rng, n: 10.0 ** rng.uniform(low, high, n)


CASES = [
    Case("weights of 1", "the same as none", blobs, weigh=lambda rng, n: np.ones(n)),
    Case("whole weights", "0 to 4 times each row", blobs, weigh=lambda rng, n: rng.integers(0, 5, n)),
    Case("fractional weights", "weights between 0 and 1", blobs, weigh=lambda rng, n: rng.random(n)),
    Case(
        "weights of float32",
        "fractions in single precision",
        blobs,
        weigh=lambda rng, n: rng.random(n).astype("f4"),
    ),
    Case("weights as a list", "no array", blobs, weigh=lambda rng, n: [1.0, 2.0] * (n // 2)),
    Case("weights that are booleans", "rows left out", blobs, weigh=lambda rng, n: rng.random(n) < 0.5),
    Case(
        "zero weights",
        "half of the rows count nothing",
        blobs,
        weigh=lambda rng, n: (np.arange(n) % 2).astype(float),
    ),
    Case(
        "zero weights of rows far out",
        "rows at 1e150 that count nothing",
        lambda rng: np.r_[blobs(rng), np.full((4, 2), 1e150)],
        weigh=lambda rng, n: (np.arange(n) < n - 4) * 1.0,
    ),
    Case(
        "zero weights of rows beyond a double's square",
        "rows at 1e300 that count nothing",
        lambda rng: np.r_[blobs(rng), np.full((4, 2), 1e300)],
        weigh=lambda rng, n: (np.arange(n) < n - 4) * 1.0,
    ),
    Case(
        "all weight on one row",
        "one row of weight 1, the rest 0",
        blobs,
        weigh=lambda rng, n: (np.arange(n) == 3) * 1.0,
        refused_by_em="at least as many rows",
    ),
    Case(
        "nearly all weight on one row",
        "one row of weight 1, the rest 1e-12",
        blobs,
        weigh=lambda rng, n: np.where(np.arange(n) == 3, 1.0, 1e-12),
    ),
    Case(
        "no weight at all",
        "all weights are zero",
        blobs,
        weigh=lambda rng, n: np.zeros(n),
        refused="weight",
        refused_by_em="weight",
    ),
    Case("weights of 1e12", "every row counts 1e12 times", blobs, weigh=lambda rng, n: np.full(n, 1e12)),
    Case("weights of 1e100", "more rows than there are atoms", blobs, weigh=lambda rng, n: np.full(n, 1e100)),
    Case(
        "weights of 1e-12", "every row counts next to nothing", blobs, weigh=lambda rng, n: np.full(n, 1e-12)
    ),
    Case("weights of 1e-100", "hardly any row at all", blobs, weigh=lambda rng, n: np.full(n, 1e-100)),
    Case(
        "weights of 1e-320",
        "subnormal weights",
        blobs,
        weigh=lambda rng, n: np.full(n, 1e-320),
        refused="multiply all weights by a number",
    ),
    Case("weights that sum to one", "normalised", blobs, weigh=lambda rng, n: np.full(n, 1.0 / n)),
    Case("weights of 1e-12 to 1e12", "over 24 powers of ten", blobs, weigh=_spread(-12, 12)),
    Case("weights of 1e-100 to 1e100", "over 200 powers of ten", blobs, weigh=_spread(-100, 100)),
    Case(
        "one weight of 1e12",
        "one row outweighs all",
        blobs,
        weigh=lambda rng, n: np.where(np.arange(n) == 3, 1e12, 1.0),
    ),
    Case("weights of 0.3", "no row counts as one", blobs, weigh=lambda rng, n: np.full(n, 0.3)),
    Case(
        "negative weights",
        "a weight below 0",
        blobs,
        weigh=lambda rng, n: np.full(n, -1.0),
        refused="egative",
        refused_by_em="egative",
    ),
    Case(
        "a weight that is missing",
        "NaN among the weights",
        blobs,
        weigh=lambda rng, n: np.where(np.arange(n) == 3, np.nan, 1.0),
        refused="NaN",
        refused_by_em="NaN",
    ),
    Case(
        "a weight too few",
        "one weight fewer than rows",
        blobs,
        weigh=lambda rng, n: np.ones(n - 1),
        refused="sample_weight",
        refused_by_em="sample_weight",
    ),
]
