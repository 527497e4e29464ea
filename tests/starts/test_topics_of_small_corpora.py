"""Default fits of small corpora find clear themes: none is copied, and none is a mixture of the others."""

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from thinning import amount

import caviar as cv


def corpus(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return documents about three themes that share some words, and the themes."""
    rng = np.random.default_rng(seed)
    own, shared, share = int(rng.integers(8, 30)), int(rng.integers(1, 15)), rng.uniform(0, 0.5)
    themes = np.zeros((3, 3 * own + shared))
    themes[:, 3 * own :] = share / shared
    for k in range(3):
        themes[k, k * own : (k + 1) * own] = (1 - share) * rng.dirichlet(np.ones(own))
    n_documents, length = int(rng.integers(60, 200)), rng.uniform(15, 60)
    proportions = np.full((n_documents, 3), 0.05) + 0.85 * np.eye(3)[np.arange(n_documents) % 3]
    counts = np.array([rng.multinomial(max(5, rng.poisson(length)), own @ themes) for own in proportions])
    used = counts.sum(axis=0) > 0
    return counts[:, used].astype(float), themes[:, used]


@pytest.mark.parametrize("seed", range(amount(2, 20)))
def test_clear_themes_are_found(seed: int) -> None:
    # scikit-learn's start has two themes in one topic for 8 of 40 such fits
    counts, themes = corpus(seed)
    found = cv.LatentDirichletAllocation(3, random_state=seed).fit(counts).components_
    found, themes = (own / own.sum(axis=1, keepdims=True) for own in (found, themes))
    distances = 0.5 * np.abs(found[:, None] - themes).sum(axis=2)
    assert distances[linear_sum_assignment(distances)].max() < 0.25
