"""Effects of groups in order of size, each with its interval: a caterpillar plot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from .._errors import ParameterError
from .._typing import AnyArray, Array
from ..numerics.arguments import require_share
from ..posterior.figures import Figures
from .parts.axes import headline, in_lines, in_style, muted, new_grid, paper, stroke
from .parts.colours import colours_of
from .parts.posterior_figures import figures_of, posterior_of

_MOST_NAMED = 60
"""Groups whose names are written."""


@dataclass(frozen=True, eq=False)
class Effect:
    """An effect of groups: its name, and mean and ends of the interval of each group."""

    name: str
    mean: Array
    lower: Array
    upper: Array


@in_style
def group_effects(
    fitted: Any,
    variable: str | None = None,
    *,
    level: float = 0.95,
    order: str = "size",
    axes: Any = None,
) -> AnyArray:
    """Return a caterpillar plot: the effect of each group with its interval, sorted by size.

    Parameters
    ----------
    fitted
        A fitted :class:`caviar.MixedModel`, or the posterior of any model.
    variable
        For a mixed model a term such as ``"days | subject"``; for a posterior the name of a global variable with one
        plate. It is optional if there is only one.
    level
        Probability of the central credible intervals.
    order
        ``"size"`` sorts each panel by its own effect, ``"first"`` sorts all panels by the effect of the first, and
        ``"groups"`` keeps the order of the groups.
    axes
        Axes to draw into, one for each effect; by default a new figure.

    Returns
    -------
    ndarray of Axes
        Shape (effects,), with one panel for each entry of the effects of a group. Hollow markers are groups whose
        interval contains zero. Names are written for up to 60 groups.

    Raises
    ------
    ParameterError
        If the variable does not exist, or does not have one value for each group.

    Examples
    --------
    >>> import caviar as cv
    >>> sleep = cv.datasets.load_sleepstudy()
    >>> table = {name: sleep.column(name) for name in sleep.columns}
    >>> axes = cv.plot.group_effects(cv.MixedModel("reaction ~ days + (days | subject)").fit(table))
    >>> [ax.get_xlabel() for ax in axes], axes[1].get_yticklabels()[0].get_text()
    (['Intercept', 'days'], '308')
    """
    level = require_share("level", level)
    if order not in ("size", "first", "groups"):
        raise ParameterError(f"order must be 'size', 'first' or 'groups'; got {order!r}")
    figures = _figures(fitted, variable, level)
    effects = list(_effects(figures))
    groups = list(map(str, figures.labels[0][: _n_groups(fitted, figures)]))
    n_groups = len(groups)
    height = float(np.clip(0.19 * n_groups + 1.2, 2.2, 11.0))
    shape = (1, len(effects))
    grid = new_grid(axes, shape, (max(4.4, 3.3 * len(effects)), height))[0]
    first = np.argsort(-effects[0].mean[:n_groups], kind="stable")
    for number, (ax, effect) in enumerate(zip(grid, effects, strict=True)):
        own = first if order == "first" else np.argsort(-effect.mean[:n_groups], kind="stable")
        shown = range(n_groups) if order == "groups" else own.tolist()
        is_named = n_groups <= _MOST_NAMED and (order == "size" or number == 0)
        _draw(ax, effect, shown, [groups[k] for k in shown] if is_named else None)
    plate = figures.plates[0]
    grid[0].set_ylabel(plate)
    title = f"{figures.name}: effect of each {plate}, {figures.told_interval(level)}"
    if axes is None and len(grid) > 1:
        headline(grid[0], title)
    else:
        grid[0].set_title(in_lines(grid[0], title))
    return grid


def _figures(fitted: Any, variable: str | None, level: float) -> Figures:
    """Return the figures of the variable that has a value for each group."""
    posterior = posterior_of(fitted)
    blocks = [block.label for block in getattr(fitted, "_blocks", ())]
    known = blocks or [name for name in posterior if len(posterior.model.variables[name].plates) == 1]
    if variable is None and len(known) != 1:
        listed = ", ".join(map(repr, known)) or "none"
        raise ParameterError(
            f"group_effects draws one variable with a value for each group; this fit has {listed}. Choose one, as "
            f"group_effects(fitted, {known[0]!r})"
            if known
            else "group_effects draws a variable with a value for each group, and this fit has none"
        )
    found = figures_of(posterior, known[0] if variable is None else variable, level)[0]
    if len(found.plates) != 1 or found.mean.ndim > 2 or found.lower is None or found.upper is None:
        raise ParameterError(
            f"'{found.name}' is not an effect of groups: it needs one plate, a number or a vector for each of its "
            f"repetitions, and intervals. caviar.plot.forest draws any global variable"
        )
    return found


def _n_groups(fitted: Any, figures: Figures) -> int:
    """Return the number of groups of the fit, without the place for new ones that a mixed model has."""
    own = getattr(fitted, "groups_", {}).get(figures.plates[0])
    return figures.mean.shape[0] if own is None else len(own)


def _effects(figures: Figures) -> Iterator[Effect]:
    """Yield each effect: the variable itself, or the entries of a vector."""
    assert figures.lower is not None
    assert figures.upper is not None
    if figures.mean.ndim == 1:
        name = "Intercept" if figures.name.startswith("1 | ") else figures.name
        yield Effect(name, figures.mean, figures.lower, figures.upper)
        return
    named = figures.names[1]
    names = [f"{figures.name} {k}" for k in range(figures.mean.shape[1])] if named is None else named
    for k, name in enumerate(names):
        yield Effect(name, figures.mean[:, k], figures.lower[:, k], figures.upper[:, k])


def _draw(ax: Axes, effect: Effect, shown: Sequence[int], groups: Sequence[str] | None) -> None:
    """Draw the intervals of groups, the first at the top."""
    colour = stroke(ax, colours_of(1)[0], 0.15)
    lines = np.arange(len(shown))
    low, high = effect.lower[shown], effect.upper[shown]
    ax.hlines(lines, low, high, color=colour, lw=1.8, zorder=2)
    contains_zero = (low <= 0) & (high >= 0)
    for is_hollow, face in ((True, paper(ax)), (False, colour)):
        rows = lines[contains_zero == is_hollow]
        ax.plot(effect.mean[shown][rows], rows, "o", ms=4.6, mfc=face, mec=colour, mew=1.2, ls="", zorder=3)
    ax.axvline(0, color=muted(), lw=0.9, ls=(0, (4, 3)), zorder=0)
    ax.set_yticks(lines if groups is not None else [], groups if groups is not None else [])
    if len(shown) > 30:
        ax.tick_params(axis="y", labelsize=6.5)
    ax.set_ylim(len(shown) - 0.4, -0.6)
    ax.set_xlabel(effect.name)
