"""Scratch: work buffers that are reused from block to block, a set for each thread."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Hashable
from operator import is_
from typing import Any, Protocol

import numpy as np

from ..._typing import Array


class Memory(Protocol):
    """Where buffers are made."""

    def empty(self, size: int) -> Any:
        """Return ``size`` numbers, their values undefined."""
        ...

    def reshape(self, array: Any, shape: tuple[int, ...]) -> Any:
        """Return a view of a contiguous array."""
        ...


class HostMemory:
    """NumPy arrays in float64."""

    def empty(self, size: int) -> Array:
        return np.empty(size)

    def reshape(self, array: Array, shape: tuple[int, ...]) -> Array:
        return array.reshape(shape)


_HOST = HostMemory()


class Scratch:
    """Contiguous arrays by key and shape; each thread has its own.

    Parameters
    ----------
    memory
        Who makes them: float64 arrays of NumPy unless given.
    """

    def __init__(self, memory: Memory = _HOST) -> None:
        self._memory = memory
        self._own = threading.local()
        self._shared: dict[Hashable, tuple[tuple[object, ...], Any]] = {}

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
                buffers[key] = self._memory.empty(size)
                for other in [k for k in views if k[0] == key]:
                    del views[other]
            view = views[key, shape] = self._memory.reshape(buffers[key][:size], shape)
        return view

    def kept(
        self, key: Hashable, of: tuple[object, ...], make: Callable[[], Any], *, shared: bool = False
    ) -> Any:
        """Return what this thread last made under this key if it was made of these very objects, else make it.

        ``shared`` is what any thread last made: for a block of rows, which another thread may have in the next pass.
        """
        memory = self._shared if shared else self._own.__dict__.setdefault("kept", {})
        before, made = memory.get(key, ((), None))
        if len(before) != len(of) or not all(map(is_, before, of)):
            made = make()
            memory[key] = (of, made)
        return made
