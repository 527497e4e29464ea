r"""One Gaussian factor for several Normal and MultivariateNormal variables that are added up.

.. math:: q(\theta) \propto \exp\Big( \sum_v \langle h_v, \theta_v \rangle
          - \tfrac12 \theta_v' P_v \theta_v - \sum_{(i, j)} P_{ij} \theta_i \theta_j \Big)

The statistics are those of each variable, and the products of pairs that appear in some term. The precision is sparse:
it has entries only at these pairs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from caviar._errors import ImproperError
from caviar._typing import AnyArray, Array, Statistics
from caviar.families.base.family import LOG_TWO_PI, Seed, Size, draw_shape
from caviar.families.base.marginals import Ends, Marginals, normal_marginals
from caviar.families.base.roots import MatrixRoots
from caviar.families.multivariate_normal import MultivariateNormal
from caviar.families.normal import Normal
from caviar.families.shared import gaussian_products
from caviar.families.shared.arrow import Arrow, ArrowPattern
from caviar.families.shared.coupled_member import Cross, Member
from caviar.families.shared.known_numbers import given_known, learnt_entries, with_units, without_variance
from caviar.families.shared.many_normals import ManyNormals
from caviar.families.shared.shared_factor import SharedFactor, SharedLayout
from caviar.numerics.cached import cached_property


@dataclass(frozen=True, eq=False)
class CoupledLayout(SharedLayout):
    """Which variables share a Gaussian factor, and which of their numbers appear together: its family.

    Attributes
    ----------
    members, crosses
        The variables, and the products of their numbers.
    known
        Which of all numbers are known, (numbers,); None if none is.
    """

    members: tuple[Member, ...]
    crosses: tuple[Cross, ...] = ()
    known: AnyArray | None = None

    @property
    def names(self) -> list[str]:
        return [member.name for member in self.members]

    @property
    def statistics(self) -> tuple[str, ...]:
        """Names of the statistics: those of each variable, and of the pairs."""
        own = [f"{member.name}.{kind}" for member in self.members for kind in ("x", "xx")]
        return (*own, *(cross.name for cross in self.crosses))

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Shapes of the statistics."""
        own = []
        for member in self.members:
            value = (*member.shape, *member.event_shape)
            own += [value, (*value, *member.event_shape)]
        return (*own, *(cross.shape for cross in self.crosses))

    @cached_property
    def pattern(self) -> ArrowPattern:
        """Where the precision has entries."""
        parts = tuple(member.part for member in self.members)
        starts = np.concatenate([[0], np.cumsum([count * width for count, width in parts])])
        pairs = tuple(
            (starts[cross.members[0]] + cross.i, starts[cross.members[1]] + cross.j) for cross in self.crosses
        )
        return ArrowPattern(parts, pairs)

    def number_of(self, name: str) -> int:
        """Return the number of a variable."""
        return [member.name for member in self.members].index(name)

    def place(self, number: int) -> slice:
        """Return where the numbers of a variable are."""
        return slice(int(self.pattern.starts[number]), int(self.pattern.starts[number + 1]))

    def from_natural(self, natural: Statistics, values: Array | None = None) -> CoupledNormals:
        """Return the factor with these natural parameters.

        Parameters
        ----------
        values
            Of all numbers, (numbers,), where some are known: given these the factor is that of the others.

        Raises
        ------
        ImproperError
            If its precision is not positive definite.
        """
        n_own = 2 * len(self.members)
        if self.known is not None and values is not None:
            others = given_known(self, natural, self.known, values)
            natural = with_units(self, others, self.known, values)
        linear = np.concatenate([np.broadcast_to(h, s).ravel() for h, s in self._of(natural, 0)])
        blocks = [
            -2.0 * np.broadcast_to(eta, shape).reshape(*member.part, member.part[1])
            for (eta, shape), member in zip(self._of(natural, 1), self.members, strict=True)
        ]
        shaped = zip(natural[n_own:], self.crosses, strict=True)
        entries = [-np.broadcast_to(eta, cross.shape).ravel() for eta, cross in shaped]
        arrow = Arrow(self.pattern, blocks, entries)
        try:
            mean = arrow.solve(linear)
        except np.linalg.LinAlgError:
            mean = np.full(1, np.nan)
        if not np.isfinite(mean).all():
            names = ", ".join(f"'{member.name}'" for member in self.members)
            raise ImproperError(
                f"CoupledNormals: the joint precision of {names} is not positive definite; if the data determine "
                f"only their sum, give them proper priors."
            )
        return CoupledNormals(self, mean, arrow, known=self.known)

    def _of(self, natural: Statistics, kind: int) -> list[tuple[Array, tuple[int, ...]]]:
        own = slice(kind, 2 * len(self.members), 2)
        return list(zip(natural[own], self.shapes[own], strict=True))

    def independent(self, factors: Sequence[Any]) -> CoupledNormals:
        """Return the factor in which the variables have these distributions and are independent."""
        means, blocks = [], []
        for member, factor in zip(self.members, factors, strict=True):
            count, width = member.part
            means.append(np.broadcast_to(factor.mean, (*member.shape, *member.event_shape)).ravel())
            full = (*member.shape, *member.event_shape, *member.event_shape)
            blocks.append(np.broadcast_to(factor.precision, full).reshape(count, width, width))
        entries = [np.zeros(len(cross.i)) for cross in self.crosses]
        return CoupledNormals(
            self, np.concatenate(means), Arrow(self.pattern, blocks, entries), known=self.known
        )

    def counted(self, counted: Sequence[AnyArray | None]) -> AnyArray:
        """Return which of all numbers count, (numbers,), from which repetitions of each variable do; None: all."""
        found = np.ones(self.pattern.size, dtype=bool)
        for number, (member, own) in enumerate(zip(self.members, counted, strict=True)):
            if own is not None:
                found[self.place(number)] = np.repeat(own.ravel(), member.part[1])
        return found

    def pairs_of_statistics(self) -> Iterator[tuple[AnyArray, AnyArray]]:
        """Yield of each statistic which two numbers its entries are the product of; the second is -1 of a number."""
        for number, member in enumerate(self.members):
            place = self.place(number)
            own = np.arange(place.start, place.stop)
            yield own, np.full(len(own), -1)
            blocks = own.reshape(member.part)
            i, j = np.broadcast_arrays(blocks[:, :, None], blocks[:, None, :])
            yield i.ravel(), j.ravel()
        yield from self.pattern.pairs

    def learnt_entries(self) -> Sequence[AnyArray] | None:
        return None if self.known is None else learnt_entries(self, self.known)

    def many(self, natural: Array) -> ManyNormals | None:
        if self.known is not None:
            return None
        return ManyNormals(self.pattern.size, self.pairs_of_statistics(), natural)

    def statistics_of(self, value: Mapping[str, Array]) -> Statistics:
        """Return the statistics of one value of all variables, by name."""
        return self.statistics_of_numbers(np.concatenate([value[own.name].ravel() for own in self.members]))

    def statistics_of_numbers(self, value: Array) -> Statistics:
        """Return the statistics of one value of all variables, number after number, (numbers,)."""
        found = []
        for number, member in enumerate(self.members):
            own = value[self.place(number)].reshape((*member.shape, *member.event_shape))
            found += [own, own * own if member.dimension is None else own[..., :, None] * own[..., None, :]]
        pairs = zip(self.pattern.pairs, self.crosses, strict=True)
        return (*found, *((value[i] * value[j]).reshape(cross.shape) for (i, j), cross in pairs))


@dataclass(frozen=True, eq=False)
class CoupledNormals(SharedFactor):
    """The Gaussian factor that several variables share.

    Attributes
    ----------
    layout
        Which variables, and which pairs of their numbers meet.
    mean_of_all
        Means of the numbers of all variables, one after the other.
    precision
        Of all numbers, factored.
    places
        Position of each number of the layout in the precision, which may have more; None if both are the same.
    known
        Which of all numbers are known, (numbers,): their means are their values; None if none is.
    """

    kind = "coupled"
    layout: CoupledLayout
    mean_of_all: Array
    precision: Arrow
    places: AnyArray | None = None
    known: AnyArray | None = None

    @property
    def family(self) -> CoupledLayout:
        """What its statistics are."""
        return self.layout

    @property
    def members(self) -> Iterator[tuple[str, type[Any], tuple[int, ...], int | None]]:
        for own in self.layout.members:
            yield own.name, Normal if own.dimension is None else MultivariateNormal, own.shape, own.dimension

    @cached_property
    def natural(self) -> Statistics:
        """Natural parameters, in the order of the statistics."""
        arrow, found = self.precision, []
        linear = arrow.pattern.times(arrow.blocks, arrow.entries, self._mean_in_precision)
        shapes = iter(self.layout.shapes)
        for number in range(len(self.layout.members)):
            own = self._in_precision(self.layout.place(number))
            found += [linear[own].reshape(next(shapes))]
            found += [-0.5 * arrow.blocks[arrow.pattern.part_of(own[0])].reshape(next(shapes))]
        return (*found, *(-own.reshape(shape) for own, shape in zip(self._entries, shapes, strict=True)))

    def _in_precision(self, numbers: slice | AnyArray) -> AnyArray:
        """Return the places of numbers in the precision."""
        every = np.arange(len(self.mean_of_all)) if self.places is None else self.places
        return every[numbers]

    @property
    def _mean_in_precision(self) -> Array:
        """The means in the order of the precision, 0 for variables outside the layout."""
        mean = np.zeros(self.precision.pattern.size)
        mean[self._in_precision(slice(None))] = self.mean_of_all
        return mean

    @property
    def _entries(self) -> Sequence[Array]:
        """The entries of the precision at the pairs of the layout; a repeated pair has its entry once."""
        pattern, wanted = self.precision.pattern, self.layout.pattern
        if self.places is None:
            return self.precision.entries

        def keys(i: AnyArray, j: AnyArray) -> AnyArray:
            return np.minimum(i, j) * pattern.size + np.maximum(i, j)

        none = np.zeros(0, dtype=np.intp)
        own = np.concatenate([none, *(keys(i, j) for i, j in pattern.pairs)])
        distinct, where = np.unique(own, return_inverse=True)
        totals = np.bincount(where, np.concatenate([np.zeros(0), *self.precision.entries]), len(distinct))
        pairs = [keys(self._in_precision(i), self._in_precision(j)) for i, j in wanted.pairs]
        asked, first = np.unique(np.concatenate([none, *pairs]), return_index=True)
        found = np.zeros(sum(map(len, pairs)))
        places = np.searchsorted(distinct, asked)
        known = (places < len(distinct)) & (distinct[np.minimum(places, len(distinct) - 1)] == asked)
        found[first[known]] = totals[places[known]]
        return np.split(found, np.cumsum([len(own) for own in pairs])[:-1]) if pairs else []

    @cached_property
    def expected_statistics(self) -> Statistics:
        """Expectations: means, second moments, and products of the pairs."""
        blocks, pairs = self._covariances
        found = list(self.layout.statistics_of_numbers(self.mean_of_all))
        for number, block in enumerate(blocks):
            found[2 * number + 1] = found[2 * number + 1] + block.reshape(found[2 * number + 1].shape)
        for number, own in enumerate(pairs, 2 * len(blocks)):
            found[number] = found[number] + own.reshape(found[number].shape)
        return tuple(found)

    @property
    def _covariances(self) -> tuple[Sequence[Array], Sequence[Array]]:
        """Covariances within the values of each variable, and of the pairs."""
        if self.places is None:
            own_blocks, pairs = self.precision.inverse_entries
            return without_variance(self.layout, own_blocks, self.known), pairs
        blocks, covariance = [], self.precision.covariance
        for number, member in enumerate(self.layout.members):
            own = self.places[self.layout.place(number)].reshape(member.part)
            i, j = np.broadcast_arrays(own[:, :, None], own[:, None, :])
            blocks.append(covariance(i.ravel(), j.ravel()).reshape(i.shape))
        pairs = [covariance(self.places[i], self.places[j]) for i, j in self.layout.pattern.pairs]
        return without_variance(self.layout, blocks, self.known), pairs

    @property
    def _n_unknown(self) -> int:
        """How many numbers have a distribution."""
        return len(self.mean_of_all) - (0 if self.known is None else int(np.count_nonzero(self.known)))

    @cached_property
    def log_partition(self) -> float:
        """Log-normaliser of the natural parameters."""
        arrow, mean = self.precision, self.mean_of_all
        squares = float(mean @ arrow.pattern.times(arrow.blocks, arrow.entries, mean))
        return 0.5 * (squares - arrow.log_determinant + len(mean) * LOG_TWO_PI)

    def entropy(self) -> float:
        """Return half of log |2 pi e Cov|."""
        return 0.5 * (self._n_unknown * (1.0 + LOG_TWO_PI) - self.precision.log_determinant)

    def entropy_about_base(self) -> float:
        """Return the entropy: the base measure is Lebesgue's."""
        return self.entropy()

    def entropy_of_counted(self, counted: AnyArray) -> float:
        """Return the entropy without that of numbers that do not count, given those that do.

        Parameters
        ----------
        counted
            Which of all numbers count, (numbers,).
        """
        n_left = int(np.count_nonzero(~counted))
        left = 0.5 * (n_left * (1.0 + LOG_TWO_PI) - self._not_counted(counted).log_determinant)
        return self.entropy() - left

    def _not_counted(self, counted: AnyArray) -> Arrow:
        """Return the precision of numbers without weight given the others; for the others it is the identity."""
        arrow, pattern, blocks = self.precision, self.precision.pattern, []
        for part, block in enumerate(arrow.blocks):
            unit = counted[pattern.starts[part] : pattern.starts[part + 1]].reshape(block.shape[:2])
            # a repetition counts as a whole
            blocks.append(np.where(unit[..., None], np.eye(block.shape[-1]), block))
        pairs = zip(arrow.entries, pattern.pairs, strict=True)
        entries = [np.where(counted[i] | counted[j], 0.0, own) for own, (i, j) in pairs]
        return Arrow(pattern, blocks, entries)

    def covariance_of_statistics(self) -> tuple[Array, Array, Array]:
        """Return the covariances of all statistics, (p, p), of these with all numbers, (p, n), and of these, (n, n)."""
        n = len(self.mean_of_all)
        i, j = np.indices((n, n)).reshape(2, -1)
        own = self.precision.covariance(self._in_precision(i), self._in_precision(j)).reshape(n, n)
        if self.known is not None:
            own[self.known] = 0.0
        return gaussian_products.covariance_of_products(
            self.mean_of_all, own, self.layout.pairs_of_statistics()
        )

    def roots(self) -> tuple[MatrixRoots, Array] | None:
        size = self.precision.pattern.size
        if size > gaussian_products.MOST_DEPENDENT or self.known is not None:
            return None
        lower = self.precision.drawn(np.eye(size))[self._in_precision(slice(None))]
        return gaussian_products.roots_of_all(self.mean_of_all, lower, self.layout.pairs_of_statistics())

    def log_density(self, values: Mapping[str, Array], counted: AnyArray | None = None) -> Array:
        """Return the log-density at values of all variables by name, each of shape draws + plates + event.

        Parameters
        ----------
        values
            By name.
        counted
            Which of all numbers count, (numbers,); their density alone. None: all do.
        """
        lead = values[self.layout.members[0].name]
        member = self.layout.members[0]
        draws = lead.shape[: lead.ndim - len(member.shape) - len(member.event_shape)]
        flat = [values[own.name].reshape(math.prod(draws), -1) for own in self.layout.members]
        deviations = np.concatenate(flat, axis=1) - self.mean_of_all
        if self.known is not None:
            deviations[:, self.known] = 0.0
        arrow, times = self.precision, self.precision.pattern.times
        turned = np.array([times(arrow.blocks, arrow.entries, own) for own in deviations])
        squares, constant = (deviations * turned).sum(axis=1), arrow.log_determinant
        n_counted = self._n_unknown
        if counted is not None:
            # what is left out has this precision, given the others, about where their deviations take it
            left, n_counted = self._not_counted(counted), n_counted - int(np.count_nonzero(~counted))
            said = np.where(counted, 0.0, turned)
            squares = squares - np.array([own @ left.solve(own) for own in said])
            constant = constant - left.log_determinant
        return (0.5 * (constant - n_counted * LOG_TWO_PI - squares)).reshape(draws)

    def entry_marginals(self, ends: Ends) -> list[Marginals]:
        """Return the figures of all numbers, one after the other."""
        variances = np.concatenate(
            [np.diagonal(own, axis1=-2, axis2=-1).ravel() for own in self._covariances[0]]
        )
        return [normal_marginals(self.mean_of_all, np.sqrt(variances), ends)]

    @cached_property
    def marginals(self) -> dict[str, Any]:
        """The marginal distribution of each variable, by name."""
        blocks, _ = self._covariances
        found = {}
        for number, member in enumerate(self.layout.members):
            place, own = self.layout.place(number), blocks[number]
            if self.known is not None:
                # whoever shows them puts the values themselves in the place of these
                unit = self.known[place].reshape(member.part)[:, :, None]
                own = np.where(unit, np.eye(member.part[1]), own)
            found[member.name] = member.marginal(self.mean_of_all[place], own)
        return found

    def covariance(self, one: str, i: AnyArray, other: str, j: AnyArray) -> Array:
        """Return the covariances of numbers of two variables, by their places among these; i and j broadcast."""
        starts = self.layout.pattern.starts
        i, j = np.broadcast_arrays(i, j)
        own = [
            starts[self.layout.number_of(name)] + places.ravel() for name, places in ((one, i), (other, j))
        ]
        if self.places is not None:
            own = [self.places[places] for places in own]
        found = self.precision.covariance(own[0], own[1]).reshape(i.shape)
        if self.known is None:
            return found
        return np.where(self.known[starts[self.layout.number_of(one)] + i], 0.0, found)

    def translated(self, shifts: Mapping[str, Array]) -> Self:
        """Return the factor of the variables plus these shifts, by name."""
        mean = self.mean_of_all.copy()
        for number, member in enumerate(self.layout.members):
            if member.name in shifts:
                full = np.broadcast_to(shifts[member.name], (*member.shape, *member.event_shape))
                mean[self.layout.place(number)] += full.ravel()
        return replace(self, mean_of_all=mean)

    def in_layout(self, layout: CoupledLayout) -> Self:
        """Return the factor of some of the variables, with the products of other pairs among its statistics.

        It is only for evaluation, and has no natural parameters.
        """
        own = [self.layout.place(self.layout.number_of(member.name)) for member in layout.members]
        numbers = np.concatenate([np.arange(place.start, place.stop) for place in own])
        places = numbers if self.places is None else self.places[numbers]
        known = None if self.known is None else self.known[numbers]
        return replace(self, layout=layout, mean_of_all=self.mean_of_all[numbers], places=places, known=known)

    def as_plain(self) -> dict[str, Any]:
        """Return the factor as lists, texts, numbers and arrays."""
        layout = self.layout
        return {
            "members": [[own.name, list(own.shape), own.dimension] for own in layout.members],
            "crosses": [
                [own.name, list(own.members), own.i, own.j, list(own.shape)] for own in layout.crosses
            ],
            "mean": self.mean_of_all,
            "blocks": list(self.precision.blocks),
            "entries": list(self.precision.entries),
            **({} if self.known is None else {"known": self.known}),
        }

    @classmethod
    def of_plain(cls, document: Mapping[str, Any]) -> Self:
        """Return the factor from the values of :meth:`as_plain`.

        Raises
        ------
        ValueError, LookupError, TypeError
            If the values are not those of a factor.
        """
        members = tuple(
            Member(str(name), tuple(map(int, shape)), None if dimension is None else int(dimension))
            for name, shape, dimension in document["members"]
        )
        crosses = tuple(
            Cross(str(name), (int(one), int(other)), i, j, tuple(map(int, shape)))
            for name, (one, other), i, j, shape in document["crosses"]
        )
        sizes, known = [math.prod(own.part) for own in members], document.get("known")
        if known is not None and (known.dtype != bool or known.shape != (sum(sizes),)):
            raise ValueError("a shared factor that does not say which of its numbers are known")
        layout = CoupledLayout(members, crosses, known)
        mean, blocks, entries = (document[key] for key in ("mean", "blocks", "entries"))
        blocks_and_entries = [*((*own.part, own.part[1]) for own in members), *(c.i.shape for c in crosses)]
        wanted = [(sum(sizes),), *blocks_and_entries]
        for array, shape in zip((mean, *blocks, *entries), wanted, strict=True):
            if array.dtype != np.float64 or array.shape != shape or not np.isfinite(array).all():
                raise ValueError(f"numbers of a factor of {', '.join(layout.statistics)!r:.60}")
        for cross in crosses:
            for places, number in zip((cross.i, cross.j), cross.members, strict=True):
                if places.dtype.kind != "i" or places.shape != (math.prod(cross.shape),):
                    raise ValueError(f"pairs of {cross.name!r:.60} that are not whole numbers, one for each")
                if not 0 <= number < len(sizes) or (
                    places.size and not 0 <= places.min() <= places.max() < sizes[number]
                ):
                    raise ValueError(f"pairs of {cross.name!r:.60} beyond its variables")
            if cross.members[0] == cross.members[1]:
                raise ValueError(f"pairs of {cross.name!r:.60} within one variable")
        return cls(layout, mean, Arrow(layout.pattern, blocks, entries), known=known)

    def sample(self, size: Size = None, seed: Seed = None) -> dict[str, Array]:
        """Return draws of all variables together, by name: arrays of shape size + plates + event."""
        lead = draw_shape(size, ())
        noise = np.random.default_rng(seed).standard_normal((math.prod(lead), len(self.mean_of_all)))
        deviations = self.precision.drawn(noise.T).T
        if self.known is not None:
            deviations[:, self.known] = 0.0
        draws = self.mean_of_all + deviations
        return {
            member.name: draws[:, self.layout.place(number)].reshape(
                (*lead, *member.shape, *member.event_shape)
            )
            for number, member in enumerate(self.layout.members)
        }


def by_variable(draws: Mapping[str, Any]) -> dict[str, Any]:
    """Return draws of factors by name as draws of variables; a shared factor has several variables."""
    found: dict[str, Any] = {}
    for name, own in draws.items():
        found |= own if isinstance(own, dict) else {name: own}
    return found
