"""The time that a fit will still take, estimated from how fast its changes have become smaller."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable
from typing import Any

_WINDOW = 10
_FEWEST = 4


class TimeLeft:
    """A guess of the seconds that are left.

    Near its end coordinate ascent converges linearly: the change shrinks by the same factor in each iteration, which
    gives the number of iterations until it is below the tolerance. Starts, and fits, to come take as long as those
    before.

    Parameters
    ----------
    tol
        Change per row, in nats, at which a start ends.
    clock
        What tells the time, in seconds.
    """

    def __init__(self, tol: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._tol = tol
        self._clock = clock
        self._all_began = self._began = self._start_began = clock()
        self._recent: deque[tuple[int, float, float]] = deque(maxlen=_WINDOW)
        self._event: Any = None

    def note(self, event: Any) -> None:
        """Take notice of an iteration."""
        before = self._event
        if before is not None and (event.restart, event.fit) != (before.restart, before.fit):
            self._recent.clear()
            self._start_began = self._clock()
        if self._recent and event.iteration <= self._recent[-1][0]:
            # the fits of a search count from the start, each by itself
            self._recent.clear()
        if before is not None and event.fit != before.fit:
            self._began = self._start_began
        self._event = event
        self._recent.append((event.iteration, event.change_per_row, self._clock()))

    def seconds(self) -> float | None:
        """Return the seconds that are left; None until they can be estimated."""
        if len(self._recent) < _FEWEST:
            return None
        (first, change_then, then), (last, change_now, now) = self._recent[0], self._recent[-1]
        per_iteration = (now - then) / (last - first)
        most = self._event.max_iter - last
        here = min(most, _iterations_left(change_then, change_now, last - first, self._tol)) * per_iteration
        to_come = self._event.n_restarts - self._event.restart - 1
        done = self._event.restart
        each = (self._start_began - self._began) / done if done else now - self._start_began + here
        in_fit = here + to_come * each
        fits = self._event.fit
        each = (self._began - self._all_began) / fits if fits else now - self._began + in_fit
        return in_fit + (self._event.n_fits - fits - 1) * each

    def words(self) -> str:
        """Return what is said of it; nothing where it is uncertain, or hardly any."""
        return time_in_words(self.seconds())


def time_in_words(left: float | None, about: str = "about") -> str:
    """Return what is said of seconds that are left; nothing where they are uncertain, or hardly any.

    Examples
    --------
    >>> time_in_words(42.1), time_in_words(600), time_in_words(None)
    ('  about 42 s left', '  about 10 min left', '')
    >>> time_in_words(7200, "at least")
    '  at least 2.0 h left'
    """
    if left is None or not math.isfinite(left) or left < 2:
        return ""
    if left < 90:
        return f"  {about} {left:.0f} s left"
    return f"  {about} {left / 60:.0f} min left" if left < 5400 else f"  {about} {left / 3600:.1f} h left"


def _iterations_left(then: float, now: float, steps: int, tol: float) -> float:
    """Return the iterations until the change is below the tolerance; without end if it does not shrink.

    Examples
    --------
    >>> round(_iterations_left(1e-1, 1e-3, 4, 1e-6))
    6
    """
    if now <= tol:
        return 0.0
    if tol <= 0 or then <= now:
        return math.inf
    return math.log(now / tol) / (math.log(then / now) / steps)
