"""Posterior predictive check: the data beside data sets that the fitted model makes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from .._errors import DataError, ParameterError
from .._typing import Array
from ..lazy.rows import as_floats
from ..numerics.arguments import require_share
from ..posterior.diagnostics.replicates import Bars, bars_of, replicated
from ..posterior.new_rows import rows_first
from ..posterior.posterior import Posterior
from .parts.axes import BAR_EDGES, BARS, in_style, ink, new_axes, paper, shade, stroke
from .parts.colours import colours_of
from .parts.observed import entry_of, of_rows
from .parts.posterior_figures import placed, posterior_of

_STATISTICS: Mapping[str, Callable[[Array], float]] = {
    "mean": lambda values: float(np.mean(values)),
    "sd": lambda values: float(np.std(values)),
    "min": lambda values: float(np.min(values)),
    "max": lambda values: float(np.max(values)),
    "zeros": lambda values: float(np.mean(values == 0)),
}
_MOST_BARS = 40


@in_style
def predictive_check(
    fitted: Any,
    data: Any,
    *,
    variable: str | None = None,
    entry: str | int | None = None,
    statistic: str | Callable[[Array], float] | None = None,
    n_draws: int = 200,
    level: float = 0.95,
    seed: int | np.random.Generator | None = 0,
    ax: Axes | None = None,
) -> Axes:
    r"""Return a posterior predictive check: a plot of the data beside data sets simulated from the fitted model.

    Each simulated data set has as many rows as the data and the same known columns, and its parameters are a draw from
    q. If the model fits, the observed bars are within the band. With ``statistic`` the plot is a histogram of the
    statistic of each data set, with a line at that of the data.

    Parameters
    ----------
    fitted
        A posterior or a fitted estimator.
    data
        Rows with the observed variable, as for the methods of the posterior or estimator.
    variable
        Name of the observed variable; optional if there is only one.
    entry
        Name or number of an entry, if the variable is a vector.
    statistic
        ``"mean"``, ``"sd"``, ``"min"``, ``"max"``, ``"zeros"`` (the share of zeros), or a function of the values of a
        data set, shape (N,), that returns a number.
    n_draws
        Number of simulated data sets.
    level
        Probability that a bar of the data is within the band if the model is right.
    seed
        Seed of the data sets.
    ax
        Axes to draw into; by default a new figure.

    Returns
    -------
    Axes
        The title of a plot of a statistic gives :math:`P(T(y^*) \ge T(y))`, which is near 0 or 1 if the model does not
        reproduce the statistic.

    Raises
    ------
    ParameterError
        If the observed variable or the statistic does not exist.
    DataError
        If the data do not contain the variable.

    Examples
    --------
    >>> import caviar as cv
    >>> x = cv.Poisson("deaths", cv.Gamma("rate", 1, 1), plates=cv.Plate("corps"))
    >>> data = {"deaths": [0] * 109 + [1] * 65 + [2] * 22 + [3] * 3 + [4]}
    >>> posterior = cv.Model(x).fit(data)
    >>> ax = cv.plot.predictive_check(posterior, data)
    >>> ax.get_xlabel(), ax.get_title()
    ('deaths', 'Data beside 200 data sets of the fitted model')
    >>> print(cv.plot.predictive_check(posterior, data, statistic="sd").get_title())
    sd of deaths: 48% of 200 data sets have as much or more
    """
    level = require_share("level", level)
    measure = _measure(statistic)
    posterior, arrays = posterior_of(fitted), placed(fitted, data)
    name = of_rows(posterior, variable)
    if name not in arrays:
        raise DataError(f"the data lack '{name}', which the plot compares with replicated data")
    observed = rows_first(posterior, name, as_floats(arrays[name]))
    drawn = replicated(posterior, arrays, len(observed), n_draws, seed)
    made = np.asarray(drawn[name], dtype=np.float64)
    categories = posterior.names.entries(name) if _is_label(posterior, name) else None
    if observed.ndim > 1:
        title, place = entry_of(posterior, name, entry, observed.shape)
        observed = observed.reshape(len(observed), -1)[:, place]
        made = made.reshape(n_draws, len(observed), -1)[:, :, place]
    elif entry is None:
        title = name
    else:
        raise ParameterError(f"'{name}' is one number in each row, which has no entry {entry!r}")
    is_there = ~np.isnan(observed)
    if not is_there.any():
        raise DataError(f"'{name}' has no values to compare with")
    observed, made = observed[is_there], made[:, is_there]
    ax = new_axes(ax, (6.0, 3.4))
    if measure is not None:
        _draw_statistic(ax, measure, observed, made, title, str(statistic))
        return ax
    _draw_bars(ax, bars_of(observed, made, _MOST_BARS, level), categories)
    ax.set_xlabel(title)
    ax.set_ylabel("rows")
    ax.set_title(f"Data beside {n_draws} data sets of the fitted model")
    ax.legend(fontsize="small")
    return ax


def _measure(statistic: str | Callable[[Array], float] | None) -> Callable[[Array], float] | None:
    if statistic is None or not isinstance(statistic, str):
        return statistic
    if statistic not in _STATISTICS:
        known = ", ".join(map(repr, _STATISTICS))
        raise ParameterError(f"statistic must be one of {known}, or a function; got {statistic!r}")
    return _STATISTICS[statistic]


def _is_label(posterior: Posterior, name: str) -> bool:
    return posterior.names.entries(name) is not None and posterior.model.variables[name].value_rank == 0


def _draw_bars(ax: Axes, bars: Bars, categories: Sequence[str] | None) -> None:
    """Draw how many rows each bar has, in the data and in the replicated data."""
    lower, middle, upper = bars.quantiles
    edges, own = bars.edges, bars.observed
    centres, width = (edges[1:] + edges[:-1]) / 2, float(edges[1] - edges[0])
    ax.bar(
        centres,
        own,
        width=width * (0.8 if bars.are_single else 1.0),
        color=BARS,
        edgecolor=BAR_EDGES,
        lw=0.8,
        label="data",
    )
    colour = colours_of(1)[0]
    line = stroke(ax, colour, 0.15)
    label = f"replicated: median, {bars.level:.0%} band"
    ax.bar(
        centres,
        upper - lower,
        bottom=lower,
        width=width * 0.34,
        color=(*shade(ax, colour), 0.55),
        edgecolor=line,
        lw=0.7,
        label=label,
        zorder=3,
    )
    ax.plot(centres, middle, "_", ms=7, mew=1.8, color=line, zorder=4)
    ax.set_ylim(0, max(float(upper.max()), float(own.max())) * 1.25)
    if categories is not None and bars.are_single and len(categories) >= edges[-1]:
        ax.set_xticks(range(len(categories)), list(categories))
        ax.set_xlim(-0.6, len(categories) - 0.4)
    elif bars.are_single:
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))


def _draw_statistic(
    ax: Axes,
    measure: Callable[[Array], float],
    observed: Array,
    replicated: Array,
    title: str,
    given: str,
) -> None:
    """Draw the statistic of each replicated data set as a histogram, and that of the data as a line."""
    name = given if given in _STATISTICS else getattr(measure, "__name__", "statistic")
    own = float(measure(observed))
    drawn = np.array([float(measure(values)) for values in replicated])
    colour = shade(ax, colours_of(1)[0])
    ax.hist(
        drawn,
        bins=24,
        facecolor=(*colour, 0.45),
        edgecolor=stroke(ax, colour),
        lw=0.6,
        label="replicated data",
    )
    ax.axvline(own, color=paper(ax), lw=4.0, zorder=3)
    ax.axvline(own, color=ink(), lw=2.0, zorder=4, label="data")
    share = float(np.mean(drawn >= own))
    ax.set_ylim(top=ax.get_ylim()[1] * 1.2)
    ax.set_xlabel(f"{name} of {title}")
    ax.set_ylabel("data sets")
    ax.set_title(f"{name} of {title}: {share:.0%} of {len(drawn)} data sets have as much or more")
    ax.legend(fontsize="small", loc="upper right")
