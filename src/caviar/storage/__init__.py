"""Saved models and checkpoints: arrays and a JSON document in one file, never code."""

from .checkpoint import read_checkpoint, write_checkpoint
from .document import read, write
from .packing import pack, unpack

__all__ = ["pack", "read", "read_checkpoint", "unpack", "write", "write_checkpoint"]
