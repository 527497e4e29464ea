"""Many small fits: fit_many beside loops of scikit-learn, and of our own single fits.

    python benchmarks/many.py [--groups 10000] [--gap 3] [--loop 200]

Groups of 200 rows and two columns, two components: each group has clusters of its own at a distance of ``gap`` standard
deviations in each column. scikit-learn runs in a loop of joblib over processes on all cores, with its own defaults and,
beside these, with its tolerance at the 1e-6 nats a row that fit_many ends at. Loops are timed on ``--loop`` groups and
told for all. Ratios are of seconds on the clock, and in brackets of seconds of the processor, which other work on the
machine disturbs less. ELBOs and likelihoods are in nats a row.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from time import perf_counter, process_time
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture

import caviar as cv

Tables = list[np.ndarray]
Seconds = tuple[float, float]


def tables_of(n_groups: int, gap: float, seed: int) -> Tables:
    """Return the tables of the groups, (200, 2) each."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n_groups, 200, 2)) + gap * (rng.random((n_groups, 200, 1)) < 0.4)
    return list(rows + 20 * rng.normal(size=(n_groups, 1, 2)))


def _peer(estimator: Any, table: np.ndarray) -> tuple[float, float]:
    warnings.simplefilter("ignore")
    start = process_time()
    fitted = clone(estimator).fit(table)
    return process_time() - start, float(fitted.score(table))


def loop_of_processes(estimator: Any, tables: Tables) -> tuple[Seconds, list[float]]:
    """Return the seconds of a loop of joblib on all cores, once its processes run, and what each fit reached."""
    with Parallel(n_jobs=-1) as pool:
        pool(delayed(_peer)(estimator, table) for table in tables[:8])
        start = perf_counter()
        found = pool(delayed(_peer)(estimator, table) for table in tables)
    seconds = perf_counter() - start
    return (seconds, sum(own for own, _ in found)), [reached for _, reached in found]


def timed(call: Callable[[], Any]) -> tuple[Seconds, Any]:
    """Return the seconds that a call takes, on the clock and of the processor, and what it returns."""
    start, of_processor = perf_counter(), process_time()
    found = call()
    return (perf_counter() - start, process_time() - of_processor), found


def compared(
    name: str, own: Any, peers: dict[str, Any], n_groups: int, n_loop: int, gap: float, seed: int
) -> None:
    """Print the rows of one estimator."""
    tables = tables_of(n_groups, gap, seed)
    cv.fit_many(own, tables[:200])
    (seconds, of_processor), fits = timed(lambda: cv.fit_many(own, tables))
    loop = tables[:n_loop]
    reached = np.mean([fits[number].score(table) for number, table in enumerate(loop)])
    print(f"{name}, gap {gap:g}, seed {seed}")
    print(
        f"  {'fit_many':34} {seconds:8.2f} s                  {reached:.4f}   {fits.converged.mean():.0%} converged"
    )
    (single, _), alone = timed(lambda: [clone(own).set_params(n_jobs=1).fit(table) for table in loop[:40]])
    higher = [fit.posterior_.elbo - fits.elbo[number] for number, fit in enumerate(alone)]
    whole = single / len(alone) * n_groups
    shares = (
        f"higher in {np.mean(np.array(higher) > 0.01):.0%}, lower in {np.mean(np.array(higher) < -0.01):.0%}"
    )
    print(
        f"  {'a loop of fit':34} {whole:8.2f} s {whole / seconds:7.1f}x  ELBO {shares} of {len(alone)} groups"
    )
    for peer, estimator in peers.items():
        took, scores = loop_of_processes(estimator, loop)
        whole, processor = (own / len(loop) * n_groups for own in took)
        ratios = f"{whole / seconds:7.1f}x ({processor / of_processor:.1f}x)"
        print(f"  {peer:34} {whole:8.2f} s {ratios} {np.mean(scores):.4f}", flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--groups", type=int, default=10_000)
    parser.add_argument("--loop", type=int, default=400)
    parser.add_argument("--gap", type=float, nargs="+", default=[3.0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", choices=["bayesian", "likelihood"])
    chosen = parser.parse_args()
    for gap in chosen.gap:
        for seed in range(chosen.seeds):
            if chosen.only != "likelihood":
                peers = {
                    "scikit-learn, tol 1e-3": BayesianGaussianMixture(n_components=2, random_state=0),
                    "scikit-learn, tol 1e-6": BayesianGaussianMixture(
                        n_components=2, random_state=0, tol=1e-6, max_iter=1000
                    ),
                }
                own: Any = cv.BayesianGaussianMixture(2, random_state=0)
                compared("Bayesian", own, peers, chosen.groups, chosen.loop, gap, seed)
            if chosen.only != "bayesian":
                peers = {
                    "scikit-learn, tol 1e-3": GaussianMixture(n_components=2, random_state=0),
                    "scikit-learn, tol 1e-6": GaussianMixture(
                        n_components=2, random_state=0, tol=1e-6, max_iter=1000
                    ),
                }
                own = cv.GaussianMixture(2, random_state=0)
                compared("likelihood", own, peers, chosen.groups, chosen.loop, gap, seed)


if __name__ == "__main__":
    main()
