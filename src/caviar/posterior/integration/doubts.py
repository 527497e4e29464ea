"""Why figures that are not integrated may be wrong: rows with a bound of their link, and spreads between groups."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._typing import Array
from ...engine.evaluation.given_by_passes import has_one_mode, operations_of_a_pass
from ...engine.response.cost import is_worth_a_series
from ...language.in_expectation import has_expectation
from ..uncertainty.known import Uncertainty, Widths
from .at_once import means_of, separating_of
from .lattice_of_fits import MOST_DIMENSIONS

_MOVED = 0.25
"""Standard deviations from which on a mean that moves is told."""

_WIDER = 1.2
"""Factor of a standard deviation, either way, from which on a correction is told."""

_WIDEST = 3
"""Numbers of which the series to second order is looked at."""

_PASSES, _OPERATIONS = 60, 2e9
"""Passes of a fit, about, and the operations up to which one is made to tell how far means move: about two seconds."""

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


def _moved(posterior: Any, told: Any, name: str, shown: Uncertainty) -> float:
    """Return by how many standard deviations the mean of a variable differs between fits, at most."""
    parts = shown.marginals(name, posterior[name], (0.05, 0.95))
    sds = (np.zeros(np.shape(own.mean)) if own.sd is None else np.nan_to_num(own.sd) for own in parts)
    sd: Array = np.concatenate([np.ravel(own) for own in sds])
    apart = np.abs(means_of(told._factors[name]) - means_of(posterior._factors[name]))
    return float(np.divide(apart, sd, out=np.zeros_like(sd), where=sd > 0).max(initial=0.0))
