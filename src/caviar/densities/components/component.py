"""The interface of mixture components: their weights, centres, scales and densities."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from ..._errors import ImproperError, ParameterError
from ..._tables import MOST_LINES, html_of
from ..._typing import AnyArray, Array
from .parameters import as_names


@dataclass(frozen=True, eq=False, repr=False)
class Components(ABC):
    """Weighted component densities, and the operations that depend on their kind.

    Attributes
    ----------
    weights
        :math:`w_k`, shape (K,), summing to one.
    locations
        Centres of the components, shape (K, D).
    feature_names
        Names of the columns, which methods accept in place of numbers; None without names.
    """

    weights: Array
    locations: Array
    feature_names: tuple[str, ...] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if np.ndim(self.weights) != 1 or np.shape(self.locations)[:-1] != np.shape(self.weights):
            raise ParameterError(
                f"weights must have shape (K,) and locations (K, D); got shapes {np.shape(self.weights)} and "
                f"{np.shape(self.locations)}"
            )
        object.__setattr__(self, "feature_names", as_names(self.feature_names, self.n_features))

    def _repr_html_(self) -> str:
        """Return weight and centre of the first components, for a notebook."""
        shown = range(min(self.n_features, MOST_LINES))
        names = self.feature_names or [f"[{column}]" for column in range(self.n_features)]
        cells = [("component", "weight", *(names[column] for column in shown))]
        cells += [
            (str(k), f"{weight:.4g}", *(f"{location[column]:.4g}" for column in shown))
            for k, (weight, location) in enumerate(zip(self.weights, self.locations, strict=True))
        ][:MOST_LINES]
        left = [(self.n_components - MOST_LINES, "components"), (self.n_features - MOST_LINES, "columns")]
        told = [f"{count:,} more {what}" for count, what in left if count > 0]
        return html_of(
            f"{type(self).__name__}: {self.n_components} components, {self.n_features} columns; their centres",
            cells,
            [f"and {', and '.join(told)}"] if told else [],
        )

    def __repr__(self) -> str:
        names = "" if self.feature_names is None else f", feature_names={self.feature_names}"
        return f"{type(self).__name__}(n_components={self.n_components}, n_features={self.n_features}{names})"

    def names_of(self, columns: AnyArray) -> tuple[str, ...] | None:
        """Return the names of some columns; None without names."""
        names = self.feature_names
        return None if names is None else tuple(names[column] for column in columns)

    @property
    def n_components(self) -> int:
        """K."""
        return len(self.weights)

    @property
    def n_features(self) -> int:
        """D."""
        return self.locations.shape[1]

    @property
    @abstractmethod
    def separable(self) -> bool:
        """Whether :meth:`component_log_densities` accepts rows with any patterns of NaN in one call."""

    @abstractmethod
    def component_log_densities(self, X: Array) -> Array:
        """Return :math:`log f_k` of rows, (B, D) -> (K, B), in nats."""

    @abstractmethod
    def distances(self, X: Array) -> Array:
        """Return the scaled distances of rows from the centres of the components, (B, D) -> (K, B)."""

    @abstractmethod
    def component_scales(self) -> Array:
        """Return the scale of each column in each component, (K, D)."""

    @abstractmethod
    def component_df(self) -> Array | None:
        """Return the degrees of freedom of each column in each component, (K, D); None for Normal components."""

    @abstractmethod
    def component_shapes(self) -> Array:
        """Return the shape matrices, (K, D, D): covariances up to a factor from the degrees of freedom."""

    @abstractmethod
    def draw_residuals(self, labels: AnyArray, rng: np.random.Generator) -> Array:
        """Return draws of x - m_k from the component of each label, (n,) -> (n, D)."""

    @abstractmethod
    def stretched(self, factors: Array) -> Self:
        """Return the mixture with the scales of its components multiplied by positive factors, (K,)."""

    def draw(self, n: int, rng: np.random.Generator) -> tuple[Array, AnyArray]:
        """Return independent rows, shape (n, D), and their components, shape (n,)."""
        labels = rng.choice(self.n_components, size=n, p=self.weights / self.weights.sum())
        return self.locations[labels] + self.draw_residuals(labels, rng), labels

    def has_moments(self, order: int) -> bool:
        """Return whether the first or second moments are finite."""
        return self._least_df() > order

    def _least_df(self) -> float:
        df = self.component_df()
        return np.inf if df is None else float(df[self.weights > 0].min())

    def require_moments(self, order: int) -> None:
        """Raise ImproperError unless the first or second moments are finite."""
        if not self.has_moments(order):
            least = self._least_df()
            what = "mean" if order == 1 else "finite covariance matrix"
            raise ImproperError(
                f"a Student-t with {least:g} degrees of freedom has no {what}, which needs more than "
                f"{order}; use quantile or interval of a marginal column"
            )
