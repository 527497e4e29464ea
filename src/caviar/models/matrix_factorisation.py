"""Matrix factorisation of ratings that users gave to items."""

from __future__ import annotations

import numpy as np

from ..fitting.model import Model
from ..language import Data, Gamma, MultivariateNormal, Normal, Plate, dot
from ._parts import sized


@sized
def matrix_factorisation(
    n_users: int,
    n_items: int,
    n_factors: int,
    *,
    prior_precision: float = 1.0,
    mean_precision: float = 0.01,
    shape: float = 1.0,
    rate: float = 1.0,
) -> Model:
    r"""Return the model of ratings by K factors of each user and each item.

    .. math::
        u_i \sim N(0, \lambda^{-1} I), \quad v_j \sim N(0, \lambda^{-1} I), \quad \mu \sim N(0, 1/\lambda_0), \quad
        \tau \sim \mathrm{Gamma}(a, b), \quad y_n \sim N(\mu + u_{i(n)}' v_{j(n)}, \tau^{-1})

    A row is one rating, with its user i(n), its item j(n) and its value. The optimal factors, and analogously for
    items:

    .. math::
        S_i &= \Bigl( \lambda I + \langle\tau\rangle \sum_{n: i(n) = i} \langle v_{j(n)} v_{j(n)}' \rangle \Bigr)^{-1},
        \qquad m_i = S_i \langle\tau\rangle \sum_{n: i(n) = i} \langle v_{j(n)} \rangle (y_n - \langle\mu\rangle) \\
        \mu &: \; \text{precision } \lambda_0 + N \langle\tau\rangle, \quad
        \text{mean } \frac{\langle\tau\rangle \sum_n (y_n - m_{i(n)}' m_{j(n)})}{\lambda_0 + N \langle\tau\rangle} \\
        \tau &: \; a + \tfrac N2, \quad b + \tfrac12 \sum_n \langle (y_n - \mu - u_{i(n)}' v_{j(n)})^2 \rangle

    Parameters
    ----------
    n_users, n_items, n_factors
        Sizes of the plates ``user`` and ``item``, and K.
    prior_precision
        :math:`\lambda > 0`.
    mean_precision
        :math:`\lambda_0`; 0 is the flat, improper prior.
    shape, rate
        a and b.

    Returns
    -------
    Model
        Variables ``users`` (plate ``user``), ``items`` (``item``), ``mean``, ``tau`` and ``rating`` (``obs``); known
        arrays ``user`` and ``item`` (N,), whole numbers from 0.

    Raises
    ------
    ParameterError
        If a size is not a whole number of at least 1.
    ModelError
        If an argument is invalid.

    Notes
    -----
    The ELBO has a saddle point with all factors at mean 0, where ``init="prior"`` stays; ``init="auto"`` tries
    principal components of the ratings and draws from the priors.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> user, item = np.divmod(np.arange(60), 6)
    >>> rating = 3 + rng.normal(size=10)[user] * rng.normal(size=6)[item]
    >>> posterior = matrix_factorisation(10, 6, 1).fit({"rating": rating, "user": user, "item": item}, seed=0)
    >>> product = posterior["users"].mean[user, 0] * posterior["items"].mean[item, 0]
    >>> print(float(np.corrcoef(product, rating)[0, 1]) > 0.95)
    True
    """
    obs, user, item = Plate("obs"), Plate("user", n_users), Plate("item", n_items)
    zero, precision = np.zeros(n_factors), prior_precision * np.eye(n_factors)
    users = MultivariateNormal("users", zero, precision, plates=user)
    items = MultivariateNormal("items", zero, precision, plates=item)
    mean, tau = Normal("mean", 0.0, mean_precision), Gamma("tau", shape, rate)
    product = dot(users[Data("user", plates=obs)], items[Data("item", plates=obs)])
    return Model(Normal("rating", mean + product, tau, plates=obs))
