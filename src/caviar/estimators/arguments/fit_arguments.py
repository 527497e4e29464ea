"""The fit arguments that all estimators have, checked and passed on in one place."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import TYPE_CHECKING, Any

from sklearn.base import BaseEstimator

from ..._errors import ParameterError
from ..._words_of_others import estimator_advice
from ...engine.ascent.driver import Progress
from ...numerics.arguments import require_whole
from ...posterior.uncertainty.known import KINDS
from .checks import require_choice, require_number
from .declared import estimator


@estimator
class FitArguments(BaseEstimator):
    """An estimator with the arguments of a fit.

    Attributes
    ----------
    {tol}
    {max_iter}
    {n_init}
    {random_state}
    {n_jobs}
    {executor}
    {verbose}
    {uncertainty}
    """

    tol: float = 1e-6
    max_iter: int = 500
    n_init: int = 1
    random_state: Any = None
    n_jobs: int | None = None
    executor: Any = None
    verbose: bool | int | Callable[[Progress], None] | None = None
    uncertainty: str = "auto"

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Refuse what the estimator lacks, and say what it has in the place of a familiar name."""
            advice = estimator_advice(name)
            if advice:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{advice}")
            # raises again what was raised: a property may say that there was no fit
            return self.__getattribute__(name)

    def _check_fit_arguments(self) -> None:
        """Refuse impossible numbers.

        Raises
        ------
        ParameterError
            If there is one; the message names it.
        """
        require_whole("max_iter", self.max_iter, 0)
        require_whole("n_init", self.n_init, 1)
        require_number("tol", self.tol)
        require_choice("uncertainty", self.uncertainty, KINDS)

    @property
    def _place(self) -> Any:
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
                f"n_jobs and executor cannot be used together; got n_jobs={self.n_jobs} and "
                f"executor={self.executor!r}. Leave one of them None"
            )
        return self.executor

    def _arguments_of_model(self) -> dict[str, Any]:
        """Return the arguments of :meth:`caviar.Model.fit` and :meth:`caviar.Posterior.update` among them."""
        return {
            "tol": self.tol,
            "max_iter": self.max_iter,
            "executor": self._place,
            "progress": None if self.verbose is None else progress_of(self.verbose),
            # linear response is found once, of the fit that is kept
            "uncertainty": "mean_field" if self.uncertainty == "mean_field" else "auto",
        }


def progress_of(verbose: Any) -> Any:
    """Return the ``progress`` of a fit that ``verbose`` of an estimator asks for."""
    return verbose if verbose is None or callable(verbose) else bool(verbose)
