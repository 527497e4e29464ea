"""Saved models: arrays and a JSON document in one file, never code."""

from .document import read, write

__all__ = ["read", "write"]
