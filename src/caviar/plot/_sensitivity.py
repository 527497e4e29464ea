"""Which prior matters: a cell for each number of a prior and each variable."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from .._errors import ParameterError
from ..posterior.linear_response import LinearResponse
from ..posterior.sensitivity import Sensitivity
from .parts.axes import in_style, new_axes, slant
from .parts.cells import draw_cells

_MOST_LEVEL = 12
"""Letters of a name that has room between its neighbours; where one is longer, all are slanted."""


@in_style
def sensitivity(response: Any, *names: str, max_rows: int = 20, ax: Axes | None = None) -> Axes:
    """Return a plot of prior sensitivity: how far the means move when the numbers in the priors change.

    Parameters
    ----------
    response
        The result of :meth:`caviar.Posterior.linear_response`, or its ``sensitivity_table()``.
    names
        Names of the variables whose means are shown; by default all.
    max_rows
        Largest number of rows; the most influential are shown.
    ax
        Axes to draw into; by default a new figure.

    Returns
    -------
    Axes
        There is a row for each number in a prior, the most influential at the top, and a column for each variable. A
        cell gives the change of the mean of the variable in posterior standard deviations; for several entries, the
        largest change.

    Raises
    ------
    ParameterError
        If ``response`` has another type.

    Examples
    --------
    >>> import caviar as cv
    >>> tau = cv.Gamma("tau", 2, 2)
    >>> x = cv.Normal("x", cv.Normal("m", 0, 1), tau, plates=cv.Plate("obs"))
    >>> data = {"x": [1.0, -0.5, 2.0, 0.3]}
    >>> response = cv.Model(x).fit(data, tol=1e-12).linear_response(data)
    >>> ax = cv.plot.sensitivity(response)
    >>> [label.get_text() for label in ax.get_yticklabels()][0]
    'tau.shape +10%'
    """
    table = _table_of(response, names)
    rows, columns = table.rows[:max_rows], table.names
    if not rows:
        raise ParameterError("no prior of this model has known numbers; there is nothing to draw")
    shifts = np.array([[row.shifts[name] for name in columns] for row in rows])
    longest = max(map(len, columns))
    height = max(0.9 + 0.3 * len(rows), 2.2) + (0.045 * longest if longest > _MOST_LEVEL else 0.0)
    ax = new_axes(ax, (2.6 + 0.95 * len(columns), height))
    draw_cells(
        ax, shifts, lambda index: _told(float(shifts[index])), "shift of the mean (posterior sd)", shrink=1.0
    )
    ax.set_xticks(range(len(columns)), columns)
    if longest > _MOST_LEVEL:
        slant(ax)
    ax.set_yticks(range(len(rows)), [f"{row.prior} +{row.change}" for row in rows])
    ax.set_title("Shift of posterior means when a prior changes")
    return ax


def _told(shift: float) -> str:
    return f"{shift:+.2g}".replace("-", "\N{MINUS SIGN}") if abs(shift) >= 5e-4 else "0"


def _table_of(response: Any, names: tuple[str, ...]) -> Sensitivity:
    if isinstance(response, LinearResponse):
        return response.sensitivity_table(*names)
    if not isinstance(response, Sensitivity):
        raise ParameterError(
            f"expected what posterior.linear_response(data) gives; got {type(response).__name__}"
        )
    unknown = [name for name in names if name not in response.names]
    if unknown:
        raise ParameterError(f"the table has no variable {unknown[0]!r}; it has {', '.join(response.names)}")
    return Sensitivity(response.rows, names or response.names)
