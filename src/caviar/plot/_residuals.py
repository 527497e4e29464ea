"""Residuals against predictions, or against a column: what the model leaves unexplained."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from .._errors import DataError
from .._typing import Array
from ..posterior.prediction.residuals import means_of_neighbours
from .parts.axes import in_style, ink, muted, new_axes, paper, shade
from .parts.colours import colours_of
from .parts.mixture import thinned
from .parts.observed import Beside, beside

_FEWEST_IN_A_BIN, _MOST_BINS = 8, 25
_WIDTH = 1.959963984540054
"""Half of the central 95% interval of a Normal, in standard deviations."""


@in_style
def residuals(
    fitted: Any,
    data: Any,
    *,
    variable: str | None = None,
    entry: str | int | None = None,
    against: Any = None,
    label: str | None = None,
    n_folds: int | None = None,
    seed: int | np.random.Generator | None = 0,
    max_points: int = 4000,
    ax: Axes | None = None,
) -> Axes:
    r"""Return a plot of standardised residuals: observed minus predicted, in standard deviations of the prediction.

    Points are rows. Thick dots are means of groups of equally many rows, with a bar of :math:`\pm 1.96 / \sqrt{n}`; if
    the model is right, 95 % of the bars reach zero. A trend shows that the predictor is incomplete, and a funnel that
    the variance is not constant. For binary outcomes and small counts look only at the means.

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
    against
        Numbers for the horizontal axis, shape (N,), such as a column that is not in the model; by default the predicted
        mean.
    label
        Label of the horizontal axis, with its unit.
    n_folds
        Number of folds; the rows of each are predicted by a fit to the others. By default the fit itself predicts all
        rows, including those that it was fitted to.
    seed
        Seed of the division into folds.
    max_points
        Largest number of points; from more rows a random sample is drawn. Means use all rows.
    ax
        Axes to draw into; by default a new figure.

    Returns
    -------
    Axes
        The title says whether the fit used these rows.

    Raises
    ------
    ParameterError
        If the observed variable does not exist.
    DataError
        If the data do not contain the variable, or ``against`` has another number of rows.
    ModelError
        If the predictions have no closed form.

    Examples
    --------
    >>> import caviar as cv
    >>> sleep = cv.datasets.load_sleepstudy()
    >>> table = {name: sleep.column(name) for name in sleep.columns}
    >>> ax = cv.plot.residuals(cv.MixedModel("reaction ~ days + (days | subject)").fit(table), table)
    >>> print(ax.get_xlabel(), "|", ax.get_title())
    predicted reaction | Standardised residuals of reaction (rows of the fit)
    """
    found = beside(fitted, data, variable, entry, n_folds, seed)
    with np.errstate(divide="ignore", invalid="ignore"):
        scaled = (found.values - found.prediction.mean) / found.prediction.sd
    name = "predicted " + found.name
    if against is not None:
        name = against if isinstance(against, str) else str(getattr(against, "name", None) or "against")
        against = _column(data, against) if isinstance(against, str) else against
    across = found.prediction.mean if against is None else _given(against, found)
    shown = np.isfinite(scaled) & np.isfinite(across)
    scaled, across = scaled[shown], across[shown]
    ax = new_axes(ax, (6.0, 3.6))
    chosen = thinned(np.arange(len(scaled)), max_points)
    colour = tuple(shade(ax, colours_of(1)[0]))
    ax.axhline(0, color=ink(), lw=0.9, zorder=1)
    for end in (-_WIDTH, _WIDTH):
        ax.axhline(end, color=muted(), lw=0.9, ls=(0, (4, 3)), zorder=1)
    alpha = float(np.clip(12 / np.sqrt(len(chosen)), 0.15, 0.7))
    ax.plot(
        across[chosen], scaled[chosen], "o", ms=3.6, mew=0, color=colour, alpha=alpha, zorder=2, label="a row"
    )
    _draw_means(ax, across, scaled)
    ax.set_xlabel(name if label is None else label)
    ax.set_ylabel("residual (sd of the prediction)")
    ax.set_title(f"Standardised residuals of {found.name} ({found.how})")
    ax.legend(loc="upper left", ncols=2, fontsize="small")
    low, high = ax.get_ylim()
    ax.set_ylim(min(low, -2.6), max(high, 2.6) + 0.12 * (high - low))
    return ax


def _column(data: Any, name: str) -> Any:
    """Return a column of the data by its name."""
    try:
        return data[name]
    except (KeyError, IndexError, TypeError):
        raise DataError(f"against= names {name!r}, which is not a column of the data") from None


def _given(against: Any, found: Beside) -> Array:
    """Return a number for each row that is drawn."""
    try:
        values = np.asarray(against, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"against= takes a number for each row: {error}") from None
    least = int(found.rows.max()) + 1
    if values.ndim != 1 or len(values) < least:
        raise DataError(
            f"against= takes a number for each of the rows, at least {least}; got an array of shape {values.shape}"
        )
    return values[found.rows]


def _draw_means(ax: Axes, across: Array, scaled: Array) -> None:
    """Draw the mean of groups of neighbouring rows, equal values together, and how far chance alone would move it."""
    n_groups = int(np.clip(np.sqrt(len(across)), 1, _MOST_BINS))
    for x, y, n in means_of_neighbours(across, scaled, min(n_groups, len(across) // _FEWEST_IN_A_BIN)):
        bar = _WIDTH / np.sqrt(n)
        ax.plot([x, x], [y - bar, y + bar], color=ink(), lw=1.6, solid_capstyle="butt", zorder=3)
        ax.plot(x, y, "s", ms=4.5, color=ink(), mec=paper(ax), mew=0.6, zorder=4)
    ax.plot([], [], "s", ms=4.5, color=ink(), label="mean of neighbouring rows, 95% by chance")
