"""The verification kit with fewer draws and directions, for tests of `make test` that it passes a fit.

Half of the time of such a test is 500 draws, another half slopes in 40 directions for each factor. Fewer judge the same
claims, with wider errors of the draws; `make test-all` takes as many as users do.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any
from unittest.mock import patch

MOST_DRAWS = 100
MOST_DIRECTIONS = 6

THE_KIT_ITSELF = ("kit/", "random_models/")
"""Where tests are about what the kit finds, below tests/."""


def _at_most(own: Any, most: int, name: str, *arguments: Any, **keywords: Any) -> Any:
    return own(*arguments, **{**keywords, name: min(keywords[name], most)})


@contextmanager
def lean_kit() -> Iterator[None]:
    """Let checks of models take fewer draws and directions."""
    # not before NumPy may be loaded: tests/conftest.py says first how many threads it has
    from caviar.testing import _check_model as kit

    draws = partial(_at_most, kit.elbo_estimate, MOST_DRAWS, "n_draws")
    slopes = partial(_at_most, kit.elbo_slopes, MOST_DIRECTIONS, "n_directions")
    with patch.multiple(kit, elbo_estimate=draws, elbo_slopes=slopes):
        yield
