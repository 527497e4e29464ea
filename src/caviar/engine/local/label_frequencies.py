r"""The factor of the labels of a group and of their frequencies: a product over the labels, updated one by one.

With weights :math:`w_n` and what terms say of the frequencies, natural parameters h and P of f and ff', that is

.. math::
    \log q(z_n = k) = \ell_{nk} + w_n h_k + w_n^2 P_{kk} + 2 w_n \sum_l P_{kl} \sum_{m \ne n} w_m \phi_{ml}

up to a constant. Each label is at its optimum given the others, so no sweep lowers the ELBO.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.special import xlogy

from ... import families
from ..._errors import DataError, ModelError
from ..._typing import AnyArray, Array
from ...language import Axis, Frequencies, Variable
from ...language.nodes.roles import one_hot
from ..binding.bound_model import BoundModel
from ..design.features import feature_major, row_major
from ..design.inferred import Inferred
from ..design.keys import ColumnKey, StatisticKey
from .categorical import responding, softmax_inplace
from .local_factor import LocalFactor, own_axes

_MOST_SWEEPS = 200
_SETTLED = 1e-10
"""Change of a probability from one sweep to the next at which sweeps from nothing end."""


class FrequenciesFactor(LocalFactor):
    """The factor of the labels of each row, and of their frequencies.

    Parameters
    ----------
    variable
        The frequencies.
    bound
        The model with its data.
    data_axis
        The axis of the rows.
    """

    counts_apart = True
    couples = True

    def __init__(self, variable: Frequencies, bound: BoundModel, data_axis: Axis) -> None:
        labels = variable.labels
        both: list[Variable] = [labels, variable]
        axes = {
            StatisticKey(own.name, statistic): own_axes(own, statistic, data_axis)
            for own in both
            for statistic in own.family.statistics
        }
        super().__init__(both, [bound.of(own) for own in both], axes, bound.size)
        self.labels = (labels,)
        node = variable.slots["weights"].node
        self._column = ColumnKey(node.name)
        self._known_weights = None if bound.is_local(node) else np.asarray(bound.values_of(node))[:, None]
        self._of_labels = StatisticKey(labels.name, "x")
        self._first, self._second, self._weight = (
            StatisticKey(variable.name, statistic) for statistic in ("x", "xx", "weight")
        )

    @property
    def one_hots(self) -> Collection[StatisticKey]:
        return {self._of_labels}

    def counted(self, expected: Array, columns: Mapping[ColumnKey, AnyArray]) -> Array:
        """Return expected statistics (E, B) with zeros for labels that do not count; their weights are 0 already."""
        seen = self.seen(columns)
        if seen is None:
            return expected
        counted = expected.copy()
        self.view(counted, self._of_labels)[...] *= seen[:, None]
        return counted

    def infer(self, natural: Array) -> Inferred:
        """Overwrite natural parameters by expected statistics, from each label alone."""
        return self.infer_from(natural, None)

    def infer_from(self, natural: Array, before: Array | None) -> Inferred:
        """Overwrite natural parameters (E, B) by expected statistics.

        Parameters
        ----------
        before
            Expected statistics to begin from: then one sweep over the labels. None for sweeps until they are settled.
        """
        logits, said, weights = self._said(natural)
        if before is None:
            q = logits.copy()
            softmax_inplace(q)
        else:
            q = self.view(before, self._of_labels).copy()
        for _ in range(1 if before is not None else _MOST_SWEEPS):
            if _swept(q, logits, said, weights) < _SETTLED:
                break
        entropy = -xlogy(q, q).sum(axis=1)
        first, matrix = said
        mean, second = self._write(natural, q, weights)
        together = (first * mean).sum(axis=0) + (matrix * second).sum(axis=(0, 1))
        inner = np.multiply(logits, q, out=np.zeros_like(q), where=q != 0).sum(axis=1)
        return Inferred(entropy + inner + together / len(q), entropy)

    def natural_at(self, natural: Array, expected: Array) -> Array:
        """Return those of independent labels: from the beginning, sweeps could settle elsewhere."""
        found = natural.copy()
        q = self.view(expected, self._of_labels)
        self.view(found, self._of_labels)[...] = np.log(np.maximum(q, np.finfo(np.float64).tiny))
        for key in (self._first, self._second):
            self.view(found, key)[...] = 0.0
        return found

    def _write(self, out: Array, q: Array, weights: Array) -> tuple[Array, Array]:
        """Write the statistics of labels with these probabilities; return the moments of their frequencies."""
        mean, second = _moments(q, weights)
        self.view(out, self._of_labels)[...] = q
        self.view(out, self._first)[...] = mean
        self.view(out, self._second)[...] = second
        self.view(out, self._weight)[...] = 0.0
        return mean, second

    def given(self, probabilities: Array, columns: Mapping[ColumnKey, AnyArray]) -> Array:
        """Return expected statistics (E, B) of labels with given probabilities (N, K, B)."""
        weights = self._known_weights
        if weights is None:
            weights = feature_major(columns[self._column])
        found = np.empty((self.n_rows, probabilities.shape[-1]))
        self._write(found, probabilities, np.broadcast_to(weights, probabilities[:, 0].shape))
        return found

    def drawn(self, natural: Array, rng: np.random.Generator) -> Array:
        """Return statistics (E, n) of labels that are drawn, each from its own natural parameters among (E, n)."""
        logits, _, weights = self._said(natural)
        softmax_inplace(logits)
        drawn = families.Categorical(row_major(logits)).sample(seed=rng)
        found = np.empty_like(natural)
        self._write(found, feature_major(one_hot(logits.shape[1], drawn)), weights)
        return found

    def _said(self, natural: Array) -> tuple[Array, tuple[Array, Array], Array]:
        """Return copies of the parameters of labels (N, K, B) and frequencies (K, B), (K, K, B), and weights (N, B)."""
        matrix = self.view(natural, self._second)
        matrix = 0.5 * (matrix + matrix.swapaxes(0, 1))
        first, weights = (self.view(natural, key).copy() for key in (self._first, self._weight))
        return self.view(natural, self._of_labels).copy(), (first, matrix), weights

    def response(self, natural: Array, expected: Array) -> Callable[[Array], Array]:
        """Return how expected statistics change with natural parameters; see :func:`_solved`."""
        _, (_, matrix), weights = self._said(natural)
        q = self.view(expected, self._of_labels)

        def respond(change: Array) -> Array:
            direct, (first, second), _ = self._said(change)
            mean = np.einsum("nb,nkb->kb", weights, q)
            others = mean - weights[:, None] * q
            own = np.einsum("kkb->kb", second)
            direct = direct + weights[:, None] * (
                first + weights[:, None] * own + 2.0 * np.einsum("klb,nlb->nkb", second, others)
            )
            moved = _solved(q, weights, matrix, direct)
            found = np.zeros_like(change)
            self.view(found, self._of_labels)[...] = moved
            self.view(found, self._first)[...] = np.einsum("nb,nkb->kb", weights, moved)
            self.view(found, self._second)[...] = _change_of_second(q, weights, moved)
            return found

        return respond

    def distributions(self, natural: Array) -> dict[Variable, Any]:
        """Return the Categorical of each label, and the distribution of their frequencies."""
        expected = natural.copy()
        self.infer(expected)
        q = row_major(self.view(expected, self._of_labels))
        weights = row_major(self.view(natural, self._weight))
        labels, variable = self.variables
        return {labels: families.Categorical(q), variable: families.LabelFrequencies(weights, q, labels.name)}


def _swept(q: Array, logits: Array, said: tuple[Array, Array], weights: Array) -> float:
    """Update the probabilities (N, K, B) of one label after another; return the largest change."""
    first, matrix = said
    own = np.einsum("kkb->kb", matrix)
    mean = np.einsum("nb,nkb->kb", weights, q)
    largest = 0.0
    for label, weight in enumerate(weights):
        rest = mean - weight * q[label]
        found = logits[label] + weight * (first + weight * own + 2.0 * np.einsum("klb,lb->kb", matrix, rest))
        softmax_inplace(found)
        largest = max(largest, float(np.abs(found - q[label]).max(initial=0.0)))
        q[label] = found
        mean = rest + weight * found
    return largest


def _moments(q: Array, weights: Array) -> tuple[Array, Array]:
    """Return mean (K, B) and second moments (K, K, B) of the frequencies."""
    mean = np.einsum("nb,nkb->kb", weights, q)
    weighted = weights[:, None] * q
    second = mean[:, None] * mean - np.einsum("nkb,nlb->klb", weighted, weighted)
    np.einsum("kkb->kb", second)[...] += np.einsum("nb,nkb->kb", np.square(weights), q)
    return mean, second


def _change_of_second(q: Array, weights: Array, moved: Array) -> Array:
    """Return the change of the second moments (K, K, B) with one of the probabilities (N, K, B)."""
    mean, change = (np.einsum("nb,nkb->kb", weights, own) for own in (q, moved))
    squares = np.square(weights)
    half = mean[:, None] * change - np.einsum("nb,nkb,nlb->klb", squares, q, moved)
    found = half + half.swapaxes(0, 1)
    np.einsum("kkb->kb", found)[...] += np.einsum("nb,nkb->kb", squares, moved)
    return found


def _solved(q: Array, weights: Array, matrix: Array, direct: Array) -> Array:
    r"""Return the change of all probabilities (N, K, B) with a direct one of their logits.

    :math:`d\phi_n = C_n (d\ell_n + 2 w_n P (s - w_n d\phi_n))` with :math:`s = \sum_m w_m d\phi_m` and
    :math:`C_n = \mathrm{diag}\,\phi_n - \phi_n \phi_n'`: solved for each label given s, and then for s.
    """
    n_categories = q.shape[1]
    each, w = np.moveaxis(q, 2, 0), weights.T[..., None]
    own = np.moveaxis(matrix, 2, 0)[:, None]
    spread = each[..., None] * np.eye(n_categories) - each[..., None] * each[..., None, :]
    pulled = 2.0 * w[..., None] * (spread @ own)
    inverse = np.linalg.inv(np.eye(n_categories) + w[..., None] * pulled)
    alone = inverse @ np.moveaxis(responding(q, direct), 2, 0)[..., None]
    by_others = inverse @ pulled
    total = (w[..., None] * alone).sum(axis=1)
    left = np.eye(n_categories) - (w[..., None] * by_others).sum(axis=1)
    summed = np.linalg.solve(left, total)
    return np.moveaxis((alone + by_others @ summed[:, None])[..., 0], 0, 2)


def frequencies_of(bound: BoundModel) -> list[Frequencies]:
    """Return the frequencies of the rows of a model.

    Raises
    ------
    ModelError, DataError
        If their groups are no rows, or their labels are known.
    """
    found = [own for own in bound.latent_locals() if isinstance(own, Frequencies)]
    for own in found:
        if own.plates != (bound.data_plate,):
            names = " and ".join(repr(plate.name) for plate in own.plates)
            raise ModelError(
                f"each group of Frequencies '{own.name}' must be a row of data, but it is repeated over {names}: state "
                f"one plate of groups"
            )
        if bound.is_known(own.labels):
            raise DataError(
                f"the labels '{own.labels.name}' of Frequencies '{own.name}' are known: give their frequencies as "
                f"Data, a vector for each {own.plates[-1].name}"
            )
        if sum(other.labels is own.labels for other in found) > 1:
            raise ModelError(f"'{own.labels.name}' has several Frequencies; use one in all predictors")
    return found


def refuse_joining(joint: Sequence[Sequence[str]] | None, factors: Sequence[LocalFactor]) -> None:
    """Refuse names of variables that have a factor already.

    Raises
    ------
    ModelError
        If a group has frequencies or their labels.
    """
    for factor in factors:
        names = [variable.name for variable in factor.variables]
        strange = next((name for group in joint or () for name in group if name in names), None)
        if strange is not None:
            raise ModelError(
                f"factors= names '{strange}', but frequencies and their labels, here {' and '.join(map(repr, names))}, "
                f"share one factor with nothing else; leave it out of factors="
            )
