"""Quantiles and central intervals of the marginal distribution of each entry of a value."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from caviar._errors import ModelError
from caviar._tables import MOST_LINES, beside, html_of
from caviar._typing import Array
from caviar.families.base.marginals import Ends, Marginals
from caviar.families.base.values import MeanPrecision
from caviar.numerics.arguments import central_ends, require_share


class Intervals(ABC):
    """A factor whose entries have marginal distributions: a distribution, a point mass, or one that is partly known."""

    @abstractmethod
    def entry_marginals(self, ends: Ends) -> list[Marginals]:
        """Return mean, sd and quantiles of every entry: one part, or location and precision of a joint family."""

    def quantile(self, q: float) -> Any:
        """Return a quantile of the marginal distribution of each entry.

        Parameters
        ----------
        q
            Probability below the quantile, between 0 and 1.

        Returns
        -------
        ndarray
            In the shape of the mean (plates, then one value); for a joint factor a pair, for mean and precision. All
            quantiles of a point mass are its point. NaN for an entry without a closed form.

        Raises
        ------
        ParameterError
            If q does not lie between 0 and 1.
        ModelError
            For labels, which have probabilities instead, and for other families without quantiles.

        Examples
        --------
        >>> import caviar as cv
        >>> p = cv.Beta("p", 1, 1)
        >>> posterior = cv.Model(cv.Bernoulli("x", p, plates=cv.Plate("obs"))).fit({"x": [1, 1, 0]})
        >>> print(posterior["p"].quantile(0.5).round(3))
        0.614
        """
        q = require_share("q", q)
        return _as_value([lower for lower, _ in self._entry_ends((q, q))])

    def interval(self, level: float = 0.95) -> Any:
        """Return the central credible interval of each entry: lower ends, then upper ends, shape (2, ...).

        Parameters
        ----------
        level
            Probability of the interval, between 0 and 1.

        Returns
        -------
        ndarray
            Shape (2, plates..., event...); for a joint factor a pair, for mean and precision. For a point mass both
            ends are its point.

        Raises
        ------
        ParameterError
            If level does not lie between 0 and 1.
        ModelError
            For labels, which have probabilities instead, and for other families without quantiles.

        Examples
        --------
        >>> import caviar as cv
        >>> p = cv.Beta("p", 1, 1)
        >>> posterior = cv.Model(cv.Bernoulli("x", p, plates=cv.Plate("obs"))).fit({"x": [1, 1, 0]})
        >>> print(posterior["p"].interval(0.9).round(3))
        [0.249 0.902]
        """
        return _as_value([np.stack(own) for own in self._entry_ends(central_ends(level))])

    def _repr_html_(self) -> str:
        """Return the first entries as a table, for a notebook: mean, standard deviation and central 95% interval."""
        parts = self.entry_marginals((0.025, 0.975))
        cells: list[tuple[str, ...]] = [("at", "mean", "sd", "95% interval")]
        remarks: list[str] = []
        for own in parts:
            places = np.ndindex(np.shape(own.mean))
            cells += [_cells_of(own, place) for place, _ in zip(places, range(MOST_LINES), strict=False)]
            left = np.size(own.mean) - MOST_LINES
            remarks += [f"and {left:,} more{' of ' * bool(own.part)}{own.part[1:]}"] if left > 0 else []
        if not any(sd or interval for _, _, sd, interval in cells[1:]):
            # labels and points have neither
            cells = [row[:2] for row in cells]
        return html_of(type(self).__name__, cells, remarks)

    def _entry_ends(self, ends: Ends) -> list[tuple[Array, Array]]:
        """Return the two quantiles of every entry of each part."""
        found = []
        for own in self.entry_marginals(ends):
            if own.lower is None or own.upper is None:
                raise ModelError(
                    f"a {type(self).__name__} has no quantiles: labels have probabilities (.probabilities), others "
                    f"draws (.sample)"
                )
            found.append((np.asarray(own.lower), np.asarray(own.upper)))
        return found


def _as_value(parts: list[Array]) -> Any:
    return MeanPrecision(*parts) if len(parts) == 2 else parts[0]


def _cells_of(own: Marginals, place: tuple[int, ...]) -> tuple[str, ...]:
    """Return the cells of one entry of a part; empty ones for what its family does not give."""
    mean, sd, lower, upper = (
        np.nan if array is None else float(array[place]) for array in (own.mean, own.sd, own.lower, own.upper)
    )
    at = f"[{', '.join(map(str, place))}]" if place else ""
    # what is known has neither
    return (
        " ".join(filter(None, (own.part[1:], at))),
        beside(mean, sd),
        "" if np.isnan(sd) or sd == 0 else f"{sd:.4g}",
        "" if np.isnan(lower) or sd == 0 else f"{lower:.4g} to {upper:.4g}",
    )
