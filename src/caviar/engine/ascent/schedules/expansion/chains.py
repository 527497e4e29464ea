r"""Linear Gaussian chains that turn: states, and a transition that has the optimal factor for every turn.

With the states :math:`R s_t` the sums of second moments are :math:`R F R'` of first states, :math:`R S_- R'` and
:math:`R S_+ R'` of the states before and after a step, and :math:`R C R'` of pairs :math:`s_{t-1} s_t'`. The rows of
the transition then have the factors

.. math:: \Lambda_i = \Lambda_0 + q_i R S_- R', \qquad h_i = h_0 + q_i (R C R')_{\cdot i},

with which states and transition together say

.. math:: \ell(R) = -\tfrac12 \mathrm{tr}(P_0 R F R') + p_0' R f - \tfrac12 \mathrm{tr}(Q R S_+ R')
          + \sum_i \left(\tfrac12 h_i' \Lambda_i^{-1} h_i - \tfrac12 \log |\Lambda_i|\right).

Source: Luttinen, "Fast variational Bayesian linear state-space model" (ECML 2013), where the factor of the transition
is turned too; here it is at its optimum.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ....._typing import Array, Statistics

_LEAST_LEFT = 1e-3
"""Of the variance of a step, that steps leave of a state at least."""


@dataclass(frozen=True)
class TurnedChain:
    """What is known of the states of a chain, and of its transition.

    Attributes
    ----------
    first, before, pairs, after
        Sums of second moments: F, S_-, C and S_+, (K, K) each.
    first_mean
        Sum of the means of first states, f: (K,).
    count
        States of all sequences.
    first_precision, first_linear
        Of first states, P_0 (K, K) and p_0 (K,).
    noise
        Expected precisions of the steps, q: (K,).
    prior_linear, prior_precision
        Of the rows of the transition, h_0 (K, K), a row for each, and Lambda_0 (K, K).
    is_dual
        Whether they turn by the inverse transpose of R.
    """

    first: Array
    before: Array
    pairs: Array
    after: Array
    first_mean: Array
    count: float
    first_precision: Array
    first_linear: Array
    noise: Array
    prior_linear: Array
    prior_precision: Array
    is_dual: bool = False

    @property
    def curvature(self) -> Array:
        """About that of what is said, by the entry k, j of a turn: what steps and first states leave of j, (K, K)."""
        mean, *_ = self._regressions(self.before, self._linear)
        left = np.diagonal(self.after - mean @ self.pairs + self.first @ self.first_precision)
        return np.outer(self.noise, np.maximum(left, _LEAST_LEFT * self.count / self.noise))

    @property
    def _linear(self) -> Array:
        return self.prior_linear + self.noise[:, None] * self.pairs.T

    def turned(self, turn: Array) -> TurnedChain:
        """Return the states after a turn."""
        names = ("first", "before", "pairs", "after")
        moved = {name: turn @ getattr(self, name) @ turn.T for name in names}
        return replace(self, **moved, first_mean=turn @ self.first_mean)

    def natural_after(self, turn: Array, back: Array, natural: Statistics) -> Statistics:
        """Return the natural parameters of the rows of the transition at their optimum, (K, K) and (K, K, K)."""
        own = self.turned(turn)
        return own._linear, -0.5 * (own.prior_precision + own.noise[:, None, None] * own.before)

    def value(self, turn: Array) -> tuple[float, Array]:
        """Return what chain and transition say of turned states, and its derivative by the entries of ``turn``."""
        before, pairs, after, first = (
            turn @ own for own in (self.before, self.pairs, self.after, self.first)
        )
        linear = self.prior_linear + self.noise[:, None] * (turn @ pairs.T)
        mean, log_dets, uncertain = self._regressions(before @ turn.T, linear)
        weighted = self.noise[:, None] * mean
        of_first, of_after = self.first_precision @ first, self.noise[:, None] * after
        total = 0.5 * (np.vdot(linear, mean) - log_dets - np.vdot(of_first + of_after, turn))
        total += self.first_linear @ turn @ self.first_mean
        slope = weighted.T @ turn @ self.pairs.T + weighted @ pairs
        slope -= (mean.T @ weighted + uncertain) @ before + of_first + of_after
        slope += np.outer(self.first_linear, self.first_mean)
        return float(total), slope

    def _regressions(self, before: Array, linear: Array) -> tuple[Array, float, Array]:
        """Return the means of the rows (K, K), the sum of log determinants, and of noise times covariances (K, K)."""
        is_same = not np.ptp(self.noise)
        noise = self.noise[:1] if is_same else self.noise
        precision = self.prior_precision + noise[:, None, None] * before
        covariance = np.linalg.inv(precision)
        log_dets = np.linalg.slogdet(precision)[1]
        if is_same:
            return linear @ covariance[0], len(linear) * float(log_dets[0]), self.noise.sum() * covariance[0]
        mean = (covariance @ linear[..., None])[..., 0]
        return mean, float(log_dets.sum()), np.tensordot(noise, covariance, 1)
