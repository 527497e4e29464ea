"""Algebra: sums and products of numbers and dot products in a slot: ``intercept[county] + dot(x, w)``.

What Python asks of numbers, lists and answers, and a part of a model is not yet: refused with what to write.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from numbers import Number, Real
from typing import Any, ClassVar, NoReturn

import numpy as np

from ..._errors import ModelError
from ..._typing import AnyArray, Array
from .numpy_functions import applied, refuse_array, refuse_function

__all__ = ["Unknown"]

_WITH_VALUES = Number | str | bytes | np.ndarray | list | tuple | set | dict

_CHOICE = (
    "Let a Categorical z choose what depends on it, level[z], with level on a plate. Multiply what may "
    "be absent by a Bernoulli. Pass known values to the fit, Model(...).fit({'name': values})"
)


class Unknown:
    """Base of nodes that have no value while a model is stated."""

    __hash__ = object.__hash__

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse: it is not an array."""
        refuse_array(self)

    def __float__(self) -> NoReturn:
        """Refuse: it is not a number yet."""
        refuse_array(self)

    __int__ = __index__ = __complex__ = __float__

    def __format__(self, how: str) -> str:
        """Return its text; refuse the formats of numbers."""
        if how:
            raise ModelError(
                f"{self!r} has no number before a fit that could be written as {how!r}; use "
                f"posterior['name'].mean"
            )
        return str(self)

    def __round__(self, digits: int | None = None) -> NoReturn:
        """Refuse: it is not a number yet."""
        refuse_function("round", self)

    def __bool__(self) -> NoReturn:
        """Refuse: it is neither true nor false."""
        raise ModelError(f"{self!r} is neither true nor false while a model is stated. {_CHOICE}")

    def __eq__(self, other: object) -> bool:
        """Return whether it is the same object; refuse to compare it with values."""
        if isinstance(other, Unknown):
            # asked of each of several nodes where one is looked for among them
            return self is other
        if isinstance(other, _WITH_VALUES):
            raise ModelError(
                f"{self!r} has no value that could be compared with {other!r} while a model is stated. {_CHOICE}"
            )
        return NotImplemented

    def __lt__(self, other: Any) -> bool:
        """Refuse to compare what is unknown."""
        raise ModelError(
            f"{self!r} and {other!r} cannot be compared. State which one is larger as an outcome behind a "
            "link: Bernoulli('larger', probit(a - b)), observed as 1"
        )

    __gt__ = __le__ = __ge__ = __lt__

    def __len__(self) -> NoReturn:
        """Refuse: it is not a list."""
        raise ModelError(
            f"{self!r} is not a list and has no length: its repetitions are .plates, each with a .size, the "
            "length of a vector is .dimension"
        )

    def __contains__(self, value: object) -> NoReturn:
        """Refuse: it is not a list."""
        raise ModelError(f"{self!r} is not a list, and contains nothing while a model is stated. {_CHOICE}")

    def __setitem__(self, index: Any, value: Any) -> NoReturn:
        """Refuse: values come with the data."""
        raise ModelError(
            f"{self!r} takes no values; pass them to the fit, Model(...).fit({{'name': values}}), with "
            f"NaN where they are unknown"
        )

    def __floordiv__(self, other: Any) -> NoReturn:
        """Refuse: a predictor is linear in each variable."""
        refuse_function("a division without rest", self)

    __rfloordiv__ = __floordiv__

    def __mod__(self, other: Any) -> NoReturn:
        """Refuse: a predictor is linear in each variable."""
        refuse_function("the rest of a division", self)

    __rmod__ = __mod__

    def __and__(self, other: Any) -> NoReturn:
        """Refuse: what two labels say together is a table."""
        raise ModelError(
            f"{self!r} cannot be combined by 'and' or 'or'. Let both labels choose from one table: "
            f"table[z, v] with Categoricals z and v, and table on a plate for each"
        )

    __or__ = __xor__ = __rand__ = __ror__ = __rxor__ = __and__

    def __invert__(self) -> NoReturn:
        """Refuse: the other outcome is stated."""
        raise ModelError(
            f"{self!r} cannot be negated; write 1 - x for a Bernoulli, or a table in reverse order for a "
            f"label"
        )


class Algebra(Unknown):
    """Base of expressions that can be added and multiplied."""

    @property
    def entry_plates(self) -> tuple[Any, ...]:
        """Plates along which it may be the entries of a diagonal."""
        return ()

    @property
    def spelled(self) -> str:
        """What it may be called in a statement."""
        return "..."

    def __array_ufunc__(self, function: np.ufunc, method: str, *inputs: Any, **_: Any) -> Any:
        """Return what an operator gives behind an array, as ``X + a``; refuse other functions of NumPy."""
        return applied(function.__name__, method, inputs, Algebra)

    def __add__(self, other: Any) -> Predictor:
        """Return the sum."""
        return Predictor(as_predictor(self).addends + as_predictor(other).addends)

    def __radd__(self, other: Any) -> Predictor:
        """Return the sum; the 0 that ``sum`` begins with adds nothing."""
        if isinstance(other, int | float) and other == 0:
            return as_predictor(self)
        return as_predictor(other) + self

    def __mul__(self, other: Any) -> Predictor:
        """Return the product; sums are multiplied out."""
        left, right = as_predictor(self), as_predictor(other)
        return Predictor(tuple(a.times(b) for a in left.addends for b in right.addends))

    def __rmul__(self, other: Any) -> Predictor:
        """Return the product."""
        return as_predictor(other) * self

    def __neg__(self) -> Predictor:
        """Return the negative."""
        return as_predictor(self) * -1.0

    def __pos__(self) -> Predictor:
        """Return the same expression."""
        return as_predictor(self)

    def __getitem__(self, index: Any) -> Any:
        """Refuse: only variables can be indexed, not expressions."""
        raise ModelError(f"{self!r} cannot be indexed; index the variables in it, as a[z] + b[z]")

    def __sub__(self, other: Any) -> Predictor:
        """Return the difference."""
        return self + as_predictor(other) * -1.0

    def __rsub__(self, other: Any) -> Predictor:
        """Return the difference."""
        return as_predictor(other) - self

    def __truediv__(self, other: Any) -> Predictor:
        """Return this divided by a number."""
        if not isinstance(other, Real) or not other:
            raise ModelError(f"a predictor can only be divided by a number other than 0; got {other!r}")
        return as_predictor(self) * (1.0 / float(other))

    def __matmul__(self, other: Any) -> Predictor:
        """Refuse: dot products are written ``dot(a, b)``."""
        raise ModelError(f"write a dot product as cv.dot({self!r}, {other!r})")

    def __rmatmul__(self, other: Any) -> Predictor:
        """Refuse: dot products are written ``dot(a, b)``."""
        raise ModelError(
            f"write a dot product as cv.dot(cv.Data('X', plates=...), {self!r}), with the array passed to fit as 'X'"
        )

    def __pow__(self, exponent: Any) -> Predictor:
        """Refuse: a predictor is linear in each variable."""
        raise ModelError(
            f"{self!r} cannot be raised to a power: a predictor is linear in each variable. State a "
            f"variance by its precision, a Gamma. Compute the square of a known column before the fit"
        )

    def __rpow__(self, base: Any) -> Predictor:
        """Refuse: a predictor is linear in each variable."""
        refuse_function("power", self)

    def __abs__(self) -> Predictor:
        """Refuse: a predictor is linear in each variable."""
        raise ModelError(
            f"the absolute value of {self!r} has no update: a predictor is linear in each variable. Use a "
            f"Gamma for a positive number, or a TruncatedNormal for an observed one"
        )

    def __rtruediv__(self, other: Any) -> Predictor:
        """Refuse to divide by a variable."""
        raise ModelError(
            f"nothing can be divided by {self!r}, because a predictor is linear in each variable: "
            f"multiply by a variable instead, or put a scale into the precision"
        )


@dataclass(frozen=True)
class Addend:
    """A coefficient times numbers times dot products of two vectors each."""

    coefficient: float
    numbers: tuple[Any, ...] = ()
    dots: tuple[tuple[Any, Any], ...] = ()

    @property
    def operands(self) -> tuple[Any, ...]:
        """The factors of the product: numbers and vectors."""
        return (*self.numbers, *(vector for pair in self.dots for vector in pair))

    def times(self, other: Addend) -> Addend:
        """Return the product."""
        coefficient = self.coefficient * other.coefficient
        return Addend(coefficient, self.numbers + other.numbers, self.dots + other.dots)

    def __repr__(self) -> str:
        words = [repr(number) for number in self.numbers] + [f"dot({a!r}, {b!r})" for a, b in self.dots]
        if self.coefficient != 1 or not words:
            words.insert(0, f"{self.coefficient:g}")
        return " * ".join(words)


class Predictor(Algebra):
    """A sum of products, linear in each variable in it.

    Attributes
    ----------
    addends
        The products.
    """

    def __init__(self, addends: tuple[Addend, ...]) -> None:
        self.addends = addends

    def __repr__(self) -> str:
        return " + ".join(repr(addend) for addend in self.addends)


class PredictorAlong(Predictor):
    """A predictor for each repetition along a plate, which its owner does not have.

    Attributes
    ----------
    along
        The plate.
    letter
        Of the owner's axis that it becomes.
    n_states
        Of a chain whose state of the step before chooses it, the number of states; otherwise 0.
    """

    def __init__(self, addends: tuple[Addend, ...], along: Any, letter: str = "k", n_states: int = 0) -> None:
        super().__init__(addends)
        self.along, self.letter, self.n_states = along, letter, n_states


def _entry_plates(operand: Any) -> tuple[Any, ...]:
    return operand.entry_plates if isinstance(operand, Algebra) else ()


@dataclass(frozen=True)
class Diagonal:
    """A matrix with the repetitions of a positive variable on its diagonal; see :func:`diagonal`.

    Attributes
    ----------
    entries
        A node, or a product plus known values.
    """

    entries: Any

    @property
    def nodes(self) -> list[Any]:
        """Nodes in the entries; the last plate of the first one runs along the diagonal."""
        if not isinstance(self.entries, Predictor):
            return [self.entries]
        operands = [operand for addend in self.entries.addends for operand in addend.operands]
        return sorted(operands, key=lambda node: not _entry_plates(node))

    @property
    def node(self) -> Any:
        """The first node, whose last plate runs along the diagonal."""
        return self.nodes[0]

    @property
    def plate(self) -> Any:
        """The plate that runs along the diagonal: the last of the first node, or of the label that chooses for it."""
        plates = _entry_plates(self.node)
        return plates[-1] if plates else None

    def __repr__(self) -> str:
        return f"diagonal({self.entries!r})"


@dataclass(frozen=True)
class Link(Algebra, ABC):
    """An argument of an answer as a function of a predictor: :func:`probit`, :func:`logistic` or :func:`exp` of it."""

    belongs: ClassVar[str]
    """What it is, and where it may be: with the link itself in the place of {}."""

    function: ClassVar[str]
    """What states it."""

    predictor: Predictor

    @abstractmethod
    def natural(self, predictor: AnyArray) -> AnyArray:
        """Return the argument at values of the predictor: log-odds of a probability, the logarithm of a mean."""

    def __repr__(self) -> str:
        return f"{self.function}({self.predictor!r})"


@dataclass(frozen=True, repr=False)
class LinkOfProbability(Link, ABC):
    """The probability of a 1 as a function of a predictor."""

    belongs = "is the probability of an observed binary outcome, as in Bernoulli('y', {})"

    @abstractmethod
    def expected(self, mean: Array, variance: Array) -> tuple[Array, Array]:
        """Return the probabilities of a 1 and of a 0 expected of a Normal predictor."""

    @abstractmethod
    def expected_product(self, mean: Array, variance: Array) -> Array:
        """Return the product of the two probabilities expected of a Normal predictor."""


def as_predictor(value: Any) -> Predictor:
    """Return a number, a node or a predictor as a predictor.

    Raises
    ------
    ModelError
        If it is an array (a node tells which plates its axes are), or no finite number.
    """
    if isinstance(value, Predictor):
        return value
    if isinstance(value, Link):
        raise ModelError(
            f"{value!r} is a link, which cannot be a part of a predictor; take the link of the whole sum"
        )
    if isinstance(value, Algebra):
        return Predictor((Addend(1.0, (value,)),))
    if isinstance(value, Real) or (isinstance(value, np.ndarray) and value.ndim == 0):
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            raise ModelError(
                f"a number in a predictor must be a real one of double precision; got {value!r}"
            ) from None
        if not np.isfinite(number):
            raise ModelError(f"a number in a predictor must be finite; got {number}")
        return Predictor((Addend(number),))
    if isinstance(value, np.ndarray | list | tuple):
        raise ModelError(
            f"an array in a predictor needs a name and a plate for each axis; got {_size_of(value)}. Write "
            "Constant('name', array, plates=obs), or Data('name', plates=obs) and pass the array with the "
            f"data{_as_matrix(value)}"
        )
    raise ModelError(
        f"a predictor adds and multiplies numbers, variables, Data and Constant; got {type(value).__name__}"
    )


def _as_matrix(value: Any) -> str:
    """Return how an array is named that may be one matrix, as that of a precision."""
    shape = np.shape(value) if isinstance(value, np.ndarray) else ()
    return (
        "; one matrix, as in a precision, is Constant('name', array)"
        if len(shape) == 2 and shape[0] == shape[1]
        else ""
    )


def _size_of(value: Any) -> str:
    """Return the shape of an array in words; of a list that is not an array, its kind."""
    try:
        return f"shape {np.shape(value)}"
    except ValueError:
        return f"a {type(value).__name__} with rows of different lengths"


_OF_THREE = (
    "as the sum of a product for each entry, a1 * b1 * c1 + a2 * b2 * c2, each with variables of its own"
)


def dot(first: Any, second: Any, *others: Any) -> Predictor:
    r"""Return the dot product of two vectors, :math:`\sum_i a_i b_i`.

    Parameters
    ----------
    first, second
        Vectors: a MultivariateNormal, Data or Constant, or one of these with an index (``w[z]``). One of them may be a
        plain array.
    others
        Nothing: a product has two sides.

    Raises
    ------
    ModelError
        If neither is a variable or a known array of the model, or there are more than two.

    Examples
    --------
    >>> import numpy as np
    >>> from caviar import Data, MultivariateNormal, Plate
    >>> w = MultivariateNormal("w", np.zeros(2), np.eye(2))
    >>> 1.5 + dot(Data("X", plates=Plate("obs")), w)
    1.5 + dot(Data('X', plates=(obs)), MultivariateNormal('w'))
    """
    if others:
        raise ModelError(f"dot takes two vectors, not {len(others) + 2}; write dot(a, b, c) {_OF_THREE}")
    if not any(isinstance(value, Algebra) for value in (first, second)):
        raise ModelError("dot takes at least one vector of the model, a MultivariateNormal, Data or Constant")
    for value in (first, second):
        if isinstance(value, Link):
            raise ModelError(f"dot takes two vectors, not the link {value!r}")
        if isinstance(value, Predictor):
            instead = "write dot(a + b, w) as dot(a, w) + dot(b, w)"
            if len(value.addends) == 1:
                instead = f"write dot(a * b, c) {_OF_THREE}"
            raise ModelError(f"dot takes two vectors, not the sum or product {value!r}; {instead}")
    return Predictor((Addend(1.0, (), ((first, second),)),))


def diagonal(entries: Any) -> Diagonal:
    r"""Return the precision matrix :math:`\mathrm{diag}(\alpha_1, \dots, \alpha_D)`.

    With a Gamma for each entry this is automatic relevance determination (ARD).

    Parameters
    ----------
    entries
        A Gamma, or known positive numbers, whose last plate has size D. It may be indexed, as ``precision[z]``, where
        the Categorical ``z`` has a plate of size D; it may be a product with a common number, ``common * own``; and for
        the inverse scale of a Wishart it may be a Gamma plus known values, ``diagonal(scale + floor)``.

    Raises
    ------
    ModelError
        If ``entries`` cannot be repeated along a plate.

    Examples
    --------
    >>> from caviar import Gamma, Plate
    >>> diagonal(Gamma("alpha", 1, 1, plates=Plate("factor", 3)))
    diagonal(Gamma('alpha', plates=(factor)))
    """
    found = Diagonal(entries)
    if not found.nodes or found.plate is None:
        raise ModelError(
            f"diagonal takes a variable with a plate for the diagonal, as "
            f"Gamma('alpha', 1, 1, plates=Plate('factor', D)); got {entries!r}"
        )
    return found
