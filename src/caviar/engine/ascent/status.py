"""Why a fit stopped: codes that are their own messages."""

from __future__ import annotations

from enum import StrEnum


class Status(StrEnum):
    """Why a fit stopped.

    Examples
    --------
    >>> print(Status.CONVERGED)
    converged: the objective changed by less than tol per row
    """

    CONVERGED = "converged", "the objective changed by less than tol per row"
    MAX_ITER = "max_iter", "max_iter passes were made before the fit converged; raise max_iter or tol"
    STOPPED = "stopped", "the progress function ended the fit before it converged"
    INTERRUPTED = "interrupted", "the fit was interrupted; this is the best so far"
    COLLAPSED = (
        "collapsed",
        (
            "a factor under a flat prior was left with (almost) no data, or with fewer rows than unknowns; give it a "
            "proper prior, or start elsewhere"
        ),
    )
    FELL = "fell", "an update lowered the objective, which exact coordinate ascent cannot do; see the warning"

    explanation: str

    def __new__(cls, code: str, explanation: str) -> Status:
        """Return the status with its code as value."""
        status = str.__new__(cls, code)
        status._value_ = code
        status.explanation = explanation
        return status

    def __str__(self) -> str:
        return f"{self.value}: {self.explanation}"
