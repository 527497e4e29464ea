"""The Bayesian mixture of yes/no answers."""

from __future__ import annotations

from numpy.typing import ArrayLike

from ..fitting.model import Model
from ..language import Bernoulli, Beta, Plate
from ._parts import hidden_labels, sized


@sized
def bernoulli_mixture(
    n_features: int,
    n_components: int,
    *,
    concentration: ArrayLike = 1.0,
    a: ArrayLike = 1.0,
    b: ArrayLike = 1.0,
) -> Model:
    r"""Return the mixture of K components in D columns of zeros and ones, independent given the component.

    .. math::
        \pi \sim \mathrm{Dir}(\alpha), \quad p_{kd} \sim \mathrm{Beta}(a, b), \quad z_n \sim \mathrm{Cat}(\pi), \quad
        x_{nd} \mid z_n \sim \mathrm{Ber}(p_{z_n d})

    The optimal factors, with :math:`N_k = \sum_n r_{nk}`:

    .. math::
        \log r_{nk} &= \langle\log\pi_k\rangle + \sum_d \bigl( x_{nd} \langle\log p_{kd}\rangle +
        (1 - x_{nd}) \langle\log(1 - p_{kd})\rangle \bigr) + \mathrm{const} \\
        \alpha_k &= \alpha + N_k, \qquad a_{kd} = a + \sum_n r_{nk} x_{nd}, \qquad
        b_{kd} = b + \sum_n r_{nk} (1 - x_{nd})

    Parameters
    ----------
    n_features, n_components
        D and K.
    concentration
        :math:`\alpha`, a number or shape (K,).
    a, b
        Parameters of the Beta prior of the probability of a one: numbers, or shape (D,) or (K, D).

    Returns
    -------
    Model
        Variables ``weights``, ``probability`` (plates ``component``, ``feature``), ``z`` (plate ``obs``) and ``x``
        (plates ``obs``, ``feature``), zeros and ones.

    Raises
    ------
    ParameterError
        If a size is not a whole number of at least 1.
    ModelError
        If an argument is invalid or has the wrong shape.

    Notes
    -----
    See section 1 of ``docs/mathematics.md``. The model is also known as latent class analysis of binary items. The
    start is random, so try several (``n_restarts``).

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([[1, 1, 0], [1, 1, 0], [1, 1, 0], [0, 0, 1], [0, 0, 1], [0, 0, 1]])
    >>> posterior = bernoulli_mixture(3, 2).fit({"x": x}, seed=0, n_restarts=5)
    >>> order = posterior["probability"].mean[:, 0].argsort()
    >>> posterior["probability"].mean[order].round(1)
    array([[0.2, 0.2, 0.8],
           [0.8, 0.8, 0.2]])
    """
    component, feature, obs = Plate("component", n_components), Plate("feature", n_features), Plate("obs")
    probability = Beta("probability", a, b, plates=(component, feature))
    z = hidden_labels(concentration, n_components, obs)
    return Model(Bernoulli("x", probability[z], plates=(obs, feature)))
