r"""Several categories behind a predictor for each: softmax by a bound, and stick-breaking, which is another model.

The normaliser of a softmax is bounded by a quadratic function with Böhning's curvature (1992), which touches it at a
point of each row. In the stick-breaking form category k is chosen with probability :math:`1 / (1 + e^{-\eta_k})` if
none before it was; that is exact given its Polya-Gamma numbers (Linderman, Johnson and Adams, 2015), but the order of
the categories matters.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import log_softmax, ndtri

from ... import families
from ..._errors import PlateError
from ..._typing import AnyArray, Array
from ..nodes.algebra import Addend, Link, PredictorAlong
from ..nodes.node import Indexed, Node, Part, placed
from ..nodes.plates import Plate
from ..nodes.roles import TANGENT, Role
from ..nodes.templates import LOG_2, Density, template
from .links import Answer, Hidden, Logistic, PolyaGammaOfSeveral, linked

_N_POINTS = 2048
"""Points of the sums that expected probabilities of a softmax are."""


@dataclass(frozen=True, repr=False)
class LinkOfClasses(Link):
    """Probabilities of categories as a function of a predictor for each.

    Attributes
    ----------
    along
        The plate of the predictors; None until the owner tells it.
    """

    along: Plate | None = None

    belongs = "is the probabilities of a Categorical, as in Categorical('y', {})"

    more: ClassVar[int] = 0
    """Categories beyond the number of predictors."""

    letter: ClassVar[str] = "k"
    """Of the axis of the predictors: that of the categories where there is one for each."""

    @abstractmethod
    def expected(self, mean: Array, variance: Array) -> Array:
        """Return the probabilities expected of independent Normal predictors, (..., K)."""

    is_bound: ClassVar[bool] = False
    """Whether the density of an answer is bounded from below, and not exact given what is hidden."""

    @abstractmethod
    def hidden_of(self, answer: Answer) -> Hidden:
        """Return the hidden variable that it gives to a Categorical."""

    def tables(self) -> Mapping[str, Array]:
        """Return by slot the known tables that densities have, of predictors by categories."""
        return {}

    def within(self, owner: Node) -> LinkOfClasses:
        """Return the link in a slot of ``owner``, with its plate and all indices settled.

        Raises
        ------
        ModelError, PlateError
            If it is not clear along which plate the predictors run, or how many there are.
        """
        along = self.along or _plate_of(self, owner)
        if along.size is None:
            raise PlateError(
                f"{self!r} runs along plate '{along.name}', which needs a size: Plate('{along.name}', K)"
            )
        beside = Node()
        beside.name, beside.plates = owner.name, (*owner.plates, along)
        addends = put(self.predictor.addends, lambda operand: placed(operand, beside))
        return type(self)(PredictorAlong(addends, along, self.letter), along)


def put(addends: Iterable[Addend], place: Callable[[Any], Any]) -> tuple[Addend, ...]:
    """Return products in which each node, or what labels choose of one, is what ``place`` makes of it."""

    def own(operand: Any) -> Any:
        return place(operand) if isinstance(operand, Node | Indexed) else operand

    return tuple(
        Addend(
            addend.coefficient,
            tuple(own(number) for number in addend.numbers),
            tuple((own(one), own(other)) for one, other in addend.dots),
        )
        for addend in addends
    )


def plates_beside(link: LinkOfClasses, owner: Node) -> list[Plate]:
    """Return the plates that the predictors of a link have and the owner lacks."""
    found: dict[Plate, None] = {}
    for operand in (operand for addend in link.predictor.addends for operand in addend.operands):
        whole = operand.whole if isinstance(operand, Part) else operand
        if isinstance(whole, Node):
            found |= dict.fromkeys(plate for plate in whole.plates if plate not in owner.plates)
    return list(found)


def _plate_of(link: LinkOfClasses, owner: Node) -> Plate:
    """Return the plate that the predictors of a link run along: the one that the owner lacks."""
    found = plates_beside(link, owner)
    if len(found) != 1:
        kind = link.function
        names = ", ".join(f"'{plate.name}'" for plate in found) or "none"
        raise PlateError(
            f"{kind} needs a predictor for each category: a plate that its predictor has and '{owner.name}' lacks, as "
            f"in {kind}(dot(X, w)) with w on Plate('category', K); it has {names}. Name it with "
            f"{kind}(..., along=plate)"
        )
    (plate,) = found
    return plate


@dataclass(frozen=True, repr=False)
class Softmax(LinkOfClasses):
    r"""The probabilities :math:`e^{\eta_k} / \sum_j e^{\eta_j}`; see :func:`softmax`."""

    function = "softmax"
    is_bound = True

    def hidden_of(self, answer: Answer) -> Hidden:
        return Tangent(answer, self)

    def natural(self, predictor: AnyArray) -> AnyArray:
        return log_softmax(predictor, axis=-1)

    def expected(self, mean: Array, variance: Array) -> Array:
        # scipy.stats takes as long to import as the rest of this library and what it needs
        from scipy.stats import qmc

        size = mean.shape[-1]
        # the first point of the sequence, 0, has no Normal quantile
        points = ndtri(qmc.Sobol(size, scramble=True, rng=0).random(_N_POINTS))
        total = np.zeros(np.broadcast_shapes(mean.shape, variance.shape))
        for point in points:
            total += np.exp(log_softmax(mean + np.sqrt(variance) * point, axis=-1))
        return total / _N_POINTS


@dataclass(frozen=True, repr=False)
class StickBreakingLogits(LinkOfClasses):
    r"""The probabilities of sticks that are broken at logistic functions of predictors; see :func:`stick_breaking`."""

    function = "stick_breaking"
    more = 1
    letter = "j"

    def hidden_of(self, answer: Answer) -> Hidden:
        return PolyaGammaOfQuestions(answer, self)

    def tables(self) -> Mapping[str, Array]:
        """Return which questions each category was asked, and the answer to each, 1/2 or -1/2, of those."""
        assert self.along is not None
        size = self.along.size or 0
        asked = np.tri(size + 1, size).T
        return {"asked": asked, "answered": np.eye(size, size + 1) - 0.5 * asked}

    def natural(self, predictor: AnyArray) -> AnyArray:
        ones = np.zeros((*predictor.shape[:-1], 1))
        taken = np.concatenate([-np.logaddexp(0.0, -predictor), ones], axis=-1)
        left = np.cumsum(-np.logaddexp(0.0, predictor), axis=-1)
        return taken + np.concatenate([ones, left], axis=-1)

    def expected(self, mean: Array, variance: Array) -> Array:
        yes, no = Logistic(self.predictor).expected(mean, variance)
        ones = np.ones((*yes.shape[:-1], 1))
        return np.concatenate([yes, ones], axis=-1) * np.concatenate([ones, np.cumprod(no, axis=-1)], axis=-1)


def softmax(predictor: Any, *, along: Plate | None = None) -> Softmax:
    r"""Return the probabilities :math:`e^{\eta_k} / \sum_j e^{\eta_j}` of a Categorical, observed or hidden.

    The expectation of the normaliser has no closed form, so the ELBO uses a quadratic bound and is further below the
    evidence than with :func:`stick_breaking`. The means are the mode of the posterior density, and the standard
    deviations of linear response are those of Laplace's approximation; those of the factors are too small.

    Parameters
    ----------
    predictor
        :math:`\eta`: a Normal, or sums and products, with a plate for the categories, such as ``dot(X, w)`` with w on
        ``Plate("category", K)``.
    along
        This plate, if the predictor does not determine it.

    Raises
    ------
    ModelError
        If the predictor is a known number or array.

    Notes
    -----
    Böhning (1992), "Multinomial logistic regression algorithm", with the curvature 1/2 of each predictor, so that
    categories stay independent under q. With nine answers of three categories and Normal(0, 1) predictors the ELBO is
    1.3 below the evidence; with the bound of Bouchard (2007), by a logistic function for each category, 7.4 below.

    Examples
    --------
    >>> import numpy as np
    >>> import caviar as cv
    >>> obs, category = cv.Plate("obs"), cv.Plate("category", 3)
    >>> w = cv.MultivariateNormal("w", np.zeros(2), np.eye(2), plates=category)
    >>> cv.Categorical("y", cv.softmax(cv.dot(cv.Data("X", plates=obs), w)), plates=obs)
    Categorical('y', plates=(obs))
    """
    return Softmax(linked("softmax", predictor, _KNOWN), along)


def stick_breaking(predictor: Any, *, along: Plate | None = None) -> StickBreakingLogits:
    r"""Return probabilities by stick-breaking with logistic functions, for a Categorical, observed or hidden.

    .. math:: p_k = \sigma(\eta_k) \prod_{j<k} (1 - \sigma(\eta_j)), \quad k < K; \qquad
              p_K = \prod_{j<K} (1 - \sigma(\eta_j))

    This differs from the softmax: the order of the categories matters, as in a sequence of binary choices. It adds a
    Polya-Gamma variable to the model for each choice that was made. A hidden label may depend on columns of its row in
    this way, as the expert of a mixture of experts, or whether a site is used. Two categories are a logistic regression
    of hidden answers, where category 0 has the probability :math:`\sigma(\eta_1)`.

    Parameters
    ----------
    predictor
        :math:`\eta`: a Normal, or sums and products, with a plate of size K - 1.
    along
        This plate, if the predictor does not determine it.

    Raises
    ------
    ModelError
        If the predictor is a known number or array.

    Notes
    -----
    Linderman, Johnson and Adams (2015), "Dependent multinomial models made easy: stick-breaking with the Polya-Gamma
    augmentation". Of hidden labels, Ren, Du, Carin and Dunson (2011), "Logistic stick-breaking process": a choice
    counts in the bound of Jaakkola and Jordan (2000) as far as it is made, :math:`\mathrm{E}[z \ge k]`. Fits from the
    data try the clusters in several orders.

    Examples
    --------
    >>> import caviar as cv
    >>> question = cv.Plate("question", 2)
    >>> cv.Categorical(
    ...     "y", cv.stick_breaking(cv.Normal("a", 0, 1, plates=question)), plates=cv.Plate("obs")
    ... ).categories
    3
    """
    return StickBreakingLogits(linked("stick_breaking", predictor, _KNOWN), along)


_KNOWN = "the probabilities are known, give them to the Categorical"


class Tangent(Hidden):
    """The point of each row at which the bound of a softmax touches it."""

    family = families.SoftmaxTangent
    letters: ClassVar = {"x": "k", "constant": ""}
    value_rank = 1
    noun = "tangent"
    lets_answer_be_hidden = True
    role: ClassVar[Role] = TANGENT
    term: ClassVar[Density] = template(
        (1, "self.x[k] probabilities.x[k]"),
        (-1, "hidden.x[k] probabilities.x[k]"),
        (-1 / 4, "probabilities.xx[k]"),
        (-1, "hidden.constant"),
    )

    def __init__(self, answer: Answer, link: Softmax) -> None:
        assert link.along is not None
        self._hide(answer, dimension=link.along.size, predictors=link.predictor)

    def distribution_given(self, slots: Mapping[str, Any]) -> families.SoftmaxTangent:
        """Return the predictors: there the bound is exact."""
        shape = np.broadcast_shapes(slots["predictors"].shape, (*np.shape(slots["answer"]), 1))
        return families.SoftmaxTangent(np.broadcast_to(slots["predictors"], shape))


class PolyaGammaOfQuestions(PolyaGammaOfSeveral):
    """The Polya-Gamma numbers of a label behind broken sticks, one for each question that was asked."""

    term: ClassVar[Density] = template(
        (1, "self.chosen[j] probabilities.x[j]"),
        (-1 / 2, "self.asked[j] probabilities.x[j]"),
        (-1 / 2, "self.asked[j] hidden.x[j] probabilities.xx[j]"),
        (1, "self.asked[j] hidden.relative_entropy[j]"),
        (-LOG_2, "self.asked[j]"),
    )
    # the same by a label that is one-hot
    term_of_parent: ClassVar[Density] = template(
        (1, "self.x[k] answered.x[jk] probabilities.x[j]"),
        (-1 / 2, "self.x[k] asked.x[jk] hidden.x[j] probabilities.xx[j]"),
        (1, "self.x[k] asked.x[jk] hidden.relative_entropy[j]"),
        (-LOG_2, "self.x[k] asked.x[jk]"),
    )
    lets_answer_be_hidden = True

    def __init__(self, answer: Answer, link: StickBreakingLogits) -> None:
        assert link.along is not None
        self._hide(answer, (*answer.plates, link.along), predictors=link.predictor)

    def distribution_given(self, slots: Mapping[str, Any]) -> families.PolyaGammaSum:
        """Return the distributions given the predictors and the label: nothing of a question that was not asked."""
        away = np.abs(slots["predictors"])
        asked = np.asarray(slots["answer"])[..., None] >= np.arange(away.shape[-1])
        shape, tilt = np.broadcast_arrays(asked.astype(np.float64), away)
        return families.PolyaGammaSum(shape, tilt)
