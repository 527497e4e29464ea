"""How a fit is watched: one live line on a terminal, a few plain lines elsewhere."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.text import Text

from .remaining import TimeLeft
from .speaking import say, standard_error

_TOLD = frozenset(digit * 10**power for power in range(7) for digit in (1, 2, 5))
"""Iterations, and restarts, of which there is a plain line."""


@contextmanager
def watching(
    console: Console, objective: str, *, quiet: bool, tol: float = 1e-6, searching: bool = False
) -> Iterator[Callable[[Any], None] | bool]:
    """Yield what the fit is to call with its progress after each iteration.

    Parameters
    ----------
    console
        Where the progress is shown.
    objective
        What the fit raises: ELBO, log-likelihood.
    quiet
        Whether to show nothing.
    tol
        Change per row at which a start ends.
    searching
        Whether the fit is a search for the number of components, of many short fits.
    """
    if quiet:
        yield False
    elif console.is_terminal:
        line = _LiveLine(objective, tol)
        with Live(console=console, get_renderable=line.render, refresh_per_second=8, transient=True):
            yield line
    else:
        lines = _SearchLines(console, objective) if searching else _PlainLines(console, objective, tol)
        yield lines
        lines.finish()


@contextmanager
def resumptions_told(*, quiet: bool) -> Iterator[None]:
    """Print, on standard error, where a fit goes on from a checkpoint."""
    log = logging.getLogger("caviar.checkpoint")
    handler, level = _Spoken(), log.level
    if not quiet:
        log.addHandler(handler)
        log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(level)


class _Spoken(logging.Handler):
    """Prints what is logged as lines of the command line."""

    def emit(self, record: logging.LogRecord) -> None:
        say(standard_error(), record.getMessage())


def _text(objective: str, event: Any, seconds: float) -> str:
    fit = f"fit {event.fit + 1}/{event.n_fits}  " if event.n_fits > 1 else ""
    start = f"start {event.restart + 1}/{event.n_restarts}  " if event.n_restarts > 1 else ""
    return (
        f"{fit}{start}iteration {event.iteration}/{event.max_iter}  {objective} {event.elbo:.4f}  "
        f"change per row {event.change_per_row:.2g}  {seconds:.1f} s"
    )


class _LiveLine:
    """The latest progress; the line moves, and its clock runs, also while an iteration takes long."""

    def __init__(self, objective: str, tol: float) -> None:
        self._objective = objective
        self._left = TimeLeft(tol)
        self._event: Any = None
        self._start = time.monotonic()

    def __call__(self, event: Any) -> None:
        self._event = event
        self._left.note(event)

    def render(self) -> Text:
        """Return the line as it is now."""
        seconds = time.monotonic() - self._start
        told = (
            f"starting  {seconds:.1f} s"
            if self._event is None
            else _text(self._objective, self._event, seconds) + self._left.words()
        )
        line = f"{'|/-'[int(4 * seconds) % 3]} {told}  (Ctrl-C keeps the best so far)"
        return Text(line, no_wrap=True, overflow="ellipsis")


class _PlainLines:
    """A line for iterations 1, 2, 5, 10, ... of the first start, and one for the end of starts 1, 2, 5, 10, ...

    Of several fits there is a line for the end of each.
    """

    def __init__(self, console: Console, objective: str, tol: float) -> None:
        self._console = console
        self._objective = objective
        self._left = TimeLeft(tol)
        self._latest: Any = None
        self._told: Any = None
        self._start = time.monotonic()

    def __call__(self, event: Any) -> None:
        latest, self._latest = self._latest, event
        if latest is not None and self._ends(latest, event):
            self._tell(latest)
        self._left.note(event)
        if event.n_fits == 1 and event.restart == 0 and event.iteration in _TOLD:
            self._tell(event)

    def _ends(self, latest: Any, event: Any) -> bool:
        """Whether an event begins a fit, or a start after one that is told."""
        if event.n_fits > 1:
            return event.fit != latest.fit
        return event.restart != latest.restart and event.restart in _TOLD

    def finish(self) -> None:
        """Tell where the last start ended."""
        if self._latest is not None:
            self._tell(self._latest)

    def _tell(self, event: Any) -> None:
        if event is not self._told:
            text = _text(self._objective, event, time.monotonic() - self._start)
            say(self._console, text + self._left.words())
        self._told = event


class _SearchLines:
    """A line for the highest objective so far, where it has risen, after 1, 2, 5, 10, ... seconds."""

    def __init__(self, console: Console, objective: str) -> None:
        self._console, self._objective = console, objective
        self._start = time.monotonic()
        self._best, self._told = float("-inf"), float("-inf")
        self._next = iter(sorted(_TOLD))
        self._due = next(self._next)

    def __call__(self, event: Any) -> None:
        self._best = max(self._best, event.elbo)
        seconds = time.monotonic() - self._start
        if seconds >= self._due:
            while seconds >= self._due:
                self._due = next(self._next, math.inf)
            self._tell()

    def finish(self) -> None:
        """Tell the highest objective of all."""
        self._tell()

    def _tell(self) -> None:
        if self._best > self._told:
            seconds = time.monotonic() - self._start
            say(
                self._console,
                f"searching: highest {self._objective} so far {self._best:.4f}  {seconds:.1f} s",
            )
        self._told = self._best
