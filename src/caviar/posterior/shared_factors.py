"""Factors of a posterior: those that several globals share, of which it shows the marginal of each variable."""

from __future__ import annotations

from abc import ABC
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._errors import ModelError
from ..families._shared import SharedFactor
from ..families.coupled_normals import by_variable


@dataclass(frozen=True)
class SharedFactors:
    """The factors that several globals share.

    Attributes
    ----------
    by_name
        Each by its name, which lists those of its variables.
    """

    by_name: Mapping[str, SharedFactor] = field(default_factory=dict)

    @classmethod
    def taken_from(cls, factors: dict[str, Any]) -> SharedFactors:
        """Remove the shared factors from the others, and return them."""
        names = [name for name, own in factors.items() if isinstance(own, SharedFactor)]
        return cls({name: factors.pop(name) for name in names})

    def beside(self, factors: Mapping[str, Any], left_out: Collection[str]) -> dict[str, Any]:
        """Return the factors of variables except some, together with the shared ones."""
        return {name: own for name, own in {**factors, **self.by_name}.items() if name not in left_out}

    def independent(self, factors: Mapping[str, Any]) -> dict[str, Any]:
        """Return factors that are independent of each other, with shared factors instead of marginals."""
        shared = {name for own in self.by_name.values() for name in own.names}
        return {name: own for name, own in factors.items() if name not in shared} | dict(self.by_name)

    def drawn(self, factors: Mapping[str, Any], n: int | None, rng: np.random.Generator) -> dict[str, Any]:
        """Return draws of all variables by name, those that share a factor together."""
        draws = {name: own.sample(n, rng) for name, own in self.independent(factors).items()}
        found = by_variable(draws)
        return {name: found[name] for name in factors}

    def changed(self, factors: Mapping[str, Any], others: Mapping[str, Any]) -> dict[str, Any]:
        """Return factors that are independent of each other, with some of them replaced; a marginal replaces nothing.

        Raises
        ------
        ModelError
            If one replaces the factor of a variable that shares its factor.
        """
        others = {name: own for name, own in others.items() if own is not factors.get(name)}
        for own in self.by_name.values():
            given = next((name for name in others if name in own.names), None)
            if given is not None:
                raise ModelError(
                    f"'{given}' has no separate factor: {', '.join(own.names)} share one. Fit with "
                    f"factors='apart' to separate them"
                )
        return {**self.independent(factors), **others}


class Factored(ABC):
    """A posterior of a model: a factor of each global variable, by name, and those that several share."""

    model: Any
    _factors: Mapping[str, Any]
    _shared: SharedFactors
    _evaluator: Any
    """It binds the model to data."""
