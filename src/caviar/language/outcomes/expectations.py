r"""Links of Normal predictors: the expected logarithm of a logistic function itself in the place of a bound of it.

With :math:`G(m, v) = \langle \log(1 + e^\eta) \rangle` at Normal log-odds the ELBO has -G for each answer. Its
derivatives by :math:`\langle\eta\rangle` and :math:`\langle\eta^2\rangle` are what an answer says to the predictor, as
if it were Normal: the statistics of :class:`~caviar.families.LogitMoments`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from ... import families
from ..._errors import ModelError
from ..._typing import AnyArray
from ..distributions.normals import MultivariateNormal, Normal
from ..nodes.algebra import Link, Predictor
from ..nodes.node import Indexed, Node
from ..nodes.roles import MOMENTS, Role
from ..nodes.templates import Density, template
from .links import HIDDEN, Answer, Hidden, LogisticOfNormal, ProbitOfNormal


def refuse_other_than_normal(predictor: Predictor, name: str) -> None:
    """Refuse a predictor that is not Normal under every q.

    Raises
    ------
    ModelError
        If it is not a Normal.
    """
    for addend in predictor.addends:
        unknown = [operand for operand in addend.operands if not _is_known(operand)]
        wrong = next((own for own in unknown if not _is_normal(own)), None)
        if wrong is not None or len(unknown) > 1:
            why = f"{wrong!r} is none" if wrong is not None else f"{addend!r} is a product of two of them"
            raise ModelError(
                f"method='expectation' of '{name}' needs a predictor of Normal and MultivariateNormal variables, each "
                f"alone or times known numbers, indexed by known labels alone; {why}. Leave method= out: the bound "
                f"takes it"
            )


def _is_known(operand: Any) -> bool:
    node = operand.node if isinstance(operand, Indexed) else operand
    return isinstance(node, Node) and node.is_known


def _is_normal(operand: Any) -> bool:
    if not isinstance(operand, Indexed):
        return type(operand) in (Normal, MultivariateNormal)
    return _is_normal(operand.node) and all(isinstance(own, Node) and own.is_known for own in operand.indices)


class Moments(Hidden):
    """Mean and variance of the log-odds of each answer."""

    family: ClassVar[Any] = families.LogitMoments
    letters: ClassVar = {"x": "", "curvature": "", "constant": ""}
    noun = "moments"
    role: ClassVar[Role] = MOMENTS
    term: ClassVar[Density] = template(
        (1, "self.x probability.x"),
        (1, "hidden.x probability.x"),
        (-1 / 2, "hidden.curvature probability.xx"),
        (-1, "hidden.constant"),
    )

    def __init__(self, answer: Answer, link: Link) -> None:
        refuse_other_than_normal(link.predictor, answer.name)
        super().__init__(answer, link)

    def distribution_given(self, slots: Mapping[str, Any]) -> Any:
        """Return the log-odds, with the variance zero."""
        known, weight = np.broadcast_arrays(*self.known_predictor(slots))
        return self.family(known, np.zeros(known.shape), weight)

    def known_predictor(self, slots: Mapping[str, Any]) -> tuple[AnyArray, AnyArray]:
        """Return the log-odds at a known predictor, and the number of answers that have them."""
        return slots["predictor"], np.ones(np.shape(slots["answer"]))

    def problem_with(self, value: AnyArray) -> str:
        """Return nothing: log-odds may be any numbers."""
        return ""


class MomentsOfUtilities(Moments):
    """Mean and variance of the utility of the answer that was given."""

    family = families.ProbitMoments
    term: ClassVar[Density] = template(
        (1, "self.sign hidden.x probability.x"),
        (-1 / 2, "hidden.curvature probability.xx"),
        (-1, "hidden.constant"),
    )

    def known_predictor(self, slots: Mapping[str, Any]) -> tuple[AnyArray, AnyArray]:
        """Return the utilities, and the number of answers that have them."""
        return (2.0 * slots["answer"] - 1.0) * slots["predictor"], np.ones(np.shape(slots["answer"]))


class MomentsOfTrials(Moments):
    """Mean and variance of the log-odds of the trials of each answer."""

    term: ClassVar[Density] = template(
        (1, "self.x probability.x"),
        (1, "trials.x hidden.x probability.x"),
        (-1 / 2, "trials.x hidden.curvature probability.xx"),
        (-1, "trials.x hidden.constant"),
    )

    def known_predictor(self, slots: Mapping[str, Any]) -> tuple[AnyArray, AnyArray]:
        """Return the log-odds, and the trials."""
        return slots["predictor"] + np.zeros(np.shape(slots["answer"])), slots["trials"]


class MomentsOfCounts(Moments):
    r"""Mean and variance of the log-odds :math:`\psi = \eta - \log r` of each count."""

    # x psi - (x + r) log(1 + exp(psi))
    term: ClassVar[Density] = template(
        (1, "self.x mean.x"),
        (-1, "self.x size.log_x"),
        (1, "self.x hidden.x mean.x"),
        (1, "size.x hidden.x mean.x"),
        (-1, "self.x size.log_x hidden.x"),
        (-1, "size.x_log_x hidden.x"),
        (-1 / 2, "self.x hidden.curvature mean.xx"),
        (-1 / 2, "size.x hidden.curvature mean.xx"),
        (1, "self.x size.log_x hidden.curvature mean.x"),
        (1, "size.x_log_x hidden.curvature mean.x"),
        (-1 / 2, "self.x size.log_squared hidden.curvature"),
        (-1 / 2, "size.x_log_squared hidden.curvature"),
        (-1, "self.x hidden.constant"),
        (-1, "size.x hidden.constant"),
    )

    def known_predictor(self, slots: Mapping[str, Any]) -> tuple[AnyArray, AnyArray]:
        """Return the log-odds, and the count with the size."""
        return slots["predictor"] - np.log(slots["size"]), slots["answer"] + slots["size"]


OF_ANSWERS: Mapping[type[Link], type[Hidden]] = {
    **HIDDEN,
    LogisticOfNormal: Moments,
    ProbitOfNormal: MomentsOfUtilities,
}
"""The hidden variable that a link gives to a Bernoulli."""
