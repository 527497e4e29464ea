"""The base of the mixtures of Gaussians in R^d: structures, statements, labels, starts.

Statements that an estimator makes again and again: of many fits, most differ in the values of constants alone.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..._errors import ParameterError
from ..._typing import AnyArray, Array
from ...data import as_rows
from ...densities import MixtureDensity
from ...engine.binding.clamped.factor import PointMass
from ...engine.binding.observed_moments import LARGEST
from ...fitting.many.kinds import Differences, FittedMany
from ...fitting.model import Model
from ...language import Categorical, Plate
from ...language.structure import Structure
from ...lazy.rows import in_memory
from ...names import Placed
from ...posterior.posterior import Posterior
from ..arguments.checkpointing import Checkpointing
from ..arguments.checks import require_choice
from ..arguments.declared import estimator
from ..arguments.fitted import Fitted, keep, refuse_setting
from ..priors.known import Fixed, fixed_of
from ..priors.noise import Noise, noise_of
from ..priors.structure import ComponentPrior, Components, CovarianceStructure, Form
from ..priors.weights import WeightPrior
from ..structures import STRUCTURES
from ..tables.data_scale import DataScale
from ..tables.labels import START_KINDS, known_labels, starting_labels, warn_if_partial
from ..tables.lazy_rows import is_all_missing, whole
from .many import ManyMixtures
from .mixture import REMEDY, RowsToFit
from .predictive import PredictiveMethods


def state(
    weights: WeightPrior, form: Form, prior: ComponentPrior, n_components: int, noise: Noise | None = None
) -> Model:
    """Return the mixture: weights, labels drawn from them, and the rows given their labels.

    With noise, what is given its label is the true value of a row, and the row is that seen through the noise.
    """
    z = Categorical("z", weights.state(n_components), plates=Plate("obs"))
    if noise is None:
        return Model(form.observe("x", z, prior))
    return Model(noise.observe(form.observe("true", z, prior), z))


def restate(
    arguments: Hashable,
    values: Mapping[str, Array],
    weights: WeightPrior,
    form: Form,
    prior: ComponentPrior,
    n_components: int,
) -> Model:
    """Return the mixture, by the values of what depends on the data where it was stated before.

    Parameters
    ----------
    arguments
        What else decides the statement: the arguments of the estimator.
    values
        Of the constants, and smallest variances, that depend on the data, by name.
    weights, form, prior, n_components
        As for :func:`state`.
    """
    shapes = tuple([(name, own.shape) for name, own in values.items()])
    key = arguments, len(prior.mean), n_components, shapes
    return RESTATED.model(key, values, lambda: state(weights, form, prior, n_components))


@estimator
class GaussianEstimator(PredictiveMethods, FittedMany):
    """A mixture of Gaussians in R^d with one of several covariance structures."""

    covariance_type: str = "full"
    init_params: Any = "auto"
    fixed: Mapping[str, Any] | None = None
    semi_supervised: bool = False
    warm_start: bool = False

    n_components_: ClassVar[Any] = Fitted()
    precisions_: ClassVar[Any] = Fitted(REMEDY)

    def __sklearn_tags__(self) -> Any:
        """Say whether labels are needed."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = bool(self.semi_supervised)
        return tags

    @property
    def _structure(self) -> CovarianceStructure:
        return STRUCTURES[self.covariance_type]

    @abstractmethod
    def _weight_prior(self, n_components: int) -> WeightPrior:
        """Return the prior of the weights, given the number of components."""

    def _check_settings(self) -> None:
        super()._check_settings()
        require_choice("covariance_type", self.covariance_type, tuple(STRUCTURES))
        if isinstance(self.init_params, str):
            require_choice("init_params, if it is not an array,", self.init_params, START_KINDS)

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        noise_covariance: Any = None,
        *,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: float = 60.0,
    ) -> Self:
        """Fit the mixture.

        Parameters
        ----------
        {X}
        y
            Ignored unless ``semi_supervised=True``. Then the component of each row, 0 to K - 1, and -1 where it is
            unknown.
        {sample_weight}
        noise_covariance
            Known covariance of the measurement error of each row: variances (N, D) or matrices (N, D, D); (D,) or (D,
            D) if it is the same for all rows. The mixture then describes the true values (extreme deconvolution).
        {checkpoint}

        {end_of_fit}
        """
        return self._fit(X, y, sample_weight, noise_covariance, Checkpointing(checkpoint, checkpoint_every))

    def partial_fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, noise_covariance: Any = None
    ) -> Self:
        """Update the mixture with more rows: its posterior is the prior for them.

        {partial_fit}

        Parameters
        ----------
        X, y, sample_weight
            As for :meth:`fit`; only rows that were not fitted before.
        noise_covariance
            Covariance of the errors of these rows, as for :meth:`fit`. It is required if the first rows had it, and
            refused otherwise.

        Returns
        -------
        self

        Raises
        ------
        ParameterError
            If the first rows had measurement errors and these have none, or the other way round.
        """
        if not hasattr(self, "posterior_"):
            return self.fit(X, y, sample_weight, noise_covariance)
        rows = self._rows_to_fit(X, y, sample_weight, noise_covariance, reset=False)
        self._check_noise(self._noise(rows))
        return self._add(rows)

    def _of_many(self, arguments: Mapping[str, Any]) -> ManyMixtures:
        """Return what :func:`caviar.fit_many` asks of it."""
        if arguments:
            raise ParameterError(
                f"an estimator has its own arguments: give {next(iter(arguments))!r} to {type(self).__name__}"
            )
        return ManyMixtures(self)

    @abstractmethod
    def _differences_of_many(self, X: Array, counts: AnyArray) -> Differences | None:
        """Return what differs between the statements of many tables, (G, N, D); None where each has to be stated."""

    @property
    @abstractmethod
    def _is_joint(self) -> bool:
        """Whether mean and precision of a component are one factor."""

    def _fixed(self, n_features: int) -> Fixed:
        return fixed_of(self.fixed, self._structure, self.n_components, n_features, self._is_joint)

    def _factors(self, posterior: Posterior) -> dict[str, Any]:
        """Return the factors of the parameters, those of which every component is fixed as points."""
        whole = self._fixed(self.n_features_in_).whole(is_joint=self._is_joint)
        points = {
            name: PointMass.of(posterior.model.variables[name], value)
            for name, value in whole.items()
            if name not in posterior
        }
        return {**points, **{name: posterior[name] for name in posterior}}

    def _noise(self, rows: RowsToFit) -> Noise | None:
        if rows.noise_covariance is None:
            return None
        return noise_of(rows.noise_covariance, whole(rows.X, "noise_covariance"), self._structure)

    def _data(self, rows: RowsToFit) -> dict[str, Any]:
        data, noise = (
            {"x": self._values(rows.X)} | self._fixed(rows.X.shape[1]).data(is_joint=self._is_joint),
            self._noise(rows),
        )
        if self.semi_supervised:
            data["z"] = known_labels(in_memory(as_rows(rows.y)), len(rows.X), self.n_components)
        elif as_rows(rows.y) is rows.y:
            warn_if_partial(rows.y, type(self).__name__)
        return Placed(data if noise is None else data | noise.data)

    def _as_data(self, X: Any) -> dict[str, Any]:
        """Return rows by name; with labels or errors, ``X`` is a mapping of the arguments of :meth:`fit`."""
        given = X if isinstance(X, Mapping) else {"X": X}
        if set(given) - {"X", "y", "noise_covariance"} or "X" not in given:
            raise ParameterError(
                f"data with labels or errors of the rows are {{'X': rows, 'y': labels, 'noise_covariance': "
                f"covariances}}; got {', '.join(map(repr, given))}"
            )
        rows = RowsToFit(self._validated(given["X"], reset=False), given.get("y"))
        if given.get("noise_covariance") is not None:
            rows = replace(rows, noise_covariance=given["noise_covariance"])
        elif "true" in self.posterior_.model.structure.variables:
            raise ParameterError(
                "the mixture was fitted to rows with errors; give these, too, as data: "
                "{'X': X, 'noise_covariance': noise_covariance}"
            )
        if self.semi_supervised and rows.y is None:
            raise ParameterError(
                "the mixture was fitted with labels; give these, too, as data: {'X': X, 'y': y}"
            )
        self._check_noise(self._noise(rows))
        return self._data(rows)

    def predict(self, X: Any, noise_covariance: Any = None) -> AnyArray:
        """Return the most probable component of each row, shape (N,).

        Parameters
        ----------
        X, noise_covariance
            As for :meth:`predict_proba`.
        """
        return self._labels(self._rows_to_predict(X, noise_covariance))

    def fit_predict(
        self, X: Any, y: Any = None, sample_weight: Any = None, noise_covariance: Any = None
    ) -> AnyArray:
        """Fit the mixture and return the most probable component of each row, shape (N,).

        Parameters
        ----------
        X, y, sample_weight, noise_covariance
            As for :meth:`fit`.
        """
        return self.fit(X, y, sample_weight, noise_covariance).predict(X, noise_covariance)

    def predict_proba(self, X: Any, noise_covariance: Any = None) -> Array:
        """Return the responsibilities q(z) of rows, shape (N, K), as the fit computes them; the globals do not change.

        Parameters
        ----------
        X
            Rows, as for :meth:`fit`.
        noise_covariance
            Covariance of the errors of the rows, as for :meth:`fit`. It is required if the fit had it, and refused
            otherwise.
        """
        return self._responsibilities(self._rows_to_predict(X, noise_covariance))

    def _rows_to_predict(self, X: Any, noise_covariance: Any = None) -> RowsToFit:
        rows = replace(super()._rows_to_predict(X), noise_covariance=noise_covariance)
        noise = self._noise(rows)
        self._check_noise(noise)
        return rows if noise is None else replace(rows, noise_covariance=noise.covariances)

    def _responsibilities_of(self, rows: RowsToFit) -> Array:
        X, noise = rows.X, rows.noise_covariance
        # neither missing nor so large that it is refused
        if noise is None and X.dtype == np.float64 and np.abs(X).max(initial=0.0) <= LARGEST:
            return self.posterior_._local_of_complete({"x": X}, self._example)["z"].probabilities
        known = self._fixed(X.shape[1]).whole(is_joint=self._is_joint)
        empty = is_all_missing(X)
        # data cannot be missing altogether: a complete row is put in front
        X = np.vstack([self.means_[:1], X]) if empty else X
        data = {"x": X, **known, **({} if noise is None else Noise(noise).data)}
        return self.posterior_.local(data)["z"].probabilities[int(empty) :]

    def _example(self) -> dict[str, Any]:
        """Return data that are complete rows, which the components have in the same place for whatever rows come."""
        return {"x": self.means_, **self._fixed(self.n_features_in_).whole(is_joint=self._is_joint)}

    def _require_true_values(self, method: str) -> None:
        self._check_fitted()
        if "true" in self.posterior_.model.structure.variables:
            raise ParameterError(
                f"the mixture was fitted to rows with errors, and its density is that of their true values: {method} "
                f"would take errors for spread. predictive_ gives the density of true values, for rows without errors"
            )

    def score_samples(self, X: Any) -> Array:
        """Return the log density of each row, shape (N,), in nats; the density integrates to one.

        Parameters
        ----------
        X
            Rows, as for :meth:`fit`.

        Raises
        ------
        ParameterError
            If the mixture was fitted to rows with measurement errors.
        """
        self._require_true_values("score_samples")
        return super().score_samples(X)

    def transform(self, X: Any, noise_covariance: Any = None) -> Array:
        """Return the responsibilities of rows, shape (N, K), as :meth:`predict_proba` does: features for a pipeline.

        Parameters
        ----------
        X, noise_covariance
            As for :meth:`predict_proba`.
        """
        return self.predict_proba(X, noise_covariance)

    def fit_transform(
        self, X: Any, y: Any = None, sample_weight: Any = None, noise_covariance: Any = None
    ) -> Array:
        """Fit the mixture and return the responsibilities of the rows, (N, K).

        Parameters
        ----------
        X, y, sample_weight, noise_covariance
            As for :meth:`fit`.
        """
        return self.fit(X, y, sample_weight, noise_covariance).transform(X, noise_covariance)

    def _check_noise(self, noise: Noise | None) -> None:
        has_noise = "true" in self.posterior_.model.structure.variables
        if has_noise and noise is None:
            raise ParameterError(
                "the mixture was fitted to rows with errors; give noise_covariance= of these rows, too"
            )
        if noise is not None and not has_noise:
            raise ParameterError("the mixture was fitted to rows without errors; leave noise_covariance= out")

    def _starts(
        self, rows: RowsToFit, scale: DataScale, generator: np.random.Generator
    ) -> str | list[dict[str, Any] | Posterior]:
        """Return where the starts begin."""
        if self.warm_start and hasattr(self, "posterior_"):
            return [self._last_fit(rows.X.shape[1])]
        if isinstance(self.init_params, str) and self.init_params == "auto":
            return "auto"
        n_starts = self.n_init if isinstance(self.init_params, str) else 1
        X = (
            whole(rows.X, f"init_params={self.init_params!r}")
            if isinstance(self.init_params, str)
            else rows.X
        )
        given = (self.init_params, X, in_memory(rows.weights), scale, self.n_components, generator)
        return [{"z": starting_labels(*given)} for _ in range(n_starts)]

    def _last_fit(self, n_features: int) -> Posterior:
        if self.means_.shape[0] != self.n_components:
            raise ParameterError(
                f"warm_start=True continues a fit of {self.means_.shape[0]} components, but n_components "
                f"is {self.n_components}; set warm_start=False"
            )
        if self.means_.shape[1] != n_features:
            raise ParameterError(
                f"warm_start=True continues a fit of {self.means_.shape[1]} columns, but X has {n_features}; set "
                f"warm_start=False"
            )
        return self.posterior_

    def _read(self, posterior: Posterior) -> Callable[[], MixtureDensity]:
        dimension = posterior.model.structure.variables["z"].dimension
        assert dimension is not None
        keep(self, n_components_=dimension, weights_=self._weight_prior(dimension).weights(posterior))
        factors = self._factors(posterior)
        found = self._form.components(factors)
        keep(self, means_=found.means, covariances_=found.covariances, precisions_=found.precisions)
        self._read_more(posterior, found)
        return partial(self._form.predictive, factors, self.weights_)

    def _read_more(self, posterior: Posterior, found: Components) -> None:
        """Set further attributes that are read off a posterior."""

    @property
    def precisions_cholesky_(self) -> Array:
        """Upper triangular factors P of the precisions P P'; square roots of diagonal and spherical precisions."""
        check_is_fitted(self)
        return self._structure.precision_roots(self.precisions_)

    @precisions_cholesky_.setter
    def precisions_cholesky_(self, value: Any) -> None:
        refuse_setting(self, "precisions_cholesky_", REMEDY)

    def covariance_matrices(self) -> Array:
        """Return the covariance matrices of all components, shape (K, D, D), whatever the structure."""
        check_is_fitted(self)
        return self._structure.matrices(self.covariances_, *self.means_.shape)


_MOST_STATEMENTS = 64
"""Statements that are remembered, those that were asked for last."""

_SEEN: Any = object()
"""In the place of a statement that was made once."""


class Restated:
    """Models of estimators by what they depend on besides values that the data give, without these values.

    What is stated once is stated in full. From the second time on the structure is kept, with the constants that do not
    depend on the data; further models are these with other values, after the slots have looked at them.
    """

    def __init__(self) -> None:
        # without a lock, as the structures themselves
        self._kept: dict[Hashable, tuple[Structure, Mapping[str, Array]]] = {}

    def model(self, key: Hashable, values: Mapping[str, Array], state: Callable[[], Model]) -> Model:
        """Return a model.

        Parameters
        ----------
        key
            What its statement depends on besides ``values``; equal keys must mean equal statements.
        values
            Of those constants, and smallest variances of precisions, that depend on the data, by name.
        state
            Returns it as it is stated in full.
        """
        found = self._kept.pop(key, None)
        if found is None or found is _SEEN:
            model = state()
            if found is None:
                found = _SEEN
            elif model.structure.nodes[0] is not model.nodes[0] and _are_constants_of(model, values):
                same = {name: own for name, own in model.constants.items() if name not in values}
                found = model.structure, same
        elif found[0].problem(values):
            # which the statement says in words
            model = state()
        else:
            # as the statement keeps them: also a number is an array
            arrays = {name: np.asarray(own, dtype=np.float64) for name, own in values.items()}
            model = Model._of(found[0], {**found[1], **arrays})
        self._kept[key] = found
        if len(self._kept) > _MOST_STATEMENTS:
            self._kept.pop(next(iter(list(self._kept))), None)
        return model


def _are_constants_of(model: Model, values: Mapping[str, Array]) -> bool:
    """Whether values are those that the statement has of its constants."""
    own = model.constants
    return all(name in own and np.array_equal(own[name], value) for name, value in values.items())


RESTATED = Restated()
"""Those of this process."""
