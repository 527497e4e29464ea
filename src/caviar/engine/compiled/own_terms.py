r"""Own terms: the log density of a global variable under its prior, which its factor's entropy is added to.

.. math:: \langle \log p(\theta) \rangle + H(q) = \langle \eta_0, \mathrm E t \rangle - A(\eta_0) + H(q)
          = -\mathrm{KL}(q \,\|\, p)

Term by term, that takes little time. But the terms of a prior worth 1e12 rows are 1e13 nats, and a few nats are left
of them; so where they are large the divergence is computed instead, as a sum of what is not negative.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._errors import ImproperError, ParameterError
from ...families import ExponentialFamily
from ...language import Variable
from ...numerics.cached import cached_property
from ..binding.bound_model import BoundModel
from ..binding.coordinates import Coordinates
from .global_update import updates_of
from .stated_priors import stated_prior
from .terms import GlobalTerm, is_of

_LARGE = 1e4
"""Nats, and ratio of a term to the sum, from which on digits are lost that matter."""

_HUGE = 1e10
"""Nats from which on the rounding of a term matters, however large the sum is."""


@dataclass(frozen=True)
class OwnTerms:
    """The terms of the prior of a global variable which depend on nothing else that is latent.

    Attributes
    ----------
    where
        These terms among all, which are together.
    """

    variable: Variable
    terms: Sequence[GlobalTerm]
    where: slice
    bound: BoundModel
    coordinates: Coordinates

    @cached_property
    def prior(self) -> ExponentialFamily | None:
        """The prior as a member of its family, measured from the frame; None if double precision has none."""
        reference = self.coordinates.of(self.variable)
        try:
            member: Any = self.bound.of(self.variable).prior or stated_prior(
                self.variable, self.bound.values_of
            )
            if member is not None:
                return member if reference is None else member.translate(-reference)
            natural = updates_of([self.variable], self.terms, self.bound)[self.variable].natural({})
            return self.variable.family.from_natural(natural)
        except (ImproperError, ParameterError):
            return None

    def divergence(self, factor: ExponentialFamily) -> float | None:
        """Return the divergence of a factor from the prior, or None if double precision has no such prior."""
        if self.prior is None:
            return None
        with np.errstate(all="ignore"):
            divergence = factor.kl(self.prior)
        seen = self.bound.of(self.variable).active
        # repetitions with nothing observed below them count nothing
        return float(np.sum(divergence if seen is None else np.where(seen, divergence, 0.0)))


def loses_digits(values: Sequence[float], entropy: float) -> bool:
    """Whether the sum of own terms and an entropy has lost digits that matter.

    Parameters
    ----------
    values
        Of the terms.
    entropy
        Of the factor, about the measure of its family.
    """
    largest, total = max(map(abs, values)), sum(values)
    if largest < _LARGE and total == total:
        return False
    return not (largest < _HUGE and largest < _LARGE * max(1.0, abs(total + entropy)))


def own_terms_of(
    variables: Sequence[Variable], terms: Sequence[GlobalTerm], bound: BoundModel, coordinates: Coordinates
) -> dict[Variable, OwnTerms]:
    """Return the own terms of the global variables whose priors are proper and depend on known values alone."""
    found = {}
    of_owner: dict[Variable, list[int]] = {}
    for number, term in enumerate(terms):
        of_owner.setdefault(term.owner, []).append(number)
    for variable in variables:
        numbers = of_owner.get(variable)
        if not numbers or variable.members:
            # a hidden variable whose prior is its base measure, as of Pólya and Gamma, has none; that of variables with
            # a shared factor is no member of the family of this factor
            continue
        own = [terms[number] for number in numbers]
        keys = [key for term in own for key in term.contraction.keys]
        belief = bound.of(variable).prior
        is_shared = belief is not None and belief.alone is not belief
        if not is_shared and not bound.is_flat(variable) and all(is_of(key, variable) for key in keys):
            where = slice(numbers[0], numbers[-1] + 1)
            found[variable] = OwnTerms(variable, own, where, bound, coordinates)
    return found
