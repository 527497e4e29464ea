"""The distributions that a factor can be: one exponential family a module, all with one interface."""

from caviar.families.approximations.log_gamma_tangent import LogGammaTangent
from caviar.families.approximations.logit_moments import LogitMoments
from caviar.families.approximations.probit_moments import ProbitMoments
from caviar.families.approximations.softmax_tangent import SoftmaxTangent
from caviar.families.base.family import ExponentialFamily, MeanPrecision
from caviar.families.bernoulli import Bernoulli
from caviar.families.beta import Beta
from caviar.families.categorical import Categorical
from caviar.families.chains.chain_mixture import ChainMixture
from caviar.families.chains.changing_markov_chain import ChangingMarkovChain
from caviar.families.chains.forecast_markov_chain import ForecastMarkovChain
from caviar.families.chains.linear_gaussian_chain import LinearGaussianChain
from caviar.families.chains.markov_chain import MarkovChain
from caviar.families.dirichlet import Dirichlet
from caviar.families.gamma import Gamma
from caviar.families.interval_normal import IntervalNormal
from caviar.families.joint_labels import JointLabels
from caviar.families.label_frequencies import LabelFrequencies
from caviar.families.multivariate_normal import MultivariateNormal
from caviar.families.multivariate_normal_gamma import MultivariateNormalGamma
from caviar.families.normal import Normal
from caviar.families.normal_gamma import NormalGamma, TiedNormalGamma
from caviar.families.normal_wishart import NormalWishart, TiedNormalWishart
from caviar.families.poisson import Poisson
from caviar.families.polya_gamma import PolyaGamma
from caviar.families.polya_gamma_sum import PolyaGammaSum
from caviar.families.shares import Shares
from caviar.families.single_effect import SingleEffect
from caviar.families.spike_slab import SpikeSlab
from caviar.families.stick_breaking import StickBreaking
from caviar.families.tabulated.scalar import Tabulated
from caviar.families.tabulated.sticks import TabulatedSticks
from caviar.families.truncated_normal import TruncatedNormal
from caviar.families.unseen_normal import UnseenNormal
from caviar.families.wishart import Wishart

__all__ = [
    "FAMILIES",
    "Bernoulli",
    "Beta",
    "Categorical",
    "ChainMixture",
    "ChangingMarkovChain",
    "Dirichlet",
    "ExponentialFamily",
    "ForecastMarkovChain",
    "Gamma",
    "IntervalNormal",
    "JointLabels",
    "LabelFrequencies",
    "LinearGaussianChain",
    "LogGammaTangent",
    "LogitMoments",
    "MarkovChain",
    "MeanPrecision",
    "MultivariateNormal",
    "MultivariateNormalGamma",
    "Normal",
    "NormalGamma",
    "NormalWishart",
    "Poisson",
    "PolyaGamma",
    "PolyaGammaSum",
    "ProbitMoments",
    "Shares",
    "SingleEffect",
    "SoftmaxTangent",
    "SpikeSlab",
    "StickBreaking",
    "Tabulated",
    "TabulatedSticks",
    "TiedNormalGamma",
    "TiedNormalWishart",
    "TruncatedNormal",
    "UnseenNormal",
    "Wishart",
]

FAMILIES: dict[str, type[ExponentialFamily]] = {
    name: kind
    for name, kind in sorted(globals().items())
    if isinstance(kind, type) and issubclass(kind, ExponentialFamily) and kind is not ExponentialFamily
}
"""Every family by its name."""
