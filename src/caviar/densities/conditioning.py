"""Distributions of some columns given the values of others, and the mixtures that have them."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from .._typing import AnyArray, Array
from .components.component import Components
from .components.quantiles import Univariate
from .components.responsibilities import joint_log_densities, normalised
from .components.student_t import conditional_stretch


@dataclass(frozen=True, eq=False, repr=False)
class Conditionable(Components):
    """Components whose marginals and conditionals are mixtures of the same kind."""

    @abstractmethod
    def regression(self, observed: AnyArray, wanted: AnyArray) -> Regression:
        """Return the distribution of wanted columns as a function of the values of observed ones."""

    def select(self, columns: AnyArray) -> Self:
        """Return the distribution of some columns by number, (C,)."""
        if np.array_equal(columns, np.arange(self.n_features)):
            return self
        part: Any = self.regression(np.array([], dtype=np.intp), columns).rest
        return part


@dataclass(frozen=True, eq=False)
class Regression:
    r"""The distribution of wanted columns as a function of the values of observed ones.

    Component k has the location :math:`m_k + C_k (x_o - m_{ok})`.

    Attributes
    ----------
    known
        Distribution of the observed columns by themselves; None if there are none.
    rest
        Distribution of the wanted columns where the observed ones are at their centres, up to its weights: with the
        degrees of freedom that are due afterwards, and scales before they are stretched.
    coefficients
        :math:`C_k`, shape (K or 1, M, O); None if they are zero.
    stretching_df
        Degrees of freedom of components whose scale grows with the distance of what was observed, (K,); None if
        no scale does.
    """

    known: Components | None
    rest: Components
    coefficients: Array | None = None
    stretching_df: Array | None = None

    def at(self, X: Array) -> ConditionalRows:
        """Return the distributions given rows of observed values, (B, O)."""
        rest = self.rest
        shape = (rest.n_components, len(X))
        centres = np.broadcast_to(rest.locations[:, None, :], (*shape, rest.n_features))
        if self.known is None:
            weights = np.broadcast_to((rest.weights / rest.weights.sum())[:, None], shape)
            return ConditionalRows(rest, weights, centres, np.ones((rest.n_components, 1)))
        weights = normalised(self.known, X, joint_log_densities(self.known, X))
        if self.coefficients is not None:
            centres = centres.copy()
            for k, location in enumerate(self.known.locations):
                own = self.coefficients[k if len(self.coefficients) > 1 else 0]
                centres[k] += (X - location) @ own.T
        stretch = np.ones((rest.n_components, 1))
        if self.stretching_df is not None:
            stretch = conditional_stretch(self.known.distances(X), self.stretching_df[:, None], X.shape[1])
        return ConditionalRows(rest, weights, centres, stretch)


@dataclass(frozen=True, eq=False)
class ConditionalRows:
    """Mixtures that differ from row to row in their weights, locations and scales.

    Attributes
    ----------
    template
        What they have in common: the shape of the scales and the degrees of freedom, of M columns.
    weights
        Shape (K, B).
    locations
        Shape (K, B, M).
    stretch
        What the scales of the template are multiplied by, shape (K, B) or (K, 1).
    """

    template: Components
    weights: Array
    locations: Array
    stretch: Array

    def means(self) -> Array:
        """Return the mean of each row, (B, M).

        Raises
        ------
        ImproperError
            If it does not exist.
        """
        self.template.require_moments(1)
        return np.einsum("kb,kbm->bm", self.weights, self.locations)

    def standard_deviations(self, means: Array) -> Array:
        """Return the standard deviation of each entry, (B, M), infinite where the variance is."""
        scales = self.template.component_scales()
        df = self.template.component_df()
        if df is not None:
            with np.errstate(divide="ignore", invalid="ignore"):
                scales = scales * np.where(df > 2, np.sqrt(df / (df - 2)), np.inf)
        result = np.zeros_like(means)
        for k, weights in enumerate(self.weights):
            # root of the weight first: no square leaves the range, and 0 times infinity does not arise
            within = np.hypot(self.stretch[k][:, None] * scales[k], self.locations[k] - means)
            root = np.sqrt(weights)[:, None]
            result = np.hypot(result, root * np.where(root > 0, within, 0.0))
        return result

    def univariate(self, column: int) -> Univariate:
        """Return the distributions of one column of all rows."""
        df = self.template.component_df()
        return Univariate(
            self.weights,
            self.locations[:, :, column],
            self.stretch * self.template.component_scales()[:, column, None],
            None if df is None else df[:, column, None],
        )

    def draws(self, n_draws: int, rng: np.random.Generator) -> Array:
        """Return independent draws of each row, (n_draws, B, M)."""
        labels = drawn_labels(self.weights, n_draws, rng)
        row = np.broadcast_to(np.arange(labels.shape[1]), labels.shape)
        residuals = self.template.draw_residuals(labels.ravel(), rng).reshape(*labels.shape, -1)
        stretch = np.broadcast_to(self.stretch, self.weights.shape)[labels, row]
        return self.locations[labels, row] + stretch[..., None] * residuals


def drawn_labels(weights: Array, n_draws: int, rng: np.random.Generator) -> AnyArray:
    """Return draws of components with the probabilities of each row, (K, B) -> (n_draws, B)."""
    uniforms = rng.random((n_draws, weights.shape[1]))
    labels = np.zeros(uniforms.shape, dtype=np.intp)
    ends = np.cumsum(weights, axis=0)
    for end in ends[:-1] / ends[-1]:
        labels += uniforms >= end
    return labels
