"""Passes over rows on the workers of a Dask cluster: rows stay there, coefficients go out, sums come back."""

from __future__ import annotations

import logging
import pickle
import threading
import uuid
import weakref
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any, Self, TypeVar

from .._errors import ClusterError, ParameterError
from ..engine.rows.executor import Executor
from ..lazy.graph_rows import is_graph
from ..lazy.silence import Patience
from .assembled import Assembled
from .connection import Connection, is_client
from .on_worker import Found, ModelOfRows, Share, end_session, join, sum_share
from .placement import Lost, Placement, Slot, whereabouts
from .threads import Threads, usable_cores

T = TypeVar("T")

log = logging.getLogger("caviar")

_ATTEMPTS = 5
"""Times that a pass is begun again after workers were lost."""
_FAN_IN = 8
"""Sums that are added in one place."""
_SMALL = 1 << 20
"""Bytes of coefficients up to which they go with each task."""


class DaskExecutor(Executor):
    """Map blocks of rows over the workers of a Dask cluster.

    Each chunk of rows is sent to one worker once, or computed there if the rows are a Dask collection. After that only
    coefficients are sent and sums returned. Sums are added in the same order as with threads, so results are identical
    to the bit, even if workers are lost. Work with fewer than two chunks, such as the subsample for the starts, is done
    in this process.

    Parameters
    ----------
    client
        A ``distributed.Client``, or the address of a scheduler such as ``"tcp://10.0.0.1:8786"``. With None each fit
        starts workers on this machine and stops them at its end, unless the executor is used in a ``with`` statement.
    n_workers
        Number of workers, with one thread each, that are started on this machine if there is no ``client``; by default
        one for each core.
    timeout
        Seconds to wait for the first answer of the scheduler, and for workers.
    deadline
        Seconds after which a fit ends with ClusterError if the scheduler or a worker sends nothing, not even a
        heartbeat. ClusterWarning is given after 30 seconds. Work may take any time as long as heartbeats arrive.

    Raises
    ------
    ClusterError
        During a fit, if the scheduler cannot be reached or has no workers, if workers have other versions of caviar or
        NumPy, or if one stops responding.

    Warns
    -----
    ClusterWarning
        If the scheduler or a worker does not respond, or workers compute with other kernels than this process, so that
        the last digits may differ.

    Examples
    --------
    >>> import caviar as cv
    >>> cv.DaskExecutor("tcp://10.0.0.1:8786")
    DaskExecutor('tcp://10.0.0.1:8786')
    """

    def __init__(
        self,
        client: Any = None,
        *,
        n_workers: int | None = None,
        timeout: float = 10.0,
        deadline: float = 120.0,
    ) -> None:
        if not (client is None or isinstance(client, str) or is_client(client)):
            raise ParameterError(
                f"client must be a distributed.Client, the address of a scheduler, or None; got {client!r}"
            )
        if getattr(client, "asynchronous", False):
            raise ParameterError(
                "client is asynchronous, and a fit is not; give Client(..., asynchronous=False)"
            )
        if n_workers is not None and (client is not None or n_workers < 1):
            raise ParameterError(
                f"n_workers is the number of processes to start on this machine, at least 1, if no client "
                f"is given; got n_workers={n_workers!r}, client={client!r}"
            )
        for name, seconds in (("timeout", timeout), ("deadline", deadline)):
            if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds > 0:
                raise ParameterError(f"{name} must be a number of seconds above 0; got {seconds!r}")
        self.client = client
        self.n_workers = n_workers
        self.timeout = timeout
        self.deadline = deadline
        self._lock = threading.RLock()
        self._threads = Threads()
        self._cluster: _Cluster | None = None
        self._depth = 0
        self._is_held = False

    def __repr__(self) -> str:
        return f"DaskExecutor({'' if self.client is None else repr(self.client)})"

    def __reduce__(self) -> tuple[Any, ...]:
        client: Any = self.client
        where = client.scheduler.address if is_client(client) else client
        return _executor, (where, self.n_workers, self.timeout, self.deadline)

    def __deepcopy__(self, memory: Any) -> Self:
        # so that scikit-learn's clones of an estimator use the same workers
        return self

    def __enter__(self) -> Self:
        """Start or connect to the workers, for several fits."""
        self._is_held = True
        self._connected()
        return self

    def __exit__(self, *error: object) -> None:
        """Leave the workers."""
        self._is_held = False
        self._close()

    @contextmanager
    def session(self) -> Iterator[None]:
        """Keep the rows on the workers for many passes; at the end the workers drop them."""
        with self._lock:
            self._depth += 1
        try:
            with self._threads.session():
                yield
        finally:
            with self._lock:
                self._depth -= 1
                if self._depth == 0 and self._cluster is not None:
                    self._cluster.forget()
                    if not self._is_held:
                        self._close()

    def reach(self) -> None:
        """Connect to the given scheduler; without one nothing is started.

        Raises
        ------
        ClusterError
            If it cannot be reached or has no workers, or if these have other versions.
        """
        if self.client is not None:
            self._connected()

    def map(self, function: Callable[[int], T], n_tasks: int) -> Iterator[T]:
        """Yield ``function(0), function(1), ...`` in order, computed by threads of this process."""
        return self._threads.map(function, n_tasks)

    def sum(
        self, work: Any, source: Any, chunks: Sequence[Any], carried: Sequence[Any]
    ) -> tuple[Any, list[Any]]:
        """Return the sum of ``work(source, chunk, carried)[0]`` over chunks, and what each call carries over."""
        if not _is_for_workers(work, source, chunks, carried):
            return self._threads.sum(work, source, chunks, carried)
        if self._depth == 0:
            with self.session():
                return self.sum(work, source, chunks, carried)
        with self._lock:
            return self._connected().sum(work, source, chunks, carried)

    def _connected(self) -> _Cluster:
        if self._cluster is not None and self._cluster.is_given_up:
            # what is held by "with" connects again where it can
            self._close()
        if self._cluster is None:
            n_workers = self.n_workers or usable_cores()
            patience = Patience(most=self.deadline)
            self._cluster = _Cluster(Connection(self.client, n_workers, self.timeout, patience))
        return self._cluster

    def _close(self) -> None:
        if self._cluster is not None:
            cluster, self._cluster = self._cluster, None
            cluster.close()


def _executor(client: str | None, n_workers: int | None, timeout: float, deadline: float) -> DaskExecutor:
    return DaskExecutor(client, n_workers=n_workers, timeout=timeout, deadline=deadline)


def _is_for_workers(work: Any, source: Any, chunks: Sequence[Any], carried: Sequence[Any]) -> bool:
    """Whether chunks are summed by workers: those of a source that can be cut, if they are not all of it in one."""
    if not (hasattr(source, "between") and hasattr(work, "task")):
        return False
    if any(own is not None for own in carried):
        return any(isinstance(own, _Kept) for own in carried)
    return len(chunks) > 1 or chunks[0].bounds[-1][1] - chunks[0].bounds[0][0] < source.n_rows


class _Shipped:
    """The part that stays the same in all passes, on the workers."""

    def __init__(self, connection: Connection, rows: Any) -> None:
        self.model = ModelOfRows(rows)
        self.future: Any = None
        self.send(connection)

    def release(self) -> None:
        """Let the workers forget it."""
        if self.future is not None:
            self.future.release()

    def send(self, connection: Connection) -> None:
        """Send it to all workers, the first time or again."""
        self.release()
        scatter = connection.client.scatter
        self.future = connection.watch.call(scatter, self.model, broadcast=True, hash=False)


class _Pass:
    """A pass as it can be made again: what was sent, and the pass that each chunk started from."""

    def __init__(self, name: str, shipped: _Shipped, task: Any, before: dict[int, _Pass | None]) -> None:
        self.name = name
        self.shipped = shipped
        self.task = task
        self.before = before
        self.is_wanted = True


class _Kept:
    """The handle that the caller carries over: while it exists, the workers keep the local factors of a pass."""

    def __init__(self, made_by: _Pass, unwanted: list[str]) -> None:
        self.made_by = made_by
        weakref.finalize(self, _forget, made_by, unwanted)


def _forget(made_by: _Pass, unwanted: list[str]) -> None:
    made_by.is_wanted = False
    unwanted.append(made_by.name)


class _Cluster:
    """The workers that a connection leads to, and what was sent to them."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.client = connection.client
        self._watch = connection.watch
        self._slots: list[Slot] = []
        self._placements: dict[int, Placement] = {}
        self._shipped: dict[int, _Shipped] = {}
        self._numbers = count()
        self._session = uuid.uuid4().hex
        self._unwanted: list[str] = []
        """Names of passes whose local factors nobody will ask for; the next pass takes them to the workers."""

    @property
    def is_given_up(self) -> bool:
        """Whether it was silent for too long."""
        return self._watch.is_given_up

    def sum(
        self, work: Any, source: Any, chunks: Sequence[Any], carried: Sequence[Any]
    ) -> tuple[Any, list[Any]]:
        """Return the sum over chunks, and what is carried over; what is lost on the way is sent and made again."""
        before = {
            chunk.number: None if own is None else own.made_by
            for chunk, own in zip(chunks, carried, strict=True)
        }
        for attempt in range(_ATTEMPTS):
            try:
                if attempt or not self._slots:
                    self._repair()
                placement = self._placement(source)
                placement.place(chunks, self._slots)
                shipped = self._ship(work)
                own = _Pass(self._new_name(), shipped, work.task(), before)
                found = self._run(own, placement, chunks)
            except Exception as error:
                # a loss comes as an error of Dask, of its transport or of the system; all others go on
                if not _is_loss(error):
                    raise
                log.info("a pass is begun again: %s", error)
            else:
                return self._taken(own, found, len(chunks))
        raise ClusterError(
            f"workers were lost in each of {_ATTEMPTS} attempts at a pass. Their logs say why; often a "
            f"worker has too little memory for its rows"
        )

    def _taken(self, own: _Pass, found: Found, n_chunks: int) -> tuple[Any, list[Any]]:
        sums = found.sums[0, n_chunks]
        if not found.keeps:
            return sums, [None] * n_chunks
        kept = _Kept(own, self._unwanted)
        return sums, [kept] * n_chunks

    def _new_name(self) -> str:
        return f"caviar-{self._session}-{next(self._numbers)}"

    def _placement(self, source: Any) -> Placement:
        if id(source) not in self._placements:
            self._placements[id(source)] = (
                Assembled(self.connection, source) if is_graph(source) else Placement(self.connection, source)
            )
        return self._placements[id(source)]

    def _ship(self, work: Any) -> _Shipped:
        rows = work.rows
        if id(rows) not in self._shipped:
            self._shipped[id(rows)] = _Shipped(self.connection, rows)
        return self._shipped[id(rows)]

    def _run(self, own: _Pass, placement: Placement, chunks: Sequence[Any]) -> Found:
        """Return what a pass gives; local factors that were lost are made again by the passes that made them."""
        found = self._try(own, placement, chunks)
        if found.missing:
            self._restore(own, placement, [chunks[at] for at in found.missing])
            found = self._try(own, placement, chunks)
        if found.missing:
            raise Lost("local factors could not be made again")
        return found

    def _restore(self, own: _Pass, placement: Placement, chunks: Sequence[Any]) -> None:
        """Make the local factors again that some chunks start from: pass by pass from where they started."""
        generations: list[dict[_Pass, list[Any]]] = []
        present = {own: list(chunks)}
        while present:
            earlier: dict[_Pass, list[Any]] = {}
            for made_by, several in present.items():
                for chunk in several:
                    before = made_by.before[chunk.number]
                    if before is not None:
                        earlier.setdefault(before, []).append(chunk)
            generations.append(earlier)
            present = earlier
        for generation in reversed(generations):
            for made_by, several in generation.items():
                if self._try(made_by, placement, several).missing:
                    raise Lost("local factors were lost while they were made again")
        # what only led to others
        passed = {made_by for generation in generations for made_by in generation if not made_by.is_wanted}
        self._unwanted += [made_by.name for made_by in passed]

    def _try(self, own: _Pass, placement: Placement, chunks: Sequence[Any]) -> Found:
        """Return what one attempt at a pass gives: a task for each thread that has chunks of it."""
        shares: dict[Slot, list[tuple[int, Any]]] = {}
        for position, chunk in enumerate(chunks):
            slot, future = placement.at(chunk)
            shares.setdefault(slot, []).append((position, future))
        task = own.task
        if len(pickle.dumps(task, protocol=5)) > _SMALL:
            task = self._watch.call(self.client.scatter, task, hash=False)
        forgotten, self._unwanted[:] = tuple(self._unwanted), []
        futures = []
        try:
            for slot, several in sorted(shares.items()):
                positions = tuple(position for position, _ in several)
                names = [own.before[chunks[position].number] for position in positions]
                share = Share(
                    len(chunks),
                    positions,
                    tuple(None if made_by is None else made_by.name for made_by in names),
                    own.name,
                    forgotten,
                )
                futures.append(
                    self.client.submit(
                        sum_share,
                        own.shipped.future,
                        task,
                        [future for _, future in several],
                        share,
                        key=self._new_name(),
                        workers=[slot.address],
                        pure=False,
                    )
                )
            return self._joined(len(chunks), futures, {slot.address for slot in shares})
        except BaseException:
            # an interrupt as well: nobody waits for what is under way
            self._cancel(futures)
            raise
        finally:
            for future in futures:
                future.release()

    def _joined(self, n_chunks: int, futures: list[Any], addresses: set[str]) -> Found:
        """Return what shares gave, joined a few at a time where they are; add the tasks of that to ``futures``."""
        made = list(futures)
        while len(made) > _FAN_IN:
            groups = [made[start : start + _FAN_IN] for start in range(0, len(made), _FAN_IN)]
            made = [
                self.client.submit(join, n_chunks, group, key=self._new_name(), pure=False)
                for group in groups
            ]
            futures += made
        self._wait(made, addresses)
        found = join(n_chunks, self._watch.call(self.client.gather, made))
        if found.error is not None:
            raise found.error
        return found

    def _wait(self, futures: Sequence[Any], addresses: set[str]) -> None:
        """Wait until tasks are done; notice where one never will be."""

        def look(there: Collection[str]) -> None:
            gone = addresses.difference(there)
            if gone:
                raise Lost(f"no longer there: {', '.join(sorted(gone))}")

        self._watch.wait(futures, addresses, look)

    def _cancel(self, futures: Sequence[Any]) -> None:
        if futures and self.client.status == "running":
            self._watch.try_briefly(self.client.cancel, futures, force=True)

    def _repair(self) -> None:
        """Look which workers there are, and send again what others have taken with them."""
        threads = self.connection.threads(len({slot.address for slot in self._slots}))
        self._slots = [Slot(address, number) for address, n in threads.items() for number in range(n)]
        shipped = self._shipped.values()
        held = whereabouts(self._watch, self.client, [own.future for own in shipped])
        for own in shipped:
            if own.future.key not in held:
                own.send(self.connection)
        for placement in self._placements.values():
            placement.repair(self._slots)

    def forget(self) -> None:
        """Forget everything that was sent."""
        for own in (*self._placements.values(), *self._shipped.values()):
            own.release()
        self._placements, self._shipped = {}, {}
        if self._slots and self.client.status == "running":
            self._watch.try_briefly(
                self.client.run, end_session, f"caviar-{self._session}", on_error="ignore"
            )
        self._slots, self._unwanted, self._session = [], [], uuid.uuid4().hex

    def close(self) -> None:
        """Leave the workers, and end them if they were started here."""
        self.connection.close()


def _is_loss(error: Exception) -> bool:
    """Whether an error says that workers were lost, and not that the work cannot be done."""
    from concurrent.futures import CancelledError

    from distributed import KilledWorker
    from distributed.comm.core import CommClosedError

    return isinstance(error, (Lost, CancelledError, KilledWorker, CommClosedError))
