"""Sparse counts as they came: checked, each entry that is not zero once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from ..._errors import DataError, PlateError
from ..._typing import AnyArray
from ...language import Multinomial, Node, Plate

__all__ = ["check_along_rows", "sparse_counts", "takes_sparse"]


def takes_sparse(node: Node, value: Any) -> bool:
    """Whether a value is a sparse matrix that can be the data of a variable: rows of counts of a Multinomial."""
    return issparse(value) and value.ndim == 2 and isinstance(node, Multinomial) and len(node.plates) == 1


def sparse_counts(node: Node, value: Any) -> Any:
    """Return a sparse matrix (N, V) as rows in float64, each entry that is not zero once; the matrix stays as it is.

    Raises
    ------
    DataError
        If it is empty, its entries are no finite numbers, or its indices are broken.
    """
    if value.dtype.kind not in "biuf":
        raise DataError(f"the data of '{node.name}' must be numbers; got a sparse {value.dtype.name} matrix")
    if 0 in value.shape:
        raise DataError(f"the data of '{node.name}' are empty: shape {value.shape}")
    try:
        with np.errstate(over="ignore"):
            # before duplicates are summed, which could be too much for a short type
            rows: Any = csr_array(value.astype(np.float64, copy=False))
        rows.check_format(full_check=True)
    except ValueError as error:
        raise DataError(f"the data of '{node.name}' are no valid sparse matrix: {error}") from error
    if not rows.has_canonical_format or not rows.data.all():
        rows = rows.copy()
        rows.sum_duplicates()
        rows.eliminate_zeros()
    wrong = np.flatnonzero(~np.isfinite(rows.data))
    if len(wrong):
        row = np.searchsorted(rows.indptr, wrong[0], side="right") - 1
        raise DataError(
            f"'{node.name}' has {rows.data[wrong[0]]} in row {row}; sparse counts have no missing entries: drop such "
            f"rows before the fit"
        )
    return rows


def check_along_rows(values: Mapping[Node, AnyArray], plate: Plate | None) -> None:
    """Check that what is sparse are rows of data.

    Raises
    ------
    PlateError
        If not.
    """
    for node, value in values.items():
        if issparse(value) and plate not in node.plates:
            own = node.plates[0].name
            raise PlateError(
                f"the data of '{node.name}' are sparse along plate '{own}', but the rows of data run along "
                f"'{plate.name if plate else ''}'; state data_plate='{own}', or pass its .toarray()"
            )
