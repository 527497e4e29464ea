"""Nodes, the parts of a model: names, the indexing of a plate, and the parts of a joint factor."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias, cast

import numpy as np

from ..._errors import ModelError, ParameterError, PlateError
from ..._words_of_others import refusing_words_of_others
from .algebra import Algebra, Predictor
from .plates import Plate, Plates, as_names, as_plates


@refusing_words_of_others
class Node(Algebra):
    """A node with a name, plates, and one value for each repetition.

    Attributes
    ----------
    name
        Name of the node, unique within a model.
    plates
        Its plates, outermost first.
    dimension
        Length of a vector, or of both axes of a square matrix; 1 for a number; None if unknown.
    entry_names
        Names of the entries of one value in the model; None without names.
    """

    name: str
    plates: tuple[Plate, ...]
    dimension: int | None
    entry_names: tuple[str, ...] | None = None
    is_bound: bool = False
    """Whether the ELBO may lie below the mean of log p - log q of its values: its density enters through a bound that
    no hidden variable makes exact, or its factor covers more than its values, as the kinds of chains."""
    is_known: ClassVar[bool] = False
    """Whether its values are given, with the statement or with the data."""
    is_zero_or_one: ClassVar[bool] = False
    """Whether it is the number 0 or 1, whose square is itself, where a location may be."""
    is_anchored: ClassVar[bool] = False
    """Whether its values cannot be measured from another point than zero, where a location may be."""
    has_parts: ClassVar[bool] = False
    """Whether it is a joint factor, whose location and precision are passed on as ``.mean`` and ``.precision``."""
    instead_of_infinity: ClassVar[str] = "drop or impute such rows before the fit"
    """What to do about data that are infinite."""
    kept_aside: ClassVar[frozenset[str]] = frozenset({"_axes", "_plate_axes", "_terms"})
    """What is kept beside the statement, since it follows from that."""

    @property
    def as_label(self) -> str:
        """The statement of a label that can index a plate instead of this number; empty for everything else."""
        return ""

    def __getstate__(self) -> dict[str, Any]:
        """Return the statement alone; a copy finds again what follows from it."""
        return {name: own for name, own in vars(self).items() if name not in self.kept_aside}

    def _identify(self, name: str, plates: Plates) -> None:
        if not isinstance(name, str) or not name:
            raise ParameterError(
                f"the first argument of {type(self).__name__} is its name, a string; got {name!r}"
            )
        if "\0" in name:
            # a file, a table or another program may end the name there
            raise ParameterError(f"a name must not contain the character NUL; got {name!r}")
        self.name = name
        self.plates = as_plates(plates, name) if plates != () else ()

    def name_entries(self, names: Any) -> None:
        """Set the names of the entries of one value, if there are any."""
        if names is None:
            return
        owner = f"{type(self).__name__} '{self.name}'"
        self.entry_names = as_names(names, owner, self.dimension)

    @property
    def spelled(self) -> str:
        """Its name."""
        return self.name

    @property
    def entry_plates(self) -> tuple[Plate, ...]:
        """Its plates."""
        return self.plates

    def plates_of(self, statistic: str) -> tuple[Plate, ...]:
        """Return the plates along which one of its statistics is repeated."""
        return self.plates

    def __getitem__(self, index: Index | tuple[Index, ...]) -> Indexed:
        """Return this node with one of its plates chosen: by a Categorical, ``mean[z]``, or by known labels.

        A label of groups is itself chosen by the records of these: ``mean[z[Data("group", plates=record)]]``, and known
        labels may be chosen by a Categorical: ``mean[Data("cell", plates=(obs, case))[z]]``. Several indices choose
        from a plate each: ``table[z, v]`` is ``table[z][v]``.
        """
        return Indexed(self, *_each(index))

    def __repr__(self) -> str:
        plates = "" if not self.plates else f", plates=({', '.join(p.name for p in self.plates)})"
        return f"{type(self).__name__}({self.name!r}{plates})"


class Label(Node):
    """A node whose value is a category, which can index a plate."""

    @property
    def categories(self) -> int | None:
        """Number of categories; None if unknown."""
        return self.dimension


class Data(Node):
    """A known array whose values come with the data, by name: a covariate, a known noise level, or labels of the rows.

    Whole numbers from 0 can index a plate, like a Categorical: ``intercept[county]``.

    Parameters
    ----------
    name
        Name of the values in the data.
    plates
        Plates of its leading axes.
    names
        Names of the entries, if each row is a vector. If the data are a table, these are its columns.

    Examples
    --------
    >>> Data("noise_precision", plates=Plate("obs"))
    Data('noise_precision', plates=(obs))
    """

    is_known = True

    def __init__(self, name: str, *, plates: Plates = (), names: Iterable[str] | None = None) -> None:
        self._identify(name, plates)
        self.dimension = None
        self.name_entries(names)


class Indexed(Algebra):
    """A node whose plates are indexed by a Categorical or by known labels: ``mean[z]``, ``intercept[county]``.

    Several indices, ``confusion[z][annotator]`` or ``table[z, v]``, choose from the plates that fit them, in the order
    of these.

    Parameters
    ----------
    node
        What is indexed.
    *indices
        Categoricals, Data with labels, or labels of groups chosen by such, as they are stated.

    Attributes
    ----------
    node
        The node that is indexed.
    indices
        All indices, as they are stated.
    by
        The index: the first Categorical if there is one, or else the first Data with labels.
    through
        Where the index is a label of groups, ``mean[z[group]]``, what says which group each record is of; or None.
    given
        Where the index is known labels that a Categorical chooses, ``mean[cell[z]]``, that choice; or None.
    others
        The other indices, each with the plate that it chooses from.
    candidates
        The plates that ``by`` may choose from: those of its number of categories, or any. Where there are several, it
        is one that the variable that has this in a slot does not have; see :meth:`within`.
    """

    through: Indexed | None = None
    given: Indexed | None = None
    others: tuple[Indexed, ...] = ()

    def __init__(self, node: Node, *indices: Index) -> None:
        self.node = node
        self.indices = indices = tuple([_as_membership(index) for index in indices])
        places = [place for place, index in enumerate(indices) if not isinstance(index, Data)]
        _refuse_twice(node, [own for place in places if isinstance(own := indices[place], Node | Indexed)])
        first: Any = indices[places[0] if places else 0]
        if isinstance(first, Indexed) and isinstance(first.node, Label) and isinstance(first.by, Data):
            self.through, first = (first, first.node) if not first.others else (None, first)
        elif isinstance(first, Indexed) and isinstance(first.node, Data) and isinstance(first.by, Label):
            self.given, first = first, first.node
        categories = first.categories if isinstance(first, Label) else None
        if isinstance(first, Label) and categories is None:
            raise ModelError(
                f"'{node.name}' cannot be indexed by '{first.name}', whose probabilities are Data: its number of "
                f"categories is unknown until the fit. Give each of its K categories the probability 1 / K, and add "
                f"Potential('known', {first.name}) with log(K * p) of the known probabilities p as data"
            )
        if categories is None and not isinstance(first, Data):
            raise ModelError(
                f"'{node.name}' can be indexed by a Categorical variable, as in {node.name}[z], or by known labels, "
                f"{node.name}[Data('group', plates=obs)]; got {first!r}{_as_data(first)}"
            )
        self.by: Label | Data = cast("Label | Data", first)
        own = [plate for plate in node.plates if plate not in self.along]
        fitting = [plate for plate in own if categories is None or plate.size in (None, categories)]
        if isinstance(first, Data) and first in [
            membership(plate) for plate in first.plates if plate.within in own
        ]:
            # what says in which group each row is chooses from the groups
            fitting = [plate.within for plate in first.plates if plate.within in own]
        if not fitting:
            raise PlateError(_why_not_indexable(node, self.by, own))
        if len(own) < len(indices):
            raise PlateError(
                f"'{node.name}' has {len(own)} plates that {len(indices)} indices could choose from: {self!r}"
            )
        self.candidates = tuple(fitting)
        if len(indices) == 1:
            self._check_size()

    def _check_size(self) -> None:
        # of nested plates the data say how many there are
        nested = [plate.within for plate in self.by.plates]
        # and how many groups known labels choose from, where these are texts
        if len(self.candidates) == 1 and self.plate.size is None and self.plate not in nested:
            if not isinstance(self.by, Label):
                return
            raise PlateError(
                f"plate '{self.plate.name}' of '{self.node.name}' is indexed by '{self.by.name}' and needs a size: "
                f"Plate('{self.plate.name}', {self.by.categories})"
            )

    @property
    def each(self) -> tuple[Indexed, ...]:
        """What each index chooses."""
        if self.others or len(self.indices) == 1:
            return (self, *self.others)
        return tuple([Indexed(self.node, index) for index in self.indices])

    @property
    def givens(self) -> tuple[Indexed, ...]:
        """What each Categorical chooses from the known labels of the index; nothing for other indices."""
        return () if self.given is None else self.given.each

    @property
    def along(self) -> tuple[Plate, ...]:
        """The plates for each repetition of which ``by`` chooses."""
        if self.given is not None:
            every = self.given.each
            own = [plate for plate in self.by.plates if not any(plate in one.candidates for one in every)]
            return tuple(dict.fromkeys((*own, *(plate for one in every for plate in one.along))))
        if self.through is None:
            return self.by.plates
        own = [plate for plate in self.by.plates if plate not in self.through.candidates]
        return tuple(dict.fromkeys((*self.through.by.plates, *own)))

    @property
    def entry_plates(self) -> tuple[Plate, ...]:
        """The plates that its label chooses for."""
        return self.along

    @property
    def labels(self) -> tuple[Data, ...]:
        """The known labels that take part in the choice."""
        every = (own if own.through is None else own.through for own in (self, *self.others))
        return tuple(own.by for own in every if isinstance(own.by, Data))

    @property
    def choosers(self) -> tuple[Node, ...]:
        """The nodes that take part in the choice, as they are stated."""
        nodes = ((own,) if isinstance(own, Node) else (own.node, *own.choosers) for own in self.indices)
        return tuple(node for several in nodes for node in several)

    @property
    def plate(self) -> Plate:
        """The plate that ``by`` chooses from."""
        (plate,) = self.candidates
        return plate

    @property
    def mean(self) -> Part:
        """Its location, where the node is a joint factor."""
        return self._part("mean")

    @property
    def precision(self) -> Part:
        """Its precision, where the node is a joint factor."""
        return self._part("precision")

    def _part(self, which: Literal["mean", "precision"]) -> Part:
        if not self.node.has_parts:
            kind = f"{type(self.node).__name__} '{self.node.name}'"
            raise ModelError(
                f"{self!r}.{which} does not exist: the {kind} has no parts; only joint factors "
                f"(NormalGamma, NormalWishart) have .mean and .precision"
            )
        return Part(self, which)

    def __getitem__(self, index: Index | tuple[Index, ...]) -> Indexed:
        """Return this with another of its plates chosen: ``confusion[z][annotator]``."""
        return Indexed(self.node, *self.indices, *_each(index))

    def within(self, owner: Node) -> Indexed:
        """Return this expression in a slot of ``owner``, with one candidate for each index.

        Raises
        ------
        PlateError
            If the plates of the owner leave none or several.
        """
        indices = [index.within(owner) if isinstance(index, Indexed) else index for index in self.indices]
        if any(own is not index for own, index in zip(indices, self.indices, strict=True)):
            # which plate of a label of groups its records choose from is settled first
            return Indexed(self.node, *indices).within(owner)
        if len(self.indices) > 1:
            return self._all_within(owner)
        if len(self.candidates) == 1:
            return self
        chosen = Indexed(self.node, *self.indices)
        chosen.candidates = tuple(plate for plate in self.candidates if plate not in owner.plates)
        if len(chosen.candidates) != 1:
            names = ", ".join(f"'{plate.name}'" for plate in self.candidates)
            raise PlateError(
                f"'{self.by.name}' could choose from any of the plates {names} of '{self.node.name}'; give "
                f"'{owner.name}' all of these but the one that is chosen from"
            )
        chosen._check_size()
        return chosen

    def _all_within(self, owner: Node) -> Indexed:
        """Return this with a plate for each of several indices: the first that fit in the order of the statement."""
        if self.others:
            return self
        each = [Indexed(self.node, index) for index in self.indices]
        free = [[plate for plate in own.candidates if plate not in owner.plates] for own in each]
        found = next((plates for plates in product(*free) if len(set(plates)) == len(plates)), None)
        if found is None:
            names = ", ".join(f"'{plate.name}'" for plate in self.node.plates)
            raise PlateError(
                f"{self!r}: no plates of '{self.node.name}' ({names}) are left for all indices beside those of "
                f"'{owner.name}'"
            )
        for own, plate in zip(each, found, strict=True):
            own.candidates = (plate,)
            own._check_size()
        (head,) = [own for own in each if own.by is self.by and own.through is self.through][:1]
        head.others = tuple(own for own in each if own is not head)
        head.indices = self.indices
        return head

    def __repr__(self) -> str:
        return self.node.name + "".join(f"[{_spelled(index)}]" for index in self.indices)


def _each(index: Any) -> tuple[Any, ...]:
    return index if isinstance(index, tuple) and index else (index,)


def _refuse_twice(node: Node, labels: Sequence[Any]) -> None:
    """Refuse one Categorical as two indices, unless they are the labels of two members that a record names.

    Raises
    ------
    PlateError
        If it is.
    """
    seen: dict[Any, list[Any]] = {}
    for index in labels:
        label = index.node if isinstance(index, Indexed) else index
        before = seen.setdefault(label, [])
        before.append(index)
        if len(before) == 1:
            continue
        stated = f"{node.name}[{', '.join(_spelled(own) for own in before)}]"
        times = "twice" if len(before) == 2 else "three times"
        chooses = f"'{label.name}' is used {times} in {stated}"
        if not all(isinstance(own, Indexed) for own in before):
            raise PlateError(
                f"{chooses}, which is the diagonal of '{node.name}'. State the diagonal as a variable "
                f"with one plate, and choose from that"
            )
        if len(before) > 2 or before[0].by is index.by:
            raise PlateError(
                f"{chooses}: at most two indices may be labels of one Categorical, each chosen by another "
                f"Data. Use another Categorical for each further index"
            )


def _spelled(index: Node | Indexed) -> str:
    return index.name if isinstance(index, Node) else repr(index)


class SecondLabel(NamedTuple):
    """The second of two labels of one variable that a record names, under a name of its own."""

    chosen: Indexed
    """What it chooses."""

    @property
    def name(self) -> str:
        """The label as it is stated, with its index."""
        return repr(self.chosen.through)

    @property
    def plates(self) -> tuple[Plate, ...]:
        """Those of the variable."""
        return self.chosen.by.plates


class Part(Algebra):
    """One of the two values that a joint factor covers, where a mean or a precision may be.

    Attributes
    ----------
    whole
        The joint factor, or the choice among its repetitions.
    which
        ``"mean"`` or ``"precision"``.
    """

    def __init__(self, whole: Node | Indexed, which: Literal["mean", "precision"]) -> None:
        self.whole = whole
        self.which = which

    @property
    def node(self) -> Any:
        """The joint factor, without its index."""
        return self.whole.node if isinstance(self.whole, Indexed) else self.whole

    @property
    def by(self) -> Any:
        """What chooses among the repetitions of the joint factor; None where nothing does."""
        return self.whole.by if isinstance(self.whole, Indexed) else None

    @property
    def event_rank(self) -> int:
        """Event axes of one value: 0 a number, 1 a vector, 2 a matrix."""
        return self.node.value_rank if self.which == "mean" else self.node.precision_rank

    @property
    def whole_name(self) -> str:
        """How the joint factor, or the choice among its repetitions, is written."""
        return self.node.name if self.by is None else repr(self.whole)

    def belongs_with(self, other: Part) -> bool:
        """Whether both are parts of the same repetitions of the same joint factor."""
        return self.node is other.node and self.choosers == other.choosers

    @property
    def choosers(self) -> tuple[Node, ...]:
        """The nodes that take part in the choice, as they are stated."""
        return self.whole.choosers if isinstance(self.whole, Indexed) else ()

    def __getitem__(self, index: Any) -> Part:
        """Return this part with a plate chosen: ``theta.mean[z]`` is ``theta[z].mean``."""
        return Part(self.whole[index], self.which)  # type: ignore[index]

    def __repr__(self) -> str:
        return f"{self.whole_name}.{self.which}"


def placed(expression: Node | Indexed, owner: Node) -> Node | Indexed:
    """Return an expression in a slot of ``owner``, with its plates chosen if the statement leaves them open.

    A node on a plate that a plate of the owner lies within is indexed by the repetition that each belongs to.
    """
    if isinstance(expression, Indexed):
        return _placed_by_group(expression, owner)
    for plate in owner.plates:
        if plate.within in expression.plates and plate.within not in owner.plates:
            return Indexed(expression, membership(plate))
    return expression


def _placed_by_group(expression: Indexed, owner: Node) -> Indexed:
    """Return an indexed node in a slot of ``owner``, whose rows may lie within groups that have values."""
    node, indices = expression.node, expression.indices
    nested = [own for own in owner.plates if own.within in node.plates and own.within not in owner.plates]
    if not nested or len(indices) >= len(node.plates):
        return expression.within(owner)
    try:
        found = expression.within(owner)
    except PlateError:
        # it may be that the group leaves one plate to choose from
        return Indexed(node, *indices, membership(nested[0])).within(owner)
    taken = next((own.by for own in found.each if own.plate is nested[0].within), None)
    if isinstance(taken, Data):
        return found
    try:
        return Indexed(node, *indices, membership(nested[0])).within(owner)
    except PlateError:
        # the plates do not allow that as well
        if taken is None:
            raise
        return found


def membership(plate: Plate) -> Data:
    """Return the known labels that say which repetition of the outer plate each one of a nested plate belongs to.

    They are named after the outer plate.
    """
    assert plate.within is not None
    labels: Data = vars(plate).setdefault("_membership", Data(plate.within.name, plates=plate))
    return labels


def _as_membership(index: Any) -> Any:
    """Return an index; for labels of a nested plate, stated by name, their single node."""
    if isinstance(index, Data) and len(index.plates) == 1:
        (plate,) = index.plates
        if plate.within is not None and plate.within.name == index.name:
            return membership(plate)
    return index


def _as_data(index: Any) -> str:
    """Return how labels that were stated as a constant are stated; or values of a hidden label that a label chooses."""
    if isinstance(index, Indexed) and isinstance(index.node, Label) and isinstance(index.by, Label):
        label, of = index.node.name, ", ".join(plate.name for plate in index.node.plates)
        return (
            f". Both labels are hidden: let '{label}' choose the parents of a variable on its own plates, "
            f"own = Normal('own', mean[{label}], precision[{label}], plates=({of})), and choose from that, "
            f"own[{index.by.name}]. Or let one label choose among all values of '{label}': with these in a known "
            f"table, cell = Data('cell', ...), the index is cell[ways, {index.by.name}]"
        )
    known = index.node if isinstance(index, Indexed) else index
    if isinstance(index, Indexed) and isinstance(known, Data):
        own, by = known.name, index.by.name
        return f". '{own}' and '{by}' are known: look up {own}[{by}] beforehand, as one Data with the plates of '{by}'"
    if isinstance(known, list | np.ndarray):
        return ". Labels that choose come with the data: state Data('group', plates=...) and pass the array to fit"
    if isinstance(known, int | np.integer | slice):
        return (
            ". State a single repetition as a separate variable, and the others with a plate; or state "
            "Data('group', plates=...) and pass the numbers of the repetitions to fit"
        )
    if not isinstance(known, Node) or not (known.is_known or known.is_zero_or_one):
        return ""
    if known.is_zero_or_one:
        return f". The {type(known).__name__} '{known.name}' is a number, 0 or 1; use {known.as_label}"
    plates = ", ".join(plate.name for plate in known.plates)
    return (
        f". Labels that choose come with the data: state Data('{known.name}', plates=({plates})) instead of the "
        f"Constant '{known.name}'"
    )


def _why_not_indexable(node: Node, by: Label | Data, own: list[Plate]) -> str:
    if isinstance(by, Data):
        return f"'{node.name}' has no plate that '{by.name}' could choose from; give it plates=Plate('group', size)"
    if not own:
        plate = f"plates=Plate('component', {by.categories})"
        return f"'{node.name}' has no plate that '{by.name}' could choose from; give it {plate}"
    plates = ", ".join(f"'{plate.name}' has {plate.size}" for plate in own)
    return (
        f"'{by.name}' has {by.categories} categories, but in '{node.name}' plate {plates}: they must be equal"
    )


Index: TypeAlias = Label | Data | Indexed
"""What may choose from a plate: a Categorical, known labels, or a label of groups chosen by such."""

Expression: TypeAlias = Node | Indexed | Predictor | Any
"""What may be in a slot: a node, an indexed node, a sum or product, a number or an array."""
