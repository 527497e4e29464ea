"""Bayesian mixtures compared across numbers of components and covariance structures.

The result of a comparison of mixtures: a table, and the best of them.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from numbers import Integral
from typing import Any

import numpy as np
from scipy.special import gammaln
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_array

from .._errors import DataError, ParameterError
from .._tables import html_of, text_table
from .._typing import AnyArray, Array
from ..data import Table
from ..data.columns.missing_codes import OF_CODES
from ..engine.ascent.driver import Progress
from ..engine.ascent.status import Status
from ..fitting.progress import lines, reporter
from ..numerics.arguments import require_share, require_whole
from .arguments.checkpointing import Checkpointing
from .arguments.checks import as_generator, require_choice
from .automatic.arguments import AUTO_CONCENTRATION, is_auto
from .bayesian_gaussian_mixture import BayesianGaussianMixture
from .mixed_mixture import MixedMixture
from .structures import STRUCTURES
from .tables.given_tables import is_coded, names_of, require_table, words_told
from .tables.lazy_rows import checked_weights, lazy_rows, mean_of_rows, whole
from .tables.mixed_columns import count_of_rows, some_rows

_STRUCTURES = ("full", "tied", "diag", "spherical")


def compare_mixtures(
    X: Any,
    n_components: int | str | Iterable[int | str] = range(1, 7),
    covariance_type: str | Iterable[str] | None = None,
    *,
    estimator: BayesianGaussianMixture | MixedMixture | None = None,
    sample_weight: Any = None,
    held_out: float | None = None,
    n_init: int = 3,
    random_state: Any = None,
    verbose: bool | Callable[[Progress], None] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: float = 60.0,
    **arguments: Any,
) -> MixtureComparison:
    r"""Fit Bayesian mixtures with each number of components and covariance structure, and compare them by their ELBO.

    The ELBO is a lower bound of the log evidence :math:`\log p(X \mid K, \text{structure})`, including all constants,
    so it weighs fit against model size without an extra penalty.

    Parameters
    ----------
    X
        Rows, shape (N, D), as for :meth:`BayesianGaussianMixture.fit`; NaN marks missing entries. With a
        ``MixedMixture``, any table that it accepts.
    n_components
        One or several numbers K. ``"auto"`` is the number found by splits, merges and deletions.
    covariance_type
        One or several structures, see :class:`BayesianGaussianMixture`; by default full, tied, diag and spherical. A
        ``MixedMixture`` has none.
    estimator
        An unfitted mixture whose other arguments are used for all fits: by default a :class:`BayesianGaussianMixture`,
        or a :class:`MixedMixture` for columns of several kinds.
    sample_weight
        Weight of each row, shape (N,), not negative. A row of weight 2 counts as two equal rows.
    held_out
        Share of the rows, between 0 and 1, that is held out. Each mixture is fitted again without these rows, and the
        table has their mean log density. None makes no such fits.
    n_init
        Number of starts of each fit; the best fit is kept.
    random_state
        Seed of the starts and of the choice of held-out rows: a whole number, a Generator or a RandomState.
    verbose
        By default a comparison of more than 5 seconds shows one line that changes, if standard error is a terminal, and
        in notebooks. True prints a line for each fit, False nothing. A function is called with the
        :class:`caviar.Progress` of each iteration.
    checkpoint
        Path of a file that keeps the state of the comparison. The same call continues from there and does not repeat
        finished fits; their seconds in the table are then those of reading the file. It needs a ``random_state``.
    checkpoint_every
        Seconds between two writes of the file; 0 writes it after every iteration.
    **arguments
        Further arguments of the estimator, for all fits. The default of ``weight_concentration_prior`` is 1 for every
        K; then the prior of the weights does not depend on K.

    Returns
    -------
    MixtureComparison
        It prints as a table and has ``rows``, ``best`` (the estimator with the highest ELBO, fitted to all rows) and
        ``to_dict()``. After an interruption it contains the fits made so far.

    Raises
    ------
    ValueError
        If the data or an argument is invalid; the message says what was expected.

    Notes
    -----
    *log K!* If components are well separated, q covers only one of the K! equivalent numberings of the components, so
    the ELBO is about log K! below the log evidence, and ELBO + log K! is the better estimate. If components overlap or
    are superfluous, the modes of the numberings overlap, less is lost, and the sum may exceed the log evidence: it is
    not a bound. ``best`` is chosen by the ELBO itself. If the two criteria disagree, the data do not decide. See
    section 2 of ``docs/mathematics.md``.

    ELBOs can also be compared between priors, for example ``covariance_prior="auto"`` and ``"empirical"``.

    Examples
    --------
    >>> import caviar as cv
    >>> X = cv.datasets.load_faithful().values
    >>> found = cv.compare_mixtures(X, (1, 2, 3), ("full", "tied"), random_state=0)
    >>> for row in found.rows:
    ...     print(row.n_components, row.covariance_type, f"{row.elbo:.1f} {row.corrected:.1f}")
    1 full -1306.4 -1306.4
    2 full -1167.6 -1167.0
    3 full -1170.5 -1168.7
    1 tied -1306.4 -1306.4
    2 tied -1169.4 -1168.7
    3 tied -1165.3 -1163.5
    >>> found.best.n_components, found.best.covariance_type
    (3, 'tied')
    """
    like = BayesianGaussianMixture() if estimator is None else estimator
    settings = _settings(like, n_components, covariance_type, arguments)
    X = _checked(like, X, held_out)
    n_rows, is_numeric = count_of_rows(X), not isinstance(like, MixedMixture)
    weights = (
        None
        if sample_weight is None
        else checked_weights(sample_weight, X if is_numeric else np.empty((n_rows, 1)))
    )
    require_whole("n_init", n_init, 1)
    generator = as_generator(random_state)
    split = None if held_out is None else _split(n_rows, held_out, weights, generator)
    given = {**_prior_of(like), **arguments, "n_init": n_init}
    kept = Checkpointing(checkpoint, checkpoint_every)
    kept.check(random_state)
    with kept.opened() as next_fit, _told(verbose) as (tell, callback):
        table = _Table(X, weights, split, Checkpointing(next_fit))
        seeds = generator.integers(2**31, size=len(settings))
        for number, (setting, seed) in enumerate(zip(settings, seeds, strict=True)):
            told = False if callback is None else _of_fit(callback, number, len(settings))
            fresh = clone(like).set_params(**given, **setting, random_state=int(seed), verbose=told)
            row = table.added(fresh)
            if row is None:
                break
            tell(
                f"fit {number + 1}/{len(settings)}  {row.n_components} components, {row.covariance_type or 'mixed'}  "
                f"ELBO {row.elbo:.6f}  {row.seconds:.2f} s"
            )
    return table.comparison(len(settings))


@contextmanager
def _told(
    verbose: bool | Callable[[Progress], None] | None,
) -> Iterator[tuple[Callable[[str], object], Callable[[Progress], object] | None]]:
    """Yield what is told of each fit, and what is called in each, if anything."""
    if verbose is True:
        with lines() as tell:
            yield tell, None
    else:
        with reporter(verbose) as callback:
            yield (lambda line: None), callback


def _of_fit(tell: Callable[[Progress], object], fit: int, n_fits: int) -> Callable[[Progress], object]:
    """Return a function that tells the progress of a fit as that of one of several."""
    return lambda event: tell(replace(event, fit=fit, n_fits=n_fits))


def _prior_of(like: Any) -> dict[str, Any]:
    """Return the prior of the weights, which is the same for all numbers of components."""
    given = like.weight_concentration_prior
    return {"weight_concentration_prior": AUTO_CONCENTRATION if given is None else given}


def _checked(like: Any, X: Any, held_out: float | None) -> Any:
    """Return rows as the estimator takes them, after they were checked; a table of several kinds as it is."""
    if isinstance(like, MixedMixture):
        return X
    rows, names = lazy_rows(X), names_of(X)
    if rows is not None and (held_out is not None or (names is not None and rows.is_held)):
        values = whole(rows, "held_out")
    elif rows is not None:
        return rows
    else:
        require_table(X)
        with words_told(X, "give estimator=MixedMixture(), which takes columns of texts as categories"):
            X = X.values if is_coded(X) and not X.categories else X
            values = check_array(X, dtype="numeric", ensure_all_finite="allow-nan", input_name="X")
    return values if names is None else Table(values, names)


def _settings(
    like: Any, n_components: Any, covariance_type: Any, arguments: dict[str, Any]
) -> list[dict[str, Any]]:
    """Return what differs between the fits, after checking it."""
    if not isinstance(like, BayesianGaussianMixture | MixedMixture):
        raise ParameterError(
            f"estimator must be a BayesianGaussianMixture or a MixedMixture, not fitted; got {like!r:.80}"
        )
    one_number = isinstance(n_components, (Integral, str))
    numbers = [n_components] if one_number else list(n_components)
    for number in numbers:
        if not is_auto(number):
            require_whole("n_components, or each in it,", number, 1)
    structures = _structures(like, covariance_type)
    if not numbers or not structures:
        raise ParameterError("n_components and covariance_type must each have at least one value; got none")
    known = set(like.get_params())
    for name in arguments:
        if name not in known:
            raise ParameterError(
                f"neither compare_mixtures nor {type(like).__name__} has an argument {name!r}; the latter has "
                f"{', '.join(sorted(known))}"
            )
    return [{**own, "n_components": k} for own in structures for k in numbers]


def _structures(like: Any, covariance_type: Any) -> list[dict[str, Any]]:
    """Return what differs between fits with the same number of components."""
    if isinstance(like, MixedMixture):
        if covariance_type is not None:
            raise ParameterError(
                "given the component the columns of a MixedMixture are independent; leave covariance_type out"
            )
        return [{}]
    if covariance_type is None:
        covariance_type = _STRUCTURES
    structures = [covariance_type] if isinstance(covariance_type, str) else list(covariance_type)
    for structure in structures:
        require_choice("covariance_type, or each in it,", structure, tuple(STRUCTURES))
    return [{"covariance_type": structure} for structure in structures]


def _split(n_rows: int, share: float, weights: Array | None, generator: np.random.Generator) -> AnyArray:
    """Return which rows are held out, shape (N,)."""
    share = require_share("held_out", share)
    candidates = np.arange(n_rows) if weights is None else np.flatnonzero(weights)
    n_held = max(1, round(share * len(candidates)))
    if n_held >= len(candidates):
        raise DataError(
            f"held_out={share} of {len(candidates)} rows with weight leaves none to fit; give more rows, "
            f"or leave held_out out"
        )
    chosen = np.zeros(n_rows, dtype=bool)
    chosen[generator.permutation(candidates)[:n_held]] = True
    return chosen


@dataclass
class _Table:
    """The rows so far, and the best estimator among them."""

    X: Any
    weights: Array | None
    split: AnyArray | None
    kept: Checkpointing

    def __post_init__(self) -> None:
        self.rows: list[ComparisonRow] = []
        self.best: tuple[Any, ComparisonRow] | None = None

    def add(self, estimator: Any) -> ComparisonRow | None:
        """Fit an estimator and add its row; return the row, or None if the fit was interrupted."""
        begin = time.perf_counter()
        with warnings.catch_warnings():
            # the table says which did not converge
            warnings.simplefilter("ignore", ConvergenceWarning)
            if self.rows:
                # the first fit has told it
                warnings.filterwarnings("ignore", message=OF_CODES)
            held_out = None if self.split is None else self._held_out(estimator, self.split)
            begin = time.perf_counter() if held_out is not None else begin
            if held_out is not None:
                warnings.filterwarnings("ignore", message=OF_CODES)
            estimator._fit(self.X, None, self.weights, None, self.kept)
        if estimator.posterior_.status is Status.INTERRUPTED:
            return None
        row = ComparisonRow(
            estimator.n_components_,
            getattr(estimator, "covariance_type", None),
            estimator.elbo_,
            estimator.elbo_ + float(gammaln(estimator.n_components_ + 1)),
            estimator.n_iter_,
            estimator.converged_,
            time.perf_counter() - begin,
            held_out,
        )
        self.rows.append(row)
        if self.best is None or row.elbo > self.best[1].elbo:
            self.best = (estimator, row)
        return row

    def added(self, estimator: Any) -> ComparisonRow | None:
        """Do what :meth:`add` does; None also if the fit to a part of the rows was interrupted."""
        try:
            return self.add(estimator)
        except KeyboardInterrupt:
            return None

    def _held_out(self, estimator: Any, split: AnyArray) -> float:
        """Return the mean log density of rows that a fit has not seen."""
        seen, unseen = (None if self.weights is None else self.weights[rows] for rows in (~split, split))
        estimator._fit(some_rows(self.X, ~split), None, seen, None, self.kept)
        if estimator.posterior_.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        return mean_of_rows(estimator.score_samples(some_rows(self.X, split)), unseen)

    def comparison(self, n_asked: int) -> MixtureComparison:
        """Return the table; warn if fits are missing.

        Raises
        ------
        KeyboardInterrupt
            If there is not even one.
        """
        if self.best is None:
            raise KeyboardInterrupt
        if len(self.rows) < n_asked:
            warnings.warn(
                f"compare_mixtures was interrupted after {len(self.rows)} of {n_asked} fits; the table has these",
                ConvergenceWarning,
                stacklevel=3,
            )
        return MixtureComparison(tuple(self.rows), *self.best)


@dataclass(frozen=True)
class ComparisonRow:
    """One fit of a comparison.

    Attributes
    ----------
    n_components
        K; where it was ``"auto"``, the number that was found.
    covariance_type
        What the components share; None of mixtures of mixed columns.
    elbo
        ELBO of all rows, a lower bound of the log evidence, in nats.
    corrected
        ``elbo`` + log K!, in nats; see :func:`compare_mixtures`.
    n_iter, converged
        Number of iterations of the best start, without the passes that find it, and whether the fit converged.
    seconds
        Seconds that all starts took together.
    held_out
        Mean log density of the held-out rows, in nats per row, under a fit to the other rows; None if no rows were held
        out.
    """

    n_components: int
    covariance_type: str | None
    elbo: float
    corrected: float
    n_iter: int
    converged: bool
    seconds: float
    held_out: float | None = None


_NAMES = tuple(entry.name for entry in fields(ComparisonRow))


@dataclass(frozen=True)
class MixtureComparison:
    """Fits of several mixtures, as :func:`caviar.compare_mixtures` returns them. It prints as a table.

    Attributes
    ----------
    rows
        One row for each fit, in the order of the fits.
    best
        The fitted estimator with the highest ELBO.
    best_row
        The row of the best estimator.
    """

    rows: tuple[ComparisonRow, ...]
    best: BayesianGaussianMixture | MixedMixture = field(repr=False)
    best_row: ComparisonRow

    def to_dict(self) -> dict[str, list[Any]]:
        """Return the table by column, name -> list with an entry for each row, which data frames accept."""
        return {name: [getattr(row, name) for row in self.rows] for name in _NAMES}

    def _cells(self) -> Iterator[tuple[str, ...]]:
        """Yield the header and the rows as text; the last column marks the best."""
        has_held_out = any(row.held_out is not None for row in self.rows)
        has_kinds = any(row.covariance_type is not None for row in self.rows)
        held_out = ("held out per row",) if has_held_out else ()
        yield (
            "K",
            *(("covariance",) if has_kinds else ()),
            "ELBO",
            "ELBO + log K!",
            "iterations",
            "seconds",
            *held_out,
            "",
        )
        for row in self.rows:
            held_out = ("" if row.held_out is None else f"{row.held_out:.4f}",) if has_held_out else ()
            yield (
                str(row.n_components),
                *((str(row.covariance_type),) if has_kinds else ()),
                f"{row.elbo:.2f}",
                f"{row.corrected:.2f}",
                str(row.n_iter) if row.converged else f"{row.n_iter}, not converged",
                f"{row.seconds:.2f}",
                *held_out,
                "best" if row is self.best_row else "",
            )

    def __str__(self) -> str:
        """Return the table."""
        cells = list(self._cells())
        return text_table(cells, left={cells[0].index("ELBO") - 1, len(cells[0]) - 1} - {0})

    def __repr__(self) -> str:
        """Return the table."""
        return str(self)

    def _repr_html_(self) -> str:
        """Return the table, for a notebook; the best row is bold."""
        best = {number for number, row in enumerate(self.rows, 1) if row is self.best_row}
        return html_of("", list(self._cells()), bold=best)
