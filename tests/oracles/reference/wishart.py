r"""The Wishart distribution with inverse scale B, and the Dirichlet, as the literal ELBOs need them.

.. math::

    p(\Lambda) = \frac{|B|^{a/2}}{2^{aD/2} \Gamma_D(a/2)} |\Lambda|^{(a-D-1)/2} e^{-\mathrm{tr}(B \Lambda)/2},
    \qquad \langle \Lambda \rangle = a B^{-1}
"""

from math import lgamma, log

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, multigammaln

from caviar._typing import Array


def log_det(matrix: NDArray[np.floating]) -> float:
    """Return log |A| of a symmetric positive definite matrix."""
    sign, value = np.linalg.slogdet(matrix)
    if sign <= 0:
        raise ValueError(f"The matrix must be positive definite, got {matrix}.")
    return float(value)


def mean(df: float, inverse_scale: Array) -> Array:
    """Return <Lambda> = a B^-1."""
    return np.asarray(df * np.linalg.inv(inverse_scale), dtype=np.float64)


def expected_log_det(df: float, inverse_scale: Array) -> float:
    r"""Return <log |Lambda|> = D log 2 - log |B| + sum_j psi((a + 1 - j)/2)."""
    d = len(inverse_scale)
    return (
        d * log(2) - log_det(inverse_scale) + sum(float(digamma((df + 1 - j) / 2)) for j in range(1, d + 1))
    )


def expected_log_density(
    df: float, inverse_scale: Array, precision: Array, log_det_precision: float
) -> float:
    """Return <log Wishart(Lambda; a, B)> given <Lambda> and <log |Lambda|>."""
    d = len(inverse_scale)
    log_constant = df / 2 * log_det(inverse_scale) - df * d / 2 * log(2) - float(multigammaln(df / 2, d))
    trace = float(np.trace(inverse_scale @ precision))
    return log_constant + (df - d - 1) / 2 * log_det_precision - trace / 2


def entropy(df: float, inverse_scale: Array) -> float:
    """Return -<log q(Lambda)> of q = Wishart(a, B)."""
    moments = mean(df, inverse_scale), expected_log_det(df, inverse_scale)
    return -expected_log_density(df, inverse_scale, *moments)


def expected_log_weights(concentration: Array) -> list[float]:
    """Return <log pi_k> = psi(alpha_k) - psi(sum alpha)."""
    total = sum(concentration)
    return [float(digamma(a) - digamma(total)) for a in concentration]


def expected_log_dirichlet(concentration: Array, log_weights: list[float]) -> float:
    """Return <log Dir(pi; alpha)> given <log pi>."""
    log_constant = lgamma(sum(concentration)) - sum(lgamma(a) for a in concentration)
    return log_constant + sum((a - 1) * l_k for a, l_k in zip(concentration, log_weights, strict=True))
