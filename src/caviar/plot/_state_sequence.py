"""Hidden states along time: the data, the most probable path, and the probability of each state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from .._errors import DataError, ParameterError
from .._typing import AnyArray, Array
from ..families import ChainMixture, ForecastMarkovChain, MarkovChain
from ..language import Categorical
from ..lazy.rows import as_floats
from ..posterior.new_rows import rows_first
from .parts.axes import hide_frame, in_style, ink, is_dark, muted, new_grid, shade
from .parts.colours import area_of, colours_of, line_of
from .parts.posterior_figures import names_along, placed, posterior_of

_MOST_LINES = 4
_MOST_STATES = 24
_USED = 0.01
"""States that never have this probability are not drawn."""


@in_style
def state_sequence(
    fitted: Any,
    data: Any,
    *,
    variable: str | None = None,
    observed: str | None = None,
    time: Sequence[float] | None = None,
    time_label: str = "step",
    names: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    axes: Any = None,
) -> AnyArray:
    """Return a plot of the states of a hidden Markov model over time.

    The top panel has the data: lines for up to four columns, a heat map of standardised columns for more. The middle
    panel has the most probable path, with the numbers of the states where there is room. The bottom panel has a row for
    each state, whose height is the probability of the state. Dashed lines separate sequences.

    Parameters
    ----------
    fitted
        A fitted ``HiddenMarkovModel``, or the posterior of a model with a ``MarkovChain``.
    data
        The rows in order, as for ``posterior.local``. For an estimator the rows ``X``; for several sequences ``{"X":
        rows, "lengths": lengths}``.
    variable
        Name of the chain; optional if there is only one.
    observed
        Name of the data to draw; by default the first observed variable.
    time
        Time of each row, increasing; by default the row number.
    time_label
        Label of the time axis, with its unit.
    names
        Names of the states; by default their numbers.
    columns
        Names of the columns of the data; by default numbers.
    axes
        Three axes to draw into; by default a new figure.

    Returns
    -------
    ndarray of Axes
        Shape (3,): data, path, probabilities.

    Raises
    ------
    ParameterError
        If the model has no hidden Markov chain, or more than 24 states are in use.

    Examples
    --------
    >>> import caviar as cv
    >>> model = cv.models.gaussian_hidden_markov_model(1, 2)
    >>> data = {"x": [[0.1], [-0.1], [0.0], [5.1], [4.9], [5.0], [0.1], [0.0]]}
    >>> axes = cv.plot.state_sequence(model.fit(data, seed=0, n_restarts=3), data)
    >>> print(axes.shape, axes[2].get_ylabel(), len(axes[2].get_yticks()))
    (3,) state 2
    """
    posterior = posterior_of(fitted)
    data = placed(fitted, data)
    if not isinstance(data, Mapping):
        raise DataError(
            f"data= must be a mapping from names to arrays, as for posterior.local; got {type(data).__name__}"
        )
    if columns is None:
        columns = getattr(fitted, "feature_names_in_", None)
    name, chain = _chain(posterior.local(data), variable)
    shares = np.asarray(chain.probabilities)
    n_rows, n_states = shares.shape
    used = np.flatnonzero(shares.max(axis=0) > _USED).tolist()
    if len(used) > _MOST_STATES:
        raise ParameterError(
            f"{len(used)} states are in use, too many for one plot (at most {_MOST_STATES}); "
            f"caviar.plot.responsibilities(posterior, data) draws them as a heat map"
        )
    labels = names_along("names", n_states, posterior.names.entries(name) if names is None else names)
    edges = _edges(time, n_rows)
    size = (7.2, 2.6 + 0.2 * len(used))
    ratios = [1.5, 0.24, max(0.6, 0.2 * len(used))]
    grid = new_grid(axes, (3, 1), size, sharex=True, gridspec_kw={"height_ratios": ratios})[:, 0]
    _draw_data(grid[0], fitted, data, observed, columns, edges)
    _draw_path(grid[1], np.asarray(chain.mode()), labels, edges)
    _draw_shares(grid[2], shares, used, labels, edges)
    for ax in grid:
        for start in np.flatnonzero(np.asarray(chain.starts, dtype=bool)):
            if start:
                ax.axvline(edges[start], color=muted(), lw=0.9, ls=(0, (4, 2)), zorder=5)
        ax.set_xlim(edges[0], edges[-1])
    grid[2].set_xlabel(time_label)
    grid[0].set_title("The data, the most probable path of states, and the probability of each state")
    return grid


def _chain(
    local: Mapping[str, Any], variable: str | None
) -> tuple[str, MarkovChain | ForecastMarkovChain | ChainMixture]:
    """Return the name of the chain that is asked for, and its path."""
    kinds = MarkovChain | ForecastMarkovChain | ChainMixture
    chains = {name: factor for name, factor in local.items() if isinstance(factor, kinds)}
    if not chains:
        raise ParameterError(
            "the model has no hidden Markov chain; caviar.plot.responsibilities draws the labels of a mixture"
        )
    name = next(iter(chains)) if variable is None else variable
    if name not in chains:
        raise ParameterError(
            f"variable= names {variable!r}; the hidden chains are {', '.join(map(repr, chains))}"
        )
    return name, chains[name]


def _edges(time: Sequence[float] | None, n_rows: int) -> Array:
    """Return where each row begins and the last ends: halfway between the times of neighbours."""
    if time is None:
        return np.arange(-0.5, n_rows, 1.0)
    at = np.asarray(time, dtype=np.float64)
    if at.shape != (n_rows,) or not np.all(np.diff(at) > 0):
        raise ParameterError(
            f"time= must be a rising number for each of the {n_rows} rows; got shape {at.shape}"
        )
    if n_rows == 1:
        return np.array([at[0] - 0.5, at[0] + 0.5])
    middle = (at[1:] + at[:-1]) / 2
    ends = (2 * at[0] - middle[0], 2 * at[-1] - middle[-1])
    return np.concatenate([ends[:1], middle, ends[1:]]).astype(np.float64)


def _draw_data(
    ax: Axes, fitted: Any, data: Mapping[str, Any], observed: str | None, columns: Any, edges: Array
) -> None:
    """Draw the observed columns as lines, or as a heat map where they are many."""
    posterior = posterior_of(fitted)
    by_row = [leaf.name for leaf in posterior.model.leaves if posterior.data_plate in leaf.plates]
    name = by_row[0] if observed is None else observed
    if name not in data:
        raise ParameterError(
            f"observed= names {name!r}, which is not among the data: {', '.join(map(repr, data))}"
        )
    values = rows_first(posterior, name, as_floats(data[name]))
    values = values.reshape(len(values), -1)
    labels = names_along("columns", values.shape[1], columns)
    told = name if fitted is posterior else "value"
    if values.shape[1] > _MOST_LINES:
        spread = np.nanstd(values, axis=0)
        standard = (values - np.nanmean(values, axis=0)) / np.where(spread > 0, spread, 1)
        lines = np.arange(values.shape[1] + 1) - 0.5
        ax.pcolormesh(edges, lines, standard.T, cmap="Greys", vmin=-2.5, vmax=2.5, rasterized=True)
        ax.set_yticks(range(values.shape[1]), labels, fontsize=7)
        ax.set_ylim(values.shape[1] - 0.5, -0.5)
        ax.set_ylabel(f"{told}, standardised")
        return
    at = (edges[1:] + edges[:-1]) / 2
    levels = _levels(fitted, name)
    if values.shape[1] == 1 and levels is not None:
        ax.plot(at, values[:, 0], "|", color=ink(), ms=5, mew=0.8)
        ax.set_yticks(range(len(levels)), list(map(str, levels)))
        ax.set_ylim(len(levels) - 0.5, -0.5)
        ax.set_ylabel(labels[0] if columns is not None else told)
        return
    greys = (ink(), muted(), ink(), muted())
    for column in range(values.shape[1]):
        style = "-" if column < 2 else line_of(column)
        ax.plot(at, values[:, column], color=greys[column], ls=style, lw=1.0, label=labels[column])
    ax.set_ylabel(labels[0] if values.shape[1] == 1 and columns is not None else told)
    if values.shape[1] > 1:
        ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))


def _levels(fitted: Any, name: str) -> Any:
    """Return the categories of the data; None where they are numbers, whose names are those of columns."""
    posterior = posterior_of(fitted)
    if not isinstance(posterior.model.variables[name], Categorical):
        return None
    return getattr(fitted, "categories_", None) or posterior.names.entries(name)


def _runs(path: AnyArray, edges: Array) -> list[tuple[int, float, float]]:
    """Return state, begin and length of each run of equal states."""
    changes = (np.flatnonzero(np.diff(path)) + 1).tolist()
    begins, ends = [0, *changes], [*changes, len(path)]
    return [
        (int(path[b]), float(edges[b]), float(edges[e] - edges[b])) for b, e in zip(begins, ends, strict=True)
    ]


def _draw_path(ax: Axes, path: AnyArray, labels: Sequence[str], edges: Array) -> None:
    """Draw the most probable path as a strip."""
    runs = _runs(path, edges)
    whole = float(edges[-1] - edges[0])
    for k in sorted({state for state, *_ in runs}):
        spans = [(begin, length) for state, begin, length in runs if state == k]
        ax.broken_barh(spans, (0, 1), **area_of(k, on_dark=is_dark(ax)), lw=0)
    box = {"facecolor": "white", "alpha": 0.75, "edgecolor": "none", "pad": 0.8}
    for k, begin, length in runs:
        if length > whole * 0.012 * (len(labels[k]) + 1):
            at = begin + length / 2
            ax.text(at, 0.5, labels[k], ha="center", va="center", fontsize=8, color="#222222", bbox=box)
    ax.set_ylim(0, 1)
    ax.set_ylabel("path", rotation=0, ha="right", va="center")
    hide_frame(ax, "left", "bottom", "right", "top")


def _draw_shares(ax: Axes, shares: Array, used: Sequence[int], labels: Sequence[str], edges: Array) -> None:
    """Draw a row for each state, as high as it is probable."""
    heights = np.concatenate([shares, shares[-1:]])
    for line, k in enumerate(used):
        colour = shade(ax, colours_of(k + 1)[k])
        base = line + 0.45
        ax.fill_between(edges, base, base - 0.9 * heights[:, k], step="post", facecolor=(*colour, 0.8), lw=0)
        ax.axhline(base, color=muted(), lw=0.4)
    ax.set_yticks(range(len(used)), [labels[k] for k in used])
    ax.set_ylim(len(used) - 0.45, -0.6)
    ax.set_ylabel("state", color=ink())
    hide_frame(ax, "right", "top")
    ax.tick_params(axis="y", length=0)
