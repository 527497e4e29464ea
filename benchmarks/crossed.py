"""Crossed effects: what a sweep costs beside reading the labels, and how it grows with the rows.

    OMP_NUM_THREADS=1 python benchmarks/crossed.py [--data DIR] [--sweeps 20] [--threads 1]

``y ~ x + (1|s) + (1|d) + (1|dept)``, three known label arrays in one predictor, with a Normal and with a logistic leaf. A
sweep updates every global factor once, and the ELBO after each; its time is the difference of two fits. Beside it the
time of one ``np.bincount`` for each factor: the labels are read once. ``DIR/glmm/insteval.csv.gz`` is the table InstEval
of the R package lme4, 73,421 rows; the others are simulated with ten rows a level.
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


def model_of(leaf: str, sizes: Mapping[str, int]) -> cv.Model:
    """Return the model with a Normal or a Bernoulli leaf."""
    obs = cv.Plate("obs")
    mean = cv.Normal("intercept", 0.0, 0.01) + cv.Normal("slope", 0.0, 0.01) * cv.Data("x", plates=obs)
    for name in LABELS:
        precision = cv.Gamma(f"precision_{name}", 1.0, 1.0)
        effect = cv.Normal(f"effect_{name}", 0.0, precision, plates=cv.Plate(name, sizes[name]))
        mean = mean + effect[cv.Data(name, plates=obs)]
    if leaf == "Normal":
        return cv.Model(cv.Normal("y", mean, cv.Gamma("precision", 1.0, 1.0), plates=obs))
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
    data = {name: rng.integers(0, size, n_rows) for name, size in sizes.items()}
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


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Time sweeps over crossed effects.")
    parser.add_argument("--data", type=Path, help="folder with glmm/insteval.csv.gz")
    parser.add_argument("--sweeps", type=int, default=20)
    parser.add_argument("--threads", type=int, default=1)
    asked = parser.parse_args()

    rng = np.random.default_rng(0)
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
    print(
        f"largest memory of the process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB"
    )


if __name__ == "__main__":
    main()
