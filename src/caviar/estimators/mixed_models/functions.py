"""Functions that a formula may use: of single values, of whole columns, and codings of categories.

Functions of whole columns, such as ``scale`` and ``bs``, are those of formulaic. What they take from the rows of a fit,
means or knots, is their state: new rows are computed with it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..._errors import ParameterError

OF_VALUES: Mapping[str, Any] = {
    "log": np.log,
    "log1p": np.log1p,
    "log2": np.log2,
    "log10": np.log10,
    "exp": np.exp,
    "sqrt": np.sqrt,
    "abs": np.abs,
}
"""Functions of each value of a column; ``np.log`` is ``log``."""

_SPLINE = ("df", "knots", "lower_bound", "upper_bound", "extrapolation")
OF_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "center": (),
    "scale": ("center", "scale", "ddof"),
    "poly": ("degree", "raw"),
    "bs": (*_SPLINE, "degree", "include_intercept"),
    "cr": (*_SPLINE, "constraints"),
    "cc": (*_SPLINE, "constraints"),
}
"""Functions of whole columns, and their settings, of which the first may stand without its name."""

CODINGS: Mapping[str, str] = {
    "Treatment": "treatment",
    "Sum": "sum",
    "Helmert": "helmert",
    "Poly": "poly",
    "Diff": "diff",
}
"""Codings of categories, the second argument of ``C``: as patsy has them, and as R, ``contr.treatment``."""

NAMES = ("C", "I", *OF_VALUES, *OF_COLUMNS)
_QUOTED = re.compile(r"`([^`]+)`")
_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow)
_LARGEST_POWER, _LARGEST_SETTING = 10, 1000


@dataclass
class Read:
    """What an expression reads.

    Attributes
    ----------
    columns
        Names of columns.
    categories
        Those of them in ``C(...)``, whose numbers are categories.
    is_stateful
        Whether a function of whole columns takes something from the rows of the fit.
    """

    columns: set[str] = field(default_factory=set)
    categories: set[str] = field(default_factory=set)
    is_stateful: bool = False


def read_expression(expression: str) -> Read:
    """Return what an expression of a formula reads.

    Raises
    ------
    ParameterError
        If it is more than arithmetic with columns and known functions of them.

    Examples
    --------
    >>> read_expression("poly(log(`body mass` + 1), 2)").columns
    {'body mass'}
    """
    read, quoted = Read(), {}

    def plain_name(found: re.Match[str]) -> str:
        name = f"__quoted_{len(quoted)}__"
        quoted[name] = found[1]
        return name

    try:
        parsed = ast.parse(_QUOTED.sub(plain_name, expression), mode="eval").body
    except SyntaxError as error:
        raise ParameterError(f"{expression!r} in the formula cannot be read: {error.msg}") from error
    if not _is_known(parsed, read):
        raise ParameterError(
            f"{expression!r} in the formula is not supported: a formula may have columns, numbers, operators, and the "
            f"functions {', '.join(NAMES)}, such as scale(x), poly(x, 2) or C(x, Treatment('a')). Compute anything "
            f"else as a column of the table"
        )
    read.columns = {quoted.get(name, name) for name in read.columns}
    read.categories = {quoted.get(name, name) for name in read.categories}
    return read


def _is_known(node: ast.expr, read: Read) -> bool:
    """Whether a part of an expression is supported; its columns are added to what is read."""
    match node:
        case ast.Name():
            read.columns.add(node.id)
            return True
        case ast.Constant():
            return type(node.value) in (int, float)
        case ast.UnaryOp(op=ast.UAdd() | ast.USub()):
            return _is_known(node.operand, read)
        case ast.BinOp(op=ast.Pow()):
            return _is_known(node.left, read) and _is_small_power(node)
        case ast.BinOp():
            return (
                isinstance(node.op, _OPERATORS) and _is_known(node.left, read) and _is_known(node.right, read)
            )
        case ast.Call():
            return _is_known_call(node, read)
    return False


def _is_known_call(node: ast.Call, read: Read) -> bool:
    name = _name_of(node.func, "np")
    if name == "C":
        return _is_known_category(node, read)
    if not node.args or not _is_known(node.args[0], read):
        return False
    if name in OF_COLUMNS:
        names, read.is_stateful = OF_COLUMNS[name], True
        return (
            len(node.args) <= (2 if names else 1)
            and all(_is_setting(own) for own in node.args[1:])
            and all(own.arg in names and _is_setting(own.value) for own in node.keywords)
        )
    return (name == "I" or name in OF_VALUES) and len(node.args) == 1 and not node.keywords


def _is_known_category(node: ast.Call, read: Read) -> bool:
    """Whether a call of ``C`` has a column, and a known coding or none."""
    codings = [*node.args[1:], *(own.value for own in node.keywords if own.arg == "contrasts")]
    if not node.args or not isinstance(node.args[0], ast.Name) or len(codings) > 1:
        return False
    read.columns.add(node.args[0].id)
    read.categories.add(node.args[0].id)
    return len(codings) == len(node.args) - 1 + len(node.keywords) and all(map(_is_coding, codings))


def _is_coding(node: ast.expr) -> bool:
    arguments: list[ast.expr] = []
    if isinstance(node, ast.Call):
        arguments = [*node.args, *(own.value for own in node.keywords if own.arg == "base")]
        if len(arguments) != len(node.args) + len(node.keywords) or len(arguments) > 1:
            return False
        node = node.func
    is_known = _name_of(node, "") in CODINGS or _name_of(node, "contr") in CODINGS.values()
    return is_known and all(isinstance(own, ast.Constant) for own in arguments)


def _name_of(node: ast.expr, prefix: str) -> str:
    """Return the name of a function, with or without its prefix; empty if it has neither form."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == prefix:
        return node.attr if prefix != "np" or node.attr in OF_VALUES else ""
    return ""


def _is_setting(node: ast.expr) -> bool:
    """Whether something is a small number, a word, or a list of numbers: a large one could take forever."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node = node.operand
    if isinstance(node, ast.List):
        return len(node.elts) <= _LARGEST_SETTING and all(
            _is_setting(own) and not isinstance(own, ast.List) for own in node.elts
        )
    if not isinstance(node, ast.Constant):
        return False
    value = node.value
    return (
        isinstance(value, bool | str | float)
        or value is None
        or (isinstance(value, int) and abs(value) <= _LARGEST_SETTING)
    )


def _is_small_power(node: ast.BinOp) -> bool:
    """Whether something is a small power of a column: one of numbers alone could take forever."""
    exponent = node.right
    if isinstance(exponent, ast.UnaryOp) and isinstance(exponent.op, ast.USub):
        exponent = exponent.operand
    is_small = isinstance(exponent, ast.Constant) and type(exponent.value) in (int, float)
    return (
        is_small
        and abs(exponent.value) <= _LARGEST_POWER  # type: ignore[operator]
        and any(isinstance(own, ast.Name) for own in ast.walk(node.left))
    )


def context() -> dict[str, Any]:
    """Return what the names of functions in a formula mean, beside those of formulaic."""
    from formulaic.transforms.contrasts import ContrastsRegistry

    codings = {name: getattr(ContrastsRegistry, own) for name, own in CODINGS.items()}
    return {**OF_VALUES, **codings, "np": SimpleNamespace(**OF_VALUES)}


def plain(state: Any) -> Any:
    """Return the state of functions of columns as what a file can hold: texts, numbers, lists, and dictionaries."""
    if isinstance(state, Mapping):
        return {str(name): plain(own) for name, own in state.items()}
    if isinstance(state, np.ndarray | list | tuple):
        return [plain(own) for own in state]
    return state.item() if isinstance(state, np.generic) else state


def restored(state: Any) -> Any:
    """Return the state that was made plain, as formulaic expects it."""
    if isinstance(state, Mapping):
        return {
            int(name) if name.isdigit() else name: np.array(own)
            if name == "constraints" and own
            else restored(own)
            for name, own in state.items()
        }
    return list(state) if isinstance(state, list) else state
