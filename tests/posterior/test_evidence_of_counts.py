"""Counts with an unknown size: evidence and exact draws beside sums over a grid of SciPy's negative binomial."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import gamma, nbinom

import caviar as cv

COUNTS = np.random.default_rng(0).poisson(3.0, (8, 2))
MEANS = np.exp(np.linspace(-6.0, 4.5, 800))
SIZES = np.exp(np.linspace(-5.0, 4.5, 400))


def exact() -> tuple[float, float]:
    """Log evidence and posterior mean of the size: each item has a mean, both share the size."""
    r, m = SIZES[:, None, None], MEANS[None, :, None]
    of_items = 0.0
    for item in range(2):
        each = nbinom.logpmf(COUNTS[:, item], r, r / (r + m)).sum(axis=-1)
        # both grids are even in the logarithm
        weight = gamma.logpdf(MEANS, 1.0, scale=1.0) + np.log(MEANS * np.log(MEANS[1] / MEANS[0]))
        of_items = of_items + logsumexp(each + weight, axis=1)
    weight = gamma.logpdf(SIZES, 2.0, scale=1.0) + np.log(SIZES * np.log(SIZES[1] / SIZES[0]))
    total = of_items + weight
    evidence = float(logsumexp(total))
    return evidence, float(np.exp(total - evidence) @ SIZES)


@pytest.fixture(scope="module")
def fitted() -> tuple[cv.Posterior, dict[str, np.ndarray]]:
    rows, item = cv.Plate("rows"), cv.Plate("item", 2)
    mean, size = cv.Gamma("mean", 1, 1, plates=item), cv.Gamma("size", 2, 1)
    data = {"y": COUNTS}
    model = cv.Model(cv.NegativeBinomial("y", mean, size, plates=(rows, item)))
    return model.fit(data, data_plate="rows"), data


def test_the_evidence_of_a_table_is_that_of_a_grid(fitted) -> None:
    evidence, _ = exact()
    found = fitted[0].evidence(fitted[1], n_draws=4000, seed=0)
    assert found.value == pytest.approx(evidence, abs=max(0.02, 4 * found.error))


@pytest.mark.slow  # tests/kit has exact draws of other models
def test_exact_draws_have_the_mean_of_a_grid(fitted) -> None:
    _, mean = exact()
    draws = cv.testing.exact_draws(*fitted, n_steps=600)
    assert draws.r_hat < 1.1
    assert draws["size"].mean() == pytest.approx(mean, rel=0.05)
