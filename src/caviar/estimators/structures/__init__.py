"""Covariance structures: what the covariance matrices of the components of a mixture share."""

from ..priors.structure import CovarianceStructure
from .diagonal import Diagonal
from .full import Full
from .spherical import Spherical
from .tied import Tied
from .unit import Unit

__all__ = ["STRUCTURES"]

STRUCTURES: dict[str, CovarianceStructure] = {
    structure.name: structure for structure in (Full(), Tied(), Diagonal(), Spherical(), Unit())
}
"""All there are, by the word of ``covariance_type``."""
