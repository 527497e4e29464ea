"""Small tables: fits, predictions, a small model and the import, beside scikit-learn and BayesPy.

    OMP_NUM_THREADS=1 python benchmarks/small.py [--repeats 50] [--tables 1000]

Old Faithful (272 x 2), two components, one start, the defaults of each. What is compared alternates in one process
after one run that is not counted: medians of processor time, for a machine is rarely idle. Many tables are groups of
200 rows with two clusters each, fitted one after the other. The model of ten variables is stated, compiled and swept
once; it is left out where BayesPy, of the extra ``bench``, is not installed. Imports run in fresh processes.
"""

from __future__ import annotations

import argparse
import importlib.util
import subprocess
import sys
import time
import warnings
from collections.abc import Callable

import numpy as np

import caviar as cv


def seconds(function: Callable[[int], object], seed: int) -> float:
    """Return the seconds of processor time that one run takes."""
    start = time.process_time()
    function(seed)
    return time.process_time() - start


def import_seconds(statement: str, repeats: int = 7) -> float:
    """Return the least seconds that an import takes in a fresh interpreter."""
    code = f"import time; t = time.perf_counter(); {statement}; print(time.perf_counter() - t)"
    runs = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        for _ in range(repeats)
    ]
    return min(float(run.stdout) for run in runs)


def alternating(
    ours: Callable[[int], object], theirs: Callable[[int], object], repeats: int
) -> tuple[list[float], list[float]]:
    """Return the seconds of runs in turn, after one of each that is not counted."""
    runs = [(seconds(ours, number), seconds(theirs, number)) for number in range(repeats + 1)]
    first, second = zip(*runs[1:], strict=True)
    return list(first), list(second)


def tell(name: str, ours: list[float], theirs: list[float]) -> None:
    """Print a line: least and median milliseconds of each, and the ratio of the medians."""
    ratio = np.median(ours) / np.median(theirs)
    each = "   ".join(f"{1e3 * min(own):8.2f} {1e3 * np.median(own):8.2f}" for own in (ours, theirs))
    print(f"{name:44} {each}   {ratio:6.2f}")


def fits_and_predictions(repeats: int) -> None:
    """Print whole fits of Old Faithful, and what a fitted mixture says of its rows and of one of them."""
    from sklearn import mixture

    X = cv.datasets.load_faithful().values
    for name in ("BayesianGaussianMixture", "GaussianMixture"):
        stated, known = getattr(cv, name), getattr(mixture, name)
        tell(
            f"{name}: fit",
            *alternating(
                lambda seed, stated=stated: stated(2, random_state=seed).fit(X),
                lambda seed, known=known: known(n_components=2, random_state=seed).fit(X),
                repeats,
            ),
        )
        fitted = [stated(2, random_state=0).fit(X), known(n_components=2, random_state=0).fit(X)]
        for method, rows in (("predict", X[:1]), ("predict_proba", X[:1]), ("score_samples", X)):
            calls = [getattr(one, method) for one in fitted]
            tell(
                f"{name}: {method}, {len(rows)} row{'s' * (len(rows) > 1)}",
                *alternating(
                    lambda _, rows=rows, call=calls[0]: call(rows),
                    lambda _, rows=rows, call=calls[1]: call(rows),
                    10 * repeats,
                ),
            )


def many_tables(n_tables: int) -> None:
    """Print fits of many tables of 200 rows, of which each is a fit of its own."""
    from sklearn import mixture

    rng = np.random.default_rng(0)
    tables = rng.normal(size=(n_tables + 1, 200, 2)) * rng.uniform(0.5, 2.0, (n_tables + 1, 1, 2))
    tables[:, :80] += rng.uniform(2.0, 6.0, (n_tables + 1, 1, 2))
    for name in ("BayesianGaussianMixture", "GaussianMixture"):
        stated, known = getattr(cv, name), getattr(mixture, name)
        ours, theirs = alternating(
            lambda number, stated=stated: stated(2, random_state=0).fit(tables[number]),
            lambda number, known=known: known(n_components=2, random_state=0).fit(tables[number]),
            n_tables,
        )
        tell(f"{name}: each of {n_tables:,} tables", ours, theirs)


def ten_variables(repeats: int) -> None:
    """Print a model of ten variables on 100 rows, stated, compiled and swept once, beside BayesPy."""
    if importlib.util.find_spec("bayespy") is None:
        print("(the model of ten variables: BayesPy is not installed)")
        return
    from models import small

    ours, theirs = small(np.random.default_rng(0))
    tell(
        "ten variables, one sweep (BayesPy)",
        *alternating(lambda _: ours()(1), lambda _: theirs()(1), repeats),
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Time small tables.")
    parser.add_argument("--repeats", type=int, default=50)
    parser.add_argument("--tables", type=int, default=1000)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    print(
        "milliseconds of processor time, of runs that alternate: caviar, scikit-learn, and the ratio of the medians\n"
    )
    print(f"{'':44} {'least':>8} {'median':>8}   {'least':>8} {'median':>8}   {'ratio':>6}")
    fits_and_predictions(arguments.repeats)
    ten_variables(arguments.repeats)
    many_tables(arguments.tables)
    ours, theirs = import_seconds("import caviar"), import_seconds("import sklearn.mixture")
    print(
        f"\nimport caviar {1e3 * ours:.1f} ms, import sklearn.mixture {1e3 * theirs:.0f} ms: ratio {ours / theirs:.4f}"
    )


if __name__ == "__main__":
    main()
