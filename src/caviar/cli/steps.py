"""Progress of work whose steps are counted: documents that are read, fits that are compared, parts of a page."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live
from rich.text import Text

from .remaining import time_in_words
from .speaking import say

_FIRST_LINE = 5.0
"""Seconds after which there is a plain line; the next come after twice as long each."""


@contextmanager
def counting_steps(
    console: Console, what: str, total: int, *, quiet: bool, clock: Callable[[], float] = time.monotonic
) -> Iterator[Callable[[], None]]:
    """Yield what is to be called after each step: a live line on a terminal, elsewhere a line now and then.

    Parameters
    ----------
    console
        Where the progress is shown.
    what
        What is done, with its unit: "documents read".
    total
        Number of steps.
    quiet
        Whether to show nothing.
    clock
        What tells the time, in seconds.
    """
    steps = _Steps(what, total, clock)
    if quiet:
        yield steps.step
    elif console.is_terminal:
        with Live(console=console, get_renderable=steps.render, refresh_per_second=8, transient=True):
            yield steps.step
    else:
        yield lambda: steps.step_told(console)


@contextmanager
def counting_parts(
    console: Console,
    what: str,
    *,
    first: float = 1.0,
    quiet: bool,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Callable[[int, int], None]]:
    """Yield what is to be called with how many parts are done and how many there are, as :func:`counting_steps`.

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
    steps = _Steps(what, 0, clock, first)
    if quiet:
        yield steps.reach
    elif console.is_terminal:
        with Live(console=console, get_renderable=steps.render, refresh_per_second=8, transient=True):
            yield steps.reach
    else:
        yield lambda done, total: steps.reach_told(console, done, total)


@contextmanager
def showing_clock(
    console: Console, what: str, *, quiet: bool, clock: Callable[[], float] = time.monotonic
) -> Iterator[None]:
    """Show on a terminal how long work takes whose steps nobody counts; elsewhere nothing.

    Parameters
    ----------
    console
        Where it is shown.
    what
        What is done: "writing the report".
    quiet
        Whether to show nothing.
    clock
        What tells the time, in seconds.
    """
    began = clock()

    def line() -> Text:
        seconds = clock() - began
        return Text(f"{'|/-'[int(4 * seconds) % 3]} {what}  {seconds:.1f} s", no_wrap=True)

    if quiet or not console.is_terminal:
        yield
        return
    with Live(console=console, get_renderable=line, refresh_per_second=8, transient=True):
        yield


class _Steps:
    """How many steps are done, and how long the others will take: as long as those before, or of the first a part."""

    def __init__(self, what: str, total: int, clock: Callable[[], float], first: float = 1.0) -> None:
        self._what, self._total, self._clock, self._first = what, total, clock, first
        self._done, self._began, self._next = 0, clock(), _FIRST_LINE

    def step(self) -> None:
        """Take notice of a step."""
        self._done += 1

    def reach(self, done: int, total: int) -> None:
        """Take notice of how many steps are done, and how many there are."""
        self._done, self._total = done, total

    def step_told(self, console: Console) -> None:
        """Take notice of a step, and print a line if it is time for one."""
        self.reach_told(console, self._done + 1, self._total)

    def reach_told(self, console: Console, done: int, total: int) -> None:
        """Take notice of how many steps are done, and print a line if it is time for one."""
        self.reach(done, total)
        if self._seconds() >= self._next and self._done < self._total:
            say(console, self.words())
            while self._next <= self._seconds():
                self._next *= 2

    def _seconds(self) -> float:
        return self._clock() - self._began

    def words(self) -> str:
        """Return how far it is."""
        seconds = self._seconds()
        # in units of the steps after the first
        done = self._first + self._done - 1
        left = seconds / done * (self._total - self._done) if self._done else None
        done = f"{self._done:,} of {self._total:,} " if self._total else ""
        return f"{done}{self._what}  {seconds:.1f} s{time_in_words(left)}"

    def render(self) -> Text:
        """Return the line as it is now."""
        seconds = self._seconds()
        return Text(f"{'|/-'[int(4 * seconds) % 3]} {self.words()}", no_wrap=True, overflow="ellipsis")
