"""Local factors: what is inferred for each row, given the globals.

A local factor takes natural parameters for a block, one column a row of data, and gives expected statistics
in the same layout and the log-partition of each row. Everything is feature-major: (E, B), E rows of
statistics, B rows of data.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import xlogy

from .. import families
from .._typing import AnyArray, Array
from ..families import ExponentialFamily
from ..language import Axis, Variable
from .binding import Binding
from .kernels import Inferred
from .missing import mask_name

__all__ = [
    "CategoricalFactor",
    "FamilyFactor",
    "Gated",
    "GatedFactor",
    "Key",
    "LocalFactor",
    "excluded_labels",
    "own_axes",
]

Key = tuple[Variable, str]


class LocalFactor(ABC):
    """The factor of one or several local variables of a row.

    Attributes
    ----------
    variables
        Whose factor it is.
    axes
        Key (variable, statistic) -> axes of that statistic, the data plate left out.
    rows
        Key -> rows of the (E, B) layout that hold it.
    labelled
        The Categorical among them that is known in part, or None.
    has_unseen
        Whether some of its repetitions have no observation below them, and must count nothing.
    label
        The Categorical among them, or None.
    certain
        Priors so certain that their terms lose digits: entropies are minus the divergence from them, and their terms
        are 0 in the objective. See :func:`.stated_priors.certain_priors`.
    """

    label: Variable | None = None

    def __init__(
        self,
        binding: Binding,
        variables: Sequence[Variable],
        axes: dict[Key, tuple[Axis, ...]],
        certain: Mapping[Variable, ExponentialFamily] | None = None,
    ) -> None:
        self.certain = certain or {}
        self.variables = tuple(variables)
        self.labelled = next((v for v in variables if v in binding.labels), None)
        self.has_unseen = variables[0] in binding.seen
        self._data_plate = binding.data_plate
        self.axes = axes
        self.shapes = {key: tuple(binding.size(axis) for axis in own) for key, own in axes.items()}
        self.rows: dict[Key, slice] = {}
        stop = 0
        for key, shape in self.shapes.items():
            start, stop = stop, stop + int(np.prod(shape, dtype=int))
            self.rows[key] = slice(start, stop)
        self.n_rows = stop

    @property
    def name(self) -> str:
        """Names of its variables, joined."""
        return ",".join(variable.name for variable in self.variables)

    def view(self, values: Array, key: Key) -> Array:
        """Return one statistic of (E, B) values in its own shape, (shape..., B)."""
        return values[self.rows[key]].reshape(*self.shapes[key], -1)

    def own(self, natural: Array, variable: Variable, statistic: str) -> Array:
        """Return one natural parameter of (E, B) values, (shape..., B)."""
        view = self.view(natural, (variable, statistic))
        return view if len(variable.letters[statistic]) < 2 else _symmetric(view)

    def restrict(self, natural: Array, columns: Mapping[str, AnyArray], zeros: Array | None = None) -> None:
        """Give minus infinity to the labels of a Categorical that are excluded, in natural parameters (E, B).

        Parameters
        ----------
        columns
            Of the rows; a Categorical that is known in part has its labels there.
        zeros
            How many known probabilities of zero each statistic meets, (E, B), or None: labels that meet the fewest
            are left. Where these meet any, the row is impossible, and :mod:`.impossible` says so.
        """
        if self.label is None or (self.labelled is None and zeros is None):
            return
        logits = self.view(natural, (self.label, "x"))
        np.copyto(logits, -np.inf, where=self.excluded(columns, zeros))

    def excluded(self, columns: Mapping[str, AnyArray], zeros: Array | None) -> AnyArray:
        """Return which labels of the Categorical are excluded, (plates..., K, B); see :meth:`restrict`."""
        assert self.label is not None
        key = (self.label, "x")
        labels = None if self.labelled is None else columns[self.labelled.name]
        own = None if zeros is None else self.view(zeros, key)
        n_rows = len(labels) if own is None else own.shape[-1]  # type: ignore[arg-type]
        return excluded_labels((*self.shapes[key], n_rows), labels, own)

    def seen(self, columns: Mapping[str, AnyArray]) -> AnyArray | None:
        """Return which repetitions of a block count, (plates..., B), or None if all do."""
        if not self.has_unseen:
            return None
        return np.moveaxis(columns[mask_name(self.variables[0].name)], 0, -1)

    def counted(self, expected: Array, columns: Mapping[str, AnyArray]) -> Array:
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

    @abstractmethod
    def distributions(self, natural: Array) -> dict[Variable, Any]:
        """Return the factors of a block with natural parameters (E, B), batched over its rows first."""


def own_axes(variable: Variable, statistic: str, data_axis: Axis) -> tuple[Axis, ...]:
    """Return the axes of a variable's statistic: its plates but the data plate, then its event axes."""
    plates = tuple(Axis(plate) for plate in variable.plates_of(statistic) if Axis(plate) != data_axis)
    return plates + tuple(Axis(variable, letter) for letter in variable.letters[statistic])


def _symmetric(matrices: Array) -> Array:
    """Return the symmetric part of (..., D, D, B): of m_i x_j, which is all that a symmetric statistic sees."""
    return 0.5 * (matrices + np.swapaxes(matrices, -3, -2))


_FEWER = 1e-9
"""Difference of two counts of zeros, which are weighted with responsibilities, that is none but rounding."""


def excluded_labels(shape: tuple[int, ...], labels: AnyArray | None, zeros: Array | None) -> AnyArray:
    """Return which labels are not the known one, or meet more known probabilities of zero than another label does.

    Parameters
    ----------
    shape
        (plates..., K, B).
    labels
        Known labels, (B, plates...), -1 where unknown, or None.
    zeros
        How many known probabilities of zero each label meets, of that shape, or None.
    """
    excluded = np.zeros(shape, dtype=bool)
    if labels is not None:
        known = np.moveaxis(labels, 0, -1)[..., None, :]
        excluded |= (known >= 0) & (known != np.arange(shape[-2])[:, None])
    if zeros is not None:
        fewest = np.where(excluded, np.inf, zeros).min(axis=-2, keepdims=True)
        excluded |= zeros > fewest + _FEWER
    return excluded


_FLOOR, _CEILING = -600.0, 500.0
"""Between these logits exp is a normal number; NumPy's exp is many times slower where it is not."""


def softmax_inplace(logits: Array) -> Array:
    """Overwrite logits (..., K, B) by probabilities over K; return the log of their sums, (..., B).

    The largest logit of each column is subtracted only where the block's range needs it. Probabilities
    below exp(-300) come out as some number below that, and those of logits of minus infinity as 0.
    """
    if not logits.size:
        return np.zeros((*logits.shape[:-2], logits.shape[-1]))
    lowest, highest = logits.min(), logits.max()
    top = excluded = None
    # a NaN fails both comparisons and takes the careful path
    if not (lowest > _FLOOR and highest < _CEILING):
        excluded = np.isneginf(logits) if lowest == -np.inf else None
        largest = logits.max(axis=-2)
        if not (largest.min() > _FLOOR / 2 and highest < _CEILING):
            top = largest
            np.subtract(logits, top[..., None, :], out=logits)
        np.maximum(logits, _FLOOR, out=logits)
    np.exp(logits, out=logits)
    if excluded is not None:
        np.copyto(logits, 0.0, where=excluded)
    total = np.ones(logits.shape[-2]) @ logits
    np.multiply(logits, (1.0 / total)[..., None, :], out=logits)
    np.log(total, out=total)
    if top is not None:
        total += top
    return total


class CategoricalFactor(LocalFactor):
    """The factor of one local Categorical."""

    def __init__(self, binding: Binding, variable: Variable, data_axis: Axis) -> None:
        super().__init__(binding, [variable], {(variable, "x"): own_axes(variable, "x", data_axis)})
        self.label = variable

    def infer(self, natural: Array) -> Inferred:
        """Overwrite logits by responsibilities."""
        (shape,) = self.shapes.values()
        return Inferred(softmax_inplace(natural.reshape(*shape, -1)), None)

    def distributions(self, natural: Array) -> dict[Variable, Any]:
        """Return the Categorical of each row."""
        expected = natural.copy()
        self.infer(expected)
        (variable,) = self.variables
        return {variable: families.Categorical(np.moveaxis(self.view(expected, (variable, "x")), -1, 0))}


class FamilyFactor(LocalFactor):
    """The factor of one local variable of any family."""

    def __init__(
        self,
        binding: Binding,
        variable: Variable,
        data_axis: Axis,
        certain: Mapping[Variable, ExponentialFamily] | None = None,
    ) -> None:
        axes = {(variable, s): own_axes(variable, s, data_axis) for s in variable.family.statistics}
        super().__init__(binding, [variable], axes, certain)

    def infer(self, natural: Array) -> Inferred:
        """Overwrite natural parameters by expected statistics."""
        (variable,) = self.variables
        arrays = (self._once(natural, variable, s) for s in variable.family.statistics)
        distribution = variable.family.from_natural(tuple(np.moveaxis(array, -1, 0) for array in arrays))
        # before the natural parameters, which the distribution reads where they lie, are overwritten
        log_partition, entropy = distribution.log_partition, self.entropy(variable, distribution)
        expected = distribution.expected_statistics
        for statistic, value in zip(variable.family.statistics, expected, strict=True):
            self.view(natural, (variable, statistic))[...] = np.moveaxis(value, 0, -1)
        return Inferred(np.moveaxis(log_partition, 0, -1), np.moveaxis(entropy, 0, -1))

    def _once(self, natural: Array, variable: Variable, statistic: str) -> Array:
        """Return one natural parameter, (shape..., B), or (shape..., 1) of a matrix that is the same for every row."""
        view = self.view(natural, (variable, statistic))
        if len(variable.letters[statistic]) < 2:
            return view
        # factors of a linear model share one precision, which is then factorised once
        is_shared = np.array_equal(view, np.broadcast_to(view[..., :1], view.shape))
        return _symmetric(view[..., :1] if is_shared else view)

    def infer_shared(self, leading: Array, rest: Array, weights: Array | None) -> tuple[Array, Array]:
        """Overwrite leading natural parameters, (E', B), by expected statistics; the rest are the same for all rows.

        Parameters
        ----------
        rest
            The other natural parameters, shape (E - E',).
        weights
            Of the rows, or None.

        Returns
        -------
        tuple
            Entropy of each row, shape (B,), and the sums over the rows of the other statistics, shape (E - E',).
        """
        (variable,) = self.variables
        start = len(leading)
        natural, own, shared = [], [], []
        for statistic in variable.family.statistics:
            key = variable, statistic
            rows, is_own = self.rows[key], self.rows[key].stop <= start
            values = leading[rows] if is_own else rest[rows.start - start : rows.stop - start]
            (own if is_own else shared).append(statistic)
            values = values.reshape(*self.shapes[key], -1)
            is_matrix = len(variable.letters[statistic]) == 2
            natural.append(np.moveaxis(_symmetric(values) if is_matrix else values, -1, 0))
        distribution = variable.family.from_natural(tuple(natural))
        entropy = distribution.entropy_about_base().reshape(leading.shape[1], -1).sum(axis=1)
        sums = [distribution.summed_statistic(statistic, weights).ravel() for statistic in shared]
        for statistic in own:
            expected = distribution.expected_statistic(statistic)
            self.view(leading, (variable, statistic))[...] = np.moveaxis(expected, 0, -1)
        return entropy, np.concatenate(sums)

    def distributions(self, natural: Array) -> dict[Variable, Any]:
        """Return the family member of each row, batch (B, plates...)."""
        (variable,) = self.variables
        arrays = (self.own(natural, variable, s) for s in variable.family.statistics)
        return {variable: variable.family.from_natural(tuple(np.moveaxis(array, -1, 0) for array in arrays))}


@dataclass(frozen=True)
class Gated:
    """A variable's distribution given each value of a Categorical, and the probabilities of these.

    Attributes
    ----------
    probabilities
        Of the K categories, shape (B, K).
    conditional
        The family member given each category, batch (B, K, plates...).
    """

    probabilities: Array
    conditional: Any

    @property
    def mean(self) -> Array:
        """Mean over the categories, shape (B, plates..., event...)."""
        mean = np.asarray(self.conditional.mean)
        weights = self.probabilities.reshape(self.probabilities.shape + (1,) * (mean.ndim - 2))
        return (weights * mean).sum(axis=1)

    def translate(self, delta: Array) -> Gated:
        """Return the distributions of the variable moved by ``delta``, given each category."""
        return Gated(self.probabilities, self.conditional.translate(delta))


class GatedFactor(LocalFactor):
    """One joint factor q(z) q(t | z) of a local Categorical and the local variables that it gates.

    Its statistics are those of z, and those of each t times the one-hot of z. Given z the factors of the t are their
    families'; their log-partitions enter the log-probabilities of z, so that the joint optimum is exact.
    """

    def __init__(
        self,
        binding: Binding,
        gate: Variable,
        others: Sequence[Variable],
        data_axis: Axis,
        certain: Mapping[Variable, ExponentialFamily] | None = None,
    ) -> None:
        category = Axis(gate, "k")
        axes: dict[Key, tuple[Axis, ...]] = {(gate, "x"): (category,)}
        for variable in others:
            for statistic in variable.family.statistics:
                axes[variable, statistic] = (category, *own_axes(variable, statistic, data_axis))
        super().__init__(binding, [gate, *others], axes, certain)
        self.gate = self.label = gate
        self.category = category

    def _conditionals(self, natural: Array) -> dict[Variable, Any]:
        """Return the family member of each gated variable, batch (K, B, plates...)."""
        conditionals = {}
        for variable in self.variables[1:]:
            arrays = (self.own(natural, variable, s) for s in variable.family.statistics)
            conditionals[variable] = variable.family.from_natural(
                tuple(np.moveaxis(a, -1, 1) for a in arrays)
            )
        return conditionals

    def infer(self, natural: Array) -> Inferred:
        """Overwrite natural parameters by expected statistics."""
        logits = self.view(natural, (self.gate, "x"))
        conditionals = self._conditionals(natural)
        entropies = np.zeros(logits.shape)
        for variable, distribution in conditionals.items():
            logits += distribution.log_partition.reshape(*logits.shape, -1).sum(axis=-1)
            entropies += self.entropy(variable, distribution).reshape(*logits.shape, -1).sum(axis=-1)
        log_normaliser = softmax_inplace(logits)
        entropy = (logits * entropies - xlogy(logits, logits)).sum(axis=0)
        for variable, distribution in conditionals.items():
            for statistic, value in zip(
                variable.family.statistics, distribution.expected_statistics, strict=True
            ):
                view = self.view(natural, (variable, statistic))
                weights = logits.reshape(len(logits), *(1,) * (view.ndim - 2), -1)
                np.multiply(np.moveaxis(value, 1, -1), weights, out=view)
        return Inferred(log_normaliser, entropy)

    def distributions(self, natural: Array) -> dict[Variable, Any]:
        """Return the Categorical of each row, and each gated variable given its categories."""
        logits = self.view(natural, (self.gate, "x")).copy()
        conditionals = self._conditionals(natural)
        for distribution in conditionals.values():
            logits += distribution.log_partition.reshape(*logits.shape, -1).sum(axis=-1)
        softmax_inplace(logits)
        probabilities = np.ascontiguousarray(logits.T)
        found: dict[Variable, Any] = {self.gate: families.Categorical(probabilities)}
        for variable in self.variables[1:]:
            arrays = (self.own(natural, variable, s) for s in variable.family.statistics)
            by_row = variable.family.from_natural(tuple(np.moveaxis(a, -1, 0) for a in arrays))
            found[variable] = Gated(probabilities, by_row)
        return found
