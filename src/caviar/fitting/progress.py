"""Progress on a terminal, in plain lines: the command line draws its own."""

from __future__ import annotations

import logging
import math
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any, TextIO

from ..engine.ascent.driver import Progress

log = logging.getLogger("caviar")

_PATIENCE, _PAUSE = 5.0, 0.5
"""Seconds after which a fit shows that it goes on, and between two changes of what it shows."""


def reporter(
    progress: bool | Callable[[Progress], object] | None,
) -> AbstractContextManager[Callable[[Progress], object] | None]:
    """Return a context with the function that the loop calls after each pass, or None.

    ``True`` logs a line an iteration at level INFO of the logger "caviar", on standard error unless logging is set up.
    ``None`` shows on a terminal or in a notebook one line that changes, from some seconds on.
    """
    if progress is None:
        outer = _SHOWN.get()
        if outer is None:
            return _line() if somebody_looks() else _NOTHING
        return nullcontext(outer)
    if callable(progress):
        return nullcontext(progress)
    return _logged_lines() if progress else _NOTHING


_NOTHING: AbstractContextManager[None] = nullcontext()


@contextmanager
def _logged_lines() -> Iterator[Callable[[Progress], object]]:
    with lines():
        yield _log_line


@contextmanager
def lines() -> Iterator[Callable[[object], None]]:
    """Yield a function that logs a line at level INFO of "caviar": on standard error unless logging is set up."""
    handler = None
    if not logging.getLogger().handlers and not log.handlers:
        handler = logging.StreamHandler()
        log.addHandler(handler)
    level = log.level
    log.setLevel(logging.INFO)
    try:
        yield lambda line: log.info("%s", line)
    finally:
        log.setLevel(level)
        if handler is not None:
            log.removeHandler(handler)


def _log_line(event: Progress) -> None:
    log.info(
        "start %d/%d  iteration %d/%d  ELBO %.6f  change per row %.3g",
        event.restart + 1,
        event.n_restarts,
        event.iteration,
        event.max_iter,
        event.elbo,
        event.change_per_row,
    )


class LongFit:
    """A line that says how far a long fit is; it changes in its place, and is gone when the fit ends.

    Parameters
    ----------
    stream
        Where it is written.
    clock
        What tells the time, in seconds.
    """

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream, self._clock = stream, clock
        self._began = clock()
        self._due, self._width = self._began + _PATIENCE, 0

    def __call__(self, event: Progress) -> None:
        """Show how far the fit is, if it is time to."""
        self.tell(lambda seconds: in_words(event, seconds))

    def tell(self, words: Callable[[float], str]) -> None:
        """Show what is said after so many seconds, if it is time to."""
        now = self._clock()
        if now >= self._due:
            self._due = now + _PAUSE
            text = words(now - self._began)
            self._write(text[: shutil.get_terminal_size().columns - 1])

    def end(self) -> None:
        """Take the line away."""
        if self._width:
            self._write("")
            self._stream.write("\r")
            self._stream.flush()

    def _write(self, text: str) -> None:
        self._stream.write("\r" + text.ljust(self._width))
        self._stream.flush()
        self._width = len(text)


def in_words(event: Progress, seconds: float) -> str:
    """Return how far a fit, or the search that it is part of, is after some seconds.

    Examples
    --------
    >>> in_words(Progress(0, 1, 12, 500, -1303.871, 1e-4), 6.2)
    'iteration 12 of at most 500, ELBO -1303.9, 6 s'
    >>> from caviar.engine.ascent.driver import Search
    >>> in_words(Progress(1, 5, 12, 500, -1303.871, 1e-4, search=Search(3, -1290.0, 8, 40.0)), 70.0)
    'search 2 of 5: K = 3, ELBO -1290.0, 8 moves tried, 70 s, at least 40 s left'
    """
    fit = f"fit {event.fit + 1} of {event.n_fits}, " if event.n_fits > 1 else ""
    search = event.search
    if search is None:
        start = f"start {event.restart + 1} of {event.n_restarts}, " if event.n_restarts > 1 else ""
        # along collapsed passes no bound is known
        elbo = "" if math.isnan(event.elbo) else f", ELBO {event.elbo:.1f}"
        return f"{fit}{start}iteration {event.iteration} of at most {event.max_iter}{elbo}, {seconds:.0f} s"
    which = f"search {event.restart + 1} of {event.n_restarts}" if event.n_restarts > 1 else "searching"
    left = search.seconds_left or 0.0
    at_least = f", at least {left:.0f} s left" if left >= 2 else ""
    best = f": K = {search.n_components}, ELBO {search.elbo:.1f}" if search.n_components else ""
    return f"{fit}{which}{best}, {search.n_moves} moves tried, {seconds:.0f} s{at_least}"


def groups_in_words(done: int, n_groups: int, seconds: float) -> str:
    """Return how far many fits are after some seconds; those with the most rows come last, so the rest takes longer.

    Examples
    --------
    >>> groups_in_words(250, 1000, 6.2)
    '250 of 1000 groups, 6 s, at least 19 s left'
    >>> groups_in_words(0, 1000, 6.2)
    '0 of 1000 groups, 6 s'
    """
    left = seconds * (n_groups - done) / done if done else 0.0
    at_least = f", at least {left:.0f} s left" if left >= 2 else ""
    return f"{done} of {n_groups} groups, {seconds:.0f} s{at_least}"


_SHOWN: ContextVar[Callable[[Progress], object] | None] = ContextVar("shown", default=None)
"""What the fit that this one is a part of shows its progress by."""


@contextmanager
def parts_told(callback: Callable[[Progress], object]) -> Iterator[None]:
    """Let a callback take notice of the progress of the fits within this context, which show none by themselves."""
    token = _SHOWN.set(callback)
    try:
        yield
    finally:
        _SHOWN.reset(token)


def line_where_somebody_looks() -> AbstractContextManager[LongFit | None]:
    """Return a context with the line that long work shows; None where nobody would see it."""
    return _line() if somebody_looks() else _NOTHING


@contextmanager
def _line() -> Iterator[LongFit]:
    """Yield a new line, which is also that of the fits that are parts of this one."""
    line = LongFit(sys.stderr)
    try:
        with parts_told(line):
            yield line
    finally:
        line.end()


def somebody_looks() -> bool:
    """Return whether standard error is a terminal on which a line can change, or a cell of a notebook."""
    if sys.stderr is not None and sys.stderr.isatty():
        return os.environ.get("TERM") != "dumb"
    ipython: Any = sys.modules.get("IPython")
    return ipython is not None and type(ipython.get_ipython()).__name__ == "ZMQInteractiveShell"
