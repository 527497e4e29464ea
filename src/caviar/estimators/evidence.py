"""Estimators whose model has an evidence, so that :func:`caviar.compare` takes them beside posteriors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..posterior.evidence.evidence import Evidence
from .saveable import Saveable


class HasEvidence(Saveable):
    """An estimator with priors for all its parameters."""

    @property
    def observed_names(self) -> frozenset[str]:
        """Names of the observed variables of the fitted model."""
        check_is_fitted(self)
        return self.posterior_.observed_names

    @property
    def without_prior(self) -> frozenset[str]:
        """Names of unknowns of the fitted model with a flat prior, and of those that are points."""
        check_is_fitted(self)
        return self.posterior_.without_prior

    @property
    def data_summary(self) -> Mapping[str, Any] | None:
        """What the model was fitted to: rows, their weight, and moments of the arrays."""
        check_is_fitted(self)
        return self.posterior_.data_summary

    def data_of_model(self, data: Any) -> Any:
        """Return the data unchanged: the estimator finds its columns itself."""
        return data

    def evidence(
        self,
        X: Any,
        *,
        method: str = "auto",
        n_draws: int = 1000,
        seed: int | np.random.Generator | None = 0,
        sample_weight: Any = None,
    ) -> Evidence:
        """Return the log evidence of the fitted model with its error, as :meth:`Posterior.evidence` does.

        :func:`caviar.compare` compares several models by it.

        Parameters
        ----------
        X
            The data of the fit. A fit that took more than ``X`` needs a mapping: for a mixture of Gaussians ``{"X": X,
            "noise_covariance": errors}`` or ``{"X": X, "y": labels}``, for a hidden Markov model ``{"X": X, "lengths":
            lengths}``. Data are not needed for ``method="elbo"``.
        method, n_draws, seed, sample_weight
            As for :meth:`Posterior.evidence`.

        Raises
        ------
        DataError
            If the data are not those of the fit.

        Examples
        --------
        >>> import caviar as cv
        >>> X = cv.datasets.load_faithful().values
        >>> one, two = (cv.BayesianGaussianMixture(k, random_state=0).fit(X) for k in (1, 2))
        >>> cv.compare({"one": one, "two": two}, X, method="second_order").best
        'two'
        """
        check_is_fitted(self)
        if method == "elbo":
            return self.posterior_.evidence(None, method=method)
        return self.posterior_.evidence(
            self._as_data(X), method=method, n_draws=n_draws, seed=seed, sample_weight=sample_weight
        )
