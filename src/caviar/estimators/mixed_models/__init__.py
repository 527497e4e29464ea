"""Mixed models: a formula and a table become a stated model with one Gaussian factor for all coefficients."""

from .mixed_model import MixedModel

__all__ = ["MixedModel"]
