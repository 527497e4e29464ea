"""Where rows come from: arrays in memory, and tables in files."""

from .arrays import ArrayRows
from .tables import Table, read_table, write_table

__all__ = ["ArrayRows", "Table", "read_table", "write_table"]
