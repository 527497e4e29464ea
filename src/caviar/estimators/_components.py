"""What the two Bayesian forms of a Gaussian mixture share: their prior, and what is read off their posterior."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from .._model import Model
from .._posterior import Posterior
from .._typing import Array
from ..densities import MixtureDensity
from ._data_scale import DataScale

__all__ = ["Components", "MeanPrecisionFamily", "MixturePrior"]


@dataclass(frozen=True)
class MixturePrior:
    """Parameters of the prior of a Bayesian Gaussian mixture, as the functions of ``caviar.models`` take them."""

    concentration: ArrayLike
    mean: ArrayLike
    mean_precision: ArrayLike
    df: ArrayLike
    inverse_scale: ArrayLike


@dataclass(frozen=True)
class Components:
    """What is read off a fitted mixture of K Gaussians in D dimensions.

    Attributes
    ----------
    weights, means
        Expectations, shapes (K,) and (K, D).
    precisions
        Expectations of the precision matrices, shape (K, D, D).
    covariances
        Inverses of ``precisions``.
    concentration, mean_precision, df
        Parameters of the factors: (K,); (K,) or (K, D, D); (K,).
    predictive
        Density of a new row.
    """

    weights: Array
    means: Array
    covariances: Array
    precisions: Array
    concentration: Array
    mean_precision: Array
    df: Array
    predictive: MixtureDensity


class MeanPrecisionFamily(ABC):
    """How the means and precisions of a Gaussian mixture are distributed together."""

    @abstractmethod
    def mean_precision(self, given: Any, scale: DataScale) -> ArrayLike:
        """Return the prior precision of the means for what the user gave.

        Raises
        ------
        ParameterError
            If it is impossible.
        """

    @abstractmethod
    def state(self, n_features: int, n_components: int, prior: MixturePrior) -> Model:
        """Return the model."""

    @abstractmethod
    def components(self, posterior: Posterior) -> Components:
        """Return what is read off a posterior of that model."""
