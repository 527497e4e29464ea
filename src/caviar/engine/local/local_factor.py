"""Local factors: what is inferred for each row, given the globals.

A local factor takes natural parameters for a block, one column a row of data, and gives expected statistics
in the same layout and the log-partition of each row. Everything is feature-major: (E, B), E rows of
statistics, B rows of data.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..._typing import AnyArray, Array
from ...families import ExponentialFamily
from ...language import Axis, Variable
from ..binding.evidence import Evidence
from ..design.contraction import Contraction
from ..design.features import Feature, feature_major
from ..design.inferred import Inferred
from ..design.keys import ColumnKey, FactorKey, StatisticKey, SumKey


class LocalFactor(ABC):
    """The factor of one or several local variables of a row.

    Parameters
    ----------
    variables
        Whose factor it is.
    evidence
        What is known of each of them.
    axes
        Key of a statistic -> axes of that statistic, the data plate left out.
    size
        Returns the size of an axis.
    certain
        See below.

    Attributes
    ----------
    variables
        Whose factor it is.
    key
        What it is found by among others.
    axes
        Key of a statistic -> axes of that statistic, the data plate left out.
    rows
        Key -> rows of the (E, B) layout that hold it.
    labelled
        Those among them that are known in part.
    has_unseen
        Whether some of its repetitions have no observation below them, and must count nothing.
    labels
        The Categoricals among them, unless they are none of a factor of its own kind.
    categories
        The axes of their categories, where they switch other variables or share the factor; none of other factors.
    certain
        Priors so certain that their terms lose digits: entropies are minus the divergence from them, and their terms
        are 0 in the objective. See :func:`~caviar.engine.compiled.stated_priors.certain_priors`.
    """

    labels: tuple[Variable, ...] = ()
    categories: tuple[Axis, ...] = ()
    counts_apart: ClassVar[bool] = False
    """Whether its variables may count in different repetitions."""
    couples: ClassVar[bool] = False
    """Whether parts of it depend on each other, so that an update goes on from its statistics before."""

    def __init__(
        self,
        variables: Sequence[Variable],
        evidence: Sequence[Evidence],
        axes: dict[StatisticKey, tuple[Axis, ...]],
        size: Callable[[Axis], int],
        certain: Mapping[Variable, ExponentialFamily] | None = None,
    ) -> None:
        self.certain = certain or {}
        self.variables = tuple(variables)
        self.key: FactorKey = variables[0].name
        known = zip(variables, evidence, strict=True)
        self.labelled = tuple(variable for variable, own in known if own.in_part is not None)
        self.has_unseen = evidence[0].active is not None
        self.axes = axes
        self.shapes = {key: tuple(map(size, own)) for key, own in axes.items()}
        self.rows: dict[StatisticKey, slice] = {}
        stop = 0
        for key, shape in self.shapes.items():
            start, stop = stop, stop + int(np.prod(shape, dtype=int))
            self.rows[key] = slice(start, stop)
        self.n_rows = stop

    @property
    def name(self) -> str:
        """Names of its variables, joined."""
        return ",".join(variable.name for variable in self.variables)

    @property
    def one_hots(self) -> Collection[StatisticKey]:
        """The statistics of which exactly one is 1 in a row: those of its labels, and of sets of them."""
        return ()

    @property
    def values(self) -> Array | None:
        """Statistics (E, V) of each value of a label, or of a number 0 or 1, of a row; None for other factors."""
        return None

    def view(self, values: Array, key: StatisticKey) -> Array:
        """Return one statistic of (E, B) values in its own shape, (shape..., B)."""
        return values[self.rows[key]].reshape(*self.shapes[key], -1)

    def own(self, natural: Array, variable: Variable, statistic: str) -> Array:
        """Return one natural parameter of (E, B) values, (shape..., B)."""
        view = self.view(natural, StatisticKey(variable.name, statistic))
        return view if len(variable.letters[statistic]) < 2 else symmetric(view)

    def shares(self, natural: Array) -> Array | None:
        """Return how probable each combination of labels is whose distributions the others have, (K, ..., B).

        None if the others have one distribution.

        Parameters
        ----------
        natural
            Natural parameters (E, B).
        """
        return None

    def restrict(
        self, natural: Array, columns: Mapping[ColumnKey, AnyArray], zeros: Array | None = None
    ) -> None:
        """Give minus infinity to the labels of a Categorical that are excluded, in natural parameters (E, B).

        Parameters
        ----------
        columns
            Of the rows; a Categorical that is known in part has its labels there.
        zeros
            How many known probabilities of zero each statistic meets, (E, B), or None: labels that meet the fewest
            are left. Where these meet any, the row is impossible, and :mod:`~caviar.engine.ascent.impossible` says so.
        """
        if not self.labels or not (self.labelled or zeros is not None):
            return
        np.copyto(self.choices(natural), -np.inf, where=self.excluded(columns, zeros))

    def scores(self, natural: Array, values: Array) -> Array:
        """Return what each of its few values (E, V) adds to the log density of each row, (V, B).

        Labels that are excluded have minus infinity in natural parameters (E, B), which counts in their own score only.
        """
        return np.stack([natural[value != 0].sum(axis=0) for value in values.T])

    def with_known(self, expected: Array, columns: Mapping[ColumnKey, AnyArray]) -> Array:
        """Return expected statistics (E, B) with those of known numbers in their places; a guess has labels right."""
        return expected

    def excluded(self, columns: Mapping[ColumnKey, AnyArray], zeros: Array | None) -> AnyArray:
        """Return which labels, or combinations of labels, are excluded, (plates..., K, B); see :meth:`restrict`.

        These are not the known ones, or meet more known probabilities of zero than another does.
        """
        excluded = self.not_known(columns)
        if zeros is not None:
            met = self.met(zeros)
            excluded = excluded | meets_more(np.where(excluded, np.inf, met))
        return excluded

    def choices(self, values: Array) -> Array:
        """Return the view of (E, B) values that has a number for each label, or combination, (plates..., K, B)."""
        (label,) = self.labels
        return self.view(values, StatisticKey(label.name, "x"))

    def met(self, values: Array) -> Array:
        """Return the sum of the values (E, B) that each label, or combination of labels, meets, (plates..., K, B)."""
        return self.choices(values)

    def not_known(self, columns: Mapping[ColumnKey, AnyArray]) -> AnyArray:
        """Return which labels, or combinations of labels, are not the known ones, (plates..., K, B) or of length 1."""
        if not self.labelled:
            return np.zeros((1, 1), dtype=bool)
        (label,) = self.labelled
        return is_other(columns[ColumnKey(label.name)], label.dimension or 1)

    def seen(self, columns: Mapping[ColumnKey, AnyArray]) -> AnyArray | None:
        """Return which repetitions of a block count, (plates..., B), or None if all do."""
        if not self.has_unseen:
            return None
        return feature_major(columns[ColumnKey(self.variables[0].name).observed])

    def counted(self, expected: Array, columns: Mapping[ColumnKey, AnyArray]) -> Array:
        """Return expected statistics (E, B) with zeros where a repetition does not count."""
        seen = self.seen(columns)
        if seen is None:
            return expected
        counted = expected.copy()
        for key in self.rows:
            view = self.view(counted, key)
            view *= seen.reshape(*seen.shape[:-1], *(1,) * (view.ndim - seen.ndim), -1)
        return counted

    def entropy(self, variable: Variable, distribution: ExponentialFamily) -> Array:
        """Return the entropy of a variable's distributions, or minus their divergence from a certain prior."""
        prior = self.certain.get(variable)
        return distribution.entropy_about_base() if prior is None else -distribution.kl(prior)

    @abstractmethod
    def infer(self, natural: Array) -> Inferred:
        """Overwrite natural parameters (E, B) by expected statistics."""

    def infer_from(self, natural: Array, before: Array | None) -> Inferred:
        """Overwrite natural parameters (E, B) by expected statistics, from those before if it couples."""
        return self.infer(natural)

    def natural_at(self, natural: Array, expected: Array) -> Array:
        """Return natural parameters (E, B) from which :meth:`infer` gives these statistics, which it went on to."""
        return natural

    @abstractmethod
    def response(self, natural: Array, expected: Array) -> Callable[[Array], Array]:
        """Return how expected statistics change with the natural parameters: what multiplies by their covariance.

        Parameters
        ----------
        natural, expected
            Of a block, (E, B) both.

        Returns
        -------
        Callable
            Change of the natural parameters, (E, B) -> change of the expected statistics, (E, B).
        """

    @abstractmethod
    def distributions(self, natural: Array) -> dict[Variable, Any]:
        """Return the factors of a block with natural parameters (E, B), batched over its rows first."""


@dataclass(frozen=True, eq=False)
class Part:
    """What a term needs of the rows: a sum over the data plate.

    Attributes
    ----------
    key
        What the sum, and its coefficient, are found by.
    shape
        Of the sum.
    factor
        The local factor whose matrix product yields it; None for a part without local variables.
    stat
        The statistic of that factor, as its key.
    feature
        The feature that the statistic is multiplied with; None if the part is not fused.
    labels
        Where the feature says which combination of labels a row has: the label of each combination that it is summed
        by. Else None.
    """

    key: SumKey
    shape: tuple[int, ...]
    factor: LocalFactor | None
    stat: StatisticKey | None
    feature: Feature | None
    labels: AnyArray | None = None

    @property
    def rows(self) -> slice:
        """Rows of the factor's matrix product that yield it."""
        if self.factor is None or self.stat is None:
            return slice(0, 1)
        return self.factor.rows[self.stat]


@dataclass(frozen=True, eq=False)
class LocalTerm:
    """The local side of terms that are not fused: sums over rows and messages to local factors.

    Attributes
    ----------
    owner
        The variable whose density they are in.
    contraction
        Coefficient of the first part x local statistics x data, over all axes with the data plate.
    features
        The known values among its operands, as features.
    parts
        Its sum. Of terms that differ in what is looked up alone, as x a[i] + x b[j], the sum of each.
    look_ups
        For each part a wide feature that is left out of the contraction, which then has the rows in the place of the
        last axis of the part; none where the contraction is the whole.
    """

    owner: Variable
    contraction: Contraction
    features: tuple[Feature, ...]
    parts: tuple[Part, ...]
    look_ups: tuple[Feature, ...] = ()


def own_axes(variable: Variable, statistic: str, data_axis: Axis) -> tuple[Axis, ...]:
    """Return the axes of a variable's statistic: its plates but the data plate, then its event axes."""
    plates = tuple(Axis(plate) for plate in variable.plates_of(statistic) if Axis(plate) != data_axis)
    return plates + tuple(Axis(variable, letter) for letter in variable.letters[statistic])


def symmetric(matrices: Array) -> Array:
    """Return the symmetric part of (..., D, D, B): of m_i x_j, which is all that a symmetric statistic sees."""
    return 0.5 * (matrices + np.swapaxes(matrices, -3, -2))


def is_other(labels: AnyArray, n_categories: int) -> AnyArray:
    """Return which categories a label is known not to be, (plates..., K, B), from labels (B, plates...), -1 unknown."""
    known = feature_major(labels)[..., None, :]
    return (known >= 0) & (known != np.arange(n_categories)[:, None])


def meets_more(zeros: Array) -> AnyArray:
    """Return which labels meet more known probabilities of zero than another one does, (..., K, B) both."""
    return zeros > zeros.min(axis=-2, keepdims=True) + _FEWER


_FEWER = 1e-9
"""Difference of two counts of zeros, which are weighted with responsibilities, that is none but rounding."""
