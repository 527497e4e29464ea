r"""Predictions of few rows or groups, integrated over the precisions of the noise and of the effects of groups.

Given the precision :math:`\tau` of the noise, and those of the effects, :math:`\Lambda`, the coefficients are Normal,
with natural parameters that are linear in all of them: those of the prior, :math:`\eta_0(\Lambda)`, and what the rows
say. So those of the fit tell them at any other values,

.. math:: \eta(\tau, \Lambda) = \eta_0(\Lambda) + \frac{\tau}{\mathrm E_q[\tau]}
          \bigl(\hat\eta - \eta_0(\mathrm E_q[\Lambda])\bigr),

and a prediction is the mixture of those given the weighted values that the summary has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy.special import expit

from ... import families
from ..._typing import AnyArray, Array, Statistics
from ...families._shared import SharedFactor
from ...language import Constant, Gamma, Normal, Variable
from ...numerics.blas import one_blas_thread
from ...numerics.cached import cached_property
from ..simulation import conditional
from .prediction import Prediction

_MOST_DF = 100.0
"""Degrees of freedom of a precision up to which it matters: intervals of a Student-t with as many are 1.2% wider than
those of a Normal."""

_STEP, _FURTHEST = 0.5, 9.0
"""Log odds between the probabilities at which the values of the precisions are cut into groups, and of the last cut."""

_CUTS = 2
"""How often groups of values of several precisions are cut in two: values may divide the same variance otherwise."""

_OF_ONE = 0.1
"""Share of the variance of the noise that a single value makes up at most, unless it is infinite."""

_MOST_NUMBERS = 1_000
"""Of all coefficients, whose Normal distribution is made for each value."""


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
    coefficients have a prior with another unknown.
    """
    noise = _noise_of(posterior.model.leaves)
    if noise is None or posterior._local or posterior._evaluator.prior is not None:
        return None
    factors = posterior._independent
    coefficients = _coefficients(posterior.model, factors, noise)
    if coefficients is None or not _matters(factors, coefficients):
        return None
    shown = posterior._shown_as("auto")
    weighted = {name: shown.weighted(name) for name in coefficients.means}
    of_noise = weighted[noise.name]
    if any(own is None or own.weights is not of_noise.weights for own in weighted.values()):
        return None
    with one_blas_thread():
        inverses = {
            name: np.linalg.inv if isinstance(factors[name], families.Wishart) else np.reciprocal
            for name in weighted
        }
        values = {name: own.values for name, own in weighted.items()}
        weights, chosen = _chosen(values, inverses, of_noise.weights)
        given = [
            GivenPrecisions(weight, known, {**posterior._factors, **factors, **coefficients.at(known)})
            for weight, known in zip(weights.tolist(), chosen, strict=True)
        ]
    shares = of_noise.weights / of_noise.values
    return OverPrecisions(given, bool(shares.max() <= _OF_ONE * shares.sum()))


def _noise_of(leaves: Sequence[Variable]) -> Gamma | None:
    """Return the Gamma variable that is the precision of all observed variables; None if there is none."""
    found = {id(leaf.stated.get("precision")): leaf.stated.get("precision") for leaf in leaves}
    (first, *others) = found.values()
    is_one = not others and isinstance(first, Gamma) and not first.plates
    return first if is_one and all(type(leaf) is Normal for leaf in leaves) else None


@dataclass(frozen=True, eq=False)
class _Coefficients:
    """The factors of what the rows depend on beside the noise.

    Attributes
    ----------
    factors, variables
        Name of a factor -> the factor, and the variables that it is of; none if their priors are flat.
    means
        Name of each precision that they depend on -> its mean; that of the noise is the last.
    """

    factors: Mapping[str, Any]
    variables: Mapping[str, Sequence[Variable]]
    means: Mapping[str, Any]

    @property
    def n_numbers(self) -> int:
        """How many numbers they are."""
        own = (each for name, factor in self.factors.items() for each in _marginals(name, factor).values())
        return sum(int(np.size(each.mean)) for each in own)

    def at(self, known: Mapping[str, Any]) -> dict[str, Any]:
        """Return the factors given values of the precisions, see the head of this file."""
        noise, found = list(self.means)[-1], dict[str, Any]()
        ratio = known[noise] / self.means[noise]
        for name, factor in self.factors.items():
            parts = zip(self._prior(name, known), self._of_rows[name], strict=True)
            own = factor.family.from_natural(tuple(prior + ratio * rows for prior, rows in parts))
            found |= {name: own, **_marginals(name, own)}
        return found

    @cached_property
    def _of_rows(self) -> dict[str, Statistics]:
        """What the rows add to the natural parameters of each factor where the noise is its mean."""
        found = {}
        for name, factor in self.factors.items():
            prior = self._prior(name, self.means)
            found[name] = tuple(own - other for own, other in zip(factor.natural, prior, strict=True))
        return found

    def _prior(self, name: str, known: Mapping[str, Any]) -> Statistics:
        factor, variables = self.factors[name], self.variables[name]
        if not variables:
            return tuple(np.zeros_like(eta) for eta in factor.natural)
        own = [conditional(each, known) for each in variables]
        return (factor.family.independent(own) if isinstance(factor, SharedFactor) else own[0]).natural


def _coefficients(model: Any, factors: Mapping[str, Any], noise: Gamma) -> _Coefficients | None:
    """Return the factors of what the rows depend on beside the noise.

    None if a prior has another unknown than a precision, or some are flat and others are not.
    """
    variables = {node.name: node for node in model.nodes if isinstance(node, Variable)}
    above = {own.name for leaf in model.leaves for own in leaf.drawn_given if isinstance(own, Variable)}
    above.discard(noise.name)
    precisions: dict[str, Any] = {}
    for variable in variables.values():
        depends = [own for own in variable.drawn_given if not isinstance(own, Constant)]
        if variable not in model.leaves and any(own.name in above for own in depends):
            return None
        if variable.name not in above or not depends:
            continue
        (first, *others) = depends
        if others or variable.stated.get("precision") is not first or first is noise:
            return None
        precisions[first.name] = factors.get(first.name)
    precisions[noise.name] = factors.get(noise.name)
    if not all(isinstance(own, families.Gamma | families.Wishart) for own in precisions.values()):
        return None
    found, stated = dict[str, Any](), dict[str, Sequence[Variable]]()
    for name, factor in factors.items():
        names = factor.names if isinstance(factor, SharedFactor) else [name]
        if not set(names) & above:
            continue
        flat = [variables[own].is_flat for own in names]
        if not set(names) <= above or factor.learnt is not factor or any(flat) != all(flat):
            return None
        found[name], stated[name] = factor, [] if all(flat) else [variables[own] for own in names]
    means = {name: own.mean for name, own in precisions.items()}
    return _Coefficients(found, stated, means) if found else None


def _matters(factors: Mapping[str, Any], coefficients: _Coefficients) -> bool:
    """Whether a precision has so few degrees of freedom that predictions are wider if it is integrated."""
    n_numbers, fewest = coefficients.n_numbers, []
    for name in coefficients.means:
        own = factors[name]
        fewest.append(float(np.min(2.0 * own.shape if isinstance(own, families.Gamma) else own.df)))
    return n_numbers <= _MOST_NUMBERS and min([*fewest[:-1], fewest[-1] - n_numbers]) <= _MOST_DF


def _marginals(name: str, factor: Any) -> dict[str, Any]:
    return factor.marginals if isinstance(factor, SharedFactor) else {name: factor}


def _chosen(
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
