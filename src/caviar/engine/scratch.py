"""Scratch: work buffers that are reused from block to block, a set for each thread."""

from __future__ import annotations

import threading
from collections.abc import Hashable

import numpy as np

from .._typing import Array

__all__ = ["Scratch"]


class Scratch:
    """Contiguous float64 buffers by key; each thread has its own."""

    def __init__(self) -> None:
        self._own = threading.local()

    def array(self, key: Hashable, shape: tuple[int, ...]) -> Array:
        """Return a contiguous array of this shape, its content undefined: that of the last call with this key."""
        buffers = self._own.__dict__.setdefault("buffers", {})
        size = int(np.prod(shape))
        buffer = buffers.get(key)
        if buffer is None or buffer.size < size:
            buffer = buffers[key] = np.empty(size)
        return buffer[:size].reshape(shape)
