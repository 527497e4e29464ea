"""How a pass scales with rows, components and threads, and how many passes the incremental schedule takes.

    python benchmarks/scaling.py [--parts rows,components,threads,schedules] [--data DIR] [--repeats 5]

``rows``: a pass at 1e4 to 1e7 rows of 8 columns in memory, and the exponent of seconds in rows, by least squares on
logarithms: what it costs, in seconds of the processor with one thread, and how long it takes with all threads.
``components``: the former with 4 to 512 components. ``threads``: a pass at (200000, 16, 32) with one thread and with
two. ``schedules``: passes until the ELBO is that of batch ascent without acceleration at its end, from the same starts,
on bundled tables and, with DIR, on flow_cytometry_itn.npz and covertype.npz. Times are the best of alternating
repeats; ratios are what to compare between machines.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from one_pass import make_data, our_pass

import caviar as cv
from caviar.engine.rows.row_map import RowMap

ROWS = (10_000, 100_000, 1_000_000, 10_000_000)
COMPONENTS = (4, 8, 16, 32, 64, 128, 256, 512)


def best(repeats: int, *passes: tuple[Callable[[], object], RowMap]) -> list[tuple[float, float]]:
    """Return the least seconds of each of several passes in alternating repeats, on the clock and of the processor."""
    found = [(np.inf, np.inf)] * len(passes)
    for _ in range(repeats):
        for number, (one, of) in enumerate(passes):
            with of.executor.session():
                one()
                clock, processor = time.perf_counter(), time.process_time()
                one()
                taken = time.perf_counter() - clock, time.process_time() - processor
            found[number] = min(found[number][0], taken[0]), min(found[number][1], taken[1])
    return found


def exponent(sizes: tuple[int, ...], seconds: list[float]) -> float:
    """Return the slope of log seconds in log size."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def rows(repeats: int) -> None:
    """Print seconds and their exponent in the number of rows."""
    print("\nrows, 8 columns, 16 components: nanoseconds a row")
    print("      rows  one thread, of the processor  all threads, on the clock")
    found = []
    X, centres = make_data(ROWS[-1], 8, 16)
    for n_rows in ROWS:
        # small tables take more repeats, for they are over in a moment
        passes = (our_pass(X[:n_rows], centres, threads) for threads in (1, None))
        (_, one), (all_threads, _) = best(repeats * max(1, 300_000 // n_rows), *passes)
        found.append((one, all_threads))
        print(f"{n_rows:10,} {1e9 * one / n_rows:29.1f} {1e9 * all_threads / n_rows:26.1f}", flush=True)
    ones, alls = ([pair[number] for pair in found] for number in (0, 1))
    print(f"  exponent {exponent(ROWS, ones):29.3f} {exponent(ROWS, alls):26.3f}")


def components(repeats: int) -> None:
    """Print seconds and their exponent in the number of components."""
    print(
        "\ncomponents, 100,000 rows, 8 columns: nanoseconds of the processor a row and component, one thread"
    )
    times = []
    for n_components in COMPONENTS:
        X, centres = make_data(100_000, 8, n_components)
        ((_, seconds),) = best(repeats, our_pass(X, centres, 1))
        times.append(seconds)
        print(f"{n_components:10} {1e9 * seconds / (100_000 * n_components):9.2f}", flush=True)
    # beside what each component takes, a row takes something of its own
    print(
        f"  exponent {exponent(COMPONENTS, times):9.3f}, from 16 on {exponent(COMPONENTS[2:], times[2:]):.3f}"
    )


def threads(repeats: int) -> None:
    """Print how much faster two threads are."""
    X, centres = make_data(200_000, 16, 32)
    (one, _), (two, _) = best(2 * repeats, our_pass(X, centres, 1), our_pass(X, centres, 2))
    print(f"\n(200000, 16, 32): one thread {one:.4f} s, two {two:.4f} s: {one / two:.2f}x")


def tables(folder: Path | None) -> Iterator[tuple[str, np.ndarray, int]]:
    """Yield the tables: name, standardised rows, components."""
    yield "Old Faithful", cv.datasets.load_faithful().values, 5
    yield "galaxies", cv.datasets.load_galaxies().values, 4
    if folder is not None:
        with np.load(folder / "flow_cytometry_itn.npz") as file:
            yield "flow cytometry", file["X"][:, :7].astype(float), 16
        with np.load(folder / "covertype.npz") as file:
            yield "covertype", file["X"].astype(float), 30


def schedules(folder: Path | None) -> None:
    """Print passes to the ELBO that batch ascent ends with."""
    print("\npasses to the ELBO of batch ascent without acceleration (at most 60 iterations)")
    print(
        f"{'table':>15} {'start':>7} {'batch':>6} {'incremental':>12} {'not ahead':>10}  ELBO gained at the end"
    )
    for name, X, n_components in tables(folder):
        X = (X - X.mean(axis=0)) / X.std(axis=0)
        model = cv.models.normal_wishart_mixture(X.shape[1], n_components)
        labels = np.random.default_rng(1).integers(0, n_components, len(X))
        starts: tuple[tuple[str, dict[str, Any]], ...] = (("data", {}), ("chance", {"init": {"z": labels}}))
        for start, arguments in starts:
            arguments |= {"seed": 0, "max_iter": 60, "tol": 1e-6}
            batch = model.fit({"x": X}, schedule="batch", accelerate=False, **arguments)
            ahead = model.fit({"x": X}, schedule=cv.Incremental(32), **arguments)
            plain = model.fit({"x": X}, schedule=cv.Incremental(32), accelerate=False, **arguments)
            print(
                f"{name:>15} {start:>7} {batch.n_iter:6} {passes_to(ahead, batch.elbo):>12} "
                f"{passes_to(plain, batch.elbo):>10}  {ahead.elbo - batch.elbo:10.2f}",
                flush=True,
            )


def passes_to(posterior: cv.Posterior, elbo: float) -> str:
    """Return the first pass with this ELBO; a hair below counts, for ends agree to ``tol`` only."""
    reached = np.flatnonzero(posterior.elbo_trace >= elbo - 1e-6 * abs(elbo))
    return str(reached[0]) if len(reached) else "other end"


def main() -> None:
    """Print the tables that were asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--parts", default="rows,components,threads,schedules")
    parser.add_argument("--data", type=Path, default=None)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for part in options.parts.split(","):
        if part == "schedules":
            schedules(options.data)
        else:
            {"rows": rows, "components": components, "threads": threads}[part](options.repeats)


if __name__ == "__main__":
    main()
