"""Small charts that need no script: coordinates of rectangles, lines and labels within a drawing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..numbers import number
from .replicates import ColumnBars

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
