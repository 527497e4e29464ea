"""Posterior: what a fit gives back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from ._errors import ModelError
from .engine.evaluate import factors_at, local_distributions, objective_at
from .engine.loop import Result
from .engine.passes import Passes
from .engine.plan import Plan
from .engine.status import Status

__all__ = ["Posterior"]


class Binds(Protocol):
    """Binds the fitted model to other data."""

    def bind(self, data: Mapping[str, Any], sample_weight: Any = None) -> tuple[Plan, Passes]:
        """Return the plan for other data, and its passes."""
        ...


class Posterior:
    """The mean-field posterior q = prod q_j, with its evidence lower bound.

    ``posterior["mean"]`` is the factor of a global variable: a distribution of its family, batched over its
    plates, or a point mass. Local variables come from :meth:`local`.

    Attributes
    ----------
    elbo
        The objective in nats, every constant included: a lower bound of log p(x) wherever priors are proper
        and no factor is a point mass. It belongs to the factors that are returned.
    elbo_trace
        The objective at the start and after each iteration, shape (n_iter + 1,).
    elbo_terms
        The objective by factor: expected log density of its variables plus its entropy; they sum to ``elbo``.
    status
        Why the fit stopped; prints as a sentence.
    n_iter
        Iterations of the kept start.
    restart_elbos
        Objective that each start ended with.
    """

    def __init__(self, model: Any, result: Result, evaluator: Binds, restart_elbos: Sequence[float]) -> None:
        self.model = model
        self.elbo = result.elbo
        self.elbo_trace = result.trace
        self.elbo_terms = result.terms
        self.status = result.status
        self.n_iter = result.n_iter
        self.restart_elbos = np.array(restart_elbos)
        self._evaluator = evaluator
        self._local = {variable.name for factor in result.plan.factors for variable in factor.variables}
        self._factors = factors_at(result.plan, result.q)

    @property
    def converged(self) -> bool:
        """Whether the objective settled."""
        return self.status is Status.CONVERGED

    def __getitem__(self, name: str) -> Any:
        """Return the factor of a global variable."""
        if name in self._factors:
            return self._factors[name]
        if name in self._local:
            raise ModelError(
                f"'{name}' has a value for each row; posterior.local(data)['{name}'] gives its factors"
            )
        known = ", ".join(f"'{other}'" for other in self._factors)
        raise ModelError(f"the posterior has no factor '{name}'; it has {known}")

    def __iter__(self) -> Iterator[str]:
        return iter(self._factors)

    def __len__(self) -> int:
        return len(self._factors)

    def __contains__(self, name: object) -> bool:
        return name in self._factors

    def keys(self) -> list[str]:
        """Return the names of the global variables."""
        return list(self._factors)

    def local(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """Return the factors of the local variables for rows of data, old or new, the globals as they are.

        Local factors that depend on each other (only with ``factors=``, where a joint one was taken apart) are swept
        from a cold start, which may lead to another optimum than that of the fit.

        Parameters
        ----------
        data
            As for the fit; any number of rows.

        Returns
        -------
        dict
            Name -> distribution with the rows as first batch axis.
        """
        plan, passes = self._evaluator.bind(data)
        return local_distributions(plan, self._factors, passes)

    def elbo_at(
        self, factors: Mapping[str, Any], data: Mapping[str, Any], *, sample_weight: Any = None
    ) -> float:
        """Return the objective of other factors.

        Parameters
        ----------
        factors
            Name -> distribution, for variables whose factor differs from this posterior's. Local
            Categoricals may be given too (as :meth:`local` returns them); other local factors are at their
            optimum.
        data
            As for the fit.
        sample_weight
            As for the fit.
        """
        plan, passes = self._evaluator.bind(data, sample_weight)
        return objective_at(plan, {**self._factors, **factors}, passes)

    def __repr__(self) -> str:
        lines = [f"Posterior(elbo={self.elbo:.6f}, status={self.status.value!r}, n_iter={self.n_iter})"]
        lines += [f"  {name}: {factor!r}" for name, factor in self._factors.items()]
        lines += [f"  {name}: one for each row, see posterior.local(data)" for name in sorted(self._local)]
        return "\n".join(lines)
