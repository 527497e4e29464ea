"""Standard deviations and intervals that are computed when they are first asked for, or at the end of a fit."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np

from ..._errors import CaviarError, CaviarWarning, DataError, ModelError
from ...engine.ascent.problem import Problem
from ...engine.response.solutions.chosen import ALWAYS_FORMED
from ...engine.rows.row_map import RowMap
from .known import AS_ASKED, Corrected, MeanField, Source, Tell, Uncertainty, Widths


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
        for tell in self._first(posterior):
            with suppress(CaviarError, np.linalg.LinAlgError, OSError):
                told = tell(self)
                if told is not None:
                    return told
        found = _found(
            posterior,
            lambda response: response.why_doubtful,
            self.data,
            self.left_out,
            told=partial(self._told, posterior),
            sample_weight=self.sample_weight,
            bound=self.bound,
        )
        found = self._doubted(posterior, found)
        # standard errors of points are for those who ask
        return found.only({name for name in posterior if posterior[name].learnt is not None})

    def _doubted(self, posterior: Any, found: Uncertainty) -> Uncertainty:
        """Return figures with a sentence on why they may be wrong, if something says so."""
        if found.kind not in (Corrected.kind, Widths.kind, MeanField.kind):
            return found
        with suppress(CaviarError, np.linalg.LinAlgError, OSError):
            doubt = posterior._doubt(self, found)
            return found.doubted(doubt) if doubt else found
        return found

    def _first(self, posterior: Any) -> tuple[Tell, ...]:
        """Return what is better than linear response wherever it tells something."""
        # a large factor has the covariances of what is left out, but not what the rows hide beside it
        first = posterior._integrated, posterior._integrated_over_effects
        return (*first, *((posterior._integrated_in_rows,) if self.left_out else ()))

    def told_by(self, tell: Tell) -> Source:
        return PendingTold(self.data, self.sample_weight, self.left_out, self.bound, tell)

    def _told(self, posterior: Any, response: Any, left_out: Collection[str]) -> Widths:
        return response.widths(left_out)

    def _with_doubt_of_series(self, posterior: Any, response: Any, widths: Widths) -> Widths:
        """Return linear response with a sentence on how far second order would change it, if that is much."""
        with suppress(ModelError, np.linalg.LinAlgError):
            return widths.doubted(posterior._doubt_of_series(self, response, widths))
        return widths


@dataclass(frozen=True, eq=False)
class PendingIntegrated(Pending):
    """Those integrated over the globals that large Gaussian factors depend on, computed when they are first asked for.

    Attributes
    ----------
    otherwise
        Those of the factors, which are shown if there are none.
    is_tried
        Whether they may cost little enough.
    """

    otherwise: MeanField = field(default_factory=MeanField)
    is_tried: bool = True

    def settled(self, posterior: Any) -> Uncertainty:
        with suppress(CaviarError, np.linalg.LinAlgError, OSError):
            integrated = posterior._integrated_in_rows(self) if self.is_tried else None
            return integrated or self._doubted(posterior, self.otherwise)
        return self.otherwise

    def told_by(self, tell: Tell) -> Source:
        return self


@dataclass(frozen=True, eq=False)
class PendingTold(Pending):
    """Those that a function tells, or else those of linear response, computed when they are first asked for.

    Attributes
    ----------
    tell
        The function.
    """

    tell: Tell = field(default=lambda pending: None, repr=False)

    def _first(self, posterior: Any) -> tuple[Tell, ...]:
        return (*super()._first(posterior), self.tell)


@dataclass(frozen=True, eq=False)
class Judged(Source):
    """Those that cost little enough, judged by all iterations of the fit when they are first asked for.

    By then fits from other starts, and fits that this one continues, have been counted.

    Attributes
    ----------
    within
        Returns the best that costs at most as much as so many iterations.
    """

    within: Callable[[int], Source]

    def settled(self, posterior: Any) -> Uncertainty:
        return self.within(posterior._n_iter_in_all).settled(posterior)

    def told_by(self, tell: Tell) -> Source:
        return Judged(lambda n_iterations: self.within(n_iterations).told_by(tell))

    def may_have_draws(self, posterior: Any) -> bool:
        return self.within(posterior._n_iter_in_all).may_have_draws(posterior)


@dataclass(frozen=True, eq=False)
class PendingToSecondOrder(Pending):
    """Those to second order, computed when they are first asked for.

    Where some correction is so large that the series is in doubt, those integrated over the globals, if rows hide
    something and this costs little. They are those of linear response where there are none, or where the series does
    not hold: unless asked for, nothing is shown that is corrected in part.

    Attributes
    ----------
    is_cheap
        Returns whether they cost at most as much as the fit, or very little.
    """

    is_cheap: Callable[[], bool] = field(default=lambda: True, repr=False)

    def _told(self, posterior: Any, response: Any, left_out: Collection[str]) -> Widths:
        found = self._best(posterior, response, left_out)
        with suppress(ModelError, np.linalg.LinAlgError):
            return posterior._drawn_if_better(self, response, found)
        return found

    def may_have_draws(self, posterior: Any) -> bool:
        with suppress(CaviarError, np.linalg.LinAlgError, OSError):
            return posterior._may_be_drawn(self)
        return False

    def _best(self, posterior: Any, response: Any, left_out: Collection[str]) -> Widths:
        widths = super()._told(posterior, response, left_out)
        found: Corrected | None = None
        if self.is_cheap():
            with suppress(ModelError):
                found = response.corrected(left_out)
        if found is not None and not found.is_far_from(widths):
            with suppress(ModelError, np.linalg.LinAlgError):
                return posterior._beside(self, response, found) or found
            return found
        tells = posterior._integrated_by_rows, posterior._integrated_in_rows, posterior._integrated_over_scale
        for tell in tells:
            with suppress(ModelError, np.linalg.LinAlgError):
                integrated = tell(self)
                if integrated is not None:
                    return integrated
        if found is None:
            return self._with_doubt_of_series(posterior, response, widths)
        return widths.doubted(found.doubt_of(widths)) if found.limited else found


@dataclass(frozen=True, eq=False)
class Asked(Pending):
    """Those of linear response, computed at the end of the fit; if that fails, a warning says why.

    Attributes
    ----------
    executor
        Of the fit.
    narrower
        What predictions say if the prior was an earlier posterior.
    """

    executor: Any = field(default=None, repr=False)
    narrower: str = ""
    of: ClassVar[str] = Widths.kind
    """What it asks for."""

    def _told(self, posterior: Any, response: Any, left_out: Collection[str]) -> Widths:
        widths = super()._told(posterior, response, left_out)
        # of fewer coordinates second order itself can be asked for
        is_large = response._response.size > ALWAYS_FORMED
        return self._with_doubt_of_series(posterior, response, widths) if is_large else widths

    def begun(self, posterior: Any) -> Uncertainty:
        found = _found(
            posterior,
            lambda response: response.why_none,
            self.data,
            told=partial(self._told_as_asked, posterior),
            sample_weight=self.sample_weight,
            executor=self.executor,
            bound=self.bound,
        )
        if found.kind == MeanField.kind:
            message = f"uncertainty='{self.of}' is not available for this fit. {found.remark}"
            warnings.warn(message, CaviarWarning, stacklevel=4)
        return found.predicting(self.narrower) if self.narrower else found

    def _told_as_asked(self, posterior: Any, response: Any, left_out: Collection[str]) -> Uncertainty:
        """Return what was asked for, with a sentence on predictions that other fits make by weighted draws."""
        found = self._told(posterior, response, left_out)
        with suppress(CaviarError, np.linalg.LinAlgError, OSError):
            if posterior._may_be_narrower(self, response):
                return found.predicting(AS_ASKED)
        return found


@dataclass(frozen=True, eq=False)
class AskedToSecondOrder(Asked):
    """Those to second order, computed at the end of the fit; if there are none, linear response and a warning."""

    of: ClassVar[str] = Corrected.kind

    def _told(self, posterior: Any, response: Any, left_out: Collection[str]) -> Widths:
        try:
            return response.corrected(left_out)
        except ModelError as error:
            message = f"uncertainty='second_order' is not available for this fit, which shows linear response: {error}"
            warnings.warn(message, CaviarWarning, stacklevel=6)
            return response.widths(left_out)


@dataclass(frozen=True, eq=False)
class AskedIntegrated(Asked):
    """Those integrated over a few globals, whatever that costs; if there are none, linear response and a warning."""

    of: ClassVar[str] = "integrated"

    def begun(self, posterior: Any) -> Uncertainty:
        tells = (
            posterior._integrated,
            posterior._integrated_over_effects,
            posterior._integrated_by_rows,
            partial(posterior._integrated_in_rows, at_any_cost=True),
            partial(posterior._integrated_over_scale, at_any_cost=True),
        )
        for tell in tells:
            with suppress(CaviarError, np.linalg.LinAlgError, OSError):
                told = tell(self)
                if told is not None:
                    return told
        message = (
            "uncertainty='integrated' is not available for this fit, which shows linear response: no few globals make "
            "the others independent, or their weights are poor"
        )
        warnings.warn(message, CaviarWarning, stacklevel=4)
        return self._doubted(posterior, super().begun(posterior))


ASKED: Mapping[str, type[Asked]] = {own.of: own for own in (Asked, AskedToSecondOrder, AskedIntegrated)}
"""What computes at the end of a fit what was asked for, by kind."""


def _found(
    posterior: Any,
    why_not: Callable[[Any], str],
    data: Any,
    left_out: Collection[str] = (),
    *,
    told: Callable[[Any, Collection[str]], Uncertainty],
    **arguments: Any,
) -> Uncertainty:
    """Return what is told of linear response; if that fails, the figures of the factors and the reason."""
    try:
        response = posterior._responding(data, **arguments, is_whole=not left_out)
        why = why_not(response)
        return MeanField(why) if why else told(response, left_out)
    except DataError:
        return MeanField("the data of the fit have changed since, or cannot be read")
    except (CaviarError, np.linalg.LinAlgError, OSError) as error:
        return MeanField(f"linear response failed: {str(error).partition('. ')[0].rstrip('.')}")
