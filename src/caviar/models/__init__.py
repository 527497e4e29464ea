"""The classic models, each a page that states it in the language and returns a :class:`caviar.Model`."""

from .dirichlet_categorical import dirichlet_categorical
from .factor_analysis import factor_analysis
from .gaussian_mixture import gaussian_mixture
from .known_variance_mixture import known_variance_mixture
from .linear_regression import linear_regression
from .matrix_factorisation import matrix_factorisation
from .maximum_likelihood_mixture import maximum_likelihood_mixture
from .normal_factorised import normal_factorised
from .normal_gamma import normal_gamma
from .normal_wishart_mixture import normal_wishart_mixture
from .probabilistic_pca import probabilistic_pca
from .relevance_regression import relevance_regression
from .robust_mixture import robust_mixture
from .robust_regression import robust_regression
from .varying_coefficients import varying_coefficients

__all__ = [
    "dirichlet_categorical",
    "factor_analysis",
    "gaussian_mixture",
    "known_variance_mixture",
    "linear_regression",
    "matrix_factorisation",
    "maximum_likelihood_mixture",
    "normal_factorised",
    "normal_gamma",
    "normal_wishart_mixture",
    "probabilistic_pca",
    "relevance_regression",
    "robust_mixture",
    "robust_regression",
    "varying_coefficients",
]
