"""Evaluation of given factors: on the data of the fit, or on other rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ... import families
from ..._errors import ModelError, ParameterError
from ..._typing import AnyArray, Array
from ...families.shared.shared_factor import SharedFactor
from ...language import Variable
from ...lazy.rows import in_memory
from ..ascent.driver import Settings, ascend
from ..ascent.elbo import Objective
from ..ascent.problem import Problem, statistics_of
from ..ascent.schedule import Beginning
from ..ascent.schedules.batch import Batch
from ..ascent.state import begin, ready
from ..binding.clamped.factor import ClampedFactor, PointMass
from ..binding.clamped.given import refuse_missing_value
from ..binding.coordinates import Coordinates, coordinates_about
from ..binding.nested import outer_variables
from ..design.keys import FactorKey, StatisticKey
from ..local.gated import Switched, SwitchedFactor
from ..local.local_factor import LocalFactor
from ..local.statistics import LocalState, Summary
from ..rows.executor import Executor
from ..rows.row_map import RowMap
from ..rows.tasks import RowSource
from ..starts.factors.given_factors import refuse_other_factor, refuse_other_labels
from ..starts.factors.prior import prior_start
from ..topics.kind_of_rows import kind_of
from .predictive import log_predictive

_ANEW = Settings(max_iter=500, tol=1e-8)
"""Of the ascent in the variables of an outer plate, for data to which the other globals are given."""


def factors_at(problem: Problem, q: Mapping[Variable, Any]) -> dict[str, Any]:
    """Return the global factors by name, measured from the user's origin."""
    factors = {}
    for variable, factor in q.items():
        moved = variable.moved(factor, shifts_of(problem.coordinates, variable, 1.0))
        for member in variable.members:
            of_member, marginal = problem.bound.of(member).clamped, moved.marginals[member.name]
            factors[member.name] = marginal if of_member is None else of_member.over(member, marginal, None)
        known = problem.bound.of(variable).clamped
        # to the last bit as they were given, which no translation there and back would be
        factors[variable.name] = moved if known is None else known.over(variable, moved, None)
    return factors


def in_frame(
    problem: Problem,
    factors: Mapping[str, Any],
    variables: Iterable[Variable] | None = None,
    coordinates: Coordinates | None = None,
) -> dict[Variable, Any]:
    """Return factors of global variables (all), from the reference points of a frame (the problem's)."""
    q = {}
    for variable in problem.order if variables is None else variables:
        factor = variable.as_own(_factor_of(factors, variable))
        moved = variable.moved(factor, shifts_of(coordinates or problem.coordinates, variable, -1.0))
        q[variable] = problem.with_known(variable, moved, coordinates)
    return q


def shifts_of(coordinates: Coordinates, variable: Variable, sign: float) -> dict[str, Array]:
    """Return the reference points of a variable, or of those that share its factor, by name, times a sign."""
    found = {}
    for own in variable.members or (variable,):
        point = coordinates.of(own)
        if point is not None:
            found[own.name] = sign * point
    return found


def _factor_of(factors: Mapping[str, Any], variable: Variable) -> Any:
    names = {own.name for own in variable.members}
    # with some of the leaves a model has some of the variables of a shared factor
    shared = (own for own in factors.values() if isinstance(own, SharedFactor) and names <= set(own.names))
    joint = next(shared, None) if names else None
    if joint is not None:
        return joint
    if variable.name not in factors:
        refuse_missing_value(variable.name)
    return factors[variable.name]


def local_distributions(
    problem: Problem, factors: Mapping[str, Any], row_map: RowMap, *, anew: bool = True
) -> dict[str, Any]:
    """Return the local factors of all rows by name, the globals given.

    Variables of an outer plate, as the proportions of documents, belong to the data: they are found ``anew``, unless
    the data are those that the factors were fitted to.
    """
    outer = outer_variables(problem.bound.nodes, problem.order) if anew else []
    if not anew:
        check_sizes(problem, factors)
    if not problem.rows.keeps_locals:
        # factors that depend on each other would begin elsewhere, and may have more than one fixed point
        problem = problem.measured_from(coordinates_about(problem.coordinates, factors, None, None))
    problem = _thorough(problem)
    q = in_frame(problem, factors, [variable for variable in problem.order if variable not in outer])
    found_anew: dict[str, Any] = {}
    if outer:
        problem = problem.updating(outer)
        beginning = Beginning(problem, {**q, **prior_start(problem, q)}, row_map)
        result = ascend(Batch(None), beginning, _ANEW)
        problem, q = result.problem, dict(result.q)
        found_anew = factors_at(problem, {variable: q[variable] for variable in outer})
    by_row = GivenGlobals(problem, q).local(row_map.source, row_map.executor)
    return {**found_anew, **kind_of(problem).for_each_datum(by_row)}


def _thorough(problem: Problem) -> Problem:
    """Return a problem whose passes bring every row to its optimum."""
    return problem.with_rows(problem.rows.thorough())


class GivenGlobals:
    """Local factors given the global ones, of any rows that a problem is compiled for.

    Parameters
    ----------
    problem
        Compiled for rows with these columns, however many there are.
    q
        Global factors, measured from its frame.
    """

    def __init__(self, problem: Problem, q: Mapping[Variable, Any]) -> None:
        self._problem, self._q, _, self._coefficients = ready(problem, q, statistics_of(problem, q))

    @classmethod
    def of(cls, problem: Problem, factors: Mapping[str, Any]) -> GivenGlobals:
        """Return the same for factors by name, measured from the user's origin."""
        problem = _thorough(problem)
        return cls(problem, in_frame(problem, factors))

    def local(self, source: RowSource, executor: Executor) -> dict[str, Any]:
        """Return the local factors of all rows of a source by name."""
        problem = self._problem
        rows = RowMap(problem.rows, source, executor)
        found: dict[Variable, list[Any]] = {}
        with executor.session():
            means = {chain: _means_of_slots(problem, chain.variables[0], self._q) for chain in problem.chains}
            paths = rows.paths(self._coefficients, means) if means else {}
            others = [factor for factor in problem.factors if factor not in paths]
            given = (
                {chain.key: chain.expected_of_path(path) for chain, path in paths.items()} if others else {}
            )
            blocks = rows.natural_parameters(self._coefficients, given) if others else ()
            for block in blocks:
                for factor in others:
                    for variable, distribution in factor.distributions(block[factor.key]).items():
                        found.setdefault(variable, []).append(distribution)
        order = _inverse(source.places(0, source.n_rows))
        by_name = {
            variable.name: own
            for chain, path in paths.items()
            for variable, own in chain.distributions_of_path(path).items()
        }
        return by_name | {
            variable.name: _translated(
                problem, variable, _in_order(_joined(parts) if parts[1:] else parts[0], order)
            )
            for variable, parts in found.items()
        }


def _means_of_slots(problem: Problem, variable: Variable, q: Mapping[Variable, Any]) -> dict[str, Array]:
    """Return the expectation of each slot of a variable that follows from global factors or known values."""
    bound, found = problem.bound, {}
    for name, slot in variable.slots.items():
        if problem.bound.is_local(slot.node):
            continue
        mean: Any = bound.of(slot.node).values
        if isinstance(slot.node, Variable) and mean is None:
            mean = q[slot.node].mean
        found[name] = np.asarray(mean, dtype=np.float64)
    return found


def check_sizes(problem: Problem, factors: Mapping[str, Any]) -> None:
    """Refuse factors of an outer plate that has another size in these data."""
    for variable in outer_variables(problem.bound.nodes, problem.order):
        sizes = tuple(problem.bound.sizes[plate] for plate in variable.plates)
        own = np.shape(factors[variable.name].mean)[: len(sizes)]
        if own != sizes:
            raise ModelError(
                f"the factor of '{variable.name}' has repetitions {own}, but these data have {sizes}; "
                f"posterior.local(data)['{variable.name}'] finds it for other data"
            )


def predictive_densities(problem: Problem, factors: Mapping[str, Any], row_map: RowMap) -> Array:
    """Return the log density under the global factors of each row of the problem's data, shape (rows,).

    Raises
    ------
    ModelError
        If it has no closed form.
    """
    own = kind_of(problem).densities(factors, lambda: local_distributions(problem, factors, row_map))
    if own is not None:
        return own
    check_sizes(problem, factors)

    def measure(gate: Variable | None, category: int | None) -> tuple[Coordinates, dict[Variable, Any]]:
        coordinates = coordinates_about(problem.coordinates, factors, gate, category)
        own = problem.bound.latent_globals()
        return coordinates, in_frame(problem, factors, own, coordinates)

    return log_predictive(problem.bound, measure)


def points_at(problem: Problem, values: Mapping[str, Any]) -> dict[str, PointMass]:
    """Return point masses of global variables at these values, by name.

    Raises
    ------
    ParameterError
        If a name is unknown, or a value has another shape than its variable.
    """
    latent = {variable.name: variable for variable in problem.bound.latent_globals()}
    points = {}
    for name, value in values.items():
        if name not in latent:
            known = ", ".join(repr(other) for other in latent)
            raise ParameterError(
                f"given= names {name!r}, which is not a global variable of the posterior; it has {known}"
            )
        parts = (
            tuple(np.asarray(part, dtype=np.float64) for part in value) if isinstance(value, tuple) else None
        )
        point = np.asarray(value, dtype=np.float64) if parts is None else families.MeanPrecision(*parts)
        points[name] = PointMass.of(latent[name], point)
        refuse_other_factor(problem, latent[name], points[name])
    return points


def _joined(parts: list[Any]) -> Any:
    """Return the distributions of consecutive blocks of rows as one batch."""
    first = parts[0]
    if isinstance(first, Switched):
        probabilities = np.concatenate([part.probabilities for part in parts])
        return Switched(probabilities, _joined([part.conditional for part in parts]), first.names)
    if isinstance(first, families.JointLabels):
        return families.JointLabels(np.concatenate([part.joint for part in parts]), first.names, first.name)
    if isinstance(first, families.Categorical):
        return families.Categorical(np.concatenate([part.probabilities for part in parts]))
    if isinstance(first, families.LabelFrequencies):
        return families.LabelFrequencies.joined(parts)
    if isinstance(first, ClampedFactor):
        unknown, known = _joined([part.unknown for part in parts]), [part.known for part in parts]
        points = replace(known[0], value=np.concatenate([own.value for own in known]))
        return ClampedFactor(unknown, points, np.concatenate([part.is_known for part in parts]))
    naturals = zip(*(part.natural for part in parts), strict=True)
    return type(first).from_natural(tuple(np.concatenate(arrays) for arrays in naturals))


def _inverse(places: slice | AnyArray) -> AnyArray | None:
    """Return where each of the user's rows is in a source; None if the source has them in their order."""
    return None if isinstance(places, slice) else np.argsort(places)


def _in_order(distribution: Any, order: AnyArray | None) -> Any:
    """Return a batch of distributions, rows first, in another order."""
    if order is None:
        return distribution
    if isinstance(distribution, Switched):
        conditional = _in_order(distribution.conditional, order)
        return Switched(distribution.probabilities[order], conditional, distribution.names)
    if isinstance(distribution, families.JointLabels):
        return families.JointLabels(distribution.joint[order], distribution.names, distribution.name)
    if isinstance(distribution, families.Categorical):
        return families.Categorical(distribution.probabilities[order])
    if isinstance(distribution, families.LabelFrequencies | ClampedFactor):
        return distribution[order]
    return type(distribution).from_natural(tuple(array[order] for array in distribution.natural))


def _translated(problem: Problem, variable: Variable, distribution: Any) -> Any:
    reference = problem.coordinates.of(variable)
    return distribution if reference is None else distribution.translate(reference)


def objective_at(problem: Problem, factors: Mapping[str, Any], row_map: RowMap) -> float:
    """Return the objective of given factors; local factors that are not given are at their optimum.

    Raises
    ------
    ModelError
        If a name is unknown.
    ParameterError
        If a factor is not one of its variable: of another family, or of another shape.
    """
    problem = _thorough(problem)
    local = {v.name: f for f in problem.factors for v in f.variables if not problem.bound.is_known(v)}
    known = {variable.name for variable in problem.order} | local.keys()
    unknown = [name for name in factors if name not in known]
    if unknown:
        raise ModelError(
            f"the model has no latent variable '{unknown[0]}'; it has {', '.join(sorted(known))}"
        )
    check_sizes(problem, factors)
    for variable in problem.order:
        if not variable.members:
            refuse_other_factor(problem, variable, _factor_of(factors, variable))
    q = in_frame(problem, factors)
    given = {name: local[name] for name in factors if name in local}
    with row_map.executor.session():
        if not given:
            return begin(problem, q, row_map).elbo
        own = kind_of(problem).objective(problem, q, {name: factors[name] for name in given}, row_map)
        if own is not None:
            return own
        return _with_given_locals(problem, q, factors, given, row_map)


def _together(labels: Sequence[families.Categorical]) -> families.Categorical:
    """Return the Categorical of the combinations of labels: independent ones, unless all are given with their joint."""
    if len(labels) == 1:
        return labels[0]
    shared = [own.joint for own in labels if isinstance(own, families.JointLabels)]
    if len(shared) == len(labels) and all(np.array_equal(own, shared[0]) for own in shared):
        joint = shared[0]
    else:
        joint = np.ones(len(labels[0].probabilities))
        for own in labels:
            joint = joint[..., None] * own.probabilities.reshape(len(joint), *(1,) * (joint.ndim - 1), -1)
    return families.Categorical(joint.reshape(len(joint), -1))


def _with_given_locals(
    problem: Problem,
    q: Mapping[Variable, Any],
    factors: Mapping[str, Any],
    given: Mapping[str, LocalFactor],
    row_map: RowMap,
) -> float:
    if (
        bool(problem.chains)
        or set(given.values()) != set(problem.factors)
        or not all(set(f.labels) == set(f.variables) for f in given.values())
        or any(label.name not in given for f in given.values() for label in f.labels)
    ):
        raise ModelError("local factors can be given only for Categoricals, and then for all local variables")
    problem, q, arrays, coefficients = ready(problem, q, statistics_of(problem, q))
    weights = in_memory(problem.bound.row_weights)
    expected: LocalState = {}
    entropies: dict[FactorKey, float] = {}
    for factor in dict.fromkeys(given.values()):
        for label in factor.labels:
            shape = factor.shapes[StatisticKey(label.name, "x")]
            refuse_other_labels(label.name, factors[label.name], (row_map.source.n_rows, *shape))
        own = _together([factors[label.name] for label in factor.labels])
        expected[factor.key] = np.zeros((factor.n_rows, len(own.probabilities)))
        choices = factor.choices(expected[factor.key])
        choices[...] = np.moveaxis(own.probabilities, 0, -1)
        if isinstance(factor, SwitchedFactor):
            factor.write_marginals(expected[factor.key])
        entropy = own.entropy()
        variable = factor.variables[0]
        active = problem.bound.of(variable).active
        if active is not None:
            seen, plate = in_memory(active), problem.bound.data_plate
            entropy = entropy * np.moveaxis(seen, [p is plate for p in variable.plates].index(True), 0)
        by_row = entropy.reshape(len(own.probabilities), -1).sum(axis=1)
        entropies[factor.key] = float(by_row.sum() if weights is None else weights @ by_row)
    summary = row_map.at(problem.rows).sum_given(
        lambda rows: {f: v[:, rows.where].copy() for f, v in expected.items()},
        coefficients,
    )
    arrays.update(summary.parts)
    # missing entries of a vector have an entropy of their own
    entropies = {key: own + summary.entropies[key] for key, own in entropies.items()}
    return Objective(problem, q, arrays, Summary(summary.parts, entropies)).value
