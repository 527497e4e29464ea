"""Linear dynamical systems: columns as linear combinations of a few hidden states that follow each other."""

from __future__ import annotations

import numpy as np

from ..fitting.model import Model
from ..language import (
    Data,
    Gamma,
    LinearGaussianChain,
    MultivariateNormal,
    Normal,
    Plate,
    diagonal,
    dot,
)
from ._parts import sized


@sized
def linear_dynamical_system(
    n_features: int,
    n_states: int,
    *,
    initial_precision: float = 0.1,
    transition_precision: float = 1.0,
    relevance_shape: float = 1e-3,
    relevance_rate: float = 1e-3,
    mean_precision: float = 1e-3,
    shape: float = 1.0,
    rate: float = 1.0,
    with_starts: bool = False,
) -> Model:
    r"""Return the model of D columns by a hidden vector of K numbers that moves linearly from row to row.

    .. math::
        a_k \sim N(0, \beta^{-1} I), \quad \alpha_k \sim \mathrm{Gamma}(a_0, b_0), \quad
        c_d \sim N(0, \mathrm{diag}(\alpha)^{-1}), \quad \mu_d \sim N(0, 1/\lambda_0), \quad
        \tau_d \sim \mathrm{Gamma}(a, b) \\
        s_1 \sim N(0, \lambda_1^{-1} I), \quad s_{tk} \mid s_{t-1} \sim N(a_k' s_{t-1}, 1), \quad
        x_{td} \mid s_t \sim N(c_d' s_t + \mu_d, \tau_d^{-1})

    The noise of a step has variance 1, which fixes the scale of the states; superfluous states vanish (ARD). All states
    are in one factor, which is exact given the other factors. With :math:`\bar A = \langle A \rangle`, row k of which
    is :math:`\langle a_k \rangle`, and the sums over the steps of each sequence,

    .. math::
        q(s) &\propto e^{-\lambda_1 s_1's_1 / 2} \prod_{t>1} e^{s_t' \bar A s_{t-1} - s_t's_t / 2
        - s_{t-1}' \langle A'A \rangle s_{t-1} / 2}
        \prod_{td} e^{\langle\tau_d\rangle ((x_{td} - \langle\mu_d\rangle) \langle c_d \rangle' s_t
        - s_t' \langle c_d c_d' \rangle s_t / 2)} \\
        S_k &= \Bigl( \beta I + \sum_{t>1} \langle s_{t-1} s_{t-1}' \rangle \Bigr)^{-1}, \qquad
        \langle a_k \rangle = S_k \sum_{t>1} \langle s_{t-1} s_{tk} \rangle

    Loadings, means and precisions have the updates of :func:`factor_analysis`, with these moments of the states.

    Parameters
    ----------
    n_features, n_states
        D and K.
    initial_precision
        :math:`\lambda_1`, precision of the first state of a sequence.
    transition_precision
        :math:`\beta`, precision of the elements of the transition matrix.
    relevance_shape, relevance_rate
        :math:`a_0` and :math:`b_0`.
    mean_precision
        :math:`\lambda_0`; 0 is the flat, improper prior.
    shape, rate
        a and b; 1 and 0 are the flat, improper prior.
    with_starts
        Whether the data have ``starts``, shape (N,): 1 where a sequence begins, as in the first row, and 0 elsewhere.
        Without it all rows are one sequence.

    Returns
    -------
    Model
        Variables ``transition`` (plate ``state``: its rows), ``alpha`` (``state``), ``loadings``, ``mean`` and ``tau``
        (``feature``), ``s`` (``time``) and ``x`` (``time``, ``feature``). ``posterior.local(data)["s"]`` has ``mean``
        and ``covariance`` of each row's state. Missing entries (NaN) are left out, whole rows too: behind the last
        observed row they are forecasts.

    Raises
    ------
    ParameterError
        If a size is not a whole number of at least 1.
    ModelError
        If an argument is invalid.

    Notes
    -----
    The states are determined up to a change of basis of transition and loadings; the eigenvalues of the transition are
    determined. The fit turns the states to the basis that suits the priors best (parameter expansion), together with
    loadings and transition; from other starts than that of the data allow a few hundred iterations.

    Examples
    --------
    A rotation by a fifth of a radian a step, seen through noise:

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> angle = 0.2 * np.arange(200)
    >>> x = np.stack([np.cos(angle), np.sin(angle), np.cos(angle + 1)], axis=1) + 0.3 * rng.normal(size=(200, 3))
    >>> posterior = linear_dynamical_system(3, 2).fit({"x": x}, seed=0, max_iter=300)
    >>> np.angle(np.linalg.eigvals(posterior["transition"].mean)).round(2)
    array([ 0.2, -0.2])
    """
    time, state, feature = Plate("time"), Plate("state", n_states), Plate("feature", n_features)
    rows = MultivariateNormal(
        "transition", np.zeros(n_states), transition_precision * np.eye(n_states), plates=state
    )
    s = LinearGaussianChain(
        "s",
        np.zeros(n_states),
        initial_precision * np.eye(n_states),
        rows,
        np.eye(n_states),
        along=time,
        starts=Data("starts", plates=time) if with_starts else None,
    )
    alpha = Gamma("alpha", relevance_shape, relevance_rate, plates=state)
    loadings = MultivariateNormal("loadings", np.zeros(n_states), diagonal(alpha), plates=feature)
    mean = Normal("mean", 0.0, mean_precision, plates=feature)
    tau = Gamma("tau", shape, rate, plates=feature)
    return Model(Normal("x", dot(loadings, s) + mean, tau, plates=(time, feature)))
