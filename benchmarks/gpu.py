"""One pass on a device, beside the two bare matrix products there, EM in plain torch, and our pass on the cores.

A pass is everything that touches rows: features, local updates, statistics, and the local part of the ELBO::

    python benchmarks/gpu.py                                    # the first CUDA device
    python benchmarks/gpu.py --device cpu --rows 20000 --repeats 3

The products are W @ T (K x F by F x B) and R @ T' (K x B by B x F) over blocks of the size that our pass takes, on
operands that are there already. The peer is what is commonly written: ``torch.distributions.MultivariateNormal`` for
the densities, ``logsumexp``, and products for the moments, over chunks of rows that its (rows, K, D) differences have
room in. Another, where pomegranate is installed, is a step of EM of its ``GeneralMixtureModel``, in float32, on chunks
of rows. Rows are on the device before the clock starts; every time includes waiting for the device. Without torch, or
without a CUDA device, the script says so and measures nothing.

What to expect at D = K = 64, F = 2145, on a GPU of 4.8 TB/s and 67 TFLOP/s in float32 and, on tensor cores, in float64
(an H200). A row takes 4 K F = 549,000 operations, 8.2 ns in the two products at that peak. They read its column of T
twice, 3.6 ns in float32 and 7.2 ns in float64, which hides behind the operations. Writing T takes 1.8 ns (3.6 ns), for
D/2 products of slices of B x D numbers read from the cache, and the softmax, which goes over K numbers about eight
times, 0.4 ns (0.8 ns); these two hide behind nothing. So a pass runs at 8.2 / 10.4 = 79% of the products' speed in
float32 and at 65% in float64 if both products run at the peak; at two thirds of it, which is usual for products with a
side of 64, at 85% and 74%. Making T inside the first product would save more, and needs a kernel of its own. In
float32 one pass in sixteen is checked in float64 on every row, which is not in the times below. None of these figures
is measured yet.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable

import numpy as np
from one_pass import make_data
from threadpoolctl import threadpool_limits

import caviar as cv
from caviar.engine.ascent.problem import statistics_of
from caviar.engine.binding.bind import bind
from caviar.engine.rows.row_map import Precision, RowMap
from caviar.engine.starts.from_user import given_start
from caviar.execution.threads import Threads
from caviar.fitting.rows import as_executor, rows_of

Pass = Callable[[], object]


def our_pass(X: np.ndarray, centres: np.ndarray, executor: object) -> tuple[Pass, RowMap, int]:
    """Return a function that makes one pass over the rows, what it runs on, and the rows of a block."""
    n_components, n_features = centres.shape
    model = cv.models.gaussian_mixture(n_features, n_components)
    problem = model._problem(bind(model.nodes, model.leaves, {"x": X}), (), None)
    start = {
        "mean": centres,
        "precision": np.broadcast_to(np.eye(n_features), (n_components, n_features, n_features)),
    }
    executor = as_executor(executor)
    precision = Precision.SINGLE if executor.is_single else Precision.DOUBLE
    row_map = RowMap(problem.rows, rows_of(problem.bound), executor, precision)
    problem, q = given_start(problem, start, RowMap(problem.rows, row_map.source, Threads())).start
    arrays = statistics_of(problem, q)
    n_block = min(len(X), row_map.executor.block_rows(problem.rows))
    return lambda: row_map.at(problem.rows).summary(problem.rows.coefficients(arrays)), row_map, n_block


def bare_products(shape: tuple[int, int, int], n_block: int, device: str, dtype: str) -> Pass:
    """Return the two products over all rows, in blocks that share one T."""
    import torch

    n_rows, n_features, n_components = shape
    size = 1 + n_features + n_features * (n_features + 1) // 2
    where = {"device": device, "dtype": getattr(torch, dtype)}
    W, T = torch.rand(n_components, size, **where), torch.rand(size, n_block, **where)
    R, S = torch.empty(n_components, n_block, **where), torch.empty(n_components, size, **where)

    def products() -> None:
        for _ in range(math.ceil(n_rows / n_block)):
            torch.matmul(W, T, out=R)
            torch.matmul(R, T.T, out=S)
        S[0, 0].item()

    return products


def torch_em(X: np.ndarray, centres: np.ndarray, device: str, dtype: str) -> Pass:
    """Return a step of EM for a Gaussian mixture as it is written with torch.distributions."""
    import torch

    where = {"device": device, "dtype": getattr(torch, dtype)}
    x, means = torch.as_tensor(X, **where), torch.as_tensor(centres, **where)
    n_components, n_features = centres.shape
    weights = torch.full((n_components,), 1 / n_components, **where)
    normal = torch.distributions.MultivariateNormal(
        means, torch.eye(n_features, **where).expand(n_components, -1, -1), validate_args=False
    )
    chunk = max(1, (256 << 20) // (8 * n_components * n_features))

    def step() -> tuple[object, ...]:
        log_likelihood, count, total, square = (torch.zeros((), **where) for _ in range(4))
        for rows in x.split(chunk):
            joint = normal.log_prob(rows[:, None]) + weights.log()
            normaliser = torch.logsumexp(joint, dim=1)
            shares = torch.exp(joint - normaliser[:, None])
            log_likelihood += normaliser.sum()
            count += shares.sum(dim=0)
            total += shares.T @ rows
            square += torch.einsum("nk,ni,nj->kij", shares, rows, rows)
        mean = total / count[:, None]
        covariance = square / count[:, None, None] - mean[:, :, None] * mean[:, None, :]
        return float(log_likelihood), count / len(x), mean, covariance

    return step


def pomegranate_em(X: np.ndarray, centres: np.ndarray, device: str) -> Pass | None:
    """Return a step of EM of pomegranate, None where it is not installed."""
    try:
        from pomegranate.distributions import Normal
        from pomegranate.gmm import GeneralMixtureModel
    except ImportError:
        return None
    import torch

    x, means = torch.as_tensor(X, dtype=torch.float32), torch.as_tensor(centres, dtype=torch.float32)
    x = x.to(device)
    n_components, n_features = centres.shape
    chunk = max(1, (256 << 20) // (4 * n_components * n_features))

    def step() -> object:
        # from the same start each time: its own updates may end in a covariance that has no inverse
        normals = [Normal(mean, torch.eye(n_features)) for mean in means]
        mixture = GeneralMixtureModel(normals).to(device)
        for rows in x.split(chunk):
            mixture.summarize(rows)
        mixture.from_summaries()
        return float(mixture.priors[0])

    return step


def seconds(function: Pass) -> float:
    """Return the seconds of one call."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def row(shape: tuple[int, int, int], dtype: str, options: argparse.Namespace) -> None:
    """Print the row of one shape and type."""
    import torch

    X, centres = make_data(*shape)
    ours, row_map, n_block = our_pass(X, centres, cv.Device(options.device, dtype=dtype))
    cores, on_cores, _ = our_pass(X, centres, None)
    products = bare_products(shape, n_block, options.device, dtype)
    em = torch_em(X, centres, options.device, dtype)
    theirs = pomegranate_em(X, centres, options.device) if dtype == "float32" else None
    times: dict[str, list[float]] = {"ours": [], "products": [], "em": [], "pomegranate": [], "cores": []}
    threads = torch.get_num_threads()
    with row_map.executor.session():
        # rows go to the device, and the check of float32 is done
        ours()
        ours()
        each = [("ours", ours), ("products", products), ("em", em)]
        each += [("pomegranate", theirs)] if theirs else []
        for _, function in each[1:]:
            function()
        # no more than the passes between two checks
        for _ in range(min(options.repeats, 13)):
            for name, function in each:
                times[name].append(seconds(function))
    with on_cores.executor.session():
        cores()
        for _ in range(min(options.repeats, 3)):
            times["cores"].append(seconds(cores))
    with threadpool_limits(threads):
        torch.set_num_threads(threads)
    best = {name: 1e3 * min(values, default=math.nan) for name, values in times.items()}
    pomegranate = f"{best['pomegranate']:12.1f} {best['pomegranate'] / best['ours']:6.1f}x" if theirs else ""
    print(
        f"{shape!s:>20} {dtype:>8} {n_block:8d} {best['ours']:9.1f} {best['products']:9.1f} "
        f"{best['products'] / best['ours']:7.0%} {best['em']:10.1f} {best['em'] / best['ours']:6.1f}x "
        f"{pomegranate:20} "
        f"{best['cores']:9.1f} {best['cores'] / best['ours']:6.1f}x",
        flush=True,
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000, 4_000_000])
    parser.add_argument("--features", type=int, default=64)
    parser.add_argument("--components", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    try:
        cv.Device(options.device)
    except cv.ParameterError as error:
        sys.stdout.write(f"nothing is measured: {error}\n")
        return
    print(f"best of {options.repeats} alternating repeats on {options.device}, milliseconds\n")
    print(
        f"{'(N, D, K)':>20} {'dtype':>8} {'block':>8} {'caviar':>9} {'products':>9} {'of it':>7} "
        f"{'torch EM':>10} {'faster':>7} {'pomegranate':>12} {'faster':>7} {'cores':>9} {'faster':>7}"
    )
    for n_rows in options.rows:
        for dtype in ("float32", "float64"):
            row((n_rows, options.features, options.components), dtype, options)


if __name__ == "__main__":
    main()
