"""How often fits of mixtures of many components end near the best optimum that is known, with and without swaps.

    python benchmarks/optima.py [--data DIR] [--seeds 5] [--starts 100] [--rows 2000] [--tables WORDS] [--tuning]

For each table: fits from ``--starts`` partitions by k-means of scikit-learn (one run of each, another seed each), and
from the true labels where the table is simulated; then, for each seed, the fit without swaps, with the defaults and
with ``swaps=True``. A fit reaches the best of the plain starts if it ends at most 0.01 nats a row
below the highest ELBO of these; the best known is the highest of all fits. Seconds are those of the processor on one
thread, of the whole fit; ratios are to the fit without swaps of the same table, sums over the seeds.

Six tables are bundled or simulated here; the others need ``--data`` with the files named below. Of tables with more
rows than ``--rows``, so many are drawn at random. ``--tuning`` takes other tables, for trying settings of swaps.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

import caviar as cv

NEAR = 0.01
SETTINGS = {"swaps=False": {"swaps": False}, "default": {}, "swaps=True": {"swaps": True}}


@dataclass(frozen=True)
class Table:
    """Rows, the number of components, and true labels where the rows are simulated."""

    name: str
    rows: np.ndarray
    n_components: int
    labels: np.ndarray | None = None


@dataclass(frozen=True)
class End:
    """What one fit came to."""

    elbo: float
    seconds: float


def clusters(
    n_rows: int, n_columns: int, n_clusters: int, spread: float, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of Gaussian clusters of unequal sizes and shapes, whose centres are ``spread`` apart, and labels."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(n_clusters, n_rows, p=rng.dirichlet(np.full(n_clusters, 5.0)))
    centres = spread * rng.normal(size=(n_clusters, n_columns))
    shapes = rng.normal(size=(n_clusters, n_columns, n_columns)) / np.sqrt(n_columns) + 0.5 * np.eye(
        n_columns
    )
    noise = rng.normal(size=(n_rows, n_columns))
    return centres[labels] + np.einsum("nij,nj->ni", shapes[labels], noise), labels


def drawn(rows: np.ndarray, n_rows: int, seed: int) -> np.ndarray:
    """Return so many rows at random, or all."""
    order = np.random.default_rng(seed).permutation(len(rows))[:n_rows]
    return np.asarray(rows[np.sort(order)], dtype=float)


def tables(folder: Path | None, n_rows: int, tuning: bool) -> list[Table]:
    """Return the ten tables, or others for trying settings."""
    if tuning:
        simulated, labels = clusters(n_rows, 2, 16, 6.0, 1)
        found = [Table("simulated, 2 columns", simulated, 16, labels)]
        found.append(Table("Old Faithful", cv.datasets.load_faithful().values, 8))
        if folder:
            cells = np.load(folder / "flow_cytometry_itn.npz")["X"]
            found.append(Table("cytometry, K = 16", drawn(cells, n_rows, 1), 16))
            found.append(
                Table("covertype, K = 16", drawn(np.load(folder / "covertype.npz")["X"], n_rows, 1), 16)
            )
        return found
    found = []
    for columns, k, spread, seed in ((2, 24, 8.0, 2), (5, 20, 2.5, 3), (10, 12, 1.5, 4)):
        simulated, labels = clusters(n_rows, columns, k, spread, seed)
        found.append(Table(f"simulated, {columns} columns", simulated, k, labels))
    found.append(Table("penguins", _penguins(), 8))
    found.append(Table("motion capture", _motion(), 12))
    if folder:
        cells = np.load(folder / "flow_cytometry_itn.npz")["X"]
        found.append(Table("cytometry, K = 8", drawn(cells, n_rows, 2), 8))
        found.append(Table("cytometry, K = 24", drawn(cells, n_rows, 3), 24))
        forest = np.load(folder / "covertype.npz")["X"]
        found.append(Table("covertype, K = 8", drawn(forest, n_rows, 2), 8))
        found.append(Table("covertype, 3 columns", drawn(forest[:, :3], n_rows, 3), 12))
    found.append(Table("galaxies", cv.datasets.load_galaxies().values, 8))
    return found


def _penguins() -> np.ndarray:
    table = cv.datasets.load_penguins()
    found = table.values[:, [name not in (*table.categories, "year") for name in table.columns]]
    return found[np.isfinite(found).all(axis=1)]


def _motion() -> np.ndarray:
    table = cv.datasets.load_motion_capture()
    return table.values[:, [i for i, own in enumerate(table.columns) if "." in own]]


def fitted(table: Table, seed: int, **arguments: object) -> End:
    """Return the end of a fit by the estimator."""
    begun = time.process_time()
    mixture = cv.BayesianGaussianMixture(
        table.n_components, random_state=seed, n_jobs=1, uncertainty="mean_field", **arguments
    ).fit(table.rows)
    return End(mixture.elbo_, time.process_time() - begun)


def best_of_plain_starts(table: Table, n_starts: int) -> tuple[float, float]:
    """Return the highest ELBO of fits from labels by k-means, and from the true ones; and the seconds of a start."""
    begun = time.process_time()
    model = _model(table)
    best = -np.inf
    units = (table.rows - table.rows.mean(axis=0)) / table.rows.std(axis=0)
    for seed in range(n_starts):
        labels = KMeans(table.n_components, n_init=1, random_state=seed).fit(units).labels_
        best = max(best, model(labels))
    seconds = (time.process_time() - begun) / max(n_starts, 1)
    return max(best, -np.inf if table.labels is None else model(table.labels)), seconds


def _model(table: Table) -> Callable[[np.ndarray], float]:
    """Return what fits the estimator's own model from labels, and returns the ELBO."""
    one = cv.BayesianGaussianMixture(table.n_components, random_state=0, max_iter=0, n_jobs=1).fit(table.rows)
    model = one.posterior_.model
    return lambda labels: (
        model.fit({"x": table.rows}, init={"z": labels}, executor=1, uncertainty="mean_field", seed=0).elbo
    )


def show(table: Table, n_starts: int, n_seeds: int) -> dict[str, tuple[int, int, float]]:
    """Print the rows of a table; return how many fits of each setting reach both bests, and their seconds."""
    plain, per_start = best_of_plain_starts(table, n_starts)
    ends = {name: [fitted(table, seed, **own) for seed in range(n_seeds)] for name, own in SETTINGS.items()}
    best = max(plain, *(end.elbo for own in ends.values() for end in own))
    n = len(table.rows)
    print(f"\n{table.name}: {n} x {table.rows.shape[1]}, K = {table.n_components}")
    print(
        f"  best known {best / n:.4f} nats a row; of {n_starts} plain starts {(plain - best) / n:+.4f}",
        end="",
    )
    print(f" ({per_start:.2f} s each)")
    found, usual = {}, sum(end.seconds for end in ends["swaps=False"])
    for name, own in ends.items():
        short = np.array([(best - end.elbo) / n for end in own])
        reached = int((short - (best - plain) / n <= NEAR).sum()), int((short <= NEAR).sum())
        seconds = sum(end.seconds for end in own)
        found[name] = *reached, seconds
        print(
            f"  {name:14} {reached[0]:3} of {n_seeds} reach the plain starts, {reached[1]:3} the best known   "
            f"median {np.median(short):.4f} below   {seconds / n_seeds:6.2f} s  {seconds / usual:5.1f}x",
            flush=True,
        )
    return found


def main() -> None:
    """Print all tables, and the share of fits that reach the best."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="folder with flow_cytometry_itn.npz and covertype.npz")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--starts", type=int, default=100)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--tables", default="", help="only tables with these words in their name")
    parser.add_argument("--tuning", action="store_true", help="other tables")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        found = [
            show(table, chosen.starts, chosen.seeds)
            for table in tables(chosen.data, chosen.rows, chosen.tuning)
            if chosen.tables in table.name
        ]
    print("\nall tables")
    for name in SETTINGS if found else ():
        plain, known = (
            sum(own[name][which] for own in found) / (chosen.seeds * len(found)) for which in (0, 1)
        )
        ratios = [own[name][2] / own["swaps=False"][2] for own in found]
        print(
            f"  {name:14} {plain:4.0%} reach the plain starts, {known:4.0%} the best known; "
            f"time {np.median(ratios):.1f}x (median), {max(ratios):.1f}x (most)"
        )


if __name__ == "__main__":
    main()
