"""Formulas as in lme4: the response, the common effects, and the effects of groups.

formulaic reads the common effects and what is left of a bar; the bars, the response and offsets are read here. Only
names, numbers, operators and the functions of :mod:`.functions` may be in a formula, so that one that comes from a file
cannot run anything else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..._errors import ParameterError
from ..._extras import install_command
from .functions import Read, read_expression

_PROPORTIONS = ("prop", "proportion", "p")
_EXAMPLE = "'y ~ x * z + (1 | school) + (x | school/class)'"


_DOTTED = re.compile(
    r"""`[^`]*`|'[^']*'|"[^"]*"|(?<![\w.])(?!(?:np|contr)\.)(?P<name>[^\W\d]\w*(?:\.[^\W\d]\w*)+)(?!\s*[\w.(])"""
)
"""Names with dots, which are columns unless they are functions or codings; and quotes, which may contain such names."""


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
        Columns whose sum is the number of trials of a binomial response, or one whole number; empty without.
    common
        The formula of the common effects.
    groups
        Effects of groups, in their order.
    offsets
        Expressions that are added to the predictor as they are.
    """

    response: str
    trials: tuple[str, ...]
    common: str
    groups: tuple[GroupTerm, ...]
    offsets: tuple[str, ...] = ()

    @property
    def read(self) -> set[str]:
        """The columns that it reads, without the response and its trials."""
        own = {name for each in self.effects for name in columns_of(each).columns}
        return own | {name for term in self.groups for name in term.by}

    @property
    def effects(self) -> list[str]:
        """The formulas of effects: common ones, those of groups, and offsets, whose coefficient is known."""
        return [self.common, *(own.effects for own in self.groups), *map(of_offset, self.offsets)]


def read(text: Any) -> Formula:
    """Return a formula, read.

    Raises
    ------
    ParameterError
        If it is not a formula; the message says where.

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
    common, groups, offsets = [], [], []
    for piece in _summands(right, text):
        inner = piece[1:-1].strip() if _is_in_brackets(piece) else piece
        if "|" in inner:
            if inner is piece:
                raise ParameterError(
                    f"effects of groups need brackets, as (1 | school); formula has {piece!r}"
                )
            groups += list(_of_bar(inner, text))
        elif piece.startswith("-offset("):
            raise ParameterError(
                f"an offset cannot be subtracted; formula has - {piece[1:]!r}: write {_negated(piece)!r}"
            )
        elif piece.startswith("offset(") and piece.endswith(")"):
            offsets.append(_inside(piece))
        else:
            common.append(piece)
    terms = tuple(dict.fromkeys(groups))
    return Formula(response, trials, _joined(common), terms, tuple(offsets))


def _response(left: str, text: str) -> tuple[str, tuple[str, ...]]:
    """Return the column of the response, and those of its trials.

    A binomial response is ``k | trials(n)`` as in brms, ``prop(k, n)`` or ``p(k, n)`` as in bambi, or as in lme4
    ``cbind(k, n - k)``, where failures may be a column too.
    """
    name, trials = left, ()
    successes, bar, own = (part.strip() for part in left.partition("|"))
    call, open_, inside = (part.strip() for part in left.partition("("))
    if bar:
        if not (own.startswith("trials(") and own.endswith(")")):
            raise ParameterError(
                f"the response of a formula is a column, or 'successes | trials(n)'; got {left!r} in {text!r}"
            )
        name, trials = successes, (own[len("trials(") : -1].strip(),)
    elif open_ and inside.endswith(")") and call in (*_PROPORTIONS, "cbind") and inside.count(",") == 1:
        name, second = (part.strip() for part in inside[:-1].split(","))
        total, minus, rest = (part.strip() for part in second.partition("-"))
        if call in _PROPORTIONS:
            trials = (second,)
        else:
            trials = (total,) if minus and rest == name else (name, second)
    if not _is_name(name) or not all(_is_name(each) or each.isdigit() for each in trials):
        raise ParameterError(
            f"the response of a formula is the name of a column, or 'k | trials(n)', 'prop(k, n)' or "
            f"'cbind(k, n - k)' of columns; got {left!r} in {text!r}. Compute others, such as logarithms, as a column "
            f"of the table"
        )
    return name.strip("`"), tuple(each.strip("`") for each in trials)


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
                raise ParameterError(f"the formula has nothing after a {sign or '~'}: {text!r}")
            if piece:
                yield piece if sign != "-" else f"-{piece}"
            start, sign = place + 1, character


def _inside(offset: str) -> str:
    return offset[offset.index("(") + 1 : -1].strip()


def _negated(offset: str) -> str:
    return f"offset(-({_inside(offset)}))"


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
        raise ParameterError(
            f"effects of groups must have the form (effects | group); got ({inner}) in {text!r}"
        )
    for part in group.split("+"):
        nested = [own.strip() for own in part.split("/")]
        for depth in range(1, len(nested) + 1):
            by = [own.strip() for level in nested[:depth] for own in level.split(":")]
            strange = next((own for own in by if not _is_name(own)), None)
            if strange is not None:
                raise ParameterError(
                    f"groups must be columns, such as school, school:class or school/class; got {strange!r} in {text!r}"
                )
            yield GroupTerm(effects, tuple(own.strip("`") for own in by), bar == "|")


def _is_name(text: str) -> bool:
    # as in R, a name may have dots, such as Sepal.Length
    is_plain = all(part.isidentifier() for part in text.split("."))
    return is_plain or (len(text) > 2 and text[0] == text[-1] == "`" and "`" not in text[1:-1])


def terms_of(effects: str) -> Any:
    """Return the terms of a formula of effects as formulaic has them.

    Raises
    ------
    ParameterError
        If it is not a formula, has something else than names, numbers, operators and the known functions, or has a
        power of a single term.
    ImportError
        If formulaic is not installed.
    """
    try:
        import formulaic
        from formulaic.errors import FormulaicError
        from formulaic.parser import DefaultFormulaParser
    except ImportError as error:
        raise ImportError(
            f"MixedModel needs formulaic to read formulas: {install_command('formula')}"
        ) from error
    try:
        text = _DOTTED.sub(_in_backticks, effects)
        found = formulaic.Formula(text)
        _refuse_powers(DefaultFormulaParser().get_ast(text))
    except (FormulaicError, SyntaxError) as error:
        raise ParameterError(
            f"cannot read {effects!r} as the right side of a formula, such as 'x + z' or 'log(x) * z'; names with "
            f"spaces or signs need backticks, as `body mass`"
        ) from error
    if not isinstance(found, formulaic.SimpleFormula):
        raise ParameterError(f"{effects!r} has several parts; the right side of a formula has one")
    for factor in (own for term in found for own in term.factors):
        if factor.eval_method.value == "python":
            read_expression(factor.expr)
    return found


def _refuse_powers(node: Any) -> None:
    """Refuse powers of a single term in a formula that is parsed, which are the term itself.

    Raises
    ------
    ParameterError
        If there is one; it says how the power of numbers is written.
    """
    arguments = getattr(node, "args", ())
    for argument in arguments:
        _refuse_powers(argument)
    if len(arguments) < 2 or node.operator.symbol not in ("**", "^"):
        return
    terms = [term for term in arguments[0].to_terms() if str(term) != "1"]
    if len(terms) == 1:
        names = [_shown(factor) for factor in terms[0].factors]
        base = ":".join(names)
        value = names[0] if len(names) == 1 else f"({' * '.join(names)})"
        raise ParameterError(
            f"a power of {base} is {base} itself in a formula: powers are those of sums, as (x + z)**2, which adds "
            f"x:z. Write I({value}**{arguments[1]}) for the power of numbers, or "
            f"leave the power out"
        )


def _shown(factor: Any) -> str:
    """Return a factor of a term as a formula has it."""
    is_odd = factor.eval_method.value == "lookup" and not _is_name(factor.expr)
    return f"`{factor.expr}`" if is_odd else str(factor.expr)


def _in_backticks(found: re.Match[str]) -> str:
    """Return a name with dots in backticks, and what else was found as it is."""
    return found[0] if found["name"] is None else f"`{found['name']}`"


def of_offset(offset: str) -> str:
    """Return an offset as a formula of one column."""
    return f"0 + I({offset})"


def columns_of(effects: str) -> Read:
    """Return what a formula of effects reads: its columns, and those of them that are categories."""
    read = Read()
    for factor in (own for term in terms_of(effects) for own in term.factors):
        if factor.eval_method.value == "lookup":
            read.columns.add(factor.expr)
        elif factor.eval_method.value == "python":
            own = read_expression(factor.expr)
            read.columns |= own.columns
            read.categories |= own.categories
            read.is_stateful |= own.is_stateful
    return read
