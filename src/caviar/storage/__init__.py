"""Saved models: arrays and a JSON document in one file, never code."""

from .document import read, write
from .packing import pack, unpack
from .saved import write_saved
from .statement import document_of_statement, leaves_of_statement
from .upgrade import upgraded

__all__ = [
    "document_of_statement",
    "leaves_of_statement",
    "pack",
    "read",
    "unpack",
    "upgraded",
    "write",
    "write_saved",
]
