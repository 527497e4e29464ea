"""Two labels of a row that choose a cell of one table, ``B[z, v]``: a pass beside its bare matrix products.

Rows have a value whose mean and precision are those of the cell (or an answer with six categories), and two more
columns, one for each label. Labels share a factor over all K x L cells, or have a factor each. Bare are, in blocks and
with one thread: for a joint factor the two products with the cells, W T and R T'; for factors apart the three of each
feature: the message to each label, and the sums over the cells. "With exp" adds the exponential of each natural
parameter, K L or K + L of them.

Times are processor time of one thread. The first pass of a fit, from unknown labels, takes several sweeps where the
factors are apart.

    python benchmarks/labels_that_meet.py [--rows 100000 1000000 2000000] [--cells 5 8] [--max-iter 100]
"""

from __future__ import annotations

import argparse
import resource
import time
import warnings
from typing import Any

import numpy as np

import caviar as cv
from caviar.execution.threads import Threads

N_ANSWERS = 6
BLOCK = 6_000
"""Rows of a block of the bare products."""

HEADER = (
    "    rows  cells       factors     bare  with exp  median pass  over bare  over both  longest  passes     start  "
    "whole fit  ELBO a row  memory (MB)"
)


class Timed(Threads):
    """One thread that notes how long each pass over many rows takes."""

    def __init__(self, n_rows: int) -> None:
        super().__init__(1)
        self.n_rows, self.passes, self.first, self.n_passes = n_rows, [], None, 0.0

    def sum(self, work: Any, source: Any, chunks: Any, carried: Any) -> Any:
        """Return the sums of a pass, and note its time."""
        start = time.process_time()
        found = super().sum(work, source, chunks, carried)
        n_rows = sum(stop - start for chunk in chunks for start, stop in chunk.bounds)
        if source.n_rows == self.n_rows and type(work).__name__ == "InferBlocks":
            self.first = start if self.first is None else self.first
            # a schedule may look at some of the rows at a time
            self.passes.append((time.process_time() - start) * self.n_rows / n_rows)
            self.n_passes += n_rows / self.n_rows
        return found


def simulated(n_rows: int, cells: tuple[int, int], kind: str) -> dict[str, np.ndarray]:
    """Return rows whose labels are told by a column each, and by the value or answer of their cell."""
    rng = np.random.default_rng(0)
    z, v = (rng.integers(0, size, n_rows) for size in cells)
    mean, width = rng.normal(0, 4, cells), rng.uniform(0.5, 1.5, cells)
    shares = rng.dirichlet(np.full(N_ANSWERS, 0.5), cells)
    found = {
        name: np.linspace(-1.2 * size, 1.2 * size, size)[own] + rng.normal(size=n_rows)
        for name, own, size in (("a", z, cells[0]), ("b", v, cells[1]))
    }
    if kind == "Gaussian":
        return {**found, "x": mean[z, v] + width[z, v] * rng.normal(size=n_rows)}
    before = shares.cumsum(axis=-1)[..., :-1]
    return {**found, "x": (before[z, v] < rng.random(n_rows)[:, None]).sum(axis=1)}


def stated(cells: tuple[int, int], kind: str) -> cv.Model:
    """Return the model of these rows."""
    obs = cv.Plate("obs")
    of_z, of_v = (cv.Plate(name, size) for name, size in zip(("of z", "of v"), cells, strict=True))
    z = cv.Categorical("z", cv.Dirichlet("pz", np.ones(cells[0])), plates=obs)
    v = cv.Categorical("v", cv.Dirichlet("pv", np.ones(cells[1])), plates=obs)
    columns = [
        cv.Normal("a", cv.Normal("mean of a", 0, 0.01, plates=of_z)[z], 1.0, plates=obs),
        cv.Normal("b", cv.Normal("mean of b", 0, 0.01, plates=of_v)[v], 1.0, plates=obs),
    ]
    if kind == "Gaussian":
        mean = cv.Normal("mean", 0, 0.01, plates=(of_z, of_v))
        precision = cv.Gamma("precision", 1, 1, plates=(of_z, of_v))
        return cv.Model(*columns, cv.Normal("x", mean[z, v], precision[z, v], plates=obs))
    table = cv.Dirichlet("table", np.ones(N_ANSWERS), plates=(of_z, of_v))
    return cv.Model(*columns, cv.Categorical("x", table[z, v], plates=obs))


def bare_products(n_rows: int, cells: tuple[int, int], kind: str, factors: str) -> tuple[float, float]:
    """Return the processor time (s) of the matrix products of one pass, and of its exponentials."""
    rng = np.random.default_rng(0)
    one, other = (rng.random((size, BLOCK)) for size in cells)
    table, shares = rng.random(cells), rng.random((cells[0] * cells[1], BLOCK))
    n_features = 1 + 2 + 2 * (kind == "Gaussian") + N_ANSWERS * (kind != "Gaussian")
    matrix, features = rng.random((len(shares), n_features)), rng.random((n_features, BLOCK))
    # rows with one answer are multiplied with its cells alone
    n_apart = 3 if kind == "Gaussian" else 1
    times = {"products": [], "exponentials": []}
    for _ in range(3):
        start = time.process_time()
        for _ in range(0, n_rows, BLOCK):
            if factors == "joint":
                _ = matrix @ features, shares @ features.T
                continue
            for _ in range(n_apart):
                _ = table @ other, table.T @ one, one @ other.T
        middle = time.process_time()
        for _ in range(0, n_rows, BLOCK):
            for logits in (shares,) if factors == "joint" else (one, other):
                np.exp(logits, out=logits)
                logits[...] = 0.5
        times["products"].append(middle - start)
        times["exponentials"].append(time.process_time() - middle)
    return min(times["products"]), min(times["exponentials"])


def line(n_rows: int, cells: tuple[int, int], kind: str, factors: str, max_iter: int) -> str:
    """Return a line of the table."""
    data, executor = simulated(n_rows, cells, kind), Timed(n_rows)
    joined: dict[str, Any] = {"factors": []} if factors == "apart" else {}
    start = time.process_time()
    posterior = stated(cells, kind).fit(data, seed=0, max_iter=max_iter, executor=executor, **joined)
    whole, passes = time.process_time() - start, executor.passes
    bare, exponentials = bare_products(n_rows, cells, kind, factors)
    memory, median = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, np.median(passes)
    return (
        f"{n_rows:8d}  {kind:11s} {factors:7s} {bare:6.3f} s {bare + exponentials:7.3f} s {median:10.3f} s "
        f"{median / bare:10.1f} {median / (bare + exponentials):10.1f} {max(passes):6.2f} s {executor.n_passes:7.0f} "
        f"{(executor.first or start) - start:7.2f} s {whole:8.1f} s {posterior.elbo / n_rows:11.5f} {memory:12d}"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000, 2_000_000])
    parser.add_argument("--cells", type=int, nargs=2, default=(5, 8))
    parser.add_argument("--kinds", nargs="+", default=["Gaussian", "categorical"])
    parser.add_argument("--max-iter", type=int, default=100)
    given = parser.parse_args()
    print(HEADER)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cv.ConvergenceWarning)
        for n_rows in given.rows:
            for kind in given.kinds:
                for factors in ("joint", "apart"):
                    print(line(n_rows, tuple(given.cells), kind, factors, given.max_iter), flush=True)


if __name__ == "__main__":
    main()
