"""How certain q is where entries of vectors are missing, beside a Gibbs sampler of the same model."""

import numpy as np
import pytest
from missing_values import compare, table

N_SWEEPS = 3_000


@pytest.mark.slow
@pytest.mark.parametrize(("n_components", "n_rows"), [(1, 50), (2, 100)])
def test_means_are_right_and_their_width_too_small(n_components, n_rows):
    """40% missing: uncorrelated columns are too certain by about the root of the share seen, correlated ones less."""
    ratios = {}
    for correlation in (0.0, 0.95):
        x = table(np.random.default_rng(1), n_rows, n_components, 0.4, correlation)
        found = compare(x, n_components, N_SWEEPS)
        off = (found.mean_under_q - found.mean_sampled) / found.sampled
        assert np.abs(off).max() < 0.25
        assert found.ratio.max() < 1.05
        ratios[correlation] = np.median(found.ratio)
    assert np.sqrt(0.6) - 0.05 < ratios[0.0] < 0.9
    assert ratios[0.95] > ratios[0.0] + 0.05


@pytest.mark.slow
def test_nothing_missing_is_exact():
    """One component, complete rows: q is the posterior, and the sampler agrees to its own noise."""
    x = table(np.random.default_rng(1), 50, 1, 0.0, 0.7)
    found = compare(x, 1, N_SWEEPS)
    np.testing.assert_allclose(found.ratio, 1.0, atol=0.05)
    np.testing.assert_allclose(found.mean_under_q, found.mean_sampled, atol=0.01)
