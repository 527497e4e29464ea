r"""The base of all factors: an exponential family, as a batch of standard parameters.

.. math:: \log p(x) = \sum_i \langle \eta_i + c_i,\; t_i(x) \rangle + \log k(x) - A(\eta)

with respect to Lebesgue measure (counting measure for labels and counts). The :math:`c_i` are the base measure, fixed
numbers, and k the carrier, the factor that no statistic expresses: it is 1 except for counts. Every constant is in the
log-partition :math:`A`.
"""

import dataclasses
import functools
import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from caviar._errors import ParameterError
from caviar._typing import AnyArray, Array, Statistics
from caviar.families.base.intervals import Intervals
from caviar.families.base.marginals import Ends, Marginals, normal_marginals
from caviar.families.base.parameters import all_finite
from caviar.families.base.roots import Roots
from caviar.families.base.transforms import Transform
from caviar.families.base.values import MeanPrecision as MeanPrecision
from caviar.numerics.cached import cached_property

LOG_TWO_PI = math.log(2.0 * math.pi)

Size: TypeAlias = int | tuple[int, ...] | None
"""How many draws: none for one draw without an extra axis."""

Seed: TypeAlias = int | np.random.Generator | None
"""Where random numbers come from; an integer gives the same draws each time."""


class Pairs(NamedTuple):
    """Natural parameters of products of the numbers of two variables: pairs (i, j) of their places, (E,) each."""

    other: str
    i: AnyArray
    j: AnyArray
    natural: Array


class Prior(NamedTuple):
    """A distribution as the prior of a variable: eta' t - A(eta), and its products with other variables."""

    natural: Statistics
    log_partition: float
    pairs: tuple[Pairs, ...] = ()


class ExponentialFamily(Intervals):
    """A batch of distributions of one exponential family.

    Subclasses are frozen dataclasses whose fields are the standard parameters. Every array begins with the batch axes,
    followed by the axes of one distribution.
    """

    statistics: ClassVar[tuple[str, ...]]
    """Names of the sufficient statistics, in order."""

    is_convex: ClassVar[bool] = True
    """Whether the log-partition is convex, as that of every random variable is."""

    transforms: ClassVar[tuple[Transform, ...]] = ()
    """For each part of a value, what makes it a vector without constraints; none of labels and counts."""

    parameter_letters: ClassVar[tuple[str, ...]]
    """For each standard parameter, in order of the fields, a letter for each axis that belongs to one distribution:
    categories k, pieces of sticks s, entries of a vector d, locations m that share a precision."""

    parameter_ndims: ClassVar[tuple[int, ...]]
    """The numbers of these axes."""

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if "parameter_letters" in vars(cls):
            cls.parameter_ndims = tuple(map(len, cls.parameter_letters))

    @classmethod
    def statistic_shapes(cls, event_shape: tuple[int, ...] = ()) -> tuple[tuple[int, ...], ...]:
        """Return the shape of each sufficient statistic of one value of shape ``event_shape``; mostly this shape."""
        return (event_shape,) * len(cls.statistics)

    @classmethod
    @abstractmethod
    def from_natural(cls, natural: Statistics) -> Self:
        """Return the distributions with these natural parameters.

        Raises
        ------
        ImproperError
            If they are outside the natural parameter space; the message gives the batch index.
        """

    @classmethod
    @abstractmethod
    def statistics_of(cls, value: Any) -> Statistics:
        """Return the sufficient statistics t(x) of one value or a batch of values."""

    @classmethod
    def log_carrier(cls, value: Any) -> Array:
        """Return the logarithm of the carrier k at one value or a batch of values; 0 in most families."""
        return np.zeros(())

    @classmethod
    def statistic_of(cls, name: str, value: Any) -> Array:
        """Return one of the sufficient statistics by name. Families override it to avoid computing the others."""
        return cls.statistics_of(value)[cls.statistics.index(name)]

    @classmethod
    def widened(cls, member: Any) -> Any:
        """Return distributions of a variable's family as distributions of its factor's family, usually the same."""
        return member

    @classmethod
    def details(cls) -> dict[str, Any]:
        """Return plain values that distinguish this class from others of the same name; usually empty."""
        return {}

    @classmethod
    def detailed(cls, details: Mapping[str, Any]) -> "type[ExponentialFamily]":
        """Return the class of this name with these :meth:`details`."""
        return cls

    def attributes(self) -> dict[str, Any]:
        """Return the state: the parameters, and results computed from them."""
        return vars(self)

    @property
    def family(self) -> type[Self]:
        """The class of these distributions, their family."""
        return type(self)

    @property
    def learnt(self) -> Self:
        """The part of a factor that is not a point mass: here the whole distribution."""
        return self

    @property
    def alone(self) -> Self:
        """The marginal distribution of the variable of a prior: this one."""
        return self

    def as_prior(self, name: str, points: Mapping[str, Array]) -> Prior:
        """Return these distributions as the prior of a variable.

        Parameters
        ----------
        name
            Of the variable.
        points
            Origins of the locations, by the name of the variable.
        """
        moved: Any = self.translate(-points[name]) if name in points else self  # type: ignore[attr-defined]
        return Prior(moved.natural, float(np.sum(moved.log_partition)))

    def each(self, of_learnt: Callable[[Any], Any], of_point: Callable[[Any], Any]) -> Any:
        """Return a figure of each repetition, from its distribution if it is learned, and from its point otherwise."""
        return of_learnt(self)

    @property
    def event_shape(self) -> tuple[int, ...]:
        """Shape of one value of one distribution; mostly that of the first parameter."""
        first = vars(self)[_field_names(type(self))[0]]
        return first.shape[first.ndim - self.parameter_ndims[0] :]

    @property
    def base_measure(self) -> tuple[float, ...]:
        """Coefficient c of each statistic in the base measure; 0 in several families."""
        return (0.0,) * len(self.statistics)

    @cached_property
    @abstractmethod
    def natural(self) -> Statistics:
        """Natural parameters, each of shape batch + shape of its statistic."""

    @cached_property
    @abstractmethod
    def expected_statistics(self) -> Statistics:
        """Expectation of each sufficient statistic, the gradient of the log-partition."""

    @abstractmethod
    def response(self, change: Statistics) -> Statistics:
        r"""Return the derivative of the expected statistics along a change of the natural parameters.

        .. math:: \frac{\mathrm d}{\mathrm d s} \mathrm E_{\eta + s \delta}[t] = \mathrm{Cov}(t)\, \delta

        Parameters
        ----------
        change
            Change of each natural parameter, of shape batch + shape of its statistic; symmetric for a matrix.
        """

    def response_of_value(self, change: Statistics) -> tuple[Array, ...]:
        """Return the derivative of the mean of the value along a change of the natural parameters.

        One array for the value, or two for a joint family: location and precision.
        """
        return (self.response(change)[self.statistics.index("x")],)

    def roots(self) -> Roots | None:
        """Return square roots of the covariances of the statistics, batch (R,); None without a closed form."""
        return None

    def covariance_of_value(self) -> Array:
        """Return the covariance of all entries of one value, all parts of a joint family together, batch + (G, G)."""
        batch, place = self.batch_shape, self.statistics.index("x")
        shapes = self.statistic_shapes(self.event_shape)
        size = math.prod(shapes[place])
        columns = []
        for entry in range(size):
            change = [np.zeros((*batch, *shape)) for shape in shapes]
            change[place].reshape(*batch, size)[..., entry] = 1.0
            if len(shapes[place]) == 2:
                change[place] = 0.5 * (change[place] + change[place].swapaxes(-1, -2))
            columns.append(self.response_of_value(tuple(change))[0].reshape(*batch, size))
        return np.stack(columns, axis=-1)

    def expected_statistic(self, name: str) -> Array:
        """Return the expectation of one statistic by name. Families override it to avoid computing the others."""
        return self.expected_statistics[self.statistics.index(name)]

    def summed_statistic(self, name: str, weights: Array | None) -> Array:
        """Return the expectation of one statistic summed over the first batch axis, with a weight for each entry."""
        expected = self.expected_statistic(name)
        return expected.sum(axis=0) if weights is None else np.tensordot(weights, expected, 1)

    @cached_property
    @abstractmethod
    def log_partition(self) -> Array:
        """Log-normaliser A, of the batch shape, with every constant."""

    def entropy_about_base(self) -> Array:
        r"""Return the entropy about the base measure, :math:`A - \langle \eta, E t \rangle`, of the batch shape.

        A factor adds this to an ELBO whose prior is measured against the same measure.
        """
        inner = sum(
            (eta * mean).reshape(*self.batch_shape, -1).sum(axis=-1)
            for eta, mean in zip(self.natural, self.expected_statistics, strict=True)
        )
        return self.log_partition - inner

    def entropy_of_counted(self, counted: AnyArray) -> Array:
        """Return the entropy about the base measure, 0 for members of the batch without an observation."""
        return np.where(counted, self.entropy_about_base(), 0.0)

    def entry_marginals(self, ends: Ends) -> list[Marginals]:
        """Return mean, sd and quantiles of every entry: one part, or location and precision of a joint family.

        Parameters
        ----------
        ends
            Probabilities below the two ends of the intervals.
        """
        return [Marginals(np.asarray(self.mean))]  # pyright: ignore[reportAttributeAccessIssue]

    @classmethod
    def matched_marginals(cls, own: Marginals, sd: Array, ends: Ends) -> Marginals:
        """Return mean, sd and quantiles of entries with standard deviations other than those of the factor.

        They are those of a Normal, or of another distribution with the support of the entries.

        Parameters
        ----------
        own
            The figures of the factor, from :meth:`entry_marginals`.
        sd
            Standard deviation of each entry, shape (plates..., event...).
        ends
            Probabilities below the two ends of the intervals.
        """
        return normal_marginals(own.mean, sd, ends)

    @classmethod
    def of_spread(cls, mean: Array, covariance: Array) -> Self | None:
        """Return distributions with these means and covariances; None if the family has none.

        If one number determines the spread of a whole value, as in a Dirichlet or a Wishart, the variances match on
        average.

        Parameters
        ----------
        mean
            Mean of the value, shape batch + event.
        covariance
            Covariance of all entries of one value, shape batch + (G, G).
        """
        return None

    @abstractmethod
    def log_density(self, value: Any) -> Array:
        """Return the log-density (log-probability of labels) of a value; minus infinity outside the support."""

    def entropy(self) -> Array:
        r"""Return the entropy in nats, that about the base measure less :math:`\sum_i c_i E t_i`; of the batch."""
        entropy = self.entropy_about_base()
        for coefficient, mean in zip(self.base_measure, self.expected_statistics, strict=True):
            if coefficient:
                entropy = entropy - coefficient * mean.reshape(*self.batch_shape, -1).sum(axis=-1)
        return entropy

    @abstractmethod
    def mode(self) -> Any:
        """Return the mode, where the density is largest.

        Raises
        ------
        ImproperError
            If the density is unbounded.
        """

    @abstractmethod
    def sample(self, size: Size = None, seed: Seed = None) -> Any:
        """Return draws, an array of shape size + batch + event."""

    @abstractmethod
    def _divergence(self, other: Any) -> Array:
        """Return KL(self || other) for two batches that are known to fit."""

    def kl(self, other: Self) -> Array:
        r"""Return the divergence :math:`\mathrm{KL}(\text{self} \,\|\, \text{other}) \ge 0` in nats.

        It is computed as a sum of nonnegative terms, so it is accurate for nearly equal and for very concentrated
        distributions. The batch shapes broadcast.

        Raises
        ------
        ParameterError
            If ``other`` belongs to another family or has another event shape.
        """
        if type(other) is not type(self) or other.event_shape != self.event_shape:
            raise ParameterError(
                f"The divergence of a {type(self).__name__} of event shape {self.event_shape} is taken from another "
                f"such distribution, got {type(other).__name__} of event shape "
                f"{getattr(other, 'event_shape', None)}."
            )
        return np.maximum(self._divergence(other), 0.0)

    def cross_entropy(self, other: Self) -> Array:
        r"""Return :math:`-\mathrm{E}_{\text{self}} \log p_{\text{other}}`, of the broadcast batch shape."""
        return self.entropy() + self.kl(other)

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """Shape of the batch of distributions."""
        first = vars(self)[_field_names(type(self))[0]]
        return first.shape[: first.ndim - self.parameter_ndims[0]]

    @property
    def value_shape(self) -> tuple[int, ...]:
        """Shape of the batch and one value; for a joint distribution that of its mean."""
        return self.batch_shape + self.event_shape

    def location_moments(self) -> tuple[Array, Array] | None:
        """Return mean and covariance of the value as a term of a predictor; None if values are not locations.

        For a joint family those of its location, finite even if the covariance is not.
        """
        return None

    def inverse_moments(self) -> tuple[Array, Array] | None:
        """Return the expectations of 1/x and 1/x^2 of a value x, infinite if they are; None if they have no use.

        For a matrix, twice the diagonal of the first; for a joint family, those of its precision.
        """
        return None

    def log_moments(self) -> tuple[Array, Array] | None:
        """Return mean and variance of the logarithm of a precision with this distribution; None for others.

        For a matrix, those of the precision of each entry by itself; for a joint family, those of its precision.
        """
        return None

    @classmethod
    def inverse_of(cls, value: Any) -> tuple[Array, Array]:
        """Return :meth:`inverse_moments` at one value or a batch of values."""
        first = 1.0 / as_value(value)
        return first, np.square(first)

    def broadcast_to(self, batch_shape: tuple[int, ...]) -> Self:
        """Return these distributions repeated to a batch shape."""
        parameters = zip(self._parameters().items(), self.parameter_ndims, strict=True)
        return self._trusted(
            **{
                name: np.broadcast_to(value, batch_shape + value.shape[value.ndim - ndim :])
                for (name, value), ndim in parameters
            }
        )

    def replaced(self, where: AnyArray, others: Self) -> Self:
        """Return these distributions, with ``others`` of the same batch shape ``where`` a mask is True."""
        theirs = others._parameters()
        parameters = {}
        for (name, value), ndim in zip(self._parameters().items(), self.parameter_ndims, strict=True):
            parameters[name] = np.where(where.reshape(where.shape + (1,) * ndim), theirs[name], value)
        return self._trusted(**parameters)

    @classmethod
    def _trusted(cls, **attributes: Any) -> Self:
        """Return an instance with these parameters and cached properties, without reading or checking them."""
        own: Any = object.__new__(cls)
        own.__dict__.update(attributes)
        return own

    def _at(self, mean: Array, **cached: Any) -> Self:
        """Return these distributions about another mean; of its shape the other parameters have been checked."""
        parameters = {**self._parameters(), "mean": mean}
        if mean.shape == vars(self)["mean"].shape and all_finite(mean):
            return self._trusted(**parameters, **cached)
        return type(self)(**parameters)

    def _parameters(self) -> dict[str, Array]:
        return {name: vars(self)[name] for name in _field_names(type(self))}

    def __getitem__(self, index: Any) -> Self:
        """Return the part of the batch at ``index``, which may be anything that indexes an array."""
        rows = np.arange(int(np.prod(self.batch_shape))).reshape(self.batch_shape)[index]
        parameters = {}
        for (name, value), ndim in zip(self._parameters().items(), self.parameter_ndims, strict=True):
            event_shape = value.shape[value.ndim - ndim :]
            parameters[name] = value.reshape((-1, *event_shape))[rows]
        return self._trusted(**parameters)

    def __repr__(self) -> str:
        """Return the batch shape and the parameters, as NumPy prints them."""
        with np.printoptions(precision=4, threshold=20, edgeitems=2):
            lines = []
            for name, value in self._parameters().items():
                text = str(value).replace("\n", "\n" + " " * (len(name) + 5))
                lines.append(f"    {name}={text},")
        return "\n".join([f"{type(self).__name__}(", *lines, f")  # batch {self.batch_shape}"])


@functools.cache
def _field_names(family: type) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(family))


def draw_shape(size: Size, batch_shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of draws before the event axes."""
    if size is None:
        return batch_shape
    return ((size,) if isinstance(size, (int, np.integer)) else tuple(size)) + batch_shape


def as_value(value: ArrayLike) -> Array:
    """Return a value as a float64 array."""
    return np.asarray(value, dtype=np.float64)


def safe_log(value: AnyArray) -> Array:
    """Return log(value), with zeros taken as the smallest positive number so that the result stays finite."""
    return np.log(np.maximum(value, np.finfo(np.float64).smallest_subnormal))
