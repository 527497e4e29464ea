"""Checkpoints of a fit: when one is written, what it belongs to, and how a fit continues from it."""

from __future__ import annotations

import logging
import os
import secrets
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from .._errors import CheckpointError, CheckpointWarning, DataError, ParameterError
from .._version import __version__
from ..engine.ascent.driver import Settings
from ..engine.ascent.problem import Problem
from ..engine.ascent.schedule import StatedSchedule
from ..engine.ascent.state import FitState
from ..engine.checkpoint.fingerprint import fingerprint, fingerprint_of_data, fingerprint_of_model
from ..engine.checkpoint.states import States, plain_result, restored_result
from ..engine.rows.row_map import RowMap
from ..engine.starts.restarts import Ends
from ..numerics.blas import arithmetic
from ..storage import read_checkpoint, write_checkpoint
from ..storage.checkpoint import REMEDY

log = logging.getLogger("caviar.checkpoint")

_LARGEST_SHARE = 0.05
"""Largest share of the time for writing; where it would be more, checkpoints are written less often than asked for."""

_LAYOUT = 3
"""Layout of a checkpoint: the number changes with its keys and values."""

_MISFITS = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RuntimeError, MemoryError)
"""Errors from putting together values that do not belong together."""


@dataclass
class NoKeeper:
    """Keeps nothing.

    Attributes
    ----------
    seed
        Of the starts.
    ends
        Of the starts that have ended.
    state
        Where the present start continues; None if it begins.
    """

    seed: Any
    ends: Ends = field(default_factory=Ends)
    state: FitState | None = None

    def record(self, state: FitState) -> None:
        """Keep nothing."""

    def end(self, ends: Ends) -> None:
        """Keep the ends for the next start only."""
        self.ends = ends

    def flush(self) -> None:
        """Write nothing."""


class FitsFile:
    """A file with the state of one fit, or of several made one after another: the ends of some, and the present one.

    The same fits in the same order continue from there: finished ones are not repeated. The
    file is written seldom enough to cost little, and without harm where it cannot be.

    Parameters
    ----------
    path
        Of the file; an existing checkpoint is continued.
    every
        Seconds between two writings.
    of_one
        Whether there is one fit only.

    Raises
    ------
    ParameterError
        If one of them is impossible.
    CheckpointError
        If the file is damaged or something else.
    """

    def __init__(self, path: str | os.PathLike[str], every: float, *, of_one: bool = False) -> None:
        if not isinstance(path, str | os.PathLike):
            raise ParameterError(f"checkpoint must be the path of a file; got {path!r}")
        check_seconds(every)
        self.path, self._every, self._of_one = path, float(every), of_one
        self._fits = self._kept(read_checkpoint(path))
        self._is_written = bool(self._fits)
        self._next_write, self._n_begun = 0.0, 0

    def _kept(self, document: dict[str, Any] | None) -> list[Any]:
        """Return what an earlier call has kept of each fit."""
        if document is None:
            return []
        if self._of_one and "fits" in document:
            raise CheckpointError(
                f"{self.path} is a checkpoint of several fits, as an estimator or compare_mixtures makes them, and "
                f"this is one fit. {REMEDY}"
            )
        found = [document] if self._of_one else document.get("fits")
        if not isinstance(found, list):
            raise CheckpointError(
                f"{self.path} is the checkpoint of one fit, as caviar.Model.fit makes it, and this call makes "
                f"several. {REMEDY}"
            )
        return found

    def next(self) -> PlaceOfFit:
        """Return the place of the next fit."""
        self._n_begun += 1
        return PlaceOfFit(self, self._n_begun - 1)

    def read(self, number: int) -> dict[str, Any] | None:
        """Return what an earlier call has kept of a fit."""
        if number >= len(self._fits):
            return None
        if not isinstance(self._fits[number], dict):
            raise CheckpointError(
                f"{self.path} is a damaged checkpoint: its fit {number + 1} cannot be read. {REMEDY}"
            )
        return self._fits[number]

    def tell(self, number: int, text: str) -> None:
        """Log where the last of the fits continues."""
        if number == len(self._fits) - 1:
            log.info("%s: %s%s", self.path, f"fit {number + 1}: " if number else "", text)

    def begin(self, number: int, document: Mapping[str, Any]) -> None:
        """Keep what a fit begins with; the first time, write the file, to find out early whether it can be written.

        Raises
        ------
        DataError
            If it cannot be.
        """
        self._put(number, document)
        if number == 0:
            self._write()

    def keep(self, number: int, document: Callable[[], Mapping[str, Any]], *, is_end: bool) -> bool:
        """Keep the state of a fit if it ends or is broken off, or if writing is due; return whether it was written."""
        is_due = time.monotonic() >= self._next_write
        if not (is_end or is_due):
            return False
        self._put(number, document())
        if is_due or self._of_one:
            self.flush()
        return self._is_written

    def _put(self, number: int, document: Mapping[str, Any]) -> None:
        # what follows this fit in the file was made after another end of it
        self._fits = [*self._fits[:number], document]
        self._is_written = False

    def flush(self) -> None:
        """Write what is not written yet, or warn that it was not possible: a fit is worth more than its checkpoint."""
        if self._is_written:
            return
        try:
            self._write()
        except DataError as error:
            self._next_write = time.monotonic() + self._every
            warnings.warn(
                f"{error}. The fit continues, and the earlier checkpoint is kept",
                CheckpointWarning,
                stacklevel=2,
            )

    def _write(self) -> None:
        start = time.monotonic()
        write_checkpoint(self.path, self._fits[0] if self._of_one else {"fits": self._fits})
        now = time.monotonic()
        self._next_write = now + (max(self._every, (now - start) / _LARGEST_SHARE) if self._every else 0.0)
        self._is_written = True


@dataclass(frozen=True)
class PlaceOfFit:
    """Where one of the fits of a file is kept."""

    file: FitsFile
    number: int


class FileKeeper:
    """Keeps the state of a fit in a file, or a part of one.

    Parameters
    ----------
    place
        Of what is kept; an existing checkpoint is continued.
    belongs
        What tells this fit from others, in words and fingerprints.
    states
        Of its schedule, model and data.
    seed
        Of the starts, or None: then that of the file, or a new one, which the file keeps.

    Raises
    ------
    CheckpointError
        If the file is damaged, no checkpoint, or that of another fit.
    DataError
        If it cannot be written.
    """

    def __init__(self, place: PlaceOfFit, belongs: Mapping[str, Any], states: States, seed: Any) -> None:
        self._file, self._number, self._path = place.file, place.number, place.file.path
        self._belongs, self._states = dict(belongs), states
        self.ends = Ends()
        self.state: FitState | None = None
        document = self._file.read(self._number)
        found = secrets.randbits(128) if document is None else self._matched(document)["entropy"]
        self._entropy = found if seed is None else None
        self.seed = found if seed is None else seed
        self._is_written = document is not None
        if document is None:
            # so that a seed of chance is known
            self._file.begin(self._number, self._document())
            self._is_written = True
        else:
            self._go_on(document)

    def _matched(self, document: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a checkpoint if it belongs to this fit."""
        try:
            written_by, theirs, entropy = document["caviar"], document["belongs"], document["entropy"]
            if not (entropy is None or (isinstance(entropy, int) and entropy >= 0)):
                raise ValueError("its seed is not a number")
            differing = [name for name in self._belongs if theirs[name] != self._belongs[name]]
        except _MISFITS as error:
            raise CheckpointError(f"{self._path} is a damaged checkpoint: {error!r}. {REMEDY}") from error
        if document.get("layout") != _LAYOUT:
            raise CheckpointError(
                f"{self._path} is a checkpoint of another build of caviar {written_by!s:.40}, which wrote "
                f"fits in another form. Continue with that build. {REMEDY}"
            )
        if written_by != __version__:
            raise CheckpointError(
                f"{self._path} is a checkpoint of caviar {written_by!s:.40}, and this is caviar "
                f"{__version__}, whose fits may differ in their last digits. Continue with that version. "
                f"{REMEDY}"
            )
        if differing:
            told = " and ".join(_difference(name, theirs[name], self._belongs[name]) for name in differing)
            raise CheckpointError(
                f"{self._path} is the checkpoint of another fit: {told}. To continue that fit, repeat its "
                f"call. {REMEDY}"
            )
        self._tell_other_arithmetic(document.get("computed_with"))
        return document

    def _tell_other_arithmetic(self, theirs: Any) -> None:
        """Say that bits may differ where the fit was begun with other matrix products or logarithms."""
        mine = arithmetic()
        theirs = theirs if isinstance(theirs, dict) else {}
        differing = [
            f"{name} {theirs[name]!s:.80}, and now has {name} {own}"
            for name, own in mine.items()
            if name in theirs and theirs[name] != own
        ]
        if differing:
            warnings.warn(
                f"{self._path}: this fit began with {'; '.join(differing)}. It continues, and its last "
                f"digits may differ from those of a fit on one machine",
                CheckpointWarning,
                stacklevel=2,
            )

    def _go_on(self, document: Mapping[str, Any]) -> None:
        try:
            ends, best = document["ends"], document["ends"]["best"]
            self.ends = Ends(
                int(ends["n_ended"]),
                None if best is None else restored_result(best, self._states.problem),
                tuple(float(elbo) for elbo in ends["elbos"]),
                str(ends["failure"]),
                tuple(np.asarray(trace, dtype=np.float64) for trace in ends.get("traces", ())),
            )
            if document["state"] is not None:
                self.state = self._states.restored(document["state"])
        except _MISFITS as error:
            raise CheckpointError(
                f"{self._path} is a damaged checkpoint: {type(error).__name__}: {error}. {REMEDY}"
            ) from error
        n_restarts = self._belongs["n_restarts"]
        if self.ends.n_ended == n_restarts:
            self._file.tell(self._number, "this fit has ended; its result is taken from there")
        else:
            n_iter = 0 if self.state is None else self.state.n_iter
            self._file.tell(
                self._number, f"goes on from start {self.ends.n_ended + 1}/{n_restarts}, iteration {n_iter}"
            )

    def record(self, state: FitState) -> None:
        """Keep the state of the present start; write it if that is due."""
        self._is_written = self._is_written and state is self.state
        self.state = state
        self._keep()

    def end(self, ends: Ends) -> None:
        """Keep that one more start has ended; write it if that is due."""
        # one assignment of both: a signal between two would pair an end with a state before it
        vars(self).update(ends=ends, state=None, _is_written=False)
        self._keep()

    def flush(self) -> None:
        """Write what is not written yet."""
        self._keep(is_end=True)

    def _keep(self, *, is_end: bool = False) -> None:
        if not self._is_written:
            self._is_written = self._file.keep(self._number, self._document, is_end=is_end)

    def _document(self) -> dict[str, Any]:
        """Return the state of the fit as plain values."""
        state, ends = self.state, self.ends
        return {
            "caviar": __version__,
            "layout": _LAYOUT,
            "computed_with": arithmetic(),
            "belongs": self._belongs,
            "entropy": self._entropy,
            "ends": {
                "n_ended": ends.n_ended,
                "best": None if ends.best is None else plain_result(ends.best),
                "elbos": np.array(ends.elbos),
                "failure": ends.failure,
                "traces": list(ends.traces),
            },
            "state": None if state is None else self._states.plain(state),
        }


Keeper = NoKeeper | FileKeeper
"""Keeps the state of a fit."""


def keeper_of(
    path: str | os.PathLike[str] | PlaceOfFit | None,
    every: float,
    belongs: Mapping[str, Any],
    states: States,
    seed: Any,
) -> Keeper:
    """Return what keeps the state of a fit: a file at ``path``, the place of one of several fits, or nothing.

    Raises
    ------
    ParameterError
        If an argument is impossible.
    CheckpointError, DataError
        As :class:`FileKeeper` raises them.
    """
    check_seconds(every)
    if path is None:
        return NoKeeper(seed)
    place = path if isinstance(path, PlaceOfFit) else FitsFile(path, every, of_one=True).next()
    return FileKeeper(place, belongs, states, seed)


def check_seconds(every: float) -> None:
    """Check the seconds between two writings.

    Raises
    ------
    ParameterError
        If they are impossible.
    """
    is_number = type(every) is float or (isinstance(every, Real) and not isinstance(every, bool))
    if not is_number or not every >= 0:
        raise ParameterError(
            f"checkpoint_every must be a number of seconds, 0 for every iteration; got {every!r}"
        )


@contextmanager
def flushing(keeper: Keeper) -> Iterator[None]:
    """Write what is not written yet at the end, also after an interruption."""
    try:
        yield
    finally:
        keeper.flush()


class Choices(NamedTuple):
    """Arguments of a fit that decide where it ends, as a user gives them: ``looks`` are responsibilities and swaps."""

    accelerate: bool
    schedule: StatedSchedule
    looks: tuple[int | str, bool | str]
    point: Sequence[str]
    factors: Sequence[Sequence[str]] | str | None
    order: Sequence[str] | None


def fingerprints(
    model: Any,
    problem: Problem,
    row_map: RowMap,
    init: Any,
    seed: Any,
    settings: Settings,
    path: object,
    choices: Choices,
) -> dict[str, Any]:
    """Return fingerprints of model, data, settings and further choices; nothing without a path.

    Raises
    ------
    ParameterError
        If ``init`` or ``seed`` holds something without a lasting value.
    """
    if path is None:
        return {}
    plate, factors = problem.bound.data_plate, choices.factors
    beliefs = {variable.name: factor for variable, factor in problem.bound.gathered("prior").items()}
    return {
        "model": fingerprint_of_model(model.nodes),
        "data": fingerprint_of_data(problem, row_map.source),
        "data_plate": None if plate is None else plate.name,
        "prior": fingerprint(beliefs) if beliefs else None,
        "init": init if isinstance(init, str) else fingerprint(init),
        "seed": _described_seed(seed),
        "max_iter": int(settings.max_iter),
        "tol": float(settings.tol),
        "n_restarts": int(settings.n_restarts),
        "accelerate": bool(choices.accelerate),
        "schedule": repr(choices.schedule),
        "looks": [str(look) for look in choices.looks],
        "point": list(choices.point),
        "factors": factors if isinstance(factors, str | None) else [list(group) for group in factors],
        "order": None if choices.order is None else list(choices.order),
    }


def _described_seed(seed: Any) -> str | int | None:
    """Return a description of a seed; of a generator, the state that determines its next children."""
    if seed is None or isinstance(seed, int):
        return seed
    if isinstance(seed, np.random.Generator):
        source: Any = seed.bit_generator.seed_seq
        known = (source.entropy, source.spawn_key, source.n_children_spawned)
        return f"Generator {fingerprint(known)}"
    return f"{type(seed).__name__} {fingerprint(seed)}"


def _difference(name: str, theirs: Any, ours: Any) -> str:
    is_fingerprint = name == "seed" and (isinstance(theirs, str) or isinstance(ours, str))
    if is_fingerprint or name in ("model", "data", "init", "prior"):
        return f"its {name} {'differ' if name == 'data' else 'differs'}"
    return f"it had {name}={theirs!r}, and this call has {name}={ours!r}"
