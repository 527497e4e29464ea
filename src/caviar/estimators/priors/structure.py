"""The protocol of a covariance structure: a prior, a statement of rows given their labels, and attributes of a fit."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ..._typing import AnyArray, Array
from ...densities import MixtureDensity
from ...language import Categorical, MarkovChain, Plate, Variable
from ..arguments.checks import as_broadcast
from ..tables.data_scale import DataScale, means_and_units
from .mean_precision_prior import MeanPrecisionPrior
from .scale_prior import ScalePrior

Label = Categorical | MarkovChain
"""What chooses among the components: a label for each row, or states that follow each other."""


@dataclass(frozen=True)
class ComponentPrior:
    """Prior of the components of a mixture of K Gaussians in D dimensions.

    Attributes
    ----------
    mean
        Shape (D,) or (K, D).
    mean_precision
        In the joint form a number or shape (K,), in units of the component's own precision; in the independent form the
        precision itself: (D, D) or (K, D, D) where the structure has matrices, else (D,) or (K, D).
    df
        Degrees of freedom: a number, or (K,) if each component has a separate precision. None if it is known.
    inverse_scale
        Of the precision of one component, or of all; None where the precision is known.
    smallest_variance
        Floor on the variances, for fits with point masses.
    """

    mean: Array
    mean_precision: MeanPrecisionPrior
    df: ArrayLike | None
    inverse_scale: ScalePrior | None
    smallest_variance: ArrayLike | None = None

    @property
    def scale(self) -> ScalePrior:
        """The inverse scale of precisions that are not known."""
        assert self.inverse_scale is not None
        return self.inverse_scale


@dataclass(frozen=True)
class Components:
    """Parameters of the fitted components.

    Attributes
    ----------
    means
        Shape (K, D).
    covariances, precisions
        In the shape of the structure. ``precisions`` are expectations, and ``covariances`` their inverses.
    mean_precision, df
        Parameters of the factors, infinite where a component is known; None of what no component has.
    """

    means: Array
    covariances: Array
    precisions: Array
    mean_precision: Array | None = None
    df: Array | None = None


class Form(ABC):
    """How the means and the precisions of a structure are distributed together.

    Parameters
    ----------
    is_tied
        Whether components, or the columns of one, share a precision.

    Attributes
    ----------
    learns_mean_precision
        Whether the prior precision of the means may be learnt: where it is in units of the component's own.
    """

    learns_mean_precision: ClassVar[bool] = False

    def __init__(self, *, is_tied: bool = False) -> None:
        self.is_tied = is_tied

    @abstractmethod
    def mean_precision(self, name: str, given: Any, scale: DataScale, n_components: int) -> ArrayLike:
        """Return the prior precision of the means for what the user gave.

        Raises
        ------
        ParameterError
            If it is impossible.
        """

    @abstractmethod
    def observe(self, name: str, z: Label, prior: ComponentPrior, component: Plate | None = None) -> Variable:
        """Return the rows given their labels, with the parameters of the components above them.

        Parameters
        ----------
        name
            Of the rows.
        z
            Labels of the rows; what chooses among the components.
        prior
            Of the components.
        component
            The plate of the components, where something else has it too; by default a new one.
        """

    @abstractmethod
    def components(self, factors: Mapping[str, Any]) -> Components:
        """Return what is read off the factors of that statement."""

    @abstractmethod
    def predictive(self, factors: Mapping[str, Any], weights: Array) -> MixtureDensity:
        """Return the density of a new row, given the expected weights."""

    @abstractmethod
    def draw(self, factors: Mapping[str, Any], n_draws: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Return draws of the means, (n, K, D), and of the covariances, (n, ...) in the shape of the structure."""


class JointForm(Form):
    """A mean and its precision as one factor: the prior of the mean is in units of the component's own precision."""

    learns_mean_precision = True

    def mean_precision(self, name: str, given: Any, scale: DataScale, n_components: int) -> ArrayLike:
        """Return the number itself, or (K,)."""
        return as_broadcast(name, given, (n_components,), "one number, or one a component", above=0)


class CovarianceStructure(ABC):
    """A covariance structure: what the covariance matrices of the components share.

    Attributes
    ----------
    name
        The word of ``covariance_type``.
    joint, independent
        Its two forms.
    is_known
        Whether the covariances are known, and so have no prior.
    has_independent_columns
        Whether the columns of a component are independent.
    """

    name: ClassVar[str]
    joint: ClassVar[Form]
    independent: ClassVar[Form]
    is_known: ClassVar[bool] = False
    has_independent_columns: ClassVar[bool] = False

    @abstractmethod
    def shape(self, n_components: int, n_features: int) -> tuple[int, ...]:
        """Return the shape of all covariances."""

    @abstractmethod
    def n_parameters(self, n_components: int, n_features: int) -> int:
        """Return the number of free parameters of all covariances."""

    @abstractmethod
    def matrices(self, covariances: Array, n_components: int, n_features: int) -> Array:
        """Return covariances of this structure as matrices, shape (K, D, D)."""

    @abstractmethod
    def wishart_size(self, n_features: int) -> int:
        """Return the size of the precisions as Wishart matrices: D, or 1 where columns are independent."""

    def n_precisions(self, n_components: int) -> int | None:
        """Return the number of components with separate degrees of freedom; None if all share them."""
        return n_components

    @abstractmethod
    def checked(self, name: str, given: Any, n_components: int, n_features: int) -> Array:
        """Return covariances or precisions that the user gave: in the shape of the structure, or of one component.

        Raises
        ------
        ParameterError
            If they are impossible.
        """

    @abstractmethod
    def covariance_of(self, scale: DataScale) -> Array:
        """Return the covariance of the data under this structure, in the shape of one component."""

    @abstractmethod
    def variances_of(self, scale: DataScale) -> Array:
        """Return the variances of the data that a learnt scale begins with, (D,); or one number."""

    def of_many(self, X: Array, counts: AnyArray) -> tuple[Array, Array, AnyArray]:
        """Return means and :meth:`variances_of` many tables, (G, ...), and which of these are ordinary, (G,)."""
        means, units, is_ordinary = means_and_units(X, counts)
        return means, self._variances_of_each(means, units, counts), is_ordinary

    def _variances_of_each(self, means: Array, units: Array, counts: AnyArray) -> Array:
        """Return :meth:`variances_of` many tables, (G, ...), from their means and units, (G, D)."""
        scales = map(DataScale, means, units, [None] * len(means), counts)
        return np.stack([self.variances_of(scale) for scale in scales])

    @abstractmethod
    def covariance_with(self, variances: Array) -> Array:
        """Return the covariance with such variances, in the shape of one component."""

    @abstractmethod
    def precision_roots(self, precisions: Array) -> Array:
        """Return P with P P' equal to each precision matrix, upper triangular; of numbers their roots."""

    @abstractmethod
    def invert(self, covariances: Array) -> Array:
        """Return precisions for covariances, or the other way round."""
