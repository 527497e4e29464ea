"""Where blocks are mapped: in this process, over threads."""

from .threads import Threads

__all__ = ["Threads"]
