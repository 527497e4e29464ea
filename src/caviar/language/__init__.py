"""The language: how a model is stated, and the terms that a statement becomes."""

from importlib import import_module
from pkgutil import walk_packages

from .distributions.nonnegative import Exponential, HalfNormal, Nonnegative
from .distributions.normal_gammas import NormalGamma
from .distributions.normal_wisharts import NormalWishart
from .distributions.normals import MultivariateNormal, Normal
from .distributions.positive import Gamma, Wishart
from .distributions.potential import Potential
from .distributions.simplex import Beta, Dirichlet, StickBreaking
from .distributions.sparse_vectors import SingleEffect, SparseVector, SpikeSlab
from .factors import with_factors
from .frequencies import Frequencies
from .nodes.algebra import Diagonal, Link, Predictor, diagonal, dot
from .nodes.constants import Constant
from .nodes.node import Data, Indexed, Label, Node, Part, SecondLabel
from .nodes.plates import Plate
from .nodes.slots import Slot
from .nodes.weighted_sums import WeightedSum, weighted_sum
from .outcomes.binomial import Binomial
from .outcomes.discrete import Bernoulli, Categorical, Multinomial, Poisson
from .outcomes.links import exp, logistic, probit
from .outcomes.negative_binomial import NegativeBinomial
from .outcomes.ordinal import Thresholds, ordered
from .outcomes.partly_seen import CensoredNormal, TruncatedNormal
from .outcomes.softmax import StickBreakingLogits, softmax, stick_breaking
from .sequences.chain_mixtures import MarkovChainMixture
from .sequences.chains import MarkovChain
from .sequences.linear_gaussian_chains import LinearGaussianChain
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
    for found in walk_packages(__path__, f"{__name__}.")
    for kind in vars(import_module(found.name)).values()
    if isinstance(kind, type) and issubclass(kind, Variable) and not kind.is_brought
]

DISTRIBUTIONS: dict[str, type[Variable]] = {k.__name__: k for k in _KINDS if "family" in vars(k)}
"""Every distribution that a model can be stated with, by its name: those of all modules of this package and below."""
