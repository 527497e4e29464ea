"""Mixtures of hidden sequences: each sequence has a kind, which says how its states follow each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ... import families
from ..._errors import ModelError, PlateError
from ..._typing import AnyArray, Array
from ...families.chains.chain_mixture import pairs_of_kinds
from ...numerics.cached import cached_property
from ..nodes.constants import Constant, as_known
from ..nodes.instead_of_links import INSTEAD_IN_STEPS
from ..nodes.node import Expression, Indexed, Node
from ..nodes.plates import Plate
from ..nodes.roles import BEGINNING, PROBABILITIES
from ..nodes.templates import template
from .chains import MarkovChain
from .paths import States, refuse_groups

_WEIGHTS = replace(PROBABILITIES, name="weights", is_apart=True)


class MarkovChainMixture(MarkovChain):
    r"""Sequences of hidden states from a mixture of G Markov chains with different transition probabilities.

    .. math::
        \log p(g, s) = \log w_g + \log \pi_{g s_1} + \sum_{t > 1} \log A_{g, s_{t-1} s_t}

    Like a MarkovChain it can index a plate by its states: ``mean[s]``. The kind g of a sequence and its states s share
    an exact factor q(g) q(s | g).

    Parameters
    ----------
    name
        Name of the variable, unique within the model.
    weights
        :math:`w`, the probabilities of the G kinds: an array or a Dirichlet.
    initial
        :math:`\pi`, the probabilities of the first state: an array (G, K), a Dirichlet with a plate of size G, or one
        vector (K,) or Dirichlet for all kinds.
    transition
        :math:`A`, the probabilities of the next state: an array (G, K, K), or a Dirichlet with two plates: first the
        kinds, of size G, then the current state, of size K.
    along
        The plate of the steps, which must be the data plate.
    starts
        Beginnings of sequences, as for :class:`MarkovChain`. By default all rows are one sequence.

    Raises
    ------
    PlateError, ModelError
        If shapes or plates do not match.

    Notes
    -----
    A pass costs as much as for a chain of G K states. ``posterior.local(data)["s"].kinds`` has the probabilities of the
    kind of each sequence.

    Smyth (1997), "Clustering sequences with hidden Markov models".

    Examples
    --------
    >>> from caviar import Data, Dirichlet
    >>> time, kind, state = Plate("time"), Plate("kind", 2), Plate("state", 3)
    >>> transition = Dirichlet("transition", np.ones(3), plates=(kind, state))
    >>> starts = Data("starts", plates=time)
    >>> s = MarkovChainMixture("s", [0.5, 0.5], np.full(3, 1 / 3), transition, along=time, starts=starts)
    >>> s.n_kinds, s.categories
    (2, 3)
    """

    family = families.Categorical
    letters: ClassVar = {"x": "k", "first": "gk", "pairs": "gkl"}
    is_bound = True

    def __init__(
        self,
        name: str,
        weights: Expression,
        initial: Expression,
        transition: Expression,
        *,
        along: Plate,
        starts: Expression = None,
    ) -> None:
        self._identify(name, along)
        if len(self.plates) != 1:
            raise PlateError(f"'{name}' runs along one plate, its steps; got {along!r}")
        known: dict[str, Plate] = {}
        stated = {
            own: self._node(own, value, known)
            for own, value in (("weights", weights), ("initial", initial), ("transition", transition))
        }
        self.n_kinds = _length(stated["weights"], name)
        self.dimension = _length(stated["initial"], name)
        of_kinds = {own: self._kinds(own, node) for own, node in stated.items() if own != "weights"}
        arguments: dict[str, Any] = {
            "weights": (stated["weights"], _WEIGHTS),
            "initial": (stated["initial"], PROBABILITIES),
            "transition": (self._from_present_state(stated["transition"]), PROBABILITIES),
        }
        refuse_groups(name, along, starts)
        if starts is not None:
            arguments["starts"] = (starts, BEGINNING)
        along_kinds = {own: plate for own, plate in of_kinds.items() if plate is not None}
        letter = "g" if "initial" in along_kinds else ""
        density = template(
            (1, "weights.log_x[g] self.first[gk]"),
            (1, f"initial.log_x[{letter}k] self.first[gk]"),
            (1, "transition.log_x[gl] self.pairs[gkl]"),
        )
        self.zeros = template(  # type: ignore[misc]
            (1, "weights.zero_x[g] self.first[gk]"),
            (1, f"initial.zero_x[{letter}k] self.first[gk]"),
            (1, "transition.zero_x[gl] self.pairs[gkl]"),
        )
        self._state(name, along, arguments, density=density, along=along_kinds)
        self.letter_sizes = {**self.letter_sizes, "g": self.n_kinds}

    def _node(self, slot: str, value: Expression, plates: dict[str, Plate]) -> Node:
        """Return an argument as a node; of an array with axes for kinds and states before its own, a constant."""
        where = f"'{slot}' of MarkovChainMixture '{self.name}'"
        if isinstance(value, Indexed) or value is None:
            raise ModelError(f"{where} must be an array or a Dirichlet; got {value!r}")
        if isinstance(value, Node):
            return value
        known = as_known(value, where, INSTEAD_IN_STEPS)
        most = {"weights": 1, "initial": 2, "transition": 3}[slot]
        if not 0 < known.ndim <= most:
            raise PlateError(f"{where} has {most} axes at the most; got shape {known.shape}")
        names = [f"{self.name}.{own}" for own in ("kinds", "from")]
        own = [
            plates.setdefault(f"{name} {size}", Plate(name, size))
            for name, size in zip(names, known.shape[:-1], strict=False)
        ]
        return Constant(f"{self.name}.{slot}", known, plates=own)

    def _from_present_state(self, transition: Any) -> Indexed:
        """Return the transitions as chosen from the last of their plates, by the state of the step before."""
        chosen = Indexed(transition, self)
        chosen.candidates = transition.plates[-1:]
        return chosen

    def _kinds(self, slot: str, node: Node) -> Plate | None:
        """Return the plate of the kinds of an argument; None of one that is the same for all kinds."""
        sizes, where = [plate.size for plate in node.plates], f"'{slot}' of MarkovChainMixture '{self.name}'"
        wanted = [self.n_kinds, self.dimension] if slot == "transition" else [self.n_kinds]
        if slot == "initial" and not sizes:
            return None
        if sizes != wanted or node.dimension != self.dimension:
            raise PlateError(
                f"{where} has probabilities of {self.dimension} states for {self.n_kinds} kinds"
                f"{' and each present state' if slot == 'transition' else ''}: plates of sizes {tuple(wanted)}; got "
                f"{node!r} with plates of sizes {tuple(sizes)} and {node.dimension} probabilities"
            )
        return node.plates[0]

    @property
    def arguments(self) -> dict[str, Any]:
        """What it was stated with, without the choice of transitions by its own state."""
        return {**self.stated, "transition": self.slots["transition"].node}

    def distribution_given(self, slots: Mapping[str, Any]) -> Any:
        """Return the distribution of its states given the probabilities of kinds, first states and steps."""
        starts = np.asarray(slots.get("starts", [False]), dtype=bool)
        weights, initial = np.reshape(slots["weights"], (-1, 1)), np.asarray(slots["initial"])
        initial = initial.reshape(-1, self.dimension or 1)
        return MixedPaths(weights * initial, np.asarray(slots["transition"]), starts)


def _length(node: Node, name: str) -> int:
    """Return how many probabilities a node has."""
    if node.dimension is None:
        raise PlateError(
            f"the number of probabilities in '{node.name}' of MarkovChainMixture '{name}' is unknown"
        )
    return node.dimension


@dataclass(frozen=True)
class MixedPaths(States):
    """Categories as states, each sequence of some kind.

    Attributes
    ----------
    initial
        Probabilities of kind and first state, (G, K).
    transition
        Of the next state, (G, K, K).
    """

    initial: Array
    transition: Array
    starts: AnyArray

    @cached_property
    def _chain(self) -> families.ChainMixture:
        with np.errstate(divide="ignore"):
            logs = np.log(self.initial).ravel(), np.log(pairs_of_kinds(self.transition, 0.0))
        chain = families.MarkovChain(np.zeros((len(self.starts), self.initial.size)), self.starts, *logs)
        return families.ChainMixture(chain, len(self.initial))
