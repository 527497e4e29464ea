"""Matrices of effects: what a formula makes of the columns of a table, the same for new rows as in the fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..._errors import DataError, ParameterError
from ..._typing import AnyArray, Array
from .columns import Rows, levels_of, mean_and_sd, refuse_unseen, refuse_written_otherwise
from .formula import Formula, GroupTerm, columns_of, of_offset, terms_of
from .functions import context, plain, restored

_COLLINEAR = 1e-9
"""Share of a column, beyond the columns before it, below which it is a combination of these."""

_FAR = 1e5
"""Standard deviations from zero beyond which the bound of a fit would be off by more than a thousandth."""

COMMON = "common effects"
"""The variable of the coefficients that all rows share."""

INTERCEPT = "Intercept"

_AWAY = 3.0
"""Standard deviations from zero beyond which slopes of groups are measured from the mean of their column."""

_LOST = 1e3
"""Standard deviations from zero beyond which common slopes are, for the digits of their squares."""

NEW = "(new)"
"""The group in which rows of groups that the fit has not seen are placed."""


@dataclass(frozen=True, eq=False)
class Encoding:
    """How columns become matrices of effects.

    Attributes
    ----------
    formula
        The formula.
    levels
        Name of a column of categories -> its levels; the first one is the reference.
    groups
        What the groups of a term are called -> their names, without the place for new ones.
    centres
        Name of a term with intercepts and slopes -> column -> from where its slopes are measured, for columns far from
        zero.
    has_thresholds
        Whether thresholds of the response take the place of the intercept.
    states
        Call of a function of a whole column, such as ``scale(x)`` -> what it took from the rows of the fit.
    """

    formula: Formula
    levels: Mapping[str, Sequence[str]]
    groups: Mapping[str, Sequence[str]]
    centres: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    has_thresholds: bool = False
    states: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, formula: Formula, rows: Rows, *, has_thresholds: bool = False) -> Encoding:
        """Return the encoding that the columns of a fit give."""
        levels: dict[str, Sequence[str]] = {}
        read = {effects: columns_of(effects) for effects in formula.effects}
        for own in read.values():
            for name in sorted(own.columns):
                if name not in own.categories:
                    rows.refuse_written_numbers(name)
                if name in own.categories or rows.are_texts(name):
                    levels[name] = levels_of(*rows.labels(name))
        groups = {own.group: levels_of(*_labels(own, rows)) for own in formula.groups}
        taken = next((name for name, own in groups.items() if NEW in own), None)
        if taken is not None:
            raise DataError(
                f"'{taken}' has a group called {NEW!r}, which is the name of new groups; rename it"
            )
        if INTERCEPT in set().union(*(own.columns for own in read.values())):
            raise DataError(
                f"a column of the formula has the name of the intercept, {INTERCEPT!r}; rename it"
            )
        found = cls(formula, levels, groups, has_thresholds=has_thresholds)
        states: dict[str, Any] = {}
        for effects, own in read.items():
            if own.is_stateful:
                states |= found._evaluated(effects, rows).model_spec.transform_state
        return replace(found, states=plain(states))

    def centred(self, rows: Rows, weights: Array | None) -> Encoding:
        """Return the encoding in which slopes along columns far from zero are measured from their means.

        There the intercepts of groups would be lines extended to where no data are: they and the slopes would be
        correlated to almost 1, and the prior of either would decide about the other. The prior of common effects is the
        same wherever they are measured from, and only digits are lost.
        """
        common = {} if self.has_thresholds else {COMMON: (self.formula.common, _LOST)}
        of_groups = {name_of(term): (term.effects, _AWAY) for term in self.formula.groups}
        found: dict[str, dict[str, float]] = {}
        for term, (effects, most) in {**common, **of_groups}.items():
            matrix, names = self.matrix(effects, rows)
            if INTERCEPT not in names:
                continue
            means, sds = mean_and_sd(matrix, weights)
            far = {
                name: float(mean)
                for name, mean, sd in zip(names, means, sds, strict=True)
                if name != INTERCEPT and abs(mean) > most * sd > 0
            }
            if far:
                found[term] = far
        return replace(self, centres=found)

    def measured(self, term: str, matrix: Array, names: Sequence[str]) -> Array:
        """Return the columns of a term, those far from zero less their means."""
        centres = self.centres.get(term, {})
        return matrix - np.array([centres.get(name, 0.0) for name in names]) if centres else matrix

    @property
    def group_names(self) -> dict[str, list[str]]:
        """What the groups of a term are called -> their names, with the place for new ones."""
        return {name: [*own, NEW] for name, own in self.groups.items()}

    @property
    def read(self) -> set[str]:
        """The columns that the formula reads, without the response."""
        return self.formula.read

    def offset(self, rows: Rows) -> Array | None:
        """Return what offsets add to the predictor of each row; None without any.

        Raises
        ------
        DataError, ParameterError
            As :meth:`matrix`; or if an offset is not a number.
        """
        parts = []
        for own in self.formula.offsets:
            matrix, names = self.matrix(of_offset(own), rows)
            texts = [name for name in columns_of(of_offset(own)).columns if name in self.levels]
            if texts or len(names) != 1:
                raise ParameterError(
                    f"offset({own}) needs one number for each row, such as offset(log(days))"
                )
            parts.append(matrix[:, 0])
        return np.sum(parts, axis=0) if parts else None

    def matrix(self, effects: str, rows: Rows) -> tuple[Array, list[str]]:
        """Return the matrix of a formula of effects, and the names of its columns.

        Raises
        ------
        DataError
            If a column is missing or lacks values, or a level was not in the fit.
        """
        found = self._evaluated(effects, rows)
        if found is None:
            return np.zeros((self.n_rows(rows), 0)), []
        values = np.asarray(found, dtype=np.float64)
        wrong = np.argwhere(~np.isfinite(values))
        names = ["Intercept" if own == "Intercept" else str(own) for own in found.columns]
        if len(wrong):
            row, column = wrong[0]
            raise DataError(f"{names[column]} of the formula is {values[row, column]} in row {row}")
        return values, names

    def _evaluated(self, effects: str, rows: Rows) -> Any:
        """Return the matrix of a formula of effects as formulaic has it; None without effects."""
        import formulaic
        import pandas as pd
        from formulaic.errors import FormulaicError

        terms, columns = terms_of(effects), {}
        for name in sorted(columns_of(effects).columns):
            if name in self.levels:
                texts, _ = rows.labels(name)
                refuse_unseen(name, texts, self.levels[name])
                columns[name] = pd.Categorical(texts, self.levels[name])
            else:
                columns[name] = rows.numbers(name)
        if not list(terms):
            return None
        spec = formulaic.ModelSpec.from_spec(terms, transform_state=restored(self.states), na_action="ignore")
        table = pd.DataFrame(columns, index=pd.RangeIndex(self.n_rows(rows)))
        try:
            with np.errstate(all="ignore"):
                return spec.get_model_matrix(table, context=context())
        except (FormulaicError, ValueError) as error:
            # formulaic raises ValueError for a base of a coding that is not a category
            raise DataError(f"cannot compute {effects!r} for these rows: {error}") from error

    def common(self, rows: Rows) -> tuple[Array, list[str]]:
        """Return the matrix of the common effects, and their names.

        Raises
        ------
        DataError
            As :meth:`matrix`; or if there is no intercept whose place thresholds could take.
        """
        matrix, names = self.matrix(self.formula.common, rows)
        if not self.has_thresholds:
            return self.measured(COMMON, matrix, names), names
        if "Intercept" not in names:
            raise DataError(
                "the thresholds of an ordinal response replace the intercept; leave 0 (or -1) out of the "
                "formula"
            )
        if len(names) == 1:
            raise DataError("the formula has no common effects; add a column")
        kept = [place for place, name in enumerate(names) if name != "Intercept"]
        return matrix[:, kept], [names[place] for place in kept]

    def n_rows(self, rows: Rows) -> int:
        """Return the number of rows, as the first column that the formula reads has it."""
        read = sorted(columns_of(self.formula.common).columns) + [
            own for term in self.formula.groups for own in term.by if own in rows.names
        ]
        return len(rows.column(read[0])) if read else rows.n_rows

    def unseen(self, term: GroupTerm, rows: Rows) -> list[str]:
        """Return the groups of rows that the fit did not have, in order; a row without a group has none."""
        found = _labels_that_are_there(term, rows).tolist()
        new = {text for text in found if text is not None} - set(self.groups[term.group])
        return levels_of(np.array(sorted(new), dtype=object), None)

    def places(
        self, term: GroupTerm, rows: Rows, *, known: bool = True, may_lack: bool = False
    ) -> tuple[AnyArray, AnyArray]:
        """Return the name of each row's group, that of new groups where the fit had none, and where that is so.

        Parameters
        ----------
        known
            Whether groups of the fit are known; else all are new, and their columns are not read.
        may_lack
            Whether a row may lack its group, which is a new one then.
        """
        if not known:
            is_new = np.ones(self.n_rows(rows), dtype=bool)
            return np.full(len(is_new), NEW, dtype=object), is_new
        own = set(self.groups[term.group])
        texts = _labels_that_are_there(term, rows) if may_lack else _labels(term, rows)[0]
        is_new = np.array([text not in own for text in texts.tolist()], dtype=bool)
        refuse_written_otherwise(term.group, texts, is_new, self.groups[term.group])
        return np.where(is_new, NEW, texts).astype(object), is_new


def _labels(term: GroupTerm, rows: Rows) -> tuple[AnyArray, list[str] | None]:
    """Return the group of each row as a text, as ``Lincoln:2b``, and the order of the groups, if the type has one."""
    if len(term.by) == 1:
        return rows.labels(term.by[0])
    parts = [map(_escaped, rows.labels(name)[0].tolist()) for name in term.by]
    texts = [":".join(own) for own in zip(*parts, strict=True)]
    return np.array(texts, dtype=object), None


def _labels_that_are_there(term: GroupTerm, rows: Rows) -> AnyArray:
    """Return the same texts, None in rows that lack one of the columns."""
    if len(term.by) == 1:
        return rows.labels_that_are_there(term.by[0])
    parts = zip(*(rows.labels_that_are_there(name).tolist() for name in term.by), strict=True)
    texts = [None if None in own else ":".join(map(_escaped, own)) for own in parts]
    return np.array(texts, dtype=object)


def _escaped(text: str) -> str:
    r"""Return a text with its colons as ``\:``, to give combinations of groups different names."""
    return text.replace("\\", "\\\\").replace(":", "\\:")


def name_of(term: GroupTerm) -> str:
    """Return the name of a term, as its correlated effects are called."""
    return f"{term.effects} | {term.group}"


def refuse_collinear(matrix: Array, names: Sequence[str]) -> None:
    """Refuse a matrix with a column that is a combination of those before it.

    Raises
    ------
    DataError
        If there is one; the message names it.
    """
    scales = np.sqrt((matrix**2).mean(axis=0))
    basis: list[Array] = []
    for column, name in enumerate(names):
        if scales[column] == 0:
            raise DataError(f"the column {name!r} of the formula is 0 in all rows; {_instead_of(name)}")
        left = matrix[:, column] / scales[column]
        size = np.linalg.norm(left)
        for _ in range(2):
            for own in basis:
                left = left - own * (own @ left)
        if np.linalg.norm(left) <= _COLLINEAR * size:
            told = (
                "constant, as the intercept is"
                if np.ptp(matrix[:, column]) == 0
                else (f"a combination of the columns before it ({', '.join(map(repr, names[:column]))})")
            )
            raise DataError(f"the column {name!r} of the formula is {told}; {_instead_of(name)}")
        basis.append(left / np.linalg.norm(left))


def _instead_of(name: str) -> str:
    """Return what to do about a column without information: products of levels cannot be left out one by one."""
    if ":" not in name or "[" not in name:
        return "leave it out"
    return (
        "some combination of levels has no rows: leave out this interaction, or write one column of the combinations "
        "that occur, as of table['a'] + ' ' + table['b'], in the place of a * b"
    )


def refuse_far(matrix: Array, names: Sequence[str]) -> None:
    """Refuse columns so far from zero that their squares lose what they vary by.

    Raises
    ------
    DataError
        If there is one; the message names it.
    """
    for values, name in zip(matrix.T, names, strict=True):
        mean, sd = abs(values.mean()), values.std()
        if np.ptp(values) > 0 and mean > _FAR * sd:
            raise DataError(
                f"'{name}' is {mean / sd:.0e} standard deviations from zero, where digits are lost: its mean is "
                f"{values.mean():g} and its standard deviation {sd:g}. Subtract a number near the mean"
            )


def refuse_useless_groups(term: GroupTerm, texts: Any, n_levels: int, n_rows: int) -> None:
    """Refuse groups without information.

    Raises
    ------
    DataError
        If there is one group, or each row is a group.
    """
    if n_levels < 2:
        raise DataError(
            f"({term.effects} | {term.group}) needs at least 2 groups; '{term.group}' has only {texts[0]!r}"
        )
    if n_levels == n_rows:
        raise DataError(
            f"({term.effects} | {term.group}): each of the {n_rows} rows is a separate group, so effects "
            f"and noise cannot be distinguished; leave this term out"
        )
