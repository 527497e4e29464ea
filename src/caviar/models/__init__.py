"""The classic models, each a page that states it in the language and returns a :class:`caviar.Model`."""

from .dirichlet_categorical import dirichlet_categorical
from .gaussian_mixture import gaussian_mixture
from .hidden_markov_model import categorical_hidden_markov_model, gaussian_hidden_markov_model
from .known_variance_mixture import known_variance_mixture
from .maximum_likelihood_mixture import maximum_likelihood_mixture
from .normal_factorised import normal_factorised
from .normal_gamma import normal_gamma
from .normal_wishart_mixture import normal_wishart_mixture

__all__ = [
    "categorical_hidden_markov_model",
    "dirichlet_categorical",
    "gaussian_hidden_markov_model",
    "gaussian_mixture",
    "known_variance_mixture",
    "maximum_likelihood_mixture",
    "normal_factorised",
    "normal_gamma",
    "normal_wishart_mixture",
]
