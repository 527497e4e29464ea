"""Many random models in one process: a range of seeds, each fitted and checked.

    python -m random_models.at_large 0 20000 random_models      # from the folder tests/

For each that fails a line of JSON is added to ``random_models.jsonl``, and for each hundred one line to
``random_models.log``: the seeds, how many were checked in which way, and how many failed. ``random_models.done`` keeps
where a range that was broken off goes on, and how often each kind of model was drawn.
"""

from __future__ import annotations

import json
import signal
import sys
import traceback
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

import caviar as cv
from caviar.language import Label

from .checks import (
    assert_elbo_is_that_of_the_densities,
    assert_sane,
    assert_stationary,
    has_coupled_rows,
    rows_of,
)
from .choices import Choices
from .closed_forms import enumerated_evidence
from .gaps import with_gaps, with_known_labels, with_known_numbers
from .kinds import kinds_of
from .statement import Stated, state

__all__ = ["check", "drawn"]

BLOCK = 100
"""Seeds of which one line tells."""

LONGEST = 60
"""Seconds of processor time after which a model is given up, as a failure."""


def drawn(seed: int) -> tuple[Stated, dict, np.random.Generator, int]:
    """Return the model of a seed, its data, a generator for what else is random, and the number of rows."""
    rng = np.random.default_rng([7, seed])
    choices = Choices(lambda n: int(rng.integers(n)))
    stated = state(choices, known_only=seed % 8 == 0, is_wide=True)
    n_rows = int(rng.integers(1, 5 if seed % 8 == 0 else 8))
    return stated, stated.simulate(seed, n_rows), rng, n_rows


def check(seed: int) -> set[str]:
    """Check the model of a seed against enumeration, or its densities and finite differences; return what was done."""
    stated, data, rng, n_rows = drawn(seed)
    if stated.writer.known_only:
        return _check_enumerated(stated, data, seed, n_rows)
    done: set[str] = set()
    has_gaps = seed % 3 == 0 and not _has_kinds_of_chains(stated)
    if has_gaps:
        every = stated.simulate_all(seed, n_rows) if seed % 2 else {}
        gaps = with_gaps(stated, data, rng)
        data = with_known_labels(stated, every, gaps, rng) if every else gaps
        data = with_known_numbers(stated, every, data, rng) if seed % 4 == 1 else data
        has_gaps = _has_missing(data)
        done |= {kind for kind, is_so in _kinds_of_gaps(stated, data).items() if is_so}
    rows = stated.data_plate.name if stated.writer.has_chain and stated.data_plate else None
    init = "auto" if seed % 2 else "prior"
    fixed = {"seed": 0, "factors": [] if seed % 5 == 0 else None, "data_plate": rows, "init": init}
    repeated, weights = data, None
    may_weigh = stated.data_plate is not None and not stated.writer.has_chain and stated.writer.outer is None
    if seed % 7 == 3 and may_weigh and not has_gaps:
        assert stated.data_plate is not None
        weights = rng.integers(0, 3, n_rows) + (np.arange(n_rows) == 0)
        repeated = rows_of(stated, data, np.repeat(np.arange(n_rows), weights))
        fixed |= {"data_plate": stated.data_plate.name, "sample_weight": weights}
        done.add("weights")
    try:
        posterior = stated.model.fit(data, max_iter=200, tol=1e-10, **fixed)
    except cv.DataError as error:
        if "without an observation below it" not in str(error):
            raise
        # the one thing that missing entries may not do
        return {"refused"}
    assert_sane(posterior)
    # rows as often as their weight says are other rows with the same bound
    found = posterior.elbo_at({}, repeated)
    close = abs(found - posterior.elbo) < 1e-7 * (1 + abs(posterior.elbo))
    assert close or has_coupled_rows(stated, posterior), f"elbo {posterior.elbo}, anew {found}"
    done.add("elbo anew" if close else "elbo of another optimum of the rows")
    if close:
        assert_elbo_is_that_of_the_densities(posterior, repeated, n_draws=60)
        done.add("densities")
        if posterior.converged and seed % 4 == 1:
            assert_stationary(posterior, repeated, n_directions=2)
            done.add("finite differences")
    return done


def _has_kinds_of_chains(stated: Stated) -> bool:
    """Whether a path is hidden of which the density without its unseen steps is not at hand."""
    return any(isinstance(own, cv.MarkovChainMixture) for own in stated.model.variables.values())


def _has_missing(data: dict) -> bool:
    return any(np.isnan(np.asarray(value, dtype=float)).any() for value in data.values())


def _kinds_of_gaps(stated: Stated, data: dict) -> dict[str, bool]:
    labels = {name: data[name] for name in stated.latent if name in data}
    leaves = {name: value for name, value in data.items() if name not in labels}
    return {"missing entries": _has_missing(leaves), "variables of the rows known in part": bool(labels)}


def _check_enumerated(stated: Stated, data: dict, seed: int, n_rows: int) -> set[str]:
    latent = stated.latent
    if not latent or not all(isinstance(stated.model.variables[name], Label) for name in latent):
        return {"nothing hidden"}
    every = stated.simulate_all(seed, n_rows)
    exact = enumerated_evidence(stated, data, {name: np.shape(every[name]) for name in latent})
    if exact is None:
        return {"too many values to enumerate"}
    posterior = stated.model.fit(data, seed=0, max_iter=200, tol=1e-12)
    assert posterior.elbo <= exact + 1e-8 * (1 + abs(exact)), f"{posterior.elbo} above {exact}"
    if len(latent) == 1 and stated.is_one_factor:
        assert abs(posterior.elbo - exact) < 1e-8 * (1 + abs(exact)), f"{posterior.elbo} is not {exact}"
        return {"enumeration, equal"}
    return {"enumeration, bounded"}


def _given_up(*_: object) -> None:
    raise TimeoutError(f"a model takes more than {LONGEST} seconds")


def main(first: int, last: int, base: Path) -> None:
    """Check the models of a range of seeds, of which those that are done are skipped."""
    kept = base.with_suffix(".done")
    state = json.loads(kept.read_text()) if kept.exists() else {}
    begin, totals = max(first, state.get("next", first)), Counter(state.get("totals", {}))
    signal.signal(signal.SIGPROF, _given_up)
    warnings.simplefilter("ignore")
    for block in range(begin, last, BLOCK):
        seeds = range(block, min(block + BLOCK, last))
        found: Counter[str] = Counter()
        for seed in seeds:
            found.update(_tried(seed, base.with_suffix(".jsonl")))
        totals.update(found)
        kept.write_text(json.dumps({"next": seeds.stop, "totals": dict(totals.most_common())}, indent=1))
        said = {key.removeprefix("done: "): n for key, n in sorted(found.items()) if key.startswith("done: ")}
        with base.with_suffix(".log").open("a") as file:
            told = ", ".join(f"{n} {key}" for key, n in said.items())
            file.write(f"seeds {seeds.start}-{seeds.stop - 1}: {found['failed']} failed; {told}\n")


def _tried(seed: int, failures: Path) -> list[str]:
    """Check the model of a seed, and return its kinds and what was done, or that it failed, which is written down."""
    # again and again, for what is raised inside a destructor is lost
    signal.setitimer(signal.ITIMER_PROF, LONGEST, 5)
    try:
        done = [f"done: {own}" for own in check(seed)]
        return [*done, *kinds_of(drawn(seed)[0])]
    except Exception as error:  # noqa: BLE001 - every kind of failure is what is looked for
        told = {"seed": seed, "error": f"{type(error).__name__}: {error}"[:2000], "model": told_of(seed)}
        told["at"] = [f"{own.name}:{own.lineno}" for own in traceback.extract_tb(error.__traceback__)[-4:]]
        with failures.open("a") as file:
            file.write(json.dumps(told) + "\n")
        return ["failed"]
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def told_of(seed: int) -> list[str]:
    """Return what the model of a seed is."""
    try:
        stated = drawn(seed)[0]
    except Exception as error:  # noqa: BLE001 - told as what it is
        return [f"not stated: {error}"]
    return [f"{v.name}: {v.describe()}" for v in stated.model.variables.values()]


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
