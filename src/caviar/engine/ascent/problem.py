"""The problem: a compiled model with everything the loop asks for.

Numbers that leave the range of double precision are an improper factor or objective, and the loop's to judge: whoever
goes through updates and statistics silences NumPy's warnings once for all of them.

A row of data goes: rows -> :meth:`IndependentRows.summarize` (local factors at their optimum; sums over rows)
-> reduced sums -> :meth:`Problem.update` (one global factor at its optimum) -> :class:`Objective`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ..._errors import ImproperError
from ..._typing import AnyArray, Array, Statistics
from ...language import Axis, Variable
from ...numerics.cached import cached_property
from ...numerics.records import copied
from ..binding.bound_model import BoundModel
from ..binding.coordinates import Coordinates
from ..binding.observed_below import seen_globals
from ..compiled.global_update import (
    SummedTerms,
    TermValue,
    places_in_sum,
    updates_of,
    who_tells,
)
from ..compiled.known_zeros import Possible
from ..compiled.own_terms import OwnTerms, places_of_own_terms
from ..compiled.shared.groups import groups_by_default, shared_variable
from ..compiled.shared.variable import SharedVariable, counted
from ..compiled.single_effects import EffectWithPrecision, precisions_of_effects
from ..compiled.terms import Compiled, Update
from ..design.contraction import Contraction
from ..design.keys import StatisticKey
from ..design.sequential import SequentialUpdate
from ..local.chains.chain import ChainFactor
from ..local.local_factor import LocalFactor
from ..local.statistics import Arrays, Coefficients
from ..rows.recentring import Recentring
from ..rows.row_model import RowModel
from .kinds_of_factor import AtMode, KindOfFactor, KnownInPart, Shared, base_contractions, why_improper

Factors: TypeAlias = Mapping[Variable, Any]
"""Global factors, by variable."""


@dataclass(frozen=True)
class CompiledRows:
    """Compiled terms, the model that summarises rows, where categories are measured from, and the kind of rows.

    A kind of rows knows problems, so it is typed where it is used:
    :func:`~caviar.engine.topics.kind_of_rows.kind_of`.
    """

    compiled: Compiled
    model: RowModel
    recentrings: Mapping[LocalFactor, Sequence[Recentring]]
    kind: Any


CompileRows: TypeAlias = Callable[
    [BoundModel, Coordinates, Sequence[LocalFactor], Sequence[SharedVariable]], CompiledRows
]
"""Returns compiled terms and the model of the rows: for a binding, a frame, local factors, and shared global ones."""


class Step(NamedTuple):
    """The update of one global.

    Attributes
    ----------
    variable
        The global.
    natural
        Returns the natural parameters of its optimal factor, from expected statistics and sums over the rows.
    factor
        Returns the factor with these.
    """

    variable: Variable
    natural: Callable[[Mapping[Hashable, Array]], Statistics]
    factor: Callable[[Statistics], Any]


class Problem:
    """A model bound to data, compiled, with its factors.

    Parameters
    ----------
    bound
        The model's nodes and data.
    coordinates
        Reference points of the locations.
    factors
        Local factors.
    order
        Global variables in the order of their updates.
    point
        Variables whose factors are point masses.
    compile_rows
        Returns the compiled terms and the model of the rows.
    groups
        Groups of globals that will share a factor after the start, which has separate ones: see :attr:`together`.
    coupled
        Groups of globals that share a factor.
    on_groups
        Which globals are added up and share no factor because it would be large; empty if none.
    points_count
        Whether points count where nothing was observed below them: then the objective is the density of all points.
    """

    def __init__(
        self,
        bound: BoundModel,
        coordinates: Coordinates,
        factors: Sequence[LocalFactor],
        order: Sequence[Variable],
        point: frozenset[Variable],
        compile_rows: CompileRows,
        groups: Sequence[Sequence[Variable]] = (),
        coupled: Sequence[SharedVariable] = (),
        on_groups: str = "",
        points_count: bool = True,
    ) -> None:
        self._compile_rows, self.on_groups, self._points_count = compile_rows, on_groups, points_count
        self.groups, self.coupled = tuple(groups), tuple(coupled)
        self._together: Problem | None = None
        known, active = bound.gathered("clamped"), bound.gathered("active")
        self.point = point | {variable for variable, own in known.items() if own.are_all}
        self.point |= {variable for variable in order if variable.is_point}
        if points_count and any(v in self.point or bound.of(v).prior is not None for v in active):
            # a point has its place in the objective, log p(x, theta), whatever is below it; a belief has no parents
            local = {variable: own for variable, own in active.items() if bound.is_local(variable)}
            bound = bound.with_active({**local, **seen_globals(bound, self.point)})
        self.bound = bound
        self._clamped, self._active = known, counted(bound, self.coupled)
        self.coordinates = coordinates
        self.factors = tuple(factors)
        self.order = tuple(order)
        known_keys = bound.fact("keys", lambda: _keys_of(bound.latent))
        self.keys = {**known_keys, **_keys_of(self.coupled)} if self.coupled else known_keys
        own_rows = compile_rows(bound, coordinates, self.factors, self.coupled)
        self.compiled, self.rows, self.recentrings = own_rows.compiled, own_rows.model, own_rows.recentrings
        self.kind = own_rows.kind
        self.updates = updates_of(self.order, self.compiled.terms, bound, self.compiled.layouts)
        self.chains: tuple[ChainFactor, ...] = self.rows.chains

    def base_of(self, variable: Variable) -> list[Contraction]:
        """Return the terms of the log density of a family's own measure; none where it is flat."""
        return self.fact(("base measure", variable), lambda: base_contractions(variable, self.bound))

    def believing(self, beliefs: Mapping[Variable, Any]) -> Problem:
        """Return this problem with factors of an earlier fit, from the user's origin, in the place of priors."""
        return self._again(bound=self.bound.with_priors(beliefs))

    def measured_from(self, coordinates: Coordinates) -> Problem:
        """Return this problem with other reference points."""
        return self._again(coordinates=coordinates)

    def counting(self, active: Mapping[str, AnyArray]) -> Problem:
        """Return this problem with points that count only where these arrays say so, by name; others as they do."""
        own = {variable: active[variable.name] for variable in self.bound.latent if variable.name in active}
        if not own:
            return self
        bound = self.bound.with_active({**self.bound.gathered("active"), **own})
        return self._again(bound=bound, points_count=False)

    def fact(self, key: Hashable, find: Callable[[], Any]) -> Any:
        """Return what follows from the statement, the shapes and which variables are known, without any values.

        It is found once for all fits that share a plan. It must hold nothing of this problem but variables and numbers.

        Parameters
        ----------
        key
            What is asked.
        find
            Returns it.
        """
        if self.coupled:
            # they are made anew for each problem
            return find()
        facts, own = self.compiled.facts, (key, self.order, self.point)
        if own not in facts:
            facts[own] = find()
        return facts[own]

    @property
    def together(self) -> Problem:
        """The problem with one factor for each group; this problem itself if there are no groups.

        Raises
        ------
        ModelError
            If some variables cannot share a factor; the message says which, and why.
        """
        if self.groups and self._together is None:
            coupled = [shared_variable(own, self.compiled.terms, self.bound) for own in self.groups]
            joint: dict[Variable, Variable] = {own: one for one in coupled for own in one.members}
            # each is updated where the first of its variables was
            order = tuple(dict.fromkeys(joint.get(own, own) for own in self.order))
            self._together = self._again(order=order, groups=(), coupled=coupled)
        return self._together or self

    def compiled_by(self, compile_rows: Callable[[CompileRows], CompileRows]) -> Problem:
        """Return this problem with another way to compile its rows, made of the present one."""
        return self._again(compile_rows=compile_rows(self._compile_rows))

    def with_default_groups(self) -> Problem:
        """Return this problem with the default groups of globals that share a factor."""
        other = copied(self)
        groups, other.on_groups = self.fact(
            "groups by default",
            lambda: groups_by_default(self.order, self.compiled.terms, self.bound, self.point),
        )
        other.groups, other._together = tuple(groups), None
        return other

    def _again(self, **changes: Any) -> Problem:
        """Return this problem compiled anew with some arguments changed."""
        own = {
            "bound": self.bound,
            "coordinates": self.coordinates,
            "factors": self.factors,
            "order": self.order,
            "point": self.point,
            "compile_rows": self._compile_rows,
            "groups": self.groups,
            "coupled": self.coupled,
            "on_groups": self.on_groups,
            "points_count": self._points_count,
        }
        return Problem(**{**own, **changes})

    def updating(self, variables: Sequence[Variable]) -> Problem:
        """Return this problem with updates of these globals only; the factors of the others stay as they are given.

        All of them have been compiled: going back to more of them costs nothing.
        """
        if all(variable in self.updates for variable in variables):
            other = copied(self)
            other.order, other._together = tuple(variables), None
            for name in ("flat", "keys_in_order", "with_precisions", "optima", "kinds", "steps"):
                vars(other).pop(name, None)
            # whichever of them are updated, all terms are summed up
            other.summed_terms, other._own_places = self.summed_terms, self._own_places
            return other
        return self._again(order=variables)

    def with_rows(self, rows: RowModel) -> Problem:
        """Return this problem with another way to summarise its rows."""
        other = copied(self)
        other.rows, other._together = rows, None
        return other

    @cached_property
    def optima(self) -> dict[Variable, Update]:
        """The update of each global to its optimum: what the terms say, and how that is more than their sum."""
        found: dict[Variable, Update] = {**self.updates, **self.with_precisions, **self.sequential}
        terms = self.compiled.zero_terms
        for variable, zeros in updates_of(tuple(self.updates) if terms else (), terms, self.bound).items():
            if zeros.terms:
                found[variable] = Possible(found[variable], zeros)
        return found

    @cached_property
    def sequential(self) -> dict[Variable, SequentialUpdate]:
        """Updates of vectors whose entries are updated one after another."""
        several = [own for own in self.updates if own.is_sequential]
        terms = [term.contraction for term in self.compiled.terms] if several else []
        return {
            own: SequentialUpdate(own.name, terms, self.updates[own].natural, at_mode=own in self.point)
            for own in several
        }

    @cached_property
    def with_precisions(self) -> dict[Variable, EffectWithPrecision]:
        """Updates of single effects at the best precision of their sizes, which is updated next."""
        return {
            own: EffectWithPrecision(self.updates[own], self.updates[other], is_point=other in self.point)
            for own, other in precisions_of_effects(self.order, self.point, self.bound)
        }

    @cached_property
    def untold_terms(self) -> list[int]:
        """Numbers of the terms that count as 0: entropies of local factors are divergences from these priors."""
        certain = {variable for factor in self.factors for variable in factor.certain}
        terms = enumerate(self.compiled.terms) if certain else ()
        return [number for number, term in terms if term.owner in certain]

    @cached_property
    def own_terms(self) -> dict[Variable, OwnTerms]:
        """The terms of the prior of each global whose prior is proper and a member of its family."""
        terms, frame = self.compiled.terms, self.coordinates
        return {own: OwnTerms(own, terms[at], at, self.bound, frame) for own, at in self._own_places.items()}

    @cached_property
    def _own_places(self) -> dict[Variable, slice]:
        """Where these are among all."""
        return self.fact(
            "own terms", lambda: places_of_own_terms(self.order, self.compiled.terms, self.bound)
        )

    @cached_property
    def summed_terms(self) -> SummedTerms:
        """The terms, added up as far as they can be beforehand."""
        own = self._own_places
        places = self.fact(
            ("places in the sum", *own), lambda: places_in_sum(self.compiled, self.updates, own)
        )
        return SummedTerms(places, self.updates, self.compiled.terms, self._value_of)

    @cached_property
    def flat(self) -> list[Variable]:
        """The globals that are updated whose priors are flat."""
        return [variable for variable in self.order if self.bound.is_flat(variable)]

    @property
    def tells_gains(self) -> bool:
        """Whether natural parameters tell what updates gain: all repetitions count, each update is of one global."""
        return not self._active and not self.with_precisions

    @cached_property
    def keys_in_order(self) -> list[StatisticKey]:
        """The statistics of the globals that are updated, in their order."""
        return [key for variable in self.order for key in self.keys[variable]]

    @cached_property
    def values_of_terms(self) -> list[TermValue]:
        """What the value of each term is made of."""
        return [self._value_of(number) for number in range(len(self.compiled.terms))]

    @cached_property
    def _tellers(self) -> list[tuple[Variable, int] | None]:
        """Of each term the update that has a message of it, and which that is."""
        return self.fact("values of terms", lambda: who_tells(self.updates, len(self.compiled.terms)))

    def _value_of(self, number: int) -> TermValue:
        """Return what the value of a term is made of: a message of an update where one has it."""
        own = self._tellers[number]
        if own is None:
            return self.compiled.terms[number].contraction.value
        return self.updates[own[0]].value_of(own[1])

    @property
    def n_natural(self) -> int:
        """Numbers that the natural parameters of all globals consist of."""
        size = self.bound.size
        return sum(
            math.prod(size(Axis(plate)) for plate in variable.plates_of(statistic))
            * math.prod(size(Axis(variable, letter)) for letter in variable.letters[statistic])
            for variable in self.order
            for statistic in variable.family.statistics
        )

    @cached_property
    def kinds(self) -> dict[Variable, KindOfFactor]:
        """Of each global the kind of its factor."""
        held = set(self.bound.latent_globals()).difference(self.order)
        return {own: self._kind_of(own, own in held) for own in (*held, *self.order)}

    def _kind_of(self, variable: Variable, is_held: bool) -> KindOfFactor:
        known, is_point = self._clamped.get(variable), variable in self.point
        base = self.base_of(variable) if is_point or known is not None else None
        own = variable, self.bound, self._active.get(variable), is_held, base
        if is_point:
            kind: KindOfFactor = AtMode(*own)
        elif isinstance(variable, SharedVariable):
            kind = Shared(*own, self.coordinates)
        else:
            kind = KindOfFactor(*own)
        return kind if known is None else KnownInPart(*own, kind, known, self.coordinates)

    @cached_property
    def steps(self) -> list[Step]:
        """The updates of the globals, in their order."""
        return [Step(own, self.optima[own].natural, self.kinds[own].factor) for own in self.order]

    def factor(self, variable: Variable, natural: Statistics) -> Any:
        """Return the factor of a global variable with these natural parameters: a family member, or its mode.

        Repetitions that are known are at their values, whatever the natural parameters are there.
        """
        return self.kinds[variable].factor(natural)

    def with_known(self, variable: Variable, factor: Any, coordinates: Coordinates | None = None) -> Any:
        """Return a factor, in some coordinates (the problem's), with the repetitions that are known at their values."""
        known = self.bound.of(variable).clamped
        return (
            factor
            if known is None
            else known.over(variable, factor, (coordinates or self.coordinates).of(variable))
        )

    def update(self, variable: Variable, arrays: Mapping[Hashable, Array]) -> Any:
        """Return the optimal factor of a global variable, the others fixed."""
        return self.update_with_natural(variable, arrays)[1]

    def update_with_natural(
        self, variable: Variable, arrays: Mapping[Hashable, Array]
    ) -> tuple[Statistics, Any]:
        """Return the natural parameters of the optimal factor of a global variable, and that factor."""
        natural = self.optima[variable].natural(arrays)
        return natural, self.kinds[variable].factor(natural)

    def update_all(self, arrays: Arrays) -> tuple[dict[Variable, Statistics], dict[Variable, Any]]:
        """Update each global in turn, with its statistics in ``arrays``; return natural parameters and factors."""
        naturals: dict[Variable, Statistics] = {}
        factors: dict[Variable, Any] = {}
        for variable, natural_of, factor_of in self.steps:
            natural = naturals[variable] = natural_of(arrays)
            factor = factors[variable] = factor_of(natural)
            self.tell(arrays, variable, factor)
        return naturals, factors

    def statistics(self, variable: Variable, factor: Any) -> Arrays:
        """Return the expected statistics of a factor, by key."""
        found: Arrays = {}
        self.tell(found, variable, factor)
        return found

    def tell(self, arrays: Arrays, variable: Variable, factor: Any) -> None:
        """Write the expected statistics of a factor into arrays by key."""
        try:
            expected = factor.expected_statistics
        except np.linalg.LinAlgError as error:
            raise ImproperError(
                why_improper(variable, "its matrix cannot be inverted.", self.bound.values_of)
            ) from error
        arrays.update(zip(self.keys[variable], expected, strict=True))
        if variable.members:
            # in the order of the statistics of the factor that they share: those of each variable come first
            members = [key for member in variable.members for key in self.keys[member]]
            arrays.update(zip(members, expected, strict=False))

    def own_entropy(self, variable: Variable, factor: Any) -> float:
        """Return what a factor alone adds to the objective; see :meth:`KindOfFactor.entropy`."""
        return self.kinds[variable].entropy(factor)

    def worst_loss(self, q: Mapping[Variable, Any], coefficients: Coefficients) -> float:
        """Return the largest error (nats) that these factors' logits have from the present reference points."""
        every = self._every_recentring
        return max([own.worst_loss(self.coordinates, q, coefficients) for own in every], default=0.0)

    @cached_property
    def _every_recentring(self) -> list[Recentring]:
        return [own for several in self.recentrings.values() for own in several]

    def recentred(
        self, q: Mapping[Variable, Any], coefficients: Coefficients, *, may_return: bool = False
    ) -> tuple[Problem, dict[Variable, Any]]:
        """Return the problem and factors with centres where digits would be lost without; this one if they are right.

        Parameters
        ----------
        may_return
            Whether categories whose own point is not needed go back to the common one.
        """
        offsets = {
            own: own.offsets(self.coordinates, q, coefficients, may_return=may_return)
            for own in self._every_recentring
        }
        return self._displaced(q, offsets)

    def centred_on(
        self, parts: Mapping[Hashable, Array], q: Mapping[Variable, Any]
    ) -> tuple[Problem, dict[Variable, Any]]:
        """Return the problem and factors with centres on the means of categories whose rows are far out."""
        return self._displaced(q, {own: own.offsets_from(parts) for own in self._every_recentring})

    def _displaced(
        self, q: Mapping[Variable, Any], offsets: Mapping[Recentring, Array | None]
    ) -> tuple[Problem, dict[Variable, Any]]:
        coordinates, factors = self.coordinates, dict(q)
        for own, offset in offsets.items():
            if offset is not None:
                before, coordinates = (
                    coordinates,
                    coordinates.displaced(own.group, own.factor.variables[0], offset),
                )
                factors = own.translated(factors, coordinates.moved_since(before, own.group))
        if coordinates is self.coordinates:
            return self, factors
        return self.measured_from(coordinates), factors


def _keys_of(variables: Sequence[Variable]) -> Mapping[Variable, list[StatisticKey]]:
    return {own: [StatisticKey(own.name, name) for name in own.family.statistics] for own in variables}


@np.errstate(all="ignore")
def statistics_of(problem: Problem, q: Factors) -> dict[Hashable, Array]:
    """Return the expected statistics of all global factors, by key."""
    arrays: dict[Hashable, Array] = {}
    for variable, factor in q.items():
        problem.tell(arrays, variable, factor)
    return arrays
