r"""Guesses by clusterwise regression: labels whose coefficients multiply columns, or that are added up in one sum.

.. math:: y_n \approx \sum_g \langle b_{g, z_{gn}},\; u_{gn} \rangle

With one label and covariates u these are regressions that rows are divided among; with several labels and u = 1 the
means of clusters are sums, one of each label. Each round puts a row where its residual is least, over all combinations
of labels at once (one label after the other would be caught where a pair is wrong), and then solves for all
coefficients. It begins with coefficients of a few rows drawn at random, many times. Where there are several labels, the
coefficients of one of them, or of one of its categories, are then found anew from what the others leave, again and
again, as random swaps do for k-means (Fränti, 2018): most begins have some labels right and some wrong. The best ends
are kept. A product of rates, or of precisions, is such a sum on the scale of logarithms.

Source: Späth, "Algorithm 39: clusterwise linear regression" (Computing, 1979).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, TypeAlias

import numpy as np

from ...._typing import AnyArray, Array
from ....language import Bernoulli, Data, Gamma, Indexed, Link, Node, Normal, Predictor, Variable
from ....language.nodes.roles import one_hot
from ..clustering.partitions import partition
from ..components.gates import Gate
from ..products.columns import Setting, values_for_sums
from .basis import Basis, Guess
from .beside_groups import labels_beside_groups
from .points import log_distances, logs

_MOST_COMBINATIONS = 512
_MOST_ROWS = 300
"""Rows that coefficients are found from."""

_DRAWS, _FEWEST = 60, 8
"""Begins at once, of coefficients of few rows or of stars, at most and at least."""

_NUMBERS = 100_000
"""Residuals, over rows, combinations and columns, that all begins may have together."""

_PIECES = 3
"""Small clusters for each combination of labels, in the place of the rows of sums of one number for each label."""

_STARS = 4_000
"""Times that their means are drawn, of which the best go on."""

_BEST = 12
"""Ends that are remembered, and of which _KEPT are guesses in the end."""

_RENEWALS, _PARENTS = 6, 6
"""Times that part of the coefficients of several labels is found anew at most, and of how many of the best ends."""

_PATIENCE, _BETTER = 2, 1e-3
"""How often in turn that leads nowhere before it ends, and the share of the squares that is somewhere."""

_ONE = 0.5
"""Share of these in which it is one category's part."""

_KEPT = 3
_ROUNDS = 15
_RIDGE = 1e-8

_ROWS_OF_A_COEFFICIENT = 4
"""Rows for each coefficient of groups that known labels tell, at least; with fewer all groups have the same ones."""


@dataclass(frozen=True, eq=False)
class _Addend:
    """Part of a sum: columns, and the number of the gate that chooses their coefficients, or None."""

    columns: Array
    gate: int | None

    @property
    def is_constant(self) -> bool:
        """Whether it adds one number for each label."""
        return _is_constant(self.columns)


def _is_constant(columns: Array) -> bool:
    return columns.shape[1] == 1 and not np.ptp(columns)


def by_regression(basis: Basis) -> Iterator[Guess]:
    """Yield the labels of the best clusterwise regressions of each leaf whose predictor has gates of rows."""
    for leaf in basis.problem.compiled.sources:
        stated = _sum_of(leaf) if isinstance(leaf, Variable) else None
        if isinstance(leaf, Variable) and stated is not None:
            problem = _problem_of(basis, leaf, stated)
            if problem is not None:
                gates, addends, values, groups = problem
                centred = _centred(values, groups, basis.sample.row_weights)
                for sizes in _numbers(gates):
                    for labels in _best(basis, sizes, addends, centred):
                        yield {gate.variable: own for gate, own in zip(gates, labels, strict=True)}
                yield from _beside_groups(basis, gates, addends, values, groups)


def _beside_groups(
    basis: Basis, gates: Sequence[Gate], addends: Sequence[_Addend], values: Array, groups: Sequence[AnyArray]
) -> Iterator[Guess]:
    """Yield the labels of one gate that adds a number for each label, beside many groups that do so too."""
    chosen = [addend for addend in addends if addend.gate is not None]
    if len(groups) != 1 or len(chosen) != 1 or not chosen[0].is_constant or np.isnan(values).any():
        return
    others = [addend.columns for addend in addends if addend.gate is None and not addend.is_constant]
    columns = np.concatenate([np.zeros((len(values), 0)), *others], axis=1)
    rng, weights = basis.rng, basis.sample.row_weights
    for labels in labels_beside_groups(values, weights, columns, groups[0], gates[0].size, rng):
        yield {gates[0].variable: labels}


def _numbers(gates: Sequence[Gate]) -> Iterator[tuple[int, ...]]:
    """Yield numbers of categories: all of each label, and of several labels one less of each, and of all of them.

    Labels that share values are told apart badly where their combinations overlap, and an ELBO gives up a category then
    in order to be sure of the others.
    """
    sizes = tuple(gate.size for gate in gates)
    yield sizes
    if len(sizes) == 1:
        return
    for place in range(len(sizes)):
        fewer = tuple(size - (number == place) for number, size in enumerate(sizes))
        if fewer[place] > 1:
            yield fewer
    fewer = tuple(max(size - 1, 2) for size in sizes)
    if sum(sizes) - sum(fewer) > 1:
        yield fewer


@dataclass(frozen=True)
class _Sum:
    """A stated sum: coefficient and operands of each addend, and whether it is a sum of logarithms."""

    addends: Sequence[tuple[float, Sequence[Any]]]
    is_of_logs: bool = False


def _sum_of(leaf: Variable) -> _Sum | None:
    """Return the sum that a leaf has for its mean, or the product for its rate or precision as a sum of logarithms."""
    mean = leaf.stated.get("mean", leaf.stated.get("probability"))
    predictor = getattr(mean, "predictor", mean)
    is_sum = isinstance(leaf, Normal | Bernoulli) or isinstance(mean, Link)
    if is_sum and isinstance(predictor, Predictor):
        return _Sum([(addend.coefficient, addend.operands) for addend in predictor.addends])
    product = leaf.stated.get("rate", leaf.stated.get("precision"))
    if isinstance(leaf, Normal | Gamma) and isinstance(product, Predictor) and len(product.addends) == 1:
        operands = product.addends[0].operands
        if not any(isinstance(operand, Data) for operand in operands):
            return _Sum([(1.0, (operand,)) for operand in operands], is_of_logs=True)
    return None


def _problem_of(
    basis: Basis, leaf: Variable, stated: _Sum
) -> tuple[list[Gate], list[_Addend], Array, list[AnyArray]] | None:
    """Return the gates of a leaf's sum, its addends, its values (n, d), and groups of rows; or None.

    The groups (n,) are those that are too many to be solved for. None if it is no such sum.
    """
    values = values_for_sums(Setting(basis.problem, basis.sample, {}), leaf)
    if values is None:
        return None
    if stated.is_of_logs:
        values = logs(values) if isinstance(leaf, Gamma) else log_distances(values, basis.sample.row_weights)
    gates: list[Gate] = []
    addends: list[_Addend] = []
    many: list[AnyArray] = []
    of_rows = {gate.variable: gate for gate in basis.gates if gate.factor is not None}
    for coefficient, operands in stated.addends:
        columns, number = np.full((len(values), 1), coefficient), None
        groups: list[AnyArray] = []
        n_unknown = sum(not isinstance(operand, Data) for operand in operands)
        for operand in operands:
            node = operand.node if isinstance(operand, Indexed) else operand
            index = operand.by if isinstance(operand, Indexed) else None
            if isinstance(index, Variable) and index in of_rows:
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
                columns = _multiplied(columns, own)
            elif n_unknown == 1 and isinstance(index, Node) and _is_of_rows(basis, index):
                groups.append(_groups(basis, index))
        columns, too_many = _by_groups(columns, groups)
        many += too_many
        addends.append(_Addend(columns, number))
    if not gates or np.prod([float(gate.size) for gate in gates]) > _MOST_COMBINATIONS:
        return None
    if len(gates) == 1 and not many and all(addend.is_constant for addend in addends):
        # means of clusters: what k-means is for
        return None
    return gates, addends, values, many


def _by_groups(columns: Array, several: Sequence[AnyArray]) -> tuple[Array, list[AnyArray]]:
    """Return the columns of each group, and groups of constants that are too many for separate columns."""
    many: list[AnyArray] = []
    for groups in several:
        n_groups = int(groups.max()) + 1
        if _ROWS_OF_A_COEFFICIENT * n_groups * columns.shape[1] <= min(len(columns), _MOST_ROWS):
            columns = _multiplied(columns, one_hot(n_groups, groups))
        elif _is_constant(columns):
            many.append(groups)
    return columns, many


def _multiplied(columns: Array, others: Array) -> Array:
    """Return the products of all columns with all others, (n, p q)."""
    return (columns[:, :, None] * others[:, None]).reshape(len(columns), -1)


def _is_of_rows(basis: Basis, label: Node) -> bool:
    """Whether a label is known for each row, which gives the groups of rows."""
    bound = basis.problem.bound
    is_whole = label in basis.problem.compiled.sources and bound.of(label).observed is None
    return is_whole and label.plates == (bound.data_plate,)


def _groups(basis: Basis, label: Node) -> AnyArray:
    """Return which of the groups that occur each row belongs to, (n,)."""
    labels = basis.problem.compiled.sources[label].values(basis.sample.columns)
    return np.unique(np.ravel(labels), return_inverse=True)[1]


def _centred(values: Array, several: Sequence[AnyArray], weights: Array) -> Array:
    """Return values less the means of their groups, for groups that are too many to solve for."""
    for groups in several:
        values = _less_means(values, groups, weights)
    return values


def _less_means(values: Array, groups: AnyArray, weights: Array) -> Array:
    of_rows = weights[:, None] * ~np.isnan(values)
    columns = zip(of_rows.T, np.nan_to_num(values).T, strict=True)
    sums = np.stack([np.bincount(groups, own * column) for own, column in columns], axis=1)
    counts = np.stack([np.bincount(groups, own) for own in of_rows.T], axis=1)
    return np.asarray(values - np.divide(sums, counts, out=np.zeros_like(sums), where=counts > 0)[groups])


def _columns_of(basis: Basis, node: Node) -> Array | None:
    """Return a known array of the rows, (n, d)."""
    source = basis.problem.compiled.sources.get(node)
    if source is None or source.is_sparse or node.plates != (basis.problem.bound.data_plate,):
        return None
    return np.moveaxis(source.values(basis.sample.columns), -1, 0).reshape(basis.sample.n_rows, -1)


def _best(
    basis: Basis, sizes: Sequence[int], addends: Sequence[_Addend], values: Array
) -> list[tuple[AnyArray, ...]]:
    """Return the labels of the regressions with the least residuals, a tuple of (n,) each."""
    seen = np.flatnonzero(~np.isnan(values).any(axis=1))
    if not len(seen):
        return []
    some = seen[:: -(-len(seen) // _MOST_ROWS)]
    weights, spread = basis.sample.row_weights, np.nanstd(values, axis=0)
    scaled = (values - np.nanmean(values, axis=0)) / np.where(spread > 0, spread, 1.0)
    combinations = np.array(list(product(*(range(size) for size in sizes))))
    least = _Squares(addends, sizes, combinations)
    rows = _Rows(least.columns(some), scaled[some], weights[some])
    is_constant = all(addend.is_constant for addend in addends)
    draw = _from_stars if is_constant else _from_few_rows
    few = _means(rows, _PIECES * len(combinations), basis.rng) if is_constant else rows
    found = _distinct(least.descended(few, draw(basis, least, few, _at_once(least, few))))
    if len(sizes) > 1:
        found = _searched(basis, least, few, found, _PATIENCE)
    if few is not rows:
        found = _distinct(least.descended(rows, np.stack([coefficients for _, coefficients in found])))
        found = _searched(basis, least, rows, found, 1)
    every = _Rows(least.columns(np.arange(len(values))), np.where(np.isnan(scaled), 0.0, scaled), weights)
    kept = np.stack([coefficients for _, coefficients in found[:_KEPT]])
    return [tuple(combinations[own].T) for own in least.nearest(every, kept)[1]]


def _at_once(least: _Squares, rows: _Rows) -> int:
    """Return the number of begins at once."""
    return int(np.clip(_NUMBERS / (rows.values.size * len(least.combinations)), _FEWEST, _DRAWS))


def _searched(basis: Basis, least: _Squares, rows: _Rows, found: Sequence[_End], patience: int) -> list[_End]:
    """Return ends after repeated searches for parts of them, until several in a row have failed."""
    found, n_vain = list(found), 0
    for _ in range(_RENEWALS):
        best = found[0][0]
        begun = _renewed(basis, least, rows, found, _at_once(least, rows))
        found = _distinct([*found, *least.descended(rows, begun)])
        n_vain = 0 if found[0][0] < (1 - _BETTER) * best else n_vain + 1
        if n_vain >= patience:
            break
    return found


@dataclass(frozen=True, eq=False)
class _Rows:
    """Rows of a regression: the columns of each addend (n, p), values (n, d), and weights (n,)."""

    columns: Sequence[Array]
    values: Array
    weights: Array


def _means(rows: _Rows, n_clusters: int, rng: np.random.Generator) -> _Rows:
    """Return the means of small clusters in the place of rows whose columns are all alike."""
    if len(rows.values) <= n_clusters:
        return rows
    labels = partition(rows.values, rows.weights, n_clusters, rng)
    counts: Array = np.bincount(labels, rows.weights).astype(np.float64)
    kept = counts > 0
    sums = np.stack([np.bincount(labels, rows.weights * column) for column in rows.values.T], axis=1)
    columns = [own[: int(kept.sum())] for own in rows.columns]
    return _Rows(columns, sums[kept] / counts[kept, None], counts[kept])


_End: TypeAlias = tuple[float, Array]
"""What squares are left, and with which coefficients."""


def _distinct(ends: Sequence[_End]) -> list[_End]:
    """Return ends that leave different squares, the least first."""
    found: list[_End] = []
    for cost, coefficients in sorted(ends, key=lambda end: end[0]):
        if not found or not np.isclose(cost, found[-1][0], rtol=1e-6):
            found.append((cost, coefficients))
    return found[:_BEST]


def _from_few_rows(basis: Basis, least: _Squares, rows: _Rows, n_draws: int) -> Array:
    """Return the coefficients of a few rows with random labels, several times."""
    n_drawn = min(len(rows.values), 2 * least.n_coefficients)
    chosen = basis.rng.random((n_draws, len(rows.values))).argsort(axis=1)[:, :n_drawn]
    shares = np.zeros((n_draws, len(rows.values)))
    np.put_along_axis(shares, chosen, rows.weights[chosen], axis=1)
    return least.solved(rows, basis.rng.integers(0, len(least.combinations), shares.shape), shares)


def _from_stars(basis: Basis, least: _Squares, rows: _Rows, n_draws: int) -> Array:
    """Return coefficients of sums of one number for each label, that fit best.

    One value is taken for the first category of all labels, and one for each other category: what that
    adds.
    """
    rng, weights, values = basis.rng, rows.weights, rows.values
    gates = range(least.combinations.shape[1])
    others = [(place, label) for place in gates for label in range(1, least.combinations[:, place].max() + 1)]
    if len(values) <= len(others):
        return _from_few_rows(basis, least, rows, n_draws)
    drawn = values[rng.random((_STARS, len(values))).argsort(axis=1)[:, : 1 + len(others)]]
    centres = np.repeat(drawn[:, :1], len(least.combinations), axis=1)
    for number, (place, label) in enumerate(others):
        centres[:, least.combinations[:, place] == label] += drawn[:, 1 + number, None] - drawn[:, :1]
    squares = np.square(values[None, :, None] - centres[:, None]).sum(axis=3).min(axis=2)
    best = np.argsort(squares @ weights, kind="stable")[:n_draws]
    nearest = np.square(values[:, None] - centres[best][:, None]).sum(axis=3).argmin(axis=2)
    return least.solved(rows, nearest, np.broadcast_to(weights, nearest.shape))


def _renewed(basis: Basis, least: _Squares, rows: _Rows, ends: Sequence[_End], n_draws: int) -> Array:
    """Return coefficients of ends with those of one label, or of one of its categories, found anew.

    They are those of a few rows, from what all other labels leave of them. Rows with large residuals are drawn more
    often: they are in a wrong place.
    """
    rng = basis.rng
    begun = np.stack([ends[number % min(len(ends), _PARENTS)][1] for number in range(n_draws)])
    residuals, nearest = least.nearest(rows, begun)
    shares = rows.weights * (residuals + residuals.mean(axis=1, keepdims=True) + np.finfo(float).tiny)
    labels = least.combinations[nearest]
    found = begun.copy()
    for number in range(n_draws):
        place = int(rng.integers(labels.shape[2]))
        size = int(least.combinations[:, place].max()) + 1
        only = int(rng.integers(size)) if rng.random() < _ONE else None
        own = least.places(place, only)
        drawn = rng.choice(
            len(rows.values),
            min(2 * len(own), len(rows.values)),
            replace=False,
            p=shares[number] / shares[number].sum(),
        )
        anew = labels[number, drawn].copy()
        anew[:, place] = rng.integers(size, size=len(drawn)) if only is None else only
        design = least.design([columns[drawn] for columns in rows.columns], anew)
        rest = np.delete(np.arange(least.n_coefficients), own)
        left = rows.values[drawn] - design[:, rest] @ begun[number, rest]
        found[number, own] = np.linalg.lstsq(design[:, own], left, rcond=None)[0]
    return found


class _Squares:
    """Least squares of a sum whose coefficients labels choose, from several begins at once."""

    def __init__(self, addends: Sequence[_Addend], sizes: Sequence[int], combinations: AnyArray) -> None:
        self._addends = addends
        self.combinations = combinations
        self.sizes = [1 if addend.gate is None else sizes[addend.gate] for addend in addends]
        widths = [addend.columns.shape[1] for addend in addends]
        ends = np.cumsum([size * width for size, width in zip(self.sizes, widths, strict=True)])
        self._bounds = list(zip([0, *ends[:-1]], ends, strict=True))
        self.n_coefficients = int(ends[-1])

    def columns(self, rows: AnyArray) -> list[Array]:
        """Return the columns of some rows."""
        return [addend.columns[rows] for addend in self._addends]

    def places(self, gate: int, label: int | None) -> AnyArray:
        """Return the places of the coefficients that a label chooses, or only those of one of its categories."""
        found = []
        for addend, (start, stop) in zip(self._addends, self._bounds, strict=True):
            if addend.gate == gate:
                width = addend.columns.shape[1]
                own = np.arange(start, stop)
                found.append(own if label is None else own[label * width : (label + 1) * width])
        return np.concatenate(found)

    def design(self, columns: Sequence[Array], labels: AnyArray) -> Array:
        """Return the columns of rows, each where the coefficients of its label are, (..., n, coefficients)."""
        parts = []
        for addend, size, own in zip(self._addends, self.sizes, columns, strict=True):
            if addend.gate is None:
                parts.append(np.broadcast_to(own, (*labels.shape[:-1], own.shape[1])))
                continue
            one_hot = np.eye(size)[labels[..., addend.gate]]
            product_ = one_hot[..., :, None] * own[:, None]
            parts.append(product_.reshape(*labels.shape[:-1], -1))
        return np.concatenate(parts, axis=-1)

    def solved(self, rows: _Rows, chosen: AnyArray, weights: Array) -> Array:
        """Return the coefficients (m, coefficients, d) of m choices of combinations and weights of the rows, (m, n)."""
        design = self.design(rows.columns, self.combinations[chosen])
        weighted = np.swapaxes(design * weights[..., None], 1, 2)
        gram = weighted @ design
        scale = np.trace(gram, axis1=1, axis2=2) / self.n_coefficients
        gram[:, np.arange(self.n_coefficients), np.arange(self.n_coefficients)] += (
            _RIDGE * np.maximum(scale, _RIDGE)[:, None]
        )
        return np.asarray(np.linalg.solve(gram, weighted @ rows.values), dtype=np.float64)

    def nearest(self, rows: _Rows, coefficients: Array) -> tuple[Array, AnyArray]:
        """Return the squared residual of each row, (m, n), and the combination of labels where it is least."""
        m, n_columns = len(coefficients), rows.values.shape[1]
        residuals = np.zeros((m, len(rows.values), len(self.combinations)))
        of_labels = []
        for addend, size, own, (start, stop) in zip(
            self._addends, self.sizes, rows.columns, self._bounds, strict=True
        ):
            several = coefficients[:, start:stop].reshape(m, size, own.shape[1], n_columns)
            of_labels.append((addend.gate, np.einsum("np,mkpd->dmnk", own, several)))
        for number, column in enumerate(rows.values.T):
            fitted = np.zeros_like(residuals)
            for gate, values in of_labels:
                chosen = 0 if gate is None else self.combinations[:, gate]
                fitted += values[number][..., [0]] if gate is None else values[number][..., chosen]
            residuals += np.square(column[:, None] - fitted)
        best = residuals.argmin(axis=2)
        return np.take_along_axis(residuals, best[..., None], axis=2)[..., 0], best

    def descended(self, rows: _Rows, coefficients: Array) -> list[_End]:
        """Return where rows put to their least residual, and coefficients of these rows, in turn lead."""
        chosen = np.full((len(coefficients), len(rows.values)), -1)
        costs = np.full(len(coefficients), np.inf)
        going = np.arange(len(coefficients))
        coefficients = coefficients.copy()
        for _ in range(_ROUNDS):
            residuals, after = self.nearest(rows, coefficients[going])
            costs[going] = residuals @ rows.weights
            moved = (after != chosen[going]).any(axis=1)
            chosen[going] = after
            going = going[moved]
            if not len(going):
                break
            weights = np.broadcast_to(rows.weights, chosen[going].shape)
            coefficients[going] = self.solved(rows, chosen[going], weights)
        return list(zip(costs.tolist(), coefficients, strict=True))
