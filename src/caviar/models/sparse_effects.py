"""Linear regression with a sum of single effects (SuSiE)."""

from __future__ import annotations

from ..fitting.model import Model
from ..language import Data, Gamma, Normal, Plate, SingleEffect, dot
from ._parts import sized


@sized
def sparse_effects(
    n_features: int,
    n_effects: int = 10,
    *,
    precision: float = 1.0,
    shape: float = 1.0,
    rate: float = 1.0,
) -> Model:
    r"""Return the linear regression in which few of many columns have an effect.

    .. math::
        \gamma_l \sim \mathrm{Categorical}(1/D), \quad b_{l \gamma_l} \sim N(0, 1/\tau_0), \quad
        \tau \sim \mathrm{Gamma}(a, b), \quad y_n \sim N(x_n' \textstyle\sum_l b_l, \tau^{-1})

    Each vector :math:`b_l` has exactly one entry that is not zero. With :math:`r_l` what the other effects leave of y,
    its optimal factor has

    .. math::
        P_j = \tau_0 + \langle\tau\rangle x_j'x_j, \qquad m_j = \langle\tau\rangle x_j'r_l / P_j, \qquad
        \alpha_j \propto P_j^{-1/2} e^{P_j m_j^2 / 2}

    Parameters
    ----------
    n_features
        Number D of columns of X.
    n_effects
        Number L of single effects, at least the number of true effects; superfluous effects are recognisable.
    precision
        :math:`\tau_0`, the inverse variance of an effect.
    shape, rate
        a and b.

    Returns
    -------
    Model
        Variables ``effect 1`` to ``effect L``, ``tau`` and ``y`` (plate ``obs``); known array ``X`` (N, D).

    Raises
    ------
    ParameterError
        If a size is not a whole number of at least 1.
    ModelError
        If an argument is invalid.

    Notes
    -----
    There is no intercept, so subtract the means of y and of the columns first. Source: Wang, Sarkar, Carbonetto and
    Stephens (JRSS B 2020).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 50))
    >>> y = X[:, 7] - X[:, 31] + rng.normal(size=100)
    >>> posterior = sparse_effects(50, 4).fit({"X": X, "y": y})
    >>> sorted(own.entries for own in posterior.credible_sets({"X": X}))
    [(7,), (31,)]
    """
    obs = Plate("obs")
    columns = Data("X", plates=obs)
    effects = [SingleEffect(f"effect {k}", n_features, precision=precision) for k in range(1, n_effects + 1)]
    mean = dot(columns, effects[0])
    for own in effects[1:]:
        mean = mean + dot(columns, own)
    return Model(Normal("y", mean, Gamma("tau", shape, rate), plates=obs))
