"""Values with weights, as draws or fits at several values have: their moments and quantiles; and draws of several."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._tables import MOST_LINES, beside, html_of, text_table
from .._typing import AnyArray, Array
from ..numerics.arguments import central_ends

_MOST_KEPT, _FEWEST_KEPT = 16_000, 500
"""Numbers of all draws that are kept, and of draws the fewest."""

HEADINGS = ("at", "mean", "sd", "95% interval")
"""Of a table of entries."""


@dataclass(frozen=True, eq=False, repr=False)
class Weighted:
    """Values with weights.

    Attributes
    ----------
    values
        Shape (n, ...).
    weights
        Shape (n,); they sum to one.
    """

    values: Array
    weights: Array

    @property
    def mean(self) -> Array:
        """Mean of each entry."""
        return np.tensordot(self.weights, self.values, axes=1)

    @property
    def sd(self) -> Array:
        """Standard deviation of each entry."""
        return np.sqrt(np.tensordot(self.weights, np.square(self.values - self.mean), axes=1))

    def quantile(self, q: float | Sequence[float]) -> Array:
        """Return quantiles of each entry, shape of q + (...)."""
        flat = self.values.reshape(len(self.values), -1)
        found = np.empty((np.size(q), flat.shape[1]))
        for number, column in enumerate(flat.T):
            order = np.argsort(column, kind="stable")
            ordered = self.weights[order]
            found[:, number] = np.interp(np.ravel(q), np.cumsum(ordered) - 0.5 * ordered, column[order])
        return found.reshape(np.shape(q) + self.values.shape[1:])

    def interval(self, level: float = 0.95) -> Array:
        """Return the central interval of each entry: lower ends, then upper ends, shape (2, ...)."""
        return self.quantile(central_ends(level))

    def transformed(self, function: Callable[[Array], Any]) -> Weighted:
        """Return the values that a function makes of these."""
        return Weighted(np.asarray(function(self.values), dtype=np.float64), self.weights)

    def cells(self) -> list[tuple[str, ...]]:
        """Return the first entries as rows of a table."""
        mean, sd, (lower, upper) = self.mean, self.sd, self.interval()
        places = list(np.ndindex(self.values.shape[1:]))[:MOST_LINES]
        return [
            (
                f"[{', '.join(map(str, at))}]" if at else "",
                beside(float(mean[at]), float(sd[at])),
                f"{sd[at]:.4g}",
                f"{lower[at]:.4g} to {upper[at]:.4g}",
            )
            for at in places
        ]

    def _remark(self) -> str:
        left = int(np.prod(self.values.shape[1:], dtype=int)) - MOST_LINES
        return f"{len(self.values):,} weighted values" + (f"; and {left:,} more entries" if left > 0 else "")

    def __repr__(self) -> str:
        return f"{text_table([HEADINGS, *self.cells()], left={0, 3})}\n{self._remark()}"

    def _repr_html_(self) -> str:
        """Return the first entries as a table, for a notebook."""
        return html_of("", [HEADINGS, *self.cells()], [self._remark()])


@dataclass(frozen=True, eq=False, repr=False)
class WeightedDraws:
    """Draws of several variables together, with weights.

    Attributes
    ----------
    values
        Name -> values, shape (n, plates..., event...); for a joint factor, a pair (mean, precision) of such arrays.
    weights
        Shape (n,); they sum to one.
    doubt
        A sentence on why they may be wrong; empty if nothing says so.
    """

    values: Mapping[str, Any]
    weights: Array
    doubt: str = ""

    @classmethod
    def of_few_numbers(cls, values: Mapping[str, Any], weights: Array, doubt: str) -> WeightedDraws:
        """Return draws that may be kept: fewer of them if they have very many numbers."""
        found = cls(values, weights, doubt)
        return found.thinned(max(_FEWEST_KEPT, _MOST_KEPT // max(found.n_numbers, 1)))

    @property
    def n(self) -> int:
        """How many draws there are."""
        return len(self.weights)

    @property
    def n_numbers(self) -> int:
        """Numbers of a draw."""
        parts = (part for own in self.values.values() for part in (own if isinstance(own, tuple) else (own,)))
        return sum(np.size(part) for part in parts) // max(self.n, 1)

    def at(self, places: AnyArray | slice, weights: Array) -> WeightedDraws:
        """Return the draws at some places, with these weights."""

        def of(own: Any) -> Any:
            return type(own)(*(part[places] for part in own)) if isinstance(own, tuple) else own[places]

        return replace(self, values={name: of(own) for name, own in self.values.items()}, weights=weights)

    def first(self, n: int) -> WeightedDraws:
        """Return the first draws, with weights as if these were all."""
        n = min(n, self.n)
        return self.at(slice(n), np.full(n, 1.0 / n))

    def cut(self, most: int) -> Iterator[WeightedDraws]:
        """Yield at most so many draws after the other, with their weights."""
        for start in range(0, self.n, most):
            places = slice(start, start + most)
            yield self.at(places, self.weights[places])

    def thinned(self, most: int) -> WeightedDraws:
        """Return at most so many draws: those at equal steps of the weight, which then count alike."""
        if self.n <= most:
            return self
        steps = (np.arange(most) + 0.5) / most
        places = np.minimum(np.searchsorted(np.cumsum(self.weights), steps), self.n - 1)
        return self.at(places, np.full(most, 1.0 / most))

    def as_plain(self) -> dict[str, Any]:
        """Return what a file holds of them."""
        doubt = {"doubt": self.doubt} if self.doubt else {}
        return {"values": dict(self.values), "weights": self.weights, **doubt}

    @classmethod
    def of_plain(cls, document: Mapping[str, Any], factors: Mapping[str, Any]) -> WeightedDraws:
        """Return the draws of the globals with these factors that a file holds.

        Raises
        ------
        ValueError
            If they are none.
        """
        values, weights, doubt = document["values"], document["weights"], document.get("doubt", "")
        check_weights(weights)
        if not isinstance(values, dict) or values.keys() != factors.keys():
            raise ValueError("draws of other variables than it has")
        if not isinstance(doubt, str):
            raise ValueError("a doubt that is no sentence")
        for name, own in values.items():
            one = factors[name].sample(1, np.random.default_rng(0))
            parts, like = (each if isinstance(each, tuple) else (each,) for each in (own, one))
            shapes = [(len(weights), *np.shape(each)[1:]) for each in like]
            if [np.shape(each) for each in parts] != shapes or not all(
                np.isfinite(each).all() for each in parts
            ):
                raise ValueError(f"draws of {name!r:.40} that are none")
            values[name] = type(one)(*parts) if isinstance(one, tuple) else own
        return cls(dict(values), weights, doubt)

    def resampled(self, n: int, rng: np.random.Generator) -> dict[str, Any]:
        """Return draws that count alike, by name: each is drawn with the probability of its weight."""
        places = rng.choice(self.n, n, p=self.weights / self.weights.sum())
        return dict(self.at(places, np.full(n, 1.0 / n)).values)


def check_weights(weights: Any) -> None:
    """Refuse what is not a series of weights that sum to one."""
    is_series = isinstance(weights, np.ndarray) and weights.dtype == np.float64 and weights.ndim == 1
    if not is_series or not (weights >= 0).all() or not np.isclose(weights.sum(), 1.0):
        raise ValueError("weights of values that are none")
