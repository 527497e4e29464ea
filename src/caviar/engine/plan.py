"""The plan: a compiled model with everything the loop asks for.

A row of data goes: rows -> :meth:`Plan.summarize` (local factors at their optimum; sums over rows) -> reduced :class:`Sums`
-> :meth:`Plan.update` (one global factor at its optimum) -> :meth:`Plan.objective`.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._typing import AnyArray, Array
from ..language import Axis, Variable, base_terms_of
from .binding import Binding
from .centres import Centres, centres_of
from .compile import Compiled, GlobalTerm, Part, compile_terms
from .contraction import Contraction, Derivative, Factor
from .frame import Frame
from .locals import LocalFactor
from .point import PointMass
from .products import block_rows, project
from .scratch import Scratch

__all__ = ["Coefficients", "LocalState", "Plan", "Rows", "Sums"]

Arrays = dict[Hashable, Array]
_UNFUSED_ROWS = 1024
LocalState = dict[LocalFactor, Array]
"""Local factor -> expected statistics of the rows of one block."""


@dataclass(frozen=True)
class Rows:
    """A block of rows: name -> array with the rows first, and their weights."""

    columns: Mapping[str, AnyArray]
    weights: Array | None
    n_rows: int


@dataclass(frozen=True)
class Coefficients:
    """What a pass over the rows needs of the globals; made once a pass.

    Attributes
    ----------
    matrices
        Local factor -> W, shape (E, F): natural parameters are W @ T.
    parts
        Part -> coefficient array of the local side of a term that is not fused.
    """

    matrices: dict[LocalFactor, Array]
    parts: Arrays


@dataclass(frozen=True)
class Sums:
    """Sums over rows: additive, of fixed size, all that a pass leaves behind.

    Attributes
    ----------
    fused
        Local factor -> U @ T', shape (E, F).
    parts
        Part -> sum, for parts that are not fused.
    entropy
        Local factor -> (sum of log-partitions, sum of <natural, expected>); the second is None where it follows from W.
    """

    fused: dict[LocalFactor | None, Array]
    parts: Arrays
    log_partition: dict[LocalFactor, float]
    inner: dict[LocalFactor, float]

    @classmethod
    def zero(cls) -> Sums:
        """Return the sums over no rows."""
        return cls({}, {}, {}, {})

    def add(self, other: Sums) -> None:
        """Add other sums to these, in place; arrays that are not here yet are copied."""
        for mine, theirs in ((self.fused, other.fused), (self.parts, other.parts)):
            for key, value in theirs.items():
                if key in mine:
                    mine[key] += value
                else:
                    mine[key] = value.copy()
        for mine, theirs in ((self.log_partition, other.log_partition), (self.inner, other.inner)):
            for key, value in theirs.items():
                mine[key] = mine.get(key, 0.0) + value


@dataclass(frozen=True)
class Summary:
    """What a pass gives the globals: parts in full shape, and the entropy of each local factor."""

    parts: Arrays
    entropies: dict[LocalFactor, float]


class _GlobalUpdate:
    """The compiled update of one global factor: derivative of the expected log joint by its expected statistics."""

    def __init__(self, variable: Variable, terms: Sequence[GlobalTerm], binding: Binding) -> None:
        self.variable = variable
        statistics = variable.family.statistics
        plates = tuple(binding.size(Axis(plate)) for plate in variable.plates)
        shapes = [plates + tuple(binding.size(Axis(variable, c)) for c in variable.letters[s]) for s in statistics]
        self.fixed: list[Array] = [np.zeros(shape) for shape in shapes]
        self.changing: list[tuple[int, Derivative]] = []
        self.terms: list[int] = []
        self._square = [i for i, s in enumerate(statistics) if len(variable.letters[s]) == 2]
        for number, term in enumerate(terms):
            for position, factor in enumerate(term.contraction.factors):
                if not isinstance(factor.key, tuple) or factor.key[0] is not variable:
                    continue
                self.terms.append(number)
                statistic = statistics.index(factor.key[1])
                derivative = term.contraction.derivative(position)
                if len(term.contraction.factors) == 1:
                    self.fixed[statistic] = self.fixed[statistic] + derivative({})
                else:
                    self.changing.append((statistic, derivative))

    def natural(self, arrays: Mapping[Hashable, Array]) -> tuple[Array, ...]:
        """Return the natural parameters of the optimal factor."""
        total = list(self.fixed)
        for statistic, derivative in self.changing:
            total[statistic] = total[statistic] + derivative(arrays)
        for statistic in self._square:
            # m_i x_j stands for its symmetric part, which is all that a symmetric statistic sees
            total[statistic] = 0.5 * (total[statistic] + np.swapaxes(total[statistic], -1, -2))
        return tuple(total)


class Plan:
    """A model bound to data, compiled, with its factors.

    Parameters
    ----------
    binding
        The model's nodes and data.
    frame
        Reference points of the locations.
    factors
        Local factors.
    order
        Global variables in the order of their updates.
    point
        Variables whose factors are point masses.
    """

    def __init__(
        self,
        binding: Binding,
        frame: Frame,
        factors: Sequence[LocalFactor],
        order: Sequence[Variable],
        point: frozenset[Variable],
    ) -> None:
        self.binding = binding
        self.frame = frame
        self.factors = tuple(factors)
        self.order = tuple(order)
        self.point = point
        self.compiled: Compiled = compile_terms(binding, frame, factors)
        terms = self.compiled.terms
        self.updates = {variable: _GlobalUpdate(variable, terms, binding) for variable in order}
        self.base_terms = {variable: _base_contractions(variable, binding) for variable in point}
        self._part_derivatives = [
            (factor.key, term.contraction.derivative(position))
            for term in terms
            for position, factor in enumerate(term.contraction.factors)
            if isinstance(factor.key, Part)
        ]
        self._messages = _messages(self.compiled)
        coupled = {key[0] for _, _, _, needs in self._messages for key in needs}
        self.keeps_locals = bool(coupled)
        """Whether local factors depend on each other, so that a pass must start from the last one's."""
        self._explicit = {key[0] for key, _, _, _ in self._messages}
        self.centres: dict[LocalFactor, list[Centres]] = centres_of(self)

    @property
    def block_rows(self) -> int:
        """Rows of a block; depends on the model alone, so that sums are the same bits whatever executes them."""
        sizes = [
            block_rows(1 if factor is None else factor.n_rows, table.n_rows)
            for factor, table in self.compiled.tables.items()
        ]
        return min(sizes, default=_UNFUSED_ROWS)

    # -- globals -------------------------------------------------------------------------------------------------

    def factor(self, variable: Variable, natural: tuple[Array, ...]) -> Any:
        """Return the factor of a global variable with these natural parameters: a family member, or its mode."""
        if variable in self.point:
            return PointMass(variable.family, variable.mode_of(natural))
        return variable.family.from_natural(natural)

    def update(self, variable: Variable, arrays: Mapping[Hashable, Array]) -> Any:
        """Return the optimal factor of a global variable, the others fixed."""
        return self.factor(variable, self.updates[variable].natural(arrays))

    def statistics(self, variable: Variable, factor: Any) -> Arrays:
        """Return the expected statistics of a factor, by key."""
        names = variable.family.statistics
        return {(variable, name): value for name, value in zip(names, factor.expected_statistics, strict=True)}

    def own_entropy(self, variable: Variable, factor: Any) -> float:
        """Return what a factor adds to the objective by itself.

        The entropy with respect to the family's own measure; for a point mass the log of that measure's density, so that
        the objective is log p(x, theta) with respect to Lebesgue measure. A point that merely starts a factor which is
        no point mass has the entropy minus infinity: the first update raises the objective to a number.
        """
        if variable in self.point:
            arrays = self.statistics(variable, factor)
            return sum(contraction.value(arrays) for contraction in self.base_terms[variable])
        if isinstance(factor, PointMass):
            return -np.inf
        pairs = zip(factor.natural, factor.expected_statistics, strict=True)
        return float(np.sum(factor.log_partition)) - sum(float(np.vdot(a, b)) for a, b in pairs)

    def recentred(self, q: Mapping[Variable, Any], coefficients: Coefficients) -> tuple[Plan, dict[Variable, Any]] | None:
        """Return the plan and factors with centres where digits would be lost without; None if they are right."""
        frame, factors = self.frame, dict(q)
        for factor, several in self.centres.items():
            for centres in several:
                offsets = centres.offsets(self, q, coefficients.matrices[factor])
                if offsets is not None:
                    frame = frame.displaced(centres.group, factor.variables[0], offsets)
                    factors = centres.translated(factors, offsets)
        if frame is self.frame:
            return None
        return Plan(self.binding, frame, self.factors, self.order, self.point), factors

    def _used_centres(self, factor: LocalFactor) -> list[Centres]:
        return [centres for centres in self.centres.get(factor, ()) if centres.is_used]

    # -- one pass over the rows ----------------------------------------------------------------------------------

    def coefficients(self, arrays: Mapping[Hashable, Array]) -> Coefficients:
        """Return what the rows need of the globals."""
        parts: Arrays = {}
        for part, derivative in self._part_derivatives:
            value = derivative(arrays)
            before = parts.get(part)
            parts[part] = value if before is None else before + value
        matrices = {}
        for factor in self.factors:
            table = self.compiled.tables.get(factor)
            if table is not None:
                matrices[factor] = self._matrix(factor, parts)
        return Coefficients(matrices, parts)

    def _matrix(self, factor: LocalFactor, parts: Arrays) -> Array:
        table = self.compiled.tables[factor]
        columns = {feature.key: rows for feature, rows in zip(table.features, table.slices, strict=True)}
        matrix = np.zeros((factor.n_rows, table.n_rows))
        for part, value in parts.items():
            if isinstance(part, Part) and part.factor is factor and part.feature is not None:
                n_rows = factor.rows[part.stat].stop - factor.rows[part.stat].start  # type: ignore[index]
                full = np.broadcast_to(value, part.shape).reshape(n_rows, *part.feature.shape)
                matrix[factor.rows[part.stat], columns[part.feature.key]] = part.feature.pack(full)  # type: ignore[index]
        return matrix

    def summarize(
        self, rows: Rows, coefficients: Coefficients, before: LocalState | None, scratch: Scratch, *, static: bool
    ) -> tuple[Sums, LocalState]:
        """Return the sums over a block of rows with the local factors at their optimum, and these factors' statistics.

        The sums are valid until the thread's next block: they live in its scratch.

        Parameters
        ----------
        before
            Local statistics from the last pass; needed only where local factors depend on each other.
        static
            Whether to sum only the parts without local variables (they never change).
        """
        sums = Sums.zero()
        if static:
            self._sum_static(rows, sums, scratch)
            return sums, {}
        state: LocalState = dict(before or {})
        data = self._row_arrays(rows) if self.compiled.local_terms else {}
        for factor in self.factors:
            self._infer(factor, rows, coefficients, state, data, sums, scratch)
        self._sum_rows(rows, state, data, sums, scratch)
        return sums, state if self.keeps_locals else {}

    def sums_of(self, rows: Rows, state: LocalState, scratch: Scratch) -> Sums:
        """Return the sums over a block of rows for given local statistics; their entropies count as zero."""
        sums = Sums({}, {}, dict.fromkeys(self.factors, 0.0), dict.fromkeys(self.factors, 0.0))
        for factor, table in self.compiled.tables.items():
            if factor is not None:
                features = scratch.array((factor, "table"), (table.n_rows, rows.n_rows))
                table.fill(rows.columns, features, scratch)
        self._sum_rows(rows, state, self._row_arrays(rows), sums, scratch)
        return sums

    def infer(self, rows: Rows, coefficients: Coefficients, scratch: Scratch, sweeps: int = 1) -> dict[LocalFactor, Array]:
        """Return the natural parameters of every local factor for a block of rows: (E, B) each."""
        state: LocalState = {}
        data = self._row_arrays(rows)
        natural: dict[LocalFactor, Array] = {}
        for _ in range(sweeps if self.keeps_locals else 1):
            for factor in self.factors:
                natural[factor] = self._natural(factor, rows, coefficients, state, data, scratch).copy()
                state[factor] = natural[factor].copy()
                factor.infer(state[factor])
        return natural

    def _natural(
        self,
        factor: LocalFactor,
        rows: Rows,
        coefficients: Coefficients,
        state: LocalState,
        data: Arrays,
        scratch: Scratch,
    ) -> Array:
        natural = scratch.array((factor, "natural"), (factor.n_rows, rows.n_rows))
        table = self.compiled.tables.get(factor)
        if table is None:
            natural.fill(0.0)
        else:
            features = scratch.array((factor, "table"), (table.n_rows, rows.n_rows))
            table.fill(rows.columns, features, scratch)
            matrix = coefficients.matrices[factor]
            centres = self._used_centres(factor)
            shared = matrix
            for own in centres:
                shared = own.mask(shared)
            project(shared, features, natural)
            for own in centres:
                own.add_natural(matrix, rows.columns, natural, scratch)
        for key, derivative, part, needs in self._messages:
            if key[0] is factor and all(other in state for other, _ in needs):
                arrays = {part: coefficients.parts[part], **data}
                arrays |= {need: need[0].view(state[need[0]], need[1]) for need in needs}
                factor.view(natural, key[1])[...] += derivative(arrays)
        return natural

    def _infer(
        self,
        factor: LocalFactor,
        rows: Rows,
        coefficients: Coefficients,
        state: LocalState,
        data: Arrays,
        sums: Sums,
        scratch: Scratch,
    ) -> None:
        expected = self._natural(factor, rows, coefficients, state, data, scratch)
        natural = expected.copy() if factor in self._explicit else None
        log_partition = factor.infer(expected)
        weights = rows.weights
        sums.log_partition[factor] = float(log_partition.sum() if weights is None else weights @ log_partition)
        if natural is not None:
            inner = np.einsum("eb,eb->b", natural, expected)
            sums.inner[factor] = float(inner.sum() if weights is None else weights @ inner)
        state[factor] = expected.copy() if self.keeps_locals else expected

    def _sum_rows(self, rows: Rows, state: LocalState, data: Arrays, sums: Sums, scratch: Scratch) -> None:
        for local in self.compiled.local_terms:
            if not local.is_static:
                arrays = dict(data)
                for factor in local.contraction.factors[1:]:
                    if isinstance(factor.key, tuple):
                        owner, stat = factor.key
                        arrays[factor.key] = owner.view(state[owner], stat)
                sums.parts[local.part] = self._weighted_sum(local.contraction, arrays, rows)
        for factor in self.factors:
            table = self.compiled.tables.get(factor)
            if table is None:
                continue
            expected = state[factor]
            if rows.weights is not None:
                if self.keeps_locals:
                    expected = expected * rows.weights
                else:
                    expected *= rows.weights
            features = scratch.array((factor, "table"), (table.n_rows, rows.n_rows))
            # BLAS writes the transpose a little faster
            total = scratch.array((factor, "sums"), (table.n_rows, factor.n_rows)).T
            np.matmul(expected, features.T, out=total)
            for own in self._used_centres(factor):
                own.replace_sums(expected, rows.columns, total, scratch)
            sums.fused[factor] = total

    def _sum_static(self, rows: Rows, sums: Sums, scratch: Scratch) -> None:
        data = self._row_arrays(rows)
        for local in self.compiled.local_terms:
            if local.is_static:
                sums.parts[local.part] = self._weighted_sum(local.contraction, data, rows)
        table = self.compiled.tables.get(None)
        if table is not None:
            features = scratch.array((None, "table"), (table.n_rows, rows.n_rows))
            table.fill(rows.columns, features, scratch)
            weights = np.ones(rows.n_rows) if rows.weights is None else rows.weights
            sums.fused[None] = (weights @ features.T)[None, :]

    def _weighted_sum(self, contraction: Contraction, arrays: Arrays, rows: Rows) -> Array:
        part = contraction.factors[0]
        if rows.weights is not None:
            key = contraction.factors[1].key
            arrays = {**arrays, key: arrays[key] * rows.weights}
        value = contraction.derivative(0)(arrays)
        assert isinstance(part.key, Part)
        return np.array(np.broadcast_to(value, part.key.shape), dtype=np.float64)

    def _row_arrays(self, rows: Rows) -> Arrays:
        """Return the features that the terms which are not fused need, unpacked: (shape..., B)."""
        arrays: Arrays = {}
        for local in self.compiled.local_terms:
            for factor in local.contraction.factors[1:]:
                if not isinstance(factor.key, tuple) and factor.key not in arrays:
                    feature = factor.key
                    arrays[feature] = feature.of_rows(_column(rows, feature))  # type: ignore[union-attr]
        return arrays

    def summary(self, sums: Sums, static: Sums, coefficients: Coefficients) -> Summary:
        """Return the reduced sums of a pass in the shapes that the global terms expect."""
        fused = {**static.fused, **sums.fused}
        parts: Arrays = {**static.parts, **sums.parts}
        for part in self.compiled.parts:
            if part.feature is None:
                continue
            table = self.compiled.tables[part.factor]
            columns = dict(zip((f.key for f in table.features), table.slices, strict=True))[part.feature.key]
            stat_rows = slice(0, 1) if part.factor is None else part.factor.rows[part.stat]  # type: ignore[index]
            full = part.feature.unpack(fused[part.factor][stat_rows, columns])
            parts[part] = full.reshape(part.shape)
        entropies = {}
        for factor in self.factors:
            inner = sums.inner.get(factor)
            if inner is None and factor in sums.log_partition:
                inner = float(np.vdot(coefficients.matrices[factor], sums.fused[factor]))
            if inner is not None:
                entropies[factor] = sums.log_partition[factor] - inner
        return Summary(parts, entropies)


def _column(rows: Rows, feature: Any) -> AnyArray:
    return np.ones(rows.n_rows) if feature.source is None else rows.columns[feature.source.name]


def _base_contractions(variable: Variable, binding: Binding) -> list[Contraction]:
    contractions = []
    for term in base_terms_of(variable):
        factors = [Factor((op.node, op.statistic), op.axes) for op in term.operands]
        contractions.append(Contraction(term.coefficient, factors, [], term.axes, binding.size))
    return contractions


def _messages(compiled: Compiled) -> list[tuple[Any, Derivative, Part, list[Any]]]:
    """Return for each local operand of a term that is not fused: its key, the message to it, and what that needs."""
    messages = []
    for local in compiled.local_terms:
        keys = [factor.key for factor in local.contraction.factors]
        for position, key in enumerate(keys):
            if isinstance(key, tuple):
                needs = [other for other in keys if isinstance(other, tuple) and other is not key]
                messages.append((key, local.contraction.derivative(position), local.part, needs))
    return messages
