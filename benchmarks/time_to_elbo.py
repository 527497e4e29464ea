"""Time to a given ELBO: whole fits of Bayesian mixtures of Gaussians, beside other libraries'.

Every solution is judged by the same bound, ours with all constants, after one update from the parameters that the
library returns; the prior is the same for all (scikit-learn's defaults, with a Dirichlet on the weights). A tenth of
the rows is held out::

    python benchmarks/time_to_elbo.py [--data DIR] [--cases bundled,flow,covertype] [--seeds 5] [--cache FILE] [--cpu]
        [--peers 'sklearn Bayesian'] [--components 256] [--rows 20000]

``flow`` and ``covertype`` need DIR with flow_cytometry_itn.npz (X, 150,000 x 8, of which the first 7 columns are used)
and covertype.npz (X, 286,048 x 10). What other libraries return is kept in FILE and taken from there the next time,
with the seconds that it took then; such rows are marked with a star. ``--cpu`` holds every library to one thread and
counts the processor's seconds, which other programs on the machine disturb less.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import caviar as cv
from caviar import families

Found = dict[str, np.ndarray]

_clock: Callable[[], float] = time.perf_counter


@dataclass(frozen=True)
class Case:
    """A table, cut into rows to fit and rows held out, and how it is fitted."""

    name: str
    rows: np.ndarray
    held_out: np.ndarray
    n_components: int
    peers: tuple[str, ...]
    max_iter: int = 200


@dataclass(frozen=True)
class Solution:
    """What one fit came to."""

    seconds: float
    n_iter: int
    elbo: float
    held_out: float
    is_cached: bool = False
    trace: tuple[tuple[float, float], ...] = ()
    note: str = ""


class Cache:
    """Solutions by name in one file; without a file nothing is kept."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.arrays: Found = {}
        if path is not None and path.exists():
            with np.load(path) as file:
                self.arrays = dict(file)

    def get(self, key: str) -> Found | None:
        """Return what was kept under a name."""
        found = {
            name.rsplit("/", 1)[1]: value for name, value in self.arrays.items() if name.startswith(f"{key}/")
        }
        return found or None

    def put(self, key: str, found: Mapping[str, np.ndarray]) -> None:
        """Keep arrays under a name."""
        self.arrays |= {f"{key}/{name}": np.asarray(value) for name, value in found.items()}
        if self.path is not None:
            with self.path.open("wb") as file:
                np.savez(file, allow_pickle=False, **self.arrays)


def cases(names: list[str], folder: Path | None, wanted: list[str]) -> list[Case]:
    """Return the wanted cases; those that need files are left out where there is no folder."""
    found = []
    sklearn = ("sklearn Bayesian", "sklearn Bayesian, our start", "sklearn maximum likelihood")
    if "bundled" in names:
        found.append(
            _case("motion capture", cv.datasets.load_motion_capture().values[:, 2:], 8, (*sklearn, "BayesPy"))
        )
        found.append(_case("simulated", _simulated(), 12, sklearn))
    for name, file, columns, n_components in (
        ("flow", "flow_cytometry_itn.npz", 7, 16),
        ("covertype", "covertype.npz", 10, 30),
    ):
        if name in names and folder is not None:
            values = np.load(folder / file)["X"][:, :columns].astype(np.float64)
            found.append(_case(name, values, n_components, sklearn))
    return [replace(case, peers=tuple(p for p in case.peers if not wanted or p in wanted)) for case in found]


def _simulated() -> np.ndarray:
    """Return rows of twelve Gaussians of any orientation that overlap."""
    rng = np.random.default_rng(0)
    labels = rng.integers(12, size=20_000)
    centres, roots = 3.0 * rng.standard_normal((12, 5)), rng.standard_normal((12, 5, 5))
    return centres[labels] + np.einsum("nij,nj->ni", roots[labels], rng.standard_normal((20_000, 5)))


def _case(name: str, values: np.ndarray, n_components: int, peers: tuple[str, ...]) -> Case:
    values = (values - values.mean(axis=0)) / values.std(axis=0)
    order = np.random.default_rng(0).permutation(len(values))
    held_out = len(values) // 10
    return Case(name, values[order[held_out:]], values[order[:held_out]], n_components, peers)


def model_of(case: Case) -> cv.Model:
    """Return the model with scikit-learn's default prior for these rows."""
    size = case.rows.shape[1]
    return cv.models.normal_wishart_mixture(
        size,
        case.n_components,
        concentration=1 / case.n_components,
        prior_mean=case.rows.mean(axis=0),
        mean_precision=1.0,
        df=size,
        inverse_scale=np.cov(case.rows.T),
    )


def our_fit(case: Case, seed: int) -> Solution:
    """Return our fit, with the seconds at which each bound was reached."""
    model, trace = model_of(case), []
    start = _clock()

    def note(progress: cv.Progress) -> None:
        trace.append((_clock() - start, progress.elbo))

    posterior = model.fit({"x": case.rows}, seed=seed, tol=1e-6, progress=note, executor=_n_threads())
    seconds = _clock() - start
    held_out = float(posterior.log_predictive({"x": case.held_out}).mean())
    return Solution(seconds, posterior.n_iter, posterior.elbo, held_out, trace=tuple(trace))


def _n_threads() -> int:
    return 1 if _clock is time.process_time else len(os.sched_getaffinity(0))


def judged(case: Case, found: Found, is_cached: bool) -> Solution:
    """Return a solution of another library by our bound, after one update from its parameters."""
    init: dict[str, Any]
    if "responsibilities" in found:
        init = {"z": found["responsibilities"]}
    elif "df" in found:
        scale = found["covariances"] * found["df"][:, None, None]
        theta = families.NormalWishart(found["means"], found["mean_precision"], found["df"], scale)
        init = {"weights": families.Dirichlet(found["concentration"]), "theta": theta}
    else:
        inverse = np.linalg.inv(found["covariances"])
        init = {"weights": found["weights"], "theta": (found["means"], 0.5 * (inverse + inverse.mT))}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cv.ConvergenceWarning)
        posterior = model_of(case).fit({"x": case.rows}, init=init, max_iter=1, accelerate=False)
    held_out = float(posterior.log_predictive({"x": case.held_out}).mean())
    own = found.get("score")
    note = "" if own is None else f"its own score_samples, held out: {float(own):.3f}"
    if "df" in found and own is not None:
        note += " (not a normalised density)"
    return Solution(
        float(found["seconds"]), int(found["n_iter"]), posterior.elbo, held_out, is_cached, note=note
    )


def sklearn_bayesian(case: Case, seed: int, responsibilities: np.ndarray | None = None) -> Found:
    """Return scikit-learn's Bayesian mixture, from its own start or from given responsibilities."""
    from sklearn.mixture import BayesianGaussianMixture

    mixture = BayesianGaussianMixture(
        n_components=case.n_components,
        weight_concentration_prior_type="dirichlet_distribution",
        max_iter=case.max_iter,
        random_state=seed,
    )
    if responsibilities is not None:
        mixture._initialize_parameters = lambda X, *_, **__: mixture._initialize(X, responsibilities)
    start = _clock()
    mixture.fit(case.rows)
    seconds = _clock() - start
    return {
        "seconds": np.array(seconds),
        "n_iter": np.array(mixture.n_iter_),
        "concentration": mixture.weight_concentration_,
        "means": mixture.means_,
        "mean_precision": mixture.mean_precision_,
        "df": mixture.degrees_of_freedom_,
        "covariances": mixture.covariances_,
        "score": np.array(mixture.score(case.held_out)),
    }


def sklearn_from_our_start(case: Case, seed: int) -> Found:
    """Return scikit-learn's Bayesian mixture from the responsibilities that our start gives; the start is not timed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cv.ConvergenceWarning)
        posterior = model_of(case).fit({"x": case.rows}, seed=seed, max_iter=0)
    return sklearn_bayesian(case, seed, posterior.local({"x": case.rows})["z"].probabilities)


def sklearn_maximum_likelihood(case: Case, seed: int) -> Found:
    """Return scikit-learn's GaussianMixture."""
    from sklearn.mixture import GaussianMixture

    mixture = GaussianMixture(case.n_components, max_iter=case.max_iter, random_state=seed)
    start = _clock()
    mixture.fit(case.rows)
    seconds = _clock() - start
    return {
        "seconds": np.array(seconds),
        "n_iter": np.array(mixture.n_iter_),
        "weights": mixture.weights_,
        "means": mixture.means_,
        "covariances": mixture.covariances_,
        "score": np.array(mixture.score(case.held_out)),
    }


def bayespy_mixture(case: Case, seed: int) -> Found:
    """Return BayesPy's mixture, from random labels.

    Its factor of a mean and a precision is a product, with a prior of its own for the mean; the bound is that of our
    model, from its responsibilities.
    """
    from bayespy.inference import VB
    from bayespy.nodes import Categorical, Dirichlet, Gaussian, Mixture, Wishart

    size, k = case.rows.shape[1], case.n_components
    covariance = np.cov(case.rows.T)
    mean = Gaussian(case.rows.mean(axis=0), np.linalg.inv(covariance), plates=(k,))
    precision = Wishart(size, covariance, plates=(k,))
    weights = Dirichlet(np.full(k, 1 / k))
    labels = Categorical(weights, plates=(len(case.rows),))
    rows = Mixture(labels, Gaussian, mean, precision)
    np.random.seed(seed)  # noqa: NPY002 - BayesPy draws from NumPy's global generator
    labels.initialize_from_random()
    rows.observe(case.rows)
    inference = VB(rows, mean, precision, weights, labels)
    start = _clock()
    inference.update(repeat=case.max_iter, verbose=False)
    seconds = _clock() - start
    return {
        "seconds": np.array(seconds),
        "n_iter": np.array(inference.iter),
        "responsibilities": labels.get_moments()[0],
    }


PEERS: dict[str, tuple[str, Callable[[Case, int], Found]]] = {
    "sklearn Bayesian": ("sklearn", sklearn_bayesian),
    "sklearn Bayesian, our start": ("sklearn", sklearn_from_our_start),
    "sklearn maximum likelihood": ("sklearn", sklearn_maximum_likelihood),
    "BayesPy": ("bayespy", bayespy_mixture),
}


def peer_fit(case: Case, peer: str, seed: int, cache: Cache) -> Solution | None:
    """Return the solution of another library, from the cache if it is there; None if the library is not installed."""
    module, fit = PEERS[peer]
    key = f"{case.name}/{peer}/{seed}"
    found = cache.get(key)
    if found is not None:
        return judged(case, found, is_cached=True)
    if find_spec(module) is None:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = fit(case, seed)
    cache.put(key, found)
    return judged(case, found, is_cached=False)


def seconds_to(solution: Solution, elbo: float) -> float:
    """Return the seconds after which a fit had reached a bound, to 8 digits; infinite if it never did."""
    enough = elbo - 1e-8 * abs(elbo)
    return next((seconds for seconds, value in solution.trace if value >= enough), np.inf)


def report(case: Case, n_seeds: int, cache: Cache) -> None:
    """Print the table of one case."""
    shape = f"{len(case.rows):,} x {case.rows.shape[1]}, K = {case.n_components}"
    print(f"\n{case.name}: {shape}, {len(case.held_out):,} rows held out\n")
    print(f"{'':30} {'seed':>4} {'seconds':>9} {'iterations':>10} {'ELBO':>14} {'held out':>9}")
    ours = [our_fit(case, seed) for seed in range(n_seeds)]
    _print_rows("caviar", ours)
    for peer in case.peers:
        theirs = [
            found for seed in range(n_seeds) if (found := peer_fit(case, peer, seed, cache)) is not None
        ]
        if not theirs:
            print(f"{peer:30} not installed")
            continue
        _print_rows(peer, theirs)
        _compare(ours, peer, theirs)


def _print_rows(name: str, solutions: list[Solution]) -> None:
    for seed, s in enumerate(solutions):
        star = "*" if s.is_cached else " "
        print(
            f"{name:30} {seed:4} {s.seconds:8.2f}{star} {s.n_iter:10} {s.elbo:14.1f} {s.held_out:9.4f}  {s.note}",
            flush=True,
        )


def _compare(ours: list[Solution], peer: str, theirs: list[Solution]) -> None:
    """Print the medians over seeds, and how much sooner our fits reach what the other library ends with."""
    pairs = list(zip(ours, theirs, strict=False))
    reached = [seconds_to(our, their.elbo) for our, their in pairs]
    ratios = [their.seconds / seconds for (_, their), seconds in zip(pairs, reached, strict=True)]
    print(
        f"    medians: ELBO {np.median([s.elbo for s in theirs]):.1f}, ours "
        f"{np.median([s.elbo for s in ours]):.1f}; our seconds to the ELBO where {peer} ends "
        f"{np.median(reached):.3g}, its seconds {np.median([s.seconds for s in theirs]):.3g}, "
        f"ratio {np.median(ratios):.3g} (least {min(ratios):.3g})",
        flush=True,
    )


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, default=None, help="folder with the large tables")
    parser.add_argument("--cases", default="bundled", help="of bundled, flow, covertype; separated by commas")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument(
        "--cache", type=Path, default=None, help="file that keeps what other libraries return"
    )
    parser.add_argument("--cpu", action="store_true", help="one thread, and seconds of the processor")
    parser.add_argument("--peers", default="", help="names of rows, separated by commas; all by default")
    parser.add_argument("--components", type=int, help="instead of those of each case")
    parser.add_argument("--rows", type=int, help="rows to fit at the most")
    options = parser.parse_args()
    if options.cpu:
        global _clock
        _clock = time.process_time
    with threadpool_limits(1 if options.cpu else None):
        _run(options)


def _run(options: argparse.Namespace) -> None:
    # what a first call loads is not timed
    few = {"x": np.random.default_rng(0).normal(size=(1000, 2))}
    for responsibilities in (2, "auto"):
        cv.models.normal_wishart_mixture(2, 4).fit(few, seed=0, responsibilities=responsibilities)
    for case in cases(options.cases.split(","), options.data, [p for p in options.peers.split(",") if p]):
        report(_sized(case, options.components, options.rows), options.seeds, Cache(options.cache))


def _sized(case: Case, n_components: int | None, n_rows: int | None) -> Case:
    """Return a case with other numbers of components and rows, if they are given."""
    if n_components is None and n_rows is None:
        return case
    n_components, rows = n_components or case.n_components, case.rows[:n_rows]
    name = f"{case.name}, {len(rows)} rows, K = {n_components}"
    return replace(case, name=name, rows=rows, n_components=n_components)


if __name__ == "__main__":
    main()
