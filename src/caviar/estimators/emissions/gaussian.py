"""States that emit Gaussian rows, with one of several covariance structures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..._typing import AnyArray, Array
from ...densities import MixtureDensity
from ...language import Plate, Variable
from ...posterior.posterior import Posterior
from ...posterior.prediction.prediction import Prediction
from ..arguments.checks import require_choice
from ..mixtures.components import estimates_of
from ..mixtures.uncertainty import mean_interval
from ..priors.component_prior import component_prior
from ..priors.structure import Components, CovarianceStructure, Form, Label
from ..structures import STRUCTURES
from ..tables.data_scale import scale_of
from ..tables.numbers import rows_of_numbers
from ._emission import Emission, Emitted, Observe


def _form(settings: Any) -> Form:
    return getattr(STRUCTURES[settings.covariance_type], settings.mean_precision_family)


class Gaussian(Emission):
    """A Gaussian in D dimensions for each state; prior and covariance structures as in BayesianGaussianMixture."""

    name = "gaussian"
    arguments: ClassVar = (
        "covariance_type",
        "mean_precision_family",
        "mean_prior",
        "mean_precision_prior",
        "degrees_of_freedom_prior",
        "covariance_prior",
    )

    def check(self, settings: Any) -> None:
        """Refuse words that do not exist."""
        require_choice("covariance_type", settings.covariance_type, tuple(STRUCTURES))
        require_choice("mean_precision_family", settings.mean_precision_family, ("joint", "independent"))

    def rows(self, estimator: Any, X: Any, *, reset: bool) -> Array:
        """Return rows of finite numbers, or NaN."""
        return rows_of_numbers(estimator, X, reset=reset)

    def stated(self, settings: Any, rows: Array, weights: Array | None) -> Callable[[int], Observe]:
        """Return what states Gaussians, whose prior follows the units of the data where the user gave none."""
        structure = STRUCTURES[settings.covariance_type]
        scale = scale_of(rows, weights, correlated=not structure.has_independent_columns)

        def observe_of(n_states: int) -> Observe:
            prior = component_prior(structure, _form(settings), scale, n_states, settings)

            def observe(states: Label, state: Plate) -> Variable:
                return _form(settings).observe("x", states, prior, component=state)

            return observe

        return observe_of

    def emitted(self, settings: Any, posterior: Posterior) -> Emitted:
        """Return the Student-t, or Normal, distribution of a new row of each state."""
        factors = {name: posterior[name] for name in posterior}
        form, structure = _form(settings), STRUCTURES[settings.covariance_type]
        found = form.components(factors)
        n_states = len(found.means)
        density = form.predictive(factors, np.full(n_states, 1 / n_states))
        return _GaussianRows(settings, structure, found, density)


@dataclass(frozen=True, eq=False)
class _GaussianRows(Emitted):
    settings: Any
    structure: CovarianceStructure
    found: Components
    density: MixtureDensity

    def attributes(self) -> Mapping[str, Any]:
        """Return means, covariances and precisions."""
        found = self.found
        return {"means_": found.means, "covariances_": found.covariances, "precisions_": found.precisions}

    def log_densities(self, rows: Array) -> Array:
        """Return log densities of what was observed."""
        return self.density.component_log_density(rows)

    def draw(self, states: AnyArray, generator: np.random.Generator) -> AnyArray:
        """Return rows."""
        return self.density.locations[states] + self.density.draw_residuals(states, generator)

    def prediction(self, shares: Array) -> Prediction:
        """Return a mixture of Normals with the moments of the states' densities."""
        scales, df = self.density.component_scales(), self.density.component_df()
        with np.errstate(divide="ignore", invalid="ignore"):
            widths = scales if df is None else np.where(df > 2, scales * np.sqrt(df / (df - 2)), np.inf)
        return Prediction.of_parts(shares.T[:, :, None], self.density.locations[:, None], widths[:, None])

    def figures(self, level: float) -> Sequence[tuple[tuple[Any, ...], tuple[Any, ...], tuple[Any, ...]]]:
        """Return means with intervals, and standard deviations."""
        n_states, n_features = self.found.means.shape
        matrices = self.structure.matrices(self.found.covariances, n_states, n_features)
        spreads = np.sqrt(np.diagonal(matrices, axis1=1, axis2=2))
        means = estimates_of(self.found.means, *(mean_interval(self.settings, level) or (None, None)))
        return [
            (tuple(own), tuple(sds), (None,) * n_features)
            for own, sds in zip(means, spreads.tolist(), strict=True)
        ]
