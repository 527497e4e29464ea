"""The compiler: terms -> contractions, each split into a local side (rows of data) and a global side.

Every term of the log joint becomes one global contraction. Where a term runs over the data plate, what it
needs of the rows is a *part*: its local operands contracted over the data plate. A part is fused if it is
one local statistic times one feature of the data; all fused parts of a local factor come from one matrix
product. Otherwise it is contracted on its own.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse

from ..._typing import Array
from ...language import (
    Axis,
    Categorical,
    Constant,
    Data,
    Label,
    Node,
    Operand,
    Plate,
    Term,
    Variable,
    base_terms_of,
    plate_axes,
    zero_terms_of,
)
from ...lazy.block_map import map_blocks
from ..binding.bound_model import BoundModel
from ..binding.coordinates import Coordinates
from ..binding.known_statistics import BESIDE_VALUES, known_statistic, role_of
from ..binding.missing.values import OBSERVED
from ..design.features import CONSTANT, Feature, FeatureTable, Source
from ..design.keys import FeatureKey, StatisticKey, SumKey
from ..local.gated import SwitchedFactor
from ..local.local_factor import LocalFactor
from ..local.missing_vector import WHOLE
from .contraction import Contraction, Derivative, Factor
from .shifted import terms_in

__all__ = ["Compiled", "GlobalTerm", "LocalTerm", "Part", "compile_terms", "is_of"]


@dataclass(frozen=True, eq=False)
class Part:
    """What a term needs of the rows: a sum over the data plate.

    Attributes
    ----------
    key
        What the sum, and its coefficient, are found by.
    shape
        Of the sum.
    factor
        The local factor whose matrix product yields it; None for a part without local variables.
    stat
        The statistic of that factor, as its key.
    feature
        The feature that the statistic is multiplied with; None if the part is not fused.
    """

    key: SumKey
    shape: tuple[int, ...]
    factor: LocalFactor | None
    stat: StatisticKey | None
    feature: Feature | None

    @property
    def rows(self) -> slice:
        """Rows of the factor's matrix product that yield it."""
        if self.factor is None or self.stat is None:
            return slice(0, 1)
        return self.factor.rows[self.stat]


class GlobalTerm(NamedTuple):
    """A term as a contraction of global statistics, constants and at most one part.

    Attributes
    ----------
    owner
        The variable in whose density it stands.
    contraction
        What it counts.
    whole
        The same with the repetitions of the owner that count nothing, where there are such: what it says of the owner.
    """

    owner: Variable
    contraction: Contraction
    whole: Contraction | None = None

    def derivative(self, position: int) -> Derivative:
        """Return the message to an operand."""
        return self.said_to(position).derivative(position)

    def said_to(self, position: int) -> Contraction:
        """Return what the message to an operand is of: to the owner also where it counts nothing, for its factor."""
        if self.whole is not None and is_of(self.contraction.keys[position], self.owner):
            return self.whole
        return self.contraction


@dataclass(frozen=True, eq=False)
class LocalTerm:
    """The local side of a term that is not fused: sums over rows and messages to local factors.

    Attributes
    ----------
    part
        Its sum.
    contraction
        Coefficient of the part x local statistics x data, over all axes with the data plate.
    features
        The known values among its operands, as features.
    is_static
        Whether no local variable takes part, so that the sum never changes.
    sparse
        Rows of a sparse matrix that are left out of a static contraction, which then has their number instead of the
        last axis of the part; or None.
    """

    part: Part
    contraction: Contraction
    features: tuple[Feature, ...]
    is_static: bool
    sparse: Feature | None = None


@dataclass(frozen=True, eq=False)
class Compiled:
    """A model bound to data, compiled.

    Attributes
    ----------
    terms
        All terms, global side.
    parts
        Sums over rows that the terms use, by key.
    local_terms
        Local sides that are not fused.
    tables
        Local factor -> features of its matrix product; None -> features of the parts without local variables.
    sources
        The known arrays along the data plate.
    users
        (local factor or None, key of a feature) -> the variables in whose terms the feature stands there.
    zero_terms
        Terms that count the known probabilities of zero that a state of everything latent meets, global side.
    """

    terms: tuple[GlobalTerm, ...]
    parts: Mapping[Hashable, Part]
    local_terms: tuple[LocalTerm, ...]
    tables: dict[LocalFactor | None, FeatureTable]
    sources: dict[Node, Source]
    users: dict[tuple[LocalFactor | None, FeatureKey], set[Variable]]
    zero_terms: tuple[GlobalTerm, ...] = ()


class _Side(NamedTuple):
    """Where an operand stands: a global factor, a known array without rows, or (neither) a side of the rows."""

    is_known: bool
    factor: Factor | None = None
    known: tuple[Array, tuple[Axis, ...]] | None = None


class _Compiler:
    def __init__(self, bound: BoundModel, coordinates: Coordinates, factors: Sequence[LocalFactor]) -> None:
        self.bound = bound
        self.coordinates = coordinates
        self.data_axis = None if bound.data_plate is None else Axis(bound.data_plate)
        self.factor_of: dict[Node, LocalFactor] = {
            variable: factor for factor in factors for variable in factor.variables
        }
        self.sources: dict[Node, Source] = {}
        self.features: dict[FeatureKey, Feature] = {}
        self.parts: dict[Hashable, Part] = {}
        self.local_terms: list[LocalTerm] = []
        self.used: dict[LocalFactor | None, dict[FeatureKey, Feature]] = {}
        self.users: dict[tuple[LocalFactor | None, FeatureKey], set[Variable]] = {}

    def variable(self, owner: Variable) -> list[GlobalTerm]:
        """Compile the terms of a variable's density; an operand of several terms is looked at once."""
        if owner in self.bound.beliefs:
            return self._believed(owner, self.bound.beliefs[owner])
        return self._compiled(owner, (*terms_in(self.coordinates, owner), *_base_terms(owner, self.bound)))

    def zeros(self, owner: Variable) -> list[GlobalTerm]:
        """Compile what counts the known probabilities of zero in a variable's density."""
        if owner in self.bound.beliefs:
            return []
        terms = zero_terms_of(owner, lambda node: node.is_known)
        return self._compiled(owner, [term for term in terms if _has_zeros(term, self.bound)])

    def _compiled(self, owner: Variable, terms: Sequence[Term]) -> list[GlobalTerm]:
        if owner not in self.bound.gaps and any(slot.index is not None for slot in owner.slots.values()):
            terms = [self._without_idle_choices(term) for term in terms]
        # what takes missing entries, or latents that count nothing, out of a term that they do not stand in
        observed = None
        if owner in self.bound.masks or (owner in self.bound.seen and self.bound.is_local(owner)):
            observed = Operand(owner, OBSERVED, plate_axes(owner))
        sides: dict[int, _Side] = {}
        return [self._term(term, observed, sides) for term in terms]

    def _believed(self, owner: Variable, belief: Any) -> list[GlobalTerm]:
        """Return the terms of a density that is a factor of an earlier fit: eta' t - A(eta), to its own measure."""
        reference = self.coordinates.of(owner)
        prior = belief if reference is None else belief.translate(-reference)
        size = self.bound.size
        constant = Contraction(-float(np.sum(prior.log_partition)), [], [], (), size)
        terms = [GlobalTerm(owner, constant)]
        for statistic, natural in zip(owner.family.statistics, prior.natural, strict=True):
            plates = tuple([Axis(plate) for plate in owner.plates_of(statistic)])
            axes = plates + tuple([Axis(owner, letter) for letter in owner.letters[statistic]])
            factor = Factor(StatisticKey(owner.name, statistic), axes)
            terms.append(GlobalTerm(owner, Contraction(1.0, [factor], [(natural, axes)], axes, size)))
        return terms

    def _term(self, term: Term, observed: Operand | None, sides: dict[int, _Side]) -> GlobalTerm:
        """Compile one term: its local side becomes a part, its global side a contraction."""
        operands = term.operands
        if observed is not None and all(operand.node is not term.owner for operand in operands):
            operands = (*operands, observed)
        factors, known, rows, locals_ = [], [], [], []
        for operand in operands:
            side = sides.get(id(operand)) or self._side(term.owner, operand, sides)
            if side.factor is not None:
                factors.append(side.factor)
            elif side.known is not None:
                known.append(side.known)
            else:
                (rows if side.is_known else locals_).append(operand)
        if self.data_axis not in term.axes:
            whole = Contraction(term.coefficient, factors, known, term.axes, self.bound.size)
            seen = self._seen_global(term.owner)
            if seen is None:
                return GlobalTerm(term.owner, whole)
            counted = Contraction(term.coefficient, factors, [*known, seen], term.axes, self.bound.size)
            return GlobalTerm(term.owner, counted, whole)
        part = self._part(term, rows, locals_, [*[f.axes for f in factors], *[own for _, own in known]])
        axes = self._off_rows(term.axes)
        if axes and (rows or locals_):
            # what is summed over inside a part is not summed over again
            summed = {axis for operand in (*rows, *locals_) for axis in operand.axes}.difference(part.axes)
            axes = tuple([axis for axis in axes if axis not in summed])
        factors.append(part)
        return GlobalTerm(term.owner, Contraction(term.coefficient, factors, known, axes, self.bound.size))

    def _seen_global(self, owner: Variable) -> tuple[Array, tuple[Axis, ...]] | None:
        """Return 1 for each repetition of a global variable that counts and 0 for the others; None if all do."""
        if owner not in self.bound.seen or self.bound.is_local(owner):
            return None
        return self.bound.seen[owner].astype(np.float64), plate_axes(owner)

    def _without_idle_choices(self, term: Term) -> Term:
        """Return a term without the labels that choose nothing in it, for their one-hot sums to one.

        What is measured from the centres of the categories depends on the label whatever the term says, and so does
        what is integrated out of a vector missing in part.
        """
        for choice in term.operands:
            category = choice.axes[-1] if choice.axes else None
            if not _is_choice(term, choice) or self.coordinates.is_centred(term.owner, choice.node):
                continue
            others = tuple(operand for operand in term.operands if operand is not choice)
            if all(category not in operand.axes for operand in others):
                axes = tuple(axis for axis in term.axes if axis is not category)
                term = term._replace(operands=others, axes=axes)
        return term

    def _side(self, owner: Variable, operand: Operand, sides: dict[int, _Side]) -> _Side:
        """Return where an operand of the owner's terms stands, and keep it."""
        is_known = operand.node in self.bound.values or operand.statistic in BESIDE_VALUES
        factor = known = None
        if self.data_axis not in operand.axes:
            if is_known:
                known = known_statistic(self.bound, self.coordinates, owner, operand)
            else:
                factor = Factor(_key_of(operand), operand.axes)
        side = sides[id(operand)] = _Side(is_known, factor, known)
        return side

    def _source(self, owner: Variable, operand: Operand) -> Source:
        node = operand.node
        if node not in self.sources:
            if operand.statistic == OBSERVED and isinstance(node, Variable) and node in self.bound.seen:
                row_axis, seen = self._row_axis(node), self.bound.seen[node].shape
                shape = (*seen[:row_axis], *seen[row_axis + 1 :], *(1,) * node.value_rank)
                return self.sources.setdefault(node, Source(node, shape, None, has_missing=True))
            values, row_axis = self.bound.values[node], self._row_axis(node)
            shape = values.shape[:row_axis] + values.shape[row_axis + 1 :]
            reference = None
            if isinstance(node, Variable):
                reference = self.coordinates.of(node)
            elif operand.slot is not None and operand.slot.role.moves:
                moved = self.coordinates.of_known(owner, operand.slot)
                own = self._off_rows(operand.axes[: len(node.plates)])
                reference = None if moved is None else np.broadcast_to(_over(own, *moved), shape)
            has_gaps, origin = node in self.bound.gaps, self.coordinates.origin_of(node)
            has_missing, is_sparse = has_gaps or node in self.bound.masks, issparse(values)
            self.sources[node] = Source(node, shape, reference, has_missing, is_sparse, has_gaps, origin)
        return self.sources[node]

    def _row_axis(self, node: Node) -> int:
        assert self.bound.data_plate is not None
        return node.plates.index(self.bound.data_plate)

    def _feature(self, owner: Variable, operand: Operand | None, summed: tuple[int, ...] = ()) -> Feature:
        if operand is None:
            return self.features.setdefault(CONSTANT.key, CONSTANT)
        node = operand.node
        role = None if isinstance(node, Variable) else role_of(self.bound, operand)
        name = "" if role is None else role.name
        known = self.features.get(FeatureKey(node.name, operand.statistic, name, summed))
        if known is not None:
            return known
        source, n_labels = self._source(owner, operand), self._n_labels(operand)
        feature = Feature(source, operand.statistic, role, n_labels, summed)
        return self.features.setdefault(feature.key, feature)

    def _n_labels(self, operand: Operand) -> int | None:
        """Return the number of categories of an operand that is the one-hot of labels, else None."""
        node = operand.node
        is_labels = isinstance(node, Categorical) and operand.statistic == "x"
        if is_labels or (isinstance(node, Data) and operand.slot is None):
            return self.bound.size(operand.axes[-1])
        return None

    def _off_rows(self, axes: Sequence[Axis]) -> tuple[Axis, ...]:
        return tuple([axis for axis in axes if axis is not self.data_axis])

    def _local_operands(
        self, owner: Variable, locals_: list[Operand]
    ) -> list[tuple[LocalFactor, StatisticKey, tuple[Axis, ...]]]:
        """Return the local statistics of a term: (factor, key, axes without the data plate), one for each factor."""
        if owner in self.factor_of and owner in self.bound.values:
            # a vector missing in part that nothing of its row gates
            return [(self.factor_of[owner], StatisticKey(owner.name, WHOLE), ())]
        if not locals_:
            return []
        by_factor: dict[LocalFactor, list[Operand]] = {}
        for operand in locals_:
            by_factor.setdefault(self.factor_of[operand.node], []).append(operand)
        found = []
        for factor, operands in by_factor.items():
            if not isinstance(factor, SwitchedFactor):
                (operand,) = operands
                found.append((factor, _key_of(operand), self._off_rows(operand.axes)))
                continue
            gated = [op for op in operands if op.node is not factor.gate]
            operand = gated[0] if gated else operands[0]
            own = self._off_rows(operand.axes)
            # a gated variable's statistic comes times the one-hot of the gate; summed over, where the term has no gate
            axes = (factor.category, *own) if gated else own
            found.append((factor, _key_of(operand), axes))
        return found

    def _part(
        self,
        term: Term,
        rows: list[Operand],
        locals_: list[Operand],
        others: list[tuple[Axis, ...]],
    ) -> Factor:
        """Return the part of a term whose other operands have these axes."""
        local = self._local_operands(term.owner, locals_)
        if len(local) <= 1 and len(rows) <= 1:
            factor, stat, stat_axes = local[0] if local else (None, None, ())
            row_axes = self._off_rows(rows[0].axes) if rows else ()
            if not any(axis in stat_axes for axis in row_axes):
                summed = self._summed(rows[0], row_axes, others) if row_axes else ()
                if summed:
                    row_axes = tuple([axis for place, axis in enumerate(row_axes) if place not in summed])
                return self._fused(
                    term, rows[0] if rows else None, factor, stat, stat_axes + row_axes, summed
                )
        return self._unfused(term, rows, local, set().union(*others))

    def _summed(
        self, row: Operand, axes: tuple[Axis, ...], others: list[tuple[Axis, ...]]
    ) -> tuple[int, ...]:
        """Return the axes of a row's statistic that nothing else of the term has: by place."""
        if self._n_labels(row) is not None or issparse(self.bound.values.get(row.node)):
            return ()
        return tuple(
            place
            for place, axis in enumerate(axes)
            if isinstance(axis.of, Plate) and axes.count(axis) == 1 and not any(axis in own for own in others)
        )

    def _fused(
        self,
        term: Term,
        row: Operand | None,
        factor: LocalFactor | None,
        stat: StatisticKey | None,
        axes: tuple[Axis, ...],
        summed: tuple[int, ...],
    ) -> Factor:
        feature = self._feature(term.owner, row, summed)
        self.users.setdefault((factor, feature.key), set()).add(term.owner)
        key = SumKey(() if stat is None else (stat,), feature.key)
        part = self.parts.get(key)
        if part is None:
            self.used.setdefault(factor, {})[feature.key] = feature
            own = () if factor is None or stat is None else factor.shapes[stat]
            part = self.parts[key] = Part(key, own + feature.shape, factor, stat, feature)
        return Factor(part.key, axes)

    def _unfused(
        self,
        term: Term,
        rows: list[Operand],
        local: list[tuple[LocalFactor, StatisticKey, tuple[Axis, ...]]],
        elsewhere: set[Axis],
    ) -> Factor:
        assert self.data_axis is not None
        factors = [Factor(stat, (*axes, self.data_axis)) for _, stat, axes in local]
        by_key: dict[Hashable, Feature] = {}
        for operand in rows:
            feature = self._feature(term.owner, operand)
            by_key[feature.key] = feature
            factors.append(Factor(feature.key, (*self._off_rows(operand.axes), self.data_axis)))
        sparse = None if local else _sparse_apart(factors, by_key, elsewhere)
        if sparse is not None:
            # its axis last
            factors = [*(factor for factor in factors if factor is not sparse), sparse]
        inside = dict.fromkeys(axis for factor in factors for axis in factor.axes)
        kept = tuple(axis for axis in inside if axis in elsewhere)
        # as many as there are already, so that no other sum has this number
        key = SumKey(tuple(stat for _, stat, _ in local), None, 1 + len(self.local_terms))
        part = Part(key, tuple(self.bound.size(axis) for axis in kept), None, None, None)
        self.parts[key] = part
        whole = Factor(key, kept)
        if sparse is None:
            contraction = Contraction(1.0, [whole, *factors], [], list(inside), self.bound.size)
            self.local_terms.append(LocalTerm(part, contraction, tuple(by_key.values()), not local))
            return whole
        of_rows = Factor(key, (*kept[:-1], self.data_axis))
        summed = [axis for axis in inside if axis != kept[-1]]
        contraction = Contraction(1.0, [of_rows, *factors[:-1]], [], summed, self.bound.size)
        inside_keys = {factor.key for factor in factors[:-1]}
        others = tuple(feature for key, feature in by_key.items() if key in inside_keys)
        self.local_terms.append(LocalTerm(part, contraction, others, True, by_key[sparse.key]))
        return whole


def is_of(key: Hashable, variable: Variable) -> bool:
    """Whether a key is that of a statistic of a variable."""
    return isinstance(key, StatisticKey) and key.variable == variable.name


def _key_of(operand: Operand) -> StatisticKey:
    return StatisticKey(operand.node.name, operand.statistic)


def _is_choice(term: Term, operand: Operand) -> bool:
    """Whether an operand is the label by which a term chooses, of a Categorical or known."""
    if operand.slot is not None or operand.node is term.owner:
        return False
    return operand.statistic == "one_hot" or (operand.statistic == "x" and isinstance(operand.node, Label))


def _sparse_apart(
    factors: Sequence[Factor], features: Mapping[Hashable, Feature], elsewhere: set[Axis]
) -> Factor | None:
    """Return a sparse factor among the known sides of a term whose columns stand in no other of them."""
    for factor in factors:
        if features[factor.key].is_sparse:
            others = {axis for other in factors if other is not factor for axis in other.axes}
            if factor.axes[0] in elsewhere - others:
                return factor
    return None


def _over(wanted: Sequence[Axis], reference: Array, axes: Sequence[Axis]) -> Array:
    """Return a reference over the wanted plate axes; it is the same all along those of its own that are left out."""
    kept = reference[tuple(slice(None) if axis in wanted else 0 for axis in axes)]
    present = [axis for axis in axes if axis in wanted]
    order = [present.index(axis) for axis in wanted if axis in present]
    turned = kept.transpose(*order, *range(len(order), kept.ndim))
    return turned[tuple(slice(None) if axis in present else None for axis in wanted)]


def compile_terms(bound: BoundModel, coordinates: Coordinates, factors: Sequence[LocalFactor]) -> Compiled:
    """Return the compiled model: cost linear in the number of terms, none of it in the number of rows."""
    compiler = _Compiler(bound, coordinates, factors)
    terms = tuple(
        term for node in bound.nodes if isinstance(node, Variable) for term in compiler.variable(node)
    )
    zero_terms = tuple(
        term for node in bound.nodes if isinstance(node, Variable) for term in compiler.zeros(node)
    )
    tables = {factor: FeatureTable(_ordered(used)) for factor, used in compiler.used.items()}
    return Compiled(
        terms,
        compiler.parts,
        tuple(compiler.local_terms),
        tables,
        {node: source for node, source in compiler.sources.items() if node in bound.values},
        compiler.users,
        zero_terms,
    )


def _base_terms(node: Variable, bound: BoundModel) -> Sequence[Term]:
    """An observed variable's density counts with its base measure; a latent one's cancels against its factor's."""
    return base_terms_of(node) if node in bound.values else ()


def _has_zeros(term: Term, bound: BoundModel) -> bool:
    """Whether the known probabilities that a term looks for zeros among have any."""
    operand = next(operand for operand in term.operands if operand.slot is not None)
    assert operand.slot is not None
    node, any_zero = operand.node, _AnyOf(operand.slot.role.zeros[operand.statistic])
    if isinstance(node, Constant):
        return any_zero(node.value)
    return any(found for _, found in map_blocks(any_zero, bound.values[node]))


@dataclass(frozen=True, eq=False)
class _AnyOf:
    """Whether a function of some number of a block is not 0."""

    function: Callable[[Array], Array]

    def __call__(self, block: Array) -> bool:
        return bool(self.function(np.asarray(block, dtype=np.float64)).any())


def _ordered(used: Mapping[FeatureKey, Feature]) -> list[Feature]:
    """Return the features with each value before its squares, the constant first, those tallied last."""
    return sorted(
        used.values(),
        key=lambda f: (
            f.is_tallied,
            f.source is not None,
            "" if f.source is None else f.source.node.name,
            f.statistic,
        ),
    )
