"""The globals of a posterior as one vector without constraints."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._errors import ModelError
from ..._typing import AnyArray, Array
from ...families.base.transforms import Transform


@dataclass(frozen=True, eq=False)
class Piece:
    """A part of the value of a variable: its learnt numbers, and their places in the vector.

    Attributes
    ----------
    name
        Name of the variable.
    part
        Which part of the value: 1 for the precision of a joint factor, 0 for what else there is.
    transform
        Of one value.
    learnt
        Which repetitions are learnt and count, in the shape of the repetitions.
    place
        Where they are in the vector.
    mean
        Expected values, shape of all repetitions + event.
    """

    name: str
    part: int
    transform: Transform
    learnt: AnyArray
    place: slice
    mean: Array

    def apart(self, vectors: Array) -> Array:
        """Return the vectors of the repetitions that are learnt, (..., R, m), from whole ones."""
        own = vectors[..., self.place]
        n = int(np.count_nonzero(self.learnt))
        return own.reshape(*own.shape[:-1], n, own.shape[-1] // max(n, 1))

    def slopes(self) -> Array:
        """Return the derivatives of the vector by all entries of the part, at the means: (m, entries)."""
        own = self.transform.slopes(self.mean[self.learnt])
        n, width, event = own.shape
        found = np.zeros((n, width, self.learnt.size, event))
        found[np.arange(n), :, np.flatnonzero(self.learnt)] = own
        return found.reshape(n * width, self.learnt.size * event)


@dataclass(frozen=True, eq=False)
class Coordinates:
    """What is learnt of all globals as one vector.

    Attributes
    ----------
    pieces
        In the order of the vector.
    template
        A value of each variable: that of what is not learnt.
    """

    pieces: tuple[Piece, ...]
    template: Mapping[str, Any]

    @classmethod
    def of(
        cls, factors: Mapping[str, Any], counted: Mapping[str, AnyArray], rng: np.random.Generator
    ) -> Coordinates:
        """Return the coordinates of the globals of a posterior.

        Parameters
        ----------
        factors
            By name, one for each variable.
        counted
            Which repetitions count, of variables with some that do not.
        rng
            Of values for repetitions that do not count: any will do.

        Raises
        ------
        ModelError
            If a global is a label or a count.
        """
        pieces: list[Piece] = []
        start = 0
        for name, factor in factors.items():
            if factor.learnt is None:
                continue
            transforms = factor.family.transforms
            if not transforms and not np.any(factor.variance):
                # the point of a bound is where the others say
                continue
            if not transforms:
                raise ModelError(
                    f"'{name}' is a label or a count, so linear response gives no proposal; "
                    f"posterior.diagnose(data) uses draws from q"
                )
            marginals = factor.entry_marginals((0.05, 0.95))
            for part, (transform, own) in enumerate(zip(transforms, marginals, strict=True)):
                mean = np.asarray(own.mean, dtype=np.float64)
                batch = mean.shape[: mean.ndim - transform.event_ndim]
                learnt = _learnt(factor, counted.get(name), batch, is_shared=own.is_shared)
                probe = transform.forward(mean[learnt])
                stop = start + probe.size
                pieces.append(Piece(name, part, transform, learnt, slice(start, stop), mean))
                start = stop
        return cls(tuple(pieces), {name: factor.sample(None, rng) for name, factor in factors.items()})

    @property
    def size(self) -> int:
        """Numbers of the vector."""
        return self.pieces[-1].place.stop if self.pieces else 0

    def vectors(self, draws: Mapping[str, Any]) -> Array:
        """Return the vectors of draws of all variables, (n, size)."""
        found = []
        for piece in self.pieces:
            value = np.asarray(_part(draws[piece.name], piece.part))
            own = piece.transform.forward(value[:, piece.learnt])
            found.append(own.reshape(len(own), -1))
        return np.concatenate(found, axis=1)

    def values(self, vectors: Array) -> dict[str, Any]:
        """Return values of all variables from vectors (n, size), each of shape (n, plates..., event...)."""
        n = len(vectors)
        parts = {
            name: [np.broadcast_to(own, (n, *np.shape(own))) for own in _parts(value)]
            for name, value in self.template.items()
        }
        for piece in self.pieces:
            whole = np.array(parts[piece.name][piece.part], dtype=np.float64)
            whole[:, piece.learnt] = piece.transform.inverse(piece.apart(vectors))
            parts[piece.name][piece.part] = whole
        return {name: _like(self.template[name], own) for name, own in parts.items()}

    def log_volume(self, vectors: Array) -> Array:
        """Return the log of the volume of values for that of vectors, (n,)."""
        total = np.zeros(len(vectors))
        for piece in self.pieces:
            total += piece.transform.log_volume(piece.apart(vectors)).sum(axis=-1)
        return total

    def covariance(self, of_values: Callable[[str, str], Array]) -> Array:
        """Return the covariance of the vector, (size, size), from those of values, to first order.

        Parameters
        ----------
        of_values
            Returns the covariances of all entries of two variables, part after part.
        """
        slopes = {name: self._slopes(name) for name in dict.fromkeys(piece.name for piece in self.pieces)}
        found = np.zeros((self.size, self.size))
        for one, (rows, a) in slopes.items():
            for other, (columns, b) in slopes.items():
                found[np.ix_(rows, columns)] = a @ of_values(one, other) @ b.T
        return 0.5 * (found + found.T)

    def _slopes(self, name: str) -> tuple[AnyArray, Array]:
        """Return the places of a variable in the vector, and its derivatives by all entries of the value."""
        own = [piece for piece in self.pieces if piece.name == name]
        places = np.concatenate([np.arange(piece.place.start, piece.place.stop) for piece in own])
        blocks = [piece.slopes() for piece in own]
        found = np.zeros((len(places), sum(piece.mean.size for piece in own)))
        row = column = 0
        for block in blocks:
            found[row : row + block.shape[0], column : column + block.shape[1]] = block
            row, column = row + block.shape[0], column + block.shape[1]
        return places, found


def _learnt(factor: Any, counted: AnyArray | None, batch: tuple[int, ...], *, is_shared: bool) -> AnyArray:
    """Return which repetitions of a part are learnt and count, in the shape of its repetitions."""
    found = np.ones(batch, dtype=bool)
    known = None if factor.learnt is factor else factor.is_known
    for own in (None if known is None else ~known, counted):
        if own is not None:
            mask = own.any(axis=-1) if is_shared else own
            found &= np.reshape(mask, (*mask.shape, *(1,) * (len(batch) - mask.ndim)))
    return found


def _parts(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, tuple) else (value,)


def _part(value: Any, part: int) -> Any:
    return _parts(value)[part]


def _like(value: Any, parts: list[Array]) -> Any:
    return type(value)(*parts) if isinstance(value, tuple) else parts[0]
