"""Hidden Markov models over many sequences beside hmmlearn: milliseconds a sweep.

    python benchmarks/hmm.py [--sweeps 10] [--data DIR] [--threads 2] [--states 5 20] [--quick] [--cpu]
                             [--seed 0]

A sweep is an iteration of variational inference: expected log-likelihoods of all steps, forward and backward over each
sequence, sums, and the update of every global factor with the bound. hmmlearn's ``VariationalGaussianHMM`` and
``VariationalCategoricalHMM`` make that sweep too; their passes over a sequence are loops in C++, on logarithms or on
scaled numbers ("log", "scaling"), and its Gaussian has a Normal-Wishart prior where ours has a Normal and a Wishart. No
sweep is accelerated. The time of one is the least between two reports of a fit.

Sequences are simulated, but for the last lines: six recordings of people at exercise, which caviar ships, or
``DIR/mocap6.npz``. hmmlearn is in the extra ``bench``.
"""

from __future__ import annotations

import argparse
import logging
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np

import caviar as cv
from caviar.datasets import load_motion_capture

N_COLUMNS, N_CATEGORIES = 12, 30
LENGTHS = {"20-60": (500, 20, 60), "100-300": (150, 100, 300), "1000": (100, 1_000, 1_000)}
"""Name -> number of sequences, fewest and most steps of one."""

STATES = (5, 20, 50)

Fit: TypeAlias = Callable[[int, Callable[[object], None]], None]
"""A fit of so many sweeps, each of which is reported."""


@dataclass(frozen=True)
class Case:
    """Rows of sequences that stand one after the other, their lengths, and means or emissions to start from."""

    name: str
    n_states: int
    x: np.ndarray
    lengths: np.ndarray
    start: np.ndarray

    @property
    def is_gaussian(self) -> bool:
        return self.x.ndim == 2

    @property
    def starts(self) -> np.ndarray:
        starts = np.zeros(len(self.x), dtype=bool)
        starts[np.cumsum(self.lengths) - self.lengths] = True
        return starts


def simulated(kind: str, n_states: int, sequences: str, rng: np.random.Generator) -> Case:
    n_sequences, fewest, most = LENGTHS[sequences]
    lengths = rng.integers(fewest, most + 1, n_sequences)
    n_rows = int(lengths.sum())
    # a state lasts five steps
    path = np.repeat(rng.integers(n_states, size=n_rows // 5 + 1), 5)[:n_rows]
    if kind == "gaussian":
        centres = 2 * rng.normal(size=(n_states, N_COLUMNS))
        x, start = centres[path] + rng.normal(size=(n_rows, N_COLUMNS)), centres
    else:
        start = rng.dirichlet(np.full(N_CATEGORIES, 0.3), n_states)
        x = (rng.random((n_rows, 1)) > start[path].cumsum(axis=1)).sum(axis=1).clip(max=N_CATEGORIES - 1)
    return Case(f"{kind} {n_sequences} x {sequences}", n_states, x, lengths, start)


def motion_capture(folder: Path | None, n_states: int, rng: np.random.Generator) -> Case:
    if folder is None:
        values = load_motion_capture().values
        lengths, x = np.unique(values[:, 0], return_counts=True)[1], values[:, 2:]
    else:
        with np.load(folder / "mocap6.npz") as file:
            x, lengths = file["X"], np.diff(file["doc_range"])
    x = np.ascontiguousarray((x - x.mean(axis=0)) / x.std(axis=0), dtype=float)
    return Case("motion capture, 6 x 220-470", n_states, x, lengths, x[rng.choice(len(x), n_states)])


def ours(case: Case, threads: int) -> Fit:
    if case.is_gaussian:
        model = cv.models.gaussian_hidden_markov_model(N_COLUMNS, case.n_states, with_starts=True)
        eye = np.broadcast_to(np.eye(N_COLUMNS), (case.n_states, N_COLUMNS, N_COLUMNS))
        init = {"mean": case.start, "precision": eye}
    else:
        model = cv.models.categorical_hidden_markov_model(N_CATEGORIES, case.n_states, with_starts=True)
        init = {"emission": cv.families.Dirichlet(1.0 + 100.0 * case.start)}
    data = {"x": case.x, "starts": case.starts}

    def fit(n_iter: int, report: Callable[[object], None]) -> None:
        model.fit(
            data, init=init, max_iter=n_iter, tol=0, accelerate=False, executor=threads, progress=report
        )

    return fit


def theirs(case: Case, implementation: str) -> Fit:
    from hmmlearn.base import ConvergenceMonitor
    from hmmlearn.vhmm import VariationalCategoricalHMM, VariationalGaussianHMM

    class Monitor(ConvergenceMonitor):
        def report(self, log_prob: float) -> None:
            super().report(log_prob)
            self.told(log_prob)

    def fit(n_iter: int, report: Callable[[object], None]) -> None:
        settings = {"n_iter": n_iter, "tol": -np.inf, "random_state": 0, "implementation": implementation}
        if case.is_gaussian:
            model, x = VariationalGaussianHMM(case.n_states, "full", **settings), case.x
        else:
            model, x = VariationalCategoricalHMM(case.n_states, init_params="st", **settings), case.x[:, None]
            model.emissionprob_posterior_ = 1.0 + 100.0 * case.start
            model.emissionprob_prior_ = np.ones_like(case.start)
        model.monitor_ = Monitor(-np.inf, n_iter, verbose=False)
        model.monitor_.told = report
        model.fit(x, case.lengths)

    return fit


def sweep(fit: Fit, sweeps: int, clock: Callable[[], float]) -> float:
    """Return the milliseconds of one sweep."""
    times: list[float] = []
    fit(1 + sweeps, lambda _: times.append(clock()))
    return 1e3 * float(np.diff(times).min())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sweeps", type=int, default=10)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--kinds", nargs="*", default=("gaussian", "categorical"))
    parser.add_argument("--data", type=Path)
    parser.add_argument(
        "--quick", action="store_true", help="leave hmmlearn's logarithms out where they take long"
    )
    parser.add_argument("--states", type=int, nargs="*", default=STATES)
    parser.add_argument("--cpu", action="store_true", help="processor time, for a machine that is busy")
    parser.add_argument("--seed", type=int, default=0, help="of the simulated sequences")
    options = parser.parse_args()
    clock = time.process_time if options.cpu else time.perf_counter
    logging.getLogger("hmmlearn").setLevel(logging.ERROR)
    rng = np.random.default_rng(options.seed)
    cases = [
        simulated(kind, n_states, lengths, rng)
        for kind in options.kinds
        for lengths in LENGTHS
        for n_states in options.states
    ]
    cases += [motion_capture(options.data, n_states, rng) for n_states in (5, 20)]
    kind = " of processors" if options.cpu else ""
    print(f"milliseconds{kind} a sweep; in brackets how many times that of caviar on all threads")
    print(
        f"{'sequences x steps':30} {'K':>3} {'rows':>7} {'1 thread':>9} {f'{options.threads} threads':>9} "
        f"{'scaling':>16} {'log':>16}"
    )
    for case in cases:
        line = f"{case.name:30} {case.n_states:3} {len(case.x):7}"
        one = sweep(ours(case, 1), options.sweeps, clock)
        own = sweep(ours(case, options.threads), options.sweeps, clock)
        line += f" {one:9.1f} {own:9.1f}"
        for implementation in ("scaling", "log"):
            if options.quick and implementation == "log" and len(case.x) * case.n_states > 400_000:
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    other = sweep(theirs(case, implementation), 2, clock)
                except ValueError:
                    other = None  # what hmmlearn says of scaled numbers that are all zero
            line += "        underflow" if other is None else f" {other:8.0f} ({other / own:4.1f})"
        print(line, flush=True)


if __name__ == "__main__":
    main()
