"""Draws of components that a model does not distinguish, in the order of those of a fit.

The posterior is the same in any order of such components, and a fit is near one of them. In each draw the components
are put in the order that is nearest to the fit: that of the least sum of squared distances of all their numbers except
weights, in standard deviations of its factors. Of components that are the same in the fit, as at a saddle, each is any
of them.

Source: Stephens, "Dealing with label switching in mixture models" (JRSS B, 2000), for the assignment of each draw.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from itertools import permutations, product
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse.csgraph import connected_components

from ..._typing import AnyArray, Array
from ...language import Label, Variable
from .orders import exchangeable_labels, plates_chosen_by
from .summed_labels import n_values_of

MOST_ORDERS = 6
"""Orders of components in which a proposal is evaluated: those of three. Those of five took ten seconds."""

_SAME, _SEED = 0.1, 0
"""Distance of components, in standard deviations of a number, below which a fit does not tell them apart; and of their
order in draws."""


@dataclass(frozen=True, eq=False)
class Components:
    """Where the numbers of components are that a model does not distinguish.

    Attributes
    ----------
    name
        Of the label that chooses among them.
    number
        How many there are.
    places
        Variable, part of its value, and axis of the components among its repetitions; -1: along the entries of one
        value, which are probabilities.
    """

    name: str
    number: int
    places: tuple[tuple[Variable, int, int], ...]

    @classmethod
    def of(cls, variables: Mapping[str, Variable], label: Label, drawn: Container[str]) -> Components:
        """Return the places of the categories of a label in draws of variables."""
        chosen = plates_chosen_by(variables, label)
        chances = {slot.node for slot in label.slots.values()} if isinstance(label, Variable) else set()
        places: list[tuple[Variable, int, int]] = []
        for own in variables.values():
            if own.name not in drawn or own.is_brought:
                continue
            if own in chances:
                places.append((own, 0, -1))
            parts = [own.plates]
            if len(own.family.transforms) > 1:
                parts.append(own.plates_of("precision"))
            for part, plates in enumerate(parts):
                places += [(own, part, axis) for axis, plate in enumerate(plates) if plate in chosen]
        return cls(label.name, label.categories or 0, tuple(places))

    def numbers(self, draws: Mapping[str, Any]) -> Array:
        """Return what draws say of each component without constraints, (n, components, numbers).

        Their weights are left out: where components overlap, these vary far more than their factors know.
        """
        found = []
        for variable, part, axis in self.places:
            if axis < 0:
                continue
            value = variable.family.transforms[part].forward(_part(draws[variable.name], part))
            each = np.moveaxis(value, 1 + axis, 1)
            found.append(each.reshape(len(each), self.number, -1))
        return np.concatenate(found, axis=2)

    def taken(self, draws: Mapping[str, Any], orders: AnyArray) -> dict[str, Any]:
        """Return draws with their components in other orders, (n, components), or (1, components) for all draws."""
        found = dict(draws)
        for variable, part, axis in self.places:
            own = found[variable.name]
            value = _part(own, part)
            at = value.ndim - 1 if axis < 0 else 1 + axis
            shape = [len(orders), *(1,) * (value.ndim - 1)]
            shape[at] = self.number
            changed = np.take_along_axis(value, orders.reshape(shape), axis=at)
            if isinstance(own, tuple):
                changed = type(own)(*(changed if place == part else each for place, each in enumerate(own)))
            found[variable.name] = changed
        return found


class Nearest(NamedTuple):
    """Components of a fit.

    Attributes
    ----------
    components
        Where their numbers are.
    mean, sd
        Of each number by the factors, (components, numbers).
    alike
        Which components are the same in the fit, for each set of such.
    """

    components: Components
    mean: Array
    sd: Array
    alike: tuple[AnyArray, ...]


@dataclass(frozen=True, eq=False)
class Relabelling:
    """Puts the components of draws in the order that is nearest to a fit.

    Attributes
    ----------
    nearest
        The components of the fit, for each label that chooses among some.
    """

    nearest: tuple[Nearest, ...]

    @classmethod
    def of(
        cls, variables: Mapping[str, Variable], known: Container[str], drawn: Mapping[str, Any]
    ) -> Relabelling:
        """Return that of a fit.

        Parameters
        ----------
        variables
            Of the model, by name.
        known
            Names of what the data have.
        drawn
            Draws of the factors of the fit.
        """
        nearest: list[Nearest] = []
        for label in exchangeable_labels(variables, known):
            if not isinstance(label, Variable) or not n_values_of(label):
                # states of a chain, whose steps have an order too
                continue
            own = Components.of(variables, label, drawn)
            if all(axis < 0 for _, _, axis in own.places):
                continue
            numbers = own.numbers(drawn)
            mean, sd = numbers.mean(axis=0), numbers.std(axis=0)
            if (sd > 0).all():
                nearest.append(Nearest(own, mean, sd, _alike(mean, sd)))
        return cls(tuple(nearest))

    @property
    def n_orders(self) -> int:
        """In how many orders the components of all labels have the same posterior."""
        return math.prod(math.factorial(own.components.number) for own in self.nearest)

    @property
    def names(self) -> list[str]:
        """Names of the variables that have numbers of components."""
        every = [variable.name for own in self.nearest for variable, _, _ in own.components.places]
        return list(dict.fromkeys(every))

    def in_every_order(self, draws: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield draws with their components in each order, that which they have first."""
        every = (permutations(range(own.components.number)) for own in self.nearest)
        for orders in product(*every):
            found = dict(draws)
            for own, order in zip(self.nearest, orders, strict=True):
                found = own.components.taken(found, np.array([order]))
            yield found

    def __call__(self, draws: Mapping[str, Any]) -> dict[str, Any]:
        """Return draws with their components in the order of the fit; those that are the same there in any order."""
        found, rng = dict(draws), np.random.default_rng(_SEED)
        for own in self.nearest:
            numbers = own.components.numbers(found)
            apart = (numbers[:, np.newaxis] - own.mean[:, np.newaxis]) / own.sd[:, np.newaxis]
            orders = _assigned(np.square(apart).sum(axis=-1))
            for places in own.alike:
                orders[:, places] = rng.permuted(orders[:, places], axis=1)
            found = own.components.taken(found, orders)
        return found


def _alike(mean: Array, sd: Array) -> tuple[AnyArray, ...]:
    """Return sets of components that are nearly the same, of two or more."""
    squares = np.square(mean[:, np.newaxis] - mean) / (sd[:, np.newaxis] * sd)
    _, sets = connected_components(np.sqrt(squares.mean(axis=-1)) < _SAME)
    places = (np.flatnonzero(sets == own) for own in range(sets.max() + 1))
    return tuple(own for own in places if len(own) > 1)


def _assigned(costs: Array) -> AnyArray:
    """Return which component of each draw takes each place at the least cost, (n, places), of (n, places, components).

    Those of infinite cost are taken last.
    """
    worst = 1e6 * max(1.0, float(np.max(costs, where=np.isfinite(costs), initial=0.0)))
    costs = np.where(np.isfinite(costs), costs, worst)
    stays = np.trace(costs, axis1=1, axis2=2)
    orders = np.tile(np.arange(costs.shape[1]), (len(costs), 1))
    # an order in which each place has its nearest component is the best
    for number in np.flatnonzero(costs.min(axis=2).sum(axis=1) < stays):
        orders[number] = linear_sum_assignment(costs[number])[1]
    return orders


def _part(value: Any, part: int) -> AnyArray:
    return np.asarray(value[part] if isinstance(value, tuple) else value)
