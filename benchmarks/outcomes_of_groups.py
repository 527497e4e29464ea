"""Groups with binary outcomes and a wide prior of their spread, beside the exact posterior by quadrature.

    OMP_NUM_THREADS=1 python benchmarks/outcomes_of_groups.py [--datasets 4] [--seed 0]
    OMP_NUM_THREADS=1 python benchmarks/outcomes_of_groups.py --many [--datasets 4] [--seed 0]    # 30 to 200 groups

Data sets are drawn from a level and groups with a logistic or probit link, the standard deviation between groups half-t
with 4 degrees of freedom. The exact posterior is a sum over log precisions, levels, and the effect of each group, and
shares no code with caviar. The table has the probability of the exact posterior inside 90% intervals of linear response
and of what is shown by default, the medians of the standard deviations shown over the exact ones (of the precision
there is none), the largest distance of a mean shown from the exact one in exact standard deviations (median over data
sets), what is shown, and the seconds of the fit and of what is shown.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections import Counter
from typing import Any

import numpy as np
from scipy.special import log_expit, log_ndtr

import caviar as cv

OBS = cv.Plate("obs")
LINKS = {"logistic": (cv.logistic, log_expit), "probit": (cv.probit, log_ndtr)}
SIZES, MANY = ((6, 10), (8, 30), (20, 5)), ((30, 10), (60, 5), (200, 5))
PRECISIONS = np.exp(np.linspace(np.log(1e-3), np.log(3e4), 80))
LEVELS, NODES = np.linspace(-6.0, 6.0, 97), np.linspace(-6.5, 6.5, 161)
NEGLIGIBLE = 1e-9


def drawn(link: str, n_groups: int, n: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return data of n rows in each group."""
    between = rng.gamma(2.0) / (4.0 * rng.gamma(0.5))
    g = np.repeat(np.arange(n_groups), n)
    eta = rng.normal(0.0, np.sqrt(2.0)) + rng.normal(0.0, between**-0.5, n_groups)[g]
    noise = rng.logistic(size=len(g)) if link == "logistic" else rng.normal(size=len(g))
    return {"g": g, "y": (eta + noise > 0).astype(int)}


def stated(link: str, n_groups: int, method: str) -> cv.Model:
    """Return the model."""
    between = cv.Gamma("between", 2.0, cv.Gamma("rate", 0.5, 0.25))
    a = cv.Normal("a", 0.0, between, plates=cv.Plate("groups", n_groups))
    at = cv.Normal("mu", 0.0, 0.5) + a[cv.Data("g", plates=OBS)]
    return cv.Model(cv.Bernoulli("y", LINKS[link][0](at, method=method), plates=OBS))


def _narrowed(values: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Return as many values where the shares are not negligible."""
    inside = np.flatnonzero(shares > NEGLIGIBLE * shares.max())
    lower, upper = max(inside[0] - 1, 0), min(inside[-1] + 1, len(values) - 1)
    return np.linspace(values[lower], values[upper], len(values))


class Exact:
    """The posterior by sums: values and probabilities of each entry of each variable."""

    @classmethod
    def of(cls, link: str, data: dict[str, np.ndarray]) -> Exact:
        """Return that on lattices as wide as the posterior, which is narrow with many groups."""
        found = cls(link, data, PRECISIONS, LEVELS)
        for _ in range(2):
            log_precisions, levels = (_narrowed(*found.marginals[name][0]) for name in ("between", "mu"))
            found = cls(link, data, np.exp(log_precisions), levels)
        return found

    def __init__(
        self, link: str, data: dict[str, np.ndarray], precisions: np.ndarray, levels: np.ndarray
    ) -> None:
        ones, sizes = np.bincount(data["g"], data["y"]), np.bincount(data["g"])
        effects = NODES / np.sqrt(precisions)[:, None]
        predictor = levels[None, :, None] + effects[:, None, :]
        yes, no = LINKS[link][1](predictor), LINKS[link][1](-predictor)
        log_joint = (2.0 * np.log(precisions) - 2.5 * np.log(precisions + 0.25))[:, None] - 0.25 * levels**2
        given, keys = {}, list(zip(ones, sizes, strict=True))
        for key in set(keys):
            log_likelihood = key[0] * yes + (key[1] - key[0]) * no - 0.5 * NODES**2
            largest = log_likelihood.max(axis=2, keepdims=True)
            weights = np.exp(log_likelihood - largest)
            total = weights.sum(axis=2, keepdims=True)
            log_joint = log_joint + keys.count(key) * (np.log(total) + largest)[..., 0]
            given[key] = weights / total
        shares = np.exp(log_joint - log_joint.max())
        shares /= shares.sum()
        order = np.argsort(effects.ravel())
        own = {key: np.einsum("tm,tmz->tz", shares, weights).ravel()[order] for key, weights in given.items()}
        self.marginals = {
            "mu": [(levels, shares.sum(axis=0))],
            "a": [(effects.ravel()[order], own[key]) for key in keys],
            "between": [(np.log(precisions), shares.sum(axis=1))],
        }

    def inside(self, name: str, ends: np.ndarray) -> float:
        """Return the probability inside intervals, the mean over entries."""
        ends = np.log(np.maximum(ends, 1e-300)) if name == "between" else ends
        found = []
        for (values, shares), own in zip(self.marginals[name], np.reshape(ends, (2, -1)).T, strict=True):
            below = np.interp(own, values, np.cumsum(shares) - 0.5 * shares)
            found.append(below[1] - below[0])
        return float(np.mean(found))

    def moments(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Return means and standard deviations of the entries."""
        means = np.array([shares @ values for values, shares in self.marginals[name]])
        squares = np.array([shares @ values**2 for values, shares in self.marginals[name]])
        return means, np.sqrt(squares - means**2)


def compared(posterior: Any, data: Any, exact: Exact, name: str) -> tuple[float, ...]:
    """Return coverage of linear response and as shown, the ratio of standard deviations, and how far means are off."""
    response = posterior.linear_response(data)
    covered = (exact.inside(name, own.interval(name, 0.9)) for own in (response, posterior))
    if name == "between":
        return *covered, np.nan, np.nan
    mean, sd = exact.moments(name)
    off = np.abs((np.ravel(posterior.mean(name)) - mean) / sd).max()
    return *covered, float(np.median(np.ravel(posterior.sd(name)) / sd)), float(off)


def print_rows(link: str, method: str, sizes: tuple[int, int], n_datasets: int, seed: int) -> None:
    """Print the rows of a model."""
    found: dict[str, list[tuple[float, ...]]] = {"mu": [], "a": [], "between": []}
    kinds, seconds = Counter[str](), np.zeros(2)
    for number in range(n_datasets):
        data = drawn(link, *sizes, np.random.default_rng([seed, number]))
        start = time.process_time()
        posterior = stated(link, sizes[0], method).fit(data, seed=0)
        middle = time.process_time()
        kinds[posterior.uncertainty] += 1
        seconds += middle - start, time.process_time() - middle
        exact = Exact.of(link, data)
        for name, own in found.items():
            own.append(compared(posterior, data, exact, name))
    title = f"{link}, {sizes[0]} groups of {sizes[1]}" + (", expectation" if method == "expectation" else "")
    how = ", ".join(f"{kind.replace('_', ' ')} {times}" for kind, times in kinds.items())
    for name, own in found.items():
        before, after, ratio, off = np.array(own).T
        shares = before.mean(), before.min(), after.mean(), after.min()
        told = " | ".join(f"{100 * own:.1f}%" for own in shares)
        moments = "– | –" if name == "between" else f"{np.median(ratio):.2f} | {np.median(off):.2f}"
        cost = f"{how} | {seconds[0] / n_datasets:.2f} | {seconds[1] / n_datasets:.2f}"
        print(f"| {title} | {name} | {told} | {moments} | {cost} |", flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--datasets", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--many", action="store_true")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", cv.ConvergenceWarning)
    print(
        "| model | variable | linear response | worst | shown | worst | sd shown over exact | mean off | shown | "
        "s, fit | s, shown |\n|---|---|---|---|---|---|---|---|---|---|---|"
    )
    for link in LINKS:
        for sizes in MANY if arguments.many else SIZES:
            for method in ("bound", "expectation"):
                print_rows(link, method, sizes, arguments.datasets, arguments.seed)


if __name__ == "__main__":
    main()
