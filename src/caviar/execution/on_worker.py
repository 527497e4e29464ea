"""The tasks of a worker of a cluster: work on its chunks, and sums of sums. Nothing here needs Dask.

Local factors that the next pass starts from stay in the worker's memory, under the name of the pass that left them.
They are not results of the cluster: its scheduler would have to remember, for each of them, all passes before.
"""

from __future__ import annotations

import copy
import copyreg
import io
import pickle
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._errors import CaviarError
from ..engine.design.backend import Workspace
from ..engine.rows.row_model import RowModel
from ..language import Constant
from ..lazy.graph_rows import unpacked
from ..numerics.blas import one_blas_thread
from ..numerics.sums.pairwise import subtree_sums

_FEW = 1_000
"""Numbers of a constant that travel with the model; more may be one for each row, and are where the rows are."""

_NONE = np.zeros(0)
"""In the place of the value of a constant that has none here."""

_kept: dict[str, dict[int, Any]] = {}
"""Name of a pass -> number of a chunk -> what the pass has left of it."""

_ended: deque[str] = deque(maxlen=1_000)
"""The last sessions that have ended."""


class ModelOfRows:
    """The part that is sent once and stays the same in all passes: the model of the rows, without any of the data.

    Attributes
    ----------
    rows
        What the model does with a block of rows.
    scratch
        Work buffers, of each process its own.
    """

    def __init__(self, rows: RowModel) -> None:
        self.rows = rows
        self.scratch = Workspace()

    def __reduce__(self) -> tuple[Any, ...]:
        stream = io.BytesIO()
        _WithoutLongConstants(stream, protocol=5).dump(self.rows)
        return _model_of, (stream.getvalue(),)


class _WithoutLongConstants(pickle.Pickler):
    """Pickles a model without the constants that are as long as the data."""

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, Constant) and vars(value).get("value", _NONE).size > _FEW:
            return copyreg.__newobj__, (type(value),), {**vars(value), "value": None}  # type: ignore[attr-defined]
        return NotImplemented


def _model_of(pickled: bytes) -> ModelOfRows:
    return ModelOfRows(pickle.loads(pickled))


class Piece:
    """A chunk of a source: its rows, or where to find them.

    Parameters
    ----------
    source
        A source of the rows of the chunk.
    chunk
        The chunk with its bounds in that source.
    """

    def __init__(self, source: Any, chunk: Any) -> None:
        self.source = source
        self.chunk = chunk

    @property
    def nbytes(self) -> int:
        """Bytes of its columns in memory."""
        columns = getattr(self.source, "columns", None)
        return sum(int(getattr(rows, "nbytes", 0)) for rows in columns.values()) if columns else 0

    def __sizeof__(self) -> int:
        # by which Dask decides what to move and what to write to disk
        return self.nbytes + 1_000


@dataclass(frozen=True)
class Share:
    """The part of a pass that falls to one thread of a worker.

    Attributes
    ----------
    n_chunks
        Chunks of the whole pass.
    positions
        Places of its own chunks among those.
    before
        For each of them the name of the pass whose local factors it starts from, or None.
    name
        Of the pass.
    forgotten
        Names of passes whose local factors will not be used.
    """

    n_chunks: int
    positions: tuple[int, ...]
    before: tuple[str | None, ...]
    name: str
    forgotten: tuple[str, ...] = ()


@dataclass(frozen=True)
class Found:
    """The result of a share: sums by subtree of the chunks, from place to place.

    Attributes
    ----------
    sums
        By the first and last place, of the largest subtrees that are complete.
    missing
        Places of chunks whose local factors are not here; then there are no sums.
    keeps
        Whether local factors were left for the next pass.
    error
        Why there are no sums where the work cannot be done: a start that leads nowhere is not a failure of a worker.
    """

    sums: dict[tuple[int, int], Any] = field(default_factory=dict)
    missing: tuple[int, ...] = ()
    keeps: bool = False
    error: CaviarError | None = None


def assemble(packed: bytes, chunk: Any, computed: Sequence[Any]) -> Piece:
    """Return a chunk whose source was packed without the rows that this cluster computes, with these."""
    return Piece(unpacked(packed, computed), chunk)


def sum_share(model: ModelOfRows, task: Any, pieces: Sequence[Piece], share: Share) -> Found:
    """Return the sums over the chunks of a share; their local factors stay here."""
    for name in share.forgotten:
        _kept.pop(name, None)
    asked = tuple(zip(share.positions, pieces, share.before, strict=True))
    missing = [
        at for at, piece, name in asked if name is not None and piece.chunk.number not in _kept.get(name, {})
    ]
    if missing:
        return Found(missing=tuple(missing))
    work = task(rows=model.rows, scratch=model.scratch)
    mine = {at: (piece, name) for at, piece, name in asked}
    after: dict[int, Any] = {}

    def value(start: int, stop: int) -> Any:
        if stop - start > 1 or start not in mine:
            return None
        piece, name = mine[start]
        chunk = piece.chunk
        sums, left = work(piece.source, chunk, None if name is None else _kept[name][chunk.number])
        if left is not None:
            after[chunk.number] = left
        return sums

    try:
        with one_blas_thread():
            sums = subtree_sums(share.n_chunks, value)
    except CaviarError as error:
        return Found(error=error)
    if after and _session_of(share.name) not in _ended:
        _kept.setdefault(share.name, {}).update(after)
    return Found(sums, keeps=bool(after))


def join(n_chunks: int, several: Sequence[Found]) -> Found:
    """Return what several shares gave as one, their sums added as far as that goes."""
    sums = {place: own for found in several for place, own in found.sums.items()}
    missing = tuple(at for found in several for at in found.missing)
    # a copy: what other tasks have returned is not this one's to change
    joined = subtree_sums(n_chunks, lambda start, stop: copy.deepcopy(sums.get((start, stop))))
    error = next((found.error for found in several if found.error is not None), None)
    return Found(joined, missing, any(found.keeps for found in several), error)


def end_session(session: str) -> None:
    """Forget the local factors that the passes of a session have left, also those that are still under way."""
    _ended.append(session)
    for name in [name for name in _kept if _session_of(name) == session]:
        _kept.pop(name, None)


def _session_of(name: str) -> str:
    """Return the session of a pass, which its name begins with."""
    return name.rpartition("-")[0]
