"""Penguins with missing values: a mixture that is fitted to what was measured, and fills in what was not.

A third of all measurements are erased. No row is dropped and no hole is filled before the fit: the entries that are
missing are integrated out, given the others of their row. Afterwards ``impute`` gives their expected values, which are
held here against those that were erased.

    python examples/penguins_missing.py
"""

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import caviar as cv

COLUMNS = ("bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--pictures", type=Path, default=Path(__file__).parent / "pictures")
    arguments.add_argument("--small", action="store_true", help="a single start")
    options = arguments.parse_args()

    penguins = cv.datasets.load_penguins()
    X = np.column_stack([penguins.column(name) for name in COLUMNS])
    species = penguins.column("species").astype(int)
    erased = np.random.default_rng(0).random(X.shape) < 0.33
    holes = np.where(erased, np.nan, X)
    print(
        f"{np.isnan(holes).mean():.0%} of the entries are missing; "
        f"{(~np.isnan(holes).any(axis=1)).sum()} of {len(X)} birds are complete"
    )

    mixture = cv.BayesianGaussianMixture(3, n_init=1 if options.small else 10, random_state=0).fit(holes)
    filled = mixture.impute(holes)

    print("\nroot mean square error of what was erased")
    print(f"{'':18} {'column mean':>12} {'imputed':>9}")
    for j, name in enumerate(COLUMNS):
        rows = erased[:, j] & ~np.isnan(X[:, j])
        by_mean = np.sqrt(np.mean((X[rows, j] - np.nanmean(holes[:, j])) ** 2))
        by_model = np.sqrt(np.mean((X[rows, j] - filled[rows, j]) ** 2))
        print(f"{name:18} {by_mean:12.2f} {by_model:9.2f}")

    label = mixture.predict(holes)
    table = np.array([[np.sum((label == k) & (species == s)) for s in range(3)] for k in range(3)])
    print("\ncomponents against species, which the model was not told")
    print("  ".join(f"{name:>9}" for name in penguins.categories["species"]))
    for row in table:
        print("  ".join(f"{count:9}" for count in row))

    plt.style.use("caviar.plot.caviar")
    figure, axes = plt.subplots(figsize=(7.2, 4))
    both = ~erased[:, [0, 2]].any(axis=1)
    for k in range(3):
        rows = both & (label == k)
        axes.scatter(X[rows, 2], X[rows, 0], s=14, color=f"C{k}", label=f"component {k}")
    some = np.flatnonzero(erased[:, [0, 2]].any(axis=1) & ~np.isnan(X[:, [0, 2]]).any(axis=1))
    axes.plot(
        *np.stack([X[some], filled[some]])[:, :, [2, 0]].transpose(2, 0, 1), color="0.75", lw=0.7, zorder=0
    )
    axes.scatter(
        filled[some, 2],
        filled[some, 0],
        s=16,
        facecolor="white",
        edgecolor="0.3",
        lw=0.8,
        label="imputed (a line leads to the truth)",
    )
    axes.set(xlabel="length of the flipper (mm)", ylabel="length of the bill (mm)")
    axes.legend(loc="lower right")
    figure.savefig(options.pictures / "penguins_missing.png")


if __name__ == "__main__":
    main()
