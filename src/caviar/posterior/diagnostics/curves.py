"""Marginal distributions of the entries of a variable as quantiles: of its posterior, and of its prior."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._errors import ImproperError, ModelError, ParameterError
from ..._typing import Array
from ...families.base.marginals import Ends, Marginals, variable_and_part
from ...language import Constant, Data, Variable, nodes_above
from ...numerics.randomness import generator
from ..simulation import check_labels, conditional, known_arrays, settle_sizes, simulate

_PROBABILITIES = 1.0 / (1.0 + np.exp(-np.linspace(-7.0, -0.02, 40)))
"""Below a half, at which quantiles are asked for: their slope is the density."""
_N_DRAWS = 80
_POOLED = (np.arange(64) + 0.5) / 64
LOWER, UPPER = 0.1586552539314571, 0.8413447460685429
"""Probabilities below the points one standard deviation from the mean of a Normal."""


@dataclass(frozen=True, eq=False)
class Curves:
    """Quantiles of each entry, of one distribution or of several that are averaged.

    Attributes
    ----------
    parts
        For each distribution probabilities, (P,), and quantiles, (P, ...).
    """

    parts: tuple[tuple[Array, Array], ...]

    def entry(self, at: tuple[int, ...]) -> Curves | None:
        """Return those of one entry; None if its family does not give them."""
        found = tuple((p, x[:, *at]) for p, x in self.parts)
        return Curves(found) if all(np.isfinite(x).all() for _, x in found) else None

    def quantile(self, share: float) -> float:
        """Return a quantile of a single entry."""
        if len(self.parts) == 1:
            ((p, x),) = self.parts
            return float(np.interp(share, p, x))
        return float(np.quantile(np.concatenate([np.interp(_POOLED, p, x) for p, x in self.parts]), share))

    @property
    def width(self) -> float:
        """Half the width of the central 68% interval of a single entry: of a Normal, its standard deviation."""
        return 0.5 * (self.quantile(UPPER) - self.quantile(LOWER))

    def density(self, grid: Array) -> Array:
        """Return the density of a single entry: the slope of probability over quantile."""
        total = np.zeros(len(grid))
        for p, x in self.parts:
            step = np.diff(x)
            kept = step > 0
            middles = (0.5 * (x[1:] + x[:-1]))[kept]
            total += np.interp(grid, middles, np.diff(p)[kept] / step[kept], left=0.0, right=0.0)
        return total / len(self.parts)


def posterior_curves(posterior: Any, name: str) -> Curves:
    """Return those of a global variable, or of a part of a joint factor, as wide as the posterior shows it."""
    variable, part = variable_and_part(name, posterior)
    return Curves((_quantiles(lambda ends: _part(posterior.marginals(variable, ends[1] - ends[0]), part)),))


def prior_curves(
    posterior: Any,
    name: str,
    shape: tuple[int, ...],
    data: Mapping[str, Any],
    seed: int | np.random.Generator | None,
    *,
    probabilities: Array = _PROBABILITIES,
) -> Curves | None:
    """Return those of the prior of a global variable, averaged over draws of its unknown parents.

    None if it is improper, or if the variable has no prior of its own, as what was not seen of an observed one.

    Parameters
    ----------
    posterior
        Of the model.
    name
        Of the variable, or of a part of a joint factor.
    shape
        Of its figures, to which the prior is repeated.
    data
        Name -> known array, of those that the prior depends on.
    seed
        Seed of the draws.
    probabilities
        Below a half and rising, at which quantiles are asked for, and as far above it.

    Raises
    ------
    DataError
        If a known array is missing.
    ParameterError
        If the prior is a point.
    """
    variable, part = variable_and_part(name, posterior.model.variables)
    own = posterior.model.variables[variable]
    if own.stated_with is not own:
        return None
    nodes = list(nodes_above([own]))
    parents = [node for node in nodes if node is not own]
    is_known = all(isinstance(node, Constant) for node in parents)
    given = {node.name: data[node.name] for node in nodes if isinstance(node, Data) and node.name in data}
    known = known_arrays(nodes, given)
    check_labels(nodes, known, settle_sizes(nodes, _sizes(posterior, nodes), known, {}))
    rng, found = generator(seed), []
    try:
        for _ in range(1 if is_known else _N_DRAWS):
            values = {} if is_known else simulate(parents, rng, _sizes(posterior, parents), given, {})
            prior = conditional(own, {**known, **values})

            def marginals(ends: Ends, prior: Any = prior) -> Marginals:
                return _part(prior.entry_marginals(ends), part)

            p, x = _quantiles(marginals, probabilities)
            found.append((p, np.broadcast_to(x, (len(p), *shape))))
    except (ImproperError, ModelError):
        # a flat prior, or one that has no draws
        return None
    return Curves(tuple(found))


def _part(found: Sequence[Marginals], part: str) -> Marginals:
    """Return the marginals of a variable, or of the part of a joint factor that is named."""
    return next((own for own in found if own.part == f".{part}"), found[0])


def _quantiles(
    marginals: Callable[[Ends], Marginals], probabilities: Array = _PROBABILITIES
) -> tuple[Array, Array]:
    """Return quantiles, from intervals of many levels."""
    below, above = [], []
    for share in probabilities.tolist():
        own = marginals((share, 1.0 - share))
        if own.lower is None or own.upper is None:
            raise ParameterError("a point has no density")
        below.append(own.lower)
        above.append(own.upper)
    return np.concatenate([probabilities, 1.0 - probabilities[::-1]]), np.stack([*below, *above[::-1]])


def _sizes(posterior: Any, nodes: Sequence[Any]) -> dict[str, int]:
    """Return the sizes of the plates of some variables, as their factors have them."""
    sizes: dict[str, int] = {}
    for node in nodes:
        if isinstance(node, Variable) and node.name in posterior:
            names = [plate.name for plate in node.batch_plates]
            sizes.update(zip(names, posterior[node.name].batch_shape, strict=False))
    return sizes
