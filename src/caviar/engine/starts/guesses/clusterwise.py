r"""Guesses by clusterwise regression: labels whose coefficients multiply columns, or that are added up in one sum.

.. math:: y_n \approx \sum_g \langle b_{g, z_{gn}},\; u_{gn} \rangle

With one label and covariates u these are regressions that rows are divided among; with several labels and u = 1 the
means of clusters are sums, one of each label. Each round puts a row where its residual is least, over all combinations
of labels at once (one label after the other would be caught where a pair is wrong), and then solves for all
coefficients. It begins with coefficients of a few rows drawn at random, many times, and the best ends are kept. A
product of rates, or of precisions, is such a sum on the scale of logarithms.

Source: Späth, "Algorithm 39: clusterwise linear regression" (Computing, 1979).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from ...._typing import AnyArray, Array
from ....language import Bernoulli, Data, Gamma, Indexed, Node, Normal, Predictor, Variable
from ..clustering.partitions import partition
from ..components.gates import Gate
from .basis import Basis, Guess
from .points import log_distances, logs, sampled_values

__all__ = ["by_regression"]


_MOST_COMBINATIONS = 512
_MOST_ROWS = 300
"""Rows that coefficients are found from."""

_DRAWS = 60
"""Times that coefficients of a few rows are drawn."""

_STARS = 1_000
"""Times that means of clusters are drawn, of which the best _DRAWS go on."""

_BEST = 20
"""Draws that go on, and of which _KEPT are guesses in the end."""

_KEPT = 3
_ROUNDS = 15
_RIDGE = 1e-8


@dataclass(frozen=True, eq=False)
class _Addend:
    """Part of a sum: columns, and the number of the gate that chooses their coefficients, or None."""

    columns: Array
    gate: int | None

    @property
    def is_constant(self) -> bool:
        """Whether it adds one number for each label."""
        return self.columns.shape[1] == 1 and not np.ptp(self.columns)


def by_regression(basis: Basis) -> Iterator[Guess]:
    """Yield the labels of the best clusterwise regressions of each leaf whose predictor the gates of rows stand in."""
    for leaf in basis.problem.compiled.sources:
        stated = _sum_of(leaf) if isinstance(leaf, Variable) else None
        if isinstance(leaf, Variable) and stated is not None:
            problem = _problem_of(basis, leaf, stated)
            if problem is not None:
                gates, addends, values = problem
                for labels in _best(basis, gates, addends, values):
                    yield {gate.variable: own for gate, own in zip(gates, labels, strict=True)}


@dataclass(frozen=True)
class _Sum:
    """A sum that is stated: coefficient and operands of each addend, and whether it is one of logarithms."""

    addends: Sequence[tuple[float, Sequence[Any]]]
    is_of_logs: bool = False


def _sum_of(leaf: Variable) -> _Sum | None:
    """Return the sum that a leaf has for its mean, or the product for its rate or precision as a sum of logarithms."""
    mean = leaf.stated.get("mean", leaf.stated.get("probability"))
    predictor = getattr(mean, "predictor", mean)
    if isinstance(leaf, Normal | Bernoulli) and isinstance(predictor, Predictor):
        return _Sum([(addend.coefficient, addend.operands) for addend in predictor.addends])
    product = leaf.stated.get("rate", leaf.stated.get("precision"))
    if isinstance(leaf, Normal | Gamma) and isinstance(product, Predictor) and len(product.addends) == 1:
        operands = product.addends[0].operands
        if not any(isinstance(operand, Data) for operand in operands):
            return _Sum([(1.0, (operand,)) for operand in operands], is_of_logs=True)
    return None


def _problem_of(basis: Basis, leaf: Variable, stated: _Sum) -> tuple[list[Gate], list[_Addend], Array] | None:
    """Return the gates of a leaf's sum, what is added up in it, and its values (n, d); None if it is no such."""
    found = sampled_values(basis.problem, basis.sample, leaf)
    if found is None:
        return None
    values = found[0].reshape(basis.sample.n_rows, -1)
    if stated.is_of_logs:
        values = logs(values) if isinstance(leaf, Gamma) else log_distances(values, basis.sample.row_weights)
    gates: list[Gate] = []
    addends: list[_Addend] = []
    of_rows = {gate.variable: gate for gate in basis.gates if gate.factor is not None}
    for coefficient, operands in stated.addends:
        columns, number = np.full((len(values), 1), coefficient), None
        for operand in operands:
            node = operand.node if isinstance(operand, Indexed) else operand
            index = operand.by if isinstance(operand, Indexed) else None
            if index in of_rows:
                gate = of_rows[index]
                if number is not None or gate.variable.plates != (basis.problem.bound.data_plate,):
                    return None
                if gate not in gates:
                    gates.append(gate)
                number = gates.index(gate)
            elif isinstance(node, Data):
                own = _columns_of(basis, node)
                if own is None or index is not None:
                    return None
                columns = (columns[:, :, None] * own[:, None]).reshape(len(values), -1)
        addends.append(_Addend(columns, number))
    if not gates or np.prod([float(gate.size) for gate in gates]) > _MOST_COMBINATIONS:
        return None
    if len(gates) == 1 and all(addend.is_constant for addend in addends):
        # means of clusters: what k-means is for
        return None
    return gates, addends, values


def _columns_of(basis: Basis, node: Node) -> Array | None:
    """Return a known array of the rows, (n, d)."""
    source = basis.problem.compiled.sources.get(node)
    if source is None or source.is_sparse or node.plates != (basis.problem.bound.data_plate,):
        return None
    return np.moveaxis(source.values(basis.sample.columns), -1, 0).reshape(basis.sample.n_rows, -1)


def _best(
    basis: Basis, gates: Sequence[Gate], addends: Sequence[_Addend], values: Array
) -> list[tuple[AnyArray, ...]]:
    """Return the labels of the regressions with the least residuals, a tuple of (n,) each."""
    seen = np.flatnonzero(~np.isnan(values).any(axis=1))
    if not len(seen):
        return []
    some = seen[:: -(-len(seen) // _MOST_ROWS)]
    weights, spread = basis.sample.row_weights, np.nanstd(values, axis=0)
    scaled = (values - np.nanmean(values, axis=0)) / np.where(spread > 0, spread, 1.0)
    combinations = np.array(list(product(*(range(gate.size) for gate in gates))))
    sizes = [gate.size for gate in gates]
    least = _Squares(addends, sizes, combinations)
    draw = _from_stars if all(addend.is_constant for addend in addends) else _from_few_rows
    begun = [
        least.labels(some, scaled, coefficients, weights) for coefficients in draw(basis, least, some, scaled)
    ]
    ends = []
    for _, chosen in sorted(begun, key=lambda end: end[0])[:_BEST]:
        cost, coefficients = np.inf, least.solve(some, scaled, weights, chosen)
        for _ in range(_ROUNDS):
            cost, after = least.labels(some, scaled, coefficients, weights)
            if np.array_equal(after, chosen):
                break
            chosen, coefficients = after, least.solve(some, scaled, weights, after)
        ends.append((cost, coefficients))
    kept: list[tuple[AnyArray, ...]] = []
    costs: list[float] = []
    for cost, coefficients in sorted(ends, key=lambda end: end[0]):
        if len(kept) < _KEPT and not any(np.isclose(cost, other, rtol=1e-6) for other in costs):
            every = np.where(np.isnan(scaled), 0.0, scaled)
            labels = least.labels(np.arange(len(values)), every, coefficients, weights)[1]
            kept.append(tuple(labels.T))
            costs.append(cost)
    return kept


def _from_few_rows(basis: Basis, least: _Squares, some: AnyArray, values: Array) -> Iterator[Array]:
    """Yield the coefficients of a few rows with random labels, again and again."""
    n_drawn = min(len(some), 2 * least.n_coefficients)
    for _ in range(_DRAWS):
        rows = basis.rng.choice(some, n_drawn, replace=False)
        labels = least.combinations[basis.rng.integers(0, len(least.combinations), n_drawn)]
        yield least.solve(rows, values, basis.sample.row_weights, labels)


def _from_stars(basis: Basis, least: _Squares, some: AnyArray, values: Array) -> Iterator[Array]:
    """Yield coefficients of sums of one number for each label, that fit the means of small clusters best.

    One mean is taken for the first category of all labels, and one for each other category: what that adds.
    """
    rng, weights = basis.rng, basis.sample.row_weights[some]
    n_clusters = min(len(some), 2 * len(least.combinations))
    labels = partition(values[some], weights, n_clusters, rng)
    counts = np.bincount(labels, weights)
    sums = np.stack([np.bincount(labels, weights * column) for column in values[some].T], axis=1)
    means, counts = sums[counts > 0] / counts[counts > 0, None], counts[counts > 0]
    others = [(place, label) for place, size in enumerate(least.sizes) for label in range(1, size)]
    if len(means) <= len(others):
        yield from _from_few_rows(basis, least, some, values)
        return
    drawn = means[rng.random((_STARS, len(means))).argsort(axis=1)[:, : 1 + len(others)]]
    centres = np.repeat(drawn[:, :1], len(least.combinations), axis=1)
    columns = least.combinations_of_addends
    for number, (place, label) in enumerate(others):
        centres[:, columns[:, place] == label] += drawn[:, 1 + number, None] - drawn[:, :1]
    squares = np.square(means[None, :, None] - centres[:, None]).sum(axis=3).min(axis=2)
    for number in np.argsort(squares @ counts, kind="stable")[:_DRAWS]:
        nearest = np.square(values[some, None] - centres[number]).sum(axis=2).argmin(axis=1)
        yield least.solve(some, values, basis.sample.row_weights, least.combinations[nearest])


class _Squares:
    """Least squares of a sum whose coefficients labels choose."""

    def __init__(self, addends: Sequence[_Addend], sizes: Sequence[int], combinations: AnyArray) -> None:
        self._addends = addends
        self.combinations = combinations
        self.sizes = [1 if addend.gate is None else sizes[addend.gate] for addend in addends]
        self.n_coefficients = sum(
            size * addend.columns.shape[1] for size, addend in zip(self.sizes, addends, strict=True)
        )

    @property
    def combinations_of_addends(self) -> AnyArray:
        """The label of each addend in each combination, (combinations, addends)."""
        none = np.zeros(len(self.combinations), dtype=np.intp)
        return np.stack(
            [none if a.gate is None else self.combinations[:, a.gate] for a in self._addends], axis=1
        )

    def _design(self, rows: AnyArray, labels: AnyArray) -> Array:
        """Return the columns of rows, each where the coefficients of its label are, (n, coefficients)."""
        parts = []
        for addend, size in zip(self._addends, self.sizes, strict=True):
            own = np.zeros(len(rows), dtype=np.intp) if addend.gate is None else labels[:, addend.gate]
            one_hot = np.eye(size)[own]
            parts.append((one_hot[:, :, None] * addend.columns[rows][:, None]).reshape(len(rows), -1))
        return np.concatenate(parts, axis=1)

    def solve(self, rows: AnyArray, values: Array, weights: Array, labels: AnyArray) -> Array:
        """Return the coefficients of these rows with these labels, (coefficients, d)."""
        design = self._design(rows, labels)
        weighted = design * weights[rows, None]
        gram = weighted.T @ design
        gram[np.diag_indices_from(gram)] += _RIDGE * max(float(np.trace(gram)) / len(gram), _RIDGE)
        return np.asarray(np.linalg.solve(gram, weighted.T @ values[rows]), dtype=np.float64)

    def labels(
        self, rows: AnyArray, values: Array, coefficients: Array, weights: Array
    ) -> tuple[float, AnyArray]:
        """Return the sum of squared residuals, and the combination of labels (n, gates) where each row's is least."""
        fitted = np.zeros((len(rows), len(self.combinations), values.shape[1]))
        first = 0
        for addend, size in zip(self._addends, self.sizes, strict=True):
            columns = addend.columns[rows]
            own = coefficients[first : first + size * columns.shape[1]].reshape(size, columns.shape[1], -1)
            of_labels = np.einsum("np,kpd->nkd", columns, own)
            chosen = 0 if addend.gate is None else self.combinations[:, addend.gate]
            fitted += of_labels[:, chosen].reshape(len(rows), -1, values.shape[1])
            first += size * columns.shape[1]
        residuals = np.square(values[rows, None] - fitted).sum(axis=2)
        best = residuals.argmin(axis=1)
        cost = float(weights[rows] @ residuals[np.arange(len(rows)), best])
        return cost, self.combinations[best]
