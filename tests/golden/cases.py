"""The cases: every model of the registries under every schedule and executor, and mechanisms that are easily lost."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from digests import figures_of_estimator, figures_of_posterior
from invariants.registry import CASES as REGISTRY
from invariants.registry import ON_DEVICES
from mechanisms import MECHANISMS, broken_off
from random_models.choices import Choices
from random_models.gaps import with_gaps, with_known_labels
from random_models.statement import state
from random_models.strategy import Drawn
from starts.registry import CASES as STARTS

import caviar as cv

__all__ = ["all_cases"]

Case = Callable[[], dict[str, Any]]

SCHEDULES: dict[str, dict[str, Any]] = {
    "batch": {},
    "plain": {"accelerate": False},
    "incremental": {"schedule": cv.Incremental(4)},
    "stochastic": {"schedule": cv.Stochastic(60), "max_iter": 3},
}
"""Arguments of a fit by schedule."""

SEVERAL_BLOCKS = (
    "joint",
    "measured-apart",
    "measured",
    "vocabulary",
    "regression",
    "robust",
    "items",
    "factors",
)
REFUSED = {("expected odds", "incremental")}
"""Schedules that a model refuses: with local factors of earlier globals its objective might fall."""

N_RANDOM, N_QUICK_RANDOM = 240, 24
_FEW = {"seed": 0, "max_iter": 8, "tol": 0.0}


def all_cases(threads: int) -> dict[str, tuple[bool, Case]]:
    """Return all cases by name, each with whether it is in the quick subset."""
    made: dict[str, tuple[bool, Case]] = {}
    for name in REGISTRY:
        for schedule in _schedules(name):
            quick = schedule in ("batch", "incremental")
            made[f"registry/{name}/{schedule}"] = quick, partial(_registered, name, schedule, threads)
        made[f"registry/{name}/weights and gaps"] = False, partial(_weighted, name, threads)
        made[f"registry/{name}/resumed"] = False, partial(_resumed, name, threads)
        made[f"registry/{name}/restarts"] = False, partial(_restarted, name, threads)
        made[f"registry/{name}/to the end"] = False, partial(_ended, name, threads)
    for name in ON_DEVICES:
        for dtype in ("float64", "float32"):
            made[f"device/{name}/{dtype}"] = name in ("joint", "tied"), partial(_on_device, name, dtype)
    for name in SEVERAL_BLOCKS:
        for schedule in SCHEDULES:
            if schedule != "plain":
                made[f"blocks/{name}/{schedule}"] = False, partial(_several_blocks, name, schedule, threads)
    for name, case in STARTS.items():
        made[f"starts/{name}"] = False, partial(_started, case, threads)
    for seed in range(N_RANDOM):
        made[f"random/{seed}"] = seed < N_QUICK_RANDOM, partial(_random, seed, threads)
    for name, case in _estimators():
        made[f"estimator/{name}"] = False, partial(case, threads)
    for name, mechanism in MECHANISMS.items():
        made[f"mechanism/{name}"] = True, partial(mechanism, threads)
    return made


def _schedules(name: str) -> dict[str, dict[str, Any]]:
    """Return the arguments of a fit by schedule, for the schedules that a model takes."""
    return {own: arguments for own, arguments in SCHEDULES.items() if (name, own) not in REFUSED}


def _drawn(name: str, n: int) -> dict[str, np.ndarray]:
    return REGISTRY[name].draw(np.random.default_rng(3), n)


def _registered(name: str, schedule: str, threads: int) -> dict[str, Any]:
    data = _drawn(name, 250)
    posterior = REGISTRY[name].fit(data, **{**_FEW, "executor": threads, **SCHEDULES[schedule]})
    return figures_of_posterior(posterior, data if schedule == "batch" else None)


def _weighted(name: str, threads: int) -> dict[str, Any]:
    """Fit with weights, some of them zero, and entries missing where the model takes such."""
    data, rng = _drawn(name, 200), np.random.default_rng(4)
    x = np.array(data["x"], dtype=float)
    x[rng.random(x.shape) < 0.15] = np.nan
    if name not in ("tallies", "robust", "deconvolved"):
        data["x"] = x
    weights = rng.gamma(0.7, size=200) * (rng.random(200) < 0.8)
    return figures_of_posterior(
        REGISTRY[name].fit(data, **_FEW, sample_weight=weights, executor=threads), data
    )


def _resumed(name: str, threads: int) -> dict[str, Any]:
    """Break a fit of each schedule off after its second iteration, and make it again."""
    data, found = _drawn(name, 250), {}
    for schedule, arguments in _schedules(name).items():
        settings = {**_FEW, "max_iter": 5, "executor": threads, **arguments}

        def fit(settings: Mapping[str, Any] = settings, **more: Any) -> cv.Posterior:
            return REGISTRY[name].fit(data, **settings, **more)

        with tempfile.TemporaryDirectory() as folder:
            posterior, _ = broken_off(fit, Path(folder) / "checkpoint", after=2)
        found |= {f"{schedule} {key}": value for key, value in figures_of_posterior(posterior).items()}
    return found


def _restarted(name: str, threads: int) -> dict[str, Any]:
    data = _drawn(name, 120)
    return figures_of_posterior(
        REGISTRY[name].fit(data, **{**_FEW, "max_iter": 4}, n_restarts=3, executor=threads)
    )


def _ended(name: str, threads: int) -> dict[str, Any]:
    """Fit with the default tolerance: accelerated moves, the end, and the look for a saddle point."""
    return figures_of_posterior(REGISTRY[name].fit(_drawn(name, 80), max_iter=60, executor=threads))


def _on_device(name: str, dtype: str) -> dict[str, Any]:
    device = cv.Device("device1", library="array_api_strict", dtype=dtype, block_rows=150)
    return figures_of_posterior(REGISTRY[name].fit(_drawn(name, 400), **_FEW, executor=device))


def _several_blocks(name: str, schedule: str, threads: int) -> dict[str, Any]:
    data = _drawn(name, 20_000 if name != "items" else 5000)
    arguments = {"schedule": cv.Stochastic(4000)} if schedule == "stochastic" else SCHEDULES[schedule]
    settings = {**_FEW, "max_iter": 2 if schedule == "stochastic" else 3, "executor": threads, **arguments}
    return figures_of_posterior(REGISTRY[name].fit(data, **settings))


def _started(case: Any, threads: int) -> dict[str, Any]:
    problem = case.problem()
    arguments = {"seed": 0, "tol": 0.0, "max_iter": 4, "executor": threads}
    found = figures_of_posterior(
        problem.model.fit(problem.data, init=problem.init, **arguments), problem.data
    )
    if problem.rows <= 400:
        default = problem.model.fit(problem.data, **arguments)
        found |= {f"default {key}": value for key, value in figures_of_posterior(default).items()}
    return found


class _Seeded(Choices):
    """Choices by a seed."""

    def __init__(self, rng: np.random.Generator) -> None:
        super().__init__(lambda options: None)
        self._rng = rng

    def pick(self, name: str, options: Any) -> Any:
        if name not in self.made:
            self.made[name] = int(self._rng.integers(len(options)))
        return super().pick(name, options)


def _random(seed: int, threads: int) -> dict[str, Any]:
    """Fit a random model under all schedules: as it is, with weights, and with gaps and labels known in part."""
    rng = np.random.default_rng([seed, 7])
    choices = _Seeded(rng)
    stated = state(choices)
    drawn = Drawn(choices, stated, seed, int(rng.integers(3, 12)))
    data, plate, found = drawn.data, stated.data_plate, {}
    every = stated.simulate_all(drawn.seed, drawn.n_rows)
    gaps = with_known_labels(stated, every, with_gaps(stated, data, drawn.rng), drawn.rng)
    weights = rng.gamma(0.7, size=drawn.n_rows) + 0.01
    fits: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {"batch": (data, {}), "gaps": (gaps, {})}
    if plate is not None:
        fits["incremental"] = data, {"schedule": cv.Incremental(3)}
        fits["stochastic"] = data, {"schedule": cv.Stochastic(4), "max_iter": 2}
        if not stated.writer.has_chain:
            fits["weights"] = data, {"sample_weight": weights}
    for name, (own, arguments) in fits.items():
        settings = {**_FEW, "max_iter": 5, "data_plate": plate, "executor": threads, **arguments}
        try:
            posterior = stated.model.fit(own, **settings)
        except cv.CaviarError as error:
            found[name] = type(error).__name__
            continue
        figures = figures_of_posterior(posterior, own if name in ("batch", "gaps") else None)
        found |= {f"{name} {key}": value for key, value in figures.items()}
    return found


def _estimators() -> Iterator[tuple[str, Callable[[int], dict[str, Any]]]]:
    rng = np.random.default_rng(11)
    X = rng.normal(size=(240, 3)) + 4 * rng.integers(0, 3, (240, 1)) * np.array([1.0, -1.0, 0.5])
    gaps = np.where(rng.random(X.shape) < 0.1, np.nan, X)
    weights = rng.gamma(1.0, size=240)
    counts = rng.poisson(1.0, (40, 25))

    def fit(make: Callable[..., Any], X: Any, threads: int, **arguments: Any) -> dict[str, Any]:
        estimator = make(random_state=0, max_iter=8, n_jobs=threads)
        return figures_of_estimator(estimator.fit(X, **arguments), X)

    for structure in ("full", "tied", "diag", "spherical", "unit"):
        for kind in (cv.BayesianGaussianMixture, cv.GaussianMixture):
            if structure == "unit" and kind is cv.GaussianMixture:
                continue
            make = partial(kind, 3, covariance_type=structure)
            yield f"{kind.__name__}/{structure}", partial(fit, make, X)
            yield f"{kind.__name__}/{structure}, weights", partial(_of_weights, fit, make, X, weights)
            yield f"{kind.__name__}/{structure}, gaps", partial(fit, make, gaps)
    bayesian = cv.BayesianGaussianMixture
    for structure in ("full", "tied", "diag", "spherical"):
        make = partial(bayesian, 3, covariance_type=structure, mean_precision_family="independent")
        yield f"BayesianGaussianMixture/{structure}, independent", partial(fit, make, X)
    sticks = partial(bayesian, 6, weight_concentration_prior_type="dirichlet_process")
    yield "BayesianGaussianMixture/sticks", partial(fit, sticks, X)
    yield "BayesianGaussianMixture/auto", partial(fit, partial(bayesian, "auto"), X)
    for method in ("batch", "online", "incremental"):
        make = partial(cv.LatentDirichletAllocation, 4, learning_method=method, batch_size=16)
        yield f"LatentDirichletAllocation/{method}", partial(fit, make, counts)
    for variance in (100.0, np.inf):
        make = partial(cv.KnownVarianceMixture, 3, prior_variance=variance)
        yield f"KnownVarianceMixture/{variance}", partial(fit, make, X[:, :1])


def _of_weights(
    fit: Callable[..., dict[str, Any]], make: Any, X: np.ndarray, weights: np.ndarray, threads: int
) -> dict[str, Any]:
    return fit(make, X, threads, sample_weight=weights)
