r"""The ELBO estimated from draws, for the claim that the value a fit reports is the ELBO of its factors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from caviar._errors import ParameterError
from caviar._typing import AnyArray, Array
from caviar.families import ExponentialFamily, JointLabels, LabelFrequencies
from caviar.families.shared.shared_factor import SharedFactor
from caviar.posterior.evidence.log_joint import log_joints, stacked
from caviar.posterior.simulation import one_by_one

if TYPE_CHECKING:
    from caviar.posterior.posterior import Posterior


_LAST = 1_000
"""Turn of what is drawn after all others."""


@dataclass(frozen=True)
class ElboEstimate:
    """An ELBO in nats, and the standard error of its estimate."""

    value: float
    error: float


def elbo_estimate(
    posterior: Posterior, data: Mapping[str, Any], *, n_draws: int = 500, seed: int | np.random.Generator = 0
) -> ElboEstimate:
    r"""Return the ELBO of a posterior as a mean over draws of all its factors, global and local.

    .. math:: \mathrm{E}_q[\log p(x, z) - \log q(z)] \approx \frac1S \sum_s \log p(x, z_s) - \log q(z_s)

    It evaluates the densities of the families at the draws and uses none of the terms, expectations and entropies of a
    fit. A point mass has no density and adds nothing to log q, as in the objective of the fit. A repetition without an
    observation below it, such as a group without rows, integrates to one and adds nothing to either sum.

    Parameters
    ----------
    posterior
        Posterior of a fit without sample weights.
    data
        As for the fit.
    n_draws
        Number of draws, at least 2. Each takes an evaluation of all densities.
    seed
        Seed of the draws.

    Examples
    --------
    >>> import caviar as cv
    >>> p = cv.Beta("p", 1, 1)
    >>> data = {"x": [1, 1, 0]}
    >>> posterior = cv.Model(cv.Bernoulli("x", p, plates=cv.Plate("obs"))).fit(data)
    >>> round(elbo_estimate(posterior, data).value, 6), round(posterior.elbo, 6)
    (-2.484907, -2.484907)
    """
    if n_draws < 2:
        raise ParameterError(f"n_draws must be at least 2, for a standard error; got {n_draws}")
    rng = np.random.default_rng(seed)
    local = posterior.local(data, anew=False)
    rows_at = row_axes(posterior, local)
    counted = posterior._counted(data)
    values, log_q = draws_of(posterior, local, rng, n_draws, counted)
    values |= {name: rows_to(values[name], axis) for name, axis in rows_at.items()}
    samples = log_joints(posterior.model.nodes, data, values, n_draws, counted) - log_q
    return ElboEstimate(float(samples.mean()), float(samples.std(ddof=1) / np.sqrt(n_draws)))


def draws_of(
    posterior: Posterior,
    local: Mapping[str, Any],
    rng: np.random.Generator,
    n_draws: int,
    counted: Mapping[str, AnyArray],
) -> tuple[dict[str, Any], Array]:
    """Return draws of every latent variable, (draws, ...), and the log densities under q of what of them is counted."""
    distributions = {name: q for name, q in posterior._independent.items() if name not in local} | dict(local)
    values: dict[str, Any] = {}
    log_q = np.zeros(n_draws)
    for name, q in distributions.items():
        # a label that shares a factor is drawn given the others
        is_alone = isinstance(q, ExponentialFamily) and not isinstance(q, JointLabels | LabelFrequencies)
        if is_alone and not posterior.model.variables[name].summed:
            values[name] = q.sample(n_draws, rng)
            density = q.log_density(values[name])
            density = density[:, counted[name]] if name in counted else density
            log_q += density.reshape(n_draws, -1).sum(axis=1)
    others = {name: q for name, q in distributions.items() if name not in values}
    if others:
        drawn, found = zip(
            *(_draw(posterior, others, own, rng, counted) for own in one_by_one(values, n_draws)), strict=True
        )
        values |= {name: stacked([own[name] for own in drawn]) for name in drawn[0]}
        log_q += np.array(found)
    return values, log_q


def _draw(
    posterior: Posterior,
    distributions: Mapping[str, Any],
    known: Mapping[str, Any],
    rng: np.random.Generator,
    counted: Mapping[str, AnyArray],
) -> tuple[dict[str, Any], float]:
    """Return a draw given values of other variables, and the log density under q of its counted part."""
    values: dict[str, Any] = {}
    log_q = 0.0
    for q in distributions.values():
        if isinstance(q, SharedFactor):
            drawn = q.sample(None, rng)
            values |= drawn
            log_q += float(q.log_density(drawn, q.family.counted([counted.get(own) for own in q.names])))
    # what depends on labels comes after them
    for name, stated in sorted(distributions.items(), key=_turn):
        if isinstance(stated, SharedFactor):
            continue
        q = _given(posterior, stated, {**known, **values})
        values[name] = q.sample(None, rng)
        if hasattr(q, "log_density"):
            density = np.asarray(q.log_density(values[name]))
            log_q += float(np.sum(density[counted[name]] if name in counted else density))
    return values, log_q


def _given(posterior: Posterior, stated: Any, values: Mapping[str, Any]) -> Any:
    """Return the distribution of a variable given those before it in its factor."""
    if hasattr(stated, "conditional"):
        return conditional_on_labels(posterior, stated, values)
    return stated.given(values) if isinstance(stated, JointLabels | LabelFrequencies) else stated


def rows_to(value: Any, axis: int) -> Any:
    """Return draws whose rows are the axis behind them with the rows at an axis of one; a joint factor's are a pair."""
    if isinstance(value, tuple):
        return type(value)(*(np.moveaxis(part, 1, axis + 1) for part in value))
    return np.moveaxis(value, 1, axis + 1)


def _turn(own: tuple[str, Any]) -> int:
    """Return when a variable is drawn: labels that share a factor after the chain in it, what they switch at last."""
    if hasattr(own[1], "conditional"):
        return _LAST
    return own[1].place if isinstance(own[1], JointLabels | LabelFrequencies) else 0


def conditional_on_labels(posterior: Posterior, q: Any, values: Mapping[str, Any]) -> Any:
    """Return the distribution of each row's value given the values of the labels that switch it."""
    sizes = tuple(posterior.model.variables[label].dimension or 1 for label in q.names)
    labels = np.ravel_multi_index(tuple(values[label] for label in q.names), sizes)
    return q.conditional[np.arange(len(q.probabilities)), labels]


def row_axes(posterior: Posterior, local: Mapping[str, Any]) -> dict[str, int]:
    """Return the axis of the rows in the values of each local variable; their factors have it first."""
    plates = {name: posterior.model.variables[name].plates for name in local}
    axes = {name: [plate is posterior.data_plate for plate in own] for name, own in plates.items()}
    return {name: own.index(True) for name, own in axes.items() if True in own}
