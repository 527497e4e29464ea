"""Chunks of rows that a graph of Dask computes: each is made where its parts are, and stays there."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any

from .._errors import DataError
from ..lazy.graph_rows import Packer, explained
from .connection import Connection
from .on_worker import assemble
from .placement import Lost, Placed, Placement, Slot, piece_of, whereabouts


class Assembled(Placement):
    """The chunks of a source whose rows the cluster computes: no row comes here.

    What is lost with a worker the cluster makes again by itself, as far as its graph goes back.

    Parameters
    ----------
    connection
        To the cluster.
    source
        Rows that can be cut.
    """

    def __init__(self, connection: Connection, source: Any) -> None:
        super().__init__(connection, source)
        self._connection = connection

    def place(self, chunks: Iterable[Any], slots: Sequence[Slot]) -> None:
        """Have the chunks made that do not lie on a worker yet."""
        self._make([chunk for chunk in chunks if self.lacks(chunk)], slots)

    def repair(self, slots: Sequence[Slot]) -> None:
        """Wait for what was lost, and find everything where it is now."""
        gone = [placed.chunk for placed in self._placed.values() if placed.future.cancelled()]
        self._make(gone, slots)
        self._settle(list(self._placed), slots)

    def _make(self, chunks: Sequence[Any], slots: Sequence[Slot]) -> None:
        if not chunks:
            return
        # what the pieces are made of the cluster forgets as soon as they are
        packer = Packer(self.client)
        for chunk in chunks:
            piece = piece_of(self.source, chunk)
            with explained():
                packed, needed = packer.pack(piece.source)
                future = self.client.submit(assemble, packed, piece.chunk, needed, pure=False)
            if chunk.number in self._placed:
                self._placed[chunk.number].future.release()
            # where it will be is not known yet
            self._placed[chunk.number] = Placed(chunk, Slot("", 0), future)
        self._settle([chunk.number for chunk in chunks], slots)

    def _settle(self, numbers: Sequence[int], slots: Sequence[Slot]) -> None:
        """Give each chunk, in their order, to a thread of the worker on which it lies: as many to each of them."""
        self._wait([self._placed[number].future for number in numbers])
        held = whereabouts(self._watch, self.client, [self._placed[number].future for number in numbers])
        threads: dict[str, list[Slot]] = {}
        for slot in slots:
            threads.setdefault(slot.address, []).append(slot)
        load = dict.fromkeys(slots, 0)
        for number in set(self._placed).difference(numbers):
            load[self._placed[number].slot] = load.get(self._placed[number].slot, 0) + 1
        lying: dict[str, list[int]] = {}
        for number in sorted(numbers):
            where = [at for at in held.get(self._placed[number].future.key, ()) if at in threads]
            if not where:
                raise Lost("a worker that held rows has gone, or is new")
            lying.setdefault(where[0], []).append(number)
        for address, several in lying.items():
            own = threads[address]
            most = -(-(len(several) + sum(load[slot] for slot in own)) // len(own))
            for number in several:
                slot = next(slot for slot in own if load[slot] < most)
                load[slot] += 1
                self._placed[number] = replace(self._placed[number], slot=slot)

    def _wait(self, futures: Sequence[Any]) -> None:
        """Wait until chunks are made.

        Raises
        ------
        ClusterError
            If there are no workers, or they die of it.
        DataError
            If the graph fails, or what it begins with is lost.
        """

        def look(addresses: Collection[str]) -> None:
            if not addresses:
                # refuses to go on without workers
                self._connection.threads()

        try:
            with explained():
                self._watch.wait(futures, look=look)
        except DataError:
            # refuses to go on without a scheduler
            self._connection.ask()
            raise
        with explained():
            for future in futures:
                if future.status == "error":
                    raise future.exception()
