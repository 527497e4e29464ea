"""Factors of a posterior: those that several globals share, of which it shows the marginal of each variable."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._errors import DataError, ModelError
from .._typing import Array
from ..families.shared.coupled_normals import by_variable
from ..families.shared.shared_factor import SharedFactor
from ..numerics.cached import cached_property

_SAME_ELBO = 1e-7
"""Difference of two objectives, relative to their size, that is rounding: of the same data it is 1e-12 or less."""


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
    def among(cls, factors: Mapping[str, Any]) -> SharedFactors:
        """Return the shared factors among others."""
        return cls({name: own for name, own in factors.items() if isinstance(own, SharedFactor)})

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


class Factored:
    """A posterior of a model: a factor of each global variable, by name, and those that several share."""

    model: Any
    elbo: float
    _at_end: Callable[[], Mapping[str, Any]]
    """Returns the factors that a fit ended with."""
    _local: set[str]
    _has_gaps: bool = False
    """Whether vectors of the data were seen in part: what is missing in them has a factor in each row."""
    _evaluator: Any
    """It binds the model to data."""

    @cached_property
    def _of_globals(self) -> Mapping[str, Any]:
        """All factors of globals by name, made when they are first asked for."""
        return self._at_end()

    @cached_property
    def _shared(self) -> SharedFactors:
        return SharedFactors.among(self._of_globals)

    @cached_property
    def _factors(self) -> Mapping[str, Any]:
        return {name: own for name, own in self._of_globals.items() if name not in self._shared.by_name}

    def __getitem__(self, name: str) -> Any:
        """Return the factor of a global variable."""
        if isinstance(name, str) and name in self._factors:
            return self._factors[name]
        if isinstance(name, str) and name in self._local:
            raise ModelError(
                f"'{name}' has a value for each row; posterior.local(data)['{name}'] gives its factors"
            )
        known = ", ".join(f"'{other}'" for other in self._factors) or "no global variable"
        raise ModelError(f"the posterior has no factor {name!r}; it has {known}")

    def __iter__(self) -> Iterator[str]:
        return iter(self._factors)

    def __len__(self) -> int:
        return len(self._factors)

    def __contains__(self, name: object) -> bool:
        return name in self._factors

    def keys(self) -> list[str]:
        """Return the names of the global variables."""
        return list(self._factors)

    @property
    def _independent(self) -> dict[str, Any]:
        return self._shared.independent(self._factors)

    @property
    def is_exact(self) -> bool:
        """Whether all unknown variables share one factor; then q assumes no independence.

        Examples
        --------
        >>> import caviar as cv
        >>> p = cv.Beta("p", 1, 1)
        >>> cv.Model(cv.Bernoulli("x", p, plates=cv.Plate("obs"))).fit({"x": [1, 1, 0]}).is_exact
        True
        """
        has_one_factor = len(self._independent) + len(self._local) == 1 and not self._has_gaps
        return has_one_factor and not self._evaluator.point

    def _counted(self, data: Any, sample_weight: Any = None) -> dict[str, Array]:
        """Return which repetitions of global variables count for these data, of those with some that do not."""
        problem, _ = self._evaluator.bind(data, sample_weight)
        learnt = {own for variable in problem.order for own in (variable, *variable.members)}
        return {
            variable.name: active
            for variable, active in problem.bound.gathered("active").items()
            if variable in learnt
        }

    def _is_own_elbo(self, elbo: float) -> bool:
        """Whether an objective of the same factors equals, up to rounding, that of the data of the fit."""
        return abs(elbo - self.elbo) <= _SAME_ELBO * max(1.0, abs(self.elbo))

    def _refuse_other_data(self, elbo: float | None) -> None:
        """Refuse data for which q has another ELBO than for those of the fit."""
        if elbo is not None and not self._is_own_elbo(elbo):
            raise DataError(
                f"expected the data of the fit, for which q has an ELBO of {self.elbo:.6g} nats; for these data it is "
                f"{elbo:.6g}. With other rows or other weights, q does not approximate the posterior: give the data "
                f"(and sample_weight=) of the fit, or fit the model to these data"
            )
