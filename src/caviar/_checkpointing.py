"""Checkpoints of a fit: when one is written, what it belongs to, and how a fit goes on from it."""

from __future__ import annotations

import logging
import os
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, Protocol

import numpy as np

from ._errors import CheckpointError, CheckpointWarning, DataError, ParameterError
from ._version import __version__
from .engine.checkpoint import plain_moment, plain_result, restored_moment, restored_result
from .engine.ends import Ends
from .engine.fingerprint import fingerprint, fingerprint_of_data, fingerprint_of_model
from .engine.loop import Settings
from .engine.moment import Moment, Walk
from .engine.passes import Passes
from .engine.plan import Plan
from .engine.schedules import Schedule
from .language import Node
from .storage import read_checkpoint, write_checkpoint
from .storage.checkpoint import REMEDY

__all__ = ["Keeper", "fingerprints", "flushing", "keeper_of"]

log = logging.getLogger("caviar.checkpoint")

_LARGEST_SHARE = 0.05
"""Of the time, that writing takes; then checkpoints are written less often than they were asked for."""

_MISFITS = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RuntimeError, MemoryError)
"""What putting together values that do not belong together can raise."""


class Keeper(Protocol):
    """Keeps where a fit stands."""

    ends: Ends
    """Of the starts that have ended."""

    moment: Moment | Walk | None
    """Where the present start goes on; None if it begins."""

    seed: Any
    """Of the starts."""

    def record(self, moment: Moment | Walk) -> None:
        """Keep where the present start stands."""
        ...

    def end(self, ends: Ends) -> None:
        """Keep that one more start has ended."""
        ...

    def flush(self) -> None:
        """Write what is not written yet."""
        ...


@dataclass
class NoKeeper:
    """Keeps nothing."""

    seed: Any
    ends: Ends = field(default_factory=Ends)
    moment: Moment | Walk | None = None

    def record(self, moment: Moment | Walk) -> None:
        """Keep nothing."""

    def end(self, ends: Ends) -> None:
        """Keep the ends for the next start only."""
        self.ends = ends

    def flush(self) -> None:
        """Write nothing."""


class FileKeeper:
    """Keeps where a fit stands in a file.

    Parameters
    ----------
    path
        Of the file; what is there is gone on from.
    every
        Seconds between two writings.
    belongs
        What tells this fit from others, in words and fingerprints.
    plan
        Of its model and data.
    seed
        Of the starts, or None: then that of the file, or a new one, which the file keeps.

    Raises
    ------
    CheckpointError
        If the file is damaged, no checkpoint, or that of another fit.
    DataError
        If it cannot be written.
    """

    def __init__(
        self, path: str | os.PathLike[str], every: float, belongs: Mapping[str, Any], plan: Plan, seed: Any
    ) -> None:
        self._path, self._every, self._belongs = path, every, dict(belongs)
        self.ends = Ends()
        self.moment: Moment | Walk | None = None
        document = read_checkpoint(path)
        found = _fresh_entropy() if document is None else self._matched(document)["entropy"]
        self._entropy = found if seed is None else None
        self.seed = found if seed is None else seed
        self._is_written = document is not None
        self._next = self._wait = 0.0
        if document is None:
            # so that a path that cannot be written is told before the work, and a seed of chance is known
            self._write()
        else:
            self._go_on(document, plan)

    def _matched(self, document: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a checkpoint if it belongs to this fit."""
        try:
            written_by, theirs, entropy = document["caviar"], document["belongs"], document["entropy"]
            if not (entropy is None or (isinstance(entropy, int) and entropy >= 0)):
                raise ValueError("its seed is no number")
            differing = [name for name in self._belongs if theirs[name] != self._belongs[name]]
        except _MISFITS as error:
            raise CheckpointError(f"{self._path} is a damaged checkpoint: {error!r}. {REMEDY}") from error
        if written_by != __version__:
            raise CheckpointError(
                f"{self._path} is a checkpoint of caviar {written_by!s:.40}, and this is caviar {__version__}, whose "
                f"fits may differ from it in their last digits. Go on with that version. {REMEDY}"
            )
        if differing:
            told = " and ".join(_difference(name, theirs[name], self._belongs[name]) for name in differing)
            raise CheckpointError(
                f"{self._path} is the checkpoint of another fit: {told}. Make the same call to go on from it. {REMEDY}"
            )
        return document

    def _go_on(self, document: Mapping[str, Any], plan: Plan) -> None:
        try:
            ends, best = document["ends"], document["ends"]["best"]
            self.ends = Ends(
                int(ends["n_ended"]),
                None if best is None else restored_result(best, plan),
                tuple(float(elbo) for elbo in ends["elbos"]),
                str(ends["failure"]),
                tuple(np.asarray(trace, dtype=np.float64) for trace in ends.get("traces", ())),
            )
            if document["moment"] is not None:
                self.moment = restored_moment(document["moment"], plan)
        except _MISFITS as error:
            raise CheckpointError(
                f"{self._path} is a damaged checkpoint: {type(error).__name__}: {error}. {REMEDY}"
            ) from error
        n_restarts = self._belongs["n_restarts"]
        if self.ends.n_ended == n_restarts:
            log.info("%s: this fit has ended; its result is taken from there", self._path)
        else:
            n_iter = 0 if self.moment is None else self.moment.n_iter
            where = (self.ends.n_ended + 1, n_restarts, n_iter)
            log.info("%s: goes on from start %d/%d, iteration %d", self._path, *where)

    def record(self, moment: Moment | Walk) -> None:
        """Keep where the present start stands; write it if that is due."""
        self._is_written = self._is_written and moment is self.moment
        self.moment = moment
        self._write_if_due()

    def end(self, ends: Ends) -> None:
        """Keep that one more start has ended; write it if that is due."""
        # one assignment of both: a signal between two would pair an end with a moment before it
        vars(self).update(ends=ends, moment=None, _is_written=False)
        self._write_if_due()

    def flush(self) -> None:
        """Write what is not written yet."""
        if not self._is_written:
            self._try_to_write()

    def _write_if_due(self) -> None:
        if not self._is_written and time.monotonic() >= self._next:
            self._try_to_write()

    def _try_to_write(self) -> None:
        """Write, or warn that it was not possible: the fit is worth more than its checkpoint."""
        try:
            self._write()
        except DataError as error:
            self._next = time.monotonic() + self._every
            warnings.warn(
                f"{error}. The fit goes on, and the checkpoint before is as it was",
                CheckpointWarning,
                stacklevel=2,
            )

    def _write(self) -> None:
        start = time.monotonic()
        moment, ends = self.moment, self.ends
        write_checkpoint(
            self._path,
            {
                "caviar": __version__,
                "belongs": self._belongs,
                "entropy": self._entropy,
                "ends": {
                    "n_ended": ends.n_ended,
                    "best": None if ends.best is None else plain_result(ends.best),
                    "elbos": np.array(ends.elbos),
                    "failure": ends.failure,
                    "traces": list(ends.traces),
                },
                "moment": None if moment is None else plain_moment(moment),
            },
        )
        self._is_written = True
        now = time.monotonic()
        self._next = now + (max(self._every, (now - start) / _LARGEST_SHARE) if self._every else 0.0)


def keeper_of(
    path: str | os.PathLike[str] | None,
    every: float,
    belongs: Mapping[str, Any],
    plan: Plan,
    seed: Any,
) -> Keeper:
    """Return what keeps where a fit stands: a file at ``path``, or nothing if there is none.

    Raises
    ------
    ParameterError
        If an argument is impossible.
    CheckpointError, DataError
        As :class:`FileKeeper` raises them.
    """
    if isinstance(every, bool) or not isinstance(every, Real) or not every >= 0:
        raise ParameterError(f"checkpoint_every is a number of seconds, 0 for every iteration; got {every!r}")
    if path is None:
        return NoKeeper(seed)
    if not isinstance(path, str | os.PathLike):
        raise ParameterError(f"checkpoint is the path of a file; got {path!r}")
    return FileKeeper(path, float(every), belongs, plan, seed)


@contextmanager
def flushing(keeper: Keeper) -> Iterator[None]:
    """At the end, and where anything breaks it off, write what is not written yet."""
    try:
        yield
    finally:
        keeper.flush()


def fingerprints(
    nodes: Sequence[Node],
    plan: Plan,
    passes: Passes,
    init: Any,
    seed: Any,
    settings: Settings,
    schedule: Schedule,
    path: object,
) -> dict[str, Any]:
    """Return what tells a fit from others: model, data and settings; nothing without a path.

    Raises
    ------
    ParameterError
        If ``init`` or ``seed`` holds something without a lasting value.
    """
    if path is None:
        return {}
    plate = plan.binding.data_plate
    beliefs = {variable.name: factor for variable, factor in plan.binding.beliefs.items()}
    return {
        "model": fingerprint_of_model(nodes),
        "data": fingerprint_of_data(plan, passes.source),
        "data_plate": None if plate is None else plate.name,
        "prior": fingerprint(beliefs) if beliefs else None,
        "init": init if isinstance(init, str) else fingerprint(init),
        "seed": _described_seed(seed),
        "max_iter": int(settings.max_iter),
        "tol": float(settings.tol),
        "n_restarts": int(settings.n_restarts),
        "accelerate": bool(settings.accelerate),
        "schedule": repr(schedule),
    }


def _described_seed(seed: Any) -> str | int | None:
    """Return what tells a seed from others; of a generator, what its next children follow from."""
    if seed is None or isinstance(seed, int):
        return seed
    if isinstance(seed, np.random.Generator):
        source: Any = seed.bit_generator.seed_seq
        known = (source.entropy, source.spawn_key, source.n_children_spawned)
        return f"Generator {fingerprint(known)}"
    return f"{type(seed).__name__} {fingerprint(seed)}"


def _fresh_entropy() -> int:
    entropy = np.random.SeedSequence().entropy
    assert isinstance(entropy, int)
    return entropy


def _difference(name: str, theirs: Any, ours: Any) -> str:
    is_fingerprint = name == "seed" and (isinstance(theirs, str) or isinstance(ours, str))
    if is_fingerprint or name in ("model", "data", "init", "prior"):
        return f"its {name} was another"
    return f"it had {name}={theirs!r}, and this call has {name}={ours!r}"
