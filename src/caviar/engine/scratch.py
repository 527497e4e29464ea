"""Scratch: work buffers that are reused from block to block, a set for each thread."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from .._typing import Array

__all__ = ["Scratch"]


class Scratch:
    """Contiguous float64 arrays by key and shape; each thread has its own."""

    def __init__(self) -> None:
        self._own = threading.local()

    def array(self, key: Hashable, shape: tuple[int, ...]) -> Array:
        """Return an array of this shape, its content undefined: that of the last call with this key.

        Shapes of one key share memory: blocks have two lengths, and only the last block is shorter.
        """
        own = self._own.__dict__
        views = own.setdefault("views", {})
        view = views.get((key, shape))
        if view is None:
            buffers = own.setdefault("buffers", {})
            size = math.prod(shape)
            if key not in buffers or buffers[key].size < size:
                buffers[key] = np.empty(size)
                for other in [k for k in views if k[0] == key]:
                    del views[other]
            view = views[key, shape] = buffers[key][:size].reshape(shape)
        return view

    def kept(self, key: Hashable, of: tuple[object, ...], make: Callable[[], Any]) -> Any:
        """Return what was last made under this key if it was made of these very objects, else make it."""
        memory = self._own.__dict__.setdefault("kept", {})
        before, made = memory.get(key, ((), None))
        if len(before) != len(of) or any(a is not b for a, b in zip(before, of, strict=True)):
            made = make()
            memory[key] = (of, made)
        return made
