r"""The ELBO estimated from draws, for the claim that the value a fit reports is the ELBO of its factors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from caviar._errors import ParameterError
from caviar._typing import AnyArray
from caviar.families import JointLabels, LabelFrequencies
from caviar.families._shared import SharedFactor
from caviar.posterior.simulation import log_joint

if TYPE_CHECKING:
    from caviar.posterior.posterior import Posterior


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
    rows_at = _row_axes(posterior, local)
    counted = posterior._counted(data)
    samples = np.empty(n_draws)
    for i in range(n_draws):
        values, log_q = _draw(posterior, local, rng, counted)
        for name, axis in rows_at.items():
            values[name] = _rows_to(values[name], axis)
        samples[i] = log_joint(posterior.model.nodes, {**data, **values}, counted) - log_q
    return ElboEstimate(float(samples.mean()), float(samples.std(ddof=1) / np.sqrt(n_draws)))


def _draw(
    posterior: Posterior, local: Mapping[str, Any], rng: np.random.Generator, counted: Mapping[str, AnyArray]
) -> tuple[dict[str, Any], float]:
    """Return a draw of every latent variable, and the log density under q of what of it is counted."""
    values: dict[str, Any] = {}
    log_q = 0.0
    distributions = {name: q for name, q in posterior._independent.items() if name not in local}
    for name, q in list(distributions.items()):
        if isinstance(q, SharedFactor):
            del distributions[name]
            drawn = q.sample(None, rng)
            values |= drawn
            log_q += float(q.log_density(drawn, q.family.counted([counted.get(own) for own in q.names])))
    distributions |= {name: q for name, q in local.items() if not hasattr(q, "conditional")}
    for name, stated in sorted(distributions.items(), key=_turn):
        q = stated.given(values) if isinstance(stated, JointLabels | LabelFrequencies) else stated
        values[name] = q.sample(None, rng)
        if hasattr(q, "log_density"):
            density = np.asarray(q.log_density(values[name]))
            log_q += float(np.sum(density[counted[name]] if name in counted else density))
    for name, q in local.items():
        if hasattr(q, "conditional"):
            chosen = _conditional(posterior, q, values)
            values[name] = chosen.sample(None, rng)
            log_q += float(np.sum(chosen.log_density(values[name])))
    return values, log_q


def _rows_to(value: Any, axis: int) -> Any:
    """Return values whose rows are the first axis with the rows at ``axis``; a joint factor's are a pair."""
    if isinstance(value, tuple):
        return type(value)(*(np.moveaxis(part, 0, axis) for part in value))
    return np.moveaxis(value, 0, axis)


def _turn(own: tuple[str, Any]) -> int:
    """Return when a variable is drawn: labels that share a factor after the chain in it, in their order."""
    return own[1].place if isinstance(own[1], JointLabels | LabelFrequencies) else 0


def _conditional(posterior: Posterior, q: Any, values: Mapping[str, Any]) -> Any:
    """Return the distribution of each row's value given the values of the labels that switch it."""
    sizes = tuple(posterior.model.variables[label].dimension or 1 for label in q.names)
    labels = np.ravel_multi_index(tuple(values[label] for label in q.names), sizes)
    return q.conditional[np.arange(len(q.probabilities)), labels]


def _row_axes(posterior: Posterior, local: Mapping[str, Any]) -> dict[str, int]:
    """Return the axis of the rows in the values of each local variable; their factors have it first."""
    plates = {name: posterior.model.variables[name].plates for name in local}
    axes = {name: [plate is posterior.data_plate for plate in own] for name, own in plates.items()}
    return {name: own.index(True) for name, own in axes.items() if True in own}
