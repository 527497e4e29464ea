"""The interface of mixture densities: a distribution, and what is done with it on tables of data."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike

from .._errors import ParameterError
from .._typing import AnyArray, Array
from ..numerics.randomness import generator
from . import imputation, outliers
from .columns import Columns, column_numbers, others
from .distribution import Distribution
from .outliers import OutlierThreshold
from .parameters import require_share, require_whole
from .prediction import ConditionalPrediction, predicted
from .rows import as_rows


@dataclass(frozen=True, eq=False, repr=False)
class MixtureDensity(Distribution):
    r"""A mixture of K densities of rows with D columns, :math:`p(x) = \sum_k w_k f_k(x)`.

    Wherever rows are taken, a NaN (or masked) entry is one that was not observed: it is integrated out, exactly.

    Attributes
    ----------
    weights
        :math:`w_k`, shape (K,), summing to one.
    locations
        Centres of the components, shape (K, D).
    feature_names
        Names of the columns, by which they can be called; None if they have none.
    """

    def predict(
        self, X: ArrayLike, targets: Columns, *, given: Columns | None = None, level: float = 0.95
    ) -> ConditionalPrediction:
        """Return mean, standard deviation and interval of target columns given the others: a regression.

        Parameters
        ----------
        X
            Rows, shape (N, D), whose entries in the target columns are ignored; or, with ``given``, shape
            (N, len(given)). NaN where an entry was not observed.
        targets
            A column or several, by number or name.
        given
            The columns of ``X``, if it does not have all.
        level
            Probability of the equal-tailed intervals.

        Returns
        -------
        ConditionalPrediction
            Arrays of shape (N, T); (N,) if ``targets`` is a single column and no list.

        Raises
        ------
        ImproperError
            If a row leaves a target without a mean.

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
        """Return rows with their missing entries filled in: by conditional means, or by draws.

        Parameters
        ----------
        X
            Rows, shape (N, D); NaN where an entry was not observed.
        n_draws
            Number of independent completions (multiple imputation); None for conditional means.
        rng
            Generator of the draws, or the seed of one; None for fresh entropy.

        Returns
        -------
        Array
            Shape (N, D), or (n_draws, N, D); what was observed is in it as it was.

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
        """Return minus the log density of rows, (N, D) -> (N,): the larger, the less expected.

        Scores of rows with missing entries are those of what was observed, and not comparable with those of complete
        rows; :meth:`is_outlier` compares like with like.

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
        """Return the score that complete rows of this distribution exceed at a given rate, from draws.

        Parameters
        ----------
        rate
            False alarms a row, between 0 and 1.
        rng
            Generator of the draws, or the seed of one; None for fresh entropy.
        n_draws
            How many; at least 10 / rate.

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
        """Return which rows are less expected than all but a share ``rate`` of rows with the same entries observed.

        Parameters
        ----------
        X
            Rows, shape (N, D); NaN where an entry was not observed.
        rate, rng, n_draws
            As for :meth:`outlier_threshold`; each pattern of missing entries gets a threshold of its own.

        Returns
        -------
        AnyArray
            Booleans, shape (N,); False where nothing was observed.

        Examples
        --------
        >>> import caviar as cv
        >>> mixture = cv.NormalMixture.from_covariances([1.0], [[0.0, 0.0]], [1.0])
        >>> mixture.is_outlier([[0.1, 0.2], [0.1, 6.0], [np.nan, 6.0]], rate=0.01, rng=0)
        array([False,  True,  True])
        """
        return outliers.flagged(self, as_rows(X, self.n_features), rate, generator(rng), n_draws)
