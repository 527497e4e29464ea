"""Emissions: what the rows of a hidden Markov model are, given their states."""

from ._emission import Emission, Emitted
from .categories import Categories
from .counts import Counts
from .gaussian import Gaussian

__all__ = ["EMISSIONS", "Emission", "Emitted"]

EMISSIONS: dict[str, Emission] = {
    emission.name: emission for emission in (Gaussian(), Categories(), Counts())
}
"""All there are, by the word of ``emission``."""
