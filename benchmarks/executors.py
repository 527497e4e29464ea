"""Seconds a pass over the rows on threads of this process and on workers of a Dask cluster of this machine.

    python benchmarks/executors.py                # 200,000 rows, 16 columns, 32 components
    python benchmarks/executors.py 1000000 16 32

A pass is one iteration without acceleration, its updates of the globals included; the quickest counts. "Up" are the
bytes of the coefficients that a pass sends to the workers, "down" those of the sums that come back, as pickles; "once"
are those of the model, which is sent before the first pass, as are the rows.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pickle
import sys
import time
import warnings
from typing import Any

import numpy as np

import caviar as cv
from caviar.execution import dask, on_worker
from caviar.execution.threads import Threads

N_PASSES = 12
ROUNDS = 4


class Counted:
    """What goes over the wire, counted where it is handed over."""

    def __init__(self) -> None:
        self.up = self.down = self.passes = self.once = 0
        self._order = dask._Cluster._try
        self._join = on_worker.join

    def __enter__(self) -> Counted:
        def attempt(cluster: Any, own: Any, placement: Any, chunks: Any) -> Any:
            addresses = {placement.at(chunk)[0] for chunk in chunks}
            self.up += len(pickle.dumps(own.task, protocol=5)) * len(addresses)
            self.once = len(pickle.dumps(own.shipped.model, protocol=5))
            self.passes += 1
            return self._order(cluster, own, placement, chunks)

        def join(n_chunks: int, several: Any) -> Any:
            self.down += sum(len(pickle.dumps(found, protocol=5)) for found in several)
            return self._join(n_chunks, several)

        self._put(attempt, join)
        return self

    def __exit__(self, *error: object) -> None:
        self._put(self._order, self._join)

    @staticmethod
    def _put(attempt: Any, join: Any) -> None:
        module: Any = dask
        module._Cluster._try, module.join = attempt, join


def seconds_a_pass(model: cv.Model, data: dict[str, np.ndarray], executor: Any) -> float:
    """Return the shortest time between two iterations."""
    times: list[float] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cv.CaviarWarning)
        model.fit(
            data,
            init="prior",
            max_iter=N_PASSES,
            tol=0.0,
            accelerate=False,
            executor=executor,
            progress=lambda told: times.append(time.perf_counter()),
        )
    return float(np.min(np.diff(times)))


def main() -> None:
    n, d, k = (int(argument) for argument in sys.argv[1:]) if len(sys.argv) > 1 else (200_000, 16, 32)
    rng = np.random.default_rng(0)
    rows = {"x": rng.normal(size=(n, d)) + 3 * rng.normal(size=(k, d))[rng.integers(k, size=n)]}
    model = cv.models.gaussian_mixture(d, k)
    executors: dict[str, Any] = {"threads 1": Threads(1), "threads 2": Threads(2)}
    held = [cv.DaskExecutor(n_workers=number) for number in (1, 2)]
    executors |= {f"Dask {own.n_workers}": own for own in held}
    with held[0], held[1]:
        found: dict[str, list[float]] = {name: [] for name in executors}
        for _ in range(ROUNDS):
            # alternately, so that what else runs on the machine meets all of them
            for name, executor in executors.items():
                found[name].append(seconds_a_pass(model, rows, executor))
        seconds = {name: min(several) for name, several in found.items()}
        traffic = {}
        for own in held:
            with Counted() as counted:
                seconds_a_pass(model, rows, own)
            traffic[f"Dask {own.n_workers}"] = counted
    print(f"{n} rows, {d} columns, {k} components: {rows['x'].nbytes / 1e6:.1f} MB of data")
    print(f"{'executor':10} {'ms a pass':>10} {'speed-up':>9} {'kB up':>8} {'kB down':>8} {'kB once':>8}")
    for name, own in seconds.items():
        base = seconds["threads 1" if name.startswith("threads") else "Dask 1"]
        line = f"{name:10} {1e3 * own:10.1f} {base / own:9.2f}"
        if name in traffic:
            counted = traffic[name]
            per_pass = [number / counted.passes / 1e3 for number in (counted.up, counted.down)]
            line += f" {per_pass[0]:8.1f} {per_pass[1]:8.1f} {counted.once / 1e3:8.1f}"
        print(line)


if __name__ == "__main__":
    main()
