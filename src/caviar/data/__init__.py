"""Where rows come from: arrays in memory, and tables in files."""

from .._public import public_names
from .arrays import ArrayRows as ArrayRows
from .documents import Documents as Documents
from .documents import scan_documents as scan_documents
from .lazy_table import LazyTable as LazyTable
from .lazy_table import scan as scan
from .non_numeric import NumericQuery as NumericQuery
from .non_numeric import category_query as category_query
from .non_numeric import indicator_query as indicator_query
from .non_numeric import numeric_query as numeric_query
from .non_numeric import unknown_values as unknown_values
from .rows import as_rows as as_rows
from .rows import column_names as column_names
from .tables import Table as Table
from .tables import read_columns as read_columns
from .tables import read_table as read_table
from .tables import write_table as write_table
from .texts import TextFiles as TextFiles
from .texts import WordCounts as WordCounts
from .texts import count_words as count_words
from .texts import read_texts as read_texts

__all__ = public_names(globals())  # pyright: ignore[reportUnsupportedDunderAll]
