"""caviar: variational inference by coordinate ascent, derived from a stated model.

State a conditionally conjugate model, hand over data, and get the best mean-field posterior with its
evidence lower bound. Names are loaded when they are first used; ``import caviar`` itself loads nothing
else.
"""

from __future__ import annotations

from importlib import import_module

from ._version import __version__

TYPE_CHECKING = False
"""As typing has it, whose import would take longer than all the rest."""

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
        LooseBoundWarning,
        LostDigitsWarning,
        ModelError,
        ParameterError,
        PlateError,
        PrecisionWarning,
        RenamedWarning,
        SkippedGroupsWarning,
        VerificationError,
    )
    from .data import LazyTable, scan, scan_documents
    from .densities import NormalMixture, ProductStudentMixture, StudentMixture
    from .engine.ascent.driver import Progress
    from .engine.ascent.schedules.effects import Refined
    from .engine.ascent.schedules.incremental import Incremental
    from .engine.ascent.schedules.stochastic import Stochastic
    from .estimators import (
        BayesianGaussianMixture,
        GaussianMixture,
        HiddenMarkovModel,
        KnownVarianceMixture,
        LatentDirichletAllocation,
        MixedMixture,
        MixedModel,
        MixtureComparison,
        Move,
        compare_mixtures,
        load,
    )
    from .execution import DaskExecutor, Device
    from .fitting.many import ManyFits, fit_many
    from .fitting.model import Model
    from .language.algebra import diagonal, dot
    from .language.binomial import Binomial
    from .language.chain_mixtures import MarkovChainMixture
    from .language.chains import MarkovChain
    from .language.constants import Constant
    from .language.discrete import Bernoulli, Categorical, Multinomial, Poisson
    from .language.frequencies import Frequencies
    from .language.linear_gaussian_chains import LinearGaussianChain
    from .language.links import exp, logistic, probit
    from .language.negative_binomial import NegativeBinomial
    from .language.nodes import Data
    from .language.nonnegative import Exponential, HalfNormal
    from .language.normal_gammas import MultivariateNormalGamma, NormalGamma, TiedNormalGamma
    from .language.normal_wisharts import NormalWishart, TiedNormalWishart
    from .language.normals import MultivariateNormal, Normal
    from .language.ordinal import Thresholds, ordered
    from .language.partly_seen import CensoredNormal, TruncatedNormal
    from .language.plates import Plate
    from .language.positive import Gamma, Wishart
    from .language.potential import Potential
    from .language.simplex import Beta, Dirichlet, StickBreaking
    from .language.softmax import softmax, stick_breaking
    from .language.sparse_vectors import SingleEffect, SpikeSlab
    from .language.weighted_sums import weighted_sum
    from .names.names import Names
    from .posterior.diagnostics import Diagnosis
    from .posterior.effects.credible_sets import CredibleSet
    from .posterior.evidence.comparison import Comparison, compare
    from .posterior.evidence.evidence import Evidence
    from .posterior.evidence.importance import ImportanceSample
    from .posterior.integration.integrated import IntegratedPosterior
    from .posterior.linear_response import LinearResponse
    from .posterior.posterior import Posterior
    from .posterior.prediction import Prediction

_NAMES = {
    ".data": ("LazyTable", "scan", "scan_documents"),
    ".densities": ("NormalMixture", "ProductStudentMixture", "StudentMixture"),
    ".engine.ascent.driver": ("Progress",),
    ".engine.ascent.schedules.effects": ("Refined",),
    ".engine.ascent.schedules.incremental": ("Incremental",),
    ".engine.ascent.schedules.stochastic": ("Stochastic",),
    ".estimators": (
        "BayesianGaussianMixture",
        "GaussianMixture",
        "HiddenMarkovModel",
        "KnownVarianceMixture",
        "LatentDirichletAllocation",
        "MixedMixture",
        "MixedModel",
        "MixtureComparison",
        "Move",
        "compare_mixtures",
        "load",
    ),
    ".execution": ("DaskExecutor", "Device"),
    ".fitting.many": ("ManyFits", "fit_many"),
    ".fitting.model": ("Model",),
    ".language.algebra": ("diagonal", "dot"),
    ".language.chain_mixtures": ("MarkovChainMixture",),
    ".language.chains": ("MarkovChain",),
    ".language.constants": ("Constant",),
    ".language.discrete": ("Bernoulli", "Categorical", "Multinomial", "Poisson"),
    ".language.frequencies": ("Frequencies",),
    ".language.nonnegative": ("Exponential", "HalfNormal"),
    ".language.linear_gaussian_chains": ("LinearGaussianChain",),
    ".language.links": ("exp", "logistic", "probit"),
    ".language.binomial": ("Binomial",),
    ".language.potential": ("Potential",),
    ".language.softmax": ("softmax", "stick_breaking"),
    ".language.negative_binomial": ("NegativeBinomial",),
    ".language.nodes": ("Data",),
    ".language.normal_gammas": ("MultivariateNormalGamma", "NormalGamma", "TiedNormalGamma"),
    ".language.normal_wisharts": ("NormalWishart", "TiedNormalWishart"),
    ".language.normals": ("MultivariateNormal", "Normal"),
    ".language.ordinal": ("Thresholds", "ordered"),
    ".language.partly_seen": ("CensoredNormal", "TruncatedNormal"),
    ".language.plates": ("Plate",),
    ".language.positive": ("Gamma", "Wishart"),
    ".language.simplex": ("Beta", "Dirichlet", "StickBreaking"),
    ".language.sparse_vectors": ("SingleEffect", "SpikeSlab"),
    ".language.weighted_sums": ("weighted_sum",),
    ".posterior.effects.credible_sets": ("CredibleSet",),
    ".posterior.evidence.comparison": ("Comparison", "compare"),
    ".posterior.diagnostics": ("Diagnosis",),
    ".posterior.evidence.evidence": ("Evidence",),
    ".posterior.evidence.importance": ("ImportanceSample",),
    ".names.names": ("Names",),
    ".posterior.integration.integrated": ("IntegratedPosterior",),
    ".posterior.linear_response": ("LinearResponse",),
    ".posterior.posterior": ("Posterior",),
    ".posterior.prediction": ("Prediction",),
}
_HOME = {name: home for home, names in _NAMES.items() for name in names}
"""Where a name is; all others are errors and warnings."""
_MODULES = ("data", "datasets", "densities", "families", "models", "plot", "report", "testing")

__all__ = [
    "BayesianGaussianMixture",
    "Bernoulli",
    "Beta",
    "Binomial",
    "Categorical",
    "CaviarError",
    "CaviarWarning",
    "CensoredNormal",
    "CheckpointError",
    "CheckpointWarning",
    "ClusterError",
    "ClusterWarning",
    "CollapseWarning",
    "Comparison",
    "ConjugacyError",
    "Constant",
    "ConvergenceWarning",
    "CredibleSet",
    "DaskExecutor",
    "Data",
    "DataError",
    "Device",
    "Diagnosis",
    "Dirichlet",
    "Evidence",
    "Exponential",
    "FallingElboWarning",
    "FittedAttributeError",
    "Frequencies",
    "Gamma",
    "GaussianMixture",
    "HalfNormal",
    "HiddenMarkovModel",
    "ImportanceSample",
    "ImproperError",
    "Incremental",
    "IntegratedPosterior",
    "KnownVarianceMixture",
    "LatentDirichletAllocation",
    "LazyTable",
    "LinearGaussianChain",
    "LinearResponse",
    "LooseBoundWarning",
    "LostDigitsWarning",
    "ManyFits",
    "MarkovChain",
    "MarkovChainMixture",
    "MixedMixture",
    "MixedModel",
    "MixtureComparison",
    "Model",
    "ModelError",
    "Move",
    "Multinomial",
    "MultivariateNormal",
    "MultivariateNormalGamma",
    "Names",
    "NegativeBinomial",
    "Normal",
    "NormalGamma",
    "NormalMixture",
    "NormalWishart",
    "ParameterError",
    "Plate",
    "PlateError",
    "Poisson",
    "Posterior",
    "Potential",
    "PrecisionWarning",
    "Prediction",
    "ProductStudentMixture",
    "Progress",
    "Refined",
    "RenamedWarning",
    "SingleEffect",
    "SkippedGroupsWarning",
    "SpikeSlab",
    "StickBreaking",
    "Stochastic",
    "StudentMixture",
    "Thresholds",
    "TiedNormalGamma",
    "TiedNormalWishart",
    "TruncatedNormal",
    "VerificationError",
    "Wishart",
    "__version__",
    "compare",
    "compare_mixtures",
    "diagonal",
    "dot",
    "exp",
    "fit_many",
    "load",
    "logistic",
    "ordered",
    "probit",
    "scan",
    "scan_documents",
    "softmax",
    "stick_breaking",
    "weighted_sum",
]


_RENAMED: dict[str, tuple[str, str]] = {}
"""Old public name -> the new one, and the version in which the old one will be gone: a minor version after the first
release that has the new one."""


def __getattr__(name: str) -> object:
    """Load a public name, or a public module, when it is first asked for."""
    if name in _RENAMED:
        return _under_its_new_name(name, *_RENAMED[name])
    if name in _MODULES:
        return import_module(f".{name}", __name__)
    if name in __all__:
        value = getattr(import_module(_HOME.get(name, "._errors"), __name__), name)
        globals()[name] = value
        return value
    advice = import_module("._words_of_others", __name__).advice(name)
    message = f"module {__name__!r} has no attribute {name!r}{advice}"
    raise AttributeError(message, name=name, obj=import_module(__name__))


def _under_its_new_name(name: str, new: str, last: str) -> object:
    """Return what an old name means now, with a warning."""
    kind = import_module("._errors", __name__).RenamedWarning
    message = f"caviar.{name} is now caviar.{new}; the old name will be gone in version {last}"
    import_module("warnings").warn(message, kind, stacklevel=3)
    return __getattr__(new)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
