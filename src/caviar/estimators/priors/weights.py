"""Priors of the weights of a mixture: a Dirichlet, a Dirichlet process, or weights that are known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._errors import ParameterError
from ..._typing import Array
from ...language import Dirichlet, StickBreaking
from ...language.nodes.node import Expression
from ...posterior.posterior import Posterior
from ..arguments.checks import as_broadcast, require_choice, require_number


@dataclass(frozen=True)
class DirichletWeights:
    """A Dirichlet with one concentration for all components, or one for each."""

    concentration: Array | float

    def state(self, n_components: int) -> Expression:
        """Return the Dirichlet."""
        return Dirichlet("weights", np.broadcast_to(self.concentration, n_components))

    def weights(self, posterior: Posterior) -> Array:
        """Return the expected weights, or those of a point mass."""
        factor = posterior["weights"]
        return factor.value if hasattr(factor, "value") else factor.mean

    def concentrations(self, posterior: Posterior) -> Array:
        """Return the concentration of each component, (K,)."""
        return posterior["weights"].concentration


@dataclass(frozen=True)
class ProcessWeights:
    """A Dirichlet process, cut off after K pieces of the stick: the last takes all that is left."""

    concentration: float

    def state(self, n_components: int) -> Expression:
        """Return the pieces of the stick."""
        return StickBreaking("weights", self.concentration, n_components)

    def weights(self, posterior: Posterior) -> Array:
        """Return the expected weights."""
        return posterior["weights"].mean

    def concentrations(self, posterior: Posterior) -> tuple[Array, Array]:
        """Return the parameters (a, b) of the Beta of each piece but the last, (K - 1,) each."""
        factor = posterior["weights"]
        return factor.a, factor.b


@dataclass(frozen=True)
class KnownWeights:
    """Weights that are known."""

    known: Array
    concentration: None = None

    def state(self, n_components: int) -> Expression:
        """Return the weights."""
        return self.known

    def weights(self, posterior: Posterior) -> Array:
        """Return the weights."""
        return self.known

    def concentrations(self, posterior: Posterior) -> None:
        """Return None."""


WeightPrior = DirichletWeights | ProcessWeights | KnownWeights
"""How the weights of K components are distributed; ``concentration`` is what was chosen."""


def weight_prior(kind: Any, concentration: Any, n_components: int) -> WeightPrior:
    """Return the prior of the weights that the arguments of an estimator ask for.

    Raises
    ------
    ParameterError
        If they are impossible.

    Examples
    --------
    >>> weight_prior("dirichlet_distribution", None, 4)
    DirichletWeights(concentration=0.25)
    """
    require_choice("weight_concentration_prior_type", kind, ("dirichlet_distribution", "dirichlet_process"))
    given = 1 / n_components if concentration is None else concentration
    if kind == "dirichlet_process":
        if np.ndim(given):
            raise ParameterError(
                f"weight_concentration_prior must be one number for a Dirichlet process; got {concentration!r}"
            )
        require_number("weight_concentration_prior", given, above=0)
        if n_components == 1:
            return KnownWeights(np.ones(1))
        return ProcessWeights(float(given))
    return DirichletWeights(
        as_broadcast(
            "weight_concentration_prior", given, (n_components,), "one number, or one a component", above=0
        )
    )
