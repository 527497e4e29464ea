"""A Bayesian Gaussian mixture fitted from memory and from disk: D = 8, K = 16, the same iterations to the bit.

Each source is fitted in a process of its own, which reports the median time of an iteration, the time of the whole
fit (all that is read and copied before it included) and its peak resident memory beyond what Python and the libraries
take; in memory the rows themselves are not counted. Files are in the page cache. On a machine with other
work, the processor time of an iteration tells more than the clock::

    python benchmarks/from_disk.py [--rows 1000000 4000000] [--threads 2] [--iterations 12] [--repeats 3]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import caviar as cv

D, K = 8, 16
SOURCES = {
    "memory": "an array",
    "memory map": "np.load(..., mmap_mode='r')",
    "Parquet": "scan(..., copy=False): row groups decoded in each pass",
    "Parquet plain": "the same, of files written without dictionaries",
    "Parquet copied": "scan(...): decoded once, read from a raw copy",
}


def write_files(folder: Path, n_rows: int) -> None:
    """Write rows of a mixture to the files, no more than a row group of them at a time in memory."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    centres = 2.0 * rng.standard_normal((K, D))
    names = [f"x{j}" for j in range(D)]
    schema = pa.schema([(name, pa.float64()) for name in names])
    whole = np.lib.format.open_memmap(folder / "x.npy", mode="w+", dtype=np.float64, shape=(n_rows, D))
    with (
        pq.ParquetWriter(folder / "x.parquet", schema) as coded,
        pq.ParquetWriter(folder / "plain.parquet", schema, use_dictionary=False) as plain,
    ):
        for start in range(0, n_rows, 131_072):
            size = min(131_072, n_rows - start)
            rows = centres[rng.integers(K, size=size)] + rng.standard_normal((size, D))
            whole[start : start + size] = rows
            for writer in (coded, plain):
                writer.write_table(pa.table(dict(zip(names, rows.T, strict=True)), schema=schema))


def resident(field: str) -> float:
    """Return a figure of this process's memory in MiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) / 1024


def source_of(name: str, folder: Path) -> Any:
    """Return what is fitted."""
    if name.startswith("memory"):
        return np.load(folder / "x.npy", mmap_mode="r" if name == "memory map" else None)
    if name == "Parquet copied":
        return cv.scan(folder / "x.parquet", directory=folder)
    return cv.scan(folder / ("plain.parquet" if name == "Parquet plain" else "x.parquet"), copy=False)


def fit(name: str, folder: Path, n_threads: int, n_iterations: int) -> dict[str, float]:
    """Fit one source in this process and return what it took."""
    warnings.simplefilter("ignore")
    warm = np.random.default_rng(0).standard_normal((1_000, D))
    cv.BayesianGaussianMixture(2, random_state=0, max_iter=2, n_jobs=n_threads).fit(warm)
    cv.scan(folder / "plain.parquet")
    base = resident("VmRSS")
    times: list[tuple[float, float]] = []
    begin = time.perf_counter()
    X = source_of(name, folder)
    estimator = cv.BayesianGaussianMixture(
        K,
        random_state=0,
        max_iter=n_iterations,
        tol=0,
        n_jobs=n_threads,
        verbose=lambda _: times.append((time.perf_counter(), time.process_time())),
    ).fit(X)
    whole = time.perf_counter() - begin
    own = X.nbytes / 2**20 if name == "memory" else 0.0
    return {
        "iteration": float(np.median(np.diff(times, axis=0)[:, 0])),
        "cpu": float(np.median(np.diff(times, axis=0)[:, 1])),
        "fit": whole,
        "peak": resident("VmHWM") - base - own,
        "elbo": estimator.elbo_,
    }


def best_of(name: str, folder: Path, arguments: argparse.Namespace) -> dict[str, float]:
    """Return the best of several processes, of each figure."""
    command = [sys.executable, __file__, "--source", name, "--folder", str(folder)]
    command += ["--threads", str(arguments.threads), "--iterations", str(arguments.iterations)]
    runs = [json.loads(subprocess.check_output(command)) for _ in range(arguments.repeats)]
    return {figure: min(run[figure] for run in runs) for figure in runs[0]}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 4_000_000])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--iterations", type=int, default=12)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--source", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.source:
        print(json.dumps(fit(arguments.source, arguments.folder, arguments.threads, arguments.iterations)))
        return
    for name, meaning in SOURCES.items():
        print(f"{name:<15} {meaning}")
    heading = f"{'rows':>10}  {'source':<15} {'s/iteration':>11} {'ratio':>6} {'CPU s':>6} {'ratio':>6} "
    print(f"\n{heading}{'s/fit':>7} {'ratio':>6} {'peak MiB':>9}")
    for n_rows in arguments.rows:
        with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
            folder = Path(name)
            write_files(folder, n_rows)
            memory: dict[str, float] = {}
            for source in SOURCES:
                found = best_of(source, folder, arguments)
                memory = memory or found
                if found["elbo"] != memory["elbo"]:
                    raise SystemExit(f"{source}: ELBO {found['elbo']!r}, in memory {memory['elbo']!r}")
                print(
                    f"{n_rows:>10,}  {source:<15} {found['iteration']:>11.3f} "
                    f"{memory['iteration'] / found['iteration']:>6.2f} {found['cpu']:>6.3f} "
                    f"{memory['cpu'] / found['cpu']:>6.2f} {found['fit']:>7.2f} "
                    f"{memory['fit'] / found['fit']:>6.2f} {found['peak']:>9.0f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
