"""Evaluation of given factors: on the data of the fit, or on other rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ... import families
from ..._errors import ModelError, ParameterError
from ..._typing import AnyArray, Array
from ...language import Variable
from ...lazy.rows import in_memory
from ..ascent.driver import Settings, ascend
from ..ascent.elbo import Objective
from ..ascent.problem import Plan, statistics_of
from ..ascent.state import begin, ready
from ..binding.clamped.given import refuse_missing_value
from ..binding.clamped.point_mass import PointMass
from ..binding.coordinates import Frame, frame_about
from ..binding.nested import outer_variables
from ..local.categorical import CategoricalFactor
from ..local.gated import Gated
from ..local.local_factor import LocalFactor
from ..local.statistics import Summary
from ..rows.row_map import Passes
from ..starts.factors.given_factors import refuse_other_factor, refuse_other_labels
from ..starts.factors.prior import prior_start
from ..topics.evaluate import by_token, densities_of_words, objective_of_documents, thorough
from ..topics.lowering import DocumentBinding
from .predictive import log_predictive

__all__ = [
    "GivenGlobals",
    "factors_at",
    "in_frame",
    "local_distributions",
    "objective_at",
    "points_at",
    "predictive_densities",
]


_ANEW = Settings(max_iter=500, tol=1e-8)
"""Of the ascent in the variables of an outer plate, for data to which the other globals are given."""


def factors_at(plan: Plan, q: Mapping[Variable, Any]) -> dict[str, Any]:
    """Return the global factors by name, measured from the user's origin."""
    factors = {}
    for variable, factor in q.items():
        reference = plan.frame.of(variable)
        moved = factor if reference is None else factor.translate(reference)
        known = plan.binding.known.get(variable)
        # to the last bit as they were given, which no translation there and back would be
        factors[variable.name] = moved if known is None else known.over(variable, moved, None)
    return factors


def in_frame(
    plan: Plan,
    factors: Mapping[str, Any],
    variables: Iterable[Variable] | None = None,
    frame: Frame | None = None,
) -> dict[Variable, Any]:
    """Return factors of global variables (all), from the reference points of a frame (the plan's)."""
    q = {}
    for variable in plan.order if variables is None else variables:
        reference = (frame or plan.frame).of(variable)
        factor = _factor_of(factors, variable)
        moved = factor if reference is None else factor.translate(-reference)
        q[variable] = plan.with_known(variable, moved, frame)
    return q


def _factor_of(factors: Mapping[str, Any], variable: Variable) -> Any:
    if variable.name not in factors:
        refuse_missing_value(variable.name)
    return factors[variable.name]


def local_distributions(
    plan: Plan, factors: Mapping[str, Any], passes: Passes, *, anew: bool = True
) -> dict[str, Any]:
    """Return the local factors of all rows by name, the globals given.

    Variables of an outer plate, as the proportions of documents, belong to the data: they are found ``anew``, unless
    the data are those that the factors were fitted to.
    """
    plan = thorough(plan)
    outer = outer_variables(plan.binding.nodes, plan.order) if anew else []
    if not anew:
        _check_sizes(plan, factors)
    q = in_frame(plan, factors, [variable for variable in plan.order if variable not in outer])
    found_anew: dict[str, Any] = {}
    if outer:
        plan = plan.updating(outer)
        result = ascend(_ANEW, plan, {**q, **prior_start(plan, q)}, passes)
        plan, q = result.plan, dict(result.q)
        found_anew = factors_at(plan, {variable: q[variable] for variable in outer})
    by_row = GivenGlobals(plan, q).local(passes)
    if isinstance(plan.binding, DocumentBinding):
        by_row = by_token(plan.binding, by_row)
    return {**found_anew, **by_row}


class GivenGlobals:
    """Local factors given the global ones, of any rows that a plan is compiled for.

    Parameters
    ----------
    plan
        Compiled for rows with these columns, however many there are.
    q
        Global factors, measured from its frame.
    """

    def __init__(self, plan: Plan, q: Mapping[Variable, Any]) -> None:
        self._plan, self._q, _, self._coefficients = ready(plan, q, statistics_of(plan, q))

    @classmethod
    def of(cls, plan: Plan, factors: Mapping[str, Any]) -> GivenGlobals:
        """Return the same for factors by name, measured from the user's origin."""
        plan = thorough(plan)
        return cls(plan, in_frame(plan, factors))

    def local(self, passes: Passes) -> dict[str, Any]:
        """Return the local factors of all rows by name."""
        plan = self._plan
        found: dict[Variable, list[Any]] = {}
        with passes.executor.session():
            paths = {}
            if plan.chain is not None:
                means = _means_of_slots(plan, plan.chain.variables[0], self._q)
                paths[plan.chain.name] = passes.path(plan.rows, plan.chain, self._coefficients, means)
            others = [factor for factor in plan.factors if factor is not plan.chain]
            blocks = passes.natural_parameters(plan.rows, passes.source, self._coefficients) if others else ()
            for block in blocks:
                for factor, natural in block.items():
                    if factor is plan.chain:
                        continue
                    for variable, distribution in factor.distributions(natural).items():
                        found.setdefault(variable, []).append(distribution)
        order = _inverse(passes.source.places(0, passes.source.n_rows))
        return paths | {
            variable.name: _translated(
                plan, variable, _in_order(_joined(parts) if parts[1:] else parts[0], order)
            )
            for variable, parts in found.items()
        }


def _means_of_slots(plan: Plan, variable: Variable, q: Mapping[Variable, Any]) -> dict[str, Array]:
    """Return the expectation of what stands in each slot of a variable that global factors or known values tell."""
    values, found = plan.binding.values, {}
    for name, slot in variable.slots.items():
        if plan.binding.is_local(slot.node):
            continue
        mean = (
            values[slot.node]
            if not isinstance(slot.node, Variable) or slot.node in values
            else q[slot.node].mean
        )
        found[name] = np.asarray(mean, dtype=np.float64)
    return found


def _check_sizes(plan: Plan, factors: Mapping[str, Any]) -> None:
    """Refuse factors of an outer plate that has another size in these data."""
    for variable in outer_variables(plan.binding.nodes, plan.order):
        sizes = tuple(plan.binding.sizes[plate] for plate in variable.plates)
        own = np.shape(factors[variable.name].mean)[: len(sizes)]
        if own != sizes:
            raise ModelError(
                f"the factor of '{variable.name}' has repetitions {own}, but these data have {sizes}; "
                f"posterior.local(data)['{variable.name}'] finds it for other data"
            )


def predictive_densities(plan: Plan, factors: Mapping[str, Any], passes: Passes) -> Array:
    """Return the log density under the global factors of each row of the plan's data, shape (rows,).

    Raises
    ------
    ModelError
        If it has no closed form.
    """
    if isinstance(plan.binding, DocumentBinding):
        local = local_distributions(plan, factors, passes)
        return densities_of_words(plan.binding, {**factors, **local})
    _check_sizes(plan, factors)

    def measure(gate: Variable | None, category: int | None) -> tuple[Frame, dict[Variable, Any]]:
        frame = frame_about(plan.frame, factors, gate, category)
        return frame, in_frame(plan, factors, frame=frame)

    return log_predictive(plan.binding, measure)


def points_at(plan: Plan, values: Mapping[str, Any]) -> dict[str, PointMass]:
    """Return point masses of global variables at these values, by name.

    Raises
    ------
    ParameterError
        If a name is unknown, or a value has another shape than its variable.
    """
    latent = {variable.name: variable for variable in plan.order}
    points = {}
    for name, value in values.items():
        if name not in latent:
            known = ", ".join(repr(other) for other in latent)
            raise ParameterError(
                f"given= names {name!r}, which is no global variable of the posterior; it has {known}"
            )
        parts = (
            tuple(np.asarray(part, dtype=np.float64) for part in value) if isinstance(value, tuple) else None
        )
        point = np.asarray(value, dtype=np.float64) if parts is None else families.MeanPrecision(*parts)
        points[name] = PointMass.of(latent[name], point)
        refuse_other_factor(plan, latent[name], points[name])
    return points


def _joined(parts: list[Any]) -> Any:
    """Return the distributions of consecutive blocks of rows as one batch."""
    first = parts[0]
    if isinstance(first, Gated):
        probabilities = np.concatenate([part.probabilities for part in parts])
        return Gated(probabilities, _joined([part.conditional for part in parts]))
    if isinstance(first, families.Categorical):
        return families.Categorical(np.concatenate([part.probabilities for part in parts]))
    naturals = zip(*(part.natural for part in parts), strict=True)
    return type(first).from_natural(tuple(np.concatenate(arrays) for arrays in naturals))


def _inverse(places: slice | AnyArray) -> AnyArray | None:
    """Return where each of the user's rows stands in a source; None if the source has them in their order."""
    return None if isinstance(places, slice) else np.argsort(places)


def _in_order(distribution: Any, order: AnyArray | None) -> Any:
    """Return a batch of distributions, rows first, in another order."""
    if order is None:
        return distribution
    if isinstance(distribution, Gated):
        return Gated(distribution.probabilities[order], _in_order(distribution.conditional, order))
    if isinstance(distribution, families.Categorical):
        return families.Categorical(distribution.probabilities[order])
    return type(distribution).from_natural(tuple(array[order] for array in distribution.natural))


def _translated(plan: Plan, variable: Variable, distribution: Any) -> Any:
    reference = plan.frame.of(variable)
    return distribution if reference is None else distribution.translate(reference)


def objective_at(plan: Plan, factors: Mapping[str, Any], passes: Passes) -> float:
    """Return the objective of given factors; local factors that are not given are at their optimum.

    Raises
    ------
    ModelError
        If a name is unknown.
    ParameterError
        If a factor is not one of its variable: of another family, or of another shape.
    """
    plan = thorough(plan)
    local = {v.name: f for f in plan.factors for v in f.variables if v not in plan.binding.values}
    known = {variable.name for variable in plan.order} | local.keys()
    unknown = [name for name in factors if name not in known]
    if unknown:
        raise ModelError(
            f"the model has no latent variable '{unknown[0]}'; it has {', '.join(sorted(known))}"
        )
    _check_sizes(plan, factors)
    for variable in plan.order:
        refuse_other_factor(plan, variable, _factor_of(factors, variable))
    q = in_frame(plan, factors)
    given = {name: local[name] for name in factors if name in local}
    with passes.executor.session():
        if not given:
            return begin(plan, q, passes).elbo
        if isinstance(plan.binding, DocumentBinding):
            own = {name: factors[name] for name in given}
            return objective_of_documents(plan, plan.binding, q, own, passes)
        return _with_given_locals(plan, q, factors, given, passes)


def _with_given_locals(
    plan: Plan,
    q: Mapping[Variable, Any],
    factors: Mapping[str, Any],
    given: Mapping[str, LocalFactor],
    passes: Passes,
) -> float:
    if (
        plan.chain is not None
        or set(given.values()) != set(plan.factors)
        or not all(isinstance(f, CategoricalFactor) for f in given.values())
    ):
        raise ModelError("local factors can be given only for Categoricals, and then for all local variables")
    plan, q, arrays, coefficients = ready(plan, q, statistics_of(plan, q))
    weights = in_memory(plan.binding.row_weights)
    expected: dict[LocalFactor, Array] = {}
    entropies: dict[LocalFactor, float] = {}
    for name, factor in given.items():
        distribution = factors[name]
        shape = factor.shapes[factor.variables[0], "x"]
        refuse_other_labels(name, distribution, (passes.source.n_rows, *shape))
        probabilities = np.asarray(distribution.probabilities)
        expected[factor] = np.ascontiguousarray(np.moveaxis(probabilities, 0, -1)).reshape(factor.n_rows, -1)
        entropy = distribution.entropy()
        (variable,) = factor.variables
        if variable in plan.binding.seen:
            seen, plate = in_memory(plan.binding.seen[variable]), plan.binding.data_plate
            entropy = entropy * np.moveaxis(seen, [p is plate for p in variable.plates].index(True), 0)
        by_row = entropy.reshape(len(probabilities), -1).sum(axis=1)
        entropies[factor] = float(by_row.sum() if weights is None else weights @ by_row)
    summary = passes.sum_given(
        plan.rows,
        passes.source,
        lambda rows: {f: v[:, rows.where].copy() for f, v in expected.items()},
        coefficients,
    )
    arrays.update(summary.parts)
    # missing entries of a vector have an entropy of their own
    entropies = {factor: own + summary.entropies[factor] for factor, own in entropies.items()}
    return Objective(plan).set_all(q, arrays, Summary(summary.parts, entropies))
