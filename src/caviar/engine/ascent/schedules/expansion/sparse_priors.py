r"""Priors of vectors with zeros: the precision of their slabs and the probability that an entry is not zero.

An entry has, of messages h and s from the data,

.. math:: \mathrm{logit}\, \gamma = \psi + \tfrac12 E[\log\alpha] - \tfrac12 \log(\alpha + s)
          + \frac{h^2}{2(\alpha + s)}, \qquad \psi = E[\mathrm{logit}\, \pi].

Where a coordinate falls silent, updates raise :math:`\alpha` by about s a turn, and move :math:`\psi` by one over the
number of entries: hundreds of turns until both are where they lead.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import digamma, expit

from ....._typing import Array, Statistics
from .....language import Beta, Gamma, SparseVector, Variable
from ...problem import Problem
from .groups import is_free, known_parameters, own_prior
from .relevance import bracketed

_ROUNDS = 2
"""Of precisions and probabilities in turn."""

_FAR_PRECISION, _FAR_ODDS = 0.7, 0.3
"""Change of the logarithm of a precision, and of the log-odds, that is worth a pass over the rows."""


@dataclass(frozen=True, eq=False)
class SparsePriors:
    """The priors of a vector with zeros, that are learnt from it alone.

    Attributes
    ----------
    variable
        The vector.
    relevance
        Precisions of its slabs, one for each entry of the vector.
    share
        Probabilities that an entry is not zero; None where these are not learnt.
    """

    variable: SparseVector
    relevance: Gamma
    share: Beta | None

    @property
    def priors(self) -> tuple[Variable, ...]:
        """What is learnt."""
        return (self.relevance,) if self.share is None else (self.relevance, self.share)

    def settled(
        self, problem: Problem, naturals: dict[Variable, Statistics]
    ) -> dict[Variable, Statistics] | None:
        """Return natural parameters of the priors where turns of updates lead; None where they are near there."""
        included, linear, quadratic = (np.asarray(own) for own in naturals[self.variable])
        size = quadratic.shape[-1]
        shape, negative_rate = naturals[self.relevance]
        log_alpha = np.log(shape / -negative_rate)
        below = digamma(shape) - np.log(shape)
        slabs = _Slabs(
            odds=(included - 0.5 * (log_alpha + below)).reshape(-1, size),
            linear=np.broadcast_to(linear, quadratic.shape).reshape(-1, size),
            curvature=np.maximum(-2.0 * quadratic - np.exp(log_alpha), 0.0).reshape(-1, size),
            below=below,
            prior=known_parameters(problem, self.relevance, size),
            share=None if self.share is None else known_parameters(problem, self.share, size),
        )
        found, shift, count = slabs.settled(log_alpha)
        is_far = np.abs(found - log_alpha).max() > _FAR_PRECISION or np.abs(shift).max() > _FAR_ODDS
        if not is_far:
            return None
        own_shape = slabs.prior[0] + 0.5 * count
        new: dict[Variable, Statistics] = {self.relevance: (own_shape, -own_shape * np.exp(-found))}
        if self.share is not None and slabs.share is not None:
            new[self.share] = (slabs.share[0] + count, slabs.share[1] + len(slabs.odds) - count)
        return new


@dataclass(frozen=True, eq=False)
class _Slabs:
    """Entries, (D, K): log-odds before the slabs, messages; and of each coordinate E log precision below its log mean.

    ``prior`` has shape and rate of precisions, ``share`` the two numbers of probabilities, (K,) each.
    """

    odds: Array
    linear: Array
    curvature: Array
    below: Array
    prior: tuple[Array, ...]
    share: tuple[Array, ...] | None

    def settled(self, log_alpha: Array) -> tuple[Array, Array, Array]:
        """Return log precisions, shifts of the log-odds, and expected entries that are not zero, (K,) each."""
        shift = np.zeros_like(log_alpha)
        for _ in range(_ROUNDS):
            log_alpha = bracketed(log_alpha, lambda logs, at=shift: self._updated(logs, at) > logs)
            if self.share is None:
                break
            # with a learnt probability all entries of a coordinate have the same log-odds
            base = self.odds[0]
            odds = bracketed(
                base + shift,
                lambda odds, at=log_alpha, base=base: self._log_odds_of_share(at, odds - base) > odds,
            )
            shift = odds - base
        return log_alpha, shift, self._inclusion(log_alpha, shift)[0].sum(axis=0)

    def _inclusion(self, log_alpha: Array, shift: Array) -> tuple[Array, Array]:
        """Return probabilities that entries are not zero, and their expected squares then, (D, K) each."""
        width = 1.0 / (np.exp(log_alpha) + self.curvature)
        square = np.square(self.linear * width)
        gain = 0.5 * (log_alpha + self.below + np.log(width) + square / width)
        return expit(self.odds + shift + gain), width + square

    def _updated(self, log_alpha: Array, shift: Array) -> Array:
        inclusion, squares = self._inclusion(log_alpha, shift)
        shape, rate = self.prior
        total = (inclusion * squares).sum(axis=0)
        return np.log(shape + 0.5 * inclusion.sum(axis=0)) - np.log(rate + 0.5 * total)

    def _log_odds_of_share(self, log_alpha: Array, shift: Array) -> Array:
        """Return the expected log-odds after an update, (K,)."""
        assert self.share is not None
        count = self._inclusion(log_alpha, shift)[0].sum(axis=0)
        return digamma(self.share[0] + count) - digamma(self.share[1] + len(self.odds) - count)


def sparse_priors_of(problem: Problem, variable: Variable) -> SparsePriors | None:
    """Return the priors of a vector with zeros if they are learnt from it alone, with a precision for each entry."""
    if not isinstance(variable, SparseVector) or not variable.is_sequential or variable in problem.point:
        return None
    if not is_free(problem, variable):
        return None
    relevance = own_prior(problem, variable, "precision", Gamma)
    share = own_prior(problem, variable, "probability", Beta)
    if not isinstance(relevance, Gamma) or not relevance.plates:
        return None
    return SparsePriors(variable, relevance, share if isinstance(share, Beta) and share.plates else None)
