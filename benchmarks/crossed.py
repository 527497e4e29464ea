"""Crossed effects: what a sweep costs beside reading the labels, and how it grows with the rows.

    OMP_NUM_THREADS=1 python benchmarks/crossed.py [--data DIR] [--sweeps 20] [--threads 1] [--only sweeps|shared]

``y ~ x + (1|s) + (1|d) + (1|dept)``, three known label arrays in one predictor, with a Normal and with a logistic
leaf. A sweep updates every global factor once, and the ELBO after each; its time is the difference of two fits. Beside
it the time of one ``np.bincount`` for each factor: the labels are read once. ``DIR/glmm/insteval.csv.gz`` is the table
InstEval of the R package lme4, 73,421 rows; the others are simulated with ten rows a level.

Then what one factor for the level and all effects changes (``factors=``): with known variances the bound beside the
exact evidence, the sweeps that it takes, and the variance of the level beside the exact one; and InstEval beside the
figures of lme4 1.1-31, ``y ~ service + (1|s) + (1|d) + (1|dept)`` by maximum likelihood, and ``y >= 4`` as a binomial
(Laplace). The seconds are of one processor.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np

import caviar as cv

LABELS = ("s", "d", "dept")


def model_of(leaf: str, sizes: Mapping[str, int], shape: float = 1.0) -> cv.Model:
    """Return the model with a Normal or a Bernoulli leaf; precisions have the prior Gamma(shape, shape)."""
    obs = cv.Plate("obs")
    mean = cv.Normal("intercept", 0.0, 0.01) + cv.Normal("slope", 0.0, 0.01) * cv.Data("x", plates=obs)
    for name in LABELS:
        precision = cv.Gamma(f"precision_{name}", shape, shape)
        effect = cv.Normal(f"effect_{name}", 0.0, precision, plates=cv.Plate(name, sizes[name]))
        mean = mean + effect[cv.Data(name, plates=obs)]
    if leaf == "Normal":
        return cv.Model(cv.Normal("y", mean, cv.Gamma("precision", shape, shape), plates=obs))
    return cv.Model(cv.Bernoulli("y", cv.logistic(mean), plates=obs))


def insteval(folder: Path) -> dict[str, np.ndarray]:
    """Return the columns of InstEval: labels from 0, the covariate and the grade."""
    import pandas as pd

    table = pd.read_csv(folder / "glmm" / "insteval.csv.gz")
    labels = {name: pd.factorize(table[name], sort=True)[0] for name in LABELS}
    return {**labels, "x": table["service"].to_numpy(float), "y": table["y"].to_numpy(float)}


def simulated(n_rows: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return rows with about ten of each level of ``s`` and twenty of ``d``."""
    sizes = {"s": n_rows // 10, "d": n_rows // 20, "dept": 14}
    data: dict[str, np.ndarray] = {name: rng.integers(0, size, n_rows) for name, size in sizes.items()}
    data["x"] = rng.standard_normal(n_rows)
    effects = sum(0.5 * rng.standard_normal(size)[data[name]] for name, size in sizes.items())
    data["y"] = 3.0 + 0.2 * data["x"] + effects + rng.standard_normal(n_rows)
    return data


def seconds_of_a_sweep(model: cv.Model, data: Mapping[str, np.ndarray], n_sweeps: int, threads: int) -> float:
    """Return the seconds of one sweep: those of a long fit less those of a short one."""
    ends = []
    for iterations in (2, 2 + n_sweeps):
        start = time.perf_counter()
        model.fit(data, max_iter=iterations, tol=0.0, init="prior", accelerate=False, executor=threads)
        ends.append(time.perf_counter() - start)
    return (ends[1] - ends[0]) / n_sweeps


def seconds_of_reading(data: Mapping[str, np.ndarray], repeats: int = 20) -> float:
    """Return the seconds of one ``np.bincount`` for each factor."""
    start = time.perf_counter()
    for _ in range(repeats):
        for name in LABELS:
            np.bincount(data[name], data["y"])
        np.bincount(np.zeros(len(data["x"]), dtype=np.intp), data["x"])
    return (time.perf_counter() - start) / repeats


def of_crossed(n_rows: int, sizes: tuple[int, int], rng: np.random.Generator) -> None:
    """Print the bound with factors apart and shared beside the evidence, of crossed effects with known variances."""
    first, second = sizes
    obs = cv.Plate("obs")
    mu = cv.Normal("mu", 0.0, 0.01)
    a = cv.Normal("a", 0.0, 1.0, plates=cv.Plate("first", first))
    b = cv.Normal("b", 0.0, 1.0, plates=cv.Plate("second", second))
    predictor = mu + a[cv.Data("i", plates=obs)] + b[cv.Data("j", plates=obs)]
    model = cv.Model(cv.Normal("y", predictor, 1.0, plates=obs))
    i, j = rng.integers(0, first, n_rows), rng.integers(0, second, n_rows)
    y = 2.0 + rng.standard_normal(first)[i] + rng.standard_normal(second)[j] + rng.standard_normal(n_rows)
    data = {"y": y, "i": i, "j": j}
    evidence, variance = exact(data, sizes)
    print(f"{first} x {second} levels, {n_rows:,} rows, exact evidence {evidence:.4f}")
    for title, groups, most in (("apart", [], 500), ("shared", [("mu", "a", "b")], 30)):
        start = time.process_time()
        found = model.fit(
            data, seed=0, init="prior", factors=groups, max_iter=most, tol=1e-9, accelerate=False
        )
        print(
            f"  {title:<8}{found.n_iter:>5} sweeps{time.process_time() - start:>7.2f} s   "
            f"short of the evidence {evidence - found.elbo:>12.6f}   var(mu) / exact "
            f"{float(found['mu'].variance) / variance:.4f}"
        )


def exact(data: Mapping[str, np.ndarray], sizes: tuple[int, int]) -> tuple[float, float]:
    """Return log p(y) and the posterior variance of the level, by a dense precision of all unknowns."""
    n_rows, n_unknown = len(data["y"]), 1 + sum(sizes)
    places = np.stack([np.zeros(n_rows, dtype=int), 1 + data["i"], 1 + sizes[0] + data["j"]], axis=1)
    precision, linear = np.diag([0.01] + [1.0] * sum(sizes)), np.zeros(n_unknown)
    prior = np.log(np.diagonal(precision)).sum()
    for own in places.T:
        linear += np.bincount(own, data["y"], minlength=n_unknown)
        for other in places.T:
            np.add.at(precision, (own, other), 1.0)
    covariance = np.linalg.inv(precision)
    quadratic = float(data["y"] @ data["y"] - linear @ covariance @ linear)
    log_determinant = np.linalg.slogdet(precision)[1] - prior
    return -0.5 * (quadratic + log_determinant + n_rows * np.log(2 * np.pi)), float(covariance[0, 0])


LME4 = {
    "Normal": ((3.282581, 0.028408), (-0.092589, 0.013383)),
    "Bernoulli": ((-0.159716, 0.043375), (-0.139858, 0.024150)),
}
"""Intercept and coefficient of ``service``, with standard errors."""


def of_insteval(data: Mapping[str, np.ndarray], threads: int) -> None:
    """Print fixed effects beside those of lme4, with one factor for all effects."""
    sizes = {name: int(data[name].max()) + 1 for name in LABELS}
    effects = ("intercept", "slope", *(f"effect_{name}" for name in LABELS))
    for leaf, figures in LME4.items():
        own = {**data, "y": (data["y"] >= 4).astype(int)} if leaf == "Bernoulli" else data
        start, wall = time.process_time(), time.perf_counter()
        found = model_of(leaf, sizes, 1e-3).fit(own, seed=0, factors=[effects], executor=threads)
        took, wall = time.process_time() - start, time.perf_counter() - wall
        print(
            f"InstEval, {leaf}: {found.n_iter} sweeps, {took:.1f} s of processor, {wall:.1f} s, ELBO {found.elbo:.2f}"
        )
        for name, (estimate, error) in zip(("intercept", "slope"), figures, strict=True):
            mean, sd = float(found[name].mean), float(found[name].variance) ** 0.5
            print(
                f"  {name:<10}{mean:>10.5f} (sd {sd:.5f})   lme4 {estimate:>10.5f} ({error:.5f})   "
                f"{abs(mean - estimate) / error:.3f} standard errors apart"
            )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Time sweeps over crossed effects.")
    parser.add_argument("--data", type=Path, help="folder with glmm/insteval.csv.gz")
    parser.add_argument("--sweeps", type=int, default=20)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", choices=("sweeps", "shared"))
    asked = parser.parse_args()

    rng = np.random.default_rng(0)
    if asked.only != "sweeps":
        of_crossed(3_000, (300, 200), rng)
        if asked.data is not None:
            of_insteval(insteval(asked.data), asked.threads)
    if asked.only != "shared":
        of_sweeps(asked, rng)
    print(
        f"largest memory of the process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB"
    )


def of_sweeps(asked: argparse.Namespace, rng: np.random.Generator) -> None:
    """Print the table of seconds a sweep."""
    tables = {} if asked.data is None else {"InstEval": insteval(asked.data)}
    for n_rows in (10_000, 100_000, 1_000_000):
        tables[f"simulated, {n_rows:,}"] = simulated(n_rows, rng)
    print(
        f"{'rows of':<22}{'leaf':<10}{'levels':>16}{'bincounts ms':>14}{'sweep ms':>10}{'ratio':>7}{'ns a row':>10}"
    )
    for title, data in tables.items():
        sizes = {name: int(data[name].max()) + 1 for name in LABELS}
        for leaf in ("Normal", "Bernoulli"):
            own = {**data, "y": (data["y"] >= 4).astype(int)} if leaf == "Bernoulli" else data
            reading = seconds_of_reading(data)
            sweep = seconds_of_a_sweep(model_of(leaf, sizes), own, asked.sweeps, asked.threads)
            levels = "/".join(map(str, sizes.values()))
            print(
                f"{title:<22}{leaf:<10}{levels:>16}{1e3 * reading:>14.2f}{1e3 * sweep:>10.2f}"
                f"{sweep / reading:>7.1f}{1e9 * sweep / len(data['x']):>10.0f}"
            )


if __name__ == "__main__":
    main()
