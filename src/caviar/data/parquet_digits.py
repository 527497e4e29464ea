"""Whole numbers and decimals of Parquet files whose digits are lost in double precision: refused when they are read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .._errors import DataError
from ..files.naming import named
from .lost_digits import are_suspect, lost_digits
from .tables import tables_extra


def refuse_lost_in_files(paths: Sequence[Path], name: str, label: str) -> None:
    """Refuse a column of Parquet files whose values are the same, or coarse, in double precision.

    Only where the statistics in the footers say that they are large, or close together, are the values read.

    Raises
    ------
    DataError
        If so.
    """
    ends = [end for path in paths for end in _ends(path, name)]
    if None not in ends and (not ends or not are_suspect(np.array(ends, dtype=np.float64))):
        return
    compute, distinct = tables_extra("pyarrow.compute"), set[Any]()
    for path in paths:
        with tables_extra("pyarrow.parquet").ParquetFile(path) as file:
            for batch in file.iter_batches(columns=[name], use_threads=False):
                distinct.update(compute.unique(batch.column(0)).to_pylist())
    found = lost_digits(distinct)
    if found is not None:
        raise DataError(f"{label}: column {named(name)} {found}")


def _ends(path: Path, name: str) -> Iterator[Any]:
    """Yield smallest and largest value of a column in each row group, None where the file does not say them."""
    with tables_extra("pyarrow.parquet").ParquetFile(path) as file:
        metadata = file.metadata
        place = metadata.schema.names.index(name)
        for group in range(metadata.num_row_groups):
            column = metadata.row_group(group).column(place)
            found = column.statistics
            if found is not None and found.null_count == column.num_values:
                continue
            yield from (None,) if found is None or not found.has_min_max else (found.min, found.max)
