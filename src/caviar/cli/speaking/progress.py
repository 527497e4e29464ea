"""How a fit is watched: one live line on a terminal, a few plain lines elsewhere."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.text import Text

from .outputs import counted, gathered_warnings, say, standard_error
from .remaining import TimeLeft, time_in_words

_TOLD = frozenset(digit * 10**power for power in range(7) for digit in (1, 2, 5))
"""Iterations, and restarts, of which there is a plain line."""


@contextmanager
def watching(
    objective: str, *, quiet: bool, tol: float = 1e-6, searching: bool = False
) -> Iterator[Callable[[Any], None] | bool]:
    """Yield what the fit is to call with its progress after each iteration; its warnings are printed, too.

    That it goes on from a checkpoint is told.

    Parameters
    ----------
    objective
        What the fit raises: ELBO, log-likelihood.
    quiet
        Whether to show nothing.
    tol
        Change per row at which a start ends.
    searching
        Whether the fit is a search for the number of components, of many short fits.
    """
    console = standard_error()
    with _resumptions_told(quiet=quiet), gathered_warnings():
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
def _resumptions_told(*, quiet: bool) -> Iterator[None]:
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
    if event.search is not None:
        return f"{fit}{start}{_search_text(objective, event.search, seconds)}"
    return (
        f"{fit}{start}iteration {event.iteration}/{event.max_iter}  {objective} {event.elbo:.4f}  "
        f"change per row {event.change_per_row:.2g}  {seconds:.1f} s"
    )


def _search_text(objective: str, search: Any, seconds: float) -> str:
    """Return how far a search is; what is to come of it is known for the sweep, not for the search."""
    if not search.n_components:
        return f"searching: first fit  {seconds:.1f} s"
    return (
        f"searching: highest {objective} so far {search.elbo:.4f} (K = {search.n_components})  "
        f"{counted(search.n_moves, 'move')} tried  {seconds:.1f} s{time_in_words(search.seconds_left, 'at least')}"
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
        if self._event is None:
            told = f"starting  {seconds:.1f} s"
        else:
            left = self._left.words() if self._event.search is None else ""
            told = _text(self._objective, self._event, seconds) + left
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
            say(self._console, text + (self._left.words() if event.search is None else ""))
        self._told = event


class _SearchLines:
    """A line for the highest objective so far after 1, 2, 5, 10, ... seconds, and at the end."""

    def __init__(self, console: Console, objective: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._console, self._objective, self._clock = console, objective, clock
        self._start = clock()
        self._event: Any = None
        self._next = iter(sorted(_TOLD))
        self._due = next(self._next)

    def __call__(self, event: Any) -> None:
        self._event = event
        seconds = self._clock() - self._start
        if seconds >= self._due:
            while seconds >= self._due:
                self._due = next(self._next, math.inf)
            say(self._console, _text(self._objective, event, seconds))

    def finish(self) -> None:
        """Tell how far the search was at its last fit."""
        event = self._event
        if event is not None:
            search = None if event.search is None else replace(event.search, seconds_left=None)
            told = replace(event, search=search)
            say(self._console, _text(self._objective, told, self._clock() - self._start))
