"""Few responsibilities a row beside all of them, and beside the two bare matrix products of a dense pass.

Both fits begin at the same labels: of each row the nearest of K centres that ten steps of k-means over some rows leave,
or with ``--far`` of K rows taken at random. They make the same number of
passes, without moves beyond the updates; the one with few responsibilities ends with one look that has all. Times are
processor time of one thread, so a busy machine changes the ratios little.

    python benchmarks/truncated.py --data DIR [--components 256 1000] [--responsibilities 8 16] [--passes 40]
    python benchmarks/truncated.py --data DIR --only loss [--components 256 1000] [--responsibilities 8] [--rows 30000]
    python benchmarks/truncated.py --data DIR --only whole [--components 1000] [--rows 150000]
    python benchmarks/truncated.py --data DIR --only scikit-learn [--components 256] [--passes 100]

A line has the passes in NumPy, or in compiled loops where numba is installed. The bare products are made
after every few passes, so that both meet the same load. With ``--only loss`` a line has by how much fits of as many
iterations from the same labels end below plain ones with all responsibilities: with moves beyond the updates, as fits
make by default, and with few responsibilities without and with such moves. With ``--only whole`` a line is a default
fit: the time of the start, and until 0.01 nats a row below the dense optimum, to which passes with all responsibilities
lead from its end; all times in units of the two bare products. With ``--only scikit-learn`` it is a default fit until
it has the ELBO at which scikit-learn's mixture with the same prior ends. The start and three iterations of scikit-learn
are timed, and its other iterations are counted: our passes with all responsibilities make the same updates from the
same labels, until the bound changes by less than its ``tol`` (0.001), or for ``--passes`` iterations (by default 100).
With ``--threads 2`` both have two threads, and times are those of the clock.

DIR has ``flow_cytometry_itn.npz`` and ``covertype.npz``; without it the rows are simulated.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import caviar as cv
from caviar.engine.rows.truncated import truncated_rows

PLAIN: dict[str, Any] = {
    "schedule": "batch",
    "accelerate": False,
    "tol": 0.0,
    "executor": 1,
    "uncertainty": "mean_field",
}
"""Of a fit that makes as many plain passes as are asked for, on one thread."""

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
LOSS = "table                K    L  seed  dense a row  below it: dense, with moves      few  few, with moves"
WHOLE = (
    "table                 rows    K  seed       bare    start  reached  passes    whole        end    dense"
)
PEER = (
    "table                 rows    K  seed  an iteration  iterations    its fit  its ELBO a row  "
    "ours until then  ratio  our end"
)
TOL = 1e-3
"""Change of its bound at which scikit-learn's mixture ends."""

ITERATIONS = 3
"""Iterations of scikit-learn that are timed."""

BETWEEN = 3
"""Passes between two times that the bare products are made."""


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


class Bare:
    """The two products of a dense pass in blocks, W T and R T', and the processor time (s) that they have taken."""

    def __init__(self, n_rows: int, n_components: int, n_features: int) -> None:
        rng = np.random.default_rng(0)
        self._n_rows, self.times = n_rows, list[float]()
        self._matrix, self._features = (
            rng.normal(size=(n_components, n_features)),
            rng.normal(size=(n_features, BLOCK)),
        )
        self._shares, self._sums = np.empty((n_components, BLOCK)), np.empty((n_features, n_components))

    def make(self) -> None:
        """Make them once."""
        start = time.process_time()
        for _ in range(0, self._n_rows, BLOCK):
            np.matmul(self._matrix, self._features, out=self._shares)
            np.matmul(self._features, self._shares.T, out=self._sums)
        self.times.append(time.process_time() - start)

    @classmethod
    def of(cls, X: np.ndarray, n_components: int) -> Bare:
        """Return those for a table."""
        return cls(len(X), n_components, 1 + X.shape[1] * (X.shape[1] + 3) // 2)

    def least(self) -> float:
        """Return the shortest time of three."""
        for _ in range(3):
            self.make()
        return min(self.times)


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
    X: np.ndarray,
    labels: np.ndarray,
    n: int,
    responsibilities: int | str,
    bare: Bare | None = None,
    accelerate: bool = False,
) -> tuple[cv.Posterior, np.ndarray, float]:
    """Return a fit of so many passes, and the processor time of each, and of all, without the bare products between."""
    model = cv.models.normal_wishart_mixture(X.shape[1], int(labels.max()) + 1)
    ticks, between = list[float](), [0.0]

    def note(event: cv.Progress) -> None:
        ticks.append(time.process_time() - between[0])
        if bare is not None and not len(ticks) % BETWEEN:
            bare.make()
            between[0] += bare.times[-1]

    start = time.process_time()
    posterior = model.fit(
        {"x": X},
        init={"z": labels},
        max_iter=n,
        responsibilities=responsibilities,
        **{**PLAIN, "accelerate": accelerate},
        progress=note,
    )
    return posterior, np.diff(ticks), time.process_time() - start - between[0]


def whole(X: np.ndarray, n_components: int, seed: int, most: int) -> str:
    """Return where a default fit is when, in units of the bare products."""
    bare = Bare.of(X, n_components).least()
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
        f"{bare:8.3f} s {trace[0][0] / bare:8.1f} {reached / bare:8.1f} {n_passes:7} {trace[-1][0] / bare:8.1f} "
        f"{fit.elbo / len(X):10.4f} {dense.elbo / len(X):10.4f}"
    )


def beside_scikit(X: np.ndarray, n_components: int, seed: int, most: int, n_threads: int) -> str:
    """Return how long scikit-learn takes for its fit, and a default fit until it has the same ELBO.

    With one thread each that is processor time, with more the time on the clock.
    """
    clock = time.process_time if n_threads == 1 else time.perf_counter
    size, n_rows = X.shape[1], len(X)
    prior = {"concentration": 1 / n_components, "mean_precision": 1.0, "df": size}
    moments = {"prior_mean": X.mean(axis=0), "inverse_scale": np.cov(X.T)}
    model = cv.models.normal_wishart_mixture(size, n_components, **prior, **moments)
    labels, first, an_iteration = timed_scikit(X, n_components, seed, n_threads, clock)
    trace = dense_trace(model, X, labels, most)
    small = np.flatnonzero(np.abs(np.diff(trace)) < TOL)
    n_iter = min(int(small[0]) + 2 if len(small) else most, most)
    its_fit, enough = first + n_iter * an_iteration, trace[n_iter - 1]
    found: list[tuple[float, float]] = []
    start = clock()

    def note(event: cv.Progress) -> None:
        found.append((clock() - start, event.elbo))

    fit = model.fit(
        {"x": X}, seed=seed, max_iter=most, executor=n_threads, uncertainty="mean_field", progress=note
    )
    found.append((clock() - start, fit.elbo))
    reached = next((seconds for seconds, elbo in found if elbo >= enough), np.inf)
    return (
        f"{an_iteration:11.2f} s {n_iter:11} {its_fit:8.1f} s {enough / n_rows:15.4f} {reached:14.2f} s "
        f"{its_fit / reached:6.0f} {fit.elbo / n_rows:8.4f}"
    )


def timed_scikit(
    X: np.ndarray, n_components: int, seed: int, n_threads: int, clock: Callable[[], float]
) -> tuple[np.ndarray, float, float]:
    """Return the labels that scikit-learn's mixture begins at, and the time (s) of its start and of an iteration."""
    from sklearn.mixture import BayesianGaussianMixture
    from threadpoolctl import threadpool_limits

    times, given = [], []
    for n_iter in (1, 1 + ITERATIONS):
        mixture = BayesianGaussianMixture(
            n_components=n_components,
            weight_concentration_prior_type="dirichlet_distribution",
            max_iter=n_iter,
            tol=0.0,
            random_state=seed,
        )
        initialize = mixture._initialize
        mixture._initialize = lambda X, resp, own=initialize: given.append(resp) or own(X, resp)
        with threadpool_limits(n_threads):
            start = clock()
            mixture.fit(X)
            times.append(clock() - start)
    an_iteration = (times[1] - times[0]) / ITERATIONS
    return given[0].argmax(axis=1), times[0] - an_iteration, an_iteration


def dense_trace(model: cv.Model, X: np.ndarray, labels: np.ndarray, n: int) -> np.ndarray:
    """Return the ELBO after each of so many iterations with all responsibilities from labels."""
    trace: list[float] = []
    model.fit(
        {"x": X},
        init={"z": labels},
        max_iter=n,
        responsibilities="all",
        **PLAIN,
        progress=lambda event: trace.append(event.elbo),
    )
    return np.array(trace)


def compare(X: np.ndarray, name: str, n_components: int, seed: int, arguments: argparse.Namespace) -> None:
    """Print a line for all responsibilities, and for each number of few ones in NumPy and compiled."""
    labels = labels_of(X, n_components, seed, 0 if arguments.far else 10)
    n_components = int(labels.max()) + 1
    dense: float | None = None
    ways = [("all", "dense"), *((few, kernel) for few in arguments.responsibilities for kernel in KERNELS)]
    for few, kernel in ways:
        truncated_rows.can_compile = KERNELS.get(kernel, KERNELS["compiled"])
        bare = Bare.of(X, n_components)
        posterior, times, whole_fit = passes_of(X, labels, arguments.passes, few, bare)
        dense = posterior.elbo / len(X) if dense is None else dense
        own = np.median(bare.times)
        print(
            f"{name:18} {n_components:4} {few:>4} {kernel:>8} {seed:5} {own:8.3f} s {np.median(times):11.4f} s "
            f"{own / np.median(times):9.2f} {own / times.min():14.2f} {own / times.mean():10.2f} {whole_fit:8.1f} s "
            f"{dense - posterior.elbo / len(X):12.5f}",
            flush=True,
        )


def losses(X: np.ndarray, name: str, n_components: int, seed: int, arguments: argparse.Namespace) -> None:
    """Print a line for each number of responsibilities: by how much fits end below plain passes with all of them."""
    labels = labels_of(X, n_components, seed, 0 if arguments.far else 10)

    def ended(responsibilities: int | str, accelerate: bool) -> float:
        fit, _, _ = passes_of(X, labels, arguments.passes, responsibilities, accelerate=accelerate)
        return fit.elbo / len(X)

    plain, moved = ended("all", False), ended("all", True)
    for few in arguments.responsibilities:
        print(
            f"{name:18} {n_components:4} {few:>4} {seed:5} {plain:12.4f} {plain - moved:27.4f} "
            f"{plain - ended(few, False):8.4f} {plain - ended(few, True):16.4f}",
            flush=True,
        )


def main() -> None:
    """Print a table for each data set."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--components", type=int, nargs="+", default=[256, 1000])
    parser.add_argument("--responsibilities", type=int, nargs="+", default=[8, 16])
    parser.add_argument("--passes", type=int, help="40, or 80 of a whole fit, or 100 beside scikit-learn")
    parser.add_argument("--rows", type=int, help="only so many rows of each table")
    parser.add_argument("--tables", nargs="+", help="only these tables")
    parser.add_argument("--far", action="store_true")
    parser.add_argument("--only", choices=("passes", "loss", "whole", "scikit-learn"), default="passes")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--threads", type=int, default=1, help="of each, beside scikit-learn")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", cv.CaviarWarning)
    usual, title = USUAL[arguments.only]
    arguments.passes = arguments.passes or usual
    print(title)
    # what a first call loads is not timed
    few_rows, labels = np.random.default_rng(0).normal(size=(1000, 2)), np.arange(1000) % 20
    passes_of(few_rows, labels, 9, 4)
    for seed in arguments.seeds:
        for name, every in tables(arguments.data, seed).items():
            X = every[: arguments.rows]
            for n_components in arguments.components if name in (arguments.tables or [name]) else ():
                if arguments.only in TABLES:
                    TABLES[arguments.only](X, name, n_components, seed, arguments)
                    continue
                of = (
                    whole
                    if arguments.only == "whole"
                    else partial(beside_scikit, n_threads=arguments.threads)
                )
                line = of(X, n_components, seed, arguments.passes)
                print(f"{name:18} {len(X):7} {n_components:4} {seed:5} {line}", flush=True)


USUAL = {"passes": (40, PASSES), "loss": (40, LOSS), "whole": (80, WHOLE), "scikit-learn": (100, PEER)}
"""Passes and title of a table."""

TABLES = {"passes": compare, "loss": losses}
"""What prints the lines of a table and a seed."""

if __name__ == "__main__":
    main()
