"""Where rows come from: arrays in memory, and tables in files."""

from .arrays import ArrayRows
from .lazy_table import LazyTable, scan
from .non_numeric import NumericQuery, category_query, indicator_query, numeric_query, unknown_values
from .rows import as_rows, column_names
from .tables import Table, read_columns, read_table, write_table

__all__ = [
    "ArrayRows",
    "LazyTable",
    "NumericQuery",
    "Table",
    "as_rows",
    "category_query",
    "column_names",
    "indicator_query",
    "numeric_query",
    "read_columns",
    "read_table",
    "scan",
    "unknown_values",
    "write_table",
]
