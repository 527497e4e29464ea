"""Many fits in one call: batches of groups whose shapes agree, on threads; what cannot be in a batch by itself."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from contextvars import copy_context
from functools import partial
from threading import Lock
from typing import Any, Literal

import numpy as np

from ..._errors import CaviarError, DataError, ParameterError, SkippedGroupsWarning
from ..._typing import AnyArray, Array
from ...engine.ascent.problem import Problem
from ...engine.assemble import again, why_not_grouped
from ...engine.design.keys import ColumnKey
from ...engine.groups.fit import Ended, Part, begin_groups, end_groups, last_ends
from ...engine.groups.problem import GroupedProblem, Groups
from ...engine.starts.from_data import follows_from_labels
from ...execution.memory import keep_freed_memory
from ...execution.threads import usable_cores
from ...numerics.blas import one_blas_thread
from ..model import Model, assembled
from ..progress import LongFit, groups_in_words, line_where_somebody_looks, lines, parts_told
from .fits import ManyFits
from .kinds import Differences, FittedMany, ManyModels, ManyStatements
from .tables import Tables, batches, tables_of

log = logging.getLogger("caviar")

_FEWEST = 3
"""Groups of a batch: fewer are fitted by themselves."""

_CHECKED_OF, _MOST_CHECKED = 50, 3
"""Of so many groups of a batch one is fitted by itself as well, and no more than these in all."""

_LOW, _SHARE_LOW = 0.02, 0.5
"""Nats a row by which a group ends low, and the share of those checked from which all are fitted one by one."""

_LINES = 20
"""Lines that progress is told in."""


def fit_many(
    what: Any,
    tables: Any,
    *,
    by: str | None = None,
    n_jobs: int | None = None,
    progress: bool | Callable[[int, int], object] | None = None,
    errors: Literal["raise", "skip"] = "raise",
    **arguments: Any,
) -> ManyFits:
    """Fit one model separately to each of many tables, thousands of groups in one call.

    Groups with the same columns are fitted together in a batch, which is faster than single fits. From the same start,
    each group has the same updates and ends at the same optimum as in a single fit. The batch makes the starts too:
    k-means of the columns or of whitened rows, whichever has the higher objective. If its labels are ambiguous, or the
    objective may be higher with two components merged, several others are made, and the best is kept. Groups with
    missing values or a component that collapses, and other kinds of models, are fitted one by one.

    Parameters
    ----------
    what
        A :class:`caviar.Model`, or an unfitted estimator of mixtures of Gaussians.
    tables
        A list of tables, or a mapping from the name of each group to its table; with ``by=``, one table. A table is an
        array (N, D), a table of pandas, Polars or Arrow, or for a model a mapping from names of observed variables to
        arrays, as for :meth:`Model.fit`. The numbers of rows may differ.
    by
        Name of the column with the group of each row; the other columns are the data.
    n_jobs
        Number of threads; by default one for each core. The results do not depend on it.
    progress
        None shows a line on a terminal or in a notebook after five seconds: how many groups are finished, and how
        long the rest takes at least. True prints lines on standard error, False nothing. A function is called with the
        number of finished groups and the number of all groups.
    errors
        What happens if a group cannot be fitted, such as one of fewer rows than components: ``"raise"`` the error, or
        ``"skip"`` the group. The fits then lack it, a warning says how many they lack, and ``fits.errors`` has the
        error of each.
    **arguments
        For a model, ``seed``, ``max_iter``, ``tol``, ``n_restarts`` and ``point``, as for :meth:`Model.fit`. An
        estimator takes none, because it has these already.

    Returns
    -------
    ManyFits
        A sequence: ``fits[0]`` is the posterior, or the fitted estimator, of the first group. ``fits.elbo`` and
        ``fits.to_frame()`` describe all groups.

    Raises
    ------
    DataError, ParameterError, ImproperError
        If a group cannot be fitted; the message begins with its name. With ``errors="skip"``, if no group can.

    Warns
    -----
    SkippedGroupsWarning
        If groups are skipped.

    Examples
    --------
    >>> import numpy as np, caviar as cv
    >>> rng = np.random.default_rng(0)
    >>> tables = {
    ...     city: rng.normal(size=(200, 2)) + 4 * rng.integers(2, size=(200, 1)) for city in ["Bern", "Oslo"]
    ... }
    >>> fits = cv.fit_many(cv.BayesianGaussianMixture(2, random_state=0), tables)
    >>> fits.keys
    ('Bern', 'Oslo')
    >>> fits["Oslo"].means_.shape
    (2, 2)
    """
    statements = _statements_of(what, arguments)
    n_threads = usable_cores() if n_jobs in (None, -1) else n_jobs
    if isinstance(n_threads, bool) or not isinstance(n_threads, int) or n_threads < 1:
        raise ParameterError(
            f"n_jobs must be a number of threads >= 1, or None for all cores; got {n_jobs!r}"
        )
    if errors not in ("raise", "skip"):
        raise ParameterError(f"errors is 'raise' or 'skip'; got {errors!r}")
    data = tables_of(statements, tables, by)
    keep_freed_memory()
    with _told(progress, len(data.keys)) as told, one_blas_thread():
        made, alone = _fitted(statements, data, n_threads, told, is_raised=errors == "raise")
    failed = {number: fit for number, fit in alone.items() if isinstance(fit, Exception)}
    if failed:
        first = failed[min(failed)]
        if len(failed) == len(data.keys):
            raise first
        warnings.warn(
            f"{len(failed)} of {len(data.keys)} groups are skipped, and fits.errors says why; the first: {first}",
            SkippedGroupsWarning,
            stacklevel=2,
        )
    return ManyFits(data, statements, made, alone)


def _statements_of(what: Any, arguments: Mapping[str, Any]) -> ManyStatements:
    if isinstance(what, Model):
        return ManyModels(what, arguments)
    if isinstance(what, FittedMany):
        return what._of_many(arguments)
    raise ParameterError(
        f"fit_many takes a Model, or an estimator of mixtures of Gaussians; got {what!r:.80}. Fit others one by one"
    )


def _fitted(
    statements: ManyStatements, data: Tables, n_threads: int, told: _Told, *, is_raised: bool
) -> tuple[list[Ended], dict[int, Any]]:
    """Return the groups that ended in batches, and by number of a group what was fitted by itself, or its error."""
    seeds = np.random.default_rng(statements.lengths.seed)
    several = list(batches(data))
    tasks = [(part, len(parts) == 1) for parts in several for part in parts]
    own = list(zip(tasks, seeds.spawn(len(tasks)), strict=True))

    # fits in other threads are parts of this call as well
    here = copy_context()

    def begin(task: tuple[tuple[AnyArray, bool], np.random.Generator]) -> Part | None:
        (groups, is_alone), rng = task
        return here.copy().run(_begun, statements, data, groups, rng, told, is_alone=is_alone)

    def end(
        task: tuple[tuple[list[AnyArray], list[Part]], np.random.Generator],
    ) -> tuple[list[Ended], AnyArray]:
        (groups, parts), rng = task
        return here.copy().run(_ended, statements, data, np.concatenate(groups), parts, rng, told)

    with ThreadPoolExecutor(n_threads) as pool:
        begun = iter(list(pool.map(begin, own)))
        parts = [
            [part for _, part in zip(groups, begun, strict=False) if part is not None] for groups in several
        ]
        batched = zip(zip(several, parts, strict=True), seeds.spawn(len(several)), strict=True)
        found = list(pool.map(end, batched))
        left = np.concatenate([groups for _, groups in found])
        each = list(zip(left.tolist(), seeds.spawn(len(left)), strict=True))

        def single(task: tuple[int, np.random.Generator]) -> Any:
            fit = here.copy().run(_alone, statements, data, *task)
            if isinstance(fit, Exception) and is_raised:
                raise fit
            told.ended(1)
            return fit

        alone = dict(zip(left.tolist(), pool.map(single, each), strict=True))
    return [own for ended, _ in found for own in ended], alone


def _alone(statements: ManyStatements, data: Tables, group: int, seed: np.random.Generator) -> Any:
    """Return the fit of a group, or the error that it has, which names the group."""
    try:
        return statements.alone(data.tables[group], seed)
    except (CaviarError, ValueError) as error:
        message = f"group {data.keys[group]!r}: {error}"
        own = type(error)(message) if isinstance(error, CaviarError) else DataError(message)
        own.__cause__ = error
        return own


def _begun(
    statements: ManyStatements,
    data: Tables,
    groups: AnyArray,
    rng: np.random.Generator,
    told: _Told,
    *,
    is_alone: bool,
) -> Part | None:
    """Return a part of a batch whose fits have begun, without groups to be fitted one by one; None if all are.

    Parameters
    ----------
    is_alone
        Whether the batch has no other parts.
    """
    counts = data.counts[groups]
    if len(groups) < _FEWEST or not counts.min():
        return None
    values = data.stacked(groups)
    if any(own.dtype.kind not in "biuf" for own in values.values()):
        return None
    finite = [np.isfinite(own).reshape(len(groups), -1).all(axis=1) for own in values.values()]
    is_odd = ~np.logical_and.reduce(finite)
    differences = None if is_odd.any() else statements.differences(values, counts)
    if differences is None or differences.is_odd.any():
        is_odd = is_odd if differences is None else differences.is_odd
        left = groups[~is_odd]
        return _begun(statements, data, left, rng, told, is_alone=is_alone) if left.size else None
    problem = _problem_of(statements, data, groups, values, differences)
    if problem is None:
        return None
    own = statements.lengths
    hear = partial(told.going_on, groups[0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        how = {"n_restarts": own.n_restarts, "is_alone": is_alone, "hear": hear}
        part = begin_groups(problem, groups, rng, own.max_iter, own.tol, **how)
    if not is_alone:
        told.ended(part.n_ended, of=groups[0])
    return part


def _ended(
    statements: ManyStatements,
    data: Tables,
    groups: AnyArray,
    parts: Sequence[Part],
    rng: np.random.Generator,
    told: _Told,
) -> tuple[list[Ended], AnyArray]:
    """Return the groups of a batch that ended together, and the numbers of those to be fitted one by one."""
    if not parts:
        return [], groups
    own = statements.lengths
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        ended = end_groups(parts, rng, own.max_iter, own.tol, n_restarts=own.n_restarts)
    batched, elbo = last_ends(ended)
    is_low = batched.size and _ends_low(statements, data, batched, elbo, rng)
    before = sum([part.n_ended for part in parts]) if len(parts) > 1 else 0
    told.ended((0 if is_low else len(batched)) - before, of=parts[0].groups[0])
    return ([], groups) if is_low else (ended, groups[~np.isin(groups, batched)])


def _problem_of(
    statements: ManyStatements,
    data: Tables,
    groups: AnyArray,
    values: Mapping[str, AnyArray],
    differences: Differences,
) -> GroupedProblem | None:
    """Return the problem of groups with these values, (G, N, ...); None where they are no batch."""
    table, counts = data.tables[groups[0]], data.counts[groups]
    stated = statements.stated(table)
    try:
        one = assembled(stated.model, table, stated.point)
    except CaviarError:
        return None
    if why_not_grouped(one) or not follows_from_labels(one) or _is_unlike(one, counts, values):
        return None
    columns = {ColumnKey(name): own for name, own in values.items()}
    problem = GroupedProblem(one, again, Groups(columns, counts, differences.constants, differences.floors))
    return problem if problem.is_like_one else None


def _ends_low(
    statements: ManyStatements, data: Tables, groups: AnyArray, elbo: Array, rng: np.random.Generator
) -> bool:
    """Whether single fits of some groups show that the starts of their batch lead too low.

    If the first of these is no higher, the others are not made.

    Parameters
    ----------
    groups, elbo
        Numbers of the groups, and where they have ended, (G,).
    """
    number = min(_MOST_CHECKED, 1 + len(groups) // _CHECKED_OF)
    places = np.linspace(0, len(groups) - 1, number).round().astype(np.intp)
    n_low = 0
    for place, seed in zip(places.tolist(), rng.spawn(number), strict=True):
        fit = _alone(statements, data, int(groups[place]), seed)
        if not isinstance(fit, Exception):
            gain = float(statements.posterior_of(fit).elbo) - elbo[place]
            n_low += int(gain > _LOW * data.counts[groups[place]])
        if not n_low:
            return False
    return bool(n_low > _SHARE_LOW * number)


def _is_unlike(one: Problem, counts: AnyArray, values: Mapping[str, AnyArray]) -> bool:
    """Whether the data of some groups are not as many rows as the model says, each a row of numbers."""
    row = one.bound.data_plate
    if any(own.plates[:1] != (row,) for own in one.bound.observed):
        return True
    has_other_size = row is not None and row.size is not None and (counts != row.size).any()
    return bool(has_other_size) or _has_categories(one, values)


def _has_categories(one: Problem, values: Mapping[str, AnyArray]) -> bool:
    """Whether some columns are of categories, of which k-means often finds no clusters."""
    observed = [node for node in one.bound.observed if node.name in values]
    rows = [(node, values[node.name][:1, :1].astype(np.float64)) for node in observed]
    return any(node.evened(own).shape != own.shape for node, own in rows)


class _Told:
    """What is told of the groups that have ended; several threads tell it.

    Parameters
    ----------
    progress
        As of :func:`fit_many`.
    n_groups
        Number of all groups.
    line
        The line that a user looks at; None if nobody does.
    """

    def __init__(
        self, progress: bool | Callable[[int, int], object] | None, n_groups: int, line: LongFit | None
    ) -> None:
        self._progress, self._n_groups, self._line = progress, n_groups, line
        self._done, self._within, self._lock = 0, dict[int, int](), Lock()

    def ended(self, number: int, *, of: int = -1) -> None:
        """Tell that so many more groups have ended, all those of a part of a batch that will for now."""
        progress, n_groups = self._progress, self._n_groups
        with self._lock:
            before, self._done = self._done, self._done + number
            self._within.pop(of, None)
            if callable(progress):
                progress(self._done, n_groups)
            elif progress and (
                self._done == n_groups or self._done * _LINES // n_groups > before * _LINES // n_groups
            ):
                log.info("%d of %d groups", self._done, n_groups)
            self._show()

    def going_on(self, part: int, n_ended: int) -> None:
        """Show that a part of a batch goes on, of which so many groups have ended for now."""
        with self._lock:
            self._within[part] = n_ended
            self._show()

    def fit_goes_on(self, event: object) -> None:
        """Show that a fit of one group goes on."""
        with self._lock:
            self._show()

    def _show(self) -> None:
        if self._line is not None:
            done = min(self._done + sum(self._within.values()), self._n_groups)
            self._line.tell(lambda seconds: groups_in_words(done, self._n_groups, seconds))


@contextmanager
def _told(progress: bool | Callable[[int, int], object] | None, n_groups: int) -> Iterator[_Told]:
    """Yield what progress is told to."""
    with line_where_somebody_looks() if progress is None else nullcontext() as line:
        told = _Told(progress, n_groups, line)
        with lines() if progress is True else nullcontext(), parts_told(told.fit_goes_on):
            yield told
