"""Prediction of some columns given others: mean, standard deviation and interval for each row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._tables import MOST_LINES, html_of
from .._typing import AnyArray, Array
from .conditioning import Conditionable
from .rows import blocks, patterns


@dataclass(frozen=True, eq=False, repr=False)
class ConditionalPrediction:
    """Prediction of target columns under a mixture, given the observed entries of each row.

    Attributes
    ----------
    mean
        Conditional mean, shape (N, T), or (N,) for a single target.
    standard_deviation
        Standard deviation of the target itself (not of its mean), in the same shape; infinite if the variance is
        infinite.
    lower, upper
        Ends of the equal-tailed interval, in the same shape.

    Examples
    --------
    >>> ConditionalPrediction(np.array([1.5]), np.array([0.5]), np.array([0.52]), np.array([2.48]))
    ConditionalPrediction(mean=[1.5], standard_deviation=[0.5], lower=[0.52], upper=[2.48])
    """

    mean: Array
    standard_deviation: Array
    lower: Array
    upper: Array

    def column(self, number: int) -> ConditionalPrediction:
        """Return the prediction of one target, whose arrays have shape (N,).

        Examples
        --------
        >>> both = ConditionalPrediction(*np.arange(8.0).reshape(4, 1, 2))
        >>> both.column(1).mean
        array([1.])
        """
        return ConditionalPrediction(
            self.mean[:, number],
            self.standard_deviation[:, number],
            self.lower[:, number],
            self.upper[:, number],
        )

    def _repr_html_(self) -> str:
        """Return the first rows as a table, for a notebook."""
        cells = [("row", "mean", "sd", "interval")]
        places = list(np.ndindex(np.shape(self.mean)))
        for at in places[:MOST_LINES]:
            ends = f"{self.lower[at]:.4g} to {self.upper[at]:.4g}"
            cells.append(
                (", ".join(map(str, at)), f"{self.mean[at]:.4g}", f"{self.standard_deviation[at]:.4g}", ends)
            )
        left = len(places) - MOST_LINES
        return html_of("", cells, [f"and {left:,} more"] if left > 0 else [])

    def __repr__(self) -> str:
        parts = (
            f"{name}={np.array2string(array, precision=4, threshold=6, edgeitems=2, separator=', ')}"
            for name, array in vars(self).items()
        )
        return f"ConditionalPrediction({', '.join(parts)})"


def predicted(
    mixture: Conditionable, X: AnyArray, known: AnyArray, wanted: AnyArray, level: float
) -> ConditionalPrediction:
    """Return the prediction of wanted columns given rows of known ones, (N, O), with NaN where not observed."""
    arrays = np.empty((4, len(X), len(wanted)))
    for observed, _, rows in patterns(np.isnan(X)):
        regression = mixture.regression(known[observed], wanted)
        for within in blocks(len(rows), mixture.n_components * (len(wanted) + 3) + 3 * len(observed)):
            chosen = rows[within]
            given = regression.at(np.asarray(X[np.ix_(chosen, observed)], dtype=np.float64))
            mean = given.means()
            arrays[0, chosen], arrays[1, chosen] = mean, given.standard_deviations(mean)
            tail = np.full(len(chosen), 0.5 * (1.0 - level))
            for column in range(len(wanted)):
                marginal = given.univariate(column)
                arrays[2, chosen, column] = marginal.lower_quantile(tail)
                arrays[3, chosen, column] = marginal.upper_quantile(tail)
    return ConditionalPrediction(*arrays)
