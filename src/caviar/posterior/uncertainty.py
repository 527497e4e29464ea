"""Where the standard deviations and intervals that a posterior shows come from: its factors, or linear response."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from .._errors import CaviarError, CaviarWarning, DataError, ParameterError
from .._typing import Array
from ..engine.ascent.problem import Problem
from ..engine.rows.row_map import RowMap
from ..families._marginals import Ends, Marginals

MEAN_FIELD = "Intervals are those of mean field, and may be too narrow"
LINEAR_RESPONSE = "Standard deviations and intervals are those of linear response."
KINDS = ("auto", "linear_response", "mean_field")
"""The kinds that can be asked for."""


class Source(ABC):
    """Where a posterior takes its standard deviations and intervals from: what is known, or what will be computed."""

    def begun(self, posterior: Any) -> Source:
        """Return what a new posterior keeps."""
        return self

    @abstractmethod
    def settled(self, posterior: Any) -> Uncertainty:
        """Return the standard deviations and intervals, computed if they are not known."""


class Uncertainty(Source):
    """Standard deviations and intervals that are known."""

    kind: ClassVar[str]
    """Its name."""

    @abstractmethod
    def marginals(self, name: str, factor: Any, ends: Ends) -> Sequence[Marginals]:
        """Return the intervals of the entries of a variable: one part, or two of a joint factor.

        Parameters
        ----------
        name, factor
            Of the variable.
        ends
            Probabilities below the ends of the intervals.
        """

    @property
    @abstractmethod
    def remark(self) -> str:
        """A sentence on the intervals."""

    def settled(self, posterior: Any) -> Uncertainty:
        return self

    def only(self, names: Collection[str]) -> Uncertainty:
        """Return the same for some variables; the others have the intervals of their factors."""
        return self

    @abstractmethod
    def as_plain(self) -> dict[str, Any]:
        """Return what a file holds of it."""


@dataclass(frozen=True)
class MeanField(Uncertainty):
    """Standard deviations and intervals of the factors.

    Attributes
    ----------
    because
        Why they are not those of linear response, if that is known.
    """

    because: str = ""
    kind: ClassVar[str] = "mean_field"

    def marginals(self, name: str, factor: Any, ends: Ends) -> Sequence[Marginals]:
        return factor.entry_marginals(ends)

    @property
    def remark(self) -> str:
        return f"{MEAN_FIELD} ({self.because})." if self.because else f"{MEAN_FIELD}."

    def as_plain(self) -> dict[str, Any]:
        return {"because": self.because}


@dataclass(frozen=True, eq=False)
class Widths(Uncertainty):
    """Standard deviations and intervals of linear response, about the means of the factors.

    Attributes
    ----------
    sds
        Standard deviations of all entries of each variable, (n,), the parts of a joint factor one after the other. A
        variable that is not listed shows the intervals of its factor.
    kept
        Names of variables that are not listed because a large factor which they share has their covariances.
    """

    sds: Mapping[str, Array]
    kept: tuple[str, ...] = ()
    kind: ClassVar[str] = "linear_response"

    def marginals(self, name: str, factor: Any, ends: Ends) -> Sequence[Marginals]:
        if name not in self.sds:
            return factor.entry_marginals(ends)
        found, start = [], 0
        for own in factor.entry_marginals(ends):
            shape = np.shape(own.mean)
            stop = start + int(np.prod(shape, dtype=int))
            found.append(matched(factor, own, self.sds[name][start:stop].reshape(shape), ends))
            start = stop
        return found

    @property
    def remark(self) -> str:
        if not self.kept:
            return LINEAR_RESPONSE
        return f"{LINEAR_RESPONSE[:-1]}; of {', '.join(self.kept)} those of the factor that they share."

    def only(self, names: Collection[str]) -> Widths:
        return replace(self, sds={name: own for name, own in self.sds.items() if name in names})

    def as_plain(self) -> dict[str, Any]:
        return {"sds": dict(self.sds), **({"kept": list(self.kept)} if self.kept else {})}

    @classmethod
    def of_plain(cls, sds: Any, kept: Any, factors: Mapping[str, Any]) -> Widths:
        """Return the widths of factors that a file holds.

        Raises
        ------
        ValueError
            If they are not those of these factors.
        """
        if not isinstance(sds, dict) or not set(sds) <= set(factors):
            raise ValueError("standard deviations of other variables than it has")
        for name, own in sds.items():
            size = sum(np.size(part.mean) for part in factors[name].entry_marginals((0.05, 0.95)))
            is_series = isinstance(own, np.ndarray) and own.dtype == np.float64 and own.shape == (size,)
            if not is_series or not (own >= 0).all():
                raise ValueError(f"standard deviations of {name!r:.40} that are none")
        if not isinstance(kept, list) or not all(name in factors and name not in sds for name in kept):
            raise ValueError("variables of a shared factor that it does not have")
        return cls(dict(sds), tuple(kept))


@dataclass(frozen=True, eq=False)
class Pending(Source):
    """Those of linear response, computed when they are first asked for; those of the factors if that fails.

    Attributes
    ----------
    data, sample_weight
        Arguments of the fit, as the user gave them; they are released afterwards.
    left_out
        Names of variables that keep the covariances of the factor which they share.
    bound
        The problem of the fit and the map over its rows, which binding the data again would make anew.
    """

    data: Mapping[str, Any] = field(repr=False)
    sample_weight: Any = field(repr=False)
    left_out: tuple[str, ...] = ()
    bound: tuple[Problem, RowMap] | None = field(default=None, repr=False)

    def settled(self, posterior: Any) -> Uncertainty:
        found = _found(
            posterior,
            lambda response: response.why_doubtful,
            self.data,
            self.left_out,
            sample_weight=self.sample_weight,
            bound=self.bound,
        )
        # standard errors of points are for those who ask
        return found.only({name for name in posterior if posterior[name].learnt is not None})


@dataclass(frozen=True, eq=False)
class Asked(Pending):
    """Those of linear response, computed at the end of the fit; if that fails, a warning says why.

    Attributes
    ----------
    executor
        Of the fit.
    """

    executor: Any = field(default=None, repr=False)

    def begun(self, posterior: Any) -> Uncertainty:
        found = _found(
            posterior,
            lambda response: response.why_none,
            self.data,
            sample_weight=self.sample_weight,
            executor=self.executor,
        )
        if found.kind != Widths.kind:
            message = f"uncertainty='linear_response' is not available for this fit. {found.remark}"
            warnings.warn(message, CaviarWarning, stacklevel=4)
        return found


def _found(
    posterior: Any,
    why_not: Callable[[Any], str],
    data: Any,
    left_out: Collection[str] = (),
    **arguments: Any,
) -> Uncertainty:
    """Return the widths of linear response; if that fails, those of the factors and the reason."""
    try:
        response = posterior._responding(data, **arguments, is_whole=not left_out)
        why = why_not(response)
        return MeanField(why) if why else response.widths(left_out)
    except DataError:
        return MeanField("the data of the fit have changed since, or cannot be read")
    except (CaviarError, np.linalg.LinAlgError, OSError) as error:
        return MeanField(f"linear response failed: {str(error).partition('. ')[0].rstrip('.')}")


def matched(factor: Any, own: Marginals, sd: Array, ends: Ends) -> Marginals:
    """Return the intervals of entries of a factor with other standard deviations; known entries are unchanged."""
    own = replace(own, mean=np.asarray(own.mean, dtype=np.float64))
    found = replace(factor.family.matched_marginals(own, sd, ends), part=own.part, is_shared=own.is_shared)
    is_known = (sd == 0) & (True if own.sd is None else np.isnan(own.sd))
    if not is_known.any():
        return found
    hidden = {
        name: None if array is None else np.where(is_known, np.nan, array)
        for name, array in (("sd", found.sd), ("lower", found.lower), ("upper", found.upper))
    }
    return replace(found, **hidden)


def ends_of(level: float) -> Ends:
    """Return the probabilities below the ends of a central interval, after checking its level."""
    if isinstance(level, bool) or not isinstance(level, Real) or not 0 < level < 1:
        raise ParameterError(f"level must lie between 0 and 1; got {level!r}")
    return 0.5 - level / 2, 0.5 + level / 2
