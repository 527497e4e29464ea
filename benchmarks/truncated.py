"""Few responsibilities a row beside all of them, and beside the two bare matrix products of a dense pass.

Both fits begin at the same labels: of each row the nearest of K centres that ten steps of k-means over some rows leave,
or with ``--far`` of K rows taken at random. They make the same number of
passes, without moves beyond the updates; the one with few responsibilities ends with one look that has all. Times are
processor time of one thread, so a busy machine changes the ratios little.

    python benchmarks/truncated.py --data DIR [--components 256 1000] [--responsibilities 8 16] [--passes 40]
    python benchmarks/truncated.py --data DIR --whole [--components 1000] [--rows 150000]

A line has the passes in NumPy, or in compiled loops where numba is installed. With ``--whole`` a line is a default fit:
the time of the start, and until 0.01 nats a row below the dense optimum, to which passes with all responsibilities
lead from its end; all times in units of the two bare products.

DIR has ``flow_cytometry_itn.npz`` and ``covertype.npz``; without it the rows are simulated.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np

import caviar as cv
from caviar.engine.rows.truncated import truncated_rows

KERNELS = {"numpy": lambda: False, "compiled": truncated_rows.can_compile}
"""Whether loops are compiled, by the name of the way."""

BLOCK = 1728
"""Rows of a block of the bare products."""

DENSE = 12
"""Passes with all responsibilities after which a fit that ends with few counts as at its dense optimum."""

PASSES = (
    "table               K    L   kernel  seed       bare  median pass  bare/pass  bare/shortest  bare/mean  "
    "whole fit  nats a row below dense"
)
WHOLE = (
    "table                 rows    K  seed       bare    start  reached  passes    whole        end    dense"
)


def tables(folder: Path | None, seed: int) -> dict[str, np.ndarray]:
    """Return the tables by name, their columns in units of their standard deviations."""
    rng = np.random.default_rng(seed)
    if folder is None:
        centres = rng.normal(size=(400, 6))
        return {"simulated": 3 * centres[rng.integers(0, 400, 100_000)] + rng.normal(size=(100_000, 6))}
    found = {}
    for name in ("flow_cytometry_itn", "covertype"):
        X = np.load(folder / f"{name}.npz")["X"].astype(np.float64)
        found[name] = rng.permutation((X - X.mean(axis=0)) / X.std(axis=0))
    return found


def bare_products(n_rows: int, n_components: int, n_features: int) -> float:
    """Return the processor time (s) of the two products of a dense pass, in blocks: W T, and R T'."""
    rng = np.random.default_rng(0)
    matrix, features = rng.normal(size=(n_components, n_features)), rng.normal(size=(n_features, BLOCK))
    shares, sums = np.empty((n_components, BLOCK)), np.empty((n_features, n_components))
    times = []
    for _ in range(3):
        start = time.process_time()
        for _ in range(0, n_rows, BLOCK):
            np.matmul(matrix, features, out=shares)
            np.matmul(features, shares.T, out=sums)
        times.append(time.process_time() - start)
    return min(times)


def nearest(X: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Return of each row the nearest point."""
    half = 0.5 * (points**2).sum(axis=1)
    blocks = (X[start : start + BLOCK] for start in range(0, len(X), BLOCK))
    return np.concatenate([np.argmin(half - own @ points.T, axis=1) for own in blocks])


def labels_of(X: np.ndarray, n_components: int, seed: int, n_steps: int) -> np.ndarray:
    """Return of each row the nearest of some rows, after some steps of k-means over 20 rows for each of these."""
    some = np.random.default_rng(seed).permutation(X)[: 20 * n_components]
    points = some[:n_components].copy()
    for _ in range(n_steps):
        labels = nearest(some, points)
        counts = np.bincount(labels, minlength=n_components)
        sums = np.stack([np.bincount(labels, column, n_components) for column in some.T], axis=1)
        points = np.where(counts[:, None] > 0, sums / np.maximum(counts, 1)[:, None], points)
    return nearest(X, points)


def passes_of(
    X: np.ndarray, labels: np.ndarray, n: int, responsibilities: int | str
) -> tuple[cv.Posterior, np.ndarray, float]:
    """Return a fit of so many passes, the processor time of each, and of all."""
    model = cv.models.normal_wishart_mixture(X.shape[1], int(labels.max()) + 1)
    ticks: list[float] = []
    start = time.process_time()
    posterior = model.fit(
        {"x": X},
        init={"z": labels},
        schedule="batch",
        accelerate=False,
        max_iter=n,
        tol=0.0,
        executor=1,
        responsibilities=responsibilities,
        uncertainty="mean_field",
        progress=lambda event: ticks.append(time.process_time()),
    )
    return posterior, np.diff(ticks), time.process_time() - start


def whole(X: np.ndarray, n_components: int, seed: int, bare: float, most: int) -> str:
    """Return where a default fit is when, in units of the bare products."""
    model = cv.models.normal_wishart_mixture(X.shape[1], n_components)
    trace: list[tuple[float, float]] = []
    start = time.process_time()

    def note(event: cv.Progress) -> None:
        trace.append((time.process_time() - start, event.elbo))

    fit = model.fit({"x": X}, max_iter=most, executor=1, seed=seed, uncertainty="mean_field", progress=note)
    trace.append((time.process_time() - start, fit.elbo))
    init = {name: fit[name] for name in ("weights", "theta")}
    dense = model.fit({"x": X}, init=init, responsibilities="all", max_iter=DENSE, executor=1)
    enough = dense.elbo - 0.01 * len(X)
    reached = next((seconds for seconds, elbo in trace if elbo >= enough), np.inf)
    n_passes = sum(elbo < enough for _, elbo in trace)
    return (
        f"{trace[0][0] / bare:8.1f} {reached / bare:8.1f} {n_passes:7} {trace[-1][0] / bare:8.1f} "
        f"{fit.elbo / len(X):10.4f} {dense.elbo / len(X):10.4f}"
    )


def compare(X: np.ndarray, name: str, n_components: int, seed: int, arguments: argparse.Namespace) -> None:
    """Print a line for all responsibilities, and for each number of few ones in NumPy and compiled."""
    labels = labels_of(X, n_components, seed, 0 if arguments.far else 10)
    n_components = int(labels.max()) + 1
    bare = bare_products(len(X), n_components, 1 + X.shape[1] * (X.shape[1] + 3) // 2)
    dense: float | None = None
    ways = [("all", "dense"), *((few, kernel) for few in arguments.responsibilities for kernel in KERNELS)]
    for few, kernel in ways:
        truncated_rows.can_compile = KERNELS.get(kernel, KERNELS["compiled"])
        posterior, times, whole_fit = passes_of(X, labels, arguments.passes, few)
        dense = posterior.elbo / len(X) if dense is None else dense
        print(
            f"{name:18} {n_components:4} {few:>4} {kernel:>8} {seed:5} {bare:8.3f} s {np.median(times):11.4f} s "
            f"{bare / np.median(times):9.2f} {bare / times.min():14.2f} {bare / times.mean():10.2f} {whole_fit:8.1f} s "
            f"{dense - posterior.elbo / len(X):12.5f}",
            flush=True,
        )


def main() -> None:
    """Print a table for each data set."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--components", type=int, nargs="+", default=[256, 1000])
    parser.add_argument("--responsibilities", type=int, nargs="+", default=[8, 16])
    parser.add_argument("--passes", type=int, default=40)
    parser.add_argument("--rows", type=int, help="only so many rows of each table")
    parser.add_argument("--tables", nargs="+", help="only these tables")
    parser.add_argument("--far", action="store_true")
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", cv.CaviarWarning)
    print(WHOLE if arguments.whole else PASSES)
    # what a first call loads is not timed
    few_rows, labels = np.random.default_rng(0).normal(size=(1000, 2)), np.arange(1000) % 20
    passes_of(few_rows, labels, 9, 4)
    for seed in arguments.seeds:
        for name, every in tables(arguments.data, seed).items():
            X = every[: arguments.rows]
            for n_components in arguments.components if name in (arguments.tables or [name]) else ():
                if not arguments.whole:
                    compare(X, name, n_components, seed, arguments)
                    continue
                bare = bare_products(len(X), n_components, 1 + X.shape[1] * (X.shape[1] + 3) // 2)
                line = whole(X, n_components, seed, bare, 2 * arguments.passes)
                print(f"{name:18} {len(X):7} {n_components:4} {seed:5} {bare:8.3f} s {line}", flush=True)


if __name__ == "__main__":
    main()
