"""What Python asks of numbers, lists and answers, and a part of a model is not yet: refused with what to write."""

from __future__ import annotations

from numbers import Number
from typing import Any, NoReturn

import numpy as np

from .._errors import ModelError
from .numpy_functions import refuse_array, refuse_function

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
