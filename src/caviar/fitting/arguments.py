"""Checks and conversions of the arguments of a fit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial, wraps
from numbers import Integral, Real
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np

from .._errors import ParameterError
from ..engine.ascent.problem import Problem
from ..execution.memory import keep_freed_memory
from ..language import Plate, Variable
from ..numerics.blas import one_blas_thread
from ..numerics.cached import cached_property
from ..posterior.posterior import Posterior

_MOST_RESTARTS = 1_000_000
LEFT_OUT = "..."
"""Kept instead of an argument that has no short form, such as an array of weights."""
_NOT_OF_THE_ANSWER = {"progress", "executor", "checkpoint", "checkpoint_every", "prior", "uncertainty"}
_NUMBERS = frozenset({bool, int, float})
_LONGEST = 200
_MOST_PARTS = 50

P = ParamSpec("P")
M = TypeVar("M")


def seeds(
    seed: int | np.random.Generator | None, n_restarts: int
) -> Sequence[Callable[[], np.random.Generator]]:
    """Return what makes the generator of each start; the first does not depend on how many there are.

    They are independent. A start that draws nothing needs none.
    """
    if isinstance(seed, np.random.Generator):
        return [partial(np.random.default_rng, own) for own in seed.spawn(n_restarts)]
    whole = _Whole(seed)
    if seed is not None:
        try:
            _ = whole.entropy
        except (TypeError, ValueError):
            raise ParameterError(f"seed is None, a whole number >= 0 or a Generator; got {seed!r}") from None
    return [partial(_generator_of_child, whole, number) for number in range(n_restarts)]


class _Whole:
    """The sequence of which the seeds of all starts are children, made when one of them is asked for."""

    def __init__(self, seed: int | None) -> None:
        self._seed = seed

    @cached_property
    def entropy(self) -> Any:
        """What all children have in common."""
        return np.random.SeedSequence(self._seed).entropy


def _generator_of_child(whole: _Whole, number: int) -> np.random.Generator:
    """Return the generator of the child with this number, as ``spawn`` makes it."""
    return np.random.default_rng(np.random.SeedSequence(whole.entropy, spawn_key=(number,)))


def known_names(argument: str, names: Sequence[str], known: Mapping[str, Variable]) -> Sequence[str]:
    """Return names of global variables that were given for an argument, if they are such."""
    if isinstance(names, str):
        raise ParameterError(f"{argument} must be a list of names; write {argument}=['{names}']")
    if not isinstance(names, Iterable):
        raise ParameterError(f"{argument} must be a list of names of global latent variables; got {names!r}")
    for name in names:
        if not isinstance(name, str) or name not in known:
            raise ParameterError(
                f"{argument}= names {name!r}, which is not a global latent variable; the global latent "
                f"variables are {', '.join(known)}"
            )
    return names


def groups_of(
    problem: Problem, factors: Sequence[Sequence[str]] | str | None
) -> Sequence[Sequence[str]] | None:
    """Return the groups of variables that share a factor, those of the default too; None without groups of globals."""
    if factors is None:
        return [[own.name for own in group] for group in problem.groups] or None
    return None if isinstance(factors, str) else factors


def ordered(known: Mapping[str, Variable], order: Sequence[str] | None) -> list[Variable]:
    """Return the globals in the order that a user wants, those that are not named at the end."""
    first = [known[name] for name in known_names("order", () if order is None else order, known)]
    named = frozenset(first)
    return first + [variable for variable in known.values() if variable not in named]


def check_settings(max_iter: int | None, tol: float, n_restarts: int) -> None:
    """Refuse invalid numbers of iterations and restarts, and invalid tolerances."""
    max_iter = 0 if max_iter is None else max_iter
    for name, value in (("max_iter", max_iter), ("n_restarts", n_restarts)):
        if type(value) is not int and not isinstance(value, Integral):
            raise ParameterError(f"{name} must be a whole number; got {value!r}")
    if type(tol) is not float and not isinstance(tol, Real):
        raise ParameterError(f"tol must be a number; got {tol!r}")
    if max_iter < 0:
        raise ParameterError(f"max_iter must not be negative; got {max_iter}")
    if not tol >= 0:
        raise ParameterError(f"tol, a change of the objective per row, must not be negative; got {tol}")
    if n_restarts < 1:
        raise ParameterError(f"n_restarts must be at least 1; got {n_restarts}")
    if n_restarts > _MOST_RESTARTS:
        raise ParameterError(f"n_restarts must be at most {_MOST_RESTARTS}; got {n_restarts}")


def kept(fit: Callable[Concatenate[M, P], Posterior]) -> Callable[Concatenate[M, P], Posterior]:
    """Return a fit that keeps the arguments by which it was called."""

    @wraps(fit)
    def kept_fit(model: M, *arguments: P.args, **keywords: P.kwargs) -> Posterior:
        keep_freed_memory()
        # what a fit reads before its passes would set the threads again and again
        with one_blas_thread():
            posterior = fit(model, *arguments, **keywords)
        posterior._tell({"arguments": as_plain(keywords)})
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
    if type(value) in _NUMBERS or (isinstance(value, str) and len(value) <= _LONGEST):
        return value
    if isinstance(value, Plate):
        return value.name
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, int | float):
        return value
    if isinstance(value, list | tuple) and len(value) <= _MOST_PARTS:
        own = [_plain(part) for part in value]
        return LEFT_OUT if LEFT_OUT in own else own
    return LEFT_OUT


def swaps_of(asked: bool | str, init: Any) -> bool | str:
    """Return whether components change places: by default not where a start is given, which says which is which."""
    return asked if asked != "auto" or (isinstance(init, str) and init == "auto") else False
