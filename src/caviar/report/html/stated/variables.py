"""The entries of all global variables, with their intervals and those of their priors.

Precisions have their standard deviations too, in the units of the data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ...._errors import CaviarError
from ...._typing import Array
from ....estimators.mixed_models.spreads import sds_of_variances
from ....families import Gamma, NormalGamma, NormalWishart, StickBreaking, Wishart
from ....families.base.marginals import variable_and_part
from ....numerics.arguments import central_ends
from ....posterior.diagnostics.curves import Curves, prior_curves
from ....posterior.figures import Figures
from ....posterior.weighted import Weighted
from ..section import Section
from .figures import LEVEL, figures_at

_MOST_ENTRIES = 300
"""Entries of each variable in the table of all; of more, the largest in size are kept."""
_MOST_PRIORS = 4000
"""Entries of a variable for which the prior is computed."""
_PROBABILITIES = np.array([0.001, 0.01, 0.025, 0.05, 0.1, 0.2, 0.35, 0.49])
_ENDS = central_ends(LEVEL)


class Variables(Section):
    """The table of the entries of all global variables, with the controls that filter it."""

    name, link, template = "variables", "Variables", "variables.html"

    def gather(self, subject: Any) -> dict[str, Any]:
        entries, left_out = [], {}
        for own in [*subject.figures, *standard_deviations(subject.posterior, subject.figures)]:
            places, left = own.largest(_MOST_ENTRIES)
            if left:
                left_out[own.title] = left
            prior = _prior_of(subject.posterior, own, subject.data or {})
            for place in places:
                figures = dict(zip(("mean", "sd", "low", "high"), figures_at(own, place), strict=True))
                entries.append(
                    {
                        "variable": own.title,
                        "at": own.label(place),
                        **figures,
                        **_beside(prior, place, figures["low"], figures["high"]),
                    }
                )
        return {"entries": entries, "left_out": left_out}


def _prior_of(posterior: Any, own: Figures, data: Mapping[str, Any]) -> Curves | None:
    """Return quantiles of the prior; None where it is improper, unknown, or of too many entries."""
    if own.name.endswith(" as sd") or own.mean.size > _MOST_PRIORS or own.lower is None:
        return None
    # parts of a joint factor go by its name, and the points of bounds by that of an observed variable
    whole, _ = variable_and_part(own.name, posterior)
    if isinstance(posterior[whole], StickBreaking):
        # its intervals come from draws, which take too long for each draw of its parents
        return None
    try:
        return prior_curves(posterior, own.name, own.mean.shape, data, 0, probabilities=_PROBABILITIES)
    except CaviarError:
        # it depends on known columns that were not given
        return None


def _beside(
    prior: Curves | None, place: tuple[int, ...], low: float | None, high: float | None
) -> dict[str, float | None]:
    """Return the ends of the interval of the prior, and how wide that of the posterior is beside it."""
    own = None if prior is None else prior.entry(place)
    if own is None or low is None or high is None:
        return {"prior_low": None, "prior_high": None, "narrower": None}
    first, last = (own.quantile(end) for end in _ENDS)
    return {
        "prior_low": first,
        "prior_high": last,
        "narrower": (high - low) / (last - first) if last > first else None,
    }


def standard_deviations(posterior: Any, figures: list[Figures]) -> list[Figures]:
    r"""Return the standard deviations of the precisions among the variables of a posterior.

    A precision :math:`\tau \sim \mathrm{Gamma}(a, b)` is the standard deviation :math:`\tau^{-1/2}`, of mean
    :math:`\sqrt b\, \Gamma(a - 1/2) / \Gamma(a)`; its quantiles are those of the precision, transformed. A variance
    on the diagonal of the inverse of :math:`W(\nu, B)` is an inverse Gamma number with shape
    :math:`(\nu - D + 1) / 2` and scale :math:`B_{kk} / 2`. Where the posterior shows a precision by weighted values,
    these are transformed.

    Parameters
    ----------
    posterior
        Of any model.
    figures
        Those of its variables.
    """
    found = []
    for own in figures:
        variable, part = variable_and_part(own.name, posterior)
        if part == "mean" or not (part == "precision" or _is_precision(posterior, variable)):
            continue
        weighted = posterior._weighted(variable)
        if weighted is not None:
            found.append(_of_values(own, weighted))
            continue
        gamma = _gamma_of(posterior[variable], own)
        if gamma is None:
            continue
        shape, scale = np.broadcast_arrays(*gamma)
        if not np.all(shape > 0.5):
            continue
        found.append(_named(own, *sds_of_variances(shape, scale, LEVEL)))
    return found


def _is_precision(posterior: Any, name: str) -> bool:
    """Whether a variable is the precision of another, by itself and not as a part of a product."""
    slots = [
        variable.slots.get("precision")
        for variable in posterior.model.variables.values()
        if variable.name != name
    ]
    return any(slot is not None and slot.node is not None and slot.node.name == name for slot in slots)


def _gamma_of(factor: Any, own: Figures) -> tuple[Array, Array] | None:
    """Return shape and scale of the inverse Gamma variance of each entry; None for a point or another family."""
    if isinstance(factor, Gamma):
        # as wide as the posterior shows it
        if own.sd is None:
            return None
        shape = (own.mean / own.sd) ** 2
        return shape, shape / own.mean
    if isinstance(factor, NormalGamma):
        return np.asarray(factor.shape), np.asarray(factor.rate)
    if isinstance(factor, Wishart | NormalWishart):
        size = np.asarray(factor.inverse_scale).shape[-1]
        df = np.asarray(factor.df)[..., np.newaxis]
        diagonal = np.diagonal(np.asarray(factor.inverse_scale), axis1=-2, axis2=-1)
        return 0.5 * (df - size + 1.0), 0.5 * diagonal
    return None


def _of_values(own: Figures, weighted: Weighted) -> Figures:
    """Return the figures of the standard deviations that belong to weighted precisions."""
    values = np.asarray(weighted.values)
    variances = np.diagonal(np.linalg.inv(values), axis1=-2, axis2=-1) if own.n_event == 2 else 1.0 / values
    found = replace(weighted, values=np.sqrt(variances))
    return _named(own, found.mean, found.sd, found.interval(LEVEL))


def _named(own: Figures, mean: Array, sd: Array, ends: Any) -> Figures:
    """Return figures of standard deviations in the place of those of precisions, of a matrix those of its diagonal."""
    is_matrix = own.n_event == 2
    lower, upper = ends
    return replace(
        own,
        name=f"{own.name} as sd",
        shown=f"{own.title} as sd",
        names=own.names[:-1] if is_matrix else own.names,
        mean=mean,
        sd=sd,
        lower=lower,
        upper=upper,
    )
