"""A plot of a fitted mixture of Gaussians in a file; drawn without Matplotlib's global figures."""

from __future__ import annotations

import os
from collections.abc import Sequence

from .._errors import DataError
from .._extras import install_command
from .._typing import Array
from ..estimators.mixtures.components import column_names, telling_columns
from ..files.whole import replacing

try:
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from ..plot import density
    from ..plot._pair import draw_pair, keys
    from ..plot._pairs import draw_pairs, say_aside
    from ..plot.parts.axes import STYLE
    from ..plot.parts.mixture import Mixture, mixture_of, rows_of, thinned
except ImportError as error:
    message = f"plots need Matplotlib ({error}); install it by {install_command('plot')}"
    raise ImportError(message) from error


_LEVEL = 0.95
_MOST_POINTS = 4000
_MOST_COLUMNS = 4


def draw(
    estimator: object, X: Array, *, columns: Sequence[str] | None = None, title: str | None = None
) -> Figure:
    """Return a plot of a fitted mixture and its rows.

    One column: what :func:`caviar.plot.density` draws. Two columns: the rows, each in the blended colours of its
    responsibilities, with two ellipses a component, the one that holds 95 % of its rows and (small, black) the one that
    holds its mean with 95 % probability. More: :func:`caviar.plot.pairs` of the columns, at most four, in which the
    components differ most.

    Parameters
    ----------
    estimator
        A fitted mixture of Gaussians.
    X
        Rows, shape (N, D). From many rows a few thousand are drawn.
    columns
        Names of the columns; by default those of the fit.
    title
        Title of the plot; by default the kind of mixture, the number of components and the ELBO.
    """
    names = column_names(estimator) if columns is None else tuple(columns)
    mixture = mixture_of(estimator, names)
    rows = rows_of(mixture, X)
    shown = telling_columns(mixture.estimator, _MOST_COLUMNS)
    side = 3.6 if len(names) == 1 else 5.0 if len(names) == 2 else 2.4 * len(shown)
    with rc_context(fname=STYLE):
        figure = Figure(figsize=(6.4 if len(names) <= 2 else side, side), layout="constrained")
        FigureCanvasAgg(figure)
        if len(names) == 1:
            is_measured = "true" in mixture.estimator.posterior_.model.variables
            axes = density(
                estimator, X, names=names, level=None if is_measured else _LEVEL, ax=figure.add_subplot()
            )
            axes.set_title("")
        elif len(names) == 2:
            _draw_two(figure, mixture, rows)
        else:
            grid = figure.subplots(len(shown), len(shown), squeeze=False, sharex="col")
            draw_pairs(grid, mixture, rows, shown, level=_LEVEL, max_points=_MOST_POINTS)
            say_aside(grid, mixture, _LEVEL)
        figure.suptitle(_title(mixture) if title is None else title, fontsize=11)
    return figure


def save_picture(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write a plot to a PNG file; if writing fails, no partial file is left.

    Raises
    ------
    DataError
        If the path does not end with ``.png``, or the file cannot be written.
    """
    if not str(path).lower().endswith(".png"):
        raise DataError(f"cannot write {path}: plots are PNG files; the name must end with .png")
    with replacing(path) as file:
        figure.savefig(file, format="png", dpi=160)


def _title(mixture: Mixture) -> str:
    n_components = len(mixture.weights)
    components = f"{n_components} component{'s' * (n_components != 1)}"
    if len(mixture.drawn) < n_components:
        components += f", {len(mixture.drawn)} in use"
    objective = "objective" if mixture.marginal is None else "ELBO"
    value = f"{mixture.estimator.elbo_:,.2f}".replace("-", "\N{MINUS SIGN}")
    return f"{type(mixture.estimator).__name__}, {components}, {objective} {value} nats"


def _draw_two(figure: Figure, mixture: Mixture, rows: Array) -> None:
    """Draw rows and components in the two columns that there are."""
    points = thinned(rows, _MOST_POINTS)
    axes = figure.add_subplot()
    draw_pair(axes, mixture, points, mixture.responsibilities(points), (0, 1), level=_LEVEL, numbered=True)
    axes.set_xlabel(mixture.names[0])
    axes.set_ylabel(mixture.names[1])
    axes.legend(handles=keys(mixture, _LEVEL), loc="best")
