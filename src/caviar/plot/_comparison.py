"""Models by their evidence: how many nats each is below the best."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from .._errors import ParameterError
from ..posterior.evidence.comparison import Comparison
from .parts.axes import in_style, muted, new_axes, paper, stroke
from .parts.colours import colours_of


@in_style
def comparison(compared: Any, *, ax: Axes | None = None) -> Axes:
    """Return a plot of models by their evidence.

    Parameters
    ----------
    compared
        The result of :func:`caviar.compare`.
    ax
        Axes to draw into; by default a new figure.

    Returns
    -------
    Axes
        There is a row for each model, the best at the top. A filled marker is the estimate of log p(x), with a line of
        two standard errors to either side; a hollow one is the ELBO, a lower bound. The axis has nats relative to the
        best model. The label of a model ends with its probability.

    Raises
    ------
    ParameterError
        If ``compared`` has another type.

    Examples
    --------
    >>> import caviar as cv
    >>> data = {"x": [1.0, -0.5, 2.0, 0.3]}
    >>> def fitted(mean):
    ...     x = cv.Normal("x", cv.Normal("m", mean, 1), cv.Gamma("tau", 2, 2), plates=cv.Plate("obs"))
    ...     return cv.Model(x).fit(data)
    >>> ax = cv.plot.comparison(cv.compare({"near": fitted(1.0), "far": fitted(9.0)}, data))
    >>> [label.get_text().split(" (")[0] for label in ax.get_yticklabels()]
    ['near', 'far']
    """
    if not isinstance(compared, Comparison):
        raise ParameterError(
            f"expected the result of cv.compare; got {type(compared).__name__}. Write "
            f"cv.plot.comparison(cv.compare({{'name': fit, ...}}, data))"
        )
    rows = compared.rows
    ax = new_axes(ax, (6.0, 1.2 + 0.35 * len(rows)))
    colour, best = stroke(ax, colours_of(1)[0]), rows[0].evidence.value
    for place, row in enumerate(rows):
        own = row.evidence
        ax.plot(own.elbo - best, place, "o", mfc=paper(ax), mec=colour, ms=7, zorder=2)
        if np.isfinite(own.error):
            ends = [own.value - best - 2 * own.error, own.value - best + 2 * own.error]
            ax.plot(ends, [place, place], color=colour, lw=1.5, zorder=3)
            ax.plot(own.value - best, place, "o", color=colour, ms=5, zorder=4)
    ax.axvline(0.0, color=muted(), lw=0.8, zorder=1)
    ax.set_yticks(range(len(rows)), [f"{row.name} ({row.probability:.2g})" for row in rows])
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.set_xlabel("nats relative to the best (filled: log p(x), hollow: ELBO)")
    ax.set_title("Models by their evidence, with their probabilities")
    return ax
