"""Marginal distributions of the entries of a value, in figures for people."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy.special import betaincinv, expit, gammaincinv, logit, ndtri, stdtrit

from caviar._typing import Array

Ends: TypeAlias = tuple[float, float]
"""Probabilities below the two ends of an interval."""


def variable_and_part(name: str, variables: Container[str]) -> tuple[str, str]:
    """Return the variable, and the part of a joint factor or an empty text, that the name of figures says.

    The name of a variable may have dots itself, as that of a column ``"Sepal.Length"``.

    Examples
    --------
    >>> variable_and_part("theta.mean", ["theta"]), variable_and_part("Sepal.Length", ["Sepal.Length"])
    (('theta', 'mean'), ('Sepal.Length', ''))
    """
    if name in variables or "." not in name:
        return name, ""
    variable, _, part = name.rpartition(".")
    return variable, part


@dataclass(frozen=True)
class Marginals:
    """Figures of every entry of a part of a value, each of shape (plates..., event...).

    What is shared along a tied plate, the last, lacks it. Points have a mean only; an end is NaN for an entry without a
    closed form.
    """

    mean: Array
    sd: Array | None = None
    lower: Array | None = None
    upper: Array | None = None
    part: str = ""
    is_shared: bool = False


def with_places(parts: Iterable[Marginals]) -> Iterator[tuple[Marginals, slice]]:
    """Yield parts of a value with the places of their entries, where those of all parts stand one after the other."""
    start = 0
    for own in parts:
        stop = start + np.size(own.mean)
        yield own, slice(start, stop)
        start = stop


def normal_marginals(mean: Array, sd: Array, ends: Ends) -> Marginals:
    """Return the figures of Normals."""
    # around an infinite mean there is no interval
    with np.errstate(invalid="ignore"):
        lower, upper = (mean + sd * ndtri(end) for end in ends)
    return Marginals(mean, sd, lower, upper)


def student_marginals(mean: Array, scale: Array, df: Array, sd: Array, ends: Ends) -> Marginals:
    """Return the figures of locations of joint families, whose distributions are Student-t."""
    lower, upper = (mean + scale * stdtrit(df, end) for end in ends)
    return Marginals(mean, sd, lower, upper, ".mean")


def beta_marginals(a: Array, b: Array, mean: Array, sd: Array, ends: Ends) -> Marginals:
    """Return the figures of Betas."""
    lower, upper = (betaincinv(a, b, end) for end in ends)
    return Marginals(mean, sd, lower, upper)


def widened(own: Marginals, sd: Array, ends: Ends) -> Marginals:
    """Return figures of the same shape with other standard deviations; of points those of Normals."""
    if own.sd is None or own.lower is None or own.upper is None:
        return normal_marginals(own.mean, sd, ends)
    finite = np.isfinite(own.sd) & np.isfinite(sd) & (own.sd > 0)
    # few degrees of freedom have no standard deviation: then their interval stays as it is
    ratio = np.divide(sd, own.sd, out=np.ones(np.shape(sd)), where=finite)
    lower, upper = (own.mean + ratio * (end - own.mean) for end in (own.lower, own.upper))
    return Marginals(own.mean, sd, lower, upper)


def on_the_diagonal(one: Marginals, other: Marginals) -> Marginals:
    """Return the figures of matrices: of one on the diagonal, and of another beside it."""
    diagonal = np.eye(one.mean.shape[-1], dtype=bool)
    sd, lower, upper = (
        None if a is None or b is None else np.where(diagonal, a, b)
        for a, b in ((one.sd, other.sd), (one.lower, other.lower), (one.upper, other.upper))
    )
    return Marginals(np.where(diagonal, one.mean, other.mean), sd, lower, upper)


def matched_gamma(mean: Array, sd: Array, ends: Ends) -> Marginals:
    """Return the figures of Gammas with these means and standard deviations."""
    with np.errstate(divide="ignore", invalid="ignore"):
        shape = (mean / sd) ** 2
        lower, upper = (np.where(sd > 0, gammaincinv(shape, end) * mean / shape, mean) for end in ends)
    return Marginals(mean, sd, lower, upper)


def matched_beta(mean: Array, sd: Array, ends: Ends) -> Marginals:
    """Return the figures of Betas with these means and standard deviations.

    Where no Beta has them, those of a Normal on the logit.
    """
    largest = mean * (1.0 - mean)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        total = largest / sd**2 - 1.0
        found = []
        for end in ends:
            matched = betaincinv(mean * total, (1.0 - mean) * total, end)
            spread = expit(logit(mean) + ndtri(end) * sd / largest)
            found.append(np.where((sd > 0) & (largest > 0), np.where(total > 0, matched, spread), mean))
    return Marginals(mean, sd, *found)
