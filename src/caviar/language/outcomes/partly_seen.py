"""Normal numbers of which only a part is seen: censored ones, known by a bound, and those of a truncated Normal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ... import families
from ..._errors import ConjugacyError, ModelError
from ..._typing import AnyArray, Array
from ...families.approximations.by_moments import REALS
from ...families.base.normal_interval import UNBOUNDED
from ..distributions.normals import WithNoise
from ..nodes.algebra import Predictor, as_predictor
from ..nodes.node import Expression, Indexed, Node, Part
from ..nodes.plates import Plates
from ..nodes.roles import CENSORING, END, LOCATION, PRECISION, STILL_LOCATION, UNSEEN, VALUE_BETWEEN, Role
from ..nodes.stated import Stated
from ..nodes.templates import LOG_2PI, template
from .batches import Batch
from .links import Answer, Hidden


class _PartlySeen(Answer):
    """What censored and truncated Normals share: a mean, a precision, known bounds, and a hidden variable."""

    by_moments: ClassVar = REALS
    linked = "value"
    without_link = "Normal, whose values are all seen,"
    hides: ClassVar[type[_HiddenPart]]

    def _state_part(
        self,
        name: str,
        mean: Expression,
        precision: Expression,
        plates: Plates,
        known: Mapping[str, tuple[Any, Role]],
    ) -> None:
        self._identify(name, plates)
        where = f"{type(self).__name__} '{name}'"
        for slot, (value, _) in known.items():
            if isinstance(value, Indexed) or (isinstance(value, Node) and not value.is_known):
                raise ModelError(
                    f"'{slot}' of {where} must be known: a number, an array or a Data; got {value!r}"
                )
        whole = mean.node if isinstance(mean, Indexed) else mean
        if isinstance(mean, Part) or (isinstance(whole, Node) and whole.has_parts):
            raise ConjugacyError(
                f"'mean' of {where} cannot be a part of the joint factor {whole!r}, since the values that are not seen "
                f"would need a joint factor too. State a Normal and a Gamma"
            )
        # a sum, also of one: what is not seen is not measured from another point
        is_hidden = isinstance(whole, Node) and not whole.is_known
        location = as_predictor(mean) if is_hidden else mean
        role = LOCATION if isinstance(location, Predictor) else STILL_LOCATION
        self.hidden = self.hides(self)
        arguments: dict[str, Any] = {
            "mean": (location, role),
            "precision": (precision, PRECISION),
            **known,
            "hidden": (self.hidden, self.hidden.role),
        }
        self.beside = tuple(known)
        self._state(name, plates, arguments, dimension=1)
        self.stated = {slot: own for slot, own in self.stated.items() if slot != "hidden"}
        self.hidden.stated |= self.stated

    def refuse_as_parent(self, owner: Stated, slot: str) -> None:
        """Refuse to be a parent: it can only be observed."""
        raise ConjugacyError(
            f"'{slot}' of {type(owner).__name__} '{owner.name}' cannot be the {type(self).__name__} '{self.name}', "
            f"which can only be observed. Let '{owner.name}' depend on what '{self.name}' depends on, or state a "
            f"Normal; a hidden number that is not negative is HalfNormal('{self.name}', precision)"
        )


class _HiddenPart(Hidden):
    """What is not seen of a value."""

    def __init__(self, answer: _PartlySeen) -> None:
        self._hide(answer, dimension=self.size)

    size: ClassVar[int] = 1
    follows_answer = True

    def problem_with(self, value: AnyArray) -> str:
        """Return an empty string: it cannot be data."""
        return ""


class ValueBetween(_HiddenPart):
    """The true value of one that is known by bounds."""

    family = families.IntervalNormal
    letters: ClassVar = {"x": "", "xx": "", "lower": "", "upper": ""}
    noun = "value"
    role: ClassVar[Role] = VALUE_BETWEEN

    def distribution_given(self, slots: Mapping[str, Any]) -> families.IntervalNormal:
        """Return the true value given the recorded one, what this says, and mean and precision."""
        lower, upper = ends_of(slots["answer"], slots["censored"], slots.get("until"))
        parts = np.broadcast_arrays(slots["mean"], slots["precision"], lower, upper)
        return families.IntervalNormal(*parts)


class CensoredNormal(WithNoise, _PartlySeen):
    r"""A Normal number that is observed exactly, or known to be above, below or between observed values (censored).

    The hidden variable ``"y.value"`` is the true value x, which lies in a known interval, :math:`a \le x \le b`:

    .. math:: p(y) = \int_a^b N(x \mid m, \tau^{-1})\, dx, \qquad p(y) = N(y \mid m, \tau^{-1}) \text{ if } a = b

    It must be observed.

    Parameters
    ----------
    name
        Name of the variable, unique within the model.
    mean
        A number, an array, a Normal, or a sum or product of these.
    precision
        Inverse variance: a number, an array, a Gamma, or a product of these.
    censored
        Kind of each observed value y: 0 if the true value is y, 1 if it is above y, -1 if it is below y, 2 if it is
        between y and ``until``. A number, an array or :class:`Data`.
    until
        Upper ends of the intervals with ``censored`` 2; ignored for other values.
    plates
        Plates along which the variable is repeated.

    Raises
    ------
    ModelError, ConjugacyError
        If ``censored`` or ``until`` is unknown, or mean and precision are a joint factor.

    Notes
    -----
    If mean and precision are known the ELBO is exact. Otherwise it is a bound, because the true values are independent
    of mean and precision under q. Tobin (1958); Chib (1992), "Bayes inference in the Tobit censored regression model".

    Examples
    --------
    Three of five lamps are still burning when they are last seen:

    >>> import caviar as cv
    >>> lamp = cv.Plate("lamp")
    >>> level = cv.Normal("level", 0, 0.01)
    >>> y = cv.CensoredNormal("y", level, 4.0, censored=cv.Data("burning", plates=lamp), plates=lamp)
    >>> posterior = cv.Model(y).fit({"y": [1.0, 1.2, 1.5, 1.5, 1.5], "burning": [0, 0, 1, 1, 1]})
    >>> print(posterior["level"].mean.round(2))
    1.6
    """

    family = families.Normal
    letters: ClassVar = {"lower": "", "upper": ""}
    density = template(
        (-1 / 2, "precision.x hidden.xx"),
        (1, "precision.x mean.x hidden.x"),
        (-1 / 2, "precision.x mean.xx"),
        (1 / 2, "precision.log_x"),
        (-1 / 2 * LOG_2PI, ""),
        (1, "self.lower hidden.lower"),
        (1, "self.upper hidden.upper"),
    )
    hides = ValueBetween

    def __init__(
        self,
        name: str,
        mean: Expression,
        precision: Expression,
        *,
        censored: Expression,
        until: Expression = None,
        plates: Plates = (),
    ) -> None:
        known: dict[str, Any] = {"censored": (censored, CENSORING)}
        if until is not None:
            known["until"] = (until, END)
        self._state_part(name, mean, precision, plates, known)

    def statistic_beside(self, name: str, value: AnyArray, known: Mapping[str, AnyArray]) -> Array:
        """Return the lower or the upper end of the interval that a value is in."""
        lower, upper = ends_of(np.asarray(value, dtype=np.float64), known["censored"], known.get("until"))
        return lower if name == "lower" else upper

    def problem_beside(self, value: AnyArray, known: Mapping[str, AnyArray]) -> str:
        """Return what is wrong with intervals that end before they begin."""
        kind = np.broadcast_to(known["censored"], value.shape)
        if "until" not in known:
            return "" if not np.any(kind == 2) else "needs until=, the upper ends, where censored is 2"
        wrong = (kind == 2) & (known["until"] < value)
        if not np.any(wrong):
            return ""
        where = tuple(np.argwhere(wrong)[0])
        until = np.broadcast_to(known["until"], value.shape)[where]
        return f"must not be above until=; row {where[0] if where else 0} has {value[where]:g} and {until:g}"

    def distribution_given(self, slots: Mapping[str, Any]) -> Any:
        """Return the distribution of recorded values given mean, precision and what they are."""
        parts = [slots["mean"], slots["precision"], slots["censored"]]
        until = slots.get("until", np.zeros(()))
        return Recorded(*map(np.asarray, np.broadcast_arrays(*parts, until)))


class Unseen(_HiddenPart):
    """The numbers that fell outside the window before one inside was seen."""

    family = families.UnseenNormal
    letters: ClassVar = {"count": "", "sum": "", "square": "", "lower": "", "upper": ""}
    value_rank = 1
    size = 3
    noun = "unseen"
    role: ClassVar[Role] = UNSEEN

    def distribution_given(self, slots: Mapping[str, Any]) -> families.UnseenNormal:
        """Return the unseen numbers given mean, precision and window; they do not depend on what was seen."""
        shape = np.broadcast_shapes(*(np.shape(own) for own in slots.values()))
        own = [np.broadcast_to(slots[name], shape) for name in ("mean", "precision", "lower", "upper")]
        return families.UnseenNormal(np.zeros(shape), *own)


class TruncatedNormal(_PartlySeen):
    r"""A Normal number that is recorded only if it lies in a window (truncated).

    .. math:: p(y) = \frac{N(y \mid m, \tau^{-1})}{\int_a^b N(x \mid m, \tau^{-1})\, dx}, \qquad a \le y \le b

    Values outside the window were not recorded, and their number is unknown. (If their number is known, use a
    :class:`CensoredNormal`.) The hidden variable ``"y.unseen"`` describes the unrecorded values before each y: their
    number, sum, and sum of squares. Given it, mean and precision have their usual updates. A TruncatedNormal must be
    observed.

    Parameters
    ----------
    name
        Name of the variable, unique within the model.
    mean
        A number, an array, a Normal, or a sum or product of these.
    precision
        Inverse variance: a number, an array, a Gamma, or a product of these.
    lower, upper
        Ends of the window: known numbers, arrays or :class:`Data`. Without one of them the window is unbounded on that
        side.
    plates
        Plates along which the variable is repeated.

    Raises
    ------
    ModelError, ConjugacyError
        If there is no limit, a limit is not known, or mean and precision are a joint factor.

    Notes
    -----
    If mean and precision are known the ELBO is exact. Otherwise it is a bound, because the unrecorded values are
    independent of mean and precision under q. If the window contains only a small part of the distribution, there are
    many unrecorded values, the bound is loose, and fits take many iterations.

    Examples
    --------
    >>> import numpy as np
    >>> import caviar as cv
    >>> rng, obs = np.random.default_rng(0), cv.Plate("obs")
    >>> x = rng.normal(1.0, 1.0, 3000)
    >>> level, tau = cv.Normal("level", 0, 0.01), cv.Gamma("tau", 1, 1)
    >>> y = cv.TruncatedNormal("y", level, tau, lower=0.5, plates=obs)
    >>> posterior = cv.Model(y).fit({"y": x[x > 0.5]}, tol=1e-10)
    >>> print(abs(posterior["level"].mean - 1.0) < 0.15, abs(posterior["tau"].mean - 1.0) < 0.15)
    True True
    """

    family = families.Normal
    letters: ClassVar = {"x": "", "xx": ""}
    density = template(
        (-1 / 2, "precision.x self.xx"),
        (1, "precision.x mean.x self.x"),
        (-1 / 2, "precision.x mean.xx"),
        (1 / 2, "precision.log_x"),
        (-1 / 2 * LOG_2PI, ""),
        (-1 / 2, "precision.x hidden.square"),
        (1, "precision.x mean.x hidden.sum"),
        (-1 / 2, "precision.x mean.xx hidden.count"),
        (1 / 2, "precision.log_x hidden.count"),
        (-1 / 2 * LOG_2PI, "hidden.count"),
        (1, "lower.x hidden.lower"),
        (1, "upper.x hidden.upper"),
    )
    hides = Unseen

    def __init__(
        self,
        name: str,
        mean: Expression,
        precision: Expression,
        *,
        lower: Expression = None,
        upper: Expression = None,
        plates: Plates = (),
    ) -> None:
        if lower is None and upper is None:
            raise ModelError(
                f"TruncatedNormal '{name}' has no limit: give lower= or upper=, or state a Normal"
            )
        ends = {
            "lower": (-UNBOUNDED if lower is None else lower, END),
            "upper": (UNBOUNDED if upper is None else upper, END),
        }
        self._state_part(name, mean, precision, plates, ends)

    @property
    def arguments(self) -> dict[str, Any]:
        """What it was stated with, without ends that are none."""
        return {
            slot: own for slot, own in self.stated.items() if slot in ("mean", "precision") or self._has(slot)
        }

    def _has(self, slot: str) -> bool:
        known = self.known(slot)
        return known is None or not np.all(np.abs(known) >= UNBOUNDED)

    def statistic_beside(self, name: str, value: AnyArray, known: Mapping[str, AnyArray]) -> Array:
        """Return one statistic of values."""
        return self.statistic(name, value)

    def problem_beside(self, value: AnyArray, known: Mapping[str, AnyArray]) -> str:
        """Return what is wrong with values outside the window."""
        lower, upper = (np.broadcast_to(known[end], value.shape) for end in ("lower", "upper"))
        wrong = (value < lower) | (value > upper)
        if not np.any(wrong):
            return ""
        where = tuple(np.argwhere(wrong)[0])
        place = f"; row {where[0]} has" if where else "; got"
        return (
            f"must lie in its window{place} {value[where]:g}, and the window is from {_end(float(lower[where]))} to "
            f"{_end(float(upper[where]))}. State values of which only a limit is known as a CensoredNormal"
        )

    def distribution_given(self, slots: Mapping[str, Any]) -> families.IntervalNormal:
        """Return the distribution of values inside the window."""
        own = (slots[name] for name in ("mean", "precision", "lower", "upper"))
        return families.IntervalNormal(*map(np.asarray, np.broadcast_arrays(*own)))


def _end(value: float) -> str:
    return f"{value:g}" if abs(value) < UNBOUNDED else ("-inf" if value < 0 else "inf")


def ends_of(value: Array, kind: AnyArray, until: AnyArray | None) -> tuple[Array, Array]:
    """Return the ends of the intervals that recorded values mean."""
    value, kind = np.broadcast_arrays(np.asarray(value, dtype=np.float64), kind)
    last = value if until is None else np.broadcast_to(until, value.shape)
    lower = np.where(kind == -1, -UNBOUNDED, value)
    return lower, np.where(kind == 1, UNBOUNDED, np.where(kind == 2, last, value))


@dataclass(frozen=True)
class Recorded(Batch):
    """Recorded values of Normal numbers, to be drawn from and evaluated.

    Attributes
    ----------
    mean, precision
        Of the true values.
    censored, until
        What the recorded values are.
    """

    mean: Array
    precision: Array
    censored: AnyArray
    until: AnyArray

    def sample(self, size: int | tuple[int, ...] | None, seed: int | np.random.Generator | None) -> Array:
        """Return true values of shape size + batch: a record that is censored would need the rule that censored it."""
        return families.Normal(self.mean, self.precision).sample(size, seed)

    def log_density(self, value: AnyArray) -> Array:
        """Return the log density of recorded values, of those that are censored the log-probability."""
        lower, upper = ends_of(np.asarray(value), self.censored, self.until)
        linear, quadratic = self.precision * self.mean, -0.5 * self.precision
        whole = 0.5 * np.log(self.precision / (2.0 * np.pi)) - 0.5 * linear * self.mean
        return families.IntervalNormal.from_natural((linear, quadratic, lower, upper)).log_partition + whole
