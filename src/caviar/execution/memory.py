"""Memory that arrays leave behind, kept by this process for the next ones."""

from __future__ import annotations

from functools import cache

import numpy as np

_LARGEST = 2**23
"""Bytes up to which arrays are made of memory that was kept."""


@cache
def keep_freed_memory() -> None:
    """Let the allocator keep the memory of arrays of up to 8 MB for the next ones, once in a process.

    The arrays of an iteration are freed in the next one. The C library of Linux returns those from 128 KB on to the
    system at once, and the system clears new memory page by page, which takes as long as several sums of such an array.
    It keeps memory up to the size of the largest array that was freed, so one that is never written to is enough. Where
    an allocator has no such limit nothing changes.
    """
    np.empty(_LARGEST, dtype=np.uint8)
