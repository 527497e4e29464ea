"""What the two mixtures of Gaussians in R^d share: structures, statements, labels, starts."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from .._errors import ParameterError
from .._model import Model
from .._posterior import Posterior
from .._typing import AnyArray, Array
from ..densities import MixtureDensity
from ..language import Categorical, Plate
from ._arguments import require_choice
from ._data_scale import DataScale
from ._labels import START_KINDS, known_labels, starting_labels, warn_if_partial
from ._predictive import PredictiveMethods
from ._structure import ComponentPrior, Components, CovarianceStructure, Form
from ._weights import WeightPrior
from .structures import STRUCTURES

__all__ = ["GaussianEstimator", "state"]


def state(
    weights: WeightPrior,
    form: Form,
    prior: ComponentPrior,
    n_components: int,
    smallest_variance: ArrayLike | None = None,
) -> Model:
    """Return the mixture: weights, labels drawn from them, and the rows given their labels."""
    z = Categorical("z", weights.state(n_components), plates=Plate("obs"))
    return Model(form.observe("x", z, prior, smallest_variance))


class GaussianEstimator(PredictiveMethods):
    """A mixture of Gaussians in R^d with one of several covariance structures."""

    covariance_type: str
    init_params: Any
    semi_supervised: bool
    warm_start: bool

    n_components_: int
    precisions_: Array

    @property
    def _structure(self) -> CovarianceStructure:
        return STRUCTURES[self.covariance_type]

    @abstractmethod
    def _weight_prior(self, n_components: int) -> WeightPrior:
        """Return how the weights of so many components are distributed."""

    def _check_settings(self) -> None:
        super()._check_settings()
        require_choice("covariance_type", self.covariance_type, tuple(STRUCTURES))
        if isinstance(self.init_params, str):
            require_choice("init_params, if it is no array,", self.init_params, START_KINDS)

    def _data(self, X: AnyArray, y: Any) -> dict[str, AnyArray]:
        data = super()._data(X, y)
        if self.semi_supervised:
            data["z"] = known_labels(y, len(X), self.n_components)
        else:
            warn_if_partial(y, type(self).__name__)
        return data

    def _starts(
        self, X: AnyArray, scale: DataScale, generator: np.random.Generator
    ) -> str | list[dict[str, Any]]:
        """Return where the starts begin."""
        if self.warm_start and hasattr(self, "posterior_"):
            return [self._last_factors()]
        if isinstance(self.init_params, str) and self.init_params == "auto":
            return "auto"
        n_starts = self.n_init if isinstance(self.init_params, str) else 1
        return [
            {"z": starting_labels(self.init_params, X, scale, self.n_components, generator)}
            for _ in range(n_starts)
        ]

    def _last_factors(self) -> dict[str, Any]:
        if self.means_.shape[0] != self.n_components:
            raise ParameterError(
                f"warm_start=True goes on from {self.means_.shape[0]} components, but n_components is "
                f"{self.n_components}; set warm_start=False"
            )
        return {name: self.posterior_[name] for name in self.posterior_}

    def _read(self, posterior: Posterior) -> MixtureDensity:
        dimension = posterior.model.variables["z"].dimension
        assert dimension is not None
        self.n_components_ = dimension
        self.weights_ = self._weight_prior(dimension).weights(posterior)
        found = self._form.components(posterior)
        self.means_, self.covariances_, self.precisions_ = found.means, found.covariances, found.precisions
        self._read_more(posterior, found)
        return self._form.predictive(posterior, self.weights_)

    def _read_more(self, posterior: Posterior, found: Components) -> None:
        """Set further attributes that are read off a posterior."""

    @property
    def precisions_cholesky_(self) -> Array:
        """Factors P of the precisions in the shape of the structure: P P' of a matrix, upper triangular; else roots."""
        check_is_fitted(self)
        return self._structure.precision_roots(self.precisions_)

    def covariance_matrices(self) -> Array:
        """Return ``covariances_`` as matrices whatever the structure, shape (K, D, D)."""
        check_is_fitted(self)
        return self._structure.matrices(self.covariances_, *self.means_.shape)
