r"""Forecasts of repetitions of global variables without an observation below them, as of a group that has no rows.

What is known of such a repetition is its distribution given its parents, and what q knows of these:

.. math:: q(\theta_k) = \int p(\theta_k \mid \phi)\, q(\phi)\, d\phi, \\
          \mathrm{Var}[\theta_k] = \mathrm E[\mathrm{Var}[\theta_k \mid \phi]]
          + \mathrm{Var}[\mathrm E[\theta_k \mid \phi]].

The optimum of coordinate ascent, at the expected parents, leaves out how uncertain these are. The objective does not
depend on it, since such repetitions count nothing in it. So a posterior has the member of the family with the moments
of the integral: mean and covariance of a Normal, :math:`\mathrm E[\tau]` and :math:`\mathrm E[\tau^{-1}]` of a
precision, mean and variance of a rate, the probabilities of a label or of a number 0 or 1.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import digamma, polygamma

from ... import families
from ..._typing import AnyArray, Array
from ...engine.ascent.problem import Problem
from ...engine.binding.bound_model import BoundModel
from ...families.approximations.scale_mixtures import shape_of_log_variance
from ...language import (
    Bernoulli,
    Categorical,
    Gamma,
    Label,
    MultivariateNormal,
    NegativeBinomial,
    Node,
    Normal,
    Poisson,
    Predictor,
    Variable,
    Wishart,
)
from ...numerics.linalg import inverse
from ..simulation import parents_first
from .expectations import Expectations
from .moments import Gates, categories_of, weights_for


def with_forecasts(problem: Problem, factors: Mapping[str, Any]) -> dict[str, Any]:
    """Return global factors in which repetitions without an observation below them are forecasts.

    A repetition keeps the optimum at its expected parents where the moments are infinite, as those of a Normal whose
    precision has a factor of a shape of 1 or less.

    Parameters
    ----------
    problem
        The problem that was solved.
    factors
        Name -> global factor.
    """
    bound = problem.bound
    counted = {variable: bound.of(variable).active for variable in bound.latent_globals()}
    found = dict(factors)
    # the forecast of a group of groups is a parent of theirs
    for variable in parents_first([variable for variable, active in counted.items() if active is not None]):
        active = counted.get(variable)
        if active is None:
            continue
        known = {
            node.name: _known_value(node, bound) for node in variable.drawn_given if bound.is_known(node)
        }
        gates: Gates = {
            (gate,): weights_for(found[gate.name].each(_probabilities, _indicator), chosen, variable, known)
            for gate, chosen in variable.chosen_by.items()
            if gate.name not in known
        }
        told = forecast_of(variable, bound.nodes, known, found, gates)
        if told is None:
            continue
        forecast, exists = told
        where = ~active & np.broadcast_to(exists, active.shape)
        found[variable.name] = found[variable.name].replaced(where, forecast.broadcast_to(active.shape))
    return found


_NEGLIGIBLE = 1e-6
"""Probability of shapes for which a moment is infinite that is left out, as of a tail of a tabulated factor."""


@dataclass(frozen=True, eq=False)
class _Part:
    """The parents of a variable where the labels that choose among these are in one category each.

    Hidden scalars of which slots hold functions are at one place of their table each.
    """

    weight: Array
    given: Expectations


def forecast_of(
    variable: Variable,
    nodes: Iterable[Node],
    known: Mapping[str, Any],
    factors: Mapping[str, Any],
    gates: Gates,
) -> tuple[Any, AnyArray] | None:
    """Return the members with the moments of a variable given its parents under q, and which of them exist.

    None for a kind of variable that has no such match. The batch has an axis for each plate, of length 1 where nothing
    varies along it.

    Parameters
    ----------
    variable
        The variable.
    nodes
        Those of the model.
    known
        Name -> values of known arrays and observed variables among its parents.
    factors
        Name -> distribution of each latent one.
    gates
        The latent Categoricals that choose its parents, and their probabilities.
    """
    match = next((own for kind, own in _MATCHES.items() if isinstance(variable, kind)), None)
    if match is None or _has_no_moments(variable):
        return None
    with np.errstate(all="ignore"):
        return match(variable, nodes, _parts_of(variable, known, factors, gates))


class HeavyTailed(families.Gamma):
    """Precisions whose inverses have no mean, as those of Student-t noise with about two degrees of freedom."""

    def inverse_moments(self) -> tuple[Array, Array]:
        """Return infinity."""
        return np.full(self.batch_shape, np.inf), np.full(self.batch_shape, np.inf)


def heavy_tailed(
    variable: Variable, known: Mapping[str, Any], factors: Mapping[str, Any], gates: Gates
) -> HeavyTailed | None:
    """Return the Gammas with the mean and the variance of the logarithm of a precision given its parents under q.

    These exist where the inverse of the precision has no mean, so that :func:`forecast_of` has no member. None for
    other variables, and for a Gamma whose rate is not known given the hidden scalars of its shape.
    """
    if not isinstance(variable, Gamma) or _has_no_moments(variable):
        return None
    parts = _parts_of(variable, known, factors, gates)
    if not all(_has_known_rate(part.given) for part in parts):
        return None
    shapes = [part.given.scalar("shape")[0] for part in parts]
    logs = [
        digamma(shape) - np.log(part.given.expected("rate"))
        for part, shape in zip(parts, shapes, strict=True)
    ]
    mean = sum(part.weight * log for part, log in zip(parts, logs, strict=True))
    own = (polygamma(1, shape) + np.square(log - mean) for shape, log in zip(shapes, logs, strict=True))
    variance = sum(part.weight * one for part, one in zip(parts, own, strict=True))
    shape = shape_of_log_variance(np.asarray(variance))
    return HeavyTailed(shape, np.exp(digamma(shape) - mean))


def _has_known_rate(given: Expectations) -> bool:
    first, square = given.inverse("rate")
    return bool(np.allclose(np.square(first), square, rtol=1e-9, atol=0.0))


def _parts_of(
    variable: Variable, known: Mapping[str, Any], factors: Mapping[str, Any], gates: Gates
) -> list[_Part]:
    parts = []
    for held, weight in categories_of(variable, gates):
        parts += _at_each_place(_Part(weight, Expectations(variable, {**known, **held}, factors)))
    return parts


def _at_each_place(part: _Part) -> Iterator[_Part]:
    """Yield a part for each combination of places of the tabulated scalars, which are known there."""
    given = part.given
    scalars = given.tabulated()
    for places in itertools.product(*(range(len(numbers)) for numbers, _ in scalars.values())):
        held, weight = dict(given.known), part.weight
        for (name, (numbers, probabilities)), place in zip(scalars.items(), places, strict=True):
            held[name] = numbers[place]
            weight = weight * probabilities[place]
        yield _Part(weight, replace(given, known=held) if scalars else given)


def _has_no_moments(variable: Variable) -> bool:
    """Whether something is added to a rate or precision, whose inverse has no expectation, or to a vector."""
    sums = {name: stated for name, stated in variable.stated.items() if isinstance(stated, Predictor)}
    return (variable.value_rank == 1 and "mean" in sums) or any(
        len(stated.addends) > 1 for name, stated in sums.items() if name != "mean"
    )


def _probabilities(labels: Any) -> Array:
    return labels.probabilities


def _indicator(point: Any) -> Array:
    return point.expected_statistics[0]


def _known_value(node: Any, bound: BoundModel) -> Any:
    value = np.asarray(bound.values_of(node))
    return value.astype(np.intp) if isinstance(node, Label) or node in _choosing(bound) else value


def _choosing(bound: BoundModel) -> set[Node]:
    """Return the nodes whose values choose from a plate."""
    slots = (slot for node in bound.nodes if isinstance(node, Variable) for slot in node.slots.values())
    return {own.by for slot in slots for own in (*slot.chosen, *slot.choices)}


def _average(parts: Sequence[_Part], of: Callable[[Expectations], Array], n_events: int) -> Array:
    """Return the average of a figure of the parts, with an axis for each plate and then those of its event."""
    return sum(part.weight.reshape(part.weight.shape + (1,) * n_events) * of(part.given) for part in parts)  # type: ignore[return-value]


def _normal(variable: Variable, nodes: Iterable[Node], parts: Sequence[_Part]) -> tuple[Any, AnyArray]:
    mean = _average(parts, lambda given: given.location()[0], 0)

    def about_mean(given: Expectations) -> Array:
        own, variance = given.location()
        return variance + given.inverse("precision")[0] + np.square(own - mean)

    variance = _average(parts, about_mean, 0)
    exists = np.isfinite(variance)
    return families.Normal(mean, 1.0 / np.where(exists, variance, 1.0)), exists


def _vector(variable: Variable, nodes: Iterable[Node], parts: Sequence[_Part]) -> tuple[Any, AnyArray]:
    mean = _average(parts, lambda given: given.vector()[0], 1)

    def about_mean(given: Expectations) -> Array:
        own, covariance = given.vector()
        away = own - mean
        return covariance + given.covariance() + away[..., :, None] * away[..., None, :]

    covariance = _average(parts, about_mean, 2)
    exists: AnyArray = np.asarray(np.isfinite(covariance).all(axis=(-2, -1)))
    usable = np.where(exists[..., None, None], covariance, np.eye(covariance.shape[-1]))
    return families.MultivariateNormal(mean, inverse(usable)), exists


def _gamma(variable: Variable, nodes: Iterable[Node], parts: Sequence[_Part]) -> tuple[Any, AnyArray]:
    def shape(given: Expectations) -> Array:
        return given.scalar("shape")[0]

    mean = _average(parts, lambda given: shape(given) * given.inverse("rate")[0], 0)
    if _is_rate_of_counts(variable, nodes):
        square = _average(
            parts, lambda given: shape(given) * (1.0 + shape(given)) * given.inverse("rate")[1], 0
        )
        variance = square - np.square(mean)
        own = np.square(mean) / variance
    else:
        inverse = _average(parts, lambda given: _over(given.expected("rate"), shape(given) - 1.0), 0)
        own = _shape_of(mean * inverse, 1.0)
        own = np.where(_is_finite(parts, lambda given: shape(given) > 1.0), own, np.nan)
    exists = np.isfinite(own) & (own > 0)
    own = np.where(exists, own, 1.0)
    return families.Gamma(own, own / np.where(exists, mean, 1.0)), exists


def _matrix(variable: Variable, nodes: Iterable[Node], parts: Sequence[_Part]) -> tuple[Any, AnyArray]:
    size = variable.dimension or 1

    def df(given: Expectations) -> Array:
        return given.scalar("df")[0][..., None, None]

    mean = _average(parts, lambda given: df(given) * given.covariance("inverse_scale"), 2)
    of_inverse = _average(
        parts, lambda given: _over(given.expected("inverse_scale"), df(given) - size - 1.0), 2
    )
    own = _shape_of(np.trace(mean @ of_inverse, axis1=-2, axis2=-1) / size, size + 1.0)
    own = np.where(_is_finite(parts, lambda given: df(given)[..., 0, 0] > size + 1.0), own, np.nan)
    exists = np.isfinite(own) & (own > size - 1)
    own = np.where(exists, own, size)
    usable = np.where(exists[..., None, None], mean, np.eye(size))
    return families.Wishart(own, own[..., None, None] * inverse(usable)), exists


def _over(numerator: Array, surplus: Array) -> Array:
    """Return a mean of an inverse; 0 where it is infinite, which :func:`_is_finite` asks."""
    return np.where(surplus > 0, numerator / np.where(surplus > 0, surplus, 1.0), 0.0)


def _is_finite(parts: Sequence[_Part], condition: Callable[[Expectations], AnyArray]) -> AnyArray:
    """Return where an average is finite: parts in which a figure is infinite have no probability to speak of."""
    infinite = _average(parts, lambda given: np.asarray(~condition(given), dtype=np.float64), 0)
    return infinite < _NEGLIGIBLE


def _shape_of(product: Array, least: float) -> Array:
    r"""Return the shape a (or degrees of freedom) whose mean times mean of the inverse, a / (a - least), is this."""
    return least * product / (product - 1.0)


def _is_rate_of_counts(variable: Variable, nodes: Iterable[Node]) -> bool:
    children = (node for node in nodes if isinstance(node, Poisson | NegativeBinomial))
    return any(slot.node is variable for child in children for slot in child.slots.values())


def _label(variable: Variable, nodes: Iterable[Node], parts: Sequence[_Part]) -> tuple[Any, AnyArray]:
    probabilities = _average(parts, lambda given: variable.moments_given(given)[0], 1)
    return families.Categorical(probabilities), np.ones(probabilities.shape[:-1], dtype=bool)


def _number(variable: Variable, nodes: Iterable[Node], parts: Sequence[_Part]) -> tuple[Any, AnyArray]:
    probability = _average(parts, lambda given: variable.moments_given(given)[0], 0)
    return families.Bernoulli(probability), np.ones(probability.shape, dtype=bool)


_MATCHES: dict[
    type[Variable], Callable[[Variable, Iterable[Node], Sequence[_Part]], tuple[Any, AnyArray]]
] = {
    Normal: _normal,
    MultivariateNormal: _vector,
    Gamma: _gamma,
    Wishart: _matrix,
    Categorical: _label,
    Bernoulli: _number,
}
"""Of each kind of variable, the member of its family with the moments of the forecast, and where it exists."""
