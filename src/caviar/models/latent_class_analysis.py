"""Latent class analysis: answers to several questions that are independent given a hidden class."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from .._errors import ParameterError
from ..fitting.model import Model
from ..language import Categorical, Dirichlet, Plate
from ._parts import hidden_labels, sized


@sized
def latent_class_analysis(
    n_categories: Mapping[str, int],
    n_classes: int,
    *,
    concentration: ArrayLike = 1.0,
    answer_concentration: float = 1.0,
) -> Model:
    r"""Return the mixture of K classes over several columns of categories, independent given the class.

    .. math::
        \pi \sim \mathrm{Dir}(\alpha), \quad p^{(d)}_k \sim \mathrm{Dir}(\beta 1_{C_d}), \quad
        z_n \sim \mathrm{Cat}(\pi), \quad x_{nd} \mid z_n \sim \mathrm{Cat}(p^{(d)}_{z_n})

    The optimal factors, with :math:`N_k = \sum_n r_{nk}`:

    .. math::
        \log r_{nk} = \langle\log\pi_k\rangle + \sum_d \langle\log p^{(d)}_{k x_{nd}}\rangle + \mathrm{const}, \qquad
        \alpha_k = \alpha + N_k, \qquad \beta^{(d)}_{kc} = \beta + \sum_n r_{nk} [x_{nd} = c]

    Parameters
    ----------
    n_categories
        Name of each column -> its number of categories :math:`C_d`.
    n_classes
        K.
    concentration
        :math:`\alpha`, a number or shape (K,).
    answer_concentration
        :math:`\beta`, a number: the number of rows in each category that the prior is worth.

    Returns
    -------
    Model
        Variables ``weights``, ``z`` (plate ``obs``), and for each column its own name (plate ``obs``; values 0 to
        :math:`C_d - 1`) and ``<column>_probabilities`` (plate ``component``).

    Raises
    ------
    ParameterError
        If a size is not a whole number of at least 1.
    ParameterError
        If there is no column, or a column has no categories.
    ModelError
        If another argument is invalid or has the wrong shape.

    Notes
    -----
    See section 1 of ``docs/mathematics.md``. The start is random, so try several (``n_restarts``).

    Examples
    --------
    >>> data = {"smokes": [0, 0, 0, 1, 1, 1], "drinks": [0, 0, 0, 2, 2, 1]}
    >>> model = latent_class_analysis({"smokes": 2, "drinks": 3}, 2)
    >>> posterior = model.fit(data, seed=0, n_restarts=5)
    >>> smokes = posterior["smokes_probabilities"].mean
    >>> posterior["drinks_probabilities"].mean[smokes[:, 1].argsort()].round(1)
    array([[0.6, 0.2, 0.2],
           [0.2, 0.3, 0.5]])
    """
    if not n_categories or min(n_categories.values()) < 1:
        raise ParameterError(
            f"n_categories must name at least one column, each with at least one category; got {dict(n_categories)}"
        )
    component, obs = Plate("component", n_classes), Plate("obs")
    z = hidden_labels(concentration, n_classes, obs)
    leaves = []
    for name, number in n_categories.items():
        p = Dirichlet(f"{name}_probabilities", np.full(number, answer_concentration), plates=component)
        leaves.append(Categorical(name, p[z], plates=obs))
    return Model(*leaves)
