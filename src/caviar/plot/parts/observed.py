"""Observed values beside their predictions, row by row: by the fit itself, or by fits without these rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..._errors import DataError, ParameterError
from ..._typing import AnyArray, Array
from ...families.approximations.by_moments import ByMoments
from ...lazy.rows import as_floats
from ...posterior.new_rows import rows_first
from ...posterior.posterior import Posterior
from ...posterior.prediction.prediction import Prediction
from ...posterior.prediction.residuals import from_the_rest
from .posterior_figures import placed, posterior_of

_FEW = 0.05
"""Share of rows that the fit may have seen among rows that are called new."""


@dataclass(frozen=True, eq=False)
class Beside:
    """Values of one observed variable, or of one entry of it, and their predictions.

    Attributes
    ----------
    name
        As it is written at an axis.
    values
        Those that are not missing, (N,).
    prediction
        Of the same values, each from the rest of its row.
    how
        Whether the fit has seen these rows, for a title.
    rows
        Numbers of the rows, (N,).
    """

    name: str
    values: Array
    prediction: Prediction
    how: str
    rows: AnyArray

    @property
    def by_moments(self) -> ByMoments:
        """The family of the predictions, given their means and standard deviations."""
        assert self.prediction.by_moments is not None
        return self.prediction.by_moments

    @property
    def is_continuous(self) -> bool:
        """Whether the values are real numbers, and no counts or outcomes 0 and 1."""
        return not self.by_moments.is_discrete

    @property
    def is_binary(self) -> bool:
        """Whether the values are 0 and 1."""
        return self.by_moments.is_binary


def beside(
    fitted: Any,
    data: Any,
    variable: str | None,
    entry: str | int | None,
    n_folds: int | None,
    seed: int | np.random.Generator | None = 0,
) -> Beside:
    """Return the values of an observed variable and their predictions.

    Parameters
    ----------
    fitted
        A posterior or a fitted estimator.
    data
        Rows, as the methods of the posterior or of the estimator take them.
    variable
        Name of the observed variable; it may be None where there is only one.
    entry
        Name or number of an entry of a vector.
    n_folds
        Parts of the rows, each predicted by a fit to the others; None for predictions by the fit itself.
    seed
        Seed of the division into folds.

    Raises
    ------
    ParameterError
        If there is no such variable or entry, or it is a label.
    DataError
        If the data do not contain the variable.
    """
    posterior, arrays = posterior_of(fitted), placed(fitted, data)
    name = of_rows(posterior, variable)
    if name not in arrays:
        raise DataError(f"the data lack '{name}', whose values the plot compares with predictions")
    observed = rows_first(posterior, name, as_floats(arrays[name]))
    if n_folds is None:
        told, rows, how = (
            from_the_rest(posterior, arrays, name),
            np.arange(len(observed)),
            _how(posterior, arrays),
        )
    else:
        parts, told = [], None
        for left, other in posterior.cross_validate(arrays, n_folds=n_folds, seed=seed):
            parts.append(left)
            own = _rows_of(from_the_rest(other, arrays, name), left, len(observed))
            told = own if told is None else _after(told, own)
        assert told is not None
        rows, how = np.concatenate(parts), f"by fits without them, {n_folds} folds"
    if told.is_label or told.by_moments is None:
        raise ParameterError(
            f"'{name}' is a label: plots of residuals and calibration are of numbers, counts, and outcomes 0 and 1. "
            f"caviar.plot.predictive_check shows how often each label occurs"
        )
    observed = observed[rows]
    told = _rows_of(told, np.arange(len(rows)), len(rows))
    title, observed, told = _entry(posterior, name, entry, observed, told)
    is_there = np.isfinite(observed) & np.isfinite(told.mean)
    if not is_there.any():
        raise DataError(f"'{name}' has no values that could be compared with predictions")
    return Beside(
        title,
        observed[is_there],
        _rows_of(told, is_there, len(is_there)),
        how,
        rows[np.flatnonzero(is_there)],
    )


def observed_name(posterior: Posterior, variable: str | None) -> str:
    """Return the name of the observed variable that is asked for.

    Raises
    ------
    ParameterError
        If no variable has this name, or no name is given and there are several.
    """
    leaves = [leaf.name for leaf in posterior.model.leaves]
    if variable is None and len(leaves) == 1:
        return leaves[0]
    if variable not in leaves:
        known = ", ".join(map(repr, leaves))
        told = "choose one" if variable is None else f"there is no {variable!r}"
        raise ParameterError(f"the model observes {known}; {told}, as variable={leaves[0]!r}")
    return str(variable)


def of_rows(posterior: Posterior, variable: str | None) -> str:
    """Return the name of the observed variable that is asked for, a value or more in each row.

    Raises
    ------
    ParameterError
        If no variable has this name, no name is given and there are several, or it has no rows.
    """
    name = observed_name(posterior, variable)
    if posterior.data_plate not in posterior.model.variables[name].plates:
        raise ParameterError(f"'{name}' does not have a value in each row, which the plot needs")
    return name


def _how(posterior: Posterior, arrays: Mapping[str, Any]) -> str:
    share = posterior.share_seen(arrays)
    return "new rows" if share <= _FEW else "rows of the fit"


def _rows_of(told: Prediction, rows: AnyArray, n_rows: int) -> Prediction:
    """Return predictions of some rows of a variable with as many; what is equal for all rows is repeated."""

    def of(array: Any, shape: tuple[int, ...]) -> Array:
        return np.broadcast_to(array, (n_rows, *shape[1:]))[rows]

    shape = told.mean.shape
    parts = tuple((of(weight, shape), of(mean, shape), of(sd, shape)) for weight, mean, sd in told.parts)
    return replace(
        told, mean=of(told.mean, shape), standard_deviation=of(told.sd, shape), parts=parts, index=None
    )


def _after(one: Prediction, other: Prediction) -> Prediction:
    """Return the predictions of one set of rows and then of another."""

    def of(a: Array, b: Array) -> Array:
        return np.concatenate([a, b])

    nothing = (np.zeros_like(one.mean), one.mean, one.standard_deviation)
    none = (np.zeros_like(other.mean), other.mean, other.standard_deviation)
    # fits of different rows may have different numbers of parts; parts without weight do not count
    parts = tuple(
        (of(a[0], b[0]), of(a[1], b[1]), of(a[2], b[2]))
        for a, b in zip(
            (*one.parts, *[nothing] * (len(other.parts) - len(one.parts))),
            (*other.parts, *[none] * (len(one.parts) - len(other.parts))),
            strict=True,
        )
    )
    return replace(
        one,
        mean=of(one.mean, other.mean),
        standard_deviation=of(one.standard_deviation, other.standard_deviation),
        parts=parts,
    )


def _entry(
    posterior: Posterior, name: str, entry: str | int | None, observed: Array, told: Prediction
) -> tuple[str, Array, Prediction]:
    """Return one number of each row: the variable itself, or an entry of it, by its name or number."""
    if observed.ndim == 1:
        if entry is not None:
            raise ParameterError(f"'{name}' is one number in each row, which has no entry {entry!r}")
        return name, observed, told
    title, place = entry_of(posterior, name, entry, observed.shape)

    def of(array: Array) -> Array:
        return array.reshape(len(array), -1)[:, place]

    parts = tuple((of(weight), of(mean), of(sd)) for weight, mean, sd in told.parts)
    chosen = replace(told, mean=of(told.mean), standard_deviation=of(told.sd), parts=parts, names=None)
    return title, of(observed), chosen


def entry_of(
    posterior: Posterior, name: str, entry: str | int | None, shape: tuple[int, ...]
) -> tuple[str, int]:
    """Return what the entry of a vector that is asked for is called, and its place.

    Raises
    ------
    ParameterError
        If there is no such entry, or none is named among several.
    """
    width = int(np.prod(shape[1:]))
    own = posterior.names.entries(name)
    names = list(own) if own is not None and len(own) == width else [str(k) for k in range(width)]
    if entry is None and width > 1:
        raise ParameterError(
            f"'{name}' has {width} entries; choose one of {', '.join(names[:12])}, as entry={names[0]!r}"
        )
    wanted = names[0] if entry is None else str(entry)
    if wanted not in names:
        raise ParameterError(f"'{name}' has no entry {entry!r}; it has {', '.join(names[:12])}")
    title = wanted if own is not None else f"{name} {wanted}" if width > 1 else name
    return title, names.index(wanted)
