"""How far a search is, and how long it takes at least: nobody knows the number of its sweeps, but its last must end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from enum import Enum
from typing import Any

from ...engine.ascent.driver import Progress, Search
from ...fitting.progress import lines, reporter
from ..arguments.fit_arguments import progress_of
from .move import Move


class When(Enum):
    """When a phase of a sweep takes time."""

    ALWAYS = "always"
    CHANGED = "if something has changed"
    NOTHING_ROSE = "if nothing before it in the sweep raised the objective"


class Pace:
    """The steps of a search, counted and timed.

    A search makes sweeps of several phases until a sweep finds nothing better. So the rest of this sweep is to come at
    least, and, if it has found something, another whole one. A phase that is to come takes as long as in the sweep
    before; in the first sweep nothing is known of it, and there is no guess.

    Parameters
    ----------
    n_searches
        How many searches are made one after another.
    clock
        What tells the time, in seconds.
    """

    def __init__(self, n_searches: int = 1, clock: Callable[[], float] = time.monotonic) -> None:
        self._n_searches, self._clock = n_searches, clock
        self._n_ended = -1
        self._began = clock()
        self.begin()

    def begin(self) -> None:
        """Begin a search."""
        self._n_ended += 1
        self._n_components, self._elbo, self._n_moves = 0, float("-inf"), 0
        self._phase, self._n_steps, self._n_done, self._since = "", 0, 0, self._clock()
        self._expected: float | None = None
        self._before: dict[str, float] = {}
        self._now: dict[str, float] = {}
        self._order: dict[str, When] = {}
        self._has_risen = False

    def sweep(self) -> None:
        """Begin a sweep."""
        self._end_phase()
        self._before |= self._now
        self._now, self._has_risen, self._phase = {}, False, ""

    def phase(self, name: str, n_steps: int, when: When = When.ALWAYS) -> None:
        """Begin a phase of the sweep, of at most so many steps."""
        self._end_phase()
        self._phase, self._n_steps, self._n_done, self._since = name, n_steps, 0, self._clock()
        self._order.setdefault(name, when)

    def alike(self, n_steps: int) -> None:
        """Take notice of a step before the sweeps, after which so many come that take as long, at least."""
        now = self._clock()
        self._expected = now + n_steps * (now - self._since)
        self._since = now

    def step(self) -> None:
        """Take notice of a step of the phase."""
        self._n_done += 1

    def moved(self) -> None:
        """Take notice of a move that was tried."""
        self._n_moves += 1

    def best(self, n_components: int, elbo: float) -> None:
        """Take notice of the best so far."""
        self._has_risen |= self._elbo > float("-inf")
        self._n_components, self._elbo = n_components, elbo

    def told(self, tell: Callable[[Progress], object]) -> Callable[[Progress], object]:
        """Return a function that tells the progress of a fit of the search, with that of the search."""

        def with_search(event: Progress) -> object:
            search = Search(self._n_components, self._elbo, self._n_moves, self.seconds_left())
            return tell(replace(event, search=search, restart=self._n_ended, n_restarts=self._n_searches))

        return with_search

    def seconds_left(self) -> float | None:
        """Return how many seconds all searches take at least; None where it is not known yet."""
        left = self._left_of_search()
        to_come = self._n_searches - self._n_ended - 1
        if left is None or not to_come or not self._n_ended:
            return left
        return left + to_come * (self._clock() - self._began) / (self._n_ended + 1)

    def _left_of_search(self) -> float | None:
        if not self._phase and self._expected is not None:
            return max(self._expected - self._clock(), 0.0)
        if not self._phase or not self._before:
            return None
        elapsed = self._clock() - self._since
        if self._n_done:
            here = elapsed / self._n_done * max(self._n_steps - self._n_done, 0)
        else:
            here = max(self._before.get(self._phase, 0.0) - elapsed, 0.0)
        names = list(self._order)
        later = [
            self._before.get(name, 0.0)
            for name in names[names.index(self._phase) + 1 :]
            if self._order[name] is not (When.NOTHING_ROSE if self._has_risen else When.CHANGED)
        ]
        again = sum((self._before | self._now).values()) if self._has_risen else 0.0
        return here + sum(later) + again

    def _end_phase(self) -> None:
        if self._phase:
            spent = self._clock() - self._since
            self._now[self._phase] = self._now.get(self._phase, 0.0) + spent


@contextmanager
def watched(
    verbose: bool | int | Callable[[Progress], None] | None, pace: Pace
) -> Iterator[tuple[Callable[[Move], object], Any]]:
    """Yield what is told of each move of a search, and the ``progress`` of its fits.

    Parameters
    ----------
    verbose
        Of the estimator.
    pace
        Of the search.
    """
    progress = progress_of(verbose)
    if progress is True:
        with lines() as tell:
            yield tell, False
        return
    with reporter(progress) as callback:
        yield (lambda move: None), False if callback is None else pace.told(callback)
