"""What a data set of the torture suite is: a name, a sentence, rows, and what is expected of a fit to them."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Case", "blobs", "noise"]

Generator = np.random.Generator


@dataclass(frozen=True)
class Case:
    """A named data set.

    Attributes
    ----------
    name
        Of the set.
    sentence
        What it is.
    make
        Makes the rows, given a generator that the name seeds.
    n_components
        K of the fits.
    weigh
        Makes the weights, given a generator and the number of rows; None for fits without weights.
    refused
        Words in the error of every fit; empty where a Bayesian mixture must be fitted.
    refused_by_em
        Words in the error of maximum likelihood; empty where it must not refuse. It may collapse: its priors are flat.
    """

    name: str
    sentence: str
    make: Callable[[Generator], Any]
    n_components: int = 3
    weigh: Callable[[Generator, int], Any] | None = None
    refused: str = ""
    refused_by_em: str = ""

    def rows(self) -> Any:
        """Return the rows; the same at each call."""
        return self.make(self._generator())

    def weights(self, n_rows: int) -> Any:
        """Return the weight of each row, or None."""
        return None if self.weigh is None else self.weigh(self._generator(), n_rows)

    def _generator(self) -> Generator:
        return np.random.default_rng(zlib.crc32(self.name.encode()))


def noise(rng: Generator, n: int = 40, d: int = 2) -> np.ndarray:
    """Return rows of standard Normals."""
    return rng.standard_normal((n, d))


def blobs(
    rng: Generator, n: int = 40, d: int = 2, k: int = 3, apart: float = 6.0, width: float = 1.0
) -> np.ndarray:
    """Return rows around k centres, in turn."""
    centres = apart * rng.standard_normal((k, d))
    return centres[np.arange(n) % k] + width * rng.standard_normal((n, d))


def named(cases: Sequence[Case]) -> dict[str, Case]:
    """Return cases by name, each of which there must be once."""
    found = {case.name: case for case in cases}
    if len(found) < len(cases):
        raise ValueError("two data sets have the same name")
    return found
