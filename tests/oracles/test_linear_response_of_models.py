"""Linear response of every classic model is the limit of tilted fits."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import caviar as cv
from oracles.tilted import Settled

N = 40
_SIZES = {
    "n_features": 2,
    "n_components": 2,
    "n_categories": 3,
    "n_states": 2,
    "n_topics": 2,
    "n_words": 5,
    "n_classes": 2,
    "n_groups": 4,
    "truncation": 3,
}
_OTHERS: dict[str, dict[str, Any]] = {
    "latent_class_analysis": {"n_categories": {"smokes": 2, "region": 3}},
    "mixed_mixture": {"numbers": ["height"], "n_categories": {"region": 3}, "counts": ["visits"]},
    "sparse_effects": {"n_features": 4},
}
_WIDE = {"relevance_regression", "maximum_likelihood_mixture", "gaussian_hidden_markov_model"}
"""Priors so wide, or flat, that a draw from them is no table of data."""

_TURNED = {"factor_analysis", "probabilistic_pca", "matrix_factorisation", "linear_dynamical_system"}
"""Nothing tells a rotation or the units of what is hidden: see test_linear_response.py."""


def _stated(name: str) -> tuple[cv.Model, dict[str, Any]]:
    """Return a model, and data that are drawn from it."""
    state, own = getattr(cv.models, name), _OTHERS.get(name, {})
    required = [each for each in inspect.signature(state).parameters.values() if each.default is each.empty]
    model = state(**{each.name: _SIZES[each.name] for each in required if each.name not in own}, **own)
    rng = np.random.default_rng(1)
    values = {
        "X": rng.normal(size=(N, own.get("n_features", 2))),
        "group": rng.integers(0, 4, N),
        "document": np.arange(N) // 8,
        "noise_precision": np.tile(4.0 * np.eye(2), (N, 1, 1)),
    }
    known = {node.name: values[node.name] for node in model.nodes if isinstance(node, cv.Data)}
    (rows,) = {leaf.plates[0].name for leaf in model.leaves}
    if name in _WIDE:
        x = rng.normal(size=(N, 2)) + 3.0 * (np.arange(N) // 10 % 2)[:, None]
        return model, {**known, "y": values["X"] @ [1.0, 0.0] + rng.normal(size=N)} if known else {"x": x}
    drawn = model.simulate(2, sizes={rows: N}, data=known)
    return model, {**known, **{leaf.name: drawn[leaf.name] for leaf in model.leaves}}


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in cv.models.__all__ if name not in _TURNED])
def test_means_move_as_those_of_tilted_fits(name: str) -> None:
    model, data = _stated(name)
    posterior = model.fit(data, seed=0, tol=1e-10, max_iter=5000, factors="apart")
    assert Settled(posterior, data).worst_of_all() < 1e-6
