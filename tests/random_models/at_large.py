"""Many random models in one process: a range of seeds, each fitted and checked, one line of JSON for each that fails.

    python -m random_models.at_large 0 20000 failures.jsonl      # from the folder tests/

A range that was broken off goes on where it stopped, which is kept beside the failures.
"""

from __future__ import annotations

import json
import signal
import sys
import traceback
import warnings
from pathlib import Path

import numpy as np

import caviar as cv
from caviar.language import Label

from .checks import (
    assert_elbo_is_that_of_the_densities,
    assert_sane,
    assert_stationary,
    has_coupled_rows,
)
from .choices import Choices
from .closed_forms import enumerated_evidence
from .gaps import with_gaps
from .statement import Stated, state

__all__ = ["check", "drawn"]

LONGEST = 60
"""Seconds of processor time after which a model is given up, as a failure."""


def drawn(seed: int) -> tuple[Stated, dict, np.random.Generator, int]:
    """Return the model of a seed, its data, a generator for what else is random, and the number of rows."""
    rng = np.random.default_rng([7, seed])
    choices = Choices(lambda n: int(rng.integers(n)))
    stated = state(choices, known_only=seed % 8 == 0, is_wide=True)
    n_rows = int(rng.integers(1, 5 if seed % 8 == 0 else 8))
    return stated, stated.simulate(seed, n_rows), rng, n_rows


def check(seed: int) -> None:
    """Fit the model of a seed and check it: against enumeration, its densities, and finite differences."""
    stated, data, rng, n_rows = drawn(seed)
    if stated.writer.known_only:
        _check_enumerated(stated, data, seed, n_rows)
        return
    kinds_of_chains = any(isinstance(own, cv.MarkovChainMixture) for own in stated.model.variables.values())
    # of a path with steps that were not seen the density without these is not at hand
    if seed % 3 == 0 and not kinds_of_chains:
        data = with_gaps(stated, data, rng)
    factors = [] if seed % 5 == 0 else None
    rows = stated.data_plate.name if stated.writer.has_chain and stated.data_plate else None
    fixed = {"seed": 0, "factors": factors, "data_plate": rows, "init": "auto" if seed % 2 else "prior"}
    try:
        posterior = stated.model.fit(data, max_iter=200, tol=1e-10, **fixed)
    except cv.DataError as error:
        if "without an observation below it" not in str(error):
            raise
        # the one thing that missing entries may not do
        return
    assert_sane(posterior)
    found = posterior.elbo_at({}, data)
    close = abs(found - posterior.elbo) < 1e-7 * (1 + abs(posterior.elbo))
    assert close or has_coupled_rows(stated, posterior), f"elbo {posterior.elbo}, anew {found}"
    if close:
        assert_elbo_is_that_of_the_densities(posterior, data, n_draws=30)
        if posterior.converged and seed % 4 == 1:
            assert_stationary(posterior, data, n_directions=2)


def _check_enumerated(stated: Stated, data: dict, seed: int, n_rows: int) -> None:
    latent = stated.latent
    if not latent or not all(isinstance(stated.model.variables[name], Label) for name in latent):
        return
    every = stated.simulate_all(seed, n_rows)
    exact = enumerated_evidence(stated, data, {name: np.shape(every[name]) for name in latent})
    if exact is None:
        return
    posterior = stated.model.fit(data, seed=0, max_iter=200, tol=1e-12)
    assert posterior.elbo <= exact + 1e-8 * (1 + abs(exact)), f"{posterior.elbo} above {exact}"
    if len(latent) == 1 and stated.is_one_factor:
        assert abs(posterior.elbo - exact) < 1e-8 * (1 + abs(exact)), f"{posterior.elbo} is not {exact}"


def _given_up(*_: object) -> None:
    raise TimeoutError(f"a model takes more than {LONGEST} seconds")


def main(first: int, last: int, failures: Path) -> None:
    """Check the models of a range of seeds, of which those that are done are skipped."""
    done = failures.with_suffix(".done")
    begin = max(first, int(done.read_text())) if done.exists() else first
    signal.signal(signal.SIGPROF, _given_up)
    warnings.simplefilter("ignore")
    for seed in range(begin, last):
        # again and again, for what is raised inside a destructor is lost
        signal.setitimer(signal.ITIMER_PROF, LONGEST, 5)
        try:
            check(seed)
        except Exception as error:  # noqa: BLE001 - every kind of failure is what is looked for
            told = {"seed": seed, "error": f"{type(error).__name__}: {error}"[:2000], "model": told_of(seed)}
            told["at"] = [
                f"{own.name}:{own.lineno}" for own in traceback.extract_tb(error.__traceback__)[-4:]
            ]
            with failures.open("a") as file:
                file.write(json.dumps(told) + "\n")
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        done.write_text(str(seed + 1))


def told_of(seed: int) -> list[str]:
    """Return what the model of a seed is."""
    try:
        stated = drawn(seed)[0]
    except Exception as error:  # noqa: BLE001 - told as what it is
        return [f"not stated: {error}"]
    return [f"{v.name}: {v.describe()}" for v in stated.model.variables.values()]


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
