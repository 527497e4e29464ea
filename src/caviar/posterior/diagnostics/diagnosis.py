r"""How far q is from the posterior, measured by importance weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._errors import ModelError, ParameterError
from ..._tables import html_of
from ..._typing import Array
from ...engine.ascent.problem import Problem
from ...engine.evaluation.at_points import why_inexact
from ...engine.rows.row_map import RowMap
from .draws import draws_of
from .tail import GOOD, Tail, log_mean_of, tail_of

USABLE = 0.7
"""Shape from which on no practical number of draws corrects q."""

_ERRORS_BELOW = 2.0
"""Standard errors that k must be below this for q to be called close: of few draws k is often too low."""

_FEWEST = 100
"""Draws below which the tail of the weights has too few for its shape to be told."""

_ROUNDING = 1e-10
"""Differences of log weights, relative to the log joint density, that are rounding."""


@dataclass(frozen=True, eq=False, repr=False)
class Diagnosis:
    r"""How close q is to the posterior, by importance weights of draws from q; see :meth:`Posterior.diagnose`.

    .. math:: w_s = \frac{p(x, \theta_s)}{q(\theta_s)}, \qquad \theta_s \sim q

    The local variables are integrated out. The weights are equal if q is the posterior of the globals. Otherwise a
    generalised Pareto distribution is fitted to their tail; with shape k the weights have about 1/k finite moments.

    Attributes
    ----------
    pareto_k
        The shape k. Below 0.5, q is close to the posterior. Below 0.7, q is close enough for the weights to correct its
        draws. From 0.7 on it is not: means may be usable, but intervals are likely to be too narrow. It is 0 if all
        weights are equal up to rounding.
    pareto_k_error
        Standard error of k, a jackknife over 20 batches of the draws.
    log_weights
        Log weight of each draw in nats, shape (n_draws,), not normalised.
    log_evidence
        Estimate of log p(x), the log of the mean weight. If k is above 0.5 it is probably too low, because the largest
        weights are so rare that they are usually not drawn. For a model with K exchangeable components it may be up to
        log K! too low, because q covers only one of their orders.
    log_evidence_error
        Standard error of ``log_evidence``, computed cautiously for a tail of shape k + ``pareto_k_error``, or 0.5 if
        that is larger. If k <= 0.5 the exact value lies within two standard errors in at least 90% of cases.
    effective_draws
        Effective number of draws, 1 / sum of the squared, smoothed and normalised weights.
    elbo
        ELBO of the same factors. ``log_evidence`` minus the ELBO is KL(q || posterior), including local factors.
    smallest_eigenvalue
        :attr:`LinearResponse.smallest_eigenvalue`: positive at a maximum of the ELBO, negative at a saddle point. None
        if the model has no linear response.
    direction
        Direction of this eigenvalue: the variables along which the ELBO changes least, or increases.

    Examples
    --------
    >>> import caviar as cv
    >>> x = cv.Normal("x", cv.Normal("mean", 0, 0.01), cv.Gamma("tau", 2, 2), plates=cv.Plate("obs"))
    >>> data = {"x": [1.2, 0.7, 1.9, 1.4, 0.9]}
    >>> posterior = cv.Model(x).fit(data)
    >>> found = posterior.diagnose(data, seed=0)
    >>> print(round(found.pareto_k, 2), found.effective_draws > 500, round(found.log_evidence, 1))
    0.48 True -8.1

    References
    ----------
    Y. Yao, A. Vehtari, D. Simpson and A. Gelman, "Yes, but did it work?: Evaluating variational inference", *ICML*
    2018; A. Vehtari, D. Simpson, A. Gelman, Y. Yao and J. Gabry, "Pareto smoothed importance sampling", *JMLR* 25
    (2024).
    """

    pareto_k: float
    pareto_k_error: float
    log_weights: Array
    log_evidence: float
    log_evidence_error: float
    effective_draws: float
    elbo: float
    smallest_eigenvalue: float | None = None
    direction: str = ""

    @property
    def verdict(self) -> str:
        """The meaning of k in a word: "good", "usable" or "poor", or "unclear" if it may be on the other side of 0.7.

        That is, if it is less than two errors below 0.7, for few draws rarely have the largest weights, or less than
        one above.
        """
        k, error = self.pareto_k, self.pareto_k_error
        if k - error < USABLE <= k + (_ERRORS_BELOW if k < USABLE else 1.0) * error:
            return "unclear"
        return "good" if self.pareto_k < GOOD else "usable" if self.pareto_k < USABLE else "poor"

    @property
    def is_lower_estimate(self) -> bool:
        """Whether ``log_evidence`` is probably too low, because k is above 0.5."""
        return self.pareto_k > GOOD

    @property
    def _advice(self) -> str:
        """What the verdict means."""
        advice = {
            "good": "q is close to the posterior of the globals",
            "usable": "q is near the posterior of the globals; importance weights correct its draws",
            "unclear": f"more draws, such as n_draws={10 * len(self.log_weights)}, tell whether k is below 0.7; if it "
            f"is not, means may still be useful, but intervals are likely to be too narrow",
            "poor": "the posterior of the globals differs from q: means may still be useful, but intervals are likely "
            "to be too narrow",
        }[self.verdict]
        if self.verdict == "good" and self.pareto_k + self.pareto_k_error >= GOOD:
            advice += ", if k is below 0.5, which more draws tell"
        return advice

    def _repr_html_(self) -> str:
        """Return the verdict and its figures as a table, for a notebook."""
        error = "a lower estimate" if self.is_lower_estimate else f"± {self.log_evidence_error:.2g}"
        cells = [
            ("figure", "value", ""),
            ("Pareto k", f"{self.pareto_k:.2f}", f"± {self.pareto_k_error:.2f}"),
            ("effective draws", f"{self.effective_draws:.0f}", f"of {len(self.log_weights):,}"),
            ("log p(x), nats", f"{self.log_evidence:.3f}", error),
            ("ELBO, nats", f"{self.elbo:.3f}", ""),
        ]
        return html_of(f"{self.verdict}: {self._advice}", cells, [self._told_end.strip()])

    def __repr__(self) -> str:
        evidence = f"log p(x) {self.log_evidence:.3f} +- {self.log_evidence_error:.2g} nats"
        if self.is_lower_estimate:
            evidence = f"log p(x) {self.log_evidence:.3f} nats, a lower estimate as k is above {GOOD}"
        return (
            f"Pareto k {self.pareto_k:.2f} +- {self.pareto_k_error:.2f}, {self.verdict}: {self._advice}\n"
            f"effective draws {self.effective_draws:.0f} of {len(self.log_weights)}\n"
            f"{evidence}, ELBO {self.elbo:.3f}{self._told_end}"
        )

    @property
    def _told_end(self) -> str:
        """A line if the fit has not ended at a maximum; empty if it has."""
        if self.smallest_eigenvalue is None or self.smallest_eigenvalue >= 0:
            return ""
        return (
            f"\nsaddle point: the ELBO rises along {self.direction} (smallest eigenvalue "
            f"{self.smallest_eigenvalue:.2g}); fit again with another seed or more restarts"
        )


def diagnosis_of(
    factors: Mapping[str, Any],
    problem: Problem,
    row_map: RowMap,
    elbo: float,
    n_draws: int,
    rng: np.random.Generator,
    end: tuple[float | None, str] = (None, ""),
) -> Diagnosis:
    """Return the diagnosis of the factors of all globals, from a problem in which each is a point mass.

    Parameters
    ----------
    end
        The smallest eigenvalue of linear response, and its direction.

    Raises
    ------
    ModelError
        If the weights cannot be computed: the message says why.
    """
    draws = draws_of(factors, n_draws, rng)
    log_joint = draws.log_joint(problem, row_map)
    log_weights = log_joint - draws.log_q
    size = np.maximum(1.0, np.max(np.abs(log_joint)) + np.max(np.abs(draws.log_q)))
    if np.ptp(log_weights) <= _ROUNDING * size:
        evidence, error = float(np.mean(log_weights)), 0.0
        tail = Tail(0.0, 0.0, np.full(n_draws, -np.log(n_draws)))
    else:
        tail = tail_of(log_weights)
        evidence, error = log_mean_of(log_weights, tail)
    effective = float(np.exp(-np.logaddexp.reduce(2 * tail.log_weights)))
    return Diagnosis(tail.k, tail.error, log_weights, evidence, error, effective, elbo, *end)


def refuse_what_has_no_weights(factors: Mapping[str, Any], problem: Problem | None, n_draws: int) -> None:
    """Refuse what has no weights; with no problem what the rows hide is integrated out by other means.

    Raises
    ------
    ModelError
        If draws of q have none: the message says why.
    ParameterError
        If there are too few draws.
    """
    if n_draws < _FEWEST:
        raise ParameterError(
            f"the tail of the weights needs n_draws of at least {_FEWEST} (1000 is a good number); got {n_draws}"
        )
    if all(factor.learnt is None for factor in factors.values()):
        raise ModelError(
            "every global is a point mass, and draws of a point have no weights: fit with fewer names in point="
        )
    reason = "" if problem is None else why_inexact(problem)
    if reason:
        raise ModelError(
            f"draws from the fit have no exact weights here: {reason}. Where factors= took a joint factor apart, "
            f"leave it out; or check the fit by caviar.testing.check_model"
        )
