"""The language: how a model is stated, and the terms that a statement becomes."""

from .algebra import Diagonal, Link, Predictor, diagonal, dot
from .chains import MarkovChain
from .constants import Constant
from .discrete import Bernoulli, Categorical, Multinomial, Poisson
from .linear_gaussian_chains import LinearGaussianChain
from .links import logistic, probit
from .nodes import Data, Indexed, Label, Node, Part
from .normal_gammas import MultivariateNormalGamma, NormalGamma, TiedNormalGamma
from .normal_wisharts import NormalWishart, TiedNormalWishart
from .normals import MultivariateNormal, Normal
from .plates import Plate
from .positive import Gamma, Wishart
from .simplex import Beta, Dirichlet, StickBreaking
from .slots import Slot
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
    "Axis",
    "Bernoulli",
    "Beta",
    "Categorical",
    "Constant",
    "Data",
    "Diagonal",
    "Dirichlet",
    "Gamma",
    "Indexed",
    "Label",
    "LinearGaussianChain",
    "Link",
    "MarkovChain",
    "Multinomial",
    "MultivariateNormal",
    "MultivariateNormalGamma",
    "Node",
    "Normal",
    "NormalGamma",
    "NormalWishart",
    "Operand",
    "Part",
    "Plate",
    "Poisson",
    "Predictor",
    "Slot",
    "StickBreaking",
    "Term",
    "TiedNormalGamma",
    "TiedNormalWishart",
    "Variable",
    "Wishart",
    "base_terms_of",
    "diagonal",
    "dot",
    "logistic",
    "nodes_above",
    "plate_axes",
    "probit",
    "prove_conjugate",
    "terms_of",
    "zero_terms_of",
]
