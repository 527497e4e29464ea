"""The most probable words of topics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from .._errors import ParameterError
from .._typing import AnyArray
from ..numerics.arguments import require_share
from ..posterior.figures import Figures
from .parts.axes import ACROSS, headline, in_style, new_panels, shade, stroke
from .parts.colours import colours_of
from .parts.posterior_figures import posterior_of, table_of

_MOST_TOPICS = 12


@in_style
def topic_words(
    fitted: Any,
    vocabulary: Sequence[str] | None = None,
    *,
    variable: str = "topics",
    topics: Sequence[int] | None = None,
    n_words: int = 8,
    level: float = 0.95,
    axes: Any = None,
) -> AnyArray:
    """Return a plot of the most probable words of each topic, with the interval of each probability.

    Parameters
    ----------
    fitted
        A fitted ``LatentDirichletAllocation``, or the posterior of a model with topics, such as
        ``caviar.models.latent_dirichlet_allocation``.
    vocabulary
        The word of each of the V categories. By default the words given to the model or estimator, or the column names
        of the data.
    variable
        Name of the topics, a Dirichlet over V words with one plate.
    topics
        Numbers of the topics to draw, in this order; by default all, or the 12 with the most tokens.
    n_words
        Number of words for each topic.
    level
        Probability of the central credible intervals of the Beta marginals.
    axes
        Axes to draw into, one for each topic; by default a new figure.

    Returns
    -------
    ndarray of Axes
        Shape (topics drawn,).

    Raises
    ------
    ParameterError
        If the variable does not exist, the vocabulary is unknown or has another length, or a topic does not exist.

    Examples
    --------
    >>> import caviar as cv
    >>> documents = [[0] * 9 + [1] * 8, [0] * 7 + [1] * 9 + [3], [2] * 8 + [3] * 8, [1] + [2] * 9 + [3] * 7]
    >>> posterior = cv.models.latent_dirichlet_allocation(2, 4).fit({"word": documents}, seed=0, n_restarts=4)
    >>> axes = cv.plot.topic_words(posterior, ["goal", "ball", "vote", "law"], n_words=2)
    >>> sorted(sorted(label.get_text() for label in ax.get_yticklabels()) for ax in axes)
    [['ball', 'goal'], ['law', 'vote']]
    """
    level = require_share("level", level)
    figures = table_of(fitted, variable, level, expected="topics are a Dirichlet over words with one plate")
    if vocabulary is None:
        vocabulary = figures.names[1] or _words_of(fitted)
    n_topics, n_vocabulary = figures.mean.shape
    if len(vocabulary) != n_vocabulary:
        raise ParameterError(
            f"'{variable}' is over {n_vocabulary} words, but the vocabulary has {len(vocabulary)}"
        )
    if n_words < 1:
        raise ParameterError(f"n_words must be at least 1; got {n_words!r}")
    shown = _chosen(fitted, variable, topics, n_topics)
    grid = new_panels(axes, len(shown), (2.0, 0.2 * n_words + 0.55), (0.2, 0.5), sharex=True)
    for ax, k in zip(grid, shown, strict=True):
        _draw_topic(ax, figures, k, vocabulary, min(n_words, n_vocabulary))
    for ax in grid[-ACROSS:]:
        ax.set_xlabel("probability")
        ax.tick_params(axis="x", labelbottom=True)
    if axes is None:
        intervals = "" if figures.lower is None else f", with {figures.told_interval(level)}"
        headline(grid[0], f"Most probable words of each topic{intervals}")
    return grid


def _words_of(fitted: Any) -> Sequence[str]:
    """Return the words of fitted topics.

    Raises
    ------
    ParameterError
        If they were fitted to counts without names.
    """
    names = getattr(fitted, "vocabulary_", getattr(fitted, "feature_names_in_", None))
    if names is None:
        raise ParameterError(
            "the words of these topics are not known: give vocabulary=, the word of each category, here or in the "
            "fit, or fit with a table whose columns have names"
        )
    return list(map(str, names))


def _chosen(fitted: Any, variable: str, topics: Sequence[int] | None, n_topics: int) -> list[int]:
    """Return the topics to draw: those asked for, or those with the most tokens, in the order of their numbers."""
    if topics is None:
        concentration = getattr(posterior_of(fitted)[variable], "concentration", None)
        total = np.zeros(n_topics) if concentration is None else concentration.sum(axis=1)
        used = getattr(fitted, "topics_in_use_", range(n_topics)) or range(n_topics)
        return sorted(sorted(used, key=lambda k: -total[k])[:_MOST_TOPICS])
    chosen = [int(k) for k in topics]
    wrong = [k for k in chosen if not 0 <= k < n_topics]
    if wrong or not chosen:
        came = f"got {wrong[0]}" if wrong else "got none"
        raise ParameterError(f"topics= lists numbers from 0 to {n_topics - 1}; {came}")
    return chosen


def _draw_topic(ax: Axes, figures: Figures, k: int, vocabulary: Sequence[str], n_words: int) -> None:
    """Draw the words of a topic as bars, with intervals at their ends."""
    best = np.argsort(-figures.mean[k], kind="stable")[:n_words]
    lines = np.arange(n_words)
    colour = shade(ax, colours_of(1)[0])
    ax.barh(lines, figures.mean[k, best], height=0.82, color=(*colour, 0.35), zorder=1)
    if figures.lower is not None and figures.upper is not None:
        edge = stroke(ax, colours_of(1)[0], 0.3)
        ax.hlines(lines, figures.lower[k, best], figures.upper[k, best], color=edge, lw=1.6, zorder=2)
    ax.set_yticks(lines, [str(vocabulary[word]) for word in best])
    ax.set_ylim(n_words - 0.4, -0.6)
    ax.set_title(f"topic {k if figures.names[0] is None else figures.names[0][k]}")
    ax.tick_params(axis="y", length=0)
    ax.xaxis.set_major_locator(MaxNLocator(3))
