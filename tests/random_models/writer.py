"""The writer: states a random model, from the leaves up, as a user would."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import caviar as cv

from .choices import Choices

__all__ = ["Writer"]

_NUMBERS = (0.0, -0.8, 1.5)
_POSITIVE = (1.0, 0.4, 2.5)
_SHAPES = (2.0, 3.5, 6.0)
_DEEPEST = 2


class Writer:
    """States the variables of one model.

    Parameters
    ----------
    choices
        Every decision.
    known_only
        Whether everything but labels is known: a model whose evidence is a finite sum.
    rename
        Gives each part of the model its name.
    shift
        Added to every known location.
    is_wide
        Whether gates and leaves beyond plain parents are drawn too.
    """

    def __init__(
        self,
        choices: Choices,
        *,
        known_only: bool = False,
        rename: Callable[[str], str] = str,
        shift: float = 0.0,
        is_wide: bool = False,
    ) -> None:
        self.pick, self.told, self.rename, self.shift = choices.pick, choices.told, rename, shift
        self.known_only, self.is_wide = known_only, is_wide
        self.obs: cv.Plate | None = None
        self.outer: cv.Plate | None = None
        """The plate that the rows lie within, where they do."""
        self.extras: list[cv.Plate] = []
        self.gates: list[tuple[Any, cv.Plate]] = []
        self.made: list[Any] = []
        self.data: dict[str, tuple[str, tuple[cv.Plate, ...], int]] = {}
        """Known arrays: name -> what they hold, plates, and length of the event axis (0: none) or number of labels."""
        self.given: dict[str, tuple[str, tuple[cv.Plate, ...], int]] = {}
        """Leaves that cannot be drawn, in the same way."""
        self.states: cv.LinearGaussianChain | None = None
        self.has_chain = False
        self.has_predictor = False

    # ---- plates, gates, sharing ------------------------------------------------------------------

    def plate(self, name: str, size: int | None) -> cv.Plate:
        """Return a plate."""
        return cv.Plate(self.rename(name), size)

    def within(self, path: str, plates: tuple[cv.Plate, ...] | list[cv.Plate]) -> tuple[cv.Plate, ...]:
        """Return some of the plates, in any order."""
        kept = [p for i, p in enumerate(plates) if self.pick(f"{path}/over {i}", (True, False))]
        return tuple(reversed(kept)) if self.pick(f"{path}/turned", (False, True)) else tuple(kept)

    def parent(
        self,
        path: str,
        plates: tuple[cv.Plate, ...],
        make: Callable[..., Any],
        *,
        gated: bool = True,
        a_row: bool = True,
    ) -> Any:
        """Return a node over some of the plates: global, where a gate may choose from one more, or one a row."""
        if (
            a_row
            and self.obs in plates
            and not self.has_chain
            and self.pick(f"{path}/a row", (False, False, False, True))
        ):
            return make(path, self.local_plates(path, plates))
        fitting = self.fitting(plates)
        several = [tuple(fitting)] * (4 if self.is_wide else 1) if len(fitting) > 1 else []
        chosen = self.pick(f"{path}/gate", [(), *several, *((pair,) for pair in fitting)]) if gated else ()
        own = self.within(path, [p for p in plates if p is not self.obs])
        if not any(isinstance(getattr(gate, "node", gate), cv.Data) for gate, _ in chosen):
            # which of both a known label chooses from would have to be said
            own = self.of_group(path, plates, own)
        if not chosen:
            return make(path, own)
        at = self.pick(f"{path}/component at", range(len(own) + 1))
        components = tuple(component for _, component in chosen)
        return make(path, (*own[:at], *components, *own[at:]))[tuple(gate for gate, _ in chosen)]

    def of_group(
        self, path: str, plates: tuple[cv.Plate, ...], own: tuple[cv.Plate, ...]
    ) -> tuple[cv.Plate, ...]:
        """Return plates, perhaps with the one that the rows lie within."""
        if self.outer is None or self.obs not in plates or not self.pick(f"{path}/of group", (True, False)):
            return own
        return (*own, self.outer) if self.pick(f"{path}/group last", (False, True)) else (self.outer, *own)

    def fitting(self, plates: tuple[cv.Plate, ...]) -> list[tuple[Any, cv.Plate]]:
        """Return the gates of these plates, with what they choose from; a chosen label is one of a row."""
        return [pair for pair in self.gates if set(getattr(pair[0], "plates", (self.obs,))) <= set(plates)]

    def keep(self, variable: Any) -> Any:
        """Return a variable that others may share."""
        self.made.append(variable)
        return variable

    def shared(
        self, path: str, kind: type, plates: tuple[cv.Plate, ...], dimension: int | None = None
    ) -> Any | None:
        """Return a variable that stands elsewhere too, if there is one that fits."""
        found = [
            v
            for v in self.made
            if type(v) is kind and set(v.plates) <= set(plates) and dimension in (None, v.dimension)
        ]
        return self.pick(f"{path}/shared", [None, *found]) if found else None

    def known(self, path: str, holds: str, plates: tuple[cv.Plate, ...], size: int = 0) -> cv.Data:
        """Return a known array whose values come with the data."""
        node = cv.Data(self.rename(path), plates=plates)
        self.data[path] = (holds, plates, size)
        return node

    def options(self, plates: tuple[cv.Plate, ...], depth: int, *more: str) -> list[str]:
        """Return the kinds of parent that are possible."""
        kinds = ["constant"] if self.known_only else ["variable", "constant"]
        if depth == 0:
            kinds.append("chosen constant")
            kinds += self._group_kinds(plates)
        if self.obs in plates:
            kinds.append("data")
            if not self.known_only and not self.has_chain and depth < _DEEPEST:
                kinds.append("local")
        return kinds if self.known_only else [*kinds, *more]

    def _group_kinds(self, plates: tuple[cv.Plate, ...]) -> list[str]:
        return ["constant of group"] if self.outer is not None and self.obs in plates else []

    def _group_constant(self, path: str, value: Callable[[int], Any]) -> Any:
        """Return known values of each group that rows lie within."""
        assert self.outer is not None
        array = np.array([value(k) for k in range(self.outer.size or 1)])
        return cv.Constant(self.rename(path), array, plates=self.outer)

    def _chosen_constant(self, path: str, plates: tuple[cv.Plate, ...], value: Callable[[int], Any]) -> Any:
        """Return known values of each component, chosen by a gate if there is one."""
        gates = self.fitting(plates)
        if not gates:
            return value(0)
        gate, component = self.pick(f"{path}/gate", gates)
        array = np.array([value(k) for k in range(component.size or 1)])
        return cv.Constant(self.rename(path), array, plates=component)[gate]

    def local_plates(self, path: str, plates: tuple[cv.Plate, ...]) -> tuple[cv.Plate, ...]:
        own = self.within(path, [p for p in plates if p is not self.obs])
        at = self.pick(f"{path}/obs at", range(len(own) + 1))
        return (*own[:at], self.obs, *own[at:])  # type: ignore[return-value]

    # ---- numbers ---------------------------------------------------------------------------------

    def number(self, path: str) -> float:
        """Return a known location."""
        return self.pick(f"{path}/number", _NUMBERS) + self.shift

    def positive(self, path: str) -> float:
        """Return a known positive number."""
        return self.pick(f"{path}/positive", _POSITIVE)

    def location(self, path: str, plates: tuple[cv.Plate, ...], depth: int = 0) -> Any:
        """Return the mean of a Normal."""
        sums = ("sum",) if depth == 0 else ()
        kind = self.pick(f"{path}/kind", self.options(plates, depth, *sums))
        if kind == "constant":
            return self.number(path)
        if kind == "chosen constant":
            return self._chosen_constant(path, plates, lambda k: 2.0 * k + self.number(path))
        if kind == "constant of group":
            return self._group_constant(path, lambda k: 2.0 * k + self.number(path))
        if kind == "data":
            return self.known(path, "location", self.local_plates(path, plates))
        if kind == "local":
            own = self.local_plates(path, plates)
            mean = self.location(f"{path}.mean", own, depth + 1)
            return cv.Normal(self.rename(path), mean, self.scale(f"{path}.scale", own, depth + 1), plates=own)
        if kind == "sum":
            return self.predictor(path, plates)
        shared = self.shared(path, cv.Normal, plates)
        return (
            shared
            if shared is not None
            else self.parent(path, plates, lambda p, own: self.normal(p, own, depth))
        )

    def normal(self, path: str, plates: tuple[cv.Plate, ...], depth: int) -> Any:
        """Return a global Normal, whose parents may be variables."""
        mean: Any = self.number(f"{path}.mean")
        precision: Any = self.positive(f"{path}.precision")
        if depth < _DEEPEST and self.pick(f"{path}/has parent", (False, True)):
            mean = self.parent(
                f"{path}.mean", plates, lambda p, own: self.normal(p, own, depth + 1), gated=False
            )
        if depth < _DEEPEST and self.pick(f"{path}/has scale", (False, True)):
            precision = self.parent(
                f"{path}.precision", plates, lambda p, own: self.gamma(p, own, depth + 1), gated=False
            )
        return self.keep(cv.Normal(self.rename(path), mean, precision, plates=plates))

    def gamma(self, path: str, plates: tuple[cv.Plate, ...], depth: int) -> Any:
        """Return a global Gamma, whose rate may be a Gamma."""
        rate: Any = self.positive(f"{path}.rate")
        if depth < _DEEPEST and self.pick(f"{path}/has rate", (False, True)):
            rate = self.parent(
                f"{path}.rate", plates, lambda p, own: self.gamma(p, own, depth + 1), gated=False
            )
        return self.keep(
            cv.Gamma(self.rename(path), self.pick(f"{path}/shape", _SHAPES), rate, plates=plates)
        )

    def scale(self, path: str, plates: tuple[cv.Plate, ...], depth: int = 0) -> Any:
        """Return the precision of a Normal, or a rate."""
        products = ("product",) if depth == 0 else ()
        kind = self.pick(f"{path}/kind", self.options(plates, depth, *products))
        if kind == "constant":
            return self.positive(path)
        if kind == "chosen constant":
            return self._chosen_constant(path, plates, lambda k: (k + 1.0) * self.positive(path))
        if kind == "constant of group":
            return self._group_constant(path, lambda k: (k + 1.0) * self.positive(path))
        if kind == "data":
            return self.known(path, "positive", self.local_plates(path, plates))
        if kind == "local":
            return self.local_gamma(path, plates, depth)
        if kind == "product":
            return self.product(
                path, plates, lambda p: self.parent(p, plates, lambda q, own: self.gamma(q, own, 1))
            )
        shared = self.shared(path, cv.Gamma, plates)
        return (
            shared
            if shared is not None
            else self.parent(path, plates, lambda p, own: self.gamma(p, own, depth))
        )

    def local_gamma(self, path: str, plates: tuple[cv.Plate, ...], depth: int) -> Any:
        """Return a Gamma for each row."""
        own = self.local_plates(path, plates)
        rate = self.scale(f"{path}.rate", own, depth + 1)
        return cv.Gamma(self.rename(path), self.pick(f"{path}/shape", _SHAPES), rate, plates=own)

    def product(self, path: str, plates: tuple[cv.Plate, ...], other: Callable[[str], Any]) -> Any:
        """Return a product of a factor and something else."""
        self.has_predictor = True
        kinds = ["variable", "known"] if self.obs in plates else ["variable"]
        if self.obs in plates and not self.has_chain:
            kinds.append("local")
        kind = self.pick(f"{path}.u/kind", kinds)
        if kind == "known":
            first: Any = self.known(f"{path}.u", "positive", self.local_plates(f"{path}.u", plates))
        elif kind == "local":
            first = self.local_gamma(f"{path}.u", plates, 1)
        else:
            first = self.parent(f"{path}.u", plates, lambda p, own: self.gamma(p, own, 1))
        product = first * other(f"{path}.v")
        return 2.0 * product if self.pick(f"{path}/twice", (False, True)) else product

    def predictor(self, path: str, plates: tuple[cv.Plate, ...]) -> Any:
        """Return a sum of products of locations and covariates."""
        self.has_predictor = True
        total: Any = 0.0
        for i in range(self.pick(f"{path}/addends", (1, 2, 3))):
            total = total + self._addend(f"{path}.{i}", plates)
        return total

    def _addend(self, path: str, plates: tuple[cv.Plate, ...]) -> Any:
        kinds = ["intercept", "product of variables"]
        if self.obs in plates:
            kinds += ["slope", "dot", "grouped"]
            kinds += [] if self.has_chain else ["factors"]
        kind = self.pick(f"{path}/kind", kinds)
        if kind == "grouped":
            group = self.plate(f"{path}.group", 2)
            own = self.within(path, [p for p in plates if p is not self.obs])
            labels = self.known(f"{path}.label", "labels", self.local_plates(f"{path}.label", plates), 2)
            return cv.Normal(self.rename(path), 0.3, 1.0, plates=(group, *own))[labels]
        first = self.parent(path, plates, lambda p, own: self.unshared(p, own))
        if kind == "intercept":
            return first
        if kind == "slope":
            return first * self.known(f"{path}.x", "covariate", self.local_plates(f"{path}.x", plates))
        if kind == "product of variables":
            return -0.5 * first * self.parent(f"{path}.b", plates, lambda p, own: self.unshared(p, own))
        size = self.pick(f"{path}/length", (2, 1))
        weights = self.parent(f"{path}.w", plates, lambda p, own: self.vector_root(p, own, size, 2))
        if kind == "dot":
            return cv.dot(
                self.known(f"{path}.x", "covariate", self.local_plates(f"{path}.x", plates), size), weights
            )
        own = self.local_plates(f"{path}.f", plates)
        return cv.dot(
            weights, cv.MultivariateNormal(self.rename(f"{path}.f"), np.zeros(size), np.eye(size), plates=own)
        )

    def unshared(self, path: str, plates: tuple[cv.Plate, ...]) -> Any:
        """Return a global Normal that stands nowhere else."""
        return cv.Normal(
            self.rename(path), self.pick(f"{path}/number", _NUMBERS), self.positive(path), plates=plates
        )

    # ---- vectors and matrices --------------------------------------------------------------------

    def vector(self, path: str, plates: tuple[cv.Plate, ...], size: int, depth: int = 0) -> Any:
        """Return the mean of a MultivariateNormal."""
        kind = self.pick(f"{path}/kind", self.options(plates, depth))
        if kind == "constant":
            return self.number(path) + np.arange(size)
        if kind == "chosen constant":
            return self._chosen_constant(
                path, plates, lambda k: 2.0 * k + self.number(path) + np.arange(size)
            )
        if kind == "constant of group":
            return self._group_constant(path, lambda k: 2.0 * k + self.number(path) + np.arange(size))
        if kind == "data":
            return self.known(path, "location", self.local_plates(path, plates), size)
        if kind == "local":
            own = self.local_plates(path, plates)
            mean = self.vector(f"{path}.mean", own, size, depth + 1)
            precision = self.matrix(f"{path}.matrix", own, size, depth + 1)
            return cv.MultivariateNormal(self.rename(path), mean, precision, plates=own)
        shared = self.shared(path, cv.MultivariateNormal, plates, size)
        if shared is not None:
            return shared
        return self.parent(path, plates, lambda p, own: self.keep(self.vector_root(p, own, size, depth)))

    def vector_root(self, path: str, plates: tuple[cv.Plate, ...], size: int, depth: int) -> Any:
        """Return a global MultivariateNormal."""
        mean: Any = self.number(f"{path}.mean") + np.arange(size)
        if depth < _DEEPEST and self.pick(f"{path}/has parent", (False, True)):
            mean = self.parent(
                f"{path}.mean", plates, lambda p, own: self.vector_root(p, own, size, depth + 1), gated=False
            )
        kinds = ("constant", "diagonal", "variable")
        kind = self.pick(f"{path}/precision", kinds[: 3 if depth < _DEEPEST else 2])
        precision: Any = self.positive(path) * self.definite(size)
        if kind == "variable":
            precision = self.parent(
                f"{path}.precision", plates, lambda p, own: self.wishart(p, own, size, depth + 1), gated=False
            )
        elif kind == "diagonal":
            precision = self.spread(f"{path}.spread", plates, size)
        return cv.MultivariateNormal(self.rename(path), mean, precision, plates=plates)

    def spread(self, path: str, plates: tuple[cv.Plate, ...], size: int) -> Any:
        """Return a diagonal of Gammas."""
        direction = self.plate(f"{path}.direction", size)
        own = (*self.within(path, [p for p in plates if p is not self.obs]), direction)
        return cv.diagonal(cv.Gamma(self.rename(path), 2.0, self.positive(path), plates=own))

    @staticmethod
    def definite(size: int) -> np.ndarray:
        """Return a positive definite matrix."""
        return np.eye(size) + 0.3 * (1 - np.eye(size))

    def matrix(self, path: str, plates: tuple[cv.Plate, ...], size: int, depth: int = 0) -> Any:
        """Return the precision of a MultivariateNormal."""
        kinds = ["constant"] if self.known_only else ["variable", "constant", "diagonal"]
        kinds += ["product"] if depth == 0 and not self.known_only else []
        kind = self.pick(f"{path}/kind", kinds)
        if kind == "constant":
            return self.positive(path) * self.definite(size)
        if kind == "diagonal":
            return self.spread(path, plates, size)
        if kind == "product":
            return self.product(
                path, plates, lambda p: self.parent(p, plates, lambda q, own: self.wishart(q, own, size, 1))
            )
        shared = self.shared(path, cv.Wishart, plates, size)
        if shared is not None:
            return shared
        return self.parent(path, plates, lambda p, own: self.wishart(p, own, size, depth))

    def wishart(self, path: str, plates: tuple[cv.Plate, ...], size: int, depth: int) -> Any:
        """Return a global Wishart, whose inverse scale may be a Wishart."""
        inverse_scale: Any = self.positive(f"{path}.scale") * self.definite(size)
        if depth < _DEEPEST and self.pick(f"{path}/has scale", (False, True)):
            inverse_scale = self.parent(
                f"{path}.scale", plates, lambda p, own: self.wishart(p, own, size, depth + 1), gated=False
            )
        df = size + self.pick(f"{path}/df", _SHAPES)
        return self.keep(cv.Wishart(self.rename(path), df, inverse_scale, plates=plates))

    # ---- probabilities ---------------------------------------------------------------------------

    def probabilities(self, path: str, plates: tuple[cv.Plate, ...], size: int, *, gated: bool = True) -> Any:
        """Return the probabilities of categories."""
        kinds = ["constant"] if self.known_only else ["Dirichlet", "constant"]
        kinds += ["StickBreaking"] if size > 1 and not self.known_only else []
        kinds += self._group_kinds(plates)
        kind = self.pick(f"{path}/kind", kinds)
        if kind == "constant of group":
            weights = np.arange(1.0, size + 1)
            return self._group_constant(path, lambda k: np.roll(weights, k) / weights.sum())
        if kind == "constant":
            return np.arange(1.0, size + 1) / np.arange(1.0, size + 1).sum()
        return self.parent(path, plates, lambda p, own: self.simplex(p, own, size, kind), gated=gated)

    def simplex(self, path: str, plates: tuple[cv.Plate, ...], size: int, kind: str) -> Any:
        """Return a Dirichlet or a StickBreaking."""
        if kind == "Dirichlet":
            return cv.Dirichlet(self.rename(path), self.positive(path) + np.arange(size), plates=plates)
        gamma: Any = self.positive(f"{path}.gamma")
        if self.pick(f"{path}/has gamma", (False, True)):
            gamma = self.parent(f"{path}.gamma", plates, lambda p, own: self.gamma(p, own, 2), gated=False)
        return cv.StickBreaking(self.rename(path), gamma, size, plates=plates)
