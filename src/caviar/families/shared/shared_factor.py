"""What the engine and posteriors ask of a factor that several global variables share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

from caviar._typing import AnyArray, Array, Statistics
from caviar.families.base.family import Seed, Size
from caviar.families.base.roots import MatrixRoots
from caviar.families.shared.many_normals import ManyNormals
from caviar.numerics.cached import cached_property


class SharedLayout(ABC):
    """Which variables share a factor, and what its statistics are: its family."""

    @property
    @abstractmethod
    def names(self) -> list[str]:
        """Names of the variables."""

    @property
    @abstractmethod
    def statistics(self) -> tuple[str, ...]:
        """Names of the statistics: those of each variable, one after the other, and what they have together."""

    @property
    @abstractmethod
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Shapes of the statistics."""

    @abstractmethod
    def place(self, number: int) -> slice:
        """Return where the numbers of a variable are among those of all."""

    @abstractmethod
    def from_natural(self, natural: Statistics) -> Any:
        """Return the factor with these natural parameters."""

    @abstractmethod
    def independent(self, factors: Sequence[Any]) -> Any:
        """Return the factor in which the variables have these distributions and are independent."""

    @abstractmethod
    def counted(self, counted: Sequence[AnyArray | None]) -> AnyArray:
        """Return which of all numbers count, (numbers,), from which repetitions of each variable do; None: all."""

    @abstractmethod
    def statistics_of(self, value: Mapping[str, Array]) -> Statistics:
        """Return the statistics of one value of all variables, by name."""

    def learnt_entries(self) -> Sequence[AnyArray] | None:
        """Return which entries of each statistic are of numbers that are not known; None if all are."""
        return None

    def many(self, natural: Array) -> ManyNormals | None:
        """Return n factors with natural parameters (n, p) at once; None if each has to be made by itself."""
        return None


class SharedFactor(ABC):
    """A distribution of several global variables together.

    Attributes
    ----------
    kind
        What its plain values are called in files.
    """

    kind: str

    @property
    @abstractmethod
    def family(self) -> Any:
        """What its statistics are, a :class:`SharedLayout`."""

    @property
    def names(self) -> list[str]:
        """Names of the variables."""
        return self.family.names

    @property
    @abstractmethod
    def members(self) -> Iterator[tuple[str, type[Any], tuple[int, ...], int | None]]:
        """Name, family, sizes of plates, and length of vectors or number of categories of each variable."""

    def cases(self) -> Iterator[tuple[float, Mapping[str, int], Mapping[str, Any]]]:
        """Yield the parts of a mixture: probability, labels, and the distributions of other variables given these."""
        yield 1.0, {}, {}

    @property
    def name(self) -> str:
        """What the factor is called: the names of its variables."""
        return ", ".join(self.names)

    @property
    def learnt(self) -> Self:
        """The part that is not a point: all."""
        return self

    @cached_property
    @abstractmethod
    def natural(self) -> Statistics:
        """Natural parameters, in the order of the statistics."""

    @cached_property
    @abstractmethod
    def marginals(self) -> dict[str, Any]:
        """The distribution of each variable by itself, by name."""

    @abstractmethod
    def entropy_of_counted(self, counted: AnyArray) -> float:
        """Return the entropy about the base measure without that of numbers that do not count."""

    @abstractmethod
    def log_density(self, values: Mapping[str, Array], counted: AnyArray | None = None) -> Array:
        """Return the log-density at values of all variables by name, each of shape draws + plates + event."""

    @abstractmethod
    def covariance_of_statistics(self) -> tuple[Array, Array, Array]:
        """Return the covariances of all statistics, (p, p), of these with all numbers, (p, n), and of these, (n, n)."""

    def roots(self) -> tuple[MatrixRoots, Array] | None:
        """Return square roots of the covariances of all statistics, and the covariances of all numbers, (n, n).

        None where the covariances of the statistics have the digits for it.
        """
        return None

    @abstractmethod
    def translated(self, shifts: Mapping[str, Array]) -> Self:
        """Return the factor of the variables plus these shifts, by name."""

    @abstractmethod
    def in_layout(self, layout: Any) -> Self:
        """Return a factor that was found with other data, with the statistics that these data need."""

    @classmethod
    @abstractmethod
    def of_plain(cls, document: Mapping[str, Any]) -> Self:
        """Return the factor from the values of :meth:`as_plain`.

        Raises
        ------
        ValueError, LookupError, TypeError
            If the values are not those of a factor.
        """

    @abstractmethod
    def as_plain(self) -> dict[str, Any]:
        """Return the factor as lists, texts, numbers and arrays."""

    @abstractmethod
    def sample(self, size: Size = None, seed: Seed = None) -> dict[str, Array]:
        """Return draws of all variables together, by name: arrays of shape size + plates + event."""
