r"""How far q is from the posterior, told by the weights that would turn draws of one into draws of the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._errors import ModelError, ParameterError
from .._typing import Array
from ..engine.given_globals import why_inexact
from ..engine.passes import Passes
from ..engine.plan import Plan
from ..engine.point import PointMass
from .arviz import smoothed
from .draws import draws_of

__all__ = ["Diagnosis", "diagnosis_of"]

_FEWEST = 100
"""Draws below which the tail of the weights has too few for its shape to be told."""

_ROUNDING = 1e-10
"""Differences of log weights, relative to the log joint density, that are rounding."""


@dataclass(frozen=True, eq=False, repr=False)
class Diagnosis:
    r"""What importance weights of draws from q say of q.

    .. math:: w_s = \frac{p(x, \theta_s)}{q(\theta_s)}, \qquad \theta_s \sim q

    The local variables are integrated out. The weights are all equal where q is the posterior of the globals. Else they
    have a tail, of which a generalised Pareto distribution is fitted; its shape k tells how many moments the weights
    have (1/k of them).

    Attributes
    ----------
    pareto_k
        The shape k: below 0.5 q is close to the posterior; below 0.7 it is near enough for its draws to be
        corrected by the weights; from 0.7 on it is not: its variances are not to be relied on, and its means are to be
        checked. Where all weights are equal to rounding it is 0.
    log_weights
        Of each draw, shape (n_draws,), in nats; not normalised.
    log_evidence
        Estimate of log p(x): the log of the mean weight. Of a model with exchangeable components it may fall short by
        up to log K!, for q has one of their orders and the draws with it. Not to be trusted where k >= 0.7.
    log_evidence_error
        Its standard error.
    effective_draws
        1 / sum of the squared, smoothed and normalised weights.
    elbo
        The ELBO of the same factors; what it lacks to ``log_evidence`` is KL(q || posterior), local factors included.

    References
    ----------
    Y. Yao, A. Vehtari, D. Simpson and A. Gelman, "Yes, but did it work?: Evaluating variational inference", *ICML*
    2018; A. Vehtari, D. Simpson, A. Gelman, Y. Yao and J. Gabry, "Pareto smoothed importance sampling", *JMLR* 25
    (2024).
    """

    pareto_k: float
    log_weights: Array
    log_evidence: float
    log_evidence_error: float
    effective_draws: float
    elbo: float

    @property
    def verdict(self) -> str:
        """What k says, in a word: "good", "usable" or "poor"."""
        return "good" if self.pareto_k < 0.5 else "usable" if self.pareto_k < 0.7 else "poor"

    def __repr__(self) -> str:
        advice = {
            "good": "q is close to the posterior of the globals",
            "usable": "q is near the posterior of the globals; importance weights correct its draws",
            "poor": "q is far from the posterior of the globals: do not rely on its variances, and check its means",
        }[self.verdict]
        return (
            f"Pareto k {self.pareto_k:.2f}, {self.verdict}: {advice}\n"
            f"effective draws {self.effective_draws:.0f} of {len(self.log_weights)}\n"
            f"log p(x) {self.log_evidence:.3f} +- {self.log_evidence_error:.3f} nats, ELBO {self.elbo:.3f}"
        )


def diagnosis_of(
    factors: Mapping[str, Any],
    plan: Plan,
    passes: Passes,
    elbo: float,
    n_draws: int,
    rng: np.random.Generator,
) -> Diagnosis:
    """Return the diagnosis of the factors of all globals, from a plan in which each is a point mass.

    Raises
    ------
    ModelError
        If the weights cannot be computed: the message says why.
    ParameterError
        If there are too few draws.
    """
    if n_draws < _FEWEST:
        raise ParameterError(
            f"the tail of the weights needs n_draws of at least {_FEWEST} (1000 is a good number); got {n_draws}"
        )
    if all(isinstance(factor, PointMass) for factor in factors.values()):
        raise ModelError(
            "every global is a point mass, and draws of a point have no weights: fit with fewer names in point="
        )
    reason = why_inexact(plan)
    if reason:
        raise ModelError(
            f"the weights of draws from q need p(x, globals): {reason}. Where factors= took a joint factor apart, "
            f"leave it out; caviar.testing.check_model checks the fit in another way"
        )
    draws = draws_of(factors, n_draws, rng)
    log_joint = draws.log_joint(plan, passes)
    log_weights = log_joint - draws.log_q
    size = np.maximum(1.0, np.max(np.abs(log_joint)) + np.max(np.abs(draws.log_q)))
    if np.ptp(log_weights) <= _ROUNDING * size:
        normalised, k = np.full(n_draws, -np.log(n_draws)), 0.0
    else:
        normalised, k = smoothed(log_weights)
    weights = np.exp(log_weights - log_weights.max())
    mean = float(np.mean(weights))
    return Diagnosis(
        k,
        log_weights,
        float(log_weights.max() + np.log(mean)),
        float(np.std(weights) / mean / np.sqrt(n_draws)),
        float(np.exp(-np.logaddexp.reduce(2 * normalised))),
        elbo,
    )
