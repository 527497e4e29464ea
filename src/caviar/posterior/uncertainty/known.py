"""The standard deviations and intervals that a posterior shows: those of its factors, or of linear response."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np

from ..._typing import Array
from ...families.base.marginals import Ends, Marginals, with_places
from ..weighted import WeightedDraws

MEAN_FIELD = "Intervals are those of mean field, and may be too narrow"
LINEAR_RESPONSE = "Standard deviations and intervals are those of linear response."
SECOND_ORDER = "Means, standard deviations and intervals are corrected to second order."
HEAVY = (
    "the data say almost nothing about it, as in a component without rows, so its factor keeps the long tails of the "
    "prior"
)
"""Why the standard deviation of an entry is infinite under its own factor."""
NARROWER = "They are those of mean field, and may be too narrow: "
"""How a remark on predictions begins that are made by the factors, where others are made by weighted draws."""
LACKING_DRAWS = f"{NARROWER}these rows have no prediction by the weighted draws of the summary."
AS_ASKED = (
    f"{NARROWER}of so few rows that hide something, fits without uncertainty= predict by weighted draws."
)
AFTER_EARLIER_ROWS = f"{NARROWER}none are made by weighted draws where the prior was an earlier posterior."
_MUCH_OF_SD, _MUCH_WIDER = 0.5, 1.4
"""Corrections of a mean, in standard deviations, and of a standard deviation, as a ratio, from which on others may be
better: regressions and locations have up to 0.41 and 1.19, precisions between few groups from 0.8 and 1.9 on."""
KINDS = ("auto", "integrated", "linear_response", "second_order", "mean_field")
"""The kinds that can be asked for."""
SHOWN = (*KINDS, "importance_sampling")
"""The kinds that a posterior may have."""


Tell: TypeAlias = "Callable[[Any], Uncertainty | None]"
"""Returns what is shown, from a :class:`~caviar.posterior.uncertainty.pending.Pending`; None if it has nothing."""


class Source(ABC):
    """Where a posterior takes its standard deviations and intervals from: what is known, or what will be computed."""

    def begun(self, posterior: Any) -> Source:
        """Return what a new posterior keeps."""
        return self

    @abstractmethod
    def settled(self, posterior: Any) -> Uncertainty:
        """Return the standard deviations and intervals, computed if they are not known."""

    def told_by(self, tell: Tell) -> Source:
        """Return what shows, in the place of what would be shown by default, what a function tells."""
        return self

    def may_have_draws(self, posterior: Any) -> bool:
        """Whether there may be draws that predict; see :attr:`Uncertainty.draws`."""
        return False


class Uncertainty(Source):
    """Standard deviations and intervals that are known."""

    kind: ClassVar[str]
    """Its name."""
    draws: WeightedDraws | None = None
    """Draws of the globals that predict new rows, in the place of the factors; None where there are none."""

    @abstractmethod
    def marginals(self, name: str, factor: Any, ends: Ends) -> Sequence[Marginals]:
        """Return the intervals of the entries of a variable: one part, or two of a joint factor.

        Parameters
        ----------
        name, factor
            Name of the variable.
        ends
            Probabilities below the ends of the intervals.
        """

    @property
    @abstractmethod
    def remark(self) -> str:
        """A sentence on the intervals."""

    @property
    def on_tails(self) -> str:
        """A sentence, after a space, on variables without a standard deviation; empty if there are none."""
        return ""

    def settled(self, posterior: Any) -> Uncertainty:
        return self

    @property
    def on_predictions(self) -> str:
        """A sentence on predictions by the factors that may be too narrow; empty if nothing says so."""
        return ""

    def may_have_draws(self, posterior: Any) -> bool:
        return self.draws is not None or bool(self.on_predictions)

    def weighted(self, name: str) -> Any:
        """Return weighted values of a variable, see :class:`caviar.posterior.weighted.Weighted`.

        None of one that has none.
        """
        return None

    def doubted(self, doubt: str) -> Uncertainty:
        """Return the same with a sentence on why they may be wrong."""
        return self

    def predicting(self, narrower: str) -> Uncertainty:
        """Return the same with a sentence on predictions, which are those of the factors."""
        return self

    def only(self, names: Collection[str]) -> Self:
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
    doubt
        A sentence on why they may be wrong beside that; empty if nothing says so.
    narrower
        A sentence on predictions, if these may be too narrow; empty if nothing says so.
    """

    because: str = ""
    doubt: str = ""
    narrower: str = field(default="", kw_only=True)
    kind: ClassVar[str] = "mean_field"

    def marginals(self, name: str, factor: Any, ends: Ends) -> Sequence[Marginals]:
        return factor.entry_marginals(ends)

    @property
    def remark(self) -> str:
        found = f"{MEAN_FIELD} ({self.because})." if self.because else f"{MEAN_FIELD}."
        return f"{found} {self.doubt}" if self.doubt else found

    @property
    def on_predictions(self) -> str:
        return self.narrower

    def doubted(self, doubt: str) -> MeanField:
        return replace(self, doubt=doubt)

    def predicting(self, narrower: str) -> MeanField:
        return replace(self, narrower=narrower)

    def as_plain(self) -> dict[str, Any]:
        return {"because": self.because, **_said(doubt=self.doubt, narrower=self.narrower)}


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
    doubt
        A sentence on why they may be wrong; empty if nothing says so.
    draws
        Draws of all globals that predict new rows: those that intervals were compared with, or come from.
    narrower
        A sentence on predictions without draws, if these may be too narrow; empty if nothing says so.
    """

    sds: Mapping[str, Array]
    kept: tuple[str, ...] = ()
    doubt: str = field(default="", kw_only=True)
    draws: WeightedDraws | None = field(default=None, kw_only=True, repr=False)
    narrower: str = field(default="", kw_only=True)
    kind: ClassVar[str] = "linear_response"
    sentence: ClassVar[str] = LINEAR_RESPONSE

    def marginals(self, name: str, factor: Any, ends: Ends) -> Sequence[Marginals]:
        if name not in self.sds:
            return factor.entry_marginals(ends)
        found = []
        for own, places in with_places(factor.entry_marginals(ends)):
            sd = self.sds[name][places].reshape(np.shape(own.mean))
            found.append(matched(factor, self._own(name, own, places), sd, ends))
        return found

    def _own(self, name: str, own: Marginals, places: slice) -> Marginals:
        """Return the figures of a part of a factor, about the means that are shown."""
        return own

    @property
    def remark(self) -> str:
        doubt = f" {self.doubt}" if self.doubt else ""
        if not self.kept:
            return self.sentence + doubt
        return f"{self.sentence[:-1]}; of {', '.join(self.kept)} those of the factor that they share.{doubt}"

    @property
    def on_predictions(self) -> str:
        return self.narrower

    def doubted(self, doubt: str) -> Widths:
        return replace(self, doubt=doubt)

    def predicting(self, narrower: str) -> Widths:
        return replace(self, narrower=narrower)

    def only(self, names: Collection[str]) -> Self:
        return replace(self, sds={name: own for name, own in self.sds.items() if name in names})

    def as_plain(self) -> dict[str, Any]:
        kept = {"kept": list(self.kept)} if self.kept else {}
        drawn = {} if self.draws is None else {"sample": self.draws.as_plain()}
        return {
            "sds": dict(self.sds),
            **kept,
            **_said(doubt=self.doubt, narrower=self.narrower),
            **drawn,
        }

    @classmethod
    def of_plain(cls, document: Mapping[str, Any], factors: Mapping[str, Any]) -> Widths:
        """Return the widths of factors that a file holds.

        Raises
        ------
        ValueError
            If they are not those of these factors.
        """
        sds, kept = document["sds"], document.get("kept", [])
        doubt, narrower = document.get("doubt", ""), document.get("narrower", "")
        _check_numbers("standard deviations", sds, factors)
        if not all((own >= 0).all() for own in sds.values()):
            raise ValueError("standard deviations below 0")
        if not isinstance(kept, list) or not all(name in factors and name not in sds for name in kept):
            raise ValueError("variables of a shared factor that it does not have")
        if not isinstance(doubt, str) or not isinstance(narrower, str):
            raise ValueError("a doubt that is no sentence")
        draws = WeightedDraws.of_plain(document["sample"], factors) if "sample" in document else None
        return cls(dict(sds), tuple(kept), doubt=doubt, draws=draws, narrower=narrower)


@dataclass(frozen=True, eq=False)
class Corrected(Widths):
    """Means, standard deviations and intervals that are corrected to second order.

    Attributes
    ----------
    shifts
        What is added to the means of all entries of each variable, (n,), the parts of a joint factor one after the
        other.
    limited
        Variables of which some number is corrected in part, or not at all, because the correction is too large.
    unseen
        Variables with repetitions that have nothing observed below them: these keep linear response.
    """

    shifts: Mapping[str, Array] = field(default_factory=dict)
    limited: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()
    kind: ClassVar[str] = "second_order"
    sentence: ClassVar[str] = SECOND_ORDER

    def _own(self, name: str, own: Marginals, places: slice) -> Marginals:
        shift = self.shifts[name][places].reshape(np.shape(own.mean))
        ends = {
            end: None if value is None else value + shift
            for end, value in (("lower", own.lower), ("upper", own.upper))
        }
        return replace(own, mean=own.mean + shift, **ends)

    @property
    def remark(self) -> str:
        found = super().remark
        if self.limited:
            some = ", ".join(self.limited)
            found += f" Those of {some} in part or not at all, for the correction is too large."
        if self.unseen:
            some = ", ".join(self.unseen)
            found += f" Repetitions of {some} with nothing observed below them have those of linear response."
        return found

    def doubt_of(self, widths: Widths) -> str:
        """Say why the series is in doubt, whose means and standard deviations linear response keeps."""
        if not self.limited:
            return ""
        moved, wider = {}, {}
        for name, own in self.shifts.items():
            sd = widths.sds[name]
            is_known = np.isfinite(sd) & (sd > 0)
            moved[name] = float(np.abs(own[is_known] / sd[is_known]).max(initial=0.0))
            if name in self.limited:
                logs = np.log(self.sds[name][is_known] / sd[is_known])
                wider[name] = float(logs[np.abs(logs).argmax()]) if logs.size else 0.0
        worst, widest = max(moved, key=lambda n: moved[n]), max(wider, key=lambda n: abs(wider[n]))
        if moved[worst] > _MUCH_OF_SD:
            least = "at least " if worst in self.limited else ""
            what = f"the mean of {worst} moves by {least}{moved[worst]:.1f} of these standard deviations, too far"
        elif abs(wider[widest]) > np.log(_MUCH_WIDER):
            ratio = float(np.exp(wider[widest]))
            bound = "at least" if ratio > 1 else "at most"
            what = f"the standard deviation of {widest} is {bound} {ratio:.1f} times as large, too much"
        else:
            return (
                f"They are in doubt: the series to second order does not hold for {', '.join(self.limited)}: some "
                f"corrected number would leave its range, or has no correction."
            )
        return f"They are in doubt: to second order {what} for that series to hold."

    def is_far_from(self, widths: Widths) -> bool:
        """Whether the series is in doubt: a mean or standard deviation of linear response is corrected by much."""
        if self.limited:
            return True
        for name, sd in self.sds.items():
            before = widths.sds[name]
            if (np.abs(self.shifts[name]) > _MUCH_OF_SD * before).any():
                return True
            if (sd > _MUCH_WIDER * before).any() or (before > _MUCH_WIDER * sd).any():
                return True
        return False

    def only(self, names: Collection[str]) -> Self:
        found = super().only(names)
        limited, unseen = (
            tuple(name for name in own if name in found.sds) for own in (self.limited, self.unseen)
        )
        shifts = {name: self.shifts[name] for name in found.sds}
        return replace(self, sds=found.sds, shifts=shifts, limited=limited, unseen=unseen)

    def as_plain(self) -> dict[str, Any]:
        some = {name: list(own) for name, own in (("limited", self.limited), ("unseen", self.unseen)) if own}
        return {**super().as_plain(), "shifts": dict(self.shifts), **some}

    @classmethod
    def of_plain(cls, document: Mapping[str, Any], factors: Mapping[str, Any]) -> Corrected:
        widths, shifts = Widths.of_plain(document, factors), document["shifts"]
        _check_numbers("corrections", shifts, factors)
        if shifts.keys() != widths.sds.keys():
            raise ValueError("corrections of other variables than those with standard deviations")
        limited, unseen = document.get("limited", []), document.get("unseen", [])
        for own in (limited, unseen):
            if not isinstance(own, list) or not all(name in shifts for name in own):
                raise ValueError("limited corrections of variables without any")
        parts = widths.sds, widths.kept, dict(shifts), tuple(limited), tuple(unseen)
        return cls(*parts, doubt=widths.doubt, draws=widths.draws, narrower=widths.narrower)


def _said(**sentences: str) -> dict[str, str]:
    """Return the sentences that are there, by what they are about."""
    return {what: sentence for what, sentence in sentences.items() if sentence}


def _check_numbers(what: str, found: Any, factors: Mapping[str, Any]) -> None:
    """Refuse what has not a number for each entry of some variables."""
    if not isinstance(found, dict) or not set(found) <= set(factors):
        raise ValueError(f"{what} of other variables than it has")
    for name, own in found.items():
        size = sum(np.size(part.mean) for part in factors[name].entry_marginals((0.05, 0.95)))
        is_series = isinstance(own, np.ndarray) and own.dtype == np.float64 and own.shape == (size,)
        if not is_series or np.isnan(own).any():
            raise ValueError(f"{what} of {name!r:.40} that are none")


def matched(factor: Any, own: Marginals, sd: Array, ends: Ends) -> Marginals:
    """Return the intervals of entries of a factor with other standard deviations; known entries have no width.

    Points that respond to nothing have a mean only.
    """
    own = replace(own, mean=np.asarray(own.mean, dtype=np.float64))
    found = replace(factor.family.matched_marginals(own, sd, ends), part=own.part, is_shared=own.is_shared)
    is_still = sd == 0
    if not is_still.any():
        return found
    is_point = factor.learnt is None
    lower, upper = (
        None if array is None else np.where(is_still, np.nan if is_point else own.mean, array)
        for array in (found.lower, found.upper)
    )
    return replace(found, sd=np.where(is_still & is_point, np.nan, sd), lower=lower, upper=upper)
