"""Known errors of measurement: rows are true values seen through noise of known covariance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._errors import ParameterError
from ..._typing import AnyArray, Array
from ...language import Categorical, Data, MultivariateNormal, Normal, Plate, Variable, diagonal
from ...numerics.linalg import inverse
from ..arguments.checks import as_positive, as_positive_definite
from .structure import CovarianceStructure

_NAME = "noise_precision"


@dataclass(frozen=True)
class Noise:
    """Noise of known covariance in each row.

    Attributes
    ----------
    covariances
        Variances (N, D), or matrices (N, D, D).
    """

    covariances: Array

    @property
    def data(self) -> dict[str, AnyArray]:
        """The data of the model besides the rows: the precisions of the noise."""
        is_matrix = self.covariances.ndim == 3
        return {_NAME: inverse(self.covariances) if is_matrix else 1 / self.covariances}

    def observe(self, true: Variable, z: Categorical) -> Variable:
        """Return the rows, given their true values."""
        if isinstance(true, Normal):
            return Normal("x", true, Data(_NAME, plates=true.plates), plates=true.plates)
        if self.covariances.ndim == 3:
            return MultivariateNormal("x", true, Data(_NAME, plates=z.plates), plates=z.plates)
        column = Plate("column", self.covariances.shape[1])
        precisions = diagonal(Data(_NAME, plates=(*z.plates, column)))
        return MultivariateNormal("x", true, precisions, plates=z.plates)


def noise_of(given: Any, X: AnyArray, structure: CovarianceStructure) -> Noise | None:
    """Return the noise that a user stated for rows X, (N, D); None for none.

    Raises
    ------
    ParameterError
        If it is impossible, or correlated where the structure has independent columns.
    """
    if given is None:
        return None
    n_rows, size = X.shape
    if X.dtype.kind == "f" and np.isnan(X).any():
        raise ParameterError(
            "X has missing entries (NaN), which cannot be fitted together with noise_covariance; give such an entry "
            "the mean of its column and a variance that is large compared with the data, or drop the row"
        )
    if np.ndim(given) == 3 or (np.ndim(given) == 2 and np.shape(given) == (size, size) != (n_rows, size)):
        if structure.has_independent_columns:
            raise ParameterError(
                f"noise_covariance must hold variances, (N, D) or (D,), with covariance_type={structure.name!r}, whose "
                f"columns are independent; got matrices. Use covariance_type='full' or 'tied' for correlated noise"
            )
        shapes = [(n_rows, size, size), (size, size)]
        matrices = as_positive_definite(
            "noise_covariance", given, shapes, "a covariance matrix a row, or one for all"
        )
        return Noise(np.broadcast_to(matrices, (n_rows, size, size)))
    variances = as_positive(
        "noise_covariance", given, [(n_rows, size), (size,)], "variances a row, or for all rows"
    )
    return Noise(np.broadcast_to(variances, (n_rows, size)))
