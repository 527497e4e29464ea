"""One pass over a block of rows: local factors at their optimum, and the sums that the globals need."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence, Set
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..._typing import Array
from ..compiled.compiler import Compiled, GlobalTerm, LocalTerm
from ..compiled.contraction import Derivative
from ..design.backend import Workspace
from ..design.centred import Centres
from ..design.dense import block_rows
from ..design.features import Feature
from ..design.keys import FactorKey, StatisticKey, SumKey
from ..design.lookups import add_tallied, tally
from ..local.categorical import CategoricalFactor
from ..local.chain import ChainFactor, chain_of
from ..local.family import FamilyFactor
from ..local.local_factor import LocalFactor
from ..local.missing_patterns import MissingPatterns
from ..local.statistics import Arrays, Coefficients, LocalState, Rows, Summary, Sums

__all__ = ["IndependentRows"]


_UNFUSED_ROWS = 1024
"""Rows of a block for a model whose terms are not fused into matrix products."""

_MOST_COMBINATIONS = 64
"""Combinations of labels of a row that are tried before local factors are brought to their optimum one by one."""

_NEVER = 1e100
"""Nats that a known probability of zero costs a combination of labels."""

_COLD_SWEEPS = 50
"""Sweeps over local factors that depend on each other, where no pass before has left them; they contract quickly."""


class IndependentRows:
    """What a compiled model does with a block of rows.

    Parameters
    ----------
    compiled
        The model.
    factors
        Its local factors, in the order of their updates.
    centres
        Reference points of their own that categories of a local Categorical have.
    partial
        Leaves of vectors missing in part, by the local factor whose features they are.
    """

    begins_anew = False

    def __init__(
        self,
        compiled: Compiled,
        factors: Sequence[LocalFactor],
        centres: Mapping[LocalFactor, list[Centres]],
        partial: Mapping[LocalFactor, list[MissingPatterns]],
    ) -> None:
        self.compiled = compiled
        self.factors = tuple(factors)
        self.chain: ChainFactor | None = chain_of(self.factors)
        self.centres = centres
        self.partial = partial
        self._summed: set[Hashable] = {
            StatisticKey(v.name, s) for factor in self.factors for v in factor.variables for s in v.summed
        }
        self._factor_of = {key: factor for factor in self.factors for key in factor.rows}
        self._messages, self._zero_messages = _messages(compiled, self._factor_of)
        # the coefficient of a part without local variables is of no use to the rows; centres ask it for the precision
        needed: set[Hashable] = {
            key for key, part in compiled.parts.items() if part.factor is not None or any(centres.values())
        }
        needed |= self.parts_of_messages
        self._part_derivatives = _derivatives(compiled.terms if needed else (), needed)
        self._zero_derivatives = _derivatives(compiled.zero_terms, needed)
        self._products = {factor: _rows_in_product(compiled, factor) for factor in self.factors}
        self._explicit = {message.factor for message in self._messages}
        self.keeps_locals = any(message.needs for message in (*self._messages, *self._zero_messages))
        """Whether local factors depend on each other, so that a pass must start from the last one's."""
        self.is_fused = all(local.is_static for local in compiled.local_terms)
        """Whether a local factor meets the rows in its matrix product alone."""
        self._fused = [
            (part, compiled.tables[part.factor].columns[part.feature.key])
            for part in compiled.parts.values()
            if part.feature is not None
        ]
        self._in_matrix = {
            factor.key: [(part, columns) for part, columns in self._fused if part.factor is factor]
            for factor in self.factors
        }
        self._shared = {factor for factor in self.factors if self._shares_precision(factor)}

    def __getstate__(self) -> dict[str, object]:
        """Return what a block of rows needs of it: nothing of the globals, nor of the data of other rows."""
        compiled = replace(self.compiled, terms=(), zero_terms=(), sources={}, users={})
        return {**vars(self), "compiled": compiled, "_part_derivatives": [], "_zero_derivatives": []}

    @property
    def parts_of_messages(self) -> set[Hashable]:
        """The keys of the coefficients that a block of rows needs besides the matrices."""
        return {message.sum for message in (*self._messages, *self._zero_messages)} | self._summed

    def _shares_precision(self, factor: LocalFactor) -> bool:
        """Whether all that a factor's second moments meet is the number 1: its precision is the same for all rows."""
        n_product, constant = self._products[factor]
        rest = [key for key, rows in factor.rows.items() if rows.start >= n_product]
        return (
            isinstance(factor, FamilyFactor)
            and constant is not None
            and not factor.has_unseen
            and factor not in self._explicit
            and 0 < n_product < factor.n_rows
            and all(
                len(variable.letters[key.statistic]) == 2 for variable in factor.variables for key in rest
            )
        )

    @property
    def block_rows(self) -> int:
        """Rows of a block; depends on the model alone, so that sums are the same bits whatever executes them."""
        sizes = [
            block_rows(1 if factor is None else factor.n_rows, table.n_dense, table.n_rows - table.n_dense)
            for factor, table in self.compiled.tables.items()
        ]
        sizes += [own.block_rows for several in self.partial.values() for own in several]
        wide = [feature.n_rows for feature in self._row_features() if feature.is_sparse]
        sizes += [block_rows(1, n_columns) for n_columns in wide]
        return min(sizes, default=_UNFUSED_ROWS)

    @property
    def buffer_rows(self) -> int:
        """Numbers of each row of a block that a pass holds in its buffers, about."""
        tables = self.compiled.tables
        return sum(3 * f.n_rows + (tables[f].n_dense if f in tables else 0) for f in self.factors)

    @property
    def has_centres(self) -> bool:
        """Whether some category is measured from a point of its own."""
        return any(self._used_centres(factor) for factor in self.factors)

    @property
    def operations_a_row(self) -> float:
        """Operations of the matrix products for one row: two products, each a multiplication and an addition."""
        tables = self.compiled.tables.items()
        return sum(4.0 * factor.n_rows * table.n_dense for factor, table in tables if factor is not None)

    @property
    def n_sums(self) -> int:
        """Numbers that the sums over rows consist of: one for each statistic of a local factor and each feature."""
        tables = self.compiled.tables.items()
        fused = sum(factor.n_rows * table.n_rows for factor, table in tables if factor is not None)
        return fused + sum(
            math.prod(part.shape) for part in self.compiled.parts.values() if part.feature is None
        )

    def _used_centres(self, factor: LocalFactor) -> list[Centres]:
        return [centres for centres in self.centres.get(factor, ()) if centres.is_used]

    def coefficients(self, arrays: Mapping[Hashable, Array]) -> Coefficients:
        """Return what the rows need of the globals."""
        parts = _summed(self._part_derivatives, arrays)
        return Coefficients(self.matrices(parts), parts, self._zeros(parts, arrays))

    def _zeros(self, parts: Arrays, arrays: Mapping[Hashable, Array]) -> Coefficients | None:
        """Return the coefficients of what counts zeros; the steps of a chain that are zero are written to ``parts``."""
        if not self._zero_derivatives:
            return None
        zeros = _summed(self._zero_derivatives, arrays)
        for key in self._summed & zeros.keys():
            parts[key] = np.where(zeros.pop(key) > 0, -np.inf, parts[key])
        return Coefficients(self.matrices(zeros), zeros)

    def matrices(self, parts: Arrays) -> dict[FactorKey, Array]:
        """Return the matrix W of each local factor that meets features of the data."""
        tables = self.compiled.tables
        return {factor.key: self._matrix(factor, parts) for factor in self.factors if factor in tables}

    def starting_coefficients(self, arrays: Mapping[Hashable, Array]) -> Coefficients:
        """Return what the rows need where the globals are not known yet: missing entries are as their columns."""
        coefficients = self.coefficients(arrays)
        for own in (own for several in self.partial.values() for own in several):
            coefficients = own.at_columns(coefficients)
        return coefficients

    def _matrix(self, factor: LocalFactor, parts: Arrays) -> Array:
        table = self.compiled.tables[factor]
        matrix = np.zeros((factor.n_rows, table.n_rows))
        for part, columns in self._in_matrix[factor.key]:
            value = parts.get(part.key)
            if value is not None:
                assert part.feature is not None
                full = value if value.shape == part.shape else np.broadcast_to(value, part.shape)
                full = full.reshape(-1, *part.feature.shape)
                matrix[part.rows, columns] = part.feature.pack(full)
        return matrix

    def summarize(
        self,
        rows: Rows,
        coefficients: Coefficients,
        before: LocalState,
        scratch: Workspace,
        given: LocalState | None = None,
    ) -> tuple[Sums, LocalState]:
        """Return the sums over a block with the local factors at their optimum, and these factors' statistics.

        The sums are valid until the thread's next block: they live in its scratch.

        Parameters
        ----------
        before
            Local statistics from the last pass; needed only where local factors depend on each other.
        given
            Local statistics (E, B) of factors that are inferred elsewhere, to be overwritten.
        """
        sums = Sums.zero()
        data = {} if self.is_fused else self.row_arrays(rows)
        state: LocalState = dict(before)
        if self.keeps_locals and not state:
            self._settle(rows, coefficients, state, data, scratch)
        for factor in self.factors:
            if given is not None and factor.key in given:
                state[factor.key] = given[factor.key]
                self._features(factor, rows, scratch)
            elif isinstance(factor, FamilyFactor) and factor in self._shared:
                self._infer_shared(factor, rows, coefficients, state, sums, scratch)
            else:
                self._infer(factor, rows, coefficients, state, data, sums, scratch)
        self._sum_rows(rows, state, data, coefficients, sums, scratch)
        return sums, state if self.keeps_locals else {}

    def sums_of(self, rows: Rows, state: LocalState, coefficients: Coefficients, scratch: Workspace) -> Sums:
        """Return the sums over a block of rows for given local statistics; their entropies count as zero.

        Only missing entries of vectors depend on the coefficients, and have an entropy.
        """
        sums = Sums({}, {}, {}, {factor.key: 0.0 for factor in self.factors})
        for factor in self.factors:
            self._features(factor, rows, scratch)
        self._sum_rows(rows, state, self.row_arrays(rows), coefficients, sums, scratch)
        return sums

    def _features(self, factor: LocalFactor, rows: Rows, scratch: Workspace) -> Array | None:
        """Return the features of a factor's matrix product, made anew; None if it has none."""
        table = self.compiled.tables.get(factor)
        if table is None:
            return None
        features = scratch.array((factor, "table"), (table.n_dense, rows.n_rows))
        scratch.backend.fill(table, rows.columns, features, scratch)
        return features

    def natural_of(
        self, factor: LocalFactor, rows: Rows, coefficients: Coefficients, scratch: Workspace
    ) -> Array:
        """Return the natural parameters (E, B) of a factor that no other depends on; they live in the scratch."""
        data = {} if self.is_fused else self.row_arrays(rows)
        return self._natural(factor, rows, coefficients, {}, data, scratch)

    def infer(
        self, rows: Rows, coefficients: Coefficients, scratch: Workspace, given: LocalState | None = None
    ) -> LocalState:
        """Return the natural parameters of every local factor for a block of rows: (E, B) each.

        Parameters
        ----------
        given
            Statistics (E, B) of factors that stay at these, and are left out of what is returned.
        """
        return self._settle(rows, coefficients, dict(given or {}), self.row_arrays(rows), scratch)

    def _settle(
        self, rows: Rows, coefficients: Coefficients, state: LocalState, data: Arrays, scratch: Workspace
    ) -> LocalState:
        """Return the natural parameters of every local factor that is not in the state, and fill it with these."""
        natural: LocalState = {}
        unknown = [factor for factor in self.factors if factor.key not in state]
        state.update(self._best_labels(unknown, rows, coefficients, state, data, scratch))
        for _ in range(_COLD_SWEEPS if self.keeps_locals else 1):
            for factor in unknown:
                own = self._natural(factor, rows, coefficients, state, data, scratch).copy()
                natural[factor.key], state[factor.key] = own, own.copy()
                factor.infer(state[factor.key])
        return natural

    def _best_labels(
        self,
        unknown: Sequence[LocalFactor],
        rows: Rows,
        coefficients: Coefficients,
        given: LocalState,
        data: Arrays,
        scratch: Workspace,
    ) -> LocalState:
        """Return labels of a row that depend on each other, at their most probable combination; none where few do.

        Each factor by itself, the first one without the others, would be caught where two labels are wrong together.
        A combination is scored by the natural parameters of each factor given those before it.
        """
        coupled = [factor for factor in unknown if self._is_coupled_label(factor)]
        sizes = [factor.n_rows for factor in coupled]
        if len(coupled) < 2 or np.prod(np.array(sizes, dtype=float)) > _MOST_COMBINATIONS:
            return {}
        best = np.full(rows.n_rows, -np.inf)
        labels = np.zeros((len(coupled), rows.n_rows), dtype=np.intp)

        def visit(chosen: list[int], state: LocalState, score: Array) -> None:
            nonlocal best
            own = coupled[len(chosen)]
            natural = self._natural(own, rows, coefficients, state, data, scratch).copy()
            if coefficients.zeros is not None:
                features = self._features(own, rows, scratch)
                natural -= _NEVER * self._zeros_met(
                    own, coefficients.zeros, features, rows, state, data, scratch
                )
            if len(chosen) + 1 < len(coupled):
                for label in range(own.n_rows):
                    point = np.zeros((own.n_rows, rows.n_rows))
                    point[label] = 1.0
                    visit([*chosen, label], {**state, own.key: point}, score + natural[label])
                return
            last = natural.argmax(axis=0)
            total = score + natural.max(axis=0)
            is_better = total > best
            labels[:, is_better] = np.vstack([*(np.full(len(last), c) for c in chosen), last])[:, is_better]
            best = np.where(is_better, total, best)

        visit([], given, np.zeros(rows.n_rows))
        return {
            factor.key: (np.arange(factor.n_rows)[:, None] == own).astype(np.float64)
            for factor, own in zip(coupled, labels, strict=True)
        }

    def _is_coupled_label(self, factor: LocalFactor) -> bool:
        """Whether a factor is that of one label a row, and depends on another local factor."""
        return (
            isinstance(factor, CategoricalFactor)
            and len(factor.variables[0].plates) == 1
            and any(message.factor is factor and message.needs for message in self._messages)
        )

    def _natural(
        self,
        factor: LocalFactor,
        rows: Rows,
        coefficients: Coefficients,
        state: LocalState,
        data: Arrays,
        scratch: Workspace,
    ) -> Array:
        natural = scratch.array((factor, "natural"), (factor.n_rows, rows.n_rows))
        features = self._features(factor, rows, scratch)
        if features is None:
            natural.fill(0.0)
        else:
            matrix = coefficients.matrices[factor.key]
            centres = self._used_centres(factor)
            shared = matrix
            for own in centres:
                shared = own.mask(shared, scratch)
            n_product, constant = self._products[factor]
            product = slice(0, n_product)
            self._project(factor, shared[product, ...], features, rows, natural[product, ...], scratch)
            if n_product < factor.n_rows:
                natural[n_product:] = 0.0 if constant is None else shared[n_product:, constant, None]
            for own in centres:
                own.add_natural(matrix, rows.columns, natural, scratch)
            for vectors in self.partial.get(factor, ()):
                vectors.add_natural(coefficients, rows, features, centres, natural, scratch)
        _add_messages(self._messages, factor, natural, coefficients, state, data)
        zeros = None
        if coefficients.zeros is not None and factor.label is not None:
            zeros = self._zeros_met(factor, coefficients.zeros, features, rows, state, data, scratch)
        factor.restrict(natural, rows.columns, zeros)
        return natural

    def zeros_of(self, factor: LocalFactor, zeros: Coefficients, rows: Rows, scratch: Workspace) -> Array:
        """Return how many known probabilities of zero each statistic meets, whatever other local variables are."""
        data = {} if self.is_fused else self.row_arrays(rows)
        return self._zeros_met(factor, zeros, self._features(factor, rows, scratch), rows, {}, data, scratch)

    def _zeros_met(
        self,
        factor: LocalFactor,
        zeros: Coefficients,
        features: Array | None,
        rows: Rows,
        state: LocalState,
        data: Arrays,
        scratch: Workspace,
    ) -> Array:
        """Return how many known probabilities of zero each statistic of a factor meets, (E, B), in the scratch."""
        met = scratch.array((factor, "zeros"), (factor.n_rows, rows.n_rows))
        if features is None:
            met.fill(0.0)
        else:
            self._project(factor, zeros.matrices[factor.key], features, rows, met, scratch)
        _add_messages(self._zero_messages, factor, met, zeros, state, data)
        return met

    def _infer(
        self,
        factor: LocalFactor,
        rows: Rows,
        coefficients: Coefficients,
        state: LocalState,
        data: Arrays,
        sums: Sums,
        scratch: Workspace,
    ) -> None:
        expected = self._natural(factor, rows, coefficients, state, data, scratch)
        natural = expected.copy() if factor in self._explicit else None
        inferred = scratch.backend.infer(factor, expected)
        entropy, seen = inferred.entropy, factor.seen(rows.columns)
        if entropy is None and natural is not None:
            shape = (*inferred.log_partition.shape[:-1], -1, rows.n_rows)
            # what is excluded has the natural parameter minus infinity, and counts nothing
            inner = np.multiply(natural, expected, out=np.zeros_like(natural), where=expected != 0)
            entropy = inferred.log_partition - inner.reshape(shape).sum(axis=-2)
        if entropy is None:
            sums.log_partition[factor.key] = scratch.backend.weighted(
                inferred.log_partition, rows.weights, seen
            )
        else:
            sums.entropy[factor.key] = scratch.backend.weighted(entropy, rows.weights, seen)
        state[factor.key] = expected.copy() if self.keeps_locals else expected

    def _infer_shared(
        self,
        factor: FamilyFactor,
        rows: Rows,
        coefficients: Coefficients,
        state: LocalState,
        sums: Sums,
        scratch: Workspace,
    ) -> None:
        """Infer a factor whose precision is the same for all rows: of its second moments only the sum is made."""
        matrix, table = coefficients.matrices[factor.key], self.compiled.tables[factor]
        n_product, constant = self._products[factor]
        natural = scratch.array((factor, "natural"), (n_product, rows.n_rows))
        self._project(
            factor, matrix[:n_product], self._features(factor, rows, scratch), rows, natural, scratch
        )
        entropy, rest = factor.infer_shared(natural, matrix[n_product:, constant], rows.weights)
        sums.entropy[factor.key] = scratch.backend.weighted(entropy, rows.weights)
        state[factor.key] = natural
        total = scratch.array((factor, "all sums"), (factor.n_rows, table.n_rows))
        total[n_product:] = 0.0
        total[n_product:, constant] = rest

    def _project(
        self,
        factor: LocalFactor,
        matrix: Array,
        features: Array | None,
        rows: Rows,
        out: Array,
        scratch: Workspace,
    ) -> None:
        """Write ``matrix @ T`` for a block of rows."""
        table = self.compiled.tables[factor]
        assert features is not None
        scratch.backend.project(matrix[:, : table.n_dense], features, out)
        for feature, columns in table.tallied:
            add_tallied(feature, matrix[:, columns], rows.columns, out, scratch)

    def _sum_rows(
        self,
        rows: Rows,
        state: LocalState,
        data: Arrays,
        coefficients: Coefficients,
        sums: Sums,
        scratch: Workspace,
    ) -> None:
        state = {
            own.key: own.counted(state[own.key], rows.columns) for own in self.factors if own.key in state
        }
        for local in self.compiled.local_terms:
            if not local.is_static:
                arrays = dict(data)
                for key in local.part.key.local:
                    owner = self._factor_of[key]
                    arrays[key] = owner.view(state[owner.key], key)
                sums.parts[local.part.key] = self._weighted_sum(local, arrays, rows)
        for factor in self.factors:
            table = self.compiled.tables.get(factor)
            if table is None:
                continue
            expected = state[factor.key]
            if rows.weights is not None:
                if self.keeps_locals:
                    expected = expected * rows.weights
                else:
                    expected *= rows.weights
            features = scratch.array((factor, "table"), (table.n_dense, rows.n_rows))
            total = self._sums(factor, expected, features, rows, scratch)
            centres = self._used_centres(factor)
            for own in centres:
                own.replace_sums(expected, rows.columns, total, scratch)
            for vectors in self.partial.get(factor, ()):
                entropy = vectors.add_sums(coefficients, rows, features, centres, expected, total, scratch)
                # a log-partition has it already
                if factor.key not in sums.log_partition:
                    sums.entropy[factor.key] = sums.entropy.get(factor.key, 0.0) + entropy
            sums.fused[factor.key] = total

    def _sums(
        self, factor: LocalFactor, expected: Array, features: Array, rows: Rows, scratch: Workspace
    ) -> Array:
        """Return ``expected @ T'``, (E, F), of which only what the terms need is computed.

        Where ``expected`` has the leading statistics only, the sums of the others are there; see :meth:`_infer_shared`.
        """
        table = self.compiled.tables[factor]
        n_product, constant = self._products[factor]
        if n_product == factor.n_rows and not table.tallied:
            return scratch.backend.accumulate(expected, features, scratch, factor)
        total = scratch.array((factor, "all sums"), (factor.n_rows, table.n_rows))
        if n_product and table.n_dense:
            total[:n_product, : table.n_dense] = scratch.backend.accumulate(
                expected[:n_product], features, scratch, factor
            )
        for feature, columns in table.tallied:
            tally(feature, expected[:n_product], rows.columns, total[:n_product, columns])
        if len(expected) == factor.n_rows:
            total[n_product:] = 0.0
            if constant is not None:
                np.add.reduce(expected[n_product:], axis=1, out=total[n_product:, constant])
        return total

    @property
    def has_static(self) -> bool:
        """Whether there are parts without local variables: sums that never change."""
        return None in self.compiled.tables or any(term.is_static for term in self.compiled.local_terms)

    def sum_static(self, rows: Rows, scratch: Workspace) -> Sums:
        """Return the sums over a block that no factor enters."""
        sums = Sums.zero()
        data = self.row_arrays(rows)
        for local in self.compiled.local_terms:
            if local.is_static:
                sums.parts[local.part.key] = self._weighted_sum(local, data, rows)
        table = self.compiled.tables.get(None)
        if table is not None:
            features = scratch.array((None, "table"), (table.n_dense, rows.n_rows))
            table.fill(rows.columns, features, scratch)
            weights = np.ones(rows.n_rows) if rows.weights is None else rows.weights
            sums.fused[""] = np.empty((1, table.n_rows))
            sums.fused[""][0, : table.n_dense] = weights @ features.T
            for feature, columns in table.tallied:
                tally(feature, weights[None, :], rows.columns, sums.fused[""][:, columns])
        return sums

    def _weighted_sum(self, local: LocalTerm, arrays: Arrays, rows: Rows) -> Array:
        if rows.weights is not None:
            key = local.contraction.factors[1].key
            arrays = {**arrays, key: arrays[key] * rows.weights}
        value, shape = local.contraction.derivative(0)(arrays), local.part.shape
        if local.sparse is None:
            return np.array(np.broadcast_to(value, shape), dtype=np.float64)
        each = np.broadcast_to(value, (*shape[:-1], rows.n_rows)).reshape(-1, rows.n_rows)
        total = np.empty((len(each), shape[-1]))
        tally(local.sparse, each, rows.columns, total)
        return total.reshape(shape)

    def row_arrays(self, rows: Rows) -> Arrays:
        """Return the features that the terms which are not fused need, unpacked: (shape..., B)."""
        return {f.key: f.of_block(rows.columns, rows.n_rows) for f in self._row_features()}

    def _row_features(self) -> list[Feature]:
        """Return the features that the terms which are not fused need, each once."""
        return list({f.key: f for local in self.compiled.local_terms for f in local.features}.values())

    def summary(self, sums: Sums, static: Sums, coefficients: Coefficients) -> Summary:
        """Return the reduced sums of a pass in the shapes that the global terms expect."""
        fused = {**static.fused, **sums.fused}
        parts: Arrays = {**static.parts, **sums.parts}
        for part, columns in self._fused:
            assert part.feature is not None
            of_factor = fused["" if part.factor is None else part.factor.key]
            full = part.feature.unpack(of_factor[part.rows, columns])
            parts[part.key] = full.reshape(part.shape)
        return Summary(parts, self.with_entropies(sums, coefficients).entropy)

    def with_entropies(self, sums: Sums, coefficients: Coefficients) -> Sums:
        """Return sums with entropies in the place of log-partitions, which were made with these coefficients."""
        entropies = dict(sums.entropy)
        for key, log_partition in sums.log_partition.items():
            entropies[key] = log_partition - float(np.vdot(coefficients.matrices[key], sums.fused[key]))
        return Sums(sums.fused, sums.parts, {}, entropies)


def _rows_in_product(compiled: Compiled, factor: LocalFactor) -> tuple[int, int | None]:
    """Return how many leading statistics of a factor meet features of the data, and the place of the feature 1, if any.

    The statistics after them, as the second moments of the factors of a linear model, only meet the feature 1.
    """
    table = compiled.tables.get(factor)
    if table is None:
        return 0, None
    constant = next(
        (r.start for f, r in zip(table.features, table.slices, strict=True) if f.source is None), None
    )
    if constant is None:
        return factor.n_rows, None
    meeting = [
        part.rows.stop
        for part in compiled.parts.values()
        if part.factor is factor and part.feature is not None and part.feature.source is not None
    ]
    return max(meeting, default=0), constant


class _Message(NamedTuple):
    """What a term that is not fused says to a local operand.

    Attributes
    ----------
    factor, key
        To whom: the local factor, and which of its statistics.
    derivative
        What is said.
    sum
        Key of the term's sum, and so of its coefficient.
    needs
        The other local operands: their factors and statistics.
    """

    factor: LocalFactor
    key: StatisticKey
    derivative: Derivative
    sum: SumKey
    needs: list[tuple[LocalFactor, StatisticKey]]


def _messages(
    compiled: Compiled, factor_of: Mapping[StatisticKey, LocalFactor]
) -> tuple[list[_Message], list[_Message]]:
    """Return the messages to local operands of terms that are not fused, and those of terms that count zeros."""
    of_zeros = {key for term in compiled.zero_terms for key in term.contraction.keys}
    messages: tuple[list[_Message], list[_Message]] = ([], [])
    for local in compiled.local_terms:
        key = local.part.key
        for position, own in enumerate(local.contraction.keys):
            if isinstance(own, StatisticKey):
                needs = [(factor_of[other], other) for other in key.local if other != own]
                derivative = local.contraction.derivative(position)
                messages[key in of_zeros].append(_Message(factor_of[own], own, derivative, key, needs))
    return messages


def _add_messages(
    messages: Sequence[_Message],
    factor: LocalFactor,
    natural: Array,
    coefficients: Coefficients,
    state: LocalState,
    data: Arrays,
) -> None:
    """Add to natural parameters (E, B) of a factor what terms that are not fused say to it."""
    for owner, key, derivative, of_sum, needs in messages:
        if owner is not factor or of_sum not in coefficients.parts:
            continue
        if all(other.key in state for other, _ in needs):
            arrays = {of_sum: coefficients.parts[of_sum], **data}
            arrays |= {need: other.view(state[other.key], need) for other, need in needs}
            factor.view(natural, key)[...] += derivative(arrays)


def _derivatives(terms: Sequence[GlobalTerm], wanted: Set[Hashable]) -> list[tuple[Hashable, Derivative]]:
    """Return the derivatives of terms with respect to the operands that are wanted."""
    return [
        (key, term.contraction.derivative(position))
        for term in terms
        for position, key in enumerate(term.contraction.keys)
        if key in wanted
    ]


def _summed(derivatives: Sequence[tuple[Hashable, Derivative]], arrays: Mapping[Hashable, Array]) -> Arrays:
    """Return the sum of the derivatives with respect to each operand."""
    found: Arrays = {}
    for key, derivative in derivatives:
        value, before = derivative(arrays), found.get(key)
        found[key] = value if before is None else before + value
    return found
