"""scikit-learn estimators: thin shells that state a model, fit it, and read attributes off its posterior."""

from ._saving import load
from .bayesian_gaussian_mixture import BayesianGaussianMixture
from .gaussian_mixture import GaussianMixture
from .known_variance_mixture import KnownVarianceMixture

__all__ = ["BayesianGaussianMixture", "GaussianMixture", "KnownVarianceMixture", "load"]
