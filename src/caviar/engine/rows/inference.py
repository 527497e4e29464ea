"""A local factor of a block of rows at its optimum: its terms are added up, and it is inferred."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..._typing import Array
from ..local.family import FamilyFactor
from ..local.local_factor import LocalFactor
from ..local.statistics import Coefficients, Sums
from .terms.contracted import ContractedTerm
from .terms.products import MatrixLayout
from .terms.row_term import BlockWork, RowTerm


class FactorOfRows:
    """One local factor, and the row terms that speak to it.

    Parameters
    ----------
    factor
        The local factor.
    layout
        Of its matrix; None where it meets the data in no matrix product.
    products
        Its terms that meet the data in the matrix product, in the order of their visits.
    contracted
        The others.
    """

    def __init__(
        self,
        factor: LocalFactor,
        layout: MatrixLayout | None,
        products: Sequence[RowTerm],
        contracted: Sequence[ContractedTerm],
    ) -> None:
        self.factor = factor
        self.layout = layout
        self._terms = (*products, *contracted)
        self._contracted = contracted
        # what counts zeros knows neither centres nor patterns
        self._exact_terms = (*(term for term in products if term.is_linear), *contracted)
        self._has_product = bool(products)

    @property
    def is_coupled(self) -> bool:
        """Whether it depends on other local factors."""
        return any(term.couples for term in self._contracted)

    def natural(self, work: BlockWork) -> Array:
        """Return its natural parameters (E, B) given the others; they live in the scratch."""
        factor, rows = self.factor, work.rows
        natural = self._added(work, work.coefficients, self._terms, "natural")
        zeros = None
        if work.coefficients.zeros is not None and factor.labels:
            zeros = self.zeros(work, work.coefficients.zeros)
        factor.restrict(natural, rows.columns, zeros)
        return natural

    def zeros(self, work: BlockWork, zeros: Coefficients) -> Array:
        """Return how many known probabilities of zero each statistic meets, (E, B), in the scratch."""
        return self._added(work, zeros, self._exact_terms, "zeros")

    def change(self, work: BlockWork, change: Coefficients) -> Array:
        """Return by how much its natural parameters (E, B) change with the coefficients; they live in the scratch.

        The local factors that it depends on are as they are.
        """
        total = work.scratch.array((self.factor, "change"), (self.factor.n_rows, work.rows.n_rows))
        if not self._has_product:
            total.fill(0.0)
        for term in self._terms:
            term.forward_change(self.factor.key, work, change, total)
        return total

    def _added(
        self, work: BlockWork, coefficients: Coefficients, terms: Sequence[RowTerm], name: str
    ) -> Array:
        total = work.scratch.array((self.factor, name), (self.factor.n_rows, work.rows.n_rows))
        if not self._has_product:
            total.fill(0.0)
        for term in terms:
            term.forward(self.factor.key, work, coefficients, total)
        return total

    def infer(self, work: BlockWork, sums: Sums, *, keep: bool) -> None:
        """Infer it, and add what its entropy needs to the sums.

        Parameters
        ----------
        keep
            Whether its statistics outlive the block's work.
        """
        factor, backend, weights = self.factor, work.scratch.backend, work.rows.weights
        expected = self.natural(work)
        natural = expected.copy() if self._contracted else None
        inferred = backend.infer(factor, expected)
        entropy, seen = inferred.entropy, factor.seen(work.rows.columns)
        if entropy is None and natural is not None:
            shape = (*inferred.log_partition.shape[:-1], -1, work.rows.n_rows)
            # what is excluded has the natural parameter minus infinity, and counts nothing
            inner = np.multiply(natural, expected, out=np.zeros_like(natural), where=expected != 0)
            entropy = inferred.log_partition - inner.reshape(shape).sum(axis=-2)
        if entropy is None:
            sums.log_partition[factor.key] = backend.weighted(inferred.log_partition, weights, seen)
        else:
            sums.entropy[factor.key] = backend.weighted(entropy, weights, seen)
        work.state[factor.key] = expected.copy() if keep else expected
        if natural is not None and keep:
            work.natural[factor.key] = natural

    def renewed(self, work: BlockWork, natural: Array) -> Array:
        """Overwrite natural parameters (E, B) by the expected statistics that the factor has now, and return these."""
        self.factor.infer_from(natural, work.state.get(self.factor.key))
        return natural


class Continued(FactorOfRows):
    """A factor whose parts depend on each other: an update continues from the last one."""

    def infer(self, work: BlockWork, sums: Sums, *, keep: bool) -> None:
        factor, natural = self.factor, self.natural(work).copy()
        inferred = factor.infer_from(natural, work.state.get(factor.key))
        sums.entropy[factor.key] = work.scratch.backend.weighted(
            inferred.entropy, work.rows.weights, factor.seen(work.rows.columns)
        )
        work.state[factor.key] = natural


class SharedPrecision(FactorOfRows):
    """A factor whose precision is the same for all rows: of its second moments only the sum is made.

    All that its second moments meet is the number 1.
    """

    factor: FamilyFactor
    layout: MatrixLayout

    def infer(self, work: BlockWork, sums: Sums, *, keep: bool) -> None:
        key, layout = self.factor.key, self.layout
        natural = work.scratch.array((self.factor, "natural"), (layout.n_product, work.rows.n_rows))
        for term in self._terms:
            term.forward(key, work, work.coefficients, natural)
        shared = work.coefficients.matrices[key][layout.n_product :, layout.constant]
        entropy, work.rest[key] = self.factor.infer_shared(natural, shared, work.rows.weights)
        sums.entropy[key] = work.scratch.backend.weighted(entropy, work.rows.weights)
        work.state[key] = natural


def inference_of(
    factor: LocalFactor,
    layout: MatrixLayout | None,
    products: Sequence[RowTerm],
    contracted: Sequence[ContractedTerm],
) -> FactorOfRows:
    """Return how a local factor is inferred."""
    shares = layout is not None and not contracted and _shares_precision(factor, layout)
    kind = Continued if factor.couples else SharedPrecision if shares else FactorOfRows
    return kind(factor, layout, products, contracted)


def _shares_precision(factor: LocalFactor, layout: MatrixLayout) -> bool:
    """Whether all that a factor's second moments meet is the number 1."""
    rest = [key for key, rows in factor.rows.items() if rows.start >= layout.n_product]
    return (
        isinstance(factor, FamilyFactor)
        and layout.constant is not None
        and not factor.has_unseen
        and 0 < layout.n_product < factor.n_rows
        and all(len(variable.letters[key.statistic]) == 2 for variable in factor.variables for key in rest)
    )
