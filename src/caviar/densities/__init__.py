"""Mixture densities, and what is done with a predictive distribution.

Evaluated, marginalised and conditioned exactly, sampled; from which follow regression, imputation and the
detection of outliers. They are plain values, and know nothing of how they were fitted.
"""

from .._public import public_names
from .measured import measured_log_density as measured_log_density
from .mixture import MixtureDensity as MixtureDensity
from .normal import NormalMixture as NormalMixture
from .outliers import OutlierThreshold as OutlierThreshold
from .prediction import ConditionalPrediction as ConditionalPrediction
from .product import ProductStudentMixture as ProductStudentMixture
from .student import StudentMixture as StudentMixture
from .whitening import whitening_of_precisions as whitening_of_precisions
from .whitening import whitening_of_shapes as whitening_of_shapes

__all__ = public_names(globals())  # pyright: ignore[reportUnsupportedDunderAll]
