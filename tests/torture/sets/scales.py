"""Widths and distances at the ends of what float64 holds."""

import numpy as np

from torture.case import Case, blobs, noise

BEYOND = "other units"


def _narrow(rng, width, apart=1.0):
    """Clusters of this width, at distances of about one."""
    return blobs(rng, 60, 2, 3, apart=apart, width=width)


def _wide_and_narrow(rng, ratio):
    return np.r_[noise(rng, 30), 5.0 + ratio * noise(rng, 30)]


CASES = [
    *(
        Case(
            f"scaled by {unit:g}",
            "clusters in very small or very large units",
            lambda rng, unit=unit: unit * blobs(rng),
        )
        for unit in (1e-140, 1e-100, 1e-30, 1e-12, 1e12, 1e30, 1e100, 1e140, 1e150)
    ),
    *(
        Case(
            f"scaled by {unit:g}",
            "squares of the widths are no ordinary numbers",
            lambda rng, unit=unit: unit * blobs(rng),
            refused=BEYOND,
        )
        for unit in (5e-324, 1e-310, 1e-300, 1e-160, 1e155, 1e300, 1e307)
    ),
    *(
        Case(
            f"clusters of width {width:g}",
            "narrow clusters at distances of about one",
            lambda rng, width=width: _narrow(rng, width),
        )
        for width in (1e-3, 1e-6, 1e-9, 1e-12, 1e-14, 1e-15)
    ),
    *(
        Case(
            f"widths of 1 and {ratio:g}",
            "one cluster much narrower than the other",
            lambda rng, ratio=ratio: _wide_and_narrow(rng, ratio),
            2,
        )
        for ratio in (1e-4, 1e-8, 1e-12, 1e-16)
    ),
    *(
        Case(
            f"offset of {offset:g}",
            "clusters far from the origin",
            lambda rng, offset=offset: blobs(rng) + offset,
        )
        for offset in (1e4, 1e8, 1e12, 1e15, -1e15)
    ),
    Case("offset of 1e17", "rounding leaves two or three values a column", lambda rng: blobs(rng) + 1e17),
    Case("offset of 1e100", "rounding leaves one value", lambda rng: blobs(rng) + 1e100),
    Case(
        "an offset in one column",
        "one column at 1e12, one at 0",
        lambda rng: blobs(rng) + np.array([1e12, 0.0]),
    ),
    Case("opposite offsets", "columns at 1e12 and -1e12", lambda rng: blobs(rng) + np.array([1e12, -1e12])),
    Case(
        "two clusters 1e8 apart",
        "far apart compared with their widths",
        lambda rng: np.r_[noise(rng, 30), noise(rng, 30) + 1e8],
        2,
    ),
    Case(
        "two clusters 1e14 apart",
        "their widths are near the rounding of the whole",
        lambda rng: np.r_[noise(rng, 30), noise(rng, 30) + 1e14],
        2,
    ),
    Case(
        "two clusters 1e14 apart, K = 5",
        "more components than those",
        lambda rng: np.r_[noise(rng, 30), noise(rng, 30) + 1e14],
        5,
    ),
    Case(
        "two clusters 1e20 apart",
        "one of them has rounding for a width",
        lambda rng: np.r_[noise(rng, 30), noise(rng, 30) + 1e20],
        2,
    ),
    Case(
        "columns of 1e-12 to 1e12",
        "each column in units of its own",
        lambda rng: blobs(rng, 40, 5) * [1e-12, 1e-6, 1.0, 1e6, 1e12],
    ),
    Case(
        "columns of 1e-100 and 1e100",
        "units that have nothing in common",
        lambda rng: blobs(rng) * [1e-100, 1e100],
    ),
    Case("columns of 1e-140 and 1e140", "units at both ends", lambda rng: blobs(rng) * [1e-140, 1e140]),
    Case(
        "columns of 1e-12 to 1e12, correlated",
        "mixed, and then in units of their own",
        lambda rng: (blobs(rng, 40, 3) @ noise(rng, 3, 3)) * [1e-12, 1.0, 1e12],
    ),
    Case("a column of 1e-9 beside others", "one column in small units", lambda rng: blobs(rng) * [1.0, 1e-9]),
    Case(
        "mixed scales and offsets",
        "each column far away in units of its own",
        lambda rng: (blobs(rng, 40, 3) + 1e6) * [1e-9, 1.0, 1e9],
    ),
    Case(
        "rows of every size",
        "sizes of 1e-12 to 1e12 among the rows",
        lambda rng: noise(rng, 50) * np.logspace(-12, 12, 50)[:, None],
    ),
    Case(
        "rows of every size, one column",
        "the same in one column",
        lambda rng: noise(rng, 50, 1) * np.logspace(-12, 12, 50)[:, None],
    ),
    Case("powers of ten", "1e-150 to 1e150, without noise", lambda rng: np.logspace(-150, 150, 41)[:, None]),
    Case(
        "nested scales",
        "a cluster within a cluster within a cluster",
        lambda rng: np.r_[noise(rng, 20), 1e-5 * noise(rng, 20), 1e-10 * noise(rng, 20)],
    ),
    Case(
        "subnormal entries among ordinary ones",
        "some entries are 1e-310",
        lambda rng: np.where(rng.random((40, 2)) < 0.3, 1e-310, blobs(rng)),
    ),
    Case(
        "a subnormal column",
        "the third column varies by 1e-310",
        lambda rng: np.c_[blobs(rng), 1e-310 * noise(rng, 40, 1)],
        refused=BEYOND,
    ),
    Case(
        "the largest doubles",
        "values of both signs near 1.8e308",
        lambda rng: np.where(noise(rng) > 0, 1.0, -1.0) * np.finfo(float).max,
        refused=BEYOND,
    ),
    Case(
        "the smallest doubles",
        "subnormals that are whole multiples of the least",
        lambda rng: rng.integers(0, 4, (40, 2)) * 5e-324,
        refused=BEYOND,
    ),
]
