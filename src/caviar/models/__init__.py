"""The classic models, each a page that states it in the language and returns a :class:`caviar.Model`."""

from .._public import public_names
from .bernoulli_mixture import bernoulli_mixture as bernoulli_mixture
from .conjugate_regression import conjugate_regression as conjugate_regression
from .diagonal_mixture import diagonal_mixture as diagonal_mixture
from .diagonal_mixture import diagonal_mixture_independent as diagonal_mixture_independent
from .dirichlet_categorical import dirichlet_categorical as dirichlet_categorical
from .dirichlet_process_mixture import dirichlet_process_mixture as dirichlet_process_mixture
from .factor_analysis import factor_analysis as factor_analysis
from .gaussian_mixture import gaussian_mixture as gaussian_mixture
from .hidden_markov_model import categorical_hidden_markov_model as categorical_hidden_markov_model
from .hidden_markov_model import gaussian_hidden_markov_model as gaussian_hidden_markov_model
from .hidden_markov_model import poisson_hidden_markov_model as poisson_hidden_markov_model
from .known_variance_mixture import known_variance_mixture as known_variance_mixture
from .latent_class_analysis import latent_class_analysis as latent_class_analysis
from .latent_dirichlet_allocation import latent_dirichlet_allocation as latent_dirichlet_allocation
from .linear_dynamical_system import linear_dynamical_system as linear_dynamical_system
from .linear_regression import linear_regression as linear_regression
from .logistic_regression import logistic_regression as logistic_regression
from .matrix_factorisation import matrix_factorisation as matrix_factorisation
from .maximum_likelihood_mixture import maximum_likelihood_mixture as maximum_likelihood_mixture
from .measured_mixture import measured_mixture as measured_mixture
from .mixed_mixture import mixed_mixture as mixed_mixture
from .normal_factorised import normal_factorised as normal_factorised
from .normal_gamma import normal_gamma as normal_gamma
from .normal_wishart_mixture import normal_wishart_mixture as normal_wishart_mixture
from .poisson_mixture import poisson_mixture as poisson_mixture
from .probabilistic_pca import probabilistic_pca as probabilistic_pca
from .probit_regression import probit_regression as probit_regression
from .relevance_regression import relevance_regression as relevance_regression
from .robust_mixture import robust_mixture as robust_mixture
from .robust_regression import robust_regression as robust_regression
from .sparse_effects import sparse_effects as sparse_effects
from .spherical_mixture import spherical_mixture as spherical_mixture
from .spherical_mixture import spherical_mixture_independent as spherical_mixture_independent
from .tied_mixture import tied_mixture as tied_mixture
from .tied_mixture import tied_mixture_independent as tied_mixture_independent
from .unit_variance_mixture import unit_variance_mixture as unit_variance_mixture
from .varying_coefficients import varying_coefficients as varying_coefficients

__all__ = public_names(globals())  # pyright: ignore[reportUnsupportedDunderAll]
