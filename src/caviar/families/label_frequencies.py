"""Frequencies of labels: weighted averages of the indicators of independent labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from caviar._errors import ModelError
from caviar._typing import AnyArray, Array, Statistics
from caviar.families.base.family import Seed, Size, draw_shape


@dataclass(frozen=True)
class LabelFrequencies:
    r"""Distributions of weighted averages of the indicators of independent labels.

    .. math:: f = \sum_n w_n e_{z_n}, \qquad z_n \sim \mathrm{Cat}(\phi_n)

    Parameters
    ----------
    weights
        :math:`w`, shape (..., N).
    probabilities
        :math:`\phi`, shape (..., N, K).
    labels
        Name of the labels.

    Examples
    --------
    >>> q = LabelFrequencies(np.full(2, 0.5), np.array([[1.0, 0.0], [0.5, 0.5]]))
    >>> q.mean
    array([0.75, 0.25])
    >>> q.covariance
    array([[ 0.0625, -0.0625],
           [-0.0625,  0.0625]])
    """

    weights: Array
    probabilities: Array
    labels: str = ""

    place: ClassVar[int] = 1
    """Among what is drawn: after the labels."""
    statistics: ClassVar[tuple[str, ...]] = ("x", "xx", "weight")
    is_convex: ClassVar[bool] = True

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """Shape of the batch of distributions."""
        return self.weights.shape[:-1]

    @property
    def mean(self) -> Array:
        """Expected frequencies, shape (..., K)."""
        return np.einsum("...n,...nk->...k", self.weights, self.probabilities)

    @property
    def covariance(self) -> Array:
        """Covariance of the frequencies, shape (..., K, K)."""
        squares, q = np.square(self.weights), self.probabilities
        own = np.einsum("...n,...nk->...k", squares, q)
        products = np.einsum("...n,...nk,...nl->...kl", squares, q, q)
        return own[..., None] * np.eye(q.shape[-1]) - products

    @property
    def variance(self) -> Array:
        """Variance of each frequency, shape (..., K)."""
        return np.diagonal(self.covariance, axis1=-2, axis2=-1)

    @property
    def expected_statistics(self) -> tuple[Array, Array, Array]:
        """Means, second moments, and nothing of the weights, which are known."""
        mean = self.mean
        second = self.covariance + mean[..., :, None] * mean[..., None, :]
        return mean, second, np.zeros(self.weights.shape)

    @classmethod
    def from_natural(cls, natural: Statistics) -> Self:
        """Refuse: frequencies have no factor without their labels."""
        raise ModelError(
            "Frequencies have a factor together with their labels, one for each row of data: fit with data_plate= the "
            "plate of the groups"
        )

    def __getitem__(self, index: Any) -> LabelFrequencies:
        """Return the part of the batch at ``index``."""
        return LabelFrequencies(self.weights[index], self.probabilities[index], self.labels)

    @classmethod
    def joined(cls, parts: Sequence[LabelFrequencies]) -> LabelFrequencies:
        """Return consecutive parts of a batch as one."""
        weights, probabilities = (np.concatenate(own) for own in zip(*map(_arrays, parts), strict=True))
        return cls(weights, probabilities, parts[0].labels)

    @property
    def learnt(self) -> Self:
        """Itself: no part of it is a point mass."""
        return self

    def each(self, of_learnt: Callable[[Any], Any], of_point: Callable[[Any], Any]) -> Any:
        """Return what a function gives of it."""
        return of_learnt(self)

    def location_moments(self) -> tuple[Array, Array]:
        """Return mean and covariance."""
        return self.mean, self.covariance

    def given(self, values: Mapping[str, AnyArray]) -> LabelFrequencies:
        """Return the frequencies of known labels, the values by name."""
        labels = np.asarray(values[self.labels])[..., None]
        one = (labels == np.arange(self.probabilities.shape[-1])).astype(np.float64)
        return LabelFrequencies(self.weights, one, self.labels)

    def log_density(self, value: ArrayLike) -> Array:
        """Return 0 at the frequencies of known labels, and minus infinity elsewhere."""
        return np.where(
            np.all(np.abs(np.asarray(value, dtype=np.float64) - self.mean) < 1e-9, axis=-1), 0.0, -np.inf
        )

    def sample(self, size: Size = None, seed: Seed = None) -> AnyArray:
        """Return frequencies of shape size + batch + (K,)."""
        shape = (*draw_shape(size, self.batch_shape), self.weights.shape[-1])
        below = np.random.default_rng(seed).random(shape)[..., None] > np.cumsum(self.probabilities, axis=-1)
        labels = np.minimum(below.sum(axis=-1), self.probabilities.shape[-1] - 1)
        drawn = labels[..., None] == np.arange(self.probabilities.shape[-1])
        return np.einsum("...n,...nk->...k", self.weights, drawn.astype(np.float64))


def _arrays(part: LabelFrequencies) -> tuple[Array, Array]:
    return part.weights, part.probabilities
