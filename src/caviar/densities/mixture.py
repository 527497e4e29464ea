"""The interface of mixture densities: a distribution, and what is done with it on tables of data.

Columns by number or by name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from .._errors import DataError, ParameterError
from .._typing import AnyArray, Array
from ..numerics.arguments import require_share, require_whole
from ..numerics.randomness import generator
from . import imputation, outliers
from .components.quantiles import Univariate
from .conditioning import Conditionable
from .evaluation import each_log_densities, log_densities, shares
from .outliers import OutlierThreshold
from .prediction import ConditionalPrediction, predicted
from .rows import as_rows


@dataclass(frozen=True, eq=False, repr=False)
class MixtureDensity(Conditionable):
    r"""A mixture of K densities of rows with D columns, :math:`p(x) = \sum_k w_k f_k(x)`.

    In all methods, NaN (or masked) entries of rows are missing values, and are integrated out exactly.

    Attributes
    ----------
    weights
        :math:`w_k`, shape (K,), summing to one.
    locations
        Centres of the components, shape (K, D).
    feature_names
        Names of the columns, which methods accept in place of numbers; None without names.
    """

    def log_density(self, X: ArrayLike) -> Array:
        """Return the log density of the observed entries of rows, in nats.

        Parameters
        ----------
        X
            Rows, shape (N, D); NaN marks missing entries.

        Returns
        -------
        Array
            Shape (N,); 0.0 for a row without observed entries.

        Raises
        ------
        DataError
            If the shape is wrong or an entry is infinite.

        Examples
        --------
        >>> import caviar as cv
        >>> mixture = cv.NormalMixture.from_covariances([1.0], [[0.0, 5.0]], [[[1.0, 0.6], [0.6, 1.0]]])
        >>> mixture.log_density([[0.0, 5.0], [0.0, np.nan], [np.nan, np.nan]]).round(4)
        array([-1.6147, -0.9189,  0.    ])
        """
        return log_densities(self, as_rows(X, self.n_features))

    def component_log_density(self, X: ArrayLike) -> Array:
        """Return the log density of the observed entries of rows under each component, shape (N, K), in nats.

        Parameters
        ----------
        X
            Rows, shape (N, D); NaN marks missing entries. A row without observed entries has 0.0.

        Examples
        --------
        >>> import caviar as cv
        >>> mixture = cv.NormalMixture.from_covariances([0.3, 0.7], [[0.0], [4.0]], [1.0, 1.0])
        >>> mixture.component_log_density([[0.0], [np.nan]]).round(4)
        array([[-0.9189, -8.9189],
               [ 0.    ,  0.    ]])
        """
        return each_log_densities(self, as_rows(X, self.n_features))

    def responsibilities(self, X: ArrayLike) -> Array:
        r"""Return the probability of each component given the observed entries of rows, shape (N, K).

        .. math:: r_{nk} = \frac{w_k f_k(x_n)}{\sum_j w_j f_j(x_n)}

        Parameters
        ----------
        X
            Rows, shape (N, D); NaN marks missing entries. A row without observed entries has the weights.

        Examples
        --------
        >>> import caviar as cv
        >>> mixture = cv.NormalMixture.from_covariances([0.3, 0.7], [[0.0], [4.0]], [1.0, 1.0])
        >>> mixture.responsibilities([[1.5], [2.0], [np.nan]]).round(4)
        array([[0.76, 0.24],
               [0.3 , 0.7 ],
               [0.3 , 0.7 ]])
        """
        return shares(self, as_rows(X, self.n_features))

    def marginal(self, columns: Columns) -> Self:
        """Return the marginal distribution of some columns, in the given order: a mixture of the same kind.

        Parameters
        ----------
        columns
            One or several columns, by number or name.

        Raises
        ------
        ParameterError
            If a column does not exist or is given twice.

        Examples
        --------
        >>> import caviar as cv
        >>> mixture = cv.NormalMixture.from_covariances(
        ...     [1.0], [[0.0, 5.0]], [[[1.0, 0.6], [0.6, 4.0]]], feature_names=["a", "b"]
        ... )
        >>> mixture.marginal("b").covariance
        array([[4.]])
        """
        return self.select(column_numbers(columns, self.n_features, self.feature_names))

    def condition(self, given: Mapping[Any, float] | Columns, values: ArrayLike | None = None) -> Self:
        r"""Return the conditional distribution of the other columns given values of some: a mixture of the same kind.

        Its weights are the responsibilities given these values. If o columns are given, at squared distance
        :math:`\delta`, a Student-t component with :math:`\nu` degrees of freedom then has :math:`\nu + o`, and its
        shape matrix is the conditional one times :math:`(\nu + \delta) / (\nu + o)`.

        Parameters
        ----------
        given
            A mapping from columns to values; or the columns alone, if ``values`` is given.
        values
            Values of the columns in ``given``.

        Raises
        ------
        ParameterError
            If a column does not exist, or no column remains.

        Examples
        --------
        >>> import caviar as cv
        >>> mixture = cv.NormalMixture.from_covariances([1.0], [[0.0, 5.0]], [[[1.0, 0.6], [0.6, 1.0]]])
        >>> rest = mixture.condition({0: 2.0})
        >>> rest.mean.round(4), rest.covariance.round(4)
        (array([6.2]), array([[0.64]]))
        """
        if isinstance(given, Mapping) and not given:
            return self
        columns, numbers = given_values(given, values, self.n_features, self.feature_names)
        rest = others(columns, self.n_features)
        if not len(rest):
            raise ParameterError(f"no column is left: all {self.n_features} were given")
        regression = self.regression(columns, rest)
        at = regression.at(numbers[None, :])
        found: Any = regression.rest
        if regression.stretching_df is not None:
            found = found.stretched(at.stretch[:, 0])
        return replace(found, weights=at.weights[:, 0], locations=np.array(at.locations[:, 0]))

    @property
    def mean(self) -> Array:
        r"""The mean, shape (D,).

        Raises
        ------
        ImproperError
            If a component has :math:`\nu \le 1` degrees of freedom and therefore no mean.

        Examples
        --------
        >>> import caviar as cv
        >>> cv.StudentMixture.from_shapes([0.5, 0.5], [[0.0], [4.0]], [1.0, 1.0], df=2.0).mean
        array([2.])
        """
        self.require_moments(1)
        return self.weights @ self.locations

    @property
    def covariance(self) -> Array:
        r"""The covariance matrix, shape (D, D).

        Raises
        ------
        ImproperError
            If a component has :math:`\nu \le 2` degrees of freedom and therefore no finite covariance.

        Examples
        --------
        >>> import caviar as cv
        >>> cv.StudentMixture.from_shapes([0.5, 0.5], [[0.0], [4.0]], [1.0, 1.0], df=4.0).covariance
        array([[6.]])
        """
        self.require_moments(2)
        shapes, df = self.component_shapes(), self.component_df()
        if df is not None:
            # components with df of their own for each column have diagonal shapes
            shapes = shapes * (df / (df - 2))[:, :, None]
        deviations = self.locations - self.mean
        return (
            np.einsum("k,kij->ij", self.weights, shapes) + (self.weights[:, None] * deviations).T @ deviations
        )

    def sample(self, n_samples: int, rng: int | np.random.Generator | None) -> tuple[Array, AnyArray]:
        """Return independent rows, shape (n, D), and their components, shape (n,).

        Parameters
        ----------
        n_samples
            Number of rows.
        rng
            Generator, or a seed; None for a random seed.

        Examples
        --------
        >>> import caviar as cv
        >>> mixture = cv.NormalMixture.from_covariances([0.5, 0.5], [[0.0], [100.0]], [1.0, 1.0])
        >>> rows, labels = mixture.sample(1000, 0)
        >>> rows.shape, np.array_equal(rows[:, 0] > 50, labels == 1)
        ((1000, 1), True)
        """
        return self.draw(require_whole("n_samples", n_samples, 0), generator(rng))

    def _univariate(self, what: str) -> Univariate:
        if self.n_features != 1:
            raise ParameterError(
                f"{what} needs a mixture with one column; this one has {self.n_features}: use "
                f".marginal(column) first"
            )
        return Univariate(
            self.weights[:, None] / self.weights.sum(),
            self.locations,
            self.component_scales(),
            self.component_df(),
        )

    def cdf(self, x: ArrayLike) -> Array:
        """Return the cumulative distribution function P(X <= x) of a mixture with one column.

        Parameters
        ----------
        x
            Any shape; may be infinite.

        Raises
        ------
        ParameterError
            If the mixture has several columns.

        Examples
        --------
        >>> import caviar as cv
        >>> mixture = cv.StudentMixture.from_shapes([1.0], [[0.0]], [1.0], df=1.0)
        >>> mixture.cdf([-1.0, 0.0, 1.0]).round(6)
        array([0.25, 0.5 , 0.75])
        """
        x = np.asarray(x, dtype=np.float64)
        return self._univariate("cdf").cdf(x.ravel()).reshape(x.shape)

    def quantile(self, p: ArrayLike) -> Array:
        """Return the quantiles of a mixture with one column, the inverse of :meth:`cdf`.

        Parameters
        ----------
        p
            Probabilities, any shape; 0 and 1 give infinities.

        Raises
        ------
        ParameterError
            If the mixture has several columns, or p is not between 0 and 1.

        Examples
        --------
        >>> import caviar as cv
        >>> mixture = cv.StudentMixture.from_shapes([1.0], [[0.0]], [1.0], df=1.0)
        >>> mixture.quantile([0.0, 0.25, 0.75]).round(6)
        array([-inf,  -1.,   1.])
        """
        p = np.asarray(p, dtype=np.float64)
        if not np.all((p >= 0) & (p <= 1)):
            raise ParameterError(f"p must be probabilities, from 0 to 1; got {p}")
        return self._univariate("quantile").quantile(p.ravel()).reshape(p.shape)

    def interval(self, level: float) -> tuple[float, float]:
        """Return the equal-tailed interval with this probability, for a mixture with one column.

        Examples
        --------
        >>> import caviar as cv
        >>> low, high = cv.NormalMixture.from_covariances([1.0], [[0.0]], [1.0]).interval(0.95)
        >>> round(low, 4), round(high, 4)
        (-1.96, 1.96)
        """
        density = self._univariate("interval")
        tail = np.array([0.5 * (1.0 - require_share("level", level))])
        return float(density.lower_quantile(tail)[0]), float(density.upper_quantile(tail)[0])

    def predict(
        self, X: ArrayLike, targets: Columns, *, given: Columns | None = None, level: float = 0.95
    ) -> ConditionalPrediction:
        """Return mean, standard deviation and interval of target columns given the others, a regression.

        Parameters
        ----------
        X
            Rows, shape (N, D); entries in the target columns are ignored. With ``given``, shape (N, len(given)). NaN
            marks missing entries.
        targets
            One or several columns, by number or name.
        given
            The columns of ``X``, if it does not have all columns.
        level
            Probability of the equal-tailed intervals.

        Returns
        -------
        ConditionalPrediction
            Arrays of shape (N, T), or (N,) if ``targets`` is a single column and not a list.

        Raises
        ------
        ImproperError
            If the conditional mean of a target does not exist.

        Examples
        --------
        >>> import caviar as cv
        >>> mixture = cv.NormalMixture.from_covariances([1.0], [[0.0, 5.0]], [[[1.0, 0.6], [0.6, 1.0]]])
        >>> prediction = mixture.predict([[2.0], [np.nan]], targets=1, given=0)
        >>> prediction.mean.round(4), prediction.standard_deviation.round(4)
        (array([6.2, 5. ]), array([0.8, 1. ]))
        """
        wanted = column_numbers(targets, self.n_features, self.feature_names)
        rest = others(wanted, self.n_features)
        known = rest if given is None else column_numbers(given, self.n_features, self.feature_names)
        if np.intersect1d(known, wanted).size:
            raise ParameterError("a column is either a target or given; got one that is both")
        rows = as_rows(X, self.n_features)[:, rest] if given is None else as_rows(X, len(known))
        prediction = predicted(self, rows, known, wanted, require_share("level", level))
        return prediction.column(0) if isinstance(targets, str | Integral) else prediction

    def impute(
        self, X: ArrayLike, n_draws: int | None = None, rng: int | np.random.Generator | None = None
    ) -> Array:
        """Return rows with their missing entries filled in, by conditional means or by draws.

        Parameters
        ----------
        X
            Rows, shape (N, D); NaN marks missing entries.
        n_draws
            Number of independent completions (multiple imputation); None for conditional means.
        rng
            Generator of the draws, or a seed; None for a random seed.

        Returns
        -------
        Array
            Shape (N, D), or (n_draws, N, D). Observed entries do not change.

        Raises
        ------
        ImproperError
            If a conditional mean does not exist.

        Examples
        --------
        >>> import caviar as cv
        >>> mixture = cv.NormalMixture.from_covariances([1.0], [[0.0, 5.0]], [[[1.0, 0.6], [0.6, 1.0]]])
        >>> mixture.impute([[2.0, np.nan], [np.nan, np.nan]]).round(4)
        array([[2. , 6.2],
               [0. , 5. ]])
        >>> mixture.impute([[2.0, np.nan]], n_draws=3, rng=0).shape
        (3, 1, 2)
        """
        rows = as_rows(X, self.n_features)
        if n_draws is None:
            return imputation.means(self, rows)
        return imputation.draws(self, rows, require_whole("n_draws", n_draws, 1), generator(rng))

    def outlier_scores(self, X: ArrayLike) -> Array:
        """Return minus the log density of rows, (N, D) -> (N,); larger scores are less expected.

        Scores of rows with missing entries use the observed entries, so they are not comparable with those of complete
        rows; :meth:`is_outlier` compares rows with the same missing entries.

        Examples
        --------
        >>> import caviar as cv
        >>> cv.NormalMixture.from_covariances([1.0], [[0.0]], [1.0]).outlier_scores([0.0, 5.0]).round(4)
        array([ 0.9189, 13.4189])
        """
        return -self.log_density(X)

    def outlier_threshold(
        self, rate: float, rng: int | np.random.Generator | None = None, n_draws: int = 100_000
    ) -> OutlierThreshold:
        """Return the score that complete rows of this distribution exceed at a given rate, estimated from draws.

        Parameters
        ----------
        rate
            Rate of false alarms, between 0 and 1.
        rng
            Generator of the draws, or a seed; None for a random seed.
        n_draws
            Number of draws, at least 10 / rate.

        Raises
        ------
        ParameterError
            If there are too few draws for the rate.

        Examples
        --------
        >>> import caviar as cv
        >>> found = cv.NormalMixture.from_covariances([1.0], [[0.0]], [1.0]).outlier_threshold(0.05, rng=0)
        >>> round(found.threshold, 1), round(found.standard_error, 5)  # 0.92 + 1.96^2 / 2
        (2.8, 0.00069)
        """
        return outliers.threshold(self, rate, generator(rng), n_draws)

    def is_outlier(
        self,
        X: ArrayLike,
        rate: float,
        rng: int | np.random.Generator | None = None,
        n_draws: int = 100_000,
    ) -> AnyArray:
        """Return which rows are outliers, at the false alarm rate ``rate`` among rows with the same observed entries.

        Parameters
        ----------
        X
            Rows, shape (N, D); NaN marks missing entries.
        rate, rng, n_draws
            As for :meth:`outlier_threshold`. Each pattern of missing entries has its own threshold.

        Returns
        -------
        AnyArray
            Booleans, shape (N,); False for a row without observed entries.

        Examples
        --------
        >>> import caviar as cv
        >>> mixture = cv.NormalMixture.from_covariances([1.0], [[0.0, 0.0]], [1.0])
        >>> mixture.is_outlier([[0.1, 0.2], [0.1, 6.0], [np.nan, 6.0]], rate=0.01, rng=0)
        array([False,  True,  True])
        """
        return outliers.flagged(self, as_rows(X, self.n_features), rate, generator(rng), n_draws)


Column: TypeAlias = int | str
"""A column by its number, negative from the end, or by its name."""

Columns: TypeAlias = Column | Sequence[Column] | AnyArray
"""A column, or several."""


def column_numbers(columns: Columns, n_features: int, names: tuple[str, ...] | None) -> AnyArray:
    """Return the numbers of columns, in the order given, shape (C,).

    Raises
    ------
    ParameterError
        If there are none, one is given twice or does not exist.

    Examples
    --------
    >>> column_numbers(["height", -1], 3, ("height", "width", "weight"))
    array([0, 2])
    """
    given: Any = columns
    listed: list[Any] = [given] if isinstance(given, str | Integral) else list(given)
    numbers = [_number(column, n_features, names) for column in listed]
    if not numbers:
        raise ParameterError("expected at least one column; got none")
    if len(set(numbers)) < len(numbers):
        raise ParameterError(f"each column may be given once; got {listed}")
    return np.array(numbers, dtype=np.intp)


def _number(column: Any, n_features: int, names: tuple[str, ...] | None) -> int:
    if isinstance(column, str):
        if names is None:
            raise ParameterError(
                f"the columns of this mixture have no names, so there is no {column!r}; give numbers, or make it with "
                f"feature_names=[...]"
            )
        if column not in names:
            raise ParameterError(f"there is no column {column!r}; the columns are {', '.join(names)}")
        return names.index(column)
    if not isinstance(column, Integral) or isinstance(column, bool | np.bool_):
        raise ParameterError(f"a column is a whole number or a name; got {column!r}")
    if not -n_features <= int(column) < n_features:
        raise ParameterError(f"there is no column {column}; the mixture has {n_features}, numbered from 0")
    return int(column) % n_features


def others(columns: AnyArray, n_features: int) -> AnyArray:
    """Return the numbers of the columns that are not given, in order.

    Examples
    --------
    >>> others(np.array([1]), 3)
    array([0, 2])
    """
    return np.setdiff1d(np.arange(n_features), columns)


def given_values(
    given: Mapping[Any, float] | Columns,
    values: ArrayLike | None,
    n_features: int,
    names: tuple[str, ...] | None,
) -> tuple[AnyArray, Array]:
    """Return the numbers of known columns, (O,), and their values, (O,); from a mapping, or columns and values.

    Raises
    ------
    ParameterError
        If the columns are impossible, or ``values`` is there with a mapping or missing without.
    DataError
        If the values are not one finite number a column.

    Examples
    --------
    >>> given_values({"width": 2.5}, None, 2, ("height", "width"))
    (array([1]), array([2.5]))
    """
    if isinstance(given, Mapping):
        if values is not None:
            raise ParameterError("expected a mapping of columns to values, or columns and values; got both")
        columns, values = list(given), list(given.values())
    elif values is None:
        raise ParameterError(
            "expected a mapping such as {0: 1.5}, or columns and values; got columns without values"
        )
    else:
        columns = given
    numbers = column_numbers(columns, n_features, names)
    array = np.atleast_1d(np.asarray(values, dtype=np.float64))
    if array.shape != numbers.shape:
        raise DataError(f"expected one value for each of {len(numbers)} columns; got shape {array.shape}")
    if not np.isfinite(array).all():
        raise DataError(f"the values given must be finite; got {array}; leave out columns that are not known")
    return numbers, array
