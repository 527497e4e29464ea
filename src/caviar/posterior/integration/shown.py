"""Figures of a posterior that is integrated over some of its globals, and those of weighted draws."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import expit

from ..._typing import Array
from ...families import Dirichlet, StickBreaking
from ...families.base.marginals import Ends, Marginals, with_places
from ..uncertainty.known import LACKING_DRAWS, Corrected, Widths
from ..weighted import Weighted, check_weights
from .at_once import Integral, means_of
from .shapes import LOGITS, at_ends

_OF_ONE, _OF_ONE_IF_FINITE = 0.1, 0.3
"""Share of a mean or variance that a single value makes up at most, unless it is infinite; and if it is known to be
finite. With up to a quarter, standard deviations of few truncated values were at most 9% off, with a half 30% to 90%.
"""

_LEFT = 0.01
"""Share by which linear response changes a standard deviation at the most where rows leave a number as it was."""


@dataclass(frozen=True, eq=False)
class _WithQuantiles(Corrected):
    """Means and standard deviations, and quantiles of some variables that are no others of their family.

    Attributes
    ----------
    shapes
        How far quantiles at fixed log odds are from the means, by name, (G, L), the parts of a joint factor one after
        the other. Variables that are not listed have the intervals of their family with these means and standard
        deviations.
    """

    shapes: Mapping[str, Array] = field(default_factory=dict, repr=False)

    def marginals(self, name: str, factor: Any, ends: Ends) -> Sequence[Marginals]:
        found = super().marginals(name, factor, ends)
        if name not in self.shapes:
            return found
        parts = []
        for own, places in with_places(found):
            lower, upper = at_ends(self.shapes[name][places], ends, own.mean)
            parts.append(replace(own, lower=lower, upper=upper))
        return parts

    def only(self, names: Collection[str]) -> Self:
        shapes = {name: shape for name, shape in self.shapes.items() if name in names}
        return replace(super().only(names), shapes=shapes)

    def as_plain(self) -> dict[str, Any]:
        return {**super().as_plain(), "shapes": dict(self.shapes)}


@dataclass(frozen=True, eq=False)
class Integrated(_WithQuantiles):
    """Means, standard deviations and intervals without the independence of some globals from the others.

    Attributes
    ----------
    values
        Of the globals that are integrated over, by name, (n, plates..., event...).
    weights
        Of these values, by name, (n,); they sum to one.
    is_beside
        Whether the figures of the others are those to second order.
    is_exact
        Whether what is known of the others given the values is exact, so that draws tell nothing more.
    """

    values: Mapping[str, Array] = field(default_factory=dict, repr=False)
    weights: Mapping[str, Array] = field(default_factory=dict, repr=False)
    is_beside: bool = False
    is_exact: bool = False
    kind: ClassVar[str] = "integrated"

    def marginals(self, name: str, factor: Any, ends: Ends) -> Sequence[Marginals]:
        found = super().marginals(name, factor, ends)
        weighted = self.weighted(name)
        if weighted is None:
            return found
        lower, upper = weighted.quantile(ends)
        return [replace(own, lower=lower, upper=upper) for own in found]

    @property
    def remark(self) -> str:
        over, doubt = _listed(self.values), f" {self.doubt}" if self.doubt else ""
        if self.is_beside:
            return f"{self.sentence[:-1]}; those of {over} are integrated.{doubt}"
        return f"Means, standard deviations and intervals are integrated over {over}.{doubt}"

    @property
    def on_tails(self) -> str:
        heavy = [name for name in self.values if np.isinf(self.sds[name]).any()]
        rough = [name for name in self.values if name not in heavy and self._is_rough(name)]
        said = ""
        if heavy:
            said = (
                f" {_listed(heavy)}: no finite standard deviation, or one that single values of its long tail decide; "
                f"see the interval."
            )
        if rough:
            said += f" {_listed(rough)}: single values of a long tail decide the standard deviation; see the interval."
        return said

    def _is_rough(self, name: str) -> bool:
        """Whether a single value decides the standard deviation of an entry."""
        own = self.values[name].reshape(len(self.values[name]), -1)
        return bool((_share_of_one(Weighted(own, self.weights[name])) > _OF_ONE).any())

    def weighted(self, name: str) -> Weighted | None:
        """Return the values of a global with their weights; None of one that is not integrated over."""
        return Weighted(self.values[name], self.weights[name]) if name in self.values else None

    def beside(self, corrected: Corrected) -> Integrated:
        """Return the same figures of the globals that are integrated over, and of the others those to second order."""
        sds = {**corrected.sds, **{name: self.sds[name] for name in self.values}}
        shifts = {**corrected.shifts, **{name: self.shifts[name] for name in self.values}}
        return replace(self, sds=sds, shifts=shifts, unseen=corrected.unseen, shapes={}, is_beside=True)

    def at_least(self, widths: Widths) -> Integrated:
        """Return the same figures; variables not integrated over are at least as wide as by linear response."""
        wider = {
            name: own if name in self.values else np.maximum(own, widths.sds.get(name, 0.0))
            for name, own in self.sds.items()
        }
        return replace(self, sds=wider)

    def only(self, names: Collection[str]) -> Integrated:
        values = {name: own for name, own in self.values.items() if name in names}
        return replace(
            super().only(names), values=values, weights={name: self.weights[name] for name in values}
        )

    def as_plain(self) -> dict[str, Any]:
        weights: dict[str, Any] = {}
        for name, own in self.weights.items():
            # the name of a variable says that its weights are these, too
            weights[name] = next((other for other in weights if self.weights[other] is own), own)
        parts = {"values": dict(self.values), "weights": weights}
        return {**super().as_plain(), **parts, **({"is_beside": True} if self.is_beside else {})}

    @classmethod
    def of(cls, integral: Integral, factors: Mapping[str, Any], light: Collection[str]) -> Integrated:
        """Return what an integral shows beside the factors of a fit.

        Parameters
        ----------
        integral, factors
            Their globals by name.
        light
            Names of globals that are known to have a finite variance.
        """
        weighted = {name: integral.weighted(name) for name in integral.values}
        most = {name: _OF_ONE_IF_FINITE if name in light else _OF_ONE for name in weighted}
        moments = {name: _moments(own, most[name]) for name, own in weighted.items()}
        sds = {**integral.sds, **{name: sd for name, (_, sd) in moments.items()}}
        moved = {name: mean - means_of(factors[name]) for name, (mean, _) in moments.items()}
        shifts = {**integral.shifts, **moved}
        return cls(sds, (), shifts, (), (), integral.shapes, integral.values, integral.weights)

    @classmethod
    def of_plain(cls, document: Mapping[str, Any], factors: Mapping[str, Any]) -> Integrated:
        """Return the figures of factors that a file holds.

        Raises
        ------
        ValueError
            If they are not those of these factors.
        """
        own, values, weights = Corrected.of_plain(document, factors), document["values"], document["weights"]
        if not isinstance(values, dict) or not isinstance(weights, dict) or values.keys() != weights.keys():
            raise ValueError("weights of other values than it has")
        resolved: dict[str, Any] = {
            name: weights.get(given) if isinstance(given, str) else given for name, given in weights.items()
        }
        for name, array in values.items():
            (part,) = factors[name].entry_marginals((0.05, 0.95))
            check_weights(resolved[name])
            shape = (len(resolved[name]), *np.shape(part.mean))
            if name not in own.sds or np.shape(array) != shape or not np.isfinite(array).all():
                raise ValueError(f"values of {name!r:.40} that are none")
        shapes = _checked_shapes(document.get("shapes", {}), own.sds, set(own.sds) - set(values))
        parts = own.sds, own.kept, own.shifts, own.limited, own.unseen
        told = shapes, dict(values), resolved, document.get("is_beside") is True
        return cls(*parts, *told, doubt=own.doubt, draws=own.draws, narrower=own.narrower)


@dataclass(frozen=True, eq=False)
class Drawn(_WithQuantiles):
    """Means, standard deviations and intervals of weighted draws.

    Attributes
    ----------
    n_draws, n_effective, pareto_k
        Number of draws, what they are worth, and the shape of the tail of their weights.
    """

    n_draws: int = 0
    n_effective: float = 0.0
    pareto_k: float = 0.0
    kind: ClassVar[str] = "importance_sampling"

    @property
    def on_predictions(self) -> str:
        return LACKING_DRAWS if self.draws is None and self.doubt else super().on_predictions

    @property
    def remark(self) -> str:
        doubt = f" {self.doubt}" if self.doubt else ""
        return (
            f"Means, standard deviations and intervals are those of {self.n_draws:,} weighted draws (effectively "
            f"{self.n_effective:,.0f}, Pareto k {self.pareto_k:.1f}).{doubt}"
        )

    def as_plain(self) -> dict[str, Any]:
        draws = {"number": self.n_draws, "effective": self.n_effective, "pareto_k": self.pareto_k}
        return {**super().as_plain(), "draws": draws}

    @classmethod
    def of(
        cls,
        sample: Any,
        factors: Mapping[str, Any],
        shown: Widths,
        *,
        keeps_left: bool,
        is_kept: bool,
        doubt: str = "",
    ) -> Drawn:
        """Return the figures of an importance sample, beside those that are shown without it.

        Parameters
        ----------
        sample
            The weighted draws.
        factors
            Of the globals, by name.
        shown
            The figures without draws.
        keeps_left
            Whether numbers that rows leave as they are in the factor keep these figures. Then draws do not predict.
        is_kept
            Whether the draws are kept, and predict.
        doubt
            A sentence on why the draws may be wrong.
        """
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
            before = _entries(parts, [own.mean for own in parts])
            shifts[name], sds[name] = weighted.mean - before, weighted.sd
            shapes[name] = (weighted.quantile(expit(LOGITS)) - weighted.mean).T
            within = _entries(parts, [own.sd for own in parts])
            known = within == 0
            shifts[name][known], sds[name][known], shapes[name][known] = 0.0, 0.0, 0.0
            if not keeps_left or isinstance(factors[name], Dirichlet | StickBreaking):
                # weights of which some are drawn and others are not have another sum than one
                continue
            left = np.abs(shown.sds[name] - within) <= _LEFT * within
            mean, shape = _figures(shown, name, factors[name])
            shifts[name][left] = (mean - before)[left]
            sds[name][left], shapes[name][left] = shown.sds[name][left], shape[left]
        told = len(weights), float(sample.effective_draws), float(sample.pareto_k)
        draws = sample.kept(doubt) if is_kept and not keeps_left else None
        return cls(sds, shown.kept, shifts, (), (), shapes, *told, doubt=doubt, draws=draws)

    @classmethod
    def of_plain(cls, document: Mapping[str, Any], factors: Mapping[str, Any]) -> Drawn:
        """Return the figures of factors that a file holds.

        Raises
        ------
        ValueError
            If they are not those of these factors.
        """
        own, draws = Corrected.of_plain(document, factors), document["draws"]
        shapes = _checked_shapes(document["shapes"], own.sds, set(own.sds))
        number, *others = (draws[name] for name in ("number", "effective", "pareto_k"))
        if type(number) is not int or not all(isinstance(value, float) for value in others):
            raise ValueError("draws that are not told by numbers")
        told = own.sds, own.kept, own.shifts, (), (), shapes, number, *others
        return cls(*told, doubt=own.doubt, draws=own.draws)


def _checked_shapes(shapes: Any, sds: Mapping[str, Array], names: Set[str]) -> dict[str, Array]:
    """Return the quantiles of some of these names that a file holds; refuse others."""
    if not isinstance(shapes, dict) or not set(shapes) <= names:
        raise ValueError("quantiles of other variables than it has")
    for name, array in shapes.items():
        is_table = isinstance(array, np.ndarray) and array.shape == (sds[name].size, len(LOGITS))
        if not is_table or not np.isfinite(array).all():
            raise ValueError(f"quantiles of {name!r:.40} that are none")
    return dict(shapes)


def _figures(shown: Widths, name: str, factor: Any) -> tuple[Array, Array]:
    """Return the means of all entries of a variable, (G,), and how far their quantiles at ``LOGITS`` are from them."""
    columns: dict[int, Array] = {}
    for place, end in enumerate(expit(LOGITS[: len(LOGITS) // 2 + 1]).tolist()):
        found = shown.marginals(name, factor, (end, 1.0 - end))
        columns[place] = _entries(found, [own.lower for own in found])
        columns[len(LOGITS) - 1 - place] = _entries(found, [own.upper for own in found])
    found = shown.marginals(name, factor, (0.05, 0.95))
    mean = _entries(found, [own.mean for own in found])
    return mean, np.stack([columns[place] for place in range(len(LOGITS))], axis=1) - mean[:, None]


def _entries(parts: Sequence[Marginals], figures: Sequence[Any]) -> Array:
    """Return a figure of all entries of the parts of a factor, NaN where it has none."""
    each = [
        np.broadcast_to(np.asarray(own, dtype=np.float64), np.shape(part.mean))
        for part, own in zip(parts, figures, strict=True)
    ]
    return np.concatenate([own.ravel() for own in each])


def _moments(own: Weighted, most: float) -> tuple[Array, Array]:
    """Return means and standard deviations of all entries, infinite where one value makes up more than a share."""
    flat = Weighted(own.values.reshape(len(own.values), -1), own.weights)
    mean, sd = flat.mean, np.where(_share_of_one(flat) > most, np.inf, flat.sd)
    largest = (flat.weights[:, None] * np.abs(flat.values)).max(axis=0)
    is_positive = (flat.values > 0).all(axis=0)
    return np.where(is_positive & (largest > most * np.abs(mean)), np.inf, mean), sd


def _share_of_one(own: Weighted) -> Array:
    """Return the largest share of the variance of each entry that a single value makes up, (G,); values are (n, G)."""
    parts = own.weights[:, None] * np.square(own.values - own.mean)
    whole = parts.sum(axis=0)
    return np.divide(parts.max(axis=0), whole, out=np.zeros_like(whole), where=whole > 0)


def _listed(names: Collection[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last
