"""Mean and credible interval of every entry of a variable, one below the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from .._errors import ParameterError
from ._axes import LINES, in_style, muted, new_axes, paper, stroke
from ._posterior_figures import Figures, check_level, figures_of, places_of, posterior_of
from .colours import colours_of


@in_style
def forest(
    fitted: Any,
    variable: str | None = None,
    *,
    level: float = 0.95,
    names: Mapping[str, Sequence[str]] | None = None,
    only: Mapping[str, Sequence[str]] | None = None,
    max_entries: int = 60,
    ax: Axes | None = None,
) -> Axes:
    """Return a picture of a global variable: a line for each entry, with its mean and credible interval.

    Parameters
    ----------
    fitted
        A posterior, or a fitted estimator.
    variable
        Name of a global variable; of a joint factor with its part, as ``"theta.mean"``. It may be left out where there
        is only one.
    level
        Of the central credible intervals.
    names
        Name of a plate -> what its places are called; name of the variable -> what the entries of one value are called.
        By default the names of the posterior.
    only
        Name of a plate, or of the variable -> those of its places, by what they are called, that are drawn; as one
        column of many with units of their own.
    max_entries
        More entries are refused.
    ax
        Axes to draw into; by default those of a new figure.

    Returns
    -------
    Axes
        The title says whether intervals are those of linear response, see ``uncertainty=`` of :meth:`caviar.Model.fit`.
        The first entry is at the top. A symmetric matrix shows its lower triangle. A hollow marker is an entry without
        an interval: a point, or one whose family gives no quantiles.

    Raises
    ------
    ParameterError
        If there is no such variable, or it has too many entries.

    Examples
    --------
    >>> import caviar as cv
    >>> model = cv.models.linear_regression(2)
    >>> posterior = model.fit({"X": [[1, 0], [1, 1], [1, 2]], "y": [1.0, 3.1, 4.9]})
    >>> ax = cv.plot.forest(posterior, "w", names={"w": ["intercept", "slope"]})
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['intercept', 'slope']
    """
    level = check_level(level)
    figures = _the_one(fitted, variable, level)
    places = places_of(fitted, figures, names, only)
    entries = [(label, *_numbers(figures, index)) for label, index in places]
    if len(entries) > max_entries:
        raise ParameterError(
            f"'{figures.name}' has {len(entries)} entries, too many for one picture; pass max_entries={len(entries)} "
            f"to have them all the same, only= for a part, or read them with posterior.summary(max_rows=None)"
        )
    ax = new_axes(ax, (5.6, 0.24 * len(entries) + 1.1))
    colour = stroke(ax, colours_of(1)[0], 0.15)
    for line, (_, mean, low, high) in enumerate(entries):
        is_open = not np.isfinite(low)
        if not is_open:
            ax.plot([low, high], [line, line], color=colour, lw=2, solid_capstyle="butt", zorder=2)
        ax.plot(mean, line, "o", ms=5.5, mfc=paper(ax) if is_open else colour, mec=colour, mew=1.3, zorder=3)
    low_end, high_end = ax.get_xlim()
    if low_end < 0 < high_end:
        ax.axvline(0, color=muted(), lw=0.8, ls=(0, (4, 3)), zorder=0)
    ax.set_yticks(range(len(entries)), [label for label, *_ in entries])
    ax.set_ylim(len(entries) - 0.4, -0.6)
    ax.grid(axis="x", color=LINES, lw=0.6)
    ax.set_axisbelow(True)
    ax.set_xlabel(figures.name)
    has_intervals = figures.lower is not None
    ax.set_title(
        f"{figures.name}: mean and {figures.told_interval(level)}"
        if has_intervals
        else f"{figures.name}: points"
    )
    return ax


def _the_one(fitted: Any, variable: str | None, level: float) -> Figures:
    """Return the figures of the variable, or part of one, that is asked for."""
    posterior = posterior_of(fitted)
    if variable is None and len(posterior) > 1:
        known = ", ".join(repr(name) for name in posterior)
        raise ParameterError(
            f"forest draws one variable; choose one of {known}, as forest(posterior, 'name')"
        )
    name = next(iter(posterior)) if variable is None else variable
    found = figures_of(posterior, name, level)
    if len(found) > 1:
        parts = " or ".join(repr(figures.name) for figures in found)
        raise ParameterError(
            f"{name!r} is a joint factor, whose parts have units of their own; choose {parts}"
        )
    return found[0]


def _numbers(figures: Figures, index: tuple[int, ...]) -> tuple[float, float, float]:
    """Return mean and ends of an entry."""
    ends = (float("nan") if end is None else float(end[index]) for end in (figures.lower, figures.upper))
    low, high = ends
    return float(figures.mean[index]), low, high
