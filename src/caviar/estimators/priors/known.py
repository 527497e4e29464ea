"""Parameters of components that are known: what a user fixes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._errors import ParameterError
from ..._typing import Array
from ..arguments.checks import as_array, as_weights
from .structure import CovarianceStructure

NORMAL_DF = 1e15
"""Degrees of freedom of a Student-t that is a Normal to double precision: of components that are known."""

_NAMES = ("weights", "means", "covariances")


@dataclass(frozen=True, eq=False)
class Fixed:
    """Parameters that a user fixes.

    Attributes
    ----------
    weights
        All of them, shape (K,), or None.
    means
        Shape (K, D) with rows of NaN that are to be learnt, or None.
    precisions
        In the shape of the structure, NaN where a component's are to be learnt, or None.
    """

    weights: Array | None = None
    means: Array | None = None
    precisions: Array | None = None

    def data(self, *, is_joint: bool) -> dict[str, Any]:
        """Return what is known of the model's variables."""
        if is_joint:
            return {} if self.means is None else {"theta": (self.means, self.precisions)}
        known = {"mean": self.means, "precision": self.precisions}
        return {name: value for name, value in known.items() if value is not None}

    def whole(self, *, is_joint: bool) -> dict[str, Any]:
        """Return what is known of the variables of which every component is known."""
        return {
            name: value
            for name, value in self.data(is_joint=is_joint).items()
            if not any(np.isnan(part).any() for part in _parts(value))
        }


def _parts(value: Any) -> tuple[Array, ...]:
    return value if isinstance(value, tuple) else (value,)


def fixed_of(
    given: Mapping[str, Any] | None,
    structure: CovarianceStructure,
    n_components: int,
    n_features: int,
    is_joint: bool,
) -> Fixed:
    """Return the parameters that a user fixes.

    Raises
    ------
    ParameterError
        If there is no such parameter, a value is impossible, or the posterior of this form cannot hold it.
    """
    if given is None:
        return Fixed()
    if not isinstance(given, Mapping) or any(name not in _NAMES for name in given):
        raise ParameterError(
            f"fixed must be None or a mapping with any of {', '.join(_NAMES)}; got {given!r}"
        )
    means = covariances = None
    if "means" in given:
        means = _with_gaps("fixed['means']", given["means"], (n_components, n_features))
        missing = np.isnan(means)
        if not structure.has_independent_columns and np.any(missing.any(axis=1) != missing.all(axis=1)):
            raise ParameterError(
                "fixed['means'] of a component must be given whole, or be a row of NaN: the columns of "
                f"covariance_type={structure.name!r} are learnt together"
            )
    if "covariances" in given:
        covariances = _precisions(given["covariances"], structure, n_components, n_features)
    if is_joint and (means is not None or covariances is not None):
        _check_joint(structure, means, covariances)
    return Fixed(fixed_weights(given, n_components), means, covariances)


def fixed_weights(given: Mapping[str, Any] | None, n_components: int) -> Array | None:
    """Return the weights that a user fixes, (K,); None if they are to be learnt.

    Raises
    ------
    ParameterError
        If they are impossible.
    """
    value = given.get("weights") if isinstance(given, Mapping) else None
    if value is None:
        return None
    weights = _with_gaps("fixed['weights']", value, (n_components,))
    if np.isnan(weights).any():
        raise ParameterError(
            "fixed['weights'] must hold every weight: they sum to one, and a Dirichlet cannot know some; give all, "
            "or a weight_concentration_prior for each component"
        )
    return as_weights("fixed['weights']", value, n_components)


def _with_gaps(name: str, value: Any, shape: tuple[int, ...]) -> Array:
    return as_array(name, value, shape, "NaN where to be learnt", with_gaps=True)


def _precisions(value: Any, structure: CovarianceStructure, n_components: int, n_features: int) -> Array:
    name, shape = "fixed['covariances']", structure.shape(n_components, n_features)
    if structure.is_known:
        structure.checked(name, value, n_components, n_features)
    covariances = _with_gaps(name, value, shape)
    flat = (
        covariances.reshape(len(covariances), -1)
        if structure.n_precisions(n_components)
        else covariances.reshape(1, -1)
    )
    is_known = ~np.isnan(flat).any(axis=1)
    if not np.array_equal(is_known, ~np.isnan(flat).all(axis=1)):
        raise ParameterError(f"{name} of a component must be given whole, or be NaN throughout")
    if not is_known.any():
        return covariances
    filled = covariances.copy()
    if structure.n_precisions(n_components) is not None:
        filled[~is_known] = covariances[is_known][0]
    precisions = structure.invert(structure.checked(name, filled, n_components, n_features))
    precisions[np.isnan(covariances)] = np.nan
    return precisions


def _check_joint(structure: CovarianceStructure, means: Array | None, precisions: Array | None) -> None:
    """Refuse what a joint factor of mean and precision cannot hold."""
    apart = "use mean_precision_family='independent', where they are factors of their own"
    if structure.is_known:
        return
    if structure.name in ("tied", "spherical"):
        raise ParameterError(
            f"means or covariances cannot be fixed in the joint form of covariance_type={structure.name!r}, "
            f"where several means share a precision in one factor; {apart}"
        )
    gaps = [
        None if part is None else np.isnan(part.reshape(len(part), -1)).all(axis=1)
        for part in (means, precisions)
    ]
    if gaps[0] is None or gaps[1] is None or not np.array_equal(gaps[0], gaps[1]):
        raise ParameterError(
            f"fixed must contain mean and covariance of the same components in the joint form, which has "
            f"them in one factor; {apart}"
        )
