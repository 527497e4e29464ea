"""The same numbers, stored in every way that a fit takes them from."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import caviar as cv

ODD = 1_009
"""Rows of a row group: no block of the engine has a multiple of them."""


def arrow_table(columns):
    """Return an Arrow table of columns in which NaN is null."""
    return pa.table({name: pa.array(values, mask=np.isnan(values)) for name, values in columns.items()})


def one_parquet(columns, folder):
    pq.write_table(arrow_table(columns), folder / "one.parquet", row_group_size=ODD)
    return cv.scan(folder / "one.parquet", copy=False, directory=folder)


def copied_parquet(columns, folder):
    pq.write_table(arrow_table(columns), folder / "copied.parquet", row_group_size=ODD)
    return cv.scan(folder / "copied.parquet", copy=True, directory=folder)


def large_row_group(columns, folder):
    pq.write_table(arrow_table(columns), folder / "large.parquet")
    return cv.scan(folder / "large.parquet", copy=True, directory=folder)


def many_parquet(columns, folder):
    table = arrow_table(columns)
    bounds = [0, 1, 700, 700, 2_000, table.num_rows // 2, table.num_rows]
    (folder / "many").mkdir()
    for number, (start, stop) in enumerate(pairwise(bounds)):
        # the columns in another order in every second file
        names = table.column_names[:: -1 if number % 2 else 1]
        piece = table.slice(start, stop - start).select(names)
        pq.write_table(piece, folder / "many" / f"{number}.parquet", row_group_size=ODD + number)
    return cv.scan(folder / "many" / "*.parquet", columns=list(columns), copy=False, directory=folder)


def hive_parquet(columns, folder):
    table = arrow_table(columns)
    half = table.num_rows // 2
    for year, piece in ((2023, table.slice(0, half)), (2024, table.slice(half))):
        (folder / "hive" / f"year={year}").mkdir(parents=True)
        pq.write_table(piece, folder / "hive" / f"year={year}" / "part.parquet", row_group_size=ODD)
    return cv.scan(folder / "hive", directory=folder)[list(columns)]


def csv_file(columns, folder):
    rows = zip(*columns.values(), strict=True)
    lines = [",".join("" if np.isnan(entry) else repr(float(entry)) for entry in row) for row in rows]
    (folder / "rows.csv").write_text("\n".join([",".join(columns), *lines]) + "\n")
    return cv.scan(folder / "rows.csv", directory=folder)


def query(columns, folder):
    pq.write_table(arrow_table(columns), folder / "query.parquet", row_group_size=ODD)
    return cv.scan(sql=f"select * from '{folder / 'query.parquet'}'", directory=folder)


SCANNED = [one_parquet, copied_parquet, large_row_group, many_parquet, hive_parquet, csv_file, query]
"""Functions from columns and a folder to a lazy table."""
