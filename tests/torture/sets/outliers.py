"""Rows far out, and heavy tails."""

import numpy as np

from torture.case import Case, blobs, noise


def _with_outlier(rng, where):
    return np.r_[blobs(rng), np.broadcast_to(np.asarray(where, float), (1, 2))]


CASES = [
    *(
        Case(
            f"one outlier at {where:g}", "one row far out", lambda rng, where=where: _with_outlier(rng, where)
        )
        for where in (1e3, 1e6, 1e9, 1e12, 1e15, 1e18, 1e50, 1e100, 1e150)
    ),
    Case(
        "one outlier at 1e12, K = 1", "one component has to take it", lambda rng: _with_outlier(rng, 1e12), 1
    ),
    Case(
        "one outlier at 1e300",
        "its square is beyond a double",
        lambda rng: _with_outlier(rng, 1e300),
        refused="units",
    ),
    Case("an outlier in one column", "one entry at 1e12", lambda rng: _with_outlier(rng, [1e12, 0.0])),
    Case(
        "two outliers, opposite",
        "at 1e12 and -1e12",
        lambda rng: np.r_[blobs(rng), [[1e12, 1e12], [-1e12, -1e12]]],
    ),
    Case(
        "outliers at every power",
        "1e0 to 1e12 beside a cluster",
        lambda rng: np.r_[noise(rng), 10.0 ** np.arange(13)[:, None] * [1.0, 1.0]],
        5,
    ),
    Case(
        "20 outliers at one point",
        "an outlier, twenty times",
        lambda rng: np.r_[blobs(rng), np.full((20, 2), 1e9)],
    ),
    Case("Cauchy", "no mean, no variance", lambda rng: rng.standard_cauchy((80, 2))),
    Case("Cauchy, 1 column", "the same in one column", lambda rng: rng.standard_cauchy((80, 1))),
    Case("Cauchy, 10 columns", "the same in ten columns", lambda rng: rng.standard_cauchy((80, 10)), 5),
    Case(
        "Cauchy to the third power",
        "tails that are far heavier",
        lambda rng: rng.standard_cauchy((80, 2)) ** 3,
    ),
    Case("log-normal, sigma = 3", "heavy on one side", lambda rng: rng.lognormal(0, 3, (80, 2))),
    Case("log-normal, sigma = 10", "sizes over ten powers of ten", lambda rng: rng.lognormal(0, 10, (80, 2))),
    Case(
        "log-normal, sigma = 30",
        "sizes over sixty powers of ten",
        lambda rng: rng.lognormal(0, 30, (80, 2)),
        4,
    ),
    Case("Pareto, shape 0.5", "no mean", lambda rng: rng.pareto(0.5, (80, 2))),
    Case("Pareto, shape 0.05", "sizes over sixty powers of ten", lambda rng: rng.pareto(0.05, (80, 1))),
    Case("Student-t, 1.5 df", "a mean and no variance", lambda rng: rng.standard_t(1.5, (80, 3))),
    Case("exponential", "heavy at 0", lambda rng: rng.exponential(size=(80, 2))),
    Case("uniform", "no tails at all", lambda rng: rng.random((80, 2)), 6),
    Case(
        "Beta near 0 and 1", "two spikes of width 1e-10 and less", lambda rng: rng.beta(0.03, 0.03, (80, 1))
    ),
    Case("Gamma of shape 0.01", "values down to 1e-100", lambda rng: rng.gamma(0.01, size=(80, 2))),
    Case(
        "zero-inflated",
        "half of all are exactly 0, the rest log-normal",
        lambda rng: rng.lognormal(0, 2, (80, 2)) * (rng.random((80, 2)) < 0.5),
    ),
]
