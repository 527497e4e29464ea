"""A mixture as a distribution: its density, marginals and conditionals, moments, quantiles and draws."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from .._errors import ParameterError
from .._typing import AnyArray, Array
from ..numerics.randomness import generator
from .columns import Columns, column_numbers, given_values, others
from .conditioning import Conditionable
from .evaluation import log_densities, shares
from .parameters import require_share, require_whole
from .quantiles import Univariate
from .rows import as_rows


@dataclass(frozen=True, eq=False, repr=False)
class Distribution(Conditionable):
    """What follows from the components alone.

    Attributes
    ----------
    weights
        :math:`w_k`, shape (K,), summing to one.
    locations
        Centres of the components, shape (K, D).
    feature_names
        Names of the columns, by which they can be called; None if they have none.
    """

    def log_density(self, X: ArrayLike) -> Array:
        """Return the log density of the observed entries of rows, in nats.

        Parameters
        ----------
        X
            Rows, shape (N, D); NaN where an entry was not observed.

        Returns
        -------
        Array
            Shape (N,); 0.0 where nothing was observed.

        Raises
        ------
        DataError
            If the shape is wrong or an entry infinite.

        Examples
        --------
        >>> import caviar as cv
        >>> mixture = cv.NormalMixture.from_covariances([1.0], [[0.0, 5.0]], [[[1.0, 0.6], [0.6, 1.0]]])
        >>> mixture.log_density([[0.0, 5.0], [0.0, np.nan], [np.nan, np.nan]]).round(4)
        array([-1.6147, -0.9189,  0.    ])
        """
        return log_densities(self, as_rows(X, self.n_features))

    def responsibilities(self, X: ArrayLike) -> Array:
        r"""Return the probability of each component given the observed entries of rows, shape (N, K).

        .. math:: r_{nk} = \frac{w_k f_k(x_n)}{\sum_j w_j f_j(x_n)}

        Parameters
        ----------
        X
            Rows, shape (N, D); NaN where an entry was not observed. The weights where nothing was.

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
        """Return the distribution of some columns, in the order given: a mixture of the same kind.

        Parameters
        ----------
        columns
            A column or several, by number or name.

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
        r"""Return the distribution of the other columns given the values of some: a mixture of the same kind.

        Its weights are the responsibilities given these values. A Student-t component with :math:`\nu` degrees of
        freedom has :math:`\nu + o` after o columns were seen at squared distance :math:`\delta`, and its shape
        matrix is the residual one times :math:`(\nu + \delta) / (\nu + o)`.

        Parameters
        ----------
        given
            Column -> value; or columns, with their ``values``.
        values
            Values of the columns, if ``given`` does not hold them.

        Raises
        ------
        ParameterError
            If a column does not exist, or none is left.

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
            If a component has :math:`\nu \le 1` degrees of freedom: then there is none.

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
            If a component has :math:`\nu \le 2` degrees of freedom: then it is not finite.

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
        """Return independent rows, (n, D), and the components that they come from, (n,).

        Parameters
        ----------
        n_samples
            How many.
        rng
            Generator, or the seed of one; None for fresh entropy.

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
                f"{what} is of a mixture with one column; this one has {self.n_features}: take .marginal(column) first"
            )
        return Univariate(
            self.weights[:, None] / self.weights.sum(),
            self.locations,
            self.component_scales(),
            self.component_df(),
        )

    def cdf(self, x: ArrayLike) -> Array:
        """Return the probability of values up to x, of a mixture with one column.

        Parameters
        ----------
        x
            Any shape; may be infinite.

        Raises
        ------
        ParameterError
            If there are several columns.

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
        """Return the x below which a probability p lies, of a mixture with one column: the inverse of :meth:`cdf`.

        Parameters
        ----------
        p
            Probabilities, any shape; 0 and 1 give infinities.

        Raises
        ------
        ParameterError
            If there are several columns, or p is no probability.

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
        """Return the equal-tailed interval that has this probability, of a mixture with one column.

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
