r"""Every assignment of rows to components, with the means integrated out.

The model is the one-dimensional mixture with known variance,

.. math::

    \mu_k \sim N(m_0, s_0^2), \quad c_n \sim \mathrm{Cat}(w), \quad x_n \mid c_n \sim N(\mu_{c_n}, v).

Given an assignment c the means integrate out, one component at a time. With S the rows of a component, n
their number, :math:`\bar x_S` their mean and :math:`Q_S = \sum_{i \in S} (x_i - \bar x_S)^2`, the rank-one
form of the covariance gives

.. math::

    \log N(x_S; m_0 1, v I + s_0^2 1 1') = -\tfrac n2 \log 2 \pi v - \tfrac12 \log(1 + n s_0^2 / v)
        - \frac{Q_S}{2 v} - \frac{n (\bar x_S - m_0)^2}{2 (v + n s_0^2)}

without any matrix, and :math:`\mu_k \mid c, x \sim N(m_0 + \frac{n s_0^2}{v + n s_0^2} (\bar x_S - m_0),\;
\frac{v s_0^2}{v + n s_0^2})`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import xlogy

from caviar._errors import DataError, ParameterError
from caviar._typing import AnyArray, Array

_MOST_ASSIGNMENTS = 5_000_000
# Entries of one (assignments, rows) array; larger ones leave the cache and are five times slower.
_CHUNK_ENTRIES = 1 << 16


@dataclass(frozen=True)
class Mixture:
    """A checked statement of the model and its data."""

    x: Array
    n_components: int
    prior_mean: float
    prior_variance: float
    variance: float
    weights: Array

    @classmethod
    def checked(
        cls,
        x: ArrayLike,
        n_components: int,
        prior_variance: float,
        variance: float,
        weights: ArrayLike | None,
        prior_mean: float,
    ) -> "Mixture":
        """Return the statement, or raise where it is wrong or takes too long to enumerate."""
        rows = np.asarray(x, dtype=float)
        if rows.ndim == 2 and rows.shape[1] == 1:
            rows = rows[:, 0]
        if rows.ndim != 1 or not np.isfinite(rows).all():
            raise DataError(
                f"x must be one column of finite numbers, shape (N,) or (N, 1); got shape {rows.shape}"
                f" with {np.count_nonzero(~np.isfinite(rows))} entries that are not finite."
            )
        if not isinstance(n_components, Integral) or n_components < 1:
            raise ParameterError(f"n_components must be a whole number >= 1, got {n_components!r}.")
        if not 0.0 < prior_variance < np.inf:
            raise ParameterError(
                f"prior_variance must be a finite number > 0, got {prior_variance!r}."
                " Under a flat (improper) prior the data have no evidence; state a proper one."
            )
        if not 0.0 < variance < np.inf:
            raise ParameterError(f"variance must be a finite number > 0, got {variance!r}.")
        if not np.isfinite(prior_mean):
            raise ParameterError(f"prior_mean must be a finite number, got {prior_mean!r}.")
        k = int(n_components)
        _refuse_long_enumeration(rows.size, k)
        return cls(
            rows, k, float(prior_mean), float(prior_variance), float(variance), _checked_weights(weights, k)
        )


@dataclass(frozen=True)
class Chunk:
    """Some of the assignments (C, N), with log p(c, x) (C,) and the posteriors of the means (C, K)."""

    assignments: AnyArray
    log_joint: Array
    means: Array
    mean_variances: Array


def chunks(mixture: Mixture) -> Iterator[Chunk]:
    """Visit all K^N assignments, few enough at a time to stay in the cache."""
    n_rows, k = mixture.x.size, mixture.n_components
    total = k**n_rows
    size = max(1, _CHUNK_ENTRIES // max(n_rows, k))
    place_values = k ** np.arange(n_rows)
    for start in range(0, total, size):
        numbers = np.arange(start, min(start + size, total))
        yield _solved(mixture, (numbers[:, None] // place_values) % k)


def _solved(mixture: Mixture, assignments: AnyArray) -> Chunk:
    """Integrate the means out under each of the given assignments, shape (C, N)."""
    prior_variance, variance = mixture.prior_variance, mixture.variance
    # About the data's own mean: data far from the prior mean would lose digits otherwise.
    reference = float(mixture.x.mean()) if mixture.x.size else 0.0
    counts, centres, scatters = _moments(mixture.x - reference, assignments, mixture.n_components)
    offsets = np.where(counts > 0.0, centres + (reference - mixture.prior_mean), 0.0)
    totals = variance + counts * prior_variance
    log_joint = (
        xlogy(counts, mixture.weights)
        - 0.5 * counts * np.log(2.0 * np.pi * variance)
        - 0.5 * np.log1p(counts * prior_variance / variance)
        - 0.5 * scatters / variance
        - 0.5 * counts * offsets**2 / totals
    ).sum(axis=1)
    return Chunk(
        assignments=assignments.astype(np.min_scalar_type(mixture.n_components)),
        log_joint=log_joint,
        means=mixture.prior_mean + counts * prior_variance * offsets / totals,
        mean_variances=variance * prior_variance / totals,
    )


def _moments(x: Array, assignments: AnyArray, n_components: int) -> tuple[Array, Array, Array]:
    """Return n, the mean and the centred sum of squares of each component's rows, each of shape (C, K)."""
    shape = (len(assignments), n_components)
    counts, centres, scatters = np.empty(shape), np.empty(shape), np.empty(shape)
    one = np.ones(x.size)
    for k in range(n_components):
        member = (assignments == k).astype(float)
        counts[:, k] = member @ one
        centres[:, k] = member @ x / np.maximum(counts[:, k], 1.0)
        squares = (x - centres[:, k, None]) ** 2
        squares *= member
        scatters[:, k] = squares @ one
    return counts, centres, scatters


def _refuse_long_enumeration(n_rows: int, n_components: int) -> None:
    if n_components**n_rows <= _MOST_ASSIGNMENTS:
        return
    most_rows = 0
    while n_components ** (most_rows + 1) <= _MOST_ASSIGNMENTS:
        most_rows += 1
    raise ParameterError(
        f"The exact answer sums over n_components**n_rows = {n_components}**{n_rows} assignments of rows to"
        f" components, and at most {_MOST_ASSIGNMENTS:,} are enumerated. This is how one sees that inference"
        " in a mixture must be approximate: each further row multiplies the sum by the number of components."
        f" Pass at most {most_rows} rows with {n_components} components, or take the ELBO, which bounds the"
        " evidence from below at a cost linear in the rows."
    )


def _checked_weights(weights: ArrayLike | None, n_components: int) -> Array:
    if weights is None:
        return np.full(n_components, 1.0 / n_components)
    w = np.asarray(weights, dtype=float)
    if w.shape != (n_components,):
        raise ParameterError(
            f"weights must have the shape ({n_components},), one a component; got {w.shape}."
        )
    if not (w >= 0.0).all() or abs(w.sum() - 1.0) > 1e-8:
        raise ParameterError(f"weights must be >= 0 and sum to one, got {w.tolist()}; divide by their sum.")
    return w
