"""Which component each row belongs to, and how surely."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from .._errors import DataError, ParameterError
from .._typing import AnyArray, Array
from ..families import Categorical, ChainMixture, ForecastMarkovChain, MarkovChain
from ._pair import draw_points
from .parts.axes import in_style, is_dark, muted, new_axes, shade
from .parts.colours import area_of, marker_of
from .parts.mixture import Mixture, is_gaussian_mixture, mixture_of, rows_of, thinned
from .parts.posterior_figures import names_along, placed, posterior_of

_MOST_BARS = 1000
_MOST_STACKED = 8
_MOST_ROWS = 4000


@in_style
def responsibilities(
    fitted: Any,
    X: Any,
    *,
    variable: str | None = None,
    over_data: bool | None = None,
    names: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Return a plot of the probability of each component for each row.

    For mixtures of one or two columns the plot is over the data: the probabilities along the column, or the rows as
    points in blended colours, larger if they are less certain. Otherwise there is a column for each row, sorted by
    component and certainty: stacked bars for up to eight components, and a heat map for more.

    Parameters
    ----------
    fitted
        A fitted mixture or hidden Markov model, or the posterior of a model with a hidden Categorical or Markov chain.
    X
        Rows, shape (N, D), or a table with the columns of the fit; for a posterior, data as for ``posterior.local``.
    variable
        Name of the hidden variable of a posterior; optional if there is only one.
    over_data
        Whether to draw over the data; by default if that is possible.
    names
        Names of the components; by default their numbers.
    columns
        Labels of the axes if the plot is over the data; by default the names of the columns in the fit.
    ax
        Axes to draw into; by default a new figure.

    Returns
    -------
    Axes
        The axes with the legend of components.

    Raises
    ------
    ParameterError
        If the variable does not exist, or ``over_data=True`` and the rows have more than two columns.

    Examples
    --------
    >>> import caviar as cv
    >>> faithful = cv.datasets.load_faithful().values
    >>> mixture = cv.BayesianGaussianMixture(2, random_state=0).fit(faithful)
    >>> ax = cv.plot.responsibilities(mixture, faithful, names=["long", "short"])
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['long', 'short', 'larger: less certain']
    """
    mixture, word = None, "component"
    if is_gaussian_mixture(fitted):
        mixture = mixture_of(fitted, columns)
        rows = rows_of(mixture, X)
        is_narrow = len(mixture.names) <= 2
        shares = mixture.responsibilities(rows)
    else:
        rows, is_narrow = np.empty((0, 0)), False
        name, shares, word = hidden_labels(fitted, X, variable)
        names = posterior_of(fitted).names.entries(name) if names is None else names
    if over_data and not is_narrow:
        raise ParameterError(
            "rows are drawn over the data only for a fitted mixture in one or two columns; leave over_data out, or "
            "draw pairs of columns with caviar.plot.pairs"
        )
    labels = _names(shares.shape[1], names, word)
    if mixture is not None and is_narrow and over_data is not False:
        ax = new_axes(ax, (5.6, 4.0) if len(mixture.names) == 2 else (6.4, 3.2))
        _draw_over_data(ax, mixture, rows, labels)
        return ax
    ax = new_axes(ax, (6.4, 2.8) if shares.shape[1] <= _MOST_STACKED else (6.4, 0.2 * shares.shape[1] + 1.4))
    _draw_sorted(ax, shares, labels, word)
    return ax


def _names(n_components: int, names: Sequence[str] | None, word: str) -> list[str]:
    if names is None:
        return [f"{word} {k}" for k in range(n_components)]
    return names_along("names", n_components, names)


def hidden_labels(fitted: Any, data: Any, variable: str | None) -> tuple[str, Array, str]:
    """Return the name of the hidden labels of rows, their probabilities, shape (N, K), and what a label is called.

    Raises
    ------
    ParameterError
        If there are no hidden labels, or several and none is named.
    DataError
        If the data of a posterior are not by name.
    """
    data = placed(fitted, data)
    if not isinstance(data, Mapping):
        raise DataError(
            f"for a posterior X is the data by name, as for posterior.local(data); got {type(data).__name__}"
        )
    local = posterior_of(fitted).local(data)
    kinds = Categorical | MarkovChain | ForecastMarkovChain | ChainMixture
    labels = {name: factor for name, factor in local.items() if isinstance(factor, kinds)}
    if variable is None and len(labels) == 1:
        (variable,) = labels
    if not labels:
        raise ParameterError("the rows have no hidden labels to draw")
    if variable is None or variable not in labels:
        known = ", ".join(map(repr, labels))
        raise ParameterError(
            f"choose variable= among the hidden labels of the rows ({known}); got {variable!r}"
        )
    shares = np.asarray(labels[variable].probabilities)
    word = getattr(
        fitted, "_label_in_words", "component" if isinstance(labels[variable], Categorical) else "state"
    )
    return variable, shares.reshape(-1, shares.shape[-1]), word


def _patch(ax: Axes, k: int, label: str) -> Patch:
    return Patch(**area_of(k, on_dark=is_dark(ax)), label=label)


def _draw_over_data(ax: Axes, mixture: Mixture, rows: Array, labels: Sequence[str]) -> None:
    """Draw probabilities along one column, or the rows of two columns as points."""
    rows = thinned(rows[~np.isnan(rows).any(axis=1)], _MOST_ROWS)
    ax.set_xlabel(mixture.names[0])
    drawn = sorted(mixture.drawn)
    if len(mixture.names) == 1:
        low, high = rows.min(), rows.max()
        margin = 0.05 * (high - low) or 1.0
        grid = np.linspace(low - margin, high + margin, 400)
        _stack(ax, grid, mixture.responsibilities(grid[:, np.newaxis]), step=False)
        ax.plot(rows[:, 0], np.full(len(rows), -0.04), "|", color=muted(), ms=6, mew=0.7)
        ax.set_ylim(-0.08, 1)
        ax.set_xlim(grid[0], grid[-1])
        ax.set_ylabel("probability of the component")
        handles: list[Any] = [_patch(ax, k, labels[k]) for k in drawn]
        ax.set_title("Probability of each component by value, and the rows")
    else:
        shares = mixture.responsibilities(rows)
        points = draw_points(ax, rows, shares, mixture.colours)
        doubt = 2 * (1 - shares.max(axis=1))
        points.set_sizes(points.get_sizes()[0] * (1 + 2.5 * np.clip(doubt, 0, 1)))
        ax.set_ylabel(mixture.names[1])
        handles = [
            Line2D([], [], ls="", marker=marker_of(k), ms=6, color=tuple(colour), label=labels[k])
            for k, colour in zip(drawn, shade(ax, mixture.colours[drawn]), strict=True)
        ]
        handles.append(Line2D([], [], ls="", marker="o", ms=9, color="#9a9a9a", label="larger: less certain"))
        ax.set_title("Component of each row")
    ax.legend(handles=handles, loc="center left", bbox_to_anchor=(1.0, 0.5))


def _order(shares: Array) -> AnyArray:
    """Return the rows sorted by their most probable component, and within it by its probability."""
    best = shares.argmax(axis=1)
    return np.lexsort((-shares[np.arange(len(shares)), best], best))


def _draw_sorted(ax: Axes, shares: Array, labels: Sequence[str], word: str) -> None:
    """Draw a column for each row; of many rows, for evenly spaced ones of the sorted rows."""
    n_rows, n_components = shares.shape
    shares = shares[_order(shares)]
    shown = shares[np.linspace(0, n_rows - 1, min(n_rows, _MOST_BARS)).astype(int)]
    if n_components <= _MOST_STACKED:
        edges = np.linspace(0, n_rows, len(shown) + 1)
        _stack(ax, edges, np.concatenate([shown, shown[-1:]]), step=True)
        ax.set_ylim(0, 1)
        ax.set_ylabel("probability")
        used = np.flatnonzero(shares.max(axis=0) > 0.01).tolist()
        handles = [_patch(ax, k, labels[k]) for k in used]
        ax.legend(handles=handles, loc="center left", bbox_to_anchor=(1.0, 0.5))
    else:
        extent = (0, n_rows, n_components - 0.5, -0.5)
        image = ax.imshow(
            shown.T, cmap="Blues", vmin=0, vmax=1, aspect="auto", interpolation="nearest", extent=extent
        )
        ax.set_yticks(range(n_components), [label.removeprefix(f"{word} ") for label in labels])
        ax.set_ylabel(word)
        ax.figure.colorbar(image, ax=ax).set_label("probability")
    ax.set_xlim(0, n_rows)
    rows = "words of the documents" if word == "topic" else "rows"
    ax.set_xlabel(f"{rows}, sorted by {word} and certainty")
    ax.set_title(f"Probability of each {word}, {'word by word' if word == 'topic' else 'row by row'}")


def _stack(ax: Axes, x: Array, shares: Array, *, step: bool) -> None:
    """Draw probabilities stacked, each component with its colour and hatch."""
    heights = np.concatenate([np.zeros((len(shares), 1)), np.cumsum(shares, axis=1)], axis=1)
    for k in range(shares.shape[1]):
        if shares[:, k].max() > 0.001:
            ax.fill_between(
                x,
                heights[:, k],
                heights[:, k + 1],
                step="post" if step else None,
                lw=0.0,
                **area_of(k, on_dark=is_dark(ax)),
            )
