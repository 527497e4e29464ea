"""Calibration of predictions: probability integral transforms, or predicted beside observed shares."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from scipy.stats import binom

from .._typing import Array
from ..numerics.arguments import central_ends, require_share, require_whole
from ..posterior.prediction.residuals import means_of_neighbours
from .parts.axes import in_style, ink, is_dark, muted, new_axes, paper, stroke
from .parts.colours import area_of, colours_of
from .parts.observed import Beside, beside

_FEWEST_IN_A_BIN, _MOST_BINS = 10, 20


@in_style
def calibration(
    fitted: Any,
    data: Any,
    *,
    variable: str | None = None,
    entry: str | int | None = None,
    n_folds: int | None = None,
    seed: int | np.random.Generator | None = 0,
    n_bins: int | None = None,
    level: float = 0.95,
    ax: Axes | None = None,
) -> Axes:
    r"""Return a plot of how well predictions are calibrated.

    For real numbers and counts it is a histogram of the probability integral transforms :math:`u_n = P(Y_n \le y_n)`,
    which are uniform if the predictions are calibrated. If both ends are high, predictions are too narrow; if the
    middle is high, too wide; if the histogram slopes, they are biased. A count is spread evenly over :math:`P(Y_n <
    y_n)` to :math:`P(Y_n \le y_n)` (Czado, Gneiting and Held, 2009). For binary outcomes it is the share of ones among
    rows with similar predicted probabilities, which is on the diagonal if the predictions are calibrated.

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
    n_folds
        Number of folds; the rows of each are predicted by a fit to the others. By default the fit itself predicts all
        rows, and predictions look too good for rows that it was fitted to.
    seed
        Seed of the division into folds.
    n_bins
        Number of bars of the histogram, or of groups of rows; by default up to 20, with at least ten rows each.
    level
        Probability that a bar, or a share, is within the band if the predictions are calibrated.
    ax
        Axes to draw into; by default a new figure.

    Returns
    -------
    Axes
        The title says whether the fit used these rows.

    Raises
    ------
    ParameterError
        If the observed variable does not exist or is a label.
    DataError
        If the data do not contain the variable.
    ModelError
        If the predictions have no closed form.

    Examples
    --------
    >>> import caviar as cv
    >>> sleep = cv.datasets.load_sleepstudy()
    >>> table = {name: sleep.column(name) for name in sleep.columns}
    >>> model = cv.MixedModel("reaction ~ days + (days | subject)", family="student").fit(table)
    >>> ax = cv.plot.calibration(model, table, n_folds=5)
    >>> print(ax.get_xlabel(), len(ax.patches))
    probability of at most the observed reaction 18
    """
    level = require_share("level", level)
    if n_bins is not None:
        require_whole("n_bins", n_bins, 2)
    found = beside(fitted, data, variable, entry, n_folds, seed)
    bins = max(2, min(_MOST_BINS, len(found.values) // _FEWEST_IN_A_BIN)) if n_bins is None else n_bins
    if found.is_binary:
        ax = new_axes(ax, (4.4, 4.2))
        _draw_shares(ax, found, bins, level)
    else:
        ax = new_axes(ax, (5.6, 3.4))
        _draw_histogram(ax, found, bins, level)
    return ax


def transforms(found: Beside) -> tuple[Array, Array]:
    """Return P(Y < y) and P(Y <= y) of each row; the same number of a continuous variable."""
    above = np.clip(found.by_moments.below_in_mixture(found.values, found.prediction.parts), 0.0, 1.0)
    if found.is_continuous:
        return above, above
    below = np.clip(found.by_moments.below_in_mixture(found.values - 1, found.prediction.parts), 0.0, 1.0)
    return np.minimum(below, above), above


def shares_of_bins(low: Array, high: Array, n_bins: int) -> Array:
    """Return the share of the rows in each of equal bins; a row is spread evenly from its low to its high end.

    Examples
    --------
    >>> shares_of_bins(np.array([0.1, 0.25]), np.array([0.1, 0.75]), 2)
    array([0.75, 0.25])
    """
    edges = np.linspace(0.0, 1.0, n_bins + 1)[:, np.newaxis]
    is_spread = high > low
    width = np.where(is_spread, high - low, 1.0)
    spread = np.clip((edges - low) / width, 0.0, 1.0)
    # a point at an edge belongs to the bin above it, and 1 to the last one
    point = np.where(edges == 1.0, 1.0, (low < edges).astype(float))
    below = np.where(is_spread, spread, point)
    return np.diff(below.mean(axis=1))


def _draw_histogram(ax: Axes, found: Beside, n_bins: int, level: float) -> None:
    heights = shares_of_bins(*transforms(found), n_bins) * n_bins
    n_rows = len(found.values)
    ends = binom.ppf(central_ends(level), n_rows, 1 / n_bins) * n_bins / n_rows
    middles = (np.arange(n_bins) + 0.5) / n_bins
    ax.bar(middles, heights, width=0.94 / n_bins, **area_of(0, on_dark=is_dark(ax)), zorder=2)
    _draw_band(ax, ends, level)
    ax.axhline(1, color=ink(), lw=1.0, zorder=3)
    ax.set_xlim(0, 1)
    ax.set_ylim(0, max(float(heights.max()), float(ends[1])) * 1.22)
    ax.set_xlabel(f"probability of at most the observed {found.name}")
    ax.set_ylabel("rows, relative to uniform")
    ax.set_title(f"Calibration of {found.name} ({found.how})")
    ax.legend(loc="upper center", ncols=2, fontsize="small")


def _draw_band(ax: Axes, ends: Array, level: float) -> None:
    """Draw where a bar lies by chance, as lines over the bars."""
    for number, end in enumerate(ends):
        label = f"{level:.0%} of bars lie between, if calibrated" if number == 0 else "_"
        ax.axhline(end, color=ink(), lw=1.1, ls=(0, (4, 2)), zorder=3, label=label)


def _draw_shares(ax: Axes, found: Beside, n_bins: int, level: float) -> None:
    """Draw shares of ones beside predicted probabilities, each with what chance alone makes of it."""
    ax.plot([0, 1], [0, 1], color=muted(), lw=1.0, ls=(0, (4, 3)), zorder=1, label="calibrated")
    colour = stroke(ax, colours_of(1)[0], 0.15)
    groups = means_of_neighbours(found.prediction.mean, found.values, n_bins)
    for number, (probability, share, n_rows) in enumerate(groups):
        low, high = binom.ppf(central_ends(level), n_rows, probability) / n_rows
        label = f"{level:.0%} of shares by chance" if number == 0 else "_"
        ax.plot(
            [probability] * 2,
            [low, high],
            color=muted(),
            lw=5,
            alpha=0.55,
            solid_capstyle="butt",
            label=label,
        )
        label = f"about {n_rows:,} rows" if number == 0 else "_"
        ax.plot(probability, share, "o", ms=6, color=colour, mec=paper(ax), mew=0.8, ls="", label=label)
    ax.set_xlim(-0.03, 1.03)
    ax.set_ylim(-0.03, 1.03)
    ax.set_xlabel(f"predicted probability that {found.name} is 1")
    ax.set_ylabel(f"share of rows with {found.name} = 1")
    ax.set_title(f"Calibration of {found.name} ({found.how})")
    ax.legend(loc="upper left", fontsize="small")
