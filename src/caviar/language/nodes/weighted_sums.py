"""Matrices that are weighted sums: of known or hidden parts, by a hidden vector of each step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._errors import ModelError
from .constants import Constant, as_known
from .node import Node


@dataclass(frozen=True)
class WeightedSum:
    """A matrix for each step, the sum of matrices times the entries of a vector; see :func:`weighted_sum`.

    Attributes
    ----------
    weights
        The vector.
    parts
        The matrices: an array, or a node with their rows.
    """

    weights: Any
    parts: Any

    def __repr__(self) -> str:
        parts = repr(self.parts) if isinstance(self.parts, Node) else f"array of shape {self.parts.shape}"
        return f"weighted_sum({self.weights!r}, {parts})"


class Selector(Constant):
    """Known numbers with three event axes: which entry of a vector of K D numbers is in which column of which part."""

    @classmethod
    def of(cls, name: str, n_parts: int, size: int) -> Selector:
        """Return that of vectors with the rows of so many parts, one after the other."""
        selector = cls.__new__(cls)
        selector._identify(name, ())
        selector.value = np.eye(n_parts * size).reshape(n_parts * size, n_parts, size)
        selector.value.flags.writeable = False
        selector.event_rank, selector.dimension = 3, None
        return selector


def weighted_sum(weights: Any, parts: Any) -> WeightedSum:
    r"""Return the matrices :math:`\sum_k s_{tk} B_k`, one for each step: a transition matrix that changes with time.

    Parameters
    ----------
    weights
        :math:`s_t`, a hidden vector of length K for each step: a :class:`LinearGaussianChain`, or a
        :class:`MultivariateNormal`, along the same plate.
    parts
        :math:`B_1, \dots, B_K`: an array (K, D, D), or a :class:`MultivariateNormal` with a plate of size D and
        vectors of length K D. Repetition i holds row i of the first matrix, then row i of the second, and so on.

    Raises
    ------
    ModelError
        If the weights are not hidden.

    Examples
    --------
    Two states that turn, at a speed that changes slowly:

    >>> import numpy as np
    >>> from caviar import LinearGaussianChain, Plate
    >>> time, turn = Plate("time"), np.array([[0.0, -1.0], [1.0, 0.0]])
    >>> speed = LinearGaussianChain("speed", [1.0, 0.0], np.eye(2), np.eye(2), 100 * np.eye(2), along=time)
    >>> weighted_sum(speed, np.stack([np.eye(2), turn]))
    weighted_sum(LinearGaussianChain('speed', plates=(time)), array of shape (2, 2, 2))
    """
    if not isinstance(weights, Node) or weights.is_known:
        raise ModelError(
            f"weighted_sum takes a hidden vector for each step as weights, as LinearGaussianChain('s', ...); got "
            f"{weights!r}. A sum with known weights is a known matrix: compute it"
        )
    return WeightedSum(
        weights, parts if isinstance(parts, Node) else as_known(parts, "'parts' of weighted_sum")
    )
