"""The distributions that a factor can be: one exponential family a module, all with one interface."""

from caviar._public import public_names
from caviar.families._base import ExponentialFamily as ExponentialFamily
from caviar.families._base import MeanPrecision as MeanPrecision
from caviar.families.bernoulli import Bernoulli as Bernoulli
from caviar.families.beta import Beta as Beta
from caviar.families.categorical import Categorical as Categorical
from caviar.families.chain_mixture import ChainMixture as ChainMixture
from caviar.families.changing_markov_chain import ChangingMarkovChain as ChangingMarkovChain
from caviar.families.dirichlet import Dirichlet as Dirichlet
from caviar.families.forecast_markov_chain import ForecastMarkovChain as ForecastMarkovChain
from caviar.families.gamma import Gamma as Gamma
from caviar.families.interval_normal import IntervalNormal as IntervalNormal
from caviar.families.joint_labels import JointLabels as JointLabels
from caviar.families.label_frequencies import LabelFrequencies as LabelFrequencies
from caviar.families.linear_gaussian_chain import LinearGaussianChain as LinearGaussianChain
from caviar.families.log_gamma_tangent import LogGammaTangent as LogGammaTangent
from caviar.families.logit_moments import LogitMoments as LogitMoments
from caviar.families.markov_chain import MarkovChain as MarkovChain
from caviar.families.multivariate_normal import MultivariateNormal as MultivariateNormal
from caviar.families.multivariate_normal_gamma import MultivariateNormalGamma as MultivariateNormalGamma
from caviar.families.normal import Normal as Normal
from caviar.families.normal_gamma import NormalGamma as NormalGamma
from caviar.families.normal_gamma import TiedNormalGamma as TiedNormalGamma
from caviar.families.normal_wishart import NormalWishart as NormalWishart
from caviar.families.normal_wishart import TiedNormalWishart as TiedNormalWishart
from caviar.families.poisson import Poisson as Poisson
from caviar.families.polya_gamma import PolyaGamma as PolyaGamma
from caviar.families.polya_gamma_sum import PolyaGammaSum as PolyaGammaSum
from caviar.families.probit_moments import ProbitMoments as ProbitMoments
from caviar.families.shares import Shares as Shares
from caviar.families.single_effect import SingleEffect as SingleEffect
from caviar.families.softmax_tangent import SoftmaxTangent as SoftmaxTangent
from caviar.families.spike_slab import SpikeSlab as SpikeSlab
from caviar.families.stick_breaking import StickBreaking as StickBreaking
from caviar.families.tabulated import Tabulated as Tabulated
from caviar.families.tabulated_sticks import TabulatedSticks as TabulatedSticks
from caviar.families.truncated_normal import TruncatedNormal as TruncatedNormal
from caviar.families.unseen_normal import UnseenNormal as UnseenNormal
from caviar.families.wishart import Wishart as Wishart

FAMILIES: dict[str, type[ExponentialFamily]] = {
    name: kind
    for name, kind in sorted(globals().items())
    if isinstance(kind, type) and issubclass(kind, ExponentialFamily) and kind is not ExponentialFamily
}
"""Every family by its name."""

__all__ = public_names(globals())  # pyright: ignore[reportUnsupportedDunderAll]
