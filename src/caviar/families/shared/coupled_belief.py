"""The earlier posterior of several variables that share a factor, as the prior of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from caviar._typing import Array
from caviar.families.base.family import Pairs, Prior
from caviar.families.multivariate_normal import MultivariateNormal
from caviar.families.normal import Normal
from caviar.families.shared.coupled_normals import CoupledNormals


@dataclass(frozen=True, eq=False)
class CoupledBelief:
    """The prior of one of several variables whose earlier posterior is one factor: its share of the factor.

    Attributes
    ----------
    joint
        The factor of all.
    name
        Of the variable.
    """

    joint: CoupledNormals
    name: str

    @property
    def alone(self) -> Normal | MultivariateNormal:
        """The marginal distribution of the variable."""
        return self.joint.marginals[self.name]

    def as_prior(self, name: str, points: Mapping[str, Array]) -> Prior:
        """Return its own terms, and the products with later ones; the first variable has the log-partition of all."""
        shifts = {own: -points[own] for own in self.joint.names if own in points}
        moved, number = self.joint.translated(shifts), self.joint.layout.number_of(name)
        natural = moved.natural
        n_own = 2 * len(moved.layout.members)
        pairs = []
        for cross, eta in zip(moved.layout.crosses, natural[n_own:], strict=True):
            first, second = cross.members
            if number == min(first, second):
                i, j = (cross.i, cross.j) if number == first else (cross.j, cross.i)
                pairs.append(Pairs(moved.names[max(first, second)], i, j, eta.ravel()))
        constant = moved.log_partition if number == 0 else 0.0
        return Prior(natural[2 * number : 2 * number + 2], constant, tuple(pairs))
