"""One pass over the rows of a Bayesian Gaussian mixture, beside scikit-learn's and beside the two bare matrix products.

A pass is everything that touches rows: all local updates, all statistics, and the local part of the ELBO.
Each shape is timed in alternating repeats in one process, and the best of each is shown::

    python benchmarks/one_pass.py [--repeats 7] [--threads 2]

The two products are W @ T (K x F by F x N) and R @ T' (K x N by N x F) on full feature-major operands, BLAS
with all threads. An iteration of scikit-learn is its E step, M step and lower bound.
"""

from __future__ import annotations

import argparse
import os
import time
import tracemalloc
import warnings
from collections.abc import Callable

import numpy as np
from threadpoolctl import threadpool_limits

import caviar as cv
from caviar.engine.ascent.problem import statistics_of
from caviar.engine.binding.bind import bind
from caviar.engine.rows.row_map import RowMap
from caviar.engine.starts.from_user import given_start
from caviar.fitting.rows import as_executor, rows_of

SHAPES = [(200_000, 16, 32), (500_000, 4, 16), (50_000, 64, 32)]


def make_data(n_rows: int, n_features: int, n_components: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of a Gaussian mixture whose components overlap, and the components' centres."""
    rng = np.random.default_rng(0)
    centres = 2.0 * rng.standard_normal((n_components, n_features))
    labels = rng.integers(n_components, size=n_rows)
    return centres[labels] + rng.standard_normal((n_rows, n_features)), centres


def our_pass(
    X: np.ndarray, centres: np.ndarray, n_threads: int | None
) -> tuple[Callable[[], object], RowMap]:
    """Return a function that makes one pass of the stated model over the rows."""
    n_components, n_features = centres.shape
    model = cv.models.gaussian_mixture(n_features, n_components)
    problem = model._problem(bind(model.nodes, model.leaves, {"x": X}), (), None)
    row_map = RowMap(problem.rows, rows_of(problem.bound), as_executor(n_threads))
    start = {
        "mean": centres,
        "precision": np.broadcast_to(np.eye(n_features), (n_components, n_features, n_features)),
    }
    problem, q = given_start(problem, start, row_map).start
    arrays = statistics_of(problem, q)
    return lambda: row_map.at(problem.rows).summary(problem.rows.coefficients(arrays)), row_map


def sklearn_iteration(X: np.ndarray, n_components: int) -> tuple[Callable[[], object], Callable[[], object]]:
    """Return scikit-learn's E and M step, and the same with its lower bound (one iteration of its fit)."""
    from sklearn.mixture import BayesianGaussianMixture

    mixture = BayesianGaussianMixture(
        n_components=n_components,
        max_iter=1,
        init_params="random",
        random_state=0,
        weight_concentration_prior_type="dirichlet_distribution",
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mixture.fit(X)

    def steps() -> tuple[np.ndarray, float]:
        log_prob_norm, log_resp = mixture._e_step(X)
        mixture._m_step(X, log_resp)
        return log_resp, log_prob_norm

    return steps, lambda: mixture._compute_lower_bound(*steps())


def seconds(function: Callable[[], object]) -> float:
    """Return the seconds that one call takes."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--threads", type=int, default=None)
    options = parser.parse_args()
    n_threads = options.threads or len(os.sched_getaffinity(0))
    print(f"best of {options.repeats} alternating repeats, {n_threads} threads, milliseconds\n")
    print(
        f"{'(N, D, K)':>18} {'caviar':>8} {'1 thread':>9} {'products':>9} {'ratio':>6} "
        f"{'sklearn E+M':>12} {'+ bound':>8} {'faster':>14} {'memory':>8}"
    )
    ratios = [row(shape, options.repeats, n_threads) for shape in SHAPES]
    print(f"\ngeometric mean of the ratio to the two products: {np.exp(np.mean(np.log(ratios))):.2f}")


def row(shape: tuple[int, int, int], repeats: int, n_threads: int) -> float:
    """Print the row of one shape; return the ratio of our pass to the two products."""
    n_rows, n_features, n_components = shape
    X, centres = make_data(*shape)
    ours, row_map = our_pass(X, centres, n_threads)
    single, single_passes = our_pass(X, centres, 1)
    size = 1 + n_features + n_features * (n_features + 1) // 2
    rng = np.random.default_rng(1)
    W, T, R = rng.random((n_components, size)), rng.random((size, n_rows)), rng.random((n_components, n_rows))
    L, S = np.empty((n_components, n_rows)), np.empty((n_components, size))

    def products() -> None:
        np.matmul(W, T, out=L)
        np.matmul(R, T.T, out=S)

    em, iteration = sklearn_iteration(X, n_components)
    times: dict[str, list[float]] = {name: [] for name in ("ours", "single", "products", "em", "iteration")}
    with row_map.executor.session():
        tracemalloc.start()
        ours()
        memory = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    for _ in range(repeats):
        with row_map.executor.session():
            ours()
            times["ours"].append(seconds(ours))
        with single_passes.executor.session():
            times["single"].append(seconds(single))
        with threadpool_limits(n_threads):
            times["products"].append(seconds(products))
            times["em"].append(seconds(em))
            times["iteration"].append(seconds(iteration))
    best = {name: 1e3 * min(values) for name, values in times.items()}
    ratio = best["ours"] / best["products"]
    print(
        f"{shape!s:>18} {best['ours']:8.1f} {best['single']:9.1f} {best['products']:9.1f} {ratio:6.2f} "
        f"{best['em']:12.0f} {best['iteration']:8.0f} "
        f"{best['em'] / best['ours']:6.1f}x {best['iteration'] / best['ours']:6.1f}x "
        f"{memory / 1e6:5.1f} MB",
        flush=True,
    )
    return ratio


if __name__ == "__main__":
    main()
