"""Saved models and checkpoints: arrays and a JSON document in one file, never code."""

from .checkpoint import read_checkpoint, write_checkpoint
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
    "read_checkpoint",
    "unpack",
    "upgraded",
    "write",
    "write_checkpoint",
    "write_saved",
]
