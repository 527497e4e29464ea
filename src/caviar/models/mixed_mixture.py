"""The mixture for tables whose columns are of different kinds: numbers, categories and counts."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._errors import ParameterError
from ..fitting.model import Model
from ..language import Categorical, Dirichlet, Gamma, Normal, NormalGamma, Plate, Poisson, Variable
from ._parts import hidden_labels, sized

NumberPrior = tuple[float, float, float, float]
CountPrior = tuple[float, float]


@sized
def mixed_mixture(
    n_components: int,
    *,
    numbers: Sequence[str] = (),
    n_categories: Mapping[str, int] | None = None,
    counts: Sequence[str] = (),
    concentration: ArrayLike = 1.0,
    number_prior: NumberPrior | Mapping[str, NumberPrior] = (0.0, 0.01, 1.0, 1.0),
    answer_concentration: float = 1.0,
    count_prior: CountPrior | Mapping[str, CountPrior] = (1.0, 1.0),
) -> Model:
    r"""Return the mixture of K components over columns of several kinds, independent given the component.

    .. math::
        \pi \sim \mathrm{Dir}(\alpha), \quad z_n \sim \mathrm{Cat}(\pi), \quad
        x_{nd} \mid z_n \sim \begin{cases}
            N(\mu_{z_n d}, 1/\tau_{z_n d}) & (\mu, \tau)_{kd} \sim \mathrm{NormalGamma}(m, \kappa, s, r) \\
            \mathrm{Cat}(p^{(d)}_{z_n}) & p^{(d)}_k \sim \mathrm{Dir}(\beta 1_{C_d}) \\
            \mathrm{Poi}(\lambda_{z_n d}) & \lambda_{kd} \sim \mathrm{Gamma}(s', r')
        \end{cases}

    One label gates all columns, so each adds its expected log density to the same logit:

    .. math::
        \log r_{nk} = \langle\log\pi_k\rangle + \sum_d \langle \log p(x_{nd} \mid \theta_{kd}) \rangle + \mathrm{const}

    Parameters
    ----------
    n_components
        K.
    numbers
        Names of the columns of real numbers.
    n_categories
        Name of each column of categories -> its number of categories :math:`C_d`.
    counts
        Names of the columns of counts.
    concentration
        :math:`\alpha`, a number or shape (K,).
    number_prior
        :math:`m, \kappa, s, r`: mean, the number of rows that it is worth, and shape and rate of the precision. One
        prior for all such columns, which should then have similar scales, or a mapping from names of columns to priors.
    answer_concentration
        :math:`\beta`.
    count_prior
        :math:`s', r'` for all columns of counts, or a mapping from names of columns to such pairs.

    Returns
    -------
    Model
        Variables ``weights``, ``z`` (plate ``obs``), and for each column its own name (plate ``obs``) and
        ``<column>_theta``, ``<column>_probabilities`` or ``<column>_rate`` (plate ``component``). If a column has one
        of these names, the variable's name ends with an underscore: ``z_``.

    Raises
    ------
    ParameterError
        If ``n_components`` is not a whole number of at least 1, no column is named, a column is named twice, or a
        column has no prior in a mapping.
    ModelError
        If another argument is invalid or has the wrong shape.

    Notes
    -----
    See section 1 of ``docs/mathematics.md``.

    Examples
    --------
    >>> model = mixed_mixture(2, numbers=["height"], n_categories={"colour": 3}, counts=["visits"])
    >>> data = {"height": [-2.0, -2.1, -1.9, 2.0, 2.1, 1.9], "colour": [0, 0, 1, 2, 2, 2], "visits": [0, 1, 0, 7, 9, 8]}
    >>> posterior = model.fit(data, seed=0)
    >>> order = posterior["height_theta"].mean.argsort()
    >>> posterior["visits_rate"].mean[order].round(1)
    array([0.5, 6.2])
    """
    kinds = n_categories or {}
    names = [*numbers, *kinds, *counts]
    if not names or len(set(names)) < len(names):
        raise ParameterError(f"mixed_mixture needs at least one column, each named once; got {names}")
    component, obs = Plate("component", n_components), Plate("obs")
    z = hidden_labels(concentration, n_components, obs, own_name("z", names), own_name("weights", names))
    leaves: list[Variable] = []
    for name in numbers:
        theta = NormalGamma(
            own_name(f"{name}_theta", names), *_prior_of(name, "number_prior", number_prior), plates=component
        )
        leaves.append(Normal(name, theta[z], plates=obs))
    for name, number in kinds.items():
        p = Dirichlet(
            own_name(f"{name}_probabilities", names), np.full(number, answer_concentration), plates=component
        )
        leaves.append(Categorical(name, p[z], plates=obs))
    for name in counts:
        rate = Gamma(
            own_name(f"{name}_rate", names), *_prior_of(name, "count_prior", count_prior), plates=component
        )
        leaves.append(Poisson(name, rate[z], plates=obs))
    return Model(*leaves)


def own_name(name: str, columns: Collection[str]) -> str:
    """Return the name of a variable that is not a column: with an underscore for as long as a column has the name.

    Examples
    --------
    >>> own_name("z", ["height"]), own_name("z", ["z", "z_"])
    ('z', 'z__')
    """
    while name in columns:
        name += "_"
    return name


def _prior_of(name: str, argument: str, prior: Any) -> tuple[float, ...]:
    """Return the prior of a column: its own, or that of all columns of its kind."""
    if not isinstance(prior, Mapping):
        return prior
    if name not in prior:
        raise ParameterError(f"{argument} has no prior for '{name}'; it has {', '.join(prior) or 'none'}")
    return prior[name]
