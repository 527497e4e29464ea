"""What is demanded of every fit: finite numbers, densities, a bound that never falls, errors of our own."""

from __future__ import annotations

import re
import traceback
import warnings
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

import caviar as cv
from caviar.engine.ascent.status import Status
from torture.case import Case
from torture.shells import SHELLS, is_em, takes_missing

__all__ = ["Outcome", "as_floats", "covariance_problems", "outcome_of", "problems_of"]

EXPECTED_WARNINGS = (ConvergenceWarning, cv.CollapseWarning, cv.LostDigitsWarning)
_VALIDATION = ("sklearn", "narwhals")
"""Libraries that check the shape of a table, its names and what it holds, in words of their own."""
_ROUNDING = 1e-10
"""Fall of the bound, relative to the sizes of its terms, that counts as rounding."""
_LEAST = 1e-12
"""Fall of the bound, in nats, that is rounding of numbers of order one that cancel."""
_EPS = 4 * np.finfo(float).eps
"""Rounding of an eigenvalue of a correlation matrix, for each of its columns."""
_FAR = 1e3
"""Where densities are evaluated besides: this many times the size of the data away from them."""
_FARTHEST = 1e151
"""Rows beyond have squares that are no doubles; their responsibilities are refused in words."""


@dataclass(frozen=True)
class Outcome:
    """What came of a fit: ``"fitted"``, ``"refused"`` or ``"collapsed"``; and what is wrong with it."""

    kind: str
    message: str = ""
    problems: list[str] = field(default_factory=list)


def _is_of_few_rows(warning: warnings.WarningMessage, rows: Any, case: Case) -> bool:
    """Whether a warning says that there are fewer rows than components, and there are."""
    told = re.match(r"X has (\d+) rows?, fewer than the (\d+) components", str(warning.message))
    return told is not None and int(told[1]) <= len(rows) and int(told[1]) < int(told[2]) == case.n_components


def outcome_of(case: Case, shell: str, max_iter: int = 20) -> Outcome:
    """Fit a data set with a shell, and return what came of it."""
    rows, kept = case.rows(), case.rows()
    estimator = SHELLS[shell](case.n_components, max_iter=max_iter, random_state=0)
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        try:
            estimator.fit(rows, sample_weight=case.weights(len(rows)))
            outcome = _of_fit(estimator, rows, case, shell)
        except Exception as error:  # noqa: BLE001  (any error at all is an outcome)
            outcome = _of_error(error, case, shell)
    foreign = [
        w
        for w in given
        if not issubclass(w.category, EXPECTED_WARNINGS) and not _is_of_few_rows(w, rows, case)
    ]
    problems = [f"warned: {w.category.__name__}: {w.message}" for w in foreign]
    if not _same(rows, kept):
        problems.append("the rows were changed")
    return replace(outcome, problems=outcome.problems + problems)


def _of_fit(mixture: Any, rows: Any, case: Case, shell: str) -> Outcome:
    try:
        problems = [*problems_of(mixture, rows)]
    except Exception as error:  # noqa: BLE001
        problems = [f"after the fit: {_with_place(error)}"]
    collapsed = mixture.posterior_.status is Status.COLLAPSED
    if collapsed and not is_em(shell):
        problems.append("collapsed under proper priors")
    if _words(case, shell):
        problems.append(f"was to be refused with {_words(case, shell)!r}")
    return Outcome("collapsed" if collapsed else "fitted", "", problems)


def _words(case: Case, shell: str) -> str:
    return case.refused_by_em if is_em(shell) and case.refused_by_em else case.refused


def _of_error(error: Exception, case: Case, shell: str) -> Outcome:
    message = f"{type(error).__name__}: {error}"
    if not _is_ours(error):
        return Outcome("failed", message, [_with_place(error)])
    words = _words(case, shell)
    if words and words in str(error):
        return Outcome("refused", message)
    if not words and not takes_missing(shell) and _has_missing(case) and "NaN" in str(error):
        return Outcome("refused", message)
    return Outcome(
        "refused", message, [f"refused, {f'without {words!r}' if words else 'unasked'}: {message}"]
    )


def _is_ours(error: Exception) -> bool:
    """Whether an error is of our tree; or of scikit-learn's check of a table's shape and content."""
    if isinstance(error, cv.CaviarError):
        return True
    within = Path(_place(error).filename).parts
    return isinstance(error, ValueError | TypeError) and any(library in within for library in _VALIDATION)


def _place(error: Exception) -> traceback.FrameSummary:
    return traceback.extract_tb(error.__traceback__)[-1]


def _with_place(error: Exception) -> str:
    place = _place(error)
    return f"{type(error).__name__}: {error} at {place.filename}:{place.lineno}"


def _has_missing(case: Case) -> bool:
    try:
        return bool(np.isnan(as_floats(case.rows())).any())
    except (TypeError, ValueError):
        return False


def as_floats(rows: Any) -> np.ndarray:
    """Return rows in any container as an array of doubles, NaN where one is missing."""
    if hasattr(rows, "astype") and hasattr(rows, "columns"):
        return rows.astype("float64").to_numpy()
    return np.asarray(rows, dtype=np.float64)


def _in_the_same_container(array: np.ndarray, rows: Any) -> Any:
    """Return new rows under the names that the fitted ones had."""
    return type(rows)(array, columns=rows.columns) if _is_pandas(rows) else _as_polars(array, rows)


def _is_pandas(rows: Any) -> bool:
    return type(rows).__module__.startswith("pandas")


def _as_polars(array: np.ndarray, rows: Any) -> Any:
    return type(rows)(array, schema=rows.columns) if type(rows).__module__.startswith("polars") else array


def _same(rows: Any, kept: Any) -> bool:
    if hasattr(rows, "equals"):
        return bool(rows.equals(kept))
    a, b = np.asarray(rows), np.asarray(kept)
    return np.array_equal(a, b, equal_nan=a.dtype.kind == "f")


def problems_of(mixture: Any, rows: Any):
    """Yield what is wrong with a fit."""
    names = ("elbo_", "elbo_trace_", "weights_", "means_", "covariances_", "precisions_")
    infinite = [name for name in names if not np.all(np.isfinite(getattr(mixture, name)))]
    if infinite:
        # nothing more can be asked of such a fit
        yield f"{', '.join(infinite)} is not finite"
        return
    if abs(mixture.weights_.sum() - 1) > 1e-9 or np.any(mixture.weights_ < 0):
        yield f"weights_ sum to {mixture.weights_.sum()}"
    yield from _falls(mixture, rows)
    yield from covariance_problems(mixture)
    yield from _densities(mixture, rows)


def _falls(mixture: Any, rows: Any):
    posterior = mixture.posterior_
    if posterior.status is Status.FELL:
        yield "status fell"
    scale = sum(abs(term) for term in posterior.elbo_terms.values()) + np.abs(mixture.elbo_trace_).max()
    largest = -np.diff(mixture.elbo_trace_).min(initial=0.0)
    if largest > _ROUNDING * scale + _EPS * _cancelled(mixture, rows) + _LEAST:
        yield f"the bound fell by {largest:.3g}, its terms are {scale:.3g}"


def _cancelled(mixture: Any, rows: Any) -> float:
    """Return the nats that are added up in squared distances, however they cancel.

    Where columns are nearly collinear, or take few values, precisions are so large that products of two columns cancel
    to a few nats.
    """
    if mixture.covariance_type == "unit":
        return 0.0
    with np.errstate(invalid="ignore"):
        X = np.nan_to_num(as_floats(rows))
    away = np.abs(X - X.mean(axis=0))
    precisions = np.abs(_precision_matrices(mixture, X.shape[1]))
    with np.errstate(over="ignore"):
        # of each row, the largest precision of all components
        sizes = np.einsum("ni,ij,nj->", away, precisions.max(axis=0), away)
    return float(np.nan_to_num(sizes, nan=0.0, posinf=0.0))


def _precision_matrices(mixture: Any, size: int) -> np.ndarray:
    """Return the precisions of the components as matrices, (K, D, D), or (1, D, D) where all have one."""
    own = np.asarray(mixture.precisions_)
    if mixture.covariance_type == "diag":
        return own[:, :, None] * np.eye(size)
    if mixture.covariance_type == "spherical":
        return own[:, None, None] * np.eye(size)
    return own.reshape(-1, size, size)


def covariance_problems(mixture: Any):
    """Yield what is wrong with the covariances of a fit: ours, or scikit-learn's."""
    covariances = mixture.covariances_
    if mixture.covariance_type in ("full", "tied"):
        # in units of its own deviations, so that the units of the columns do not matter
        deviations = np.sqrt(np.diagonal(covariances, axis1=-2, axis2=-1))
        if not np.all(deviations > 0):
            yield "a variance is not positive"
            return
        correlations = covariances / deviations[..., :, None] / deviations[..., None, :]
        least = np.linalg.eigvalsh(correlations).min()
        if least < -_EPS * covariances.shape[-1]:
            yield f"a covariance matrix is not positive definite: least eigenvalue {least:.3g}"
    elif not np.all(covariances > 0):
        yield "a variance is not positive"


def _densities(mixture: Any, rows: Any):
    X = as_floats(rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        size = np.nan_to_num(np.nanmax(np.abs(X), axis=0))
    out = np.minimum(_FAR * np.maximum(size, np.finfo(float).tiny), _FARTHEST)
    places = {"the rows": rows, "rows far out": _in_the_same_container(np.stack([out, -out]), rows)}
    for where, at in places.items():
        log_densities = mixture.score_samples(at)
        beyond = np.nanmax(np.abs(as_floats(at)), axis=1, initial=0.0) > _FARTHEST
        if not np.all(np.isfinite(log_densities[~beyond])) or np.any(~(log_densities < np.inf)):
            yield f"score_samples is not finite at {where}"
        if beyond.any():
            continue
        shares = mixture.predict_proba(at)
        if (
            not np.all(np.isfinite(shares))
            or np.any(shares < 0)
            or np.any(np.abs(shares.sum(axis=1) - 1) > 1e-9)
        ):
            yield f"predict_proba does not sum to one at {where}"
