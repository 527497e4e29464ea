"""Which candidates have an effect: inclusion probabilities and credible sets of vectors with zeros."""

from .asked import TellsEffects
from .credible_sets import CredibleSet

__all__ = ["CredibleSet", "TellsEffects"]
