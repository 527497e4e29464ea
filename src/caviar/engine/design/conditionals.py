"""Missing entries given those observed, for all rows that lack the same ones at once.

See :mod:`~caviar.engine.rows.terms.missing_patterns`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ..._typing import AnyArray, Array
from ...numerics.linalg import cholesky, inverse, inverse_from_factor
from .features import Feature


@dataclass(frozen=True)
class Conditionals:
    """The missing entries given those observed: G patterns of M missing entries each, in K categories.

    Attributes
    ----------
    bounds
        Where the rows of each pattern begin in the block, and where the last end: shape (G + 1,).
    missing
        The missing entries of each pattern, shape (G, M).
    slope, offset
        The gain is half the square of ``offset + slope @ x_o``, plus ``constant``: (G, K, M, D) and (G, K, M).
    constant
        Half the logarithm of the determinant of 2 pi V, shape (G, K).
    regression, mean
        R and b, shapes (G, K, M, D) and (G, K, M).
    covariance
        V, shape (G, K, M, M).
    """

    bounds: AnyArray
    missing: AnyArray
    slope: Array
    offset: Array
    constant: Array
    regression: Array
    mean: Array
    covariance: Array

    @property
    def rows(self) -> slice:
        """Rows of the block that have one of the patterns."""
        return slice(int(self.bounds[0]), int(self.bounds[-1]))

    def of(self, categories: slice) -> Conditionals:
        """Return those of some of the categories."""
        own = (self.slope, self.offset, self.constant, self.regression, self.mean, self.covariance)
        return Conditionals(self.bounds, self.missing, *(array[:, categories] for array in own))

    def add_gain(self, values: Array, natural: Array) -> None:
        """Add to log densities (K, B) the gain of integrating out what is missing of ``values`` (D, B)."""
        n_patterns, n_categories, n_missing, _ = self.slope.shape
        lengths = np.diff(self.bounds)
        slope = self.slope.reshape(n_patterns, n_categories * n_missing, -1)
        offset = self.offset.reshape(n_patterns, -1)
        scaled = np.repeat(offset.T, lengths, axis=1)
        begin = self.bounds[0]
        for own, start, stop in zip(slope, self.bounds, self.bounds[1:], strict=False):
            scaled[:, start - begin : stop - begin] += own @ values[:, start:stop]
        np.square(scaled, out=scaled)
        gain = 0.5 * scaled.reshape(n_categories, n_missing, -1).sum(axis=1)
        natural[:, self.rows] += gain + np.repeat(self.constant.T, lengths, axis=1)

    def moments(self, expected: Array, features: Array, square: Feature) -> tuple[Array, Array, float]:
        """Return what the missing entries add to the sums over rows of x and xx', and their entropy.

        Parameters
        ----------
        expected
            Probabilities of the categories, times the weights of the rows, shape (K, B).
        features
            The entries observed and their products, zeros where one is missing, shape (F, B).
        square
            The feature xx', which unpacks the products.

        Returns
        -------
        tuple
            Sums by category, shapes (K, D) and (K, D, D), and the sum of the entropies.
        """
        n_patterns, n_categories, n_missing, size = self.regression.shape
        counts = np.add.reduceat(expected[:, self.rows], self.bounds[:-1] - self.bounds[0], axis=1).T
        raw = np.empty((n_patterns, n_categories, len(features)))
        for own, start, stop in zip(raw, self.bounds, self.bounds[1:], strict=False):
            np.matmul(expected[:, start:stop], features[:, start:stop].T, out=own)
        first = raw[..., :size]
        second = square.unpack(raw[..., size:].reshape(-1, len(features) - size)).reshape(
            *raw.shape[:2], size, size
        )
        # sums of x_m, of x_m x_o' and of x_m x_m' over the rows of each pattern
        sums = counts[..., None] * self.mean - (self.regression @ first[..., None])[..., 0]
        across = self.mean[..., :, None] * first[..., None, :] - self.regression @ second
        within = sums[..., :, None] * self.mean[..., None, :] - across @ np.swapaxes(self.regression, -1, -2)
        within += counts[..., None, None] * self.covariance
        # half of x_m x_m' here and its transpose there
        places = np.broadcast_to(self.missing[:, None, None, :], within.shape)
        np.put_along_axis(across, places, 0.5 * within, axis=-1)
        entropy = float(np.vdot(counts, self.constant + 0.5 * n_missing))
        return *self._placed(sums, across), entropy

    def add_change_of_gain(self, values: Array, linear: Array, precision: Array, natural: Array) -> None:
        r"""Add to changes of log densities (K, B) those of the gain, where h (K, D) and P (K, D, D) change by these.

        With :math:`m` the expected missing entries of a row it is :math:`m' \delta h_m - m' \delta P_{mo} x_o -
        \tfrac12 (m' \delta P_{mm} m + \mathrm{tr}\, \delta P_{mm} V)`.
        """
        beside, square, offset = self._at_missing(linear, precision)
        constant = 0.5 * np.einsum("gkmn,gkmn->gk", square, self.covariance)
        for number, (start, stop) in enumerate(zip(self.bounds, self.bounds[1:], strict=False)):
            observed = values[:, start:stop]
            missing = self.mean[number][..., None] - self.regression[number] @ observed
            said = offset[number][..., None] - beside[number] @ observed - 0.5 * square[number] @ missing
            natural[:, start:stop] += (missing * said).sum(axis=1) - constant[number][:, None]

    def change_of_moments(
        self, expected: Array, features: Array, square: Feature, linear: Array, precision: Array
    ) -> tuple[Array, Array]:
        """Return by how much the first two of :meth:`moments` change, as h (K, D) and P (K, D, D) change by these."""
        beside, of_missing, offset = self._at_missing(linear, precision)
        regression = self.covariance @ (beside - of_missing @ self.regression)
        mean = self.covariance @ (offset - (of_missing @ self.mean[..., None])[..., 0])[..., None]
        covariance = -self.covariance @ of_missing @ self.covariance
        # they are of the second degree in what changes here: this difference has no error but rounding
        above, below = (
            replace(
                self,
                regression=self.regression + sign * regression,
                mean=self.mean + sign * mean[..., 0],
                covariance=self.covariance + sign * covariance,
            ).moments(expected, features, square)
            for sign in (1.0, -1.0)
        )
        return 0.5 * (above[0] - below[0]), 0.5 * (above[1] - below[1])

    def _at_missing(self, linear: Array, precision: Array) -> tuple[Array, Array, Array]:
        """Return P_m. (G, K, M, D), P_mm (G, K, M, M) and h_m (G, K, M) of each pattern."""
        category = np.arange(len(linear))[:, None]
        beside = precision[category, self.missing[:, None]]
        square = precision[
            category[..., None], self.missing[:, None, :, None], self.missing[:, None, None, :]
        ]
        return beside, square, linear[category, self.missing[:, None]]

    def _placed(self, sums: Array, across: Array) -> tuple[Array, Array]:
        """Return (G, K, M) and (G, K, M, D), summed over the patterns: (K, D), and with its transpose (K, D, D)."""
        _, n_categories, _, size = across.shape
        chosen = np.zeros((size, self.missing.size))
        chosen[self.missing.ravel(), np.arange(self.missing.size)] = 1.0
        total = (chosen @ sums.transpose(0, 2, 1).reshape(-1, n_categories)).T
        half = chosen @ across.transpose(0, 2, 1, 3).reshape(self.missing.size, -1)
        half = half.reshape(size, n_categories, size).transpose(1, 0, 2)
        return total, half + np.swapaxes(half, -1, -2)


def patterns(seen: AnyArray) -> Iterator[tuple[AnyArray, AnyArray]]:
    """Yield runs of rows with one pattern each, those next to each other with equally many missing entries together.

    Returns
    -------
    Iterator
        Bounds of the G runs, shape (G + 1,), and their missing entries, shape (G, M). Rows that lack none or all of
        their entries are left out.
    """
    starts = np.flatnonzero((seen[1:] != seen[:-1]).any(axis=1)) + 1
    bounds = np.concatenate([[0], starts, [len(seen)]])
    gone = ~seen[bounds[:-1]]
    counts = gone.sum(axis=1)
    for runs in np.split(np.arange(len(counts)), np.flatnonzero(np.diff(counts)) + 1):
        n_missing = counts[runs[0]]
        if 0 < n_missing < seen.shape[1]:
            missing = np.nonzero(gone[runs])[1].reshape(len(runs), n_missing)
            yield bounds[runs[0] : runs[-1] + 2], missing


def given_observed(linear: Array, precision: Array, bounds: AnyArray, missing: AnyArray) -> Conditionals:
    """Return the conditionals of G patterns from coefficients h (K, D) and P (K, D, D)."""
    n_missing = missing.shape[1]
    category = np.arange(len(linear))[:, None]
    beside = precision[category, missing[:, None]]
    square = precision[category[..., None], missing[:, None, :, None], missing[:, None, None, :]]
    lower = cholesky(square)
    inverse_lower = inverse(lower, is_lower=True)
    # L^-1 (P_m., h_m): its square is the gain, and L^-T makes it R and b
    slope = inverse_lower @ beside
    offset = (inverse_lower @ linear[category, missing[:, None]][..., None])[..., 0]
    back = np.swapaxes(inverse_lower, -1, -2)
    half_log_determinant = np.log(np.einsum("gkmm->gkm", lower)).sum(axis=-1)
    return Conditionals(
        bounds,
        missing,
        -slope,
        offset,
        0.5 * n_missing * np.log(2 * np.pi) - half_log_determinant,
        back @ slope,
        (back @ offset[..., None])[..., 0],
        inverse_from_factor(inverse_lower),
    )
