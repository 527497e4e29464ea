"""The language: how a model is stated, and the terms that a statement becomes."""

from importlib import import_module
from pkgutil import iter_modules

from .algebra import Diagonal, Link, Predictor, diagonal, dot
from .binomial import Binomial
from .chain_mixtures import MarkovChainMixture
from .chains import MarkovChain
from .constants import Constant
from .discrete import Bernoulli, Categorical, Multinomial, Poisson
from .factors import with_factors
from .frequencies import Frequencies
from .linear_gaussian_chains import LinearGaussianChain
from .links import exp, logistic, probit
from .negative_binomial import NegativeBinomial
from .nodes import Data, Indexed, Label, Node, Part, SecondLabel
from .nonnegative import Exponential, HalfNormal, Nonnegative
from .normal_gammas import NormalGamma
from .normal_wisharts import NormalWishart
from .normals import MultivariateNormal, Normal
from .ordinal import Thresholds, ordered
from .partly_seen import CensoredNormal, TruncatedNormal
from .plates import Plate
from .positive import Gamma, Wishart
from .potential import Potential
from .simplex import Beta, Dirichlet, StickBreaking
from .slots import Slot
from .softmax import StickBreakingLogits, softmax, stick_breaking
from .sparse_vectors import SingleEffect, SparseVector, SpikeSlab
from .terms import (
    Axis,
    Operand,
    Term,
    base_terms_of,
    nodes_above,
    plate_axes,
    prove_conjugate,
    terms_of,
    zero_terms_of,
)
from .variable import Variable
from .weighted_sums import WeightedSum, weighted_sum

__all__ = [
    "DISTRIBUTIONS",
    "Axis",
    "Bernoulli",
    "Beta",
    "Binomial",
    "Categorical",
    "CensoredNormal",
    "Constant",
    "Data",
    "Diagonal",
    "Dirichlet",
    "Exponential",
    "Frequencies",
    "Gamma",
    "HalfNormal",
    "Indexed",
    "Label",
    "LinearGaussianChain",
    "Link",
    "MarkovChain",
    "MarkovChainMixture",
    "Multinomial",
    "MultivariateNormal",
    "NegativeBinomial",
    "Node",
    "Nonnegative",
    "Normal",
    "NormalGamma",
    "NormalWishart",
    "Operand",
    "Part",
    "Plate",
    "Poisson",
    "Potential",
    "Predictor",
    "SecondLabel",
    "SingleEffect",
    "Slot",
    "SparseVector",
    "SpikeSlab",
    "StickBreaking",
    "StickBreakingLogits",
    "Term",
    "Thresholds",
    "TruncatedNormal",
    "Variable",
    "WeightedSum",
    "Wishart",
    "base_terms_of",
    "diagonal",
    "dot",
    "exp",
    "logistic",
    "nodes_above",
    "ordered",
    "plate_axes",
    "probit",
    "prove_conjugate",
    "softmax",
    "stick_breaking",
    "terms_of",
    "weighted_sum",
    "with_factors",
    "zero_terms_of",
]

_KINDS = [
    kind
    for found in iter_modules(__path__)
    for kind in vars(import_module(f"{__name__}.{found.name}")).values()
    if isinstance(kind, type) and issubclass(kind, Variable) and not kind.is_brought
]

DISTRIBUTIONS: dict[str, type[Variable]] = {k.__name__: k for k in _KINDS if "family" in vars(k)}
"""Every distribution that a model can be stated with, by its name: those of all modules of this package."""
