"""Distributions with a positive definite matrix, whose Cholesky factor is found once."""

from typing import ClassVar

from caviar._typing import Array
from caviar.numerics.cached import cached_property
from caviar.numerics.linalg import cholesky, inverse, log_determinant


class Factored:
    """A family whose parameter ``factored`` is a positive definite matrix L L'."""

    factored: ClassVar[str]

    @cached_property
    def _lower(self) -> Array:
        return cholesky(vars(self)[self.factored])

    @cached_property
    def _inverse_lower(self) -> Array:
        return inverse(self._lower, is_lower=True)

    @cached_property
    def _log_determinant(self) -> Array:
        return log_determinant(self._lower)
