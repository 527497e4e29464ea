"""Prediction: mean and standard deviation of what was not observed in new rows, under q."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..._typing import Array


@dataclass(frozen=True, eq=False, repr=False)
class Prediction:
    r"""Prediction of an observed variable whose values are not among the data.

    .. math:: \mathrm E[y] = \mathrm E_q[\mathrm E[y \mid \theta]], \qquad
              \mathrm{Var}[y] = \mathrm E_q[\mathrm{Var}[y \mid \theta]] + \mathrm{Var}_q[\mathrm E[y \mid \theta]]

    Attributes
    ----------
    mean
        Rows first, then its other plates and its event: of a Normal or a count the expected value, of a Bernoulli the
        probability of a 1, of a Categorical the probability of each category.
    standard_deviation
        Of a single value, of the same shape: noise and what is not known of the parameters. Of a vector that of each
        entry, of a Categorical that of the indicator of each category. Infinite where the variance is.

    Examples
    --------
    >>> import numpy as np
    >>> Prediction(np.array([1.5, 2.0]), np.array([0.5, 0.25]))
    Prediction(mean=[1.5, 2. ], standard_deviation=[0.5 , 0.25])
    """

    mean: Array
    standard_deviation: Array

    def __repr__(self) -> str:
        mean, deviation = (
            np.array2string(array, precision=4, threshold=6, edgeitems=2, separator=", ")
            for array in (self.mean, self.standard_deviation)
        )
        return f"Prediction(mean={mean}, standard_deviation={deviation})"
