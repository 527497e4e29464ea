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


def places_of_own_terms(
    variables: Sequence[Variable], terms: Sequence[GlobalTerm], bound: BoundModel
) -> dict[Variable, slice]:
    """Return where the terms of each global variable's density are that depend on nothing else that is latent.

    A hidden variable whose prior is its base measure, as of Pólya and Gamma, has none, nor one whose prior is flat; the
    prior of variables with a shared factor is not a member of the family of this factor.
    """
    found = {}
    of_owner: dict[Variable, list[int]] = {}
    for number, term in enumerate(terms):
        of_owner.setdefault(term.owner, []).append(number)
    for variable in variables:
        numbers, belief = of_owner.get(variable), bound.of(variable).prior
        is_shared = bool(variable.members) or (belief is not None and belief.alone is not belief)
        if numbers and not is_shared and not bound.is_flat(variable):
            keys = [key for number in numbers for key in terms[number].contraction.keys]
            if all(is_of(key, variable) for key in keys):
                found[variable] = slice(numbers[0], numbers[-1] + 1)
    return found
