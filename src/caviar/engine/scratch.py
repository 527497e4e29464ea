"""Scratch: work buffers that are reused from block to block, a set for each thread."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Hashable
from typing import Any

from .._typing import Array
from .kernels import HOST, Kernels

__all__ = ["Scratch"]


class Scratch:
    """Contiguous arrays by key and shape; each thread has its own.

    Parameters
    ----------
    kernels
        Who makes them, and what a pass does with them: float64 arrays of NumPy unless given.
    """

    def __init__(self, kernels: Kernels = HOST) -> None:
        self.kernels = kernels
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
            if key not in buffers or buffers[key].shape[0] < size:
                buffers[key] = self.kernels.empty(size)
                for other in [k for k in views if k[0] == key]:
                    del views[other]
            view = views[key, shape] = self.kernels.reshape(buffers[key][:size], shape)
        return view

    def kept(self, key: Hashable, of: tuple[object, ...], make: Callable[[], Any]) -> Any:
        """Return what was last made under this key if it was made of these very objects, else make it."""
        memory = self._own.__dict__.setdefault("kept", {})
        before, made = memory.get(key, ((), None))
        if len(before) != len(of) or any(a is not b for a, b in zip(before, of, strict=True)):
            made = make()
            memory[key] = (of, made)
        return made
