"""Posteriors compared to the last bit, and fits that are broken off."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import caviar as cv
from caviar.engine.binding.clamped.factor import ClampedFactor, PointMass
from caviar.execution.threads import Threads

__all__ = ["Breaking", "Broken", "after", "assert_same_bits", "broken_off_until_done", "parameters"]


FIGURES = ("expected_statistics", "natural", "log_partition", "mean", "variance", "covariance")
"""What follows from the parameters of a factor, by a way that may depend on what it was made of."""


def parameters(factor: Any) -> list[np.ndarray]:
    """Return the arrays that a factor is."""
    if isinstance(factor, PointMass):
        return [
            np.asarray(part) for part in (factor.value if isinstance(factor.value, tuple) else [factor.value])
        ]
    if isinstance(factor, ClampedFactor):
        return [*parameters(factor.unknown), *parameters(factor.known), factor.is_known]
    return list(factor._parameters().values())


def assert_same_bits(one: cv.Posterior, other: cv.Posterior) -> None:
    """Check that two fits ended with the same numbers."""
    assert one.status is other.status
    assert one.n_iter == other.n_iter
    assert one.elbo == other.elbo
    assert one.elbo_terms == other.elbo_terms
    np.testing.assert_array_equal(one.elbo_trace, other.elbo_trace, strict=True)
    np.testing.assert_array_equal(one.restart_elbos, other.restart_elbos, strict=True)
    assert list(one) == list(other)
    for name in one:
        for mine, theirs in zip(parameters(one[name]), parameters(other[name]), strict=True):
            np.testing.assert_array_equal(mine, theirs, strict=True, err_msg=name)
        for figure in FIGURES:
            mine, theirs = (getattr(posterior[name], figure, None) for posterior in (one, other))
            np.testing.assert_equal(mine, theirs, err_msg=f"{figure} of {name}")


class Broken(Exception):
    """What breaks a fit off."""


def after(n_iterations: int) -> Callable[[object], None]:
    """Return a callback that breaks a fit off after some iterations."""
    told = []

    def callback(event: object) -> None:
        told.append(event)
        if len(told) == n_iterations:
            raise Broken

    return callback


class Breaking(Threads):
    """One thread that is interrupted once, as if by Ctrl-C, at a pass over the rows or in the middle of one."""

    def __init__(self, chunks: int, error: type[BaseException] = Broken) -> None:
        super().__init__(1)
        self.left, self.error = chunks, error

    def map(self, function: Callable[[int], Any], n_tasks: int) -> Iterator[Any]:
        for number in range(n_tasks):
            self._count()
            yield function(number)

    def sum(self, work: Any, source: Any, chunks: Sequence[Any], carried: Sequence[Any]) -> Any:
        if len(chunks) == 1:
            self._count()
        return super().sum(work, source, chunks, carried)

    def _count(self) -> None:
        self.left -= 1
        if self.left == -1:
            raise self.error


def broken_off_until_done(fit: Callable[..., Any], breaks: Sequence[dict[str, Any]]) -> tuple[Any, int]:
    """Return the end of a fit that is broken off as many times as it can be, and how often that was."""
    for number, arguments in enumerate(breaks):
        try:
            return fit(**arguments), number
        except Broken:
            pass
    return fit(), len(breaks)
