"""One picture of every kind; as a program, it draws the baselines anew: ``PYTHONPATH=tests python -m plot.gallery``."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.testing.decorators import remove_ticks_and_titles

import caviar as cv
from plot.fits import (
    BANANAS,
    DEATHS,
    FAITHFUL,
    GALAXIES,
    SLEEP,
    TRIAL,
    VOCABULARY,
    bananas,
    chain,
    coins,
    deaths,
    factors,
    faithful,
    galaxies,
    logistic,
    restarted,
    sleep,
    steps,
    topics,
    trial,
)

BASELINES = Path(__file__).with_name("baselines")


@dataclass(frozen=True)
class Picture:
    """A picture: what draws it, and the axes that it takes."""

    draw: Callable[..., Any]
    grid: tuple[int, int] = (1, 1)
    is_array: bool = False


def _on_demand(function: str, fit: Callable[[], Any], *arguments: Any, **keywords: Any) -> Callable[..., Any]:
    def draw(**more: Any) -> Any:
        values = [argument() if callable(argument) else argument for argument in arguments]
        return getattr(cv.plot, function)(fit(), *values, **keywords, **more)

    return draw


GALLERY = {
    "calibration": Picture(_on_demand("calibration", sleep, SLEEP, n_folds=10)),
    "calibration_binary": Picture(_on_demand("calibration", logistic, coins)),
    "density": Picture(_on_demand("density", galaxies, GALAXIES, n_draws=40, names=["velocity (1000 km/s)"])),
    "density_2d": Picture(_on_demand("density", faithful, FAITHFUL)),
    "dendrogram": Picture(_on_demand("dendrogram", bananas, BANANAS)),
    "elbo_trace": Picture(_on_demand("elbo_trace", restarted)),
    "forest": Picture(_on_demand("forest", factors, "mean", names={"feature": list("abcde")})),
    "group_effects": Picture(_on_demand("group_effects", sleep), (1, 2), True),
    "loadings": Picture(_on_demand("loadings", factors, names=list("abcde")), (1, 2), True),
    "loadings_heat": Picture(_on_demand("loadings", factors, heat_map=True), (1, 1), True),
    "pairs": Picture(
        _on_demand("pairs", faithful, FAITHFUL, names=["eruption (min)", "wait (min)"]), (2, 2), True
    ),
    "pairs_hexagons": Picture(
        _on_demand("pairs", faithful, partial(np.tile, FAITHFUL, (4, 1)), hexagons=True), (2, 2), True
    ),
    "partial_effects": Picture(_on_demand("partial_effects", trial, TRIAL), (1, 3), True),
    "predictive_check": Picture(_on_demand("predictive_check", galaxies, GALAXIES)),
    "predictive_check_counts": Picture(_on_demand("predictive_check", deaths, DEATHS)),
    "predictive_check_statistic": Picture(
        _on_demand("predictive_check", galaxies, GALAXIES, statistic="max")
    ),
    "prior_posterior": Picture(_on_demand("prior_posterior", sleep, "common effects"), (1, 2), True),
    "regression": Picture(_on_demand("regression", sleep, SLEEP)),
    "regression_by": Picture(_on_demand("regression", trial, TRIAL, "dose", by="arm")),
    "regression_binary": Picture(_on_demand("regression", logistic, coins, "X 1")),
    "residuals": Picture(_on_demand("residuals", sleep, SLEEP)),
    "responsibilities": Picture(_on_demand("responsibilities", galaxies, GALAXIES)),
    "responsibilities_2d": Picture(_on_demand("responsibilities", faithful, FAITHFUL)),
    "responsibilities_sorted": Picture(_on_demand("responsibilities", chain, steps)),
    "state_sequence": Picture(_on_demand("state_sequence", chain, steps), (3, 1), True),
    "topic_words": Picture(_on_demand("topic_words", topics, VOCABULARY, n_words=4), (1, 2), True),
    "weights": Picture(_on_demand("weights", galaxies)),
}


def write(name: str, path: Path) -> None:
    """Write a picture without text, whose pixels depend on the version of the font renderer."""
    drawn = GALLERY[name].draw()
    figure = np.ravel(drawn)[0].figure
    remove_ticks_and_titles(figure)
    for ax in figure.axes:
        ax.set(xlabel="", ylabel="")
        for text in list(ax.texts):
            text.remove()
        if ax.get_legend():
            ax.get_legend().remove()
    for legend in list(figure.legends):
        legend.remove()
    figure.savefig(path, dpi=45, metadata={"Software": None})


if __name__ == "__main__":
    mpl.use("Agg")
    BASELINES.mkdir(exist_ok=True)
    for each in GALLERY:
        write(each, BASELINES / f"{each}.png")
