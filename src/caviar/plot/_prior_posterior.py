"""The prior of a variable beside its posterior: how much the data say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from .._errors import ParameterError
from .._typing import AnyArray
from ..posterior.diagnostics.curves import Curves, posterior_curves, prior_curves
from .parts.axes import headline, hide_frame, in_style, muted, new_panels, shade, stroke
from .parts.colours import colours_of
from .parts.posterior_figures import as_stated, figures_of_one, placed, places_of, posterior_of

_WIDEST = 6.0
"""Panels in a row, and times that an axis may be as wide as the posterior."""
_GRID = 241


@in_style
def prior_posterior(
    fitted: Any,
    variable: str | None = None,
    *,
    data: Any = None,
    names: Mapping[str, Sequence[str]] | None = None,
    only: Mapping[str, Sequence[str]] | None = None,
    max_entries: int = 12,
    seed: int | np.random.Generator | None = 0,
    axes: Any = None,
) -> AnyArray:
    """Return a plot of the prior and the posterior of each entry of a global variable.

    If both are similar, the data contain little information and the prior determines the posterior.

    Parameters
    ----------
    fitted
        A posterior or a fitted estimator.
    variable
        Name of a global variable; for a joint factor with its part, as in ``"theta.mean"``; of an estimator also the
        name that its ``summary()`` shows, as ``"means"``. It is optional if there is only one.
    data
        Rows, if the prior depends on known columns; as for the methods of the posterior or estimator.
    names, only
        As for :func:`forest`.
    max_entries
        Largest number of entries; more are refused.
    seed
        Seed of the draws of the parents of the prior, if these are unknown.
    axes
        Axes to draw into, one for each entry; by default a new figure.

    Returns
    -------
    ndarray of Axes
        Shape (entries,). Each panel gives the ratio of the widths of the central 68% intervals of posterior and prior.
        A flat prior has no curve, and a prior that is much wider than the posterior is cut off at the edges.

    Raises
    ------
    ParameterError
        If the variable does not exist, is a point mass, or has too many entries.

    Notes
    -----
    Densities are computed from quantiles, so they agree with the intervals that :func:`forest` draws. A prior with
    unknown parents is averaged over 80 draws of the parents from their priors.

    Examples
    --------
    >>> import caviar as cv
    >>> p = cv.Beta("p", 2, 2)
    >>> posterior = cv.Model(cv.Bernoulli("x", p, plates=cv.Plate("obs"))).fit({"x": [1, 1, 0, 1, 1, 1]})
    >>> axes = cv.plot.prior_posterior(posterior)
    >>> print(axes[0].get_xlabel(), "is", axes[0].get_title())
    p is 58% as wide as the prior
    """
    posterior, names, only = posterior_of(fitted), as_stated(fitted, names), as_stated(fitted, only)
    own = figures_of_one(fitted, variable, 0.95, "prior_posterior")
    if own.lower is None:
        raise ParameterError(f"{own.title!r} is a point or a label, which has no density")
    has_width = np.asarray(own.lower) < np.asarray(own.upper)
    places = [(label, at) for label, at in places_of(fitted, own, names, only) if has_width[at]]
    if len(places) > max_entries:
        raise ParameterError(
            f"'{own.title}' has {len(places)} entries, too many for one plot; pass only= for some of them, or "
            f"max_entries={len(places)}"
        )
    if not places:
        raise ParameterError(f"the family of '{own.title}' gives no intervals, so its density is not known")
    arrays = {} if data is None else placed(fitted, data)
    grid = new_panels(axes, len(places), (2.7, 2.1), (0.0, 0.4), 4.2)
    after = posterior_curves(posterior, own.name)
    prior = prior_curves(posterior, own.name, own.mean.shape, arrays, seed)
    for ax, (label, at) in zip(grid, places, strict=True):
        ends = after.entry(at)
        assert ends is not None
        title = f"{own.title} {label}" if label.isdigit() else label
        _draw(ax, title, None if prior is None else prior.entry(at), ends)
    grid[0].legend(fontsize="small")
    if axes is None and len(places) > 1:
        headline(grid[0], f"Prior and posterior of {own.title}")
    return grid


def _draw(ax: Axes, label: str, prior: Curves | None, after: Curves) -> None:
    """Draw both densities of an entry."""
    low, high = _range(prior, after)
    grid = np.linspace(low, high, _GRID)
    colour = colours_of(1)[0]
    density = after.density(grid)
    ax.fill_between(grid, density, color=(*shade(ax, colour), 0.4), lw=0, zorder=2)
    ax.plot(grid, density, color=stroke(ax, colour), lw=1.6, zorder=3, label="posterior")
    title = "the prior is flat"
    if prior is not None:
        ax.plot(grid, prior.density(grid), color=muted(), lw=1.6, ls=(0, (4, 2)), zorder=4, label="prior")
        title = f"{after.width / prior.width:.0%} as wide as the prior"
    ax.set_title(title, fontsize=8.5)
    ax.set_xlabel(label)
    ax.set_xlim(low, high)
    ax.set_ylim(0, 1.3 * float(density.max()))
    hide_frame(ax, "left", "right", "top")


def _range(prior: Curves | None, after: Curves) -> tuple[float, float]:
    """Return the ends of an axis: the posterior, and as much of the prior as leaves the posterior wide enough."""
    low, high = after.quantile(0.0), after.quantile(1.0)
    if prior is None:
        return low, high
    room = 0.5 * (_WIDEST - 1.0) * (high - low)
    first = min(Curves((part,)).quantile(0.01) for part in prior.parts)
    last = max(Curves((part,)).quantile(0.99) for part in prior.parts)
    return min(low, max(first, low - room)), max(high, min(last, high + room))
