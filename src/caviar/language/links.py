r"""Links: the probability of a 1 as a function of a predictor, made conjugate by a hidden variable for each answer.

The likelihood of an answer y is no exponential of a quadratic in the predictor :math:`\eta`. As an integral over a
hidden number v it is: :math:`p(y \mid \eta) = \int p(v)\, f(y, v, \eta)\, dv`, with a known density p(v) and
:math:`\log f` linear in statistics of v and quadratic in :math:`\eta`. So v is an ordinary local variable, inferred
like any other, and an answer that was not observed leaves it at p(v).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit, log_ndtr, ndtr

from .. import families
from .._errors import ConjugacyError, ModelError, ParameterError
from .._typing import AnyArray, Array
from .algebra import Algebra, Link, Predictor, as_predictor
from .nodes import Node
from .stated import Stated
from .templates import LOG_2PI, Density, template
from .variable import Variable

_LOG_2 = float(np.log(2.0))

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(64)


@dataclass(frozen=True, repr=False)
class Probit(Link):
    r"""The probability :math:`\Phi(\eta)`; see :func:`probit`."""

    def log_odds(self, predictor: AnyArray) -> AnyArray:
        return log_ndtr(predictor) - log_ndtr(-predictor)

    def expected(self, mean: Array, variance: Array) -> tuple[Array, Array]:
        standard = mean / np.sqrt(1.0 + variance)
        return ndtr(standard), ndtr(-standard)


@dataclass(frozen=True, repr=False)
class Logistic(Link):
    r"""The probability :math:`1 / (1 + e^{-\eta})`; see :func:`logistic`."""

    def log_odds(self, predictor: AnyArray) -> AnyArray:
        return predictor

    def expected(self, mean: Array, variance: Array) -> tuple[Array, Array]:
        return _expected_logistic(mean, variance), _expected_logistic(-mean, variance)


def _expected_logistic(mean: Array, variance: Array) -> Array:
    r"""Return :math:`\mathrm E[1 / (1 + e^{-\eta})]` of a Normal :math:`\eta`.

    By 64 Gauss-Hermite nodes up to a standard deviation s of 1. Beyond, where the function is steep beside the density,
    they lose digits: there by the trapezoidal rule for :math:`\int f(t)\, \Phi((m - t) / s)\, dt`, f the logistic
    density, which is the same number.
    """
    mean, deviation = np.broadcast_arrays(mean, np.sqrt(variance))
    result, narrow = np.empty(mean.shape), deviation <= 1.0
    m, s = mean[narrow], deviation[narrow]
    weights = _WEIGHTS / _WEIGHTS.sum()
    result[narrow] = sum(w * expit(m + s * node) for node, w in zip(_NODES, weights, strict=True))
    m, s = mean[~narrow], deviation[~narrow]
    # half a unit apart, the rule loses exp(-2 pi^2 / 0.5) of a logistic density
    steps = np.arange(-37.0, 37.5, 0.5)
    result[~narrow] = sum(0.5 * expit(t) * expit(-t) * ndtr((m - t) / s) for t in steps)
    return result


def probit(predictor: Any) -> Probit:
    r"""Return the probability :math:`\Phi(\eta)` of a Bernoulli, with the distribution function of a standard Normal.

    It is the probability that a utility :math:`u \sim N(\eta, 1)` is positive. The model gets the hidden variable
    ``"y.utility"``, the utility of the given answer: :math:`v = s u \ge 0` with the sign s = 2y - 1.

    Parameters
    ----------
    predictor
        :math:`\eta`: a Normal, or a sum of products as in the mean of a Normal; every operand keeps its own factor.

    Raises
    ------
    ModelError
        If it is a number or an array: then the probability is known.

    Notes
    -----
    Albert and Chib (1993), "Bayesian analysis of binary and polychotomous response data". With one factor for the
    predictor, mean field holds between it and the utilities.

    Examples
    --------
    >>> import numpy as np
    >>> from caviar import Bernoulli, Data, MultivariateNormal, Plate, dot
    >>> obs, w = Plate("obs"), MultivariateNormal("w", np.zeros(2), np.eye(2))
    >>> Bernoulli("y", probit(dot(Data("X", plates=obs), w)), plates=obs)
    Bernoulli('y', plates=(obs))
    """
    return Probit(_linked("probit", predictor))


def logistic(predictor: Any) -> Logistic:
    r"""Return the probability :math:`1 / (1 + e^{-\eta})` of a Bernoulli: that of log-odds :math:`\eta`.

    The model gets the hidden variable ``"y.polya_gamma"``: :math:`\omega \sim PG(1, 0)`, with which

    .. math:: p(y \mid \eta) = \tfrac12 e^{(y - 1/2) \eta}\, \mathrm{E} [ e^{-\omega \eta^2 / 2} ]

    Parameters
    ----------
    predictor
        :math:`\eta`: a Normal, or a sum of products as in the mean of a Normal; every operand keeps its own factor.

    Raises
    ------
    ModelError
        If it is a number or an array: then the probability is known.

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
    return Logistic(_linked("logistic", predictor))


def _linked(name: str, predictor: Any) -> Predictor:
    if isinstance(predictor, Algebra):
        return as_predictor(predictor)
    raise ModelError(
        f"{name} takes a predictor, a Normal or sums and products as {name}(dot(X, w) + a); got "
        f"{type(predictor).__name__}. Where the probability is known, give it to the Bernoulli itself; a known "
        f"array in a predictor is a Constant or a Data"
    )


class Hidden(Variable):
    """The hidden variable of each answer of a Bernoulli with a link.

    Its prior is known. Together with the answer it is drawn in the other order: the answer first, then this given it.

    Attributes
    ----------
    answer
        The Bernoulli.
    """

    noun: ClassVar[str]
    """What it is called after the name of the answer."""

    takes_data = False

    term: ClassVar[Density]
    """What the log joint density of answer and hidden number has besides the prior of the latter."""

    def __init__(self, answer: Variable, link: Link) -> None:
        self.answer = answer
        self._state(f"{answer.name}.{self.noun}", answer.plates, {}, dimension=1)
        self.stated = {"answer": answer, "predictor": link.predictor}

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
                f"'{slot}' of {type(owner).__name__} '{owner.name}' cannot be '{self.name}', which is hidden behind "
                f"'{self.answer.name}': state a Normal, and let both depend on it"
            )

    def mode_of(self, natural: tuple[Array, ...]) -> Any:
        """Refuse a point mass: only with its own distribution is the answer's probability that of the link."""
        raise ParameterError(
            f"'{self.name}' is hidden behind '{self.answer.name}' and cannot be a point mass; leave it out of point="
        )


class Utility(Hidden):
    r"""The utility of the answer that was given, by which it exceeded the other one.

    .. math::
        p(v) = 2 N(v \mid 0, 1), \qquad p(v \mid y, \eta) \propto N(v \mid s \eta, 1), \qquad v \ge 0
    """

    family = families.TruncatedNormal
    letters: ClassVar = {"x": "", "xx": ""}
    noun = "utility"
    density = template((-1 / 2, "self.xx"), (_LOG_2 - 1 / 2 * LOG_2PI, ""))
    term = template((1, "self.sign hidden.x probability.x"), (-1 / 2, "probability.xx"), (-_LOG_2, ""))

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
    density = template()
    term = template((1, "self.deviation probability.x"), (-1 / 2, "hidden.x probability.xx"), (-_LOG_2, ""))

    def distribution_given(self, slots: Mapping[str, Any]) -> families.PolyaGamma:
        """Return the Polya-Gamma distribution given the predictor; the answer tells no more."""
        shape = np.broadcast_shapes(np.shape(slots["answer"]), np.shape(slots["predictor"]))
        return families.PolyaGamma(np.broadcast_to(np.abs(slots["predictor"]), shape))


_HIDDEN: dict[type[Link], type[Hidden]] = {Probit: Utility, Logistic: PolyaGamma}


def hidden_of(answer: Variable, link: Link) -> Hidden:
    """Return the hidden variable that a link gives to a Bernoulli."""
    return _HIDDEN[type(link)](answer, link)
