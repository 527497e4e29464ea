"""A posterior integrated over some of its globals, one at a time, with a short row of fits that go through the rows.

Of several globals, each is integrated over with the others as independent factors. What this adds to the means and
variances of all else is added up.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from ...engine.ascent.state import AscentState
from ...engine.evaluation.given_by_passes import GivenByPasses, variances_of
from ...engine.response.cost import is_cheap_to_profile
from .at_once import Integral
from .lattice_of_fits import integral_of_fits


def profiles_of(factors: Mapping[str, Any], state: AscentState, names: Collection[str]) -> Integral | None:
    """Return the posterior integrated over each of some globals.

    None where one of them has several numbers or it costs much, and beside point masses.

    Parameters
    ----------
    factors
        Of the fit, by name.
    state
        Of the fit.
    names
        Of the globals.
    """
    if not names or any(np.size(factors[name].mean) != 1 for name in names):
        return None
    if any(own.learnt is not own for own in state.q.values()):
        # the density of a point is not that of an integral
        return None
    if not is_cheap_to_profile(state.problem, state.rows.source.n_rows, len(names)):
        return None
    found = [integral_of_fits(factors, GivenByPasses(state, [name]), [name]) for name in names]
    values, weights = (
        {k: v for own in found for k, v in getattr(own, figure).items()} for figure in ("values", "weights")
    )
    of_fit, shifts, variances = variances_of(state), {}, {}
    for name in [own for own in found[0].shifts if all(own in each.shifts for each in found)]:
        before, after = of_fit[name], [own.sds[name] ** 2 for own in found]
        shifts[name] = sum(own.shifts[name] for own in found)
        # two that each take more than half of a variance would leave none
        variances[name] = np.maximum(before + sum(own - before for own in after), np.min(after, axis=0))
    return Integral(values, weights, shifts, {name: np.sqrt(own) for name, own in variances.items()})
