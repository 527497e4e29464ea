"""Hidden Markov models: sequences whose rows are emitted by hidden states that follow each other."""

from __future__ import annotations

from numpy.typing import ArrayLike

from ..fitting.model import Model
from ..language import (
    Categorical,
    Data,
    Dirichlet,
    Gamma,
    MarkovChain,
    MultivariateNormal,
    Plate,
    Poisson,
)
from ._parts import as_vector, normal_vector, precision_matrix, sized


def _chain(
    n_states: int, initial: ArrayLike, transition: ArrayLike, time: Plate, state: Plate, with_starts: bool
) -> MarkovChain:
    return MarkovChain(
        "s",
        Dirichlet("initial", as_vector(initial, n_states)),
        Dirichlet("transition", as_vector(transition, n_states), plates=state),
        along=time,
        starts=Data("starts", plates=time) if with_starts else None,
    )


@sized
def gaussian_hidden_markov_model(
    n_features: int,
    n_states: int,
    *,
    initial_concentration: ArrayLike = 1.0,
    transition_concentration: ArrayLike = 1.0,
    prior_mean: ArrayLike = 0.0,
    prior_precision: ArrayLike = 0.01,
    df: ArrayLike | None = None,
    inverse_scale: ArrayLike = 1.0,
    with_starts: bool = False,
) -> Model:
    r"""Return the hidden Markov model whose K states emit Gaussian rows in D dimensions.

    .. math::
        \pi \sim \mathrm{Dir}(\alpha), \quad A_k \sim \mathrm{Dir}(\beta_k), \quad
        \mu_k \sim N(m_0, S_0), \quad \Lambda_k \sim \mathrm{Wishart}(a, B) \\
        s_1 \sim \mathrm{Cat}(\pi), \quad s_t \mid s_{t-1} \sim \mathrm{Cat}(A_{s_{t-1}}), \quad
        x_t \mid s_t \sim N(\mu_{s_t}, \Lambda_{s_t}^{-1})

    The path s is one factor, exact: with :math:`b_{tk} = \exp \langle \log N(x_t; \mu_k, \Lambda_k^{-1}) \rangle`,

    .. math::
        q(s) \propto e^{\langle\log\pi_{s_1}\rangle} \prod_{t>1} e^{\langle\log A_{s_{t-1}s_t}\rangle} \prod_t b_{ts_t},
        \qquad \alpha_k \leftarrow \alpha_k + q(s_1 = k), \qquad
        \beta_{kl} \leftarrow \beta_{kl} + \sum_{t>1} q(s_{t-1} = k, s_t = l)

    and means and precisions as in :func:`gaussian_mixture`, with :math:`r_{tk} = q(s_t = k)`.

    Parameters
    ----------
    n_features, n_states
        D and K.
    initial_concentration
        :math:`\alpha`, a number or shape (K,).
    transition_concentration
        :math:`\beta`, a number, or shape (K,) or (K, K) with a row for each current state. A larger diagonal favours
        states that last long.
    prior_mean, prior_precision, df, inverse_scale
        As in :func:`gaussian_mixture`.
    with_starts
        Whether the data have ``starts``, shape (N,): 1 where a sequence begins, as in the first row, and 0 elsewhere.
        Without it all rows are one sequence.

    Returns
    -------
    Model
        Variables ``initial``, ``transition``, ``mean`` and ``precision`` (plate ``state``), ``s`` and ``x`` (plate
        ``time``). ``posterior.local(data)["s"]`` has the ``probabilities`` of each row's state, and the most probable
        path as its ``mode()``.

    Raises
    ------
    ParameterError
        If a size is not a whole number of at least 1.
    ModelError
        If an argument is invalid or has the wrong shape.

    Notes
    -----
    A pass processes blocks of whole sequences, so its memory is that of a block, or of the longest sequence, for any
    number of sequences. The time is O(N K (K + D^2)).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> path = np.arange(600) // 30 % 2
    >>> data = {"x": rng.normal(4.0 * path, 1.0)[:, None]}
    >>> posterior = gaussian_hidden_markov_model(1, 2).fit(data, seed=0)
    >>> order = posterior["mean"].mean[:, 0].argsort()
    >>> posterior["mean"].mean[order].round(1)
    array([[0. ],
           [3.9]])
    >>> posterior["transition"].mean[np.ix_(order, order)].round(2)
    array([[0.96, 0.04],
           [0.04, 0.96]])
    >>> found = order.argsort()[posterior.local(data)["s"].mode()]
    >>> print((found == path).mean().round(3))
    0.995
    """
    state, time = Plate("state", n_states), Plate("time")
    mean = normal_vector("mean", n_features, prior_mean, prior_precision, state)
    precision = precision_matrix(n_features, df, inverse_scale, state)
    s = _chain(n_states, initial_concentration, transition_concentration, time, state, with_starts)
    return Model(MultivariateNormal("x", mean[s], precision[s], plates=time))


@sized
def categorical_hidden_markov_model(
    n_categories: int,
    n_states: int,
    *,
    initial_concentration: ArrayLike = 1.0,
    transition_concentration: ArrayLike = 1.0,
    emission_concentration: ArrayLike = 1.0,
    with_starts: bool = False,
) -> Model:
    r"""Return the hidden Markov model whose K states emit one of M categories.

    .. math::
        \pi \sim \mathrm{Dir}(\alpha), \quad A_k \sim \mathrm{Dir}(\beta_k), \quad B_k \sim \mathrm{Dir}(\gamma_k) \\
        s_1 \sim \mathrm{Cat}(\pi), \quad s_t \mid s_{t-1} \sim \mathrm{Cat}(A_{s_{t-1}}), \quad
        x_t \mid s_t \sim \mathrm{Cat}(B_{s_t})

    The path is one factor as in :func:`gaussian_hidden_markov_model`, with
    :math:`b_{tk} = e^{\langle \log B_{k x_t} \rangle}`, and
    :math:`\gamma_{km} \leftarrow \gamma_{km} + \sum_{t: x_t = m} q(s_t = k)`.

    Parameters
    ----------
    n_categories, n_states
        M and K.
    initial_concentration, transition_concentration, with_starts
        As in :func:`gaussian_hidden_markov_model`.
    emission_concentration
        :math:`\gamma`, a number or shape (M,) or (K, M).

    Returns
    -------
    Model
        Variables ``initial``, ``transition`` and ``emission`` (plate ``state``), ``s`` and ``x`` (plate ``time``).

    Raises
    ------
    ParameterError
        If a size is not a whole number of at least 1.
    ModelError
        If an argument is invalid or has the wrong shape.

    Notes
    -----
    The start is random, because the data do not distinguish the states, so try several (``n_restarts=``).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> path = np.arange(600) // 30 % 2
    >>> emission = np.array([[0.8, 0.1, 0.1], [0.1, 0.3, 0.6]])
    >>> data = {"x": (rng.random((600, 1)) > emission[path].cumsum(axis=1)).sum(axis=1)}
    >>> posterior = categorical_hidden_markov_model(3, 2).fit(data, seed=0, n_restarts=5)
    >>> order = posterior["emission"].mean[:, 0].argsort()
    >>> posterior["emission"].mean[order].round(1)
    array([[0.1, 0.3, 0.6],
           [0.8, 0.1, 0.1]])
    """
    state, time = Plate("state", n_states), Plate("time")
    emission = Dirichlet("emission", as_vector(emission_concentration, n_categories), plates=state)
    s = _chain(n_states, initial_concentration, transition_concentration, time, state, with_starts)
    return Model(Categorical("x", emission[s], plates=time))


@sized
def poisson_hidden_markov_model(
    n_features: int,
    n_states: int,
    *,
    initial_concentration: ArrayLike = 1.0,
    transition_concentration: ArrayLike = 1.0,
    shape: ArrayLike = 1.0,
    rate: ArrayLike = 1.0,
    with_starts: bool = False,
) -> Model:
    r"""Return the hidden Markov model whose K states emit D counts.

    .. math::
        \pi \sim \mathrm{Dir}(\alpha), \quad A_k \sim \mathrm{Dir}(\beta_k), \quad
        \lambda_{kd} \sim \mathrm{Gamma}(a, b) \\
        s_1 \sim \mathrm{Cat}(\pi), \quad s_t \mid s_{t-1} \sim \mathrm{Cat}(A_{s_{t-1}}), \quad
        x_{td} \mid s_t \sim \mathrm{Poi}(\lambda_{s_t d})

    The path is one factor as in :func:`gaussian_hidden_markov_model`, with

    .. math::
        \log b_{tk} &= \sum_d \bigl( x_{td} \langle\log\lambda_{kd}\rangle - \langle\lambda_{kd}\rangle
        - \log x_{td}! \bigr) \\
        a_{kd} &\leftarrow a + \sum_t q(s_t = k)\, x_{td}, \qquad b_k \leftarrow b + \sum_t q(s_t = k)

    Parameters
    ----------
    n_features, n_states
        D and K.
    initial_concentration, transition_concentration, with_starts
        As in :func:`gaussian_hidden_markov_model`.
    shape, rate
        a and b, as in :func:`poisson_mixture`.

    Returns
    -------
    Model
        Variables ``initial``, ``transition`` (plate ``state``), ``rate`` (plates ``state``, ``feature``), ``s`` (plate
        ``time``) and ``x`` (plates ``time``, ``feature``). Counts that are missing (NaN) are left out.

    Raises
    ------
    ParameterError
        If a size is not a whole number of at least 1.
    ModelError
        If an argument is invalid or has the wrong shape.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> path = np.arange(600) // 30 % 2
    >>> data = {"x": rng.poisson(np.array([2.0, 7.0])[path])[:, None]}
    >>> posterior = poisson_hidden_markov_model(1, 2).fit(data, seed=0, n_restarts=5)
    >>> order = posterior["rate"].mean[:, 0].argsort()
    >>> posterior["rate"].mean[order].round(1)
    array([[2. ],
           [6.9]])
    >>> found = order.argsort()[posterior.local(data)["s"].mode()]
    >>> print((found == path).mean().round(2))
    0.99
    """
    state, feature, time = Plate("state", n_states), Plate("feature", n_features), Plate("time")
    rates = Gamma("rate", shape, rate, plates=(state, feature))
    s = _chain(n_states, initial_concentration, transition_concentration, time, state, with_starts)
    return Model(Poisson("x", rates[s], plates=(time, feature)))
