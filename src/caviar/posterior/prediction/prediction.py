"""Prediction: mean and standard deviation of what was not observed in new rows, under q."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any

import numpy as np

from ..._errors import ModelError, ParameterError
from ..._tables import html_of, text_table
from ..._typing import Array
from ...engine.binding.clamped.factor import ClampedFactor
from ...families import Categorical, ChainMixture, ExponentialFamily, ForecastMarkovChain, MarkovChain
from ...families.approximations.by_moments import REALS, ByMoments
from ...families.base.intervals import Intervals
from ...names import Names
from ...numerics.arguments import central_ends, require_whole
from ...numerics.randomness import generator
from ..pandas_tables import columns_of_figures, data_frame, fitting

_MOST_LINES = 10
"""Rows that are printed."""


class OfRows(dict[str, Any]):
    """What a posterior says about rows of data, by the names of variables.

    Attributes
    ----------
    names
        Of the places along the axes of the model.
    index
        Index of the rows of a pandas DataFrame; None if the data had no index.
    """

    def __init__(self, found: Mapping[str, Any], names: Names | None = None, index: Any = None) -> None:
        super().__init__(found)
        self.names, self.index = Names() if names is None else names, index

    def to_frame(self) -> Any:
        """Return a DataFrame of pandas with a row for each row of data, and with the same index.

        A number has the columns ``NAME_mean`` and ``NAME_sd``; a vector has such columns for each entry,
        ``NAME_ENTRY_mean``; a label has ``NAME``, the most probable category, and ``NAME_probability_CATEGORY`` for
        each category. Variables with other axes are left out.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        columns: dict[str, Any] = {}
        for name, own in self.items():
            columns.update(_columns_of(name, own, self.names.entries(name)))
        return data_frame(columns, fitting(self.index, max(map(len, columns.values()), default=0)))

    def _repr_html_(self) -> str:
        """Return the first rows of each as tables, for a notebook."""
        tables = (
            own._repr_html_()
            if isinstance(own, Prediction | Intervals)
            else f"<pre>{escape(repr(own))}</pre>"
            for own in self.values()
        )
        return "".join(f"<p>{escape(name)}</p>{own}" for name, own in zip(self, tables, strict=True))


def _columns_of(name: str, own: Any, names: Sequence[str] | None) -> dict[str, Any]:
    """Return the columns for a variable of the rows; none if it is repeated within the rows."""
    if isinstance(own, Prediction):
        if own.is_label and own.mean.ndim == 2:
            return _of_labels(name, np.argmax(own.mean, axis=1), own.mean, names)
        return {} if own.is_label else _of_numbers(name, own.mean, own.standard_deviation, names)
    if isinstance(own, Categorical | MarkovChain | ForecastMarkovChain | ChainMixture):
        probabilities = np.asarray(own.probabilities)
        # of a chain the most probable path, which is more than the most probable state of each step
        return _of_labels(name, own.mode(), probabilities, names) if probabilities.ndim == 2 else {}
    if isinstance(own, ExponentialFamily | ClampedFactor):
        first, *parts = own.entry_marginals((0.25, 0.75))
        return {} if parts or first.sd is None else _of_numbers(name, first.mean, first.sd, names)
    return {}


def _of_labels(name: str, places: Any, shares: Array, names: Sequence[str] | None) -> dict[str, Any]:
    known = fitting(names, shares.shape[1])
    labels = np.asarray(places) if known is None else np.array(known, dtype=object)[places]
    said = range(shares.shape[1]) if known is None else known
    return {name: labels, **{f"{name}_probability_{own}": shares[:, k] for k, own in enumerate(said)}}


def _of_numbers(name: str, mean: Array, sd: Array, names: Sequence[str] | None) -> dict[str, Any]:
    figures = {"mean": mean, "sd": sd}
    return columns_of_figures(figures, names, f"{name}_") if mean.ndim in (1, 2) else {}


class Predictions(OfRows):
    """Predictions by name; a name that is not among them says why."""

    _later: dict[str, Callable[[], Prediction]] = {}  # noqa: RUF012 - none after pickling; never changed

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without what could still be predicted, which would hold the data."""
        return {name: own for name, own in vars(self).items() if name != "_later"}

    def __init__(
        self,
        found: Mapping[str, Any],
        given: Collection[str],
        learnt: Collection[str],
        names: Names | None = None,
        index: Any = None,
        later: Mapping[str, Callable[[], Prediction]] | None = None,
    ) -> None:
        named = {} if names is None else {name: names.entries(name) for name in found}
        super().__init__(
            {
                name: replace(own, names=named.get(name), index=index) if isinstance(own, Prediction) else own
                for name, own in found.items()
            },
            names,
            index,
        )
        self._given, self._learnt = tuple(given), tuple(learnt)
        self._later = {} if later is None else dict(later)

    def to_frame(self) -> Any:
        """Return a DataFrame of pandas; see :meth:`OfRows.to_frame`. Vectors that were given in part are in it too."""
        for name in list(self._later):
            self[name]
        return super().to_frame()

    def __missing__(self, name: str) -> Any:
        if name in self._later:
            # only on demand: it takes draws of all that is above it
            own = self._later.pop(name)()
            self[name] = replace(own, names=self.names.entries(name), index=self.index)
            return self[name]
        there = ", ".join(map(repr, self)) or "none"
        if name in self._given:
            raise KeyError(
                f"{name!r} is in the data, so it is not predicted; its missing entries are integrated out. Leave "
                f"{name!r} out of the data to predict it; these data predict {there}"
            )
        if name in self._learnt:
            raise KeyError(f"{name!r} is not a variable of rows: its distribution is posterior[{name!r}]")
        raise KeyError(f"{name!r} is not predicted of these rows; there are {there}")


@dataclass(frozen=True, eq=False, repr=False)
class Prediction:
    r"""Prediction of an observed variable, for rows in which its value is not given.

    .. math:: \mathrm E[y] = \mathrm E_q[\mathrm E[y \mid \theta]], \qquad
              \mathrm{Var}[y] = \mathrm E_q[\mathrm{Var}[y \mid \theta]] + \mathrm{Var}_q[\mathrm E[y \mid \theta]]

    It prints as a table, also in a notebook.

    Attributes
    ----------
    mean
        Expected value of a number or count, probability of a 1 of a Bernoulli, or probability of each category of a
        Categorical. Rows are the first axis, then the other plates, then the entries of a value.
    standard_deviation
        Standard deviation of a new value, in the same shape, from noise and from the uncertainty of the parameters. For
        a vector, that of each entry; for a Categorical, that of the indicator of each category. Infinite if the
        variance is infinite; the mean is then that of the location.
    parts
        Weight, mean and standard deviation of each part of the predictive mixture. There is a part for each choice of
        parents by latent labels, and for several values of an unknown precision, which give real numbers the tails of a
        Student-t. Empty for labels.
    by_moments
        Family of each part: Normal for real numbers; negative binomial, Poisson or binomial for counts; Bernoulli for
        binary outcomes. None for labels and other variables.
    is_label
        Whether the variable is a Categorical; ``mean`` then has a probability for each category.
    names
        Names of the entries of a vector, or of the categories; None for numbers.
    index
        Index of the rows of a pandas DataFrame; None if the data had no index.
    remark
        A sentence on why the intervals may be wrong, which is printed below the table; empty if nothing says so.

    Examples
    --------
    >>> import caviar as cv
    >>> w = cv.Normal("w", 0, 1)
    >>> obs = cv.Plate("obs")
    >>> model = cv.Model(cv.Normal("y", cv.Data("x", plates=obs) * w, 4.0, plates=obs))
    >>> y = model.fit({"x": [1.0, 2.0, 3.0], "y": [1.1, 1.9, 3.2]}).predict({"x": [4.0, 0.0]})["y"]
    >>> y
    Prediction(mean=[4.0702, 0.    ], standard_deviation=[0.7285, 0.5   ])
    >>> print(y)
    row  mean      sd  95% interval
    0    4.07  0.7285  2.642 to 5.498
    1       0     0.5  -0.98 to 0.98
    >>> y.quantile([0.1, 0.5]).round(2)
    array([[ 3.14, -0.64],
           [ 4.07,  0.  ]])
    """

    mean: Array
    standard_deviation: Array
    parts: tuple[tuple[Array, Array, Array], ...] = ()
    by_moments: ByMoments | None = None
    is_label: bool = False
    names: Sequence[str] | None = field(default=None, kw_only=True)
    index: Any = field(default=None, kw_only=True)
    remark: str = field(default="", kw_only=True)

    @classmethod
    def of_parts(
        cls, weights: Array, means: Array, sds: Array, by_moments: ByMoments = REALS, **named: Any
    ) -> Prediction:
        r"""Return the prediction of a mixture.

        .. math:: \mathrm E[y] = \sum_k w_k m_k, \qquad \mathrm{Var}[y] = \sum_k w_k (s_k^2 + (m_k - \mathrm E[y])^2)

        Parameters
        ----------
        weights, means, sds
            Arrays with the parts along the first axis, then rows.
        by_moments
            Family of the parts.
        **named
            ``names`` and ``index``.
        """
        weights, means, sds = np.broadcast_arrays(weights, means, sds)
        mean = (weights * means).sum(axis=0)
        # a part of weight zero adds nothing, not even infinity
        spread = np.where(weights > 0, np.square(sds) + np.square(means - mean), 0.0)
        sd = np.sqrt((weights * spread).sum(axis=0))
        return cls(mean, sd, tuple(zip(weights, means, sds, strict=True)), by_moments, **named)

    @classmethod
    def of_probabilities(cls, shares: Array, **named: Any) -> Prediction:
        """Return the prediction of labels with these probabilities, (rows..., K)."""
        return cls(shares, np.sqrt(shares * (1.0 - shares)), is_label=True, **named)

    @property
    def sd(self) -> Array:
        """Short name for ``standard_deviation``."""
        return self.standard_deviation

    def interval(self, level: float = 0.95) -> Array:
        """Return central prediction intervals, shape (2, rows...): lower ends, then upper ends.

        The ends are quantiles of the mixture of ``parts``, so the interval of a count ends at whole numbers.

        Parameters
        ----------
        level
            Probability, between 0 and 1.

        Raises
        ------
        ModelError
            If the variable is a label.
        """
        return self.quantile(central_ends(level))

    def quantile(self, q: Any) -> Array:
        """Return the quantiles of each prediction, of shape (shape of q) + (rows...).

        Parameters
        ----------
        q
            One or several probabilities, above 0 and below 1.

        Raises
        ------
        ModelError
            If the variable is a label.
        """
        by_moments, shares = self._family("quantiles"), np.asarray(q, dtype=np.float64)
        if not np.all((shares > 0) & (shares < 1)):
            raise ParameterError(f"q must lie between 0 and 1; got {q!r}")
        found = [by_moments.quantile(share, self.parts) for share in shares.ravel().tolist()]
        return np.reshape(found, shares.shape + self.mean.shape)

    def log_density(self, values: Any) -> Array:
        """Return the log density of a value of each prediction in nats, or its log probability for counts and labels.

        Parameters
        ----------
        values
            Values in the shape of ``mean``; for labels whole numbers of shape (rows,).

        Raises
        ------
        ModelError
            If only moments of the variable are known.

        Examples
        --------
        >>> told = Prediction.of_parts(np.ones((1, 1)), np.zeros((1, 1)), np.ones((1, 1)))
        >>> told.log_density([0.0]).round(4)
        array([-0.9189])
        """
        if self.is_label:
            own = np.take_along_axis(self.mean, np.asarray(values, dtype=np.intp)[..., np.newaxis], axis=-1)
            with np.errstate(divide="ignore"):
                return np.log(own[..., 0])
        by_moments, values = self._family("densities"), np.asarray(values, dtype=np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            parts = [
                np.where(weight > 0, np.log(weight) + by_moments.log_density(values, mean, sd), -np.inf)
                for weight, mean, sd in self.parts
            ]
        return np.asarray(np.logaddexp.reduce(parts))

    def sample(self, n: int = 1, seed: int | np.random.Generator | None = None) -> Array:
        """Return draws of each value separately, shape (n, rows...); for labels, whole numbers of shape (n, rows).

        Different rows, and the entries of a vector, are drawn independently of each other;
        ``posterior.predictive(data=...)`` draws them jointly.

        Parameters
        ----------
        n
            Number of draws.
        seed
            Seed of the draws; the same seed gives the same values.
        """
        require_whole("n", n, 1)
        rng = generator(seed)
        if self.is_label:
            bounds = np.cumsum(self.mean, axis=-1)[..., :-1]
            return (rng.random((n, *self.mean.shape[:-1], 1)) > bounds).sum(axis=-1)
        by_moments = self._family("draws")
        shape = (n, *self.mean.shape)
        u, found, below = rng.random(shape), np.zeros(shape), np.zeros(shape)
        for weight, mean, sd in self.parts:
            is_here = (u >= below) & (u < below + weight)
            below = below + weight
            own = by_moments.draw(
                np.broadcast_to(mean, shape)[is_here], np.broadcast_to(sd, shape)[is_here], rng
            )
            found[is_here] = own
        # rounding of the weights' sum leaves no value out
        rest = u >= below
        found[rest] = np.broadcast_to(self.mean, shape)[rest]
        return found

    def to_frame(self, level: float = 0.95) -> Any:
        """Return a pandas DataFrame with a row for each row of data.

        Its columns are ``mean``, ``sd``, ``lower`` and ``upper``; for a vector, ``ENTRY_mean`` and so on for each
        entry; for a label, ``label`` (the most probable category) and ``probability_CATEGORY`` for each category.

        Parameters
        ----------
        level
            Probability of the intervals, between 0 and 1.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        return data_frame(self._columns(level), fitting(self.index, len(self.mean)))

    def _columns(self, level: float) -> dict[str, Any]:
        """Return figures of each row by name."""
        if self.is_label:
            rows = self.mean.reshape(len(self.mean), -1)
            said = fitting(self.names, rows.shape[1]) or [str(k) for k in range(rows.shape[1])]
            best = np.array(said, dtype=object)[rows.argmax(axis=1)]
            return {"label": best, **{f"probability_{own}": rows[:, k] for k, own in enumerate(said)}}
        figures = {"mean": self.mean, "sd": self.sd}
        if self.by_moments is not None and self.parts:
            figures["lower"], figures["upper"] = self.interval(level)
        return columns_of_figures(figures, self.names)

    def _first(self, n_rows: int) -> Prediction:
        """Return the prediction of the first rows alone."""
        parts = tuple(
            tuple(np.broadcast_to(own, self.mean.shape)[:n_rows] for own in part) for part in self.parts
        )
        deviation = self.standard_deviation[:n_rows]
        return replace(self, mean=self.mean[:n_rows], standard_deviation=deviation, parts=parts, index=None)

    def _cells(self) -> Iterator[tuple[str, ...]]:
        """Yield the header and the first rows as text."""
        n_rows = len(self.mean)
        found = self._first(_MOST_LINES)._columns(0.95)
        ends = (found.pop("lower"), found.pop("upper")) if "lower" in found else None
        columns = {name: values for name, values in found.items() if not name.endswith(("lower", "upper"))}
        yield ("row", *columns, *(["95% interval"] if ends is not None else []))
        own = fitting(self.index, n_rows)
        index = range(n_rows) if own is None else own
        for row in range(min(n_rows, _MOST_LINES)):
            own = (_figure(values[row]) for values in columns.values())
            between = [] if ends is None else [f"{ends[0][row]:.4g} to {ends[1][row]:.4g}"]
            yield (str(index[row]), *own, *between)
        if n_rows > _MOST_LINES:
            width = len(columns) + (ends is not None)
            yield (f"... {n_rows - _MOST_LINES} more", *[""] * width)

    def _family(self, what: str) -> ByMoments:
        if self.by_moments is None or not self.parts:
            instead = "mean has the probability of each category" if self.is_label else "it has mean and sd"
            raise ModelError(
                f"this prediction has no {what}: {instead}; posterior.predictive(data=...) draws new rows"
            )
        return self.by_moments

    def __repr__(self) -> str:
        mean, deviation = (
            np.array2string(array, precision=4, threshold=6, edgeitems=2, separator=", ")
            for array in (self.mean, self.standard_deviation)
        )
        return f"Prediction(mean={mean}, standard_deviation={deviation})"

    def __str__(self) -> str:
        """Return the first rows as a table."""
        if self.mean.ndim == 0 or self.mean.ndim > 2:
            return repr(self)
        cells = list(self._cells())
        table = text_table(cells, left={0, len(cells[0]) - 1} if "interval" in cells[0][-1] else {0})
        return f"{table}\n{self.remark}" if self.remark else table

    def _repr_html_(self) -> str:
        """Return the first rows as a table, for a notebook."""
        if self.mean.ndim == 0 or self.mean.ndim > 2:
            return f"<pre>{escape(repr(self))}</pre>"
        return html_of("", list(self._cells()), [self.remark])


def _figure(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float | np.floating) else str(value)
