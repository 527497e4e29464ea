"""Predictions of few rows or groups, integrated over the precisions of the noise and of the effects of groups.

A prediction is the mixture of those given the weighted values of the precisions that the summary has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy.special import expit

from .... import families
from ...._typing import AnyArray, Array
from ....language import Variable
from ....numerics.blas import one_blas_thread
from ..prediction import Prediction
from .coefficients import coefficients_of

_OF_ONE = 0.1
"""Share of the variance of the noise that a single value makes up at most, unless it is infinite."""

Told: TypeAlias = "Callable[..., Mapping[str, Prediction]]"
"""Returns predictions of variables by name."""


class GivenPrecisions(NamedTuple):
    """What is known given one of a few values of the precisions.

    Attributes
    ----------
    weight
        Of the values.
    known
        The values by the names of the precisions.
    factors
        Name -> factor of all globals, beside the factors that some share.
    """

    weight: float
    known: Mapping[str, Any]
    factors: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class OverPrecisions:
    """What is known given each of a few values of the precisions.

    Attributes
    ----------
    given
        Of each value; the weights sum to one.
    is_finite
        Whether the mean variance of the noise is finite.
    """

    given: Sequence[GivenPrecisions]
    is_finite: bool

    def mixed(self, told: Told, data: Mapping[str, Any]) -> Told:
        """Return a function of variables that returns the mixtures of their predictions given each value.

        Parameters
        ----------
        told
            Returns predictions of variables by name, given data and factors.
        data
            Of new rows. Where these have one of the precisions themselves, nothing is mixed.
        """
        if self.given[0].known.keys() & data.keys():
            return told

        def mixtures(absent: Sequence[Variable]) -> dict[str, Prediction]:
            with one_blas_thread():
                each = [told(absent, data={**data, **own.known}, factors=own.factors) for own in self.given]
            return {name: self._mixed([own[name] for own in each]) for name in each[0]}

        return mixtures

    def _mixed(self, told: Sequence[Prediction]) -> Prediction:
        weights = np.array([own.weight for own in self.given])
        means, sds = (np.stack([getattr(own, figure) for own in told]) for figure in ("mean", "sd"))
        found = Prediction.of_parts(weights.reshape(-1, *(1,) * (means.ndim - 1)), means, sds)
        sd = found.standard_deviation if self.is_finite else np.full_like(found.mean, np.inf)
        return replace(told[0], mean=found.mean, standard_deviation=sd, parts=found.parts)


def over_precisions(posterior: Any) -> OverPrecisions | None:
    """Return the factors of a posterior given values of the precisions of its noise and of its effects.

    None where summaries are not integrated over these precisions, where rows and groups are many, or where the
    coefficients depend on another unknown that does not share their factor.
    """
    if posterior._local or posterior._evaluator.prior is not None:
        return None
    factors = posterior._independent
    coefficients = coefficients_of(posterior.model, factors, posterior._factors)
    if coefficients is None or not coefficients.matter(factors):
        return None
    shown = posterior._shown_as("auto")
    weighted = {name: shown.weighted(name) for name in coefficients.means}
    last = weighted[list(weighted)[-1]]
    if last is None or any(own is None or own.weights is not last.weights for own in weighted.values()):
        return None
    with one_blas_thread():
        inverses = {
            name: np.linalg.inv if isinstance(factors[name], families.Wishart) else np.reciprocal
            for name in weighted
        }
        values = {name: own.values for name, own in weighted.items()}
        weights, chosen = few_values(values, inverses, last.weights)
        given = [
            GivenPrecisions(weight, known, {**posterior._factors, **factors, **coefficients.at(known)})
            for weight, known in zip(weights.tolist(), chosen, strict=True)
        ]
    if coefficients.noise is None:
        return OverPrecisions(given, is_finite=True)
    shares = last.weights / last.values
    return OverPrecisions(given, is_finite=bool(shares.max() <= _OF_ONE * shares.sum()))


_STEP, _FURTHEST = 0.5, 9.0
"""Log odds between the probabilities at which the values of the precisions are cut into groups, and of the last cut."""

_CUTS = 2
"""How often groups of values of several precisions are cut in two: values may divide the same variance otherwise."""


def few_values(
    values: Mapping[str, Array], inverses: Mapping[str, Callable[[Any], Any]], weights: Array
) -> tuple[Array, list[dict[str, Any]]]:
    """Return a few values of the precisions with their weights, which sum to one.

    All values are cut into groups by the variance that they say of a row, and those of several numbers are cut again.
    The last groups are small: the tails of a prediction come from them. Each group has the mean variance of its values,
    so that of the noise is kept.

    Parameters
    ----------
    values
        Of each precision, by name, (n, plates..., event...).
    inverses
        What returns the covariances that values of each precision say.
    weights
        Of the values, (n,).
    """
    covariances = {name: inverses[name](own) for name, own in values.items()}
    variances = np.concatenate(
        [_variances(own, is_matrix=inverses[name] is np.linalg.inv) for name, own in covariances.items()],
        axis=1,
    )
    order = np.argsort(variances.sum(axis=1))[::-1]
    n_cuts, step = (0, _STEP) if variances.shape[1] == 1 else (_CUTS, 2.0 * _STEP)
    edges = expit(np.arange(-_FURTHEST, _FURTHEST + step, step))
    group = np.searchsorted(edges, np.cumsum(weights[order]) - 0.5 * weights[order])
    cells = [
        cell
        for own in np.unique(group)
        for cell in _cells(order[group == own], np.log(variances), weights, n_cuts)
    ]
    found = []
    for cell in cells:
        shares = weights[cell] / weights[cell].sum()
        found.append(
            {
                name: inverses[name](np.einsum("n,n...->...", shares, own[cell]))
                for name, own in covariances.items()
            }
        )
    masses = np.array([weights[cell].sum() for cell in cells])
    return masses / masses.sum(), found


def _variances(covariances: Array, *, is_matrix: bool) -> Array:
    """Return all variances of n values, (n, numbers)."""
    own = np.diagonal(covariances, axis1=-2, axis2=-1) if is_matrix else covariances
    return own.reshape(len(own), -1)


def _cells(places: AnyArray, logs: Array, weights: Array, n_cuts: int) -> Iterator[AnyArray]:
    """Yield places cut in two halves of equal weight, where they differ most, again and again."""
    if not n_cuts or len(places) < 2:
        yield places
        return
    own = logs[places]
    order = np.argsort(own[:, np.ptp(own, axis=0).argmax()])
    below = np.cumsum(weights[places[order]])
    cut = min(max(int(np.searchsorted(below, 0.5 * below[-1])), 1), len(places) - 1)
    for half in (order[:cut], order[cut:]):
        yield from _cells(places[half], logs, weights, n_cuts - 1)
