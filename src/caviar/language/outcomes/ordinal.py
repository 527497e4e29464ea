r"""Ordered categories: an observed Categorical behind one predictor, cut at thresholds that are known or points."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtr, ndtri

from ... import families
from ..._errors import ConjugacyError, ImproperError, ModelError, ParameterError
from ..._typing import AnyArray, Array
from ...families.base.normal_interval import UNBOUNDED
from ..nodes.algebra import Link
from ..nodes.constants import as_known
from ..nodes.node import Node
from ..nodes.roles import LOCATION, THRESHOLDS, VALUE_BETWEEN, Role
from ..nodes.templates import LOG_2PI, Density, template
from ..variable import Variable
from .links import Hidden, linked


class Thresholds(Variable):
    r"""The K - 1 thresholds between K ordered categories of a latent utility: point masses with a flat prior.

    In every iteration Newton's method maximises the ELBO over all rows. With the means :math:`m_n` of the utilities
    this is the sum of :math:`\log[\Phi(c_y - m_n) - \Phi(c_{y-1} - m_n)]`, which is concave.

    Parameters
    ----------
    name
        Name of the variable, unique within the model.
    n_thresholds
        Number of thresholds: the number of categories minus one.

    Raises
    ------
    ParameterError
        If it is not a positive whole number.

    Notes
    -----
    Leave out a constant in the predictor, because only its prior would distinguish it from the thresholds. Point masses
    have no standard deviations, and those of other variables are conditional on the thresholds.

    Examples
    --------
    >>> Thresholds("cut", 3)
    Thresholds('cut')
    """

    family = families.MultivariateNormal
    letters: ClassVar = {"x": "i", "xx": "ij"}
    density: ClassVar[Density] = ()
    value_rank = 1
    takes_data = False
    is_point = True

    def __init__(self, name: str, n_thresholds: int) -> None:
        if not isinstance(n_thresholds, int) or isinstance(n_thresholds, bool) or n_thresholds < 1:
            raise ParameterError(
                f"the second argument of Thresholds is how many there are, one fewer than categories; got "
                f"{n_thresholds!r}"
            )
        self._state(name, (), {}, dimension=n_thresholds)

    @property
    def arguments(self) -> dict[str, Any]:
        """How many there are, by the number of categories."""
        return {"categories": (self.dimension or 0) + 1}

    @classmethod
    def state_again(cls, name: str, plates: Any, arguments: Mapping[str, Any]) -> Thresholds:
        """Return the thresholds between so many categories."""
        return cls(name, arguments["categories"] - 1)

    def _states_flat_prior(self) -> bool:
        return True

    def unit_value(self, plates: tuple[int, ...], spread: float) -> Array:
        """Return those of categories that are equally probable at a predictor of 0."""
        size = self.dimension or 1
        return ndtri(np.arange(1, size + 1) / (size + 1.0))

    def mode_of(self, natural: tuple[Array, ...], floor: Array | None = None) -> Array:
        """Return the thresholds themselves: an update leaves them where they are."""
        if not np.all(np.diff(natural[0]) > 0) or not np.isfinite(natural[0]).all():
            raise ImproperError(f"the thresholds '{self.name}' are not in order.")
        return natural[0]

    def distribution_given(self, slots: Mapping[str, Any]) -> Any:
        """Refuse: there is no distribution to draw from."""
        raise ModelError(
            f"the thresholds '{self.name}' have a flat prior, from which nothing can be drawn; give them, as in "
            f"given={{'{self.name}': [-1.0, 0.0, 1.0]}}"
        )


@dataclass(frozen=True, repr=False)
class Ordered(Link):
    """Probabilities of ordered categories; see :func:`ordered`."""

    belongs = "is the probabilities of an observed Categorical, as in Categorical('y', {})"

    thresholds: Any

    def natural(self, predictor: AnyArray) -> AnyArray:
        return predictor

    def expected(self, thresholds: Array, mean: Array, variance: Array) -> Array:
        """Return the probabilities expected of a Normal predictor, (..., K)."""
        cuts = (thresholds - mean[..., None]) / np.sqrt(1.0 + variance)[..., None]
        below = ndtr(cuts)
        ends = np.zeros((*below.shape[:-1], 1))
        return np.diff(below, axis=-1, prepend=ends, append=ends + 1.0)

    def __repr__(self) -> str:
        cuts = self.thresholds.name if isinstance(self.thresholds, Node) else self.thresholds
        return f"ordered({self.predictor!r}, {cuts})"


def ordered(predictor: Any, thresholds: Any) -> Ordered:
    r"""Return the probabilities of ordered categories for an observed Categorical: ordinal probit.

    .. math:: P(y = k) = \Phi(c_k - \eta) - \Phi(c_{k-1} - \eta), \qquad c_{-1} = -\infty, \quad c_{K-1} = \infty

    Category k is observed if a utility :math:`u \sim N(\eta, 1)` falls between two thresholds. This adds the hidden
    variable ``"y.utility"`` to the model.

    Parameters
    ----------
    predictor
        :math:`\eta`: a Normal, or sums and products, without a constant if the thresholds are unknown.
    thresholds
        K - 1 numbers in increasing order, or :class:`Thresholds`.

    Raises
    ------
    ModelError
        If the predictor is known, or the thresholds are neither numbers nor :class:`Thresholds`.

    Notes
    -----
    Albert and Chib (1993). With unknown thresholds the ELBO is that of the other variables given the thresholds.

    Examples
    --------
    >>> import numpy as np
    >>> import caviar as cv
    >>> obs, w = cv.Plate("obs"), cv.MultivariateNormal("w", np.zeros(2), np.eye(2))
    >>> eta = cv.dot(cv.Data("X", plates=obs), w)
    >>> cv.Categorical("y", cv.ordered(eta, cv.Thresholds("cut", 3)), plates=obs).categories
    4
    """
    found = linked("ordered", predictor, "the probabilities are known, give them to the Categorical")
    if isinstance(thresholds, Variable) and not isinstance(thresholds, Thresholds):
        raise ConjugacyError(
            f"the thresholds of ordered(...) cannot be the {type(thresholds).__name__} "
            f"'{thresholds.name}': updates would not move a distribution of thresholds. Give numbers, or "
            f"Thresholds('{thresholds.name}', {thresholds.dimension or 1}), which are points"
        )
    if not isinstance(thresholds, Node):
        thresholds = as_known(thresholds, "thresholds of ordered(...)")
        if thresholds.ndim != 1 or not len(thresholds) or not np.all(np.diff(thresholds) > 0):
            raise ModelError(
                f"thresholds of ordered(...) are K - 1 numbers in increasing order; got {thresholds}"
            )
    elif not isinstance(thresholds, Thresholds):
        raise ModelError(
            f"thresholds of ordered(...) are numbers in increasing order, or Thresholds; got {thresholds!r}"
        )
    return Ordered(found, thresholds)


class UtilityBetween(Hidden):
    r"""The utility of the category that was chosen, between its two thresholds."""

    family = families.IntervalNormal
    letters: ClassVar = {"x": "", "xx": "", "lower": "", "upper": ""}
    noun = "utility"
    follows_answer = True
    role: ClassVar[Role] = VALUE_BETWEEN
    term: ClassVar[Density] = template(
        (-1 / 2, "hidden.xx"),
        (1, "hidden.x probabilities.x"),
        (-1 / 2, "probabilities.xx"),
        (-1 / 2 * LOG_2PI, ""),
        (1, "self.lower[i] thresholds.x[i] hidden.lower"),
        (1, "self.upper[i] thresholds.x[i] hidden.upper"),
        (-UNBOUNDED, "self.first hidden.lower"),
        (UNBOUNDED, "self.last hidden.upper"),
    )

    def problem_with(self, value: AnyArray) -> str:
        """Return an empty string: it cannot be data."""
        return ""

    def distribution_given(self, slots: Mapping[str, Any]) -> families.IntervalNormal:
        """Return the utility given the category, the predictor and the thresholds."""
        thresholds = np.asarray(slots["thresholds"])
        below = np.full((*thresholds.shape[:-1], 1), -UNBOUNDED)
        ends = np.concatenate([below, thresholds, -below], axis=-1)
        answer = np.asarray(slots["answer"], dtype=np.intp)
        every = np.broadcast_to(ends, (*answer.shape, ends.shape[-1]))
        lower, upper = (
            np.take_along_axis(every, number[..., np.newaxis], axis=-1)[..., 0]
            for number in (answer, answer + 1)
        )
        return families.IntervalNormal(*np.broadcast_arrays(slots["predictor"], 1.0, lower, upper))


def state_ordered(answer: Any, name: str, plates: Any, link: Ordered) -> None:
    """Take a predictor that is cut at thresholds."""
    answer._identify(name, plates)
    answer.hidden, answer.has_order = UtilityBetween(answer, link), True
    arguments: dict[str, Any] = {
        "probabilities": (link.predictor, LOCATION),
        "thresholds": (link.thresholds, THRESHOLDS),
        "hidden": (answer.hidden, answer.hidden.role),
    }
    n = (link.thresholds.dimension or 1) if isinstance(link.thresholds, Node) else len(link.thresholds)
    answer._state(name, plates, arguments, density=answer.hidden.term, dimension=n + 1)
    answer.letter_sizes = {**answer.letter_sizes, "i": n}
    thresholds = answer.stated["thresholds"]
    answer.stated = {"probabilities": link, "thresholds": thresholds}
    answer.hidden.stated |= {"thresholds": thresholds}
