"""Tests that scikit-learn has of its own classes, with ours in their place."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from unittest.mock import patch

import pytest

import caviar as cv

__all__ = ["PRIVATE", "borrowed_from"]

_OURS = {
    "sklearn.mixture.GaussianMixture": cv.GaussianMixture,
    "sklearn.mixture.BayesianGaussianMixture": cv.BayesianGaussianMixture,
    "sklearn.decomposition.LatentDirichletAllocation": cv.LatentDirichletAllocation,
}

PRIVATE = {
    "test_suffstat_sk_full",
    "test_suffstat_sk_tied",
    "test_suffstat_sk_diag",
    "test_gaussian_suffstat_sk_spherical",
    "test_compute_log_det_cholesky",
    "test_gaussian_mixture_log_probabilities",
    "test_log_dirichlet_norm",
    "test_log_wishart_norm",
    "test_dirichlet_expectation",
}
"""Tests of scikit-learn's private functions, in which none of the classes takes part."""


def borrowed_from(name: str) -> Mapping[str, Callable[..., None]]:
    """Return the test functions of an installed module, which found our classes by the names of scikit-learn's."""
    tests = {key: value for key, value in vars(_executed(name)).items() if key.startswith("test_")}
    for test in tests.values():
        test.pytestmark = [_plain(mark) for mark in getattr(test, "pytestmark", [])]
    return {key: test for key, test in tests.items() if key not in PRIVATE}


def _plain(mark: pytest.Mark) -> pytest.Mark:
    """Return a mark with lists where it had generators, which pytest wants no longer."""
    args = tuple(list(value) if isinstance(value, Iterator) else value for value in mark.args)
    return pytest.Mark(mark.name, args, mark.kwargs, _ispytest=True)


def _executed(name: str) -> ModuleType:
    """Return a module that is executed anew, beside the one that others import."""
    spec = find_spec(name)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    patches = [patch(place, ours) for place, ours in _OURS.items()]
    for each in patches:
        each.start()
    try:
        spec.loader.exec_module(module)
    finally:
        for each in patches:
            each.stop()
    return module
