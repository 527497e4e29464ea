"""The arguments that a fit was called with, kept beside the summary of its data so that it can be repeated."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np

from ..language import Plate
from ..posterior.posterior import Posterior

LEFT_OUT = "..."
"""Stands for an argument that has no short form, as an array of weights."""
_NOT_OF_THE_ANSWER = {"progress", "executor", "checkpoint", "checkpoint_every", "prior", "uncertainty"}
_LONGEST = 200
_MOST_PARTS = 50

P = ParamSpec("P")
M = TypeVar("M")


def kept(fit: Callable[Concatenate[M, P], Posterior]) -> Callable[Concatenate[M, P], Posterior]:
    """Return a fit that keeps the arguments by which it was called."""

    @wraps(fit)
    def kept_fit(model: M, *arguments: P.args, **keywords: P.kwargs) -> Posterior:
        posterior = fit(model, *arguments, **keywords)
        posterior.data_summary = {**(posterior.data_summary or {}), "arguments": as_plain(keywords)}
        return posterior

    return kept_fit


def as_plain(keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that decide the answer as plain values.

    Examples
    --------
    >>> as_plain({"seed": 3, "tol": 1e-6, "point": ("mean",), "sample_weight": np.ones(5), "progress": True})
    {'seed': 3, 'tol': 1e-06, 'point': ['mean'], 'sample_weight': '...'}
    """
    return {
        name: _plain(value)
        for name, value in keywords.items()
        if name not in _NOT_OF_THE_ANSWER and value is not None
    }


def _plain(value: Any) -> Any:
    if isinstance(value, Plate):
        return value.name
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool | int | float) or (isinstance(value, str) and len(value) <= _LONGEST):
        return value
    if isinstance(value, list | tuple) and len(value) <= _MOST_PARTS:
        own = [_plain(part) for part in value]
        return LEFT_OUT if LEFT_OUT in own else own
    return LEFT_OUT
