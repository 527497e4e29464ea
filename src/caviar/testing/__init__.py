"""The verification kit: what a variational posterior, and the model it was fitted with, can be checked against.

It does not use the engine, so an error in the engine cannot hide here.
"""

from caviar.testing._check_model import check_model
from caviar.testing._elbo_estimate import ElboEstimate, elbo_estimate
from caviar.testing._evidence import ExactPosterior, exact_kl, exact_log_evidence, exact_posterior
from caviar.testing._exact_draws import ExactDraws, exact_draws
from caviar.testing._gradients import NumericalGradient, numerical_gradient
from caviar.testing._intervals import IntervalCheck, IntervalReport, check_intervals
from caviar.testing._recovery import coverage
from caviar.testing._report import Check, VerificationReport
from caviar.testing._stationarity import elbo_slopes

__all__ = [
    "Check",
    "ElboEstimate",
    "ExactDraws",
    "ExactPosterior",
    "IntervalCheck",
    "IntervalReport",
    "NumericalGradient",
    "VerificationReport",
    "check_intervals",
    "check_model",
    "coverage",
    "elbo_estimate",
    "elbo_slopes",
    "exact_draws",
    "exact_kl",
    "exact_log_evidence",
    "exact_posterior",
    "numerical_gradient",
]
