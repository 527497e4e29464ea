"""Statements: gates, leaves and known arrays around the parents that the writer makes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import caviar as cv

from . import further
from .choices import Choices
from .gates import state_gates
from .writer import Writer

__all__ = ["Stated", "state"]

_LEAVES = (
    "Normal",
    "MultivariateNormal",
    "Gamma",
    "Categorical",
    "Bernoulli",
    "Poisson",
    "Multinomial",
    "Binomial",
    "Sum of rates",
)


@dataclass(frozen=True, eq=False)
class Stated:
    """A model, and what its checks need to know of its statement.

    Attributes
    ----------
    model
        The model.
    writer
        Who stated it.
    leaves
        Names of the leaves before renaming.
    gates
        Names of the latent gates that have a label a row, before renaming.
    """

    model: cv.Model
    writer: Writer
    leaves: tuple[str, ...]
    gates: tuple[str, ...]

    @property
    def data_plate(self) -> cv.Plate | None:
        """The plate of the rows: the one without a size."""
        return self.writer.obs

    @property
    def latent(self) -> list[str]:
        """Names of the hidden variables."""
        leaves = {self.writer.rename(leaf) for leaf in self.leaves}
        return [name for name in self.model.variables if name not in leaves]

    @property
    def is_one_factor(self) -> bool:
        """Whether a hidden label of which all else is known has one factor: labels that meet have one each."""
        return not any(holds == "receivers" for holds, *_ in self.known.values())

    @property
    def is_grouped(self) -> bool:
        """Whether the rows lie within groups that have values of their own."""
        return any(self.writer.outer in node.plates for node in self.model.nodes)

    @property
    def known(self) -> dict[str, Any]:
        """The known arrays that the model uses, of those that the writer stated."""
        used = {node.name for node in self.model.nodes}
        return {name: what for name, what in self.writer.data.items() if self.writer.rename(name) in used}

    def simulate(self, seed: int, n_rows: int) -> dict[str, np.ndarray]:
        """Return values of the leaves and of the known arrays, by name."""
        values = self.simulate_all(seed, n_rows)
        names = (*self.leaves, *self.known, *(["outer"] if self.writer.outer is not None else []))
        return {self.writer.rename(name): values[self.writer.rename(name)] for name in names}

    def simulate_all(self, seed: int, n_rows: int) -> dict[str, Any]:
        """Return values of all variables and known arrays, by name."""
        rng = np.random.default_rng(seed)
        known = {
            self.writer.rename(name): _known_array(rng, *what, n_rows) for name, what in self.known.items()
        }
        outer = self.writer.outer
        own = {} if outer is None else {outer.name: rng.integers(0, outer.size or 1, n_rows)}
        known = {**known, **own}
        sizes = {} if self.data_plate is None else {self.data_plate.name: n_rows}
        given = {
            self.writer.rename(name): _known_array(rng, *what, n_rows)
            for name, what in self.writer.given.items()
        }
        return {**self.model.simulate(rng, sizes=sizes, data=known, given=given), **known, **own}


def _known_array(
    rng: np.random.Generator, holds: str, plates: tuple[cv.Plate, ...], size: int, n_rows: int
) -> np.ndarray:
    shape = tuple(plate.size or n_rows for plate in plates)
    if holds == "labels":
        return rng.integers(0, size, shape)
    if holds in ("senders", "receivers"):
        # the receiver is never the sender
        return (np.arange(n_rows) // size + np.arange(n_rows) + (holds == "receivers")) % size
    if holds == "censoring":
        return rng.integers(-1, 3, shape)
    if holds == "ends":
        return np.full(shape, 100.0)
    if holds == "starts":
        return np.arange(n_rows) % 4 == 0
    event = (size,) if size else ()
    if holds == "positive":
        return rng.gamma(4.0, 0.3, shape + event)
    return rng.normal(size=shape + event)


def state(
    choices: Choices,
    *,
    known_only: bool = False,
    rename: Callable[[str], str] = str,
    shift: float = 0.0,
    backwards: bool = False,
    is_wide: bool = False,
) -> Stated:
    """Return the model of these choices.

    Parameters
    ----------
    backwards
        Whether the leaves are passed to the model in the opposite order.
    is_wide
        Whether gates and leaves beyond plain parents are drawn too: see :mod:`further`.
    """
    writer = Writer(choices, known_only=known_only, rename=rename, shift=shift, is_wide=is_wide)
    pick = choices.pick
    has_rows = pick("has rows", (True, True, True, False))
    writer.obs = _rows(writer) if has_rows else None
    writer.extras = [writer.plate(f"plate {i}", 2 + i) for i in range(pick("extra plates", (0, 1, 2)))]
    gates = state_gates(writer) if has_rows else ()
    leaves: list[Any] = []
    names = [f"x{i}" for i in range(pick("leaves", (1, 2, 3)))]
    for name in names:
        leaves.append(_leaf(writer, name, gates if not leaves else ()))
    model = cv.Model(*(reversed(leaves) if backwards else leaves))
    latent = tuple(gate for gate in gates if rename(gate) in model.variables)
    return Stated(model, writer, tuple(names), latent)


def _rows(writer: Writer) -> cv.Plate:
    """Return the plate of the rows, which perhaps lies within another one."""
    if writer.is_wide and writer.pick("rows within", (False, False, True)):
        writer.outer = writer.plate("outer", 3)
    return cv.Plate(writer.rename("obs"), within=writer.outer)


def _leaf(writer: Writer, name: str, needed: tuple[str, ...]) -> Any:
    pick, rename = writer.pick, writer.rename
    plates = writer.within(name, writer.extras)
    if writer.obs is not None and (
        needed or name == "x0" or pick(f"{name}/over rows", (True, True, True, False))
    ):
        at = pick(f"{name}/rows at", range(len(plates) + 1))
        plates = (*plates[:at], writer.obs, *plates[at:])
    possible = further.possible(writer, plates)
    # a chain of vectors is seen through leaves of one kind only
    often = ("states",) * len(_LEAVES) if "states" in possible else ()
    kind = pick(f"{name}/family", (*_LEAVES, *possible, *often))
    if kind in further.LEAVES:
        return further.LEAVES[kind](writer, name, plates)
    path, label = f"{name}.parent", rename(name)
    if kind == "Normal":
        if not writer.known_only and pick(f"{name}/joint", (False, True)):
            return cv.Normal(
                label,
                writer.parent(path, plates, lambda p, own: _normal_gamma(writer, p, own)),
                plates=plates,
            )
        return cv.Normal(
            label,
            writer.location(f"{name}.mean", plates),
            writer.scale(f"{name}.scale", plates),
            plates=plates,
        )
    if kind == "MultivariateNormal":
        size = pick(f"{name}/length", (2, 1, 3))
        if not writer.known_only and pick(f"{name}/joint", (False, True)):
            joint = writer.parent(path, plates, lambda p, own: _normal_wishart(writer, p, own, size))
            return cv.MultivariateNormal(label, joint, plates=plates)
        mean = writer.vector(f"{name}.mean", plates, size)
        return cv.MultivariateNormal(
            label, mean, writer.matrix(f"{name}.matrix", plates, size), plates=plates
        )
    if kind == "Gamma":
        return cv.Gamma(
            label, pick(f"{name}/shape", (2.0, 0.8)), writer.scale(f"{name}.rate", plates), plates=plates
        )
    if kind == "Categorical":
        return cv.Categorical(
            label, writer.probabilities(path, plates, pick(f"{name}/length", (3, 2, 1))), plates=plates
        )
    if kind == "Bernoulli":
        return cv.Bernoulli(label, _probability(writer, path, plates), plates=plates)
    if kind == "Binomial":
        return cv.Binomial(
            label, pick(f"{name}/of", (3, 1)), _probability(writer, path, plates), plates=plates
        )
    if kind == "Sum of rates":
        both = [writer.scale(f"{name}.{which}", plates) for which in ("one", "other")]
        is_known = all(isinstance(own, float) for own in both)
        return cv.Poisson(label, both[0] + 0.5 if is_known else both[0] + both[1], plates=plates)
    if kind == "Poisson":
        return cv.Poisson(label, writer.scale(f"{name}.rate", plates), plates=plates)
    probabilities = writer.probabilities(path, plates, pick(f"{name}/length", (3, 2)))
    return cv.Multinomial(label, pick(f"{name}/trials", (4, 1, 0)), probabilities, plates=plates)


def _probability(writer: Writer, path: str, plates: tuple[cv.Plate, ...]) -> Any:
    if writer.known_only or writer.pick(f"{path}/known", (False, True)):
        return 0.3
    return writer.parent(
        path, plates, lambda p, own: cv.Beta(writer.rename(p), writer.positive(p), 1.5, plates=own)
    )


def _normal_gamma(writer: Writer, path: str, plates: tuple[cv.Plate, ...]) -> Any:
    mean, kappa, rate = writer.number(path), writer.positive(f"{path}.kappa"), writer.positive(f"{path}.rate")
    return cv.NormalGamma(writer.rename(path), mean, kappa, 2.5, rate, plates=plates)


def _normal_wishart(writer: Writer, path: str, plates: tuple[cv.Plate, ...], size: int) -> Any:
    mean = writer.number(path) + np.arange(size)
    kappa, scale = writer.positive(f"{path}.kappa"), writer.positive(f"{path}.scale") * writer.definite(size)
    return cv.NormalWishart(writer.rename(path), mean, kappa, size + 2.0, scale, plates=plates)
