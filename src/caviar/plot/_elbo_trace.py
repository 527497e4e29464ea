"""How the objective rose from each start."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from .._typing import Array
from .parts.axes import in_style, ink, muted, new_axes
from .parts.posterior_figures import posterior_of


@in_style
def elbo_trace(fitted: Any, *, gap: bool = True, ax: Axes | None = None) -> Axes:
    r"""Return a plot of the objective after each iteration, for every start.

    Parameters
    ----------
    fitted
        A posterior or a fitted estimator. One from a file of an older version may have only the trace of its best
        start.
    gap
        Whether to draw the gap to the best end, :math:`\mathcal L^* - \mathcal L_i` in nats on a logarithmic axis,
        where slopes are rates of convergence and levels are other optima. Otherwise the objective itself is drawn.
    ax
        Axes to draw into; by default a new figure.

    Returns
    -------
    Axes
        There is a line for each start, the best last. With ``gap`` the last point of the best start is zero and is left
        out.

    Examples
    --------
    >>> import caviar as cv
    >>> model = cv.models.normal_wishart_mixture(2, 3)
    >>> posterior = model.fit({"x": cv.datasets.load_faithful().values}, seed=0, n_restarts=3)
    >>> ax = cv.plot.elbo_trace(posterior)
    >>> print(len(ax.lines), ax.get_yscale(), ax.get_ylabel())
    3 log nats below the best end
    """
    posterior = posterior_of(fitted)
    ax = new_axes(ax, (6.0, 3.4))
    # an estimator with errors of rows or fixed parameters may count another constant
    offset = float(getattr(fitted, "elbo_", posterior.elbo)) - posterior.elbo
    best = posterior.elbo_trace
    others = [trace for trace in posterior.restart_traces if not np.array_equal(trace, best)]
    for number, trace in enumerate(others):
        label = f"other starts ({len(others)})" if number == 0 else "_"
        _draw(ax, trace, posterior.elbo, offset, gap, color=muted(), lw=0.9, ls=(0, (4, 1.5)), label=label)
    label = "the kept start" if others else f"{len(best) - 1} iterations, {posterior.status.value}"
    _draw(ax, best, posterior.elbo, offset, gap, color=ink(), lw=1.8, marker="o", ms=3, label=label)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    if gap:
        ax.set_yscale("log")
    ax.set_xlabel("iteration")
    ax.set_ylabel("nats below the best end" if gap else f"{_objective(fitted)} (nats)")
    best_end = f"{posterior.elbo + offset:,.2f}".replace("-", "\N{MINUS SIGN}")
    ax.set_title(f"{_objective(fitted)} by iteration, {best_end} nats at the end")
    ax.legend()
    return ax


def _objective(fitted: Any) -> str:
    """Return what the objective is: a bound, unless a factor is a point."""
    return "Objective" if posterior_of(fitted)._evaluator.point else "ELBO"


def _draw(ax: Axes, trace: Array, best: float, offset: float, gap: bool, **style: Any) -> None:
    iterations = np.arange(len(trace))
    if not gap:
        ax.plot(iterations, trace + offset, **style)
        return
    below = best - trace
    shown = below > 0
    ax.plot(iterations[shown], below[shown], **style)
