"""The Bayesian mixture of Poisson counts."""

from __future__ import annotations

from numpy.typing import ArrayLike

from ..fitting.model import Model
from ..language import Gamma, Plate, Poisson
from ._parts import hidden_labels, sized


@sized
def poisson_mixture(
    n_features: int,
    n_components: int,
    *,
    concentration: ArrayLike = 1.0,
    shape: ArrayLike = 1.0,
    rate: ArrayLike = 1.0,
) -> Model:
    r"""Return the mixture of K components in D columns of counts, independent given the component.

    .. math::
        \pi \sim \mathrm{Dir}(\alpha), \quad \lambda_{kd} \sim \mathrm{Gamma}(s, r), \quad
        z_n \sim \mathrm{Cat}(\pi), \quad x_{nd} \mid z_n \sim \mathrm{Poi}(\lambda_{z_n d})

    The optimal factors, with :math:`N_k = \sum_n r_{nk}`:

    .. math::
        \log r_{nk} &= \langle\log\pi_k\rangle + \sum_d \bigl( x_{nd} \langle\log\lambda_{kd}\rangle -
        \langle\lambda_{kd}\rangle \bigr) + \mathrm{const} \\
        \alpha_k &= \alpha + N_k, \qquad s_{kd} = s + \sum_n r_{nk} x_{nd}, \qquad r_{kd} = r + N_k

    Parameters
    ----------
    n_features, n_components
        D and K.
    concentration
        :math:`\alpha`, a number or shape (K,).
    shape, rate
        s and r of the prior of the expected counts: numbers, or shape (D,) or (K, D). The prior mean is s / r, and r is
        the number of rows that the prior is worth.

    Returns
    -------
    Model
        Variables ``weights``, ``rate`` (plates ``component``, ``feature``), ``z`` (plate ``obs``) and ``x`` (plates
        ``obs``, ``feature``), whole numbers from 0.

    Raises
    ------
    ParameterError
        If a size is not a whole number of at least 1.
    ModelError
        If an argument is invalid or has the wrong shape.

    Notes
    -----
    See section 1 of ``docs/mathematics.md``. The start is random, so try several (``n_restarts``).

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([[0, 9], [1, 11], [0, 10], [8, 2], [9, 0], [10, 1]])
    >>> posterior = poisson_mixture(2, 2).fit({"x": x}, seed=0, n_restarts=5)
    >>> order = posterior["rate"].mean[:, 0].argsort()
    >>> posterior["rate"].mean[order].round(2)
    array([[0.5 , 7.75],
           [7.  , 1.  ]])
    """
    component, feature, obs = Plate("component", n_components), Plate("feature", n_features), Plate("obs")
    rates = Gamma("rate", shape, rate, plates=(component, feature))
    z = hidden_labels(concentration, n_components, obs)
    return Model(Poisson("x", rates[z], plates=(obs, feature)))
