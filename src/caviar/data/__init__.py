"""Where rows come from: arrays in memory, and tables in files."""

from .arrays import ArrayRows
from .documents import Documents, scan_documents
from .lazy_table import LazyTable, scan
from .non_numeric import NumericQuery, category_query, indicator_query, numeric_query, unknown_values
from .rows import as_rows, column_names
from .tables import Table, read_columns, read_table, write_table
from .texts import TextFiles, WordCounts, count_words, read_texts

__all__ = [
    "ArrayRows",
    "Documents",
    "LazyTable",
    "NumericQuery",
    "Table",
    "TextFiles",
    "WordCounts",
    "as_rows",
    "category_query",
    "column_names",
    "count_words",
    "indicator_query",
    "numeric_query",
    "read_columns",
    "read_table",
    "read_texts",
    "scan",
    "scan_documents",
    "unknown_values",
    "write_table",
]
