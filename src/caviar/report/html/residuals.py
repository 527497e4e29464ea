"""Residuals of what was observed: observed values beside what the known columns say of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..._errors import CaviarError
from ...language import Categorical, Data, Variable
from ...posterior.posterior import Posterior
from ...posterior.prediction.residuals import Residuals
from .numbers import as_numbers


def residuals_of(posterior: Posterior, data: Mapping[str, Any]) -> list[tuple[Variable, Residuals]]:
    """Return the observed variables that known columns predict, labels left out, with their residuals."""
    if not any(isinstance(node, Data) for node in posterior.model.nodes):
        return []
    found = []
    for leaf in posterior.model.leaves:
        if as_numbers(data.get(leaf.name)) is None or isinstance(leaf, Categorical):
            continue
        try:
            own = posterior.residuals(data, leaf.name)
        except CaviarError:
            # its mean has no closed form
            continue
        if np.shape(own.prediction.mean) == own.observed.shape:
            found.append((leaf, own))
    return found
