"""Formulas as in lme4: the response, the common effects, and the effects of groups.

formulaic reads the common effects and what is left of a bar; the bars are read here. Only names, numbers, operators and
the functions in :data:`FUNCTIONS` may be in a formula, so that one that comes from a file cannot run anything else.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._errors import ParameterError
from ..._extras import install_command

FUNCTIONS: Mapping[str, Any] = {
    "log": np.log,
    "log1p": np.log1p,
    "log2": np.log2,
    "log10": np.log10,
    "exp": np.exp,
    "sqrt": np.sqrt,
    "abs": np.abs,
}
"""Functions of a column that a formula may use, beside ``C`` and ``I``."""

_OF_FORMULAIC = ("C", "I")
_ALLOWED = (
    *(ast.Expression, ast.Name, ast.Load, ast.Constant, ast.BinOp, ast.UnaryOp, ast.Call),
    *(ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow, ast.UAdd, ast.USub),
)
_LARGEST_POWER = 10
_EXAMPLE = "'y ~ x * z + (1 | school) + (x | school/class)'"


@dataclass(frozen=True)
class GroupTerm:
    """Effects of groups, ``(effects | group)``.

    Attributes
    ----------
    effects
        The formula left of the bar.
    by
        Names of the columns whose combinations are the groups.
    correlated
        Whether the effects of a group are correlated: ``|``, and not ``||``.
    """

    effects: str
    by: tuple[str, ...]
    correlated: bool = True

    @property
    def group(self) -> str:
        """What the groups are called: ``school:class``."""
        return ":".join(self.by)


@dataclass(frozen=True)
class Formula:
    """A formula, read.

    Attributes
    ----------
    response
        The column that is explained.
    trials
        The column, or whole number, of the trials of a binomial response, ``successes | trials(n)``; None without.
    common
        The formula of the common effects.
    groups
        Effects of groups, in their order.
    """

    response: str
    trials: str | None
    common: str
    groups: tuple[GroupTerm, ...]


def read(text: Any) -> Formula:
    """Return a formula, read.

    Raises
    ------
    ParameterError
        If it is none; the message says where.

    Examples
    --------
    >>> read("y ~ x + (1 + x | school/class)").groups
    (GroupTerm(effects='1 + x', by=('school',), correlated=True),
     GroupTerm(effects='1 + x', by=('school', 'class'), correlated=True))
    """
    if not isinstance(text, str):
        raise ParameterError(f"formula must be a text such as {_EXAMPLE}; got {text!r}")
    left, tilde, right = text.partition("~")
    if not tilde or "~" in right:
        raise ParameterError(f"formula must have one ~, as {_EXAMPLE}; got {text!r}")
    response, trials = _response(left.strip(), text)
    common, groups = [], []
    for piece in _summands(right, text):
        inner = piece[1:-1].strip() if _is_in_brackets(piece) else piece
        if "|" in inner:
            if inner is piece:
                raise ParameterError(
                    f"effects of groups need brackets, as (1 | school); formula has {piece!r}"
                )
            groups += list(_of_bar(inner, text))
        else:
            common.append(piece)
    terms = tuple(dict.fromkeys(groups))
    return Formula(response, trials, _joined(common), terms)


def _response(left: str, text: str) -> tuple[str, str | None]:
    name, bar, trials = (part.strip() for part in left.partition("|"))
    if bar:
        if not (trials.startswith("trials(") and trials.endswith(")")):
            raise ParameterError(
                f"the response of a formula is a column, or 'successes | trials(n)'; got {left!r} in {text!r}"
            )
        trials = trials[len("trials(") : -1].strip()
    if not _is_name(name) or (bar and not (_is_name(trials) or trials.isdigit())):
        raise ParameterError(
            f"the response of a formula must be the name of a column; got {left!r} in {text!r}. Compute others, such "
            f"as logarithms, as a column of the table"
        )
    return name.strip("`"), trials.strip("`") if bar else None


def _summands(right: str, text: str) -> Iterator[str]:
    """Yield the summands of a formula outside of brackets, each but a first one with its sign."""
    depth, start, sign = 0, 0, ""
    for place, character in enumerate(right + "+"):
        depth += (character == "(") - (character == ")")
        if depth < 0 or (place == len(right) and depth > 0):
            raise ParameterError(f"brackets of the formula do not match: {text!r}")
        if depth == 0 and character in "+-":
            piece = right[start:place].strip()
            if not piece and (sign or place == len(right)):
                raise ParameterError(f"the formula has nothing beside a {sign or '~'}: {text!r}")
            if piece:
                yield piece if sign != "-" else f"-{piece}"
            start, sign = place + 1, character


def _is_in_brackets(piece: str) -> bool:
    if not piece.startswith("("):
        return False
    depth = 0
    for place, character in enumerate(piece):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return place == len(piece) - 1
    return False


def _joined(pieces: list[str]) -> str:
    joined = " + ".join(pieces).replace("+ -", "- ")
    return joined or "1"


def _of_bar(inner: str, text: str) -> Iterator[GroupTerm]:
    """Yield the terms of ``effects | group``: several where groups are nested, or are in a sum."""
    effects, bar, group = inner.partition("||") if "||" in inner else inner.partition("|")
    effects, group = effects.strip(), group.strip()
    if not effects or not group or "|" in group:
        raise ParameterError(f"effects of groups are (effects | group); got ({inner}) in {text!r}")
    for part in group.split("+"):
        nested = [own.strip() for own in part.split("/")]
        for depth in range(1, len(nested) + 1):
            by = [own.strip() for level in nested[:depth] for own in level.split(":")]
            strange = next((own for own in by if not _is_name(own)), None)
            if strange is not None:
                raise ParameterError(
                    f"groups are columns, as school, school:class or school/class; got {strange!r} in {text!r}"
                )
            yield GroupTerm(effects, tuple(own.strip("`") for own in by), bar == "|")


def _is_name(text: str) -> bool:
    return text.isidentifier() or (len(text) > 2 and text[0] == text[-1] == "`" and "`" not in text[1:-1])


def terms_of(effects: str) -> Any:
    """Return the terms of a formula of effects as formulaic has them.

    Raises
    ------
    ParameterError
        If it is no formula, or has something else than names, numbers, operators and the known functions.
    ImportError
        If formulaic is not installed.
    """
    try:
        import formulaic
        from formulaic.errors import FormulaicError
    except ImportError as error:
        raise ImportError(
            f"MixedModel needs formulaic to read formulas: {install_command('formula')}"
        ) from error
    try:
        found = formulaic.Formula(effects)
    except (FormulaicError, SyntaxError) as error:
        raise ParameterError(
            f"cannot read {effects!r} as the right side of a formula, such as 'x + z' or 'log(x) * z'"
        ) from error
    if not isinstance(found, formulaic.SimpleFormula):
        raise ParameterError(f"{effects!r} has several parts; the right side of a formula has one")
    for factor in (own for term in found for own in term.factors):
        if factor.eval_method.value == "python":
            _check(factor.expr)
    return found


def _check(expression: str) -> None:
    """Refuse what is more than arithmetic with columns, and known functions of it.

    Raises
    ------
    ParameterError
        If so.
    """
    names = ", ".join((*_OF_FORMULAIC, *FUNCTIONS))
    try:
        nodes = list(ast.walk(ast.parse(expression, mode="eval")))
    except SyntaxError as error:
        raise ParameterError(f"{expression!r} in the formula cannot be read: {error.msg}") from error
    for node in nodes:
        is_known = isinstance(node, _ALLOWED)
        if isinstance(node, ast.Call):
            is_known = _is_known_call(node)
        elif isinstance(node, ast.Constant):
            is_known = type(node.value) in (int, float)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
            is_known = _is_small_power(node)
        if not is_known:
            raise ParameterError(
                f"{expression!r} in the formula is not supported: a formula may have columns, numbers, operators, and "
                f"the functions {names} of one argument. Compute anything else as a column of the table"
            )


def _is_known_call(node: ast.Call) -> bool:
    return (
        isinstance(node.func, ast.Name)
        and node.func.id in (*_OF_FORMULAIC, *FUNCTIONS)
        and len(node.args) == 1
        and not node.keywords
        and (node.func.id != "C" or isinstance(node.args[0], ast.Name))
    )


def _is_small_power(node: ast.BinOp) -> bool:
    """Whether something is a small power of a column: one of numbers alone could take forever."""
    exponent = node.right
    is_small = isinstance(exponent, ast.Constant) and type(exponent.value) in (int, float)
    return (
        is_small
        and abs(exponent.value) <= _LARGEST_POWER  # type: ignore[operator]
        and any(isinstance(own, ast.Name) for own in ast.walk(node.left))
    )


def columns_of(effects: str) -> tuple[set[str], set[str]]:
    """Return the columns that a formula of effects reads, and those of them in ``C(...)``: they are categories."""
    read, categories = set(), set()
    for factor in (own for term in terms_of(effects) for own in term.factors):
        if factor.eval_method.value == "lookup":
            read.add(factor.expr)
        elif factor.eval_method.value == "python":
            nodes = list(ast.walk(ast.parse(factor.expr, mode="eval")))
            functions = {node.func for node in nodes if isinstance(node, ast.Call)}
            read |= {node.id for node in nodes if isinstance(node, ast.Name) and node not in functions}
            categories |= {
                node.args[0].id  # type: ignore[attr-defined]
                for node in nodes
                if isinstance(node, ast.Call) and node.func.id == "C"  # type: ignore[attr-defined]
            }
    return read, categories
