"""What a posterior says of the evidence of its model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ..._errors import CaviarError, DataError, ModelError, ParameterError
from ..._typing import AnyArray, Array
from ...engine.evaluation.given_by_passes import why_apart
from ...engine.evaluation.log_joints import log_joints
from ...numerics.cached import cached_property
from ...numerics.randomness import generator
from ..diagnostics.diagnosis import refuse_what_has_no_weights
from ..linear_response import LinearResponse, Responds
from ..simulation import check_count, drawn_again
from .by_densities import ByDensities, by_densities
from .coordinates import Coordinates
from .evidence import Evidence, second_order
from .importance import ImportanceSample, importance_sample
from .orders import empty_of, orders_of
from .relabelling import MOST_ORDERS, Relabelling

METHODS = ("auto", "importance_sampling", "second_order", "elbo")

_OF_Q = 4_000
"""Draws of q by whose mean the first proposal is centred."""

_MOST_NUMBERS, _MOST_ROWS = 300, 5e7
"""Most numbers of all globals that ``"auto"`` draws, since of more the weights are hardly ever usable; and most rows
that all draws together read, some tens of seconds for a mixture."""

_MOST_DENSITIES = 3e8
"""Of all draws that ``"auto"`` weighs by densities: about half a minute."""

_PREFERRED = 2.0
"""Errors of importance sampling over those of second order up to which the former is taken: it leaves nothing out."""


class TellsEvidence(Responds):
    """A posterior whose model has an evidence."""

    _by_factor: Callable[[], dict[str, float]]

    @cached_property
    def elbo_terms(self) -> dict[str, float]:
        """The objective by factor."""
        return self._by_factor()

    @property
    def observed_names(self) -> frozenset[str]:
        """Names of the observed variables of the model."""
        return frozenset(leaf.name for leaf in self.model.leaves)

    @property
    def without_prior(self) -> frozenset[str]:
        """Names of unknowns with a flat prior, and of those that are points: log p(x) has a constant for each."""
        flat = {name for name, variable in self.model.variables.items() if variable.is_flat}
        return frozenset(flat | set(self._evaluator.point))

    def data_of_model(self, data: Any) -> Any:
        """Return a mapping without the arrays that the model has no name for; tables as they are."""
        if not isinstance(data, Mapping):
            return data
        names = {node.name for node in self.model.nodes}
        return {name: value for name, value in data.items() if name in names}

    def evidence(
        self,
        data: Any,
        *,
        method: str = "auto",
        n_draws: int = 1000,
        seed: int | np.random.Generator | None = 0,
        sample_weight: Any = None,
    ) -> Evidence:
        r"""Return an estimate of the log evidence log p(x) with its error.

        Parameters
        ----------
        data
            The data of the fit.
        method
            ``"second_order"`` adds to the ELBO the correction :math:`-\frac12 \log |I - V H|` for the dependence
            between factors, at the cost of :meth:`linear_response`. ``"importance_sampling"`` uses
            :meth:`importance_sample`. ``"elbo"`` is the lower bound. ``"auto"`` takes the best available estimate: the
            ELBO if it is exact; otherwise importance sampling, if its weights are usable (Pareto k below 0.7), it reads
            at most 50 million rows in all, and its error is at most twice that of second order; otherwise second order.
        n_draws, seed
            Number of draws for importance sampling, and their seed.
        sample_weight
            As for the fit.

        Returns
        -------
        Evidence
            With ``.value`` and ``.error`` in nats, ``.method``, and ``.remark``, a sentence on the method. With flat
            priors or points there is no evidence, which ``.remark`` says; ``.without_prior`` has their names.

        Raises
        ------
        DataError
            If the data are not those of the fit.
        ModelError
            If the method is not available for the model; the message says why. With ``"auto"``, ``.remark`` says why.

        Notes
        -----
        The error of second order is a sixth of the correction (a third with ``method="expectation"`` of a link), plus
        0.02 nats if rows have hidden labels, a rule from simulations. Second order is exact if the posterior of all
        hidden variables is Normal, and ignores the dependence between several local factors of a row. All methods
        describe the mode of the fit. For a model with K exchangeable, well-separated components, add log K! for their
        orders, ``.log_orders``; ``.remark`` says so. If one component has no rows, more is missing: labels that give
        it rows are another mode.

        Examples
        --------
        The data determine only the sum of two means; the posterior is Normal:

        >>> import caviar as cv
        >>> a, b = cv.Normal("a", 0, 1), cv.Normal("b", 0, 1)
        >>> x = cv.Normal("x", a + b, 4.0, plates=cv.Plate("obs"))
        >>> data = {"x": [1.0, 1.5, 2.0]}
        >>> posterior = cv.Model(x).fit(data, factors="apart", tol=1e-12)
        >>> print(round(posterior.elbo, 4), round(posterior.evidence(data, method="second_order").value, 4))
        -4.7823 -3.8268
        """
        if method not in METHODS:
            raise ParameterError(f"method must be one of {', '.join(map(repr, METHODS))}; got {method!r}")
        found = self._evidence(data, method, n_draws, seed, sample_weight)
        # labels may be known, which only the data say
        known = data if isinstance(data, Mapping) else ()
        orders = () if data is None else orders_of(self.model.variables, known)
        empty = empty_of(self.model.variables, self._factors, [name for name, _ in orders])
        return replace(found, without_prior=tuple(sorted(self.without_prior)), orders=orders, empty=empty)

    def _evidence(self, data: Any, method: str, n_draws: int, seed: Any, sample_weight: Any) -> Evidence:
        """Return the evidence by a method."""
        if method == "elbo":
            return Evidence(self.elbo, np.inf, "elbo", self.elbo)
        if method == "auto" and self.is_exact:
            return Evidence(self.elbo, 0.0, "exact", self.elbo)
        if method == "second_order":
            return self._second_order(data, sample_weight)
        if method == "importance_sampling":
            arguments = {"n_draws": n_draws, "seed": seed, "sample_weight": sample_weight}
            return self._sampled(self.importance_sample(data, **arguments))
        return self._best_evidence(data, n_draws, seed, sample_weight)

    def _best_evidence(self, data: Any, n_draws: int, seed: Any, sample_weight: Any) -> Evidence:
        """Return the evidence by the best method that there is."""
        try:
            response = self._responding(data, sample_weight, has_determinant=True)
            correction = response.elbo_correction
        except DataError:
            raise
        except (CaviarError, np.linalg.LinAlgError) as error:
            return Evidence(self.elbo, np.inf, "elbo", self.elbo, None, _told(error))
        try:
            found = self._importance_sample(data, response, n_draws, seed, sample_weight, is_asked=False)
        except (CaviarError, ImportError, np.linalg.LinAlgError) as error:
            return second_order(self.elbo, correction, _told(error), **_kinds(response))
        corrected = second_order(self.elbo, correction, **_kinds(response))
        if not found.is_usable:
            why = f"the weights of importance sampling have a Pareto k of {found.pareto_k:.2f}"
        elif found.log_evidence_error > _PREFERRED * corrected.error:
            why = f"importance sampling has a larger error, {found.log_evidence_error:.2g}"
        else:
            return self._sampled(found)
        return replace(corrected, because=why)

    def importance_sample(
        self,
        data: Any,
        *,
        n_draws: int = 1000,
        seed: int | np.random.Generator | None = 0,
        sample_weight: Any = None,
    ) -> ImportanceSample:
        """Return weighted draws of the posterior, from a proposal with the covariance of linear response.

        If q is too narrow for importance weights of its own draws (see :meth:`diagnose`), this proposal is mostly wide
        enough. It includes the dependence between globals, and two rounds of pilot draws adapt it to the posterior. So
        it also corrects means, which linear response does not.

        Parameters
        ----------
        data
            The data of the fit.
        n_draws
            Number of draws, at least 100. The same number is used to adapt the proposal, and up to two and a half times
            as many where rows hide labels. Each takes a pass over the rows.
        seed
            Seed of the draws.
        sample_weight
            As for the fit.

        Returns
        -------
        ImportanceSample
            ``.mean(name)``, ``.sd(name)``, ``.interval(name, level)``, ``.pareto_k``, ``.log_evidence`` with its error,
            ``.draws`` and ``.weights``. Repetitions with nothing observed below them are drawn
            given what they depend on.
            Components that the model does not distinguish are in the order nearest to the fit, up to three.

        Raises
        ------
        DataError
            If the data are not those of the fit.
        ModelError
            If there is no linear response, p(x, globals) has no closed form, or a global is a label.

        Examples
        --------
        >>> import caviar as cv
        >>> tau = cv.Gamma("tau", 1, 1)
        >>> x = cv.Normal("x", cv.Normal("mean", 0, 0.1), tau, plates=cv.Plate("obs"))
        >>> data = {"x": [1.1, 0.3, 2.2, 1.0]}
        >>> found = cv.Model(x).fit(data, tol=1e-10).importance_sample(data, seed=0)
        >>> found.is_usable, found.effective_draws > 500
        (True, True)
        """
        response = self.linear_response(data, sample_weight=sample_weight)
        return self._importance_sample(data, response, n_draws, seed, sample_weight, is_asked=True)

    def _importance_sample(
        self,
        data: Any,
        response: LinearResponse,
        n_draws: int,
        seed: Any,
        sample_weight: Any,
        *,
        is_asked: bool,
        most_apart: float = np.inf,
    ) -> ImportanceSample:
        check_count("n_draws", n_draws)
        rng = generator(seed)
        problem, row_map = self._evaluator.at_points(data, sample_weight)
        counted = self._counted(data, sample_weight)
        density = by_densities(self, data, sample_weight, problem, counted)
        refuse_what_has_no_weights(self._factors, None if density else problem, n_draws)
        coordinates = Coordinates.of(self._factors, counted, rng)
        if not coordinates.size:
            raise ModelError("the model hides no numbers that could be drawn")
        n_rows = row_map.source.n_rows
        # whatever its value, a repetition without an observation below it is integrated out
        problem = problem.counting(counted)
        row_map = row_map.at(problem.rows)
        if not is_asked:
            _refuse_what_costs_much(coordinates, n_rows, n_draws, density)
        of_q = self._shared.drawn(self._factors, _OF_Q, rng)
        covariance = coordinates.covariance(response.between_all)
        center = coordinates.vectors(of_q).mean(axis=0)

        def by_passes(values: Mapping[str, Any]) -> Array:
            return log_joints(problem, values, row_map, most_apart)

        order = self._relabelling(data, of_q, counted)
        found = importance_sample(
            coordinates,
            center,
            covariance,
            density or by_passes,
            n_draws,
            rng,
            order,
            is_mixed=response.hides_labels and (density is not None or not why_apart(problem)),
        )
        unseen = {name: np.logical_not(own) for name, own in counted.items() if name in found.draws}
        return replace(found, draws=self._with_unseen(found.draws, unseen, data, rng)) if unseen else found

    def _with_unseen(
        self, draws: Mapping[str, Any], unseen: Mapping[str, AnyArray], data: Any, rng: np.random.Generator
    ) -> dict[str, Any]:
        """Return draws with those of repetitions that nothing is observed below, given what is above them."""
        leaves = [self.model.variables[name] for name in unseen]
        return drawn_again(leaves, self._evaluator.named(data).values, draws, unseen, rng)

    def _relabelling(
        self, data: Any, of_q: Mapping[str, Any], counted: Mapping[str, AnyArray]
    ) -> Relabelling:
        """Return what puts components in the order of the fit, of draws of q; none where they have too many orders."""
        values = self._evaluator.named(data).values
        known = values.keys() if isinstance(values, Mapping) else ()
        found = Relabelling.of(self.model.variables, known, of_q)
        is_known = found.n_orders <= MOST_ORDERS and not counted.keys() & {*found.names}
        return found if is_known else Relabelling(())

    def _second_order(self, data: Any, sample_weight: Any) -> Evidence:
        response = self._responding(data, sample_weight, has_determinant=True)
        return second_order(self.elbo, response.elbo_correction, **_kinds(response))

    def _sampled(self, found: ImportanceSample) -> Evidence:
        return Evidence(
            found.log_evidence,
            found.log_evidence_error,
            "importance_sampling",
            self.elbo,
            found.pareto_k,
            is_in_order=found.n_orders > 1,
        )


def _refuse_what_costs_much(
    coordinates: Coordinates, n_rows: int, n_draws: int, density: ByDensities | None
) -> None:
    if coordinates.size > _MOST_NUMBERS:
        raise ModelError(
            f"importance sampling of {coordinates.size} numbers has no usable weights, as a rule"
        )
    if 2 * n_draws * n_rows > _MOST_ROWS:
        raise ModelError(
            f"importance sampling would read {n_rows:,} rows {2 * n_draws:,} times; "
            f"method='importance_sampling' does it"
        )
    if density is not None and 2 * n_draws * density.size > _MOST_DENSITIES:
        raise ModelError(
            f"importance sampling would integrate out the hidden numbers of {n_rows:,} rows {2 * n_draws:,} times; "
            f"method='importance_sampling' does it"
        )


def _kinds(response: LinearResponse) -> dict[str, Any]:
    """Return what the error of second order depends on."""
    return {"hides_labels": response.hides_labels, "has_expectations": response.has_expectations}


def _told(error: BaseException) -> str:
    """Return the first sentence of a message."""
    return str(error).partition(". ")[0].rstrip(".")
