"""The classic models, each a page that states it in the language and returns a :class:`caviar.Model`."""

from .bernoulli_mixture import bernoulli_mixture
from .conjugate_regression import conjugate_regression
from .diagonal_mixture import diagonal_mixture, diagonal_mixture_independent
from .dirichlet_categorical import dirichlet_categorical
from .dirichlet_process_mixture import dirichlet_process_mixture
from .factor_analysis import factor_analysis
from .gaussian_mixture import gaussian_mixture
from .hidden_markov_model import (
    categorical_hidden_markov_model,
    gaussian_hidden_markov_model,
    poisson_hidden_markov_model,
)
from .known_variance_mixture import known_variance_mixture
from .latent_class_analysis import latent_class_analysis
from .latent_dirichlet_allocation import latent_dirichlet_allocation
from .linear_dynamical_system import linear_dynamical_system
from .linear_regression import linear_regression
from .logistic_regression import logistic_regression
from .matrix_factorisation import matrix_factorisation
from .maximum_likelihood_mixture import maximum_likelihood_mixture
from .measured_mixture import measured_mixture
from .mixed_mixture import mixed_mixture
from .normal_factorised import normal_factorised
from .normal_gamma import normal_gamma
from .normal_wishart_mixture import normal_wishart_mixture
from .poisson_mixture import poisson_mixture
from .probabilistic_pca import probabilistic_pca
from .probit_regression import probit_regression
from .relevance_regression import relevance_regression
from .robust_mixture import robust_mixture
from .robust_regression import robust_regression
from .sparse_effects import sparse_effects
from .spherical_mixture import spherical_mixture, spherical_mixture_independent
from .tied_mixture import tied_mixture, tied_mixture_independent
from .unit_variance_mixture import unit_variance_mixture
from .varying_coefficients import varying_coefficients

__all__ = [
    "bernoulli_mixture",
    "categorical_hidden_markov_model",
    "conjugate_regression",
    "diagonal_mixture",
    "diagonal_mixture_independent",
    "dirichlet_categorical",
    "dirichlet_process_mixture",
    "factor_analysis",
    "gaussian_hidden_markov_model",
    "gaussian_mixture",
    "known_variance_mixture",
    "latent_class_analysis",
    "latent_dirichlet_allocation",
    "linear_dynamical_system",
    "linear_regression",
    "logistic_regression",
    "matrix_factorisation",
    "maximum_likelihood_mixture",
    "measured_mixture",
    "mixed_mixture",
    "normal_factorised",
    "normal_gamma",
    "normal_wishart_mixture",
    "poisson_hidden_markov_model",
    "poisson_mixture",
    "probabilistic_pca",
    "probit_regression",
    "relevance_regression",
    "robust_mixture",
    "robust_regression",
    "sparse_effects",
    "spherical_mixture",
    "spherical_mixture_independent",
    "tied_mixture",
    "tied_mixture_independent",
    "unit_variance_mixture",
    "varying_coefficients",
]
