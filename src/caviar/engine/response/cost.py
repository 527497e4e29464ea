"""The cost of the standard deviations of linear response, compared with the iterations of a fit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...families.shared.coupled_normals import CoupledLayout
from ...language import Variable
from ..ascent.problem import Problem
from ..evaluation.given_by_passes import operations_of_a_pass, why_apart
from .factors import MOST_OF_SHARED
from .solutions.chosen import ALWAYS_FORMED, MOST_FORMED

_CALL = 2e4
"""Approximate operations of a contraction of any size: a call of einsum."""

_OF_PRODUCT = 0.5
"""Operations that a number of a large product of matrices is worth: 100,000 rows of 8 components and 4 columns take as
long as 2.5 iterations of a fit."""

_STEPS = 25
"""Approximate steps of conjugate gradients for a column."""

_ALWAYS = 2e8
"""Operations that are few for any fit: about a fifth of a second."""

_RANDOM, _SHARE = 16, 4
"""Random columns that find a range, about, and the share of the coordinates that its dimensions are at most."""

_STEPS_BESIDE = 10
"""Approximate steps of conjugate gradients for what another factor says to a large shared one beside hidden variables
of the rows: a pass along a direction each, which costs as much as two of the fit."""

_DIRECTION = 5e5
"""Approximate operations of the calls of a pass along a direction, which do not depend on the rows."""

_SWEEPS, _OF_CHAIN = 15, 6e6
"""Sweeps along all directions, about, where chains and other hidden values depend on each other; and the operations of
the calls of one. Before these, local factors go on to their optimum, in about as many sweeps as the fit took."""

_PASSES = 3
"""About the passes and updates to a tilted fixed point."""

_STEPS_OF_ALGEBRA = 10
"""Products of a vector and a matrix of all statistics, about, to a tilted fixed point."""

_MANY_ROWS, _MOST_OF_SERIES = 100, 1_000
"""Rows for each coordinate from which on the posterior is nearly Normal, and coordinates up to which the series to
second order of a few numbers is looked at."""

_POINTS_OF_SERIES, _OF_SERIES = 7, 2e9
"""Fixed points of three numbers, and operations that are few for any fit: about a second."""

_OF_STEP, _OF_SERIES_OF_CHAINS = 3.0, 4e9
"""Passes of a step of a chain, about, along a direction; and the operations of the series that are few beside linear
response, which is shown for so many coordinates of a chain where it is asked for: about three seconds."""

_OF_DRAW, _OF_ALL_DRAWS = 1.5e6, 7e8
"""Operations of a weighted draw where these are weighed one after another, and of all that are few for any fit."""

_FEWEST_DRAWS = 200
"""Weighted draws below which they tell too little."""

_OF_PROFILE, _OF_ALL_PROFILES = 100, 3e8
"""About the passes of the fits at all values of a number, and the operations of all that are few for any fit: less than
half a second."""

_OF_LATTICE, _OF_ALL_FITS = {1: 25, 2: 40}, 1e9
"""About the points of a lattice by its dimensions, and the operations of fits at all of them that are few for any fit:
about two thirds of a second."""

_OF_BENT, _OF_ALL_BENT = {1: 18, 2: 70}, 5e9
"""The same of a bent lattice beside random directions, which only some of its points take: about five seconds. Linear
response, which would be shown instead, may be off by several standard deviations."""

EVERY = 2
"""Of a row of such points one in so many takes the random directions."""

_OF_STATISTIC = 200.0
"""Operations for each number of a shared factor: of a response of its sparse precision."""

_MOST_PROBES, _FEWEST_PROBES, _OF_NUMBERS = 16, 4, 1_600
"""Draws of the factor, and draws times numbers: n draws of p numbers have a relative error of about (2 / n p)^(1/2)."""

_MOST_COORDINATES = 5_000
"""Above this number, the steps of each question need memory for many columns."""


def left_out(
    problem: Problem, statistics: Any, n_rows: int, n_iterations: int
) -> tuple[Variable, ...] | None:
    """Return the variables whose standard deviations cost more than the fit; None if all do.

    The answer depends on sizes alone, not on how busy the machine is. Where a shared factor meets what is hidden in
    the rows, its members are left out before all else is: the factor has their covariances, and what the precisions
    beside it need are a few responses of it as a whole.

    Parameters
    ----------
    problem
        Of the fit.
    statistics
        Expected statistics of each global factor, which give the sizes.
    n_rows, n_iterations
        Of the fit.
    """
    statistics = list(statistics)
    if is_cheap(problem, statistics, n_rows, n_iterations):
        return ()
    sizes = [sum(int(np.size(own)) for own in each) for each in statistics]
    members = tuple(member for variable in problem.order for member in variable.members)
    if not members or not problem.factors:
        return None
    # what a group is sent is looked up, not multiplied
    of_a_row = 30.0 * sum(own.n_rows for own in problem.factors)
    a_pass = of_a_row * n_rows + _CALL * len(problem.compiled.terms)
    beside = (sum(sizes) - max(sizes)) // 2
    ours = _STEPS_BESIDE * beside * (2.0 * a_pass + 4.0 * max(sizes))
    return members if ours <= max(_ALWAYS, n_iterations * a_pass) else None


def is_cheap(problem: Problem, statistics: Any, n_rows: int, n_iterations: int) -> bool:
    """Return whether all standard deviations cost at most as much as the fit, or very little.

    The answer depends on sizes alone, not on how busy the machine is.

    Parameters
    ----------
    problem
        Of the fit.
    statistics
        Expected statistics of each global factor, which give the sizes.
    n_rows, n_iterations
        Of the fit.
    """
    sizes = [sum(int(np.size(own)) for own in each) for each in statistics]
    size = sum(sizes)
    if max(sizes, default=0) > MOST_OF_SHARED and any(own.members for own in problem.order):
        # every other statistic of the others, at most, takes a response of the shared factor, as long as its update
        return not problem.factors and size - max(sizes) <= 2 * n_iterations
    calls = _CALL * len(problem.compiled.terms)
    per_row = _operations_of_a_row(problem)
    columns = size if size <= MOST_FORMED else _STEPS * size
    algebra = float(size) ** 3 if size <= MOST_FORMED else 0.0
    met = 4 * (size - max(sizes, default=0)) + _RANDOM
    if not problem.factors and size > ALWAYS_FORMED and met < size // _SHARE:
        # the updates of the largest factor change with those of the others alone: the range has few dimensions
        columns, algebra = met, float(size) * met**2
    elif size > _MOST_COORDINATES:
        return False
    passes = min(columns * per_row * n_rows, _of_all_pairs(problem) * n_rows)
    ours = passes + columns * (calls + 4.0 * size) + algebra * (1.0 if size > ALWAYS_FORMED else 0.5)
    a_sweep = _of_a_sweep(problem, n_rows)
    ours += (_SWEEPS + n_iterations) * a_sweep
    return ours <= max(_ALWAYS, n_iterations * max(per_row * n_rows + calls, a_sweep))


def is_cheap_to_second_order(
    problem: Problem, factors: Mapping[Variable, Any], n_rows: int, n_iterations: int
) -> bool:
    """Return whether means and standard deviations to second order cost at most as much as the fit, or very little.

    Each number takes two tilted fixed points. Where the rows hide nothing, these are found together.

    Parameters
    ----------
    factors
        Of the fit.
    n_rows, n_iterations
        Of the fit.
    """
    sizes = [sum(int(np.size(own)) for own in factor.expected_statistics) for factor in factors.values()]
    size = sum(sizes)
    if size > 2 * ALWAYS_FORMED or (len(sizes) == 1 and not problem.factors):
        # a single factor is exact
        return False
    marginals = (factor.entry_marginals((0.05, 0.95)) for factor in factors.values())
    points = 2 * sum(int(np.size(part.mean)) for parts in marginals for part in parts)
    calls, per_row = _CALL * len(problem.compiled.terms), _operations_of_a_row(problem)
    algebra = float(_STEPS_OF_ALGEBRA * size**2 + (size - max(sizes, default=0)) ** 3)
    if not problem.factors:
        return points * algebra + _PASSES * calls <= max(_ALWAYS, n_iterations * calls)
    is_curved = problem.rows.is_dense and _of_all_pairs(problem) < size * per_row
    directions = min(size, _said_to_rows(problem))
    passes = (
        _of_all_pairs(problem) * n_rows if is_curved else directions * (0.5 * per_row * n_rows + _DIRECTION)
    )
    a_sweep = _of_a_sweep(problem, n_rows)
    ours = points * (_PASSES * (per_row * n_rows + 2.0 * calls) + passes + algebra)
    ours += points * (_SWEEPS + n_iterations) * a_sweep
    return ours <= max(_ALWAYS, n_iterations * max(per_row * n_rows + calls, a_sweep))


def is_worth_a_series(problem: Problem, size: int, n_rows: int) -> bool:
    """Return whether the series to second order of a few numbers may tell something, and costs very little.

    With many rows for each coordinate the posterior is nearly Normal.

    Parameters
    ----------
    size
        Number of coordinates.
    n_rows
        Of the data.
    """
    if size > _MOST_OF_SERIES or n_rows > _MANY_ROWS * size:
        return False
    of_a_row = _operations_of_a_row(problem)
    if problem.chains:
        of_all = _POINTS_OF_SERIES * size * _OF_STEP * of_a_row * n_rows
        # with fewer coordinates second order itself can be asked for
        return size > ALWAYS_FORMED and of_all <= _OF_SERIES_OF_CHAINS
    along_all = _PASSES * min(size, _said_to_rows(problem)) * (0.5 * of_a_row * n_rows + _DIRECTION)
    of_a_point = min(_of_all_pairs(problem) * n_rows, along_all) + _PASSES * of_a_row * n_rows
    return _POINTS_OF_SERIES * (of_a_point + _OF_PRODUCT * float(size) ** 3) <= _OF_SERIES


def n_draws_of_little_cost(problem: Problem, n_rows: int, most: int) -> int:
    """Return how many weighted draws cost very little, beside as many pilot draws; 0 where those tell too little."""
    if not problem.factors or problem.chains:
        return 0
    of_one = _operations_of_a_row(problem) * n_rows + (_OF_DRAW if why_apart(problem) else 0.0)
    n = int(min(most, _OF_ALL_DRAWS / (2.0 * of_one)))
    return n if n >= _FEWEST_DRAWS else 0


def is_cheap_to_profile(problem: Problem, n_rows: int, n_numbers: int) -> bool:
    """Return whether fits at a row of values of each of some numbers cost very little."""
    return n_numbers * _OF_PROFILE * operations_of_a_pass(problem, n_rows) <= _OF_ALL_PROFILES


def is_cheap_to_integrate(problem: Problem, factors: Mapping[Any, Any], n_rows: int, n_numbers: int) -> bool:
    """Return whether fits with linear response at a lattice of values of some numbers cost very little.

    Parameters
    ----------
    factors
        Of the fit.
    """
    if n_numbers not in _OF_LATTICE:
        return False
    size = sum(int(np.size(own)) for factor in factors.values() for own in factor.expected_statistics)
    directions = min(size, _said_to_rows(problem))
    of_response = directions * (0.5 * _operations_of_a_row(problem) * n_rows + _DIRECTION)
    of_a_fit = _PASSES * operations_of_a_pass(problem, n_rows) + of_response
    return _OF_LATTICE[n_numbers] * of_a_fit <= _OF_ALL_FITS


def n_probes(n_numbers: int) -> int:
    """Return the number of draws of a factor, given its number of parameters."""
    return min(_MOST_PROBES, max(_FEWEST_PROBES, -(-_OF_NUMBERS // max(n_numbers, 1))))


def is_cheap_to_probe(problem: Problem, n_rows: int, n_numbers: int) -> bool:
    """Return whether fits at such a lattice, some with passes along random directions, cost very little."""
    if n_numbers not in _OF_LATTICE:
        return False
    sizes = _sizes_of_members(problem)
    algebra = _OF_STATISTIC * sum(sizes) + float(sum(sizes) - max(sizes, default=0)) ** 3
    # labels that are known are looked up, not multiplied
    of_a_pass = operations_of_a_pass(problem, n_rows)
    of_probes = 2 * n_probes(sum(sizes)) * (of_a_pass + _DIRECTION + algebra) / EVERY**n_numbers
    return _OF_BENT[n_numbers] * (_PASSES * of_a_pass + of_probes) <= _OF_ALL_BENT


def may_be_probed(problem: Problem, n_rows: int) -> bool:
    """Return whether such fits may help, judged by the sizes."""
    is_met = bool(problem.factors) and bool(_sizes_of_members(problem))
    return is_met and is_cheap_to_probe(problem, n_rows, 1)


def _sizes_of_members(problem: Problem) -> list[int]:
    """Return how many numbers each variable has that shares a Gaussian factor."""
    layouts = [own.family for own in problem.order if isinstance(own.family, CoupledLayout)]
    return [int(np.prod(member.part)) for layout in layouts for member in layout.members]


def _operations_of_a_row(problem: Problem) -> float:
    """Return the approximate number of operations of a pass for each row."""
    tables = problem.rows.tables if problem.factors else {}
    return sum(
        30.0 * own.n_rows + (4.0 * own.n_rows * tables[own].n_rows if own in tables else 0.0)
        for own in problem.factors
    )


def _of_a_sweep(problem: Problem, n_rows: int) -> float:
    """Return the operations of a sweep over chains and hidden values that depend on each other; 0 if none do."""
    if not problem.factors or not problem.rows.chains or not problem.rows.keeps_locals:
        return 0.0
    return _OF_CHAIN + _operations_of_a_row(problem) * n_rows


def _said_to_rows(problem: Problem) -> float:
    """Return how many numbers the rows are sent; infinity where these are more than records."""
    tables = problem.rows.tables
    return sum(own.n_rows * tables[own].n_rows if own in tables else np.inf for own in problem.factors)


def _of_all_pairs(problem: Problem) -> float:
    """Return the operations for a row of the one pass that forms all changes of dense products."""
    if not problem.factors:
        return 0.0
    if not problem.rows.is_dense:
        return np.inf
    return _OF_PRODUCT * problem.fact("numbers of the curvature", lambda: problem.rows.n_curved)
