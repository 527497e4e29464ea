"""The estimators that every data set is fitted with: each covariance structure, in each form, and by EM."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import caviar as cv

__all__ = ["SHELLS", "is_em", "takes_missing"]

STRUCTURES = ("full", "tied", "diag", "spherical", "unit")
SEPARABLE = ("diag", "spherical", "unit")
"""Structures with independent columns, which take rows with missing entries."""


def _bayesian(structure: str, family: str) -> Callable[..., Any]:
    def make(n_components: int, **options: Any) -> Any:
        return cv.BayesianGaussianMixture(
            n_components, covariance_type=structure, mean_precision_family=family, **options
        )

    return make


def _by_em(structure: str) -> Callable[..., Any]:
    def make(n_components: int, **options: Any) -> Any:
        return cv.GaussianMixture(n_components, covariance_type=structure, **options)

    return make


SHELLS: dict[str, Callable[..., Any]] = {
    **{f"joint {s}": _bayesian(s, "joint") for s in STRUCTURES},
    # a known precision has one form only
    **{f"independent {s}": _bayesian(s, "independent") for s in STRUCTURES if s != "unit"},
    **{f"EM {s}": _by_em(s) for s in STRUCTURES},
}
"""What makes an estimator, given the number of components and further options, by form and structure."""


def is_em(shell: str) -> bool:
    """Whether a shell fits point masses under flat priors."""
    return shell.startswith("EM")


def takes_missing(shell: str) -> bool:
    """Whether a shell takes rows with missing entries."""
    return shell.endswith(SEPARABLE)
