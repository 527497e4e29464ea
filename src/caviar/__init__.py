"""caviar: variational inference by coordinate ascent, derived from a stated model.

State a conditionally conjugate model, hand over data, and get the best mean-field posterior with its
evidence lower bound. Names are loaded when they are first used; ``import caviar`` itself loads nothing
else.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from ._version import __version__

if TYPE_CHECKING:
    from . import data as data
    from . import datasets as datasets
    from . import densities as densities
    from . import families as families
    from . import models as models
    from . import plot as plot
    from . import report as report
    from . import testing as testing
    from ._errors import (
        CaviarError,
        CaviarWarning,
        CheckpointError,
        CheckpointWarning,
        ClusterError,
        ClusterWarning,
        CollapseWarning,
        ConjugacyError,
        ConvergenceWarning,
        DataError,
        FallingElboWarning,
        FittedAttributeError,
        ImproperError,
        LostDigitsWarning,
        ModelError,
        ParameterError,
        PlateError,
        PrecisionWarning,
        VerificationError,
    )
    from .data import LazyTable, scan
    from .densities import NormalMixture, ProductStudentMixture, StudentMixture
    from .engine.ascent.schedules.incremental import Incremental
    from .engine.ascent.schedules.stochastic import Stochastic
    from .estimators import (
        BayesianGaussianMixture,
        GaussianMixture,
        KnownVarianceMixture,
        LatentDirichletAllocation,
        MixedMixture,
        MixtureComparison,
        Move,
        compare_mixtures,
        load,
    )
    from .execution import DaskExecutor, Device
    from .fitting.model import Model
    from .language import (
        Bernoulli,
        Beta,
        Categorical,
        Constant,
        Data,
        Dirichlet,
        Gamma,
        LinearGaussianChain,
        MarkovChain,
        Multinomial,
        MultivariateNormal,
        MultivariateNormalGamma,
        Normal,
        NormalGamma,
        NormalWishart,
        Plate,
        Poisson,
        StickBreaking,
        TiedNormalGamma,
        TiedNormalWishart,
        Wishart,
        diagonal,
        dot,
        logistic,
        probit,
    )
    from .posterior.diagnostics import Diagnosis
    from .posterior.linear_response import LinearResponse
    from .posterior.posterior import Posterior
    from .posterior.prediction import Prediction

_HOME = {
    **dict.fromkeys(
        (
            "BayesianGaussianMixture",
            "GaussianMixture",
            "KnownVarianceMixture",
            "LatentDirichletAllocation",
            "MixedMixture",
            "MixtureComparison",
            "Move",
            "compare_mixtures",
            "load",
        ),
        ".estimators",
    ),
    **dict.fromkeys(("NormalMixture", "ProductStudentMixture", "StudentMixture"), ".densities"),
    **dict.fromkeys(("DaskExecutor", "Device"), ".execution"),
    **dict.fromkeys(("LazyTable", "scan"), ".data"),
    "Incremental": ".engine.ascent.schedules.incremental",
    "Stochastic": ".engine.ascent.schedules.stochastic",
    "Model": ".fitting.model",
    "Diagnosis": ".posterior.diagnostics",
    "Posterior": ".posterior.posterior",
    "LinearResponse": ".posterior.linear_response",
    "Prediction": ".posterior.prediction",
}
"""Where a name is, except errors and warnings, and the language, which has all others."""
_MODULES = ("data", "datasets", "densities", "families", "models", "plot", "report", "testing")

__all__ = [
    "BayesianGaussianMixture",
    "Bernoulli",
    "Beta",
    "Categorical",
    "CaviarError",
    "CaviarWarning",
    "CheckpointError",
    "CheckpointWarning",
    "ClusterError",
    "ClusterWarning",
    "CollapseWarning",
    "ConjugacyError",
    "Constant",
    "ConvergenceWarning",
    "DaskExecutor",
    "Data",
    "DataError",
    "Device",
    "Diagnosis",
    "Dirichlet",
    "FallingElboWarning",
    "FittedAttributeError",
    "Gamma",
    "GaussianMixture",
    "ImproperError",
    "Incremental",
    "KnownVarianceMixture",
    "LatentDirichletAllocation",
    "LazyTable",
    "LinearGaussianChain",
    "LinearResponse",
    "LostDigitsWarning",
    "MarkovChain",
    "MixedMixture",
    "MixtureComparison",
    "Model",
    "ModelError",
    "Move",
    "Multinomial",
    "MultivariateNormal",
    "MultivariateNormalGamma",
    "Normal",
    "NormalGamma",
    "NormalMixture",
    "NormalWishart",
    "ParameterError",
    "Plate",
    "PlateError",
    "Poisson",
    "Posterior",
    "PrecisionWarning",
    "Prediction",
    "ProductStudentMixture",
    "StickBreaking",
    "Stochastic",
    "StudentMixture",
    "TiedNormalGamma",
    "TiedNormalWishart",
    "VerificationError",
    "Wishart",
    "__version__",
    "compare_mixtures",
    "diagonal",
    "dot",
    "load",
    "logistic",
    "probit",
    "scan",
]


def __getattr__(name: str) -> object:
    """Load a public name, or a public module, when it is first asked for."""
    if name in _MODULES:
        return import_module(f".{name}", __name__)
    if name in __all__:
        home = "._errors" if name.endswith(("Error", "Warning")) else _HOME.get(name, ".language")
        value = getattr(import_module(home, __name__), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
