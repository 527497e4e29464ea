"""Effects whose precision is learnt, in units from 0.001 to 100,000: how far below a good start fits end.

    python benchmarks/units.py [--seeds 3]

A cell is the ELBO of a fit from the priors (``init="prior"``), and of a default fit, each less that of a fit from the
values that the data were drawn with; the worst of all seeds, in nats. Noise and effects have the prior
Gamma(0.001, 0.001), which knows no unit.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

import caviar as cv

N_ROWS = 300
UNITS = (1e-3, 1.0, 1e3, 1e5)
OBS = cv.Plate("obs")

Case: TypeAlias = tuple[Any, dict[str, Any], dict[str, Any], np.ndarray]
"""A predictor, the known numbers in it, the effects, and the means of the rows, both in units of 1."""


def broad(name: str, *plates: cv.Plate) -> cv.Gamma:
    """Return a precision of which next to nothing is known."""
    return cv.Gamma(name, 1e-3, 1e-3, plates=plates)


def groups(rng: np.random.Generator) -> Case:
    """Return a level and the effects of 30 groups."""
    u, own = rng.standard_normal(30), rng.integers(0, 30, N_ROWS)
    effects = cv.Normal("u", 0, broad("of_u"), plates=cv.Plate("group", 30))
    mean = cv.Normal("level", 0, 1e-12) + effects[cv.Data("own", plates=OBS)]
    return mean, {"own": own}, {"u": u}, 5.0 + u[own]


def crossed(rng: np.random.Generator) -> Case:
    """Return the effects of 30 groups and of 20 others."""
    mean, known, values, means = groups(rng)
    v, other = rng.standard_normal(20), rng.integers(0, 20, N_ROWS)
    effects = cv.Normal("v", 0, broad("of_v"), plates=cv.Plate("other_group", 20))
    mean = mean + effects[cv.Data("other", plates=OBS)]
    return mean, {**known, "other": other}, {**values, "v": v}, means + v[other]


def correlated(rng: np.random.Generator) -> Case:
    """Return a level and a slope for each of 30 groups, with a Wishart."""
    u, own = rng.standard_normal((30, 2)), rng.integers(0, 30, N_ROWS)
    X = np.column_stack([np.ones(N_ROWS), rng.standard_normal(N_ROWS)])
    widths = cv.Wishart("of_u", 3.0, np.eye(2))
    effects = cv.MultivariateNormal("u", np.zeros(2), widths, plates=cv.Plate("group", 30))
    mean = cv.dot(cv.Data("X", plates=OBS), effects[cv.Data("own", plates=OBS)])
    return mean, {"X": X, "own": own}, {"u": u}, (X * u[own]).sum(axis=1)


def shrunk(rng: np.random.Generator) -> Case:
    """Return a regression on 20 columns, each with a precision of its own."""
    X, w = rng.standard_normal((N_ROWS, 20)), rng.standard_normal(20)
    precision = cv.diagonal(broad("of_w", cv.Plate("column", 20)))
    slopes = cv.MultivariateNormal("w", np.zeros(20), precision)
    return cv.dot(cv.Data("X", plates=OBS), slopes), {"X": X}, {"w": w}, X @ w


def sparse(rng: np.random.Generator) -> Case:
    """Return a regression on 200 columns, five of which matter."""
    X, w = rng.standard_normal((N_ROWS, 200)), np.zeros(200)
    w[:5] = rng.choice([-1.0, 1.0], 5)
    slopes = cv.SpikeSlab("w", cv.Beta("share", 1, 1), precision=broad("of_w"), length=200)
    return cv.dot(cv.Data("X", plates=OBS), slopes), {"X": X}, {"w": w}, X @ w


CASES = (groups, crossed, correlated, shrunk, sparse)


def shortfalls(case: Callable[[np.random.Generator], Case], unit: float, seed: int) -> tuple[float, float]:
    """Return the ELBO from the priors, and of a default fit, less that from the values that were drawn."""
    rng = np.random.default_rng(seed)
    mean, known, values, means = case(rng)
    model = cv.Model(cv.Normal("y", mean, broad("noise"), plates=OBS))
    data = {**known, "y": unit * (means + rng.standard_normal(N_ROWS))}
    good: dict[str, Any] = {name: unit * value for name, value in values.items()}
    if case is sparse:
        inclusion = np.where(values["w"] != 0, 1 - 1e-6, 1e-4)
        precision = np.full(inclusion.shape, N_ROWS / unit**2)
        good = {"w": cv.families.SpikeSlab(inclusion, good["w"], precision)}
    ends = [model.fit(data, init=init, uncertainty="mean_field").elbo for init in ("prior", "auto", good)]
    return ends[0] - ends[2], ends[1] - ends[2]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", cv.CaviarWarning)
    print(f"{'nats: priors, default':24}" + "".join(f"{unit:>20g}" for unit in UNITS))
    for case in CASES:
        cells = []
        for unit in UNITS:
            found = [shortfalls(case, unit, seed) for seed in range(arguments.seeds)]
            prior, default = (min(one) + 0.0 for one in zip(*found, strict=True))
            cells.append(f"{prior:10.1f} {default:9.1f}")
        print(f"{case.__name__:24}" + "".join(cells), flush=True)


if __name__ == "__main__":
    main()
