"""Coefficients with zeros beside susieR, varbvs and mofapy2: bounds, credible sets, and seconds.

    OMP_NUM_THREADS=1 python benchmarks/fine_mapping.py --data DIR [--rows 10000 --columns 1000]

``DIR/finemap`` has the data N3finemapping of the R package susieR and the recorded output of susieR 0.12.35 and varbvs
2.6-8; ``DIR/mofa`` the three views among the tests of mofapy2 0.7.5 and its recorded bounds. The last table is
simulated: seconds a sweep of ten single effects, and of spike and slab, over a table in memory, beside the bare
products with its columns that ten effects need. ``--rows 50000 --columns 5000`` takes 2 GB (1 GB as float32).
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from pathlib import Path
from typing import Any

import numpy as np

import caviar as cv

OBS = cv.Plate("obs")
COLUMNS = cv.Data("X", plates=OBS)


def single_effects(number: int, size: int, precision: Any, noise: Any) -> cv.Model:
    """Return a sum of so many single effects."""
    effects = [
        cv.SingleEffect(f"b{k}", size, precision=precision(k) if callable(precision) else precision)
        for k in range(number)
    ]
    mean = cv.dot(COLUMNS, effects[0])
    for own in effects[1:]:
        mean = mean + cv.dot(COLUMNS, own)
    return cv.Model(cv.Normal("y", mean, noise, plates=OBS))


def flat(name: str) -> cv.Gamma:
    """Return a precision with the density 1."""
    return cv.Gamma(name, 1, 0)


def beside_susie(folder: Path) -> None:
    """Print the bounds of susieR's runs and of the same statements."""
    table = np.load(folder / "n3finemapping.npz")
    runs = json.loads((folder / "n3finemapping_reference.json").read_text())["susie"]
    X, y = table["X"].astype(float), table["Y"][:, 0]
    X, y = X - X.mean(axis=0), y - y.mean()
    scaled, spread = X / X.std(axis=0, ddof=1), float(np.var(y, ddof=1))
    size, prior = X.shape[1], 1 / (0.2 * spread)
    learnt = ["tau", *(f"v{k}" for k in range(10))]
    cases: dict[str, tuple[cv.Model, np.ndarray, dict[str, Any]]] = {
        "fixed": (single_effects(10, size, prior, 1 / spread), scaled, {}),
        "fixed_L1": (single_effects(1, size, prior, 1 / spread), scaled, {}),
        "fixed_rvtrue": (single_effects(10, size, prior, 1 / 6), X, {}),
        "fixprior_estres": (single_effects(10, size, prior, flat("tau")), scaled, {"point": ["tau"]}),
        "default_tight": (
            single_effects(10, size, lambda k: flat(f"v{k}"), flat("tau")),
            scaled,
            {"point": learnt},
        ),
        "refine": (
            single_effects(10, size, lambda k: flat(f"v{k}"), flat("tau")),
            scaled,
            {"point": learnt, "schedule": cv.Refined()},
        ),
    }
    print(
        f"{'N3finemapping':18}{'susieR':>18}{'caviar':>18}{'difference':>12}{'s':>7}  credible sets (from 1)"
    )
    for name, (model, columns, arguments) in cases.items():
        begun = time.perf_counter()
        posterior = model.fit({"X": columns, "y": y}, tol=1e-12, max_iter=3000, **arguments)
        seconds = time.perf_counter() - begun
        found = posterior.credible_sets({"X": columns})
        sets = ", ".join(
            str(len(own)) if len(own) > 3 else str(sorted(j + 1 for j in own.entries)) for own in found
        )
        susie = runs[name]["elbo_end"]
        print(
            f"{name:18}{susie:18.8f}{posterior.elbo:18.8f}{posterior.elbo - susie:12.1e}{seconds:7.2f}  {sets}"
        )
    _beside_varbvs(X, y)


def _beside_varbvs(X: np.ndarray, y: np.ndarray) -> None:
    share = 1 / (1 + np.exp(-np.log(10) * np.log10(3 / 1001)))
    b = cv.SpikeSlab("b", share, precision=1 / (0.2 * 6.3), length=X.shape[1])
    model = cv.Model(cv.Normal("y", cv.dot(COLUMNS, b), 1 / 6.3, plates=OBS))
    begun = time.perf_counter()
    posterior = model.fit({"X": X, "y": y}, tol=1e-12, max_iter=3000)
    seconds = time.perf_counter() - begun
    known = -1373.8937192998
    print(
        f"{'varbvs':18}{known:18.8f}{posterior.elbo:18.8f}{posterior.elbo - known:12.1e}{seconds:7.2f}  spike and slab"
    )


def beside_mofa(folder: Path) -> None:
    """Print the bounds of factor analysis of three views, plain and with sparse loadings."""
    table = np.load(folder / "mofapy2_views.npz")
    views = [table[f"view_{m}"] - table[f"view_{m}"].mean(axis=0) for m in range(3)]
    data = {f"y{m}": view for m, view in enumerate(views)}
    print(
        f"\n{'three views':26}{'mofapy2, at its stop':>22}{'after 12,000':>15}{'caviar':>15}{'sweeps':>8}{'s':>7}"
    )
    known = {False: (-188560.5776, -188531.1508), True: (-182348.6853, -182321.9690)}
    for sparse, word in ((False, "relevances"), (True, "spike and slab")):
        for sweeps in (20, 60):
            begun = time.process_time()
            posterior = _views(views, sparse).fit(data, seed=0, max_iter=sweeps)
            seconds = time.process_time() - begun
            stop, long = known[sparse]
            print(
                f"{word:26}{stop:22.4f}{long:15.4f}{posterior.elbo:15.4f}{posterior.n_iter:8}{seconds:7.2f}"
            )


def _views(views: list[np.ndarray], sparse: bool, size: int = 10) -> cv.Model:
    factor = cv.Plate("factor", size)
    z = cv.MultivariateNormal("z", np.zeros(size), np.eye(size), plates=OBS)
    leaves = []
    for m, view in enumerate(views):
        column = cv.Plate(f"column{m}", view.shape[1])
        relevance = cv.Gamma(f"alpha{m}", 1e-14, 1e-14, plates=factor)
        w: Any = cv.MultivariateNormal(f"w{m}", np.zeros(size), cv.diagonal(relevance), plates=column)
        if sparse:
            share = cv.Beta(f"share{m}", 1, 1, plates=factor)
            w = cv.SpikeSlab(f"w{m}", share, precision=relevance, plates=column)
        noise = cv.Gamma(f"tau{m}", 1e-3, 1e-3, plates=column)
        leaves.append(cv.Normal(f"y{m}", cv.dot(w, z), noise, plates=(OBS, column)))
    return cv.Model(*leaves)


def at_large(n_rows: int, n_columns: int, dtype: str) -> None:
    """Print seconds a sweep over a simulated table in memory, beside the bare products in the same run."""
    rng = np.random.default_rng(0)
    X = np.empty((n_rows, n_columns), dtype=dtype)
    for start in range(0, n_rows, 1000):
        X[start : start + 1000] = rng.standard_normal(X[start : start + 1000].shape, dtype=np.float32)
    y = 0.3 * X[:, 5] - 0.2 * X[:, 77] + rng.standard_normal(n_rows)
    tau = cv.Gamma("tau", 1, 1)
    spikes = cv.SpikeSlab("b", 1e-3, precision=5.0, length=n_columns)
    models = {
        "ten single effects": single_effects(10, n_columns, 5.0, tau),
        "spike and slab": cv.Model(cv.Normal("y", cv.dot(COLUMNS, spikes), cv.Gamma("t", 1, 1), plates=OBS)),
    }
    print(
        f"\n{n_rows:,} rows x {n_columns:,} columns of {dtype}, {X.nbytes / 1e9:.2f} GB; wall and processor s"
    )
    for name, model in models.items():
        times = [_clocks()]
        before = _bare_products(X, y)
        model.fit(
            {"X": X, "y": y},
            init="prior",
            max_iter=6,
            tol=0.0,
            progress=lambda _, times=times: times.append(_clocks()),
        )
        bare = (before + _bare_products(X, y)) / 2
        # the first iterations are one sweep each; later ones also try a step beyond the update
        wall, own = np.median(np.diff(times[1:4], axis=0), axis=0)
        print(
            f"{name:20} before {times[1][0] - times[0][0]:7.2f}, a sweep {wall:6.2f} {own:6.2f}; "
            f"ten times X'r and Xb {10 * bare[0]:6.2f} {10 * bare[1]:6.2f}"
        )
    print(f"memory at most {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GB")


def _clocks() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


def _bare_products(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return wall and processor seconds of X'r and Xb."""
    r, b = y.astype(X.dtype), np.ones(X.shape[1], dtype=X.dtype)
    times = [_clocks()]
    for _ in range(3):
        _ = X.T @ r, X @ b
        times.append(_clocks())
    return np.median(np.diff(times, axis=0), axis=0)


def main() -> None:
    """Run what the arguments ask for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--data", type=Path, help="folder with finemap and mofa; left out, only the simulated table"
    )
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--columns", type=int, default=1_000)
    parser.add_argument("--dtype", choices=("float32", "float64"), default="float64")
    given = parser.parse_args()
    if given.data is not None:
        beside_susie(given.data / "finemap")
        beside_mofa(given.data / "mofa")
    at_large(given.rows, given.columns, given.dtype)


if __name__ == "__main__":
    main()
