"""Scores: hidden locations of the rows, or of groups, that multiply others, guessed by principal components.

If all locations of a product are at their prior means, 0, no update moves any of them, and from a draw many factors
vanish before the rows have distinguished them. So one side of each product begins at the scores of the leading
components of what the other addends leave of the values; the other side, noise and relevances follow from them by
their own updates.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from ...._typing import AnyArray, Array
from ....language import Constant, LinearGaussianChain, Nonnegative, Variable
from ....numerics.simple_structure import simple_turn
from ...ascent.problem import Problem
from .columns import Setting
from .low_rank import LowRank, Units, low_rank
from .statement import Side
from .tables import Table, tables_of

_UNITS: tuple[Units, ...] = ("noise", "spread", "one")

_LEAST_SCORE = 0.01
"""Score of a row that has nothing of a component that is not negative, in units of the root of the mean square."""

_LEAST_NOISE = 1e-4
"""Share of the variance of scores that the step before leaves open, at least: states may be followed nearly exactly."""


def scores_of(setting: Setting, rng: np.random.Generator) -> Iterator[Mapping[Variable, Array]]:
    """Yield values of one side of each product, in several units: of the rows of the sample, or over its plates.

    Nothing is yielded where a statement multiplies no hidden locations.
    """
    tables = tables_of(setting, rng)
    before: list[Mapping[Variable, Array]] = []
    for units in _UNITS if tables else ():
        found = {variable: _scores(setting, variable, own, units, rng) for variable, own in tables.items()}
        if not any(_are_same(found, other) for other in before):
            before.append(found)
            yield found


def _are_same(points: Mapping[Variable, Array], others: Mapping[Variable, Array]) -> bool:
    return all(np.allclose(own, others[variable], rtol=0, atol=1e-6) for variable, own in points.items())


def _scores(
    setting: Setting, variable: Variable, tables: Sequence[Table], units: Units, rng: np.random.Generator
) -> Array:
    """Return the scores of a location, (repetitions..., event...); 0 where no table has some."""
    found = np.zeros((setting.n_repetitions(variable), variable.dimension or 1))
    for table in tables:
        own = low_rank(table.values, table.seen, table.weights, table.size, units, rng)
        if table.product.other.variable.has_zeros:
            own = _simple(own)
        if isinstance(variable, Nonnegative):
            own = _not_negative(own)
        strengths = np.square(own.loadings).mean(axis=0)
        n_rows, n_columns = table.values.shape
        widths = [
            _width(table.product.given, table.product.other, n_rows, n_columns, strength)
            for strength in strengths.tolist()
        ]
        if isinstance(variable, LinearGaussianChain):
            own = _along_steps(own, table.rows, len(found))
            steps = _width_of_steps(setting.problem, variable, own.scores)
            found[:, : table.size] = own.scores * (widths if steps is None else steps)
        else:
            found[table.rows, : table.size] = own.scores * widths
    return found.reshape(*setting.sizes_of(variable), *(variable.dimension or 1,) * variable.value_rank)


def _simple(own: LowRank) -> LowRank:
    """Return components turned to make most loadings small, each column in its own unit."""
    sizes = np.sqrt(np.square(own.loadings).sum(axis=1, keepdims=True))
    turn = simple_turn(own.loadings / np.where(sizes > 0, sizes, 1.0))
    return LowRank(own.scores @ turn, own.loadings @ turn)


def _not_negative(own: LowRank) -> LowRank:
    """Return the larger part of each component in which scores and loadings have the same sign; none is quite 0.

    Source: Boutsidis and Gallopoulos, "SVD based initialization: a head start for nonnegative matrix factorization",
    Pattern Recognition (2008).
    """
    parts = [[np.maximum(sign * side, 0.0) for side in (own.scores, own.loadings)] for sign in (1.0, -1.0)]
    sizes = [[np.square(side).sum(axis=0) for side in part] for part in parts]
    is_first = sizes[0][0] * sizes[0][1] >= sizes[1][0] * sizes[1][1]
    scores, loadings = (np.where(is_first, *sides) for sides in zip(*parts, strict=True))
    least = _LEAST_SCORE * np.sqrt(np.square(scores).mean(axis=0))
    return LowRank(np.maximum(scores, least), loadings)


def _width(given: Side, other: Side, n_given: int, n_other: int, strength: float) -> float:
    r"""Return the standard deviation that the scores of a component have at the optimum, nearly.

    The product has mean squares ``strength``, however it is shared out. With prior variances known on both sides
    the ELBO is highest where :math:`n_u (m_u - 1) = n_b (m_b - 1)`, for mean squares m in units of the prior variances:
    each side pays for its mean squares, and its posterior is narrower the larger the other one's are. A side whose
    variance is learnt adapts to the other one.
    """
    if given.variance is None:
        return float((strength / other.variance) ** 0.5 if other.variance else strength**0.25)
    if other.variance is None:
        return float(given.variance**0.5)
    excess = n_given - n_other
    root = (excess**2 + 4 * n_given * n_other * strength / (given.variance * other.variance)) ** 0.5
    return float((given.variance * (excess + root) / (2 * n_given)) ** 0.5)


def _along_steps(found: LowRank, rows: AnyArray, n_rows: int) -> LowRank:
    """Return the scores of all steps: where nothing was seen, those between the steps beside it."""
    if not len(rows) or len(rows) == n_rows:
        return found
    scores = [np.interp(np.arange(n_rows), rows, own) for own in found.scores.T]
    return LowRank(np.stack(scores, axis=1), found.loadings)


def _width_of_steps(problem: Problem, chain: LinearGaussianChain, scores: Array) -> float | None:
    """Return the unit of scores in which their steps vary as the noise of the chain does; None where that is learnt."""
    # a diagonal of unknown numbers has another slot
    noise = chain.slots.get("noise_precision")
    if noise is None or not isinstance(noise.node, Constant) or noise.index is not None or len(scores) < 2:
        return None
    precision = problem.bound.values_of(noise.node)
    is_matrix = noise.role.rank == 2
    variance = np.linalg.inv(precision).diagonal(axis1=-2, axis2=-1) if is_matrix else 1 / precision
    before, after = scores[:-1], scores[1:]
    left = after - before @ np.linalg.lstsq(before, after, rcond=None)[0]
    open_ = max(float(np.square(left).mean()), _LEAST_NOISE * float(np.square(scores).mean()))
    return float((variance.mean() / open_) ** 0.5) if open_ > 0 else None
