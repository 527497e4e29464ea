"""Flow cytometry: populations of cells told apart by what lasers see of each cell, without gates drawn by hand.

A cytometer measures light scatter (size, granularity) and stains of many thousand cells. On the arcsinh scale
populations are about Gaussian, with shapes of their own, and their number is not known: ``n_components="auto"`` splits,
merges and deletes components while that raises the ELBO. Simulated blood stands for a file; a table of yours, CSV or
Parquet with a column for each channel, is read by

    python examples/flow_cytometry.py --data cells.csv --columns FSC,SSC,CD3,CD19
"""

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import caviar as cv

POPULATIONS = {  # share, mean and standard deviation on the arcsinh scale: FSC, SSC, CD3, CD19
    "T cells": (0.38, [5.6, 4.2, 5.5, 1.0], [0.15, 0.2, 0.35, 0.5]),
    "B cells": (0.12, [5.5, 4.1, 1.2, 5.0], [0.15, 0.2, 0.5, 0.4]),
    "NK cells": (0.10, [5.65, 4.4, 1.1, 0.9], [0.15, 0.2, 0.5, 0.45]),
    "monocytes": (0.15, [6.3, 5.4, 1.6, 1.5], [0.18, 0.22, 0.5, 0.5]),
    "granulocytes": (0.20, [6.4, 6.5, 1.3, 1.2], [0.16, 0.18, 0.5, 0.5]),
    "debris": (0.05, [4.3, 3.4, 1.0, 1.0], [0.4, 0.45, 0.6, 0.6]),
}


def simulated(n_cells: int) -> tuple[np.ndarray, np.ndarray]:
    """Return intensities as a machine records them, and the population of each cell."""
    rng = np.random.default_rng(0)
    population = rng.choice(len(POPULATIONS), n_cells, p=[share for share, _, _ in POPULATIONS.values()])
    _, mean, spread = (np.array(part) for part in zip(*POPULATIONS.values(), strict=True))
    noise = rng.normal(size=(n_cells, 4))
    noise[:, 1] = 0.6 * noise[:, 0] + 0.8 * noise[:, 1]  # large cells scatter more to the side, too
    return 150 * np.sinh(mean[population] + spread[population] * noise), population


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--pictures", type=Path, default=Path(__file__).parent / "pictures")
    arguments.add_argument("--small", action="store_true", help="2,000 cells instead of 40,000")
    arguments.add_argument("--data", help="a table of cells, instead of simulated ones")
    arguments.add_argument("--columns", default="FSC,SSC,CD3,CD19")
    options = arguments.parse_args()

    names = options.columns.split(",")
    if options.data:
        cells, population = cv.data.read_table(options.data, columns=names).values, None
    else:
        cells, population = simulated(2_000 if options.small else 40_000)
    X = np.arcsinh(cells / 150)

    mixture = cv.BayesianGaussianMixture("auto", random_state=0).fit(X)
    gate, certain = mixture.predict(X), mixture.predict_proba(X).max(axis=1)
    order = np.argsort(-mixture.weights_)
    print(
        f"{mixture.n_components_} populations; {np.mean(certain > 0.95):.0%} of the cells are told with 95% certainty\n"
    )
    print(
        f"{'':>2} {'share':>6}  "
        + "".join(f"{name:>7}" for name in names)
        + ("" if population is None else "  mostly")
    )
    for number, k in enumerate(order):
        line = f"{number:2} {mixture.weights_[k]:6.1%}  " + "".join(f"{m:7.2f}" for m in mixture.means_[k])
        if population is not None:
            counts = np.bincount(population[gate == k], minlength=len(POPULATIONS))
            line += f"  {list(POPULATIONS)[counts.argmax()]} ({counts.max() / max(counts.sum(), 1):.0%})"
        print(line)

    plt.style.use("caviar.plot.caviar")
    figure, axes = plt.subplots(1, 2, figsize=(7.2, 3.6))
    shown = np.random.default_rng(1).permutation(len(X))[:6000]
    for axis, (i, j) in zip(axes, ((0, 1), (len(names) - 2, len(names) - 1)), strict=True):
        for number, k in enumerate(order):
            rows = shown[gate[shown] == k]
            axis.scatter(X[rows, i], X[rows, j], s=2, alpha=0.5, color=f"C{number % 8}")
            axis.annotate(
                number,
                mixture.means_[k, [i, j]],
                ha="center",
                va="center",
                fontweight="bold",
                bbox={"boxstyle": "circle,pad=0.15", "fc": "white", "ec": "none", "alpha": 0.8},
            )
        axis.set(xlabel=f"{names[i]} (arcsinh)", ylabel=f"{names[j]} (arcsinh)")
    figure.savefig(options.pictures / "flow_cytometry.png")


if __name__ == "__main__":
    main()
