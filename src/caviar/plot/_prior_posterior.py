"""The prior of a variable beside its posterior: how much the data say."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from .._errors import ImproperError, ModelError, ParameterError
from .._typing import AnyArray, Array
from ..families._marginals import Ends, Marginals
from ..language import Constant, Data, Variable, nodes_above
from ..posterior.posterior import Posterior
from ..posterior.simulation import check_labels, conditional, known_arrays, settle_sizes, simulate
from ._axes import headline, hide_frame, in_style, muted, new_grid, shade, stroke
from ._posterior_figures import Figures, figures_of, placed, places_of, posterior_of
from .colours import colours_of

_PROBABILITIES = 1.0 / (1.0 + np.exp(-np.linspace(-7.0, -0.02, 40)))
"""Below a half, at which quantiles are asked for: their slope is the density."""
_ACROSS, _WIDEST = 4, 6.0
"""Panels in a row, and times that an axis may be as wide as the posterior."""
_GRID, _N_DRAWS = 241, 80

Quantiles = tuple[Array, Array]
"""Probabilities (P,), and the quantiles of each entry (P, ...)."""


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
    """Return a plot of the prior of a global variable beside its posterior, a panel for each entry.

    Where both are alike, the data say little, and the answer is that of the prior.

    Parameters
    ----------
    fitted
        A posterior, or a fitted estimator.
    variable
        Name of a global variable; of a joint factor with its part, as ``"theta.mean"``. It may be left out where there
        is only one.
    data
        Rows, where the prior depends on known columns; as the methods of the posterior or of the estimator take them.
    names, only
        As for :func:`forest`.
    max_entries
        More entries are refused.
    seed
        Of the draws of the parents of the prior, where these are unknown too.
    axes
        Axes to draw into, one for each entry; by default those of a new figure.

    Returns
    -------
    ndarray of Axes
        Shape (entries,). A panel says how wide the central 68% interval of the posterior is beside that of the prior.
        A flat prior has no curve, and one that is much wider than the posterior is cut off at the edges.

    Raises
    ------
    ParameterError
        If there is no such variable, it is a point, or it has too many entries.

    Notes
    -----
    Densities are slopes of quantiles, so the posterior is the one whose intervals :func:`forest` draws. A prior with
    unknown parents is averaged over 80 draws of these from their own priors.

    Examples
    --------
    >>> import caviar as cv
    >>> p = cv.Beta("p", 2, 2)
    >>> posterior = cv.Model(cv.Bernoulli("x", p, plates=cv.Plate("obs"))).fit({"x": [1, 1, 0, 1, 1, 1]})
    >>> axes = cv.plot.prior_posterior(posterior)
    >>> print(axes[0].get_title())
    p
    58% as wide as the prior
    """
    posterior = posterior_of(fitted)
    name = _chosen(posterior, variable)
    own = _with_density(posterior, name)
    lower = own.mean if own.lower is None else own.lower
    places = [(label, at) for label, at in places_of(fitted, own, names, only) if np.isfinite(lower[at])]
    if len(places) > max_entries:
        raise ParameterError(
            f"'{own.name}' has {len(places)} entries, too many for one plot; pass only= for some of them, or "
            f"max_entries={len(places)}"
        )
    if not places:
        raise ParameterError(f"the family of '{own.name}' gives no intervals, so its density is not known")
    arrays = {} if data is None else placed(fitted, data)
    n_across = min(_ACROSS, len(places))
    n_down = -(-len(places) // n_across)
    shape = (1, len(places)) if axes is not None else (n_down, n_across)
    grid = new_grid(axes, shape, (max(4.2, 2.7 * n_across), 2.1 * n_down + 0.4)).ravel()
    after = _quantiles(
        lambda ends: _part(posterior.marginals(name.partition(".")[0], ends[1] - ends[0]), own.name)
    )
    priors = _priors(posterior, own.name, own.mean.shape, arrays, seed)
    for ax, (label, at) in zip(grid, places, strict=False):
        own_priors = [(p, x[:, *at]) for p, x in priors if np.isfinite(x[:, *at]).all()]
        _draw(
            ax, f"{own.name} {label}" if label.isdigit() else label, own_priors, (after[0], after[1][:, *at])
        )
    for ax in grid[len(places) :]:
        ax.set_visible(False)
    grid[0].legend(fontsize="small")
    if axes is None and len(places) > 1:
        headline(grid[0], f"Prior and posterior of {own.name}")
    return grid[: len(places)]


def _with_density(posterior: Posterior, name: str) -> Figures:
    """Return the figures of a variable, or of a part of a joint factor, that has a density."""
    figures = figures_of(posterior, name, 0.95)
    if len(figures) > 1:
        parts = " or ".join(repr(own.name) for own in figures)
        raise ParameterError(f"{name!r} is a joint factor; choose {parts}")
    if figures[0].lower is None:
        raise ParameterError(f"{name!r} is a point or a label, which has no density")
    return figures[0]


def _chosen(posterior: Posterior, variable: str | None) -> str:
    if variable is None and len(posterior) > 1:
        known = ", ".join(map(repr, posterior))
        raise ParameterError(f"prior_posterior draws one variable; choose one of {known}")
    return next(iter(posterior)) if variable is None else str(variable)


def _part(found: Sequence[Marginals], name: str) -> Marginals:
    """Return the marginals of a variable, or of the part of a joint factor that is named."""
    part = "." + name.partition(".")[2]
    return next((own for own in found if own.part == part), found[0])


def _quantiles(marginals: Callable[[Ends], Marginals]) -> Quantiles:
    """Return quantiles, from intervals of many levels."""
    below, above = [], []
    for share in _PROBABILITIES.tolist():
        own = marginals((share, 1.0 - share))
        if own.lower is None or own.upper is None:
            raise ParameterError("the prior is a point, which has no density")
        below.append(own.lower)
        above.append(own.upper)
    return np.concatenate([_PROBABILITIES, 1.0 - _PROBABILITIES[::-1]]), np.stack([*below, *above[::-1]])


def _priors(
    posterior: Posterior,
    name: str,
    shape: tuple[int, ...],
    arrays: Mapping[str, Any],
    seed: int | np.random.Generator | None,
) -> list[Quantiles]:
    """Return the quantiles of the prior given each of several draws of its parents; none of an improper one."""
    own = posterior.model.variables[name.partition(".")[0]]
    nodes = list(nodes_above([own]))
    parents = [node for node in nodes if node is not own]
    is_known = all(isinstance(node, Constant) for node in parents)
    sizes = _sizes(posterior, parents)
    data = {node.name: arrays[node.name] for node in nodes if isinstance(node, Data) and node.name in arrays}
    known = known_arrays(nodes, data)
    check_labels(nodes, known, settle_sizes(nodes, _sizes(posterior, nodes), known, {}))
    rng = np.random.default_rng(seed)
    found: list[Quantiles] = []
    try:
        for _ in range(1 if is_known else _N_DRAWS):
            values = {} if is_known else simulate(parents, rng, sizes, data, {})
            prior = conditional(own, {**known, **values})

            def marginals(ends: Ends, prior: Any = prior) -> Marginals:
                return _part(prior.entry_marginals(ends), name)

            p, x = _quantiles(marginals)
            found.append((p, np.broadcast_to(x, (len(p), *shape))))
    except (ImproperError, ModelError):
        # a flat prior, or one that has no draws
        return []
    return found


def _sizes(posterior: Posterior, nodes: Sequence[Any]) -> dict[str, int]:
    """Return the sizes of the plates of some variables, as their factors have them."""
    sizes: dict[str, int] = {}
    for node in nodes:
        if isinstance(node, Variable) and node.name in posterior:
            names = [plate.name for plate in node.batch_plates]
            sizes.update(zip(names, posterior[node.name].batch_shape, strict=False))
    return sizes


def _draw(ax: Axes, label: str, priors: Sequence[Quantiles], after: Quantiles) -> None:
    """Draw both densities of an entry."""
    low, high = _range(priors, after)
    grid = np.linspace(low, high, _GRID)
    colour = colours_of(1)[0]
    density = _density([after], grid)
    ax.fill_between(grid, density, color=(*shade(ax, colour), 0.4), lw=0, zorder=2)
    ax.plot(grid, density, color=stroke(ax, colour), lw=1.6, zorder=3, label="posterior")
    title = label
    if priors:
        ax.plot(grid, _density(priors, grid), color=muted(), lw=1.6, ls=(0, (4, 2)), zorder=4, label="prior")
        title = f"{label}\n{_spread([after]) / _spread(priors):.0%} as wide as the prior"
    ax.set_title(title, fontsize=8.5)
    ax.set_xlim(low, high)
    ax.set_ylim(0, 1.3 * float(density.max()))
    hide_frame(ax, "left", "right", "top")


def _range(priors: Sequence[Quantiles], after: Quantiles) -> tuple[float, float]:
    """Return the ends of an axis: the posterior, and as much of the prior as leaves the posterior wide enough."""
    low, high = float(after[1][0]), float(after[1][-1])
    if not priors:
        return low, high
    room = 0.5 * (_WIDEST - 1.0) * (high - low)
    first = min(_at([own], 0.01) for own in priors)
    last = max(_at([own], 0.99) for own in priors)
    return min(low, max(first, low - room)), max(high, min(last, high + room))


def _density(found: Sequence[Quantiles], grid: Array) -> Array:
    """Return the density, the slope of probability over quantile, averaged over the draws of the parents."""
    total = np.zeros(len(grid))
    for p, x in found:
        step = np.diff(x)
        kept = step > 0
        middles = (0.5 * (x[1:] + x[:-1]))[kept]
        total += np.interp(grid, middles, np.diff(p)[kept] / step[kept], left=0.0, right=0.0)
    return total / len(found)


def _at(found: Sequence[Quantiles], share: float) -> float:
    """Return a quantile of the average over the draws of the parents."""
    if len(found) == 1:
        p, x = found[0]
        return float(np.interp(share, p, x))
    pooled = np.concatenate([np.interp((np.arange(64) + 0.5) / 64, p, x) for p, x in found])
    return float(np.quantile(pooled, share))


def _spread(found: Sequence[Quantiles]) -> float:
    """Return half the distance between the quantiles that are a standard deviation from the middle of a Normal."""
    return 0.5 * (_at(found, 0.8413447461) - _at(found, 0.1586552539))
