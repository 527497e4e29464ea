"""What must hold of every model: none of it is computed by the formulas of the engine."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import caviar as cv
from caviar.families import JointLabels
from caviar.posterior.evidence.log_joint import log_joints
from caviar.posterior.simulation import _over_plates, conditional, one_by_one
from caviar.testing import ElboEstimate, elbo_estimate, elbo_slopes
from caviar.testing._elbo_estimate import conditional_on_labels, draws_of, row_axes, rows_to

from .statement import Stated

__all__ = [
    "assert_elbo_is_that_of_the_densities",
    "assert_same_trace",
    "assert_sane",
    "assert_stationary",
    "has_coupled_rows",
    "rows_of",
]


def assert_sane(posterior: cv.Posterior) -> None:
    """Check that the ELBO rises, is finite, and is the sum of its parts."""
    trace = posterior.elbo_trace
    size = sum(abs(value) for value in posterior.elbo_terms.values()) + 1.0
    assert posterior.status.value in ("converged", "max_iter")
    assert np.isfinite(trace[1:]).all()
    assert np.diff(trace).min(initial=0.0) > -1e-9 * size
    assert trace[-1] == posterior.elbo
    assert sum(posterior.elbo_terms.values()) == pytest.approx(posterior.elbo, abs=1e-9 * size)


def has_coupled_rows(stated: Stated, posterior: cv.Posterior) -> bool:
    """Whether a row has several hidden variables: elsewhere than in a fit they are found from a cold start."""
    return sum(name not in posterior for name in stated.latent) > 1


def assert_stationary(posterior: cv.Posterior, data: dict[str, Any], n_directions: int = 6) -> None:
    """Check by finite differences that no global factor can be improved."""
    slopes = elbo_slopes(posterior, data, n_directions=n_directions)
    steep = {name: slope for name, slope in slopes.items() if not slope < 2e-3}
    assert not steep, f"slopes of {steep} where the ELBO is {posterior.elbo}"


def assert_elbo_is_that_of_the_densities(
    posterior: cv.Posterior, data: dict[str, Any], n_draws: int = 60
) -> None:
    """Check that a Monte-Carlo estimate from the families' densities agrees; what looks off is estimated again.

    Of a density that is bounded the estimate is not below.
    """
    has_missing = any(np.isnan(np.asarray(value, dtype=float)).any() for value in data.values())
    estimate_of = _estimate_of_observed if has_missing else elbo_estimate
    is_bound = any(variable.is_bound for variable in posterior.model.variables.values())
    for times, errors in ((1, 4.0), (40, 5.0)):
        estimate = estimate_of(posterior, data, n_draws=times * n_draws, seed=times)
        off = posterior.elbo - estimate.value
        if not is_bound:
            off = abs(off)
        if off <= errors * estimate.error + 1e-6 * max(1.0, abs(posterior.elbo)):
            return
    raise AssertionError(f"the ELBO is {posterior.elbo}, by its densities {estimate}")


def _estimate_of_observed(
    posterior: cv.Posterior, data: dict[str, Any], n_draws: int, seed: int
) -> ElboEstimate:
    """Return the estimate for data with missing entries: without the densities of these."""
    rng, variables = np.random.default_rng(seed), posterior.model.variables
    gaps = {
        leaf.name: np.isnan(np.asarray(data[leaf.name], dtype=float)).reshape(
            *np.shape(data[leaf.name])[: len(leaf.plates)], -1
        )[..., 0]
        for leaf in posterior.model.leaves
    }
    full = {name: _without_gaps(data[name], gaps[name]) if name in gaps else data[name] for name in data}
    local = posterior.local(data, anew=False)
    bound = posterior._evaluator.bind(data)[0].bound
    values, log_q = draws_of(posterior, local, rng, n_draws, {})
    unseen = {
        **_in_empty_rows(posterior, local, values, gaps),
        **{v.name: ~active for v, active in bound.gathered("active").items()},
    }
    # what an answer brings has no density where the answer is missing
    brought = {
        v.name: gaps.get(v.answer.name, False) | unseen.get(v.name, False)
        for v in variables.values()
        if "answer" in vars(v) and (v.answer.name in gaps or v.name in unseen)
    }
    left_out = {**gaps, **unseen, **brought}
    counted = {name: ~gap for name, gap in left_out.items() if not variables[name].summed}
    log_q -= [
        _unseen_log_q(posterior, local, own, {**unseen, **brought}) for own in one_by_one(values, n_draws)
    ]
    values |= {name: rows_to(values[name], axis) for name, axis in row_axes(posterior, local).items()}
    parts_of = {
        name: values[variables[name].slots["split"].node.name]
        for name in gaps
        if "split" in variables[name].slots
    }
    # a count of hidden parts is their sum, or it is impossible
    values |= {name: np.where(gaps[name], own.sum(axis=-1), full[name]) for name, own in parts_of.items()}
    known = {name: value for name, value in full.items() if name not in parts_of}
    samples = log_joints(posterior.model.nodes, known, values, n_draws, counted) - log_q
    for i, drawn in enumerate(one_by_one(values, n_draws if unseen.keys() - counted.keys() else 0)):
        every = {**known, **drawn}
        for name in unseen.keys() - counted.keys():
            # of a chain the steps after the last observation of each sequence
            value, gap = every[name], unseen[name]
            sizes = dict(zip(variables[name].plates, gap.shape, strict=True))
            member = _over_plates(variables[name], conditional(variables[name], every), sizes)
            samples[i] -= member.log_density(value) - member[~gap].log_density(value[~gap])
    return ElboEstimate(float(samples.mean()), float(samples.std(ddof=1) / np.sqrt(n_draws)))


def _in_empty_rows(
    posterior: cv.Posterior, local: dict[str, Any], values: dict[str, Any], gaps: dict[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Return which hidden values are those of rows without any observation, which count nothing."""
    plate = posterior.data_plate
    seen = [
        np.moveaxis(~gaps[leaf.name], leaf.plates.index(plate), 0)
        for leaf in posterior.model.leaves
        if plate in leaf.plates
    ]
    empty = ~np.any([own.reshape(len(own), -1).any(axis=1) for own in seen], axis=0)
    found = {}
    for name, axis in row_axes(posterior, local).items() if empty.any() else ():
        n_plates = len(posterior.model.variables[name].plates)
        # a joint factor has two parts, whose plates come first
        value = values[name]
        shape = np.shape(value[0] if isinstance(value, tuple) else value)[1 : 1 + n_plates]
        gap = np.broadcast_to(empty.reshape(-1, *[1] * (n_plates - 1)), shape)
        found[name] = np.moveaxis(gap, 0, axis)
    return found


def _unseen_log_q(
    posterior: cv.Posterior, local: dict[str, Any], values: dict[str, Any], unseen: dict[str, np.ndarray]
) -> float:
    """Return the log density under q of hidden values without an observation below them, rows first."""
    total = 0.0
    for name, gap in unseen.items():
        if name not in local:
            total += float(posterior[name].log_density(values[name])[gap].sum())
            continue
        q = local[name]
        if posterior.model.variables[name].summed:
            total += float(q.log_density(values[name]) - _kept(q, ~gap).log_density(values[name][~gap]))
            continue
        if hasattr(q, "conditional"):
            q = conditional_on_labels(posterior, q, values)
        if isinstance(q, JointLabels):
            q = q.given(values)
        # values of the groups that rows lie within have no axis of the rows
        axis = row_axes(posterior, {name: q}).get(name, 0)
        total += float(q.log_density(values[name])[np.moveaxis(gap, axis, 0)].sum())
    return total


def _kept(q: Any, is_kept: np.ndarray) -> Any:
    """Return the factor of a chain without its forecast."""
    if hasattr(q, "observed"):
        return q.observed
    own = {name: getattr(q, name)[is_kept] for name in ("linear", "information", "starts")}
    return replace(q, **own)


def _without_gaps(array: Any, gap: np.ndarray) -> np.ndarray:
    """Return the values with gaps filled by one that was observed."""
    filled = np.array(array)
    filled[gap] = filled[~gap][0]
    return filled.astype(np.intp) if np.array_equal(filled, np.floor(filled)) else filled


def assert_same_trace(
    one: cv.Posterior, other: cv.Posterior, *, rtol: float = 1e-8, shift: float = 0.0
) -> None:
    """Check that two fits went the same way, for the first few iterations: later ones enlarge rounding."""
    n = min(4, len(one.elbo_trace), len(other.elbo_trace))
    size = sum(abs(value) for value in one.elbo_terms.values()) + 1.0
    np.testing.assert_allclose(other.elbo_trace[1:n] + shift, one.elbo_trace[1:n], rtol=0, atol=rtol * size)


def rows_of(stated: Stated, data: dict[str, Any], rows: np.ndarray) -> dict[str, Any]:
    """Return data with these rows, in this order, of everything along the data plate."""
    nodes = {node.name: node for node in stated.model.nodes}
    plate, outer = stated.data_plate, stated.writer.outer
    along = {name: nodes[name].plates for name in data if name in nodes}
    if outer is not None:
        # of each row, the group that it lies within
        along[outer.name] = (plate,)
    return {
        name: np.take(value, rows, axis=along[name].index(plate)) if plate in along[name] else value
        for name, value in data.items()
    }
