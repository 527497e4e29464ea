"""Progress on a terminal, in plain lines: the command line draws its own."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..engine.ascent.driver import Progress

log = logging.getLogger("caviar")


@contextmanager
def reporter(progress: bool | Callable[[Progress], object]) -> Iterator[Callable[[Progress], object] | None]:
    """Yield the function that the loop calls after each pass, or None.

    ``True`` logs a line an iteration at level INFO of the logger "caviar", on standard error unless logging is set up.
    """
    if progress is False:
        yield None
    elif callable(progress):
        yield progress
    else:
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
