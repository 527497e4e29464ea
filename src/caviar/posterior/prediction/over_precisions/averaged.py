r"""Predictions of few rows or groups, integrated over the precisions of the noise and of the effects of groups.

A prediction is the mixture of those given the weighted values of the precisions that the summary has.

Coefficients of Normal rows given values of the precisions.

Given the precision :math:`\tau` of the noise, and those of the effects, :math:`\Lambda`, the coefficients are Normal,
with natural parameters that are linear in all of them: those of the prior, :math:`\eta_0(\Lambda)`, and what the rows
say. So those of the fit tell them at any other values,

.. math:: \eta(\tau, \Lambda) = \eta_0(\Lambda) + \frac{\tau}{\mathrm E_q[\tau]}
          \bigl(\hat\eta - \eta_0(\mathrm E_q[\Lambda])\bigr).

Where some of them are known, :math:`\eta` and :math:`\eta_0` are those of the others given these.

The joint prior of variables that share a Gaussian factor, given values of their precisions.

The mean of a variable is linear in the others, so that its deviation from that mean is :math:`D\theta - c` with the
numbers of all variables, :math:`\theta`. Its density adds :math:`D' \Lambda D` to their joint precision and
:math:`D' \Lambda c` to what this is multiplied with.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import expit

from .... import families
from ...._typing import AnyArray, Array, Statistics
from ....engine.binding.clamped.factor import ClampedFactor
from ....families.shared.coupled_member import Member
from ....families.shared.coupled_normals import CoupledLayout, CoupledNormals
from ....families.shared.known_numbers import given_known
from ....families.shared.shared_factor import SharedFactor
from ....language import Constant, Data, Gamma, Node, Normal, Variable
from ....numerics.blas import one_blas_thread
from ....numerics.cached import cached_property
from ...simulation import conditional
from ..over import Over, Told
from ..prediction import Prediction

_OF_ONE = 0.1
"""Share of the variance of the noise that a single value makes up at most, unless it is infinite."""


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
class OverPrecisions(Over):
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

    def mixed(self, told: Told, data: Any) -> Told:
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


_MOST_DF = 100.0
"""Degrees of freedom of a precision up to which it matters: intervals of a Student-t with as many are 1.2% wider than
those of a Normal."""

_MOST_NUMBERS = 1_000
"""Of all coefficients, whose Normal distribution is made for each value."""


@dataclass(frozen=True, eq=False)
class Coefficients:
    """The factors of what the rows depend on beside the noise.

    Attributes
    ----------
    factors, variables
        Name of a factor -> the factor, and the variables that it is of.
    means
        Name of each precision that they depend on -> its mean; that of the noise is the last.
    noise
        Name of the precision of the noise; None if it is known.
    marginals
        The factors of the posterior by the names of variables, which say what is known.
    """

    factors: Mapping[str, Any]
    variables: Mapping[str, Sequence[Variable]]
    means: Mapping[str, Any]
    noise: str | None
    marginals: Mapping[str, Any]

    @property
    def n_numbers(self) -> int:
        """How many numbers they are."""
        own = [factor.learnt for factor in self.factors.values()]
        known = [each.known for each in own if isinstance(each, CoupledNormals) and each.known is not None]
        numbers = sum(int(np.size(part.mean)) for each in own for part in each.entry_marginals((0.05, 0.95)))
        return numbers - sum(map(np.count_nonzero, known))

    def at(self, known: Mapping[str, Any]) -> dict[str, Any]:
        """Return the factors given values of the precisions, see the head of this file."""
        found = dict[str, Any]()
        ratio = 1.0 if self.noise is None else known[self.noise] / self.means[self.noise]
        for name, factor in self.factors.items():
            parts = zip(self._priors[name](known), self._of_rows[name], strict=True)
            own = factor.family.from_natural(tuple(prior + ratio * rows for prior, rows in parts))
            found[name] = own if factor.learnt is factor else factor.with_learnt(own)
            if isinstance(own, SharedFactor):
                found |= {each: self._beside_known(each, part) for each, part in own.marginals.items()}
        return found

    def _beside_known(self, name: str, marginal: Any) -> Any:
        """Return the marginal of a variable, with its known repetitions at their values."""
        before = self.marginals[name]
        return marginal if before.learnt is before else before.with_learnt(marginal[~before.is_known])

    def matter(self, precisions: Mapping[str, Any]) -> bool:
        """Whether a precision has so few degrees of freedom that predictions are wider if it is integrated.

        ``precisions`` has the factors of the precisions by name, among others.
        """
        n_numbers, fewest = self.n_numbers, []
        for name in self.means:
            own = precisions[name]
            degrees = float(np.min(2.0 * own.shape if isinstance(own, families.Gamma) else own.df))
            fewest.append(degrees - n_numbers if name == self.noise else degrees)
        return n_numbers <= _MOST_NUMBERS and min(fewest) <= _MOST_DF

    @cached_property
    def _of_rows(self) -> dict[str, Statistics]:
        """What the rows add to the natural parameters of each factor where the noise is its mean."""
        found = {}
        for name, factor in self.factors.items():
            prior = self._priors[name](self.means)
            natural = factor.learnt.natural
            found[name] = tuple(own - other for own, other in zip(natural, prior, strict=True))
        return found

    @cached_property
    def _priors(self) -> dict[str, Callable[[Mapping[str, Any]], Statistics]]:
        """What returns the natural parameters of the prior of each factor given values of the precisions."""
        return {
            name: _prior_of(factor, self.variables[name], self.means) for name, factor in self.factors.items()
        }


def _prior_of(
    factor: Any, variables: Sequence[Variable], known: Mapping[str, Any]
) -> Callable[[Mapping[str, Any]], Statistics]:
    if isinstance(factor, CoupledNormals):
        joint = JointPrior(factor.layout, variables, known)
        came = factor.known
        if came is None:
            return joint.natural
        return lambda known: given_known(factor.layout, joint.natural(known), came, factor.mean_of_all)
    if any(variable.is_flat for variable in variables):
        nothing = tuple(np.zeros_like(eta) for eta in factor.learnt.natural)
        return lambda _: nothing

    def natural(known: Mapping[str, Any]) -> Statistics:
        own = [conditional(variable, known) for variable in variables]
        if isinstance(factor, SharedFactor):
            return factor.family.independent(own).natural
        return own[0].natural if factor.learnt is factor else _at(own[0].natural, factor)

    return natural


def _at(natural: Statistics, factor: ClampedFactor) -> Statistics:
    """Return the natural parameters of the learnt repetitions."""
    shapes = (eta.shape[1:] for eta in factor.unknown.natural)
    return tuple(
        np.broadcast_to(eta, (*factor.batch_shape, *shape))[~factor.is_known]
        for eta, shape in zip(natural, shapes, strict=True)
    )


def coefficients_of(
    model: Any, factors: Mapping[str, Any], marginals: Mapping[str, Any]
) -> Coefficients | None:
    """Return the factors of what the rows depend on beside the noise.

    None if these have not all the same noise, or if a prior has another unknown than a precision and the numbers that
    share its factor.

    Parameters
    ----------
    factors, marginals
        Of the globals by name, independent ones and those of single variables.
    """
    noise = _noise_of(model.leaves)
    if noise is None:
        return None
    above = _above(model.leaves, noise)
    # in the fit its value came with the data
    noise = {name for name in noise if name in factors}
    precisions, depends = dict[str, Any](), dict[str, set[str]]()
    for variable in above.values():
        depends[variable.name] = set[str]()
        for node in _unknown(variable):
            if node is variable.stated.get("precision"):
                precisions[node.name] = factors.get(node.name)
            else:
                depends[variable.name].add(node.name)
    precisions |= {name: factors.get(name) for name in noise}
    if not all(isinstance(own, families.Gamma | families.Wishart) for own in precisions.values()):
        return None
    for node in model.nodes:
        is_beside = isinstance(node, Variable) and node.name not in above and node not in model.leaves
        if is_beside and any(own.name in above for own in _unknown(node)):
            return None
    found, stated = dict[str, Any](), dict[str, Sequence[Variable]]()
    for name, factor in factors.items():
        names = factor.names if isinstance(factor, SharedFactor) else [name]
        if above.keys().isdisjoint(names):
            continue
        is_whole = above.keys() >= set(names) and factor.learnt is not None
        if not is_whole or any(not depends[own] <= set(names) for own in names):
            return None
        found[name], stated[name] = factor, [above[own] for own in names]
    means = {name: own.mean for name, own in precisions.items()}
    if not found or not means:
        return None
    return Coefficients(found, stated, means, next(iter(noise), None), marginals)


def _noise_of(leaves: Sequence[Variable]) -> set[str] | None:
    """Return the name of the Gamma variable that is the precision of all observed variables, or none if it is known.

    None if it is neither.
    """
    found = {id(own): own for leaf in leaves if (own := leaf.stated.get("precision")) is not None}
    unknown = [own for own in found.values() if not isinstance(own, Constant | Data)]
    is_one = len(found) == 1 and isinstance(unknown[0], Gamma) and not unknown[0].plates if unknown else True
    return {own.name for own in unknown} if is_one and all(type(leaf) is Normal for leaf in leaves) else None


def _above(leaves: Sequence[Variable], noise: Collection[str]) -> dict[str, Variable]:
    """Return the variables that the means of the leaves are made of, by name, and those above them, but precisions."""
    found, left = dict[str, Variable](), [own for leaf in leaves for own in _unknown(leaf)]
    while left:
        variable = left.pop()
        if isinstance(variable, Variable) and variable.name not in {*found, *noise}:
            found[variable.name] = variable
            left += [own for own in _unknown(variable) if own is not variable.stated.get("precision")]
    return found


def _unknown(variable: Variable) -> list[Node]:
    """Return what a variable depends on, without constants."""
    return [own for own in variable.drawn_given if not isinstance(own, Constant)]


class _Deviation(NamedTuple):
    """Of one variable from its mean: D and c of this file, (own numbers, numbers) and (own numbers,)."""

    variable: Variable
    member: Member
    slopes: Any
    constant: Array


class JointPrior:
    """The prior of the variables that share a Gaussian factor. Flat ones add nothing to it.

    Parameters
    ----------
    layout, variables
        Of the factor; the variables in their order there.
    known
        Name -> some value of each precision.
    """

    def __init__(
        self, layout: CoupledLayout, variables: Sequence[Variable], known: Mapping[str, Any]
    ) -> None:
        self._layout = layout
        self._deviations = [
            _Deviation(own, layout.members[place], *self._deviation(place, own, variables, known))
            for place, own in enumerate(variables)
            if not own.is_flat
        ]

    def natural(self, known: Mapping[str, Any]) -> Statistics:
        """Return its natural parameters given values of the precisions, by name."""
        size = self._layout.pattern.size
        linear, precision = np.zeros(size), sparse.csr_array((size, size))
        somewhere = self._values(linear)
        for variable, member, slopes, constant in self._deviations:
            count, width = member.part
            own: Any = conditional(variable, {**known, **somewhere})
            full = (*member.shape, *member.event_shape, *member.event_shape)
            blocks = np.broadcast_to(own.precision, full).reshape(count, width, width)
            weighted = slopes.T @ sparse.bsr_array((blocks, np.arange(count), np.arange(count + 1)))
            linear, precision = linear + weighted @ constant, precision + weighted @ slopes
        return _natural(self._layout, linear, precision.toarray())

    def _deviation(
        self, place: int, variable: Variable, variables: Sequence[Variable], known: Mapping[str, Any]
    ) -> tuple[Any, Array]:
        """Return the slopes and the constant of a variable's deviation from its mean."""
        size, own = self._layout.pattern.size, self._layout.place(place)
        constant = self._mean(place, variable, known, np.zeros(size))
        slopes = sparse.lil_array((own.stop - own.start, size))
        slopes[:, own] = np.eye(own.stop - own.start)
        above = {node.name for node in variable.drawn_given}
        for other, node in enumerate(variables):
            for number in range(size)[self._layout.place(other)] if node.name in above else ():
                unit = np.zeros(size)
                unit[number] = 1.0
                slopes[:, [number]] = (constant - self._mean(place, variable, known, unit))[:, None]
        return slopes.tocsr(), constant

    def _mean(self, place: int, variable: Variable, known: Mapping[str, Any], numbers: Array) -> Array:
        """Return the mean of a variable at values of the numbers of all, (own numbers,)."""
        member = self._layout.members[place]
        own: Any = conditional(variable, {**known, **self._values(numbers)})
        return np.broadcast_to(own.mean, (*member.shape, *member.event_shape)).ravel()

    def _values(self, numbers: Array) -> dict[str, Array]:
        """Return the values of all variables by name."""
        return {
            own.name: numbers[self._layout.place(place)].reshape((*own.shape, *own.event_shape))
            for place, own in enumerate(self._layout.members)
        }


def _natural(layout: CoupledLayout, linear: Array, precision: Array) -> Statistics:
    """Return the natural parameters for what a precision (numbers, numbers) is multiplied with, (numbers,)."""
    n_own, found = 2 * len(layout.members), []
    for number, ((i, j), shape) in enumerate(zip(layout.pairs_of_statistics(), layout.shapes, strict=True)):
        if number < n_own:
            own = -0.5 * precision[i, j] if number % 2 else linear[i]
        else:
            # of a pair both entries
            own = -precision[i, j]
        found.append(own.reshape(shape))
    return tuple(found)
