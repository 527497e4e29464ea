"""How often 90% intervals hold the truth: of mean field, and of linear response.

    python benchmarks/coverage.py [--datasets 200] [--level 0.9] [--models crossed,probit] [--seed 0] [--new-rows]

Each data set is drawn from its model with all priors, fitted, and asked for the interval of each entry of some
variables. An interval of level 0.9 that is right covers 90% of the truths (simulation-based calibration). Fits begin at
the truth, so that all are in its mode: which mode a start finds is another question. The table shows the share that is
covered, its standard error over data sets, the median of the standard deviation of linear response over that of mean
field, and seconds of a fit and of its linear response. With --new-rows the intervals are those of 50 new rows of each
data set, as ``predict`` gives them from each of the two.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import caviar as cv

OBS = cv.Plate("obs")


@dataclass(frozen=True)
class Case:
    """A model, what is known with it, and the variables whose intervals are asked for."""

    state: Callable[[], cv.Model]
    known: Callable[[np.random.Generator], dict[str, Any]]
    asked: tuple[str, ...]
    sizes: Mapping[str, int]


def crossed() -> cv.Model:
    a = cv.Normal("a", 0, 1.0, plates=cv.Plate("row", 20))
    b = cv.Normal("b", 0, 1.0, plates=cv.Plate("column", 15))
    at = cv.Normal("mu", 0, 0.5) + a[cv.Data("g", plates=OBS)] + b[cv.Data("h", plates=OBS)]
    return cv.Model(cv.Normal("y", at, cv.Gamma("tau", 5, 5), plates=OBS))


def level_and_groups() -> cv.Model:
    a = cv.Normal("a", 0, cv.Gamma("between", 5, 5), plates=cv.Plate("row", 10))
    at = cv.Normal("mu", 0, 0.5) + a[cv.Data("g", plates=OBS)]
    return cv.Model(cv.Normal("y", at, cv.Gamma("tau", 5, 5), plates=OBS))


def hierarchy() -> cv.Model:
    group = cv.Plate("group", 8)
    level = cv.Normal("level", cv.Normal("mu", 0, 0.5), cv.Gamma("between", 5, 5), plates=group)
    return cv.Model(cv.Normal("y", level[cv.Data("g", plates=OBS)], cv.Gamma("tau", 5, 5), plates=OBS))


def probit() -> cv.Model:
    w = cv.MultivariateNormal("w", np.zeros(3), 0.5 * np.eye(3))
    eta = cv.dot(cv.Data("X", plates=OBS), w)
    return cv.Model(cv.Bernoulli("y", cv.probit(eta), plates=OBS))


def logistic() -> cv.Model:
    w = cv.MultivariateNormal("w", np.zeros(3), 0.5 * np.eye(3))
    eta = cv.dot(cv.Data("X", plates=OBS), w)
    return cv.Model(cv.Bernoulli("y", cv.logistic(eta), plates=OBS))


def regression() -> cv.Model:
    w = cv.MultivariateNormal("w", np.zeros(3), np.eye(3))
    at = cv.dot(cv.Data("X", plates=OBS), w)
    return cv.Model(cv.Normal("y", at, cv.Gamma("tau", 2, 2), plates=OBS))


def student() -> cv.Model:
    w = cv.MultivariateNormal("w", np.zeros(3), np.eye(3))
    at = cv.dot(cv.Data("X", plates=OBS), w)
    scale = cv.Gamma("scale", 2.0, 2.0, plates=OBS)
    return cv.Model(cv.Normal("y", at, scale, plates=OBS))


def mixture() -> cv.Model:
    component = cv.Plate("component", 3)
    mean = cv.Normal("mean", [-3.0, 0.0, 3.0], 1.0, plates=component)
    tau = cv.Gamma("tau", 5, 5, plates=component)
    z = cv.Categorical("z", cv.Dirichlet("weights", np.full(3, 4.0)), plates=OBS)
    return cv.Model(cv.Normal("x", mean[z], tau[z], plates=OBS))


def hidden_markov() -> cv.Model:
    state = cv.Plate("state", 2)
    initial, transition = np.full(2, 0.5), cv.Dirichlet("transition", [4.0, 2.0], plates=state)
    s = cv.MarkovChain("s", initial, transition, along=OBS)
    mean = cv.Normal("mean", [-1.0, 1.0], 2.0, plates=state)
    return cv.Model(cv.Normal("x", mean[s], cv.Gamma("tau", 5, 5, plates=state)[s], plates=OBS))


def _columns(n: int) -> Callable[[np.random.Generator], dict[str, Any]]:
    def known(rng: np.random.Generator) -> dict[str, Any]:
        return {"X": np.column_stack([np.ones(n), rng.normal(size=(n, 2))])}

    return known


def _groups(n: int, **levels: int) -> Callable[[np.random.Generator], dict[str, Any]]:
    def known(rng: np.random.Generator) -> dict[str, Any]:
        return {name: np.append(np.arange(k), rng.integers(0, k, n - k)) for name, k in levels.items()}

    return known


CASES = {
    "crossed": Case(crossed, _groups(200, g=20, h=15), ("mu", "a", "tau"), {"obs": 200}),
    "level": Case(level_and_groups, _groups(60, g=10), ("mu", "a", "between", "tau"), {"obs": 60}),
    "hierarchy": Case(hierarchy, _groups(60, g=8), ("mu", "between", "tau"), {"obs": 60}),
    "probit": Case(probit, _columns(60), ("w",), {"obs": 60}),
    "logistic": Case(logistic, _columns(60), ("w",), {"obs": 60}),
    "regression": Case(regression, _columns(15), ("w", "tau"), {"obs": 15}),
    "student": Case(student, _columns(40), ("w",), {"obs": 40}),
    "mixture": Case(mixture, lambda rng: {}, ("mean", "tau", "weights"), {"obs": 100}),
    "hidden-markov": Case(hidden_markov, lambda rng: {}, ("mean", "tau", "transition"), {"obs": 120}),
}

OF_REAL_NUMBERS = ("crossed", "level", "hierarchy", "regression", "student", "mixture")
NEW_ROWS = 50


@dataclass
class Tally:
    """What was seen of a variable: whether intervals covered, by data set, and ratios of standard deviations."""

    mean_field: list[float]
    response: list[float]
    ratios: list[float]


def covered(truth: Any, ends: Any) -> float:
    """Return the share of entries inside their interval."""
    return float(np.mean((np.asarray(truth) >= ends[0]) & (np.asarray(truth) <= ends[1])))


def run(case: Case, n: int, level: float, seed: int) -> tuple[dict[str, Tally], list[float], int]:
    """Return the tallies by variable, seconds of fits and of linear responses, and fits without a response."""
    tallies = {name: Tally([], [], []) for name in case.asked}
    seconds, refused = [0.0, 0.0], 0
    for number in range(n):
        rng = np.random.default_rng([seed, number])
        known = case.known(rng)
        model = case.state()
        drawn = model.simulate(rng, data=known, sizes=case.sizes)
        leaves = {leaf.name: drawn[leaf.name] for leaf in model.leaves}
        data = {**known, **leaves}
        start = time.perf_counter()
        truth = {name: drawn[name] for name in case.asked}
        posterior = model.fit(data, init=truth, tol=1e-9, max_iter=3000)
        seconds[0] += time.perf_counter() - start
        start = time.perf_counter()
        try:
            response = posterior.linear_response(data)
            found = {name: (response.interval(name, level), response.sd(name)) for name in case.asked}
        except cv.ModelError:
            refused += 1
            continue
        seconds[1] += time.perf_counter() - start
        for name in case.asked:
            (own,) = posterior[name].entry_marginals((0.5 - level / 2, 0.5 + level / 2))
            tally, (ends, sd) = tallies[name], found[name]
            tally.mean_field.append(covered(drawn[name], (own.lower, own.upper)))
            tally.response.append(covered(drawn[name], ends))
            tally.ratios.append(float(np.median(sd / own.sd)))
    return tallies, seconds, refused


def run_new_rows(case: Case, n: int, level: float, seed: int) -> tuple[list[float], list[float], float]:
    """Return the shares of new rows inside their intervals, and the median ratio of standard deviations."""
    shares: tuple[list[float], list[float]] = ([], [])
    ratios = []
    for number in range(n):
        rng = np.random.default_rng([seed, number])
        known = case.known(rng)
        model = case.state()
        drawn = model.simulate(rng, data=known, sizes=case.sizes)
        leaf = model.leaves[0].name
        data = {**known, leaf: drawn[leaf]}
        truth = {name: drawn[name] for name in model.variables if name in drawn}
        fitted = {name: truth[name] for name in case.asked}
        posterior = model.fit(data, init=fitted, tol=1e-9, max_iter=3000)
        chosen = rng.integers(0, case.sizes["obs"], NEW_ROWS)
        new = {name: values[chosen] for name, values in known.items()}
        given = {name: truth[name] for name in posterior}
        sizes = {"obs": NEW_ROWS}
        y = model.simulate(rng, data=new, sizes=sizes, given=given)[leaf]
        try:
            both = [own.predict(new)[leaf] for own in (posterior, posterior.linear_response(data))]
        except cv.ModelError:
            continue
        for found, told in zip(shares, both, strict=True):
            found.append(covered(y, np.broadcast_to(told.interval(level), (2, NEW_ROWS))))
        ratios.append(float(np.median(both[1].sd / both[0].sd)))
    return *shares, float(np.median(ratios))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--datasets", type=int, default=200)
    parser.add_argument("--level", type=float, default=0.9)
    parser.add_argument("--models", default=",".join(CASES))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--new-rows", action="store_true")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", cv.ConvergenceWarning)
    if arguments.new_rows:
        print(f"{'model':14s} {'mean field':>10s} {'response':>9s} {'+-':>5s} {'sd ratio':>8s}")
        for name in [name for name in arguments.models.split(",") if name in OF_REAL_NUMBERS]:
            q, response, ratio = run_new_rows(
                CASES[name], arguments.datasets, arguments.level, arguments.seed
            )
            error = 100 * np.std(response, ddof=1) / np.sqrt(len(response))
            told = f"{100 * np.mean(q):10.1f} {100 * np.mean(response):9.1f} {error:5.1f} {ratio:8.3f}"
            print(f"{name:14s} {told}", flush=True)
        return
    header = (
        f"{'model':14s} {'variable':11s} {'mean field':>10s} {'response':>9s} {'+-':>5s} {'sd ratio':>8s}"
    )
    print(f"{header} {'fit s':>7s} {'resp. s':>7s}")
    for name in arguments.models.split(","):
        n = arguments.datasets
        tallies, seconds, refused = run(CASES[name], n, arguments.level, arguments.seed)
        for variable, tally in tallies.items():
            response = np.array(tally.response)
            error = 100 * response.std(ddof=1) / np.sqrt(len(response))
            print(
                f"{name:14s} {variable:11s} {100 * np.mean(tally.mean_field):10.1f} {100 * response.mean():9.1f} "
                f"{error:5.1f} {np.median(tally.ratios):8.2f} {seconds[0] / n:7.3f} {seconds[1] / n:7.3f}",
                flush=True,
            )
        if refused:
            print(f"{name:14s} no response of {refused} fits: a saddle point, or not settled", flush=True)


if __name__ == "__main__":
    main()
