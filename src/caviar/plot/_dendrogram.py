"""Components that overlap, merged step by step: a dendrogram."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from .._errors import ParameterError
from .._typing import Array
from ..numerics.arguments import require_share
from ._responsibilities import hidden_labels
from .parts.axes import in_style, ink, muted, new_axes, stroke
from .parts.colours import colours_of, line_of, marker_of
from .parts.mixture import NEGLIGIBLE
from .parts.posterior_figures import names_along, posterior_of

_LEAST = 1e-4
"""Shares below are drawn here."""
_MOST = 0.6
"""Where the lines of components begin."""


@dataclass(frozen=True)
class Merge:
    """A step: two groups of components, and the share of the rows that the two confuse."""

    one: tuple[int, ...]
    other: tuple[int, ...]
    share: float


@in_style
def dendrogram(
    fitted: Any,
    X: Any,
    *,
    threshold: float = 0.025,
    variable: str | None = None,
    names: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    r"""Return a dendrogram of components that merges those first which are most often confused.

    The confused share of two groups is the probability that a row of one is assigned to the other, :math:`\max(p_{ij},
    p_{ji})` with :math:`p_{ij} = \sum_n r_{ni} [z_n = j] / \sum_n r_{ni}`, where r are responsibilities and :math:`z_n`
    is the most probable group (Hennig, 2010). Components that together describe one non-Gaussian cluster join far to
    the left. Separate clusters join far to the right, or not at all if they confuse fewer than 1 row in 10,000.

    Parameters
    ----------
    fitted
        A fitted mixture or hidden Markov model, or the posterior of a model with a hidden Categorical or Markov chain.
    X
        Rows, as for the methods of the estimator or posterior.
    threshold
        Groups whose confused share is smaller are drawn as different clusters.
    variable
        Name of the hidden labels; optional if there is only one.
    names
        Names of the components; by default their numbers.
    ax
        Axes to draw into; by default a new figure.

    Returns
    -------
    Axes
        The title says how many clusters there are at the threshold. Components with less than 1 row in 200 are left
        out.

    Raises
    ------
    ParameterError
        If there are no hidden labels, fewer than two components have rows, or the threshold is not between 0 and 1.

    Examples
    --------
    >>> import caviar as cv
    >>> faithful = cv.datasets.load_faithful().values
    >>> mixture = cv.GaussianMixture(4, random_state=0).fit(faithful)
    >>> print(cv.plot.dendrogram(mixture, faithful).get_title())
    4 components, 2 clusters that confuse fewer than 2.5% of rows
    """
    threshold = require_share("threshold", threshold)
    name, shares, word = hidden_labels(fitted, X, variable)
    shown = [k for k in range(shares.shape[1]) if shares[:, k].mean() > NEGLIGIBLE]
    if len(shown) < 2:
        raise ParameterError(f"a dendrogram takes two components with rows; '{name}' has {len(shown)}")
    own = posterior_of(fitted).names.entries(name) if names is None else names
    labels = names_along("names", shares.shape[1], own)
    steps = merges(shares[:, shown])
    order = list(steps[-1].one + steps[-1].other)
    clusters = _clusters(steps, len(shown), threshold)
    ax = new_axes(ax, (6.0, 0.32 * len(shown) + 1.3))
    _draw(ax, steps, order, clusters)
    if threshold >= _LEAST:
        ax.axvline(threshold, color=muted(), lw=0.9, ls=(0, (4, 3)), zorder=0)
    weights = shares[:, shown].mean(axis=0)
    kind = f"{word} " if own is None else ""
    ax.set_yticks(range(len(order)), [f"{kind}{labels[shown[k]]} ({weights[k]:.0%})" for k in order])
    ax.set_ylim(len(order) - 0.4, -0.6)
    ax.set_xlabel("share of rows confused, by the groups that are merged (logarithmic)")
    told = (
        f"{len(clusters)} clusters that confuse fewer than {100 * threshold:g}% of rows"
        if len(clusters) > 1
        else f"1 cluster, for all merges confuse {100 * threshold:g}% of rows or more"
    )
    ax.set_title(f"{len(shown)} {word}s, {told}")
    return ax


def merges(shares: Array) -> list[Merge]:
    """Return the steps by which groups of components are merged, two at a time, down to one.

    Parameters
    ----------
    shares
        Responsibilities, shape (N, K).

    Examples
    --------
    >>> merges(np.array([[0.75, 0.25, 0.0], [0.25, 0.75, 0.0], [0.0, 0.0, 1.0]]))
    [Merge(one=(0,), other=(1,), share=0.25), Merge(one=(2,), other=(0, 1), share=0.0)]
    """
    groups = [(k,) for k in range(shares.shape[1])]
    found: list[Merge] = []
    while len(groups) > 1:
        own = np.stack([shares[:, list(group)].sum(axis=1) for group in groups], axis=1)
        is_best = own.argmax(axis=1)[:, None] == np.arange(len(groups))
        confused = own.T @ is_best / np.maximum(own.sum(axis=0), 1e-300)[:, None]
        np.fill_diagonal(confused, -1.0)
        confused = np.maximum(confused, confused.T)
        i, j = divmod(int(confused.argmax()), len(groups))
        i, j = min(i, j), max(i, j)
        found.append(Merge(groups[i], groups[j], float(confused[i, j])))
        groups = [own for k, own in enumerate(groups) if k not in (i, j)] + [groups[i] + groups[j]]
    return found


def _clusters(steps: Sequence[Merge], n_components: int, threshold: float) -> list[tuple[int, ...]]:
    """Return the groups that are left when merges of smaller shares are left out."""
    groups = {(k,) for k in range(n_components)}
    for step in steps:
        if step.share < threshold:
            break
        groups = (groups - {step.one, step.other}) | {step.one + step.other}
    return sorted(groups, key=min)


def _draw(
    ax: Axes, steps: Sequence[Merge], order: Sequence[int], clusters: Sequence[tuple[int, ...]]
) -> None:
    """Draw a line for each group until it is merged."""
    places: dict[tuple[int, ...], tuple[float, float]] = {
        (k,): (_MOST, float(line)) for line, k in enumerate(order)
    }
    number = {k: place for place, group in enumerate(clusters) for k in group}
    end = _MOST
    for step in steps:
        # a group may confuse more than its parts; it cannot join before them
        end = min(end, max(step.share, _LEAST))
        ends = []
        for group in (step.one, step.other):
            begin, line = places[group]
            places[step.one + step.other] = (end, 0.0)
            ends.append(line)
            _line(ax, [begin, end], [line, line], group, clusters, number)
        _line(ax, [end, end], ends, step.one + step.other, clusters, number)
        places[step.one + step.other] = (end, float(np.mean(ends)))
    for line, k in enumerate(order):
        colour = stroke(ax, colours_of(number[k] + 1)[number[k]], 0.15)
        ax.plot(_MOST, line, marker_of(number[k]), ms=6, color=colour, zorder=4)
    ax.set_xscale("log")
    ax.set_xlim(_MOST * 1.25, _LEAST * 0.8)
    ticks = [0.5, 0.1, 0.01, 0.001, 0.0001]
    ax.set_xticks(ticks, ["50%", "10%", "1%", "0.1%", "0.01% or less"])
    ax.xaxis.set_minor_formatter(FuncFormatter(lambda value, place: ""))


def _line(
    ax: Axes,
    x: Sequence[float],
    y: Sequence[float],
    group: tuple[int, ...],
    clusters: Sequence[tuple[int, ...]],
    number: dict[int, int],
) -> None:
    """Draw a line in the colour of its cluster, or of text where several clusters are merged."""
    inside = next((own for own in clusters if set(group) <= set(own)), None)
    if inside is None:
        ax.plot(x, y, color=ink(), lw=1.2, zorder=2)
        return
    k = number[inside[0]]
    ax.plot(x, y, color=stroke(ax, colours_of(k + 1)[k], 0.15), lw=2.0, ls=line_of(k), zorder=3)
