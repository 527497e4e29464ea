"""The base of the mixtures: validate -> state a model -> fit -> attributes; and prediction."""

from __future__ import annotations

import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, DensityMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ... import _errors as errors
from ..._typing import AnyArray, Array
from ...data.columns.missing_codes import tell_of_codes
from ...data.frames import refuse_other_rows
from ...densities import MixtureDensity
from ...engine.ascent.status import Status
from ...fitting.model import Model
from ...lazy.block_map import map_blocks
from ...names import Placed, with_columns
from ...numerics.arguments import require_whole
from ...numerics.cached import cached_property
from ...posterior.posterior import Posterior
from ..arguments.checkpointing import Checkpointing, NextFit
from ..arguments.checks import as_generator
from ..arguments.declared import estimator
from ..arguments.fitted import Fitted, keep
from ..saveable import Saveable
from ..tables.lazy_rows import checked_weights, filled, mean_of_rows, row_blocks
from ..tables.numbers import numbers_as_given
from .components import Component
from .uncertainty import known_sds, weight_sds

REMEDY = (
    "GaussianMixture.from_parameters(weights, means, covariances) makes a mixture with given parameters, and fixed= "
    "keeps some of them fixed in a fit"
)
_MOST_PER_ROW, _FEWEST_ROWS = 100, 100
"""Components a row beyond which a fit is refused, and the rows that count at least."""

_CALLER = 4
"""Frames from :meth:`MixtureEstimator._validated` to the call of ``fit``."""

_FEW = 65_536
"""Numbers that are looked at in one go."""


@dataclass(frozen=True)
class Statement:
    """A model as an estimator states it, and how it is to be fitted.

    Attributes
    ----------
    model
        With variables ``z`` and ``x``.
    point
        Factors that are point masses.
    starts
        ``"auto"``, for as many starts as the estimator asks for; or where each begins, as for
        :meth:`caviar.Model.fit`.
    model_of
        Number of components -> the model; None where only one number can be.
    """

    model: Model
    point: tuple[str, ...] = ()
    starts: str | Sequence[Mapping[str, Any] | Posterior] = "auto"
    model_of: Callable[[int], Model] | None = None


@dataclass(frozen=True, eq=False)
class RowsToFit:
    """The data of a fit.

    Attributes
    ----------
    X
        Rows, shape (N, D): an array, or rows that are read in blocks.
    y
        Labels as the user gave them.
    weights
        Weight of each row, (N,), or None.
    noise_covariance
        Covariance of the errors of the rows as the user gave it, or None.
    """

    X: AnyArray
    y: Any = None
    weights: Array | None = None
    noise_covariance: Any = None

    @property
    def n_counting(self) -> int:
        """Number of rows with weight; or what they weigh if that is more, for a weight of 2 is the row twice."""
        if self.weights is None:
            return len(self.X)
        found = [own for _, own in map_blocks(_counted, self.weights)]
        return int(max(sum(number for number, _ in found), sum(total for _, total in found)))

    def block(self, where: slice) -> RowsToFit:
        """Return some of the rows, in memory, to be predicted: their weights and labels are left out."""
        noise = self.noise_covariance
        return RowsToFit(self.X[where], noise_covariance=None if noise is None else noise[where])


@estimator
class MixtureEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, DensityMixin, Saveable, ABC):
    """A mixture under scikit-learn's contract.

    Subclasses state their model, read their attributes from the posterior, and give the density of a new row. As a
    transformer, a mixture turns rows into responsibilities.

    Attributes
    ----------
    n_components
        Number of components.
    {responsibilities}
    {swaps}
    """

    n_components: Any = field(default=1, kw_only=False)
    responsibilities: int | str = "auto"
    swaps: bool | str = "auto"

    weights_: ClassVar[Any] = Fitted(REMEDY)
    lower_bound_: ClassVar[Any] = Fitted()
    elbo_trace_: ClassVar[Any] = Fitted()

    @abstractmethod
    def _state(self, rows: RowsToFit, generator: np.random.Generator) -> Statement:
        """Return the model for these rows, after checking the arguments of the estimator."""

    @abstractmethod
    def _read(self, posterior: Posterior) -> Callable[[], MixtureDensity]:
        """Set the attributes that are read off a posterior; return what returns the density of a new row."""

    def _objective_offset(self) -> float:
        """Return what is subtracted from the objective of the posterior for that of the estimator."""
        return 0.0

    @property
    def _weights_variable(self) -> str:
        """Name of the weights in the model."""
        return "weights"

    def _values(self, X: AnyArray) -> AnyArray:
        """Return rows as values of the variable ``x``."""
        return X

    def _data(self, rows: RowsToFit) -> dict[str, Any]:
        """Return the data of a fit by the names of the model: the rows, and what else is known."""
        return Placed({"x": self._values(rows.X)})

    def _as_data(self, X: Any) -> dict[str, Any]:
        return self._data(RowsToFit(self._validated(X, reset=False)))

    def _validated(self, X: Any, *, reset: bool) -> AnyArray:
        """Return rows of finite numbers, or NaN where an entry is missing, (N, D): an array, or lazy as they came."""
        rows = X if self._takes_as_it_is(X, reset=reset) else numbers_as_given(self, X, reset=reset)
        if reset and isinstance(rows, np.ndarray):
            tell_of_codes(rows, getattr(self, "feature_names_in_", None), _CALLER)
        return rows

    def _takes_as_it_is(self, X: Any, *, reset: bool) -> bool:
        """Whether rows are an array of a few finite numbers or NaN, of which scikit-learn would change nothing."""
        if type(X) is not np.ndarray or X.dtype != np.float64 or X.ndim != 2 or not 0 < X.size <= _FEW:
            return False
        own = self.__dict__
        if not reset and ("feature_names_in_" in own or own.get("n_features_in_") != X.shape[1]):
            return False
        if np.isinf(X).any():
            return False
        if reset:
            own.pop("feature_names_in_", None)
            self.n_features_in_ = X.shape[1]
        return True

    def __sklearn_tags__(self) -> Any:
        """Say that missing entries are welcome."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: float = 60.0,
    ) -> Self:
        """Fit the mixture.

        Parameters
        ----------
        {X}
        y
            Ignored; present so that pipelines can pass it.
        {sample_weight}
        {checkpoint}

        {end_of_fit}
        """
        return self._fit(X, y, sample_weight, None, Checkpointing(checkpoint, checkpoint_every))

    def _fit(
        self, X: Any, y: Any, sample_weight: Any, noise_covariance: Any, checkpointing: Checkpointing
    ) -> Self:
        """Fit the mixture; see :meth:`fit`."""
        checkpointing.check(self.random_state)
        rows = self._rows_to_fit(X, y, sample_weight, noise_covariance, reset=True)
        generator = as_generator(self.random_state)
        self._refuse_too_many(rows)
        statement = self._state(rows, generator)
        self._tell_of_few(rows)
        with checkpointing.opened() as next_fit:
            data = self._data(rows)
            posterior = self._best(statement, data, rows.weights, generator, next_fit)
        self._settle(posterior, data, rows.weights)
        self._tell_end(posterior, stacklevel=4)
        self._keep(posterior)
        self._generator = generator.spawn(1)[0]
        return self

    def _refuse_too_many(self, rows: RowsToFit) -> None:
        """Refuse so many components that they would fill the memory, whatever the rows say."""
        asked, found = self.n_components, rows.n_counting
        if not isinstance(asked, str) and asked > _MOST_PER_ROW * max(found, _FEWEST_ROWS):
            raise errors.ParameterError(
                f"n_components={asked} is far more than X has rows, {found}; each component has parameters of its "
                f"own, so give at most as many as there are rows"
            )

    def _tell_of_few(self, rows: RowsToFit) -> None:
        """Warn of more components than rows: some of them can only repeat the prior.

        Warns
        -----
        CaviarWarning
            If there are fewer rows than components.
        """
        asked, found = self.n_components, rows.n_counting
        if not isinstance(asked, str) and found < asked:
            message = (
                f"X has {found} row{'s' * (found != 1)}, fewer than the {asked} components, so some components "
                f"have only their prior; use fewer components or more rows"
            )
            warnings.warn(message, errors.CaviarWarning, stacklevel=4)

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Update the mixture with more rows: its posterior is the prior for them.

        {partial_fit}

        Parameters
        ----------
        X, y, sample_weight
            As for :meth:`fit`; only rows that were not fitted before.

        Returns
        -------
        self
        """
        if not hasattr(self, "posterior_"):
            return self.fit(X, y, sample_weight=sample_weight)
        return self._add(self._rows_to_fit(X, y, sample_weight, reset=False))

    def _add(self, rows: RowsToFit) -> Self:
        """Add rows to what the mixture was fitted to; return self."""
        data = self._data(rows)
        posterior = self.posterior_.update(data, sample_weight=rows.weights, **self._arguments_of_model())
        self._settle(posterior, data, rows.weights)
        self._keep(posterior)
        return self

    def _rows_to_fit(
        self, X: Any, y: Any, sample_weight: Any, noise_covariance: Any = None, *, reset: bool
    ) -> RowsToFit:
        """Return what the rows and settings are after they were checked."""
        if not (y is None and sample_weight is None and noise_covariance is None):
            refuse_other_rows(X, y=y, sample_weight=sample_weight, noise_covariance=noise_covariance)
        X = self._validated(X, reset=reset)
        if sample_weight is not None:
            sample_weight = checked_weights(sample_weight, X)
        self._check_settings()
        return RowsToFit(X, y, sample_weight, noise_covariance)

    def _best(
        self,
        statement: Statement,
        data: Mapping[str, Any],
        sample_weight: Array | None,
        generator: np.random.Generator,
        next_fit: NextFit,
    ) -> Posterior:
        """Return the best end of the starts."""
        given = not isinstance(statement.starts, str)
        ends: list[Posterior] = []
        for start in statement.starts if given else ("auto",):
            end = statement.model.fit(
                data,
                seed=generator,
                n_restarts=1 if given else self.n_init,
                point=statement.point,
                init=start,
                sample_weight=sample_weight,
                checkpoint=next_fit(),
                **self._arguments_of_model(),
            )
            ends.append(end)
            if end.status is Status.INTERRUPTED:
                break
        best = max(ends, key=lambda end: (end.status is not Status.COLLAPSED, end.elbo))
        # starts that are given are a fit each
        return among(best, ends) if given else best

    def _arguments_of_model(self) -> dict[str, Any]:
        own = {"responsibilities": self.responsibilities, "swaps": self.swaps}
        return {**super()._arguments_of_model(), **own}

    def _check_settings(self) -> None:
        self._check_n_components()
        self._check_fit_arguments()

    def _check_n_components(self) -> None:
        require_whole("n_components", self.n_components, 1)

    def _keep(self, posterior: Posterior) -> None:
        """Set the attributes of a fit."""
        super()._keep(posterior)
        offset = self._objective_offset()
        elbo = posterior.elbo - offset
        keep(self, elbo_=elbo, lower_bound_=elbo, elbo_trace_=posterior.elbo_trace - offset)
        self._name_columns(posterior)
        self.__dict__.pop("_predictive", None)
        self._density = self._read(posterior)

    @cached_property
    def _predictive(self) -> MixtureDensity:
        """The density of a new row."""
        return self._density()

    def _name_columns(self, posterior: Posterior) -> None:
        """Write the names of the columns into the summary of the data, for tables and plots."""
        if "feature_names_in_" in vars(self):
            posterior.data_summary = with_columns(posterior.data_summary, "x", self.feature_names_in_)

    @abstractmethod
    def _components(self, level: float) -> list[Component]:
        """Return what the fit says of each component, with intervals of this probability."""

    def _width(self) -> int:
        """Return the number of columns according to the posterior."""
        return len(self._components(0.95)[0].mean)

    def _check_restored(self) -> None:
        self._check_settings()
        n_features = self._width()
        names = getattr(self, "feature_names_in_", None)
        if type(self.n_features_in_) is not int or self.n_features_in_ != n_features:
            raise ValueError(f"it has {n_features} columns, and says {self.n_features_in_!r:.40}")
        if names is not None and (np.ndim(names) != 1 or len(names) != n_features):
            raise ValueError(f"names of {n_features} columns that are none")

    @property
    def weights_sd_(self) -> Array:
        """Standard deviations of ``weights_``, shape (K,), as ``posterior_`` shows them; 0 for known weights.

        If the weights are point estimates, these are standard errors and need ``uncertainty="linear_response"``.
        """
        check_is_fitted(self)
        return known_sds(weight_sds(self), "weights")

    @property
    def lower_bounds_(self) -> Array:
        """The objective after each iteration, shape (n_iter_,): ``elbo_trace_`` without its first entry."""
        check_is_fitted(self)
        return self.elbo_trace_[1:]

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> AnyArray:
        """Fit the mixture and return the most probable component of each row, shape (N,).

        Parameters
        ----------
        X, y, sample_weight
            As for :meth:`fit`.
        """
        return self.fit(X, y, sample_weight=sample_weight).predict(X)

    def predict(self, X: Any) -> AnyArray:
        """Return the most probable component of each row, shape (N,).

        Parameters
        ----------
        X
            Rows, as for :meth:`fit`.
        """
        return self._labels(self._rows_to_predict(X))

    def predict_proba(self, X: Any) -> Array:
        """Return the responsibilities q(z) of rows, shape (N, K), as the fit computes them; the globals do not change.

        Parameters
        ----------
        X
            Rows, as for :meth:`fit`.
        """
        return self._responsibilities(self._rows_to_predict(X))

    def _check_fitted(self) -> None:
        """Refuse an estimator that was not fitted, in scikit-learn's words."""
        if "posterior_" not in vars(self):
            check_is_fitted(self)

    def _rows_to_predict(self, X: Any) -> RowsToFit:
        """Return rows whose components are asked for, after they were checked."""
        self._check_fitted()
        return RowsToFit(self._validated(X, reset=False))

    def _labels(self, rows: RowsToFit) -> AnyArray:
        """Return the most probable component of each row, (N,)."""
        labels = np.empty(len(rows.X), dtype=np.intp)
        return filled(labels, ((where, r.argmax(axis=1)) for where, r in self._responsibility_blocks(rows)))

    def _responsibilities(self, rows: RowsToFit) -> Array:
        """Return the responsibilities of rows, (N, K); each column by itself in memory."""
        responsibilities = np.empty((len(rows.X), len(self.weights_)), order="F")
        return filled(responsibilities, self._responsibility_blocks(rows))

    def _responsibility_blocks(self, rows: RowsToFit) -> Iterator[tuple[slice, Array]]:
        """Yield the responsibilities of rows, a block at a time."""
        for where in row_blocks(len(rows.X), max(rows.X.shape[1], len(self.weights_))):
            yield where, self._responsibilities_of(rows.block(where))

    def _responsibilities_of(self, rows: RowsToFit) -> Array:
        """Return the responsibilities of a block of rows in memory, (B, K)."""
        return self.posterior_.local({"x": self._values(rows.X)})["z"].probabilities

    def transform(self, X: Any) -> Array:
        """Return the responsibilities of rows, shape (N, K), as :meth:`predict_proba` does: features for a pipeline.

        Parameters
        ----------
        X
            Rows, as for :meth:`fit`.
        """
        return self.predict_proba(X)

    @property
    def _n_features_out(self) -> int:
        """Number of columns of :meth:`transform`."""
        return len(self.weights_)

    def score_samples(self, X: Any) -> Array:
        """Return the log density of each row, shape (N,), in nats; the density integrates to one.

        Parameters
        ----------
        X
            Rows, as for :meth:`fit`.
        """
        self._check_fitted()
        rows = self._validated(X, reset=False)
        return filled(np.empty(len(rows)), self._log_density_blocks(rows))

    def _log_density_blocks(self, rows: AnyArray) -> Iterator[tuple[slice, Array]]:
        """Yield the log densities of rows, a block at a time."""
        for where in row_blocks(len(rows), max(rows.shape[1], len(self.weights_))):
            yield where, self._predictive.log_density(rows[where])

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the mean log density of the rows, in nats per row.

        Parameters
        ----------
        X
            Rows, as for :meth:`fit`.
        y
            Ignored.
        sample_weight
            Weight of each row, shape (N,), not negative. A row of weight 2 counts as two equal rows. By default all
            weights are 1.
        """
        densities = self.score_samples(X)
        return mean_of_rows(
            densities, None if sample_weight is None else checked_weights(sample_weight, densities)
        )

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[Array, AnyArray]:
        """Return independent new rows, shape (n, D), and their components, shape (n,).

        Parameters
        ----------
        {sample}
        """
        check_is_fitted(self)
        require_whole("n_samples", n_samples, 1)
        return self._predictive.sample(n_samples, self._generator_of(random_state))


def _counted(weights: Array) -> tuple[int, float]:
    """Return the number of weights above zero, and their sum."""
    return int(np.count_nonzero(weights)), float(weights.sum())


def among(best: Posterior, ends: Sequence[Posterior]) -> Posterior:
    """Return the best of several fits of one start each, with the ends of all of them."""
    best.restart_elbos = np.array([end.elbo for end in ends])
    best.restart_traces = tuple(end.elbo_trace for end in ends)
    return best
