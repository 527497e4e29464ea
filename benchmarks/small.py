"""A whole fit of a small table, and the import, beside scikit-learn's.

Old Faithful (272 x 2), two components, one start, the defaults of each. Fits alternate in one process after one
that is not counted; imports run in fresh processes::

    python benchmarks/small.py [--repeats 50]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
import warnings
from collections.abc import Callable

import numpy as np

import caviar as cv


def seconds(function: Callable[[int], object], seed: int) -> float:
    """Return the seconds that one fit takes."""
    start = time.perf_counter()
    function(seed)
    return time.perf_counter() - start


def import_seconds(statement: str, repeats: int = 7) -> float:
    """Return the least seconds that an import takes in a fresh interpreter."""
    code = f"import time; t = time.perf_counter(); {statement}; print(time.perf_counter() - t)"
    runs = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        for _ in range(repeats)
    ]
    return min(float(run.stdout) for run in runs)


def main() -> None:
    """Print the two tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=50)
    repeats = parser.parse_args().repeats
    warnings.simplefilter("ignore")
    from sklearn import mixture

    X = cv.datasets.load_faithful().values
    fits: dict[str, Callable[[int], object]] = {
        "caviar BayesianGaussianMixture": lambda s: cv.BayesianGaussianMixture(2, random_state=s).fit(X),
        "sklearn BayesianGaussianMixture": lambda s: mixture.BayesianGaussianMixture(
            n_components=2, random_state=s
        ).fit(X),
        "caviar GaussianMixture": lambda s: cv.GaussianMixture(2, random_state=s).fit(X),
        "sklearn GaussianMixture": lambda s: mixture.GaussianMixture(2, random_state=s).fit(X),
    }
    times: dict[str, list[float]] = {name: [] for name in fits}
    for seed in range(repeats + 1):
        for name, fit in fits.items():
            elapsed = seconds(fit, seed)
            if seed:
                times[name].append(elapsed)
    print(f"a whole fit of Old Faithful, K = 2, {repeats} alternating fits, milliseconds\n")
    print(f"{'':34} {'least':>7} {'median':>7}")
    for name, values in times.items():
        print(f"{name:34} {1e3 * min(values):7.2f} {1e3 * np.median(values):7.2f}")
    for name in ("BayesianGaussianMixture", "GaussianMixture"):
        ratio = np.median(times[f"caviar {name}"]) / np.median(times[f"sklearn {name}"])
        print(f"{name}: caviar / scikit-learn, medians: {ratio:.2f}")
    ours, theirs = import_seconds("import caviar"), import_seconds("import sklearn.mixture")
    print(
        f"\nimport caviar {1e3 * ours:.1f} ms, import sklearn.mixture {1e3 * theirs:.0f} ms: ratio {ours / theirs:.4f}"
    )


if __name__ == "__main__":
    main()
