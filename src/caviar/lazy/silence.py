"""Clusters that stop responding: every wait has an end, and the user is told of it.

A scheduler is heard of when it answers, a worker when the scheduler has a new heartbeat of it. Work may take any time
as long as those who do it are heard of; only silence is counted.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import wait as settled
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any, TypeVar

from .._errors import ClusterError, ClusterWarning

T = TypeVar("T")

log = logging.getLogger("caviar")

_POLL = 0.5
"""Seconds after which it is looked again whether what is waited for is there."""
_ASK = 2.0
"""Seconds within which a scheduler that is there answers, and between two questions for heartbeats."""
_BRIEFLY = 3.0
"""Seconds that leaving a cluster may take, which has to be tried and need not succeed."""


@dataclass(frozen=True)
class Patience:
    """Seconds of silence after which the user is warned, and after which a cluster is given up."""

    told: float = 30.0
    most: float = 120.0


class Watch:
    """Waits for a cluster while it answers.

    Parameters
    ----------
    client
        Of the cluster.
    patience
        With its silence.

    Attributes
    ----------
    is_given_up
        Whether it was silent for too long: nothing is asked of it any more.
    """

    def __init__(self, client: Any, patience: Patience | None = None) -> None:
        self._client = client
        self.patience = patience or Patience()
        self.is_given_up = False

    def wait(
        self,
        futures: Sequence[Any],
        workers: Collection[str] | None = None,
        look: Callable[[Collection[str]], None] = lambda addresses: None,
    ) -> None:
        """Wait until tasks are done.

        Parameters
        ----------
        futures
            Of the tasks.
        workers
            Addresses of the workers that do them, by default of any.
        look
            Called now and then with the addresses of all workers, to see whether there still is something to wait for.

        Raises
        ------
        ClusterError
            If the scheduler or a worker is silent for too long.
        """
        silence = self._silence(workers)
        while True:
            try:
                with self._client.as_current():
                    # there is a client, so it is loaded
                    sys.modules["distributed"].wait(futures, timeout=_POLL)
            except TimeoutError:
                there = self._listen(silence)
                if there is not None:
                    look(there)
            else:
                return

    def call(self, function: Callable[..., T], *arguments: Any, **keywords: Any) -> T:
        """Return what a function of the client gives, which waits for the cluster.

        Raises
        ------
        ClusterError
            If the scheduler or a worker is silent for too long, or the call is not answered in time.
        """
        silence = self._silence(None)
        asked = _asked(lambda: function(*arguments, **keywords))
        while not settled([asked], _POLL).done:
            self._listen(silence)
        try:
            return asked.result()
        except TimeoutError as error:
            raise ClusterError(
                f"the cluster at {self.address} did not answer in time ({error}); check that its "
                f"scheduler and workers still run, and fit again"
            ) from error

    def try_briefly(self, function: Callable[..., Any], *arguments: Any, **keywords: Any) -> None:
        """Call a function of the client that need not succeed, and wait for it no longer than a few seconds."""
        asked = _asked(lambda: function(*arguments, **keywords))
        if not settled([asked], _POLL if self.is_given_up else _BRIEFLY).done:
            log.info("the cluster at %s did not answer when it was left", self.address)

    @property
    def address(self) -> str:
        """Of the scheduler."""
        scheduler = getattr(self._client, "scheduler", None)
        return str(getattr(scheduler, "address", "an unknown address"))

    def _silence(self, workers: Collection[str] | None) -> _Silence:
        if self.is_given_up:
            raise ClusterError(
                f"the cluster at {self.address} does not respond; make a new client, and fit again"
            )
        return _Silence(f"the scheduler at {self.address}", workers)

    def _listen(self, silence: _Silence) -> Collection[str] | None:
        """Ask for signs of life, if it is time; warn of silence, or give the cluster up.

        Returns the addresses of the workers, None if nothing was asked or the scheduler did not answer.
        """
        every = min(_ASK, self.patience.most / 8)
        if not silence.is_time_to_ask(every):
            return None
        seen = self._last_seen(min(_ASK, self.patience.most / 3))
        silence.hear(seen)
        # where there are many, their heartbeats are further apart
        told = min(max(self.patience.told, 3.0 * (1.0 + len(seen or ()) / 200)), self.patience.most / 2)
        for who, seconds in silence.lasting(seen):
            if seconds >= self.patience.most:
                self.is_given_up = True
                raise ClusterError(
                    f"{who} has been silent for {seconds:.0f} s, longer than deadline={self.patience.most:g}. See "
                    f"whether its machine still runs and can be reached, make a new client, and fit again"
                )
            if seconds >= told and silence.is_news(who):
                warnings.warn(
                    f"{who} has not been heard of for {seconds:.0f} s. It is waited for until {self.patience.most:g} s "
                    f"have passed; Ctrl-C ends the fit now",
                    ClusterWarning,
                    stacklevel=2,
                )
        return seen

    def _last_seen(self, within: float) -> dict[str, Any] | None:
        """Return when the scheduler last heard of each worker, by address; None if it does not answer within seconds.

        Raises
        ------
        ClusterError
            If the connection to it is gone.
        """
        if self._client.status != "running":
            raise ClusterError(
                f"the connection to the scheduler at {self.address} is {self._client.status}: the "
                f"scheduler has ended, and the data on the workers are lost. Start it again, make a new "
                f"client, and fit again"
            )
        try:
            found = self._client.sync(self._client.scheduler.identity, callback_timeout=within)
        except (TimeoutError, OSError):
            return None
        return {address: own.get("last_seen") for address, own in found["workers"].items()}


class _Silence:
    """For how long those that are waited for have given no sign of life, counted from now.

    Parameters
    ----------
    scheduler
        What it is called.
    workers
        Addresses of the workers that count; all where it is None.
    """

    def __init__(self, scheduler: str, workers: Collection[str] | None) -> None:
        self._scheduler, self._workers = scheduler, workers
        self._signs: dict[str, Any] = {}
        self._since = {scheduler: time.monotonic()}
        self._told: set[str] = set()
        self._next = 0.0

    def is_time_to_ask(self, every: float) -> bool:
        """Whether it is time to ask for signs of life again."""
        now = time.monotonic()
        if now < self._next:
            return False
        self._next = now + every
        return True

    def hear(self, seen: Mapping[str, Any] | None) -> None:
        """Take down what the scheduler says of its workers; None where it says nothing."""
        if seen is None:
            return
        now = time.monotonic()
        self._heard(self._scheduler, now)
        for address, sign in seen.items():
            if address not in self._signs or self._signs[address] != sign:
                self._signs[address] = sign
                self._heard(_worker(address), now)

    def _heard(self, who: str, now: float) -> None:
        self._since[who] = now
        if who in self._told:
            self._told.remove(who)
            log.warning("%s is heard of again", who)

    def lasting(self, seen: Mapping[str, Any] | None) -> Iterator[tuple[str, float]]:
        """Yield who counts, and the seconds of silence; of workers nothing is known while the scheduler is silent."""
        now = time.monotonic()
        yield self._scheduler, now - self._since[self._scheduler]
        for address in seen or ():
            if self._workers is None or address in self._workers:
                yield _worker(address), now - self._since[_worker(address)]

    def is_news(self, who: str) -> bool:
        """Whether this silence has not been reported yet; mark it as reported."""
        is_new = who not in self._told
        self._told.add(who)
        return is_new


def _worker(address: str) -> str:
    return f"the worker at {address}"


def _asked(call: Callable[[], T]) -> Future[T]:
    """Return the result of a call in a separate thread, since it may never return."""
    future: Future[T] = Future()
    context = copy_context()

    def run() -> None:
        try:
            future.set_result(context.run(call))
        except BaseException as error:  # noqa: BLE001 (raised where it is waited for)
            future.set_exception(error)

    threading.Thread(target=run, name="caviar-cluster", daemon=True).start()
    return future
