"""Weights of components with credible intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from .._errors import ParameterError
from ..numerics.arguments import require_share
from .parts.axes import in_style, ink, is_dark, new_axes, paper, slant
from .parts.colours import area_of
from .parts.posterior_figures import figures_of, names_along, posterior_of


@in_style
def weights(
    fitted: Any,
    *,
    variable: str = "weights",
    level: float = 0.95,
    names: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    r"""Return a bar plot of the weights of components: their means and credible intervals.

    Parameters
    ----------
    fitted
        A fitted mixture, or the posterior of a model with weights.
    variable
        Name of the weights: a Dirichlet or StickBreaking without plates.
    level
        Probability of the central credible intervals. For :math:`\mathrm{Dir}(\alpha)` they are those of the marginals
        :math:`\mathrm{Beta}(\alpha_k, \sum_j \alpha_j - \alpha_k)`; for StickBreaking they come from 4,000 draws. Point
        masses (EM, MAP-EM) have no intervals.
    names
        Names of the components; by default those of the posterior, or their numbers.
    ax
        Axes to draw into; by default a new figure.

    Returns
    -------
    Axes
        There is a bar for each component, in order of its number.

    Raises
    ------
    ParameterError
        If the variable does not exist or has plates.

    Examples
    --------
    >>> import caviar as cv
    >>> mixture = cv.BayesianGaussianMixture(2, random_state=0).fit(cv.datasets.load_faithful().values)
    >>> ax = cv.plot.weights(mixture)
    >>> [round(float(bar.get_height()), 2) for bar in ax.patches]
    [0.36, 0.64]
    """
    level = require_share("level", level)
    posterior = posterior_of(fitted)
    if variable == "weights" and variable not in posterior and hasattr(fitted, "weights_"):
        # known ones are not variables of the posterior
        figures, mean, ends, known = None, np.asarray(fitted.weights_), None, None
    else:
        figures = figures_of(posterior, variable, level)[0]
        mean, known = figures.mean, figures.names[-1]
        ends = None if figures.lower is None or figures.upper is None else (figures.lower, figures.upper)
    if mean.ndim != 1:
        raise ParameterError(
            f"'{variable}' has entries of shape {mean.shape}, not one weight for each component; "
            f"caviar.plot.forest(posterior, '{variable}') draws every entry"
        )
    labels = names_along("names", len(mean), known if names is None else names)
    ax = new_axes(ax, (max(4.4, 0.45 * len(mean) + 1.6), 3.2))
    for k in range(len(mean)):
        ax.bar(k, mean[k], width=0.72, **area_of(k, on_dark=is_dark(ax)))
    if ends is not None:
        at = np.arange(len(mean))
        ax.vlines(at, *ends, color=paper(ax), lw=5, zorder=3)
        ax.vlines(at, *ends, color=ink(), lw=2, zorder=4)
    ax.set_xticks(range(len(mean)), labels)
    if max(map(len, labels)) > 4:
        slant(ax)
    ax.set_ylim(bottom=0)
    ax.set_xlabel("component")
    ax.set_ylabel("weight (share of the rows)")
    told = "" if ends is None or figures is None else f",\nwith {figures.told_interval(level)}"
    ax.set_title(f"Weights of the components{told}")
    return ax
