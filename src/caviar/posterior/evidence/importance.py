r"""Importance sampling of the globals, with a proposal that has the covariance of linear response.

.. math:: w_s = \frac{p(x, \theta_s)}{r(\theta_s)}, \qquad \theta_s \sim r, \qquad p(x) = \mathrm E_r[w]

The proposal r is a Student-t distribution of the globals as one vector without constraints. Two rounds of pilot draws
move it to the mean and covariance that their weights tell; the draws that count are made afterwards, so the estimate of
p(x) has no bias.

The posterior of a mixture is the same in every order of components that the model does not distinguish. Draws are put
in the order nearest to the fit, in which they have the density of the proposal summed over all orders,

.. math:: w_s = \frac{p(x, \theta_s)}{\sum_\pi r(\pi \theta_s)}

So draws in which components have changed places have no large weights, and the mean weight is p(x) over the number of
orders, as it is where components are far apart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._errors import ModelError
from ..._tables import html_of
from ..._typing import Array
from ..diagnostics.diagnosis import USABLE
from ..diagnostics.pareto import smoothed
from ..diagnostics.tail import log_mean_of, tail_of
from ..weighted import Weighted, WeightedDraws
from .coordinates import Coordinates
from .mixed import Mixed
from .relabelling import Relabelling
from .student import Student

_DF = 10.0
"""Degrees of freedom of proposals: tails of logarithms of scales and of log odds are longer than a Normal's."""

_ROUNDS, _ROUNDS_OF_MIXTURE = 2, 6
"""Of pilot draws, each half as many as are made in the end; and of a mixture, each a quarter as many."""

_MOST_MIXED = 30
"""Coordinates of which the covariances of all parts can be told from as many draws."""


@dataclass(frozen=True, eq=False, repr=False)
class ImportanceSample:
    """Draws of the globals with importance weights; see :meth:`Posterior.importance_sample`.

    Attributes
    ----------
    draws
        Name -> values, shape (n_draws, plates..., event...); for a joint factor, a pair (mean, precision) of such
        arrays.
    log_weights
        Log weight of each draw, smoothed and normalised: the weights sum to one.
    pareto_k, pareto_k_error
        Shape k of the tail of the weights, and its standard error. The weights are usable below 0.7, and have a finite
        variance below 0.5.
    effective_draws
        Effective number of draws, 1 / sum of the squared weights.
    log_evidence, log_evidence_error
        Estimate of log p(x), the log of the mean weight, and its standard error.
    n_orders
        In how many orders the components have the same posterior. All draws are in the order nearest to the fit, and
        the evidence is that of one order.
    """

    draws: Mapping[str, Any]
    log_weights: Array
    pareto_k: float
    pareto_k_error: float
    effective_draws: float
    log_evidence: float
    log_evidence_error: float
    n_orders: int = 1

    @property
    def is_usable(self) -> bool:
        """Whether the weights are usable: k is below 0.7."""
        return self.pareto_k < USABLE

    @property
    def weights(self) -> Array:
        """Weight of each draw; the weights sum to one."""
        return np.exp(self.log_weights)

    def kept(self, doubt: str = "") -> WeightedDraws:
        """Return the draws that a posterior keeps, with a sentence on why they may be wrong."""
        return WeightedDraws.of_few_numbers(self.draws, self.weights, doubt)

    def mean(self, name: str) -> Array:
        """Return the posterior mean of each entry of a variable; a joint factor needs its part, as in "theta.mean"."""
        return self._weighted(name).mean

    def sd(self, name: str) -> Array:
        """Return the posterior standard deviation of each entry of a variable."""
        return self._weighted(name).sd

    def interval(self, name: str, level: float = 0.95) -> Array:
        """Return the central interval of each entry of a variable: lower ends, then upper ends, shape (2, ...).

        Parameters
        ----------
        name
            Name of the variable; for a joint factor with its part, as in ``"theta.mean"``.
        level
            Probability, between 0 and 1.
        """
        return self._weighted(name).interval(level)

    def _weighted(self, name: str) -> Weighted:
        return Weighted(self._of(name), self.weights)

    def _of(self, name: str) -> Array:
        """Return the draws of a variable, or of a part of a joint one."""
        found: dict[str, Any] = {}
        for own, value in self.draws.items():
            pair = (
                zip((".mean", ".precision"), value, strict=True)
                if isinstance(value, tuple)
                else [("", value)]
            )
            found |= {own + part: values for part, values in pair}
        if name not in found:
            raise ModelError(f"there are draws of {', '.join(map(repr, found))}; got {name!r}")
        return np.asarray(found[name], dtype=np.float64)

    def _repr_html_(self) -> str:
        """Return the figures as a table, for a notebook."""
        cells = [
            ("figure", "value", ""),
            ("effective draws", f"{self.effective_draws:.0f}", f"of {len(self.log_weights):,}"),
            ("Pareto k", f"{self.pareto_k:.2f}", f"± {self.pareto_k_error:.2f}"),
            ("log p(x), nats", f"{self.log_evidence:.3f}", f"± {self.log_evidence_error:.2g}"),
        ]
        return html_of("Importance sample", cells)

    def __repr__(self) -> str:
        return (
            f"ImportanceSample({len(self.log_weights)} draws, effectively {self.effective_draws:.0f}; Pareto k "
            f"{self.pareto_k:.2f} +- {self.pareto_k_error:.2f}; log p(x) {self.log_evidence:.3f} +- "
            f"{self.log_evidence_error:.2g} nats)"
        )


def importance_sample(
    coordinates: Coordinates,
    center: Array,
    covariance: Array,
    log_joint: Callable[[Mapping[str, Any]], Array],
    n_draws: int,
    rng: np.random.Generator,
    relabelling: Relabelling,
    *,
    is_mixed: bool,
) -> ImportanceSample:
    """Return weighted draws.

    Parameters
    ----------
    coordinates
        Of the globals.
    center, covariance
        Of the coordinates, about: those of the first proposal.
    log_joint
        Returns log p(x, globals) of n values of all globals, what the rows hide integrated out: (n,).
    n_draws
        Number of draws.
    rng
        Seed of the draws.
    relabelling
        Puts components in the order of the fit.
    is_mixed
        Whether further rounds make the proposal a mixture, if there are few coordinates.
    """
    first, is_mixed = Student(center, covariance, _DF), is_mixed and len(center) <= _MOST_MIXED
    target = _Target(coordinates, log_joint, relabelling)
    try:
        draws, log_weights = _drawn(target, first, n_draws, rng, is_mixed=is_mixed)
    except _NoNumbersError:
        relabelling = Relabelling(())
        target = _Target(coordinates, log_joint, relabelling)
        draws, log_weights = _drawn(target, first, n_draws, rng, is_mixed=False)
    tail = tail_of(log_weights)
    evidence, error = log_mean_of(log_weights, tail)
    effective = float(np.exp(-np.logaddexp.reduce(2 * tail.log_weights)))
    figures = tail.log_weights, tail.k, tail.error, effective, evidence, error
    return ImportanceSample(draws, *figures, relabelling.n_orders)


class _NoNumbersError(Exception):
    """Draws are beyond the numbers that there are, as rates below the least one: they have no order, and no weights."""


# draws beyond the numbers that there are show in their weights
@np.errstate(all="ignore")
def _drawn(
    target: _Target, first: Student, n_draws: int, rng: np.random.Generator, *, is_mixed: bool
) -> tuple[dict[str, Any], Array]:
    """Return draws of all globals and their log weights, (n,), from a proposal that pilot draws have moved.

    Raises
    ------
    _NoNumbersError
        If draws that were put in order, or those of a mixture, are not finite.
    """
    proposal = _proposal(target, first, n_draws, rng, is_mixed=is_mixed)
    draws, log_weights = target.weighed(proposal, proposal.sample(n_draws, rng))
    if (is_mixed or target.relabelling.nearest) and np.isnan(log_weights).any():
        raise _NoNumbersError
    return draws, log_weights


def _proposal(
    target: _Target, first: Student, n_draws: int, rng: np.random.Generator, *, is_mixed: bool
) -> Student | Mixed:
    """Return a proposal that pilot draws have moved.

    Raises
    ------
    _NoNumbersError
        If draws that were put in order, or those of a mixture, are not finite.
    """
    proposal, found = first, (np.zeros((0, len(first.location))), np.zeros(0))
    for _ in range(_ROUNDS):
        found = target.pilots(proposal, max(n_draws // 2, 100), rng)
        if is_mixed or target.relabelling.nearest:
            _refuse_no_numbers(*found)
        proposal = proposal.moved(*found)
    if not is_mixed:
        return proposal
    mixed = Mixed.about(proposal, *found, rng)
    for _ in range(_ROUNDS_OF_MIXTURE):
        found = target.pilots(mixed, max(n_draws // 4, 100), rng)
        _refuse_no_numbers(*found)
        mixed = mixed.moved(*found)
    return mixed


def _refuse_no_numbers(vectors: Array, weights: Array) -> None:
    if not (np.isfinite(vectors).all() and np.isfinite(weights).all()):
        raise _NoNumbersError


@dataclass(frozen=True, eq=False)
class _Target:
    """The density that draws are weighed by."""

    coordinates: Coordinates
    log_joint: Callable[[Mapping[str, Any]], Array]
    relabelling: Relabelling

    def pilots(
        self, proposal: Student | Mixed, n_draws: int, rng: np.random.Generator
    ) -> tuple[Array, Array]:
        """Return draws as vectors, components in the order of the fit, and their weights, which sum to one."""
        vectors = proposal.sample(n_draws, rng)
        values, log_weights = self.weighed(proposal, vectors)
        if self.relabelling.nearest:
            vectors = self.coordinates.vectors(values)
        return vectors, np.exp(smoothed(log_weights)[0])

    def weighed(self, proposal: Student | Mixed, vectors: Array) -> tuple[dict[str, Any], Array]:
        """Return the values of vectors, components in the order of the fit, and the log weights of these, (n,)."""
        values = self.coordinates.values(vectors)
        if not self.relabelling.nearest:
            log_proposal = proposal.log_density(vectors) - self.coordinates.log_volume(vectors)
            return values, self.log_joint(values) - log_proposal
        values = self.relabelling(values)
        log_proposal = np.full(len(vectors), -np.inf)
        for ordered in self.relabelling.in_every_order(values):
            own = self.coordinates.vectors(ordered)
            density = proposal.log_density(own) - self.coordinates.log_volume(own)
            log_proposal = np.logaddexp(log_proposal, density)
        return values, self.log_joint(values) - log_proposal
