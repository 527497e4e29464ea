"""The strategy: a random model with simulated data, and the settings of how many are tried."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from thinning import amount

from .choices import Choices
from .statement import Stated, state

__all__ = ["Drawn", "examples", "models"]

_WANTED = os.environ.get("CAVIAR_RANDOM_MODELS")
"""How many models each test tries; without it the same few each time."""


def examples(usual: int, share: int = 16) -> settings:
    """Return the settings of a test that tries so many models in `make test-all`, and this share in `make test`."""
    return settings(
        max_examples=int(_WANTED or amount(-(-usual // share), usual)),
        derandomize=_WANTED is None,
        deadline=None,
        database=None,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )


@dataclass(frozen=True, eq=False)
class Drawn:
    """A random model with data.

    Attributes
    ----------
    choices
        What it was stated from: :func:`state` gives it again.
    stated
        The model.
    seed
        Of its data, and of whatever else is random in a test.
    n_rows
        Rows of its data.
    """

    choices: Choices
    stated: Stated
    seed: int
    n_rows: int

    @property
    def rng(self) -> np.random.Generator:
        """A generator that the data did not come from."""
        return np.random.default_rng([self.seed, 1])

    @property
    def data(self) -> dict[str, Any]:
        """Simulated data."""
        return self.stated.simulate(self.seed, self.n_rows)

    def __repr__(self) -> str:
        variables = self.stated.model.variables.values()
        lines = [f"{v.name}: {v.describe()}" for v in variables]
        return "\n".join([f"Drawn(seed={self.seed}, n_rows={self.n_rows}, {self.choices})", *lines])


@st.composite
def models(draw: Callable[..., Any], *, known_only: bool = False, most_rows: int = 7) -> Drawn:
    """Draw a model that the language states, with a seed and a number of rows for its data."""
    choices = Choices.drawn(draw)
    stated = state(choices, known_only=known_only)
    return Drawn(choices, stated, draw(st.integers(0, 10_000)), draw(st.integers(1, most_rows)))
