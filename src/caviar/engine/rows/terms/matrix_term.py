"""Row terms that meet the data in the matrix product of a local factor, and which of them a matrix has."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from .matrix_layout import MatrixLayout
from .row_term import RowTerm


class MatrixTerm(RowTerm):
    """Some columns of the matrix of a local factor; each kind decides where it applies."""

    writes = False
    """Whether it comes first of the terms of a matrix: it writes, and the others add to what it leaves."""

    @classmethod
    @abstractmethod
    def of_matrix(cls, layout: MatrixLayout, others: Sequence[RowTerm]) -> Sequence[MatrixTerm]:
        """Return the terms of this kind that a matrix has; none where this kind does not apply.

        Parameters
        ----------
        layout
            Of the matrix.
        others
            Terms that the model gives the factor besides: centres, and vectors missing in part. Some of them
            :meth:`~caviar.engine.rows.terms.row_term.RowTerm.mask` what they provide themselves.
        """
