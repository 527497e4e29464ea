"""The verification kit: exact answers that a variational posterior can be held against.

It uses nothing of the engine, so that an error there cannot hide here.
"""

from caviar.testing._evidence import ExactPosterior, exact_kl, exact_log_evidence, exact_posterior
from caviar.testing._gradients import NumericalGradient, numerical_gradient

__all__ = [
    "ExactPosterior",
    "NumericalGradient",
    "exact_kl",
    "exact_log_evidence",
    "exact_posterior",
    "numerical_gradient",
]
