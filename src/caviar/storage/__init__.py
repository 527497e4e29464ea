"""Saved models: arrays and a JSON document in one file, never code."""

from .document import read, write
from .packing import pack, unpack

__all__ = ["pack", "read", "unpack", "write"]
