"""SIGTERM while a fit with a checkpoint runs: a clean stop, as by Ctrl-C."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def terminating(path: object) -> Iterator[None]:
    """Take SIGTERM for Ctrl-C while a fit with a checkpoint runs: it stops, and its checkpoint is whole.

    If no posterior can be given back yet, SIGTERM then does what it did before. Only in the main thread, where signals
    are handled; nothing is changed without a ``path``, nor where SIGTERM is ignored.
    """
    is_main = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGTERM) if path is not None and is_main else None
    if before is None or before is signal.SIG_IGN:
        yield
        return
    came: list[int] = []

    def stop(number: int, frame: object) -> None:
        # once: another one would break off the writing of the checkpoint
        if not came:
            came.append(number)
            raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)
    try:
        yield
    except KeyboardInterrupt:
        if came:
            signal.signal(signal.SIGTERM, before)
            signal.raise_signal(signal.SIGTERM)
        raise
    finally:
        signal.signal(signal.SIGTERM, before)
