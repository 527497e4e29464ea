"""The problem of a search for the number of components of a mixture of columns of several kinds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ..._typing import Array
from ...names import Placed
from .problem import Problem, Starts


@dataclass(frozen=True)
class ColumnsProblem(Problem):
    """Rows whose columns are separate variables.

    Attributes
    ----------
    names
        Of the columns.
    """

    # a fit costs ten times as much as a pass over a few hundred rows: proposals that are refused nearly always are not
    # made, and ordinary starts are left to the new fit at the end
    clear_gain: ClassVar[float] = -np.inf
    far_moves: ClassVar[int] = 1
    least_overlap: ClassVar[float] = 1e-3
    least_half: ClassVar[float] = 1.0
    tries_anew: ClassVar[bool] = True
    names: tuple[str, ...] = ()

    def part(self, share: Array, smallest: float, **changes: Any) -> Problem:
        """Return the rows of a part; a column that is missing in all of them has an entry in a row without weight."""
        part = super().part(share, smallest, **changes)
        if not len(part.X) or not np.isnan(part.X).all(axis=0).any():
            return part
        X = np.vstack([part.X, np.zeros((1, part.X.shape[1]))])
        return replace(part, X=X, weights=np.append(part.weights, 0.0))

    def _data(self) -> dict[str, Any]:
        return Placed({**{name: self.X[:, j] for j, name in enumerate(self.names)}, **self.known})

    def _start(self, init: Starts) -> Starts:
        if isinstance(init, str) or "z" not in init:
            return init
        shares = init["z"]
        whole = shares if len(shares) == len(self.X) else np.concatenate([shares, shares[-1:]])
        return super()._start({**init, "z": whole})
