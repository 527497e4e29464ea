"""Standard deviations and intervals of weighted draws, where others contain too few of these."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit

from ..._typing import Array
from ...families._marginals import Ends, Marginals
from ..uncertainty.known import Corrected, Widths
from .integrated import Weighted
from .shapes import LOGITS, at_ends


@dataclass(frozen=True, eq=False)
class Drawn(Corrected):
    """Means, standard deviations and intervals of weighted draws.

    Attributes
    ----------
    shapes
        How far quantiles at fixed log odds are from the means, by name, (G, L), the parts of a joint factor one after
        the other. Variables that are not listed have the figures that they would have without draws.
    n_draws, n_effective, pareto_k
        Number of draws, what they are worth, and the shape of the tail of their weights.
    """

    shapes: Mapping[str, Array] = field(default_factory=dict, repr=False)
    n_draws: int = 0
    n_effective: float = 0.0
    pareto_k: float = 0.0
    kind: ClassVar[str] = "importance_sampling"

    def marginals(self, name: str, factor: Any, ends: Ends) -> Sequence[Marginals]:
        found = super().marginals(name, factor, ends)
        if name not in self.shapes:
            return found
        parts, start = [], 0
        for own in found:
            stop = start + np.size(own.mean)
            lower, upper = at_ends(self.shapes[name][start:stop], ends, own.mean)
            is_known = np.isnan(np.asarray(own.sd, dtype=np.float64))
            parts.append(
                replace(own, lower=np.where(is_known, np.nan, lower), upper=np.where(is_known, np.nan, upper))
            )
            start = stop
        return parts

    @property
    def remark(self) -> str:
        doubt = f" {self.doubt}" if self.doubt else ""
        return (
            f"Means, standard deviations and intervals are those of {self.n_draws:,} weighted draws (effectively "
            f"{self.n_effective:,.0f}, Pareto k {self.pareto_k:.1f}).{doubt}"
        )

    def only(self, names: Collection[str]) -> Drawn:
        own = super().only(names)
        shapes = {name: shape for name, shape in self.shapes.items() if name in names}
        return replace(self, sds=own.sds, shifts=own.shifts, shapes=shapes)

    def as_plain(self) -> dict[str, Any]:
        draws = {"number": self.n_draws, "effective": self.n_effective, "pareto_k": self.pareto_k}
        return {**super().as_plain(), "shapes": dict(self.shapes), "draws": draws}

    @classmethod
    def of(cls, sample: Any, factors: Mapping[str, Any], shown: Widths) -> Drawn:
        """Return the figures of an importance sample, beside those that are shown without it."""
        sds, shapes, weights = dict(shown.sds), {}, sample.weights
        shifts = {name: np.zeros_like(sd) for name, sd in sds.items()}
        if isinstance(shown, Corrected):
            shifts |= shown.shifts
        for name in shown.sds:
            parts = factors[name].entry_marginals((0.05, 0.95))
            draws = [sample._of(name + own.part) for own in parts]
            if any(np.shape(own.mean) != values.shape[1:] for own, values in zip(parts, draws, strict=True)):
                # shared along a plate
                continue
            values = np.concatenate([own.reshape(len(own), -1) for own in draws], axis=1)
            weighted = Weighted(values, weights)
            before = np.concatenate([np.ravel(own.mean) for own in parts])
            shifts[name], sds[name] = weighted.mean - before, weighted.sd
            shapes[name] = (weighted.quantile(expit(LOGITS)) - weighted.mean).T
        told = len(weights), float(sample.effective_draws), float(sample.pareto_k)
        return cls(sds, shown.kept, shifts, (), (), shapes, *told)

    @classmethod
    def of_plain(cls, document: Mapping[str, Any], factors: Mapping[str, Any]) -> Drawn:
        """Return the figures of factors that a file holds.

        Raises
        ------
        ValueError
            If they are not those of these factors.
        """
        own, shapes, draws = Corrected.of_plain(document, factors), document["shapes"], document["draws"]
        if not isinstance(shapes, dict) or not set(shapes) <= set(own.sds):
            raise ValueError("quantiles of other variables than it has")
        for name, array in shapes.items():
            is_table = isinstance(array, np.ndarray) and array.shape == (own.sds[name].size, len(LOGITS))
            if not is_table or not np.isfinite(array).all():
                raise ValueError(f"quantiles of {name!r:.40} that are none")
        number, *others = (draws[name] for name in ("number", "effective", "pareto_k"))
        if type(number) is not int or not all(isinstance(value, float) for value in others):
            raise ValueError("draws that are not told by numbers")
        return cls(own.sds, own.kept, own.shifts, (), (), dict(shapes), number, *others, doubt=own.doubt)
