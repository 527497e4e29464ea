"""Everything caviar raises or warns about, in one tree.

::

    CaviarError
    ├── ModelError (ValueError)          the statement of a model is wrong
    │   ├── ConjugacyError               no conditionally conjugate update exists
    │   └── PlateError                   plates, sizes or event shapes disagree
    ├── DataError (ValueError)           the data do not fit the model
    ├── CheckpointError (ValueError)     a checkpoint cannot be read, or belongs to another fit
    ├── ParameterError (ValueError)      an argument has an impossible value
    ├── FittedAttributeError (AttributeError)  an attribute that follows from a fit was set
    ├── ClusterError (ConnectionError)   a cluster cannot be reached, or has lost what it held
    ├── ImproperError (ValueError)       a distribution cannot be normalised, or has no mode
    └── VerificationError (AssertionError)  a model fails checks of caviar.testing

    CaviarWarning (UserWarning)
    ├── CheckpointWarning                a checkpoint could not be written, or is that of another kind of processor
    ├── ClusterWarning                   a cluster is silent, or computes with other kernels than this process
    ├── CollapseWarning                  a factor shrank onto (almost) no data
    ├── ConvergenceWarning               the objective has not settled
    ├── FallingElboWarning               an update lowered the objective: a bug, reported with its factor
    ├── LostDigitsWarning                sums over the data are so large that their difference loses its digits
    ├── PrecisionWarning                 float32 is too coarse for these data: float64 was used instead
    ├── RenamedWarning (FutureWarning)   a name that has another one now is used; the old one will be gone
    └── SkippedGroupsWarning             groups could not be fitted, and are left out
"""

from __future__ import annotations

from typing import Any


class CaviarError(Exception):
    """Base of every error that caviar raises on purpose."""


class ModelError(CaviarError, ValueError):
    """The statement of a model is wrong."""


class ConjugacyError(ModelError):
    """A variable has no update inside its own family."""


class PlateError(ModelError):
    """Plates, their sizes or the event shapes of two statements disagree."""


class DataError(CaviarError, ValueError):
    """The data are not valid for the model."""


class CheckpointError(CaviarError, ValueError):
    """A checkpoint cannot be read, or belongs to another fit."""


class ParameterError(CaviarError, ValueError):
    """An argument has an invalid value."""


class FittedAttributeError(CaviarError, AttributeError):
    """An attribute that follows from a fit was set, which would change no prediction."""


class ClusterError(CaviarError, ConnectionError):
    """A cluster cannot be reached, its workers cannot do the work, or too many were lost."""


class ImproperError(CaviarError, ValueError):
    """A distribution cannot be normalised, or has no mode inside its domain.

    Attributes
    ----------
    is_proper
        For an array of distributions, which of them can be normalised, in their batch shape; None if unknown.
    """

    def __init__(self, message: str = "", is_proper: Any = None) -> None:
        super().__init__(message)
        self.is_proper = is_proper


class VerificationError(CaviarError, AssertionError):
    """A model fails checks of the verification kit."""


class CaviarWarning(UserWarning):
    """Base of every warning that caviar gives."""


class CheckpointWarning(CaviarWarning):
    """A checkpoint could not be written, or was written on another kind of processor; the fit continues."""


class ClusterWarning(CaviarWarning):
    """A cluster does not respond, or computes with other kernels than this process; the fit continues."""


class CollapseWarning(CaviarWarning):
    """A factor under a flat prior shrank onto (almost) no data."""


class ConvergenceWarning(CaviarWarning):
    """The objective has not converged within the default number of iterations."""


class FallingElboWarning(CaviarWarning):
    """An update lowered the objective, which exact coordinate ascent cannot do."""


class LooseBoundWarning(CaviarWarning):
    """A loose bound of a density makes the error of a posterior much larger than that of mean field."""


class LostDigitsWarning(CaviarWarning):
    """Sums over the data are so large that their differences lose digits in double precision."""


class PrecisionWarning(CaviarWarning):
    """Passes meant for float32 are in float64, because responsibilities would be off by too much."""


class RenamedWarning(CaviarWarning, FutureWarning):
    """A deprecated name is used; the message has the new name and the version that removes the old one."""


class SkippedGroupsWarning(CaviarWarning):
    """Groups of many fits could not be fitted, and are left out."""


for _each in list(vars().values()):
    # users know them by this name, which a traceback then shows
    if isinstance(_each, type) and _each.__module__ == __name__:
        _each.__module__ = "caviar"
