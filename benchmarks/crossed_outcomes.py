"""Crossed groups with binary outcomes: what is shown by default, beside a Gibbs sampler.

    OMP_NUM_THREADS=1 python benchmarks/crossed_outcomes.py [--groups 40 30] [--rows 1200] [--datasets 4] [--seed 0]

Data sets are drawn from a level and two sets of groups with a logistic link, both standard deviations half-t with 4
degrees of freedom. The sampler (Polson, Scott and Windle 2013) shares no code with caviar; its 5,000 draws give an
interval's probability to about half a point, and that of a precision to one or two. The
table has this probability for 90% intervals, the median of the standard deviations shown over those of the draws (of a
precision there is none), how far means are off in these (root mean square), what is shown, and the seconds of the fit
and of what is shown.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections import Counter

import numpy as np

import caviar as cv

OBS = cv.Plate("obs")
TERMS = 12


def drawn(sizes: tuple[int, int], n_rows: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return data."""
    g, h = (rng.integers(0, size, n_rows) for size in sizes)
    spreads = [(rng.gamma(2.0) / (4.0 * rng.gamma(0.5))) ** -0.5 for _ in sizes]
    a, b = (rng.normal(0.0, spread, size) for spread, size in zip(spreads, sizes, strict=True))
    at = rng.normal(0.0, np.sqrt(2.0)) + a[g] + b[h]
    return {"g": g, "h": h, "y": (rng.logistic(size=n_rows) < at).astype(int)}


def stated(sizes: tuple[int, int], method: str) -> cv.Model:
    """Return the model."""
    at = cv.Normal("mu", 0.0, 0.5)
    for name, known, size in (("a", "g", sizes[0]), ("b", "h", sizes[1])):
        between = cv.Gamma(f"{name}.precision", 2.0, cv.Gamma(f"{name}.rate", 0.5, 0.25))
        effect = cv.Normal(name, 0.0, between, plates=cv.Plate(f"{name}s", size))
        at = at + effect[cv.Data(known, plates=OBS)]
    return cv.Model(cv.Bernoulli("y", cv.logistic(at, method=method), plates=OBS))


def polya_gamma(tilt: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return draws of PG(1, tilt): some terms of its series, and a Gamma with the moments of the rest."""
    tilt = np.maximum(np.abs(tilt), 1e-3)
    terms = (np.arange(TERMS)[:, None] + 0.5) ** 2 + (tilt / (2.0 * np.pi)) ** 2
    found = (rng.standard_exponential(terms.shape) / terms).sum(axis=0) / (2.0 * np.pi**2)
    mean = np.tanh(tilt / 2.0) / (2.0 * tilt) - (1.0 / terms).sum(axis=0) / (2.0 * np.pi**2)
    variance = (np.sinh(tilt) - tilt) / (4.0 * tilt**3 * np.cosh(tilt / 2.0) ** 2)
    variance -= (1.0 / terms**2).sum(axis=0) / (4.0 * np.pi**4)
    mean, variance = np.maximum(mean, 1e-12), np.maximum(variance, 1e-16)
    return found + rng.gamma(mean**2 / variance) * variance / mean


def scaled(precision: float, curvature: float, slope: float, rng: np.random.Generator) -> float:
    """Return a scale for effects and their standard deviation together: groups that are alike move slowly otherwise."""

    def log_density(log_scale: float) -> float:
        scale, log_precision = np.exp(log_scale), np.log(precision) - 2.0 * log_scale
        prior = 2.0 * log_precision - 2.5 * np.logaddexp(log_precision, np.log(0.25))
        return slope * scale - 0.5 * curvature * scale**2 + prior

    at = 0.0
    for width in (0.1, 0.3, 1.0, 3.0):
        tried = at + width * rng.normal()
        if np.log(rng.random()) < log_density(tried) - log_density(at):
            at = tried
    return float(np.exp(at))


def sampled(
    sizes: tuple[int, int], data: dict[str, np.ndarray], n_draws: int, rng: np.random.Generator
) -> dict[str, np.ndarray]:
    """Return draws of a Gibbs sampler after a fifth as many, (draws, numbers) by name."""
    places = [slice(1, 1 + sizes[0]), slice(1 + sizes[0], 1 + sum(sizes))]
    labels = [1 + data["g"], 1 + sizes[0] + data["h"]]
    size, successes = 1 + sum(sizes), data["y"] - 0.5
    linear = successes.sum() * (np.arange(size) == 0)
    for own in labels:
        linear = linear + np.bincount(own, successes, size)
    effects, precisions, rates = np.zeros(size), np.ones(2), np.ones(2)
    kept = np.empty((n_draws, size + 2))
    for step in range(-(n_draws // 5), n_draws):
        weights = polya_gamma(effects[0] + effects[labels[0]] + effects[labels[1]], rng)
        prior = np.concatenate([[0.5], np.repeat(precisions, sizes)])
        precision = np.diag(prior + sum(np.bincount(own, weights, size) for own in labels))
        precision[0, 0] = 0.5 + weights.sum()
        for own in labels:
            precision[0, 1:] += np.bincount(own, weights, size)[1:]
        np.add.at(precision, (labels[0], labels[1]), weights)
        precision = np.triu(precision) + np.triu(precision, 1).T
        root = np.linalg.cholesky(precision)
        effects = np.linalg.solve(root.T, np.linalg.solve(root, linear) + rng.normal(size=size))
        for _ in range(3):
            for number, place in enumerate(places):
                rate = rates[number] + 0.5 * np.square(effects[place]).sum()
                precisions[number] = rng.gamma(2.0 + 0.5 * sizes[number]) / rate
                rates[number] = rng.gamma(2.5) / (0.25 + precisions[number])
        for number, place in enumerate(places):
            own = effects[labels[number]]
            others = effects[0] + effects[labels[0]] + effects[labels[1]] - own
            curvature, slope = weights @ own**2, own @ (successes - weights * others)
            scale = scaled(precisions[number], curvature, slope, rng)
            effects[place] *= scale
            precisions[number] /= scale**2
            rates[number] = rng.gamma(2.5) / (0.25 + precisions[number])
        if step >= 0:
            kept[step] = np.concatenate([effects, precisions])
    names = {"mu": kept[:, :1], "a": kept[:, places[0]], "b": kept[:, places[1]]}
    return names | {"a.precision": kept[:, -2:-1], "b.precision": kept[:, -1:]}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--groups", type=int, nargs=2, default=(40, 30))
    parser.add_argument("--rows", type=int, default=1200)
    parser.add_argument("--datasets", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", cv.ConvergenceWarning)
    sizes = tuple(arguments.groups)
    found: dict[tuple[str, str], list[tuple[float, ...]]] = {}
    kinds, seconds = {own: Counter[str]() for own in ("bound", "expectation")}, np.zeros((2, 2))
    for number in range(arguments.datasets):
        rng = np.random.default_rng([arguments.seed, number])
        data = drawn(sizes, arguments.rows, rng)
        draws = sampled(sizes, data, 5_000, rng)
        for row, method in enumerate(kinds):
            start = time.process_time()
            posterior = stated(sizes, method).fit(data, seed=0)
            middle = time.process_time()
            kinds[method][posterior.uncertainty] += 1
            seconds[row] += middle - start, time.process_time() - middle
            for name, own in draws.items():
                lower, upper = np.reshape(posterior.interval(name, 0.9), (2, -1))
                inside = ((own >= lower) & (own <= upper)).mean()
                off = np.sqrt(np.mean(((np.ravel(posterior.mean(name)) - own.mean(0)) / own.std(0)) ** 2))
                ratio = np.median(np.ravel(posterior.sd(name)) / own.std(axis=0))
                found.setdefault((method, name), []).append((inside, ratio, off))
    print(
        "| method | variable | inside | least | most | sd over draws | mean off | shown | s, fit | s, shown |\n"
        "|---|---|---|---|---|---|---|---|---|---|"
    )
    for (method, name), own in found.items():
        inside, ratio, off = np.array(own).T
        told = " | ".join(f"{100 * own:.1f}%" for own in (inside.mean(), inside.min(), inside.max()))
        moments = "– | –" if "precision" in name else f"{np.median(ratio):.2f} | {np.median(off):.2f}"
        how = ", ".join(f"{kind.replace('_', ' ')} {times}" for kind, times in kinds[method].items())
        cost = " | ".join(f"{own / arguments.datasets:.2f}" for own in seconds[list(kinds).index(method)])
        print(f"| {method} | {name} | {told} | {moments} | {how} | {cost} |", flush=True)


if __name__ == "__main__":
    main()
