"""Mean and credible interval of every entry of a variable, one below the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from matplotlib.axes import Axes

from .._errors import ParameterError
from .._typing import AnyArray
from ..families.base.marginals import variable_and_part
from ..numerics.arguments import require_share
from ..posterior.figures import Figures
from .parts.axes import LINES, in_style, muted, new_axes, new_grid, paper, stroke
from .parts.colours import colours_of
from .parts.posterior_figures import as_stated, figures_for, figures_of_one, places_of, posterior_of

_SIMILAR = 10.0
"""Times that the entries of a vector may differ in size on one scale."""


@dataclass(frozen=True, eq=False)
class Panel:
    """Entries with one scale: what they are, and label, mean and ends of each."""

    figures: Figures
    title: str
    entries: Sequence[tuple[str, float, float, float]]


@overload
def forest(
    fitted: Any,
    variable: str | None = None,
    *,
    level: float = 0.95,
    names: Mapping[str, Sequence[str]] | None = None,
    only: Mapping[str, Sequence[str]] | None = None,
    max_entries: int = 60,
    ax: Axes | None = None,
) -> Axes: ...


@overload
def forest(
    fitted: Any,
    variable: Sequence[str],
    *,
    level: float = 0.95,
    names: Mapping[str, Sequence[str]] | None = None,
    only: Mapping[str, Sequence[str]] | None = None,
    max_entries: int = 60,
    ax: Any = None,
) -> AnyArray: ...


@in_style
def forest(
    fitted: Any,
    variable: str | Sequence[str] | None = None,
    *,
    level: float = 0.95,
    names: Mapping[str, Sequence[str]] | None = None,
    only: Mapping[str, Sequence[str]] | None = None,
    max_entries: int = 60,
    ax: Any = None,
) -> Axes | AnyArray:
    """Return a forest plot of global variables: mean and credible interval of each entry.

    Parameters
    ----------
    fitted
        A posterior or a fitted estimator.
    variable
        Name of a global variable; for a joint factor with its part, as in ``"theta.mean"``; of an estimator also the
        name that its ``summary()`` shows, as ``"means"``. It is optional if there is only one. For a list of names,
        each variable has a panel with its own scale. Where entries along the last axis differ by more than a factor of
        ten, such as columns in different units, each entry has a panel.
    level
        Probability of the central credible intervals.
    names
        Name of a plate -> names of its repetitions; name of the variable -> names of the entries of one value. By
        default the names of the posterior.
    only
        Name of a plate or of the variable -> names of the repetitions or entries to draw.
    max_entries
        Largest number of entries; more are refused.
    ax
        Axes to draw into, one for each panel for a list of names; by default a new figure. One variable in one given
        axes has one scale.

    Returns
    -------
    Axes or ndarray of Axes
        The axes of one variable, the first if its entries have panels; of a list an array (panels,). The title says
        whether intervals are to second order or those of linear response, see ``uncertainty=`` of
        :meth:`caviar.Model.fit`. The first entry is at the top. A symmetric matrix shows its lower triangle. A hollow
        marker is an entry without an interval: a point, or one whose family gives no quantiles.

    Raises
    ------
    ParameterError
        If the variable does not exist or has too many entries.

    Examples
    --------
    >>> import caviar as cv
    >>> model = cv.models.linear_regression(2)
    >>> posterior = model.fit({"X": [[1, 0], [1, 1], [1, 2]], "y": [1.0, 3.1, 4.9]})
    >>> ax = cv.plot.forest(posterior, "w", names={"w": ["intercept", "slope"]})
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['intercept', 'slope']
    >>> [ax.get_xlabel() for ax in cv.plot.forest(posterior, ["w", "tau"])]
    ['w', 'tau']
    """
    level = require_share("level", level)
    names, only = as_stated(fitted, names), as_stated(fitted, only)
    if variable is None or isinstance(variable, str):
        figures = figures_of_one(fitted, variable, level, "forest", ", or give a list of names")
        panel = Panel(figures, figures.title, _entries(fitted, figures, names, only))
        _refuse_many([panel], max_entries)
        apart = [] if ax is not None else _apart(fitted, figures, names, only)
        if len(apart) > 1:
            return _draw_all(apart, None, _title(panel, level))[0]
        ax = new_axes(ax, (5.6, 0.24 * len(panel.entries) + 1.1))
        _draw(ax, panel)
        ax.set_title(_title(panel, level))
        return ax
    panels = _panels(fitted, variable, level, names, only)
    _refuse_many(panels, max_entries)
    return _draw_all(panels, ax, _title(panels[0], level).partition(": ")[2].capitalize())


def _draw_all(panels: Sequence[Panel], ax: Any, title: str) -> AnyArray:
    """Draw panels one below the other; return their axes."""
    heights = [len(panel.entries) + 1.8 for panel in panels]
    size = (5.6, 0.24 * sum(heights) + 0.6)
    grid = new_grid(ax, (len(panels), 1), size, gridspec_kw={"height_ratios": heights})[:, 0]
    for own, panel in zip(grid, panels, strict=True):
        _draw(own, panel)
    grid[0].set_title(title)
    return grid


def _panels(
    fitted: Any,
    variables: Sequence[str],
    level: float,
    names: Mapping[str, Sequence[str]] | None,
    only: Mapping[str, Sequence[str]] | None,
) -> list[Panel]:
    """Return a panel for each variable, or for each entry of a vector whose entries differ in size."""
    if not variables:
        raise ParameterError("forest draws one variable or more; got an empty list")
    found: list[Panel] = []
    for name in variables:
        for figures in figures_for(fitted, name, level):
            axes = {*figures.plates, variable_and_part(figures.name, posterior_of(fitted))[0]}
            own_names, own_only = (
                {axis: own for axis, own in (given or {}).items() if axis in axes} for given in (names, only)
            )
            entries = _entries(fitted, figures, own_names, own_only)
            apart = _apart(fitted, figures, own_names, own_only)
            found += apart or [Panel(figures, figures.title, entries)]
    return found


def _apart(
    fitted: Any,
    figures: Figures,
    names: Mapping[str, Sequence[str]],
    only: Mapping[str, Sequence[str]],
) -> list[Panel]:
    """Return a panel for each place along the last axis, where one scale would hide some entries; else nothing."""
    if figures.mean.ndim != 2 or len(figures.plates) == 0 or figures.mean.shape[1] < 2:
        return []
    spans = np.array([_span(figures, place) for place in range(figures.mean.shape[1])])
    if spans.max() <= _SIMILAR * max(spans.min(), 1e-300):
        return []
    whole = places_of(fitted, figures, names, only)
    variable, _ = variable_and_part(figures.name, posterior_of(fitted))
    plate, last = figures.plates[0], (*figures.plates, variable)[1]
    first_names, last_names = (*figures.names, None, None)[:2]
    along, titles = names.get(plate) or first_names, names.get(last) or last_names
    numbered = f"{last} " if len(figures.plates) == 2 else ""
    panels = []
    for place in range(figures.mean.shape[1]):
        entries = [
            (f"{plate} {index[0]}" if along is None else str(along[index[0]]), *_numbers(figures, index))
            for _, index in whole
            if index[1] == place
        ]
        title = str(titles[place]) if titles else f"{numbered}{place}" if numbered else f"[{place}]"
        panels += [Panel(figures, f"{figures.title}, {title}", entries)] if entries else []
    return panels


def _span(figures: Figures, place: int) -> float:
    """Return the distance between the ends of all that is drawn of an entry."""
    ends = [end[:, place] for end in (figures.mean, figures.lower, figures.upper) if end is not None]
    return float(np.nanmax(ends) - np.nanmin(ends))


def _entries(
    fitted: Any,
    figures: Figures,
    names: Mapping[str, Sequence[str]] | None,
    only: Mapping[str, Sequence[str]] | None,
) -> list[tuple[str, float, float, float]]:
    """Return label, mean and ends of each entry."""
    return [(label, *_numbers(figures, index)) for label, index in places_of(fitted, figures, names, only)]


def _refuse_many(panels: Sequence[Panel], most: int) -> None:
    n_entries = sum(len(panel.entries) for panel in panels)
    if n_entries > most:
        names = ", ".join(dict.fromkeys(f"'{panel.figures.title}'" for panel in panels))
        raise ParameterError(
            f"{names} {'has' if names.count(',') == 0 else 'have'} {n_entries} entries, too many for one plot; pass "
            f"max_entries={n_entries} to have them all the same, only= for a part, or read them with "
            f"posterior.summary(max_rows=None)"
        )


def _draw(ax: Axes, panel: Panel) -> None:
    """Draw the entries of a panel, the first at the top."""
    colour = stroke(ax, colours_of(1)[0], 0.15)
    for line, (_, mean, low, high) in enumerate(panel.entries):
        is_open = not low < high
        if not is_open:
            ax.plot([low, high], [line, line], color=colour, lw=2, solid_capstyle="butt", zorder=2)
        ax.plot(mean, line, "o", ms=5.5, mfc=paper(ax) if is_open else colour, mec=colour, mew=1.3, zorder=3)
    low_end, high_end = ax.get_xlim()
    if low_end < 0 < high_end:
        ax.axvline(0, color=muted(), lw=0.8, ls=(0, (4, 3)), zorder=0)
    ax.set_yticks(range(len(panel.entries)), [label for label, *_ in panel.entries])
    ax.set_ylim(len(panel.entries) - 0.4, -0.6)
    ax.grid(axis="x", color=LINES, lw=0.6)
    ax.set_axisbelow(True)
    ax.set_xlabel(panel.title)


def _title(panel: Panel, level: float) -> str:
    figures = panel.figures
    if figures.lower is None:
        return f"{figures.title}: points"
    return f"{figures.title}: mean and {figures.told_interval(level)}"


def _numbers(figures: Figures, index: tuple[int, ...]) -> tuple[float, float, float]:
    """Return mean and ends of an entry."""
    mean, _, low, high = figures.numbers(index)
    return mean, low, high
