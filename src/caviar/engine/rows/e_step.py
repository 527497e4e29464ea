"""One pass over a block of rows: local factors at their optimum, and the sums that the globals need."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence, Set
from dataclasses import replace

import numpy as np

from ..._typing import Array
from ...numerics.cached import cached_property
from ..compiled.terms import Compiled, GlobalTerm
from ..design.backend import Workspace, block_rows
from ..design.contraction import Evaluation
from ..design.features import FeatureTable
from ..design.keys import ColumnKey, FactorKey, StatisticKey
from ..local.categorical import CategoricalFactor
from ..local.chains.chain import chains_of
from ..local.local_factor import LocalFactor
from ..local.statistics import Arrays, Coefficients, LocalState, Rows, Summary, Sums
from .apart import COLD_SWEEPS, settled
from .inference import inference_of
from .row_model import OWN, FactorsApart, RowModel
from .terms.block_response import BlockResponse
from .terms.centred import Centres
from .terms.curvature import Products, curvature, n_pairs, pairs_of, products_of, whole_curvature
from .terms.kinds import contracted_terms, matrix_terms
from .terms.missing_patterns import MissingPatterns
from .terms.products import layouts_of
from .terms.row_term import BlockWork, FactorOfRows, RowTerm

_UNFUSED_ROWS = 1024
"""Rows of a block for a model whose terms are not matrix products."""

_THOROUGH_SWEEPS = 2000
"""Largest number of sweeps if sequences must be at their optimum."""

_MOST_MULTIPLIED = 2_000
"""Features up to which the products of two of them are counted."""


class IndependentRows(RowModel):
    """What a compiled model does with a block of rows.

    Parameters
    ----------
    compiled
        The model.
    factors
        Its local factors, in the order of their updates.
    centres
        Separate reference points of categories of a local Categorical.
    partial
        Leaves of vectors missing in part, by the local factor whose features they are.
    """

    most_sweeps = COLD_SWEEPS

    def __init__(
        self,
        compiled: Compiled,
        factors: Sequence[LocalFactor],
        centres: Mapping[LocalFactor, Sequence[Centres]],
        partial: Mapping[LocalFactor, Sequence[MissingPatterns]],
    ) -> None:
        self.compiled, self.factors = compiled, tuple(factors)
        self.chains = chains_of(self.factors)
        self.tables = {own: compiled.tables[own] for own in self.factors if own in compiled.tables}
        self.partial = partial
        self.entries = [ColumnKey(own.leaf.name).entries for several in partial.values() for own in several]
        used = {factor: [own for own in several if own.is_used] for factor, several in centres.items()}
        self.has_centres = any(used.values())
        self._layouts = layouts_of(compiled.tables, compiled.parts.values(), compiled.facts)
        factor_of = {key: factor for factor in self.factors for key in factor.rows}
        contracted = contracted_terms(compiled.local_terms, factor_of)
        self._contracted = [term for term in contracted if OWN not in term.targets]
        self._inferences: list[FactorOfRows] = []
        self._products: list[RowTerm] = []
        for factor in self.factors:
            layout = self._layouts.get(factor.key)
            products = matrix_terms(layout, (*used.get(factor, ()), *partial.get(factor, ())))
            own = [term for term in self._contracted if factor.key in term.targets]
            self._inferences.append(inference_of(factor, layout, products, own))
            self._products += products
        self.static_terms = [
            *matrix_terms(self._layouts.get(OWN)),
            *(term for term in contracted if OWN in term.targets),
        ]
        # a list takes fewer calls than a generator
        self.keeps_locals = True in [own.couples for own in (*self._contracted, *self.factors)]
        self.apart = FactorsApart(self._inferences, self._products, self._contracted)
        self._summed: set[Hashable] = {
            StatisticKey(v.name, s) for factor in self.factors for v in factor.variables for s in v.summed
        }
        # the coefficient of a part without local variables is of no use to the rows; centres ask it for the precision
        several = any(centres.values())
        needed: set[Hashable] = {k for k, part in compiled.parts.items() if several or part.factor}
        self.parts_of_messages = self._summed.union(*(term.keys for term in self._contracted))
        needed |= self.parts_of_messages
        self._part_derivatives = _derivatives(compiled, compiled.terms, needed) if needed else []
        self._zero_derivatives = _derivatives(compiled, compiled.zero_terms, needed)
        self._block_rows = self._rows_of_a_block({} if any(partial.values()) else compiled.facts)
        self.maximises = all(own.family.is_convex for factor in self.factors for own in factor.variables)

    def __getstate__(self) -> dict[str, object]:
        """Return what a block of rows needs of it: nothing of the globals, nor of the data of other rows."""
        compiled = replace(self.compiled, terms=(), zero_terms=(), sources={}, users={}, layouts={}, facts={})
        return {**vars(self), "compiled": compiled, "_part_derivatives": [], "_zero_derivatives": []}

    @property
    def is_fused(self) -> bool:
        """Whether local factors meet the rows in matrix products alone."""
        return not self._contracted

    @property
    def block_rows(self) -> int:
        """Rows of a block; it depends only on the model, so sums have the same bits on every executor."""
        return self._block_rows

    def _rows_of_a_block(self, facts: dict[Hashable, int]) -> int:
        if "rows of a block" not in facts:
            facts["rows of a block"] = self._fewest_rows()
        return facts["rows of a block"]

    def _fewest_rows(self) -> int:
        tables = self.compiled.tables.items()
        n_categories = max((table.n_rows - table.n_dense for _, table in tables), default=0)
        sizes = [
            block_rows(1 if factor is None else factor.n_rows, table.n_dense, n_categories)
            for factor, table in tables
        ]
        sizes += [own.block_rows for several in self.partial.values() for own in several]
        features = (feature for local in self.compiled.local_terms for feature in local.features)
        sizes += [block_rows(1, feature.n_rows) for feature in features if feature.is_sparse]
        return min(sizes, default=_UNFUSED_ROWS)

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

    def thorough(self) -> IndependentRows:
        """Return the model whose first passes sweep until the local factors are at their optimum."""
        if not (self.chains and self.keeps_locals):
            return self
        # copy() would leave out what a model that is sent does without
        other = type(self).__new__(type(self))
        vars(other).update(vars(self), most_sweeps=_THOROUGH_SWEEPS)
        return other

    def why_inexact(self) -> str:
        """Return why local variables cannot be integrated out exactly given the globals; nothing if they can."""
        if not self.keeps_locals:
            return ""
        names = " and ".join(f"'{factor.name}'" for factor in self.factors)
        return (
            f"the local variables {names} depend on each other given the globals and have a factor each, so they "
            f"cannot be integrated out exactly"
        )

    def why_not_on_a_device(self) -> str:
        """Return why no passes can be made on a device, which are matrix products; nothing if they can."""
        if not self.factors:
            return "this model has no local variable, so that a fit passes over the rows once"
        if self.keeps_locals:
            return "some local variables of this model depend on each other"
        if self.compiled.zero_terms:
            owner = self.compiled.zero_terms[0].owner
            return f"a known probability in the density of '{owner.name}' is zero"
        reason = next(filter(None, map(self._why_no_product, self.factors)), "")
        if not reason and not self.is_fused:
            return "in some term a local variable meets the data otherwise than in a matrix product"
        return reason

    def _why_no_product(self, factor: LocalFactor) -> str:
        """Return why a local factor is not inferred from a matrix product alone; nothing if it is."""
        name = f"'{factor.name}'"
        if self.partial.get(factor):
            return f"vectors of the data are missing in part, and {name} has a factor together with them"
        if type(factor) is not CategoricalFactor:
            kinds = " and ".join(type(variable).__name__ for variable in factor.variables)
            return f"{name} is not a Categorical by itself, but a factor of {kinds}"
        if factor.labelled:
            return f"labels of {name} are known in part"
        if factor.has_unseen:
            return f"{name} has repetitions with nothing observed below them"
        table = self.tables.get(factor)
        if table is None:
            return f"nothing observed depends on {name} alone"
        for feature, _ in table.tallied:
            source = "" if feature.source is None else feature.source.node.name
            if feature.is_sparse:
                return f"the data of '{source}' are a sparse matrix"
            return f"'{source}' has {feature.n_labels} categories, which are looked up by label, not multiplied out"
        return ""

    def coefficients(self, arrays: Mapping[Hashable, Array]) -> Coefficients:
        """Return what the rows need of the globals."""
        parts = _summed(self._part_derivatives, arrays)
        zeros = self._zeros(parts, arrays) if self._zero_derivatives else None
        return Coefficients(self.matrices(parts), parts, zeros)

    def _zeros(self, parts: Arrays, arrays: Mapping[Hashable, Array]) -> Coefficients:
        """Return the coefficients of what counts zeros; the steps of a chain that are zero are written to ``parts``."""
        zeros = _summed(self._zero_derivatives, arrays)
        for key in self._summed & zeros.keys():
            parts[key] = np.where(zeros.pop(key) > 0, -np.inf, parts[key])
        return Coefficients(self.matrices(zeros), zeros)

    def matrices(self, parts: Mapping[Hashable, Array]) -> dict[FactorKey, Array]:
        """Return the matrix W of each local factor that meets features of the data."""
        return {key: layout.packed(parts) for key, layout in self._layouts.items() if key != OWN}

    def starting_coefficients(self, arrays: Mapping[Hashable, Array]) -> Coefficients:
        """Return what sums of given local statistics need if the globals are not known yet.

        That is nothing, unless vectors have missing entries, which then look like their columns.
        """
        if not any(self.partial.values()):
            return Coefficients({}, {})
        coefficients = self.coefficients(arrays)
        for own in (own for several in self.partial.values() for own in several):
            coefficients = own.at_columns(coefficients)
        return coefficients

    def summarize(self, work: BlockWork, given: LocalState | None = None) -> tuple[Sums, LocalState]:
        """Return the sums over a block with the local factors at their optimum, and these factors' statistics.

        The sums are valid until the thread's next block: they live in its scratch.
        """
        sums, before = Sums.zero(), dict(work.state)
        if self.keeps_locals and not work.state:
            settled(self._inferences, work, self.keeps_locals)
        for own in self.apart.in_turn:
            if given is not None and own.factor.key in given:
                work.state[own.factor.key] = given[own.factor.key]
            else:
                own.infer(work, sums, keep=self.keeps_locals)
        self._sum_rows(work, sums)
        return sums, self.apart.left_by(work, before) if self.keeps_locals else {}

    def sums_of(self, work: BlockWork) -> Sums:
        """Return the sums over a block of rows for given local statistics; their entropies count as zero.

        Only missing entries of vectors depend on the coefficients, and have an entropy.
        """
        sums = Sums({}, {}, {}, {factor.key: 0.0 for factor in self.factors})
        self._sum_rows(work, sums)
        return sums

    def infer(self, work: BlockWork) -> LocalState:
        return settled(self._inferences, work, self.keeps_locals)

    def changed(self, parts: Arrays, coefficients: Coefficients) -> Coefficients:
        """Return changes of coefficients, zeros where there are none."""
        every = {key: parts.get(key, np.zeros_like(value)) for key, value in coefficients.parts.items()}
        return Coefficients(self.matrices(every), every)

    def respond(
        self,
        work: BlockWork,
        changes: Sequence[Coefficients],
        given: Mapping[FactorKey, Sequence[Array]] | None = None,
    ) -> Sums:
        if self.keeps_locals and not work.state:
            settled(self._inferences, work, self.keeps_locals)
        return BlockResponse(self._inferences, self._products, self._contracted).sums(work, changes, given)

    @property
    def is_dense(self) -> bool:
        """Whether each local factor depends on the rows, and is summed, in one dense matrix product alone."""
        tables = self.compiled.tables
        return (
            self.is_fused
            and not self.chains
            and not self.has_centres
            and not any(self.partial.values())
            and all(factor in tables and not tables[factor].tallied for factor in self.factors)
        )

    @cached_property
    def _feature_products(self) -> dict[FactorKey, tuple[FeatureTable, Products]]:
        return products_of(self.tables, self.compiled.facts)

    @property
    def n_curved(self) -> int:
        """Numbers that :meth:`curvature` sums over the rows, at most."""
        if any(table.n_rows > _MOST_MULTIPLIED for table in self.tables.values()):
            return sum(n_pairs(own) * table.n_rows**2 // 2 for own, table in self.tables.items())
        products = self._feature_products
        return sum(n_pairs(factor) * products[factor.key][1].number for factor in self.factors)

    def curvature(self, work: BlockWork) -> Sums:
        """Return the sums over a block, and how those of dense products change with each entry of their matrices."""
        found, sums = curvature(work, self._inferences, self._feature_products), Sums.zero()
        self._sum_rows(work, sums)
        found.add(sums)
        return found

    def whole_curvature(self, summed: Sums) -> dict[FactorKey, Array]:
        """Take the change of each sum of a factor with each entry of its matrix, (E F, E F), out of such sums."""
        products = self._feature_products
        return {
            own.key: whole_curvature(summed.fused.pop(pairs_of(own.key)), own, products[own.key][1])
            for own in self.factors
        }

    def curved(self, whole: Mapping[FactorKey, Array], parts: Arrays, n: int) -> Arrays:
        """Return by how much all sums change with n changes of the coefficients.

        Parameters
        ----------
        whole
            Of :meth:`whole_curvature`.
        parts
            Changes of coefficients by key, with an axis of the changes before all others, as those that come back.
        """
        found: Arrays = {}
        for factor in self.factors:
            layout = self._layouts[factor.key]
            change = layout.packed_each(parts, n).reshape(n, -1) @ whole[factor.key]
            found |= layout.unpacked_each(change.reshape(n, layout.n_statistics, -1))
        return found

    def curved_between(self, whole: Mapping[FactorKey, Array], parts: Arrays, n: int) -> Array:
        """Return what such changes of the sums are along n changes of the coefficients again, (n, n)."""
        packed = {key: self._layouts[key].packed_each(parts, n).reshape(n, -1) for key in whole}
        return sum((own @ whole[key] @ own.T for key, own in packed.items()), np.zeros((n, n)))

    def zeros_of(self, factor: LocalFactor, zeros: Coefficients, rows: Rows, scratch: Workspace) -> Array:
        """Return how many known probabilities of zero each statistic meets, for any other local variables."""
        return self.apart.of[factor.key].zeros(BlockWork(rows, zeros, scratch), zeros)

    def _sum_rows(self, work: BlockWork, sums: Sums) -> None:
        for factor in self.factors:
            if factor.key in work.state:
                work.counted[factor.key] = factor.counted(work.state[factor.key], work.rows.columns)
        for term in self._contracted:
            term.backward(work, sums)
        # what is contracted has weighted its terms itself, for they are not linear in each factor's statistics
        work.weigh(in_place=not self.keeps_locals)
        for product in self._products:
            product.backward(work, sums)

    def static_of(self, weight: float) -> Sums | None:
        """Return the sums that no factor enters, over rows of this total weight, where they are nothing but counted."""
        is_alone = len(self.static_terms) == 1 and OWN in self._layouts
        return self._layouts[OWN].counted(weight) if is_alone else None

    def static_coefficients(self, parts: Arrays) -> Coefficients:
        """Return the coefficients of what no local variable enters, as :meth:`static_by_row` takes them."""
        layout = self._layouts.get(OWN)
        return Coefficients({} if layout is None else {OWN: layout.packed(parts)}, parts)

    def summary(self, sums: Sums, static: Sums, coefficients: Coefficients) -> Summary:
        """Return the reduced sums of a pass in the shapes that the global terms expect."""
        parts: Arrays = {**static.parts, **sums.parts}
        for key, total in {**static.fused, **sums.fused}.items():
            parts.update(self._layouts[key].unpacked(np.ascontiguousarray(total)))
        return Summary(parts, _entropies(sums, coefficients), sums.log_partition)

    def with_entropies(self, sums: Sums, coefficients: Coefficients) -> Sums:
        """Return sums with entropies in the place of log-partitions, which were made with these coefficients."""
        return Sums(sums.fused, sums.parts, {}, _entropies(sums, coefficients))


def _entropies(sums: Sums, coefficients: Coefficients) -> dict[FactorKey, float]:
    """Return the entropy of each local factor, from its log-partition if that was made with these coefficients."""
    entropies = dict(sums.entropy)
    for key, log_partition in sums.log_partition.items():
        entropies[key] = log_partition - float(np.vdot(coefficients.matrices[key], sums.fused[key]))
    return entropies


def _derivatives(
    compiled: Compiled, terms: Sequence[GlobalTerm], wanted: Set[Hashable]
) -> list[tuple[Hashable, Evaluation]]:
    """Return the derivatives of terms with respect to the operands that are wanted."""
    asked = "derivatives", terms is compiled.terms, frozenset(wanted)
    made = compiled.facts.get(asked)
    if made is None:
        made = compiled.facts[asked] = [
            (key, number, term.contraction.formula.derivative(position, None))
            for number, term in enumerate(terms)
            for position, key in enumerate(term.contraction.keys)
            if key in wanted
        ]
    return [(key, make(terms[number].contraction.constant)) for key, number, make in made]


def _summed(derivatives: Sequence[tuple[Hashable, Evaluation]], arrays: Mapping[Hashable, Array]) -> Arrays:
    """Return the sum of the derivatives with respect to each operand."""
    found: Arrays = {}
    for key, derivative in derivatives:
        value, before = derivative(arrays), found.get(key)
        found[key] = value if before is None else before + value
    return found
