"""BLAS libraries of this process, and one thread for them: sums that more of them share are other bits."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

__all__ = ["blas_controller", "one_blas_thread"]


@cache
def blas_controller() -> ThreadpoolController:
    """Return the controller of this process's BLAS libraries; finding them costs milliseconds, so it is done once."""
    return ThreadpoolController()


_limiting = threading.Lock()
_n_limiting = 0
_limit: Any = None


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold BLAS to one thread as long as any thread of this process is here: more would change the bits."""
    global _n_limiting, _limit
    with _limiting:
        if _n_limiting == 0:
            _limit = blas_controller().limit(limits=1)
        _n_limiting += 1
    try:
        yield
    finally:
        with _limiting:
            _n_limiting -= 1
            if _n_limiting == 0:
                _limit.restore_original_limits()
