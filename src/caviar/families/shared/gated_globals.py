r"""One factor for global labels and the global variables that they gate.

.. math:: q(z, \theta) = q(z) \prod_v q(\theta_v \mid z)

The labels have no plates. Given each combination of labels a variable is a member of its family, so with known
probabilities and conjugate priors the factor is the posterior itself: the answer of enumeration.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Self

import numpy as np
from scipy.special import softmax, xlogy

from caviar._errors import ImproperError
from caviar._typing import AnyArray, Array, Statistics
from caviar.families.base.family import ExponentialFamily, Seed, Size, draw_shape
from caviar.families.base.marginals import Ends, Marginals
from caviar.families.beta import Beta
from caviar.families.categorical import Categorical
from caviar.families.dirichlet import Dirichlet
from caviar.families.gamma import Gamma
from caviar.families.multivariate_normal import MultivariateNormal
from caviar.families.normal import Normal
from caviar.families.shared.gated_response import covariances, responded
from caviar.families.shared.shared_factor import SharedFactor, SharedLayout
from caviar.numerics.cached import cached_property

FAMILIES_OF_GATED: Mapping[str, type[Any]] = {
    own.__name__: own for own in (Beta, Dirichlet, Gamma, MultivariateNormal, Normal)
}
"""Families whose members labels can gate: those that have a member for a mean and a covariance."""


@dataclass(frozen=True)
class Gated:
    """A variable that labels gate.

    Attributes
    ----------
    name
        Of the variable.
    family
        Of the variable given the labels.
    shape
        Sizes of its plates.
    event_shape
        Of one value.
    """

    name: str
    family: type[ExponentialFamily]
    shape: tuple[int, ...]
    event_shape: tuple[int, ...]

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Shape of each statistic over the plates."""
        return tuple((*self.shape, *own) for own in self.family.statistic_shapes(self.event_shape))

    @property
    def n_numbers(self) -> int:
        """Numbers in all its values."""
        return math.prod((*self.shape, *self.event_shape))


@dataclass(frozen=True)
class GatedLayout(SharedLayout):
    """Which labels gate which variables: the family of their factor.

    The statistics are those of each variable, the labels first; the one-hot of all labels together; and the statistics
    of what is gated times this one-hot.

    Attributes
    ----------
    labels
        Name and number of categories of each label.
    gated
        What they gate.
    """

    labels: tuple[tuple[str, int], ...]
    gated: tuple[Gated, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of categories of each label."""
        return tuple(size for _, size in self.labels)

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.labels] + [own.name for own in self.gated]

    @property
    def of_labels(self) -> str:
        """Name of the statistic of all labels together."""
        return "*".join(name for name, _ in self.labels)

    @property
    def statistics(self) -> tuple[str, ...]:
        labels = [f"{name}.x" for name, _ in self.labels]
        own = [f"{member.name}.{kind}" for member in self.gated for kind in member.family.statistics]
        return (*labels, *own, self.of_labels, *(f"{self.of_labels}*{name}" for name in own))

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        own = [shape for member in self.gated for shape in member.shapes]
        labels = [(size,) for size in self.sizes]
        return (*labels, *own, self.sizes, *((*self.sizes, *shape) for shape in own))

    @cached_property
    def _stops(self) -> list[int]:
        return [0, *accumulate([*self.sizes, *(member.n_numbers for member in self.gated)])]

    @property
    def n_numbers(self) -> int:
        """Numbers of all variables."""
        return self._stops[-1]

    def place(self, number: int) -> slice:
        return slice(self._stops[number], self._stops[number + 1])

    def _over_labels(self, one: int, array: Array) -> Array:
        """Return an array over one label with an axis for each."""
        return array.reshape([size if place == one else 1 for place, size in enumerate(self.sizes)])

    def given_labels(self, natural: Statistics) -> Iterator[Statistics]:
        """Yield what natural parameters, or changes of them, say of each gated variable given the labels."""
        first, later = len(self.labels), self.place_of_labels + 1
        for member in self.gated:
            yield tuple(
                np.broadcast_to(natural[first + k], shape)
                + np.broadcast_to(natural[later + k], (*self.sizes, *shape))
                for k, shape in enumerate(member.shapes)
            )
            first, later = first + len(member.shapes), later + len(member.shapes)

    def table(self, natural: Statistics) -> Array:
        """Return what natural parameters say of the combinations of labels, without what these gate, (K, ...)."""
        found = np.zeros(self.sizes)
        for one in range(len(self.labels)):
            found = found + self._over_labels(one, natural[one])
        return found + natural[self.place_of_labels]

    @property
    def place_of_labels(self) -> int:
        """Number of the statistic of all labels."""
        return len(self.labels) + sum(len(member.shapes) for member in self.gated)

    def from_natural(self, natural: Statistics) -> GatedGlobals:
        """Return the factor with these natural parameters.

        Raises
        ------
        ImproperError
            If they are those of no distribution.
        """
        given, table = self.given_labels(natural), self.table(natural)
        conditionals = {
            member.name: member.family.from_natural(own)
            for member, own in zip(self.gated, given, strict=True)
        }
        for own in conditionals.values():
            table = table + own.log_partition.reshape(*self.sizes, -1).sum(axis=-1)
        largest = table.max()
        if not np.isfinite(largest) or np.isnan(table).any():
            raise ImproperError(
                f"no combination of the labels {', '.join(n for n, _ in self.labels)} is possible"
            )
        return GatedGlobals(self, softmax(table), conditionals)

    def ruled_out(self, natural: Statistics, met: Statistics) -> Statistics:
        """Return natural parameters with minus infinity for combinations of labels that meet more zeros than others."""
        count = self.table(met)
        found = list(natural)
        found[self.place_of_labels] = np.where(
            count > count.min() + 0.5, -np.inf, np.broadcast_to(natural[self.place_of_labels], self.sizes)
        )
        return tuple(found)

    def independent(self, factors: Sequence[Any]) -> GatedGlobals:
        n = len(self.labels)
        joint = np.ones(())
        for own in factors[:n]:
            joint = joint[..., None] * own.probabilities
        conditionals = {
            member.name: own.broadcast_to((*self.sizes, *member.shape))
            for member, own in zip(self.gated, factors[n:], strict=True)
        }
        return GatedGlobals(self, joint, conditionals)

    def counted(self, counted: Sequence[AnyArray | None]) -> AnyArray:
        found = np.ones(self.n_numbers, dtype=bool)
        n = len(self.labels)
        for number, (member, own) in enumerate(zip(self.gated, counted[n:], strict=True), n):
            if own is not None:
                width = math.prod(member.event_shape)
                found[self.place(number)] = np.repeat(np.broadcast_to(own, member.shape).ravel(), width)
        return found

    def statistics_of(self, value: Mapping[str, Array]) -> Statistics:
        labels = tuple(int(value[name]) for name, _ in self.labels)
        one_hots = [np.eye(size)[own] for own, size in zip(labels, self.sizes, strict=True)]
        own = [s for member in self.gated for s in member.family.statistics_of(value[member.name])]
        table = np.zeros(self.sizes)
        table[labels] = 1.0
        return (*one_hots, *own, table, *(np.multiply.outer(table, s) for s in own))


@dataclass(frozen=True, eq=False)
class GatedGlobals(SharedFactor):
    """The factor of labels and of what they gate.

    Attributes
    ----------
    layout
        Which variables these are.
    probabilities
        Of the combinations of labels, an axis for each label.
    conditionals
        Name -> members of a gated variable for each combination, batch (K, ..., plates...).
    """

    kind = "gated"
    layout: GatedLayout
    probabilities: Array
    conditionals: Mapping[str, Any]

    @property
    def family(self) -> GatedLayout:
        return self.layout

    @property
    def members(self) -> Iterator[tuple[str, type[Any], tuple[int, ...], int | None]]:
        for name, size in self.layout.labels:
            yield name, Categorical, (), size
        for own in self.layout.gated:
            yield own.name, own.family, own.shape, own.event_shape[0] if own.event_shape else None

    @cached_property
    def natural(self) -> Statistics:
        """Natural parameters: all in those of the labels together, and of what is gated times their one-hot."""
        layout = self.layout
        with np.errstate(divide="ignore"):
            table = np.log(self.probabilities)
        own: list[Array] = []
        for member in layout.gated:
            conditional = self.conditionals[member.name]
            table = table - conditional.log_partition.reshape(*layout.sizes, -1).sum(axis=-1)
            shapes = zip(conditional.natural, member.shapes, strict=True)
            own += [np.broadcast_to(eta, (*layout.sizes, *shape)) for eta, shape in shapes]
        n_own = len(layout.labels) + len(own)
        return (*(np.zeros(shape) for shape in layout.shapes[:n_own]), table, *own)

    @cached_property
    def log_partition(self) -> float:
        """Log-normaliser of :attr:`natural`."""
        return 0.0

    @cached_property
    def expected_statistics(self) -> Statistics:
        """Expectations, in the order of the statistics."""
        joint = []
        for member in self.layout.gated:
            shapes = zip(self.conditionals[member.name].expected_statistics, member.shapes, strict=True)
            joint += [
                self.weighted(np.broadcast_to(own, (*self.layout.sizes, *shape))) for own, shape in shapes
            ]
        return self.with_marginals(self.probabilities, joint)

    def weighted(self, array: Array) -> Array:
        """Return an array over the labels times their probabilities."""
        weights = self.probabilities
        return weights.reshape(weights.shape + (1,) * (array.ndim - weights.ndim)) * array

    def with_marginals(self, table: Array, joint: Sequence[Array]) -> Statistics:
        """Return a value for each statistic from those of all labels, and of what is gated times their one-hot."""
        axes = tuple(range(table.ndim))
        labels = [table.sum(axis=tuple(other for other in axes if other != one)) for one in axes]
        return (*labels, *(own.sum(axis=axes) for own in joint), table, *joint)

    def _of_members(self, of: Any) -> Array:
        """Return the sum over what is gated of a figure of each repetition, for each combination of labels."""
        found = np.zeros(self.layout.sizes)
        for conditional in self.conditionals.values():
            found = found + of(conditional).reshape(*self.layout.sizes, -1).sum(axis=-1)
        return found

    def entropy(self) -> float:
        """Return the entropy in nats."""
        return self._entropy(self._of_members(lambda own: own.entropy()))

    def entropy_about_base(self) -> float:
        """Return the entropy about the base measures of what is gated."""
        return self._entropy(self._of_members(lambda own: own.entropy_about_base()))

    def entropy_of_counted(self, counted: AnyArray) -> float:
        found, n_labels = np.zeros(self.layout.sizes), len(self.layout.labels)
        for number, member in enumerate(self.layout.gated, n_labels):
            own = counted[self.layout.place(number)].reshape(math.prod(member.shape), -1).all(axis=1)
            entropies = self.conditionals[member.name].entropy_about_base().reshape(*self.layout.sizes, -1)
            found = found + np.where(own, entropies, 0.0).sum(axis=-1)
        return self._entropy(found)

    def _entropy(self, given: Array) -> float:
        p = self.probabilities
        return float((p * np.where(p > 0, given, 0.0)).sum() - xlogy(p, p).sum())

    @cached_property
    def marginals(self) -> dict[str, Any]:
        """The Categorical of each label, and the member with the mean and covariance of each variable it gates."""
        found: dict[str, Any] = {}
        axes = tuple(range(self.probabilities.ndim))
        for one, (name, _) in enumerate(self.layout.labels):
            found[name] = Categorical(self.probabilities.sum(axis=tuple(o for o in axes if o != one)))
        for member in self.layout.gated:
            mean, covariance = self._moments(member)
            own = member.family.of_spread(mean, covariance)
            assert own is not None
            found[member.name] = own
        return found

    def _moments(self, member: Gated) -> tuple[Array, Array]:
        """Return mean and covariance of a gated variable by itself, over its plates."""
        conditional, axes = self.conditionals[member.name], tuple(range(len(self.layout.sizes)))
        batch = (*self.layout.sizes, *member.shape)
        means = np.broadcast_to(conditional.mean, (*batch, *member.event_shape))
        width = math.prod(member.event_shape)
        within = np.broadcast_to(conditional.covariance_of_value(), (*batch, width, width))
        mean = self.weighted(means).sum(axis=axes)
        away = (means - mean).reshape(*batch, width)
        spread = within + away[..., :, None] * away[..., None, :]
        return mean, self.weighted(spread).sum(axis=axes)

    def given(self, labels: Sequence[int]) -> dict[str, Any]:
        """Return what is gated given a category of each label, by name."""
        where = (*labels, ...)
        return {name: own[where] for name, own in self.conditionals.items()}

    def cases(self) -> Iterator[tuple[float, dict[str, int], dict[str, Any]]]:
        """Yield each combination of labels that has a probability: that, the labels, and what is gated given these."""
        for labels in itertools.product(*map(range, self.layout.sizes)):
            if self.probabilities[labels] > 0:
                named = dict(zip((name for name, _ in self.layout.labels), labels, strict=True))
                yield float(self.probabilities[labels]), named, self.given(labels)

    def response(self, change: Statistics) -> Statistics:
        """Return the derivative of the expected statistics along a change of the natural parameters."""
        return responded(self, change)

    def covariance_of_statistics(self) -> tuple[Array, Array, Array]:
        return covariances(self)

    def entry_marginals(self, ends: Ends) -> list[Marginals]:
        """Return the figures of all numbers, one after the other."""
        parts = [own.entry_marginals(ends)[0] for own in self.marginals.values()]
        means, sds, lower, upper = (
            np.concatenate([np.ravel(_or_nan(own, part.mean)) for own, part in zip(each, parts, strict=True)])
            for each in zip(*((own.mean, own.sd, own.lower, own.upper) for own in parts), strict=True)
        )
        return [Marginals(means, sds, lower, upper)]

    def translated(self, shifts: Mapping[str, Array]) -> Self:
        moved = {
            name: own.translate(np.broadcast_to(shifts[name], np.shape(own.mean))) if name in shifts else own
            for name, own in self.conditionals.items()
        }
        return type(self)(self.layout, self.probabilities, moved)

    def in_layout(self, layout: Any) -> Self:
        return type(self)(layout, self.probabilities, self.conditionals)

    def log_density(self, values: Mapping[str, Array], counted: AnyArray | None = None) -> Array:
        layout = self.layout
        labels: Any = tuple([np.asarray(values[name]) for name, _ in layout.labels])
        with np.errstate(divide="ignore"):
            found = np.asarray(np.log(self.probabilities)[labels])
        for number, member in enumerate(layout.gated, len(layout.labels)):
            chosen = self.conditionals[member.name].broadcast_to((*layout.sizes, *member.shape))[labels]
            density = chosen.log_density(values[member.name])
            if counted is not None:
                own = counted[layout.place(number)].reshape(*member.shape, -1).all(axis=-1)
                density = np.where(own, density, 0.0)
            found = found + density.reshape(*labels[0].shape, -1).sum(axis=-1)
        return found

    def sample(self, size: Size = None, seed: Seed = None) -> dict[str, Array]:
        rng, lead = np.random.default_rng(seed), draw_shape(size, ())
        drawn = rng.choice(self.probabilities.size, size=lead, p=self.probabilities.ravel())
        labels = np.unravel_index(drawn, self.layout.sizes)
        found: dict[str, Any] = dict(zip((name for name, _ in self.layout.labels), labels, strict=True))
        for member in self.layout.gated:
            own: Any = self.conditionals[member.name].broadcast_to((*self.layout.sizes, *member.shape))
            found[member.name] = own[labels].sample(None, rng)
        return found

    def as_plain(self) -> dict[str, Any]:
        return {
            "labels": [[name, size] for name, size in self.layout.labels],
            "gated": [
                [own.name, own.family.__name__, list(own.shape), list(own.event_shape)]
                for own in self.layout.gated
            ],
            "probabilities": self.probabilities,
            "parameters": [
                {name: np.asarray(array) for name, array in own._parameters().items()}
                for own in self.conditionals.values()
            ],
        }

    @classmethod
    def of_plain(cls, document: Mapping[str, Any]) -> Self:
        gated = tuple(
            Gated(str(name), FAMILIES_OF_GATED[family], tuple(map(int, shape)), tuple(map(int, event)))
            for name, family, shape, event in document["gated"]
        )
        layout = GatedLayout(tuple((str(name), int(size)) for name, size in document["labels"]), gated)
        probabilities = document["probabilities"]
        if np.shape(probabilities) != layout.sizes or not np.isclose(np.sum(probabilities), 1.0):
            raise ValueError(f"probabilities of combinations of {layout.of_labels!r:.60}")
        conditionals: dict[str, Any] = {}
        for member, parameters in zip(gated, document["parameters"], strict=True):
            own = member.family(**parameters)
            if own.batch_shape != (*layout.sizes, *member.shape) or own.event_shape != member.event_shape:
                raise ValueError(f"a factor of {member.name!r:.60} given labels")
            conditionals[member.name] = own
        return cls(layout, probabilities, conditionals)


def _or_nan(own: Array | None, like: Array) -> Array:
    return np.full(np.shape(like), np.nan) if own is None else own
