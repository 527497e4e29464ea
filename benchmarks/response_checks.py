"""Linear response compared with refits under other priors, and with the eigenvalues of the whole matrix at saddles.

    OMP_NUM_THREADS=1 python benchmarks/response_checks.py [--only sensitivity]
    OMP_NUM_THREADS=1 python benchmarks/response_checks.py --only saddles
    OMP_NUM_THREADS=1 python benchmarks/response_checks.py --only cost

Sensitivity: each number that states a prior is changed by a hundredth either way (a location by a hundredth of the
prior's standard deviation), the model is fitted again from the same factors, and the change of each mean is compared
with ``response.sensitivity``. The table has the largest change of a mean when the number grows by 10% (or a tenth of
the standard deviation), and the largest difference between slope and refits, both in posterior standard deviations; and
the seconds of the fit with all sensitivities, and of all refits.

Saddles: mixtures that begin with all components equal, and stay so. The table has the smallest eigenvalue of I - K by
Lanczos' method and from the whole matrix, the seconds of both, and how far the ELBO of the equal components is below
that of a fit that goes on along the direction.
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
from caviar.engine.response.solutions.chosen import Iterated

OBS = cv.Plate("obs")
_SHARE = 0.01


@dataclass(frozen=True)
class Case:
    """A model by the numbers of its priors, and its data.

    Attributes
    ----------
    state
        Takes all numbers by name, "VARIABLE.PARAMETER".
    numbers
        The numbers.
    steps
        What is 10% of a location: a tenth of the prior's standard deviation.
    """

    state: Callable[[Mapping[str, Any]], cv.Model]
    numbers: Mapping[str, float]
    steps: Mapping[str, float]
    data: Mapping[str, Any]
    arguments: Mapping[str, Any]


def groups(link: Callable[..., Any] | None, *, apart: bool = False) -> Case:
    """Return a level and groups, with Normal noise or a link."""
    rng = np.random.default_rng(0)
    g = np.repeat(np.arange(8), 15)
    at = 0.5 + rng.normal(size=8)[g]
    y = at + rng.normal(size=120) if link is None else (at + rng.logistic(size=120) > 0).astype(int)

    def state(p: Mapping[str, Any]) -> cv.Model:
        between = cv.Gamma("between", p["between.shape"], p["between.rate"])
        a = cv.Normal("a", 0.0, between, plates=cv.Plate("groups", 8))
        predictor = cv.Normal("mu", p["mu.mean"], p["mu.precision"]) + a[cv.Data("g", plates=OBS)]
        if link is not None:
            return cv.Model(cv.Bernoulli("y", link(predictor), plates=OBS))
        tau = cv.Gamma("tau", p["tau.shape"], p["tau.rate"])
        return cv.Model(cv.Normal("y", predictor, tau, plates=OBS))

    numbers = {"between.shape": 5.0, "between.rate": 5.0, "mu.mean": 0.0, "mu.precision": 0.5}
    if link is None:
        numbers |= {"tau.shape": 5.0, "tau.rate": 5.0}
    steps = {"mu.mean": 0.14}
    return Case(state, numbers, steps, {"g": g, "y": y}, {"factors": "apart"} if apart else {})


def mixture() -> Case:
    """Return two overlapping components."""
    rng = np.random.default_rng(1)
    x = np.where(rng.random(150) < 0.4, -1.2, 1.2) + rng.normal(size=150)

    def state(p: Mapping[str, Any]) -> cv.Model:
        k = cv.Plate("k", 2)
        z = cv.Categorical("z", cv.Dirichlet("w", np.full(2, p["w.concentration"])), plates=OBS)
        mean = cv.Normal("mean", [-1.0, 1.0], p["mean.precision"], plates=k)
        return cv.Model(
            cv.Normal("x", mean[z], cv.Gamma("tau", p["tau.shape"], p["tau.rate"], plates=k)[z], plates=OBS)
        )

    numbers = {"w.concentration": 4.0, "mean.precision": 1.0, "tau.shape": 5.0, "tau.rate": 5.0}
    return Case(state, numbers, {}, {"x": x}, {})


def chain() -> Case:
    """Return a hidden Markov chain of two states."""
    rng = np.random.default_rng(2)
    x = np.repeat(rng.integers(0, 2, 20), 6) * 2.0 - 1.0 + rng.normal(size=120)

    def state(p: Mapping[str, Any]) -> cv.Model:
        k = cv.Plate("k", 2)
        transition = cv.Dirichlet("transition", np.full((2, 2), p["transition.concentration"]), plates=k)
        s = cv.MarkovChain("s", np.full(2, 0.5), transition, along=OBS)
        tau = cv.Gamma("tau", p["tau.shape"], p["tau.rate"])
        mean = cv.Normal("mean", [-1.0, 1.0], p["mean.precision"], plates=k)
        return cv.Model(cv.Normal("x", mean[s], tau, plates=OBS))

    numbers = {"transition.concentration": 2.0, "mean.precision": 2.0, "tau.shape": 5.0, "tau.rate": 5.0}
    return Case(state, numbers, {}, {"x": x}, {})


CASES: Mapping[str, Callable[[], Case]] = {
    "a level and groups": lambda: groups(None),
    "a level and groups, apart": lambda: groups(None, apart=True),
    "probit with groups": lambda: groups(cv.probit),
    "logistic with groups": lambda: groups(cv.logistic),
    "mixture": mixture,
    "hidden Markov": chain,
}


def print_sensitivity() -> None:
    """Print the table of sensitivities beside refits."""
    print("| model | numbers | largest change, sd | largest difference, sd | s, response | s, refits |")
    print("|---|---|---|---|---|---|")
    for name, make in CASES.items():
        case, settled = make(), {"tol": 1e-13, "max_iter": 20_000, "uncertainty": "mean_field"}
        start = time.process_time()
        fit = case.state(case.numbers).fit(case.data, seed=0, **settled, **case.arguments)
        response = fit.linear_response(case.data)
        slopes = {own: response.sensitivity(own) for own in fit}
        sds = {own: response.sd(own) for own in fit}
        seconds, start = time.process_time() - start, time.process_time()
        largest = off = 0.0
        for number, value in case.numbers.items():
            size = case.steps.get(number, 0.1 * value)
            ends = []
            for sign in (1.0, -1.0):
                moved = {**case.numbers, number: value + sign * _SHARE * 10.0 * size}
                init = {own: fit[own] for own in fit}
                again = case.state(moved).fit(case.data, init=init, **settled, **case.arguments)
                ends.append({own: again[own].mean for own in again})
            for own in fit:
                by_fits = (ends[0][own] - ends[1][own]) / (20.0 * _SHARE * size)
                # a prior stated by one number has a slope for each place where it counts
                told = slopes[own][number]
                told = told.sum(axis=tuple(range(told.ndim - np.ndim(fit[own].mean))))
                largest = max(largest, float(np.max(np.abs(told * size / sds[own]))))
                off = max(off, float(np.max(np.abs((told - by_fits) * size / sds[own]))))
        told = f"{largest:.3f} | {off:.1e} | {seconds:.2f} | {time.process_time() - start:.2f}"
        print(f"| {name} | {len(case.numbers)} | {told} |", flush=True)


def print_saddles() -> None:
    """Print the table of saddles."""
    print(
        "| columns, components | coordinates | Lanczos | matrix | s, Lanczos | s, matrix | ELBO below, nats |"
    )
    print("|---|---|---|---|---|---|---|")
    for n_columns, n_components, n in (
        (1, 2, 500),
        (3, 2, 500),
        (4, 5, 2_000),
        (8, 6, 2_000),
        (12, 8, 4_000),
    ):
        rng = np.random.default_rng(n_columns)
        means = 3.0 * rng.normal(size=(n_components, n_columns))
        x = means[rng.integers(0, n_components, n)] + rng.normal(size=(n, n_columns))
        model, data = cv.models.gaussian_mixture(n_columns, n_components), {"x": x}
        whole = np.linalg.inv(np.atleast_2d(np.cov(x.T)))
        init = {
            "mean": np.tile(x.mean(axis=0), (n_components, 1)),
            "precision": np.tile(whole, (n_components, 1, 1)),
        }
        equal = model.fit(data, init=init, tol=0.0, max_iter=8, uncertainty="mean_field")
        end = model.fit(data, init=init, uncertainty="mean_field")
        operator: Any = equal.linear_response(data)._response._operator
        start = time.process_time()
        by_steps = Iterated(operator).smallest_eigenvalue
        middle = time.process_time()
        matrix = operator.matrix()
        by_matrix = 1.0 - float(np.linalg.eigvalsh(0.5 * (matrix + matrix.T))[-1])
        seconds = middle - start, time.process_time() - middle
        print(
            f"| {n_columns}, {n_components} | {operator.size} | {by_steps:.4f} | {by_matrix:.4f} | {seconds[0]:.2f} | "
            f"{seconds[1]:.2f} | {end.elbo - equal.elbo:.0f} |",
            flush=True,
        )


def print_cost() -> None:
    """Print the table of the cost."""
    print("| data set | iterations | s, fit | s, response | ratio |\n|---|---|---|---|---|")
    for seed in range(5):
        rng = np.random.default_rng(seed)
        means = 3.0 * rng.normal(size=(8, 4))
        data = {"x": means[rng.integers(0, 8, 100_000)] + rng.normal(size=(100_000, 4))}
        model, turns, n_iter = cv.models.gaussian_mixture(4, 8), [], 0
        for _ in range(6):
            start = time.process_time()
            fit = model.fit(data, seed=seed, uncertainty="mean_field")
            middle, n_iter = time.process_time(), fit.n_iter
            response = fit.linear_response(data)
            for name in fit:
                response.sd(name)
            turns.append((middle - start, time.process_time() - middle))
        # the first turn imports and compiles
        of_fit, own = np.array(turns[1:]).T
        told = f"{np.median(of_fit):.3f} | {np.median(own):.3f} | {np.median(own / of_fit):.3f}"
        print(f"| {seed} | {n_iter} | {told} |", flush=True)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", choices=("sensitivity", "saddles", "cost"))
    only = parser.parse_args().only
    warnings.simplefilter("ignore", cv.ConvergenceWarning)
    tables = {"sensitivity": print_sensitivity, "saddles": print_saddles, "cost": print_cost}
    for name, table in tables.items():
        if only in (None, name):
            table()


if __name__ == "__main__":
    main()
