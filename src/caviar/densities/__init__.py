"""Mixture densities, and what is done with a predictive distribution.

Evaluated, marginalised and conditioned exactly, sampled; from which follow regression, imputation and the
detection of outliers. They are plain values, and know nothing of how they were fitted.
"""

from .components.whitening import whitening_of_precisions, whitening_of_shapes
from .measured import measured_log_density
from .mixture import MixtureDensity
from .normal import NormalMixture
from .outliers import OutlierThreshold
from .prediction import ConditionalPrediction
from .product import ProductStudentMixture
from .student import StudentMixture

__all__ = [
    "ConditionalPrediction",
    "MixtureDensity",
    "NormalMixture",
    "OutlierThreshold",
    "ProductStudentMixture",
    "StudentMixture",
    "measured_log_density",
    "whitening_of_precisions",
    "whitening_of_shapes",
]
