"""The arguments of an estimator that searches for its number of components, checked."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..._errors import ParameterError
from ..._typing import Array
from ..arguments.checks import as_array

AUTO = "auto"
AUTO_CONCENTRATION = 1.0
"""Concentration of the weights where the user states none: 1, which is uniform, whatever the number of components.

The default of a given number, 1/K, would make the prior of the weights another one at every step. At 1 a component
without rows costs about log(N / K) nats and is deleted; at a small concentration it would cost next to nothing.
"""


def is_auto(n_components: Any) -> bool:
    """Return whether the number of components is to be found."""
    return isinstance(n_components, str) and n_components == AUTO


def refuse_one_per_component(largest_ranks: dict[str, tuple[Any, int]]) -> None:
    """Raise ParameterError where a prior is given for each component: there is no telling how many there will be.

    Parameters
    ----------
    largest_ranks
        Name of an argument -> what was given, and how many axes it has at most if it is one for all components.
    """
    for name, (given, rank) in largest_ranks.items():
        if given is not None and np.ndim(given) > rank:
            raise ParameterError(
                f"{name} must be the same for all components with n_components='auto', which adds and removes them: an "
                f"array of at most {rank} axes; got shape {np.shape(given)}"
            )


def start_of(init_params: ArrayLike, n_rows: int) -> Array | None:
    """Return the responsibilities that a search begins with, shape (N, K); None for one component.

    Raises
    ------
    ParameterError
        If it is not ``"auto"``, labels (N,), or probabilities (N, K).

    Examples
    --------
    >>> start_of([0, 1, 1], 3)
    array([[1., 0.],
           [0., 1.],
           [0., 1.]])
    """
    if isinstance(init_params, str):
        if init_params == AUTO:
            return None
        raise ParameterError(
            f"init_params must be 'auto', labels (N,) or responsibilities (N, K) with n_components='auto': a search "
            f"has no number of components to start {init_params!r} with"
        )
    if np.ndim(init_params) == 1:
        labels = as_array("init_params", init_params, (n_rows,), "a label a row")
        if np.any((labels < 0) | (labels != np.floor(labels)) | (labels >= n_rows)):
            raise ParameterError(
                "init_params must hold labels: whole numbers from 0 to less than the number of rows"
            )
        return np.eye(int(labels.max()) + 1)[labels.astype(np.int64)]
    shape = (n_rows, np.shape(init_params)[-1] if np.ndim(init_params) else 0)
    return _as_probabilities(as_array("init_params", init_params, shape, "a label or K probabilities a row"))


def _as_probabilities(values: Array) -> Array:
    if values.shape[1] == 0 or np.any(values < 0) or not np.allclose(values.sum(axis=1), 1):
        raise ParameterError(
            "init_params, responsibilities (N, K), must not be negative, and rows must sum to 1"
        )
    return values
