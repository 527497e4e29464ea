"""BLAS libraries of this process: one thread for them while a fit runs, and which kernels they compute with.

The number of threads belongs to the process, or, where a library runs on OpenMP and in newer MKL, to each thread that
calls it. The former is counted: the first who needs it sets one thread, and the last puts back what was. The latter
each thread sets and puts back for itself.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from functools import cache, wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np
import scipy.linalg.blas  # noqa: F401 (libraries are found once they are loaded: NumPy's and SciPy's own)
from threadpoolctl import ThreadpoolController

P = ParamSpec("P")
R = TypeVar("R")

_WITH_SMALL_PRODUCTS = {"SkylakeX", "Cooperlake", "SapphireRapids"}
"""Kernels of OpenBLAS that have others for small matrices."""


@cache
def _libraries() -> tuple[Any, ...]:
    """Return the controllers of this process's BLAS libraries; finding them costs milliseconds, so it is done once."""
    return tuple(ThreadpoolController().select(user_api="blas").lib_controllers)


def _of_process() -> Sequence[Any]:
    return _by_whose_number(_libraries())[0]


def _of_thread() -> Sequence[Any]:
    return _by_whose_number(_libraries())[1]


@cache
def _by_whose_number(libraries: tuple[Any, ...]) -> tuple[Sequence[Any], Sequence[Any]]:
    """Return the libraries whose number of threads belongs to the process, and those where it is of each thread."""
    of_thread = [own for own in libraries if _is_of_thread(own)]
    return [own for own in libraries if own not in of_thread], of_thread


def _is_of_thread(library: Any) -> bool:
    """Whether the number of threads of a library belongs to the thread that calls it."""
    is_local_mkl = "MKL_Set_Num_Threads_Local" in getattr(type(library), "check_symbols", ())
    return is_local_mkl or getattr(library, "threading_layer", None) == "openmp"


def _set(library: Any, n_threads: int) -> None:
    """Set the number of threads of a library, from whatever thread this is."""
    # threadpoolctl from 3.7 on ignores all threads but the one that was first to set a number
    let_anybody = getattr(library, "clear_controlling_thread", None)
    if let_anybody is None:
        library.set_num_threads(n_threads)
        return
    let_anybody(force=True)
    library.set_num_threads(n_threads)
    let_anybody(force=True)


@cache
def arithmetic() -> dict[str, str]:
    """Return what the last digits of a fit depend on besides versions: the kernels of matrix products and of exp.

    Examples
    --------
    >>> sorted(arithmetic())
    ['BLAS', 'SIMD']
    """
    found = {
        " ".join(
            str(told)
            for told in (own.internal_api, own.version, getattr(own, "architecture", None))
            if told is not None
        )
        for own in _libraries()
    }
    # NumPy chooses among loops for the instructions that a processor has
    loops = np.lib.introspect.opt_func_info(func_name="^(exp|log)$")
    chosen = {str(own["current"]).split("(")[0] or "none" for loop in loops.values() for own in loop.values()}
    return {"BLAS": ", ".join(sorted(found)) or "unknown", "SIMD": ", ".join(sorted(chosen))}


@cache
def small_product() -> int:
    """Return the multiply-adds up to which BLAS multiplies small matrices with a faster kernel; 0 if it has none.

    OpenBLAS has one for AVX-512, up to 100 by 100 by 100: it reads the operands where they are, and copies none. Others
    copy both operands for each product, so that many small products take longer than a large one.
    """
    kernels = {own.info().get("architecture") for own in _libraries()}
    return 1_000_000 if kernels and kernels <= _WITH_SMALL_PRODUCTS else 0


class _Limit:
    """The limit of one thread for libraries of the process, from whatever threads those who need it come.

    Attributes
    ----------
    lock
        Held while anything is changed. Reentrant, for a signal may come in between.
    holders
        Those who need it now, and the thread that each came from.
    before
        Numbers of threads that are put back after the last.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.holders: dict[object, int] = {}
        self.before: list[int] = []

    def hold(self, holder: object) -> None:
        """Have one thread until ``release``."""
        with self.lock:
            if not self.before:
                # what was is seen as the number is set
                self.before = [1] * len(_of_process())
            self.holders[holder] = threading.get_ident()
            self.renew()

    @property
    def is_held_here(self) -> bool:
        """Whether this thread is among those who need it, until a caller of its own releases it."""
        return threading.get_ident() in self.holders.values()

    def renew(self) -> None:
        """Have one thread again where somebody else has set another number since.

        What others set for a while and put back is at most what they found before us: so the largest number seen is
        put back after the last.
        """
        with self.lock:
            if not self.holders:
                return
            for number, own in enumerate(_by_whose_number(_libraries())[0]):
                n_threads = own.num_threads
                if n_threads not in (1, None):
                    self.before[number] = max(self.before[number], n_threads)
                    _set(own, 1)

    def release(self, holder: object) -> None:
        """Need it no longer; nothing happens the second time."""
        with self.lock:
            self.holders.pop(holder, None)
            if not self.holders:
                self._put_back()

    def _put_back(self) -> None:
        for own, n_threads in zip(_of_process(), self.before, strict=False):
            if n_threads > 1 and (own.num_threads or 1) < n_threads:
                _set(own, n_threads)
        self.before = []

    def fork(self) -> None:
        """Allow no changes while this process is copied (forked)."""
        self.lock.acquire()

    def has_forked(self) -> None:
        """Go on in the process that was copied: OpenBLAS ends its threads for that, and may begin with all again."""
        self.lock.release()
        self.renew()

    def was_forked(self) -> None:
        """Forget, in the copy, those whose threads do not exist there."""
        self.lock = threading.RLock()
        mine = threading.get_ident()
        self.holders = {holder: thread for holder, thread in self.holders.items() if thread == mine}
        if self.holders:
            self.renew()
        elif self.before:
            self._put_back()


_limit = _Limit()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=lambda: _limit.fork(),
        after_in_parent=lambda: _limit.has_forked(),
        after_in_child=lambda: _limit.was_forked(),
    )


def limit_this_thread() -> list[int]:
    """Hold libraries to one thread in this thread, where that is its own matter; return what was."""
    before = []
    for own in _of_thread():
        before.append(own.num_threads or 1)
        own.set_num_threads(1)
    return before


def _free_this_thread(before: Sequence[int]) -> None:
    for own, n_threads in zip(_of_thread(), before, strict=False):
        own.set_num_threads(n_threads)


class one_blas_thread:  # noqa: N801 (a context, as those of the standard library)
    """Hold BLAS to one thread as long as any thread of this process is here: more would change the bits.

    A context, or a decorator of what is to run in one.
    """

    def __enter__(self) -> None:
        self._before: list[int] = []
        try:
            _limit.hold(self)
            self._before = limit_this_thread()
        except BaseException:
            self._leave()
            raise

    def __exit__(self, *error: object) -> None:
        self._leave()

    def _leave(self) -> None:
        try:
            _limit.release(self)
        except BaseException:
            # broken off by Ctrl-C: begun again, for the number of threads outlives the fit
            _limit.release(self)
            raise
        finally:
            if self._before:
                _free_this_thread(self._before)

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def held(*arguments: P.args, **keywords: P.kwargs) -> R:
            if _limit.is_held_here:
                _limit.renew()
                return function(*arguments, **keywords)
            with one_blas_thread():
                return function(*arguments, **keywords)

        return held


def see_to_one_thread() -> None:
    """Set BLAS back to one thread, if it is limited to one and other code has changed the number."""
    _limit.renew()
