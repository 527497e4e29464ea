"""Where random numbers come from: a generator that is passed in, or made from a seed."""

from __future__ import annotations

import numpy as np

from .._errors import ParameterError


def generator(seed: int | np.random.Generator | None) -> np.random.Generator:
    """Return a generator as it is, or a new one for a seed.

    Raises
    ------
    ParameterError
        If it is neither.
    """
    try:
        return np.random.default_rng(seed)
    except (TypeError, ValueError):
        raise ParameterError(f"seed is None, a whole number >= 0 or a Generator; got {seed!r}") from None
