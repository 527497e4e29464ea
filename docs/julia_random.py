"""Random numbers as Julia draws them, so that a page has the data of an example that is written in Julia.

An example whose data are drawn with ``StableRNG(123)`` or ``MersenneTwister(42)`` has the same numbers here, up to
rounding of the thirteenth digit. The figures of two libraries can then be compared digit by digit.
"""

from __future__ import annotations

import hashlib
import math
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

__all__ = ["JuliaGenerator", "MersenneTwister", "StableRNG"]

BITS = 52
"""Random bits of a float."""
LAYERS = 256
WORD, LONG, WIDE = 2**32 - 1, 2**64 - 1, 2**128 - 1

Ziggurat = tuple[list[int], list[float], list[float]]


def _ziggurat(
    edge: float, area: float, bits: int, f: Callable[[float], float], inverse: Callable
) -> Ziggurat:
    """Return limits, widths and heights of the layers of equal area below a density without its constant.

    Marsaglia and Tsang (2000), "The ziggurat method for generating random variables".
    """
    scale = 2.0**bits
    limits, widths, heights = [0] * LAYERS, [0.0] * LAYERS, [1.0] * LAYERS
    limits[0], widths[0] = int(edge * f(edge) / area * scale), area / f(edge) / scale
    outer, widths[-1], heights[-1] = edge, edge / scale, f(edge)
    for layer in range(LAYERS - 2, 0, -1):
        x = inverse(area / outer + heights[layer + 1])
        limits[layer + 1] = int(x / outer * scale)
        outer, widths[layer], heights[layer] = x, x / scale, f(x)
    return limits, widths, heights


def _bell(x: float) -> float:
    return math.exp(-0.5 * x * x)


def _decay(x: float) -> float:
    return math.exp(-x)


EDGE, EDGE_OF_DECAY = 3.6541528853610087963519, 7.6971174701310497140446
NORMAL = _ziggurat(
    EDGE,
    EDGE * _bell(EDGE) + math.sqrt(math.pi / 2) * math.erfc(EDGE / math.sqrt(2)),
    BITS - 1,
    _bell,
    lambda y: math.sqrt(-2 * math.log(y)),
)
EXPONENTIAL = _ziggurat(
    EDGE_OF_DECAY, (EDGE_OF_DECAY + 1) * _decay(EDGE_OF_DECAY), BITS, _decay, lambda y: -math.log(y)
)


class JuliaGenerator(ABC):
    """What Julia's ``Random`` and ``Distributions`` draw from a stream of random bits."""

    @abstractmethod
    def bits(self) -> int:
        """Return 52 random bits, those of the next float."""

    @abstractmethod
    def word(self) -> int:
        """Return the next ``UInt64``."""

    def rand(self) -> float:
        """Return ``rand(rng)``, uniform in [0, 1)."""
        return self.bits() / 2**BITS

    def randn(self, *shape: int) -> NDArray[np.float64]:
        """Return ``randn(rng, shape...)``, in the order of columns; a number without a shape."""
        drawn = np.array([self._normal() for _ in range(math.prod(shape))])
        return drawn.reshape(shape, order="F") if shape else drawn[0]

    def _normal(self) -> float:
        limits, widths, heights = NORMAL
        while True:
            size, negative = divmod(self.bits(), 2)
            layer = size % LAYERS
            x = (-size if negative else size) * widths[layer]
            if size < limits[layer]:
                return x
            if layer == 0:
                while True:
                    beyond, height = -math.log(self.rand()) / EDGE, -math.log(self.rand())
                    if 2 * height > beyond**2:
                        return -EDGE - beyond if size >> 8 & 1 else EDGE + beyond
            if (heights[layer - 1] - heights[layer]) * self.rand() + heights[layer] < _bell(x):
                return x

    def randexp(self) -> float:
        """Return ``randexp(rng)``, with mean 1."""
        limits, widths, heights = EXPONENTIAL
        while True:
            size = self.bits()
            layer = size % LAYERS
            x = size * widths[layer]
            if size < limits[layer]:
                return x
            if layer == 0:
                return EDGE_OF_DECAY - math.log(self.rand())
            if (heights[layer - 1] - heights[layer]) * self.rand() + heights[layer] < _decay(x):
                return x

    def category(self, probabilities: Sequence[float]) -> int:
        """Return ``rand(rng, Categorical(probabilities)) - 1``."""
        return int(np.searchsorted(np.cumsum(probabilities)[:-1], self.rand(), side="right"))

    def categories(self, probabilities: Sequence[float], n: int) -> list[int]:
        """Return ``rand(rng, Categorical(probabilities), n) .- 1``, by a table of aliases."""
        table = _aliases(probabilities)
        drawn = []
        for _ in range(n):
            cell, within = divmod(self.word() / 2**64 * len(table), 1)
            share, alias = table[int(cell)]
            drawn.append(alias if within < share else int(cell))
        return drawn

    def binomial(self, n: int, p: float) -> int:
        """Return ``rand(rng, Binomial(n, p))`` where ``n min(p, 1 - p)`` is at most 10, by waiting times."""
        rare, trials, found = min(p, 1 - p), 0, -1
        while trials <= n:
            found += 1
            trials += math.ceil(min(-self.randexp() / math.log1p(-rare), n + 1)) if rare > 0 else n + 1
        return found if p <= 0.5 else n - found


def _aliases(probabilities: Sequence[float]) -> list[tuple[float, int]]:
    """Return for each cell, a power of two of them, the share of its alias and the alias."""
    cells = 1 << (len(probabilities) - 1).bit_length()
    wanted = [cells * own for own in probabilities] + [0.0] * (cells - len(probabilities))
    table = [(0.0, cell) for cell in range(cells)]
    is_short = [own < 1 - 1e-12 for own in wanted]
    short = (cell for cell in range(1, cells) if is_short[cell])
    long = (cell for cell in range(1, cells) if not is_short[cell])
    current, rest = 0, wanted[0]
    while True:
        if rest < 1 - 1e-12:
            following = next(long)
            table[current] = (1 - rest, following)
            current, rest = following, wanted[following] - (1 - rest)
        else:
            other = next(short, None)
            if other is None:
                return table
            table[other] = (1 - wanted[other], current)
            rest -= 1 - wanted[other]


class StableRNG(JuliaGenerator):
    """Julia's ``StableRNG(seed)``: a linear congruential generator with 128 bits of state."""

    def __init__(self, seed: int) -> None:
        self.state = 2 * seed + 1

    def word(self) -> int:
        self.state = self.state * 0x45A31EFC5A35D971261FD0407A968ADD & WIDE
        return self.state >> 64

    def bits(self) -> int:
        return self.word() % 2**BITS


class MersenneTwister(JuliaGenerator):
    """Julia's ``MersenneTwister(seed)`` of version 1.11 and later: dSFMT with period 2^19937 - 1.

    Saito and Matsumoto (2009), "A PRNG specialized in double precision floating point numbers using an affine
    transition". The seed is hashed by SHA-256. Floats and integers are made in advance, each kind in a block.
    """

    PAIRS, STEP, FLOATS, INTEGERS = 191, 117, 1002, 501

    def __init__(self, seed: int) -> None:
        digest = hashlib.sha256(struct.pack("<I", seed)).digest()
        self.state = _certified(_spread(list(struct.unpack("<8I", digest)), 4 * (self.PAIRS + 1)))
        self.stream = chain.from_iterable(iter(self._twisted, None))
        self.floats: list[int] = []
        self.integers: list[int] = []

    def bits(self) -> int:
        if not self.floats:
            self.floats = [next(self.stream) for _ in range(self.FLOATS)][::-1]
        return self.floats.pop() % 2**BITS

    def word(self) -> int:
        if not self.integers:
            raw = [next(self.stream) for _ in range(2 * (self.INTEGERS + 126))]
            pairs = [low | high << 64 for low, high in zip(raw[::2], raw[1::2], strict=True)]
            for i in range(self.INTEGERS):
                pairs[i] ^= pairs[self.INTEGERS + i // 4] << 48 - 12 * (i % 4) & WIDE
            self.integers = [half for own in pairs[: self.INTEGERS] for half in (own & LONG, own >> 64)]
        return self.integers.pop()

    def _twisted(self) -> list[int]:
        """Return the numbers of the next state."""
        state, n = self.state, 2 * self.PAIRS
        lung = state[n:]
        for i in range(0, n, 2):
            other = (i + 2 * self.STEP) % n
            swapped = [(own >> 32 | own << 32) & LONG for own in reversed(lung)]
            for j, mask in enumerate((0x000FFAFFFFFFFB3F, 0x000FFDFFFC90FFFD)):
                lung[j] = (state[i + j] << 19 & LONG) ^ swapped[j] ^ state[other + j]
                state[i + j] ^= lung[j] >> 12 ^ lung[j] & mask
        state[n:] = lung
        return state[:n]


def _spread(key: list[int], size: int) -> list[int]:
    """Return a state of words in which a key is spread: dSFMT's ``init_by_array``."""
    lag = 11
    middle = (size - lag) // 2
    state = [0x8B8B8B8B] * size
    added = [len(key), *key, *[0] * (size - len(key) - 1)]
    for i in range(size):
        mixed = state[i] ^ state[(i + middle) % size] ^ state[i - 1]
        mixed = (mixed ^ mixed >> 27) * 1664525 & WORD
        state[(i + middle) % size] = state[(i + middle) % size] + mixed & WORD
        mixed = mixed + added[i] + i & WORD
        state[(i + middle + lag) % size] = state[(i + middle + lag) % size] + mixed & WORD
        state[i] = mixed
    for i in range(size):
        mixed = state[i] + state[(i + middle) % size] + state[i - 1] & WORD
        mixed = (mixed ^ mixed >> 27) * 1566083941 & WORD
        state[(i + middle) % size] ^= mixed
        mixed = mixed - i & WORD
        state[(i + middle + lag) % size] ^= mixed
        state[i] = mixed
    return state


def _certified(words: list[int]) -> list[int]:
    """Return the state in long words, floats in [1, 2) except the last two, with the full period."""
    state = [low | high << 32 for low, high in zip(words[::2], words[1::2], strict=True)]
    state[:-2] = [own % 2**BITS | 0x3FF << BITS for own in state[:-2]]
    inner = (state[-2] ^ 0x90014964B32F4329) & 0x3D84E1AC0DC82880
    if (inner.bit_count() + (state[-1] ^ 0x3B8D12AC548A7C7A)) % 2 == 0:
        state[-1] ^= 1
    return state
