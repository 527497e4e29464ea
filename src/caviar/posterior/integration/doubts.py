"""Why figures that are not integrated may be wrong: rows with a bound of their link, and spreads between groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import factorial, prod
from typing import Any

import numpy as np

from ..._errors import CaviarError
from ..._typing import Array
from ...engine.ascent.problem import Problem
from ...engine.design.features import CONSTANT
from ...engine.design.keys import StatisticKey, SumKey
from ...engine.evaluation.given_by_passes import has_one_mode, operations_of_a_pass
from ...engine.response.cost import is_worth_a_series, n_draws_of_little_cost
from ...engine.rows.row_map import RowMap
from ...language.in_expectation import has_expectation
from ..evidence.by_densities import MOST_ROWS, by_densities
from ..evidence.orders import orders_of
from ..evidence.relabelling import MOST_ORDERS
from ..uncertainty.known import Uncertainty, Widths
from .at_once import means_of, separating_of
from .lattice_of_fits import MOST_DIMENSIONS
from .shown import Drawn, Integrated

_MOVED = 0.25
"""Standard deviations from which on a mean that moves is told."""

_WIDER = 1.2
"""Factor of a standard deviation, either way, from which on a correction is told."""

_WIDEST = 3
"""Numbers of which the series to second order is looked at."""

_PASSES, _OPERATIONS = 60, 2e9
"""Passes of a fit, about, and the operations up to which one is made to tell how far means move: about two seconds."""

_LEVEL, _OFF = 0.9, 0.02
"""Of intervals, and how far from it the share of weighted draws in one is, beyond its error, where draws are shown."""

_ERRORS, _EFFECTIVE = 2.0, 1_000
"""Standard errors of that share that lie between where rows hide no labels, and there may be many numbers; and
effective draws that take the place of figures that are integrated, which are smooth and know long tails."""

_MOST_CHECKED, _SHOWN_DRAWS, _FEWEST_SHOWN = 1_000, 4_000, 1_000
"""Weighted draws that check intervals, since more tell no more; and of those that are shown the most and the fewest."""

_NO_MEAN, _SURELY = 1.0, 2.0
"""Shape of the tail of weights from which on they have no mean, and by how many standard errors it is beyond that where
draws tell nothing, neither what is right nor what is wrong."""

_EFFECTIVE_SHARE = 0.15
"""Share of draws that are effective below which those of a mixture are in doubt, whatever the tail of their weights: of
21 rows in two dimensions 390 of 4,000 left out a part of the posterior, and the 90% interval of a weight contained 78%.
"""

MOST_PREDICTED = 1_000
"""Rows of fits whose predictions are made by draws: of more, globals make up little of what is not known of a new row.
"""

_END = 2.0
"""Standard deviations from the mean to the end of an interval: its end has as many times the error of the mean."""

_MOST_APART = 250
"""Draws of a round that may be weighed one after another: about a second in all."""

_FEW_DRAWS = (
    "They are in doubt: their 90% intervals contain too few or too many weighted draws. "
    "posterior.importance_sample(data) has better ones."
)

_UNCHECKED = (
    "They could not be checked: of the weighted draws that would, a few have all of the weight, as with a prior that "
    "has most of its mass at an edge. State what is known as known, or sample instead."
)

_NO_ROWS = 0.01
"""Weight of the rows of a component below which it is empty."""

_POOR_WEIGHTS = "They are in doubt: few weighted draws have much of the weight. Sample instead."

_APART = 0.9
"""Smallest eigenvalue of linear response above which components hardly overlap."""

_UNTOLD = (
    "They are in doubt: this link has no method='expectation' that would tell how far its bound moves them. In trials "
    "with ordered categories 90% intervals of the precision between groups ({}) contained 10% to 87% of its posterior, "
    "and those of coefficients 60% to 88%: with few rows a group the spread between groups is found too small."
)

_MEND = " uncertainty='integrated' of the fit takes longer and has neither error."


def doubt_of(posterior: Any, pending: Any, shown: Uncertainty) -> str:
    """Return a sentence on the figures of linear response or of the factors; empty if nothing says they are wrong.

    Parameters
    ----------
    posterior, pending
        The fit, and its data.
    shown
        The figures.
    """
    problem, row_map = posterior._bound(pending)
    if not problem.factors or not has_one_mode(problem) or not problem.bound.has_links:
        return ""
    names = separating_of(problem, posterior._factors, most=np.inf, is_normal_apart=False)
    if not names:
        return ""
    n_numbers = sum(int(np.size(posterior._factors[name].mean)) for name in names)
    can_be_mended = n_numbers <= MOST_DIMENSIONS and sum(bool(own.members) for own in problem.order) == 1
    mend = _MEND if can_be_mended else ""
    if not problem.rows.maximises:
        # of a matrix the mean width of its numbers is shown for all
        ways = "too narrow" if n_numbers == len(names) else "too narrow or too wide"
        return (
            f"Those of {', '.join(names)} may be {ways}: in trials 90% intervals of the precision between groups "
            f"contained 56% to 90%.{mend}"
        )
    if _PASSES * operations_of_a_pass(problem, row_map.source.n_rows) > _OPERATIONS:
        return (
            f"With the bound of a link means, above all of {', '.join(names)}, may be off by several of these standard "
            f"deviations; method='expectation' of the link has the smaller error.{mend}"
        )
    if not any(has_expectation(leaf) for leaf in posterior.model.leaves):
        return _UNTOLD.format(", ".join(names))
    told = posterior._in_expectation(pending)
    moved = {name: _moved(posterior, told, name, shown) for name in posterior if name in told}
    worst = max(moved, key=lambda name: moved[name])
    if moved[worst] < _MOVED:
        return ""
    return (
        f"They are in doubt: with method='expectation' of the link in the place of its bound the mean of {worst} moves "
        f"by {moved[worst]:.1f} of these standard deviations.{mend}"
    )


def doubt_of_series(posterior: Any, pending: Any, response: Any, shown: Widths) -> str:
    """Return a sentence on figures of linear response that second order would change by much; empty if it would not.

    The numbers that linear response widens most, compared with their factors, tell it: components that overlap.

    Parameters
    ----------
    posterior, pending, response
        The fit, its data, and the :class:`~caviar.engine.response.quantities.Response` to them.
    shown
        The figures.
    """
    problem, row_map = posterior._bound(pending)
    has_labels = any(own.labels for own in problem.factors)
    if not has_labels or not is_worth_a_series(problem, response.size, row_map.source.n_rows):
        return ""
    told = response.second_order_of_widest(_WIDEST, list(shown.sds))
    if not told:
        return ""
    for name, shift, ratio in told:
        if not np.isfinite(shift):
            return f"They are in doubt: the series to second order has no terms for {name}."
        if not ratio > 0:
            return f"They are in doubt: the series to second order leaves no variance for {name}, so it does not hold."
    name, shift, ratio = max(
        told, key=lambda own: max(abs(own[1]) / _MOVED, abs(np.log(own[2])) / np.log(_WIDER))
    )
    if abs(shift) < _MOVED and 1.0 / _WIDER < ratio < _WIDER:
        return ""
    return (
        f"They are in doubt: to second order a mean of {name} moves by {abs(shift):.1f} of these standard deviations, "
        f"and its standard deviation is {ratio:.1f} times as large."
    )


def drawn_if_better(posterior: Any, pending: Any, response: Any, shown: Widths) -> Widths:
    """Return figures of weighted draws of few rows that hide something, if other figures are off or in doubt.

    The draws are those of importance sampling, whose proposal reaches further than the intervals. Where their weights
    are poor, they tell little, and what they tell counts the less.

    Parameters
    ----------
    posterior, pending, response
        The fit, its data, and its :class:`~caviar.posterior.linear_response.LinearResponse`.
    shown
        The figures without draws.
    """
    problem, row_map = posterior._bound(pending)
    is_exact = isinstance(shown, Integrated) and shown.is_exact
    if is_exact or not problem.factors or response.smallest_eigenvalue > _APART:
        return shown
    try:
        sample = _drawn(posterior, pending, response, shown)
    except CaviarError:
        # too many would lose digits together, as those of vectors that are nearly in a plane; or a draw has no density
        return shown
    if sample is None:
        return shown
    # draws predict where their error is smaller than what factors lack along some direction
    is_nearer = _END / np.sqrt(sample.effective_draws) < 1.0 - np.sqrt(max(response.smallest_eigenvalue, 0.0))
    is_kept = row_map.source.n_rows <= MOST_PREDICTED
    if is_kept and sample.is_usable and is_nearer:
        shown = replace(shown, draws=sample.kept())
    if not _is_shown(sample, posterior, pending, shown):
        return shown
    if sample.pareto_k - _SURELY * sample.pareto_k_error > _NO_MEAN:
        return shown if shown.doubt else shown.doubted(_UNCHECKED)
    if len(sample.weights) < _FEWEST_SHOWN:
        return shown if shown.doubt else shown.doubted(_FEW_DRAWS)
    # of the prior of an empty component poor weights tell too little
    keeps_left = not sample.is_usable and _has_empty_component(posterior, problem, row_map)
    has_labels = any(own.labels for own in problem.factors)
    is_poor = has_labels and sample.effective_draws < _EFFECTIVE_SHARE * len(sample.weights)
    doubt = _POOR_WEIGHTS if is_poor or not sample.is_usable else ""
    factors = {name: posterior[name] for name in posterior}
    return Drawn.of(sample, factors, shown, keeps_left=keeps_left, is_kept=is_kept, doubt=doubt)


def _is_shown(sample: Any, posterior: Any, pending: Any, shown: Widths) -> bool:
    """Return whether draws take the place of figures, if their weights are good enough: these are off, or in doubt."""
    problem, _ = posterior._bound(pending)
    has_labels, is_integrated = any(own.labels for own in problem.factors), isinstance(shown, Integrated)
    in_place = not _may_change_places(posterior, pending)
    is_off = _is_off(sample, posterior, shown, has_labels=has_labels, in_place=in_place)
    if not is_off and not (shown.doubt and sample.is_usable):
        return False
    return has_labels or (sample.is_usable and sample.effective_draws >= is_integrated * _EFFECTIVE)


def may_be_drawn(posterior: Any, pending: Any) -> bool:
    """Return whether weighted draws may predict: few rows hide something, and enough draws cost little."""
    problem, row_map = posterior._bound(pending)
    if not problem.factors or row_map.source.n_rows > MOST_PREDICTED:
        return False
    return _most_of(posterior, pending, problem, row_map)(_MOST_CHECKED) > 0


def may_be_narrower(posterior: Any, pending: Any, response: Any) -> bool:
    """Return whether predictions by the factors may be narrower than those of weighted draws, which are not made."""
    return may_be_drawn(posterior, pending) and response.smallest_eigenvalue <= _APART


def _most_of(posterior: Any, pending: Any, problem: Problem, row_map: RowMap) -> Callable[[int], int]:
    """Return a function of a number of draws that returns how many of them cost little; 0 where those are too few."""
    n_rows, density = row_map.source.n_rows, None
    if n_rows <= MOST_ROWS:
        counted = posterior._counted(pending.data, pending.sample_weight)
        density = by_densities(
            posterior, pending.data, pending.sample_weight, problem, counted, is_asked=False
        )
    if density is not None:
        return density.n_draws_of_little_cost
    return lambda n_draws: n_draws_of_little_cost(problem, n_rows, n_draws)


def _drawn(posterior: Any, pending: Any, response: Any, shown: Widths) -> Any:
    """Return draws, and more of them if these disagree with intervals; None if they are dear."""
    problem, row_map = posterior._bound(pending)
    most_of = _most_of(posterior, pending, problem, row_map)

    def drawn(n_draws: int) -> Any:
        return posterior._importance_sample(
            pending.data, response, n_draws, 0, pending.sample_weight, is_asked=False, most_apart=_MOST_APART
        )

    n, most = most_of(_MOST_CHECKED), most_of(_SHOWN_DRAWS)
    sample = drawn(n) if n else None
    has_labels = any(own.labels for own in problem.factors)
    if sample is None:
        return None
    in_place = not _may_change_places(posterior, pending)
    is_off = _is_off(sample, posterior, shown, has_labels=has_labels, in_place=in_place, is_sure=False)
    if not is_off and not shown.doubt:
        return sample
    return drawn(most) if most > n else sample


def _may_change_places(posterior: Any, pending: Any) -> bool:
    """Whether components have so many orders that those of draws may be in another one than those of the fit."""
    known = pending.data if isinstance(pending.data, Mapping) else ()
    orders = (factorial(number) for _, number in orders_of(posterior.model.variables, known))
    return prod(orders) > MOST_ORDERS


def _has_empty_component(posterior: Any, problem: Problem, row_map: RowMap) -> bool:
    """Whether a component has no rows."""
    arrays, labels = posterior._state(problem, row_map).arrays, problem.factors[0].name
    counts = arrays.get(SumKey((StatisticKey(labels, "x"),), CONSTANT.key))
    return counts is not None and bool(counts.min() < _NO_ROWS)


def _is_off(
    sample: Any, posterior: Any, shown: Widths, *, has_labels: bool, in_place: bool, is_sure: bool = True
) -> bool:
    """Return whether weighted draws disagree with an interval, or with a mean.

    Parameters
    ----------
    has_labels
        Whether rows hide labels.
    in_place
        Whether the components of draws are in the order of the fit. Components that overlap may otherwise change
        places, which no mean of them knows.
    is_sure
        Whether they disagree by more than their errors.
    """
    errors = is_sure * (1.0 if has_labels else _ERRORS) / np.sqrt(sample.effective_draws)
    most = _OFF + errors * np.sqrt(_LEVEL * (1.0 - _LEVEL))
    for name in shown.sds:
        shares, shifts = _beside_draws(sample, name, posterior[name], shown)
        if (np.abs(shares - _LEVEL) > most).any():
            return True
        if in_place and (shifts > _MOVED + errors).any():
            return True
    return False


def _beside_draws(sample: Any, name: str, factor: Any, shown: Uncertainty) -> tuple[Array, Array]:
    """Return the probabilities of weighted draws inside the intervals of entries of a variable, and how far means are.

    The latter are in standard deviations of the draws.
    """
    shares, shifts = [np.zeros(0)], [np.zeros(0)]
    for own in shown.marginals(name, factor, (0.5 - _LEVEL / 2, 0.5 + _LEVEL / 2)):
        values = sample._of(name + own.part)
        if own.lower is None or own.upper is None or np.shape(own.lower) != values.shape[1:]:
            # points, and what is shared along a plate
            continue
        is_inside = (values >= own.lower) & (values <= own.upper)
        has_width = np.isfinite(own.lower) & (own.lower < own.upper)
        shares.append(np.tensordot(sample.weights, is_inside, axes=1)[has_width])
        mean, sd = sample.mean(name + own.part)[has_width], sample.sd(name + own.part)[has_width]
        apart = np.abs(np.asarray(own.mean)[has_width] - mean)
        # a mean may be infinite, of which draws know nothing
        has_mean = np.isfinite(apart) & (sd > 0)
        shifts.append(np.divide(apart, sd, out=np.zeros_like(sd), where=has_mean))
    return np.concatenate([np.ravel(own) for own in shares]), np.concatenate(shifts, axis=None)


def _moved(posterior: Any, told: Any, name: str, shown: Uncertainty) -> float:
    """Return by how many standard deviations the mean of a variable differs between fits, at most."""
    parts = shown.marginals(name, posterior[name], (0.05, 0.95))
    sds = (np.zeros(np.shape(own.mean)) if own.sd is None else np.nan_to_num(own.sd) for own in parts)
    sd: Array = np.concatenate([np.ravel(own) for own in sds])
    apart = np.abs(means_of(told._factors[name]) - means_of(posterior._factors[name]))
    return float(np.divide(apart, sd, out=np.zeros_like(sd), where=sd > 0).max(initial=0.0))
