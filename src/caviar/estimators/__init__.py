"""scikit-learn estimators: thin shells that state a model, fit it, and read attributes off its posterior."""

from ._saving import load
from .automatic import Move
from .bayesian_gaussian_mixture import BayesianGaussianMixture
from .compare_mixtures import compare_mixtures
from .comparison import MixtureComparison
from .gaussian_mixture import GaussianMixture
from .hidden_markov_model import HiddenMarkovModel
from .known_variance_mixture import KnownVarianceMixture
from .latent_dirichlet_allocation import LatentDirichletAllocation
from .mixed_mixture import MixedMixture

__all__ = [
    "BayesianGaussianMixture",
    "GaussianMixture",
    "HiddenMarkovModel",
    "KnownVarianceMixture",
    "LatentDirichletAllocation",
    "MixedMixture",
    "MixtureComparison",
    "Move",
    "compare_mixtures",
    "load",
]
