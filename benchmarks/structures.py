"""One pass over the rows for each covariance structure, beside what bounds it and beside scikit-learn's.

A pass is everything that touches rows: all local updates, all statistics, the local part of the ELBO. Its bounds are
the two matrix products of the structure's features (K x F by F x N, and K x N by N x F), and the exponentials of the
N x K responsibilities, which no structure can do without::

    python benchmarks/structures.py [--repeats 7] [--rows 200000] [--features 16] [--components 32]

Times are the best of alternating repeats in one process, on all cores.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from one_pass import make_data, seconds
from threadpoolctl import threadpool_limits

import caviar as cv
from caviar.engine.ascent.problem import statistics_of
from caviar.engine.rows.row_map import RowMap
from caviar.engine.starts.from_user import given_start

STRUCTURES = ("full", "tied", "diag", "spherical", "unit")


def our_pass(X: np.ndarray, n_components: int, structure: str) -> tuple[Callable[[], object], RowMap, int]:
    """Return a function that makes one pass, its passes, and the number of features of the label's product."""
    mixture = cv.BayesianGaussianMixture(n_components, covariance_type=structure, max_iter=1, random_state=0)
    posterior = mixture.fit(X[:20_000]).posterior_
    problem, row_map = posterior._evaluator.bind({"x": X})
    problem, q = given_start(problem, {name: posterior[name] for name in posterior}, row_map).start
    arrays = statistics_of(problem, q)
    (factor,) = problem.factors
    n_features = problem.compiled.tables[factor].n_rows
    return lambda: row_map.at(problem.rows).summary(problem.rows.coefficients(arrays)), row_map, n_features


def products(n_rows: int, n_components: int, n_features: int) -> Callable[[], object]:
    """Return the two bare matrix products."""
    rng = np.random.default_rng(1)
    W, T = rng.random((n_components, n_features)), rng.random((n_features, n_rows))
    R = rng.random((n_components, n_rows))
    L, S = np.empty((n_components, n_rows)), np.empty((n_components, n_features))

    def both() -> None:
        np.matmul(W, T, out=L)
        np.matmul(R, T.T, out=S)

    return both


def exponentials(n_rows: int, n_components: int, n_threads: int) -> Callable[[], object]:
    """Return the exponentials of the responsibilities, block by block on all threads."""
    logits = -np.random.default_rng(2).random((n_components, 4096))
    blocks = -(-n_rows // 4096)

    def share(number: int) -> None:
        out = np.empty_like(logits)
        for _ in range(number, blocks, n_threads):
            np.exp(logits, out=out)

    def all_blocks() -> None:
        with ThreadPoolExecutor(n_threads) as pool:
            list(pool.map(share, range(n_threads)))

    return all_blocks


def sklearn_steps(X: np.ndarray, n_components: int, structure: str) -> Callable[[], object] | None:
    """Return scikit-learn's E and M step; None for a structure that it does not have."""
    if structure == "unit":
        return None
    from sklearn.mixture import BayesianGaussianMixture

    mixture = BayesianGaussianMixture(
        n_components=n_components, covariance_type=structure, max_iter=1, init_params="random", random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mixture.fit(X)
    return lambda: mixture._m_step(X, mixture._e_step(X)[1])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--features", type=int, default=16)
    parser.add_argument("--components", type=int, default=32)
    options = parser.parse_args()
    n_threads = len(os.sched_getaffinity(0))
    shape = (options.rows, options.features, options.components)
    print(
        f"(N, D, K) = {shape}, best of {options.repeats} alternating repeats, {n_threads} threads, milliseconds\n"
    )
    print(
        f"{'':10} {'F':>4} {'caviar':>7} {'products':>9} {'exp':>5} {'ratio':>6} {'sklearn E+M':>12} {'faster':>7}"
    )
    X, _ = make_data(*shape)
    for structure in STRUCTURES:
        row(structure, X, options.components, options.repeats, n_threads)


def row(structure: str, X: np.ndarray, n_components: int, repeats: int, n_threads: int) -> None:
    """Print the row of one structure."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours, row_map, n_features = our_pass(X, n_components, structure)
    peers = {
        "products": products(len(X), n_components, n_features),
        "exp": exponentials(len(X), n_components, n_threads),
        "sklearn": sklearn_steps(X, n_components, structure),
    }
    times: dict[str, list[float]] = {"ours": [], **{name: [] for name in peers}}
    for _ in range(repeats):
        with row_map.executor.session():
            ours()
            times["ours"].append(seconds(ours))
        with threadpool_limits(n_threads):
            for name, function in peers.items():
                if function is not None:
                    times[name].append(seconds(function))
    best = {name: 1e3 * min(values) for name, values in times.items() if values}
    bound = best["products"] + best["exp"]
    beside = f"{best['sklearn']:12.0f} {best['sklearn'] / best['ours']:6.1f}x" if "sklearn" in best else ""
    print(
        f"{structure:10} {n_features:4} {best['ours']:7.1f} {best['products']:9.1f} {best['exp']:5.1f} "
        f"{best['ours'] / bound:6.2f} {beside}",
        flush=True,
    )


if __name__ == "__main__":
    main()
