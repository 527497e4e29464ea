"""Moves beyond the updates are made where they save iterations, and not where updates alone settle in a few."""

from __future__ import annotations

import numpy as np
import pytest

import caviar as cv
from caviar.engine.ascent.schedules import batch

pytestmark = pytest.mark.starts_of_users


def moves_of_fit(X: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> tuple[int, cv.Posterior]:
    """Return how many moves a fit of two clusters tries, and the fit."""
    at_natural, tried = batch.at_natural, []
    monkeypatch.setattr(batch, "at_natural", lambda *own: (tried.append(own), at_natural(*own))[1])
    posterior = cv.models.normal_wishart_mixture(2, 2).fit({"x": X})
    assert posterior.converged
    return len(tried), posterior


def test_clusters_apart_settle_without_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    # each update gains less than a twentieth of the one before: two or three more take less than one move
    tried, posterior = moves_of_fit(cv.datasets.load_faithful().values, monkeypatch)
    gains = np.diff(posterior.elbo_trace)
    assert len(gains) >= 3
    assert np.all(gains[1:] <= 0.05 * gains[:-1])
    assert tried == 0


def test_clusters_that_overlap_settle_with_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 2)) + 3.0 * rng.integers(0, 2, 300)[:, None]
    tried, _ = moves_of_fit(X, monkeypatch)
    assert tried > 0
