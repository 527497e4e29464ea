"""What ``caviar fit --picture`` draws, for each kind of model. Only fits with a plot import this module."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import caviar as cv
from caviar._extras import install_command
from caviar.estimators.mixtures.components import told_by

try:
    from matplotlib import pyplot, rc_context
    from matplotlib.figure import Figure
except ImportError as error:
    message = f"plots need Matplotlib ({error}); install it by {install_command('plot')}"
    raise ImportError(message) from error

_MOST_PANELS = 12
_MOST_ENTRIES = 60
_MOST_COMPONENTS = 20
_PANELS_A_ROW = 4
_STYLE = Path(str(cv.plot.__file__)).with_name("caviar.mplstyle")
"""Of all plots of the library."""


def draw_rows(estimator: Any, rows: Any, path: Path) -> None:
    """Draw rows and components of a mixture of Gaussians."""
    cv.report.save_picture(cv.report.draw(estimator, rows), path)


def draw_states(hmm: cv.HiddenMarkovModel, rows: Any, lengths: Any, path: Path) -> None:
    """Draw the rows in the order of time, with the most probable path and the probability of each state."""
    data, names = {"X": rows, "lengths": lengths}, cv.report.column_names(hmm)
    _save(lambda: cv.plot.state_sequence(hmm, data, columns=names), path)


def draw_topics(lda: cv.LatentDirichletAllocation, path: Path) -> None:
    """Draw the most probable words of each topic."""
    _save(lambda: cv.plot.topic_words(lda, cv.report.column_names(lda)), path)


def draw_regression(model: cv.MixedModel, path: Path) -> None:
    """Draw the effect of each group with its interval; of a formula without groups the coefficients."""
    _save(
        lambda: cv.plot.group_effects(model) if model.groups_ else cv.plot.forest(model, "common effects"),
        path,
    )


def draw_variables(posterior: cv.Posterior, path: Path) -> None:
    """Draw mean and interval of each entry of the variables, as far as one plot has room for them.

    Raises
    ------
    DataError
        If no variable fits into the plot.
    """
    entries = Counter(row.variable for row in posterior.summary(max_rows=None).rows)
    shown: list[str] = []
    for name, count in entries.items():
        if count + sum(entries[other] for other in shown) <= _MOST_ENTRIES:
            shown.append(name)
    if not shown:
        raise cv.DataError(
            f"--picture shows up to {_MOST_ENTRIES} entries, and each variable has more; save the model by -o "
            f"m.caviar, and draw a part in Python by cv.plot.forest(cv.load('m.caviar'), 'name', only=...)"
        )
    _save(lambda: cv.plot.forest(posterior, shown, max_entries=_MOST_ENTRIES), path)


def draw_profiles(mixture: cv.MixedMixture, path: Path) -> None:
    """Draw what is typical of each component: means and spreads of numbers, and shares of categories.

    There is a panel for each column, at most 12 of them: those that tell most of the component of a row.
    """
    components = sorted(cv.report.component_table(mixture), key=lambda row: -row.weight.value)
    components = components[:_MOST_COMPONENTS]
    names = cv.report.column_names(mixture)
    shown = sorted(range(len(names)), key=lambda place: -told_by(components, place))[:_MOST_PANELS]
    across = min(len(shown), _PANELS_A_ROW)
    down = math.ceil(len(shown) / across)
    with rc_context(fname=_STYLE):
        figure = _profiles(components, shown, names, (down, across))
    left = len(mixture.weights_) - len(components)
    more = f", without the {left} lightest" if left else ""
    figure.suptitle(f"Components and their share of rows{more}: what is typical of each", fontsize=10)
    cv.report.save_picture(figure, path)


def _profiles(components: Any, shown: list[int], names: Any, shape: tuple[int, int]) -> Figure:
    """Return a figure with a panel for each column."""
    down, across = shape
    figure = Figure(
        figsize=(1.4 + 2.4 * across, down * (0.9 + 0.28 * len(components)) + 0.5), layout="constrained"
    )
    panels = figure.subplots(down, across, squeeze=False, sharey=True).ravel()
    for panel, column in zip(panels, shown, strict=False):
        draw = _draw_shares if components[0].probabilities[column] else _draw_means
        draw(panel, components, column)
        panel.set_title(names[column], fontsize=9)
        panel.tick_params(labelsize=8)
        panel.set_ylim(len(components) - 0.5, -0.5)
    panels[0].set_yticks(
        range(len(components)), [f"{row.label}  ({row.weight.value:.0%})" for row in components]
    )
    for panel in panels[len(shown) :]:
        panel.set_visible(False)
    return figure


def _draw_means(panel: Any, components: Any, column: int) -> None:
    """Draw the mean of each component, with a line of one standard deviation to both sides."""
    at = np.arange(len(components))
    means = np.array([row.mean[column].value for row in components])
    spread = np.array([row.standard_deviation[column] for row in components])
    panel.hlines(at, means - spread, means + spread, color="0.6", lw=3)
    panel.plot(means, at, "o", color="C0", ms=5)
    panel.set_xlabel("mean and std. dev.", fontsize=7)


def _draw_shares(panel: Any, components: Any, column: int) -> None:
    """Draw the probability of each value in each component as bars beside each other."""
    at, begin = np.arange(len(components)), np.zeros(len(components))
    for place, value in enumerate(components[0].probabilities[column]):
        share = np.array([row.probabilities[column][value].value for row in components])
        panel.barh(at, share, left=begin, height=0.75, color=f"C{place % 10}", label=str(value))
        begin = begin + share
    panel.set_xlim(0, 1)
    panel.set_xlabel("probability", fontsize=7)
    panel.legend(fontsize=6, loc="upper center", bbox_to_anchor=(0.5, -0.3), ncols=2, frameon=False)


def _save(draw: Callable[[], Any], path: Path) -> None:
    """Write the figure of a plot to a file; no window opens."""
    pyplot.switch_backend("Agg")
    figure = np.ravel(draw())[0].figure
    try:
        cv.report.save_picture(figure, path)
    finally:
        pyplot.close(figure)
