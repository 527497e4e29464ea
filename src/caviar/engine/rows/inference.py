"""Local factors of a block of rows that are inferred in ways of their own."""

from __future__ import annotations

from collections.abc import Sequence

from ..local.family import FamilyFactor
from ..local.local_factor import LocalFactor
from ..local.statistics import Sums
from .terms.products import MatrixLayout
from .terms.row_term import BlockWork, FactorOfRows, RowTerm


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

    def __init__(self, factor: FamilyFactor, layout: MatrixLayout, products: Sequence[RowTerm]) -> None:
        super().__init__(factor, products, ())
        self.layout = layout

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
    contracted: Sequence[RowTerm],
) -> FactorOfRows:
    """Return how a local factor is inferred.

    Parameters
    ----------
    factor, products, contracted
        As of :class:`~caviar.engine.rows.terms.row_term.FactorOfRows`.
    layout
        Of its matrix; None where it meets the data in no matrix product.
    """
    if factor.couples:
        return Continued(factor, products, contracted)
    if (
        isinstance(factor, FamilyFactor)
        and layout is not None
        and not contracted
        and _shares_precision(factor, layout)
    ):
        return SharedPrecision(factor, layout, products)
    return FactorOfRows(factor, products, contracted)


def _shares_precision(factor: FamilyFactor, layout: MatrixLayout) -> bool:
    """Whether all that a factor's second moments meet is the number 1."""
    rest = [key for key, rows in factor.rows.items() if rows.start >= layout.n_product]
    return (
        layout.constant is not None
        and not factor.has_unseen
        and 0 < layout.n_product < factor.n_rows
        and all(len(variable.letters[key.statistic]) == 2 for variable in factor.variables for key in rest)
    )
