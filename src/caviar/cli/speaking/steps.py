"""Progress of work whose steps are counted: documents that are read, fits that are compared, parts of a page."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count

from rich.console import Console
from rich.live import Live
from rich.text import Text

from .outputs import say
from .remaining import time_in_words

_FIRST_LINE = 5.0
"""Seconds after which there is a plain line; the next come after twice as long each."""


@contextmanager
def counting_parts(
    console: Console,
    what: str,
    *,
    first: float = 1.0,
    quiet: bool,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Callable[[int, int], None]]:
    """Yield what is to be called with how many parts are done, and how many there are.

    A terminal shows a live line, which tells the time that is left; elsewhere a line is printed now and then.

    Parameters
    ----------
    console
        Where the progress is shown.
    what
        What is done, with its unit: "sections of the report".
    first
        How many times as long as another one the first part takes.
    quiet
        Whether to show nothing.
    clock
        What tells the time, in seconds.
    """
    parts = _Parts(what, clock, first)
    if quiet:
        yield parts.reach
    elif console.is_terminal:
        with Live(console=console, get_renderable=parts.render, refresh_per_second=8, transient=True):
            yield parts.reach
    else:
        yield lambda done, total: parts.reach_told(console, done, total)


@contextmanager
def counting_steps(
    console: Console, what: str, total: int, *, quiet: bool, clock: Callable[[], float] = time.monotonic
) -> Iterator[Callable[[], None]]:
    """Yield what is to be called after each of ``total`` steps; otherwise as :func:`counting_parts`."""
    done = count()
    with counting_parts(console, what, quiet=quiet, clock=clock) as reach:
        reach(next(done), total)
        yield lambda: reach(next(done), total)


@contextmanager
def showing_clock(
    console: Console, what: str, *, quiet: bool, clock: Callable[[], float] = time.monotonic
) -> Iterator[None]:
    """Show on a terminal how long work takes whose parts nobody counts; elsewhere nothing."""
    with counting_parts(console, what, quiet=quiet, clock=clock):
        yield


class _Parts:
    """How many parts are done, and how long the others will take: as long as those before, or of the first a share."""

    def __init__(self, what: str, clock: Callable[[], float], first: float) -> None:
        self._what, self._clock, self._first = what, clock, first
        self._done = self._total = 0
        self._began, self._next = clock(), _FIRST_LINE

    def reach(self, done: int, total: int) -> None:
        """Take notice of how many parts are done, and how many there are; there are none before the first call."""
        self._done, self._total = done, total

    def reach_told(self, console: Console, done: int, total: int) -> None:
        """Take notice of how many parts are done, and print a line if it is time for one."""
        self.reach(done, total)
        if self._seconds() >= self._next and self._done < self._total:
            say(console, self._words())
            while self._next <= self._seconds():
                self._next *= 2

    def _seconds(self) -> float:
        return self._clock() - self._began

    def _words(self) -> str:
        """Return how far it is."""
        seconds = self._seconds()
        # in units of the parts after the first
        units = self._first + self._done - 1
        left = seconds / units * (self._total - self._done) if self._done else None
        done = f"{self._done:,} of {self._total:,} " if self._total else ""
        return f"{done}{self._what}  {seconds:.1f} s{time_in_words(left)}"

    def render(self) -> Text:
        """Return the line as it is now."""
        sign = "|/-"[int(4 * self._seconds()) % 3]
        return Text(f"{sign} {self._words()}", no_wrap=True, overflow="ellipsis")
