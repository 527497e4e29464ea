"""Distributions of probabilities.

The point at which a tangent bounds the normaliser of a Dirichlet with an unknown number for each category.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from numbers import Integral
from typing import Any, ClassVar

import numpy as np

from ... import families
from ..._errors import ModelError, PlateError
from ..._typing import AnyArray, Array
from ...families.tabulated.scalar_functions import Function
from ...families.tabulated.sticks import tabulated_sticks
from ..expansion.unknown_concentrations import TANGENT, along_categories
from ..nodes.algebra import Addend, Predictor, PredictorAlong, as_predictor
from ..nodes.constants import Constant, as_known
from ..nodes.instead_of_links import INSTEAD_IN_BETA
from ..nodes.node import Data, Expression, Indexed, Node
from ..nodes.plates import Plate, Plates
from ..nodes.roles import CONCENTRATION, LOG_GAMMA_TANGENT, RATE, SCALAR, SHAPE, STICKS, TOTAL, TWO_SHAPES
from ..nodes.slots import Slot, as_expression, check_slot, slot_of
from ..nodes.templates import template
from ..variable import Variable

_MOST_PIECES = 1_000_000


class _Simplex(Variable):
    """Probabilities of categories as one vector."""

    sums_to_one = True
    value_rank = 1

    def problem_with(self, value: AnyArray) -> str:
        """Return what is wrong with points off the open simplex."""
        inside = (value > 0).all() and (abs(value.sum(axis=-1) - 1) <= 1e-9).all()
        return "" if inside else "must be positive and sum to one along its last axis"

    def unit_value(self, plates: tuple[int, ...], spread: float) -> Array:
        """Return equal probabilities."""
        size = self.dimension or 1
        return np.full((*plates, size), 1.0 / size)


class Dirichlet(_Simplex):
    r"""Probabilities of K categories with a Dirichlet distribution.

    .. math:: \log \mathrm{Dir}(p \mid \alpha) = \sum_k (\alpha_k - 1)\log p_k - \log B(\alpha)

    Parameters
    ----------
    name
        Name of the variable, unique within the model.
    concentration
        :math:`\alpha`, K known positive numbers; all ones is the uniform prior. Or an unknown Gamma, the same for all
        categories, or a Gamma times a known vector, ``total * Constant("shares", m)``; the factor of this Gamma is
        tabulated on a grid. Or an unknown Gamma for each category, on a separate plate, ``Gamma("a", 2, 0.1,
        plates=Plate("category", K))``: the ELBO is then bounded, by a tangent at ``"weights.tangent"``.
    categories
        K, if the concentration is one number for all categories.
    plates
        Plates along which the variable is repeated.
    names
        Names of the categories, for summaries, plots and messages. Labels in the data may then be these names.

    Examples
    --------
    >>> Dirichlet("weights", concentration=np.ones(3))
    Dirichlet('weights')
    >>> from caviar import Gamma
    >>> Dirichlet("weights", concentration=Gamma("alpha", 1, 1), categories=3)
    Dirichlet('weights')

    Transition probabilities around common weights, with more of staying (a sticky hierarchical Dirichlet process):

    >>> from caviar import Constant, Plate, StickBreaking
    >>> state = Plate("state", 20)
    >>> beta = StickBreaking("beta", concentration=5.0, truncation=20)
    >>> stay = Constant("stay", 50 * np.eye(20), plates=state)
    >>> Dirichlet("transition", concentration=0.5 * beta + stay, plates=state)
    Dirichlet('transition', plates=(state))
    """

    family = families.Dirichlet
    letters: ClassVar = {"log_x": "k"}
    base = template((-1, "self.log_x[k]"))
    density = template((1, "concentration.x[k] self.log_x[k]"), (-1, "concentration.log_beta"))

    def __init__(
        self,
        name: str,
        concentration: Expression,
        *,
        categories: int | None = None,
        plates: Plates = (),
        names: Iterable[str] | None = None,
    ) -> None:
        if categories is not None and (
            not isinstance(categories, Integral) or not 1 <= categories <= _MOST_PIECES
        ):
            raise ModelError(
                f"'categories' of Dirichlet '{name}' must be a whole number from 1 to {_MOST_PIECES}; got "
                f"{categories!r}"
            )
        size = None if categories is None else int(categories)
        own = None
        if isinstance(concentration, Node | Indexed | Predictor):
            # which plate of it is that of the categories follows from the other ones
            self._identify(name, plates)
            own = along_categories(self, concentration)
        if own is None:
            self._state(name, plates, {"concentration": (concentration, CONCENTRATION)}, dimension=size)
        else:
            arguments = {
                "concentration": (own, CONCENTRATION),
                TANGENT: (TangentAtTotal.of(self, own), LOG_GAMMA_TANGENT),
            }
            self._state(name, plates, arguments, dimension=size)
            del self.stated[TANGENT]
        self.name_entries(names)

    @property
    def arguments(self) -> dict[str, Any]:
        """Its concentration, and the number of categories if the concentration does not determine it."""
        own = self.stated["concentration"]
        if isinstance(own, PredictorAlong):
            return {"concentration": Predictor(own.addends)}
        return {**self.stated, "categories": self.dimension} if self.functions else dict(self.stated)

    @property
    def drawn_given(self) -> Iterator[Node]:
        """Its concentration, without the point of a tangent that belongs to itself."""
        return (own for own in self.parents if not (isinstance(own, Variable) and own.is_brought))

    def distribution_given(self, slots: Mapping[str, Any]) -> families.Dirichlet:
        """Return the Dirichlet with these concentrations; one number is that of all categories."""
        concentration = slots["concentration"]
        if np.ndim(concentration) > len(self.plates):
            return families.Dirichlet(concentration)
        wide = (*np.shape(concentration), self.dimension or 1)
        return families.Dirichlet(np.broadcast_to(np.asarray(concentration)[..., None], wide))


class StickBreaking(_Simplex):
    r"""Probabilities of K categories by stick-breaking: a truncated Dirichlet process.

    .. math:: v_k \sim \mathrm{Beta}(1, \gamma) \;(k < K), \quad v_K = 1, \qquad
              p_k = v_k s_k, \quad s_k = \prod_{j < k} (1 - v_j)

    .. math:: \log p(v) = (K - 1)\log\gamma + (\gamma - 1)\log p_K, \qquad \log v_k = \log p_k - \log s_k

    It may be used wherever a Dirichlet may. Times a number it may also be the concentration of a Dirichlet, which is
    then centred on these weights. With N_k rows in category k the optimal factor has :math:`a_k = 1 + N_k` and
    :math:`b_k = \gamma + \sum_{j > k} N_j`.

    Parameters
    ----------
    name
        Name of the variable, unique within the model.
    concentration
        :math:`\gamma > 0`: a number, an array or a Gamma. Larger values mean more categories.
    truncation
        K, the number of categories, at least 2.
    plates
        Plates along which the variable is repeated.
    names
        Names of the categories, for summaries, plots and messages. Labels in the data may then be these names.

    Examples
    --------
    >>> from caviar import Categorical
    >>> weights = StickBreaking("weights", concentration=1.0, truncation=20)
    >>> Categorical("z", weights).categories
    20
    """

    family = families.StickBreaking
    is_stick = True
    letters: ClassVar = {"log_x": "k", "log_rest": "k"}
    base = template((-1, "self.log_x[k]"))
    density = template(
        (1, "truncation.inner[k] self.log_x[k]"),
        (-1, "truncation.inner[k] self.log_rest[k]"),
        (1, "concentration.x truncation.last[k] self.log_x[k]"),
        (1, "concentration.log_x truncation.inner[k]"),
    )

    def __init__(
        self,
        name: str,
        concentration: Expression,
        truncation: int,
        *,
        plates: Plates = (),
        names: Iterable[str] | None = None,
    ) -> None:
        if not isinstance(truncation, Integral) or truncation < 2:
            raise ModelError(
                f"'truncation' of StickBreaking '{name}' must be a whole number of at least 2; got {truncation!r}"
            )
        if truncation > _MOST_PIECES:
            raise ModelError(
                f"'truncation' of StickBreaking '{name}' must be at most {_MOST_PIECES}; got {truncation}"
            )
        # the last piece is the rest: the concentration acts on it alone
        last = np.zeros(int(truncation))
        last[-1] = 1.0
        self._state(name, plates, {"concentration": (concentration, RATE), "truncation": (last, STICKS)})
        self.name_entries(names)

    def settle(self, functions: tuple[Function, ...]) -> None:
        """Set the family of its factor in a model, which has these functions of each piece as statistics."""
        family = tabulated_sticks(functions)
        vars(self).update(family=family, letters=dict.fromkeys(family.statistics, "k"))

    def distribution_given(self, slots: Mapping[str, Any]) -> families.StickBreaking:
        """Return the weights whose shares are Beta(1, concentration)."""
        shares = (*slots["concentration"].shape, (self.dimension or 2) - 1)
        return families.StickBreaking(
            np.ones(shares), np.broadcast_to(slots["concentration"][..., None], shares)
        )

    @property
    def arguments(self) -> dict[str, Any]:
        """Its concentration, and the number of its pieces, which a slot holds in another form."""
        return {**self.stated, "truncation": self.dimension}


class Beta(Variable):
    r"""A probability with a Beta distribution.

    .. math:: \log \mathrm{Beta}(p \mid a, b) = (a - 1)\log p + (b - 1)\log(1 - p) - \log B(a, b)

    Parameters
    ----------
    name
        Name of the variable, unique within the model.
    a, b
        Known positive numbers, arrays or Constants. Or functions of one unknown number, as in ``Beta("p", m * total, (1
        - m) * total)``: either the total is a Gamma and the mean m is known, or the mean is a Beta and the total is
        known. The factor of the unknown number is tabulated on a grid.
    plates
        Plates along which the variable is repeated.

    Examples
    --------
    >>> Beta("p", a=1, b=1)
    Beta('p')
    >>> from caviar import Gamma
    >>> total = Gamma("total", 2, 0.1)
    >>> Beta("p", 0.3 * total, 0.7 * total)
    Beta('p')
    """

    family = families.Beta
    letters: ClassVar = {"log_x": "", "log_complement": ""}
    base = template((-1, "self.log_x"), (-1, "self.log_complement"))
    density = template(
        (1, "shapes.a self.log_x"), (1, "shapes.b self.log_complement"), (-1, "shapes.log_beta")
    )
    density_of_scalar = template(
        (1, "a.x self.log_x"),
        (1, "b.x self.log_complement"),
        (-1, "a.gammaln"),
        (-1, "b.gammaln"),
        (1, "total.gammaln"),
    )

    def __init__(self, name: str, a: Expression, b: Expression, *, plates: Plates = ()) -> None:
        self._identify(name, plates)
        if _is_hidden(a) or _is_hidden(b):
            arguments = {
                "a": (a, SHAPE),
                "b": (b, SHAPE),
                "total": (as_predictor(a) + as_predictor(b), TOTAL),
            }
            self._state(name, plates, arguments, density=self.density_of_scalar, dimension=1)
            # the total follows from the other two
            del self.stated["total"]
            return
        if a is b and _has_pairs(a):
            # as it is stored: one node with both
            shapes = a
        elif isinstance(a, Node | Indexed) or isinstance(b, Node | Indexed):
            shapes = _joined(self, a, b)
        else:
            shapes = _stacked(name, a, b)
        self._state(name, plates, {"shapes": (shapes, TWO_SHAPES)}, dimension=2)

    @classmethod
    def state_again(cls, name: str, plates: tuple[Plate, ...], arguments: Mapping[str, Any]) -> Beta:
        """Return the Beta whose one slot holds both shapes, or whose shapes depend on a scalar."""
        if "shapes" not in arguments:
            return cls(name, **arguments, plates=plates)
        return cls(name, arguments["shapes"], arguments["shapes"], plates=plates)

    def distribution_given(self, slots: Mapping[str, Any]) -> families.Beta:
        """Return the Beta with a and b from the last axis of its one slot, or from their own ones."""
        if "shapes" not in slots:
            return families.Beta(*np.broadcast_arrays(slots["a"], slots["b"]))
        return families.Beta(slots["shapes"][..., 0], slots["shapes"][..., 1])

    def problem_with(self, value: AnyArray) -> str:
        """Return what is wrong with numbers outside the open unit interval."""
        return "" if np.all((value > 0) & (value < 1)) else "must lie strictly between 0 and 1"

    def unit_value(self, plates: tuple[int, ...], spread: float) -> Array:
        """Return one half."""
        return np.full(plates, 0.5)


def _is_hidden(value: Expression) -> bool:
    """Whether a shape is a sum or product, or a variable."""
    node = value.node if isinstance(value, Indexed) else value
    return isinstance(node, Predictor | Variable)


def _stacked(name: str, a: Expression, b: Expression) -> Array:
    for label, value in (("a", a), ("b", b)):
        if value is None:
            raise ModelError(f"'{label}' of Beta '{name}' is missing: give a number or an array")
    known = [
        as_known(value, f"'{label}' of Beta '{name}'", INSTEAD_IN_BETA)
        for label, value in (("a", a), ("b", b))
    ]
    try:
        return np.stack(np.broadcast_arrays(*known), axis=-1)
    except ValueError:
        shapes = f"{known[0].shape} and {known[1].shape}"
        raise PlateError(
            f"'a' and 'b' of Beta '{name}' have shapes {shapes}, which do not go together"
        ) from None


def _has_pairs(value: Expression) -> bool:
    """Whether a value is a Constant, chosen from or not, of vectors."""
    node = value.node if isinstance(value, Indexed) else value
    return isinstance(node, Constant) and node.event_rank == 1


def _joined(owner: Beta, a: Expression, b: Expression) -> Constant | Indexed:
    """Return the Constant, chosen from as they are, of pairs of a and b, each with its plates."""
    slots = []
    for label, value in (("a", a), ("b", b)):
        node = value.node if isinstance(value, Indexed) else value
        if isinstance(node, Data):
            raise ModelError(
                f"'{label}' of Beta '{owner.name}' cannot be the Data '{node.name}': its normaliser needs both numbers "
                f"when the model is stated. Give numbers, arrays or Constants"
            )
        slots.append(slot_of(owner, label, as_expression(owner, label, value, SHAPE), SHAPE))  # type: ignore[arg-type]
        check_slot(owner, slots[-1])
    chosen = list(dict.fromkeys((own.choosers, _chosen_plates(own)) for own in _indexed(slots)))
    taken = [plate for _, plates in chosen for plate in plates]
    if len(chosen) > 1 or any(plate in taken for slot in slots for plate in _not_chosen(slot)):
        raise PlateError(
            f"'a' and 'b' of Beta '{owner.name}' must be chosen from the same plate by the same variable; got {a!r} "
            f"and {b!r}"
        )
    plates = tuple(dict.fromkeys(plate for slot in slots for plate in slot.node.plates))
    values = np.broadcast_arrays(*(_along(slot.node, plates) for slot in slots))
    pairs = Constant.of_known(f"{owner.name}.shapes", np.stack(values, axis=-1), plates)
    return next((Indexed(pairs, *own.indices) for own in _indexed(slots)), pairs)


def _indexed(slots: Sequence[Slot]) -> list[Indexed]:
    return [slot.expression for slot in slots if isinstance(slot.expression, Indexed)]


def _chosen_plates(chosen: Indexed) -> tuple[Plate, ...]:
    return tuple(own.plate for own in (chosen, *chosen.others))


def _not_chosen(slot: Slot) -> list[Plate]:
    return [plate for plate in slot.node.plates if all(own.plate is not plate for own in slot.chosen)]


def _along(node: Node, plates: tuple[Plate, ...]) -> Array:
    """Return the numbers of a Constant with an axis for each plate, of length 1 where it is not repeated."""
    assert isinstance(node, Constant)
    own = [plate for plate in plates if plate in node.plates]
    turned = node.value.transpose([node.plates.index(plate) for plate in own])
    return turned[tuple(slice(None) if plate in own else None for plate in plates)]


class TangentAtTotal(Variable):
    """The point at which the tangent touches the log-gamma function of the sum of unknown concentrations."""

    family = families.LogGammaTangent
    letters: ClassVar = {"x": "", "constant": ""}
    takes_data = False
    is_brought = True
    density = template()

    def __init__(self, name: str, numbers: Node, along: Plate, scale: float) -> None:
        self._state(name, [plate for plate in numbers.plates if plate is not along], {}, dimension=1)
        self.slots = {"concentration.0": Slot("concentration", numbers, SCALAR, along=along)}
        self.stated = {"concentration": PredictorAlong((Addend(scale, (numbers,), ()),), along)}

    @classmethod
    def of(cls, owner: Node, predictor: PredictorAlong) -> TangentAtTotal | Indexed:
        """Return the point that belongs to a concentration, chosen from as that is."""
        (addend,) = predictor.addends
        number: Any = addend.numbers[0]
        name = f"{owner.name}.tangent"
        if isinstance(number, Indexed):
            own = cls(name, number.node, predictor.along, addend.coefficient)
            return Indexed(own, *number.indices)
        return cls(name, number, predictor.along, addend.coefficient)

    def distribution_given(self, slots: Mapping[str, Any]) -> families.LogGammaTangent:
        """Return the sum of the concentrations: there the bound is exact."""
        return families.LogGammaTangent(slots["concentration"].sum(axis=-1))

    def best_given(self, values: Mapping[str, Any]) -> Array | None:
        """Return the sums of values of the concentrations, (n, plates...): there the bound is exact."""
        slot = self.slots["concentration.0"]
        if slot.along is None or slot.node.name not in values:
            return None
        own = np.asarray(values[slot.node.name]).sum(axis=1 + slot.node.plates.index(slot.along))
        return self.stated["concentration"].addends[0].coefficient * own

    def problem_with(self, value: AnyArray) -> str:
        """Return what is wrong with numbers that are not positive."""
        return "" if (value > 0).all() else "must be positive"
