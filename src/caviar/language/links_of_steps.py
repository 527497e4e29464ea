r"""Links in the transitions of a chain: from each present state, questions in turn, each with a predictor.

.. math:: \log A_{t,kl} = \log p_l(\eta_{tk}), \qquad
          p_l = \sigma(\eta_{tkl}) \prod_{j<l} (1 - \sigma(\eta_{tkj}))

Each question that is asked in a step has a Polya-Gamma number, as behind a label; see :mod:`.softmax`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from .. import families
from .._errors import ConjugacyError, PlateError
from .algebra import PredictorAlong
from .instead_of_links import INSTEAD_IN_STEPS
from .links import Answer
from .nodes import Node, placed
from .plates import Plate
from .softmax import LOG_2, LinkOfClasses, PolyaGammaOfQuestions, StickBreakingLogits, plates_beside, put
from .templates import Density, template


def in_steps(link: LinkOfClasses, chain: Answer, n_states: int) -> tuple[StickBreakingLogits, Plate]:
    """Return a link in the transitions of a chain, whose state of the step before chooses, and the plate of that.

    Raises
    ------
    ConjugacyError
        If it is not a stick_breaking.
    PlateError
        If its predictors have no plate for the present state or the questions, or another one.
    """
    where = f"'transition' of MarkovChain '{chain.name}'"
    if not isinstance(link, StickBreakingLogits):
        raise ConjugacyError(f"{where} takes no {str(link).partition('(')[0]}: {INSTEAD_IN_STEPS}")
    beside = plates_beside(link, chain)
    present = [plate for plate in beside if plate.size == n_states]
    questions = [plate for plate in beside if plate.size == n_states - 1]
    if not (len(beside) == 2 and len(present) == len(questions) == 1):
        names = ", ".join(f"'{plate.name}' of size {plate.size}" for plate in beside) or "none"
        raise PlateError(
            f"{where} needs predictors on two more plates: one of size {n_states} for the present state and one of "
            f"size {n_states - 1} for the questions, as in stick_breaking(dot(X, w)) with w on "
            f"(Plate('present', {n_states}), Plate('question', {n_states - 1})); it has {names}"
        )
    (question,), settled = questions, Node()
    settled.name, settled.plates = chain.name, (*chain.plates, question)

    def own(operand: Any) -> Any:
        of_present = isinstance(operand, Node) and present[0] in operand.plates
        return operand[chain] if of_present else placed(operand, settled)  # pyright: ignore[reportArgumentType]

    addends = put(link.predictor.addends, own)
    predictor = PredictorAlong(addends, question, link.letter, n_states)
    return StickBreakingLogits(predictor, question), present[0]


class PolyaGammaOfSteps(PolyaGammaOfQuestions):
    """The Polya-Gamma numbers of the steps of a chain, one for each present state and question."""

    term_of_parent: ClassVar[Density] = ()
    term: ClassVar[Density] = template(
        (1, "initial.log_x[k] self.first[k]"),
        (1, "self.pairs[kl] answered.x[jl] transition.x[j]"),
        (-1 / 2, "self.pairs[kl] asked.x[jl] hidden.x[j] transition.xx[j]"),
        (1, "self.pairs[kl] asked.x[jl] hidden.relative_entropy[j]"),
        (-LOG_2, "self.pairs[kl] asked.x[jl]"),
    )

    def __init__(self, answer: Answer, link: StickBreakingLogits, present: Plate) -> None:
        assert link.along is not None
        self._hide(answer, (*answer.plates, present, link.along), predictors=link.predictor)

    def distribution_given(self, slots: Mapping[str, Any]) -> families.PolyaGammaSum:
        """Return the distributions given predictors and states: nothing of a question that was not asked."""
        states, away = np.asarray(slots["answer"], dtype=np.int64), np.abs(slots["predictors"])
        n_present, n_questions = away.shape[-2:]
        begins = np.zeros(states.shape, dtype=bool)
        begins |= np.asarray(slots.get("starts", False), dtype=bool)
        # the first state of a sequence follows no other
        begins[..., 0] = True
        before = np.where(begins, -1, np.roll(states, 1, axis=-1))[..., None, None]
        asked = (before == np.arange(n_present)[:, None]) & (
            states[..., None, None] >= np.arange(n_questions)
        )
        shape, tilt = np.broadcast_arrays(asked.astype(np.float64), away)
        return families.PolyaGammaSum(shape, tilt)
