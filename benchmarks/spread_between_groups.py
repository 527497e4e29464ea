"""Binary outcomes of groups: the interval of the spread that `MixedModel` shows, beside quadrature and linear response.

    python benchmarks/spread_between_groups.py
    python benchmarks/spread_between_groups.py --seed 1 --designs 60x5 1000x5
    python benchmarks/spread_between_groups.py --designs 5000x10
    python benchmarks/spread_between_groups.py --designs 20000x10 --uncertainty integrated

Quadrature is over the intercept, the spread and the effect of each group, with the priors of `MixedModel`: a Normal
with standard deviation 2.5, and a half-t with 4 degrees of freedom and scale 2.5. It prints a table in Markdown.
"""

from __future__ import annotations

import argparse
import math
import time

import numpy as np
from scipy import stats
from scipy.special import expit, logsumexp

import caviar as cv

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(32)


def drawn(n_groups: int, size: int, rng: np.random.Generator) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Return outcomes of groups whose effects have the standard deviation one, and the successes of each."""
    group = np.repeat(np.arange(n_groups), size)
    y = rng.random(len(group)) < expit(0.3 + rng.normal(size=n_groups)[group])
    return {"y": y.astype(float), "g": group}, np.bincount(group, y).astype(int)


def exact(successes: np.ndarray, size: int) -> tuple[float, float, float, float]:
    """Return mean, standard deviation and 95% interval of the spread.

    Groups with as many successes are alike. The second grid is where the first has its mass.
    """
    levels, spreads = np.linspace(-3.0, 3.5, 105), np.geomspace(0.02, 8.0, 500)
    for last in (False, True):
        density = density_at(levels, spreads, successes, size)
        of_level, of_spread = density.sum(axis=1), density.sum(axis=0)
        if not last:
            left, right = (
                own[weights > 1e-7 * weights.max()]
                for own, weights in ((levels, of_level), (spreads, of_spread))
            )
            levels = np.linspace(left[0], left[-1], 61)
            spreads = np.geomspace(right[0], right[-1], 500)
    share = of_spread / of_spread.sum()
    mean = float(share @ spreads)
    below = np.cumsum(share) - 0.5 * share
    low, high = np.interp([0.025, 0.975], below, spreads)
    return mean, math.sqrt(float(share @ (spreads - mean) ** 2)), float(low), float(high)


def density_at(levels: np.ndarray, spreads: np.ndarray, successes: np.ndarray, size: int) -> np.ndarray:
    """Return the density of levels and logs of spreads, with the effect of each group summed out."""
    counts, times = np.unique(successes, return_counts=True)
    at = levels[:, None, None] + spreads[:, None] * NODES
    log_density = (
        stats.norm.logpdf(levels, 0, 2.5)[:, None] + stats.t.logpdf(spreads / 2.5, 4) + np.log(spreads)
    )
    for count, own in zip(counts, times, strict=True):
        of_group = count * at - size * np.logaddexp(0.0, at)
        log_density = log_density + own * logsumexp(of_group, b=WEIGHTS / WEIGHTS.sum(), axis=-1)
    return np.exp(log_density - log_density.max())


def shown(frame: dict[str, np.ndarray], uncertainty: str) -> tuple[tuple[float, float, float, float], float]:
    """Return the same of a fit, and the seconds of fit and summary."""
    began = time.perf_counter()
    model = cv.MixedModel("y ~ 1 + (1 | g)", family="bernoulli", uncertainty=uncertainty).fit(frame)
    row = next(own for own in model.summary(level=0.95).rows if own.name == "g, Intercept")
    return (row.mean, row.sd, row.lower, row.upper), time.perf_counter() - began


def in_words(figures: tuple[float, float, float, float], n_groups: int) -> str:
    mean, sd, low, high = (
        f"{own:.{3 if n_groups >= 1_000 else 2}f}" if math.isfinite(own) else "–" for own in figures
    )
    return f"{mean} ± {sd}, {low} to {high}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--designs", nargs="+", default=["5x20", "8x12", "24x20", "80x6", "2000x5"], metavar="GROUPSxROWS"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--uncertainty", default="auto", help="of what is shown")
    arguments = parser.parse_args()
    warm = {"y": np.tile([0.0, 1.0], 5), "g": np.repeat(np.arange(5), 2)}
    shown(warm, "auto")
    print("| 95% interval of the spread between groups | shown | exact | linear response | seconds |")
    print("|---|---|---|---|---|")
    for design in arguments.designs:
        n_groups, size = map(int, design.split("x"))
        frame, successes = drawn(n_groups, size, np.random.default_rng(arguments.seed))
        found, seconds = shown(frame, arguments.uncertainty)
        beside, _ = shown(frame, "linear_response")
        truth = exact(successes, size)
        cells = [
            f"{n_groups:,} groups of {size}",
            *(in_words(own, n_groups) for own in (found, truth, beside)),
        ]
        print(f"| {' | '.join(cells)} | {seconds:.1f} |", flush=True)


if __name__ == "__main__":
    main()
