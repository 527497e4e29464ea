r"""Links: the probability of a 1 as a function of a predictor, made conjugate by a hidden variable for each answer.

The likelihood of an answer y is no exponential of a quadratic in the predictor :math:`\eta`. As an integral over a
hidden number v it is: :math:`p(y \mid \eta) = \int p(v)\, f(y, v, \eta)\, dv`, with a known density p(v) and
:math:`\log f` linear in statistics of v and quadratic in :math:`\eta`. So v is an ordinary local variable, inferred
like any other, and an answer that was not observed leaves it at p(v).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np
from scipy.special import expit, log_ndtr, ndtr, owens_t

from ... import families
from ..._errors import ConjugacyError, ModelError, ParameterError
from ..._typing import AnyArray, Array
from ..expansion.rate_sums import SPLIT, Rates, is_rate_sum, n_sources, placed_sum, shares_given
from ..nodes.algebra import Algebra, Link, LinkOfProbability, Predictor, as_predictor
from ..nodes.node import Expression, Node
from ..nodes.plates import Plates
from ..nodes.roles import AUGMENTING, AUGMENTING_SUM, LOCATION, RATE, SHARES, Role
from ..nodes.stated import Stated
from ..nodes.templates import LOG_2, LOG_2PI, Density, template
from ..variable import Variable

L = TypeVar("L")


_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(64)


@dataclass(frozen=True, repr=False)
class Probit(LinkOfProbability):
    r"""The probability :math:`\Phi(\eta)`; see :func:`probit`."""

    function = "probit"

    def natural(self, predictor: AnyArray) -> AnyArray:
        return log_ndtr(predictor) - log_ndtr(-predictor)

    def expected(self, mean: Array, variance: Array) -> tuple[Array, Array]:
        standard = mean / np.sqrt(1.0 + variance)
        return ndtr(standard), ndtr(-standard)

    def expected_product(self, mean: Array, variance: Array) -> Array:
        # twice Owen's T function: the probability of different signs of two utilities with the same predictor
        angle = 1.0 / np.sqrt(1.0 + 2.0 * variance)
        return 2.0 * owens_t(mean / np.sqrt(1.0 + variance), angle)


@dataclass(frozen=True, repr=False)
class Logistic(LinkOfProbability):
    r"""The probability :math:`1 / (1 + e^{-\eta})`; see :func:`logistic`."""

    function = "logistic"

    def natural(self, predictor: AnyArray) -> AnyArray:
        return predictor

    def expected(self, mean: Array, variance: Array) -> tuple[Array, Array]:
        return (
            _expected(expit, ndtr, mean, variance),
            _expected(expit, ndtr, -np.asarray(mean), variance),
        )

    def expected_product(self, mean: Array, variance: Array) -> Array:
        return _expected(_logistic_density, _normal_density, mean, variance)


class _OfNormal(Link):
    """A link of a Normal predictor, whose expected logarithm is computed, and not bounded."""

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, method='expectation')"


@dataclass(frozen=True, repr=False)
class LogisticOfNormal(_OfNormal, Logistic):
    """The same of a Normal predictor, whose expected logarithm is computed, and not bounded."""


@dataclass(frozen=True, repr=False)
class ProbitOfNormal(_OfNormal, Probit):
    r"""The probability :math:`\Phi(\eta)` of a Normal predictor, whose expected logarithm is computed."""


@dataclass(frozen=True, repr=False)
class Exponential(Link):
    r"""The mean :math:`e^\eta`; see :func:`exp`."""

    belongs = "is the mean of an observed count, as in NegativeBinomial('y', {}, size)"
    function = "exp"

    def natural(self, predictor: AnyArray) -> AnyArray:
        return predictor


@dataclass(frozen=True, repr=False)
class ExponentialOfNormal(_OfNormal, Exponential):
    """The same of a Normal predictor, where the expected log density of a count is computed, and not bounded."""


_PROBIT = {"bound": Probit, "expectation": ProbitOfNormal}
_LOGISTIC = {"bound": Logistic, "expectation": LogisticOfNormal}
_EXPONENTIAL = {"bound": Exponential, "expectation": ExponentialOfNormal}
"""The links by the name of the method."""


def _logistic_density(x: Array) -> Array:
    return expit(x) * expit(-x)


def _normal_density(x: Array, scale: Array) -> Array:
    return np.exp(-0.5 * np.square(x)) / (np.sqrt(2.0 * np.pi) * scale)


def _expected(
    function: Callable[[Array], Array], smoothed: Callable[..., Array], mean: Any, variance: Any
) -> Array:
    r"""Return the expectation of the logistic function, or of its slope f, at a Normal number.

    By 64 Gauss-Hermite nodes up to a standard deviation s of 1. Beyond, where the function is steep beside the density,
    they lose digits: there by the trapezoidal rule for :math:`\int f(t)\, \Phi((m - t) / s)\, dt`, or with the Normal
    density instead of :math:`\Phi`, which is the same number.
    """
    mean, deviation = np.broadcast_arrays(mean, np.sqrt(variance))
    result, narrow = np.empty(mean.shape), deviation <= 1.0
    m, s = mean[narrow], deviation[narrow]
    weights = _WEIGHTS / _WEIGHTS.sum()
    result[narrow] = sum(w * function(m + s * node) for node, w in zip(_NODES, weights, strict=True))
    m, s = mean[~narrow], deviation[~narrow]
    scale = () if smoothed is ndtr else (s,)
    # half a unit apart, the rule loses exp(-2 pi^2 / 0.5) of a logistic density
    steps = np.arange(-37.0, 37.5, 0.5)
    result[~narrow] = sum(0.5 * expit(t) * expit(-t) * smoothed((m - t) / s, *scale) for t in steps)
    return result


def probit(predictor: Any, *, method: str = "bound") -> Probit:
    r"""Return the probability :math:`\Phi(\eta)` of a Bernoulli, with the distribution function of a standard Normal.

    It is the probability that a utility :math:`u \sim N(\eta, 1)` is positive. By default this adds the hidden variable
    ``"y.utility"`` to the model, :math:`v = s u \ge 0` with the sign s = 2y - 1 of the observed outcome.

    Parameters
    ----------
    predictor
        :math:`\eta`: a Normal, or a sum of products as in the mean of a Normal. Every variable in it keeps its own
        factor.
    method
        ``"bound"`` or ``"expectation"``, as for :func:`logistic`.

    Raises
    ------
    ModelError
        If the predictor is a known number or array, or with ``method="expectation"`` is not Normal under q.
    ParameterError
        If the method is unknown.

    Notes
    -----
    Albert and Chib (1993), "Bayesian analysis of binary and polychotomous response data". Predictor and utilities are
    independent under q.

    Examples
    --------
    >>> import numpy as np
    >>> from caviar import Bernoulli, Data, MultivariateNormal, Plate, dot
    >>> obs, w = Plate("obs"), MultivariateNormal("w", np.zeros(2), np.eye(2))
    >>> Bernoulli("y", probit(dot(Data("X", plates=obs), w)), plates=obs)
    Bernoulli('y', plates=(obs))
    """
    return chosen("probit", _PROBIT, method)(linked("probit", predictor))


def logistic(predictor: Any, *, method: str = "bound") -> Logistic:
    r"""Return the probability :math:`1 / (1 + e^{-\eta})` of a Bernoulli, whose log-odds are :math:`\eta`.

    By default this adds the hidden variable ``"y.polya_gamma"`` to the model, :math:`\omega \sim PG(1, 0)`, with which

    .. math:: p(y \mid \eta) = \tfrac12 e^{(y - 1/2) \eta}\, \mathrm{E} [ e^{-\omega \eta^2 / 2} ]

    Parameters
    ----------
    predictor
        :math:`\eta`: a Normal, or a sum of products as in the mean of a Normal. Every variable in it keeps its own
        factor.
    method
        ``"bound"`` or ``"expectation"``. With ``"expectation"`` the ELBO contains the exact expectation of the log
        probability; it is higher, and means and standard deviations are more accurate. The predictor must be Normal
        under q: a sum of global Normal variables times known numbers. The hidden variable is then ``"y.moments"``, the
        mean and variance of the log-odds of each outcome.

    Raises
    ------
    ModelError
        If the predictor is a known number or array, or with ``method="expectation"`` is not Normal under q.
    ParameterError
        If the method is unknown.

    Notes
    -----
    Polson, Scott and Windle (2013). The optimal :math:`q(\omega)` is PG(1, c) with :math:`c^2 = \langle\eta^2\rangle`,
    and the ELBO with it is the bound of Jaakkola and Jordan (2000) with their :math:`\xi = c` (Bishop 2006, 10.6).

    Examples
    --------
    >>> from caviar import Bernoulli, Normal, Plate
    >>> Bernoulli("y", logistic(Normal("a", 0, 1)), plates=Plate("obs"))
    Bernoulli('y', plates=(obs))
    """
    return chosen("logistic", _LOGISTIC, method)(linked("logistic", predictor))


def exp(predictor: Any, *, method: str = "bound") -> Exponential:
    r"""Return the mean :math:`e^\eta` of a NegativeBinomial with the log link.

    Parameters
    ----------
    predictor
        :math:`\eta`: a Normal, or a sum of products as in the mean of a Normal. Every variable in it keeps its own
        factor.
    method
        ``"bound"`` or ``"expectation"``, as for :func:`logistic`.

    Raises
    ------
    ModelError
        If the predictor is a known number or array, or with ``method="expectation"`` is not Normal under q.
    ParameterError
        If the method is unknown.

    Examples
    --------
    >>> from caviar import NegativeBinomial, Normal, Plate
    >>> NegativeBinomial("y", exp(Normal("a", 0, 1)), 2.5, plates=Plate("obs"))
    NegativeBinomial('y', plates=(obs))
    """
    link = chosen("exp", _EXPONENTIAL, method)
    return link(linked("exp", predictor, "the mean is known, give it to the NegativeBinomial"))


def chosen(name: str, links: Mapping[str, type[L]], method: Any) -> type[L]:
    """Return the link of a method, and refuse an unknown one."""
    if not isinstance(method, str) or method not in links:
        raise ParameterError(f"method of {name} must be one of {', '.join(map(repr, links))}; got {method!r}")
    return links[method]


def linked(
    name: str, predictor: Any, known: str = "the probability is known, give it to the Bernoulli"
) -> Predictor:
    """Return the argument of a link as a predictor; refuse a known one."""
    if isinstance(predictor, Algebra):
        return as_predictor(predictor)
    raise ModelError(
        f"{name} takes a predictor: a Normal, or sums and products such as {name}(dot(X, w) + a); got "
        f"{type(predictor).__name__}. If {known} itself; a known array in a predictor is a Constant or a "
        f"Data"
    )


class Answer(Variable):
    """An observed variable that may have a link in a slot; a link adds a hidden variable.

    Attributes
    ----------
    hidden
        The hidden variable that the link adds; None without a link.
    """

    hidden: Hidden | None = None

    def _state_rate(self, name: str, plates: Plates, slot: str, rate: Expression) -> None:
        """Take a rate, which may be a sum: then the parts of the count are a hidden variable."""
        self._identify(name, plates)
        arguments: dict[str, tuple[Any, Role]] = {slot: (rate, RATE)}
        if is_rate_sum(rate):
            placed = placed_sum(rate, self)
            self.hidden = Split(self, placed)
            arguments = {slot: (placed, RATE), SPLIT: (self.hidden, self.hidden.role)}
        self._state(name, plates, arguments, dimension=1)
        self.stated.pop(SPLIT, None)

    def _state_link(
        self,
        name: str,
        plates: Plates,
        slot: str,
        link: Link,
        kind: type[Hidden],
        **others: tuple[Expression, Role],
    ) -> None:
        """State a link in a slot, with the class of the hidden variable that it adds, and the other arguments."""
        # the hidden variable needs a name and plates to take its own from
        self._identify(name, plates)
        self.hidden = kind(self, link)
        self._state_predictor(slot, link, self.hidden.term, others)
        self.hidden.stated |= {other: self.stated[other] for other in others}

    def _state_predictor(
        self, slot: str, link: Link, density: Density, others: Mapping[str, tuple[Expression, Role]]
    ) -> None:
        """Take a link in a slot, with what it adds to the log density, and the other arguments."""
        assert self.hidden is not None
        arguments = {**others, slot: (link.predictor, LOCATION), "hidden": (self.hidden, self.hidden.role)}
        self._state(self.name, self.plates, arguments, density=density, dimension=1)
        self.stated = {**{other: self.stated[other] for other in others}, slot: link}

    def settle_as_parent(self) -> None:
        """Take the log density that it has where something depends on it, if that is another one."""
        if self.hidden is not None and self.hidden.term_of_parent:
            ((slot, link),) = self.stated.items()
            self._state_predictor(slot, link, self.hidden.term_of_parent, {})

    @property
    def drawn_given(self) -> Iterator[Node]:
        """Its parents except its hidden variables, which are drawn after it."""
        return (p for p in self.parents if not (isinstance(p, Hidden) and p.answer is self))

    def refuse_as_parent(self, owner: Stated, slot: str) -> None:
        """Refuse to be a parent with a link."""
        if self.hidden is None or self.hidden.lets_answer_be_hidden:
            return
        if any(isinstance(own, Link) for own in self.stated.values()):
            raise ConjugacyError(
                f"'{slot}' of {type(owner).__name__} '{owner.name}' cannot be the {type(self).__name__} "
                f"'{self.name}': its {self.linked} is a link, so it can only be observed. An unknown "
                f"answer has no update, because the hidden '{self.hidden.name}' makes the predictor "
                f"conjugate only given the answer. Make '{self.name}' a leaf of the model, or give it a "
                f"{self.without_link}."
            )

    linked: ClassVar[str] = "probability"
    """The slot that a link may be in."""
    without_link: ClassVar[str] = "Beta"
    """What is in that slot instead of a link."""


class Hidden(Variable):
    """The hidden variable of each answer of a variable with a link.

    Its prior is known. Together with the answer it is drawn in the other order: the answer first, then this given it.

    Attributes
    ----------
    answer
        The variable that it is hidden behind.
    """

    noun: ClassVar[str]
    """What it is called after the name of the answer."""

    takes_data = False
    is_brought = True

    lets_answer_be_hidden: ClassVar[bool] = False
    """Whether the answer may be hidden itself: its own statistics are linear, given the hidden variable."""

    role: ClassVar[Role] = AUGMENTING
    """What the answer needs of it."""

    density: ClassVar[Density] = template()
    term: ClassVar[Density]
    """What the log joint density of answer and hidden number has besides the prior of the latter."""

    term_of_parent: ClassVar[Density] = ()
    """The same where something depends on the answer, if it is another one then: linear in a hidden answer."""

    def __init__(self, answer: Answer, link: Link) -> None:
        self._hide(answer, predictor=link.predictor)

    def _hide(
        self, answer: Answer, plates: Plates | None = None, dimension: int | None = 1, **stated: Any
    ) -> None:
        """Take the answer, what else it is drawn given, and its plates, where they are not those of the answer."""
        self.answer = answer
        own = answer.plates if plates is None else plates
        self._state(f"{answer.name}.{self.noun}", own, {}, dimension=dimension)
        self.stated = {"answer": answer, **stated}

    @property
    def drawn_given(self) -> Iterator[Node]:
        """The answer, and what the predictor is made of."""
        yield self.answer
        yield from (parent for parent in self.answer.parents if parent is not self)

    @property
    def stated_with(self) -> Variable:
        """The answer, whose slots hold the operands of the predictor."""
        return self.answer

    def problem_with(self, value: AnyArray) -> str:
        """Return what is wrong with negative numbers."""
        return "must not be negative" if np.any(value < 0) else ""

    def refuse_as_parent(self, owner: Stated, slot: str) -> None:
        """Refuse to be the parent of anything but its answer."""
        if owner is not self.answer:
            raise ConjugacyError(
                f"'{slot}' of {type(owner).__name__} '{owner.name}' cannot be '{self.name}', the hidden "
                f"variable of '{self.answer.name}': state a Normal, and let both depend on it"
            )

    def mode_of(self, natural: tuple[Array, ...], floor: Array | None = None) -> Any:
        """Refuse a point mass: only with its own distribution is the answer's probability that of the link."""
        raise ParameterError(
            f"'{self.name}' is the hidden variable of '{self.answer.name}' and cannot be a point mass; "
            f"leave it out of point="
        )


class Utility(Hidden):
    r"""The utility of the answer that was given, by which it exceeded the other one.

    .. math::
        p(v) = 2 N(v \mid 0, 1), \qquad p(v \mid y, \eta) \propto N(v \mid s \eta, 1), \qquad v \ge 0
    """

    family = families.TruncatedNormal
    letters: ClassVar = {"x": "", "xx": ""}
    noun = "utility"
    density = template((-1 / 2, "self.xx"), (LOG_2 - 1 / 2 * LOG_2PI, ""))
    term = template((1, "self.sign hidden.x probability.x"), (-1 / 2, "probability.xx"), (-LOG_2, ""))

    def distribution_given(self, slots: Mapping[str, Any]) -> families.TruncatedNormal:
        """Return the utility given the answer and the predictor."""
        return families.TruncatedNormal((2.0 * slots["answer"] - 1.0) * slots["predictor"], 1.0)


class PolyaGamma(Hidden):
    r"""The Polya-Gamma number of an answer.

    .. math:: \omega \sim PG(1, 0); \qquad \omega \mid y, \eta \sim PG(1, |\eta|)
    """

    family = families.PolyaGamma
    letters: ClassVar = {"x": ""}
    noun = "polya_gamma"
    weighs_answer = True
    term = template((1, "self.deviation probability.x"), (-1 / 2, "hidden.x probability.xx"), (-LOG_2, ""))
    term_of_parent = template(
        (1, "self.x probability.x"),
        (-1 / 2, "probability.x"),
        (-1 / 2, "hidden.x probability.xx"),
        (-LOG_2, ""),
    )
    lets_answer_be_hidden = True

    def distribution_given(self, slots: Mapping[str, Any]) -> families.PolyaGamma:
        """Return the Polya-Gamma distribution given the predictor; it does not depend on the answer."""
        shape = np.broadcast_shapes(np.shape(slots["answer"]), np.shape(slots["predictor"]))
        return families.PolyaGamma(np.broadcast_to(np.abs(slots["predictor"]), shape))


class PolyaGammaOfSeveral(Hidden):
    """A sum of Polya-Gamma numbers, as many as an answer counts."""

    family = families.PolyaGammaSum
    letters: ClassVar = {"x": "", "relative_entropy": ""}
    noun = "polya_gamma"
    weighs_answer = True
    role: ClassVar[Role] = AUGMENTING_SUM


class Split(Hidden):
    r"""The parts of a count: how many of its units come from each source of a sum of rates.

    .. math:: s \mid y, r \sim \mathrm{Mult}(y, r / \textstyle\sum_k r_k)
    """

    family = families.Shares
    letters: ClassVar = {"x": "k", "entropy": ""}
    value_rank = 1
    noun = "split"
    role: ClassVar[Role] = SHARES
    term: ClassVar[Density] = ()

    def __init__(self, answer: Answer, rate: Predictor) -> None:
        self._hide(answer, dimension=n_sources(rate, answer), rates=Rates(rate))

    def distribution_given(self, slots: Mapping[str, Any]) -> families.Shares:
        """Return the distribution of the parts given the count and the rates."""
        return families.Shares(*shares_given(slots))


HIDDEN: dict[type[Link], type[Hidden]] = {Probit: Utility, Logistic: PolyaGamma}
"""The hidden variable that a link gives to a Bernoulli."""
