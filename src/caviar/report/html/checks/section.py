"""Checks of a model against its data: columns beside those of replicates, and small charts without a script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...._errors import CaviarError
from ....language import Categorical, Variable
from ....posterior.diagnostics.replicates import Bars, bars_of, replicated
from ....posterior.new_rows import rows_first
from ....posterior.prediction.residuals import Residuals, means_of_neighbours
from ..numbers import as_numbers, number
from ..section import Section

_MISSED = 0.05
"""Share of rows that may be in other bars than expected before the check says that the model misses something."""
_MOST_GROUPS, _FEWEST_IN_A_GROUP = 15, 10


class Checks(Section):
    """Data sets of the model beside the data, and residuals."""

    name, link, template = "checks", "Checks", "checks.html"

    def gather(self, subject: Any) -> dict[str, Any]:
        return {"checks": subject.checks}


def checks_of(subject: Any) -> dict[str, Any] | None:
    """Return charts and sentences of the checks; None without data."""
    if subject.data is None:
        return None
    found = replicates_of(subject.posterior, subject.data, subject.observed_columns)
    bars = [] if isinstance(found, str) else found
    return {
        "size": [WIDTH, HEIGHT],
        "replicates": [
            {
                **bars_chart(own),
                "sentence": _sentence(own.bars),
                "level": "note" if _is_missed(own.bars) else "good",
            }
            for own in bars
        ],
        "why_not": found if isinstance(found, str) else None,
        "residuals": [
            chart for leaf, own in subject.residuals if own.observed.ndim == 1 for chart in _chart(leaf, own)
        ],
    }


def _is_missed(bars: Bars) -> bool:
    """Whether more rows are in other bars than in any data set of the model, and more than a few."""
    return bars.share_outside > max(_MISSED, bars.by_chance)


def _sentence(bars: Bars) -> str:
    if _is_missed(bars):
        return (
            f"The model misses the shape of this column: {bars.share_outside:.0%} of the rows are in other bars than "
            f"it expects."
        )
    return "The model reproduces this column."


def _chart(leaf: Variable, residuals: Residuals) -> list[dict[str, Any]]:
    """Return a chart of the residuals of numbers, counts, or outcomes 0 and 1; none of few."""
    mean, scaled = residuals.prediction.mean, residuals.standardised
    shown = np.isfinite(mean) & np.isfinite(scaled)
    mean, scaled = mean[shown], scaled[shown]
    groups = means_of_neighbours(mean, scaled, min(_MOST_GROUPS, len(scaled) // _FEWEST_IN_A_GROUP))
    if len(groups) < 2:
        return []
    off = sum(abs(value) > 1.96 / np.sqrt(count) for _, value, count in groups)
    far = int((np.abs(scaled) > 3).sum())
    told = (
        f"{off} of {len(groups)} groups are off by more than chance: the predictor misses something."
        if off > max(1, 0.2 * len(groups))
        else "Groups of rows are off by no more than chance."
    )
    rows = "row is" if far == 1 else "rows are"
    return [
        {
            **means_chart(leaf.name, groups),
            "sentence": f"{told} {far:,} {rows} more than 3 standard deviations off.",
        }
    ]


WIDTH, HEIGHT = 320.0, 190.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 40.0, 8.0, 8.0, 30.0
_MOST_LABELS, _LETTER = 6, 5.6


@dataclass(frozen=True)
class Scale:
    """A linear scale from numbers to places of a drawing."""

    low: float
    high: float
    start: float
    stop: float

    def __call__(self, value: float) -> float:
        """Return the place of a number."""
        share = (value - self.low) / (self.high - self.low) if self.high > self.low else 0.5
        return round(self.start + share * (self.stop - self.start), 1)

    def ticks(self, most: int = 5) -> list[float]:
        """Return round numbers within the scale.

        Examples
        --------
        >>> Scale(0.0, 47.0, 0.0, 100.0).ticks()
        [0.0, 10.0, 20.0, 30.0, 40.0]
        """
        span = self.high - self.low
        if span <= 0:
            return [self.low]
        step = 10.0 ** np.floor(np.log10(span / most))
        step *= next(own for own in (1, 2, 5, 10) if span / (step * own) <= most)
        first, last = np.ceil(self.low / step - 1e-9), np.floor(self.high / step + 1e-9)
        return [float(round(place * step, 12)) + 0.0 for place in np.arange(first, last + 1) + 0.0]


def bars_chart(column: ColumnBars) -> dict[str, Any]:
    """Return a chart of the rows of each bar, with the band of the data sets of the model."""
    bars = column.bars
    lower, middle, upper = bars.quantiles
    top = float(max(bars.observed.max(), upper.max(), 1.0)) * 1.05
    x = Scale(float(bars.edges[0]), float(bars.edges[-1]), _LEFT, WIDTH - _RIGHT)
    y = Scale(0.0, top, HEIGHT - _BOTTOM, _TOP)
    boxes, bands = [], []
    for k in range(len(bars.observed)):
        left, right = x(float(bars.edges[k])), x(float(bars.edges[k + 1]))
        gap = 0.16 * (right - left) if bars.are_single else 0.0
        boxes.append(_box(left + gap, right - gap, y(float(bars.observed[k])), y(0.0)))
        inner = 0.32 * (right - left)
        band = _box(left + inner, right - inner, y(float(upper[k])), y(float(lower[k])))
        bands.append({**band, "middle": y(float(middle[k]))})
    if column.labels is None:
        across = [{"at": x(value), "text": number(value, 3)} for value in x.ticks()]
    else:
        centres = (bars.edges[1:] + bars.edges[:-1]) / 2
        across = _spread_labels([x(float(at)) for at in centres], column.labels)
    return {
        "name": column.name,
        "boxes": boxes,
        "bands": bands,
        "across": across,
        "up": [{"at": y(value), "text": number(value, 3)} for value in y.ticks(4)],
        "words": f"{column.name}: rows of the data in each bar, and the 95% band of data sets of the model",
    }


def means_chart(name: str, means: Sequence[tuple[float, float, int]]) -> dict[str, Any]:
    """Return a chart of mean standardised residuals of neighbouring rows, with what chance alone makes of each."""
    places = np.array([place for place, _, _ in means])
    values = np.array([value for _, value, _ in means])
    bars = 1.959963984540054 / np.sqrt([count for _, _, count in means])
    reach = max(1.0, float((np.abs(values) + bars).max()) * 1.1)
    margin = 0.05 * float(np.ptp(places)) or 1.0
    x = Scale(float(places.min()) - margin, float(places.max()) + margin, _LEFT, WIDTH - _RIGHT)
    y = Scale(-reach, reach, HEIGHT - _BOTTOM, _TOP)
    return {
        "name": name,
        "points": [
            {"x": x(place), "y": y(value), "low": y(value - bar), "high": y(value + bar)}
            for place, value, bar in zip(places.tolist(), values.tolist(), bars.tolist(), strict=True)
        ],
        "zero": y(0.0),
        "across": [{"at": x(value), "text": number(value, 3)} for value in x.ticks()],
        "up": [{"at": y(value), "text": number(value, 3)} for value in y.ticks(4)],
        "words": f"mean standardised residual of {name} in groups of rows, by the prediction",
    }


def _box(left: float, right: float, top: float, bottom: float) -> dict[str, float]:
    low = max(bottom, top)
    return {
        "x": round(left, 1),
        "y": round(min(top, bottom), 1),
        "w": round(max(right - left, 0.5), 1),
        "h": round(max(low - min(top, bottom), 0.5), 1),
    }


def _spread_labels(places: Sequence[float], labels: Sequence[str]) -> list[dict[str, Any]]:
    """Return the labels for which there is room."""
    room = (WIDTH - _LEFT - _RIGHT) / max(len(labels), 1)
    longest = max(map(len, labels)) * _LETTER + 4.0
    every = max(1, int(np.ceil(min(longest, 90.0) / room)), len(labels) // (_MOST_LABELS * 2))
    most = int(room * every / _LETTER)
    return [
        {"at": place, "text": label if len(label) <= most else f"{label[: max(most - 1, 1)]}…"}
        for place, label in list(zip(places, labels, strict=True))[::every]
    ]


_N_DRAWS, _FEWEST_DRAWS = 100, 20
_MOST_VALUES = 2_000_000
"""Rows times data sets; of more rows there are fewer data sets."""
_MOST_ROWS = 50_000
_MOST_COLUMNS, _MOST_BARS = 12, 24
_LEVEL = 0.95


@dataclass(frozen=True, eq=False)
class ColumnBars:
    """A column of what was observed, in bars.

    Attributes
    ----------
    name
        Of the column.
    labels
        What the bars are called, where each is one value; None for intervals of numbers.
    bars
        Its rows, and those of data sets of the model.
    """

    name: str
    labels: Sequence[str] | None
    bars: Bars


def replicates_of(
    posterior: Any, data: Mapping[str, Any], names: Sequence[str] | None = None
) -> list[ColumnBars] | str:
    """Return bars for each column of what was observed; or why there are none.

    Parameters
    ----------
    posterior
        Of the fit.
    data
        Name -> array, as the posterior takes them.
    names
        Of the columns of what was observed; by default those that the posterior knows.
    """
    plate = posterior.data_plate
    by_row = [leaf for leaf in posterior.model.leaves if plate is not None and plate in leaf.plates]
    leaves = [leaf for leaf in by_row if as_numbers(data.get(leaf.name)) is not None]
    if not leaves:
        return "the model has no rows of numbers or labels to compare"
    n_rows = len(rows_first(posterior, leaves[0].name, np.asarray(data[leaves[0].name])))
    if n_rows > _MOST_ROWS:
        return f"data sets of {n_rows:,} rows are not made for a report"
    n_draws = int(np.clip(_MOST_VALUES // max(n_rows, 1), _FEWEST_DRAWS, _N_DRAWS))
    try:
        drawn = replicated(posterior, data, n_rows, n_draws, 0)
    except CaviarError as error:
        return str(error).partition(". ")[0].rstrip(".")
    return [
        own for leaf in leaves for own in _of_leaf(posterior, leaf, data[leaf.name], drawn[leaf.name], names)
    ]


def _of_leaf(
    posterior: Any, leaf: Any, observed: Any, drawn: Any, given: Sequence[str] | None
) -> list[ColumnBars]:
    """Return the bars of each column of a variable, the first dozen."""
    own = rows_first(posterior, leaf.name, np.asarray(as_numbers(observed), dtype=np.float64))
    made = np.asarray(drawn, dtype=np.float64)
    if made.shape[1:] != own.shape:
        return []
    own, made = own.reshape(len(own), -1), made.reshape(len(made), len(own), -1)
    is_label = isinstance(leaf, Categorical)
    categories = posterior.names.entries(leaf.name) if is_label else None
    names = None if is_label else given or posterior.names.entries(leaf.name)
    arrays = (posterior.data_summary or {}).get("arrays", {})
    names = names or arrays.get(leaf.name, {}).get("columns")
    width = own.shape[1]
    if names is None or len(names) != width or is_label:
        names = [leaf.name] if width == 1 else [f"{leaf.name} {place}" for place in range(width)]
    found = []
    for place in range(min(width, _MOST_COLUMNS)):
        is_there = ~np.isnan(own[:, place])
        if is_there.any():
            bars = bars_of(own[is_there, place], made[:, is_there, place], _MOST_BARS, _LEVEL)
            found.append(ColumnBars(str(names[place]), _labels(bars, categories), bars))
    return found


def _labels(bars: Bars, categories: Sequence[str] | None) -> list[str] | None:
    """Return what the bars are called, where each is one value."""
    if not bars.are_single:
        return None
    values = np.ceil(bars.edges[:-1]).astype(int).tolist()
    if categories is not None and values[-1] < len(categories):
        return [str(categories[value]) for value in values]
    return list(map(str, values))
