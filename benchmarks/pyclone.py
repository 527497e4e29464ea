"""Clusters of mutations on a grid of prevalences, beside PyClone-VI: bounds at the same states, and seconds.

    OMP_NUM_THREADS=1 python benchmarks/pyclone.py --data DIR [--restarts 10]

``DIR/pyclone`` has the two examples of PyClone-VI, ``synthetic.tsv.gz`` and ``tracerx.tsv.gz``, and in
``pyclonevi_reference.json`` what PyClone-VI 0.1.6 found. Where its package ``pyclone_vi`` can be imported it runs
beside caviar, on one thread and with the same table, number of clusters, restarts and tolerance; elsewhere only its
recorded figures are shown.

The model of Gillis and Roth (BMC Bioinformatics, 2020): the label of a mutation chooses a prevalence for each sample,
which is a label of a grid, with a table of log densities for each mutation, sample and prevalence.

Fits that end at other bounds are compared by the last columns: seconds until a bound is as high as the best end of all
restarts of PyClone-VI. Of PyClone-VI they are those until that restart has ended; of starts that caviar chooses the
median of five seeds, and the clock stops when the first start is there.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import gzip
import importlib
import io
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import betaln, digamma, gammaln, logsumexp, xlogy

import caviar as cv

GRID = np.linspace(1e-6, 1 - 1e-6, 100)
SPREAD = 200.0
"""Of the beta-binomial: the sum of its two parameters."""
CASES = (("synthetic", "binomial", 20), ("synthetic", "beta-binomial", 20), ("tracerx", "beta-binomial", 40))
SEEDS = range(5)
RELATIVE = 1e-6
"""PyClone-VI stops where the bound rises by less than this part of itself."""


def genotypes(major: int, minor: int, normal: int) -> list[tuple[int, float]]:
    """Return copies in a cell before the mutation, and the part of its copies that are mutated, of each history."""
    total = major + minor
    own = [(normal, copies / total) for copies in range(1, major + 1)]
    return own if normal == total else [*own, (total, 1 / total)]


def log_densities(row: dict[str, str], density: str) -> np.ndarray:
    """Return the log density of the reads of a mutation in a sample at each prevalence, over its histories."""
    copies = [int(row[name]) for name in ("major_cn", "minor_cn", "normal_cn")]
    reads, mutated = int(row["ref_counts"]) + int(row["alt_counts"]), int(row["alt_counts"])
    error, tumour = float(row.get("error_rate", 1e-3)), float(row.get("tumour_content", 1.0))
    logs = []
    for reference, part in (histories := genotypes(*copies)):
        parts = np.array([(1 - tumour) * copies[2] + 0 * GRID, tumour * (1 - GRID) * reference])
        last = tumour * GRID * (copies[0] + copies[1])
        share = (parts.sum(axis=0) * error + last * min(1 - error, part)) / (parts.sum(axis=0) + last)
        if density == "binomial":
            own = xlogy(mutated, share) + (reads - mutated) * np.log1p(-share)
        else:
            a, b = share * SPREAD, (1 - share) * SPREAD
            own = betaln(a + mutated, b + reads - mutated) - betaln(a, b)
        logs.append(own - np.log(len(histories)))
    choices = gammaln(reads + 1) - gammaln(mutated + 1) - gammaln(reads - mutated + 1)
    return choices + logsumexp(logs, axis=0)


def table_of(path: Path, density: str) -> np.ndarray:
    """Return the table, mutations x samples x grid, of mutations with copies in every sample; both sorted by name."""
    with gzip.open(path, "rt") as stream:
        rows = {(own["mutation_id"], own["sample_id"]): own for own in csv.DictReader(stream, delimiter="\t")}
    rows = {key: own for key, own in rows.items() if int(own["major_cn"]) > 0}
    samples = sorted({sample for _, sample in rows})
    mutations = [m for m in sorted({m for m, _ in rows}) if all((m, s) in rows for s in samples)]
    return np.array([[log_densities(rows[m, s], density) for s in samples] for m in mutations])


def model_of(table: np.ndarray, n_clusters: int) -> cv.Model:
    """Return the model: a label a mutation, and for each cluster and sample a label of the grid."""
    mutation, cluster = cv.Plate("mutation"), cv.Plate("cluster", n_clusters)
    sample, n_grid = cv.Plate("sample", table.shape[1]), table.shape[2]
    prevalence = cv.Categorical("prevalence", np.full(n_grid, 1 / n_grid), plates=(cluster, sample))
    z = cv.Categorical("z", cv.Dirichlet("weights", np.ones(n_clusters)), plates=mutation)
    return cv.Model(cv.Potential("table", prevalence[z], plates=(mutation, sample)))


def start(table: np.ndarray, n_clusters: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return weights and prevalences as PyClone-VI draws them."""
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.ones(n_clusters))
    prevalence = rng.gamma(1, 1, size=(n_clusters, *table.shape[1:]))
    return weights, prevalence / prevalence.sum(axis=2, keepdims=True)


def by_formula(table: np.ndarray, concentration: np.ndarray, prevalence: np.ndarray) -> float:
    """Return the bound of the paper at given factors of the globals, the labels at their optimum."""
    logs = digamma(concentration) - digamma(concentration.sum())
    n_clusters, n_grid = len(concentration), table.shape[2]
    bound = logsumexp(logs + np.einsum("nsg,ksg->nk", table, prevalence), axis=1).sum()
    bound -= (xlogy(prevalence, prevalence) + prevalence * np.log(n_grid)).sum()
    bound += gammaln(n_clusters) - gammaln(concentration.sum()) + gammaln(concentration).sum()
    return float(bound - ((concentration - 1) * logs).sum())


def timed(function: Any) -> tuple[Any, float]:
    """Return what a function gives back, and its seconds of processor time."""
    begun = time.process_time()
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = function()
    return found, time.process_time() - begun


def until(goal: float, model: cv.Model, data: dict[str, Any], settings: dict[str, Any]) -> float:
    """Return after how many seconds a start has reached a bound, the median of some seeds; infinite if most do not."""
    found = []
    for seed in SEEDS:
        reached: list[float] = []

        def told(now: Any, reached: list[float] = reached) -> bool:
            if now.elbo >= goal:
                reached.append(time.process_time())
            return bool(reached)

        begun = time.process_time()
        timed(lambda seed=seed, told=told: model.fit(data, seed=seed, progress=told, **settings))
        found.append(reached[0] - begun if reached else np.inf)
    return float(np.median(found))


def first_at(goal: float, ends: list[tuple[float, int]], each: list[float]) -> float:
    """Return the seconds of starts, one after the other, until one has ended at a bound."""
    return next((sum(each[: n + 1]) for n, own in enumerate(ends) if own[0] >= goal), np.inf)


def peer_of(table: np.ndarray, n_clusters: int) -> Any:
    """Return a function that runs PyClone-VI from a seed and gives its bounds and its end; None where it is missing."""
    try:
        peer: Any = importlib.import_module("pyclone_vi.inference")
        importlib.import_module("numba").set_num_threads(1)
    except ImportError:
        return None

    def run(seed: int) -> tuple[list[float], Any]:
        rng = np.random.default_rng(seed)
        own = peer.get_variational_params(n_clusters, *table.shape, rng)
        trace = peer.fit(table, peer.get_priors(n_clusters, table.shape[2]), own, RELATIVE)
        return trace, own

    timed(lambda: run(0))  # compiles its loops
    return run


def one_case(folder: Path, name: str, density: str, n_clusters: int, n_restarts: int) -> None:
    """Print a row for each way of fitting."""
    table = table_of(folder / f"{name}.tsv.gz", density)
    recorded = json.loads((folder / "pyclonevi_reference.json").read_text())["runs"]
    known = {
        own["seed"]: own
        for own in recorded
        if (own["data"], own["density"], own["K"], own["threshold"]) == (name, density, n_clusters, RELATIVE)
    }
    model, data = model_of(table, n_clusters), {"table": table}
    scale = abs(next(iter(known.values()))["elbo_exact"])
    plain = {"tol": RELATIVE * scale / len(table), "executor": 1, "swaps": False, "max_iter": 2000}
    peer, rows, furthest = peer_of(table, n_clusters), [], 0.0
    ours, theirs, seconds, seconds_of_peer = [], [], [], []
    for seed in range(1, n_restarts + 1):
        weights, prevalence = start(table, n_clusters, seed)
        init = {"weights": cv.families.Dirichlet(weights), "prevalence": prevalence}
        begun, _ = timed(lambda init=init: model.fit(data, init=init, **{**plain, "max_iter": 0}))
        furthest = max(furthest, abs(begun.elbo - by_formula(table, weights, prevalence)))
        end, spent = timed(lambda init=init: model.fit(data, init=init, accelerate=False, **plain))
        at_end = end["weights"].concentration, end["prevalence"].probabilities
        furthest = max(furthest, abs(end.elbo - by_formula(table, *at_end)))
        ours.append((end.elbo, end.n_iter))
        seconds.append(spent)
        if peer is not None:
            (trace, last), spent = timed(lambda seed=seed: peer(seed))
            init = {"weights": cv.families.Dirichlet(last.pi), "prevalence": last.theta}
            there, _ = timed(lambda init=init: model.fit(data, init=init, **{**plain, "max_iter": 0}))
            furthest = max(furthest, abs(there.elbo - by_formula(table, last.pi, last.theta)))
            theirs.append((by_formula(table, last.pi, last.theta), len(trace) - 1))
            seconds_of_peer.append(spent)
        elif seed in known:
            theirs.append((known[seed]["elbo_exact"], known[seed]["n_iter"]))
            seconds_of_peer.append(known[seed]["wall_s"])
    label = "PyClone-VI" if peer is not None else "PyClone-VI, recorded"
    best = max(own[0] for own in theirs)
    # to within what it stops at
    goal = best - RELATIVE * abs(best)
    rows.append((label, theirs, sum(seconds_of_peer), first_at(goal, theirs, seconds_of_peer)))
    rows.append(("caviar, its starts and updates", ours, sum(seconds), first_at(goal, ours, seconds)))
    drawn = {**plain, "init": "prior", "n_restarts": n_restarts}
    for label, own in (
        ("caviar, starts from the prior", {**drawn, "accelerate": False}),
        ("caviar, the same, accelerated", drawn),
        ("caviar, one start, no swaps", plain),
        ("caviar, default", {**plain, "swaps": "auto"}),
    ):
        end, spent = timed(lambda own=own: model.fit(data, seed=0, **own))
        ends = list(zip(end.restart_elbos, [len(trace) - 1 for trace in end.restart_traces], strict=True))
        rows.append((label, ends, spent, until(goal, model, data, own)))
    print(f"\n{name}, {density}: {' x '.join(map(str, table.shape))}, {n_clusters} clusters", end="; ")
    print(f"at the same state the bounds differ by at most {furthest:.1e} nats")
    show(rows)


def show(rows: list[tuple[str, list[tuple[float, int]], float, float]]) -> None:
    """Print ways of fitting with their ends, seconds, and seconds until the goal; the first is that of PyClone-VI."""
    print(f"{'':32}{'starts':>7}{'iterations':>11}{'best ELBO':>14}{'CPU s':>8}{'faster':>8}", end="")
    print(f"{'an iteration':>14}{'faster':>8}{'to its bound':>14}{'faster':>8}{'than all':>10}")
    _, theirs, whole_of_peer, reached_by_peer = rows[0]
    each_of_peer = whole_of_peer / sum(own[1] for own in theirs)
    for label, ends, spent, reached in rows:
        best, steps = max(own[0] for own in ends), sum(own[1] for own in ends)
        print(
            f"{label:32}{len(ends):7}{steps:11}{best:14.4f}{spent:8.2f}{whole_of_peer / spent:8.1f}", end=""
        )
        # a start from the data takes passes that are no iterations
        each = f"{spent / steps:14.4f}{each_of_peer * steps / spent:8.1f}" if len(ends) > 1 else f"{'':22}"
        there = f"{reached:14.3f}{reached_by_peer / reached:8.1f}{whole_of_peer / reached:10.1f}"
        print(each + (there if np.isfinite(reached) else f"{'not reached':>14}"), flush=True)


def main() -> None:
    """Run all cases."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--restarts", type=int, default=10)
    arguments = parser.parse_args()
    for name, density, n_clusters in CASES:
        one_case(arguments.data / "pyclone", name, density, n_clusters, arguments.restarts)


if __name__ == "__main__":
    main()
