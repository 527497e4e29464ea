r"""Predictions that are mixtures over weighted draws of the globals, where summaries show these draws.

.. math:: p(y^* \mid x) \approx \sum_s w_s\, p(y^* \mid x^*, \theta_s)

A prediction given each draw is a prediction of the statement repeated over a plate of draws, whose globals are points.
So rows, labels and other hidden values of a row have their distributions given each draw, and all draws are computed
together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import issparse

from ...._errors import CaviarError
from ...._typing import Array
from ....engine.binding.clamped.factor import PointMass
from ....language import Plate, Variable
from ....language.replication import replicated
from ....lazy.rows import LazyRows
from ....names import Placed
from ...shared_factors import SharedFactors
from ...uncertainty.known import LACKING_DRAWS
from ...weighted import WeightedDraws
from ..over import Drawn, Over, Told
from ..prediction import Prediction
from .merging import joined, mixture

_AT_A_TIME, _OF_ALL_DRAWS, _FEWEST = 3e5, 6e7, 200
"""Numbers of predictions given draws that are held at a time; and of all draws, beyond which fewer draws are taken,
down to the fewest."""


@dataclass(frozen=True, eq=False)
class OverDraws(Over):
    """Predictions over weighted draws of all globals.

    Attributes
    ----------
    at
        Returns the posterior of the statement repeated over a plate of draws, its globals at the values of these.
    draws
        The draws.
    """

    at: Callable[[Mapping[str, Any]], Any]
    draws: WeightedDraws

    def mixed(self, told: Told, data: Any) -> Told:
        def mixtures(absent: Sequence[Variable]) -> Mapping[str, Prediction]:
            return self._mixtures([leaf.name for leaf in absent], data, lambda: told(absent))

        return mixtures

    def inferred(self, found: Mapping[str, Prediction], data: Any) -> Mapping[str, Prediction]:
        return self._mixtures(list(found), data, lambda: found)

    def drawn(self, of_factors: Drawn) -> Drawn:
        return self.draws.resampled

    def _mixtures(
        self, names: Sequence[str], data: Any, otherwise: Callable[[], Mapping[str, Prediction]]
    ) -> Mapping[str, Prediction]:
        if not names:
            return {}
        try:
            return self._by_draws(names, data) if self._tell(data) else _remarked(otherwise(), LACKING_DRAWS)
        except (CaviarError, np.linalg.LinAlgError):
            return _remarked(otherwise(), LACKING_DRAWS)

    def _tell(self, data: Any) -> bool:
        """Whether draws tell of rows: of arrays in memory that have none of the globals."""
        is_here = isinstance(data, Mapping) and not any(isinstance(own, LazyRows) for own in data.values())
        return is_here and not data.keys() & self.draws.values.keys()

    def _by_draws(self, names: Sequence[str], data: Mapping[str, Any]) -> dict[str, Prediction]:
        dense = {name: own.toarray() if issparse(own) else np.asarray(own) for name, own in data.items()}
        pilot, _ = self._given(self.draws.first(2), names, dense)
        size = sum(own.mean.size * (1 + len(own.parts)) for own in pilot.values()) / 2.0
        draws = self.draws.thinned(int(max(_FEWEST, _OF_ALL_DRAWS // size)))
        each, shares = list[dict[str, Prediction]](), list[float]()
        for some in draws.cut(int(max(1, _AT_A_TIME // size))):
            told, axes = self._given(some, names, dense)
            share = float(some.weights.sum())
            each.append({name: _over(own, axes[name], some.weights / share) for name, own in told.items()})
            shares.append(share)
        return {
            name: replace(joined([own[name] for own in each], shares), remark=self.draws.doubt)
            for name in names
        }

    def _given(
        self, draws: WeightedDraws, names: Sequence[str], data: Mapping[str, Array]
    ) -> tuple[dict[str, Prediction], dict[str, int]]:
        """Return predictions of variables given each draw, and which axis of each is that of the draws."""
        posterior = self.at(draws.values)
        # what is known of rows is the same in all draws
        known = Placed({name: np.broadcast_to(own, (draws.n, *own.shape)) for name, own in data.items()})
        told, variables = posterior._predicted(known, posterior._factors), posterior.model.variables
        axes = {name: int(posterior.data_plate in variables[name].plates) for name in names}
        return {name: told[name] for name in names}, axes


@dataclass(frozen=True)
class Narrower(Over):
    """Nothing but a remark: predictions are those of the factors, and may be too narrow.

    Attributes
    ----------
    remark
        A sentence that says why there are no others.
    """

    remark: str

    def mixed(self, told: Told, data: Any) -> Told:
        return lambda absent: _remarked(told(absent), self.remark)

    def inferred(self, found: Mapping[str, Prediction], data: Any) -> Mapping[str, Prediction]:
        return _remarked(found, self.remark)


def over_draws(posterior: Any, shown: Any) -> Over | None:
    """Return what predicts by the draws that a posterior keeps; None if nothing says more than its factors.

    Parameters
    ----------
    posterior
        A fit.
    shown
        Its :class:`~caviar.posterior.uncertainty.known.Uncertainty`.
    """
    if shown.draws is None:
        return Narrower(shown.on_predictions) if shown.on_predictions else None
    model, draws = posterior.model, shown.draws
    _, leaves = replicated(model.nodes, model.leaves, Plate("weighted draw"), {}, {}, model.value_of)
    evaluator = posterior._evaluator.above(leaves, point=list(draws.values))
    variables = evaluator.model.variables
    attributes = {"model": evaluator.model, "_evaluator": evaluator, "_shared": SharedFactors()}
    attributes |= {"_local": posterior._local, "_has_gaps": posterior._has_gaps}

    def at(values: Mapping[str, Any]) -> Any:
        points = {name: PointMass.of(variables[name], own) for name, own in values.items()}
        return type(posterior)._of_parts(_factors=points, **attributes)

    return OverDraws(at, draws)


def _over(told: Prediction, axis: int, weights: Array) -> Prediction:
    """Return the mixture of predictions with these weights, which have an axis of the draws."""

    def first(array: Array) -> Array:
        # parts that rows have in common are there once
        return np.moveaxis(np.broadcast_to(array, told.mean.shape), axis, 0)

    means, sds = first(told.mean), first(told.standard_deviation)
    each = weights.reshape(-1, *(1,) * (means.ndim - 1))
    parts = [(each * first(weight), first(mean), first(sd)) for weight, mean, sd in told.parts]
    whole = tuple(np.concatenate(own) for own in zip(*parts, strict=True))
    return mixture(told, weights, means, sds, whole if len(whole) == 3 else None)


def _remarked(told: Mapping[str, Prediction], remark: str) -> dict[str, Prediction]:
    return {name: replace(own, remark=remark) for name, own in told.items()}
