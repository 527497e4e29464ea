"""How an estimator fits: the arguments that all of them have, checked and handed on in one place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from numbers import Integral
from typing import Any, Self

from .._errors import ParameterError
from ..engine.ascent.driver import Progress
from ._arguments import require_number, require_whole
from ._paragraphs import documented


@documented
@dataclass(frozen=True)
class FitArguments:
    """Arguments of a fit, as estimators take them.

    Attributes
    ----------
    {tol}
    {max_iter}
    {n_init}
    {n_jobs}
    {executor}
    {verbose}
    """

    tol: float
    max_iter: int
    n_init: int
    n_jobs: int | None
    executor: Any
    verbose: bool | int | Callable[[Progress], None]

    @classmethod
    def of(cls, estimator: Any) -> Self:
        """Return those of an estimator."""
        return cls(*(getattr(estimator, own.name) for own in fields(cls)))

    def check(self) -> None:
        """Refuse impossible numbers.

        Raises
        ------
        ParameterError
            If there is one; the message names it.
        """
        require_whole("max_iter", self.max_iter, 0)
        require_whole("n_init", self.n_init, 1)
        require_number("tol", self.tol)

    @property
    def place(self) -> Any:
        """Where blocks of rows are mapped: the executor, or as many threads as there are jobs; None for all cores.

        Raises
        ------
        ParameterError
            If both were given.
        """
        n_jobs = None if isinstance(self.n_jobs, Integral) and self.n_jobs == -1 else self.n_jobs
        if n_jobs is not None:
            require_whole("n_jobs, if it is not None or -1,", n_jobs, 1)
        if self.executor is None:
            return None if n_jobs is None else int(n_jobs)
        if self.n_jobs is not None:
            raise ParameterError(
                f"n_jobs={self.n_jobs} asks for threads of this process, and executor={self.executor!r} for something "
                f"else; leave one of them None"
            )
        return self.executor

    @property
    def progress(self) -> bool | Callable[[Progress], None]:
        """What is told of each iteration, as :meth:`caviar.Model.fit` takes it."""
        return self.verbose if callable(self.verbose) else bool(self.verbose)

    def of_model(self) -> dict[str, Any]:
        """Return what :meth:`caviar.Model.fit` and :meth:`caviar.Posterior.update` take of them."""
        return {
            "tol": self.tol,
            "max_iter": self.max_iter,
            "executor": self.place,
            "progress": self.progress,
        }
