r"""Hidden sequences of categories: the state of each row depends on that of the row before.

Links in the transitions of a chain: from each present state, questions in turn, each with a predictor.

.. math:: \log A_{t,kl} = \log p_l(\eta_{tk}), \qquad
          p_l = \sigma(\eta_{tkl}) \prod_{j<l} (1 - \sigma(\eta_{tkj}))

Each question that is asked in a step has a Polya-Gamma number, as behind a label; see :mod:`.softmax`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import numpy as np

from ... import families
from ..._errors import ConjugacyError, ModelError, PlateError
from ..._typing import AnyArray, Array
from ..nodes.algebra import PredictorAlong
from ..nodes.constants import Constant, as_known
from ..nodes.instead_of_links import INSTEAD_IN_STEPS
from ..nodes.node import Expression, Indexed, Label, Node, placed
from ..nodes.plates import Plate
from ..nodes.roles import BEGINNING, LOCATION, PROBABILITIES, ROW_OF_TABLE, one_hot
from ..nodes.templates import LOG_2, Density, template
from ..outcomes.links import Answer
from ..outcomes.softmax import LinkOfClasses, PolyaGammaOfQuestions, StickBreakingLogits, plates_beside, put
from ..variable import Variable
from .paths import Paths, refuse_groups


class MarkovChain(Answer, Label):
    r"""A sequence of hidden states, 0 to K - 1, one for each row along a plate.

    .. math::
        \log p(s) = \sum_k [s_1 = k] \log \pi_k + \sum_{t > 1} \sum_{kl} [s_{t-1} = k, s_t = l] \log A_{kl}

    Like a Categorical it can index a plate: ``mean[s]``. The rows of the data are the steps, in order.

    Parameters
    ----------
    name
        Name of the variable, unique within the model.
    initial
        :math:`\pi`, the K probabilities of the first state: an array or a Dirichlet.
    transition
        :math:`A`, the probabilities of the next state, one row per current state: an array (K, K), or a Dirichlet
        whose plate of size K runs over the current state. Steps that depend on columns have :func:`stick_breaking` of
        predictors with a plate of size K for the current state and one of size K - 1 for the questions, such as
        ``stick_breaking(dot(X, w))``; this adds Polya-Gamma variables to the model.
    along
        The plate of the steps, which must be the data plate.
    starts
        Beginnings of sequences: 1 at the first row of each, 0 elsewhere, shape (N,), usually
        ``Data("starts", plates=along)``. Rows of a sequence are contiguous; lengths may differ. By default all rows
        are one sequence. From an array of sequence identifiers, compute ``np.append(True, ids[1:] != ids[:-1])``.

    Notes
    -----
    The chain and the parameters are independent under q; inference within the chain is exact (forward-backward over
    each sequence). Other variables depend only on its marginals, first states and pairs of successive states.

    Behind :func:`stick_breaking` forecasts take the expected predictors of the steps ahead.

    A step without observations is inferred from its neighbours. Steps after the last observation of their sequence,
    and sequences without observations, integrate to one and do not affect the fit; ``posterior.local`` forecasts them.

    Examples
    --------
    >>> time, state = Plate("time"), Plate("state", 2)
    >>> s = MarkovChain("s", [0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], along=time)
    >>> mean = Constant("mean", [0.0, 5.0], plates=state)
    >>> mean[s]
    mean[s]
    """

    family = families.Categorical
    letters: ClassVar = {"x": "k", "first": "k", "pairs": "kl"}
    density = template((1, "initial.log_x[k] self.first[k]"), (1, "transition.log_x[l] self.pairs[kl]"))
    zeros = template((1, "initial.zero_x[k] self.first[k]"), (1, "transition.zero_x[l] self.pairs[kl]"))
    summed = ("first", "pairs")

    _link: LinkOfClasses | None = None
    """The link that its transitions were stated with."""

    linked = "transition"

    def __init__(
        self,
        name: str,
        initial: Expression,
        transition: Expression,
        *,
        along: Plate,
        starts: Expression = None,
    ) -> None:
        # the number of states first: it says which plate of the transitions is that of the present state
        self._state(name, along, {"initial": (initial, PROBABILITIES)})
        if len(self.plates) != 1:
            raise PlateError(f"'{name}' runs along one plate, its steps; got {along!r}")
        if isinstance(self.slots["initial"].expression, Indexed) or self.slots["initial"].node.plates:
            raise PlateError(
                f"'initial' of MarkovChain '{name}' must be one vector of probabilities, without plates"
            )
        refuse_groups(name, along, starts)
        arguments: dict[str, Any] = {"initial": (initial, PROBABILITIES)}
        if starts is not None:
            arguments["starts"] = (starts, BEGINNING)
        if isinstance(transition, LinkOfClasses):
            self._state_steps(transition, arguments)
            return
        arguments["transition"] = (self._from_present_state(transition), PROBABILITIES)
        if isinstance(transition, Indexed):
            self.summed, self.by_step = ("first",), ("pairs",)
        self._state(name, along, arguments)

    def _state_steps(self, stated: LinkOfClasses, arguments: dict[str, Any]) -> None:
        """Take transitions behind a link, with the other arguments."""
        size = self.dimension or 0
        link, present = in_steps(stated, self, size)
        self.hidden = PolyaGammaOfSteps(self, link, present)
        self._link = StickBreakingLogits(stated.predictor, link.along)
        self.summed, self.by_step = ("first",), ("pairs",)
        question: Any = link.along
        every = {
            **arguments,
            "transition": (link.predictor, LOCATION),
            "hidden": (self.hidden[self], self.hidden.role),
        }
        along = {"hidden": question}
        for slot, table in link.tables().items():
            known = Constant.of_known(f"{self.name}.{slot}", table, (question,))
            every[slot], along[slot] = (known, ROW_OF_TABLE), question
        own = self.plates[0]
        self._state(self.name, own, every, density=self.hidden.term, dimension=size, along=along)
        others = {slot: self.stated[slot] for slot in arguments}
        self.stated = {**others, "transition": link}
        self.hidden.stated |= others

    @property
    def arguments(self) -> dict[str, Any]:
        """What it was stated with, without the choice of transitions by its own state."""
        if self._link is not None:
            return {**self.stated, "transition": self._link}
        slot, others = self.slots["transition"], self._choosers
        return {**self.stated, "transition": Indexed(slot.node, *others) if others else slot.node}

    @property
    def _choosers(self) -> list[Any]:
        """What chooses its transitions besides its own state."""
        expression = self.slots["transition"].expression
        assert isinstance(expression, Indexed)
        return [own for own in expression.indices if own is not self]

    @classmethod
    def state_again(cls, name: str, plates: tuple[Plate, ...], arguments: Mapping[str, Any]) -> MarkovChain:
        """Return the chain along its one plate."""
        (along,) = plates
        return cls(name, along=along, **arguments)

    def _from_present_state(self, transition: Expression) -> Indexed:
        """Return the transitions as chosen by this chain: by the state of the step before."""
        where = f"'transition' of MarkovChain '{self.name}'"
        if transition is None:
            raise ModelError(
                f"{where} must be an array (K, K), or a Dirichlet with a plate of size K; got {transition!r}"
            )
        if isinstance(transition, Indexed):
            sizes = [plate.size for plate in transition.node.plates]
            if len(sizes) != len(transition.indices) + 1 or sizes[-1] != self.dimension:
                raise PlateError(
                    f"{where} is chosen by a label of the step: '{transition.node.name}' needs a plate for the label "
                    f"and, last, one of size {self.dimension} for the present state; its sizes are {tuple(sizes)}"
                )
            return transition[self]
        if isinstance(transition, Node):
            return transition[self]
        value, size = as_known(transition, where, INSTEAD_IN_STEPS), self.dimension or 0
        if value.shape != (size, size):
            raise PlateError(f"{where} must be a {size} x {size} matrix, not of shape {value.shape}")
        return Constant(f"{self.name}.transition", value, plates=Plate(f"{self.name}.from", size))[self]

    @property
    def density_plates(self) -> tuple[Plate, ...]:
        """None: its first states and pairs are sums over the steps."""
        return ()

    @property
    def parents(self) -> Iterator[Node]:
        """What is in its slots, without the states that choose the transitions: they are its own."""
        for slot in self.slots.values():
            yield slot.node
            yield from (own.by for own in slot.chosen if own.by is not self)

    @property
    def indices(self) -> tuple[Variable, ...]:
        """The hidden labels that choose its transitions; that its own state chooses them is in its density."""
        return tuple(own for own in self.chosen_by if own is not self)

    def distribution_given(self, slots: Mapping[str, Any]) -> Any:
        """Return the distribution of its states given the probabilities of the first one and of each step."""
        starts = np.asarray(slots.get("starts", [False]), dtype=bool)
        transition = np.asarray(slots["transition"])
        if self.hidden is not None:
            transition = np.exp(transition)
        if self.by_step:
            n_rows = max(len(starts), len(transition))
            starts = np.broadcast_to(starts, n_rows)
            transition = np.broadcast_to(transition, (n_rows, *transition.shape[1:]))
        return Paths(slots["initial"][0], transition, starts)

    def statistics_of(self, value: AnyArray) -> tuple[Array, ...]:
        """Return the labels one-hot."""
        return (one_hot(self.dimension or 0, value),)

    def statistic(self, name: str, value: AnyArray) -> Array:
        """Return the labels one-hot."""
        return one_hot(self.dimension or 0, value)

    def problem_with(self, value: AnyArray) -> str:
        """Return what is wrong with labels that are not whole numbers below the number of states."""
        inside = np.all((value == np.floor(value)) & (value >= 0) & (value < (self.dimension or 0)))
        return "" if inside else f"must hold whole numbers from 0 to {(self.dimension or 0) - 1}"


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
