"""What NumPy and Python functions say of a variable: operators as ever, and of others what to write instead."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NoReturn

from ..._errors import ModelError

_OPERATORS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "matmul": operator.matmul,
    "power": operator.pow,
    "negative": operator.neg,
    "absolute": operator.abs,
    "equal": operator.eq,
    "not_equal": operator.ne,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
}
"""Function of NumPy -> the operator that it is."""

_BEHIND_AN_ARRAY: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda left, right: right.__radd__(left),
    "subtract": lambda left, right: right.__rsub__(left),
    "multiply": lambda left, right: right.__rmul__(left),
    "divide": lambda left, right: right.__rtruediv__(left),
    "matmul": lambda left, right: right.__rmatmul__(left),
    "power": lambda left, right: right.__rpow__(left),
    "equal": lambda left, right: right == left,
    "not_equal": lambda left, right: right != left,
    "less": lambda left, right: right > left,
    "less_equal": lambda left, right: right >= left,
    "greater": lambda left, right: right < left,
    "greater_equal": lambda left, right: right <= left,
}
"""The same behind an array, whose own operator would ask NumPy again."""

_OF_POSITIVE = "For positive numbers use a Gamma; a precision or a rate may be a product of several, u * tau"
_INSTEAD = {
    "exp": "For a rate or odds that grow with a predictor use cv.exp and cv.logistic: "
    "NegativeBinomial(name, cv.exp({it}), size), Bernoulli(name, cv.logistic({it})). " + _OF_POSITIVE,
    "log": "Take the logarithms of the values and state a Normal for them; a predictor of log counts is "
    "behind a link: NegativeBinomial(name, exp(...), size)",
    "sqrt": "A scale is stated by its precision, 1 / sigma**2: Normal(name, mean, precision=Gamma('tau', 1, 1))",
    "square": "Compute the square of a known column before the fit; state a variance by its precision, a "
    "Gamma",
    "tanh": "A step from 0 to 1 is behind a link: Bernoulli(name, logistic({it}))",
    "reciprocal": "A scale or a variance is stated as its inverse, a precision: Gamma('tau', 1, 1)",
    "maximum": "State which of two is larger as an outcome behind a link: Bernoulli('larger', probit(a - "
    "b)), observed as 1. State values cut off at a known limit as a CensoredNormal",
    "sum": "The sum of a vector is dot({it}, w) with known numbers w, of a few variables a + b",
    "expit": "Write caviar's own Bernoulli(name, logistic({it}))",
}
_INSTEAD |= {
    "power": _INSTEAD["exp"],
    "log1p": _INSTEAD["log"],
    "expm1": _INSTEAD["exp"],
    "minimum": _INSTEAD["maximum"],
}
_REDUCED = {"add": "sum", "multiply": "prod"}
_OTHERWISE = (
    "A predictor may have sums and products of variables and known columns, with + and *, and dot(x, w). "
    "Compute functions of known columns before the fit"
)


def applied(name: str, method: str, inputs: tuple[Any, ...], kind: type) -> Any:
    """Return what an operator gives that NumPy was asked for, of an array and a variable; refuse any other function.

    Parameters
    ----------
    name, method, inputs
        Of the function of NumPy, as it was called.
    kind
        Of a variable.

    Raises
    ------
    ModelError
        If it is not an operator.
    """
    own = _OPERATORS.get(name)
    if own is None or method != "__call__":
        name = _REDUCED.get(name, name) if method == "reduce" else name
        refuse_function(name, next(value for value in inputs if isinstance(value, kind)))
    if not isinstance(inputs[0], kind):
        own = _BEHIND_AN_ARRAY.get(name, own)
    return own(*inputs)


def refuse_function(name: str, variable: Any) -> NoReturn:
    """Say that a function of a variable has no update, and what to write instead."""
    instead = _INSTEAD.get(name, _OTHERWISE).format(it=variable.spelled)
    raise ModelError(
        f"{name} of {variable!r} has no update: it is a random variable without a value. {instead}"
    )


def refuse_array(variable: Any) -> NoReturn:
    """Say that a variable is not an array, and what to write instead."""
    raise ModelError(
        f"{variable!r} is a random variable without a value, so NumPy cannot compute with it. "
        f"{_OTHERWISE}. State several variables of one kind as one with a plate, Normal('a', 0, 1, "
        f"plates=Plate('entry', 3))"
    )
