"""Recovery of known truths: data simulated from the prior, fitted, and the posterior compared with what made them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from caviar._typing import Array
from caviar.families import Categorical, ExponentialFamily

if TYPE_CHECKING:
    from caviar.fitting.model import Model


_DRAWS = 999


def coverage(
    model: Model,
    *,
    sizes: Mapping[str, int] | None = None,
    data: Mapping[str, Any] | None = None,
    replications: int = 20,
    level: float = 0.9,
    seed: int | np.random.Generator = 0,
    **arguments: Any,
) -> dict[str, float]:
    """Return the share of true values of each global variable inside the central credible intervals of its factor.

    In each replication all variables are drawn from the prior, and the model is fitted to the observed ones from a
    start at the truth (which fixes the order of exchangeable components). An exact posterior covers ``level``; mean
    field is too narrow where factors depend on each other.

    Parameters
    ----------
    model
        A model with proper priors.
    sizes, data
        As for :meth:`caviar.Model.simulate`.
    replications
        Number of simulated data sets.
    level
        Probability of the intervals, between 0 and 1.
    seed
        Seed of the draws.
    **arguments
        Further arguments of the fits.

    Returns
    -------
    dict
        Name -> share of entries, over all replications; point masses are left out.
    """
    rng = np.random.default_rng(seed)
    inside: dict[str, list[Array]] = {}
    for _ in range(replications):
        truth = model.simulate(rng, sizes=sizes, data=data)
        observed = {leaf.name: truth[leaf.name] for leaf in model.leaves}
        posterior = _fit_from_truth(model, truth, {**observed, **(data or {})}, arguments)
        for name in posterior:
            factor = posterior[name]
            if isinstance(factor, ExponentialFamily):
                inside.setdefault(name, []).append(_inside(factor, truth[name], level, rng))
    return {name: float(np.mean(np.concatenate(shares))) for name, shares in inside.items()}


def _fit_from_truth(
    model: Model, truth: Mapping[str, Any], data: Mapping[str, Any], arguments: Mapping[str, Any]
) -> Any:
    globals_ = list(model.fit(data, **{**arguments, "init": "prior", "max_iter": 0, "n_restarts": 1}))
    start = {name: _start_at(model, name, truth[name]) for name in globals_}
    return model.fit(data, **{**arguments, "init": start})


def _start_at(model: Model, name: str, truth: Any) -> Any:
    """Return the truth as a start; of a label a distribution about it, which no probability of zero holds there."""
    categories = getattr(model.variables[name], "categories", None)
    return truth if categories is None else Categorical(0.99 * np.eye(categories)[truth] + 0.01 / categories)


def _inside(factor: ExponentialFamily, truth: Any, level: float, rng: np.random.Generator) -> Array:
    draws = factor.sample(_DRAWS, rng)
    pairs = zip(draws, truth, strict=True) if isinstance(draws, tuple) else [(draws, truth)]
    found = []
    for drawn, true in pairs:
        below = (np.asarray(drawn) < np.asarray(true)).mean(axis=0)
        # labels have ties: the interval ends at a label, and holds it
        up_to = (np.asarray(drawn) <= np.asarray(true)).mean(axis=0)
        found.append(((below <= 0.5 + level / 2) & (up_to >= 0.5 - level / 2)).ravel())
    return np.concatenate(found)
