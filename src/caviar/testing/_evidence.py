"""Exact evidence, posterior and divergence of the one-dimensional mixture with known variance."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from caviar._errors import ParameterError
from caviar._typing import AnyArray, Array
from caviar.testing._enumeration import Mixture, chunks


@dataclass(frozen=True)
class ExactPosterior:
    r"""The exact posterior :math:`p(c, \mu \mid x) = p(c \mid x) \prod_k N(\mu_k; m_{ck}, v_{ck})`.

    Attributes
    ----------
    assignments
        Every assignment of rows to components, shape (A, N) with A = K^N, values 0 .. K-1.
    log_probabilities
        :math:`\log p(c \mid x)`, shape (A,).
    means, mean_variances
        Posterior mean and variance of every component's mean given the assignment, shape (A, K).
    log_evidence
        :math:`\log p(x)` in nats.
    """

    assignments: AnyArray
    log_probabilities: Array
    means: Array
    mean_variances: Array
    log_evidence: float

    @property
    def responsibilities(self) -> Array:
        """The marginals p(c_n = k | x), shape (N, K); all 1/K where the components are exchangeable."""
        probabilities = np.exp(self.log_probabilities)
        n_components = self.means.shape[1]
        return np.stack([probabilities @ (self.assignments == k) for k in range(n_components)], axis=1)


def exact_log_evidence(
    x: ArrayLike,
    n_components: int,
    prior_variance: float = 100.0,
    variance: float = 1.0,
    weights: ArrayLike | None = None,
    prior_mean: float = 0.0,
) -> float:
    r"""Return log p(x) of the mixture with known variance, in nats, with every constant.

    .. math:: p(x) = \sum_c \prod_n w_{c_n} \prod_k N(x_{\{n: c_n = k\}}; m_0 1, v I + s_0^2 1 1')

    Parameters
    ----------
    x
        Observations, shape (N,) or (N, 1).
    n_components
        Number of components K.
    prior_variance
        :math:`s_0^2` > 0, in squared units of ``x``; finite, for under a flat prior there is no evidence.
    variance
        :math:`v` > 0, in squared units of ``x``.
    weights
        Mixture weights, shape (K,), summing to one; None for 1/K each.
    prior_mean
        :math:`m_0`, in units of ``x``.

    Raises
    ------
    ParameterError
        If a parameter is out of its domain, or there are more than five million assignments.
    DataError
        If ``x`` is not one column of finite numbers.

    Notes
    -----
    All K^N assignments are visited: O(K^N N K) time (seconds at the limit) and bounded memory. It is exact up
    to rounding, so a mean-field ELBO of the same model lies below it, by exactly what `exact_kl` gives.

    Examples
    --------
    >>> round(exact_log_evidence([0.5, -1.0, 9.0], n_components=2), 6)
    -10.066124
    """
    mixture = Mixture.checked(x, n_components, prior_variance, variance, weights, prior_mean)
    return float(logsumexp([logsumexp(chunk.log_joint) for chunk in chunks(mixture)]))


def exact_posterior(
    x: ArrayLike,
    n_components: int,
    prior_variance: float = 100.0,
    variance: float = 1.0,
    weights: ArrayLike | None = None,
    prior_mean: float = 0.0,
) -> ExactPosterior:
    """Return the exact posterior over assignments and means; arguments and errors as in `exact_log_evidence`.

    Notes
    -----
    O(K^N N K) time; keeps all K^N assignments, (N + 16 K + 8) K^N bytes (300 MB at the limit with K = 2).

    Examples
    --------
    >>> posterior = exact_posterior([0.0, 8.0], n_components=2)
    >>> posterior.assignments.tolist()
    [[0, 0], [1, 0], [0, 1], [1, 1]]
    >>> np.exp(posterior.log_probabilities).round(4)
    array([0. , 0.5, 0.5, 0. ])
    """
    mixture = Mixture.checked(x, n_components, prior_variance, variance, weights, prior_mean)
    visited = list(chunks(mixture))
    log_joint = np.concatenate([chunk.log_joint for chunk in visited])
    log_evidence = float(logsumexp(log_joint))
    return ExactPosterior(
        assignments=np.concatenate([chunk.assignments for chunk in visited]),
        log_probabilities=log_joint - log_evidence,
        means=np.concatenate([chunk.means for chunk in visited]),
        mean_variances=np.concatenate([chunk.mean_variances for chunk in visited]),
        log_evidence=log_evidence,
    )


def exact_kl(
    x: ArrayLike,
    means: ArrayLike,
    mean_variances: ArrayLike,
    responsibilities: ArrayLike,
    prior_variance: float = 100.0,
    variance: float = 1.0,
    weights: ArrayLike | None = None,
    prior_mean: float = 0.0,
) -> float:
    r"""Return the divergence of a factorised q from the exact posterior, KL(q || p(c, mu | x)), in nats.

    .. math::

        q(c, \mu) = \prod_k N(\mu_k; m_k, s_k^2) \prod_n \mathrm{Cat}(c_n; r_n), \qquad
        KL = \sum_c q(c) \Bigl[ \log \frac{q(c)}{p(c \mid x)}
            + \sum_k KL\bigl( N(m_k, s_k^2) \,\|\, N(m_{ck}, v_{ck}) \bigr) \Bigr]

    Parameters
    ----------
    x
        Observations, shape (N,) or (N, 1).
    means, mean_variances
        :math:`m_k` and :math:`s_k^2` > 0 of the factors of the means, shape (K,).
    responsibilities
        :math:`r_{nk}`, shape (N, K), each row summing to one.
    prior_variance, variance, weights, prior_mean
        The model, as in `exact_log_evidence`.

    Raises
    ------
    ParameterError
        As in `exact_log_evidence`, or if q is not a distribution.
    DataError
        If ``x`` is not one column of finite numbers.

    Notes
    -----
    Infinite where q gives weight to an assignment that the model excludes. No ELBO enters: that
    log p(x) - ELBO(q) is this number, for any q, is the identity to check. O(K^N N K) time, bounded memory.

    Examples
    --------
    With one component the posterior is Normal, here N(2/3, 1/3), and the divergence vanishes there:

    >>> abs(exact_kl([0.0, 2.0], [2 / 3], [1 / 3], [[1.0], [1.0]], prior_variance=1.0)) < 1e-14
    True
    """
    m, s2, r = (np.asarray(given, dtype=float) for given in (means, mean_variances, responsibilities))
    if m.ndim != 1:
        raise ParameterError(f"means must have the shape (K,), one mean for each component; got {m.shape}.")
    mixture = Mixture.checked(x, m.size, prior_variance, variance, weights, prior_mean)
    _check_factors(mixture, m, s2, r)
    with np.errstate(divide="ignore"):
        log_r = np.log(r)
    rows = np.arange(mixture.x.size)
    divergence, log_evidences = 0.0, []
    for chunk in chunks(mixture):
        log_evidences.append(logsumexp(chunk.log_joint))
        log_q = log_r[rows, chunk.assignments].sum(axis=1)
        held = log_q > -np.inf
        v_c = chunk.mean_variances[held]
        gaussian = 0.5 * (s2 / v_c - 1.0 - np.log(s2 / v_c) + (m - chunk.means[held]) ** 2 / v_c).sum(axis=1)
        divergence += np.exp(log_q[held]) @ (log_q[held] - chunk.log_joint[held] + gaussian)
    return float(divergence + logsumexp(log_evidences))


def _check_factors(mixture: Mixture, means: Array, mean_variances: Array, responsibilities: Array) -> None:
    k, n_rows = mixture.n_components, mixture.x.size
    if not np.isfinite(means).all():
        raise ParameterError(f"means must be finite, got {means.tolist()}.")
    if mean_variances.shape != (k,) or not ((mean_variances > 0.0) & (mean_variances < np.inf)).all():
        raise ParameterError(
            f"mean_variances must be finite numbers > 0 of shape ({k},), got {mean_variances.tolist()}."
        )
    if responsibilities.shape != (n_rows, k):
        raise ParameterError(
            f"responsibilities must have the shape {(n_rows, k)}, a row for each row of x and a column"
            f" for each mean; got {responsibilities.shape}."
        )
    if not (responsibilities >= 0.0).all() or (abs(responsibilities.sum(axis=1) - 1.0) > 1e-8).any():
        raise ParameterError(
            "Every row of responsibilities must be >= 0 and sum to one; divide each row by its sum."
        )
