"""Probabilities of categories, from counts."""

from __future__ import annotations

from numpy.typing import ArrayLike

from ..fitting.model import Model
from ..language import Categorical, Dirichlet, Plate
from ._parts import as_vector, sized


@sized
def dirichlet_categorical(n_categories: int, *, concentration: ArrayLike = 1.0) -> Model:
    r"""Return the model of rows that fall into K categories with unknown probabilities.

    .. math:: p \sim \mathrm{Dir}(\alpha), \qquad x_n \sim \mathrm{Cat}(p)

    There is one factor, so one update gives the exact posterior :math:`q(p) = \mathrm{Dir}(\alpha + n)`, with
    :math:`n_k` the rows in category k, and the ELBO is the exact log evidence
    :math:`\log B(\alpha + n) - \log B(\alpha)`.

    Parameters
    ----------
    n_categories
        K.
    concentration
        :math:`\alpha`, a number or shape (K,).

    Returns
    -------
    Model
        Variables ``probabilities``, and ``x`` (plate ``obs``) with values 0 to K - 1.

    Raises
    ------
    ParameterError
        If a size is not a whole number of at least 1.

    Notes
    -----
    It is the simplest conjugate exponential model; see section 1 of ``docs/mathematics.md``.

    Examples
    --------
    >>> posterior = dirichlet_categorical(3).fit({"x": [0, 0, 2]})
    >>> posterior["probabilities"].concentration
    array([3., 1., 2.])
    >>> import numpy as np
    >>> print(np.exp(posterior.elbo).round(6))  # 2! 0! 1! 2! / 5!
    0.033333
    """
    probabilities = Dirichlet("probabilities", as_vector(concentration, n_categories))
    return Model(Categorical("x", probabilities, plates=Plate("obs")))
